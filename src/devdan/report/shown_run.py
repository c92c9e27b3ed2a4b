"""A run as it is shown: what was run, what it came to, and a bounded number of points to draw."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from devdan.evaluation.measures import class_shares, units_name
from devdan.evaluation.record import KindChange, Record, Summary
from devdan.kernel.state import Event
from devdan.model.explain import Unit
from devdan.report.bins import (
    MOST_CLASS_POINTS,
    MOST_COLUMN_POINTS,
    MOST_PARTS,
    Bin,
    BinnedConfusion,
    Bins,
    ColumnImportances,
    RunPart,
)
from devdan.report.key_charts import KeyFigures
from devdan.report.words import NOTHING, how_many, moment, number
from devdan.runs.runfolder import RunError, RunFolder

MOST_EVENTS = 200  # that are told, the latest of them
_BEGINNING = 200  # chunks at the start of which every one is kept, however long the run is


class ReportError(ValueError):
    """A run that cannot be shown; the message is one line."""


@dataclass(eq=False)
class ShownRun:
    """The data of one run that the page shows."""

    name: str  # of its folder
    info: dict[str, Any]
    in_parts: bool = False  # they are kept, to measure some of them together
    finished: bool = False
    summary: Summary = field(default_factory=Summary)
    bins: Bins[Bin] = field(default_factory=Bins)
    beginning: list[Bin] = field(default_factory=list)  # the first chunks, each of them
    counts: Bins[BinnedConfusion] = field(default_factory=lambda: Bins(most=MOST_CLASS_POINTS))
    events: deque[Event | KindChange] = field(default_factory=lambda: deque(maxlen=MOST_EVENTS))
    n_events: int = 0
    importances: Bins[ColumnImportances] = field(default_factory=lambda: Bins(most=MOST_COLUMN_POINTS))
    parts: Bins[RunPart] = field(default_factory=lambda: Bins(most=MOST_PARTS))
    keys: KeyFigures = field(default_factory=KeyFigures)  # none unless the model is a fleet
    last: Record | None = None
    columns: list[tuple[str, str]] = field(default_factory=list)  # what became of each, if they have names
    histories: dict[str, str] = field(default_factory=dict)  # what columns are in words, that tell what was before
    notes: list[str] = field(default_factory=list)  # about columns
    hidden: list[tuple[int, int, tuple[str, ...]]] = field(default_factory=list)  # network, unit, what it stands for

    @property
    def title(self) -> str:
        return " · ".join(str(self.info[key]) for key in ("stream", "model") if self.info.get(key)) or self.name

    @property
    def units(self) -> str:
        """What the model's units are called."""
        return units_name(self.info.get("model"))

    @property
    def n_replaying(self) -> int:
        """The hidden units of the network that replays samples and does not evolve; 0 if there is none."""
        return (self.last.n_replaying or 0) if self.last else 0

    @property
    def figures(self) -> dict[str, Any]:
        """What it has come to, by the measures' keys."""
        return self.summary.figures()

    @property
    def true_drifts(self) -> list[int]:
        """Where the stream is known to have drifted so far."""
        return [sample for sample in self.info.get("drifts") or () if sample < self.summary.n_samples]

    @property
    def progress(self) -> str:
        """How far an unfinished run has got."""
        of, done = self.info.get("n_samples"), self.summary.n_samples
        if isinstance(of, int) and of > done:
            return f"It has processed {done:,} of {of:,} samples ({100 * done / of:.0f} %)."
        return f"It has processed {how_many(done, 'sample')}."

    def add(self, record: Record) -> None:
        self.summary.add(record)
        chunk = Bin.of(record)
        self.bins.add(chunk)
        if self.in_parts:
            self.parts.add(RunPart.of(record))
        if len(self.beginning) < _BEGINNING:
            self.beginning.append(chunk)
        self.counts.add(BinnedConfusion.of(record))
        self.events += record.events or ()
        self.events += record.kind_changes or ()
        self.n_events += len(record.events or ()) + len(record.kind_changes or ())
        if record.importances is not None:
            self.importances.add(ColumnImportances(record.start + record.n_samples, 1, record.importances))
        if record.keys is not None:
            self.keys.add(record)
        self.last = record


