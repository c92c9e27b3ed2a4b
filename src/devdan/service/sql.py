"""The statements on the tables of the log, in the SQL that SQLite and PostgreSQL both take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from devdan.service.database import ALONE, Connection, Leases, StaleError
from devdan.service.schema import (
    Label,
    LogBody,
    LoggedColumns,
    LoggedRows,
    LoggedSettings,
    Source,
    StreamSettings,
)

EARLY = -1  # the place of a label that has no row yet
LATEST, BASE = "latest", "base"  # kinds of snapshots
_GAP = 3600.0  # seconds between two transactions that count at most
_AT_ONCE = 500  # rows of a table that are removed in one transaction
_COMPACTED = 1000  # likewise, records or ids
_SHORTENED = "what it said may have cited a sample that was forgotten"


# --- Streams ---------------------------------------------------------------------------------------------------------


class StreamFacts(msgspec.Struct):
    """What is known of a stream."""

    number: int
    name: str
    settings: StreamSettings
    created: float
    columns: list[str] | None
    label_kind: str | None
    n_rows: int
    n_waiting: int
    n_early: int
    horizon: int  # rows in records up to this one no longer wait
    n_keys: int = 0  # that it has had
    damage: str | None = None  # why its settings cannot be read; nothing can be done with it then but to delete it


_FACTS = "number, name, settings, created, columns, label_kind, n_rows, n_waiting, n_early, horizon, n_keys"
_settings = msgspec.msgpack.Decoder(StreamSettings).decode
_names = msgspec.msgpack.Decoder(list[str]).decode
_label = msgspec.msgpack.Decoder(Label).decode
_numbers = msgspec.msgpack.Decoder(list[int]).decode
_packed = msgspec.msgpack.Encoder().encode


def streams(connection: Connection, numbers: Iterable[int] | None = None) -> dict[int, StreamFacts]:
    """The streams, by number: all, or those of these numbers that exist."""
    sql = f"SELECT {_FACTS} FROM streams"
    if numbers is None:
        rows = connection.execute(sql)
    else:
        rows = connection.among(f"{sql} WHERE number IN ({{}})", (), list(numbers))
    return {row[0]: _facts(*row) for row in rows}


def _facts(number: int, name: str, settings: bytes, created: float, columns: bytes | None, *counts: Any) -> StreamFacts:
    try:
        names = None if columns is None else _names(columns)
        return StreamFacts(number, name, _settings(settings), created, names, *counts)
    except (msgspec.DecodeError, ValueError) as error:
        damage = f"the settings of the stream {name!r} in the log cannot be read: {error}"
        made = StreamFacts(number, name, StreamSettings(), created, None, *counts)
        made.damage = damage
        return made


def create_stream(connection: Connection, name: str, settings: StreamSettings, now: float) -> StreamFacts:
    """Begin a stream, within a transaction; the caller has checked that there is none of this name."""
    log = Appender(connection, now)
    connection.execute("UPDATE clock SET stream = stream + 1")
    number = int(connection.execute("SELECT stream FROM clock")[0][0])
    made = StreamFacts(number, name, settings, log.at, settings.columns, None, 0, 0, 0, 0)
    columns = None if settings.columns is None else _packed(settings.columns)
    connection.execute(
        "INSERT INTO streams (number, name, settings, created, columns) VALUES (?, ?, ?, ?, ?)",
        (number, name, _packed(settings), log.at, columns),
    )
    log.append(number, LoggedSettings(settings))
    if settings.columns is not None:
        log.append(number, LoggedColumns(settings.columns))
    log.close()
    return made


def update_stream(connection: Connection, stream: StreamFacts) -> None:
    """Write what has changed about a stream, within a transaction."""
    columns = None if stream.columns is None else _packed(stream.columns)
    counts = stream.n_rows, stream.n_waiting, stream.n_early, stream.horizon, stream.n_keys
    connection.execute(
        "UPDATE streams SET columns = ?, label_kind = ?, n_rows = ?, n_waiting = ?, n_early = ?, horizon = ?, "
        "n_keys = ? WHERE number = ?",
        (columns, stream.label_kind, *counts, stream.number),
    )


def delete_stream(connection: Connection, number: int) -> bool:
    """End a stream, within a transaction, unless somebody has; :func:`purge` removes its records and ids."""
    if not connection.execute("SELECT number FROM streams WHERE number = ?", (number,)):
        return False
    connection.execute("DELETE FROM streams WHERE number = ?", (number,))
    for table in ("snapshots", "positions", "quarantine", "members", "forgotten"):
        connection.execute(f"DELETE FROM {table} WHERE stream = ?", (number,))
    connection.execute("INSERT INTO removed (stream) VALUES (?)", (number,))
    return True


def purge(connection: Connection) -> bool:
    """Remove some of what deleted streams have left; returns whether there may be more.

    Little at a time, so that others can write in between.
    """
    with connection.transaction():
        found = connection.execute("SELECT stream FROM removed ORDER BY stream LIMIT 1")
        for (stream,) in found:
            for table, id_ in (("records", "seq"), ("waiting", "seq"), ("samples", "id"), ("networks", "key")):
                some = connection.execute(f"SELECT {id_} FROM {table} WHERE stream = ? LIMIT ?", (stream, _AT_ONCE))
                if some:
                    ids = [one for (one,) in some]
                    connection.among(f"DELETE FROM {table} WHERE stream = ? AND {id_} IN ({{}})", (stream,), ids)
                    return True
            connection.execute("DELETE FROM removed WHERE stream = ?", (stream,))
        return bool(found)


# --- Ids -------------------------------------------------------------------------------------------------------------


class IdFacts(NamedTuple):
    """What is known of an id: the record with its row (or early label), its place there, and its label.

    ``earlier`` are the records with labels of it before the one with its label.
    """

    seq: int
    place: int
    label: Label | None
    label_seq: int | None
    earlier: Sequence[int] = ()


def known_ids(connection: Connection, stream: int, ids: Sequence[str]) -> dict[str, IdFacts]:
    """What is known of some ids."""
    found = connection.execute(
        "SELECT samples.id, samples.seq, samples.place, samples.label, samples.label_seq, samples.earlier "
        f"FROM {connection.given} CROSS JOIN samples WHERE samples.stream = ? AND samples.id = given.value",
        (connection.listed(ids), stream),
    )
    return {
        id_: IdFacts(seq, place, label and _label(label), label_seq, _numbers(earlier) if earlier else ())
        for id_, seq, place, label, label_seq, earlier in found
    }


def add_rows(connection: Connection, stream: int, seq: int, served: float, ids: Sequence[str]) -> None:
    """The rows of a record wait for their labels, within a transaction."""
    connection.execute(
        f"INSERT INTO samples (stream, id, seq, place) SELECT ?, value, ?, place FROM {connection.given}",
        (stream, seq, connection.listed(ids)),
    )
    connection.execute("INSERT INTO waiting VALUES (?, ?, ?, 0, ?)", (stream, seq, served, len(ids)))


def add_labels(connection: Connection, stream: int, seq: int, labels: Iterable[tuple[str, Label]]) -> None:
    """Rows have their labels, which are in a record, within a transaction."""
    for label, ids in _by_label(labels):
        connection.execute(
            "UPDATE samples SET label = ?, label_seq = ? "
            f"WHERE stream = ? AND id IN (SELECT value FROM {connection.given})",
            (_packed(label), seq, stream, connection.listed(ids)),
        )


def note_earlier(connection: Connection, stream: int, earlier: Mapping[str, Sequence[int]]) -> None:
    """Remember which records had labels of these ids before, within a transaction."""
    connection.many(
        "UPDATE samples SET earlier = ? WHERE stream = ? AND id = ?",
        [(_packed(seqs), stream, id_) for id_, seqs in earlier.items()],
    )


def add_early(connection: Connection, stream: int, seq: int, served: float, labels: Mapping[str, Label]) -> None:
    """Labels, which are in a record, wait for their rows, within a transaction."""
    for label, ids in _by_label(labels.items()):
        connection.execute(
            "INSERT INTO samples (stream, id, seq, place, label, label_seq) "
            f"SELECT ?, value, ?, ?, ?, ? FROM {connection.given}",
            (stream, seq, EARLY, _packed(label), seq, connection.listed(ids)),
        )
    connection.execute("INSERT INTO waiting VALUES (?, ?, ?, 1, ?)", (stream, seq, served, len(labels)))


def remove_rows(connection: Connection, stream: int, seq: int, ids: Sequence[str]) -> None:
    """Forget what is known of these ids, which have their rows, or early labels, in a record."""
    connection.execute(
        f"DELETE FROM samples WHERE stream = ? AND seq = ? AND id IN (SELECT value FROM {connection.given})",
        (stream, seq, connection.listed(ids)),
    )


def remove_early(connection: Connection, stream: int, ids: Sequence[str]) -> None:
    """Forget early labels."""
    connection.execute(
        f"DELETE FROM samples WHERE stream = ? AND place = ? AND id IN (SELECT value FROM {connection.given})",
        (stream, EARLY, connection.listed(ids)),
    )


def end_waiting(connection: Connection, stream: int, seqs: Iterable[int]) -> None:
    """One row or early label of a record no longer waits for each time the record is named."""
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


def new_members(connection: Connection, stream: int, kind: str, values: Collection[str]) -> set[str]:
    """Those that the stream has not had yet: of its keys, or of its classes."""
    known = connection.execute(
        f"SELECT members.value FROM {connection.given} CROSS JOIN members WHERE members.stream = ? "
        "AND members.kind = ? AND members.value = given.value",
        (connection.listed(list(values)), stream, kind),
    )
    return set(values).difference(value for (value,) in known)


def count_members(connection: Connection, stream: int, kind: str) -> int:
    """How many keys, or classes, the stream has had."""
    found = connection.execute("SELECT COUNT(*) FROM members WHERE stream = ? AND kind = ?", (stream, kind))
    return int(found[0][0])


def add_members(connection: Connection, stream: int, kind: str, values: Collection[str]) -> None:
    """Remember keys or classes, within a transaction."""
    connection.execute(
        f"INSERT INTO members (stream, kind, value) SELECT ?, ?, value FROM {connection.given}",
        (stream, kind, connection.listed(sorted(values))),
    )


def next_offsets(connection: Connection, stream: int | None = None) -> dict[tuple[str, int], int]:
    """The offset after the last one decided about, by topic and partition: of one stream, or of any."""
    where, values = ("", ()) if stream is None else (" WHERE stream = ?", (stream,))
    found = connection.execute(
        f"SELECT topic, partition, MAX(position) FROM positions{where} GROUP BY topic, partition", values
    )
    return {(topic, partition): position for topic, partition, position in found}


def advance_offsets(connection: Connection, stream: int, sources: Iterable[Source]) -> None:
    """Remember which messages were decided about, within a transaction."""
    connection.many(
        "INSERT INTO positions (stream, topic, partition, position) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (stream, topic, partition) DO UPDATE SET position = excluded.position "
        "WHERE positions.position < excluded.position",
        [(stream, one.topic, one.partition, one.offset + 1) for one in sources],
    )


class TopicFacts(NamedTuple):
    """A topic as the log knows it: the name that stands in sources, and whether it took the place of an older one."""

    name: str
    is_anew: bool = False  # since just now


def know_topics(connection: Connection, ids: Mapping[str, str | None]) -> dict[str, TopicFacts]:
    """How the log knows these topics, by name; a name whose id is another than before is a topic that was made anew.

    The second topic of a name is known as ``name#2``, so that its offsets, and the ids made of them, are others than
    those of the first; names in Kafka have no ``#``. Without an id it is taken for the latest one.
    """
    found = {}
    with connection.transaction():
        for name, id_ in ids.items():
            known = dict(connection.execute("SELECT id, number FROM topics WHERE name = ?", (name,)))
            latest = max(known.values(), default=0)
            number = known.get(id_) if id_ is not None else max(latest, 1)
            if number is None:
                number = latest + 1
                connection.execute("INSERT INTO topics (name, id, number) VALUES (?, ?, ?)", (name, id_, number))
            found[name] = TopicFacts(name if number == 1 else f"{name}#{number}", number > max(latest, 1))
    return found


# --- Snapshots -------------------------------------------------------------------------------------------------------


class Snapshot(NamedTuple):
    """The state after the record ``seq``, so that a restart need not read the whole log; no model before the first row.

    A restart begins with the ``LATEST``. The ``BASE`` is where the log begins: a model to start from, or what was
    learned from records that were removed since. ``networks`` are those that have changed since the snapshot before, of
    a stream with keys: the key's text and the content.
    """

    seq: int
    at: float
    model: bytes | None
    counts: bytes
    networks: Sequence[tuple[str, bytes]] = ()


def snapshot(connection: Connection, stream: int, kind: str) -> Snapshot | None:
    """The snapshot of a kind, if there is one."""
    sql = "SELECT seq, at, model, counts FROM snapshots WHERE stream = ? AND kind = ?"
    found = connection.execute(sql, (stream, kind))
    return Snapshot(*found[0]) if found else None


def last_record(connection: Connection, stream: int) -> int:
    """The number of the stream's last record."""
    return int(connection.execute("SELECT COALESCE(MAX(seq), 0) FROM records WHERE stream = ?", (stream,))[0][0])


