"""From a row to what hidden units see: missing values, scaling, clipping to the recent range, and fields."""

from __future__ import annotations

import math

from devdan.arrays import Floats
from devdan.kernel.arithmetic import sigmoid, step_count, step_mean
from devdan.kernel.jit import compiled
from devdan.kernel.network import MINMAX, STANDARD, UNSCALED, Evolving, Network, Replaying, Work

# --- Scaling, learned online -------------------------------------------------------------------------------------

LARGEST = 1e150  # larger values are clipped to this, so that their squares are finite
WIDEST = 5.0  # in standard deviations; values farther away are clipped
SCALING_HORIZON = 2000.0  # samples over which means and deviations are taken, unless a network has another reach


@compiled
def find(row: Floats, value: Floats, present: Floats, length: int) -> float:
    """Mark missing features; returns the number that are present."""
    n_present = 0.0
    for j in range(length):
        missing = math.isnan(row[j])
        present[j] = 0.0 if missing else 1.0
        n_present += present[j]
        value[j] = 0.0 if missing else min(max(row[j], -LARGEST), LARGEST)
    return n_present


@compiled
def learn_scaling(net: Network, work: Work) -> None:
    """Learn the features' ranges (``MINMAX``) or their means and deviations (``STANDARD``) from one more sample."""
    n, value, share, present, low, high = net.n_features, work.clean, work.share, work.present, net.low, net.high
    if net.scaling == MINMAX:
        for j in range(n):
            low[j] = value[j] if (present[j] > 0.0) & (value[j] < low[j]) else low[j]
            high[j] = value[j] if (present[j] > 0.0) & (value[j] > high[j]) else high[j]
    elif net.scaling == STANDARD:
        step_count(net.scale_count, present, share, n)
        for j in range(n):
            share[j] = max(share[j], present[j] / net.scaling_horizon)
        step_mean(net.mean, net.square, share, value, n)


@compiled
def prepare_scaling(net: Network, work: Work) -> None:
    """The offsets and divisors by which features are scaled until the scaling learns again.

    The divisor of one that never varied is infinite, so that it takes the neutral value 0.
    """
    offset, divisor = work.offset, work.divisor
    for j in range(net.n_features):
        if net.scaling == STANDARD:
            offset[j], divisor[j] = net.mean[j], math.sqrt(net.square[j]) if net.square[j] > 0.0 else math.inf
        elif net.scaling == MINMAX:
            seen = net.high[j] > net.low[j]
            offset[j], divisor[j] = net.low[j] if seen else 0.0, net.high[j] - net.low[j] if seen else math.inf
        else:
            offset[j], divisor[j] = 0.0, 1.0


@compiled
def see(net: Network, work: Work) -> None:
    """Scale x, and find the fields that see it; what is missing, or never varied, takes the neutral value 0."""
    n, x, raw, present, offset, divisor = net.n_features, work.clean, work.raw, work.present, work.offset, work.divisor
    low, high = (-WIDEST, WIDEST) if net.scaling == STANDARD else (0.0, 1.0)
    if net.n_fields > 0:
        for j in range(n):
            raw[j] = x[j]
    for j in range(n):
        x[j] = present[j] * min(max((x[j] - offset[j]) / divisor[j], low), high)
    if net.n_fields > 0:
        locate(Replaying(net), work)


@compiled
def take_in(net: Network, work: Work, row: Floats, is_new: bool, is_first: bool) -> float:
    """See a sample that is learned from; returns the number of features that are present.

    The scaling learns from new samples only, those that it has not learned from in another phase. Learning a range
    twice does no harm, so that is always done.
    """
    n_present = find(row, work.clean, work.present, net.n_features)
    if is_new:
        net.n_seen += 1
    if is_new or net.scaling == MINMAX:
        learn_scaling(net, work)
    if is_new or is_first or net.scaling == MINMAX:
        prepare_scaling(net, work)
    see(net, work)
    return n_present


# --- Clipping to the recent range --------------------------------------------------------------------------------
#
# Linear units extrapolate: a weighted sum goes on rising beyond all samples that it was fitted to. Where a feature is a
# date, or drifts, the next samples lie there. So to predict them, values are clipped to the range lately taught.

LEAST_RANGED = 100  # samples taught before a range is known


@compiled
def widen(net: Network, row: Floats) -> None:
    """Take a sample that is taught into the latest range; once that has the horizon's samples, a new one begins."""
    lowest, highest, n_ranged = net.lowest, net.highest, net.n_ranged
    if n_ranged[0] >= net.scaling_horizon:
        for j in range(net.n_features):
            lowest[1, j], highest[1, j] = lowest[0, j], highest[0, j]
            lowest[0, j], highest[0, j] = math.inf, -math.inf
        n_ranged[1] = n_ranged[0]
        n_ranged[0] = 0
    for j in range(net.n_features):
        if not math.isnan(row[j]):
            value = min(max(row[j], -LARGEST), LARGEST)
            lowest[0, j] = min(lowest[0, j], value)
            highest[0, j] = max(highest[0, j], value)
    n_ranged[0] += 1


@compiled
def clip(net: Network, work: Work) -> None:
    """Clip x to both ranges, before it is scaled to predict it."""
    if net.clips == 0.0 or net.n_ranged[0] + net.n_ranged[1] < LEAST_RANGED:
        return
    x, lowest, highest = work.clean, net.lowest, net.highest
    for j in range(net.n_features):
        low, high = min(lowest[0, j], lowest[1, j]), max(highest[0, j], highest[1, j])
        if low <= high:
            x[j] = min(max(x[j], low), high)


