"""The recall of each class, run by run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from devdan.report.run.confusion_matrix import by_name
from devdan.report.run.shown_run import ShownRun
from devdan.report.words import NOTHING, clipped

MOST_ROWS = 100


class RecallRow(NamedTuple):
    """A class: its recall in each run, in percent, and which are the best."""

    name: str
    texts: list[str]
    best: list[bool]
    gap: float


def recalls(runs: Sequence[ShownRun]) -> list[RecallRow]:
    """Every class of the first run's stream; of many, those first on which the runs differ most."""
    stream = runs[0].info.get("stream")
    known = [
        {str(c): run.summary.confusion.recall(n) for n, c in enumerate(run.summary.classes)}
        if run.info.get("stream") == stream
        else {}
        for run in runs
    ]
    names = list(dict.fromkeys(name for own in known for name in own))
    rows = []
    for name in (names[k] for k in by_name(range(len(names)), names)):
        values = [own.get(name) for own in known]
        texts = [NOTHING if value is None else f"{100 * value:.1f}" for value in values]
        there = [value for value in values if value is not None]
        if there:
            top = f"{100 * max(there):.1f}"
            rows.append(
                RecallRow(clipped(name), texts, [len(there) > 1 and t == top for t in texts], max(there) - min(there))
            )
    return rows if len(rows) <= MOST_ROWS else sorted(rows, key=lambda row: -row.gap)[:MOST_ROWS]
