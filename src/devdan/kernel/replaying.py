"""The replaying network at work: with each label it takes more steps, on samples from a buffer of the latest ones.

It has more units from the start, half of which see fields, and neither grows nor generates: where a network that
evolves underfits, or each label counts, its losses will be the lower ones.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from devdan.arrays import Floats
from devdan.kernel.arithmetic import normal, uniform
from devdan.kernel.drift import rise, surprise_of_label
from devdan.kernel.inputs import FARTHEST, LARGEST, find, is_ranked, see, take_in
from devdan.kernel.jit import compiled
from devdan.kernel.mixing import (
    STRIDE,
    average,
    is_compared,
    predict,
    share_of_latest,
    update_averages,
    update_losses,
)
from devdan.kernel.network import (
    ACTUAL,
    ALIKE,
    BY_WEIGHTS,
    DISCRIMINATIVE,
    GENERATIVE,
    MOST_SORTED,
    STANDARD,
    Network,
    Replaying,
    Work,
)
from devdan.kernel.paper import WEIGHT_VARIANCE, accelerate, step_classifier
from devdan.kernel.steps import (
    LEAST_WEIGHT,
    Visits,
    discriminative_rate,
    evenness,
    meet_label,
    step_adaptive,
    target,
    weight_of_class,
    weight_of_sample,
)


@compiled
def begin_replaying(net: Replaying) -> None:
    """Draw the hidden units: first those that see the features as they are, then those that see fields."""
    n, plain = net.n_features, int(net.start) - net.n_field_units
    net.n_hidden = int(net.start)
    for unit in range(plain):
        for j in range(n):
            net.encoder[j, unit] = net.encoder_slow[j, unit] = normal(net.random, WEIGHT_VARIANCE / (n + 1))
    for unit in range(net.n_field_units):
        for j in range(n):
            for k in range(net.n_fields):
                weight = normal(net.random, WEIGHT_VARIANCE / (n * net.n_fields + 1))
                net.field_weights[j, k, unit] = net.field_weights_slow[j, k, unit] = weight


@compiled
def step_fields(net: Replaying, work: Work, factor: float) -> None:
    """A step of the fields' weights, by that of the units' offsets times a factor."""
    weights, delta = net.field_weights, work.delta[net.n_hidden - net.n_field_units :]
    for j in range(net.n_features):
        lower, in_lower, in_upper = work.lower[j], factor * work.in_lower[j], factor * work.in_upper[j]
        for i in range(net.n_field_units):
            weights[j, lower, i] -= in_lower * delta[i]
            weights[j, lower + 1, i] -= in_upper * delta[i]


@compiled
def step(net: Replaying, work: Work, weight: float, rate: float) -> None:
    """One step on the cross-entropy of a label, times a weight."""
    if net.adaptive_rate == 1.0:
        step_adaptive(Network(net), work, weight, rate)
        step_fields(net, work, 1.0)
        return
    plain, momentum = net.n_hidden - net.n_field_units, net.momentum
    step_classifier(Network(net), work, weight * rate)
    for j in range(net.n_features):
        accelerate(net.encoder[j], net.encoder_moment[j], work.inputs[ACTUAL, j], work.delta, plain, momentum)
    step_fields(net, work, 1.0 / (1.0 - momentum))  # as far as steps with momentum go in the end


# --- The buffer --------------------------------------------------------------------------------------------------


@compiled
def store(net: Replaying, row: Floats, label: int, weight: float) -> None:
    """Keep a labelled sample as it came, instead of the oldest if there is no more room."""
    place = net.n_stored % net.max_samples
    for j in range(net.n_features):
        net.buffer[place, j] = row[j]
    net.buffer_label[place] = label
    net.buffer_weight[place] = weight
    net.n_stored += 1


# Where a class is rare, or classes have weights, samples of rare or heavy classes are drawn more often than others, and
# steps on them are shorter by as much. The mean step is the same, but no single one is long.

RARE = 0.5  # evenness below which a class is rare: of two, one with less than some 9 % of the labels
LEAST_LABELS = 100  # before a class can be called rare
RAREST = 0.01  # a class with a smaller share is drawn no more often than one with this
MOST_DRAWS = 100  # until a sample is taken whatever its class


class Draws(NamedTuple):
    """How samples are drawn: all alike, or by how often a class is, relative to others."""

    differ: bool
    n_labels: float  # recent ones
    highest: float  # frequency of a class
    mean: float  # frequency of a sample


@compiled
def frequency(net: Network, label: int, n_labels: float) -> float:
    """How often samples of a class are drawn, relative to others: by its weight, or by 1/√share if that is more."""
    rarity = 1.0 / math.sqrt(max(net.class_count[label] / n_labels, RAREST))
    return max(weight_of_class(net, label), rarity)


@compiled
def plan_draws(net: Network, even: float) -> Draws:
    """How samples are drawn after this label, given how even the classes are."""
    is_rare = net.n_learned[DISCRIMINATIVE] >= LEAST_LABELS and even < RARE
    if net.weighing == ALIKE and not is_rare:
        return Draws(False, 0.0, 0.0, 1.0)
    n_labels, lightest, heaviest, highest, total = 0.0, math.inf, 0.0, 0.0, 0.0
    for o in range(net.n_classes):
        n_labels += net.class_count[o]
    for o in range(net.n_classes):
        if net.class_count[o] > 0.0:
            often, weight = frequency(net, o, n_labels), weight_of_class(net, o)
            lightest, heaviest, highest = min(lightest, weight), max(heaviest, weight), max(highest, often)
            total += net.class_count[o] * often
    differ = n_labels >= LEAST_WEIGHT and (is_rare or lightest < heaviest)
    return Draws(differ, n_labels, highest, total / n_labels if differ else 1.0)


@compiled
def draw(net: Replaying, draws: Draws) -> tuple[int, float]:
    """A place in the buffer, and how long the step on its sample is."""
    common, n_kept = Network(net), min(net.n_stored, net.max_samples)
    place = int(uniform(net.random) * n_kept)
    if not draws.differ:
        return place, weight_of_class(common, net.buffer_label[place])
    for _ in range(MOST_DRAWS):
        if uniform(net.random) * draws.highest < frequency(common, net.buffer_label[place], draws.n_labels):
            break
        place = int(uniform(net.random) * n_kept)
    label = net.buffer_label[place]
    return place, draws.mean * weight_of_class(common, label) / frequency(common, label, draws.n_labels)


@compiled
def replay(net: Replaying, work: Work, draws: Draws, rate: float) -> None:
    """One more step, on a sample from the buffer; none where one was taken out."""
    common = Network(net)
    place, length = draw(net, draws)
    if net.buffer_weight[place] == 0.0:
        return
    label = net.buffer_label[place]
    find(net.buffer[place], work.clean, work.present, net.n_features)
    see(common, work)
    target(common, work, label)
    predict(common, work, BY_WEIGHTS, work.prediction[ACTUAL], net.n_classes)
    step(net, work, length * net.buffer_weight[place], rate)


# --- Skewed features: their fields are placed by rank ------------------------------------------------------------
#
# A feature may be so skewed that nearly all of its values are in the same few fields. Its fields are then placed where
# each sees as many values in the buffer as any other. This needs standardised inputs.

LEAST_SORTED = 64  # samples in the buffer before fields are placed by them: some six for each of ten fields
CROWDED = 3  # fields with nearly all values in them


@compiled
def sort_values(net: Replaying, values: Floats, feature: int, n_kept: int) -> int:
    """Sort a feature's values in the buffer, of many of them some; returns how many are not missing."""
    every, n_values = (n_kept + MOST_SORTED - 1) // MOST_SORTED, 0
    for k in range(0, n_kept, every):
        value = min(max(net.buffer[k, feature], -LARGEST), LARGEST)
        if not math.isnan(net.buffer[k, feature]):
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
    density = n_fields / (2.0 * FARTHEST * math.sqrt(square)) if square > 0.0 else 0.0
    n_different, n_even, last, last_even = 0, 0, math.nan, -1
    for field in range(n_fields):
        place = nth_place(values, n_values, field, n_fields)
        even = int(min(max((place - mean) * density + 0.5 * n_fields, 0.0), n_fields - 1.0))
        n_different += 0 if place == last else 1
        n_even += 0 if even == last_even else 1
        last, last_even = place, even
    return n_even <= CROWDED and n_different >= 2 * n_even


