"""Text files: opened once, unpacked and decoded if need be, and cut into blocks that end where a row does.

A quote counts as one only where a cell begins, as in Arrow and Python's csv module; elsewhere it is a character like
any other. Within quotes, two of them stand for one, and line ends do not end a row.
"""

from __future__ import annotations

import codecs
import io
import lzma
import re
import warnings
import zipfile
import zlib
from bisect import bisect_right
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from devdan.arrays import Integers
from devdan.encoding.encoding import EncodingWarning
from devdan.streams.stream import StreamError, reason

COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".xz": "xz"}
DAMAGE = (OSError, EOFError, lzma.LZMAError, zlib.error, zipfile.BadZipFile)  # raised where a file is damaged
BLOCK = 1 << 20  # bytes of text parsed at a time
LONGEST_LINE = 1 << 24  # characters
PIECES, PIECE = (
    7,
    1 << 14,
)  # of a long file, beside its beginning, by which columns are judged: how many, and their bytes
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_MARKS = {
    _BYTE_ORDER_MARK: "utf-8", codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16",
}  # fmt: skip
_ARE_UTF8 = ("utf-8", "utf-8-sig", "ascii")
_NO_TEXT = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_QUOTE = b'"'
_ESCAPED = re.compile("[\udc80-\udcff]")  # bytes that are not UTF-8
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


class _Decoded:
    """A text of another encoding as UTF-8."""

    def __init__(self, file: Readable, encoding: str) -> None:
        self._file = file
        self._decoder = codecs.getincrementaldecoder(encoding)()

    def read(self, n_bytes: int, /) -> bytes:
        """The next characters, as many as this many bytes hold."""
        while piece := self._file.read(n_bytes):
            if text := self._decoder.decode(piece):
                return text.encode("utf-8", "surrogatepass")
        return self._decoder.decode(b"", final=True).encode("utf-8", "surrogatepass")

    def close(self) -> None:
        self._file.close()


class _Begun:
    """A file of which some bytes have been read, which come first."""

    def __init__(self, begun: bytes, file: Readable) -> None:
        self._begun, self._file = begun, file

    def read(self, n_bytes: int, /) -> bytes:
        """The next bytes."""
        if self._begun:
            piece, self._begun = self._begun[:n_bytes], self._begun[n_bytes:]
            return piece
        return self._file.read(n_bytes)

    def close(self) -> None:
        self._file.close()


