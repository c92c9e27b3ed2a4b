"""A predictor: the model as it was after some record of the log, which never changes.

The learner makes one beside its model and switches to it as a whole, so no prediction waits for learning, and each
answer comes from one consistent model.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from devdan.arrays import Floats
from devdan.encoding.encoding import SingleRow
from devdan.encoding.rows import Rows
from devdan.fleet.fleet import DEVDANFleet
from devdan.fleet.keys import text_of as text_of_key
from devdan.model.decision import text_of
from devdan.service import log_keys, models
from devdan.service.models import Model
from devdan.service.schema import Features, RowPrediction

NOTHING_YET = RowPrediction(None, None, [])
NOTHING_FETCHED: dict[str, bytes] = {}


class NotFetchedError(LookupError):
    """Networks have left memory since it was asked which ones have to be fetched."""


class Predictor:
    """Predictions of a model after the record ``version``; one thread at a time may ask for single ones.

    >>> from devdan import DEVDAN
    >>> model = DEVDAN(random_state=0).fit([{"x": 1.0}, {"x": 5.0}], ["low", "high"])
    >>> predictor = Predictor(model, ["x"], 7)
    >>> predictor.names, predictor.one({"x": 5.0}) == predictor.many([{"x": 5.0}])[0]
    (['high', 'low'], True)
    """

    _model: Any = None
    _fetched: Any = None

    def __init__(self, model: Model | None, columns: Sequence[str] | None, version: int) -> None:
        self._lock = threading.Lock()
        self.version, self.columns = version, columns
        self.classes: list[Any] = []
        self.names: list[str] = []
        self.thresholds: dict[str, float] = {}  # from which on a class is called, by its name
        self._in_order: list[float | None] = []  # these, of each class
        self.n_keys = 0 if model is None else model.n_keys
        if model is None or not model.__sklearn_is_fitted__():
            return
        if isinstance(model, DEVDANFleet):
            (self._model, self._fetched), self._single = log_keys.copied(model), None
            self.classes = model.mixture_.classes.labels.tolist()
            self._name()
            return
        self._model = copy.copy(model)
        self._model.__dict__.pop("histories_", None)  # of the learner, which goes on; rows come with theirs
        self._model.mixture_ = mixture = model.mixture_.copy()
        if mixture.n_taught == 0:
            return
        self.classes = mixture.classes.labels.tolist()
        self._name()
        self._single = None if mixture.encoding is None else SingleRow(mixture.encoding)
        self._row = np.full((1, mixture.n_inputs), np.nan)

    def _name(self) -> None:
        self.names = [text_of(label) for label in self.classes]
        found = self._model.mixture_.decision.thresholds(self.classes)
        self.thresholds = {text_of(label): threshold for label, threshold in found.items()}
        self._in_order = [self.thresholds.get(name) for name in self.names]

    @property
    def model(self) -> Model | None:
        """The model as it was, not to be changed; None before the first row."""
        model: Model | None = self._model
        return model

    @property
    def snapshot_seq(self) -> int:
        """The snapshot that has the networks of keys which are not in memory; 0 if all are."""
        return 0 if self._fetched is None else self._fetched.seq

    def not_in_memory(self, keys: Sequence[str]) -> list[str]:
        """The texts of those of some keys whose networks have to be fetched from the log, if it has them."""
        return list(map(text_of_key, self._model.not_in_memory(keys))) if self.snapshot_seq > 0 else []

    def one(self, features: Features) -> RowPrediction:
        """The prediction for a row."""
        if not self.classes:
            return NOTHING_YET
        if isinstance(features, tuple):
            assert self.columns is not None
            named = zip(self.columns, features, strict=True)
            features = {name: value for name, value in named if value is not None}
        if self._single is None or not self._single.fill(features, self._row):
            return self.many([features])[0]
        return self._decided(self._model.mixture_.predict_proba(self._row))[0]

    def many(
        self,
        rows: Sequence[Features],
        keys: Sequence[str] | None = None,
        fetched: Mapping[str, bytes] = NOTHING_FETCHED,
    ) -> list[RowPrediction]:
        """Predictions for rows whose columns are all known, or not needed.

        ``fetched`` is what the log has of keys that are not in memory, by their texts; raises a ``NotFetchedError`` if
        others have left memory since.
        """
        if not self.classes or self.columns is None:
            return [NOTHING_YET] * len(rows)
        names = self.columns
        values = [row if isinstance(row, tuple) else [row.get(name) for name in names] for row in rows]
        X = models.table(names, values)
        if keys is None:
            return self.given(X)
        with self._lock:
            if not fetched.keys() >= set(self.not_in_memory(keys)):
                raise NotFetchedError
            self._fetched.contents = {text: content for text, content in fetched.items() if content}
            return self._decided(self._model.predict_proba(keys, X))

    def given(self, X: Rows) -> list[RowPrediction]:
        """Predictions for rows as the model sees them."""
        if not self.classes:
            return [NOTHING_YET] * len(X)
        return self._decided(self._model.predict_proba(models.given(self._model, X)))

    def _decided(self, found: Floats) -> list[RowPrediction]:
        """What is answered for these probabilities."""
        if len(self.classes) == 1:
            n = self._model.n_taught_
            found = found * ((n + 1) / (n + 2))
        places = self._model.mixture_.decision.places(found, self.classes).tolist()
        return [
            RowPrediction(self.classes[place], own[place], own, self._in_order[place])
            for place, own in zip(places, found.tolist(), strict=True)
        ]

    def content(self) -> bytes | None:
        """The model file, or None before the first row; a fleet's is in the log."""
        return None if self._model is None else models.content_of(self._model)
