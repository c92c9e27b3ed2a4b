"""The live page, which follows a stream, and the metrics for Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timezone
from operator import attrgetter
from typing import Any, NamedTuple

from markupsafe import Markup
from starlette.responses import Response

from devdan.evaluation.measures import of_classes
from devdan.model.decision import text_of
from devdan.report.chart import COLOURS, Chart, LegendEntry, Plot, area, filled, in_percent, stroke, ticks, upright
from devdan.report.render import Tile, render
from devdan.report.run_charts import columns_chart
from devdan.report.words import clipped, how_many, number, percent, signed
from devdan.service.engine import Live, NotFoundError
from devdan.service.figures import WINDOW, Counts
from devdan.service.http import Call, Operation, shown
from devdan.service.metrics import RequestPeriod, RequestSummary
from devdan.service.watched import PERIOD, WATCHED, ByTheClock, ClassCount, ClassCounts

_MOST_CLASSES = 12
_MOST_DRIFTED = 3  # classes that are named beside the number of drifts
_ENDLESS = float("inf")
_NOTHING = "There is nothing to show yet: predictions begin with the first label."

_DELAYS = ("1 s", "10 s", "1 min", "10 min", "1 h", "6 h", "1 day", "1 week", "30 days", "later")


async def metrics(call: Call) -> Response:
    return Response(call.application.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


async def page(call: Call) -> Response:
    name = call.query_params.get("stream", next(iter(call.engine.streams), None))
    if name is None:
        told = "There is no stream yet: PUT /v1/streams/… creates one, see /docs."
        return shown(render("live.html", title="devdan", told=told, stream=None, body=""))
    live = await call.engine.find(name)
    body = Markup(_stream(call, live))
    return shown(render("live.html", title=live.name, told="As of now.", stream=live.name, body=body))


async def part(call: Call) -> Response:
    return shown(_stream(call, await call.live()))


async def icon(call: Call) -> Response:
    raise NotFoundError("there is no icon")


OPERATIONS = (
    Operation("GET", "/metrics", metrics, "Metrics for Prometheus", media="text/plain"),
    Operation("GET", "/", page),
    Operation("GET", "/live/{stream}", part),
    Operation("GET", "/favicon.ico", icon),
)


def _stream(call: Call, live: Live) -> str:
    """The part of a stream's page that changes."""
    counts, engine = live.view.counts, call.engine
    latest = [
        {
            "id": row.id,
            "at": f"{datetime.fromtimestamp(row.at, timezone.utc):%Y-%m-%d %H:%M:%S} UTC",
            "predicted": "–" if row.predicted is None else text_of(row.predicted),
            "confidence": percent(row.confidence),
        }
        for row in reversed(counts.latest)
    ]
    return render(
        "live_stream.html",
        stream=live.name,
        streams=[_listed(one) for one in engine.streams.values()],
        tiles=[*_tiles(live), *_of_requests(call.application.metrics.summary())],
        classes=_classes(counts.clock, live.predictor.thresholds),
        columns=_columns(counts, live.predictor.columns or ()),
        charts=[*charts(counts), *_requests(call.application.metrics.periods)],
        nothing=_NOTHING,
        latest=latest,
        problem=counts.problem,
    )


def _listed(live: Live) -> dict[str, Any]:
    counts = live.view.counts
    return {
        "name": live.name,
        "rows": number(counts.n_rows),
        "labels": number(counts.n_labels),
        "waiting": number(counts.n_waiting),
        "accuracy": percent(counts.accuracy),
    }


