"""What the counts of a stream look like, by the time of prediction, so that missing labels show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from devdan.report.chart import COLOURS, Chart, LegendEntry, Plot, area, filled, in_percent, stroke, ticks, upright
from devdan.report.run_charts import columns_chart
from devdan.report.words import clipped, how_many, number, percent
from devdan.service.tally import Span, Tally

_DELAYS = ("1 s", "10 s", "1 min", "10 min", "1 h", "6 h", "1 day", "1 week", "30 days", "later")


class Shown(NamedTuple):
    """A chart with its title, a sentence about it, and its height."""

    title: str
    about: str
    chart: Chart
    height: int


def charts(tally: Tally) -> list[Shown]:
    """All that there is something to show in."""
    found = [_accuracy(tally), _labels(tally), _delays(tally), _units(tally), _importances(tally)]
    return [one for one in found if one is not None]


def _ends(tally: Tally) -> list[float]:
    """The last row of each span."""
    return [min((place + 1) * tally.width, tally.n_rows) for place in range(len(tally.spans))]


def _accuracy(tally: Tally) -> Shown | None:
    right = in_percent(span.n_correct / span.n_labelled if span.n_labelled else None for span in tally.spans)
    sure = in_percent(span.confidence / span.n_predicted if span.n_predicted else None for span in tally.spans)
    plot = filled(tally.n_rows, [*right, *sure])
    if plot is None:
        return None
    ends = _ends(tally)
    lines, legend = _drifts(plot, tally.spans, ends)
    body = plot.axes(ticks(plot.low, min(plot.high, 100), 5), " %", name="rows, by when they were predicted") + lines
    body += plot.stretched(plot.line(ends, sure, "no-change"), plot.line(ends, right, "smooth"))
    held = tally.held
    about = "Share of right predictions among those whose labels have come, and what the probabilities promised."
    if held is not None:
        better = "better" if held >= 0 else "worse"
        about += f" So far, predictions turned out {number(100 * abs(held), 1)} points {better} than promised."
    label = f"Accuracy over {number(tally.n_rows)} rows, {percent(tally.accuracy)} of the latest with labels."
    keys = [stroke("smooth", "accuracy"), stroke("no-change", "promised by the probabilities"), *legend]
    return Shown("Accuracy", about, Chart(body, label, keys), 260)


def _drifts(plot: Plot, spans: Sequence[Span], ends: Sequence[float]) -> tuple[Markup, list[LegendEntry]]:
    lines, legend = Markup(""), list[LegendEntry]()
    for style, name in (("drift generative", "virtual"), ("drift discriminative", "real")):
        n = sum(getattr(span, name) for span in spans)
        for span, end in zip(spans, ends, strict=True):
            if getattr(span, name):
                lines += Markup('<line class="{s}" x1="{x:.3f}%" x2="{x:.3f}%" y1="0" y2="100%"/>').format(
                    s=style, x=plot.x(end)
                )
        if n:
            legend.append(upright(style, how_many(n, f"{name} drift")))
    return lines, legend


def _labels(tally: Tally) -> Shown | None:
    shares = in_percent(span.n_labelled / span.n_predicted if span.n_predicted else None for span in tally.spans)
    known = [share for share in shares if share is not None]
    if not known:
        return None
    plot, ends = Plot(tally.n_rows, 0, 102), _ends(tally)
    body = plot.axes([0, 50, 100], " %", name="rows, by when they were predicted")
    body += plot.stretched(plot.band(ends, [0.0] * len(ends), shares, "band"), plot.line(ends, shares, "each"))
    label = f"Share of predicted rows whose labels have come: {known[-1]:.0f} % of the latest."
    about = "Share of the predicted rows whose labels have come."
    return Shown("Labels", about, Chart(body, label, [area("band", "labels have come")]), 110)


def _delays(tally: Tally) -> Shown | None:
    total = sum(tally.delays)
    if total == 0:
        return None
    shares = [100 * n / total for n in tally.delays]
    plot = Plot(len(shares), 0, max(shares) * 1.05)
    names = [(place + 0.5, name) for place, name in enumerate(_DELAYS)]
    body = plot.axes(ticks(0, plot.high, 4), " %", names, "from a row to its label, up to")
    width = 100 / len(shares)
    for place, share in enumerate(shares):
        y = plot.y(share)
        body += Markup('<rect class="level" x="{:.2f}%" y="{:.2f}%" width="{:.2f}%" height="{:.2f}%"/>').format(
            (place + 0.15) * width, y, 0.7 * width, 100 - y
        )
    most = _DELAYS[shares.index(max(shares))]
    label = f"Delays of {number(total)} labels; most came within {most}."
    about = f"How long labels took: {number(tally.delay_sum / total, 1)} seconds on average."
    return Shown("Label delay", about, Chart(body, label), 160)


def _units(tally: Tally) -> Shown | None:
    units = [span.n_hidden or None for span in tally.spans]
    known = [n for n in units if n is not None]
    if len(known) < 2:
        return None
    plot = Plot(tally.n_rows, 0, 1.18 * max(known) + 0.5)
    body = plot.axes(ticks(0, plot.high, 4, smallest=1), name="rows")
    body += plot.stretched(plot.steps([round(end) for end in _ends(tally)], units, "units"))
    label = f"Hidden units: {min(known)} to {max(known)}, {known[-1]} now."
    about = "Hidden units of the model, which it adds and removes by itself."
    return Shown("Structure", about, Chart(body, label, [stroke("units", "hidden units")]), 160)


def _importances(tally: Tally) -> Shown | None:
    asked = [(end, span.importances) for end, span in zip(_ends(tally), tally.spans, strict=True) if span.importances]
    if len(asked) < 2:
        return None
    totals: dict[str, float] = {}
    for _, shares in asked:
        for name, share in shares.items():
            totals[name] = totals.get(name, 0.0) + share
    names = sorted(totals, key=lambda name: -totals[name])[:COLOURS]
    lines = [in_percent(shares.get(name, 0.0) for _, shares in asked) for name in names]
    chart = columns_chart(tally.n_rows, [end for end, _ in asked], [clipped(name) for name in names], lines)
    about = "How much predictions change if a column has the values of other recent rows, as shares of all columns."
    return Shown("Which columns matter", about, chart, 160)
