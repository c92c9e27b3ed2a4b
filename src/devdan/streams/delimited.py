"""Delimited text as streams and tables: its layout is found from its beginning, its rows are parsed by Arrow."""

from __future__ import annotations

import csv
import re
from collections.abc import Collection, Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv

from devdan.encoding.rows import distinct
from devdan.encoding.values import MISSING, is_missing
from devdan.streams.columns import NAMELESS, BatchConverter, is_plain_number, kept_columns, target_column
from devdan.streams.stream import Chunk, Stream, StreamError, Table, TableBlock, read_ahead, reason
from devdan.streams.textfile import (
    BLOCK,
    LONGEST_LINE,
    EndlessRowError,
    TextBlock,
    TextFile,
    has_open_quote,
    n_lines,
)

NO_LABEL = ("", "?", "NA", "NaN", "nan")  # texts that mean a missing label
# For Arrow, which reads a column of numbers faster if it knows them; other spellings are found later.
_NULLS = [
    blank + spelled for text in MISSING for spelled in sorted({text, text.upper(), text.title()}) for blank in ("", " ")
]
_FIRST_LINES = 50  # from which the layout is found


class _WordError(StreamError):
    """A word in a column of numbers."""

    def __init__(self, message: str, column: str) -> None:
        super().__init__(message)
        self.column = column


@dataclass(frozen=True)
class Layout:
    """The layout of a text: the lines before the first row, the delimiter, and the column names."""

    file: TextFile
    names: list[str]
    delimiter: str = ","
    decimal: str = "."
    skipped: int = 0  # lines before the first row
    named: bool = True
    block: int = BLOCK
    values: dict[int, list[str]] = field(default_factory=dict)  # declared values, by column
    closed: bool = False  # and no others
    types: dict[str, pa.DataType] = field(default_factory=dict)  # declared types, by column
    target: int | None = None  # the default target
    counts_lines: bool = True  # whether line numbers mean anything to the user

    @property
    def path(self) -> Path:
        return self.file.path

    def as_texts(self, columns: Iterable[int]) -> dict[str, pa.DataType]:
        """The types of columns that are read as text, unless other types are declared."""
        return {str(place): pa.string() for place in columns if str(place) not in self.types}

    def first_rows(self) -> tuple[pa.Table, int | None]:
        """The first block, with the types that Arrow infers, and an estimate of the number of rows in the file."""
        with self.file.beginning() as text:
            try:
                text.begin(self.skipped, self.block)
                rows = text.rows(self.delimiter, self.block)
            except EndlessRowError as error:
                raise self._endless(error, 0, self.skipped) from None
            if not rows:
                raise StreamError(f"{self.path} has no rows")
            parsed = self.parsed(TextBlock(rows, 0, self.skipped), self.types)
            text.put_back(rows)
            share = self.file.estimated_share()
        return parsed, None if share is None else max(round(parsed.num_rows / share), 1)

    def tables(
        self, types: dict[str, pa.DataType], only: Sequence[str] = (), as_text: Sequence[str] = ()
    ) -> Generator[pa.Table, None, None]:
        """The rows, one block at a time. After them come the columns ``as_text``, exactly as written.

        Arrow can stream text by itself, but drops what it has read ahead when it meets an error, so the number of rows
        learned from a damaged file would be random.
        """
        n_rows, n_before, types = 0, self.skipped, dict(types)
        with self.file.reading() as text:
            try:
                text.begin(self.skipped, self.block)
                while rows := text.rows(self.delimiter, self.block):
                    block = TextBlock(rows, n_rows, n_before)
                    table = self._table(block, types, only)
                    if as_text:
                        written = self.parsed(block, dict.fromkeys(as_text, pa.string()), as_text)
                        for column in written.columns:
                            table = table.append_column("text", column)
                    yield table
                    n_rows, n_before = n_rows + table.num_rows, n_before + n_lines(rows)
            except EndlessRowError as error:
                raise self._endless(error, n_rows, n_before) from None
            except (OSError, UnicodeDecodeError) as error:
                raise self.file.unreadable(error, n_rows) from error

    def _table(self, block: TextBlock, types: dict[str, pa.DataType], only: Sequence[str]) -> pa.Table:
        """Parse a block; a column of numbers that contains a word is read as text from here on."""
        while True:
            try:
                return self.parsed(block, types, only)
            except _WordError as error:
                if error.column in self.types:  # declared to hold numbers
                    raise
                types[error.column] = pa.string()

    def parsed(self, block: TextBlock, types: dict[str, pa.DataType], only: Sequence[str] = ()) -> pa.Table:
        """Parse a block; with one thread, since only then do errors name the row."""
        try:
            # Not read_csv, which on Python 3.10 traverses all objects each time.
            with pa_csv.open_csv(
                pa.BufferReader(_arrow_buffer(block.text)),
                read_options=pa_csv.ReadOptions(
                    use_threads=False,
                    block_size=len(block.text) + 1,
                    column_names=[str(column) for column in range(len(self.names))],
                ),
                parse_options=pa_csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=b'"' in block.text),
                convert_options=pa_csv.ConvertOptions(
                    # Texts are left unchanged, since a text that means a missing label may be a value elsewhere.
                    null_values=_NULLS,
                    strings_can_be_null=False,
                    column_types=types,
                    decimal_point=self.decimal,
                    include_columns=list(only),
                ),
            ) as reader:
                return reader.read_all()
        except pa.ArrowException as error:
            raise self._explained(error, block) from error

    # --- Errors --------------------------------------------------------------------------------------------------

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
        return self.file.unreadable(error, block.n_rows)

    def _row_of(self, block: TextBlock, number: str) -> str:
        return self.row(*block.place(int(number), self.delimiter))

    def row(self, row: int, line: int) -> str:
        """A row of the file, for messages."""
        return f"row {row} (line {line})" if self.counts_lines else f"row {row}"

    def _endless(self, error: EndlessRowError, n_rows: int, n_before: int) -> StreamError:
        """What is wrong with a row that does not end, after these numbers of rows and lines."""
        row, begin = self.row(n_rows + 1, n_before + 1), f"it begins with {error.text[:30]!r}"
        if has_open_quote(error.text, self.delimiter):
            return StreamError(f"{self.path}: {row} opens a quote that is never closed; {begin}")
        return StreamError(f"{self.path}: {row} is longer than {self.block:,} bytes; {begin}")


