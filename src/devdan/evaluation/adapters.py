"""Adapters that give every kind of model the methods that the evaluation needs: DEVDAN, scikit-learn's, River's."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, is_classifier
from sklearn.exceptions import NotFittedError

from devdan.arrays import Floats, Integers
from devdan.encoding.encoding import OrdinalCodes
from devdan.encoding.rows import Rows
from devdan.evaluation.record import KeyCount, KindChange, Phases
from devdan.fleet import keys as labels
from devdan.fleet.fleet import DEVDANFleet
from devdan.fleet.keys import Key
from devdan.kernel.state import Event
from devdan.model.classifier import EvolvingClassifier
from devdan.model.estimator import StreamClassifier

_EXPLAINED = 50  # recent samples from which importances are computed
_LEAST_APART, _APART = 500, 8  # samples from one computation to the next: at least, and as a part of those so far
Labelled = tuple[Any, npt.NDArray[Any]]  # samples, as an array or Rows, and their labels


class Probabilities(NamedTuple):
    """Probabilities, one row per sample, and the classes that the columns are for, if the model says."""

    values: Floats
    classes: npt.NDArray[Any] | None


class Predicted(NamedTuple):
    """Predictions of a chunk; None if the model has learned nothing yet or does not say."""

    labels: npt.NDArray[Any] | None = None  # single labels may be None
    probabilities: Probabilities | None = None  # where they come with the labels


class ModelAdapter(Protocol):
    """What the evaluation needs from a model; None means unknown so far, or that the model has no such thing."""

    @property
    def asks_again(self) -> bool:
        """Whether it is cheap to ask for probabilities that :meth:`predict` does not return."""

    def predict(self, X: npt.NDArray[Any]) -> Predicted:
        """Predicted labels, and their probabilities if these cost nothing extra."""

    def predict_proba(self, X: npt.NDArray[Any]) -> Probabilities | None:
        """The probabilities of all classes."""

    def learn(self, X: npt.NDArray[Any], taught: Labelled | None, whole: bool) -> int:
        """Learn from a chunk and the labels that have arrived; ``whole``: these are exactly the chunk's labels.

        Returns how many labels were used.
        """

    def structure(self) -> dict[str, Any]:
        """The model's part of a record."""


def check_model(model: Any, wants_probabilities: bool = False) -> None:
    """Raise a ``ValueError`` unless the model is a classifier that learns from streams."""
    is_river = hasattr(model, "learn_one")
    if is_river:
        fits = hasattr(model, "predict_one") and hasattr(model, "predict_proba_one")
    else:
        fits = hasattr(model, "partial_fit") and hasattr(model, "predict")
        fits = fits and (not isinstance(model, BaseEstimator) or is_classifier(model))
    if not fits:
        raise ValueError(
            "a model must be a classifier with partial_fit and predict (like scikit-learn's) or with learn_one and "
            f"predict_proba_one (like River's), got {type(model).__name__}"
        )
    if wants_probabilities and not is_river and not hasattr(model, "predict_proba"):
        raise ValueError(f"the label policy 'uncertain' needs a model with predict_proba, got {model}")


def takes_two_classes(model: Any) -> bool:
    """Whether it is a binary River classifier, which knows only the classes False and True."""
    return hasattr(model, "learn_one") and not getattr(model, "_multiclass", True)


def one_against_the_rest(model: Any) -> Any:
    """Wrap a binary River classifier as one-vs-rest."""
    from river.multiclass import OneVsRestClassifier  # noqa: PLC0415 (an optional extra)

    return OneVsRestClassifier(model)


def adapted(
    model: Any, classes: Sequence[Any] | None = None, feature_names: Sequence[str] | None = None
) -> ModelAdapter:
    """The model with its adapter. ``classes`` are for scikit-learn classifiers that must know them in advance."""
    if isinstance(model, EvolvingClassifier):
        return _DevdanAdapter(model)
    if isinstance(model, StreamClassifier):
        return _RulesAdapter(model, classes)
    if hasattr(model, "learn_one"):
        return _RiverAdapter(model, feature_names)
    return _IncrementalAdapter(model, classes)


