"""Counts of predictions by class and by confidence, and what follows from them; undefined values are None."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from devdan.arrays import Flags, Floats, Integers
from devdan.kernel.jit import entry

Counts = Sequence[Sequence[int]]  # (class, predicted class, how many samples); pairs that did not occur are left out


FEW = 10  # samples of a class, below which its recall says little
_RARE = 0.2  # the share below which a class is rare,
_OF_EVEN = 0.5  # and the part of an even share, which is less than that for three classes or more


@dataclass(frozen=True)
class Confusion:
    """Counts of (class, predicted class).

    >>> confusion = Confusion.of([(0, 0, 40), (0, 1, 10), (1, 1, 50)])
    >>> confusion.accuracy, confusion.recall(0), confusion.recall(7)
    (0.9, 0.8, None)
    """

    hits: dict[int, int]
    actual: dict[int, int]
    predicted: dict[int, int]

    @classmethod
    def of(cls, counts: Iterable[Sequence[int]]) -> Confusion:
        """Make one from counts, in which a pair may occur more than once."""
        hits: dict[int, int] = {}
        actual: dict[int, int] = {}
        predicted: dict[int, int] = {}
        for true, guess, n in counts:
            actual[true] = actual.get(true, 0) + n
            predicted[guess] = predicted.get(guess, 0) + n
            if true == guess:
                hits[true] = hits.get(true, 0) + n
        return cls(hits, actual, predicted)

    def __add__(self, other: Confusion) -> Confusion:
        """The counts of both."""
        pairs = (self.hits, other.hits), (self.actual, other.actual), (self.predicted, other.predicted)
        return Confusion(*(own | {c: own.get(c, 0) + n for c, n in more.items()} for own, more in pairs))

    @property
    def n_samples(self) -> int:
        return sum(self.actual.values())

    @property
    def accuracy(self) -> float | None:
        return _ratio(sum(self.hits.values()), self.n_samples)

    @property
    def kappa(self) -> float | None:
        """Cohen's kappa: accuracy compared with guessing by class frequency."""
        n = self.n_samples
        if n == 0:
            return None
        chance = sum(self.actual[c] * self.predicted.get(c, 0) for c in self.actual) / n**2
        return beyond(self.accuracy, chance)

    @property
    def f1_macro(self) -> float | None:
        """The mean of F1 over the classes that occurred or were predicted."""
        return mean([self.f1(c) for c in self.actual | self.predicted])

    @property
    def g_mean(self) -> float | None:
        """The geometric mean of the recalls of the classes that occurred."""
        recalls = [self.hits.get(c, 0) / n for c, n in self.actual.items()]
        if not recalls or 0 in recalls:
            return 0.0 if recalls else None
        return math.exp(sum(map(math.log, recalls)) / len(recalls))

    @property
    def balanced_accuracy(self) -> float | None:
        """The mean of the recalls of the classes that occurred."""
        return mean([self.recall(c) for c in self.actual])

    @property
    def mcc(self) -> float | None:
        """Matthews' correlation coefficient of classes and predictions; None if either are all the same."""
        n = self.n_samples
        chance = sum(self.actual[c] * self.predicted.get(c, 0) for c in self.actual)
        spread = (n**2 - sum(k**2 for k in self.actual.values())) * (n**2 - sum(k**2 for k in self.predicted.values()))
        return (n * sum(self.hits.values()) - chance) / math.sqrt(spread) if spread else None

    @property
    def majority(self) -> float | None:
        """The accuracy of always predicting the commonest class."""
        return _ratio(max(self.actual.values(), default=0), self.n_samples)

    @property
    def rarest(self) -> int | None:
        """The rarest class of ten samples or more, if it is rare: under 20 %, and under half of an even share.

        So of three classes, it is rare under 16.7 %, and of ten under 5 %.

        >>> Confusion.of([(0, 0, 90), (1, 0, 10)]).rarest, Confusion.of([(0, 0, 75), (1, 0, 25)]).rarest
        (1, None)
        """
        enough = {c: n for c, n in self.actual.items() if n >= FEW}
        if len(enough) < 2:
            return None
        c = min(enough, key=lambda c: enough[c])
        return c if enough[c] < min(_RARE, _OF_EVEN / len(self.actual)) * self.n_samples else None

    def recall(self, c: int) -> float | None:
        """The share of the samples of a class that were predicted as that class."""
        return _ratio(self.hits.get(c, 0), self.actual.get(c, 0))

    def precision(self, c: int) -> float | None:
        """The share of the samples predicted as a class that belong to it."""
        return _ratio(self.hits.get(c, 0), self.predicted.get(c, 0))

    def f1(self, c: int) -> float | None:
        """The harmonic mean of recall and precision."""
        return _ratio(2 * self.hits.get(c, 0), self.actual.get(c, 0) + self.predicted.get(c, 0))


