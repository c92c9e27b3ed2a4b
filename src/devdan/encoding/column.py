"""The encoding of one column: its kind, found from its first value, and its inputs, added when they are needed.

- A **number** is one input, and so is a **flag** (true and yes are 1, false and no are 0).
- A **nominal** column has one input for each value: 1 where the column has that value, 0 elsewhere. Once there are
  ``max_categories`` of them, further values share a few inputs.
- A **date** or a **time** becomes a sine and a cosine, mapped to [0, 1], for each period (the time of day, the day of
  the week, the day of the year) that the values seen have spanned.
- A word in a column of numbers, flags or dates gets an input of its own, like a value of a nominal column.
- A number that only ever rises (a row number, an epoch) and a text that is nearly unique (an id) are left out.

Where a value is missing, or was never seen while learning, all inputs of the column are missing, which is neutral.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from devdan.arrays import Floats, Integers
from devdan.encoding import rows, values
from devdan.encoding.rows import Numbers, Texts, Times
from devdan.encoding.values import DAY, EPOCHS, NO_TIME

NUMBER, FLAG, NOMINAL, DATE, TIME = "number", "flag", "nominal", "date", "time"
KINDS = (NUMBER, FLAG, NOMINAL, DATE, TIME)
TIME_OF_DAY, DAY_OF_WEEK, DAY_OF_YEAR = "time of day", "day of week", "day of year"
PERIODS = {TIME_OF_DAY: DAY, DAY_OF_WEEK: 7 * DAY, DAY_OF_YEAR: 365 * DAY}  # in microseconds
WAVES = ("sine", "cosine")
_MIN_COUNTER, _MAX_COUNTER = 100, 1000  # a number may be taken for a counter after and until this many values
_LOOKED_AT, _MIN_DISTINCT = 200, 198  # texts looked at to find an id, and how many of them must differ
_SHARED = 4  # values of a nominal column share a quarter as many inputs as there are inputs of one value


class InputKey(NamedTuple):
    """Which input of its column: ``("number", "")``, ``("value", "Bonn")``, ``("shared", "3")``, ``("sine", "day of
    week")``; ``("open", "")`` is a placeholder for a column that begins with missing values.
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
    example: str = ""  # of a number written as money, a percentage or with thousands
    odd: str = ""  # a word in a column of numbers, flags or dates
    inputs: dict[InputKey, int] = field(default_factory=dict)
    seen: SeenValues = field(default_factory=SeenValues)

    # --- Learning ------------------------------------------------------------------------------------------------

    def copied(self) -> ColumnEncoding:
        """A copy that learns without changing the original."""
        twin = copy.copy(self)
        twin.inputs, twin.seen = dict(self.inputs), copy.copy(self.seen)
        twin.seen.distinct = set(self.seen.distinct)
        return twin

    @property
    def is_settled(self) -> bool:
        """Whether known values, or any number if it is numeric, no longer change it."""
        if self.left_out and (self.kind != NUMBER or self.seen.n >= _MAX_COUNTER):
            return True
        if self.kind == NUMBER:
            return NUMERIC in self.inputs and (bool(self.options.kind) or self.seen.n >= _MAX_COUNTER)
        if self.kind == FLAG:
            return NUMERIC in self.inputs
        return self.kind == NOMINAL and (bool(self.options.kind) or self.seen.n >= _LOOKED_AT)

    def learn(self, column: rows.Column, is_new: bool) -> list[tuple[int, InputKey]]:
        """Learn from values; returns the inputs still to be added, each with the first row that needs it.

        ``is_new``: these are the first rows. A column that begins with a missing value reserves one input.
        """
        if self.options.kind == "drop":
            self.left_out = "dropped"
            return []
        wanted = [(0, OPEN)] if is_new and column[:1].missing.all() else []
        if not self.decided(column):
            return wanted
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

    def decided(self, column: rows.Column) -> bool:
        """Whether the kind of the column is known, which these values may decide."""
        if not self.kind:
            missing = column.missing
            if missing.all():
                return False
            self._decide(column, int(np.argmin(missing)))
        return True

    def _decide(self, column: rows.Column, row: int) -> None:
        """Find the kind of the column from its first value."""
        if self.options.kind:
            self.kind = {"nominal": NOMINAL, "numeric": NUMBER, "date": DATE}[self.options.kind]
            if self.kind == DATE:
                _, times, _ = self.read(column)
                if times is None or times[row] == NO_TIME:
                    value = column[row : row + 1].objects()[0]
                    raise ValueError(
                        f"the column {self.name!r} is said to hold dates ({self.options.date_format}), but begins with "
                        f"{value!r}; say how they are written, such as dd/mm/yyyy or epoch"
                    )
        elif isinstance(column, Times):
            self.kind = TIME if column.clock else DATE
        elif isinstance(column, Numbers):
            self.kind = FLAG if column.flags else NUMBER
        else:
            text = column.vocabulary.texts[column.places[row]]
            self.kind = NOMINAL
            if not math.isnan(values.flag(text)):
                self.kind = FLAG
            elif column.declared:
                pass
            elif not math.isnan(values.number(text)):
                self.kind, self.example = NUMBER, text if values.is_dressed(text) else ""
            elif values.moment(text) != NO_TIME:
                self.kind = DATE
            elif values.of_day(text) != NO_TIME:
                self.kind = TIME

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
        seen, needed = self.seen, []
        if self.kind == NOMINAL and not self.options.kind and seen.n < _LOOKED_AT:
            there = words.places[words.places >= 0][: _LOOKED_AT - seen.n]
            seen.n += len(there)
            seen.distinct.update(words.vocabulary.texts[place] for place in there.tolist())
            if seen.n == _LOOKED_AT:
                if len(seen.distinct) >= _MIN_DISTINCT:
                    n = len(seen.distinct)
                    self.left_out = f"it is nearly unique, as ids are: {n} different texts in its first {seen.n}"
                seen.distinct = set()
        if self.left_out:
            return []
        n_values = sum(key.part == "value" for key in self.inputs)
        new: set[InputKey] = set()
        for place, row in zip(*words.in_order(), strict=True):
            text = words.vocabulary.texts[place]
            key = InputKey("value", text)
            if key in self.inputs or key in new:
                continue
            if n_values >= self.options.max_categories:
                key = self._shared(text)
                if key in self.inputs or key in new:
                    continue
            else:
                n_values += 1
            new.add(key)
            needed.append((row, key))
            if self.kind != NOMINAL and not self.odd:
                self.odd = text
        return needed

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
            twin.inputs.pop(InputKey("value", text), None)
            twin.example, twin.odd = ("" if cited == text else cited for cited in (twin.example, twin.odd))
            if text in twin.seen.distinct:
                twin.seen.distinct.remove(text)
                twin.seen.n -= 1
        return twin

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
            for place in words.in_order()[0]:
                text = words.vocabulary.texts[place]
                shared = self.inputs.get(self._shared(text))
                known_as = self.inputs.get(InputKey("value", text), shared)
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
        meant = column.vocabulary.flags
        if self.options.kind == "numeric":  # dates too
            times = column.vocabulary.times("iso")
            meant = np.where(np.isnan(meant) & (times != NO_TIME), times / 1e6, meant)
        numbers = np.append(meant, np.nan)[column.places]
        if self.options.kind == "numeric":
            return numbers, None, None
        return numbers, None, _without(column, column.vocabulary.missing | ~np.isnan(meant))

    def _read_times(self, column: rows.Column) -> tuple[None, Integers | None, Texts | None]:
        date_format = "clock" if self.kind == TIME else self.options.date_format
        if isinstance(column, Times) and column.clock == (self.kind == TIME):
            return None, column.values, None
        if isinstance(column, Numbers) and date_format in EPOCHS:
            scaled = column.values * EPOCHS[date_format]
            there = np.abs(scaled) < 2.0**62
            return None, np.where(there, np.where(there, scaled, 0).astype(np.int64), NO_TIME), None
        texts = rows.as_texts(column)
        times = np.append(texts.vocabulary.times(date_format), NO_TIME)
        if self.options.kind == "date":
            return None, times[texts.places], None
        return None, times[texts.places], _without(texts, texts.vocabulary.missing | (times[:-1] != NO_TIME))

    # --- Files ---------------------------------------------------------------------------------------------------

    @classmethod
    def of_number(cls, name: str, number: int, options: ColumnOptions) -> ColumnEncoding:
        """A column that is known to hold numbers; ``number`` is that of its input."""
        return cls(name, options, NUMBER, inputs={NUMERIC: number}, seen=SeenValues(n=_MAX_COUNTER))

    def to_json(self) -> dict[str, Any]:
        """The column as JSON, for a model file."""
        seen = self.seen
        return {
            "name": self.name,
            "options": [self.options.kind, self.options.date_format, self.options.max_categories],
            "kind": self.kind,
            "left_out": self.left_out,
            "example": self.example,
            "odd": self.odd,
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
        left_out, example, odd = (str(content[word]) for word in ("left_out", "example", "odd"))
        column = cls(str(content["name"]), options, content["kind"], left_out, example, odd, inputs, seen)
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
        if self.example:
            said += f", written as text such as {self.example!r}"
        if self.kind in (DATE, TIME):
            said += ": " + (", ".join(self.periods) or "does not span a day yet")
        known = self.values
        if known:
            listed = ", ".join(repr(value) if "," in value else value for value in known[:6])
            listed += ", …" if len(known) > 6 else ""
            said += f": {len(known)} values ({listed})" if self.kind == NOMINAL else f", and words: {listed}"
        if self.n_shared:
            said += f", further ones share {self.n_shared} inputs"
        return said

    def notes(self) -> list[str]:
        """What the user should know about the column."""
        name, said = self.name, []
        if self.left_out and not self.options.kind:
            way = "numeric" if self.kind == NUMBER else "nominal"
            said.append(f"the column {name!r} is left out: {self.left_out}; {way}=[{name!r}] (--{way}) keeps it")
        if self.example:
            said.append(f"the column {name!r} is read as numbers, written as text such as {self.example!r}")
        if self.odd:
            said.append(f"the column {name!r} holds {self.kind}s, but also words such as {self.odd[:40]!r}")
        if self.n_shared:
            n = self.options.max_categories
            said.append(f"the column {name!r} has more than {n} values; further ones share {n // _SHARED} inputs")
        return said


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
