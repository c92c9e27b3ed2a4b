"""Texts as streams: rows of cells between delimiters, read a block at a time by Arrow."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.csv as pa_csv

from devdan.streams.columns import Columns, distinct, kept_columns, target_column
from devdan.streams.stream import Chunk, Stream, StreamError, read_ahead, reason

COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
_BLOCK = 1 << 20  # bytes of text that are parsed at a time
_NOTHING = ("", "?", "NA", "NaN", "nan")  # what stands for a missing value, and for a missing label
_MISSING = (*_NOTHING, "N/A", "NULL", "null", "None")  # in a feature


@dataclass(frozen=True)
class Block:
    """Whole rows of a text, with the lines to skip before them, and how many rows and lines there were before it."""

    text: bytes
    skipped: int = 0
    n_rows: int = 0
    n_lines: int = 0

    def place(self, number: int) -> tuple[int, int]:
        r"""Row and line within the whole text; Arrow's number counts the lines it skips, but not those left blank.

        >>> Block(b"x,label\n1,a\n\n2\n", skipped=1, n_rows=100, n_lines=200).place(3)
        (102, 204)
        """
        row = number - self.skipped
        lines = [place for place, line in enumerate(self.text.splitlines(), start=1) if line and place > self.skipped]
        return self.n_rows + row, self.n_lines + lines[row - 1]


@dataclass(frozen=True)
class Layout:
    """How a text is laid out: what stands before the first row, between its cells, and what its columns are called."""

    path: Path
    names: list[str]
    compression: str | None = None
    delimiter: str = ","
    decimal: str = "."
    skipped: int = 0  # lines before the first row
    named: bool = True
    block: int = _BLOCK
    values: dict[int, list[str]] = field(default_factory=dict)  # of columns that name theirs beforehand
    closed: bool = False  # and no others
    types: dict[str, pa.DataType] = field(default_factory=dict)  # of columns that tell theirs beforehand
    opened: Callable[[], IO[bytes]] | None = None  # where the text is not a file of its own
    target: int | None = None  # if nothing else is said

    def open(self) -> tuple[IO[bytes], IO[bytes]]:
        """The text, and the file it is in."""
        if self.opened is not None:
            inner = self.opened()
            return inner, inner
        raw = pa.OSFile(str(self.path))
        return (pa.CompressedInputStream(raw, self.compression) if self.compression else raw), raw

    def batches(self, types: dict[str, pa.DataType], only: Sequence[str] = ()) -> Generator[pa.RecordBatch, None, None]:
        """The rows, a block at a time, each read while the one before it is parsed.

        Arrow goes through texts by itself as well, but forgets what it has read ahead where it cannot read on: how many
        rows of a damaged file are learned would be a matter of luck.
        """
        n_rows = n_lines = 0
        skipped = self.skipped
        try:
            with closing(read_ahead(self._texts())) as texts:
                for text in texts:
                    rows = self.parsed(Block(text, skipped, n_rows, n_lines), types, only)
                    yield from rows.to_batches()
                    n_rows, n_lines, skipped = n_rows + rows.num_rows, n_lines + _n_lines(text), 0
        except (OSError, UnicodeDecodeError) as error:
            raise self.unreadable(error, n_rows) from error

    def _texts(self) -> Generator[bytes, None, None]:
        """The text in pieces that end where a row does."""
        text, raw = self.open()
        rest = b""
        with raw, text:
            while piece := text.read(self.block):
                end = _end_of_rows(piece)
                if end == 0 and len(rest) >= self.block:
                    raise StreamError(f"{self.path} has a row of more than {self.block:,} bytes: {rest[:30]!r} ...")
                if end > 0:
                    yield b"".join((rest, memoryview(piece)[:end]))
                    rest = b""
                rest += piece[end:]
            if rest:
                yield rest

    def parsed(self, block: Block, types: dict[str, pa.DataType], only: Sequence[str] = ()) -> pa.Table:
        """The rows of a block; with one thread, as only then errors tell the row, and unpacking is slower anyway."""
        try:
            # Not read_csv, which on Python 3.10 goes through all objects there are, each time.
            with pa_csv.open_csv(
                pa.BufferReader(block.text),
                read_options=pa_csv.ReadOptions(
                    use_threads=False,
                    block_size=len(block.text) + 1,
                    skip_rows=block.skipped,
                    column_names=[str(column) for column in range(len(self.names))],
                ),
                parse_options=pa_csv.ParseOptions(delimiter=self.delimiter),
                convert_options=pa_csv.ConvertOptions(
                    # Texts are left as they are, since what stands for a missing label may be a value elsewhere.
                    null_values=[*_MISSING, *(f" {text}" for text in _MISSING)],
                    strings_can_be_null=False,
                    column_types=types,
                    decimal_point=self.decimal,
                    include_columns=list(only),
                ),
            ) as reader:
                return reader.read_all()
        except pa.ArrowException as error:
            raise self._explained(error, block) from error

    def _explained(self, error: pa.ArrowException, block: Block) -> StreamError:
        """What is wrong with a row, in a line that says which it is."""
        text = reason(error)
        if row := re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", text):
            return StreamError(
                f"{self.path}: {self._row(row[1], block)} has {row[3]} columns instead of {row[2]}: "
                f"{text[row.end() + 2 :][:60]}"
            )
        if row := re.search(r"column #(\d+): Row #(\d+): .* to (\w+): (.*)", text):
            wrong = row[4].removeprefix("invalid value ")
            holds = {"double": "numbers", "string": "text in UTF-8"}.get(row[3], row[3])
            return StreamError(
                f"{self.path}: {self._row(row[2], block)} has {wrong} in the column {self.names[int(row[1])]!r}, "
                f"which holds {holds}"
            )
        if "Empty CSV file" in text:
            return StreamError(f"{self.path} has no rows")
        return StreamError(f"{self.path} cannot be read{_after(block.n_rows)}: {text}")

    def _row(self, number: str, block: Block) -> str:
        """The row that Arrow means; the line would tell nothing where the text lies within another."""
        row, line = block.place(int(number))
        return f"row {row}" if self.opened is not None else f"row {row} (line {line})"

    def unreadable(self, error: Exception, n_rows: int) -> StreamError:
        """Why the text cannot be read beyond so many rows."""
        text = reason(error)
        if "incorrect header" in text:
            return StreamError(f"{self.path} is not packed with {self.compression}, as its name says")
        if "compressed stream" in text or "inflate" in text:
            return StreamError(f"{self.path} is damaged or not complete{_after(n_rows)}: {text.lower()}")
        return StreamError(f"{self.path} cannot be read{_after(n_rows)}: {text}")


def _after(n_rows: int) -> str:
    return f" after row {n_rows}" if n_rows else ""


def stream(layout: Layout, target: str | int | None, drop: Sequence[str | int], name: str, chunk: int) -> Stream:
    """A text as a stream."""
    source = str(layout.path)
    labels = target_column(layout.names, target, source, layout.named, layout.target)
    kept = kept_columns(layout.names, labels, drop, source)
    types, n_estimated = _probe(layout, labels)
    names = distinct([layout.names[place] for place in kept])
    values = {kept.index(place): known for place, known in layout.values.items() if place in kept}
    place = kept.index(labels)

    def blocks() -> Generator[Chunk, None, None]:
        columns = Columns(names, place, source, values, layout.closed, _MISSING, _NOTHING)
        with closing(layout.batches(types)) as batches:
            yield from columns.chunks(batch.select(kept) for batch in batches)
        if columns.n_rows == 0:
            raise StreamError(f"{source} has no rows")

    features = tuple(name for column, name in enumerate(names) if column != place)
    classes = tuple(values[place]) if place in values else None
    return Stream(name, lambda: read_ahead(blocks()), chunk, features, None, n_estimated, classes, source)


def _probe(layout: Layout, labels: int) -> tuple[dict[str, pa.DataType], int | None]:
    """The columns' types, as the first block shows them, and how many rows there may be.

    Any number is a float, and so is what is missing so far. A feature that is mostly numbers is meant to be numbers:
    the reader will say where it is not.
    """
    try:
        text, raw = layout.open()
        with raw, text:
            block = text.read(layout.block)
            inside = layout.opened is not None  # another file, which would have to be unpacked to know its size
            n_lines = _n_lines(block) - (layout.skipped if len(block) < layout.block else 0)
            n_estimated = None if inside else max(round(n_lines * layout.path.stat().st_size / max(raw.tell(), 1)), 1)
    except OSError as error:
        raise layout.unreadable(error, 0) from error
    first = layout.parsed(Block(block[: _end_of_rows(block)] or block, layout.skipped), layout.types)
    schema = first.schema
    types = {}
    for name, kind in zip(schema.names, schema.types, strict=True):
        types[name] = kind
        if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_null(kind):
            types[name] = pa.float64()
        elif pa.types.is_binary(kind):  # text that is not in UTF-8: the reader will say where
            types[name] = pa.string()
        elif pa.types.is_string(kind) and name not in layout.types and int(name) != labels:
            types[name] = pa.float64() if _share_of_numbers(first.column(name)) > 0.5 else kind
    if pa.types.is_null(schema.types[labels]):
        types[str(labels)] = _type_of_labels(layout, labels)
    return types, n_estimated


def _type_of_labels(layout: Layout, labels: int) -> pa.DataType:
    """Of a target that is missing in the whole first block: as the first block that has any shows it."""
    name = str(labels)
    with closing(layout.batches({name: pa.string()}, [name])) as batches:
        for batch in batches:
            share = _share_of_numbers(batch.column(name))
            if share > 0 or any(label.strip() not in _NOTHING for label in batch.column(name).to_pylist()):
                return pa.float64() if share == 1 else pa.string()
    return pa.float64()


def _share_of_numbers(values: pa.StringArray | pa.ChunkedArray) -> float:
    """Among what is there."""
    counts = [(count["values"], count["counts"]) for count in values.value_counts().to_pylist()]
    there = [(value, n) for value, n in counts if value is not None and value.strip() not in _MISSING]
    return float(sum(n for value, n in there if _is_number(value)) / max(sum(n for _, n in there), 1))


def _end_of_rows(text: bytes) -> int:
    """Where the last whole row of a piece of text ends."""
    return (text.rfind(b"\n") + 1) or (text.rfind(b"\r") + 1)


def _n_lines(text: bytes) -> int:
    return text.count(b"\n") or text.count(b"\r")


def lines(path: Path, compression: str | None, errors: str = "strict") -> Iterator[str]:
    """The text's lines, whichever way they end."""
    raw = pa.OSFile(str(path))
    text = pa.CompressedInputStream(raw, compression) if compression else raw
    with raw, io.TextIOWrapper(io.BufferedReader(text), "utf-8-sig", errors) as parts:
        yield from parts


