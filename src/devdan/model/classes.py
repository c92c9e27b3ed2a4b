"""Labels: the known classes, the output that each has, and the weights of samples and classes in the loss."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from devdan.arrays import Floats

NO_WEIGHTS = np.empty(0)  # to the kernel: every sample has weight 1
LARGEST_WEIGHT = 1e6  # of a sample, or of a class in a dict, so that no step overflows
_WITHOUT_LABELS = "observe(X) learns from samples without labels, partial_fit from both"
_KINDS = {"b": "bool", "i": "number", "u": "number", "f": "number", "U": "text", "O": "text"}


class Classes:
    """The classes seen so far, sorted, with their outputs; outputs are assigned in order of appearance.

    Instances are immutable: :meth:`encode` returns a new one if it meets a new class.

    >>> codes, classes = Classes().encode(np.array(["rain", "dry", "rain"]))
    >>> codes, classes.labels, classes.outputs
    (array([0, 1, 0]), array(['dry', 'rain'], dtype='<U4'), array([1, 0]))
    """

    def __init__(self, labels: npt.NDArray[Any] | None = None, outputs: npt.NDArray[np.int64] | None = None) -> None:
        self.labels = np.empty(0, np.int64) if labels is None else labels
        self.labels.setflags(write=False)  # it is exposed to users
        self.outputs = np.empty(0, np.int64) if outputs is None else outputs

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def by_output(self) -> npt.NDArray[Any]:
        """The classes in the order of their outputs, which is that of their appearance."""
        return self.labels[np.argsort(self.outputs)]

    def encode(self, y: npt.NDArray[Any]) -> tuple[npt.NDArray[np.int64], Classes]:
        """The outputs for the labels ``y``, and the classes with those that are new."""
        if len(self) > 0:
            y = self._alike(y)
            place = np.searchsorted(self.labels, y)
            place[place == len(self)] = 0
            known = self.labels[place] == y
            if known.all():
                return self.outputs[place], self
            y_new = y[~known]
        else:
            y_new = y
        fresh, first = np.unique(y_new, return_index=True)
        labels = np.concatenate([self.labels, fresh]) if len(self) > 0 else fresh
        appearance = np.argsort(np.argsort(first))
        outputs = np.concatenate([self.outputs, len(self) + appearance])
        order = np.argsort(labels)
        grown = Classes(labels[order], outputs[order])
        return grown.encode(y)[0], grown

    def known_codes(self, y: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """The outputs for labels, all of which must be known."""
        codes, with_new = self.encode(y)
        unknown = np.setdiff1d(with_new.labels, self.labels)
        if len(unknown) > 0:
            raise ValueError(f"y must hold classes that were taught, got {unknown.tolist()[0]!r}")
        return codes

    def _alike(self, y: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """``y`` in a type that can be compared with the classes so far."""
        theirs, ours = _KINDS[y.dtype.kind], _KINDS[self.labels.dtype.kind]
        if theirs != ours:
            raise ValueError(
                f"y must hold labels of the type seen so far ({ours}, e.g. {self.labels[0]!r}), got {theirs}, "
                f"e.g. {y[0]!r}"
            )
        if y.dtype.kind == "f" and self.labels.dtype.kind in "iu":
            if (y != np.floor(y)).any():
                raise ValueError(f"labels must be integers like the classes so far, got {y[y != np.floor(y)][0]}")
            y = y.astype(np.int64)
        if ours == "number" and y.dtype.kind != self.labels.dtype.kind:  # they are compared as floats
            _check_size(y)
            _check_size(self.labels)
        return y


def _check_size(y: npt.NDArray[Any]) -> None:
    y = y.astype(np.float64) if y.dtype.kind == "f" else y  # a half float cannot represent such a number
    large = (y > 2**53) | (y < -(2**53))
    if large.any():
        raise ValueError(f"y holds numbers too large to be distinguished, such as {y[large][0]}")


def check_labels(y: Any) -> npt.NDArray[Any]:
    """``y`` as a one-dimensional array of labels; raises an error if it is not."""
    if y is None:
        raise ValueError(f"DEVDAN requires y to be passed, but the target y is None; {_WITHOUT_LABELS}")
    if type(y) is list:
        y = _as_array(y)
    if np.ma.is_masked(y):
        raise ValueError(f"Input y contains masked labels; {_WITHOUT_LABELS}")
    if type(y) is not np.ndarray or y.ndim != 1:
        y = column_or_1d(y, warn=True)
    kind = y.dtype.kind
    if kind == "f":
        if not np.isfinite(y).all():
            raise ValueError(f"Input y contains NaN or infinity; {_WITHOUT_LABELS}")
        if (y != np.floor(y)).any():
            check_classification_targets(y)
        _check_size(y)
        y = y.astype(np.float64) if y.dtype.itemsize > 8 else y
    elif kind == "u":
        y = y.astype(np.int64) if (y <= np.iinfo(np.int64).max).all() else y
    elif kind == "O":
        if is_missing(y).any():
            raise ValueError(f"Input y contains labels that are None or NaN; {_WITHOUT_LABELS}")
        if not all(isinstance(label, str) for label in y):
            try:
                y = np.asarray(y.tolist())
            except ValueError as error:
                raise ValueError("Unknown label type: y must hold labels of one type") from error
            if y.dtype.kind in "OU":
                raise ValueError("Unknown label type: y must hold labels of one type (numbers, text or bool)")
            return check_labels(y)
    elif kind not in _KINDS:
        raise ValueError(f"Unknown label type: y must hold numbers, text or bool, got dtype {y.dtype}")
    labels: npt.NDArray[Any] = y
    return labels


def _as_array(y: Any) -> npt.NDArray[Any]:
    """A list of labels as an array; NumPy would make texts of None and NaN beside texts, and floats of other numbers.

    >>> _as_array([True, np.nan, False])
    array([True, nan, False], dtype=object)
    """
    labels = np.asarray(y)
    if labels.dtype.kind == "U":
        is_mixed = not all(isinstance(label, str) for label in y)
    else:
        is_mixed = labels.dtype.kind == "f" and any(isinstance(label, (int, np.integer, np.bool_)) for label in y)
    return np.asarray(y, dtype=object) if is_mixed else labels


def is_missing(y: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Which labels are missing: NaN or None."""
    if y.dtype.kind == "f":
        return np.asarray(np.isnan(y))
    if y.dtype.kind == "O":
        return np.array([_is_nothing(label) for label in y], dtype=bool)
    return np.zeros(len(y), dtype=bool)


