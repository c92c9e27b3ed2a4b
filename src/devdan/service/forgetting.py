"""Forgetting a sample for good: at once for whoever asks, then by the model, and in the end on the disk.

The log gets a record that the sample is forgotten, and its id is unknown from then on. The model, which follows from
the log, takes the sample out of its replay buffers when it comes to that record. Only once a snapshot has that is the
sample erased from the records: the log then begins with that snapshot, so that replaying it still gives the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from devdan.service import sql
from devdan.service.database import ALONE, Connection, Leases
from devdan.service.entities import came
from devdan.service.schema import (
    EarlyLabels,
    LogBody,
    LoggedCorrections,
    LoggedForgetting,
    LoggedLabels,
    LoggedRows,
    encoded,
)
from devdan.service.sql import EARLY, Appender, IdFacts, StreamFacts

ERASED = ""  # the id of a row that was, which no row can have
_FORGOTTEN = encoded("forgotten")  # in each record of what is forgotten
_PART, _VALUES = 10_000, 500  # records, and values, that one statement looks at


class Search(NamedTuple):
    """The columns in which a row has a value that no other row has, among the records up to one."""

    row: tuple[int, int]
    columns: list[int]
    up_to: int


class ChangedError(RuntimeError):
    """Another sample was forgotten since the search, which may have been the only other one with some value."""


def search(connection: Connection, stream: int, id_: str) -> Search | None:
    """Look, before it is forgotten and others have to wait, what only this sample has; None if there is no row."""
    up_to = sql.last_record(connection, stream)
    facts = sql.known_ids(connection, stream, [id_]).get(id_)
    known = sql.streams(connection, [stream]).get(stream)
    if facts is None or known is None or facts.place == EARLY or facts.seq > up_to:
        return None
    row = facts.seq, facts.place
    return Search(
        row, _only_here(connection, known, Search(row, list(range(len(known.columns or []))), 0), up_to), up_to
    )


def forget(connection: Connection, stream: int, id_: str, now: float, searched: Search | None = None) -> int | None:
    """Forget a sample, or a label that waits for its row; returns the record that says so, or None if it is unknown.

    After a :func:`search` only what has come since is looked at; raises a ``ChangedError`` if it must be repeated.
    """
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
        columns, times = [], None
        if row is not None:
            times = _times(connection, stream, facts, row)
            last = sql.last_record(connection, stream)
            if searched is None or searched.row != row:
                searched = Search(row, list(range(len(known.columns or []))), 0)
            elif _was_forgotten(connection, stream, searched.up_to, last):
                raise ChangedError
            columns = _only_here(connection, known, searched, last)
        body = LoggedForgetting(id_, row, facts.label, waited, columns, labelled, times)
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


def _times(
    connection: Connection, stream: int, facts: IdFacts, row: tuple[int, int]
) -> tuple[float, float | None] | None:
    """When a row and its label came, by the time of the histories, if the stream has some."""
    there = connection.record(stream, facts.seq)
    if there is None or not isinstance(there.body, LoggedRows) or there.body.arrived is None:
        return None
    labelled = None if facts.label_seq is None else connection.record(stream, facts.label_seq)
    return there.body.arrived[facts.place], None if labelled is None else came(labelled.body, row)


def _only_here(connection: Connection, stream: StreamFacts, begun: Search, up_to: int) -> list[int]:
    """The columns in which a row has a text, or another value that becomes a category, that no other row has.

    Rows that are forgotten but not erased yet do not count, so that the last one of several takes the category along.
    A search that has begun continues with what has come since, up to a record.
    """
    pending = connection.execute("SELECT seq, record FROM forgotten WHERE stream = ?", (stream.number,))
    gone = {begun.row}
    for seq, _ in pending:
        told = connection.record(stream.number, seq)
        if told is not None and isinstance(told.body, LoggedForgetting) and told.body.row is not None:
            gone.add(told.body.row)
    nominal = stream.settings.options.get("nominal") or ()
    others = [connection.record(stream.number, seq) for seq in {seq for seq, _ in gone}]
    bodies = {one.seq: one.body for one in others if one is not None and isinstance(one.body, LoggedRows)}
    if begun.row[0] not in bodies:
        return []
    own, left = bodies[begun.row[0]].values[begun.row[1]], []
    for place in begun.columns:
        value, name = own[place], (stream.columns or [])[place]
        if not isinstance(value, str) and (value is None or name not in nominal):
            continue
        is_beside = any(
            other[place] == value and (seq, k) not in gone
            for seq, body in bodies.items()
            for k, other in enumerate(body.values)
        )
        if not is_beside:
            left.append(place)
    values = [encoded(own[place]) for place in left]
    elsewhere = _found(connection, stream.number, values, begun.up_to, up_to, list(bodies))
    return [place for k, place in enumerate(left) if k not in elsewhere]


def _was_forgotten(connection: Connection, stream: int, after: int, up_to: int) -> bool:
    """Whether samples were forgotten, and perhaps erased already, after a record."""
    pending = connection.execute("SELECT seq FROM forgotten WHERE stream = ? AND seq > ?", (stream, after))
    return bool(pending or _found(connection, stream, [_FORGOTTEN], after, up_to, []))


def _found(
    connection: Connection, stream: int, values: Sequence[bytes], after: int, up_to: int, but: Sequence[int]
) -> set[int]:
    """Which of some bytes are in records after one and up to another: neither in these, nor in what is being forgotten.

    All are looked for at once, in a part of the records at a time.
    """
    found = set[int]()
    no = "seq NOT IN (SELECT seq FROM forgotten WHERE stream = ?)"
    if but:
        no += f" AND seq NOT IN ({', '.join('?' * len(but))})"
    while after < up_to and len(found) < len(values):
        end = min(connection.part(stream, after, _PART), up_to)
        if end == after:
            break
        left = [place for place in range(len(values)) if place not in found]
        for start in range(0, len(left), _VALUES):
            some = left[start : start + _VALUES]
            held = ", ".join([f"MAX(CASE WHEN {connection.holds} THEN 1 ELSE 0 END)"] * len(some))
            ((*flags,),) = connection.execute(
                f"SELECT {held} FROM records WHERE stream = ? AND seq > ? AND seq <= ? AND {no}",
                (*(values[place] for place in some), stream, after, end, stream, *but),
            )
            found |= {place for place, flag in zip(some, flags, strict=True) if flag}
        after = end
    return found


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
        fields = msgspec.structs.asdict(body).items()
        lists = {name: [own[place] for place in kept] for name, own in fields if isinstance(own, list)}
        return msgspec.structs.replace(body, **lists)
    assert isinstance(body, LoggedRows)
    assert told.row is not None
    place = told.row[1]
    blank: dict[str, Any] = {"ids": ERASED, "values": [None] * len(body.values[place])}
    blank |= {"predicted": None, "confidence": None}
    blank |= {} if body.keys is None else {"keys": ERASED}
    blank |= {} if body.thresholds is None else {"thresholds": None}
    blank |= {} if body.histories is None else {"histories": b"", "arrived": 0.0}
    lists = {name: [*getattr(body, name)] for name in blank}
    for name, nothing in blank.items():
        lists[name][place] = nothing
    return msgspec.structs.replace(body, **lists)
