"""Histories, slow and obvious: each is computed anew from all raw events and the times at which they came.

Nothing is kept but the events. All numbers are written out here, none is the package's.
"""

import math


class NaiveHistories:
    """What :class:`devdan.Histories` says of rows (dicts), for one kind of entity."""

    def __init__(self, columns, time, horizons, numbers, values, n_classes):
        self.columns, self.time = columns, time
        self.given = horizons is not None
        self.horizons = horizons or [1.0, 1.0, 1.0]  # of no effect before the decay begins
        self.numbers, self.values, self.n_classes = numbers, values, n_classes
        self.rows = []  # (row, when it came, its entity); None in place of a row that was forgotten
        self.labels = []  # (row, class, when the label came)
        self.now = self.first = math.nan
        self.far = 0
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
            if math.isnan(self.now):
                self.now = self.first = time
            elif time >= self.now:
                span = self.now - self.first
                is_far = len(self.rows) + 1 > 100 and span > 0 and time - self.now > 30 * span
                if is_far and self.far < 7:
                    self.far += 1
                else:
                    self.now, self.far = time, 0
            else:
                self.far = 0
        if self.given and self.began == math.inf and not math.isnan(self.now):
            self.began = self.now
        own = self.entity(row)
        features = self.features(row, own) if described else None
        latest = [came for _, came, entity in self.rows if entity == own and own is not None]
        if latest:
            self.gaps.append(max(self.now - latest[-1], 0.0) if not math.isnan(self.now) else 0.0)
        self.rows.append((row, self.now, own))
        return self.now, features

    def weight(self, came, horizon, now=None):
        """Of something that came at this time, now or then."""
        now = self.now if now is None else now
        start = self.began if math.isnan(came) else max(came, self.began)
        age = now - start
        return math.exp(-age / horizon) if age > 0 and self.began < math.inf else 1.0

    def past(self, own=None):
        return [(row, came) for row, came, entity in self.rows if row is not None and (own is None or entity == own)]

    def features(self, row, own):
        ours = self.past(own) if own is not None else []
        found, horizons = [], self.horizons
        latest = [came for _, came, entity in self.rows if own is not None and entity == own]
        if not latest:
            found.append(sum(map(math.log1p, self.gaps)) / len(self.gaps) if self.gaps else 0.0)
        else:
            found.append(math.log1p(max(self.now - latest[-1], 0.0)) if not math.isnan(self.now) else 0.0)
        found += [math.log1p(sum(self.weight(came, h) for _, came in ours)) for h in horizons]
        longest = horizons[-1]
        overall = self.shares(self.labels, longest)
        for k in self.classes[1:]:
            usual = overall[k] / sum(overall) if sum(overall) > 1e-12 else 0.0
            for h in horizons:
                counts = self.shares([label for label in self.labels if self.of(label[0]) == own], h)
                counts = counts if own is not None else [0.0] * self.n_classes
                found.append((counts[k] + usual) / (sum(counts) + 1.0))
        for name in self.numbers:
            value = row.get(name)
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
        for name in self.values:
            value, shares = text(row.get(name)), {}
            for each, came in ours:
                if text(each.get(name)) is not None:
                    shares[text(each[name])] = shares.get(text(each[name]), 0.0) + self.weight(came, longest)
            everyone = sum(self.weight(came, longest) for _, came in self.past())
            same = sum(self.weight(came, longest) for each, came in self.past() if text(each.get(name)) == value)
            n = sum(self.weight(came, longest) for _, came in ours)
            usual = same / everyone if everyone > 1e-12 else 0.0
            own = shares.get(value, 0.0)
            found.append(math.log((own + usual + 0.01) / (n + 1.0) / (usual + 0.01)) if value is not None else 0.0)
        return found

    def shares(self, labels, horizon):
        """The weight of each class; labels fade only as others come."""
        latest = max((came for _, _, came in labels if not math.isnan(came)), default=math.nan)
        return [sum(self.weight(came, horizon, latest) for _, c, came in labels if c == k) for k in self.classes]

    @property
    def classes(self):
        return range(self.n_classes)

    def of(self, place):
        return self.rows[place][2]

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
