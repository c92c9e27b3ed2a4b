"""Speed at the paper's scale, for docs/benchmarks-size.md: stand-ins of SUSY and HEPMASS, run from a gzipped CSV file.

`python benchmarks/scale.py` saves the figures in benchmarks/results/scale.json; benchmarks/page.py writes the page.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv

from devdan.runs.runfolder import RunFolder

SHAPES = {"SUSY": (5_000_000, 18), "HEPMASS": (2_000_000, 28)}
RESULTS = Path(__file__).parent / "results" / "scale.json"
BLOCK = 100_000


def write(path: Path, n_samples: int, n_features: int) -> None:
    """A label in column 0, no header, as in SUSY; two overlapping classes of normal features, full precision."""
    random = np.random.default_rng(0)
    options = pa.csv.WriteOptions(include_header=False)
    with pa.CompressedOutputStream(str(path), "gzip") as file:
        for _ in range(0, n_samples, BLOCK):
            X = random.normal(size=(BLOCK, n_features))
            y = (X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * random.normal(size=BLOCK) > 0).astype(np.float64)
            pa.csv.write_csv(pa.table([y, *X.T], names=[str(k) for k in range(n_features + 1)]), file, options)


def run(path: Path, folder: Path) -> dict[str, Any]:
    """Run it in a process of its own; returns its summary, the peak memory and the time as a user waits for it."""
    command = [sys.executable, "-m", "devdan", "run", str(path), "--target", "0", "--out", str(folder), "--json"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(command)} failed")
    summary = RunFolder(folder).summary()
    machine = (RunFolder(folder).settings() or {})["machine"]
    names = ("n_samples", "train_seconds", "test_seconds", "read_seconds", "total_seconds", "hn_mean", "cr_mean")
    return {
        **{name: summary[name] for name in names},
        "n_bytes": path.stat().st_size,
        "peak_megabytes": used.ru_maxrss / 1000,
        "cpu_seconds": used.ru_utime + used.ru_stime,
        "machine": machine,
    }


def markdown(results: dict[str, dict[str, Any]]) -> str:
    """The results as a table."""
    lines = [
        "| stand-in of | file | samples/s overall | reading | training | predicting | recording and other | memory |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, result in results.items():
        n_samples, n_features = SHAPES[name]
        total = result["total_seconds"]
        shares = [result["read_seconds"], result["train_seconds"], result["test_seconds"]]
        shares.append(total - sum(shares))
        lines.append(
            f"| {name}, {n_samples:,} × {n_features} | {result['n_bytes'] / 1e6:,.0f} MB | {n_samples / total:,.0f} | "
            + " | ".join(f"{100 * share / total:.0f} %" for share in shares)
            + f" | {result['peak_megabytes']:,.0f} MB |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder for the files, kept for another time; else a temporary one")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the samples, to try it")
    arguments = parser.parse_args()
    results = {}
    with tempfile.TemporaryDirectory() as temporary:
        for name, (n_samples, n_features) in SHAPES.items():
            path = (arguments.data or Path(temporary)) / f"{name.lower()}-{arguments.scale:g}.csv.gz"
            if not path.exists():
                print(f"writing {path.name}", file=sys.stderr, flush=True)
                write(path, int(n_samples * arguments.scale), n_features)
            results[name] = run(path, Path(temporary) / name)
            print(json.dumps(results[name]), file=sys.stderr, flush=True)
    print(markdown(results))
    if arguments.scale == 1:
        RESULTS.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
