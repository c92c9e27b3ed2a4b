"""A grid of runs, models × streams × labels × seeds: its plan, the runs, and their results in a folder."""

from __future__ import annotations

import json
import math
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import product
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed

from devdan.atomic import write_atomically
from devdan.bench import named_models
from devdan.bench.behaviour import behaviour, is_of_now, is_ours
from devdan.encoding.encoding import Instructions
from devdan.evaluation.loop import Evaluation
from devdan.evaluation.measures import in_tables, named
from devdan.evaluation.record import Mean, Summary
from devdan.histories.histories import Histories, entity_columns
from devdan.model.compilation import compile_kernel
from devdan.model.estimator import StreamClassifier
from devdan.model.options import is_count, require
from devdan.runs.preparation import circumstances, fingerprint, prepared
from devdan.streams import Stream, StreamError, open_stream
from devdan.streams.entries import ENTRIES
from devdan.streams.reading import AS_FOUND, Reading


class GridError(ValueError):
    """A folder without a grid that can be read; the message is one line."""


@dataclass(frozen=True)
class StreamFile:
    """A user's file, how to read it, and a fingerprint to notice changes."""

    path: str
    reading: Reading = AS_FOUND
    formats: tuple[tuple[str, str], ...] = ()  # of its columns of dates
    fingerprint: str | None = None
    history: tuple[tuple[str, ...], ...] = ()  # the entities whose histories its rows get, each by its columns
    time: str | None = None  # the column with the time of each row, for histories

    @classmethod
    def at(
        cls,
        path: str,
        reading: Reading = AS_FOUND,
        formats: Mapping[str, str] | None = None,
        histories: Histories | None = None,
    ) -> StreamFile:
        """The file in its current state."""
        entities = () if histories is None else tuple(entity_columns(histories.entities))
        time = None if histories is None else histories.time
        return cls(path, reading, tuple((formats or {}).items()), fingerprint(path), entities, time)

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> StreamFile:
        formats = tuple((str(name), str(how)) for name, how in content["formats"])
        history = tuple(tuple(map(str, columns)) for columns in content.get("history", ()))  # older tables have none
        reading = Reading(**content["reading"])
        return cls(str(content["path"]), reading, formats, content["fingerprint"], history, content.get("time"))

    @property
    def histories(self) -> Histories | None:
        """The histories that its rows get, before the first row; None if it gets none."""
        return Histories(self.history, time=self.time) if self.history else None

    @property
    def columns(self) -> dict[str, Any]:
        """What is said about its columns, as options of a model."""
        said = {"nominal": list(self.reading.nominal), "numeric": list(self.reading.numeric)}
        return {name: value for name, value in {**said, "dates": dict(self.formats)}.items() if value}


@dataclass(frozen=True)
class Cell:
    """One run of the grid: all that its result depends on."""

    stream: str
    model: str
    labels: str = "all"
    seed: int = 0
    chunk: int = 500
    limit: int | None = None
    file: StreamFile | None = None  # the file of the stream; None for those with a name
    options: tuple[str, ...] | None = None  # of the model, as they were typed

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Cell:
        """The settings in a result; those that came after it are as they were."""
        known = {option.name: content[option.name] for option in fields(cls) if option.name in content}
        file, options = known.pop("file", None), known.pop("options", None)
        return cls(
            **known, file=file and StreamFile.from_json(file), options=None if options is None else tuple(options)
        )

    def open(self, data: Path | None = None) -> Stream:
        if self.file is None:
            stream = open_stream(self.stream, chunk=self.chunk, data=data)
        else:
            file = self.file
            entities = [] if file.histories is None else file.histories.entity_names
            reading = file.reading.with_text(entities)  # 007 and 7 are two
            stream = open_stream(file.path, chunk=self.chunk, name=self.stream, **reading.as_keywords())
        return stream if self.limit is None else stream.first(self.limit)

    def located(self) -> Cell:
        """The same with the whole path of its file, for a process in another folder."""
        file = self.file
        if file is None or "://" in file.path:  # the address of a database
            return self
        return replace(self, file=replace(file, path=str(Path(file.path).absolute())))


