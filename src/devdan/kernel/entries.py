"""What Python calls: learning from samples, predicting, calibrating, and looking into a network.

Nothing here handles ``None``, text or options, and nothing allocates memory: the caller provides the scratch space.
"""

from __future__ import annotations

import math

import numpy as np

from devdan.arrays import Floats, Words
from devdan.kernel.arithmetic import encode, normal, project, uniform
from devdan.kernel.drift import record, watch_drift
from devdan.kernel.inputs import (
    aim,
    find,
    keep_within,
    learn_scaling,
    measure,
    n_plain,
    scale,
    unscale,
    widen,
)
from devdan.kernel.jit import compiled, entry
from devdan.kernel.mixing import (
    COMPARED_EVERY,
    NEGLIGIBLE,
    NEVER,
    STRIDE,
    activate,
    evidence,
    follow,
    join_averages,
    judge,
    learn_sharpness,
    leave_averages,
    opine,
    share_of,
    sharpen,
)
from devdan.kernel.network import (
    ACTUAL,
    ALIKE,
    ALONE,
    BY_WEIGHTS,
    DISCRIMINATIVE,
    GENERATIVE,
    GROWTH,
    LAYERED,
    LOG_SHARPNESS,
    MINMAX,
    UNCHANGED,
    Network,
    Random,
    Work,
)
from devdan.kernel.paper import WEIGHT_VARIANCE, corrupt, evolve, expect_input, forward, step_generative
from devdan.kernel.replay import learn_again
from devdan.kernel.steps import count_label, know, step_labelled, weight_of_class, weight_of_sample

# --- Learning ----------------------------------------------------------------------------------------------------


@compiled
def learn_sample(net: Network, work: Work, phase: int, weight: float) -> None:
    """One sample in one phase: grow or prune by the network's significance, then one SGD step.

    Beyond the paper, drifts and events are recorded, the averages of the weights follow, and the loss may have a weight
    and the step an adaptive rate.
    """
    expect_input(net, work, phase)
    forward(net, work, phase)
    watch_drift(net, work, phase)
    change = evolve(net, work, phase)
    if change.kind != UNCHANGED:
        record(net, phase, change.unit, change.kind, change.value, change.bound)
        if change.kind == GROWTH:
            join_averages(net, change.unit)
        else:
            leave_averages(net, change.unit)
        forward(net, work, phase)
    if phase == GENERATIVE:
        step_generative(net, work, weight)
    else:
        step_labelled(net, work, weight)


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
