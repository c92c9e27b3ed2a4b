"""How predictions are made: averages of the weights, predictors weighted by their recent loss, and calibration.

A network has two predictors, its weights and their averages, and a model has several networks. All of them are mixed:
each predictor is weighted by exp(-η × its recent loss), which is the Bayesian posterior of the predictors if η is 1.
"""

from __future__ import annotations

import math

import numpy as np

from devdan.arrays import Floats, Integers
from devdan.kernel.arithmetic import add_product, sigmoid, softmax
from devdan.kernel.inputs import add_fields, look_at, prepare_scaling
from devdan.kernel.jit import compiled
from devdan.kernel.network import (
    ACTUAL,
    BY_AVERAGES,
    BY_WEIGHTS,
    DISCRIMINATIVE,
    INFORMATION,
    LOG_TEMPERATURE,
    Evolving,
    Network,
    Replaying,
    Work,
)
from devdan.kernel.paper import project, remove
from devdan.kernel.steps import Visits, weight_of_class, weight_of_sample

# --- Averages of the weights: better predictions while the stream is stable --------------------------------------

STRIDE = 4  # update the averages, and the losses, at every fourth sample only: saves time
AVERAGING_ETA = 9.0  # of polynomial-decay averaging (Shamir and Zhang 2013): about the latest tenth of the samples


@compiled
def average(slow: Floats, weights: Floats, length: int, share: float) -> None:
    for i in range(length):
        slow[i] += share * (weights[i] - slow[i])


@compiled
def share_of_latest(net: Network) -> float:
    """The share of the current weights in the averages: by polynomial decay at first, then by an exponential one."""
    age = net.n_learned[DISCRIMINATIVE] - net.averaged_since
    share = max(1.0 - net.averaging, (AVERAGING_ETA + 1.0) / (age + AVERAGING_ETA))
    return 1.0 - (1.0 - share) ** STRIDE  # type: ignore[no-any-return]


@compiled
def update_averages(net: Network, share: float) -> None:
    """Update the averages with the current weights, except those of fields."""
    r, plain = net.n_hidden, net.n_hidden - net.n_field_units
    for j in range(net.n_features):
        average(net.encoder_slow[j], net.encoder[j], plain, share)
    average(net.encoder_bias_slow, net.encoder_bias, r, share)
    for o in range(net.n_classes):
        average(net.output_slow[o], net.output[o], r, share)
    average(net.output_bias_slow, net.output_bias, net.n_classes, share)


@compiled
def join_averages(net: Evolving, unit: int) -> None:
    """A new unit enters the averages with its own weights."""
    for j in range(net.n_features):
        net.encoder_slow[j, unit] = net.encoder[j, unit]
    net.encoder_bias_slow[unit] = net.encoder_bias[unit]
    for o in range(net.n_classes):
        net.output_slow[o, unit] = net.output[o, unit]


@compiled
def leave_averages(net: Evolving, unit: int) -> None:
    """A unit that was pruned leaves the averages, too; those after it move up."""
    r = net.n_hidden + 1
    for j in range(net.n_features):
        remove(net.encoder_slow[j], unit, r)
    for o in range(net.n_classes):
        remove(net.output_slow[o], unit, r)
    remove(net.encoder_bias_slow, unit, r)


# --- Predictors, and their recent losses -------------------------------------------------------------------------

LOSS_MEMORY = 0.992  # of the losses, per sample that counts: over some 500 samples
ETA = 0.4  # of a loss, for STRIDE samples together: less than 1 each, since neighbouring samples are similar
DOUBT = 0.01  # averages weighted less than this belong to a past concept
NEGLIGIBLE = 1e-12  # smaller weights in a prediction are skipped
LEAST_PROBABILITY = 1e-4  # lower bound for probabilities in a loss


