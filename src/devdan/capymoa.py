"""CapyMOA adapter: DEVDAN reads features and classes from the schema, and each instance is a chunk."""

from __future__ import annotations

from typing import TYPE_CHECKING

try:
    from capymoa.base import Classifier, ClassifierSSL
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("devdan.capymoa needs CapyMOA: pip install 'devdan[capymoa]'", name=error.name) from error
from capymoa.stream import Schema

from devdan.arrays import Floats
from devdan.model.kernel import DISCRIMINATIVE
from devdan.model.online import OnlineNetwork, finite
from devdan.model.state import Event

if TYPE_CHECKING:
    from capymoa.core import Instance, LabeledInstance


class DEVDANClassifier(Classifier):  # type: ignore[misc]
    """Evolving denoising autoencoder with a softmax layer, for data streams.

    Each instance is predicted and learned from on its own: the generative phase, then the discriminative phase. If the
    label is missing, only the generative phase learns. Features may be missing; nominal features are used as the
    numbers that CapyMOA assigns to them.

    Parameters
    ----------
    schema : Schema
        Features and classes of the stream.
    random_seed : int, default=1
        Seed of the model's own random generator.
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

    Examples
    --------
    >>> from capymoa.evaluation import prequential_evaluation
    >>> from capymoa.stream.generator import SEA
    >>> from devdan.capymoa import DEVDANClassifier
    >>> stream = SEA()
    >>> results = prequential_evaluation(stream, DEVDANClassifier(stream.get_schema()), max_instances=5000)
    >>> results.cumulative.accuracy() > 85
    True
    """

    def __init__(
        self,
        schema: Schema,
        random_seed: int = 1,
        n_hidden: int = 1,
        masking: float = 0.1,
        scaling: str | None = "standard",
        generative: bool = True,
        grow: bool = True,
        prune: bool = True,
        generative_learning_rate: float = 0.0003,
        learning_rate: float = 0.04,
        averaging: float = 0.998,
        class_weight: str | dict[str, float] | None = None,
    ) -> None:
        super().__init__(schema, random_seed)
        if not isinstance(schema, Schema) or not schema.is_classification() or schema.get_num_attributes() == 0:
            raise ValueError(f"schema must describe a stream with features and classes, got {schema!r}")
        self._network = OnlineNetwork(
            n_hidden=n_hidden,
            masking=masking,
            scaling=scaling,
            generative=generative,
            grow=grow,
            prune=prune,
            generative_learning_rate=generative_learning_rate,
            learning_rate=learning_rate,
            averaging=averaging,
            class_weight=class_weight,
        )
        self._network.begin(schema.get_num_attributes(), random_seed, n_named=schema.get_num_classes())
        for code, label in enumerate(schema.get_label_values()):
            self._network.add_class(code, label)

    def train(self, instance: LabeledInstance) -> None:
        """Learn from an instance: both phases, or only the generative phase if there is no label."""
        code, n_classes = instance.y_index, self.schema.get_num_classes()
        if code >= n_classes:
            raise ValueError(f"y_index must be less than {n_classes}, the schema's number of classes, got {code}")
        row = self._row(instance)
        if code < 0:  # CapyMOA's code for a missing label
            self._network.observe(row)
        else:
            self._network.learn(row, code)

    def predict_proba(self, instance: Instance) -> Floats | None:
        """The probability of each class in the schema; None before the first label."""
        row = self._row(instance)
        if self._network.net.n_learned[DISCRIMINATIVE] == 0:
            return None
        probabilities: Floats = self._network.predict_proba(row, self.schema.get_num_classes())[0]
        return probabilities

    @property
    def drift(self) -> str | None:
        """The drift signalled by the latest learned instance: "real", "virtual" or None."""
        return self._network.drift

    @property
    def events_(self) -> list[Event]:
        """The latest growths, prunings and drifts, at most 1,000."""
        return self._network.events

    def _row(self, instance: Instance) -> Floats:
        """The features of an instance, in the form that the kernel needs."""
        x, row = instance.x, self._network.row
        if x.shape != row.shape[1:]:
            raise ValueError(f"x must have the schema's {row.shape[1]} features, got shape {x.shape}")
        row[0] = x
        return finite(row)


class DEVDANClassifierSSL(DEVDANClassifier, ClassifierSSL):  # type: ignore[misc]
    """:class:`DEVDANClassifier` for CapyMOA's semi-supervised evaluation, which also passes instances without labels.

    An instance whose label comes late is observed when it arrives, and again with its label.

    Examples
    --------
    >>> from capymoa.evaluation import prequential_ssl_evaluation
    >>> from capymoa.stream.generator import SEA
    >>> from devdan.capymoa import DEVDANClassifierSSL
    >>> stream = SEA()
    >>> learner = DEVDANClassifierSSL(stream.get_schema())
    >>> results = prequential_ssl_evaluation(stream, learner, 5000, label_probability=0.1, delay_length=100)
    >>> results.cumulative.accuracy() > 75
    True
    """

    def train_on_unlabeled(self, instance: Instance) -> None:
        """Learn from an instance without its label: the generative phase."""
        self._network.observe(self._row(instance))
