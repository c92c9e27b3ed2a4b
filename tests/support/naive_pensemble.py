"""pClass, pENsemble and pENsemble+, slow and obvious: the oracle for the rules' kernel, and what it is timed against.

Plain NumPy, step by step as docs/pensemble.md has them, a rule or a sample at a time.
"""

import math

import numpy as np


class Rule:
    """``spread`` has the variances of a diagonal Σ."""

    def __init__(self, x, spread, target, consequent, omega, born):
        self.centre, self.S, self.volume = (
            x.copy(),
            np.diag(1 / spread),
            np.log(spread).sum(),
        )  # C, Σ⁻¹, v; Σ is diagonal
        self.support, self.class_support = 1.0, target.copy()  # N, N^o
        self.consequent, self.Q = consequent.copy(), omega * np.eye(len(x) + 1)  # W, (u + 1) × m
        self.density, self.born = 1.0, born  # χ

    def distance2(self, x):
        return max(float((x - self.centre) @ self.S @ (x - self.centre)), 0.0)


class NaivePClass:
    def __init__(self, n_features, n_classes, vigilance=0.99, spread=0.01, omega=1000.0, decay=1e-15, grow=True):
        self.u, self.m = n_features, n_classes
        self.vigilance, self.k_fs, self.omega, self.decay, self.grow = vigilance, spread, omega, decay, grow
        self.rules, self.store = [], []
        self.n, self.U, self.alpha, self.c = 0, 0.0, np.zeros(n_features), 0.0
        self.events, self.to_floor = [], None

    def quality(self, z):
        """(a)"""
        if self.U == 0:
            return 1.0
        return (1 + max(0.0, z @ z - 2 * z @ self.alpha / self.U + self.c / self.U)) ** -0.5

    def firing(self, x):
        half = np.array([-0.5 * rule.distance2(x) for rule in self.rules])
        R = np.exp(half - half.max())
        return R / R.sum()

    def output(self, x):
        xe = np.append(1, x)
        return sum(share * (xe @ rule.consequent) for share, rule in zip(self.firing(x), self.rules, strict=True))

    def outputs(self, X):
        return np.array([self.output(x) for x in X])

    def note(self, kind, place):
        self.events.append((self.n, kind, place, len(self.rules)))

    def learn_one(self, x, label):
        self.n += 1
        target, xe, own = np.eye(self.m)[label], np.append(1, x), self.quality(x)
        if not self.rules:
            first = Rule(x, np.full(self.u, self.k_fs), target, np.zeros((self.u + 1, self.m)), self.omega, self.n)
            self.rules.append(first)
            self.note("rule added", 0)
        else:
            self.grow_or_adapt(x, target, own)
        self.U, self.alpha, self.c = self.U + own, self.alpha + own * x, self.c + own * x @ x
        for share, rule in zip(self.firing(x), self.rules, strict=True):  # (f)
            if share >= 1e-6:
                psi = rule.Q @ xe / (1 / share + xe @ rule.Q @ xe)
                rule.Q = rule.Q - np.outer(psi, rule.Q @ xe)
                error = target - xe @ rule.consequent
                rule.consequent = rule.consequent - self.decay * rule.Q @ rule.consequent + np.outer(psi, error)
        if self.n > 2:
            for rule in self.rules + self.store:  # (g)
                chi2 = rule.density**2
                rest = (self.n - 2) * (1 - chi2) + chi2 * rule.distance2(x)
                rule.density = math.sqrt((self.n - 1) * chi2 / ((self.n - 1) * chi2 + rest))
        self.prune()
        self.floor()

    def grow_or_adapt(self, x, target, own):
        volumes = np.array([rule.volume for rule in self.rules])
        prior = np.log([math.log(rule.support + 1) for rule in self.rules])
        posterior = [-0.5 * rule.distance2(x) for rule in self.rules] - 0.5 * volumes + prior
        winner = self.rules[int(posterior.argmax())]
        nearest = min(self.rules, key=lambda rule: np.linalg.norm(x - rule.centre))
        sigma = np.maximum(np.abs(x - nearest.centre) / math.sqrt(math.log(1 / 0.5)), 0.1 * math.sqrt(self.k_fs))
        is_large = 2 * np.log(sigma).sum() >= volumes.max()  # A
        qualities = [self.quality(rule.centre) for rule in self.rules]
        is_remarkable = own > max(qualities) or own < min(qualities)  # B
        shares = np.exp(volumes - volumes.max())
        is_vigilant = shares[int(posterior.argmax())] >= self.vigilance * shares.sum()  # (c)
        if self.grow and is_large and is_remarkable and is_vigilant and self.n > self.u + 1:
            self.add(x, sigma**2, target, winner)  # (d)
        else:
            self.adapt(winner, x, target)  # (e)

    def add(self, x, spread, target, winner):
        best = max(self.store, key=lambda rule: rule.density, default=None)
        if best is not None and best.density > max(rule.density for rule in self.rules):
            self.store.remove(best)
            self.rules.append(best)
            self.note("rule recalled", len(self.rules) - 1)
            return
        self.rules.append(Rule(x, spread, target, winner.consequent, self.omega, self.n))
        self.note("rule added", len(self.rules) - 1)

    def adapt(self, rule, x, target):
        a, d = 1 / (rule.support + 1), x - rule.centre
        g = rule.S @ d
        q = d @ g
        rule.S = rule.S / (1 - a) - a / (1 - a) * np.outer(g, g) / (1 + a * q)
        rule.volume += self.u * math.log(1 - a) + math.log(1 + a * q)
        rule.centre = rule.centre + a * d
        rule.support += 1
        rule.class_support += target
        if int(rule.support - 1) % 50 == 0:
            self.to_floor = rule

    def floor(self):
        """(e), once the sample is through"""
        if self.to_floor is not None:
            values, vectors = np.linalg.eigh(np.linalg.inv(self.to_floor.S))
            values = np.maximum(values, 1e-6)
            self.to_floor.S, self.to_floor.volume = (vectors / values) @ vectors.T, np.log(values).sum()
            self.to_floor = None

    def prune(self):
        """(h)"""
        if len(self.rules) >= 2:
            volumes = np.array([rule.volume for rule in self.rules])
            shares = np.exp(volumes - volumes.max())
            beta = np.array([np.abs(rule.consequent).sum() for rule in self.rules]) * shares / shares.sum()
            self.leave(beta, "rule pruned")
        if len(self.rules) >= 2:
            for rule in self.leave(np.array([rule.density for rule in self.rules]), "rule stored"):
                self.store.append(rule)
                if len(self.store) > 20:
                    self.store.remove(min(self.store, key=lambda rule: rule.density))

    def leave(self, values, kind):
        gone = []
        for place in reversed(np.flatnonzero(values < values.mean() - 2 * values.std()).tolist()):
            if self.n - self.rules[place].born > 100:
                gone.append(self.rules.pop(place))
                self.note(kind, place)
        return gone

    def learn(self, X, labels):
        for x, label in zip(X, labels, strict=True):
            self.learn_one(x, label)


