"""pENsemble: an ensemble of evolving rule bases, added after drifts and removed when they perform badly."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from devdan.arrays import Floats, Words
from devdan.baselines import drift, rulekernel
from devdan.baselines.events import RuleEvent
from devdan.baselines.generalization import error_bound, is_suspicious
from devdan.baselines.pclass import PClass
from devdan.baselines.rulebase import RuleBase
from devdan.baselines.ruleclassifier import RuleClassifier
from devdan.baselines.selection import select
from devdan.encoding.encoding import Instructions
from devdan.model.options import is_count, is_real, require

_BUFFERED = 5  # most chunks kept for the next member


@dataclass
class Member:
    """A member of the ensemble."""

    number: int
    base: RuleBase
    weight: float = 1.0  # b
    error: float = 0.0  # e: mean squared error on the latest chunk, before it was learned
    bounds: list[float] = field(default_factory=list)  # R*_SM, chunk by chunk


class PENsemble(RuleClassifier):
    """Evolving ensemble of pClass members, for data streams in chunks of a few hundred samples.

    Each chunk penalises the members that misclassify it and rewards the others, removes members with little weight or a
    suspicious generalisation error, and looks for a drift of the inputs. After a drift a new member is added; after a
    warning the ensemble waits; otherwise the best member continues to learn.

    Parameters
    ----------
    estimator : PClass, default=None
        Estimator for the members; ``None`` means ``PClass()``.
    penalty : float in (0, 1), default=0.5
        A mistake multiplies a member's weight by this, a success by 2 minus this, up to 1.
    member_threshold : float in [0, 1), default=0.01
        Members with a smaller share of the total weight are removed.
    cut_confidence, drift_confidence, warning_confidence : float in (0, 1), default=0.001, 0.001 and 0.005
        Significance levels of the drift detection: for cutting a chunk, for a drift and for a warning.
    covariance_reset : bool, default=True
        Whether to reset Q = omega I of a member's least squares at each chunk, so that recent chunks count more.
    n_selected : int, default=None
        Select this many features online; ``None`` uses all.
    partial_input : bool, default=False
        Whether the selection sees only the selected features of a sample and, sometimes, random ones.
    random_state : int, RandomState or None, default=None
        Seed of the selection with partial input; nothing else is random.

    Attributes
    ----------
    classes_, n_features_in_, feature_names_in_, n_seen_ : as in PClass.
    n_members_, n_rules_, n_parameters_ : current number of members, and of rules and parameters of all members.
    weights_ : the members' weights.
    selected_ : which features are used.
    events_ : the latest 1,000 changes and signals, as :class:`~devdan.baselines.RuleEvent`.

    Examples
    --------
    >>> from devdan.baselines import PENsemble
    >>> from devdan.streams import sea
    >>> model = PENsemble()
    >>> for X, y in sea(5_000):
    ...     model = model.partial_fit(X, y)
    >>> model.score(*next(iter(sea(1_000, chunk=1_000, seed=2)))) > 0.8
    True
    """

    _members: list[Member]
    _mask: Floats | None
    _buffer: list[tuple[Floats, Words]]  # chunks since the first of the recent warnings

    def __init__(
        self,
        estimator: PClass | None = None,
        *,
        penalty: float = 0.5,
        member_threshold: float = 0.01,
        cut_confidence: float = 0.001,
        drift_confidence: float = 0.001,
        warning_confidence: float = 0.005,
        covariance_reset: bool = True,
        n_selected: int | None = None,
        partial_input: bool = False,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.estimator = estimator
        self.penalty = penalty
        self.member_threshold = member_threshold
        self.cut_confidence = cut_confidence
        self.drift_confidence = drift_confidence
        self.warning_confidence = warning_confidence
        self.covariance_reset = covariance_reset
        self.n_selected = n_selected
        self.partial_input = partial_input
        self.random_state = random_state

    # --- Learning ------------------------------------------------------------------------------------------------

    def _default_member(self) -> PClass:
        return PClass()

    @property
    def _member(self) -> PClass:
        member = self._default_member() if self.estimator is None else self.estimator
        if not isinstance(member, PClass):
            raise ValueError(f"estimator must be a PClass, got {member!r}")
        return member

    @property
    def scaling(self) -> Any:
        """The members'."""
        return self._member.scaling

    def _instructions(self) -> Instructions:
        return self._member._instructions()

    def check_options(self) -> None:
        """Raise a ``ValueError`` that names the first option out of its range."""
        self._member.check_options()
        for name in ("penalty", "cut_confidence", "drift_confidence", "warning_confidence"):
            value = getattr(self, name)
            require(is_real(value) and 0 < value < 1, name, "in (0, 1)", value)
        least = self.member_threshold
        require(is_real(least) and 0 <= least < 1, "member_threshold", "in [0, 1)", least)
        for name in ("covariance_reset", "partial_input"):
            require(isinstance(getattr(self, name), (bool, np.bool_)), name, "True or False", getattr(self, name))
        chosen = self.n_selected
        require(chosen is None or is_count(chosen), "n_selected", "an integer of at least 1, or None", chosen)

    def _begin(self) -> None:
        self._members, self._buffer, self._mask = [], [], None
        self._n_members_ever = 0
        self._random = check_random_state(self.random_state)

    @property
    def _bases(self) -> list[RuleBase]:
        return [member.base for member in self._members]

    def _visit(self, X: Floats, codes: Words) -> None:
        if not self._members:
            self._add_member(X, codes)
            return
        self._select_features(X, codes)
        X = self._masked(X)
        answers = np.array([base.outputs(X) for base in self._bases])  # (member, sample, output)
        learned = self._judge(answers, X, codes)
        self._normalise()
        self._prune(answers, X)
        self._act(self._signal(X), X[learned], codes[learned])

    def _select_features(self, X: Floats, codes: Words) -> None:
        """Step 2."""
        if self.n_selected is not None:
            explore = self._random if self.partial_input else None
            self._mask = select(self._bases, self.weights_, X, codes, self._mask, self.n_selected, explore)

    def _masked(self, X: Floats) -> Floats:
        return X if self._mask is None else X * self._mask

    def _judge(self, answers: Floats, X: Floats, codes: Words) -> Any:
        """Step 3: penalty and reward. Returns which samples may be learned from: here, all."""
        weights, errors = self.weights_, np.zeros(len(self._members))
        rulekernel.judge(answers, codes, weights, errors, float(self.penalty))
        self._take_judgement(weights, errors / len(X))
        return slice(None)

    def _take_judgement(self, weights: Floats, errors: Floats) -> None:
        for member, weight, error in zip(self._members, weights.tolist(), errors.tolist(), strict=True):
            member.weight, member.error = weight, error

    def _normalise(self) -> None:
        """Step 4, first half."""
        total = sum(member.weight for member in self._members)
        for member in self._members:
            member.weight /= total

    def _prune(self, answers: Floats, X: Floats) -> None:
        """Steps 4 and 5: remove members with little weight; if there are none, those with a suspicious error."""
        if len(self._members) == 1:
            return
        leaving = [member for member in self._members if member.weight < self.member_threshold]
        if not leaving:
            for member in self._members:
                bound = error_bound(member.base, X, member.error)
                if is_suspicious(bound, member.bounds):
                    leaving.append(member)
                member.bounds.append(bound)
        if len(leaving) == len(self._members):
            leaving.remove(self._best)
        for member in leaving:
            self._remove(member, "member removed")

    @property
    def _best(self) -> Member:
        return min(self._members, key=lambda member: member.error)

    def _remove(self, member: Member, kind: str) -> None:
        self._members.remove(member)
        self._note(kind, member)

    def _signal(self, X: Floats) -> str:
        """Step 6."""
        return drift.detect(X, self.cut_confidence, self.drift_confidence, self.warning_confidence)

    def _act(self, signal: str, X: Floats, codes: Words) -> None:
        """Step 7."""
        best = self._best
        if signal != drift.STABLE:
            self._note(signal, best)
            self._buffer = [*self._buffer, (X, codes)][-_BUFFERED - (signal == drift.DRIFT) :]
        if signal == drift.DRIFT:
            self._add_member(*(np.concatenate(parts) for parts in zip(*self._buffer, strict=True)))
        elif signal == drift.STABLE:
            if self.covariance_reset:
                best.base.reset_covariance()
            self._train(best.base, best.number, X, codes)
            best.weight = 1.0
        if signal != drift.WARNING:
            self._buffer = []

    def _add_member(self, X: Floats, codes: Words) -> None:
        member = Member(self._n_members_ever, self._member.new_base(self._n_inputs, len(self._classes)))
        self._n_members_ever += 1
        self._members.append(member)
        self._note("member added", member)
        self._train(member.base, member.number, X, codes)

    def _note(self, kind: str, member: Member) -> None:
        self._events.append(RuleEvent(self.n_seen_, kind, member.number, None, len(self._members)))

    # --- Prediction ----------------------------------------------------------------------------------------------

    def _outputs(self, X: Floats) -> Floats:
        """The members' outputs, averaged by their weights."""
        X, weights = self._masked(X), self.weights_
        weights /= weights.sum()
        answers = np.array([base.outputs(X) for base in self._bases])
        mean: Floats = np.tensordot(weights, answers, axes=1)
        return mean

    @property
    def weights_(self) -> Floats:
        self._check_is_fitted()
        return np.array([member.weight for member in self._members])

    @property
    def selected_(self) -> Any:
        self._check_is_fitted()
        return np.ones(self._n_inputs, bool) if self._mask is None else self._mask > 0
