"""The confusion matrix of a run, to be looked at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from devdan.report.run.shown_run import ShownRun
from devdan.report.words import NOTHING, clipped, percent

LARGEST_WITH_TEXT = 12  # classes; above this number the cells of the confusion matrix are too small for text
MOST_CLASSES = 100
MOST_TOOLTIPS = 3000


class MatrixCell(NamedTuple):
    """A number of samples and their share of the row."""

    n: int
    share: float
    tooltip: str
    is_hit: bool


class Matrix(NamedTuple):
    """A confusion matrix for display."""

    names: list[str]
    rows: list[list[MatrixCell]]
    recall: list[str]
    precision: list[str]
    small: bool  # cells without text
    n_left_out: int


def matrix(run: ShownRun) -> Matrix | None:
    """The confusion matrix; only the most frequent classes, if there are very many."""
    summary = run.summary
    confusion = summary.confusion
    if not confusion.n_samples:
        return None
    shown = sorted(range(len(summary.classes)), key=lambda c: -confusion.actual.get(c, 0))[:MOST_CLASSES]
    small = len(shown) > LARGEST_WITH_TEXT
    counts = {(true, guess): n for true, guess, n in summary.counts}
    shown = grouped(shown, counts) if small else by_name(shown, [str(name) for name in summary.classes])
    names = [str(summary.classes[c]) for c in shown]
    told = set(sorted(counts, key=lambda pair: -counts[pair])[:MOST_TOOLTIPS]) if small else set()

    def cell(true: int, guess: int) -> MatrixCell:
        n = counts.get((true, guess), 0)
        share = n / confusion.actual[true] if n else 0.0
        a, b = (clipped(summary.classes[c]) for c in (true, guess))
        tooltip = f"{a} as {b}: {n:,} ({percent(share)})" if (true, guess) in told else ""
        return MatrixCell(n, share, tooltip, true == guess)

    def shares(of: Callable[[int], float | None]) -> list[str]:
        return [NOTHING if (value := of(c)) is None else f"{100 * value:.{0 if small else 1}f}" for c in shown]

    return Matrix(
        names,
        [[cell(true, guess) for guess in shown] for true in shown],
        shares(confusion.recall),
        shares(confusion.precision),
        small,
        len(summary.classes) - len(shown),
    )


def by_name(classes: Sequence[int], names: Sequence[str]) -> list[int]:
    """Classes by their names, which may be numbers.

    >>> by_name([0, 1, 2], ["10", "9", "b"]), by_name([0, 1], ["10", "9"])
    ([0, 1, 2], [1, 0])
    """
    try:
        return sorted(classes, key=lambda c: float(names[c]))
    except ValueError:
        return sorted(classes, key=lambda c: names[c])


def grouped(classes: Sequence[int], counts: dict[tuple[int, int], int]) -> list[int]:
    """Classes in an order that puts those next to each other that are taken for each other.

    >>> order = grouped([0, 1, 2, 3], {(0, 2): 5, (2, 0): 4, (1, 3): 7, (0, 0): 9, (1, 1): 9, (2, 2): 9, (3, 3): 9})
    >>> sorted(map(sorted, (order[:2], order[2:])))
    [[0, 2], [1, 3]]
    """
    from scipy.cluster.hierarchy import leaves_list, linkage  # noqa: PLC0415 (takes a while, and few runs need it)
    from scipy.spatial.distance import squareform  # noqa: PLC0415

    table = np.array([[counts.get((true, guess), 0) for guess in classes] for true in classes], dtype=float)
    shares = table / np.maximum(table.sum(axis=1, keepdims=True), 1)
    apart = 2 - (shares + shares.T)
    np.fill_diagonal(apart, 0)
    return [classes[k] for k in leaves_list(linkage(squareform(apart), "average", optimal_ordering=True)).tolist()]
