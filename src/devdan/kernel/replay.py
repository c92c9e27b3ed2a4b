"""The fixed network that replays: with each label it also takes steps on samples from a buffer of the latest ones.

It has more units from the start, half of which see fields, and neither grows nor generates: where a network that
evolves underfits, or each label counts, its losses will be the lower ones.
"""

from __future__ import annotations

import math

from devdan.arrays import Floats
from devdan.kernel.arithmetic import uniform
from devdan.kernel.drift import rise
from devdan.kernel.inputs import FARTHEST, LARGEST, find, is_ranked, measure, scale
from devdan.kernel.jit import compiled
from devdan.kernel.mixing import predict
from devdan.kernel.network import (
    ACTUAL,
    ALIKE,
    BY_WEIGHTS,
    DISCRIMINATIVE,
    MOST_ORDERED,
    STANDARD,
    Network,
    Work,
)
from devdan.kernel.steps import know, step_labelled, weight_of_class


@compiled
def remember(net: Network, row: Floats, label: int, weight: float) -> None:
    """Keep a labelled sample as it came, instead of the oldest if there is no more room."""
    place = net.n_remembered % net.max_samples
    for j in range(net.n_features):
        net.remembered[place, j] = row[j]
    net.remembered_label[place] = label
    net.remembered_weight[place] = weight
    net.n_remembered += 1


# Two things about features that only the samples themselves tell, not their means and deviations.
#
# A feature may come in another unit from some sample on. All that is remembered of it is then converted, and its scale
# with it; otherwise both would be wrong for as long as they reach back. A unit has changed if a feature's values, for
# two blocks of samples, are several times as wide, as narrow or as far away as in any block before. An error that rises
# while inputs look strange is no reason to forget, since there would be nothing left to convert.
#
# A feature may be so skewed that nearly all of its values are in the same few fields. It is then seen by its rank among
# remembered values, too.

BLOCK = 32  # remembered samples in a row that tell a feature's level and spread
LEAST_BLOCKS = 6  # two of a new unit, one in which it may have begun, three before
ROUNDING = 1e-9  # of a level; a smaller spread is none
BEYOND = 4.0  # times
STEADY = 2.0  # spreads by which levels may differ in one unit, and times for spreads; dates and seasons go farther
LEAST_ORDERED = 64  # remembered samples before fields are placed by them
CROWDED = 3  # fields with nearly all values in them


@compiled
def level_and_spread(net: Network, feature: int, block: int) -> tuple[float, float]:
    """A feature's mean and mean distance from it in a block of remembered samples, the newest being 0.

    Both are NaN if a value is missing. What does not vary but for rounding has no spread.
    """
    newest, total, apart = net.n_remembered - 1 - BLOCK * block, 0.0, 0.0
    for age in range(BLOCK):
        total += net.remembered[(newest - age) % net.max_samples, feature]
    level = total / BLOCK
    for age in range(BLOCK):
        apart += abs(net.remembered[(newest - age) % net.max_samples, feature] - level)
    return level, 0.0 if apart <= ROUNDING * abs(total) else apart / BLOCK


@compiled
def is_usual(net: Network, feature: int, level: float, spread: float) -> bool:
    """Whether such values are about as the feature was."""
    deviation = math.sqrt(net.square[feature])
    is_near: bool = abs(level - net.mean[feature]) <= deviation
    return is_near and deviation / 3.0 <= spread <= 1.5 * deviation


@compiled
def looks_strange(net: Network) -> bool:
    """Whether a feature's latest values are unlike those before, so that a unit may have changed."""
    if net.renews == 0.0 or net.scaling != STANDARD or net.n_remembered < BLOCK * LEAST_BLOCKS:
        return False
    for j in range(net.n_features):
        level, spread = level_and_spread(net, j, 0)
        if 0.0 < spread < LARGEST and not is_usual(net, j, level, spread):
            return True
    return False


