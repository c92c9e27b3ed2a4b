"""``devdan streams``, ``devdan fetch`` and ``devdan compile``: what a machine may need before a run."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated, Any

import typer

from devdan.cli.arguments import Data
from devdan.cli.console import clear_errors, err, out, say
from devdan.streams import entries


def streams(
    data: Data = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list.")] = False,
) -> None:
    """List the paper's nine streams and the real ones, and which of them are on this machine.

    `--json` also tells what they are, and their licences.
    """
    from devdan.cli import display

    rows = [_row(entry, data) for entry in entries.ENTRIES.values()]
    if as_json:
        print(json.dumps(rows))
        return
    out.print(display.listing(rows))
    out.print(f"\nData folder: {entries.data_folder(data)}; devdan fetch NAME downloads into it", highlight=False)


def _row(entry: entries.Entry, data: Path | None) -> dict[str, Any]:
    path = entries.found(entry.name, data)
    made = "generated" if entry.is_generated else None
    return {
        "name": entry.name,
        "suite": entry.suite,
        "n_samples": entry.n_samples,
        "n_features": entry.n_features,
        "n_classes": entry.n_classes,
        "origin": entry.origin,
        "here": str(path.relative_to(entries.data_folder(data))) if path else made,
        "get": f"devdan fetch {entry.name}" if entry.can_be_fetched else None,
        "chunk": entry.chunk,
        "about": entry.about,
        "licence": entry.licence,
    }


def _fetchable(incomplete: str) -> list[str]:
    return [name for name, entry in entries.ENTRIES.items() if entry.can_be_fetched and name.startswith(incomplete)]


def fetch(
    names: Annotated[list[str], typer.Argument(help="Streams to download.", autocompletion=_fetchable)],
    data: Data = None,
) -> None:
    """Download streams to the data folder; an interrupted download resumes where it stopped."""
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


def compile_models(
    baselines: Annotated[
        bool, typer.Option("--baselines", help="Also the fuzzy rules that `devdan table` compares with.")
    ] = False,
) -> None:
    """Compile the models for this machine in advance, so that no later call has to wait.

    Otherwise, each part of the models is compiled when it is first called, and cached for later processes. Useful when
    an image is built, or before many workers start at once.
    """
    from functools import partial

    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from devdan.bench import named_models
    from devdan.evaluation.measures import OF_RULES
    from devdan.fleet.fleet import compile_fleet
    from devdan.histories.histories import compile_histories
    from devdan.model import compilation

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with clear_errors():
        if os.environ.get("NUMBA_DISABLE_JIT", "0") != "0":
            raise ValueError("NUMBA_DISABLE_JIT is set, so nothing can be compiled")
        jobs = [*compilation.jobs(), compilation.Job("fleet", compile_fleet)]
        jobs += [compilation.Job("histories", compile_histories)]
        if baselines:
            jobs += [
                compilation.Job(name, partial(compilation.compile_kernel, named_models.build(name)))
                for name in OF_RULES
            ]
        outcomes = []
        with Progress(*columns, console=err, disable=not err.is_terminal, transient=True) as bar:
            task = bar.add_task(jobs[0].name, total=len(jobs))
            for outcome in compilation.compile_ahead(jobs):
                outcomes.append(outcome)
                following = jobs[len(outcomes)].name if len(outcomes) < len(jobs) else ""
                bar.update(task, advance=1, description=following)
                took = f"compiled in {outcome.seconds:.1f} s" if outcome.n_compiled else "compiled already"
                say(f"{outcome.name}: {took}")
        folders = " and ".join(str(folder) for folder in compilation.cache_folders())
    seconds = sum(outcome.seconds for outcome in outcomes)
    if any(outcome.n_compiled for outcome in outcomes):
        out.print(f"Compiled in {seconds:.1f} s, cached in {folders}", highlight=False)
    else:
        out.print(f"Nothing to do: everything is compiled already, in {folders}", highlight=False)
