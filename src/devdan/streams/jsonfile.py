"""JSON as a table: an object in each line, or an array of objects. Rows are read one by one, so memory stays flat."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from itertools import chain, islice
from typing import Any

import numpy as np

from devdan.encoding.evidence import JUDGED_AT
from devdan.encoding.rows import Texts, distinct
from devdan.encoding.tables import TableError, column_of
from devdan.streams.stream import StreamError, name_of
from devdan.streams.tablesource import Batch, TableSource
from devdan.streams.textfile import BLOCK, DAMAGE, LONGEST_LINE, PIECE, PIECES, TextFile

_AT_A_TIME = 1000  # rows; the first ones say which columns there are
_NOT_BLANK = re.compile(r"[ \t\r\n]*")


def json_source(file: TextFile) -> TableSource:
    """A file of JSON objects as a table; its columns are the keys of the first 1,000 objects."""
    origin = str(file.path)
    with closing(_objects(file)) as objects:
        numbered = list(islice(objects, _AT_A_TIME))
    first = [found for _, found in numbered]
    names = list(dict.fromkeys(key for found in first for key in found))
    if not first:
        raise StreamError(f"{origin} has no rows")
    samples = _samples(file, first, names) if numbered[0][0] else {}

    def batches(columns: Sequence[int], written: Sequence[int], _: Collection[int]) -> Generator[Batch, None, None]:
        wanted, known = [names[place] for place in (*columns, *written)], frozenset(names)
        with closing(_objects(file)) as objects:
            n_rows = 0
            while some := list(islice(objects, _AT_A_TIME)):
                for row, (where, found) in enumerate(some, n_rows + 1):
                    if not known.issuperset(found):
                        check_keys(found, known, f"{origin}: row {row}{where}")
                n_rows += len(some)
                yield [[found.get(name) for _, found in some] for name in wanted]

    return TableSource(name_of(file.path), origin, tuple(distinct(names)), batches, is_json=True, samples=samples)


def _samples(file: TextFile, first: list[dict[str, Any]], names: Sequence[str]) -> dict[int, Texts]:
    """Values of the columns that have texts: of the first objects, and of lines further in, if the file is long."""
    pieces = [first]
    for text in file.pieces_within(PIECES, PIECE):
        try:
            pieces.append([parsed_object(line, "") for line in text.decode().splitlines() if line.strip()])
        except (UnicodeDecodeError, StreamError):  # which is told when it is read
            continue
    found: dict[int, Texts] = {}
    n_each = min([JUDGED_AT[-1] // len(pieces), *map(len, pieces)])
    spread = [[each[k] for k in np.linspace(0, len(each) - 1, n_each, dtype=np.int64)] for each in pieces]
    for place, name in enumerate(names) if len(pieces) > 1 else ():
        try:
            column = column_of([row.get(name) for each in spread for row in each], name)
        except TableError:
            continue
        if isinstance(column, Texts):
            found[place] = column
    return found


def check_keys(found: Iterable[str], known: Collection[str], where: str) -> None:
    """Raise an error if an object has a key that is no column."""
    for key in found:
        if key not in known:
            raise StreamError(f"{where} has a new column {key!r}")


def parsed_object(line: str, where: str) -> dict[str, Any]:
    """The object in a line; ``where`` is for messages."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise StreamError(f"{where} is not a JSON object: {line.strip()[:60]}")
    return found


def _objects(file: TextFile) -> Generator[tuple[str, dict[str, Any]], None, None]:
    """The objects, each with the line in which it stands if it has one of its own."""
    number = 0
    try:
        with closing(file.lines(whole=False)) as lines:
            first = next((line for line in lines if line.strip()), "")
            if first.lstrip().startswith("["):
                for found in _array(chain([first], lines), str(file.path)):
                    yield "", found
                return
        with closing(file.lines()) as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield f" (line {number})", parsed_object(line, f"{file.path}: line {number}")
    except (*DAMAGE, UnicodeDecodeError) as error:
        raise file.unreadable(error, number) from error


def _array(pieces: Iterator[str], origin: str) -> Iterator[dict[str, Any]]:
    """The objects in an array of JSON that comes in pieces."""
    decoder, n_rows = json.JSONDecoder(), 0
    text, at = next(pieces).lstrip()[1:], 0
    wants_comma = is_closed = False
    while True:
        at = _NOT_BLANK.match(text, at).end()  # type: ignore[union-attr]  # which matches everywhere
        next_one = text[at : at + 1]
        if next_one and wants_comma and next_one != "]":
            if next_one != ",":
                raise StreamError(f"{origin}: after row {n_rows} comes {text[at : at + 30]!r} instead of a comma or ]")
            at, wants_comma = at + 1, False
            continue
        if next_one == "]":
            if n_rows > 0 and not wants_comma:
                raise StreamError(f"{origin}: row {n_rows + 1} is missing after a comma")
            at, is_closed = at + 1, True
            break
        try:
            found, end = decoder.raw_decode(text, at)
        except RecursionError:
            raise StreamError(f"{origin}: row {n_rows + 1} is nested too deeply") from None
        except ValueError:
            text, at = text[at:], 0  # perhaps the row goes on in the next piece
            if len(text) > LONGEST_LINE:
                raise StreamError(f"{origin}: row {n_rows + 1} is longer than {LONGEST_LINE:,} characters") from None
            more = _some(pieces, max(len(text), BLOCK))
            if not more:
                break
            text += more
            continue
        if not isinstance(found, dict):
            begin = text[at : at + 60].split("\n")[0]
            raise StreamError(f"{origin}: row {n_rows + 1} is not a JSON object: {begin}")
        n_rows, at, wants_comma = n_rows + 1, end, True
        yield found
    rest = (text[at:] + "".join(islice(pieces, 1))).strip() if is_closed else text[at:]
    if not is_closed or rest:
        begin = f"; row {n_rows + 1} begins with {rest[:30]!r}" if rest else ""
        raise StreamError(
            f"{origin}: there is more after the array: {rest[:30]!r}"
            if is_closed
            else f"{origin}: the array is never closed, or no JSON, after row {n_rows}{begin}"
        )


def _some(pieces: Iterator[str], n_characters: int) -> str:
    """The next pieces, joined until there are this many characters."""
    parts, n = [], 0
    for piece in pieces:
        parts.append(piece)
        n += len(piece)
        if n >= n_characters:
            break
    return "".join(parts)
