"""What a fleet can be asked for: its keys, their models, figures about each, and what all have in common."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import NotFittedError

from devdan.arrays import Floats, Integers
from devdan.encoding.encoding import Encoding
from devdan.fleet import keys as labels
from devdan.fleet.keys import Key
from devdan.fleet.network_store import FIGURES
from devdan.fleet.networks import Networks, columns_of
from devdan.fleet.shared import Shared, mixture_of, prior_of
from devdan.model.classes import Classes
from devdan.model.devdan import DEVDAN
from devdan.model.estimator import TableEstimator
from devdan.model.mixture import Mixture

if TYPE_CHECKING:
    import pyarrow as pa


def copy_columns(source: TableEstimator, target: TableEstimator) -> None:
    """Let an estimator know the columns of another."""
    for name in ("n_features_in_", "feature_names_in_", "_warned"):
        if name in source.__dict__:
            setattr(target, name, getattr(source, name))


class FleetAccess(TableEstimator):
    """A fleet as something to look into."""

    _lock: threading.RLock
    _shared: Shared
    _networks: Networks
    _n_rows: int
    _key_name: str | None
    _example: Key  # one of the keys, which says of which kind they are
    max_in_memory: int | None
    _ways_to_start = "partial_fit or observe"

    @property
    @abstractmethod
    def _member(self) -> DEVDAN:
        """What the networks are."""

    # --- Keys ----------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        """The number of keys."""
        return len(self._networks) if self.__sklearn_is_fitted__() else 0

    def __iter__(self) -> Iterator[Key]:
        """All keys, in no particular order."""
        with self._lock:
            return iter(self._networks if self.__sklearn_is_fitted__() else ())

    def __contains__(self, key: Any) -> bool:
        """Whether there is a network for the key."""
        with self._lock:
            (own,) = labels.checked([key], 1)
            return self.__sklearn_is_fitted__() and own in self._networks

    def __getitem__(self, key: Any) -> DEVDAN:
        """A copy of the key's network, as a model of its own."""
        with self._lock:
            (own,) = labels.checked([key], 1)
            kept = self._networks.get(own) if self.__sklearn_is_fitted__() else None
            if kept is None:
                raise KeyError(key)
            return self._as_model(mixture_of(self._shared, kept))

    def _as_model(self, mixture: Mixture) -> DEVDAN:
        """A model of this mixture, with the columns of the fleet."""
        model = self.kept_estimator()
        model.decide = mixture.options["decide"]
        model.mixture_ = mixture
        copy_columns(self, model)
        return model

    def kept_estimator(self) -> DEVDAN:
        """What the networks are, as they were last told; how to decide is the fleet's matter."""
        model = DEVDAN(**self._member.get_params(deep=False))
        model.set_params(**self._shared.mixture.options | {"decide": model.decide})
        return model

    def __delitem__(self, key: Any) -> None:
        with self._lock:
            if key not in self:
                raise KeyError(key)
            self._networks.remove(*labels.checked([key], 1))

    def summary(self) -> pa.Table:
        """A row for each key: samples and labels that it learned from, units, drifts, recent accuracy, last seen.

        ``accuracy`` is that of the latest 64 labelled rows, each predicted before it was learned from; those of the
        call with which the key came do not count. ``last_seen`` is what ``n_rows_`` was when the key last learned.
        """
        import pyarrow as pa  # noqa: PLC0415 (slow to import)

        with self._lock:
            self._check_is_fitted()
            slots = self._networks.slots.in_use()
            columns = self._networks.figures(slots)
            keys = [self._networks.slots.key(slot) for slot in slots.tolist()]
            for text, *figures in self._networks.figures_elsewhere():
                keys.append(labels.of_text(text))
                for name, value in zip(FIGURES, figures, strict=True):
                    columns[name].append(value)
            if any(isinstance(key, tuple) for key in keys):
                keys = list(map(labels.text_of, keys))
            elif any(isinstance(key, float) for key in keys):
                keys = list(map(float, keys))  # type: ignore[arg-type]
            types = {name: pa.float64() if name == "accuracy" else pa.int64() for name in FIGURES}
            table = {"key": pa.array(keys)} | {name: pa.array(columns[name], types[name]) for name in FIGURES}
            return pa.table(table)

    def fetch(self, keys: Sequence[Key]) -> None:
        """Bring those of some keys into memory that are in the store."""
        with self._lock:
            if self.__sklearn_is_fitted__() and len(keys) > 0:
                self._networks.bring(keys, self.max_in_memory)

    def not_in_memory(self, keys: Sequence[Key]) -> list[Key]:
        """Those of some keys that are in the store, or new."""
        with self._lock:
            known = self._networks.slots.index if self.__sklearn_is_fitted__() else {}
            return [key for key in dict.fromkeys(keys) if key not in known]

    def counters(self, keys: Sequence[Key], names: Sequence[str]) -> Integers:
        """Counters of the networks of some keys, by their names in the kernel, a row for each; those of unknown are 0.

        The networks come into memory for that, as when they predict.
        """
        with self._lock:
            n_words = sum(len(columns_of(name)) for name in names)
            found = np.zeros((len(keys), n_words), np.int64)
            if self.__sklearn_is_fitted__() and len(keys) > 0:
                slots = self._networks.bring(keys, self.max_in_memory)
                found[slots >= 0] = self._networks.slots.words(slots[slots >= 0], *names)
            return found

    def accuracies(self, keys: Sequence[Key]) -> Floats:
        """The ``accuracy`` of some keys, as :meth:`summary` has it; NaN where there is none."""
        with self._lock:
            found = np.full(len(keys), np.nan)
            if self.__sklearn_is_fitted__() and len(keys) > 0:
                slots = self._networks.bring(keys, self.max_in_memory)
                found[slots >= 0] = self._networks.slots.accuracies(slots[slots >= 0])
            return found

    # --- Fitted attributes ---------------------------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return "_networks" in self.__dict__

    @property
    def classes_(self) -> npt.NDArray[Any]:
        self._check_is_fitted()
        if len(self._shared.classes) == 0:
            raise NotFittedError("This DEVDANFleet has not been taught a label yet: call partial_fit or teach first")
        return self._shared.classes.labels

    @property
    def mixture_(self) -> Mixture:
        """What all keys share: classes, encoding, options, and the prior's network."""
        self._check_is_fitted()
        return self._shared.mixture

    @property
    def _encoding(self) -> Encoding | None:  # type: ignore[override]
        return self._shared.mixture.encoding

    @property
    def _scaling_in_use(self) -> Any:
        return self._shared.mixture.options["scaling"]

    @property
    def _classes(self) -> Classes:  # type: ignore[override]
        return self._shared.classes

    @property
    def n_rows_(self) -> int:
        self._check_is_fitted()
        return self._n_rows

    @property
    def n_taught_(self) -> int:
        self._check_is_fitted()
        return self._shared.n_taught

    @property
    def key_name_(self) -> str | None:
        self._check_is_fitted()
        return self._key_name

    @property
    def has_text_keys(self) -> bool:
        """Whether its keys are texts; they are all of one kind."""
        self._check_is_fitted()
        return labels.kind_of(self._example) == labels.TEXT

    @property
    def n_keys(self) -> int:
        """How many keys it has."""
        return len(self)

    @property
    def size_(self) -> tuple[int, str]:
        """How large it is, and of what that is the number."""
        return len(self), "keys"

    @property
    def common_(self) -> DEVDAN:
        """The model of all rows: the prior."""
        return self.prior_

    @property
    def prior_(self) -> DEVDAN:
        self._check_is_fitted()
        if not self._shared.is_prior:
            raise AttributeError("this fleet has no prior")
        return self._as_model(prior_of(self._shared))

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        text: str = super().__repr__(N_CHAR_MAX)
        if not self.__sklearn_is_fitted__():
            return text
        return f"<{text}: {len(self):,} keys, {self.n_features_in_} features after {self._n_rows:,} rows>"
