"""The page of runs side by side: figures, charts, differences, recall of each class, and settings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from statistics import fmean, stdev
from typing import NamedTuple

from markupsafe import Markup

from devdan.evaluation import measures
from devdan.evaluation.measures import Figures, Measure
from devdan.evaluation.record import Summary
from devdan.report.bins import joined, smooth_accuracy
from devdan.report.chart import LANE, Chart, LegendEntry, Plot, Values, filled, in_percent, moving, stroke, ticks
from devdan.report.class_charts import by_name
from devdan.report.event_marks import drawn_true_drifts, drifts
from devdan.report.rare import by_chance, headline, headline_title, over_parts
from devdan.report.render import render
from devdan.report.run_charts import points
from devdan.report.shown_run import ShownRun, differences, options
from devdan.report.words import NOTHING, clipped, heading, how_many, letter, number, percent, signed, written

_FIRST_ROWS = 12  # of classes; the rest is folded away
_MOST_ROWS = 100


def page_of_runs(runs: Sequence[ShownRun], by: Measure | None = None) -> str:
    """The comparison of several runs, by a measure or by what suits each stream."""
    streams = list(dict.fromkeys(str(run.info.get("stream") or run.name) for run in runs))
    names, rows, leading = _names(runs), recalls(runs), headline(runs, by)
    lettered = [(name[0], run) for name, run in zip(names, runs, strict=True)]
    return render(
        "comparison.html",
        title=f"{len(runs)} runs on {', '.join(streams)}",
        subtitle=f"In total {how_many(sum(run.summary.n_samples for run in runs), 'sample')}",
        unfinished=[f"{letter}: {run.progress}" for letter, run in lettered if not run.finished],
        names=names,
        heads=_heads(runs),
        comparison=_figures(runs),
        headline="" if leading is None else headline_title(runs, leading),
        headlines=None if leading is None else _headline_chart(runs, names, leading),
        accuracies=_accuracy_chart(runs, names),
        hidden_units=_hidden_units_chart(runs),
        replaying=any(run.n_replaying for run in runs),
        contrasts=contrasts(runs, by),
        n_parts=N_PARTS,
        chosen=by is not None,
        recalls=rows[:_FIRST_ROWS],
        other_recalls=rows[_FIRST_ROWS:],
        differences=differences(runs),
        other_models=len({run.info.get("model") for run in runs}) > 1,
        commands=[(letter, run.info["command"]) for letter, run in lettered if run.info.get("command")],
        points=points(runs, leading),
    )


def _names(runs: Sequence[ShownRun]) -> list[tuple[str, str, str]]:
    """Each run's letter, title, and what distinguishes it from others with that title."""
    told = []
    for place, run in enumerate(runs):
        alike = [other for other in runs if other.title == run.title]
        apart = [f"{key} {values[alike.index(run)]}" for key, values in differences(alike)] if len(alike) > 1 else []
        told.append((letter(place), run.title, clipped(", ".join(apart), 60)))
    return told


# --- Figures -----------------------------------------------------------------------------------------------------


class ComparedFigure(NamedTuple):
    """A run's value of one measure."""

    text: str
    remark: str
    best: bool


def _compared(figures: Sequence[Figures]) -> list[Measure]:
    """What runs are shown side by side by, without what none of them has."""
    return [
        measure
        for measure in measures.MEASURES
        if measure.column and not (measure.optional and all(measure.figure(own) is None for own in figures))
    ]


def _heads(runs: Sequence[ShownRun]) -> list[str]:
    """The names of the columns, without places where a line may break; a star is for what depends on the machine."""
    shown = _compared([run.figures for run in runs])
    return [*(heading(measure).replace("-", "\u2011") + "*" * measure.timed for measure in shown), "Samples"]


def _figures(runs: Sequence[ShownRun]) -> list[list[ComparedFigure]]:
    """A row for each run, a column for each measure; the best is told among runs on one stream."""
    figures = [run.figures for run in runs]
    found = [_column(runs, figures, measure) for measure in _compared(figures)]
    sizes = [(number(run.summary.n_samples), how_many(run.summary.n_labels, "label")) for run in runs]
    found.append([ComparedFigure(*size, best=False) for size in sizes])
    return [list(row) for row in zip(*found, strict=True)]


