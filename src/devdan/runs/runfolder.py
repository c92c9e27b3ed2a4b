"""The folder of a run: the names of its files, how they are read and written, and which process holds it.

The checkpoint, and models other than DEVDAN, are pickles: open only folders that you trust.
"""

from __future__ import annotations

import glob
import hashlib
import io
import json
import pickle
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

from devdan.atomic import FileLock, write_atomically
from devdan.evaluation.record import Record
from devdan.fleet.fleet import DEVDANFleet, open_model
from devdan.model.classifier import EvolvingClassifier
from devdan.model.modelfile import ModelFileError
from devdan.streams.reading import Reading

FORMAT = 1  # of the files in the folder
_DIGEST = 32  # bytes of the checksum before the checkpoint
IDENTITY = ("stream", "model", "seed", "chunk", "labels")
_MATCHED = (
    *IDENTITY,
    "options",
    *(field.name for field in fields(Reading)),
    "key",
    "history",
    "time",
    "order",
    "limit",
    "endless",
    "scaled",
    "source",
)


class RunError(ValueError):
    """A folder that cannot be used for a run, or does not contain the expected run."""


class RunFolder:
    """The folder of a run, which need not exist yet.

    >>> folder = RunFolder("runs/none-yet")
    >>> folder.report_path.name, folder.is_finished, folder.settings()
    ('report.html', False, None)
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.settings_path = self.path / "run.json"
        self.records_path = self.path / "records.jsonl"
        self.checkpoint_path = self.path / "checkpoint.pickle"
        self._next_checkpoint_path = self.path / "checkpoint.next.pickle"
        self.summary_path = self.path / "summary.json"
        self.report_path = self.path / "report.html"
        self.model_path = self.path / "model.devdan"
        self.fleet_path = self.path / "model.fleet"
        self.pickled_model_path = self.path / "model.pickle"
        self.mlflow_path = self.path / "mlflow_run_id"  # the id of its MLflow run, if any
        self.tensorboard_path = self.path / "tensorboard"
        self._lock = FileLock(self.path / "lock")

    def __str__(self) -> str:
        return str(self.path)

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def has_summary(self) -> bool:
        """Whether the run has reached the end of its stream."""
        return self.summary_path.exists()

    @property
    def is_finished(self) -> bool:
        """Whether there is nothing left to do, including the report."""
        return self.has_summary and not self.checkpoint_path.exists()

    @property
    def results(self) -> list[Path]:
        """The result files of a finished run."""
        paths = (self.report_path, self.summary_path, self.model_path, self.fleet_path, self.pickled_model_path)
        return [path for path in paths if path.exists()]

    def acquire(self) -> None:
        """Reserve the folder for this process, or raise ``BlockingIOError``; it is created if necessary."""
        self.path.mkdir(parents=True, exist_ok=True)
        self._lock.acquire()

    def release(self) -> None:
        """Leave the folder to others, if this process holds it."""
        self._lock.release(remove=self.is_finished)

    def clear(self) -> None:
        """Remove the files of an earlier run, except its settings."""
        for path in (
            *(self.checkpoint_path, self.summary_path, self.report_path, self.model_path, self.pickled_model_path),
            *(self.records_path, self.mlflow_path, self._next_checkpoint_path),
            *(self.fleet_path.with_name(f"{self.fleet_path.name}{ending}") for ending in ("", "-wal", "-shm")),
        ):
            path.unlink(missing_ok=True)

    def sweep(self) -> None:
        """Remove partial files of a process that was killed."""
        for part in self.path.glob("*.part"):
            part.unlink()

    def settings(self) -> dict[str, Any] | None:
        """The settings of the run, if there is one."""
        try:
            settings = json.loads(self.settings_path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise RunError(f"{self.settings_path} is damaged: {error}; --overwrite starts again") from error
        if not isinstance(settings, dict):
            raise RunError(f"{self.settings_path} is damaged: it holds no object; --overwrite starts again")
        if settings.get("format") != FORMAT:
            raise RunError(
                f"{self.path} holds a run of format {settings.get('format')}, written by devdan "
                f"{settings.get('devdan')}; this version reads format {FORMAT}; --overwrite starts again"
            )
        return settings

    def write_settings(self, settings: dict[str, Any]) -> None:
        _write_json(self.settings_path, {"format": FORMAT, **settings})

    def summary(self) -> dict[str, Any]:
        """The summary of a finished run."""
        try:
            summary: dict[str, Any] = json.loads(self.summary_path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise RunError(f"{self.summary_path} is damaged: {error}; --overwrite starts again") from error
        return summary

    def write_summary(self, summary: dict[str, Any]) -> None:
        _write_json(self.summary_path, summary)

    def records(self, after: int = 0) -> Iterator[Record]:
        """The records so far, without the first ``after``; an incomplete last line is left out."""
        if not self.records_path.exists():
            return
        with self.records_path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                if not line.endswith(b"\n"):
                    return
                if number <= after:
                    continue
                try:
                    yield Record.from_json(line)
                except (ValueError, KeyError, TypeError, AttributeError):
                    raise RunError(f"{self.records_path}, line {number}: not a record") from None

    def write_checkpoint(self, state: Any) -> None:
        """Write everything that is needed to continue from here.

        A fleet is saved in its own file, of which only what has changed is written. After a crash between the two, the
        checkpoint that matches the fleet is used.
        """
        content = io.BytesIO()
        pickler = _Pickler(content)
        pickler.dump(state)
        framed = hashlib.sha256(content.getvalue()).digest() + content.getvalue()
        if pickler.fleet is None:
            write_atomically(self.checkpoint_path, framed)
            return
        write_atomically(self._next_checkpoint_path, framed)
        pickler.fleet.save(self.fleet_path)
        self._next_checkpoint_path.replace(self.checkpoint_path)

    def read_checkpoint(self) -> Any:
        """The latest checkpoint, or None."""
        found = [path for path in (self.checkpoint_path, self._next_checkpoint_path) if path.exists()]
        for path in found:
            content = path.read_bytes()
            if hashlib.sha256(content[_DIGEST:]).digest() != content[:_DIGEST]:
                raise RunError(f"{path} is damaged; --overwrite starts again")
            try:
                return _Unpickler(content[_DIGEST:], self.fleet_path).load()
            except _OtherFleetError:
                continue
        if self.checkpoint_path in found:
            raise RunError(f"{self.fleet_path} is not the fleet of {self.checkpoint_path}; --overwrite starts again")
        return None

    def remove_checkpoint(self) -> None:
        """Remove the checkpoint of a run that is finished."""
        self._next_checkpoint_path.unlink(missing_ok=True)
        self.checkpoint_path.unlink(missing_ok=True)

    def write_model(self, model: Any) -> None:
        """Save the model, a DEVDAN without pickle; a fleet was saved with the latest checkpoint."""
        if isinstance(model, DEVDANFleet):
            return
        if isinstance(model, EvolvingClassifier):
            model.save(self.model_path)
        else:
            write_atomically(self.pickled_model_path, pickle.dumps(model))

    def model(self) -> Any:
        """The model of a finished run."""
        if self.model_path.exists():
            return open_model(self.model_path)
        if self.fleet_path.exists() and self.is_finished:
            return DEVDANFleet.load(self.fleet_path)
        if self.pickled_model_path.exists():
            return pickle.loads(self.pickled_model_path.read_bytes())
        raise RunError(f"there is no model in {self.path}: a run leaves it when it is finished")

    def differences(self, settings: dict[str, Any]) -> list[tuple[str, Any, Any]]:
        """The settings in which this run differs: the name, its value here, and the other value."""
        before, found = self.settings() or {}, []
        for name in _MATCHED:
            theirs, ours = before.get(name), settings.get(name)
            if isinstance(theirs, dict) and isinstance(ours, dict):
                changed = [option for option in {**theirs, **ours} if theirs.get(option) != ours.get(option)]
                found += [(f"option {option}", theirs.get(option), ours.get(option)) for option in changed]
            elif theirs != ours:
                found.append((name, theirs, ours))
        return found


# --- Checkpoints with a fleet ------------------------------------------------------------------------------------


class _OtherFleetError(Exception):
    """The fleet's file does not match the checkpoint."""


