"""The classes of a run: over time, in a table, and in a confusion matrix."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from markupsafe import Markup

from devdan.evaluation.counts import FEW
from devdan.report.bins import smooth_balance, smooth_recall
from devdan.report.chart import COLOURS, Chart, Plot, area, filled, in_percent, line_chart, moving, ticks
from devdan.report.shown_run import ShownRun
from devdan.report.words import NOTHING, clipped, number, percent

LARGEST_WITH_TEXT = 12  # classes; above this number the cells of the confusion matrix are too small for text
MOST_CLASSES = 100  # in the matrix and in the table
MOST_TOOLTIPS = 3000
MOST_CONFUSIONS = 10
_SPARK_POINTS = 50  # of a small curve


# --- Over time ---------------------------------------------------------------------------------------------------


def charted(run: ShownRun) -> list[int]:
    """The classes in the charts: the commonest, by their numbers, in the order of their names."""
    actual = run.summary.confusion.actual
    commonest = sorted(actual, key=lambda c: -actual[c])[:COLOURS]
    return sorted(commonest, key=lambda c: str(run.summary.classes[c]))


def recall_chart(run: ShownRun) -> Chart | None:
    """The moving mean of the recall of the commonest classes; None for one class or fewer than two points."""
    classes = charted(run)
    if len(classes) < 2 or len(run.counts) < 2:
        return None
    lines = [in_percent(smooth_recall(run.counts, c)) for c in classes]
    plot = filled(run.summary.n_samples, [value for line in lines for value in line])
    if plot is None:
        return None
    names = [clipped(run.summary.classes[c]) for c in classes]
    told = [f"{name} {percent(run.summary.confusion.recall(c))}" for name, c in zip(names, classes, strict=True)]
    ends = [count.end for count in run.counts]
    return line_chart(plot, ends, names, lines, f"Recall of classes over time, overall: {', '.join(told)}.")


def balance_chart(run: ShownRun) -> Chart | None:
    """The shares of the commonest classes among the samples, one on top of the other, the rest above them."""
    classes, confusion = charted(run), run.summary.confusion
    if len(classes) < 2 or len(run.counts) < 2:
        return None
    ends = [count.end for count in run.counts]
    plot = Plot(run.summary.n_samples, 0, 100)
    below: list[float | None] = [0.0] * len(ends)
    paths = []
    for n, c in enumerate(classes):
        own = in_percent(smooth_balance(run.counts, c))
        top = [None if a is None or b is None else a + b for a, b in zip(below, own, strict=True)]
        paths.append(plot.band(ends, below, top, f"layer f{n}"))
        below = top
    names = [clipped(run.summary.classes[c]) for c in classes]
    legend = [area(f"layer f{n}", name) for n, name in enumerate(names)]
    if len(confusion.actual) > len(classes):
        paths.append(plot.band(ends, below, [None if value is None else 100.0 for value in below], "layer rest"))
        legend.append(area("layer rest", "all others"))
    shares = [confusion.actual[c] / confusion.n_samples for c in classes]
    told = [f"{name} {percent(share)}" for name, share in zip(names, shares, strict=True)]
    body = plot.axes(ticks(0, 100, 4), " %", most=5) + moving(plot.stretched(*paths))
    return Chart(body, f"Shares of classes over time, overall: {', '.join(told)}.", legend)


# --- In a table: of more classes than a matrix has room to name --------------------------------------------------


class ClassRow(NamedTuple):
    name: str
    n: str
    recall: str
    precision: str
    curve: Markup  # of the recall
    mistaken: str  # what it is taken for most often


def class_rows(run: ShownRun) -> list[ClassRow]:
    """Every class that occurred, the lowest recall first, those of few samples last; none for a matrix that has names.

    Of very many classes, only the most frequent.
    """
    confusion, names = run.summary.confusion, run.summary.classes
    if len(names) <= LARGEST_WITH_TEXT:
        return []
    frequent = sorted(confusion.actual, key=lambda c: -confusion.actual[c])[:MOST_CLASSES]
    order = sorted(frequent, key=lambda c: (confusion.actual[c] < FEW, confusion.recall(c), -confusion.actual[c]))
    taken: dict[int, tuple[int, int]] = {}
    for true, guess, n in run.summary.counts:
        if true != guess and n > taken.get(true, (0, 0))[0]:
            taken[true] = (n, guess)
    return [
        ClassRow(
            clipped(names[c]),
            number(confusion.actual[c]),
            percent(confusion.recall(c)),
            percent(confusion.precision(c)),
            _spark(run, c),
            f"{clipped(names[taken[c][1]])}, {percent(taken[c][0] / confusion.actual[c])}" if c in taken else "",
        )
        for c in order
    ]


def _spark(run: ShownRun, c: int) -> Markup:
    """The recall of a class over time, small."""
    every = -(-len(run.counts) // _SPARK_POINTS)
    line = in_percent(smooth_recall(run.counts, c))[::every]
    plot = Plot(run.summary.n_samples, -4, 104)
    return plot.stretched(plot.line([count.end for count in run.counts][::every], line, "spark"))


def confusions(run: ShownRun) -> list[tuple[str, str, str, str]]:
    """What was taken for what most often, how often, and the share of the class; none for a matrix that has names."""
    confusion, names = run.summary.confusion, run.summary.classes
    if len(names) <= LARGEST_WITH_TEXT:
        return []
    wrong = sorted((pair for pair in run.summary.counts if pair[0] != pair[1]), key=lambda pair: -pair[2])
    return [
        (clipped(names[true]), clipped(names[guess]), number(n), percent(n / confusion.actual[true]))
        for true, guess, n in wrong[:MOST_CONFUSIONS]
    ]


# --- In a matrix -------------------------------------------------------------------------------------------------


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

    def rates(of: Callable[[int], float | None]) -> list[str]:
        return [NOTHING if (value := of(c)) is None else f"{100 * value:.{0 if small else 1}f}" for c in shown]

    return Matrix(
        names,
        [[cell(true, guess) for guess in shown] for true in shown],
        rates(confusion.recall),
        rates(confusion.precision),
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
    rates = table / np.maximum(table.sum(axis=1, keepdims=True), 1)
    apart = 2 - (rates + rates.T)
    np.fill_diagonal(apart, 0)
    return [classes[k] for k in leaves_list(linkage(squareform(apart), "average", optimal_ordering=True)).tolist()]