def _tiles(live: Live) -> list[Tile]:
    view, counts = live.view, live.view.counts
    labelled = min(len(counts.outcomes), WINDOW)
    corrected = f", {number(counts.n_corrected)} corrected" if counts.n_corrected else ""
    corrected += f", {number(counts.n_assumed)} assumed" if counts.n_assumed else ""
    drifts, of_classes = view.virtual + view.real, _of_classes(counts)
    always = f"; always the commonest: {percent(counts.clock.commonest)}" if counts.clock.commonest is not None else ""
    return [
        Tile("Accuracy", percent(counts.accuracy), "", f"of the latest {number(labelled)} with labels{always}"),
        Tile("Expected accuracy", percent(counts.expected), "", "of the latest predictions, before labels come"),
        Tile("Rows", number(counts.n_rows), "", f"{number(counts.n_labels)} with labels{corrected}"),
        Tile("Waiting", number(counts.n_waiting), "", f"{number(counts.n_expired_rows)} expired without a label"),
        Tile("Drifts", number(drifts), "", f"{number(view.real)} real{of_classes}, {number(view.virtual)} virtual"),
        Tile("Hidden units", number(view.n_hidden), "", f"after record {number(view.predictor.version)}"),
        *_of_outcomes(live),
    ]


def _of_outcomes(live: Live) -> list[Tile]:
    """How good predictions were lately and since the beginning, and how well their probabilities rank and fit."""
    lately, ever = live.outcomes()
    name, n = ever.rarer, number(lately.confusion.n_samples)
    of_all, tiles = ever.watched(name), []
    for measure, value in lately.watched(name).items():
        about = f"of the latest {n} with labels"
        if measure in of_all:
            about += f"; of all {number(of_all[measure], 3)}"
        if measure.key == "average_precision" and name is not None:
            about = f"of {clipped(name)}, {about}"
        if measure.key == "cost":
            about += f"; always calling one class costs {number(lately.constant_cost, 3)}"
        tiles.append(Tile(WATCHED[measure], number(value, 3), "", about))
    return tiles


def _of_requests(told: RequestSummary) -> list[Tile]:
    """Of all streams, since this server has started."""
    if told.n == 0:
        return []
    typical, slow = (f"{1000 * most:g}" if most < _ENDLESS else "more" for most in (told.typical, told.slow))
    return [
        Tile("Latency", f"≤ {slow}", "ms", f"95 % of {number(told.n)} requests to this server; half ≤ {typical} ms"),
        Tile("Errors", number(told.errors), "", f"of this server; {number(told.refused)} requests were refused"),
    ]


# --- Classes and columns ---------------------------------------------------------------------------------------------


class _ClassRow(NamedTuple):
    name: str
    called: str  # in the latest day
    share: str
    recall: str  # since the beginning, as is precision
    precision: str
    labels: str
    threshold: str


def _classes(clock: ByTheClock, thresholds: Mapping[str, float]) -> list[_ClassRow]:
    """The commonest classes; those that were called most come first."""
    day: dict[str, int] = {}
    for own in clock.periods.values():
        for name, one in own.classes.items():
            day[name] = day.get(name, 0) + one.called
    n_called = sum(day.values())
    order = sorted(clock.total.classes.items(), key=lambda pair: (-pair[1].called - pair[1].actual, pair[0]))
    return [
        _ClassRow(
            clipped(name),
            number(day.get(name, 0)),
            percent(day.get(name, 0) / n_called if n_called else None),
            percent(one.recall),
            percent(one.precision),
            number(one.actual),
            f"{thresholds[name]:.3g}" if thresholds.get(name, 2.0) <= 1.0 else "–",
        )
        for name, one in order[:_MOST_CLASSES]
    ]


def _columns(counts: Counts, names: Sequence[str]) -> list[tuple[str, str, str, str]]:
    """Each column: the share of missing values, of all rows and recently, and how far it has shifted."""
    rows = []
    for name, column in zip(names, counts.columns, strict=False):
        shift, shifted = column.shift, column.share_shifted
        told = "–" if shift is None else f"{signed(shift, 2)} sd"
        told = told if shifted is None else percent(shifted)
        rows.append((clipped(name), percent(column.share_missing), percent(column.share_missing_recently), told))
    return rows


# --- Charts ----------------------------------------------------------------------------------------------------------


class ShownChart(NamedTuple):
    """A chart with its title, a sentence about it, and its height."""

    title: str
    about: str
    chart: Chart
    height: int


def charts(counts: Counts) -> list[ShownChart]:
    """The charts that have data."""
    found = [
        *(_accuracy(counts), _called(counts.clock), *_found(counts.clock), _rate(counts.clock)),
        *(_labels(counts), _delays(counts), _units(counts), _importances(counts)),
    ]
    return [one for one in found if one is not None]


