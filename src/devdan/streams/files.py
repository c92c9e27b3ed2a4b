"""Files as streams: CSV, ARFF, Parquet and NPZ, read one block at a time, so that memory use stays flat."""

from __future__ import annotations

import csv
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pa_parquet

from devdan.encoding.rows import distinct
from devdan.streams import arff, delimited, npz
from devdan.streams.columns import BatchConverter, kept_columns, target_column
from devdan.streams.delimited import Layout
from devdan.streams.stream import Chunk, Stream, StreamError, Table, TableBlock, name_of, read_ahead, reason
from devdan.streams.textfile import COMPRESSIONS, TextFile

_DELIMITERS = {".csv": None, ".tsv": "\t", ".txt": None, ".data": None}


def file(
    path: str | Path,
    *,
    target: str | int | None = None,
    chunk: int = 500,
    header: bool | None = None,
    drop: Sequence[str | int] = (),
    as_text: Collection[str] = (),
    name: str | None = None,
) -> Stream:
    """Open a file as a stream. The extension gives the format: .csv, .tsv, .txt or .data, .arff, .parquet, .npz.

    Texts may be compressed (.gz, .bz2, .zst). ``target`` is the column with the labels, by name or position (0 is the
    first, -1 the last); by default, it is the column called target, class or label, and in ARFF otherwise the last one.
    ``header`` says whether a text starts with column names; by default it does if no cell in its first line is a
    number. ``drop`` leaves columns out. ``as_text`` names columns of a text that stay text even if they look like
    numbers, such as codes with leading zeros. An NPZ file holds the samples in ``X``, or
    in an array for each column, and the labels in ``y``, or in the array that ``target`` names. The samples come as
    :class:`~devdan.encoding.rows.Rows`, in which the model encodes what is not a number.
    """
    path = Path(path)
    name = name or name_of(path)
    with _readable(path):
        kind, layout = _found(path, header)
        if layout is not None:
            return delimited.stream(layout, target, drop, name, chunk, as_text)
        if kind == ".npz":
            return npz.stream(path, "y" if target is None else str(target), name, chunk)
        return _parquet(path, target, drop, name, chunk)


def table(path: str | Path, *, header: bool | None = None) -> Table:
    """Open a file as a table without labels, to predict from; formats and ``header`` as in :func:`file`."""
    path = Path(path)
    with _readable(path):
        kind, layout = _found(path, header)
        if layout is not None:
            return delimited.table(layout)
        return npz.table(path) if kind == ".npz" else _parquet_table(path)


def _found(path: Path, header: bool | None) -> tuple[str, Layout | None]:
    """The format of a file, and the layout if it is a text."""
    if not path.exists():
        raise StreamError(f"no such file: {path}")
    if path.is_dir():
        raise StreamError(f"{path} is a folder, not a file")
    compression = COMPRESSIONS.get(path.suffix.lower())
    kind = path.with_suffix("").suffix.lower() if compression else path.suffix.lower()
    if kind in _DELIMITERS:
        return kind, delimited.csv_layout(path, compression, _DELIMITERS[kind], header)
    if kind == ".arff":
        return kind, arff.layout(path, compression)
    if compression is None and kind in (".parquet", ".pq", ".npz"):
        return kind, None
    raise StreamError(
        f"{path}: unknown file extension {''.join(path.suffixes[-2:]) or '(it has none)'!r}; "
        ".csv, .tsv, .txt, .data, .arff (also with .gz, .bz2, .zst), .parquet and .npz can be read"
    )


def text(
    path: Path,
    names: Sequence[str],
    *,
    target: str | int,
    name: str,
    chunk: int = 500,
    skipped: int = 0,
    drop: Sequence[str | int] = (),
    values: Mapping[str, Sequence[str]] | None = None,
    opened: Callable[[], IO[bytes]] | None = None,
) -> Stream:
    """Open a comma-separated text with known columns, whatever its extension, as arrays of numbers.

    ``skipped`` is the number of lines before the first row. ``values`` are the values of text columns, so that codes do
    not depend on the order of the rows. ``opened`` opens a text inside another file; ``path`` is then for messages.
    """
    compression = None if opened else COMPRESSIONS.get(path.suffix.lower())
    file = TextFile(path, compression, opened)
    layout = Layout(file, list(names), skipped=skipped, counts_lines=opened is None)
    with _readable(path):
        return delimited.stream(layout, target, drop, name, chunk).coded(values)


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Turn read errors into one-line messages."""
    try:
        yield
    except StreamError:
        raise
    except UnicodeDecodeError:
        raise StreamError(f"{path} is not UTF-8 text; convert it first") from None
    except (OSError, pa.ArrowException, csv.Error) as error:
        raise StreamError(f"{path} cannot be read: {reason(error)}") from error


def _parquet(path: Path, target: str | int | None, drop: Sequence[str | int], name: str, chunk: int) -> Stream:
    source = str(path)
    with pa_parquet.ParquetFile(path) as table:
        schema, n_samples = table.schema_arrow, table.metadata.num_rows
    names = schema.names
    labels = target_column(names, target, source)
    kept = kept_columns(names, labels, [*drop, *(_index(schema) - {names[labels]})], source)
    columns_kept = distinct([names[place] for place in kept])

    def blocks() -> Generator[Chunk, None, None]:
        converter = BatchConverter(columns_kept, kept.index(labels), source)
        with closing(_batches(path)) as batches:
            yield from converter.chunks(batch.select(kept) for batch in batches)

    features = tuple(name for place, name in zip(kept, columns_kept, strict=True) if place != labels)
    return Stream(name, lambda: read_ahead(blocks()), chunk, features, n_samples, None, None, source)


def _parquet_table(path: Path) -> Table:
    source = str(path)
    with pa_parquet.ParquetFile(path) as table:
        names, n_rows = distinct(table.schema_arrow.names), table.metadata.num_rows

    def read(columns: Sequence[int], keep: Sequence[int], _: Collection[int]) -> Generator[TableBlock, None, None]:
        converter = BatchConverter([names[column] for column in columns], None, source)
        with closing(_batches(path)) as batches:
            for batch in batches:
                if batch.num_rows > 0:
                    yield converter.rows(batch.select(list(columns))), [batch.column(place) for place in keep]
        if converter.n_rows == 0:
            raise StreamError(f"{source} has no rows")

    return Table(source, tuple(names), lambda *which: read_ahead(read(*which)), n_rows=n_rows)


def _batches(path: Path) -> Generator[pa.RecordBatch, None, None]:
    n_rows = 0
    try:
        with pa_parquet.ParquetFile(path) as table:
            for batch in table.iter_batches(batch_size=1 << 13):
                yield batch
                n_rows += batch.num_rows
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        raise StreamError(f"{path} cannot be read after row {n_rows}: {reason(error)}") from error


def _index(schema: pa.Schema) -> set[str]:
    """Columns that are not data: the index, if pandas wrote the file."""
    metadata: dict[str, Any] = schema.pandas_metadata or {}
    return {column for column in metadata.get("index_columns", []) if isinstance(column, str)} & set(schema.names)
