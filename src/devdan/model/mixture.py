"""The mixture: networks that learn from the same samples and predict together.

This is what every model consists of, whatever its interface: the estimators, the River and CapyMOA classes, the service
and the fleet all learn and predict through it. It takes numbers: rows of inputs, and labels as the numbers of outputs.

A prediction is calibrated (temperature scaling) after it is mixed:

    p = (Σ_k w_k p_k) ^ (1 / T), normalised

Each p_k is the prediction of a network, w_k its weight by recent loss, and T the temperature, learned online.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from devdan import kernel
from devdan.arrays import Floats, Integers
from devdan.encoding.encoding import Encoding
from devdan.kernel import DISCRIMINATIVE, GENERATIVE, Evolving, Network
from devdan.kernel.state import (
    PHASES,
    Event,
    aligned,
    counted,
    events_of,
    n_parameters,
    resized,
    room_for,
    scratch_for,
    set_settings,
    settings_of,
    with_features,
)
from devdan.model import options, threads
from devdan.model.classes import NO_WEIGHTS, Classes, weights_given
from devdan.model.decision import Decision, decision_of
from devdan.model.recent import forget_inputs, keep_unlabelled, withdraw
from devdan.model.scales import Scale, new_network, settings_at

if TYPE_CHECKING:
    from sklearn.utils.random import RandomState
    from typing_extensions import Self

_NO_CODES = np.empty(0, np.int64)
_ONE_ROW = np.zeros(1, np.int64)  # the order in which a single row is visited; nobody writes to it


class Mixture:
    """Networks, what their inputs and outputs stand for, and the options they have.

    >>> from devdan.model.scales import QUICK
    >>> mixture = Mixture(options.defaults(), [QUICK], n_inputs=2, seeds=[1])
    >>> mixture.prepare(classes=Classes().encode(np.array(["low", "high"]))[1])
    >>> X, codes = np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([0, 1])
    >>> mixture.learn(X, codes)
    >>> mixture.predict(X).shape, mixture.n_taught
    ((2, 2), 2)
    """

    networks: list[Floats]  # kernel states
    nets: list[Network]  # the same with their fields by name
    classes: Classes  # what the outputs stand for, unless the owner keeps that itself
    encoding: Encoding | None  # how columns become inputs; None for plain arrays of numbers
    options: dict[str, Any]  # as they were last passed to the networks
    decision: Decision  # which class a sample is called

    def __init__(
        self,
        chosen: Mapping[str, Any],
        scales: Sequence[Scale],
        *,
        n_inputs: int,
        n_outputs: int = 0,
        encoding: Encoding | None = None,
        seeds: Sequence[int],
    ) -> None:
        self.scales, self.encoding, self.classes = tuple(scales), encoding, Classes()
        pairs = zip(scales, seeds, strict=True)
        self._hold([new_network(n_inputs, n_outputs, scale, seed) for scale, seed in pairs])
        self.configure(chosen)

    @classmethod
    def of_networks(
        cls,
        networks: Sequence[Floats],
        chosen: Mapping[str, Any],
        scales: Sequence[Scale],
        *,
        classes: Classes,
        encoding: Encoding | None,
    ) -> Self:
        """A mixture of existing networks."""
        mixture = cls.__new__(cls)
        mixture.scales, mixture.encoding, mixture.classes = tuple(scales), encoding, classes
        mixture.options, mixture.decision = dict(chosen), decision_of(chosen["decide"]).knowing(classes)
        mixture._hold(networks)
        return mixture

    def _hold(self, networks: Sequence[Floats]) -> None:
        self.networks = list(networks)
        self.nets = [Network(state) for state in self.networks]
        self._n_scratch = len(scratch_for(*self.networks))

    def replace(self, k: int, state: Floats) -> None:
        """Use another state of a network from here, such as one that has more room."""
        self.networks[k], self.nets[k] = state, Network(state)
        self._n_scratch = max(self._n_scratch, len(scratch_for(state)))

    def _scratch(self) -> Floats:
        """Scratch space for one sample in any of the networks; threads share none."""
        return np.empty(self._n_scratch)

    def check(self) -> None:
        """Raise a ``ValueError`` unless networks, classes, encoding and options, as from a file, fit together."""
        nets, settings = self.nets, self._settings()
        rooms = [(net.max_samples, net.n_fields) for net in nets]
        if rooms != [(scale.reach, scale.fields) for scale in self.scales]:
            raise ValueError("its networks are not of its scales")
        if len({(net.n_features, net.max_classes) for net in nets}) != 1:
            raise ValueError("its networks are inconsistent")
        if self.encoding is not None and len(self.encoding) != self.n_inputs:
            raise ValueError("encoding and state do not match")
        n_outputs = max(max(net.n_classes, net.n_named) for net in nets)
        if not n_outputs <= len(self.classes) <= nets[0].max_classes:
            raise ValueError("header and state do not match")
        if any(scale.n_hidden > net.max_hidden for scale, net in zip(self.scales, nets, strict=True)):
            raise ValueError("it has no room for its initial hidden units")
        for net, own in zip(nets, settings, strict=True):
            if any(own[name] != value for name, value in settings_of(net).items()):
                raise ValueError("options and states do not match")

    def _settings(self) -> list[dict[str, float]]:
        """The kernel's settings of each network."""
        common = options.settings(self.options) | {
            "mixed": float(len(self.scales) > 1),
        }
        return [common | settings_at(scale) for scale in self.scales]

    def copy(self) -> Self:
        """A mixture that learns on its own from here."""
        copied = self.of_networks(
            [_copied(state) for state in self.networks],
            self.options,
            self.scales,
            classes=self.classes,
            encoding=self.encoding,
        )
        copied.decision = self.decision.copy()
        return copied

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("nets", "_n_scratch")}

    def __setstate__(self, attributes: dict[str, Any]) -> None:
        """Networks from a pickle, or from joblib's read-only memory, in memory of their own."""
        self.__dict__.update(attributes)
        self._hold([_copied(state) for state in self.networks])

    # --- Inputs, outputs and options -----------------------------------------------------------------------------

    def prepare(
        self,
        *,
        chosen: Mapping[str, Any] | None = None,
        classes: Classes | None = None,
        n_named: int = 0,
        encoding: Encoding | None = None,
    ) -> None:
        """Take what is new before learning: options, classes (``n_named`` of them in advance), inputs."""
        if encoding is not None:
            self.adapt(encoding)
        if classes is not None:
            if classes is not self.classes:
                self.classes, self.decision = classes, self.decision.knowing(classes)
            self.make_room(len(classes))
        if chosen is not None or n_named > 0:
            self.configure(self.options if chosen is None else chosen)
        if n_named > 0:
            for net in self.nets:
                net.n_named = n_named

    def configure(self, chosen: Mapping[str, Any]) -> None:
        """Pass options, which were checked, to the networks."""
        if not hasattr(self, "decision") or self.decision.option != chosen["decide"]:
            self.decision = decision_of(chosen["decide"]).knowing(self.classes)
        self.options = dict(chosen)
        for net, settings in zip(self.nets, self._settings(), strict=True):
            set_settings(net, settings)
            net.class_weight[:] = weights_given(self.options["class_weight"], self.classes, net.max_classes)

    def start_from(self, weights: Mapping[str, Floats], n_named: int) -> None:
        """Begin the first network with weights, in the form of ``DEVDAN.weights_``, before it has learned."""
        n_hidden = weights["encoder"].shape[1]
        self.replace(0, resized(self.networks[0], hidden=room_for(n_hidden)))
        net = self.nets[0]
        net.n_hidden, net.n_classes = n_hidden, n_named if "output" in weights else 0
        for name, given in weights.items():
            array = given.T if name == "output" else given
            place = tuple(slice(length) for length in array.shape)
            getattr(net, name)[place] = array
            if name != "decoder_bias":
                getattr(net, f"{name}_slow")[place] = array

    def adapt(self, encoding: Encoding) -> None:
        """Remove the inputs that an encoding has no longer, and add those that are new."""
        before, self.encoding = self.encoding, encoding
        if before is None or before.order == encoding.order:
            return
        gone, n_new = before.changes(encoding)
        n_new -= len(before) == 0  # a network without columns has one input, which nothing fills
        self._hold([with_features(state, gone, n_new) for state in self.networks])

    def make_room(self, n_outputs: int) -> None:
        """Make room for this many outputs in every network."""
        room = self.nets[0].max_classes
        if n_outputs > room:
            self._hold([resized(state, classes=max(n_outputs, 2 * room)) for state in self.networks])

    # --- Learning ------------------------------------------------------------------------------------------------

    def learn(
        self,
        X: Floats,
        codes: Integers,
        weights: Floats = NO_WEIGHTS,
        first: int = GENERATIVE,
        last: int = DISCRIMINATIVE,
    ) -> None:
        """Learn from a chunk in the phases ``first`` to ``last``, as the options ``shuffle`` and ``interleave`` say.

        Predictions for some of the rows calibrate the mixture before their labels are learned. Networks learn in
        threads if that is faster (``n_jobs``); the result does not depend on it.
        """
        self._decide(X, codes, first, last)
        if last == DISCRIMINATIVE:
            self._calibrate(X, codes, weights, self._due(len(X)))
        together = self.options["interleave"] or len(X) == 1  # of one row, both ways are the same
        passes = [(first, last)] if together else [(phase, phase) for phase in range(first, last + 1)]

        def learn(k: int) -> None:
            for begin, end in passes:
                order = _in_order(len(X))
                if self.options["shuffle"] and len(X) > 1:
                    kernel.shuffle(self.nets[k].random, order)
                self._visit(k, X, codes, weights, order, len(X), begin, end)

        n_visits = len(X) * sum(1 + scale.replays for scale in self.scales)
        n_threads = threads.n_threads(self.options.get("n_jobs", 1), n_visits)
        if n_threads == 1:
            for k in range(len(self.networks)):
                learn(k)
        else:
            costly_first = sorted(range(len(self.scales)), key=lambda k: -math.prod(self.scales[k][:2]))
            threads.run([partial(learn, k) for k in costly_first], n_threads)
        if last == GENERATIVE:
            keep_unlabelled(self.networks, X)

    def _visit(
        self, k: int, X: Floats, codes: Integers, weights: Floats, order: Integers, chunk: int, first: int, last: int
    ) -> None:
        """Let a network visit rows, in chunks of this size, with more room for hidden units whenever it needs some."""
        done = 0
        while True:
            state = self.networks[k]
            done = kernel.learn(state, self._scratch(), X, codes, weights, order, chunk, done, first, last)
            if done == len(order):
                return
            self.replace(k, resized(state, hidden=room_for(2 * self.nets[k].max_hidden)))

    def _decide(self, X: Floats, codes: Integers, first: int, last: int) -> None:
        if self.decision.learns and self.n_taught > 0:
            self.follow(self.predict(X, self.nets[0].n_classes), codes, first, last)

    def follow(self, predicted: Floats, codes: Integers, first: int, last: int) -> None:
        """Let the decision know of rows, and of labels, what they were predicted before they are learned from."""
        self.decision.follow(predicted, first == GENERATIVE, codes if last == DISCRIMINATIVE else None)

    def learn_each(self, X: Floats, codes: Integers, weights: Floats, last: int) -> None:
        """Learn from each row as a chunk of its own: observed and, up to ``last``, taught."""
        if self.decision.learns and len(X) > 1:
            for row in range(len(X)):
                self.learn_each(X[row : row + 1], codes[row : row + 1], weights[row : row + 1], last)
            return
        self._decide(X, codes, GENERATIVE, last)
        done = 0
        if last == DISCRIMINATIVE:
            for row in self._due(len(X)).tolist():
                self._visit_each(X[done:row], codes[done:row], weights[done:row], last)
                self._calibrate(X, codes, weights, np.array([row]))
                done = row
        self._visit_each(X[done:], codes[done:], weights[done:], last)

    def _visit_each(self, X: Floats, codes: Integers, weights: Floats, last: int) -> None:
        order = _in_order(len(X))
        for k in range(len(self.networks)):
            self._visit(k, X, codes, weights, order, 1, GENERATIVE, last)

    def _due(self, n_rows: int) -> Integers:
        """Of rows whose labels are about to be learned, those whose predictions calibrate the mixture."""
        ahead = kernel.until_compared(self.networks[0])
        return np.arange(ahead, n_rows, kernel.COMPARED_EVERY) if ahead < n_rows else _NO_CODES

    def _calibrate(self, X: Floats, codes: Integers, weights: Floats, rows: Integers) -> None:
        if len(rows) > 0:
            out = np.zeros((len(rows), self.nets[0].n_classes))
            self._mix(X[rows], out)
            kernel.calibrate(self.networks[0], out, codes[rows], weights[rows] if len(weights) > 0 else weights)

    def forget(self, X: Floats, codes: Integers | None) -> None:
        """Take samples out of the buffers: with codes, as they were taught; without, as they were observed."""
        if codes is None:
            forget_inputs(self.networks, X)
        else:
            if self.decision.learns and self.n_taught > 0:
                self.decision.forget(self.predict(X), codes)
            withdraw(self.networks, X, codes)

    # --- Prediction ----------------------------------------------------------------------------------------------

    def predict(self, X: Floats, n_outputs: int | None = None) -> Floats:
        """The probability of each output, one row per row of inputs; of the classes, unless told how many there are."""
        out = np.zeros((len(X), len(self.classes) if n_outputs is None else n_outputs))
        self._mix(X, out)
        kernel.temper(self.networks[0], out)
        return out

    def predict_proba(self, X: Floats) -> Floats:
        """:meth:`predict` with a column for each class, in the order of the sorted classes."""
        probabilities: Floats = self.predict(X)[:, self.classes.outputs]
        return probabilities

    def _mix(self, X: Floats, out: Floats) -> None:
        """Add up the predictions of the networks, each times its weight."""
        scratch = self._scratch()
        for state, weight in zip(self.networks, self.network_weights, strict=True):
            if weight > kernel.NEGLIGIBLE:
                kernel.predict_proba(state, scratch, X, out, weight)

    @property
    def network_weights(self) -> list[float]:
        """The weight of each network in a prediction, by its recent loss; the sum is 1, or 0 before the first label."""
        if len(self.networks) == 1:
            return [1.0]
        evidence = [kernel.weigh(state) for state in self.networks]
        most = max(evidence)
        if most == -math.inf:  # no label was taught yet
            return [0.0] * len(evidence)
        weights = [math.exp(one - most) for one in evidence]
        total = sum(weights)
        return [weight / total for weight in weights]

    # --- What has become of it -----------------------------------------------------------------------------------

    @property
    def n_inputs(self) -> int:
        return self.nets[0].n_features

    @property
    def n_seen(self) -> int:
        """Samples seen so far."""
        return self.nets[0].n_seen

    @property
    def n_taught(self) -> int:
        """Labels learned so far."""
        return int(self.nets[0].n_learned[DISCRIMINATIVE])

    @property
    def n_parameters(self) -> int:
        return sum(map(n_parameters, self.nets))

    @property
    def n_events(self) -> list[int]:
        """The number of events of each network."""
        return [net.n_events if isinstance(net, Evolving) else 0 for net in self.nets]

    @property
    def events(self) -> list[Event]:
        """The latest events, network by network."""
        return self.events_after([])

    def events_after(self, counts: Sequence[int], labels: Sequence[Any] | None = None) -> list[Event]:
        """The events since the networks had these counts, as far as they are kept.

        ``labels`` are those of the outputs, if the owner keeps the classes.
        """
        found: list[Event] = []
        labels = self.classes.by_output.tolist() if labels is None else labels
        for k, (net, count) in enumerate(zip(self.nets, counts or [0] * len(self.nets), strict=True)):
            n_new = net.n_events - count if isinstance(net, Evolving) else 0
            found += events_of(net, k, labels)[-n_new:] if n_new > 0 else []
        return found

    def counts(self, name: str, kind: int | None = None) -> dict[str, int]:
        """A counter of all networks, by phase."""
        found = counted(self.nets, name)
        return dict(zip(PHASES, (found if kind is None else found[:, kind]).tolist(), strict=True))

    def means(self, quantity: int) -> dict[str, float]:
        """The running mean of bias² or of the variance by phase, over the networks that evolve."""
        own = [net.monitors[:, quantity, kernel.MEAN].tolist() for net in self.nets if isinstance(net, Evolving)]
        means = own or [[0.0, 0.0]]
        return {name: sum(each) / len(means) for name, each in zip(PHASES, zip(*means, strict=True), strict=True)}


def seeds_of(random: RandomState, n_networks: int) -> list[int]:
    seeds: list[int] = random.randint(np.iinfo(np.int64).max, size=n_networks, dtype=np.int64).tolist()
    return seeds


def _in_order(n_rows: int) -> Integers:
    return _ONE_ROW if n_rows == 1 else np.arange(n_rows)


def _copied(state: Floats) -> Floats:
    copied = aligned(len(state))
    copied[:] = state
    return copied
