"""Models × streams × labels × seeds: one result file for each cell, so that only what is missing is ever done again."""

from __future__ import annotations

import json
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

from devdan.atomic import write_atomically
from devdan.evaluation import registry
from devdan.evaluation.loop import Evaluation
from devdan.evaluation.record import Mean, Summary
from devdan.experiments.runjob import circumstances, fingerprint, prepared
from devdan.model.devdan import compile_kernel
from devdan.model.estimator import StreamClassifier
from devdan.streams import Stream, StreamError, open_stream
from devdan.streams.catalogue import ENTRIES

_LIVES = 2  # how often a cell may kill its worker


@dataclass(frozen=True)
class File:
    """A user's file, how to read it, and what tells it from what it was before."""

    path: str
    target: str | None = None
    drop: tuple[str, ...] = ()
    header: bool | None = None
    fingerprint: str | None = None

    @classmethod
    def at(cls, path: str, target: str | None = None, drop: Sequence[str] = (), header: bool | None = None) -> File:
        """The file as it is now."""
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
    file: File | None = None  # that the stream is; by default it is one of the paper's

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

    def path(self, folder: Path) -> Path:
        """Where its result is kept."""
        return folder / "cells" / self.stream / self.model / self.labels.replace(":", "-") / f"{self.seed}.json"

    def result(self, folder: Path) -> dict[str, Any] | None:
        """What it came to, if it was run with these settings."""
        try:
            result: dict[str, Any] = json.loads(self.path(folder).read_bytes())
        except (FileNotFoundError, ValueError):
            return None
        asked = json.loads(json.dumps(asdict(self)))  # with lists for tuples, as there
        return result if all(result.get(name) == value for name, value in asked.items()) else None

    def keep(self, folder: Path, result: dict[str, Any]) -> None:
        """Write its result in one go."""
        path = self.path(folder)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps(asdict(self) | result, allow_nan=False).encode() + b"\n")


@dataclass
class Plan:
    """What a grid is made of."""

    streams: list[str]
    models: list[str]
    labels: list[str]
    seeds: int = 5
    chunk: int = 500
    limit: int | None = None
    files: dict[str, File] = field(default_factory=dict)  # the streams that are not the paper's
    missing: dict[str, str] = field(default_factory=dict)  # streams that are not on this machine, and how to get them
    models_missing: dict[str, str] = field(default_factory=dict)

    def prepare(self, folder: Path, data: Path | None, command: str) -> list[str]:
        """Find out what cannot be run here, and write down what is; returns what there is to say about the former.

        A file that cannot be read is an error: whoever named it has it.
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
        folder.mkdir(parents=True, exist_ok=True)
        about = {name: text for name, text in registry.ABOUT.items() if name in self.models}
        content = json.dumps(asdict(self) | {"command": command, "about": about}, indent=2) + "\n"
        write_atomically(folder / "table.json", content.encode())
        return [*self.missing.values(), *self.models_missing.values()]

    @property
    def cells(self) -> list[Cell]:
        """All that can be run, the seeds in turn, so that an interrupted grid has something of everything."""
        grid = product(range(self.seeds), self.labels, self.streams, self.models)
        return [
            Cell(stream, name, policy, seed, self.chunk, self.limit, self.files.get(stream))
            for seed, policy, stream, name in grid
            if stream not in self.missing and name not in self.models_missing
        ]

    def results(self, folder: Path) -> tuple[list[tuple[Cell, dict[str, Any]]], list[Cell]]:
        """The cells that were run, with what they came to, and those that were not, or failed."""
        done, wanted = [], []
        for cell in self.cells:
            result = cell.result(folder)
            if result is None or "error" in result:
                wanted.append(cell)
            else:
                done.append((cell, result))
        return done, wanted


class Remaining:
    """How long what is left may take, judged by what was done: the same model on the same stream, else at its speed."""

    def __init__(self, wanted: Sequence[Cell], done: Iterable[tuple[Cell, dict[str, Any]]], jobs: int) -> None:
        self._left, self._jobs = list(wanted), jobs
        self._seconds: dict[tuple[str, str], Mean] = {}
        self._per_sample: dict[str, Mean] = {}
        self._sizes = {name: entry.n_samples for name, entry in ENTRIES.items()}
        for cell, result in done:
            self._note(cell, result)

    def done(self, cell: Cell, result: dict[str, Any]) -> None:
        """Take note of a result."""
        self._left.remove(cell)
        self._note(cell, result)

    def _note(self, cell: Cell, result: dict[str, Any]) -> None:
        if "error" not in result:
            self._seconds.setdefault((cell.stream, cell.model), Mean()).add(result["wall_seconds"])
            self._per_sample.setdefault(cell.model, Mean()).add(result["wall_seconds"] / result["n_samples"])
            if cell.limit is None:
                self._sizes[cell.stream] = result["n_samples"]

    @property
    def seconds(self) -> float | None:
        """None as long as there is nothing to judge by."""
        known = [mean.mean for mean in self._per_sample.values() if mean.mean is not None]
        if not known:
            return None
        total = 0.0
        for cell in self._left:
            same = self._seconds.get((cell.stream, cell.model))
            alike = self._per_sample.get(cell.model)
            n = min(self._sizes.get(cell.stream, 10_000), cell.limit or math.inf)
            per_sample = max(known) if alike is None or alike.mean is None else alike.mean
            total += same.mean if same is not None and same.mean is not None else n * per_sample
        return total / self._jobs


def evaluate(cell: Cell, data: Path | None = None) -> dict[str, Any]:
    """Run a cell; whatever goes wrong with it is its result, and so is what it warns of, each warning once."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        result = _evaluate(cell, data)
    notes = list(dict.fromkeys(" ".join(str(warning.message).split()) for warning in caught))
    return result | ({"notes": notes} if notes else {})


