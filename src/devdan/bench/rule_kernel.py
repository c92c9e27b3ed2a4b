"""The compiled part of pClass and its ensembles. docs/pensemble.md maps their steps to these functions.

A rule base is a header and four arrays, :class:`Rules`. A rule is one row of ``rows``, so adding, pruning and recalling
rules only moves rows; :func:`views` gives names to the parts of a row (compiled code calls it ``view``). The active
rules come first, followed by the rules that P+ has stored. :func:`learn` returns early if there may be no room for
another rule or if a spread must be floored, and is called again afterwards.

Nothing here allocates: the caller provides the scratch space. All compiled code of the baselines is in this file,
because Numba's disk cache does not notice an edit in another one.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from devdan.arrays import Floats, Integers
from devdan.kernel.jit import compiled, entry, inlined

NEAR = 1.0 / math.sqrt(math.log(1.0 / 0.5))  # (b): firing strength ε = 0.5 at the nearest centre, per feature
NARROWEST = 0.1  # (b): of the first rule's deviation
FLOOR = 1e-6  # (e): of a spread's eigenvalues
EVERY = 50  # (e), (f): updates after which rounding errors are corrected
REGULARISER = 1.0  # (f): R
SILENT = 1e-6  # (f): a rule with less firing strength does not learn
DEVIATIONS = 2.0  # (h): below the mean
TESTABLE = 6  # (h): among fewer rules, none can be more than two deviations below the mean
GROWN_UP = 100  # (h): samples that a rule must have seen before it can be removed
STORE = 20  # (h): rules that are kept for recall
SUREST = 0.99  # of the dynamic threshold
LEAST = 1e-30  # lower bound for a member's weight, so that it is never zero

# Words of the header.
N_FEATURES, N_CLASSES, N_RULES, N_STORED, N_SEEN, N_EVENTS = range(6)
N_NARROW = 6  # rules whose spread must be floored
HEADER = 7

# Scalars of a rule: log-volume v, support N, squared density χ², its first sample, whether its spread must be floored.
VOLUME, SUPPORT, DENSITY, BORN, NARROW = range(5)
SCALARS = 5

EVENT_SAMPLE, EVENT_KIND, EVENT_RULE, EVENT_SIZE = range(4)
EVENT = 4
ADDED, DELETED, STORED, RECALLED = range(4)  # kinds of events
EVENT_KINDS = ("rule added", "rule pruned", "rule stored", "rule recalled")  # their names

SUM, SQUARES, WEIGHTED = 0, 1, 2  # of quality: U, c, and from there on α


class Rules(NamedTuple):
    """The arrays of a rule base."""

    header: Integers
    weights: Floats  # λ, (u,): of the inputs
    quality: Floats  # U, c and α: sums of the data's qualities, and of the data weighted by them
    rows: Floats  # (room, words): active rules, then stored rules
    events: Integers  # (room, EVENT): a ring buffer: the newest overwrites the oldest


class FuzzyRule(NamedTuple):
    """A row's parts by name, as writable views."""

    scalars: Floats
    class_support: Floats  # N^o, (m,)
    centre: Floats  # C, (u,)
    consequent: Floats  # W', (m, u + 1), the offset first
    inverse: Floats  # S = Σ⁻¹, (u, u)
    covariance: Floats  # Q of the least squares, (u + 1, u + 1)


class RuleSettings(NamedTuple):
    """The options of pClass, as the kernel takes them."""

    vigilance: float  # ρ
    spread: float  # k_fs
    omega: float  # ω
    decay: float  # ϖ
    grow: bool
    prune: bool


def row_size(u: int, m: int) -> int:
    """The number of words per rule."""
    return SCALARS + m + u + m * (u + 1) + u * u + (u + 1) ** 2


def views(row: Floats, u: int, m: int) -> FuzzyRule:
    """The parts of a row by name."""
    a = SCALARS + m
    b = a + u
    c = b + m * (u + 1)
    d = c + u * u
    return FuzzyRule(
        row[:SCALARS],
        row[SCALARS:a],
        row[a:b],
        row[b:c].reshape(m, u + 1),
        row[c:d].reshape(u, u),
        row[d : d + (u + 1) * (u + 1)].reshape(u + 1, u + 1),
    )


view = compiled(views)


