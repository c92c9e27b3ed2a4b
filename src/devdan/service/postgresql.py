"""The log in PostgreSQL, which several servers can share.

All servers write, one transaction at a time over all of them. Each stream is learned by the one server that holds its
lease, the others predict from its snapshots. A lease that is not renewed in time goes to another server, with a higher
token; what the former holder writes then is refused by its token. Streams spread over the servers there are.

No server waits for another one that hangs: PostgreSQL ends a transaction in which nothing happens, a lock is waited for
only so long, and a statement that takes too long is given up, here too if PostgreSQL itself does not answer.
"""

from __future__ import annotations

import os
import secrets
import socket
import threading
import time
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

try:
    import psycopg
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "a log in PostgreSQL needs psycopg: pip install 'devdan[serve,postgresql]'", name=error.name
    ) from error

from devdan.service.database import (
    Connection,
    DamagedError,
    Database,
    Leases,
    NotOursError,
    NotStorableError,
    UnavailableError,
)
from devdan.service.supervision import Supervisor

_WRITES = 0x6465_7664_616E_0000  # key of the lock that makes one transaction at a time
_TIMEOUT = 10  # seconds to connect
_STATEMENT, _LOCK, _IDLE = 30, 15, 10  # seconds: of a statement, until there is a lock, idle within a transaction
_HUNG = 40.0  # seconds without an answer to a statement, after which the connection is given up
_LOOK = 1.0  # seconds between two looks for such connections
_LEASE = 10.0  # seconds that a lease lasts unless it is renewed
_COMMIT = {"full": "on", "normal": "off", "off": "off"}
_NOW = "EXTRACT(EPOCH FROM clock_timestamp())::DOUBLE PRECISION"  # the one clock that all servers share

_LEASES = """
CREATE TABLE IF NOT EXISTS servers (name TEXT PRIMARY KEY, until DOUBLE PRECISION NOT NULL);
CREATE TABLE IF NOT EXISTS leases (
    stream BIGINT PRIMARY KEY, holder TEXT NOT NULL, token BIGINT NOT NULL, until DOUBLE PRECISION NOT NULL
)
"""

# What each class of SQLSTATE means, or single codes; what is not here is a mistake of ours. Errors without a code come
# from the client: the connection is lost.
_FAULTS: dict[str, type[RuntimeError]] = {
    "08": UnavailableError,  # connection
    "0A": DamagedError,  # not supported: a server that is too old
    "22": NotStorableError,  # data
    "23": NotStorableError,  # a constraint
    "25006": UnavailableError,  # read-only: a standby, or set by an administrator
    "25P02": UnavailableError,  # the transaction has failed before
    "25P03": UnavailableError,  # idle within a transaction for too long
    "25P04": UnavailableError,  # a transaction that took too long
    "26": UnavailableError,  # no such prepared statement, see _POOLED
    "28": UnavailableError,  # the password was changed
    "3D": UnavailableError,  # no such database, perhaps while it is being restored
    "40": UnavailableError,  # serialization, deadlock
    "42501": UnavailableError,  # a right was withdrawn
    "42P01": DamagedError,  # no such table
    "42P05": UnavailableError,  # there is such a prepared statement already, see _POOLED
    "42703": DamagedError,  # no such column
    "53": UnavailableError,  # disk full, out of memory, too many connections
    "54": NotStorableError,  # larger than PostgreSQL takes
    "55": UnavailableError,  # no lock in time
    "57": UnavailableError,  # shut down, crashed, starting, cancelled, too long
    "58": UnavailableError,  # input or output failed
    "F0": DamagedError,  # its configuration
    "XX": DamagedError,  # damaged data or index, an internal error
}

# Errors of prepared statements: a pooler such as PgBouncer gives each transaction another session of the server.
_POOLED = {"26000", "42P05"}
_PREPARED = 5  # times that a statement comes until it is prepared, which saves a third of a small transaction


def meaning(error: psycopg.Error) -> type[RuntimeError] | None:
    """What an error means for the service; None if it is a mistake of ours."""
    code = error.sqlstate
    if code is None:
        return UnavailableError if isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError)) else None
    return _FAULTS.get(code) or _FAULTS.get(code[:2])


