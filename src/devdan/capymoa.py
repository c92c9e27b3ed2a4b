"""CapyMOA adapter: DEVDAN reads features and classes from the schema, and each instance is a chunk."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

try:
    from capymoa.base import Classifier, ClassifierSSL
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("devdan.capymoa needs CapyMOA: pip install 'devdan[capymoa]'", name=error.name) from error
from capymoa.stream import Schema
from sklearn.utils import check_random_state

from devdan.arrays import Floats
from devdan.encoding.encoding import Encoding
from devdan.encoding.rows import Rows, Texts, distinct
from devdan.encoding.values import Vocabulary
from devdan.kernel.state import Event
from devdan.model import options
from devdan.model.notebook import EventList
from devdan.model.online import OnlineMixture, finite
from devdan.model.scales import SCALES

if TYPE_CHECKING:
    from capymoa.core import Instance, LabeledInstance
    from typing_extensions import Unpack

    from devdan.model.options import OnlineOptions


@options.documented
class DEVDANClassifier(Classifier):  # type: ignore[misc]
    """Evolving denoising autoencoder with a softmax layer, for data streams.

    Each instance is predicted and learned from on its own: the generative phase, then the discriminative phase. If the
    label is missing, only the generative phase learns. Features may be missing; each value of a nominal feature has an
    input of its own.

    Parameters
    ----------
    schema : Schema
        Features and classes of the stream.
    random_seed : int, default=1
        Seed of the model's own random generator.
    ensemble : bool, default=False
        Whether the networks are those of a ``DEVDANEnsemble``, which leaves out ``n_hidden`` and ``rehearse``: more
        accurate, but slower.
    {online options}

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

    @options.takes_options
    def __init__(
        self,
        schema: Schema,
        random_seed: int = 1,
        *,
        ensemble: bool = False,
        **chosen: Unpack[OnlineOptions],
    ) -> None:
        super().__init__(schema, random_seed)
        if not isinstance(schema, Schema) or not schema.is_classification() or schema.get_num_attributes() == 0:
            raise ValueError(f"schema must describe a stream with features and classes, got {schema!r}")
        self._online = OnlineMixture(SCALES if ensemble else None, **options.online(chosen))
        check_random_state(random_seed)  # it is used only when the first instance comes
        self._seed = random_seed
        header, nominal_values = schema.get_moa_header(), schema.get_nominal_attributes()
        places = [k for k in range(header.numAttributes()) if k != header.classIndex()]
        self._names = distinct([str(header.attribute(k).name()) for k in places])
        known = [str(header.attribute(k).name()) for k in places]
        self._values = {k: Vocabulary(nominal_values[name]) for k, name in enumerate(known) if name in nominal_values}

    def train(self, instance: LabeledInstance) -> None:
        """Learn from an instance: both phases, or only the generative phase if there is no label."""
        code, n_classes = instance.y_index, self.schema.get_num_classes()
        if code >= n_classes:
            raise ValueError(f"y_index must be less than {n_classes}, the schema's number of classes, got {code}")
        row = self._new_row(instance)
        if code < 0:  # CapyMOA's code for a missing label
            self._online.observe(row)
        else:
            self._online.learn(row, code)

    def predict_proba(self, instance: Instance) -> Floats | None:
        """The probability of each class in the schema; None before the first label."""
        rows = self._rows(instance)
        if self._online.n_taught == 0:
            return None
        row = self._online.inputs(rows)
        probabilities: Floats = self._online.predict(row, self.schema.get_num_classes())[0]
        return probabilities

    def predict(self, instance: Instance) -> int | None:
        """The place of the label in the schema, as the option ``decide`` says; None before the first label."""
        probabilities = self.predict_proba(instance)
        if probabilities is None:
            return None
        return self._online.decision.places(probabilities[None], self.schema.get_label_values()).item()

    @property
    def drift(self) -> str | None:
        """The drift signalled by the latest learned instance: "real", "virtual" or None."""
        return self._online.drift

    @property
    def events_(self) -> EventList[Event]:
        """The latest growths, prunings and drifts, at most 1,000."""
        return EventList(self._online.events)

    @property
    def encoding_(self) -> Encoding:
        """What became of each feature: its kind and values, or why it was left out."""
        return self._online.encoding

    def _new_row(self, instance: LabeledInstance | Instance) -> Floats:
        """The features of an instance, in the form that the kernel needs; inputs that it needs are added."""
        begins = self._online.mixture is None
        inputs = self._online.new_inputs(self._rows(instance), self._seed, self.schema.get_num_classes())
        if begins:
            for code, label in enumerate(self.schema.get_label_values()):
                self._online.add_class(code, label)
        return inputs

    def _rows(self, instance: Instance) -> Rows:
        """An instance as a table of one row."""
        x = instance.x
        if x.shape != (len(self._names),):
            raise ValueError(f"x must have the schema's {len(self._names)} features, got shape {x.shape}")
        row = finite(np.asarray(x, dtype=np.float64)[None])
        if not self._values:
            return Rows(self._names, row)
        numbers = [k for k in range(len(self._names)) if k not in self._values]
        texts = {k: _text(row[0, k], vocabulary) for k, vocabulary in self._values.items()}
        return Rows(self._names, row[:, numbers], texts)


def _text(code: float, vocabulary: Vocabulary) -> Texts:
    """A nominal value, which CapyMOA gives as its place among those declared."""
    place = -1 if np.isnan(code) else int(code)
    if place >= len(vocabulary):
        raise ValueError(f"x has the nominal value {place}, but the schema has only {len(vocabulary)} of them")
    return Texts(np.array([place]), vocabulary, declared=True)


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
        self._online.observe(self._new_row(instance))
