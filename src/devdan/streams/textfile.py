"""Text files: opened once, decompressed if need be, and cut into blocks that end where a row does.

A quote counts as one only where a cell begins, as in Arrow and Python's csv module; elsewhere it is a character like
any other. Within quotes, two of them stand for one, and line ends do not end a row.
"""

from __future__ import annotations

import io
import re
from bisect import bisect_right
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from devdan.arrays import Integers
from devdan.streams.stream import StreamError, reason

COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
BLOCK = 1 << 20  # bytes of text parsed at a time
LONGEST_LINE = 1 << 24  # characters
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_QUOTE = b'"'
_LINE_END = re.compile(rb"\r\n|\n|\r")


class EndlessRowError(Exception):
    """A row that does not end, or not within two blocks."""

    def __init__(self, text: bytes) -> None:
        self.text = text


# --- Files -------------------------------------------------------------------------------------------------------


class Readable(Protocol):
    """What a text is read from."""

    def read(self, n_bytes: int, /) -> bytes:
        """The next bytes; none at the end."""

    def close(self) -> None:
        """Close the file."""


class OpenText:
    """A text that is being read."""

    def __init__(self, file: Readable, compressed: Readable | None = None) -> None:
        self._file, self._compressed = file, compressed
        self._peeked = b""  # read to find the layout, and still to be used
        self._rest = b""  # the beginning of a row that is not whole yet
        self._is_begun = False

    def first_lines(self, n_lines: int, path: Path) -> list[str]:
        """The first lines, which stay to be read; bytes that are not UTF-8 become U+FFFD."""
        lines: list[str] = []
        while piece := self._file.read(min(max(BLOCK, len(self._peeked)), 4 * BLOCK)):
            self._peeked += piece
            text = io.TextIOWrapper(io.BytesIO(self._peeked), "utf-8-sig", "replace")
            lines = list(islice(text, n_lines + 1))  # all but the last are whole
            for number, line in enumerate(lines, 1):
                if len(line) >= LONGEST_LINE:
                    raise _long_line(path, number)
            if len(lines) > n_lines:
                break
        return lines[:n_lines]

    def begin(self, n_skipped: int, block: int) -> None:
        """Skip the lines before the first row, unless that is done."""
        if self._is_begun:
            return
        text, piece, start = b"", self._read(block), -1
        while start < 0 and piece:
            text += piece
            if (start := end_of_lines(text, n_skipped)) < 0:
                piece = self._read(block)
        self._rest = (text[start:] if start >= 0 else b"").removeprefix(_BYTE_ORDER_MARK)
        self._is_begun = True

    def rows(self, delimiter: str, block: int) -> bytes:
        """The next whole rows, about a block of them; none at the end."""
        n_searched = 0
        while (end := end_of_rows(self._rest, delimiter, n_searched)) == 0:
            if len(self._rest) >= 2 * block:
                raise EndlessRowError(self._rest)
            n_searched = len(self._rest)
            piece = self._read(block)
            if not piece:
                if has_open_quote(self._rest, delimiter):
                    raise EndlessRowError(self._rest)
                end = len(self._rest)
                break
            self._rest += piece
        rows, self._rest = self._rest[:end], self._rest[end:]
        return rows

    def put_back(self, rows: bytes) -> None:
        """Read these rows again."""
        self._rest = rows + self._rest

    def _read(self, n_bytes: int) -> bytes:
        if self._peeked:
            piece, self._peeked = self._peeked[:n_bytes], self._peeked[n_bytes:]
            return piece
        return self._file.read(n_bytes)

    def n_read(self) -> int | None:
        """The number of bytes read from the file on disk, if it is known."""
        file = self._compressed or self._file
        return file.tell() if isinstance(file, pa.OSFile) else None

    def close(self) -> None:
        self._file.close()
        if self._compressed is not None:
            self._compressed.close()


class TextFile:
    """A text file that is opened once to find its layout and for the first pass, which continues from there.

    Further passes open it again. ``opened`` opens a text that is no file of its own; ``path`` is then for messages.
    """

    def __init__(
        self, path: Path, compression: str | None = None, opened: Callable[[], Readable] | None = None
    ) -> None:
        self.path, self.compression = path, compression
        self._opened = opened
        self._begun: list[OpenText] = []  # the file that was opened to find the layout

    def _open(self) -> OpenText:
        try:
            if self._opened is not None:
                return OpenText(self._opened())
            file = pa.OSFile(str(self.path))
            return (
                OpenText(pa.CompressedInputStream(file, self.compression), file) if self.compression else OpenText(file)
            )
        except OSError as error:
            raise self.unreadable(error, 0) from error

    @contextmanager
    def beginning(self) -> Iterator[OpenText]:
        """The text that the first pass will read."""
        try:
            if not self._begun:
                self._begun.append(self._open())
            yield self._begun[0]
        except BaseException as error:
            while self._begun:
                self._begun.pop().close()
            if isinstance(error, OSError):
                raise self.unreadable(error, 0) from error
            raise

    @contextmanager
    def reading(self) -> Iterator[OpenText]:
        """The text, to be read from its beginning."""
        try:
            text = self._begun.pop()
        except IndexError:
            text = self._open()
        try:
            yield text
        finally:
            text.close()

    def estimated_share(self) -> float | None:
        """About how much of the file has been read to find the layout; None if its size is not known."""
        n_read = self._begun[0].n_read() if self._begun else None
        return None if n_read is None else n_read / max(self.path.stat().st_size, 1)

    def unreadable(self, error: Exception, n_rows: int) -> StreamError:
        """The error for a text that cannot be read after this many rows."""
        text = reason(error)
        after = f" after row {n_rows}" if n_rows else ""
        if "incorrect header" in text:
            return StreamError(f"{self.path} cannot be read: it is not compressed as its name says")
        if "compressed stream" in text or "inflate" in text:
            return StreamError(f"{self.path} is damaged or incomplete{after}: {text.lower()}")
        return StreamError(f"{self.path} cannot be read{after}: {text}")


