"""What a text in a table means: nothing, a number, a flag, a date, or a word.

These rules are the same wherever the text comes from: a CSV file, a data frame, a dict or a line of JSON.
"""

from __future__ import annotations

import hashlib
import math
import re
import zlib
from datetime import date, datetime, time, timedelta, timezone
from enum import IntEnum
from functools import cached_property
from typing import Any

import numpy as np

from devdan.arrays import Floats, Integers
from devdan.encoding.numerals import Numeral, numeral

# Texts that mean no value, in any case: the usual words, dashes, and what spreadsheets and databases write.
MISSING = frozenset((
    "", "?", "-", "--", "\u2013", "\u2014", "na", "n/a", "n.a.", "n.a", "nan", "null", "(null)", "none", "nat", "<na>",
    "#n/a", "#na", "#null!", "#value!", "#ref!", "#div/0!", "#num!", "#name?", r"\n",
))  # fmt: skip
# Words and signs that are missing values, but may well be classes: none is one of four defects, - the opposite of +.
_MAY_BE_CLASSES = frozenset(("none", "-", "--", "\u2013", "\u2014"))
NO_TIME = int(np.iinfo(np.int64).min)  # a missing time, as NumPy's NaT
DAY = 86_400_000_000  # in microseconds
FLAGS = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0}
_LONGEST = 200  # characters of a value that are kept
_ISO = re.compile(r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?)\s?(Z|[-+]\d\d(?::?\d\d)?)?)?", re.ASCII)
_CLOCK = re.compile(r"\d\d?:\d\d(?::\d\d(?:\.\d{1,9})?)?", re.ASCII)
_EPOCH = datetime(1970, 1, 1)
# Dates as people write them: 31.1.2024, 1/31/2024, 31-01-24, 2024/01/31; perhaps with a time of day.
_WRITTEN = re.compile(r"(\d{1,4})([./-])(\d{1,2})\2(\d{2,4})(?:,? (\d\d?:\d\d(?::\d\d(?:\.\d{1,9})?)?))?", re.ASCII)
DAY_FIRST, MONTH_FIRST = "dmy", "mdy"
# Lines that are plain numbers with decimal commas, or empty; and those of which a comma may be one of thousands.
_COMMA_LINE = r"(?:[-+]?(?:\d+(?:,\d+)?|,\d+)(?:[eE][-+]?\d{1,2})?)?"
_COMMA_LINES = re.compile(f"{_COMMA_LINE}(?:\n{_COMMA_LINE})*", re.ASCII)
_DOUBTFUL_LINE = re.compile(r"^[-+]?[1-9]\d{0,2},\d{3}(?:[eE].*)?$", re.ASCII | re.MULTILINE)
_CODE_LINE = re.compile(r"^0\d+$", re.ASCII | re.MULTILINE)
_LONGEST_NUMBER = 60

# Date formats other than ISO 8601; the user names the one that a column has.
EPOCHS = {"epoch": 1_000_000, "epoch-ms": 1000, "epoch-us": 1}
_LETTERS = {"dd": "%d", "mm": "%m", "yyyy": "%Y", "yy": "%y", "HH": "%H", "MM": "%M", "SS": "%S"}


class Form(IntEnum):
    """What a text looks like. A code is a number that begins with a needless zero, as 007 does."""

    NOTHING = 0
    FLAG = 1
    NUMBER = 2
    CODE = 3
    DATE = 4
    TIME = 5
    WORD = 6


def is_missing(text: str) -> bool:
    """Whether a text means that there is no value.

    >>> [is_missing(text) for text in ("n/a", "N/A", "Null", "-", "0", "unknown")]
    [True, True, True, True, False, False]
    """
    return text.strip().lower() in MISSING


def is_no_label(text: str) -> bool:
    """Whether a text means that there is no label: as for values, but ``none`` and dashes are classes.

    >>> [is_no_label(text) for text in ("n/a", "NULL", "?", "None", "-", "other")]
    [True, True, True, False, False, False]
    """
    return is_missing(text) and not is_doubtful_label(text)


