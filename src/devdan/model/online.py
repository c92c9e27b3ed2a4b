"""A network that meets one sample at a time: what River's face and CapyMOA's have in common."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from devdan.arrays import Floats, Words, all_writable
from devdan.model import kernel, options
from devdan.model.kernel import GENERATIVE, Network
from devdan.model.state import (
    EVENTS,
    Event,
    add_feature,
    events_of,
    new_state,
    resized,
    room_for,
    scratch_for,
    set_settings,
)

_FIRST = np.zeros(1, np.int64)  # the order in which one sample is visited


class OnlineNetwork:
    """A network for which each sample is a chunk of its own, and which finds room for whatever comes.

    Its options are those of :class:`devdan.DEVDAN` that concern neither whole chunks nor several layers. ``row`` is
    where its caller writes the sample in hand.
    """

    def __init__(self, **chosen: Any) -> None:
        self._options = {name: chosen.get(name, options.OPTIONS[name].default) for name in options.NAMES}
        options.check(self._options)
        self._label = _FIRST.copy()  # of the sample that is learned
        self.state = np.empty(0)  # until it begins
        self._drifts_before = b""  # the last sample that was learned

    def __setstate__(self, attributes: dict[str, Any]) -> None:
        """What follows from the state is made anew, also where an earlier version has pickled it."""
        self.__dict__.update(all_writable(attributes))
        if len(self.state) > 0:
            self._hold(self.state)

    def begin(self, n_features: int, seed: int | None, n_named: int = 0) -> None:
        """Make the state, with an output for each class that is named in advance."""
        word = check_random_state(seed).randint(np.iinfo(np.int64).max, dtype=np.int64)
        room = room_for(int(self._options["n_hidden"]))
        self._hold(new_state(n_features, room, max(n_named, 2), EVENTS, int(word)))
        set_settings(self.net, options.settings(self._options))
        self.net.n_named = n_named

    # --- Learning and using --------------------------------------------------------------------------------------

    def learn(self, row: Floats, code: int) -> None:
        """Both phases of a labelled sample."""
        self._drifts_before = self.net.n_drifts.tobytes()
        self._label[0] = code
        while kernel.learn_each(self.state, self._scratch, row, self._label, _FIRST, 0) == 0:
            self._grow_room()

    def learn_rows(self, rows: Floats, codes: Words) -> None:
        """:meth:`learn` from each, one after the other."""
        self._drifts_before = self.net.n_drifts.tobytes()
        done, order = 0, np.arange(len(rows))
        while (done := kernel.learn_each(self.state, self._scratch, rows, codes, order, done)) < len(rows):
            self._grow_room()

    def observe(self, row: Floats) -> None:
        """The generative phase of a sample without a label."""
        self._drifts_before = self.net.n_drifts.tobytes()
        while kernel.learn(self.state, self._scratch, row, self._label, _FIRST, 0, GENERATIVE, GENERATIVE) == 0:
            self._grow_room()

    def predict_proba(self, rows: Floats, n_classes: int) -> Floats:
        """The probability of each class, a row for each sample."""
        out = np.zeros((len(rows), n_classes))
        kernel.predict_proba(self.state, self._scratch, rows, out, 1.0)
        return out

    # --- What happened -------------------------------------------------------------------------------------------

    @property
    def drift(self) -> str | None:
        """Which drift was signalled by what was learned last: "real", "virtual" or none; real, if it was both."""
        if len(self.state) == 0:
            return None
        virtual, real = self.net.n_drifts != np.frombuffer(self._drifts_before or bytes(16), np.int64)
        return "real" if real else "virtual" if virtual else None

    @property
    def events(self) -> list[Event]:
        return events_of(self.net) if len(self.state) else []

    # --- Room ----------------------------------------------------------------------------------------------------

    def add_feature(self) -> None:
        """One more feature, which no unit looks at yet."""
        self._hold(add_feature(self.state))

    def make_room(self, hidden: int = 0, classes: int = 0) -> None:
        """Have room for at least so many hidden units and classes."""
        self._hold(resized(self.state, hidden=hidden, classes=classes))

    def _grow_room(self) -> None:
        self.make_room(hidden=2 * self.net.max_hidden)

    def _hold(self, state: Floats) -> None:
        """Keep a state, and scratch space and a row of its size."""
        self.state, self.net, self._scratch = state, Network(state), scratch_for(state)
        self.row = np.full((1, self.net.max_features), np.nan)


def finite(rows: Floats) -> Floats:
    """The rows, if the kernel can take them."""
    if np.count_nonzero(np.isinf(rows)):  # for one row in half the time of any()
        raise ValueError("x contains infinity; a missing value is NaN or left out, other values must be finite")
    return rows
