"""DEVDAN's kernel: every compiled function. The paper comes first, in its order; docs/algorithm.md maps its equations.

A model is one flat array of 64-bit words, its *state*: sizes and counters, settings, running statistics, weights. The
state is the whole model, so a model can be copied, saved and sent as bytes. :class:`Network` lists the state's fields
and gives them their names, in Python and in compiled code; :class:`Work` does so for the scratch space of one sample.
``state.py`` makes, checks and enlarges states.

In every array of weights the last axis is the hidden unit: ``encoder`` is the paper's W (n x R), ``output`` is the
transpose of its Φ (m x R). Once started, only :func:`grow` and :func:`prune` change the number of hidden units. The
arrays have room for more features, units and classes than are in use; where a unit might find none, :func:`learn`
returns early and is called again with a larger state.

Nothing here handles ``None``, text or options, and nothing allocates memory: the caller provides the scratch space. All
compiled code is in this file, because Numba's disk cache does not notice an edit in another one.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from numba import types

from devdan.arrays import Floats, Words
from devdan.model.jit import address_of, by_address, compiled, entry
from devdan.model.memory import (
    Block,
    E,
    F,
    K,
    M,
    N,
    R,
    fetch_ahead,
    floats_at,
    integer,
    integers,
    integers_at,
    number,
    numbers,
    one_row,
    randomness,
)

Random = npt.NDArray[np.uint64]


# --- Memory: what a model is, and what a sample needs ------------------------------------------------------------

GENERATIVE, DISCRIMINATIVE = range(2)  # phases
BIAS2, VARIANCE, SURPRISE = range(3)  # what a phase's monitors watch
COUNT, MEAN, SQUARE, MIN_MEAN, MIN_STD, RESTART = range(6)  # words of a monitor
LATE = MIN_MEAN  # the monitor of the surprise has no minima, but a recent mean
UNSCALED, MINMAX, STANDARD = 0.0, 1.0, 2.0  # scalings
ALIKE, BALANCED, GIVEN = 0.0, 1.0, 2.0  # what classes weigh
ALONE, LAYERED, MIXED = 0.0, 1.0, 2.0  # a network by itself, one of several layers, one of several that are mixed
EVENT_SAMPLE, EVENT_PHASE, EVENT_UNIT, EVENT_KIND, EVENT_SIZE = range(5)  # words of an event
VALUE, BOUND = range(2)  # words of its cause
LOG_SHARPNESS, INFORMATION = range(2)  # words of the calibration
PRUNING, GROWTH, REPLACEMENT, DRIFT = range(4)  # kinds of events
BY_WEIGHTS, BY_AVERAGES, BY_MEMORY = range(3)  # opinions of a network
ACTUAL, EXPECTED, EXPECTED2 = range(3)  # rows: the sample's value, its expectation, and the expectation of its square


MOST_NEIGHBOURS = 64
MOST_ORDERED = 128


class Network(Block):
    """The fields of a state, in the order that files have: new ones go where room is reserved, or to the end."""

    max_features: int = integer()  # room
    max_hidden: int = integer()
    max_classes: int = integer()
    max_events: int = integer()
    n_features: int = integer()  # in use
    n_hidden: int = integer()
    n_classes: int = integer()
    n_seen: int = integer()  # samples in all
    n_learned: Words = integers(2)  # samples that each phase has learned from: observed, taught
    n_named: int = integer()  # classes named in advance
    n_events: int = integer()  # ever
    random: Random = randomness()
    averaged_since: int = integer()  # samples taught when the averages of the weights began
    n_drifts: Words = integers(2)  # that each phase signalled
    n_changes: Words = integers(2, 2)  # prunings and growths of each phase
    n_followed: int = integer()  # events of the layer below, whose units are features, that were applied to these
    reserved_integers: Words = integers(2)
    max_samples: int = integer()  # room for samples that are remembered

    start: float = number()  # settings: hidden units to start from; a switch is 0 or 1
    scaling: float = number()
    masking: float = number()
    generates: float = number()
    grows: float = number()
    prunes: float = number()
    adaptive_scope: float = number()
    generative_rate: float = number()
    discriminative_rate: float = number()
    momentum: float = number()
    adaptive_rate: float = number()
    averaging: float = number()
    company: float = number()  # other networks: ALONE, LAYERED or MIXED
    renews: float = number()  # whether features are seen anew where their unit changes, or where they are skewed
    weighing: float = number()  # of classes: ALIKE, BALANCED or GIVEN
    rehearse: float = number()  # samples revisited for each that is taught

    monitors: Floats = numbers(2, 3, 6)  # of each phase: BIAS2, VARIANCE and SURPRISE
    losses: Floats = numbers(3)  # of the opinions BY_WEIGHTS, BY_AVERAGES and BY_MEMORY, on labels not learned yet
    max_fields: int = integer()  # fields of each feature, if any; with this word the weights begin with a cache line
    encoder: Floats = numbers(N, R)  # W
    encoder_moment: Floats = numbers(N, R)  # of the discriminative gradients: with momentum their sum, else mean square
    encoder_slow: Floats = numbers(N, R)  # exponential average
    field_weights: Floats = numbers(N, F, R)  # of the units that see features through fields; the others have none
    field_weights_slow: Floats = numbers(N, F, R)
    encoder_bias: Floats = numbers(R)  # b
    encoder_bias_moment: Floats = numbers(R)
    encoder_bias_slow: Floats = numbers(R)
    output: Floats = numbers(M, R)  # Φ'
    output_moment: Floats = numbers(M, R)
    output_slow: Floats = numbers(M, R)
    scale_count: Floats = numbers(N)  # what the scaling has learned
    low: Floats = numbers(N)
    high: Floats = numbers(N)
    mean: Floats = numbers(N)
    square: Floats = numbers(N)
    input_count: Floats = numbers(2, N)  # of each phase: statistics of the input, corrupted in the generative one
    input_mean: Floats = numbers(2, N)
    input_square: Floats = numbers(2, N)
    decoder_bias: Floats = numbers(N)  # c
    output_bias: Floats = numbers(M)  # η
    output_bias_moment: Floats = numbers(M)
    output_bias_slow: Floats = numbers(M)
    events: Words = integers(E, 5)  # a ring buffer: the newest overwrites the oldest
    class_count: Floats = numbers(M)  # labels taught, over a horizon, unless classes weigh ALIKE
    class_weight: Floats = numbers(M)  # if they are GIVEN
    remembered: Floats = numbers(K, N)  # labelled samples, a ring buffer
    remembered_label: Words = integers(K)
    remembered_weight: Floats = numbers(K)
    n_remembered: int = integer()  # in all, since the latest drift
    neighbours: float = number()  # setting: how many of them vote on a sample; 0 for none
    scaling_horizon: float = number()  # setting: samples over which means and deviations are taken
    causes: Floats = numbers(E, 2)  # of the events: what was observed, and the bound that it reached
    calibrates: float = number()  # setting: whether probabilities are
    calibration: Floats = numbers(2)  # of the mixture of all networks, in the first of them
    field_places: Floats = numbers(N, F)  # of a skewed feature: the values at which its fields are; else all alike
    stays_within: float = number()  # setting: whether values beyond all that was lately taught are seen as the farthest
    n_ranged: Words = integers(2)  # samples taught that made the latest range, and the one before
    lowest: Floats = numbers(2, N)  # those ranges
    highest: Floats = numbers(2, N)


class Work(Block):
    """Scratch space for one sample."""

    present: Floats = numbers(N)  # 1, or 0 where the feature is missing
    share: Floats = numbers(N)  # weight of the sample in a running mean
    masked: Floats = numbers(N)  # 1, or 0 where the feature is kept
    raw: Floats = numbers(N)  # x before it is scaled, for fields
    clean: Floats = numbers(N)  # x, scaled
    target: Floats = numbers(N)  # what the reconstruction should be, in [0, 1]
    inputs: Floats = numbers(2, N)  # x or x̃, and μ / sqrt(1 + πσ²/8)
    hidden: Floats = numbers(3, R)  # y, E[y], E[y²]
    delta: Floats = numbers(R)  # the gradient before the encoder's sigmoid
    reconstruction: Floats = numbers(3, N)  # z, E[z], E[z²]
    flat_reconstruction: Floats = one_row(reconstruction)
    one_hot: Floats = numbers(M)  # C
    every_class: Floats = numbers(M)  # ones
    prediction: Floats = numbers(3, M)  # Ĉ, E[Ĉ], E[Ĉ²]
    flat_prediction: Floats = one_row(prediction)
    zero: Floats = numbers(N)  # what is subtracted from a feature to scale it
    unit: Floats = numbers(N)  # and what the rest is divided by
    per_unit: Floats = numbers(N)  # one over that
    nearest: Floats = numbers(MOST_NEIGHBOURS)  # squared distances, rising
    nearest_label: Words = integers(MOST_NEIGHBOURS)
    in_order: Floats = numbers(MOST_ORDERED)  # remembered values of a feature, rising
    only: Words = integers(1)  # the order in which a single sample is visited
    lower: Words = integers(N)  # the lower of the two fields that see a feature
    in_lower: Floats = numbers(N)  # how much of it that one sees
    in_upper: Floats = numbers(N)  # and how much the next one


# =================================================================================================================
# The paper
# =================================================================================================================

# --- Denoising autoencoder ---------------------------------------------------------------------------------------


@compiled
def uniform(random: Random) -> float:
    """A draw from [0, 1), by SplitMix64."""
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


@compiled
def corrupt(net: Network, work: Work) -> None:
    """Masking noise, x̃: n' features, drawn for each sample, take the neutral value."""
    n, x, masked = net.n_features, work.inputs[ACTUAL], work.masked
    for j in range(n):
        x[j] = work.clean[j]
    if net.masking > 0.0 and n > 1:
        n_masked = min(max(int(net.masking * n + 0.5), 1), n - 1)
        mask_drawn = n_masked <= n // 2  # draw the smaller set, masked or kept
        for j in range(n):
            masked[j] = 0.0 if mask_drawn else 1.0
        undrawn = n_masked if mask_drawn else n - n_masked
        while undrawn > 0:
            j = int(uniform(net.random) * n)
            if (masked[j] == 0.0) == mask_drawn:
                masked[j] = 1.0 - masked[j]
                undrawn -= 1
        for j in range(n):
            x[j] *= 1.0 - masked[j]


