"""Reports and figures from stored records; nothing is run again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from devdan.atomic import write_atomically
from devdan.report.comparison import comparing, page_of_runs
from devdan.report.run_page import page_of_run, picture_of_run
from devdan.report.shown_run import ReportError, RunReader, read_run

__all__ = [
    "ReportError",
    "RunReport",
    "write_picture",
    "write_report",
]


def write_report(folders: Sequence[Path], path: Path, by: str | None = None) -> None:
    """Write a self-contained page: the report of one run, or a comparison of several, by a measure if it is named."""
    if not folders:
        raise ReportError("a report needs at least one run folder, got none")
    if len(folders) == 1 and by is not None:
        raise ReportError(f"by is for comparisons, got by={by!r} for one run: name more of them")
    measure = None if by is None else comparing(by)
    runs = [read_run(Path(folder), in_parts=len(folders) > 1) for folder in folders]
    page = page_of_run(runs[0]) if len(runs) == 1 else page_of_runs(runs, measure)
    write_atomically(Path(path), page.encode())


class RunReport:
    """The page of a run, written again and again during the run; no record is read twice."""

    def __init__(self, folder: Path, path: Path) -> None:
        self._reader, self._path = RunReader(folder), path

    def write(self, *, goes_on: bool) -> None:
        """Write the page of all records so far, if any; during the run, the page reloads itself."""
        write_atomically(self._path, page_of_run(self._reader.so_far(), goes_on=goes_on).encode())


def write_picture(folder: Path, path: Path, *, animated: bool = False) -> None:
    """Write how good a run was and its hidden units, over time, as an SVG, whose curves grow if it is animated."""
    run = read_run(Path(folder), in_parts=True)
    write_atomically(Path(path), picture_of_run(run, animated=animated).encode())
