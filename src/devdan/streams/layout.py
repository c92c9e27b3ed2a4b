"""The layout of a delimited text, and its rows: read one block at a time, parsed by Arrow."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import count, islice
from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.csv as pa_csv

from devdan.encoding.values import MISSING as _MISSING
from devdan.streams import rowends
from devdan.streams.stream import StreamError, read_ahead, reason

COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
BLOCK = 1 << 20  # bytes of text parsed at a time
LONGEST_LINE = 1 << 24  # characters of the longest line that is read where lines are
_MARK = b"\xef\xbb\xbf"  # with which some programs begin a text in UTF-8


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


class EndlessRowError(Exception):
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
    block: int = BLOCK
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
        except EndlessRowError as error:
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
                raise EndlessRowError(rest)
        if rest and begun:
            if rowends.has_open_quote(rest, self.delimiter):
                raise EndlessRowError(rest)
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

    def endless(self, error: EndlessRowError, n_rows: int, n_lines: int) -> StreamError:
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