@compiled
def exponential(a: float) -> float:
    """e^a by scaling and squaring, with |a| clipped at 36: plain arithmetic, so that loops vectorise."""
    r = min(max(a, -36.0), 36.0) / 64.0
    r2 = r * r
    low = (1.0 + r) + (1 / 2 + r / 6) * r2
    high = (1 / 24 + r / 120) + (1 / 720 + r / 5040) * r2
    e = low + high * (r2 * r2)  # the first eight Taylor terms, paired so that few wait for each other
    e *= e
    e *= e
    e *= e
    e *= e
    e *= e
    return e * e


@compiled
def sigmoid(a: Floats, length: int) -> None:
    """s(a) = 1 / (1 + exp(-a)), in place, accurate to about 4e-14."""
    for i in range(length):
        a[i] = 1.0 / (1.0 + exponential(-a[i]))


@compiled
def softmax(a: Floats, length: int, stride: int) -> None:
    """softmax(a) in place, for each row of a flat array; the largest value is subtracted so that nothing overflows."""
    rows = len(a) // stride
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


@compiled
def add_product(x: Floats, W: Floats, y: Floats, n: int, r: int) -> None:
    """y += xW, four rows of W at a time, so that y is loaded and stored a quarter as often."""
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
    """yW' + c: the input of the decoder's sigmoid (W, c) or, with Φ' and η instead, of the softmax."""
    for j in range(n):
        a = c[j]
        for i in range(r):
            a += y[i] * W[j, i]
        z[j] = a


# --- Network significance: what comes out for the expected input -------------------------------------------------


@compiled
def step_count(count: Floats, present: Floats, share: Floats, length: int) -> None:
    """Count the values that are present, and compute their shares in the mean."""
    for j in range(length):
        count[j] += present[j]
        share[j] = present[j] / max(count[j], 1.0)


@compiled
def step_mean(mean: Floats, square: Floats, share: Floats, value: Floats, length: int) -> None:
    """Update running means and mean squared deviations with one value; its share is 1 / count, or 0 to leave it out."""
    for j in range(length):
        step = value[j] - mean[j]
        mean[j] += share[j] * step
        square[j] += share[j] * (step * (value[j] - mean[j]) - square[j])


@compiled
def expect_input(net: Network, work: Work, phase: int) -> None:
    """Running μ and σ of the (corrupted) input, without missing features, and μ / sqrt(1 + πσ²/8)."""
    n, mean, square, share = net.n_features, net.input_mean[phase], net.input_square[phase], work.share
    step_count(net.input_count[phase], work.present, share, n)
    step_mean(mean, square, share, work.inputs[ACTUAL], n)
    expected = work.inputs[EXPECTED]
    for j in range(n):
        expected[j] = mean[j] / math.sqrt(1.0 + math.pi / 8.0 * square[j])


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


@compiled
def forward(net: Network, work: Work, phase: int) -> None:
    """Pass one sample through the network: the output, its expectation, and the expectation of its square.

    Without the softmax, as the paper has it in the discriminative phase, E[Ĉ] would be on no scale that C is on:
    docs/deviations.md has what it is worth.
    """
    n, r, m = net.n_features, net.n_hidden, net.n_classes
    encode_expected(work.inputs, net.encoder, net.encoder_bias, work.hidden, n, r)
    if phase == GENERATIVE:
        project_expected(work.hidden, net.encoder, net.decoder_bias, work.reconstruction, n, r)
        sigmoid(work.flat_reconstruction, 3 * net.max_features)
    else:
        project_expected(work.hidden, net.output, net.output_bias, work.prediction, m, r)
        softmax(work.flat_prediction, m, net.max_classes)


@compiled
def significance(z: Floats, x: Floats, weight: Floats, length: int) -> tuple[float, float]:
    """Bias² = (E[z] - x)² and Var = E[z²] - E[z]², each reduced to one number over the outputs.

    For Bias² that is the largest, so that the confidence π lies in [1.18, 2] however many outputs there are; for Var
    the mean.
    """
    bias2 = variance = total = 0.0
    for j in range(length):
        bias2 = max(bias2, weight[j] * (z[EXPECTED, j] - x[j]) ** 2)
        variance += weight[j] * (z[EXPECTED2, j] - z[EXPECTED, j] ** 2)
        total += weight[j]
    return bias2, variance / total


# --- Growing and pruning: one rule for both phases ---------------------------------------------------------------

TOLERANCE, WIDEST_SCOPE = 0.99, 1024.0  # of the adaptive scope
WEIGHT_VARIANCE = 32.0  # of random weights, times (fan-in + fan-out): Glorot's 2, four times as wide for sigmoids


@compiled
def watch(monitor: Floats, value: float, first: float) -> None:
    """Update the running mean and deviation of the value, and their minima.

    The minima start with the ``first`` value that has statistics behind it, and anew where RESTART says so.
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
def level(monitor: Floats) -> float:
    """μ + σ."""
    return monitor[MEAN] + math.sqrt(monitor[SQUARE])  # type: ignore[no-any-return]


@compiled
def bound(monitor: Floats, confidence: float) -> float:
    """μ_min + confidence σ_min."""
    return monitor[MIN_MEAN] + confidence * monitor[MIN_STD]  # type: ignore[no-any-return]


@compiled
def reaches(monitor: Floats, limit: float) -> bool:
    """Whether μ + σ has come to the limit; never for a value that has not varied."""
    return level(monitor) >= limit and monitor[SQUARE] > 0.0 and monitor[RESTART] == 0.0


@compiled
def most_bias2(monitor: Floats, bias2: float) -> float:
    return bound(monitor, 1.3 * math.exp(-bias2) + 0.7)  # growing condition, with π


@compiled
def most_variance(monitor: Floats, variance: float) -> float:
    return bound(monitor, 2.0 * (1.3 * math.exp(-variance) + 0.7))  # pruning condition, with 2χ


@compiled
def squared_error(z: Floats, x: Floats, weight: Floats, length: int) -> float:
    """‖e‖² with e = z - x, over the outputs that count."""
    total = 0.0
    for j in range(length):
        total += weight[j] * (z[ACTUAL, j] - x[j]) ** 2
    return total


@compiled
def grow(net: Network, work: Work, phase: int, z: Floats, x: Floats, weight: Floats, length: int) -> None:
    """Add a hidden unit with b from [-1, 1], whose weights towards the phase's output are -e; the others are random.

    With the adaptive scope of stochastic configuration networks, the range of W and b doubles until the squared error
    of the sample falls by the share they require.
    """
    n, unit, m = net.n_features, net.n_hidden, net.n_classes
    asked = squared_error(z, x, weight, length) * (TOLERANCE + (1.0 - TOLERANCE) / (unit + 2))
    net.n_hidden = unit + 1
    if phase == GENERATIVE:
        for j in range(n):
            net.encoder[j, unit] = -weight[j] * (z[ACTUAL, j] - x[j])
        for o in range(m):
            net.output[o, unit] = normal(net.random, 2.0 / (unit + 2))
    else:
        for o in range(m):
            net.output[o, unit] = -(z[ACTUAL, o] - x[o])
    scope = 1.0
    while True:
        net.encoder_bias[unit] = scope * (2.0 * uniform(net.random) - 1.0)
        if phase == DISCRIMINATIVE:
            for j in range(n):
                net.encoder[j, unit] = scope * normal(net.random, WEIGHT_VARIANCE / (n + 1))
        if net.adaptive_scope == 0.0 or scope >= WIDEST_SCOPE:
            break
        forward(net, work, phase)
        if squared_error(z, x, weight, length) <= asked:
            break
        scope *= 2.0
    join_averages(net, unit)  # beyond the paper


@compiled
def prune(net: Network, work: Work) -> int:
    """Remove the hidden unit with the lowest significance HS = E[y]; those after it move up. Returns which it was."""
    r, significance = net.n_hidden, work.hidden[EXPECTED]
    unit = r - 1
    for i in range(r - 2, -1, -1):
        if significance[i] <= significance[unit]:
            unit = i
    for j in range(net.n_features):
        remove(net.encoder[j], unit, r)
        remove(net.encoder_moment[j], unit, r)
        remove(net.encoder_slow[j], unit, r)
    for o in range(net.n_classes):
        remove(net.output[o], unit, r)
        remove(net.output_moment[o], unit, r)
        remove(net.output_slow[o], unit, r)
    remove(net.encoder_bias, unit, r)
    remove(net.encoder_bias_moment, unit, r)
    remove(net.encoder_bias_slow, unit, r)
    net.n_hidden = r - 1
    return unit


@compiled
def remove(weights: Floats, unit: int, length: int) -> None:
    for i in range(unit, length - 1):
        weights[i] = weights[i + 1]
    weights[length - 1] = 0.0


@compiled
def record(net: Network, phase: int, unit: int, kind: int, value: float, limit: float) -> None:
    """Remember what happened and why, as the latest of as many events as there is room for."""
    if net.max_events > 0:
        place = net.n_events % net.max_events
        event = net.events[place]
        net.causes[place, VALUE] = value
        net.causes[place, BOUND] = limit
        event[EVENT_SAMPLE] = net.n_learned[phase]
        event[EVENT_PHASE] = phase
        event[EVENT_UNIT] = unit
        event[EVENT_KIND] = kind
        event[EVENT_SIZE] = net.n_hidden
    net.n_events += 1
    if kind == DRIFT:
        net.n_drifts[phase] += 1
    else:
        net.n_changes[phase, kind] += 1


@compiled
def evolve(net: Network, work: Work, phase: int) -> bool:
    """Grow if bias² is high, otherwise prune if the variance is; returns whether the structure changed."""
    monitors = net.monitors[phase]
    if phase == GENERATIVE:
        z, x, weight, length = work.reconstruction, work.target, work.present, net.n_features
    else:
        z, x, weight, length = work.prediction, work.one_hot, work.every_class, net.n_classes
    bias2, variance = significance(z, x, weight, length)
    watch(monitors[BIAS2], bias2, 2.0)
    most = most_bias2(monitors[BIAS2], bias2)
    grows = net.grows == 1.0 and reaches(monitors[BIAS2], most)
    watch(monitors[VARIANCE], variance, net.n_features + 2.0)
    most_varied = most_variance(monitors[VARIANCE], variance)
    too_many = not grows and net.prunes == 1.0 and reaches(monitors[VARIANCE], most_varied)
    prunes = too_many and net.n_hidden > 1
    if grows:
        grow(net, work, phase, z, x, weight, length)
        record(net, phase, net.n_hidden - 1, GROWTH, level(monitors[BIAS2]), most)
    elif prunes:
        unit = prune(net, work)
        record(net, phase, unit, PRUNING, level(monitors[VARIANCE]), most_varied)
    if grows or prunes:  # the network has changed, so both minima restart
        monitors[BIAS2, RESTART] = 1.0
    if grows or too_many:
        monitors[VARIANCE, RESTART] = 1.0
    return grows or prunes


# --- Both phases: one pass of SGD over an evolving network -------------------------------------------------------


@compiled
def step_generative(net: Network, work: Work, weight: float) -> None:
    """SGD on the cross-entropy L(x, z), times a weight, over W, which encodes and decodes, b and c."""
    n, r, rate = net.n_features, net.n_hidden, weight * net.generative_rate
    error, y, delta, x = work.reconstruction[ACTUAL], work.hidden[ACTUAL], work.delta, work.inputs[ACTUAL]
    W, b, c = net.encoder, net.encoder_bias, net.decoder_bias
    for j in range(n):
        error[j] = rate * work.present[j] * (error[j] - work.target[j])
    for i in range(r):
        delta[i] = 0.0
    add_product(error, W, delta, n, r)
    for i in range(r):
        delta[i] *= y[i] * (1.0 - y[i])
        b[i] -= delta[i]
    for j in range(n):
        error_j, x_j = error[j], x[j]
        c[j] -= error_j
        for i in range(r):
            W[j, i] -= error_j * y[i] + x_j * delta[i]


@compiled
def accelerate(weights: Floats, moment: Floats, slope: float, values: Floats, length: int, momentum: float) -> None:
    """A momentum step against the gradient slope × values; the slope includes the learning rate."""
    for i in range(length):
        moment[i] = momentum * moment[i] - slope * values[i]
        weights[i] += moment[i]


@compiled
def step_discriminative(net: Network, work: Work, weight: float) -> None:
    """SGD with momentum on the cross-entropy L(C, Ĉ), times a weight, over W, b, Φ and η."""
    n, r, m = net.n_features, net.n_hidden, net.n_classes
    rate, momentum = weight * net.discriminative_rate, net.momentum
    y, delta, error = work.hidden[ACTUAL], work.delta, work.prediction[ACTUAL]
    for o in range(m):
        error[o] = rate * (error[o] - work.one_hot[o])
    backpropagate(error, net.output, y, delta, m, r)
    for o in range(m):
        accelerate(net.output[o], net.output_moment[o], error[o], y, r, momentum)
    accelerate(net.output_bias, net.output_bias_moment, 1.0, error, m, momentum)
    accelerate(net.encoder_bias, net.encoder_bias_moment, 1.0, delta, r, momentum)
    for j in range(n):
        accelerate(net.encoder[j], net.encoder_moment[j], work.inputs[ACTUAL, j], delta, n_plain(net), momentum)
    if net.max_fields > 0:
        step_fields(net, work, 1.0 / (1.0 - momentum))  # as far as steps with momentum go in the end


@compiled
def backpropagate(error: Floats, output: Floats, y: Floats, delta: Floats, m: int, r: int) -> None:
    """The gradient before the encoder's sigmoid."""
    for i in range(r):
        delta[i] = 0.0
    for o in range(m):
        error_o = error[o]
        for i in range(r):
            delta[i] += error_o * output[o, i]
    for i in range(r):
        delta[i] *= y[i] * (1.0 - y[i])


