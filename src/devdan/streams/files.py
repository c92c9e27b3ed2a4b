"""Files as streams: CSV, ARFF, Parquet and NPZ, read one block at a time, so that memory use stays flat."""

from __future__ import annotations

import csv
import re
from collections import deque
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pa_parquet

from devdan.encoding.rows import distinct
from devdan.streams import delimited, npz
from devdan.streams.columns import BatchConverter, kept_columns, target_column
from devdan.streams.delimited import Layout
from devdan.streams.stream import Chunk, Stream, StreamError, Table, TableBlock, name_of, read_ahead, reason
from devdan.streams.textfile import COMPRESSIONS, TextFile, lines

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
        return kind, arff_layout(path, compression)
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
    return Stream(
        name, lambda: read_ahead(blocks()), chunk, features, n_samples, None, None, source, target=names[labels]
    )


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


# --- ARFF: the header declares the columns; the data rows go to the CSV reader -----------------------------------


_CELL = r"""\s*('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^,{}]*?)\s*"""
_ROW = re.compile(_CELL + r"(,|$)")
_ATTRIBUTE = re.compile(
    r"""@attribute\s+('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\s{]+)\s*(\{.*\}|\S.*?)\s*(?:%.*)?$""", re.I
)
_NUMBERS = ("numeric", "real", "integer")


def arff_layout(path: Path, compression: str | None) -> Layout:
    """The layout of an ARFF file; the first pass over the data continues in the file that is opened here."""
    text = lines(path, compression)
    names, values, types, n_lines = _arff_header(text, path)
    begun = [text]

    def opened() -> _DataRows:
        if begun:
            return _DataRows(begun.pop(), path)
        again = lines(path, compression)
        deque(islice(again, n_lines), maxlen=0)
        return _DataRows(again, path)

    file = TextFile(path, compression, opened)
    return Layout(
        file, names, values=values, closed=True, types=types, target=len(names) - 1, counts_lines=False
    )  # whose line numbers are not those of the file


def _arff_header(
    text: Iterator[str], path: Path
) -> tuple[list[str], dict[int, list[str]], dict[str, pa.DataType], int]:
    """The names of the columns, their declared values and types by column, and the number of lines up to @data."""
    names: list[str] = []
    values: dict[int, list[str]] = {}
    types: dict[str, pa.DataType] = {}
    for number, line in enumerate(map(str.strip, text), start=1):
        word = line.split(maxsplit=1)[0].lower() if line else ""
        if word == "@data":
            if not names:
                raise StreamError(f"{path}: no @attribute before @data in line {number}")
            return names, values, types, number
        if word == "@attribute":
            match = _ATTRIBUTE.match(line)
            if match is None:
                raise StreamError(f"{path}: line {number} is not an attribute: {line[:60]}")
            place, kind = len(names), match[2]
            names.append(_plain(match[1]))
            if kind.startswith("{"):
                values[place], types[str(place)] = _cells(kind[1:-1]), pa.string()
            elif kind.lower() in _NUMBERS:
                types[str(place)] = pa.float64()
        elif line and not line.startswith(("%", "@")):
            raise StreamError(f"{path}: line {number} before @data is not understood: {line[:60]}")
    raise StreamError(f"{path} has no @data line, so it is not an ARFF file")


class _DataRows:
    """The data as plain CSV: without comments, blanks around cells, and ARFF's two kinds of quotes."""

    def __init__(self, text: Generator[str, None, None], path: Path) -> None:
        self._text, self._path = text, path
        self._rows = self._converted()

    def _converted(self) -> Generator[bytes, None, None]:
        n_rows = 0
        for line in self._text:
            row = line.strip()
            if not row or row.startswith("%"):
                continue
            n_rows += 1
            if row.startswith("{"):
                raise StreamError(
                    f"{self._path}: row {n_rows} is in the sparse format ({row[:30]}); only dense ARFF is supported"
                )
            if any(mark in row for mark in "'\"\\% \t"):
                row = ",".join(map(_quoted, _cells(row)))
            yield row.encode() + b"\n"

    def read(self, n_bytes: int, /) -> bytes:
        """Whole rows, as many as have about this many bytes."""
        rows, n = [], 0
        while n < n_bytes and (row := next(self._rows, b"")):
            rows.append(row)
            n += len(row)
        return b"".join(rows)

    def close(self) -> None:
        self._text.close()


def _cells(text: str) -> list[str]:
    """The comma-separated values, without quotes or a trailing comment."""
    cells, place = [], 0
    while place <= len(text):
        match = _ROW.match(text, place)
        if match is None:  # a comment, or something after a quote
            cell, _, _ = text[place:].partition("%")
            quoted = re.match(_CELL, cell)
            cells.append(_plain(quoted[1] if quoted and quoted[1] else cell.strip()))
            break
        comment = match[1].find("%") if not match[1].startswith(("'", '"')) else -1
        cells.append(_plain(match[1] if comment < 0 else match[1][:comment].strip()))
        if not match[2] or comment >= 0:
            break
        place = match.end()
    return cells


def _quoted(cell: str) -> str:
    """The value in CSV form; empty values are quoted too, since an empty line would be skipped."""
    doubled = cell.replace('"', '""')
    return f'"{doubled}"' if not cell or any(mark in cell for mark in ',"\r\n') else cell


def _plain(cell: str) -> str:
    if len(cell) > 1 and cell[0] in "'\"" and cell[-1] == cell[0]:
        return re.sub(r"\\(.)", r"\1", cell[1:-1])
    return cell
