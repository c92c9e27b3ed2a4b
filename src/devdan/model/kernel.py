"""DEVDAN's kernel: every compiled function; docs/algorithm.md maps the paper's equations to them.

A model is one flat array of 64-bit words, its *state*: sizes and counters, settings, running statistics, weights. The
state is all there is, so a model is copied, saved and sent as bytes, and many models are rows of a matrix that one
compiled loop can step. :func:`views` gives the words their names; compiled code knows it as ``unpack``.

In every array of weights the last axis is the hidden unit: ``encoder`` is the paper's W (n x R), ``output`` is the
transpose of its Φ (m x R). Once started, only :func:`grow` and :func:`prune` change the number of hidden units. The
arrays have room for more features, units and classes than are in use; where a unit might find none, :func:`learn`
returns early and is called again with a larger state (:func:`resized`).

Nothing here knows of ``None``, text or options, and nothing allocates memory: the caller brings the scratch space. All
compiled code is in this file, because Numba's disk cache does not notice an edit in another one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
import numpy.typing as npt
from numba import njit

from devdan.arrays import Floats, Words

Random = npt.NDArray[np.uint64]
F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS: dict[str, Any] = {
    "error_model": "numpy",
    # Sums may be reordered and products fused, so that loops vectorise; NaN and infinity keep their meaning.
    "fastmath": {"reassoc", "contract", "nsz", "arcp"},
    "nogil": True,
    "_nrt": False,  # nothing is allocated, so that no references need be counted, which takes longer than a small step
}


def compiled(function: F) -> F:
    """A function of a few arrays, for compiled code."""
    return cast(F, njit(**_OPTIONS)(function))


def inlined(function: F) -> F:
    """A function of the whole network, for compiled code; to hand on that many arrays would cost more than its work."""
    return cast(F, njit(inline="always", **_OPTIONS)(function))


def entry(function: F) -> F:
    """A function for Python: kept on disk once compiled, if there is a folder to keep it in."""
    try:
        return cast(F, njit(cache=True, **_OPTIONS)(function))
    except RuntimeError:  # neither the package's folder nor the user's cache is writable
        return compiled(function)


# --- The state ---------------------------------------------------------------------------------------------------

# Words of the header, integers.
MAX_FEATURES, MAX_HIDDEN, MAX_CLASSES, MAX_EVENTS = range(4)  # room
N_FEATURES, N_HIDDEN, N_CLASSES = range(4, 7)  # in use
N_SEEN, N_OBSERVED, N_TAUGHT = range(7, 10)  # samples: in all, by the generative and by the discriminative phase
N_NAMED, N_EVENTS, RANDOM = range(10, 13)  # classes named in advance, events ever, the random generator's word
AVERAGED_SINCE = 13  # N_TAUGHT when the averages of the weights began
N_DRIFTS = 14  # drifts that each phase signalled
N_CHANGES = 16  # prunings and growths of each phase
N_FOLLOWED = 20  # events of the layer below that the features have followed, where they are its units
N_CAME, N_LABELS_CAME = 21, 22  # to an ensemble, of which each member visits some
HEADER = 24

# Settings, floats; a switch is 0 or 1.
START, SCALING, MASKING, GENERATE, GROW, PRUNE, ADAPTIVE_SCOPE = range(7)
GENERATIVE_RATE, DISCRIMINATIVE_RATE, MOMENTUM = range(7, 10)
ADAPTIVE_RATE, AVERAGING = range(10, 12)
LAYERED, VISITS = range(12, 14)  # whether there are other layers; how often each sample is visited, on average
SETTINGS = 16
UNSCALED, MINMAX, STANDARD = 0.0, 1.0, 2.0

GENERATIVE, DISCRIMINATIVE = range(2)  # phases

# A monitor watches the bias², the variance or the surprise of one phase.
BIAS2, VARIANCE, SURPRISE = range(3)
COUNT, MEAN, SQUARE, MIN_MEAN, MIN_STD, RESTART = range(6)
LATE = MIN_MEAN  # that of the surprise has no minima, but a mean of late
MONITOR = 6
LOSSES = 4  # three, and room that keeps the weights on a cache line

EVENT_SAMPLE, EVENT_PHASE, EVENT_UNIT, EVENT_KIND, EVENT_SIZE = range(5)
EVENT = 5
PRUNING, GROWTH, REPLACEMENT, DRIFT = range(4)  # kinds of events


class Network(NamedTuple):
    """The state's words by name."""

    header: Words
    random: Random
    settings: Floats
    monitors: Floats  # (phase, BIAS2, VARIANCE or SURPRISE, MONITOR)
    scale_count: Floats  # what the scaling has learned, per feature
    low: Floats
    high: Floats
    mean: Floats
    square: Floats
    input_count: Floats  # (phase, n): statistics of the input, which is corrupted in the generative phase
    input_mean: Floats
    input_square: Floats
    encoder: Floats  # W, (n, R)
    encoder_bias: Floats  # b, (R,)
    decoder_bias: Floats  # c, (n,)
    output: Floats  # Φ', (m, R)
    output_bias: Floats  # η, (m,)
    encoder_moment: Floats  # of the discriminative gradients: with momentum their sum, else their mean square
    encoder_bias_moment: Floats
    output_moment: Floats
    output_bias_moment: Floats
    encoder_slow: Floats  # exponential averages of the weights
    encoder_bias_slow: Floats
    output_slow: Floats
    output_bias_slow: Floats
    losses: Floats  # (3,): of the weights, their averages and both mixed, on what each was asked before it learned it
    events: Words  # (room, EVENT): a ring, where the newest overwrites the oldest


def state_size(features: int, hidden: int, classes: int, events: int) -> int:
    """The words of a state with this much room."""
    fixed = HEADER + SETTINGS + 6 * MONITOR + LOSSES + EVENT * events
    return fixed + 12 * features + 3 * hidden * (features + 1 + classes) + 3 * classes


def views(state: Floats) -> Network:
    """The state's words by name, as views that write through."""
    header = state[:HEADER].view(np.int64)
    n, r, m = header[MAX_FEATURES], header[MAX_HIDDEN], header[MAX_CLASSES]
    a = HEADER + SETTINGS
    monitors = state[a : a + 6 * MONITOR].reshape(2, 3, MONITOR)
    a += 6 * MONITOR
    losses = state[a : a + 3]
    a += LOSSES
    encoders = state[a : a + 3 * n * r].reshape(3, n, r)
    a += 3 * n * r
    encoder_biases = state[a : a + 3 * r].reshape(3, r)
    a += 3 * r
    outputs = state[a : a + 3 * m * r].reshape(3, m, r)
    a += 3 * m * r
    features = state[a : a + 12 * n].reshape(12, n)
    a += 12 * n
    output_biases = state[a : a + 3 * m].reshape(3, m)
    a += 3 * m
    return Network(
        header,
        state[RANDOM : RANDOM + 1].view(np.uint64),
        state[HEADER : HEADER + SETTINGS],
        monitors,
        features[0],
        features[1],
        features[2],
        features[3],
        features[4],
        features[5:7],
        features[7:9],
        features[9:11],
        encoders[0],
        encoder_biases[0],
        features[11],
        outputs[0],
        output_biases[0],
        encoders[1],
        encoder_biases[1],
        outputs[1],
        output_biases[1],
        encoders[2],
        encoder_biases[2],
        outputs[2],
        output_biases[2],
        losses,
        state[a : a + EVENT * header[MAX_EVENTS]].view(np.int64).reshape(header[MAX_EVENTS], EVENT),
    )


