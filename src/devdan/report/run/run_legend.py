"""What the marks in the charts of a run stand for, and how many there are."""

from __future__ import annotations

from devdan.report.drawing.words import DRIFTS, how_many
from devdan.report.run.shown_run import ShownRun


def changes(run: ShownRun) -> list[tuple[str, str, str]]:
    """Kind, phase and total number of growths and prunings."""
    totals = (("growth", run.summary.growths), ("pruning", run.summary.prunings))
    return [
        (kind, phase, how_many(n, kind))
        for kind, phases in totals
        for phase, n in (phases._asdict() if phases else {}).items()
    ]


def drifts(run: ShownRun) -> list[tuple[str, str]]:
    """Phase and number of drifts it has signalled, if any."""
    counted = run.summary.drifts._asdict() if run.summary.drifts else {}
    return [(phase, how_many(n, f"{DRIFTS[phase]} drift")) for phase, n in counted.items() if n]
