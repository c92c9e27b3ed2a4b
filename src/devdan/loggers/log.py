"""What is logged during an evaluation, and the logger protocol; a logger that fails never stops the evaluation."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from devdan.evaluation import measures
from devdan.evaluation.record import Record, Summary

Setting = bool | int | float | str
_LONGEST = 250  # characters of a setting that every store of curves takes


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
    """The values to plot: those of a record, and the classification rate so far. Undefined values are left out."""
    values: dict[str, float | None] = {
        name: value(record, summary) for measure in measures.MEASURES for name, value in measure.curves
    }
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
