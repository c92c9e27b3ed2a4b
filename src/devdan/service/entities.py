"""Histories of entities in a service: what was known of a row's customer, or card, when the row came.

Rows are predicted by the thread that writes, within the transaction that logs them. There each has its place in the
log, all rows before it are known, also those of other servers, and no other can come in between; of labels, all that
were committed before. So what a row is predicted with is what the log says, read up to there (:class:`LogEnd`). It is
logged with the row, which is learned with it whenever its label comes. The model (:mod:`devdan.service.fold`) follows
later, takes from each record of the log the same into histories of its own, and is saved with them. A prediction lacks
nothing but what the model has not learned yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from devdan.arrays import Floats
from devdan.encoding.rows import Rows
from devdan.histories.histories import Histories, entity_columns
from devdan.service import models, sql
from devdan.service.database import Connection
from devdan.service.row_cache import RowCache, Taken
from devdan.service.schema import (
    LimitError,
    LogBody,
    LoggedColumns,
    LoggedCorrections,
    LoggedForgetting,
    LoggedLabels,
    LoggedRows,
    LogRecord,
    StreamSettings,
    Value,
)
from devdan.service.sql import StreamFacts

Noted = LoggedRows | LoggedLabels | LoggedCorrections | LoggedForgetting
Values = Sequence[Sequence[Value]]

_PORTION = 500  # records that are read at a time


class BehindError(RuntimeError):
    """The log has removed, or erased, some of what histories have not taken yet: they have to be loaded anew."""


def new_histories(settings: StreamSettings, model: models.Model) -> Histories:
    """Histories before the first row."""
    return Histories(settings.entities, time=settings.time).know_columns(model._instructions())


def settings_of(settings: StreamSettings, histories: Histories) -> StreamSettings:
    """The settings of a stream that begins with these histories; raises an error if they take too much memory."""
    history = [columns[0] if len(columns) == 1 else list(columns) for columns in entity_columns(histories.entities)]
    settings = msgspec.structs.replace(settings, history=history, time=histories.time)
    most = settings.max_memory - settings.of_networks
    if histories.n_bytes_ > most * 2**20:
        raise LimitError(
            f"what is known of its entities takes {histories.n_bytes_ / 2**20:,.0f} MiB, and may take {most}; train it "
            "with a lower max_entities"
        )
    return settings


def note(histories: Histories, settings: StreamSettings, columns: Sequence[str], body: Noted, taken: Taken) -> None:
    """Take what a record says of rows."""
    if isinstance(body, LoggedRows):
        arrive(histories, settings, columns, taken.values)
        return
    rows = histories.restored(models.table(columns, taken.values), _unpacked(taken.histories))
    if isinstance(body, LoggedLabels):
        histories.teach(rows, body.labels)
    elif isinstance(body, LoggedCorrections):
        assert body.came is not None
        histories.correct(rows, body.labels, body.before, body.came)
    else:
        assert body.times is not None
        arrived, labelled = body.times
        if body.label is not None and labelled is not None:
            histories.retract(rows, [body.label], [labelled])
        histories.forget(rows, [arrived])


def arrive(histories: Histories, settings: StreamSettings, columns: Sequence[str], values: Values) -> Rows:
    """Rows with their histories; from now on, they are known themselves."""
    rows = histories.arrive(models.table(columns, values))
    histories.limit(2**20 * (settings.max_memory - settings.of_networks))
    return rows


def seen(histories: Histories, X: Rows, taken: Taken) -> Rows:
    """What the model sees of rows: always the same, with the histories that they came with, and that were shown."""
    found = _unpacked(taken.histories)
    for row, hidden in zip(found, taken.hidden, strict=True):
        row[list(hidden)] = np.nan
    rows, names = histories.restored(X, found), set(histories.get_feature_names_out())
    return rows.select([place for place, name in enumerate(rows.names) if name in names])


def _unpacked(told: Sequence[bytes]) -> Floats:
    return np.frombuffer(b"".join(told), "<f8").astype(np.float64).reshape(len(told), -1)


def came(body: LogBody, row: tuple[int, int]) -> float | None:
    """When the label of a row came that a record has, by the time of the histories."""
    if isinstance(body, LoggedLabels):
        return body.came
    if isinstance(body, LoggedCorrections) and body.came is not None:
        return body.came[body.rows.index(row)]
    return None


class Arrived(NamedTuple):
    """Rows as the model sees them, what is logged of each row's histories, and when the rows came."""

    inputs: Rows
    told: list[bytes]
    times: list[float]
    hidden: list[int]