class OpenText:
    """A text that is being read; ``compressed`` is the file on disk, if it holds the text in another form."""

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
        text, piece, start = b"", self.read(block), -1
        while start < 0 and piece:
            text += piece
            if (start := end_of_lines(text, n_skipped)) < 0:
                piece = self.read(block)
        self._rest = (text[start:] if start >= 0 else b"").removeprefix(_BYTE_ORDER_MARK)
        self._is_begun = True

    def rows(self, delimiter: str, block: int) -> bytes:
        """The next whole rows, about a block of them; none at the end."""
        n_searched = 0
        while (end := end_of_rows(self._rest, delimiter, n_searched)) == 0:
            if len(self._rest) >= 2 * block:
                raise EndlessRowError(self._rest)
            n_searched = len(self._rest)
            piece = self.read(block)
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

    def read(self, n_bytes: int) -> bytes:
        """The next bytes in UTF-8, at most this many unless the text was in another encoding."""
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
    ``encoding`` is found from the beginning if it is None.
    """

    def __init__(
        self,
        path: Path,
        compression: str | None = None,
        opened: Callable[[], Readable] | None = None,
        encoding: str | None = None,
    ) -> None:
        self.path, self.compression, self.encoding = path, compression, encoding
        self._opened = opened
        self._begun: list[OpenText] = []  # the file that was opened to find the layout

    def _open(self) -> OpenText:
        try:
            if self._opened is not None:
                return OpenText(self._decoded(self._opened()))
            file = pa.OSFile(str(self.path))
            if self.compression is None:
                return OpenText(self._decoded(file), file)
            is_xz = self.compression == "xz"  # which Arrow does not know
            unpacked = lzma.LZMAFile(file) if is_xz else pa.CompressedInputStream(file, self.compression)  # noqa: SIM115
            return OpenText(self._decoded(unpacked), file)
        except DAMAGE as error:
            raise self.unreadable(error, 0) from error

    def _decoded(self, file: Any) -> Readable:
        """The text in UTF-8, without a byte order mark of another encoding."""
        if self.encoding is None:
            begun = b""
            while len(begun) < BLOCK and (piece := file.read(BLOCK - len(begun))):
                begun += piece
            self.encoding = self._found_encoding(begun)
            file = _Begun(begun, file)
        return file if codecs.lookup(self.encoding).name in _ARE_UTF8 else _Decoded(file, self.encoding)

    def _found_encoding(self, begun: bytes) -> str:
        """The encoding by the first bytes: by a mark, UTF-8, or else Western European, with a note.

        If the guess is wrong, letters are, but two texts that differ still do, so that a model learns the same.
        """
        for mark, encoding in _MARKS.items():
            if begun.startswith(mark):
                return encoding
        for encoding, nuls in (("utf-16-le", begun[1:400:2]), ("utf-16-be", begun[:400:2])):
            if 2 * nuls.count(0) > len(nuls):
                return encoding
        try:
            codecs.getincrementaldecoder("utf-8")().decode(begun)
        except UnicodeDecodeError:
            if _NO_TEXT.search(begun):
                return "utf-8"  # no text at all; what reads it says so
            try:
                codecs.getincrementaldecoder("cp1252")().decode(begun)
            except UnicodeDecodeError:
                raise StreamError(
                    f"{self.path} is neither UTF-8 text nor Western European; name its encoding with encoding= "
                    "(--encoding)"
                ) from None
            warnings.warn(
                f"{self.path} is not UTF-8 text, so it is read as Western European (cp1252); if letters are wrong, "
                "name its encoding with encoding= (--encoding)",
                EncodingWarning,
                stacklevel=2,
            )
            return "cp1252"
        return "utf-8"

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
            if isinstance(error, (*DAMAGE, UnicodeDecodeError)):
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

    def pieces_within(self, n_pieces: int, n_bytes: int) -> list[bytes]:
        """Pieces of whole lines, spread over a file that is long and neither packed nor in another encoding.

        The last one is the end of the file. What lies before the first line end of a piece is left out.
        """
        is_utf8 = codecs.lookup(self.encoding or "utf-8").name in _ARE_UTF8
        if self.compression is not None or self._opened is not None or not is_utf8:
            return []
        size = self.path.stat().st_size
        if size < 2 * BLOCK:
            return []
        pieces = []
        with open(self.path, "rb") as file:
            for start in np.linspace(BLOCK, size - n_bytes, n_pieces, dtype=np.int64).tolist():
                file.seek(start)
                piece = file.read(n_bytes)
                begin, end = piece.find(b"\n") + 1, len(piece) if start + n_bytes >= size else piece.rfind(b"\n") + 1
                if 0 < begin < end:
                    pieces.append(piece[begin:end])
        return pieces

    def close(self) -> None:
        """Close the file, if no pass has continued from where the layout was found."""
        while self._begun:
            self._begun.pop().close()

    def lines(self, whole: bool = True) -> Generator[str, None, None]:
        """The lines of the text, whichever way they end; one that would fill the memory is an error.

        Unless they must be ``whole``: then they come in pieces.
        """
        file = self._open()
        try:
            # Bytes that are no text are kept, to be found in the line in which they stand.
            errors = "surrogateescape" if whole else "strict"
            with io.TextIOWrapper(io.BufferedReader(_Raw(file)), "utf-8-sig", errors) as parts:
                for number in count(1):
                    line = parts.readline(LONGEST_LINE if whole else BLOCK)
                    if not line:
                        return
                    if whole and len(line) == LONGEST_LINE:
                        raise _long_line(self.path, number)
                    if not line.isascii() and _ESCAPED.search(line):
                        raise StreamError(
                            f"{self.path}: line {number} is not {self.encoding} text; name its encoding with encoding= "
                            "(--encoding)"
                        )
                    yield line
        finally:
            file.close()

    def unreadable(self, error: Exception, n_rows: int) -> StreamError:
        """The error for a text that cannot be read after this many rows."""
        text = reason(error)
        after = f" after row {n_rows}" if n_rows else ""
        if isinstance(error, UnicodeDecodeError):
            return StreamError(
                f"{self.path} cannot be read{after}: {text}; it is not {self.encoding} text throughout: name its "
                "encoding with encoding= (--encoding)"
            )
        if "incorrect header" in text:
            return StreamError(f"{self.path} cannot be read: it is not compressed as its name says")
        if "Input format not supported" in text:  # as LZMA says it
            return StreamError(f"{self.path} cannot be read: it is not compressed as its name says")
        if isinstance(error, DAMAGE[1:]) or "compressed stream" in text or "inflate" in text:
            return StreamError(f"{self.path} is damaged or incomplete{after}: {text.lower()}")
        return StreamError(f"{self.path} cannot be read{after}: {text}")


class _Raw(io.RawIOBase):
    """An open text as Python's own files are, so that Python finds its lines."""

    def __init__(self, text: OpenText) -> None:
        self._text, self._rest = text, b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        text = self._rest or self._text.read(len(buffer))
        piece, self._rest = text[: len(buffer)], text[len(buffer) :]
        buffer[: len(piece)] = piece
        return len(piece)


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
