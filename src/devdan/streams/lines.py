"""Open files, such as standard input, line by line: CSV or lines of JSON, each row as soon as it is written.

A text that begins with ``{`` is JSON, an object in each line; anything else is CSV. Either can be read only once.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
import sys
from collections.abc import Collection, Generator, Iterator, Sequence
from itertools import chain, islice
from typing import IO, Any

from devdan.encoding.rows import distinct
from devdan.encoding.values import is_missing
from devdan.streams.delimited import column_names, delimiter_of, has_names
from devdan.streams.jsonfile import check_keys, parsed_object
from devdan.streams.reading import Reading
from devdan.streams.stream import StreamError, name_of
from devdan.streams.tablesource import Batch, TableSource
from devdan.streams.textfile import LONGEST_LINE

STANDARD_INPUT = "standard input"
# Numbers as programs write them, without needless zeros in front, and of which no decimals may be thousands.
_NUMBER = re.compile(r"[-+]?(((0|[1-9]\d*)(\.\d*)?|\.\d+)([eE][-+]?\d+)?|inf(inity)?)", re.IGNORECASE | re.ASCII)
_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2}\.\d{3}", re.ASCII)


def source(file: IO[Any] | None, reading: Reading, n_at_a_time: int = 1, is_strict: bool = True) -> TableSource:
    r"""An open file as a table, by default standard input; ``n_at_a_time`` rows in each batch.

    ``is_strict``: an object with a key that is no column is an error.

    >>> import io
    >>> text = io.StringIO('{"x": 1, "kind": "a"}\n{"x": 2.5, "kind": "b"}\n')
    >>> samples = source(text, Reading(), n_at_a_time=500).stream(Reading(target="kind"), chunk=500)
    >>> [(X.dicts(), y.tolist()) for X, y in samples]
    [([{'x': 1.0}, {'x': 2.5}], ['a', 'b'])]
    """
    lines = _Lines(file, reading)

    def batches(
        columns: Sequence[int], written: Sequence[int], as_text: Collection[int]
    ) -> Generator[Batch, None, None]:
        rows = lines.rows({*lines.names} if is_strict else None)
        while block := list(islice(rows, n_at_a_time)):
            found = [[row[place] for row in block] for place in columns]
            if not lines.is_json:
                found = [
                    texts if place in as_text else _values(texts) for place, texts in zip(columns, found, strict=True)
                ]
            kept = [[row[place] for row in block] for place in written]
            yield [*found, *kept]

    return TableSource(
        lines.name, lines.source, tuple(lines.names), batches, lines.named, is_json=lines.is_json, is_single_pass=True
    )


def _values(texts: list[str]) -> list[Any]:
    """The cells of a column: numbers, if all of them are plain ones, otherwise texts for the encoding to judge."""
    values: list[Any] = []
    for text in map(str.strip, texts):
        if is_missing(text):
            values.append(None)
        elif _NUMBER.fullmatch(text) and not _THOUSANDS.fullmatch(text):
            values.append(float(text))
        else:
            return [None if is_missing(text) else text for text in map(str.strip, texts)]
    return values


class _Lines:
    """An open file whose first line has been read."""

    def __init__(self, file: IO[Any] | None, reading: Reading) -> None:
        own = file is None or file in (sys.stdin, getattr(sys.stdin, "buffer", None))
        path = getattr(file, "name", None)
        self._file: IO[Any] = getattr(sys.stdin, "buffer", sys.stdin) if file is None else file
        self.name = "stdin" if own else name_of(path) if isinstance(path, str) else "lines"
        self.source = STANDARD_INPUT if own else path if isinstance(path, str) else "the open file"
        self._n_lines, self._is_read, self._encoding = 0, False, reading.encoding or "utf-8"
        if "\n".encode(self._encoding) != b"\n" and not isinstance(self._file, io.TextIOBase):  # as of UTF-16
            reader: Any = codecs.getreader(self._encoding)
            self._file = reader(self._file)
        first = next((line for line in self._lines() if line.strip()), None)
        if first is None:
            raise StreamError(f"{self.source} is empty")
        self._first, self.is_json = first, first.lstrip().startswith("{")
        if self.is_json:
            self.names, self.named = list(self._object(first)), True
            return
        self._delimiter = reading.sep or delimiter_of(first, reading.decimal)
        self._reader = csv.reader(chain([first], self._lines()), delimiter=self._delimiter, strict=True)
        self._first_row = self._next_row() or []
        cells = [cell.strip() for cell in self._first_row]
        self.named = has_names(cells) if reading.header is None else reading.header
        self.names = distinct(column_names(cells, self.named))

    def rows(self, known: set[str] | None = None) -> Iterator[list[Any]]:
        """The rows, each as soon as it is written: texts, or JSON values; only keys that are ``known`` are allowed."""
        if self._is_read:
            raise StreamError(f"{self.source} can be read only once")
        self._is_read = True
        return self._objects(known) if self.is_json else self._cells()

    def _lines(self) -> Iterator[str]:
        while line := self._file.readline(LONGEST_LINE):
            self._n_lines += 1
            if len(line) == LONGEST_LINE:
                raise StreamError(f"{self.source}: line {self._n_lines} is longer than {LONGEST_LINE:,} characters")
            if isinstance(line, bytes):
                try:
                    line = line.decode(self._encoding)
                except UnicodeDecodeError:
                    raise StreamError(
                        f"{self.source}: line {self._n_lines} is not {self._encoding.upper()} text; name its encoding "
                        "with encoding= (--encoding)"
                    ) from None
            yield line.removeprefix("\ufeff") if self._n_lines == 1 else line

    def _next_row(self) -> list[str] | None:
        """The next row of CSV that is not blank."""
        try:
            return next((cells for cells in self._reader if "".join(cells).strip() or len(cells) > 1), None)
        except csv.Error as error:
            why = "opens a quote that is never closed" if "unexpected end" in str(error) else f"is no CSV: {error}"
            raise StreamError(f"{self.source}: the row that ends in line {self._n_lines} {why}") from None

    def _cells(self) -> Iterator[list[str]]:
        number, width = 0, len(self.names)
        cells = self._next_row() if self.named else self._first_row
        while cells is not None:
            number += 1
            if len(cells) != width:
                line = self._n_lines - sum(cell.count("\n") for cell in cells)
                text = self._delimiter.join(cells)[:60]
                raise StreamError(
                    f"{self.source}: row {number} (line {line}) has {len(cells)} columns instead of {width}: {text}"
                )
            yield cells
            cells = self._next_row()

    def _objects(self, known: set[str] | None) -> Iterator[list[Any]]:
        number = 0
        for line in chain([self._first], self._lines()):
            if not line.strip():
                continue
            number += 1
            found = self._object(line)
            if known is not None and not known.issuperset(found):
                check_keys(found, known, f"{self.source}: row {number} (line {self._n_lines})")
            yield [found.get(name) for name in self.names]

    def _object(self, line: str) -> dict[str, Any]:
        return parsed_object(line, f"{self.source}: line {self._n_lines}")
