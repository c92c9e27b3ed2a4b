"""The job of the guide with a real broker: rows and labels from topics, predictions to a topic, killed on the way."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pyspark", minversion="4.3", reason="pip install 'devdan[spark]'")
pytest.importorskip("confluent_kafka", reason="pip install 'devdan[kafka]'")

import spark_engine
from kafka_broker import CACHE, Broker, jars
from kafka_cluster import Reader
from spark_process import Job

from devdan.kernel import Evolving

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.filterwarnings("ignore::DeprecationWarning")]
ROOT = Path(__file__).parents[2]
N, PARTS = 300, 3  # rows, and after each of so many parts the driver is killed
FOLDER = CACHE / "spark-kafka" / "4.2.0"
ONLY = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
NEEDED = [
    ("org.apache.spark", "spark-sql-kafka-0-10_2.13", "4.2.0"),
    ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.1.0-preview1"),  # mirrors lack some others
    ("org.apache.kafka", "kafka-clients", "3.9.2"),
    ("org.apache.commons", "commons-pool2", "2.13.1"),
]
POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
<modelVersion>4.0.0</modelVersion><groupId>devdan</groupId><artifactId>spark-kafka</artifactId><version>1</version>
<dependencies>{}</dependencies></project>
"""
DEPENDENCY = "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>{}</dependency>"


def packages():
    """What `--packages` would fetch: Spark itself and logging are there."""
    folder = jars(FOLDER, POM.format("".join(DEPENDENCY.format(*needed, ONLY) for needed in NEEDED)))
    return ",".join(map(str, sorted(folder.glob("*.jar"))))


def job_of_the_guide(folder):
    page = (ROOT / "docs" / "cluster.md").read_text()
    (code,) = [block for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if 'format("kafka")' in block]
    path = folder / "kafka.py"
    path.write_text(code)
    return path


def messages(number, random):
    """A row of a device, and its label in a message of its own; every seventh row never has one."""
    load, heat = random.random(2).tolist()
    common = {"device": f"pump {number % 5}", "id": f"r{number}"}
    row = {**common, "time": f"2026-03-01T10:{number // 60:02}:{number % 60:02}Z", "load": load, "heat": heat}
    label = {**common, "time": f"2026-03-01T11:{number // 60:02}:{number % 60:02}Z", "failed": load + heat > 1}
    return row, None if number % 7 == 0 else label


def test_each_message_counts_once_though_the_driver_is_killed(spark, tmp_path):
    random = np.random.default_rng(0)
    broker = Broker()
    reader = job = None
    try:
        broker.make("rows", "labels", "predictions")
        reader = Reader(broker, "predictions")
        environment = {
            "PYSPARK_SUBMIT_ARGS": f"--jars {packages()} --driver-java-options=-XX:TieredStopAtLevel=1 pyspark-shell",
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        script, sent = job_of_the_guide(tmp_path), []
        for part in range(PARTS):
            job = Job(script, broker.brokers, tmp_path / "checkpoint", out=tmp_path, **environment)
            for number in range(part * N // PARTS, (part + 1) * N // PARTS):
                row, label = messages(number, random)
                sent.append((row, label))
                broker.send("rows", json.dumps(row), key=row["device"])
                if label is not None:
                    broker.send("labels", json.dumps(label), key=row["device"])
            if part < PARTS - 1:
                assert job.goes_on(), (tmp_path / "log.txt").read_text()[-3000:]
                job.kill()
        expected = {
            (kind, row["id"]) for row, label in sent for kind in ("prediction", "label")[: 1 + (label is not None)]
        }

        def told(messages):
            return {(line["kind"], line["id"]): line for line in map(read, messages)}

        def read(message):
            return json.loads(message.value())

        reader.until(lambda come: told(come).keys() >= expected or not job.is_running())
        assert job.wait_for(job.has_caught_up), (tmp_path / "log.txt").read_text()[-3000:]
        job.kill()
        assert told(reader.messages).keys() == expected  # so that nothing is an error, or repeated
        for message in reader.messages:
            line = read(message)
            assert line == told(reader.messages)[line["kind"], line["id"]]
        kept = spark_engine.networks(spark, tmp_path)
        for key, (state, *_) in kept.items():
            own = [label for row, label in sent if row["device"] == key]
            n_learned = Evolving(np.frombuffer(state).copy()).n_learned.tolist()
            assert n_learned == [len(own), sum(label is not None for label in own)]
        assert len(kept) == 5
    finally:
        for one in filter(None, (job, reader)):
            one.kill() if one is job else one.stop()
        broker.stop()
