"""Beyond plain SGD: a rate that adapts to each unit, and the weights of samples and classes in the loss."""

from __future__ import annotations

import math
from typing import NamedTuple

from devdan.arrays import Floats, Integers
from devdan.kernel.inputs import widen
from devdan.kernel.jit import compiled
from devdan.kernel.network import ACTUAL, ALIKE, DISCRIMINATIVE, GIVEN, Network, Work
from devdan.kernel.paper import backpropagate

# --- Weights of samples and classes: what their losses are multiplied by -----------------------------------------

CLASS_HORIZON = 10_000.0  # samples over which labels are counted
HEAVIEST = 100.0  # balanced class: of two, one that has 1 in 200 labels; a rarer one would be learned from too few
LEAST_WEIGHT = 1e-300  # of all labels, below which shares of it are not computed: its inverse may be infinite
LONGEST = 3.0  # what a class weighs at most in the step on a new sample


class Visits(NamedTuple):
    """What is learned from, in the order in which it is visited; predictors are compared once in each chunk."""

    X: Floats
    labels: Integers
    weights: Floats  # none if all weigh 1
    order: Integers
    chunk: int


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
    if net.weighing == ALIKE:
        return 1.0
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


# --- A label -----------------------------------------------------------------------------------------------------


@compiled
def target(net: Network, work: Work, label: int) -> None:
    """Set the input and its class C; a new class adds an output and leaves the odds of the others unchanged."""
    x, clean = work.inputs[ACTUAL], work.clean
    net.n_classes = max(net.n_classes, label + 1, net.n_named)
    for o in range(net.n_classes):
        work.one_hot[o] = 1.0 if o == label else 0.0
        work.every_class[o] = 1.0
    for j in range(net.n_features):
        x[j] = clean[j]


@compiled
def meet_label(net: Network, work: Work, row: Floats, label: int, weight: float) -> float:
    """Take in the label of a sample that was seen; returns the weight of its step, with that of its class.

    That is bounded: steps as long as 20 samples at once would make the network lose the common class for a while.
    """
    net.n_learned[DISCRIMINATIVE] += 1
    target(net, work, label)
    if net.clips == 1.0:
        widen(net, row)
    count_label(net, label, weight)
    return weight * min(weight_of_class(net, label), LONGEST)


@compiled
def discriminative_rate(net: Network) -> float:
    """η / sqrt(1 + t / annealing) for the t-th label: the usual 1/√t, or η if it stays."""
    if net.annealing == 0.0:
        return net.discriminative_rate
    return net.discriminative_rate / math.sqrt(1.0 + net.n_learned[DISCRIMINATIVE] / net.annealing)


# --- A rate that adapts to each unit -----------------------------------------------------------------------------

GRADIENT_HORIZON = 300.0  # horizon of the mean square of a gradient, in samples
DAMPING = 0.03  # so that small gradients make small steps
SMOOTHING = 0.05  # share of a label spread evenly over all classes, so that no output weight grows without bound
DECAY = 0.005  # of the output weights, times the rate: to the same end
EVEN = 0.64  # how likely two labels differ, relative to classes all alike, if of two one has a fifth of the labels
LEAST_RATE = 0.25  # share of the rate that remains where a class is rarer than that


@compiled
def adapt(gradient: Floats, moment: Floats, length: int, rate: float, share: float) -> None:
    """Turn gradients into steps: each times the rate, divided by its root mean square."""
    for i in range(length):
        moment[i] += share * (gradient[i] * gradient[i] - moment[i])
        gradient[i] *= rate / (math.sqrt(moment[i]) + DAMPING)


@compiled
def evenness(net: Network) -> float:
    """By which the rate falls where most labels are of the same class; 1 where none is rare.

    It is how likely two labels are to differ, relative to two classes of which one has a fifth of the labels. Errors
    are small while the common class comes, so that a label of a rare one, divided by their mean square, would make the
    longest steps.
    """
    total, n_counted = 0.0, 0.0
    for o in range(net.n_classes):
        total += net.class_count[o]
        n_counted += 1.0 if net.class_count[o] > 0.0 else 0.0
    if n_counted < 2.0 or total < LEAST_WEIGHT:
        return 1.0
    alike = 0.0
    for o in range(net.n_classes):
        alike += (net.class_count[o] / total) ** 2
    differ = (1.0 - alike) / (1.0 - 1.0 / n_counted)
    return min(max(differ / EVEN, LEAST_RATE), 1.0)


@compiled
def step_adaptive(net: Network, work: Work, weight: float, rate: float) -> None:
    """One step on the cross-entropy L(C, Ĉ), times a weight, at a rate that adapts to each unit.

    It is over Φ, η, b, and the encoder of the units that see no fields. C is smoothed, and Φ decays.
    """
    n, r, m = net.n_features, net.n_hidden, net.n_classes
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
    for j in range(n):
        x_j = x[j]
        for i in range(r - net.n_field_units):
            W[j, i] -= x_j * delta[i]