def beyond(accuracy: float | None, baseline: float | None) -> float | None:
    """The share of a baseline's errors that is avoided: kappa, for any baseline.

    >>> beyond(0.75, 0.5), beyond(0.25, 0.5), beyond(1.0, 1.0)
    (0.5, -0.5, None)
    """
    if accuracy is None or baseline is None or baseline >= 1:
        return None
    return (accuracy - baseline) / (1 - baseline)


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def mean(values: list[float | None]) -> float | None:
    """The mean of the values that are defined."""
    defined = [value for value in values if value is not None]
    return _ratio(sum(defined), len(defined))


def counted(true: Integers, guess: Integers, n_classes: int) -> tuple[tuple[int, int, int], ...]:
    """How many samples there are of each class and predicted class.

    >>> counted(np.array([0, 1, 0]), np.array([1, 1, 1]), 2)
    ((0, 1, 2), (1, 1, 1))
    """
    pairs = np.sort(true * n_classes + guess)
    n_each = np.empty(len(pairs), np.int64)
    n = _count_runs(pairs, n_each)
    return tuple((*divmod(pair, n_classes), k) for pair, k in zip(pairs[:n].tolist(), n_each[:n].tolist(), strict=True))


@entry
def _count_runs(values: Integers, counts: Integers) -> int:
    """Put the different ones of sorted values first, and how many there are of each; returns how many differ."""
    n = 0
    for t in range(len(values)):
        if n > 0 and values[t] == values[n - 1]:
            counts[n - 1] += 1
        else:
            values[n], counts[n] = values[t], 1
            n += 1
    return n


# --- Calibration: whether predictions with a confidence of 90 % are right nine times out of ten ------------------


N_BINS = 20  # of equal width over [0, 1]: ten for two classes, whose confidence is never below one half
Binned = tuple[tuple[int, int, int, float], ...]  # bin, samples, right ones, sum of confidences; no empty bins


class Level(NamedTuple):
    """Predictions of about the same confidence."""

    confidence: float  # on average
    share_right: float
    n_samples: int


class Reliability:
    """Counts of predictions by their confidence, the probability of the predicted class.

    >>> counted = Reliability([(17, 10, 8, 8.75), (19, 30, 29, 29.05)])
    >>> counted.levels[0]
    Level(confidence=0.875, share_right=0.8, n_samples=10)
    >>> round(counted.error, 3)
    0.02
    """

    def __init__(self, binned: Iterable[Sequence[float]] = ()) -> None:
        self._bins: dict[int, tuple[int, int, float]] = {}
        self.add(binned)

    def add(self, binned: Iterable[Sequence[float]]) -> None:
        """Add the counts of more predictions."""
        for place, n, hits, confidence in binned:
            before = self._bins.get(int(place), (0, 0, 0.0))
            self._bins[int(place)] = (before[0] + int(n), before[1] + int(hits), before[2] + confidence)

    @property
    def binned(self) -> Binned:
        return tuple((place, *self._bins[place]) for place in sorted(self._bins))

    @property
    def n_samples(self) -> int:
        return sum(n for n, _, _ in self._bins.values())

    @property
    def levels(self) -> list[Level]:
        """Each bin that has samples, from the least to the most confident."""
        return [Level(confidence / n, hits / n, n) for _, n, hits, confidence in self.binned]

    @property
    def error(self) -> float | None:
        """The expected calibration error: Σ |right - Σ confidence| / samples, over the bins; None without samples."""
        n_samples = self.n_samples
        gaps = sum(abs(hits - confidence) for _, hits, confidence in self._bins.values())
        return gaps / n_samples if n_samples else None


def binned(probabilities: Floats, right: Flags) -> Binned:
    """Predictions counted by their confidence; rows in which it is not finite are left out.

    >>> binned(np.array([[0.48, 0.52], [0.54, 0.46], [0.02, 0.98], [1.0, 0.0]]), np.array([True, False, True, True]))
    ((10, 2, 1, 1.06), (19, 2, 2, 1.98))
    """
    counts, sums = np.zeros((N_BINS, 2), np.int64), np.zeros(N_BINS)
    _bin(np.ascontiguousarray(probabilities, np.float64), right, counts, sums)
    rows = enumerate(zip(counts.tolist(), sums.tolist(), strict=True))
    return tuple((place, n, hits, round(confidence, 6)) for place, ((n, hits), confidence) in rows if n)


@entry
def _bin(probabilities: Floats, right: Flags, counts: Integers, sums: Floats) -> None:
    """Add up predictions, right ones and confidences by bin."""
    for t in range(len(right)):
        confidence = 0.0
        for k in range(probabilities.shape[1]):
            p = probabilities[t, k]
            confidence = p if p > confidence or math.isnan(p) else confidence
            if math.isnan(p):
                break
        if math.isfinite(confidence):
            place = int(min(confidence * N_BINS, N_BINS - 1.0))
            counts[place, 0] += 1
            counts[place, 1] += right[t]
            sums[place] += confidence
