"""The drift signal: whether samples have lately been more surprising than before."""

from __future__ import annotations

import math

from devdan.arrays import Floats
from devdan.kernel.inputs import WIDEST
from devdan.kernel.jit import compiled
from devdan.kernel.network import ACTUAL, COUNT, DISCRIMINATIVE, LATE_MEAN, MEAN, SQUARE, Evolving, Network, Work
from devdan.kernel.paper import squared_error

LATE_SAMPLES, PAST_SAMPLES = 200.0, 10_000.0  # horizons of the recent and of the past mean of the surprise
LEAST_SAMPLES = 300.0  # before a drift can be signalled
LEAST_STD = 0.1  # of the surprise, so that a single surprise in a regular stream is no drift
SURE = 4.0  # standard errors that count as a drift
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
def rise(monitor: Floats, value: float, phase: int) -> float:
    """By how many standard errors the recent surprise is above the past surprise, if significantly so; otherwise 0.

    Its statistics then restart. Those of the error also restart if it is as far below: the network has improved.
    """
    monitor[COUNT] += 1.0
    share, step = 1.0 / min(monitor[COUNT], PAST_SAMPLES), value - monitor[MEAN]
    monitor[MEAN] += share * step
    monitor[SQUARE] = (1.0 - share) * (monitor[SQUARE] + share * step * step)  # never negative, whatever the rounding
    monitor[LATE_MEAN] += (value - monitor[LATE_MEAN]) / min(monitor[COUNT], LATE_SAMPLES)
    standard_error = max(math.sqrt(monitor[SQUARE]), LEAST_STD) / math.sqrt(2.0 * LATE_SAMPLES - 1.0)
    change = (monitor[LATE_MEAN] - monitor[MEAN]) / standard_error
    if monitor[COUNT] >= LEAST_SAMPLES and (change > SURE or (phase == DISCRIMINATIVE and change < -SURE)):
        monitor[:] = 0.0
        return max(change, 0.0)  # type: ignore[no-any-return]
    return 0.0