def is_doubtful_label(text: str) -> bool:
    """Whether a label means a missing value elsewhere in a table.

    >>> is_doubtful_label("None"), is_doubtful_label("NA")
    (True, False)
    """
    return text.strip().lower() in _MAY_BE_CLASSES


def number(text: str, decimal: str = ".") -> float:
    """The number that a text is, however people write it (:mod:`devdan.encoding.numerals`); otherwise NaN.

    >>> [number(text) for text in ("1e3", "$12", "5 %", "1,234.5", "-3", "12 apples", "1,23", "1e999")]
    [1000.0, 12.0, 5.0, 1234.5, -3.0, nan, 1.23, nan]
    """
    found = numeral(text, decimal)
    return math.nan if found is None else found.value


def is_dressed(text: str) -> bool:
    """Whether a text is a number that a program would not write: money, a percentage, with thousands or a unit."""
    try:
        float(text)
    except ValueError:
        return not math.isnan(number(text))
    return False


def flag(text: str) -> float:
    """1 for true and yes, 0 for false and no, NaN for anything else."""
    return FLAGS.get(text.lower(), math.nan)


def moment(text: str) -> int:
    """Microseconds since 1970 of a date in ISO 8601, in UTC if it has a zone; ``NO_TIME`` if it is none.

    >>> moment("1970-01-02"), moment("1970-01-01T01:00:00.5+01:00"), moment("yesterday") == NO_TIME
    (86400000000, 500000, True)
    """
    match = _ISO.fullmatch(text)
    if match is None:
        return NO_TIME
    try:
        day = microseconds(datetime.fromisoformat(match[1]))
        clock = of_day(match[2]) if match[2] else 0
    except ValueError:
        return NO_TIME
    if clock == NO_TIME:
        return NO_TIME
    zone = (match[3] or "Z").replace(":", "")
    ahead = 0 if zone == "Z" else int(zone[1:3]) * 60 + int(zone[3:5] or 0)
    return day + clock - (ahead if zone[0] != "-" else -ahead) * 60_000_000


def date_order(text: str) -> str:
    """In which order a date that is not in ISO 8601 has day, month and year; ``?`` if the month may be the first.

    >>> date_order("31.01.2024"), date_order("1/31/2024"), date_order("03/04/2024"), date_order("2024/01/31")
    ('dmy', 'mdy', '?', 'ymd')
    >>> date_order("3.4.2024"), date_order("1.2.3"), date_order("32/13/2024")
    ('dmy', '', '')
    """
    found = _WRITTEN.fullmatch(text)
    if found is None:
        return ""
    known = [order for order in (DAY_FIRST, MONTH_FIRST, "ymd") if _written_day(found, order) is not None]
    if found[2] == "." and DAY_FIRST in known:
        return DAY_FIRST
    return "?" if len(known) > 1 else "".join(known)


def written_moment(text: str, order: str) -> int:
    """Microseconds since 1970 of a date in this order or in ISO 8601; ``NO_TIME`` if it is none.

    >>> written_moment("02.01.1970", "dmy"), written_moment("1/2/1970 01:00", "mdy"), written_moment("1/1/1970", "dmy")
    (86400000000, 90000000000, 0)
    """
    if (iso := moment(text)) != NO_TIME:
        return iso
    found = _WRITTEN.fullmatch(text)
    if found is None:
        return NO_TIME
    days = [day for each in (order, "ymd") if (day := _written_day(found, each)) is not None]
    clock = of_day(found[5]) if found[5] else 0
    return days[0] + clock if days and clock != NO_TIME else NO_TIME


