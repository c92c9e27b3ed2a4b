"""The page of a run, a single file that loads nothing, and a picture of it for a README."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

from devdan.evaluation import measures
from devdan.evaluation.counts import FEW
from devdan.evaluation.record import Phases
from devdan.histories.descriptions import LAST
from devdan.model.explain import UNIT_HEAD
from devdan.report.chart import COLOURS
from devdan.report.class_charts import balance_chart, class_rows, confusions, matrix, recall_chart
from devdan.report.event_marks import changes_legend, event_rows, markers
from devdan.report.key_charts import shown_keys
from devdan.report.rare import headline, headline_chart, headline_title, rare_class
from devdan.report.render import Tile, caption, framed, legend, placed, render
from devdan.report.run_charts import (
    accuracy_chart,
    beginning_chart,
    bias_variance_chart,
    hidden_units_chart,
    importances_chart,
    in_range,
    no_change_place,
    points,
    reliability_chart,
)
from devdan.report.shown_run import ShownRun, settings
from devdan.report.words import clipped, how_many, moment, number, percent, seconds, written

_MOST_COLUMNS = 200
_MOST_HISTORIES = 12
_MOST_ALIKE, _MOST_NAMES = 6, 60
_FIRST_ROWS = 10  # of classes; the rest is folded away
_FIRST_UNITS = 10  # likewise
_NEXT_TO_ANOTHER = 4  # classes up to which the matrix leaves room beside it
_ALWAYS = "cr_mean"  # the measure that has a tile even if nothing has been scored


def page_of_run(run: ShownRun, *, goes_on: bool = False) -> str:
    """The report of one run; during the run, the page reloads itself."""
    width = run.bins.width
    phases = [(phase, bias_variance_chart(run, phase)) for phase in Phases._fields]
    accuracy, hidden_units, counted, rows = accuracy_chart(run), hidden_units_chart(run), matrix(run), class_rows(run)
    no_change, columns = no_change_place(run), _columns(run)
    outside = "" if accuracy is None or in_range(run, run.summary.confusion.majority) else _majority(run)
    return render(
        "run.html",
        run=run,
        subtitle=_subtitle(run),
        goes_on=goes_on,
        written=datetime.now(timezone.utc),
        tiles=tiles(run),
        accuracy=accuracy,
        about_accuracy="" if accuracy else _about_accuracy(run),
        resolution=f" Each point is the mean of {width:,} chunks." if width > 1 else "",
        reservation=measures.reservation(run.figures) if run.finished else "",
        majority=outside,
        no_change=f"{percent(run.summary.no_change)} overall, {no_change}" if no_change.endswith("chart") else "",
        hidden_units=hidden_units,
        beginning=beginning_chart(run) if hidden_units else None,
        about_units="" if hidden_units else _about_units(run),
        phases=[(phase, chart) for phase, chart in phases if chart],
        classes=[chart for chart in (recall_chart(run), balance_chart(run)) if chart],
        most_classes=COLOURS,
        rare=rare_class(run),
        matrix=counted,
        is_narrow=counted is not None and len(counted.names) <= _NEXT_TO_ANOTHER,
        reliability=reliability_chart(run),
        worst=rows[:_FIRST_ROWS],
        other_classes=rows[_FIRST_ROWS:],
        few=FEW,
        confusions=confusions(run),
        events=event_rows(run),
        importances=importances_chart(run),
        n_importances=len(run.importances[0].values) if run.importances else 0,
        strongest=COLOURS,
        histories=_histories(run),
        about_networks=_about_networks(run),
        hidden=run.hidden[:_FIRST_UNITS],
        other_hidden=run.hidden[_FIRST_UNITS:],
        head_of_units=UNIT_HEAD,
        columns=columns[:_MOST_COLUMNS],
        more_columns=max(len(columns) - _MOST_COLUMNS, 0),
        settings=settings(run),
        keys=shown_keys(run.keys, run.summary.n_samples),
        points=points([run]),
    )


# Curves are uncovered from left to right, as the stream was read, once; still for those who want no motion.
_ANIMATION = """
@media (prefers-reduced-motion: no-preference) { .moves { animation: read 12s linear both; } }
@keyframes read { from { clip-path: inset(-9px 100% -9px -9px); } to { clip-path: inset(-9px -9px -9px -9px); } }
"""


def picture_of_run(run: ShownRun, *, animated: bool = False) -> str:
    """Accuracy, or how well a rare class is found, above hidden units: an SVG document, for light and dark pages."""
    rate, spread, top = number(run.summary.rate.mean, 1), number(run.summary.rate.std, 1), 26
    leading = headline([run])
    upper = None if leading is None else headline_chart(run, leading)
    if leading is None or upper is None:
        name, upper = "accuracy", accuracy_chart(run)
        body = caption(24, f"Accuracy on {run.title}", f"{rate} ± {spread} %")
    else:
        name = headline_title([run], leading)
        body = caption(24, f"{name} on {run.title}", written(leading, leading.figure(run.figures), on_page=True))
    for chart, height, head in ((upper, 200, ""), (hidden_units_chart(run), 130, run.units.capitalize())):
        if chart is None:
            continue
        if head:
            body += caption(top + 12, head)
            top += 14
        body += legend(top + 18, chart.legend)
        top += 34
        body += placed(top, height, chart.body)
        top += height + chart.lower + 58
    title = f"{run.title}: {name} and {run.units} over {run.summary.n_samples:,} samples"
    return framed(title, top - 12, body, _ANIMATION if animated else "")


def _majority(run: ShownRun) -> str:
    """The accuracy of always predicting the commonest class, in words."""
    commonest = clipped(measures.about_classes(run.figures)["commonest"])
    return f"{commonest} has {percent(run.summary.confusion.majority)} overall, outside this chart"


def _subtitle(run: ShownRun) -> str:
    info, summary = run.info, run.summary
    parts = [f"{how_many(summary.n_samples, 'sample')} in {how_many(summary.n_chunks, 'chunk')}"]
    if info.get("labels") not in (None, "all"):
        parts.append(f"labels {info['labels']}")
    if info.get("started"):
        parts.append(f"started {moment(info['started'])}")
    return " · ".join(parts)


def _columns(run: ShownRun) -> list[tuple[str, str]]:
    """What became of each column; many that became the same are told in one line."""
    by_words: dict[str, list[str]] = {}
    for name, became in run.columns:
        by_words.setdefault(became, []).append(name)
    rows = []
    for became, names in by_words.items():
        if len(names) <= _MOST_ALIKE:
            rows += [(name, became) for name in names]
        else:
            listed = ", ".join(names[:_MOST_NAMES]) + (", …" if len(names) > _MOST_NAMES else "")
            rows.append((how_many(len(names), "column"), f"{became}: {listed}"))
    return rows


def _histories(run: ShownRun) -> list[tuple[str, str]]:
    """How much histories matter, on average over the run; those that differ in how far they go back are one."""
    points, names = run.importances, [name for name, _ in run.columns]
    if not points or not run.histories or len(names) != len(points[0].values):
        return []
    found: dict[str, float] = {}
    for name, values in zip(names, zip(*(point.values for point in points), strict=True), strict=True):
        if name in run.histories:
            what = run.histories[name].partition(LAST)[0]
            found[what] = found.get(what, 0.0) + sum(values) / len(points)
    order = sorted(found, key=lambda what: -found[what])[:_MOST_HISTORIES]
    return [(what, percent(found[what])) for what in order if found[what] > 0]


def _about_networks(run: ShownRun) -> str:
    """Which networks the hidden units are of, if there are several."""
    n_networks = len({network for network, *_ in run.hidden})
    if run.n_replaying:
        n = len(run.hidden) - run.n_replaying
        return f"{n} units are of network 0, which evolves, {run.n_replaying} of network 1, which replays samples."
    return f"They are of {n_networks} networks, the members of the ensemble." if n_networks > 1 else ""


# --- Headline figures --------------------------------------------------------------------------------------------


def tiles(run: ShownRun) -> list[Tile]:
    """The headline figures."""
    summary, figures = run.summary, run.figures
    of = run.info.get("n_samples")
    part = f"of {of:,}, " if isinstance(of, int) and of > summary.n_samples else ""
    labelled = summary.n_labels / summary.n_samples if summary.n_samples else None
    return [
        *(tile for measure in measures.MEASURES if (tile := _tile(run, measure, figures))),
        Tile("Samples", number(summary.n_samples), "", f"{part}in {how_many(summary.n_chunks, 'chunk')}"),
        *_keys_tile(run),
        Tile("Labels used", number(summary.n_labels), "", f"{percent(labelled)} of the samples"),
    ]


def _keys_tile(run: ShownRun) -> list[Tile]:
    """How many keys there are, if the model is a fleet."""
    if len(run.keys) == 0:
        return []
    spreads = run.keys.spreads
    median = f"the median key: {percent(spreads[-1].levels[2])} recently" if spreads else ""
    return [Tile("Keys", number(len(run.keys)), "", median or "too few rows of each to judge")]


def _tile(run: ShownRun, measure: measures.Measure, figures: Mapping[str, Any]) -> Tile | None:
    value, text, summary = measure.figure(figures), measure.tile, run.summary
    if text is None or (measure.optional and value is None):
        return None
    if value is None and summary.confusion.n_samples == 0:
        return Tile(measure.title, "–", "", "nothing has been scored yet") if measure.key == _ALWAYS else None
    known = {other.key: written(other, other.figure(figures), on_page=True) for other in measures.MEASURES}
    known |= {name: clipped(told) for name, told in measures.about_classes(figures).items()}
    known |= {
        "spread": written(measure, measure.spread_in(figures), on_page=True),
        "now": number(measure.now(run.last)) if measure.now and run.last else "",
        "replaying": f", and {run.n_replaying} that replay samples" if run.n_replaying else "",
        "scored": f"{how_many(summary.rate.n, 'chunk')}, "
        + ("from the second on" if summary.rate.n == summary.n_chunks - 1 else "those scored after the first"),
        "classes": how_many(len(summary.classes), "class"),
        "no_change": percent(summary.no_change).replace(" ", "\u00a0"),
        "training": seconds(summary.train_seconds),
        "testing": seconds(summary.test_seconds),
        "Units": run.units.capitalize(),
    }
    remark = "" if "{no_change}" in text.remark and summary.no_change is None else text.remark.format_map(known)
    title = (text.title or measure.title).format_map(known)
    return Tile(title, written(measure, value, on_page=True), text.unit_of_measure or measure.unit_of_measure, remark)


# --- What is said where there is too little for a chart ----------------------------------------------------------


def _about_accuracy(run: ShownRun) -> str:
    """Why there is no curve of the accuracy."""
    confusion, n_chunks = run.summary.confusion, run.summary.n_chunks
    if confusion.n_samples:
        n_samples = how_many(confusion.n_samples, "sample")
        return f"{percent(confusion.accuracy)} of {n_samples}, all in one chunk: no curve."
    if n_chunks == 0:
        return "The run has begun. Its first chunk has not been processed yet."
    if n_chunks == 1:
        samples = "All samples are" if run.finished else "So far all samples are"
        return (
            f"{samples} in the first chunk, which is learned before anything is predicted, so nothing has been scored. "
            "With smaller chunks, those after the first would be."
        )
    return "No prediction has been scored yet."


def _about_units(run: ShownRun) -> str:
    """The hidden units after a single chunk, and how they came about."""
    last = run.last
    if last is None or last.n_hidden is None:
        return ""
    told = [entry.text for entry in changes_legend(markers(run.bins, run.summary.n_samples))]
    for phase in Phases._fields:
        bias2, variance = (None if pair is None else pair.of(phase) for pair in (last.bias2, last.variance))
        if bias2 is not None and variance is not None:
            told.append(f"bias² {bias2:.3g} and variance {variance:.3g} in the {phase} phase")
    units = how_many(last.n_hidden, run.units.removesuffix("s"))
    return f"{units} after the first chunk" + (f": {'; '.join(told)}." if told else ".")
