"""What a network is: the fields of its state; and the scratch space that one sample needs.

A network is one flat array of 64-bit words, its *state*: sizes and counters, settings, running statistics, weights. The
state is the whole network, so it can be copied, saved and sent as bytes. The blocks here list its fields and give them
their names, in Python and in compiled code. There are two kinds:

- :class:`Evolving` is the paper's network: it learns from each sample once, and grows and prunes;
- :class:`Replaying` has as many units from the start as ever, half of which see fields, and with each label it takes
  more steps on samples from a buffer of the latest ones.

:class:`Network` has what both have; what does not depend on the kind is written for it alone. A model mixes networks of
several kinds and settings.

In every array of weights the last axis is the hidden unit: ``encoder`` is the paper's W (n x R), ``output`` is the
transpose of its Φ (m x R). The arrays have room for more features, units and classes than are in use; where a unit
might find none, learning stops, and continues with a larger state.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from devdan.arrays import Floats, Integers
from devdan.kernel.memory import Block, E, F, K, M, N, R, U, integer, integers, number, numbers, one_row, randomness

Random = npt.NDArray[np.uint64]

EVOLVING, REPLAYING = range(2)  # kinds of networks
GENERATIVE, DISCRIMINATIVE = range(2)  # phases
UNSCALED, MINMAX, STANDARD = 0.0, 1.0, 2.0  # scalings
ALIKE, BALANCED, GIVEN = 0.0, 1.0, 2.0  # what classes weigh
BY_WEIGHTS, BY_AVERAGES = range(2)  # predictors of a network: its weights, and their averages
LOG_TEMPERATURE, INFORMATION = range(2)  # words of the calibration

BIAS2, VARIANCE = range(2)  # what a phase's monitors watch
COUNT, MEAN, SQUARE, MIN_MEAN, MIN_STD, RESTART = range(6)  # words of a monitor
LATE_MEAN = EXCESS = 3  # after COUNT, MEAN and SQUARE: the fourth word of a monitor of the surprise, or of a class's

EVENT_SAMPLE, EVENT_PHASE, EVENT_UNIT, EVENT_KIND, EVENT_SIZE = range(5)  # words of an event
NO_CLASS = -1  # in place of the unit, where a drift is none of a class
VALUE, BOUND = range(2)  # words of its cause
PRUNING, GROWTH, DRIFT = range(3)  # kinds of events
UNCHANGED = -1  # no event


class Network(Block):
    """What networks of both kinds have. In Python, ``Network(state)`` is an :class:`Evolving` or a :class:`Replaying`.

    Settings are floats; a switch is 0 or 1.
    """

    kind: int = integer()
    max_features: int = integer()  # room
    max_hidden: int = integer()
    max_classes: int = integer()
    max_events: int = integer()  # of an evolving network
    max_samples: int = integer()  # of a replaying one: in its buffer
    n_fields: int = integer()  # through which half of its units see each feature, if any do
    n_field_units: int = integer()  # how many units that are; they come after the others
    n_features: int = integer()  # in use
    n_hidden: int = integer()
    n_classes: int = integer()
    n_named: int = integer()  # classes named in advance
    n_seen: int = integer()  # samples in all
    n_learned: Integers = integers(2)  # samples that each phase has learned from: observed, taught
    averaged_since: int = integer()  # samples taught when the averages of the weights began
    random: Random = randomness()

    start: float = number()  # setting: hidden units to start from
    scaling: float = number()  # setting: UNSCALED, MINMAX or STANDARD
    scaling_horizon: float = number()  # setting: samples over which means, deviations and ranges are taken
    clips: float = number()  # setting: whether inputs are clipped to their recent range
    adaptive_rate: float = number()  # setting: whether the rate adapts to each unit; otherwise there is momentum
    discriminative_rate: float = number()  # setting
    annealing: float = number()  # setting: labels over which that rate falls; 0 if it stays
    momentum: float = number()  # setting
    averaging: float = number()  # setting: decay of the averages of the weights
    weighing: float = number()  # setting: of classes: ALIKE, BALANCED or GIVEN
    mixed: float = number()  # setting: whether it is one of several networks
    calibrates: float = number()  # setting: whether probabilities are calibrated

    losses: Floats = numbers(2)  # of the predictors BY_WEIGHTS and BY_AVERAGES, on labels not learned yet
    calibration: Floats = numbers(2)  # of the mixture of all networks, in the first of them

    encoder: Floats = numbers(N, R, aligned=True)  # W
    encoder_moment: Floats = numbers(N, R)  # with momentum: the sum of the steps
    encoder_slow: Floats = numbers(N, R)  # exponential average
    encoder_bias: Floats = numbers(R)  # b
    encoder_bias_moment: Floats = numbers(R)  # with momentum: the sum of the steps; else the gradients' mean square
    encoder_bias_slow: Floats = numbers(R)
    output: Floats = numbers(M, R)  # Φ'
    output_moment: Floats = numbers(M, R)
    output_slow: Floats = numbers(M, R)
    output_bias: Floats = numbers(M)  # η
    output_bias_moment: Floats = numbers(M)
    output_bias_slow: Floats = numbers(M)

    scale_count: Floats = numbers(N)  # of the values that STANDARD has learned from
    mean: Floats = numbers(N)
    square: Floats = numbers(N)  # mean squared deviation
    low: Floats = numbers(N, empty=math.inf)  # the range that MINMAX has learned
    high: Floats = numbers(N, empty=-math.inf)
    n_ranged: Integers = integers(2)  # samples taught in the latest range that clips inputs, and the one before
    lowest: Floats = numbers(2, N, empty=math.inf)  # those ranges
    highest: Floats = numbers(2, N, empty=-math.inf)
    class_count: Floats = numbers(M)  # labels taught, over a horizon
    class_weight: Floats = numbers(M)  # if they are GIVEN

    def __new__(cls, words: Any = None, *sized_as: Any) -> Any:
        if cls is Network:
            words = words.words if isinstance(words, Block) else words
            return object.__new__(KINDS[words.view(np.int64).item(0)])
        return object.__new__(cls)


class Evolving(Network):
    """The paper's network, which grows and prunes. What it has of its own is mostly of each phase."""

    masking: float = number()  # setting: share of the features that are masked
    generates: float = number()  # setting: whether there is a generative phase
    generative_rate: float = number()  # setting
    grows: float = number()  # setting
    prunes: float = number()  # setting
    adaptive_scope: float = number()  # setting: whether the range of a new unit's weights widens until it helps
    monitors: Floats = numbers(2, 2, 6)  # of each phase: BIAS2 and VARIANCE
    surprises: Floats = numbers(2, 4)  # of each phase: monitors of the surprise
    class_surprises: Floats = numbers(M, 4)  # of each class: monitors of the surprise, used where it is rare
    n_changes: Integers = integers(2, 2)  # of each phase: prunings and growths
    n_drifts: Integers = integers(2)  # of each phase: drifts signalled
    n_events: int = integer()  # ever
    events: Integers = integers(E, 5)  # a ring buffer: the newest overwrites the oldest
    causes: Floats = numbers(E, 2)  # of the events: what was observed, and the bound that it reached
    decoder_bias: Floats = numbers(N)  # c
    input_count: Floats = numbers(2, N)  # of each phase: statistics of the input, corrupted in the generative one
    input_mean: Floats = numbers(2, N)
    input_square: Floats = numbers(2, N)


