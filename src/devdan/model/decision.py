"""Decisions: which label is predicted, given the probability of each class; the option ``decide``.

The likeliest class is the right answer where all mistakes cost the same. Where they do not, the label of least expected
cost is:

    argmin_k Σ_c p_c · cost(c, k)

The probabilities are calibrated, so nothing has to be tuned for that. Of two classes, it is a threshold: a sample is
called a fraud if its probability is at least cost(ok, fraud) / (cost(ok, fraud) + cost(fraud, ok)). A class can also
have a threshold that is given, or one that is chosen by what it finds (:mod:`devdan.model.thresholds`).
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from devdan.arrays import Floats, Integers
from devdan.model.thresholds import LEAST_CALLED, LONGEST, Balanced, BestThreshold, Budget, Rule

if TYPE_CHECKING:
    from typing_extensions import Self

    from devdan.model.classes import Classes

LIKELIEST = "likeliest"
REQUIREMENT = (
    "'likeliest', costs such as {'fraud': {'missed': 50, 'false': 1}} or {'costs': {'fraud': {'ok': 50}}}, or "
    "thresholds such as {'fraud': 'f1'}, {'fraud': 'balanced'}, {'fraud': {'recall': 0.8}}, "
    "{'fraud': {'precision': 0.5}}, {'fraud': {'budget': 0.01}}, {'fraud': {'budget': 0.01, 'over': 20000}} or "
    "{'fraud': {'threshold': 0.3}}"
)
_MATRIX, _MISSED, _FALSE = "costs", "missed", "false"
_BUDGET, _OVER = "budget", "over"
_LARGEST_COST = 1e9
_NAMED: dict[str, Callable[[], Rule]] = {"f1": lambda: BestThreshold("f1"), "balanced": Balanced}
_RULES: dict[str, Callable[[float], Rule]] = {
    "recall": lambda least: BestThreshold("recall", least),
    "precision": lambda least: BestThreshold("precision", least),
    _BUDGET: Budget,
    "threshold": Rule,
}


class Decision:
    """A way to decide; this one takes the likeliest class.

    >>> decision_of("likeliest").places(np.array([[0.3, 0.7]]), ["fraud", "ok"])
    array([1])
    """

    rules: Mapping[Any, Rule] = {}  # how the thresholds of classes are chosen, by the names in the option

    def __init__(self, option: Any) -> None:
        self.option = option

    def places(self, probabilities: Floats, labels: Sequence[Any]) -> Integers:
        """Which of the labels each row is called; ``probabilities`` has a column for each of them."""
        places: Integers = probabilities.argmax(axis=1)
        return places

    def thresholds(self, labels: Sequence[Any]) -> dict[Any, float]:
        """The probability from which on a row is called a class, by label, where one number decides that."""
        return {}

    def thresholds_of(self, probabilities: Floats, labels: Sequence[Any]) -> dict[Any, Floats]:
        """The same for each of these rows: thresholds may move from one to the next."""
        return {label: np.full(len(probabilities), value) for label, value in self.thresholds(labels).items()}

    # --- Decisions that learn ------------------------------------------------------------------------------------

    learns = False  # whether it follows rows and labels

    def know(self, code: int, label: Any) -> None:
        """A class has this output."""

    def follow(self, probabilities: Floats, are_new: bool, codes: Integers | None) -> None:
        """Rows came, if they ``are_new``, and their labels, if ``codes`` has them, that had these probabilities.

        There is a column for each output that was known when they were predicted.
        """

    def pass_on(self, probabilities: Floats, labels: Sequence[Any]) -> None:
        """Rows came that have these probabilities, and nothing is learned from them."""

    def forget(self, probabilities: Floats, codes: Integers) -> None:
        """Labels were wrong, of rows that have these probabilities now; there is a column for each output."""

    def copy(self) -> Self:
        """A copy that learns on its own from here."""
        return self

    def knowing(self, classes: Classes) -> Self:
        """A copy that learns on its own from here, in a model of these classes."""
        return self

    def to_json(self) -> dict[str, Any]:
        """What it has learned, for a file."""
        return {}

    def restore(self, content: Any) -> None:
        """Take what was learned from a file; raises a ``ValueError`` if it is not that of such a decision."""
        if content != {}:
            raise ValueError("its decision has learned nothing")


class CostDecision(Decision):
    """The label of least expected cost.

    >>> cautious = decision_of({"fraud": {"missed": 50, "false": 1}})
    >>> cautious.places(np.array([[0.01, 0.99], [0.03, 0.97]]), ["fraud", "ok"]), cautious.thresholds(["fraud", "ok"])
    (array([1, 0]), {'fraud': 0.0196078431372549})
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

    def thresholds(self, labels: Sequence[Any]) -> dict[Any, float]:
        named = self.option[_MATRIX] if is_matrix(self.option) else self.option
        places = [place for name in named for place in place_of(name, labels)]
        if len(labels) != 2 or not places:
            return {}
        here, other = places[0], 1 - places[0]
        costs = self.costs(labels)
        missed, false = costs[here, other] - costs[here, here], costs[other, here] - costs[other, other]
        return {labels[here]: float(false / (missed + false))} if min(missed, false) > 0.0 else {}


