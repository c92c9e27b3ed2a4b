"""The command line in this process, and what a run leaves in its folder."""

import contextlib
import json
import os
import sys
from typing import NamedTuple

import pytest
from processes import Started, environment
from typer.testing import CliRunner

from devdan.cli import app

TIMES = ("train_seconds", "test_seconds", "samples_per_second", "read_seconds", "total_seconds")


@contextlib.contextmanager
def within(folder):
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


class Result(NamedTuple):
    stdout: str
    stderr: str


def devdan(*arguments, folder, code=0, most_bytes=None, stdin=None):
    """Run it in a folder, in this process unless it needs one of its own; an error must be one line."""
    words = [str(word) for word in arguments]
    if most_bytes is not None:
        exit_code, *said = Started(*words, folder=folder, most_bytes=most_bytes).wait()
        run = Result(*said)
    else:
        with within(folder), pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", ["devdan", *words])
            run = CliRunner().invoke(app, words, prog_name="devdan", env=environment(), input=stdin)
        exit_code = run.exit_code
        assert isinstance(run.exception, (SystemExit, type(None))), run.exception
    assert exit_code == code, run.stderr
    assert "Traceback" not in run.stderr
    if code == 2:
        *progress, error = run.stderr.splitlines()
        assert run.stdout == ""
        assert error.startswith("devdan: ")
        assert all(" samples, " in line for line in progress), run.stderr
    return Result(run.stdout, run.stderr)


def records(folder):
    """All records, without the times, which differ from run to run."""
    lines = (folder / "records.jsonl").read_text().splitlines()
    return [{key: value for key, value in json.loads(line).items() if key not in TIMES} for line in lines]


def results(folder):
    """What must be the same for two runs of the same command: the records, the summary, the model."""
    summary = json.loads((folder / "summary.json").read_text())
    model = folder / "model.devdan"
    return (
        records(folder),
        {key: value for key, value in summary.items() if key not in TIMES},
        model.read_bytes() if model.exists() else (folder / "model.pickle").exists(),
    )


def run(*arguments):
    """A command in the folder of the tests; its exit code, and all that it printed."""
    ended = CliRunner().invoke(app, list(map(str, arguments)), prog_name="devdan", env={"COLUMNS": "200"})
    return ended.exit_code, ended.stdout + ended.stderr
