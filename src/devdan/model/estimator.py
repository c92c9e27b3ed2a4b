"""The scikit-learn interface shared by all classifiers: input checks and the mapping from classes to outputs."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import Tags
from sklearn.utils.validation import validate_data

from devdan.arrays import Floats, Words, all_writable
from devdan.model import notice  # noqa: F401 (importing it arms it)
from devdan.model.classes import Classes, check_labels

_PLAIN = "?bBhHiIlLqQefd"  # number types that NumPy converts to float64 directly


class StreamClassifier(ClassifierMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """A classifier that learns from a stream, chunk by chunk, and may meet new classes at any time."""

    scaling: Any
    _takes_nan = True
    _ways_to_start = "partial_fit, observe or fit"

    # --- Implemented by subclasses -------------------------------------------------------------------------------

    @property
    @abstractmethod
    def classes_(self) -> npt.NDArray[Any]:
        """The classes seen so far, sorted."""

    @property
    @abstractmethod
    def _scaling_in_use(self) -> Any:
        """The scaling in use, even if the option was changed since."""

    @abstractmethod
    def check_options(self) -> None:
        """Raise a ``ValueError`` that names the first option out of its range."""

    @abstractmethod
    def predict_proba(self, X: npt.ArrayLike) -> Floats:
        """The probability of each class in ``classes_``, one row per sample."""

    @abstractmethod
    def __sklearn_is_fitted__(self) -> bool: ...

    # --- Shared by all classifiers -------------------------------------------------------------------------------

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """The most probable class of each sample."""
        labels: npt.NDArray[Any] = self.classes_[self.predict_proba(X).argmax(axis=1)]
        return labels

    @contextmanager
    def _unharmed(self) -> Iterator[None]:
        """Leave the model unchanged if the input is invalid."""
        before = self.__dict__.copy()
        try:
            yield
        except BaseException:
            self.__dict__ = before
            raise

    def _checked(self, X: Any, reset: bool) -> Floats:
        """``X`` in the form that the kernel needs; almost free for a plain array of the right form."""
        if type(X) is list:
            X = np.asarray(X)
        plain = type(X) is np.ndarray and X.dtype.char in _PLAIN and X.ndim == 2 and len(X) > 0 and not reset
        plain = plain and X.shape[1] == self.n_features_in_ and "feature_names_in_" not in self.__dict__
        if not plain:
            X = self._validated(X, reset)
        # To Numba, a read-only array is another type, for which the kernel would be compiled again.
        checked: Floats = np.require(X, np.float64, ["C", "W"])
        if np.isinf(checked).any():
            raise ValueError("Input X contains infinity; a missing value is NaN, other values must be finite")
        if not self._takes_nan and np.isnan(checked).any():
            name = type(self).__name__
            raise ValueError(f"Input X contains NaN, which {name} does not support: impute it, e.g. with SimpleImputer")
        scaling = self.scaling if reset else self._scaling_in_use
        if scaling is None and not getattr(self, "_warned", False) and ((X < 0).any() or (X > 1).any()):
            self._warned = True
            warnings.warn(
                "X has values outside [0, 1], which are clipped: scaling=None is for data in [0, 1]; "
                "use scaling='standard' or 'minmax' for this stream",
                stacklevel=4,
            )
        return checked

    def _validated(self, X: Any, reset: bool) -> npt.NDArray[Any]:
        """``X`` as a plain array of numbers, by scikit-learn's rules; masked values become missing."""
        if isinstance(X, np.ma.MaskedArray):
            X = np.ma.filled(X.astype(np.float64), np.nan)
        if type(X) is np.ndarray and X.dtype.kind in "UST" and X.size > 0:
            raise ValueError(f"X must hold numbers, got text such as {X.flat[0]!r}; encode it first")
        try:
            X = validate_data(self, X, reset=reset, dtype="numeric", ensure_all_finite=False)
        except OverflowError as error:
            raise ValueError("X must hold numbers in the range of a float, got a larger one") from error
        if X.dtype.kind not in "fiub":
            raise ValueError(f"X must hold numbers, got {X.dtype}; encode it first")
        with np.errstate(over="ignore"):  # values too large for a float become infinity, which is rejected
            return np.asarray(X, dtype=np.float64)

    @staticmethod
    def _labels(y: Any, n_samples: int) -> npt.NDArray[Any]:
        """The labels as an array, one per sample."""
        labels = check_labels(y)
        if len(labels) != n_samples:
            raise ValueError(f"X and y must have the same number of samples, got {n_samples} and {len(labels)}")
        return labels

    @classmethod
    def _encoded(cls, y: Any, n_samples: int, named: Any, known: Classes) -> tuple[Words, Classes, int]:
        """The labels as outputs, the classes including new ones, and how many were named in advance."""
        y, n_named = cls._labels(y, n_samples), 0
        if named is not None:
            named = np.unique(check_labels(named))
            if len(named) == 0:
                raise ValueError("classes must name at least one class, got none")
            _, known = known.encode(named)
            n_named = len(known)
        codes, known = known.encode(y)
        return codes, known, n_named

    def _check_is_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            name = type(self).__name__
            raise NotFittedError(f"This {name} has not seen a sample yet: call {self._ways_to_start} first")

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(all_writable(state))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._takes_nan
        return tags
