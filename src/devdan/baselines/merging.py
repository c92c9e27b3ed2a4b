"""Which members are redundant: the maximal information compression index of their outputs."""

from __future__ import annotations

import numpy as np

from devdan.arrays import Floats


def compression_index(one: Floats, other: Floats) -> Floats:
    """MICI of two members, one number per output: 0 if the outputs depend linearly on each other.

    >>> one = np.array([[0.0], [0.5], [1.0]])
    >>> compression_index(one, 1 - one).round(9), compression_index(one, np.array([[1.0], [0.0], [1.0]])).round(3)
    (array([0.]), array([0.167]))
    """
    first, second = one - one.mean(axis=0), other - other.mean(axis=0)
    a, b, both = (first**2).mean(axis=0), (second**2).mean(axis=0), (first * second).mean(axis=0)
    # 4 V₁ V₂ (1 − ρ²), a constant output depends linearly on any other
    rest: Floats = np.maximum(4 * (a * b - both**2), 0.0)
    index: Floats = 0.5 * (a + b - np.sqrt(np.maximum((a + b) ** 2 - rest, 0.0)))
    return index


def merged(answers: Floats, errors: Floats, threshold: float) -> list[tuple[int, int]]:
    """Pairs of redundant members (removed, kept); each is in at most one pair, newest first.

    ``answers`` are (member, sample, output); the one with the larger error is removed.
    """
    pairs: list[tuple[int, int]] = []
    free = set(range(len(answers)))
    for newer in range(len(answers) - 1, 0, -1):
        for older in range(newer - 1, -1, -1):
            if {newer, older} <= free and compression_index(answers[newer], answers[older]).max() < threshold:
                goes, stays = (newer, older) if errors[newer] > errors[older] else (older, newer)
                pairs.append((goes, stays))
                free -= {newer, older}
    return pairs
