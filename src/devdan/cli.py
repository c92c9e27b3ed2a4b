"""The command line: parse, call, print."""

from __future__ import annotations

import difflib
import json
import shlex
import signal
import sys
import warnings
from collections.abc import Container, Iterator
from contextlib import closing, contextmanager
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, NoReturn, Optional

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

import devdan
from devdan import display, grid, models, runs
from devdan.base import EvolvingClassifier
from devdan.classifier import compile_kernel
from devdan.labels import SPELLINGS, Labels
from devdan.prequential import Evaluation
from devdan.record import Summary
from devdan.report import read_rows, write_picture, write_report, write_tables
from devdan.streams import Stream, catalogue, fetch, open_stream

BAD_INPUT = 2
PARENT = Path("runs")

RUN_HELP = """Evaluate a model on a stream: predict each chunk, then learn from it.

Shows how it goes, and leaves records.jsonl, summary.json, the model and report.html, a page to look at.

- devdan run sea
- devdan run my.csv --target label --labels delay:1000
- devdan run weather --model dae --set n_hidden=20 --seed 3 --json

Which labels arrive, and when (several are joined by +):

""" + "\n".join(f"- --labels {text}: {what}" for text, what in SPELLINGS.items())


class Order(str, Enum):
    """How the samples are ordered."""

    file = "file"
    shuffled = "shuffled"


app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Learn from data streams with DEVDAN, a neural classifier that builds its own hidden layer.\n\n"
    "`devdan run sea` evaluates it on a built-in stream, `devdan run my.csv --target label` on a file of yours: each "
    "chunk is predicted first, then learned from. The page `report.html` shows what came out.",
)
out, err = Console(soft_wrap=True), Console(stderr=True)


def _fail(message: object) -> NoReturn:
    err.print(f"[red]devdan:[/] {escape(' '.join(str(message).split()))}", soft_wrap=True, highlight=False)
    raise typer.Exit(BAD_INPUT)


def _note(message: Warning | str, *_: Any, **__: Any) -> None:
    """A warning in one line."""
    err.print(f"[yellow]note:[/] {escape(str(message))}", soft_wrap=True, highlight=False)


@contextmanager
def _clear_errors() -> Iterator[None]:
    """What is wrong with the input, the options or the disk is said in one line."""
    try:
        yield
    except ValueError as error:  # StreamError, RunError, ReportError, and what a model says of its options and data
        _fail(error)
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        _fail(f"{error.strerror or error}{where}")


def _streams(incomplete: str) -> list[str]:
    """For the shell's completion: the paper's streams, and files."""
    folder, _, start = incomplete.rpartition("/")
    paths = sorted(Path(folder or ".").glob(f"{start}*")) if "*" not in start else []
    files = [f"{path}/" if path.is_dir() else str(path) for path in paths if not path.name.startswith(".")]
    return [name for name in catalogue.ENTRIES if name.startswith(incomplete)] + files


def _fetchable(incomplete: str) -> list[str]:
    return [name for name, entry in catalogue.ENTRIES.items() if entry.url and name.startswith(incomplete)]


def _version(wanted: bool) -> None:
    if wanted:
        print(f"devdan {devdan.__version__}")
        raise typer.Exit


