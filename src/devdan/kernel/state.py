"""What is done to states beside learning: making, enlarging and checking them, and reading their events.

Nothing here is compiled.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import dropwhile, groupby
from operator import gt
from typing import Any, NamedTuple

import numpy as np

from devdan.arrays import Floats, Integers
from devdan.kernel.drift import LATE_SAMPLES, PAST_SAMPLES, TOLERATED
from devdan.kernel.inputs import LARGEST
from devdan.kernel.memory import CACHE_LINE, SIZES, Field, N, Sizes
from devdan.kernel.mixing import LARGEST_LOG_TEMPERATURE
from devdan.kernel.network import (
    BY_AVERAGES,
    BY_WEIGHTS,
    COUNT,
    DISCRIMINATIVE,
    DRIFT,
    EVENT_KIND,
    EVENT_PHASE,
    EVENT_UNIT,
    EVOLVING,
    INFORMATION,
    KINDS,
    LOG_TEMPERATURE,
    MEAN,
    NO_CLASS,
    REPLAYING,
    RESTART,
    SQUARE,
    Evolving,
    Network,
    Replaying,
    Work,
)

PHASES = ("generative", "discriminative")
EVENT_KINDS = ("pruning", "growth", "drift")
EVENTS = 1000  # that a network keeps
LARGEST_LEARNED = 1e100  # limit for loaded weights and statistics, so that steps from there are finite
MOST_REPLAYS = 1000  # samples replayed for each that is taught
LARGEST_COUNT = 2**62  # limit for loaded counters, so that they can still be increased

SETTINGS = {
    kind: tuple(name for name, field in kind.fields().items() if not field.shape and field.dtype.kind == "f")
    for kind in KINDS
}  # the options as the kernel knows them
HEADER: int = Network.fields()["encoder"].start or 0  # words before the first array whose size depends on the model


_IN_USE = [Network.fields()[name].start or 0 for name in ("n_features", "n_hidden", "n_classes", "n_named")]


class Event(NamedTuple):
    """An event: its kind (growth, pruning or drift), sample and phase, and the number of hidden units after it.

    A drift in the discriminative phase is real: the labels of the same inputs have changed. In the generative phase it
    is virtual: the inputs have changed. A real drift of a rare class alone has its ``label``. ``network`` is the index
    of the member, from 0. What caused it is the ``value`` that reached a ``bound``; :attr:`why` says it in words.

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
    label: Any = None

    @property
    def why(self) -> str:
        """Its cause, in words."""
        if self.label is not None:
            return _OF_CLASS.format(self.value, self.bound, self.label)
        return _WHY[self.kind, self.phase].format(self.value, self.bound)


_REACHED = "came to {:.3g} (mean + deviation), where {:.3g} is the bound"
_ROSE = (
    f"over the latest {LATE_SAMPLES:.0f} samples is {{:.1f}} standard errors above its mean over the latest "
    f"{PAST_SAMPLES:,.0f}, more than {{:.0f}}"
)
_OF_CLASS = (
    f"the log loss of the latest samples of the class {{2}} was {{0:.1f}} deviations above its mean, added up beyond "
    f"{TOLERATED:g} each, more than {{1:.0f}}: samples of this class have changed"
)
_WHY = {
    ("growth", "generative"): f"bias² of the expected reconstruction {_REACHED}: too few hidden units",
    ("growth", "discriminative"): f"bias² of the expected prediction {_REACHED}: too few hidden units",
    ("pruning", "generative"): f"the variance of the reconstruction {_REACHED}: too many hidden units",
    ("pruning", "discriminative"): f"the variance of the prediction {_REACHED}: too many hidden units",
    ("drift", "generative"): f"the distance of the inputs from their mean {_ROSE}: the inputs have changed",
    ("drift", "discriminative"): f"the error {_ROSE}: the labels of such inputs have changed",
}