@compiled
def activate(net: Network, work: Work, predictor: int, y: Floats, r: int) -> None:
    """The hidden units, by the weights or by their averages."""
    n, plain = net.n_features, min(net.n_hidden - net.n_field_units, r)
    W, b = net.encoder, net.encoder_bias
    if predictor == BY_AVERAGES:
        W, b = net.encoder_slow, net.encoder_bias_slow
    for i in range(r):
        y[i] = b[i]
    add_product(work.clean, W, y, n, plain)
    if plain < r:
        own = Replaying(net)
        weights = own.field_weights_slow if predictor == BY_AVERAGES else own.field_weights
        add_fields(weights, work, y[plain:], n, r - plain)
    sigmoid(y, r)


@compiled
def predict(net: Network, work: Work, predictor: int, out: Floats, m: int) -> None:
    """Ĉ, by the weights or by their averages."""
    r, y = net.n_hidden, work.hidden[ACTUAL]
    activate(net, work, predictor, y, r)
    output, output_bias = net.output, net.output_bias
    if predictor == BY_AVERAGES:
        output, output_bias = net.output_slow, net.output_bias_slow
    project(y, output, output_bias, out, m, r)
    softmax(out, m, net.max_classes)


def predictor_weight(net: Network, predictor: int) -> float:
    """The weight of a predictor in the network's prediction; without averages, the weights have all of it."""
    if net.averaging == 0.0:
        return 1.0 if predictor == BY_WEIGHTS else 0.0
    behind = ETA * (net.losses[predictor] - net.losses[1 - predictor])
    ratio = math.exp(-abs(behind))  # of the smaller weight to the larger one
    return (ratio if behind > 0.0 else 1.0) / (1.0 + ratio)


weight_of = compiled(predictor_weight)


@compiled
def evidence(net: Network) -> float:
    """log Σ exp(-η × loss) over the network's predictors: by this, networks are mixed as predictors are."""
    if net.averaging == 0.0:
        return -ETA * net.losses[BY_WEIGHTS]  # type: ignore[no-any-return]
    behind = ETA * abs(net.losses[BY_AVERAGES] - net.losses[BY_WEIGHTS])
    found: float = math.log(1.0 + math.exp(-behind)) - ETA * min(net.losses[BY_WEIGHTS], net.losses[BY_AVERAGES])
    return found


@compiled
def is_compared(net: Network) -> bool:
    """Whether there are several predictors, so that their losses matter."""
    return net.mixed == 1.0 or net.averaging > 0.0


@compiled
def update_losses(net: Network, work: Work, visits: Visits, begin: int) -> None:
    """Compare the predictors on the labelled samples of the chunk that begins, before any of these is learned from.

    The losses are weighted as they are in learning. All of a chunk are predicted by the same weights and tell much the
    same, so that n of them count as the square root of n. If the averages lag behind a drift they restart, so that
    their horizon is never longer than the concept.
    """
    m, out, losses = net.n_classes, work.prediction[ACTUAL], net.losses
    if m == 0:
        return
    order = visits.order[begin : begin + visits.chunk]
    first = STRIDE - 1 - net.n_learned[DISCRIMINATIVE] % STRIDE
    together = 1.0 / math.sqrt(max(1.0, math.ceil((len(order) - first) / STRIDE)))
    for t in range(first, len(order), STRIDE):
        label = visits.labels[order[t]]
        weight = together * weight_of_sample(visits.weights, order[t]) * weight_of_class(net, label)
        look_at(net, work, visits.X[order[t]])
        for predictor in range(2):
            if predictor == BY_WEIGHTS or net.averaging > 0.0:
                predict(net, work, predictor, out, m)
                seen = out[label] if label < m else 0.0
                losses[predictor] = LOSS_MEMORY * losses[predictor] - weight * math.log(max(seen, LEAST_PROBABILITY))
    if net.averaging > 0.0 and weight_of(net, BY_AVERAGES) < DOUBT:
        net.averaged_since = net.n_learned[DISCRIMINATIVE]
        losses[BY_AVERAGES] = losses[BY_WEIGHTS]


