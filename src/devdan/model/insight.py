"""What a model of networks tells about its predictions: contributions, importances, hidden units, unusual samples."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from devdan import kernel
from devdan.arrays import Floats, Words
from devdan.kernel import Network
from devdan.kernel.state import scratch_for
from devdan.model import mixture
from devdan.model.anomaly import share_less_unusual
from devdan.model.classes import Classes
from devdan.model.estimator import StreamClassifier
from devdan.model.explanation import Explanation, log_odds
from devdan.model.importance import SAMPLES, importances
from devdan.model.recent import recent_inputs, statistics
from devdan.model.shapley import shapley
from devdan.model.units import UnitList, units_of

_ORDERS = 32


class Insight(StreamClassifier):
    """A classifier made of networks that can be asked why."""

    _networks: Any  # a list of states
    _classes: Classes

    @abstractmethod
    def _network_inputs(self, X: Floats) -> list[Floats]:
        """The inputs of each network."""

    def _probabilities(self, X: Floats) -> Floats:
        """The probability of each class in ``classes_`` for inputs in the form that the kernel needs."""
        outputs = self._classes.outputs
        out = np.zeros((len(X), len(outputs)))
        mixture.add_probabilities(self._networks, self._network_inputs(X), out)
        kernel.temper(self._networks[0], out)
        return out[:, outputs]

    def explain(self, X: npt.ArrayLike, label: Any = None, *, n_orders: int = _ORDERS) -> Explanation:
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
        X = self._inputs(X)
        shares = self._probabilities(X)
        chosen = shares.argmax(axis=1) if label is None else np.full(len(X), classes.index(label))
        neutral = self._neutral()

        def predict(inputs: Floats, samples: Words) -> Floats:
            return log_odds(self._probabilities(inputs), chosen[samples])

        columns = self.encoding_.places
        return Explanation(
            tuple(map(str, columns)),
            shapley(predict, X, neutral, list(columns.values()), int(n_orders)),
            self.classes_[chosen],
            log_odds(shares, chosen),
            predict(np.tile(neutral, (len(X), 1)), np.arange(len(X))),
        )

    def _neutral(self) -> Floats:
        """The inputs of a sample of which nothing is known."""
        if Network(self._networks[0]).scaling == kernel.STANDARD:
            return np.full(self._n_inputs, np.nan)
        return statistics(self._networks)[0]

    @property
    def importances_(self) -> dict[str, float]:
        """How much each column matters now, by its name, as shares of 1; the sum is 0 if predictions depend on none.

        It is how much predictions change, on recent samples, if the column has the values that it has in others.
        """
        return dict(zip(map(str, self.encoding_.columns), self._importances(SAMPLES).tolist(), strict=True))

    def _importances(self, n_samples: int) -> Floats:
        """The importance of each column, asked about this many recent samples."""
        self.classes_  # noqa: B018 (raises an error if there are none)
        recent = recent_inputs(self._networks, n_samples)
        return importances(self._probabilities, recent, list(self.encoding_.places.values()))

    @property
    def units_(self) -> UnitList:
        """What each hidden unit of each network stands for; see :class:`devdan.Unit`."""
        self._check_is_fitted()
        return self._units(self.encoding_.input_names)

    def _units(self, names: Sequence[str]) -> UnitList:
        """What each hidden unit stands for, in these names of the inputs."""
        labels = self._classes.labels[np.argsort(self._classes.outputs)].tolist()
        inputs = self._network_inputs(recent_inputs(self._networks, SAMPLES))
        found = UnitList()
        for k, (state, X) in enumerate(zip(self._networks, inputs, strict=True)):
            n, r = Network(state).n_features, Network(state).n_hidden
            hidden = np.zeros((len(X), r))
            kernel.transform(state, scratch_for(state), X, hidden)
            below = [f"unit {unit} below" for unit in range(n - len(names))]  # of a layer above the first
            found += units_of(state, k, hidden, [*names, *below], labels)
        return found

    def score_samples(self, X: npt.ArrayLike) -> Floats:
        """How usual each sample is, between -1 and 0: minus the share of recent samples that are less unusual.

        The lower, the more abnormal, as scikit-learn's outlier detectors have it: of samples like the recent ones,
        about 1 % are below -0.99. A sample is as unusual as it is far from the nearest of up to 1,000 recent samples
        that are remembered. Where hardly any are (``rehearse=0``), its distance from the mean input counts: then only
        values can be unusual, not their combinations. A value that is missing, or a category that was never seen, is
        not unusual.
        """
        self._check_is_fitted()
        return -share_less_unusual(self._networks, self._inputs(X))