def _written_day(found: re.Match[str], order: str) -> int | None:
    """Microseconds since 1970, if these parts are a date in this order."""
    first, second, third = found[1], found[3], found[4]
    year, month, day = {
        DAY_FIRST: (third, second, first), MONTH_FIRST: (third, first, second), "ymd": (first, second, third),
    }[order]  # fmt: skip
    is_short = len(year) == 2 and found[2] != "-" and len(month) == len(day) == 2 and order != "ymd"
    if not (len(year) == 4 or is_short) or max(len(month), len(day)) > 2:
        return None
    full = int(year) if not is_short else int(year) + (1900 if int(year) > 68 else 2000)  # as strptime has it
    try:
        return microseconds(datetime(full, int(month), int(day)))
    except ValueError:
        return None


def of_day(text: str) -> int:
    """Microseconds since midnight; ``NO_TIME`` for anything but a time of day.

    >>> of_day("10:30"), of_day("25:00") == NO_TIME
    (37800000000, True)
    """
    if not _CLOCK.fullmatch(text):
        return NO_TIME
    hours, minutes, seconds = (*text.split(":"), "0")[:3]
    whole, _, fraction = seconds.partition(".")
    if int(hours) > 23 or int(minutes) > 59 or int(whole) > 59:
        return NO_TIME
    total = (int(hours) * 60 + int(minutes)) * 60 + int(whole)
    return total * 1_000_000 + int((fraction + "000000")[:6])


def microseconds(value: Any) -> int:
    """Microseconds since 1970 of a Python date or datetime, in UTC if it has a zone."""
    if isinstance(value, datetime):
        if value.tzinfo is not None:
            value = value.astimezone(timezone.utc).replace(tzinfo=None)
    elif isinstance(value, date):
        value = datetime(value.year, value.month, value.day)
    since: timedelta = value - _EPOCH
    return since // timedelta(microseconds=1)


def microseconds_of_day(value: time) -> int:
    return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond


def strptime_format(text: str) -> str:
    """A format for ``strptime``, also from one as people write it.

    >>> strptime_format("dd/mm/yyyy"), strptime_format("%d.%m.%y")
    ('%d/%m/%Y', '%d.%m.%y')
    """
    if "%" in text:
        return text
    return re.sub("|".join(_LETTERS), lambda part: _LETTERS[part[0]], text)


def is_date_format(text: str) -> bool:
    """Whether this is a format that dates can have.

    >>> is_date_format("dd/mm/yyyy"), is_date_format("epoch"), is_date_format("day")
    (True, True, False)
    >>> is_date_format("%d%d")
    False
    """
    if text == "iso" or text in EPOCHS:
        return True
    date_format = strptime_format(text)
    try:
        datetime.strptime(datetime(2001, 12, 30).strftime(date_format), date_format)
    except (ValueError, re.error):  # the latter where a part comes twice
        return False
    return "%" in date_format


def plain_text(value: float) -> str:
    """A number as the text of a category, the same however the number was stored.

    >>> plain_text(3.0), plain_text(0.5), plain_text(1e300)
    ('3', '0.5', '1e+300')
    """
    return str(int(value)) if value == math.floor(value) and abs(value) < 2**53 else repr(float(value))


def time_text(value: int) -> str:
    """A time as the text of a category."""
    return str(np.datetime64(value, "us"))


def shortened(text: str) -> str:
    """The text, or if it is very long its beginning and a digest: still a value of its own, but small."""
    if len(text) <= _LONGEST:
        return text
    return f"{text[: _LONGEST // 2]}…{hashlib.sha256(_bytes(text)).hexdigest()[:16]}"


def bucket(text: str, n_buckets: int) -> int:
    """Which of the shared inputs is this value's; the same on every machine."""
    return zlib.crc32(_bytes(text)) % n_buckets


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


