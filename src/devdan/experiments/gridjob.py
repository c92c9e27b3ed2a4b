"""Models × streams × labels × seeds: one result file per cell, so that only missing cells are run."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed

from devdan.evaluation import registry
from devdan.evaluation.loop import Evaluation
from devdan.evaluation.record import Mean, Summary
from devdan.experiments.preparation import prepared
from devdan.experiments.provenance import circumstances, fingerprint
from devdan.model.compilation import compile_kernel
from devdan.model.estimator import StreamClassifier
from devdan.runs.gridfolder import CellKey, GridFolder, stopped_after
from devdan.streams import Stream, StreamError, open_stream
from devdan.streams.entries import ENTRIES

_NOT_IN_CELLS = ("classes", "recall", "precision", "counts", "drifts", "reliability")  # too long, or not in any table
_LIVES = 2  # how often a cell may crash its worker


@dataclass(frozen=True)
class File:
    """A user's file, how to read it, and a fingerprint to notice changes."""

    path: str
    target: str | None = None
    drop: tuple[str, ...] = ()
    header: bool | None = None
    fingerprint: str | None = None

    @classmethod
    def at(cls, path: str, target: str | None = None, drop: Sequence[str] = (), header: bool | None = None) -> File:
        """The file in its current state."""
        return cls(path, target, tuple(drop), header, fingerprint(Path(path)))


@dataclass(frozen=True)
class Cell:
    """One run of the grid."""

    stream: str
    model: str
    labels: str = "all"
    seed: int = 0
    chunk: int = 500
    limit: int | None = None
    file: File | None = None  # the file of the stream; None for the paper's streams

    def open(self, data: Path | None = None) -> Stream:
        """Its stream."""
        if self.file is None:
            stream = open_stream(self.stream, chunk=self.chunk, data=data)
        else:
            file = self.file
            stream = open_stream(
                file.path, target=file.target, drop=file.drop, header=file.header, chunk=self.chunk, name=self.stream
            )
        return stream if self.limit is None else stream.first(self.limit)

    @property
    def key(self) -> CellKey:
        """Which cell of the grid it is."""
        return CellKey(self.stream, self.model, self.labels, self.seed)

    @property
    def settings(self) -> dict[str, Any]:
        """What else its result depends on."""
        return {name: value for name, value in asdict(self).items() if name not in CellKey._fields}

    def result(self, folder: Path) -> dict[str, Any] | None:
        """Its result, if it was run with these settings."""
        return GridFolder(folder).result(self.key, self.settings)

    def keep(self, folder: Path, result: dict[str, Any]) -> None:
        """Write its result atomically."""
        GridFolder(folder).write_result(self.key, self.settings, result)


@dataclass
class Plan:
    """The definition of a grid."""

    streams: list[str]
    models: list[str]
    labels: list[str]
    seeds: int = 5
    chunk: int = 500
    limit: int | None = None
    files: dict[str, File] = field(default_factory=dict)  # the streams that are not the paper's
    stop_after: float | None = None  # minutes that a cell may take
    missing: dict[str, str] = field(default_factory=dict)  # streams missing on this machine, and how to get them
    models_missing: dict[str, str] = field(default_factory=dict)

    def prepare(self, folder: Path, data: Path | None, command: str) -> list[str]:
        """Find out what cannot be run here and write the plan to disk; returns messages about what is left out.

        A file that cannot be read is an error, since the user named it.
        """
        for name in self.streams:
            try:
                Cell(name, "", file=self.files.get(name)).open(data)
            except StreamError as error:
                if name in self.files:
                    raise
                self.missing[name] = str(error)
        for name in self.models:
            try:
                registry.build(name)
            except ValueError as error:
                self.models_missing[name] = str(error)
        about = {name: text for name, text in registry.ABOUT.items() if name in self.models}
        GridFolder(folder).write_plan(asdict(self) | {"command": command, "about": about})
        return [*self.missing.values(), *self.models_missing.values()]

    @property
    def cells(self) -> list[Cell]:
        """All cells that can be run, seed by seed, so that an interrupted grid covers every model and stream."""
        grid = product(range(self.seeds), self.labels, self.streams, self.models)
        return [
            Cell(stream, name, policy, seed, self.chunk, self.limit, self.files.get(stream))
            for seed, policy, stream, name in grid
            if stream not in self.missing and name not in self.models_missing
        ]

    def results(self, folder: Path) -> tuple[list[tuple[Cell, dict[str, Any]]], list[Cell]]:
        """The finished cells with their results, and the cells that were not run, failed, or have more time now."""
        done, wanted = [], []
        for cell in self.cells:
            result = cell.result(folder)
            if result is None or "error" in result or self._has_more_time(result):
                wanted.append(cell)
            else:
                done.append((cell, result))
        return done, wanted

    def _has_more_time(self, result: dict[str, Any]) -> bool:
        """Whether the cell was stopped earlier than it would be now."""
        minutes = stopped_after(result)
        return minutes is not None and (self.stop_after is None or minutes < self.stop_after)