@compiled
def look_at(net: Network, work: Work, row: Floats) -> None:
    """See a sample that is predicted."""
    find(row, work.clean, work.present, net.n_features)
    clip(net, work)
    see(net, work)


# --- The autoencoder's target ------------------------------------------------------------------------------------


@compiled
def aim(net: Evolving, work: Work) -> None:
    """What the reconstruction should be: the scaled input, squeezed into [0, 1] unless it lies there."""
    for j in range(net.n_features):
        work.target[j] = work.clean[j]
    if net.scaling == STANDARD:
        sigmoid(work.target, net.n_features)


@compiled
def unscale(net: Evolving, a: Floats, row: Floats) -> None:
    """The input of the decoder's sigmoid on the scale of the stream; NaN for a feature that was never seen."""
    scaling, n = net.scaling, net.n_features
    if scaling != STANDARD:  # with STANDARD the target is the sigmoid of the input, so nothing is left to do
        sigmoid(a, n)
    for j in range(n):
        if scaling == MINMAX:
            row[j] = net.low[j] + a[j] * (net.high[j] - net.low[j])
        elif scaling == STANDARD:
            deviation = math.sqrt(net.square[j]) if net.scale_count[j] > 0.0 else math.nan
            row[j] = net.mean[j] + min(max(a[j], -WIDEST), WIDEST) * deviation
        else:
            row[j] = a[j]


# --- Fields: features seen in parts ------------------------------------------------------------------------------
#
# A sigmoid of a weighted sum is monotonic in each feature, so that a step here and a bump there take many units. Where
# a network has fields, half of its units see each feature through these instead: the sigmoid is then one of a sum of
# functions, one of each feature, that are piecewise linear between the centres of the fields. The other half keeps to
# weighted sums, by which straight boundaries are simple.

FARTHEST = 2.5  # deviations from the mean that fields reach


def has_varied(net: Network, feature: int) -> bool:
    """Whether a feature was seen with different values, so that it can be scaled."""
    if net.scaling == STANDARD:
        return net.square[feature] > 0.0  # type: ignore[no-any-return]
    return net.scaling == UNSCALED or net.high[feature] > net.low[feature]


varies = compiled(has_varied)


@compiled
def is_ranked(net: Replaying, feature: int) -> bool:
    """Whether the fields of a feature are at values of their own."""
    places = net.field_places[feature]
    return places[net.n_fields - 1] > places[0]  # type: ignore[no-any-return]


@compiled
def rank(places: Floats, n_fields: int, value: float) -> float:
    """Where a value is among the rising places of the fields; if several are there, in their middle."""
    below, up_to = 0, 0
    for k in range(n_fields):
        below += 1 if places[k] < value else 0
        up_to += 1 if places[k] <= value else 0
    if up_to > below:
        return 0.5 * (below + up_to - 1)
    if below == 0:
        return 0.0
    if below == n_fields:
        return n_fields - 1.0
    return below - 1 + (value - places[below - 1]) / (places[below] - places[below - 1])  # type: ignore[no-any-return]


@compiled
def locate(net: Replaying, work: Work) -> None:
    """Find the two neighbouring fields that see each feature, the nearer one more of it.

    The fields divide [0, 1], or as many deviations around the mean, evenly. A skewed feature is halfway between where
    it is there and its rank, so that both its many alike and its few far out are told apart. None sees a feature that
    is missing, or one that never varied.
    """
    n, last, lowest, width = net.n_features, net.n_fields - 1, 0.0, 1.0
    if net.scaling == STANDARD:
        lowest, width = -FARTHEST, 2.0 * FARTHEST
    x, at, in_lower, in_upper, present = work.clean, work.lower, work.in_lower, work.in_upper, work.present
    density = net.n_fields / width
    for j in range(n):
        place = min(max((x[j] - lowest) * density - 0.5, 0.0), float(last))
        if is_ranked(net, j):
            place = 0.5 * (place + rank(net.field_places[j], net.n_fields, work.raw[j]))
        lower = min(int(place), last - 1)
        seen = present[j] if varies(net, j) else 0.0
        at[j] = lower
        in_upper[j] = seen * (place - lower)
        in_lower[j] = seen - in_upper[j]


@compiled
def add_fields(weights: Floats, work: Work, y: Floats, n: int, r: int) -> None:
    """Add what the fields contribute to the units that see them, two features at a time, as ``add_product``."""
    at, in_lower, in_upper = work.lower, work.in_lower, work.in_upper
    whole = n - n % 2
    for j in range(0, whole, 2):
        k0, x0, x1 = at[j], in_lower[j], in_upper[j]
        k2, x2, x3 = at[j + 1], in_lower[j + 1], in_upper[j + 1]
        for i in range(r):
            y[i] += (
                x0 * weights[j, k0, i]
                + x1 * weights[j, k0 + 1, i]
                + x2 * weights[j + 1, k2, i]
                + x3 * weights[j + 1, k2 + 1, i]
            )
    for j in range(whole, n):
        k0, x0, x1 = at[j], in_lower[j], in_upper[j]
        for i in range(r):
            y[i] += x0 * weights[j, k0, i] + x1 * weights[j, k0 + 1, i]