STREAM, MODEL, RUN = "The stream", "The model", "The run"
Data = Annotated[
    Optional[Path],  # noqa: UP045 (typer on Python 3.10 takes this form)
    typer.Option(
        metavar="DIR",
        help="Folder with the paper's streams; else that of DEVDAN_DATA, else ~/devdan-data.",
        rich_help_panel=STREAM,
    ),
]


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Options of the program itself."""


@app.command(help=RUN_HELP)
def run(
    stream: Annotated[
        str,
        typer.Argument(
            help="One of the paper's streams by name, or a file: CSV, ARFF (also .gz), Parquet, NPZ.",
            metavar="STREAM",
            show_default=False,
            autocompletion=_streams,
        ),
    ],
    target: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            metavar="COLUMN",
            help="A file's column with the labels: name or position (0 the first, -1 the last).",
            rich_help_panel=STREAM,
        ),
    ] = None,
    drop: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(metavar="COLUMN", help="A column to leave out; may be repeated.", rich_help_panel=STREAM),
    ] = None,
    header: Annotated[
        Optional[bool],  # noqa: UP045
        typer.Option(
            "--header/--no-header",
            help="Whether a CSV file begins with names; by default, if its first line has no number.",
            rich_help_panel=STREAM,
        ),
    ] = None,
    order: Annotated[
        Optional[Order],  # noqa: UP045
        typer.Option(help="By default as in the paper: kddcup and rlcps shuffled.", rich_help_panel=STREAM),
    ] = None,
    limit: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(metavar="N", min=1, help="Stop after so many samples.", rich_help_panel=STREAM),
    ] = None,
    endless: Annotated[
        bool, typer.Option("--endless", help="Generate sea or hyperplane without end.", rich_help_panel=STREAM)
    ] = False,
    data: Data = None,
    model: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help=f"{', '.join(models.NAMES)}; or any class with partial_fit, or of River's, as module:Class.",
            rich_help_panel=MODEL,
            autocompletion=lambda: list(models.NAMES),
        ),
    ] = "devdan",
    options: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(
            "--set",
            metavar="OPTION=VALUE",
            help="An option of the model, such as masking=0.2; may be repeated.",
            rich_help_panel=MODEL,
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(metavar="N", min=0, help="Of the model and of the labels.", rich_help_panel=MODEL)
    ] = 0,
    chunk: Annotated[
        int, typer.Option(metavar="N", min=1, help="Samples predicted, then learned from.", rich_help_panel=RUN)
    ] = 500,
    labels: Annotated[
        str,
        typer.Option(
            metavar="WHICH",
            help="Which labels arrive, and when; see above.",
            rich_help_panel=RUN,
            autocompletion=lambda: list(SPELLINGS),
        ),
    ] = "all",
    folder: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(
            "--out",
            metavar="DIR",
            help=f"Folder for what comes out; by default a new one in {PARENT}/.",
            rich_help_panel=RUN,
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a run that was stopped.", rich_help_panel=RUN)
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Start again, even if --out holds a run.", rich_help_panel=RUN)
    ] = False,
    every: Annotated[
        float,
        typer.Option(
            "--checkpoint", metavar="SECONDS", min=0.0, help="How often to make it safe.", rich_help_panel=RUN
        ),
    ] = 5.0,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object and nothing else.", rich_help_panel=RUN)
    ] = False,
) -> None:
    """Parse, open, run, print."""
    warnings.showwarning = _note
    with _clear_errors():
        learner = models.build(model, seed, models.parse_options(options or []))
        policy = Labels.parse(labels, seed)
        samples = _opened(stream, target, drop or [], chunk, order, endless, header, data)
        samples = samples if limit is None else samples.first(limit)
        samples, classes, scaled = runs.prepared(samples, learner)
        settings = runs.describe(
            samples, learner, model=model, seed=seed, chunk=chunk, labels=str(policy), target=target, header=header,
            drop=drop, limit=limit, endless=endless, scaled=scaled, command=_again(samples, data),
        )  # fmt: skip
        if folder is None:
            folder = runs.free_folder(PARENT, f"{samples.name}-{model}".replace(":", "."), settings, resume)
        evaluation = Evaluation(learner, policy, classes=classes)
        with runs.Run(folder, samples, evaluation, settings, resume=resume, overwrite=overwrite, every=every) as job:
            if resume and job.is_finished:
                err.print(f"The run in {folder} is finished already.", highlight=False)
            else:
                if resume and not job.summary.n_chunks:
                    err.print("There is nothing to resume: starting from the beginning.")
                if isinstance(learner, EvolvingClassifier):
                    compile_kernel(learner)  # so that the times are the model's own
                _go(job)
        result = runs.read_summary(folder)
    if as_json:
        print(json.dumps({key: result[key] for key in (*runs.IDENTITY, *Summary().criteria())}))
        return
    out.print(display.results(result))
    out.print(f"\nLook at {folder / runs.REPORT}", highlight=False)


def _opened(
    source: str,
    target: str | None,
    drop: list[str],
    chunk: int,
    order: str | None,
    endless: bool,
    header: bool | None,
    data: Path | None,
) -> Stream:
    """The stream that the command line names; what does not fit it is an error, not ignored."""
    if catalogue.is_name(source):
        if target is not None or header is not None or drop:
            raise ValueError(f"--target, --drop and --header are for files; {source} is one of the paper's streams")
        return open_stream(source, chunk=chunk, data=data, order=order, endless=endless)
    if endless:
        raise ValueError("--endless is for sea and hyperplane, which are generated")
    if order not in (None, "file", "shuffled"):
        raise ValueError(f"--order must be file or shuffled, got {order!r}")
    stream = open_stream(source, target=target, chunk=chunk, header=header, drop=drop)
    return stream.shuffled() if order == "shuffled" else stream


def _command(*more: str) -> str:
    """The command that was typed, without what only mattered then."""
    return shlex.join(["devdan", *_typed(("--resume", "--overwrite"), ()), *more])


def _again(stream: Stream, data: Path | None) -> str:
    """A command that gives the same records wherever it is typed, into a folder of its own."""
    words = _typed(("--resume", "--overwrite", "--json"), ("--out", "--checkpoint"))
    from_folder = catalogue.is_name(stream.name) and stream.origin != "generated" and data is None
    return shlex.join(["devdan", *words, *(["--data", str(catalogue.data_folder())] if from_folder else [])])


def _typed(flags: tuple[str, ...], options: tuple[str, ...]) -> list[str]:
    """The words that were typed, without some flags, and some options with their values."""
    words, kept = iter(sys.argv[1:]), []
    for word in words:
        if word in options:
            next(words, None)
        elif word not in flags and word.partition("=")[0] not in options:
            kept.append(word)
    return kept


def _go(job: runs.Run) -> None:
    """Run it under the user's eyes; Ctrl-C takes effect between two chunks, at once before the first or if repeated."""
    stopped: list[int] = []
    begun = False

    def stop(number: int, _: Any) -> None:
        stopped.append(number)
        if len(stopped) > 1 or not begun:
            raise KeyboardInterrupt

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with display.Display(err, job.stream, job.summary) as panel, closing(job.records()) as records:
            for record in records:
                begun = True
                panel.show(record)
                if stopped:
                    break
            else:
                job.finish()
                return
        job.report()
    except KeyboardInterrupt:
        pass
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        _fail(f"{error.strerror or error}{where}; what came before is kept, go on with: {_command('--resume')}")
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    err.print(
        f"Stopped after {job.n_safe:,} samples. Go on with: {_command('--resume')}",
        highlight=False,
        soft_wrap=True,
    )
    raise typer.Exit(128 + stopped[0])


