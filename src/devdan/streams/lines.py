"""Open files, such as standard input, line by line: CSV or lines of JSON, each row as soon as it is written.

A text that begins with ``{`` is JSON, an object in each line; anything else is CSV. Either can be read only once.
"""

from __future__ import annotations

import csv
import json
import re
import sys
from collections.abc import Collection, Iterator, Sequence
from itertools import chain, islice
from typing import IO, Any

import pyarrow as pa

from devdan.encoding.rows import Rows, distinct
from devdan.encoding.tables import TableError, column_of
from devdan.encoding.values import is_missing
from devdan.streams.columns import BatchConverter, kept_columns, target_column
from devdan.streams.delimited import NO_LABEL, column_names, delimiter_of, has_names
from devdan.streams.stream import Chunk, Stream, StreamError, Table, TableBlock, name_of
from devdan.streams.textfile import LONGEST_LINE

STANDARD_INPUT = "standard input"
_NUMBER = re.compile(r"[-+]?((\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?|inf(inity)?)", re.IGNORECASE | re.ASCII)
_WITH_COMMA = re.compile(r"[-+]?\d*,\d+", re.ASCII)
_FLAGS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}


def stream(
    file: IO[Any] | None = None,
    *,
    target: str | int | None = None,
    chunk: int = 500,
    header: bool | None = None,
    drop: Sequence[str | int] = (),
    as_text: Collection[str] = (),
    name: str | None = None,
) -> Stream:
    r"""An open file as a stream; by default, standard input. The options are those for files.

    >>> import io
    >>> samples = stream(io.StringIO('{"x": 1, "kind": "a"}\n{"x": 2.5, "kind": "b"}\n'), target="kind")
    >>> [(X.dicts(), y.tolist()) for X, y in samples]
    [([{'x': 1.0}, {'x': 2.5}], ['a', 'b'])]
    """
    lines = _Lines(file, header)
    source, names = lines.source, lines.names
    labels = target_column(names, target, source, lines.named)
    kept = kept_columns(names, labels, drop, source, lines.named)
    known = [names[place] for place in kept]
    place = kept.index(labels)
    converter = BatchConverter(known, place, source, missing_labels=NO_LABEL, numeric_labels=None)
    features = [place for place in kept if place != labels]
    texts = [place for place in features if names[place] in as_text]
    csv_labels = _CsvLabels(converter)

    def blocks() -> Iterator[Chunk]:
        rows = lines.rows({*names} if lines.is_json else None)
        while block := list(islice(rows, chunk)):
            X = lines.table(block, features, converter.n_rows, texts)
            given = [row[labels] for row in block]
            try:
                y = pa.array(given) if lines.is_json else csv_labels.array(given)
            except (pa.ArrowException, OverflowError) as error:
                raise StreamError(
                    f"{source}: its labels are of several types after row {converter.n_rows}: {error}"
                ) from error
            yield converter.labelled(X, y)

    given_name = name or lines.name
    return Stream(
        given_name,
        blocks,
        chunk,
        tuple(known[:place] + known[place + 1 :]),
        origin=source,
        is_single_pass=True,
        target=names[labels],
    )


def table(file: IO[Any] | None = None, *, header: bool | None = None, n_at_a_time: int = 1) -> Table:
    """An open file as a table without labels, ``n_at_a_time`` rows in each block."""
    lines = _Lines(file, header)

    def read(columns: Sequence[int], keep: Sequence[int], as_text: Collection[int]) -> Iterator[TableBlock]:
        converter = BatchConverter([lines.names[place] for place in columns], None, lines.source)
        rows = lines.rows()
        while block := list(islice(rows, n_at_a_time)):
            X = converter.unlabelled(lines.table(block, columns, converter.n_rows, as_text))
            yield X, [[row[place] for row in block] for place in keep]

    return Table(lines.source, tuple(lines.names), read, lines.named, is_json=lines.is_json)


