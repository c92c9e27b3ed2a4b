"""Which columns matter now: how much predictions change if one column has the values of other samples."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from devdan.arrays import Floats

SAMPLES = 200  # recent ones that are asked about
_ROOM = 2_000_000  # numbers that are put together to be predicted at once


def importances(predict: Callable[[Floats], Floats], X: Floats, places: Sequence[Sequence[int]]) -> Floats:
    """The mean squared change of the predictions for each column, which has its inputs at these places, as shares.

    Up to its factor, this is the column's total Sobol index, with all in which it takes part: an interaction counts for
    each of its columns. All are 0 if no column changes anything.
    """
    random, before = np.random.default_rng(0), predict(X)
    used = [column for column, own in enumerate(places) if len(own) > 0]
    change, step = np.zeros(len(places)), max(1, _ROOM // X.size)
    for start in range(0, len(used), step):
        block = used[start : start + step]
        mixed = np.tile(X, (len(block), 1, 1))
        for k, column in enumerate(block):
            mixed[k][:, places[column]] = X[random.permutation(len(X))][:, places[column]]
        after = predict(mixed.reshape(-1, X.shape[1])).reshape(len(block), *before.shape)
        change[block] = ((after - before) ** 2).sum(axis=2).mean(axis=1)
    total = change.sum()
    return change / total if total > 0.0 else change
