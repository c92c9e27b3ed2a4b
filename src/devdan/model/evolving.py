"""The scikit-learn estimator code shared by DEVDAN and its ensemble: networks, options and fitted attributes."""

from __future__ import annotations

import os
from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import NotFittedError
from sklearn.utils import Tags

from devdan.arrays import Floats, Words
from devdan.encoding.encoding import Encoding, Instructions
from devdan.model import kernel, modelfile, options
from devdan.model.classes import Classes
from devdan.model.estimator import StreamClassifier
from devdan.model.kernel import DISCRIMINATIVE, GENERATIVE, Network
from devdan.model.state import PHASES, Event, counted, events_of, set_settings

if TYPE_CHECKING:
    from typing_extensions import Self

_UNLABELLED = np.empty(0, np.int64)


class EvolvingClassifier(StreamClassifier):
    """A classifier made of networks, each one a kernel state."""

    _networks: Any  # a list of states
    _classes: Classes
    _chosen: dict[str, Any]  # the options that were last passed to the networks

    # --- Implemented by subclasses -------------------------------------------------------------------------------

    @abstractmethod
    def _options(self) -> dict[str, Any]:
        """The options of its networks."""

    @abstractmethod
    def _begin(self, classes: Classes, n_named: int) -> None:
        """Create the networks."""

    @abstractmethod
    def _change_inputs(self, n_inputs: int, gone: list[int], n_new: int) -> None:
        """Remove some of the inputs, of which there are this many, and add others after the rest."""

    @abstractmethod
    def _make_room(self, n_classes: int) -> None:
        """Make room for more classes in the networks."""

    @abstractmethod
    def _visit(self, X: Floats, codes: Words, first: int, last: int) -> None:
        """Train the networks on the samples in the phases ``first`` to ``last``."""

    @abstractmethod
    def _take(self, networks: list[Floats]) -> None:
        """Continue with networks from a file; raises a ``ValueError`` if they are not a valid model."""

    @abstractmethod
    def _add_probabilities(self, X: Floats, out: Floats) -> None:
        """Add their predictions to ``out``, one row per sample, one column per output."""

    def check_options(self) -> None:
        options.check(self._options())

    def _instructions(self) -> Instructions:
        chosen = self._options()
        options.check(chosen)
        return options.instructions(chosen)

    # --- Learning ------------------------------------------------------------------------------------------------

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Self:
        """Reset the model and make one pass over the samples, as a single chunk."""
        return self._learn(X, y, None, GENERATIVE, DISCRIMINATIVE, afresh=True)

    def partial_fit(self, X: npt.ArrayLike, y: npt.ArrayLike, classes: npt.ArrayLike | None = None) -> Self:
        """Learn from a labelled chunk: :meth:`observe`, then :meth:`teach`. ``classes`` may name classes in advance."""
        return self._learn(X, y, classes, GENERATIVE, DISCRIMINATIVE)

    def observe(self, X: npt.ArrayLike) -> Self:
        """Learn from an unlabelled chunk: the generative phase."""
        return self._learn(X, None, None, GENERATIVE, GENERATIVE)

    def teach(self, X: npt.ArrayLike, y: npt.ArrayLike, classes: npt.ArrayLike | None = None) -> Self:
        """Learn from a chunk whose labels have arrived: the discriminative phase. A label may be a new class.

        The samples are assumed to have been observed before, as long as no more are taught than were observed, so
        ``scaling="standard"`` does not count them again.
        """
        return self._learn(X, y, classes, DISCRIMINATIVE, DISCRIMINATIVE)

    def _learn(self, X: Any, y: Any, classes: Any, first: int, last: int, afresh: bool = False) -> Self:
        with self._unharmed():
            afresh = afresh or not self.__sklearn_is_fitted__()
            X, encoding = self._learned_inputs(X, reset=afresh)
            known, n_named, codes = Classes() if afresh else self._classes, 0, _UNLABELLED
            if last == DISCRIMINATIVE:
                if classes is None and afresh and "output" in (getattr(self, "initial_weights", None) or {}):
                    classes = y  # the outputs exist already, so their classes must be known
                codes, known, n_named = self._encoded(y, len(X), classes, known)
            self._prepare(afresh, known, n_named, encoding)
        self._visit(X, codes, first, last)
        return self

    def _prepare(self, afresh: bool, classes: Classes, n_named: int, encoding: Encoding | None) -> None:
        """Check the options, create or enlarge the networks, and pass the options to them."""
        before, self._encoding = self._encoding, encoding
        chosen = self._options()
        changed = afresh or any(value is not self._chosen[name] for name, value in chosen.items())
        if changed:
            options.check(chosen)
        if afresh:
            self._begin(classes, n_named)
        else:
            for name in options.fixed(chosen):
                if not options.same(chosen[name], self._chosen[name]):
                    raise ValueError(
                        f"{name} must stay {self._chosen[name]!r} once the model has learned; call fit to start again"
                    )
            if before is not None and encoding is not None and before.order != encoding.order:
                self._change_inputs(len(before), *before.changes(encoding))
        room = self._first().max_classes
        if len(classes) > room:
            self._make_room(max(len(classes), 2 * room))
        if changed or n_named > 0:
            for state in self._networks:
                net = Network(state)
                set_settings(net, options.settings(chosen))
                net.n_named = n_named or net.n_named
        self._classes, self._chosen = classes, chosen

    # --- Prediction ----------------------------------------------------------------------------------------------

    def predict_proba(self, X: npt.ArrayLike) -> Floats:
        """The probability of each class in ``classes_``, one row per sample."""
        outputs = self._classes.outputs if len(self.classes_) > 0 else _UNLABELLED
        X = self._inputs(X)
        out = np.zeros((len(X), len(outputs)))
        self._add_probabilities(X, out)
        return out[:, outputs]

    # --- Fitted attributes ---------------------------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return "_networks" in self.__dict__

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
    def n_parameters_(self) -> int:
        nets = self._nets()
        return sum(net.n_hidden * (net.n_features + 1) + net.n_classes * (net.n_hidden + 1) for net in nets)

    @property
    def events_(self) -> list[Event]:
        return [event for k, net in enumerate(self._nets()) for event in events_of(net, k)]

    @property
    def n_events_(self) -> int:
        return sum(net.n_events for net in self._nets())

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
        means = [net.monitors[:, quantity, kernel.MEAN].tolist() for net in self._nets()]
        return {name: sum(own) / len(means) for name, own in zip(PHASES, zip(*means, strict=True), strict=True)}

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        # One pass over a few hundred samples from one unit is enough with standardised inputs, but not with min-max.
        tags.classifier_tags.poor_score = self.scaling != "standard"
        return tags

    # --- Saving and loading --------------------------------------------------------------------------------------

    def _kept_options(self) -> dict[str, Any]:
        """The options to save: those passed to the networks, even if they were changed since."""
        chosen = {name: value for name, value in self._chosen.items() if name in self.get_params(deep=False)}
        params = {**self.get_params(deep=False), **chosen}
        if not isinstance(params["random_state"], (int, np.integer)):
            params["random_state"] = None  # the state of the generator is in the networks' states
        return params

    @classmethod
    def _of_kept_options(cls, params: dict[str, Any]) -> Self:
        return cls(**params)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the model to one file; a model from :meth:`load` continues bit for bit."""
        modelfile.save(path, self)

    def to_onnx(self, path: str | os.PathLike[str] | None = None) -> Any:
        """The current predictor as an ONNX model, also saved if a path is given: ``pip install 'devdan[onnx]'``.

        Its input is ``X`` (doubles, NaN for missing values); its outputs are ``label`` and ``probabilities``.
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
