"""Why a mixture predicts what it predicts: what each column contributes and matters, and what hidden units stand for.

A *coalition* is a set of columns that are known; the others are as in the baseline. A column's contribution is its
Shapley value: what it adds when it becomes known, on average over the orders in which columns can become known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import factorial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from devdan import kernel
from devdan.arrays import Floats, Integers
from devdan.encoding.encoding import Encoding
from devdan.kernel import Evolving, Network, Replaying
from devdan.kernel.state import scratch_for
from devdan.model.mixture import Mixture
from devdan.model.notebook import html_table
from devdan.model.recent import recent_inputs, statistics

ORDERS = 32  # in which columns become known, where not all orders are tried
SAMPLES = 200  # recent ones, about which importances are asked and activations averaged
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


# --- What hidden units stand for, in the names of the columns ----------------------------------------------------


_STRONGEST = 5  # inputs and classes that are named
_SHOWN_UNITS, _NAMED = 20, 3

Named = tuple[tuple[Any, float], ...]  # what it is about, and how much; the strongest first


class Unit(NamedTuple):
    """A hidden unit, and what it stands for.

    ``activation`` is its mean over recent samples, between 0 and 1. ``weights`` are those of the inputs that drive it
    most, per deviation of the input. ``pulls`` are its weights towards classes, less their mean: what it adds to the
    log-odds of a class, if it is on, against the others on average. ``adds`` is what it adds to the reconstruction of
    an input, in the units of the stream, if it is on rather than off; empty for a network that reconstructs nothing.
    """

    network: int  # its index, from 0
    unit: int
    activation: float
    weights: Named
    pulls: Named
    adds: Named

    def in_words(self) -> tuple[str, str, str, str]:
        """Its activation, and the strongest of the rest, as texts."""
        return (
            f"{self.activation:.2f}",
            _listed(self.weights),
            _listed(self.pulls),
            _listed(self.adds),
        )


UNIT_HEAD = ("on average", "driven by", "pulls towards", "adds to the reconstruction")  # of what is in words


class UnitList(list[Unit]):
    """Hidden units, network by network: a list that notebooks show as a table."""

    def _repr_html_(self) -> str:
        if not self:
            return "<p>no hidden units yet</p>"
        shown = self[:_SHOWN_UNITS]
        caption = f"The first {len(shown)} of {len(self):,} hidden units" if len(self) > len(shown) else ""
        rows = [(unit.network, unit.unit, *unit.in_words()) for unit in shown]
        return html_table(rows, ["network", "unit", *UNIT_HEAD], caption)


def units_of(mixture: Mixture, names: Sequence[str]) -> UnitList:
    """The hidden units of all networks, in these names of the inputs."""
    classes = mixture.classes.by_output.tolist()
    X = recent_inputs(mixture.networks, SAMPLES)
    found = UnitList()
    for k, state in enumerate(mixture.networks):
        hidden = np.zeros((len(X), Network(state).n_hidden))
        kernel.transform(state, scratch_for(state), X, hidden)
        found += _units_of_network(state, k, hidden, names, classes)
    return found


def _units_of_network(
    state: Floats, network: int, hidden: Floats, names: Sequence[str], classes: Sequence[Any]
) -> list[Unit]:
    """The hidden units of a network, whose activations for recent samples are known; classes are by output."""
    net = Network(state)
    n, r, m = net.n_features, net.n_hidden, net.n_classes
    mean = hidden.mean(axis=0)
    driven, output = net.encoder[:n, :r] + _through_fields(net), net.output[:m, :r]
    pulls = output - output.mean(axis=0) if m > 0 else output
    adds = _added(net, mean) if isinstance(net, Evolving) and net.generates == 1.0 else np.zeros((0, r))
    return [
        Unit(
            network,
            unit,
            float(mean[unit]),
            _strongest(names, driven[:, unit]),
            _strongest(classes, pulls[:, unit]),
            _strongest(names, adds[:, unit]),
        )
        for unit in range(r)
    ]


def _through_fields(net: Network) -> Floats:
    """How much each feature moves each unit that sees it through fields, with the sign of where it rises to."""
    moved = np.zeros((net.n_features, net.n_hidden))
    if isinstance(net, Replaying) and net.n_fields > 0:
        weights = net.field_weights[: net.n_features]
        rises = np.where(weights[:, -1] >= weights[:, 0], 1.0, -1.0)
        moved[:, net.n_hidden - net.n_field_units :] = rises * np.ptp(weights, axis=1)
    return moved


def _added(net: Evolving, mean: Floats) -> Floats:
    """The reconstruction with each unit on, less that with it off, while the others are as they are on average."""
    n, r = net.n_features, net.n_hidden
    encoder = net.encoder[:n, :r]
    usual = (net.decoder_bias[:n] + encoder @ mean)[:, None]
    off = usual - encoder * mean
    added: Floats = reconstructed(net, off + encoder) - reconstructed(net, off)
    return added


def reconstructed(net: Evolving, a: Floats) -> Floats:
    """The input of the decoder's sigmoid on the scale of the stream, as the kernel's ``unscale``; a row per input."""
    n = net.n_features
    if net.scaling == kernel.STANDARD:
        mean, deviation = (array[:, None] for array in statistics([net.words]))
        return np.asarray(mean + np.clip(a, -kernel.WIDEST, kernel.WIDEST) * deviation)
    z = 1.0 / (1.0 + np.exp(-np.clip(a, -36.0, 36.0)))
    if net.scaling == kernel.MINMAX:
        seen = net.high[:n] >= net.low[:n]
        low, high = (np.where(seen, array[:n], np.nan)[:, None] for array in (net.low, net.high))
        return np.asarray(low + z * (high - low))
    return np.asarray(z)


def _strongest(names: Sequence[Any], values: Floats) -> Named:
    """Those of the largest amounts; what was never seen has none."""
    known = np.nan_to_num(values)
    order = np.argsort(-np.abs(known), kind="stable")[:_STRONGEST]
    return tuple((names[k], float(known[k])) for k in order.tolist() if known[k] != 0.0)


def _listed(named: Named) -> str:
    return ", ".join(f"{name} {value:+.3g}" for name, value in named[:_NAMED]) or "–"