@dataclass
class GridPlan:
    """What a grid consists of: models on streams, with label policies, each with the seeds 0, 1, ….

    >>> plan = GridPlan(["sea", "weather"], ["devdan", "river-arf"], ["all", "fraction:0.1"], seeds=3)
    >>> len(plan.cells), plan.cells[0].stream, plan.cells[0].model
    (24, 'sea', 'devdan')
    """

    streams: list[str]
    models: list[str]
    labels: list[str]
    seeds: int = 5
    chunk: int | None = None  # None: 500, or a named stream's own
    limit: int | None = None
    files: dict[str, StreamFile] = field(default_factory=dict)  # the streams that have no name
    stop_after: float | None = None  # minutes that a cell may take
    missing: dict[str, str] = field(default_factory=dict)  # streams missing on this machine, and how to get them
    models_missing: dict[str, str] = field(default_factory=dict)
    command: str = ""  # which runs it
    about: dict[str, str] = field(default_factory=dict)  # what each model is
    by: str | None = None  # the measure that models are ranked by; None: what suits each stream
    options: dict[str, tuple[str, ...]] = field(default_factory=dict)  # of models, as they were typed

    @classmethod
    def from_json(cls, content: Any) -> GridPlan:
        """The plan that was written as this object; raises an error if it is none."""
        known = {option.name: content[option.name] for option in fields(cls) if option.name in content}
        files = {name: StreamFile.from_json(file) for name, file in known.pop("files", {}).items()}
        options = {name: tuple(map(str, own)) for name, own in known.pop("options", {}).items()}
        plan = cls(**known, files=files, options=options)
        for name in ("streams", "models", "labels"):
            axis = getattr(plan, name)
            is_axis = isinstance(axis, list) and axis and all(isinstance(value, str) for value in axis)
            require(bool(is_axis), name, "a list of names", axis)
        for name in ("seeds", "chunk", "limit"):
            n = getattr(plan, name)
            require(is_count(n) or (n is None and name != "seeds"), name, "an integer of at least 1", n)
        if plan.by is not None:
            plan.by = ranked_by(str(plan.by))
        for name in ("missing", "models_missing", "about"):
            require(isinstance(getattr(plan, name), dict), name, "an object", getattr(plan, name))
        return plan

    def prepare(self, data: Path | None = None, options: Sequence[str] = ()) -> list[str]:
        """Find out what cannot be run here; returns messages about what is left out.

        ``options``, as typed, are for those of the models that have them. A file that cannot be read is an error, since
        the user named it, and so is an option that no model has.
        """
        named_models.parse_options(options)
        for name in self.streams:
            try:
                stream = Cell(name, "", file=self.files.get(name)).open(data)
                if name in self.files:
                    Instructions(**self.files[name].columns).check(stream.feature_names or ())
            except StreamError as error:
                if name in self.files:
                    raise
                self.missing[name] = str(error)
        for name in self.models:
            try:
                named_models.build(name)
            except ValueError as error:
                self.models_missing[name] = str(error)
                continue
            if own := named_models.options_taken(name, options):
                named_models.build(name, options=named_models.parse_options(own))
                self.options[name] = own
        taken = {text for own in self.options.values() for text in own}
        for text in options:
            if text not in taken:
                raise ValueError(f"none of the models takes --set {text}: {', '.join(self.models)}")
        self.about = {name: named_models.MODELS[name].about for name in self.models if name in named_models.MODELS}
        return [*self.missing.values(), *self.models_missing.values()]

    def cell(self, stream: str, model: str, labels: str, seed: int) -> Cell:
        file, options = self.files.get(stream), self.options.get(model)
        return Cell(stream, model, labels, seed, self.chunk_of(stream), self.limit, file, options)

    def chunk_of(self, stream: str) -> int:
        """The size of the chunks of a stream."""
        own = ENTRIES[stream].chunk if stream in ENTRIES and stream not in self.files else Cell.chunk
        return own if self.chunk is None else self.chunk

    @property
    def cells(self) -> list[Cell]:
        """All cells that can be run, seed by seed, so that an interrupted grid covers every model and stream."""
        grid = product(range(self.seeds), self.labels, self.streams, self.models)
        return [
            self.cell(stream, name, policy, seed)
            for seed, policy, stream, name in grid
            if stream not in self.missing and name not in self.models_missing
        ]

    def allows_more_than(self, minutes: float) -> bool:
        """Whether a cell may take longer than this."""
        return self.stop_after is None or self.stop_after > minutes


def ranked_by(name: str) -> str:
    """The name in tables of a measure that models can be ranked by."""
    return next(own for own, measure in in_tables().items() if measure is named(name, in_tables().values()))


