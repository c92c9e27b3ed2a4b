"""Delimited text as streams, read by Arrow one block at a time."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import count, islice
from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.csv as pa_csv

from devdan.encoding.rows import distinct
from devdan.encoding.values import MISSING as _MISSING
from devdan.streams import rowends
from devdan.streams.columns import NAMELESS, Columns, is_plain_number, kept_columns, target_column
from devdan.streams.stream import Chunk, Stream, StreamError, read_ahead, reason
from devdan.streams.table import Block, Table

COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
_BLOCK = 1 << 20  # bytes of text parsed at a time
LONGEST_LINE = 1 << 24  # characters of the longest line that is read where lines are
_MARK = b"\xef\xbb\xbf"  # with which some programs begin a text in UTF-8
NO_LABEL = ("", "?", "NA", "NaN", "nan")  # texts that mean a missing label


@dataclass(frozen=True)
class TextBlock:
    """Whole rows of a text, and how many rows and lines there were before them."""

    text: bytes
    n_rows: int = 0
    n_lines: int = 0

    def place(self, number: int, delimiter: str = ",") -> tuple[int, int]:
        r"""Row and line within the whole text; Arrow's number does not count lines left blank.

        >>> TextBlock(b'1,"a\nb"\n\n2\n', n_rows=100, n_lines=200).place(2)
        (102, 204)
        """
        line = next(islice(rowends.lines_of_rows(self.text, delimiter), number - 1, None))
        return self.n_rows + number, self.n_lines + line


class _EndlessRowError(Exception):
    """A row that does not end, or not within a block."""

    def __init__(self, text: bytes) -> None:
        self.text = text


class _WordError(StreamError):
    """A text in a column of numbers."""

    def __init__(self, message: str, column: str) -> None:
        super().__init__(message)
        self.column = column


@dataclass(frozen=True)
class Layout:
    """The layout of a text: the lines before the first row, the delimiter, and the column names."""

    path: Path
    names: list[str]
    compression: str | None = None
    delimiter: str = ","
    decimal: str = "."
    skipped: int = 0  # lines before the first row
    named: bool = True
    block: int = _BLOCK
    values: dict[int, list[str]] = field(default_factory=dict)  # declared values, by column
    closed: bool = False  # and no others
    types: dict[str, pa.DataType] = field(default_factory=dict)  # declared types, by column
    opened: Callable[[], IO[bytes]] | None = None  # if the text is not a separate file
    target: int | None = None  # the default target

    def texts(self, columns: Iterable[int]) -> dict[str, pa.DataType]:
        """The types of columns that are read as text, unless they are declared otherwise."""
        return {str(place): pa.string() for place in columns if str(place) not in self.types}

    def open(self) -> tuple[IO[bytes], IO[bytes]]:
        """Open the text and the file that contains it."""
        if self.opened is not None:
            inner = self.opened()
            return inner, inner
        raw = pa.OSFile(str(self.path))
        return (pa.CompressedInputStream(raw, self.compression) if self.compression else raw), raw

    def batches(self, types: dict[str, pa.DataType], only: Sequence[str] = ()) -> Generator[pa.RecordBatch, None, None]:
        """The rows, one block at a time."""
        with closing(self.tables(types, only)) as tables:
            for table in tables:
                yield from table.to_batches()

    def tables(
        self, types: dict[str, pa.DataType], only: Sequence[str] = (), as_text: Sequence[str] = ()
    ) -> Generator[pa.Table, None, None]:
        """The rows, one block at a time; each block is read while the previous one is parsed.

        After them come the columns ``as_text``, just as they are written. Arrow can stream text by itself, but drops
        what it has read ahead when it meets an error, so the number of rows learned from a damaged file would be
        random.
        """
        n_rows, n_lines, types = 0, self.skipped, dict(types)
        try:
            with closing(read_ahead(self._texts())) as texts:
                for text in texts:
                    block = TextBlock(text, n_rows, n_lines)
                    rows = self._read(block, types, only)
                    if as_text:
                        texts_alone = self.parsed(block, dict.fromkeys(as_text, pa.string()), as_text)
                        for column in texts_alone.columns:
                            rows = rows.append_column("text", column)
                    yield rows
                    n_rows, n_lines = n_rows + rows.num_rows, n_lines + rowends.n_lines(text)
        except _EndlessRowError as error:
            raise self.endless(error, n_rows, n_lines) from None
        except (OSError, UnicodeDecodeError) as error:
            raise self.unreadable(error, n_rows) from error

    def _texts(self) -> Generator[bytes, None, None]:
        text, raw = self.open()
        with raw, text:
            yield from self.whole_rows(text)

    def whole_rows(self, text: IO[bytes]) -> Iterator[bytes]:
        """An open text in pieces that end where a row does, from the first row on."""
        rest, begun = b"", False
        while piece := text.read(self.block):
            n_before, rest = len(rest), rest + piece
            if not begun:
                rest = rest.removeprefix(_MARK)
                start = rowends.end_of_lines(rest, self.skipped)
                begun, n_before, rest = start >= 0, 0, rest[max(start, 0) :]
            end = rowends.end_of_rows(rest, self.delimiter, n_before) if begun else 0
            if end > 0:
                yield rest[:end]
                rest = rest[end:]
            elif len(rest) >= 2 * self.block:
                raise _EndlessRowError(rest)
        if rest and begun:
            if rowends.has_open_quote(rest, self.delimiter):
                raise _EndlessRowError(rest)
            yield rest

    def _read(self, block: TextBlock, types: dict[str, pa.DataType], only: Sequence[str]) -> pa.Table:
        """Parse the rows of a block; a column of numbers in which there is a word is read as text from here on."""
        while True:
            try:
                return self.parsed(block, types, only)
            except _WordError as error:
                if error.column in self.types:  # declared to hold numbers
                    raise
                types[error.column] = pa.string()

    def parsed(self, block: TextBlock, types: dict[str, pa.DataType], only: Sequence[str] = ()) -> pa.Table:
        """Parse the rows of a block; with one thread, since only then do errors name the row."""
        try:
            # Not read_csv, which on Python 3.10 traverses all objects each time.
            with pa_csv.open_csv(
                pa.BufferReader(_arrows_own(block.text)),
                read_options=pa_csv.ReadOptions(
                    use_threads=False,
                    block_size=len(block.text) + 1,
                    column_names=[str(column) for column in range(len(self.names))],
                ),
                parse_options=pa_csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=b'"' in block.text),
                convert_options=pa_csv.ConvertOptions(
                    # Texts are left unchanged, since a text that means a missing label may be a value elsewhere.
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

    def _explained(self, error: pa.ArrowException, block: TextBlock) -> StreamError:
        """A one-line message about an invalid row."""
        text = reason(error)
        if row := re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", text):
            return StreamError(
                f"{self.path}: {self._row_of(block, row[1])} has {row[3]} columns instead of {row[2]}: "
                f"{text[row.end() + 2 :][:60]}"
            )
        if row := re.search(r"column #(\d+): Row #(\d+): .* to (\w+): (.*)", text):
            wrong = row[4].removeprefix("invalid value ")
            holds = {"double": "numbers", "string": "text in UTF-8"}.get(row[3], row[3])
            place = f"{self._row_of(block, row[2])} has {wrong} in column {self.names[int(row[1])]!r}"
            if row[3] == "double":
                return _WordError(f"{self.path}: {place}, which holds {holds}", row[1])
            return StreamError(f"{self.path}: {place}, which holds {holds}")
        if "Empty CSV file" in text:
            return StreamError(f"{self.path} has no rows")
        return StreamError(f"{self.path} cannot be read{_after(block.n_rows)}: {text}")

    def _row_of(self, block: TextBlock, number: str) -> str:
        """The row that Arrow means."""
        return self._row(*block.place(int(number), self.delimiter))

    def _row(self, row: int, line: int) -> str:
        """The line would tell nothing where the text lies within another."""
        return f"row {row}" if self.opened is not None else f"row {row} (line {line})"

    def endless(self, error: _EndlessRowError, n_rows: int, n_lines: int) -> StreamError:
        """What is wrong with a row that does not end, after so many rows and lines."""
        row, begin = self._row(n_rows + 1, n_lines + 1), f"it begins with {error.text[:30]!r}"
        if rowends.has_open_quote(error.text, self.delimiter):
            return StreamError(f"{self.path}: {row} opens a quote that is never closed; {begin}")
        return StreamError(f"{self.path}: {row} is longer than {self.block:,} bytes; {begin}")

    def unreadable(self, error: Exception, n_rows: int) -> StreamError:
        """The error for a text that cannot be read after this many rows."""
        text = reason(error)
        if "incorrect header" in text:
            return StreamError(f"{self.path} is not compressed with {self.compression}, although its name says so")
        if "compressed stream" in text or "inflate" in text:
            return StreamError(f"{self.path} is damaged or incomplete{_after(n_rows)}: {text.lower()}")
        return StreamError(f"{self.path} cannot be read{_after(n_rows)}: {text}")


def _arrows_own(text: bytes) -> pa.Buffer:
    """The text in memory of Arrow's, as a thread of Arrow's lets go of it, perhaps while Python ends."""
    buffer = pa.allocate_buffer(len(text))
    memoryview(buffer).cast("B")[:] = text
    return buffer


def _after(n_rows: int) -> str:
    return f" after row {n_rows}" if n_rows else ""


def stream(
    layout: Layout,
    target: str | int | None,
    drop: Sequence[str | int],
    name: str,
    chunk: int,
    as_text: Collection[str] = (),
) -> Stream:
    """Open a text as a stream; the columns ``as_text`` stay as they are written."""
    source = str(layout.path)
    labels = target_column(layout.names, target, source, layout.named, layout.target)
    kept = kept_columns(layout.names, labels, drop, source, layout.named)
    if all(map(is_plain_number, layout.values.get(labels, []))):  # classes that are numbers need no declaration
        layout = replace(layout, values={place: known for place, known in layout.values.items() if place != labels})
    types, numeric_labels, n_estimated = _probe(layout, labels)
    names = distinct([layout.names[place] for place in kept])
    types |= layout.texts(place for place, own in zip(kept, names, strict=True) if own in as_text and place != labels)
    values = {kept.index(place): known for place, known in layout.values.items() if place in kept}
    place = kept.index(labels)

    def blocks() -> Generator[Chunk, None, None]:
        columns = Columns(names, place, source, values, layout.closed, NO_LABEL, numeric_labels)
        with closing(layout.batches(types)) as batches:
            yield from columns.chunks(batch.select(kept) for batch in batches)
        if columns.n_rows == 0:
            raise StreamError(f"{source} has no rows")

    features = tuple(name for column, name in enumerate(names) if column != place)
    classes = tuple(values[place]) if place in values else None
    return Stream(name, lambda: read_ahead(blocks()), chunk, features, None, n_estimated, classes, source)


def table(layout: Layout) -> Table:
    """Open a text as a table without labels."""
    source, names = str(layout.path), distinct(layout.names)
    types, _, n_estimated = _probe(layout, None)

    def read(columns: Sequence[int], keep: Sequence[int], as_text: Collection[int]) -> Generator[Block, None, None]:
        values = {place: layout.values[column] for place, column in enumerate(columns) if column in layout.values}
        found = Columns([names[column] for column in columns], None, source, values, layout.closed)
        chosen = types | layout.texts(as_text)
        with closing(
            layout.tables(chosen, [str(column) for column in columns], [str(place) for place in keep])
        ) as all_:
            for part in all_:
                if part.num_rows > 0:
                    yield found.rows(part), part.columns[len(columns) :]
        if found.n_rows == 0:
            raise StreamError(f"{source} has no rows")

    return Table(
        source, tuple(names), lambda *which: read_ahead(read(*which)), layout.named, estimated_rows=n_estimated
    )


def _probe(layout: Layout, labels: int | None) -> tuple[dict[str, pa.DataType], bool, int | None]:
    """The column types, judged by the first block, whether labels are numbers, and an estimate of the number of rows.

    Without ``labels``, there is no such column.

    Numbers are floats, and so are columns that are empty so far; all else is text, which the model reads.
    """
    try:
        text, raw = layout.open()
        with raw, text:
            block = next(layout.whole_rows(text), b"")
            # Of a text within inside another file, which must be unpacked to know its size, there is no telling.
            parts = None if layout.opened is not None else layout.path.stat().st_size / max(raw.tell(), 1)
    except _EndlessRowError as error:
        raise layout.endless(error, 0, layout.skipped) from None
    except OSError as error:
        raise layout.unreadable(error, 0) from error
    if not block:
        raise StreamError(f"{layout.path} has no rows")
    first = layout.parsed(TextBlock(block, 0, layout.skipped), layout.types)
    n_estimated = None if parts is None else max(round(first.num_rows * parts), 1)
    schema = first.schema
    types = {}
    for name, kind in zip(schema.names, schema.types, strict=True):
        is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_null(kind)
        types[name] = layout.types.get(name, pa.float64() if is_number else pa.string())
        if not layout.named and pa.types.is_string(kind) and int(name) != labels:
            _check_first(layout, first.column(name), int(name))
    if labels is None:
        return types, False, n_estimated
    kind = schema.types[labels]
    if pa.types.is_boolean(kind):
        types[str(labels)] = kind
        return types, False, n_estimated
    types[str(labels)] = pa.string()
    return types, _has_numeric_labels(layout, labels), n_estimated


def _check_first(layout: Layout, values: pa.ChunkedArray, column: int) -> None:
    """Raise an error if a column of numbers begins with a word: then the first row has the names of the columns."""
    word = values[0].as_py()
    if not _is_number(word) and word.strip() not in _MISSING and _share_of_numbers(values) > 0.5:
        raise StreamError(
            f"{layout.path}: row 1 (line {layout.skipped + 1}) has '{word}' in column {layout.names[column]!r}, which "
            f"holds numbers; {NAMELESS}"
        )


def _has_numeric_labels(layout: Layout, labels: int) -> bool:
    """Whether the target holds numbers: judged by the first block that has labels."""
    name = str(labels)
    if labels in layout.values or pa.types.is_floating(layout.types.get(name, pa.string())):
        return labels not in layout.values
    with closing(layout.batches({name: pa.string()}, [name])) as batches:
        for batch in batches:
            texts = [text.strip() for text in batch.column(name).unique().to_pylist() if text is not None]
            if there := [text for text in texts if text not in NO_LABEL]:
                return all(map(is_plain_number, there))
    return True


def _share_of_numbers(values: pa.StringArray | pa.ChunkedArray) -> float:
    """The share of numbers among the values present."""
    counts = [(count["values"], count["counts"]) for count in values.value_counts().to_pylist()]
    there = [(value, n) for value, n in counts if value is not None and value.strip() not in _MISSING]
    return float(sum(n for value, n in there if _is_number(value)) / max(sum(n for _, n in there), 1))


def lines(path: Path, compression: str | None, errors: str = "strict") -> Iterator[str]:
    """The text's lines, whichever way they end; one that would fill the memory is an error."""
    raw = pa.OSFile(str(path))
    text = pa.CompressedInputStream(raw, compression) if compression else raw
    with raw, io.TextIOWrapper(io.BufferedReader(text), "utf-8-sig", errors) as parts:
        for number in count(1):
            line = parts.readline(LONGEST_LINE)
            if not line:
                return
            if len(line) == LONGEST_LINE:
                raise StreamError(f"{path}: line {number} is longer than {LONGEST_LINE:,} characters")
            yield line


