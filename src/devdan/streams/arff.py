"""ARFF: the header declares the columns; the data rows go to the reader of delimited text."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Generator, Iterator
from itertools import islice
from pathlib import Path

import pyarrow as pa

from devdan.streams.delimited import Layout
from devdan.streams.stream import StreamError
from devdan.streams.textfile import TextFile

_CELL = r"""\s*('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^,{}]*?)\s*"""
_ROW = re.compile(_CELL + r"(,|$)")
_ATTRIBUTE = re.compile(
    r"""@attribute\s+('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\s{]+)\s*(\{.*\}|\S.*?)\s*(?:%.*)?$""", re.I
)
_NUMBERS = ("numeric", "real", "integer")


def arff_layout(file: TextFile) -> Layout:
    """The layout of an ARFF file; the first pass over the data continues in the file that is opened here."""
    path, text = file.path, file.lines()
    names, values, types, n_lines = _arff_header(text, path)
    begun = [text]

    def opened() -> _DataRows:
        if begun:
            return _DataRows(begun.pop(), path)
        again = file.lines()
        deque(islice(again, n_lines), maxlen=0)
        return _DataRows(again, path)

    return Layout(
        TextFile(path, None, opened, encoding="utf-8"),
        names,
        decimal=".",
        values=values,
        closed=True,
        types=types,
        target=len(names) - 1,
        counts_lines=False,
    )  # fmt: skip; line numbers are not those of the file


def _arff_header(
    text: Iterator[str], path: Path
) -> tuple[list[str], dict[int, list[str]], dict[str, pa.DataType], int]:
    """The names of the columns, their declared values and types by column, and the number of lines up to @data."""
    names: list[str] = []
    values: dict[int, list[str]] = {}
    types: dict[str, pa.DataType] = {}
    for number, line in enumerate(map(str.strip, text), start=1):
        word = line.split(maxsplit=1)[0].lower() if line else ""
        if word == "@data":
            if not names:
                raise StreamError(f"{path}: no @attribute before @data in line {number}")
            return names, values, types, number
        if word == "@attribute":
            match = _ATTRIBUTE.match(line)
            if match is None:
                raise StreamError(f"{path}: line {number} is not an attribute: {line[:60]}")
            place, kind = len(names), match[2]
            names.append(_plain(match[1]))
            if kind.startswith("{"):
                values[place], types[str(place)] = _cells(kind[1:-1]), pa.string()
            elif kind.lower() in _NUMBERS:
                types[str(place)] = pa.float64()
        elif line and not line.startswith(("%", "@")):
            raise StreamError(f"{path}: line {number} before @data is not understood: {line[:60]}")
    raise StreamError(f"{path} has no @data line, so it is not an ARFF file")


class _DataRows:
    """The data as plain CSV: without comments, blanks around cells, and ARFF's two kinds of quotes."""

    def __init__(self, text: Generator[str, None, None], path: Path) -> None:
        self._text, self._path = text, path
        self._rows = self._converted()

    def _converted(self) -> Generator[bytes, None, None]:
        n_rows = 0
        for line in self._text:
            row = line.strip()
            if not row or row.startswith("%"):
                continue
            n_rows += 1
            if row.startswith("{"):
                raise StreamError(
                    f"{self._path}: row {n_rows} is in the sparse format ({row[:30]}); only dense ARFF is supported"
                )
            if any(mark in row for mark in "'\"\\% \t"):
                row = ",".join(map(_quoted, _cells(row)))
            yield row.encode() + b"\n"

    def read(self, n_bytes: int, /) -> bytes:
        """Whole rows, as many as have about this many bytes."""
        rows, n = [], 0
        while n < n_bytes and (row := next(self._rows, b"")):
            rows.append(row)
            n += len(row)
        return b"".join(rows)

    def close(self) -> None:
        self._text.close()


def _cells(text: str) -> list[str]:
    """The comma-separated values, without quotes or a trailing comment."""
    cells, place = [], 0
    while place <= len(text):
        match = _ROW.match(text, place)
        if match is None:  # a comment, or something after a quote
            cell, _, _ = text[place:].partition("%")
            quoted = re.match(_CELL, cell)
            cells.append(_plain(quoted[1] if quoted and quoted[1] else cell.strip()))
            break
        comment = match[1].find("%") if not match[1].startswith(("'", '"')) else -1
        cells.append(_plain(match[1] if comment < 0 else match[1][:comment].strip()))
        if not match[2] or comment >= 0:
            break
        place = match.end()
    return cells


def _quoted(cell: str) -> str:
    """The value in CSV form; empty values are quoted too, since an empty line would be skipped."""
    doubled = cell.replace('"', '""')
    return f'"{doubled}"' if not cell or any(mark in cell for mark in ',"\r\n') else cell


def _plain(cell: str) -> str:
    if len(cell) > 1 and cell[0] in "'\"" and cell[-1] == cell[0]:
        return re.sub(r"\\(.)", r"\1", cell[1:-1])
    return cell
