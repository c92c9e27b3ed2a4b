"""How much memory and time it takes to read a large file of each format that is streamed.

``python benchmarks/reading.py --mb 200`` writes the rows of a CSV file of this size in each format, reads each in a
process of its own, and prints rows per second and how far memory grew after the first tenth of the rows.
"""

from __future__ import annotations

import argparse
import json
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

NAMES = [*(f"x{k}" for k in range(10)), "colour", "label"]
_AT_A_TIME = 20_000
_ROW_BYTES = 96  # of CSV


def batches(n_rows: int) -> Iterator[pa.RecordBatch]:
    """The rows, in pieces."""
    random = np.random.default_rng(0)
    for _ in range(n_rows // _AT_A_TIME):
        X = random.normal(size=(_AT_A_TIME, 10)).round(5)
        words = np.array(["red", "green", "blue"])[random.integers(0, 3, _AT_A_TIME)]
        labels = np.where(X[:, 0] > 0, "a", "b")
        yield pa.record_batch([*map(pa.array, X.T.copy()), pa.array(words), pa.array(labels)], names=NAMES)


def write(path: Path, n_rows: int) -> str:
    """The rows in the format of the path; returns what opens it."""
    first = next(batches(n_rows))
    if path.suffix == ".parquet":
        with pa.parquet.ParquetWriter(path, first.schema) as writer:
            for batch in batches(n_rows):
                writer.write_batch(batch)
    elif path.suffix == ".arrow":
        with pa.ipc.new_file(path, first.schema) as writer:
            for batch in batches(n_rows):
                writer.write_batch(batch)
    elif path.suffix in (".jsonl", ".json"):
        is_array = path.suffix == ".json"
        with path.open("w", encoding="utf-8") as file:
            begin = "[" if is_array else ""
            for batch in batches(n_rows):
                for row in batch.to_pylist():
                    file.write(begin + json.dumps(row) + ("" if is_array else "\n"))
                    begin = "," if is_array else ""
            file.write("]" if is_array else "")
    elif path.suffix == ".db":
        with closing(sqlite3.connect(path)) as connection:
            connection.execute(f"CREATE TABLE t ({', '.join(NAMES)})")
            for batch in batches(n_rows):
                rows = zip(*(column.to_pylist() for column in batch.columns), strict=True)
                connection.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(NAMES))})", rows)
            connection.commit()
        return f"sqlite:///{path}?table=t"
    else:
        with pa.output_stream(path, compression="detect") as stream, pa.csv.CSVWriter(stream, first.schema) as writer:
            for batch in batches(n_rows):
                writer.write_batch(batch)
    return str(path)


def read(source: str, n_rows: int) -> dict[str, Any]:
    """Read it all; what it took."""
    from devdan.streams import open_stream  # noqa: PLC0415 (in the process that is measured)

    begin, n, before = time.perf_counter(), 0, 0
    for X, _ in open_stream(source, target="label"):
        n += len(X)
        if not before and n >= n_rows // 10:
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return {"rows": n, "rows_per_second": round(n / (time.perf_counter() - begin)), "grown_mb": round(grown / 1024, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mb", type=int, default=200)
    parser.add_argument("--formats", default="csv,csv.gz,jsonl,json,parquet,arrow,db")
    parser.add_argument("--read", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    n_rows = max(arguments.mb * 1_000_000 // _ROW_BYTES // _AT_A_TIME, 1) * _AT_A_TIME
    if arguments.read:
        print(json.dumps(read(arguments.read, n_rows)))
        return
    for ending in arguments.formats.split(","):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"t.{ending}"
            source = write(path, n_rows)
            command = [sys.executable, __file__, "--mb", str(arguments.mb), "--read", source]
            result = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
            print(f"{ending:8} {path.stat().st_size / 1e6:6.0f} MB  {json.dumps(result)}", flush=True)


if __name__ == "__main__":
    main()
