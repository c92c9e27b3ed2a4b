"""pENsemble+: asks for the labels it needs, and merges redundant members."""

from __future__ import annotations

from typing import Any

import numpy as np

from devdan.arrays import Floats, Words
from devdan.baselines import rulekernel
from devdan.baselines.merging import merged
from devdan.baselines.pclass import PClass
from devdan.baselines.pensemble import PENsemble
from devdan.baselines.rulekernel import Policy
from devdan.model.options import is_real, require

_FORCED = 6  # samples at the start of a chunk whose labels are always used, like that of the last sample
_STEP = 0.01  # of the dynamic threshold


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
    >>> from devdan.baselines import PENsemblePlus
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

    def _visit(self, X: Floats, codes: Words) -> None:
        if not self._members:
            self._counts += len(X)  # in the first chunk, all
        super()._visit(X, codes)

    def _judge(self, answers: Floats, X: Floats, codes: Words) -> Any:
        """Step 3, using only the labels that are asked for; returns which."""
        weights, errors = self.weights_, np.zeros(len(self._members))
        asked = np.zeros(len(X), np.bool_)
        step = _STEP if self.dynamic_threshold else 0.0
        policy = Policy(float(self.penalty), step, float(self.budget), _FORCED)
        inputs = self._input_certainty(X)
        rulekernel.ask(answers, inputs, codes, weights, errors, self._threshold, self._counts, policy, asked)
        self._take_judgement(weights, errors / asked.sum())
        return asked

    def _input_certainty(self, X: Floats) -> Floats:
        """The probability of the most likely class, by Bayes' rule over the rules of all members."""
        top, mass = np.full(len(X), -np.inf), np.zeros((len(X), len(self._classes)))
        for base in self._bases:
            base.add_class_masses(X, top, mass)
        certainty: Floats = mass.max(axis=1) / mass.sum(axis=1)
        return certainty

    def _prune(self, answers: Floats, X: Floats) -> None:
        """Merge members by their outputs for all samples, labelled or not."""
        members = list(self._members)
        errors = np.array([member.error for member in members])
        for goes, _ in merged(answers, errors, self.merge_threshold):
            self._remove(members[goes], "member merged")

    @property
    def n_labels_used_(self) -> int:
        self._check_is_fitted()
        return int(self._counts[1])

    @property
    def label_share_(self) -> float:
        self._check_is_fitted()
        return self.n_labels_used_ / self.n_seen_
