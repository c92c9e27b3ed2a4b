"""A run in its own folder: records as they come, checkpoints, and at the end the model, a summary and a report.

After a crash at any moment, the run goes on from its latest checkpoint and ends with the records and the model of an
unbroken one. A model that cannot be pickled has no checkpoints: its run starts again.
"""

from __future__ import annotations

import os
import pickle
import time
import warnings
from collections.abc import Generator, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from devdan.evaluation.loop import Evaluation
from devdan.evaluation.record import Record, Summary
from devdan.fleet.fleet import DEVDANFleet
from devdan.model.described import columns, insight
from devdan.report import RunReport
from devdan.runs.runfolder import IDENTITY, RunError, RunFolder
from devdan.streams import Stream, StreamError

_RENEWED = 2.0  # seconds after which the page of a run that goes on is written again
_COST = 0.05  # the share of the time that this may take


class RunJob:
    """An evaluation stored in a folder: iterate over its :meth:`records`, then :meth:`finish` it. A context manager.

    ``settings`` describe the run, for the summary and the report, and to identify it when resuming.
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
    ) -> None:
        self.folder = RunFolder(folder)
        self.stream, self.evaluation, self.settings = stream, evaluation, settings
        self.summary = Summary()
        self.every = every
        self.total_seconds = 0.0  # seconds of the evaluation, including reading and recording
        self._n_bytes = 0
        self.n_safe = 0  # samples up to the latest checkpoint
        self._is_told = False  # that there are no checkpoints
        self._page: RunReport | None = None
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

        From the first moment on there is a page that tells how far it is.
        """
        path = self.folder.records_path
        with open(path, "r+b" if path.exists() else "wb", buffering=1 << 16) as file:
            file.truncate(self._n_bytes)
            file.seek(self._n_bytes)
            before = self.total_seconds
            try:
                due = self._renew_page()
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
                        due = self._renew_page()
                    yield record
            except BaseException as error:
                if isinstance(error, (GeneratorExit, StreamError)):
                    self._checkpoint(file)
                if not isinstance(error, OSError):  # after which nothing can be written
                    self.report()
                raise
            self._checkpoint(file)
        if self.summary.n_chunks == 0:
            self.report()
            raise StreamError(f"{self.stream.origin or self.stream.name} has no samples")

    def finish(self) -> None:
        """Save the model, the summary and the report."""
        try:
            self.folder.write_model(self.evaluation.model)
        except pickle.PicklingError as error:
            self._tell(error)
        result = {name: self.settings[name] for name in IDENTITY} | self.summary.figures()
        if told := columns(self.evaluation.model):
            result |= {"columns": told, "notes": self.evaluation.model.encoding_.notes}
        result |= insight(self.evaluation.model, self.stream.feature_names)
        result |= {"read_seconds": self.evaluation.read_seconds, "total_seconds": self.total_seconds}
        self.folder.write_summary(result)
        self._close_fleet()
        self.report()
        self.folder.remove_checkpoint()

    def close(self) -> None:
        """Release the folder."""
        self._close_fleet()
        self.folder.let_go()

    def _close_fleet(self) -> None:
        """Let a fleet go of its store, so that all of it is in one file, which others may read or copy."""
        if isinstance(self.evaluation.model, DEVDANFleet):
            self.evaluation.model.close()

    def __enter__(self) -> RunJob:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def report(self) -> None:
        """Write the report of the records so far, as of a run that does not go on."""
        self._write_page(goes_on=False)

    def _renew_page(self) -> float:
        """Write the page of a run that goes on; returns when it is due next, so that it costs next to nothing."""
        begin = time.monotonic()
        self._write_page(goes_on=True)
        now = time.monotonic()
        return now + max(_RENEWED, (now - begin) / _COST)

    def _write_page(self, *, goes_on: bool) -> None:
        if self._page is None:
            self._page = RunReport(self.folder.path, self.folder.report_path)
        self._page.write(goes_on=goes_on)

    def _prepare(self, resume: bool, overwrite: bool) -> None:
        """Check the state of the folder; existing files are removed only if the user asks for it."""
        folder = self.folder
        try:
            folder.take()
            folder.sweep()
            if not overwrite and folder.settings() is not None:
                if resume:
                    self._take_up()
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

    def _take_up(self) -> None:
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
            self._tell(error)
            return
        self._n_bytes = n_bytes
        self.n_safe = self.summary.n_samples

    def _tell(self, error: pickle.PicklingError) -> None:
        """Say once that the model cannot be kept."""
        if not self._is_told:
            self._is_told = True
            warnings.warn(
                f"{error}: the run has no checkpoints and leaves no model; stopped, it starts again", stacklevel=2
            )
