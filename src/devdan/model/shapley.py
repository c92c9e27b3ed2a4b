"""Shapley values: what each column of a sample adds to a prediction, on average over the orders in which it is told.

A *coalition* is a set of columns that are known; the others are as in the baseline. A column's Shapley value is the
mean of what it adds when it becomes known, over all orders in which columns can become known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import factorial
from typing import Any

import numpy as np
import numpy.typing as npt

from devdan.arrays import Floats

MOST_EXACT = 8  # columns, up to which all coalitions are asked for: 256
_ROOM = 2_000_000  # numbers that are put together to be predicted at once

Coalitions = npt.NDArray[np.bool_]  # which columns are known, one row for each
Predict = Callable[
    [Floats, npt.NDArray[np.int64]], Floats
]  # a number for each row of inputs, and which sample it is of


def shapley(predict: Predict, X: Floats, neutral: Floats, places: Sequence[Sequence[int]], n_orders: int) -> Floats:
    """The Shapley values of the columns, which have their inputs at these ``places``, for each sample.

    For more than a few columns, over ``n_orders`` orders instead of all: pairs of a random one, always the same, and
    its reverse. Whichever orders these are, the values of a sample add up to what all its columns add together.
    """
    used = [column for column, own in enumerate(places) if len(own) > 0]
    owner = np.empty(X.shape[1], np.int64)  # which of these columns an input is of
    for k, column in enumerate(used):
        owner[places[column]] = k

    def worth(coalitions: Coalitions) -> Floats:
        """What is predicted for each sample, if only these columns are known."""
        known = np.ascontiguousarray(
            coalitions[:, owner]
        )  # so that rows are in a row: the kernel is compiled for these
        found, step = np.empty((len(X), len(known))), max(1, _ROOM // known.size)
        for start in range(0, len(X), step):
            rows = X[start : start + step]
            asked = np.where(known, rows[:, None, :], neutral).reshape(-1, X.shape[1])
            samples = np.repeat(np.arange(start, start + len(rows)), len(known))
            found[start : start + step] = predict(asked, samples).reshape(len(rows), len(known))
        return found

    values = np.zeros((len(X), len(places)))
    values[:, used] = _exact(worth, len(used)) if len(used) <= MOST_EXACT else _sampled(worth, len(used), n_orders)
    return values


def _exact(worth: Callable[[Coalitions], Floats], n: int) -> Floats:
    """Over all coalitions S, Σ (|S| - 1)! (n - |S|)! / n! × what the column in S adds to the others."""
    coalitions = np.arange(2**n)[:, None] >> np.arange(n) & 1 == 1
    size = coalitions.sum(axis=1)
    joined = np.array([factorial(max(s - 1, 0)) * factorial(n - s) / factorial(n) for s in size.tolist()])
    absent = np.array([factorial(s) * factorial(max(n - s - 1, 0)) / factorial(n) for s in size.tolist()])
    return worth(coalitions) @ np.where(coalitions, joined[:, None], -absent[:, None])


def _sampled(worth: Callable[[Coalitions], Floats], n: int, n_orders: int) -> Floats:
    """Over pairs of orders, one the reverse of the other, so that what depends on being early or late cancels out."""
    random, n_pairs = np.random.default_rng(0), (n_orders + 1) // 2
    total: Any = 0.0
    for _ in range(n_pairs):
        one = random.permutation(n)
        for order in (one, one[::-1]):
            turn = np.argsort(order)  # of each column
            told = worth(np.arange(n + 1)[:, None] > turn)
            total = total + np.diff(told, axis=1)[:, turn]
    return np.asarray(total / (2 * n_pairs))
