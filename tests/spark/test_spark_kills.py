"""Exactly once: a query whose driver and workers are killed tells and learns what an unbroken one does.

``DEVDAN_SPARK_KILLS`` says how often each is killed (`make test-spark KILLS=12`).
"""

import os
import random
import time
from pathlib import Path

import pandas as pd
import pytest

pytest.importorskip("pyspark", minversion="4.3", reason="pip install 'devdan[spark]'")

import spark_engine
from spark_events import events
from spark_process import Job, kill

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.filterwarnings("ignore::DeprecationWarning")]
JOB = Path(__file__).parents[1] / "support" / "spark_job.py"
KILLS = int(os.environ.get("DEVDAN_SPARK_KILLS", "2"))
N_BATCHES = 6 + 4 * KILLS


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
    job = Job(JOB, master, rows, tmp_path, out=tmp_path)
    try:
        while any(left.values()):
            whom = chance.choice([name for name, n in left.items() if n > 0])
            if not job.goes_on():
                break
            time.sleep(chance.random())  # any moment of a batch
            if whom == "driver":
                job.kill()
                left["driver"] -= 1
                job = Job(JOB, master, rows, tmp_path, out=tmp_path)
            else:
                workers = job.wait_for(job.workers)
                left["worker"] -= bool(workers) and kill(chance.choice(workers))
        job.end()
    finally:
        job.kill()
    assert left == {"driver": 0, "worker": 0}, "the query ended before it was killed often enough"
    told, networks = unbroken
    pd.testing.assert_frame_equal(spark_engine.answers(spark, tmp_path), told)
    assert spark_engine.networks(spark, tmp_path) == networks