def _by_the_clock(periods: Collection[int]) -> tuple[list[int], list[tuple[float, str]]]:
    """The periods of the latest day from the first one on, also those without rows, and hours under an axis."""
    first, last = min(periods), max(periods)
    begin, hours = first * PERIOD, (last + 1 - first) * PERIOD / 3600
    every = next(step for step in (0.25, 0.5, 1, 2, 4, 6) if hours / step <= 6 or step == 6) * 3600
    at = -(-begin // every) * every
    below = []
    while at <= (last + 1) * PERIOD:
        below.append(((at - begin) / PERIOD, f"{datetime.fromtimestamp(at, timezone.utc):%H:%M}"))
        at += every
    if len(below) < 2:  # within a quarter of an hour
        ends = begin, (last + 1) * PERIOD
        texts = [f"{datetime.fromtimestamp(at, timezone.utc):%H:%M}" for at in ends]
        below = [(0.0, texts[0]), (float(last + 1 - first), texts[1])]
    return list(range(first, last + 1)), below


def _rarer(totals: Mapping[str, int]) -> list[str]:
    """The classes of which there are some, except the commonest one, of which charts would show little else."""
    names = sorted((name for name in totals if totals[name]), key=lambda name: (-totals[name], name))
    return (names[1:] if len(names) > 1 else names)[:COLOURS]


def _class_chart(
    clock: ByTheClock,
    names: Sequence[str],
    share: Callable[[int, str], float | None],
    title: str,
    about: str,
    told: str,
) -> ShownChart | None:
    """A line for each class: its share by the number of a period."""
    if len(clock.periods) < 2 or not names:
        return None
    numbers, below = _by_the_clock(clock.periods)
    ends = [float(one - numbers[0] + 1) for one in numbers]
    lines = [in_percent(share(one, name) for one in numbers) for name in names]
    plot = filled(len(numbers), [value for line in lines for value in line])
    if plot is None:
        return None
    body = plot.axes(ticks(plot.low, min(plot.high, 100), 4), " %", below, "UTC", most=5)
    body += plot.stretched(*(plot.line(ends, line, f"run s{n}") for n, line in enumerate(lines)))
    legend = [stroke(f"run s{n}", clipped(name)) for n, name in enumerate(names)]
    return ShownChart(title, about, Chart(body, told, legend), 180)


def _called(clock: ByTheClock) -> ShownChart | None:
    """The share that each class has of the predictions."""
    totals = {name: one.called for name, one in clock.total.classes.items()}
    names = _rarer(totals)

    def share(period: int, name: str) -> float | None:
        own = clock.periods.get(period, ClassCounts())
        n = sum(each.called for each in own.classes.values())
        return own.classes.get(name, ClassCount()).called / n if n else None

    about = "The share of predictions that are of each class, within the latest day, except the one predicted most."
    told = f"Predictions by class: {', '.join(f'{name} {number(totals[name])}' for name in names)}."
    return _class_chart(clock, names, share, "Predictions by the clock", about, told)


def _found(clock: ByTheClock) -> list[ShownChart | None]:
    """Recall and precision of each class."""
    names = _rarer({name: one.actual + one.judged for name, one in clock.total.classes.items()})
    hours = {one: clock.hour(one) for one in range(min(clock.periods), max(clock.periods) + 1)} if clock.periods else {}

    def chart(name: str, what: str, measure: Callable[[ClassCount], float | None]) -> ShownChart | None:
        def share(period: int, of: str) -> float | None:
            return measure(hours[period].get(of, ClassCount()))

        about = f"The share of a class's {what}, of those with labels within an hour up to then."
        told = ", ".join(f"{one} {percent(measure(clock.total.of(one)))}" for one in names)
        return _class_chart(clock, names, share, f"{name} by the clock", about, f"{name} by class, in all: {told}.")

    return [
        chart("Recall", "rows that was predicted so", attrgetter("recall")),
        chart("Precision", "predictions that was right", attrgetter("precision")),
    ]


def _rate(clock: ByTheClock) -> ShownChart | None:
    """Rows per second."""
    if len(clock.periods) < 2:
        return None
    numbers, below = _by_the_clock(clock.periods)
    rates: list[float | None] = [clock.periods.get(one, ClassCounts()).n_rows / PERIOD for one in numbers]
    most = max(rate or 0.0 for rate in rates)
    plot = Plot(len(numbers), 0, 1.1 * most or 1.0)
    ends = [one - numbers[0] + 1 for one in numbers]
    body = plot.axes(ticks(0, plot.high, 4), "", below, "UTC", most=5)
    body += plot.stretched(plot.steps(ends, rates, "units"))
    about = "Rows per second, within the latest day."
    label = f"Rows per second, at most {number(most, 2)}."
    return ShownChart("Rows by the clock", about, Chart(body, label, [stroke("units", "rows per second")]), 130)


def _requests(periods: Mapping[int, RequestPeriod]) -> list[ShownChart]:
    """Latency, and errors if there are any, of all streams."""
    if len(periods) < 2:
        return []
    numbers, below = _by_the_clock(periods)
    ends, nothing = [one - numbers[0] + 1 for one in numbers], RequestPeriod()
    slow = [periods.get(one, nothing).slow for one in numbers]
    errors: list[float | None] = [periods.get(one, nothing).errors for one in numbers]

    def chart(name: str, about: str, values: Sequence[float | None], unit: str, told: str) -> ShownChart:
        plot = Plot(len(numbers), 0, 1.1 * max(value or 0.0 for value in values) or 1.0)
        body = plot.axes(ticks(0, plot.high, 4), unit, below, "UTC", most=5)
        body += plot.stretched(plot.steps(ends, values, "units"))
        return ShownChart(f"{name} by the clock", about, Chart(body, told, [stroke("units", name.lower())]), 130)

    most = 1000 * max(one for one in slow if one is not None)
    about = "The milliseconds within which this server has answered 95 % of the requests, of all streams."
    milliseconds = [None if one is None else 1000 * one for one in slow]
    shown = [chart("Latency", about, milliseconds, " ms", f"Latency, at most {most:g} ms.")]
    if any(errors):
        about = "Requests in five minutes that ended with an error of this server."
        shown.append(
            chart("Errors", about, errors, "", f"Errors, {number(sum(map(int, filter(None, errors))))} in all.")
        )
    return shown


def _ends(counts: Counts) -> list[float]:
    """The last row of each span."""
    return [min((place + 1) * counts.width, counts.n_rows) for place in range(len(counts.spans))]


def _accuracy(counts: Counts) -> ShownChart | None:
    right = in_percent(span.n_correct / span.n_labelled if span.n_labelled else None for span in counts.spans)
    sure = in_percent(span.confidence / span.n_predicted if span.n_predicted else None for span in counts.spans)
    plot = filled(counts.n_rows, [*right, *sure])
    if plot is None:
        return None
    ends = _ends(counts)
    lines, legend = _drifts(plot, counts, ends)
    body = plot.axes(ticks(plot.low, min(plot.high, 100), 5), " %", name="rows, by when they were predicted") + lines
    body += plot.stretched(plot.line(ends, sure, "no-change"), plot.line(ends, right, "smooth"))
    held = counts.held
    about = "The accuracy of predictions whose labels have come, and the accuracy that the probabilities promised."
    if held is not None:
        more = "more" if held >= 0 else "less"
        about += f" So far, predictions were {number(100 * abs(held), 1)} points {more} accurate than promised."
    label = f"Accuracy over {number(counts.n_rows)} rows, {percent(counts.accuracy)} of the latest with labels."
    keys = [stroke("smooth", "accuracy"), stroke("no-change", "promised by the probabilities"), *legend]
    return ShownChart("Accuracy", about, Chart(body, label, keys), 260)


def _of_classes(counts: Counts) -> str:
    """Which of the real drifts were of a single class."""
    most = sorted(counts.class_drifts.items(), key=lambda item: -item[1])[:_MOST_DRIFTED]
    return of_classes((clipped(label), n) for label, n in most)


def _drifts(plot: Plot, counts: Counts, ends: Sequence[float]) -> tuple[Markup, list[LegendEntry]]:
    lines, legend = Markup(""), list[LegendEntry]()
    kinds = ("drift generative", "virtual", ""), ("drift discriminative", "real", _of_classes(counts))
    for style, name, of in kinds:
        n = sum(getattr(span, name) for span in counts.spans)
        for span, end in zip(counts.spans, ends, strict=True):
            if getattr(span, name):
                lines += Markup('<line class="{s}" x1="{x:.3f}%" x2="{x:.3f}%" y1="0" y2="100%"/>').format(
                    s=style, x=plot.x(end)
                )
        if n:
            legend.append(upright(style, how_many(n, f"{name} drift") + of))
    return lines, legend


def _labels(counts: Counts) -> ShownChart | None:
    labelled = in_percent(span.n_labelled / span.n_predicted if span.n_predicted else None for span in counts.spans)
    known = [percents for percents in labelled if percents is not None]
    if not known:
        return None
    plot, ends = Plot(counts.n_rows, 0, 102), _ends(counts)
    body = plot.axes([0, 50, 100], " %", name="rows, by when they were predicted")
    body += plot.stretched(plot.band(ends, [0.0] * len(ends), labelled, "band"), plot.line(ends, labelled, "each"))
    label = f"Share of predicted rows whose labels have come: {known[-1]:.0f} % of the latest."
    about = "The share of predicted rows whose labels have come."
    return ShownChart("Labels", about, Chart(body, label, [area("band", "labels have come")]), 110)


def _delays(counts: Counts) -> ShownChart | None:
    total = sum(counts.delays)
    if total == 0:
        return None
    percents = [100 * n / total for n in counts.delays]
    plot = Plot(len(percents), 0, max(percents) * 1.05)
    names = [(place + 0.5, name) for place, name in enumerate(_DELAYS) if place % 2 == 0]  # more overlap on a phone
    body = plot.axes(ticks(0, plot.high, 4), " %", names, "from a row to its label, up to")
    width = 100 / len(percents)
    for place, of_all in enumerate(percents):
        y = plot.y(of_all)
        bar = '<rect class="level" x="{:.2f}%" y="{:.2f}%" width="{:.2f}%" height="{:.2f}%"><title>{}</title></rect>'
        told = f"{_DELAYS[place]}: {percent(of_all / 100)}"
        body += Markup(bar).format((place + 0.15) * width, y, 0.7 * width, 100 - y, told)
    most = _DELAYS[percents.index(max(percents))]
    label = f"Delays of {number(total)} labels; most came within {most}."
    about = f"How long labels took: {number(counts.delay_sum / total, 1)} seconds on average."
    return ShownChart("Label delay", about, Chart(body, label), 160)


def _units(counts: Counts) -> ShownChart | None:
    units = [span.n_hidden or None for span in counts.spans]
    known = [n for n in units if n is not None]
    if len(known) < 2:
        return None
    plot = Plot(counts.n_rows, 0, 1.18 * max(known) + 0.5)
    body = plot.axes(ticks(0, plot.high, 4, smallest=1), name="rows")
    body += plot.stretched(plot.steps([round(end) for end in _ends(counts)], units, "units"))
    label = f"Hidden units: {min(known)} to {max(known)}, {known[-1]} now."
    about = "Hidden units of the model, which adds and removes them by itself."
    return ShownChart("Structure", about, Chart(body, label, [stroke("units", "hidden units")]), 160)


def _importances(counts: Counts) -> ShownChart | None:
    asked = [(end, span.importances) for end, span in zip(_ends(counts), counts.spans, strict=True) if span.importances]
    if len(asked) < 2:
        return None
    totals: dict[str, float] = {}
    for _, importances in asked:
        for name, own in importances.items():
            totals[name] = totals.get(name, 0.0) + own
    names = sorted(totals, key=lambda name: -totals[name])[:COLOURS]
    lines = [in_percent(importances.get(name, 0.0) for _, importances in asked) for name in names]
    chart = columns_chart(counts.n_rows, [end for end, _ in asked], [clipped(name) for name in names], lines)
    about = "How much predictions change when a column takes the values of other recent rows, relative to all columns."
    return ShownChart("Which columns matter", about, chart, 160)