def _column(runs: Sequence[ShownRun], figures: Sequence[Figures], measure: Measure) -> list[ComparedFigure]:
    texts = [written(measure, measure.figure(own), on_page=True) for own in figures]
    best = [False] * len(runs)
    for rivals in _rivals(runs, measure.timed) if measure.better else []:
        values = {place: measure.figure(figures[place]) for place in rivals}
        known = {place: measure.better * value for place, value in values.items() if value is not None}
        winner = max(known, key=lambda place: known[place], default=None)
        if len(known) < 2 or winner is None or not measures.beats_majority(measure, figures[winner]):
            continue
        for place in known:
            best[place] = texts[place] == texts[winner]
    spreads = [measure.spread_in(own) for own in figures]
    remarks = ["" if spread is None else f"± {written(measure, spread, on_page=True)}" for spread in spreads]
    return [ComparedFigure(*figure) for figure in zip(texts, remarks, best, strict=True)]


def _rivals(runs: Sequence[ShownRun], timed: bool) -> list[list[int]]:
    """Groups of comparable runs: on the same stream and, for times, on the same machine."""
    groups: dict[str, list[int]] = {}
    for place, run in enumerate(runs):
        own = [run.info.get("stream"), run.summary.n_samples, run.info.get("machine") if timed else None]
        groups.setdefault(repr(own), []).append(place)
    return list(groups.values())


# --- Charts ------------------------------------------------------------------------------------------------------


def _headline_chart(runs: Sequence[ShownRun], names: Sequence[tuple[str, str, str]], measure: Measure) -> Chart | None:
    """How well each run finds its rarest class, over time, and what chance would have."""
    curves = [over_parts(run, measure) for run in runs]
    lines = [values for _, values in curves]
    known = [value for line in lines for value in line if value is not None]
    if len(known) < 2:
        return None
    longest = max(runs, key=lambda run: run.summary.n_samples)
    chance = by_chance(longest, measure) if _are_on_one_stream(runs) else None
    plot = Plot(longest.summary.n_samples, 0, max(1.1 * max(known), chance or 0.0, 0.05))
    legend = [] if chance is None else [stroke("majority", f"by chance, {number(chance, 3)}")]
    level = Markup("") if chance is None else plot.line([0, plot.end], [chance, chance], "majority")
    label = f"{headline_title(runs, measure)} of {len(runs)} runs, over time; overall: " + ", ".join(
        f"{letter(n)} {number(measure.figure(run.figures), 3)}" for n, run in enumerate(runs)
    )
    steps = ticks(0, min(plot.high, 1), 5)
    return _drawn(runs, names, plot, [ends for ends, _ in curves], lines, (steps, ""), level, legend, label)


def _accuracy_chart(runs: Sequence[ShownRun], names: Sequence[tuple[str, str, str]]) -> Chart | None:
    """The moving means of several runs' accuracies, and that of always predicting the commonest class of a stream."""
    lines = [in_percent(smooth_accuracy(run.bins)) for run in runs]
    longest = max(runs, key=lambda run: run.summary.n_samples)
    plot = filled(longest.summary.n_samples, [value for line in lines for value in line])
    if plot is None:
        return None
    level, legend = Markup(""), list[LegendEntry]()
    majority = longest.summary.confusion.majority if _are_on_one_stream(runs) else None
    if majority is not None and plot.low <= 100 * majority <= plot.high:
        level = plot.line([0, plot.end], in_percent([majority, majority]), "majority")
        commonest = clipped(measures.about_classes(longest.figures)["commonest"])
        legend = [stroke("majority", f"always {commonest}, {percent(majority)} overall")]
    label = f"Moving means of the accuracy of {len(runs)} runs; at the end: " + ", ".join(
        f"{letter(n)} {line[-1]:.1f} %" for n, line in enumerate(lines) if line[-1] is not None
    )
    ends = [[bin.end for bin in run.bins] for run in runs]
    steps = ticks(plot.low, min(plot.high, 100), 5)
    return _drawn(runs, names, plot, ends, lines, (steps, " %"), level, legend, label)


