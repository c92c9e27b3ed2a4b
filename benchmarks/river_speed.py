"""The speed of the River adapter, sample by sample: its overhead over the kernel, and deep-river's, for docs/river.md.

`python benchmarks/river_speed.py` prints the table, `--write` puts it into the page. deep-river 0.3.4 needs an
environment of its own, since it cannot be imported beside River 0.26: `pip install -e '.[river]' deep-river pytest`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import river
from measuring import best, machine, put

from devdan import kernel
from devdan.kernel.state import scratch_for
from devdan.model.classes import NO_WEIGHTS
from devdan.river import DEVDANClassifier
from devdan.streams import sea

PAGE = Path(__file__).parents[1] / "docs" / "river.md"
Sample = tuple[dict[Any, float], int]


def overhead(n_samples: int, n_features: int = 10) -> dict[str, float]:
    """Microseconds for learning and predicting one sample through the face, and in the kernel alone."""
    random = np.random.default_rng(0)
    X = random.random((n_samples, n_features))
    y = (X.sum(axis=1) > n_features / 2).astype(np.int64)
    rows = [dict(enumerate(row)) for row in X.tolist()]
    face = DEVDANClassifier(seed=1)
    for x, label in zip(rows, y.tolist(), strict=True):  # as large as it will be
        face.learn_one(x, label)
    assert face._online.mixture is not None
    state, out, order = face._online.mixture.networks[0], np.zeros((n_samples, 2)), np.arange(n_samples)
    scratch = scratch_for(state)

    def through_the_face() -> None:
        for x, label in zip(rows, y.tolist(), strict=True):
            face.predict_one(x)
            face.learn_one(x, label)

    def alone() -> None:
        kernel.predict_proba(state, scratch, X, out, 1.0)
        kernel.learn(state, scratch, X, y, NO_WEIGHTS, order, 1, 0, kernel.GENERATIVE, kernel.DISCRIMINATIVE)

    whole, inner = (1e6 * best(run, 5) / n_samples for run in (through_the_face, alone))
    return {"face": whole, "kernel": inner, "overhead": whole - inner}


def samples(n: int) -> list[Sample]:
    return [(dict(enumerate(row.tolist())), int(label)) for X, y in sea(n) for row, label in zip(X, y, strict=True)]


def deep_river() -> Any:
    """deep-river's classifier with ten hidden units, or None where it is not installed."""
    try:
        from deep_river.classification import Classifier  # noqa: PLC0415 (optional)
        from torch import nn  # noqa: PLC0415
    except ImportError as error:
        print(f"deep-river cannot be imported here ({error}); see `python {Path(__file__).name} --help`")
        return None
    module = nn.Sequential(nn.Linear(3, 10), nn.ReLU(), nn.Linear(10, 2))
    return Classifier(module=module, loss_fn="cross_entropy", optimizer_fn="sgd", lr=0.01, output_is_logit=True, seed=1)


def per_sample(make: Callable[[], Any], stream: list[Sample], repeats: int) -> float:
    """Microseconds for predict_one and learn_one."""

    def run() -> None:
        model = make()
        for x, y in stream:
            model.predict_one(x)
            model.learn_one(x, y)

    run()
    return 1e6 * best(run, repeats) / len(stream)


def tables(quick: bool) -> str:
    """The figures as Markdown."""
    n = 2_000 if quick else 20_000
    costs = overhead(n)
    lines = [
        f"Microseconds for `predict_one` and `learn_one` together, one core of {machine()}, River {river.__version__}:",
        "",
        "| | µs |",
        "|---|---|",
        f"| ten features, `DEVDANClassifier` | {costs['face']:.1f} |",
        f"| of these, in the kernel | {costs['kernel']:.1f} |",
        f"| and overhead of the adapter | {costs['overhead']:.1f} |",
    ]
    ours = per_sample(lambda: DEVDANClassifier(seed=1), samples(n), 3)
    lines.append(f"| SEA, `DEVDANClassifier` | {ours:.1f} |")
    fixed = per_sample(lambda: DEVDANClassifier(n_hidden=10, grow=False, prune=False, seed=1), samples(n), 3)
    lines.append(f"| SEA, `DEVDANClassifier` with ten hidden units | {fixed:.1f} |")
    if deep_river() is not None:
        theirs = per_sample(deep_river, samples(n // 10), 2)
        lines.append(f"| SEA, deep-river's `Classifier` with ten hidden units | {theirs:.0f} |")
        lines += [
            "",
            f"deep-river takes {theirs / ours:.0f} times as long, and {theirs / fixed:.0f} times as long as "
            "`DEVDANClassifier` with ten hidden units.",
        ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="short runs")
    parser.add_argument("--write", action="store_true", help=f"put the figures into {PAGE.name}")
    arguments = parser.parse_args()
    text = tables(arguments.quick)
    print(text)
    if arguments.write:
        put(PAGE, "speed", text)


if __name__ == "__main__":
    main()
