"""DEVDAN, the model: one network, or several layers of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state

from devdan import kernel
from devdan.arrays import Floats, Words
from devdan.kernel import DISCRIMINATIVE, Network
from devdan.kernel.state import ROOM, scratch_for
from devdan.model import layers, options
from devdan.model.classes import Classes
from devdan.model.evolving import EvolvingClassifier
from devdan.model.scales import QUICK, REHEARSED, Scale, mixed, new_network
from devdan.model.training import shuffled, trained

if TYPE_CHECKING:
    from typing_extensions import Self


class DEVDAN(ClassNamePrefixFeaturesOutMixin, TransformerMixin, EvolvingClassifier):  # type: ignore[misc]
    """Evolving denoising autoencoder with a softmax layer, for data streams.

    It reads a stream once, starts from one hidden unit, and grows and prunes its hidden layer based on estimates of
    bias² and variance. Unlabelled samples train the autoencoder (:meth:`observe`, the generative phase), labelled ones
    the classifier (:meth:`teach`, the discriminative phase); :meth:`partial_fit` does both. NaN means missing.

    Beside it, a second network with more hidden units, which does not evolve, revisits recent labelled samples
    (``rehearse``). Predictions mix both by their recent losses, so that each counts where it is the better one.

    Invalid samples, labels, options or files raise a ``ValueError`` or a ``TypeError`` (including their subclasses
    ``NotFittedError`` and ``ModelFileError``) and leave the model unchanged.

    Parameters
    ----------
    n_hidden : int, default=1
        Initial number of hidden units.
    initial_weights : dict, default=None
        Initial weights, in the form of :attr:`weights_`: ``encoder`` and any of the others. They take precedence over
        ``n_hidden``.
    masking : float in [0, 1), default=0.1
        Share of the features that the generative phase masks (at least one feature); 0 gives a plain autoencoder.
    scaling : {"standard", "minmax", None}, default="standard"
        How features are scaled, learned online from the samples seen so far; ``None`` is for data in [0, 1].
    shuffle : bool, default=True
        Visit the samples of a chunk in random order.
    interleave : bool, default=False
        In ``partial_fit``, alternate between observing and teaching sample by sample instead of chunk by chunk.
    generative : bool, default=True
        Whether unlabelled samples train the autoencoder: the generative phase.
    grow : bool, default=True
        Whether hidden units are added.
    prune : bool, default=True
        Whether hidden units are removed.
    scope : {"fixed", "adaptive"}, default="fixed"
        Range of a new unit's random weights: fixed, or widened until the unit helps.
    generative_learning_rate : float in [0, 1], default=0.0003
        Step size of the generative phase.
    learning_rate : float in [0, 1], default=0.04
        Step size of the discriminative phase.
    optimizer : {"adaptive", "momentum"}, default="adaptive"
        Optimizer of the discriminative phase: a learning rate that adapts to each unit, or momentum.
    momentum : float in [0, 1), default=0.9
        Momentum of the discriminative phase, if ``optimizer="momentum"``.
    averaging : float in [0, 1), default=0.998
        Decay, per labelled sample, of the exponential averages of the weights. Predictions mix the current and the
        averaged weights by how well each did recently; 0 turns averaging off.
    class_weight : {"balanced", None} or dict, default=None
        Weights of the classes in the loss of the discriminative phase. ``"balanced"`` weighs a class by how rare it was
        among the latest 10,000 labels or so; a dict gives weights by class, 1 if a class is not in it.
    rehearse : int, default=5
        How many of the latest 1,000 labelled samples are revisited for each new one, by a second network, which starts
        from 24 hidden units. Predictions mix both networks by how well each did recently. 0 leaves it out: less
        accurate on short or curved streams, but more than twice as fast.
    calibrate : bool, default=True
        Whether probabilities are made as sure as predictions turned out right, by a temperature that follows recent
        labels. Labels are predicted as without it.
    n_layers : int or "auto", default=1
        Number of layers. Each layer above the first is another such network, whose inputs are the features and the
        hidden units of the layer below. The layers' predictions are mixed by how well each did recently. ``"auto"``
        keeps one more layer than needed.
    nominal : list of str, default=None
        Columns that hold categories although they look like numbers, dates or ids.
    numeric : list of str, default=None
        Columns that hold numbers: texts are read as numbers, dates as seconds, and one that only ever rises is kept.
    dates : list of str or dict, default=None
        Columns that hold dates, and if they are not in ISO 8601, how they are written: a dict such as
        ``{"born": "dd/mm/yyyy", "sent": "epoch"}``.
    drop : list of str, default=None
        Columns that are left out.
    max_categories : int, default=64
        How many values of a nominal column have an input of their own; further ones share a quarter as many.
    random_state : int, RandomState or None, default=None
        Seed of the model's own random generator. The same seed gives the same bits.

    Attributes
    ----------
    classes_ : the classes seen so far, sorted.
    n_features_in_, feature_names_in_ : number of columns of X and, if X had them, their names.
    encoding_ : what became of each column: its kind and values, or why it was left out.
    n_hidden_, n_layers_ : current number of hidden units in all layers, and of layers. The second network, which
        rehearses and does not evolve, is not counted.
    n_parameters_ : current number of parameters, R(n + 1) + m(R + 1), without the decoder's offsets; of all networks. A
        unit that sees its n features through F fields has nF + 1 of them instead of n + 1.
    shares_ : the share of each network in the next prediction: of each layer, then of the network that rehearses.
    n_seen_ : samples seen so far.
    events_, n_events_ : the latest growths, prunings and drifts, at most 1,000 per layer, and their total number.
    growths_, prunings_, drifts_ : dict, their number in each phase.
    bias2_, variance_ : dict, the running means in each phase, which the growing and pruning conditions use.
    importances_ : dict, how much each column matters now, by its name; shares of 1.
    units_ : what each hidden unit of each network stands for, as a list of :class:`devdan.Unit`.
    weights_ : dict of copies: ``encoder`` (n_features, n_hidden), the paper's W, ``encoder_bias``, ``decoder_bias``,
        ``output`` (n_hidden, n_classes), its columns in the order of ``classes_``, and ``output_bias``; of the first
        layer.

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

    def __init__(
        self,
        *,
        n_hidden: int = 1,
        initial_weights: dict[str, npt.ArrayLike] | None = None,
        masking: float = 0.1,
        scaling: str | None = "standard",
        shuffle: bool = True,
        interleave: bool = False,
        generative: bool = True,
        grow: bool = True,
        prune: bool = True,
        scope: str = "fixed",
        generative_learning_rate: float = 0.0003,
        learning_rate: float = 0.04,
        optimizer: str = "adaptive",
        momentum: float = 0.9,
        averaging: float = 0.998,
        class_weight: str | dict[Any, float] | None = None,
        rehearse: int = 5,
        calibrate: bool = True,
        n_layers: int | str = 1,
        nominal: Sequence[str] | None = None,
        numeric: Sequence[str] | None = None,
        dates: Sequence[str] | Mapping[str, str] | None = None,
        drop: Sequence[str] | None = None,
        max_categories: int = 64,
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
        self.optimizer = optimizer
        self.momentum = momentum
        self.averaging = averaging
        self.class_weight = class_weight
        self.rehearse = rehearse
        self.calibrate = calibrate
        self.n_layers = n_layers
        self.nominal = nominal
        self.numeric = numeric
        self.dates = dates
        self.drop = drop
        self.max_categories = max_categories
        self.random_state = random_state

    @classmethod
    def paper(cls, **changed: Any) -> Self:
        """A model with the paper's settings, for data in [0, 1]; ``options`` override them."""
        return cls(**{**options.PAPER, **changed})

    # --- Learning ------------------------------------------------------------------------------------------------

    def _options(self) -> dict[str, Any]:
        chosen = {name: getattr(self, name) for name in options.NAMES}
        if isinstance(self.class_weight, dict):
            chosen["class_weight"] = dict(self.class_weight)  # a copy, so that changes inside are noticed
        return chosen

    def _begin(self, classes: Classes, n_named: int) -> None:
        n = self._n_inputs
        given = {}
        if self.initial_weights is not None:
            given = options.check_initial_weights(self.initial_weights, n, n_named)
        n_hidden = given["encoder"].shape[1] if given else int(self.n_hidden)
        seeds = check_random_state(self.random_state).randint(np.iinfo(np.int64).max, size=2, dtype=np.int64)
        first = Scale(max(n_hidden, int(self.n_hidden)))  # further layers start with as many
        state = new_network(n, len(classes), first, int(seeds[0]))
        net = Network(state)
        if given:
            net.n_hidden = n_hidden
            net.n_classes = n_named if "output" in given else 0
        for name, weights in given.items():
            array = weights.T if name == "output" else weights
            place = tuple(slice(length) for length in array.shape)
            getattr(net, name)[place] = array
            if name != "decoder_bias":
                getattr(net, f"{name}_slow")[place] = array
        self._layers = [state]
        self._rehearsed = [new_network(n, len(classes), self._rehearsal, int(seeds[1]))] if self.rehearse else []

    @property
    def _rehearsal(self) -> Scale:
        return REHEARSED._replace(rehearse=int(self.rehearse))

    @property
    def _networks(self) -> list[Floats]:
        return [*self._layers, *self._rehearsed]

    def _take(self, networks: list[Floats]) -> None:
        n_layers = len(networks) - int(self._chosen["rehearse"] > 0)
        self._layers, self._rehearsed = networks[:n_layers], networks[n_layers:]

    def _settings(self) -> list[dict[str, float]]:
        settings = options.settings(self._chosen)
        if not self._rehearsed:
            return [settings] * len(self._layers)
        if self._chosen["n_layers"] == 1:
            settings = mixed(settings, QUICK) | {"start": settings["start"]}
        return [settings] * len(self._layers) + [mixed(settings, self._rehearsal)]

    def _visit(self, X: Floats, codes: Words, weights: Floats, first: int, last: int) -> None:
        if self.interleave or len(X) == 1:  # of one sample, both phases at once are the same
            self._visit_networks(X, codes, weights, first, last)
        else:
            for phase in range(first, last + 1):
                self._visit_networks(X, codes, weights, phase, phase)

    def _visit_networks(self, X: Floats, codes: Words, weights: Floats, first: int, last: int) -> None:
        """Train each network on each sample, in the same order."""
        order = shuffled(self._layers[0], len(X), self.shuffle)
        for k, state in enumerate(self._rehearsed):
            self._rehearsed[k] = trained(state, X, codes, weights, order, first, last)
        if self.n_layers == 1:
            self._layers[0] = trained(self._layers[0], X, codes, weights, order, first, last)
        else:
            self._visit_layers(X, codes, weights, order, first, last)

    def _visit_layers(self, X: Floats, codes: Words, weights: Floats, order: Words, first: int, last: int) -> None:
        """Train each layer, from the bottom up."""
        if last == DISCRIMINATIVE:
            for state, inputs in zip(self._layers, self._layer_inputs(X), strict=True):
                kernel.assess(state, scratch_for(state), inputs, codes, weights, order)
        n, n_taught, inputs = X.shape[1], int(self._first().n_learned[DISCRIMINATIVE]), X
        depth = layers.depth(self._layers) if self.n_layers == "auto" else int(self.n_layers)
        del self._layers[depth:]
        try:
            for k in range(depth):
                if k == len(self._layers):
                    self._layers.append(layers.new_layer(self._layers, n, ROOM, n_taught))
                if k > 0:
                    self._layers[k] = layers.followed(self._layers[k], self._layers[k - 1], n)
                    inputs = layers.features(X, self._layers[k - 1], inputs)
                self._layers[k] = trained(self._layers[k], inputs, codes, weights, order, first, last)
        finally:  # the layers must stay consistent even after Ctrl-C
            self._layers = layers.fitting(self._layers, n)

    def _check_networks(self, networks: list[Floats]) -> None:
        n_rehearsed = int(self._chosen["rehearse"] > 0)
        n_layers = len(networks) - n_rehearsed
        if n_layers < 1 or (self.n_layers != "auto" and n_layers > int(self.n_layers)):
            raise ValueError("it has more or fewer layers than n_layers and rehearse allow")
        reaches = [REHEARSED.reach] * n_rehearsed
        if any(Network(state).max_samples for state in networks[:n_layers]) or reaches != [
            Network(state).max_samples for state in networks[n_layers:]
        ]:
            raise ValueError("its networks remember other samples than they rehearse")
        for below, state in pairwise(networks[:n_layers]):
            lower, upper = Network(below), Network(state)
            fits = upper.n_features == self._n_inputs + lower.n_hidden and upper.n_followed == lower.n_events
            if not fits or upper.max_classes != lower.max_classes:
                raise ValueError("its layers are inconsistent")
        fitting = self._n_inputs, Network(networks[0]).max_classes
        if any((net.n_features, net.max_classes) != fitting for net in map(Network, networks[n_layers:])):
            raise ValueError("its networks are inconsistent")

    # --- Prediction ----------------------------------------------------------------------------------------------

    def _network_inputs(self, X: Floats) -> list[Floats]:
        return self._layer_inputs(X) + [X] * len(self._rehearsed)

    def _layer_inputs(self, X: Floats) -> list[Floats]:
        """The inputs of each layer."""
        seen = [X]
        for state in self._layers[:-1]:
            seen.append(layers.features(X, state, seen[-1]))
        return seen

    def transform(self, X: npt.ArrayLike) -> Floats:
        """The hidden units' activations for each sample, layer by layer."""
        self._check_is_fitted()
        X = self._inputs(X)
        hidden = [
            self._use(kernel.transform, state, inputs, Network(state).n_hidden)
            for state, inputs in zip(self._layers, self._layer_inputs(X), strict=True)
        ]
        return hidden[0] if len(hidden) == 1 else np.hstack(hidden)

    def reconstruct(self, X: npt.ArrayLike) -> Floats:
        """Reconstruct each sample, with missing features filled in, in the units of ``X``.

        A feature that has never been seen stays NaN. With several layers, the first layer reconstructs. For a table,
        its inputs are reconstructed, as :meth:`encode` returns them.
        """
        self._check_is_fitted()
        X = self._inputs(X)
        return self._use(kernel.reconstruct, self._layers[0], X, X.shape[1])

    def _use(self, function: Callable[..., None], state: Floats, X: Floats, width: int) -> Floats:
        """Apply a kernel function to each sample."""
        out = np.zeros((len(X), width))
        function(state, scratch_for(state), X, out)
        return out

    # --- Fitted attributes ---------------------------------------------------------------------------------------

    @property
    def n_layers_(self) -> int:
        self._check_is_fitted()
        return len(self._layers)

    @property
    def n_hidden_(self) -> int:
        self._check_is_fitted()
        return sum(Network(state).n_hidden for state in self._layers)

    @property
    def n_seen_(self) -> int:
        return self._first().n_seen

    @property
    def weights_(self) -> dict[str, Floats]:
        net = self._first()
        n, r, m = net.n_features, net.n_hidden, net.n_classes
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
