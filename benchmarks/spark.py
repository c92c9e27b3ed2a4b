"""A fleet on Spark, for docs/cluster.md: rows per CPU-second, and a cluster for a billion rows a day on paper.

Beside it are the fleet alone, and the same query without learning and state. `python benchmarks/spark.py --write`
measures on this machine (local[2], CPU time of the driver and the workers together), saves the figures in
benchmarks/results/spark.json and writes the page. `--quick` tries everything with few rows and saves nothing. Needs
Java 17 and `pip install 'devdan[spark]'`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from measuring import machine, put
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from devdan import DEVDANFleet
from devdan.spark import learn
from devdan.spark.packing import ROWS
from devdan.spark.plan import SHARD
from devdan.spark.query import as_given, in_shards
from devdan.spark.shard import rounds
from devdan.spark.statebytes import unpack_shared

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results" / "spark.json"
PAGE = ROOT / "docs" / "cluster.md"
N_FEATURES, MANY_FEATURES = 10, 50
SHARDS = 8
N_WARM, N_BATCHES = 8, 8  # those that count come after others, in which processes start and the JVM compiles
ROWS_A_DAY, KEYS, BUSY = 1_000_000_000, 10_000_000, 0.5  # of the cluster on paper
WAYS = ("learn", "nothing")
SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "4g",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}


class Nothing(StatefulProcessor):  # type: ignore[misc]
    """Gives each row a row of the same shape, and has no state."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        pass

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N802
        for frame in rows:
            shares = [{"0": 0.5, "1": 0.5}] * len(frame)
            yield pd.DataFrame(
                {
                    "kind": "prediction",
                    "key": frame["key"],
                    "id": frame["id"],
                    "at": frame["at"],
                    "prediction": "0",
                    "probabilities": shares,
                    "version": 0,
                    "accuracy": 0.5,
                    "drifts": 0,
                    "label": None,
                    "error": None,
                }
            )

    def close(self) -> None:
        pass


def names_of(n_features: int) -> list[str]:
    """The columns of the features."""
    return [f"x{number}" for number in range(n_features)]


def batch(n_rows: int, n_keys: int, number: int, n_features: int = N_FEATURES) -> pd.DataFrame:
    """Rows with labels, of keys drawn at random."""
    random = np.random.default_rng(number)
    X = random.normal(size=(n_rows, n_features))
    start = number * n_rows
    return pd.DataFrame(
        {
            "key": [f"device {key}" for key in random.integers(n_keys, size=n_rows)],
            "id": [f"{start + row}" for row in range(n_rows)],
            "time": pd.to_datetime(1_000_000_000_000_000 + 1000 * (start + np.arange(n_rows)), unit="us", utc=True),
            "label": (X[:, 0] + X[:, 1] > 0).astype(int),
            **{name: X[:, place] for place, name in enumerate(names_of(n_features))},
        }
    )


def family() -> dict[int, list[str]]:
    """This process and all of its descendants, and what the system counts of each."""
    stats = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            stats[int(path.parent.name)] = path.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended meanwhile
    found = [os.getpid()]
    for pid in found:
        found += [child for child, stat in stats.items() if int(stat[1]) == pid]
    return {pid: stats[pid] for pid in found}


def cpu_seconds() -> float:
    """Of all of them, also of those that have ended."""
    return sum(sum(map(int, stat[11:15])) for stat in family().values()) / os.sysconf("SC_CLK_TCK")


def largest_worker() -> float:
    """The most memory that a Python worker had, in megabytes."""
    found = [0.0]
    for pid in family():
        folder = Path("/proc") / str(pid)
        if pid != os.getpid() and b"pyspark.daemon" in (folder / "cmdline").read_bytes():
            status = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines())
            found.append(int(status["VmHWM"].split()[0]) / 1000)
    return max(found)


def query(events: DataFrame, out: Path, way: str, features: list[str]) -> StreamingQuery:
    """Read what comes, and learn or not."""
    if way == "learn":
        told = learn(events, key="key", id="id", time="time", features=features, label="label", shards=SHARDS)
    else:
        columns = "key", "id", "time", "label"
        shards = in_shards(events, columns, features, SHARDS, "1 hour").groupBy(SHARD)
        told = shards.transformWithStateInPandas(Nothing(), ROWS, "Append", "EventTime")
        told = as_given(events, columns, told)
    writer = told.writeStream.option("checkpointLocation", f"{out}/checkpoint")
    return writer.format("parquet").start(f"{out}/told")


