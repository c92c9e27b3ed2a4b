"""What becomes of rows and labels: the rules by which they are new, repeated, contradictory, early, expired or learned.

A group of submissions is decided in one transaction. Only what counts goes into the log, so whoever reads it need not
decide anything again; what is expired is there as a record too, so that reading needs no clock.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from devdan.service import models, register
from devdan.service.database import Connection
from devdan.service.logged import Columns, Early, Expired, Label, Labels, Rows, Value
from devdan.service.logged import Record as LogRecord
from devdan.service.naming import InvalidError
from devdan.service.register import Facts, Group, Sample
from devdan.service.submissions import Outcome, Refused, Row, Submission, kind_of

_OLDEST = 16  # records looked at for expiry at a time
_RECORD = 500  # rows in a record: a label that comes late may have to read all of it


def commit(connection: Connection, submissions: Sequence[Submission], now: float) -> list[Outcome]:
    """Decide about a group of submissions and write what counts, in one transaction."""
    with connection.transaction():
        group = Group(connection, now)
        known = register.facts(connection, {one.stream for one in submissions})
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
        for stream in register.facts(connection).values():
            _StreamGroup(group, stream).decide([])
        group.close()


class _StreamGroup:
    """The submissions of a group to one stream."""

    def __init__(self, group: Group, stream: Facts) -> None:
        self.group, self.connection, self.stream = group, group.connection, stream
        self._fresh: list[Row] = []
        self._values: list[Sequence[Value]] = []  # of fresh rows, in the order of the columns
        self._places: dict[str, int] = {}  # of fresh rows, by id
        self._taught: list[tuple[str, tuple[int, int], Label]] = []
        self._early: dict[str, Label] = {}
        self._labelled: dict[str, Label] = {}  # within this group
        self._bodies: dict[int, LogRecord | None] = {}
        self._written: list[tuple[int, int]] = []  # the records of fresh rows, and their places there

    def decide(self, submissions: Sequence[Submission]) -> list[Outcome]:
        before = msgspec.structs.replace(self.stream)
        outcomes = [Outcome()] * len(submissions)
        self._expire()  # a label for what is too old by now comes too late
        self._samples = self._known(submissions)
        sources = [one.source for one in submissions if one.source is not None]
        before_these = register.positions(self.connection, self.stream.number) if sources else {}
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
        if sources:
            register.advance(self.connection, self.stream.number, sources)
        if self.stream.n_waiting + self.stream.n_early > self.stream.settings.max_waiting:
            self._expire()
        if self.stream != before:
            register.update(self.connection, self.stream)
        return outcomes

    def _known(self, submissions: Sequence[Submission]) -> dict[str, Sample]:
        ids = {row.id for one in submissions for row in one.rows if not row.is_new}
        ids |= {id_ for one in submissions for id_, _ in one.labels}
        return register.samples(self.connection, self.stream.number, list(ids)) if ids else {}

    # --- Rows ----------------------------------------------------------------------------------------------------

    def _take_rows(self, submission: Submission, again: bool) -> Outcome:
        if self.stream.columns is None:
            if again:  # it was refused then
                return Outcome(repeated_rows=len(submission.rows))
            named = (row.features for row in submission.rows if isinstance(row.features, dict))  # others know columns
            names = list(dict.fromkeys(name for features in named for name in features))
            if not names:
                return Outcome(error="the first rows say which columns there are, so they must have features; got none")
            try:
                models.new_model(msgspec.structs.replace(self.stream.settings, columns=names))
            except InvalidError as error:
                return Outcome(error=str(error))
            self.stream.columns = names
            self.group.append(self.stream.number, Columns(names))
        columns = self.stream.columns
        values: list[Sequence[Value]] = []
        known = frozenset(columns)
        for row in submission.rows:
            features = row.features
            if isinstance(features, tuple):
                values.append(features)
                continue
            if not known >= features.keys():
                name = next(name for name in features if name not in known)
                return Outcome(error=f"the stream has no column {name!r}: its columns are {_listed(columns)}")
            values.append([features.get(name) for name in columns])
        n_rows = n_repeated = 0
        refused = []
        for row, own in zip(submission.rows, values, strict=True):
            sample = None if row.is_new else self._samples.get(row.id)
            place = self._places.get(row.id)
            earlier: tuple[Sequence[Value], str | None] | None
            if place is not None:
                earlier = self._values[place], self._fresh[place].key
            elif sample is not None and sample.place != register.EARLY:
                earlier = self._stored(sample)
            elif again:
                earlier = None
            else:
                self._places[row.id] = len(self._fresh)
                self._fresh.append(row)
                self._values.append(own)
                n_rows += 1
                continue
            if earlier is None or (list(earlier[0]), earlier[1]) == (list(own), row.key):
                n_repeated += 1
            else:
                refused.append(Refused(row.id, "the id was used before, with other features or another key"))
        return Outcome(rows=n_rows, repeated_rows=n_repeated, refused=refused)

    def _stored(self, sample: Sample) -> tuple[Sequence[Value], str | None] | None:
        """The values and the key of a row in the log, unless it was removed since."""
        if sample.seq not in self._bodies:
            self._bodies[sample.seq] = self.connection.record(self.stream.number, sample.seq)
        record = self._bodies[sample.seq]
        if record is None or not isinstance(record.body, Rows):
            return None
        body = record.body
        return body.values[sample.place], None if body.keys is None else body.keys[sample.place]

    def _write_rows(self) -> None:
        number, keyed = self.stream.number, self.stream.settings.keyed
        early = [id_ for id_ in self._places if id_ in self._samples]
        if early:
            register.remove_early(self.connection, number, early)
        for start in range(0, len(self._fresh), _RECORD):
            rows = self._fresh[start : start + _RECORD]
            ids = [row.id for row in rows]
            body = Rows(
                self.stream.n_rows,
                ids,
                self._values[start : start + _RECORD],
                [row.predicted for row in rows],
                [row.confidence for row in rows],
                [row.key or "" for row in rows] if keyed else None,
            )
            seq = self.group.append(number, body)
            self._written += [(seq, place) for place in range(len(rows))]
            register.add_rows(self.connection, number, seq, self.group.at, ids)
            self.stream.n_rows += len(rows)
            self.stream.n_waiting += len(rows)
        waited = {id_: self._samples.pop(id_) for id_ in early}  # labels that came before
        for id_, sample in waited.items():
            assert sample.label is not None
            self._teach(id_, self._written[self._places[id_]], sample.label)
        register.close(self.connection, number, (sample.seq for sample in waited.values()))
        self.stream.n_early -= len(waited)

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
                self._teach(id_, self._written[self._places[id_]], label)
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
            register.add_labels(self.connection, number, seq, ((id_, label) for id_, _, label in self._taught))
            register.close(self.connection, number, (row_seq for _, (row_seq, _), _ in self._taught))
            self.stream.n_waiting -= len(self._taught)
        if self._early:
            seq = self.group.append(number, Early(list(self._early), list(self._early.values())))
            register.add_early(self.connection, number, seq, self.group.at, self._early)
            self.stream.n_early += len(self._early)

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
            self.connection.among("DELETE FROM waiting WHERE stream = ? AND seq IN ({})", (stream.number,), gone)
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
        register.remove_early(self.connection, self.stream.number, record.body.ids)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:20]) + (f", … ({len(names)} in all)" if len(names) > 20 else "")