@compiled
def refresh_field_places(net: Replaying, work: Work) -> None:
    """Place the fields of skewed features, whenever the samples in the buffer have doubled, or all are others."""
    n_all, n_fields, n_kept = net.n_stored, net.n_fields, min(net.n_stored, net.max_samples)
    is_doubled = n_all <= net.max_samples and n_all & (n_all - 1) == 0
    if n_kept < LEAST_SORTED or not (is_doubled or n_all % net.max_samples == 0):
        return
    for j in range(net.n_features):
        n_values = sort_values(net, work.in_order, j, n_kept)
        if n_values >= n_fields and (is_ranked(net, j) or is_skewed(work.in_order, n_values, n_fields)):
            for k in range(n_fields):
                net.field_places[j, k] = nth_place(work.in_order, n_values, k, n_fields)


# --- Learning ----------------------------------------------------------------------------------------------------


@compiled
def teach_and_replay(net: Replaying, work: Work, row: Floats, label: int, weight: float) -> None:
    """One step on a new sample, which then goes into the buffer, and some on samples from there.

    If the sample tells of a real drift, those are of a past concept, and are forgotten.
    """
    common = Network(net)
    full = meet_label(common, work, row, label, weight)
    even, rate = evenness(common), discriminative_rate(common)  # neither changes before the next label
    if net.adaptive_rate == 1.0:
        rate *= even
    predict(common, work, BY_WEIGHTS, work.prediction[ACTUAL], net.n_classes)
    if rise(net.surprise, surprise_of_label(common, work), DISCRIMINATIVE) > 0.0:
        net.n_stored = 0
    step(net, work, full, rate)
    store(net, row, label, weight)
    if net.n_fields > 0 and net.scaling == STANDARD:
        refresh_field_places(net, work)
    draws = plan_draws(common, even)
    for _ in range(int(net.replays)):
        replay(net, work, draws, rate)
    if net.averaging > 0.0 and net.n_learned[DISCRIMINATIVE] % STRIDE == 0:
        share = share_of_latest(common)
        update_averages(common, share)
        for j in range(net.n_features):
            for k in range(net.n_fields):
                average(net.field_weights_slow[j, k], net.field_weights[j, k], net.n_field_units, share)


@compiled
def learn_replaying(state: Floats, scratch: Floats, visits: Visits, start: int, first: int, last: int) -> int:
    """``learn`` for a replaying network, which always has room."""
    net, own = Network(state), Replaying(state)
    work = Work(scratch, net)
    if net.n_hidden == 0:
        begin_replaying(own)
    order = visits.order
    for t in range(start, len(order)):
        row = visits.X[order[t]]
        is_new = first == GENERATIVE or net.n_learned[DISCRIMINATIVE] >= net.n_seen
        take_in(net, work, row, is_new, t == start)
        if first == GENERATIVE:
            net.n_learned[GENERATIVE] += 1
        if last == DISCRIMINATIVE:
            if t % visits.chunk == 0 and is_compared(net):
                update_losses(net, work, visits, t)
                find(row, work.clean, work.present, net.n_features)
                see(net, work)
            teach_and_replay(own, work, row, visits.labels[order[t]], weight_of_sample(visits.weights, order[t]))
    return len(order)
