"""The paper, from top to bottom: denoising autoencoder, significance, growing and pruning, SGD in both phases.

docs/algorithm.md maps the paper's equations to these functions. Nothing here goes beyond the paper: what does is in the
other chapters, and :func:`devdan.kernel.evolving.learn_sample` puts both together.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from devdan.arrays import Floats
from devdan.kernel.arithmetic import add_product, normal, sigmoid, softmax, step_count, step_mean, uniform
from devdan.kernel.jit import compiled
from devdan.kernel.network import (
    ACTUAL,
    BIAS2,
    COUNT,
    DISCRIMINATIVE,
    EXPECTED,
    EXPECTED2,
    GENERATIVE,
    GROWTH,
    MEAN,
    MIN_MEAN,
    MIN_STD,
    PRUNING,
    RESTART,
    SQUARE,
    UNCHANGED,
    VARIANCE,
    Evolving,
    Network,
    Work,
)

# --- Denoising autoencoder ---------------------------------------------------------------------------------------


@compiled
def corrupt(net: Evolving, work: Work) -> None:
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
def expect_input(net: Evolving, work: Work, phase: int) -> None:
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
def forward(net: Evolving, work: Work, phase: int) -> None:
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

    The minima start with the ``first`` value that has statistics behind it, and restart where RESTART says so.
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
def grow(net: Evolving, work: Work, phase: int, z: Floats, x: Floats, weight: Floats, length: int) -> None:
    """Add a hidden unit with b from [-1, 1], whose weights towards the phase's output are -e.

    Of the others, those of the encoder are random, and those towards the classes zero. With the adaptive scope of
    stochastic configuration networks, the range of W and b doubles until the squared error of the sample falls by the
    share they require.
    """
    n, unit, m = net.n_features, net.n_hidden, net.n_classes
    asked = squared_error(z, x, weight, length) * (TOLERANCE + (1.0 - TOLERANCE) / (unit + 2))
    net.n_hidden = unit + 1
    if phase == GENERATIVE:
        for j in range(n):
            net.encoder[j, unit] = -weight[j] * (z[ACTUAL, j] - x[j])
    else:  # in the other phase they stay zero, as is all beyond the units in use
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


@compiled
def prune(net: Evolving, work: Work) -> int:
    """Remove the hidden unit with the lowest significance HS = E[y]; those after it move up. Returns which it was."""
    r, significance = net.n_hidden, work.hidden[EXPECTED]
    unit = r - 1
    for i in range(r - 2, -1, -1):
        if significance[i] <= significance[unit]:
            unit = i
    for j in range(net.n_features):
        remove(net.encoder[j], unit, r)
        remove(net.encoder_moment[j], unit, r)
    for o in range(net.n_classes):
        remove(net.output[o], unit, r)
        remove(net.output_moment[o], unit, r)
    remove(net.encoder_bias, unit, r)
    remove(net.encoder_bias_moment, unit, r)
    net.n_hidden = r - 1
    return unit


@compiled
def remove(weights: Floats, unit: int, length: int) -> None:
    for i in range(unit, length - 1):
        weights[i] = weights[i + 1]
    weights[length - 1] = 0.0


class Change(NamedTuple):
    """A change of the structure: a unit was added or removed, since a mean + deviation came to a bound."""

    kind: int  # UNCHANGED, GROWTH or PRUNING
    unit: int
    value: float
    bound: float


@compiled
def evolve(net: Evolving, work: Work, phase: int) -> Change:
    """Grow if bias² is high, otherwise prune if the variance is."""
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
    if grows or prunes:  # the network changes, so both minima restart
        monitors[BIAS2, RESTART] = 1.0
    if grows or too_many:
        monitors[VARIANCE, RESTART] = 1.0
    if grows:
        grow(net, work, phase, z, x, weight, length)
        return Change(GROWTH, net.n_hidden - 1, level(monitors[BIAS2]), most)
    if prunes:
        return Change(PRUNING, prune(net, work), level(monitors[VARIANCE]), most_varied)
    return Change(UNCHANGED, 0, 0.0, 0.0)


# --- SGD in both phases ------------------------------------------------------------------------------------------


@compiled
def step_generative(net: Evolving, work: Work, rate: float) -> None:
    """SGD on the cross-entropy L(x, z) over W, which encodes and decodes, b and c."""
    n, r = net.n_features, net.n_hidden
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
def step_classifier(net: Network, work: Work, rate: float) -> None:
    """Momentum steps over Φ, η and b; ``work.delta`` is then the gradient before the encoder's sigmoid."""
    r, m, momentum = net.n_hidden, net.n_classes, net.momentum
    y, delta, error = work.hidden[ACTUAL], work.delta, work.prediction[ACTUAL]
    for o in range(m):
        error[o] = rate * (error[o] - work.one_hot[o])
    backpropagate(error, net.output, y, delta, m, r)
    for o in range(m):
        accelerate(net.output[o], net.output_moment[o], error[o], y, r, momentum)
    accelerate(net.output_bias, net.output_bias_moment, 1.0, error, m, momentum)
    accelerate(net.encoder_bias, net.encoder_bias_moment, 1.0, delta, r, momentum)


@compiled
def step_discriminative(net: Evolving, work: Work, rate: float) -> None:
    """SGD with momentum on the cross-entropy L(C, Ĉ) over Φ, η, b and W."""
    step_classifier(net, work, rate)
    for j in range(net.n_features):
        x_j = work.inputs[ACTUAL, j]
        accelerate(net.encoder[j], net.encoder_moment[j], x_j, work.delta, net.n_hidden, net.momentum)