def new_rules(u: int, m: int, room: int, events: int) -> Rules:
    """An empty rule base."""
    header = np.zeros(HEADER, np.int64)
    header[:2] = u, m
    return Rules(
        header,
        np.ones(u),
        np.zeros(WEIGHTED + u),
        np.zeros((room, row_size(u, m))),
        np.zeros((events, EVENT), np.int64),
    )


class RuleWork(NamedTuple):
    """Scratch space for one sample."""

    x: Floats  # (u,): λ∘x
    offset: Floats  # (u,): x − C
    deviations: Floats  # (u,): σ of a candidate rule
    bent: Floats  # (u + 1,): S (x − C), or Q x_e
    faded: Floats  # (u + 1,): Q W
    distances: Floats  # (room,): d²
    strengths: Floats  # (room,): Λ
    factor: Floats  # (u, u): Cholesky's


def scratch_for(rules: Rules) -> Floats:
    """The scratch space needed for these rules."""
    u = int(rules.header[N_FEATURES])
    return np.empty(5 * (u + 1) + 2 * len(rules.rows) + u * u)


def work_views(rules: Rules, scratch: Floats) -> RuleWork:
    u, room = rules.header[N_FEATURES], len(rules.rows)
    features = scratch[: 5 * (u + 1)].reshape(5, u + 1)
    a = 5 * (u + 1)
    b = a + 2 * room
    return RuleWork(
        features[0, :u],
        features[1, :u],
        features[2, :u],
        features[3],
        features[4],
        scratch[a : a + room],
        scratch[a + room : b],
        scratch[b : b + u * u].reshape(u, u),
    )


unpack_work = inlined(work_views)


# --- Rows: adding, moving and removing rules -----------------------------------------------------------------------


@compiled
def note(rules: Rules, kind: int, rule: int) -> None:
    """Store an event."""
    event = rules.events[rules.header[N_EVENTS] % len(rules.events)]
    event[EVENT_SAMPLE] = rules.header[N_SEEN]
    event[EVENT_KIND] = kind
    event[EVENT_RULE] = rule
    event[EVENT_SIZE] = rules.header[N_RULES]
    rules.header[N_EVENTS] += 1


@compiled
def move(rows: Floats, start: int, end: int) -> None:
    """Move a row to another position; the rows between shift."""
    step = 1 if end > start else -1
    for i in range(start, end, step):
        for j in range(rows.shape[1]):
            rows[i, j], rows[i + step, j] = rows[i + step, j], rows[i, j]


@compiled
def delete_rule(rules: Rules, i: int) -> None:
    header = rules.header
    move(rules.rows, i, header[N_RULES] + header[N_STORED] - 1)
    header[N_RULES] -= 1
    note(rules, DELETED, i)


@compiled
def store_rule(rules: Rules, i: int) -> None:
    """Move an active rule to the store; if the store is full, delete its least dense rule."""
    header = rules.header
    move(rules.rows, i, header[N_RULES] - 1)
    header[N_RULES] -= 1
    header[N_STORED] += 1
    note(rules, STORED, i)
    if header[N_STORED] > STORE:
        first, last = header[N_RULES], header[N_RULES] + header[N_STORED]
        least = first
        for k in range(first, last):
            if rules.rows[k, DENSITY] < rules.rows[least, DENSITY]:
                least = k
        move(rules.rows, least, last - 1)
        header[N_STORED] -= 1


@compiled
def recall_rule(rules: Rules, i: int) -> None:
    """Make a stored rule active again."""
    header = rules.header
    move(rules.rows, i, header[N_RULES])
    header[N_RULES] += 1
    header[N_STORED] -= 1
    note(rules, RECALLED, header[N_RULES] - 1)


# --- 1.1 Output ----------------------------------------------------------------------------------------------------


@compiled
def add_rows(x: Floats, matrix: Floats, y: Floats) -> None:
    """y += x · matrix, four rows at a time, so that y is loaded and stored a quarter as often."""
    n, length = matrix.shape
    whole = n - n % 4
    for i in range(0, whole, 4):
        a, b, c, d = x[i], x[i + 1], x[i + 2], x[i + 3]
        for j in range(length):
            y[j] += a * matrix[i, j] + b * matrix[i + 1, j] + c * matrix[i + 2, j] + d * matrix[i + 3, j]
    for i in range(whole, n):
        for j in range(length):
            y[j] += x[i] * matrix[i, j]


