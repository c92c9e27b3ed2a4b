"""What samples look like now, and how unusual one is: by those in replay buffers, or by running means and deviations.

Samples can also be taken out of the buffers: those whose labels were wrong, and those that are to be forgotten.
Networks that replay have room for labelled samples. As long as there are not enough of these, inputs without labels
take the places that are free, from the last one on. The kernel never looks there, and overwrites them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import gammainc

from devdan import kernel
from devdan.arrays import Floats, Integers
from devdan.kernel import DISCRIMINATIVE, GENERATIVE, Evolving, Network, Replaying

FEWEST = 100  # samples, from which others can be told apart
_NEAREST = 10  # recent samples, to which the distance counts
_MOST = 1000  # recent samples that are compared with
_FARTHEST = 1e6  # deviations, so that squares stay finite


def keep_unlabelled(networks: Sequence[Floats], X: Floats) -> None:
    """Put inputs that were just observed where no labelled sample is remembered, in turn."""
    for net in map(Network, networks):
        free = net.max_samples - net.n_stored if isinstance(net, Replaying) else 0
        if free > 0:
            latest = X[-free:]
            turns = np.arange(net.n_learned[GENERATIVE] - len(latest), net.n_learned[GENERATIVE]) % free
            places = net.max_samples - 1 - turns
            net.buffer[places, : net.n_features] = latest
            net.buffer_weight[places] = 1.0


def withdraw(networks: Sequence[Floats], X: Floats, codes: Integers) -> None:
    """Take back labels that were taught: their samples leave the buffers, and they count no longer.

    What the weights have learned stays. A label counts for as much as if it were the latest.
    """
    for net in map(Network, networks):
        for row, code in zip(X, codes.tolist(), strict=True):
            if code >= net.n_classes:
                continue
            weight = 1.0
            if isinstance(net, Replaying):
                place = _place_of(net, row, np.flatnonzero(net.buffer_label[: net.n_stored] == code))
                weight = 1.0 if place is None else float(net.buffer_weight[place])
                _empty(net, place)
            net.n_learned[DISCRIMINATIVE] = max(net.n_learned[DISCRIMINATIVE] - 1, 0)
            net.averaged_since = min(net.averaged_since, int(net.n_learned[DISCRIMINATIVE]))
            net.class_count *= 1.0 - 1.0 / kernel.CLASS_HORIZON
            net.class_count[code] = max(net.class_count[code] - weight, 0.0)


def forget_inputs(networks: Sequence[Floats], X: Floats) -> None:
    """Inputs that were observed, or were taught before a drift, leave the buffers."""
    for net in map(Network, networks):
        if isinstance(net, Replaying):
            for row in X:
                free = np.arange(min(net.n_stored, net.max_samples), net.max_samples)
                while (place := _place_of(net, row, free)) is not None:
                    _empty(net, place)


def _place_of(net: Replaying, row: Floats, places: Integers) -> int | None:
    """The first of these places where this sample is, if it is.

    A sample lacks the inputs that are newer than it is, so a value that it lacks is not held against it, unless it
    lacks all; the one that lacks least is taken.
    """
    places = places[net.buffer_weight[places] > 0.0]
    kept = net.buffer[places, : net.n_features]
    is_same = kept == row
    n_same = is_same.sum(axis=1)
    alike = np.flatnonzero((is_same | np.isnan(kept)).all(axis=1) & ((n_same > 0) | np.isnan(row).all()))
    return None if len(alike) == 0 else int(places[alike[n_same[alike].argmax()]])


def _empty(net: Replaying, place: int | None) -> None:
    if place is not None:
        net.buffer[place], net.buffer_label[place], net.buffer_weight[place] = np.nan, 0, 0.0


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
    if not isinstance(net, Replaying):
        return np.empty((0, net.n_features))
    places = (net.n_stored - 1 - np.arange(net.max_samples)) % net.max_samples
    is_there = net.buffer_weight[places] > 0.0
    rows = np.ascontiguousarray(net.buffer[places[is_there], : net.n_features])
    n_labelled = int(is_there[: net.n_stored].sum())
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
    for own in map(Network, networks):
        if not isinstance(own, Evolving):
            continue
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


# --- How unusual a sample is -------------------------------------------------------------------------------------


def share_less_unusual(networks: Sequence[Floats], X: Floats) -> Floats:
    """The share of recent samples that are less unusual than each of these.

    Where samples are remembered, by the distances to the nearest of them. The reconstruction is no help: labels have
    shaped the units, too (docs/why.md). Else by the squared distance from the mean input, whose running mean and
    variance the generative phase keeps.
    """
    kept = max((remembered_inputs(Network(state)) for state in networks), key=len)[:_MOST]
    scaled = _scaled(networks, X)
    if len(kept) < FEWEST:
        return _beyond_the_mean(networks, scaled)
    from sklearn.neighbors import NearestNeighbors  # noqa: PLC0415 (slow to import)

    kept = _scaled(networks, kept)
    has_gaps = np.isnan(kept).any() or np.isnan(scaled).any()
    neighbours = NearestNeighbors(n_neighbors=_NEAREST, metric="nan_euclidean" if has_gaps else "euclidean").fit(kept)
    theirs, distances = neighbours.kneighbors()[0].mean(axis=1), neighbours.kneighbors(scaled)[0].mean(axis=1)
    return rank(np.nan_to_num(distances), np.sort(np.nan_to_num(theirs)))


def rank(values: Floats, known: Floats) -> Floats:
    """The share of the known values, which rise, that are smaller; beyond the largest it still rises towards 1.

    >>> rank(np.array([0.0, 2.0, 3.0, 6.0]), np.array([1.0, 2.0, 3.0])).tolist()
    [0.0, 0.25, 0.5, 0.875]
    """
    beyond = np.maximum(values, known[-1])
    more = 1.0 - np.divide(known[-1], beyond, out=np.ones_like(beyond), where=beyond > 0.0)
    return np.asarray((np.searchsorted(known, values) + more) / (len(known) + 1))


def _scaled(networks: Sequence[Floats], X: Floats) -> Floats:
    """In deviations from the mean; as far away as can be where a value never varied before, NaN where it is missing."""
    mean, deviation = statistics(networks)
    if Network(networks[0]).scaling == kernel.UNSCALED:
        X = np.clip(X, 0.0, 1.0)  # as the kernel does
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        scaled = (X - mean) / deviation
    scaled[mean == X] = 0.0
    return np.asarray(np.clip(scaled, -_FARTHEST, _FARTHEST))


def _beyond_the_mean(networks: Sequence[Floats], scaled: Floats) -> Floats:
    """By the mean squared deviation, as if that were distributed as Γ, with the mean and variance it has had so far."""
    n_present = np.maximum((~np.isnan(scaled)).sum(axis=1), 1)
    mean, variance = 1.0, 2.0 / scaled.shape[1]  # of normal inputs that are independent
    for net in map(Network, networks):
        if not isinstance(net, Evolving):
            continue
        watched = net.surprises[GENERATIVE]
        if watched[kernel.COUNT] >= FEWEST and watched[kernel.SQUARE] > 0.0:
            mean, variance = float(watched[kernel.MEAN]), float(watched[kernel.SQUARE])
            break
    unusual = np.nansum(scaled**2, axis=1) / n_present
    return np.asarray(gammainc(mean**2 / variance, unusual * mean / variance))
