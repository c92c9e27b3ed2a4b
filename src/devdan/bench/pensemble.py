"""pENsemble and pENsemble+: ensembles of evolving rule bases, which grow by drifts and shrink by pruning or merging."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from devdan.arrays import Floats, Integers
from devdan.bench import pensemble_criteria as criteria
from devdan.bench import rule_kernel
from devdan.bench.pclass import PClass, RuleClassifier, RuleEvent
from devdan.bench.rule_base import RuleBase
from devdan.bench.rule_kernel import Policy
from devdan.encoding.encoding import Instructions
from devdan.model.options import is_count, is_real, require

_MAX_BUFFERED = 5  # chunks kept for the next member
_FORCED = 6  # samples at the start of a chunk whose labels pENsemble+ always uses, like that of the last sample
_STEP = 0.01  # of the dynamic threshold


@dataclass
class Member:
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
        Members with a smaller fraction of the total weight are removed.
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
    events_ : the latest 1,000 changes and signals, as :class:`~devdan.bench.RuleEvent`.

    Examples
    --------
    >>> from devdan.bench import PENsemble
    >>> from devdan.streams import sea
    >>> model = PENsemble()
    >>> for X, y in sea(5_000):
    ...     model = model.partial_fit(X, y)
    >>> model.score(*next(iter(sea(1_000, chunk=1_000, seed=2)))) > 0.8
    True
    """

    _members: list[Member]
    _mask: Floats | None
    _buffer: list[tuple[Floats, Integers]]  # chunks since the first of the recent warnings

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

    def _visit(self, X: Floats, codes: Integers) -> None:
        if not self._members:
            self._add_member(X, codes)
            return
        self._select_features(X, codes)
        X = self._masked(X)
        outputs = np.array([base.outputs(X) for base in self._bases])  # (member, sample, output)
        learned = self._judge(outputs, X, codes)
        self._normalise()
        self._prune(outputs, X)
        self._act(self._signal(X), X[learned], codes[learned])

    def _select_features(self, X: Floats, codes: Integers) -> None:
        """Step 2."""
        if self.n_selected is not None:
            explore = self._random if self.partial_input else None
            self._mask = criteria.select_features(
                self._bases, self.weights_, X, codes, self._mask, self.n_selected, explore
            )

    def _masked(self, X: Floats) -> Floats:
        return X if self._mask is None else X * self._mask

    def _judge(self, outputs: Floats, X: Floats, codes: Integers) -> Any:
        """Step 3: penalty and reward. Returns which samples may be learned from: here, all."""
        weights, errors = self.weights_, np.zeros(len(self._members))
        rule_kernel.judge(outputs, codes, weights, errors, float(self.penalty))
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

    def _prune(self, outputs: Floats, X: Floats) -> None:
        """Steps 4 and 5: remove members with little weight; if there are none, those with a suspicious error."""
        if len(self._members) == 1:
            return
        leaving = [member for member in self._members if member.weight < self.member_threshold]
        if not leaving:
            for member in self._members:
                bound = criteria.error_bound(member.base, X, member.error)
                if criteria.is_suspicious(bound, member.bounds):
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
        return criteria.detect_drift(X, self.cut_confidence, self.drift_confidence, self.warning_confidence)

    def _act(self, signal: str, X: Floats, codes: Integers) -> None:
        """Step 7."""
        best = self._best
        if signal != criteria.STABLE:
            self._note(signal, best)
            self._buffer = [*self._buffer, (X, codes)][-_MAX_BUFFERED - (signal == criteria.DRIFT) :]
        if signal == criteria.DRIFT:
            self._add_member(*(np.concatenate(parts) for parts in zip(*self._buffer, strict=True)))
        elif signal == criteria.STABLE:
            if self.covariance_reset:
                best.base.reset_covariance()
            self._train(best.base, best.number, X, codes)
            best.weight = 1.0
        if signal != criteria.WARNING:
            self._buffer = []

    def _add_member(self, X: Floats, codes: Integers) -> None:
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
        outputs = np.array([base.outputs(X) for base in self._bases])
        mean: Floats = np.tensordot(weights, outputs, axes=1)
        return mean

    @property
    def weights_(self) -> Floats:
        self._check_is_fitted()
        return np.array([member.weight for member in self._members])

    @property
    def selected_(self) -> Any:
        self._check_is_fitted()
        return np.ones(self._n_inputs, bool) if self._mask is None else self._mask > 0