@compiled
def has_other_unit(net: Network, feature: int, n_blocks: int) -> bool:
    """Whether the two latest blocks are of another unit than all before the one in which it may have begun."""
    level, spread = level_and_spread(net, feature, 0)
    if not 0.0 < spread < LARGEST or is_usual(net, feature, level, spread):
        return False
    level_before, spread_before = level_and_spread(net, feature, 1)
    narrower = min(spread, spread_before)
    alike = abs(level - level_before) <= STEADY * narrower and max(spread, spread_before) <= STEADY * narrower
    if not 0.0 < spread_before < LARGEST or not alike:  # otherwise the unit changed within one of them
        return False
    low, high, narrowest, widest = math.inf, -math.inf, math.inf, 0.0
    for block in range(3, n_blocks):
        past, width = level_and_spread(net, feature, block)
        if not 0.0 < width < LARGEST:  # missing, or a time in which nothing varied: that can be told of no unit
            return False
        low, high = min(low, past), max(high, past)
        narrowest, widest = min(narrowest, width), max(widest, width)
    if high - low > STEADY * widest:
        return False
    far = BEYOND * (high - low + widest)
    is_wide = narrower > BEYOND * widest
    is_narrow = max(spread, spread_before) < narrowest / BEYOND
    is_away = min(level, level_before) > high + far or max(level, level_before) < low - far
    return is_wide or is_narrow or is_away


@compiled
def is_likelier(value: float, level: float, spread: float, than_level: float, than_spread: float) -> bool:
    """By Laplace's distributions of these levels and spreads."""
    return abs(value - level) / spread + math.log(spread) < abs(value - than_level) / than_spread + math.log(
        than_spread
    )


@compiled
def converted(value: float, before: float, width_before: float, level: float, spread: float) -> float:
    """A value in the new unit."""
    return min(max(level + spread * ((value - before) / width_before), -LARGEST), LARGEST)


@compiled
def convert(net: Network, feature: int, n_kept: int) -> None:
    """Convert what is remembered of a feature, where it is in the unit of the past; that tells its scale and range."""
    level, spread = level_and_spread(net, feature, 0)
    also, also_spread = level_and_spread(net, feature, 1)
    level, spread = 0.5 * (level + also), 0.5 * (spread + also_spread)
    before, width = level_and_spread(net, feature, 3)
    also, also_spread = level_and_spread(net, feature, 4)
    before, width = 0.5 * (before + also), 0.5 * (width + also_spread)
    total, square, n_present, low, high = 0.0, 0.0, 0.0, math.inf, -math.inf
    for k in range(n_kept):
        value = net.remembered[k, feature]
        if math.isnan(value):
            continue
        if is_likelier(value, before, width, level, spread):
            value = converted(value, before, width, level, spread)
            net.remembered[k, feature] = value
        value = min(max(value, -LARGEST), LARGEST)
        low, high = min(low, value), max(high, value)
        total += value
        n_present += 1.0
    mean = total / n_present
    for k in range(n_kept):
        value = net.remembered[k, feature]
        square += 0.0 if math.isnan(value) else (min(max(value, -LARGEST), LARGEST) - mean) ** 2
    net.mean[feature], net.square[feature] = mean, square / n_present
    net.lowest[0, feature], net.highest[0, feature] = low, high
    net.lowest[1, feature], net.highest[1, feature] = math.inf, -math.inf
    for k in range(net.max_fields):
        net.field_places[feature, k] = converted(net.field_places[feature, k], before, width, level, spread)


@compiled
def put_in_order(net: Network, values: Floats, feature: int, n_kept: int) -> int:
    """Sort remembered values of a feature, of many of them some; returns how many are not missing."""
    every, n_values = (n_kept + MOST_ORDERED - 1) // MOST_ORDERED, 0
    for k in range(0, n_kept, every):
        value = min(max(net.remembered[k, feature], -LARGEST), LARGEST)
        if not math.isnan(net.remembered[k, feature]):
            spot = n_values
            while spot > 0 and values[spot - 1] > value:
                values[spot] = values[spot - 1]
                spot -= 1
            values[spot] = value
            n_values += 1
    return n_values


