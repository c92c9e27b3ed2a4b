"""Growths, prunings and drifts as marks in the charts of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple

from markupsafe import Markup

from devdan.evaluation.record import Phases
from devdan.report.chart import LANE, LegendEntry, Plot, mark, upright
from devdan.report.run.bins import Bin
from devdan.report.run.shown_run import ShownRun
from devdan.report.words import DRIFTS, how_many

MOST_MARKERS = 160  # above this number, marks close to each other are merged
MOST_LINES = 20  # above this number, drifts are strokes under the axis: lines would bury the curve


class Marker(NamedTuple):
    """Growths, prunings or drifts of one phase."""

    sample: int
    n_hidden: int
    kind: str
    phase: str
    n: int


def markers(bins: Sequence[Bin], end: int) -> list[Marker]:
    """Every growth and pruning; those that would be too close together, if there are many, in one mark."""
    kinds = {"growth": attrgetter("growths"), "pruning": attrgetter("prunings")}
    eventful = [bin for bin in bins if any(n for of in kinds.values() for n in of(bin) or ())]
    if len(eventful) > MOST_MARKERS:
        slots: dict[int, Bin] = {}
        for bin in eventful:
            slot = (bin.end - 1) * 100 // max(end, 1)
            slots[slot] = slots[slot].join(bin) if slot in slots else bin
        eventful = list(slots.values())
    return _of_bins(eventful, kinds)


def drifts(bins: Sequence[Bin]) -> list[Marker]:
    """Every drift that was signalled."""
    return _of_bins(bins, {"drift": attrgetter("drifts")})


def _of_bins(bins: Sequence[Bin], kinds: Mapping[str, Callable[[Bin], Phases | None]]) -> list[Marker]:
    return [
        Marker(bin.end, bin.n_hidden or 0, kind, phase, int(n))
        for bin in bins
        for kind, of in kinds.items()
        for phase, n in zip(Phases._fields, of(bin) or (), strict=False)
        if n
    ]


class Drawn(NamedTuple):
    """Drifts as they are drawn: lines in the chart, rows of strokes under its axis, and their names."""

    lines: Markup
    lanes: Markup
    n_lanes: int
    legend: list[LegendEntry]

    @property
    def lower(self) -> int:
        """Pixels that the rows take."""
        return LANE * self.n_lanes


def drawn_drifts(plot: Plot, run: ShownRun) -> Drawn:
    """The true drifts where they are known, and the signalled ones beside them."""
    drawn, found = drawn_true_drifts(plot, run.true_drifts), drifts(run.bins)
    for phase in Phases._fields:
        marks = [marker for marker in found if marker.phase == phase]
        drawn = _with(drawn, plot, marks, f"drift {phase}", f"{DRIFTS[phase]} drift", " signalled")
    return drawn


def drawn_true_drifts(plot: Plot, samples: Sequence[int]) -> Drawn:
    """Where the stream is known to have changed."""
    marks = [Marker(sample, 0, "drift", "", 1) for sample in samples]
    return _with(Drawn(Markup(""), Markup(""), 0, []), plot, marks, "true-drift", "true drift", "")


def _with(drawn: Drawn, plot: Plot, marks: Sequence[Marker], style: str, name: str, how: str) -> Drawn:
    """Add some: lines if they are few, else a row of strokes."""
    if not marks:
        return drawn
    lines, lanes, n_lanes, legend = drawn
    total = f"{how_many(sum(marker.n for marker in marks), name)}{how}"
    if len(marks) > MOST_LINES:
        lanes += plot.lane([marker.sample for marker in marks], style, n_lanes)
        return Drawn(lines, lanes, n_lanes + 1, [*legend, upright(style, f"{total}, under the axis")])
    lines += Markup("").join(_upright(plot, style, name, marker) for marker in marks)
    return Drawn(lines, lanes, n_lanes, [*legend, upright(style, total)])


def _upright(plot: Plot, style: str, name: str, marker: Marker) -> Markup:
    text = f"{how_many(marker.n, name)} {'at' if style == 'true-drift' else 'by'} sample {marker.sample:,}"
    return Markup(
        '<line class="{style}" x1="{x:.4f}%" x2="{x:.4f}%" y1="0" y2="100%"><title>{text}</title></line>'
    ).format(style=style, x=plot.x(marker.sample), text=text)


def drawn_changes(plot: Plot, marks: Iterable[Marker]) -> Markup:
    """Growths above the line, prunings below it; the second phase farther away if both have marks."""
    taken: set[tuple[int, str]] = set()
    body = []
    for marker in marks:
        shift = 19 if (marker.sample, marker.kind) in taken else 9
        taken.add((marker.sample, marker.kind))
        body.append(
            Markup(
                '<use href="#{kind}" class="{kind} {phase}" x="{x:.4f}%" y="{y:.2f}%" '
                'transform="translate(0 {shift})"><title>{text}</title></use>'
            ).format(
                kind=marker.kind,
                phase=marker.phase,
                x=plot.x(marker.sample),
                y=plot.y(marker.n_hidden),
                shift=-shift if marker.kind == "growth" else shift,
                text=f"{how_many(marker.n, marker.kind)}, {marker.phase}, by sample {marker.sample:,}",
            )
        )
    return Markup("").join(body)


def changes_legend(marks: Sequence[Marker]) -> list[LegendEntry]:
    """Each kind of change in each phase that there is."""
    totals: dict[tuple[str, str], int] = {}
    for marker in marks:
        totals[marker.kind, marker.phase] = totals.get((marker.kind, marker.phase), 0) + marker.n
    order = sorted(totals, key=lambda pair: (pair[0], Phases._fields.index(pair[1])))
    return [mark(kind, f"{kind} {phase}", f"{how_many(totals[kind, phase], kind)}, {phase}") for kind, phase in order]
