"""What is done to states beside learning: making, checking, enlarging and copying them, and reading what they remember.

Nothing here is compiled.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from itertools import dropwhile, groupby
from typing import Any, NamedTuple

import numpy as np

from devdan.arrays import Floats, Words
from devdan.model import kernel
from devdan.model.kernel import Network, Work
from devdan.model.memory import SIZES, Sizes

PHASES = ("generative", "discriminative")
KINDS = ("pruning", "growth", "replacement", "drift")
ROOM = 16  # capacity for hidden units in a new state; doubled when it is full
EVENTS = 1000  # that a network remembers
LARGEST_LEARNED = 1e100  # limit for loaded weights and statistics, so that steps from there are finite
LARGEST_COUNT = 2**62  # limit for loaded counters, so that they can still be increased

SETTINGS = tuple(
    name for name, field in Network.fields().items() if not field.shape and field.dtype.kind == "f"
)  # the options as the kernel knows them
SCALE = ("scale_count", "low", "high", "mean", "square")  # what the scaling has learned
WEIGHED = ("class_count", "class_weight")  # what classes weigh
AVERAGED = ("encoder", "encoder_bias", "output", "output_bias")  # what there are averages of


class Event(NamedTuple):
    """An event: its kind (growth, pruning, drift, …), sample and phase, and the number of hidden units after it.

    A drift in the discriminative phase is real: the labels of the same inputs have changed. In the generative phase it
    is virtual: the inputs have changed. ``network`` is the index of the layer or member, from 0.
    """

    sample: int
    phase: str
    kind: str
    unit: int
    n_hidden: int
    network: int = 0


def events_of(net: Network, network: int = 0) -> list[Event]:
    """The stored events of a network, oldest first."""
    n, room = net.n_events, net.max_events
    rows = net.events[:n] if n <= room else np.roll(net.events, -(n % room), axis=0)
    return [
        Event(sample, PHASES[phase], KINDS[kind], unit, size, network)
        for sample, phase, unit, kind, size in rows.tolist()
    ]


# --- Making ------------------------------------------------------------------------------------------------------


def aligned(size: int) -> Floats:
    """Zeros that start on a cache line; if the capacity is a multiple of eight units, so does each row of weights."""
    words = np.zeros(size + 7)
    start = -words.ctypes.data % 64 // 8
    return words[start : start + size]


def room_for(n_hidden: int) -> int:
    """Capacity for hidden units: a multiple of eight, with at least two spare."""
    return max(ROOM, (n_hidden + 9) // 8 * 8)


def new_state(features: int, hidden: int, classes: int, events: int, seed: int) -> Floats:
    """A state with this much room that has seen nothing; :func:`kernel.learn` draws its first hidden units."""
    sizes = features, hidden, classes, events
    state = aligned(Network.n_words(sizes))
    state[: len(SIZES)].view(np.int64)[:] = sizes
    net = Network(state)
    net.n_features = features
    net.random[0] = seed
    net.low[:] = np.inf
    net.high[:] = -np.inf
    net.monitors[:, :, kernel.RESTART] = 1.0
    return state


def scratch_for(state: Floats) -> Floats:
    """The scratch space needed for this state."""
    return np.empty(Work.n_words(sizes_of(state)))


def sizes_of(state: Floats) -> Sizes:
    """What the state has room for: features, hidden units, classes and events."""
    return Network(state).sizes


def set_settings(net: Network, settings: dict[str, float]) -> None:
    """Hand the settings over; averages that were left out so far begin with the weights as they are."""
    if net.averaging == 0.0 < settings["averaging"]:
        net.averaged_since = net.n_learned[kernel.DISCRIMINATIVE]
        net.losses[:2] = 0.0
        for name in AVERAGED:
            getattr(net, f"{name}_slow")[:] = getattr(net, name)
    for name, value in settings.items():
        setattr(net, name, value)


# --- Room --------------------------------------------------------------------------------------------------------


def resized(state: Floats, features: int = 0, hidden: int = 0, classes: int = 0) -> Floats:
    """A copy with at least this much room and no less than before, which goes on exactly as the original would."""
    n, r, m, events = sizes_of(state)
    return with_room(state, (max(n, features), max(r, hidden), max(m, classes), events))


def with_room(state: Floats, room: Sizes) -> Floats:
    """A copy with this much room, enough for what is in use; where fewer events have room, it has the latest."""
    sizes = sizes_of(state)
    copy = aligned(Network.n_words(room))
    copy[:] = _blank(room)
    for source, shape, target, new_shape, common in _moves(sizes, room):
        copy[target].reshape(new_shape)[common] = state[source].reshape(shape)[common]
    if sizes[3] != room[3]:  # events are in a ring, where their places differ
        old, new = Network(state), Network(copy)
        latest = np.arange(max(old.n_events - min(sizes[3], room[3]), 0), old.n_events)
        new.events[:] = 0
        new.events[latest % room[3]] = old.events[latest % sizes[3]]
    return copy


@lru_cache(maxsize=8)
def _blank(room: Sizes) -> Floats:
    """A new state, to copy."""
    blank = new_state(*room, seed=0)
    blank.setflags(write=False)
    return blank


_Shape = tuple[int, ...]


@lru_cache(maxsize=4096)
def _moves(sizes: Sizes, room: Sizes) -> list[tuple[slice, _Shape, slice, _Shape, tuple[slice, ...]]]:
    """Where words go in a state with other room: from and to, each with its shape, and the part that both have.

    Fields in a row that are alike are moved together, and those in a row that stay as they are, too.
    """
    found = []
    pairs = zip(_alike(sizes), _alike(room), strict=True)
    for stays, group in groupby(pairs, lambda pair: pair[0][1] == pair[1][1]):
        own = list(group)
        if stays:
            whole = (sum(math.prod(shape) for (_, shape), _ in own),)
            own = [((own[0][0][0], whole), (own[0][1][0], whole))]
        for (start, shape), (new_start, new_shape) in own:
            source, target = slice(start, start + math.prod(shape)), slice(new_start, new_start + math.prod(new_shape))
            found.append((source, shape, target, new_shape, tuple(map(slice, map(min, shape, new_shape)))))
    return found


def _alike(sizes: Sizes) -> Iterator[tuple[int, _Shape]]:
    """Where the fields of a network begin, and their shapes; those in a row that are alike are taken together."""
    places, room = Network.places(sizes), dict(zip(SIZES, sizes, strict=True))

    def axes(name: str) -> tuple[int | str, ...]:
        """The axes of a field that depend on sizes, and those after them."""
        return tuple(dropwhile(lambda size: isinstance(size, int), Network.fields()[name].shape))

    for shape, names in groupby((name for name in places if name not in SIZES), axes):
        own = [places[name] for name in names]
        n_words = sum(math.prod(shape) for _, shape in own)
        lengths = [room[size] if isinstance(size, str) else size for size in shape]
        yield own[0][0], (n_words // max(math.prod(lengths), 1), *lengths)


def add_feature(state: Floats) -> Floats:
    """Add a feature with zero weights; if there is no room, in a larger copy."""
    net = Network(state)
    if net.n_features == net.max_features:
        state = resized(state, features=2 * net.max_features)
        net = Network(state)
    net.n_features += 1
    return state


def remove_feature(state: Floats, feature: int) -> None:
    """Remove a feature; those after it move up."""
    net = Network(state)
    last = net.n_features - 1
    for array in _by_feature(net):
        array[feature:last] = array[feature + 1 : last + 1].copy()
        array[last] = 0.0
    net.low[last], net.high[last] = np.inf, -np.inf
    net.n_features = last


def with_features(state: Floats, n_features: int, gone: list[int], n_new: int) -> Floats:
    """A copy without some of its first ``n_features`` features, and with others after the rest of these.

    What comes after them, in a layer above the first, are the hidden units of the layer below.
    """
    net = Network(state)
    needed = net.n_features - len(gone) + n_new
    room = net.max_features if needed <= net.max_features else max(needed, 2 * net.max_features)
    changed = resized(state, features=room)
    for feature in reversed(gone):
        remove_feature(changed, feature)
    net = Network(changed)
    place, last = n_features - len(gone), net.n_features
    for array in _by_feature(net):
        array[place + n_new : last + n_new] = array[place:last].copy()
        array[place : place + n_new] = 0.0
    net.low[place : place + n_new], net.high[place : place + n_new] = np.inf, -np.inf
    net.n_features = last + n_new
    return changed


def _by_feature(net: Network) -> list[Floats]:
    """Everything that there is of each feature, with the feature as the first axis."""
    weights = [net.encoder, net.encoder_moment, net.encoder_slow, net.decoder_bias]
    learned = [getattr(net, name) for name in SCALE]
    return [*weights, *learned, net.input_count.T, net.input_mean.T, net.input_square.T]


def restarted(state: Floats) -> Floats:
    """A network of this size that has learned nothing but the scale of the features and how many labels each class has.

    It remembers the counts.
    """
    fresh = new_state(*sizes_of(state), seed=0)
    old, new = Network(state), Network(fresh)
    for name in ("random", *SCALE, "n_drifts", "n_changes", *WEIGHED):
        getattr(new, name)[:] = getattr(old, name)
    for name in (*SETTINGS, "n_features", "n_named", "n_came", "n_labels_came"):
        setattr(new, name, getattr(old, name))
    new.events[0] = old.n_learned[kernel.DISCRIMINATIVE], kernel.DISCRIMINATIVE, 0, kernel.REPLACEMENT, 0
    new.n_events = 1
    return fresh


# --- States from elsewhere ---------------------------------------------------------------------------------------


def padded(state: Floats) -> Floats:
    """A state that ends where those of an earlier version did, with zeros for the fields that came later.

    Any other is returned as it is.
    """
    room = sizes_of(state) if len(state) >= len(SIZES) else (-1,) * len(SIZES)
    if min(room) < 0 or Network.places(room)[WEIGHED[0]][0] != len(state):
        return state
    longer = aligned(Network.n_words(room))
    longer[: len(state)] = state
    return longer


def check_state(state: Floats) -> None:
    """Raise a ``ValueError`` unless this state, from any source, is safe for the kernel."""
    check_states(state[None])


def check_states(states: Floats) -> None:
    """:func:`check_state` for states of the same sizes, which are rows, at once."""
    n_words = states.shape[1]
    if n_words < Network.n_words((0, 0, 0, 0)):
        raise ValueError("the state has no header")
    rooms = states[:, : len(SIZES)].view(np.int64)
    room = sizes_of(states[0])
    if min(room) < 0 or max(room) > n_words or Network.n_words(room) != n_words or (rooms != rooms[0]).any():
        raise ValueError("the state's length does not match its sizes")
    nets = _Networks(states)
    integers = _words(nets, np.int64, exclude=("events",))
    in_use = nets.n_features, nets.n_hidden, nets.n_classes
    if (integers < 0).any() or any((n > most).any() for n, most in zip(in_use, room, strict=False)):
        raise ValueError("the state's sizes are out of range")
    if (nets.n_features < 1).any() or (nets.n_hidden < 1).any() or (nets.max_events < 1).any():
        raise ValueError("the state's sizes are out of range")
    unseen = np.isposinf(nets.low) & np.isneginf(nets.high)
    ranges = (nets.low[~unseen], nets.high[~unseen])
    learned = _words(nets, np.float64, exclude=(*SETTINGS, "reserved_settings", "padding", *SCALE))
    settings = [getattr(nets, name) for name in SETTINGS]
    floats = (*settings, *ranges, nets.reserved_settings, nets.scale_count, nets.mean, nets.square, learned)
    if not all(np.isfinite(array).all() for array in floats):
        raise ValueError("the state holds numbers that are not finite")
    if (np.abs(learned) > LARGEST_LEARNED).any():
        raise ValueError("the state holds weights or statistics that are too large")
    if any((np.abs(array) > kernel.LARGEST).any() for array in (nets.mean, *ranges)):
        raise ValueError("the state holds feature values that are too large")
    monitored = [nets.monitors[..., word] for word in (kernel.COUNT, kernel.MEAN, kernel.SQUARE)]
    counts = [nets.scale_count, nets.input_count, monitored[0], nets.square, nets.input_square, monitored[2]]
    adaptive = nets.adaptive_rate == 1.0  # then the moments are mean squares
    counts += [getattr(nets, f"{name}_moment")[adaptive] for name in AVERAGED]
    if any((array < 0.0).any() for array in (*counts, nets.class_count, nets.class_weight)):
        raise ValueError("the state holds a negative count or variance")
    means = (
        (nets.scale_count, nets.mean, nets.square),
        (nets.input_count, nets.input_mean, nets.input_square),
        monitored,
    )
    if any(((count < 1.0) & ((mean != 0.0) | (square != 0.0))).any() for count, mean, square in means):
        raise ValueError("the state holds a mean without a count")  # its first value could lead to a negative variance
    events = nets.events
    flags = (nets.monitors[..., kernel.RESTART], events[..., kernel.EVENT_PHASE], events[..., kernel.EVENT_KIND] // 2)
    in_order = (nets.n_named <= nets.max_classes) & (nets.averaged_since <= nets.n_learned[:, kernel.DISCRIMINATIVE])
    if not in_order.all() or (integers > LARGEST_COUNT).any() or not all(np.isin(flag, (0, 1)).all() for flag in flags):
        raise ValueError("the state's counters are out of range")


class _Networks:
    """The fields of states of the same sizes, each with an axis more: the network."""

    def __init__(self, states: Floats) -> None:
        self._states, self._places = states, Network.places(sizes_of(states[0]))

    def __getattr__(self, name: str) -> Any:
        start, shape = self._places[name]
        words = self._states[:, start : start + math.prod(shape)]
        return words.view(Network.fields()[name].dtype).reshape(len(words), *shape)


def _words(nets: _Networks, dtype: type[np.generic], exclude: tuple[str, ...]) -> Any:
    """The words of all fields of one type but some, in a row."""
    fields = Network.fields().items()
    kept = [getattr(nets, name) for name, field in fields if field.dtype == dtype and name not in exclude]
    return np.concatenate([np.ravel(array) for array in kept])


def counted(nets: list[Network], name: str) -> Words:
    """A counter by phase, added up over networks."""
    total: Words = np.sum([getattr(net, name) for net in nets], axis=0)
    return total
