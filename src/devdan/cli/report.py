"""``devdan report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from devdan.cli.arguments import a_path
from devdan.cli.console import clear_errors, out


def report(
    folders: Annotated[list[Path], typer.Argument(help="Run folders; several runs are compared.")],
    path: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(
            "--out",
            metavar="PATH",
            parser=a_path("--out"),
            help="The page; by default report.html in the run's folder, or here "
            "comparison.html, comparison-2.html, …, whichever is free.",
        ),
    ] = None,
    picture: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(
            metavar="PATH", parser=a_path("--picture"), help="Draw the run as an SVG figure to this file instead."
        ),
    ] = None,
) -> None:
    """Write the report of a run again from its records, or compare several runs."""
    from devdan.report import write_picture, write_report
    from devdan.runs.runfolder import RunFolder, free_path

    with clear_errors():
        if picture is not None:
            if len(folders) > 1:
                raise ValueError("--picture takes one run")
            write_picture(folders[0], picture)
            path = picture
        else:
            if path is None and len(folders) == 1:
                path = RunFolder(folders[0]).report_path
            path = path or free_path(Path(), "comparison", ".html")  # only what --out names is overwritten
            write_report(folders, path)
    out.print(f"Report: {path}", highlight=False)
