"""``devdan run``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from devdan.cli import arguments as opt
from devdan.cli.console import clear_errors, note, out, say, show_notes
from devdan.cli.retyped import again
from devdan.evaluation.labels import SPELLINGS
from devdan.streams import entries, open_stream

if TYPE_CHECKING:
    from devdan.streams import Stream

FLEET = "fleet"  # what the model of a run with keys is called
RUN_HELP = """Evaluate a model on a stream: predict each chunk, then learn from it.

Shows the progress and writes records.jsonl, summary.json, the model and report.html.

- devdan run sea
- devdan run my.csv --target label --labels delay:1000
- devdan run my.csv --target label --drop id --nominal zip --dates born=dd/mm/yyyy
- devdan run my.csv --target label --key device
- cat log.jsonl | devdan run - --target label
- devdan run weather --model dae --set n_hidden=20 --seed 3 --json

Label policies (combine several with +):

""" + "\n".join(f"- --labels {text}: {what}" for text, what in SPELLINGS.items())


def run(
    stream: opt.Source,
    target: opt.Target = None,
    key: opt.Key = None,
    drop: opt.Drop = None,
    header: opt.Header = None,
    nominal: opt.Nominal = None,
    numeric: opt.Numeric = None,
    dates: opt.Dates = None,
    order: opt.Ordered = None,
    limit: opt.Limit = None,
    endless: opt.Endless = False,
    data: opt.Data = None,
    model: opt.Model = "devdan",
    options: opt.Settings = None,
    seed: opt.Seed = 0,
    chunk: opt.Chunk = 500,
    labels: opt.Which = "all",
    folder: opt.Out = None,
    resume: opt.Resume = False,
    overwrite: opt.Overwrite = False,
    every: opt.Checkpoint = 5.0,
    logs: opt.Logs = None,
    as_json: opt.Json = False,
) -> None:
    """Parse, open, run, print."""
    from devdan.bench import models
    from devdan.cli import display, tracking
    from devdan.cli.follow import follow, log_past
    from devdan.evaluation.labels import Labels
    from devdan.evaluation.loop import Evaluation
    from devdan.evaluation.record import Summary
    from devdan.report import RunReport
    from devdan.runs.preparation import describe, prepared
    from devdan.runs.runfolder import IDENTITY, RunFolder, free_folder
    from devdan.runs.runjob import RunJob

    show_notes()
    with clear_errors():
        chosen = models.parse_options(options or [])
        told = models.about_columns(nominal or [], numeric or [], dates or [])
        learner = (models.build if key is None else models.build_fleet)(model, seed, chosen, told)
        policy = Labels.parse(labels, seed)
        if resume and stream == "-":
            raise ValueError("--resume is for streams that can be read again, which standard input cannot")
        samples = _opened(stream, target, key, drop or [], nominal or [], chunk, order, endless, header, data)
        if told:
            _check_told(stream, samples, learner, key)
        samples = samples if limit is None else samples.first(limit)
        samples, learner, classes, scaled = prepared(samples, learner, key)
        model = model if key is None else FLEET
        settings = describe(
            samples, learner, chosen, model=model, seed=seed, chunk=chunk, labels=str(policy), target=target, key=key,
            header=header, drop=drop, limit=limit, endless=endless, scaled=scaled, command=again(samples, data),
        )  # fmt: skip
        if folder is None:
            folder = free_folder(opt.PARENT, f"{samples.name}-{model}".replace(":", "."), settings, resume)
        loggers = tracking.loggers(logs or [], folder)
        if getattr(learner, "max_in_memory", None) is not None:  # a fleet
            learner.set_params(store=RunFolder(folder).fleet_path)
        evaluation = Evaluation(learner, policy, classes=classes, key=key)
        with RunJob(
            folder, samples, evaluation, settings, resume=resume, overwrite=overwrite, every=every, page=RunReport
        ) as job:
            if resume and job.folder.is_finished:
                say(f"The run in {folder} is already finished.")
                log_past(job, loggers)
            else:
                if resume and not job.summary.n_chunks:
                    say("Nothing to resume: starting from the beginning.")
                _compile(learner)
                follow(job, loggers)
        result = job.folder.summary()
    _say_if_nothing_was_scored(result, chunk)
    if as_json:
        print(json.dumps({key: result.get(key) for key in (*IDENTITY, *Summary().criteria())}))
        return
    out.print(display.results(result))
    if result.get("columns"):
        out.print("\nColumns", style="bold")
        out.print(display.columns(result["columns"]))
    out.print(f"\nReport: {job.folder.report_path}", highlight=False)


def _compile(learner: Any) -> None:
    """Compile beforehand what it takes, so that times do not include it."""
    from devdan.fleet.fleet import DEVDANFleet, compile_fleet
    from devdan.model.compilation import compile_kernel
    from devdan.model.estimator import StreamClassifier

    if isinstance(learner, DEVDANFleet):
        compile_fleet()
    elif isinstance(learner, StreamClassifier):
        compile_kernel(learner)


def _opened(
    source: str,
    target: str | None,
    key: str | None,
    drop: list[str],
    nominal: list[str],
    chunk: int,
    order: str | None,
    endless: bool,
    header: bool | None,
    data: Path | None,
) -> Stream:
    """The stream given on the command line; options that do not apply to it are errors, not ignored."""
    if entries.is_name(source):
        if target is not None or key is not None or header is not None or drop:
            raise ValueError(
                f"--target, --key, --drop and --header are for files; {source} is one of the paper's streams"
            )
        return open_stream(source, chunk=chunk, data=data, order=order, endless=endless)
    if endless:
        raise ValueError("--endless is for sea and hyperplane, which are generated")
    if order not in (None, "file", "shuffled"):
        raise ValueError(f"--order must be file or shuffled, got {order!r}")
    as_text = [*nominal, *([] if key is None else [key])]  # 007 and 7 are two keys
    stream = open_stream(source, target=target, chunk=chunk, header=header, drop=drop, as_text=as_text)
    return stream.shuffled() if order == "shuffled" else stream


def _say_if_nothing_was_scored(result: dict[str, Any], chunk: int) -> None:
    n_samples = result["n_samples"]
    if result["cr_mean"] is None and 1 < n_samples <= chunk:
        note(
            f"nothing was scored: all {n_samples:,} samples are in the first chunk, which is learned before anything "
            f"is predicted. Use a --chunk smaller than {chunk}, such as {max(n_samples // 10, 1)}"
        )


def _check_told(source: str, stream: Stream, learner: Any, key: str | None) -> None:
    """What is said about columns must be about columns that there are, of a table that may hold more than numbers."""
    from devdan.encoding.rows import Rows

    is_table = not entries.is_name(source)
    if source.lower().endswith(".npz"):  # which may hold either
        is_table = isinstance(next(stream.blocks())[0], Rows)
    if not is_table:
        raise ValueError(f"--nominal, --numeric and --dates are for tables; {source} has numbers only")
    model = learner if key is None else learner.estimator
    model.check_columns([name for name in stream.feature_names or () if name != key])
