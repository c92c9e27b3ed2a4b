"""A stream whose rare class changes, which accuracy hardly sees."""

import numpy as np


def changing_frauds(n=16_000, seed=0):
    """Samples and labels: in the second half, frauds differ from other samples where they did not before."""
    random = np.random.default_rng(seed)
    y = np.where(random.random(n) < 0.03, "fraud", "ok")
    X, late = random.normal(size=(n, 4)), np.arange(n) >= n // 2
    X[:, 0] += 3.0 * ((y == "fraud") & ~late)
    X[:, 1] += 3.0 * ((y == "fraud") & late)
    return X, y
