"""Decisions: which label is predicted, given the probability of each class; the option ``decide``.

The likeliest class is the right answer where all mistakes cost the same. Where they do not, the label of least expected
cost is:

    argmin_k Σ_c p_c · cost(c, k)

The probabilities are calibrated, so nothing has to be tuned for that. Of two classes, it is a threshold: a sample is
called a fraud if its probability is at least cost(ok, fraud) / (cost(ok, fraud) + cost(fraud, ok)).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from devdan.arrays import Floats, Integers

LIKELIEST = "likeliest"
REQUIREMENT = "'likeliest' or costs such as {'fraud': {'missed': 50, 'false': 1}} or {'costs': {'fraud': {'ok': 50}}}"
_MATRIX, _MISSED, _FALSE = "costs", "missed", "false"
_LARGEST_COST = 1e9


class Decision:
    """A way to decide; this one takes the likeliest class.

    >>> decision_of("likeliest").places(np.array([[0.3, 0.7]]), ["fraud", "ok"])
    array([1])
    """

    def __init__(self, option: Any) -> None:
        self.option = option

    def places(self, probabilities: Floats, labels: Sequence[Any]) -> Integers:
        """Which of the labels each row is called; ``probabilities`` has a column for each of them."""
        places: Integers = probabilities.argmax(axis=1)
        return places

    def threshold(self, labels: Sequence[Any]) -> tuple[Any, float] | None:
        """A class, and the probability from which a row is called so; None if no one probability decides."""
        return None


class CostDecision(Decision):
    """The label of least expected cost.

    >>> cautious = decision_of({"fraud": {"missed": 50, "false": 1}})
    >>> cautious.places(np.array([[0.01, 0.99], [0.03, 0.97]]), ["fraud", "ok"]), cautious.threshold(["fraud", "ok"])
    (array([1, 0]), ('fraud', 0.0196078431372549))
    """

    def places(self, probabilities: Floats, labels: Sequence[Any]) -> Integers:
        places: Integers = (probabilities @ self.costs(labels)).argmin(axis=1)
        return places

    def costs(self, labels: Sequence[Any]) -> Floats:
        """What it costs to call a class, by row, another one, by column.

        >>> decision_of({"fraud": {"missed": 50, "false": 2}}).costs(["fraud", "ok", "unsure"])
        array([[ 0., 50., 50.],
               [ 2.,  0.,  1.],
               [ 2.,  1.,  0.]])
        """
        costs = 1.0 - np.eye(len(labels))
        if is_matrix(self.option):
            for true, row in self.option[_MATRIX].items():
                for called, cost in row.items():
                    costs[np.ix_(place_of(true, labels), place_of(called, labels))] = cost
            return costs
        given = {place: own for name, own in self.option.items() for place in place_of(name, labels)}
        for true in range(len(labels)):
            for called in range(len(labels)):
                if true != called and (true in given or called in given):
                    missed = given[true].get(_MISSED, 1.0) if true in given else 0.0
                    costs[true, called] = missed + (given[called].get(_FALSE, 1.0) if called in given else 0.0)
        return costs

    def threshold(self, labels: Sequence[Any]) -> tuple[Any, float] | None:
        named = self.option[_MATRIX] if is_matrix(self.option) else self.option
        places = [place for name in named for place in place_of(name, labels)]
        if len(labels) != 2 or not places:
            return None
        here, other = places[0], 1 - places[0]
        costs = self.costs(labels)
        missed, false = costs[here, other] - costs[here, here], costs[other, here] - costs[other, other]
        return (labels[here], float(false / (missed + false))) if min(missed, false) > 0.0 else None


def place_of(name: Any, labels: Sequence[Any]) -> list[int]:
    """Where a class is among the labels: a list of its place, or of none.

    In a file of options, names are text, so that "1" is also the class 1, and "true" the class True.

    >>> place_of("1", [0, 1]), place_of("fraud", ["ok"])
    ([1], [])
    """
    return [place for place, label in enumerate(labels) if label == name or text_of(label) == text_of(name)][:1]


def text_of(label: Any) -> str:
    """A label as text: flags as in JSON."""
    return str(label).lower() if isinstance(label, (bool, np.bool_)) else str(label)


def decision_of(option: Any) -> Decision:
    """A decision by a value of the option, which is checked."""
    if not is_decision(option):
        raise ValueError(f"decide must be {REQUIREMENT}, got {option!r}")
    return Decision(option) if isinstance(option, str) else CostDecision(option)


class Deciding:
    """A model whose :meth:`predict` decides as its option ``decide`` says."""

    decide: Any
    mixture_: Any

    def decided(self, probabilities: Floats) -> npt.NDArray[Any]:
        """What samples are called that have these probabilities of the classes."""
        labels = self.mixture_.classes.labels
        called: npt.NDArray[Any] = labels[self.decision_.places(probabilities, labels.tolist())]
        return called

    @property
    def decision_(self) -> Decision:
        """How it decides now, as the option says; at once where that was changed since the model has learned."""
        own: Decision = self.mixture_.decision
        return own if self.decide is own.option or self.decide == own.option else decision_of(self.decide)


# --- What the option may be --------------------------------------------------------------------------------------


def is_decision(value: Any) -> bool:
    """Whether the option may have this value."""
    if isinstance(value, str):
        return value == LIKELIEST
    return isinstance(value, Mapping) and len(value) > 0 and (is_matrix(value) or all(map(_are_costs, value.values())))


def is_matrix(value: Mapping[Any, Any]) -> bool:
    """Whether costs are given for pairs of classes."""
    rows = value.get(_MATRIX)
    if len(value) != 1 or not isinstance(rows, Mapping) or len(rows) == 0:
        return False
    return all(isinstance(row, Mapping) and all(map(_is_cost, row.values())) for row in rows.values())


def _are_costs(value: Any) -> bool:
    names = {_MISSED, _FALSE}
    return isinstance(value, Mapping) and len(value) > 0 and set(value) <= names and all(map(_is_cost, value.values()))


def _is_cost(value: Any) -> bool:
    number: Any = value
    is_number = isinstance(value, Real) and not isinstance(value, (bool, np.bool_))
    return is_number and math.isfinite(number) and 0 <= number <= _LARGEST_COST