def size_of(folder: Path) -> int:
    """Bytes of the files in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def on_spark(spark: SparkSession, n_keys: int, n_rows: int, way: str, n_features: int = N_FEATURES) -> dict[str, float]:
    """Rows per second, and bytes of the checkpoint for each row, of a query that has been running for a while."""
    with tempfile.TemporaryDirectory() as folder:
        made, rows, out = (Path(folder) / name for name in ("made", "rows", "out"))
        made.mkdir()
        rows.mkdir()
        for number in range(N_WARM + N_BATCHES):
            path = made / f"{number:03}.parquet"
            batch(n_rows, n_keys, number, n_features).to_parquet(path, index=False, coerce_timestamps="us")
        events = spark.readStream.schema(spark.read.parquet(str(made)).schema).option("maxFilesPerTrigger", 1)
        running = query(events.parquet(str(rows)), out, way, names_of(n_features))

        def finish(numbers: range) -> None:
            for number in numbers:
                (made / f"{number:03}.parquet").rename(rows / f"{number:03}.parquet")
            running.processAllAvailable()

        finish(range(N_WARM))
        n_bytes, cpu, wall = size_of(out / "checkpoint"), cpu_seconds(), time.perf_counter()
        finish(range(N_WARM, N_WARM + N_BATCHES))
        cpu, wall, n_bytes = cpu_seconds() - cpu, time.perf_counter() - wall, size_of(out / "checkpoint") - n_bytes
        running.stop()
        total = N_BATCHES * n_rows
        found = {"cpu": total / cpu, "wall": total / wall, "bytes": n_bytes / total}
        if way == "learn":
            found |= mean_bytes(spark, out)
        return found | {"worker": largest_worker()}


def mean_bytes(spark: SparkSession, out: Path) -> dict[str, float]:
    """Of a network and of a sample with its label, as a checkpoint has them, compressed."""
    states = {
        name: spark.read.format("statestore").option("stateVarName", name).load(f"{out}/checkpoint")
        for name in ("segments", "shared")
    }
    headers = [unpack_shared(bytes(row.value.content))[0] for row in states["shared"].collect()]
    sizes = states["segments"].selectExpr("user_map_key.family", "octet_length(user_map_value.content) AS n_bytes")
    totals = {
        row.family: row.total
        for row in sizes.groupBy("family").agg({"n_bytes": "sum"}).toDF("family", "total").collect()
    }
    n_entries = {name: sum(segment[1] for header in headers for segment in header[name]) for name in totals}
    return {name: total / n_entries[name] for name, total in totals.items()}


def alone(n_keys: int, n_rows: int) -> dict[str, float]:
    """The fleet by itself, given the same rows in the same rounds."""
    fleet = DEVDANFleet(n_jobs=1, random_state=0)
    begin = 0.0
    for number, table in enumerate([batch(n_rows, n_keys, number) for number in range(N_WARM + N_BATCHES)]):
        if number == N_WARM:
            begin = time.process_time()
        keys, X, y = table["key"].tolist(), table[names_of(N_FEATURES)].to_numpy(), table["label"].to_numpy()
        for places in rounds(pd.factorize(table["key"])[0]):
            own = [keys[place] for place in places.tolist()]
            if fleet.__sklearn_is_fitted__():
                fleet.predict_proba(own, X[places])
            fleet.partial_fit(own, X[places], y[places])
    return {"cpu": N_BATCHES * n_rows / (time.process_time() - begin)}


def session(n_cores: int = 2) -> SparkSession:
    """Spark on some cores of this machine."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(f"local[{n_cores}]")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def measured(sizes: list[int], n_rows: int) -> dict[str, Any]:
    """All figures; other work on the machine disturbs CPU times less than others."""
    spark = session()
    found: dict[str, Any] = {"machine": machine(), "rows": n_rows, "keys": {}}
    for n_keys in sizes:
        own = {way: on_spark(spark, n_keys, n_rows, way) for way in WAYS}
        found["keys"][str(n_keys)] = {"fleet": alone(n_keys, n_rows), **own}
    found["many_features"] = {way: on_spark(spark, sizes[0], n_rows, way, MANY_FEATURES) for way in WAYS}
    spark.stop()
    spark = session(1)
    found["one_core"] = on_spark(spark, sizes[0], n_rows, "learn")
    spark.stop()
    return found


