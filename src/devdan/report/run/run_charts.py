"""What a run looks like over time, as SVG. A chart takes at least two points: fewer are told in words."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from devdan.evaluation.record import Phases
from devdan.report.chart import Chart, LegendEntry, Plot, area, filled, in_percent, moving, stroke, ticks
from devdan.report.run.bins import Bin, smooth_accuracy, smooth_no_change, smooth_width
from devdan.report.run.event_marks import changes_legend, drawn_changes, drawn_drifts, markers
from devdan.report.run.shown_run import ShownRun
from devdan.report.words import how_many, number, percent

SMALLEST_CHUNK_WITH_BAND = 20  # for smaller chunks, the lowest and highest accuracy say little
_EARLY = 0.05  # of the run: if half of the changes come before, and a few, there is a chart of its beginning
_CROWD = 4
_NEARLY_ALL = 0.9  # of these changes are in that chart
_FEWEST_POINTS = 5


def accuracy(run: ShownRun) -> Chart | None:
    """Accuracy per chunk, its moving mean, the no-change predictor's if it is in range, and the drifts."""
    bins, banded = run.bins, has_band(run)
    plot = _accuracy_plane(run)
    if plot is None:
        return None
    means = in_percent(bin.accuracy for bin in bins)
    lows, highs = in_percent(bin.low for bin in bins), in_percent(bin.high for bin in bins)
    ends = [bin.end for bin in bins]
    smoothed = smooth_width(len(bins))
    drifts = drawn_drifts(plot, run)
    each = "each chunk" if bins.width == 1 else f"each {bins.width:,} chunks"
    paths, legend = [], list[LegendEntry]()
    if banded:
        paths.append(plot.band(ends, lows, highs, "band"))
        legend.append(area("band", "lowest to highest chunk"))
    if no_change_place(run) == "":
        paths.append(plot.line(ends, in_percent(smooth_no_change(bins)), "no-change"))
        legend.append(stroke("no-change", f"no-change predictor, {percent(run.summary.no_change)} overall"))
    paths.append(plot.line(ends, means, "each" if smoothed > 1 else "smooth"))
    legend.insert(0, stroke("each" if smoothed > 1 else "smooth", each))
    if smoothed > 1:
        paths.append(plot.line(ends, in_percent(smooth_accuracy(bins)), "smooth"))
        legend.insert(0, stroke("smooth", f"moving mean over {number(smoothed * bins.width)} chunks"))
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


def has_band(run: ShownRun) -> bool:
    """Whether the lowest and the highest accuracy within each point are shown."""
    return run.bins.width > 1 and run.summary.n_samples / run.summary.n_chunks >= SMALLEST_CHUNK_WITH_BAND


def no_change_place(run: ShownRun) -> str:
    """Where the accuracy of the no-change predictor is, if it is not in the chart."""
    plot = _accuracy_plane(run)
    line = [value for value in in_percent(smooth_no_change(run.bins)) if value is not None]
    if plot is None or not line:
        return "unknown"
    below = sum(value < plot.low for value in line) > len(line) / 2
    above = sum(value > plot.high for value in line) > len(line) / 2
    return "below this chart" if below else "above this chart" if above else ""


def hidden_units(run: ShownRun) -> Chart | None:
    """Hidden units over time, with their growths and prunings."""
    return _units(run, run.bins, run.summary.n_samples)


def beginning(run: ShownRun) -> tuple[int, Chart] | None:
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
    chart = _units(run, early, early[-1].end, most=3)
    return (early[-1].end, chart) if chart else None


def _n_changes(*counted: Phases | None) -> float:
    return sum(phases.total for phases in counted if phases is not None)


def _units(run: ShownRun, bins: Sequence[Bin], end: int, most: int = 6) -> Chart | None:
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
    return Chart(body, " ".join([label, *(f"{key.text}." for key in legend[1:])]), legend)


def bias_variance(run: ShownRun, phase: str) -> Chart | None:
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


def _accuracy_plane(run: ShownRun) -> Plot | None:
    """The value range for the accuracies of one run, including the band; None for fewer than two."""
    scored = [bin.accuracy for bin in run.bins if bin.accuracy is not None]
    extremes = [extreme for bin in run.bins for extreme in (bin.low, bin.high)] if has_band(run) else []
    return filled(run.summary.n_samples, in_percent([*extremes, *scored])) if len(scored) > 1 else None
