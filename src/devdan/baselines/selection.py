"""Online feature selection over the rules of all members (GOFS)."""

from __future__ import annotations

import numpy as np

from devdan.arrays import Floats, Words
from devdan.baselines.rulebase import RuleBase

_RATE = 0.2  # η
_REGULARISATION = 0.01  # ϱ
_EXPLORATION = 0.2  # probability of looking at random features, with partial input


def select(
    bases: list[RuleBase],
    weights: Floats,
    X: Floats,
    codes: Words,
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
    w = np.array([rule.consequent for base in bases for rule in base.live()])  # (rule, output, 1 + feature)
    radius = 1 / np.sqrt(_REGULARISATION)
    for x, label, firing in zip(X, codes, firings, strict=True):
        seen = x if explore is None else x * _look(mask, len(x), n_selected, explore)
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


def _look(mask: Floats | None, n_features: int, n_selected: int, random: np.random.RandomState) -> Floats:
    """The visible features of a sample."""
    if mask is not None and random.random_sample() >= _EXPLORATION:
        return mask
    drawn = np.zeros(n_features)
    drawn[random.permutation(n_features)[:n_selected]] = 1.0
    return drawn
