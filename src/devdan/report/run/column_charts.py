"""Which columns of a run mattered when."""

from __future__ import annotations

from collections.abc import Sequence

from devdan.report.chart import Chart, Plot, in_percent, moving, stroke, ticks
from devdan.report.run.bins import moving_mean, smooth_width
from devdan.report.run.shown_run import ShownRun
from devdan.report.words import clipped, percent

MOST_COLUMNS = 5  # in a chart: there are as many colours


def strongest(run: ShownRun) -> list[int]:
    """The columns that matter most, on average over the run, by their places; none that never mattered."""
    points = run.importances
    if not points:
        return []
    means = [sum(shares) / len(points) for shares in zip(*(point.shares for point in points), strict=True)]
    order = sorted(range(len(means)), key=lambda column: -means[column])
    return [column for column in order[:MOST_COLUMNS] if means[column] > 0]


def smooth_importance(run: ShownRun, column: int) -> list[float | None]:
    """The moving mean of the importance of a column."""
    points = run.importances
    parts = [(point.n_chunks * point.shares[column], point.n_chunks) for point in points]
    return moving_mean(parts, smooth_width(len(points)))


def column_name(run: ShownRun, column: int) -> str:
    """The name of a column, by its place."""
    names = run.info.get("feature_names") or [name for name, _ in run.columns]
    known = isinstance(names, list) and run.importances and len(names) == len(run.importances[0].shares)
    return clipped(names[column]) if known else f"x{column}"


def importances(run: ShownRun) -> Chart | None:
    """The moving means of the importances of the columns that matter most; None for fewer than two points."""
    points, columns = run.importances, strongest(run)
    if len(points) < 2 or not columns:
        return None
    lines = [in_percent(smooth_importance(run, column)) for column in columns]
    names = [column_name(run, column) for column in columns]
    return importance_chart(run.summary.n_samples, [point.end for point in points], names, lines)


def importance_chart(
    n_samples: int, ends: Sequence[float], names: Sequence[str], lines: Sequence[Sequence[float | None]]
) -> Chart:
    """A line of percentages for each column."""
    plot = Plot(n_samples, 0, 1.08 * max(value or 0.0 for line in lines for value in line))
    paths = [plot.line(ends, line, f"run s{n}") for n, line in enumerate(lines)]
    body = plot.axes(ticks(0, min(plot.high, 100), 4), " %", most=5) + moving(plot.stretched(*paths))
    last = [f"{name} {percent((line[-1] or 0.0) / 100)}" for name, line in zip(names, lines, strict=True)]
    legend = [stroke(f"run s{n}", name) for n, name in enumerate(names)]
    return Chart(body, f"Importance of columns over time, at the end: {', '.join(last)}.", legend)
