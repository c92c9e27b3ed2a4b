"""The model as a function of the log: the same records give the same bits, at any time and in any process.

Each record is a portion: rows are observed and labels taught as they were committed together. Neither a clock nor
chance comes in: times are in the records, and the model has a seed. Counts along the log (accuracy by time of
prediction, label delays, drifts and structure) follow from it likewise.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Sequence
from itertools import islice

import msgspec

from devdan.service import models, sql
from devdan.service.schema import (
    Label,
    LoggedColumns,
    LoggedCorrections,
    LoggedExpiry,
    LoggedLabels,
    LoggedRows,
    LogRecord,
    StreamSettings,
    Value,
)
from devdan.service.sql import Connection, Snapshot, StreamFacts

WINDOW = 1000  # latest labelled rows, for accuracy
MOST_SPANS = 200
DELAYS = (1.0, 10.0, 60.0, 600.0, 3600.0, 6 * 3600.0, 86_400.0, 7 * 86_400.0, 30 * 86_400.0)  # seconds
_LEAST_APART, _APART = 500, 50  # rows between two measurements: at least, and as a fraction of all rows
_LATEST = 12

_CACHED = 20_000  # rows that may get labels soon

Find = Callable[[int], LogRecord | None]  # a record of the stream, by its number

# --- Counts ----------------------------------------------------------------------------------------------------------


class Span(msgspec.Struct, array_like=True):
    """Consecutive rows of the stream: how many, predicted, labelled, correct, and the sum of their confidence."""

    begin: float = 0.0  # when the first row came
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


class LatestRow(msgspec.Struct, array_like=True):
    """One of the latest rows."""

    id: str
    at: float
    predicted: int | str | bool | None
    confidence: float | None


class Counts(msgspec.Struct):
    """Counts of a stream; they follow from the log, like the model."""

    width: int = 50  # rows of a span; doubled when there are too many spans
    spans: list[Span] = []
    n_rows: int = 0
    n_labels: int = 0
    n_corrected: int = 0  # labels that were replaced
    n_expired_rows: int = 0
    n_expired_labels: int = 0
    n_unusable: int = 0  # rows or labels that the model could not take
    problem: str = ""  # why, the last time
    outcomes: dict[int, bool] = {}  # whether the predictions of the latest labelled rows were right, by row
    delays: list[int] = msgspec.field(
        default_factory=lambda: [0] * (len(DELAYS) + 1)
    )  # label delays up to each of DELAYS, and above
    delay_sum: float = 0.0
    latest: list[LatestRow] = []
    asked_at: int = 0  # rows when importances were last measured

    @property
    def accuracy(self) -> float | None:
        """Over the window of labelled rows."""
        return sum(self.outcomes.values()) / len(self.outcomes) if self.outcomes else None

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

    def rows(self, record: LogRecord, rows: LoggedRows) -> None:
        """Count rows that came."""
        self.span(rows.first + len(rows.ids) - 1)  # widens the spans, if that is needed
        start = 0
        while start < len(rows.ids):
            span = self.span(rows.first + start)
            end = start + self.width - (rows.first + start) % self.width
            predicted = [confidence for confidence in rows.confidence[start:end] if confidence is not None]
            span.begin = span.begin or record.at
            span.n_rows += len(rows.ids[start:end])
            span.n_predicted += len(predicted)
            span.confidence += sum(predicted)
            start = end
        self.n_rows += len(rows.ids)
        newest = zip(rows.ids[-_LATEST:], rows.predicted[-_LATEST:], rows.confidence[-_LATEST:], strict=True)
        self.latest += [LatestRow(id_, record.at, predicted, confidence) for id_, predicted, confidence in newest]
        del self.latest[:-_LATEST]

    def labels(self, record: LogRecord, labels: LoggedLabels, rows: list[tuple[LogRecord, LoggedRows]]) -> None:
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
            self.outcomes[body.first + place] = predicted == label
        for row in list(islice(self.outcomes, max(len(self.outcomes) - WINDOW, 0))):
            del self.outcomes[row]
        self.n_labels += len(labels.labels)

    def corrections(self, body: LoggedCorrections, rows: list[tuple[LogRecord, LoggedRows]]) -> None:
        """Count labels that replace others, under the time of their predictions."""
        for (_, place), before, label, (_, own) in zip(body.rows, body.before, body.labels, rows, strict=True):
            predicted, number = own.predicted[place], own.first + place
            if predicted is None or own.confidence[place] is None:
                continue
            self.span(number).n_correct += (predicted == label) - (predicted == before)
            if number in self.outcomes:
                self.outcomes[number] = predicted == label
        self.n_corrected += len(body.labels)

    def expired(self, body: LoggedExpiry) -> None:
        """Count what was evicted."""
        self.n_expired_rows += body.n_rows
        self.n_expired_labels += body.n_labels

    def structure(self, n_hidden: int, virtual: int, real: int) -> None:
        """The hidden units of the model after the latest rows, and drifts that it has signalled since the last time."""
        if self.n_rows:
            span = self.span(self.n_rows - 1)
            span.n_hidden = n_hidden
            span.virtual += virtual
            span.real += real

    def is_due(self, n_columns: int) -> bool:
        """Whether to measure which columns matter: some hundred times, with no more predictions for it than rows."""
        n_new = self.n_rows - self.asked_at
        return n_new >= max(_LEAST_APART, self.n_rows // _APART, models.ASKED * (n_columns + 1))

    def importances(self, of_columns: dict[str, float]) -> None:
        """Note which columns matter most after the latest rows."""
        self.asked_at = self.n_rows
        if self.n_rows:
            self.span(self.n_rows - 1).importances = of_columns

    @property
    def expected(self) -> float | None:
        """The accuracy that the probabilities of the latest predictions promise, before their labels come."""
        shown = [span for span in self.spans[-20:] if span.n_predicted]
        n = sum(span.n_predicted for span in shown)
        return sum(span.confidence for span in shown) / n if n else None

    @property
    def held(self) -> float | None:
        """How much more (or less) accurate labelled predictions were than promised."""
        n = sum(span.n_labelled for span in self.spans)
        promised = math.fsum(span.confidence_labelled for span in self.spans)
        return (sum(span.n_correct for span in self.spans) - promised) / n if n else None


# --- The model and the counts ----------------------------------------------------------------------------------------

_counts = msgspec.msgpack.Decoder(Counts).decode


class GapError(RuntimeError):
    """The log lacks something that a record refers to."""


class Fold:
    """The state after the records up to ``seq``: the model, and the counts.

    >>> fold = Fold(StreamSettings())
    >>> rows = LoggedRows(0, ["a", "b"], [[1.0], [2.0]], [None, None], [None, None])
    >>> bodies = [LoggedColumns(["x"]), rows, LoggedLabels([(2, 0), (2, 1)], ["low", "high"])]
    >>> for seq, body in enumerate(bodies, start=1):
    ...     fold.apply(LogRecord(seq, 1, 0.0, body))
    >>> fold.seq, fold.model.classes_.tolist(), fold.counts.n_labels
    (3, ['high', 'low'], 2)
    """

    def __init__(self, settings: StreamSettings, find: Find = lambda seq: None) -> None:
        self.settings, self._find = settings, find
        self.model: models.Model = models.new_model(settings)
        self.counts, self.columns, self.seq = Counts(), settings.columns, 0
        self._recent: OrderedDict[int, tuple[LogRecord, LoggedRows]] = OrderedDict()
        self._n_recent = 0  # rows in them
        self.n_hidden, self.drifts = 0, (0, 0)  # virtual and real
        self.at = 0.0  # when the last record was written

    @classmethod
    def restored(cls, connection: Connection, stream: StreamFacts, kept: Snapshot | None) -> Fold:
        """Go on from a snapshot, or begin."""
        fold = cls(stream.settings, lambda seq: connection.record(stream.number, seq))
        if kept is None:
            return fold
        fold.columns = stream.columns if kept.seq else stream.settings.columns
        fold.seq, fold.counts = kept.seq, _counts(kept.counts)
        if kept.model is not None:
            fold.model = models.of_content(kept.model, "the snapshot")
            fold.n_hidden, *drifts = models.structure(fold.model)
            fold.drifts = drifts[0], drifts[1]
        return fold

    def snapshot(self, at: float) -> Snapshot:
        """The state, to be kept."""
        return Snapshot(self.seq, at, models.content_of(self.model), msgspec.msgpack.encode(self.counts))

    def apply(self, record: LogRecord) -> None:
        """Take the next record."""
        body = record.body
        if isinstance(body, LoggedColumns):
            self.columns = body.names
        elif isinstance(body, LoggedRows):
            self._remember(record, body)
            self.counts.rows(record, body)
            self._learn(body.values, body.keys, None)
        elif isinstance(body, LoggedLabels):
            rows = self._rows_of(body.rows)
            self.counts.labels(record, body, rows)
            self._learn(*_taken(rows, body.rows), body.labels)
        elif isinstance(body, LoggedCorrections):
            rows = self._rows_of(body.rows)
            self.counts.corrections(body, rows)
            self._learn(*_taken(rows, body.rows), body.labels, body.before)
        elif isinstance(body, LoggedExpiry):
            self.counts.expired(body)
        self.seq, self.at = record.seq, record.at

    def _learn(
        self,
        values: Sequence[Sequence[Value]],
        keys: list[str] | None,
        labels: list[Label] | None,
        before: list[Label] | None = None,
    ) -> None:
        """Observe rows, or teach their labels; instead of those before, if there were."""
        assert self.columns is not None
        try:
            X = models.table(self.columns, values)
            if before is not None:
                models.forget(self.model, X, keys, before)
            models.check_memory(self.model, self.settings, self.columns, values, keys, labels)
            if labels is None:
                models.observe(self.model, X, keys)
            else:
                models.teach(self.model, X, keys, labels)
        except ValueError as error:  # what the model cannot take is counted, the same in each replay
            self.counts.n_unusable += len(values)
            self.counts.problem = str(error)
            return
        self.n_hidden, virtual, real = models.structure(self.model)
        self.counts.structure(self.n_hidden, virtual - self.drifts[0], real - self.drifts[1])
        self.drifts = virtual, real
        if labels is not None and self.counts.is_due(len(self.columns)):
            self.counts.importances(models.importances(self.model))

    def is_same_as(self, kept: Snapshot) -> bool:
        """Whether a snapshot holds this state, bit for bit."""
        return msgspec.msgpack.encode(self.counts) == kept.counts and models.are_same(self.model, kept.model)

    def _remember(self, record: LogRecord, rows: LoggedRows) -> None:
        self._recent[record.seq] = record, rows
        self._n_recent += len(rows.ids)
        while self._n_recent > _CACHED and len(self._recent) > 1:
            _, (_, oldest) = self._recent.popitem(last=False)
            self._n_recent -= len(oldest.ids)

    def _rows_of(self, places: Sequence[tuple[int, int]]) -> list[tuple[LogRecord, LoggedRows]]:
        """The records of rows."""
        found = {seq: self._rows(seq) for seq in dict.fromkeys(seq for seq, _ in places)}
        return [found[seq] for seq, _ in places]

    def _rows(self, seq: int) -> tuple[LogRecord, LoggedRows]:
        if seq in self._recent:
            self._recent.move_to_end(seq)
            return self._recent[seq]
        record = self._find(seq)
        if record is None or not isinstance(record.body, LoggedRows):
            raise GapError(f"the log lacks the rows of record {seq}, whose labels it has")
        self._remember(record, record.body)  # labels of one record mostly come together
        return record, record.body


def _taken(
    rows: Sequence[tuple[LogRecord, LoggedRows]], places: Sequence[tuple[int, int]]
) -> tuple[list[Sequence[Value]], list[str]]:
    """The values of rows in their records, and their keys, if they have any."""
    values = [own.values[place] for (_, own), (_, place) in zip(rows, places, strict=True)]
    return values, [own.keys[place] for (_, own), (_, place) in zip(rows, places, strict=True) if own.keys]


def latest(connection: Connection, stream: StreamFacts) -> tuple[Fold, Snapshot | None]:
    """Where learning goes on: the latest snapshot, the base, or the beginning."""
    number = stream.number
    kept = sql.snapshot(connection, number, sql.LATEST) or sql.snapshot(connection, number, sql.BASE)
    return Fold.restored(connection, stream, kept), kept


def begin_with(connection: Connection, stream: int, model: bytes, now: float) -> None:
    """Let a new stream begin with a model that has learned before, within a transaction."""
    sql.put_snapshot(connection, stream, sql.BASE, Snapshot(0, now, model, msgspec.msgpack.encode(Counts())))