def _arrow_buffer(text: bytes) -> pa.Buffer:
    """The text in memory of Arrow's, which one of its threads may release while Python ends."""
    buffer = pa.allocate_buffer(len(text))
    memoryview(buffer).cast("B")[:] = text
    return buffer


# --- Streams and tables ------------------------------------------------------------------------------------------


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
    types, n_estimated = _column_types(layout, labels)
    names = distinct([layout.names[place] for place in kept])
    features = {place: name for place, name in zip(kept, names, strict=True) if place != labels}
    types |= layout.as_texts(place for place, name in features.items() if name in as_text)
    numeric_labels = None
    if labels in layout.values or pa.types.is_floating(layout.types.get(str(labels), pa.string())):
        numeric_labels = labels not in layout.values
    if not pa.types.is_boolean(types[str(labels)]):
        types[str(labels)] = pa.string()
    values = {kept.index(place): known for place, known in layout.values.items() if place in kept}
    place = kept.index(labels)

    def blocks() -> Generator[Chunk, None, None]:
        converter = BatchConverter(names, place, source, values, layout.closed, NO_LABEL, numeric_labels)
        with closing(layout.tables(types)) as tables:
            for table in tables:
                yield from converter.chunks(batch.select(kept) for batch in table.to_batches())
        if converter.n_rows == 0:
            raise StreamError(f"{source} has no rows")

    names_of_features, classes = tuple(features.values()), tuple(values[place]) if place in values else None
    known, target_name = (None, n_estimated, classes, source), layout.names[labels]
    return Stream(name, lambda: read_ahead(blocks()), chunk, names_of_features, *known, target=target_name)


def table(layout: Layout) -> Table:
    """Open a text as a table without labels."""
    source, names = str(layout.path), distinct(layout.names)
    types, n_estimated = _column_types(layout, None)

    def read(
        columns: Sequence[int], keep: Sequence[int], as_text: Collection[int]
    ) -> Generator[TableBlock, None, None]:
        values = {place: layout.values[column] for place, column in enumerate(columns) if column in layout.values}
        converter = BatchConverter([names[column] for column in columns], None, source, values, layout.closed)
        chosen = types | layout.as_texts(as_text)
        with closing(layout.tables(chosen, list(map(str, columns)), list(map(str, keep)))) as tables:
            for part in tables:
                if part.num_rows > 0:
                    yield converter.rows(part), part.columns[len(columns) :]
        if converter.n_rows == 0:
            raise StreamError(f"{source} has no rows")

    return Table(
        source, tuple(names), lambda *which: read_ahead(read(*which)), layout.named, estimated_rows=n_estimated
    )


