"""A fleet: a network for each key, stepped by the same machine code as a network by itself."""

from __future__ import annotations

import numpy as np
from numba import types

from devdan.arrays import Floats, Words
from devdan.kernel.entries import calibrate, learn, predict_proba, shuffle, temper, until_compared
from devdan.kernel.jit import address_of, by_address, compiled, entry
from devdan.kernel.memory import fetch_ahead, floats_at, integers_at
from devdan.kernel.mixing import COMPARED_EVERY
from devdan.kernel.network import DISCRIMINATIVE, GIVEN, Network

_FLOATS, _INTEGERS, _ROWS = types.float64[::1], types.int64[::1], types.float64[:, ::1]
_LEARN = types.int64(
    _FLOATS, _FLOATS, _ROWS, _INTEGERS, _FLOATS, _INTEGERS, types.int64, types.int64, types.int64
)  # the signatures that Python's calls have
_PREDICT = types.none(_FLOATS, _FLOATS, _ROWS, _ROWS, types.float64)
_CALIBRATE = types.none(_FLOATS, _ROWS, _INTEGERS, _FLOATS)
_TEMPER = types.none(_FLOATS, _ROWS)
_learn_at, _predict_at = by_address(learn, _LEARN), by_address(predict_proba, _PREDICT)
_calibrate_at, _temper_at = by_address(calibrate, _CALIBRATE), by_address(temper, _TEMPER)

STATE, N_WORDS, CODES, N_KNOWN, N_JUDGED, JUDGED, SEEN, CHANGED = range(8)  # words of a slot: a network, and its key
NAMING, LABELLING, SHUFFLING = range(3)  # stages of a key's rows; from SHUFFLING on there are two for each pass


def addresses() -> Words:
    """The addresses of the entries that a fleet calls."""
    called = (learn, _LEARN), (predict_proba, _PREDICT), (calibrate, _CALIBRATE), (temper, _TEMPER)
    return np.array([address_of(function, signature) for function, signature in called])


@compiled
def output_of(place: Words, codes: Words, code: int) -> int:
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
def know_classes(
    net: Network, place: Words, codes: Words, stage: int, named: Words, labels: Words, own: Words, rows: Words
) -> int:
    """Find the outputs for the classes named in advance and for the labels of a key's rows; returns the next stage.

    That is the same stage where there is no room for a class.
    """
    if stage == NAMING:
        for k in range(len(named)):
            if output_of(place, codes, named[k]) < 0:
                return NAMING
        if len(named) > 0:
            net.n_named = place[N_KNOWN]
    for t in range(len(rows)):
        output = output_of(place, codes, labels[rows[t]])
        if output < 0:
            return LABELLING
        own[rows[t]] = output
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
def predict_key(at: Words, state: Floats, scratch: Floats, X: Floats, row: int, guess: Floats, n_classes: int) -> None:
    """The probabilities of a network's outputs for one row."""
    for o in range(n_classes):
        guess[0, o] = 0.0
    _predict_at(at[1], (state, scratch, X[row : row + 1], guess, 1.0))


@compiled
def calibrate_key(
    at: Words, state: Floats, scratch: Floats, X: Floats, labels: Words, weights: Floats, rows: Words, guess: Floats
) -> None:
    """Compare what a network predicts for some of the rows whose labels it is about to learn with these."""
    net = Network(state)
    if net.n_classes > 0:
        for t in range(until_compared(state), len(rows), COMPARED_EVERY):
            row = rows[t]
            predict_key(at, state, scratch, X, row, guess, net.n_classes)
            _calibrate_at(at[2], (state, guess, labels[row : row + 1], weights[row : row + 1]))


NETWORKS_AHEAD, SLOTS_AHEAD = 3, 8  # by how many turns they are fetched