def latest_seq(connection: Connection, stream: int) -> int:
    """The record of the latest snapshot; 0 if there is none."""
    return _seq_of(connection, stream, LATEST)


def base_seq(connection: Connection, stream: int) -> int:
    """The record after which the log begins, as what came before was removed or erased; 0 if it has all."""
    return _seq_of(connection, stream, BASE)


def _seq_of(connection: Connection, stream: int, kind: str) -> int:
    found = connection.execute("SELECT seq FROM snapshots WHERE stream = ? AND kind = ?", (stream, kind))
    return int(found[0][0]) if found else 0


def put_snapshot(connection: Connection, stream: int, kind: str, kept: Snapshot) -> None:
    """Replace a snapshot, within a transaction; an older one never replaces a newer one."""
    _put_networks(connection, stream, kept)
    connection.execute(
        "INSERT INTO snapshots (stream, kind, seq, at, model, counts) VALUES (?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (stream, kind) DO UPDATE SET seq = excluded.seq, at = excluded.at, model = excluded.model, "
        "counts = excluded.counts, previous = snapshots.seq WHERE snapshots.seq <= excluded.seq",
        (stream, kind, kept.seq, kept.at, kept.model, kept.counts),
    )


def keep_snapshot(connection: Connection, stream: int, kept: Snapshot, leases: Leases = ALONE) -> None:
    """Replace the latest snapshot, unless the stream was deleted meanwhile, or another server learns it."""
    with connection.transaction():
        leases.check(connection, stream)
        if connection.execute("SELECT number FROM streams WHERE number = ?", (stream,)):
            put_snapshot(connection, stream, LATEST, kept)


