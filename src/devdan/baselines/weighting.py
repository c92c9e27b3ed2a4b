"""Feature weights by Fisher's criterion in a kernel space: how well each separates the classes."""

from __future__ import annotations

import numpy as np

from devdan.arrays import Floats, Words

WEIGHTINGS = ("soft", "full")
_MOST = 200  # samples of a chunk that are compared
_LEAST = 0.1  # of a soft weight


def feature_weights(X: Floats, codes: Words, weighting: str) -> Floats | None:
    """λ of each feature, by how much worse the classes are separated without it; None if the chunk is not enough.

    ``full`` spreads the weights over [0, 1], so that the least useful feature is always left out; ``soft`` weights each
    by its share of the separability, at least 0.1.

    >>> X = np.array([[0.0, 0.5], [0.1, 0.1], [0.9, 0.4], [1.0, 0.2]])
    >>> feature_weights(X, np.array([0, 0, 1, 1]), "full")
    array([1., 0.])
    """
    rows = np.unique(np.linspace(0, len(X) - 1, _MOST).astype(int))
    X, codes = X[rows], codes[rows]
    squares = (X[:, None, :] - X[None, :, :]) ** 2
    distances = squares.sum(axis=2)
    if len(np.unique(codes)) < 2 or not distances.any():
        return None
    width = distances.mean()
    without = np.array([separability(np.exp(-(distances - own) / width), codes) for own in np.moveaxis(squares, 2, 0)])
    span = without.max() if weighting == "soft" else np.ptp(without)
    if not span > 0:
        return None
    weights: Floats = np.clip(1 - (without - without.min()) / span, _LEAST if weighting == "soft" else 0.0, 1.0)
    return weights


def separability(kernel: Floats, codes: Words) -> float:
    """J = tr S_b / tr S_w of the classes in the space of a kernel matrix."""
    within = sum(kernel[np.ix_(own, own)].sum() / own.sum() for own in (codes == code for code in np.unique(codes)))
    between = within - kernel.sum() / len(kernel)
    return float(between / max(np.trace(kernel) - within, np.finfo(float).eps))
