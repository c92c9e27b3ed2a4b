"""Streams on which nothing was ever chosen, for docs/benchmarks.md: `make table` writes them and runs the models.

Five come from River. The others were written down once, each for a way of being hard that the paper's streams and
River's generators do not have, before any model had seen them. `python benchmarks/held_out.py DIR` writes them all as
NPZ files, and prints their paths with commas between.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from river import datasets

Samples = tuple[np.ndarray, np.ndarray]
SAMPLES = 20_000  # at most


def of_river(dataset: Iterable[Any]) -> Samples:
    """The first samples of one of River's datasets."""
    rows = [(list(x.values()), y) for x, y in islice(dataset, SAMPLES)]
    return np.array([x for x, _ in rows], dtype=float), np.array([y for _, y in rows])


def clouds(random: np.random.Generator) -> Samples:
    """Six classes of two Gaussian clouds each in eight dimensions; all centres wander at random."""
    steps = 0.01 * random.normal(size=(SAMPLES, 12, 8))
    centres = 2 * random.normal(size=(12, 8)) + np.cumsum(steps, axis=0)
    cloud = random.integers(12, size=SAMPLES)
    return centres[np.arange(SAMPLES), cloud] + random.normal(size=(SAMPLES, 8)), cloud % 6


def rings(random: np.random.Generator) -> Samples:
    """Rings around the origin of a plane, in turn of one class and the other; half as wide from the middle on.

    Three more features say nothing.
    """
    X = random.normal(size=(SAMPLES, 5))
    width = np.where(np.arange(SAMPLES) < SAMPLES // 2, 0.8, 0.4)
    return X, (np.hypot(X[:, 0], X[:, 1]) / width).astype(int) % 2


def words(random: np.random.Generator) -> Samples:
    """Counts of fifty words in texts on four topics, most of them zero; a quarter of the words swap topics at times."""
    rates = random.gamma(0.3, 1.0, size=(4, 50))
    topic = random.integers(4, size=SAMPLES)
    X = np.empty((SAMPLES, 50))
    for part in np.array_split(np.arange(SAMPLES), 4):
        X[part] = random.poisson(rates[topic[part]])
        swapped = random.choice(50, size=12, replace=False)
        rates[:, swapped] = np.roll(rates[:, swapped], 1, axis=0)
    return X, topic


def newcomers(random: np.random.Generator) -> Samples:
    """Two classes at first, and a new one every 2,500 samples: Gaussian clouds in ten dimensions."""
    centres = 1.2 * random.normal(size=(9, 10))
    known = 2 + np.arange(SAMPLES) // 2_500
    label = (random.random(SAMPLES) * known).astype(int) % 9
    return centres[label] + random.normal(size=(SAMPLES, 10)), label


def rare(random: np.random.Generator) -> Samples:
    """A rare class in a box of three features, which jumps in the middle; three more say nothing, 3 % are wrong."""
    X = random.random((SAMPLES, 6))
    low = np.where(np.arange(SAMPLES)[:, None] < SAMPLES // 2, 0.1, 0.5)
    inside = ((X[:, :3] > low) & (X[:, :3] < low + 0.4)).all(axis=1)
    return X, (inside ^ (random.random(SAMPLES) < 0.03)).astype(int)


def waves(random: np.random.Generator) -> Samples:
    """Sixteen moments of a noisy wave whose frequency is its class, of three; its amplitude rises and falls."""
    label = random.integers(3, size=SAMPLES)
    phase = 2 * np.pi * random.random(SAMPLES)
    angle = phase[:, None] + np.arange(16) * (0.5 + 0.25 * label[:, None])
    size = 1 + 0.6 * np.sin(2 * np.pi * np.arange(SAMPLES) / 8_000)
    return size[:, None] * np.sin(angle) + 0.5 * random.normal(size=(SAMPLES, 16)), label


def units(random: np.random.Generator) -> Samples:
    """Which of two products is larger; the features have long tails, and come in another unit from the middle on."""
    X = np.exp(random.normal(size=(SAMPLES, 6)))
    label = (X[:, 0] * X[:, 1] > X[:, 2] * X[:, 3]).astype(int)
    X[SAMPLES // 2 :] *= [100, 1, 0.01, 1, 10, 1]
    return X, label


def recurring(random: np.random.Generator) -> Samples:
    """Two opposite linear concepts in five dimensions that take turns every 2,000 samples."""
    X = random.normal(size=(SAMPLES, 5))
    turn = np.arange(SAMPLES) // 2_000 % 2
    return X, ((X @ random.normal(size=5) > 0) ^ (turn == 1)).astype(int)


RIVERS: dict[str, Callable[[], Samples]] = {
    "bananas": lambda: of_river(datasets.Bananas()),
    "phishing": lambda: of_river(datasets.Phishing()),
    "segments": lambda: of_river(datasets.ImageSegments()),
    "shuttle": lambda: of_river(datasets.Shuttle()),
    "rotating": lambda: of_river(
        datasets.synth.Hyperplane(seed=1, n_features=10, n_drift_features=5, mag_change=0.001, noise_percentage=0.05)
    ),
}
OWN = (clouds, rings, words, newcomers, rare, waves, units, recurring)


def streams() -> dict[str, Samples]:
    """All of them."""
    rivers = {name: make() for name, make in RIVERS.items()}
    return rivers | {make.__name__: make(np.random.default_rng(1)) for make in OWN}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    found = streams()
    for name, (X, y) in found.items():
        np.savez_compressed(folder / f"{name}.npz", X=X, y=y)
    print(",".join(str(folder / f"{name}.npz") for name in found))


if __name__ == "__main__":
    main()
