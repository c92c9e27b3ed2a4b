"""The classes of a run, the worst first, and what is taken for what: for more classes than a matrix can name."""

from __future__ import annotations

from typing import NamedTuple

from markupsafe import Markup

from devdan.report.chart import Plot, in_percent
from devdan.report.run.class_counts import smooth_recall
from devdan.report.run.confusion_matrix import LARGEST_WITH_TEXT, MOST_CLASSES
from devdan.report.run.shown_run import ShownRun
from devdan.report.words import clipped, number, percent

FEW = 10  # samples, below which a recall says little
MOST_CONFUSIONS = 10
_POINTS = 50  # of a small curve


class ClassRow(NamedTuple):
    """A class."""

    name: str
    n: str
    recall: str
    precision: str
    curve: Markup  # of the recall
    mistaken: str  # what it is taken for most often


class Confused(NamedTuple):
    """Samples of a class that were taken for another."""

    name: str
    guess: str
    n: str
    share: str  # of the class


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
            _curve(run, c),
            f"{clipped(names[taken[c][1]])}, {percent(taken[c][0] / confusion.actual[c])}" if c in taken else "",
        )
        for c in order
    ]


def confusions(run: ShownRun) -> list[Confused]:
    """What was taken for what most often; none for a matrix that has names."""
    confusion, names = run.summary.confusion, run.summary.classes
    if len(names) <= LARGEST_WITH_TEXT:
        return []
    wrong = sorted((pair for pair in run.summary.counts if pair[0] != pair[1]), key=lambda pair: -pair[2])
    return [
        Confused(clipped(names[true]), clipped(names[guess]), number(n), percent(n / confusion.actual[true]))
        for true, guess, n in wrong[:MOST_CONFUSIONS]
    ]


def _curve(run: ShownRun, c: int) -> Markup:
    """Its recall over time, small."""
    every = -(-len(run.counts) // _POINTS)
    line = in_percent(smooth_recall(run.counts, c))[::every]
    plot = Plot(run.summary.n_samples, -4, 104)
    return plot.stretched(plot.line([count.end for count in run.counts][::every], line, "spark"))
