"""DEVDAN, slow and obvious: the oracle for the kernel.

Every statistic is computed from the whole history, as a weighted mean of all its values; every layer is a matrix
product. All numbers are written out here, none is the kernel's. Only the random generator is, in Python's integers.
"""

import functools
import math

import numpy as np


def sigmoid(a):
    return 1 / (1 + np.exp(-a))


def softmax(a):
    e = np.exp(a - a.max())
    return e / e.sum()


class Random:
    """SplitMix64."""

    def __init__(self, word):
        self.word = word

    def uniform(self):
        mask = 2**64 - 1
        self.word = (self.word + 0x9E3779B97F4A7C15) & mask
        z = self.word
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        return ((z ^ (z >> 31)) >> 11) / 2**53

    def normal(self, variance):
        radius = math.sqrt(-2 * variance * math.log(1 - self.uniform()))
        return radius * math.cos(2 * math.pi * self.uniform())


class Monitor:
    """Means and deviations of all values so far; the condition compares the last ones with their minima."""

    def __init__(self, first):
        self.first = first  # the value with which the minima start
        self.values, self.means, self.stds = [], [], []
        self.start = None  # where the minima start

    def watch(self, value):
        self.values.append(value)
        self.means.append(np.mean(self.values))
        self.stds.append(np.std(self.values))
        if self.start is None and len(self.values) >= self.first:
            self.start = len(self.values) - 1

    def fires(self, confidence):
        if self.start is None or self.stds[-1] == 0:
            return False
        least_mean, least_std = min(self.means[self.start :]), min(self.stds[self.start :])
        self.cause = self.means[-1] + self.stds[-1], least_mean + confidence * least_std
        fired = self.cause[0] >= self.cause[1]
        if fired:
            self.start = None
        return fired


@functools.cache
def powers(memory):
    """What is left of a value after 0, 1, 2, ... later ones."""
    return (1 - 1 / memory) ** np.arange(30_000)


def recent_weights(n, memory):
    """What each of n values counts for in their mean: the first ones alike, as many as the memory, and each later one
    is taken in at a share of 1 / memory, at the expense of all before it.
    """
    first = min(n, max(math.floor(memory), 1))
    left = powers(max(memory, 1))
    return np.concatenate([np.full(first, left[n - first] / first), left[: n - first][::-1] / max(memory, 1)])


def recent(values, memory):
    """Mean and standard deviation; what is always the same has none, however its mean is rounded."""
    if values.min() == values.max():
        return values[0], 0.0
    weights = recent_weights(len(values), memory)
    mean = weights @ values
    return mean, math.sqrt(weights @ (values - mean) ** 2)


class Surprise:
    """Two exponential means of all values since they last parted, one with a short memory."""

    def __init__(self, may_fall):
        self.may_fall = may_fall  # which starts them anew, too
        self.values = np.zeros(0)

    def drifts(self, value):
        self.values = np.append(self.values, value)
        if len(self.values) < 300:
            return False
        late = recent_weights(len(self.values), 200) @ self.values
        past, std = recent(self.values, 10_000)
        change = (late - past) * math.sqrt(399) / max(std, 0.1)
        if (-4 if self.may_fall else -math.inf) <= change <= 4:
            return False
        self.values, self.cause = np.zeros(0), (change, 4)
        return change > 4


class ClassSurprise:
    """By how many deviations values were above those before them, added up while that is more than none."""

    def __init__(self):
        self.values, self.sum = np.zeros(0), 0.0

    def drifts(self, value):
        if len(self.values) >= 50:
            mean, std = recent(self.values, 10_000)
            self.sum = max(self.sum + min((value - mean) / max(std, 0.3), 3) - 0.5, 0)
        self.values = np.append(self.values, value)
        if self.sum <= 10:
            return False
        self.cause = self.sum, 10
        self.values, self.sum = np.zeros(0), 0.0
        return True


