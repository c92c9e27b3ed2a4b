"""What models of ours do on short streams, by which a figure tells whether it is of another version."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np

from devdan.bench import named_models
from devdan.evaluation import Summary, prequential
from devdan.runs.preparation import prepared
from devdan.streams import Stream, sea
from devdan.streams.stream import Chunk

_SAMPLES, _CHUNK = 2000, 100
_SLACK = 3  # predictions that another processor's rounding may turn


def _gaps() -> Iterator[Chunk]:
    """Five classes, in features of which one in ten is missing and one is skewed."""
    random = np.random.default_rng(0)
    centres = 1.5 * random.normal(size=(5, 6))
    y = random.integers(5, size=_SAMPLES)
    X = centres[y] + random.normal(size=(_SAMPLES, 6))
    X[:, 5] = np.exp(X[:, 5])
    X[random.random(X.shape) < 0.1] = np.nan
    yield X, y


def _rare() -> Iterator[Chunk]:
    """A class of one in twenty-five in a box that jumps half-way."""
    random = np.random.default_rng(1)
    X = random.random((_SAMPLES, 4))
    corner = np.where(np.arange(_SAMPLES) < _SAMPLES // 2, 0.0, 0.8)
    yield X, (np.abs(X[:, 0] - corner) < 0.2) & (X[:, 1] < 0.2)


def _probes() -> Iterator[Stream]:
    yield sea(_SAMPLES, drifts=[_SAMPLES // 2], chunk=_CHUNK)
    yield Stream("gaps", _gaps, chunk=_CHUNK)
    yield Stream("rare", _rare, chunk=_CHUNK)


def is_ours(name: str) -> bool:
    """Whether a model by name may change with this package."""
    return name in named_models.MODELS and not named_models.MODELS[name].is_peer


@cache
def behaviour(name: str) -> tuple[int, ...]:
    """How many predictions of each class are right on each of three streams, by a model's name."""
    found: list[int] = []
    for probe in _probes():
        stream, model, classes, _ = prepared(probe, named_models.build(name))
        summary = Summary(prequential(stream, model, classes=classes))
        hits = {true: n for true, guess, n in summary.counts if true == guess}
        found += [hits.get(k, 0) for k in range(len(summary.classes))]
    return tuple(found)


def is_of_now(result: Mapping[str, Any]) -> bool:
    """Whether the model behind a result still does what it did; not if one of ours does not tell."""
    if not is_ours(result["model"]):
        return True
    then, now = result.get("behaviour"), behaviour(result["model"])
    return (
        isinstance(then, list)
        and len(then) == len(now)
        and all(isinstance(n, int) and abs(n - own) <= _SLACK for n, own in zip(then, now, strict=True))
    )
