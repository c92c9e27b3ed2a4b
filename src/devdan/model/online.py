"""A network that takes one sample at a time: the part shared by the River and CapyMOA adapters."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from devdan.arrays import Floats, Words, all_writable
from devdan.encoding.encoding import Encoding
from devdan.encoding.rows import Rows
from devdan.encoding.single import SingleRow
from devdan.model import kernel, options, weighing
from devdan.model.kernel import DISCRIMINATIVE, GENERATIVE, Network
from devdan.model.notice import EncodingWarning
from devdan.model.state import (
    EVENTS,
    Event,
    events_of,
    new_state,
    padded,
    resized,
    room_for,
    scratch_for,
    set_settings,
    with_features,
)
from devdan.model.weighing import NO_WEIGHTS

_DEFAULTS = {name: options.OPTIONS[name].default for name in options.NAMES}


class OnlineNetwork:
    """A network for which each sample is a chunk, and which grows its state as needed.

    Its options are those of :class:`devdan.DEVDAN` except the ones about chunks and layers. Its ``encoding`` turns
    samples into inputs; ``row`` has room for those of one sample.
    """

    def __init__(self, **chosen: Any) -> None:
        self._options = {**_DEFAULTS, **chosen}
        options.check(self._options)
        self.know_numbers([])
        self._label = np.zeros(1, np.int64)  # of the current sample
        self.state = np.empty(0)  # until learning begins
        self._drifts_before = b""  # drift counters before the latest sample

    def __setstate__(self, attributes: dict[str, Any]) -> None:
        """What follows from the state is made anew, also where an earlier version has pickled it."""
        self.__dict__.update(all_writable(attributes))
        self._options = {**_DEFAULTS, **self._options}
        if "encoding" not in attributes:  # there was none
            self.know_numbers([])
        if len(self.state) > 0:
            self._hold(padded(self.state))

    def begin(self, n_features: int, seed: int | None, n_named: int = 0) -> None:
        """Create the state, with an output for each class named in advance."""
        word = check_random_state(seed).randint(np.iinfo(np.int64).max, dtype=np.int64)
        room = room_for(int(self._options["n_hidden"]))
        self._hold(new_state(n_features, room, max(n_named, 2), EVENTS, int(word)))
        set_settings(self.net, options.settings(self._options))
        self.net.n_named = n_named

    # --- Samples as inputs ---------------------------------------------------------------------------------------

    def know_numbers(self, names: Sequence[Any]) -> None:
        """Take these columns for numbers, in this order."""
        self.encoding = Encoding.of_numbers(names, options.instructions(self._options))
        self.single = SingleRow(self.encoding)

    def new_inputs(self, rows: Rows, seed: int | None, n_named: int = 0) -> Floats:
        """The inputs to learn from, with new ones where these rows need them; creates the state at first."""
        before = self.encoding
        inputs, encoding = before.learned(rows)
        if len(self.state) == 0:
            self.begin(max(len(encoding), 1), seed, n_named)
        elif encoding.order != before.order:
            gone, n_new = before.changes(encoding)
            if len(gone) == len(before) and n_new == 0:
                raise ValueError(f"no column is left to learn from:\n{encoding}")
            n_new -= len(before) == 0  # the one that was there instead
            self.change_inputs(len(before), gone, n_new)
        if encoding is not before:
            for note in before.new_notes(encoding):
                warnings.warn(note, EncodingWarning, stacklevel=4)
            self.encoding, self.single = encoding, SingleRow(encoding)
        return self._padded(inputs)

    def inputs(self, rows: Rows) -> Floats:
        """The inputs to predict from."""
        return self._padded(self.encoding.applied(rows))

    def _padded(self, inputs: Floats) -> Floats:
        """Inputs in as many columns as the network has, at least."""
        padded = np.full((len(inputs), self.row.shape[1]), np.nan)
        padded[:, : inputs.shape[1]] = inputs
        return padded

    # --- Learning and prediction ---------------------------------------------------------------------------------

    def learn(self, row: Floats, code: int, weights: Floats = NO_WEIGHTS) -> None:
        """Learn from a labelled sample in both phases; it may have a weight."""
        self._drifts_before = self.net.n_drifts.tobytes()
        self._label[0] = code
        while kernel.learn_each(self.state, self._scratch, row, self._label, weights, 0, DISCRIMINATIVE) == 0:
            self._grow_room()

    def learn_rows(self, rows: Floats, codes: Words, weights: Floats = NO_WEIGHTS) -> None:
        """:meth:`learn` from each, one after the other."""
        self._drifts_before = self.net.n_drifts.tobytes()
        done = 0
        while done < len(rows):
            done = kernel.learn_each(self.state, self._scratch, rows, codes, weights, done, DISCRIMINATIVE)
            if done < len(rows):
                self._grow_room()

    def observe(self, row: Floats) -> None:
        """Learn from a sample without a label: the generative phase."""
        self._drifts_before = self.net.n_drifts.tobytes()
        while kernel.learn_each(self.state, self._scratch, row, self._label, NO_WEIGHTS, 0, GENERATIVE) == 0:
            self._grow_room()

    def predict_proba(self, rows: Floats, n_classes: int) -> Floats:
        """The probability of each class, one row per sample."""
        out = np.zeros((len(rows), n_classes))
        kernel.predict_proba(self.state, self._scratch, rows, out, 1.0)
        return out

    # --- Events and drifts ---------------------------------------------------------------------------------------

    @property
    def drift(self) -> str | None:
        """The drift signalled by the latest sample: "real", "virtual" or None; "real" if both."""
        if len(self.state) == 0:
            return None
        virtual, real = self.net.n_drifts != np.frombuffer(self._drifts_before or bytes(16), np.int64)
        return "real" if real else "virtual" if virtual else None

    @property
    def events(self) -> list[Event]:
        return events_of(self.net) if len(self.state) else []

    # --- Capacity ------------------------------------------------------------------------------------------------

    def change_inputs(self, n_inputs: int, gone: list[int], n_new: int) -> None:
        """Remove some of the inputs, of which there are this many, and add others after the rest."""
        self._hold(with_features(self.state, n_inputs, gone, n_new))

    def add_class(self, code: int, label: Any) -> None:
        """Make room for a class, and set what it weighs."""
        if code >= self.net.max_classes:
            self.make_room(classes=2 * code)
        self.net.class_weight[code] = weighing.weight_given(self._options["class_weight"], label)

    def make_room(self, hidden: int = 0, classes: int = 0) -> None:
        """Make room for at least this many hidden units and classes."""
        self._hold(resized(self.state, hidden=hidden, classes=classes))

    def _grow_room(self) -> None:
        self.make_room(hidden=2 * self.net.max_hidden)

    def _hold(self, state: Floats) -> None:
        """Store a state, with matching scratch space and row."""
        self.state, self.net, self._scratch = state, Network(state), scratch_for(state)
        self.row = np.full((1, self.net.max_features), np.nan)


def finite(rows: Floats) -> Floats:
    """Check that the kernel can take the rows."""
    if np.count_nonzero(np.isinf(rows)):  # for one row, twice as fast as any()
        raise ValueError("x contains infinity; missing values must be NaN or left out, all others finite")
    return rows
