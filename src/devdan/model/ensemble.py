"""An ensemble of evolving networks: each learns from its own resampling of the stream; predictions are averaged."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import check_random_state

from devdan.arrays import Floats, Words
from devdan.model import kernel, options, threads, weighing
from devdan.model.classes import Classes
from devdan.model.devdan import DEVDAN
from devdan.model.evolving import EvolvingClassifier
from devdan.model.kernel import DISCRIMINATIVE, GENERATIVE, Network
from devdan.model.state import EVENTS, new_state, resized, restarted, room_for, scratch_for, sizes_of, with_features

if TYPE_CHECKING:
    from typing_extensions import Self

_DEFAULT = DEVDAN()  # what the members are by default; nothing changes it
_GROWN_UP = 1000  # samples that every member must have seen before another may be replaced


class DEVDANEnsemble(EvolvingClassifier):
    """Ensemble of DEVDANs by online bagging, for data streams.

    Each member visits each sample as often as its own Poisson draw says, starts from its own random weights and finds
    its own structure. The ensemble predicts the mean of their probabilities. A member whose error signals a drift is
    replaced by a new one, unless another member is still young. It raises the same errors as a DEVDAN.

    Parameters
    ----------
    n : int, default=10
        Number of members.
    estimator : DEVDAN, default=None
        What the members are; ``None`` is a ``DEVDAN()``. It must have one layer and no initial weights.
    visits : float, default=2.0
        How often a member visits a sample, on average.
    n_jobs : int, default=-1
        Number of threads; -1 means one per core. The result does not depend on it.
    random_state : int, RandomState or None, default=None
        Seed of the model's own random generator. The same seed gives the same bits.

    Attributes
    ----------
    classes_, n_features_in_, feature_names_in_, encoding_ : as in DEVDAN.
    n_members_ : members.
    n_hidden_, n_parameters_ : current number of hidden units and parameters of all members.
    n_seen_ : samples seen so far.
    events_, n_events_ : the latest events of the members, including replacements, and their total number.
    growths_, prunings_, drifts_ : dict, their number in each phase, over all members.
    bias2_, variance_ : dict, the means over the members.

    Examples
    --------
    >>> from devdan import DEVDANEnsemble
    >>> from devdan.streams import sea
    >>> model = DEVDANEnsemble(n=5, random_state=1)
    >>> for X, y in sea(10_000):
    ...     model = model.partial_fit(X, y)
    >>> model.score(*next(iter(sea(1_000, chunk=1_000, seed=2)))) > 0.8
    True
    """

    _states: Floats  # (n, words): one row per network

    def __init__(
        self,
        n: int = 10,
        *,
        estimator: DEVDAN | None = None,
        visits: float = 2.0,
        n_jobs: int = -1,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n = n
        self.estimator = estimator
        self.visits = visits
        self.n_jobs = n_jobs
        self.random_state = random_state

    # --- Learning ------------------------------------------------------------------------------------------------

    @property
    def _member(self) -> DEVDAN:
        member = _DEFAULT if self.estimator is None else self.estimator
        if not isinstance(member, DEVDAN) or member.n_layers != 1 or member.initial_weights is not None:
            raise ValueError(f"estimator must be a DEVDAN of one layer without initial weights, got {member!r}")
        return member

    @property
    def scaling(self) -> Any:
        """The members'."""
        return self._member.scaling

    @property
    def _networks(self) -> list[Floats]:
        return list(self._states)

    def _first(self) -> Network:
        self._check_is_fitted()
        return Network(self._states[0])

    def _options(self) -> dict[str, Any]:
        return {**self._member._options(), "visits": self.visits, "n": self.n, "n_jobs": self.n_jobs}

    def _begin(self, classes: Classes, n_named: int) -> None:
        seeds = check_random_state(self.random_state).randint(np.iinfo(np.int64).max, size=self.n, dtype=np.int64)
        size = self._n_inputs, room_for(int(self._member.n_hidden)), max(len(classes), 2), EVENTS
        self._states = np.array([new_state(*size, int(seed)) for seed in seeds])

    def _check_networks(self, networks: list[Floats]) -> None:
        rooms = {(*sizes_of(state), Network(state).n_features) for state in networks}
        if len(networks) != self.n or len(rooms) != 1:
            raise ValueError("its members are inconsistent")

    def _take(self, networks: list[Floats]) -> None:
        self._states = np.array(networks)

    def _change_inputs(self, n_inputs: int, gone: list[int], n_new: int) -> None:
        self._states = np.array([with_features(state, n_inputs, gone, n_new) for state in self._states])

    def _make_room(self, n_classes: int) -> None:
        self._enlarge(classes=n_classes)

    def _enlarge(self, hidden: int = 0, classes: int = 0) -> None:
        self._states = np.array([resized(state, hidden=hidden, classes=classes) for state in self._states])

    def _visit(self, X: Floats, codes: Words, weights: Floats, first: int, last: int) -> None:
        self._count(len(X), first, last)
        before = self._n_drifts()
        self._learn_members(slice(0, len(self._states)), X, codes, weights, first, last)
        replaced = self._replace(np.flatnonzero(self._n_drifts() > before))
        if replaced is not None:
            self._learn_members(slice(replaced, replaced + 1), X, codes, weights, first, last)

    def _count(self, n_samples: int, first: int, last: int) -> None:
        """Labels are assumed to belong to earlier samples, as long as there are enough of those."""
        net = self._first()
        if last == DISCRIMINATIVE:
            net.n_labels_came += n_samples
        if first == GENERATIVE:
            net.n_came += n_samples
        net.n_came = max(net.n_came, net.n_labels_came)

    def _learn_members(self, members: slice, X: Floats, codes: Words, weights: Floats, first: int, last: int) -> None:
        """Let members visit the samples they draw from a chunk, the same in both phases; in threads if faster."""
        n_members = members.stop - members.start
        visits = np.empty((n_members, len(X)), np.int64)
        kernel.bag(self._states[members], last, visits)
        order, cuts = np.empty(visits.sum(), np.int64), np.zeros(n_members + 1, np.int64)
        kernel.line_up(visits, order, cuts)
        n_visits = np.diff(cuts)
        for phase in range(first, last + 1):
            if self._member.shuffle:
                kernel.shuffle_members(self._states[members], order, cuts)
            done = np.zeros(n_members, np.int64)

            def learn(part: slice, phase: int = phase, done: Words = done) -> None:
                states = self._states[members][part]
                own = cuts[part.start : part.stop + 1]
                kernel.learn_members(states, scratch_for(states[0]), X, codes, weights, order, own, done[part], phase)

            while True:
                self._spread(learn, n_members, len(order))
                if (done == n_visits).all():
                    break
                self._enlarge(hidden=2 * self._first().max_hidden)

    def _n_drifts(self) -> Words:
        """Number of real drifts that each member has signalled."""
        drifts: Words = Network.across(self._states, "n_drifts")[:, DISCRIMINATIVE].copy()
        return drifts

    def _replace(self, drifted: Words) -> int | None:
        """Replace a member that has just signalled a drift, unless another member is still too young."""
        if len(drifted) == 0 or min(net.n_seen for net in self._nets()) < _GROWN_UP * self.visits:
            return None
        member = int(drifted[0])
        self._states[member] = restarted(self._states[member])
        return member

    # --- Prediction ----------------------------------------------------------------------------------------------

    def _add_probabilities(self, X: Floats, out: Floats) -> None:
        def predict(part: slice) -> None:
            kernel.predict_members(self._states, scratch_for(self._states[0]), X[part], out[part])

        self._spread(predict, len(X), len(X) * len(self._states))

    def _spread(self, work: Callable[[slice], None], length: int, n_visits: int) -> None:
        """Process slices of a range in threads, or directly if that is faster."""
        n_parts = min(threads.n_threads(self.n_jobs, n_visits), length)
        bounds = np.linspace(0, length, n_parts + 1).astype(int).tolist()
        threads.run([partial(work, slice(*pair)) for pair in pairwise(bounds)], n_parts)

    # --- Fitted attributes ---------------------------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return "_states" in self.__dict__

    @property
    def n_members_(self) -> int:
        return len(self._nets())

    @property
    def n_seen_(self) -> int:
        return self._first().n_came

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        text: str = super().__repr__(N_CHAR_MAX)
        if not self.__sklearn_is_fitted__():
            return text
        return (
            f"<{text}: {self.n_features_in_} features, {self.n_members_} members with {self.n_hidden_} hidden units, "
            f"{len(self._classes)} classes after {self.n_seen_:,} samples>"
        )

    # --- Saving and loading --------------------------------------------------------------------------------------

    def _kept_options(self) -> dict[str, Any]:
        params = super()._kept_options()
        member = DEVDAN(**{name: value for name, value in self._chosen.items() if name in options.NAMES})
        return {**params, "estimator": weighing.to_pairs(member.get_params())}

    @classmethod
    def _of_kept_options(cls, params: dict[str, Any]) -> Self:
        return cls(**{**params, "estimator": DEVDAN(**weighing.of_pairs(params["estimator"]))})
