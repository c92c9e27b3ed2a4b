"""DEVDAN behind scikit-learn's face: it checks what users bring, owns the state, and calls the kernel."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import validate_data

from devdan import kernel, modelfile, notice, options  # noqa: F401 (importing the notice arms it)
from devdan.classes import Classes, check_labels
from devdan.kernel import DISCRIMINATIVE, GENERATIVE, Floats, Words

if TYPE_CHECKING:
    from typing_extensions import Self

PHASES = ("generative", "discriminative")
_ROOM = 16  # hidden units that a new state has room for; it doubles when they are all there
_EVENTS = 1000
_UNLABELLED = np.empty(0, np.int64)


class Event(NamedTuple):
    """A change of structure: at which sample of which phase, which unit came or went, how many there are now."""

    sample: int
    phase: str
    kind: str
    unit: int
    n_hidden: int


class DEVDAN(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Evolving denoising autoencoder with a softmax layer, for data streams.

    Reads a stream once, starts from one hidden unit, and grows and prunes its hidden layer from estimates of bias² and
    variance. Unlabelled samples train the autoencoder (:meth:`observe`, the generative phase), labelled ones the
    classifier (:meth:`teach`, the discriminative phase); :meth:`partial_fit` does both. NaN means missing.

    Parameters
    ----------
    n_hidden : int, default=1
        Hidden units to start from.
    initial_weights : dict, default=None
        Weights to start from instead, in the form of :attr:`weights_`: ``encoder`` and any of the others.
    masking : float in [0, 1), default=0.1
        Share of the features that the generative phase masks, at least one; 0 makes a plain autoencoder.
    scaling : {"minmax", "standard", None}, default="minmax"
        How features are brought to the network's scale, learned online from what was seen so far; ``None`` is for data
        in [0, 1].
    shuffle : bool, default=True
        Visit each chunk in a random order.
    interleave : bool, default=False
        In :meth:`partial_fit`, observe and teach sample by sample instead of chunk by chunk.
    generative, grow, prune : bool, default=True
        Switches for the generative phase, for growing and for pruning.
    scope : {"fixed", "adaptive"}, default="fixed"
        Range of a new unit's random weights: fixed, or widened until the unit helps.
    generative_learning_rate, learning_rate : float in [0, 1], default=0.001 and 0.015
        Step sizes of the generative and of the discriminative phase.
    momentum : float in [0, 1), default=0.9
        Momentum of the discriminative phase.
    random_state : int, RandomState or None, default=None
        Seed of the model's own generator. The same seed gives the same bits.

    Attributes
    ----------
    classes_ : the classes seen so far, sorted.
    n_features_in_, feature_names_in_ : number and, where X had them, names of the features.
    n_hidden_ : hidden units now.
    n_parameters_ : parameters now, R(n + 1) + m(R + 1), without the decoder's offsets.
    n_seen_ : samples seen so far.
    events_, n_events_ : the latest growths and prunings, at most 1,000, and how many there were in all.
    bias2_, variance_ : dict, the running means that the conditions for growing and pruning compare, of both phases.
    weights_ : dict of copies: ``encoder`` (n_features, n_hidden), the paper's W, ``encoder_bias``, ``decoder_bias``,
        ``output`` (n_hidden, n_classes), its columns in the order of ``classes_``, and ``output_bias``.

    Examples
    --------
    >>> import numpy as np
    >>> from devdan import DEVDAN
    >>> random = np.random.default_rng(1)
    >>> model = DEVDAN(random_state=1)
    >>> for _ in range(20):
    ...     X = random.random((500, 3))
    ...     y = X[:, 0] + X[:, 1] > 1
    ...     model = model.partial_fit(X, y)
    >>> X = random.random((500, 3))
    >>> model.score(X, X[:, 0] + X[:, 1] > 1) > 0.9
    True
    """

    _state: Floats  # the kernel's
    _classes: Classes
    _chosen: dict[str, Any]  # the options that the state was given last

    def __init__(
        self,
        *,
        n_hidden: int = 1,
        initial_weights: dict[str, npt.ArrayLike] | None = None,
        masking: float = 0.1,
        scaling: str | None = "minmax",
        shuffle: bool = True,
        interleave: bool = False,
        generative: bool = True,
        grow: bool = True,
        prune: bool = True,
        scope: str = "fixed",
        generative_learning_rate: float = 0.001,
        learning_rate: float = 0.015,
        momentum: float = 0.9,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_hidden = n_hidden
        self.initial_weights = initial_weights
        self.masking = masking
        self.scaling = scaling
        self.shuffle = shuffle
        self.interleave = interleave
        self.generative = generative
        self.grow = grow
        self.prune = prune
        self.scope = scope
        self.generative_learning_rate = generative_learning_rate
        self.learning_rate = learning_rate
        self.momentum = momentum
        self.random_state = random_state

    # --- Learning ------------------------------------------------------------------------------------------------

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Self:
        """Start afresh and make one pass over the samples, as one chunk."""
        return self._learn(X, y, None, GENERATIVE, DISCRIMINATIVE, afresh=True)

    def partial_fit(self, X: npt.ArrayLike, y: npt.ArrayLike, classes: npt.ArrayLike | None = None) -> Self:
        """Learn from a labelled chunk: :meth:`observe`, then :meth:`teach`. ``classes`` may name them in advance."""
        return self._learn(X, y, classes, GENERATIVE, DISCRIMINATIVE)

    def observe(self, X: npt.ArrayLike) -> Self:
        """Learn from an unlabelled chunk: the generative phase."""
        return self._learn(X, None, None, GENERATIVE, GENERATIVE)

    def teach(self, X: npt.ArrayLike, y: npt.ArrayLike, classes: npt.ArrayLike | None = None) -> Self:
        """Learn from a chunk whose labels have come: the discriminative phase. A label may be a new class.

        The samples are taken for ones that were observed before, as long as no more are taught than were observed: then
        ``scaling="standard"`` does not count them again.
        """
        return self._learn(X, y, classes, DISCRIMINATIVE, DISCRIMINATIVE)

    def _learn(self, X: Any, y: Any, classes: Any, first: int, last: int, afresh: bool = False) -> Self:
        with self._unharmed():
            afresh = afresh or not self.__sklearn_is_fitted__()
            X = self._checked(X, reset=afresh)
            known, n_named, codes = Classes() if afresh else self._classes, 0, _UNLABELLED
            if last == DISCRIMINATIVE:
                y = check_labels(y)
                if len(y) != len(X):
                    raise ValueError(f"X and y must have the same number of samples, got {len(X)} and {len(y)}")
                if classes is None and afresh and "output" in (self.initial_weights or {}):
                    classes = y  # the outputs are there already, so their classes must be
                if classes is not None:
                    named = np.unique(check_labels(classes))
                    if len(named) == 0:
                        raise ValueError("classes must name at least one class, got none")
                    _, known = known.encode(named)
                    n_named = len(known)
                codes, known = known.encode(y)
            self._prepare(afresh, known, n_named)
        if self.interleave:
            self._visit(X, codes, first, last)
        else:
            for phase in range(first, last + 1):
                self._visit(X, codes, phase, phase)
        return self

    @contextmanager
    def _unharmed(self) -> Iterator[None]:
        """Leave the model as it was if anything is wrong with the input."""
        before = self.__dict__.copy()
        try:
            yield
        except BaseException:
            self.__dict__ = before
            raise

    def _prepare(self, afresh: bool, classes: Classes, n_named: int) -> None:
        """Check the options, make or enlarge the state, and hand the options over to it."""
        chosen = {name: getattr(self, name) for name in options.NAMES}
        changed = afresh or any(value is not self._chosen[name] for name, value in chosen.items())
        if changed:
            options.check(chosen)
        if afresh:
            self._state = self._new_state(classes, n_named)
        elif chosen["scaling"] != self._chosen["scaling"]:
            raise ValueError(
                f"scaling must stay {self._chosen['scaling']!r} once the model has learned; fit starts afresh"
            )
        if len(classes) > self._header()[kernel.MAX_CLASSES]:
            self._enlarge(classes=max(len(classes), 2 * int(self._header()[kernel.MAX_CLASSES])))
        if n_named > 0:
            self._header()[kernel.N_NAMED] = n_named
        if changed:
            kernel.views(self._state).settings[:] = options.settings(chosen)
        self._classes, self._chosen = classes, chosen

    def _new_state(self, classes: Classes, n_named: int) -> Floats:
        n = self.n_features_in_
        given = {}
        if self.initial_weights is not None:
            given = options.check_initial_weights(self.initial_weights, n, n_named)
        n_hidden = given["encoder"].shape[1] if given else int(self.n_hidden)
        room = max(_ROOM, (n_hidden + 9) // 8 * 8)  # whole vectors of eight, with room for two more units
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int64).max, dtype=np.int64)
        state = kernel.new_state(n, room, max(len(classes), 2), _EVENTS, int(seed))
        net = kernel.views(state)
        if given:
            net.header[kernel.N_HIDDEN] = n_hidden
            net.header[kernel.N_CLASSES] = n_named if "output" in given else 0
        for name, weights in given.items():
            array = weights.T if name == "output" else weights
            getattr(net, name)[tuple(slice(length) for length in array.shape)] = array
        return state

    def _enlarge(self, hidden: int = 0, classes: int = 0) -> None:
        n, r, m, _ = (int(room) for room in self._header()[:4])
        self._state = kernel.resized(self._state, n, max(r, hidden), max(m, classes))

    def _visit(self, X: Floats, codes: Words, first: int, last: int) -> None:
        """Let the kernel learn from each sample once, with more room whenever it asks for it."""
        order = np.arange(len(X))
        if self.shuffle and len(X) > 1:
            kernel.shuffle(kernel.generator(self._state), order)
        done = 0
        while True:
            done = kernel.learn(self._state, kernel.scratch_for(self._state), X, codes, order, done, first, last)
            if done == len(order):
                return
            self._enlarge(hidden=2 * int(self._header()[kernel.MAX_HIDDEN]))

    # --- Using ---------------------------------------------------------------------------------------------------

    def predict_proba(self, X: npt.ArrayLike) -> Floats:
        """The probability of each of ``classes_``, a row for each sample."""
        outputs = self._classes.outputs if len(self.classes_) > 0 else _UNLABELLED
        return self._use(kernel.predict_proba, X, len(outputs))[:, outputs]

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """The most probable class of each sample."""
        labels: npt.NDArray[Any] = self.classes_[self.predict_proba(X).argmax(axis=1)]
        return labels

    def transform(self, X: npt.ArrayLike) -> Floats:
        """The hidden units' activations for each sample."""
        return self._use(kernel.transform, X, self.n_hidden_)

    def reconstruct(self, X: npt.ArrayLike) -> Floats:
        """Each sample as the autoencoder reconstructs it, missing features filled in, in the units of ``X``.

        A feature that has been missing from the start has no units, and stays NaN.
        """
        return self._use(kernel.reconstruct, X, int(self._header()[kernel.N_FEATURES]))

    def _use(self, function: Callable[..., None], X: Any, width: int) -> Floats:
        """What a function of the kernel makes of each sample."""
        X, state = self._checked(X, reset=False), self._words()
        out = np.zeros((len(X), width))
        function(state, kernel.scratch_for(state), X, out)
        return out

    def _checked(self, X: Any, reset: bool) -> Floats:
        """``X`` as the kernel takes it; a plain array of the right form costs next to nothing."""
        if type(X) is list:
            X = np.asarray(X)
        if type(X) is np.ndarray and X.dtype.kind in "US" and X.size > 0:
            raise ValueError(f"X must hold numbers, got text such as {X.flat[0]!r}; encode it first")
        plain = type(X) is np.ndarray and X.dtype.kind in "fiub" and X.ndim == 2 and len(X) > 0 and not reset
        plain = plain and X.shape[1] == self.n_features_in_ and "feature_names_in_" not in self.__dict__
        if not plain:
            X = validate_data(self, X, reset=reset, dtype="numeric", ensure_all_finite=False)
        # A read-only array would be another type to the kernel, to be compiled again.
        checked: Floats = np.require(X, np.float64, ["C", "W"])
        if np.isinf(checked).any():
            raise ValueError("Input X contains infinity; a missing value is NaN, other values must be finite")
        scaling = self.scaling if reset else self._chosen["scaling"]
        if scaling is None and not getattr(self, "_warned", False) and ((X < 0).any() or (X > 1).any()):
            self._warned = True
            warnings.warn(
                "X has values outside [0, 1], which are clipped: scaling=None takes data in [0, 1] only; "
                "use scaling='minmax' or scaling='standard' for this stream",
                stacklevel=4,
            )
        return checked

    # --- What it has become --------------------------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return "_state" in self.__dict__

    def _words(self) -> Floats:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError("This DEVDAN has not seen a sample yet: call partial_fit, observe or fit first")
        return self._state

    def _header(self) -> Words:
        return self._words()[: kernel.HEADER].view(np.int64)

    @property
    def classes_(self) -> npt.NDArray[Any]:
        self._words()
        if self._header()[kernel.N_CLASSES] == 0:
            raise NotFittedError("This DEVDAN has not been taught a label yet: call partial_fit or teach first")
        return self._classes.labels

    @property
    def n_hidden_(self) -> int:
        return int(self._header()[kernel.N_HIDDEN])

    @property
    def n_seen_(self) -> int:
        return int(self._header()[kernel.N_SEEN])

    @property
    def n_parameters_(self) -> int:
        r, m = self.n_hidden_, int(self._header()[kernel.N_CLASSES])
        return r * (int(self.n_features_in_) + 1) + m * (r + 1)

    @property
    def events_(self) -> list[Event]:
        net = kernel.views(self._words())
        n, room = net.header[kernel.N_EVENTS], net.header[kernel.MAX_EVENTS]
        rows = net.events[:n] if n <= room else np.roll(net.events, -(n % room), axis=0)
        return [
            Event(sample, PHASES[phase], "growth" if growth else "pruning", unit, size)
            for sample, phase, unit, growth, size in rows.tolist()
        ]

    @property
    def n_events_(self) -> int:
        return int(self._header()[kernel.N_EVENTS])

    @property
    def bias2_(self) -> dict[str, float]:
        return self._monitored(kernel.BIAS2)

    @property
    def variance_(self) -> dict[str, float]:
        return self._monitored(kernel.VARIANCE)

    def _monitored(self, quantity: int) -> dict[str, float]:
        return dict(zip(PHASES, kernel.views(self._words()).monitors[:, quantity, kernel.MEAN].tolist(), strict=True))

    @property
    def weights_(self) -> dict[str, Floats]:
        net = kernel.views(self._words())
        n, r, m = net.header[kernel.N_FEATURES : kernel.N_CLASSES + 1]
        outputs = self._classes.outputs[self._classes.outputs < m]  # in the order of classes_
        return {
            "encoder": net.encoder[:n, :r].copy(),
            "encoder_bias": net.encoder_bias[:r].copy(),
            "decoder_bias": net.decoder_bias[:n].copy(),
            "output": net.output[outputs, :r].T.copy(),
            "output_bias": net.output_bias[outputs],
        }

    @property
    def _n_features_out(self) -> int:
        return self.n_hidden_

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        text: str = super().__repr__(N_CHAR_MAX)
        if not self.__sklearn_is_fitted__():
            return text
        return (
            f"<{text}: {self.n_features_in_} features, {self.n_hidden_} hidden units, {len(self._classes)} classes "
            f"after {self.n_seen_:,} samples>"
        )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        # From one unit, one pass over a few hundred samples: enough with standardised inputs, not with min-max.
        tags.classifier_tags.poor_score = self.scaling != "standard"
        return tags

    # --- Keeping -------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the model in one file; :meth:`load` continues it bit for bit."""
        modelfile.save(path, self)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """The model in a file that :meth:`save` wrote. Nothing in the file is executed."""
        return modelfile.load(path, cls)


def compile_kernel() -> None:
    """Compile the kernel, or load it from the cache, so that no later call has to."""
    X, y = np.array([[0.0], [1.0]]), np.array([0, 1])
    DEVDAN().partial_fit(X, y).predict(X)
