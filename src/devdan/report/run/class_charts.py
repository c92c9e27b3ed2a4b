"""The classes of a run over time: how many of each are predicted right, and how many there are."""

from __future__ import annotations

from markupsafe import Markup

from devdan.report.chart import Chart, Plot, area, filled, in_percent, moving, stroke, ticks
from devdan.report.run.class_counts import smooth_recall, smooth_share
from devdan.report.run.shown_run import ShownRun
from devdan.report.words import clipped, percent

MOST_CLASSES = 5  # in a chart: there are as many colours


def charted(run: ShownRun) -> list[int]:
    """The classes in the charts: the commonest, by their numbers, in the order of their names."""
    actual = run.summary.confusion.actual
    commonest = sorted(actual, key=lambda c: -actual[c])[:MOST_CLASSES]
    return sorted(commonest, key=lambda c: str(run.summary.classes[c]))


def recall(run: ShownRun) -> Chart | None:
    """The moving mean of the recall of the commonest classes; None for one class or fewer than two points."""
    classes = charted(run)
    if len(classes) < 2 or len(run.counts) < 2:
        return None
    ends = [count.end for count in run.counts]
    lines = [in_percent(smooth_recall(run.counts, c)) for c in classes]
    plot = filled(run.summary.n_samples, [value for line in lines for value in line])
    if plot is None:
        return None
    paths = [plot.line(ends, line, f"run s{n}") for n, line in enumerate(lines)]
    body = plot.axes(ticks(plot.low, min(plot.high, 100), 4), " %", most=5) + moving(plot.stretched(*paths))
    names = [clipped(run.summary.classes[c]) for c in classes]
    told = [f"{name} {percent(run.summary.confusion.recall(c))}" for name, c in zip(names, classes, strict=True)]
    legend = [stroke(f"run s{n}", name) for n, name in enumerate(names)]
    return Chart(body, f"Recall of classes over time, overall: {', '.join(told)}.", legend)


def balance(run: ShownRun) -> Chart | None:
    """The shares of the commonest classes among the samples, one on top of the other, the rest above them."""
    classes = charted(run)
    if len(classes) < 2 or len(run.counts) < 2:
        return None
    ends = [count.end for count in run.counts]
    plot = Plot(run.summary.n_samples, 0, 100)
    below: list[float | None] = [0.0] * len(ends)
    paths, shares = [], []
    for n, c in enumerate(classes):
        own = in_percent(smooth_share(run.counts, c))
        top = [None if a is None or b is None else a + b for a, b in zip(below, own, strict=True)]
        paths.append(plot.band(ends, below, top, f"layer f{n}"))
        below = top
        shares.append(run.summary.confusion.actual[c] / run.summary.confusion.n_samples)
    names = [clipped(run.summary.classes[c]) for c in classes]
    legend = [area(f"layer f{n}", name) for n, name in enumerate(names)]
    if len(run.summary.confusion.actual) > len(classes):
        paths.append(plot.band(ends, below, [None if value is None else 100.0 for value in below], "layer rest"))
        legend.append(area("layer rest", "all others"))
    told = [f"{name} {percent(share)}" for name, share in zip(names, shares, strict=True)]
    body = plot.axes(ticks(0, 100, 4), " %", most=5) + moving(plot.stretched(Markup("").join(paths)))
    return Chart(body, f"Shares of classes over time, overall: {', '.join(told)}.", legend)
