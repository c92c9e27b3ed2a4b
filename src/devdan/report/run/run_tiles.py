"""The headline figures of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from devdan.evaluation import measures
from devdan.report.render import Tile
from devdan.report.run.shown_run import ShownRun
from devdan.report.words import how_many, number, percent, seconds, written

_FIRST = "cr_mean"  # which is there even if nothing has been scored


def tiles(run: ShownRun) -> list[Tile]:
    """The headline figures."""
    summary, figures = run.summary, run.figures
    share = summary.n_labels / summary.n_samples if summary.n_samples else None
    of = run.info.get("n_samples")
    part = f"of {of:,}, " if isinstance(of, int) and of > summary.n_samples else ""
    return [
        *(tile for measure in measures.MEASURES if (tile := _tile(run, measure, figures))),
        Tile("Samples", number(summary.n_samples), "", f"{part}in {how_many(summary.n_chunks, 'chunk')}"),
        *_keys(run),
        Tile("Labels used", number(summary.n_labels), "", f"{percent(share)} of the samples"),
    ]


def _keys(run: ShownRun) -> list[Tile]:
    """How many keys there are, if the model is a fleet."""
    if len(run.keys) == 0:
        return []
    spreads = run.keys.spreads
    remark = (
        f"the median key: {percent(spreads[-1].levels[2])} recently" if spreads else "too few rows of each to judge"
    )
    return [Tile("Keys", number(len(run.keys)), "", remark)]


def _tile(run: ShownRun, measure: measures.Measure, figures: Mapping[str, Any]) -> Tile | None:
    value, text, summary = measure.figure(figures), measure.tile, run.summary
    if text is None or (measure.optional and value is None):
        return None
    is_scored = summary.confusion.n_samples > 0
    if value is None and not is_scored:
        return Tile(measure.title, "–", "", "nothing has been scored yet") if measure.key == _FIRST else None
    known = {
        "spread": written(measure, measure.spread_in(figures), on_page=True),
        "now": number(measure.now(run.last)) if measure.now and run.last else "",
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
    return Tile(title, written(measure, value, on_page=True), text.unit or measure.unit, remark)
