"""Made-up runs: their records, and the folder in which an evaluation leaves them."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd

from devdan.evaluation.histograms import scored
from devdan.evaluation.record import Phases, Record

INFO = {
    "format": 1,
    "stream": "sea",
    "origin": "generated",
    "n_samples": 10_000,
    "target": None,
    "model": "devdan",
    "options": {"masking": 0.1, "momentum": 0.9},
    "seed": 0,
    "labels": "all",
    "command": "devdan run sea --seed 0",
    "started": "2026-11-15T11:00:00+00:00",
    "versions": {"devdan": "0.1.0"},
    "machine": {"cpu": "a CPU", "cores": 2},
}


def record(chunk, *, n=10, hits=8, classes=("a", "b"), structure=True, growths=(0, 0), prunings=(0, 0), drifts=(0, 0)):
    """A chunk of the second class, and of it alone."""
    return Record(
        chunk=chunk,
        start=chunk * n,
        n_samples=n,
        n_classes=len(classes),
        new_classes=tuple(classes) if chunk == 0 else (),
        counts=((1, 1, hits), (1, 0, n - hits)) if chunk else (),
        n_labels=n,
        no_change=(n - 1, n) if chunk else (0, 0),
        n_hidden=3 if structure else None,
        n_parameters=20 if structure else None,
        growths=Phases(*growths) if structure else None,
        prunings=Phases(*prunings) if structure else None,
        drifts=Phases(*drifts) if structure else None,
        bias2=Phases(0.3, 0.2) if structure else None,
        variance=Phases(0.1, 0.05) if structure else None,
        test_seconds=0.001,
        train_seconds=0.002,
    )


def many_classes(n_classes=60, n_chunks=30, n=600, seed=0):
    """Records of as many classes; each even one is taken for the next in a third of the cases."""
    random = np.random.default_rng(seed)
    found = []
    for chunk in range(n_chunks):
        true = random.integers(0, n_classes, n)
        guess = np.where((true % 2 == 0) & (random.random(n) < 1 / 3), true + 1, true)
        pairs, counts = np.unique(np.column_stack([true, guess]), axis=0, return_counts=True)
        values = json.loads(record(chunk, n=n, classes=[f"kind {c:02}" for c in range(n_classes)]).to_json())
        values["counts"] = [[*pair, count] for pair, count in zip(pairs.tolist(), counts.tolist(), strict=True)]
        found.append(Record.from_json(json.dumps(values)))
    return found


def rare_class(skill, *, threshold=0.5, share=0.02, n_chunks=40, n=250, seed=0, classes=("ok", "fraud")):
    """Records of a stream with a rare class, whose samples have higher log odds by so much."""
    random = np.random.default_rng(seed)
    found = []
    for chunk in range(n_chunks):
        y = (random.random(n) < share).astype(int)
        odds = np.log(share) + random.normal(size=n) + skill * y
        p = 1 / (1 + np.exp(-odds))
        pairs, counts = np.unique(2 * y + (p >= threshold), return_counts=True)
        own = {
            "counts": tuple((pair // 2, pair % 2, k) for pair, k in zip(pairs.tolist(), counts.tolist(), strict=True)),
            "scores": scored(np.column_stack([1 - p, p]), np.arange(2), y),
            "no_change": (n - 1, n),
        }
        found.append(replace(record(chunk, n=n, classes=classes), **(own if chunk else {})))
    return found


def save(folder, records, finished=True, **info):
    """A run's folder, as an evaluation leaves it."""
    folder.mkdir()
    (folder / "run.json").write_text(json.dumps(INFO | info))
    (folder / "records.jsonl").write_text("".join(r.to_json() + "\n" for r in records))
    if finished:
        (folder / "summary.json").write_text("{}")
    return folder


def moving_table(n=6000, seed=0):
    """A table whose label follows the city, and from the middle on the price."""
    random = np.random.default_rng(seed)
    table = pd.DataFrame(
        {"price": random.normal(size=n), "city": random.choice(list("uvw"), n), "age": random.random(n)}
    )
    return table, np.where(np.arange(n) < n // 2, table.city == "u", table.price > 0)