def lines(path: Path, compression: str | None) -> Generator[str, None, None]:
    """The lines of a file, whichever way they end; one that would fill the memory is an error."""
    raw = pa.OSFile(str(path))
    text = pa.CompressedInputStream(raw, compression) if compression else raw
    with raw, io.TextIOWrapper(io.BufferedReader(text), "utf-8-sig") as parts:
        for number in count(1):
            line = parts.readline(LONGEST_LINE)
            if not line:
                return
            if len(line) == LONGEST_LINE:
                raise _long_line(path, number)
            yield line


def _long_line(path: Path, number: int) -> StreamError:
    return StreamError(f"{path}: line {number} is longer than {LONGEST_LINE:,} characters")


# --- Rows --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TextBlock:
    """Whole rows of a text, and how many rows and lines there were before them."""

    text: bytes
    n_rows: int = 0
    n_lines: int = 0

    def place(self, number: int, delimiter: str = ",") -> tuple[int, int]:
        r"""Row and line within the whole text; Arrow's number does not count blank lines.

        >>> TextBlock(b'1,"a\nb"\n\n2\n', n_rows=100, n_lines=200).place(2)
        (102, 204)
        """
        line = next(islice(lines_of_rows(self.text, delimiter), number - 1, None))
        return self.n_rows + number, self.n_lines + line


class Quoted(NamedTuple):
    """The quoted parts of a text: where each opens, and where it closes or the text ends."""

    opened: Integers
    closed: Integers

    def around(self, place: int) -> int:
        """Where the quotes around a place open; -1 if it is not within quotes."""
        part = bisect_right(self.opened, place) - 1
        return int(self.opened[part]) if part >= 0 and place < self.closed[part] else -1


def quoted(text: bytes, delimiter: str) -> Quoted:
    r"""The quoted parts of a text that begins with a row.

    >>> quoted(b'1,"a\nb"\n2,5" pipe\n', ",")
    Quoted(opened=array([2]), closed=array([6]))
    """
    letters = np.frombuffer(text, np.uint8)
    quotes = np.flatnonzero(letters == ord(_QUOTE))
    opening = quotes[::2]
    before = letters[opening[opening > 0] - 1]
    # All quotes count if every second one begins a cell, or follows another quote, as two quotes stand for one.
    if np.isin(before, np.frombuffer(delimiter.encode() + b'\r\n"', np.uint8)).all():
        closing = quotes[1::2]
        return Quoted(opening, np.append(closing, [len(text)] * (len(opening) - len(closing))))
    cell = rb'(?<![^%s\r\n])"[^"]*(?:""[^"]*)*(?:(")(?!")|\Z)' % re.escape(delimiter.encode())
    parts = [(match.start(), match.end() - (match[1] is not None)) for match in re.finditer(cell, text)]
    opened, closed = np.array(parts, np.int64).reshape(-1, 2).T
    return Quoted(opened, closed)


def end_of_rows(text: bytes, delimiter: str, start: int = 0) -> int:
    r"""Where the last whole row of a text ends, or 0; no row ends before ``start``.

    A carriage return at the very end does not count, since a line feed may follow.

    >>> end_of_rows(b'1,a\n2,"b\nc', ","), end_of_rows(b"1,a\r2,b\r", ",")
    (4, 4)
    """
    if _QUOTE not in text:
        return _last_line_end(text, max(start - 1, 0), len(text))
    parts, end = quoted(text, delimiter), len(text)
    while (end := _last_line_end(text, 0, end)) > 0:
        opened = parts.around(end - 1)
        if opened < 0:
            return end
        end = opened
    return 0


def _last_line_end(text: bytes, start: int, stop: int) -> int:
    return max(text.rfind(b"\n", start, stop), text.rfind(b"\r", start, min(stop, len(text) - 1))) + 1


def has_open_quote(text: bytes, delimiter: str) -> bool:
    """Whether a text ends within quotes."""
    return _QUOTE in text and quoted(text, delimiter).around(len(text) - 1) >= 0


def end_of_lines(text: bytes, n_lines: int) -> int:
    r"""Where this many lines end, quoted or not; -1 if there are fewer.

    >>> end_of_lines(b"a\r\n\nb\n", 2), end_of_lines(b"a\r", 1)
    (4, -1)
    """
    end = 0
    for _ in range(n_lines):
        match = _LINE_END.search(text, end)
        if match is None or (match.end() == len(text) and match[0] == b"\r"):
            return -1
        end = match.end()
    return end


def n_lines(text: bytes) -> int:
    r"""The number of line ends in a text.

    >>> n_lines(b"a\r\nb\rc\n\n")
    4
    """
    n = text.count(b"\n")
    return n + text.count(b"\r") - text.count(b"\r\n") if b"\r" in text else n


def lines_of_rows(text: bytes, delimiter: str) -> Iterator[int]:
    r"""The line in which each row begins; empty lines are not rows.

    >>> list(lines_of_rows(b'1,a\n\n2,"b\nc"\n3,d', ","))
    [1, 3, 5]
    """
    parts = quoted(text, delimiter)
    begin = line = number = 0
    for number, match in enumerate(_LINE_END.finditer(text), start=1):
        if parts.around(match.start()) < 0:
            if match.start() > begin:
                yield line + 1
            begin, line = match.end(), number
    if begin < len(text):
        yield line + 1
