"""ARFF files: the header declares the columns; the data rows go to the CSV reader."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import IO

import pyarrow as pa

from devdan.streams.layout import Layout, lines
from devdan.streams.stream import StreamError

_CELL = r"""\s*('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^,{}]*?)\s*"""
_ROW = re.compile(_CELL + r"(,|$)")
_ATTRIBUTE = re.compile(
    r"""@attribute\s+('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\s{]+)\s*(\{.*\}|\S.*?)\s*(?:%.*)?$""", re.I
)
_NUMBERS = ("numeric", "real", "integer")


def layout(path: Path, compression: str | None) -> Layout:
    """The layout of an ARFF file."""
    names: list[str] = []
    values: dict[int, list[str]] = {}
    types: dict[str, pa.DataType] = {}
    for number, line in enumerate(lines(path, compression), start=1):
        text = line.strip()
        word = text.split(maxsplit=1)[0].lower() if text else ""
        if word == "@data":
            if not names:
                raise StreamError(f"{path}: no @attribute before @data in line {number}")
            opened = partial(_Data, path, compression, number)
            return Layout(path, names, values=values, closed=True, types=types, opened=opened, target=len(names) - 1)
        if word == "@attribute":
            match = _ATTRIBUTE.match(text)
            if match is None:
                raise StreamError(f"{path}: line {number} is not an attribute: {text[:60]}")
            place, kind = len(names), match[2]
            names.append(_plain(match[1]))
            if kind.startswith("{"):
                values[place], types[str(place)] = _cells(kind[1:-1]), pa.string()
            elif kind.lower() in _NUMBERS:
                types[str(place)] = pa.float64()
        elif text and not text.startswith(("%", "@")):
            raise StreamError(f"{path}: line {number} before @data is not understood: {text[:60]}")
    raise StreamError(f"{path} has no @data line, so it is not an ARFF file")


def _Data(path: Path, compression: str | None, skipped: int) -> IO[bytes]:  # noqa: N802 (looks like a file class)
    return io.BufferedReader(_Rows(_rows(path, compression, skipped)), 1 << 16)


class _Rows(io.RawIOBase):
    """Rows as a file."""

    def __init__(self, rows: Iterator[bytes]) -> None:
        self._rows, self._rest = rows, b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        rows, n = [self._rest], len(self._rest)
        while n < len(buffer) and (row := next(self._rows, b"")):
            rows.append(row)
            n += len(row)
        text, n = b"".join(rows), min(n, len(buffer))
        buffer[:n], self._rest = text[:n], text[n:]
        return n


def _rows(path: Path, compression: str | None, skipped: int) -> Iterator[bytes]:
    """The data as plain CSV: without comments, blanks around cells, and ARFF's two kinds of quotes."""
    n_rows = 0
    for number, line in enumerate(lines(path, compression)):
        text = line.strip()
        if number < skipped or not text or text.startswith("%"):
            continue
        n_rows += 1
        if text.startswith("{"):
            raise StreamError(
                f"{path}: row {n_rows} is in the sparse format ({text[:30]}); only dense ARFF is supported"
            )
        if any(mark in text for mark in "'\"\\% \t"):
            text = ",".join(map(_quoted, _cells(text)))
        yield text.encode() + b"\n"


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