@compiled
def distance2(x: Floats, centre: Floats, inverse: Floats, offset: Floats, bent: Floats) -> float:
    """d² = (x − C)ᵀ S (x − C); also computes x − C and S (x − C)."""
    u = len(centre)
    total = 0.0
    for j in range(u):
        offset[j] = x[j] - centre[j]
        bent[j] = 0.0
    add_rows(offset, inverse, bent)
    for j in range(u):
        total += offset[j] * bent[j]
    return max(total, 0.0)


@compiled
def measure(rules: Rules, x: Floats, first: int, last: int, distances: Floats, offset: Floats, bent: Floats) -> None:
    """d² of the rows from ``first`` up to ``last``."""
    u, m = rules.header[N_FEATURES], rules.header[N_CLASSES]
    for i in range(first, last):
        rule = view(rules.rows[i], u, m)
        distances[i] = distance2(x, rule.centre, rule.inverse, offset, bent)


@compiled
def fire(distances: Floats, strengths: Floats, n_rules: int) -> None:
    """Λ = R / ΣR with R = exp(−½ d²), scaled so that the nearest rule has R = 1, to avoid 0/0 for distant samples."""
    nearest, total = math.inf, 0.0
    for i in range(n_rules):
        nearest = min(nearest, distances[i])
    for i in range(n_rules):
        strengths[i] = math.exp(-0.5 * (distances[i] - nearest))
        total += strengths[i]
    for i in range(n_rules):
        strengths[i] /= total


@compiled
def linear(consequent: Floats, x: Floats, o: int) -> float:
    """x_eᵀ W of one output."""
    total = float(consequent[o, 0])
    for j in range(len(x)):
        total += consequent[o, j + 1] * x[j]
    return total


@compiled
def weigh(weights: Floats, raw: Floats, x: Floats) -> None:
    """λ∘x, used as x everywhere in a rule base."""
    for j in range(len(x)):
        x[j] = weights[j] * raw[j]


@entry
def firings(rules: Rules, scratch: Floats, X: Floats, out: Floats) -> None:
    """Λ, one row of ``out`` per sample; rule by rule, so that each rule is loaded once."""
    u, m, n_rules = rules.header[N_FEATURES], rules.header[N_CLASSES], rules.header[N_RULES]
    work = unpack_work(rules, scratch)
    for i in range(n_rules):
        rule = view(rules.rows[i], u, m)
        for t in range(len(X)):
            weigh(rules.weights, X[t], work.x)
            out[t, i] = distance2(work.x, rule.centre, rule.inverse, work.offset, work.bent)
    for t in range(len(X)):
        fire(out[t], out[t], n_rules)


@entry
def outputs(rules: Rules, scratch: Floats, X: Floats, strengths: Floats, out: Floats) -> None:
    """y = Σ_i Λ_i · x_eᵀ W_i, one row of ``out`` per sample, for given Λ."""
    u, m = rules.header[N_FEATURES], rules.header[N_CLASSES]
    work = unpack_work(rules, scratch)
    for t in range(len(X)):
        weigh(rules.weights, X[t], work.x)
        for o in range(m):
            out[t, o] = 0.0
        for i in range(rules.header[N_RULES]):
            rule = view(rules.rows[i], u, m)
            for o in range(m):
                out[t, o] += strengths[t, i] * linear(rule.consequent, work.x, o)


# --- 1.3 (a) Datum quality -----------------------------------------------------------------------------------------


@compiled
def scatter(quality: Floats, z: Floats) -> float:
    """DQ(z)⁻² − 1: the distance of z from the data so far, each weighted by its quality; 0 if there are none."""
    if quality[SUM] == 0.0:
        return 0.0
    total = float(quality[SQUARES] / quality[SUM])
    for j in range(len(z)):
        total += z[j] * (z[j] - 2.0 * quality[WEIGHTED + j] / quality[SUM])
    return max(total, 0.0)


@compiled
def add_datum(quality: Floats, x: Floats, own: float) -> None:
    """Add a datum, weighted by its quality."""
    quality[SUM] += own
    for j in range(len(x)):
        quality[WEIGHTED + j] += own * x[j]
        quality[SQUARES] += own * x[j] * x[j]


# --- 1.3 (b), (c), (d) Growing -------------------------------------------------------------------------------------


@compiled
def find_winner(rows: Floats, distances: Floats, n_rules: int) -> int:
    """The rule with the largest posterior, −½ d² − ½ v + ln π with π proportional to ln(N + 1); −1 if there is none."""
    winner, largest = -1, -math.inf
    for i in range(n_rules):
        posterior = -0.5 * (distances[i] + rows[i, VOLUME]) + math.log(math.log(rows[i, SUPPORT] + 1.0))
        if posterior > largest:
            winner, largest = i, posterior
    return winner


