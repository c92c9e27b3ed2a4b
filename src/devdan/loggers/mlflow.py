"""Curves in MLflow: a run with params, metrics and artifacts."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from devdan.atomic import write_atomically
from devdan.loggers.log import Setting

EXPERIMENT = "devdan"
_SECONDS = 5  # seconds until metrics are sent
_METRICS, _PARAMS = 1000, 100  # limits per request to MLflow
_PROGRESS = "n_samples"  # the metric that shows how far the curves go


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
        name = self.experiment or os.environ.get("MLFLOW_EXPERIMENT_NAME") or EXPERIMENT
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
