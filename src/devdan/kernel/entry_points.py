"""What Python calls: learning from samples, predicting, calibrating, and looking into a network.

Nothing here handles ``None``, text or options, and nothing allocates memory: the caller provides the scratch space.
"""

from __future__ import annotations

import math

from devdan.arrays import Floats, Integers
from devdan.kernel.arithmetic import shuffle_order
from devdan.kernel.evolving import learn_evolving
from devdan.kernel.inputs import find, look_at, prepare_scaling, see, unscale
from devdan.kernel.jit import entry
from devdan.kernel.mixing import (
    activate,
    add_predictions,
    apply_temperature,
    evidence,
    labels_until_compared,
    learn_temperature,
)
from devdan.kernel.network import ACTUAL, BY_WEIGHTS, REPLAYING, Evolving, Network, Random, Work
from devdan.kernel.paper import encode, project
from devdan.kernel.replaying import learn_replaying
from devdan.kernel.steps import Visits


@entry
def learn(
    state: Floats,
    scratch: Floats,
    X: Floats,
    labels: Integers,
    weights: Floats,
    order: Integers,
    chunk: int,
    start: int,
    first: int,
    last: int,
) -> int:
    """Visit the samples ``order[start:]`` once, each in the phases ``first`` to ``last``; returns where it stopped.

    It stops at the end, or before the sample at which the state may need room for more hidden units. Labels are only
    read in the discriminative phase. There, predictors are compared before the first of each ``chunk`` of samples is
    learned. ``weights`` are those of the samples in the loss; without any, all weigh 1.
    """
    visits = Visits(X, labels, weights, order, chunk)
    if Network(state).kind == REPLAYING:
        return learn_replaying(state, scratch, visits, start, first, last)
    return learn_evolving(state, scratch, visits, start, first, last)


@entry
def shuffle(random: Random, order: Integers) -> None:
    """Shuffle the order in which a chunk is visited."""
    shuffle_order(random, order)


@entry
def weigh(state: Floats) -> float:
    """The network's evidence; -inf before the first label."""
    net = Network(state)
    return evidence(net) if net.n_classes > 0 else -math.inf


@entry
def predict_proba(state: Floats, scratch: Floats, X: Floats, out: Floats, weight: float) -> None:
    """Add the class probabilities times a weight to ``out``, one row per sample."""
    net = Network(state)
    add_predictions(net, Work(scratch, net), X, out, weight)


@entry
def until_compared(state: Floats) -> int:
    """How many labels are to be learned before the next one with which a prediction is compared."""
    return labels_until_compared(Network(state))


@entry
def calibrate(state: Floats, predicted: Floats, labels: Integers, weights: Floats) -> None:
    """Learn the temperature from mixed predictions, made before these labels were learned."""
    learn_temperature(Network(state), predicted, labels, weights)


@entry
def temper(state: Floats, predicted: Floats) -> None:
    """Apply the temperature, which is stored in the first network, to mixed predictions, if that is wanted."""
    apply_temperature(Network(state), predicted)


@entry
def transform(state: Floats, scratch: Floats, X: Floats, out: Floats) -> None:
    """The activations of the hidden units, one row of ``out`` per sample; at most as many as ``out`` has columns."""
    net = Network(state)
    work = Work(scratch, net)
    r = min(net.n_hidden, out.shape[1])
    prepare_scaling(net, work)
    for t in range(len(X)):
        look_at(net, work, X[t])
        activate(net, work, BY_WEIGHTS, out[t], r)


@entry
def reconstruct(state: Floats, scratch: Floats, X: Floats, out: Floats) -> None:
    """The reconstructions of an evolving network on the scale of the stream, one row of ``out`` per sample."""
    net = Evolving(state)
    work = Work(scratch, net)
    n, r, hidden, a = net.n_features, net.n_hidden, work.hidden[ACTUAL], work.target
    prepare_scaling(Network(net), work)
    for t in range(len(X)):
        find(X[t], work.clean, work.present, n)
        see(Network(net), work)
        encode(work.clean, net.encoder, net.encoder_bias, hidden, n, r)
        project(hidden, net.encoder, net.decoder_bias, a, n, r)
        unscale(net, a, out[t])
