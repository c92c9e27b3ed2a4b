"""Tables and queries of databases, read through a cursor, so that memory stays flat; nothing is ever written.

``sqlite:///orders.db?table=orders``, ``duckdb:///orders.duckdb?query=SELECT …``, ``postgresql://host/db?table=orders``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from devdan.encoding.rows import distinct
from devdan.streams.stream import StreamError, reason
from devdan.streams.tablesource import Batch, TableSource

_AT_A_TIME = 1000  # rows
_READS = frozenset((
    sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE,
))  # fmt: skip


@dataclass(frozen=True)
class _Address:
    """What an address says: the database, and what is to be read."""

    text: str  # for messages, without a password
    database: str  # without what is to be read
    file: str
    table: str | None
    query: str | None

    def select(self) -> str:
        """The query that reads what is wanted."""
        if self.query is not None:
            return self.query.strip().rstrip(";")
        parts = '"."'.join(part.replace('"', '""') for part in str(self.table).split("."))
        return f'SELECT * FROM "{parts}"'

    @property
    def path(self) -> Path:
        """The file of a database that is one."""
        path = Path(self.file)
        if not path.is_file():
            raise StreamError(f"{self.text}: no such database: {path or '(none named)'}")
        return path


def is_address(source: Any) -> bool:
    """Whether this is the address of a database.

    >>> is_address("sqlite:///a.db?table=t"), is_address("a.db")
    (True, False)
    """
    return isinstance(source, str) and source.partition("://")[0] in _BY_NAME and "://" in source


def files_of(text: str) -> list[Path]:
    """The files of the database at this address, with what is not yet merged into them; none of a server's."""
    address, _, _ = text.partition("?")
    file = Path(unquote(address.partition("://")[2].partition("/")[2]))
    return [path for path in (file, Path(f"{file}-wal"), Path(f"{file}.wal")) if path.is_file()]


def database(text: str) -> TableSource:
    """The table or the result of the query at this address."""
    address = _parsed(text)
    scheme = _BY_NAME[text.partition("://")[0]]
    opener, errors = scheme.opens, scheme.failures()

    @contextmanager
    def said(n_rows: Callable[[], int]) -> Iterator[None]:
        try:
            yield
        except errors as error:
            after = f" after row {n_rows()}" if n_rows() else ""
            raise StreamError(f"{address.text} cannot be read{after}: {reason(error)}") from error

    def batches(columns: Sequence[int], written: Sequence[int], _: Collection[int]) -> Generator[Batch, None, None]:
        n_rows = 0
        with said(lambda: n_rows), closing(opener(address)) as rows:
            next(rows)
            for batch in rows:
                yield [batch[place] for place in (*columns, *written)]
                n_rows += len(batch[0])

    with said(lambda: 0), closing(opener(address)) as rows:
        names = next(rows)
    name = address.table or Path(address.file).stem or "query"
    return TableSource(name, address.text, tuple(distinct(names)), batches, is_typed=True)


def _parsed(text: str) -> _Address:
    address, _, options = text.partition("?")
    scheme, _, place = address.partition("://")
    host, _, file = place.partition("/")
    shown = f"{scheme}://{host.rpartition('@')[2]}/{file}"
    asked = {"table": "", "query": ""}
    others, _, asked["query"] = f"&{options}".partition("&query=")  # to the end, whatever characters it has
    kept = []
    for option in filter(None, others.split("&")):
        name, _, value = option.partition("=")
        if name == "table":
            asked["table"] = value
        else:
            kept.append(option)
    table, query = (unquote(found) or None for found in asked.values())
    if (table is None) == (query is None):
        raise StreamError(f"{shown}: say what to read with either ?table=NAME or ?query=SELECT …")
    return _Address(shown, "?".join(filter(None, [address, "&".join(kept)])), unquote(file), table, query)


# Each yields the names of the columns, and then batches.


def _sqlite(address: _Address) -> Generator[Any, None, None]:
    def allowed(action: int, *_: Any) -> int:
        return sqlite3.SQLITE_OK if action in _READS else sqlite3.SQLITE_DENY

    location = f"file:{quote(str(address.path.resolve()))}?mode=ro"
    with closing(sqlite3.connect(location, uri=True, check_same_thread=False)) as connection:
        if address.table is not None:
            query = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name"
            known = [name for (name,) in connection.execute(query)]
            if address.table not in known:
                listed = ", ".join(map(repr, known[:20])) or "none"
                raise StreamError(f"{address.text} has no table {address.table!r}; there is {listed}")
        connection.set_authorizer(allowed)
        cursor = connection.execute(address.select())
        yield _names(address, cursor.description)
        while rows := cursor.fetchmany(_AT_A_TIME):
            yield [list(column) for column in zip(*rows, strict=True)]


def _duckdb(address: _Address) -> Generator[Any, None, None]:
    import duckdb  # noqa: PLC0415

    with closing(duckdb.connect(str(address.path), read_only=True)) as connection:
        result = connection.sql(address.select())
        if result is None:
            raise StreamError(f"{address.text}: the query must be a SELECT, got {address.select()[:60]!r}")
        read = getattr(result, "to_arrow_reader", None) or result.fetch_record_batch  # as earlier releases call it
        reader = read(_AT_A_TIME)
        yield reader.schema.names
        for batch in reader:
            if batch.num_rows:
                yield batch.columns


def _postgresql(address: _Address) -> Generator[Any, None, None]:
    import psycopg  # noqa: PLC0415

    with closing(psycopg.connect(address.database)) as connection:
        connection.read_only = True
        with connection.cursor(name="devdan") as cursor:  # on the server, so that rows come as they are fetched
            cursor.execute(address.select())
            rows = cursor.fetchmany(_AT_A_TIME)
            yield _names(address, cursor.description)
            while rows:
                yield [list(column) for column in zip(*rows, strict=True)]
                rows = cursor.fetchmany(_AT_A_TIME)


def _names(address: _Address, description: Any) -> list[str]:
    if not description:
        raise StreamError(f"{address.text}: the query must be a SELECT, got {address.select()[:60]!r}")
    return [column[0] for column in description]


def _of_duckdb() -> tuple[type[Exception], ...]:
    try:
        import duckdb  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise StreamError("reading DuckDB needs the package duckdb: pip install 'devdan[duckdb]'") from error
    return (duckdb.Error, OSError)


def _of_postgresql() -> tuple[type[Exception], ...]:
    try:
        import psycopg  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise StreamError("reading PostgreSQL needs the package psycopg: pip install 'devdan[postgresql]'") from error
    return (psycopg.Error, OSError)


@dataclass(frozen=True)
class DatabaseScheme:
    """A kind of database: how its addresses look, what opens one, and the errors that this raises."""

    name: str
    address: str
    needs: str
    opens: Callable[[_Address], Generator[Any, None, None]]
    failures: Callable[[], tuple[type[Exception], ...]]


SCHEMES = (
    DatabaseScheme("SQLite", "sqlite:///orders.db?table=orders", "nothing", _sqlite, lambda: (sqlite3.Error, OSError)),
    DatabaseScheme("DuckDB", "duckdb:///orders.duckdb?table=orders", "`devdan[duckdb]`", _duckdb, _of_duckdb),
    DatabaseScheme(
        "PostgreSQL", "postgresql://user@host/shop?table=orders", "`devdan[postgresql]`", _postgresql, _of_postgresql
    ),
)
_BY_NAME = {scheme.name.lower(): scheme for scheme in SCHEMES}