def _evaluate(cell: Cell, data: Path | None) -> dict[str, Any]:
    begin = time.perf_counter()
    try:
        model = registry.build(cell.model, cell.seed)
        stream, model, classes, scaled = prepared(cell.open(data), model)
        if isinstance(model, StreamClassifier):
            compile_kernel(model)
        summary = Summary(Evaluation(model, cell.labels, classes=classes, seed=cell.seed).over(stream))
    except Exception as error:
        return {"error": f"{type(error).__name__}: {' '.join(str(error).split())}"} | circumstances()
    details = summary.details()
    named = ("accuracy", "kappa_no_change", "n_labels", "n_chunks", "members_mean", "growths", "prunings")
    kept = {name: details[name] for name in named}
    return {
        **summary.criteria(),
        **kept,
        "n_classes": len(details["classes"]),
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
    progress: Callable[[Cell, dict[str, Any]], None] | None = None,
) -> None:
    """Run cells in parallel processes and keep each result as it comes.

    The processes are joblib's, so another backend serves under ``joblib.parallel_config``, such as Dask's cluster. A
    worker that is killed takes those beside it with it; they are run again, the cell that does it alone, and if it does
    it again that is its result.
    """
    lives = dict.fromkeys(wanted, _LIVES)
    while left := [cell for cell in lives if lives[cell] > 0]:
        alone = [cell for cell in left if lives[cell] < _LIVES]
        try:
            for cell, result in _results(alone[:1] or left, data, jobs):
                cell.keep(folder, result)
                lives[cell] = 0
                if progress is not None:
                    progress(cell, result)
        except BrokenProcessPool:
            if alone:
                lives[alone[0]] = 0
                alone[0].keep(folder, {"error": "its process was killed, perhaps for want of memory"} | circumstances())
            else:  # whose fault was it? each of those that were not done goes on by itself
                lives |= {cell: _LIVES - 1 for cell in left if lives[cell] > 0}


def _results(wanted: Sequence[Cell], data: Path | None, jobs: int) -> Iterator[tuple[Cell, dict[str, Any]]]:
    tasks = (delayed(_evaluated)(cell, data) for cell in wanted)
    results: Iterator[tuple[Cell, dict[str, Any]]] = Parallel(n_jobs=jobs, return_as="generator_unordered")(tasks)
    return results


def _evaluated(cell: Cell, data: Path | None) -> tuple[Cell, dict[str, Any]]:
    return cell, evaluate(cell, data)
