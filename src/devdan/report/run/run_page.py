"""The page of a run: a single file that loads nothing."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

from devdan.evaluation.record import Phases
from devdan.model.units import HEAD
from devdan.report.render import render
from devdan.report.run import column_charts
from devdan.report.run import run_charts as charts
from devdan.report.run.class_charts import MOST_CLASSES, balance, recall
from devdan.report.run.class_table import FEW, class_rows, confusions
from devdan.report.run.confusion_matrix import matrix
from devdan.report.run.crosshair import points
from devdan.report.run.event_rows import event_rows
from devdan.report.run.key_charts import by_samples, drifting, spread
from devdan.report.run.key_figures import FEW as FEW_ROWS
from devdan.report.run.key_figures import RECENT
from devdan.report.run.key_table import extremes, searchable
from devdan.report.run.reliability_chart import reliability
from devdan.report.run.run_settings import settings
from devdan.report.run.run_tiles import tiles
from devdan.report.run.run_words import about_accuracy, about_units
from devdan.report.run.shown_run import ShownRun
from devdan.report.words import how_many, moment, percent

_MOST_COLUMNS = 200
_MOST_ALIKE, _MOST_NAMES = 6, 60
_FIRST_ROWS = 10  # of classes; the rest is folded away
_FIRST_UNITS = 10  # likewise
_NEXT_TO_ANOTHER = 4  # classes up to which the matrix leaves room beside it


def page_of_run(run: ShownRun, *, goes_on: bool = False) -> str:
    """The report of one run; while it goes on, the page renews itself."""
    width = run.bins.width
    phases = [(phase, charts.bias_variance(run, phase)) for phase in Phases._fields]
    accuracy, units, counted, rows = charts.accuracy(run), charts.hidden_units(run), matrix(run), class_rows(run)
    no_change, columns = charts.no_change_place(run), _columns(run)
    return render(
        "run.html",
        run=run,
        subtitle=_subtitle(run),
        goes_on=goes_on,
        written=datetime.now(timezone.utc),
        tiles=tiles(run),
        accuracy=accuracy,
        about_accuracy="" if accuracy else about_accuracy(run),
        resolution=f" Each point is the mean of {width:,} chunks." if width > 1 else "",
        no_change=f"{percent(run.summary.no_change)} overall, {no_change}" if no_change.endswith("chart") else "",
        hidden_units=units,
        beginning=charts.beginning(run) if units else None,
        about_units="" if units else about_units(run),
        phases=[(phase, chart) for phase, chart in phases if chart],
        classes=[chart for chart in (recall(run), balance(run)) if chart],
        most_classes=MOST_CLASSES,
        matrix=counted,
        is_narrow=counted is not None and len(counted.names) <= _NEXT_TO_ANOTHER,
        reliability=reliability(run),
        worst=rows[:_FIRST_ROWS],
        other_classes=rows[_FIRST_ROWS:],
        few=FEW,
        confusions=confusions(run),
        events=event_rows(run),
        importances=column_charts.importances(run),
        n_importances=len(run.importances[0].shares) if run.importances else 0,
        strongest=column_charts.MOST_COLUMNS,
        hidden=run.hidden[:_FIRST_UNITS],
        other_hidden=run.hidden[_FIRST_UNITS:],
        head_of_units=HEAD,
        columns=columns[:_MOST_COLUMNS],
        more_columns=max(len(columns) - _MOST_COLUMNS, 0),
        settings=settings(run),
        keys=_keys(run) if len(run.keys) > 0 else None,
        points=points([run]),
    )


def _keys(run: ShownRun) -> dict[str, Any]:
    """What the page shows of the keys of a fleet."""
    keys = run.keys
    worst, best = extremes(keys)
    return {
        "n_keys": len(keys),
        "n_judged": int(keys.is_judged.sum()),
        "few": FEW_ROWS,
        "recent": RECENT,
        "spread": spread(run),
        "worst": worst,
        "best": best,
        "by_samples": by_samples(keys),
        "drifting": drifting(run),
        "n_drifting": int((keys.real_drifts + keys.virtual_drifts > 0).sum()),
        "rows": searchable(keys),
    }


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


def _subtitle(run: ShownRun) -> str:
    info, summary = run.info, run.summary
    parts = [f"{how_many(summary.n_samples, 'sample')} in {how_many(summary.n_chunks, 'chunk')}"]
    if info.get("labels") not in (None, "all"):
        parts.append(f"labels {info['labels']}")
    if info.get("started"):
        parts.append(f"started {moment(info['started'])}")
    return " · ".join(parts)
