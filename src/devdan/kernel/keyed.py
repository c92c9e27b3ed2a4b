"""A fleet: a network for each key, which learns and predicts as one by itself.

Networks lie anywhere in memory. A table has a row for each, its *slot*, which says where the network is, and keeps what
else is known of its key.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from devdan.arrays import Floats, Integers
from devdan.kernel.arithmetic import shuffle_order
from devdan.kernel.evolving import learn_evolving
from devdan.kernel.jit import compiled, entry
from devdan.kernel.memory import fetch_ahead, floats_at, integers_at
from devdan.kernel.mixing import (
    COMPARED_EVERY,
    add_predictions,
    apply_temperature,
    labels_until_compared,
    learn_temperature,
)
from devdan.kernel.network import DISCRIMINATIVE, GIVEN, Evolving, Network, Work
from devdan.kernel.steps import Visits

STATE, N_WORDS, CODES, N_KNOWN, N_JUDGED, JUDGED, SEEN, CHANGED = range(8)  # words of a slot: a network, and its key
NAMING, LABELLING, SHUFFLING = range(3)  # stages of a key's rows; from SHUFFLING on there are two for each pass


class Turns(NamedTuple):
    """Which networks learn, each from its own rows, and how far each has come."""

    slots: Integers
    cuts: Integers  # the k-th network's rows are those from cuts[k] to cuts[k + 1]
    rows: Integers
    order: Integers  # in which they are visited
    stages: Integers
    done: Integers  # rows, in this pass


class Batch(NamedTuple):
    """Rows to learn from, and what the fleet knows of classes, which have codes here."""

    X: Floats
    labels: Integers  # codes
    outputs: Integers  # of the row's own network: found here
    weights: Floats  # of the rows, or none
    named: Integers  # codes of the classes named in advance
    class_weights: Floats  # by code, or none


class Way(NamedTuple):
    """How to learn."""

    first: int  # phase
    last: int
    prior: int  # slot of the prior, which knows the classes by their codes, or -1
    judges: bool  # whether predictions are made before, and compared with the labels
    shuffles: bool
    interleaves: bool
    now: int  # noted as the time when keys were seen


@compiled
def output_of(place: Integers, codes: Integers, code: int) -> int:
    """Which output of a network is a class, by the fleet's code for it; a new one takes the next, if there is room.

    Returns -1 if there is none.
    """
    n_known = place[N_KNOWN]
    for o in range(n_known):
        if codes[o] == code:
            return o
    if n_known == len(codes):
        return -1
    codes[n_known] = code
    place[N_KNOWN] = n_known + 1
    return n_known  # type: ignore[no-any-return]


@compiled
def find_outputs(net: Network, place: Integers, codes: Integers, stage: int, batch: Batch, rows: Integers) -> int:
    """Find the outputs for the classes named in advance and for the labels of a key's rows; returns the next stage.

    That is the same stage where there is no room for a class.
    """
    if stage == NAMING:
        for k in range(len(batch.named)):
            if output_of(place, codes, batch.named[k]) < 0:
                return NAMING
        if len(batch.named) > 0:
            net.n_named = place[N_KNOWN]
    for t in range(len(rows)):
        output = output_of(place, codes, batch.labels[rows[t]])
        if output < 0:
            return LABELLING
        batch.outputs[rows[t]] = output
    return SHUFFLING


@compiled
def best(probabilities: Floats, m: int) -> int:
    """The most probable output."""
    found = 0
    for o in range(1, m):
        if probabilities[o] > probabilities[found]:
            found = o
    return found


@compiled
def predict_row(net: Network, work: Work, X: Floats, row: int, guess: Floats) -> None:
    """The probabilities of a network's outputs for one row, before calibration."""
    for o in range(net.n_classes):
        guess[0, o] = 0.0
    add_predictions(net, work, X[row : row + 1], guess, 1.0)


@compiled
def judge(net: Network, work: Work, place: Integers, batch: Batch, rows: Integers, guess: Floats) -> None:
    """Note whether predictions for the rows are right: one bit for each of the latest."""
    for t in range(len(rows)):
        predict_row(net, work, batch.X, rows[t], guess)
        right = 1 if best(guess[0], net.n_classes) == batch.outputs[rows[t]] else 0
        place[JUDGED] = place[JUDGED] << 1 | right
    place[N_JUDGED] += len(rows)


@compiled
def calibrate_key(net: Network, work: Work, batch: Batch, outputs: Integers, rows: Integers, guess: Floats) -> None:
    """Calibrate a network by some of the rows whose labels it is about to learn."""
    if net.n_classes > 0:
        for t in range(labels_until_compared(net), len(rows), COMPARED_EVERY):
            row = rows[t]
            predict_row(net, work, batch.X, row, guess)
            learn_temperature(net, guess, outputs[row : row + 1], batch.weights[row : row + 1])


NETWORKS_AHEAD, SLOTS_AHEAD = 3, 8  # by how many turns they are fetched