unpack = inlined(views)


def header_of(state: Floats) -> Words:
    """The header alone: all views take many times as long, which counts where samples come one by one."""
    header: Words = state[:HEADER].view(np.int64)
    return header


def monitors_of(state: Floats) -> Floats:
    """The monitors alone."""
    return state[HEADER + SETTINGS : HEADER + SETTINGS + 6 * MONITOR].reshape(2, 3, MONITOR)


def aligned(size: int) -> Floats:
    """Zeros that start with a cache line; if there is room for a multiple of eight units, each row of weights does."""
    words = np.zeros(size + 7)
    start = -words.ctypes.data % 64 // 8
    return words[start : start + size]


def new_state(features: int, hidden: int, classes: int, events: int, seed: int) -> Floats:
    """A state with this much room that has seen nothing; :func:`learn` draws its first hidden units."""
    state = aligned(state_size(features, hidden, classes, events))
    header = state[:HEADER].view(np.int64)
    header[: N_FEATURES + 1] = features, hidden, classes, events, features
    net = views(state)
    net.random[0] = seed
    net.low[:] = np.inf
    net.high[:] = -np.inf
    net.monitors[:, :, RESTART] = 1.0
    return state


LARGEST_LEARNED = 1e100  # of weights and statistics from elsewhere, so that the steps from there are finite
LARGEST_COUNT = 2**62  # of counters from elsewhere, so that they can go on


def generator(state: Floats) -> Random:
    """The random generator's word, for :func:`shuffle`."""
    return state[RANDOM : RANDOM + 1].view(np.uint64)