@compiled
def learn_sample(net: Network, work: Work, phase: int, weight: float) -> None:
    """One sample in one phase: grow or prune by the network's significance, then one SGD step.

    The ``weight`` of its loss, 1 in the paper, is for that step alone.
    """
    expect_input(net, work, phase)
    forward(net, work, phase)
    watch_drift(net, work, phase)  # beyond the paper
    if evolve(net, work, phase):
        forward(net, work, phase)
    if phase == GENERATIVE:
        step_generative(net, work, weight)
    else:
        step_labelled(net, work, weight)


@compiled
def step_labelled(net: Network, work: Work, weight: float) -> None:
    """One step of the discriminative phase."""
    if net.adaptive_rate == 1.0:  # beyond the paper
        step_adaptive(net, work, weight)
    else:
        step_discriminative(net, work, weight)


# =================================================================================================================
# Beyond the paper
# =================================================================================================================

# --- Scaling, learned online -------------------------------------------------------------------------------------

LARGEST = 1e150  # larger values are clipped to this, so that their squares are finite
WIDEST = 5.0  # in standard deviations; values farther away are clipped
SCALING_HORIZON = 2000.0  # samples over which means and deviations are taken, unless a network has another reach


@compiled
def find(row: Floats, value: Floats, present: Floats, length: int) -> float:
    """Mark missing features; returns the number that are present."""
    n_present = 0.0
    for j in range(length):
        missing = math.isnan(row[j])
        present[j] = 0.0 if missing else 1.0
        n_present += present[j]
        value[j] = 0.0 if missing else min(max(row[j], -LARGEST), LARGEST)
    return n_present


@compiled
def learn_scaling(net: Network, work: Work) -> None:
    """Learn the features' ranges (``MINMAX``) or their means and deviations (``STANDARD``) from one more sample."""
    n, value, share, present, low, high = net.n_features, work.clean, work.share, work.present, net.low, net.high
    if net.scaling == MINMAX:
        for j in range(n):
            low[j] = value[j] if (present[j] > 0.0) & (value[j] < low[j]) else low[j]
            high[j] = value[j] if (present[j] > 0.0) & (value[j] > high[j]) else high[j]
    elif net.scaling == STANDARD:
        step_count(net.scale_count, present, share, n)
        for j in range(n):
            share[j] = max(share[j], present[j] / net.scaling_horizon)
        step_mean(net.mean, net.square, share, value, n)


@compiled
def measure(net: Network, work: Work) -> None:
    """What features are scaled by until the scaling learns again: their zeros and units.

    The unit of one that never varied is infinite, so that it takes the neutral value 0.
    """
    zero, unit = work.zero, work.unit
    for j in range(net.n_features):
        if net.scaling == STANDARD:
            zero[j], unit[j] = net.mean[j], math.sqrt(net.square[j]) if net.square[j] > 0.0 else math.inf
        elif net.scaling == MINMAX:
            seen = net.high[j] > net.low[j]
            zero[j], unit[j] = net.low[j] if seen else 0.0, net.high[j] - net.low[j] if seen else math.inf
        else:
            zero[j], unit[j] = 0.0, 1.0


@compiled
def scale(net: Network, work: Work) -> None:
    """Scale x; a missing feature, or one that never varied, takes the neutral value 0."""
    n, x, present, zero, unit = net.n_features, work.clean, work.present, work.zero, work.unit
    low, high = (-WIDEST, WIDEST) if net.scaling == STANDARD else (0.0, 1.0)
    if net.max_fields > 0:
        for j in range(n):
            work.raw[j] = x[j]
    for j in range(n):
        x[j] = present[j] * min(max((x[j] - zero[j]) / unit[j], low), high)
    if net.max_fields > 0:
        locate(net, work)


# A weighted sum goes on rising beyond all samples that it was fitted to. Where a feature is a date, or drifts, the
# samples of the next chunk lie there. So to predict them, a value beyond those that were lately taught is seen as the
# farthest of these, as a tree sees it.

LEAST_RANGED = 100  # samples taught before a range is known


@compiled
def widen(net: Network, row: Floats) -> None:
    """Take a sample that is taught into the latest range; once that has the horizon's samples, a new one begins."""
    lowest, highest, n_ranged = net.lowest, net.highest, net.n_ranged
    if n_ranged[0] >= net.scaling_horizon:
        for j in range(net.n_features):
            lowest[1, j], highest[1, j] = lowest[0, j], highest[0, j]
            lowest[0, j], highest[0, j] = math.inf, -math.inf
        n_ranged[1] = n_ranged[0]
        n_ranged[0] = 0
    for j in range(net.n_features):
        if not math.isnan(row[j]):
            value = min(max(row[j], -LARGEST), LARGEST)
            lowest[0, j] = min(lowest[0, j], value)
            highest[0, j] = max(highest[0, j], value)
    n_ranged[0] += 1


@compiled
def keep_within(net: Network, work: Work) -> None:
    """Before x is scaled to predict it: values beyond the ranges are seen as their ends."""
    if net.stays_within == 0.0 or net.n_ranged[0] + net.n_ranged[1] < LEAST_RANGED:
        return
    x, lowest, highest = work.clean, net.lowest, net.highest
    for j in range(net.n_features):
        low, high = min(lowest[0, j], lowest[1, j]), max(highest[0, j], highest[1, j])
        if low <= high:
            x[j] = min(max(x[j], low), high)


@compiled
def aim(net: Network, work: Work) -> None:
    """What the reconstruction should be: the scaled input, squeezed into [0, 1] unless it lies there."""
    for j in range(net.n_features):
        work.target[j] = work.clean[j]
    if net.scaling == STANDARD:
        sigmoid(work.target, net.n_features)


