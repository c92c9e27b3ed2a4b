"""Figures of a stream along the log, such as accuracy by time of prediction: they follow from it, like the model."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

import msgspec

from devdan.model.decision import text_of
from devdan.service import models
from devdan.service.schema import (
    Label,
    LoggedAssumptions,
    LoggedCorrections,
    LoggedExpiry,
    LoggedForgetting,
    LoggedLabels,
    LoggedRows,
    LogRecord,
)
from devdan.service.watched import ByTheClock, ColumnCount, JudgedRow, ScoreCounts, count_columns

WINDOW = 1000  # latest labelled rows, for accuracy
MOST_SPANS = 200
DELAYS = (1.0, 10.0, 60.0, 600.0, 3600.0, 6 * 3600.0, 86_400.0, 7 * 86_400.0, 30 * 86_400.0)  # seconds
_LEAST_APART, _APART = 500, 50  # rows between two measurements: at least, and as a fraction of all rows
_LATEST = 12
_REFUSALS = 1000  # of labels that are remembered one by one


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


class Refusals(NamedTuple):
    """Which labels the model did not take, by their records.

    >>> refusals = Refusals(10, ((21, 23), (30, 30)))
    >>> [refusals.fate(seq) for seq in (9, 11, 22, 24)]
    ['learned or unusable', 'learned', 'unusable', 'learned']
    """

    before: int = 0  # up to this record, it is not remembered
    ranges: tuple[tuple[int, int], ...] = ()

    def fate(self, seq: int) -> str:
        """What became of the labels of a record that the model has come to."""
        if seq <= self.before:
            return "learned or unusable"
        place = bisect_right(self.ranges, (seq, math.inf)) - 1
        return "unusable" if place >= 0 and seq <= self.ranges[place][1] else "learned"


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
    n_assumed: int = 0  # of the labels, those that did not come in time
    n_expired_rows: int = 0
    n_expired_labels: int = 0
    n_forgotten: int = 0
    n_forgotten_waiting: int = 0  # those of them that waited for their labels
    n_unusable: int = 0  # rows or labels that the model could not take
    problem: str = ""  # why, the last time
    refused: list[tuple[int, int]] = []  # the first and last of records in a row whose labels the model did not take
    refused_before: int = 0  # up to this record, it is not remembered which were refused
    is_refusing: bool = False  # the latest labels were refused
    outcomes: dict[int, JudgedRow] = {}  # of the latest labelled rows, by row
    delays: list[int] = msgspec.field(
        default_factory=lambda: [0] * (len(DELAYS) + 1)
    )  # label delays up to each of DELAYS, and above
    delay_sum: float = 0.0
    latest: list[LatestRow] = []
    asked_at: int = 0  # rows when importances were last measured
    clock: ByTheClock = msgspec.field(default_factory=ByTheClock)
    columns: list[ColumnCount] = []
    scores: ScoreCounts = msgspec.field(default_factory=ScoreCounts)  # of all labelled rows of two classes
    class_drifts: dict[str, int] = {}  # real drifts of a single class, by class

    @property
    def accuracy(self) -> float | None:
        """Over the window of labelled rows."""
        right = sum(one.predicted == one.label for one in self.outcomes.values())
        return right / len(self.outcomes) if self.outcomes else None

    @property
    def scores_lately(self) -> ScoreCounts:
        """Of the window of labelled rows."""
        counts = ScoreCounts()
        for one in self.outcomes.values():
            counts.add(one)
        return counts

    @property
    def n_waiting(self) -> int:
        """Rows that wait for their labels."""
        return self.n_rows - self.n_labels - self.n_expired_rows - self.n_forgotten_waiting

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
        self.clock.rows(record.at, [None if label is None else text_of(label) for label in rows.predicted])
        count_columns(self.columns, rows.values)
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
            if not isinstance(labels, LoggedAssumptions):
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
            self.outcomes[body.first + place] = outcome = JudgedRow(text_of(predicted), text_of(label), confidence)
            self._count(outcome)
            self.clock.label(came.at, text_of(predicted), text_of(label))
        for row in list(islice(self.outcomes, max(len(self.outcomes) - WINDOW, 0))):
            del self.outcomes[row]
        self.n_labels += len(labels.labels)
        self.n_assumed += len(labels.labels) if isinstance(labels, LoggedAssumptions) else 0

    def _count(self, outcome: JudgedRow, n: int = 1) -> None:
        if len(self.clock.total.classes) <= 2:
            self.scores.add(outcome, n)
        else:
            self.scores = ScoreCounts()

    def corrections(self, body: LoggedCorrections, rows: list[tuple[LogRecord, LoggedRows]]) -> None:
        """Count labels that replace others, under the time of their predictions."""
        for (_, place), before, label, (came, own) in zip(body.rows, body.before, body.labels, rows, strict=True):
            predicted, confidence, number = own.predicted[place], own.confidence[place], own.first + place
            if predicted is None or confidence is None:
                continue
            self.clock.label(came.at, text_of(predicted), text_of(label), text_of(before))
            self.span(number).n_correct += (predicted == label) - (predicted == before)
            self._count(JudgedRow(text_of(predicted), text_of(before), confidence), -1)
            outcome = JudgedRow(text_of(predicted), text_of(label), confidence)
            self._count(outcome)
            if number in self.outcomes:
                self.outcomes[number] = outcome
        self.n_corrected += len(body.labels)

    def forgotten(self, body: LoggedForgetting, rows: LoggedRows) -> None:
        """Forget a row: only sums keep what it was."""
        assert body.row is not None
        self.outcomes.pop(rows.first + body.row[1], None)
        self.latest = [row for row in self.latest if row.id != body.id]
        self.problem = ""  # which may cite it
        self.n_forgotten += 1
        self.n_forgotten_waiting += body.waited

    def expired(self, body: LoggedExpiry) -> None:
        """Count what was evicted."""
        self.n_expired_rows += body.n_rows
        self.n_expired_labels += body.n_labels

    def refuse(self, seq: int) -> None:
        """The model could not take the labels of a record."""
        if self.is_refusing:
            self.refused[-1] = self.refused[-1][0], seq
        else:
            self.refused.append((seq, seq))
        self.is_refusing = True
        if len(self.refused) > _REFUSALS:
            _, self.refused_before = self.refused.pop(0)

    @property
    def refusals(self) -> Refusals:
        """As it is now."""
        return Refusals(self.refused_before, tuple(self.refused))

    def structure(self, n_hidden: int, virtual: int, real: int, of_classes: Sequence[Label] = ()) -> None:
        """The hidden units of the model after the latest rows, and drifts that it has signalled since the last time.

        Those of a single class are among the real ones.
        """
        for label in map(text_of, of_classes):
            self.class_drifts[label] = self.class_drifts.get(label, 0) + 1
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
