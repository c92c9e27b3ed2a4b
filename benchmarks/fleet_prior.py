"""The worth of a fleet's prior in the first samples of a key, and where it hurts: a part of benchmarks/fleet.py.

Keys join one after the other. Each row is predicted before it is learned, in portions of 50 rows; what counts are the
keys that join after the first fifth of them. By itself, with ``--write``, it puts what the prior's constants are worth
into docs/experiments.md, in about ten minutes.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import paper_streams
from measuring import put
from river import linear_model, preprocessing

from devdan import DEVDAN, DEVDANFleet
from devdan.fleet import shared

Rows = tuple[np.ndarray, np.ndarray, np.ndarray]  # keys, in the order in which they join, inputs and labels
N_KEYS, LENGTH, N_FEATURES, PORTION = 150, 500, 10, 50
FIRST = (20, 100, 500)  # samples of a key
CURVE = (1, 2, 3, 5, 8, 12, 18, 27, 40, 60, 90, 135, 200, 300, 400, 500)  # where the picture has a point


# --- Streams of many keys ----------------------------------------------------------------------------------------


def joined(random: np.random.Generator) -> np.ndarray:
    """Keys that join at random times, each with 500 rows spread over the rest."""
    start = np.sort(0.8 * random.random(N_KEYS))
    time = np.concatenate([first + np.sort(random.random(LENGTH)) * (1 - first) for first in start])
    return np.repeat(np.arange(N_KEYS), LENGTH)[np.argsort(time, kind="stable")]


def made(seed: int, rule: Callable[..., Any]) -> Rows:
    """Normal features; the rule says for each row how far it is on one side."""
    random = np.random.default_rng(seed)
    keys = joined(random)
    X = random.normal(size=(len(keys), N_FEATURES))
    common = random.normal(size=(2, N_FEATURES))
    common /= np.linalg.norm(common, axis=1, keepdims=True)
    X, score = rule(random, keys, X, common)
    return keys, X, (score + 0.3 * random.normal(size=len(keys)) > 0).astype(int)


def alike(random: Any, keys: Any, X: Any, common: Any) -> Any:
    own = common[0] + 0.3 * random.normal(size=(N_KEYS, N_FEATURES)) / np.sqrt(N_FEATURES)
    return X, (X * own[keys]).sum(axis=1)


def curved(random: Any, keys: Any, X: Any, common: Any) -> Any:
    own = 0.1 * random.normal(size=(N_KEYS, N_FEATURES))
    return X, X @ common[0] + 0.7 * (X @ common[1]) ** 2 - 0.7 + (X * own[keys]).sum(axis=1)


def own_units(random: Any, keys: Any, X: Any, common: Any) -> Any:
    scale, zero = np.exp(random.normal(size=(N_KEYS, N_FEATURES))), 3 * random.normal(size=(N_KEYS, N_FEATURES))
    return X * scale[keys] + zero[keys], X @ common[0]


def opposite(random: Any, keys: Any, X: Any, common: Any) -> Any:
    return X, (X @ common[0]) * random.choice([-1, 1], N_KEYS)[keys]


def unrelated(random: Any, keys: Any, X: Any, common: Any) -> Any:
    own = random.normal(size=(N_KEYS, N_FEATURES))
    return X, (X * (own / np.linalg.norm(own, axis=1, keepdims=True))[keys]).sum(axis=1)


def real(seed: int, name: str, column: int) -> Rows:
    """A real stream, with the values of a column as keys; each joins at a random time, the rows before are left out."""
    random = np.random.default_rng(seed)
    X, y = (np.concatenate(parts) for parts in zip(*paper_streams.load(name, scaled=False), strict=True))
    y = np.unique(y, return_inverse=True)[1]
    if name == "kddcup":
        order = random.permutation(len(X))[:60_000]
        X, y = X[order], y[order]
    values, keys, counts = np.unique(X[:, column], return_inverse=True, return_counts=True)
    start = np.where(counts < 50, 2.0, 0.8 * random.random(len(values)))  # those that hardly come never join
    kept = np.arange(len(X)) >= start[keys] * len(X)
    place = np.argsort(np.argsort(start))
    return place[keys[kept]], np.delete(X[kept], column, axis=1), y[kept]


STREAMS: dict[str, Callable[[int], Rows]] = {
    "alike: one rule, a little different for each key": lambda seed: made(seed, alike),
    "curved: one rule that needs hidden units": lambda seed: made(seed, curved),
    "own units: one rule, but each key has units and zeros of its own": lambda seed: made(seed, own_units),
    "opposite: one rule, for half of the keys turned round": lambda seed: made(seed, opposite),
    "unrelated: each key has a rule of its own": lambda seed: made(seed, unrelated),
    "Electricity, a key for each half hour of the day": lambda seed: real(seed, "electricity", 2),
    "KDD Cup, a key for each service": lambda seed: real(seed, "kddcup", 2),
}


# --- Models ------------------------------------------------------------------------------------------------------


class OneForAll:
    """One DEVDAN that does not know of keys."""

    def __init__(self, seed: int) -> None:
        self._model = DEVDAN(random_state=seed)

    def predict(self, keys: Any, X: Any) -> Any:
        return self._model.predict(X)

    def partial_fit(self, keys: Any, X: Any, y: Any) -> None:
        self._model.partial_fit(X, y)


class RiverDict:
    """River's logistic regression on scaled inputs, for each key."""

    def __init__(self, seed: int) -> None:
        self._models: dict[Any, Any] = {}

    def _of(self, key: Any) -> Any:
        if key not in self._models:
            self._models[key] = preprocessing.StandardScaler() | linear_model.LogisticRegression()
        return self._models[key]

    def predict(self, keys: Any, X: Any) -> Any:
        rows = (dict(enumerate(row)) for row in X.tolist())
        return np.array([int(self._of(key).predict_one(x) or 0) for key, x in zip(keys.tolist(), rows, strict=True)])

    def partial_fit(self, keys: Any, X: Any, y: Any) -> None:
        for key, row, label in zip(keys.tolist(), X.tolist(), y.tolist(), strict=True):
            self._of(key).learn_one(dict(enumerate(row)), bool(label))


