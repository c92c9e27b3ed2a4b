"""The model of a stream: made from its settings, kept as a model file, given rows as the log has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from devdan.encoding.rows import Column, Numbers, Rows
from devdan.encoding.tables import column_of
from devdan.model import modelfile
from devdan.model.evolving import EvolvingClassifier
from devdan.model.opening import KINDS
from devdan.service.events import Settings, Value
from devdan.service.naming import InvalidError, check_columns

_MADE = {kind.__name__: kind for kind in KINDS}
_NOT_BY_HTTP = {"initial_weights", "estimator", "n_jobs"}
MOST_UNITS = 10_000  # to start from


def new_model(settings: Settings) -> EvolvingClassifier:
    """The model of a stream before its first row; checks what the settings say about it.

    >>> new_model(Settings(options={"n_hidden": 3}))
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
    try:
        model: EvolvingClassifier = kind(**{"random_state": 0} | settings.options)
        model.check_options()
        if settings.columns is not None:
            check_columns(settings.columns)
            model.check_columns(settings.columns)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidError(str(error)) from error
    return model


def content_of(model: EvolvingClassifier) -> bytes | None:
    """The model file, or None before the first row."""
    return modelfile.content_of(model) if model.__sklearn_is_fitted__() else None


def of_content(content: bytes, name: str) -> EvolvingClassifier:
    """The model that a file holds."""
    return modelfile.of_content(content, name, *KINDS)


def columns_of(model: EvolvingClassifier) -> list[str]:
    """The columns that a model from a file takes."""
    return list(model.encoding_.columns)


def table(columns: Sequence[str], values: Sequence[Sequence[Value]]) -> Rows:
    """Rows of values as a table.

    >>> table(["x", "city"], [[1.0, "Bonn"], [None, "Köln"]]).objects()
    [[1.0, None], ['Bonn', 'Köln']]
    """
    named = zip(columns, zip(*values, strict=True), strict=True)
    return Rows.of(columns, [_column(own, name) for name, own in named], len(values))


def _column(values: Sequence[Any], name: str) -> Column:
    if set(map(type, values)) == {float}:  # nothing to convert
        return Numbers(np.array(values))
    return column_of(values, name)


def given(model: EvolvingClassifier, rows: Rows) -> Any:
    """Rows in the form that the model takes: one from a file may know no names, and only numbers."""
    if model.__sklearn_is_fitted__() and model._encoding is None:
        return rows if rows.others or "feature_names_in_" in model.__dict__ else rows.numbers
    return rows
