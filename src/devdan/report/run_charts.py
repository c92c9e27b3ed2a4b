"""The charts of a run over time, and of its calibration. A chart takes at least two points: fewer are told in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from markupsafe import Markup

from devdan.evaluation.measures import Measure, about_classes
from devdan.evaluation.record import Phases
from devdan.report.bins import (
    Bin,
    smooth_accuracy,
    smooth_balance,
    smooth_importance,
    smooth_no_change,
    smooth_recall,
    smooth_width,
)
from devdan.report.chart import (
    COLOURS,
    Chart,
    LegendEntry,
    Plot,
    Values,
    area,
    filled,
    in_percent,
    line_chart,
    mark,
    moving,
    stroke,
    ticks,
)
from devdan.report.class_charts import charted
from devdan.report.event_marks import changes_legend, drawn_changes, drawn_drifts, markers
from devdan.report.rare import OVER_TIME, over_parts, over_time
from devdan.report.shown_run import ShownRun
from devdan.report.words import clipped, heading, how_many, letter, number, percent

SMALLEST_CHUNK_WITH_BAND = 20  # for smaller chunks, the lowest and highest accuracy say little
_EARLY = 0.05  # of the run: if half of the changes come before, and a few, there is a chart of its beginning
_CROWD = 4
_NEARLY_ALL = 0.9  # of these changes are in that chart
_FEWEST_POINTS = 5
_LARGEST = 9.0  # the radius of the level with most predictions, in pixels


# --- Accuracy ----------------------------------------------------------------------------------------------------


def accuracy_chart(run: ShownRun) -> Chart | None:
    """Accuracy per chunk, its moving mean, the no-change predictor's if it is in range, and the drifts."""
    bins, plot = run.bins, _accuracy_plane(run)
    if plot is None:
        return None
    ends, means = [bin.end for bin in bins], in_percent(bin.accuracy for bin in bins)
    paths, legend = [], list[LegendEntry]()
    if _has_band(run):
        lows, highs = in_percent(bin.low for bin in bins), in_percent(bin.high for bin in bins)
        paths.append(plot.band(ends, lows, highs, "band"))
        legend.append(area("band", "lowest to highest chunk"))
    if no_change_place(run) == "":
        paths.append(plot.line(ends, in_percent(smooth_no_change(bins)), "no-change"))
        legend.append(stroke("no-change", f"no-change predictor, {percent(run.summary.no_change)} overall"))
    majority = run.summary.confusion.majority
    if majority is not None and in_range(run, majority):
        commonest = clipped(about_classes(run.figures)["commonest"])
        paths.append(plot.line([ends[0], ends[-1]], in_percent([majority, majority]), "majority"))
        legend.append(stroke("majority", f"always {commonest}, {percent(majority)} overall"))
    smoothed = smooth_width(len(bins))
    style = "each" if smoothed > 1 else "smooth"
    paths.append(plot.line(ends, means, style))
    legend.insert(0, stroke(style, "each chunk" if bins.width == 1 else f"each {bins.width:,} chunks"))
    if smoothed > 1:
        paths.append(plot.line(ends, in_percent(smooth_accuracy(bins)), "smooth"))
        legend.insert(0, stroke("smooth", f"moving mean over {number(smoothed * bins.width)} chunks"))
    drifts = drawn_drifts(plot, run)
    body = plot.axes(ticks(plot.low, min(plot.high, 100), 5), " %", lower=drifts.lower)
    body += moving(drifts.lines, plot.stretched(*paths)) + drifts.lanes
    known = [mean for mean in means if mean is not None]
    label = (
        f"Accuracy over {run.summary.n_samples:,} samples, between {min(known):.1f} % and {max(known):.1f} %, "
        f"{known[-1]:.1f} % at the end."
    )
    if run.summary.drifts is not None:
        label += f" {how_many(run.summary.drifts.total, 'drift')} signalled."
    if run.true_drifts:
        label += f" {how_many(len(run.true_drifts), 'true drift')}."
    return Chart(body, label, [*legend, *drifts.legend], drifts.lower)


def in_range(run: ShownRun, accuracy: float | None) -> bool:
    """Whether an accuracy is in the chart."""
    plot = _accuracy_plane(run)
    return plot is not None and accuracy is not None and plot.low <= 100 * accuracy <= plot.high