SCARCE = ("all", "fraction:0.5", "fraction:0.25", "fraction:0.1", "fraction:0.05", "delay:1000")


@app.command()
def table(
    names: Annotated[
        str,
        typer.Option("--streams", metavar="NAMES", help="Streams, with commas between; by default the paper's nine."),
    ] = ",".join(catalogue.ENTRIES),
    wanted: Annotated[
        str, typer.Option("--models", metavar="NAMES", help="Models, with commas between; by default all.")
    ] = ",".join(models.NAMES),
    seeds: Annotated[int, typer.Option(metavar="N", min=1, help="Runs of each, with the seeds 0, 1, ….")] = 5,
    labels: Annotated[
        str, typer.Option(metavar="WHICH", help="Which labels arrive, with commas between, as in `devdan run`.")
    ] = "all",
    scarce: Annotated[
        bool, typer.Option("--scarce", help=f"Short for --labels {','.join(SCARCE)}", show_default=False)
    ] = False,
    chunk: Annotated[int, typer.Option(metavar="N", min=1, help="Samples predicted, then learned from.")] = 500,
    limit: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(metavar="N", min=1, help="Stop each run after so many samples."),
    ] = None,
    jobs: Annotated[int, typer.Option(metavar="N", min=1, help="Processes at a time.")] = 1,
    data: Data = None,
    folder: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for what comes out.")] = Path("table"),
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Reproduce the paper's Table 1, beside its own figures and the methods people use today.

    Runs models × streams × seeds and writes table.html, table.md, table.csv and table.tex. Interrupted, the same
    command does only what is missing; a run that fails is reported and does not stop the others.
    """
    with _clear_errors():
        plan = grid.Plan(
            _listed(names, catalogue.ENTRIES, "stream"),
            _listed(wanted, models.NAMES, "model"),
            [str(Labels.parse(policy)) for policy in (SCARCE if scarce else labels.split(","))],
            seeds,
            chunk,
            limit,
        )
        absent = plan.prepare(folder, data, _command())
        for message in absent:
            err.print(f"Left out: {escape(message)}", soft_wrap=True, highlight=False)
        n_done, n_failed = _fill(plan, folder, data, jobs)
        write_tables(folder)
    if as_json:
        print(json.dumps(read_rows(folder)))
        return
    failed = f", {n_failed} failed, which the same command tries again" if n_failed else ""
    out.print(f"{n_done} runs{failed}. Look at {folder / 'table.html'}", highlight=False)


def _listed(text: str, known: Container[str], kind: str) -> list[str]:
    """The names in a list; an unknown one is an error."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, list(known), cutoff=0.4)  # type: ignore[call-overload]
            meant = f"; did you mean {' or '.join(near)}?" if near else ""
            raise ValueError(f"there is no {kind} {name!r}{meant}")
    if not names:
        raise ValueError(f"name at least one {kind}")
    return list(dict.fromkeys(names))


