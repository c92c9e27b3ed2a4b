"""What an opinion by trees would be worth in the ensemble: a forest on a replay buffer, in the same mixture.

A prototype of a third kind of network, in compiled code; nothing in the package uses it. With each label a fixed number
of samples' worth of work is saved up; when it pays for a tree on all that the buffer holds, the next tree in turn is
grown anew. So trees are replaced often while the buffer is short, and every 125 labels once it is full. Meanwhile,
labels are counted in the leaves they fall into.

    p(class | x) = mean over trees of (count of class in x's leaf + PRIOR · share of class) / (count in leaf + PRIOR)

Its two predictors are p and p² / Σp², each with its own recent loss, as a network has its weights and their averages.
All arrays have a fixed size and 64-bit words, so that they can become fields of a block.

`python benchmarks/trees.py --write` puts the table into docs/experiments.md. Needs `pip install 'devdan[river]'` and
the streams in DEVDAN_DATA; a few minutes.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import paper_streams
import unseen_streams
from measuring import put
from numba import njit

from devdan import DEVDANEnsemble, kernel
from devdan.kernel.arithmetic import uniform
from devdan.kernel.jit import compiled
from devdan.kernel.mixing import ETA, LEAST_PROBABILITY, LOSS_MEMORY, STRIDE
from devdan.streams import open_stream

MAX_SAMPLES = 5000  # in the buffer
N_TREES = 20
MAX_NODES = 511  # of a tree
N_BINS = 250  # of a feature, by quantiles
SORTED = 1024  # values by which these are placed, at most
WORK = 40.0  # samples of which a tree is grown, per label
LEAST = 32  # labels before the first tree
SHARE = 0.5  # of the features that are tried in a node
PRIOR = 0.1  # samples in a leaf that are of every class, as these are lately
CLASS_MEMORY = 0.999
LATE, PAST, LEAST_SAMPLES, LEAST_STD, SURE = 200.0, 10_000.0, 300.0, 0.1, 8.0  # of the drift signal
LEAF = -1


class Forest(NamedTuple):
    """What is saved: a buffer with its bins, trees, the monitor of the surprise and the random generator's word."""

    random: np.ndarray  # (1,) uint64
    counters: np.ndarray  # (3,) stored ever, held in the buffer, next tree
    saved: np.ndarray  # (1,) work saved up, in samples
    rows: np.ndarray  # (K, N) as they came, a ring
    labels: np.ndarray  # (K,)
    weights: np.ndarray  # (K,)
    bins: np.ndarray  # (N, K) bin of each value in the buffer; 0 is missing
    edges: np.ndarray  # (N, N_BINS) upper edges of bins
    n_edges: np.ndarray  # (N,)
    class_count: np.ndarray  # (M,)
    monitor: np.ndarray  # (4,)
    grown: np.ndarray  # (T,) 1 where there is a tree
    feature: np.ndarray  # (T, nodes) of a node, or LEAF
    threshold: np.ndarray  # (T, nodes): missing or not above goes to the first child
    child: np.ndarray  # (T, nodes) first child; the other is next to it
    count: np.ndarray  # (T, nodes, M) weight of each class


class Scratch(NamedTuple):
    order: np.ndarray  # (K,) samples, by node
    sorted: np.ndarray  # (K,) samples of a node, by the bin of a feature
    places: np.ndarray  # (N_BINS + 4,)
    begin: np.ndarray  # (nodes + 1,) where the samples of a node begin in the order
    end: np.ndarray
    features: np.ndarray  # (N,)
    below: np.ndarray  # (M,)
    prediction: np.ndarray  # (M,)
    values: np.ndarray  # (SORTED,)


def new_forest(n, m, seed, samples=MAX_SAMPLES, trees=N_TREES, nodes=MAX_NODES):
    i = np.int64
    return Forest(
        np.array([seed], np.uint64), np.zeros(3, i), np.zeros(1), np.full((samples, n), np.nan), np.zeros(samples, i),
        np.zeros(samples), np.zeros((n, samples), i), np.zeros((n, N_BINS)), np.zeros(n, i), np.zeros(m), np.zeros(4),
        np.zeros(trees, i), np.full((trees, nodes), LEAF, i), np.zeros((trees, nodes)), np.zeros((trees, nodes), i),
        np.zeros((trees, nodes, m)),
    )  # fmt: skip


