"""Comparison of runs: their results and differing settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from devdan.evaluation import measures
from devdan.report.run.run_settings import ELSEWHERE, inner, name, shown
from devdan.report.run.shown_run import ShownRun
from devdan.report.words import NOTHING, clipped, heading, how_many, letter, number, written


def differences(runs: Sequence[ShownRun]) -> list[tuple[str, list[str]]]:
    """The settings that differ between runs, each with its values.

    An option that only some models have counts only if these models differ in it.
    """
    options = {key for run in runs for key, _ in inner(run.info, "options")}
    flat = [_flat(run) for run in runs]
    found = []
    for key in dict.fromkeys(key for own in flat for key in own):
        having = {own.get("model") for own in flat if key in own}
        compared = [own for own in flat if key not in options or own.get("model") in having]
        if len({own.get(key) for own in compared}) > 1:
            found.append((key, [own.get(key, NOTHING) for own in flat]))
    return found


def _flat(run: ShownRun) -> dict[str, str]:
    """All settings of a run, by name."""
    own = {name(key): shown(v) for key, v in run.info.items() if key not in ELSEWHERE and v is not None}
    own |= {key: shown(run.info[key]) for key in ("model", "seed") if run.info.get(key) is not None}
    return own | {
        key: shown(value) for group in ("options", "machine", "versions") for key, value in inner(run.info, group)
    }


class Figure(NamedTuple):
    """A run's value in one column."""

    text: str
    remark: str
    best: bool


def columns() -> list[measures.Measure]:
    """What runs are compared by."""
    return [measure for measure in measures.MEASURES if measure.column]


def heads() -> list[str]:
    """The names of the columns, without places where a line may break; a star is for what depends on the machine."""
    named = [heading(measure).replace("-", "\u2011") + "*" * measure.timed for measure in columns()]
    return [*named, "Samples"]


def comparison(runs: Sequence[ShownRun]) -> list[list[Figure]]:
    """A row for each run, a column for each measure; the best is told among runs on one stream."""
    figures = [run.figures for run in runs]
    found = [_column(runs, figures, measure) for measure in columns()]
    found.append([Figure(number(r.summary.n_samples), how_many(r.summary.n_labels, "label"), best=False) for r in runs])
    return [list(row) for row in zip(*found, strict=True)]


def _column(runs: Sequence[ShownRun], figures: Sequence[measures.Figures], measure: measures.Measure) -> list[Figure]:
    texts = [written(measure, measure.figure(own), on_page=True) for own in figures]
    best = [False] * len(runs)
    for rivals in _rivals(runs, measure.timed) if measure.better else []:
        values = {place: measure.figure(figures[place]) for place in rivals}
        known = {place: measure.better * value for place, value in values.items() if value is not None}
        winner = max(known, key=lambda place: known[place], default=None)
        for place in known:
            best[place] = len(known) > 1 and winner is not None and texts[place] == texts[winner]
    spreads = [measure.spread_in(own) for own in figures]
    remarks = ["" if spread is None else f"± {written(measure, spread, on_page=True)}" for spread in spreads]
    return [Figure(*figure) for figure in zip(texts, remarks, best, strict=True)]


def _rivals(runs: Sequence[ShownRun], timed: bool) -> list[list[int]]:
    """Groups of comparable runs: on the same stream and, for times, on the same machine."""
    groups: dict[str, list[int]] = {}
    for place, run in enumerate(runs):
        own = [run.info.get("stream"), run.summary.n_samples, run.info.get("machine") if timed else None]
        groups.setdefault(repr(own), []).append(place)
    return list(groups.values())


def names(runs: Sequence[ShownRun]) -> list[tuple[str, str, str]]:
    """Each run's letter, title, and what distinguishes it from others with that title."""
    told = []
    for place, run in enumerate(runs):
        alike = [other for other in runs if other.title == run.title]
        apart = [f"{key} {values[alike.index(run)]}" for key, values in differences(alike)] if len(alike) > 1 else []
        told.append((letter(place), run.title, clipped(", ".join(apart), 60)))
    return told
