"""Streams beside the paper's on which the defaults were chosen, for docs/experiments.md.

Most are River's generators with a new concept every 10,000 samples. Three have boundaries that bend a lot, two have
many features, and in two the features are skewed or change their units of measurement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

import numpy as np
from river.datasets import synth
from sklearn.datasets import load_digits

from devdan.streams import Stream
from devdan.streams.sources import arrays

SAMPLES, CONCEPT = 50_000, 10_000


def _in_turn(generators: Iterable[Any]) -> Iterator[Any]:
    for generator in generators:
        yield from islice(generator, CONCEPT)


def _agrawal(seed: int) -> Iterator[Any]:
    return _in_turn(synth.Agrawal(classification_function=k, seed=seed + k) for k in (0, 3, 6, 8, 4))


def _sine(seed: int) -> Iterator[Any]:
    return _in_turn(
        synth.Sine(classification_function=k, seed=seed + 10 * i, has_noise=True) for i, k in enumerate((0, 1, 2, 3, 0))
    )


def _mixed(seed: int) -> Iterator[Any]:
    return _in_turn(synth.Mixed(classification_function=k % 2, seed=seed + k) for k in range(5))


def _stagger(seed: int) -> Iterator[Any]:
    return _in_turn(synth.STAGGER(classification_function=k % 3, seed=seed + k) for k in range(5))


def _tree(seed: int) -> Iterator[Any]:
    return _in_turn(synth.RandomTree(seed_tree=seed + k, seed_sample=seed + k) for k in range(5))


def _rbf(seed: int) -> Iterator[Any]:
    return iter(
        synth.RandomRBFDrift(
            seed_model=seed, seed_sample=seed, n_classes=4, n_features=10, n_centroids=20, change_speed=1e-4
        )
    )


def _led(seed: int) -> Iterator[Any]:
    return _in_turn(
        synth.LEDDrift(seed=seed + k, noise_percentage=0.1, irrelevant_features=True, n_drift_features=2 * k)
        for k in range(4, -1, -1)
    )


def _waveform(seed: int) -> Iterator[Any]:
    return iter(synth.Waveform(seed=seed, has_noise=True))


def _rows(X: Any, labels: Any) -> Iterator[Any]:
    return ((dict(enumerate(row)), label) for row, label in zip(X.tolist(), labels.tolist(), strict=True))


def _checkerboard(seed: int) -> Iterator[Any]:
    X = np.random.default_rng(seed).random((SAMPLES, 2))
    return _rows(X, np.floor(4 * X).sum(axis=1).astype(int) % 2)


def _spiral(seed: int) -> Iterator[Any]:
    X = np.random.default_rng(seed).normal(size=(SAMPLES, 2))
    turns = 2 * np.arctan2(X[:, 1], X[:, 0]) + 4 * np.hypot(*X.T)
    return _rows(X, (np.sin(turns) > 0).astype(int))


def _parity(seed: int) -> Iterator[Any]:
    random = np.random.default_rng(seed)
    X = random.integers(0, 2, (SAMPLES, 6)) + 0.1 * random.normal(size=(SAMPLES, 6))
    return _rows(X, (X > 0.5).sum(axis=1) % 2)


CURVED: dict[str, Callable[[int], Iterator[Any]]] = {  # no concept changes, but the classes' boundaries bend a lot
    "checkerboard": _checkerboard,
    "parity": _parity,
    "spiral": _spiral,
}


def _digits(seed: int) -> Iterator[Any]:
    random = np.random.default_rng(seed)
    X, labels = load_digits(return_X_y=True)
    drawn = random.integers(0, len(X), 20_000)
    return _rows(X[drawn] + random.normal(size=(20_000, X.shape[1])), labels[drawn])


def _manifold(seed: int) -> Iterator[Any]:
    random = np.random.default_rng(seed)
    blob = random.integers(0, 20, 20_000)
    places = random.normal(size=(20, 10))[blob] + 0.5 * random.normal(size=(20_000, 10))
    X = np.tanh(places @ random.normal(size=(10, 300)) / 3) + 0.5 * random.normal(size=(20_000, 300))
    return _rows(X, blob % 4)


WIDE: dict[str, Callable[[int], Iterator[Any]]] = {  # 64 and 300 features
    "digits": _digits,
    "manifold": _manifold,
}


def _amounts(seed: int) -> Iterator[Any]:
    random = np.random.default_rng(seed)
    Z = random.normal(size=(12_000, 6))
    X = np.exp(2 * Z)
    X[:, 0] = np.exp(3 * Z[:, 0])
    X[:, 3:] = np.round(X[:, 3:])
    return _rows(X, (Z[:, 0] * Z[:, 1] > 0).astype(int) + (Z[:, 2] > 0.7))


SKEWED: dict[str, Callable[[int], Iterator[Any]]] = {
    "amounts": _amounts,  # six features from a log-normal distribution, three of them rounded; three classes
}
GENERATORS: dict[str, Callable[[int], Iterator[Any]]] = {
    "agrawal": _agrawal,
    "led": _led,
    "mixed": _mixed,
    "rbf": _rbf,
    "sine": _sine,
    "stagger": _stagger,
    "tree": _tree,
    "waveform": _waveform,
}


def generated(name: str, seed: int, chunk: int = 500) -> Stream:
    """A stream, its text coded by numbers in the order of appearance."""
    codes: dict[Any, float] = {}
    X, y = [], []
    for x, label in islice((GENERATORS | CURVED | WIDE | SKEWED)[name](seed), SAMPLES):
        X.append([v if isinstance(v, (int, float)) else codes.setdefault(v, float(len(codes))) for v in x.values()])
        y.append(label)
    return arrays(np.array(X, dtype=float), np.array(y), chunk=chunk, name=name)