class GridFolder:
    """The folder of a grid, existing or not. A cell has one result file, so that only missing cells are run."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.plan_path = self.path / "table.json"
        self.page_path = self.path / "table.html"
        self.markdown_path = self.path / "table.md"
        self.csv_path = self.path / "table.csv"
        self.latex_path = self.path / "table.tex"
        self.ranks_path = self.path / "ranks.svg"
        self.scarcity_path = self.path / "scarcity.svg"
        self._cells = self.path / "cells"

    def plan(self) -> GridPlan:
        """The plan in this folder."""
        try:
            return GridPlan.from_json(json.loads(self.plan_path.read_bytes()))
        except (FileNotFoundError, NotADirectoryError):
            raise GridError(f"no table in {self.path}: it has no {self.plan_path.name}") from None
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise GridError(f"{self.plan_path} is damaged: {' '.join(str(error).split())}") from None

    def write_plan(self, plan: GridPlan) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        write_atomically(self.plan_path, (json.dumps(asdict(plan), indent=2) + "\n").encode())

    def cell_path(self, cell: Cell) -> Path:
        """The result file of a cell."""
        return self._cells / cell.stream / cell.model / cell.labels.replace(":", "-") / f"{cell.seed}.json"

    def result(self, cell: Cell) -> dict[str, Any] | None:
        """The result of a cell, if it was run with the same settings; a damaged file counts as missing."""
        result = _read(self.cell_path(cell))
        try:
            return result if result is not None and Cell.from_json(result) == cell else None
        except (ValueError, TypeError, KeyError, AttributeError):
            return None

    def write_result(self, cell: Cell, result: Mapping[str, Any]) -> None:
        path = self.cell_path(cell)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps(asdict(cell) | dict(result), allow_nan=False).encode() + b"\n")

    def split(self, plan: GridPlan) -> tuple[list[tuple[Cell, dict[str, Any]]], list[Cell]]:
        """The plan's finished cells with their results, and those that were not run, failed, or may take longer now.

        Those of another version, whose model did something else, are run again, too.
        """
        done, wanted = [], []
        for cell in plan.cells:
            result = self.result(cell)
            minutes = None if result is None else stopped_after(result)
            is_short = minutes is not None and plan.allows_more_than(minutes)
            if result is None or "error" in result or is_short or not is_of_now(result):
                wanted.append(cell)
            else:
                done.append((cell, result))
        return done, wanted

    def results(self, labels: str = "all") -> Iterator[dict[str, Any]]:
        """The results with this label policy, whatever their settings, without failed and stopped cells."""
        return (result for result in self._all(labels) if "error" not in result and stopped_after(result) is None)

    def stopped(self, labels: str = "all") -> Iterator[dict[str, Any]]:
        """The results of the cells with this label policy that took too long, whatever their settings."""
        return (result for result in self._all(labels) if stopped_after(result) is not None)

    def _all(self, labels: str) -> Iterator[dict[str, Any]]:
        for path in sorted(self._cells.glob(f"*/*/{labels.replace(':', '-')}/*.json")):
            if (result := _read(path)) is not None:
                yield result


def stopped_after(result: Mapping[str, Any]) -> float | None:
    """The minutes after which a cell was stopped; None if it was not.

    >>> stopped_after({"stopped_after": 20}), stopped_after({"cr_mean": 90.0})
    (20, None)
    """
    minutes = result.get("stopped_after")
    return minutes if isinstance(minutes, (int, float)) else None


def _read(path: Path) -> dict[str, Any] | None:
    try:
        result = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return result if isinstance(result, dict) else None


# --- Running cells in parallel processes, and how long the remaining ones may take -------------------------------


_NOT_IN_CELLS = (  # too long, or not in any table
    *("classes", "recall", "precision", "f1", "average_precision", "counts", "drifts", "reliability"),
    *("alert_recall", "alert_precision", "alerts", "costs", "class_drifts"),
)
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
    did = {"behaviour": behaviour(cell.model)} if is_ours(cell.model) else {}
    return result | did | ({"notes": notes} if notes else {})


def _evaluate(cell: Cell, data: Path | None, stop_after: float | None) -> dict[str, Any]:
    begin = time.perf_counter()
    try:
        model = named_models.build(cell.model, cell.seed, named_models.parse_options(cell.options or ()))
        if cell.file is not None and isinstance(model, StreamClassifier):
            named_models.set_columns(model, cell.file.columns)
        histories = None if cell.file is None else cell.file.histories
        stream, model, classes, scaled = prepared(cell.open(data), model, histories=histories)
        if isinstance(model, StreamClassifier):
            compile_kernel(model)
        summary, start, worked = Summary(), time.perf_counter(), time.process_time()
        evaluation = Evaluation(model, cell.labels, classes=classes, seed=cell.seed, histories=histories)
        for record in evaluation.over(stream):
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
        "cpu_seconds": time.process_time() - worked,
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