class RunReader:
    """Reads the run in a folder, finished or not, and what is added to it during the run.

    Memory does not grow with the number of records, but with that of the keys and their drifts, if there are any.
    """

    def __init__(self, folder: Path, in_parts: bool = False) -> None:
        self._run = RunFolder(folder)
        if not folder.is_dir():
            raise ReportError(f"no such folder: {folder}")
        try:
            info = self._run.settings()
        except RunError as error:
            raise ReportError(str(error)) from None
        if info is None:
            raise ReportError(f"no run in {folder}: it has no {self._run.settings_path.name}")
        self._shown = ShownRun(folder.resolve().name, info, in_parts)

    def so_far(self) -> ShownRun:
        """The run with all records there are by now."""
        run, shown = self._run, self._shown
        n_before = shown.summary.n_chunks
        try:
            for number, record in enumerate(run.records(n_before), start=n_before + 1):
                try:
                    shown.add(record)
                except (TypeError, ValueError) as error:
                    raise ReportError(f"{run.records_path}, line {number}: not a record ({error})") from None
        except RunError as error:
            raise ReportError(str(error)) from None
        shown.finished = run.has_summary
        if shown.finished:
            self._add_summary()
        return shown

    def _add_summary(self) -> None:
        """What became of each column, notes and hidden units, for models that tell them."""
        try:
            shown, summary = self._shown, self._run.summary()
            shown.histories = {str(name): str(said) for name, said in summary.get("histories", {}).items()}
            shown.columns = [(str(column["name"]), str(column["became"])) for column in summary.get("columns", [])]
            shown.notes = [str(note) for note in summary.get("notes", [])]
            units = [Unit(**unit) for unit in summary.get("units", [])]
            shown.hidden = [(unit.network, unit.unit, unit.in_words()) for unit in units]
        except (RunError, TypeError, KeyError, ValueError, AttributeError):
            raise ReportError(f"{self._run.summary_path} is damaged") from None


def read_run(folder: Path, in_parts: bool = False) -> ShownRun:
    """The run in a folder, finished or not; an error if there is nothing of it to show yet."""
    shown = RunReader(folder, in_parts).so_far()
    if shown.last is None:
        raise ReportError(f"no records yet in {folder}")
    return shown


# --- The settings of runs ----------------------------------------------------------------------------------------


_OF_THE_STREAM = (
    *("stream", "origin", "n_samples", "n_features", "feature_names", "drifts", "target", "sep", "encoding", "decimal"),
    *("order", "limit", "scaled", "chunk", "labels"),
)
_ELSEWHERE = {  # on the page, or of no interest
    *("options", "versions", "machine", "command", "model", "seed", "started", "devdan", "source"),
    *("feature_names", "drifts", "header", "drop", "nominal", "numeric", "dates", "as_text"),
}
_NAMES = {"drifts": "true drifts at"}
_MOST_LISTED = 12


def settings(run: ShownRun) -> dict[str, list[tuple[str, str]]]:
    """The settings of a run, by topic; unknown ones are left out."""
    info = run.info
    stream = [(_name(key), _text(info[key])) for key in _OF_THE_STREAM if info.get(key) not in (None, [])]
    n_classes, shares = number(len(run.summary.classes)), class_shares(run.figures)
    stream.append(("classes", f"{n_classes}: {shares}" if shares else n_classes))
    stream += [(_name(key), _text(info[key])) for key in info if key not in {*_OF_THE_STREAM, *_ELSEWHERE}]
    model = [(key, _text(info[key])) for key in ("model", "seed") if info.get(key) is not None]
    model += _group(run, "options")
    machine = [("started", moment(info["started"]))] if info.get("started") else []
    machine += [(_name(key), value) for key, value in _group(run, "machine")] + _group(run, "versions")
    return {title: rows for title, rows in (("Stream", stream), ("Model", model), ("Machine", machine)) if rows}


def options(run: ShownRun) -> dict[str, Any]:
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
