"""What the networks of a fleet share, also the one that new keys start from, and how rows go through all of them."""

from __future__ import annotations

import math
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from devdan import kernel
from devdan.arrays import Floats, Integers
from devdan.encoding.encoding import Encoding
from devdan.fleet.network_store import Kept
from devdan.fleet.networks import STEP, Slots, room
from devdan.kernel import (
    BIAS2,
    BY_AVERAGES,
    COUNT,
    DISCRIMINATIVE,
    RESTART,
    VARIANCE,
    Evolving,
    Network,
    predictor_weight,
)
from devdan.kernel.state import aligned, room_for, set_settings, sizes_of, with_features, with_room
from devdan.model import options, threads
from devdan.model.classes import Classes, check_labels, weights_given
from devdan.model.devdan import DEVDAN
from devdan.model.estimator import Chunk
from devdan.model.mixture import Mixture
from devdan.model.scales import QUICK, Scale

if TYPE_CHECKING:
    from devdan.model.estimator import Chunk


DEFAULT = DEVDAN(rehearse=0)  # what the networks are by default; nothing changes it
ALL_ROWS, EVERY = 10_000, 4  # rows from all of which the prior learns, and from which of those after them
# docs/experiments.md has what other values of the following would do.
MOST_UNITS = 8  # with which the prior stops to grow, so that what starts as its copy is small
WORTH = 20  # samples that what a new key knows counts for at most, so that it soon learns where it differs
SCALE_WORTH = 5  # for which the scale of its inputs counts: keys often have scales and zeros of their own
_NO_CODES, _ONE_ROW = np.empty(0, np.int64), np.zeros(1, np.int64)


def scale_of(chosen: dict[str, Any]) -> Scale:
    """The time scale of a fleet's networks, which replay nothing."""
    return QUICK._replace(n_hidden=int(chosen["n_hidden"]))


