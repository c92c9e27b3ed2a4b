"""The evolving network at work: the paper's two phases, sample by sample, with all that goes beyond the paper."""

from __future__ import annotations

from devdan.arrays import Floats
from devdan.kernel.arithmetic import normal
from devdan.kernel.drift import (
    SURE,
    SURE_OF_CLASS,
    excess,
    is_rare,
    rise,
    surprise_of_class,
    surprise_of_input,
    surprise_of_label,
)
from devdan.kernel.inputs import aim, find, see, take_in
from devdan.kernel.jit import compiled
from devdan.kernel.mixing import (
    STRIDE,
    is_compared,
    join_averages,
    leave_averages,
    share_of_latest,
    update_averages,
    update_losses,
)
from devdan.kernel.network import (
    BOUND,
    DISCRIMINATIVE,
    DRIFT,
    EVENT_KIND,
    EVENT_PHASE,
    EVENT_SAMPLE,
    EVENT_SIZE,
    EVENT_UNIT,
    GENERATIVE,
    GROWTH,
    NO_CLASS,
    UNCHANGED,
    VALUE,
    Evolving,
    Network,
    Work,
)
from devdan.kernel.paper import (
    WEIGHT_VARIANCE,
    corrupt,
    evolve,
    expect_input,
    forward,
    step_discriminative,
    step_generative,
)
from devdan.kernel.steps import Visits, discriminative_rate, evenness, meet_label, step_adaptive, weight_of_sample


@compiled
def begin_evolving(net: Evolving) -> None:
    """Draw the first hidden units."""
    n = net.n_features
    net.n_hidden = int(net.start)
    for unit in range(net.n_hidden):
        for j in range(n):
            net.encoder[j, unit] = normal(net.random, WEIGHT_VARIANCE / (n + 1))
        join_averages(net, unit)


@compiled
def record(net: Evolving, phase: int, unit: int, kind: int, value: float, limit: float) -> None:
    """Keep what happened and why, as the latest of as many events as there is room for."""
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
def watch_drift(net: Evolving, work: Work, phase: int) -> None:
    """Record a drift. After one of the labels, the monitors of classes restart: it is not to be told twice."""
    if phase == GENERATIVE:
        risen = rise(net.surprises[phase], surprise_of_input(net, work, phase), phase)
    else:
        risen = rise(net.surprises[phase], surprise_of_label(Network(net), work), phase)
    if risen > 0.0:
        record(net, phase, NO_CLASS, DRIFT, risen, SURE)
        if phase == DISCRIMINATIVE:
            for o in range(net.n_classes):
                net.class_surprises[o, :] = 0.0


@compiled
def watch_class(net: Evolving, work: Work, label: int) -> None:
    """Record a drift of a rare class."""
    common = Network(net)
    if is_rare(common, label):
        found = excess(net.class_surprises[label], surprise_of_class(common, work, label))
        if found > 0.0:
            record(net, DISCRIMINATIVE, label, DRIFT, found, SURE_OF_CLASS)


@compiled
def learn_sample(net: Evolving, work: Work, phase: int, weight: float) -> None:
    """One sample in one phase, as in the paper: grow or prune by the network's significance, then one SGD step.

    Beyond the paper, drifts and events are recorded, the averages of the weights follow changes of the structure, the
    loss has a weight, and the rate may adapt to each unit.
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
        step_generative(net, work, weight * net.generative_rate)
    elif net.adaptive_rate == 1.0:
        step_adaptive(Network(net), work, weight, evenness(Network(net)) * discriminative_rate(Network(net)))
    else:
        step_discriminative(net, work, weight * discriminative_rate(Network(net)))


@compiled
def observe(net: Evolving, work: Work, n_present: float, weight: float) -> None:
    """The generative phase of a sample that was seen."""
    net.n_learned[GENERATIVE] += 1
    if net.generates == 1.0 and n_present > 0.0:
        aim(net, work)
        corrupt(net, work)
        learn_sample(net, work, GENERATIVE, weight)


@compiled
def teach(net: Evolving, work: Work, row: Floats, label: int, weight: float) -> None:
    """The discriminative phase of a sample that was seen."""
    weight = meet_label(Network(net), work, row, label, weight)
    watch_class(net, work, label)
    learn_sample(net, work, DISCRIMINATIVE, weight)
    if net.averaging > 0.0 and net.n_learned[DISCRIMINATIVE] % STRIDE == 0:
        update_averages(Network(net), share_of_latest(Network(net)))


@compiled
def learn_evolving(state: Floats, scratch: Floats, visits: Visits, start: int, first: int, last: int) -> int:
    """``learn`` for an evolving network."""
    net, own = Network(state), Evolving(state)
    work = Work(scratch, net)
    if net.n_hidden == 0:
        if net.start > net.max_hidden:
            return start
        begin_evolving(own)
    order = visits.order
    for t in range(start, len(order)):
        if net.n_hidden + 2 > net.max_hidden:  # each phase may grow one
            return t
        row, weight = visits.X[order[t]], weight_of_sample(visits.weights, order[t])
        is_new = first == GENERATIVE or net.n_learned[DISCRIMINATIVE] >= net.n_seen
        n_present = take_in(net, work, row, is_new, t == start)
        if first == GENERATIVE:
            observe(own, work, n_present, weight)
        if last == DISCRIMINATIVE:
            if t % visits.chunk == 0 and is_compared(net):
                update_losses(net, work, visits, t)
                find(row, work.clean, work.present, net.n_features)
                see(net, work)
            teach(own, work, row, visits.labels[order[t]], weight)
    return len(order)
