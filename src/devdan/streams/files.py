"""Files as streams: CSV, Parquet, ARFF and NPZ, read a block at a time, so that memory stays flat in their length."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet

from devdan.streams import npz
from devdan.streams.base import Chunk, Stream, StreamError, read_ahead
from devdan.streams.tables import Columns, target_column

_COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
_DELIMITERS = {".tsv": "\t"}
_TEXTS = (".csv", ".tsv", ".txt", ".data")
_BLOCK = 1 << 20  # bytes of text that are parsed at a time
_MISSING = ["", "?", "NA", "N/A", "NaN", "nan", "NULL", "null", "None"]


def file(
    path: str | Path,
    *,
    target: str | int | None = None,
    chunk: int = 500,
    header: bool | None = None,
    drop: Sequence[str | int] = (),
    name: str | None = None,
) -> Stream:
    """A file as a stream; its ending says what it is: .csv, .tsv, .txt or .data, .arff, .parquet, .npz.

    Texts may be compressed (.gz, .bz2, .zst). ``target`` is the column with the labels, by name or position (0 is the
    first, -1 the last); without it, the column called target, class, label or y serves, and in ARFF else the last one.
    ``header`` says whether a text begins with the columns' names; by default it does if no cell of its first line is a
    number. ``drop`` leaves columns out. An NPZ file holds the samples in ``X`` and the labels in ``y``, or in the array
    that ``target`` names. How text becomes numbers: :mod:`devdan.streams.tables`.
    """
    path = Path(path)
    if not path.exists():
        raise StreamError(f"there is no file {path}")
    if path.is_dir():
        raise StreamError(f"{path} is a folder, not a file")
    compression = _COMPRESSIONS.get(path.suffix.lower())
    kind = path.with_suffix("").suffix.lower() if compression else path.suffix.lower()
    name = name or path.name.split(".")[0]
    with _readable(path):
        if kind in _TEXTS:
            return _text(_csv_layout(path, compression, _DELIMITERS.get(kind), header), target, drop, name, chunk)
        if kind == ".arff":
            return _text(_arff_layout(path, compression), target, drop, name, chunk)
        if compression is None and kind in (".parquet", ".pq"):
            return _parquet(path, target, drop, name, chunk)
        if compression is None and kind == ".npz":
            return npz.stream(path, "y" if target is None else str(target), name, chunk)
    raise StreamError(
        f"{path}: cannot tell what it holds from its ending {''.join(path.suffixes[-2:]) or '(it has none)'!r}; "
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
    """A text between commas whose columns are known beforehand, whatever its ending.

    ``skipped`` lines stand before the first row. ``values`` are those of text columns whose codes are not to depend on
    the order of the rows. ``opened`` opens a text that lies within another file; ``path`` then only tells where.
    """
    known = {list(names).index(column): list(its) for column, its in (values or {}).items()}
    compression = None if opened else _COMPRESSIONS.get(path.suffix.lower())
    with _readable(path):
        return _text(
            _Layout(path, compression, ",", skipped, list(names), values=known, opened=opened),
            target,
            drop,
            name,
            chunk,
        )


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Whatever cannot be read is an error that says so in a line."""
    try:
        yield
    except StreamError:
        raise
    except UnicodeDecodeError:
        raise StreamError(f"{path} is not text in UTF-8; convert it first") from None
    except (OSError, pa.ArrowException) as error:
        reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
        raise StreamError(f"{path} cannot be read: {reason}") from error