def events_of(net: Network, network: int = 0, labels: Sequence[Any] = ()) -> list[Event]:
    """The stored events of a network, oldest first; only one that evolves has any. ``labels`` are those of outputs."""
    if not isinstance(net, Evolving):
        return []
    n, room = net.n_events, net.max_events
    kept = np.arange(max(n - room, 0), n) % max(room, 1)
    found = []
    for words, (value, bound) in zip(net.events[kept].tolist(), net.causes[kept].tolist(), strict=True):
        sample, phase, unit, kind, size = words
        label = None
        if kind == DRIFT:
            label, unit = labels[unit] if 0 <= unit < len(labels) else None if unit == NO_CLASS else unit, 0
        found.append(Event(sample, PHASES[phase], EVENT_KINDS[kind], unit, size, network, value, bound, label))
    return found


def counted(nets: Sequence[Network], name: str) -> Integers:
    """A counter by phase, added up over the networks that evolve."""
    zeros = np.zeros(getattr(Evolving, name).shape, np.int64)
    total: Integers = sum((getattr(net, name) for net in nets if isinstance(net, Evolving)), zeros)
    return total


def n_parameters(net: Network) -> int:
    """Of the classifier: the weights and offsets of the hidden units and of the outputs."""
    plain = net.n_hidden - net.n_field_units
    seen = plain * net.n_features + net.n_field_units * net.n_features * net.n_fields
    return seen + net.n_hidden + net.n_classes * (net.n_hidden + 1)


# --- Making ------------------------------------------------------------------------------------------------------


def aligned(size: int) -> Floats:
    """Zeros that start on a cache line; if the capacity is a multiple of eight units, so does each row of weights."""
    words = np.zeros(size + CACHE_LINE - 1)
    start = -words.ctypes.data % (8 * CACHE_LINE) // 8
    return words[start : start + size]