def csv_layout(path: Path, compression: str | None, delimiter: str | None, header: bool | None) -> Layout:
    """Finds out how a CSV file is laid out, from its first lines."""
    head = list(islice(lines(path, compression, "replace"), 50))
    n_blank = next((place for place, line in enumerate(head) if line.strip()), None)
    if n_blank is None:
        raise StreamError(f"{path} is empty")
    first = head[n_blank]
    if "\ufffd" in first:
        raise StreamError(f"{path} is not text in UTF-8; convert it first")
    if delimiter is None:
        delimiter = max(",;\t", key=first.count)  # the first of them if there is none
    cells = [cell.strip() for cell in next(csv.reader([first], delimiter=delimiter))]
    if header is None:
        header = not any(_is_number(cell) for cell in cells)
    names = [cell.lstrip("# ") for cell in cells] if header else [f"column {place}" for place in range(len(cells))]
    rest = [cell.strip() for line in head[n_blank + header :] for cell in line.split(delimiter)]
    comma = sum(re.fullmatch(r"[-+]?\d*,\d+", cell) is not None for cell in rest)
    point = sum(re.fullmatch(r"[-+]?\d*\.\d+", cell) is not None for cell in rest)
    return Layout(
        path,
        names,
        compression,
        delimiter,
        "," if comma > point else ".",
        n_blank + header,
        header,
        max(_BLOCK, 16 * max(map(len, head))),
    )


def _is_number(cell: str) -> bool:
    try:
        float(cell.replace(",", "."))
    except ValueError:
        return False
    return True
