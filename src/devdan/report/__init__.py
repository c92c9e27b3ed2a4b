"""Records in, pages and pictures out; nothing is run again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from devdan.atomic import write_atomically
from devdan.report.page import page_of_run, page_of_runs
from devdan.report.picture import picture_of_run
from devdan.report.runs import ReportError, read_run

__all__ = ["ReportError", "write_picture", "write_report"]


def write_report(folders: Sequence[Path], path: Path) -> None:
    """Write one page, complete in itself: of the run in a folder, or of several runs side by side."""
    if not folders:
        raise ReportError("a report needs a run, got no folder")
    runs = [read_run(Path(folder)) for folder in folders]
    page = page_of_run(runs[0]) if len(runs) == 1 else page_of_runs(runs)
    write_atomically(Path(path), page.encode())


def write_picture(folder: Path, path: Path) -> None:
    """Write a run's accuracy and hidden units over time as a standalone SVG."""
    write_atomically(Path(path), picture_of_run(read_run(Path(folder))).encode())
