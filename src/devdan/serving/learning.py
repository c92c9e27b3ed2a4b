"""A model that goes on learning from a stream."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from devdan.encoding.rows import Rows
from devdan.evaluation.learners import learner
from devdan.model.classes import split_missing
from devdan.model.evolving import EvolvingClassifier
from devdan.serving.matching import Matching, given, matched
from devdan.streams import Stream

_MADE_UP = re.compile(r"(column |x)\d+")  # the names of columns that have none


class Learned(NamedTuple):
    """What became of a model that has learned on."""

    n_samples: int
    n_labels: int
    units_before: int
    units_after: int
    new_classes: list[Any]
    new_notes: list[str]


def columns_of(model: EvolvingClassifier, stream: Stream) -> Matching:
    """Where in the stream the model's columns are."""
    names = stream.feature_names or ()
    return matched(model, names, not all(map(_MADE_UP.fullmatch, names)), stream.origin)


def learn_on(
    model: EvolvingClassifier, stream: Stream, progress: Callable[[int], None] = lambda n_samples: None
) -> Learned:
    """Learn from each chunk: what has a label is observed and taught, the rest only observed."""
    match = columns_of(model, stream)
    adapted = learner(model)
    classes, notes, units = _classes(model), model.encoding_.notes, model.n_hidden_
    n_samples = n_labels = 0
    for X, y in stream:
        rows = (X if isinstance(X, Rows) else Rows(stream.feature_names or (), X)).select(match.places)
        labels, known = split_missing(y)
        taught = (given(model, rows[known], match), labels[known]) if known.any() else None
        n_labels += adapted.learn(given(model, rows, match), taught, bool(known.all()))
        n_samples += len(y)
        progress(n_samples)
    return Learned(
        n_samples,
        n_labels,
        units,
        model.n_hidden_,
        [label for label in _classes(model) if label not in classes],
        [note for note in model.encoding_.notes if note not in notes],
    )


def _classes(model: EvolvingClassifier) -> list[Any]:
    labels: list[Any] = model._classes.labels.tolist()
    return labels
