"""Whether importances, explanations and scores of samples tell the truth where it is known, for docs/why.md.

`python benchmarks/insight.py` prints the tables, `--write` puts them into the page. Needs the river extra.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from unittest.mock import patch

import numpy as np
from known_anomalies import anomalies_table
from known_columns import importances_table
from measuring import put

from devdan import DEVDAN
from devdan.evaluation.adapters import _DevdanAdapter
from devdan.evaluation.loop import prequential
from devdan.model import explain as shapley
from devdan.streams import open_stream, sea

PAGE = Path(__file__).parents[1] / "docs" / "why.md"


def explanations_table(n_rows: int = 50) -> str:
    lines = ["| columns | orders | error | ms per sample |", "|---|---|---|---|"]
    random = np.random.default_rng(0)
    for width in (6, 12, 30, 100):
        X = random.normal(size=(6000, width))
        model = DEVDAN(random_state=0)
        for start in range(0, len(X), 500):
            part = X[start : start + 500]
            model.partial_fit(part, part[:, 0] * part[:, 1] + part[:, 2] > 0)
        many = model.explain(X[:n_rows], n_orders=2048 if width < 100 else 512).contributions
        for n_orders in (32,) if width <= shapley.MOST_EXACT else (8, 32, 128):
            begin = time.process_time()
            found = model.explain(X[:n_rows], n_orders=n_orders).contributions
            seconds = time.process_time() - begin
            told = "all" if width <= shapley.MOST_EXACT else str(n_orders)
            error = f"{100 * np.abs(found - many).sum() / np.abs(many).sum():.1f} %" if told != "all" else "–"
            lines.append(f"| {width} | {told} | {error} | {1000 * seconds / n_rows:.2f} |")
    return "\n".join(lines) + "\n"


def cost_table() -> str:
    """How much of the processor's time of an evaluation goes into the importances of its records."""
    lines = ["| stream | columns | samples | places | share of the time |", "|---|---|---|---|---|"]
    random = np.random.default_rng(0)
    wide = random.normal(size=(100_000, 100))
    asks = _DevdanAdapter._importances
    list(prequential(sea(1000), DEVDAN(random_state=0)))  # which loads what is compiled
    for stream in (sea(10_000), sea(100_000), sea(None).first(2_000_000), open_stream((wide, wide[:, 0] > 0))):
        spent = []

        def timed(learner: _DevdanAdapter, spent: list[float] = spent) -> tuple[float, ...] | None:
            begin = time.process_time()
            found = asks(learner)
            if found is not None:
                spent.append(time.process_time() - begin)
            return found

        with patch.object(_DevdanAdapter, "_importances", timed):
            begin = time.process_time()
            n_samples = sum(record.n_samples for record in prequential(stream, DEVDAN(random_state=0)))
            total = time.process_time() - begin
        n_columns = 100 if stream.name != "sea" else 3
        share = f"{100 * len(spent) * np.median(spent) / total:.1f} %"
        lines.append(f"| {stream.name} | {n_columns} | {n_samples:,} | {len(spent)} | {share} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", choices=["importances", "cost", "explanations", "anomalies"])
    parser.add_argument("--write", action="store_true", help=f"put the tables into {PAGE.name}")
    arguments = parser.parse_args()
    tables = {
        "importances": lambda: importances_table(arguments.seeds),
        "cost": cost_table,
        "explanations": explanations_table,
        "anomalies": lambda: anomalies_table(arguments.seeds),
    }
    for name, table in tables.items():
        if arguments.only in (None, name):
            told = table()
            print(told)
            if arguments.write:
                put(PAGE, name, told)


if __name__ == "__main__":
    main()
