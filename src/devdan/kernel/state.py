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
from devdan.kernel.inputs import LARGEST, plain_units
from devdan.kernel.memory import SIZES, Sizes
from devdan.kernel.mixing import SHARPEST
from devdan.kernel.network import (
    BY_AVERAGES,
    BY_WEIGHTS,
    COUNT,
    DISCRIMINATIVE,
    EVENT_KIND,
    EVENT_PHASE,
    INFORMATION,
    LOG_SHARPNESS,
    MEAN,
    MOST_NEIGHBOURS,
    RESTART,
    SQUARE,
    Network,
    Work,
)

PHASES = ("generative", "discriminative")
KINDS = ("pruning", "growth", "replacement", "drift")
ROOM = 16  # capacity for hidden units in a new state; doubled when it is full
EVENTS = 1000  # that a network remembers
LARGEST_LEARNED = 1e100  # limit for loaded weights and statistics, so that steps from there are finite
LARGEST_REHEARSAL = 1000  # samples revisited for each that is taught
LARGEST_COUNT = 2**62  # limit for loaded counters, so that they can still be increased

SETTINGS = tuple(
    name for name, field in Network.fields().items() if not field.shape and field.dtype.kind == "f"
)  # the options as the kernel knows them
SCALE = ("scale_count", "low", "high", "mean", "square")  # what the scaling has learned
WEIGHED = ("class_count", "class_weight")  # what classes weigh
HEADER: Any = Network.fields()["encoder"].start  # words before the first array whose size depends on the model
UNSEEN = {"low": np.inf, "high": -np.inf, "lowest": np.inf, "highest": -np.inf}  # ranges of nothing
AVERAGED = ("encoder", "encoder_bias", "output", "output_bias")  # what there are averages of


class Event(NamedTuple):
    """An event: its kind (growth, pruning, drift, …), sample and phase, and the number of hidden units after it.

    A drift in the discriminative phase is real: the labels of the same inputs have changed. In the generative phase it
    is virtual: the inputs have changed. ``network`` is the index of the layer or member, from 0. What caused it is the
    ``value`` that reached a ``bound``; :attr:`why` says it in words.

    >>> Event(812, "discriminative", "growth", 3, 4, 0, 0.3127, 0.3004).why
    'bias² of the expected prediction came to 0.313 (mean + deviation), where 0.3 is the bound: too few hidden units'
    """

    sample: int
    phase: str
    kind: str
    unit: int
    n_hidden: int
    network: int = 0
    value: float = 0.0
    bound: float = 0.0

    @property
    def why(self) -> str:
        """Its cause, in words; nothing of an event from before causes were kept."""
        return _WHY[self.kind, self.phase].format(self.value, self.bound) if self.bound > 0.0 else ""


_REACHED = "came to {:.3g} (mean + deviation), where {:.3g} is the bound"
_ROSE = "over the latest 200 samples is {:.1f} standard errors above its mean over the latest 10,000, more than {:.0f}"
_WHY = {
    ("growth", "generative"): f"bias² of the expected reconstruction {_REACHED}: too few hidden units",
    ("growth", "discriminative"): f"bias² of the expected prediction {_REACHED}: too few hidden units",
    ("pruning", "generative"): f"the variance of the reconstruction {_REACHED}: too many hidden units",
    ("pruning", "discriminative"): f"the variance of the prediction {_REACHED}: too many hidden units",
    ("drift", "generative"): f"the distance of the inputs from their mean {_ROSE}: the inputs have changed",
    ("drift", "discriminative"): f"the error {_ROSE}: the labels of such inputs have changed",
}


