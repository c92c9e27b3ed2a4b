"""What operators watch: each class by the clock, and whether columns are what they were; all follows from the log.

Counts of classes are under the time of the prediction, also where the label came later. A column has shifted by how far
its recent mean is from the mean of all rows, in standard deviations; a column of texts or flags by the share of recent
rows that would have to be others for its values to be as frequent as among all.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from devdan.service.schema import Value

PERIOD = 300.0  # seconds
MOST_PERIODS = 288  # a day of them
_HOUR = 12  # of them
MOST_COLUMNS = 100
FEW = 100  # rows, from which a shift is told
_MEMORY = 0.998  # of what is recent, per row: some 500 rows
_STEPS, _TINIEST = 8, 1e-12  # log-odds are counted in steps of 1/8; probabilities are between this and 1 less this
_KINDS = 16  # into which texts are sorted, by their hash


class ClassCount(msgspec.Struct, array_like=True):
    """Of a class: rows called so, those of them that have labels, rows of the class that were predicted, and hits."""

    called: int = 0
    judged: int = 0
    actual: int = 0
    hits: int = 0

    def add(self, other: ClassCount) -> None:
        """Add other counts of the class."""
        self.called, self.judged = self.called + other.called, self.judged + other.judged
        self.actual, self.hits = self.actual + other.actual, self.hits + other.hits

    @property
    def recall(self) -> float | None:
        return self.hits / self.actual if self.actual else None

    @property
    def precision(self) -> float | None:
        return self.hits / self.judged if self.judged else None


class ClassCounts(msgspec.Struct, array_like=True):
    """Counts of each class, by its name as text, and all rows."""

    n_rows: int = 0
    classes: dict[str, ClassCount] = {}

    def of(self, name: str) -> ClassCount:
        return self.classes.setdefault(name, ClassCount())

    def rows(self, predicted: Sequence[str | None]) -> None:
        """Rows came, and were called this."""
        self.n_rows += len(predicted)
        for name in predicted:
            if name is not None:
                self.of(name).called += 1

    def label(self, predicted: str, label: str, before: str | None = None) -> None:
        """A label came for a prediction, or replaces the one ``before``."""
        if before is None:
            self.of(predicted).judged += 1
        else:
            self.of(before).actual -= 1
            self.of(before).hits -= before == predicted
        self.of(label).actual += 1
        self.of(label).hits += label == predicted


class ByTheClock(msgspec.Struct):
    """Counts since the beginning, and of the periods of the latest day by their number since 1970.

    >>> counts = ByTheClock()
    >>> counts.rows(600.0, ["ok", "fraud"])
    >>> counts.label(600.0, "fraud", "ok")
    >>> counts.total.classes["fraud"].precision, list(counts.periods)
    (0.0, [2])
    """

    total: ClassCounts = msgspec.field(default_factory=ClassCounts)
    periods: dict[int, ClassCounts] = {}

    def rows(self, at: float, predicted: Sequence[str | None]) -> None:
        number = int(at // PERIOD)
        own = self.periods.setdefault(number, ClassCounts())
        for oldest in [one for one in self.periods if one <= number - MOST_PERIODS]:
            del self.periods[oldest]
        own.rows(predicted)
        self.total.rows(predicted)

    def hour(self, number: int) -> dict[str, ClassCount]:
        """The counts of each class within the hour that ends with this period."""
        found: dict[str, ClassCount] = {}
        for one in range(number - _HOUR + 1, number + 1):
            for name, own in self.periods.get(one, ClassCounts()).classes.items():
                found.setdefault(name, ClassCount()).add(own)
        return found

    @property
    def commonest(self) -> float | None:
        """The share of the labels that are of the commonest class: the accuracy of always calling that."""
        actual = [one.actual for one in self.total.classes.values()]
        return max(actual) / sum(actual) if any(actual) else None

    def label(self, at: float, predicted: str, label: str, before: str | None = None) -> None:
        """A label of a row that came at a time; of one before the latest day only the total counts."""
        self.total.label(predicted, label, before)
        own = self.periods.get(int(at // PERIOD))
        if own is not None:
            own.label(predicted, label, before)


class JudgedRow(msgspec.Struct, array_like=True):
    """Of a row with a label: what it was called, its label, and the probability of what it was called."""

    predicted: str
    label: str
    confidence: float


class ScoreCounts(msgspec.Struct, array_like=True):
    """Outcomes of a stream of two classes, counted by what was called, the label, and the log-odds in steps of 1/8.

    >>> counts = ScoreCounts()
    >>> for predicted, label in (("fraud", "fraud"), ("ok", "fraud"), ("ok", "ok")):
    ...     counts.add(JudgedRow(predicted, label, 0.9))
    >>> counts.rarest, counts.average_precision("ok"), round(counts.log_loss, 2)
    ('ok', 0.5, 0.85)
    """

    counts: dict[str, dict[str, dict[int, int]]] = {}

    def add(self, outcome: JudgedRow, n: int = 1) -> None:
        """Count an outcome; with -1, one that was counted does not count any more."""
        odds = min(max(outcome.confidence, _TINIEST), 1.0 - _TINIEST)
        cell = round(_STEPS * math.log(odds / (1.0 - odds)))
        cells = self.counts.setdefault(outcome.predicted, {}).setdefault(outcome.label, {})
        cells[cell] = cells.get(cell, 0) + n
        if cells[cell] == 0:
            del cells[cell]

    def _cells(self) -> Iterator[tuple[str, str, int, int]]:
        for predicted, by_label in self.counts.items():
            for label, cells in by_label.items():
                for cell, n in cells.items():
                    yield predicted, label, cell, n

    @property
    def rarest(self) -> str | None:
        """The class that fewer rows have; None unless there are labels of just two classes."""
        counts: dict[str, int] = {}
        for predicted, label, _, n in self._cells():
            counts[label] = counts.get(label, 0) + n
            counts.setdefault(predicted, 0)
        both = len(counts) == 2 and all(counts.values())
        return min(counts, key=lambda name: (counts[name], name)) if both else None

    def average_precision(self, name: str) -> float:
        """The precision at each threshold of a class, weighted by the recall that it adds."""
        at: dict[int, list[int]] = {}
        for predicted, label, cell, n in self._cells():
            own = at.setdefault(cell if predicted == name else -cell, [0, 0])
            own[0] += n * (label == name)
            own[1] += n
        hits = alarms = 0
        area = 0.0
        for cell in sorted(at, reverse=True):
            hits, alarms = hits + at[cell][0], alarms + at[cell][1]
            area += at[cell][0] * hits / alarms
        return area / hits

    @property
    def log_loss(self) -> float:
        """The mean of -log(p), where p is the probability of the label."""
        cells = [(cell if predicted == label else -cell, n) for predicted, label, cell, n in self._cells()]
        return math.fsum(n * math.log1p(math.exp(-cell / _STEPS)) for cell, n in cells) / sum(n for _, n in cells)


class ColumnCount(msgspec.Struct, array_like=True):
    """Values of a column: how many, how many missing, their mean and spread, or kinds; of all rows, and recently."""

    n: int = 0
    missing: int = 0
    recently_missing: float = 0.0  # a weighted sum, as is what follows
    recent: float = 0.0  # weights of the recent rows
    n_numbers: int = 0
    mean: float = 0.0
    square: float = 0.0  # sum of squared deviations
    recent_numbers: float = 0.0
    recent_sum: float = 0.0
    kinds: list[int] = []  # of texts and flags
    recent_kinds: list[float] = []

    def add(self, values: Sequence[Value]) -> None:
        """Values of rows that came together."""
        n, faded = len(values), _MEMORY ** len(values)
        weight = (1.0 - faded) / n  # of each
        numbers = [float(value) for value in values if isinstance(value, (int, float)) and not isinstance(value, bool)]
        numbers = [value for value in numbers if math.isfinite(value)]
        texts = [value for value in values if isinstance(value, (str, bool))]
        n_missing = n - len(numbers) - len(texts)
        self.n, self.missing = self.n + n, self.missing + n_missing
        self.recently_missing = faded * self.recently_missing + weight * n_missing
        self.recent = faded * self.recent + weight * n
        self.recent_numbers = faded * self.recent_numbers + weight * len(numbers)
        self.recent_sum = faded * self.recent_sum + weight * math.fsum(numbers)
        for value in numbers:  # Welford
            self.n_numbers += 1
            step = value - self.mean
            self.mean += step / self.n_numbers
            self.square += step * (value - self.mean)
        if texts and not self.kinds:
            self.kinds, self.recent_kinds = [0] * _KINDS, [0.0] * _KINDS
        if self.kinds:
            self.recent_kinds = [faded * own for own in self.recent_kinds]
            for text in texts:
                kind = zlib.crc32(str(text).encode("utf-8", "surrogatepass")) % _KINDS
                self.kinds[kind] += 1
                self.recent_kinds[kind] += weight

    @property
    def share_missing(self) -> float | None:
        return self.missing / self.n if self.n else None

    @property
    def share_missing_recently(self) -> float | None:
        return self.recently_missing / self.recent if self.recent else None

    @property
    def shift(self) -> float | None:
        """Of a column of numbers, in standard deviations; None of one that does not vary, or of few rows."""
        if self.n_numbers < FEW or self.recent_numbers == 0.0 or self.square <= 0.0:
            return None
        return (self.recent_sum / self.recent_numbers - self.mean) / math.sqrt(self.square / self.n_numbers)

    @property
    def share_shifted(self) -> float | None:
        """Of a column of texts or flags: the share of recent ones that would have to be others."""
        n, recent = sum(self.kinds), math.fsum(self.recent_kinds)
        if n < FEW or recent == 0.0:
            return None
        pairs = zip(self.kinds, self.recent_kinds, strict=True)
        return 0.5 * math.fsum(abs(own / n - latest / recent) for own, latest in pairs)


def count_columns(columns: list[ColumnCount], rows: Iterable[Sequence[Value]]) -> None:
    """Count the values of rows in the first columns."""
    for place, values in enumerate(zip(*rows, strict=True)):
        if place >= MOST_COLUMNS:
            return
        if place == len(columns):
            columns.append(ColumnCount())
        columns[place].add(values)