def room_for(n_hidden: int, step: int = CACHE_LINE) -> int:
    """Capacity for hidden units that may become more: at least two steps, with two units spare.

    >>> [room_for(n) for n in (1, 14, 15, 60)], [room_for(n, 4) for n in (1, 6, 7, 60)]
    ([16, 16, 24, 64], [8, 8, 12, 64])
    """
    return max(2 * step, (n_hidden + 2 + step - 1) // step * step)


def new_evolving(features: int, hidden: int, classes: int, events: int = EVENTS, *, seed: int) -> Floats:
    """The state of an evolving network with this much room that has seen nothing.

    :func:`devdan.kernel.learn` draws its first hidden units.
    """
    state, net = _new(Evolving, EVOLVING, Sizes(features, hidden, classes, events), seed)
    net.monitors[:, :, RESTART] = 1.0
    return state


def new_replaying(features: int, hidden: int, classes: int, samples: int, fields: int = 0, *, seed: int) -> Floats:
    """The state of a replaying network that has seen nothing: with this many units, half of which see any fields."""
    field_units = hidden - hidden // 2 if fields > 0 else 0
    state, net = _new(Replaying, REPLAYING, Sizes(features, hidden, classes, 0, samples, fields, field_units), seed)
    net.start = hidden
    return state


def _new(block: Any, kind: int, sizes: Sizes, seed: int) -> tuple[Floats, Any]:
    state = aligned(block.n_words(sizes))
    net = block.empty(sizes, state)
    net.kind, net.n_features = kind, sizes.features
    net.random[0] = seed
    return state, net


def scratch_for(*states: Floats) -> Floats:
    """The scratch space needed for this state, or for each of these in turn."""
    size = states[0].view(np.int64).item  # the first words: at once, as single samples are mostly this
    n, r, m = size(1), size(2), size(3)
    for state in states[1:]:
        size = state.view(np.int64).item
        n, r, m = max(n, size(1)), max(r, size(2)), max(m, size(3))
    return np.empty(_n_scratch(n, r, m))


@lru_cache(maxsize=4096)
def _n_scratch(features: int, hidden: int, classes: int) -> int:
    return Work.n_words(Sizes(features, hidden, classes))


def sizes_of(state: Floats) -> Sizes:
    """What a state has room for."""
    return Sizes(*state.view(np.int64)[1 : 1 + len(SIZES)].tolist())


def set_settings(net: Network, settings: dict[str, float]) -> None:
    """Hand over those settings that a network has; averages that were left out begin with the weights as they are."""
    if net.averaging == 0.0 < settings["averaging"]:
        net.averaged_since = net.n_learned[DISCRIMINATIVE]
        net.losses[BY_AVERAGES] = net.losses[BY_WEIGHTS]
        for name in net.fields():
            if name.endswith("_slow"):
                getattr(net, name)[:] = getattr(net, name.removesuffix("_slow"))
    for name in SETTINGS[type(net)]:
        if name in settings:
            setattr(net, name, settings[name])


def settings_of(net: Network) -> dict[str, float]:
    """The settings that a network has, by name."""
    return {name: getattr(net, name) for name in SETTINGS[type(net)]}


# --- Room --------------------------------------------------------------------------------------------------------


def resized(state: Floats, features: int = 0, hidden: int = 0, classes: int = 0) -> Floats:
    """A copy with at least this much room and no less than before, which learns on exactly as the original would."""
    n, r, m, *others = sizes_of(state)
    return with_room(state, Sizes(max(n, features), max(r, hidden), max(m, classes), *others))


def with_room(state: Floats, room: Sizes) -> Floats:
    """A copy with this much room, enough for what is in use; where fewer events have room, it has the latest."""
    block, sizes = KINDS[state.view(np.int64).item(0)], sizes_of(state)
    in_use = state.view(np.int64)[_IN_USE].tolist()
    if any(map(gt, in_use, (*room[:3], room.classes))):
        raise ValueError(
            f"the state has more features, hidden units and classes in use, {in_use}, than room for, {room}"
        )
    copy = aligned(block.n_words(room))
    new = block.empty(room, copy)
    for source, shape, target, new_shape, common in _moves(block, sizes, room):
        copy[target].reshape(new_shape)[common] = state[source].reshape(shape)[common]
    copy.view(np.int64)[1 : 1 + len(SIZES)] = room
    if sizes.events != room.events:  # events are in a ring, where their places differ
        old = block(state)
        latest = np.arange(max(old.n_events - min(sizes.events, room.events), 0), old.n_events)
        for name in ("events", "causes"):
            before, after = getattr(old, name), getattr(new, name)
            after[:] = 0
            after[latest % room.events] = before[latest % sizes.events]
    return copy


_Shape = tuple[int, ...]


@lru_cache(maxsize=4096)
def _moves(block: Any, sizes: Sizes, room: Sizes) -> list[tuple[slice, _Shape, slice, _Shape, tuple[slice, ...]]]:
    """Where words go in a state with other room: from and to, each with its shape, and the part that both have.

    Fields in a row that are alike are moved together, and those in a row that stay as they are, too.
    """
    found = []
    pairs = zip(_alike(block, sizes), _alike(block, room), strict=True)
    for (stays, _), group in groupby(pairs, lambda pair: (pair[0][1] == pair[1][1], pair[0][2])):
        own = list(group)
        if stays:
            whole = (sum(math.prod(shape) for (_, shape, _), _ in own),)
            own = [((own[0][0][0], whole, 0), (own[0][1][0], whole, 0))]
        for (start, shape, _), (new_start, new_shape, _) in own:
            source, target = slice(start, start + math.prod(shape)), slice(new_start, new_start + math.prod(new_shape))
            found.append((source, shape, target, new_shape, tuple(map(slice, map(min, shape, new_shape)))))
    return found


def _alike(block: Any, sizes: Sizes) -> Iterator[tuple[int, _Shape, int]]:
    """Where the fields of a block begin, their shapes, and after how many aligned ones, before which may be a gap.

    Those in a row that are alike are taken together.
    """
    places, room = block.places(sizes), dict(zip(SIZES, sizes, strict=True))
    gaps = dict(zip(places, np.cumsum([field.aligned for field in block.fields().values()]).tolist(), strict=True))

    def axes(name: str) -> tuple[tuple[int | str, ...], int]:
        """The axes of a field that depend on sizes, and those after them; and how many gaps are before it."""
        return tuple(dropwhile(lambda size: isinstance(size, int), block.fields()[name].shape)), gaps[name]

    for (shape, gap), names in groupby(places, axes):
        own = [places[name] for name in names]
        n_words = sum(math.prod(shape) for _, shape in own)
        lengths = [room[size] if isinstance(size, str) else size for size in shape]
        yield own[0][0], (n_words // max(math.prod(lengths), 1), *lengths), gap


def with_features(state: Floats, gone: Sequence[int], n_new: int) -> Floats:
    """A copy without some of its features, and with others, of which nothing is known, after the rest."""
    net = Network(state)
    kept = [feature for feature in range(net.n_features) if feature not in gone]
    needed = len(kept) + n_new
    room = net.max_features if needed <= net.max_features else max(needed, 2 * net.max_features)
    changed = resized(state, features=room)
    net = Network(changed)
    for name, field in net.fields().items():
        if N in field.shape:
            by_feature = np.moveaxis(getattr(net, name), field.shape.index(N), 0)
            by_feature[: len(kept)] = by_feature[kept]
            by_feature[len(kept) :] = field.empty
    net.n_features = needed
    return changed


# --- States from elsewhere ---------------------------------------------------------------------------------------


def check_state(state: Floats) -> None:
    """Raise a ``ValueError`` unless this state, from any source, is safe for the kernel."""
    check_states(state[None])


def check_states(states: Floats) -> None:
    """:func:`check_state` for states of the same kind and sizes, which are rows, at once."""
    n_words = states.shape[1]
    if n_words < HEADER:
        raise ValueError("the state has no header")
    kinds, room = states.view(np.int64)[:, 0], sizes_of(states[0])
    if not 0 <= kinds[0] < len(KINDS):
        raise ValueError("the state is of no kind that exists")
    if min(room) < 0 or max(room) > n_words or KINDS[kinds[0]].n_words(room) != n_words:
        raise ValueError("the state's length does not match its sizes")
    nets = _Networks(states)
    if (kinds != kinds[0]).any() or (states.view(np.int64)[:, 1 : 1 + len(SIZES)] != room).any():
        raise ValueError("the states are not of the same kind and sizes")
    _check_sizes(nets, room)
    _check_numbers(nets)
    _check_counters(nets)
    if nets.block is Replaying:
        _check_replaying(nets, room)


class _Networks:
    """The fields of states of the same kind and sizes, each with an axis more: the network."""

    def __init__(self, states: Floats) -> None:
        self.block = KINDS[states.view(np.int64).item(0, 0)]
        self._states, self._places = states, self.block.places(sizes_of(states[0]))

    def __getattr__(self, name: str) -> Any:
        start, shape = self._places[name]
        words = self._states[:, start : start + math.prod(shape)]
        return words.view(self.block.fields()[name].dtype).reshape(len(words), *shape)

    def named(self, belongs: Any) -> list[Any]:
        """The fields whose names and kinds belong."""
        return [getattr(self, name) for name, field in self.block.fields().items() if belongs(name, field)]


def _check_sizes(nets: _Networks, room: Sizes) -> None:
    """What is in use must be in range of what there is room for."""
    in_use = nets.n_features, nets.n_hidden, nets.n_classes
    integers = nets.named(lambda name, field: field.dtype == np.int64 and name not in ("events", "buffer_label"))
    out_of_range = any((words < 0).any() for words in integers)
    out_of_range |= any((n > most).any() for n, most in zip(in_use, room[:3], strict=True))
    has_begun = (nets.n_hidden > 0) | (nets.n_seen == 0)  # Ctrl-C may come before every network has
    if out_of_range or (nets.n_features < 1).any() or not has_begun.all():
        raise ValueError("the state's sizes are out of range")
    if nets.block is Evolving and (room.events < 1 or any(room[4:])):
        raise ValueError("the state's sizes are out of range")
    if any((words > LARGEST_COUNT).any() for words in integers):
        raise ValueError("the state's counters are out of range")


def _check_numbers(nets: _Networks) -> None:
    """Numbers must be finite, and so must be what is computed from them."""
    settings = SETTINGS[nets.block]
    values = ["mean", *(["field_places"] if nets.block is Replaying else [])]  # of features
    ranges = [*_seen(nets.low, nets.high), *_seen(nets.lowest, nets.highest)]

    def is_learned(name: str, field: Field) -> bool:
        others = (*settings, *values, "square", "low", "high", "lowest", "highest", "buffer")
        return field.dtype == np.float64 and name not in others

    learned, of_features = nets.named(is_learned), [*(getattr(nets, name) for name in values), *ranges]
    floats = [*(getattr(nets, name) for name in settings), *of_features, nets.square, *learned]
    if not all(np.isfinite(array).all() for array in floats):
        raise ValueError("the state holds numbers that are not finite")
    if any((np.abs(array) > LARGEST_LEARNED).any() for array in learned):
        raise ValueError("the state holds weights or statistics that are too large")
    if any((np.abs(array) > LARGEST).any() for array in of_features):
        raise ValueError("the state holds feature values that are too large")
    if (np.abs(nets.calibration[:, LOG_TEMPERATURE]) > LARGEST_LOG_TEMPERATURE).any():
        raise ValueError("the state's calibration is out of range")


def _seen(low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """The ends of those ranges that something was seen of."""
    unseen = np.isposinf(low) & np.isneginf(high)
    return low[~unseen], high[~unseen]


def _check_counters(nets: _Networks) -> None:
    """Counts and variances are never negative, and means have counts: else a variance could become negative."""
    monitors = [nets.monitors, nets.surprises, nets.class_surprises] if nets.block is Evolving else [nets.surprise]
    statistics = [tuple(each[..., word] for word in (COUNT, MEAN, SQUARE)) for each in monitors]
    statistics.append((nets.scale_count, nets.mean, nets.square))
    if nets.block is Evolving:
        statistics.append((nets.input_count, nets.input_mean, nets.input_square))
    counts = [array for count, _, square in statistics for array in (count, square)]
    adaptive = nets.adaptive_rate == 1.0  # then the moments of the biases are mean squares
    counts += [nets.encoder_bias_moment[adaptive], nets.output_bias_moment[adaptive]]
    counts += [nets.class_count, nets.class_weight, nets.calibration[:, INFORMATION]]
    if any((array < 0.0).any() for array in counts):
        raise ValueError("the state holds a negative count or variance")
    if any(((count < 1.0) & ((mean != 0.0) | (square != 0.0))).any() for count, mean, square in statistics):
        raise ValueError("the state holds a mean without a count")
    if any(((switch != 0.0) & (switch != 1.0)).any() for switch in (nets.clips, nets.mixed)):
        raise ValueError("the state's settings are out of range")
    if ((nets.start < 0.0) | (nets.start > nets.max_hidden) | (nets.annealing < 0.0)).any():
        raise ValueError("the state's settings are out of range")
    in_order = (nets.n_named <= nets.max_classes) & (nets.averaged_since <= nets.n_learned[:, DISCRIMINATIVE])
    if nets.block is Evolving:
        events = nets.events
        is_event = np.isin(events[..., EVENT_PHASE], (0, 1)) & np.isin(events[..., EVENT_KIND], (0, 1, 2))
        of_class = events[..., EVENT_UNIT] * (events[..., EVENT_KIND] == DRIFT)
        is_event &= (of_class >= NO_CLASS) & (of_class <= np.maximum(nets.n_classes[:, None] - 1, 0))
        is_flag = np.isin(nets.monitors[..., RESTART], (0.0, 1.0))
        in_order = in_order & is_event.all(axis=1) & is_flag.all(axis=(1, 2))
    if not in_order.all():
        raise ValueError("the state's counters are out of range")


def _check_replaying(nets: _Networks, room: Sizes) -> None:
    """What is in use of the buffer must be labelled samples, and fields must be in their order."""
    if room.events != 0 or room.samples < 1 or room.fields == 1 or (room.fields == 0) != (room.field_units == 0):
        raise ValueError("the state's sizes are out of range")
    has_units = ((nets.n_hidden == 0) | (nets.n_hidden == nets.start)) & (nets.start >= room.field_units)
    if not has_units.all():
        raise ValueError("the state's sizes are out of range")
    if ((nets.replays < 0.0) | (nets.replays > MOST_REPLAYS)).any():
        raise ValueError("the state's settings are out of range")
    if (nets.buffer_weight < 0.0).any():
        raise ValueError("the state holds a negative count or variance")
    labels = nets.buffer_label
    is_kept = np.arange(labels.shape[1]) < nets.n_stored[:, None]
    is_label = (labels >= 0) & (labels < nets.n_classes[:, None])
    if np.isinf(nets.buffer).any() or not is_label[is_kept].all():
        raise ValueError("the state's buffer holds samples that cannot have been learned")
    if (np.diff(nets.field_places) < 0.0).any():
        raise ValueError("the state's fields are out of order")