MODELS: dict[str, Callable[[int], Any]] = {
    "a fleet with a prior": lambda seed: DEVDANFleet(random_state=seed),
    "a fleet without": lambda seed: DEVDANFleet(prior=False, random_state=seed),
    "one `DEVDAN` for all": OneForAll,
    "River's logistic regression for each": RiverDict,
}


# --- Accuracy by age of a key ------------------------------------------------------------------------------------


def ages(keys: np.ndarray) -> np.ndarray:
    """Which sample of its key each row is, from 0."""
    order = np.argsort(keys, kind="stable")
    firsts = np.searchsorted(keys[order], keys[order])
    found = np.empty(len(keys), np.int64)
    found[order] = np.arange(len(keys)) - firsts
    return found


def hits(model: Any, rows: Rows) -> np.ndarray:
    """Which rows are predicted right before they are learned."""
    keys, X, y = rows
    right = np.zeros(len(y), dtype=bool)
    for start in range(0, len(y), PORTION):
        part = slice(start, start + PORTION)
        if start > 0:
            right[part] = model.predict(keys[part], X[part]) == y[part]
        model.partial_fit(keys[part], X[part], y[part])
    return right


def measure(n_seeds: int) -> dict[str, Any]:
    """The accuracy in the first samples of the keys that join later, by stream and model."""
    results: dict[str, Any] = {}
    for name, stream in STREAMS.items():
        if name.startswith(("Electricity", "KDD")) and paper_streams.missing("electricity"):
            continue
        results[name] = {model: {"first": [], "curve": []} for model in MODELS}
        for seed in range(n_seeds):
            rows = stream(seed)
            age, later = ages(rows[0]), rows[0] >= 0.2 * (rows[0].max() + 1)
            for model, make in MODELS.items():
                right = hits(make(seed), rows)
                first = [right[later & (age < n)].mean() for n in FIRST]
                spans = pairwise((0, *CURVE))
                curve = [right[later & (low <= age) & (age < high)].mean() for low, high in spans]
                results[name][model]["first"].append(first)
                results[name][model]["curve"].append(curve)
        for model, found in results[name].items():
            results[name][model] = {part: np.mean(values, axis=0).tolist() for part, values in found.items()}
        print(name, {model: [round(100 * x, 1) for x in found["first"]] for model, found in results[name].items()})
    return results


def markdown(results: dict[str, Any]) -> str:
    """A table: what is right in the first samples of a key, in %."""
    lines = [f"| first {', '.join(map(str, FIRST))} samples | " + " | ".join(MODELS) + " |", "|---" * 5 + "|"]
    for name, found in results.items():
        cells = [", ".join(f"{100 * share:.1f}" for share in found[model]["first"]) for model in MODELS]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


# --- The constants of the prior ----------------------------------------------------------------------------------

ENDLESS = 10**9
CONSTANTS = {"MOST_UNITS": (2, 4, 16), "WORTH": (5, 100, ENDLESS), "SCALE_WORTH": (1, 20, ENDLESS)}


def constants(n_seeds: int) -> str:
    """A table: what is right in the first samples of a key, in %, with one constant changed at a time."""
    streams = {name.partition(":")[0]: make for name, make in STREAMS.items() if ":" in name}
    rows = {name: [make(seed) for seed in range(n_seeds)] for name, make in streams.items()}
    lines = [f"| first {', '.join(map(str, FIRST))} samples | " + " | ".join(streams) + " |", "|---" * 6 + "|"]
    changes = [("**default**", "WORTH", shared.WORTH)]
    for name, values in CONSTANTS.items():
        changes += [(f"`{name} = {'∞' if value == ENDLESS else value}`", name, value) for value in values]
    for told, constant, value in changes:
        default = getattr(shared, constant)
        setattr(shared, constant, value)
        cells = [_cell(own) for own in rows.values()]
        setattr(shared, constant, default)
        lines.append(f"| {told} | " + " | ".join(cells) + " |")
        print(lines[-1], flush=True)
    return "\n".join(lines) + "\n"


def _cell(streams: list[Rows]) -> str:
    found = []
    for seed, rows in enumerate(streams):
        age, later = ages(rows[0]), rows[0] >= 0.2 * (rows[0].max() + 1)
        right = hits(DEVDANFleet(random_state=seed), rows)
        found.append([right[later & (age < n)].mean() for n in FIRST])
    return ", ".join(f"{100 * share:.1f}" for share in np.mean(found, axis=0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--write", action="store_true", help="put the table into docs/experiments.md")
    arguments = parser.parse_args()
    table = constants(arguments.seeds)
    if arguments.write:
        put(Path(__file__).parents[1] / "docs" / "experiments.md", "prior", table)


if __name__ == "__main__":
    main()
