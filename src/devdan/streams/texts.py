"""Texts as streams: rows of cells between delimiters, read a block at a time by Arrow."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.csv as pa_csv

from devdan.streams.base import Chunk, Stream, StreamError, read_ahead
from devdan.streams.tables import Columns, distinct, kept_columns, target_column

COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
_BLOCK = 1 << 20  # bytes of text that are parsed at a time
_NOTHING = ("", "?", "NA", "NaN", "nan")  # what stands for a missing value, and for a missing label
_MISSING = (*_NOTHING, "N/A", "NULL", "null", "None")  # in a feature


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

    def open(self) -> tuple[pa.NativeFile, pa.NativeFile]:
        """The text, and the file it is in."""
        if self.opened is not None:
            inner = pa.PythonFile(self.opened(), mode="r")
            return inner, inner
        raw = pa.OSFile(str(self.path))
        return (pa.CompressedInputStream(raw, self.compression) if self.compression else raw), raw

    def reader(
        self, text: pa.NativeFile, types: dict[str, pa.DataType], only: Sequence[str] = ()
    ) -> pa_csv.CSVStreamingReader:
        """A reader of the rows; with one thread, as only then errors tell the row, and unpacking is slower anyway."""
        return pa_csv.open_csv(
            text,
            read_options=pa_csv.ReadOptions(
                use_threads=False,
                block_size=self.block,
                skip_rows=self.skipped,
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
        )

    def explained(self, error: Exception, n_rows: int) -> StreamError:
        """Arrow's error in a line that says which row is wrong, and how."""
        text = str(error).splitlines()[0]
        after = f" after row {n_rows}" if n_rows else ""
        if row := re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", text):
            return StreamError(
                f"{self.path}: {self._row(row[1])} has {row[3]} columns instead of {row[2]}: "
                f"{text[row.end() + 2 :][:60]}"
            )
        if row := re.search(r"column #(\d+): Row #(\d+): .* to (\w+): (.*)", text):
            wrong = row[4].removeprefix("invalid value ")
            holds = {"double": "numbers", "string": "text in UTF-8"}.get(row[3], row[3])
            return StreamError(
                f"{self.path}: {self._row(row[2])} has {wrong} in the column {self.names[int(row[1])]!r}, which holds "
                f"{holds}"
            )
        if "incorrect header" in text:
            return StreamError(f"{self.path} is not packed with {self.compression}, as its name says")
        if "compressed stream" in text or "inflate" in text:
            return StreamError(f"{self.path} is damaged or not complete{after}: {text.lower()}")
        if "Empty CSV file" in text:
            return StreamError(f"{self.path} has no rows")
        return StreamError(f"{self.path} cannot be read{after}: {text}")

    def _row(self, number: str) -> str:
        """Arrow counts from the first line that is not blank; within another text, the line would tell nothing."""
        row = f"row {int(number) - self.skipped}"
        return row if self.opened is not None else f"{row} (line {number})"


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
        try:
            text, raw = layout.open()
            with raw, text:
                for batch in layout.reader(text, types):
                    yield from columns.chunks([batch.select(kept) if len(kept) < len(layout.names) else batch])
            if columns.n_rows == 0:
                raise StreamError(f"{source} has no rows")
        except (OSError, pa.ArrowException) as error:
            raise layout.explained(error, columns.n_rows) from error

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
            n_lines = block.count(b"\n") - (layout.skipped if len(block) < layout.block else 0)
            n_estimated = None if inside else max(round(n_lines * raw.size() / max(raw.tell(), 1)), 1)
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
        elif pa.types.is_string(kind) and name not in layout.types and int(name) != labels and first is not None:
            types[name] = pa.float64() if _share_of_numbers(first.column(name)) > 0.5 else kind
    if pa.types.is_null(schema.types[labels]):
        types[str(labels)] = _type_of_labels(layout, labels)
    return types, n_estimated


def _type_of_labels(layout: Layout, labels: int) -> pa.DataType:
    """Of a target that is missing in the whole first block: as the first block that has any shows it."""
    name = str(labels)
    try:
        text, raw = layout.open()
        with raw, text:
            for batch in layout.reader(text, {name: pa.string()}, [name]):
                share = _share_of_numbers(batch.column(name))
                if share > 0 or any(label.strip() not in _NOTHING for label in batch.column(name).to_pylist()):
                    return pa.float64() if share == 1 else pa.string()
    except (OSError, pa.ArrowException) as error:
        raise layout.explained(error, 0) from error
    return pa.float64()


def _share_of_numbers(values: pa.StringArray) -> float:
    """Among what is there."""
    counts = [(count["values"], count["counts"]) for count in values.value_counts().to_pylist()]
    there = [(value, n) for value, n in counts if value is not None and value.strip() not in _MISSING]
    return float(sum(n for value, n in there if _is_number(value)) / max(sum(n for _, n in there), 1))


def lines(path: Path, compression: str | None, errors: str = "strict") -> Iterator[str]:
    """The text's lines, as they are."""
    raw = pa.OSFile(str(path))
    text = pa.CompressedInputStream(raw, compression) if compression else raw
    with raw, io.BufferedReader(text) as parts:
        for number, line in enumerate(parts):
            yield line.decode("utf-8" if number else "utf-8-sig", errors)


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
