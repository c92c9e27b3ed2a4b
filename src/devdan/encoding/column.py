"""The encoding of one column: its kind, judged by its values, and its inputs, added when they are needed.

The kind is the one that at least half of the values have. It is judged by the first values at hand, and again once
there have been 10, 100 and 1,000: a column that begins with a few odd values changes its kind then.

- A **number** is one input, and so is a **flag** (true and yes are 1, false and no are 0).
- A **nominal** column has one input for each value: 1 where the column has that value, 0 elsewhere. Once there are
  ``max_categories`` of them, further values share a few inputs.
- A **date** or a **time** becomes a sine and a cosine, mapped to [0, 1], for each period (the time of day, the day of
  the week, the day of the year) that the values seen have spanned.
- A word in a column of numbers, flags or dates is missing. Once it has come three times it gets an input of its own,
  like a value of a nominal column.
- A number that only ever rises (a row number, an epoch) and a text whose values hardly recur (an id) are left out.
- Words that differ only in case are the same value.

Where a value is missing, or was never seen while learning, all inputs of the column are missing, which is neutral.
"""

from __future__ import annotations

import copy
import math
from bisect import bisect_right
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from devdan.arrays import Floats, Integers
from devdan.encoding import rows, values
from devdan.encoding.numerals import CURRENCIES, numeral
from devdan.encoding.rows import Numbers, Texts, Times
from devdan.encoding.values import DAY, EPOCHS, NO_TIME, Vocabulary

NUMBER, FLAG, NOMINAL, DATE, TIME = "number", "flag", "nominal", "date", "time"
KINDS = (NUMBER, FLAG, NOMINAL, DATE, TIME)
TIME_OF_DAY, DAY_OF_WEEK, DAY_OF_YEAR = "time of day", "day of week", "day of year"
PERIODS = {TIME_OF_DAY: DAY, DAY_OF_WEEK: 7 * DAY, DAY_OF_YEAR: 365 * DAY}  # in microseconds
WAVES = ("sine", "cosine")
_COUNTS = ("n", "flags", "numbers", "dates", "times", "days_first", "months_first", "commas", "points", "codes")
_CITED = ("word", "dressed", "ambiguous", "doubtful", "said")
_JUDGED_AT = (1, 10, 100, 1000)  # values after which the kind is judged
_MAX_MARKS, _MAX_WORDS = 16, 256  # currencies and units, and words among numbers, that are counted
_RECURRING = 3  # times that a word must come among numbers, flags or dates to get an input
_MANY = 10  # values, none of which is as the user says
_MIN_COUNTER, _MAX_COUNTER = 100, 1000  # a number may be taken for a counter after and until this many values
_RARE = {200: 180, 1000: 500}  # texts, and how many of them must differ for values to count as recurring too rarely
_SHARED = 4  # values of a nominal column share a quarter as many inputs as there are inputs of one value


class InputKey(NamedTuple):
    """Which input of its column: ``("number", "")``, ``("value", "Bonn")``, ``("shared", "3")``, ``("sine", "day of
    week")``; ``("open", "")`` keeps the place of a column that begins with missing values.
    """

    part: str
    of: str = ""


_A = {NUMBER: "a number", FLAG: "a flag", NOMINAL: "nominal", DATE: "a date", TIME: "a time"}
NUMERIC, OPEN = InputKey("number"), InputKey("open")


@dataclass(frozen=True)
class ColumnOptions:
    """What the user says about a column."""

    kind: str = ""  # nominal, numeric, date, drop or nothing
    date_format: str = "iso"
    max_categories: int = 64


