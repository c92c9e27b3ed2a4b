"""The model of a stream: made from its settings, kept as a model file, given rows as the log has them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError

from devdan.encoding.rows import Column, Numbers, Rows
from devdan.encoding.tables import column_of
from devdan.fleet.fleet import KINDS, DEVDANFleet
from devdan.model import modelfile
from devdan.model.devdan import DEVDAN
from devdan.model.evolving import EvolvingClassifier
from devdan.service.counts import ASKED
from devdan.service.schema import InvalidError, Label, StreamSettings, Value, check_columns

Model = EvolvingClassifier | DEVDANFleet
_MADE = {kind.__name__: kind for kind in KINDS}
_NOT_BY_HTTP = {"initial_weights", "estimator", "n_jobs"}
MOST_UNITS = 10_000  # to start from
_MOST_NAMED = 20  # columns whose importances are kept


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
        model: Model = kind(**usual | settings.options)
        if settings.keyed:
            model = DEVDANFleet(model, n_jobs=1, random_state=seed)
            model._member  # noqa: B018 (which checks what a fleet cannot have)
        model.check_options()
        if settings.columns is not None:
            check_columns(settings.columns)
            model._instructions().check(settings.columns)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidError(str(error)) from error
    return model


def observe(model: Model, X: Rows, keys: Sequence[str] | None) -> None:
    """Let the model learn from rows, each for its key if there are keys."""
    if isinstance(model, DEVDANFleet):
        model.observe(keys, X)
    else:
        model.observe(given(model, X))


def teach(model: Model, X: Rows, keys: Sequence[str] | None, labels: Sequence[Label]) -> None:
    """Let the model learn from rows whose labels have come."""
    if isinstance(model, DEVDANFleet):
        model.teach(keys, X, list(labels))
    else:
        model.teach(given(model, X), list(labels))


def structure(model: Model) -> tuple[int, int, int]:
    """Hidden units, and virtual and real drifts; of a fleet, those of the network that all keys share."""
    if not model.__sklearn_is_fitted__():
        return 0, 0, 0
    network = model.prior_ if isinstance(model, DEVDANFleet) else model
    virtual, real = network.drifts_.values()
    return network.n_hidden_, virtual, real


def importances(model: Model) -> dict[str, float]:
    """How much the columns matter that matter most; of a fleet, to the network that all keys share."""
    network = model.prior_ if isinstance(model, DEVDANFleet) else model
    try:
        found = network.importances(ASKED).tolist()
    except NotFittedError:  # it has no label yet
        return {}
    named = sorted(zip(map(str, network.encoding_.columns), found, strict=True), key=lambda pair: -pair[1])
    return {name: round(share, 4) for name, share in named[:_MOST_NAMED] if share > 0}


# --- In files --------------------------------------------------------------------------------------------------------


def content_of(model: Model) -> bytes | None:
    """The model file, or None before the first row."""
    if not model.__sklearn_is_fitted__():
        return None
    if not isinstance(model, DEVDANFleet):
        return modelfile.content_of(model)
    with TemporaryDirectory() as folder:  # a fleet's file is a database
        path = Path(folder) / "fleet"
        model.save(path)
        return path.read_bytes()


def of_content(content: bytes, name: str) -> Model:
    """The model that a file holds."""
    if not content.startswith(modelfile.SQLITE):
        return modelfile.of_content(content, name, *KINDS)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "fleet"
        path.write_bytes(content)
        fleet: DEVDANFleet = DEVDANFleet.load(path)
        fleet.n_jobs = 1
        return fleet


def are_same(model: Model, content: bytes | None) -> bool:
    """Whether a file holds the model, bit for bit; the file of a fleet also says when it was written."""
    if not isinstance(model, DEVDANFleet) or content is None:
        return content_of(model) == content
    kept = of_content(content, "the snapshot")
    assert isinstance(kept, DEVDANFleet)
    if set(kept) != set(model) or modelfile.content_of(kept.prior_) != modelfile.content_of(model.prior_):
        return False
    return all(modelfile.content_of(kept[key]) == modelfile.content_of(model[key]) for key in model)


def columns_of(model: EvolvingClassifier) -> list[str]:
    """The columns that a model from a file takes."""
    return list(model.encoding_.columns)


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


def given(model: EvolvingClassifier, rows: Rows) -> Any:
    """Rows in the form that the model takes: one from a file may know no names, and only numbers."""
    if model.__sklearn_is_fitted__() and model.mixture_.encoding is None:
        return rows if rows.others or "feature_names_in_" in model.__dict__ else rows.numbers
    return rows