def compact(connection: Connection, stream: int, before: float, after: int, leases: Leases = ALONE) -> int | None:
    """Remove records from ``before`` that nothing needs any more, with their ids; by how long the log was in use.

    The log then begins with the latest snapshot. What goes are records that it covers, and of those with rows only the
    ones that do not wait for labels and whose labels it covers, too: learning continues from it with the records that
    follow, and they name the rows of their labels. Little at a time; returns the record to go on after, if there may be
    more to remove.
    """
    with connection.transaction():
        leases.check(connection, stream)
        covered = latest_seq(connection, stream)
        old = connection.execute(
            "SELECT seq FROM records WHERE stream = ? AND seq > ? AND seq <= ? AND served <= ? AND seq NOT IN "
            "(SELECT seq FROM waiting WHERE stream = ?) AND seq NOT IN (SELECT record FROM forgotten WHERE stream = ? "
            "UNION SELECT seq FROM forgotten WHERE stream = ?) ORDER BY seq LIMIT ?",
            (stream, after, covered, before, stream, stream, stream, _COMPACTED),
        )
        n_ids, gone = 0, []
        for (seq,) in old:
            after = seq
            record = connection.record(stream, seq)
            if record is not None and isinstance(record.body, LoggedRows):
                if _labelled_after(connection, stream, covered, record.body.ids):
                    continue
                remove_rows(connection, stream, seq, record.body.ids)
                n_ids += len(record.body.ids)
            gone.append(seq)
            if n_ids >= _COMPACTED:
                break
        if gone:
            begin_with_latest(connection, stream)
            connection.among("DELETE FROM records WHERE stream = ? AND seq IN ({})", (stream,), gone)
    return after if n_ids >= _COMPACTED or len(old) == _COMPACTED else None