@dataclass
class Evidence:
    """What the first values were, by which the kind of the column is judged."""

    n: int = 0
    flags: int = 0
    numbers: int = 0
    dates: int = 0
    times: int = 0
    days_first: int = 0  # dates whose day must be before the month
    months_first: int = 0  # and those whose month must be before the day
    commas: int = 0  # numbers whose comma must be a decimal one
    points: int = 0  # and those whose point must
    codes: int = 0  # numbers that begin with a needless zero, as codes do
    marks: dict[str, int] = field(default_factory=dict)  # how many numbers had which currency or unit
    word: str = ""  # the first text that is nothing else
    dressed: str = ""  # the first number that a program would not write
    ambiguous: str = ""  # the first number whose comma or point may be a decimal one
    doubtful: str = ""  # the first date whose day or month may be the first
    said: str = ""  # the decimal sign, if the user has said it
    n_judged: int = 0  # values by which the kind has been judged

    def count(self, column: rows.Column) -> None:
        """Count the values of a column, up to the last that is needed."""
        if self.n >= _JUDGED_AT[-1]:
            return
        if isinstance(column, Texts) and column.decimal:
            self.said = column.decimal
        there = np.flatnonzero(~column.missing)[: _JUDGED_AT[-1] - self.n]
        self.n += len(there)
        if isinstance(column, Numbers):
            if column.flags:
                self.flags += len(there)
            else:
                self.numbers += len(there)
        elif isinstance(column, Times):
            if column.clock:
                self.times += len(there)
            else:
                self.dates += len(there)
        else:
            texts = column[there]
            counts = np.bincount(texts.places, minlength=len(column.vocabulary)).tolist()
            for place in texts.in_order()[0]:
                self._count_text(column.vocabulary, place, counts[place], column.declared)

    def _count_text(self, vocabulary: Vocabulary, place: int, count: int, declared: bool) -> None:
        text = vocabulary.texts[place]
        found = numeral(text)
        if not math.isnan(vocabulary.flags[place]):
            self.flags += count
        elif declared:  # the same word is cited whether or not a type says that it is one
            others = (found is not None, values.date_order(text), values.moment(text) != NO_TIME)
            if not any(others) and values.of_day(text) == NO_TIME:
                self.word = self.word or text
        elif found is not None:
            self.numbers += count
            self.commas += count * (found.separator == ",")
            self.points += count * (found.separator == ".")
            self.codes += count * (len(text) > 1 and text[0] == "0" and text.isdigit())
            if found.mark and (found.mark in self.marks or len(self.marks) < _MAX_MARKS):
                self.marks[found.mark] = self.marks.get(found.mark, 0) + count
            if not self.dressed and values.is_dressed(text):
                self.dressed = text
            if not self.ambiguous and found.separator[:1] == "?" and not self.said:
                self.ambiguous = text
        elif values.moment(text) != NO_TIME or (order := values.date_order(text)):
            self.dates += count
            if values.moment(text) == NO_TIME:
                self.days_first += count * (order == values.DAY_FIRST)
                self.months_first += count * (order == values.MONTH_FIRST)
                self.doubtful = self.doubtful or (text if order == "?" else "")
        elif values.of_day(text) != NO_TIME:
            self.times += count
        else:
            self.word = self.word or text

    @property
    def kind(self) -> str:
        """The kind that at least half of the values have; otherwise nominal.

        Numbers of several units are no quantity, as in the seats 12A and 12F; several currencies are. Nor are 007 and
        such beside words.
        """
        money = sum(count for mark, count in self.marks.items() if mark in CURRENCIES)
        units = [count for mark, count in self.marks.items() if mark not in CURRENCIES]
        alike = self.numbers - money - sum(units) + max([money, *units])
        alike -= self.codes if self.of(NOMINAL) > 0 else 0
        found = {FLAG: self.flags, NUMBER: alike, DATE: self.dates, TIME: self.times}
        most = max(found, key=lambda kind: found[kind])
        return most if 2 * found[most] >= self.n else NOMINAL

    def decimal(self, of_table: str) -> str:
        """The decimal separator of numbers that do not tell it themselves; ``of_table`` is that of other columns."""
        if self.said:
            return self.said
        return of_table if self.commas == self.points else "," if self.commas > self.points else "."

    @property
    def date_order(self) -> str:
        """The order of dates that do not tell it themselves."""
        return values.MONTH_FIRST if self.months_first > self.days_first else values.DAY_FIRST

    def of(self, kind: str) -> int:
        """How many values were of this kind."""
        counts = {FLAG: self.flags, NUMBER: self.numbers, DATE: self.dates, TIME: self.times}
        return counts.get(kind, self.n - sum(counts.values()))


@dataclass
class SeenValues:
    """Statistics of the values seen, to find counters, ids and the span of dates."""

    n: int = 0  # values that were not missing
    rises: int = 0
    falls: int = 0
    last: float = math.nan
    distinct: set[str] = field(default_factory=set)  # of the first texts
    earliest: int = 0
    latest: int = 0
    varies: bool = False  # whether the times of day differ


