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

    def poisson(self, mean):
        """How many draws it takes until their product is below exp(-mean), less one."""
        count, product = 0, self.uniform()
        while product > math.exp(-mean):
            count, product = count + 1, product * self.uniform()
        return count


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
        fired = self.means[-1] + self.stds[-1] >= least_mean + confidence * least_std
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

    def __init__(self, may_fall, visits):
        self.may_fall = may_fall  # which starts them anew, too
        self.visits = visits
        self.values = np.zeros(0)

    def drifts(self, value):
        self.values = np.append(self.values, value)
        if len(self.values) < 300 * self.visits:
            return False
        late = recent_weights(len(self.values), 200 * self.visits) @ self.values
        past, std = recent(self.values, 10_000 * self.visits)
        change = (late - past) * math.sqrt(399) / max(std, 0.1)
        if (-4 if self.may_fall else -math.inf) <= change <= 4:
            return False
        self.values = np.zeros(0)
        return change > 4


class Phase:
    def __init__(self, name, n_features, visits):
        self.name = name
        self.inputs = np.zeros((0, n_features))
        self.surprise = Surprise(name == "discriminative", visits)
        self.bias2, self.variance = Monitor(2), Monitor(n_features + 2)


class Naive:
    """One network; ``visits`` is how often it meets each sample, on average."""

    def __init__(self, n_features, word, options, visits=1):
        self.n, self.options, self.random, self.visits = n_features, options, Random(word), visits
        self.seen = np.zeros((0, n_features))  # what the scaling has learned from
        self.n_seen = self.taught = self.observed = 0
        self.generative = Phase("generative", self.n, visits)
        self.discriminative = Phase("discriminative", self.n, visits)
        self.W = np.array(
            [[self.random.normal(32 / (self.n + 1)) for _ in range(self.n)] for _ in range(options.n_hidden)]
        ).T
        self.b, self.c = np.zeros(options.n_hidden), np.zeros(self.n)
        self.output, self.eta = np.zeros((options.n_hidden, 0)), np.zeros(0)
        self.velocity = {name: np.zeros_like(getattr(self, name)) for name in ("W", "b", "output", "eta")}
        self.square = {name: np.zeros_like(getattr(self, name)) for name in ("b", "eta")}  # of the gradients, the mean
        self.slow = {name: getattr(self, name).copy() for name in ("W", "b", "output", "eta")}
        self.losses, self.averaged_since = np.zeros(2), 0
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
                mean, std = self.location(self.seen[:, j])
                x[j] = np.clip((x[j] - mean) / std, -5, 5) if std > 0 else 0
            else:
                x[j] = np.clip(x[j], 0, 1)
        return x, sigmoid(x) if self.options.scaling == "standard" else x

    def range(self, values):
        values = np.clip(values[~np.isnan(values)], -1e150, 1e150)
        return (values.min(), values.max()) if len(values) else (0, 0)

    def location(self, values):
        values = np.clip(values[~np.isnan(values)], -1e150, 1e150)
        return recent(values, 2000 * self.visits) if len(values) else (math.nan, math.nan)

    # the network

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

        if phase.surprise.drifts(self.surprise(phase, z, target)):
            self.note(phase, "drift", 0)
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

        y = sigmoid(x @ self.W + self.b)
        error = np.where(counts, self.outputs(phase, y) - target, 0)
        if phase.name == "generative":
            error = weight * error
            delta = (error @ self.W) * y * (1 - y)
            rate = self.options.generative_learning_rate
            self.W = self.W - rate * (np.outer(error, y) + np.outer(x, delta))
            self.b = self.b - rate * delta
            self.c = self.c - rate * error
        else:
            if self.options.optimizer == "adaptive":
                error = error + 0.05 * (target - 1 / len(target))
            error = weight * error
            delta = (self.output @ error) * y * (1 - y)
            if self.options.optimizer == "adaptive":
                self.output = self.output * (1 - 0.005 * self.options.learning_rate)
                error, delta = self.adapted("eta", error), self.adapted("b", delta)
            self.step("W", np.outer(x, delta))
            self.step("b", delta)
            self.step("output", np.outer(y, error))
            self.step("eta", error)
            if self.taught % 4 == 0:
                age = self.taught - self.averaged_since
                kept = (1 - max((1 - self.options.averaging) / self.visits, 10 / (age + 9))) ** 4
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

    def step(self, name, gradient):
        if self.options.optimizer == "adaptive":
            setattr(self, name, getattr(self, name) - self.options.learning_rate * gradient)
            return
        velocity = self.options.momentum * self.velocity[name] - self.options.learning_rate * gradient
        self.velocity[name] = velocity
        setattr(self, name, getattr(self, name) + velocity)

    # structure

    def grow(self, phase, x, target, counts, error):
        n, r, m = self.n, len(self.b), len(self.eta)
        before = (error**2).sum()
        kept = self.W, self.b, self.output
        if phase.name == "generative":
            w, out = -error, np.array([self.random.normal(2 / (r + 2)) for _ in range(m)])
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
        self.note(phase, "growth", r)

    def prune(self, phase, unit):
        self.square["b"] = np.delete(self.square["b"], unit)
        for owner in (self.__dict__, self.velocity, self.slow):
            owner["W"] = np.delete(owner["W"], unit, axis=1)
            owner["b"] = np.delete(owner["b"], unit)
            owner["output"] = np.delete(owner["output"], unit, axis=0)
        self.note(phase, "pruning", unit)

    def note(self, phase, kind, unit):
        sample = self.observed if phase.name == "generative" else self.taught
        self.events.append((sample, phase.name, kind, unit, len(self.b), 0))

    # the two verbs

    def observe(self, row, weight=1):
        self.n_seen += 1
        self.observed += 1
        self.seen = np.vstack([self.seen, row])
        x, target = self.scale(row)
        x = self.corrupt(x)
        present = ~np.isnan(row)
        if self.options.generative and present.any():
            self.learn(self.generative, x, np.nan_to_num(target), present, weight)

    def weight_of_class(self, label):
        option = self.options.class_weight
        if isinstance(option, dict):
            return option.get(self.names[label], 1)
        if option is None:
            return 1
        ages = np.arange(len(self.labels))[::-1]
        counted = self.label_weights * (1 - 1 / max(10_000 * self.visits, 1)) ** ages
        counts = {known: counted[self.labels == known].sum() for known in set(self.labels[counted > 0])}
        return min(sum(counts.values()) / (len(counts) * counts[label]), 100) if label in counts else 1

    def judge(self, rows, labels, weights=None):
        """Compare the weights and their averages on every fourth sample, before any of them is learned."""
        if len(self.eta) == 0 or self.options.averaging == 0:
            return
        for k in range(len(rows)):
            if (self.taught + k) % 4 == 3:
                for which, shares in enumerate(self.both(rows[k])):
                    seen = shares[labels[k]] if labels[k] < len(shares) else 0
                    weight = self.weight_of_class(labels[k]) * (1 if weights is None else weights[k])
                    self.losses[which] = 0.998 * self.losses[which] - weight * math.log(max(seen, 1e-4))
        if self.trust()[1] < 0.01:
            self.losses, self.averaged_since = np.zeros(2), self.taught

    def teach(self, row, label, weight=1):
        self.judge([row], [label], [weight])
        self.learn_label(row, label, weight)

    def learn_label(self, row, label, weight=1):
        new = self.taught >= self.n_seen
        self.n_seen += new
        self.taught += 1
        if new or self.options.scaling == "minmax":
            self.seen = np.vstack([self.seen, row])
        x, _ = self.scale(row)
        self.know(label)
        target = np.zeros(len(self.eta))
        target[label] = 1
        self.labels, self.label_weights = np.append(self.labels, label), np.append(self.label_weights, weight)
        weight = weight * self.weight_of_class(label)
        self.learn(self.discriminative, x, target, np.ones(len(target), bool), weight)

    def know(self, label):
        """An output for the class, and for those before it."""
        while len(self.eta) <= label:
            r = len(self.b)
            new = np.array([self.random.normal(2 / (r + 1)) for _ in range(r)])
            for owner, column in ((self.__dict__, new), (self.velocity, np.zeros(r)), (self.slow, new)):
                owner["output"] = np.column_stack([owner["output"], column])
                owner["eta"] = np.append(owner["eta"], 0)
            self.square["eta"] = np.append(self.square["eta"], 0)

    # what it is used for

    def transform(self, row):
        return sigmoid(np.nan_to_num(self.scale(row)[0]) @ self.W + self.b)

    def both(self, row):
        """What the weights say, and what their averages do."""
        x = np.nan_to_num(self.scale(row)[0])
        for owner in (self.__dict__, self.slow):
            yield softmax(sigmoid(x @ owner["W"] + owner["b"]) @ owner["output"] + owner["eta"])

    def predict_proba(self, row):
        fast, slow = self.both(row)
        if self.options.averaging == 0:
            return fast
        return self.trust() @ [fast, slow]

    def trust(self):
        """Shares of the weights and of their averages in a prediction."""
        trust = np.exp(-0.4 * (self.losses - self.losses.min()))
        return trust / trust.sum()

    def reconstruct(self, row):
        a = self.transform(row) @ self.W.T + self.c
        if self.options.scaling == "minmax":
            low, high = np.transpose([self.range(column) for column in self.seen.T])
            return low + sigmoid(a) * (high - low)
        if self.options.scaling == "standard":
            mean, std = np.transpose([self.location(column) for column in self.seen.T])
            return mean + np.clip(a, -5, 5) * std
        return sigmoid(a)
