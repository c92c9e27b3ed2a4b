"""Runs side by side: their figures, and what sets them apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from devdan.evaluation.record import Mean
from devdan.report.drawing.words import NOTHING, clipped, how_many, letter, number, seconds, short
from devdan.report.run.run_settings import ELSEWHERE, inner, name, shown
from devdan.report.run.shown_run import ShownRun


def differences(runs: Sequence[ShownRun]) -> list[tuple[str, list[str]]]:
    """The settings that are not the same in all runs, each with its values.

    An option that some models do not have counts only where those that have it differ.
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
    """A run's figure in one column."""

    text: str
    remark: str
    best: bool


class Criterion(NamedTuple):
    """A column of the comparison; ``sign`` is 1 where more is better, −1 where less is, 0 where neither."""

    name: str
    value: Callable[[ShownRun], float | None]
    text: Callable[[float | None], str]
    sign: int
    remark: Callable[[ShownRun], str] = lambda _: ""
    timed: bool = False


def _digits(n: int) -> Callable[[float | None], str]:
    return lambda value: number(value, n)


def _spread(of: Mean, digits: int) -> str:
    return "" if of.std is None else f"± {number(of.std, digits)}"


CRITERIA = (
    Criterion(
        "Classification rate, %",
        lambda run: run.summary.rate.mean,
        _digits(2),
        1,
        lambda run: _spread(run.summary.rate, 2),
    ),
    Criterion("Kappa", lambda run: run.summary.confusion.kappa, _digits(3), 1),
    Criterion("Macro F1", lambda run: run.summary.confusion.f1_macro, _digits(3), 1),
    Criterion("G‑mean", lambda run: run.summary.confusion.g_mean, _digits(3), 1),
    Criterion("Kappa vs no‑change", lambda run: run.summary.details()["kappa_no_change"], _digits(3), 1),
    Criterion(
        "Hidden units",
        lambda run: run.summary.hidden.mean,
        _digits(1),
        -1,
        lambda run: _spread(run.summary.hidden, 1),
    ),
    Criterion("Parameters", lambda run: run.summary.parameters.mean, number, -1),
    Criterion("Training*", lambda run: run.summary.train_seconds, seconds, -1, timed=True),
    Criterion("Testing*", lambda run: run.summary.test_seconds, seconds, -1, timed=True),
    Criterion("Samples/s*", lambda run: run.summary.samples_per_second, short, 1, timed=True),
    Criterion(
        "Samples",
        lambda run: run.summary.n_samples,
        number,
        0,
        lambda run: how_many(run.summary.n_labels, "label"),
    ),
)


def comparison(runs: Sequence[ShownRun]) -> list[list[Figure]]:
    """A row for each run, a column for each criterion; the best is told among runs on one stream."""
    columns = []
    for criterion in CRITERIA:
        texts = [criterion.text(criterion.value(run)) for run in runs]
        best = [False] * len(runs)
        for rivals in _rivals(runs, criterion.timed) if criterion.sign else []:
            values = {place: criterion.value(runs[place]) for place in rivals}
            known = {place: criterion.sign * value for place, value in values.items() if value is not None}
            winner = max(known, key=lambda place: known[place], default=None)
            for place in known:
                best[place] = len(known) > 1 and winner is not None and texts[place] == texts[winner]
        remarks = [criterion.remark(run) for run in runs]
        columns.append([Figure(*figure) for figure in zip(texts, remarks, best, strict=True)])
    return [list(row) for row in zip(*columns, strict=True)]


def _rivals(runs: Sequence[ShownRun], timed: bool) -> list[list[int]]:
    """The places of runs that can be compared: on one stream, for times on one machine too."""
    groups: dict[str, list[int]] = {}
    for place, run in enumerate(runs):
        own = [run.info.get("stream"), run.summary.n_samples, run.info.get("machine") if timed else None]
        groups.setdefault(repr(own), []).append(place)
    return list(groups.values())


def names(runs: Sequence[ShownRun]) -> list[tuple[str, str, str]]:
    """Each run's letter, title and what sets it apart from others of that title."""
    told = []
    for place, run in enumerate(runs):
        alike = [other for other in runs if other.title == run.title]
        apart = [f"{key} {values[alike.index(run)]}" for key, values in differences(alike)] if len(alike) > 1 else []
        told.append((letter(place), run.title, clipped(", ".join(apart), 60)))
    return told