def new_scratch(n, m, samples=MAX_SAMPLES, nodes=MAX_NODES):
    i = np.int64
    return Scratch(
        np.zeros(samples, i), np.zeros(samples, i), np.zeros(N_BINS + 4, i), np.zeros(nodes + 1, i),
        np.zeros(nodes + 1, i), np.arange(n), np.zeros(m), np.zeros(m), np.zeros(SORTED),
    )  # fmt: skip


# --- Bins ----------------------------------------------------------------------------------------------------------


@compiled
def sort(values, length):
    """Shell sort, which needs no memory."""
    gap = 1
    while gap < length // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, length):
            value, place = values[i], i
            while place >= gap and values[place - gap] > value:
                values[place] = values[place - gap]
                place -= gap
            values[place] = value
        gap //= 3


@compiled
def place_edges(forest, values, feature, n_kept):
    """Edges half way between neighbouring values, so that each bin has as many of them, as far as they differ."""
    every, length = (n_kept + SORTED - 1) // SORTED, 0
    for k in range(0, n_kept, every):
        if not math.isnan(forest.rows[k, feature]):
            values[length] = forest.rows[k, feature]
            length += 1
    sort(values, length)
    found = 0
    for b in range(1, N_BINS):
        k = b * length // N_BINS
        if k < 1:
            continue
        while k < length and values[k] == values[k - 1]:
            k += 1
        if k < length:
            edge = 0.5 * values[k - 1] + 0.5 * values[k]
            if found == 0 or edge > forest.edges[feature, found - 1]:
                forest.edges[feature, found] = edge
                found += 1
    forest.n_edges[feature] = found


@compiled
def bin_of(value, edges, n_edges):
    """0 for a missing value, or 1 + how many edges are below it."""
    if math.isnan(value):
        return 0
    low, high = 0, n_edges
    while low < high:
        middle = (low + high) // 2
        if value <= edges[middle]:
            high = middle
        else:
            low = middle + 1
    return 1 + low


@compiled
def refresh_bins(forest, scratch):
    """Place bins anew, whenever the samples in the buffer have doubled, or all are others."""
    n_all, room = forest.counters[0], len(forest.labels)
    n_kept = min(n_all, room)
    if n_kept < LEAST or not ((n_all <= room and n_all & (n_all - 1) == 0) or n_all % room == 0):
        return
    for j in range(len(forest.n_edges)):
        place_edges(forest, scratch.values, j, n_kept)
        for k in range(n_kept):
            forest.bins[j, k] = bin_of(forest.rows[k, j], forest.edges[j], forest.n_edges[j])


# --- Growing -------------------------------------------------------------------------------------------------------


@compiled
def sort_by_bin(forest, scratch, feature, begin, end):
    """Counting sort of a node's samples by the bins of a feature."""
    bins, places, order, ranked = forest.bins[feature], scratch.places, scratch.order, scratch.sorted
    n_bins = forest.n_edges[feature] + 2
    for b in range(n_bins + 1):
        places[b] = 0
    for i in range(begin, end):
        places[bins[order[i]] + 1] += 1
    for b in range(1, n_bins + 1):
        places[b] += places[b - 1]
    for i in range(begin, end):
        b = bins[order[i]]
        ranked[places[b]] = order[i]
        places[b] += 1


@compiled
def best_split(forest, scratch, totals, feature, length, square, total):
    """The gain Σc²/n below and above the best bin to split at (Gini), and that bin; updated sample by sample."""
    bins, ranked, below, labels = forest.bins[feature], scratch.sorted, scratch.below, forest.labels
    left_square, right_square, left, gain, best = 0.0, square, 0.0, 0.0, -1
    below[:] = 0.0
    for i in range(length - 1):
        k, label = ranked[i], labels[ranked[i]]
        weight, before = forest.weights[k], below[label]
        left_square += weight * (2.0 * before + weight)
        right_square -= weight * (2.0 * (totals[label] - before) - weight)
        below[label] = before + weight
        left += weight
        here, after = bins[k], bins[ranked[i + 1]]
        if here != after and 0.0 < left < total:
            found = left_square / left + right_square / (total - left)
            if found > gain:
                gain, best = found, (here + after) // 2 if here > 0 else 0
    return gain, best


