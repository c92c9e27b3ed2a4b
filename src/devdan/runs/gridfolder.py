"""The folder of a grid of runs: its plan, a result for each cell, and what is drawn from them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from devdan.atomic import write_atomically
from devdan.runs.runfolder import RunError


class CellKey(NamedTuple):
    """Which cell of a grid it is."""

    stream: str
    model: str
    labels: str
    seed: int


class GridFolder:
    """Where a grid is kept, there or not. A cell has one result file, so that only what is missing is done again."""

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

    def plan(self) -> dict[str, Any]:
        """What the grid is made of, as it was written."""
        try:
            plan = json.loads(self.plan_path.read_bytes())
        except (FileNotFoundError, NotADirectoryError):
            raise RunError(f"no table in {self.path}: it has no {self.plan_path.name}") from None
        except ValueError:
            raise RunError(f"{self.plan_path} is damaged") from None
        if not isinstance(plan, dict):
            raise RunError(f"{self.plan_path} is damaged")
        return plan

    def write_plan(self, plan: Mapping[str, Any]) -> None:
        """Say what the grid is made of."""
        self.path.mkdir(parents=True, exist_ok=True)
        write_atomically(self.plan_path, (json.dumps(plan, indent=2) + "\n").encode())

    def cell_path(self, key: CellKey) -> Path:
        """Where the result of a cell is kept."""
        return self._cells / key.stream / key.model / key.labels.replace(":", "-") / f"{key.seed}.json"

    def result(self, key: CellKey, settings: Mapping[str, Any]) -> dict[str, Any] | None:
        """What a cell came to, if it was run with these settings; a damaged file is as good as none."""
        result = _read(self.cell_path(key))
        asked = json.loads(json.dumps(key._asdict() | dict(settings)))  # with lists for tuples, as in the file
        matches = result is not None and all(result.get(name) == value for name, value in asked.items())
        return result if matches else None

    def write_result(self, key: CellKey, settings: Mapping[str, Any], result: Mapping[str, Any]) -> None:
        """Keep what a cell came to."""
        path = self.cell_path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        content = key._asdict() | dict(settings) | dict(result)
        write_atomically(path, json.dumps(content, allow_nan=False).encode() + b"\n")

    def results(self, labels: str = "all") -> Iterator[dict[str, Any]]:
        """What all cells of a label policy came to, whatever their settings; those without figures are left out."""
        return (result for result in self._all(labels) if "error" not in result and stopped_after(result) is None)

    def stopped(self, labels: str = "all") -> Iterator[dict[str, Any]]:
        """The cells of a label policy that took too long, whatever their settings."""
        return (result for result in self._all(labels) if stopped_after(result) is not None)

    def _all(self, labels: str) -> Iterator[dict[str, Any]]:
        for path in sorted(self._cells.glob(f"*/*/{labels.replace(':', '-')}/*.json")):
            if (result := _read(path)) is not None:
                yield result


def stopped_after(result: Mapping[str, Any]) -> float | None:
    """After how many minutes a cell was stopped; None if it was not.

    >>> stopped_after({"stopped_after": 20}), stopped_after({"cr_mean": 90.0})
    (20, None)
    """
    minutes = result.get("stopped_after")
    return minutes if isinstance(minutes, (int, float)) else None


def settings_of(plan: Mapping[str, Any], stream: str) -> dict[str, Any]:
    """The settings that a plan gives the cells of a stream, beside their key."""
    return {name: plan[name] for name in ("chunk", "limit") if name in plan} | {"file": files_of(plan).get(stream)}


def files_of(plan: Mapping[str, Any]) -> dict[str, Any]:
    """The streams of a plan that are files, and how they were read."""
    files = plan.get("files")
    return files if isinstance(files, dict) else {}


def _read(path: Path) -> dict[str, Any] | None:
    try:
        result = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return result if isinstance(result, dict) else None