class _Lines:
    """An open file whose first line has been read."""

    def __init__(self, file: IO[Any] | None, header: bool | None) -> None:
        own = file is None or file in (sys.stdin, getattr(sys.stdin, "buffer", None))
        path = getattr(file, "name", None)
        self._file: IO[Any] = getattr(sys.stdin, "buffer", sys.stdin) if file is None else file
        self.name = "stdin" if own else name_of(path) if isinstance(path, str) else "lines"
        self.source = STANDARD_INPUT if own else path if isinstance(path, str) else "the open file"
        self._n_lines, self._is_read = 0, False
        first = next((line for line in self._lines() if line.strip()), None)
        if first is None:
            raise StreamError(f"{self.source} is empty")
        self._first, self.is_json = first, first.lstrip().startswith("{")
        self._comma = False
        if self.is_json:
            self.names, self.named = list(self._object(first)), True
            return
        self._delimiter = delimiter_of(first)
        self._comma = self._delimiter != ","
        self._reader = csv.reader(chain([first], self._lines()), delimiter=self._delimiter, strict=True)
        self._first_row = self._next_row() or []
        cells = [cell.strip() for cell in self._first_row]
        self.named = has_names(cells) if header is None else header
        self.names = distinct(column_names(cells, self.named))

    def rows(self, known: set[str] | None = None) -> Iterator[list[Any]]:
        """The rows, each as soon as it is written: texts, or JSON values; only keys that are ``known`` are allowed."""
        if self._is_read:
            raise StreamError(f"{self.source} can be read only once")
        self._is_read = True
        return self._objects(known) if self.is_json else self._cells()

    def table(
        self, rows: Sequence[list[Any]], columns: Sequence[int], n_before: int, as_text: Collection[int] = ()
    ) -> Rows:
        """The rows with these columns."""
        names = [self.names[place] for place in columns]
        values = [[row[place] for row in rows] for place in columns]
        if not self.is_json:
            values = [
                texts if place in as_text else [self._value(text) for text in texts]
                for place, texts in zip(columns, values, strict=True)
            ]
        try:
            found = [column_of(some, name, n_before) for some, name in zip(values, names, strict=True)]
        except TableError as error:
            raise StreamError(f"{self.source}: {error}") from error
        return Rows.of(names, found, len(rows))

    def _value(self, text: str) -> float | str | None:
        """The value as Arrow would read it from a file: a number if it can be one."""
        text = text.strip()
        if is_missing(text):
            return None
        if self._comma and _WITH_COMMA.fullmatch(text):
            return float(text.replace(",", "."))
        return float(text) if _NUMBER.fullmatch(text) else text

    def _lines(self) -> Iterator[str]:
        while line := self._file.readline(LONGEST_LINE):
            self._n_lines += 1
            if len(line) == LONGEST_LINE:
                raise StreamError(f"{self.source}: line {self._n_lines} is longer than {LONGEST_LINE:,} characters")
            if isinstance(line, bytes):
                try:
                    line = line.decode("utf-8")
                except UnicodeDecodeError:
                    raise StreamError(f"{self.source}: line {self._n_lines} is not UTF-8 text") from None
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
                new = next(key for key in found if key not in known)
                raise StreamError(f"{self.source}: row {number} (line {self._n_lines}) has a new column {new!r}")
            yield [found.get(name) for name in self.names]

    def _object(self, line: str) -> dict[str, Any]:
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise StreamError(f"{self.source}: line {self._n_lines} is not a JSON object: {line.strip()[:60]}")
        return found


class _CsvLabels:
    """Labels of CSV as Arrow would read them: flags if the first ones are, otherwise text."""

    def __init__(self, converter: BatchConverter) -> None:
        self._converter = converter
        self._are_flags: bool | None = None  # until there is a label

    def array(self, texts: Sequence[str]) -> pa.Array:
        """Labels; a text that means a missing one is None."""
        given = [None if text.strip() in NO_LABEL else text.strip() for text in texts]
        known = [text for text in given if text is not None]
        if known and self._are_flags is None:
            self._are_flags = all(text in _FLAGS for text in known)
        if not self._are_flags:
            return pa.array(given, pa.string())
        for text in known:
            if text not in _FLAGS:
                raise StreamError(
                    f"{self._converter.source}: the label {text!r} after row {self._converter.n_rows} is neither true "
                    "nor false, as those before"
                )
        return pa.array([None if text is None else _FLAGS[text] for text in given], pa.bool_())