@compiled
def split(forest, scratch, tree, node):
    """Which feature a node is best split by, of some drawn at random, and at which bin; LEAF if by none."""
    totals, begin, end = forest.count[tree, node], scratch.begin[node], scratch.end[node]
    total, square, n = 0.0, 0.0, len(scratch.features)
    for o in range(len(totals)):
        total += totals[o]
        square += totals[o] * totals[o]
    gain, feature, at = (square + 1e-9) / max(total, 1e-12) + 1e-9, LEAF, 0
    if end - begin < 2 or square >= total * total * (1.0 - 1e-9):
        return feature, at
    for tried in range(math.ceil(SHARE * n)):
        other = tried + int(uniform(forest.random) * (n - tried))
        j = scratch.features[other]
        scratch.features[other] = scratch.features[tried]
        scratch.features[tried] = j
        if forest.n_edges[j] > 0:
            sort_by_bin(forest, scratch, j, begin, end)
            found, best = best_split(forest, scratch, totals, j, end - begin, square, total)
            if best >= 0 and found > gain:
                gain, feature, at = found, j, best
    return feature, at


@compiled
def partition(forest, scratch, feature, at, begin, end):
    """Move the samples of bins up to ``at`` to the front; where the others begin."""
    bins, order, last = forest.bins[feature], scratch.order, end - 1
    while begin <= last:
        if bins[order[begin]] <= at:
            begin += 1
        else:
            order[begin], order[last] = order[last], order[begin]
            last -= 1
    return begin


@compiled
def fill(forest, scratch, tree, node, begin, end):
    """A new leaf with these samples."""
    scratch.begin[node], scratch.end[node] = begin, end
    forest.feature[tree, node] = LEAF
    forest.count[tree, node, :] = 0.0
    for i in range(begin, end):
        k = scratch.order[i]
        forest.count[tree, node, forest.labels[k]] += forest.weights[k]


@compiled
def grow(forest, scratch, tree):
    """Grow a tree on all samples in the buffer, level by level, while there is room for nodes."""
    room, held = len(forest.labels), forest.counters[1]
    for i in range(held):
        scratch.order[i] = (forest.counters[0] - 1 - i) % room
    for j in range(len(scratch.features)):
        scratch.features[j] = j
    fill(forest, scratch, tree, 0, 0, held)
    n_nodes, node = 1, 0
    while node < n_nodes and n_nodes + 2 <= forest.feature.shape[1]:
        feature, at = split(forest, scratch, tree, node)
        if feature != LEAF:
            begin, end = scratch.begin[node], scratch.end[node]
            middle = partition(forest, scratch, feature, at, begin, end)
            forest.feature[tree, node], forest.child[tree, node] = feature, n_nodes
            forest.threshold[tree, node] = forest.edges[feature, at - 1] if at > 0 else -math.inf
            fill(forest, scratch, tree, n_nodes, begin, middle)
            fill(forest, scratch, tree, n_nodes + 1, middle, end)
            n_nodes += 2
        node += 1
    forest.grown[tree] = 1


# --- Predicting and learning ---------------------------------------------------------------------------------------


@compiled
def leaf_of(forest, tree, row):
    node, feature = 0, forest.feature[tree]
    while feature[node] != LEAF:
        node = forest.child[tree, node] + (1 if row[feature[node]] > forest.threshold[tree, node] else 0)
    return node


@compiled
def predict(forest, row, out):
    m, n_trees, n_labels = len(out), 0, 0.0
    out[:] = 0.0
    for o in range(m):
        n_labels += forest.class_count[o]
    for tree in range(len(forest.grown)):
        if forest.grown[tree] == 1:
            count, total = forest.count[tree, leaf_of(forest, tree, row)], PRIOR
            for o in range(m):
                total += count[o]
            for o in range(m):
                out[o] += (count[o] + PRIOR * (forest.class_count[o] + 1.0) / (n_labels + m)) / total
            n_trees += 1
    for o in range(m):
        out[o] = out[o] / n_trees if n_trees > 0 else (forest.class_count[o] + 1.0) / (n_labels + m)


@compiled
def sharpen(p, out):
    """p² / Σp²."""
    total = 0.0
    for o in range(len(p)):
        total += p[o] * p[o]
    for o in range(len(p)):
        out[o] = p[o] * p[o] / total


