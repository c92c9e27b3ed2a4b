"""Exactly once: a query whose driver and workers are killed tells and learns what an unbroken one does.

``DEVDAN_SPARK_KILLS`` says how often each is killed (`make test-spark KILLS=12`).
"""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

pytest.importorskip("pyspark", minversion="4.3", reason="pip install 'devdan[spark]'")

import spark_engine
from spark_events import events

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.filterwarnings("ignore::DeprecationWarning")]
JOB = Path(__file__).parents[1] / "support" / "spark_job.py"
KILLS = int(os.environ.get("DEVDAN_SPARK_KILLS", "2"))
N_BATCHES = 6 + 4 * KILLS
POLL = 0.02  # seconds


class Job:
    """The query as a process, with all that it starts."""

    def __init__(self, master, rows, out):
        command = [sys.executable, str(JOB), master, str(rows), str(out)]
        self.out = out
        with (out / "log.txt").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)

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
        commits = self.out / "checkpoint" / "commits"
        return sum(path.name.isdigit() for path in commits.iterdir()) if commits.exists() else 0

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
            _kill(pid)
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


def _kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    path = tmp_path_factory.mktemp("kills") / "rows"
    spark_engine.write(events(n=20 * N_BATCHES), path, N_BATCHES)
    return path


@pytest.fixture(scope="module")
def unbroken(spark, rows, tmp_path_factory):
    """What a query tells and learns that is not killed."""
    out = tmp_path_factory.mktemp("unbroken")
    spark_engine.query(spark, rows, out).awaitTermination()
    return spark_engine.answers(spark, out), spark_engine.networks(spark, out)


@pytest.mark.parametrize(("master", "n_kills"), [("local[2,9]", KILLS), ("local-cluster[2,1,1024]", 1)])
def test_what_was_killed_tells_and_learns_what_an_unbroken_query_does(master, n_kills, spark, rows, unbroken, tmp_path):
    """A query that is killed at random moments goes on from its checkpoint. The seed is printed where it fails."""
    seed = random.randrange(10**6)
    print("seed", seed)
    chance = random.Random(seed)
    left = {"driver": n_kills, "worker": n_kills}
    job = Job(master, rows, tmp_path)
    try:
        while any(left.values()):
            whom = chance.choice([name for name, n in left.items() if n > 0])
            if not job.goes_on():
                break
            time.sleep(chance.random())  # any moment of a batch
            if whom == "driver":
                job.kill()
                left["driver"] -= 1
                job = Job(master, rows, tmp_path)
            else:
                workers = job.wait_for(job.workers)
                left["worker"] -= bool(workers) and _kill(chance.choice(workers))
        job.end()
    finally:
        job.kill()
    assert left == {"driver": 0, "worker": 0}, "the query ended before it was killed often enough"
    told, networks = unbroken
    pd.testing.assert_frame_equal(spark_engine.answers(spark, tmp_path), told)
    assert spark_engine.networks(spark, tmp_path) == networks
