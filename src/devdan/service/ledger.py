"""What becomes of rows and labels: the rules by which they are new, repeated, contradictory, early, expired or learned.

A group of submissions is decided in one transaction. Only what counts goes into the log, so whoever reads it need not
decide anything again; what is expired is there as a record too, so that reading needs no clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from devdan.service import models
from devdan.service.database import Connection
from devdan.service.logged import Columns, Early, Expired, Label, Labels, Rows, Value
from devdan.service.logged import Record as LogRecord
from devdan.service.naming import InvalidError
from devdan.service.register import Facts, Group, Sample, Source, advance, facts, packed, positions, samples

_EARLY = -1  # the place of a label that has no row yet
_OLDEST = 16  # records looked at for expiry at a time


class Row(NamedTuple):
    """A row as it came, with what was answered; ``label`` for a row that came with its label."""

    id: str
    features: dict[str, Value]
    key: str | None = None
    predicted: Label | None = None
    confidence: float | None = None
    label: Label | None = None
    is_new: bool = False  # the service has made its id just now


class Submission(NamedTuple):
    """What one request brings: rows, or labels by their ids; ``source`` for what may be read again.

    What is read again is known by its source: nothing of it is new, even if its ids were forgotten since. It must be
    submitted in the order of its topic.
    """

    stream: int
    rows: Sequence[Row] = ()
    labels: Sequence[tuple[str, Label]] = ()
    source: Source | None = None


class Refused(NamedTuple):
    """A row or label that contradicts what is known of its id."""

    id: str
    why: str


class Outcome(NamedTuple):
    """What became of a submission: how many of its rows and labels, or why it was refused as a whole."""

    rows: int = 0
    repeated_rows: int = 0
    accepted: int = 0
    repeated: int = 0
    waiting: int = 0
    expired: int = 0
    refused: Sequence[Refused] = ()
    error: str | None = None
    gone: bool = False  # there is no such stream any more


def commit(connection: Connection, submissions: Sequence[Submission], now: float) -> list[Outcome]:
    """Decide about a group of submissions and write what counts, in one transaction."""
    with connection.transaction():
        group = Group(connection, now)
        known = facts(connection, {one.stream for one in submissions})
        outcomes: list[Outcome] = [Outcome(gone=True, error="there is no such stream")] * len(submissions)
        for number, stream in known.items():
            places = [place for place, one in enumerate(submissions) if one.stream == number]
            decided = _StreamGroup(group, stream).decide([submissions[place] for place in places])
            for place, outcome in zip(places, decided, strict=True):
                outcomes[place] = outcome
        group.close()
    return outcomes


def expire(connection: Connection, now: float) -> None:
    """Let go of what has waited for too long in streams that nothing comes to."""
    with connection.transaction():
        group = Group(connection, now)
        for stream in facts(connection).values():
            _StreamGroup(group, stream).decide([])
        group.close()


class _StreamGroup:
    """The submissions of a group to one stream."""

    def __init__(self, group: Group, stream: Facts) -> None:
        self.group, self.connection, self.stream = group, group.connection, stream
        self._fresh: list[tuple[Row, list[Value]]] = []
        self._places: dict[str, int] = {}  # of fresh rows, by id
        self._taught: list[tuple[str, tuple[int, int], Label]] = []
        self._early: dict[str, Label] = {}
        self._labelled: dict[str, Label] = {}  # within this group
        self._bodies: dict[int, LogRecord | None] = {}
        self._fresh_seq = 0

    def decide(self, submissions: Sequence[Submission]) -> list[Outcome]:
        before = msgspec.structs.replace(self.stream)
        outcomes = [Outcome()] * len(submissions)
        self._expire()  # what is too old by now
        self._samples = self._known(submissions)
        sources = [one.source for one in submissions if one.source is not None]
        before_these = positions(self.connection, self.stream.number) if sources else {}
        again = [
            one.source is not None and one.source.offset < before_these.get(one.source[:2], 0) for one in submissions
        ]
        for place, one in enumerate(submissions):
            if one.rows:
                outcomes[place] = self._take_rows(one, again[place])
        self._write_rows()
        for place, one in enumerate(submissions):
            pairs = [*one.labels, *((row.id, row.label) for row in one.rows if row.label is not None)]
            if pairs and outcomes[place].error is None:
                outcomes[place] = self._take_labels(pairs, outcomes[place], again[place])
        self._write_labels()
        advance(self.connection, self.stream.number, sources)
        self._expire()  # what is too much
        if self.stream != before:
            stream = self.stream
            columns = None if stream.columns is None else packed(stream.columns)
            self.connection.execute(
                "UPDATE streams SET columns = ?, label_kind = ?, n_rows = ?, n_waiting = ?, n_early = ?, horizon = ? "
                "WHERE number = ?",
                (
                    columns,
                    stream.label_kind,
                    stream.n_rows,
                    stream.n_waiting,
                    stream.n_early,
                    stream.horizon,
                    stream.number,
                ),
            )
        return outcomes

    def _known(self, submissions: Sequence[Submission]) -> dict[str, Sample]:
        ids = {row.id for one in submissions for row in one.rows if not row.is_new}
        ids |= {id_ for one in submissions for id_, _ in one.labels}
        return samples(self.connection, self.stream.number, list(ids)) if ids else {}

    # --- Rows ----------------------------------------------------------------------------------------------------

    def _take_rows(self, submission: Submission, again: bool) -> Outcome:
        if self.stream.columns is None:
            if again:  # it was refused then
                return Outcome(repeated_rows=len(submission.rows))
            names = list(dict.fromkeys(name for row in submission.rows for name in row.features))
            if not names:
                return Outcome(error="the first rows say which columns there are, so they must have features; got none")
            try:
                models.new_model(msgspec.structs.replace(self.stream.settings, columns=names))
            except InvalidError as error:
                return Outcome(error=str(error))
            self.stream.columns = names
            self.group.append(self.stream.number, Columns(names))
        columns = self.stream.columns
        values: list[list[Value]] = []
        in_order, known = tuple(columns), frozenset(columns)
        for row in submission.rows:
            if tuple(row.features) == in_order:
                values.append(list(row.features.values()))
                continue
            if not known >= row.features.keys():
                name = next(name for name in row.features if name not in known)
                return Outcome(error=f"the stream has no column {name!r}: its columns are {_listed(columns)}")
            values.append([row.features.get(name) for name in columns])
        n_rows = n_repeated = 0
        refused = []
        for row, own in zip(submission.rows, values, strict=True):
            sample = None if row.is_new else self._samples.get(row.id)
            if row.id in self._places:
                first, values_then = self._fresh[self._places[row.id]]
                earlier: Any = (values_then, first.key)
            elif sample is not None and sample.place != _EARLY:
                earlier = self._stored(sample)
            elif again:
                earlier = None
            else:
                self._places[row.id] = len(self._fresh)
                self._fresh.append((row, own))
                n_rows += 1
                continue
            if earlier is None or earlier == (own, row.key):
                n_repeated += 1
            else:
                refused.append(Refused(row.id, "the id was used before, with other features or another key"))
        return Outcome(rows=n_rows, repeated_rows=n_repeated, refused=refused)

    def _stored(self, sample: Sample) -> tuple[list[Value], str | None] | None:
        """The values and the key of a row in the log, unless it was removed since."""
        if sample.seq not in self._bodies:
            self._bodies[sample.seq] = self.connection.record(self.stream.number, sample.seq)
        record = self._bodies[sample.seq]
        if record is None or not isinstance(record.body, Rows):
            return None
        body = record.body
        return body.values[sample.place], None if body.keys is None else body.keys[sample.place]

    def _write_rows(self) -> None:
        if not self._fresh:
            return
        rows = [row for row, _ in self._fresh]
        body = Rows(
            self.stream.n_rows,
            [row.id for row in rows],
            [own for _, own in self._fresh],
            [row.predicted for row in rows],
            [row.confidence for row in rows],
            [row.key or "" for row in rows] if self.stream.settings.keyed else None,
        )
        number = self.stream.number
        seq = self._fresh_seq = self.group.append(number, body)
        early = [id_ for id_ in self._places if id_ in self._samples]
        if early:
            self.connection.many("DELETE FROM samples WHERE stream = ? AND id = ?", [(number, id_) for id_ in early])
        self.connection.many(
            "INSERT INTO samples (stream, id, seq, place) VALUES (?, ?, ?, ?)",
            [(number, id_, seq, place) for id_, place in self._places.items()],
        )
        self.connection.execute("INSERT INTO waiting VALUES (?, ?, ?, 0, ?)", (number, seq, self.group.at, len(rows)))
        self.stream.n_rows += len(rows)
        self.stream.n_waiting += len(rows)
        for id_ in early:  # its label has waited for it
            sample = self._samples.pop(id_)
            assert sample.label is not None
            self._close(sample.seq, 1, early=True)
            self._teach(id_, (seq, self._places[id_]), sample.label)

    # --- Labels --------------------------------------------------------------------------------------------------

    def _take_labels(self, pairs: Sequence[tuple[str, Label]], outcome: Outcome, again: bool) -> Outcome:
        kind = self.stream.label_kind
        for _, label in pairs:
            own = kind_of(label)
            if kind is not None and own != kind:
                return Outcome(error=f"labels of this stream are of type {kind}, got {own}: {label!r}")
            kind = own
        self.stream.label_kind = kind
        accepted = repeated = waiting = expired = 0
        refused = list(outcome.refused)
        contradicted = {one.id for one in refused}
        for id_, label in pairs:
            if id_ in contradicted:
                continue
            sample = self._samples.get(id_)
            before = self._labelled.get(id_, self._early.get(id_))
            if before is None and sample is not None:
                before = sample.label
            if before is not None:
                if before == label:
                    repeated += 1
                else:
                    refused.append(Refused(id_, f"its label is {before!r}, which was learned before"))
            elif again:
                repeated += 1
            elif id_ in self._places:
                self._teach(id_, (self._fresh_seq, self._places[id_]), label)
                accepted += 1
            elif sample is None:
                self._early[id_] = label
                waiting += 1
            elif sample.seq <= self.stream.horizon:
                expired += 1
            else:
                self._teach(id_, (sample.seq, sample.place), label)
                accepted += 1
        return outcome._replace(accepted=accepted, repeated=repeated, waiting=waiting, expired=expired, refused=refused)

    def _teach(self, id_: str, row: tuple[int, int], label: Label) -> None:
        self._taught.append((id_, row, label))
        self._labelled[id_] = label

    def _write_labels(self) -> None:
        number = self.stream.number
        if self._taught:
            body = Labels([row for _, row, _ in self._taught], [label for _, _, label in self._taught])
            seq = self.group.append(number, body)
            self.connection.many(
                "INSERT INTO samples (stream, id, seq, place, label, label_seq) VALUES (?, ?, ?, ?, ?, ?) "
                "ON CONFLICT (stream, id) DO UPDATE SET label = excluded.label, label_seq = excluded.label_seq",
                [(number, id_, *row, packed(label), seq) for id_, row, label in self._taught],
            )
            closed: dict[int, int] = {}
            for _, (row_seq, _), _ in self._taught:
                closed[row_seq] = closed.get(row_seq, 0) + 1
            for row_seq, n in closed.items():
                self._close(row_seq, n)
        if self._early:
            seq = self.group.append(number, Early(list(self._early), list(self._early.values())))
            self.connection.many(
                "INSERT INTO samples (stream, id, seq, place, label, label_seq) VALUES (?, ?, ?, ?, ?, ?)",
                [(number, id_, seq, _EARLY, packed(label), seq) for id_, label in self._early.items()],
            )
            n = len(self._early)
            self.connection.execute("INSERT INTO waiting VALUES (?, ?, ?, 1, ?)", (number, seq, self.group.at, n))
            self.stream.n_early += n

    def _close(self, seq: int, n: int, *, early: bool = False) -> None:
        """So many rows, or early labels, of a record wait no longer."""
        where = "WHERE stream = ? AND seq = ?"
        self.connection.execute(f"UPDATE waiting SET open = open - ? {where}", (n, self.stream.number, seq))
        self.connection.execute(f"DELETE FROM waiting {where} AND open <= 0", (self.stream.number, seq))
        if early:
            self.stream.n_early -= n
        else:
            self.stream.n_waiting -= n

    # --- Expiry --------------------------------------------------------------------------------------------------

    def _expire(self) -> None:
        """Let the oldest go, commit by commit, until none is too old and there are not too many."""
        stream, settings = self.stream, self.stream.settings
        n_rows = n_labels = up_to = 0
        while True:
            oldest = self.connection.execute(
                "SELECT seq, at, early, open FROM waiting WHERE stream = ? ORDER BY seq LIMIT ?",
                (stream.number, _OLDEST),
            )
            gone = []
            for seq, at, early, n in oldest:
                held = stream.n_waiting + stream.n_early
                if self.group.at - at <= settings.wait and held <= settings.max_waiting:
                    break
                gone.append(seq)
                up_to = seq
                if early:
                    self._forget(seq)
                    n_labels += n
                    stream.n_early -= n
                else:
                    n_rows += n
                    stream.n_waiting -= n
            self.connection.many(
                "DELETE FROM waiting WHERE stream = ? AND seq = ?", [(stream.number, seq) for seq in gone]
            )
            if len(gone) < _OLDEST:
                break
        if up_to:
            stream.horizon = up_to
            self.group.append(stream.number, Expired(up_to, n_rows, n_labels))

    def _forget(self, seq: int) -> None:
        """Labels that came early and wait no longer: their ids are as if they had never come."""
        record = self.connection.record(self.stream.number, seq)
        assert record is not None
        assert isinstance(record.body, Early)
        self.connection.many(
            "DELETE FROM samples WHERE stream = ? AND id = ? AND place = ?",
            [(self.stream.number, id_, _EARLY) for id_ in record.body.ids],
        )


def kind_of(label: Label) -> str:
    """What a label is, in words."""
    return "true or false" if isinstance(label, bool) else "number" if isinstance(label, int) else "text"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:20]) + (f", … ({len(names)} in all)" if len(names) > 20 else "")