def check_state(state: Floats) -> None:
    """Raise a ``ValueError`` unless the kernel can work with this state, whoever wrote it."""
    if len(state) < HEADER:
        raise ValueError("the state has no header")
    header = state[:HEADER].view(np.int64)
    room, used = header[: MAX_EVENTS + 1], header[N_FEATURES : N_CLASSES + 1]
    if (room < 0).any() or (room > len(state)).any() or state_size(*room.tolist()) != len(state):
        raise ValueError("the state's length does not match its sizes")
    counters = np.delete(header, RANDOM)
    if (counters < 0).any() or (used > room[:3]).any() or used[0] < 1 or used[1] < 1 or room[MAX_EVENTS] < 1:
        raise ValueError("the state's sizes are out of range")
    net = views(state)
    unseen = np.isposinf(net.low) & np.isneginf(net.high)
    floats = [net.settings, net.monitors, net.scale_count, net.low[~unseen], net.high[~unseen]]
    if not all(np.isfinite(array).all() for array in (*floats, *net[Network._fields.index("mean") : -1])):
        raise ValueError("the state holds numbers that are not finite")
    learned = (net.monitors, *net[Network._fields.index("input_count") : -1])
    if any((np.abs(array) > LARGEST_LEARNED).any() for array in learned):
        raise ValueError("the state holds numbers that no learning leads to")
    if any((np.abs(array) > LARGEST).any() for array in (net.mean, net.low[~unseen], net.high[~unseen])):
        raise ValueError("the state holds features larger than any")
    counts = [net.scale_count, net.input_count, net.monitors[:, :, COUNT], net.square, net.input_square]
    if net.settings[ADAPTIVE_RATE] == 1.0:  # there the moments are mean squares
        counts += [net.encoder_moment, net.encoder_bias_moment, net.output_moment, net.output_bias_moment]
    if any((array < 0.0).any() for array in (*counts, net.monitors[:, :, SQUARE])):
        raise ValueError("the state holds a negative count or variance")
    monitored = (net.monitors[:, :, COUNT], net.monitors[:, :, MEAN], net.monitors[:, :, SQUARE])
    means = ((net.scale_count, net.mean, net.square), (net.input_count, net.input_mean, net.input_square), monitored)
    if any(((count < 1.0) & ((mean != 0.0) | (square != 0.0))).any() for count, mean, square in means):
        raise ValueError("the state holds a mean of nothing")  # whose first value could make a negative variance
    flags = (net.monitors[:, :, RESTART], net.events[:, EVENT_PHASE], net.events[:, EVENT_KIND] // 2)
    in_order = header[N_NAMED] <= header[MAX_CLASSES] and header[AVERAGED_SINCE] <= header[N_TAUGHT]
    if not in_order or (counters > LARGEST_COUNT).any() or not all(np.isin(flag, (0, 1)).all() for flag in flags):
        raise ValueError("the state's counters are out of range")


def resized(state: Floats, features: int, hidden: int, classes: int) -> Floats:
    """A copy with more room, which goes on exactly as the original would."""
    old = views(state)
    larger = new_state(features, hidden, classes, int(old.header[MAX_EVENTS]), seed=0)
    new = views(larger)
    new.header[N_FEATURES:] = old.header[N_FEATURES:]
    for source, target in zip(old[1:], new[1:], strict=True):
        target[tuple(slice(length) for length in source.shape)] = source
    return larger


def add_feature(state: Floats) -> Floats:
    """One more feature, which no unit looks at yet; where there is no room for it, in a copy that has more."""
    header = state[:HEADER].view(np.int64)
    if header[N_FEATURES] == header[MAX_FEATURES]:
        state = resized(state, 2 * int(header[MAX_FEATURES]), int(header[MAX_HIDDEN]), int(header[MAX_CLASSES]))
        header = state[:HEADER].view(np.int64)
    header[N_FEATURES] += 1
    return state


def remove_feature(state: Floats, feature: int) -> None:
    """Forget a feature; those after it move up."""
    net = views(state)
    last = int(net.header[N_FEATURES]) - 1
    weights = (net.encoder, net.encoder_moment, net.encoder_slow, net.decoder_bias)
    learned = (net.scale_count, net.low, net.high, net.mean, net.square)
    for array in (*weights, *learned, net.input_count.T, net.input_mean.T, net.input_square.T):
        array[feature:last] = array[feature + 1 : last + 1].copy()
        array[last] = 0.0
    net.low[last], net.high[last] = np.inf, -np.inf
    net.header[N_FEATURES] = last


ACTUAL, EXPECTED, EXPECTED2 = range(3)  # rows: a value of the sample, its expectation, and that of its square


class Work(NamedTuple):
    """Scratch space for one sample."""

    present: Floats  # (n,): 1, or 0 where the feature is missing
    share: Floats  # (n,): of the sample in a running mean
    masked: Floats  # (n,): 1, or 0 where the feature is kept
    clean: Floats  # (n,): x, scaled
    target: Floats  # (n,): what the reconstruction should be, in [0, 1]
    inputs: Floats  # (2, n): x or x̃, and μ / sqrt(1 + πσ²/8)
    hidden: Floats  # (3, R): y, E[y], E[y²]
    delta: Floats  # (R,): the gradient before the encoder's sigmoid
    reconstruction: Floats  # (3, n): z, E[z], E[z²]
    flat_reconstruction: Floats  # the same words as one row
    one_hot: Floats  # (m,): C
    prediction: Floats  # (3, m): Ĉ, E[Ĉ], E[Ĉ²]
    flat_prediction: Floats
    every_class: Floats  # (m,): ones


def scratch_for(state: Floats) -> Floats:
    """The scratch space that calls with this state ask for."""
    n, r, m, _ = state[:4].view(np.int64)
    return np.empty(10 * n + 4 * r + 5 * m)


def work_views(net: Network, scratch: Floats) -> Work:
    n, r, m = net.header[MAX_FEATURES], net.header[MAX_HIDDEN], net.header[MAX_CLASSES]
    features = scratch[: 10 * n].reshape(10, n)
    units = scratch[10 * n : 10 * n + 4 * r].reshape(4, r)
    classes = scratch[10 * n + 4 * r : 10 * n + 4 * r + 5 * m].reshape(5, m)
    return Work(
        features[0],
        features[1],
        features[2],
        features[3],
        features[4],
        features[5:7],
        units[:3],
        units[3],
        features[7:],
        scratch[7 * n : 10 * n],
        classes[0],
        classes[2:],
        scratch[10 * n + 4 * r + 2 * m : 10 * n + 4 * r + 5 * m],
        classes[1],
    )


unpack_work = inlined(work_views)


# --- Randomness: SplitMix64, one word of state -------------------------------------------------------------------


@compiled
def uniform(random: Random) -> float:
    """A draw from [0, 1)."""
    random[0] += np.uint64(0x9E3779B97F4A7C15)
    z = random[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return np.float64(z >> np.uint64(11)) * 2.0**-53


@compiled
def normal(random: Random, variance: float) -> float:
    """A draw from N(0, variance), by Box and Muller."""
    radius = math.sqrt(-2.0 * variance * math.log(1.0 - uniform(random)))
    return radius * math.cos(2.0 * math.pi * uniform(random))


@entry
def shuffle(random: Random, order: Words) -> None:
    """Put the order in which a chunk is visited at random."""
    for i in range(len(order) - 1, 0, -1):
        j = int(uniform(random) * (i + 1))
        order[i], order[j] = order[j], order[i]


# --- Scaling: learned online, from what was seen so far ----------------------------------------------------------

LARGEST = 1e150  # a larger value counts as this one, so that its square is finite
WIDEST = 5.0  # in standard deviations; a value farther off is clipped
SCALING_HORIZON = 2000.0  # samples over which means and deviations are taken


@compiled
def step_mean(mean: Floats, square: Floats, share: Floats, value: Floats, length: int) -> None:
    """One more value for recursive means and mean square deviations; its share is 1 / count, or 0 to leave it out."""
    for j in range(length):
        step = value[j] - mean[j]
        mean[j] += share[j] * step
        square[j] += share[j] * (step * (value[j] - mean[j]) - square[j])


@compiled
def step_count(count: Floats, present: Floats, share: Floats, length: int) -> None:
    """One more value where it is present, and its share in the mean."""
    for j in range(length):
        count[j] += present[j]
        share[j] = present[j] / max(count[j], 1.0)


@compiled
def find(row: Floats, value: Floats, present: Floats, length: int) -> float:
    """Tell missing features from those that are there, and how many these are."""
    n_present = 0.0
    for j in range(length):
        missing = math.isnan(row[j])
        present[j] = 0.0 if missing else 1.0
        n_present += present[j]
        value[j] = 0.0 if missing else min(max(row[j], -LARGEST), LARGEST)
    return n_present


@inlined
def learn_scaling(net: Network, work: Work) -> None:
    """Learn the features' ranges (``MINMAX``) or their means and deviations (``STANDARD``) from one more sample."""
    n, value, share = net.header[N_FEATURES], work.clean, work.share
    if net.settings[SCALING] == MINMAX:
        for j in range(n):
            net.low[j] = value[j] if (work.present[j] > 0.0) & (value[j] < net.low[j]) else net.low[j]
            net.high[j] = value[j] if (work.present[j] > 0.0) & (value[j] > net.high[j]) else net.high[j]
    elif net.settings[SCALING] == STANDARD:
        step_count(net.scale_count, work.present, share, n)
        for j in range(n):
            share[j] = max(share[j], work.present[j] / (SCALING_HORIZON * net.settings[VISITS]))
        step_mean(net.mean, net.square, share, value, n)


@compiled
def scale_minmax(x: Floats, low: Floats, high: Floats, length: int) -> None:
    for j in range(length):
        x[j] = min(max((x[j] - low[j]) / (high[j] - low[j]), 0.0), 1.0) if high[j] > low[j] else 0.0


@compiled
def scale_standard(x: Floats, mean: Floats, square: Floats, length: int) -> None:
    for j in range(length):
        x[j] = min(max((x[j] - mean[j]) / math.sqrt(square[j]), -WIDEST), WIDEST) if square[j] > 0.0 else 0.0


@inlined
def scale(net: Network, work: Work) -> None:
    """x as the network takes it; a missing feature, and one that never varied, takes the neutral value 0."""
    scaling, n, x = net.settings[SCALING], net.header[N_FEATURES], work.clean
    if scaling == MINMAX:
        scale_minmax(x, net.low, net.high, n)
    elif scaling == STANDARD:
        scale_standard(x, net.mean, net.square, n)
    else:
        for j in range(n):
            x[j] = min(max(x[j], 0.0), 1.0)
    for j in range(n):
        x[j] *= work.present[j]
    for j in range(n):
        work.target[j] = x[j]
    if scaling == STANDARD:
        sigmoid(work.target, n)


@inlined
def unscale(net: Network, a: Floats, row: Floats) -> None:
    """What the decoder's sigmoid takes, in the units of the stream; NaN for a feature that was never seen."""
    scaling, n = net.settings[SCALING], net.header[N_FEATURES]
    if scaling != STANDARD:  # there the target is the sigmoid of the input, so that without the sigmoid it is the input
        sigmoid(a, n)
    for j in range(n):
        if scaling == MINMAX:
            row[j] = net.low[j] + a[j] * (net.high[j] - net.low[j])
        elif scaling == STANDARD:
            unit = math.sqrt(net.square[j]) if net.scale_count[j] > 0.0 else math.nan
            row[j] = net.mean[j] + min(max(a[j], -WIDEST), WIDEST) * unit
        else:
            row[j] = a[j]


# --- Denoising autoencoder and softmax layer ---------------------------------------------------------------------


@compiled
def exponential(a: float) -> float:
    """e^a by scaling and squaring, with |a| cut at 36: plain arithmetic, so that loops over it vectorise."""
    r = min(max(a, -36.0), 36.0) / 64.0
    r2 = r * r
    low = (1.0 + r) + (1 / 2 + r / 6) * r2
    high = (1 / 24 + r / 120) + (1 / 720 + r / 5040) * r2
    e = low + high * (r2 * r2)  # Taylor's first eight terms, paired so that few of them wait for each other
    e *= e
    e *= e
    e *= e
    e *= e
    e *= e
    return e * e


@compiled
def sigmoid(a: Floats, length: int) -> None:
    """s(a) = 1 / (1 + exp(-a)), in place, to about 4e-14."""
    for i in range(length):
        a[i] = 1.0 / (1.0 + exponential(-a[i]))


@inlined
def corrupt(net: Network, work: Work) -> None:
    """x̃: n' features, drawn anew for each sample, take the neutral value."""
    n = net.header[N_FEATURES]
    for j in range(n):
        work.inputs[ACTUAL, j] = work.clean[j]
    if net.settings[MASKING] > 0.0 and n > 1:
        n_masked = min(max(int(net.settings[MASKING] * n + 0.5), 1), n - 1)
        mask_drawn = n_masked <= n // 2  # draw whichever are fewer, the masked or the kept
        for j in range(n):
            work.masked[j] = 0.0 if mask_drawn else 1.0
        undrawn = n_masked if mask_drawn else n - n_masked
        while undrawn > 0:
            j = int(uniform(net.random) * n)
            if (work.masked[j] == 0.0) == mask_drawn:
                work.masked[j] = 1.0 - work.masked[j]
                undrawn -= 1
        for j in range(n):
            work.inputs[ACTUAL, j] *= 1.0 - work.masked[j]


@compiled
def add_product(x: Floats, W: Floats, y: Floats, n: int, r: int) -> None:
    """y += xW, four rows of W at a time: then y is loaded and stored a quarter as often."""
    whole = n - n % 4
    for j in range(0, whole, 4):
        x0, x1, x2, x3 = x[j], x[j + 1], x[j + 2], x[j + 3]
        for i in range(r):
            y[i] += x0 * W[j, i] + x1 * W[j + 1, i] + x2 * W[j + 2, i] + x3 * W[j + 3, i]
    for j in range(whole, n):
        x0 = x[j]
        for i in range(r):
            y[i] += x0 * W[j, i]


@compiled
def encode(x: Floats, W: Floats, b: Floats, y: Floats, n: int, r: int) -> None:
    """y = s(xW + b)."""
    for i in range(r):
        y[i] = b[i]
    add_product(x, W, y, n, r)
    sigmoid(y, r)


@compiled
def project(y: Floats, W: Floats, c: Floats, z: Floats, n: int, r: int) -> None:
    """yW' + c: what the decoder's sigmoid (W, c) and, with Φ' and η in their place, the softmax take."""
    for j in range(n):
        a = c[j]
        for i in range(r):
            a += y[i] * W[j, i]
        z[j] = a


@compiled
def softmax(a: Floats, length: int, stride: int, rows: int) -> None:
    """softmax(a) in place, for each row of a flat array; less the largest, so that nothing overflows."""
    for k in range(0, rows * stride, stride):
        largest = a[k]
        for o in range(k + 1, k + length):
            largest = max(largest, a[o])
        for o in range(k, k + length):
            a[o] -= largest
    for o in range((rows - 1) * stride + length):
        a[o] = exponential(a[o])
    for k in range(0, rows * stride, stride):
        total = 0.0
        for o in range(k, k + length):
            total += a[o]
        for o in range(k, k + length):
            a[o] /= total


# --- Network significance ----------------------------------------------------------------------------------------


@inlined
def expect_input(net: Network, work: Work, phase: int) -> None:
    """Recursive μ and σ of the (corrupted) input, missing features left out, and μ / sqrt(1 + πσ²/8)."""
    n, mean, square, share = net.header[N_FEATURES], net.input_mean[phase], net.input_square[phase], work.share
    step_count(net.input_count[phase], work.present, share, n)
    step_mean(mean, square, share, work.inputs[ACTUAL], n)
    for j in range(n):
        work.inputs[EXPECTED, j] = mean[j] / math.sqrt(1.0 + math.pi / 8.0 * square[j])


@compiled
def encode_expected(x: Floats, W: Floats, b: Floats, y: Floats, n: int, r: int) -> None:
    """The rows y, E[y] and E[y²] = E[y]E[y], which is the paper's approximation and not an identity."""
    for i in range(r):
        y[ACTUAL, i] = b[i]
        y[EXPECTED, i] = b[i]
    whole = n - n % 4
    for j in range(0, whole, 4):  # add_product for both rows, with each weight loaded once
        x0, x1, x2, x3 = x[ACTUAL, j], x[ACTUAL, j + 1], x[ACTUAL, j + 2], x[ACTUAL, j + 3]
        e0, e1, e2, e3 = x[EXPECTED, j], x[EXPECTED, j + 1], x[EXPECTED, j + 2], x[EXPECTED, j + 3]
        for i in range(r):
            w0, w1, w2, w3 = W[j, i], W[j + 1, i], W[j + 2, i], W[j + 3, i]
            y[ACTUAL, i] += x0 * w0 + x1 * w1 + x2 * w2 + x3 * w3
            y[EXPECTED, i] += e0 * w0 + e1 * w1 + e2 * w2 + e3 * w3
    for j in range(whole, n):
        x0, e0 = x[ACTUAL, j], x[EXPECTED, j]
        for i in range(r):
            y[ACTUAL, i] += x0 * W[j, i]
            y[EXPECTED, i] += e0 * W[j, i]
    sigmoid(y[ACTUAL], r)
    sigmoid(y[EXPECTED], r)
    for i in range(r):
        y[EXPECTED2, i] = y[EXPECTED, i] * y[EXPECTED, i]


@compiled
def project_expected(y: Floats, W: Floats, c: Floats, z: Floats, n: int, r: int) -> None:
    """:func:`project` for the rows y, E[y] and E[y²] at once."""
    for j in range(n):
        z0 = z1 = z2 = c[j]
        for i in range(r):
            z0 += y[ACTUAL, i] * W[j, i]
            z1 += y[EXPECTED, i] * W[j, i]
            z2 += y[EXPECTED2, i] * W[j, i]
        z[ACTUAL, j] = z0
        z[EXPECTED, j] = z1
        z[EXPECTED2, j] = z2


@inlined
def forward(net: Network, work: Work, phase: int) -> None:
    """One sample through the network: what comes out, its expectation, and that of its square."""
    n, r, m = net.header[N_FEATURES], net.header[N_HIDDEN], net.header[N_CLASSES]
    encode_expected(work.inputs, net.encoder, net.encoder_bias, work.hidden, n, r)
    if phase == GENERATIVE:
        project_expected(work.hidden, net.encoder, net.decoder_bias, work.reconstruction, n, r)
        sigmoid(work.flat_reconstruction, 3 * net.header[MAX_FEATURES])
    else:
        project_expected(work.hidden, net.output, net.output_bias, work.prediction, m, r)
        softmax(work.flat_prediction, m, net.header[MAX_CLASSES], 3)


@compiled
def significance(z: Floats, x: Floats, weight: Floats, length: int) -> tuple[float, float]:
    """Bias² = (E[z] - x)² and Var = E[z²] - E[z]², each as one number for the outputs that count.

    For Bias² that is the largest, so that the confidence π lies in [1.1, 2] however many outputs there are; for Var the
    mean.
    """
    bias2 = variance = total = 0.0
    for j in range(length):
        bias2 = max(bias2, weight[j] * (z[EXPECTED, j] - x[j]) ** 2)
        variance += weight[j] * (z[EXPECTED2, j] - z[EXPECTED, j] ** 2)
        total += weight[j]
    return bias2, variance / total


# --- Growing and pruning: one rule for both phases ---------------------------------------------------------------

TOLERANCE, WIDEST_SCOPE = 0.99, 1024.0  # of the adaptive scope
LATE_SAMPLES, PAST_SAMPLES = 200.0, 10_000.0  # over which the surprise is averaged, of late and before
LEAST_SAMPLES = 300.0  # to judge by
LEAST_STD = 0.1  # of the surprise, so that where there is next to none a single one is no drift
SURE = 4.0  # standard errors that make a drift
TINY = 1e-12  # a variance below it counts as none
WEIGHT_VARIANCE = 32.0  # of random weights, times fan-in + fan-out: Glorot's 2, four times as wide for sigmoids


@compiled
def watch(monitor: Floats, value: float, first: int) -> None:
    """Recursive mean and deviation of the value, and their minima.

    The minima start with the ``first`` value that has statistics behind it, and anew after a condition was met.
    """
    monitor[COUNT] += 1.0
    step = value - monitor[MEAN]
    monitor[MEAN] += step / monitor[COUNT]
    monitor[SQUARE] += (step * (value - monitor[MEAN]) - monitor[SQUARE]) / monitor[COUNT]
    std = math.sqrt(monitor[SQUARE])
    if monitor[RESTART] == 0.0:
        monitor[MIN_MEAN] = min(monitor[MIN_MEAN], monitor[MEAN])
        monitor[MIN_STD] = min(monitor[MIN_STD], std)
    elif monitor[COUNT] >= first:
        monitor[MIN_MEAN] = monitor[MEAN]
        monitor[MIN_STD] = std
        monitor[RESTART] = 0.0


@compiled
def exceeds(monitor: Floats, confidence: float) -> bool:
    """Whether μ + σ >= μ_min + confidence σ_min; a value that never varied gives no evidence."""
    std = math.sqrt(monitor[SQUARE])
    met = monitor[MEAN] + std >= monitor[MIN_MEAN] + confidence * monitor[MIN_STD]
    if met and std > 0.0 and monitor[RESTART] == 0.0:
        monitor[RESTART] = 1.0
        return True
    return False


@compiled
def should_grow(monitor: Floats, bias2: float) -> bool:
    return exceeds(monitor, 1.3 * math.exp(-bias2) + 0.7)  # growing condition, with π


@compiled
def should_prune(monitor: Floats, variance: float) -> bool:
    return exceeds(monitor, 2.0 * (1.3 * math.exp(-variance) + 0.7))  # pruning condition, with 2χ


@inlined
def surprise(net: Network, work: Work, phase: int) -> float:
    """How little a sample was expected: its squared distance from the mean input in deviations, or the squared error.

    Bias² belongs to the mean input. It cannot see a drift that leaves the mean prediction alone; the error can.
    """
    if phase == DISCRIMINATIVE:
        return squared_error(net, work, phase)
    total, n_present = 0.0, 0.0
    for j in range(net.header[N_FEATURES]):
        step, square = work.inputs[ACTUAL, j] - net.input_mean[phase, j], net.input_square[phase, j]
        total += work.present[j] * min(step * step, WIDEST * WIDEST * square) / max(square, TINY)
        n_present += work.present[j]
    return total / n_present


@inlined
def watch_drift(net: Network, work: Work, phase: int) -> None:
    """Record a drift where the surprise of late lies above that of the past by more than chance.

    Then its statistics start anew. So do those of the error where it lies as far below: the network has become better.
    """
    value, monitor, visits = surprise(net, work, phase), net.monitors[phase, SURPRISE], net.settings[VISITS]
    monitor[COUNT] += 1.0
    share, step = 1.0 / min(monitor[COUNT], max(PAST_SAMPLES * visits, 1.0)), value - monitor[MEAN]
    monitor[MEAN] += share * step
    monitor[SQUARE] = (1.0 - share) * (monitor[SQUARE] + share * step * step)  # never negative, however it is rounded
    monitor[LATE] += (value - monitor[LATE]) / min(monitor[COUNT], max(LATE_SAMPLES * visits, 1.0))
    standard_error = max(math.sqrt(monitor[SQUARE]), LEAST_STD) / math.sqrt(2.0 * LATE_SAMPLES - 1.0)
    change = (monitor[LATE] - monitor[MEAN]) / standard_error
    if monitor[COUNT] >= LEAST_SAMPLES * visits and (change > SURE or (phase == DISCRIMINATIVE and change < -SURE)):
        monitor[:] = 0.0
        if change > SURE:
            record(net.header, net.events, phase, 0, DRIFT)


@inlined
def evolve(net: Network, work: Work, phase: int) -> bool:
    """Grow where bias² is high, else prune where the variance is; tell whether the structure changed."""
    n, monitor = net.header[N_FEATURES], net.monitors[phase]
    if phase == GENERATIVE:
        bias2, variance = significance(work.reconstruction, work.target, work.present, n)
    else:
        bias2, variance = significance(work.prediction, work.one_hot, work.every_class, net.header[N_CLASSES])
    watch_drift(net, work, phase)
    watch(monitor[BIAS2], bias2, 2)
    changed = net.settings[GROW] == 1.0 and should_grow(monitor[BIAS2], bias2)
    if changed:
        grow(net, work, phase)
    watch(monitor[VARIANCE], variance, n + 2)
    if not changed and net.settings[PRUNE] == 1.0 and should_prune(monitor[VARIANCE], variance):
        changed = net.header[N_HIDDEN] > 1
        if changed:
            prune(net, work, phase)
    if changed:  # another network, so that both minima start anew
        monitor[BIAS2, RESTART] = 1.0
        monitor[VARIANCE, RESTART] = 1.0
    return changed


@inlined
def grow(net: Network, work: Work, phase: int) -> None:
    """Add a hidden unit with b from [-1, 1], whose weights towards the phase's output are -e; the others are random.

    With the adaptive scope of stochastic configuration networks, the range of W and b doubles until the squared error
    of the sample falls by the share that they ask for.
    """
    n, unit, m = net.header[N_FEATURES], net.header[N_HIDDEN], net.header[N_CLASSES]
    asked = squared_error(net, work, phase) * (TOLERANCE + (1.0 - TOLERANCE) / (unit + 2))
    net.header[N_HIDDEN] += 1
    if phase == GENERATIVE:
        for j in range(n):
            net.encoder[j, unit] = -work.present[j] * (work.reconstruction[ACTUAL, j] - work.target[j])
        for o in range(m):
            net.output[o, unit] = normal(net.random, 2.0 / (unit + 2))
    else:
        for o in range(m):
            net.output[o, unit] = -(work.prediction[ACTUAL, o] - work.one_hot[o])
    scope = 1.0
    while True:
        net.encoder_bias[unit] = scope * (2.0 * uniform(net.random) - 1.0)
        if phase == DISCRIMINATIVE:
            for j in range(n):
                net.encoder[j, unit] = scope * normal(net.random, WEIGHT_VARIANCE / (n + 1))
        if net.settings[ADAPTIVE_SCOPE] == 0.0 or scope >= WIDEST_SCOPE:
            break
        forward(net, work, phase)
        if squared_error(net, work, phase) <= asked:
            break
        scope *= 2.0
    for j in range(n):
        net.encoder_slow[j, unit] = net.encoder[j, unit]
    net.encoder_bias_slow[unit] = net.encoder_bias[unit]
    for o in range(m):
        net.output_slow[o, unit] = net.output[o, unit]
    record(net.header, net.events, phase, unit, GROWTH)


@inlined
def prune(net: Network, work: Work, phase: int) -> None:
    """Remove the hidden unit with the least significance HS = E[y]; those after it move up."""
    n, r, m = net.header[N_FEATURES], net.header[N_HIDDEN], net.header[N_CLASSES]
    unit = 0
    for i in range(1, r):
        if work.hidden[EXPECTED, i] < work.hidden[EXPECTED, unit]:
            unit = i
    for j in range(n):
        remove(net.encoder[j], unit, r)
        remove(net.encoder_moment[j], unit, r)
        remove(net.encoder_slow[j], unit, r)
    for o in range(m):
        remove(net.output[o], unit, r)
        remove(net.output_moment[o], unit, r)
        remove(net.output_slow[o], unit, r)
    remove(net.encoder_bias, unit, r)
    remove(net.encoder_bias_moment, unit, r)
    remove(net.encoder_bias_slow, unit, r)
    net.header[N_HIDDEN] -= 1
    record(net.header, net.events, phase, unit, PRUNING)


@compiled
def remove(weights: Floats, unit: int, length: int) -> None:
    for i in range(unit, length - 1):
        weights[i] = weights[i + 1]
    weights[length - 1] = 0.0


@compiled
def record(header: Words, events: Words, phase: int, unit: int, kind: int) -> None:
    if header[MAX_EVENTS] > 0:
        event = events[header[N_EVENTS] % header[MAX_EVENTS]]
        event[EVENT_SAMPLE] = header[N_OBSERVED + phase]
        event[EVENT_PHASE] = phase
        event[EVENT_UNIT] = unit
        event[EVENT_KIND] = kind
        event[EVENT_SIZE] = header[N_HIDDEN]
    header[N_EVENTS] += 1
    if kind == DRIFT:
        header[N_DRIFTS + phase] += 1
    else:
        header[N_CHANGES + 2 * phase + kind] += 1


@inlined
def squared_error(net: Network, work: Work, phase: int) -> float:
    total = 0.0
    if phase == GENERATIVE:
        for j in range(net.header[N_FEATURES]):
            total += work.present[j] * (work.reconstruction[ACTUAL, j] - work.target[j]) ** 2
    else:
        for o in range(net.header[N_CLASSES]):
            total += (work.prediction[ACTUAL, o] - work.one_hot[o]) ** 2
    return total


# --- Both phases: one pass of SGD over an evolving network -------------------------------------------------------

GRADIENT_HORIZON = 300.0  # samples over which the mean square of a gradient is taken
DAMPING = 0.03  # of the adaptive rate, so that small gradients make small steps
SMOOTHING = 0.05  # the share of a label that goes to all classes alike, so that no output weight grows without bound
DECAY = 0.005  # of the output weights, times the rate


@inlined
def learn_sample(net: Network, work: Work, phase: int) -> None:
    """One sample in one phase: grow or prune by the network's significance, then one SGD step."""
    expect_input(net, work, phase)
    for attempt in range(2):
        forward(net, work, phase)
        if attempt == 1 or not evolve(net, work, phase):
            break
    if phase == GENERATIVE:
        step_generative(net, work)
    else:
        step_discriminative(net, work)
        if net.settings[AVERAGING] > 0.0 and net.header[N_TAUGHT] % STRIDE == 0:
            follow(net)


@inlined
def step_generative(net: Network, work: Work) -> None:
    """SGD on the cross-entropy L(x, z) over W, which encodes and decodes, b and c."""
    n, r, rate = net.header[N_FEATURES], net.header[N_HIDDEN], net.settings[GENERATIVE_RATE]
    error, y, delta = work.reconstruction[ACTUAL], work.hidden[ACTUAL], work.delta
    for j in range(n):
        error[j] = rate * work.present[j] * (error[j] - work.target[j])
    for i in range(r):
        delta[i] = 0.0
    add_product(error, net.encoder, delta, n, r)
    for i in range(r):
        delta[i] *= y[i] * (1.0 - y[i])
        net.encoder_bias[i] -= delta[i]
    for j in range(n):
        error_j, x_j = error[j], work.inputs[ACTUAL, j]
        net.decoder_bias[j] -= error_j
        for i in range(r):
            net.encoder[j, i] -= error_j * y[i] + x_j * delta[i]


@compiled
def accelerate(weights: Floats, moment: Floats, slope: float, values: Floats, length: int, momentum: float) -> None:
    """A step with momentum against the gradient slope × values, whose rate is in the slope."""
    for i in range(length):
        moment[i] = momentum * moment[i] - slope * values[i]
        weights[i] += moment[i]


@compiled
def adapt(gradient: Floats, moment: Floats, length: int, rate: float, share: float) -> None:
    """Gradients become steps: the rate times each, divided by the root of its mean square."""
    for i in range(length):
        moment[i] += share * (gradient[i] * gradient[i] - moment[i])
        gradient[i] *= rate / (math.sqrt(moment[i]) + DAMPING)


@inlined
def step_discriminative(net: Network, work: Work) -> None:
    """SGD on the cross-entropy L(C, Ĉ) over W, b, Φ and η: with momentum, or with a rate that adapts to each unit."""
    n, r, m = net.header[N_FEATURES], net.header[N_HIDDEN], net.header[N_CLASSES]
    rate, momentum, adaptive = net.settings[DISCRIMINATIVE_RATE], net.settings[MOMENTUM], net.settings[ADAPTIVE_RATE]
    share = max(1.0 / net.header[N_TAUGHT], 1.0 / GRADIENT_HORIZON)
    y, delta, error = work.hidden[ACTUAL], work.delta, work.prediction[ACTUAL]
    factor = 1.0 if adaptive == 1.0 else rate
    smoothing = SMOOTHING if adaptive == 1.0 else 0.0
    for i in range(r):
        delta[i] = 0.0
    for o in range(m):
        error[o] = factor * (error[o] - (1.0 - smoothing) * work.one_hot[o] - smoothing / m)
        for i in range(r):
            delta[i] += error[o] * net.output[o, i]
    for i in range(r):
        delta[i] *= y[i] * (1.0 - y[i])
    if adaptive == 1.0:
        adapt(error, net.output_bias_moment, m, rate, share)
        adapt(delta, net.encoder_bias_moment, r, rate, share)
        for o in range(m):
            for i in range(r):
                net.output[o, i] -= error[o] * y[i] + rate * DECAY * net.output[o, i]
            net.output_bias[o] -= error[o]
        for i in range(r):
            net.encoder_bias[i] -= delta[i]
        for j in range(n):
            x_j = work.inputs[ACTUAL, j]
            for i in range(r):
                net.encoder[j, i] -= x_j * delta[i]
    else:
        for o in range(m):
            accelerate(net.output[o], net.output_moment[o], error[o], y, r, momentum)
        accelerate(net.output_bias, net.output_bias_moment, 1.0, error, m, momentum)
        accelerate(net.encoder_bias, net.encoder_bias_moment, 1.0, delta, r, momentum)
        for j in range(n):
            accelerate(net.encoder[j], net.encoder_moment[j], work.inputs[ACTUAL, j], delta, r, momentum)


# --- Averages of the weights: they predict better, where the stream stands still ---------------------------------

STRIDE = 4  # samples between two steps of the averages, and between two that are judged by: it saves their time
LOSS_MEMORY = 0.998  # of the losses, per sample judged
CAUTION = 0.4  # what a loss counts for, in all STRIDE samples: less than 1 each, since neighbours in a stream are alike
DOUBT = 0.01  # averages trusted less than this belong to a concept that is gone
NEGLIGIBLE = 1e-12  # a share in a prediction that is not worth its time
LEAST_PROBABILITY = 1e-4  # that a loss takes for possible


@compiled
def average(slow: Floats, weights: Floats, length: int, share: float) -> None:
    for i in range(length):
        slow[i] += share * (weights[i] - slow[i])


@inlined
def follow(net: Network) -> None:
    """The averages take the latest steps of the weights in."""
    n, r, m = net.header[N_FEATURES], net.header[N_HIDDEN], net.header[N_CLASSES]
    age = net.header[N_TAUGHT] - net.header[AVERAGED_SINCE]
    share = max(
        (1.0 - net.settings[AVERAGING]) / net.settings[VISITS], 10.0 / (age + 9.0)
    )  # at first, the latest tenth
    share = 1.0 - (1.0 - share) ** STRIDE
    for j in range(n):
        average(net.encoder_slow[j], net.encoder[j], r, share)
    average(net.encoder_bias_slow, net.encoder_bias, r, share)
    for o in range(m):
        average(net.output_slow[o], net.output[o], r, share)
    average(net.output_bias_slow, net.output_bias, m, share)


def begin_averages(net: Network) -> None:
    """Averages that were left out so far begin with the weights as they are."""
    net.header[AVERAGED_SINCE] = net.header[N_TAUGHT]
    net.losses[:2] = 0.0
    for name in ("encoder", "encoder_bias", "output", "output_bias"):
        getattr(net, f"{name}_slow")[:] = getattr(net, name)


def share_of_averages(net: Network) -> float:
    """The share of the averages in a prediction: Bayes' posterior by the recent losses of both."""
    if net.settings[AVERAGING] == 0.0:
        return 0.0
    return 1.0 / (1.0 + math.exp(min(max(CAUTION * (net.losses[1] - net.losses[0]), -500.0), 500.0)))


trust = inlined(share_of_averages)


@inlined
def judge(net: Network, work: Work, X: Floats, labels: Words, order: Words) -> None:
    """Compare the weights and their averages on samples whose labels have come, before any of them is learned.

    Where the averages lag behind a drift they begin anew, so that their horizon is never longer than the concept.
    """
    n, m = net.header[N_FEATURES], net.header[N_CLASSES]
    if m == 0:
        return
    share = trust(net)
    for t in range(STRIDE - 1 - net.header[N_TAUGHT] % STRIDE, len(order), STRIDE):
        find(X[order[t]], work.clean, work.present, n)
        scale(net, work)
        mixed = 0.0
        for slow in range(2):
            predict(net, work, slow, work.prediction[ACTUAL], m)
            seen = work.prediction[ACTUAL, labels[order[t]]] if labels[order[t]] < m else 0.0
            net.losses[slow] = LOSS_MEMORY * net.losses[slow] - math.log(max(seen, LEAST_PROBABILITY))
            mixed += share * seen if slow == 1 else (1.0 - share) * seen
        net.losses[2] = LOSS_MEMORY * net.losses[2] - math.log(max(mixed, LEAST_PROBABILITY))
    if net.settings[AVERAGING] > 0.0 and trust(net) < DOUBT:
        net.header[AVERAGED_SINCE] = net.header[N_TAUGHT]
        net.losses[0] = 0.0
        net.losses[1] = 0.0


@inlined
def predict(net: Network, work: Work, slow: int, out: Floats, m: int) -> None:
    """Ĉ for the clean input, by the weights or by their averages."""
    n, r, y = net.header[N_FEATURES], net.header[N_HIDDEN], work.hidden[ACTUAL]
    if slow == 1:
        encode(work.clean, net.encoder_slow, net.encoder_bias_slow, y, n, r)
        project(y, net.output_slow, net.output_bias_slow, out, m, r)
    else:
        encode(work.clean, net.encoder, net.encoder_bias, y, n, r)
        project(y, net.output, net.output_bias, out, m, r)
    softmax(out, m, m, 1)


@inlined
def know(net: Network, work: Work, label: int) -> None:
    """The clean input and its class, C; a class never seen before adds an output and leaves the others' odds alone."""
    r = net.header[N_HIDDEN]
    while net.header[N_CLASSES] < max(label + 1, net.header[N_NAMED]):
        for i in range(r):
            net.output[net.header[N_CLASSES], i] = normal(net.random, 2.0 / (r + 1))
            net.output_slow[net.header[N_CLASSES], i] = net.output[net.header[N_CLASSES], i]
        net.header[N_CLASSES] += 1
    for o in range(net.header[N_CLASSES]):
        work.one_hot[o] = 1.0 if o == label else 0.0
        work.every_class[o] = 1.0
    for j in range(net.header[N_FEATURES]):
        work.inputs[ACTUAL, j] = work.clean[j]


# --- What Python calls -------------------------------------------------------------------------------------------


@entry
def learn(
    state: Floats, scratch: Floats, X: Floats, labels: Words, order: Words, start: int, first: int, last: int
) -> int:
    """Visit the samples ``order[start:]`` once, each in the phases ``first`` to ``last``; return how far it came.

    That is to the end, or to the sample before which the state needs room for more hidden units. Labels are read in the
    discriminative phase alone. The scaling learns from a sample that is new: one that is observed, or one that is
    taught after as many were taught as seen, so that nobody can have observed it. To learn a range twice does no harm,
    so ranges are always learned.
    """
    net = unpack(state)
    work = unpack_work(net, scratch)
    n = net.header[N_FEATURES]
    if net.header[N_HIDDEN] == 0:
        if net.settings[START] > net.header[MAX_HIDDEN]:
            return start
        for unit in range(int(net.settings[START])):
            for j in range(n):
                net.encoder[j, unit] = normal(net.random, WEIGHT_VARIANCE / (n + 1))
                net.encoder_slow[j, unit] = net.encoder[j, unit]
        net.header[N_HIDDEN] = int(net.settings[START])
    judged = start > 0 or last != DISCRIMINATIVE or net.settings[AVERAGING] == 0.0 or net.settings[LAYERED] == 1.0
    for t in range(start, len(order)):
        if net.header[N_HIDDEN] + 2 > net.header[MAX_HIDDEN]:  # each phase may grow one
            return t
        if not judged:
            judge(net, work, X, labels, order)
            judged = True
        n_present = find(X[order[t]], work.clean, work.present, n)
        new = first == GENERATIVE or net.header[N_TAUGHT] >= net.header[N_SEEN]
        if new:
            net.header[N_SEEN] += 1
        if new or net.settings[SCALING] == MINMAX:
            learn_scaling(net, work)
        scale(net, work)
        for phase in range(first, last + 1):
            net.header[N_OBSERVED + phase] += 1
            if phase == GENERATIVE:
                corrupt(net, work)
            else:
                know(net, work, labels[order[t]])
            if phase == DISCRIMINATIVE or (net.settings[GENERATE] == 1.0 and n_present > 0):
                learn_sample(net, work, phase)
    return len(order)


@entry
def learn_each(state: Floats, scratch: Floats, X: Floats, labels: Words, order: Words, start: int) -> int:
    """:func:`learn` from the samples ``order[start:]`` one by one, in both phases, as if each had come alone."""
    for t in range(start, len(order)):
        if learn(state, scratch, X, labels, order[t : t + 1], 0, GENERATIVE, DISCRIMINATIVE) == 0:
            return t
    return len(order)


@entry
def assess(state: Floats, scratch: Floats, X: Floats, labels: Words, order: Words) -> None:
    """:func:`judge` one of several layers: all are, before the lowest learns, since the others build on it."""
    net = unpack(state)
    judge(net, unpack_work(net, scratch), X, labels, order)


@entry
def predict_proba(state: Floats, scratch: Floats, X: Floats, out: Floats, weight: float) -> None:
    """Add the classes' probabilities times a weight to ``out``, a row for each of ``X``."""
    net = unpack(state)
    work = unpack_work(net, scratch)
    n, m = net.header[N_FEATURES], min(net.header[N_CLASSES], out.shape[1])
    if m == 0:
        return
    share = trust(net)
    for t in range(len(X)):
        find(X[t], work.clean, work.present, n)
        scale(net, work)
        for slow in range(2):
            part = share if slow == 1 else 1.0 - share
            if part > NEGLIGIBLE:
                predict(net, work, slow, work.prediction[ACTUAL], m)
                for o in range(m):
                    out[t, o] += weight * part * work.prediction[ACTUAL, o]


@entry
def bag(states: Floats, phase: int, visits: Words) -> None:
    """How often each network (a row of the states) visits each sample: Poisson draws with the mean ``VISITS``.

    One that has learned nothing in this phase yet visits at least one sample.
    """
    for k in range(len(states)):
        net = unpack(states[k])
        total = 0
        for t in range(visits.shape[1]):
            limit, product = math.exp(-net.settings[VISITS]), uniform(net.random)
            visits[k, t] = 0
            while product > limit:
                product *= uniform(net.random)
                visits[k, t] += 1
            total += visits[k, t]
        if total == 0 and net.header[N_OBSERVED + phase] == 0:
            visits[k, 0] = 1


@entry
def learn_members(
    states: Floats, scratch: Floats, X: Floats, labels: Words, order: Words, cuts: Words, done: Words, phase: int
) -> None:
    """:func:`learn` for the networks that are the states' rows; the k-th visits ``order[cuts[k] : cuts[k + 1]]``.

    It moves ``done`` as far as each came.
    """
    for k in range(len(states)):
        visited = order[cuts[k] : cuts[k + 1]]
        if done[k] < len(visited):
            done[k] = learn(states[k], scratch, X, labels, visited, done[k], phase, phase)


@entry
def predict_members(states: Floats, scratch: Floats, X: Floats, out: Floats) -> None:
    """Add the mean of what the networks predict that are the states' rows."""
    for k in range(len(states)):
        predict_proba(states[k], scratch, X, out, 1.0 / len(states))


@entry
def transform(state: Floats, scratch: Floats, X: Floats, out: Floats) -> None:
    """The hidden units' activations, a row of ``out`` for each of ``X``; never more than ``out`` has room for."""
    net = unpack(state)
    work = unpack_work(net, scratch)
    n, r = net.header[N_FEATURES], min(net.header[N_HIDDEN], out.shape[1])
    for t in range(len(X)):
        find(X[t], work.clean, work.present, n)
        scale(net, work)
        encode(work.clean, net.encoder, net.encoder_bias, out[t], n, r)


@entry
def reconstruct(state: Floats, scratch: Floats, X: Floats, out: Floats) -> None:
    """The reconstructions in the units of the stream, a row of ``out`` for each of ``X``."""
    net = unpack(state)
    work = unpack_work(net, scratch)
    n, r = net.header[N_FEATURES], net.header[N_HIDDEN]
    for t in range(len(X)):
        find(X[t], work.clean, work.present, n)
        scale(net, work)
        encode(work.clean, net.encoder, net.encoder_bias, work.hidden[ACTUAL], n, r)
        project(work.hidden[ACTUAL], net.encoder, net.decoder_bias, work.target, n, r)
        unscale(net, work.target, out[t])