class PostgresqlConnection(Connection):
    """A connection to a server."""

    has_clock = "SELECT 1 FROM pg_tables WHERE tablename = 'clock' AND schemaname = ANY (current_schemas(false))"
    clock = _NOW
    holds = "position(?::bytea IN body) > 0"
    given = (
        "(SELECT place - 1 AS place, value FROM unnest(?::text[]) WITH ORDINALITY AS numbered (value, place)) AS given"
    )

    def __init__(self, url: str, durability: str) -> None:
        self._url, self._durability = url, durability
        self._opened: psycopg.Connection[Any] | None = None
        self._since: float | None = None  # when the statement began that has no answer yet
        self._is_within = False  # a transaction
        self._prepared: int | None = _PREPARED  # None: statements are never prepared

    def _connection(self) -> psycopg.Connection[Any]:
        if self._opened is None or self._opened.closed:
            if self._is_within:
                raise UnavailableError("the connection was lost within a transaction")
            set_ = {
                "synchronous_commit": _COMMIT[self._durability],
                "client_encoding": "UTF8",
                "statement_timeout": f"{_STATEMENT}s",
                "lock_timeout": f"{_LOCK}s",
                "idle_in_transaction_session_timeout": f"{_IDLE}s",
            }
            self._opened = psycopg.connect(
                self._url,
                autocommit=True,
                connect_timeout=_TIMEOUT,
                prepare_threshold=self._prepared,
                options=" ".join(f"-c {name}={value}" for name, value in set_.items()),
                keepalives_idle=10,
                tcp_user_timeout=1000 * _STATEMENT,
            )
        return self._opened

    @contextmanager
    def _asking(self) -> Iterator[None]:
        """Report errors of PostgreSQL as what they mean for the service; after one the next statement reconnects."""
        self._since = time.monotonic()
        try:
            yield
        except psycopg.Error as error:
            means = meaning(error)
            if means is None:
                raise
            if error.sqlstate in _POOLED:
                self._prepared = None
            if means is UnavailableError:
                self.close()
            raise means(f"PostgreSQL cannot be used: {' '.join(str(error).split())}") from error
        finally:
            self._since = None

    def execute(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with self._asking():
            found = self._connection().execute(_translated(sql), values)
            return found.fetchall() if found.description is not None else []

    def many(self, sql: str, values: Iterable[Sequence[Any]]) -> None:
        with self._asking(), self._connection().cursor() as cursor:
            cursor.executemany(_translated(sql), list(values))

    def listed(self, texts: Sequence[str]) -> list[str]:
        if any("\0" in text for text in texts):
            raise NotStorableError("PostgreSQL has no texts with a NUL character")
        return list(texts)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self.execute("BEGIN")
        self._is_within = True
        try:
            self.execute("SELECT pg_advisory_xact_lock(?)", (_WRITES,))
            yield
            self.execute("COMMIT")
        except BaseException:
            with suppress(UnavailableError):  # PostgreSQL has rolled back by itself
                self.execute("ROLLBACK")
            raise
        finally:
            self._is_within = False

    def give_up_if_hung(self) -> None:
        """End a connection whose server has stopped to answer: whoever waits for it gets an error. For any thread."""
        since, opened = self._since, self._opened
        if since is not None and opened is not None and time.monotonic() - since > _HUNG:
            with suppress(psycopg.Error, OSError):
                ours = socket.socket(fileno=os.dup(opened.pgconn.socket))
                ours.shutdown(socket.SHUT_RDWR)
                ours.close()

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()
            self._opened = None


def _translated(sql: str) -> str:
    """Parameters and types as PostgreSQL spells them."""
    return sql.replace("?", "%s").replace(" BLOB", " BYTEA")


class PostgresqlLeases(Leases):
    """The streams that this server learns: as many as each of the servers that there are should."""

    def __init__(self) -> None:
        self._name = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
        self._tokens: dict[int, int] = {}

    def renew(self, connection: Connection, streams: Collection[int]) -> tuple[set[int], set[int]]:
        connection.execute(
            f"INSERT INTO servers (name, until) VALUES (?, {_NOW} + ?) "
            "ON CONFLICT (name) DO UPDATE SET until = excluded.until",
            (self._name, _LEASE),
        )
        connection.execute(f"DELETE FROM servers WHERE until < {_NOW}")
        connection.execute("DELETE FROM leases WHERE stream NOT IN (SELECT number FROM streams)")
        ((n_servers,),) = connection.execute("SELECT COUNT(*) FROM servers")
        kept = connection.execute(
            f"UPDATE leases SET until = {_NOW} + ? WHERE holder = ? RETURNING stream, token", (_LEASE, self._name)
        )
        self._tokens = {stream: token for stream, token in kept if stream in streams}
        share = -(-len(streams) // n_servers)
        surplus = set(sorted(self._tokens)[share:])
        if len(self._tokens) < share:
            free = connection.execute(
                "SELECT streams.number FROM streams LEFT JOIN leases ON leases.stream = streams.number "
                f"WHERE leases.stream IS NULL OR leases.until < {_NOW} ORDER BY streams.number LIMIT ?",
                (share - len(self._tokens),),
            )
            for (stream,) in free:
                self._tokens |= connection.execute(
                    f"INSERT INTO leases (stream, holder, token, until) VALUES (?, ?, 1, {_NOW} + ?) "
                    "ON CONFLICT (stream) DO UPDATE SET holder = excluded.holder, token = leases.token + 1, "
                    f"until = excluded.until WHERE leases.until < {_NOW} RETURNING stream, token",
                    (stream, self._name, _LEASE),
                )
        return self._tokens.keys() & set(streams), surplus

    def release(self, connection: Connection, streams: Collection[int]) -> None:
        for stream in streams:
            connection.execute(
                "UPDATE leases SET until = 0, holder = '' WHERE stream = ? AND holder = ?", (stream, self._name)
            )
            self._tokens.pop(stream, None)

    def token(self, stream: int) -> int:
        return self._tokens[stream]

    def check(self, connection: Connection, stream: int) -> None:
        """Nobody can take the stream over until the transaction ends: the row is locked."""
        found = connection.execute(
            "SELECT token FROM leases WHERE stream = ? AND holder = ? AND token = ? FOR UPDATE",
            (stream, self._name, self._tokens.get(stream, 0)),
        )
        if not found:
            raise NotOursError("another server learns the stream by now")

    def close(self, connection: Connection) -> None:
        self.release(connection, list(self._tokens))
        connection.execute("DELETE FROM servers WHERE name = ?", (self._name,))


class PostgresqlDatabase(Database):
    """A database that several servers share; ``prepare=False`` only reads, and leaves a log of another format alone."""

    labels_at_once = 1000  # a round trip takes longer than some more labels do
    is_shared = True

    def __init__(self, url: str, durability: str = "full", *, prepare: bool = True) -> None:
        super().__init__()
        self._url, self._durability = url, durability
        self._watched: weakref.WeakSet[PostgresqlConnection] = weakref.WeakSet()
        self._ends, self._door = threading.Event(), threading.Lock()
        self._begin(partial(self._watch, self._ends))
        if prepare:
            self.prepare(_LEASES)

    def connect(self) -> Connection:
        made = PostgresqlConnection(self._url, self._durability)
        with self._door:  # a set cannot be gone through while another thread adds to it
            self._watched.add(made)
        return made

    def leases(self) -> Leases:
        return PostgresqlLeases()

    def supervise(self, supervisor: Supervisor) -> None:
        part, ends = supervisor.part("connections"), threading.Event()

        def watch() -> None:
            with supervisor.guarding(part):
                self._watch(ends, part.works)

        self._begin(watch)
        self._ends.set()
        self._ends = ends

    def _begin(self, watch: Callable[[], None]) -> None:
        threading.Thread(target=watch, name="devdan-watch", daemon=True).start()

    def _watch(self, ends: threading.Event, works: Callable[[], None] = lambda: None) -> None:
        """Give up connections that hang."""
        while not ends.wait(_LOOK):
            with self._door:
                watched = list(self._watched)
            for connection in watched:
                connection.give_up_if_hung()
            works()

    def close(self) -> None:
        super().close()
        self._ends.set()
