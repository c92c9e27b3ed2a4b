"""The confusion matrix of a run, to be looked at."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from devdan.report.drawing.words import NOTHING, clipped, percent
from devdan.report.run.shown_run import ShownRun

LARGEST_WITH_TEXT = 12  # classes; above this number the cells of the confusion matrix are too small for text


MOST_CLASSES = 100


MOST_TOOLTIPS = 3000


class MatrixCell(NamedTuple):
    """A number of samples and their share of the row."""

    n: int
    share: float
    tooltip: str


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
    try:
        shown.sort(key=lambda c: float(summary.classes[c]))
    except (TypeError, ValueError):
        shown.sort()  # in order of appearance
    small = len(shown) > LARGEST_WITH_TEXT
    names = [str(summary.classes[c]) for c in shown]
    counts = {(true, guess): n for true, guess, n in summary.counts}
    told = set(sorted(counts, key=lambda pair: -counts[pair])[:MOST_TOOLTIPS]) if small else set()

    def cell(true: int, guess: int) -> MatrixCell:
        n = counts.get((true, guess), 0)
        share = n / confusion.actual[true] if n else 0.0
        a, b = (clipped(summary.classes[c]) for c in (true, guess))
        return MatrixCell(n, share, f"{a} as {b}: {n:,} ({percent(share)})" if (true, guess) in told else "")

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