def _learned(step: Callable[..., object], X: Any, taught: Labelled | None, whole: bool) -> int:
    """Let a model learn that takes samples without labels, too; ``step`` is called with a verb and what it is about."""
    if taught is not None and whole:
        step("partial_fit", *taught)
    else:
        step("observe", X)
        if taught is not None:
            step("teach", *taught)
    return 0 if taught is None else len(taught[1])


class _DevdanAdapter:
    """DEVDAN or its ensemble, which also learn from unlabelled samples."""

    asks_again = False

    def __init__(self, model: EvolvingClassifier) -> None:
        self.model = model
        self._due = 0  # the number of samples from which on importances are asked for again
        self._n_events: list[int] = []
        self._changes: dict[tuple[str, str], int] = {}
        self._kinds = model.kinds_of_columns()
        if model.__sklearn_is_fitted__():
            self._changes, self._n_events = self._counted(), model.mixture_.n_events

    def predict(self, X: npt.NDArray[Any]) -> Predicted:
        return _most_probable(self.model, X)

    def predict_proba(self, X: npt.NDArray[Any]) -> Probabilities | None:
        return self.predict(X).probabilities

    def learn(self, X: npt.NDArray[Any], taught: Labelled | None, whole: bool) -> int:
        return _learned(lambda verb, *samples: getattr(self.model, verb)(*samples), X, taught, whole)

    def forget(self, X: npt.NDArray[Any], y: npt.NDArray[Any]) -> None:
        """Take labels back that were taught before."""
        self.model.forget(X, y)

    def structure(self) -> dict[str, Any]:
        model = self.model
        n_before, self._n_events = self._n_events, model.mixture_.n_events
        new, events = dict.fromkeys(self._changes, 0), tuple[Event, ...]()
        if self._n_events != n_before:
            before, self._changes = self._changes, self._counted()
            new = {change: n - before.get(change, 0) for change, n in self._changes.items()}
            events = tuple(sorted(model.mixture_.events_after(n_before)))  # in the order of their samples
        return {
            "n_hidden": model.n_hidden_,
            "n_parameters": model.n_parameters_,
            "n_members": getattr(model, "n_members_", None),
            "n_replaying": sum(net.n_hidden for net in model.mixture_.nets) - model.n_hidden_ or None,
            "growths": Phases(*(new["growth", phase] for phase in Phases._fields)),
            "prunings": Phases(*(new["pruning", phase] for phase in Phases._fields)),
            "drifts": Phases(*(new["drift", phase] for phase in Phases._fields)),
            "bias2": _begun(model.bias2_),
            "variance": _begun(model.variance_),
            "events": events,
            "kind_changes": self._kind_changes(),
            "importances": self._importances(),
        }

    def _kind_changes(self) -> tuple[KindChange, ...]:
        """The columns that are of another kind than before the chunk."""
        before, self._kinds = self._kinds, self.model.kinds_of_columns()
        changed = [(name, kind) for name, kind in self._kinds.items() if before.get(name, "") not in ("", kind)]
        return tuple(KindChange(self.model.n_seen_, name, before[name], kind) for name, kind in changed)

    def _importances(self) -> tuple[float, ...] | None:
        """The importances of the columns, if they are due: about 75 times in a run of ten million samples.

        All of them together take at most as many predictions as there are samples.
        """
        model, n_seen = self.model, self.model.n_seen_
        if n_seen < self._due:
            return None
        try:
            found = model.importances(_EXPLAINED)
        except NotFittedError:
            return None
        self._due = n_seen + max(_LEAST_APART, n_seen // _APART, _EXPLAINED * (len(found) + 1))
        return tuple(round(share, 4) for share in found.tolist())

    def _counted(self) -> dict[tuple[str, str], int]:
        """The number of structural changes and drifts so far, by kind and phase."""
        model = self.model
        counts = (("growth", model.growths_), ("pruning", model.prunings_), ("drift", model.drifts_))
        return {(kind, phase): n for kind, phases in counts for phase, n in phases.items()}


def _most_probable(model: StreamClassifier, X: npt.NDArray[Any]) -> Predicted:
    """The most probable labels and all probabilities, for the price of one prediction."""
    try:
        probabilities = Probabilities(model.predict_proba(X), model.classes_)
    except NotFittedError:
        return Predicted()
    if type(model).predict is not StreamClassifier.predict:  # a subclass
        return Predicted(model.predict(X), probabilities)
    return Predicted(model.decided(probabilities.values), probabilities)


def _begun(means: dict[str, float]) -> Phases:
    """Replace 0, the mean of a phase that has not started, by None."""
    return Phases(**{phase: mean or None for phase, mean in means.items()})


_NO_STRUCTURE = dict.fromkeys(
    (
        *("n_hidden", "n_parameters", "n_members", "growths", "prunings", "drifts", "bias2", "variance"),
        *("events", "kind_changes", "importances"),
    )
)


class _IncrementalAdapter:
    """Anything with partial_fit and predict."""

    def __init__(self, model: Any, classes: Sequence[Any] | None) -> None:
        self.model = model
        self._classes = None if classes is None else np.sort(np.asarray(classes))
        self._started = False
        self._codes = OrdinalCodes()

    @property
    def asks_again(self) -> bool:
        """scikit-learn's models predict whole chunks at once; others, such as MOA's forests, may be slow."""
        return isinstance(self.model, BaseEstimator) and hasattr(self.model, "predict_proba")

    def taken(self, X: Any) -> Any:
        """Samples as the model takes them: models of other libraries need numbers."""
        return self._codes.numbers(X) if isinstance(X, Rows) else X

    def predict(self, X: npt.NDArray[Any]) -> Predicted:
        try:
            return Predicted(np.asarray(self.model.predict(self.taken(X))))
        except NotFittedError:
            return Predicted()

    def predict_proba(self, X: npt.NDArray[Any]) -> Probabilities | None:
        try:
            values = np.asarray(self.model.predict_proba(self.taken(X)))
        except NotFittedError:
            return None
        classes = getattr(self.model, "classes_", None)
        return Probabilities(values, None if classes is None else np.asarray(classes))

    def forget(self, X: npt.NDArray[Any], y: npt.NDArray[Any]) -> None:
        """Nothing is taken back from such a model: it learns both labels."""

    def learn(self, X: npt.NDArray[Any], taught: Labelled | None, whole: bool) -> int:
        if taught is None:
            return 0
        taught = self.taken(taught[0]), taught[1]
        if self._started:
            self.model.partial_fit(*taught)
        else:
            self._start(*taught)
        self._started = True
        return len(taught[1])

    def _start(self, X: npt.NDArray[Any], y: npt.NDArray[Any]) -> None:
        """Make the first call, with the classes if the model accepts them."""
        if self._classes is not None:
            try:
                self.model.partial_fit(X, y, classes=self._classes)
            except TypeError as error:
                if "classes" not in str(error):
                    raise
                self.model.partial_fit(X, y)
            return
        try:
            self.model.partial_fit(X, y)
        except ValueError as error:
            if "classes" not in str(error):
                raise
            raise ValueError(
                f"{type(self.model).__name__} must know the classes in advance: pass prequential(..., classes=[...])"
            ) from error

    def structure(self) -> dict[str, Any]:
        weights = [*getattr(self.model, "coefs_", []), *getattr(self.model, "intercepts_", [])]
        return _NO_STRUCTURE | ({"n_parameters": int(sum(array.size for array in weights))} if weights else {})


class _RulesAdapter(_IncrementalAdapter):
    """pClass and its ensembles, which take tables; rules are counted as hidden units."""

    def taken(self, X: Any) -> Any:
        return X

    def predict(self, X: npt.NDArray[Any]) -> Predicted:
        return _most_probable(self.model, X)

    def learn(self, X: npt.NDArray[Any], taught: Labelled | None, whole: bool) -> int:
        before = self.model.n_labels_used_ if self._started else 0
        super().learn(X, taught, whole)
        return self.model.n_labels_used_ - before if self._started else 0

    def structure(self) -> dict[str, Any]:
        if not self._started:
            return dict(_NO_STRUCTURE)
        model = self.model
        sizes = {"n_hidden": model.n_rules_, "n_parameters": model.n_parameters_, "n_members": model.n_members_}
        return _NO_STRUCTURE | sizes


class _RiverAdapter:
    """A River classifier, trained sample by sample."""

    asks_again = False

    def __init__(self, model: Any, feature_names: Sequence[str] | None) -> None:
        self.model = model
        self._names: list[Any] | None = None if feature_names is None else list(feature_names)
        self._is_binary = takes_two_classes(model)
        self._labels: list[Any] = []  # in order of appearance
        self._codes = OrdinalCodes()

    def _samples(self, X: Any) -> list[dict[Any, Any]]:
        if isinstance(X, Rows):
            if type(self.model).__module__ == "devdan.river":  # which encodes by itself
                return X.dicts()
            names, X = list(X.names), self._codes.numbers(X)
        else:
            names = self._names or list(range(X.shape[1]))
        rows = [dict(zip(names, row, strict=True)) for row in X.tolist()]
        if np.isnan(X).any():  # missing values are left out
            rows = [{name: value for name, value in row.items() if value == value} for row in rows]  # noqa: PLR0124
        return rows

    def _taken(self, label: Any) -> Any:
        if not self._is_binary:
            return label
        if label not in self._labels:
            if len(self._labels) == 2:
                raise ValueError(
                    f"{type(self.model).__name__} takes two classes, got a third one, {label!r}: wrap it in River's "
                    "multiclass.OneVsRestClassifier"
                )
            self._labels.append(label)
        return self._labels.index(label) == 1

    def predict(self, X: npt.NDArray[Any]) -> Predicted:
        probabilities = None
        if _predicts_by_probabilities(self.model):
            votes = [self.model.predict_proba_one(x) for x in self._samples(X)]
            decided = getattr(last_step(self.model), "decided", _likeliest)
            guesses, probabilities = [decided(vote) for vote in votes], self._table(votes)
        else:
            guesses = [self.model.predict_one(x) for x in self._samples(X)]
        if self._is_binary:
            guesses = [
                None if int(guess or 0) >= len(self._labels) else self._labels[int(guess or 0)] for guess in guesses
            ]
        return Predicted(np.array(guesses) if None not in guesses else np.array(guesses, dtype=object), probabilities)

    def predict_proba(self, X: npt.NDArray[Any]) -> Probabilities | None:
        return self._table([self.model.predict_proba_one(x) for x in self._samples(X)])

    def _table(self, votes: Sequence[Mapping[Any, float]]) -> Probabilities | None:
        """Votes as a table; of a binary model, only for classes that it has seen. None if there are no votes."""
        classes = list(dict.fromkeys(label for vote in votes for label in vote))
        if self._is_binary:
            classes = [label for label in (False, True) if int(label) < len(self._labels)]
        if not classes:
            return None
        values = np.array([[vote.get(label, 0.0) for label in classes] for vote in votes])
        names = [self._labels[int(label)] for label in classes] if self._is_binary else classes
        return Probabilities(values, np.asarray(names))

    def forget(self, X: npt.NDArray[Any], y: npt.NDArray[Any]) -> None:
        """Nothing is taken back from such a model: it learns both labels."""

    def learn(self, X: npt.NDArray[Any], taught: Labelled | None, whole: bool) -> int:
        if taught is None:
            return 0
        for x, y in zip(self._samples(taught[0]), taught[1].tolist(), strict=True):
            self.model.learn_one(x, self._taken(y))
        return len(taught[1])

    def structure(self) -> dict[str, Any]:
        return dict(_NO_STRUCTURE)


def _predicts_by_probabilities(model: Any) -> bool:
    """Whether its label follows from its probabilities: it is the likeliest, unless a classifier overrides that."""
    how = getattr(type(last_step(model)), "predict_one", None)
    return getattr(how, "__module__", None) in ("river.base.classifier", "devdan.river")


def last_step(model: Any) -> Any:
    """The last step of a pipeline, or the model itself."""
    steps = getattr(model, "steps", None)
    return [*steps.values()][-1] if isinstance(steps, Mapping) and steps else model


def _likeliest(vote: Mapping[Any, float]) -> Any:
    return max(vote, key=vote.__getitem__) if vote else None


# --- Fleets, whose keys are a column of each chunk ---------------------------------------------------------------

_COUNTERS = ("n_features", "n_classes", "n_hidden", "n_drifts", "n_changes")
_FEATURES, _CLASSES, _HIDDEN, _DRIFTS, _PRUNED, _GROWN = 0, 1, 2, slice(3, 5), slice(5, 9, 2), slice(6, 9, 2)
_AT_ONCE = 1000  # networks whose counters are read together


class FleetAdapter:
    """What the evaluation needs from a fleet; ``key`` is the column of the keys."""

    asks_again = False

    def __init__(self, fleet: DEVDANFleet, key: str) -> None:
        self.model, self._key = fleet, key
        self._sizes = np.zeros(2, np.int64)  # hidden units and parameters of all networks
        self._changes = np.zeros(6, np.int64)  # drifts, prunings and growths of the latest chunk, by phase
        self._drifted: dict[Key, Integers] = {}  # drifts of the latest chunk, by key
        names = iter(fleet)
        while part := list(islice(names, _AT_ONCE)):
            self._sizes += _sizes(fleet.counters(part, _COUNTERS))

    def predict(self, X: Any) -> Predicted:
        try:
            probabilities = self.model.predict_proba(self._key, X)
        except NotFittedError:
            return Predicted()
        return Predicted(self.model.decided(probabilities), Probabilities(probabilities, self.model.classes_))

    def predict_proba(self, X: Any) -> Probabilities | None:
        return self.predict(X).probabilities

    def learn(self, X: Any, taught: Labelled | None, whole: bool) -> int:
        self._changes[:], self._drifted = 0, {}
        return _learned(self._step, X, taught, whole)

    def forget(self, X: Any, y: npt.NDArray[Any]) -> None:
        """Take labels back that were taught before."""
        self.model.forget(self._key, X, y)

    def _step(self, verb: str, X: Any, *y: Any) -> None:
        """Let networks learn, and add up what has changed."""
        keys = list(dict.fromkeys(self._keys_of(X)))
        before = self.model.counters(keys, _COUNTERS)
        getattr(self.model, verb)(self._key, X, *y)
        after = self.model.counters(keys, _COUNTERS)
        self._sizes += _sizes(after) - _sizes(before)
        new = after - before
        self._changes += new[:, _DRIFTS.start :].sum(axis=0)
        for row in np.flatnonzero(new[:, _DRIFTS].any(axis=1)).tolist():
            self._drifted[keys[row]] = self._drifted.get(keys[row], 0) + new[row, _DRIFTS]

    def _keys_of(self, X: Any) -> list[Key]:
        keys, rows = labels.split(self._key, X)
        return labels.checked(keys, len(rows))

    def by_key(self, X: Any, scored: npt.NDArray[np.bool_], right: npt.NDArray[np.bool_]) -> tuple[KeyCount, ...]:
        """The counts of each key in the chunk that was learned last."""
        counts: dict[Key, list[int]] = defaultdict(lambda: [0, 0, 0])
        given: Sequence[Key] = self._keys_of(X)
        for (key, is_scored, is_right), n in Counter(zip(given, scored.tolist(), right.tolist(), strict=True)).items():
            own = counts[key]
            own[0] += n
            own[1] += n * is_scored
            own[2] += n * (is_scored and is_right)
        for key in self._drifted:
            counts[key]  # a key without rows in this chunk, whose labels came late
        none = np.zeros(2, np.int64)
        return tuple(KeyCount(key, *own, *self._drifted.get(key, none).tolist()) for key, own in counts.items())

    def structure(self) -> dict[str, Any]:
        n_hidden, n_parameters = self._sizes.tolist()
        changes = np.concatenate([np.zeros(_DRIFTS.start, np.int64), self._changes])
        return {
            "n_hidden": n_hidden,
            "n_parameters": n_parameters,
            "n_members": None,
            "growths": Phases(*changes[_GROWN].tolist()),
            "prunings": Phases(*changes[_PRUNED].tolist()),
            "drifts": Phases(*changes[_DRIFTS].tolist()),
            "bias2": None,
            "variance": None,
        }


def _sizes(counters: Integers) -> Integers:
    """Hidden units and parameters, as in DEVDAN, of these networks together."""
    n, m, r = (counters[:, place] for place in (_FEATURES, _CLASSES, _HIDDEN))
    return np.array([r.sum(), (r * (n + 1) + m * (r + 1)).sum()])
