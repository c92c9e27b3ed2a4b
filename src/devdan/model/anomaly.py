"""How unusual a sample is, as the share of recent samples that are less so."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import gammainc

from devdan import kernel
from devdan.arrays import Floats
from devdan.kernel import GENERATIVE, Network
from devdan.model.recent import FEWEST, remembered_inputs, statistics

_NEAREST = 10  # remembered samples, to which the distance counts
_MOST = 1000  # remembered samples that are compared with
_FARTHEST = 1e6  # deviations, so that squares stay finite


def share_less_unusual(networks: Sequence[Floats], X: Floats) -> Floats:
    """The share of recent samples that are less unusual than each of these.

    Where samples are remembered, by the distances to the nearest of them. The reconstruction is no help: labels have
    shaped the units, too (docs/why.md). Else by the squared distance from the mean input, whose running mean and
    variance the generative phase keeps.
    """
    kept = max((remembered_inputs(Network(state)) for state in networks), key=len)[:_MOST]
    scaled = _scaled(networks, X)
    if len(kept) < FEWEST:
        return _beyond_the_mean(networks, scaled)
    from sklearn.neighbors import NearestNeighbors  # noqa: PLC0415 (slow to import)

    kept = _scaled(networks, kept)
    has_gaps = np.isnan(kept).any() or np.isnan(scaled).any()
    neighbours = NearestNeighbors(n_neighbors=_NEAREST, metric="nan_euclidean" if has_gaps else "euclidean").fit(kept)
    theirs, distances = neighbours.kneighbors()[0].mean(axis=1), neighbours.kneighbors(scaled)[0].mean(axis=1)
    return rank(np.nan_to_num(distances), np.sort(np.nan_to_num(theirs)))


def rank(values: Floats, known: Floats) -> Floats:
    """The share of the known values, which rise, that are smaller; beyond the largest it goes on rising towards 1.

    >>> rank(np.array([0.0, 2.0, 3.0, 6.0]), np.array([1.0, 2.0, 3.0])).tolist()
    [0.0, 0.25, 0.5, 0.875]
    """
    beyond = np.maximum(values, known[-1])
    more = 1.0 - np.divide(known[-1], beyond, out=np.ones_like(beyond), where=beyond > 0.0)
    return np.asarray((np.searchsorted(known, values) + more) / (len(known) + 1))


def _scaled(networks: Sequence[Floats], X: Floats) -> Floats:
    """In deviations from the mean; as far away as can be where a value never varied before, NaN where it is missing."""
    mean, deviation = statistics(networks)
    if Network(networks[0]).scaling == kernel.UNSCALED:
        X = np.clip(X, 0.0, 1.0)  # as the kernel does
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        scaled = (X - mean) / deviation
    scaled[mean == X] = 0.0
    return np.asarray(np.clip(scaled, -_FARTHEST, _FARTHEST))


def _beyond_the_mean(networks: Sequence[Floats], scaled: Floats) -> Floats:
    """By the mean squared deviation, as if that were distributed as Γ, with the mean and variance it has had so far."""
    n_present = np.maximum((~np.isnan(scaled)).sum(axis=1), 1)
    mean, variance = 1.0, 2.0 / scaled.shape[1]  # of normal inputs that are independent
    for net in map(Network, networks):
        watched = net.monitors[GENERATIVE, kernel.SURPRISE]
        if watched[kernel.COUNT] >= FEWEST and watched[kernel.SQUARE] > 0.0:
            mean, variance = float(watched[kernel.MEAN]), float(watched[kernel.SQUARE])
            break
    unusual = np.nansum(scaled**2, axis=1) / n_present
    return np.asarray(gammainc(mean**2 / variance, unusual * mean / variance))