class NaiveMember:
    def __init__(self, rules):
        self.rules, self.weight, self.error, self.bounds = rules, 1.0, 0.0, []


class NaivePENsemble:
    warning = 0.005

    def __init__(self, n_features, n_classes, **options):
        self.make = lambda: NaivePClass(n_features, n_classes, **options)
        self.m = n_classes
        self.members, self.buffer, self.events = [], [], []

    def outputs(self, X):
        total = sum(member.weight for member in self.members)
        return sum(member.weight * member.rules.outputs(X) for member in self.members) / total

    def learn(self, X, labels):
        if not self.members:
            self.add(X, labels)
            return
        answers = [member.rules.outputs(X) for member in self.members]
        learned = self.judge(answers, X, labels)
        total = sum(member.weight for member in self.members)
        for member in self.members:
            member.weight /= total
        self.prune(answers, X)
        self.act(self.signal(X), X[learned], np.asarray(labels)[learned])

    def judge(self, answers, X, labels):
        for t, label in enumerate(labels):
            self.reward([answer[t] for answer in answers], label)
        for member, answer in zip(self.members, answers, strict=True):
            member.error = ((answer - np.eye(self.m)[labels]) ** 2).mean()
        return list(range(len(X)))

    def reward(self, outputs, label):
        for member, y in zip(self.members, outputs, strict=True):
            member.weight = min(1.5 * member.weight, 1) if y.argmax() == label else max(0.5 * member.weight, 1e-30)

    def prune(self, answers, X):
        if len(self.members) == 1:
            return
        leaving = [member for member in self.members if member.weight < 0.01]
        if not leaving:
            for member in self.members:
                bound = self.bound(member, X)
                if len(member.bounds) >= 3 and bound > np.mean(member.bounds) + 3 * np.std(member.bounds):
                    leaving.append(member)
                member.bounds.append(bound)
        if len(leaving) == len(self.members):
            leaving.remove(min(leaving, key=lambda member: member.error))
        for member in leaving:
            self.members.remove(member)
            self.events.append("member removed")

    def bound(self, member, X):
        mean, nu, zeta = X.mean(axis=0), 0.0, 0.0
        moments = [((X - mean) ** power).mean(axis=0) for power in range(5)]
        for rule in member.rules.rules:
            delta, w = mean - rule.centre, max(np.diag(np.linalg.inv(rule.S)).mean(), 1e-3)
            E = (moments[2] + delta**2).sum()
            var = (moments[4] - moments[2] ** 2 + 4 * moments[2] * delta**2 + 4 * moments[3] * delta).sum()
            phi = np.abs(np.append(1, mean) @ rule.consequent).max() ** 2 * math.exp(min(0, var / (2 * w**2) - E / w))
            nu, zeta = nu + phi * E / w**2, zeta + phi / w**2
        ST = nu / 3 + 0.2 / 9 * X.shape[1] * zeta
        return (math.sqrt(member.error) + math.sqrt(ST) + 1) ** 2 + math.sqrt(math.log(0.001) / (-2 * len(X)))

    def signal(self, X):
        r = len(X)
        for cut in range(1, r):
            f = math.sqrt((r - cut) / (2 * cut * r) * math.log(1 / 0.001))
            head, tail = X[:cut], X[cut:]
            if (head.mean(axis=0) + np.ptp(head, axis=0) * f).mean() >= (X.mean(axis=0) + np.ptp(X, axis=0) * f).mean():
                D = np.abs(head.mean(axis=0) - tail.mean(axis=0)).mean()
                kappa = 1 / (2 * cut) + 1 / (2 * (r - cut))
                if np.ptp(tail, axis=0).mean() * math.sqrt(kappa * math.log(1 / 0.001)) <= D:
                    return "drift"
                if np.ptp(tail, axis=0).mean() * math.sqrt(kappa * math.log(1 / self.warning)) <= D:
                    return "warning"
                return "stable"
        return "stable"

    def act(self, signal, X, labels):
        best = min(self.members, key=lambda member: member.error)
        if signal != "stable":
            self.events.append(signal)
        if signal == "drift":
            self.add(*(np.concatenate(parts) for parts in zip(*self.buffer, (X, labels), strict=True)))
            self.buffer = []
        elif signal == "warning":
            self.buffer = [*self.buffer, (X, labels)][-5:]
        else:
            self.buffer = []
            for rule in best.rules.rules + best.rules.store:
                rule.Q = best.rules.omega * np.eye(len(rule.Q))
            best.rules.learn(X, labels)
            best.weight = 1.0

    def add(self, X, labels):
        self.members.append(NaiveMember(self.make()))
        self.events.append("member added")
        self.members[-1].rules.learn(X, labels)


