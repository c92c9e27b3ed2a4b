"""Where the rows of a delimited text end: at line ends, but not at those within quotes.

A quote counts as one only where a cell begins, as in Arrow and Python's csv module; elsewhere it is a character like
any other. Within quotes, two of them stand for one.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from devdan.arrays import Words

_QUOTE = b'"'
_LINE_END = re.compile(rb"\r\n|\n|\r")


class Quoted(NamedTuple):
    """The parts of a text that are within quotes: where each opens, and where it closes or the text ends."""

    opened: Words
    closed: Words

    def around(self, place: int) -> int:
        """Where the quotes around a place open; -1 if it is not within quotes."""
        part = bisect_right(self.opened, place) - 1
        return int(self.opened[part]) if part >= 0 and place < self.closed[part] else -1


def quoted(text: bytes, delimiter: str) -> Quoted:
    r"""The quoted parts of a text that begins where a row does.

    >>> quoted(b'1,"a\nb"\n2,5" pipe\n', ",")
    Quoted(opened=array([2]), closed=array([6]))
    """
    letters = np.frombuffer(text, np.uint8)
    quotes = np.flatnonzero(letters == ord(_QUOTE))
    opening = quotes[::2]
    before = letters[opening[opening > 0] - 1]
    # Every second quote begins a cell, or follows another quote, which makes two that stand for one: all of them count.
    if np.isin(before, np.frombuffer(delimiter.encode() + b'\r\n"', np.uint8)).all():
        closing = quotes[1::2]
        return Quoted(opening, np.append(closing, [len(text)] * (len(opening) - len(closing))))
    cell = rb'(?<![^%s\r\n])"[^"]*(?:""[^"]*)*(?:(")(?!")|\Z)' % re.escape(delimiter.encode())
    parts = [(match.start(), match.end() - (match[1] is not None)) for match in re.finditer(cell, text)]
    opened, closed = np.array(parts, np.int64).reshape(-1, 2).T
    return Quoted(opened, closed)


def end_of_rows(text: bytes, delimiter: str, start: int = 0) -> int:
    r"""Where the last whole row of a text ends; 0 if none does, and none does before ``start``.

    A carriage return at the very end may be half of a line end, so that it is none yet.

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
    r"""Where so many lines end, quotes or not; -1 if they do not.

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
    r"""How many lines end in a text.

    >>> n_lines(b"a\r\nb\rc\n\n")
    4
    """
    n = text.count(b"\n")
    return n + text.count(b"\r") - text.count(b"\r\n") if b"\r" in text else n


def lines_of_rows(text: bytes, delimiter: str) -> Iterator[int]:
    r"""The line in which each row begins; empty lines are no rows.

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
