"""The command line in processes of their own, for tests that kill, interrupt or starve them, or lock them out.

They are forked from one that has loaded everything already, since to load it takes each some seconds.
"""

import multiprocessing
import os
import resource
import sys
import time
from functools import cache
from multiprocessing import forkserver
from pathlib import Path

import pytest


@cache
def context():
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["preloaded"])
    with pytest.MonkeyPatch.context() as patch:  # what is forked from does not take over sys.path
        patch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
        forkserver.ensure_running()
    return context


def environment(**others):
    """The environment of a user without any data."""
    return {**os.environ, "COLUMNS": "200", "HOME": "/nonexistent", "DEVDAN_DATA": "/nonexistent", **others}


class Started:
    """``devdan`` with these arguments in a folder, at work.

    ``most_bytes`` is as large as a file may become; ``stdin`` is what it reads as standard input.
    """

    def __init__(self, *arguments, folder, most_bytes=None, stdin=os.devnull):
        self._said = [Path(folder) / name for name in (".stdout", ".stderr")]
        words = [str(word) for word in arguments]
        given = (words, folder, self._said, environment(), most_bytes, stdin)
        self._process = context().Process(target=_run, args=given)
        self._process.start()

    def wait_until(self, condition):
        """Wait for something to happen while it works."""
        while not condition() and self._process.is_alive():
            time.sleep(0.001)

    @property
    def works(self):
        return self._process.is_alive()

    def kill(self):
        """As a power cut would."""
        self._process.kill()
        self._process.join()

    @property
    def pid(self):
        return self._process.pid

    def send(self, number):
        os.kill(self.pid, number)

    def wait(self):
        """Its exit code, and what it wrote to standard output and standard error."""
        self._process.join()
        return (self._process.exitcode, *(path.read_text() for path in self._said))


def _run(words, folder, said, variables, most_bytes, stdin):
    os.chdir(folder)
    sys.stdin = open(stdin)  # noqa: SIM115 (until the process ends)
    os.environ.update(variables)
    for number, path in enumerate(said, start=1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    if most_bytes is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))
    sys.argv = ["devdan", *words]
    from devdan.cli import app  # noqa: PLC0415 (loaded before the fork)

    app(prog_name="devdan")