def _drawn(
    runs: Sequence[ShownRun],
    names: Sequence[tuple[str, str, str]],
    plot: Plot,
    ends: Sequence[Sequence[int]],
    lines: Sequence[Values],
    axis: tuple[Sequence[float], str],
    level: Markup,
    legend: Sequence[LegendEntry],
    label: str,
) -> Chart:
    """A line of each run beside a level line, the true drifts of their stream, and the drifts that each signalled."""
    paths = [plot.line(ends[place], lines[place], f"run s{place % 10}") for place in _longest_first(runs)]
    true = drawn_true_drifts(plot, _true_drifts_in_common(runs))
    lanes, n_lanes = true.lanes, true.n_lanes
    for place, run in enumerate(runs):
        signalled = [marker.sample for marker in drifts(run.bins)]
        if signalled:
            lanes += plot.lane(signalled, f"lane s{place % 10}", n_lanes, letter(place), f"t{place % 10}")
            n_lanes += 1
    body = plot.axes(*axis, lower=LANE * n_lanes)
    body += moving(true.lines, plot.stretched(level, *paths), _letters(plot, runs, lines)) + lanes
    told = [
        stroke(f"run s{n % 10}", f"{own}: {name}, {apart}" if apart else f"{own}: {name}")
        for n, (own, name, apart) in enumerate(names)
    ]
    return Chart(body, f"{label}.", [*told, *legend, *true.legend], LANE * n_lanes)


def _are_on_one_stream(runs: Sequence[ShownRun]) -> bool:
    return len({repr(run.info.get("stream")) for run in runs}) == 1


def _true_drifts_in_common(runs: Sequence[ShownRun]) -> list[int]:
    """The true drifts, if all runs are on the same stream."""
    longest = max(runs, key=lambda run: run.summary.n_samples)
    return longest.true_drifts if _are_on_one_stream(runs) else []


def _hidden_units_chart(runs: Sequence[ShownRun]) -> Chart | None:
    """The hidden units of several runs."""
    lines: list[Values] = [[bin.n_hidden for bin in run.bins] for run in runs]
    known = [value for line in lines for value in line if value is not None]
    if not known:
        return None
    plot = Plot(max(run.summary.n_samples for run in runs), 0, 1.1 * max(known) + 0.5)
    ends = [[bin.end for bin in run.bins] for run in runs]
    paths = [plot.steps(ends[place], lines[place], f"run s{place % 10}") for place in _longest_first(runs)]
    body = plot.axes(ticks(0, plot.high, 5, smallest=1))
    body += moving(plot.stretched(*paths), _letters(plot, runs, lines))
    return Chart(body, f"Hidden units of {len(runs)} runs.")


def _longest_first(runs: Sequence[ShownRun]) -> list[int]:
    """The drawing order of the runs: a short line must not disappear under a long one."""
    return sorted(range(len(runs)), key=lambda place: -runs[place].summary.n_samples)


def _letters(plot: Plot, runs: Sequence[ShownRun], lines: Sequence[Values]) -> Markup:
    """Each run's letter at the end of its line, moved down if it would cover another."""
    ends = [(next((v for v in reversed(line) if v is not None), None), n) for n, line in enumerate(lines)]
    body, placed = Markup(""), list[tuple[float, float]]()
    for value, n in sorted((value, n) for value, n in ends if value is not None)[::-1]:
        x, y = plot.x(runs[n].summary.n_samples), plot.y(value)
        y = max([y, *(above + 6 for beside, above in placed if abs(beside - x) < 4)])
        placed.append((x, y))
        body += Markup('<text class="letter t{}" x="{:.2f}%" y="{:.2f}%" dx="5" dy=".33em">{}</text>').format(
            n % 10, x, y, letter(n)
        )
    return body


# --- Recall ------------------------------------------------------------------------------------------------------


class RecallRow(NamedTuple):
    """A class: its recall in each run, in percent, and which are the best."""

    name: str
    texts: list[str]
    best: list[bool]
    gap: float


