"""A bounded number of points over time, however many chunks a run has, and their moving means."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from devdan.evaluation.counts import Confusion
from devdan.evaluation.record import Phases, Record, Summary, together

MOST_POINTS = 2000  # enough to zoom in, few enough for a page that opens at once
MOST_CLASS_POINTS = 200  # fewer than of the accuracy, since there may be many classes
MOST_COLUMN_POINTS = 500  # more than any run asks for
MOST_PARTS = 320  # enough for parts of equal length


@dataclass(frozen=True)
class Bin:
    """One chunk, or several in a row, as one point of a chart."""

    start: int
    end: int
    n_chunks: int
    hits: int
    n_scored: int
    low: float | None  # the chunks' lowest and highest accuracy
    high: float | None
    same: int  # samples whose label equals the previous one
    compared: int
    growths: Phases | None
    prunings: Phases | None
    drifts: Phases | None
    n_hidden: int | None  # this and the next two: after the last chunk
    bias2: Phases | None
    variance: Phases | None
    class_drifts: Counter[Any] = field(default_factory=Counter)  # of the real drifts, those of a single class

    @classmethod
    def of(cls, record: Record) -> Bin:
        """A single chunk."""
        confusion = record.confusion
        return cls(
            start=record.start,
            end=record.start + record.n_samples,
            n_chunks=1,
            hits=sum(confusion.hits.values()),
            n_scored=confusion.n_samples,
            low=record.accuracy,
            high=record.accuracy,
            same=record.no_change[0],
            compared=record.no_change[1],
            growths=record.growths,
            prunings=record.prunings,
            drifts=record.drifts,
            class_drifts=record.class_drifts,
            n_hidden=record.n_hidden,
            bias2=record.bias2,
            variance=record.variance,
        )

    def join(self, later: Bin) -> Bin:
        """Merge this bin with the next: counts are added, other values are taken from the later one."""
        return Bin(
            start=self.start,
            end=later.end,
            n_chunks=self.n_chunks + later.n_chunks,
            hits=self.hits + later.hits,
            n_scored=self.n_scored + later.n_scored,
            low=min((a for a in (self.low, later.low) if a is not None), default=None),
            high=max((a for a in (self.high, later.high) if a is not None), default=None),
            same=self.same + later.same,
            compared=self.compared + later.compared,
            growths=together(self.growths, later.growths),
            prunings=together(self.prunings, later.prunings),
            drifts=together(self.drifts, later.drifts),
            class_drifts=self.class_drifts + later.class_drifts,
            n_hidden=later.n_hidden,
            bias2=later.bias2,
            variance=later.variance,
        )

    @property
    def accuracy(self) -> float | None:
        """Over all scored samples of the chunks."""
        return self.hits / self.n_scored if self.n_scored else None


@dataclass(frozen=True)
class BinnedConfusion:
    """The classes of a chunk, or of several in a row, and what they were predicted as."""

    end: int
    n_chunks: int
    confusion: Confusion

    @classmethod
    def of(cls, record: Record) -> BinnedConfusion:
        """A single chunk."""
        return cls(record.start + record.n_samples, 1, record.confusion)

    def join(self, later: BinnedConfusion) -> BinnedConfusion:
        """The sums of both."""
        return BinnedConfusion(later.end, self.n_chunks + later.n_chunks, self.confusion + later.confusion)


@dataclass(frozen=True)
class ColumnImportances:
    """The importances of the columns at one place of a run, or their means at several in a row."""

    end: int
    n_chunks: int
    values: tuple[float, ...]

    def join(self, later: ColumnImportances) -> ColumnImportances:
        """The means of both."""
        n = self.n_chunks + later.n_chunks
        pairs = zip(self.values, later.values, strict=True)
        means = tuple((self.n_chunks * own + later.n_chunks * other) / n for own, other in pairs)
        return ColumnImportances(later.end, n, means)


@dataclass(frozen=True)
class RunPart:
    """One chunk, or several in a row, with all that measures are computed from."""

    start: int
    end: int
    n_chunks: int
    summary: Summary

    @classmethod
    def of(cls, record: Record) -> RunPart:
        """A single chunk."""
        return cls(record.start, record.start + record.n_samples, 1, Summary([record], begins=record.chunk == 0))

    def join(self, later: RunPart) -> RunPart:
        """Both in one; neither is any more."""
        self.summary.join(later.summary)
        return RunPart(self.start, later.end, self.n_chunks + later.n_chunks, self.summary)


def joined(parts: Iterable[Summary]) -> Summary:
    """Some parts of the stream together."""
    whole = Summary(begins=False)
    for part in parts:
        whole.join(part)
    return whole


class Joinable(Protocol):
    """One chunk, or several in a row."""

    @property
    def n_chunks(self) -> int: ...

    def join(self, later: Any) -> Any:
        """This and the next as one."""


B = TypeVar("B", bound=Joinable)


class Bins(list[B]):
    """Bins that are merged with their neighbours when there are too many.

    >>> bins = Bins(most=4)
    >>> for chunk in range(9):
    ...     bins.add(Bin(500 * chunk, 500 * (chunk + 1), 1, 450, 500, 0.9, 0.9, 0, 0, *[None] * 6))
    >>> [bin.n_chunks for bin in bins]
    [4, 4, 1]
    """

    def __init__(self, bins: Iterable[B] = (), most: int = MOST_POINTS) -> None:
        super().__init__()
        self.width = 1  # chunks in each bin; the last may have fewer
        self._most = most
        for bin in bins:
            self.add(bin)

    def add(self, bin: B) -> None:
        """Add the next chunk."""
        if self and self[-1].n_chunks < self.width:
            self[-1] = self[-1].join(bin)
            return
        self.append(bin)
        if len(self) > self._most:
            pairs = [a.join(b) for a, b in zip(self[::2], self[1::2], strict=False)]
            self[:] = pairs + (self[-1:] if len(self) % 2 else [])
            self.width *= 2


def moving_mean(parts: Sequence[tuple[float, float]], width: int) -> list[float | None]:
    """Moving mean of sum / weight over ``width`` points around each; None where the weight is zero.

    >>> moving_mean([(1, 1), (0, 1), (2, 2), (0, 0)], 3)
    [0.5, 0.75, 0.6666666666666666, 1.0]
    """
    sums, weights = [0.0], [0.0]
    for value, weight in parts:
        sums.append(sums[-1] + value)
        weights.append(weights[-1] + weight)
    means: list[float | None] = []
    for place in range(len(parts)):
        first, after = max(0, place - width // 2), min(len(parts), place + width // 2 + 1)
        weight = weights[after] - weights[first]
        means.append((sums[after] - sums[first]) / weight if weight > 0 else None)
    return means


def smooth_width(n_points: int) -> int:
    """The window for smoothing: about 4 % of the points, an odd number; 1 if there are too few to smooth."""
    return 1 if n_points < 20 else 2 * max(1, round(0.02 * n_points)) + 1


def _smooth(parts: Sequence[tuple[float, float]]) -> list[float | None]:
    return moving_mean(parts, smooth_width(len(parts)))


def smooth_accuracy(bins: Sequence[Bin]) -> list[float | None]:
    """The moving mean of the accuracy over scored points."""
    means = _smooth([(bin.hits, bin.n_scored) for bin in bins])
    return [mean if bin.n_scored else None for bin, mean in zip(bins, means, strict=True)]


def smooth_no_change(bins: Sequence[Bin]) -> list[float | None]:
    """The moving mean of the accuracy of predicting the previous label."""
    return _smooth([(bin.same, bin.compared) for bin in bins])


def smooth_recall(counts: Sequence[BinnedConfusion], c: int) -> list[float | None]:
    """The moving mean of the recall of a class; None where none of its samples is near."""
    return _smooth([(own.hits.get(c, 0), own.actual.get(c, 0)) for own in _confusions(counts)])


def smooth_precision(counts: Sequence[BinnedConfusion], c: int) -> list[float | None]:
    """The moving mean of the precision of a class; None where nothing near is called so."""
    return _smooth([(own.hits.get(c, 0), own.predicted.get(c, 0)) for own in _confusions(counts)])


def smooth_balance(counts: Sequence[BinnedConfusion], c: int) -> list[float | None]:
    """The moving mean of the share of a class among the scored samples."""
    return _smooth([(own.actual.get(c, 0), own.n_samples) for own in _confusions(counts)])


def _confusions(counts: Sequence[BinnedConfusion]) -> list[Confusion]:
    return [count.confusion for count in counts]


def smooth_importance(points: Sequence[ColumnImportances], column: int) -> list[float | None]:
    """The moving mean of the importance of a column."""
    return _smooth([(point.n_chunks * point.values[column], point.n_chunks) for point in points])
