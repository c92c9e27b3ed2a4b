"""Forgetting a sample for good: at once for whoever asks, then by the model, and in the end on the disk.

The log gets a record that the sample is forgotten, and its id is unknown from then on. The model, which follows from
the log, takes the sample out of its replay buffers when it comes to that record. Only once a snapshot has that is the
sample erased from the records: the log then begins with that snapshot, so that replaying it still gives the same bits.
"""

from __future__ import annotations

import msgspec

from devdan.service import sql
from devdan.service.database import ALONE, Connection, Leases
from devdan.service.schema import (
    EarlyLabels,
    LogBody,
    LoggedCorrections,
    LoggedForgetting,
    LoggedLabels,
    LoggedRows,
    StreamSettings,
    Value,
    encoded,
)
from devdan.service.sql import EARLY, Appender

ERASED = ""  # the id of a row that was, which no row can have


def forget(connection: Connection, stream: int, id_: str, now: float) -> int | None:
    """Forget a sample, or a label that waits for its row; returns the record that says so, or None if it is unknown."""
    with connection.transaction():
        facts = sql.known_ids(connection, stream, [id_]).get(id_)
        known = sql.streams(connection, [stream]).get(stream)
        if facts is None or known is None:
            return None
        log = Appender(connection, now)
        is_early = facts.place == EARLY
        waited = is_early or (facts.label_seq is None and facts.seq > known.horizon)
        labelled = [*facts.earlier, *([] if facts.label_seq is None else [facts.label_seq])]
        row = None if is_early else (facts.seq, facts.place)
        columns = [] if row is None else _only_here(connection, stream, row, known.settings, known.columns or [])
        body = LoggedForgetting(id_, row, facts.label, waited, columns, labelled)
        seq = log.append(stream, body)
        sql.remove_rows(connection, stream, facts.seq, [id_])
        sql.shorten_quarantine(connection, stream)
        connection.execute("INSERT INTO forgotten VALUES (?, ?, ?)", (stream, seq, facts.seq))
        if waited:
            sql.end_waiting(connection, stream, [facts.seq])
            known.n_early -= is_early
            known.n_waiting -= not is_early
            sql.update_stream(connection, known)
        log.close()
        return seq


def _only_here(
    connection: Connection, stream: int, row: tuple[int, int], settings: StreamSettings, columns: list[str]
) -> list[int]:
    """The columns in which a row has a text, or another value that becomes a category, that no other row has.

    Rows that are forgotten but not erased yet do not count, so that the last one of several takes the category along.
    """
    pending = connection.execute("SELECT seq, record FROM forgotten WHERE stream = ?", (stream,))
    gone = {row}
    for seq, _ in pending:
        told = connection.record(stream, seq)
        if told is not None and isinstance(told.body, LoggedForgetting) and told.body.row is not None:
            gone.add(told.body.row)
    nominal, found = settings.options.get("nominal") or (), []
    others = [connection.record(stream, seq) for seq in {seq for seq, _ in gone}]
    bodies = {one.seq: one.body for one in others if one is not None and isinstance(one.body, LoggedRows)}
    for place, (name, value) in enumerate(zip(columns, bodies[row[0]].values[row[1]], strict=True)):
        if not isinstance(value, str) and (value is None or name not in nominal):
            continue
        is_beside = any(
            own[place] == value and (seq, k) not in gone
            for seq, body in bodies.items()
            for k, own in enumerate(body.values)
        )
        if not is_beside and not _is_elsewhere(connection, stream, value, list(bodies)):
            found.append(place)
    return found


def _is_elsewhere(connection: Connection, stream: int, value: Value, but: list[int]) -> bool:
    """Whether records other than these, and than those of what is being forgotten, hold a value."""
    found = connection.execute(
        f"SELECT seq FROM records WHERE stream = ? AND {connection.holds} AND seq NOT IN "
        f"(SELECT seq FROM forgotten WHERE stream = ?) AND seq NOT IN ({', '.join('?' * len(but))}) LIMIT 1",
        (stream, encoded(value), stream, *but),
    )
    return bool(found)


def n_pending(connection: Connection, stream: int) -> int:
    """How many samples are forgotten, but not erased from the records yet."""
    return int(connection.execute("SELECT COUNT(*) FROM forgotten WHERE stream = ?", (stream,))[0][0])


def erase(connection: Connection, stream: int, leases: Leases = ALONE) -> None:
    """Erase from the records what the latest snapshot has forgotten; the log begins with that snapshot then."""
    with connection.transaction():
        leases.check(connection, stream)
        covered = sql.latest_seq(connection, stream)
        due = connection.execute("SELECT seq FROM forgotten WHERE stream = ? AND seq <= ?", (stream, covered))
        if not due:
            return
        sql.begin_with_latest(connection, stream)
        for (seq,) in due:
            told = connection.record(stream, seq)
            assert told is not None
            assert isinstance(told.body, LoggedForgetting)
            for one in {*told.body.labelled, *([] if told.body.row is None else [told.body.row[0]])}:
                record = connection.record(stream, one)
                if record is not None:  # else it was removed, as nothing needed it any more
                    connection.rewrite(stream, one, _without(record.body, told.body))
            connection.rewrite(stream, seq, msgspec.structs.replace(told.body, id=ERASED, label=None))
        connection.execute("DELETE FROM forgotten WHERE stream = ? AND seq <= ?", (stream, covered))


def _without(body: LogBody, told: LoggedForgetting) -> LogBody:
    """What remains of a record with the row or a label of a sample; rows keep their places."""
    if isinstance(body, EarlyLabels):
        kept = [place for place, id_ in enumerate(body.ids) if id_ != told.id]
        return EarlyLabels([body.ids[place] for place in kept], [body.labels[place] for place in kept])
    if isinstance(body, (LoggedLabels, LoggedCorrections)):
        kept = [place for place, row in enumerate(body.rows) if row != told.row]
        lists = {name: [getattr(body, name)[place] for place in kept] for name in body.__struct_fields__}
        return msgspec.structs.replace(body, **lists)
    assert isinstance(body, LoggedRows)
    assert told.row is not None
    place = told.row[1]
    blank = {"ids": ERASED, "values": [None] * len(body.values[place]), "predicted": None, "confidence": None}
    blank |= {} if body.keys is None else {"keys": ERASED}
    blank |= {} if body.thresholds is None else {"thresholds": None}
    lists = {name: [*getattr(body, name)] for name in blank}
    for name, nothing in blank.items():
        lists[name][place] = nothing
    return msgspec.structs.replace(body, **lists)
