"""Pages: one for a run, one for runs side by side. Each is a single file that loads nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from devdan.evaluation.record import Phases
from devdan.report import charts, comparison, tables
from devdan.report.render import render
from devdan.report.runs import ShownRun, smooth_width
from devdan.report.words import how_many, moment, number


def page_of_run(run: ShownRun) -> str:
    """Everything about one run."""
    width, points = run.bins.width, len(run.bins)
    smoothed = smooth_width(points)
    phases = [(phase, charts.bias_variance(run, phase)) for phase in Phases._fields]
    return render(
        "run.html",
        run=run,
        subtitle=_subtitle(run),
        progress=_progress(run),
        tiles=tables.tiles(run),
        accuracy=charts.accuracy(run),
        smoothed=number(smoothed * width) if smoothed > 1 else "",
        width=width,
        resolution=f" Each point is the mean of {width:,} chunks." if width > 1 else "",
        banded=charts.has_band(run),
        no_change=charts.no_change_place(run),
        drifts=tables.drifts(run),
        hidden_units=charts.hidden_units(run),
        changes=tables.changes(run),
        phases=[(phase, chart) for phase, chart in phases if chart],
        matrix=tables.matrix(run),
        settings=tables.settings(run),
        points=_points([run]),
    )


def page_of_runs(runs: Sequence[ShownRun]) -> str:
    """Several runs side by side."""
    streams = list(dict.fromkeys(str(run.info.get("stream") or run.name) for run in runs))
    names = comparison.names(runs)
    unfinished = [(name[0], run) for name, run in zip(names, runs, strict=True) if not run.finished]
    commands = [
        (name[0], run.info["command"]) for name, run in zip(names, runs, strict=True) if run.info.get("command")
    ]
    return render(
        "runs.html",
        title=f"{len(runs)} runs on {', '.join(streams)}",
        subtitle=f"Together {how_many(sum(run.summary.n_samples for run in runs), 'sample')}",
        unfinished=[f"{letter}: {_progress(run)}" for letter, run in unfinished],
        names=names,
        criteria=comparison.CRITERIA,
        comparison=comparison.comparison(runs),
        accuracies=charts.accuracies(runs),
        hidden_units=charts.hidden_units_of(runs),
        differences=comparison.differences(runs),
        other_models=len({run.info.get("model") for run in runs}) > 1,
        commands=commands,
        points=_points(runs),
    )


def _subtitle(run: ShownRun) -> str:
    info, summary = run.info, run.summary
    parts = [f"{how_many(summary.n_samples, 'sample')} in {how_many(summary.n_chunks, 'chunk')}"]
    if info.get("labels") not in (None, "all"):
        parts.append(f"labels {info['labels']}")
    if info.get("started"):
        parts.append(f"started {moment(info['started'])}")
    return " · ".join(parts)


def _progress(run: ShownRun) -> str:
    of, done = run.info.get("n_samples"), run.summary.n_samples
    if isinstance(of, int) and of > done:
        return f"It has got through {done:,} of {of:,} samples ({100 * done / of:.0f} %)."
    return f"It has got through {how_many(done, 'sample')}."


class Series(NamedTuple):
    """What a run has at each of its points, and the charts whose crosshair shows it."""

    charts: str
    name: str
    digits: int
    unit: str
    values: list[float | None]


def _points(runs: Sequence[ShownRun]) -> dict[str, Any]:
    """What the crosshair shows: numbers, and the runs' letters."""
    shown = [_series(run) if len(runs) == 1 else _series(run)[1:3] for run in runs]
    kept = [n for n, _ in enumerate(shown[0]) if any(v is not None for own in shown for v in own[n].values)]
    return {
        "end": max(1, *(run.summary.n_samples for run in runs)),
        "series": [dict(zip(Series._fields[:-1], shown[0][n], strict=False)) for n in kept],
        "runs": [
            {
                "name": charts.letter(place),
                "ends": [bin.end for bin in run.bins],
                "values": [own[n].values for n in kept],
            }
            for place, (run, own) in enumerate(zip(runs, shown, strict=True))
        ],
    }


def _series(run: ShownRun) -> list[Series]:
    def share(name: str, shares: Iterable[float | None]) -> Series:
        return Series("main", name, 1, " %", [None if v is None else round(100 * v, 2) for v in shares])

    def counted(name: str, pairs: Iterable[Phases | None]) -> Series:
        return Series("main", name, 0, "", [None if pair is None else int(pair.total) for pair in pairs])

    def running(phase: str, name: str, pairs: Iterable[Phases | None]) -> Series:
        known = (None if pair is None else pair.of(phase) for pair in pairs)
        values = [None if value is None else round(value, 5) for value in known]
        return Series(phase, name, 4, "", values)

    bins = run.bins
    found = [
        share("accuracy", (bin.accuracy for bin in bins)),
        share("moving mean", charts.smooth_accuracy(bins)),
        Series("main", run.units, 0, "", [bin.n_hidden for bin in bins]),
        counted("growths", (bin.growths for bin in bins)),
        counted("prunings", (bin.prunings for bin in bins)),
        counted("drifts", (bin.drifts for bin in bins)),
    ]
    for phase in Phases._fields:
        found.append(running(phase, "bias²", (bin.bias2 for bin in bins)))
        found.append(running(phase, "variance", (bin.variance for bin in bins)))
    return found