class Phase:
    def __init__(self, name, n_features):
        self.name = name
        self.inputs = np.zeros((0, n_features))
        self.surprise = Surprise(name == "discriminative")
        self.bias2, self.variance = Monitor(2), Monitor(n_features + 2)


class Naive:
    """One network; with a time scale it starts from as many units and replays as many samples as that says."""

    def __init__(self, n_features, word, options, scale=None):
        self.n, self.options, self.random = n_features, options, Random(word)
        n_hidden, self.rehearse, self.reach, self.fields = (*(scale or [options.n_hidden]), 0, 0, 0)[:4]
        self.horizon = max(self.reach, 100) if self.reach else 2000  # of the scaling
        self.buffer = []  # samples, their labels and weights
        self.ranked = {}  # by skewed feature: where its fields are
        self.seen = np.zeros((0, n_features))  # what the scaling has learned from
        self.ranges, self.n_ranged = [[[] for _ in range(n_features)]], 0  # values taught, by the horizon and feature
        self.n_seen = self.taught = self.observed = 0
        self.of_class = {}  # monitors of rare classes
        self.generative = Phase("generative", self.n)
        self.discriminative = Phase("discriminative", self.n)
        self.there = np.ones((self.n * (1 + self.fields), n_hidden), bool)
        if self.fields:  # half of the units see features through these, the others as they are
            self.there[self.n :, : n_hidden // 2] = self.there[: self.n, n_hidden // 2 :] = False
        self.W = np.array([self.first_weights(weights) for weights in self.there.T]).T
        self.b, self.c = np.zeros(n_hidden), np.zeros(self.n)
        self.output, self.eta = np.zeros((n_hidden, 0)), np.zeros(0)
        self.velocity = {name: np.zeros_like(getattr(self, name)) for name in ("W", "b", "output", "eta")}
        self.square = {name: np.zeros_like(getattr(self, name)) for name in ("b", "eta")}  # of the gradients, the mean
        self.slow = {name: getattr(self, name).copy() for name in ("W", "b", "output", "eta")}
        self.losses, self.averaged_since = np.zeros(2), 0  # of the predictors: weights, averages
        self.names = range(1000)  # what the classes are called in the option, in the order of the outputs
        self.labels, self.label_weights = np.zeros(0, int), np.zeros(0)  # all that was taught
        self.events = []

    # scaling

    def scale(self, row):
        """The scaled sample, NaN where it is missing, and the reconstruction's target."""
        x = np.clip(row, -1e150, 1e150)
        for j in np.flatnonzero(~np.isnan(row)):
            if self.options.scaling == "minmax":
                low, high = self.range(self.seen[:, j])
                x[j] = np.clip((x[j] - low) / (high - low), 0, 1) if high > low else 0
            elif self.options.scaling == "standard":
                mean, std = self.location(j)
                x[j] = np.clip((x[j] - mean) / std, -5, 5) if std > 0 else 0
            else:
                x[j] = np.clip(x[j], 0, 1)
        return x, sigmoid(x) if self.options.scaling == "standard" else x

    def within(self, row):
        """Values beyond the two latest ranges, as their ends."""
        if self.options.scaling != "standard" or self.n_ranged < 100:
            return row
        row = row.copy()
        for j in range(self.n):
            known = [value for window in self.ranges[-2:] for value in window[j]]
            row[j] = np.clip(row[j], min(known), max(known)) if known else row[j]
        return row

    def widen(self, row):
        self.n_ranged += 1
        if self.n_ranged > 1 and (self.n_ranged - 1) % self.horizon == 0:
            self.ranges.append([[] for _ in row])
        for j in np.flatnonzero(~np.isnan(row)):
            self.ranges[-1][j].append(np.clip(row[j], -1e150, 1e150))

    def range(self, values):
        values = np.clip(values[~np.isnan(values)], -1e150, 1e150)
        return (values.min(), values.max()) if len(values) else (0, 0)

    def location(self, j):
        values = np.clip(self.seen[:, j][~np.isnan(self.seen[:, j])], -1e150, 1e150)
        return recent(values, self.horizon) if len(values) else (math.nan, math.nan)

    def varied(self, values):
        return self.options.scaling is None or len(np.unique(values[~np.isnan(values)])) > 1

    # the network

    def first_weights(self, there):
        """Of one unit; those that are not there stay zero."""
        return [self.random.normal(32 / (there.sum() + 1)) if one else 0 for one in there]

    def see(self, row):
        """What the hidden units see of a sample: the scaled features, and each that has varied through its fields."""
        x = self.scale(row)[0]
        within = (x + 2.5) / 5 if self.options.scaling == "standard" else x
        place = np.clip(self.fields * within - 0.5, 0, max(self.fields - 1, 0))
        for j, places in self.ranked.items():  # each of the steps between places that is left behind counts 1
            beyond, steps = np.clip(row[j], -1e150, 1e150) - places[:-1], np.diff(places)
            part = np.where(steps > 0, beyond / np.where(steps > 0, steps, 1), 0.5 * (1 + np.sign(beyond)))
            place[j] = (place[j] + np.clip(part, 0, 1).sum()) / 2
        place[[not self.varied(values) for values in self.seen.T]] = np.nan
        fields = [np.maximum(1 - np.abs(at - np.arange(self.fields)), 0) for at in place]
        return np.nan_to_num(np.concatenate([x, *fields]))

    def corrupt(self, x):
        x = x.copy()
        if self.options.masking == 0 or self.n == 1:
            return x
        n_masked = min(max(math.floor(self.options.masking * self.n + 0.5), 1), self.n - 1)
        masks = n_masked <= self.n // 2
        drawn = set()
        while len(drawn) < (n_masked if masks else self.n - n_masked):
            drawn.add(int(self.random.uniform() * self.n))
        for j in range(self.n):
            if (j in drawn) == masks and not np.isnan(x[j]):
                x[j] = 0
        return x

    def expected_input(self, phase):
        past = phase.inputs
        result = np.zeros(self.n)
        for j in range(self.n):
            values = past[:, j][~np.isnan(past[:, j])]
            if len(values):
                result[j] = values.mean() / math.sqrt(1 + math.pi * values.var() / 8)
        return result

    def outputs(self, phase, y):
        if phase.name == "generative":
            return sigmoid(y @ self.W.T + self.c)
        return softmax(y @ self.output + self.eta)

    def learn(self, phase, x, target, counts, weight):
        """Grow or prune, then one SGD step on the weighted loss; ``counts`` are the outputs that count."""
        phase.inputs = np.vstack([phase.inputs, x])
        x = np.nan_to_num(x)
        y = sigmoid(x @ self.W + self.b)
        z = self.outputs(phase, y)
        expected_y = sigmoid(self.expected_input(phase) @ self.W + self.b)
        expected_z = self.outputs(phase, expected_y)
        bias2 = ((expected_z - target) ** 2)[counts].max()
        variance = (self.outputs(phase, expected_y**2) - expected_z**2)[counts].mean()

        self.watch(phase, z, target)
        phase.bias2.watch(bias2)
        grows = self.options.grow and phase.bias2.fires(1.3 * math.exp(-bias2) + 0.7)
        if grows:
            self.grow(phase, x, target, counts, np.where(counts, z - target, 0))
        phase.variance.watch(variance)
        prunes = not grows and self.options.prune and phase.variance.fires(2 * (1.3 * math.exp(-variance) + 0.7))
        prunes = prunes and len(self.b) > 1
        if prunes:
            self.prune(phase, int(expected_y.argmin()))
        if grows or prunes:
            phase.bias2.start = phase.variance.start = None

        self.descend(phase, x, target, counts, weight)

    def watch(self, phase, z, target):
        """Drifts of all samples, after which those of rare classes are looked for anew."""
        if phase.surprise.drifts(self.surprise(phase, z, target)):
            self.note(phase, "drift", 0, phase.surprise.cause)
            if phase.name == "discriminative":
                self.of_class = {}

    def watch_class(self, label, p):
        """A class under a fifth of the labels, and under half of an even share, has a monitor of its own."""
        counts = self.counts()
        if counts.get(label, 0) < min(0.2, 0.5 / max(len(counts), 1)) * sum(counts.values()):
            own = self.of_class.setdefault(label, ClassSurprise())
            if own.drifts(-math.log(max(p[label], 1e-4))):
                self.note(self.discriminative, "drift", 0, own.cause, self.names[label])

    def descend(self, phase, x, target, counts, weight):
        """One SGD step."""
        y = sigmoid(x @ self.W + self.b)
        error = np.where(counts, self.outputs(phase, y) - target, 0)
        if phase.name == "generative":
            error = weight * error
            delta = (error @ self.W) * y * (1 - y)
            rate = self.options.generative_learning_rate
            self.W = self.W - rate * (np.outer(error, y) + np.outer(x, delta))
            self.b = self.b - rate * delta
            self.c = self.c - rate * error
            return
        if self.options.optimizer == "adaptive":
            error = error + 0.05 * (target - 1 / len(target))
        error = weight * error
        delta = (self.output @ error) * y * (1 - y)
        if self.options.optimizer == "adaptive":
            self.output = self.output * (1 - 0.005 * self.adaptive_rate())
            error, delta = self.adapted("eta", error), self.adapted("b", delta)
        self.step("W", np.outer(x, delta) * (self.there if self.fields else 1))
        self.step("b", delta)
        self.step("output", np.outer(y, error))
        self.step("eta", error)

    def follow(self):
        """Every fourth sample, the averages of the weights."""
        if self.taught % 4 == 0:
            age = self.taught - self.averaged_since
            kept = (1 - max(1 - self.options.averaging, 10 / (age + 9))) ** 4
            self.slow = {name: kept * slow + (1 - kept) * getattr(self, name) for name, slow in self.slow.items()}

    def surprise(self, phase, z, target):
        if phase.name == "discriminative":
            return ((z - target) ** 2).sum()
        past, distances = phase.inputs, []
        for j in np.flatnonzero(~np.isnan(past[-1])):
            values = past[:, j][~np.isnan(past[:, j])]
            distances.append(min((values[-1] - values.mean()) ** 2, 25 * values.var()) / max(values.var(), 1e-12))
        return np.mean(distances)

    def adapted(self, name, gradient):
        """Each unit's gradient over the root of its mean square."""
        self.square[name] = self.square[name] + (gradient**2 - self.square[name]) * max(1 / self.taught, 1 / 300)
        return gradient / (np.sqrt(self.square[name]) + 0.03)

    def rate(self):
        """The discriminative learning rate of the latest label."""
        falls = self.options.annealing is not None
        return self.options.learning_rate / (math.sqrt(1 + self.taught / self.options.annealing) if falls else 1)

    def evenness(self):
        """How far labels are from being mostly of one class."""
        shares = np.array(list(self.counts().values()))
        if len(shares) < 2 or shares.sum() < 1e-300:
            return 1
        shares = shares / shares.sum()
        differ = (1 - (shares**2).sum()) / (1 - 1 / len(shares))
        return np.clip(differ / 0.64, 0.25, 1)

    def adaptive_rate(self):
        """The same where it adapts: it falls where labels are mostly of one class."""
        return self.rate() * self.evenness()

    def step(self, name, gradient):
        if self.options.optimizer == "adaptive":
            setattr(self, name, getattr(self, name) - self.adaptive_rate() * gradient)
            return
        velocity = self.options.momentum * self.velocity[name] - self.rate() * gradient
        if name == "W" and self.fields:  # of fields, each sees too few samples in a row
            velocity[self.n :] = -self.rate() * gradient[self.n :] / (1 - self.options.momentum)
        self.velocity[name] = velocity
        setattr(self, name, getattr(self, name) + velocity)

    # structure

    def grow(self, phase, x, target, counts, error):
        n, r, m = self.n, len(self.b), len(self.eta)
        before = (error**2).sum()
        kept = self.W, self.b, self.output
        if phase.name == "generative":
            w, out = -error, np.zeros(m)
        else:
            out = -error
        scope = 1
        while True:
            self.W, self.b, self.output = kept
            b = scope * (2 * self.random.uniform() - 1)
            if phase.name == "discriminative":
                w = np.array([scope * self.random.normal(32 / (n + 1)) for _ in range(n)])
            self.W, self.b = np.column_stack([self.W, w]), np.append(self.b, b)
            self.output = np.vstack([self.output, out])
            z = self.outputs(phase, sigmoid(x @ self.W + self.b))
            after = ((z - target)[counts] ** 2).sum()
            if self.options.scope == "fixed" or scope >= 1024 or after <= (0.99 + 0.01 / (r + 2)) * before:
                break
            scope *= 2
        self.velocity["W"] = np.column_stack([self.velocity["W"], np.zeros(n)])
        self.velocity["b"] = np.append(self.velocity["b"], 0)
        self.velocity["output"] = np.vstack([self.velocity["output"], np.zeros(m)])
        self.square["b"] = np.append(self.square["b"], 0)
        self.slow["W"] = np.column_stack([self.slow["W"], self.W[:, -1]])
        self.slow["b"] = np.append(self.slow["b"], self.b[-1])
        self.slow["output"] = np.vstack([self.slow["output"], self.output[-1]])
        self.note(phase, "growth", r, phase.bias2.cause)

    def prune(self, phase, unit):
        self.square["b"] = np.delete(self.square["b"], unit)
        for owner in (self.__dict__, self.velocity, self.slow):
            owner["W"] = np.delete(owner["W"], unit, axis=1)
            owner["b"] = np.delete(owner["b"], unit)
            owner["output"] = np.delete(owner["output"], unit, axis=0)
        self.note(phase, "pruning", unit, phase.variance.cause)

    def note(self, phase, kind, unit, cause, label=None):
        sample = self.observed if phase.name == "generative" else self.taught
        self.events.append((sample, phase.name, kind, unit, len(self.b), 0, label, *cause))

    def told(self, events):
        """Whether these are its events, each with its cause."""
        alike = [(*event[:6], event.label) for event in events] == [event[:7] for event in self.events]
        return alike and np.allclose([e[6:8] for e in events], [e[7:] for e in self.events], rtol=1e-9, atol=1e-10)

    # the two verbs

    def observe(self, row, weight=1):
        self.n_seen += 1
        self.observed += 1
        self.seen = np.vstack([self.seen, row])
        x, target = self.scale(row)
        present = ~np.isnan(row)
        if self.options.generative and present.any() and self.reach == 0:
            x = self.corrupt(x)
            self.learn(self.generative, x, np.nan_to_num(target), present, weight)

    def weight_of_class(self, label):
        option = self.options.class_weight
        if isinstance(option, dict):
            return option.get(self.names[label], 1)
        if option is None:
            return 1
        counts = self.counts()
        return min(sum(counts.values()) / (len(counts) * counts[label]), 100) if label in counts else 1

    def counts(self):
        """The labels of each class, where later ones count more."""
        counted = self.label_weights * (1 - 1 / 10_000) ** np.arange(len(self.labels))[::-1]
        counts = {known: counted[self.labels == known].sum() for known in set(self.labels)}
        return {known: count for known, count in counts.items() if count > 1e-9}  # some were taken back

    def judge(self, rows, labels, weights=None):
        """Compare the predictors on every fourth sample, before any of their labels is learned."""
        if len(self.eta) == 0:
            return
        judged = [k for k in range(len(rows)) if (self.taught + k) % 4 == 3]
        for k in judged:
            weight = self.weight_of_class(labels[k]) * (1 if weights is None else weights[k]) / math.sqrt(len(judged))
            for which, shares in enumerate(self.predictions(rows[k])):
                seen = shares[labels[k]] if labels[k] < len(shares) else 0
                self.losses[which] = 0.992 * self.losses[which] - weight * math.log(max(seen, 1e-4))
        if self.options.averaging > 0 and self.trust() < 0.01:
            self.losses[1], self.averaged_since = self.losses[0], self.taught

    def trust(self):
        """The weight of the prediction by averages, beside that by the current weights."""
        fast, slow = np.exp(-0.4 * (self.losses[:2] - self.losses[:2].min()))
        return slow / (fast + slow)

    def teach(self, row, label, weight=1):
        self.meet(row)
        self.judge([row], [label], [weight])
        self.learn_label(row, label, weight)

    def meet(self, row):
        """The scaling learns from what is taught, if it cannot have been observed; ranges always do."""
        new = self.taught >= self.n_seen
        self.n_seen += new
        if new or self.options.scaling == "minmax":
            self.seen = np.vstack([self.seen, row])

    def learn_label(self, row, label, weight=1):
        self.taught += 1
        x, _ = self.scale(row)
        self.know(label)
        self.widen(row)
        target = np.zeros(len(self.eta))
        target[label] = 1
        self.labels, self.label_weights = np.append(self.labels, label), np.append(self.label_weights, weight)
        phase, every, full = (
            self.discriminative,
            np.ones(len(target), bool),
            weight * min(self.weight_of_class(label), 3),
        )
        if self.reach == 0:
            self.watch_class(label, self.mixed(np.nan_to_num(x)))
            self.learn(phase, x, target, every, full)
        else:
            x = self.see(row)
            if phase.surprise.drifts(((self.outputs(phase, sigmoid(x @ self.W + self.b)) - target) ** 2).sum()):
                self.buffer = []
            self.descend(phase, x, target, every, full)
            self.buffer.append((row.copy(), label, weight))
            if self.fields and self.options.scaling == "standard":
                self.place_fields()
        for _ in range(self.rehearse):
            self.replay()
        self.follow()

    def withdraw(self, row, label):
        """Take a label back: its sample leaves the buffer, where it counted as if it were the latest."""
        taken = 1
        for place in range(min(len(self.buffer), self.reach)):
            kept, known, weight = self.at(place)
            if weight > 0 and known == label and np.array_equal(kept, row, equal_nan=True):
                taken = weight
                self.buffer[self.number_at(place)] = np.full(self.n, np.nan), 0, 0
                break
        self.taught -= 1
        self.averaged_since = min(self.averaged_since, self.taught)
        left = self.label_weights * (1 - 1 / 10_000) ** np.arange(1, len(self.labels) + 1)[::-1]
        self.label_weights = np.append(self.label_weights, -min(taken, left[self.labels == label].sum()))
        self.labels = np.append(self.labels, label)

    def place_fields(self):
        """Those of skewed features, where the samples are twice as many as before, or all that are kept are others."""
        n, n_kept = len(self.buffer), min(len(self.buffer), self.reach)
        if n_kept < 64 or not (n % self.reach == 0 or (n <= self.reach and math.log2(n).is_integer())):
            return
        ring = [self.at(place) for place in range(n_kept)][:: math.ceil(n_kept / 128)]
        for j in range(self.n):
            values = np.clip(np.sort([row[j] for row, _, _ in ring if not np.isnan(row[j])]), -1e150, 1e150)
            if len(values) >= self.fields:
                shares = np.clip(np.arange(self.fields) / (self.fields - 1), 0.01, 0.99)
                places = values[np.floor(shares * (len(values) - 1) + 0.5).astype(int)]
                even = np.clip((places - values.mean()) / (values.std() or 1) / 5 + 0.5, 0, 1 - 1e-12) * self.fields
                n_even = len(np.unique(np.floor(even)))
                if j in self.ranked or (n_even <= 3 and len(np.unique(places)) >= 2 * n_even):
                    self.ranked[j] = places
            if j in self.ranked and len(np.unique(self.ranked[j])) == 1:
                del self.ranked[j]

    def at(self, place):
        """What is at a place of the ring."""
        return self.buffer[self.number_at(place)]

    def number_at(self, place):
        """How many samples were stored before the one at a place of the ring."""
        return (len(self.buffer) - 1 - place) // self.reach * self.reach + place

    def replay(self):
        """One more step on one of the samples in reach, which lie in a ring."""
        row, label, weight, length = self.drawn()
        if weight == 0:
            return
        target = np.eye(len(self.eta))[label]
        x = self.see(row)
        self.descend(self.discriminative, x, target, target >= 0, weight * length)

    def drawn(self):
        """A sample of the buffer, and the length of its step: of rare or heavy classes more samples, shorter steps."""
        place = int(self.random.uniform() * min(len(self.buffer), self.reach))
        is_rare = self.taught >= 100 and self.evenness() < 0.5
        counts = self.counts()
        n_labels = sum(counts.values())
        if not is_rare and len(set(map(self.weight_of_class, counts))) < 2:
            return *self.at(place), self.weight_of_class(self.at(place)[1])

        def frequency(label):
            return max(self.weight_of_class(label), min(math.sqrt(n_labels / counts.get(label, 1e-300)), 10))

        most = max(map(frequency, counts))
        for _ in range(100):
            if self.random.uniform() * most < frequency(self.at(place)[1]):
                break
            place = int(self.random.uniform() * min(len(self.buffer), self.reach))
        row, label, weight = self.at(place)
        mean = sum(count * frequency(known) for known, count in counts.items()) / n_labels
        return row, label, weight, mean * self.weight_of_class(label) / frequency(label)

    def know(self, label):
        """An output for the class, and for those before it."""
        while len(self.eta) <= label:
            for owner in (self.__dict__, self.velocity, self.slow):
                owner["output"] = np.column_stack([owner["output"], np.zeros(len(self.b))])
                owner["eta"] = np.append(owner["eta"], 0)
            self.square["eta"] = np.append(self.square["eta"], 0)

    # what it is used for

    def transform(self, row):
        return sigmoid(self.see(self.within(row)) @ self.W + self.b)

    def predictions(self, row):
        """What the weights predict, and what their averages do."""
        return self.predicted(self.see(self.within(row)))

    def predicted(self, seen):
        for owner in (self.__dict__, self.slow):
            yield softmax(sigmoid(seen @ owner["W"] + owner["b"]) @ owner["output"] + owner["eta"])

    def mixed(self, seen):
        return self.weights() @ list(self.predicted(seen))

    def predict_proba(self, row):
        return self.weights() @ list(self.predictions(row))

    def weights(self):
        """The weight of each predictor in a prediction."""
        weights = np.exp(-0.4 * (self.losses - self.losses.min())) * [True, self.options.averaging > 0]
        return weights / weights.sum()

    def evidence(self):
        """By this, networks are mixed."""
        return np.exp(-0.4 * self.losses[[True, self.options.averaging > 0]]).sum()

    def reconstruct(self, row):
        a = sigmoid(self.see(row) @ self.W + self.b) @ self.W.T + self.c
        if self.options.scaling == "minmax":
            low, high = np.transpose([self.range(column) for column in self.seen.T])
            return low + sigmoid(a) * (high - low)
        if self.options.scaling == "standard":
            mean, std = np.transpose([self.location(j) for j in range(self.n)])
            return mean + np.clip(a, -5, 5) * std
        return sigmoid(a)