class Shared:
    """The mixture of one network that all keys have in common, and what is known of all keys together.

    The network learns if it is to be a prior; else it only has the room, inputs and settings of the others. Inputs and
    settings have versions: a key that was not there when they changed is brought up to date when it is back.
    """

    mixture: Mixture
    is_prior: bool
    inputs: list[tuple[int, ...]]  # versions: the numbers of the encoding's inputs in order; () for plain numbers
    settings: dict[str, float]  # the kernel's, at present
    n_settings: int  # versions of them that there were before
    named: npt.NDArray[Any]  # classes named in advance, sorted
    label_counts: Integers  # of all keys, by code; not counted where there is a prior
    n_offered: list[int]  # rows that the prior might have learned from: new ones, and others that were only taught
    slot: int = -1  # where the prior is
    _placed: Floats  # its state there

    def __init__(self, mixture: Mixture, is_prior: bool) -> None:
        self.mixture, self.is_prior = mixture, is_prior
        self.inputs, self.settings, self.n_settings = [], options.settings(mixture.options), 0
        self.named, self.label_counts, self.n_offered = _NO_CODES, _NO_CODES, [0, 0]
        self.note_inputs()

    @classmethod
    def beginning(
        cls, chosen: dict[str, Any], n_inputs: int, classes: Classes, encoding: Any, is_prior: bool, seed: int
    ) -> Shared:
        """What is shared where nothing was learned yet."""
        scale = scale_of(chosen)
        mixture = Mixture(chosen, [scale], n_inputs=n_inputs, n_outputs=len(classes), encoding=encoding, seeds=[seed])
        n, _, m, *_ = sizes_of(mixture.networks[0])
        mixture.replace(0, with_room(mixture.networks[0], room(n, max(MOST_UNITS, scale.n_hidden) + 2, m)))
        return cls(mixture, is_prior)

    # --- Rows ----------------------------------------------------------------------------------------------------

    def prepare(self, chunk: Chunk, chosen: dict[str, Any] | None, named: Any, taught: bool) -> None:
        """Take what is new with a chunk: options, if they changed, classes, inputs, and the counts of its labels."""
        self.mixture.prepare(chosen=chosen, classes=chunk.classes, n_named=chunk.n_named, encoding=chunk.encoding)
        if chosen is not None:
            settings = options.settings(chosen)
            if settings != self.settings:
                self.settings, self.n_settings = settings, self.n_settings + 1
        self.note_inputs()
        if named is not None:
            labels = check_labels(named)
            self.named = np.unique(np.concatenate([self.named, labels]) if len(self.named) > 0 else labels)
        if taught and not self.is_prior:
            self._count_labels(chunk.codes)

    def _count_labels(self, codes: Integers) -> None:
        n_new = len(self.classes) - len(self.label_counts)
        if n_new > 0:
            self.label_counts = np.append(self.label_counts, np.zeros(n_new, np.int64))
        if len(codes) == 1:  # at once: single rows are mostly this
            self.label_counts[codes.item()] += 1
        else:
            self.label_counts += np.bincount(codes, minlength=len(self.label_counts))

    def withdraw(self, codes: Integers) -> None:
        """Take labels back that were counted."""
        if not self.is_prior:
            self._count_labels(codes[:0])
            np.subtract.at(self.label_counts, codes, 1)
            np.maximum(self.label_counts, 0, out=self.label_counts)

    def note_inputs(self) -> None:
        """Another version of the inputs, if they are others than before."""
        encoding = self.mixture.encoding
        order = () if encoding is None else encoding.order
        if not self.inputs or self.inputs[-1] != order:
            self.inputs = [*self.inputs, order]

    # --- The prior among the networks of the fleet ---------------------------------------------------------------

    @property
    def _most_units(self) -> int:
        return max(MOST_UNITS, self.mixture.scales[0].n_hidden)

    def _may_grow(self, n_hidden: int) -> float:
        return float(self.mixture.options["grow"] and n_hidden < self._most_units)

    def take_place(self, memory: Slots) -> None:
        """Have the prior where compiled code finds it, with as much room as it may grow."""
        own = self.mixture.networks[0]
        if self.slot < 0:
            self.slot = memory.hold(Kept(own, _NO_CODES))
        elif own is not self._placed:  # it has other inputs, or room for more classes
            memory.put(self.slot, Kept(own, _NO_CODES))
        else:
            net = self.mixture.nets[0]
            assert isinstance(net, Evolving)
            if net.grows == self._may_grow(net.n_hidden):
                return
        self._placed = memory.state(self.slot)
        net = Evolving(self._placed)
        net.grows = self._may_grow(net.n_hidden)
        self._give_room(memory, max(net.n_hidden, self._most_units) + 2)

    def rows_for_prior(self, n_rows: int, first: int) -> Integers:
        """Which of the rows that come now the prior learns from, in phases from the first on."""
        if not self.is_prior:
            return _NO_CODES
        number = self.n_offered[first]
        self.n_offered[first] += n_rows
        if number + n_rows <= ALL_ROWS:
            return np.arange(n_rows)
        if n_rows == 1:  # at once: single rows are mostly this
            return _ONE_ROW if number % EVERY == 0 else _NO_CODES
        numbers = np.arange(number, number + n_rows)
        return np.flatnonzero((numbers < ALL_ROWS) | (numbers % EVERY == 0))

    def stop_growing(self, memory: Slots) -> None:
        """Stop growing where there is no room for another hidden unit."""
        net = Evolving(self._placed)
        net.grows = 0.0
        self._give_room(memory, net.n_hidden + 2)

    def network(self) -> Floats:
        """A copy of its state; where a prior has stopped to grow, that is no option of a copy."""
        state: Floats = self.mixture.networks[0].copy()
        Evolving(state).grows = self.settings["grows"]
        return state

    def _give_room(self, memory: Slots, hidden: int) -> None:
        n, r, m, *_ = sizes_of(self._placed)
        if r != hidden:
            memory.put(self.slot, Kept(with_room(self._placed, room(n, hidden, m)), _NO_CODES))
        self._placed = memory.state(self.slot)
        self.mixture.replace(0, self._placed)

    def __setstate__(self, content: dict[str, Any]) -> None:
        """A copy has its network to itself, until it takes its place in another fleet."""
        self.__dict__.update(content)
        self.slot = -1

    # --- Classes -------------------------------------------------------------------------------------------------

    @property
    def classes(self) -> Classes:
        """Those of all keys; their outputs are the fleet's codes."""
        return self.mixture.classes

    @property
    def n_taught(self) -> int:
        """Labels that were learned: by the prior or, if there is none, by all keys."""
        return self.mixture.n_taught if self.is_prior else int(self.label_counts.sum())

    @property
    def named_codes(self) -> Integers:
        """The codes of the classes that were named in advance, in the order in which a network takes them."""
        if len(self.named) == 0:
            return _NO_CODES
        codes: Integers = self.classes.outputs[np.searchsorted(self.classes.labels, self.named)]
        return codes

    @property
    def class_weights(self) -> Floats:
        """The weight of each class by the option, by code; none if the option is no dict."""
        given = self.mixture.options["class_weight"]
        return weights_given(given, self.classes, len(self.classes) if isinstance(given, dict) else 0)

    def expect(self, X: Floats, n_codes: int) -> Floats:
        """What to expect of keys without labels, by code: what the prior predicts, or how frequent the classes are."""
        if self.mixture.nets[0].n_classes > 0:
            return self.mixture.predict(X, n_codes)
        out = np.zeros((len(X), n_codes))
        if self.label_counts.sum() > 0:
            out[:, : len(self.label_counts)] = self.label_counts / self.label_counts.sum()
        else:
            out[:] = 1.0 / n_codes
        return out

    # --- Networks ------------------------------------------------------------------------------------------------

    @property
    def versions(self) -> tuple[int, int]:
        """Of the inputs and of the settings, now."""
        return len(self.inputs) - 1, self.n_settings

    def start(self) -> Kept:
        """What a new key begins with, apart from its seed."""
        net = self.mixture.nets[0]
        n_known = len(self.classes) if self.is_prior else 0
        hidden = room_for(max(net.n_hidden, int(net.start)), STEP)
        own = self.network()
        if not self.is_prior:
            Evolving(own).n_named = 0
        state = with_room(own, room(net.n_features, hidden, n_known))
        if self.is_prior:
            make_young(Evolving(state))
        else:
            Evolving(state).class_weight[:] = 0.0
        inputs, settings = self.versions
        return Kept(state, np.arange(n_known), inputs=inputs, settings=settings)

    def up_to_date(self, kept: Kept, told: bool = True) -> Kept:
        """A key with the current inputs and, if it is told of options, the current settings."""
        inputs, settings = self.versions[0], self.versions[1] if told else kept.settings
        state = kept.state.copy()
        if kept.inputs != inputs:
            before, now = self.inputs[kept.inputs], set(self.inputs[inputs])
            gone = [place for place, number in enumerate(before) if number not in now]
            state = with_features(state, gone, len(now) - len(before) + len(gone))
        if kept.settings != settings:
            set_settings(Evolving(state), self.settings)
            Evolving(state).class_weight[:] = 0.0  # those given are set where they are used
        return kept._replace(state=state, inputs=inputs, settings=settings)