@compiled
def is_remarkable(rules: Rules, x: Floats, own: float) -> bool:
    """Condition B: its quality is above or below that of all centres; ``own`` is its scatter."""
    u, m = rules.header[N_FEATURES], rules.header[N_CLASSES]
    above, below = True, True
    for i in range(rules.header[N_RULES]):
        other = scatter(rules.quality, view(rules.rows[i], u, m).centre)
        above = above and own < other
        below = below and own > other
    return above or below


@compiled
def share_of_volume(rows: Floats, i: int, n_rules: int) -> float:
    """V_i / ΣV from log-volumes."""
    total = 0.0
    for k in range(n_rules):
        total += math.exp(min(rows[k, VOLUME] - rows[i, VOLUME], 700.0))
    return 1.0 / total


@compiled
def candidate(rules: Rules, x: Floats, spread: float, deviations: Floats) -> float:
    """The deviations σ of a candidate rule at x, from its nearest centre; returns its log-volume."""
    u, m = rules.header[N_FEATURES], rules.header[N_CLASSES]
    nearest, least = 0, math.inf
    for i in range(rules.header[N_RULES]):
        centre = view(rules.rows[i], u, m).centre
        length = 0.0
        for j in range(u):
            length += (x[j] - centre[j]) ** 2
        if length < least:
            nearest, least = i, length
    centre = view(rules.rows[nearest], u, m).centre
    volume = 0.0
    for j in range(u):
        deviations[j] = max(abs(x[j] - centre[j]) * NEAR, NARROWEST * math.sqrt(spread))
        volume += 2.0 * math.log(deviations[j])
    return volume


@compiled
def should_grow(
    rules: Rules, settings: RuleSettings, x: Floats, scattered: float, winner: int, deviations: Floats
) -> bool:
    """The conditions A, B and (c), once there were more samples than a consequent has weights.

    The first rule is always added. Stores the deviations of the new rule in the scratch space.
    """
    header, rows = rules.header, rules.rows
    if winner < 0:
        for j in range(len(x)):
            deviations[j] = math.sqrt(settings.spread)
        return True
    if not settings.grow or header[N_SEEN] <= header[N_FEATURES] + 1:
        return False
    if share_of_volume(rows, winner, header[N_RULES]) < settings.vigilance:  # (c)
        return False
    if not is_remarkable(rules, x, scattered):  # B
        return False
    volume = candidate(rules, x, settings.spread, deviations)
    for i in range(header[N_RULES]):
        if volume < rows[i, VOLUME]:
            return False
    return True  # A


@compiled
def write_rule(rules: Rules, place: int, x: Floats, label: int, deviations: Floats, omega: float, winner: int) -> None:
    """A rule at x whose consequent is the winner's, if there is one."""
    u, m = rules.header[N_FEATURES], rules.header[N_CLASSES]
    rule = view(rules.rows[place], u, m)
    for j in range(rules.rows.shape[1]):
        rules.rows[place, j] = 0.0
    rule.scalars[SUPPORT] = 1.0
    rule.scalars[DENSITY] = 1.0
    rule.scalars[BORN] = rules.header[N_SEEN]
    rule.class_support[label] = 1.0
    for j in range(u):
        rule.centre[j] = x[j]
        rule.inverse[j, j] = deviations[j] ** -2.0
        rule.scalars[VOLUME] += 2.0 * math.log(deviations[j])
    for j in range(u + 1):
        rule.covariance[j, j] = omega
    if winner >= 0:
        consequent = view(rules.rows[winner], u, m).consequent
        for o in range(m):
            for j in range(u + 1):
                rule.consequent[o, j] = consequent[o, j]


@compiled
def add_rule(rules: Rules, settings: RuleSettings, x: Floats, label: int, deviations: Floats, winner: int) -> None:
    """(d) Recall a stored rule that is denser than all active rules; otherwise add a new rule."""
    header, rows = rules.header, rules.rows
    n_rules, n_all = header[N_RULES], header[N_RULES] + header[N_STORED]
    densest = 0
    for i in range(n_all):
        if rows[i, DENSITY] > rows[densest, DENSITY]:
            densest = i
    if densest >= n_rules > 0:
        recall_rule(rules, densest)
        return
    write_rule(rules, n_all, x, label, deviations, settings.omega, winner)
    move(rows, n_all, n_rules)
    header[N_RULES] += 1
    note(rules, ADDED, n_rules)


