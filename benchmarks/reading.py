"""How much memory and time it takes to read a large file of each format that is streamed.

``python benchmarks/reading.py --mb 1000`` writes the rows of a CSV file of this size in each format, and reads each in
a process of its own: rows per second, the most memory, and how far that grew after the first tenth of the rows.
``--write`` keeps the figures in benchmarks/results/reading.json and puts them on docs/formats.md.
``--against FOLDER`` reads in turn with this package and the one in the folder (the ``src`` of another version), and
tells the times of the processor.
"""

from __future__ import annotations

import argparse
import json
import os
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
from measuring import machine, put

RESULTS = Path(__file__).parent / "results" / "reading.json"
PAGE = Path(__file__).parents[1] / "docs" / "formats.md"
NAMES = [*(f"x{k}" for k in range(10)), "colour", "label"]
_AT_A_TIME = 20_000
_ROW_BYTES = 96  # of CSV
_PASSES = 5  # over a file, to compare versions
_TITLES = {
    "csv": "CSV", "comma.csv": "CSV with decimal commas", "csv.gz": "CSV, gzip", "jsonl": "JSON lines",
    "json": "JSON array", "parquet": "Parquet", "arrow": "Arrow", "db": "SQLite",
}  # fmt: skip


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
    elif path.suffixes == [".comma", ".csv"]:
        with path.open("w", encoding="utf-8") as file:
            file.write(";".join(NAMES) + "\n")
            for batch in batches(n_rows):
                rows = zip(*(column.to_pylist() for column in batch.columns), strict=True)
                file.writelines(";".join(map(str, row)).replace(".", ",") + "\n" for row in rows)
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
            before = _peak()
    seconds, peak = time.perf_counter() - begin, _peak()
    return {"rows": n, "rows_per_second": round(n / seconds), "peak_mb": round(peak), "grown_mb": round(peak - before)}


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def processor_seconds(source: str) -> float:
    """The least time of the processor in which it is read."""
    from devdan.streams import open_stream  # noqa: PLC0415

    taken = []
    for _ in range(_PASSES):
        begin = time.process_time()
        for _ in open_stream(source, target="label"):
            pass
        taken.append(time.process_time() - begin)
    return min(taken)


def _in_a_process(source: str, *options: str, path: str | None = None) -> Any:
    own = {**os.environ, "PYTHONPATH": path, "PYTHONWARNINGS": "ignore"} if path else None
    command = [sys.executable, __file__, *options, "--read", source]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True, env=own).stdout)


def compared(source: str, other: str) -> dict[str, float]:
    """The least time of this version and of another, in turn, three times."""
    ours = str(Path(__file__).parents[1] / "src")
    taken: dict[str, list[float]] = {"this": [], "other": []}
    for _ in range(3):
        taken["other"].append(_in_a_process(source, "--seconds", path=other))
        taken["this"].append(_in_a_process(source, "--seconds", path=ours))
    return {name: round(min(seconds), 3) for name, seconds in taken.items()}


def table(found: dict[str, dict[str, Any]]) -> str:
    """The figures as a table of Markdown."""
    sizes = sorted({int(size) for of in found.values() for size in of})
    head = [f"{size / 1000:g} GB" if size >= 1000 else f"{size} MB" for size in sizes]
    lines = ["| format |" + "".join(f" {size} |" for size in head), "|---|" + "---|" * len(sizes)]
    for ending, title in _TITLES.items():
        if ending in found:
            of = found[ending]
            cells = [f"{of[str(size)]['peak_mb']} MB" if str(size) in of else "" for size in sizes]
            lines.append(f"| {title} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mb", type=int, default=200)
    parser.add_argument("--formats", default=",".join(_TITLES))
    parser.add_argument("--write", action="store_true", help="keep the figures, and put them on the page")
    parser.add_argument("--against", metavar="FOLDER", help="the src of another version")
    parser.add_argument("--read", help=argparse.SUPPRESS)
    parser.add_argument("--seconds", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    n_rows = max(arguments.mb * 1_000_000 // _ROW_BYTES // _AT_A_TIME, 1) * _AT_A_TIME
    if arguments.read:
        is_timed = arguments.seconds
        print(json.dumps(processor_seconds(arguments.read) if is_timed else read(arguments.read, n_rows)))
        return
    kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"formats": {}}
    for ending in arguments.formats.split(","):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"t.{ending}"
            source = write(path, n_rows)
            if arguments.against:
                print(f"{ending:9} {json.dumps(compared(source, arguments.against))}", flush=True)
                continue
            result = _in_a_process(source, "--mb", str(arguments.mb))
            result["file_mb"] = round(path.stat().st_size / 1e6)
            print(f"{ending:9} {json.dumps(result)}", flush=True)
        del result["rows_per_second"]  # depends on what else the machine does
        kept["formats"].setdefault(ending, {})[str(arguments.mb)] = result
        if arguments.write:
            RESULTS.write_text(json.dumps(kept | {"machine": machine()}, indent=1) + "\n")
            put(PAGE, "memory", table(kept["formats"]))


if __name__ == "__main__":
    main()