class NaivePENsemblePlus(NaivePENsemble):
    warning, theta = 0.008, 0.95

    def __init__(self, n_features, n_classes, **options):
        super().__init__(n_features, n_classes, **options)
        self.n_asked = self.n_samples = 0

    def learn(self, X, labels):
        self.n_samples += len(X)
        self.n_asked += len(X) if not self.members else 0
        super().learn(X, labels)

    def judge(self, answers, X, labels):
        asked = []
        for t, label in enumerate(labels):
            y = np.sort(sum(member.weight * answer[t] for member, answer in zip(self.members, answers, strict=True)))
            total = y[-1] + y[-2]
            p_out = np.clip(y[-1] / total, 0, 1) if total > 0 else 0
            if t < 6 or t == len(X) - 1 or max(p_out, self.p_in(X[t])) <= self.theta:
                asked.append(t)
                self.reward([answer[t] for answer in answers], label)
        for member, answer in zip(self.members, answers, strict=True):
            member.error = ((answer - np.eye(self.m)[labels])[asked] ** 2).mean()
        self.n_asked += len(asked)
        return asked

    def p_in(self, x):
        rules = [rule for member in self.members for rule in member.rules.rules]
        logs = np.array([-0.5 * (rule.distance2(x) + rule.volume) + math.log(rule.support) for rule in rules])
        joint = np.exp(logs - logs.max())
        classes = np.array([(rule.class_support + 1) / (rule.support + self.m) for rule in rules])
        mass = joint @ classes
        return mass.max() / mass.sum()

    def prune(self, answers, X):
        free, leaving = set(range(len(self.members))), []
        for i in range(len(self.members) - 1, 0, -1):
            for j in range(i - 1, -1, -1):
                if {i, j} <= free and max(self.mici(answers[i][:, o], answers[j][:, o]) for o in range(self.m)) < 0.1:
                    leaving.append(max((self.members[i], self.members[j]), key=lambda member: member.error))
                    free -= {i, j}
        for member in leaving:
            self.members.remove(member)
            self.events.append("member merged")

    @staticmethod
    def mici(a, b):
        V1, V2 = a.var(), b.var()
        rho = np.corrcoef(a, b)[0, 1] if V1 * V2 > 0 else 0.0
        return 0.5 * (V1 + V2 - math.sqrt((V1 + V2) ** 2 - 4 * V1 * V2 * (1 - rho**2)))
