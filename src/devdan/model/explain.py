"""Why a mixture predicts what it predicts: the contribution of each column, and how much each matters now.

A *coalition* is a set of columns that are known; the others are as in the baseline. A column's contribution is its
Shapley value: what it adds when it becomes known, on average over the orders in which columns can become known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import factorial
from typing import Any

import numpy as np
import numpy.typing as npt

from devdan import kernel
from devdan.arrays import Floats, Integers
from devdan.encoding.encoding import Encoding
from devdan.html_table import html_table
from devdan.model.mixture import Mixture
from devdan.model.recent import recent_inputs, statistics

ORDERS = 32  # in which columns become known, where not all orders are tried
SAMPLES = 200  # recent ones, about which importances are asked
MOST_EXACT = 8  # columns, up to which all coalitions are asked for: 256
_ROOM = 2_000_000  # numbers that are put together to be predicted at once
_SHOWN_ROWS, _SHOWN_COLUMNS = 10, 5

Coalitions = npt.NDArray[np.bool_]  # which columns are known, one row for each
Predict = Callable[[Floats, Integers], Floats]  # a number for each row of inputs, and which sample it is of


@dataclass(frozen=True, eq=False)
class Explanation:
    """For each sample, what its columns contribute to the log-odds of a class: ln p / (1 - p).

    The contributions of a sample add up to the log-odds of its class less those at the baseline, where no column is
    known. A contribution above 0 speaks for the class; of 0.69, it doubles the odds.

    Attributes
    ----------
    columns : the names of the columns, as in ``feature_names_in_``.
    contributions : array of one row per sample and one column per column of X; 0 for a column that is left out.
    labels : the class explained, for each sample.
    log_odds : the log-odds of that class.
    baseline : its log-odds if no column is known.

    >>> import numpy as np
    >>> from devdan import DEVDAN
    >>> X = np.random.default_rng(0).normal(size=(2000, 3))
    >>> model = DEVDAN(random_state=0).fit(X, X[:, 1] > 0)
    >>> told = model.explain([[0.0, 2.0, 0.0]])
    >>> told
    <Explanation of 1 sample by 3 columns>
    >>> told.labels.tolist(), told.strongest(0, most=1)[0][0]
    ([True], 'x1')
    >>> np.allclose(told.contributions.sum(axis=1), told.log_odds - told.baseline)
    True
    """

    columns: tuple[str, ...]
    contributions: Floats
    labels: npt.NDArray[Any]
    log_odds: Floats
    baseline: Floats

    def __len__(self) -> int:
        return len(self.labels)

    def strongest(self, row: int = 0, most: int = _SHOWN_COLUMNS) -> list[tuple[str, float]]:
        """The columns that contribute most to a sample, for or against its class, the strongest first."""
        own = self.contributions[row]
        order = np.argsort(-np.abs(own), kind="stable")[:most]
        return [(self.columns[k], float(own[k])) for k in order if own[k] != 0.0]

    def __repr__(self) -> str:
        n, m = len(self), len(self.columns)
        return f"<Explanation of {n:,} sample{'s' * (n != 1)} by {m:,} column{'s' * (m != 1)}>"

    def _repr_html_(self) -> str:
        shown = range(min(len(self), _SHOWN_ROWS))
        rows = [
            (
                row,
                self.labels[row],
                f"{100 / (1 + np.exp(-self.log_odds[row])):.1f} %",
                f"{self.baseline[row]:+.2f}",
                ", ".join(f"{name} {value:+.2f}" for name, value in self.strongest(row)),
                f"{self.log_odds[row]:+.2f}",
            )
            for row in shown
        ]
        caption = f"The first {len(shown)} of {len(self):,} samples" if len(self) > len(shown) else ""
        return html_table(
            rows, ["row", "class", "probability", "baseline", "strongest contributions", "log-odds"], caption
        )


def explained(mixture: Mixture, encoding: Encoding, X: Floats, place: int | None, n_orders: int) -> Explanation:
    """The explanation of the class at a place among the sorted ones, or of the one that is predicted for each row."""
    probabilities = mixture.predict_proba(X)
    chosen = probabilities.argmax(axis=1) if place is None else np.full(len(X), place)
    neutral = _neutral(mixture)

    def predict(inputs: Floats, samples: Integers) -> Floats:
        return log_odds(mixture.predict_proba(inputs), chosen[samples])

    columns = encoding.places
    return Explanation(
        tuple(map(str, columns)),
        shapley(predict, X, neutral, list(columns.values()), n_orders),
        mixture.classes.labels[chosen],
        log_odds(probabilities, chosen),
        predict(np.tile(neutral, (len(X), 1)), np.arange(len(X))),
    )


def _neutral(mixture: Mixture) -> Floats:
    """The inputs of a sample of which nothing is known."""
    if mixture.nets[0].scaling == kernel.STANDARD:
        return np.full(mixture.n_inputs, np.nan)
    return statistics(mixture.networks)[0]


def log_odds(probabilities: Floats, places: npt.NDArray[np.int64]) -> Floats:
    """The log-odds of one class in each row, with 1 - p as the sum of the others, so that nothing is lost near 1."""
    rows = np.arange(len(probabilities))
    own = probabilities[rows, places]
    others = probabilities.copy()
    others[rows, places] = 0.0
    least = np.finfo(np.float64).tiny  # where a network has no output for a class yet
    return np.asarray(np.log(np.maximum(own, least)) - np.log(np.maximum(others.sum(axis=1), least)))


# --- Shapley values ----------------------------------------------------------------------------------------------


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


# --- Importances -------------------------------------------------------------------------------------------------


def importances(mixture: Mixture, encoding: Encoding, n_samples: int) -> Floats:
    """How much predictions on recent samples change if a column has the values of other samples; the sum is 1.

    Up to its factor, the mean squared change is the column's total Sobol index, with all in which it takes part: an
    interaction counts for each of its columns. All are 0 if no column changes anything.
    """
    recent = recent_inputs(mixture.networks, n_samples)
    return sensitivity(mixture.predict_proba, recent, list(encoding.places.values()))


def sensitivity(predict: Callable[[Floats], Floats], X: Floats, places: Sequence[Sequence[int]]) -> Floats:
    """The mean squared change of predictions by each column, which has its inputs at these places, over the sum."""
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
