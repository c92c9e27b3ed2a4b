"""The scikit-learn side of every model: from tables and arrays to inputs, from labels to outputs."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import date, time
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import Tags
from sklearn.utils.validation import _num_samples, validate_data

from devdan.arrays import Floats, Integers, all_writable
from devdan.encoding.encoding import Encoding, EncodingWarning, Instructions
from devdan.encoding.rows import Rows
from devdan.encoding.tables import are_dicts, as_rows, in_order, is_table, rows_of
from devdan.model.classes import NO_WEIGHTS, Classes, check_labels, check_sample_weight, partly_labelled

_UNLABELLED = np.empty(0, np.int64)
_PLAIN = "?bBhHiIlLqQefd"  # number types that NumPy converts to float64 directly


class Chunk(NamedTuple):
    """Rows to learn from, checked, and what is new with them."""

    X: Floats  # inputs
    codes: Integers = _UNLABELLED  # the output of each label; none without labels
    weights: Floats = NO_WEIGHTS  # of the rows; none if all have weight 1
    classes: Classes = Classes()
    n_named: int = 0  # classes known, where some were named in advance
    encoding: Encoding | None = None  # with what the chunk has taught it


class PartlyLabelled(NamedTuple):
    """Rows of which some have no label, and those that have one: arguments for ``partial_fit``, in two steps."""

    X: Any
    known: npt.NDArray[np.bool_]  # which rows have a label
    labels: npt.NDArray[Any]  # of these
    weights: Floats | None  # of all rows, if there are any

    @property
    def labelled(self) -> tuple[Any, npt.NDArray[Any]]:
        """The rows with a label, and their labels."""
        return self.X[self.known], self.labels

    @property
    def labelled_weights(self) -> Floats | None:
        return None if self.weights is None else self.weights[self.known]


class TableEstimator(BaseEstimator, ABC):  # type: ignore[misc]
    """An estimator whose rows are tables or arrays of numbers, and may be of new classes at any time."""

    scaling: Any
    _encoding: Encoding | None = None  # of tables; none for plain arrays of numbers
    _warned_of: Collection[str] = frozenset()  # columns whose values were not of the kind that was learned
    _classes: Classes
    _ways_to_start = "partial_fit, observe or fit"

    # --- Implemented by subclasses -------------------------------------------------------------------------------

    @property
    @abstractmethod
    def _scaling_in_use(self) -> Any:
        """The scaling in use, even if the option was changed since."""

    @abstractmethod
    def check_options(self) -> None:
        """Raise a ``ValueError`` that names the first option out of its range."""

    @abstractmethod
    def __sklearn_is_fitted__(self) -> bool: ...

    @abstractmethod
    def _instructions(self) -> Instructions:
        """What the user says about columns."""

    # --- Shared --------------------------------------------------------------------------------------------------

    @contextmanager
    def _unharmed(self) -> Iterator[None]:
        """Leave the model unchanged if the input is invalid."""
        before = self.__dict__.copy()
        try:
            yield
        except BaseException:
            self.__dict__ = before
            raise

    def check_columns(self, names: Sequence[str]) -> None:
        """Raise a ``ValueError`` if an option names a column that is not among these."""
        self._instructions().check(names)

    # --- Chunks --------------------------------------------------------------------------------------------------

    def _checked(self, X: Any, y: Any, classes: Any, taught: bool, sample_weight: Any, afresh: bool) -> Chunk | None:
        """The rows as the networks take them, ``taught`` with their labels; None if all of their weights are zero."""
        weights, kept = NO_WEIGHTS, None
        if sample_weight is not None:
            weights = check_sample_weight(sample_weight, _num_samples(X))
            kept = weights > 0.0
            y, weights = self._labels(y, len(weights))[kept] if taught else y, weights[kept]
            if afresh and len(weights) == 0:
                raise ValueError("sample_weight must be greater than zero for at least one sample to start from")
            if len(weights) == 0:
                return None
        inputs, encoding = self._learned_inputs(X, reset=afresh, kept=kept)
        known, n_named, codes = Classes() if afresh else self._classes, 0, _UNLABELLED
        if taught:
            codes, known, n_named = self._encoded(y, len(inputs), classes, known)
        elif classes is not None:
            known, n_named = self._with_named(classes, known)
        return Chunk(inputs, codes, weights, known, n_named, encoding)

    # --- Inputs --------------------------------------------------------------------------------------------------

    @property
    def encoding_(self) -> Encoding:
        """What became of each column: its kind, its values, or why it was left out."""
        self._check_is_fitted()
        if self._encoding is not None:
            return self._encoding
        names = getattr(self, "feature_names_in_", [f"x{k}" for k in range(self.n_features_in_)])
        return Encoding.of_numbers([str(name) for name in names])

    def column_records(self) -> list[dict[str, Any]]:
        """What became of each column, for JSON, pages and consoles; nothing for a model that has seen no table."""
        fitted = self.__sklearn_is_fitted__()
        return self._encoding.records() if fitted and self._encoding is not None else []

    def kinds_of_columns(self) -> dict[str, str]:
        """The kind of each column, by its name; nothing for a model that has seen no table."""
        known = self._encoding if self.__sklearn_is_fitted__() else None
        return {} if known is None else {str(name): column.kind for name, column in known.columns.items()}

    @property
    def _n_inputs(self) -> int:
        return int(self.n_features_in_) if self._encoding is None else len(self._encoding)

    def encode(self, X: npt.ArrayLike) -> Floats:
        """The inputs of the network for a table; for an array of numbers, these numbers. NaN means missing."""
        self._check_is_fitted()
        return self._inputs(X)

    def _learned_inputs(self, X: Any, reset: bool, kept: Any = None) -> tuple[Floats, Encoding | None]:
        """The inputs to learn from, and the encoding with what is new in them; ``kept`` are the rows that count."""
        if not self._is_plain(X, reset):
            X = self._as_table(X, reset)
            if is_table(X) if reset else self._encoding is not None:
                rows = self._rows(X, reset)
                rows = rows if kept is None else rows[kept]
                before = Encoding(instructions=self._instructions()) if reset or not self._encoding else self._encoding
                inputs, encoding = before.learned(rows)
                if len(encoding) == 0:
                    raise ValueError(f"no column of X gives an input:\n{encoding}")
                for note in before.new_notes(encoding):
                    warnings.warn(note, EncodingWarning, stacklevel=5)
                return self._finished(inputs, reset, encoding), encoding
            X = self._validated(X, reset)
        return self._finished(X if kept is None else X[kept], reset, None), None

    def _inputs(self, X: Any) -> Floats:
        """The inputs to predict from; almost free for a plain array of the right form."""
        if not self._is_plain(X, reset=False):
            X = self._as_table(X, reset=False)
            if self._encoding is not None:
                rows = self._rows(X, reset=False)
                self._warn_of_other_kinds(rows)
                return self._finished(self._encoding.applied(rows), False, self._encoding)
            X = self._validated(X, reset=False)
        return self._finished(X, False, None)

    def _encoding_without(self, X: Any, columns: Sequence[str]) -> Encoding | None:
        """The encoding without the texts of these rows in some columns; None if there is no encoding."""
        known = self._encoding
        return None if known is None else known.without(self._rows(self._as_table(X, False), False), columns)

    def _as_table(self, X: Any, reset: bool) -> Any:
        """A list as an array, or as a table if there is text in it; dicts as a table, their keys in any order."""
        X = as_rows(X)
        if isinstance(X, np.ndarray) and X.dtype.names is not None:  # scikit-learn would not count its columns
            return rows_of(X)
        if are_dicts(X):
            rows = rows_of(X)
            if reset or self._encoding is None:
                return rows
            self._check_histories(rows.names)
            return self._known_columns(rows)
        if isinstance(X, (list, tuple)) and len(X) > 0:
            cells = [cell for row in X if isinstance(row, (list, tuple)) for cell in row]
            if any(isinstance(cell, (str, date, time)) for cell in cells):
                return rows_of(X)
        return np.asarray(X) if type(X) is list else X

    def _known_columns(self, rows: Rows) -> Rows:
        """Rows of dicts with the columns that are known, in their order; of others, it warns once.

        If a known one is absent as well, the others stay, to be refused: a name may be misspelt.
        """
        assert self._encoding is not None
        known = list(self._encoding.columns)
        others = [name for name in rows.names if name not in self._encoding.columns]
        is_complete = set(known) <= set(rows.names)
        rows = in_order(rows, known)
        if not others or not is_complete:
            return rows
        if not set(others) <= set(self._warned_of):
            self._warned_of = {*self._warned_of, *others}
            listed = ", ".join(others[:20])
            warnings.warn(f"columns that the model does not know are ignored: {listed}", EncodingWarning, stacklevel=6)
        return rows.select(range(len(known)))

    def _warn_of_other_kinds(self, rows: Rows) -> None:
        """Warn once of each column whose values are not of the kind that was learned."""
        assert self._encoding is not None
        for name, said in self._encoding.unlike(rows).items():
            if name not in self._warned_of:
                self._warned_of = {*self._warned_of, name}
                warnings.warn(said, EncodingWarning, stacklevel=5)

    def _is_plain(self, X: Any, reset: bool) -> bool:
        """Whether nothing has to be checked or converted."""
        plain = type(X) is np.ndarray and X.dtype.char in _PLAIN and X.ndim == 2 and len(X) > 0 and not reset
        plain = plain and self._encoding is None and X.shape[1] == self.n_features_in_
        return plain and "feature_names_in_" not in self.__dict__

    def _rows(self, X: Any, reset: bool) -> Rows:
        """A table, whose columns are checked by scikit-learn's rules."""
        known = None if reset or self._encoding is None else list(self._encoding.columns)
        named = not isinstance(X, np.ndarray) and not isinstance(X, list)
        if is_table(X):
            rows = rows_of(X, known if known is not None and np.shape(X)[1:] == (len(known),) else None)
            if known is not None:
                self._check_histories(rows.names)
        else:  # numbers for a model that knows columns by name: they are taken in order
            X = self._validated(X, reset)
            rows, named = Rows(known or [], X), False
        if min(rows.shape) == 0:
            kind = "sample" if len(rows) == 0 else "feature"
            raise ValueError(f"Found array with 0 {kind}(s) (shape={rows.shape}) while a minimum of 1 is required.")
        if reset or not named or list(rows.names) != known:
            if isinstance(X, Rows):  # in a form in which scikit-learn finds the names
                import pyarrow as pa  # noqa: PLC0415 (slow to import)

                X = pa.table(dict.fromkeys(X.names, pa.nulls(0)))
            validate_data(self, X, reset=reset, skip_check_array=True)
        if reset:
            self._instructions().check(rows.names)
        return rows

    def _check_histories(self, names: Sequence[str]) -> None:
        """Raise a ``ValueError`` if columns lack the histories with which the model has learned; by default, none."""

    def _finished(self, X: Floats, reset: bool, encoding: Encoding | None) -> Floats:
        """The inputs in the form that the kernel needs."""
        # To Numba, a read-only array is another type, for which the kernel would be compiled again.
        checked: Floats = np.require(X, np.float64, ["C", "W"])
        if np.isinf(checked).any():
            raise ValueError("Input X contains infinity; a missing value is NaN, other values must be finite")
        scaling = self.scaling if reset else self._scaling_in_use
        if scaling is None and not getattr(self, "_warned", False) and ((X < 0).any() or (X > 1).any()):
            self._warned = True
            warnings.warn(
                "X has values outside [0, 1], which are clipped: scaling=None is for data in [0, 1]; "
                "use scaling='standard' or 'minmax' for this stream",
                stacklevel=5,
            )
        return checked

    def _validated(self, X: Any, reset: bool) -> npt.NDArray[Any]:
        """``X`` as a plain array of numbers, by scikit-learn's rules; masked values become missing."""
        if isinstance(X, np.ma.MaskedArray):
            X = np.ma.filled(X.astype(np.float64), np.nan)
        if not reset and is_table(X):
            rows = rows_of(X)
            for place, column in rows.others.items():
                value = next(filter(None, column.objects()), None)
                raise ValueError(
                    f"X must hold numbers, as it did when learning began, got {value!r} in the column "
                    f"{rows.names[place]!r}; begin with a table that has text in it to have it encoded"
                )
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
    def _encoded(cls, y: Any, n_samples: int, named: Any, known: Classes) -> tuple[Integers, Classes, int]:
        """The labels as outputs, the classes including new ones, and how many were named in advance."""
        y, n_named = cls._labels(y, n_samples), 0
        if named is not None:
            known, n_named = cls._with_named(named, known)
        codes, known = known.encode(y)
        return codes, known, n_named

    @staticmethod
    def _with_named(named: Any, known: Classes) -> tuple[Classes, int]:
        """The classes including those named in advance, and how many there are."""
        named = np.unique(check_labels(named))
        if len(named) == 0:
            raise ValueError("classes must name at least one class, got none")
        _, known = known.encode(named)
        return known, len(known)

    def _partly_labelled(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> PartlyLabelled | None:
        """Rows and labels, if some of these are missing; raises an error if those that are there cannot be learned.

        So all of them can be observed before some are taught, which then raises no error any more.
        """
        partly = partly_labelled(y)
        if partly is None:
            return None
        filled, known = partly
        X = self._as_table(X, reset=not self.__sklearn_is_fitted__())
        X = rows_of(X) if is_table(X) else np.asarray(X)
        if len(known) != len(X):
            raise ValueError(f"X and y must have the same number of samples, got {len(X)} and {len(known)}")
        weights = None if sample_weight is None else check_sample_weight(sample_weight, len(known))
        labels = filled[known]
        if len(labels) > 0:
            self._encoded(labels, len(labels), classes, self._classes if self.__sklearn_is_fitted__() else Classes())
        return PartlyLabelled(X, known, labels, weights)

    def _check_is_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            name = type(self).__name__
            raise NotFittedError(f"This {name} has not seen a sample yet: call {self._ways_to_start} first")

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(all_writable(state))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        return tags


class StreamClassifier(ClassifierMixin, TableEstimator):  # type: ignore[misc]
    """A classifier that learns from a stream, chunk by chunk, and may meet new classes at any time."""

    @property
    @abstractmethod
    def classes_(self) -> npt.NDArray[Any]:
        """The classes seen so far, sorted."""

    @abstractmethod
    def predict_proba(self, X: npt.ArrayLike) -> Floats:
        """The probability of each class in ``classes_``, one row per sample."""

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """The class that each sample is called."""
        return self.decided(self.predict_proba(X))

    def decided(self, probabilities: Floats) -> npt.NDArray[Any]:
        """What samples are called that have these probabilities of the classes, as :meth:`predict` decides."""
        labels: npt.NDArray[Any] = self.classes_[probabilities.argmax(axis=1)]
        return labels
