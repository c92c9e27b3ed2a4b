"""Learning curves in TensorBoard and MLflow: wrap the records of an evaluation in :func:`logged`.

A logger that fails never stops the evaluation.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from devdan.atomic import write_atomically
from devdan.evaluation import measures
from devdan.evaluation.record import Record, Summary

Setting = bool | int | float | str
_LONGEST = 250  # characters of a setting that every store of curves takes
_SECONDS = 5  # until what was logged is sent, or on disk
_METRICS, _PARAMS = 1000, 100  # limits per request to MLflow
_PROGRESS = "n_samples"  # the metric in MLflow that shows how far the curves go


class Logger(Protocol):
    """A destination for curves. If it raises any exception, it is not used any more."""

    def start(self, settings: Mapping[str, Setting]) -> int:
        """Begin or continue; returns the number of samples already covered by the curves."""

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Log the values of a chunk; ``step`` is the number of samples up to its end."""

    def finish(self, figures: Mapping[str, float], files: Sequence[Path]) -> None:
        """The stream has ended: log the final results and files."""

    def stop(self) -> None:
        """The evaluation was stopped early; it may be continued."""


def logged(records: Iterable[Record], *loggers: Logger, settings: Mapping[str, Any] | None = None) -> Iterator[Record]:
    """Yield the same records, logging each one.

    >>> from devdan import DEVDAN
    >>> from devdan.evaluation.loop import prequential
    >>> from devdan.streams import sea
    >>> class Printer:
    ...     def start(self, settings): print(settings["masking"]); return 0
    ...     def log(self, step, values): print(step, values["n_labels"])
    ...     def finish(self, figures, files): print(figures["n_samples"])
    ...     def stop(self): print("stopped")
    >>> model = DEVDAN(random_state=0)
    >>> records = list(logged(prequential(sea(1000), model), Printer(), settings=model.get_params()))
    0.1
    500 500.0
    1000 500.0
    1000.0
    """
    with Log(loggers, settings) as log:
        for record in records:
            log.add(record)
            yield record
        log.finish()


class Log:
    """A context manager that passes records to loggers; leaving it before :meth:`finish` means it was stopped.

    ``past`` are the earlier records of a continued evaluation, for loggers that lack them. ``remedy`` says what to do
    about a logger that failed.
    """

    def __init__(
        self,
        loggers: Iterable[Logger],
        settings: Mapping[str, Any] | None = None,
        *,
        past: Iterable[Record] = (),
        remedy: str = "log the records again when it works",
    ) -> None:
        self._loggers, self._settings, self._past, self._remedy = tuple(loggers), flat(settings or {}), past, remedy
        self._summary = Summary()
        self._logged: dict[Logger, int] = {}  # the active loggers, and the samples each had at the start

    def __enter__(self) -> Log:
        for logger in self._loggers:
            with self._guarded(logger):
                self._logged[logger] = logger.start(self._settings)
        if self._logged:
            for record in self._past:
                self.add(record)
        return self

    def add(self, record: Record) -> None:
        """Log the next chunk in every logger that does not have it yet."""
        if not self._logged:
            return
        self._summary.add(record)
        step, values = record.start + record.n_samples, curves(record, self._summary)
        for logger, known in list(self._logged.items()):
            if step > known:
                with self._guarded(logger):
                    logger.log(step, values)

    def finish(self, files: Sequence[Path] = ()) -> None:
        """Log the final results."""
        figures = _numbers(self._summary.criteria())
        for logger in list(self._logged):
            with self._guarded(logger):
                logger.finish(figures, files)
                del self._logged[logger]

    def __exit__(self, *_: object) -> None:
        for logger in list(self._logged):
            with self._guarded(logger):
                logger.stop()

    @contextmanager
    def _guarded(self, logger: Logger) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            self._logged.pop(logger, None)  # even after Ctrl-C: do not wait for a hanging logger again
            if not isinstance(error, Exception):
                raise
            said = " ".join(str(error).split()) or type(error).__name__
            message = f"{type(logger).__name__} failed and is disabled from here on: {said}; {self._remedy}"
            warnings.warn(message, stacklevel=4)


def curves(record: Record, summary: Summary) -> dict[str, float]:
    """The values to plot: those of a record, and some of the run so far. Undefined values are left out."""
    values: dict[str, float | None] = {}
    for measure in measures.MEASURES:
        values |= measure.curve_values(record, summary)
    values["n_labels"] = record.n_labels
    for name in ("bias2", "variance", "growths", "prunings", "drifts"):
        phases = getattr(record, name)
        if phases is not None:
            values |= {f"{name}/{phase}": value for phase, value in phases._asdict().items()}
    return _numbers(values)


def flat(settings: Mapping[str, Any]) -> dict[str, Setting]:
    """Flatten nested settings into numbers and strings; lists, such as the names of features, may be cut.

    >>> flat({"model": "devdan", "options": {"masking": 0.1, "scaling": None}})
    {'model': 'devdan', 'options.masking': 0.1, 'options.scaling': 'None'}
    """
    found: dict[str, Setting] = {}
    for name, value in settings.items():
        if isinstance(value, Mapping):
            found |= {f"{name}.{inner}": setting for inner, setting in flat(value).items()}
        else:
            found[name] = value if isinstance(value, (bool, int, float, str)) else str(value)[:_LONGEST]
    return found


