"""What was run, on what, with what."""

from __future__ import annotations

from typing import Any

from devdan.report.run.shown_run import ShownRun
from devdan.report.words import moment, number

Rows = list[tuple[str, str]]


_OF_THE_STREAM = (
    "stream",
    "origin",
    "n_samples",
    "n_features",
    "feature_names",
    "drifts",
    "target",
    "order",
    "limit",
    "scaled",
    "chunk",
    "labels",
)


ELSEWHERE = {
    "options",
    "versions",
    "machine",
    "command",
    "model",
    "seed",
    "started",
    "devdan",
    "source",
    "header",
    "drop",
    "feature_names",
    "drifts",
}
_NAMES = {"drifts": "true drifts at"}
_MOST_LISTED = 12


def settings(run: ShownRun) -> dict[str, Rows]:
    """The settings of a run, by topic; unknown ones are left out."""
    info = run.info
    stream = [(name(key), shown(info[key])) for key in _OF_THE_STREAM if info.get(key) not in (None, [])]
    stream.append(("classes", number(len(run.summary.classes))))
    stream += [(name(key), shown(info[key])) for key in info if key not in {*_OF_THE_STREAM, *ELSEWHERE}]
    model = [(key, shown(info[key])) for key in ("model", "seed") if info.get(key) is not None]
    machine = [("started", moment(info["started"]))] if info.get("started") else []
    machine += [(name(key), shown(value)) for key, value in inner(info, "machine")]
    machine += [(key, shown(value)) for key, value in inner(info, "versions")]
    model += [(key, shown(value)) for key, value in inner(info, "options")]
    return {title: rows for title, rows in (("Stream", stream), ("Model", model), ("Machine", machine)) if rows}


def inner(info: dict[str, Any], group: str) -> list[tuple[str, Any]]:
    inner = info.get(group)
    return list(inner.items()) if isinstance(inner, dict) else []


def name(key: str) -> str:
    return _NAMES.get(key, key.removeprefix("n_").replace("_", " "))


def shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return number(value) if abs(value) >= 10_000 else str(value)
    if isinstance(value, list):
        return ", ".join(map(shown, value[:_MOST_LISTED])) + (", …" if len(value) > _MOST_LISTED else "")
    return "none" if value is None else str(value)