def begin_with_latest(connection: Connection, stream: int) -> None:
    """Let the log begin with the latest snapshot, within a transaction."""
    base = base_seq(connection, stream)
    connection.execute(  # what the latest snapshot has replaced is still read, and goes with the next one
        "DELETE FROM networks WHERE stream = ? AND seq <= ? AND key IN "
        "(SELECT key FROM networks WHERE stream = ? AND seq > ? AND seq < ?)",
        (stream, base, stream, base, latest_seq(connection, stream)),
    )
    connection.execute(
        "INSERT INTO snapshots (stream, kind, seq, at, model, counts) SELECT stream, ?, seq, at, model, counts "
        "FROM snapshots WHERE stream = ? AND kind = ? ON CONFLICT (stream, kind) DO UPDATE SET "
        "seq = excluded.seq, at = excluded.at, model = excluded.model, counts = excluded.counts",
        (BASE, stream, LATEST),
    )


def _labelled_after(connection: Connection, stream: int, covered: int, ids: Sequence[str]) -> bool:
    """Whether some of these rows have labels in records after this one."""
    found = connection.execute(
        f"SELECT samples.id FROM {connection.given} CROSS JOIN samples WHERE samples.stream = ? "
        "AND samples.id = given.value AND samples.label_seq > ? LIMIT 1",
        (connection.listed(ids), stream, covered),
    )
    return bool(found)


