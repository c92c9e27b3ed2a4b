"""Generated streams, as in the paper."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from devdan.arrays import Integers
from devdan.streams.stream import Chunk, Stream, spans

_THRESHOLDS = (8.0, 9.0, 7.0, 9.5)
_PERIOD = 100_000  # samples after which an endless SEA repeats its concepts
_BEFORE = np.array([0.434, 0.244, 0.124, 0.198])
_AFTER = np.array([0.375, 0.229, 0.026, 0.370])


def sea(
    n_samples: int | None = 100_000,
    *,
    chunk: int = 500,
    noise: float = 0.095,
    drifts: Sequence[int] | None = None,
    seed: int = 0,
) -> Stream:
    """The SEA stream of the paper: three features in [0, 1], two of which determine the class, and abrupt drifts.

    A sample belongs to class 1 if 10(x1 + x2) <= θ, where θ = 8, 9, 7, 9.5 in successive eighths of the stream, twice
    over. In the first half, the share ``noise`` of the labels is flipped. ``drifts`` are the samples at which the next
    θ begins, instead of the eighths. ``n_samples=None`` is endless: new samples, repeating the concepts and noise of
    the paper's 100,000 samples. The same seed gives the same stream for any chunk size.

    >>> X, y = next(iter(sea(1000, chunk=4, seed=1)))
    >>> X.shape, y
    ((4, 3), array([0, 1, 0, 1]))
    """
    _check(n_samples, noise)
    period = _PERIOD if n_samples is None else n_samples
    changes = None if drifts is None else _positions(drifts)

    def blocks() -> Iterator[Chunk]:
        features, flips = (np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(2))
        for sample in spans(n_samples):
            X = features.random((len(sample), 3))
            place = sample % period
            concept = place * 8 // period if changes is None else np.searchsorted(changes, sample, side="right")
            flipped = (flips.random(len(sample)) < noise) & (place < period // 2)
            below = 10 * (X[:, 0] + X[:, 1]) <= np.take(_THRESHOLDS, concept % 4)
            yield X, (below ^ flipped).astype(np.int64)

    known = None if n_samples is None and changes is None else _within(n_samples, changes)
    return Stream("sea", blocks, chunk, ("x1", "x2", "x3"), n_samples, None, (0, 1), "generated", drifts=known)


def hyperplane(
    n_samples: int | None = 120_000,
    *,
    chunk: int = 500,
    noise: float = 0.05,
    drift: int = 50_000,
    width: int = 10_000,
    seed: int = 0,
) -> Stream:
    """The Hyperplane stream of the paper: four features in [0, 1] and one gradual drift.

    A sample belongs to class 1 if w · x < 1/2, with weights w that sum to 1. There are two such w; the share of samples
    that follow the second rises as 1 / (1 + exp(-4 (t - drift) / width)). The share ``noise`` of the labels is flipped.
    ``n_samples=None`` is endless.

    >>> X, y = next(iter(hyperplane(1000, chunk=4)))
    >>> X.shape, y
    ((4, 4), array([0, 0, 1, 0]))
    """
    _check(n_samples, noise)
    if width < 1:
        raise ValueError(f"width must be at least 1, got {width}")

    def blocks() -> Iterator[Chunk]:
        children = np.random.SeedSequence(seed).spawn(3)
        features, sides, flips = (np.random.default_rng(child) for child in children)
        for sample in spans(n_samples):
            X = features.random((len(sample), 4))
            share = 1 / (1 + np.exp(np.clip(-4 * (sample - drift) / width, -700, 700)))
            drifted = sides.random(len(sample)) < share
            below = np.where(drifted, X @ _AFTER, X @ _BEFORE) < 0.5
            yield X, (below ^ (flips.random(len(sample)) < noise)).astype(np.int64)

    known = _within(n_samples, np.array([drift]))
    return Stream(
        "hyperplane", blocks, chunk, ("x1", "x2", "x3", "x4"), n_samples, None, (0, 1), "generated", drifts=known
    )


def _check(n_samples: int | None, noise: float) -> None:
    if n_samples is not None and n_samples < 1:
        raise ValueError(f"n_samples must be at least 1, or None for an endless stream, got {n_samples}")
    if not 0 <= noise <= 1:
        raise ValueError(f"noise must be in [0, 1], got {noise}")


def _within(n_samples: int | None, changes: Integers | None) -> tuple[int, ...]:
    """The samples at which the concept changes; by default, every eighth of the stream."""
    if changes is None:
        changes = np.unique(-(-np.arange(1, 8) * (n_samples or _PERIOD) // 8))
    return tuple(change for change in changes.tolist() if change > 0 and (n_samples is None or change < n_samples))


def _positions(drifts: Sequence[int]) -> Integers:
    positions = np.asarray(drifts, dtype=np.int64).reshape(-1)
    if (np.diff(positions) <= 0).any() or (positions < 0).any():
        raise ValueError(f"drifts must be sample numbers in increasing order, got {list(drifts)}")
    return positions
