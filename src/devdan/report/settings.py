"""The settings of runs: what was run, on what, with what; and in what runs differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from devdan.report.shown_run import ShownRun
from devdan.report.words import NOTHING, moment, number

_OF_THE_STREAM = (
    *("stream", "origin", "n_samples", "n_features", "feature_names", "drifts", "target", "order", "limit", "scaled"),
    *("chunk", "labels"),
)
_ELSEWHERE = {  # on the page, or of no interest
    *("options", "versions", "machine", "command", "model", "seed", "started", "devdan", "source", "header", "drop"),
    *("feature_names", "drifts"),
}
_NAMES = {"drifts": "true drifts at"}
_MOST_LISTED = 12


def settings(run: ShownRun) -> dict[str, list[tuple[str, str]]]:
    """The settings of a run, by topic; unknown ones are left out."""
    info = run.info
    stream = [(_name(key), _text(info[key])) for key in _OF_THE_STREAM if info.get(key) not in (None, [])]
    stream.append(("classes", number(len(run.summary.classes))))
    stream += [(_name(key), _text(info[key])) for key in info if key not in {*_OF_THE_STREAM, *_ELSEWHERE}]
    model = [(key, _text(info[key])) for key in ("model", "seed") if info.get(key) is not None]
    model += _group(run, "options")
    machine = [("started", moment(info["started"]))] if info.get("started") else []
    machine += [(_name(key), value) for key, value in _group(run, "machine")] + _group(run, "versions")
    return {title: rows for title, rows in (("Stream", stream), ("Model", model), ("Machine", machine)) if rows}


def options(run: ShownRun) -> dict[str, Any]:
    """The options of the model."""
    return run.info.get("options") or {}


def differences(runs: Sequence[ShownRun]) -> list[tuple[str, list[str]]]:
    """The settings that differ between runs, each with its values.

    An option that only some models have counts only if these models differ in it.
    """
    of_models = {key for run in runs for key in options(run)}
    flat = [_flat(run) for run in runs]
    found = []
    for key in dict.fromkeys(key for own in flat for key in own):
        having = {own.get("model") for own in flat if key in own}
        compared = [own for own in flat if key not in of_models or own.get("model") in having]
        if len({own.get(key) for own in compared}) > 1:
            found.append((key, [own.get(key, NOTHING) for own in flat]))
    return found


def _flat(run: ShownRun) -> dict[str, str]:
    """All settings of a run, by name."""
    own = {_name(key): _text(value) for key, value in run.info.items() if key not in _ELSEWHERE and value is not None}
    own |= {key: _text(run.info[key]) for key in ("model", "seed") if run.info.get(key) is not None}
    return own | {key: value for group in ("options", "machine", "versions") for key, value in _group(run, group)}


def _group(run: ShownRun, name: str) -> list[tuple[str, str]]:
    return [(key, _text(value)) for key, value in (run.info.get(name) or {}).items()]


def _name(key: str) -> str:
    return _NAMES.get(key, key.removeprefix("n_").replace("_", " "))


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return number(value) if abs(value) >= 10_000 else str(value)
    if isinstance(value, list):
        return ", ".join(map(_text, value[:_MOST_LISTED])) + (", …" if len(value) > _MOST_LISTED else "")
    return "none" if value is None else str(value)