def no_change_place(run: ShownRun) -> str:
    """Where the accuracy of the no-change predictor is, if it is not in the chart."""
    plot = _accuracy_plane(run)
    line = [value for value in in_percent(smooth_no_change(run.bins)) if value is not None]
    if plot is None or not line:
        return "unknown"
    below = sum(value < plot.low for value in line) > len(line) / 2
    above = sum(value > plot.high for value in line) > len(line) / 2
    return "below this chart" if below else "above this chart" if above else ""


def _accuracy_plane(run: ShownRun) -> Plot | None:
    """The value range for the accuracies of one run, including the band; None for fewer than two."""
    scored = [bin.accuracy for bin in run.bins if bin.accuracy is not None]
    extremes = [extreme for bin in run.bins for extreme in (bin.low, bin.high)] if _has_band(run) else []
    return filled(run.summary.n_samples, in_percent([*extremes, *scored])) if len(scored) > 1 else None


def _has_band(run: ShownRun) -> bool:
    """Whether the lowest and the highest accuracy within each point are shown."""
    return run.bins.width > 1 and run.summary.n_samples / run.summary.n_chunks >= SMALLEST_CHUNK_WITH_BAND


# --- Structure ---------------------------------------------------------------------------------------------------


def hidden_units_chart(run: ShownRun) -> Chart | None:
    """Hidden units over time, with their growths and prunings."""
    return _units_chart(run, run.bins, run.summary.n_samples)


def beginning_chart(run: ShownRun) -> tuple[int, Chart] | None:
    """The same for the beginning alone, and its last sample, if many changes are crowded there."""
    fine = run.beginning[-1].end if run.beginning else 0
    every = [*run.beginning, *(bin for bin in run.bins if bin.start >= fine)]
    early = [bin for bin in every if bin.end <= _EARLY * run.summary.n_samples]
    so_far = list(accumulate(_n_changes(bin.growths, bin.prunings) for bin in early))
    total = _n_changes(run.summary.growths, run.summary.prunings)
    if not early or so_far[-1] < max(_CROWD, total / 2):
        return None
    nearly_all = next(place for place, n in enumerate(so_far, 1) if n >= _NEARLY_ALL * so_far[-1])
    early = early[: max(_FEWEST_POINTS, round(1.25 * nearly_all))]
    chart = _units_chart(run, early, early[-1].end, most=3)
    return (early[-1].end, chart) if chart else None


def _n_changes(*counted: Phases | None) -> float:
    return sum(phases.total for phases in counted if phases is not None)


def _units_chart(run: ShownRun, bins: Sequence[Bin], end: int, most: int = 6) -> Chart | None:
    values = [bin.n_hidden for bin in bins]
    known = [value for value in values if value is not None]
    if len(known) < 2:
        return None
    plot = Plot(end, 0, 1.18 * max(known) + 0.5)
    marks = markers(bins, end)
    body = plot.axes(ticks(0, plot.high, 5, smallest=1), most=most)
    body += moving(plot.stretched(plot.steps([bin.end for bin in bins], values, "units")), drawn_changes(plot, marks))
    label = f"{run.units.capitalize()} over {end:,} samples: {min(known)} to {max(known)}, {known[-1]} at the end."
    legend = [stroke("units", run.units), *changes_legend(marks)]
    return Chart(body, " ".join([label, *(f"{entry.text}." for entry in legend[1:])]), legend)


def bias_variance_chart(run: ShownRun, phase: str) -> Chart | None:
    """The running means of bias² and variance in one phase; None if there are none."""

    def of(pair: Phases | None) -> float | None:
        return None if pair is None else pair.of(phase)

    bias2, variance = [of(bin.bias2) for bin in run.bins], [of(bin.variance) for bin in run.bins]
    known = [value for value in (*bias2, *variance) if value is not None]
    if not any(known) or len(run.bins) < 2:
        return None
    plot = Plot(run.summary.n_samples, 0, 1.08 * max(known))
    ends = [bin.end for bin in run.bins]
    body = plot.axes(ticks(0, plot.high, 4), most=5)
    body += moving(plot.stretched(plot.line(ends, variance, "variance"), plot.line(ends, bias2, "bias2")))
    label = (
        f"Running means of the {phase} phase, at the end: bias² {bias2[-1] or 0:.3g}, variance {variance[-1] or 0:.3g}."
    )
    return Chart(body, label, [stroke("bias2", "bias²"), stroke("variance", "variance")])


