"""Snapshots: the model and the counts after some record, so that a restart need not read the whole log.

``latest`` is where a restart begins. ``base`` is where the log begins: a model to start from, or what was learned from
records that were removed since.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from devdan.service import register
from devdan.service.database import Connection
from devdan.service.fold import Fold
from devdan.service.logged import Record, Rows
from devdan.service.register import Facts
from devdan.service.tally import Tally

LATEST, BASE = "latest", "base"
_AT_ONCE = 1000  # records or rows removed in one transaction, which predictions may wait for


class Snapshot(NamedTuple):
    """The state after the record ``seq``; no model before the first row."""

    seq: int
    at: float
    model: bytes | None
    tally: bytes


def stored(connection: Connection, stream: int, kind: str) -> Snapshot | None:
    """The snapshot of a kind, if there is one."""
    sql = "SELECT seq, at, model, tally FROM snapshots WHERE stream = ? AND kind = ?"
    found = connection.execute(sql, (stream, kind))
    return Snapshot(*found[0]) if found else None


def latest_seq(connection: Connection, stream: int) -> int:
    """How far the latest snapshot is; 0 if there is none."""
    found = connection.execute("SELECT seq FROM snapshots WHERE stream = ? AND kind = ?", (stream, LATEST))
    return int(found[0][0]) if found else 0


def latest(connection: Connection, stream: Facts) -> tuple[Fold, Snapshot | None]:
    """Where to go on: the latest snapshot, the base, or nothing."""
    kept = stored(connection, stream.number, LATEST) or stored(connection, stream.number, BASE)
    return restored(connection, stream, kept), kept


def restored(connection: Connection, stream: Facts, kept: Snapshot | None) -> Fold:
    """The state in a snapshot, or that of a new stream."""

    def find(seq: int) -> Record | None:
        return connection.record(stream.number, seq)

    if kept is None:
        return Fold(stream.settings, find)
    columns = stream.columns if kept.seq else stream.settings.columns
    return Fold.of_snapshot(stream.settings, find, columns, kept.seq, kept.model, kept.tally)


def put(connection: Connection, stream: int, kind: str, kept: Snapshot) -> None:
    """Replace a snapshot, within a transaction; an older one never replaces a newer one."""
    connection.execute(
        "INSERT INTO snapshots (stream, kind, seq, at, model, tally) VALUES (?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (stream, kind) DO UPDATE SET seq = excluded.seq, at = excluded.at, model = excluded.model, "
        "tally = excluded.tally WHERE snapshots.seq <= excluded.seq",
        (stream, kind, *kept),
    )


def begin_with(connection: Connection, stream: int, model: bytes, now: float) -> None:
    """Let a stream begin with a model that has learned before."""
    put(connection, stream, BASE, Snapshot(0, now, model, msgspec.msgpack.encode(Tally())))


def keep(connection: Connection, stream: int, kept: Snapshot) -> None:
    """Replace the latest snapshot, unless the stream was deleted meanwhile."""
    with connection.transaction():
        if connection.execute("SELECT number FROM streams WHERE number = ?", (stream,)):
            put(connection, stream, LATEST, kept)


def compact(connection: Connection, stream: int, base: Snapshot, before: float) -> bool:
    """Remove old records, with the ids in them, unless some of their rows still wait for labels.

    The log then begins with the ``base``. Returns whether there is more to remove.
    """
    with connection.transaction():
        old = connection.execute(
            "SELECT seq FROM records WHERE stream = ? AND seq <= ? AND at < ? AND seq NOT IN "
            "(SELECT seq FROM waiting WHERE stream = ?) ORDER BY seq LIMIT ?",
            (stream, base.seq, before, stream, _AT_ONCE),
        )
        if old:
            put(connection, stream, BASE, base)
        n_ids, gone = 0, []
        for (seq,) in old:
            record = connection.record(stream, seq)
            if record is not None and isinstance(record.body, Rows):
                register.remove_rows(connection, stream, seq, record.body.ids)
                n_ids += len(record.body.ids)
            gone.append(seq)
            if n_ids >= _AT_ONCE:
                break
        connection.among("DELETE FROM records WHERE stream = ? AND seq IN ({})", (stream,), gone)
    return len(gone) < len(old) or len(old) == _AT_ONCE
