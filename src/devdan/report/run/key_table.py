"""The keys of a fleet in tables: the best, the worst, and many of them to sort and search."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from devdan.report.run.key_figures import KeyFigures
from devdan.report.words import clipped, number, percent

MOST_ROWS = 2000  # of the table to search, so that a page stays small however large the fleet is
_BEST = 10
_LONGEST = 80  # characters of a key


class KeyRow(NamedTuple):
    """One key."""

    name: str
    samples: str
    accuracy: str
    recent: str
    drifts: str


def extremes(keys: KeyFigures) -> tuple[list[KeyRow], list[KeyRow]]:
    """The keys with the lowest and with the highest accuracy, those with more samples first where it is the same."""
    judged = np.flatnonzero(keys.is_judged)
    accuracy, samples = keys.accuracy[judged], keys.samples[judged]
    worst = judged[np.lexsort((-samples, accuracy))]
    best = judged[np.lexsort((-samples, -accuracy))]
    n = min(_BEST, len(judged) // 2)
    return [_row(keys, place) for place in worst[:n].tolist()], [_row(keys, place) for place in best[:n].tolist()]


def _row(keys: KeyFigures, place: int) -> KeyRow:
    return KeyRow(
        clipped(keys.names[place], _LONGEST),
        number(int(keys.samples[place])),
        percent(float(keys.accuracy[place])),
        percent(float(keys.recent[place])),
        number(int(keys.real_drifts[place] + keys.virtual_drifts[place])),
    )


def searchable(keys: KeyFigures) -> list[list[Any]]:
    """Rows for the script: of the keys with the most samples, if there are too many for all."""
    chosen = np.argsort(-keys.samples, kind="stable")[:MOST_ROWS].tolist()
    accuracy, recent = keys.accuracy, keys.recent
    return [
        [
            clipped(keys.names[place], _LONGEST),
            int(keys.samples[place]),
            *(
                None if math.isnan(share[place]) else round(100 * float(share[place]), 1)
                for share in (accuracy, recent)
            ),
            int(keys.real_drifts[place]),
            int(keys.virtual_drifts[place]),
            int(keys.last[place]),
        ]
        for place in chosen
    ]