class Replaying(Network):
    """A network of a fixed size that replays labelled samples."""

    replays: float = number()  # setting: samples replayed for each that is taught
    surprise: Floats = numbers(4)  # monitor of the surprise of labels
    n_stored: int = integer()  # samples stored in the buffer, in all, since the latest drift
    buffer: Floats = numbers(K, N, empty=math.nan)  # labelled samples as they came, a ring
    buffer_label: Integers = integers(K)
    buffer_weight: Floats = numbers(K)  # 0 where there is no sample, or none any more
    field_places: Floats = numbers(N, F)  # of a skewed feature: the values at which its fields are; else all alike
    field_weights: Floats = numbers(N, F, U, aligned=True)  # of the units that see fields, instead of the encoder's
    field_weights_slow: Floats = numbers(N, F, U)


KINDS = (Evolving, Replaying)
MOST_SORTED = 128  # values of a feature by which fields are placed


class Work(Block):
    """Scratch space for one sample."""

    present: Floats = numbers(N)  # 1, or 0 where the feature is missing
    share: Floats = numbers(N)  # weight of the sample in a running mean
    masked: Floats = numbers(N)  # 1, or 0 where the feature is kept
    offset: Floats = numbers(N)  # what is subtracted from a feature to scale it
    divisor: Floats = numbers(N)  # and what the rest is divided by
    clean: Floats = numbers(N)  # x, scaled
    target: Floats = numbers(N)  # what the reconstruction should be, in [0, 1]
    inputs: Floats = numbers(2, N)  # rows: x or x̃, and μ / sqrt(1 + πσ²/8)
    hidden: Floats = numbers(3, R)  # rows: y, E[y], E[y²]
    delta: Floats = numbers(R)  # the gradient before the encoder's sigmoid
    reconstruction: Floats = numbers(3, N)  # rows: z, E[z], E[z²]
    flat_reconstruction: Floats = one_row(reconstruction)
    one_hot: Floats = numbers(M)  # C
    every_class: Floats = numbers(M)  # ones
    prediction: Floats = numbers(3, M)  # rows: Ĉ, E[Ĉ], E[Ĉ²]
    flat_prediction: Floats = one_row(prediction)
    raw: Floats = numbers(N)  # x before it is scaled, for the fields of skewed features
    lower: Integers = integers(N)  # the lower of the two fields that see a feature
    in_lower: Floats = numbers(N)  # how much of it that one sees
    in_upper: Floats = numbers(N)  # and how much the next one
    in_order: Floats = numbers(MOST_SORTED)  # buffered values of a feature, rising


ACTUAL, EXPECTED, EXPECTED2 = range(3)  # rows: the sample's value, its expectation, and the expectation of its square