class ThresholdDecision(Decision):
    """A class whose threshold is reached; of several such, the one whose threshold is exceeded by the largest factor.

    Where none is reached, the likeliest of the classes without a threshold.

    >>> decision_of({"fraud": {"threshold": 0.2}}).places(np.array([[0.3, 0.7], [0.1, 0.9]]), ["fraud", "ok"])
    array([0, 1])
    """

    def __init__(self, option: Any) -> None:
        super().__init__(option)
        self.rules = {name: _rule(value) for name, value in option.items()}
        self._codes: dict[Any, int] = {}  # the output of each class that has a rule

    def places(self, probabilities: Floats, labels: Sequence[Any]) -> Integers:
        found = self._placed(labels)
        own = [place for _, place, _ in found]
        others = probabilities.copy()
        if len(own) < len(labels):
            others[:, own] = -1.0
        places: Integers = others.argmax(axis=1)
        farthest = np.zeros(len(probabilities))
        for _, place, rule in found:
            scores = probabilities[:, place]
            by = scores / max(rule.threshold, SMALLEST)
            farther = rule.called(scores) & (by >= farthest)
            places[farther], farthest[farther] = place, by[farther]
        return places

    def thresholds(self, labels: Sequence[Any]) -> dict[Any, float]:
        return {label: rule.threshold for label, _, rule in self._placed(labels)}

    def thresholds_of(self, probabilities: Floats, labels: Sequence[Any]) -> dict[Any, Floats]:
        return {label: rule.thresholds(probabilities[:, place]) for label, place, rule in self._placed(labels)}

    def pass_on(self, probabilities: Floats, labels: Sequence[Any]) -> None:
        for _, place, rule in self._placed(labels):
            rule.rows(probabilities[:, place])

    def _placed(self, labels: Sequence[Any]) -> list[tuple[Any, int, Rule]]:
        """Each of the labels that has a rule, and its place."""
        return [(labels[place], place, rule) for name, rule in self.rules.items() for place in place_of(name, labels)]

    learns = True

    def know(self, code: int, label: Any) -> None:
        for name in self.rules:
            if place_of(name, [label]):
                self._codes[name] = code

    def follow(self, probabilities: Floats, are_new: bool, codes: Integers | None) -> None:
        n_known = probabilities.shape[1]
        for name, rule in self.rules.items():
            code = self._codes.get(name, n_known)
            is_known = code < n_known
            scores = probabilities[:, code] if is_known else np.zeros(len(probabilities))
            if are_new and is_known:
                rule.rows(scores)
            if codes is not None:
                rule.labels(scores, codes == code if name in self._codes else np.zeros(len(codes), bool))

    def forget(self, probabilities: Floats, codes: Integers) -> None:
        for name, rule in self.rules.items():
            code = self._codes.get(name, -1)
            rule.forget(probabilities[:, code] if code >= 0 else np.zeros(len(codes)), codes == code)

    def copy(self) -> Self:
        own = copy.copy(self)
        own.rules = {name: rule.copy() for name, rule in self.rules.items()}
        own._codes = dict(self._codes)
        return own

    def knowing(self, classes: Classes) -> Self:
        own = self.copy()
        codes = dict(zip(classes.labels.tolist(), classes.outputs.tolist(), strict=True))
        own._codes = {name: codes[label] for name in self.rules for label in codes if place_of(name, [label])}
        return own

    def to_json(self) -> dict[str, Any]:
        return {text_of(name): rule.to_json() for name, rule in self.rules.items()}

    def restore(self, content: Any) -> None:
        if not isinstance(content, dict) or set(content) != {text_of(name) for name in self.rules}:
            raise ValueError("its decision is about other classes")
        for name, rule in self.rules.items():
            rule.restore(content[text_of(name)])


SMALLEST = float(np.finfo(np.float64).tiny)


def _rule(value: Any) -> Rule:
    """A rule by its value in the option."""
    if isinstance(value, str):
        return _NAMED[value]()
    if _OVER in value:
        return Budget(float(value[_BUDGET]), int(value[_OVER]))
    ((name, number),) = value.items()
    return _RULES[name](float(number))


