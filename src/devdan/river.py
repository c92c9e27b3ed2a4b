"""DEVDAN behind River's face: samples are dicts, features and classes come and go, and one sample is a chunk."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

try:
    from river import base
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("devdan.river needs River: pip install 'devdan[river]'", name=error.name) from error
from sklearn.utils import check_random_state

from devdan import kernel, options
from devdan.classifier import DEVDAN, EVENTS, room_for
from devdan.kernel import GENERATIVE, Floats, Words

if TYPE_CHECKING:
    import pandas as pd

_FIRST = np.zeros(1, np.int64)  # the order in which one sample is visited
_NONE = np.empty(0)  # the state before the first sample


class DEVDANClassifier(base.MiniBatchClassifier):  # type: ignore[misc]
    """Evolving denoising autoencoder with a softmax layer, for data streams.

    Each sample is predicted and learned by itself: the generative phase, then the discriminative one. A feature that
    was never seen before gains an input, one that is missing, or NaN, is left out. :meth:`learn_unlabeled_one` learns
    from a sample whose label has not come.

    Parameters
    ----------
    n_hidden
        Hidden units to start from.
    masking
        Share of the features that the generative phase masks.
    scaling
        How features are scaled, online: "standard", "minmax", or None for features in [0, 1].
    generative, grow, prune
        Switches for the generative phase, for growing and for pruning.
    generative_learning_rate
        Step size of the generative phase.
    learning_rate
        Step size of the discriminative phase.
    averaging
        Decay of the averages of the weights; 0 leaves them out.
    seed
        Seed of the model's own generator.

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
        self.seed = seed
        chosen = {name: value for name, value in self._get_params().items() if name != "seed"}
        self._settings = {**DEVDAN()._options(), **chosen, "shuffle": False}
        options.check(self._settings)
        self._columns: dict[Any, int] = {}  # of the features
        self._codes: dict[Any, int] = {}  # of the classes, in the order of their appearance
        self._label = _FIRST.copy()  # of the sample that is learned
        self._state = _NONE

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"seed": 1}
        yield {"scaling": "minmax", "averaging": 0.0, "seed": 2}

    @property
    def _multiclass(self) -> bool:
        return True

    # --- Learning ------------------------------------------------------------------------------------------------

    def learn_one(self, x: dict[Any, Any], y: Any) -> None:
        row = self._new_row(x)
        self._label[0] = self._code(y)
        self._learn_rows(row, self._label, _FIRST)

    def learn_unlabeled_one(self, x: dict[Any, Any]) -> None:
        """Learn from a sample without a label: the generative phase."""
        row = self._new_row(x)
        while kernel.learn(self._state, self._scratch, row, self._label, _FIRST, 0, GENERATIVE, GENERATIVE) == 0:
            self._enlarge(hidden=2 * int(self._header()[kernel.MAX_HIDDEN]))

    def learn_many(self, X: pd.DataFrame, y: pd.Series) -> None:
        """Learn from the rows one by one: what comes out is what :meth:`learn_one` would have made of them."""
        if len(X) != len(y):
            raise ValueError(f"X and y must have the same number of samples, got {len(X)} and {len(y)}")
        if len(X) == 0:
            return
        self._welcome(X.columns)
        rows, labels = self._table(X), y.tolist()
        start = 0
        while start < len(X):  # a class that is new must find room before its first sample is learned
            self._code(labels[start])
            stop = next((t for t in range(start, len(X)) if labels[t] not in self._codes), len(X))
            codes = np.array([self._codes[label] for label in labels[start:stop]], np.int64)
            self._learn_rows(rows[start:stop], codes, np.arange(stop - start))
            start = stop

    def _learn_rows(self, rows: Floats, codes: Words, order: Words) -> None:
        done = 0
        while True:
            done = kernel.learn_each(self._state, self._scratch, rows, codes, order, done)
            if done == len(order):
                return
            self._enlarge(hidden=2 * int(self._header()[kernel.MAX_HIDDEN]))

    # --- Using ---------------------------------------------------------------------------------------------------

    def predict_proba_one(self, x: dict[Any, Any], **kwargs: Any) -> dict[Any, float]:
        if not self._codes:
            return {}
        out = np.zeros((1, len(self._codes)))
        kernel.predict_proba(self._state, self._scratch, self._filled(x), out, 1.0)
        return dict(zip(self._codes, out[0].tolist(), strict=True))

    def predict_proba_many(self, X: pd.DataFrame) -> pd.DataFrame:
        import pandas as pd  # noqa: PLC0415 (only with frames)

        out = np.zeros((len(X), len(self._codes)))
        if self._codes and len(X) > 0:
            kernel.predict_proba(self._state, self._scratch, self._table(X), out, 1.0)
        return pd.DataFrame(out, index=X.index, columns=list(self._codes))

    def predict_many(self, X: pd.DataFrame) -> pd.Series:
        import pandas as pd  # noqa: PLC0415

        labels = list(self._codes)
        if not labels:
            return pd.Series([None] * len(X), index=X.index, dtype=object)
        return pd.Series([labels[k] for k in self.predict_proba_many(X).to_numpy().argmax(axis=1)], index=X.index)

    # --- Features and classes ------------------------------------------------------------------------------------

    def _new_row(self, x: dict[Any, Any]) -> Floats:
        """A sample as the kernel takes it, whose features are all known from now on."""
        if len(self._state) == 0 or not x.keys() <= self._columns.keys():
            self._welcome(x)
        return self._filled(x)

    def _filled(self, x: dict[Any, Any]) -> Floats:
        """The row with a sample's features, as far as they are known."""
        row, columns, name = self._row, self._columns, None
        row.fill(np.nan)
        try:
            for name, value in x.items():
                if name in columns:
                    row[0, columns[name]] = value
        except (TypeError, ValueError) as error:
            raise ValueError(f"x[{name!r}] must be a number, got {x[name]!r}; encode it first") from error
        return self._finite(row)

    def _finite(self, row: Floats) -> Floats:
        if np.isinf(row).any():
            raise ValueError("x contains infinity; a missing value is NaN or left out, other values must be finite")
        return row

    def _table(self, X: pd.DataFrame) -> Floats:
        """Rows as the kernel takes them; columns that are not known are left out."""
        rows = np.full((len(X), len(self._row[0])), np.nan)
        for place, name in enumerate(X.columns):
            if name in self._columns:
                rows[:, self._columns[name]] = X.iloc[:, place].to_numpy(dtype=np.float64, na_value=np.nan)
        return self._finite(rows)

    def _welcome(self, names: Any) -> None:
        """Give each feature that is new a column; in the order of their names, since that of a dict means nothing."""
        new = sorted(
            (name for name in names if name not in self._columns), key=lambda name: (str(type(name)), repr(name))
        )
        if len(self._state) == 0:
            seed = check_random_state(self.seed).randint(np.iinfo(np.int64).max, dtype=np.int64)
            self._hold(kernel.new_state(max(len(new), 1), room_for(int(self.n_hidden)), 2, EVENTS, int(seed)))
            kernel.views(self._state).settings[:] = options.settings(self._settings)
        for name in new:
            if len(self._columns) == self._header()[kernel.N_FEATURES]:
                self._hold(kernel.add_feature(self._state))
            self._columns[name] = len(self._columns)

    def _code(self, y: Any) -> int:
        """The output of a class, for which there is room."""
        code = self._codes.setdefault(y, len(self._codes))
        if code >= self._header()[kernel.MAX_CLASSES]:
            self._enlarge(classes=2 * code)
        return code

    def _enlarge(self, hidden: int = 0, classes: int = 0) -> None:
        n, r, m, _ = self._header()[: kernel.MAX_EVENTS + 1].tolist()
        self._hold(kernel.resized(self._state, n, max(r, hidden), max(m, classes)))

    def _hold(self, state: Floats) -> None:
        """Keep a state, and scratch space and a row of its size."""
        self._state, self._scratch = state, kernel.scratch_for(state)
        self._row = np.full((1, state[: kernel.HEADER].view(np.int64)[kernel.MAX_FEATURES]), np.nan)

    def _header(self) -> Words:
        header: Words = self._state[: kernel.HEADER].view(np.int64)
        return header