@dataclass(frozen=True)
class _Layout:
    """How a text is laid out: what stands before the first row, between its cells, and what its columns are called."""

    path: Path
    compression: str | None
    delimiter: str
    skipped: int  # lines before the first row
    names: list[str]
    named: bool = True
    quote: str = '"'
    values: dict[int, list[str]] | None = None  # of columns that name theirs beforehand
    types: dict[str, pa.DataType] = field(default_factory=dict)  # of columns that tell theirs beforehand
    is_arff: bool = False  # so there may be comments, and the last column is the target if nothing else is said
    opened: Callable[[], IO[bytes]] | None = None  # where the text is not a file of its own

    def open(self) -> tuple[pa.NativeFile, pa.NativeFile]:
        """The text, and the file it is in."""
        if self.opened is not None:
            inner = pa.PythonFile(self.opened(), mode="r")
            return inner, inner
        raw = pa.OSFile(str(self.path))
        return (pa.CompressedInputStream(raw, self.compression) if self.compression else raw), raw

    def reader(self, text: pa.NativeFile, types: dict[str, pa.DataType]) -> pa_csv.CSVStreamingReader:
        """A reader of the rows; with one thread, as only then errors tell the row, and unpacking is slower anyway."""

        def no_comment(row: Any) -> str:
            return "skip" if row.text.startswith("%") else "error"

        return pa_csv.open_csv(
            text,
            read_options=pa_csv.ReadOptions(
                use_threads=False,
                block_size=_BLOCK,
                skip_rows=self.skipped,
                column_names=[str(column) for column in range(len(self.names))],
            ),
            parse_options=pa_csv.ParseOptions(
                delimiter=self.delimiter,
                quote_char=self.quote,
                invalid_row_handler=no_comment if self.is_arff else None,
            ),
            convert_options=pa_csv.ConvertOptions(
                null_values=_MISSING, strings_can_be_null=True, quoted_strings_can_be_null=False, column_types=types
            ),
        )

    def explained(self, error: Exception, n_rows: int) -> StreamError:
        """Arrow's error in a line that says which row is wrong, and how."""
        text = str(error).splitlines()[0]
        after = f" after row {n_rows}" if n_rows else ""
        if row := re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", text):
            line, expected, got = (int(number) for number in row.groups())
            return StreamError(
                f"{self.path}: row {line - self.skipped} (line {line}) has {got} columns instead of {expected}: "
                f"{text[row.end() + 2 :][:60]}"
            )
        if row := re.search(r"column #(\d+): Row #(\d+): .* to (\w+): (.*)", text):
            column, line = int(row[1]), int(row[2])
            wrong = row[4].removeprefix("invalid value ")
            holds = "numbers" if row[3] == "double" else "text" if row[3] == "string" else row[3]
            return StreamError(
                f"{self.path}: row {line - self.skipped} (line {line}) has {wrong} in the column "
                f"{self.names[column]!r}, which holds {holds}"
            )
        if "compressed stream" in text or "inflate" in text:
            return StreamError(f"{self.path} is damaged or not complete{after}: {text.lower()}")
        if "Empty CSV file" in text:
            return StreamError(f"{self.path} has no rows")
        return StreamError(f"{self.path} cannot be read{after}: {text}")


def _text(layout: _Layout, target: str | int | None, drop: Sequence[str | int], name: str, chunk: int) -> Stream:
    source = str(layout.path)
    if target is None and layout.is_arff and sum(n.lower() in ("class", "target") for n in layout.names) != 1:
        target = -1
    labels = target_column(layout.names, target, source, layout.named)
    kept = [place for place in range(len(layout.names)) if place not in _dropped(layout.names, drop, source)]
    if labels not in kept or len(kept) < 2:
        raise StreamError(f"{source}: a stream needs its target and at least one feature")
    types, n_estimated = _probe(layout, labels)
    names = [layout.names[place] for place in kept]
    values = {kept.index(place): known for place, known in (layout.values or {}).items() if place in kept}
    classes = tuple(values[kept.index(labels)]) if kept.index(labels) in values else None

    def blocks() -> Generator[Chunk, None, None]:
        columns = Columns(names, kept.index(labels), source, values)
        try:
            text, raw = layout.open()
            with raw, text:
                for batch in layout.reader(text, types):
                    yield from columns.chunks([batch.select(kept) if len(kept) < len(layout.names) else batch])
            if columns.n_rows == 0:
                raise StreamError(f"{source} has no rows")
        except (OSError, pa.ArrowException) as error:
            raise layout.explained(error, columns.n_rows) from error

    features = tuple(names[place] for place in range(len(names)) if kept[place] != labels)
    return Stream(name, lambda: read_ahead(blocks()), chunk, features, None, n_estimated, classes, source)


def _dropped(names: Sequence[str], drop: Sequence[str | int], source: str) -> set[int]:
    return {target_column(names, column, source) for column in drop}


def _probe(layout: _Layout, labels: int) -> tuple[dict[str, pa.DataType], int | None]:
    """The columns' types, as the first block shows them, and how many rows there may be.

    Any number is a float, and so is what is missing so far. A feature that is mostly numbers is meant to be numbers:
    the reader will say where it is not.
    """
    try:
        text, raw = layout.open()
        with raw, text:
            block = text.read(_BLOCK)
            inside = layout.opened is not None  # another file, which would have to be unpacked to know its size
            n_estimated = None if inside else round(block.count(b"\n") * raw.size() / max(raw.tell(), 1))
        whole = block[: block.rfind(b"\n") + 1] or block
        with layout.reader(pa.BufferReader(whole), layout.types) as reader:
            schema, first = reader.schema, next(iter(reader), None)
    except (OSError, pa.ArrowException) as error:
        raise layout.explained(error, 0) from error
    types = {}
    for name, kind in zip(schema.names, schema.types, strict=True):
        types[name] = kind
        if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_null(kind):
            types[name] = pa.float64()
        elif pa.types.is_binary(kind):  # text that is not in UTF-8: the reader will say where
            types[name] = pa.string()
        elif pa.types.is_string(kind) and name not in layout.types and int(name) != labels:
            types[name] = pa.float64() if _mostly_numbers(first, name) else kind
    return types, n_estimated


