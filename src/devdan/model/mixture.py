"""The mixture of several networks: each weighs as much as the recent losses of its opinions say, as in the kernel."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from devdan import kernel
from devdan.arrays import Floats, Words
from devdan.kernel import Network
from devdan.kernel.state import scratch_for

_NONE = np.empty(0, np.int64)


def shares(networks: Sequence[Floats]) -> list[float]:
    """The share of each network in a prediction: that of its opinions together among those of all networks."""
    if len(networks) == 1:
        return [1.0]
    evidence = [kernel.weigh(state) for state in networks]
    most = max(evidence)
    if most == -math.inf:  # no label was taught yet
        return [0.0] * len(networks)
    weights = [math.exp(one - most) for one in evidence]
    total = sum(weights)
    return [weight / total for weight in weights]


def opinions(state: Floats, share: float = 1.0) -> list[float]:
    """The share of each opinion of a network that has this share."""
    net, evidence = Network(state), kernel.weigh(state)
    if net.n_classes == 0:
        return [0.0] * len(net.losses)
    return [
        share * math.exp(-kernel.CAUTION * loss - evidence) if kernel.holds(net, opinion) else 0.0
        for opinion, loss in enumerate(net.losses.tolist())
    ]


def add_probabilities(networks: Sequence[Floats], inputs: Sequence[Floats], out: Floats) -> None:
    """Add the prediction for each sample to a row of ``out``, with a column for each output."""
    scratch = scratch_for(*networks)
    for state, X, share in zip(networks, inputs, shares(networks), strict=True):
        if share > kernel.NEGLIGIBLE:
            kernel.predict_proba(state, scratch, X, out, share)


def compared(first: Floats, n_samples: int) -> Words:
    """Of samples whose labels are about to be learned, those whose predictions are compared with their labels."""
    ahead = kernel.until_compared(first)
    return np.arange(ahead, n_samples, kernel.COMPARED_EVERY) if ahead < n_samples else _NONE


def calibrate(networks: Sequence[Floats], inputs: Sequence[Floats], codes: Words, weights: Floats) -> None:
    """Compare the predictions for some samples with their labels, before these are learned."""
    out = np.zeros((len(codes), Network(networks[0]).n_classes))
    add_probabilities(networks, inputs, out)
    kernel.calibrate(networks[0], out, codes, weights)
