"""Whether importances, explanations and scores of samples are right where the truth is known, for docs/why.md.

`python benchmarks/insight.py` prints the tables, `--write` puts them into the page. Needs the river extra.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
from measuring import put
from river import anomaly
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score

from devdan import DEVDAN, DEVDANEnsemble
from devdan.arrays import Floats
from devdan.evaluation.adapters import _DevdanAdapter
from devdan.evaluation.loop import prequential
from devdan.kernel import Network
from devdan.model.explain import MOST_EXACT, SAMPLES, sensitivity
from devdan.model.recent import recent_inputs, statistics
from devdan.streams import open_stream, sea

PAGE = Path(__file__).parents[1] / "docs" / "why.md"


# --- Importances: streams whose label follows known columns, and later others ----------------------------------------

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


def normalised(values: Floats) -> Floats:
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
    return normalised(found)


def by_loss(model: Any, X: Floats, places: list[list[int]]) -> Floats:
    """How much the loss on the remembered labels rises if a column is permuted; none without labels."""
    net = Network(model.mixture_.networks[-1])
    n = min(net.n_stored, net.max_samples, len(X))
    if n == 0:
        return np.zeros(len(places))
    kept = (net.n_stored - 1 - np.arange(n)) % net.max_samples
    X, place = (
        net.buffer[kept, : net.n_features],
        np.argsort(model.mixture_.classes.outputs)[net.buffer_label[kept]],
    )

    def loss(X: Floats) -> float:
        return float(-np.log(np.maximum(model._probabilities(X)[np.arange(n), place], 1e-4)).mean())

    random, found = np.random.default_rng(0), np.zeros(len(places))
    for k, own in enumerate(places):
        mixed = X.copy()
        mixed[:, own] = X[random.permutation(n)][:, own]
        found[k] = loss(mixed) - loss(X)
    return normalised(found)


def by_shapley(model: Any, X: Floats, places: list[list[int]]) -> Floats:
    """Mean |Shapley value| of fifty samples."""
    return normalised(np.abs(model.explain(_as_seen(model, X[:50])).contributions).mean(axis=0))


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


# --- Explanations, and the cost of importances -----------------------------------------------------------------------


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
        for n_orders in (32,) if width <= MOST_EXACT else (8, 32, 128):
            begin = time.process_time()
            found = model.explain(X[:n_rows], n_orders=n_orders).contributions
            seconds = time.process_time() - begin
            told = "all" if width <= MOST_EXACT else str(n_orders)
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


# --- Scores of samples: one in fifty is a known anomaly --------------------------------------------------------------

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
