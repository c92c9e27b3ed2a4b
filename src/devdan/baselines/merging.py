"""Which members say the same: the maximal information compression index of their outputs."""

from __future__ import annotations

import numpy as np

from devdan.arrays import Floats


def compression_index(one: Floats, other: Floats) -> Floats:
    """MICI of two members' outputs, one number for each output: 0 where they depend linearly on each other.

    >>> one = np.array([[0.0], [0.5], [1.0]])
    >>> compression_index(one, 1 - one).round(9), compression_index(one, np.array([[1.0], [0.0], [1.0]])).round(3)
    (array([0.]), array([0.167]))
    """
    first, second = one - one.mean(axis=0), other - other.mean(axis=0)
    a, b, both = (first**2).mean(axis=0), (second**2).mean(axis=0), (first * second).mean(axis=0)
    # 4 V₁ V₂ (1 − ρ²), where a constant output depends linearly on any other
    rest: Floats = np.maximum(4 * (a * b - both**2), 0.0)
    index: Floats = 0.5 * (a + b - np.sqrt(np.maximum((a + b) ** 2 - rest, 0.0)))
    return index


def merged(answers: Floats, errors: Floats, threshold: float) -> list[tuple[int, int]]:
    """Pairs of members (who goes, who stays) that say the same; each is in one pair at most, the newest come first.

    ``answers`` are (member, sample, output); who errs more goes.
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
