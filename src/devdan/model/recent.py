"""What samples look like now: those that networks remember, or else their running means and deviations.

Networks that rehearse have room for labelled samples. As long as there are not enough of these, inputs without labels
take the places that are free, from the last one on. The kernel never looks there, and overwrites them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from devdan import kernel
from devdan.arrays import Floats
from devdan.kernel import DISCRIMINATIVE, GENERATIVE, Network

FEWEST = 100  # samples, from which others can be told apart


def keep_unlabelled(networks: Sequence[Floats], X: Floats) -> None:
    """Put inputs that were just observed where no labelled sample is remembered, in turn."""
    for net in map(Network, networks):
        free = net.max_samples and net.max_samples - net.n_remembered  # the former is read in no time
        if free > 0:
            latest = X[-free:]
            turns = np.arange(net.n_learned[GENERATIVE] - len(latest), net.n_learned[GENERATIVE]) % free
            places = net.max_samples - 1 - turns
            net.remembered[places, : net.n_features] = latest
            net.remembered_weight[places] = 1.0


def recent_inputs(networks: Sequence[Floats], most: int) -> Floats:
    """Inputs of the latest samples as they came, labelled ones first; drawn ones if hardly any are remembered.

    A network that has noticed a drift has forgotten the labels of the samples before, but their inputs will do.
    """
    kept = max((remembered_inputs(Network(state)) for state in networks), key=len)
    if len(kept) >= min(FEWEST, most):
        return kept[:most]
    return np.vstack([kept, drawn_inputs(networks, min(FEWEST, most) - len(kept))])


def remembered_inputs(net: Network) -> Floats:
    """The inputs of the samples that a network remembers, the latest labelled ones first."""
    ages = np.arange(net.max_samples)
    places = (net.n_remembered - 1 - ages) % max(net.max_samples, 1)
    there = places[net.remembered_weight[places] > 0.0]
    rows = np.ascontiguousarray(net.remembered[there, : net.n_features])
    n_labelled = min(net.n_remembered, net.max_samples)
    if not 0 < n_labelled < len(rows):
        return rows
    labelled, others = rows[:n_labelled], rows[n_labelled:]
    known = {row.tobytes() for row in labelled}  # a sample that was observed before its label came counts once
    return np.vstack([labelled, others[[row.tobytes() not in known for row in others]]])


def drawn_inputs(networks: Sequence[Floats], n: int) -> Floats:
    """Normal ones with the running means and deviations, always the same draws."""
    mean, deviation = statistics(networks)
    return np.asarray(mean + deviation * np.random.default_rng(0).normal(size=(n, len(mean))))


def statistics(networks: Sequence[Floats]) -> tuple[Floats, Floats]:
    """The running mean and deviation of each input, in the units of the stream; NaN for one that was never there."""
    net = Network(networks[0])
    n = net.n_features
    if net.scaling == kernel.STANDARD:
        return _seen(net.scale_count[:n], net.mean[:n], net.square[:n])
    for net in map(Network, networks):
        count = net.input_count[:, :n]
        taught, observed = count[DISCRIMINATIVE].max(), count[GENERATIVE].max()
        phase = DISCRIMINATIVE if taught >= min(FEWEST, observed) else GENERATIVE  # where they are corrupted
        if count[phase].any():
            mean, deviation = _seen(count[phase], net.input_mean[phase, :n], net.input_square[phase, :n])
            if net.scaling == kernel.MINMAX:
                seen = net.high[:n] >= net.low[:n]
                low, high = (np.where(seen, array[:n], np.nan) for array in (net.low, net.high))
                mean, deviation = low + mean * (high - low), deviation * (high - low)
            return mean, deviation
    kept = max((remembered_inputs(Network(state)) for state in networks), key=len)
    there = ~np.isnan(kept)
    mean = np.array([kept[own, j].mean() if own.any() else np.nan for j, own in enumerate(there.T)])
    deviation = np.array([kept[own, j].std() if own.any() else np.nan for j, own in enumerate(there.T)])
    return mean, deviation


def _seen(count: Floats, mean: Floats, square: Floats) -> tuple[Floats, Floats]:
    return np.where(count > 0.0, mean, np.nan), np.where(count > 0.0, np.sqrt(square), np.nan)