def events_of(net: Network, network: int = 0) -> list[Event]:
    """The stored events of a network, oldest first."""
    n, room = net.n_events, net.max_events
    kept = np.arange(max(n - room, 0), n) % max(room, 1)
    return [
        Event(sample, PHASES[phase], KINDS[kind], unit, size, network, *cause)
        for (sample, phase, unit, kind, size), cause in zip(
            net.events[kept].tolist(), net.causes[kept].tolist(), strict=True
        )
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


def new_state(
    features: int, hidden: int, classes: int, events: int, samples: int = 0, fields: int = 0, *, seed: int
) -> Floats:
    """A state with this much room that has seen nothing; :func:`kernel.learn` draws its first hidden units."""
    sizes = features, hidden, classes, events, samples, fields
    state = aligned(Network.n_words(sizes))
    net = Network.empty(sizes, state)
    net.n_features = features
    net.random[0] = seed
    for name, unseen in UNSEEN.items():
        getattr(net, name)[:] = unseen
    net.monitors[:, :, RESTART] = 1.0
    return state


def scratch_for(*states: Floats) -> Floats:
    """The scratch space needed for this state, or for each of these in turn."""
    size = states[0].view(np.int64).item  # the first words: at once, as single samples are mostly this
    n, r, m = size(0), size(1), size(2)
    for state in states[1:]:
        size = state.view(np.int64).item
        n, r, m = max(n, size(0)), max(r, size(1)), max(m, size(2))
    return np.empty(_n_scratch(n, r, m))


@lru_cache(maxsize=4096)
def _n_scratch(features: int, hidden: int, classes: int) -> int:
    return Work.n_words((features, hidden, classes, 0, 0, 0))


def sizes_of(state: Floats) -> Sizes:
    """What the state has room for: features, hidden units, classes and events."""
    return Network(state).sizes


def set_settings(net: Network, settings: dict[str, float]) -> None:
    """Hand the settings over; averages that were left out so far begin with the weights as they are."""
    if net.averaging == 0.0 < settings["averaging"]:
        net.averaged_since = net.n_learned[DISCRIMINATIVE]
        net.losses[BY_AVERAGES] = net.losses[BY_WEIGHTS]
        for name in (*AVERAGED, "field_weights"):
            getattr(net, f"{name}_slow")[:] = getattr(net, name)
    for name, value in settings.items():
        setattr(net, name, value)


# --- Room --------------------------------------------------------------------------------------------------------


def resized(state: Floats, features: int = 0, hidden: int = 0, classes: int = 0) -> Floats:
    """A copy with at least this much room and no less than before, which goes on exactly as the original would."""
    n, r, m, events, samples, fields = sizes_of(state)
    return with_room(state, (max(n, features), max(r, hidden), max(m, classes), events, samples, fields))


def with_room(state: Floats, room: Sizes) -> Floats:
    """A copy with this much room, enough for what is in use; where fewer events have room, it has the latest."""
    sizes, places = sizes_of(state), Network.places(room)
    copy = aligned(Network.n_words(room))
    for name, unseen in UNSEEN.items():
        start, shape = places[name]
        copy[start : start + math.prod(shape)] = unseen
    for source, shape, target, new_shape, common in _moves(sizes, room):
        copy[target].reshape(new_shape)[common] = state[source].reshape(shape)[common]
    Network.empty(room, copy)
    if sizes[3] != room[3]:  # events are in a ring, where their places differ
        old, new = Network(state), Network(copy)
        latest = np.arange(max(old.n_events - min(sizes[3], room[3]), 0), old.n_events)
        for name in ("events", "causes"):
            before, after = getattr(old, name), getattr(new, name)
            after[:] = 0
            after[latest % room[3]] = before[latest % sizes[3]]
    return copy


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

    for shape, names in groupby(places, axes):
        own = [places[name] for name in names]
        n_words = sum(math.prod(shape) for _, shape in own)
        lengths = [room[size] if isinstance(size, str) else size for size in shape]
        yield own[0][0], (n_words // max(math.prod(lengths), 1), *lengths)


def remove_feature(state: Floats, feature: int) -> None:
    """Remove a feature; those after it move up."""
    net = Network(state)
    last = net.n_features - 1
    for array in _by_feature(net):
        array[feature:last] = array[feature + 1 : last + 1].copy()
        array[last] = 0.0
    for name, unseen in UNSEEN.items():
        getattr(net, name)[..., last] = unseen
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
    net.remembered[:, place : place + n_new] = np.nan
    for name, unseen in UNSEEN.items():
        getattr(net, name)[..., place : place + n_new] = unseen
    net.n_features = last + n_new
    return changed


def _by_feature(net: Network) -> list[Floats]:
    """Everything that there is of each feature, with the feature as the first axis."""
    weights = [net.encoder, net.encoder_moment, net.encoder_slow, net.decoder_bias]
    weights += [net.field_weights, net.field_weights_slow, net.field_places]
    learned = [getattr(net, name) for name in SCALE]
    in_rows = [net.input_count, net.input_mean, net.input_square, net.remembered, net.lowest, net.highest]
    return [*weights, *learned, *(array.T for array in in_rows)]


# --- States from elsewhere ---------------------------------------------------------------------------------------


def check_state(state: Floats) -> None:
    """Raise a ``ValueError`` unless this state, from any source, is safe for the kernel."""
    check_states(state[None])


def check_states(states: Floats) -> None:
    """:func:`check_state` for states of the same sizes, which are rows, at once."""
    n_words = states.shape[1]
    if n_words < HEADER:
        raise ValueError("the state has no header")
    room = sizes_of(states[0])
    if min(room) < 0 or max(room) > n_words or Network.n_words(room) != n_words:
        raise ValueError("the state's length does not match its sizes")
    nets = _Networks(states)
    if any((getattr(nets, name) != size).any() for name, size in zip(SIZES, room, strict=True)):
        raise ValueError("the states are not of the same sizes")
    integers = _words(nets, np.int64, exclude=("events", "remembered_label"))
    in_use = nets.n_features, nets.n_hidden, nets.n_classes
    if (integers < 0).any() or any((n > most).any() for n, most in zip(in_use, room, strict=False)):
        raise ValueError("the state's sizes are out of range")
    has_begun = (nets.n_hidden > 0) | (nets.n_seen == 0)  # Ctrl-C may come before every network has
    if (nets.n_features < 1).any() or not has_begun.all() or (nets.max_events < 1).any():
        raise ValueError("the state's sizes are out of range")
    ranges = [*_seen(nets.low, nets.high), *_seen(nets.lowest, nets.highest)]
    learned = _words(nets, np.float64, exclude=(*SETTINGS, "remembered", "field_places", *SCALE, *UNSEEN))
    settings = [getattr(nets, name) for name in SETTINGS]
    floats = (*settings, *ranges, nets.scale_count, nets.mean, nets.square, nets.field_places, learned)
    if not all(np.isfinite(array).all() for array in floats):
        raise ValueError("the state holds numbers that are not finite")
    if (np.abs(learned) > LARGEST_LEARNED).any():
        raise ValueError("the state holds weights or statistics that are too large")
    if any((np.abs(array) > LARGEST).any() for array in (nets.mean, nets.field_places, *ranges)):
        raise ValueError("the state holds feature values that are too large")
    monitored = [nets.monitors[..., word] for word in (COUNT, MEAN, SQUARE)]
    counts = [nets.scale_count, nets.input_count, monitored[0], nets.square, nets.input_square, monitored[2]]
    adaptive = nets.adaptive_rate == 1.0  # then the moments are mean squares
    counts += [getattr(nets, f"{name}_moment")[adaptive] for name in AVERAGED]
    counts += [nets.class_count, nets.class_weight, nets.remembered_weight]
    if any((array < 0.0).any() for array in counts):
        raise ValueError("the state holds a negative count or variance")
    means = (
        (nets.scale_count, nets.mean, nets.square),
        (nets.input_count, nets.input_mean, nets.input_square),
        monitored,
    )
    if any(((count < 1.0) & ((mean != 0.0) | (square != 0.0))).any() for count, mean, square in means):
        raise ValueError("the state holds a mean without a count")  # its first value could lead to a negative variance
    _check_remembered(nets)
    sharpness, information = nets.calibration[:, LOG_SHARPNESS], nets.calibration[:, INFORMATION]
    if (np.abs(sharpness) > SHARPEST).any() or (information < 0.0).any():
        raise ValueError("the state's calibration is out of range")
    limits = [(nets.neighbours, MOST_NEIGHBOURS), (nets.rehearse, LARGEST_REHEARSAL)]
    limits += [(nets.renews, 1), (nets.stays_within, 1), (nets.start, room[1])]
    if any(((setting < 0) | (setting > most)).any() for setting, most in limits) or room[5] == 1:
        raise ValueError("the state's settings are out of range")
    events = nets.events
    flags = (nets.monitors[..., RESTART], events[..., EVENT_PHASE], events[..., EVENT_KIND] // 2)
    in_order = (nets.n_named <= nets.max_classes) & (nets.averaged_since <= nets.n_learned[:, DISCRIMINATIVE])
    if not in_order.all() or (integers > LARGEST_COUNT).any() or not all(np.isin(flag, (0, 1)).all() for flag in flags):
        raise ValueError("the state's counters are out of range")


def _seen(low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """The ends of those ranges that something was seen of."""
    unseen = np.isposinf(low) & np.isneginf(high)
    return low[~unseen], high[~unseen]


def _check_remembered(nets: _Networks) -> None:
    """What is in use of the rings must be labelled samples, and the fields placed by them must be in their order."""
    labels = nets.remembered_label
    is_kept = np.arange(labels.shape[1]) < nets.n_remembered[:, None]
    is_label = (labels >= 0) & (labels < nets.n_classes[:, None])
    if np.isinf(nets.remembered).any() or not is_label[is_kept].all():
        raise ValueError("the state remembers samples that cannot have been learned")
    if (np.diff(nets.field_places) < 0.0).any():
        raise ValueError("the state's fields are out of order")


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


def n_parameters(net: Network) -> int:
    """Of the classifier: the weights and offsets of the hidden units and of the outputs."""
    plain = plain_units(net)
    seen = plain * net.n_features + (net.n_hidden - plain) * net.n_features * net.max_fields
    return seen + net.n_hidden + net.n_classes * (net.n_hidden + 1)


def counted(nets: list[Network], name: str) -> Words:
    """A counter by phase, added up over networks."""
    total: Words = np.sum([getattr(net, name) for net in nets], axis=0)
    return total