@compiled
def unscale(net: Network, a: Floats, row: Floats) -> None:
    """The input of the decoder's sigmoid in the units of the stream; NaN for a feature that was never seen."""
    scaling, n = net.scaling, net.n_features
    if scaling != STANDARD:  # with STANDARD the target is the sigmoid of the input, so nothing is left to do
        sigmoid(a, n)
    for j in range(n):
        if scaling == MINMAX:
            row[j] = net.low[j] + a[j] * (net.high[j] - net.low[j])
        elif scaling == STANDARD:
            unit = math.sqrt(net.square[j]) if net.scale_count[j] > 0.0 else math.nan
            row[j] = net.mean[j] + min(max(a[j], -WIDEST), WIDEST) * unit
        else:
            row[j] = a[j]


# --- Fields: features seen in parts ------------------------------------------------------------------------------
#
# A sigmoid of a weighted sum is monotonic in each feature, so that a step here and a bump there take many units. Where
# a network has fields, half of its units see each feature through these instead: the sigmoid is then one of a sum of
# functions, one of each feature, that are piecewise linear between the centres of the fields. The other half keeps to
# weighted sums, by which straight boundaries are simple.

FARTHEST = 2.5  # deviations from the mean that fields reach


def plain_units(net: Network) -> int:
    """How many units, the first ones, see the features as they are."""
    return net.n_hidden if net.max_fields == 0 else net.n_hidden // 2


n_plain = compiled(plain_units)


def has_varied(net: Network, feature: int) -> bool:
    """Whether a feature was seen with different values, so that it can be scaled."""
    if net.scaling == STANDARD:
        return net.square[feature] > 0.0  # type: ignore[no-any-return]
    return net.scaling == UNSCALED or net.high[feature] > net.low[feature]


varies = compiled(has_varied)


@compiled
def is_ranked(net: Network, feature: int) -> bool:
    """Whether the fields of a feature are at values of their own."""
    places = net.field_places[feature]
    return places[net.max_fields - 1] > places[0]  # type: ignore[no-any-return]


@compiled
def rank(places: Floats, n_fields: int, value: float) -> float:
    """Where a value is among the rising places of the fields; if several are there, in their middle."""
    below, up_to = 0, 0
    for k in range(n_fields):
        below += 1 if places[k] < value else 0
        up_to += 1 if places[k] <= value else 0
    if up_to > below:
        return 0.5 * (below + up_to - 1)
    if below == 0:
        return 0.0
    if below == n_fields:
        return n_fields - 1.0
    return below - 1 + (value - places[below - 1]) / (places[below] - places[below - 1])  # type: ignore[no-any-return]


@compiled
def locate(net: Network, work: Work) -> None:
    """Find the two neighbouring fields that see each feature, the nearer one more of it.

    The fields divide [0, 1], or as many deviations around the mean, evenly. A skewed feature is halfway between where
    it is there and its rank, so that both its many alike and its few far out are told apart. None sees a feature that
    is missing, or one that never varied.
    """
    n, last, lowest, width = net.n_features, net.max_fields - 1, 0.0, 1.0
    if net.scaling == STANDARD:
        lowest, width = -FARTHEST, 2.0 * FARTHEST
    x, at, in_lower, in_upper, present = work.clean, work.lower, work.in_lower, work.in_upper, work.present
    per_unit = net.max_fields / width
    for j in range(n):
        place = min(max((x[j] - lowest) * per_unit - 0.5, 0.0), float(last))
        if is_ranked(net, j):
            place = 0.5 * (place + rank(net.field_places[j], net.max_fields, work.raw[j]))
        lower = min(int(place), last - 1)
        seen = present[j] if varies(net, j) else 0.0
        at[j] = lower
        in_upper[j] = seen * (place - lower)
        in_lower[j] = seen - in_upper[j]


@compiled
def add_fields(weights: Floats, work: Work, y: Floats, n: int, first: int, r: int) -> None:
    """Add what the fields contribute to the units from ``first`` on, two features at a time, as :func:`add_product`."""
    at, in_lower, in_upper = work.lower, work.in_lower, work.in_upper
    whole = n - n % 2
    for j in range(0, whole, 2):
        k0, x0, x1 = at[j], in_lower[j], in_upper[j]
        k2, x2, x3 = at[j + 1], in_lower[j + 1], in_upper[j + 1]
        for i in range(first, r):
            y[i] += (
                x0 * weights[j, k0, i]
                + x1 * weights[j, k0 + 1, i]
                + x2 * weights[j + 1, k2, i]
                + x3 * weights[j + 1, k2 + 1, i]
            )
    for j in range(whole, n):
        k0, x0, x1 = at[j], in_lower[j], in_upper[j]
        for i in range(first, r):
            y[i] += x0 * weights[j, k0, i] + x1 * weights[j, k0 + 1, i]


@compiled
def step_fields(net: Network, work: Work, factor: float) -> None:
    """A step of the fields' weights, by that of the units' offsets times a factor."""
    weights, delta, first, r = net.field_weights, work.delta, n_plain(net), net.n_hidden
    for j in range(net.n_features):
        lower, in_lower, in_upper = work.lower[j], factor * work.in_lower[j], factor * work.in_upper[j]
        for i in range(first, r):
            weights[j, lower, i] -= in_lower * delta[i]
            weights[j, lower + 1, i] -= in_upper * delta[i]


# --- A rate that adapts to each unit -----------------------------------------------------------------------------

GRADIENT_HORIZON = 300.0  # horizon of the mean square of a gradient, in samples
DAMPING = 0.03  # so that small gradients make small steps
SMOOTHING = 0.05  # share of a label spread evenly over all classes, so that no output weight grows without bound
DECAY = 0.005  # of the output weights, times the rate


@compiled
def adapt(gradient: Floats, moment: Floats, length: int, rate: float, share: float) -> None:
    """Turn gradients into steps: each times the rate, divided by its root mean square."""
    for i in range(length):
        moment[i] += share * (gradient[i] * gradient[i] - moment[i])
        gradient[i] *= rate / (math.sqrt(moment[i]) + DAMPING)


@compiled
def step_adaptive(net: Network, work: Work, weight: float) -> None:
    """:func:`step_discriminative` at a rate that adapts to each unit instead, and with smoothed labels."""
    n, r, m, rate = net.n_features, net.n_hidden, net.n_classes, net.discriminative_rate
    share = max(1.0 / net.n_learned[DISCRIMINATIVE], 1.0 / GRADIENT_HORIZON)
    y, delta, error, x = work.hidden[ACTUAL], work.delta, work.prediction[ACTUAL], work.inputs[ACTUAL]
    W, b, output, output_bias = net.encoder, net.encoder_bias, net.output, net.output_bias
    for o in range(m):
        error[o] = weight * (error[o] - (1.0 - SMOOTHING) * work.one_hot[o] - SMOOTHING / m)
    backpropagate(error, output, y, delta, m, r)
    adapt(error, net.output_bias_moment, m, rate, share)
    adapt(delta, net.encoder_bias_moment, r, rate, share)
    for o in range(m):
        error_o = error[o]
        for i in range(r):
            output[o, i] -= error_o * y[i] + rate * DECAY * output[o, i]
        output_bias[o] -= error_o
    for i in range(r):
        b[i] -= delta[i]
    plain = n_plain(net)
    for j in range(n):
        x_j = x[j]
        for i in range(plain):
            W[j, i] -= x_j * delta[i]
    if net.max_fields > 0:
        step_fields(net, work, 1.0)


# --- Weights of samples and classes: what their losses are multiplied by -----------------------------------------

CLASS_HORIZON = 10_000.0  # samples over which labels are counted
HEAVIEST = 100.0  # balanced class: of two, one that has 1 in 200 labels; a rarer one would be learned from too few


@compiled
def weight_of_sample(weights: Floats, sample: int) -> float:
    """Its own, or 1 if there are none."""
    return weights[sample] if len(weights) > 0 else 1.0


@compiled
def count_label(net: Network, label: int, weight: float) -> None:
    """Count a label that is taught, with the weight of its sample; earlier ones fade."""
    for o in range(net.n_classes):
        net.class_count[o] *= 1.0 - 1.0 / CLASS_HORIZON
    net.class_count[label] += weight


@compiled
def weight_of_class(net: Network, label: int) -> float:
    """The weight given, or n / (K n_c) for the n_c of n labels, of K classes, that are of this class; 1 if none is."""
    if net.weighing == GIVEN:
        return net.class_weight[label]  # type: ignore[no-any-return]
    if net.class_count[label] == 0.0:
        return 1.0
    total, n_counted = 0.0, 0.0
    for o in range(net.n_classes):
        total += net.class_count[o]
        n_counted += 1.0 if net.class_count[o] > 0.0 else 0.0
    weight: float = min(total / (n_counted * net.class_count[label]), HEAVIEST)
    return weight


# --- Averaged weights: better predictions while the stream is stable ---------------------------------------------

STRIDE = 4  # update the averages, and judge them, at every fourth sample only: saves time
LOSS_MEMORY = 0.992  # of the losses, per sample judged: over some 500 samples
CAUTION = 0.4  # weight of a loss, for STRIDE samples together: less than 1 each, since neighbours are similar
DOUBT = 0.01  # averages trusted less than this belong to a past concept
NEGLIGIBLE = 1e-12  # smaller shares in a prediction are skipped
LEAST_PROBABILITY = 1e-4  # lower bound for probabilities in a loss


@compiled
def average(slow: Floats, weights: Floats, length: int, share: float) -> None:
    for i in range(length):
        slow[i] += share * (weights[i] - slow[i])


@compiled
def follow(net: Network) -> None:
    """Update the averages with the latest weights."""
    r, age = net.n_hidden, net.n_learned[DISCRIMINATIVE] - net.averaged_since
    share = max(1.0 - net.averaging, 10.0 / (age + 9.0))  # at first, about the latest tenth of the samples
    share = 1.0 - (1.0 - share) ** STRIDE
    plain = n_plain(net)
    for j in range(net.n_features):
        average(net.encoder_slow[j], net.encoder[j], plain, share)
        for k in range(net.max_fields):
            average(net.field_weights_slow[j, k, plain:], net.field_weights[j, k, plain:], r - plain, share)
    average(net.encoder_bias_slow, net.encoder_bias, r, share)
    for o in range(net.n_classes):
        average(net.output_slow[o], net.output[o], r, share)
    average(net.output_bias_slow, net.output_bias, net.n_classes, share)


