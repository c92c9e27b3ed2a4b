"""Networks that take one sample at a time: the part shared by the River and CapyMOA adapters."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from devdan import kernel
from devdan.arrays import Floats, Words, all_writable
from devdan.encoding.encoding import Encoding, SingleRow
from devdan.encoding.rows import Rows
from devdan.kernel import DISCRIMINATIVE, GENERATIVE, Network
from devdan.kernel.state import Event, events_of, padded, resized, scratch_for, set_settings, with_features
from devdan.model import mixture, options, weighing
from devdan.model.notice import EncodingWarning
from devdan.model.scales import REHEARSED, Scale, mixed, new_network
from devdan.model.weighing import NO_WEIGHTS

_EARLIER = {name: options.earlier(name) for name in options.NAMES}
_DEFAULTS = {name: options.OPTIONS[name].default for name in options.NAMES}


class _Held(NamedTuple):
    """A network with what it needs."""

    state: Floats
    net: Network
    scratch: Floats


class OnlineNetwork:
    """Networks for which each sample is a chunk, and whose states grow as needed.

    The options are those of :class:`devdan.DEVDAN` except the ones about chunks and layers; ``scales`` may say which
    networks there are, as in :class:`devdan.DEVDANEnsemble`. The ``encoding`` turns samples into inputs; ``row`` has
    room for those of one sample.
    """

    def __init__(self, scales: Sequence[Scale] | None = None, **chosen: Any) -> None:
        self._options, self._scales = {**_DEFAULTS, **chosen}, scales
        options.check(self._options)
        self.know_numbers([])
        self._label = np.zeros(1, np.int64)  # of the current sample
        self._networks: list[_Held] = []  # until learning begins
        self._drifts_before = b""  # drift counters before the latest sample

    def __getstate__(self) -> dict[str, Any]:
        """Of the networks, only the states."""
        return self.__dict__ | {"_networks": [one.state for one in self._networks]}

    def __setstate__(self, attributes: dict[str, Any]) -> None:
        """What follows from the states is made anew, also where an earlier version has pickled one."""
        self.__dict__.update(all_writable(attributes))
        self._options = {**_EARLIER, **self._options}
        self.__dict__.setdefault("_scales", None)
        if "encoding" not in attributes:  # there was none
            self.know_numbers([])
        states = self.__dict__.pop("_networks", None)
        if states is None:
            states = [self.__dict__.pop("state")]
        self._hold([padded(state) for state in states if len(state) > 0])

    def begin(self, n_features: int, seed: int | None, n_named: int = 0) -> None:
        """Create the networks, with an output for each class named in advance."""
        settings, scales = options.settings(self._options), self._scales
        if scales is None:
            first = Scale(int(self._options["n_hidden"]))
            rehearse = int(self._options["rehearse"])
            scales = [first, REHEARSED._replace(rehearse=rehearse)] if rehearse > 0 else [first]
        words = check_random_state(seed).randint(np.iinfo(np.int64).max, size=max(len(scales), 2), dtype=np.int64)
        pairs = zip(scales, words.tolist(), strict=False)
        self._hold([new_network(n_features, n_named, scale, word) for scale, word in pairs])
        for one, scale in zip(self._networks, scales, strict=True):
            set_settings(one.net, mixed(settings, scale) if len(scales) > 1 else settings)
            one.net.n_named = n_named

    @property
    def has_begun(self) -> bool:
        """Whether there are networks yet."""
        return len(self._networks) > 0

    @property
    def n_taught(self) -> int:
        """Labels learned so far."""
        return int(self._networks[0].net.n_learned[DISCRIMINATIVE]) if self._networks else 0

    # --- Samples as inputs ---------------------------------------------------------------------------------------

    def know_numbers(self, names: Sequence[Any]) -> None:
        """Take these columns for numbers, in this order."""
        self.encoding = Encoding.of_numbers(names, options.instructions(self._options))
        self.single = SingleRow(self.encoding)

    def new_inputs(self, rows: Rows, seed: int | None, n_named: int = 0) -> Floats:
        """The inputs to learn from, with new ones where these rows need them; creates the state at first."""
        before = self.encoding
        inputs, encoding = before.learned(rows)
        if not self.has_begun:
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
        self._label[0] = code
        self._visit(row, self._label, weights, DISCRIMINATIVE)

    def learn_rows(self, rows: Floats, codes: Words, weights: Floats = NO_WEIGHTS) -> None:
        """:meth:`learn` from each, one after the other."""
        self._visit(rows, codes, weights, DISCRIMINATIVE)

    def observe(self, row: Floats) -> None:
        """Learn from a sample without a label: the generative phase."""
        self._visit(row, self._label, NO_WEIGHTS, GENERATIVE)

    def _visit(self, rows: Floats, codes: Words, weights: Floats, last: int) -> None:
        """Train the networks on each row by itself, comparing predictions with labels now and then."""
        self._drifts_before = self._drifts()
        done = 0
        if last == DISCRIMINATIVE:
            states = [one.state for one in self._networks]
            for place in mixture.compared(states[0], len(rows)).tolist():
                self._train(rows[done:place], codes[done:place], weights[done:place], last)
                row, states = slice(place, place + 1), [one.state for one in self._networks]
                mixture.calibrate(states, [rows[row]] * len(states), codes[row], weights[row])
                done = place
        self._train(rows[done:], codes[done:], weights[done:], last)

    def _train(self, rows: Floats, codes: Words, weights: Floats, last: int) -> None:
        """Train each network, enlarging its state whenever it is full."""
        for k in range(len(self._networks)):
            done = 0
            while done < len(rows):
                state, net, scratch = self._networks[k]
                done = kernel.learn_each(state, scratch, rows, codes, weights, done, last)
                if done < len(rows):
                    self._networks[k] = _held(resized(state, hidden=2 * net.max_hidden))

    def predict_proba(self, rows: Floats, n_classes: int) -> Floats:
        """The probability of each class, one row per sample."""
        out = np.zeros((len(rows), n_classes))
        shares = mixture.shares([one.state for one in self._networks])
        for (state, _, scratch), share in zip(self._networks, shares, strict=True):
            if share > kernel.NEGLIGIBLE:
                kernel.predict_proba(state, scratch, rows, out, share)
        kernel.temper(self._networks[0].state, out)
        return out

    # --- Events and drifts ---------------------------------------------------------------------------------------

    @property
    def drift(self) -> str | None:
        """The drift signalled by the latest sample: "real", "virtual" or None; "real" if both."""
        if not self.has_begun:
            return None
        now, before = (np.frombuffer(word or bytes(16), np.int64) for word in (self._drifts(), self._drifts_before))
        virtual, real = now != before
        return "real" if real else "virtual" if virtual else None

    def _drifts(self) -> bytes:
        """The drift counters of the first network; the others, which rehearse, signal none."""
        drifts: bytes = self._networks[0].net.n_drifts.tobytes()
        return drifts

    @property
    def events(self) -> list[Event]:
        return [event for k, one in enumerate(self._networks) for event in events_of(one.net, k)]

    # --- Capacity ------------------------------------------------------------------------------------------------

    def change_inputs(self, n_inputs: int, gone: list[int], n_new: int) -> None:
        """Remove some of the inputs, of which there are this many, and add others after the rest."""
        self._hold([with_features(one.state, n_inputs, gone, n_new) for one in self._networks])

    def add_class(self, code: int, label: Any) -> None:
        """Make room for a class, and set what it weighs."""
        if code >= self._networks[0].net.max_classes:
            self._hold([resized(one.state, classes=2 * code) for one in self._networks])
        weight = weighing.weight_given(self._options["class_weight"], label)
        for one in self._networks:
            one.net.class_weight[code] = weight

    def _hold(self, states: list[Floats]) -> None:
        """Store the states, with matching scratch space and row."""
        self._networks = [_held(state) for state in states]
        if states:
            self.row = np.full((1, self._networks[0].net.max_features), np.nan)


def _held(state: Floats) -> _Held:
    return _Held(state, Network(state), scratch_for(state))


def finite(rows: Floats) -> Floats:
    """Check that the kernel can take the rows."""
    if np.count_nonzero(np.isinf(rows)):  # for one row, twice as fast as any()
        raise ValueError("x contains infinity; missing values must be NaN or left out, all others finite")
    return rows
