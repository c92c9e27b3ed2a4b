"""``devdan streams`` and ``devdan fetch``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from devdan.cli.arguments import Data
from devdan.cli.console import clear_errors, err, out
from devdan.streams import entries


def streams(
    data: Data = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list.")] = False,
) -> None:
    """List the paper's nine streams and which of them are on this machine."""
    from devdan.cli import display

    rows = [_row(entry, data) for entry in entries.ENTRIES.values()]
    if as_json:
        print(json.dumps(rows))
        return
    out.print(display.listing(rows))
    out.print(f"\nData folder: {entries.data_folder(data)}", highlight=False)


def _row(entry: entries.Entry, data: Path | None) -> dict[str, Any]:
    path = entries.found(entry.name, data)
    made = "generated" if entry.is_generated else None
    return {
        "name": entry.name,
        "n_samples": entry.n_samples,
        "n_features": entry.n_features,
        "n_classes": entry.n_classes,
        "origin": entry.origin,
        "here": str(path.relative_to(entries.data_folder(data))) if path else made,
        "get": f"devdan fetch {entry.name}" if entry.url else "your own file",
    }


def _fetchable(incomplete: str) -> list[str]:
    return [name for name, entry in entries.ENTRIES.items() if entry.url and name.startswith(incomplete)]


def fetch(
    names: Annotated[list[str], typer.Argument(help="Streams to download.", autocompletion=_fetchable)],
    data: Data = None,
) -> None:
    """Download the paper's streams to the data folder; an interrupted download resumes where it stopped."""
    with clear_errors():
        for name in names:
            _fetch(name, data)


def _fetch(name: str, data: Path | None) -> None:
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    from devdan.streams import download

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=err, disable=not err.is_terminal) as bar:
        task = bar.add_task(name, total=None)
        path = download.fetch(name, data, progress=lambda done, total: bar.update(task, completed=done, total=total))
    out.print(f"{name}: {path}", highlight=False)