class PENsemblePlus(PENsemble):
    """Evolving ensemble of pClass members that chooses which labels it learns from.

    Like :class:`PENsemble`, with two differences. Of the labels passed to :meth:`partial_fit`, it uses only those of
    samples for which its outputs, or the classes of its nearby rules, are in conflict; :attr:`label_share_` is the
    share used. Instead of pruning members, it merges those whose outputs depend linearly on each other and keeps the
    better one.

    Parameters
    ----------
    estimator : PClass, default=None
        Estimator for the members; ``None`` means ``PClass(spread=10.0)``.
    conflict_threshold : float in [0, 1], default=0.95
        A label is skipped if the largest output's share of the two largest, or the largest class probability by the
        rules, exceeds this.
    dynamic_threshold : bool, default=False
        Whether the threshold falls by a hundredth after each label that was used and rises after each that was not.
    budget : float in (0, 1], default=1.0
        The largest share of labels to use, not counting the first six samples and the last sample of each chunk.
    merge_threshold : float, default=0.1
        Members are merged if the maximal information compression index of all their outputs is smaller.
    penalty, cut_confidence, drift_confidence, warning_confidence, covariance_reset : as in PENsemble
        The default of ``warning_confidence`` is 0.008.
    n_selected, partial_input, random_state : as in PENsemble

    Attributes
    ----------
    label_share_, n_labels_used_ : share and number of labels used so far.
    classes_, n_members_, n_rules_, n_parameters_, weights_, selected_, events_ : as in PENsemble.

    Examples
    --------
    >>> from devdan.bench import PENsemblePlus
    >>> from devdan.streams import sea
    >>> model = PENsemblePlus()
    >>> for X, y in sea(20_000):
    ...     model = model.partial_fit(X, y)
    >>> model.score(*next(iter(sea(1_000, chunk=1_000, seed=2)))) > 0.8, model.label_share_ < 0.7
    (True, True)
    """

    def __init__(
        self,
        estimator: PClass | None = None,
        *,
        conflict_threshold: float = 0.95,
        dynamic_threshold: bool = False,
        budget: float = 1.0,
        merge_threshold: float = 0.1,
        penalty: float = 0.5,
        cut_confidence: float = 0.001,
        drift_confidence: float = 0.001,
        warning_confidence: float = 0.008,
        covariance_reset: bool = True,
        n_selected: int | None = None,
        partial_input: bool = False,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        super().__init__(
            estimator,
            penalty=penalty,
            cut_confidence=cut_confidence,
            drift_confidence=drift_confidence,
            warning_confidence=warning_confidence,
            covariance_reset=covariance_reset,
            n_selected=n_selected,
            partial_input=partial_input,
            random_state=random_state,
        )
        self.conflict_threshold = conflict_threshold
        self.dynamic_threshold = dynamic_threshold
        self.budget = budget
        self.merge_threshold = merge_threshold

    def _default_member(self) -> PClass:
        return PClass(spread=10.0)

    def check_options(self) -> None:
        """Raise a ``ValueError`` that names the first option out of its range."""
        super().check_options()
        bound, share, index = self.conflict_threshold, self.budget, self.merge_threshold
        require(is_real(bound) and 0 <= bound <= 1, "conflict_threshold", "in [0, 1]", bound)
        require(is_real(share) and 0 < share <= 1, "budget", "in (0, 1]", share)
        require(is_real(index) and index >= 0, "merge_threshold", "at least 0", index)
        dynamic = self.dynamic_threshold
        require(isinstance(dynamic, (bool, np.bool_)), "dynamic_threshold", "True or False", dynamic)

    def _begin(self) -> None:
        super()._begin()
        self._threshold = np.array([float(self.conflict_threshold)])
        self._counts = np.zeros(2, np.int64)  # samples, labels used

    def _visit(self, X: Floats, codes: Integers) -> None:
        if not self._members:
            self._counts += len(X)  # in the first chunk, all
        super()._visit(X, codes)

    def _judge(self, outputs: Floats, X: Floats, codes: Integers) -> Any:
        """Step 3, using only the labels that are asked for; returns which."""
        weights, errors = self.weights_, np.zeros(len(self._members))
        asked = np.zeros(len(X), np.bool_)
        step = _STEP if self.dynamic_threshold else 0.0
        policy = Policy(float(self.penalty), step, float(self.budget), _FORCED)
        inputs = self._input_certainty(X)
        rule_kernel.ask(outputs, inputs, codes, weights, errors, self._threshold, self._counts, policy, asked)
        self._take_judgement(weights, errors / asked.sum())
        return asked

    def _input_certainty(self, X: Floats) -> Floats:
        """The probability of the most likely class, by Bayes' rule over the rules of all members."""
        top, mass = np.full(len(X), -np.inf), np.zeros((len(X), len(self._classes)))
        for base in self._bases:
            base.add_class_masses(X, top, mass)
        certainty: Floats = mass.max(axis=1) / mass.sum(axis=1)
        return certainty

    def _prune(self, outputs: Floats, X: Floats) -> None:
        """Merge members by their outputs for all samples, labelled or not."""
        members = list(self._members)
        errors = np.array([member.error for member in members])
        for removed, _ in criteria.redundant_pairs(outputs, errors, self.merge_threshold):
            self._remove(members[removed], "member merged")

    @property
    def n_labels_used_(self) -> int:
        self._check_is_fitted()
        return int(self._counts[1])

    @property
    def label_share_(self) -> float:
        self._check_is_fitted()
        return self.n_labels_used_ / self.n_seen_
