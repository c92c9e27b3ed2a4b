"""``devdan table``."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from devdan.bench import named_models
from devdan.cli.arguments import (
    By,
    ChunkOrOwn,
    Data,
    History,
    Settings,
    Time,
    command,
    histories,
    option,
    path_option,
    refuse_reading,
    takes_reading,
    words,
)
from devdan.cli.console import clear_errors, err, note, out, say, show_notes
from devdan.streams import entries
from devdan.streams.reading import Reading

if TYPE_CHECKING:
    from devdan.bench.grid import Cell, GridFolder, GridPlan, StreamFile
    from devdan.histories.histories import Histories

SCARCE = ("all", "fraction:0.5", "fraction:0.25", "fraction:0.1", "fraction:0.05", "delay:1000")


@takes_reading()
def table(
    reading: Reading,
    columns: dict[str, Any],
    names: Annotated[
        Optional[str],
        option(
            "NAMES",
            "Comma-separated streams: names, as in `devdan streams`, or files, as in `devdan run`; default: the "
            "paper's. Put a name that contains a comma in double quotes, as in CSV: 'sea,\"a, b.csv\"'.",
            "--streams",
        ),
    ] = None,
    suite: Annotated[
        Optional[str],
        option("SUITE", f"Short for --streams with all streams of {' or '.join(entries.SUITES)}."),
    ] = None,
    wanted: Annotated[str, option("NAMES", "Comma-separated models; default: all.", "--models")] = ",".join(
        named_models.NAMES
    ),
    options: Settings = None,
    seeds: Annotated[int, option("N", "Runs of each, with seeds 0, 1, ….", min=1)] = 5,
    labels: Annotated[str, option("WHICH", "Comma-separated label policies, as in `devdan run`.")] = "all",
    scarce: Annotated[
        bool, typer.Option("--scarce", help=f"Short for --labels {','.join(SCARCE)}", show_default=False)
    ] = False,
    chunk: ChunkOrOwn = None,
    limit: Annotated[
        Optional[int],
        option("N", "Stop each run after this many samples.", min=1),
    ] = None,
    stop_after: Annotated[
        Optional[float],
        option(
            "MINUTES",
            "Stop a run that takes longer; it has no result, and is run again only if there is more time.",
            min=0.0,
        ),
    ] = None,
    by: By = None,
    history: History = None,
    time: Time = None,
    jobs: Annotated[int, option("N", "Number of parallel processes.", min=1)] = 1,
    data: Data = None,
    folder: Annotated[Path, path_option("--out", "DIR", "Output folder.")] = Path("table"),
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Reproduce the paper's Table 1, next to its figures and other common methods, or compare methods on your files.

    Runs models × streams × seeds and writes table.html, table.md, table.csv and table.tex. If interrupted, the same
    command runs only what is missing; a run that fails is reported and does not stop the others.

    - devdan table --streams sea,hyperplane --models devdan,river-arf
    - devdan table --suite real --models devdan,devdan-ensemble,lightgbm-window-5000
    - devdan table --streams my.csv --target label --models devdan,river-arf,sklearn-mlp --jobs 2
    - devdan table --streams tx.csv --target fraud --history customer --time timestamp --models devdan,river-arf

    An option (--set) is for those of the models that have it.
    """
    from devdan.bench.grid import GridFolder, GridPlan, ranked_by
    from devdan.bench.grid_page import read_rows, write_tables
    from devdan.evaluation.labels import Labels

    show_notes()
    with clear_errors():
        if names is not None and suite is not None:
            raise ValueError("--suite names streams, as --streams does: use one of them")
        known = entries.suite(_listed([suite or "paper"], entries.SUITES, "suite")[0])
        streams, files = _streams(
            ",".join(known) if names is None else names, reading, columns, histories(history or [], time)
        )
        plan = GridPlan(
            streams,
            _listed(words(wanted), named_models.NAMES, "model"),
            [str(Labels.parse(policy)) for policy in (SCARCE if scarce else labels.split(","))],
            seeds,
            chunk,
            limit,
            files,
            stop_after,
            command=command(),
            by=None if by is None else ranked_by(by),
        )
        for message in plan.prepare(data, options or []):
            say(f"Left out: {message}")
        kept = GridFolder(folder)
        kept.write_plan(plan)
        n_done, n_stopped, n_failed = _fill(plan, kept, data, jobs)
        write_tables(folder)
    if as_json:
        print(json.dumps(read_rows(folder)))
        return
    stopped = f", {n_stopped} stopped after {stop_after:g} min" if n_stopped else ""
    failed = f", {n_failed} failed; the same command tries them again" if n_failed else ""
    out.print(f"{n_done} runs{stopped}{failed}. Report: {kept.page_path}", highlight=False)


