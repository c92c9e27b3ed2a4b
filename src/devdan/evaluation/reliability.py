"""Calibration: whether predictions with a confidence of 90 % are right nine times out of ten."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from devdan.arrays import Floats

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


def binned(confidence: Floats, right: npt.ArrayLike) -> Binned:
    """Predictions counted by their confidence; those whose confidence is NaN are left out.

    >>> binned(np.array([0.52, 0.54, 0.98, 1.0]), [True, False, True, True])
    ((10, 2, 1, 1.06), (19, 2, 2, 1.98))
    """
    if not math.isfinite(confidence.sum()):
        known = np.isfinite(confidence)
        return binned(confidence[known], np.compress(known, right))
    places = np.minimum(confidence * N_BINS, N_BINS - 1).astype(np.int64)
    n = np.bincount(places).tolist()
    hits, sums = np.bincount(places, right).tolist(), np.bincount(places, confidence).tolist()
    return tuple((place, k, int(hits[place]), round(sums[place], 6)) for place, k in enumerate(n) if k)