def served(connection: Connection) -> float:
    """For how many seconds the log has been in use, as of the latest commit; see :class:`Appender`."""
    return float(connection.execute("SELECT served FROM clock")[0][0])


def times(connection: Connection, now: float) -> tuple[float, float]:
    """The time of the last record, and the time by the clock that goes into records."""
    sql = f"SELECT at, {connection.clock} FROM clock"
    ((at, clock),) = connection.execute(sql, (now,) if connection.clock == "?" else ())
    return float(at), float(clock)


def probe(connection: Connection, now: float) -> None:
    """Write how far the time has come, and nothing else."""
    with connection.transaction():
        Appender(connection, now).close(anyway=True)


# --- Networks of keys ------------------------------------------------------------------------------------------------
#
# The network of a key after a snapshot is its newest row up to that one. Rows that a snapshot replaces stay until the
# next one, for those that still predict from the snapshot before, and as long as the log begins with them.


def _put_networks(connection: Connection, stream: int, kept: Snapshot) -> None:
    """Write what has changed since the latest snapshot, and remove what that one has replaced."""
    before, base = latest_seq(connection, stream), base_seq(connection, stream)
    if before > kept.seq:
        return
    connection.execute(
        "DELETE FROM networks WHERE stream = ? AND seq > ? AND seq < ? AND key IN "
        "(SELECT key FROM networks WHERE stream = ? AND seq = ?)",
        (stream, base if base < before else -1, before, stream, before),
    )
    connection.many(
        "INSERT INTO networks (stream, key, seq, content) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (stream, key, seq) DO UPDATE SET content = excluded.content",
        [(stream, key, kept.seq, content) for key, content in kept.networks],
    )