@compiled
def join_averages(net: Network, unit: int) -> None:
    """A new unit enters the averages with its own weights."""
    for j in range(net.n_features):
        net.encoder_slow[j, unit] = net.encoder[j, unit]
        for k in range(net.max_fields):
            net.field_weights_slow[j, k, unit] = net.field_weights[j, k, unit]
    net.encoder_bias_slow[unit] = net.encoder_bias[unit]
    for o in range(net.n_classes):
        net.output_slow[o, unit] = net.output[o, unit]


@compiled
def activate(net: Network, work: Work, slow: int, y: Floats, r: int) -> None:
    """The hidden units for the clean input, by the weights or by their averages."""
    n, plain = net.n_features, min(n_plain(net), r)
    W, b = net.encoder_slow if slow == 1 else net.encoder, net.encoder_bias_slow if slow == 1 else net.encoder_bias
    for i in range(r):
        y[i] = b[i]
    add_product(work.clean, W, y, n, plain)
    if net.max_fields > 0:
        add_fields(net.field_weights_slow if slow == 1 else net.field_weights, work, y, n, plain, r)
    sigmoid(y, r)


@compiled
def predict(net: Network, work: Work, slow: int, out: Floats, m: int) -> None:
    """Ĉ for the clean input, by the weights or by their averages."""
    r, y = net.n_hidden, work.hidden[ACTUAL]
    activate(net, work, slow, y, r)
    project(
        y,
        net.output_slow if slow == 1 else net.output,
        net.output_bias_slow if slow == 1 else net.output_bias,
        out,
        m,
        r,
    )
    softmax(out, m, net.max_classes)


# --- Rehearsal and memory: the latest labelled samples, used again -----------------------------------------------
#
# A network that remembers samples has more units from the start, and neither grows nor generates: where a network that
# evolves underfits, or each label counts, its losses will be the lower ones.

PRIOR = 0.5  # votes that all classes share
MOST_COMPARED = 100_000  # values of remembered samples: of many features, fewer samples are asked


@compiled
def remember(net: Network, row: Floats, label: int, weight: float) -> None:
    """Keep a labelled sample as it came, instead of the oldest if there is no more room."""
    place = net.n_remembered % net.max_samples
    for j in range(net.n_features):
        net.remembered[place, j] = row[j]
    net.remembered_label[place] = label
    net.remembered_weight[place] = weight
    net.n_remembered += 1


# Two things about features that only the samples themselves tell, not their means and deviations.
#
# A feature may come in another unit from some sample on. All that is remembered of it is then converted, and its scale
# with it; otherwise both would be wrong for as long as they reach back. A unit has changed if a feature's values, for
# two blocks of samples, are several times as wide, as narrow or as far away as in any block before. An error that rises
# while inputs look strange is no reason to forget, since there would be nothing left to convert.
#
# A feature may be so skewed that nearly all of its values are in the same few fields. It is then seen by its rank among
# remembered values, too.

BLOCK = 32  # remembered samples in a row that tell a feature's level and spread
LEAST_BLOCKS = 6  # two of a new unit, one in which it may have begun, three before
ROUNDING = 1e-9  # of a level; a smaller spread is none
BEYOND = 4.0  # times
STEADY = 2.0  # spreads by which levels may differ in one unit, and times for spreads; dates and seasons go farther
LEAST_ORDERED = 64  # remembered samples before fields are placed by them
CROWDED = 3  # fields with nearly all values in them


@compiled
def level_and_spread(net: Network, feature: int, block: int) -> tuple[float, float]:
    """A feature's mean and mean distance from it in a block of remembered samples, the newest being 0.

    Both are NaN if a value is missing. What does not vary but for rounding has no spread.
    """
    newest, total, apart = net.n_remembered - 1 - BLOCK * block, 0.0, 0.0
    for age in range(BLOCK):
        total += net.remembered[(newest - age) % net.max_samples, feature]
    level = total / BLOCK
    for age in range(BLOCK):
        apart += abs(net.remembered[(newest - age) % net.max_samples, feature] - level)
    return level, 0.0 if apart <= ROUNDING * abs(total) else apart / BLOCK


@compiled
def is_usual(net: Network, feature: int, level: float, spread: float) -> bool:
    """Whether such values are about as the feature was."""
    deviation = math.sqrt(net.square[feature])
    is_near: bool = abs(level - net.mean[feature]) <= deviation
    return is_near and deviation / 3.0 <= spread <= 1.5 * deviation


@compiled
def looks_strange(net: Network) -> bool:
    """Whether a feature's latest values are unlike those before, so that a unit may have changed."""
    if net.renews == 0.0 or net.scaling != STANDARD or net.n_remembered < BLOCK * LEAST_BLOCKS:
        return False
    for j in range(net.n_features):
        level, spread = level_and_spread(net, j, 0)
        if 0.0 < spread < LARGEST and not is_usual(net, j, level, spread):
            return True
    return False


@compiled
def has_other_unit(net: Network, feature: int, n_blocks: int) -> bool:
    """Whether the two latest blocks are of another unit than all before the one in which it may have begun."""
    level, spread = level_and_spread(net, feature, 0)
    if not 0.0 < spread < LARGEST or is_usual(net, feature, level, spread):
        return False
    level_before, spread_before = level_and_spread(net, feature, 1)
    narrower = min(spread, spread_before)
    alike = abs(level - level_before) <= STEADY * narrower and max(spread, spread_before) <= STEADY * narrower
    if not 0.0 < spread_before < LARGEST or not alike:  # otherwise the unit changed within one of them
        return False
    low, high, narrowest, widest = math.inf, -math.inf, math.inf, 0.0
    for block in range(3, n_blocks):
        past, width = level_and_spread(net, feature, block)
        if not 0.0 < width < LARGEST:  # missing, or a time in which nothing varied: that can be told of no unit
            return False
        low, high = min(low, past), max(high, past)
        narrowest, widest = min(narrowest, width), max(widest, width)
    if high - low > STEADY * widest:
        return False
    far = BEYOND * (high - low + widest)
    is_wide = narrower > BEYOND * widest
    is_narrow = max(spread, spread_before) < narrowest / BEYOND
    is_away = min(level, level_before) > high + far or max(level, level_before) < low - far
    return is_wide or is_narrow or is_away


@compiled
def is_likelier(value: float, level: float, spread: float, than_level: float, than_spread: float) -> bool:
    """By Laplace's distributions of these levels and spreads."""
    return abs(value - level) / spread + math.log(spread) < abs(value - than_level) / than_spread + math.log(
        than_spread
    )


@compiled
def converted(value: float, before: float, width_before: float, level: float, spread: float) -> float:
    """A value in the new unit."""
    return min(max(level + spread * ((value - before) / width_before), -LARGEST), LARGEST)


@compiled
def convert(net: Network, feature: int, n_kept: int) -> None:
    """Convert what is remembered of a feature, where it is in the unit of the past; that tells its scale and range."""
    level, spread = level_and_spread(net, feature, 0)
    also, also_spread = level_and_spread(net, feature, 1)
    level, spread = 0.5 * (level + also), 0.5 * (spread + also_spread)
    before, width = level_and_spread(net, feature, 3)
    also, also_spread = level_and_spread(net, feature, 4)
    before, width = 0.5 * (before + also), 0.5 * (width + also_spread)
    total, square, n_present, low, high = 0.0, 0.0, 0.0, math.inf, -math.inf
    for k in range(n_kept):
        value = net.remembered[k, feature]
        if math.isnan(value):
            continue
        if is_likelier(value, before, width, level, spread):
            value = converted(value, before, width, level, spread)
            net.remembered[k, feature] = value
        value = min(max(value, -LARGEST), LARGEST)
        low, high = min(low, value), max(high, value)
        total += value
        n_present += 1.0
    mean = total / n_present
    for k in range(n_kept):
        value = net.remembered[k, feature]
        square += 0.0 if math.isnan(value) else (min(max(value, -LARGEST), LARGEST) - mean) ** 2
    net.mean[feature], net.square[feature] = mean, square / n_present
    net.lowest[0, feature], net.highest[0, feature] = low, high
    net.lowest[1, feature], net.highest[1, feature] = math.inf, -math.inf
    for k in range(net.max_fields):
        net.field_places[feature, k] = converted(net.field_places[feature, k], before, width, level, spread)


@compiled
def put_in_order(net: Network, values: Floats, feature: int, n_kept: int) -> int:
    """Sort remembered values of a feature, of many of them some; returns how many are not missing."""
    every, n_values = (n_kept + MOST_ORDERED - 1) // MOST_ORDERED, 0
    for k in range(0, n_kept, every):
        value = min(max(net.remembered[k, feature], -LARGEST), LARGEST)
        if not math.isnan(net.remembered[k, feature]):
            spot = n_values
            while spot > 0 and values[spot - 1] > value:
                values[spot] = values[spot - 1]
                spot -= 1
            values[spot] = value
            n_values += 1
    return n_values


@compiled
def nth_place(values: Floats, n_values: int, field: int, n_fields: int) -> float:
    """The value at which a field is, so that each sees as many; the outermost leave one in a hundred outside."""
    share = min(max(field / (n_fields - 1.0), 0.01), 0.99)
    return values[int(share * (n_values - 1) + 0.5)]  # type: ignore[no-any-return]


@compiled
def is_skewed(values: Floats, n_values: int, n_fields: int) -> bool:
    """Whether even fields crowd in a few what fields at ranks would see in at least twice as many."""
    mean, square = 0.0, 0.0
    for k in range(n_values):
        mean += values[k] / n_values
    for k in range(n_values):
        square += (values[k] - mean) ** 2 / n_values
    per_unit = n_fields / (2.0 * FARTHEST * math.sqrt(square)) if square > 0.0 else 0.0
    n_different, n_even, last, last_even = 0, 0, math.nan, -1
    for field in range(n_fields):
        place = nth_place(values, n_values, field, n_fields)
        even = int(min(max((place - mean) * per_unit + 0.5 * n_fields, 0.0), n_fields - 1.0))
        n_different += 0 if place == last else 1
        n_even += 0 if even == last_even else 1
        last, last_even = place, even
    return n_even <= CROWDED and n_different >= 2 * n_even