class Remaining:
    """Estimates the remaining time from finished runs: the same model on the same stream, or at that model's speed."""

    def __init__(
        self,
        wanted: Sequence[Cell],
        done: Iterable[tuple[Cell, dict[str, Any]]],
        jobs: int,
        stop_after: float | None = None,
    ) -> None:
        self._left, self._jobs = list(wanted), jobs
        self._most = math.inf if stop_after is None else 60 * stop_after
        self._seconds: dict[tuple[str, str], Mean] = {}
        self._per_sample: dict[str, Mean] = {}
        self._sizes = {name: entry.n_samples for name, entry in ENTRIES.items()}
        for cell, result in done:
            self._note(cell, result)

    def done(self, cell: Cell, result: dict[str, Any]) -> None:
        """Add a result."""
        self._left.remove(cell)
        self._note(cell, result)

    def _note(self, cell: Cell, result: dict[str, Any]) -> None:
        if "error" not in result and result["n_samples"]:
            self._seconds.setdefault((cell.stream, cell.model), Mean()).add(result["wall_seconds"])
            self._per_sample.setdefault(cell.model, Mean()).add(result["wall_seconds"] / result["n_samples"])
            if cell.limit is None and stopped_after(result) is None:
                self._sizes[cell.stream] = result["n_samples"]

    @property
    def seconds(self) -> float | None:
        """The remaining seconds; None while there is nothing to estimate from."""
        known = [mean.mean for mean in self._per_sample.values() if mean.mean is not None]
        if not known:
            return None
        total = 0.0
        for cell in self._left:
            same = self._seconds.get((cell.stream, cell.model))
            alike = self._per_sample.get(cell.model)
            n = min(self._sizes.get(cell.stream, 10_000), cell.limit or math.inf)
            per_sample = max(known) if alike is None or alike.mean is None else alike.mean
            total += min(same.mean if same is not None and same.mean is not None else n * per_sample, self._most)
        return total / self._jobs


def evaluate(cell: Cell, data: Path | None = None, stop_after: float | None = None) -> dict[str, Any]:
    """Run a cell; any error becomes its result, and so does each warning, once.

    After ``stop_after`` minutes it is stopped at the end of the chunk, and has no figures.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        result = _evaluate(cell, data, stop_after)
    notes = list(dict.fromkeys(" ".join(str(warning.message).split()) for warning in caught))
    return result | ({"notes": notes} if notes else {})


def _evaluate(cell: Cell, data: Path | None, stop_after: float | None) -> dict[str, Any]:
    begin = time.perf_counter()
    try:
        model = registry.build(cell.model, cell.seed)
        stream, model, classes, scaled = prepared(cell.open(data), model)
        if isinstance(model, StreamClassifier):
            compile_kernel(model)
        summary, start = Summary(), time.perf_counter()
        for record in Evaluation(model, cell.labels, classes=classes, seed=cell.seed).over(stream):
            summary.add(record)
            seconds = time.perf_counter() - start
            if stop_after is not None and seconds > 60 * stop_after:
                stopped = {"stopped_after": stop_after, "n_samples": summary.n_samples, "wall_seconds": seconds}
                return stopped | circumstances()
    except Exception as error:
        return {"error": f"{type(error).__name__}: {' '.join(str(error).split())}"} | circumstances()
    figures = {name: value for name, value in summary.figures().items() if name not in _NOT_IN_CELLS}
    return {
        **figures,
        "n_classes": len(summary.classes),
        "wall_seconds": time.perf_counter() - begin,
        "origin": Path(stream.origin).name,
        "scaled": scaled,
        **circumstances(),
    }


def run(
    wanted: Sequence[Cell],
    folder: Path,
    *,
    data: Path | None = None,
    jobs: int = 1,
    stop_after: float | None = None,
    progress: Callable[[Cell, dict[str, Any]], None] | None = None,
) -> None:
    """Run cells in parallel processes, each for ``stop_after`` minutes at most, and store each result when it is ready.

    joblib runs the processes, so ``joblib.parallel_config`` can select another backend, such as a Dask cluster. A
    worker that is killed takes the others down with it; their cells are run again, each on its own, and a cell that
    crashes again gets the crash as its result.
    """
    lives = dict.fromkeys(wanted, _LIVES)
    while left := [cell for cell in lives if lives[cell] > 0]:
        alone = [cell for cell in left if lives[cell] < _LIVES]
        try:
            for cell, result in _results(alone[:1] or left, data, jobs, stop_after):
                cell.keep(folder, result)
                lives[cell] = 0
                if progress is not None:
                    progress(cell, result)
        except BrokenProcessPool:
            if alone:
                lives[alone[0]] = 0
                alone[0].keep(folder, {"error": "its process was killed, perhaps out of memory"} | circumstances())
            else:  # which cell caused it is not known: run the unfinished cells one at a time
                lives |= {cell: _LIVES - 1 for cell in left if lives[cell] > 0}


def _results(
    wanted: Sequence[Cell], data: Path | None, jobs: int, stop_after: float | None
) -> Iterator[tuple[Cell, dict[str, Any]]]:
    tasks = (delayed(_evaluated)(cell, data, stop_after) for cell in wanted)
    results: Iterator[tuple[Cell, dict[str, Any]]] = Parallel(n_jobs=jobs, return_as="generator_unordered")(tasks)
    return results


def _evaluated(cell: Cell, data: Path | None, stop_after: float | None) -> tuple[Cell, dict[str, Any]]:
    return cell, evaluate(cell, data, stop_after)
