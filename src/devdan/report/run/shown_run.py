"""A run as it is shown: what was run, what it came to, and a bounded number of points to draw."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from devdan.evaluation.measures import units
from devdan.evaluation.record import Record, Summary
from devdan.report.drawing.words import how_many
from devdan.report.errors import ReportError
from devdan.report.run.bins import Bin, Bins
from devdan.runs.runfolder import RunError, RunFolder


@dataclass(frozen=True, eq=False)
class ShownRun:
    """The data of one run that the page shows."""

    name: str  # of its folder
    info: dict[str, Any]
    finished: bool
    summary: Summary
    bins: Bins
    last: Record
    columns: list[tuple[str, str]] = field(default_factory=list)  # what became of each, if they have names

    @property
    def title(self) -> str:
        return " · ".join(str(self.info[key]) for key in ("stream", "model") if self.info.get(key)) or self.name

    @property
    def units(self) -> str:
        """What the model's units are called."""
        return units(self.info.get("model"))

    @cached_property
    def figures(self) -> dict[str, Any]:
        """What it has come to, by the measures' keys."""
        return self.summary.figures()

    @property
    def progress(self) -> str:
        """How far an unfinished run has got."""
        of, done = self.info.get("n_samples"), self.summary.n_samples
        if isinstance(of, int) and of > done:
            return f"It has processed {done:,} of {of:,} samples ({100 * done / of:.0f} %)."
        return f"It has processed {how_many(done, 'sample')}."


def read_run(folder: Path) -> ShownRun:
    """Read the run in a folder, finished or not; memory does not grow with the number of records."""
    run = RunFolder(folder)
    if not folder.is_dir():
        raise ReportError(f"no such folder: {folder}")
    try:
        info = run.settings()
    except RunError:
        raise ReportError(f"{run.settings_path} is damaged") from None
    if info is None:
        raise ReportError(f"no run in {folder}: it has no {run.settings_path.name}")
    summary, bins, last = Summary(), Bins(), None
    try:
        for number, last in enumerate(run.records(), start=1):
            try:
                summary.add(last)
                bins.add(Bin.of(last))
            except (TypeError, ValueError) as error:
                raise ReportError(f"{run.records_path}, line {number}: not a record ({error})") from None
    except RunError as error:
        raise ReportError(str(error)) from None
    if last is None:
        raise ReportError(f"no records yet in {folder}")
    return ShownRun(folder.resolve().name, info, run.has_summary, summary, bins, last, _columns(run))


def _columns(run: RunFolder) -> list[tuple[str, str]]:
    """What became of each column; runs of earlier versions, and of streams without names, do not say."""
    try:
        kept = run.summary().get("columns", []) if run.has_summary else []
        return [(str(column["name"]), str(column["became"])) for column in kept]
    except (RunError, TypeError, KeyError, AttributeError):
        return []
