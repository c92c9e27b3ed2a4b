"""The localised generalisation error: a bound on a member's error near the samples of a chunk."""

from __future__ import annotations

import math

import numpy as np

from devdan.arrays import Floats
from devdan.baselines.rulebase import RuleBase

_NEIGHBOURHOOD = 1.0  # Q: half the width of the neighbourhood of a sample
_TARGET_RANGE, _OUTPUT_RANGE = 1.0, 1.0  # A, B
_CONFIDENCE = 0.001  # η
_NARROWEST = 1e-3  # squared width of a rule


def error_bound(base: RuleBase, X: Floats, squared_error: float) -> float:
    """R*_SM = (√e + √ST + A)² + B √(ln η / (−2 r)) of a member with the mean squared error e on the r samples."""
    bound = (math.sqrt(squared_error) + math.sqrt(sensitivity(base, X)) + _TARGET_RANGE) ** 2
    return bound + _OUTPUT_RANGE * math.sqrt(math.log(_CONFIDENCE) / (-2 * len(X)))


def sensitivity(base: RuleBase, X: Floats) -> float:
    """ST: the expected squared change of the outputs within the neighbourhood of a sample."""
    X = X * base.rules.weights
    mean, variance = X.mean(axis=0), X.var(axis=0)
    third, fourth = ((X - mean) ** 3).mean(axis=0), ((X - mean) ** 4).mean(axis=0)
    total_nu = total_zeta = 0.0
    for rule in base.live():
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
