"""Tables without labels, to predict from: the columns of a file, and their rows, block by block."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from devdan.encoding.rows import Rows

Block = tuple[Rows, list[Any]]  # rows, and for each column that is kept its values as they were


@dataclass(frozen=True)
class Table:
    """A file as a table. ``read(columns, keep, as_text)`` yields its rows in order, block by block.

    These are lists of positions: the rows have the first, in that order; of the second, the values come as they are in
    the file (an Arrow array, or a list), text exactly as written; those of the third that are written as text stay so,
    even if they look like numbers.
    """

    origin: str
    names: tuple[str, ...]
    read: Callable[[Sequence[int], Sequence[int], Collection[int]], Iterator[Block]]
    named: bool = True  # whether the names are the file's own
    n_rows: int | None = None
    estimated_rows: int | None = None  # estimated from the file size, if the exact number is unknown
    is_json: bool = False  # lines of JSON