def recalls(runs: Sequence[ShownRun]) -> list[RecallRow]:
    """Every class of the first run's stream; of many, those first on which the runs differ most."""
    stream = runs[0].info.get("stream")
    known = [
        {str(c): run.summary.confusion.recall(n) for n, c in enumerate(run.summary.classes)}
        if run.info.get("stream") == stream
        else {}
        for run in runs
    ]
    names = list(dict.fromkeys(name for own in known for name in own))
    rows = []
    for name in (names[k] for k in by_name(range(len(names)), names)):
        values = [own.get(name) for own in known]
        texts = [NOTHING if value is None else f"{100 * value:.1f}" for value in values]
        there = [value for value in values if value is not None]
        if there:
            top = f"{100 * max(there):.1f}"
            best = [len(there) > 1 and text == top for text in texts]
            rows.append(RecallRow(clipped(name), texts, best, max(there) - min(there)))
    return rows if len(rows) <= _MOST_ROWS else sorted(rows, key=lambda row: -row.gap)[:_MOST_ROWS]


# --- How much better one run is than another, and how sure that is -----------------------------------------------


N_PARTS = 20  # of a stream, long enough that one hardly depends on the one before
_FEWEST_PARTS = 5
_SURE = 0.95


class Estimate(NamedTuple):
    """A difference, the interval that has the true one with 95 % certainty, and what it is from."""

    difference: float
    low: float
    high: float
    source: str


class Contrast(NamedTuple):
    """Two runs, or two groups of runs that differ in their seeds only, for display."""

    names: str
    measure: str
    difference: str
    interval: str
    picture: Markup
    verdict: str
    source: str


def comparing(name: str) -> Measure:
    """The measure of this name by which runs can be compared."""
    return measures.named(name, (measure for measure in measures.MEASURES if measure.value and not measure.timed))


def contrasts(runs: Sequence[ShownRun], by: Measure | None = None) -> list[Contrast]:
    """Each against the first on the same stream; none if there is only one, or too little was scored."""
    found: list[tuple[list[int], list[int], Measure, Estimate]] = []
    by_stream: dict[str, list[list[int]]] = {}
    for places in groups(runs):
        by_stream.setdefault(str(runs[places[0]].info.get("stream")), []).append(places)
    for rivals in by_stream.values():
        told = [by] if by else measures.leading([runs[n].figures for places in rivals for n in places])
        first, *others = rivals
        for other, measure in product(others, told):
            estimate = estimated([runs[n] for n in other], [runs[n] for n in first], measure)
            if estimate is not None:
                found.append((other, first, measure, estimate))
    widest: dict[str, float] = {}
    for *_, measure, estimate in found:
        widest[measure.key] = max(widest.get(measure.key, 0.0), *map(abs, (estimate.low, estimate.high)))
    return [
        Contrast(
            f"{_letters_of(a)} − {_letters_of(b)}",
            heading(measure),
            signed(estimate.difference, measure.digits),
            f"{signed(estimate.low, measure.digits)} to {signed(estimate.high, measure.digits)}",
            _picture(estimate, widest[measure.key] or 1.0),
            _verdict(runs, a, b, measure, estimate),
            estimate.source,
        )
        for a, b, measure, estimate in found
    ]


def _letters_of(places: Sequence[int]) -> str:
    return "".join(map(letter, places))


def _verdict(runs: Sequence[ShownRun], a: list[int], b: list[int], measure: Measure, estimate: Estimate) -> str:
    """Which is better; accuracy says so only if it is more than that of always predicting the commonest class."""
    if estimate.low <= 0 <= estimate.high:
        return "may be chance"
    winner = a if estimate.difference * measure.better > 0 else b
    if not all(measures.beats_majority(measure, runs[n].figures) for n in winner):
        commonest = measures.about_classes(runs[winner[0]].figures)["commonest"]
        return f"neither is better than always predicting {clipped(commonest)}"
    return f"{_letters_of(winner)} is better"


def groups(runs: Sequence[ShownRun]) -> list[list[int]]:
    """The places of runs that differ in nothing but their seeds."""
    found: dict[str, list[int]] = {}
    for place, run in enumerate(runs):
        info = {key: run.info.get(key) for key in ("stream", "model", "labels", "chunk", "limit", "order", "scaled")}
        own = {key: value for key, value in options(run).items() if key not in ("random_state", "seed")}
        found.setdefault(repr((info, own, run.summary.n_samples)), []).append(place)
    return list(found.values())


