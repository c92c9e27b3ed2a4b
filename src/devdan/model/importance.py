"""Which columns matter now: how much predictions change if one column has the values of other samples."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from devdan.arrays import Floats

SAMPLES = 200  # recent ones that are asked about


def importances(predict: Callable[[Floats], Floats], X: Floats, places: Sequence[Sequence[int]]) -> Floats:
    """The mean squared change of the predictions for each column, which has its inputs at these places, as shares.

    Up to its factor, this is the column's total Sobol index, with all in which it takes part: an interaction counts for
    each of its columns. All are 0 if no column changes anything.
    """
    random, before = np.random.default_rng(0), predict(X)
    change = np.zeros(len(places))
    for k, own in enumerate(places):
        if len(own) > 0:
            mixed = X.copy()
            mixed[:, own] = X[random.permutation(len(X))][:, own]
            change[k] = ((predict(mixed) - before) ** 2).sum(axis=1).mean()
    total = change.sum()
    return change / total if total > 0.0 else change
