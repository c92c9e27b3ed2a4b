"""Reports and figures from stored records; nothing is run again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from devdan.atomic import write_atomically
from devdan.report.comparison import page_of_runs
from devdan.report.grid.grid_findings import Findings
from devdan.report.grid.grid_page import page_of_grid, ranks_picture, scarcity_picture
from devdan.report.grid.grid_text import document, latex, rows, sections, table_csv
from devdan.report.grid.shown_grid import read_grid
from devdan.report.run_page import page_of_run, picture_of_run
from devdan.report.shown_run import ReportError, RunReader, read_run
from devdan.runs.gridfolder import GridFolder

__all__ = [
    "ReportError",
    "RunReport",
    "markdown_sections",
    "read_rows",
    "write_picture",
    "write_report",
    "write_tables",
]


def write_report(folders: Sequence[Path], path: Path) -> None:
    """Write a self-contained page: the report of one run, or a comparison of several."""
    if not folders:
        raise ReportError("a report needs at least one run folder, got none")
    runs = [read_run(Path(folder)) for folder in folders]
    page = page_of_run(runs[0]) if len(runs) == 1 else page_of_runs(runs)
    write_atomically(Path(path), page.encode())


class RunReport:
    """The page of a run, written again and again while the run goes on; no record is read twice."""

    def __init__(self, folder: Path, path: Path) -> None:
        self._reader, self._path = RunReader(folder), path

    def write(self, *, goes_on: bool) -> None:
        """Write the page of all records so far, if any; while the run goes on, the page loads itself again."""
        write_atomically(self._path, page_of_run(self._reader.so_far(), goes_on=goes_on).encode())


def write_picture(folder: Path, path: Path) -> None:
    """Write a run's accuracy and hidden units over time as a standalone SVG."""
    write_atomically(Path(path), picture_of_run(read_run(Path(folder))).encode())


def write_tables(folder: Path) -> list[Path]:
    """Write the results of a grid of runs next to its table.json: Markdown, CSV, LaTeX, a page and its figures."""
    kept, findings = GridFolder(folder), Findings(read_grid(Path(folder)))
    texts = {
        kept.markdown_path: document(findings),
        kept.csv_path: table_csv(findings.grid),
        kept.latex_path: latex(findings),
        kept.page_path: page_of_grid(findings),
    }
    pictures = {kept.ranks_path: ranks_picture(findings), kept.scarcity_path: scarcity_picture(findings)}
    texts |= {path: picture for path, picture in pictures.items() if picture}
    for path in pictures.keys() - texts.keys():
        path.unlink(missing_ok=True)  # of an earlier table
    for path, text in texts.items():
        write_atomically(path, text.encode())
    return list(texts)


def read_rows(folder: Path) -> dict[str, Any]:
    """The results of a grid of runs as data: the number of runs done and planned, and the rows of table.csv."""
    grid = read_grid(Path(folder))
    return {
        "n_runs": len(grid.results),
        "n_failed": len(grid.failures),
        "n_stopped": len(grid.stopped),
        "n_planned": grid.n_cells,
        "rows": [*rows(grid)],
    }


def markdown_sections(folder: Path) -> dict[str, str]:
    """The results of a grid of runs in Markdown: progress, table, ranks, scarcity, missing, failures and settings."""
    return sections(Findings(read_grid(Path(folder))))