# --- 1.3 (e) Adapting the winner -----------------------------------------------------------------------------------


@compiled
def adapt(rule: FuzzyRule, x: Floats, label: int, offset: Floats, bent: Floats, factor: Floats) -> bool:
    """Update the winner's running mean and covariance, the latter as its inverse and log-volume.

    Returns whether, after some updates, the covariance must be floored.
    """
    u = len(x)
    a = 1.0 / (rule.scalars[SUPPORT] + 1.0)
    q = distance2(x, rule.centre, rule.inverse, offset, bent)
    shrunk, bend = 1.0 / (1.0 - a), a / ((1.0 - a) * (1.0 + a * q))
    for j in range(u):
        for k in range(u):
            rule.inverse[j, k] = shrunk * rule.inverse[j, k] - bend * bent[j] * bent[k]
        rule.centre[j] += a * offset[j]
    rule.scalars[VOLUME] += u * math.log(1.0 - a) + math.log(1.0 + a * q)
    rule.scalars[SUPPORT] += 1.0
    rule.class_support[label] += 1.0
    if int(rule.scalars[SUPPORT] - 1.0) % EVERY > 0:
        return False
    symmetrise(rule.inverse)
    rule.scalars[NARROW] = 0.0 if is_above_floor(rule.inverse, factor) else 1.0
    return bool(rule.scalars[NARROW] == 1.0)


@compiled
def symmetrise(matrix: Floats) -> None:
    """Restore the symmetry of a matrix after rounding."""
    for j in range(len(matrix)):
        for k in range(j):
            matrix[j, k] = matrix[k, j] = 0.5 * (matrix[j, k] + matrix[k, j])


@compiled
def is_above_floor(inverse: Floats, factor: Floats) -> bool:
    """Whether all eigenvalues of Σ are: then I / floor − S has a Cholesky factor, which needs no decomposition."""
    for j in range(len(inverse)):
        for k in range(j + 1):
            total = (1.0 / FLOOR if j == k else 0.0) - inverse[j, k]
            for i in range(k):
                total -= factor[j, i] * factor[k, i]
            if k < j:
                factor[j, k] = total / factor[k, k]
            elif total > 0.0:
                factor[j, j] = math.sqrt(total)
            else:
                return False
    return True


def floor_spreads(rules: Rules) -> None:
    """Floor the eigenvalues of every Σ that needs it; otherwise, constant features would make S overflow."""
    header = rules.header
    for row in rules.rows[: header[N_RULES] + header[N_STORED]]:
        if row[NARROW] == 1.0:
            rule = views(row, int(header[N_FEATURES]), int(header[N_CLASSES]))
            values, vectors = np.linalg.eigh(rule.inverse)
            values = np.where((values > 0.0) & (values < 1.0 / FLOOR), values, 1.0 / FLOOR)
            rule.inverse[:] = (vectors * values) @ vectors.T
            rule.scalars[VOLUME] = -np.log(values).sum()
            rule.scalars[NARROW] = 0.0
    header[N_NARROW] = 0


# --- 1.3 (f) Local recursive least squares -------------------------------------------------------------------------


@compiled
def step_consequent(
    rule: FuzzyRule, x: Floats, label: int, strength: float, decay: float, bent: Floats, faded: Floats
) -> None:
    """FWGRLS on the rule's own error: ψ = Q x_e / (R / Λ + x_eᵀ Q x_e), W ← W − ϖ Q W + ψ (t − x_eᵀ W)ᵀ."""
    Q, W = rule.covariance, rule.consequent
    u, m = len(x), len(W)
    for j in range(u + 1):
        bent[j] = Q[0, j]
    add_rows(x, Q[1:], bent)
    total = REGULARISER / strength + bent[0]
    for j in range(u):
        total += bent[j + 1] * x[j]
    for j in range(u + 1):
        gain = bent[j] / total
        for k in range(u + 1):
            Q[j, k] -= gain * bent[k]
    for o in range(m):
        error = (1.0 if o == label else 0.0) - linear(W, x, o)
        for j in range(u + 1):
            faded[j] = 0.0
        add_rows(W[o], Q, faded)
        for j in range(u + 1):
            W[o, j] += bent[j] / total * error - decay * faded[j]


