"""Running the cells of a grid in parallel processes, and how long the remaining ones may take."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed

from devdan.bench import models
from devdan.bench.grid import Cell, GridFolder, stopped_after
from devdan.evaluation.loop import Evaluation
from devdan.evaluation.record import Mean, Summary
from devdan.model.compilation import compile_kernel
from devdan.model.estimator import StreamClassifier
from devdan.runs.preparation import circumstances, prepared
from devdan.streams.entries import ENTRIES

_NOT_IN_CELLS = ("classes", "recall", "precision", "counts", "drifts", "reliability")  # too long, or not in any table
_ATTEMPTS = 2  # how often a cell may crash its worker


def run_cells(
    wanted: Sequence[Cell],
    folder: str | Path,
    *,
    data: Path | None = None,
    jobs: int = 1,
    stop_after: float | None = None,
    progress: Callable[[Cell, dict[str, Any]], None] | None = None,
) -> None:
    """Run cells in parallel processes, each for ``stop_after`` minutes at most, and write each result when it is ready.

    joblib runs the processes, so ``joblib.parallel_config`` can select another backend, such as a Dask cluster. A
    worker that is killed takes the others down with it; their cells are run again, each on its own, and a cell that
    crashes again gets the crash as its result.
    """
    kept = GridFolder(folder)
    attempts = dict.fromkeys(wanted, _ATTEMPTS)
    while left := [cell for cell in attempts if attempts[cell] > 0]:
        alone = [cell for cell in left if attempts[cell] < _ATTEMPTS]
        try:
            for cell, result in _results(alone[:1] or left, data, jobs, stop_after):
                kept.write_result(cell, result)
                attempts[cell] = 0
                if progress is not None:
                    progress(cell, result)
        except BrokenProcessPool:
            if alone:
                attempts[alone[0]] = 0
                kept.write_result(
                    alone[0], {"error": "its process was killed, perhaps out of memory"} | circumstances()
                )
            else:  # which cell caused it is not known: run the unfinished cells one at a time
                attempts |= {cell: _ATTEMPTS - 1 for cell in left if attempts[cell] > 0}


def _results(
    wanted: Sequence[Cell], data: Path | None, jobs: int, stop_after: float | None
) -> Iterator[tuple[Cell, dict[str, Any]]]:
    data = None if data is None else data.absolute()
    tasks = (delayed(_evaluated)(cell, cell.located(), data, stop_after) for cell in wanted)
    results: Iterator[tuple[Cell, dict[str, Any]]] = Parallel(n_jobs=jobs, return_as="generator_unordered")(tasks)
    return results


def _evaluated(cell: Cell, located: Cell, data: Path | None, stop_after: float | None) -> tuple[Cell, dict[str, Any]]:
    return cell, evaluate(located, data, stop_after)


def evaluate(cell: Cell, data: Path | None = None, stop_after: float | None = None) -> dict[str, Any]:
    """Run a cell. An error becomes its result; each warning is in its result once.

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
        model = models.build(cell.model, cell.seed)
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


class RemainingTime:
    """Estimates the remaining time from finished cells: the same model on the same stream, or at that model's speed."""

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
        """Take a finished cell into account."""
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
