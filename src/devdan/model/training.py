"""Training a state from Python: the kernel stops where a state may be full, and goes on with a larger one."""

from __future__ import annotations

import numpy as np

from devdan import kernel
from devdan.arrays import Floats, Words
from devdan.kernel import Network
from devdan.kernel.state import resized, scratch_for

_ONLY = np.zeros(1, np.int64)  # the order of a single sample; nobody writes to it


def trained(
    state: Floats,
    X: Floats,
    codes: Words,
    weights: Floats,
    order: Words,
    first: int,
    last: int,
    scratch: Floats | None = None,
) -> Floats:
    """The network after visiting the samples in this order, each in the phases ``first`` to ``last``.

    Of several networks that learn in turn, all may use the same scratch space.
    """
    done = 0
    while True:
        own = scratch_for(state) if scratch is None else scratch
        done = kernel.learn(state, own, X, codes, weights, order, done, first, last)
        if done == len(order):
            return state
        state, scratch = resized(state, hidden=2 * Network(state).max_hidden), None


def shuffled(state: Floats, n_samples: int, shuffle: bool) -> Words:
    """The order in which a chunk is visited, drawn by the network if it is a random one."""
    if n_samples == 1:
        return _ONLY
    order = np.arange(n_samples)
    if shuffle:
        kernel.shuffle(Network(state).random, order)
    return order
