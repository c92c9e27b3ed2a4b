"""The paper's streams that may be at hand, prepared as in its experiments: scaled to [0, 1] over the whole stream."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from devdan import DEVDAN
from devdan.kernel import Floats, Words
from devdan.prequential import classification_rate, prequential
from devdan.streams import chunks

FILES = {
    "sea": "sea.npz",
    "hyperplane": "hyperplane.npz",
    "electricity": "electricity.npz",
    "weather": "weather.npz",
    "kddcup": "kddcup99_10percent.npz",
}
FOLDER = Path(os.environ.get("DEVDAN_DATA", Path(__file__).parents[2] / "shared" / "data"))


def missing(name: str) -> str | None:
    """Why a stream cannot be had, if it cannot."""
    path = FOLDER / FILES[name]
    return None if path.exists() else f"{path} is not there; set DEVDAN_DATA to the folder that has {FILES[name]}"


def load(name: str) -> tuple[Floats, Words]:
    """X and y; KDD Cup is shuffled with a fixed seed, as its file is sorted by class."""
    with np.load(FOLDER / FILES[name], allow_pickle=False) as file:
        X, y = file["X"].astype(np.float64), file["y"].astype(np.int64)
    low, high = X.min(axis=0), X.max(axis=0)
    if (low < 0).any() or (high > 1).any():
        X = (X - low) / np.where(high > low, high - low, 1)
    if name == "kddcup":
        order = np.random.default_rng(0).permutation(len(X))
        X, y = X[order], y[order]
    return X, y


def run(name: str, seed: int, model: type[Any] = DEVDAN, **options: Any) -> tuple[float, float, float]:
    """CR and its deviation over the chunks, and the mean number of hidden units, with the paper's settings."""
    X, y = load(name)
    settings = {"scaling": None, "random_state": seed, **options}
    records = list(prequential(chunks(X, y), model(**settings)))
    return *classification_rate(records), float(np.mean([record.n_hidden for record in records]))
