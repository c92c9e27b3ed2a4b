"""The database of the log: its tables and their format, connections, and which server learns which stream.

It is SQLite (:mod:`devdan.service.store`) or PostgreSQL (:mod:`devdan.service.postgresql`); statements are the same in
both, and stand in :mod:`devdan.service.sql`.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from devdan.service.schema import LogBody, LogRecord, decoded, encoded
from devdan.service.supervision import Supervisor

_PARAMETERS = 500  # of one statement
_BYTES = 8 * 2**20  # of records that are read at once

# `records` is the truth. `samples` (what is known of each id), `waiting` (records with rows or labels that wait for the
# other) and the last columns of `streams` follow from it; `clock` has the latest numbers and times (see Appender),
# `networks` what snapshots have of keys (see log_keys), `positions` how far topics were read into each stream,
# `topics` which topics of a name there were, by the ids that Kafka gives them, numbered from 1;
# `members` the keys and classes that streams have had, `quarantine` why streams are not learned, `removed` the deleted
# streams that are not yet gone from all tables, `forgotten` the samples that are not yet erased: the record that says
# so, and the one with the row; `audit` the calls of administrators.
TABLES = """
CREATE TABLE IF NOT EXISTS clock (
    seq BIGINT NOT NULL, stream BIGINT NOT NULL, at DOUBLE PRECISION NOT NULL, served DOUBLE PRECISION NOT NULL,
    seen DOUBLE PRECISION NOT NULL
);
CREATE TABLE IF NOT EXISTS streams (
    number BIGINT PRIMARY KEY, name TEXT NOT NULL UNIQUE, settings BLOB NOT NULL, created DOUBLE PRECISION NOT NULL,
    columns BLOB, label_kind TEXT, n_rows BIGINT NOT NULL DEFAULT 0, n_waiting BIGINT NOT NULL DEFAULT 0,
    n_early BIGINT NOT NULL DEFAULT 0, horizon BIGINT NOT NULL DEFAULT 0, n_keys BIGINT NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS records (
    stream BIGINT NOT NULL, seq BIGINT NOT NULL, at DOUBLE PRECISION NOT NULL, body BLOB NOT NULL,
    served DOUBLE PRECISION NOT NULL, PRIMARY KEY (stream, seq)
);
CREATE TABLE IF NOT EXISTS samples (
    stream BIGINT NOT NULL, id TEXT NOT NULL, seq BIGINT NOT NULL, place INTEGER NOT NULL, label BLOB, label_seq BIGINT,
    earlier BLOB, PRIMARY KEY (stream, id)
);
CREATE TABLE IF NOT EXISTS waiting (
    stream BIGINT NOT NULL, seq BIGINT NOT NULL, served DOUBLE PRECISION NOT NULL, early INTEGER NOT NULL,
    open BIGINT NOT NULL, PRIMARY KEY (stream, seq)
);
CREATE TABLE IF NOT EXISTS snapshots (
    stream BIGINT NOT NULL, kind TEXT NOT NULL, seq BIGINT NOT NULL, at DOUBLE PRECISION NOT NULL, model BLOB,
    counts BLOB NOT NULL, previous BIGINT NOT NULL DEFAULT 0, PRIMARY KEY (stream, kind)
);
CREATE TABLE IF NOT EXISTS networks (
    stream BIGINT NOT NULL, key TEXT NOT NULL, seq BIGINT NOT NULL, content BLOB NOT NULL,
    PRIMARY KEY (stream, key, seq)
);
CREATE INDEX IF NOT EXISTS networks_of_snapshots ON networks (stream, seq);
CREATE TABLE IF NOT EXISTS positions (
    stream BIGINT NOT NULL, topic TEXT NOT NULL, partition BIGINT NOT NULL, position BIGINT NOT NULL,
    PRIMARY KEY (stream, topic, partition)
);
CREATE TABLE IF NOT EXISTS topics (
    name TEXT NOT NULL, id TEXT NOT NULL, number BIGINT NOT NULL, PRIMARY KEY (name, id)
);
CREATE TABLE IF NOT EXISTS members (
    stream BIGINT NOT NULL, kind TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (stream, kind, value)
);
CREATE TABLE IF NOT EXISTS removed (stream BIGINT PRIMARY KEY);
CREATE TABLE IF NOT EXISTS forgotten (
    stream BIGINT NOT NULL, seq BIGINT NOT NULL, record BIGINT NOT NULL, PRIMARY KEY (stream, seq)
);
CREATE TABLE IF NOT EXISTS audit (
    number BIGINT PRIMARY KEY, at DOUBLE PRECISION NOT NULL, who TEXT NOT NULL, what TEXT NOT NULL,
    stream TEXT NOT NULL, status BIGINT, detail TEXT NOT NULL, times BIGINT NOT NULL
);
CREATE TABLE IF NOT EXISTS quarantine (stream BIGINT PRIMARY KEY, problem TEXT NOT NULL)
"""


FORMAT = 1  # of the tables and of what is in them
MIGRATIONS: dict[int, tuple[str, ...]] = {}  # the statements that make a log of each earlier format one of the next


class UnavailableError(RuntimeError):
    """The database cannot be reached or written to at present: disk full, server gone. Nothing was changed."""


class NotStorableError(RuntimeError):
    """The database does not take a value, which is too large, or contradicts another one."""


class DamagedError(RuntimeError):
    """The database is not as it should be: a damaged file, a table that is missing."""


class FormatError(DamagedError):
    """The log is of a format that this version does not read."""


class StaleError(UnavailableError):
    """Networks of keys were asked for by an old snapshot, of which not all are there any more."""


class NotOursError(RuntimeError):
    """Another server learns the stream by now."""


class Connection(ABC):
    """A connection that one thread at a time uses; after an error it reconnects by itself."""

    @abstractmethod
    def execute(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run a statement and return its rows; raises ``UnavailableError``."""

    @abstractmethod
    def many(self, sql: str, values: Iterable[Sequence[Any]]) -> None:
        """Run a statement for each row of values."""

    @abstractmethod
    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing, on disk at the end, and one at a time over all processes."""
        yield

    @abstractmethod
    def close(self) -> None:
        """Close it."""

    has_clock: str  # a statement that finds something if there is a table `clock`
    clock = "?"  # the time in SQL, where all servers share one; or what they pass
    holds: str  # whether the body of a record has the bytes that are passed
    given: str  # a table of texts passed as one parameter, with their places from 0: `given.value`, `given.place`

    @abstractmethod
    def listed(self, texts: Sequence[str]) -> Any:
        """Texts as the parameter of ``given``."""

    def clear_wal(self) -> bool:
        """Remove from the disk what was overwritten or deleted, as far as it is ours; False: it must be tried again."""
        return True

    # --- The same in both databases ------------------------------------------------------------------------------

    def among(self, sql: str, first: Sequence[Any], values: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Run ``… IN ({})`` for any number of values, after the first ones."""
        found: list[tuple[Any, ...]] = []
        for start in range(0, len(values), _PARAMETERS):
            some = values[start : start + _PARAMETERS]
            found += self.execute(sql.format(", ".join("?" * len(some))), [*first, *some])
        return found

    def append(self, seq: int, stream: int, at: float, served: float, body: LogBody) -> None:
        """Write a record, within a transaction."""
        self.execute(
            "INSERT INTO records (stream, seq, at, served, body) VALUES (?, ?, ?, ?, ?)",
            (stream, seq, at, served, encoded(body)),
        )

    def rewrite(self, stream: int, seq: int, body: LogBody) -> None:
        """Replace what a record holds, within a transaction."""
        self.execute("UPDATE records SET body = ? WHERE stream = ? AND seq = ?", (encoded(body), stream, seq))

    def records(self, stream: int, after: int, most: int, n_bytes: int = _BYTES) -> list[LogRecord]:
        """The next records of a stream: at least one if there is one, and beyond that as many bytes at most."""
        up_to = self.part(stream, after, most, n_bytes)
        if up_to == after:
            return []
        found = self.execute(
            "SELECT seq, stream, at, body FROM records WHERE stream = ? AND seq > ? AND seq <= ? ORDER BY seq",
            (stream, after, up_to),
        )
        return [decoded(*row) for row in found]

    def part(self, stream: int, after: int, most: int, n_bytes: int = _BYTES) -> int:
        """The last of the next records of a stream, likewise; the same as ``after`` if there is none."""
        sizes = self.execute(
            "SELECT seq, LENGTH(body) FROM records WHERE stream = ? AND seq > ? ORDER BY seq LIMIT ?",
            (stream, after, most),
        )
        total, up_to = 0, after
        for seq, size in sizes:
            total += size
            if total > n_bytes and up_to > after:
                break
            up_to = seq
        return up_to

    def record(self, stream: int, seq: int) -> LogRecord | None:
        """One record, unless it was removed since."""
        found = self.execute("SELECT seq, stream, at, body FROM records WHERE stream = ? AND seq = ?", (stream, seq))
        return decoded(*found[0]) if found else None


class Leases:
    """Which streams this process learns: all, as no other process uses the log."""

    seconds = 2.0  # between two calls of renew

    def renew(self, connection: Connection, streams: Collection[int]) -> tuple[set[int], set[int]]:
        """Keep and take what is to be learned here, of the streams that there are; and what is to be released."""
        return set(streams), set()

    def release(self, connection: Connection, streams: Collection[int]) -> None:
        """Let other servers learn these streams."""

    def token(self, stream: int) -> int:
        """The number of the lease of a stream that is learned here: another one after another server had it."""
        return 0

    def check(self, connection: Connection, stream: int) -> None:
        """Within a transaction, raise a ``NotOursError`` if another server has taken the stream over."""

    def close(self, connection: Connection) -> None:
        """Release all."""


ALONE = Leases()


class Database(ABC):
    """Where the log is kept; each thread has a connection of its own."""

    is_shared = False  # between several servers
    labels_at_once = 100  # in one commit: rows that come meanwhile wait for it

    def __init__(self) -> None:
        self._local = threading.local()
        self._connections: list[Connection] = []

    @abstractmethod
    def connect(self) -> Connection:
        """Another connection."""

    def leases(self) -> Leases:
        """Which streams this process learns."""
        return Leases()

    def supervise(self, supervisor: Supervisor) -> None:
        """Have what the database does beside its connections supervised, if it does anything."""
        return

    def free_bytes(self) -> int | None:
        """How much can still be written, if that is known."""
        return None

    def close(self) -> None:
        """Close all connections that :meth:`own` has made."""
        for connection in self._connections:
            connection.close()

    def prepare(self, further: str = "") -> None:
        """Create the tables, unless they are there, and bring an older log up to date."""
        connection = self.connect()
        try:
            with connection.transaction():
                connection.execute("CREATE TABLE IF NOT EXISTS format (version BIGINT NOT NULL)")
                if not connection.execute("SELECT version FROM format"):
                    if connection.execute(connection.has_clock):
                        raise FormatError("the log has no format number, so it cannot be read; begin a new one")
                    connection.execute("INSERT INTO format VALUES (?)", (FORMAT,))
                ((version,),) = connection.execute("SELECT version FROM format")
                while version in MIGRATIONS:
                    for statement in MIGRATIONS[version]:
                        connection.execute(statement)
                    version += 1
                    connection.execute("UPDATE format SET version = ?", (version,))
                check_format(connection)
                for table in filter(None, [*TABLES.split(";"), *further.split(";")]):
                    connection.execute(table)
                if not connection.execute("SELECT seq FROM clock"):
                    connection.execute("INSERT INTO clock VALUES (0, 0, 0, 0, 0)")
        finally:
            connection.close()

    def own(self) -> Connection:
        """This thread's connection."""
        connection: Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = self.connect()
            self._connections.append(connection)
        return connection


def check_format(connection: Connection) -> None:
    """Raise a ``FormatError`` unless the log is of the format that this version reads and writes."""
    ((version,),) = connection.execute("SELECT version FROM format")
    if version != FORMAT:
        raise FormatError(f"the log is of format {version}, and this version of devdan reads format {FORMAT}")