@compiled
def is_drift(monitor, value):
    """As ``kernel.drift.rise`` in the discriminative phase, but with SURE = 8: what is told anew takes trees long."""
    monitor[0] += 1.0
    share, step = 1.0 / min(monitor[0], PAST), value - monitor[1]
    monitor[1] += share * step
    monitor[2] = (1.0 - share) * (monitor[2] + share * step * step)
    monitor[3] += (value - monitor[3]) / min(monitor[0], LATE)
    error = max(math.sqrt(monitor[2]), LEAST_STD) / math.sqrt(2.0 * LATE - 1.0)
    change = (monitor[3] - monitor[1]) / error
    if monitor[0] >= LEAST_SAMPLES and abs(change) > SURE:
        monitor[:] = 0.0
        return change > 0.0
    return False


@compiled
def learn(forest, scratch, row, label, weight):
    """Learn from one labelled sample."""
    p, room = scratch.prediction, len(forest.labels)
    predict(forest, row, p)
    surprise = 0.0
    for o in range(len(p)):
        surprise += (p[o] - (1.0 if o == label else 0.0)) ** 2
        forest.class_count[o] *= CLASS_MEMORY
    forest.class_count[label] += CLASS_MEMORY
    if is_drift(forest.monitor, surprise):
        forest.counters[1] = 0
        forest.grown[:] = 0
    for tree in range(len(forest.grown)):
        if forest.grown[tree] == 1:
            forest.count[tree, leaf_of(forest, tree, row), label] += weight
    place = forest.counters[0] % room
    for j in range(len(row)):
        forest.rows[place, j] = row[j]
        forest.bins[j, place] = bin_of(row[j], forest.edges[j], forest.n_edges[j])
    forest.labels[place], forest.weights[place] = label, weight
    forest.counters[0] += 1
    forest.counters[1] = min(forest.counters[1] + 1, room)
    refresh_bins(forest, scratch)
    if forest.counters[0] < LEAST or forest.counters[1] < LEAST // 2:
        return
    forest.saved[0] += WORK
    while forest.saved[0] >= forest.counters[1]:
        forest.saved[0] -= forest.counters[1]
        grow(forest, scratch, forest.counters[2])
        forest.counters[2] = (forest.counters[2] + 1) % len(forest.grown)


@njit(cache=True)
def predict_then_learn(forest, scratch, X, labels, chunk, out):
    """The prequential loop of a trial: each chunk is predicted before it is learned from."""
    for begin in range(0, len(X), chunk):
        end = min(begin + chunk, len(X))
        for t in range(begin, end):
            predict(forest, X[t], out[t])
        for t in range(begin, end):
            learn(forest, scratch, X[t], labels[t], 1.0)


# --- The trial -----------------------------------------------------------------------------------------------------

PAGE = Path(__file__).parents[1] / "docs" / "experiments.md"
MOST = 30_000  # samples
# Streams and the samples of a chunk.
STREAMS = {
    "wall_robot": 100, "segments": 100, "segments, one by one": 1, "shuttle": 100, "tails": 100, "rings": 100,
    "commuters": 100, "phishing": 100, "bananas": 100, "recurring": 100, "units": 100, "products": 100,
    "keystroke": 100, "eeg_eye_state": 100, "electricity": 500, "weather": 500, "sea": 500, "weather_aus": 500,
    "bank_additional": 500, "hflights2011": 1000,
}  # fmt: skip
MADE = {
    make.__name__: make
    for make in (
        *unseen_streams.HELD_OUT,
        unseen_streams.tails,
        unseen_streams.commuters,
        unseen_streams.products,
    )
}


def samples(name: str, rivers: dict[str, unseen_streams.Samples]) -> unseen_streams.Samples:
    """The samples of a stream, its classes as numbers."""
    if name in rivers:
        X, y = rivers[name]
    elif name in MADE:
        X, y = MADE[name](np.random.default_rng(1))
    else:
        chunks = open_stream(name, data=paper_streams.FOLDER).first(MOST)
        X, y = (np.concatenate(parts) for parts in zip(*chunks, strict=True))
    return np.ascontiguousarray(X, float), np.unique(y, return_inverse=True)[1]


