"""A run in its own folder: records as they come, checkpoints, and at the end the model, a summary and a report.

After a crash at any moment, the run continues from its latest checkpoint and ends with the same records and the same
model as without the crash. With a model that cannot be pickled there are no checkpoints, and the run starts again.
"""

from __future__ import annotations

import os
import pickle
import re
import time
import warnings
from collections.abc import Callable, Generator, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from devdan.evaluation.loop import Evaluation
from devdan.evaluation.record import Record, Summary
from devdan.fleet.fleet import DEVDANFleet
from devdan.model.classifier import EvolvingClassifier
from devdan.model.estimator import TableEstimator
from devdan.runs.runfolder import IDENTITY, RunError, RunFolder
from devdan.streams import Stream, StreamError

_REFRESHED = 2.0  # seconds after which the report of a run in progress is written again
_COST = 0.05  # the share of the time that this may take


class Page(Protocol):
    """The report of a run, which can be written again as the run proceeds."""

    def write(self, *, goes_on: bool) -> None:
        """Write the report of the records so far; ``goes_on``: the run is in progress."""


class RunJob:
    """An evaluation stored in a folder: iterate over its :meth:`records`, then :meth:`finish` it. A context manager.

    ``settings`` describe the run, for the summary and the report, and to identify it when resuming. ``page`` makes the
    report of a folder, at a path, such as :class:`devdan.report.RunReport`; without it, there is none.
    """

    def __init__(
        self,
        folder: Path,
        stream: Stream,
        evaluation: Evaluation,
        settings: dict[str, Any],
        *,
        resume: bool = False,
        overwrite: bool = False,
        every: float = 5.0,
        page: Callable[[Path, Path], Page] | None = None,
    ) -> None:
        self.folder = RunFolder(folder)
        self.stream, self.evaluation, self.settings = stream, evaluation, settings
        self.summary = Summary()
        self.every = every
        self.total_seconds = 0.0  # seconds of the evaluation, including reading and recording
        self._n_bytes = 0
        self.n_safe = 0  # samples up to the latest checkpoint
        self._has_warned = False  # that there are no checkpoints
        self._make_page = page
        self._page: Page | None = None
        try:
            self._prepare(resume, overwrite)
        except BaseException:
            self.close()
            raise

    def past(self) -> Iterator[Record]:
        """The records so far."""
        return islice(self.folder.records(), None if self.folder.is_finished else self.evaluation.n_chunks)

    def records(self) -> Generator[Record, None, None]:
        """Evaluate, from the current position; nothing is lost if the iteration ends between two chunks.

        The report exists from the start, and is refreshed during the run.
        """
        path = self.folder.records_path
        with open(path, "r+b" if path.exists() else "wb", buffering=1 << 16) as file:
            file.truncate(self._n_bytes)
            file.seek(self._n_bytes)
            before = self.total_seconds
            try:
                due = self._refresh_page()
                begin = latest = time.monotonic()
                for record in self.evaluation.over(self.stream):
                    file.write(record.to_json().encode() + b"\n")
                    self.summary.add(record)
                    now = time.monotonic()
                    self.total_seconds = before + now - begin
                    if now - latest > self.every:
                        self._checkpoint(file)
                        latest = time.monotonic()
                    if now > due:
                        file.flush()
                        due = self._refresh_page()
                    yield record
            except BaseException as error:
                if isinstance(error, (GeneratorExit, StreamError)):
                    self._checkpoint(file)
                if not isinstance(error, OSError):  # after which nothing can be written
                    self._write_page(goes_on=False)
                raise
            self._checkpoint(file)
        if self.summary.n_chunks == 0:
            self._write_page(goes_on=False)
            raise StreamError(f"{self.stream.origin or self.stream.name} has no samples")

    def finish(self) -> None:
        """Save the model, the summary and the report."""
        try:
            self.folder.write_model(self.evaluation.model)
        except pickle.PicklingError as error:
            self._warn(error)
        result = {name: self.settings[name] for name in IDENTITY} | {"target": self.settings.get("target")}
        result |= self.summary.figures()
        model = self.evaluation.model
        if isinstance(model, TableEstimator) and (described := model.column_records()):
            result |= {"columns": described, "notes": model.encoding_.notes}
        if self.evaluation.histories is not None:
            result["notes"] = [*result.get("notes", []), *self.evaluation.histories.notes_]
            result["histories"] = self.evaluation.histories.words_
        if isinstance(model, EvolvingClassifier):
            result |= model.describe(self.stream.feature_names)
        result |= {"read_seconds": self.evaluation.read_seconds, "total_seconds": self.total_seconds}
        self.folder.write_summary(result)
        self._close_fleet()
        self._write_page(goes_on=False)
        self.folder.remove_checkpoint()

    def close(self) -> None:
        """Release the folder."""
        self._close_fleet()
        self.folder.release()

    def _close_fleet(self) -> None:
        """Close the store of a fleet, so that all of it is in one file, which others may read or copy."""
        if isinstance(self.evaluation.model, DEVDANFleet):
            self.evaluation.model.close()

    def __enter__(self) -> RunJob:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _refresh_page(self) -> float:
        """Write the report of a run in progress; returns when to do it next, so that it costs next to nothing."""
        begin = time.monotonic()
        self._write_page(goes_on=True)
        now = time.monotonic()
        return now + max(_REFRESHED, (now - begin) / _COST)

    def _write_page(self, *, goes_on: bool) -> None:
        if self._page is None and self._make_page is not None:
            self._page = self._make_page(self.folder.path, self.folder.report_path)
        if self._page is not None:
            self._page.write(goes_on=goes_on)

    def _prepare(self, resume: bool, overwrite: bool) -> None:
        """Check the state of the folder; existing files are removed only if the user asks for it."""
        folder = self.folder
        try:
            folder.acquire()
            folder.sweep()
            if not overwrite and folder.settings() is not None:
                if resume:
                    self._resume()
                    return
                state = "a finished" if folder.is_finished else "an unfinished"
                way = "" if folder.is_finished else "--resume continues it, "
                raise RunError(
                    f"{folder} holds {state} run: {way}--overwrite starts again, --out selects another folder"
                )
            folder.clear()
            folder.write_settings(self.settings)
        except BlockingIOError:
            raise RunError(
                f"{folder} is in use by another run; wait for it, or choose another folder with --out"
            ) from None
        except OSError as error:
            raise RunError(f"{folder} cannot be used for the run: {error.strerror or error}") from error

    def _resume(self) -> None:
        begun_by = str((self.folder.settings() or {}).get("devdan"))
        if _release(begun_by) > _release(self.settings["devdan"]):
            raise RunError(
                f"{self.folder} was begun by devdan {begun_by}: resume it with that version or a later one, not with "
                f"{self.settings['devdan']}"
            )
        for name, theirs, ours in self.folder.differences(self.settings):
            raise RunError(
                f"{self.folder} contains another run: its {name} is {theirs!r}, not {ours!r}; resume with the same "
                "command, or choose another folder with --out"
            )
        state = self.folder.read_checkpoint()
        if state is None:
            return
        self._n_bytes, self.evaluation, self.summary, self.total_seconds = state
        self.n_safe = self.summary.n_samples
        records = self.folder.records_path
        if not records.exists() or records.stat().st_size < self._n_bytes:
            raise RunError(f"{records} is shorter than it was at the checkpoint; --overwrite starts again")

    def _checkpoint(self, file: Any) -> None:
        file.flush()
        os.fsync(file.fileno())
        n_bytes = file.tell()
        try:
            self.folder.write_checkpoint((n_bytes, self.evaluation, self.summary, self.total_seconds))
        except pickle.PicklingError as error:
            self._warn(error)
            return
        self._n_bytes = n_bytes
        self.n_safe = self.summary.n_samples

    def _warn(self, error: pickle.PicklingError) -> None:
        """Warn once that the model cannot be saved."""
        if not self._has_warned:
            self._has_warned = True
            warnings.warn(
                f"{error}: the run has no checkpoints, so that it cannot be resumed, and its model is not saved",
                stacklevel=2,
            )


def _release(version: str) -> tuple[int, ...]:
    """The numbers of a version, to compare it with others.

    >>> _release("0.10.0") > _release("0.9.2")
    True
    """
    return tuple(map(int, re.findall(r"\d+", version)[:3]))
