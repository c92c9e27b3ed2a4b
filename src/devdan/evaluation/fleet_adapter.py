"""The adapter of a fleet, whose keys are a column of each chunk."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import NotFittedError

from devdan.arrays import Floats, Integers
from devdan.evaluation.adapters import Labelled, Predicted
from devdan.evaluation.record import KeyCount, Phases
from devdan.fleet import keys as labels
from devdan.fleet.fleet import DEVDANFleet
from devdan.fleet.keys import Key

_COUNTERS = ("n_features", "n_classes", "n_hidden", "n_drifts", "n_changes")
_FEATURES, _CLASSES, _HIDDEN, _DRIFTS, _PRUNED, _GROWN = 0, 1, 2, slice(3, 5), slice(5, 9, 2), slice(6, 9, 2)
_AT_ONCE = 1000  # networks whose counters are read together


class FleetAdapter:
    """What the evaluation needs from a fleet; ``key`` is the column of the keys."""

    asks_again = False

    def __init__(self, fleet: DEVDANFleet, key: str) -> None:
        self.model, self._key = fleet, key
        self._sizes = np.zeros(2, np.int64)  # hidden units and parameters of all networks
        self._changes = np.zeros(6, np.int64)  # drifts, prunings and growths of the latest chunk, by phase
        self._drifted: dict[Key, Integers] = {}  # drifts of the latest chunk, by key
        names = iter(fleet)
        while part := list(islice(names, _AT_ONCE)):
            self._sizes += _sizes(fleet.counters(part, _COUNTERS))

    def predict(self, X: Any) -> Predicted:
        try:
            probabilities = self.model.predict_proba(self._key, X)
        except NotFittedError:
            return Predicted()
        return Predicted(self.model.classes_[probabilities.argmax(axis=1)], probabilities)

    def predict_proba(self, X: Any) -> Floats | None:
        return self.predict(X).probabilities

    def learn(self, X: Any, taught: Labelled | None, whole: bool) -> int:
        self._changes[:], self._drifted = 0, {}
        if taught is not None and whole:
            self._step("partial_fit", *taught)
            return len(taught[1])
        self._step("observe", X)
        if taught is None:
            return 0
        self._step("teach", *taught)
        return len(taught[1])

    def _step(self, verb: str, X: Any, *y: Any) -> None:
        """Let networks learn, and add up what has changed."""
        keys = list(dict.fromkeys(self._keys_of(X)))
        before = self.model.counters(keys, _COUNTERS)
        getattr(self.model, verb)(self._key, X, *y)
        after = self.model.counters(keys, _COUNTERS)
        self._sizes += _sizes(after) - _sizes(before)
        new = after - before
        self._changes += new[:, _DRIFTS.start :].sum(axis=0)
        for row in np.flatnonzero(new[:, _DRIFTS].any(axis=1)).tolist():
            self._drifted[keys[row]] = self._drifted.get(keys[row], 0) + new[row, _DRIFTS]

    def _keys_of(self, X: Any) -> list[Key]:
        keys, rows = labels.split(self._key, X)
        return labels.checked(keys, len(rows))

    def by_key(self, X: Any, scored: npt.NDArray[np.bool_], right: npt.NDArray[np.bool_]) -> tuple[KeyCount, ...]:
        """The counts of each key in the chunk that was learned last."""
        counts: dict[Key, list[int]] = defaultdict(lambda: [0, 0, 0])
        given: Sequence[Key] = self._keys_of(X)
        for (key, is_scored, is_right), n in Counter(zip(given, scored.tolist(), right.tolist(), strict=True)).items():
            own = counts[key]
            own[0] += n
            own[1] += n * is_scored
            own[2] += n * (is_scored and is_right)
        for key in self._drifted:
            counts[key]  # a key without rows in this chunk, whose labels came late
        none = np.zeros(2, np.int64)
        return tuple(KeyCount(key, *own, *self._drifted.get(key, none).tolist()) for key, own in counts.items())

    def structure(self) -> dict[str, Any]:
        n_hidden, n_parameters = self._sizes.tolist()
        changes = np.concatenate([np.zeros(_DRIFTS.start, np.int64), self._changes])
        return {
            "n_hidden": n_hidden,
            "n_parameters": n_parameters,
            "n_members": None,
            "growths": Phases(*changes[_GROWN].tolist()),
            "prunings": Phases(*changes[_PRUNED].tolist()),
            "drifts": Phases(*changes[_DRIFTS].tolist()),
            "bias2": None,
            "variance": None,
        }


def _sizes(counters: Integers) -> Integers:
    """Hidden units and parameters, as in DEVDAN, of these networks together."""
    n, m, r = (counters[:, place] for place in (_FEATURES, _CLASSES, _HIDDEN))
    return np.array([r.sum(), (r * (n + 1) + m * (r + 1)).sum()])