def by_ensemble(X: np.ndarray, y: np.ndarray, chunk: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """What the ensemble predicts, and the evidence of its networks together, of each chunk before it is learned."""
    model, classes = DEVDANEnsemble(random_state=seed, n_jobs=1), np.arange(y.max() + 1)
    predicted, evidence = np.zeros((len(X), len(classes))), np.zeros(len(X))
    for t in range(0, len(X), chunk):
        part = slice(t, t + chunk)
        if t > 0:
            mixture = model.mixture_
            mixture._mix(X[part], predicted[part])
            evidence[part] = np.logaddexp.reduce([kernel.weigh(state) for state in mixture.networks])
        model.partial_fit(X[part], y[part], classes=classes)
    return predicted, evidence


def mixed(
    predicted: np.ndarray, evidence: np.ndarray, trees: np.ndarray, y: np.ndarray, chunk: int, before: float
) -> tuple[np.ndarray, float]:
    """The ensemble's prediction with those of the trees, weighted by recent loss as networks are; the trees' weight."""
    opinions = [trees, trees**2 / np.sum(trees**2, axis=1, keepdims=True)]
    logs = [np.log(np.maximum(one, LEAST_PROBABILITY)) for one in opinions]
    losses, out, weights = np.zeros(len(opinions)), predicted.copy(), []
    for t in range(chunk, len(y), chunk):
        part = slice(t, t + chunk)
        all_evidence = np.append(before - ETA * losses, evidence[t])
        *own, rest = np.exp(all_evidence - np.logaddexp.reduce(all_evidence))
        out[part] = rest * predicted[part] + sum(w * one[part] for w, one in zip(own, opinions, strict=True))
        weights.append(1.0 - rest)
        judged = np.arange(t, min(t + chunk, len(y)))
        judged = judged[judged % STRIDE == STRIDE - 1]
        for k in judged:
            for i, log in enumerate(logs):
                losses[i] = LOSS_MEMORY * losses[i] - log[k, y[k]] / math.sqrt(len(judged))
    return out, float(np.mean(weights))


def trial(X: np.ndarray, y: np.ndarray, chunk: int, seed: int, before: float) -> list[float]:
    """Accuracy of the ensemble, of the trees and of both; the trees' weight; microseconds per sample of each."""
    n, m = X.shape[1], int(y.max()) + 1
    out, scratch = np.zeros((len(X), m)), new_scratch(n, m)
    predict_then_learn(new_forest(n, m, seed), scratch, X[:10], y[:10], chunk, out)  # compiled before it is timed
    begin = time.process_time()
    predicted, evidence = by_ensemble(X, y, chunk, seed)
    middle = time.process_time()
    predict_then_learn(new_forest(n, m, seed), scratch, X, y, chunk, out)
    end = time.process_time()
    both, weight = mixed(predicted, evidence, out, y, chunk, before)
    rates = [100 * np.mean(one[chunk:].argmax(axis=1) == y[chunk:]) for one in (predicted, out, both)]
    return [*rates, weight, 1e6 * (middle - begin) / len(X), 1e6 * (end - middle) / len(X)]


def table(names: Iterable[str], seeds: int, before: float) -> str:
    rivers = unseen_streams.rivers()
    lines = [
        "| stream (chunk) | ensemble | trees alone | ensemble with trees | gain | weight of trees | µs | µs more |",
        "|---" * 8 + "|",
    ]
    for name in names:
        X, y = samples(name.split(",")[0], rivers)
        found = np.mean([trial(X, y, STREAMS[name], seed, before) for seed in range(seeds)], axis=0)
        own_rate, trees, both, weight, own, more = found
        lines.append(
            f"| {name} ({STREAMS[name]}) | {own_rate:.2f} | {trees:.2f} | {both:.2f} | {both - own_rate:+.2f} "
            f"| {weight:.2f} | {own:.0f} | {more:.0f} |".replace("-", "−")
        )
        print(lines[-1], flush=True)
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", default=list(STREAMS), type=lambda text: text.split(";"), help="some of them")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--before", type=float, default=0.0, help="logarithm of the trees' weight before any label")
    parser.add_argument("--write", action="store_true", help=f"put the table into {PAGE.name}")
    arguments = parser.parse_args()
    told = table(arguments.streams, arguments.seeds, arguments.before)
    if arguments.write:
        put(PAGE, "trees", told)


if __name__ == "__main__":
    main()