def estimated(ours: Sequence[ShownRun], theirs: Sequence[ShownRun], measure: Measure) -> Estimate | None:
    """The difference of a measure: over seeds, if there are several runs of each; else over parts of the stream."""
    values = [[measure.figure(run.figures) for run in group] for group in (ours, theirs)]
    a, b = ([value for value in group if value is not None] for group in values)
    if min(len(a), len(b)) > 1:
        return _interval(
            fmean(a) - fmean(b), [stdev(x) ** 2 / len(x) for x in (a, b)], [len(x) - 1 for x in (a, b)],
            f"{len(a)} and {len(b)} seeds",
        )  # fmt: skip
    return _over_parts(ours, theirs, measure)


def _over_parts(ours: Sequence[ShownRun], theirs: Sequence[ShownRun], measure: Measure) -> Estimate | None:
    """By the jackknife: how much the difference changes if a part of the stream is left out.

    With d of all n parts and d_i of all but the i-th, the variance of d is (n - 1) / n Σ (d_i - mean d_i)².
    """
    end = min(run.summary.n_samples for run in (*ours, *theirs))
    a, b = _by_part(ours, end), _by_part(theirs, end)
    scored = [place for place in range(N_PARTS) if a[place].confusion.n_samples and b[place].confusion.n_samples]
    n = len(scored)
    if n < _FEWEST_PARTS:
        return None

    def gap(places: Sequence[int]) -> float | None:
        pair = [_value(measure, [parts[place] for place in places]) for parts in (a, b)]
        return None if pair[0] is None or pair[1] is None else pair[0] - pair[1]

    whole, without = gap(scored), [gap([other for other in scored if other != place]) for place in scored]
    gaps = [value for value in without if value is not None]
    if whole is None or len(gaps) < n:
        return None
    middle = fmean(gaps)
    variance = (n - 1) / n * sum((value - middle) ** 2 for value in gaps)
    return _interval(whole, [variance], [n - 1], f"{n} parts of the stream")


def _by_part(runs: Sequence[ShownRun], end: int) -> list[Summary]:
    """Equal parts of the stream up to its end, of all runs together."""
    parts = [Summary(begins=False) for _ in range(N_PARTS)]
    for run in runs:
        for part in run.parts:
            if part.end <= end:
                parts[min((part.start + part.end) // 2 * N_PARTS // end, N_PARTS - 1)].join(part.summary)
    return parts


def _value(measure: Measure, parts: Sequence[Summary]) -> float | None:
    """A measure of some parts of the stream together; of the classification rate, the accuracy."""
    whole = joined(parts)
    if measure is measures.RATE:
        return None if whole.confusion.accuracy is None else 100 * whole.confusion.accuracy
    assert measure.value is not None
    value: float | None = measure.value(whole)
    return value


def _interval(difference: float, variances: list[float], freedoms: list[int], source: str) -> Estimate:
    """Student's interval, with Welch's degrees of freedom."""
    from scipy.stats import t  # noqa: PLC0415 (takes a while)

    whole = sum(variances)
    if whole <= 0:
        return Estimate(difference, difference, difference, source)
    freedom = whole**2 / sum(part**2 / n for part, n in zip(variances, freedoms, strict=True))
    room = float(t.ppf((1 + _SURE) / 2, freedom)) * math.sqrt(whole)
    return Estimate(difference, difference - room, difference + room, source)


def _picture(estimate: Estimate, widest: float) -> Markup:
    """The interval beside zero."""

    def x(value: float) -> float:
        return 50 + 46 * value / widest

    return Markup(
        '<svg class="interval" width="180" height="16" aria-hidden="true"><line class="axis" x1="50%" x2="50%" y1="0" '
        'y2="16"/><line class="range" x1="{:.1f}%" x2="{:.1f}%" y1="8" y2="8"/><circle class="level" cx="{:.1f}%" '
        'cy="8" r="4"/></svg>'
    ).format(x(estimate.low), x(estimate.high), x(estimate.difference))
