"""DEVDAN, the model: the paper's evolving network, and beside it one that replays recent labelled samples."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from devdan import kernel
from devdan.arrays import Floats
from devdan.kernel import Evolving
from devdan.kernel.state import scratch_for
from devdan.model import options
from devdan.model.classifier import EvolvingClassifier
from devdan.model.estimator import Chunk
from devdan.model.mixture import Mixture
from devdan.model.scales import QUICK, REPLAYING, Scale

if TYPE_CHECKING:
    from typing_extensions import Self


@options.documented
class DEVDAN(ClassNamePrefixFeaturesOutMixin, TransformerMixin, EvolvingClassifier):  # type: ignore[misc]
    """Evolving denoising autoencoder with a softmax layer, for data streams.

    It reads a stream once, starts from one hidden unit, and grows and prunes its hidden layer based on estimates of
    bias² and variance. Unlabelled samples train the autoencoder (:meth:`observe`, the generative phase), labelled ones
    the classifier (:meth:`teach`, the discriminative phase); :meth:`partial_fit` does both. NaN means missing.

    Beside it, a second network with more hidden units, which does not evolve, replays recent labelled samples
    (``rehearse``). Predictions mix both by their recent losses, so that each counts where it is the better one.

    Invalid samples, labels, options or files raise a ``ValueError`` or a ``TypeError`` (including their subclasses
    ``NotFittedError`` and ``ModelFileError``) and leave the model unchanged.

    Parameters
    ----------
    {options}
    initial_weights : dict, default=None
        Initial weights, in the form of :attr:`weights_`: ``encoder`` and any of the others. They take precedence over
        ``n_hidden``.
    random_state : int, RandomState or None, default=None
        Seed of the model's own random generator. The same seed gives the same bits.

    Attributes
    ----------
    classes_ : the classes seen so far, sorted.
    n_features_in_, feature_names_in_ : number of columns of X and, if X had them, their names.
    encoding_ : what became of each column: its kind and values, or why it was left out.
    n_hidden_ : current number of hidden units of the evolving network. The second network, which replays samples and
        does not evolve, has 24 more.
    n_parameters_ : current number of parameters, R(n + 1) + m(R + 1), without the decoder's offsets; of all networks. A
        unit that sees its n features through F fields has nF + 1 of them instead of n + 1.
    network_weights_ : the weight of each network in the next prediction: of the evolving one, then of the one that
        replays samples.
    mixture_ : the networks themselves, as a :class:`devdan.model.mixture.Mixture`.
    n_seen_, n_taught_ : samples seen, and labels learned, so far.
    events_, n_events_ : the latest growths, prunings and drifts, at most 1,000, and their total number.
    growths_, prunings_, drifts_ : dict, their number in each phase.
    bias2_, variance_ : dict, the running means in each phase, which the growing and pruning conditions use.
    importances_ : dict, how much each column matters now, by its name; shares of 1.
    units_ : what each hidden unit of each network stands for, as a list of :class:`devdan.Unit`.
    weights_ : dict of copies: ``encoder`` (n_features, n_hidden), the paper's W, ``encoder_bias``, ``decoder_bias``,
        ``output`` (n_hidden, n_classes), its columns in the order of ``classes_``, and ``output_bias``; of the
        evolving network.

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
        annealing: float | None = None,
        optimizer: str = "adaptive",
        momentum: float = 0.9,
        averaging: float = 0.998,
        class_weight: str | dict[Any, float] | None = None,
        rehearse: int = 5,
        calibrate: bool = True,
        decide: str | Mapping[Any, Any] = "likeliest",
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
        self.annealing = annealing
        self.optimizer = optimizer
        self.momentum = momentum
        self.averaging = averaging
        self.class_weight = class_weight
        self.rehearse = rehearse
        self.calibrate = calibrate
        self.decide = decide
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

    def _scales(self) -> list[Scale]:
        first = QUICK._replace(n_hidden=int(self.n_hidden))
        return [first, REPLAYING._replace(replays=int(self.rehearse))] if self.rehearse > 0 else [first]

    def _new_mixture(self, chosen: dict[str, Any], chunk: Chunk) -> Mixture:
        mixture = super()._new_mixture(chosen, chunk)
        if self.initial_weights is not None:
            n_inputs, n_named = chunk.X.shape[1], chunk.n_named
            weights = options.check_initial_weights(self.initial_weights, n_inputs, n_named)
            mixture.start_from(weights, n_named)
        return mixture

    # --- Hidden units --------------------------------------------------------------------------------------------

    def transform(self, X: npt.ArrayLike) -> Floats:
        """The activations of the evolving network's hidden units, one row per sample."""
        return self._first_network(kernel.transform, X, self.n_hidden_)

    def reconstruct(self, X: npt.ArrayLike) -> Floats:
        """Reconstruct each sample, with missing features filled in, in the units of measure of ``X``.

        A feature that has never been seen stays NaN. For a table, its inputs are reconstructed, as :meth:`encode`
        returns them.
        """
        return self._first_network(kernel.reconstruct, X, self._fitted().n_inputs)

    def _first_network(self, function: Callable[..., None], X: npt.ArrayLike, width: int) -> Floats:
        """Apply a kernel function of the evolving network to each sample."""
        inputs, state = self._inputs(X), self.mixture_.networks[0]
        out = np.zeros((len(inputs), width))
        function(state, scratch_for(state), inputs, out)
        return out

    # --- Fitted attributes ---------------------------------------------------------------------------------------

    @property
    def n_hidden_(self) -> int:
        return self._fitted().nets[0].n_hidden

    @property
    def weights_(self) -> dict[str, Floats]:
        net = self._fitted().nets[0]
        assert isinstance(net, Evolving)
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
