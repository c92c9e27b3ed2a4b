"""Growths, prunings and drifts in words: what happened, and why."""

from __future__ import annotations

from typing import NamedTuple

from devdan.model.state import Event
from devdan.report.run.shown_run import ShownRun
from devdan.report.words import DRIFTS


class EventRow(NamedTuple):
    """One event."""

    sample: str
    what: str
    why: str


def event_rows(run: ShownRun) -> list[EventRow]:
    """The latest first; none of runs from before causes were kept."""
    many = any(event.network for event in run.events)
    told = [EventRow(f"{event.sample:,}", _what(event, many), event.why) for event in reversed(run.events)]
    return told if any(row.why for row in told) else []


def _what(event: Event, many: bool) -> str:
    where = f" in network {event.network + 1}" if many else ""
    if event.kind == "drift":
        return f"{DRIFTS[event.phase]} drift{where}"
    return f"{event.kind} to {event.n_hidden:,}{where}, {event.phase} phase"
