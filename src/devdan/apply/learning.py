"""Learning on from a stream, with a model that has been saved."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import compress
from typing import Any, NamedTuple

from devdan.apply.matching import Matching, Model, given, key_column, keyed, matched
from devdan.encoding.rows import Rows
from devdan.evaluation.adapters import adapted
from devdan.fleet.fleet import DEVDANFleet
from devdan.model.classes import split_missing
from devdan.streams import Stream

_MADE_UP = re.compile(r"(column |x)\d+")  # the names of columns that have none


class LearningResult(NamedTuple):
    """How a model has changed."""

    n_samples: int
    n_labels: int
    counted: str  # what ``before`` and ``after`` count: hidden units, or the keys of a fleet
    before: int
    after: int
    new_classes: list[Any]
    new_notes: list[str]


def columns_of(model: Model, stream: Stream, key: str | None = None) -> Matching:
    """The positions of the model's columns in the stream, and that of the keys if it is a fleet."""
    names = stream.feature_names or ()
    key = key_column(model, key, names, stream.origin)
    return matched(model, names, not all(map(_MADE_UP.fullmatch, names)), stream.origin, key)


def learn_on(
    model: Model,
    stream: Stream,
    progress: Callable[[int], None] = lambda n_samples: None,
    key: str | None = None,
) -> LearningResult:
    """Learn from each chunk: samples with a label are observed and taught, the others only observed."""
    match = columns_of(model, stream, key)
    classes, notes, before = _classes(model), model.encoding_.notes, _size(model)
    adapter = None if isinstance(model, DEVDANFleet) else adapted(model)
    n_samples = n_labels = 0
    for X, y in stream:
        rows = (X if isinstance(X, Rows) else Rows(stream.feature_names or (), X)).select(match.places)
        labels, known = split_missing(y)
        if isinstance(model, DEVDANFleet):
            _learn_keys(model, rows, labels, known, match)
            n_labels += int(known.sum())
        elif adapter is not None:
            taught = (given(model, rows[known], match), labels[known]) if known.any() else None
            n_labels += adapter.learn(given(model, rows, match), taught, bool(known.all()))
        n_samples += len(y)
        progress(n_samples)
    return LearningResult(
        n_samples,
        n_labels,
        "keys" if isinstance(model, DEVDANFleet) else "hidden units",
        before,
        _size(model),
        [label for label in _classes(model) if label not in classes],
        [note for note in model.encoding_.notes if note not in notes],
    )


def _learn_keys(fleet: DEVDANFleet, rows: Rows, labels: Any, known: Any, match: Matching) -> None:
    """Let the networks of a fleet learn; the keys are in the last column."""
    keys, features = keyed(rows, rows.names[-1])
    X = given(fleet, features, match)
    if known.all():
        fleet.partial_fit(keys, X, labels)
        return
    fleet.observe(keys, X)
    if known.any():
        fleet.teach(list(compress(keys, known)), given(fleet, features[known], match), labels[known])


def _size(model: Model) -> int:
    return len(model) if isinstance(model, DEVDANFleet) else model.n_hidden_


def _classes(model: Model) -> list[Any]:
    labels: list[Any] = model._classes.labels.tolist()
    return labels
