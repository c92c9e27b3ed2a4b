"""The log in PostgreSQL, which several servers can share.

All servers write, one transaction at a time over all of them. One learns, the others predict from its snapshots. The
one that learns holds an advisory lock; PostgreSQL releases it when the connection ends, and another server takes over.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

try:
    import psycopg
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "a log in PostgreSQL needs psycopg: pip install 'devdan[serve,postgresql]'", name=error.name
    ) from error

from devdan.service.sql import Connection, Database, UnavailableError

_WRITES, _LEARNS = 0x6465_7664, 0x616E_0001  # keys of the two locks
_TIMEOUT = 10  # seconds to connect
_COMMIT = {"full": "on", "normal": "off", "off": "off"}


class PostgresqlConnection(Connection):
    """A connection to a server."""

    given = (
        "(SELECT place - 1 AS place, value FROM unnest(?::text[]) WITH ORDINALITY AS numbered (value, place)) AS given"
    )

    def __init__(self, url: str, durability: str) -> None:
        self._url, self._durability = url, durability
        self._opened: psycopg.Connection[Any] | None = None

    def _connection(self) -> psycopg.Connection[Any]:
        if self._opened is None or self._opened.closed:
            options = f"-c synchronous_commit={_COMMIT[self._durability]} -c client_encoding=UTF8"
            self._opened = psycopg.connect(
                self._url, autocommit=True, connect_timeout=_TIMEOUT, options=options, keepalives_idle=10
            )
        return self._opened

    def execute(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        try:
            found = self._connection().execute(_translated(sql), values)
            return found.fetchall() if found.description is not None else []
        except psycopg.OperationalError as error:
            raise self._gone(error) from error

    def many(self, sql: str, values: Iterable[Sequence[Any]]) -> None:
        try:
            with self._connection().cursor() as cursor:
                cursor.executemany(_translated(sql), list(values))
        except psycopg.OperationalError as error:
            raise self._gone(error) from error

    def listed(self, texts: Sequence[str]) -> list[str]:
        return list(texts)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        try:
            with self._connection().transaction():
                self.execute("SELECT pg_advisory_xact_lock(?)", (_WRITES,))
                yield
        except psycopg.OperationalError as error:
            raise self._gone(error) from error

    def _gone(self, error: psycopg.OperationalError) -> UnavailableError:
        self.close()
        return UnavailableError(f"PostgreSQL cannot be used: {' '.join(str(error).split())}")

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()
            self._opened = None


def _translated(sql: str) -> str:
    """Parameters and types as PostgreSQL spells them."""
    return sql.replace("?", "%s").replace(" BLOB", " BYTEA")


class PostgresqlDatabase(Database):
    """A database that several servers share."""

    labels_at_once = 1000  # a round trip takes longer than some more labels do
    is_shared = True

    def __init__(self, url: str, durability: str = "full") -> None:
        super().__init__()
        self._url, self._durability = url, durability
        self._learning: Connection | None = None
        self._lock = threading.Lock()
        self.prepare()

    def connect(self) -> Connection:
        return PostgresqlConnection(self._url, self._durability)

    def may_learn(self) -> bool:
        with self._lock:
            if self._learning is not None:
                try:
                    self._learning.execute("SELECT 1")
                except UnavailableError:  # the lock is gone with the connection
                    self._learning = None
                    raise
                return True
            connection = self.connect()
            ((is_ours,),) = connection.execute("SELECT pg_try_advisory_lock(?)", (_LEARNS,))
            if is_ours:
                self._learning = connection
            else:
                connection.close()
            return bool(is_ours)

    def close(self) -> None:
        super().close()
        if self._learning is not None:
            self._learning.close()
