"""The layers of a deep model: each above the first is a separate network on the features and the hidden units below.

Each layer learns and predicts on its own, from the bottom up (greedy layer-wise). The model mixes the layers'
predictions by their recent losses on the same samples, so that depth counts only where it helps.
"""

from __future__ import annotations

import numpy as np

from devdan import kernel
from devdan.arrays import Floats
from devdan.kernel import Network
from devdan.kernel.state import SETTINGS, WEIGHED, add_feature, new_state, remove_feature, scratch_for
from devdan.model import mixture


def new_layer(layers: list[Floats], n_features: int, room: int, n_taught: int) -> Floats:
    """A new top layer that has learned nothing; with ``n_taught``, it is judged on the same samples as the others."""
    below = Network(layers[-1])
    seed = int(below.random[0]) + len(layers) & 0x7FFFFFFFFFFFFFFF
    state = new_state(n_features + below.max_hidden, room, below.max_classes, below.max_events, seed=seed)
    net = Network(state)
    for name in (*SETTINGS, "n_named"):
        setattr(net, name, getattr(below, name))
    for name in WEIGHED:
        getattr(net, name)[:] = getattr(below, name)
    net.n_features = n_features + below.n_hidden
    net.n_followed = below.n_events
    net.n_seen = net.n_learned[kernel.DISCRIMINATIVE] = n_taught % kernel.STRIDE
    net.losses[:] = max(Network(layer).losses.max() for layer in layers)
    return state


def followed(state: Floats, below: Floats, n_features: int) -> Floats:
    """The layer with its inputs matched to the units of the layer below, after some were added or removed there."""
    lower, net = Network(below), Network(state)
    if lower.n_events - net.n_followed > lower.max_events:  # the events are lost: treat all units as new
        while net.n_features > n_features:
            remove_feature(state, n_features)
        kinds, units = np.full(lower.n_hidden, kernel.GROWTH), np.arange(lower.n_hidden)
    else:
        rows = lower.events[np.arange(net.n_followed, lower.n_events) % max(lower.max_events, 1)]
        kinds, units = rows[:, kernel.EVENT_KIND], rows[:, kernel.EVENT_UNIT]
    for kind, unit in zip(kinds.tolist(), units.tolist(), strict=True):
        if kind == kernel.GROWTH:
            state = add_feature(state)
        elif kind == kernel.PRUNING:
            remove_feature(state, n_features + unit)
    Network(state).n_followed = lower.n_events
    return state


def fitting(layers: list[Floats], n_features: int) -> list[Floats]:
    """Make the layers consistent, wherever learning was interrupted."""
    begun = [layer for layer in layers if Network(layer).n_hidden > 0]
    for k in range(1, len(begun)):
        begun[k] = followed(begun[k], begun[k - 1], n_features)
    return begun or layers


def features(X: Floats, below: Floats, inputs: Floats) -> Floats:
    """The inputs of the next layer: the stream's features and the units of the layer below, given its ``inputs``."""
    hidden = np.empty((len(X), Network(below).n_hidden))
    kernel.transform(below, scratch_for(below), inputs, hidden)
    return np.hstack([X, hidden])


def depth(layers: list[Floats]) -> int:
    """How many layers there should be with ``n_layers="auto"``: one more than needed.

    If only the top layer is trusted, those below it underfit, so another layer may be needed; if neither of the top two
    is trusted, the top one is removed.
    """
    if len(layers) < 2:
        return 2
    trusted = mixture.shares(layers)
    if trusted[-1] > 1.0 - kernel.DOUBT:
        return len(layers) + 1
    spare = len(layers) > 2 and any(trusted) and sum(trusted[-2:]) < kernel.DOUBT
    return len(layers) - int(spare)
