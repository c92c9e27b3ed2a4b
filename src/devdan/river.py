"""River adapter for DEVDAN: samples are dicts, features and classes may come and go, and each sample is a chunk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

try:
    from river import base
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("devdan.river needs River: pip install 'devdan[river]'", name=error.name) from error

from devdan.arrays import Floats
from devdan.encoding.encoding import Encoding
from devdan.encoding.rows import Rows
from devdan.encoding.tables import from_dicts, rows_of
from devdan.histories import histories
from devdan.kernel.state import Event
from devdan.model import options
from devdan.model.classes import NO_WEIGHTS, check_sample_weight
from devdan.model.notebook import EventList
from devdan.model.online import OnlineMixture, finite
from devdan.model.scales import SCALES

if TYPE_CHECKING:
    import pandas as pd
    from typing_extensions import Unpack

    from devdan.model.options import OnlineOptions

_DICTS = (dict, Mapping)  # in this order: the check for dict is the fastest


@options.documented
class DEVDANClassifier(base.MiniBatchClassifier):  # type: ignore[misc]
    """Evolving denoising autoencoder with a softmax layer, for data streams.

    Each sample is predicted and learned from on its own: the generative phase, then the discriminative phase. Features
    may be numbers, flags, texts (categories) or dates. A new feature or category adds an input; a feature that is
    missing, None or NaN is left out. :meth:`learn_unlabeled_one` learns from a
    sample without a label. Invalid samples or labels raise a ``ValueError`` or a ``TypeError`` and leave the model
    unchanged.

    Parameters
    ----------
    ensemble : bool, default=False
        Whether the networks are those of a ``DEVDANEnsemble``, which leaves out ``n_hidden`` and ``rehearse``: more
        accurate, but slower.
    seed : int or None, default=None
        Seed of the model's own random generator.
    {online options}

    Examples
    --------
    >>> from devdan.river import DEVDANClassifier
    >>> from river import datasets, evaluate, metrics
    >>> model = DEVDANClassifier(seed=1)
    >>> evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy()).get() > 0.88
    True
    """

    @options.takes_options
    def __init__(self, *, ensemble: bool = False, seed: int | None = None, **chosen: Unpack[OnlineOptions]) -> None:
        self.ensemble = ensemble
        self.seed = seed
        own = options.online(chosen)
        self.__dict__.update(own)
        self._online = OnlineMixture(SCALES if ensemble else None, **own)
        self._codes: dict[Any, int] = {}  # of the classes, in order of appearance

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"seed": 1}
        yield {"scaling": "minmax", "averaging": 0.0, "rehearse": 0, "seed": 2}
        yield {"ensemble": True, "seed": 3}

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
        self._online.learn(row, self._code(y), weights)

    def learn_unlabeled_one(self, x: dict[Any, Any]) -> None:
        """Learn from a sample without a label: the generative phase."""
        self._online.observe(self._new_row(x))

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
        rows = _rows(X)
        before = self._online.encoding
        after = before.learned(rows)[1]  # may fail, so it comes first
        if self._online.mixture is not None and after.order == before.order:
            inputs = self._online.new_inputs(rows, self.seed)
            codes = np.array([self._code(label) for label in labels], np.int64)
            self._online.learn_rows(inputs, codes, weights)
            return
        for k, label in enumerate(labels):  # inputs are added or removed between samples
            inputs = self._online.new_inputs(rows[k : k + 1], self.seed)
            self._online.learn(inputs, self._code(label), weights[k : k + 1])

    # --- Prediction ----------------------------------------------------------------------------------------------

    def predict_proba_one(self, x: dict[Any, Any], **kwargs: Any) -> dict[Any, float]:
        if not self._codes:
            return {}
        _check_dict(x)
        row = self._online.row
        if not self._online.single.fill(x, row):
            row = self._online.inputs(_row(x))
        out = self._online.predict(finite(row), len(self._codes))
        return dict(zip(self._codes, out[0].tolist(), strict=True))

    def predict_one(self, x: dict[Any, Any], **kwargs: Any) -> Any:
        return self.decided(self.predict_proba_one(x, **kwargs))

    def decided(self, vote: dict[Any, float]) -> Any:
        """The label of a sample with these probabilities, as :meth:`predict_one` decides; None before the first."""
        if not vote:
            return None
        labels = list(vote)
        return labels[self._online.decision.places(np.array([list(vote.values())]), labels).item()]

    def predict_proba_many(self, X: pd.DataFrame) -> pd.DataFrame:
        import pandas as pd  # noqa: PLC0415 (only with frames)

        _check_frame(X)
        if not self._codes or len(X) == 0:
            out = np.zeros((len(X), len(self._codes)))
        else:
            out = self._online.predict(self._online.inputs(_rows(X)), len(self._codes))
        return pd.DataFrame(out, index=X.index, columns=list(self._codes))

    def predict_many(self, X: pd.DataFrame) -> pd.Series:
        import pandas as pd  # noqa: PLC0415

        _check_frame(X)
        labels = list(self._codes)
        if not labels:
            return pd.Series([None] * len(X), index=X.index, dtype=object)
        places = self._online.decision.places(self.predict_proba_many(X).to_numpy(), labels)
        return pd.Series([labels[k] for k in places.tolist()], index=X.index)

    # --- Events and drifts ---------------------------------------------------------------------------------------

    @property
    def drift_detected(self) -> bool:
        """Whether the latest learned sample, or any sample of the latest frame, signalled a drift."""
        return self._online.drift is not None

    @property
    def drift(self) -> str | None:
        """The kind of drift: "real" if the labels of the same inputs have changed, "virtual" if the inputs have."""
        return self._online.drift

    @property
    def events_(self) -> EventList[Event]:
        """The latest growths, prunings and drifts, at most 1,000."""
        return EventList(self._online.events)

    # --- Features and classes ------------------------------------------------------------------------------------

    def _new_row(self, x: dict[Any, Any]) -> Floats:
        """The sample in the form that the kernel needs; inputs that it needs are added."""
        _check_dict(x)
        online = self._online
        if online.mixture is not None and online.single.settled and online.single.fill(x, online.row):
            return finite(online.row)
        return online.new_inputs(_row(x), self.seed)

    @property
    def encoding_(self) -> Encoding:
        """What became of each feature: its kind and values, or why it was left out."""
        return self._online.encoding

    def _check_label(self, y: Any) -> None:
        if y not in self._codes and y != y:  # noqa: PLR0124 (NaN would be a new class each time)
            raise ValueError(f"y must be a label, got {y!r}; use learn_unlabeled_one for samples without a label")

    def _code(self, y: Any) -> int:
        """The output of a class; makes room if needed."""
        code = self._codes.get(y)
        if code is None:
            code = self._codes[y] = len(self._codes)
            self._online.add_class(code, y)
        return code


class Histories(base.SupervisedTransformer, base.Transformer):  # type: ignore[misc]  # a pipeline knows only the latter
    """What a customer, a card or a machine did before, in front of any River model: ``devdan.Histories`` for dicts.

    A row comes when it is first transformed, which is when it is predicted. Until its label is learned, it keeps the
    histories that it came with, by which it is recognised as the same dict or as an equal one. Whether an equal dict
    that is not the same is transformed as another row or because the label of the first has come, shows with the next
    call: until then, it has the histories of the first.

    Parameters
    ----------
    entities, time, horizons, max_entities
        As in :class:`devdan.Histories`.
    max_waiting : int, default=100_000
        How many rows may wait for a label; beyond it, those that have waited longest are taken for new ones once their
        labels come.

    Examples
    --------
    >>> from devdan.river import Histories
    >>> from river import linear_model, preprocessing
    >>> model = Histories("customer", time="day") | preprocessing.StandardScaler() | linear_model.LogisticRegression()
    >>> x = {"customer": "Ann", "day": 1, "amount": 5.0}
    >>> model.predict_one(x)
    False
    >>> model.learn_one(x, True)
    """

    def __init__(
        self,
        entities: str | Sequence[str | tuple[str, ...]],
        *,
        time: str | None = None,
        horizons: Sequence[float | str] | None = None,
        max_entities: int = 1_000_000,
        max_waiting: int = 100_000,
    ) -> None:
        self.entities = entities
        self.time = time
        self.horizons = horizons
        self.max_entities = max_entities
        self.max_waiting = max_waiting
        self.histories = histories.Histories(entities, time=time, horizons=horizons, max_entities=max_entities)
        self.histories.take_later_columns()
        self._waiting: dict[Any, list[_Waiting]] = {}  # by their content, each in order
        self._n_waiting = 0
        self._perhaps: dict[Any, Any] | None = None  # the latest dict, if it may be another row or one that waits

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"entities": "x"}

    def transform_one(self, x: dict[Any, Any]) -> dict[Any, Any]:
        """The row without the columns that name entities, and with what was known of these before it came."""
        _check_dict(x)
        self._decide(x)
        waiting = self._waiting.get(_content(x), [])
        for row in waiting:
            if row.x is x:
                return dict(row.found)
        if waiting:
            self._perhaps = x
            return dict(waiting[0].found)
        return dict(self._arrive(x))

    def learn_one(self, x: dict[Any, Any], y: Any) -> None:
        """The label of a row, which comes now; of equal rows, it is the same dict's, or else the first one's."""
        _check_dict(x)
        self._decide(x)
        self._perhaps = None
        content = _content(x)
        if content not in self._waiting:
            came = self.histories.arrive([x])
        else:
            rows = self._waiting[content]
            came = rows.pop(next((place for place, row in enumerate(rows) if row.x is x), 0)).came
            self._n_waiting -= 1
            if not rows:
                del self._waiting[content]
        self.histories.teach(came, [y])

    def _decide(self, x: dict[Any, Any]) -> None:
        """Take the latest dict for another row, unless it is this one again."""
        if self._perhaps is not None and self._perhaps is not x:
            another, self._perhaps = self._perhaps, None
            self._arrive(another)

    def _arrive(self, x: dict[Any, Any]) -> dict[Any, Any]:
        came = self.histories.arrive([x])
        found: dict[Any, Any] = self.histories.inputs(came, filled=True).dicts()[0]
        self._waiting.setdefault(_content(x), []).append(_Waiting(x, came, found))
        self._n_waiting += 1
        if self._n_waiting > self.max_waiting:
            self._n_waiting -= 1
            oldest = next(iter(self._waiting))
            self._waiting[oldest].pop(0)
            if not self._waiting[oldest]:
                del self._waiting[oldest]
        return found


class _Waiting(NamedTuple):
    """A row whose label has not been learned."""

    x: dict[Any, Any]
    came: Rows
    found: dict[Any, Any]  # what models see of it


def _content(x: dict[Any, Any]) -> frozenset[tuple[Any, str]]:
    return frozenset((name, repr(value)) for name, value in x.items())


# --- Samples as rows ---------------------------------------------------------------------------------------------


def _row(x: dict[Any, Any]) -> Rows:
    """A sample as a table of one row, by the names of its features, since the order of a dict means nothing."""
    return from_dicts([x], sorted(x, key=_sorted_by), named=True)


def _rows(X: pd.DataFrame) -> Rows:
    """A frame, likewise."""
    rows = rows_of(X)
    names = list(X.columns)
    if len(set(names)) < len(names):
        raise ValueError(f"X must have columns of different names, got {names}")
    order = sorted(range(len(names)), key=lambda place: _sorted_by(names[place]))
    return Rows(names, rows.numbers, rows.others, rows.flags).select(order)


def _sorted_by(name: Any) -> tuple[str, str]:
    if name != name:  # noqa: PLR0124 (NaN would be a new feature each time)
        raise ValueError(f"a feature name must not be NaN, got {name!r}")
    return str(type(name)), repr(name)


def _check_dict(x: Any) -> None:
    if not isinstance(x, _DICTS):
        raise TypeError(f"x must be a dict of features, got {type(x).__name__}")


def _check_frame(X: Any) -> None:
    if not hasattr(X, "iloc"):
        raise TypeError(f"X must be a pandas DataFrame, got {type(X).__name__}; learn_one and predict_one take dicts")
