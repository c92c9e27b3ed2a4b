"""Prequential evaluation: each chunk is predicted first, then learned from."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError


@dataclass(frozen=True)
class Record:
    """What one chunk showed; ``accuracy`` is None where nothing could be predicted yet."""

    n_samples: int
    accuracy: float | None
    n_hidden: int
    n_parameters: int
    test_seconds: float
    train_seconds: float


def prequential(stream: Iterable[tuple[Any, Any]], model: Any) -> Iterator[Record]:
    """Test, then train, chunk by chunk.

    >>> from devdan import DEVDAN
    >>> from devdan.streams import sea
    >>> records = list(prequential(sea(5000), DEVDAN(random_state=0)))
    >>> len(records), records[0].accuracy, records[-1].accuracy > 0.7
    (10, None, True)
    """
    for X, y in stream:
        begin = time.perf_counter()
        try:
            accuracy = float(np.mean(model.predict(X) == np.ravel(y)))
        except NotFittedError:
            accuracy = None
        middle = time.perf_counter()
        model.partial_fit(X, y)
        end = time.perf_counter()
        yield Record(len(X), accuracy, model.n_hidden_, model.n_parameters_, middle - begin, end - middle)


def classification_rate(records: Iterable[Record]) -> tuple[float, float]:
    """The paper's CR: mean and deviation of the chunks' accuracies in percent, the first chunk left out."""
    accuracies = [100 * record.accuracy for record in list(records)[1:] if record.accuracy is not None]
    if not accuracies:
        raise ValueError("the classification rate takes at least two chunks: the first is learned from only")
    return float(np.mean(accuracies)), float(np.std(accuracies))