def _numbers(values: Mapping[str, float | None]) -> dict[str, float]:
    return {name: float(value) for name, value in values.items() if value is not None}


# --- TensorBoard ---------------------------------------------------------------------------------------------------


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


# --- MLflow --------------------------------------------------------------------------------------------------------


class MLflowLogger:
    """Logs to an MLflow run: ``pip install 'devdan[mlflow]'``.

    It continues the run given by ``run_id`` or by ``memory``, a file that stores the id between evaluations. Otherwise
    it uses the active run (``mlflow.start_run``, MLFLOW_RUN_ID), or starts one in ``experiment``. The tracking server
    is ``uri`` or comes from MLflow's own settings, such as MLFLOW_TRACKING_URI and MLFLOW_EXPERIMENT_NAME.
    """

    def __init__(
        self,
        experiment: str | None = None,
        *,
        uri: str | None = None,
        name: str | None = None,
        run_id: str | None = None,
        memory: Path | None = None,
    ) -> None:
        try:
            import mlflow  # noqa: PLC0415 (an optional extra)
        except ModuleNotFoundError as error:
            message = "MLflowLogger needs MLflow: pip install 'devdan[mlflow]'"
            raise ModuleNotFoundError(message, name=error.name) from error
        self.experiment, self.uri, self.name, self.run_id, self.memory = experiment, uri, name, run_id, memory
        self._mlflow = mlflow
        self._waiting: list[Any] = []

    def start(self, settings: Mapping[str, Setting]) -> int:
        """Find or start the run; the settings become its params."""
        self._client = self._mlflow.MlflowClient(tracking_uri=self.uri)
        if self.run_id is None and self.memory is not None and self.memory.exists():
            self.run_id = self.memory.read_text().strip()
        active, goes_on = self._mlflow.active_run(), self.run_id is not None
        theirs = os.environ.get("MLFLOW_RUN_ID") or (active.info.run_id if active else None)
        run = self._run(self.run_id or theirs)
        self.run_id = str(run.info.run_id)
        self._is_theirs = self.run_id == theirs
        if self.memory is not None:
            write_atomically(self.memory, f"{self.run_id}\n".encode())
        if goes_on and not self._is_theirs:
            self._client.update_run(self.run_id, status="RUNNING")
        new = [(name, str(value)) for name, value in settings.items() if name not in run.data.params]
        for first in range(0, len(new), _PARAMS):
            params = [self._mlflow.entities.Param(*param) for param in new[first : first + _PARAMS]]
            self._client.log_batch(self.run_id, params=params)
        self._known = run.data.metrics if goes_on else {}
        self._step = int(self._known.get(_PROGRESS, 0))
        self._sent = time.monotonic()
        return self._step

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Add a point to each metric; points are sent in batches."""
        self._step = step
        self._add({**values, _PROGRESS: step})

    def finish(self, figures: Mapping[str, float], files: Sequence[Path]) -> None:
        """Log the figures and the files, and end the run."""
        named = {f"summary/{name}": value for name, value in figures.items()}
        self._add({name: value for name, value in named.items() if name not in self._known})
        self._send()
        for path in files:
            self._client.log_artifact(self.run_id, str(path))
        self._end("FINISHED")

    def stop(self) -> None:
        """Send pending metrics, and mark the run as stopped."""
        self._send()
        self._end("KILLED")

    def _run(self, run_id: str | None) -> Any:
        if run_id is None:
            return self._client.create_run(self._experiment_id(), run_name=self.name)
        try:
            return self._client.get_run(run_id)
        except self._mlflow.MlflowException as error:
            if self.memory is None or error.error_code != "RESOURCE_DOES_NOT_EXIST":
                raise
            raise ValueError(f"MLflow has no run {run_id} here; remove {self.memory} to start another") from error

    def _experiment_id(self) -> str:
        by_id = os.environ.get("MLFLOW_EXPERIMENT_ID")
        if self.experiment is None and by_id:
            return by_id
        name = self.experiment or os.environ.get("MLFLOW_EXPERIMENT_NAME") or "devdan"
        found = self._client.get_experiment_by_name(name)
        return str(self._client.create_experiment(name) if found is None else found.experiment_id)

    def _add(self, values: Mapping[str, float]) -> None:
        if len(self._waiting) + len(values) > _METRICS or time.monotonic() - self._sent > _SECONDS:
            self._send()
        now = int(1000 * time.time())
        self._waiting += [self._mlflow.entities.Metric(*point, now, self._step) for point in values.items()]

    def _send(self) -> None:
        if self._waiting:
            self._client.log_batch(self.run_id, metrics=self._waiting)
        self._waiting, self._sent = [], time.monotonic()

    def _end(self, status: str) -> None:
        if not self._is_theirs:
            self._client.set_terminated(self.run_id, status)
