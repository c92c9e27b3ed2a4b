"""The model of a stream: made from its settings, kept as a model file, given rows as the log has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import chain
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError

from devdan.encoding.rows import Column, Numbers, Rows
from devdan.encoding.tables import column_of
from devdan.fleet.fleet import KINDS, DEVDANFleet
from devdan.fleet.networks import STEP, room
from devdan.histories.histories import Histories
from devdan.kernel.memory import Sizes
from devdan.kernel.network import Evolving, Replaying
from devdan.kernel.state import EVENTS, room_for
from devdan.model import modelfile
from devdan.model.classifier import EvolvingClassifier
from devdan.model.decision import LIKELIEST
from devdan.model.devdan import DEVDAN
from devdan.model.scales import Scale
from devdan.service.schema import InvalidError, Label, LimitError, Limits, StreamSettings, Value, check_columns

Model = EvolvingClassifier | DEVDANFleet
_MADE = {kind.__name__: kind for kind in KINDS}
_NOT_BY_HTTP = {"initial_weights", "estimator", "n_jobs"}
ASKED = 100  # recent samples that importances are measured on
MOST_UNITS = 10_000  # to start from
_MOST_NAMED = 20  # columns whose importances are kept
_MIB = 2**20
_OF_DATE = 12  # inputs of a date, or a little more
_OF_ENTITY, _OF_COLUMN = 13, 9  # columns that the histories of a kind of entity add, beside those for each column
_BY_COLUMN = ("nominal", "numeric", "dates", "drop")  # options that name columns
_KEY_UNITS = 14  # hidden units of a key that are counted on


def new_model(settings: StreamSettings) -> Model:
    """The model of a stream before its first row, a fleet if rows have keys; checks what the settings say about it.

    >>> new_model(StreamSettings(options={"n_hidden": 3}))
    DEVDAN(n_hidden=3, random_state=0)
    """
    kind = _MADE.get(settings.model)
    if kind is None:
        raise InvalidError(f"model must be one of {', '.join(_MADE)}, got {settings.model!r}")
    allowed = sorted(set(kind._get_param_names()) - _NOT_BY_HTTP)
    for name in settings.options:
        if name not in allowed:
            raise InvalidError(f"options must be among {', '.join(allowed)}; got {name!r}")
    seed = settings.options.get("random_state", 0)
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**32:
        raise InvalidError(f"random_state must be an integer from 0 to {2**32 - 1}, so that the model can be replayed")
    units = settings.options.get("n_hidden", 1)
    if isinstance(units, int) and units > MOST_UNITS:
        raise InvalidError(f"n_hidden must be at most {MOST_UNITS} in a service, got {units}")
    if settings.keyed and kind is not DEVDAN:
        raise InvalidError(f"model must be DEVDAN where rows have keys, got {settings.model!r}")
    try:
        usual = {"random_state": 0, "rehearse": 0} if settings.keyed else {"random_state": 0}
        chosen = usual | settings.options
        decide = chosen.pop("decide", LIKELIEST) if settings.keyed else LIKELIEST  # there is one for all keys
        model: Model = kind(**chosen)
        if settings.keyed:
            model = DEVDANFleet(model, n_jobs=1, decide=decide, random_state=seed)
        model.check_options()
        if settings.history is not None:
            _check_history(settings, model)
        if settings.columns is not None:
            check_columns(settings.columns)
            model._instructions().check(settings.columns)
        check_memory(model, settings, settings.columns or [""], [])
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidError(str(error)) from error
    return model


def _check_history(settings: StreamSettings, model: Model) -> None:
    """Raise an ``InvalidError`` if the model, or the columns, do not go with histories."""
    if _chosen(model)["scaling"] is None:
        raise InvalidError("scaling must not be null with history, whose values are of any size")
    named = Histories(settings.entities, time=settings.time).wanted_columns
    columns = named if settings.columns is None else settings.columns
    for name in named:
        if name not in columns:
            raise InvalidError(f"history needs the column {name!r}, but there are only {', '.join(columns)}")
    alone = {name for name in settings.history or () if isinstance(name, str)}
    for option in _BY_COLUMN:
        for name in alone.intersection(settings.options.get(option) or ()):
            raise InvalidError(
                f"{option} must not have {name!r}: the model does not see it, but what is known of whom it names"
            )


def check_settings(settings: StreamSettings, limits: Limits, model: Model | None = None) -> None:
    """Raise an error that says what is wrong with a stream before anything of it is stored.

    ``model``: one that has learned before, to begin with.
    """
    settings.check()
    new_model(settings)
    if settings.columns is not None and len(settings.columns) > limits.columns:
        raise LimitError(f"a stream may have {limits.columns} columns, got {len(settings.columns)}")
    if model is not None:
        check_memory(model, settings, settings.columns or [""], [])
        if len(model.classes_) > limits.classes:
            raise LimitError(f"a stream may have {limits.classes} classes, got {len(model.classes_)}")


# --- Memory ----------------------------------------------------------------------------------------------------------


def check_memory(
    model: Model,
    settings: StreamSettings,
    columns: Sequence[str],
    values: Sequence[Sequence[Value]],
    keys: Sequence[str] | None = None,
    labels: Sequence[Label] | None = None,
) -> None:
    """Raise an ``InvalidError`` if the networks might need more memory than they may take to learn these rows.

    The same rows and model give the same answer in each replay. It does not learn the encoding, so it counts every
    text that might become an input.
    """
    is_begun = model.__sklearn_is_fitted__()
    n_classes = (len(model.mixture_.classes) if is_begun else 0) + len(set(labels or ()))
    most = settings.max_in_memory
    n_keys = min(model.n_keys + len(set(keys or ())), most)
    if fits(model, settings, len(columns), n_classes, n_keys):
        return
    if isinstance(model, DEVDANFleet) and len(model) < most:
        n_keys = min(len(model) + sum(not is_begun or key not in model for key in set(keys or ())), most)
    if labels and is_begun:
        n_classes = len(set(model.mixture_.classes.labels.tolist()).union(labels))
    n_inputs = _inputs_at_most(model, columns, values) + _of_histories(model, settings, len(columns))
    needed = n_bytes(model, n_inputs, n_classes, n_keys)
    if needed > settings.of_networks * _MIB:
        of_keys = f" and {n_keys:,} keys in memory" if n_keys else ""
        may = f"{settings.of_networks} ({'half of ' if settings.history else ''}max_memory)"
        raise InvalidError(
            f"the model would need {needed / _MIB:,.0f} MiB for {n_inputs:,} inputs, {n_classes:,} classes{of_keys}, "
            f"and may take {may}; drop columns with many different texts, lower "
            f"{'max_in_memory or ' if n_keys else ''}max_categories, or make the stream with more"
        )


def fits(model: Model, settings: StreamSettings, n_columns: int, n_classes: int, n_keys: int) -> bool:
    """Whether the networks fit into what they may take whatever the columns hold; almost free."""
    n_inputs = n_columns * _most_inputs(_chosen(model)) + _of_histories(model, settings, n_columns)
    return n_bytes(model, n_inputs, n_classes, n_keys) <= settings.of_networks * _MIB


def _of_histories(model: Model, settings: StreamSettings, n_columns: int) -> int:
    """How many inputs histories add at most."""
    if settings.history is None:
        return 0
    if model.__sklearn_is_fitted__() and model.mixture_.encoding is not None:
        return len(model.mixture_.encoding.columns)
    return len(settings.history) * (_OF_ENTITY + _OF_COLUMN * n_columns)


def n_bytes(model: Model, n_inputs: int, n_classes: int, n_keys: int = 0) -> int:
    """The memory of networks with these numbers of inputs, classes and keys, and of the room made in advance.

    >>> n_bytes(DEVDAN(rehearse=0), 20, 2) < n_bytes(DEVDAN(), 20, 2) < n_bytes(DEVDAN(), 20_000, 2)
    True
    """
    if model.__sklearn_is_fitted__():
        mixture = model.mixture_
        scales = mixture.scales
        rooms = tuple((net.max_features, net.max_hidden, net.max_classes) for net in mixture.nets)
    else:
        scales = tuple(model._scales())
        rooms = ((0, 0, 0),) * len(scales)
    n_words = _n_words(scales, rooms, n_inputs, n_classes)
    if n_keys > 0:
        hidden = room_for(max(_KEY_UNITS, scales[0].n_hidden), STEP)
        n_words += n_keys * Evolving.n_words(room(n_inputs, hidden, n_classes))
    return 8 * n_words


def _chosen(model: Model) -> dict[str, Any]:
    """The options of the networks."""
    return model.mixture_.options if model.__sklearn_is_fitted__() else model._options()


@lru_cache(maxsize=1024)
def _n_words(scales: Sequence[Scale], rooms: Sequence[tuple[int, int, int]], n_inputs: int, n_classes: int) -> int:
    total = 0
    for scale, (for_features, hidden, for_classes) in zip(scales, rooms, strict=True):
        features = for_features if n_inputs <= for_features else max(n_inputs, 2 * for_features)
        classes = for_classes if n_classes <= for_classes else max(n_classes, 2 * for_classes, 2)
        if scale.reach > 0:
            seen = scale.n_hidden - scale.n_hidden // 2 if scale.fields > 0 else 0
            sizes = Sizes(features, scale.n_hidden, classes, 0, scale.reach, scale.fields, seen)
            total += Replaying.n_words(sizes)
        else:
            total += Evolving.n_words(Sizes(features, max(2 * hidden, scale.n_hidden + 16), classes, EVENTS))
    return total


def _most_inputs(chosen: Mapping[str, Any]) -> int:
    """How many inputs a column has at most: one for each category, those that are shared, and those of a date."""
    categories = int(chosen["max_categories"])
    return categories + -(-categories // 4) + _OF_DATE


def _inputs_at_most(model: Model, columns: Sequence[str], values: Sequence[Sequence[Value]]) -> int:
    """How many inputs the columns may have once these rows are learned."""
    encoding, chosen = None, _chosen(model)
    if model.__sklearn_is_fitted__():
        encoding = model.mixture_.encoding
        if encoding is None:
            return model.mixture_.n_inputs
    most, nominal, total = _most_inputs(chosen), set(chosen["nominal"] or ()), 0
    for place, name in enumerate(columns):
        known = len(encoding.columns[name].inputs) if encoding is not None and name in encoding.columns else 0
        kinds = (str, float, int, bool) if name in nominal else (str,)
        n_new = len({row[place] for row in values if isinstance(row[place], kinds)})
        total += min(known + max(n_new, _OF_DATE), most) if n_new else max(known, 1)
    return total


# --- Learning --------------------------------------------------------------------------------------------------------


def observe(model: Model, X: Rows, keys: Sequence[str] | None) -> None:
    """Let the model learn from rows, each for its key if there are keys."""
    model.observe(*_keyed(model, X, keys))


def teach(model: Model, X: Rows, keys: Sequence[str] | None, labels: Sequence[Label]) -> None:
    """Let the model learn from rows whose labels have come."""
    model.teach(*_keyed(model, X, keys, list(labels)))


def _keyed(model: Model, X: Rows, keys: Sequence[str] | None, *labels: Sequence[Label]) -> tuple[Any, ...]:
    """What the model's methods take: a fleet's take keys first."""
    return (keys, X, *labels) if keys else (given(model, X), *labels)


def forget(model: Model, X: Rows, keys: Sequence[str] | None, labels: Sequence[Label]) -> None:
    """Take rows out of the model's replay buffers, and these labels, which it was taught, out of its counts."""
    known = set(model.mixture_.classes.labels.tolist()) if model.__sklearn_is_fitted__() else set()
    taught = [place for place, label in enumerate(labels) if label in known]  # others it could not take
    if not taught:
        return
    X, labels = X[np.array(taught)], [labels[place] for place in taught]
    model.forget(*_keyed(model, X, keys and [keys[place] for place in taught], labels))


