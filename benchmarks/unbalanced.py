"""The gain of balanced classes where one class is rare, and their cost where none is, for docs/rare-events.md.

`python benchmarks/unbalanced.py` prints the tables and saves the figures in benchmarks/results/unbalanced.json;
benchmarks/page.py writes the pages. The rare class is always 1.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import paper_streams

from devdan import DEVDAN, DEVDANEnsemble
from devdan.evaluation.loop import prequential
from devdan.evaluation.record import Summary
from devdan.streams import hyperplane, sea
from devdan.streams.sources import arrays

Samples = tuple[np.ndarray, np.ndarray]
RESULTS = Path(__file__).parent / "results" / "unbalanced.json"
SAMPLES = 50_000
PROBES = {"ipsweep", "nmap", "portsweep", "satan"}
BREAK_INS = {
    *("ftp_write", "guess_passwd", "imap", "multihop", "phf", "spy", "warezclient", "warezmaster"),
    *("buffer_overflow", "loadmodule", "perl", "rootkit"),
}
OPTIONS = {"None": None, '"balanced"': "balanced"}
MODELS: dict[str, Callable[[int, Any], Any]] = {
    "DEVDAN": lambda seed, option: DEVDAN(random_state=seed, class_weight=option),
    "ensemble": lambda seed, option: DEVDANEnsemble(random_state=seed, estimator=DEVDAN(class_weight=option)),
}


# --- Streams -----------------------------------------------------------------------------------------------------


def clouds(share: float, seed: int) -> Samples:
    """Two Gaussian clouds in eight dimensions, 2.5 deviations apart."""
    random = np.random.default_rng(seed)
    centre = random.normal(size=8)
    y = (random.random(SAMPLES) < share).astype(int)
    return random.normal(size=(SAMPLES, 8)) + np.outer(y, 2.5 * centre / np.linalg.norm(centre)), y


def turning(share: float, seed: int) -> Samples:
    """The outermost samples in a direction of eight dimensions, roughly; it turns by a right angle, bit by bit."""
    random = np.random.default_rng(seed)
    first, last = np.linalg.qr(random.normal(size=(8, 2)))[0].T
    angle = np.linspace(0, np.pi / 2, SAMPLES)
    X = random.normal(size=(SAMPLES, 8))
    far = (X @ first) * np.cos(angle) + (X @ last) * np.sin(angle) + 0.3 * random.normal(size=SAMPLES)
    return X, (far > np.quantile(far, 1 - share)).astype(int)


def kddcup(attacks: set[str], seed: int) -> Samples:
    """A sample of KDD Cup in random order, as in the paper; positive are some of the attacks."""
    with np.load(paper_streams.FOLDER / "kddcup99_10percent.npz") as file:
        drawn = np.random.default_rng(seed).permutation(len(file["y23"]))[:SAMPLES]
        rare = [code for code, name in enumerate(file["y23_names"].tolist()) if name.rstrip(".") in attacks]
        return file["X"][drawn], np.isin(file["y23"][drawn], rare).astype(int)


def of_paper(name: str, seed: int) -> Samples:
    """A stream of the paper, generated or from its file."""
    made = {"sea": sea, "hyperplane": hyperplane}
    stream = made[name](seed=seed) if name in made else paper_streams.load(name, scaled=False)
    X, y = (np.concatenate(parts) for parts in zip(*stream, strict=True))
    return X, np.unique(y, return_inverse=True)[1]


RARE = {
    "clouds, 0.9 %": partial(clouds, 0.009),
    "clouds, 5 %": partial(clouds, 0.05),
    "turning, 0.9 %": partial(turning, 0.009),
    "turning, 5 %": partial(turning, 0.05),
    "KDD Cup, probes, 0.8 %": partial(kddcup, PROBES),
    "KDD Cup, break-ins, 0.2 %": partial(kddcup, BREAK_INS),
}
EVEN = {name: partial(of_paper, name) for name in ("sea", "hyperplane", "electricity", "weather")}


def present(streams: dict[str, Any]) -> Iterator[str]:
    """Those whose files are there."""
    for name in streams:
        file = "kddcup99_10percent" if name.startswith("KDD") else name
        if (
            file not in ("kddcup99_10percent", "electricity", "weather")
            or (paper_streams.FOLDER / f"{file}.npz").exists()
        ):
            yield name


# --- Measuring ---------------------------------------------------------------------------------------------------


def measured(samples: Samples, model: Any) -> dict[str, float]:
    """In chunks of 500, each predicted first: the rare class' recall, precision and F1, G-mean and accuracy, in %."""
    summary = Summary(prequential(arrays(*samples), model))
    confusion, rare = summary.confusion, summary.classes.index(1)
    figures = {
        "G-mean": confusion.g_mean,
        "recall": confusion.recall(rare),
        "precision": confusion.precision(rare),
        "F1": confusion.f1(rare),
        "accuracy": confusion.accuracy,
    }
    return {name: 100 * (value or 0.0) for name, value in figures.items()}


def run(n_seeds: int) -> dict[str, Any]:
    """All figures by stream, model and option: one of each seed."""
    results: dict[str, Any] = {}
    for stream, make in (RARE | EVEN).items():
        if stream not in present(RARE | EVEN):
            print(f"{stream} is not in {paper_streams.FOLDER}", file=sys.stderr)
            continue
        for seed in range(1, n_seeds + 1):
            samples = make(seed)
            for model, new in MODELS.items():
                for option, value in OPTIONS.items():
                    cell = results.setdefault(stream, {}).setdefault(model, {}).setdefault(option, [])
                    cell.append(measured(samples, new(seed, value)))
        print(stream, file=sys.stderr, flush=True)
    return results


def markdown(results: dict[str, Any], streams: dict[str, Any], columns: tuple[str, ...]) -> str:
    """Means over the seeds; the better G-mean of each pair in bold."""
    lines = ["| stream | model | `class_weight` | " + " | ".join(columns) + " |", "|---" * (3 + len(columns)) + "|"]
    for stream in streams:
        for model, options in results.get(stream, {}).items():
            means = {
                option: {name: fmean(run[name] for run in runs) for name in runs[0]} for option, runs in options.items()
            }
            best = max(row["G-mean"] for row in means.values())
            for option, row in means.items():
                cells = [f"**{row[name]:.1f}**" if row[name] == best else f"{row[name]:.1f}" for name in columns]
                lines.append(f"| {stream} | {model} | `{option}` | " + " | ".join(cells) + " |")
    n_seeds = {len(runs) for models in results.values() for options in models.values() for runs in options.values()}
    return "\n".join([*lines, "", f"In %, mean of {' or '.join(map(str, sorted(n_seeds)))} seeds.", ""])


def where_rare(results: dict[str, Any]) -> str:
    return markdown(results, RARE, ("G-mean", "recall", "precision", "F1", "accuracy"))


def where_even(results: dict[str, Any]) -> str:
    return markdown(results, EVEN, ("G-mean", "accuracy"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    arguments = parser.parse_args()
    results = run(arguments.seeds)
    print(where_rare(results))
    print(where_even(results))
    if arguments.seeds >= 5:
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
