"""An ensemble of evolving networks at several time scales; predictions mix them by how well each did recently."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from devdan.model import options
from devdan.model.classifier import EvolvingClassifier
from devdan.model.devdan import DEVDAN
from devdan.model.scales import SCALES, Scale

if TYPE_CHECKING:
    from typing_extensions import Self

_DEFAULT = DEVDAN()  # what the members are by default; nothing changes it


@options.documented
class DEVDANEnsemble(EvolvingClassifier):
    """Ensemble of DEVDANs at several time scales, for data streams.

    One member learns from each sample once, and starts from one hidden unit. The others start from more, and with each
    label they replay some of the latest 10, 500, 1,000 or 5,000 labelled samples.
    All these opinions are mixed by their losses on recent labels, before these were learned: where only the moment
    counts, those who look far back count little, and the other way round. It raises the same errors as a DEVDAN.

    Parameters
    ----------
    {ensemble options}
    estimator : DEVDAN, default=None
        All else about the members; ``None`` is a ``DEVDAN()``. It must have no initial weights, and leave
        ``n_hidden`` and ``rehearse`` to the scales, and ``decide`` to the ensemble.
    random_state : int, RandomState or None, default=None
        Seed of the model's own random generator. The same seed gives the same bits.

    Attributes
    ----------
    classes_, n_features_in_, feature_names_in_, encoding_ : as in DEVDAN.
    n_members_ : members.
    network_weights_ : the weight of each member in the next prediction.
    n_hidden_, n_parameters_ : current number of hidden units and parameters of all members.
    n_seen_, n_taught_ : samples seen, and labels learned, so far.
    events_, n_events_ : the latest events of the members and their total number.
    growths_, prunings_, drifts_ : dict, their number in each phase, over all members.
    bias2_, variance_ : dict, the means over the members.
    importances_, units_ : as in DEVDAN, of all members.

    Examples
    --------
    >>> from devdan import DEVDANEnsemble
    >>> from devdan.streams import sea
    >>> model = DEVDANEnsemble(random_state=1)
    >>> for X, y in sea(10_000):
    ...     model = model.partial_fit(X, y)
    >>> model.score(*next(iter(sea(1_000, chunk=1_000, seed=2)))) > 0.8
    True
    """

    def __init__(
        self,
        scales: Sequence[Sequence[int]] | None = None,
        *,
        estimator: DEVDAN | None = None,
        n_jobs: int = -1,
        decide: str | Mapping[Any, Any] = "likeliest",
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.scales = scales
        self.estimator = estimator
        self.n_jobs = n_jobs
        self.decide = decide
        self.random_state = random_state

    # --- Learning ------------------------------------------------------------------------------------------------

    @property
    def _member(self) -> DEVDAN:
        member = _DEFAULT if self.estimator is None else self.estimator
        if not isinstance(member, DEVDAN) or member.initial_weights is not None:
            raise ValueError(f"estimator must be a DEVDAN without initial weights, got {member!r}")
        for name in ("n_hidden", "rehearse"):
            if getattr(member, name) not in (options.OPTIONS[name].default, 0):
                raise ValueError(f"estimator must leave {name} to the scales, got {member!r}")
        options.check_leaves_decision("the ensemble", member)
        return member

    def _scales(self) -> Sequence[Scale]:
        return SCALES if self.scales is None else [Scale(*map(int, numbers)) for numbers in self.scales]

    @property
    def scaling(self) -> Any:
        """The members'."""
        return self._member.scaling

    def _options(self) -> dict[str, Any]:
        return {**self._member._options(), "scales": self.scales, "n_jobs": self.n_jobs, "decide": self.decide}

    # --- Fitted attributes ---------------------------------------------------------------------------------------

    @property
    def n_members_(self) -> int:
        return len(self._fitted().networks)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        text: str = super().__repr__(N_CHAR_MAX)
        if not self.__sklearn_is_fitted__():
            return text
        return (
            f"<{text}: {self.n_features_in_} features, {self.n_members_} members with {self.n_hidden_} hidden units, "
            f"{len(self._classes)} classes after {self.n_seen_:,} samples>"
        )

    # --- Saving and loading --------------------------------------------------------------------------------------

    def kept_options(self) -> dict[str, Any]:
        chosen = self.mixture_.options
        member = DEVDAN(**{name: value for name, value in chosen.items() if name in options.NAMES and name != "decide"})
        return {**super().kept_options(), "estimator": member.get_params()}

    @classmethod
    def of_kept_options(cls, params: dict[str, Any]) -> Self:
        return super().of_kept_options({**params, "estimator": DEVDAN.of_kept_options(params["estimator"])})