def _column_types(layout: Layout, labels: int | None) -> tuple[dict[str, pa.DataType], int | None]:
    """The types of the columns, judged by the first block, and an estimate of the number of rows.

    Columns of numbers are floats, as are columns that are empty so far; all else is text, for the model to encode.
    Labels may be flags, too.
    """
    first, n_estimated = layout.first_rows()
    types = {}
    for name, kind in zip(first.schema.names, first.schema.types, strict=True):
        is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_null(kind)
        types[name] = layout.types.get(name, pa.float64() if is_number else pa.string())
        if name == str(labels):
            types[name] = pa.bool_() if pa.types.is_boolean(kind) else types[name]
        elif not layout.named and pa.types.is_string(kind):
            _check_first_value(layout, first.column(name), int(name))
    return types, n_estimated


def _check_first_value(layout: Layout, values: pa.ChunkedArray, column: int) -> None:
    """Raise an error if a column of numbers begins with a word: the first row must hold the column names."""
    word = values[0].as_py()
    if not _is_number(word) and not is_missing(word) and _fraction_of_numbers(values) > 0.5:
        raise StreamError(
            f"{layout.path}: row 1 (line {layout.skipped + 1}) has '{word}' in column {layout.names[column]!r}, which "
            f"holds numbers; {NAMELESS}"
        )


def _fraction_of_numbers(values: pa.StringArray | pa.ChunkedArray) -> float:
    """The fraction of numbers among the values that are not missing."""
    counts = [(count["values"], count["counts"]) for count in values.value_counts().to_pylist()]
    there = [(value, n) for value, n in counts if value is not None and not is_missing(value)]
    return float(sum(n for value, n in there if _is_number(value)) / max(sum(n for _, n in there), 1))


# --- The layout of CSV -------------------------------------------------------------------------------------------


def csv_layout(path: Path, compression: str | None, delimiter: str | None, header: bool | None) -> Layout:
    """Detect the layout of a CSV file from its first lines."""
    file = TextFile(path, compression)
    with file.beginning() as text:
        head = text.first_lines(_FIRST_LINES, path)
        n_blank = next((place for place, line in enumerate(head) if line.strip()), None)
        if n_blank is None:
            raise StreamError(f"{path} is empty")
        delimiter = delimiter_of("".join(head[n_blank:])) if delimiter is None else delimiter
        reader = csv.reader(head[n_blank:], delimiter=delimiter)
        cells = [cell.strip() for cell in next(reader)]
        first = "".join(head[n_blank : n_blank + reader.line_num])
        if "\ufffd" in first:
            raise StreamError(f"{path} is not UTF-8 text; convert it first")
        if has_open_quote(first.encode(), delimiter):
            begin = f"it begins with {first[:30]!r}"
            raise StreamError(f"{path}: its first row opens a quote that is never closed; {begin}")
    header = has_names(cells) if header is None else header
    skipped = n_blank + (reader.line_num if header else 0)
    rest = [cell.strip() for line in head[skipped:] for cell in line.split(delimiter)]
    n_commas = sum(re.fullmatch(r"[-+]?\d*,\d+", cell) is not None for cell in rest)
    n_points = sum(re.fullmatch(r"[-+]?\d*\.\d+", cell) is not None for cell in rest)
    return Layout(
        file,
        column_names(cells, header),
        delimiter,
        "," if n_commas > n_points else ".",
        skipped,
        header,
        max(BLOCK, min(16 * max(map(len, head)), 4 * LONGEST_LINE)),
    )


def has_names(cells: Sequence[str]) -> bool:
    """Whether the first row of a text looks like the names of its columns."""
    return not any(_is_number(cell) for cell in cells)


def column_names(cells: Sequence[str], header: bool) -> list[str]:
    """The names in the first row or, without a header, ``column 0``, ``column 1``, …."""
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
