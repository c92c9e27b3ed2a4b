"""``python -m devdan``: watch DEVDAN learn the SEA stream."""

from __future__ import annotations

import sys

import numpy as np

from devdan.classifier import DEVDAN
from devdan.prequential import prequential
from devdan.record import Record, Summary
from devdan.streams import sea


def main() -> int:
    """Evaluate DEVDAN on the built-in SEA stream, a line for each tenth of it."""
    n_samples, chunk = 100_000, 500
    print(f"SEA: {n_samples:,} samples, 3 features, 2 classes, seven drifts; chunks of {chunk}, test then train\n")
    print("  samples  accuracy lately  hidden units")
    records: list[Record] = []
    n_tenth = n_samples // chunk // 10
    model = DEVDAN(scaling=None, random_state=0)
    try:
        X, y = next(iter(sea(chunk, chunk=chunk)))
        DEVDAN().partial_fit(X, y).predict(X)  # compiles, if need be, so that the time below is the model's own
        for record in prequential(sea(n_samples, chunk=chunk), model):
            records.append(record)
            if len(records) % n_tenth == 0:
                lately = np.mean([r.accuracy for r in records[-n_tenth:] if r.accuracy is not None])
                print(f"{len(records) * chunk:9,}  {100 * lately:13.2f} %  {record.n_hidden:12}", flush=True)
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130
    summary = Summary(records)
    print(f"\nclassification rate  {summary.rate.mean:.2f} ± {summary.rate.std:.2f} %")
    print(f"hidden units         {summary.hidden.mean:.2f} ± {summary.hidden.std:.2f}")
    print(f"parameters           {summary.parameters.mean:.1f}")
    seconds = summary.train_seconds + summary.test_seconds
    print(f"execution time       {seconds:.2f} s, {summary.samples_per_second:,.0f} samples/s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
