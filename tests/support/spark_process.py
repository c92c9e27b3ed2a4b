"""A query in a process of its own, which is killed, or its workers."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

POLL = 0.02  # seconds


class Job:
    """A script with a query as a process, with all that it starts; its checkpoint is in the folder ``out``."""

    def __init__(self, script, *arguments, out, **environment):
        command = [sys.executable, *map(str, (script, *arguments))]
        self.out = out
        with (out / "log.txt").open("ab") as log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, env=os.environ | environment, start_new_session=True
            )

    def family(self):
        """The pids of its descendants and what they run, by reading who is whose child."""
        parents, commands = {}, {}
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
                commands[int(folder.name)] = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except (FileNotFoundError, ProcessLookupError):
                continue  # it has ended meanwhile
        found = [self.process.pid]
        for pid in found:
            found += [child for child, parent in parents.items() if parent == pid]
        return {pid: (parents[pid], commands[pid]) for pid in found if pid in parents}

    def workers(self):
        """Python workers: children of the daemons that start them."""
        family = self.family()
        daemons = {pid for pid, (_, command) in family.items() if "pyspark.daemon" in command}
        return [pid for pid, (parent, _) in family.items() if parent in daemons]

    def n_done(self):
        """How many batches are finished."""
        return self._n("commits")

    def has_caught_up(self):
        """Whether each batch that was begun is finished."""
        return self._n("offsets") == self._n("commits") > 0

    def _n(self, name):
        folder = self.out / "checkpoint" / name
        return sum(path.name.isdigit() for path in folder.iterdir()) if folder.exists() else 0

    def is_running(self):
        return self.process.poll() is None

    def wait_for(self, condition):
        """Until it holds; False if the query has ended before."""
        while not (found := condition()):
            if not self.is_running():
                return False
            time.sleep(POLL)
        return found

    def goes_on(self):
        """Wait until it has finished another batch; False if it has ended before."""
        before = self.n_done()
        return self.wait_for(lambda: self.n_done() > before)

    def kill(self):
        """The driver, and with it the machine."""
        family = list(self.family())
        for pid in family:
            kill(pid)
        self.process.wait()
        while any(map(_is_alive, family)):
            time.sleep(POLL)

    def end(self):
        """Wait for its end; what it said if it failed."""
        self.process.wait()
        assert self.process.returncode == 0, (self.out / "log.txt").read_text()[-3000:]


def _is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True
