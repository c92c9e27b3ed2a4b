"""Delimited text: its layout is found from its beginning, its rows are parsed by Arrow.

Numbers with a decimal point are parsed here, whatever else a column holds stays text, for the encoding to judge.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Collection, Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from devdan.encoding.evidence import JUDGED_AT, NUMBER, kind_of
from devdan.encoding.rows import Texts, texts_of
from devdan.encoding.values import MISSING, is_missing
from devdan.streams.columns import NAMELESS
from devdan.streams.reading import AS_FOUND, Reading
from devdan.streams.stream import StreamError, name_of, reason
from devdan.streams.tablesource import Batch, TableSource
from devdan.streams.textfile import (
    BLOCK,
    LONGEST_LINE,
    PIECE,
    PIECES,
    EndlessRowError,
    TextBlock,
    TextFile,
    has_open_quote,
    n_lines,
)

# For Arrow, which reads a column of numbers faster if it knows them; other spellings are found later.
_NULLS = [
    blank + spelled for text in MISSING for spelled in sorted({text, text.upper(), text.title()}) for blank in ("", " ")
]
_FIRST_LINES = 50  # from which the layout is found
DELIMITERS = ",;\t|"
_CODE = r"^\s*[-+]?0\d"  # begins with a needless zero
_DECIMAL_COMMA = r"^\s*[-+]?\d*,(\d{1,2}|\d{4,})\s*$"
_PLAIN_COMMA = r"^\s*[-+]?((0|[1-9]\d*)(,\d*)?|,\d+)([eE][-+]?\d+)?\s*$"
_THOUSANDS = r"^\s*[-+]?[1-9]\d{0,2}\.\d{3}\s*$"  # or a number with three decimals


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
    decimal: str | None = None  # what the user says
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

    def first_rows(self) -> tuple[pa.Table, TextBlock, int | None]:
        """The first block, with the types that Arrow infers and as it is, and an estimate of the number of rows."""
        with self.file.beginning() as text:
            try:
                text.begin(self.skipped, self.block)
                rows = text.rows(self.delimiter, self.block)
            except EndlessRowError as error:
                raise self._endless(error, 0, self.skipped) from None
            if not rows:
                raise StreamError(f"{self.path} has no rows")
            block = TextBlock(rows, 0, self.skipped)
            parsed = self.parsed(block, self.types)
            text.put_back(rows)
            share = self.file.estimated_share()
        return parsed, block, None if share is None else max(round(parsed.num_rows / share), 1)

    def tables(
        self,
        types: dict[str, pa.DataType],
        only: Sequence[str] = (),
        as_text: Sequence[str] = (),
        with_commas: Collection[str] = (),
    ) -> Generator[pa.Table, None, None]:
        """The rows, one block at a time. After them come the columns ``as_text``, exactly as written.

        The columns ``with_commas`` are texts as long as what they are is judged by them, then numbers, which is faster.

        Arrow can stream text by itself, but drops what it has read ahead when it meets an error, so the number of rows
        learned from a damaged file would be random.
        """
        n_rows, n_before, types, commas = 0, self.skipped, dict(types), set[str]()
        with self.file.reading() as text:
            try:
                text.begin(self.skipped, self.block)
                while rows := text.rows(self.delimiter, self.block):
                    block = TextBlock(rows, n_rows, n_before)
                    table = self.read(block, types, only, commas)
                    written = self.parsed(block, dict.fromkeys(as_text, pa.string()), as_text) if as_text else None
                    start, n_texts = 0, JUDGED_AT[-1] - n_rows
                    if with_commas and n_texts < len(table):
                        yield _beside(table.slice(0, n_texts), written)
                        commas, with_commas = set(with_commas), ()
                        start, table = n_texts, self.read(block, types, only, commas)
                    yield _beside(table.slice(start), None if written is None else written.slice(start))
                    n_rows, n_before = n_rows + len(table), n_before + n_lines(rows)
            except EndlessRowError as error:
                raise self._endless(error, n_rows, n_before) from None
            except (OSError, UnicodeDecodeError) as error:
                raise self.file.unreadable(error, n_rows) from error

    def read(
        self, block: TextBlock, types: dict[str, pa.DataType], only: Sequence[str], commas: set[str] | None = None
    ) -> pa.Table:
        """Parse a block; a column of numbers that contains a word is read as text from here on.

        Then its type changes, and it is no longer one of those with ``commas``.
        """
        while True:
            try:
                return self._parsed_by_signs(block, types, only, commas or ())
            except _WordError as error:
                if error.column in self.types:  # declared to hold numbers
                    raise
                if commas:
                    commas.discard(error.column)
                types[error.column] = pa.string()

    def _parsed_by_signs(
        self, block: TextBlock, types: dict[str, pa.DataType], only: Sequence[str], commas: Collection[str]
    ) -> pa.Table:
        """Parse a block of which some columns have decimal commas, perhaps others points, which Arrow reads apart."""
        if not commas:
            return self.parsed(block, types, only)
        points = [name for name in only if name not in commas and not pa.types.is_string(types[name])]
        types = types | dict.fromkeys(commas, pa.float64())
        found = self.parsed(block, types, [name for name in only if name not in points], ",")
        if not points:
            return found
        both = dict(zip(found.column_names, found.columns, strict=True))
        found = self.parsed(block, types, points)
        both |= zip(found.column_names, found.columns, strict=True)
        return pa.table({name: both[name] for name in only})

    def parsed(
        self, block: TextBlock, types: dict[str, pa.DataType], only: Sequence[str] = (), decimal: str | None = None
    ) -> pa.Table:
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
                    decimal_point=decimal or self.decimal or ".",
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
            remedy = "text in UTF-8; name its encoding with encoding= (--encoding)"
            holds = {"double": "numbers", "string": remedy}.get(row[3], row[3])
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


def _beside(table: pa.Table, written: pa.Table | None) -> pa.Table:
    """A table with further columns; they may have more rows."""
    for column in [] if written is None else written.columns:
        table = table.append_column("text", column.slice(0, len(table)))
    return table


def _arrow_buffer(text: bytes) -> pa.Buffer:
    """The text in memory of Arrow's, which one of its threads may release while Python ends."""
    buffer = pa.allocate_buffer(len(text))
    memoryview(buffer).cast("B")[:] = text
    return buffer


