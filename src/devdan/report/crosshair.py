"""The figures that the crosshair shows at a sample, for the script of a page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from devdan.evaluation.record import Phases
from devdan.report.bins import smooth_accuracy, smooth_balance, smooth_importance, smooth_recall
from devdan.report.classes import charted
from devdan.report.run_charts import column_name, strongest
from devdan.report.shown_run import ShownRun
from devdan.report.words import clipped, letter

Ends = list[int]


class Series(NamedTuple):
    """The values of a run at each point, and the charts whose crosshair shows them."""

    charts: str
    name: str
    digits: int
    suffix: str
    values: list[float | None]


def points(runs: Sequence[ShownRun]) -> dict[str, Any]:
    """The values shown by the crosshair, by the charts that show them, and the last sample of the longest run."""
    ends: list[Ends] = []

    def place(of: Ends) -> int:
        """Many series have the same points, which are written once."""
        if of not in ends:
            ends.append(of)
        return ends.index(of)

    charts: dict[str, list[dict[str, Any]]] = {}
    found = [list(_all_series(run)) if len(runs) == 1 else _compared(run) for run in runs]
    for n, own in enumerate(found):
        for k, (points_at, series) in enumerate(own):
            if not any(_is_known(other[k][1]) for other in found):
                continue
            group = charts.setdefault(series.charts, [])
            if not group or group[-1]["run"] != letter(n):
                group.append({"run": letter(n), "ends": place(points_at), "series": []})
            group[-1]["series"].append(dict(zip(Series._fields[1:], series[1:], strict=True)))
    return {"end": max(1, *(run.summary.n_samples for run in runs)), "ends": ends, "charts": charts}


def _is_known(series: Series) -> bool:
    return any(value is not None for value in series.values)


def _compared(run: ShownRun) -> list[tuple[Ends, Series]]:
    """Of runs side by side, only what their charts have in common."""
    ends = [bin.end for bin in run.bins]
    return [(ends, series) for series in _series(run) if series.name in ("moving mean", run.units)]


def _all_series(run: ShownRun) -> Iterator[tuple[Ends, Series]]:
    ends = [bin.end for bin in run.bins]
    yield from ((ends, series) for series in _series(run))
    spreads = run.keys.spreads
    for place, name in ((2, "median key"), (0, "a tenth is below"), (4, "a tenth is above")):
        yield [point.end for point in spreads], _percentages("keys", name, (point.levels[place] for point in spreads))
    classes, counts = charted(run), run.counts
    for chart, of in (("recall", smooth_recall), ("balance", smooth_balance)):
        for c in classes:
            name = clipped(run.summary.classes[c])
            yield [count.end for count in counts], _percentages(chart, name, of(counts, c))
    places = [point.end for point in run.importances]
    for column in strongest(run):
        importance = smooth_importance(run.importances, column)
        yield places, _percentages("columns", column_name(run, column), importance)


def _percentages(chart: str, name: str, shares: Iterable[float | None]) -> Series:
    return Series(chart, name, 1, " %", [None if v is None else round(100 * v, 1) for v in shares])


def _series(run: ShownRun) -> list[Series]:
    def counted(name: str, pairs: Iterable[Phases | None]) -> Series:
        return Series("main", name, 0, "", [None if pair is None else int(pair.total) for pair in pairs])

    def running(phase: str, name: str, pairs: Iterable[Phases | None]) -> Series:
        known = (None if pair is None else pair.of(phase) for pair in pairs)
        return Series(phase, name, 4, "", [None if value is None else round(value, 4) for value in known])

    bins = run.bins
    found = [
        _percentages("main", "accuracy", (bin.accuracy for bin in bins)),
        _percentages("main", "moving mean", smooth_accuracy(bins)),
        Series("main", run.units, 0, "", [bin.n_hidden for bin in bins]),
        counted("growths", (bin.growths for bin in bins)),
        counted("prunings", (bin.prunings for bin in bins)),
        counted("drifts", (bin.drifts for bin in bins)),
    ]
    for phase in Phases._fields:
        found.append(running(phase, "bias²", (bin.bias2 for bin in bins)))
        found.append(running(phase, "variance", (bin.variance for bin in bins)))
    return found
