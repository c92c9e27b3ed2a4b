"""Runs a job with a progress display; the user may stop it."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import typer

from devdan.cli import display
from devdan.cli.console import err, fail, of_disk, say
from devdan.cli.retyped import command
from devdan.evaluation.measures import units
from devdan.loggers import Log, Logger
from devdan.runs.runjob import RunJob
from devdan.streams import StreamError


def follow(job: RunJob, loggers: Sequence[Logger] = ()) -> None:
    """Run to the end; Ctrl-C takes effect between two chunks, or at once before the first chunk or if repeated."""
    stopped: list[int] = []
    begun = is_whole = False

    def stop(number: int, _: Any) -> None:
        stopped.append(number)
        if len(stopped) > 1 or not begun:
            raise KeyboardInterrupt

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with (
            _log(job, loggers) as log,
            display.Display(err, job.stream, job.summary, units(job.settings["model"])) as panel,
            closing(job.records()) as records,
        ):
            for record in records:
                begun = True
                panel.show(record)
                log.add(record)
                if stopped:
                    break
            else:
                is_whole = True
            if is_whole or job.stream.is_single_pass:  # what cannot be read again ends here
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
            fail(f"{of_disk(error)}; nothing is kept yet, start from the beginning with: {command('--resume')}")
        fail(f"{of_disk(error)}; the first {job.n_safe:,} samples are kept, go on with: {command('--resume')}")
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    way = "" if job.stream.is_single_pass else f" Continue with: {command('--resume')}"
    say(f"Stopped after {job.n_safe:,} samples.{way}")
    raise typer.Exit(128 + stopped[0])


def log_past(job: RunJob, loggers: Sequence[Logger]) -> None:
    """Log the parts of a finished run that the loggers do not have yet."""
    with _log(job, loggers) as log:
        log.finish(job.folder.results)


def _log(job: RunJob, loggers: Sequence[Logger]) -> Log:
    remedy = f"the run is not affected; to log what is missing, run: {command('--resume')}"
    return Log(loggers, job.settings, past=job.past(), remedy=remedy)