@compiled
def look_ahead(table: Integers, slots: Integers, t: int) -> None:
    """Fetch a network whose turn is soon, with the codes behind its state, as most are in no cache then.

    Where it is, its slot says, which is fetched before.
    """
    n_words, far, near = table.shape[1], t + SLOTS_AHEAD, t + NETWORKS_AHEAD
    if far < len(slots) and slots[far] >= 0:
        fetch_ahead(table.ctypes.data + 8 * n_words * slots[far], n_words)
    if near < len(slots) and slots[near] >= 0:
        fetch_ahead(table[slots[near], STATE], table[slots[near], N_WORDS] + 8)


@entry
def learn_keys(
    table: Integers,
    given_turns: Any,
    given_batch: Any,
    given_way: Any,
    begin: int,
    end: int,
    scratch: Floats,
    guess: Floats,
) -> int:
    """Let the networks from ``begin`` to ``end`` learn, as :class:`devdan.DEVDAN` does; returns how many need room.

    Turns, batch and way are plain tuples, which takes Numba less time to take apart than named ones.
    """
    turns, batch, way = Turns(*given_turns), Batch(*given_batch), Way(*given_way)
    n_stopped = 0
    n_passes = 1 if way.interleaves else way.last - way.first + 1
    for k in range(begin, end):
        slot = turns.slots[k]
        look_ahead(table, turns.slots, k)
        place, rows = table[slot], turns.rows[turns.cuts[k] : turns.cuts[k + 1]]
        visited = turns.order[turns.cuts[k] : turns.cuts[k + 1]]
        state = floats_at(place[STATE], place[N_WORDS])
        net = Network(state)
        work = Work(scratch, net)
        place[SEEN], place[CHANGED] = way.now, 1
        outputs = batch.labels if slot == way.prior else batch.outputs
        is_new = turns.stages[k] < SHUFFLING and way.last == DISCRIMINATIVE
        if is_new and slot != way.prior:
            codes = integers_at(place[CODES], net.max_classes)
            turns.stages[k] = find_outputs(net, place, codes, turns.stages[k], batch, rows)
            if turns.stages[k] < SHUFFLING:
                n_stopped += 1
                continue
            if net.weighing == GIVEN:
                for o in range(place[N_KNOWN]):
                    net.class_weight[o] = batch.class_weights[codes[o]]
            if way.judges and net.n_classes > 0:
                judge(net, work, place, batch, rows, guess)
        if is_new:
            calibrate_key(net, work, batch, outputs, rows, guess)
        turns.stages[k] = max(turns.stages[k], SHUFFLING)
        while turns.stages[k] < SHUFFLING + 2 * n_passes:
            stage = turns.stages[k] - SHUFFLING
            if stage % 2 == 0:
                for t in range(len(rows)):
                    visited[t] = rows[t]
                if way.shuffles and len(rows) > 1:
                    shuffle_order(net.random, visited)
                turns.stages[k] += 1
                turns.done[k] = 0
            first = way.first + stage // 2
            last = way.last if way.interleaves else first
            visits = Visits(batch.X, outputs, batch.weights, visited, len(rows))
            turns.done[k] = learn_evolving(state, scratch, visits, turns.done[k], first, last)
            if turns.done[k] < len(rows):
                n_stopped += 1
                break
            turns.stages[k] += 1
    return n_stopped


@entry
def predict_keys(
    table: Integers, slots: Integers, scratch: Floats, guess: Floats, X: Floats, out: Floats, begin: int, end: int
) -> int:
    """Predict rows, each by the network in its slot, if it has one; returns how many no network has an answer for.

    A column of ``out`` is a class, by the fleet's code.
    """
    n_open = 0
    for t in range(begin, end):
        look_ahead(table, slots, t)
        n_classes = 0
        if slots[t] >= 0:
            place = table[slots[t]]
            net = Network(floats_at(place[STATE], place[N_WORDS]))
            codes, n_classes = integers_at(place[CODES], net.max_classes), net.n_classes
            if n_classes > 0:
                predict_row(net, Work(scratch, net), X, t, guess)
                apply_temperature(net, guess)
                for o in range(n_classes):
                    out[t, codes[o]] = guess[0, o]
        if n_classes == 0:
            n_open += 1
    return n_open


COUNTERS = ("n_features", "n_classes", "n_hidden", "n_seen", "n_learned", "n_drifts", "n_changes")


@entry
def look_up(table: Integers, slots: Integers, out: Integers) -> None:
    """The ``COUNTERS`` of many networks, a row of ``out`` for each."""
    for k in range(len(slots)):
        net = Evolving(floats_at(table[slots[k], STATE], table[slots[k], N_WORDS]))
        out[k, 0], out[k, 1], out[k, 2], out[k, 3] = net.n_features, net.n_classes, net.n_hidden, net.n_seen
        for phase in range(2):
            out[k, 4 + phase] = net.n_learned[phase]
            out[k, 6 + phase] = net.n_drifts[phase]
            for kind in range(2):
                out[k, 8 + 2 * phase + kind] = net.n_changes[phase, kind]