def _streams(
    text: str, reading: Reading, columns: dict[str, Any], past: Histories | None
) -> tuple[list[str], dict[str, StreamFile]]:
    """The streams in a list, and the files among them; options that do not apply to them are errors, not ignored.

    Rows of files get the histories ``past``, in front of every model.
    """
    from devdan.bench.grid import StreamFile
    from devdan.streams.stream import name_of

    files: dict[str, StreamFile] = {}
    names: list[str] = []
    for word in [text] if os.path.isfile(text) else words(text):
        name = word
        if not entries.is_name(word) and (Path(word).suffix or Path(word).exists()):
            file, taken = Path(word).name, {*entries.ENTRIES, *files}
            name = next((own for own in (name_of(word), file) if own not in taken), "")
            if not name:
                raise ValueError(f"two streams would have the name {file}: rename one of the files")
            files[name] = StreamFile.at(word, reading, columns.get("dates"), past)
        names.append(name)
    if not files:
        refuse_reading(reading, "all of these are known by name")
        if past is not None:
            raise ValueError("--history is for files; all of these are known by name")
    return _listed(names, {**entries.ENTRIES, **files}, "stream"), files


def _listed(names: list[str], known: Collection[str], kind: str) -> list[str]:
    """The names; an unknown one is an error."""
    for name in names:
        if name not in known:
            raise ValueError(f"there is no {kind} {name!r}; {named_models.near(name, known, f'the {kind}s are')}")
    if not names:
        raise ValueError(f"name at least one {kind}")
    return names


def _fill(plan: GridPlan, kept: GridFolder, data: Path | None, jobs: int) -> tuple[int, int, int]:
    """Run what is missing; returns the number of runs done, those of them that were stopped, and failed."""
    from rich.progress import BarColumn, Progress, TextColumn

    from devdan.bench.grid import RemainingTime, run_cells, stopped_after
    from devdan.cli import display

    done, missing = kept.split(plan)
    remaining = RemainingTime(missing, done, jobs, plan.stop_after)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed} of {task.total} runs, {task.fields[left]}"),
    )
    with Progress(*columns, console=err, disable=not err.is_terminal) as bar:
        task = bar.add_task(
            "table", total=len(done) + len(missing), completed=len(done), left=display.left(remaining.seconds)
        )

        noted: set[str] = set()

        def show(cell: Cell, result: dict[str, Any]) -> None:
            for text in result.get("notes", []):
                if text not in noted:
                    noted.add(text)
                    note(text)
            remaining.done(cell, result)
            if (minutes := stopped_after(result)) is not None:
                said = f"stopped after {minutes:g} min, at sample {result['n_samples']:,}"
            else:
                said = result.get("error") or display.headline(result)
            left = display.left(remaining.seconds)
            bar.update(task, advance=1, left=left)
            if not err.is_terminal or "error" in result:
                say(f"{cell.stream}, {cell.model}, {cell.labels}, seed {cell.seed}: {said}; {left}")

        try:
            run_cells(missing, kept.path, data=data, jobs=jobs, stop_after=plan.stop_after, progress=show)
        except KeyboardInterrupt:
            bar.stop()
            n = len(kept.split(plan)[0])
            say(f"Stopped after {n} of {len(done) + len(missing)} runs; the same command continues.")
            raise typer.Exit(128 + signal.SIGINT) from None
    done, failed = kept.split(plan)
    return len(done), sum(stopped_after(result) is not None for _, result in done), len(failed)
