"""A grid of runs on disk: models × streams × labels × seeds, one result file per cell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any, NamedTuple

from devdan.evaluation.measures import in_tables
from devdan.report.grid.paper import published
from devdan.report.shown_run import ReportError
from devdan.runs.gridfolder import CellKey, GridFolder, settings_of, stopped_after
from devdan.runs.runfolder import RunError


class Stat(NamedTuple):
    """A criterion over seeds; both standard deviations are of the values themselves, not sample estimates."""

    mean: float
    spread: float | None  # deviation over the chunks of a run, averaged over seeds
    over_seeds: float
    n: int  # seeds
    lowest: float
    highest: float


@dataclass(frozen=True, eq=False)
class Grid:
    """The planned grid and its results so far."""

    streams: Sequence[str]
    models: Sequence[str]
    labels: Sequence[str]
    seeds: int
    info: dict[str, Any]  # all of table.json
    results: dict[CellKey, dict[str, Any]]
    failures: dict[CellKey, str]
    stopped: dict[CellKey, float]  # after how many minutes

    @property
    def is_papers(self) -> bool:
        """Whether any of the streams is in the paper's Table 1."""
        return any(published(stream, "CR", "DEVDAN") for stream in self.streams)

    @property
    def main(self) -> str:
        """The labels of the main table."""
        return "all" if "all" in self.labels else self.labels[0]

    @property
    def missing_streams(self) -> dict[str, str]:
        """Streams missing on this machine, each with how to get it."""
        return self._missing("missing", {key.stream for key in self._done}, self.streams)

    @property
    def missing_models(self) -> dict[str, str]:
        """Models not available on this machine, each with how to get it."""
        return self._missing("models_missing", {key.model for key in self._done}, self.models)

    def _missing(self, name: str, there: set[str], asked: Sequence[str]) -> dict[str, str]:
        found = self.info.get(name) or {}
        return {one: str(found[one]) for one in asked if one in found and one not in there}

    @property
    def n_cells(self) -> int:
        """The number of planned runs, without those that cannot be run on this machine."""
        streams, models = len(self.streams) - len(self.missing_streams), len(self.models) - len(self.missing_models)
        return streams * models * len(self.labels) * self.seeds

    @property
    def n_done(self) -> int:
        """The number of runs done, including failures and those that were stopped."""
        return len(self._done)

    @property
    def _done(self) -> list[CellKey]:
        return [*self.results, *self.failures, *self.stopped]

    def of(self, stream: str, model: str, labels: str) -> list[dict[str, Any]]:
        """The results of all seeds."""
        keys = (CellKey(stream, model, labels, seed) for seed in range(self.seeds))
        return [self.results[key] for key in keys if key in self.results]

    def stat(self, stream: str, model: str, labels: str, criterion: str) -> Stat | None:
        """A criterion over the seeds that have a result."""
        measure = in_tables()[criterion]
        results = [(measure.figure(result), result) for result in self.of(stream, model, labels)]
        pairs = [(value, measure.spread_in(result)) for value, result in results if value is not None]
        if not pairs:
            return None
        values, spreads = [value for value, _ in pairs], [own for _, own in pairs if own is not None]
        mean, spread = fmean(values), fmean(spreads) if spreads else None
        return Stat(mean, spread, pstdev(values), len(values), min(values), max(values))

    def values(self, labels: str, criterion: str) -> dict[tuple[str, str], float]:
        """The means of a criterion by stream and model, if any."""
        stats = ((pair, self.stat(*pair, labels, criterion)) for pair in product(self.streams, self.models))
        return {pair: stat.mean for pair, stat in stats if stat is not None}


def read_grid(folder: Path) -> Grid:
    """Read the grid in a folder, finished or not; other files there are ignored."""
    kept = GridFolder(folder)
    try:
        info = kept.plan()
    except RunError as error:
        raise ReportError(str(error)) from None
    path = kept.plan_path
    try:
        streams, models, labels = ([str(name) for name in info[axis]] for axis in ("streams", "models", "labels"))
        seeds = int(info["seeds"])
    except (KeyError, TypeError, ValueError):
        raise ReportError(f"{path} is damaged") from None
    if not (streams and models and labels):
        raise ReportError(f"{path} needs streams, models and labels, got {streams}, {models}, {labels}")
    results: dict[CellKey, dict[str, Any]] = {}
    failures: dict[CellKey, str] = {}
    stopped: dict[CellKey, float] = {}
    for stream, model, policy, seed in product(streams, models, labels, range(seeds)):
        key = CellKey(stream, model, policy, seed)
        result = kept.result(key, settings_of(info, stream))
        if result is not None and "error" in result:
            failures[key] = " ".join(str(result["error"]).split())
        elif result is not None and (minutes := stopped_after(result)) is not None:
            stopped[key] = minutes
        elif result is not None:
            results[key] = result
    return Grid(streams, models, labels, seeds, info, results, failures, stopped)


class CompleteBlock(NamedTuple):
    """The streams and models that can be compared: each of the models has a result on each of the streams."""

    streams: list[str]
    models: list[str]


def complete(grid: Grid, has: Callable[[str, str], bool]) -> CompleteBlock:
    """The largest complete block of streams × models; ``has`` says whether a model has a result on a stream.

    Streams are added as long as this gains more results than it loses models.
    """
    there = {stream: {model for model in grid.models if has(stream, model)} for stream in grid.streams}
    by_size = sorted(grid.streams, key=lambda stream: -len(there[stream]))
    best = CompleteBlock([], [])
    for n in range(1, len(by_size) + 1):
        models = set.intersection(*(there[stream] for stream in by_size[:n]))
        if len(models) * n >= max(1, len(best.models) * len(best.streams)):
            streams = set(by_size[:n])
            best = CompleteBlock([s for s in grid.streams if s in streams], [m for m in grid.models if m in models])
    return best
