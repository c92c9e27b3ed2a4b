"""What DEVDAN and its ensemble have in common: a mixture of networks behind scikit-learn's interface."""

from __future__ import annotations

import os
import warnings
from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import NotFittedError
from sklearn.utils import Tags, check_random_state

from devdan import kernel
from devdan.arrays import Floats
from devdan.encoding.encoding import Encoding, Instructions
from devdan.histories.histories import Histories, HistoryWarning
from devdan.kernel import DISCRIMINATIVE, GENERATIVE
from devdan.kernel.state import Event
from devdan.model import explain, modelfile, options
from devdan.model.classes import Classes
from devdan.model.decision import Deciding
from devdan.model.estimator import Chunk, StreamClassifier
from devdan.model.explain import Explanation, UnitList, units_of
from devdan.model.mixture import Mixture, seeds_of
from devdan.model.notebook import EventList, model_html
from devdan.model.recent import share_less_unusual
from devdan.model.scales import Scale

if TYPE_CHECKING:
    from typing_extensions import Self


class EvolvingClassifier(Deciding, StreamClassifier):
    """A classifier that is a mixture of networks."""

    mixture_: Mixture

    # --- Implemented by subclasses -------------------------------------------------------------------------------

    @abstractmethod
    def _options(self) -> dict[str, Any]:
        """The options of its networks."""

    @abstractmethod
    def _scales(self) -> Sequence[Scale]:
        """The time scale of each network."""

    def check_options(self) -> None:
        options.check(self._options())

    def _instructions(self) -> Instructions:
        chosen = self._options()
        options.check(chosen)
        return options.instructions(chosen)

    def _check_histories(self, names: Sequence[str]) -> None:
        histories: Histories | None = getattr(self, "histories_", None)
        lacking = [] if histories is None else set(histories.feature_names_) - set(names)
        if lacking:
            raise ValueError(
                f"the rows lack the histories with which this {type(self).__name__} has learned, such as "
                f"{min(lacking)!r}: give it histories.inputs(rows), where histories = model.histories_ and rows = "
                "histories.arrive(X), or histories.transform(X), which counts nothing"
            )

    # --- Learning ------------------------------------------------------------------------------------------------

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Reset the model and make one pass over the samples, as a single chunk.

        ``sample_weight`` has a number for each sample, by which its loss is multiplied in both phases. A sample of
        weight 0 is left out, and so is its label.
        """
        return self._learn(X, y, None, GENERATIVE, DISCRIMINATIVE, sample_weight, afresh=True)

    def partial_fit(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        classes: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> Self:
        """Learn from a labelled chunk: :meth:`observe`, then :meth:`teach`. ``classes`` may name classes in advance.

        Samples whose label is None or NaN are observed, and no more. ``sample_weight`` is as in :meth:`fit`.

        >>> from devdan import DEVDAN
        >>> model = DEVDAN(random_state=0).partial_fit([[0.0], [1.0], [2.0]], ["a", None, "b"])
        >>> model.n_seen_, model.mixture_.n_taught
        (3, 2)
        """
        partly = self._partly_labelled(X, y, classes, sample_weight)
        if partly is None:
            return self._learn(X, y, classes, GENERATIVE, DISCRIMINATIVE, sample_weight)
        if classes is None and partly.known.any() and self._has_initial_outputs and not self.__sklearn_is_fitted__():
            classes = partly.labels
        self._learn(partly.X, None, classes, GENERATIVE, GENERATIVE, partly.weights)
        if not partly.known.any():
            return self
        return self._learn(*partly.labelled, classes, DISCRIMINATIVE, DISCRIMINATIVE, partly.labelled_weights)

    @property
    def _has_initial_outputs(self) -> bool:
        """Whether it starts from given weights of outputs, whose classes must then be known before it learns."""
        return "output" in (getattr(self, "initial_weights", None) or {})

    def observe(self, X: npt.ArrayLike) -> Self:
        """Learn from an unlabelled chunk: the generative phase."""
        return self._learn(X, None, None, GENERATIVE, GENERATIVE)

    def teach(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        classes: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> Self:
        """Learn from a chunk whose labels have arrived: the discriminative phase. A label may be a new class.

        The samples are assumed to have been observed before, as long as no more are taught than were observed, so
        ``scaling="standard"`` does not count them again. ``sample_weight`` is as in :meth:`fit`.
        """
        return self._learn(X, y, classes, DISCRIMINATIVE, DISCRIMINATIVE, sample_weight)

    def forget(self, X: npt.ArrayLike, y: npt.ArrayLike | None = None) -> Self:
        """Take samples out of the replay buffers, with the labels that they were taught with, or those without one.

        They are found by their values. Labels count no longer for the weights of classes. What the weights have learned
        from the samples stays, so a wrong label is best corrected at once: forget it, and teach the right one.

        >>> from devdan import DEVDAN
        >>> model = DEVDAN(random_state=0).fit([[0.0], [1.0], [2.0]], ["a", "a", "b"])
        >>> model = model.forget([[1.0]], ["a"]).teach([[1.0]], ["b"])
        """
        inputs = self._inputs(X)
        if y is None:
            self.mixture_.forget(inputs, None)
            return self
        self.mixture_.forget(inputs, self._classes.known_codes(self._labels(y, len(inputs))))
        return self

    def forget_values(self, X: npt.ArrayLike, columns: Sequence[str]) -> Self:
        """Forget the texts of these rows in some columns: the encoding has no input for them any more.

        For texts that no other sample has, such as a name: what was learned of one that others have goes, too.

        >>> from devdan import DEVDAN
        >>> people = [{"age": 31, "name": "Ann"}, {"age": 60, "name": "Bob"}]
        >>> model = DEVDAN(random_state=0).fit(people, ["a", "b"])
        >>> model.forget_values(people[1:], ["name"]).encoding_.input_names
        ['age', 'name=Ann']
        """
        encoding = self._encoding_without(X, columns)
        if encoding is not None:
            self.mixture_.adapt(encoding)
        return self

    def _learn(
        self, X: Any, y: Any, classes: Any, first: int, last: int, sample_weight: Any = None, afresh: bool = False
    ) -> Self:
        with self._unharmed():
            afresh = afresh or not self.__sklearn_is_fitted__()
            if classes is None and y is not None and afresh and self._has_initial_outputs:
                classes = y
            chunk = self._checked(X, y, classes, last == DISCRIMINATIVE, sample_weight, afresh)
            if chunk is None:
                return self
            self._prepare(chunk, afresh)
        self.mixture_.learn(chunk.X, chunk.codes, chunk.weights, first, last)
        return self

    def _prepare(self, chunk: Chunk, afresh: bool) -> None:
        """Check the options and let the mixture, a new one if ``afresh``, take what is new before it learns."""
        chosen = self._options()
        changed = afresh or options.differ(chosen, self.mixture_.options)
        if changed:
            options.check(chosen)
        if afresh:
            self.mixture_ = self._new_mixture(chosen, chunk)
        elif changed:
            options.check_fixed(chosen, self.mixture_.options)
        self.mixture_.prepare(
            chosen=chosen if changed else None,
            classes=chunk.classes,
            n_named=chunk.n_named,
            encoding=chunk.encoding,
        )

    def _new_mixture(self, chosen: dict[str, Any], chunk: Chunk) -> Mixture:
        scales = self._scales()
        return Mixture(
            chosen,
            scales,
            n_inputs=chunk.X.shape[1],
            n_outputs=len(chunk.classes),
            encoding=chunk.encoding,
            seeds=seeds_of(check_random_state(self.random_state), len(scales)),
        )

    # --- Prediction ----------------------------------------------------------------------------------------------

    def predict_proba(self, X: npt.ArrayLike) -> Floats:
        """The probability of each class in ``classes_``, one row per sample."""
        self.classes_  # noqa: B018 (raises an error if there are none)
        return self.mixture_.predict_proba(self._inputs(X))

    # --- Explanations --------------------------------------------------------------------------------------------

    def explain(self, X: npt.ArrayLike, label: Any = None, *, n_orders: int = explain.ORDERS) -> Explanation:
        """Which columns speak for the predicted class of each sample, or for the class ``label``, and how much.

        A contribution is the Shapley value of a column: what knowing it adds to the log-odds of the class, on average
        over the orders in which columns can become known. It counts for all inputs of the column together, such as the
        values of a nominal one. A column that is not known is missing, which is neutral; with ``scaling="minmax"`` or
        ``None``, where 0 is not the mean, it has its running mean. Up to eight columns, all orders count; of more
        columns, ``n_orders`` of them, which are always the same.
        """
        classes = self.classes_.tolist()
        if len(classes) < 2:
            raise ValueError(f"explain needs two classes to weigh, but only {classes[0]!r} has been taught")
        if label is not None and (np.ndim(label) > 0 or label not in classes):
            raise ValueError(f"label must be one of the classes {classes}, got {label!r}")
        if not isinstance(n_orders, (int, np.integer)) or n_orders < 2:
            raise ValueError(f"n_orders must be an integer of at least 2, got {n_orders!r}")
        chosen = None if label is None else classes.index(label)
        return explain.explained(self.mixture_, self.encoding_, self._inputs(X), chosen, int(n_orders))

    @property
    def importances_(self) -> dict[str, float]:
        """How much each column matters now, by its name; the sum is 1, or 0 if predictions depend on none.

        It is how much predictions change, on recent samples, if the column has the values that it has in others.
        """
        found = self.importances(explain.SAMPLES)
        return dict(zip(map(str, self.encoding_.columns), found.tolist(), strict=True))

    def importances(self, n_samples: int) -> Floats:
        """The importance of each column, asked about this many recent samples."""
        self.classes_  # noqa: B018 (raises an error if there are none)
        return explain.importances(self.mixture_, self.encoding_, n_samples)

    @property
    def units_(self) -> UnitList:
        """What each hidden unit of each network stands for; see :class:`devdan.Unit`."""
        self._check_is_fitted()
        return units_of(self.mixture_, self.encoding_.input_names)

    def describe(self, names: Sequence[str] | None = None) -> dict[str, Any]:
        """What it tells about its columns and hidden units, once it has been taught labels.

        ``names`` are those of the columns, for a model that has seen only arrays.

        >>> from devdan import DEVDAN
        >>> told = DEVDAN(random_state=0).fit([[0.0], [1.0], [2.0]], ["a", "a", "b"]).describe(["age"])
        >>> told["importances"], told["units"][0]["weights"][0][0]
        ({'age': 1.0}, 'age')
        """
        if not hasattr(self, "classes_"):
            return {}
        found, inputs = self.importances_, self.encoding_.input_names
        if self.mixture_.encoding is None and names is not None and len(names) == len(inputs):
            found, inputs = dict(zip(names, found.values(), strict=True)), list(names)
        return {"importances": found, "units": [unit._asdict() for unit in units_of(self.mixture_, inputs)]}

    def score_samples(self, X: npt.ArrayLike) -> Floats:
        """How usual each sample is, between -1 and 0: minus the share of recent samples that are less unusual.

        The lower, the more abnormal, as scikit-learn's outlier detectors have it: of samples like the recent ones,
        about 1 % are below -0.99. A sample is as unusual as it is far from the nearest of up to 1,000 recent samples
        in the replay buffer. Where hardly any are (``rehearse=0``), its distance from the mean input counts: then only
        values can be unusual, not their combinations. A value that is missing, or a category that was never seen, is
        not unusual.
        """
        self._check_is_fitted()
        return -share_less_unusual(self.mixture_.networks, self._inputs(X))

    # --- Fitted attributes ---------------------------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return "mixture_" in self.__dict__

    @property
    def _encoding(self) -> Encoding | None:  # type: ignore[override]
        return self.mixture_.encoding

    @property
    def _classes(self) -> Classes:  # type: ignore[override]
        return self.mixture_.classes

    @property
    def _scaling_in_use(self) -> Any:
        return self.mixture_.options["scaling"]

    def _fitted(self) -> Mixture:
        self._check_is_fitted()
        return self.mixture_

    @property
    def n_keys(self) -> int:
        """How many keys it has, which are a fleet's: none."""
        return 0

    @property
    def size_(self) -> tuple[int, str]:
        """How large it is, and of what that is the number."""
        return self.n_hidden_, "hidden units"

    @property
    def common_(self) -> EvolvingClassifier:
        """The model of all rows: itself, where a fleet has others beside it."""
        return self

    @property
    def classes_(self) -> npt.NDArray[Any]:
        if self._fitted().nets[0].n_classes == 0:
            name = type(self).__name__
            raise NotFittedError(f"This {name} has not been taught a label yet: call partial_fit or teach first")
        return self._classes.labels

    @property
    def n_seen_(self) -> int:
        return self._fitted().n_seen

    @property
    def n_taught_(self) -> int:
        """Labels learned so far."""
        return self._fitted().n_taught

    @property
    def n_hidden_(self) -> int:
        return sum(net.n_hidden for net in self._fitted().nets)

    @property
    def network_weights_(self) -> Floats:
        return np.array(self._fitted().network_weights)

    @property
    def n_parameters_(self) -> int:
        return self._fitted().n_parameters

    @property
    def events_(self) -> EventList[Event]:
        return EventList(self._fitted().events)

    @property
    def n_events_(self) -> int:
        return sum(self._fitted().n_events)

    @property
    def growths_(self) -> dict[str, int]:
        return self._fitted().counts("n_changes", kernel.GROWTH)

    @property
    def prunings_(self) -> dict[str, int]:
        return self._fitted().counts("n_changes", kernel.PRUNING)

    @property
    def drifts_(self) -> dict[str, int]:
        """Number of virtual drifts (generative phase) and real drifts (discriminative phase), over all networks."""
        return self._fitted().counts("n_drifts")

    @property
    def bias2_(self) -> dict[str, float]:
        return self._fitted().means(kernel.BIAS2)

    @property
    def variance_(self) -> dict[str, float]:
        return self._fitted().means(kernel.VARIANCE)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        # One pass over a few hundred samples from one unit is enough with standardised inputs, but not with min-max.
        tags.classifier_tags.poor_score = self.scaling != "standard"
        return tags

    # --- In notebooks --------------------------------------------------------------------------------------------

    def _repr_html_inner(self) -> str:
        """What scikit-learn shows, which are the options, and what has become of the model."""
        return f"{super()._repr_html_inner()}{model_html(self)}"

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        shown: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        return shown | ({"text/html": shown["text/html"] + model_html(self)} if "text/html" in shown else {})

    # --- Saving and loading --------------------------------------------------------------------------------------

    def kept_options(self) -> dict[str, Any]:
        """The options to save: those passed to the networks, even if they were changed since."""
        params: dict[str, Any] = self.get_params(deep=False)
        params |= {name: value for name, value in self.mixture_.options.items() if name in params}
        if not isinstance(params["random_state"], (int, np.integer)):
            params["random_state"] = None  # the state of the generator is in the networks' states
        return params

    @classmethod
    def of_kept_options(cls, params: dict[str, Any]) -> Self:
        """A model with these options, which has learned nothing; a file must name all that there are."""
        if set(params) != set(cls._get_param_names()):
            raise ValueError(f"its options are not those of a {cls.__name__}")
        return cls(**params)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the model to one file; a model from :meth:`load` continues bit for bit."""
        modelfile.save(path, self)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Load a model from a file written by :meth:`save`. Nothing in the file is executed."""
        return modelfile.load(path, cls)

    def to_onnx(self, path: str | os.PathLike[str] | None = None) -> Any:
        """The current predictor as an ONNX model, also saved if a path is given: ``pip install 'devdan[onnx]'``.

        Its input is ``X`` (doubles, NaN for missing values), or for a model of tables what :meth:`encode` makes of
        them; its outputs are ``label`` and ``probabilities``. Histories are not part of it: rows must have them.
        """
        try:
            from devdan.model.onnx import to_onnx  # noqa: PLC0415 (an optional extra)
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError("to_onnx needs onnx: pip install 'devdan[onnx]'", name=error.name) from error
        if getattr(self, "histories_", None) is not None:
            warnings.warn(
                "the ONNX model takes rows that have their histories, and does not keep these: add them with "
                "histories_.arrive before",
                HistoryWarning,
                stacklevel=2,
            )
        return to_onnx(self, path)