def _mostly_numbers(rows: pa.RecordBatch, column: str) -> bool:
    values = rows.column(column).drop_null().value_counts().to_pylist()
    counts = [(count["values"], count["counts"]) for count in values]
    return bool(2 * sum(n for value, n in counts if _is_number(value)) > sum(n for _, n in counts))


def _lines(layout_path: Path, compression: str | None) -> Iterator[str]:
    raw = pa.OSFile(str(layout_path))
    stream = pa.CompressedInputStream(raw, compression) if compression else raw
    with raw, io.BufferedReader(stream) as lines:
        for number, line in enumerate(lines):
            yield line.decode("utf-8" if number else "utf-8-sig")


def _csv_layout(path: Path, compression: str | None, delimiter: str | None, header: bool | None) -> _Layout:
    first = next((line for line in _lines(path, compression) if line.strip()), None)
    if first is None:
        raise StreamError(f"{path} is empty")
    if delimiter is None:
        delimiter = max(",;\t", key=first.count)  # the first of them if there is none
    cells = [cell.strip() for cell in next(csv.reader([first], delimiter=delimiter))]
    if header is None:
        header = not any(_is_number(cell) for cell in cells)
    names = [cell.lstrip("# ") for cell in cells] if header else [f"column {place}" for place in range(len(cells))]
    return _Layout(path, compression, delimiter, int(header), names, header)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _arff_layout(path: Path, compression: str | None) -> _Layout:
    names: list[str] = []
    values: dict[int, list[str]] = {}
    types: dict[str, pa.DataType] = {}
    for number, line in enumerate(_lines(path, compression), start=1):
        text = line.strip()
        word = text.split(maxsplit=1)[0].lower() if text else ""
        if word == "@data":
            if not names:
                raise StreamError(f"{path}: no @attribute before @data in line {number}")
            return _Layout(path, compression, ",", number, names, True, "'", values, types, True)
        if word == "@attribute":
            match = re.match(r"@\w+\s+('[^']*'|\"[^\"]*\"|\S+?)\s*(\{.*\}|\s\S+.*)$", text)
            if match is None:
                raise StreamError(f"{path}: line {number} is not an attribute: {text[:60]}")
            known = match[2].strip()
            if known.startswith("{"):
                cells = [cell.strip().strip("'\"") for cell in known[1:-1].split(",")]
                if not all(_is_number(cell) for cell in cells):
                    values[len(names)] = cells
                    types[str(len(names))] = pa.string()
            if known.lower() in ("numeric", "real", "integer"):
                types[str(len(names))] = pa.float64()
            names.append(match[1].strip("'\""))
        elif text and not text.startswith(("%", "@")):
            raise StreamError(f"{path}: line {number} stands before @data: {text[:60]}")
    raise StreamError(f"{path} has no @data line, so it is not an ARFF file")


def _parquet(path: Path, target: str | int | None, drop: Sequence[str | int], name: str, chunk: int) -> Stream:
    source = str(path)
    with pa_parquet.ParquetFile(path) as table:
        names, n_samples = table.schema_arrow.names, table.metadata.num_rows
    labels = target_column(names, target, source)
    kept = [place for place in range(len(names)) if place not in _dropped(names, drop, source)]
    if labels not in kept or len(kept) < 2:
        raise StreamError(f"{source}: a stream needs its target and at least one feature")

    def blocks() -> Generator[Chunk, None, None]:
        columns = Columns([names[place] for place in kept], kept.index(labels), source)
        try:
            with pa_parquet.ParquetFile(path) as table:
                for batch in table.iter_batches(batch_size=1 << 13):
                    yield from columns.chunks([batch.select(kept)])
        except (OSError, pa.ArrowException) as error:
            raise StreamError(f"{source} cannot be read after row {columns.n_rows}: {error}") from error

    features = tuple(names[place] for place in kept if place != labels)
    return Stream(name, lambda: read_ahead(blocks()), chunk, features, n_samples, None, None, source)
