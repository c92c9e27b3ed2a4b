"""What a pENsemble decides by: drift of the inputs, error bounds and redundancy of members, usefulness of features."""

from __future__ import annotations

import math

import numpy as np

from devdan.arrays import Floats, Integers
from devdan.bench.rule_base import RuleBase

# --- Drift: a cut of the chunk, and the means before and after it ---------------------------------------------------

STABLE, WARNING, DRIFT = "stable", "warning", "drift"


def find_cut(X: Floats, confidence: float) -> int | None:
    """Rows before the cut: the first point where the upper bound on their mean reaches that of the whole chunk."""
    r = len(X)
    if r < 2 or not np.ptp(X, axis=0).any():
        return None
    cuts = np.arange(1, r)
    means = np.cumsum(X[:-1], axis=0).mean(axis=1) / cuts
    ranges = (np.maximum.accumulate(X[:-1]) - np.minimum.accumulate(X[:-1])).mean(axis=1)
    bounds = np.sqrt((r - cuts) / (2 * cuts * r) * math.log(1 / confidence))
    crossed = means + ranges * bounds >= X.mean() + np.ptp(X, axis=0).mean() * bounds
    return int(cuts[crossed.argmax()]) if crossed.any() else None


def detect_drift(X: Floats, cut_confidence: float, drift_confidence: float, warning_confidence: float) -> str:
    """``drift``, ``warning`` or ``stable``, by the Hoeffding bound on the difference of two means.

    Only the first cut is tested, so this finds drifts near the start of the chunk and hardly ever elsewhere.

    >>> X = np.random.default_rng(0).random((500, 2))
    >>> falling = X + np.where(np.arange(500) < 4, 5.0, 0.0)[:, None]
    >>> detect_drift(X, 0.001, 0.001, 0.005), detect_drift(falling, 0.001, 0.001, 0.005)
    ('stable', 'drift')
    """
    cut = find_cut(X, cut_confidence)
    if cut is None:
        return STABLE
    before, after = X[:cut], X[cut:]
    difference = np.abs(before.mean(axis=0) - after.mean(axis=0)).mean()
    factor = 1 / (2 * len(before)) + 1 / (2 * len(after))

    def bound(confidence: float) -> float:
        return float(np.ptp(after, axis=0).mean() * math.sqrt(factor * math.log(1 / confidence)))

    if difference >= bound(drift_confidence):
        return DRIFT
    return WARNING if difference >= bound(warning_confidence) else STABLE


# --- Generalisation: a bound on a member's error near the samples of a chunk ----------------------------------------

_NEIGHBOURHOOD = 1.0  # Q: half the width of the neighbourhood of a sample
_TARGET_RANGE, _OUTPUT_RANGE = 1.0, 1.0  # A, B
_CONFIDENCE = 0.001  # η
_NARROWEST = 1e-3  # squared width of a rule


def error_bound(base: RuleBase, X: Floats, squared_error: float) -> float:
    """R*_SM = (√e + √ST + A)² + B √(ln η / (−2 r)) of a member with the mean squared error e on the r samples."""
    bound = (math.sqrt(squared_error) + math.sqrt(_sensitivity(base, X)) + _TARGET_RANGE) ** 2
    return bound + _OUTPUT_RANGE * math.sqrt(math.log(_CONFIDENCE) / (-2 * len(X)))


def _sensitivity(base: RuleBase, X: Floats) -> float:
    """ST: the expected squared change of the outputs within the neighbourhood of a sample."""
    X = X * base.rules.weights
    mean, variance = X.mean(axis=0), X.var(axis=0)
    third, fourth = ((X - mean) ** 3).mean(axis=0), ((X - mean) ** 4).mean(axis=0)
    total_nu = total_zeta = 0.0
    for rule in base.active():
        shift = mean - rule.centre
        width = max(np.trace(np.linalg.inv(rule.inverse)) / len(shift), _NARROWEST)
        expected = (variance + shift**2).sum()  # E
        spread = (fourth - variance**2 + 4 * variance * shift**2 + 4 * third * shift).sum()  # Var
        weight = np.abs(rule.consequent @ np.concatenate([[1.0], mean])).max()
        phi = weight**2 * math.exp(min(0.0, spread / (2 * width**2) - expected / width))
        total_nu += phi * expected / width**2  # ν
        total_zeta += phi / width**2  # ζ
    half2 = _NEIGHBOURHOOD**2
    return float(half2 / 3 * total_nu + 0.2 / 9 * half2**2 * len(mean) * total_zeta)