# --- 1.3 (g), (h) Density and pruning ------------------------------------------------------------------------------


@compiled
def step_density(rows: Floats, distances: Floats, n_rows: int, n: int) -> None:
    """P+: the potential of active and stored rules over the n samples so far."""
    if n <= 2:
        return
    for i in range(n_rows):
        chi2 = rows[i, DENSITY]
        part = (n - 1.0) * chi2
        rows[i, DENSITY] = part / (part + (n - 2.0) * (1.0 - chi2) + chi2 * distances[i])


@compiled
def low(values: Floats, n_values: int) -> float:
    """The mean minus two deviations."""
    mean, square = 0.0, 0.0
    for i in range(n_values):
        mean += values[i] / n_values
    for i in range(n_values):
        square += (values[i] - mean) ** 2 / n_values
    return mean - DEVIATIONS * math.sqrt(square)


@compiled
def prune(rules: Rules, values: Floats) -> None:
    """Delete rules with too little influence (ERS); store those too far from the data (P+)."""
    header, rows = rules.header, rules.rows
    u, m = header[N_FEATURES], header[N_CLASSES]
    if header[N_RULES] >= TESTABLE:
        n_rules = header[N_RULES]
        for i in range(n_rules):
            consequent = view(rows[i], u, m).consequent
            values[i] = 0.0
            for o in range(m):
                for j in range(u + 1):
                    values[i] += abs(consequent[o, j])
            values[i] *= share_of_volume(rows, i, n_rules)
        least = low(values, n_rules)
        for i in range(n_rules - 1, -1, -1):
            if values[i] < least and header[N_SEEN] - rows[i, BORN] > GROWN_UP:
                delete_rule(rules, i)
    if header[N_RULES] >= TESTABLE:
        n_rules = header[N_RULES]
        for i in range(n_rules):
            values[i] = math.sqrt(rows[i, DENSITY])
        least = low(values, n_rules)
        for i in range(n_rules - 1, -1, -1):
            if values[i] < least and header[N_SEEN] - rows[i, BORN] > GROWN_UP:
                store_rule(rules, i)


# --- 1.3 One sample, and a chunk -----------------------------------------------------------------------------------


@entry
def learn(rules: Rules, settings: RuleSettings, scratch: Floats, X: Floats, labels: Integers, start: int) -> int:
    """Learn from the samples from ``start`` on, in order; returns the index where it stopped.

    It stops before a sample for which there may be no room, and whenever spreads must be floored.
    """
    header, rows = rules.header, rules.rows
    u, m = header[N_FEATURES], header[N_CLASSES]
    work = unpack_work(rules, scratch)
    x, distances, strengths = work.x, work.distances, work.strengths
    for t in range(start, len(X)):
        if header[N_NARROW] > 0 or header[N_RULES] + header[N_STORED] == len(rows):
            return t
        weigh(rules.weights, X[t], x)
        header[N_SEEN] += 1
        scattered = scatter(rules.quality, x)  # (a)
        measure(rules, x, 0, header[N_RULES] + header[N_STORED], distances, work.offset, work.bent)
        winner = find_winner(rows, distances, header[N_RULES])
        if should_grow(rules, settings, x, scattered, winner, work.deviations):  # (b), (c)
            add_rule(rules, settings, x, labels[t], work.deviations, winner)  # (d)
            measure(rules, x, 0, header[N_RULES] + header[N_STORED], distances, work.offset, work.bent)
        else:
            a, q = 1.0 / (rows[winner, SUPPORT] + 1.0), distances[winner]
            header[N_NARROW] += adapt(view(rows[winner], u, m), x, labels[t], work.offset, work.bent, work.factor)
            distances[winner] = (1.0 - a) * q / (1.0 + a * q)  # (e): what it is with the new centre and spread
        add_datum(rules.quality, x, 1.0 / math.sqrt(1.0 + scattered))
        fire(distances, strengths, header[N_RULES])
        for i in range(header[N_RULES]):  # (f)
            if strengths[i] >= SILENT:
                rule = view(rows[i], u, m)
                step_consequent(rule, x, labels[t], strengths[i], settings.decay, work.bent, work.faded)
                if header[N_SEEN] % EVERY == 0:
                    symmetrise(rule.covariance)
        step_density(rows, distances, header[N_RULES] + header[N_STORED], header[N_SEEN])  # (g)
        if settings.prune:
            prune(rules, strengths)  # (h)
    return len(X)