def _fill(plan: grid.Plan, folder: Path, data: Path | None, jobs: int) -> tuple[int, int]:
    """Run what is missing; returns how many runs there are now, and how many failed."""
    done, missing = plan.results(folder)
    remaining = grid.Remaining(missing, done, jobs)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed} of {task.total} runs, {task.fields[left]}"),
    )
    with Progress(*columns, console=err, disable=not err.is_terminal) as bar:
        task = bar.add_task(
            "table", total=len(done) + len(missing), completed=len(done), left=display.left(remaining.seconds)
        )

        def show(cell: grid.Cell, result: dict[str, Any]) -> None:
            remaining.done(cell, result)
            said = result.get("error") or f"CR {display.percent(result['cr_mean'])}"
            left = display.left(remaining.seconds)
            bar.update(task, advance=1, left=left)
            if not err.is_terminal or "error" in result:
                err.print(f"{cell.stream}, {cell.model}, {cell.labels}, seed {cell.seed}: {escape(said)}; {left}",
                          soft_wrap=True, highlight=False)  # fmt: skip

        try:
            grid.run(missing, folder, data=data, jobs=jobs, progress=show)
        except KeyboardInterrupt:
            bar.stop()
            n = len(plan.results(folder)[0])
            err.print(
                f"Stopped after {n} of {len(done) + len(missing)} runs; the same command goes on.", highlight=False
            )
            raise typer.Exit(128 + signal.SIGINT) from None
    done, failed = plan.results(folder)
    return len(done), len(failed)


@app.command()
def streams(
    data: Data = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list instead.")] = False,
) -> None:
    """List the paper's nine streams: what they are, and which of them are on this machine."""
    rows = []
    for entry in catalogue.ENTRIES.values():
        path = catalogue.found(entry.name, data)
        rows.append(
            {
                "name": entry.name,
                "n_samples": entry.n_samples,
                "n_features": entry.n_features,
                "n_classes": entry.n_classes,
                "origin": entry.origin,
                "here": str(path.relative_to(catalogue.data_folder(data)))
                if path
                else "generated"
                if entry.name in catalogue.GENERATED
                else None,
                "get": f"devdan fetch {entry.name}" if entry.url else "a file of your own",
            }
        )
    if as_json:
        print(json.dumps(rows))
        return
    out.print(display.listing(rows))
    out.print(f"\nData folder: {catalogue.data_folder(data)}", highlight=False)


@app.command(name="fetch")
def fetch_(
    names: Annotated[list[str], typer.Argument(help="Streams to download.", autocompletion=_fetchable)],
    data: Data = None,
) -> None:
    """Download streams of the paper into the data folder; a broken download goes on where it stopped."""
    with _clear_errors():
        for name in names:
            _fetch(name, data)


def _fetch(name: str, data: Path | None) -> None:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=err, disable=not err.is_terminal) as bar:
        task = bar.add_task(name, total=None)
        path = fetch.fetch(name, data, progress=lambda done, total: bar.update(task, completed=done, total=total))
    out.print(f"{name} is in {path}", highlight=False)


@app.command()
def report(
    folders: Annotated[list[Path], typer.Argument(help="Folders of runs; several are laid side by side.")],
    path: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--out", help="The page; by default report.html in the run's folder, or comparison.html here."),
    ] = None,
    picture: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(help="Draw the run as an SVG picture into this file instead."),
    ] = None,
) -> None:
    """Draw the page of a run again from its records, or lay several runs side by side."""
    with _clear_errors():
        if picture is not None:
            if len(folders) > 1:
                raise ValueError("--picture takes one run")
            write_picture(folders[0], picture)
            path = picture
        else:
            path = path or (folders[0] / runs.REPORT if len(folders) == 1 else Path("comparison.html"))
            write_report(folders, path)
    out.print(f"Look at {path}", highlight=False)
