"""What the values of a column are, as evidence for its kind, and doubts about a kind that has been judged.

The kind of a column is the one that at least half of its values have. It is judged by the first ones, once there have
been 1, 10, 100 and 1,000 of them, or at once by a sample of as many from all over a file. Later, each value of another
kind speaks against it, and one of its own for it nine times as much. After 1,000 more against it than for it, the
column is judged again, by up to 1,000 of these values. So a column changes its kind if more than nine in ten values are
of another one for long enough, and at the same value however the rows are cut into chunks.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from devdan.arrays import Integers
from devdan.encoding import rows, values
from devdan.encoding.numerals import CURRENCIES, numeral
from devdan.encoding.rows import Numbers, Texts, Times
from devdan.encoding.values import NO_TIME, Form, Vocabulary

NUMBER, FLAG, NOMINAL, DATE, TIME = "number", "flag", "nominal", "date", "time"
KINDS = (NUMBER, FLAG, NOMINAL, DATE, TIME)
JUDGED_AT = (1, 10, 100, 1000)  # values after which the kind is judged
ENOUGH = 1000  # values against a kind, beyond those for it, after which it is judged again
_FOR = 9  # what a value for the kind weighs
_COUNTS = ("n", "flags", "numbers", "dates", "times", "days_first", "months_first", "commas", "points", "codes")
_CITED = ("word", "dressed", "ambiguous", "doubtful", "said")
_MAX_MARKS = 16  # currencies and units that are counted
_OWN = {  # what values of each kind look like
    NUMBER: (Form.NUMBER, Form.CODE, Form.FLAG),
    FLAG: (Form.NUMBER, Form.CODE, Form.FLAG),
    NOMINAL: (Form.WORD, Form.CODE),
    DATE: (Form.DATE,),
    TIME: (Form.TIME,),
}
_ALL = {kind: frozenset((*forms, Form.NOTHING)) for kind, forms in _OWN.items()}


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
    is_sample: bool = False  # whether the values are from all over a file
    n_judged: int = 0  # values by which the kind has been judged

    def count(self, column: rows.Column) -> None:
        """Count the values of a column, up to the last that is needed."""
        if self.is_complete:
            return
        if isinstance(column, Texts) and column.decimal:
            self.said = column.decimal
        there = np.flatnonzero(~column.missing)[: JUDGED_AT[-1] - self.n]
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
        text, form = vocabulary.texts[place], int(vocabulary.forms[place])
        if form == Form.FLAG:
            self.flags += count
        elif form == Form.WORD:  # cited alike whether or not a type says that it is one
            self.word = self.word or text
        elif declared:
            return
        elif form == Form.DATE:
            self.dates += count
            if values.moment(text) == NO_TIME:
                order = values.date_order(text)
                self.days_first += count * (order == values.DAY_FIRST)
                self.months_first += count * (order == values.MONTH_FIRST)
                self.doubtful = self.doubtful or (text if order == "?" else "")
        elif form == Form.TIME:
            self.times += count
        elif (found := numeral(text)) is not None:
            self.numbers += count
            self.commas += count * (found.separator == ",")
            self.points += count * (found.separator == ".")
            self.codes += count * (form == Form.CODE)
            if found.mark and (found.mark in self.marks or len(self.marks) < _MAX_MARKS):
                self.marks[found.mark] = self.marks.get(found.mark, 0) + count
            if not self.dressed and values.is_dressed(text):
                self.dressed = text
            if not self.ambiguous and found.separator[:1] == "?" and not self.said:
                self.ambiguous = text

    @property
    def is_complete(self) -> bool:
        """Whether no further values are needed."""
        return self.is_sample or self.n >= JUDGED_AT[-1]

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

    def copied(self) -> Evidence:
        """A copy that counts without changing the original."""
        return replace(self, marks=dict(self.marks))

    def without(self, text: str) -> None:
        """Cite this text no longer."""
        for cited in ("word", "dressed", "ambiguous", "doubtful"):
            if getattr(self, cited) == text:
                setattr(self, cited, "")

    def to_json(self) -> list[Any]:
        """The evidence as JSON, for a model file."""
        counts = [getattr(self, name) for name in _COUNTS]
        return [counts, sorted(self.marks.items()), [getattr(self, name) for name in _CITED], self.is_sample]

    @classmethod
    def of_json(cls, content: Any) -> Evidence:
        """Evidence from a model file; raises a ``ValueError`` or ``TypeError`` if it is invalid."""
        counts, marks, cited, is_sample = content
        evidence = cls(marks={str(mark): int(n) for mark, n in marks}, is_sample=bool(is_sample))
        for name, count in zip(_COUNTS, counts, strict=True):
            setattr(evidence, name, int(count))
        for name, text in zip(_CITED, cited, strict=True):
            setattr(evidence, name, str(text))
        evidence.n_judged = evidence.n
        if min(*counts, *evidence.marks.values(), 0) < 0 or evidence.n > JUDGED_AT[-1]:
            raise ValueError("the evidence for the kind of a column is out of range")
        return evidence


@dataclass
class Doubt:
    """What speaks against the kind of a column later on: how much, and the values since nothing did."""

    level: int = 0
    evidence: Evidence = field(default_factory=Evidence)

    def add(self, column: rows.Column, weights: Integers) -> int:
        """Count values up to the one with which there are enough against the kind; returns how many were counted.

        ``weights`` are those of :func:`weights_of`; no value is missing.
        """
        if self.level == 0 and not (weights > 0).any():
            return len(column)
        sums = self.level + np.cumsum(weights)
        levels = sums - np.minimum(np.minimum.accumulate(sums), 0)
        reached = np.flatnonzero(levels >= ENOUGH)
        end = int(reached[0]) + 1 if len(reached) else len(column)
        none = np.flatnonzero(levels[:end] == 0)
        begin = int(none[-1]) + 1 if len(none) else 0
        if len(none):
            self.evidence = Evidence()
        self.evidence.count(column[begin:end])
        self.level = int(levels[end - 1])
        return end

    def copied(self) -> Doubt:
        """A copy that counts without changing the original."""
        return Doubt(self.level, self.evidence.copied())

    def to_json(self) -> Any:
        """The doubt as JSON, for a model file; None if there is none."""
        return [self.level, self.evidence.to_json()] if self.level else None

    @classmethod
    def of_json(cls, content: Any) -> Doubt:
        """A doubt from a model file; raises a ``ValueError`` or ``TypeError`` if it is invalid."""
        if content is None:
            return cls()
        level, evidence = content
        doubt = cls(int(level), Evidence.of_json(evidence))
        if not 0 < doubt.level < ENOUGH or doubt.evidence.n == 0:
            raise ValueError("the doubt about the kind of a column is out of range")
        return doubt


def kind_of(column: rows.Column) -> str:
    """The kind that a column is judged to be by these values."""
    evidence = Evidence()
    evidence.count(column)
    return evidence.kind


def is_all(column: rows.Column, kind: str) -> bool:
    """Whether values are all of a kind, as far as that is found at once."""
    if isinstance(column, Texts):
        return column.vocabulary.forms_found <= _ALL[kind] or (column.declared and kind == NOMINAL)
    return kind == (TIME if column.clock else DATE) if isinstance(column, Times) else kind in (NUMBER, FLAG)


def weights_of(column: rows.Column, kind: str, known: Collection[str]) -> Integers:
    """What each value weighs against a kind: 1, or -9 for one of that kind; 0 for a word that is ``known``.

    A word that has an input among those of numbers, flags or dates is encoded as well as it would be otherwise, such as
    a sensor's ``offline``.
    """
    if isinstance(column, Texts):
        forms = column.vocabulary.forms
        weights = np.where(np.isin(forms, _OWN[kind]) | (column.declared and kind == NOMINAL), -_FOR, 1)
        if kind != NOMINAL and known:
            for place in np.flatnonzero(forms == Form.WORD).tolist():
                if column.vocabulary.texts[place] in known:
                    weights[place] = 0
        return np.asarray(weights[column.places])
    return np.full(len(column), -_FOR if is_all(column, kind) else 1)
