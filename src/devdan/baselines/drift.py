"""Drift detection on the inputs of a chunk: a cut, and the means before and after it."""

from __future__ import annotations

import math

import numpy as np

from devdan.arrays import Floats

STABLE, WARNING, DRIFT = "stable", "warning", "drift"


def find_cut(X: Floats, confidence: float) -> int | None:
    """Rows before the cut: the first point where the upper bound on their mean reaches that of the whole chunk."""
    r = len(X)
    if r < 2 or not np.ptp(X, axis=0).any():
        return None
    cuts = np.arange(1, r)
    means = np.cumsum(X[:-1], axis=0).mean(axis=1) / cuts
    ranges = (np.maximum.accumulate(X[:-1]) - np.minimum.accumulate(X[:-1])).mean(axis=1)
    bounds = np.sqrt((r - cuts) / (2 * cuts * r) * math.log(1 / confidence))
    crossed = means + ranges * bounds >= X.mean() + np.ptp(X, axis=0).mean() * bounds
    return int(cuts[crossed.argmax()]) if crossed.any() else None


def detect(X: Floats, cut_confidence: float, drift_confidence: float, warning_confidence: float) -> str:
    """``drift``, ``warning`` or ``stable``, by the Hoeffding bound on the difference of two means.

    It only looks at the first cut, so it finds drifts near the start of the chunk and hardly ever elsewhere.

    >>> X = np.random.default_rng(0).random((500, 2))
    >>> falling = X + np.where(np.arange(500) < 4, 5.0, 0.0)[:, None]
    >>> detect(X, 0.001, 0.001, 0.005), detect(falling, 0.001, 0.001, 0.005)
    ('stable', 'drift')
    """
    cut = find_cut(X, cut_confidence)
    if cut is None:
        return STABLE
    before, after = X[:cut], X[cut:]
    difference = np.abs(before.mean(axis=0) - after.mean(axis=0)).mean()
    share = 1 / (2 * len(before)) + 1 / (2 * len(after))

    def bound(confidence: float) -> float:
        return float(np.ptp(after, axis=0).mean() * math.sqrt(share * math.log(1 / confidence)))

    if difference >= bound(drift_confidence):
        return DRIFT
    return WARNING if difference >= bound(warning_confidence) else STABLE
