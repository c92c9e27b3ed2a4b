"""Excel workbooks (.xlsx): the first sheet that has cells, read row by row.

A workbook is a zip of XML, and Python's own parser reads that a piece at a time. A library that reads sheets whole
takes memory for all cells up to the last one, and a file of a kilobyte may say that the last one is XFD1048576.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Collection, Generator, Iterator, Sequence
from contextlib import closing
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any
from xml.parsers import expat

from devdan.encoding.rows import distinct
from devdan.streams.delimited import column_names, has_names
from devdan.streams.reading import Reading
from devdan.streams.stream import StreamError, name_of, reason
from devdan.streams.tablesource import Batch, TableSource
from devdan.streams.textfile import DAMAGE, LONGEST_LINE

_AT_A_TIME, _PIECE = 1000, 1 << 15  # rows, and bytes of XML
_MOST_COLUMNS = 1 << 14  # that Excel can have
_MOST_TEXT = 1 << 27  # characters of the texts that cells share, all of which are in memory
_DATES = frozenset((*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)))  # formats that every workbook has
_CODE = re.compile(r'"[^"]*"|\\.|_.|\*.|\[(?![hms]+\])[^\]]*\]', re.IGNORECASE)  # what says nothing in a format
_LETTERS = re.compile("[A-Z]+")
_WRONG = (*DAMAGE, expat.ExpatError, RuntimeError, LookupError, ValueError, OverflowError)


def workbook(path: Path, reading: Reading) -> TableSource:
    """The first sheet with cells; its first row that is not empty has the names of the columns, or is data."""
    book = _Workbook(path)
    with closing(book.rows()) as rows:
        first = next(rows, None)
    if first is None:
        raise StreamError(f"{path} has no rows")
    cells = ["" if value is None else str(value) for value in first]
    is_named = all(value is None or isinstance(value, str) for value in first) and has_names(cells)
    named = is_named if reading.header is None else reading.header
    names = column_names(cells, named)
    width = len(names)

    def batches(columns: Sequence[int], written: Sequence[int], _: Collection[int]) -> Generator[Batch, None, None]:
        with closing(book.rows()) as rows:
            n_rows, found = 0, islice(rows, int(named), None)
            while some := list(islice(found, _AT_A_TIME)):
                for row, values in enumerate(some, n_rows + 1):
                    if len(values) > width:
                        raise StreamError(f"{path}: row {row} has {len(values)} columns instead of {width}")
                    values.extend([None] * (width - len(values)))
                n_rows += len(some)
                yield [[values[place] for values in some] for place in (*columns, *written)]

    return TableSource(name_of(path), str(path), tuple(distinct(names)), batches, named)


class _Workbook:
    """A workbook whose texts and formats have been read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with zipfile.ZipFile(path) as archive:
                self._sheets, is_1904 = _sheets(archive)
                self._texts = _shared_texts(archive)
                self._dates = _date_styles(archive)
        except StreamError:
            raise
        except _WRONG as error:
            raise StreamError(f"{path} is not an Excel workbook (.xlsx), or is damaged: {reason(error)}") from error
        self._begin = datetime(1904, 1, 1) if is_1904 else datetime(1899, 12, 30)

    def rows(self) -> Generator[list[Any], None, None]:
        """The rows of the first sheet that has any, without those that are empty."""
        n_rows = 0
        try:
            with zipfile.ZipFile(self.path) as archive:
                for sheet in self._sheets:
                    with archive.open(sheet) as file:
                        for row in _Cells(self._texts, self._dates, self._begin).rows(file):
                            if any(value is not None for value in row):
                                n_rows += 1
                                yield row
                    if n_rows:
                        return
        except StreamError:
            raise
        except _WRONG as error:
            raise StreamError(f"{self.path} cannot be read after row {n_rows}: {reason(error)}") from error


