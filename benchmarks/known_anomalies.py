"""Scores of samples where it is known which are anomalies, one in fifty; for benchmarks/insight.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from river import anomaly
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score

from devdan import DEVDAN
from devdan.arrays import Floats
from devdan.model.recent import statistics

RARE, N_SAMPLES, FIRST = 0.02, 12_000, 2_000


def clusters(random: np.random.Generator, odd: Any) -> tuple[Floats, Any]:
    """Three clouds in six dimensions; anomalies lie anywhere."""
    centres = np.array([[0] * 6, [4, 0, 4, 0, 4, 0], [0, 5, 0, 5, 0, 5]])[random.integers(0, 3, len(odd))]
    X = centres + random.normal(size=centres.shape)
    X[odd] = random.uniform(-4, 9, size=(odd.sum(), 6))
    return X, centres[:, 0] > 2


def curve(random: np.random.Generator, odd: Any) -> tuple[Floats, Any]:
    """Six columns that follow two hidden ones; an anomaly has usual values that do not go together."""
    a, b = random.uniform(-3, 3, len(odd)), random.normal(size=len(odd))
    X = np.stack([a, np.sin(a), a**2, b, a / 2 + b, np.cos(a)], axis=1) + 0.1 * random.normal(size=(len(odd), 6))
    X[odd] = np.column_stack([random.choice(column, odd.sum()) for column in X.T])
    return X, b > 0


def correlated(random: np.random.Generator, odd: Any) -> tuple[Floats, Any]:
    """Ten columns that are sums of four; anomalies have noise of their own in each."""
    sums = np.random.default_rng(9).normal(size=(4, 10))
    X = random.normal(size=(len(odd), 4)) @ sums + 0.2 * random.normal(size=(len(odd), 10))
    X[odd] += 1.5 * random.normal(size=(odd.sum(), 10))
    return X, X[:, 0] > 0


def spikes(random: np.random.Generator, odd: Any) -> tuple[Floats, Any]:
    """Fifteen skewed columns; an anomaly has six times the value in one of them."""
    X = random.gamma(2, 1, size=(len(odd), 15))
    X[np.flatnonzero(odd), random.integers(0, 15, odd.sum())] *= 6
    return X, X[:, 0] > 2


def moving(random: np.random.Generator, odd: Any) -> tuple[Floats, Any]:
    """Five columns, of which three move by eight deviations over the stream; anomalies are four off in each."""
    X = random.normal(size=(len(odd), 5)) + np.outer(np.linspace(0, 8, len(odd)), [1, -1, 1, 0, 0])
    X[odd] += 4 * np.sign(random.normal(size=(odd.sum(), 5)))
    return X, X[:, 4] > 0


SETS = (clusters, curve, correlated, spikes, moving)
Flags = tuple[Floats, Floats, Floats]  # how abnormal each sample is, and whether it is among the 5 % and the 1 %


def by_devdan(X: Floats, y: Any, seed: int, labelled: bool = True, **options: Any) -> Flags:
    model, found = DEVDAN(random_state=seed, **options), []
    for start in range(0, len(X), 500):
        part = slice(start, start + 500)
        if start >= FIRST:
            found.append(model.score_samples(X[part]))
        model = model.partial_fit(X[part], y[part]) if labelled else model.observe(X[part])
    scores = np.concatenate(found)
    return -scores, scores < -0.95, scores < -0.99


def by_reconstruction(X: Floats, y: Any, seed: int) -> Flags:
    """The squared error of the reconstruction in deviations, ranked among the latest 1,000."""
    model, found = DEVDAN(random_state=seed), []
    for start in range(0, len(X), 500):
        part = X[start : start + 500]
        if start > 0:
            _, deviation = statistics(model.mixture_.networks)
            found.append((((model.reconstruct(part) - part) / deviation) ** 2).mean(axis=1))
        model.partial_fit(part, y[start : start + 500])
    return _among_the_latest(np.concatenate([np.zeros(500), *found]))


def by_forest(X: Floats, y: Any, seed: int) -> Flags:
    """An isolation forest, trained again every 2,000 samples on the latest 2,000; thresholds are from these."""
    found, flags = [], []
    for start in range(FIRST, len(X), 2000):
        forest = IsolationForest(random_state=seed).fit(X[start - 2000 : start])
        theirs, own = -forest.score_samples(X[start - 2000 : start]), -forest.score_samples(X[start : start + 2000])
        found.append(own)
        flags.append([own > np.quantile(theirs, share) for share in (0.95, 0.99)])
    return np.concatenate(found), *(np.concatenate(own) for own in zip(*flags, strict=True))


def by_half_spaces(X: Floats, y: Any, seed: int) -> Flags:
    """River's half-space trees, which know the ranges of the first samples; thresholds are from the latest 1,000."""
    limits = {j: (column.min(), column.max()) for j, column in enumerate(X[:FIRST].T)}
    trees, found = anomaly.HalfSpaceTrees(seed=seed, limits=limits), []
    for row in X:
        x = dict(enumerate(row.tolist()))
        found.append(trees.score_one(x))
        trees.learn_one(x)
    return _among_the_latest(np.array(found))


def _among_the_latest(values: Floats) -> Flags:
    chunks = range(FIRST, len(values), 500)
    flags = [
        np.concatenate([values[t : t + 500] > np.quantile(values[t - 1000 : t], share) for t in chunks])
        for share in (0.95, 0.99)
    ]
    return values[FIRST:], *flags


DETECTORS: dict[str, Callable[..., Flags]] = {
    "`score_samples`": by_devdan,
    "`score_samples`, no labels": lambda X, y, seed: by_devdan(X, y, seed, labelled=False),
    "`score_samples`, `rehearse=0`": lambda X, y, seed: by_devdan(X, y, seed, rehearse=0),
    "error of the reconstruction": by_reconstruction,
    "scikit-learn's IsolationForest": by_forest,
    "River's HalfSpaceTrees": by_half_spaces,
}


def anomalies_table(n_seeds: int) -> str:
    head = ["", *(one.__name__ for one in SETS), "flagged at 5 %", "at 1 %", "of anomalies at 5 %", "at 1 %"]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for name, detect in DETECTORS.items():
        areas, flagged = {one.__name__: [] for one in SETS}, []
        for make in SETS:
            for seed in range(n_seeds):
                random = np.random.default_rng(seed)
                odd = random.random(N_SAMPLES) < RARE
                scores, five, one = detect(*make(random, odd), seed)
                odd = odd[FIRST:]
                areas[make.__name__].append(roc_auc_score(odd, scores))
                flagged.append((five.mean(), one.mean(), five[odd].mean(), one[odd].mean()))
        cells = [name, *(f"{np.mean(own):.3f}" for own in areas.values())]
        lines.append(
            "| " + " | ".join([*cells, *(f"{100 * share:.1f} %" for share in np.mean(flagged, axis=0))]) + " |"
        )
    return "\n".join(lines) + "\n"