class Vocabulary:
    """The distinct texts of a column, to which rows refer by position, and their meanings: each is parsed only once."""

    def __init__(self, texts: list[str]) -> None:
        self.texts = [shortened(text.strip()) for text in texts]

    def __len__(self) -> int:
        return len(self.texts)

    @cached_property
    def _comma_lines(self) -> str:
        """The texts, one in a line, if all are plain numbers, some with a comma: to be read together, which is fast."""
        lines = "\n".join(self.texts)
        is_plain = "," in lines and _COMMA_LINES.fullmatch(lines) and max(map(len, self.texts)) <= _LONGEST_NUMBER
        return lines if is_plain else ""

    @cached_property
    def missing(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        if self._comma_lines:
            return np.array([not text for text in self.texts], dtype=bool)
        return np.array([is_missing(text) for text in self.texts], dtype=bool)

    @cached_property
    def numerals(self) -> list[Numeral | None]:
        """The texts that are numbers, with a decimal point where they are ambiguous."""
        return [numeral(text) for text in self.texts]

    @cached_property
    def flags(self) -> Floats:
        if self._comma_lines:
            return np.full(len(self), np.nan)
        return np.array([flag(text) for text in self.texts], dtype=np.float64)

    @cached_property
    def forms(self) -> Integers:
        """What each text looks like, as a :class:`Form`."""
        if self._comma_lines and not _CODE_LINE.search(self._comma_lines):
            return np.where(self.missing, int(Form.NOTHING), int(Form.NUMBER))
        return np.array([self._form(place) for place in range(len(self))], dtype=np.int64)

    @cached_property
    def forms_found(self) -> frozenset[int]:
        """All that there are."""
        return frozenset(self.forms.tolist())

    def _form(self, place: int) -> Form:
        text = self.texts[place]
        if self.missing[place]:
            return Form.NOTHING
        if text.lower() in FLAGS:
            return Form.FLAG
        if self.numerals[place] is not None:
            return Form.CODE if len(text) > 1 and text[0] == "0" and text.isdigit() else Form.NUMBER
        if moment(text) != NO_TIME or date_order(text):
            return Form.DATE
        return Form.WORD if of_day(text) == NO_TIME else Form.TIME

    @cached_property
    def numbers(self) -> Floats:
        return np.array([math.nan if found is None else found.value for found in self.numerals], dtype=np.float64)

    def quantities(self, decimal: str) -> Floats:
        """Flags or, failing that, numbers, with this decimal separator where they are ambiguous."""
        cached: dict[str, Floats] = self.__dict__.setdefault("_quantities", {})
        if decimal not in cached:
            cached[decimal] = self._quantities_with(decimal)
        return cached[decimal]

    def _quantities_with(self, decimal: str) -> Floats:
        lines = self._comma_lines
        if lines and (decimal == "," or not _DOUBTFUL_LINE.search(lines)):
            return np.array([float(line) if line else math.nan for line in lines.replace(",", ".").split("\n")])
        numbers = self.numbers
        if decimal != ".":
            ambiguous = [found is not None and found.separator[:1] == "?" for found in self.numerals]
            numbers = numbers.copy()
            for place in np.flatnonzero(ambiguous).tolist():
                numbers[place] = number(self.texts[place], decimal)
        return np.where(np.isnan(self.flags), numbers, self.flags)

    def times(self, date_format: str) -> Integers:
        """Times of day (``"clock"``), or dates in this format or order; ``NO_TIME`` for anything else."""
        cached: dict[str, Integers] = self.__dict__.setdefault("_times", {})
        if date_format not in cached:
            cached[date_format] = np.array([self._time(text, date_format) for text in self.texts], dtype=np.int64)
        return cached[date_format]

    def _time(self, text: str, date_format: str) -> int:
        if date_format == "clock":
            return of_day(text)
        if date_format == "iso":
            return moment(text)
        if date_format in (DAY_FIRST, MONTH_FIRST):
            return written_moment(text, date_format)
        if date_format in EPOCHS:
            return epoch(number(text), date_format)
        try:
            return microseconds(datetime.strptime(text, strptime_format(date_format)))
        except (ValueError, OverflowError):
            return NO_TIME


def epoch(value: float, date_format: str) -> int:
    """Microseconds since 1970 of a number of seconds, milliseconds or microseconds since then."""
    value *= EPOCHS[date_format]
    return int(value) if abs(value) < 2**62 else NO_TIME
