"""The page of a run: a single file that loads nothing."""

from __future__ import annotations

from devdan.evaluation.record import Phases
from devdan.report.drawing.render import render
from devdan.report.drawing.words import how_many, moment, number
from devdan.report.run import run_charts as charts
from devdan.report.run import run_legend
from devdan.report.run.bins import smooth_width
from devdan.report.run.confusion_matrix import matrix
from devdan.report.run.crosshair import points
from devdan.report.run.run_settings import settings
from devdan.report.run.run_tiles import tiles
from devdan.report.run.shown_run import ShownRun

_MOST_COLUMNS = 200


def page_of_run(run: ShownRun) -> str:
    """The report of one run."""
    width = run.bins.width
    smoothed = smooth_width(len(run.bins))
    phases = [(phase, charts.bias_variance(run, phase)) for phase in Phases._fields]
    return render(
        "run.html",
        run=run,
        subtitle=_subtitle(run),
        progress=run.progress,
        tiles=tiles(run),
        accuracy=charts.accuracy(run),
        smoothed=number(smoothed * width) if smoothed > 1 else "",
        width=width,
        resolution=f" Each point is the mean of {width:,} chunks." if width > 1 else "",
        banded=charts.has_band(run),
        no_change=charts.no_change_place(run),
        drifts=run_legend.drifts(run),
        hidden_units=charts.hidden_units(run),
        changes=run_legend.changes(run),
        phases=[(phase, chart) for phase, chart in phases if chart],
        matrix=matrix(run),
        columns=run.columns[:_MOST_COLUMNS],
        more_columns=max(len(run.columns) - _MOST_COLUMNS, 0),
        settings=settings(run),
        points=points([run]),
    )


def _subtitle(run: ShownRun) -> str:
    info, summary = run.info, run.summary
    parts = [f"{how_many(summary.n_samples, 'sample')} in {how_many(summary.n_chunks, 'chunk')}"]
    if info.get("labels") not in (None, "all"):
        parts.append(f"labels {info['labels']}")
    if info.get("started"):
        parts.append(f"started {moment(info['started'])}")
    return " · ".join(parts)
