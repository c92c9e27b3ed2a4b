"""A mixture that takes one sample at a time: what the River and CapyMOA adapters have in common."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from devdan.arrays import Floats, Integers, all_writable
from devdan.encoding.encoding import Encoding, EncodingWarning, SingleRow
from devdan.encoding.rows import Rows
from devdan.kernel import DISCRIMINATIVE, GENERATIVE, Evolving
from devdan.kernel.state import Event
from devdan.model import options
from devdan.model.classes import NO_WEIGHTS, weight_given
from devdan.model.decision import Decision, decision_of
from devdan.model.mixture import Mixture, seeds_of
from devdan.model.scales import QUICK, REPLAYING, Scale


class OnlineMixture:
    """A mixture for which each sample is a chunk, and whose inputs and outputs come and go with the samples.

    The options are those of :class:`devdan.DEVDAN` except the ones about chunks; ``scales`` may say which networks
    there are, as in :class:`devdan.DEVDANEnsemble`. The ``encoding`` turns samples into inputs; ``row`` has room for
    those of one sample.
    """

    mixture: Mixture | None = None  # None until learning begins

    def __init__(self, scales: Sequence[Scale] | None = None, **chosen: Any) -> None:
        self.options = options.defaults() | chosen
        options.check(self.options)
        if scales is None:
            first, replays = QUICK._replace(n_hidden=int(self.options["n_hidden"])), int(self.options["rehearse"])
            scales = [first, REPLAYING._replace(replays=replays)] if replays > 0 else [first]
        self.scales = scales
        self._label = np.zeros(1, np.int64)  # of the current sample
        self.labels: list[Any] = []  # of the classes, by output
        self._decision = decision_of(self.options["decide"])  # until learning begins
        self._drifts_before = (0, 0)  # before the latest sample
        self._encode_by(Encoding.of_numbers([], options.instructions(self.options)))

    def __setstate__(self, attributes: dict[str, Any]) -> None:
        self.__dict__.update(all_writable(attributes))

    def begin(self, n_inputs: int, seed: int | None, n_named: int = 0) -> None:
        """Create the networks, with an output for each class named in advance."""
        seeds = seeds_of(check_random_state(seed), len(self.scales))
        self.mixture = Mixture(
            self.options, self.scales, n_inputs=n_inputs, n_outputs=n_named, encoding=self.encoding, seeds=seeds
        )
        self.mixture.prepare(n_named=n_named)
        self._make_row()

    # --- Samples as inputs ---------------------------------------------------------------------------------------

    def _encode_by(self, encoding: Encoding) -> None:
        self.encoding, self.single = encoding, SingleRow(encoding)
        if self.mixture is not None:
            self.mixture.encoding = encoding

    def new_inputs(self, rows: Rows, seed: int | None, n_named: int = 0) -> Floats:
        """The inputs to learn from, with new ones where these rows need them; creates the networks at first."""
        before = self.encoding
        inputs, encoding = before.learned(rows)
        if self.mixture is None:
            self.begin(max(len(encoding), 1), seed, n_named)
        elif encoding.order != before.order:
            if len(encoding) == 0:
                raise ValueError(f"no column is left to learn from:\n{encoding}")
            self.mixture.adapt(encoding)
            self._make_row()
        if encoding is not before:
            for note in before.new_notes(encoding):
                warnings.warn(note, EncodingWarning, stacklevel=4)
            self._encode_by(encoding)
        return self._padded(inputs)

    def inputs(self, rows: Rows) -> Floats:
        """The inputs to predict from."""
        return self._padded(self.encoding.applied(rows))

    def _padded(self, inputs: Floats) -> Floats:
        """Inputs in as many columns as the networks have room for."""
        padded = np.full((len(inputs), self.row.shape[1]), np.nan)
        padded[:, : inputs.shape[1]] = inputs
        return padded

    def _make_row(self) -> None:
        assert self.mixture is not None
        self.row = np.full((1, self.mixture.nets[0].max_features), np.nan)

    # --- Learning and prediction ---------------------------------------------------------------------------------

    def learn(self, row: Floats, code: int, weights: Floats = NO_WEIGHTS) -> None:
        """Learn from a labelled sample in both phases; it may have a weight."""
        self._label[0] = code
        self.learn_rows(row, self._label, weights)

    def learn_rows(self, rows: Floats, codes: Integers, weights: Floats = NO_WEIGHTS) -> None:
        """:meth:`learn` from each, one after the other."""
        self._learn(rows, codes, weights, DISCRIMINATIVE)

    def observe(self, row: Floats) -> None:
        """Learn from a sample without a label: the generative phase."""
        self._learn(row, self._label, NO_WEIGHTS, GENERATIVE)

    def _learn(self, rows: Floats, codes: Integers, weights: Floats, last: int) -> None:
        assert self.mixture is not None
        self._drifts_before = self._drifts()
        self.mixture.learn_each(rows, codes, weights, last)

    @property
    def n_taught(self) -> int:
        """Labels learned so far."""
        return 0 if self.mixture is None else self.mixture.n_taught

    @property
    def decision(self) -> Decision:
        return self._decision if self.mixture is None else self.mixture.decision

    def predict(self, rows: Floats, n_classes: int) -> Floats:
        """The probability of each class, by output; one row per sample."""
        assert self.mixture is not None
        return self.mixture.predict(rows, n_classes)

    def add_class(self, code: int, label: Any) -> None:
        """Make room for a class, and set its weight."""
        assert self.mixture is not None
        self.mixture.make_room(code + 1)
        self.labels.append(label)
        self.mixture.decision.know(code, label)
        weight = weight_given(self.options["class_weight"], label)
        for net in self.mixture.nets:
            net.class_weight[code] = weight

    # --- Events and drifts ---------------------------------------------------------------------------------------

    @property
    def drift(self) -> str | None:
        """The drift signalled by the latest sample: "real", "virtual" or None; "real" if both."""
        if self.mixture is None:
            return None
        (virtual, real), before = self._drifts(), self._drifts_before
        return "real" if real != before[1] else "virtual" if virtual != before[0] else None

    def _drifts(self) -> tuple[int, int]:
        """Drifts signalled by the first network; the others, which replay samples, signal none."""
        assert self.mixture is not None
        net = self.mixture.nets[0]
        virtual, real = net.n_drifts.tolist() if isinstance(net, Evolving) else (0, 0)
        return virtual, real

    @property
    def events(self) -> list[Event]:
        return [] if self.mixture is None else self.mixture.events_after([], self.labels)


def finite(rows: Floats) -> Floats:
    """Check that the kernel can take the rows."""
    if np.count_nonzero(np.isinf(rows)):  # for one row, twice as fast as any()
        raise ValueError("x contains infinity; missing values must be NaN or left out, all others finite")
    return rows