# --- The source --------------------------------------------------------------------------------------------------


def source(layout: Layout) -> TableSource:
    """A text with this layout as a table."""
    types, with_commas, samples, n_estimated = _column_types(layout)

    def batches(
        columns: Sequence[int], written: Sequence[int], as_text: Collection[int]
    ) -> Generator[Batch, None, None]:
        apart = [str(place) for place in written if place in columns]  # parsed once more
        with_them = [str(place) for place in written if place not in columns]
        first = [*map(str, columns), *with_them]
        chosen = types | layout.as_texts(as_text) | dict.fromkeys(with_them, pa.string())
        order = [str(place) for place in (*columns, *written)]
        commas = [name for name in first if name in with_commas and name not in with_them and int(name) not in as_text]
        with closing(layout.tables(chosen, first, apart, commas)) as tables:
            for table in tables:
                parsed = dict(zip(first, table.columns, strict=False))
                texts = dict(zip(apart, table.columns[len(first) :], strict=True))
                yield [
                    texts[name] if place >= len(columns) and name in texts else parsed[name]
                    for place, name in enumerate(order)
                ]

    return TableSource(
        name_of(layout.path), str(layout.path), tuple(layout.names), batches, layout.named, None, n_estimated,
        layout.target, values=layout.values, closed=layout.closed,
        numeric=frozenset(int(place) for place, kind in layout.types.items() if pa.types.is_floating(kind)),
        samples=samples,
    )  # fmt: skip


def _column_types(layout: Layout) -> tuple[dict[str, pa.DataType], list[str], dict[int, Texts], int | None]:
    """The types of the columns, judged by the first block and some further in, and an estimate of the number of rows.

    Between them, the texts that are plain numbers with decimal commas, and samples of texts.

    Columns of numbers are floats, as are columns that are empty so far; all else is text, for the model to encode. So
    are numbers that begin with a zero, as codes do, and numbers such as 1.001 beside columns with decimal commas.
    """
    first, block, n_estimated = layout.first_rows()
    with_commas = [
        name
        for name in first.schema.names
        if layout.decimal is None
        and pa.types.is_string(first.column(name).type)
        and _has(first.column(name), _DECIMAL_COMMA)
    ]
    has_commas = bool(with_commas)
    written = first
    if has_commas or _may_have_codes(block.text, layout.delimiter):
        written = layout.parsed(block, dict.fromkeys(first.schema.names, pa.string()))
    types = {}
    for name, kind in zip(first.schema.names, first.schema.types, strict=True):
        is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_null(kind)
        if is_number and written is not first and not pa.types.is_null(kind):
            texts = written.column(name)
            is_number = not _has(texts, _CODE) and not (has_commas and _has(texts, _THOUSANDS))
        types[name] = layout.types.get(name, pa.float64() if is_number else pa.string())
        if not layout.named and pa.types.is_string(kind):
            _check_first_value(layout, first.column(name), int(name))
    plain = [name for name in with_commas if name not in layout.types and _are_plain(first.column(name))]
    samples = _samples(layout, first, block, types)
    types |= {str(place): pa.string() for place in samples}
    known = {name: pa.chunked_array([some.vocabulary.texts]) for name in plain if (some := samples.get(int(name)))}
    plain = [name for name in plain if name not in known or _are_plain(known[name])]
    return types, plain, samples, n_estimated