def is_suspicious(bound: float, history: list[float]) -> bool:
    """Whether a bound is more than three deviations above its own past, once there are three past values."""
    return len(history) >= 3 and bool(bound > np.mean(history) + 3 * np.std(history))


# --- Redundancy: how far the outputs of two members depend linearly on each other -----------------------------------


def compression_index(one: Floats, other: Floats) -> Floats:
    """The maximal information compression index of two members, for each output: 0 if they are linearly dependent.

    >>> one = np.array([[0.0], [0.5], [1.0]])
    >>> compression_index(one, 1 - one).round(9), compression_index(one, np.array([[1.0], [0.0], [1.0]])).round(3)
    (array([0.]), array([0.167]))
    """
    first, second = one - one.mean(axis=0), other - other.mean(axis=0)
    a, b, both = (first**2).mean(axis=0), (second**2).mean(axis=0), (first * second).mean(axis=0)
    # 4 V₁ V₂ (1 − ρ²); a constant output depends linearly on any other
    rest: Floats = np.maximum(4 * (a * b - both**2), 0.0)
    index: Floats = 0.5 * (a + b - np.sqrt(np.maximum((a + b) ** 2 - rest, 0.0)))
    return index


def redundant_pairs(outputs: Floats, errors: Floats, threshold: float) -> list[tuple[int, int]]:
    """Pairs of redundant members (removed, kept), newest first; each member is in at most one pair.

    ``outputs`` are (member, sample, output); of two members, the one with the larger error is removed.
    """
    pairs: list[tuple[int, int]] = []
    free = set(range(len(outputs)))
    for newer in range(len(outputs) - 1, 0, -1):
        for older in range(newer - 1, -1, -1):
            if {newer, older} <= free and compression_index(outputs[newer], outputs[older]).max() < threshold:
                removed, kept = (newer, older) if errors[newer] > errors[older] else (older, newer)
                pairs.append((removed, kept))
                free -= {newer, older}
    return pairs


# --- Features: online selection over the rules of all members (GOFS) ------------------------------------------------

_RATE = 0.2  # η
_REGULARISATION = 0.01  # ϱ
_EXPLORATION = 0.2  # probability of looking at random features, with partial input


def select_features(
    bases: list[RuleBase],
    weights: Floats,
    X: Floats,
    codes: Integers,
    mask: Floats | None,
    n_selected: int,
    explore: np.random.RandomState | None,
) -> Floats | None:
    """The mask of selected features; ``mask`` is that of the previous chunk, None means all.

    All rules of all members form one network whose output weights w are initialised with their consequents. Each
    misclassified sample causes a gradient step; then w is projected onto a ball, the features are scored by the size of
    their weights, and all but the best are zeroed. With a random generator ``explore``, only the selected features of a
    sample are seen and, sometimes, random ones.
    """
    firings = np.hstack([weight * base.firings(X) for weight, base in zip(weights, bases, strict=True)])
    w = np.array([rule.consequent for base in bases for rule in base.active()])  # (rule, output, 1 + feature)
    radius = 1 / np.sqrt(_REGULARISATION)
    for x, label, firing in zip(X, codes, firings, strict=True):
        seen = x if explore is None else x * _visible(mask, len(x), n_selected, explore)
        extended = np.concatenate([[1.0], seen])
        y = np.einsum("i,ioj,j->o", firing, w, extended)
        if y.argmax() == label:
            continue
        error = y - (np.arange(len(y)) == label)
        w = (1 - _RATE * _REGULARISATION) * w - _RATE * np.einsum("i,o,j->ioj", firing, error, extended)
        w *= min(1.0, radius / max(float(np.linalg.norm(w)), np.finfo(float).tiny))
        scores = np.abs(w[:, :, 1:]).sum(axis=(0, 1))  # not |Σw|: one-hot outputs sum to 1, so Σw cancels
        mask = np.zeros(len(x))
        mask[np.argsort(-scores, kind="stable")[:n_selected]] = 1.0
        w[:, :, 1:] *= mask
    return mask


def _visible(mask: Floats | None, n_features: int, n_selected: int, random: np.random.RandomState) -> Floats:
    """The visible features of a sample."""
    if mask is not None and random.random_sample() >= _EXPLORATION:
        return mask
    drawn = np.zeros(n_features)
    drawn[random.permutation(n_features)[:n_selected]] = 1.0
    return drawn