def make_young(net: Evolving) -> None:
    """Keep what a network has learned, but not for how long, so that it soon learns where a key differs."""
    averages_are_better = predictor_weight(net, BY_AVERAGES) > 0.5
    for name in ("encoder", "encoder_bias", "output", "output_bias"):
        weights, slow = getattr(net, name), getattr(net, f"{name}_slow")
        if averages_are_better:
            weights[:] = slow
        slow[:] = weights
    net.n_seen = net.n_events = net.averaged_since = 0
    for array in (net.n_learned, net.n_drifts, net.n_changes, net.losses, net.events, net.causes, net.class_surprises):
        array[:] = 0
    net.scale_count[:] = np.minimum(net.scale_count, SCALE_WORTH)
    net.input_count[:] = np.minimum(net.input_count, WORTH)
    net.class_count *= WORTH / max(math.fsum(net.class_count), WORTH)  # exact, whatever the room for classes
    kept = net.monitors[DISCRIMINATIVE, [BIAS2, VARIANCE]]
    kept[:, COUNT] = np.minimum(kept[:, COUNT], WORTH)
    net.monitors[:] = 0.0
    net.monitors[:, :, RESTART] = 1.0
    net.monitors[DISCRIMINATIVE, [BIAS2, VARIANCE]] = kept