class LogEnd:
    """What is known of the entities of a stream after the record ``seq``, which is the last one when rows are written.

    It is used by the thread that writes alone. After an error, in which a transaction is rolled back, it is no longer
    the end of the log, and another one is loaded.
    """

    def __init__(
        self, stream: int, settings: StreamSettings, histories: Histories, columns: Sequence[str] | None, seq: int
    ) -> None:
        self.stream, self.settings, self.histories = stream, settings, histories
        self.columns, self.seq = columns, seq
        self.is_touched = False  # since that was set to False
        self._connection: Connection | None = None
        self._rows = RowCache(self._find)

    @classmethod
    def of_new(cls, stream: StreamFacts) -> LogEnd:
        """That of a stream before its first record."""
        settings = stream.settings
        return cls(stream.number, settings, new_histories(settings, models.new_model(settings)), stream.columns, 0)

    def _find(self, seq: int) -> LogRecord | None:
        assert self._connection is not None
        return self._connection.record(self.stream, seq)

    @property
    def now(self) -> float:
        """The time of the histories, of which there must be rows."""
        return self.histories.now_

    def sync(self, connection: Connection) -> None:
        """Take the records that were written since; raises a ``BehindError`` if not all of them are there any more."""
        self._connection, is_up = connection, False
        while not is_up:
            records = connection.records(self.stream, self.seq, _PORTION)
            if sql.base_seq(connection, self.stream) > self.seq:  # once they are read: it may have been so before
                raise BehindError("the log begins later by now")
            for record in records:
                self._take(record)
            is_up = not records

    def _take(self, record: LogRecord) -> None:
        body, self.is_touched = record.body, True
        if isinstance(body, LoggedColumns):
            self.columns = body.names
        elif isinstance(body, (LoggedRows, LoggedLabels, LoggedCorrections, LoggedForgetting)):
            assert self.columns is not None
            if isinstance(body, LoggedRows):
                self._note(body, Taken(body.values))
            elif isinstance(body, LoggedForgetting):
                if body.row is not None:
                    self._note(body, self._rows.of([body.row])[1])
                    self._rows.drop(body.row[0])
            else:
                self._note(body, self._rows.of(body.rows)[1])
        self.seq = record.seq

    def _note(self, body: Noted, taken: Taken) -> None:
        assert self.columns is not None
        note(self.histories, self.settings, self.columns, body, taken)

    def check(self, columns: Sequence[str], values: Values) -> None:
        """Raise a ``ValueError`` unless rows of these values can arrive."""
        if not self.histories.is_settled:
            self.histories.check(models.table(columns, values))

    def arrive(self, values: Values) -> Arrived:
        """Rows that are being logged, as the next record of the stream."""
        assert self.columns is not None
        self.is_touched = True
        rows, names = arrive(self.histories, self.settings, self.columns, values), self.histories.feature_names_
        told = [row.tobytes() for row in rows.numbers[:, -len(names) :].astype("<f8")]
        hidden = [names.index(name) for name in self.histories.hidden_]
        inputs = self.again(Taken(values, (), told, [hidden] * len(told)))
        return Arrived(inputs, told, self.histories.arrived_.tolist(), hidden)

    def again(self, taken: Taken) -> Rows:
        """What the model sees of rows that have come, and are not counted again."""
        return seen(self.histories, self._table(taken.values), taken)

    def peek(self, values: Values) -> Rows:
        """What the model would see of rows if they came next."""
        found: Rows = self.histories.transform(self._table(values))
        return found

    def _table(self, values: Values) -> Rows:
        assert self.columns is not None
        return models.table(self.columns, values)