class _Cells:
    """Turns the XML of a sheet into rows."""

    def __init__(self, texts: list[str], dates: frozenset[int], begin: datetime) -> None:
        self._texts, self._dates, self._begin = texts, dates, begin
        self._done: list[list[Any]] = []
        self._row: list[Any] = []
        self._place, self._kind, self._style = 0, "", 0
        self._value: list[str] | None = None  # unless the cell is empty
        self._is_read = False  # whether its text is
        self._length = 0

    def rows(self, file: Any) -> Iterator[list[Any]]:
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        parser.StartElementHandler, parser.EndElementHandler = self._start, self._end
        parser.CharacterDataHandler = self._text
        while piece := file.read(_PIECE):
            parser.Parse(piece, False)
            yield from self._done
            self._done.clear()
        parser.Parse(b"", True)
        yield from self._done

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        tag = name.rpartition(" ")[2]
        if tag == "c":
            self._value, self._length = None, 0
            self._kind, self._style = attributes.get("t", "n"), int(attributes.get("s", 0))
            letters = _LETTERS.match(attributes.get("r", ""))
            self._place = _column(letters[0]) if letters else len(self._row)
            if not len(self._row) <= self._place < _MOST_COLUMNS:
                raise ValueError(f"a cell is out of place: {attributes.get('r', '')[:20]!r}")
        elif tag in ("v", "t"):
            self._value, self._is_read = [] if self._value is None else self._value, True
        elif tag == "row":
            self._row = []

    def _text(self, text: str) -> None:
        if self._is_read and self._value is not None:
            self._value.append(text)
            self._length += len(text)
            if self._length > LONGEST_LINE:
                raise ValueError(f"a cell has more than {LONGEST_LINE:,} characters")

    def _end(self, name: str) -> None:
        tag = name.rpartition(" ")[2]
        if tag in ("v", "t"):
            self._is_read = False
        elif tag == "c" and self._value is not None:
            value, self._value = self._read("".join(self._value)), None
            self._row.extend([None] * (self._place - len(self._row)))
            self._row.append(value)
        elif tag == "row":
            self._done.append(self._row)

    def _read(self, text: str) -> Any:
        kind = self._kind
        if kind == "s":
            return self._texts[int(text)] or None
        if kind == "b":
            return text == "1"
        if kind != "n" or not text:  # text, the text of a formula, an error such as #N/A, or a date in ISO 8601
            return text or None
        value = float(text)
        if self._style not in self._dates:
            return value
        if 0 <= value < 1:
            return (datetime.min + timedelta(seconds=round(value * 86_400, 6))).time()
        return self._begin + timedelta(seconds=round(value * 86_400, 3))


def _column(letters: str) -> int:
    """The position of a column.

    >>> _column("A"), _column("AB")
    (0, 27)
    """
    place = 0
    for letter in letters[:4]:
        place = place * 26 + ord(letter) - 64
    return place - 1


def _elements(archive: zipfile.ZipFile, member: str) -> Iterator[tuple[str, dict[str, str], str]]:
    """The elements of a part of the workbook as they end: their name, attributes, and text, if there is no other."""
    opened: list[tuple[str, dict[str, str]]] = []
    ended: list[tuple[str, dict[str, str], str]] = []
    text: list[str] = []
    n_characters = 0

    def more(piece: str) -> None:
        nonlocal n_characters
        text.append(piece)
        n_characters += len(piece)
        if n_characters > _MOST_TEXT:
            raise ValueError(f"{member} has more than {_MOST_TEXT:,} characters of text; save the table as CSV")

    def start(name: str, attributes: dict[str, str]) -> None:
        opened.append((name.rpartition(" ")[2], {key.rpartition(" ")[2]: value for key, value in attributes.items()}))
        text.clear()

    def end(_: str) -> None:
        ended.append((*opened.pop(), "".join(text)))
        text.clear()

    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = start, end, more
    with archive.open(member) as file:
        while piece := file.read(_PIECE):
            parser.Parse(piece, False)
            yield from ended
            ended.clear()
    parser.Parse(b"", True)
    yield from ended


def _sheets(archive: zipfile.ZipFile) -> tuple[list[str], bool]:
    """The parts with the sheets, in order, and whether days count from 1904."""
    targets = {
        found["Id"]: found["Target"]
        for tag, found, _ in _elements(archive, "xl/_rels/workbook.xml.rels")
        if tag == "Relationship"
    }
    sheets, is_1904 = [], False
    for tag, found, _ in _elements(archive, "xl/workbook.xml"):
        if tag == "sheet":
            target = targets[found["id"]]
            sheets.append(target[1:] if target.startswith("/") else f"xl/{target}")
        elif tag == "workbookPr":
            is_1904 = found.get("date1904") in ("1", "true")
    return [sheet for sheet in sheets if "chartsheets" not in sheet], is_1904


def _shared_texts(archive: zipfile.ZipFile) -> list[str]:
    """The texts to which cells refer by number."""
    if "xl/sharedStrings.xml" not in archive.namelist():
        return []
    texts: list[str] = []
    parts: list[str] = []
    for tag, _, text in _elements(archive, "xl/sharedStrings.xml"):
        if tag == "t":
            parts.append(text)
        elif tag == "rPh":  # how the text is pronounced
            del parts[-1:]
        elif tag == "si":
            texts.append("".join(parts))
            parts.clear()
    return texts


def _date_styles(archive: zipfile.ZipFile) -> frozenset[int]:
    """The styles of cells that show a number as a date or a time."""
    if "xl/styles.xml" not in archive.namelist():
        return frozenset()
    own: dict[int, str] = {}
    styles: list[int] = []
    formats: list[int] = []
    for tag, found, _ in _elements(archive, "xl/styles.xml"):
        if tag == "numFmt":
            own[int(found["numFmtId"])] = found.get("formatCode", "")
        elif tag == "xf":
            formats.append(int(found.get("numFmtId", 0)))
        elif tag == "cellXfs":
            styles = formats
        if tag in ("cellStyleXfs", "cellXfs"):
            formats = []
    dates = {number: bool(re.search("[dmyhs]", _CODE.sub("", code), re.IGNORECASE)) for number, code in own.items()}
    return frozenset(place for place, number in enumerate(styles) if dates.get(number, number in _DATES))
