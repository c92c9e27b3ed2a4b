"""Streams that are generated."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from devdan.kernel import Floats, Words

_THRESHOLDS = (8.0, 9.0, 7.0, 9.5)


def sea(
    n_samples: int = 100_000, *, chunk: int = 500, noise: float = 0.095, seed: int = 0
) -> Iterator[tuple[Floats, Words]]:
    """The SEA stream as the paper has it: three features in [0, 1], of which two decide, and abrupt drifts.

    A sample is of class 1 if 10(x1 + x2) <= θ, where θ = 8, 9, 7, 9.5 in the stream's eighths, twice over. In the first
    half, the share ``noise`` of the labels is flipped. The same seed gives the same stream, whatever the chunks.

    >>> X, y = next(sea(1000, chunk=4, seed=1))
    >>> X.shape, y
    ((4, 3), array([0, 1, 0, 1]))
    """
    features, flips = (np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(2))
    for start in range(0, n_samples, chunk):
        sample = np.arange(start, min(start + chunk, n_samples))
        X = features.random((len(sample), 3))
        threshold = np.take(_THRESHOLDS, sample * 8 // n_samples % 4)
        flipped = (flips.random(len(sample)) < noise) & (sample < n_samples // 2)
        yield X, ((10 * (X[:, 0] + X[:, 1]) <= threshold) ^ flipped).astype(np.int64)