@compiled
def add_predictions(net: Network, work: Work, X: Floats, out: Floats, weight: float) -> None:
    """Add the class probabilities times a weight to ``out``, one row per sample."""
    m, prediction = min(net.n_classes, out.shape[1]), work.prediction[ACTUAL]
    if m == 0:
        return
    prepare_scaling(net, work)
    for t in range(len(X)):
        look_at(net, work, X[t])
        for predictor in range(2):
            part = weight_of(net, predictor)
            if part > NEGLIGIBLE:
                predict(net, work, predictor, prediction, m)
                for o in range(m):
                    out[t, o] += weight * part * prediction[o]


# --- Calibration: online temperature scaling of the mixed probabilities ------------------------------------------

NEVER = np.iinfo(np.int64).max
COMPARED_EVERY = 16  # labels: one number is learned, so that few are enough
CALIBRATION_MEMORY = 0.998  # of what is known of the temperature, per label that is compared
CALIBRATION_PRIOR = 5.0  # how much is known in advance: that the temperature is 1
LARGEST_LOG_TEMPERATURE = 1.5  # from about a fifth to about five


@compiled
def soften(p: Floats, m: int, temperature: float) -> None:
    """Raise probabilities to the power of 1 / temperature, so that the likeliest remains so."""
    largest, total = 0.0, 0.0
    for o in range(m):
        largest = max(largest, p[o])
    for o in range(m):
        p[o] = math.exp(math.log(p[o] / largest) / temperature) if p[o] > 0.0 else 0.0
        total += p[o]
    for o in range(m):
        p[o] /= max(total, NEGLIGIBLE)


@compiled
def step_temperature(net: Network, p: Floats, m: int, label: int, weight: float) -> None:
    """One Newton step on the log loss of a mixed prediction, by all that is known of its curvature.

    The temperature is learned by its logarithm; a label that was impossible says nothing of it.
    """
    calibration = net.calibration
    temperature, total, mean, square = math.exp(calibration[LOG_TEMPERATURE]), 0.0, 0.0, 0.0
    if label >= m or p[label] <= 0.0:
        return
    told = math.log(max(p[label], LEAST_PROBABILITY))
    for o in range(m):
        if p[o] > 0.0:
            score = (math.log(max(p[o], LEAST_PROBABILITY)) - told) / temperature
            odds = math.exp(score)
            total += odds
            mean += odds * score
            square += odds * score * score
    mean /= total  # minus the slope of the loss
    curvature = square / total - mean * mean
    calibration[INFORMATION] = CALIBRATION_MEMORY * calibration[INFORMATION] + weight * max(curvature, 0.0)
    step = weight * mean / (calibration[INFORMATION] + CALIBRATION_PRIOR)
    largest = LARGEST_LOG_TEMPERATURE
    calibration[LOG_TEMPERATURE] = min(max(calibration[LOG_TEMPERATURE] + step, -largest), largest)


@compiled
def labels_until_compared(net: Network) -> int:
    """How many labels are to be learned before the next one with which a prediction is compared."""
    if net.calibrates == 0.0:
        return NEVER
    n_taught: int = net.n_learned[DISCRIMINATIVE]
    return COMPARED_EVERY - 1 - n_taught % COMPARED_EVERY


@compiled
def learn_temperature(net: Network, predicted: Floats, labels: Integers, weights: Floats) -> None:
    """Learn the temperature from mixed predictions, made before these labels were learned."""
    m = min(net.n_classes, predicted.shape[1])
    for t in range(len(predicted)):
        weight = weight_of_sample(weights, t) * weight_of_class(net, labels[t])
        step_temperature(net, predicted[t], m, labels[t], weight)


@compiled
def apply_temperature(net: Network, predicted: Floats) -> None:
    """Apply the temperature to mixed predictions, if that is wanted."""
    if net.calibrates == 0.0 or net.calibration[LOG_TEMPERATURE] == 0.0:
        return
    temperature, m = math.exp(net.calibration[LOG_TEMPERATURE]), min(net.n_classes, predicted.shape[1])
    for t in range(len(predicted)):
        soften(predicted[t], m, temperature)
