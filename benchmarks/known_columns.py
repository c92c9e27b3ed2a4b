"""Importances on streams whose label follows known columns, and later others; for benchmarks/insight.py."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd

from devdan import DEVDAN, DEVDANEnsemble
from devdan.arrays import Floats
from devdan.kernel import Network
from devdan.model.explain import SAMPLES, sensitivity
from devdan.model.recent import recent_inputs, statistics

LENGTH, CHUNK = 20_000, 250
Concept = tuple[Any, Any, Floats]  # samples, labels, the truth: how much each column matters


def linear(random: np.random.Generator, later: bool) -> Concept:
    """A weighted sum of three of eight columns, and noise."""
    X = random.normal(size=(CHUNK, 8))
    weights = np.array([0, 0, 0, 1, 3, 2, 0, 0] if later else [3, 2, 1, 0, 0, 0, 0, 0], float)
    return X, X @ weights + 0.5 * random.normal(size=CHUNK) > 0, weights**2


def interaction(random: np.random.Generator, later: bool) -> Concept:
    """Whether two of eight columns have the same sign; alone, neither tells anything."""
    X = random.normal(size=(CHUNK, 8))
    a, b = (2, 3) if later else (0, 1)
    return X, X[:, a] * X[:, b] > 0, np.isin(np.arange(8), (a, b)).astype(float)


def category(random: np.random.Generator, later: bool) -> Concept:
    """One of six values of a city, later a number; four numbers on several scales, two nominal columns; some noise."""
    table = pd.DataFrame(random.normal(size=(CHUNK, 4)) * [1, 100, 0.01, 1], columns=list("abcd"))
    table["city"], table["shop"] = (random.choice(list(names), CHUNK) for names in ("uvwxyz", "klmnop"))
    y = table.b > 0 if later else table.city.isin(["u", "w", "y"])
    return table, y ^ (random.random(CHUNK) < 0.05), np.array([0, later, 0, 0, not later, 0], float)


def decoys(random: np.random.Generator, later: bool) -> Concept:
    """One of six columns; two others are correlated (0.8) with it and with the one that decides later."""
    X = random.normal(size=(CHUNK, 6))
    X[:, 1], X[:, 3] = 0.8 * X[:, 0] + 0.6 * X[:, 1], 0.8 * X[:, 2] + 0.6 * X[:, 3]
    own = 2 if later else 0
    return X, X[:, own] + 0.3 * random.normal(size=CHUNK) > 0, (np.arange(6) == own).astype(float)


def skewed(random: np.random.Generator, later: bool) -> Concept:
    """As linear, but the columns are log-normal, on scales from 0.001 to 1,000."""
    X, y, truth = linear(random, later)
    return np.exp(0.7 * X) * 10.0 ** np.arange(-3, 5), y, truth


STREAMS = (linear, interaction, category, decoys, skewed)


def shares(values: Floats) -> Floats:
    values = np.maximum(values, 0)
    return values / values.sum() if values.sum() > 0 else values


def concordance(found: Floats, truth: Floats) -> float:
    """The share of pairs of columns, of which one matters more, that are in that order."""
    more = truth[:, None] > truth
    return float((found[:, None] > found)[more].mean())


def by_gradient(model: Any, X: Floats, places: list[list[int]]) -> Floats:
    """Mean |gradient × deviation| of the predictions, added up over the inputs of a column."""
    _, deviation = statistics(model.mixture_.networks)
    found = np.zeros(len(places))
    for k, own in enumerate(places):
        for j in own:
            step = np.zeros(X.shape[1])
            step[j] = 0.01 * deviation[j]
            slope = (model._probabilities(X + step) - model._probabilities(X - step)) / 0.02
            found[k] += np.abs(slope).sum(axis=1).mean()
    return shares(found)


def by_loss(model: Any, X: Floats, places: list[list[int]]) -> Floats:
    """How much the loss on the remembered labels rises if a column is permuted; none without labels."""
    net = Network(model.mixture_.networks[-1])
    n = min(net.n_remembered, net.max_samples, len(X))
    if n == 0:
        return np.zeros(len(places))
    kept = (net.n_remembered - 1 - np.arange(n)) % net.max_samples
    X, place = (
        net.remembered[kept, : net.n_features],
        np.argsort(model.mixture_.classes.outputs)[net.remembered_label[kept]],
    )

    def loss(X: Floats) -> float:
        return float(-np.log(np.maximum(model._probabilities(X)[np.arange(n), place], 1e-4)).mean())

    random, found = np.random.default_rng(0), np.zeros(len(places))
    for k, own in enumerate(places):
        mixed = X.copy()
        mixed[:, own] = X[random.permutation(n)][:, own]
        found[k] = loss(mixed) - loss(X)
    return shares(found)


def by_shapley(model: Any, X: Floats, places: list[list[int]]) -> Floats:
    """Mean |Shapley value| of fifty samples."""
    return shares(np.abs(model.explain(_as_seen(model, X[:50])).contributions).mean(axis=0))


def _as_seen(model: Any, X: Floats) -> Any:
    """Inputs as a table, if the model knows tables: the values that its columns had."""
    if model._encoding is None:
        return X
    columns = {}
    for name, column in model._encoding.columns.items():
        own = X[:, model._encoding.places[name]]
        columns[name] = own[:, 0] if column.kind == "number" else np.array(column.values)[own.argmax(axis=1)]
    return pd.DataFrame(columns)


def by_prediction(model: Any, X: Floats, places: list[list[int]]) -> Floats:
    """The squared change of the predictions if a column is permuted."""
    return sensitivity(model.mixture_.predict_proba, X, places)


WAYS = {
    "gradient × deviation": by_gradient,
    "mean of the Shapley values": by_shapley,
    "permutation, rise of the loss": by_loss,
    "permutation, squared change of the prediction": by_prediction,
}
MODELS: dict[str, Callable[[int], Any]] = {
    "DEVDAN": lambda seed: DEVDAN(random_state=seed),
    "DEVDAN, rehearse=0": lambda seed: DEVDAN(random_state=seed, rehearse=0),
    "DEVDANEnsemble": lambda seed: DEVDANEnsemble(random_state=seed),
}
ASKED = [("DEVDAN", way) for way in WAYS] + [(model, list(WAYS)[-1]) for model in list(MODELS)[1:]]


def followed(
    stream: Callable[[np.random.Generator, bool], Concept], model: Any, ways: list[str], seed: int
) -> Iterator[tuple[str, float, float, float | None, float]]:
    """Of each way: the share on true columns, the pairs in order, the delay after the change, and milliseconds."""
    random, told = np.random.default_rng(seed), {way: [] for way in ways}
    for start in range(0, LENGTH, CHUNK):
        X, y, truth = stream(random, start >= LENGTH // 2)
        model.partial_fit(X, y)
        recent, places = recent_inputs(model.mixture_.networks, SAMPLES), list(model.encoding_.places.values())
        for way in ways:
            begin = time.process_time()
            found = WAYS[way](model, recent, places)
            told[way].append((start + CHUNK, found, truth, time.process_time() - begin))
    for way, points in told.items():
        settled = [point for point in points if point[0] % (LENGTH // 2) > LENGTH // 4 or point[0] % (LENGTH // 2) == 0]
        on_true = np.mean([found[truth > 0].sum() for _, found, truth, _ in settled])
        in_order = np.mean([concordance(found, truth) for _, found, truth, _ in settled])
        new = [end for end, found, truth, _ in points if end > LENGTH // 2 and found[truth > 0].sum() > 0.5]
        delay = new[0] - LENGTH // 2 if new else None
        yield way, float(on_true), float(in_order), delay, 1000 * float(np.median([seconds for *_, seconds in points]))


def importances_table(n_seeds: int) -> str:
    rows: dict[tuple[str, str], dict[str, list[tuple[float, float, float | None, float]]]] = {key: {} for key in ASKED}
    for stream in STREAMS:
        for name, make in MODELS.items():
            ways = [way for model, way in ASKED if model == name]
            for seed in range(n_seeds):
                for way, *figures in followed(stream, make(seed), ways, seed):
                    rows[name, way].setdefault(stream.__name__, []).append(tuple(figures))
    head = ["model", "way", *(stream.__name__ for stream in STREAMS), "in order", "delay", "ms"]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for (name, way), by_stream in rows.items():
        every = [figures for found in by_stream.values() for figures in found]
        delays = [delay for _, _, delay, _ in every if delay is not None]
        missed = len(every) - len(delays)
        cells = [name, way, *(f"{100 * np.mean([own[0] for own in found]):.0f} %" for found in by_stream.values())]
        cells += [
            f"{100 * np.mean([own[1] for own in every]):.1f} %",
            f"{np.mean(delays):,.0f}{f' ({missed} never)' * (missed > 0)}",
        ]
        lines.append("| " + " | ".join([*cells, f"{np.mean([own[3] for own in every]):.1f}"]) + " |")
    return "\n".join(lines) + "\n"
