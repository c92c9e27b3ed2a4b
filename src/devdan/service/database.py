"""The database that holds the log: tables, connections and transactions; SQL that SQLite and PostgreSQL both take."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from devdan.service.logged import Body, Record, decoded, encoded

DURABILITIES = ("full", "normal", "off")

# `records` is the truth. `samples` (what became of each id), `waiting` (records with rows or labels that wait for the
# other) and the last columns of `streams` follow from it; `clock` has the numbers that were given out, `positions` how
# far topics were read into each stream, `removed` the streams that were deleted but are not yet gone from all tables.
TABLES = """
CREATE TABLE IF NOT EXISTS clock (seq BIGINT NOT NULL, stream BIGINT NOT NULL, at DOUBLE PRECISION NOT NULL);
CREATE TABLE IF NOT EXISTS streams (
    number BIGINT PRIMARY KEY, name TEXT NOT NULL UNIQUE, settings BLOB NOT NULL, created DOUBLE PRECISION NOT NULL,
    columns BLOB, label_kind TEXT, n_rows BIGINT NOT NULL DEFAULT 0, n_waiting BIGINT NOT NULL DEFAULT 0,
    n_early BIGINT NOT NULL DEFAULT 0, horizon BIGINT NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS records (
    stream BIGINT NOT NULL, seq BIGINT NOT NULL, at DOUBLE PRECISION NOT NULL, body BLOB NOT NULL,
    PRIMARY KEY (stream, seq)
);
CREATE TABLE IF NOT EXISTS samples (
    stream BIGINT NOT NULL, id TEXT NOT NULL, seq BIGINT NOT NULL, place INTEGER NOT NULL, label BLOB, label_seq BIGINT,
    PRIMARY KEY (stream, id)
);
CREATE TABLE IF NOT EXISTS waiting (
    stream BIGINT NOT NULL, seq BIGINT NOT NULL, at DOUBLE PRECISION NOT NULL, early INTEGER NOT NULL,
    open BIGINT NOT NULL, PRIMARY KEY (stream, seq)
);
CREATE TABLE IF NOT EXISTS snapshots (
    stream BIGINT NOT NULL, kind TEXT NOT NULL, seq BIGINT NOT NULL, at DOUBLE PRECISION NOT NULL, model BLOB,
    tally BLOB NOT NULL, PRIMARY KEY (stream, kind)
);
CREATE TABLE IF NOT EXISTS positions (
    stream BIGINT NOT NULL, topic TEXT NOT NULL, partition BIGINT NOT NULL, position BIGINT NOT NULL,
    PRIMARY KEY (stream, topic, partition)
);
CREATE TABLE IF NOT EXISTS removed (stream BIGINT PRIMARY KEY)
"""
_AT_ONCE = 500  # parameters of one statement


class UnavailableError(RuntimeError):
    """The database cannot be reached or written to at present: disk full, server gone. Nothing was changed."""


class InUseError(RuntimeError):
    """Another process has the database for itself."""


class Connection(ABC):
    """A connection that one thread at a time uses; after an error it connects again by itself."""

    @abstractmethod
    def execute(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run a statement, and return its rows; raises ``UnavailableError``."""

    @abstractmethod
    def many(self, sql: str, values: Iterable[Sequence[Any]]) -> None:
        """Run a statement for each of the rows of values."""

    @abstractmethod
    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing, on disk at the end, and one at a time over all processes."""
        yield

    @abstractmethod
    def close(self) -> None:
        """Give it back."""

    given: str  # a table of texts that come as one parameter, with their places from 0: `given.value`, `given.place`

    @abstractmethod
    def listed(self, texts: Sequence[str]) -> Any:
        """Texts as the parameter of ``given``."""

    # --- What both databases do alike ----------------------------------------------------------------------------

    def among(self, sql: str, first: Sequence[Any], values: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Run ``… IN ({})`` for any number of values, after the first ones."""
        found: list[tuple[Any, ...]] = []
        for start in range(0, len(values), _AT_ONCE):
            some = values[start : start + _AT_ONCE]
            found += self.execute(sql.format(", ".join("?" * len(some))), [*first, *some])
        return found

    def append(self, seq: int, stream: int, at: float, body: Body) -> None:
        """Write a record, within a transaction."""
        self.execute(
            "INSERT INTO records (stream, seq, at, body) VALUES (?, ?, ?, ?)", (stream, seq, at, encoded(body))
        )

    def records(self, stream: int, after: int, most: int) -> list[Record]:
        """The next records of a stream."""
        found = self.execute(
            "SELECT seq, stream, at, body FROM records WHERE stream = ? AND seq > ? ORDER BY seq LIMIT ?",
            (stream, after, most),
        )
        return [decoded(*row) for row in found]

    def record(self, stream: int, seq: int) -> Record | None:
        """One record, unless it was removed since."""
        found = self.execute("SELECT seq, stream, at, body FROM records WHERE stream = ? AND seq = ?", (stream, seq))
        return decoded(*found[0]) if found else None


class Database(ABC):
    """Where the log is kept; each thread has a connection of its own."""

    @abstractmethod
    def connect(self) -> Connection:
        """Another connection."""

    @abstractmethod
    def may_learn(self) -> bool:
        """Whether this process is the one that learns; asks for it if nobody is."""

    def close(self) -> None:
        """Let others have it."""
        for connection in self._given:
            connection.close()

    is_shared = False  # between several servers
    labels_at_once = 100  # in one commit: rows that come meanwhile wait for it

    def __init__(self) -> None:
        self._local = threading.local()
        self._given: list[Connection] = []

    def prepare(self) -> None:
        """Create the tables, unless they are there."""
        connection = self.connect()
        try:
            with connection.transaction():
                for table in TABLES.split(";"):
                    connection.execute(table)
                if not connection.execute("SELECT seq FROM clock"):
                    connection.execute("INSERT INTO clock VALUES (0, 0, 0)")
        finally:
            connection.close()

    def own(self) -> Connection:
        """This thread's connection."""
        connection: Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = self.connect()
            self._given.append(connection)
        return connection