def place_of(name: Any, labels: Sequence[Any]) -> list[int]:
    """Where a class is among the labels: a list of its place, or of none.

    In a file of options, names are text, so that "1" is also the class 1, and "true" or "True" the class True.

    >>> place_of("1", [0, 1]), place_of("True", [False, True]), place_of("fraud", ["ok"])
    ([1], [1], [])
    """
    is_flag = len(labels) > 0 and isinstance(labels[0], (bool, np.bool_))
    text = str(name).lower() if is_flag else text_of(name)
    return [place for place, label in enumerate(labels) if label == name or text_of(label) == text][:1]


def text_of(label: Any) -> str:
    """A label as text: flags as in JSON."""
    return str(label).lower() if isinstance(label, (bool, np.bool_)) else str(label)


def decision_of(option: Any) -> Decision:
    """A decision by a value of the option, which is checked."""
    if not is_decision(option):
        raise ValueError(f"decide must be {REQUIREMENT}, got {option!r}{remedy(option)}")
    if isinstance(option, str):
        return Decision(option)
    return ThresholdDecision(option) if all(map(_is_rule, option.values())) else CostDecision(option)


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
    def thresholds_(self) -> dict[Any, float]:
        """The probability from which on a sample is called a class, of each class where one number decides that."""
        return self.decision_.thresholds(self.mixture_.classes.labels.tolist())

    @property
    def decision_(self) -> Decision:
        """How it decides now, as the option says; at once where that was changed since the model has learned."""
        own: Decision = self.mixture_.decision
        is_own = self.decide is own.option or self.decide == own.option
        return own if is_own else decision_of(self.decide).knowing(self.mixture_.classes)


# --- What the option may be --------------------------------------------------------------------------------------


def is_decision(value: Any) -> bool:
    """Whether the option may have this value."""
    if isinstance(value, str):
        return value == LIKELIEST
    if not isinstance(value, Mapping) or len(value) == 0:
        return False
    return is_matrix(value) or any(all(map(holds, value.values())) for holds in (_are_costs, _is_rule))


def is_matrix(value: Mapping[Any, Any]) -> bool:
    """Whether costs are given for pairs of classes."""
    rows = value.get(_MATRIX)
    if len(value) != 1 or not isinstance(rows, Mapping) or len(rows) == 0:
        return False
    return all(isinstance(row, Mapping) and all(map(_is_cost, row.values())) for row in rows.values())


def _are_costs(value: Any) -> bool:
    names = {_MISSED, _FALSE}
    return isinstance(value, Mapping) and len(value) > 0 and set(value) <= names and all(map(_is_cost, value.values()))


def _is_rule(value: Any) -> bool:
    """Whether it says how the threshold of a class is chosen."""
    if isinstance(value, str):
        return value in _NAMED
    if not isinstance(value, Mapping):
        return False
    if set(value) == {_BUDGET, _OVER}:
        return _is_share(value[_BUDGET]) and _is_horizon(value[_OVER], value[_BUDGET])
    return len(value) == 1 and set(value) <= set(_RULES) and all(map(_is_share, value.values()))


def _is_share(value: Any) -> bool:
    return _is_cost(value) and 0.0 < value <= 1.0


def _is_horizon(value: Any, share: Any) -> bool:
    """Whether it is a number of samples of which this share is enough to be kept to a fifth."""
    is_whole = isinstance(value, Integral) and not isinstance(value, (bool, np.bool_))
    return is_whole and LEAST_CALLED / float(share) <= int(value) <= LONGEST


def remedy(value: Any) -> str:
    """What to do about a budget that is wrong in a value of the option, to end an error's message with; mostly nothing.

    >>> remedy({"fraud": {"budget": 0.01, "over": 500}})
    '; over must be an integer from 10 / budget, here 1,000, to 1,000,000,000'
    """
    rules = value.values() if isinstance(value, Mapping) else []
    for rule in (rule for rule in rules if isinstance(rule, Mapping) and set(rule) - {_OVER} == {_BUDGET}):
        share = rule[_BUDGET]
        if not _is_share(share):
            return (
                "; a budget is a share of the samples, as a decision does not know their times: divide the alerts of a "
                "day by the rows of a day. 100 of 20,000 are {'budget': 0.005, 'over': 20000}"
            )
        if _OVER in rule and not _is_horizon(rule[_OVER], share):
            least = math.ceil(min(LEAST_CALLED / float(share), LONGEST))
            return f"; over must be an integer from {LEAST_CALLED} / budget, here {least:,}, to {LONGEST:,}"
    return ""


def _is_cost(value: Any) -> bool:
    number: Any = value
    is_number = isinstance(value, Real) and not isinstance(value, (bool, np.bool_))
    return is_number and 0 <= number <= _LARGEST_COST
