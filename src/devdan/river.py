"""River adapter for DEVDAN: samples are dicts, features and classes may come and go, and each sample is a chunk."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

try:
    from river import base
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("devdan.river needs River: pip install 'devdan[river]'", name=error.name) from error

from devdan.arrays import Floats
from devdan.model.online import OnlineNetwork, finite
from devdan.model.state import Event
from devdan.model.weighing import NO_WEIGHTS, check_sample_weight

if TYPE_CHECKING:
    import pandas as pd

_DICTS = (dict, Mapping)  # in this order: the check for dict is the fastest


class DEVDANClassifier(base.MiniBatchClassifier):  # type: ignore[misc]
    """Evolving denoising autoencoder with a softmax layer, for data streams.

    Each sample is predicted and learned from on its own: the generative phase, then the discriminative phase. A new
    feature adds an input; a feature that is missing or NaN is left out. :meth:`learn_unlabeled_one` learns from a
    sample without a label. Invalid samples or labels raise a ``ValueError`` or a ``TypeError`` and leave the model
    unchanged.

    Parameters
    ----------
    n_hidden : int, default=1
        Initial number of hidden units.
    masking : float in [0, 1), default=0.1
        Share of the features that the generative phase masks (at least one feature); 0 gives a plain autoencoder.
    scaling : {"standard", "minmax", None}, default="standard"
        How features are scaled, learned online from the samples seen so far; ``None`` is for data in [0, 1].
    generative : bool, default=True
        Whether unlabelled samples train the autoencoder: the generative phase.
    grow : bool, default=True
        Whether hidden units are added.
    prune : bool, default=True
        Whether hidden units are removed.
    generative_learning_rate : float in [0, 1], default=0.0003
        Step size of the generative phase.
    learning_rate : float in [0, 1], default=0.04
        Step size of the discriminative phase.
    averaging : float in [0, 1), default=0.998
        Decay, per labelled sample, of the exponential averages of the weights. Predictions mix the current and the
        averaged weights by how well each did recently; 0 turns averaging off.
    class_weight : {"balanced", None} or dict, default=None
        Weights of the classes in the loss of the discriminative phase. ``"balanced"`` weighs a class by how rare it was
        among the latest 10,000 labels or so; a dict gives weights by class, 1 if a class is not in it.
    seed : int or None, default=None
        Seed of the model's own random generator.

    Examples
    --------
    >>> from devdan.river import DEVDANClassifier
    >>> from river import datasets, evaluate, metrics
    >>> model = DEVDANClassifier(seed=1)
    >>> evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy()).get() > 0.88
    True
    """

    def __init__(
        self,
        n_hidden: int = 1,
        masking: float = 0.1,
        scaling: str | None = "standard",
        generative: bool = True,
        grow: bool = True,
        prune: bool = True,
        generative_learning_rate: float = 0.0003,
        learning_rate: float = 0.04,
        averaging: float = 0.998,
        class_weight: str | dict[Any, float] | None = None,
        seed: int | None = None,
    ) -> None:
        self.n_hidden = n_hidden
        self.masking = masking
        self.scaling = scaling
        self.generative = generative
        self.grow = grow
        self.prune = prune
        self.generative_learning_rate = generative_learning_rate
        self.learning_rate = learning_rate
        self.averaging = averaging
        self.class_weight = class_weight
        self.seed = seed
        self._network = OnlineNetwork(**{k: value for k, value in self._get_params().items() if k != "seed"})
        self._columns: dict[Any, int] = {}  # of the features
        self._codes: dict[Any, int] = {}  # of the classes, in order of appearance

    def __setstate__(self, attributes: dict[str, Any]) -> None:
        """What an earlier version has pickled does not know of class weights."""
        self.__dict__.update({"class_weight": None, **attributes})

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"seed": 1}
        yield {"scaling": "minmax", "averaging": 0.0, "seed": 2}

    @property
    def _multiclass(self) -> bool:
        return True

    # --- Learning ------------------------------------------------------------------------------------------------

    def learn_one(self, x: dict[Any, Any], y: Any, w: float = 1.0) -> None:
        """Learn from a sample, whose loss is multiplied by ``w`` in both phases; with 0 it is left out."""
        self._check_label(y)
        weights = NO_WEIGHTS
        if w != 1.0:
            weights = check_sample_weight([w], 1, "w")
            if weights[0] == 0.0:
                return
        row = self._new_row(x)
        self._network.learn(row, self._code(y), weights)

    def learn_unlabeled_one(self, x: dict[Any, Any]) -> None:
        """Learn from a sample without a label: the generative phase."""
        self._network.observe(self._new_row(x))

    def learn_many(self, X: pd.DataFrame, y: pd.Series, w: float | pd.Series = 1.0) -> None:
        """Learn from the rows one by one, with the same result as :meth:`learn_one`; ``w`` may be a number for all."""
        _check_frame(X)
        if len(X) != len(y):
            raise ValueError(f"X and y must have the same number of samples, got {len(X)} and {len(y)}")
        labels = y.tolist() if hasattr(y, "tolist") else list(y)
        for label in set(labels):
            self._check_label(label)
        weights = NO_WEIGHTS
        if not (np.ndim(w) == 0 and w == 1.0):
            weights = check_sample_weight(np.full(len(X), w) if np.ndim(w) == 0 else w, len(X), "w")
            X, labels = X[weights > 0.0], [label for label, weight in zip(labels, weights, strict=True) if weight > 0.0]
            weights = weights[weights > 0.0]
        if len(X) == 0:
            return
        columns = _columns(X, X.columns)
        self._welcome(columns)
        codes = np.array([self._code(label) for label in labels], np.int64)
        self._network.learn_rows(self._table(columns, len(X)), codes, weights)

    # --- Prediction ----------------------------------------------------------------------------------------------

    def predict_proba_one(self, x: dict[Any, Any], **kwargs: Any) -> dict[Any, float]:
        if not self._codes:
            return {}
        out = self._network.predict_proba(_filled(self._network.row, self._columns, x), len(self._codes))
        return dict(zip(self._codes, out[0].tolist(), strict=True))

    def predict_proba_many(self, X: pd.DataFrame) -> pd.DataFrame:
        import pandas as pd  # noqa: PLC0415 (only with frames)

        _check_frame(X)
        if not self._codes or len(X) == 0:
            out = np.zeros((len(X), len(self._codes)))
        else:
            out = self._network.predict_proba(self._table(_columns(X, self._columns), len(X)), len(self._codes))
        return pd.DataFrame(out, index=X.index, columns=list(self._codes))

    def predict_many(self, X: pd.DataFrame) -> pd.Series:
        import pandas as pd  # noqa: PLC0415

        _check_frame(X)
        labels = list(self._codes)
        if not labels:
            return pd.Series([None] * len(X), index=X.index, dtype=object)
        return pd.Series([labels[k] for k in self.predict_proba_many(X).to_numpy().argmax(axis=1)], index=X.index)

    # --- Events and drifts ---------------------------------------------------------------------------------------

    @property
    def drift_detected(self) -> bool:
        """Whether the latest learned sample, or any sample of the latest frame, signalled a drift."""
        return self._network.drift is not None

    @property
    def drift(self) -> str | None:
        """The kind of drift: "real" if the labels of the same inputs have changed, "virtual" if the inputs have."""
        return self._network.drift

    @property
    def events_(self) -> list[Event]:
        """The latest growths, prunings and drifts, at most 1,000."""
        return self._network.events

    # --- Features and classes ------------------------------------------------------------------------------------

    def _new_row(self, x: dict[Any, Any]) -> Floats:
        """The sample in the form that the kernel needs; its new features are added."""
        _check_dict(x)
        if len(self._network.state) == 0 or not x.keys() <= self._columns.keys():
            _filled(np.empty((1, len(x))), {name: k for k, name in enumerate(x)}, x)  # may fail, so it comes first
            self._welcome(x)
        return _filled(self._network.row, self._columns, x)

    def _table(self, columns: dict[Any, Floats], n_samples: int) -> Floats:
        """Rows in the form that the kernel needs."""
        rows = np.full((n_samples, self._network.row.shape[1]), np.nan)
        for name, values in columns.items():
            rows[:, self._columns[name]] = values
        return rows

    def _welcome(self, names: Iterable[Any]) -> None:
        """Give each new feature a column, in order of their names, since the order of a dict means nothing."""
        new = sorted(
            (name for name in names if name not in self._columns), key=lambda name: (str(type(name)), repr(name))
        )
        for name in new:
            if name != name:  # noqa: PLR0124 (NaN would be a new feature each time)
                raise ValueError(f"a feature name must be equal to itself, got {name!r}")
        if len(self._network.state) == 0:
            self._network.begin(max(len(new), 1), self.seed)
        for name in new:
            if len(self._columns) == self._network.net.n_features:
                self._network.add_feature()
            self._columns[name] = len(self._columns)

    def _check_label(self, y: Any) -> None:
        if y not in self._codes and y != y:  # noqa: PLR0124 (NaN would be a new class each time)
            raise ValueError(f"y must be a label, got {y!r}; use learn_unlabeled_one for samples without a label")

    def _code(self, y: Any) -> int:
        """The output of a class; makes room if needed."""
        code = self._codes.get(y)
        if code is None:
            code = self._codes[y] = len(self._codes)
            self._network.add_class(code, y)
        return code


# --- Samples as numbers ------------------------------------------------------------------------------------------


def _filled(row: Floats, columns: dict[Any, int], x: dict[Any, Any]) -> Floats:
    """The row with the sample's known features."""
    _check_dict(x)
    name = None
    row.fill(np.nan)
    try:
        for name, value in x.items():
            if name in columns:
                row[0, columns[name]] = value
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"x[{name!r}] must be a number, got {x[name]!r}; encode it first") from error
    return finite(row)


def _columns(X: pd.DataFrame, wanted: Container[Any]) -> dict[Any, Floats]:
    """The selected columns of a frame."""
    columns = {}
    for place, name in enumerate(X.columns):
        if name in wanted:
            column = X.iloc[:, place]
            try:
                if column.dtype.kind in "cMm":
                    raise TypeError(f"its type is {column.dtype}")
                columns[name] = finite(column.to_numpy(dtype=np.float64, na_value=np.nan))
            except (TypeError, OverflowError) as error:
                raise ValueError(f"X[{name!r}] must hold numbers: {error}; encode them first") from error
    return columns


def _check_dict(x: Any) -> None:
    if not isinstance(x, _DICTS):
        raise TypeError(f"x must be a dict of features, got {type(x).__name__}")


def _check_frame(X: Any) -> None:
    if not hasattr(X, "iloc"):
        raise TypeError(f"X must be a pandas DataFrame, got {type(X).__name__}; learn_one and predict_one take dicts")