def networks(connection: Connection, stream: int, seq: int, keys: Sequence[str]) -> dict[str, bytes]:
    """What a snapshot has of some keys; raises a ``StaleError`` if two others were taken since."""
    found = connection.execute(
        f"SELECT networks.key, networks.content FROM {connection.given} CROSS JOIN networks "
        "WHERE networks.stream = ? AND networks.key = given.value AND networks.seq <= ? ORDER BY networks.seq",
        (connection.listed(keys), stream, seq),
    )
    _check_there(connection, stream, seq)
    return dict(found)


def all_networks(connection: Connection, stream: int, seq: int) -> Iterator[tuple[str, bytes]]:
    """What a snapshot has of all keys, likewise."""
    after = ""
    while True:
        found = connection.execute(
            "SELECT key, content FROM networks WHERE stream = ? AND seq <= ? AND key IN (SELECT DISTINCT key "
            "FROM networks WHERE stream = ? AND seq <= ? AND key > ? ORDER BY key LIMIT ?) ORDER BY key, seq",
            (stream, seq, stream, seq, after, _AT_ONCE),
        )
        _check_there(connection, stream, seq)
        if not found:
            return
        after = found[-1][0]
        yield from dict(found).items()


def _check_there(connection: Connection, stream: int, seq: int) -> None:
    known = connection.execute("SELECT seq, previous FROM snapshots WHERE stream = ?", (stream,))
    if not any(seq in both for both in known):
        raise StaleError("two newer snapshots were taken meanwhile; read a copy of the log instead (devdan backup)")


# --- Quarantine ------------------------------------------------------------------------------------------------------


def quarantined(connection: Connection) -> dict[int, str]:
    """The streams that are not learned, and why."""
    return dict(connection.execute("SELECT stream, problem FROM quarantine"))


def put_in_quarantine(connection: Connection, stream: int, problem: str, leases: Leases = ALONE) -> None:
    """Remember not to learn a stream, whatever server or process would do so next, unless another one learns it now."""
    with connection.transaction():
        leases.check(connection, stream)
        if connection.execute("SELECT number FROM streams WHERE number = ?", (stream,)):
            connection.execute("DELETE FROM quarantine WHERE stream = ?", (stream,))
            connection.execute("INSERT INTO quarantine (stream, problem) VALUES (?, ?)", (stream, problem))


def shorten_quarantine(connection: Connection, stream: int) -> None:
    """Forget what the problem of a stream cites, within a transaction; what kind of error it was stays."""
    for (problem,) in connection.execute("SELECT problem FROM quarantine WHERE stream = ?", (stream,)):
        kind, _, _ = problem.partition(":")
        connection.execute("UPDATE quarantine SET problem = ? WHERE stream = ?", (f"{kind}: {_SHORTENED}", stream))


def end_quarantine(connection: Connection, stream: int) -> None:
    """Let a stream be learned again."""
    with connection.transaction():
        connection.execute("DELETE FROM quarantine WHERE stream = ?", (stream,))


# --- Appending -------------------------------------------------------------------------------------------------------


class Appender:
    """Appends records within a transaction, and knows its times and the numbers of its records.

    The time of a record, ``at``, never goes backwards. How long something waits is measured by ``served``: the seconds
    in which the log was in use. Of a longer time between two transactions, in which no server ran or the clock was set,
    an hour counts, so that nothing expires by it.
    """

    def __init__(self, connection: Connection, now: float) -> None:
        self.connection = connection
        sql = f"SELECT seq, at, served, seen, {connection.clock} FROM clock"
        ((seq, at, served, seen, self._seen),) = connection.execute(sql, (now,) if connection.clock == "?" else ())
        self.seq = self._before = int(seq)
        self.at = max(self._seen, at)
        self.served = served + min(max(self._seen - seen, 0.0), _GAP)

    def append(self, stream: int, body: LogBody) -> int:
        """Write a record; returns its number."""
        self.seq += 1
        self.connection.append(self.seq, stream, self.at, self.served, body)
        return self.seq

    def close(self, anyway: bool = False) -> None:
        """Save the latest number and times; ``anyway``, also without a record."""
        if anyway or self.seq != self._before:
            self.connection.execute(
                "UPDATE clock SET seq = ?, at = ?, served = ?, seen = ?", (self.seq, self.at, self.served, self._seen)
            )
