"""What the crosshair in the charts shows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from devdan.evaluation.record import Phases
from devdan.report.drawing.words import letter
from devdan.report.run.bins import smooth_accuracy
from devdan.report.run.shown_run import ShownRun


class Series(NamedTuple):
    """The values of a run at each point, and the charts whose crosshair shows them."""

    charts: str
    name: str
    digits: int
    unit: str
    values: list[float | None]


def points(runs: Sequence[ShownRun]) -> dict[str, Any]:
    """The values shown by the crosshair, and the runs' letters."""
    shown = [_series(run) if len(runs) == 1 else _series(run)[1:3] for run in runs]
    kept = [n for n, _ in enumerate(shown[0]) if any(v is not None for own in shown for v in own[n].values)]
    return {
        "end": max(1, *(run.summary.n_samples for run in runs)),
        "series": [dict(zip(Series._fields[:-1], shown[0][n], strict=False)) for n in kept],
        "runs": [
            {
                "name": letter(place),
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
        share("moving mean", smooth_accuracy(bins)),
        Series("main", run.units, 0, "", [bin.n_hidden for bin in bins]),
        counted("growths", (bin.growths for bin in bins)),
        counted("prunings", (bin.prunings for bin in bins)),
        counted("drifts", (bin.drifts for bin in bins)),
    ]
    for phase in Phases._fields:
        found.append(running(phase, "bias²", (bin.bias2 for bin in bins)))
        found.append(running(phase, "variance", (bin.variance for bin in bins)))
    return found
