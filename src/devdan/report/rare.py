"""How well the rarest class is found, if one is rare: by each threshold, with the working point, and over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from markupsafe import Markup

from devdan.arrays import Integers
from devdan.evaluation import measures
from devdan.evaluation.histograms import Curve
from devdan.evaluation.measures import Measure
from devdan.report.bins import joined, smooth_precision, smooth_recall
from devdan.report.chart import Chart, Plot, filled, in_percent, line_chart, mark, moving, stroke, ticks
from devdan.report.event_marks import drawn_drifts
from devdan.report.shown_run import ShownRun
from devdan.report.words import clipped, number, percent

OVER_TIME = "recall", "precision"  # the lines of the chart over time
_MOST_POINTS = 300  # of a curve
_RECALLS = (0.2, 0.4, 0.6, 0.8)  # of other working points in the table
_NEARLY_ALL = 0.8  # of the class is found at the right edge of the chart of alerts, unless the working point is beyond
_ACROSS = 10_000
_OF_RUN = 10  # a point over time is from a tenth of the run, which has enough of a rare class
_MOST_OVER_TIME = 80  # such points


class WorkingPoint(NamedTuple):
    """What is found by alerting from a threshold on."""

    threshold: str
    recall: str
    precision: str
    alerts: str  # of a thousand samples


class RareClass(NamedTuple):
    """What a page shows about it."""

    name: str
    share: str
    precision_recall: Chart
    gain: Chart
    over_time: Chart | None
    points: list[WorkingPoint]


def rare_class(run: ShownRun) -> RareClass | None:
    """The rarest class of a run, if it is rare and the model told probabilities."""
    summary, c = run.summary, run.summary.rarest_class
    curve = None if c is None else summary.ranking.curve(c)
    if c is None or curve is None:
        return None
    name, confusion = clipped(summary.classes[c]), summary.confusion
    own = confusion.recall(c), confusion.precision(c), confusion.predicted.get(c, 0) / confusion.n_samples
    points = [WorkingPoint("as decided", percent(own[0]), percent(own[1]), number(1000 * own[2], 1))]
    points += [_point(curve, int(np.searchsorted(curve.recall, recall - 1e-12))) for recall in _RECALLS]
    return RareClass(
        name,
        percent(confusion.actual[c] / confusion.n_samples),
        _precision_recall(name, curve, own[0], own[1]),
        _gain(name, curve, own[0], own[2]),
        _over_time(run, c, name),
        points,
    )


def _point(curve: Curve, place: int) -> WorkingPoint:
    threshold, n = float(curve.thresholds[place]), int(curve.alarms[-1])
    rates = percent(float(curve.recall[place])), percent(float(curve.precision[place]))
    return WorkingPoint(f"{threshold:.2g}", *rates, number(1000 * float(curve.alarms[place]) / n, 1))


def _places(curve: Curve, along: Integers) -> Integers:
    """Points of a curve at about even distances along one of its counts, which rises."""
    even = np.linspace(along[0], along[-1], _MOST_POINTS)
    return np.unique(np.minimum(np.searchsorted(along, even), len(along) - 1))


def _precision_recall(name: str, curve: Curve, recall: float | None, precision: float | None) -> Chart:
    """Precision against recall, down to the share of the class, which is what chance has."""
    chosen, plot = _places(curve, curve.hits), Plot(_ACROSS, 0, 100)
    xs = (_ACROSS * curve.recall[chosen]).tolist()
    steps = ticks(0, 100, 5)
    body = plot.axes(steps, " %", [(_ACROSS * step / 100, f"{step:g} %") for step in steps], "recall")
    share = 100 * float(curve.hits[-1] / curve.alarms[-1])
    body += plot.stretched(
        plot.line([0, _ACROSS], [share, share], "ideal"),
        plot.line(xs, (100 * curve.precision[chosen]).tolist(), "bias2"),
    )
    legend = [stroke("bias2", "every threshold"), stroke("ideal", "by chance")]
    told = f"Recall and precision of {name} at every threshold"
    if recall is not None and precision is not None:
        own = f"recall {percent(recall)}, precision {percent(precision)}"
        body += _mark(plot, _ACROSS * recall, 100 * precision, f"as decided: {own}")
        legend.append(mark("dot", "level", "as decided"))
        told += f"; as decided, {own}"
    return Chart(body, f"{told}.", legend)


def _gain(name: str, curve: Curve, recall: float | None, called: float) -> Chart:
    """The share of the class that is found by alerting for the highest scores, against the share of samples alerted."""
    n = int(curve.alarms[-1])
    shares = curve.alarms / n
    needed = float(shares[np.searchsorted(curve.recall, _NEARLY_ALL - 1e-12)])
    end = min(1.0, max(needed, 1.2 * called))
    chosen = _places(curve, curve.alarms[: int(np.searchsorted(shares, end)) + 1])
    plot, steps = Plot(_ACROSS, 0, 100), ticks(0, 100 * end, 5)
    xs = [0.0, *(_ACROSS * shares[chosen] / end).tolist()]
    below = [(_ACROSS * step / (100 * end), f"{step:g} %") for step in steps]
    body = plot.axes(ticks(0, 100, 5), " %", below, "alerts, of all samples")
    body += plot.stretched(
        plot.line([0, _ACROSS], [0, 100 * end], "ideal"),
        plot.line(xs, [0.0, *(100 * curve.recall[chosen]).tolist()], "bias2"),
    )
    legend = [stroke("bias2", "the highest scores"), stroke("ideal", "by chance")]
    told = f"{percent(_NEARLY_ALL, 0)} of {name} are found by alerts for {percent(needed)} of the samples"
    if recall is not None:
        own = f"{percent(recall)} found by alerts for {percent(called)} of the samples"
        body += _mark(plot, _ACROSS * called / end, 100 * recall, f"as decided: {own}")
        legend.append(mark("dot", "level", "as decided"))
        told += f"; as decided, {own}"
    return Chart(body, f"{told}.", legend)


def _mark(plot: Plot, x: float, y: float, text: str) -> Markup:
    return Markup('<circle class="level" cx="{:.2f}%" cy="{:.2f}%" r="5.5"><title>{}</title></circle>').format(
        plot.x(x), plot.y(y), text
    )


def over_time(run: ShownRun, c: int) -> list[list[float | None]]:
    """The moving means of recall and precision of a class, in percent."""
    return [in_percent(smooth_recall(run.counts, c)), in_percent(smooth_precision(run.counts, c))]


def _over_time(run: ShownRun, c: int, name: str) -> Chart | None:
    """Recall and precision; None for fewer than two points."""
    lines = over_time(run, c)
    plot = filled(run.summary.n_samples, [value for line in lines for value in line])
    if len(run.counts) < 2 or plot is None:
        return None
    confusion = run.summary.confusion
    told = f"overall recall {percent(confusion.recall(c))}, precision {percent(confusion.precision(c))}"
    ends = [count.end for count in run.counts]
    return line_chart(plot, ends, OVER_TIME, lines, f"Recall and precision of {name} over time, {told}.")


# --- What leads the charts over time ---------------------------------------------------------------------------------


def headline(runs: Sequence[ShownRun], by: Measure | None = None) -> Measure | None:
    """The measure of the rarest class that a chart of runs leads with; None where that is accuracy."""
    is_shown = by is not None and (by is measures.RATE or by.key.startswith(measures.OF_RAREST))
    measure = by if is_shown else measures.leading([run.figures for run in runs])[0]
    return None if measure is measures.RATE else measure


def headline_title(runs: Sequence[ShownRun], measure: Measure) -> str:
    """The measure, and the class if it is the same in all runs."""
    names = {clipped(run.summary.rarest) for run in runs if run.summary.rarest_class is not None}
    name = names.pop() if len(names) == 1 else "the rarest class"
    return f"{measure.title.partition(',')[0]} of {name}"


def over_parts(run: ShownRun, measure: Measure) -> tuple[list[int], list[float | None]]:
    """A measure of the class that is the rarest of the whole run, over about a tenth of it around some samples."""
    n = len(run.parts)
    reach, step = n // _OF_RUN // 2, -(-n // _MOST_OVER_TIME)
    ends, values = [], list[float | None]()
    for place in (*range(0, n - 1, max(step, 1)), *range(n)[-1:]):
        around = joined(part.summary for part in run.parts[max(0, place - reach) : place + reach + 1])
        ends.append(run.parts[place].end)
        values += measure.curve_values(around, run.summary).values()
    return ends, values


def by_chance(run: ShownRun, measure: Measure) -> float | None:
    """What probabilities that say nothing would have, as far as the measure is of probabilities."""
    summary, c = run.summary, run.summary.rarest_class
    if c is None or measure.key != "rarest_average_precision":
        return None
    return summary.confusion.actual[c] / summary.confusion.n_samples


def headline_chart(run: ShownRun, measure: Measure) -> Chart | None:
    """The measure over time, with what chance would have, and the drifts; None for fewer than two points."""
    ends, values = over_parts(run, measure)
    known = [value for value in values if value is not None]
    if len(known) < 2:
        return None
    chance, title = by_chance(run, measure), headline_title([run], measure)
    plot = Plot(run.summary.n_samples, 0, max(1.1 * max(known), chance or 0.0, 0.05))
    paths, legend = [plot.line(ends, values, "smooth")], [stroke("smooth", "over about a tenth of the run")]
    if chance is not None:
        paths.insert(0, plot.line([0, plot.end], [chance, chance], "majority"))
        legend.append(stroke("majority", f"by chance, {number(chance, 3)}"))
    drifts = drawn_drifts(plot, run)
    body = plot.axes(ticks(0, min(plot.high, 1), 5), lower=drifts.lower)
    body += moving(drifts.lines, plot.stretched(*paths)) + drifts.lanes
    label = f"{title} over {run.summary.n_samples:,} samples, between {min(known):.3f} and {max(known):.3f}."
    return Chart(body, label, [*legend, *drifts.legend], drifts.lower)
