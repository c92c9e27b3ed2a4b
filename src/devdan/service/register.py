"""What follows from the log and is kept beside it: the streams, and what is known of each id."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from devdan.service.database import Connection
from devdan.service.logged import Body, Columns, Created, Label, Settings

EARLY = -1  # the place of a label that has no row yet
_AT_ONCE = 500  # rows of a table that are removed in one transaction


class Sample(NamedTuple):
    """What is known of an id: the record with its row (or early label), its place there, and its label."""

    seq: int
    place: int
    label: Label | None
    label_seq: int | None


class Source(NamedTuple):
    """Where a submission was read that may be read again: a partition of a topic, and the place in it."""

    topic: str
    partition: int
    offset: int


class Facts(msgspec.Struct):
    """What is known of a stream."""

    number: int
    name: str
    settings: Settings
    created: float
    columns: list[str] | None
    label_kind: str | None
    n_rows: int
    n_waiting: int
    n_early: int
    horizon: int  # rows in records up to this one are no longer waiting


_FACTS = "number, name, settings, created, columns, label_kind, n_rows, n_waiting, n_early, horizon"
_settings = msgspec.msgpack.Decoder(Settings).decode
_names = msgspec.msgpack.Decoder(list[str]).decode
_label = msgspec.msgpack.Decoder(Label).decode
packed = msgspec.msgpack.Encoder().encode


def facts(connection: Connection, numbers: Iterable[int] | None = None) -> dict[int, Facts]:
    """The streams, by number: all, or those of these numbers that exist."""
    sql = f"SELECT {_FACTS} FROM streams"
    if numbers is None:
        rows = connection.execute(sql)
    else:
        rows = connection.among(f"{sql} WHERE number IN ({{}})", (), list(numbers))
    return {
        number: Facts(number, name, _settings(settings), created, None if columns is None else _names(columns), *counts)
        for number, name, settings, created, columns, *counts in rows
    }


def create(connection: Connection, name: str, settings: Settings, now: float) -> Facts:
    """Begin a stream, within a transaction; whoever calls has checked that there is none of this name."""
    group = Group(connection, now)
    connection.execute("UPDATE clock SET stream = stream + 1")
    number = int(connection.execute("SELECT stream FROM clock")[0][0])
    made = Facts(number, name, settings, group.at, settings.columns, None, 0, 0, 0, 0)
    columns = None if settings.columns is None else packed(settings.columns)
    connection.execute(
        "INSERT INTO streams (number, name, settings, created, columns) VALUES (?, ?, ?, ?, ?)",
        (number, name, packed(settings), group.at, columns),
    )
    group.append(number, Created(settings))
    if settings.columns is not None:
        group.append(number, Columns(settings.columns))
    group.close()
    return made


def update(connection: Connection, stream: Facts) -> None:
    """Keep what has changed about a stream, within a transaction."""
    columns = None if stream.columns is None else packed(stream.columns)
    counts = stream.n_rows, stream.n_waiting, stream.n_early, stream.horizon
    connection.execute(
        "UPDATE streams SET columns = ?, label_kind = ?, n_rows = ?, n_waiting = ?, n_early = ?, horizon = ? "
        "WHERE number = ?",
        (columns, stream.label_kind, *counts, stream.number),
    )


def delete(connection: Connection, number: int) -> None:
    """End a stream, within a transaction; :func:`clean` removes what is kept of it."""
    connection.execute("DELETE FROM streams WHERE number = ?", (number,))
    for table in ("snapshots", "positions"):
        connection.execute(f"DELETE FROM {table} WHERE stream = ?", (number,))
    connection.execute("INSERT INTO removed (stream) VALUES (?)", (number,))


def clean(connection: Connection) -> bool:
    """Remove some of what is kept of streams that were deleted; returns whether there may be more.

    A part at a time, so that what comes meanwhile is written in between.
    """
    with connection.transaction():
        found = connection.execute("SELECT stream FROM removed ORDER BY stream LIMIT 1")
        for (stream,) in found:
            for table, id_ in (("records", "seq"), ("waiting", "seq"), ("samples", "id")):
                some = connection.execute(f"SELECT {id_} FROM {table} WHERE stream = ? LIMIT ?", (stream, _AT_ONCE))
                if some:
                    ids = [one for (one,) in some]
                    connection.among(f"DELETE FROM {table} WHERE stream = ? AND {id_} IN ({{}})", (stream,), ids)
                    return True
            connection.execute("DELETE FROM removed WHERE stream = ?", (stream,))
        return bool(found)


def samples(connection: Connection, stream: int, ids: Sequence[str]) -> dict[str, Sample]:
    """What is known of some ids."""
    found = connection.execute(
        "SELECT samples.id, samples.seq, samples.place, samples.label, samples.label_seq "
        f"FROM {connection.given} CROSS JOIN samples WHERE samples.stream = ? AND samples.id = given.value",
        (connection.listed(ids), stream),
    )
    return {
        id_: Sample(seq, place, None if label is None else _label(label), label_seq)
        for id_, seq, place, label, label_seq in found
    }


def add_rows(connection: Connection, stream: int, seq: int, at: float, ids: Sequence[str]) -> None:
    """The rows of a record wait for their labels, within a transaction."""
    connection.execute(
        f"INSERT INTO samples (stream, id, seq, place) SELECT ?, value, ?, place FROM {connection.given}",
        (stream, seq, connection.listed(ids)),
    )
    connection.execute("INSERT INTO waiting VALUES (?, ?, ?, 0, ?)", (stream, seq, at, len(ids)))


def add_labels(connection: Connection, stream: int, seq: int, labels: Iterable[tuple[str, Label]]) -> None:
    """Rows have their labels, which a record has."""
    for label, ids in _by_label(labels):
        connection.execute(
            "UPDATE samples SET label = ?, label_seq = ? "
            f"WHERE stream = ? AND id IN (SELECT value FROM {connection.given})",
            (packed(label), seq, stream, connection.listed(ids)),
        )


def add_early(connection: Connection, stream: int, seq: int, at: float, labels: Mapping[str, Label]) -> None:
    """Labels, which a record has, wait for their rows."""
    for label, ids in _by_label(labels.items()):
        connection.execute(
            "INSERT INTO samples (stream, id, seq, place, label, label_seq) "
            f"SELECT ?, value, ?, ?, ?, ? FROM {connection.given}",
            (stream, seq, EARLY, packed(label), seq, connection.listed(ids)),
        )
    connection.execute("INSERT INTO waiting VALUES (?, ?, ?, 1, ?)", (stream, seq, at, len(labels)))


def remove_rows(connection: Connection, stream: int, seq: int, ids: Sequence[str]) -> None:
    """Forget the rows of a record."""
    connection.execute(
        f"DELETE FROM samples WHERE stream = ? AND seq = ? AND id IN (SELECT value FROM {connection.given})",
        (stream, seq, connection.listed(ids)),
    )


def remove_early(connection: Connection, stream: int, ids: Sequence[str]) -> None:
    """Early labels are as if they had never come."""
    connection.execute(
        f"DELETE FROM samples WHERE stream = ? AND place = ? AND id IN (SELECT value FROM {connection.given})",
        (stream, EARLY, connection.listed(ids)),
    )


def close(connection: Connection, stream: int, seqs: Iterable[int]) -> None:
    """Of these records, one row or early label each time they are named waits no longer."""
    closed, where = Counter(seqs), "WHERE stream = ? AND seq IN ({})"
    for n in set(closed.values()):
        these = [seq for seq, times in closed.items() if times == n]
        connection.among(f"UPDATE waiting SET open = open - ? {where}", (n, stream), these)
    connection.among(f"DELETE FROM waiting {where} AND open <= 0", (stream,), list(closed))


def _by_label(labels: Iterable[tuple[str, Label]]) -> Iterable[tuple[Label, list[str]]]:
    """The ids of each label, so that one statement is enough for them."""
    ids: dict[Label, list[str]] = {}
    for id_, label in labels:
        ids.setdefault(label, []).append(id_)
    return ids.items()


def positions(connection: Connection, stream: int | None = None) -> dict[tuple[str, int], int]:
    """The offset after the last that was decided about, by topic and partition: of one stream, or of any."""
    where, values = ("", ()) if stream is None else (" WHERE stream = ?", (stream,))
    found = connection.execute(
        f"SELECT topic, partition, MAX(position) FROM positions{where} GROUP BY topic, partition", values
    )
    return {(topic, partition): position for topic, partition, position in found}


def advance(connection: Connection, stream: int, sources: Iterable[Source]) -> None:
    """Remember what was decided about, within a transaction."""
    connection.many(
        "INSERT INTO positions (stream, topic, partition, position) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (stream, topic, partition) DO UPDATE SET position = excluded.position "
        "WHERE positions.position < excluded.position",
        [(stream, one.topic, one.partition, one.offset + 1) for one in sources],
    )


class Group:
    """A transaction: its time, and the numbers of its records."""

    def __init__(self, connection: Connection, now: float) -> None:
        self.connection = connection
        seq, at = connection.execute("SELECT seq, at FROM clock")[0]
        self.seq = self._before = int(seq)
        self.at = max(now, at)  # a clock that is set back does not reorder the log

    def append(self, stream: int, body: Body) -> int:
        """Write a record; returns its number."""
        self.seq += 1
        self.connection.append(self.seq, stream, self.at, body)
        return self.seq

    def close(self) -> None:
        """Keep the numbers that were given out."""
        if self.seq != self._before:
            self.connection.execute("UPDATE clock SET seq = ?, at = ?", (self.seq, self.at))