@dataclass
class ColumnEncoding:
    """The encoding of a column. ``inputs`` are its inputs and their numbers, which are never used for another input."""

    name: str
    options: ColumnOptions = ColumnOptions()
    kind: str = ""  # none until the first value
    left_out: str = ""  # the reason
    decimal: str = "."  # where a number does not tell it itself
    date_order: str = values.DAY_FIRST  # where a date does not
    before: str = ""  # the kind that it was taken for at first
    odd: str = ""  # a word in a column of numbers, flags or dates
    respelled: str = ""  # a value in another case than when it first came
    words: dict[str, int] = field(default_factory=dict)  # how often such words have come, while they have no input
    evidence: Evidence = field(default_factory=Evidence)
    inputs: dict[InputKey, int] = field(default_factory=dict)
    seen: SeenValues = field(default_factory=SeenValues)

    # --- Learning ------------------------------------------------------------------------------------------------

    def copied(self) -> ColumnEncoding:
        """A copy that learns without changing the original."""
        twin = copy.copy(self)
        twin.inputs, twin.words = dict(self.inputs), dict(self.words)
        twin.seen = replace(self.seen, distinct=set(self.seen.distinct))
        twin.evidence = replace(self.evidence, marks=dict(self.evidence.marks))
        return twin

    @property
    def is_settled(self) -> bool:
        """Whether known values, or any number if it is numeric, no longer change it."""
        if self.options.kind == "drop":
            return bool(self.left_out)
        if not self.options.kind and self.evidence.n < _JUDGED_AT[-1]:
            return False
        if self.left_out and (self.kind != NUMBER or self.seen.n >= _MAX_COUNTER):
            return True
        if self.kind == NUMBER:
            return NUMERIC in self.inputs and (bool(self.options.kind) or self.seen.n >= _MAX_COUNTER)
        if self.kind == FLAG:
            return NUMERIC in self.inputs
        return self.kind == NOMINAL and (bool(self.options.kind) or self.seen.n >= max(_RARE))

    def learn(self, column: rows.Column, is_new: bool, decimal: str = ".") -> list[tuple[int, InputKey]]:
        """Learn from values that count as evidence already; returns the inputs still to be added.

        Each comes with the first row that needs it. ``is_new``: these are the first rows. A column that begins with a
        missing value reserves one input. ``decimal`` is the decimal separator of other columns.
        """
        if self.options.kind == "drop":
            self.left_out = "dropped"
            return []
        wanted = [(0, OPEN)] if is_new and column[:1].missing.all() else []
        before = self.kind
        if not self.judged(column, decimal):
            return wanted
        if before not in ("", self.kind):
            self.before, self.left_out, self.seen = before, "", SeenValues()
            self.inputs.clear()
            self.words.clear()
            self.odd = self.evidence.word if self.kind != NOMINAL else ""
            wanted = [(0, OPEN)] if self.kind in (DATE, TIME) else []
        numbers, times, words = self.read(column)
        needed: list[tuple[int, InputKey]] = []
        if numbers is not None:
            needed += self._learn_numbers(numbers)
        if times is not None:
            needed += self._learn_times(times)
        if words is not None:
            needed += self._learn_words(words)
        if self.left_out:
            self.inputs.clear()
            return []
        needed.sort(key=lambda need: need[0])
        if OPEN in self.inputs and needed:
            self.inputs[needed.pop(0)[1]] = self.inputs.pop(OPEN)
        elif wanted and needed:
            needed[0] = (0, needed[0][1])
        else:
            needed = wanted + needed
        return needed

    def judged(self, column: rows.Column, decimal: str = ".") -> bool:
        """Judge the kind of the column by what has been counted, if it is time to; returns whether it is known."""
        evidence, n_before = self.evidence, self.evidence.n_judged
        if n_before >= _JUDGED_AT[-1]:
            return True
        evidence.n_judged = evidence.n
        has_numbers = evidence.numbers + evidence.dates + evidence.flags > 0
        if self.kind == NUMBER and self.options.kind and n_before < _MANY <= evidence.n and not has_numbers:
            self._check_said(column)  # once more, since the first values may come in small pieces
        if bisect_right(_JUDGED_AT, n_before) == bisect_right(_JUDGED_AT, evidence.n):
            return bool(self.kind)
        self.decimal, self.date_order = evidence.decimal(decimal), evidence.date_order
        if not self.options.kind:
            self.kind = evidence.kind
            return True
        is_first = not self.kind
        self.kind = {"nominal": NOMINAL, "numeric": NUMBER, "date": DATE}[self.options.kind]
        if is_first:
            self._check_said(column)
        return True

    def _check_said(self, column: rows.Column) -> None:
        """Raise a ``ValueError`` if the first values are nothing of what the user says."""
        numbers, times, words = self.read(column)
        if words is None or (numbers is not None and not np.isnan(numbers).all()):
            return
        if times is not None and (times != NO_TIME).any():
            return
        value = words.objects()[words.in_order()[1][0]]
        if self.kind == DATE:
            raise ValueError(
                f"the column {self.name!r} is said to hold dates ({self.options.date_format}), but begins with "
                f"{value!r}; say how they are written, such as dd/mm/yyyy or epoch"
            )
        if self.kind == NUMBER and self.evidence.n >= _MANY:
            raise ValueError(
                f"the column {self.name!r} is said to be numeric, but none of its first {self.evidence.n:,} values is "
                f"a number, such as {value!r}"
            )

    def _learn_numbers(self, numbers: Floats) -> list[tuple[int, InputKey]]:
        seen = self.seen
        if self.kind == NUMBER and not self.options.kind and seen.n < _MAX_COUNTER:
            there = numbers[~np.isnan(numbers)][: _MAX_COUNTER - seen.n]
            if len(there) > 0:
                steps = np.diff(there, prepend=there[0] if math.isnan(seen.last) else seen.last)
                seen.n += len(there)
                seen.rises += int((steps > 0).sum())
                seen.falls += int((steps < 0).sum())
                seen.last = float(there[-1])
            rising = seen.n >= _MIN_COUNTER and seen.falls == 0 and 2 * seen.rises >= seen.n
            self.left_out = "it only ever rises, as row numbers and clocks do" if rising else ""
        if NUMERIC in self.inputs or self.left_out:
            return []
        return [(_first(~np.isnan(numbers)), NUMERIC)]

    def _learn_words(self, words: Texts) -> list[tuple[int, InputKey]]:
        if self.kind == NOMINAL and not self.options.kind:
            self._look_for_rare(words)
        if self.left_out:
            return []
        if self.kind != NOMINAL:
            there = words.in_order()[0]  # of these rows, none may have a word
            self.odd = self.odd or (words.vocabulary.texts[there[0]] if len(there) > 0 else "")
            if self.options.kind:
                return []
            counts = np.bincount(words.places[words.places >= 0], minlength=len(words.vocabulary))
        known = self._known()
        n_values, needed = len(known), []
        for place, row in zip(*words.in_order(), strict=True):
            text = words.vocabulary.texts[place]
            folded = self._folded(text)
            if folded in known:
                self.respelled = self.respelled or (text if known[folded].of != text else "")
                continue
            if self.kind != NOMINAL and not self._recurs(text, int(counts[place])):
                continue
            if n_values < self.options.max_categories:
                key, n_values = InputKey("value", text), n_values + 1
            else:
                key = self._shared(folded)
                if key in self.inputs or key in known:
                    continue
            known[folded if key.part == "value" else key] = key
            needed.append((row, key))
        return needed

    def _known(self) -> dict[str | InputKey, InputKey]:
        """The values with an input of their own, by what is the same to the column."""
        return {self._folded(key.of): key for key in self.inputs if key.part == "value"}

    def _folded(self, text: str) -> str:
        """A word in one case, as people write it in several; not codes, nor what the user says to be nominal."""
        is_word = not self.options.kind and text.replace(" ", "").isalpha() and len(text) > 2
        return text.casefold() if is_word else text

    def _look_for_rare(self, words: Texts) -> None:
        """Leave the column out if its values hardly recur, as ids and names of customers."""
        seen = self.seen
        there = words.places[words.places >= 0]
        for n, least in _RARE.items():
            if seen.n < n and len(there) > 0:
                some, there = there[: n - seen.n], there[n - seen.n :]
                seen.n += len(some)
                seen.distinct.update(words.vocabulary.texts[place] for place in np.unique(some).tolist())
                if seen.n == n and not self.left_out and len(seen.distinct) >= least:
                    said = "it is nearly unique, as ids are" if n < max(_RARE) else "its values hardly recur"
                    self.left_out = f"{said}: {len(seen.distinct):,} different texts in its first {n:,}"
                if seen.n == max(_RARE):
                    seen.distinct = set()

    def _recurs(self, text: str, count: int) -> bool:
        """Whether a word has come often enough among numbers, flags or dates, now that it has come again."""
        count += self.words.pop(text, 0)
        if count < _RECURRING and len(self.words) < _MAX_WORDS:
            self.words[text] = count
        return count >= _RECURRING

    def _shared(self, text: str) -> InputKey:
        return InputKey("shared", str(values.bucket(text, max(self.options.max_categories // _SHARED, 1))))

    def _learn_times(self, times: Integers) -> list[tuple[int, InputKey]]:
        """Add the inputs of each period that the dates now span."""
        seen, places = self.seen, np.flatnonzero(times != NO_TIME)
        there = times[places]
        if len(there) == 0:
            return []
        if self.kind == TIME:
            needed = [(int(places[0]), InputKey(wave, TIME_OF_DAY)) for wave in WAVES]
            return [need for need in needed if need[1] not in self.inputs]
        if seen.n == 0:
            seen.earliest = seen.latest = int(there[0])
        latest = np.maximum.accumulate(np.maximum(there, seen.latest))
        earliest = np.minimum.accumulate(np.minimum(there, seen.earliest))
        varies = np.logical_or.accumulate((there - seen.earliest) % DAY != 0) | seen.varies
        needed = []
        for part, period in PERIODS.items():
            spans = latest.astype(np.float64) - earliest >= period
            spans = spans & varies if part == TIME_OF_DAY else spans
            if InputKey("sine", part) not in self.inputs and spans.any():
                needed += [(int(places[_first(spans)]), InputKey(wave, part)) for wave in WAVES]
        seen.n += len(there)
        seen.latest, seen.earliest, seen.varies = int(latest[-1]), int(earliest[-1]), bool(varies[-1])
        return needed

    def without(self, column: rows.Column) -> ColumnEncoding:
        """A copy that knows the words of these values no longer."""
        twin, words = self.copied(), rows.as_texts(column)
        for text in {words.vocabulary.texts[place] for place in words.places.tolist() if place >= 0}:
            for key in [key for folded, key in twin._known().items() if folded == twin._folded(text)]:
                del twin.inputs[key]
            twin.words.pop(text, None)
            for cited in ("odd", "respelled"):
                if getattr(twin, cited) == text:
                    setattr(twin, cited, "")
            for cited in ("word", "dressed", "ambiguous", "doubtful"):
                if getattr(twin.evidence, cited) == text:
                    setattr(twin.evidence, cited, "")
            if text in twin.seen.distinct:
                twin.seen.distinct.remove(text)
                twin.seen.n -= 1
        return twin

    def unlike(self, column: rows.Column) -> str:
        """What a value looks like, if most are of another kind than the column has been learned as."""
        if not self.inputs or (isinstance(column, Numbers) and self.kind in (NUMBER, FLAG)) or column.missing.all():
            return ""
        if self.kind == NOMINAL:
            is_known = isinstance(column, Texts) or not self._known().keys().isdisjoint(
                rows.as_texts(column).vocabulary.texts
            )
            return "" if is_known else str(column[~column.missing].objects()[0])
        numbers, times, words = self.read(column)
        n_alike = 0 if numbers is None else np.count_nonzero(~np.isnan(numbers))
        n_alike += 0 if times is None else np.count_nonzero(times != NO_TIME)
        if 2 * n_alike >= np.count_nonzero(~column.missing):
            return ""
        found = [] if words is None else [words.vocabulary.texts[place] for place in words.in_order()[0]]
        return found[0] if found and self._known().keys().isdisjoint(map(self._folded, found)) else ""

    # --- Use -----------------------------------------------------------------------------------------------------

    def fill(self, column: rows.Column, X: Floats, places: dict[int, int]) -> None:
        """Write the inputs of each row into X, which is zero; ``places`` are the columns of X, by an input's number."""
        if not self.inputs:
            return
        own = np.array([places[number] for number in self.inputs.values()])
        numbers, times, words = self.read(column) if self.kind else (None, None, None)
        neutral = np.ones(len(column), dtype=bool)
        if numbers is not None and NUMERIC in self.inputs:
            X[:, places[self.inputs[NUMERIC]]] = numbers
            if len(own) == 1:
                return
            neutral &= np.isnan(numbers)
        if times is not None:
            there = times != NO_TIME
            neutral &= ~there
            for (part, of), number in self.inputs.items():
                if part in WAVES:
                    X[there, places[number]] = wave(times[there], part, of)
        if words is not None:
            table = np.full(len(words.vocabulary) + 1, -1)
            known_words = self._known()
            for place in words.in_order()[0]:
                folded = self._folded(words.vocabulary.texts[place])
                known_as = self.inputs.get(known_words.get(folded) or self._shared(folded))
                if known_as is not None:
                    table[place] = places[known_as]
            found = table[words.places]
            known = found >= 0
            X[known, found[known]] = 1.0
            if NUMERIC in self.inputs:
                X[known, places[self.inputs[NUMERIC]]] = np.nan
            for (part, _), number in self.inputs.items():
                if part in WAVES:
                    X[known, places[number]] = np.nan
            neutral &= ~known
        X[np.ix_(neutral, own)] = np.nan

    def read(self, column: rows.Column) -> tuple[Floats | None, Integers | None, Texts | None]:
        """The values as numbers, times and words; each row is at most one of them, or missing."""
        if self.kind in (NUMBER, FLAG):
            return self._read_numbers(column)
        if self.kind in (DATE, TIME):
            return self._read_times(column)
        texts = rows.as_texts(column)
        return None, None, _without(texts, texts.vocabulary.missing)

    def _read_numbers(self, column: rows.Column) -> tuple[Floats | None, None, Texts | None]:
        if isinstance(column, Numbers):
            return column.values, None, None
        if isinstance(column, Times):
            if self.options.kind != "numeric":
                return np.full(len(column), np.nan), None, rows.as_texts(column)
            return np.where(column.missing, np.nan, column.values / 1e6), None, None
        meant = column.vocabulary.quantities(self.decimal)
        if self.options.kind == "numeric":  # dates too
            times = column.vocabulary.times(self.date_order)
            meant = np.where(np.isnan(meant) & (times != NO_TIME), times / 1e6, meant)
        numbers = np.append(meant, np.nan)[column.places]
        return numbers, None, _without(column, column.vocabulary.missing | ~np.isnan(meant))

    def _read_times(self, column: rows.Column) -> tuple[None, Integers | None, Texts | None]:
        date_format = "clock" if self.kind == TIME else self.options.date_format
        date_format = self.date_order if date_format == "iso" else date_format
        if isinstance(column, Times) and column.clock == (self.kind == TIME):
            return None, column.values, None
        if isinstance(column, Numbers) and date_format in EPOCHS:
            scaled = column.values * EPOCHS[date_format]
            there = np.abs(scaled) < 2.0**62
            return None, np.where(there, np.where(there, scaled, 0).astype(np.int64), NO_TIME), None
        texts = rows.as_texts(column)
        times = np.append(texts.vocabulary.times(date_format), NO_TIME)
        return None, times[texts.places], _without(texts, texts.vocabulary.missing | (times[:-1] != NO_TIME))

    # --- Files ---------------------------------------------------------------------------------------------------

    @classmethod
    def of_number(cls, name: str, number: int, options: ColumnOptions) -> ColumnEncoding:
        """A column that is known to hold numbers; ``number`` is that of its input."""
        known = Evidence(n=_JUDGED_AT[-1], numbers=_JUDGED_AT[-1], n_judged=_JUDGED_AT[-1])
        return cls(name, options, NUMBER, inputs={NUMERIC: number}, seen=SeenValues(n=_MAX_COUNTER), evidence=known)

    def to_json(self) -> dict[str, Any]:
        """The column as JSON, for a model file."""
        seen, evidence = self.seen, self.evidence
        return {
            "name": self.name,
            "options": [self.options.kind, self.options.date_format, self.options.max_categories],
            "kind": self.kind,
            "left_out": self.left_out,
            "decimal": self.decimal,
            "date_order": self.date_order,
            "before": self.before,
            "odd": self.odd,
            "respelled": self.respelled,
            "words": sorted(self.words.items()),
            "evidence": [*(getattr(evidence, name) for name in _COUNTS), sorted(evidence.marks.items())],
            "cited": [getattr(evidence, name) for name in _CITED],
            "inputs": [[*key, number] for key, number in self.inputs.items()],
            "seen": [
                seen.n, seen.rises, seen.falls, None if math.isnan(seen.last) else seen.last,
                sorted(seen.distinct), seen.earliest, seen.latest, seen.varies,
            ],
        }  # fmt: skip

    @classmethod
    def of_json(cls, content: Any) -> ColumnEncoding:
        """A column from a model file; raises a ``ValueError``, ``TypeError`` or ``KeyError`` if it is invalid."""
        kind, date_format, max_categories = content["options"]
        options = ColumnOptions(str(kind), str(date_format), int(max_categories))
        is_valid = options.max_categories >= 1 and values.is_date_format(options.date_format)
        if content["kind"] not in ("", *KINDS) or not is_valid:
            raise ValueError("a column is of no known kind")
        inputs = {InputKey(str(part), str(of)): int(number) for part, of, number in content["inputs"]}
        n, rises, falls, last, distinct, earliest, latest, varies = content["seen"]
        seen = SeenValues(
            int(n), int(rises), int(falls), math.nan if last is None else float(last), {str(text) for text in distinct},
            int(earliest), int(latest), bool(varies),
        )  # fmt: skip
        if min(seen.n, seen.rises, seen.falls) < 0 or max(abs(seen.earliest), abs(seen.latest)) >= 2**63:
            raise ValueError("the statistics of a column are out of range")
        *counts, marks = content["evidence"]
        evidence = Evidence(marks={str(mark): int(n) for mark, n in marks})
        for name, count in zip(_COUNTS, counts, strict=True):
            setattr(evidence, name, int(count))
        for name, text in zip(_CITED, content["cited"], strict=True):
            setattr(evidence, name, str(text))
        evidence.n_judged = evidence.n
        words = {str(word): int(n) for word, n in content["words"]}
        if min(*counts, *words.values(), *evidence.marks.values(), 0) < 0 or evidence.n > _JUDGED_AT[-1]:
            raise ValueError("the evidence for the kind of a column is out of range")
        orders = (values.DAY_FIRST, values.MONTH_FIRST)
        if content["decimal"] not in (".", ",") or content["date_order"] not in orders:
            raise ValueError("a column has no known decimal separator, or order of dates")
        if content["before"] not in ("", *KINDS):
            raise ValueError("a column was of no known kind")
        left_out, decimal, date_order, before, odd, respelled = (
            str(content[word]) for word in ("left_out", "decimal", "date_order", "before", "odd", "respelled")
        )
        column = cls(
            str(content["name"]), options, content["kind"], left_out, decimal, date_order, before, odd, respelled,
            words, evidence, inputs, seen,
        )  # fmt: skip
        if not column._has_its_inputs():
            raise ValueError(f"the column {column.name!r} has other inputs than one of its kind")
        return column

    def _has_its_inputs(self) -> bool:
        """Whether the inputs are such as learning gives to a column of this kind."""
        own = set(self.inputs)
        if self.left_out:
            return not own
        if own == {OPEN}:
            return self.kind not in (NUMBER, FLAG)
        waves = {key for key in own if key.part in WAVES}
        words = {key for key in own if key.part in ("value", "shared")}
        if self.kind in (NUMBER, FLAG):
            return own - words == {NUMERIC}
        if self.kind in (DATE, TIME):
            periods = {key.of for key in waves}
            known = set(PERIODS) if self.kind == DATE else {TIME_OF_DAY}
            return periods <= known and waves == {InputKey(part, of) for part in WAVES for of in periods} == own - words
        return own == (words if self.kind == NOMINAL else set())

    # --- Description ---------------------------------------------------------------------------------------------

    @property
    def values(self) -> list[str]:
        """The values that have an input of their own."""
        return [key.of for key in self.inputs if key.part == "value"]

    @property
    def periods(self) -> list[str]:
        """The periods of its dates and times that are used."""
        return [key.of for key in self.inputs if key.part == "sine"]

    @property
    def n_shared(self) -> int:
        """The number of inputs that further values share."""
        return sum(key.part == "shared" for key in self.inputs)

    def input_name(self, key: InputKey) -> str:
        part, of = key
        if part in WAVES:
            return f"{self.name}: {of} ({part})"
        return {"value": f"{self.name}={of}", "shared": f"{self.name}=others {of}"}.get(part, self.name)

    def in_words(self) -> str:
        """The kind of the column and its values, for people."""
        if self.left_out:
            return f"left out: {self.left_out}"
        if not self.kind:
            return "no value yet"
        said = self.kind
        if self.kind == NUMBER and self.evidence.dressed:
            said += f", written as text such as {self.evidence.dressed!r}"
        if self.kind in (DATE, TIME):
            said += ": " + (", ".join(self.periods) or "does not span a day yet")
        known = self.values
        if known:
            listed = ", ".join(repr(value) if "," in value else value for value in known[:6])
            listed += ", …" if len(known) > 6 else ""
            said += f": {len(known)} values ({listed})" if self.kind == NOMINAL else f", and words: {listed}"
        if self.odd:
            n, n_odd = self.evidence.n, self.evidence.n - self.evidence.of(self.kind)
            if n_odd == 1:
                said += f"; 1 of its first {n:,} values is none: {self.odd[:40]!r}"
            elif n_odd:
                said += f"; {n_odd:,} of its first {n:,} values are none, such as {self.odd[:40]!r}"
        if self.n_shared:
            said += f", further ones share {self.n_shared} inputs"
        return said

    def notes(self) -> list[str]:
        """What the user should know about the column."""
        name, said = self.name, []
        if self.left_out and not self.options.kind:
            way = "numeric" if self.kind == NUMBER else "nominal"
            said.append(f"the column {name!r} is left out: {self.left_out}; {way}=[{name!r}] (--{way}) keeps it")
        if self.before:
            said.append(
                f"the column {name!r} was taken for {_A[self.before]} at first, and is now read as {_A[self.kind]}"
            )
        if self.odd:
            said.append(
                f"the column {name!r} holds {self.kind}s, but also words such as {self.odd[:40]!r}, which are missing"
                + ("" if self.options.kind else f" or, once one has come {_RECURRING} times, inputs of their own")
            )
        if self.kind == NUMBER:
            said += self._notes_on_numbers()
        if self.kind == DATE and self.evidence.doubtful and self.options.date_format == "iso":
            said += self._notes_on_dates()
        if self.respelled:
            said.append(
                f"the column {name!r} has words in several cases, such as {self.respelled[:40]!r}, which are taken for "
                f"the same; nominal=[{name!r}] (--nominal) tells them apart"
            )
        if self.n_shared:
            n = self.options.max_categories
            said.append(f"the column {name!r} has more than {n} values; further ones share {n // _SHARED} inputs")
        return said

    def _notes_on_numbers(self) -> list[str]:
        name, evidence = self.name, self.evidence
        said = []
        if evidence.dressed:
            said.append(f"the column {name!r} is read as numbers, written as text such as {evidence.dressed!r}")
        if len(evidence.marks) > 1:
            listed = ", ".join(sorted(evidence.marks)[:4])
            said.append(f"the column {name!r} has several currencies or units ({listed}), which are not told apart")
        is_usual = "," not in evidence.ambiguous and self.decimal == "."  # 1.234, as programs write it
        if evidence.ambiguous and evidence.commas == evidence.points and not is_usual:
            read = values.plain_text(values.number(evidence.ambiguous, self.decimal))
            sign = "comma" if "," in evidence.ambiguous else "point"
            why = f"nothing says whether the {sign} is a decimal one"
            if self.decimal == ",":
                why = "other columns have decimal commas"
            said.append(
                f"the column {name!r} has numbers such as {evidence.ambiguous!r}, read as {read}: {why}; "
                "decimal= (--decimal) says it"
            )
        return said

    def _notes_on_dates(self) -> list[str]:
        if self.evidence.days_first != self.evidence.months_first:
            return []
        other = "mm/dd/yyyy"
        return [
            f"the column {self.name!r} has dates such as {self.evidence.doubtful!r}, read with the day first: nothing "
            f"says so; dates={{{self.name!r}: {other!r}}} (--dates {self.name}={other}) reads the month first"
        ]


def _first(there: npt.NDArray[np.bool_]) -> int:
    return int(np.argmax(there))


def _without(texts: Texts, removed: npt.NDArray[np.bool_]) -> Texts | None:
    """The texts without some of the vocabulary, or None if no row has any left."""
    places = np.where(np.append(removed, True)[texts.places], -1, texts.places)
    return None if (places < 0).all() else Texts(places, texts.vocabulary, texts.declared)


def wave(times: Integers, kind: str, period: str) -> Floats:
    """The sine or cosine of each time's position in the period, mapped to [0, 1]."""
    if period == DAY_OF_YEAR:
        years = times.view("M8[us]").astype("M8[Y]")
        begin, end = (year.astype("M8[us]").view(np.int64) for year in (years, years + 1))
        position = (times - begin) / (end - begin)
    else:
        start = 3 * DAY if period == DAY_OF_WEEK else 0  # 1970 began on a Thursday
        position = (times + start) % PERIODS[period] / PERIODS[period]
    angle = 2.0 * math.pi * position
    return np.asarray(0.5 + 0.5 * (np.sin(angle) if kind == "sine" else np.cos(angle)))
