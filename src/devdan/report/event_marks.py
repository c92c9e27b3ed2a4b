"""Growths, prunings and drifts: as marks in charts, and in words with their causes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

from markupsafe import Markup

from devdan.evaluation.measures import of_classes
from devdan.evaluation.record import KindChange, Phases
from devdan.kernel.state import Event
from devdan.report.bins import Bin
from devdan.report.chart import LANE, LegendEntry, Plot, mark, upright
from devdan.report.shown_run import ShownRun
from devdan.report.words import DRIFTS, clipped, how_many

MOST_MARKERS = 160  # above this number, marks close to each other are merged
MOST_NAMED = 5  # classes that have drifted
MOST_LINES = 20  # above this number, drifts are strokes under the axis: lines would bury the curve


class Marker(NamedTuple):
    """Growths, prunings or drifts of one phase."""

    sample: int
    n_hidden: int
    kind: str
    phase: str
    n: int
    classes: tuple[tuple[Any, int], ...] = ()  # of the real drifts, those of a single class


def markers(bins: Sequence[Bin], end: int) -> list[Marker]:
    """Every growth and pruning; if there are many, those that would be too close together are one mark."""
    kinds = {"growth": attrgetter("growths"), "pruning": attrgetter("prunings")}
    eventful = [bin for bin in bins if any(n for of in kinds.values() for n in of(bin) or ())]
    if len(eventful) > MOST_MARKERS:
        slots: dict[int, Bin] = {}
        for bin in eventful:
            slot = (bin.end - 1) * 100 // max(end, 1)
            slots[slot] = slots[slot].join(bin) if slot in slots else bin
        eventful = list(slots.values())
    return _markers(eventful, kinds)


def drifts(bins: Sequence[Bin]) -> list[Marker]:
    """Every drift that was signalled."""
    found = _markers(bins, {"drift": attrgetter("drifts")})
    by_class = {bin.end: tuple(bin.class_drifts.items()) for bin in bins}
    return [m._replace(classes=by_class[m.sample]) if m.phase == "discriminative" else m for m in found]


def _markers(bins: Sequence[Bin], kinds: Mapping[str, Callable[[Bin], Phases | None]]) -> list[Marker]:
    return [
        Marker(bin.end, bin.n_hidden or 0, kind, phase, int(n))
        for bin in bins
        for kind, of in kinds.items()
        for phase, n in zip(Phases._fields, of(bin) or (), strict=False)
        if n
    ]


class DrawnDrifts(NamedTuple):
    """Drifts as they are drawn: lines in the chart, rows of strokes under its axis, and their names."""

    lines: Markup = Markup("")
    lanes: Markup = Markup("")
    n_lanes: int = 0
    legend: tuple[LegendEntry, ...] = ()

    @property
    def lower(self) -> int:
        """Pixels that the rows take."""
        return LANE * self.n_lanes

    def drawn(self, plot: Plot, marks: Sequence[Marker], style: str, name: str, total: str = "{}") -> DrawnDrifts:
        """These and some more: lines if they are few, else a row of strokes."""
        if not marks:
            return self
        lines, lanes, n_lanes, legend = self
        of_all = _of_classes(pair for marker in marks for pair in marker.classes)
        text = total.format(how_many(sum(marker.n for marker in marks), name) + of_all)
        if len(marks) > MOST_LINES:
            lanes += plot.lane([marker.sample for marker in marks], style, n_lanes)
            return DrawnDrifts(lines, lanes, n_lanes + 1, (*legend, upright(style, f"{text}, under the axis")))
        word = "at" if style == "true-drift" else "by"
        for marker in marks:
            title = f"{how_many(marker.n, name)}{_of_classes(marker.classes)} {word} sample {marker.sample:,}"
            lines += plot.upright(marker.sample, style, title)
        return DrawnDrifts(lines, lanes, n_lanes, (*legend, upright(style, text)))


def _of_classes(drifts: Iterable[tuple[Any, int]]) -> str:
    totals = Counter[Any]()
    for label, n in drifts:
        totals[label] += n
    return of_classes((clipped(label), n) for label, n in totals.most_common(MOST_NAMED))


def drawn_drifts(plot: Plot, run: ShownRun) -> DrawnDrifts:
    """The true drifts where they are known, and the signalled ones beside them."""
    drawn, found = drawn_true_drifts(plot, run.true_drifts), drifts(run.bins)
    for phase in Phases._fields:
        marks = [marker for marker in found if marker.phase == phase]
        drawn = drawn.drawn(plot, marks, f"drift {phase}", f"{DRIFTS[phase]} drift", "{} signalled")
    return drawn


def drawn_true_drifts(plot: Plot, samples: Sequence[int]) -> DrawnDrifts:
    """Where the stream is known to have changed."""
    marks = [Marker(sample, 0, "drift", "", 1) for sample in samples]
    return DrawnDrifts().drawn(plot, marks, "true-drift", "true drift")


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


def event_rows(run: ShownRun) -> list[tuple[str, str, str]]:
    """The sample of each event, what happened, and why; the latest first."""
    several = any(isinstance(event, Event) and event.network for event in run.events)
    return [(f"{event.sample:,}", _in_words(event, several), event.why) for event in reversed(run.events)]


def _in_words(event: Event | KindChange, several: bool) -> str:
    if isinstance(event, KindChange):
        return f"the column {event.column} is read as {event.after}, no longer as {event.before}"
    where = f" in network {event.network}" if several else ""
    if event.kind == "drift":
        of = "" if event.label is None else f" of {clipped(event.label)}"
        return f"{DRIFTS[event.phase]} drift{of}{where}"
    return f"{event.kind} to {event.n_hidden:,}{where}, {event.phase} phase"