# --- 2.3 Penalty and reward, 3 active learning ---------------------------------------------------------------------


@compiled
def reward(sample: Floats, label: int, weights: Floats, errors: Floats, penalty: float) -> None:
    """Update each member's weight and error with one label; ``sample`` holds the members' outputs."""
    m = sample.shape[1]
    for k in range(len(weights)):
        best = 0
        for o in range(m):
            error = sample[k, o] - (1.0 if o == label else 0.0)
            errors[k] += error * error / m
            if sample[k, o] > sample[k, best]:
                best = o
        weights[k] = min((2.0 - penalty) * weights[k], 1.0) if best == label else max(penalty * weights[k], LEAST)


@entry
def judge(answers: Floats, labels: Integers, weights: Floats, errors: Floats, penalty: float) -> None:
    """Penalty and reward for a chunk, sample by sample; ``answers`` are (member, sample, output)."""
    for t in range(answers.shape[1]):
        reward(answers[:, t], labels[t], weights, errors, penalty)


class Policy(NamedTuple):
    """When to ask for a label."""

    penalty: float
    step: float  # s of the dynamic threshold, or 0
    budget: float  # the largest share of labels
    forced: int  # samples at a chunk's start that are always asked for


@entry
def ask(
    answers: Floats,
    inputs: Floats,
    labels: Integers,
    weights: Floats,
    errors: Floats,
    threshold: Floats,
    counts: Integers,
    policy: Policy,
    asked: npt.NDArray[np.bool_],
) -> None:
    """Choose the labels to use, and reward or penalise the members by these alone; writes the choice to ``asked``.

    A label is skipped if the members together, or the rules' classes at this input (``inputs``), leave no conflict.
    ``threshold`` (one number) and ``counts`` (samples, labels asked for) carry over from chunk to chunk.
    """
    _, n, m = answers.shape
    for t in range(n):
        counts[0] += 1
        sure = max(certainty(answers[:, t], weights), inputs[t]) > threshold[0]
        within = counts[1] + 1 <= policy.budget * counts[0]
        asked[t] = t < policy.forced or t == n - 1 or (not sure and within)
        if asked[t]:
            counts[1] += 1
            reward(answers[:, t], labels[t], weights, errors, policy.penalty)
        if policy.step > 0.0:
            factor = 1.0 - policy.step if asked[t] else 1.0 + policy.step
            threshold[0] = min(max(threshold[0] * factor, 1.0 / m), SUREST)


@compiled
def certainty(sample: Floats, weights: Floats) -> float:
    """y₁ / (y₁ + y₂) for the ensemble's two largest outputs, within [0, 1]; 1 if there is only one output."""
    m = sample.shape[1]
    first, second = -math.inf, -math.inf
    for o in range(m):
        y = 0.0
        for k in range(len(weights)):
            y += weights[k] * sample[k, o]
        if y > first:
            first, second = y, first
        elif y > second:
            second = y
    if m == 1:
        return 1.0
    total = first + second
    return min(max(first / total, 0.0), 1.0) if total > 0.0 else 0.0


@entry
def class_masses(rules: Rules, scratch: Floats, X: Floats, top: Floats, mass: Floats) -> None:
    """Add Σ_i P(o | i) P(x | i) P(i) of a member's rules to ``mass`` (sample, class), divided by e^``top``.

    P(o | i) = (N_i^o + 1) / (N_i + m), P(x | i) is Gaussian, P(i) is proportional to N_i.
    """
    u, m, n_rules = rules.header[N_FEATURES], rules.header[N_CLASSES], rules.header[N_RULES]
    work = unpack_work(rules, scratch)
    for t in range(len(X)):
        weigh(rules.weights, X[t], work.x)
        measure(rules, work.x, 0, n_rules, work.distances, work.offset, work.bent)
        for i in range(n_rules):
            rule = view(rules.rows[i], u, m)
            log_mass = -0.5 * (work.distances[i] + rule.scalars[VOLUME]) + math.log(rule.scalars[SUPPORT])
            if log_mass > top[t]:
                for o in range(m):
                    mass[t, o] *= math.exp(top[t] - log_mass)
                top[t] = log_mass
            weight = math.exp(log_mass - top[t]) / (rule.scalars[SUPPORT] + m)
            for o in range(m):
                mass[t, o] += weight * (rule.class_support[o] + 1.0)
