"""What is done to states beside learning: making, checking, enlarging and copying them, and reading what they remember.

Nothing here is compiled.
"""

from __future__ import annotations

from functools import lru_cache
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
LARGEST_REHEARSAL = 1000  # samples revisited for each that is taught
LARGEST_COUNT = 2**62  # limit for loaded counters, so that they can still be increased

SETTINGS = tuple(
    name for name, field in Network.fields().items() if not field.shape and field.dtype.kind == "f"
)  # the options as the kernel knows them
SCALE = ("scale_count", "low", "high", "mean", "square")  # what the scaling has learned
WEIGHED = ("class_count", "class_weight")  # what classes weigh
_HEADER: Any = Network.fields()["encoder"].start  # words before the first array whose size depends on the model
REMEMBERED = ("remembered", "remembered_label", "remembered_weight")  # the latest labelled samples
_ENDED_BEFORE = (WEIGHED[0], REMEMBERED[0], "causes")  # the fields before which the states of earlier versions end
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


def new_state(features: int, hidden: int, classes: int, events: int, samples: int = 0, *, seed: int) -> Floats:
    """A state with this much room that has seen nothing; :func:`kernel.learn` draws its first hidden units."""
    sizes = features, hidden, classes, events, samples
    state = aligned(Network.n_words(sizes))
    net = Network.empty(sizes, state)
    net.n_features = features
    net.random[0] = seed
    net.low[:] = np.inf
    net.high[:] = -np.inf
    net.monitors[:, :, kernel.RESTART] = 1.0
    return state


def scratch_for(state: Floats) -> Floats:
    """The scratch space needed for this state."""
    size = state.view(np.int64).item  # the first words: at once, as single samples are mostly this
    return np.empty(_n_scratch(size(0), size(1), size(2)))


@lru_cache(maxsize=4096)
def _n_scratch(features: int, hidden: int, classes: int) -> int:
    return Work.n_words((features, hidden, classes, 0, 0))


def sizes_of(state: Floats) -> Sizes:
    """What the state has room for: features, hidden units, classes and events."""
    return Network(state).sizes


def set_settings(net: Network, settings: dict[str, float]) -> None:
    """Hand the settings over; averages that were left out so far begin with the weights as they are."""
    if net.averaging == 0.0 < settings["averaging"]:
        net.averaged_since = net.n_learned[kernel.DISCRIMINATIVE]
        net.losses[kernel.BY_AVERAGES] = net.losses[kernel.BY_WEIGHTS]
        for name in AVERAGED:
            getattr(net, f"{name}_slow")[:] = getattr(net, name)
    for name, value in settings.items():
        setattr(net, name, value)


# --- Room --------------------------------------------------------------------------------------------------------


def resized(state: Floats, features: int = 0, hidden: int = 0, classes: int = 0) -> Floats:
    """A copy with at least this much room and no less than before, which goes on exactly as the original would."""
    n, r, m, events, samples = sizes_of(state)
    larger = new_state(max(n, features), max(r, hidden), max(m, classes), events, samples, seed=0)
    old, new = Network(state), Network(larger)
    for name in Network.fields():
        if name not in SIZES:
            source, target = np.asarray(getattr(old, name)), getattr(new, name)
            if source.ndim == 0:
                setattr(new, name, source)
            else:
                target[tuple(slice(length) for length in source.shape)] = source
    return larger


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
    net.remembered[:, place : place + n_new] = np.nan
    net.low[place : place + n_new], net.high[place : place + n_new] = np.inf, -np.inf
    net.n_features = last + n_new
    return changed


def _by_feature(net: Network) -> list[Floats]:
    """Everything that there is of each feature, with the feature as the first axis."""
    weights = [net.encoder, net.encoder_moment, net.encoder_slow, net.decoder_bias]
    learned = [getattr(net, name) for name in SCALE]
    return [*weights, *learned, net.input_count.T, net.input_mean.T, net.input_square.T, net.remembered.T]


# --- States from elsewhere ---------------------------------------------------------------------------------------


def padded(state: Floats) -> Floats:
    """A state that ends where those of an earlier version did, with zeros for the fields that came later.

    Any other is returned as it is.
    """
    room = sizes_of(state) if len(state) >= _HEADER else ()
    places = Network.places(room) if min(room, default=-1) >= 0 else {}
    ends = {places[name][0]: name for name in _ENDED_BEFORE if places}
    if len(state) not in ends or len(state) == Network.n_words(room):
        return state
    longer = aligned(Network.n_words(room))
    longer[: len(state)] = state
    if ends[len(state)] in (WEIGHED[0], REMEMBERED[0]):
        net = Network(longer)
        net.scaling_horizon = kernel.SCALING_HORIZON
        net.losses[kernel.BY_MEMORY] = 0.0  # where the loss of the weights and their averages together was
    return longer


