"""The model as a function of the log: the same records give the same bits, at any time and in any process.

Each record is a portion: rows are observed and labels taught as they were committed together. Neither a clock nor
chance comes in: times are in the records, and the model has a seed. Counts along the log (accuracy by time of
prediction, label delays, drifts and structure) follow from it likewise.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from devdan.encoding.rows import Rows
from devdan.fleet import saving
from devdan.fleet.fleet import DEVDANFleet
from devdan.histories.histories import Histories
from devdan.service import entities, log_keys, models, sql
from devdan.service.database import Connection
from devdan.service.figures import Counts
from devdan.service.row_cache import Find, RowCache, Taken
from devdan.service.schema import (
    Label,
    LoggedColumns,
    LoggedCorrections,
    LoggedExpiry,
    LoggedForgetting,
    LoggedLabels,
    LoggedRows,
    LogRecord,
    StreamSettings,
)
from devdan.service.sql import Snapshot, StreamFacts

_counts = msgspec.msgpack.Decoder(Counts).decode


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
        self.settings, self._rows = settings, RowCache(find)
        self.model: models.Model = models.new_model(settings)
        self.counts, self.columns, self.seq = Counts(), settings.columns, 0
        self.n_hidden, self.drifts = 0, (0, 0)  # virtual and real

    @classmethod
    def restored(
        cls, connection: Connection, stream: StreamFacts, kept: Snapshot | None, fleet: DEVDANFleet | None = None
    ) -> Fold:
        """Go on from a snapshot, or begin; with this fleet, or if rows have keys, with one that reads the log."""
        fold = cls(stream.settings, lambda seq: connection.record(stream.number, seq))
        if stream.settings.keyed:
            fold.model = log_keys.of_log(connection, stream.number, stream.settings, kept) if fleet is None else fleet
        if kept is None:
            return fold
        fold.columns = stream.columns if kept.seq else stream.settings.columns
        fold.seq, fold.counts = kept.seq, _counts(kept.counts)
        if kept.model is not None:
            if not stream.settings.keyed:
                fold.model = models.of_content(kept.model, "the snapshot")
                if fold.histories is not None:
                    fold.histories.know_columns(fold.model._instructions())
            fold.n_hidden, *drifts = models.structure(fold.model)
            fold.drifts = drifts[0], drifts[1]
        return fold

    def snapshot(self, at: float) -> Snapshot:
        """The state, to be kept; of a fleet, with the networks that have changed since the snapshot before."""
        counts = msgspec.msgpack.encode(self.counts)
        if isinstance(self.model, DEVDANFleet):
            return Snapshot(self.seq, at, log_keys.shared(self.model), counts, log_keys.changes(self.model))
        return Snapshot(self.seq, at, models.content_of(self.model), counts)

    def note_saved(self, kept: Snapshot) -> None:
        """The log has this snapshot, of the state as it is."""
        if isinstance(self.model, DEVDANFleet):
            log_keys.note_saved(self.model, kept.seq)

    @property
    def histories(self) -> Histories | None:
        """What is known of the entities, if the stream has histories and rows."""
        found: Histories | None = getattr(self.model, "histories_", None)
        return found

    @property
    def can_be_saved(self) -> bool:
        """Whether a snapshot has all of the state: histories are saved with a model, which begins with usable rows."""
        return self.histories is None or self.model.__sklearn_is_fitted__()

    @property
    def is_due(self) -> bool:
        """Whether a snapshot must be taken before more is learned."""
        return isinstance(self.model, DEVDANFleet) and log_keys.is_due(self.model)

    def apply(self, record: LogRecord) -> None:
        """Take the next record."""
        body = record.body
        if isinstance(body, LoggedColumns):
            self.columns = body.names
        elif isinstance(body, LoggedRows):
            self._fetch(body.keys)
            self._rows.add(record, body)
            self.counts.rows(record, body)
            self._note(body, Taken(body.values))
            self._learn(record.seq, Taken.all_of(body), None)
        elif isinstance(body, LoggedLabels):
            rows, taken = self._rows.of(body.rows)
            self._fetch(taken.keys)
            self.counts.labels(record, body, rows)
            self._learn(record.seq, taken, body.labels)
            self._note(body, taken)
        elif isinstance(body, LoggedCorrections):
            rows, taken = self._rows.of(body.rows)
            self._fetch(taken.keys)
            self.counts.corrections(body, rows)
            self._learn(record.seq, taken, body.labels, body.before)
            self._note(body, taken)
        elif isinstance(body, LoggedForgetting):
            self._forget(body)
        elif isinstance(body, LoggedExpiry):
            self.counts.expired(body)
        self.seq = record.seq

    def _fetch(self, own_keys: Sequence[str] | None) -> None:
        """Read the networks of keys before anything changes, as the log may not be readable at present."""
        if own_keys and isinstance(self.model, DEVDANFleet):
            self.model.fetch(own_keys)

    def _note(self, body: entities.Noted, taken: Taken) -> None:
        """Let the histories take what a record says, if the stream has some."""
        if self.settings.history is None:
            return
        assert self.columns is not None
        if self.histories is None:
            self.model.histories_ = entities.new_histories(self.settings, self.model)
        assert self.histories is not None
        entities.note(self.histories, self.settings, self.columns, body, taken)

    def _inputs(self, taken: Taken) -> Rows:
        """What the model sees of rows: with the histories that they came with."""
        assert self.columns is not None
        X = models.table(self.columns, taken.values)
        return X if self.histories is None else entities.seen(self.histories, X, taken)

    def _learn(self, seq: int, taken: Taken, labels: list[Label] | None, before: list[Label] | None = None) -> None:
        """Observe rows, or teach their labels; instead of those before, if there were."""
        assert self.columns is not None
        values, keys = taken.values, taken.keys
        try:
            X = self._inputs(taken)
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
            if labels is not None:
                self.counts.refuse(seq)
            return
        if labels is not None:
            self.counts.is_refusing = False
        self.n_hidden, virtual, real = models.structure(self.model)
        n_real = real - self.drifts[1]
        of_classes = models.drifted_classes(self.model, n_real) if n_real > 0 else ()
        self.counts.structure(self.n_hidden, virtual - self.drifts[0], n_real, of_classes)
        self.drifts = virtual, real
        if labels is not None and self.counts.is_due(len(self.columns)):
            self.counts.importances(models.importances(self.model))

    def _forget(self, body: LoggedForgetting) -> None:
        """Take a sample out of the buffers and the latest rows, and what only it had out of the encoding."""
        if body.row is None:
            return
        ((_, rows),), taken = self._rows.of([body.row])
        self._fetch(taken.keys)
        self.counts.forgotten(body, rows)
        self._rows.drop(body.row[0])  # it is read again if other labels come, without the sample then
        self._note(body, taken)
        assert self.columns is not None
        X = self._inputs(taken)
        alone = [self.columns[column] for column in body.columns if self.columns[column] in X.names]
        models.forget_sample(self.model, X, taken.keys[0] if taken.keys else None, body.label, alone)

    def is_same_as(self, kept: Snapshot, fleet: DEVDANFleet | None = None) -> bool:
        """Whether a snapshot holds this state, bit for bit; ``fleet`` is that of the snapshot, if rows have keys."""
        if msgspec.msgpack.encode(self.counts) != kept.counts:
            return False
        if not isinstance(self.model, DEVDANFleet):
            return models.content_of(self.model) == kept.model
        is_begun = self.model.__sklearn_is_fitted__()
        if fleet is None or not is_begun or not fleet.__sklearn_is_fitted__():
            return is_begun == (fleet is not None and fleet.__sklearn_is_fitted__())
        return saving.are_same(self.model, fleet)


def latest(connection: Connection, stream: StreamFacts) -> tuple[Fold, Snapshot | None]:
    """Where learning continues: the latest snapshot, the base, or the beginning."""
    number = stream.number
    kept = sql.snapshot(connection, number, sql.LATEST) or sql.snapshot(connection, number, sql.BASE)
    return Fold.restored(connection, stream, kept), kept


def begin_with(connection: Connection, stream: int, model: bytes, now: float) -> None:
    """Let a new stream begin with a model that has learned before, within a transaction."""
    sql.put_snapshot(connection, stream, sql.BASE, Snapshot(0, now, model, msgspec.msgpack.encode(Counts())))
