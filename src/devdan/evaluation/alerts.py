"""What alerts find and what decisions cost: the measures of those who act on predictions.

An alert budget says how many samples of a period somebody looks at. Those are the samples with the highest scores of a
class in that period, so the measures need no threshold: recall is the share of the class that was looked at, precision
the share of the alerts that were of the class. Costs are those of the option ``decide``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np

from devdan.arrays import Flags, Floats, Integers
from devdan.evaluation.histograms import MOST_CLASSES
from devdan.kernel.jit import entry
from devdan.model.decision import CostDecision, decision_of, is_decision

LONGEST_PERIOD = 1_000_000  # samples


class AlertBudget(NamedTuple):
    """As many alerts of each class in each period of scored samples.

    >>> AlertBudget.parse("50/5000")
    AlertBudget(n_alerts=50, period=5000)
    """

    n_alerts: int = 10
    period: int = 1000

    @classmethod
    def parse(cls, text: str) -> AlertBudget:
        numbers = [int(part) for part in text.split("/")] if re.fullmatch(r"\d{1,9}/\d{1,9}", text) else []
        if len(numbers) != 2 or not 1 <= numbers[0] <= numbers[1] <= LONGEST_PERIOD:
            raise ValueError(
                f"alerts must be how many in how many samples, such as 10/1000, with at most {LONGEST_PERIOD:,} "
                f"samples and as many alerts, got {text!r}"
            )
        return cls(*numbers)

    def __str__(self) -> str:
        return f"{self.n_alerts}/{self.period}"


class Alerts(NamedTuple):
    """What the alerts of complete periods found."""

    n_alerts: int  # of each class in each period
    period: int
    n_periods: int
    found: tuple[float, ...]  # samples of each class among those with its highest scores
    there: tuple[int, ...]  # samples of each class

    def recall(self, c: int) -> float | None:
        """The share of the samples of a class that its alerts found."""
        return self.found[c] / self.there[c] if c < len(self.there) and self.there[c] else None

    def precision(self, c: int) -> float | None:
        """The share of the alerts of a class that were right."""
        return self.found[c] / (self.n_alerts * self.n_periods) if c < len(self.found) else None


def with_later(alerts: Alerts | None, later: Alerts | None) -> Alerts | None:
    """Those of earlier and of later periods."""
    if alerts is None or later is None:
        return alerts or later
    found = tuple(a + b for a, b in zip_longest(alerts.found, later.found, fillvalue=0.0))
    there = tuple(a + b for a, b in zip_longest(alerts.there, later.there, fillvalue=0))
    return alerts._replace(n_periods=alerts.n_periods + later.n_periods, found=found, there=there)


def n_found(scores: Floats, belongs: Flags, n_alerts: int) -> float:
    """How many of the highest scores belong to a class; of equal ones, on average over their order.

    >>> n_found(np.array([0.9, 0.5, 0.5, 0.1]), np.array([True, True, False, False]), 2)
    1.5
    """
    least = np.partition(scores, len(scores) - n_alerts)[len(scores) - n_alerts]
    above, found, equal, of_equal = _count_from(scores, belongs, least)
    return float(found + (n_alerts - above) * (of_equal / equal))


@entry
def _count_from(scores: Floats, belongs: Flags, least: float) -> tuple[int, int, int, int]:
    """The scores above the least one, those of the class among them, and the same of the scores equal to it."""
    above = found = equal = of_equal = 0
    for t in range(len(scores)):
        if scores[t] > least:
            above += 1
            found += belongs[t]
        elif scores[t] == least:
            equal += 1
            of_equal += belongs[t]
    return above, found, equal, of_equal


class Periods:
    """Cuts scored samples into periods, and counts what the alerts of each find; memory is that of one period."""

    def __init__(self, budget: AlertBudget) -> None:
        self.budget = budget
        self._parts: list[tuple[Floats, Integers]] = []
        self._n = 0

    def add(self, scores: Floats, true: Integers) -> Alerts | None:
        """Add samples: the scores of the classes so far, and the classes; returns the periods that are complete now."""
        if scores.shape[1] > MOST_CLASSES:
            self._parts, self._n = [], 0
            return None
        alerts, start = None, 0
        while start < len(true):
            end = min(len(true), start + self.budget.period - self._n)
            self._parts.append((scores[start:end], true[start:end]))
            self._n += end - start
            start = end
            if self._n == self.budget.period:
                alerts = with_later(alerts, self._complete(scores.shape[1]))
                self._parts, self._n = [], 0
        return alerts

    def _complete(self, n_classes: int) -> Alerts:
        scores, true = np.zeros((n_classes, self._n)), np.concatenate([own for _, own in self._parts])
        start = 0
        for part, _ in self._parts:  # a class that had not appeared has the score 0
            scores[: part.shape[1], start : start + len(part)] = part.T
            start += len(part)
        found = [n_found(scores[c], true == c, self.budget.n_alerts) for c in range(n_classes)]
        there = np.bincount(true, minlength=n_classes).tolist()
        return Alerts(*self.budget, 1, tuple(found), tuple(there))


# --- Costs -----------------------------------------------------------------------------------------------------------


Costs = tuple[float, ...]  # of the predictions, then of calling every sample class 0, every sample class 1, ...


class CostCount:
    """Adds up what predictions cost, and what it would have cost always to call the same class."""

    def __init__(self, option: Any) -> None:
        self._decision = decision_of(option)
        self._costs = np.zeros((0, 0))
        self._before = np.zeros(0)  # samples of each class in earlier chunks

    @staticmethod
    def of(model: Any) -> CostCount | None:
        """For a model that decides by costs; None for any other."""
        return CostCount.by(getattr(model, "decide", None))

    @staticmethod
    def by(option: Any) -> CostCount | None:
        """For an option ``decide`` that gives costs; None for any other."""
        is_known = isinstance(option, Mapping) and is_decision(option)
        return CostCount(option) if is_known and isinstance(decision_of(option), CostDecision) else None

    def of_chunk(self, counts: Iterable[Sequence[int]], names: Sequence[Any]) -> Costs:
        """Of a chunk, by its counts of classes and predicted classes.

        A class that appears now is charged for earlier chunks, too, so that the sum is that of the whole run.
        """
        n_before, m = len(self._before), len(names)
        if m > n_before:
            assert isinstance(self._decision, CostDecision)
            self._costs = self._decision.costs(names)
            self._before = np.pad(self._before, (0, m - n_before))
        actual, own = np.zeros(m), 0.0
        for true, guess, n in counts:
            actual[true] += n
            own += n * self._costs[true, guess]
        always = actual @ self._costs
        always[n_before:] += (self._before @ self._costs)[n_before:]
        self._before += actual
        return (float(own), *map(float, always))


def with_later_costs(costs: Costs | None, later: Costs | None) -> Costs | None:
    """The sums of both."""
    if costs is None or later is None:
        return costs or later
    return tuple(a + b for a, b in zip_longest(costs, later, fillvalue=0.0))
