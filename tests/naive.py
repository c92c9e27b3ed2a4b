"""DEVDAN, slow and obvious: the oracle for the kernel.

Every statistic is computed from the whole history with NumPy's own mean and deviation, every layer is a matrix product.
Only the random generator is the kernel's, written out in Python's integers.
"""

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
        fired = self.means[-1] + self.stds[-1] >= least_mean + confidence * least_std
        if fired:
            self.start = None
        return fired


def recent_mean(values, memory):
    """The mean of the first values, up to as many as the memory, each later one taken in at a share of 1 / memory."""
    mean, later = values[:memory].mean(), values[memory:]
    kept = (1 - 1 / memory) ** np.arange(len(later) + 1)
    return mean * kept[-1] + (later[::-1] * kept[:-1]).sum() / memory


class Surprise:
    """Two exponential means of all values since they last parted, one with a short memory."""

    def __init__(self, may_fall):
        self.may_fall = may_fall  # which starts them anew, too
        self.values = []

    def drifts(self, value):
        self.values.append(value)
        values = np.array(self.values)
        late, past, square = recent_mean(values, 200), recent_mean(values, 10_000), recent_mean(values**2, 10_000)
        change = (late - past) * math.sqrt(399) / max(math.sqrt(square - past**2), 0.1)
        if len(self.values) < 300 or (-4 if self.may_fall else -math.inf) <= change <= 4:
            return False
        self.values = []
        return change > 4


class Phase:
    def __init__(self, name, n_features):
        self.name = name
        self.inputs = []
        self.surprise = Surprise(name == "discriminative")
        self.bias2, self.variance = Monitor(2), Monitor(n_features + 2)


class Naive:
    def __init__(self, n_features, word, options):
        self.n, self.options, self.random = n_features, options, Random(word)
        self.seen = []  # what the scaling has learned from
        self.n_seen = self.taught = self.observed = 0
        self.generative, self.discriminative = Phase("generative", self.n), Phase("discriminative", self.n)
        self.W = np.array(
            [[self.random.normal(32 / (self.n + 1)) for _ in range(self.n)] for _ in range(options.n_hidden)]
        ).T
        self.b, self.c = np.zeros(options.n_hidden), np.zeros(self.n)
        self.output, self.eta = np.zeros((options.n_hidden, 0)), np.zeros(0)
        self.velocity = {name: np.zeros_like(getattr(self, name)) for name in ("W", "b", "output", "eta")}
        self.square = {name: np.zeros_like(getattr(self, name)) for name in ("b", "eta")}  # of the gradients, the mean
        self.slow = {name: getattr(self, name).copy() for name in ("W", "b", "output", "eta")}
        self.losses, self.averaged_since = np.zeros(2), 0
        self.events = []

    # scaling

    def scale(self, row):
        """The scaled sample, NaN where it is missing, and the reconstruction's target."""
        seen = np.array(self.seen).reshape(-1, self.n)
        x = row.copy()
        for j in np.flatnonzero(~np.isnan(row)):
            past = seen[:, j][~np.isnan(seen[:, j])]
            if self.options.scaling == "minmax":
                spread = past.max() - past.min() if len(past) else 0
                x[j] = np.clip((row[j] - past.min()) / spread, 0, 1) if spread > 0 else 0
            elif self.options.scaling == "standard":
                spread = past.std() if len(past) else 0
                x[j] = np.clip((row[j] - past.mean()) / spread, -5, 5) if spread > 0 else 0
            else:
                x[j] = np.clip(row[j], 0, 1)
        return x, sigmoid(x) if self.options.scaling == "standard" else x

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
        past = np.array(phase.inputs)
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

    def learn(self, phase, x, target, counts):
        """Grow or prune, then one SGD step; ``counts`` are the outputs that count."""
        phase.inputs.append(x)
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
            delta = (error @ self.W) * y * (1 - y)
            rate = self.options.generative_learning_rate
            self.W = self.W - rate * (np.outer(error, y) + np.outer(x, delta))
            self.b = self.b - rate * delta
            self.c = self.c - rate * error
        else:
            if self.options.optimizer == "adaptive":
                error = error + 0.05 * (target - 1 / len(target))
            delta = (self.output @ error) * y * (1 - y)
            if self.options.optimizer == "adaptive":
                self.output = self.output * (1 - 0.005 * self.options.learning_rate)
                error, delta = self.adapted("eta", error), self.adapted("b", delta)
            self.step("W", np.outer(x, delta))
            self.step("b", delta)
            self.step("output", np.outer(y, error))
            self.step("eta", error)
            if self.taught % 4 == 0:
                kept = (1 - max(1 - self.options.averaging, 10 / (self.taught - self.averaged_since + 9))) ** 4
                self.slow = {name: kept * slow + (1 - kept) * getattr(self, name) for name, slow in self.slow.items()}

    def surprise(self, phase, z, target):
        if phase.name == "discriminative":
            return ((z - target) ** 2).sum()
        past, distances = np.array(phase.inputs), []
        for j in np.flatnonzero(~np.isnan(past[-1])):
            values = past[:, j][~np.isnan(past[:, j])]
            distances.append(min((values[-1] - values.mean()) ** 2 / max(values.var(), 1e-12), 25))
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

    def observe(self, row):
        self.n_seen += 1
        self.observed += 1
        self.seen.append(row)
        x, target = self.scale(row)
        x = self.corrupt(x)
        present = ~np.isnan(row)
        if self.options.generative and present.any():
            self.learn(self.generative, x, np.nan_to_num(target), present)

    def teach(self, row, label):
        if len(self.eta) and self.options.averaging > 0 and self.taught % 4 == 3:
            for which, shares in enumerate(self.both(row)):
                seen = shares[label] if label < len(shares) else 0
                self.losses[which] = 0.998 * self.losses[which] - math.log(max(seen, 1e-4))
            if self.trust()[1] < 0.01:
                self.losses, self.averaged_since = np.zeros(2), self.taught
        new = self.taught >= self.n_seen
        self.n_seen += new
        self.taught += 1
        if new or self.options.scaling == "minmax":
            self.seen.append(row)
        x, _ = self.scale(row)
        while len(self.eta) <= label:
            r = len(self.b)
            new = np.array([self.random.normal(2 / (r + 1)) for _ in range(r)])
            for owner, column in ((self.__dict__, new), (self.velocity, np.zeros(r)), (self.slow, new)):
                owner["output"] = np.column_stack([owner["output"], column])
                owner["eta"] = np.append(owner["eta"], 0)
            self.square["eta"] = np.append(self.square["eta"], 0)
        target = np.zeros(len(self.eta))
        target[label] = 1
        self.learn(self.discriminative, x, target, np.ones(len(target), bool))

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
        seen = np.array(self.seen)
        if self.options.scaling == "minmax":
            return np.nanmin(seen, axis=0) + sigmoid(a) * (np.nanmax(seen, axis=0) - np.nanmin(seen, axis=0))
        if self.options.scaling == "standard":
            return np.nanmean(seen, axis=0) + np.clip(a, -5, 5) * np.nanstd(seen, axis=0)
        return sigmoid(a)
