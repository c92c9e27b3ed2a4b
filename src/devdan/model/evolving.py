"""The scikit-learn estimator code shared by DEVDAN and its ensemble: networks, options and fitted attributes."""

from __future__ import annotations

import os
from abc import abstractmethod
from operator import is_
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import NotFittedError
from sklearn.utils import Tags
from sklearn.utils.validation import _num_samples

from devdan import kernel
from devdan.arrays import Floats, Words
from devdan.encoding.encoding import Encoding, Instructions
from devdan.kernel import DISCRIMINATIVE, GENERATIVE, Network
from devdan.kernel.state import (
    PHASES,
    Event,
    counted,
    events_of,
    n_parameters,
    padded,
    resized,
    set_settings,
    with_features,
)
from devdan.model import mixture, modelfile, options, weighing
from devdan.model.classes import Classes
from devdan.model.insight import Insight
from devdan.model.notebook import EventList, model_html
from devdan.model.recent import keep_unlabelled
from devdan.model.weighing import NO_WEIGHTS

if TYPE_CHECKING:
    from typing_extensions import Self

_UNLABELLED = np.empty(0, np.int64)


class EvolvingClassifier(Insight):
    """A classifier made of networks, each one a kernel state."""

    _chosen: dict[str, Any]  # the options that were last passed to the networks

    # --- Implemented by subclasses -------------------------------------------------------------------------------

    @abstractmethod
    def _options(self) -> dict[str, Any]:
        """The options of its networks."""

    @abstractmethod
    def _begin(self, classes: Classes, n_named: int) -> None:
        """Create the networks."""

    @abstractmethod
    def _settings(self) -> list[dict[str, float]]:
        """The kernel's settings of each network."""

    @abstractmethod
    def _visit(self, X: Floats, codes: Words, weights: Floats, first: int, last: int) -> None:
        """Train the networks on the samples in the phases ``first`` to ``last``."""

    @abstractmethod
    def _check_networks(self, networks: list[Floats]) -> None:
        """Raise a ``ValueError`` if networks, from a file, are not a valid model."""

    @abstractmethod
    def _take(self, networks: list[Floats]) -> None:
        """Continue with these networks."""

    def _network_inputs(self, X: Floats) -> list[Floats]:
        """The inputs of each network."""
        return [X] * len(self._networks)

    def check_options(self) -> None:
        options.check(self._options())

    def _instructions(self) -> Instructions:
        chosen = self._options()
        options.check(chosen)
        return options.instructions(chosen)

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

        ``sample_weight`` is as in :meth:`fit`.
        """
        return self._learn(X, y, classes, GENERATIVE, DISCRIMINATIVE, sample_weight)

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

    def _learn(
        self, X: Any, y: Any, classes: Any, first: int, last: int, sample_weight: Any = None, afresh: bool = False
    ) -> Self:
        with self._unharmed():
            afresh = afresh or not self.__sklearn_is_fitted__()
            weights, kept = NO_WEIGHTS, None
            if sample_weight is not None:
                weights = weighing.check_sample_weight(sample_weight, _num_samples(X))
                kept = weights > 0.0
                y, weights = self._labels(y, len(weights))[kept], weights[kept]
                if afresh and len(weights) == 0:
                    raise ValueError("sample_weight must be greater than zero for at least one sample to start from")
                if len(weights) == 0:
                    return self
            X, encoding = self._learned_inputs(X, reset=afresh, kept=kept)
            known, n_named, codes = Classes() if afresh else self._classes, 0, _UNLABELLED
            if last == DISCRIMINATIVE:
                if classes is None and afresh and "output" in (getattr(self, "initial_weights", None) or {}):
                    classes = y  # the outputs exist already, so their classes must be known
                codes, known, n_named = self._encoded(y, len(X), classes, known)
            self._prepare(afresh, known, n_named, encoding)
        if last == DISCRIMINATIVE:
            self._calibrate(X, codes, weights)
        self._visit(X, codes, weights, first, last)
        if last == GENERATIVE:
            keep_unlabelled(self._networks, X)
        return self

    def _calibrate(self, X: Floats, codes: Words, weights: Floats) -> None:
        """Compare what is predicted for some of the samples with their labels, before these are learned."""
        compared = mixture.compared(self._networks[0], len(X))
        if len(compared) > 0:
            own = weights[compared] if len(weights) > 0 else weights
            mixture.calibrate(self._networks, self._network_inputs(X[compared]), codes[compared], own)

    def _prepare(self, afresh: bool, classes: Classes, n_named: int, encoding: Encoding | None) -> None:
        """Check the options, create or enlarge the networks, and pass the options to them."""
        before, self._encoding = self._encoding, encoding
        chosen = self._options()
        changed = afresh or not all(map(is_, chosen.values(), self._chosen.values()))
        if changed:
            options.check(chosen)
        if afresh:
            self._begin(classes, n_named)
        elif changed:
            for name in options.fixed(chosen):
                if not options.same(chosen[name], self._chosen[name]):
                    raise ValueError(
                        f"{name} must stay {self._chosen[name]!r} once the model has learned; call fit to start again"
                    )
        self._classes, self._chosen = classes, chosen
        if not afresh and encoding is not None and before is not None and before.order != encoding.order:
            gone, n_new = before.changes(encoding)
            self._take([with_features(state, len(before), gone, n_new) for state in self._networks])
        room = self._first().max_classes
        if len(classes) > room:
            larger = max(len(classes), 2 * room)
            self._take([resized(state, classes=larger) for state in self._networks])
        if changed or n_named > 0:
            self._pass_options()
            for net in self._nets():
                net.n_named = n_named or net.n_named

    def _pass_options(self) -> None:
        """Pass the options to the networks."""
        nets = self._nets()
        given = weighing.weights_given(self._chosen["class_weight"], self._classes, nets[0].max_classes)
        for net, settings in zip(nets, self._settings(), strict=True):
            set_settings(net, settings)
            net.class_weight[:] = given

    # --- Prediction ----------------------------------------------------------------------------------------------

    def predict_proba(self, X: npt.ArrayLike) -> Floats:
        """The probability of each class in ``classes_``, one row per sample."""
        self.classes_  # noqa: B018 (raises an error if there are none)
        return self._probabilities(self._inputs(X))

    # --- Fitted attributes ---------------------------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return "_chosen" in self.__dict__

    @property
    def _scaling_in_use(self) -> Any:
        return self._chosen["scaling"]

    def _nets(self) -> list[Network]:
        self._check_is_fitted()
        return [Network(state) for state in self._networks]

    def _first(self) -> Network:
        """The first network."""
        self._check_is_fitted()
        return Network(self._networks[0])

    @property
    def classes_(self) -> npt.NDArray[Any]:
        if self._first().n_classes == 0:
            name = type(self).__name__
            raise NotFittedError(f"This {name} has not been taught a label yet: call partial_fit or teach first")
        return self._classes.labels

    @property
    def n_hidden_(self) -> int:
        return sum(net.n_hidden for net in self._nets())

    @property
    def shares_(self) -> Floats:
        self._check_is_fitted()
        return np.array(mixture.shares(self._networks))

    @property
    def n_parameters_(self) -> int:
        return sum(n_parameters(net) for net in self._nets())

    @property
    def events_(self) -> EventList[Event]:
        return EventList(event for k, net in enumerate(self._nets()) for event in events_of(net, k))

    @property
    def n_events_(self) -> int:
        return sum(net.n_events for net in self._nets())

    def events_by_network(self) -> list[int]:
        """The number of events of each network."""
        return [net.n_events for net in self._nets()]

    def events_after(self, counts: list[int]) -> list[Event]:
        """The events since the networks had so many, as far as they are kept; a network that came since had none."""
        found: list[Event] = []
        for k, net in enumerate(self._nets()):
            n_new = net.n_events - (counts[k] if k < len(counts) else 0)
            found += events_of(net, k)[-n_new:] if n_new > 0 else []
        return found

    @property
    def growths_(self) -> dict[str, int]:
        return self._counted("n_changes", kernel.GROWTH)

    @property
    def prunings_(self) -> dict[str, int]:
        return self._counted("n_changes", kernel.PRUNING)

    @property
    def drifts_(self) -> dict[str, int]:
        """Number of virtual drifts (generative phase) and real drifts (discriminative phase), over all networks."""
        return self._counted("n_drifts")

    def _counted(self, name: str, kind: int | None = None) -> dict[str, int]:
        """A counter of all networks, by phase."""
        counts = counted(self._nets(), name)
        return dict(zip(PHASES, (counts if kind is None else counts[:, kind]).tolist(), strict=True))

    @property
    def bias2_(self) -> dict[str, float]:
        return self._monitored(kernel.BIAS2)

    @property
    def variance_(self) -> dict[str, float]:
        return self._monitored(kernel.VARIANCE)

    def _monitored(self, quantity: int) -> dict[str, float]:
        evolving = (net for net in self._nets() if net.max_samples == 0)
        means = [net.monitors[:, quantity, kernel.MEAN].tolist() for net in evolving] or [[0.0, 0.0]]
        return {name: sum(own) / len(means) for name, own in zip(PHASES, zip(*means, strict=True), strict=True)}

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        # One pass over a few hundred samples from one unit is enough with standardised inputs, but not with min-max.
        tags.classifier_tags.poor_score = self.scaling != "standard"
        return tags

    # --- In notebooks --------------------------------------------------------------------------------------------

    def _repr_html_inner(self) -> str:
        """What scikit-learn shows, which are the options, and what it has come to."""
        return f"{super()._repr_html_inner()}{model_html(self)}"

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        shown: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        return shown | ({"text/html": shown["text/html"] + model_html(self)} if "text/html" in shown else {})

    # --- Saving and loading --------------------------------------------------------------------------------------

    def _kept_options(self) -> dict[str, Any]:
        """The options to save: those passed to the networks, even if they were changed since."""
        chosen = {name: value for name, value in self._chosen.items() if name in self.get_params(deep=False)}
        params = {**self.get_params(deep=False), **chosen}
        if not isinstance(params["random_state"], (int, np.integer)):
            params["random_state"] = None  # the state of the generator is in the networks' states
        return weighing.to_pairs(params)

    @classmethod
    def _updated(cls, kept: dict[str, Any], states: list[Floats]) -> tuple[dict[str, Any], list[Floats]]:
        """Options and states from a file, as this version has them."""
        return kept, states

    @classmethod
    def _of_kept_options(cls, params: dict[str, Any]) -> Self:
        lacking = {name: options.earlier(name) for name in cls._get_param_names() if name in options.OPTIONS}
        return cls(**lacking | weighing.of_pairs(params))

    def __setstate__(self, state: dict[str, Any]) -> None:
        """What an earlier version has pickled knows nothing of newer options, and its states lack newer fields."""
        super().__setstate__(state)
        for name in self._get_param_names():
            if name in options.OPTIONS:
                self.__dict__.setdefault(name, options.earlier(name))
        if "_chosen" in self.__dict__:
            self._chosen = {name: options.earlier(name) for name in options.NAMES} | self._chosen
            self._take([padded(network) for network in self.__dict__.pop("_networks", None) or self._networks])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the model to one file; a model from :meth:`load` continues bit for bit."""
        modelfile.save(path, self)

    def to_onnx(self, path: str | os.PathLike[str] | None = None) -> Any:
        """The current predictor as an ONNX model, also saved if a path is given: ``pip install 'devdan[onnx]'``.

        Its input is ``X`` (doubles, NaN for missing values), or for a model of tables what :meth:`encode` makes of
        them; its outputs are ``label`` and ``probabilities``.
        """
        try:
            from devdan.model.onnx import to_onnx  # noqa: PLC0415 (an optional extra)
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError("to_onnx needs onnx: pip install 'devdan[onnx]'", name=error.name) from error
        return to_onnx(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Load a model from a file written by :meth:`save`. Nothing in the file is executed."""
        return modelfile.load(path, cls)