def table(found: dict[str, Any]) -> str:
    """The figures as the page shows them."""
    names = {
        "fleet": "the fleet alone, without Spark",
        "learn": "`learn`",
        "nothing": "the same query, which learns nothing and has no state",
    }
    sizes = list(found["keys"])
    lines = ["| rows per CPU-second | " + " | ".join(f"{int(size):,} keys" for size in sizes) + " |"]
    lines.append("|---|" + "--:|" * len(sizes))
    for way, name in names.items():
        figures = [f"{found['keys'][size][way]['cpu']:,.0f}" for size in sizes]
        lines.append(f"| {name} | " + " | ".join(figures) + " |")
    kept = [f"{found['keys'][size]['learn']['bytes']:,.0f}" for size in sizes]
    lines.append("| bytes of the checkpoint for each row | " + " | ".join(kept) + " |")
    return "\n".join(lines)


def section(found: dict[str, Any]) -> str:
    """What the page says about them."""
    said = (
        f"Rows with their labels, ten features, {found['rows']:,} in a batch, on two cores of {found['machine']}, by a "
        f"query that has had {N_WARM} batches before:"
    )
    own = found["keys"][max(found["keys"], key=int)]
    ratios = [sizes["learn"]["cpu"] / sizes["nothing"]["cpu"] for sizes in found["keys"].values()]
    shares = ", ".join(
        f"{ratio:.0%} with {int(size):,} keys" for size, ratio in zip(found["keys"], ratios, strict=True)
    )
    written = (
        f"Of the rows of the query that learns nothing, `learn` has {shares}. A network takes "
        f"{own['learn']['networks']:,.0f} bytes of state, a sample with its label {own['learn']['samples']:,.0f}; the "
        f"largest Python worker had {own['learn']['worker']:,.0f} MB. {growth(found)}"
    )
    return f"## What it costs\n\n{said}\n\n{table(found)}\n\n{written}\n\n{on_paper(own['learn'])}"


def growth(found: dict[str, Any]) -> str:
    """What the page says about more features, and about cores."""
    fewest = min(found["keys"], key=int)
    many, two, one = found["many_features"], found["keys"][fewest]["learn"], found["one_core"]
    return (
        f"With {int(fewest):,} keys and {MANY_FEATURES} features, `learn` has {many['learn']['cpu']:,.0f} rows per "
        f"CPU-second, the query that learns nothing {many['nothing']['cpu']:,.0f}; with {N_FEATURES} features, "
        f"{two['wall']:,.0f} rows a second come out on two cores and {one['wall']:,.0f} on one."
    )


def on_paper(own: dict[str, float]) -> str:
    """The cluster for many rows and keys, if everything grows as it did here."""
    rate = ROWS_A_DAY / 86_400
    cores = rate / own["cpu"] / BUSY
    waiting = own["samples"] + 8 * N_FEATURES  # its features wait with it
    kept = KEYS * own["networks"] / 1e9, ROWS_A_DAY * waiting / 1e9
    rows = [
        ("rows a second, on average", f"{rate:,.0f}"),
        (f"cores, if they are to be busy {BUSY:.0%} of the time", f"{cores:,.0f}"),
        ("memory of Python workers, one for each core", f"{cores * own['worker'] / 1000:,.0f} GB"),
        (f"state of {KEYS:,} keys", f"{kept[0]:,.0f} GB"),
        ("state of the samples of a day, which is as long as labels take (`wait`)", f"{kept[1]:,.0f} GB"),
        ("written to the checkpoint", f"{rate * own['bytes'] / 1e6:,.0f} MB a second"),
    ]
    lines = "\n".join(f"| {name} | {value} |" for name, value in rows)
    intro = f"On paper, for {ROWS_A_DAY:,} rows a day and {KEYS:,} keys:"
    limit = (
        "The next limit is what is written to the checkpoint. A network is written once a batch, however many rows its "
        "key has in it: batches of more rows take fewer bytes for each."
    )
    return f"{intro}\n\n| | |\n|---|--:|\n{lines}\n\n{limit}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="keep the figures and write them into the page")
    parser.add_argument("--quick", action="store_true", help="few rows and keys")
    chosen = parser.parse_args()
    found = measured([100, 1000], 1000) if chosen.quick else measured([1_000, 100_000], 50_000)
    print(table(found))
    if chosen.write and not chosen.quick:
        RESULTS.write_text(json.dumps(found, indent=1) + "\n")
        put(PAGE, "spark", f"{section(found)}\n")


if __name__ == "__main__":
    main()
