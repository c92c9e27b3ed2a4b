"""What is counted along the log: accuracy by time of prediction, label delay, drifts and structure."""

from __future__ import annotations

import math

import msgspec

from devdan.service.logged import Expired, Labels, Record, Rows

WINDOW = 1000  # latest labelled rows, for accuracy
MOST_SPANS = 200
DELAYS = (1.0, 10.0, 60.0, 600.0, 3600.0, 6 * 3600.0, 86_400.0, 7 * 86_400.0, 30 * 86_400.0)  # seconds
ASKED = 100  # recent samples, about which importances are asked
_LEAST_APART, _APART = 500, 50  # rows from one asking to the next: at least, and as a part of those so far
_LATEST = 12


class Span(msgspec.Struct, array_like=True):
    """Rows next to each other in the stream: how many, predicted, labelled, correct, and how sure the model was."""

    begin: float = 0.0  # when its first row came
    n_rows: int = 0
    n_predicted: int = 0
    n_labelled: int = 0  # and predicted
    n_correct: int = 0
    confidence: float = 0.0  # sum over those predicted
    confidence_labelled: float = 0.0  # sum over those labelled, too
    n_hidden: int = 0
    virtual: int = 0  # drifts
    real: int = 0
    importances: dict[str, float] = {}  # of the columns that matter most; only now and then

    def add(self, other: Span) -> None:
        """Join the span after this one."""
        for name in ("n_rows", "n_predicted", "n_labelled", "n_correct", "confidence", "confidence_labelled"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.virtual, self.real = self.virtual + other.virtual, self.real + other.real
        self.n_hidden = other.n_hidden or self.n_hidden
        self.importances = other.importances or self.importances


class Latest(msgspec.Struct, array_like=True):
    """One of the latest rows."""

    id: str
    at: float
    predicted: int | str | bool | None
    confidence: float | None


class Tally(msgspec.Struct):
    """Counts of a stream; it follows from the log, like the model."""

    width: int = 50  # rows of a span; doubled when there are too many spans
    spans: list[Span] = []
    n_rows: int = 0
    n_labels: int = 0
    n_expired_rows: int = 0
    n_expired_labels: int = 0
    n_unusable: int = 0  # rows or labels that the model could not take
    problem: str = ""  # why, the last time
    outcomes: list[bool] = []  # whether the predictions of the latest labelled rows were right
    delays: list[int] = msgspec.field(
        default_factory=lambda: [0] * (len(DELAYS) + 1)
    )  # label delays up to each of DELAYS, and above
    delay_sum: float = 0.0
    latest: list[Latest] = []
    asked_at: int = 0  # rows when importances were last asked for

    @property
    def accuracy(self) -> float | None:
        """Over the window of labelled rows."""
        return sum(self.outcomes) / len(self.outcomes) if self.outcomes else None

    @property
    def n_waiting(self) -> int:
        """Rows that wait for their labels."""
        return self.n_rows - self.n_labels - self.n_expired_rows

    def span(self, number: int) -> Span:
        """The span of a row, by the row's number."""
        while number >= self.width * MOST_SPANS:
            self.width *= 2
            pairs = [self.spans[place : place + 2] for place in range(0, len(self.spans), 2)]
            for pair in pairs:
                for other in pair[1:]:
                    pair[0].add(other)
            self.spans = [pair[0] for pair in pairs]
        while len(self.spans) <= number // self.width:
            self.spans.append(Span())
        return self.spans[number // self.width]

    def rows(self, record: Record, rows: Rows) -> None:
        """Count rows that came."""
        self.span(rows.first + len(rows.ids) - 1)  # spans are as wide as they have to be
        start = 0
        while start < len(rows.ids):
            span = self.span(rows.first + start)
            end = start + self.width - (rows.first + start) % self.width
            said = [share for share in rows.confidence[start:end] if share is not None]
            span.begin = span.begin or record.at
            span.n_rows += len(rows.ids[start:end])
            span.n_predicted += len(said)
            span.confidence += sum(said)
            start = end
        self.n_rows += len(rows.ids)
        newest = zip(rows.ids[-_LATEST:], rows.predicted[-_LATEST:], rows.confidence[-_LATEST:], strict=True)
        self.latest = [*self.latest, *(Latest(id_, record.at, said, share) for id_, said, share in newest)][-_LATEST:]

    def labels(self, record: Record, labels: Labels, rows: list[tuple[Record, Rows]]) -> None:
        """Count labels that came, with the records of their rows."""
        for (_, place), label, (came, body) in zip(labels.rows, labels.labels, rows, strict=True):
            delay = max(record.at - came.at, 0.0)
            self.delays[next((k for k, most in enumerate(DELAYS) if delay <= most), len(DELAYS))] += 1
            self.delay_sum += delay
            predicted, confidence = body.predicted[place], body.confidence[place]
            if predicted is None or confidence is None:
                continue
            span = self.span(body.first + place)
            span.n_labelled += 1
            span.n_correct += predicted == label
            span.confidence_labelled += confidence
            self.outcomes.append(predicted == label)
        del self.outcomes[:-WINDOW]
        self.n_labels += len(labels.labels)

    def expired(self, body: Expired) -> None:
        """Count what was let go of."""
        self.n_expired_rows += body.n_rows
        self.n_expired_labels += body.n_labels

    def structure(self, n_hidden: int, virtual: int, real: int) -> None:
        """What has become of the model with the latest rows, and how many drifts it has signalled since before."""
        if self.n_rows:
            span = self.span(self.n_rows - 1)
            span.n_hidden = n_hidden
            span.virtual += virtual
            span.real += real

    def is_due(self, n_columns: int) -> bool:
        """Whether to ask which columns matter: some hundred times, with no more predictions for it than rows."""
        n_new = self.n_rows - self.asked_at
        return n_new >= max(_LEAST_APART, self.n_rows // _APART, ASKED * (n_columns + 1))

    def importances(self, shares: dict[str, float]) -> None:
        """Which columns matter most with the latest rows."""
        self.asked_at = self.n_rows
        if self.n_rows:
            self.span(self.n_rows - 1).importances = shares

    @property
    def expected(self) -> float | None:
        """The accuracy that the probabilities of the latest predictions promise, before their labels come."""
        shown = [span for span in self.spans[-20:] if span.n_predicted]
        n = sum(span.n_predicted for span in shown)
        return sum(span.confidence for span in shown) / n if n else None

    @property
    def held(self) -> float | None:
        """How much better (or worse) predictions turned out than promised, where labels have come."""
        n = sum(span.n_labelled for span in self.spans)
        promised = math.fsum(span.confidence_labelled for span in self.spans)
        return (sum(span.n_correct for span in self.spans) - promised) / n if n else None
