"""Histories, slow and obvious: each is computed anew from all raw events and the times at which they came.

Nothing is kept but the events. All numbers are written out here, none is the package's.
"""

import math


class NaiveHistories:
    """What :class:`devdan.Histories` says of rows (dicts), for one kind of entity."""

    def __init__(self, columns, time, horizons, numbers, values, n_classes, shown=None):
        self.columns, self.time = columns, time
        self.given = horizons is not None
        self.horizons = horizons or [1.0, 1.0, 1.0]  # of no effect before the decay begins
        self.numbers, self.values, self.n_classes = numbers, values, n_classes
        self.shown = shown or (numbers, values)
        self.rows = []  # (row, when it came, its entity); None in place of a row that was forgotten
        self.labels = []  # (entity, class, when the label came); None in place of one that was taken back
        self.evicted = {}  # how many rows and labels there were when an entity was evicted
        self.latest = {}  # when the latest row of each entity came; NaN if that is unknown, since it was forgotten
        self.went_back = False
        self.now = self.first = math.nan
        self.far = self.before = self.since = 0
        self.landed, self.behind = math.nan, []
        self.began = math.inf  # when the decay began
        self.gaps = []

    def entity(self, row):
        """The texts that name it, or None."""
        names = tuple(text(row.get(column)) for column in self.columns)
        return None if None in names else names

    def arrive(self, row, described=True):
        """The time at which the row came, and its features, unless nobody wants them."""
        time = len(self.rows) if self.time is None else row.get(self.time)
        if not is_missing(time):
            self.tick(time)
        if self.given and not math.isnan(self.now):
            self.began = self.first if self.began == math.inf or self.began > self.now else self.began
        own = self.entity(row)
        features = self.features(row, own) if described else None
        latest = self.latest.get(own, math.nan)
        if not math.isnan(latest) and not math.isnan(self.now):
            self.gaps.append(max(self.now - latest, 0.0))
        self.rows.append((row, self.now, own))
        if own is not None:
            self.latest[own] = self.now
        return self.now, features

    def tick(self, time):
        """The clock: it does not believe few rows that are far from the others."""
        if math.isnan(self.now):
            self.now = self.first = self.landed = time
            self.since = 1
        elif time < self.now:
            self.far = 0
            self.behind.append(time)
            if len(self.behind) == 8:
                low, high = min(self.behind), max(self.behind)
                self.behind = []
                if self.since <= 4 and self.now - high > 30 * (high - low):
                    self.now = self.landed = high
                    self.before = 0 if low < self.first else self.before
                    self.first, self.since = min(low, self.first), 8
                    self.went_back = True
        else:
            span = self.now - self.first
            if len(self.rows) + 1 > 100 and span > 0 and time - self.now > 30 * span and self.far < 7:
                self.far += 1
                return
            if time - self.now > span:
                self.before, self.since, self.landed, self.behind = self.before + self.since, 0, time, []
            self.now, self.far, self.since = time, 0, self.since + 1
            if self.since == 8 and self.before <= 4 and self.landed - self.first > 30 * (time - self.landed):
                self.first = self.landed

    def own(self, events, own, which):
        """The events of an entity since it was last evicted."""
        start = self.evicted.get(own, (0, 0))[which]
        return [each for each in events[start:] if each is not None and each[-1 if which == 0 else 0] == own]

    def forget(self, place):
        _, came, own = self.rows[place]
        self.rows[place] = (None, came, own)
        if self.latest.get(own) == came:
            self.latest[own] = math.nan

    def evict(self, own):
        self.evicted[own] = len(self.rows), len(self.labels)
        self.latest.pop(own, None)

    def weight(self, came, horizon, now=None):
        """Of something that came at this time, now or then."""
        now = self.now if now is None else now
        start = self.began if math.isnan(came) else max(came, self.began)
        age = now - start
        return math.exp(-age / horizon) if age > 0 and self.began < math.inf else 1.0

    def past(self, own=None):
        rows = self.rows if own is None else self.own(self.rows, own, 0)
        return [(row, came) for row, came, _ in rows if row is not None]

    def features(self, row, own):
        ours = self.past(own) if own is not None else []
        found, horizons = [], self.horizons
        latest = self.latest.get(own, math.nan)
        if math.isnan(latest):
            found.append(sum(map(math.log1p, self.gaps)) / len(self.gaps) if self.gaps else 0.0)
        else:
            found.append(math.log1p(max(self.now - latest, 0.0)))
        found += [math.log1p(sum(self.weight(came, h) for _, came in ours)) for h in horizons]
        longest = horizons[-1]
        overall = self.shares(self.labels, longest)
        for k in self.classes[1:]:
            usual = overall[k] / sum(overall) if sum(overall) > 1e-12 else 0.0
            for h in horizons:
                counts = self.shares([] if own is None else self.own(self.labels, own, 1), h)
                found.append((counts[k] + usual) / (sum(counts) + 1.0))
        for name in self.shown[0]:
            value = row.get(name)
            if name not in self.numbers:
                found += [0.0] * (2 * len(horizons) + 1)
                continue
            for h in horizons:
                _, usual, spread = self.moments(self.past(), name, h)
                weight, mean, variance = self.moments(ours, name, h)
                mean = (weight * mean + usual) / (weight + 1.0)
                deviation = math.sqrt((weight * variance + spread) / (weight + 1.0))
                found.append(mean)
                there = not is_missing(value) and deviation > 1e-6 * max(abs(mean), 1e-12)
                position = (value - mean) / deviation if there else 0.0
                found.append(math.copysign(math.log1p(abs(position)), position))
            found.append(deviation)
        for name in self.shown[1]:
            if name not in self.values:
                found += [0.0, 0.0]
                continue
            value, shares = text(row.get(name)), {}
            for each, came in ours:
                if text(each.get(name)) is not None:
                    shares[text(each[name])] = shares.get(text(each[name]), 0.0) + self.weight(came, longest)
            everyone = sum(self.weight(came, longest) for _, came in self.past())
            same = sum(self.weight(came, longest) for each, came in self.past() if text(each.get(name)) == value)
            n = sum(self.weight(came, longest) for _, came in ours)
            usual = same / everyone if everyone > 1e-12 else 0.0
            mine = shares.get(value, 0.0)
            found.append(math.log((mine + usual + 0.01) / (n + 1.0) / (usual + 0.01)) if value is not None else 0.0)
            found.append(sum(min(share, 1.0) for share in shares.values()))
        return found

    def shares(self, labels, horizon):
        """The weight of each class; labels fade only as others come."""
        labels = [label for label in labels if label is not None]
        latest = max((came for _, _, came in labels if not math.isnan(came)), default=math.nan)
        return [sum(self.weight(came, horizon, latest) for _, c, came in labels if c == k) for k in self.classes]

    @property
    def classes(self):
        return range(self.n_classes)

    def moments(self, past, name, horizon):
        """Weight, mean and variance of a column."""
        pairs = [(self.weight(came, horizon), row[name]) for row, came in past if not is_missing(row.get(name))]
        total = sum(weight for weight, _ in pairs)
        if total == 0:
            return 0.0, 0.0, 0.0
        mean = sum(weight * value for weight, value in pairs) / total
        return total, mean, sum(weight * (value - mean) ** 2 for weight, value in pairs) / total


def is_missing(value):
    return value is None or (isinstance(value, float) and math.isnan(value))


def text(value):
    """A value as a text, or None if it is missing."""
    if value == "" or is_missing(value):
        return None
    return str(int(value)) if isinstance(value, float) else str(value).strip()
