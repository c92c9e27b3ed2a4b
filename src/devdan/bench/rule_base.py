"""A rule base: the arrays of the kernel, which grow with rules and classes, and the weights of its features."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from devdan.arrays import Floats, Integers, writable
from devdan.bench import rule_kernel
from devdan.bench.rule_kernel import (
    EVENT_KINDS,
    N_CLASSES,
    N_EVENTS,
    N_FEATURES,
    N_NARROW,
    N_RULES,
    N_SEEN,
    N_STORED,
    FuzzyRule,
    Rules,
    RuleSettings,
)

MAX_EVENTS = 1000  # the latest, which are kept
WEIGHTINGS = ("soft", "full")
_CAPACITY = 8  # rules of a new base; doubled when it is full
_MAX_COMPARED = 200  # samples of a chunk that are compared to weight its features
_MIN_SOFT_WEIGHT = 0.1


class RuleBase:
    """The active and stored rules of pClass; ``weighting`` says how each chunk weights the features it is learned with.

    >>> base = RuleBase(2, 2, RuleSettings(0.99, 0.01, 100.0, 1e-15, True, True))
    >>> X, codes = np.array([[0.1, 0.2], [0.9, 0.7]]), np.array([0, 1])
    >>> base.learn(X, codes)
    [(1, 'rule added', 0, 1)]
    >>> base.outputs(X).argmax(axis=1)
    array([0, 1])
    """

    def __init__(self, n_features: int, n_classes: int, settings: RuleSettings, weighting: str | None = None) -> None:
        self.settings, self.weighting = settings, weighting
        self.rules = rule_kernel.new_rules(n_features, n_classes, _CAPACITY, MAX_EVENTS)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.rules = Rules(*map(writable, self.rules))

    def learn(self, X: Floats, codes: Integers) -> list[tuple[int, str, int, int]]:
        """Learn from a chunk in order; returns the rule events: sample, kind, rule, number of rules."""
        if self.weighting is not None:
            weights = feature_weights(X, codes, self.weighting)
            self.rules.weights[:] = self.rules.weights if weights is None else weights
        before, done = int(self.rules.header[N_EVENTS]), 0
        while done < len(X):
            done = rule_kernel.learn(self.rules, self.settings, self._scratch, X, codes, done)
            if self.rules.header[N_NARROW] > 0:
                rule_kernel.floor_spreads(self.rules)
            elif done < len(X):
                self._enlarge()
        events, after = self.rules.events, int(self.rules.header[N_EVENTS])
        rows = (events[number % len(events)].tolist() for number in range(max(before, after - len(events)), after))
        return [(sample, EVENT_KINDS[kind], rule, size) for sample, kind, rule, size in rows]

    def outputs(self, X: Floats) -> Floats:
        """The regression on one-hot targets, one row per sample; not probabilities."""
        out = np.empty((len(X), self.n_classes))
        rule_kernel.outputs(self.rules, self._scratch, X, self.firings(X), out)
        return out

    def firings(self, X: Floats) -> Floats:
        """The firing strengths Λ, one row per sample, one column per active rule."""
        out = np.empty((len(X), self.n_rules))
        rule_kernel.firings(self.rules, self._scratch, X, out)
        return out

    def add_class_masses(self, X: Floats, top: Floats, mass: Floats) -> None:
        """Add the class masses of the rules at each sample, as in :func:`rule_kernel.class_masses`."""
        rule_kernel.class_masses(self.rules, self._scratch, X, top, mass)

    def reset_covariance(self) -> None:
        """Reset Q ← ωI in all rules and keep everything else, so that new samples count more than old ones."""
        n_all = self.n_rules + int(self.rules.header[N_STORED])
        for rule in self._first(n_all):
            rule.covariance[:] = self.settings.omega * np.eye(self.n_features + 1)

    def add_classes(self, n_classes: int) -> None:
        """Extend to this many outputs; a new output starts at zero."""
        old, u = self.rules, self.n_features
        grown = rule_kernel.new_rules(u, n_classes, len(old.rows), len(old.events))
        for source, target in zip(old.rows, grown.rows, strict=True):
            rule, wider = rule_kernel.views(source, u, self.n_classes), rule_kernel.views(target, u, n_classes)
            for ours, theirs in zip(rule, wider, strict=True):
                theirs[tuple(slice(length) for length in ours.shape)] = ours
        header = old.header.copy()
        header[N_CLASSES] = n_classes
        self.rules = old._replace(header=header, rows=grown.rows)

    def active(self) -> Iterator[FuzzyRule]:
        """The active rules, as views."""
        return self._first(self.n_rules)

    def _first(self, n: int) -> Iterator[FuzzyRule]:
        return (rule_kernel.views(row, self.n_features, self.n_classes) for row in self.rules.rows[:n])

    @property
    def _scratch(self) -> Floats:
        return rule_kernel.scratch_for(self.rules)

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


def feature_weights(X: Floats, codes: Integers, weighting: str) -> Floats | None:
    """The weight λ of each feature, by how much worse the classes of a chunk are separated without it.

    ``full`` spreads the weights over [0, 1], so that the least useful feature is always left out; ``soft`` weights each
    feature by its part of the separability, at least 0.1. None if the chunk says nothing about the features.

    >>> X = np.array([[0.0, 0.5], [0.1, 0.1], [0.9, 0.4], [1.0, 0.2]])
    >>> feature_weights(X, np.array([0, 0, 1, 1]), "full")
    array([1., 0.])
    """
    rows = np.unique(np.linspace(0, len(X) - 1, _MAX_COMPARED).astype(int))
    X, codes = X[rows], codes[rows]
    squares = (X[:, None, :] - X[None, :, :]) ** 2
    distances = squares.sum(axis=2)
    if len(np.unique(codes)) < 2 or not distances.any():
        return None
    width = distances.mean()
    without = np.array([_separability(np.exp(-(distances - own) / width), codes) for own in np.moveaxis(squares, 2, 0)])
    span = without.max() if weighting == "soft" else np.ptp(without)
    if not span > 0:
        return None
    least = _MIN_SOFT_WEIGHT if weighting == "soft" else 0.0
    weights: Floats = np.clip(1 - (without - without.min()) / span, least, 1.0)
    return weights


def _separability(kernel: Floats, codes: Integers) -> float:
    """Fisher's criterion J = tr S_b / tr S_w of the classes in the space of a kernel matrix."""
    within = sum(kernel[np.ix_(own, own)].sum() / own.sum() for own in (codes == code for code in np.unique(codes)))
    between = within - kernel.sum() / len(kernel)
    return float(between / max(np.trace(kernel) - within, np.finfo(float).eps))
