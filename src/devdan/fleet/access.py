"""What a fleet can be asked for: its keys, their models, figures about each, and what all have in common."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from devdan.arrays import Words
from devdan.encoding.encoding import Encoding
from devdan.fleet import exchange
from devdan.fleet import keys as labels
from devdan.fleet.keys import Key
from devdan.fleet.networks import Networks
from devdan.fleet.shared import Shared
from devdan.fleet.slots import words_of
from devdan.fleet.store import FIGURES
from devdan.model.classes import Classes
from devdan.model.devdan import DEVDAN

if TYPE_CHECKING:
    import pyarrow as pa


class FleetAccess(BaseEstimator):  # type: ignore[misc]
    """A fleet as something to look into."""

    _lock: threading.RLock
    _shared: Shared
    _networks: Networks
    _n_rows: int
    _key_name: str | None
    _example: Key  # one of the keys, which says of which kind they are
    max_in_memory: int | None

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
            return exchange.model_of(self._shared, kept)

    def __delitem__(self, key: Any) -> None:
        """Forget a key."""
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

    def counters(self, keys: Sequence[Key], names: Sequence[str]) -> Words:
        """Counters of the networks of some keys, by their names in the kernel, a row for each; those of unknown are 0.

        The networks come into memory for that, as when they predict.
        """
        with self._lock:
            n_words = sum(len(words_of(name)) for name in names)
            found = np.zeros((len(keys), n_words), np.int64)
            if self.__sklearn_is_fitted__() and len(keys) > 0:
                slots = self._networks.bring(keys, self.max_in_memory)
                found[slots >= 0] = self._networks.slots.words(slots[slots >= 0], *names)
            return found

    # --- Fitted attributes ---------------------------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return "_networks" in self.__dict__

    def _check_is_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError("This DEVDANFleet has not seen a sample yet: call partial_fit or observe first")

    @property
    def classes_(self) -> npt.NDArray[Any]:
        self._check_is_fitted()
        if len(self._shared.classes) == 0:
            raise NotFittedError("This DEVDANFleet has not been taught a label yet: call partial_fit or teach first")
        return self._shared.classes.labels

    @property
    def n_features_in_(self) -> int:
        self._check_is_fitted()
        return int(self._shared.n_features_in_)

    @property
    def feature_names_in_(self) -> npt.NDArray[Any]:
        self._check_is_fitted()
        names: npt.NDArray[Any] = self._shared.feature_names_in_
        return names

    @property
    def encoding_(self) -> Encoding:
        """What became of each column: its kind, its values, or why it was left out."""
        self._check_is_fitted()
        return self._shared.encoding_

    @property
    def _classes(self) -> Classes:
        return self._shared.classes

    @property
    def _encoding(self) -> Encoding | None:
        return self._shared._encoding

    @property
    def n_rows_(self) -> int:
        self._check_is_fitted()
        return self._n_rows

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
    def prior_(self) -> DEVDAN:
        self._check_is_fitted()
        if not self._shared.is_prior:
            raise AttributeError("this fleet has no prior")
        return exchange.prior_of(self._shared)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        text: str = super().__repr__(N_CHAR_MAX)
        if not self.__sklearn_is_fitted__():
            return text
        return f"<{text}: {len(self):,} keys, {self.n_features_in_} features after {self._n_rows:,} rows>"
