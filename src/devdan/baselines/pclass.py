"""pClass: a single evolving rule base."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from devdan.arrays import Floats, Words
from devdan.baselines.rulebase import RuleBase
from devdan.baselines.ruleclassifier import RuleClassifier
from devdan.baselines.rulekernel import Settings
from devdan.baselines.weighting import WEIGHTINGS
from devdan.encoding.encoding import Instructions
from devdan.model import options
from devdan.model.options import is_among, is_real, require


class PClass(RuleClassifier):
    """Evolving classifier of generalised fuzzy rules, for data streams.

    Rules are Gaussians of any orientation, each with a linear function of the inputs for each class. Rules are added
    where data are dense or unusual and not covered; the winning rule follows the data; the linear functions are learned
    by local recursive least squares; rules are pruned, or stored and recalled. The original is closed: this is our
    interpretation (docs/deviations.md).

    Parameters
    ----------
    scaling : {"minmax", None}, default="minmax"
        How features are scaled to [0, 1]: by the range of all samples seen so far; ``None`` is for data in [0, 1].
    vigilance : float in [0, 1], default=0.99
        Share of the total rule volume that the winning rule must have before another is added.
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
        About the columns of tables, as in :class:`devdan.DEVDAN`. Values that the first chunk did not have are neutral.

    Attributes
    ----------
    classes_ : the classes seen so far, sorted.
    n_features_in_, feature_names_in_ : number and, where X had them, names of the features.
    n_seen_ : samples seen so far.
    n_rules_, n_members_, n_parameters_ : current rules, 1, and current parameters, u + u² + (u + 1) m per rule.
    events_ : the latest 1,000 changes, as :class:`~devdan.baselines.RuleEvent`.

    Examples
    --------
    >>> from devdan.baselines import PClass
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
        settings = Settings(*numbers, bool(self.grow), bool(self.prune))
        return RuleBase(n_features, n_classes, settings, self.feature_weighting)

    def _begin(self) -> None:
        self._base = self.new_base(self._n_inputs, 1)

    @property
    def _bases(self) -> list[RuleBase]:
        return [self._base]

    def _visit(self, X: Floats, codes: Words) -> None:
        self._train(self._base, 0, X, codes)

    def _outputs(self, X: Floats) -> Floats:
        return self._base.outputs(X)