def forget_sample(model: Model, X: Rows, key: str | None, label: Label | None, alone: Sequence[str]) -> None:
    """Take a row out of the model's replay buffers, with its label if it has one; and out of the encoding its values in
    the columns where it is ``alone`` in having them.
    """
    if not model.__sklearn_is_fitted__():
        return
    keys = None if key is None else [key]
    with suppress(ValueError):  # a row that the model could not take then, as it cannot now
        if label is not None:
            forget(model, X, keys, [label])
        model.forget(*_keyed(model, X, keys))
    if alone:
        model.forget_values(X, alone)


def structure(model: Model) -> tuple[int, int, int]:
    """Hidden units, and virtual and real drifts; of a fleet, those of the network that all keys share."""
    if not model.__sklearn_is_fitted__():
        return 0, 0, 0
    common = model.common_
    virtual, real = common.drifts_.values()
    return common.n_hidden_, virtual, real


def drifted_classes(model: Model, n: int) -> list[Label]:
    """The classes of the latest real drifts, so many, as far as each was of a single one."""
    real = [event for event in model.common_.events_ if event.kind == "drift" and event.phase == "discriminative"]
    return [event.label for event in real[-n:] if event.label is not None]


def importances(model: Model) -> dict[str, float]:
    """How much the columns matter that matter most; of a fleet, to the network that all keys share."""
    common = model.common_
    try:
        found = common.importances(ASKED).tolist()
    except NotFittedError:  # it has no label yet
        return {}
    named = sorted(zip(map(str, common.encoding_.columns), found, strict=True), key=lambda pair: -pair[1])
    return {name: round(share, 4) for name, share in named[:_MOST_NAMED] if share > 0}


