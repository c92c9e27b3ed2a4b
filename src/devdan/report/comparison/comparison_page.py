"""The page of runs side by side."""

from __future__ import annotations

from collections.abc import Sequence

from devdan.report.comparison import comparison_charts as charts
from devdan.report.comparison import comparison_table as comparison
from devdan.report.comparison.comparison_classes import recalls
from devdan.report.comparison.comparison_contrasts import N_PARTS, contrasts
from devdan.report.render import render
from devdan.report.run.crosshair import points
from devdan.report.run.shown_run import ShownRun
from devdan.report.words import how_many

_FIRST_ROWS = 12  # of classes; the rest is folded away


def page_of_runs(runs: Sequence[ShownRun]) -> str:
    """The comparison of several runs."""
    streams = list(dict.fromkeys(str(run.info.get("stream") or run.name) for run in runs))
    names = comparison.names(runs)
    unfinished = [(name[0], run) for name, run in zip(names, runs, strict=True) if not run.finished]
    commands = [
        (name[0], run.info["command"]) for name, run in zip(names, runs, strict=True) if run.info.get("command")
    ]
    rows = recalls(runs)
    return render(
        "comparison.html",
        title=f"{len(runs)} runs on {', '.join(streams)}",
        subtitle=f"In total {how_many(sum(run.summary.n_samples for run in runs), 'sample')}",
        unfinished=[f"{letter}: {run.progress}" for letter, run in unfinished],
        names=names,
        heads=comparison.heads(),
        comparison=comparison.comparison(runs),
        accuracies=charts.accuracies(runs, [_named(*name) for name in names]),
        hidden_units=charts.hidden_units(runs),
        contrasts=contrasts(runs),
        n_parts=N_PARTS,
        recalls=rows[:_FIRST_ROWS],
        other_recalls=rows[_FIRST_ROWS:],
        differences=comparison.differences(runs),
        other_models=len({run.info.get("model") for run in runs}) > 1,
        commands=commands,
        points=points(runs),
    )


def _named(letter: str, name: str, apart: str) -> str:
    return f"{letter}: {name}, {apart}" if apart else f"{letter}: {name}"
