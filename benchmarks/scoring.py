"""The share of a run's time that its measures take: counting predictions and scores, and what alerts find.

`python benchmarks/scoring.py` prints a table, `--write` puts it into docs/rare-events.md. Each row is the run with the
cheapest measures of several, in chunks of 500. Times depend on the machine, shares hardly.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from measuring import machine, put

from devdan import DEVDAN, DEVDANEnsemble
from devdan.evaluation.loop import Evaluation
from devdan.model.compilation import compile_kernel

PAGE = Path(__file__).parents[1] / "docs" / "rare-events.md"
N_SAMPLES, CHUNK, REPEATS = 50_000, 500, 3


class Timed(Evaluation):
    """An evaluation that measures how long it takes to measure."""

    seconds = 0.0

    def _quality(self, *arguments):
        begin = time.perf_counter()
        quality = super()._quality(*arguments)
        self.seconds += time.perf_counter() - begin
        return quality


def stream(n_classes: int):
    """Samples of classes of which each is half as frequent as the one before."""
    random = np.random.default_rng(0)
    shares = 0.5 ** np.arange(n_classes)
    y = random.choice(n_classes, N_SAMPLES, p=shares / shares.sum())
    X = random.normal(size=(N_SAMPLES, 10)) + random.normal(size=(n_classes, 10))[y]
    return [(X[start : start + CHUNK], y[start : start + CHUNK]) for start in range(0, N_SAMPLES, CHUNK)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"put the table into {PAGE.name}")
    lines = ["| model | classes | ns per sample | share of the run |", "|---|---|---|---|"]
    write = parser.parse_args().write
    for name, model in (("DEVDAN", DEVDAN(random_state=0)), ("ensemble", DEVDANEnsemble(random_state=0))):
        compile_kernel(model)
        for n_classes in (2, 5, 12):
            chunks, found = stream(n_classes), []
            for _ in range(REPEATS):
                evaluation = Timed(type(model)(**model.get_params(deep=False)))
                begin = time.perf_counter()
                for _ in evaluation.over(chunks):
                    pass
                found.append((evaluation.seconds, time.perf_counter() - begin))
            seconds, total = min(found)
            lines.append(f"| {name} | {n_classes} | {1e9 * seconds / N_SAMPLES:.0f} | {100 * seconds / total:.2g} % |")
    about = f"`python benchmarks/scoring.py --write`, in chunks of {CHUNK}, on {machine()}."
    text = "\n".join([*lines, "", about]) + "\n"
    print(text)
    if write:
        put(PAGE, "scoring", text)


if __name__ == "__main__":
    main()