# --- A key's network as a mixture of its own, and the other way round ----------------------------------------------


def mixture_of(shared: Shared, kept: Kept) -> Mixture:
    """A mixture of one network that learns as the key would."""
    kept = shared.up_to_date(kept)
    labels = shared.classes.by_output[kept.codes]
    order = np.argsort(labels)
    state = aligned(len(kept.state))
    state[:] = kept.state
    mixture = Mixture.of_networks(
        [state],
        shared.mixture.options,
        shared.mixture.scales,
        classes=Classes(labels[order], order) if len(labels) > 0 else Classes(),
        encoding=shared.mixture.encoding,
    )
    mixture.decision = shared.mixture.decision.knowing(mixture.classes)
    return mixture


def prior_of(shared: Shared) -> Mixture:
    """The shared network likewise."""
    inputs, settings = shared.versions
    return mixture_of(shared, Kept(shared.network(), np.arange(len(shared.classes)), inputs=inputs, settings=settings))


def kept_of(shared: Shared, mixture: Mixture) -> Kept:
    """What to keep of a mixture that becomes a key's; raises a ``ValueError`` if it does not fit into the fleet."""
    ours = shared.mixture.options
    for name in options.fixed(ours):
        if not options.same(ours[name], mixture.options[name]):
            raise ValueError(f"{name} must be {ours[name]!r}, as in this fleet, got {mixture.options[name]!r}")
    inputs = _version(shared, mixture.encoding)
    labels = mixture.classes.by_output
    codes, classes = shared.classes.encode(labels) if len(labels) > 0 else (np.empty(0, np.int64), shared.classes)
    net = mixture.nets[0]
    state = with_room(mixture.networks[0], room(net.n_features, room_for(net.n_hidden, STEP), len(labels)))
    set_settings(Evolving(state), shared.settings)
    shared.mixture.prepare(classes=classes)
    return Kept(state, codes, inputs=inputs, settings=shared.versions[1])


def check_model(model: Any) -> None:
    """Raise an error unless it can be a key's."""
    if not isinstance(model, DEVDAN):
        raise ValueError(f"a key's model must be a DEVDAN(rehearse=0), got {model!r}")
    check_no_replay("a key's model", model)
    model._check_is_fitted()


def check_no_replay(name: str, model: DEVDAN) -> None:
    """Raise a ``ValueError`` if a second network replays samples."""
    if model.rehearse != 0:
        raise ValueError(
            f"{name} must have rehearse=0, as a network that replays samples would keep a thousand for each key, got "
            f"rehearse={model.rehearse!r}"
        )


def _version(shared: Shared, theirs: Encoding | None) -> int:
    """Which version of the fleet's inputs an encoding has."""
    ours = shared.mixture.encoding
    if ours is None and theirs is None:
        return shared.versions[0]
    if ours is not None and theirs is not None and theirs.order in shared.inputs:
        names = dict(zip(ours.order, ours.input_names, strict=True))
        if all(names.get(number, name) == name for number, name in zip(theirs.order, theirs.input_names, strict=True)):
            return shared.inputs.index(theirs.order)
    raise ValueError("the columns of the model must be encoded as those of this fleet: take it from fleet[key]")


# --- Rows of many keys through their networks, in threads over keys ----------------------------------------------


_PARTS = 4  # per thread, so that one that is done early takes another


def grouped(slots: Integers, rows: Integers, prior: int, prior_rows: Integers) -> tuple[Integers, Integers, Integers]:
    """Rows by slot: the different slots, the cuts between their rows, and the rows; those of a prior come first.

    >>> none = np.empty(0, np.int64)
    >>> grouped(np.array([7, 3, 7]), np.array([0, 1, 3]), 5, none)
    (array([3, 7]), array([0, 1, 3]), array([1, 0, 3]))
    >>> grouped(np.array([7]), np.array([1]), 5, np.array([0, 1]))
    (array([5, 7]), array([0, 2, 3]), array([0, 1, 1]))
    >>> grouped(none, none, 5, np.array([0, 1]))
    (array([5]), array([0, 2]), array([0, 1]))
    """
    n_prior = len(prior_rows)
    if len(slots) == 1 and n_prior <= 1:  # at once: single rows are mostly this
        if n_prior == 0:
            return slots, _ONE, rows
        return np.array([prior, slots.item()]), _TWO, np.array([prior_rows.item(), rows.item()])
    both = np.sort(slots << 32 | rows)  # faster than a stable sort of one by the other
    slots, rows = both >> 32, both & 0xFFFFFFFF
    cuts = np.append(np.flatnonzero(np.diff(slots, prepend=-1)), len(rows))
    slots = slots[cuts[:-1]]
    if n_prior == 0:
        return slots, cuts, rows
    return np.append(prior, slots), np.append(0, cuts + n_prior), np.append(prior_rows, rows)


