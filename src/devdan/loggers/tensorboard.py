"""Curves in TensorBoard: an event file in a folder."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from devdan.loggers.log import Setting

_SECONDS = 5  # seconds until events are on disk


class TensorBoardLogger:
    """Writes events to a folder: ``pip install 'devdan[tensorboard]'``; ``tensorboard --logdir`` shows them.

    The settings appear as hyperparameters. A folder is for one evaluation: earlier events in it are hidden, so a
    continued evaluation must log its past again.
    """

    def __init__(self, folder: str | Path) -> None:
        try:
            from tensorboard.compat.proto import event_pb2, summary_pb2  # noqa: PLC0415 (an optional extra)
            from tensorboard.plugins.hparams.summary_v2 import hparams_pb  # noqa: PLC0415
            from tensorboard.summary.writer.event_file_writer import EventFileWriter  # noqa: PLC0415
        except ModuleNotFoundError as error:
            message = "TensorBoardLogger needs TensorBoard: pip install 'devdan[tensorboard]'"
            raise ModuleNotFoundError(message, name=error.name) from error
        self.folder = Path(folder)
        self._event, self._session, self._summary = event_pb2.Event, event_pb2.SessionLog, summary_pb2.Summary
        self._hparams = hparams_pb
        self._open = partial(EventFileWriter, str(folder), flush_secs=_SECONDS)
        self._step = 0

    def start(self, settings: Mapping[str, Setting]) -> int:
        """Start a new event file, from the first sample."""
        self._writer = self._open()
        self._add(0, session_log=self._session(status=self._session.START))  # TensorBoard drops later steps before it
        self._add(0, summary=self._hparams(dict(settings)))
        return 0

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Write a point of each curve."""
        self._step = step
        points = [self._summary.Value(tag=name, simple_value=value) for name, value in values.items()]
        self._add(step, summary=self._summary(value=points))

    def finish(self, figures: Mapping[str, float], files: Sequence[Path]) -> None:
        """Write the final results as separate points; the files stay where they are."""
        self.log(self._step, {f"summary/{name}": value for name, value in figures.items()})
        self.stop()

    def stop(self) -> None:
        """Close the event file."""
        self._writer.close()

    def _add(self, step: int, **content: Any) -> None:
        self._writer.add_event(self._event(wall_time=time.time(), step=step, **content))