# --- In files --------------------------------------------------------------------------------------------------------


def content_of(model: EvolvingClassifier) -> bytes | None:
    """The model file, or None before the first row."""
    return modelfile.content_of(model) if model.__sklearn_is_fitted__() else None


def of_content(content: bytes, name: str) -> Model:
    """The model that a file holds."""
    return modelfile.of_content(content, name, *KINDS)


def columns_of(model: EvolvingClassifier) -> list[str]:
    """The columns that a model from a file takes; with histories, those that rows have before they have these."""
    histories: Histories | None = getattr(model, "histories_", None)
    return list(model.encoding_.columns if histories is None else histories.columns_)


def table(columns: Sequence[str], values: Sequence[Sequence[Value]]) -> Rows:
    """Rows of values as a table.

    >>> table(["x", "city"], [[1.0, "Bonn"], [None, "Köln"]]).objects()
    [[1.0, None], ['Bonn', 'Köln']]
    """
    if set(map(type, chain.from_iterable(values))) == {float}:  # nothing to convert
        flat = np.fromiter(chain.from_iterable(values), float, len(values) * len(columns))
        return Rows(columns, flat.reshape(len(values), -1))
    named = zip(columns, zip(*values, strict=True), strict=True)
    return Rows.of(columns, [_column(own, name) for name, own in named], len(values))


def _column(values: Sequence[Any], name: str) -> Column:
    if set(map(type, values)) == {float}:  # nothing to convert
        return Numbers(np.array(values))
    return column_of(values, name)


def given(model: Model, rows: Rows) -> Any:
    """Rows in the form that the model takes: one from a file may know no names, and only numbers."""
    if model.__sklearn_is_fitted__() and model.mixture_.encoding is None:
        return rows if rows.others or "feature_names_in_" in model.__dict__ else rows.numbers
    return rows
