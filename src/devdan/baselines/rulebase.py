"""A rule base: the kernel's arrays, enlarged as rules and classes are added."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from devdan.arrays import Floats, Words, writable
from devdan.baselines import rulekernel
from devdan.baselines.events import RULE_KINDS
from devdan.baselines.rulekernel import (
    N_CLASSES,
    N_EVENTS,
    N_FEATURES,
    N_NARROW,
    N_RULES,
    N_SEEN,
    N_STORED,
    Rule,
    Rules,
    Settings,
)
from devdan.baselines.weighting import feature_weights

_ROOM = 8  # capacity for rules in a new base; doubled when it is full
_EVENTS = 1000


class RuleBase:
    """The rules of pClass, active and stored; ``weighting`` says how each chunk weights the features before learning.

    >>> base = RuleBase(2, 2, Settings(0.99, 0.01, 100.0, 1e-15, True, True))
    >>> X, codes = np.array([[0.1, 0.2], [0.9, 0.7]]), np.array([0, 1])
    >>> base.learn(X, codes)
    [(1, 'rule added', 0, 1)]
    >>> base.outputs(X).argmax(axis=1)
    array([0, 1])
    """

    def __init__(self, n_features: int, n_classes: int, settings: Settings, weighting: str | None = None) -> None:
        self.settings, self.weighting = settings, weighting
        self.rules = rulekernel.new_rules(n_features, n_classes, _ROOM, _EVENTS)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.rules = Rules(*map(writable, self.rules))

    def learn(self, X: Floats, codes: Words) -> list[tuple[int, str, int, int]]:
        """Learn from a chunk in order; returns the rule events: sample, kind, rule, number of rules."""
        if self.weighting is not None:
            weights = feature_weights(X, codes, self.weighting)
            self.rules.weights[:] = self.rules.weights if weights is None else weights
        before, done = int(self.rules.header[N_EVENTS]), 0
        while done < len(X):
            done = rulekernel.learn(self.rules, self.settings, self._scratch, X, codes, done)
            if self.rules.header[N_NARROW] > 0:
                rulekernel.floor_spreads(self.rules)
            elif done < len(X):
                self._enlarge()
        events = self.rules.events
        numbers = range(max(before, int(self.rules.header[N_EVENTS]) - len(events)), int(self.rules.header[N_EVENTS]))
        rows = (events[number % len(events)].tolist() for number in numbers)
        return [(sample, RULE_KINDS[kind], rule, size) for sample, kind, rule, size in rows]

    def outputs(self, X: Floats) -> Floats:
        """Regression outputs for one-hot targets, one row per sample; not probabilities."""
        out = np.empty((len(X), self.n_classes))
        rulekernel.outputs(self.rules, self._scratch, X, self.firings(X), out)
        return out

    def firings(self, X: Floats) -> Floats:
        """Λ, one row per sample, one column per active rule."""
        out = np.empty((len(X), self.n_rules))
        rulekernel.firings(self.rules, self._scratch, X, out)
        return out

    def add_class_masses(self, X: Floats, top: Floats, mass: Floats) -> None:
        """The class masses of the rules at each sample: see the kernel."""
        rulekernel.class_masses(self.rules, self._scratch, X, top, mass)

    def reset_covariance(self) -> None:
        """Reset Q ← ωI in all rules and keep everything else, so that new samples count more than old ones."""
        for rule in self._every():
            rule.covariance[:] = self.settings.omega * np.eye(self.n_features + 1)

    def add_classes(self, n_classes: int) -> None:
        """Extend to this many outputs; new outputs start as classes never seen."""
        old, u = self.rules, self.n_features
        grown = rulekernel.new_rules(u, n_classes, len(old.rows), len(old.events))
        for source, target in zip(old.rows, grown.rows, strict=True):
            rule, wider = rulekernel.views(source, u, self.n_classes), rulekernel.views(target, u, n_classes)
            for ours, theirs in zip(rule, wider, strict=True):
                theirs[tuple(slice(length) for length in ours.shape)] = ours
        header = old.header.copy()
        header[N_CLASSES] = n_classes
        self.rules = old._replace(header=header, rows=grown.rows)

    def live(self) -> Iterator[Rule]:
        """The active rules, as views."""
        return (rulekernel.views(row, self.n_features, self.n_classes) for row in self.rules.rows[: self.n_rules])

    def _every(self) -> Iterator[Rule]:
        rows = self.rules.rows[: self.n_rules + int(self.rules.header[N_STORED])]
        return (rulekernel.views(row, self.n_features, self.n_classes) for row in rows)

    @property
    def _scratch(self) -> Floats:
        return rulekernel.scratch_for(self.rules)

    def _enlarge(self) -> None:
        self.rules = self.rules._replace(rows=np.concatenate([self.rules.rows, np.zeros_like(self.rules.rows)]))

    @property
    def n_features(self) -> int:
        return int(self.rules.header[N_FEATURES])

    @property
    def n_classes(self) -> int:
        return int(self.rules.header[N_CLASSES])

    @property
    def n_rules(self) -> int:
        return int(self.rules.header[N_RULES])

    @property
    def n_seen(self) -> int:
        return int(self.rules.header[N_SEEN])

    @property
    def n_parameters(self) -> int:
        """The number of parameters of the active rules: centre u, spread u², consequent (u + 1) m."""
        u = self.n_features
        return self.n_rules * (u + u * u + (u + 1) * self.n_classes)