def _is_nothing(label: Any) -> bool:
    is_nan = isinstance(label, float) and bool(np.isnan(label))
    return label is None or is_nan or type(label).__name__ in ("NAType", "NaTType")


def split_missing(y: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
    """The labels without missing values (replaced by an arbitrary label), and which of them are known.

    >>> split_missing(np.array([2.0, np.nan]))
    (array([2, 0]), array([ True, False]))
    """
    missing = is_missing(y)
    if y.dtype.kind == "f":
        if np.isinf(y).any():
            raise ValueError("labels must be finite, got infinity")
        whole = np.where(missing, 0.0, y)
        return (whole.astype(np.int64) if (whole == np.floor(whole)).all() else whole), ~missing
    if y.dtype.kind == "O":
        kept = y[~missing].tolist()
        filling = kept[0] if kept else 0
        filled = [filling if absent else label for label, absent in zip(y.tolist(), missing.tolist(), strict=True)]
        return np.asarray(filled), ~missing
    return y, ~missing


def partly_labelled(y: Any) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]] | None:
    """What :func:`split_missing` makes of labels, if some are missing; None if all are there.

    >>> partly_labelled(["a", None])[1], partly_labelled([0, 1])
    (array([ True, False]), None)
    """
    if y is None or (isinstance(y, np.ndarray) and y.dtype.kind in "biuUS"):
        return None
    labels = _as_array(y) if type(y) in (list, tuple) else np.asarray(y)
    return split_missing(labels) if labels.ndim == 1 and is_missing(labels).any() else None


# --- Weights -----------------------------------------------------------------------------------------------------


def check_sample_weight(sample_weight: Any, n_samples: int, name: str = "sample_weight") -> Floats:
    """The weights as an array of their own; raises a ``ValueError`` unless there is a valid one for each sample.

    >>> check_sample_weight([1, 0.5], 2)
    array([1. , 0.5])
    """
    try:
        given = np.asarray(sample_weight)
        if given.dtype.kind not in "biufO":
            raise TypeError(f"their type is {given.dtype}")
        weights: Floats = np.array(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name} must hold numbers: {error}") from error
    if weights.shape != (n_samples,):
        raise ValueError(f"{name} must have one number per sample, {n_samples}, got shape {weights.shape}")
    wrong = ~((weights >= 0.0) & (weights <= LARGEST_WEIGHT))  # also NaN
    if wrong.any():
        raise ValueError(f"{name} must be in [0, {LARGEST_WEIGHT:,.0f}], got {weights[wrong][0]}")
    return weights


def weight_given(class_weight: Any, label: Any) -> float:
    """The weight of a class in the option's dict, 1 if it is not there; 0 if the option is no dict."""
    return float(class_weight.get(label, 1.0)) if isinstance(class_weight, dict) else 0.0


def weights_given(class_weight: Any, classes: Classes, room: int) -> Floats:
    """The weight of each output, of as many as there is room for, by the option ``class_weight``.

    >>> _, classes = Classes().encode(np.array(["rain", "dry"]))
    >>> weights_given({"dry": 0.5}, classes, 3)
    array([1. , 0.5, 0. ])
    """
    weights = np.zeros(room)
    if isinstance(class_weight, dict):
        weights[classes.outputs] = [weight_given(class_weight, label) for label in classes.labels.tolist()]
    return weights
