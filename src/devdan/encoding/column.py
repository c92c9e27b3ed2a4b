"""What becomes of one column of a table: its kind, found from its first value, and its inputs, added when needed.

- A **number** is one input, and so is a **flag** (true and yes are 1, false and no are 0).
- A **nominal** column has an input for each value, which is 1 where the column has that value and 0 elsewhere. Once
  there are ``max_categories`` of them, further values share a few inputs.
- Of a **date** or a **time**, what repeats becomes a sine and a cosine, mapped to [0, 1], as soon as the dates seen
  span the period.
- A word in a column of numbers, flags or dates gets an input of its own, as a value of a nominal column does.
- A number that only ever rises (a row number, an epoch) and a text that is nearly unique (an id) are left out.

Where a value is missing, or was never seen in learning, all inputs of the column are missing, which is neutral.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from devdan.arrays import Floats, Words
from devdan.encoding import rows, values
from devdan.encoding.periods import PERIODS, TIME_OF_DAY, WAVES, wave
from devdan.encoding.rows import Numbers, Texts, Times
from devdan.encoding.values import DAY, EPOCHS, NO_TIME

NUMBER, FLAG, NOMINAL, DATE, TIME = "number", "flag", "nominal", "date", "time"
KINDS = (NUMBER, FLAG, NOMINAL, DATE, TIME)
_SEEN_RISING, _WATCHED = 100, 1000  # values of a number after which it may be a counter, and until which it is watched
_SEEN_DIFFERENT, _DIFFERENT = 200, 198  # values of a nominal column that are looked at, and how many make it an id
_SHARED = 4  # values of a nominal column have a quarter as many shared inputs as inputs of their own


class Key(NamedTuple):
    """Which input of its column: ``("number", "")``, ``("value", "Bonn")``, ``("shared", "3")``, ``("sine", "day of
    week")``; ``("open", "")`` as long as nothing is known but that there will be one.
    """

    part: str
    of: str = ""


NUMERIC, OPEN = Key("number"), Key("open")


@dataclass(frozen=True)
class Told:
    """What the user says about a column."""

    kind: str = ""  # nominal, numeric, date, drop or nothing
    spelled: str = "iso"  # how dates are written
    max_categories: int = 64


@dataclass
class Watch:
    """What is kept of the values seen, to find counters, ids and spans."""

    n: int = 0  # values that were not missing
    rises: int = 0
    falls: int = 0
    last: float = math.nan
    different: set[str] = field(default_factory=set)  # of the first texts
    earliest: int = 0
    latest: int = 0
    varies: bool = False  # whether the times of day differ


@dataclass
class ColumnEncoding:
    """The encoding of a column. ``inputs`` are its inputs and their numbers, which no other input ever has had."""

    name: str
    told: Told = Told()
    kind: str = ""  # none until the first value
    left_out: str = ""  # the reason
    example: str = ""  # of a number dressed as text
    odd: str = ""  # a word in a column of numbers, flags or dates
    inputs: dict[Key, int] = field(default_factory=dict)
    watch: Watch = field(default_factory=Watch)

    # --- Learning ------------------------------------------------------------------------------------------------

    def copied(self) -> ColumnEncoding:
        """A copy that can learn without changing the original."""
        twin = copy.copy(self)
        twin.inputs, twin.watch = dict(self.inputs), copy.copy(self.watch)
        if len(self.watch.different) < _SEEN_DIFFERENT:
            twin.watch.different = set(self.watch.different)
        return twin

    @property
    def is_settled(self) -> bool:
        """Whether values that it knows, or numbers if it is numeric, can teach it nothing."""
        if self.left_out and (self.kind != NUMBER or self.watch.n >= _WATCHED):
            return True
        if self.kind == NUMBER:
            return NUMERIC in self.inputs and (bool(self.told.kind) or self.watch.n >= _WATCHED)
        if self.kind == FLAG:
            return NUMERIC in self.inputs
        return self.kind == NOMINAL and (bool(self.told.kind) or self.watch.n >= _SEEN_DIFFERENT)

    def learn(self, column: rows.Column, is_new: bool) -> list[tuple[int, Key]]:
        """Learn from values; returns the inputs that are needed and not there yet, with the row that needs each.

        ``is_new``: these are the first rows. A column that begins with a missing value holds a place for one input.
        """
        if self.told.kind == "drop":
            self.left_out = "as told"
            return []
        wanted = [(0, OPEN)] if is_new and column[:1].missing.all() else []
        if not self.decided(column):
            return wanted
        numbers, times, words = self.read(column)
        needed: list[tuple[int, Key]] = []
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
        """Whether the kind of the column is known, now that it has these values."""
        if not self.kind:
            missing = column.missing
            if missing.all():
                return False
            self._decide(column, int(np.argmin(missing)))
        return True

    def _decide(self, column: rows.Column, row: int) -> None:
        """Find the kind of the column from its first value."""
        told = self.told.kind
        if told:
            self.kind = {"nominal": NOMINAL, "numeric": NUMBER, "date": DATE}[told]
            if told == "date":
                _, times, _ = self.read(column)
                if times is None or times[row] == NO_TIME:
                    value = column[row : row + 1].objects()[0]
                    raise ValueError(
                        f"the column {self.name!r} is said to hold dates ({self.told.spelled}), but begins with "
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

    def _learn_numbers(self, numbers: Floats) -> list[tuple[int, Key]]:
        watch = self.watch
        if self.kind == NUMBER and not self.told.kind and watch.n < _WATCHED:
            there = numbers[~np.isnan(numbers)][: _WATCHED - watch.n]
            if len(there) > 0:
                steps = np.diff(there, prepend=there[0] if math.isnan(watch.last) else watch.last)
                watch.n += len(there)
                watch.rises += int((steps > 0).sum())
                watch.falls += int((steps < 0).sum())
                watch.last = float(there[-1])
            rising = watch.n >= _SEEN_RISING and watch.falls == 0 and 2 * watch.rises >= watch.n
            self.left_out = "it only ever rises, as row numbers and clocks do" if rising else ""
        if NUMERIC in self.inputs or self.left_out:
            return []
        return [(_first(~np.isnan(numbers)), NUMERIC)]

    def _learn_words(self, words: Texts) -> list[tuple[int, Key]]:
        watch, needed = self.watch, []
        if self.kind == NOMINAL and not self.told.kind and watch.n < _SEEN_DIFFERENT:
            there = words.places[words.places >= 0][: _SEEN_DIFFERENT - watch.n]
            watch.n += len(there)
            watch.different.update(words.vocabulary.texts[place] for place in there.tolist())
            if watch.n == _SEEN_DIFFERENT:
                if len(watch.different) >= _DIFFERENT:
                    n = len(watch.different)
                    self.left_out = f"it is nearly unique, as ids are: {n} different texts in its first {watch.n}"
                watch.different = set()
        if self.left_out:
            return []
        n_values = sum(key.part == "value" for key in self.inputs)
        new: set[Key] = set()
        for place, row in zip(*words.in_order(), strict=True):
            text = words.vocabulary.texts[place]
            key = Key("value", text)
            if key in self.inputs or key in new:
                continue
            if n_values >= self.told.max_categories:
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

    def _shared(self, text: str) -> Key:
        return Key("shared", str(values.bucket(text, max(self.told.max_categories // _SHARED, 1))))

    def _learn_times(self, times: Words) -> list[tuple[int, Key]]:
        """Find when the dates first span a period."""
        watch, places = self.watch, np.flatnonzero(times != NO_TIME)
        there = times[places]
        if len(there) == 0:
            return []
        if self.kind == TIME:
            needed = [(int(places[0]), Key(wave, TIME_OF_DAY)) for wave in WAVES]
            return [need for need in needed if need[1] not in self.inputs]
        if watch.n == 0:
            watch.earliest = watch.latest = int(there[0])
        latest = np.maximum.accumulate(np.maximum(there, watch.latest))
        earliest = np.minimum.accumulate(np.minimum(there, watch.earliest))
        varies = np.logical_or.accumulate((there - watch.earliest) % DAY != 0) | watch.varies
        needed = []
        for part, period in PERIODS.items():
            spans = latest.astype(np.float64) - earliest >= period
            spans = spans & varies if part == TIME_OF_DAY else spans
            if Key("sine", part) not in self.inputs and spans.any():
                needed += [(int(places[_first(spans)]), Key(wave, part)) for wave in WAVES]
        watch.n += len(there)
        watch.latest, watch.earliest, watch.varies = int(latest[-1]), int(earliest[-1]), bool(varies[-1])
        return needed

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
                known_as = self.inputs.get(Key("value", text), shared)
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

    def read(self, column: rows.Column) -> tuple[Floats | None, Words | None, Texts | None]:
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
            if self.told.kind != "numeric":
                return np.full(len(column), np.nan), None, rows.as_texts(column)
            return np.where(column.missing, np.nan, column.values / 1e6), None, None
        meant = column.vocabulary.flags
        if self.told.kind == "numeric":  # dates too
            times = column.vocabulary.times("iso")
            meant = np.where(np.isnan(meant) & (times != NO_TIME), times / 1e6, meant)
        numbers = np.append(meant, np.nan)[column.places]
        if self.told.kind == "numeric":
            return numbers, None, None
        return numbers, None, _without(column, column.vocabulary.missing | ~np.isnan(meant))

    def _read_times(self, column: rows.Column) -> tuple[None, Words | None, Texts | None]:
        spelled = "clock" if self.kind == TIME else self.told.spelled
        if isinstance(column, Times) and column.clock == (self.kind == TIME):
            return None, column.values, None
        if isinstance(column, Numbers) and spelled in EPOCHS:
            scaled = column.values * EPOCHS[spelled]
            there = np.abs(scaled) < 2.0**62
            return None, np.where(there, np.where(there, scaled, 0).astype(np.int64), NO_TIME), None
        texts = rows.as_texts(column)
        times = np.append(texts.vocabulary.times(spelled), NO_TIME)
        if self.told.kind == "date":
            return None, times[texts.places], None
        return None, times[texts.places], _without(texts, texts.vocabulary.missing | (times[:-1] != NO_TIME))

    # --- Words about it ------------------------------------------------------------------------------------------

    @property
    def values(self) -> list[str]:
        """The values that have an input of their own."""
        return [key.of for key in self.inputs if key.part == "value"]

    @property
    def periods(self) -> list[str]:
        """What of its dates and times is used."""
        return [key.of for key in self.inputs if key.part == "sine"]

    @property
    def n_shared(self) -> int:
        """The number of inputs that further values share."""
        return sum(key.part == "shared" for key in self.inputs)

    def input_name(self, key: Key) -> str:
        """The name of an input."""
        part, of = key
        if part in WAVES:
            return f"{self.name}: {of} ({part})"
        return {"value": f"{self.name}={of}", "shared": f"{self.name}=others {of}"}.get(part, self.name)

    def in_words(self) -> str:
        """In words what has become of the column."""
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
        """What the user should know."""
        name, said = self.name, []
        if self.left_out and not self.told.kind:
            way = "numeric" if self.kind == NUMBER else "nominal"
            said.append(f"the column {name!r} is left out: {self.left_out}; {way}=[{name!r}] (--{way}) keeps it")
        if self.example:
            said.append(f"the column {name!r} is read as numbers, written as text such as {self.example!r}")
        if self.odd:
            said.append(f"the column {name!r} holds {self.kind}s, but also words such as {self.odd[:40]!r}")
        if self.n_shared:
            n = self.told.max_categories
            said.append(f"the column {name!r} has more than {n} values; further ones share {n // _SHARED} inputs")
        return said


def _first(there: npt.NDArray[np.bool_]) -> int:
    return int(np.argmax(there))


def _without(texts: Texts, removed: npt.NDArray[np.bool_]) -> Texts | None:
    """The texts that are left, or None if none is."""
    places = np.where(np.append(removed, True)[texts.places], -1, texts.places)
    return None if (places < 0).all() else Texts(places, texts.vocabulary, texts.declared)


def of_number(name: str, number: int, told: Told) -> ColumnEncoding:
    """A column that is known to hold numbers."""
    return ColumnEncoding(name, told, NUMBER, inputs={NUMERIC: number}, watch=Watch(n=_WATCHED))