# --- Columns -----------------------------------------------------------------------------------------------------


def strongest(run: ShownRun) -> list[int]:
    """The columns that matter most, on average over the run, by their places; none that never mattered."""
    points = run.importances
    if not points:
        return []
    means = [sum(values) / len(points) for values in zip(*(point.values for point in points), strict=True)]
    order = sorted(range(len(means)), key=lambda column: -means[column])
    return [column for column in order[:COLOURS] if means[column] > 0]


def column_name(run: ShownRun, column: int) -> str:
    """The name of a column, by its place."""
    names = run.info.get("feature_names") or [name for name, _ in run.columns]
    known = run.importances and len(names) == len(run.importances[0].values)
    return clipped(names[column]) if known else f"x{column}"


def importances_chart(run: ShownRun) -> Chart | None:
    """The moving means of the importances of the columns that matter most; None for fewer than two points."""
    points, columns = run.importances, strongest(run)
    if len(points) < 2 or not columns:
        return None
    lines = [in_percent(smooth_importance(points, column)) for column in columns]
    names = [column_name(run, column) for column in columns]
    return columns_chart(run.summary.n_samples, [point.end for point in points], names, lines)


def columns_chart(n_samples: int, ends: Sequence[float], names: Sequence[str], lines: Sequence[Values]) -> Chart:
    """The importances of columns, in percent."""
    plot = Plot(n_samples, 0, 1.08 * max(value or 0.0 for line in lines for value in line))
    last = [f"{name} {percent((line[-1] or 0.0) / 100)}" for name, line in zip(names, lines, strict=True)]
    return line_chart(plot, ends, names, lines, f"Importance of columns over time, at the end: {', '.join(last)}.")


# --- Calibration -------------------------------------------------------------------------------------------------


def reliability_chart(run: ShownRun) -> Chart | None:
    """The share of right predictions against their confidence; None for a model that does not tell it."""
    levels = run.summary.reliability.levels
    if not levels:
        return None
    low = 0.5 if all(min(level.confidence, level.share_right) >= 0.5 for level in levels) else 0.0
    plot = Plot(1000, 100 * low, 100)

    def across(confidence: float) -> float:
        return 1000 * (confidence - low) / (1 - low)

    steps = [100 * low + k * 20 * (1 - low) for k in range(6)]
    body = plot.axes(steps, " %", [(across(step / 100), f"{step:g} %") for step in steps], "confidence")
    body += Markup('<line class="ideal" x1="0" y1="100%" x2="100%" y2="0"/>')
    sure, right = [across(level.confidence) for level in levels], [100 * level.share_right for level in levels]
    body += plot.stretched(plot.line(sure, right, "bias2"))
    most = max(level.n_samples for level in levels)
    for level, x, y in zip(levels, sure, right, strict=True):
        text = (
            f"{level.n_samples:,} predictions of {percent(level.confidence)} confidence: "
            f"{percent(level.share_right)} right"
        )
        radius = max(2.5, _LARGEST * (level.n_samples / most) ** 0.5)
        body += Markup('<circle class="level" cx="{:.2f}%" cy="{:.2f}%" r="{:.1f}"><title>{}</title></circle>').format(
            plot.x(x), plot.y(y), radius, text
        )
    told = f"Calibration error {run.summary.calibration_error or 0:.3f}. " + "; ".join(
        f"{percent(level.confidence, 0)} sure, {percent(level.share_right, 0)} right" for level in levels
    )
    legend = [mark("dot", "level", "predictions of about this confidence"), stroke("ideal", "calibrated")]
    return Chart(body, f"{told}.", legend)


# --- The figures that the crosshair shows at a sample, for the script of a page ----------------------------------


Ends = list[int]


class Series(NamedTuple):
    """The values of a run at each point, and the charts whose crosshair shows them."""

    charts: str
    name: str
    digits: int
    suffix: str
    values: list[float | None]