@compiled
def look_ahead(table: Words, slots: Words, t: int) -> None:
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
    at: Words,
    table: Words,
    slots: Words,
    cuts: Words,
    rows: Words,
    order: Words,
    stages: Words,
    done: Words,
    begin: int,
    end: int,
    scratch: Floats,
    guess: Floats,
    X: Floats,
    labels: Words,
    own: Words,
    weights: Floats,
    named: Words,
    class_weights: Floats,
    first: int,
    last: int,
    prior: int,
    judges: bool,
    shuffles: bool,
    interleaves: bool,
    now: int,
) -> int:
    """Let networks learn, each from its own rows, as :class:`devdan.DEVDAN` does; returns how many need more room.

    The k-th of them is in ``slots[k]``, its rows are ``rows[cuts[k] : cuts[k + 1]]``; those from ``begin`` to ``end``
    learn now. ``stages`` and ``done`` keep how far each has come. The ``prior``, in one of the slots or in none, knows
    the classes by the fleet's codes. ``now`` is what is noted as the time when keys were seen.
    """
    n_stopped = 0
    n_passes = 1 if interleaves else last - first + 1
    for k in range(begin, end):
        look_ahead(table, slots, k)
        place, mine, visited = table[slots[k]], rows[cuts[k] : cuts[k + 1]], order[cuts[k] : cuts[k + 1]]
        state = floats_at(place[STATE], place[N_WORDS])
        net = Network(state)
        place[SEEN], place[CHANGED] = now, 1
        outputs = labels if slots[k] == prior else own
        is_new = stages[k] < SHUFFLING and last == DISCRIMINATIVE
        if is_new and slots[k] != prior:
            codes = integers_at(place[CODES], net.max_classes)
            stages[k] = know_classes(net, place, codes, stages[k], named, labels, own, mine)
            if stages[k] < SHUFFLING:
                n_stopped += 1
                continue
            if net.weighing == GIVEN:
                for o in range(place[N_KNOWN]):
                    net.class_weight[o] = class_weights[codes[o]]
            if judges and net.n_classes > 0:
                for t in range(len(mine)):
                    predict_key(at, state, scratch, X, mine[t], guess, net.n_classes)
                    right = 1 if best(guess[0], net.n_classes) == own[mine[t]] else 0
                    place[JUDGED] = place[JUDGED] << 1 | right
                place[N_JUDGED] += len(mine)
        if is_new:
            calibrate_key(at, state, scratch, X, outputs, weights, mine, guess)
        stages[k] = max(stages[k], SHUFFLING)
        while stages[k] < SHUFFLING + 2 * n_passes:
            stage = stages[k] - SHUFFLING
            if stage % 2 == 0:
                for t in range(len(mine)):
                    visited[t] = mine[t]
                if shuffles and len(mine) > 1:
                    shuffle(net.random, visited)
                stages[k] += 1
                done[k] = 0
            from_phase = first + stage // 2
            to_phase = last if interleaves else from_phase
            done[k] = _learn_at(at[0], (state, scratch, X, outputs, weights, visited, done[k], from_phase, to_phase))
            if done[k] < len(mine):
                n_stopped += 1
                break
            stages[k] += 1
    return n_stopped


@entry
def predict_keys(
    at: Words, table: Words, slots: Words, scratch: Floats, guess: Floats, X: Floats, out: Floats, begin: int, end: int
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
            state = floats_at(place[STATE], place[N_WORDS])
            net = Network(state)
            codes, n_classes = integers_at(place[CODES], net.max_classes), net.n_classes
            if n_classes > 0:
                predict_key(at, state, scratch, X, t, guess, n_classes)
                _temper_at(at[3], (state, guess))
                for o in range(n_classes):
                    out[t, codes[o]] = guess[0, o]
        if n_classes == 0:
            n_open += 1
    return n_open


@entry
def look_up(table: Words, slots: Words, words: Words, out: Words) -> None:
    """Some words of many states, by where they are in a state; a row of ``out`` for each network."""
    for k in range(len(slots)):
        state = integers_at(table[slots[k], STATE], table[slots[k], N_WORDS])
        for i in range(len(words)):
            out[k, i] = state[words[i]]
