"""How predictions are made: averages of the weights, predictors weighted by their recent loss, and calibration."""

from __future__ import annotations

import math

import numpy as np

from devdan.arrays import Floats, Words
from devdan.kernel.arithmetic import add_product, project, sigmoid, softmax
from devdan.kernel.inputs import LARGEST, WIDEST, add_fields, find, keep_within, n_plain, scale
from devdan.kernel.jit import compiled
from devdan.kernel.network import (
    ACTUAL,
    ALIKE,
    BY_AVERAGES,
    BY_MEMORY,
    BY_WEIGHTS,
    DISCRIMINATIVE,
    INFORMATION,
    LOG_SHARPNESS,
    STANDARD,
    Network,
    Work,
)
from devdan.kernel.paper import remove
from devdan.kernel.steps import weight_of_class, weight_of_sample

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
def leave_averages(net: Network, unit: int) -> None:
    """A unit that was pruned leaves the averages, too; those after it move up."""
    r = net.n_hidden + 1
    for j in range(net.n_features):
        remove(net.encoder_slow[j], unit, r)
    for o in range(net.n_classes):
        remove(net.output_slow[o], unit, r)
    remove(net.encoder_bias_slow, unit, r)


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


PRIOR = 0.5  # votes that all classes share
MOST_COMPARED = 100_000  # values of remembered samples: of many features, fewer samples are asked


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
