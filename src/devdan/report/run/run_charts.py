"""What a run looks like over time, as SVG."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple

from markupsafe import Markup

from devdan.evaluation.record import Phases
from devdan.report.drawing.chart import Chart, filled, in_percent
from devdan.report.drawing.plot import Plot, stretched, ticks
from devdan.report.drawing.words import DRIFTS, how_many, percent
from devdan.report.run.bins import Bin, smooth_accuracy, smooth_no_change
from devdan.report.run.shown_run import ShownRun

MOST_MARKERS = 160  # above this number, marks close to each other are merged
SMALLEST_CHUNK_WITH_BAND = 20  # for smaller chunks, the lowest and highest accuracy say little


class Marker(NamedTuple):
    """Growths, prunings or drifts of one phase."""

    sample: int
    n_hidden: int
    kind: str
    phase: str
    n: int


def accuracy(run: ShownRun) -> Chart | None:
    """Accuracy per chunk, its moving mean, the no-change predictor's if it is in range, and the drifts signalled."""
    bins, plot, banded = run.bins, _accuracy_plane(run), has_band(run)
    if plot is None:
        return None
    means = in_percent(bin.accuracy for bin in bins)
    lows, highs = in_percent(bin.low for bin in bins), in_percent(bin.high for bin in bins)
    ends = [bin.end for bin in bins]
    body = plot.axes(ticks(plot.low, min(plot.high, 100), 5), " %")
    body += Markup("").join(_stand(plot, drifts(bins, run.summary.n_samples)))
    body += stretched(
        plot.band(ends, lows, highs, "band") if banded else Markup(""),
        plot.line(ends, in_percent(smooth_no_change(bins)), "no-change"),
        plot.line(ends, means, "each" if len(bins) >= 20 else "smooth"),
        plot.line(ends, in_percent(smooth_accuracy(bins)), "smooth") if len(bins) >= 20 else Markup(""),
    )
    known = [mean for mean in means if mean is not None]
    label = f"Accuracy over {run.summary.n_samples:,} samples, between {min(known):.1f} % and {max(known):.1f} %."
    if run.summary.drifts is not None:
        label += f" {how_many(run.summary.drifts.total, 'drift')} signalled."
    return Chart(body, label)


def has_band(run: ShownRun) -> bool:
    """Whether the lowest and the highest accuracy within each point are shown."""
    return run.bins.width > 1 and run.summary.n_samples / run.summary.n_chunks >= SMALLEST_CHUNK_WITH_BAND


def no_change_place(run: ShownRun) -> str:
    """The legend's text about the no-change predictor."""
    plot = _accuracy_plane(run)
    line = [value for value in in_percent(smooth_no_change(run.bins)) if value is not None]
    if plot is None or not line:
        return ""
    below = sum(value < plot.low for value in line) > len(line) / 2
    above = sum(value > plot.high for value in line) > len(line) / 2
    return f"{percent(run.summary.no_change)} overall" + (
        ", below this chart" if below else ", above this chart" if above else ""
    )


def hidden_units(run: ShownRun) -> Chart | None:
    """Hidden units over time, with their growths and prunings."""
    bins = run.bins
    values = [bin.n_hidden for bin in bins]
    known = [value for value in values if value is not None]
    if not known:
        return None
    plot = Plot(run.summary.n_samples, 0, 1.18 * max(known) + 0.5)
    body = plot.axes(ticks(0, plot.high, 5, smallest=1))
    body += stretched(plot.steps([bin.end for bin in bins], values, "units"))
    body += Markup("").join(_draw(plot, markers(bins, run.summary.n_samples)))
    return Chart(body, f"{run.units.capitalize()} over time: {min(known)} to {max(known)}, {known[-1]} at the end.")


def markers(bins: Sequence[Bin], end: int) -> list[Marker]:
    """Every growth and pruning."""
    return _marked(bins, end, {"growth": attrgetter("growths"), "pruning": attrgetter("prunings")})


def drifts(bins: Sequence[Bin], end: int) -> list[Marker]:
    """Every drift that was signalled."""
    return _marked(bins, end, {"drift": attrgetter("drifts")})


def _marked(bins: Sequence[Bin], end: int, kinds: Mapping[str, Callable[[Bin], Phases | None]]) -> list[Marker]:
    """The events as marks; marks that would be too close together are merged."""
    eventful = [bin for bin in bins if any(n for of in kinds.values() for n in of(bin) or ())]
    if len(eventful) > MOST_MARKERS:
        slots: dict[int, Bin] = {}
        for bin in eventful:
            slot = (bin.end - 1) * 100 // max(end, 1)
            slots[slot] = slots[slot].join(bin) if slot in slots else bin
        eventful = list(slots.values())
    return [
        Marker(bin.end, bin.n_hidden or 0, kind, phase, int(n))
        for bin in eventful
        for kind, of in kinds.items()
        for phase, n in zip(Phases._fields, of(bin) or (), strict=False)
        if n
    ]


def _stand(plot: Plot, marks: Iterable[Marker]) -> Iterable[Markup]:
    """Drifts as vertical lines."""
    for mark in marks:
        yield Markup(
            '<line class="drift {phase}" x1="{x:.2f}%" x2="{x:.2f}%" y1="0" y2="100%"><title>{text}</title></line>'
        ).format(
            phase=mark.phase,
            x=plot.x(mark.sample),
            text=f"{how_many(mark.n, f'{DRIFTS[mark.phase]} drift')} by sample {mark.sample:,}",
        )


def _draw(plot: Plot, marks: Iterable[Marker]) -> Iterable[Markup]:
    """Growths above the line, prunings below it; the second phase farther away if both have marks."""
    taken: set[tuple[int, str]] = set()
    for mark in marks:
        shift = 19 if (mark.sample, mark.kind) in taken else 9
        taken.add((mark.sample, mark.kind))
        yield Markup(
            '<use href="#{kind}" class="{kind} {phase}" x="{x:.2f}%" y="{y:.2f}%" transform="translate(0 {shift})">'
            "<title>{text}</title></use>"
        ).format(
            kind=mark.kind,
            phase=mark.phase,
            x=plot.x(mark.sample),
            y=plot.y(mark.n_hidden),
            shift=-shift if mark.kind == "growth" else shift,
            text=f"{how_many(mark.n, mark.kind)}, {mark.phase}, by sample {mark.sample:,}",
        )


def bias_variance(run: ShownRun, phase: str) -> Chart | None:
    """The running means of bias² and variance in one phase; None if there are none."""

    def of(pair: Phases | None) -> float | None:
        return None if pair is None else pair.of(phase)

    bias2, variance = [of(bin.bias2) for bin in run.bins], [of(bin.variance) for bin in run.bins]
    known = [value for value in (*bias2, *variance) if value is not None]
    if not any(known):
        return None
    plot = Plot(run.summary.n_samples, 0, 1.08 * max(known))
    ends = [bin.end for bin in run.bins]
    body = plot.axes(ticks(0, plot.high, 4))
    body += stretched(plot.line(ends, variance, "variance"), plot.line(ends, bias2, "bias2"))
    label = (
        f"Running means of the {phase} phase, at the end: bias² {bias2[-1] or 0:.3g}, variance {variance[-1] or 0:.3g}."
    )
    return Chart(body, label)


def _accuracy_plane(run: ShownRun) -> Plot | None:
    """The value range for the accuracies of one run, including the band."""
    extremes = [extreme for bin in run.bins for extreme in (bin.low, bin.high)] if has_band(run) else []
    return filled(run.summary.n_samples, in_percent([*extremes, *(bin.accuracy for bin in run.bins)]))
