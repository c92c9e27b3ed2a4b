"""What the fuzzy rule classifiers share, and pClass, the classifier of a single rule base."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from devdan.arrays import Floats, Integers
from devdan.bench.rule_base import MAX_EVENTS, WEIGHTINGS, RuleBase
from devdan.bench.rule_kernel import RuleSettings
from devdan.encoding.encoding import Encoding, EncodingWarning, Instructions
from devdan.kernel import LARGEST
from devdan.model import options
from devdan.model.classes import Classes
from devdan.model.estimator import StreamClassifier
from devdan.model.notebook import EventList
from devdan.model.options import is_among, is_real, require

if TYPE_CHECKING:
    from typing_extensions import Self


_JUDGED_UNTIL = 10_000  # samples, after which the kinds of columns are no longer looked at


class RuleEvent(NamedTuple):
    """A change or a signal: the number of samples so far, its kind, the member and the rule.

    Kinds are ``rule added``, ``rule pruned`` (too little influence), ``rule stored`` (too little density), ``rule
    recalled`` (from the store), ``member added``, ``member removed``, ``member merged`` (into a better one), ``drift``
    and ``warning``. Members are numbered from 0 in order of creation. ``rule`` is None if no rule changed; ``size`` is
    the number of the member's rules, or of members, after the event.
    """

    sample: int
    kind: str
    member: int
    rule: int | None
    size: int


class RuleClassifier(StreamClassifier):
    """A classifier of one or more rule bases, each of them a regression on one-hot targets."""

    n_seen_: int
    _classes: Classes
    _judged: Encoding | None  # the encoding that the chunks so far would give, while it is looked at
    _said_of: set[str]  # columns that are not of the kind of the first chunk
    _low: Floats
    _high: Floats
    _totals: Floats  # of the values of each input so far
    _n_values: Integers
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
    def _visit(self, X: Floats, codes: Integers) -> None:
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
        given = X
        with self._unharmed():
            if y is None:
                raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
            # The encoding stays as the first chunk made it, since rules cannot gain inputs.
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
        self._judge_again(given, afresh)
        for base in self._bases:
            if base.n_classes < len(known):
                base.add_classes(len(known))
        self._totals += np.nansum(np.clip(X, -LARGEST, LARGEST), axis=0)
        self._n_values += (~np.isnan(X)).sum(axis=0)
        X = self._filled(X)
        self._low, self._high = np.minimum(self._low, X.min(axis=0)), np.maximum(self._high, X.max(axis=0))
        self.n_seen_ += len(X)
        self._visit(self._scaled(X), codes)
        return self

    def _judge_again(self, X: Any, afresh: bool) -> None:
        """Warn once of each column that turns out to be of another kind than in the first chunk, since it stays so."""
        if afresh:
            self._judged = self._encoding
        if self._encoding is None or self._judged is None:
            return
        if not afresh:
            _, self._judged = self._judged.learned(self._rows(self._as_table(X, False), False))
            for name, column in self._judged.columns.items():
                first = self._encoding.columns[name]
                if column.before and column.kind != first.kind and name not in self._said_of:
                    self._said_of.add(name)
                    warnings.warn(
                        f"the column {name!r} is read as {first.kind}, as in the first chunk, but turns out to be "
                        f"{column.kind}: {type(self).__name__} keeps the inputs of its first chunk; say what it is "
                        "(nominal=, numeric= or dates=), or begin with a larger chunk",
                        EncodingWarning,
                        stacklevel=4,
                    )
        if self.n_seen_ >= _JUDGED_UNTIL:
            self._judged = None

    def _start(self) -> None:
        self._kept_scaling = self.scaling
        self._low, self._high = np.full(self._n_inputs, np.inf), np.full(self._n_inputs, -np.inf)
        self._totals, self._n_values = np.zeros(self._n_inputs), np.zeros(self._n_inputs, np.int64)
        self.n_seen_ = 0
        self._events: deque[RuleEvent] = deque(maxlen=MAX_EVENTS)
        self._said_of = set()
        self._judged = None
        self._begin()

    def _finished(self, X: Floats, reset: bool, encoding: Encoding | None) -> Floats:
        checked = super()._finished(X, reset, encoding)
        return checked if encoding is None else encoding.without_gaps(checked)

    def _filled(self, X: Floats) -> Floats:
        """Rules cover a point, so a missing value becomes the mean of those so far; 0 if there was none."""
        return np.where(np.isnan(X), self._totals / np.maximum(self._n_values, 1), X)

    def _scaled(self, X: Floats) -> Floats:
        """Scale to [0, 1] by the range of all samples seen so far; a feature that never varied becomes 0."""
        if self._scaling_in_use is None:
            return np.clip(X, 0.0, 1.0)
        low, high = np.clip(self._low, -LARGEST, LARGEST), np.clip(self._high, -LARGEST, LARGEST)
        scaled: Floats = (np.clip(X, low, high) - low) / np.where(high > low, high - low, 1.0)
        return scaled

    def _train(self, base: RuleBase, member: int, X: Floats, codes: Integers) -> None:
        """Train a rule base and record its rule events."""
        before = self.n_seen_ - len(X)
        begun = base.n_seen
        self._events += (
            RuleEvent(before + sample - begun, kind, member, rule, size)
            for sample, kind, rule, size in base.learn(X, codes)
        )

    # --- Prediction ----------------------------------------------------------------------------------------------

    def predict_proba(self, X: npt.ArrayLike) -> Floats:
        """The probability of each class in ``classes_``, one row per sample.

        The outputs are regressions on one-hot targets, which may be negative or exceed 1. Each row is projected onto
        the probability simplex, which gives the nearest distribution and keeps the order.
        """
        self._check_is_fitted()
        outputs = self._outputs(self._scaled(self._filled(self._inputs(X))))
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


def nearest_distribution(outputs: Floats) -> Floats:
    """Each row's projection onto the probability simplex.

    >>> nearest_distribution(np.array([[0.7, 0.3], [1.2, -0.1], [-1.0, -1.0]]))
    array([[0.7, 0.3], [1. , 0. ], [0.5, 0.5]])
    """
    descending = -np.sort(-outputs, axis=1)
    excess = (np.cumsum(descending, axis=1) - 1) / np.arange(1, outputs.shape[1] + 1)
    support = (descending > excess).sum(axis=1)
    projected = np.maximum(outputs - excess[np.arange(len(outputs)), support - 1, None], 0.0)
    distribution: Floats = projected / projected.sum(axis=1, keepdims=True)
    return distribution


class PClass(RuleClassifier):
    """Evolving classifier of generalised fuzzy rules, for data streams.

    Rules are Gaussians of any orientation, each with a linear function of the inputs for each class. Rules are added
    where data are dense or unusual and not covered; the winning rule follows the data; the linear functions are learned
    by local recursive least squares; rules are pruned, or stored and recalled. The original is closed: this is our
    interpretation (docs/pensemble.md).

    Parameters
    ----------
    scaling : {"minmax", None}, default="minmax"
        How features are scaled to [0, 1]: by the range of all samples seen so far; ``None`` is for data in [0, 1].
    vigilance : float in [0, 1], default=0.99
        Fraction of the total rule volume that the winning rule must have before another rule is added.
    spread : float, default=0.01
        Variance of the first rule.
    omega : float, default=1000.0
        Initial value of the least squares: Q = omega I. The published 1e5 hardly regularises small chunks.
    decay : float, default=1e-15
        Decay of the linear functions.
    grow, prune : bool, default=True
        Whether to add and prune rules.
    feature_weighting : {"soft", "full", None}, default=None
        Weight the features of each chunk by how well they separate its classes; ``"full"`` leaves out the least useful
        one.
    nominal, numeric, dates, drop, max_categories
        About the columns of tables, as in :class:`devdan.DEVDAN`. A missing category or
        date, or one that the first chunk did not have, gets a neutral value. A missing number gets the mean so far.

    Attributes
    ----------
    classes_ : the classes seen so far, sorted.
    n_features_in_, feature_names_in_ : number and, where X had them, names of the features.
    n_seen_ : samples seen so far.
    n_rules_, n_members_, n_parameters_ : current rules, 1, and current parameters, u + u² + (u + 1) m per rule.
    events_ : the latest 1,000 changes, as :class:`~devdan.bench.RuleEvent`.

    Examples
    --------
    >>> from devdan.bench import PClass
    >>> from devdan.streams import sea
    >>> model = PClass()
    >>> for X, y in sea(5_000):
    ...     model = model.partial_fit(X, y)
    >>> model.score(*next(iter(sea(1_000, chunk=1_000, seed=2)))) > 0.8
    True
    """

    _base: RuleBase

    def __init__(
        self,
        *,
        scaling: str | None = "minmax",
        vigilance: float = 0.99,
        spread: float = 0.01,
        omega: float = 1000.0,
        decay: float = 1e-15,
        grow: bool = True,
        prune: bool = True,
        feature_weighting: str | None = None,
        nominal: Sequence[str] | None = None,
        numeric: Sequence[str] | None = None,
        dates: Sequence[str] | Mapping[str, str] | None = None,
        drop: Sequence[str] | None = None,
        max_categories: int = 64,
    ) -> None:
        self.scaling = scaling
        self.vigilance = vigilance
        self.spread = spread
        self.omega = omega
        self.decay = decay
        self.grow = grow
        self.prune = prune
        self.feature_weighting = feature_weighting
        self.nominal = nominal
        self.numeric = numeric
        self.dates = dates
        self.drop = drop
        self.max_categories = max_categories

    def check_options(self) -> None:
        """Raise a ``ValueError`` that names the first option out of its range."""
        require(is_among(self.scaling, ("minmax", None)), "scaling", "'minmax' or None", self.scaling)
        require(is_real(self.vigilance) and 0 <= self.vigilance <= 1, "vigilance", "in [0, 1]", self.vigilance)
        require(is_real(self.spread) and 1e-4 <= self.spread <= 1e4, "spread", "in [1e-4, 1e4]", self.spread)
        require(is_real(self.omega) and 0 < self.omega <= 1e10, "omega", "in (0, 1e10]", self.omega)
        require(is_real(self.decay) and 0 <= self.decay <= 1e-3, "decay", "in [0, 0.001]", self.decay)
        for name in ("grow", "prune"):
            require(isinstance(getattr(self, name), (bool, np.bool_)), name, "True or False", getattr(self, name))
        weighting = self.feature_weighting
        require(is_among(weighting, (*WEIGHTINGS, None)), "feature_weighting", "'soft', 'full' or None", weighting)
        options.check(self._columns())

    def _columns(self) -> dict[str, Any]:
        """The options about columns."""
        return {option.name: getattr(self, option.name) for option in options.ENCODING}

    def _instructions(self) -> Instructions:
        options.check(self._columns())
        return options.instructions(self._columns())

    def new_base(self, n_features: int, n_classes: int) -> RuleBase:
        """An empty rule base with these options."""
        numbers = float(self.vigilance), float(self.spread), float(self.omega), float(self.decay)
        settings = RuleSettings(*numbers, bool(self.grow), bool(self.prune))
        return RuleBase(n_features, n_classes, settings, self.feature_weighting)

    def _begin(self) -> None:
        self._base = self.new_base(self._n_inputs, 1)

    @property
    def _bases(self) -> list[RuleBase]:
        return [self._base]

    def _visit(self, X: Floats, codes: Integers) -> None:
        self._train(self._base, 0, X, codes)

    def _outputs(self, X: Floats) -> Floats:
        return self._base.outputs(X)
