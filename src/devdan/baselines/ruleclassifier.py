"""Code shared by the fuzzy rule classifiers: scaling, probabilities, counts and events."""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from devdan.arrays import Floats, Words
from devdan.baselines.events import RuleEvent
from devdan.baselines.rulebase import RuleBase
from devdan.model.classes import Classes
from devdan.model.estimator import StreamClassifier
from devdan.model.kernel import LARGEST
from devdan.model.notebook import EventList

if TYPE_CHECKING:
    from typing_extensions import Self

_EVENTS = 1000


class RuleClassifier(StreamClassifier):
    """A classifier of one or more rule bases, each a regression on one-hot targets."""

    n_seen_: int
    _classes: Classes
    _low: Floats
    _high: Floats
    _takes_nan = False
    _ways_to_start = "partial_fit or fit"

    # --- Implemented by subclasses -------------------------------------------------------------------------------

    @abstractmethod
    def _begin(self) -> None:
        """Start without rules."""

    @property
    @abstractmethod
    def _bases(self) -> list[RuleBase]:
        """The rule bases."""

    @abstractmethod
    def _visit(self, X: Floats, codes: Words) -> None:
        """Learn from a chunk of scaled samples."""

    @abstractmethod
    def _outputs(self, X: Floats) -> Floats:
        """The outputs for scaled samples, on the scale of the one-hot targets."""

    # --- Learning ------------------------------------------------------------------------------------------------

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Self:
        """Reset the model and make one pass over the samples, as a single chunk."""
        return self._learn(X, y, None, afresh=True)

    def partial_fit(self, X: npt.ArrayLike, y: npt.ArrayLike, classes: npt.ArrayLike | None = None) -> Self:
        """Learn from a labelled chunk. ``classes`` may name classes in advance; new classes may appear at any time."""
        return self._learn(X, y, classes, afresh=not self.__sklearn_is_fitted__())

    def _learn(self, X: Any, y: Any, classes: Any, afresh: bool) -> Self:
        with self._unharmed():
            if y is None:
                raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
            # Rules cannot gain inputs: what the first chunk has taught the encoding stays.
            X, self._encoding = self._learned_inputs(X, True) if afresh else (self._inputs(X), self._encoding)
            codes, known, _ = self._encoded(y, len(X), classes, Classes() if afresh else self._classes)
            self.check_options()
            if afresh:
                self._start()
            elif self.scaling != self._scaling_in_use:
                raise ValueError(
                    f"scaling must stay {self._scaling_in_use!r} once the model has learned; call fit to start again"
                )
            self._classes = known
        for base in self._bases:
            if base.n_classes < len(known):
                base.add_classes(len(known))
        self._low, self._high = np.minimum(self._low, X.min(axis=0)), np.maximum(self._high, X.max(axis=0))
        self.n_seen_ += len(X)
        self._visit(self._scaled(X), codes)
        return self

    def _start(self) -> None:
        self._kept_scaling = self.scaling
        self._low, self._high = np.full(self._n_inputs, np.inf), np.full(self._n_inputs, -np.inf)
        self.n_seen_ = 0
        self._events: deque[RuleEvent] = deque(maxlen=_EVENTS)
        self._begin()

    def _scaled(self, X: Floats) -> Floats:
        """Scale to [0, 1] by the range of all samples seen so far; a feature that never varied becomes 0."""
        if self._scaling_in_use is None:
            return np.clip(X, 0.0, 1.0)
        low, high = np.clip(self._low, -LARGEST, LARGEST), np.clip(self._high, -LARGEST, LARGEST)
        scaled: Floats = (np.clip(X, low, high) - low) / np.where(high > low, high - low, 1.0)
        return scaled

    # --- Prediction ----------------------------------------------------------------------------------------------

    def predict_proba(self, X: npt.ArrayLike) -> Floats:
        """The probability of each class in ``classes_``, one row per sample.

        Raw outputs are regressions on one-hot targets, which may be negative or exceed 1. Each row is projected onto
        the probability simplex, which gives the nearest distribution and keeps the order.
        """
        self._check_is_fitted()
        outputs = self._outputs(self._scaled(self._inputs(X)))
        return nearest_distribution(outputs[:, self._classes.outputs])

    # --- Fitted attributes ---------------------------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return "_kept_scaling" in self.__dict__

    @property
    def _scaling_in_use(self) -> Any:
        return self._kept_scaling

    @property
    def classes_(self) -> npt.NDArray[Any]:
        self._check_is_fitted()
        return self._classes.labels

    @property
    def n_rules_(self) -> int:
        self._check_is_fitted()
        return sum(base.n_rules for base in self._bases)

    @property
    def n_members_(self) -> int:
        self._check_is_fitted()
        return len(self._bases)

    @property
    def n_parameters_(self) -> int:
        self._check_is_fitted()
        return sum(base.n_parameters for base in self._bases)

    @property
    def n_labels_used_(self) -> int:
        self._check_is_fitted()
        return self.n_seen_

    @property
    def events_(self) -> EventList[RuleEvent]:
        self._check_is_fitted()
        return EventList(self._events)

    def _train(self, base: RuleBase, member: int, X: Floats, codes: Words) -> None:
        """Train a rule base and store its rule events."""
        before = self.n_seen_ - len(X)
        begun = base.n_seen
        self._events += (
            RuleEvent(before + sample - begun, kind, member, rule, size)
            for sample, kind, rule, size in base.learn(X, codes)
        )


def nearest_distribution(outputs: Floats) -> Floats:
    """Each row's projection onto the probability simplex.

    >>> nearest_distribution(np.array([[0.7, 0.3], [1.2, -0.1], [-1.0, -1.0]]))
    array([[0.7, 0.3], [1. , 0. ], [0.5, 0.5]])
    """
    falling = -np.sort(-outputs, axis=1)
    excess = (np.cumsum(falling, axis=1) - 1) / np.arange(1, outputs.shape[1] + 1)
    support = (falling > excess).sum(axis=1)
    shares = np.maximum(outputs - excess[np.arange(len(outputs)), support - 1, None], 0.0)
    distribution: Floats = shares / shares.sum(axis=1, keepdims=True)
    return distribution