_ONE, _TWO = np.arange(2), np.arange(3)  # cuts of one row, for one network and for two


def learn_rows(
    memory: Slots,
    shared: Shared,
    chunk: Chunk,
    first: int,
    last: int,
    n_jobs: int | None,
    slots: Integers,
    rows: Integers,
    prior_rows: Integers,
    judges: bool,
    now: int,
) -> None:
    """Let networks learn from rows of the chunk, each in its slot, and the prior from some."""
    slots, cuts, rows = grouped(slots, rows, shared.slot, prior_rows)
    chosen = shared.mixture.options
    order, stages, done = np.empty_like(rows), np.zeros(len(slots), np.int64), np.zeros(len(slots), np.int64)

    def step(begin: int, end: int, scratch: tuple[Floats, Floats] | None = None) -> int:
        return kernel.learn_keys(memory.table, turns, batch, way, begin, end, *(scratch or memory.new_scratch()))

    turns = slots, cuts, rows, order, stages, done
    outputs = np.empty_like(chunk.codes)
    batch = chunk.X, chunk.codes, outputs, chunk.weights, shared.named_codes, shared.class_weights
    way = first, last, shared.slot, judges, bool(chosen["shuffle"]), bool(chosen["interleave"]), now
    n_threads = threads.n_threads(n_jobs, len(rows) * (last - first + 1))
    if n_threads == 1:
        n_stopped = step(0, len(slots), memory.scratch)
    else:
        bounds = np.searchsorted(cuts, np.linspace(0, len(rows), _PARTS * n_threads + 1)).tolist()
        n_stopped = sum(threads.run([partial(step, *pair) for pair in pairwise(bounds)], n_threads))
    while n_stopped > 0:
        end = kernel.SHUFFLING + 2 * (1 if chosen["interleave"] else last - first + 1)
        n_stopped = 0
        for k in np.flatnonzero(stages < end).tolist():
            _make_room(memory, shared, int(slots[k]), for_classes=bool(stages[k] < kernel.SHUFFLING))
            n_stopped += step(k, k + 1, memory.scratch)


def _make_room(memory: Slots, shared: Shared, slot: int, for_classes: bool) -> None:
    """More room for a network that stopped because it needs it."""
    net = Network(memory.state(slot))
    if slot == shared.slot:
        shared.stop_growing(memory)
    elif for_classes:
        memory.make_room(slot, classes=2 * net.max_classes)
    else:
        memory.make_room(slot, hidden=room_for(max(net.n_hidden, int(net.start)), STEP))


def predict_rows(memory: Slots, shared: Shared, slots: Integers, X: Floats, out: Floats, n_jobs: int | None) -> None:
    """The probabilities of the classes, by code, for rows with these slots; -1 is an unknown key."""

    def step(begin: int, end: int, scratch: tuple[Floats, Floats] | None = None) -> int:
        scratch = scratch or memory.new_scratch()
        return kernel.predict_keys(memory.table, slots, *scratch, X, out, begin, end)

    n_threads = threads.n_threads(n_jobs, len(X))
    if n_threads == 1:
        n_open = step(0, len(X), memory.scratch)
    else:
        bounds = np.linspace(0, len(X), n_threads + 1).astype(int).tolist()
        n_open = sum(threads.run([partial(step, *pair) for pair in pairwise(bounds)], n_threads))
    if n_open > 0:
        rows = np.flatnonzero(~out.any(axis=1))
        out[rows] = shared.expect(X[rows], out.shape[1])
