"""Which database is meant."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from devdan.service.database import DURABILITIES, Connection, Database
from devdan.service.sqlite_database import SqliteDatabase

_POSTGRESQL = ("postgresql://", "postgres://")


def database(folder: Path | None, url: str | None, durability: str) -> Callable[[], Database]:
    """What opens the log: in a folder, or in PostgreSQL."""
    if durability not in DURABILITIES:
        raise ValueError(f"durability must be one of {', '.join(DURABILITIES)}, got {durability!r}")
    if url is None:
        assert folder is not None
        opened = SqliteDatabase(folder, durability)
        return lambda: opened
    if not url.startswith(_POSTGRESQL):
        raise ValueError("--store must begin with postgresql://")
    shared = _postgresql(url, durability)
    return lambda: shared


def _postgresql(url: str, durability: str) -> Database:
    from devdan.service.postgresql_database import PostgresqlDatabase  # noqa: PLC0415 (an optional extra)

    return PostgresqlDatabase(url, durability)


@contextmanager
def reading(place: str) -> Iterator[Connection]:
    """A connection to the log in a folder or database, beside a server that may be writing to it."""
    in_database = place.startswith(_POSTGRESQL)
    opened = _postgresql(place, "full") if in_database else SqliteDatabase(Path(place), lock=False)
    connection = opened.connect()
    try:
        yield connection
    finally:
        connection.close()
