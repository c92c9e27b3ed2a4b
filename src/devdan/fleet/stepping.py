"""Rows of many keys through their networks, in threads over keys."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import numpy as np

from devdan import kernel
from devdan.arrays import Floats, Integers
from devdan.fleet.shared import Shared
from devdan.fleet.slots import Slots, room_for
from devdan.kernel import Network
from devdan.model import threads
from devdan.model.estimator import Chunk

_PARTS = 4  # per thread, so that one that is done early takes another


def grouped(slots: Integers, rows: Integers, prior: int, prior_rows: Integers) -> tuple[Integers, Integers, Integers]:
    """Rows by slot: the different slots, the cuts between their rows, and the rows; those of a prior come first.

    >>> none = np.empty(0, np.int64)
    >>> grouped(np.array([7, 3, 7]), np.array([0, 1, 3]), 5, none)
    (array([3, 7]), array([0, 1, 3]), array([1, 0, 3]))
    >>> grouped(np.array([7]), np.array([1]), 5, np.array([0, 1]))
    (array([5, 7]), array([0, 2, 3]), array([0, 1, 1]))
    >>> grouped(none, none, 5, np.array([0, 1]))
    (array([5]), array([0, 2]), array([0, 1]))
    """
    n_prior = len(prior_rows)
    if len(slots) == 1 and n_prior <= 1:  # at once: single rows are mostly this
        if n_prior == 0:
            return slots, _ONE, rows
        return np.array([prior, slots.item()]), _TWO, np.array([prior_rows.item(), rows.item()])
    both = np.sort(slots << 32 | rows)  # faster than a stable sort of one by the other
    slots, rows = both >> 32, both & 0xFFFFFFFF
    cuts = np.append(np.flatnonzero(np.diff(slots, prepend=-1)), len(rows))
    slots = slots[cuts[:-1]]
    if n_prior == 0:
        return slots, cuts, rows
    return np.append(prior, slots), np.append(0, cuts + n_prior), np.append(prior_rows, rows)


_ONE, _TWO = np.arange(2), np.arange(3)  # cuts of one row, for one network and for two


def learn(
    memory: Slots,
    shared: Shared,
    chunk: Chunk,
    first: int,
    last: int,
    n_jobs: int | None,
    slots: Integers,
    rows: Integers,
    prior_rows: Integers,
    judges: bool,
    now: int,
) -> None:
    """Let networks learn from rows of the chunk, each in its slot, and the prior from some."""
    slots, cuts, rows = grouped(slots, rows, shared.slot, prior_rows)
    chosen = shared.mixture.options
    order, stages, done = np.empty_like(rows), np.zeros(len(slots), np.int64), np.zeros(len(slots), np.int64)

    def step(begin: int, end: int, scratch: tuple[Floats, Floats] | None = None) -> int:
        return kernel.learn_keys(memory.table, turns, batch, way, begin, end, *(scratch or memory.new_scratch()))

    turns = slots, cuts, rows, order, stages, done
    outputs = np.empty_like(chunk.codes)
    batch = chunk.X, chunk.codes, outputs, chunk.weights, shared.named_codes, shared.class_weights
    way = first, last, shared.slot, judges, bool(chosen["shuffle"]), bool(chosen["interleave"]), now
    n_threads = threads.n_threads(n_jobs, len(rows) * (last - first + 1))
    if n_threads == 1:
        n_stopped = step(0, len(slots), memory.scratch)
    else:
        bounds = np.searchsorted(cuts, np.linspace(0, len(rows), _PARTS * n_threads + 1)).tolist()
        n_stopped = sum(threads.run([partial(step, *pair) for pair in pairwise(bounds)], n_threads))
    while n_stopped > 0:
        end = kernel.SHUFFLING + 2 * (1 if chosen["interleave"] else last - first + 1)
        n_stopped = 0
        for k in np.flatnonzero(stages < end).tolist():
            _make_room(memory, shared, int(slots[k]), for_classes=bool(stages[k] < kernel.SHUFFLING))
            n_stopped += step(k, k + 1, memory.scratch)


def _make_room(memory: Slots, shared: Shared, slot: int, for_classes: bool) -> None:
    """More room for a network that stopped because it needs it."""
    net = Network(memory.state(slot))
    if slot == shared.slot:
        shared.stop_growing(memory)
    elif for_classes:
        memory.make_room(slot, classes=2 * net.max_classes)
    else:
        memory.make_room(slot, hidden=room_for(max(net.n_hidden, int(net.start))))


def predict(memory: Slots, shared: Shared, slots: Integers, X: Floats, out: Floats, n_jobs: int | None) -> None:
    """The probabilities of the classes, by code, for rows with these slots; -1 is an unknown key."""

    def step(begin: int, end: int, scratch: tuple[Floats, Floats] | None = None) -> int:
        scratch = scratch or memory.new_scratch()
        return kernel.predict_keys(memory.table, slots, *scratch, X, out, begin, end)

    n_threads = threads.n_threads(n_jobs, len(X))
    if n_threads == 1:
        n_open = step(0, len(X), memory.scratch)
    else:
        bounds = np.linspace(0, len(X), n_threads + 1).astype(int).tolist()
        n_open = sum(threads.run([partial(step, *pair) for pair in pairwise(bounds)], n_threads))
    if n_open > 0:
        rows = np.flatnonzero(~out.any(axis=1))
        out[rows] = shared.expect(X[rows], out.shape[1])
