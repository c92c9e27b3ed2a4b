"""Measures computed from counts. Undefined values are None, never 0 or 1."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

Counts = Sequence[Sequence[int]]  # (class, predicted class, how many samples); pairs that did not occur are left out


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
        return _mean([self.f1(c) for c in self.actual | self.predicted])

    @property
    def g_mean(self) -> float | None:
        """The geometric mean of the recalls of the classes that occurred."""
        recalls = [self.hits.get(c, 0) / n for c, n in self.actual.items()]
        if not recalls or 0 in recalls:
            return 0.0 if recalls else None
        return math.exp(sum(map(math.log, recalls)) / len(recalls))

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


def _mean(values: list[float | None]) -> float | None:
    defined = [value for value in values if value is not None]
    return _ratio(sum(defined), len(defined))
