"""A stream and a model made to fit each other."""

from __future__ import annotations

from typing import Any, NamedTuple

from devdan.evaluation.learners import one_against_the_rest, takes_two_classes
from devdan.fleet.fleet import DEVDANFleet
from devdan.model.classes import is_missing
from devdan.model.estimator import StreamClassifier
from devdan.streams import Stream, StreamError


class Prepared(NamedTuple):
    """A stream and a model that are prepared for each other."""

    stream: Stream
    model: Any
    classes: list[Any] | None  # classes that the model must know in advance, if the stream does not
    scaled: bool  # whether the stream was


def prepared(stream: Stream, model: Any, key: str | None = None) -> Prepared:
    """Prepare a stream and a model for each other.

    Models that do not scale their inputs get inputs in [0, 1], as in the paper. scikit-learn classifiers get the
    classes, and binary River classifiers are run one-vs-rest on more than two classes. For this, a stream that does not
    know its classes is read once. ``key`` is the column with the keys of a fleet.
    """
    is_own = isinstance(model, (StreamClassifier, DEVDANFleet))
    if key is not None and key not in (stream.feature_names or ()):
        names = ", ".join(map(repr, (stream.feature_names or ())[:20]))
        raise StreamError(f"{stream.origin or stream.name} has no column {key!r} with keys; its columns are {names}")
    scaled = is_own and model.scaling is None and stream.origin != "generated"
    takes_two, classes = takes_two_classes(model), None
    wants_classes = stream.classes is None and (takes_two or (hasattr(model, "partial_fit") and not is_own))
    if stream.is_single_pass and (scaled or wants_classes):
        why = "its inputs are scaled to [0, 1] beforehand" if scaled else "it must know the classes beforehand"
        raise StreamError(
            f"{type(model).__name__} needs a stream that can be read twice, since {why}, but {stream.origin} can be "
            "read only once: save it to a file first"
        )
    stream = stream.scaled([*_no_numbers(stream, model), *([key] if key else [])]) if scaled else stream
    if wants_classes:
        classes = sorted({label for _, y in stream for label in y[~is_missing(y)].tolist()})
    if takes_two and len(classes or stream.classes or ()) > 2:
        model = one_against_the_rest(model)
    return Prepared(stream, model, classes, scaled)


def _no_numbers(stream: Stream, model: StreamClassifier | DEVDANFleet) -> list[str]:
    """The columns that hold no quantities, as the user says, even if they are written as numbers."""
    told = model._instructions()
    return [name for name in stream.feature_names or () if told.of(name).kind in ("nominal", "date")]
