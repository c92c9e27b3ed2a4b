"""The encoding of one column: its kind and its inputs, added when they are needed.

How the kind is judged, and when it changes, is in :mod:`devdan.encoding.evidence`; what people are told about a column
in :mod:`devdan.encoding.column_notes`.

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
from devdan.encoding.evidence import (
    DATE,
    ENOUGH,
    FLAG,
    JUDGED_AT,
    KINDS,
    NOMINAL,
    NUMBER,
    TIME,
    Doubt,
    Evidence,
    is_all,
    weights_of,
)  # fmt: skip
from devdan.encoding.rows import Numbers, Texts, Times
from devdan.encoding.values import DAY, EPOCHS, NO_TIME

TIME_OF_DAY, DAY_OF_WEEK, DAY_OF_YEAR = "time of day", "day of week", "day of year"
PERIODS = {TIME_OF_DAY: DAY, DAY_OF_WEEK: 7 * DAY, DAY_OF_YEAR: 365 * DAY}  # in microseconds
WAVES = ("sine", "cosine")
_MAX_WORDS = 256  # words among numbers that are counted
RECURRING = 3  # times that a word must come among numbers, flags or dates to get an input
_MANY = 10  # values, none of which is as the user says
_MIN_COUNTER, _MAX_COUNTER = 100, 1000  # a number may be taken for a counter after and until this many values
_RARE = {200: 180, 1000: 500}  # texts, and how many of them must differ for values to count as recurring too rarely
SHARED = 4  # values of a nominal column share a quarter as many inputs as there are inputs of one value


class InputKey(NamedTuple):
    """Which input of its column: ``("number", "")``, ``("value", "Bonn")``, ``("shared", "3")``, ``("sine", "day of
    week")``; ``("open", "")`` keeps the place of a column that begins with missing values.
    """

    part: str
    of: str = ""


NUMERIC, OPEN = InputKey("number"), InputKey("open")


@dataclass(frozen=True)
class ColumnOptions:
    """What the user says about a column."""

    kind: str = ""  # nominal, numeric, date, drop or nothing
    date_format: str = "iso"
    max_categories: int = 64


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
    doubt: Doubt = field(default_factory=Doubt)
    inputs: dict[InputKey, int] = field(default_factory=dict)
    seen: SeenValues = field(default_factory=SeenValues)

    # --- Learning ------------------------------------------------------------------------------------------------

    def copied(self) -> ColumnEncoding:
        """A copy that learns without changing the original."""
        twin = copy.copy(self)
        twin.inputs, twin.words = dict(self.inputs), dict(self.words)
        twin.seen = replace(self.seen, distinct=set(self.seen.distinct))
        twin.evidence, twin.doubt = self.evidence.copied(), self.doubt.copied()
        return twin

    @property
    def is_settled(self) -> bool:
        """Whether known values, or any number if it is numeric, no longer change it."""
        if self.options.kind == "drop":
            return bool(self.left_out)
        if not self.options.kind and (not self.evidence.is_complete or self.doubt.level > 0):
            return False
        if self.left_out and (self.kind != NUMBER or self.seen.n >= _MAX_COUNTER):
            return True
        if self.kind == NUMBER:
            return NUMERIC in self.inputs and (bool(self.options.kind) or self.seen.n >= _MAX_COUNTER)
        if self.kind == FLAG:
            return NUMERIC in self.inputs
        return self.kind == NOMINAL and (bool(self.options.kind) or self.seen.n >= max(_RARE))

    def count(self, column: rows.Column) -> rows.Column:
        """Count values as evidence; returns those that come after what is needed, which may raise doubts."""
        if self.evidence.n == 0 and not self.options.kind and isinstance(column, Texts) and column.sample is not None:
            self.evidence.count(column.sample)
            self.evidence.is_sample = self.evidence.n > 0
        n_before = self.evidence.n
        if self.kind and self.evidence.is_complete and self.doubt.level == 0 and is_all(column, self.kind):
            return column[:0]
        self.evidence.count(column)
        return column[np.flatnonzero(~column.missing)[self.evidence.n - n_before :]]

    @property
    def knows_only_words(self) -> bool:
        """Whether no value of a column of words looks like something else, and may raise doubts about its kind."""
        if self.kind != NOMINAL or self.options.kind:
            return True
        return not self.left_out and not self.raises_doubt(rows.texts_of(self.values))

    def learn(
        self, column: rows.Column, later: rows.Column, is_new: bool, decimal: str = "."
    ) -> list[tuple[int, InputKey]]:
        """Learn from values that have been counted; returns the inputs still to be added.

        Each comes with the first row that needs it. ``later`` are the values that are no evidence, ``is_new``: these
        are the first rows. A column that begins with a missing value reserves one input. ``decimal`` is the decimal
        separator of other columns.
        """
        if self.options.kind == "drop":
            self.left_out = "dropped"
            return []
        wanted = [(0, OPEN)] if is_new and column[:1].missing.all() else []
        before = self.kind
        if not self.judged(column, decimal):
            return wanted
        self._doubt(later, decimal)
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
        if n_before >= JUDGED_AT[-1]:
            return True
        evidence.n_judged = evidence.n
        has_numbers = evidence.numbers + evidence.dates + evidence.flags > 0
        if self.kind == NUMBER and self.options.kind and n_before < _MANY <= evidence.n and not has_numbers:
            self._check_said(column)  # once more, since the first values may come in small pieces
        if bisect_right(JUDGED_AT, n_before) == bisect_right(JUDGED_AT, evidence.n):
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

    def raises_doubt(self, column: rows.Column) -> bool:
        """Whether there is a doubt after these values."""
        if self.options.kind or is_all(column, self.kind):
            return False
        there = column[np.flatnonzero(~column.missing)]
        return bool((weights_of(there, self.kind, self._words(there)) > 0).any())

    def _doubt(self, later: rows.Column, decimal: str) -> None:
        """Count values that speak for or against the kind, and judge it again when there are enough against it."""
        while len(later) > 0 and not self.options.kind:
            later = later[self.doubt.add(later, weights_of(later, self.kind, self._words(later))) :]
            if self.doubt.level >= ENOUGH:
                if self.doubt.evidence.kind != self.kind:
                    self.evidence, self.kind = self.doubt.evidence, self.doubt.evidence.kind
                    self.evidence.n_judged = self.evidence.n
                    self.decimal, self.date_order = self.evidence.decimal(decimal), self.evidence.date_order
                self.doubt = Doubt()

    def _words(self, column: rows.Column) -> set[str]:
        """The words of a column of numbers, flags or dates that have inputs of their own."""
        if self.kind == NOMINAL or not isinstance(column, Texts) or not (known := self._known()):
            return set()
        return {text for text in column.vocabulary.texts if self._folded(text) in known}

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
        if count < RECURRING and len(self.words) < _MAX_WORDS:
            self.words[text] = count
        return count >= RECURRING

    def _shared(self, text: str) -> InputKey:
        return InputKey("shared", str(values.bucket(text, max(self.options.max_categories // SHARED, 1))))

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
            for evidence in (twin.evidence, twin.doubt.evidence):
                evidence.without(text)
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
        known = Evidence(n=JUDGED_AT[-1], numbers=JUDGED_AT[-1], n_judged=JUDGED_AT[-1])
        return cls(name, options, NUMBER, inputs={NUMERIC: number}, seen=SeenValues(n=_MAX_COUNTER), evidence=known)

    def to_json(self) -> dict[str, Any]:
        """The column as JSON, for a model file."""
        seen = self.seen
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
            "evidence": self.evidence.to_json(),
            "doubt": self.doubt.to_json(),
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
        words = {str(word): int(n) for word, n in content["words"]}
        if min(words.values(), default=0) < 0:
            raise ValueError("the words of a column are out of range")
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
            words, Evidence.of_json(content["evidence"]), Doubt.of_json(content["doubt"]), inputs, seen,
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