def points(runs: Sequence[ShownRun], leading: Measure | None = None) -> dict[str, Any]:
    """The values shown by the crosshair, by the charts that show them, and the last sample of the longest run.

    ``leading`` is what a comparison leads with instead of accuracy.
    """
    ends: list[Ends] = []

    def place(of: Ends) -> int:
        """Many series have the same points, which are written once."""
        if of not in ends:
            ends.append(of)
        return ends.index(of)

    charts: dict[str, list[dict[str, Any]]] = {}
    found = [list(_all_series(run)) if len(runs) == 1 else _compared(run, leading) for run in runs]
    for n, own in enumerate(found):
        for k, (points_at, series) in enumerate(own):
            if not any(_is_known(other[k][1]) for other in found):
                continue
            group = charts.setdefault(series.charts, [])
            if not group or group[-1]["run"] != letter(n):
                group.append({"run": letter(n), "ends": place(points_at), "series": []})
            group[-1]["series"].append(dict(zip(Series._fields[1:], series[1:], strict=True)))
    return {"end": max(1, *(run.summary.n_samples for run in runs)), "ends": ends, "charts": charts}


def _is_known(series: Series) -> bool:
    return any(value is not None for value in series.values)


def _compared(run: ShownRun, leading: Measure | None) -> list[tuple[Ends, Series]]:
    """Of runs side by side, only what their charts have in common."""
    ends = [bin.end for bin in run.bins]
    found = [(ends, series) for series in _series(run) if series.name in ("moving mean", run.units)]
    if leading is not None:
        places, values = over_parts(run, leading)
        known = [None if value is None else round(value, leading.digits) for value in values]
        found.append((places, Series("headline", heading(leading), leading.digits, "", known)))
    return found


def _all_series(run: ShownRun) -> Iterator[tuple[Ends, Series]]:
    ends = [bin.end for bin in run.bins]
    yield from ((ends, series) for series in _series(run))
    spreads = run.keys.spreads
    for place, name in ((2, "median key"), (0, "a tenth is below"), (4, "a tenth is above")):
        yield [point.end for point in spreads], _percentages("keys", name, (point.levels[place] for point in spreads))
    classes, counts = charted(run), run.counts
    for chart, of in (("recall", smooth_recall), ("balance", smooth_balance)):
        for c in classes:
            name = clipped(run.summary.classes[c])
            yield [count.end for count in counts], _percentages(chart, name, of(counts, c))
    rarest = run.summary.rarest_class
    for name, line in () if rarest is None else zip(OVER_TIME, over_time(run, rarest), strict=True):
        values = [None if value is None else round(value, 1) for value in line]
        yield [count.end for count in counts], Series("rare", name, 1, " %", values)
    places = [point.end for point in run.importances]
    for column in strongest(run):
        importance = smooth_importance(run.importances, column)
        yield places, _percentages("columns", column_name(run, column), importance)


def _percentages(chart: str, name: str, shares: Iterable[float | None]) -> Series:
    return Series(chart, name, 1, " %", [None if v is None else round(100 * v, 1) for v in shares])


def _series(run: ShownRun) -> list[Series]:
    def counted(name: str, pairs: Iterable[Phases | None]) -> Series:
        return Series("main", name, 0, "", [None if pair is None else int(pair.total) for pair in pairs])

    def running(phase: str, name: str, pairs: Iterable[Phases | None]) -> Series:
        known = (None if pair is None else pair.of(phase) for pair in pairs)
        return Series(phase, name, 4, "", [None if value is None else round(value, 4) for value in known])

    bins = run.bins
    found = [
        _percentages("main", "accuracy", (bin.accuracy for bin in bins)),
        _percentages("main", "moving mean", smooth_accuracy(bins)),
        Series("main", run.units, 0, "", [bin.n_hidden for bin in bins]),
        counted("growths", (bin.growths for bin in bins)),
        counted("prunings", (bin.prunings for bin in bins)),
        counted("drifts", (bin.drifts for bin in bins)),
    ]
    for phase in Phases._fields:
        found.append(running(phase, "bias²", (bin.bias2 for bin in bins)))
        found.append(running(phase, "variance", (bin.variance for bin in bins)))
    return found
