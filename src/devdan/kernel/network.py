"""What a network is: the fields of its state; and the scratch space that one sample needs.

A network is one flat array of 64-bit words, its *state*: sizes and counters, settings, running statistics, weights. The
state is the whole network, so it can be copied, saved and sent as bytes. :class:`Network` lists the fields and gives
them their names, in Python and in compiled code; :class:`Work` does so for the scratch space.

In every array of weights the last axis is the hidden unit: ``encoder`` is the paper's W (n x R), ``output`` is the
transpose of its Φ (m x R). The arrays have room for more features, units and classes than are in use; where a unit
might find none, ``learn`` returns early and is called again with a larger state.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from devdan.arrays import Floats, Words
from devdan.kernel.memory import Block, E, F, K, M, N, R, integer, integers, number, numbers, one_row, randomness

Random = npt.NDArray[np.uint64]

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
UNCHANGED = -1  # no event
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
