"""The drift signal: whether samples have lately been more surprising than before, all or those of a rare class."""

from __future__ import annotations

import math

from devdan.arrays import Floats
from devdan.kernel.inputs import WIDEST
from devdan.kernel.jit import compiled
from devdan.kernel.mixing import LEAST_PROBABILITY, NEGLIGIBLE, predict, weight_of
from devdan.kernel.network import (
    ACTUAL,
    COUNT,
    DISCRIMINATIVE,
    EXCESS,
    LATE_MEAN,
    MEAN,
    SQUARE,
    Evolving,
    Network,
    Work,
)
from devdan.kernel.paper import squared_error

LATE_SAMPLES, PAST_SAMPLES = 200.0, 10_000.0  # horizons of the recent and of the past mean of the surprise
LEAST_SAMPLES = 300.0  # before a drift can be signalled
LEAST_STD = 0.1  # of the surprise, so that a single surprise in a regular stream is no drift
SURE = 4.0  # standard errors that count as a drift
RARE_SHARE, RARE_OF_EVEN = 0.2, 0.5  # a class is rare with less than this share, and less than this of an even one
LEAST_OF_CLASS, LEAST_STD_OF_CLASS = 50.0, 0.3  # samples of a rare class, and of its surprise, as above
TOLERATED, MOST_AT_ONCE = 0.5, 3.0  # standard deviations above the mean: that do not count, and that do
SURE_OF_CLASS = 10.0  # standard deviations, added up, that count as a drift of a class
TINY = 1e-12  # smaller variances count as zero


@compiled
def surprise_of_label(net: Network, work: Work) -> float:
    """How unexpected a label is: the squared error.

    Bias² is computed at the mean input, so it misses a drift that leaves the mean prediction unchanged; the error does
    not.
    """
    return squared_error(work.prediction, work.one_hot, work.every_class, net.n_classes)


@compiled
def surprise_of_input(net: Evolving, work: Work, phase: int) -> float:
    """How unexpected an input is: its squared distance from the mean input, in deviations."""
    x, mean, squares = work.inputs[ACTUAL], net.input_mean[phase], net.input_square[phase]
    total, n_present = 0.0, 0.0
    for j in range(net.n_features):
        step, square = x[j] - mean[j], squares[j]
        total += work.present[j] * min(step * step, WIDEST * WIDEST * square) / max(square, TINY)
        n_present += work.present[j]
    return total / n_present


@compiled
def remember(monitor: Floats, value: float) -> None:
    """Take a surprise into the past mean and its mean squared deviation."""
    monitor[COUNT] += 1.0
    share, step = 1.0 / min(monitor[COUNT], PAST_SAMPLES), value - monitor[MEAN]
    monitor[MEAN] += share * step
    monitor[SQUARE] = (1.0 - share) * (monitor[SQUARE] + share * step * step)  # never negative, whatever the rounding


@compiled
def rise(monitor: Floats, value: float, phase: int) -> float:
    """By how many standard errors the recent surprise is above the past surprise, if significantly so; otherwise 0.

    Its statistics then restart. Those of the error also restart if it is as far below: the network has improved.
    """
    remember(monitor, value)
    monitor[LATE_MEAN] += (value - monitor[LATE_MEAN]) / min(monitor[COUNT], LATE_SAMPLES)
    standard_error = max(math.sqrt(monitor[SQUARE]), LEAST_STD) / math.sqrt(2.0 * LATE_SAMPLES - 1.0)
    change = (monitor[LATE_MEAN] - monitor[MEAN]) / standard_error
    if monitor[COUNT] >= LEAST_SAMPLES and (change > SURE or (phase == DISCRIMINATIVE and change < -SURE)):
        monitor[:] = 0.0
        return max(change, 0.0)  # type: ignore[no-any-return]
    return 0.0


# --- Rare classes ------------------------------------------------------------------------------------------------
#
# What becomes of a class with one label in forty hardly changes the error of all. And a network learns within some ten
# or twenty of its samples what is new about them, so that a mean over more of these would not rise far. A sum tells it
# that begins anew whenever it is negative (CUSUM; Page 1954).


@compiled
def is_rare(net: Network, label: int) -> bool:
    """Whether a class is so rare that it has a monitor of its own."""
    total, n_counted = 0.0, 0.0
    for o in range(net.n_classes):
        total += net.class_count[o]
        n_counted += 1.0 if net.class_count[o] > 0.0 else 0.0
    share: float = min(RARE_SHARE, RARE_OF_EVEN / max(n_counted, 1.0))
    return net.class_count[label] < share * total  # type: ignore[no-any-return]


@compiled
def surprise_of_class(net: Network, work: Work, label: int) -> float:
    """How unexpected the label of a rare class is: its log loss, as the squared error hardly tells 0.1 from 0.01.

    It is that of the network's prediction, with the averages, which adapt to a change more slowly than the weights do.
    """
    seen, prediction = 0.0, work.prediction[ACTUAL]
    for predictor in range(2):
        part = weight_of(net, predictor)
        if part > NEGLIGIBLE:
            predict(net, work, predictor, prediction, net.n_classes)
            seen += part * prediction[label]
    return -math.log(max(seen, LEAST_PROBABILITY))


@compiled
def excess(monitor: Floats, value: float) -> float:
    """S = max(0, S + (surprise - mean) / deviation - tolerated) if that is a drift, and otherwise 0.

    The statistics restart after a drift.
    """
    if monitor[COUNT] >= LEAST_OF_CLASS:
        deviations = (value - monitor[MEAN]) / max(math.sqrt(monitor[SQUARE]), LEAST_STD_OF_CLASS)
        monitor[EXCESS] = max(monitor[EXCESS] + min(deviations, MOST_AT_ONCE) - TOLERATED, 0.0)
        if monitor[EXCESS] > SURE_OF_CLASS:
            found = monitor[EXCESS]
            monitor[:] = 0.0
            return found  # type: ignore[no-any-return]
    remember(monitor, value)
    return 0.0
