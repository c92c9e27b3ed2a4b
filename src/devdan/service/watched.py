"""What operators watch: each class by the clock, and whether columns are what they were; all follows from the log.

Counts of classes are under the time of the prediction, also where the label came later. A column has shifted by how far
its recent mean is from the mean of all rows, in standard deviations; a column of texts or flags by the share of recent
rows that would have to be others for its values to be as frequent as among all.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
import numpy as np

from devdan.evaluation import measures
from devdan.evaluation.alerts import CostCount
from devdan.evaluation.counts import Confusion
from devdan.evaluation.histograms import NOT_SCORED, Curve, Ranking, Scored
from devdan.evaluation.measures import Measure
from devdan.evaluation.record import Measured
from devdan.model.decision import text_of
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
    >>> counts.counts["ok"]
    {'fraud': {18: 1}, 'ok': {18: 1}}
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

    def cells(self) -> Iterator[tuple[str, str, int, int]]:
        """What was called, the label, the step of the log-odds, and how many outcomes."""
        for predicted, by_label in self.counts.items():
            for label, cells in by_label.items():
                for cell, n in cells.items():
                    yield predicted, label, cell, n


class _Odds(Ranking):
    """The order of counted log-odds of two classes; a few hundred steps, for which nothing needs to be compiled."""

    def __init__(self, at: list[dict[int, list[int]]]) -> None:
        self._at = at  # of each class, rows of it and all rows, by the step of its log-odds

    def curve(self, c: int) -> Curve | None:
        places = sorted(self._at[c], reverse=True) if c < len(self._at) else []
        counts = [self._at[c][place] for place in places]
        hits, alarms = (np.cumsum([own[k] for own in counts], dtype=np.int64) for k in (0, 1))
        return Curve(np.array(places), hits, alarms) if places and 0 < hits[-1] < alarms[-1] else None


class Outcomes(Measured):
    """Measures of outcomes, as those of runs. Probabilities tell something of two classes; costs are those of a stream.

    >>> counts = ScoreCounts()
    >>> for predicted, label in (("fraud", "fraud"), ("ok", "fraud"), ("ok", "ok")):
    ...     counts.add(JudgedRow(predicted, label, 0.9))
    >>> outcomes = Outcomes(counts, {"fraud": {"missed": 30, "false": 1}})
    >>> outcomes.rarer, outcomes.roc_auc, round(outcomes.log_loss, 2), outcomes.cost
    ('ok', 0.75, 0.85, 10.0)
    """

    alerts = None

    def __init__(self, counts: ScoreCounts, decide: Any = None, classes: Sequence[Any] = ()) -> None:
        """``classes`` are those of the model, of which there may be more."""
        cells = list(counts.cells())
        self.names = list(dict.fromkeys(name for pair in cells for name in pair[:2]))
        self.n_classes = len(self.names)
        place = {name: c for c, name in enumerate(self.names)}
        pairs = [(place[label], place[predicted], n) for predicted, label, _, n in cells]
        self.confusion = Confusion.of(pairs)
        labels = {text_of(label): label for label in classes}
        count = CostCount.by(decide) if pairs else None
        self.costs = None if count is None else count.of_chunk(pairs, [labels.get(name, name) for name in self.names])
        self._ranking, self._sums = _Odds([]), NOT_SCORED
        if self.n_classes == 2:
            self._score([(place[predicted], place[label], cell, n) for predicted, label, cell, n in cells])

    def _score(self, cells: list[tuple[int, int, int, int]]) -> None:
        at: list[dict[int, list[int]]] = [{}, {}]
        loss = squares = 0.0
        for predicted, label, cell, n in cells:
            for c in (0, 1):
                own = at[c].setdefault(cell if predicted == c else -cell, [0, 0])
                own[0] += n * (label == c)
                own[1] += n
            odds = math.exp((-cell if predicted == label else cell) / _STEPS)  # of what the label is not
            loss += n * math.log1p(odds)
            squares += 2 * n * (odds / (1.0 + odds)) ** 2
        self._ranking, self._sums = _Odds(at), Scored(sum(n for *_, n in cells), loss, squares, "")

    @property
    def ranking(self) -> Ranking:
        return self._ranking

    @property
    def sums(self) -> Scored:
        return self._sums

    @property
    def rarer(self) -> str | None:
        """The class that fewer rows have; None unless there are labels of just two classes."""
        actual = [self.confusion.actual.get(c, 0) for c in range(self.n_classes)]
        both = self.n_classes == 2 and all(actual)
        return min(self.names, key=lambda name: (actual[self.names.index(name)], name)) if both else None

    def watched(self, name: str | None) -> dict[Measure, float]:
        """The measures that operators watch, as far as they are defined; where each class has one, that of this one."""
        found: dict[Measure, float] = {}
        for measure in WATCHED:
            value = measure.value(self) if measure.value else None
            if isinstance(value, list):
                value = value[self.names.index(name)] if name in self.names else None
            if value is not None:
                found[measure] = value
        return found


_NAMES = {"average_precision": "Average precision", "cost": "Cost per row"}  # where they differ from titles
_WATCHED = "average_precision", "roc_auc", "log_loss", "brier", "mcc", "cost"
WATCHED = {measure: _NAMES.get(key, measure.title) for key in _WATCHED for measure in [measures.of_key(key)]}


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