@compiled
def nth_place(values: Floats, n_values: int, field: int, n_fields: int) -> float:
    """The value at which a field is, so that each sees as many; the outermost leave one in a hundred outside."""
    share = min(max(field / (n_fields - 1.0), 0.01), 0.99)
    return values[int(share * (n_values - 1) + 0.5)]  # type: ignore[no-any-return]


@compiled
def is_skewed(values: Floats, n_values: int, n_fields: int) -> bool:
    """Whether even fields crowd in a few what fields at ranks would see in at least twice as many."""
    mean, square = 0.0, 0.0
    for k in range(n_values):
        mean += values[k] / n_values
    for k in range(n_values):
        square += (values[k] - mean) ** 2 / n_values
    per_unit = n_fields / (2.0 * FARTHEST * math.sqrt(square)) if square > 0.0 else 0.0
    n_different, n_even, last, last_even = 0, 0, math.nan, -1
    for field in range(n_fields):
        place = nth_place(values, n_values, field, n_fields)
        even = int(min(max((place - mean) * per_unit + 0.5 * n_fields, 0.0), n_fields - 1.0))
        n_different += 0 if place == last else 1
        n_even += 0 if even == last_even else 1
        last, last_even = place, even
    return n_even <= CROWDED and n_different >= 2 * n_even


@compiled
def see_anew(net: Network, work: Work) -> None:
    """Convert features whose unit has changed, after each block; place the fields of skewed ones, ever more seldom."""
    n_all, n_fields = net.n_remembered, net.max_fields
    n_kept = min(n_all, net.max_samples)
    if n_all % BLOCK == 0 and n_kept // BLOCK >= LEAST_BLOCKS:
        for j in range(net.n_features):
            if has_other_unit(net, j, n_kept // BLOCK):
                convert(net, j, n_kept)
                measure(net, work)
    is_doubled = n_all <= net.max_samples and n_all & (n_all - 1) == 0
    if n_fields > 0 and n_kept >= LEAST_ORDERED and (is_doubled or n_all % net.max_samples == 0):
        for j in range(net.n_features):
            n_values = put_in_order(net, work.in_order, j, n_kept)
            if n_values < n_fields:
                continue
            if is_ranked(net, j) or is_skewed(work.in_order, n_values, n_fields):
                for k in range(n_fields):
                    net.field_places[j, k] = nth_place(work.in_order, n_values, k, n_fields)


@compiled
def learn_again(net: Network, work: Work, row: Floats, label: int, own: float, weight: float) -> None:
    """One step on a new sample, which is then remembered with its own weight, and some on those remembered before.

    If the sample tells of a real drift, those are of a past concept, and are forgotten; but not if the inputs look
    strange, since the error may then be due to these.
    """
    predict(net, work, BY_WEIGHTS, work.prediction[ACTUAL], net.n_classes)
    if rise(net, work, DISCRIMINATIVE) > 0.0 and not looks_strange(net):
        net.n_remembered = 0
    step_labelled(net, work, weight)
    remember(net, row, label, own)
    if net.renews == 1.0 and net.scaling == STANDARD:
        see_anew(net, work)
    for _ in range(int(net.rehearse)):
        revisit(net, work)


@compiled
def revisit(net: Network, work: Work) -> None:
    """One more step on a sample that is remembered, drawn at random."""
    place = int(uniform(net.random) * min(net.n_remembered, net.max_samples))
    label, weight = net.remembered_label[place], net.remembered_weight[place]
    if net.weighing != ALIKE:
        weight *= weight_of_class(net, label)
    find(net.remembered[place], work.clean, work.present, net.n_features)
    scale(net, work)
    know(net, work, label)
    predict(net, work, BY_WEIGHTS, work.prediction[ACTUAL], net.n_classes)
    step_labelled(net, work, weight)
