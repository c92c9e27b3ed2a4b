"""``devdan run`` and ``devdan report``."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from devdan.cli import arguments as opt
from devdan.cli.arguments import LOGGERS
from devdan.cli.console import clear_errors, err, fail, note, of_disk, out, say, show_notes
from devdan.evaluation.labels import SPELLINGS
from devdan.streams import entries
from devdan.streams.reading import Reading

if TYPE_CHECKING:
    from devdan.histories.histories import Histories
    from devdan.loggers import Log, Logger
    from devdan.runs.runfolder import RunFolder
    from devdan.runs.runjob import RunJob
    from devdan.streams import Stream

FLEET = "fleet"  # the name of the model of a run with keys
RUN_HELP = """Evaluate a model on a stream: predict each chunk, then learn from it.

Shows the progress and writes records.jsonl, summary.json, the model and report.html.

- devdan run sea
- devdan run my.csv --target label --labels delay:1000
- devdan run my.csv --target label --drop id --nominal zip --dates born=dd/mm/yyyy
- devdan run my.csv --target label --key device
- devdan run tx.csv --target fraud --history customer,terminal --time timestamp
- cat log.jsonl | devdan run - --target label
- devdan run weather --model dae --set n_hidden=20 --seed 3 --json

Label policies (combine several with +):

