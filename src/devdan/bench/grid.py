"""A grid of runs, models × streams × labels × seeds: its plan, its cells, and the folder with their results."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import product
from pathlib import Path
from typing import Any

from devdan.atomic import write_atomically
from devdan.bench import models
from devdan.model.options import is_count, require
from devdan.runs.preparation import fingerprint
from devdan.streams import Stream, StreamError, open_stream


class GridError(ValueError):
    """A folder without a grid that can be read; the message is one line."""


@dataclass(frozen=True)
class StreamFile:
    """A user's file, how to read it, and a fingerprint to notice changes."""

    path: str
    target: str | None = None
    drop: tuple[str, ...] = ()
    header: bool | None = None
    fingerprint: str | None = None

    @classmethod
    def at(
        cls, path: str, target: str | None = None, drop: Sequence[str] = (), header: bool | None = None
    ) -> StreamFile:
        """The file in its current state."""
        return cls(path, target, tuple(drop), header, fingerprint(Path(path)))


@dataclass(frozen=True)
class Cell:
    """One run of the grid: all that its result depends on."""

    stream: str
    model: str
    labels: str = "all"
    seed: int = 0
    chunk: int = 500
    limit: int | None = None
    file: StreamFile | None = None  # the file of the stream; None for the paper's streams

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

    def located(self) -> Cell:
        """The same with the whole path of its file, for a process in another folder."""
        file = self.file
        return self if file is None else replace(self, file=replace(file, path=str(Path(file.path).absolute())))


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
    chunk: int = 500
    limit: int | None = None
    files: dict[str, StreamFile] = field(default_factory=dict)  # the streams that are not the paper's
    stop_after: float | None = None  # minutes that a cell may take
    missing: dict[str, str] = field(default_factory=dict)  # streams missing on this machine, and how to get them
    models_missing: dict[str, str] = field(default_factory=dict)
    command: str = ""  # which runs it
    about: dict[str, str] = field(default_factory=dict)  # what each model is

    @classmethod
    def from_json(cls, content: Any) -> GridPlan:
        """The plan that was written as this object; raises an error if it is none."""
        known = {option.name: content[option.name] for option in fields(cls) if option.name in content}
        files = {
            name: StreamFile(**file | {"drop": tuple(file["drop"])}) for name, file in known.pop("files", {}).items()
        }
        plan = cls(**known, files=files)
        for name in ("streams", "models", "labels"):
            axis = getattr(plan, name)
            is_axis = isinstance(axis, list) and axis and all(isinstance(value, str) for value in axis)
            require(bool(is_axis), name, "a list of names", axis)
        for name in ("seeds", "chunk", "limit"):
            n = getattr(plan, name)
            require(is_count(n) or (n is None and name == "limit"), name, "an integer of at least 1", n)
        for name in ("missing", "models_missing", "about"):
            require(isinstance(getattr(plan, name), dict), name, "an object", getattr(plan, name))
        return plan

    def prepare(self, data: Path | None = None) -> list[str]:
        """Find out what cannot be run here; returns messages about what is left out.

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
                models.build(name)
            except ValueError as error:
                self.models_missing[name] = str(error)
        self.about = {name: models.MODELS[name].about for name in self.models if name in models.MODELS}
        return [*self.missing.values(), *self.models_missing.values()]

    def cell(self, stream: str, model: str, labels: str, seed: int) -> Cell:
        """One cell."""
        return Cell(stream, model, labels, seed, self.chunk, self.limit, self.files.get(stream))

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
        """Write the plan."""
        self.path.mkdir(parents=True, exist_ok=True)
        write_atomically(self.plan_path, (json.dumps(asdict(plan), indent=2) + "\n").encode())

    def cell_path(self, cell: Cell) -> Path:
        """The result file of a cell."""
        return self._cells / cell.stream / cell.model / cell.labels.replace(":", "-") / f"{cell.seed}.json"

    def result(self, cell: Cell) -> dict[str, Any] | None:
        """The result of a cell, if it was run with the same settings; a damaged file counts as missing."""
        result = _read(self.cell_path(cell))
        settings = json.loads(json.dumps(asdict(cell)))  # with lists for tuples, as in the file
        matches = result is not None and all(result.get(name) == value for name, value in settings.items())
        return result if matches else None

    def write_result(self, cell: Cell, result: Mapping[str, Any]) -> None:
        """Write the result of a cell."""
        path = self.cell_path(cell)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps(asdict(cell) | dict(result), allow_nan=False).encode() + b"\n")

    def split(self, plan: GridPlan) -> tuple[list[tuple[Cell, dict[str, Any]]], list[Cell]]:
        """The plan's finished cells with their results, and those that were not run, failed, or may take longer now."""
        done, wanted = [], []
        for cell in plan.cells:
            result = self.result(cell)
            minutes = None if result is None else stopped_after(result)
            if result is None or "error" in result or (minutes is not None and plan.allows_more_than(minutes)):
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