def _samples(layout: Layout, first: pa.Table, block: TextBlock, types: dict[str, pa.DataType]) -> dict[int, Texts]:
    """Values of each column that has texts: of the beginning, some blocks within the file, and its end.

    Of a file that is packed or not so long, they are from all over the first block; there are none if this has less
    than 1,000 rows. A column of numbers that turns out to hold words further in is one of texts, too.
    """
    pieces, types = [], dict(types)
    were_texts = {name for name, kind in types.items() if pa.types.is_string(kind)}
    for text in layout.file.pieces_within(PIECES, PIECE):
        piece = TextBlock(text, 0, 0)
        try:
            layout.read(piece, types, first.schema.names)
            pieces.append(piece)
        except StreamError:  # it begins within quotes, or is damaged, which is told when that is read
            continue
    found: dict[int, Texts] = {}
    names = [name for name in first.schema.names if name not in layout.types and pa.types.is_string(types[name])]
    if not names or (not pieces and len(first) < JUDGED_AT[-1]):
        return found
    tables = [layout.parsed(some, dict.fromkeys(names, pa.string()), names) for some in (block, *pieces)]
    n_each = min([JUDGED_AT[-1] // len(tables), *map(len, tables[1:])])
    for name in names:
        parts = [
            each.column(name).take(pa.array(np.linspace(0, len(each) - 1, n_each, dtype=np.int64))) for each in tables
        ]
        sample = texts_of([text for part in parts for text in part.to_pylist()])
        if name in were_texts or kind_of(sample) != NUMBER:
            found[int(name)] = sample
    return found


def _may_have_codes(text: bytes, delimiter: str) -> bool:
    """Whether some cell may begin with a needless zero; far faster than a look at the cells."""
    letters = np.frombuffer(b"\n\n" + text, np.uint8)
    zeros = np.flatnonzero(letters[:-1] == ord("0"))
    zeros = zeros[letters[zeros + 1] - ord("0") < 10]  # before another digit; the difference wraps around
    begins = np.frombuffer(delimiter.encode() + b'\n\r" ', np.uint8)
    signed = np.isin(letters[zeros - 1], np.frombuffer(b"+-", np.uint8))
    return bool(np.isin(letters[zeros - 1 - signed], begins).any())


def _are_plain(texts: pa.ChunkedArray) -> bool:
    """Whether all that is not missing are plain numbers with decimal commas."""
    there = texts.filter(pc.invert(pc.is_in(texts, pa.array(_NULLS))))
    return bool(pc.all(pc.match_substring_regex(there, _PLAIN_COMMA)).as_py())


def _has(texts: pa.ChunkedArray, pattern: str) -> bool:
    return bool(pc.any(pc.match_substring_regex(texts, pattern)).as_py())


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


def csv_layout(file: TextFile, delimiter: str | None = None, reading: Reading = AS_FOUND) -> Layout:
    """Detect the layout of a CSV file from its first lines; ``delimiter`` is that of its format."""
    path, header = file.path, reading.header
    with file.beginning() as text:
        head = text.first_lines(_FIRST_LINES, path)
        n_blank = next((place for place, line in enumerate(head) if line.strip()), None)
        if n_blank is None:
            raise StreamError(f"{path} is empty")
        delimiter = reading.sep or delimiter or delimiter_of("".join(head[n_blank:]), reading.decimal)
        reader = csv.reader(head[n_blank:], delimiter=delimiter)
        cells = [cell.strip() for cell in next(reader)]
        first = "".join(head[n_blank : n_blank + reader.line_num])
        if "\ufffd" in first:
            raise StreamError(f"{path} is not {file.encoding} text; name its encoding with encoding= (--encoding)")
        if has_open_quote(first.encode(), delimiter):
            begin = f"it begins with {first[:30]!r}"
            raise StreamError(f"{path}: its first row opens a quote that is never closed; {begin}")
    header = has_names(cells) if header is None else header
    return Layout(
        file,
        column_names(cells, header),
        delimiter,
        reading.decimal,
        n_blank + (reader.line_num if header else 0),
        header,
        max(BLOCK, min(16 * max(map(len, head)), 4 * LONGEST_LINE)),
    )


def has_names(cells: Sequence[str]) -> bool:
    """Whether the first row of a text looks like the names of its columns."""
    return not any(_is_number(cell) for cell in cells)


def column_names(cells: Sequence[str], header: bool) -> list[str]:
    """The names in the first row or, without a header, ``column 0``, ``column 1``, …."""
    return [cell.lstrip("# ") for cell in cells] if header else [f"column {place}" for place in range(len(cells))]


def delimiter_of(text: str, decimal: str | None = None) -> str:
    r"""What separates the cells of a text, judged by its first line.

    >>> delimiter_of("a;b;c\n1,5;2,5;3\n"), delimiter_of("a|b\n")
    (';', '|')
    """
    bare = re.sub('"[^"]*"', "", text).partition("\n")[0]
    # The first delimiter if none is found.
    return max(DELIMITERS if decimal != "," else DELIMITERS.replace(",", ""), key=bare.count)


def _is_number(cell: str) -> bool:
    try:
        float(cell.replace(",", "."))
    except ValueError:
        return False
    return True