def check_state(state: Floats) -> None:
    """Raise a ``ValueError`` unless this state, from any source, is safe for the kernel."""
    if len(state) < _HEADER:
        raise ValueError("the state has no header")
    room = sizes_of(state)
    if min(room) < 0 or max(room) > len(state) or Network.n_words(room) != len(state):
        raise ValueError("the state's length does not match its sizes")
    net = Network(state)
    integers = _words(net, np.int64, exclude=("events", "remembered_label"))
    in_use = net.n_features, net.n_hidden, net.n_classes
    if (integers < 0).any() or any(n > most for n, most in zip(in_use, room, strict=False)):
        raise ValueError("the state's sizes are out of range")
    has_begun = net.n_hidden > 0 or net.n_seen == 0  # Ctrl-C may come before every network has
    if net.n_features < 1 or not has_begun or net.max_events < 1:
        raise ValueError("the state's sizes are out of range")
    unseen = np.isposinf(net.low) & np.isneginf(net.high)
    ranges = (net.low[~unseen], net.high[~unseen])
    learned = _words(net, np.float64, exclude=(*SETTINGS, "padding", "remembered", *SCALE))
    settings = [getattr(net, name) for name in SETTINGS]
    floats = (settings, *ranges, net.scale_count, net.mean, net.square, learned)
    if not all(np.isfinite(array).all() for array in floats):
        raise ValueError("the state holds numbers that are not finite")
    if (np.abs(learned) > LARGEST_LEARNED).any():
        raise ValueError("the state holds weights or statistics that are too large")
    if any((np.abs(array) > kernel.LARGEST).any() for array in (net.mean, *ranges)):
        raise ValueError("the state holds feature values that are too large")
    counts = [net.scale_count, net.input_count, net.monitors[:, :, kernel.COUNT], net.square, net.input_square]
    if net.adaptive_rate == 1.0:  # then the moments are mean squares
        counts += [getattr(net, f"{name}_moment") for name in AVERAGED]
    counts += [net.class_count, net.class_weight, net.remembered_weight]
    if any((array < 0.0).any() for array in (*counts, net.monitors[:, :, kernel.SQUARE])):
        raise ValueError("the state holds a negative count or variance")
    monitored = tuple(net.monitors[:, :, word] for word in (kernel.COUNT, kernel.MEAN, kernel.SQUARE))
    means = ((net.scale_count, net.mean, net.square), (net.input_count, net.input_mean, net.input_square), monitored)
    if any(((count < 1.0) & ((mean != 0.0) | (square != 0.0))).any() for count, mean, square in means):
        raise ValueError("the state holds a mean without a count")  # its first value could lead to a negative variance
    n_kept = min(net.n_remembered, net.max_samples)
    labels = net.remembered_label[:n_kept]
    if np.isinf(net.remembered).any() or (labels < 0).any() or (labels >= net.n_classes).any():
        raise ValueError("the state remembers samples that cannot have been learned")
    if abs(net.calibration[kernel.LOG_SHARPNESS]) > kernel.SHARPEST or net.calibration[kernel.INFORMATION] < 0.0:
        raise ValueError("the state's calibration is out of range")
    if not 0 <= net.neighbours <= kernel.MOST_NEIGHBOURS or not 0 <= net.rehearse <= LARGEST_REHEARSAL:
        raise ValueError("the state's settings are out of range")
    events = net.events
    flags = (net.monitors[:, :, kernel.RESTART], events[:, kernel.EVENT_PHASE], events[:, kernel.EVENT_KIND] // 2)
    in_order = net.n_named <= net.max_classes and net.averaged_since <= net.n_learned[kernel.DISCRIMINATIVE]
    if not in_order or (integers > LARGEST_COUNT).any() or not all(np.isin(flag, (0, 1)).all() for flag in flags):
        raise ValueError("the state's counters are out of range")


def _words(net: Network, dtype: type[np.generic], exclude: tuple[str, ...]) -> Any:
    """The words of all fields of one type but some, in a row."""
    fields = Network.fields().items()
    kept = [getattr(net, name) for name, field in fields if field.dtype == dtype and name not in exclude]
    return np.concatenate([np.ravel(array) for array in kept])


def counted(nets: list[Network], name: str) -> Words:
    """A counter by phase, added up over networks."""
    total: Words = np.sum([getattr(net, name) for net in nets], axis=0)
    return total