def csv_layout(path: Path, compression: str | None, delimiter: str | None, header: bool | None) -> Layout:
    """Detect the layout of a CSV file from its first lines."""
    head = list(islice(lines(path, compression, "replace"), 50))
    n_blank = next((place for place, line in enumerate(head) if line.strip()), None)
    if n_blank is None:
        raise StreamError(f"{path} is empty")
    delimiter = delimiter_of("".join(head[n_blank:])) if delimiter is None else delimiter
    reader = csv.reader(head[n_blank:], delimiter=delimiter)
    cells = [cell.strip() for cell in next(reader)]
    first = "".join(head[n_blank : n_blank + reader.line_num])
    if "\ufffd" in first:
        raise StreamError(f"{path} is not UTF-8 text; convert it first")
    if rowends.has_open_quote(first.encode(), delimiter):
        raise StreamError(f"{path}: its first row opens a quote that is never closed; it begins with {first[:30]!r}")
    header = has_names(cells) if header is None else header
    names = column_names(cells, header)
    skipped = n_blank + (reader.line_num if header else 0)
    rest = [cell.strip() for line in head[skipped:] for cell in line.split(delimiter)]
    comma = sum(re.fullmatch(r"[-+]?\d*,\d+", cell) is not None for cell in rest)
    point = sum(re.fullmatch(r"[-+]?\d*\.\d+", cell) is not None for cell in rest)
    return Layout(
        path,
        names,
        compression,
        delimiter,
        "," if comma > point else ".",
        skipped,
        header,
        max(_BLOCK, min(16 * max(map(len, head)), 4 * LONGEST_LINE)),
    )


def has_names(cells: Sequence[str]) -> bool:
    """Whether the first row of a text looks like the names of its columns."""
    return not any(_is_number(cell) for cell in cells)


def column_names(cells: Sequence[str], header: bool) -> list[str]:
    """The names in the first row or, if it has none, others."""
    return [cell.lstrip("# ") for cell in cells] if header else [f"column {place}" for place in range(len(cells))]


def delimiter_of(text: str) -> str:
    r"""What separates the cells of a text, judged by its first line.

    >>> delimiter_of("a;b;c\n1,5;2,5;3\n")
    ';'
    """
    bare = re.sub('"[^"]*"', "", text).partition("\n")[0]
    return max(",;\t", key=bare.count)  # the first delimiter if none is found


def _is_number(cell: str) -> bool:
    try:
        float(cell.replace(",", "."))
    except ValueError:
        return False
    return True