class _Pickler(pickle.Pickler):
    """Leaves out a fleet that has learned, which is saved in its own file; the pickle has the number of that save."""

    fleet: DEVDANFleet | None = None

    def persistent_id(self, value: Any) -> int | None:
        """The number of the fleet's next save; None for anything else."""
        if not isinstance(value, DEVDANFleet) or not value.__sklearn_is_fitted__():
            return None
        self.fleet = value
        return value.content().saves.number + 1


class _Unpickler(pickle.Unpickler):
    def __init__(self, content: bytes, fleet_path: Path) -> None:
        super().__init__(io.BytesIO(content))
        self._fleet_path = fleet_path
        self._fleet: DEVDANFleet | None = None

    def persistent_load(self, n_saves: int) -> DEVDANFleet:
        """The fleet of this save."""
        if self._fleet is None:
            try:
                self._fleet = DEVDANFleet.load(self._fleet_path)
            except (FileNotFoundError, ModelFileError) as error:
                raise _OtherFleetError from error
        if self._fleet.content().saves.number != n_saves:
            self._fleet.close()
            raise _OtherFleetError
        return self._fleet


# --- Free paths --------------------------------------------------------------------------------------------------


def free_folder(parent: Path, name: str, settings: dict[str, Any], resume: bool) -> Path:
    """The default folder of a run: a new one or, to resume, that of the latest such run."""
    taken = [path for path in parent.glob(f"{glob.escape(name)}*") if path.is_dir()]
    if resume:
        same = []
        for folder in map(RunFolder, taken):
            try:
                before = folder.settings()
            except RunError:
                continue
            if before is not None and not folder.differences(settings):
                same.append((not folder.is_finished, before.get("started", ""), folder.path))
        if same:
            return max(same)[2]
    return free_path(parent, name)


def free_path(parent: Path, name: str, suffix: str = "") -> Path:
    """A path that does not exist: this name, or the name with -2, -3, …."""
    number, path = 1, parent / f"{name}{suffix}"
    while path.exists():
        number += 1
        path = parent / f"{name}-{number}{suffix}"
    return path


def _write_json(path: Path, value: dict[str, Any]) -> None:
    write_atomically(path, (json.dumps(value, indent=2, allow_nan=False, ensure_ascii=False) + "\n").encode())