""" + "\n".join(f"- --labels {text}: {what}" for text, what in SPELLINGS.items())


@opt.takes_reading()
def run(
    stream: opt.Source,
    reading: Reading,
    columns: dict[str, Any],
    key: opt.Key = None,
    history: opt.History = None,
    time: opt.Time = None,
    order: opt.Ordered = None,
    limit: opt.Limit = None,
    endless: opt.Endless = False,
    data: opt.Data = None,
    model: opt.Model = "devdan",
    options: opt.Settings = None,
    seed: opt.Seed = 0,
    chunk: opt.ChunkOrOwn = None,
    labels: opt.Which = "all",
    alerts: opt.Alerts = "10/1000",
    folder: opt.Out = None,
    resume: opt.Resume = False,
    overwrite: opt.Overwrite = False,
    every: opt.Checkpoint = 5.0,
    logs: opt.Logs = None,
    as_json: opt.Json = False,
) -> None:
    """Parse the options, open the stream, run, print the results."""
    from devdan.bench import named_models
    from devdan.cli import display
    from devdan.evaluation.labels import Labels
    from devdan.evaluation.loop import Evaluation
    from devdan.evaluation.record import Summary
    from devdan.report import RunReport
    from devdan.runs.preparation import describe, prepared
    from devdan.runs.runfolder import IDENTITY, RunFolder, free_folder
    from devdan.runs.runjob import RunJob

    show_notes()
    with clear_errors():
        chosen = named_models.parse_options(options or [])
        learner = (named_models.build if key is None else named_models.build_fleet)(model, seed, chosen, columns)
        policy, histories = Labels.parse(labels, seed), opt.histories(history or [], time, key)
        if resume and stream == "-":
            raise ValueError("--resume is for streams that can be read again, which standard input cannot")
        if entries.is_name(stream):
            opt.refuse_reading(reading, f"{stream} is known by name", key)
        as_written = [
            *([] if key is None else [key]),
            *([] if histories is None else histories.entity_names),
        ]  # 007 and 7 are two
        samples = _opened(stream, reading.with_text(as_written), chunk, order, endless, data)
        if columns:
            _check_columns(stream, samples, learner, key)
        samples = samples if limit is None else samples.first(limit)
        samples, learner, classes, scaled = prepared(samples, learner, key, histories)
        model = model if key is None else FLEET
        settings = describe(
            samples, learner, chosen, reading, model=model, seed=seed, chunk=samples.chunk, labels=str(policy),
            key=key, limit=limit, endless=endless, scaled=scaled, alerts=alerts,
            history=history, time=time, command=opt.repeated(samples, data),
        )  # fmt: skip
        if folder is None:
            folder = free_folder(opt.PARENT, f"{samples.name}-{model}".replace(":", "."), settings, resume)
        loggers = _loggers(logs or [], folder)
        if getattr(learner, "max_in_memory", None) is not None:  # a fleet
            learner.set_params(store=RunFolder(folder).fleet_path)
        evaluation = Evaluation(learner, policy, classes=classes, key=key, alerts=alerts, histories=histories)
        with RunJob(
            folder, samples, evaluation, settings, resume=resume, overwrite=overwrite, every=every, page=RunReport
        ) as job:
            if resume and job.folder.is_finished:
                say(f"The run in {folder} is already finished.")
                log_past(job, loggers)
            else:
                _begin(job, resume, learner, histories)
                follow(job, loggers)
        result = job.folder.summary()
    _say_if_nothing_was_scored(result, samples.chunk)
    if as_json:
        print(json.dumps({key: result.get(key) for key in (*IDENTITY, *Summary().criteria())}))
        return
    out.print(display.results(result))
    if result.get("columns"):
        out.print("\nColumns", style="bold")
        out.print(display.columns(result["columns"]))
    out.print(f"\nReport: {job.folder.report_path}", highlight=False)


def _begin(job: RunJob, resume: bool, learner: Any, histories: Histories | None) -> None:
    """Compile the model in advance, so that times do not include it."""
    from devdan.fleet.fleet import DEVDANFleet, compile_fleet
    from devdan.histories.histories import compile_histories
    from devdan.model.compilation import compile_kernel
    from devdan.model.estimator import StreamClassifier

    if resume and not job.summary.n_chunks:
        say("Nothing to resume: starting from the beginning.")
    if isinstance(learner, DEVDANFleet):
        compile_fleet()
    elif isinstance(learner, StreamClassifier):
        compile_kernel(learner)
    if histories is not None:
        compile_histories()


def _opened(
    source: str, reading: Reading, chunk: int | None, order: str | None, endless: bool, data: Path | None
) -> Stream:
    """The stream given on the command line; options that do not apply to it are errors, not ignored."""
    from devdan.streams import open_stream

    if entries.is_name(source):
        return open_stream(source, chunk=chunk, data=data, order=order, endless=endless)
    if endless:
        raise ValueError("--endless is for sea and hyperplane, which are generated")
    if order not in (None, "file", "shuffled"):
        raise ValueError(f"--order must be file or shuffled, got {order!r}")
    stream = open_stream(source, chunk=chunk, **reading.as_keywords())
    return stream.shuffled() if order == "shuffled" else stream


def _say_if_nothing_was_scored(result: dict[str, Any], chunk: int) -> None:
    from devdan.evaluation.measures import reservation

    n_samples = result["n_samples"]
    if said := reservation(result):
        target = result.get("target")
        note(said if target is None else f"{said} Labels are in the column {target!r}; --target names another")
    elif result["cr_mean"] is None and 1 < n_samples <= chunk:
        note(
            f"nothing was scored: all {n_samples:,} samples are in the first chunk, which is learned before anything "
            f"is predicted. Use a --chunk smaller than {chunk}, such as {max(n_samples // 10, 1)}"
        )


def _check_columns(source: str, stream: Stream, learner: Any, key: str | None) -> None:
    """Raise an error if the user says something about a column that does not exist, or of a source of numbers only."""
    from devdan.encoding.rows import Rows

    is_table = not entries.is_name(source)
    if source.lower().endswith(".npz"):  # which may hold either
        is_table = isinstance(next(stream.blocks())[0], Rows)
    if not is_table:
        raise ValueError(f"--nominal, --numeric and --dates are for tables; {source} has numbers only")
    model = learner if key is None else learner.estimator
    model.check_columns([name for name in stream.feature_names or () if name != key])


# --- The run in progress -----------------------------------------------------------------------------------------


def follow(job: RunJob, loggers: Sequence[Logger] = ()) -> None:
    """Run to the end, with a progress display. Ctrl-C stops after the chunk, or at once if repeated or at the start."""
    from devdan.cli import display
    from devdan.evaluation.measures import units_name
    from devdan.streams import StreamError

    stopped: list[int] = []
    begun = is_complete = False

    def stop(number: int, _: Any) -> None:
        stopped.append(number)
        if len(stopped) > 1 or not begun:
            raise KeyboardInterrupt

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with (
            _log(job, loggers) as log,
            display.Display(err, job.stream, job.summary, units_name(job.settings["model"])) as panel,
            closing(job.records()) as records,
        ):
            for record in records:
                begun = True
                panel.show(record)
                log.add(record)
                if stopped:
                    break
            else:
                is_complete = True
            if is_complete or job.stream.is_single_pass:  # it cannot be resumed, so it ends here
                records.close()
                job.finish()
                log.finish(job.folder.results)
                return
    except KeyboardInterrupt:
        pass
    except StreamError as error:
        if job.n_safe == 0:
            raise
        fail(f"{error}; the {job.n_safe:,} samples before it are saved: see {job.folder.report_path}")
    except OSError as error:
        if job.stream.is_single_pass:
            fail(of_disk(error))
        if job.n_safe == 0:
            fail(f"{of_disk(error)}; nothing is saved yet; start again with: {opt.command('--resume')}")
        fail(f"{of_disk(error)}; the first {job.n_safe:,} samples are saved; continue with: {opt.command('--resume')}")
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    way = "" if job.stream.is_single_pass else f" Continue with: {opt.command('--resume')}"
    say(f"Stopped after {job.n_safe:,} samples.{way}")
    raise typer.Exit(128 + stopped[0])


def log_past(job: RunJob, loggers: Sequence[Logger]) -> None:
    """Log the records of a finished run that the loggers do not have yet."""
    with _log(job, loggers) as log:
        log.finish(job.folder.results)


def _log(job: RunJob, loggers: Sequence[Logger]) -> Log:
    from devdan.loggers import Log

    remedy = f"the run is not affected; to log what is missing, run: {opt.command('--resume')}"
    return Log(loggers, job.settings, past=job.past(), remedy=remedy)


# --- Loggers -----------------------------------------------------------------------------------------------------


def _loggers(texts: Sequence[str], folder: Path) -> list[Logger]:
    """The loggers named by ``--log``, for the run in a folder."""
    from devdan.runs.runfolder import RunFolder

    named = [text.partition(":")[::2] for text in texts]
    if len({name for name, _ in named}) < len(named):
        raise ValueError(f"--log takes {' and '.join(LOGGERS)} once each, got {', '.join(texts)}")
    try:
        return [_logger(name, target or None, RunFolder(folder)) for name, target in named]
    except ModuleNotFoundError as error:
        raise ValueError(error) from error


def _logger(name: str, target: str | None, folder: RunFolder) -> Logger:
    from devdan.loggers import MLflowLogger, TensorBoardLogger

    if name == "tensorboard":
        return TensorBoardLogger(Path(target) / folder.name if target else folder.tensorboard_path)
    if name == "mlflow":
        os.environ.setdefault("MLFLOW_LOGGING_LEVEL", "WARNING")
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")  # do not wait minutes for a server that is down
        is_uri = target is not None and "://" in target
        return MLflowLogger(
            None if is_uri else target, uri=target if is_uri else None, name=folder.name, memory=folder.mlflow_path
        )
    raise ValueError(f"--log must be {' or '.join(LOGGERS)}, with or without a target after a colon, got {name!r}")


# --- Reports -----------------------------------------------------------------------------------------------------


def report(
    folders: Annotated[list[Path], typer.Argument(help="Run folders; several runs are compared.")],
    path: Annotated[
        Optional[Path],
        opt.path_option(
            "--out",
            "PATH",
            "The page; by default report.html in the run's folder, or here "
            "comparison.html, comparison-2.html, …, whichever is free.",
        ),
    ] = None,
    picture: Annotated[
        Optional[Path],
        opt.path_option("--picture", "PATH", "Draw the run as an SVG figure to this file instead."),
    ] = None,
    animated: Annotated[
        bool, typer.Option("--animated", help="Let the curves of --picture grow as the stream was read.")
    ] = False,
    by: opt.By = None,
) -> None:
    """Write the report of a run again from its records, or compare several runs."""
    from devdan.report import write_picture, write_report
    from devdan.runs.runfolder import RunFolder, free_path

    with clear_errors():
        if picture is not None:
            if len(folders) > 1 or by is not None:
                raise ValueError("--picture takes one run, and no --by")
            write_picture(folders[0], picture, animated=animated)
            path = picture
        elif animated:
            raise ValueError("--animated is for --picture")
        else:
            if path is None and len(folders) == 1:
                path = RunFolder(folders[0]).report_path
            path = path or free_path(Path(), "comparison", ".html")  # only what --out names is overwritten
            write_report(folders, path, by)
    out.print(f"Report: {path}", highlight=False)
