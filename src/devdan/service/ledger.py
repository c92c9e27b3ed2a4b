"""What becomes of submissions: each id counts once, by the rules of :mod:`devdan.label_join`, and waits only so long.

A group of submissions is decided about in one transaction. Only what counts goes into the log, so a reader of the log
need not decide anything again; evictions are records, too, so that reading needs no clock.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from itertools import islice
from types import MappingProxyType
from typing import TypeVar, cast

import msgspec

from devdan.label_join import OTHER_FEATURES, KnownId, Verdict, join_features, join_label, other_label
from devdan.service import models, sql
from devdan.service.database import Connection
from devdan.service.entities import Arrived, BehindError, LogEnd, came
from devdan.service.row_cache import Taken
from devdan.service.schema import (
    Contradiction,
    EarlyLabels,
    InvalidError,
    Label,
    Limits,
    LoggedAssumptions,
    LoggedColumns,
    LoggedCorrections,
    LoggedExpiry,
    LoggedLabels,
    LoggedRows,
    LogRecord,
    RowPrediction,
    RowPredictor,
    Submission,
    SubmissionOutcome,
    SubmittedRow,
    Value,
    encoded,
    kind_of,
)
from devdan.service.sql import Appender, IdFacts, StreamFacts

Item = TypeVar("Item")

_OLDEST = 16  # records looked at for expiry at a time
_RECORD, _RECORD_BYTES = 500, 2**20  # rows in a record: a label that comes late may have to read all of it
_LABELS = 1000  # in a record: all of their rows are in memory together when they are learned
_CACHED_BYTES = 32 * 2**20  # of records in the log, read to compare what comes with it
_LISTED = 20  # columns in a message
_UNKNOWN = KnownId()
_LIMITS = Limits()
_NONE = cast("MutableMapping[int, LogEnd]", MappingProxyType({}))
UNREADY = "what is known of the entities of the stream is being loaded; send the request again later"


def commit(
    connection: Connection,
    submissions: Sequence[Submission],
    now: float,
    limits: Limits = _LIMITS,
    ends: MutableMapping[int, LogEnd] = _NONE,
) -> list[SubmissionOutcome]:
    """Decide about a group of submissions and write what counts, in one transaction.

    ``ends`` are those of streams with histories; one that is no longer the end of its log is removed.
    """
    outcomes = [SubmissionOutcome(gone=True, error="there is no such stream")] * len(submissions)
    with _all_or_none(connection, now, ends) as log:
        known = sql.streams(connection, {one.stream for one in submissions})
        for number, stream in known.items():
            places = [place for place, one in enumerate(submissions) if one.stream == number]
            refused = SubmissionOutcome(error=stream.damage)
            end = ends.get(number)
            if stream.damage is None and stream.settings.history is not None and not _is_at_end(end, log, ends):
                refused = SubmissionOutcome(error=UNREADY, unready=True)
            if refused.error is not None:
                for place in places:
                    outcomes[place] = refused
                continue
            decided = _StreamGroup(log, stream, limits, end).decide([submissions[place] for place in places])
            for place, outcome in zip(places, decided, strict=True):
                outcomes[place] = outcome
    return outcomes


def expire(connection: Connection, number: int, now: float, ends: MutableMapping[int, LogEnd] = _NONE) -> None:
    """Evict what has waited for too long in a stream, to which nothing may come."""
    with _all_or_none(connection, now, ends) as log:
        for stream in sql.streams(connection, [number]).values():
            end = ends.get(number)
            if stream.damage is None and (stream.settings.history is None or _is_at_end(end, log, ends)):
                _StreamGroup(log, stream, _LIMITS, end).decide([])


@contextmanager
def _all_or_none(connection: Connection, now: float, ends: MutableMapping[int, LogEnd]) -> Iterator[Appender]:
    """A transaction; if it is rolled back, what it brought to the ends of streams has not come."""
    for end in ends.values():
        end.is_touched = False
    try:
        with connection.transaction():
            log = Appender(connection, now)
            yield log
            log.close()
    except BaseException:
        for number in [number for number, end in ends.items() if end.is_touched]:
            del ends[number]
        raise


def _is_at_end(end: LogEnd | None, log: Appender, ends: MutableMapping[int, LogEnd]) -> bool:
    """Whether all is known of the entities of a stream, also what other servers have written."""
    if end is None:
        return False
    try:
        end.sync(log.connection)
    except BehindError:
        del ends[end.stream]
        return False
    return True


class _StreamGroup:
    """The submissions of a group to one stream."""

    def __init__(self, log: Appender, stream: StreamFacts, limits: Limits, end: LogEnd | None) -> None:
        self._most = {"key": limits.keys, "class": limits.classes}
        self._members: dict[str, set[str]] = {"key": set(), "class": set()}  # that are new, and are taken
        self._unknown: dict[str, set[str]] = {}  # keys and classes that the stream did not have before
        self._log, self._connection, self._stream, self._end = log, log.connection, stream, end
        self._new: list[SubmittedRow] = []
        self._predictors: list[RowPredictor | None] = []  # of new rows
        self._told: dict[str, tuple[bytes, list[int]]] = {}  # histories of new rows, by id, and those not shown
        self._predicted: dict[str, tuple[RowPredictor, RowPrediction]] = {}  # new rows, by id: by whom, and as what
        self._values: list[Sequence[Value]] = []  # of new rows, in the order of the columns
        self._places: dict[str, int] = {}  # of new rows, by id
        self._written: list[tuple[int, int]] = []  # the records of new rows, and their places there
        self._learned: dict[str, tuple[tuple[int, int], Label]] = {}  # by id: where the row is, and its label
        self._corrected: dict[str, tuple[tuple[int, int], Label, Label]] = {}  # likewise, with the label before
        self._early: dict[str, Label] = {}
        self._earlier: dict[str, list[int]] = {}  # records with labels that ids had before
        self._records: dict[int, LogRecord | None] = {}  # read lately
        self._n_bytes = 0  # of them
        self._assumed: dict[str, tuple[int, int]] = {}  # rows whose labels did not come in time

    def decide(self, submissions: Sequence[Submission]) -> list[SubmissionOutcome]:
        """Rows before labels: a label finds its row even if both come in one group."""
        before = msgspec.structs.replace(self._stream)
        outcomes = [SubmissionOutcome()] * len(submissions)
        self._expire()  # a label of a row that is too old by now comes too late
        self._ids = self._known_ids(submissions)
        sources = [one.source for one in submissions if one.source is not None]
        offsets = sql.next_offsets(self._connection, self._stream.number) if sources else {}
        reread = [one.source is not None and one.source.offset < offsets.get(one.source[:2], 0) for one in submissions]
        pairs = [_labels_in(one) for one in submissions]
        self._unknown = {
            "key": self._not_had("key", {key for one in submissions for key in self._keys_in(one)}),
            "class": self._not_had("class", {str(label) for own in pairs for _, label in own}),
        }
        for place, one in enumerate(submissions):
            outcomes[place] = self._take_members(one, pairs[place])
            if one.rows and outcomes[place].error is None:
                outcomes[place] = self._take_rows(one, reread[place])
        self._write_rows()
        for place, one in enumerate(submissions):
            if one.predictor is not None and outcomes[place].error is None and self._stream.n_rows > 0:
                outcomes[place] = outcomes[place]._replace(predictions=self._predictions(one, one.predictor))
        for place, labels in enumerate(pairs):
            if labels and outcomes[place].error is None:
                outcomes[place] = self._take_labels(labels, outcomes[place], submissions[place].replaces, reread[place])
        self._write_labels()
        for kind, new in self._members.items():
            if new:
                sql.add_members(self._connection, self._stream.number, kind, new)
        self._stream.n_keys += len(self._members["key"])
        if sources:
            sql.advance_offsets(self._connection, self._stream.number, sources)
        if self._stream.n_waiting + self._stream.n_early > self._stream.settings.max_waiting:
            self._expire()
        if self._stream != before:
            sql.update_stream(self._connection, self._stream)
        return outcomes

    def _known_ids(self, submissions: Sequence[Submission]) -> dict[str, IdFacts]:
        """What the log knows of the ids, but of those that were made just now."""
        ids = {row.id for one in submissions for row in one.rows if not row.is_new}
        ids |= {id_ for one in submissions for id_, _ in one.labels}
        return sql.known_ids(self._connection, self._stream.number, list(ids)) if ids else {}

    def _known(self, id_: str) -> KnownId:
        """What is known of an id by now."""
        if id_ in self._corrected:
            return KnownId(True, self._corrected[id_][2])
        if id_ in self._learned:
            return KnownId(True, self._learned[id_][1])
        if id_ in self._places:
            return KnownId(True)
        if id_ in self._early:
            return KnownId(False, self._early[id_])
        facts = self._ids.get(id_)
        if facts is None:
            return _UNKNOWN
        is_expired, is_assumed = facts.seq <= self._stream.horizon, self._is_assumed(facts)
        return KnownId(facts.place != sql.EARLY, facts.label, is_expired, is_assumed=is_assumed)

    def _is_assumed(self, facts: IdFacts) -> bool:
        """Whether the label of a row is what was assumed when none had come."""
        assume = self._stream.settings.assume
        if assume is None or facts.label_seq is None or facts.label != assume.label:
            return False
        record = self._record(facts.label_seq)
        return record is not None and isinstance(record.body, LoggedAssumptions)

    def _record(self, seq: int) -> LogRecord | None:
        if seq not in self._records:
            found = self._connection.record(self._stream.number, seq)
            if found is not None:
                self._n_bytes += found.n_bytes
            if self._n_bytes > _CACHED_BYTES:
                self._records, self._n_bytes = {}, 0 if found is None else found.n_bytes
            self._records[seq] = found
        return self._records[seq]

    # --- Keys and classes ----------------------------------------------------------------------------------------

    def _take_members(self, submission: Submission, pairs: Sequence[tuple[str, Label]]) -> SubmissionOutcome:
        """Refuse a submission as a whole if its labels are of another type, or there would be too many keys or classes.

        All servers write one after the other, so that they cannot pass a limit together.
        """
        assume = self._stream.settings.assume
        label_kind = self._stream.label_kind or (None if assume is None else kind_of(assume.label))
        for _, label in pairs:
            own = kind_of(label)
            if label_kind is not None and own != label_kind:
                return SubmissionOutcome(error=f"labels of this stream are of type {label_kind}, got {own}: {label!r}")
            label_kind = own
        found = {"key": self._keys_in(submission), "class": {str(label) for _, label in pairs}}
        new = {kind: (values & self._unknown[kind]) - self._members[kind] for kind, values in found.items()}
        for kind, names in (("key", "keys"), ("class", "classes")):
            if new[kind]:
                n = self._n_members(kind) + len(self._members[kind])
                if n + len(new[kind]) > self._most[kind]:
                    most, first = self._most[kind], min(new[kind])
                    return SubmissionOutcome(
                        error=f"a stream may have {most:,} {names}, this one has {n:,}, and {first!r} is new"
                    )
        self._stream.label_kind = label_kind
        for kind, values in new.items():
            self._members[kind] |= values
        return SubmissionOutcome()

    def _n_members(self, kind: str) -> int:
        """How many there were; of classes there are few enough to count them."""
        if kind == "key":
            return self._stream.n_keys
        return sql.count_members(self._connection, self._stream.number, kind)

    def _keys_in(self, submission: Submission) -> set[str]:
        return {row.key or "" for row in submission.rows} if self._stream.settings.keyed else set()

    def _not_had(self, kind: str, values: set[str]) -> set[str]:
        return sql.new_members(self._connection, self._stream.number, kind, values) if values else set()

    # --- Rows ----------------------------------------------------------------------------------------------------

    def _take_rows(self, submission: Submission, reread: bool) -> SubmissionOutcome:
        if self._stream.columns is None:
            if reread:  # it was refused then
                return SubmissionOutcome(repeated_rows=len(submission.rows))
            error = self._take_columns(submission.rows)
            if error is not None:
                return SubmissionOutcome(error=error)
        elif self._end is not None:
            error = self._problem_of(self._stream.columns, submission.rows)
            if error is not None:
                return SubmissionOutcome(error=error)
        columns = self._stream.columns
        assert columns is not None
        values: list[Sequence[Value]] = []
        known_columns = frozenset(columns)
        for row in submission.rows:
            features = row.features
            if isinstance(features, tuple):
                values.append(features)
                continue
            if not known_columns >= features.keys():
                name = next(name for name in features if name not in known_columns)
                return SubmissionOutcome(error=f"the stream has no column {name!r}: its columns are {_listed(columns)}")
            values.append(_in_order(columns, row))
        verdicts, refused = list[Verdict](), list[Contradiction]()
        for row, own in zip(submission.rows, values, strict=True):
            known = _UNKNOWN if row.is_new else self._known(row.id)
            verdict = join_features(known, known.has_features and self._is_same(row, own), reread=reread)
            verdicts.append(verdict)
            if verdict is Verdict.NEW:
                self._places[row.id] = len(self._new)
                self._new.append(row)
                self._values.append(own)
                self._predictors.append(submission.predictor)
            elif verdict is Verdict.CONTRADICTING:
                refused.append(Contradiction(row.id, f"{OTHER_FEATURES} or another key"))
        return SubmissionOutcome(
            rows=verdicts.count(Verdict.NEW), repeated_rows=verdicts.count(Verdict.REPEATED), refused=refused
        )

    def _is_same(self, row: SubmittedRow, values: Sequence[Value]) -> bool:
        """Whether the row of this id that came first has the same values and key; or was removed since."""
        place = self._places.get(row.id)
        before = self._stored(self._ids[row.id]) if place is None else (self._values[place], self._new[place].key)
        return before is None or (list(before[0]), before[1]) == (list(values), row.key)

    def _stored(self, facts: IdFacts) -> tuple[Sequence[Value], str | None] | None:
        """The values and the key of a row in the log, unless it was removed since."""
        record = self._record(facts.seq)
        if record is None or not isinstance(record.body, LoggedRows):
            return None
        body = record.body
        return body.values[facts.place], None if body.keys is None else body.keys[facts.place]

    def _take_columns(self, rows: Sequence[SubmittedRow]) -> str | None:
        """The first rows of a stream define its columns; returns why they cannot."""
        named = (row.features for row in rows if isinstance(row.features, dict))  # others know the columns
        names = list(dict.fromkeys(name for features in named for name in features))
        if not names:
            return "the first rows say which columns there are, so they must have features; got none"
        try:
            models.new_model(msgspec.structs.replace(self._stream.settings, columns=names))
        except InvalidError as error:
            return str(error)
        if self._end is not None and (problem := self._problem_of(names, rows)) is not None:
            return problem
        self._stream.columns = names
        self._log.append(self._stream.number, LoggedColumns(names))
        return None

    def _problem_of(self, columns: Sequence[str], rows: Sequence[SubmittedRow]) -> str | None:
        """Why rows cannot have histories, such as a first time that is none."""
        assert self._end is not None
        values = [row.features if isinstance(row.features, tuple) else _in_order(columns, row) for row in rows]
        try:
            self._end.check(columns, values)
        except ValueError as error:
            return str(error)
        return None

    def _write_rows(self) -> None:
        stream = self._stream
        if self._end is not None and self._new:
            self._end.sync(self._connection)  # it takes the columns, and labels that were assumed just now
        early = self._end_early([id_ for id_ in self._places if id_ in self._ids])  # their labels came before
        for start, end in self._records_of_new():
            rows, values = self._new[start:end], self._values[start:end]
            ids = [row.id for row in rows]
            arrived = None if self._end is None else self._end.arrive(values)
            if arrived is not None:
                rows = self._with_predictions(rows, self._predictors[start:end], arrived)
            body = LoggedRows(
                stream.n_rows,
                ids,
                values,
                [row.predicted for row in rows],
                [row.confidence for row in rows],
                [row.key or "" for row in rows] if stream.settings.keyed else None,
                [row.threshold for row in rows] if any(row.threshold is not None for row in rows) else None,
                None if arrived is None else arrived.told,
                None if arrived is None else arrived.times,
                [] if arrived is None else arrived.hidden,
            )
            seq = self._log.append(stream.number, body)
            if self._end is not None:
                self._end.seq = seq
            self._written += [(seq, place) for place in range(len(rows))]
            sql.add_rows(self._connection, stream.number, seq, self._log.served, ids)
            stream.n_rows += len(rows)
            stream.n_waiting += len(rows)
        for id_, facts in early.items():
            assert facts.label is not None
            self._learned[id_] = self._written[self._places[id_]], facts.label

    def _with_predictions(
        self, rows: Sequence[SubmittedRow], predictors: Sequence[RowPredictor | None], arrived: Arrived
    ) -> list[SubmittedRow]:
        """Rows with the predictions of their submissions' predictors."""
        found = list(rows)
        self._told |= {row.id: (told, arrived.hidden) for row, told in zip(rows, arrived.told, strict=True)}
        for predictor in {id(one): one for one in predictors if one is not None}.values():
            places = [place for place, one in enumerate(predictors) if one is predictor]
            for place, said in zip(places, predictor.given(arrived.inputs[places]), strict=True):
                self._predicted[rows[place].id] = predictor, said
                found[place] = msgspec.structs.replace(
                    rows[place], predicted=said.label, confidence=said.confidence, threshold=said.threshold
                )
        return found

    def _predictions(self, submission: Submission, predictor: RowPredictor) -> list[RowPrediction]:
        """Predictions of all rows of a submission: of those that came before, with the histories that they came with.

        Those that contradict what came before are predicted as if they came next, and are not counted.
        """
        assert self._end is not None
        assert self._stream.columns is not None
        said: dict[int, RowPrediction] = {}
        again: dict[int, tuple[Sequence[Value], bytes, list[int]]] = {}
        others: dict[int, Sequence[Value]] = {}
        for place, row in enumerate(submission.rows):
            by, own = self._predicted.get(row.id, (None, None))
            values = row.features if isinstance(row.features, tuple) else _in_order(self._stream.columns, row)
            if own is not None and by is predictor:
                said[place] = own
            elif (told := self._histories_of(row, values)) is not None:
                again[place] = values, *told
            else:
                others[place] = values
        if again:
            known, histories, hidden = map(list, zip(*again.values(), strict=True))
            inputs = self._end.again(Taken(known, (), histories, hidden))
            said |= zip(again, predictor.given(inputs), strict=True)
        if others:
            said |= zip(others, predictor.given(self._end.peek(list(others.values()))), strict=True)
        return [said[place] for place in range(len(submission.rows))]

    def _histories_of(self, row: SubmittedRow, values: Sequence[Value]) -> tuple[bytes, list[int]] | None:
        """What was known when a row of this id and these values came, unless the log has no such row."""
        if row.id in self._told:
            same = list(self._values[self._places[row.id]]) == list(values)
            return self._told[row.id] if same else None
        facts = self._ids.get(row.id)
        record = None if facts is None else self._record(facts.seq)
        body = None if record is None else record.body
        if facts is None or not isinstance(body, LoggedRows) or body.histories is None:
            return None
        same = list(body.values[facts.place]) == list(values)
        return (body.histories[facts.place], body.hidden) if same else None

    def _records_of_new(self) -> Iterator[tuple[int, int]]:
        """Where the records of new rows begin and end."""
        start = 0
        while start < len(self._new):
            end = min(start + _RECORD, len(self._new))
            while end - start > 1 and len(encoded(self._values[start:end])) > _RECORD_BYTES:
                end = start + (end - start) // 2
            yield start, end
            start = end

    def _end_early(self, ids: Sequence[str]) -> dict[str, IdFacts]:
        """These early labels no longer wait: their rows are here, or others replace them; returns what was known."""
        ended = {id_: self._ids.pop(id_) for id_ in ids}
        if ended:
            sql.remove_early(self._connection, self._stream.number, ids)
            sql.end_waiting(self._connection, self._stream.number, (facts.seq for facts in ended.values()))
            self._stream.n_early -= len(ended)
            self._earlier |= {id_: _with_label(facts) for id_, facts in ended.items()}
        return ended

    # --- Labels --------------------------------------------------------------------------------------------------

    def _take_labels(
        self, pairs: Sequence[tuple[str, Label]], outcome: SubmissionOutcome, replaces: bool, reread: bool
    ) -> SubmissionOutcome:
        verdicts, refused = list[Verdict](), list(outcome.refused)
        refused_rows = {one.id for one in refused}
        for id_, label in pairs:
            if id_ in refused_rows:
                continue
            known = self._known(id_)
            if reread:
                known = known._replace(replaced=self._replaced(id_))
            verdict = join_label(known, label, replaces=replaces, reread=reread)
            verdicts.append(verdict)
            if verdict is Verdict.LEARNED:
                self._learned[id_] = self._row_of(id_), label
            elif verdict is Verdict.CORRECTED:
                before = self._corrected[id_][1] if id_ in self._corrected else known.label
                self._corrected[id_] = self._row_of(id_), before, label
            elif verdict is Verdict.EARLY:
                self._early[id_] = label
            elif verdict is Verdict.CONTRADICTING:
                refused.append(Contradiction(id_, other_label(known)))
        return outcome._replace(
            accepted=verdicts.count(Verdict.LEARNED),
            corrected=verdicts.count(Verdict.CORRECTED),
            repeated=verdicts.count(Verdict.REPEATED),
            waiting=verdicts.count(Verdict.EARLY),
            expired=verdicts.count(Verdict.EXPIRED),
            refused=refused,
        )

    def _replaced(self, id_: str) -> list[Label]:
        """The labels that an id had before, as far as the log has them."""
        found = [self._corrected[id_][1]] if id_ in self._corrected else []
        facts = self._ids.get(id_)
        for seq in () if facts is None else facts.earlier:
            record = self._connection.record(self._stream.number, seq)
            body = None if record is None else record.body
            if isinstance(body, EarlyLabels):
                found.append(body.labels[body.ids.index(id_)])
            elif isinstance(body, (LoggedLabels, LoggedCorrections)):
                found.append(body.labels[body.rows.index(self._row_of(id_))])
        return found

    def _row_of(self, id_: str) -> tuple[int, int]:
        """The record of a row, and its place there."""
        if id_ in self._places:
            return self._written[self._places[id_]]
        facts = self._ids[id_]
        return facts.seq, facts.place

    def _write_labels(self) -> None:
        stream, learned_in = self._stream, dict[str, int]()
        for some in _portions(self._learned):
            rows, labels = [row for row, _ in some.values()], [label for _, label in some.values()]
            seq = self._log.append(stream.number, LoggedLabels(rows, labels, self._now))
            sql.add_labels(self._connection, stream.number, seq, zip(some, labels, strict=True))
            sql.end_waiting(self._connection, stream.number, (row_seq for row_seq, _ in rows))
            stream.n_waiting -= len(rows)
            learned_in |= dict.fromkeys(some, seq)
        for id_ in self._corrected:
            if id_ in learned_in:
                self._earlier.setdefault(id_, []).append(learned_in[id_])
            else:
                self._earlier[id_] = _with_label(self._ids[id_])
        for corrected in _portions(self._corrected):
            where, before, labels = map(list, zip(*corrected.values(), strict=True))
            times = None if self._end is None else [self._came(id_, self._end) for id_ in corrected]
            seq = self._log.append(stream.number, LoggedCorrections(where, before, labels, times))
            sql.add_labels(self._connection, stream.number, seq, zip(corrected, labels, strict=True))
        if self._early:
            self._end_early([id_ for id_ in self._early if id_ in self._ids])
            seq = self._log.append(stream.number, EarlyLabels(list(self._early), list(self._early.values())))
            sql.add_early(self._connection, stream.number, seq, self._log.served, self._early)
            stream.n_early += len(self._early)
        if self._earlier:
            sql.note_earlier(self._connection, stream.number, self._earlier)

    @property
    def _now(self) -> float | None:
        """The time of the histories, if there are some."""
        return None if self._end is None else self._end.now

    def _came(self, id_: str, end: LogEnd) -> float:
        """When the label of a row came that is corrected, by the time of the histories."""
        facts = self._ids.get(id_)
        record = None if facts is None or facts.label_seq is None else self._record(facts.label_seq)
        found = None if record is None or id_ in self._learned else came(record.body, self._row_of(id_))
        return end.now if found is None else found

    # --- Expiry --------------------------------------------------------------------------------------------------

    def _expire(self) -> None:
        """Evict the oldest, record by record, until none is too old and there are not too many.

        Rows are taught as the class that is assumed then, if one is.
        """
        stream, settings = self._stream, self._stream.settings
        n_rows = n_labels = up_to = 0
        while True:
            oldest = self._connection.execute(
                "SELECT seq, served, early, open FROM waiting WHERE stream = ? ORDER BY seq LIMIT ?",
                (stream.number, _OLDEST),
            )
            gone = []
            for seq, served, early, n in oldest:
                held = stream.n_waiting + stream.n_early
                if self._log.served - served <= settings.waits and held <= settings.max_waiting:
                    break
                gone.append(seq)
                if not early and settings.assume is not None:
                    self._assume(seq)
                    stream.n_waiting -= n
                    continue
                up_to = seq
                if early:
                    self._forget(seq)
                    n_labels += n
                    stream.n_early -= n
                else:
                    n_rows += n
                    stream.n_waiting -= n
            self._connection.among("DELETE FROM waiting WHERE stream = ? AND seq IN ({})", (stream.number,), gone)
            if len(gone) < _OLDEST:
                break
        self._write_assumed()
        if up_to:
            stream.horizon = up_to
            self._log.append(stream.number, LoggedExpiry(up_to, n_rows, n_labels))

    def _assume(self, seq: int) -> None:
        """The rows of a record that have no label are to have the one that is assumed."""
        record = self._record(seq)
        assert record is not None
        assert isinstance(record.body, LoggedRows)
        known = sql.known_ids(self._connection, self._stream.number, list(filter(None, record.body.ids)))
        for id_, facts in known.items():
            if facts.seq == seq and facts.label is None:
                self._assumed[id_] = seq, facts.place
        if len(self._assumed) >= _RECORD:
            self._write_assumed()

    def _write_assumed(self) -> None:
        stream, assume = self._stream, self._stream.settings.assume
        if not self._assumed:
            return
        assert assume is not None
        stream.label_kind = kind_of(assume.label)
        new = self._not_had("class", {str(assume.label)})
        if new:
            sql.add_members(self._connection, stream.number, "class", new)
        rows = sorted(self._assumed.values())
        body = LoggedAssumptions(rows, [assume.label] * len(rows), self._now)
        seq = self._log.append(stream.number, body)
        sql.add_labels(self._connection, stream.number, seq, dict.fromkeys(self._assumed, assume.label).items())
        self._assumed.clear()

    def _forget(self, seq: int) -> None:
        """The ids of early labels are as if they had never come."""
        record = self._connection.record(self._stream.number, seq)
        assert record is not None
        assert isinstance(record.body, EarlyLabels)
        sql.remove_rows(self._connection, self._stream.number, seq, record.body.ids)


def _with_label(facts: IdFacts) -> list[int]:
    """The records with labels of an id, once it has another one."""
    return [*facts.earlier, *([] if facts.label_seq is None else [facts.label_seq])]


def _portions(labels: dict[str, Item]) -> Iterator[dict[str, Item]]:
    """So many at a time that they go into a record."""
    left = iter(labels.items())
    while some := dict(islice(left, _LABELS)):
        yield some


def _in_order(columns: Sequence[str], row: SubmittedRow) -> Sequence[Value]:
    """The values of a row with named features."""
    assert isinstance(row.features, dict)
    return [row.features.get(name) for name in columns]


def _labels_in(submission: Submission) -> list[tuple[str, Label]]:
    return [*submission.labels, *((row.id, row.label) for row in submission.rows if row.label is not None)]


def _listed(names: Sequence[str]) -> str:
    more = f", … ({len(names)} in all)" if len(names) > _LISTED else ""
    return ", ".join(names[:_LISTED]) + more
