"""Parquet and Arrow's own files, whose columns have types."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pa_parquet

from devdan.encoding.evidence import JUDGED_AT
from devdan.encoding.rows import Texts
from devdan.encoding.tables import TableError, arrow_column, is_text_type
from devdan.streams.stream import StreamError, name_of, reason
from devdan.streams.tablesource import Batch, TableSource
from devdan.streams.textfile import PIECES

_ROWS, _BUFFER = 1 << 13, 1 << 20  # rows, and bytes of a column, at a time
_FILE_MAGIC = b"ARROW1"


def parquet(path: Path) -> TableSource:
    """A Parquet file."""
    with pa_parquet.ParquetFile(path) as table:
        schema, n_rows = table.schema_arrow, table.metadata.num_rows
        samples = _samples(table)

    def batches() -> Generator[pa.RecordBatch, None, None]:
        # Arrow would keep what it reads ahead, of one group of rows after the other.
        with pa_parquet.ParquetFile(path, buffer_size=_BUFFER, pre_buffer=False) as table:
            yield from table.iter_batches(batch_size=_ROWS)

    return _source(path, schema, n_rows, batches, samples=samples)


def _samples(table: pa_parquet.ParquetFile) -> dict[int, Texts]:
    """Values of the columns of texts, of several groups of rows, if there are several."""
    kinds = zip(table.schema_arrow.names, table.schema_arrow.types, strict=True)
    names = {name: place for place, (name, kind) in enumerate(kinds) if is_text_type(kind)}
    groups = sorted({*np.linspace(0, table.num_row_groups - 1, PIECES + 1, dtype=np.int64).tolist()})
    if not names or len(groups) < 2:
        return {}
    n_each = min(JUDGED_AT[-1] // len(groups), *(table.metadata.row_group(group).num_rows for group in groups))
    try:
        parts = [next(table.iter_batches(n_each, [group], list(names))) for group in groups]
        found = pa.Table.from_batches(parts)
        columns = {place: arrow_column(found.column(name), name) for name, place in names.items()}
    except (OSError, pa.ArrowException, KeyError, StopIteration, TableError):  # which is told when it is read
        return {}
    return {place: column for place, column in columns.items() if isinstance(column, Texts)}


def arrow(path: Path) -> TableSource:
    """A file or a stream of Arrow (Feather is the former)."""
    with _opened(path) as reader:
        schema = reader.schema

    def batches() -> Generator[pa.RecordBatch, None, None]:
        with _opened(path) as reader:
            if isinstance(reader, pa.RecordBatchFileReader):
                parts: Iterator[pa.RecordBatch] = map(reader.get_batch, range(reader.num_record_batches))
            else:
                parts = iter(reader)
            for part in parts:  # Feather may have all rows in one
                for start in range(0, part.num_rows, _ROWS):
                    yield part.slice(start, _ROWS)

    return _source(path, schema, None, batches, is_checked=True)  # Arrow trusts what such a file says about itself


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    with pa.OSFile(str(path)) as file:  # not mapped, which would count as memory of this process
        is_file = file.read(len(_FILE_MAGIC)) == _FILE_MAGIC
        file.seek(0)
        with pa.ipc.open_file(file) if is_file else pa.ipc.open_stream(file) as reader:
            yield reader


def _source(
    path: Path,
    schema: pa.Schema,
    n_rows: int | None,
    parts: Callable[[], Generator[pa.RecordBatch, None, None]],
    is_checked: bool = False,
    samples: Mapping[int, Texts] | None = None,
) -> TableSource:
    metadata: dict[str, Any] = schema.pandas_metadata or {}
    index = {column for column in metadata.get("index_columns", []) if isinstance(column, str)}

    def batches(columns: Sequence[int], written: Sequence[int], _: Collection[int]) -> Generator[Batch, None, None]:
        n_rows = 0
        try:
            with closing(parts()) as opened:
                for part in opened:
                    if is_checked:
                        part.validate(full=True)
                    yield [part.column(place) for place in (*columns, *written)]
                    n_rows += part.num_rows
        except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
            raise StreamError(f"{path} cannot be read after row {n_rows}: {reason(error)}") from error

    return TableSource(
        name_of(path), str(path), tuple(schema.names), batches, n_rows=n_rows, is_typed=True, samples=samples or {},
        left_out=frozenset(place for place, name in enumerate(schema.names) if name in index),
    )  # fmt: skip
