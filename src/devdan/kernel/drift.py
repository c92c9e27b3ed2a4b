"""The drift signal: whether samples have lately been more surprising than before; and the record of events."""

from __future__ import annotations

import math

from devdan.kernel.inputs import WIDEST
from devdan.kernel.jit import compiled
from devdan.kernel.network import (
    ACTUAL,
    BOUND,
    COUNT,
    DISCRIMINATIVE,
    DRIFT,
    EVENT_KIND,
    EVENT_PHASE,
    EVENT_SAMPLE,
    EVENT_SIZE,
    EVENT_UNIT,
    LATE,
    MEAN,
    SQUARE,
    SURPRISE,
    VALUE,
    Network,
    Work,
)
from devdan.kernel.paper import squared_error

LATE_SAMPLES, PAST_SAMPLES = 200.0, 10_000.0  # horizons of the recent and of the past mean of the surprise
LEAST_SAMPLES = 300.0  # before a drift can be signalled
LEAST_STD = 0.1  # of the surprise, so that a single surprise in a regular stream is no drift
SURE = 4.0  # standard errors that count as a drift
TINY = 1e-12  # smaller variances count as zero


@compiled
def surprise(net: Network, work: Work, phase: int) -> float:
    """How unexpected a sample is: its squared distance from the mean input in deviations, or its squared error.

    Bias² is computed at the mean input, so it misses a drift that leaves the mean prediction unchanged; the error does
    not.
    """
    if phase == DISCRIMINATIVE:
        return squared_error(work.prediction, work.one_hot, work.every_class, net.n_classes)
    x, mean, squares = work.inputs[ACTUAL], net.input_mean[phase], net.input_square[phase]
    total, n_present = 0.0, 0.0
    for j in range(net.n_features):
        step, square = x[j] - mean[j], squares[j]
        total += work.present[j] * min(step * step, WIDEST * WIDEST * square) / max(square, TINY)
        n_present += work.present[j]
    return total / n_present


@compiled
def rise(net: Network, work: Work, phase: int) -> float:
    """By how many standard errors the recent surprise is above the past surprise, if significantly so; otherwise 0.

    Its statistics then restart. Those of the error also restart if it is as far below: the network has improved.
    """
    value, monitor = surprise(net, work, phase), net.monitors[phase, SURPRISE]
    monitor[COUNT] += 1.0
    share, step = 1.0 / min(monitor[COUNT], PAST_SAMPLES), value - monitor[MEAN]
    monitor[MEAN] += share * step
    monitor[SQUARE] = (1.0 - share) * (monitor[SQUARE] + share * step * step)  # never negative, whatever the rounding
    monitor[LATE] += (value - monitor[LATE]) / min(monitor[COUNT], LATE_SAMPLES)
    standard_error = max(math.sqrt(monitor[SQUARE]), LEAST_STD) / math.sqrt(2.0 * LATE_SAMPLES - 1.0)
    change = (monitor[LATE] - monitor[MEAN]) / standard_error
    if monitor[COUNT] >= LEAST_SAMPLES and (change > SURE or (phase == DISCRIMINATIVE and change < -SURE)):
        monitor[:] = 0.0
        return max(change, 0.0)  # type: ignore[no-any-return]
    return 0.0


@compiled
def record(net: Network, phase: int, unit: int, kind: int, value: float, limit: float) -> None:
    """Remember what happened and why, as the latest of as many events as there is room for."""
    if net.max_events > 0:
        place = net.n_events % net.max_events
        event = net.events[place]
        net.causes[place, VALUE] = value
        net.causes[place, BOUND] = limit
        event[EVENT_SAMPLE] = net.n_learned[phase]
        event[EVENT_PHASE] = phase
        event[EVENT_UNIT] = unit
        event[EVENT_KIND] = kind
        event[EVENT_SIZE] = net.n_hidden
    net.n_events += 1
    if kind == DRIFT:
        net.n_drifts[phase] += 1
    else:
        net.n_changes[phase, kind] += 1


@compiled
def watch_drift(net: Network, work: Work, phase: int) -> None:
    """Record a drift."""
    risen = rise(net, work, phase)
    if risen > 0.0:
        record(net, phase, 0, DRIFT, risen, SURE)