@compiled
def see_anew(net: Network, work: Work) -> None:
    """Convert features whose unit has changed, after each block; place the fields of skewed ones, ever more seldom."""
    n_all, n_fields = net.n_remembered, net.max_fields
    n_kept = min(n_all, net.max_samples)
    if n_all % BLOCK == 0 and n_kept // BLOCK >= LEAST_BLOCKS:
        for j in range(net.n_features):
            if has_other_unit(net, j, n_kept // BLOCK):
                convert(net, j, n_kept)
                measure(net, work)
    is_doubled = n_all <= net.max_samples and n_all & (n_all - 1) == 0
    if n_fields > 0 and n_kept >= LEAST_ORDERED and (is_doubled or n_all % net.max_samples == 0):
        for j in range(net.n_features):
            n_values = put_in_order(net, work.in_order, j, n_kept)
            if n_values < n_fields:
                continue
            if is_ranked(net, j) or is_skewed(work.in_order, n_values, n_fields):
                for k in range(n_fields):
                    net.field_places[j, k] = nth_place(work.in_order, n_values, k, n_fields)


@compiled
def learn_again(net: Network, work: Work, row: Floats, label: int, own: float, weight: float) -> None:
    """One step on a new sample, which is then remembered with its own weight, and some on those remembered before.

    If the sample tells of a real drift, those are of a past concept, and are forgotten; but not if the inputs look
    strange, since the error may then be due to these.
    """
    predict(net, work, BY_WEIGHTS, work.prediction[ACTUAL], net.n_classes)
    if rise(net, work, DISCRIMINATIVE) > 0.0 and not looks_strange(net):
        net.n_remembered = 0
    step_labelled(net, work, weight)
    remember(net, row, label, own)
    if net.renews == 1.0 and net.scaling == STANDARD:
        see_anew(net, work)
    for _ in range(int(net.rehearse)):
        revisit(net, work)


@compiled
def revisit(net: Network, work: Work) -> None:
    """One more step on a sample that is remembered, drawn at random."""
    place = int(uniform(net.random) * min(net.n_remembered, net.max_samples))
    label, weight = net.remembered_label[place], net.remembered_weight[place]
    if net.weighing != ALIKE:
        weight *= weight_of_class(net, label)
    find(net.remembered[place], work.clean, work.present, net.n_features)
    scale(net, work)
    know(net, work, label)
    predict(net, work, BY_WEIGHTS, work.prediction[ACTUAL], net.n_classes)
    step_labelled(net, work, weight)


@compiled
def recall(net: Network, work: Work, out: Floats, m: int) -> None:
    """The share of each class among the remembered samples, scaled as inputs are, that are nearest to this one."""
    n, zero, per_unit = net.n_features, work.zero, work.per_unit
    low, high = (-WIDEST, WIDEST) if net.scaling == STANDARD else (0.0, 1.0)
    for j in range(n):
        per_unit[j] = 1.0 / work.unit[j]  # multiplying takes less time, and there are many to compare with
    clean, nearest, labels, n_near, most = work.clean, work.nearest, work.nearest_label, 0, int(net.neighbours)
    for age in range(min(net.n_remembered, net.max_samples, max(MOST_COMPARED // n, most))):
        place = (net.n_remembered - 1 - age) % net.max_samples
        row, distance = net.remembered[place], 0.0
        for j in range(n):
            value = min(max((min(max(row[j], -LARGEST), LARGEST) - zero[j]) * per_unit[j], low), high)
            distance += ((0.0 if math.isnan(row[j]) else value) - clean[j]) ** 2
        if n_near < most or distance < nearest[n_near - 1]:
            n_near = min(n_near + 1, most)
            spot = n_near - 1
            while spot > 0 and nearest[spot - 1] > distance:
                nearest[spot] = nearest[spot - 1]
                labels[spot] = labels[spot - 1]
                spot -= 1
            nearest[spot] = distance
            labels[spot] = net.remembered_label[place]
    for o in range(m):
        out[o] = PRIOR / m
    for spot in range(n_near):
        if labels[spot] < m:
            out[labels[spot]] += 1.0
    for o in range(m):
        out[o] /= PRIOR + n_near


# --- The mixture: every opinion weighs as much as its recent losses say ------------------------------------------


def holds(net: Network, opinion: int) -> bool:
    """Whether the network has such an opinion."""
    if opinion == BY_AVERAGES:
        return net.averaging > 0.0
    return opinion == BY_WEIGHTS or net.neighbours > 0.0


has = compiled(holds)


@compiled
def evidence(net: Network) -> float:
    """log Σ exp(-caution × loss) over the network's opinions: by this, networks are mixed as opinions are."""
    least = net.losses[BY_WEIGHTS]
    for opinion in range(1, 3):
        if has(net, opinion):
            least = min(least, net.losses[opinion])
    total = 0.0
    for opinion in range(3):
        if has(net, opinion):
            total += math.exp(-CAUTION * (net.losses[opinion] - least))
    found: float = math.log(total) - CAUTION * least
    return found


@compiled
def share_of(net: Network, opinion: int, of_all: float) -> float:
    """The share of an opinion in the network's prediction: the Bayesian posterior given the recent losses."""
    return math.exp(-CAUTION * net.losses[opinion] - of_all) if has(net, opinion) else 0.0


@compiled
def opine(net: Network, work: Work, opinion: int, out: Floats, m: int) -> None:
    """Ĉ for the clean input, by one opinion."""
    if opinion == BY_MEMORY:
        recall(net, work, out, m)
    else:
        predict(net, work, opinion, out, m)


@compiled
def judge(net: Network, work: Work, X: Floats, labels: Words, weights: Floats, order: Words) -> None:
    """Compare the opinions on labelled samples, before any of these is learned from.

    The losses are weighted as they are in learning. All of a chunk are judged by the same weights and tell much the
    same, so that n of them count as the square root of n. If the averages lag behind a drift they restart, so that
    their horizon is never longer than the concept.
    """
    n, m, out, losses = net.n_features, net.n_classes, work.prediction[ACTUAL], net.losses
    if m == 0:
        return
    first = STRIDE - 1 - net.n_learned[DISCRIMINATIVE] % STRIDE
    together = 1.0 / math.sqrt(max(1.0, math.ceil((len(order) - first) / STRIDE)))
    for t in range(first, len(order), STRIDE):
        label, weight = labels[order[t]], together * weight_of_sample(weights, order[t])
        if net.weighing != ALIKE:
            weight *= weight_of_class(net, label)
        find(X[order[t]], work.clean, work.present, n)
        keep_within(net, work)
        scale(net, work)
        for opinion in range(3):
            if has(net, opinion):
                opine(net, work, opinion, out, m)
                seen = out[label] if label < m else 0.0
                losses[opinion] = LOSS_MEMORY * losses[opinion] - weight * math.log(max(seen, LEAST_PROBABILITY))
    behind = losses[BY_AVERAGES] - losses[BY_WEIGHTS]
    if net.averaging > 0.0 and CAUTION * behind > math.log(1.0 / DOUBT - 1.0):
        net.averaged_since = net.n_learned[DISCRIMINATIVE]
        losses[BY_AVERAGES] = losses[BY_WEIGHTS]


# --- Calibration: predictions as sure as they turned out right ---------------------------------------------------

NEVER = np.iinfo(np.int64).max
COMPARED_EVERY = 16  # labels: one number is learned, so that few are enough
CALIBRATION_MEMORY = 0.998  # of what is known of the sharpness, per label that is compared
CALIBRATION_PRIOR = 5.0  # how much is known in advance: that nothing is to be done
SHARPEST = 1.5  # limit for the logarithm of the sharpness


@compiled
def sharpen(p: Floats, m: int, sharpness: float) -> None:
    """Raise probabilities to a power (the sharpness, one over the temperature), so that the likeliest remains so."""
    largest, total = 0.0, 0.0
    for o in range(m):
        largest = max(largest, p[o])
    for o in range(m):
        p[o] = math.exp(sharpness * math.log(p[o] / largest)) if p[o] > 0.0 else 0.0
        total += p[o]
    for o in range(m):
        p[o] /= max(total, NEGLIGIBLE)


@compiled
def learn_sharpness(net: Network, p: Floats, m: int, label: int, weight: float) -> None:
    """One Newton step on the log loss of a mixed prediction, by all that is known of its curvature.

    The sharpness is learned by its logarithm; a label that was impossible says nothing of it.
    """
    calibration = net.calibration
    sharpness, total, mean, square = math.exp(calibration[LOG_SHARPNESS]), 0.0, 0.0, 0.0
    if label >= m or p[label] <= 0.0:
        return
    told = math.log(max(p[label], LEAST_PROBABILITY))
    for o in range(m):
        if p[o] > 0.0:
            score = math.log(max(p[o], LEAST_PROBABILITY)) - told
            odds = math.exp(sharpness * score)
            total += odds
            mean += odds * score
            square += odds * score * score
    mean /= total
    slope, curvature = sharpness * mean, sharpness * sharpness * (square / total - mean * mean)
    calibration[INFORMATION] = CALIBRATION_MEMORY * calibration[INFORMATION] + weight * max(curvature, 0.0)
    step = weight * slope / (calibration[INFORMATION] + CALIBRATION_PRIOR)
    calibration[LOG_SHARPNESS] = min(max(calibration[LOG_SHARPNESS] - step, -SHARPEST), SHARPEST)


# --- The drift signal --------------------------------------------------------------------------------------------

LATE_SAMPLES, PAST_SAMPLES = 200.0, 10_000.0  # horizons of the recent and of the past mean of the surprise
LEAST_SAMPLES = 300.0  # before a drift can be signalled
LEAST_STD = 0.1  # of the surprise, so that a single surprise in a regular stream is no drift
SURE = 4.0  # standard errors that count as a drift
TINY = 1e-12  # smaller variances count as zero


@compiled
def surprise(net: Network, work: Work, phase: int) -> float:
    """How unexpected a sample is: its squared distance from the mean input in deviations, or its squared error.

    Bias² is computed at the mean input, so it misses a drift that leaves the mean prediction unchanged; the error does
    not.
    """
    if phase == DISCRIMINATIVE:
        return squared_error(work.prediction, work.one_hot, work.every_class, net.n_classes)
    x, mean, squares = work.inputs[ACTUAL], net.input_mean[phase], net.input_square[phase]
    total, n_present = 0.0, 0.0
    for j in range(net.n_features):
        step, square = x[j] - mean[j], squares[j]
        total += work.present[j] * min(step * step, WIDEST * WIDEST * square) / max(square, TINY)
        n_present += work.present[j]
    return total / n_present


@compiled
def watch_drift(net: Network, work: Work, phase: int) -> None:
    """Record a drift."""
    risen = rise(net, work, phase)
    if risen > 0.0:
        record(net, phase, 0, DRIFT, risen, SURE)


@compiled
def rise(net: Network, work: Work, phase: int) -> float:
    """By how many standard errors the recent surprise is above the past surprise, if significantly so; otherwise 0.

    Its statistics then restart. Those of the error also restart if it is as far below: the network has improved.
    """
    value, monitor = surprise(net, work, phase), net.monitors[phase, SURPRISE]
    monitor[COUNT] += 1.0
    share, step = 1.0 / min(monitor[COUNT], PAST_SAMPLES), value - monitor[MEAN]
    monitor[MEAN] += share * step
    monitor[SQUARE] = (1.0 - share) * (monitor[SQUARE] + share * step * step)  # never negative, whatever the rounding
    monitor[LATE] += (value - monitor[LATE]) / min(monitor[COUNT], LATE_SAMPLES)
    standard_error = max(math.sqrt(monitor[SQUARE]), LEAST_STD) / math.sqrt(2.0 * LATE_SAMPLES - 1.0)
    change = (monitor[LATE] - monitor[MEAN]) / standard_error
    if monitor[COUNT] >= LEAST_SAMPLES and (change > SURE or (phase == DISCRIMINATIVE and change < -SURE)):
        monitor[:] = 0.0
        return max(change, 0.0)  # type: ignore[no-any-return]
    return 0.0


# =================================================================================================================
# What Python calls
# =================================================================================================================


@compiled
def begin(net: Network) -> None:
    """Draw the first hidden units."""
    n, n_units = net.n_features, int(net.start)
    net.n_hidden = n_units
    plain, n_fields = n_plain(net), n * net.max_fields
    for unit in range(n_units):
        for j in range(n):
            if unit < plain:
                net.encoder[j, unit] = normal(net.random, WEIGHT_VARIANCE / (n + 1))
            else:
                for k in range(net.max_fields):
                    net.field_weights[j, k, unit] = normal(net.random, WEIGHT_VARIANCE / (n_fields + 1))
        join_averages(net, unit)


@compiled
def know(net: Network, work: Work, label: int) -> None:
    """Set the clean input and its class C; a new class adds an output and leaves the odds of the others unchanged."""
    r, x, clean = net.n_hidden, work.inputs[ACTUAL], work.clean
    while net.n_classes < max(label + 1, net.n_named):
        new = net.n_classes
        for i in range(r):
            net.output[new, i] = normal(net.random, 2.0 / (r + 1))
            net.output_slow[new, i] = net.output[new, i]
        net.n_classes = new + 1
    for o in range(net.n_classes):
        work.one_hot[o] = 1.0 if o == label else 0.0
        work.every_class[o] = 1.0
    for j in range(net.n_features):
        x[j] = clean[j]


@compiled
def visit(
    state: Floats,
    scratch: Floats,
    X: Floats,
    labels: Words,
    weights: Floats,
    order: Words,
    start: int,
    first: int,
    last: int,
) -> int:
    """Visit the samples ``order[start:]`` once, each in the phases ``first`` to ``last``; returns where it stopped.

    It stops at the end, or before the sample at which the state may need room for more hidden units. Labels are only
    read in the discriminative phase. The scaling learns only from new samples: those that are observed, and those that
    are taught when as many were taught as seen, so that they cannot have been observed. Learning a range twice does no
    harm, so ranges are always learned. ``weights`` are those of the samples in the loss; without any, all weigh 1.
    """
    net = Network(state)
    work = Work(scratch, net)
    if net.n_hidden == 0:
        if net.start > net.max_hidden:
            return start
        begin(net)
    judged = start > 0 or last != DISCRIMINATIVE or net.company == LAYERED
    judged = judged or (net.company == ALONE and net.averaging == 0.0 and net.neighbours == 0.0)
    for t in range(start, len(order)):
        if net.n_hidden + 2 > net.max_hidden:  # each phase may grow one
            return t
        n_present = find(X[order[t]], work.clean, work.present, net.n_features)
        new = first == GENERATIVE or net.n_learned[DISCRIMINATIVE] >= net.n_seen
        if new:
            net.n_seen += 1
        if new or net.scaling == MINMAX:
            learn_scaling(net, work)
        if new or net.scaling == MINMAX or t == start:
            measure(net, work)
        scale(net, work)
        weight = weight_of_sample(weights, order[t])
        for phase in range(first, last + 1):
            if phase == DISCRIMINATIVE and not judged:
                judge(net, work, X, labels, weights, order)
                judged = True
                find(X[order[t]], work.clean, work.present, net.n_features)
                scale(net, work)
            net.n_learned[phase] += 1
            if phase == GENERATIVE:
                aim(net, work)
                corrupt(net, work)
            else:
                know(net, work, labels[order[t]])
                if net.stays_within == 1.0:
                    widen(net, X[order[t]])
                if net.weighing != ALIKE:
                    count_label(net, labels[order[t]], weight)
                    weight *= weight_of_class(net, labels[order[t]])
            if phase == DISCRIMINATIVE and net.max_samples > 0:
                learn_again(net, work, X[order[t]], labels[order[t]], weight_of_sample(weights, order[t]), weight)
            elif net.max_samples == 0 and (phase == DISCRIMINATIVE or (net.generates == 1.0 and n_present > 0)):
                learn_sample(net, work, phase, weight)
            if phase == DISCRIMINATIVE and net.averaging > 0.0 and net.n_learned[DISCRIMINATIVE] % STRIDE == 0:
                follow(net)
    return len(order)


@entry
def learn(
    state: Floats,
    scratch: Floats,
    X: Floats,
    labels: Words,
    weights: Floats,
    order: Words,
    start: int,
    first: int,
    last: int,
) -> int:
    """:func:`visit`, for Python; what is compiled calls that, since a copy of an entry may round differently."""
    return visit(state, scratch, X, labels, weights, order, start, first, last)


@entry
def learn_each(state: Floats, scratch: Floats, X: Floats, labels: Words, weights: Floats, start: int, last: int) -> int:
    """:func:`learn` from the samples ``X[start:]`` one by one, in the phases up to ``last``; each is a chunk."""
    none, first = np.int64(0), np.int64(GENERATIVE)  # literals are compiled separately
    only = Work(scratch, Network(state)).only
    only[0] = 0
    for t in range(start, len(X)):
        x, label, weight = X[t : t + 1], labels[t : t + 1], weights[t : t + 1]
        if visit(state, scratch, x, label, weight, only, none, first, last) == 0:  # type: ignore[arg-type]
            return t
    return len(X)


@entry
def shuffle(random: Random, order: Words) -> None:
    """Shuffle the order in which a chunk is visited."""
    for i in range(len(order) - 1, 0, -1):
        j = int(uniform(random) * (i + 1))
        order[i], order[j] = order[j], order[i]


@entry
def assess(state: Floats, scratch: Floats, X: Floats, labels: Words, weights: Floats, order: Words) -> None:
    """:func:`judge` one of several layers; all are judged before the lowest learns, since the others build on it."""
    net = Network(state)
    work = Work(scratch, net)
    measure(net, work)
    judge(net, work, X, labels, weights, order)


@entry
def weigh(state: Floats) -> float:
    """The network's evidence; -inf before the first label."""
    net = Network(state)
    return evidence(net) if net.n_classes > 0 else -math.inf


@entry
def predict_proba(state: Floats, scratch: Floats, X: Floats, out: Floats, weight: float) -> None:
    """Add the class probabilities times a weight to ``out``, one row per sample."""
    net = Network(state)
    work = Work(scratch, net)
    n, m, prediction = net.n_features, min(net.n_classes, out.shape[1]), work.prediction[ACTUAL]
    if m == 0:
        return
    of_all = evidence(net)
    measure(net, work)
    for t in range(len(X)):
        find(X[t], work.clean, work.present, n)
        keep_within(net, work)
        scale(net, work)
        for opinion in range(3):
            part = share_of(net, opinion, of_all)
            if part > NEGLIGIBLE:
                opine(net, work, opinion, prediction, m)
                for o in range(m):
                    out[t, o] += weight * part * prediction[o]


@entry
def until_compared(state: Floats) -> int:
    """How many labels are to be learned before the next one with which a prediction is compared."""
    net = Network(state)
    if net.calibrates == 0.0:
        return NEVER
    n_taught: int = net.n_learned[DISCRIMINATIVE]
    return COMPARED_EVERY - 1 - n_taught % COMPARED_EVERY


@entry
def calibrate(state: Floats, predicted: Floats, labels: Words, weights: Floats) -> None:
    """Compare mixed predictions, made before these labels were learned, with the labels."""
    net = Network(state)
    for t in range(len(predicted)):
        weight = weight_of_sample(weights, t)
        if net.weighing != ALIKE:
            weight *= weight_of_class(net, labels[t])
        learn_sharpness(net, predicted[t], min(net.n_classes, predicted.shape[1]), labels[t], weight)


@entry
def temper(state: Floats, predicted: Floats) -> None:
    """Make mixed predictions as sure as such ones turned out right, if that is wanted; the first network knows how."""
    net = Network(state)
    if net.calibrates == 0.0 or net.calibration[LOG_SHARPNESS] == 0.0:
        return
    sharpness = math.exp(net.calibration[LOG_SHARPNESS])
    for t in range(len(predicted)):
        sharpen(predicted[t], min(net.n_classes, predicted.shape[1]), sharpness)


@entry
def transform(state: Floats, scratch: Floats, X: Floats, out: Floats) -> None:
    """The activations of the hidden units, one row of ``out`` per sample; at most as many as ``out`` has columns."""
    net = Network(state)
    work = Work(scratch, net)
    r = min(net.n_hidden, out.shape[1])
    measure(net, work)
    for t in range(len(X)):
        find(X[t], work.clean, work.present, net.n_features)
        keep_within(net, work)
        scale(net, work)
        activate(net, work, BY_WEIGHTS, out[t], r)


@entry
def reconstruct(state: Floats, scratch: Floats, X: Floats, out: Floats) -> None:
    """The reconstructions in the units of the stream, one row of ``out`` per sample."""
    net = Network(state)
    work = Work(scratch, net)
    n, r, hidden, target = net.n_features, net.n_hidden, work.hidden[ACTUAL], work.target
    measure(net, work)
    for t in range(len(X)):
        find(X[t], work.clean, work.present, n)
        scale(net, work)
        encode(work.clean, net.encoder, net.encoder_bias, hidden, n, r)
        project(hidden, net.encoder, net.decoder_bias, target, n, r)
        unscale(net, target, out[t])


# --- A fleet: a network for each key, stepped by the same machine code as a network by itself -------------------------

_FLOATS, _INTEGERS, _ROWS = types.float64[::1], types.int64[::1], types.float64[:, ::1]
_LEARN = types.int64(
    _FLOATS, _FLOATS, _ROWS, _INTEGERS, _FLOATS, _INTEGERS, types.int64, types.int64, types.int64
)  # the signatures that Python's calls have
_PREDICT = types.none(_FLOATS, _FLOATS, _ROWS, _ROWS, types.float64)
_CALIBRATE = types.none(_FLOATS, _ROWS, _INTEGERS, _FLOATS)
_TEMPER = types.none(_FLOATS, _ROWS)
_learn_at, _predict_at = by_address(learn, _LEARN), by_address(predict_proba, _PREDICT)
_calibrate_at, _temper_at = by_address(calibrate, _CALIBRATE), by_address(temper, _TEMPER)

STATE, N_WORDS, CODES, N_KNOWN, N_JUDGED, JUDGED, SEEN, CHANGED = range(8)  # words of a slot: a network, and its key
NAMING, LABELLING, SHUFFLING = range(3)  # stages of a key's rows; from SHUFFLING on there are two for each pass


def entries() -> Words:
    """The addresses of the entries that a fleet calls."""
    called = (learn, _LEARN), (predict_proba, _PREDICT), (calibrate, _CALIBRATE), (temper, _TEMPER)
    return np.array([address_of(function, signature) for function, signature in called])


@compiled
def output_of(place: Words, codes: Words, code: int) -> int:
    """Which output of a network is a class, by the fleet's code for it; a new one takes the next, if there is room.

    Returns -1 if there is none.
    """
    n_known = place[N_KNOWN]
    for o in range(n_known):
        if codes[o] == code:
            return o
    if n_known == len(codes):
        return -1
    codes[n_known] = code
    place[N_KNOWN] = n_known + 1
    return n_known  # type: ignore[no-any-return]


@compiled
def know_classes(
    net: Network, place: Words, codes: Words, stage: int, named: Words, labels: Words, own: Words, rows: Words
) -> int:
    """Find the outputs for the classes named in advance and for the labels of a key's rows; returns the next stage.

    That is the same stage where there is no room for a class.
    """
    if stage == NAMING:
        for k in range(len(named)):
            if output_of(place, codes, named[k]) < 0:
                return NAMING
        if len(named) > 0:
            net.n_named = place[N_KNOWN]
    for t in range(len(rows)):
        output = output_of(place, codes, labels[rows[t]])
        if output < 0:
            return LABELLING
        own[rows[t]] = output
    return SHUFFLING


@compiled
def best(probabilities: Floats, m: int) -> int:
    """The most probable output."""
    found = 0
    for o in range(1, m):
        if probabilities[o] > probabilities[found]:
            found = o
    return found


@compiled
def predict_key(at: Words, state: Floats, scratch: Floats, X: Floats, row: int, guess: Floats, n_classes: int) -> None:
    """The probabilities of a network's outputs for one row."""
    for o in range(n_classes):
        guess[0, o] = 0.0
    _predict_at(at[1], (state, scratch, X[row : row + 1], guess, 1.0))


@compiled
def calibrate_key(
    at: Words, state: Floats, scratch: Floats, X: Floats, labels: Words, weights: Floats, rows: Words, guess: Floats
) -> None:
    """Compare what a network predicts for some of the rows whose labels it is about to learn with these."""
    net = Network(state)
    if net.n_classes > 0:
        for t in range(until_compared(state), len(rows), COMPARED_EVERY):
            row = rows[t]
            predict_key(at, state, scratch, X, row, guess, net.n_classes)
            _calibrate_at(at[2], (state, guess, labels[row : row + 1], weights[row : row + 1]))


NETWORKS_AHEAD, SLOTS_AHEAD = 3, 8  # by how many turns they are fetched


@compiled
def look_ahead(table: Words, slots: Words, t: int) -> None:
    """Fetch a network whose turn is soon, with the codes behind its state, as most are in no cache then.

    Where it is, its slot says, which is fetched before.
    """
    n_words, far, near = table.shape[1], t + SLOTS_AHEAD, t + NETWORKS_AHEAD
    if far < len(slots) and slots[far] >= 0:
        fetch_ahead(table.ctypes.data + 8 * n_words * slots[far], n_words)
    if near < len(slots) and slots[near] >= 0:
        fetch_ahead(table[slots[near], STATE], table[slots[near], N_WORDS] + 8)


@entry
def learn_keys(
    at: Words,
    table: Words,
    slots: Words,
    cuts: Words,
    rows: Words,
    order: Words,
    stages: Words,
    done: Words,
    begin: int,
    end: int,
    scratch: Floats,
    guess: Floats,
    X: Floats,
    labels: Words,
    own: Words,
    weights: Floats,
    named: Words,
    class_weights: Floats,
    first: int,
    last: int,
    prior: int,
    judges: bool,
    shuffles: bool,
    interleaves: bool,
    now: int,
) -> int:
    """Let networks learn, each from its own rows, as :class:`devdan.DEVDAN` does; returns how many need more room.

    The k-th of them is in ``slots[k]``, its rows are ``rows[cuts[k] : cuts[k + 1]]``; those from ``begin`` to ``end``
    learn now. ``stages`` and ``done`` keep how far each has come. The ``prior``, in one of the slots or in none, knows
    the classes by the fleet's codes. ``now`` is what is noted as the time when keys were seen.
    """
    n_stopped = 0
    n_passes = 1 if interleaves else last - first + 1
    for k in range(begin, end):
        look_ahead(table, slots, k)
        place, mine, visited = table[slots[k]], rows[cuts[k] : cuts[k + 1]], order[cuts[k] : cuts[k + 1]]
        state = floats_at(place[STATE], place[N_WORDS])
        net = Network(state)
        place[SEEN], place[CHANGED] = now, 1
        outputs = labels if slots[k] == prior else own
        is_new = stages[k] < SHUFFLING and last == DISCRIMINATIVE
        if is_new and slots[k] != prior:
            codes = integers_at(place[CODES], net.max_classes)
            stages[k] = know_classes(net, place, codes, stages[k], named, labels, own, mine)
            if stages[k] < SHUFFLING:
                n_stopped += 1
                continue
            if net.weighing == GIVEN:
                for o in range(place[N_KNOWN]):
                    net.class_weight[o] = class_weights[codes[o]]
            if judges and net.n_classes > 0:
                for t in range(len(mine)):
                    predict_key(at, state, scratch, X, mine[t], guess, net.n_classes)
                    right = 1 if best(guess[0], net.n_classes) == own[mine[t]] else 0
                    place[JUDGED] = place[JUDGED] << 1 | right
                place[N_JUDGED] += len(mine)
        if is_new:
            calibrate_key(at, state, scratch, X, outputs, weights, mine, guess)
        stages[k] = max(stages[k], SHUFFLING)
        while stages[k] < SHUFFLING + 2 * n_passes:
            stage = stages[k] - SHUFFLING
            if stage % 2 == 0:
                for t in range(len(mine)):
                    visited[t] = mine[t]
                if shuffles and len(mine) > 1:
                    shuffle(net.random, visited)
                stages[k] += 1
                done[k] = 0
            from_phase = first + stage // 2
            to_phase = last if interleaves else from_phase
            done[k] = _learn_at(at[0], (state, scratch, X, outputs, weights, visited, done[k], from_phase, to_phase))
            if done[k] < len(mine):
                n_stopped += 1
                break
            stages[k] += 1
    return n_stopped


@entry
def predict_keys(
    at: Words, table: Words, slots: Words, scratch: Floats, guess: Floats, X: Floats, out: Floats, begin: int, end: int
) -> int:
    """Predict rows, each by the network in its slot, if it has one; returns how many no network has an answer for.

    A column of ``out`` is a class, by the fleet's code.
    """
    n_open = 0
    for t in range(begin, end):
        look_ahead(table, slots, t)
        n_classes = 0
        if slots[t] >= 0:
            place = table[slots[t]]
            state = floats_at(place[STATE], place[N_WORDS])
            net = Network(state)
            codes, n_classes = integers_at(place[CODES], net.max_classes), net.n_classes
            if n_classes > 0:
                predict_key(at, state, scratch, X, t, guess, n_classes)
                _temper_at(at[3], (state, guess))
                for o in range(n_classes):
                    out[t, codes[o]] = guess[0, o]
        if n_classes == 0:
            n_open += 1
    return n_open


@entry
def look_up(table: Words, slots: Words, words: Words, out: Words) -> None:
    """Some words of many states, by where they are in a state; a row of ``out`` for each network."""
    for k in range(len(slots)):
        state = integers_at(table[slots[k], STATE], table[slots[k], N_WORDS])
        for i in range(len(words)):
            out[k, i] = state[words[i]]
