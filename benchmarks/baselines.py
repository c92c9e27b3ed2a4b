"""pClass and its ensembles: how much faster the compiled rules are than plain NumPy, and what each choice is worth.

`python benchmarks/baselines.py` measures the ratio in one process, on the same samples, as the time that one thread has
the processor; the plain version is the tests' oracle. With `--accuracy` it runs the streams at hand with one choice
changed at a time, and with `--write` puts that table into docs/deviations.md.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import paper_streams
from deviations import put
from sklearn.base import clone

from devdan.bench import PClass, PENsemble, PENsemblePlus
from devdan.evaluation.loop import prequential
from devdan.evaluation.record import Summary
from devdan.model.compilation import compile_kernel

sys.path.append(str(Path(__file__).parents[1] / "tests" / "support"))
from naive_pensemble import NaivePClass, NaivePENsemble, NaivePENsemblePlus

PAGE = Path(__file__).parents[1] / "docs" / "deviations.md"
STREAMS = ("sea", "hyperplane", "electricity", "weather")
SHAPES = ((3, 2), (8, 2), (41, 2), (50, 10))  # features, classes
CHUNK = 500

PAIRS: dict[str, tuple[Any, type[NaivePClass | NaivePENsemble]]] = {
    "PClass": (PClass(scaling=None), NaivePClass),
    "PENsemble": (PENsemble(PClass(scaling=None)), NaivePENsemble),
    "PENsemblePlus": (PENsemblePlus(PClass(scaling=None)), NaivePENsemblePlus),
}


def chunks(n_features: int, n_classes: int, n_chunks: int) -> list[tuple[Any, Any]]:
    """A linear problem in [0, 1] with noise."""
    random = np.random.default_rng(0)
    weights = random.normal(size=(n_features, n_classes))
    X = random.random((n_chunks, CHUNK, n_features))
    return [(part, ((part - 0.5) @ weights + random.normal(size=(CHUNK, n_classes))).argmax(axis=1)) for part in X]


def seconds(learn: Any, predict: Any, stream: list[tuple[Any, Any]]) -> float:
    """To predict and learn each chunk, per sample; the first chunk is learned before the clock starts."""
    learn(*stream[0])
    begin = time.thread_time()
    for X, y in stream[1:]:
        predict(X)
        learn(X, y)
    return (time.thread_time() - begin) / (CHUNK * (len(stream) - 1))


def speed() -> None:
    """Microseconds per sample, both ways."""
    print("| features, classes | | compiled, µs | plain NumPy, µs | ratio |\n|---|---|---|---|---|")
    for n_features, n_classes in SHAPES:
        stream = chunks(n_features, n_classes, 4)
        for name, (model, naive) in PAIRS.items():
            compile_kernel(model)
            ours, theirs = clone(model), naive(n_features, n_classes)
            fast = 1e6 * seconds(ours.partial_fit, ours.predict, stream)
            slow = 1e6 * seconds(theirs.learn, theirs.outputs, stream)
            print(f"| {n_features}, {n_classes} | {name} | {fast:.1f} | {slow:.0f} | {slow / fast:.0f} |", flush=True)


def pensemble(**options: Any) -> PENsemble:
    member = {name: options.pop(name) for name in list(options) if name in PClass().get_params()}
    return PENsemble(PClass(scaling=None, **member), **options)


def plus(**options: Any) -> PENsemblePlus:
    member = {name: options.pop(name) for name in list(options) if name in PClass().get_params()}
    return PENsemblePlus(PClass(scaling=None, **{"spread": 10.0} | member), **options)


VARIANTS: dict[str, Any] = {
    "pENsemble": pensemble(),
    "ω = 100": pensemble(omega=1e2),
    "ω = 1e4": pensemble(omega=1e4),
    "ω = 1e5, as published": pensemble(omega=1e5),
    "Q kept from chunk to chunk": pensemble(covariance_reset=False),
    "one rule per member": pensemble(grow=False),
    "only conditions A and B": pensemble(vigilance=0.0),
    "features weighted, soft": pensemble(feature_weighting="soft"),
    "features weighted, full": pensemble(feature_weighting="full"),
    "two features selected": pensemble(n_selected=2),
    "two features selected, partial input": pensemble(n_selected=2, partial_input=True, random_state=0),
    "pENsemble+": plus(),
    "first rule's variance 0.01 instead of 10": plus(spread=0.01),
    "dynamic threshold": plus(dynamic_threshold=True),
    "at most a tenth of the labels": plus(budget=0.1),
}


def accuracy() -> str:
    """CR of each variant on each stream, scaled beforehand."""
    lines = [
        f"CR in %, chunks of {CHUNK}, inputs scaled beforehand; in brackets the mean number of rules and, for "
        "pENsemble+, the labels used. Only the partial input is random, so there is a single run of each. "
        "`python benchmarks/baselines.py --accuracy --write` wrote this table.",
        "",
        "| | " + " | ".join(STREAMS) + " |",
        "|---" * (len(STREAMS) + 1) + "|",
    ]
    streams = {name: paper_streams.load(name) for name in STREAMS}
    for title, model in VARIANTS.items():
        cells = []
        for stream in streams.values():
            summary = Summary(prequential(stream, clone(model)))
            share = f", {100 * summary.n_labels / summary.n_samples:.0f} %" if isinstance(model, PENsemblePlus) else ""
            cells.append(f"{summary.rate.mean:.2f} ({summary.hidden.mean:.1f}{share})")
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
        print(lines[-1], file=sys.stderr, flush=True)
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--accuracy", action="store_true", help="what each choice is worth, instead of the speed")
    parser.add_argument("--write", action="store_true", help=f"put that into {PAGE.name}")
    arguments = parser.parse_args()
    if not arguments.accuracy:
        speed()
        return
    for name in STREAMS:
        if paper_streams.missing(name):
            raise SystemExit(paper_streams.missing(name))
    table = accuracy()
    print(table)
    if arguments.write:
        put(PAGE, "baselines", table)


if __name__ == "__main__":
    main()
