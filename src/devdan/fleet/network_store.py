"""A fleet on disk: an SQLite file with a row for each key. Nothing in it is ever executed.

The table ``networks`` is the fleet as it was last saved: only a save changes it, in one transaction. What has left
memory since is in ``changes``, which counts for nothing after a crash. A row has figures that people may ask for, then
what the fleet needs of the key; its checksum covers all of that.
"""

from __future__ import annotations

import errno
import json
import os
import sqlite3
import struct
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from devdan.arrays import Floats, Integers
from devdan.model.modelfile import ModelFileError, plain, refuse

VERSION = 1  # of the format
_APPLICATION = 0x44564446  # in the file's header, which says what kind of SQLite file it is
FIGURES = ("samples", "labels", "units", "real_drifts", "virtual_drifts", "accuracy", "last_seen")
_COLUMNS = ("key", *FIGURES, "n_judged", "judged", "inputs", "settings", "codes", "state", "checksum")
_TYPES = dict.fromkeys(_COLUMNS, "INTEGER") | {"accuracy": "REAL", "codes": "BLOB", "state": "BLOB"}
_TABLE = ", ".join(["key TEXT PRIMARY KEY NOT NULL", *(f"{name} {_TYPES[name]}" for name in _COLUMNS[1:])])
_SCHEMA = {
    "fleet": "CREATE TABLE fleet (name TEXT PRIMARY KEY NOT NULL, value BLOB)",
    "networks": f"CREATE TABLE networks ({_TABLE})",
    "changes": f"CREATE TABLE changes ({_TABLE})",
}
_LIST = ", ".join(_COLUMNS)
_UPDATE = ", ".join(f"{name} = excluded.{name}" for name in _COLUMNS[1:])
_PUT = (
    "INSERT INTO {} ("
    + _LIST
    + f") VALUES ({', '.join('?' * len(_COLUMNS))}) ON CONFLICT (key) DO UPDATE SET {_UPDATE}"
)
_NOW = (  # the rows of the running fleet that are not in memory, or older than what is there
    "SELECT {0} FROM changes WHERE state IS NOT NULL UNION ALL "
    "SELECT {0} FROM networks WHERE key NOT IN (SELECT key FROM changes)"
)
_AT_ONCE = 500  # keys that one query asks for


class Kept(NamedTuple):
    """What a fleet keeps of a key."""

    state: Floats
    codes: Integers  # the fleet's codes of the classes that it knows, by output
    n_judged: int = 0  # predictions of which it is known whether they were right
    judged: int = 0  # the latest of these, a bit each, as a signed word
    seen: int = 0  # rows that the fleet had learned when this key was last among them
    inputs: int = 0  # version of the fleet's inputs that its features are
    settings: int = 0  # version of the fleet's settings that it has


class Row(NamedTuple):
    """What is on disk of a key."""

    text: str
    figures: tuple[Any, ...]
    kept: Kept


class KeyStore(ABC):
    """Where a fleet has the networks that are not in memory."""

    takes_changes = False  # networks that have changed may go there at any time; else only those that it has already

    @abstractmethod
    def get(self, texts: Sequence[str]) -> Iterator[tuple[Row, bool]]:
        """What there is of these keys, and whether this very process put it there, so that it need not be checked."""

    @abstractmethod
    def rows(self) -> Iterator[Row]:
        """All that there is."""

    @abstractmethod
    def figures(self) -> list[tuple[Any, ...]]:
        """The key and the figures of each row."""

    @abstractmethod
    def count(self) -> int:
        """How many keys were saved."""

    def put(self, rows: Iterable[Row]) -> None:
        """Keep what leaves memory; asked only of a store that takes changes."""
        raise self._unchangeable()

    def forget(self, text: str) -> None:
        """Remove a key; raises a ``TypeError`` unless the store takes changes."""
        raise self._unchangeable()

    def _unchangeable(self) -> TypeError:
        return TypeError(
            f"a fleet's keys can be deleted only if its store takes changes, got {self}, which is only "
            "read: delete them where they are kept, or save the fleet to a file and load it from there"
        )


class Store(KeyStore):
    """An open file; whoever has it for its networks keeps others out."""

    takes_changes = True

    def __init__(self, path: str | os.PathLike[str], connection: sqlite3.Connection) -> None:
        self.path, self._connection = Path(path), connection

    @classmethod
    def create(cls, path: str | os.PathLike[str], exclusive: bool) -> Store:
        """A new file, or one in which no fleet was ever saved; raises a ``FileExistsError`` if one was."""
        with _clear_errors(path):
            if not Path(path).absolute().parent.is_dir():
                raise FileNotFoundError(errno.ENOENT, "there is no such folder", str(path))
            if not _is_empty(path):
                _check_header(path)
            store = cls(path, _connected(path, "rwc"))
            if not store._tables():
                store._make_tables()
            store._check_tables()
            store._prepare(exclusive)
            if store.header() is not None:
                store.close()
                raise FileExistsError(errno.EEXIST, "it holds a fleet: load it with DEVDANFleet.load", str(path))
            store._run("DELETE FROM networks", "DELETE FROM changes")
            return store

    @classmethod
    def open_or_create(cls, path: str | os.PathLike[str]) -> Store:
        """A file to save to."""
        if _is_empty(path):
            return cls.create(path, exclusive=False)
        try:
            return cls.open(path, exclusive=False)
        except ModelFileError as error:
            raise ModelFileError(f"{error}; choose another path, as it is not overwritten") from error

    @classmethod
    def open(cls, path: str | os.PathLike[str], exclusive: bool, read_only: bool = False) -> Store:
        """A file that is there; raises a ``ModelFileError`` if it is no fleet's."""
        with _clear_errors(path):
            _check_header(path)
            mode = "rw"
            if read_only and not (os.access(path, os.W_OK) and os.access(Path(path).absolute().parent, os.W_OK)):
                mode = "ro&immutable=1"  # nobody can change it, and SQLite cannot write beside it
            store = cls(path, _connected(path, mode))
            store._check_tables()
            if mode == "rw":
                store._prepare(exclusive)
            return store

    def _tables(self) -> list[tuple[str, str]]:
        """What there is in the file, and how it was made; nothing else may be there, such as triggers."""
        return self._connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()

    def _make_tables(self) -> None:
        with self._transaction() as connection:
            connection.execute(f"PRAGMA application_id = {_APPLICATION}")
            connection.execute(f"PRAGMA user_version = {VERSION}")
            for statement in _SCHEMA.values():
                connection.execute(statement)

    def _check_tables(self) -> None:
        if sorted(self._tables()) != sorted(_SCHEMA.items()):
            self.close()
            raise ModelFileError(f"{self.path} is not a fleet: it has other tables")

    def _prepare(self, exclusive: bool) -> None:
        for setting in (
            f"locking_mode = {'EXCLUSIVE' if exclusive else 'NORMAL'}",
            "journal_mode = WAL",
            "cache_size = -65536",  # 64 MB
            "wal_autocheckpoint = 8192",  # pages, 64 MB
            "journal_size_limit = 67108864",
        ):
            self._connection.execute(f"PRAGMA {setting}")
        if exclusive:
            self._run()  # takes the lock, which lasts

    def __str__(self) -> str:
        return str(self.path)

    def close(self) -> None:
        """Let others have the file."""
        self._connection.close()

    __del__ = close

    @contextmanager
    def _transaction(self, synchronous: str = "NORMAL") -> Iterator[sqlite3.Connection]:
        """All of it or nothing; ``synchronous`` FULL: it is on the disk, whatever becomes of the machine."""
        with _clear_errors(self.path):
            self._connection.execute(f"PRAGMA synchronous = {synchronous}")
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):  # SQLite may have rolled back by itself
                    self._connection.execute("ROLLBACK")
                raise

    def _run(self, *statements: str) -> None:
        with self._transaction() as connection:
            for statement in statements:
                connection.execute(statement)

    # --- A fleet -------------------------------------------------------------------------------------------------

    def header(self) -> tuple[dict[str, Any], Floats] | None:
        """What was saved of the fleet as a whole, a header and a network, not checked yet; None if nothing was."""
        with _clear_errors(self.path):
            found = dict(self._connection.execute("SELECT name, value FROM fleet").fetchall())
        if not found:
            return None
        try:
            if zlib.crc32(found["network"], zlib.crc32(found["header"])) != found["checksum"]:
                raise ValueError("its checksum does not match")
            header = json.loads(found["header"], parse_constant=refuse)
            if not isinstance(header, dict):
                raise ValueError("it is no object")
            return header, np.frombuffer(found["network"], "<f8").astype(np.float64)
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise ModelFileError(f"{self.path} has no readable header: {error}") from error

    def save(
        self, header: dict[str, Any], network: Floats, rows: Iterable[Row], gone: Iterable[str], afresh: bool
    ) -> None:
        """Save rows that are new or changed, and forget others; ``afresh``: all that was there is forgotten."""
        parts = json.dumps(header, allow_nan=False, default=plain).encode(), network.astype("<f8").tobytes()
        facts = {"header": parts[0], "network": parts[1], "checksum": zlib.crc32(parts[1], zlib.crc32(parts[0]))}
        with self._transaction("FULL") as connection:
            if afresh:
                connection.execute("DELETE FROM networks")
            else:
                connection.execute("DELETE FROM networks WHERE key IN (SELECT key FROM changes WHERE state IS NULL)")
                connection.execute(
                    f"INSERT INTO networks ({_LIST}) SELECT {_LIST} FROM changes WHERE state IS NOT NULL "
                    f"ON CONFLICT (key) DO UPDATE SET {_UPDATE}"
                )
            connection.execute("DELETE FROM changes")
            connection.executemany("DELETE FROM networks WHERE key = ?", ((key,) for key in gone))
            connection.executemany(_PUT.format("networks"), map(_packed, rows))
            connection.executemany("INSERT OR REPLACE INTO fleet VALUES (?, ?)", facts.items())

    def discard_changes(self) -> None:
        """Forget what came after the last save."""
        self._run("DELETE FROM changes")

    # --- Networks ------------------------------------------------------------------------------------------------

    def put(self, rows: Iterable[Row]) -> None:
        """Keep what leaves memory."""
        with self._transaction() as connection:
            connection.executemany(_PUT.format("changes"), map(_packed, rows))

    def forget(self, text: str) -> None:
        """Remove a key from the running fleet; what was saved stays saved."""
        with self._transaction() as connection:
            connection.execute(_PUT.format("changes"), (text, *[None] * (len(_COLUMNS) - 1)))

    def get(self, texts: Sequence[str]) -> Iterator[tuple[Row, bool]]:
        """What there is of these keys, and whether it was put there since the last save, by this very process."""
        wanted = set(texts)
        for table in ("changes", "networks"):
            asked = [text for text in texts if text in wanted]
            for start in range(0, len(asked), _AT_ONCE):
                part = asked[start : start + _AT_ONCE]
                query = f"SELECT {_LIST} FROM {table} WHERE key IN ({', '.join('?' * len(part))})"
                with _clear_errors(self.path):
                    found = self._connection.execute(query, part).fetchall()
                for row in found:
                    wanted.discard(row[0])
                    if row[_COLUMNS.index("state")] is not None or table == "networks":
                        yield self._unpacked(row), table == "changes"

    def rows(self) -> Iterator[Row]:
        """All rows of the running fleet."""
        with _clear_errors(self.path):
            for row in self._connection.execute(_NOW.format(_LIST)):
                yield self._unpacked(row)

    def saved_rows(self) -> Iterator[Row]:
        with _clear_errors(self.path):
            for row in self._connection.execute(f"SELECT {_LIST} FROM networks"):
                yield self._unpacked(row)

    def count(self) -> int:
        """How many keys were saved."""
        with _clear_errors(self.path):
            return int(self._connection.execute("SELECT count(*) FROM networks").fetchone()[0])

    def figures(self) -> list[tuple[Any, ...]]:
        """The key and the figures of each row of the running fleet."""
        with _clear_errors(self.path):
            return self._connection.execute(_NOW.format(", ".join(("key", *FIGURES)))).fetchall()

    def _unpacked(self, row: tuple[Any, ...]) -> Row:
        try:
            return _unpacked(row)
        except (ValueError, TypeError, struct.error) as error:
            raise ModelFileError(f"{self.path} is damaged: the row of the key {row[0]!r} is not whole") from error


# --- Rows --------------------------------------------------------------------------------------------------------


def _packed(row: Row) -> tuple[Any, ...]:
    text, figures, kept = row
    codes, state = kept.codes.astype("<i8").tobytes(), kept.state.astype("<f8").tobytes()
    words = (kept.n_judged, kept.judged, kept.inputs, kept.settings)
    return text, *figures, *words, codes, state, _checksum(text, figures, words, codes, state)


def _unpacked(row: tuple[Any, ...]) -> Row:
    text, *figures, n_judged, judged, inputs, settings, codes, state, checksum = row
    if checksum != _checksum(text, tuple(figures), (n_judged, judged, inputs, settings), codes, state):
        raise ValueError("its checksum does not match")
    if not isinstance(text, str) or not isinstance(figures[-1], int):
        raise ValueError("its columns are of other types")
    words = np.frombuffer(state, "<f8"), np.frombuffer(codes, "<i8")
    return Row(text, tuple(figures), Kept(*words, n_judged, judged, figures[-1], inputs, settings))


def _checksum(text: str, figures: Sequence[Any], words: Sequence[int], codes: bytes, state: bytes) -> int:
    return zlib.crc32(state, zlib.crc32(codes, zlib.crc32(f"{text} {figures} {struct.pack('<4q', *words)!r}".encode())))


# --- Files -------------------------------------------------------------------------------------------------------


def _connected(path: str | os.PathLike[str], mode: str) -> sqlite3.Connection:
    address = f"{Path(path).absolute().as_uri()}?mode={mode}"
    connection = sqlite3.connect(address, timeout=0, isolation_level=None, check_same_thread=False, uri=True)
    connection.execute("PRAGMA trusted_schema = OFF")
    return connection


def _is_empty(path: str | os.PathLike[str]) -> bool:
    return not os.path.exists(path) or os.path.getsize(path) == 0


def _check_header(path: str | os.PathLike[str]) -> None:
    """Raise a ``ModelFileError`` unless the file is a fleet's, by the first bytes alone."""
    with open(path, "rb") as file:
        start = file.read(100)
    if start[:16] != b"SQLite format 3\0"[: len(start)] or not start:
        raise ModelFileError(f"{path} is not a fleet")
    if len(start) < 100:
        raise ModelFileError(f"{path} is truncated: {len(start)} bytes")
    version, _, application = struct.unpack(">III", start[60:72])
    if application != _APPLICATION:
        raise ModelFileError(f"{path} is an SQLite file, but not a fleet")
    if version > VERSION:
        raise ModelFileError(
            f"{path} was saved by a newer devdan (format {version}, this one reads {VERSION}): upgrade devdan"
        )
    if version < 1:
        raise ModelFileError(f"{path} has the format {version}, which does not exist")


@contextmanager
def _clear_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Say what SQLite's errors mean."""
    try:
        yield
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        said = str(error)
        if isinstance(error, sqlite3.ProgrammingError):
            raise ValueError(f"the fleet in {path} was closed: load it again") from error
        if "locked" in said:
            raise BlockingIOError(errno.EAGAIN, "it is in use, by another fleet or program", str(path)) from error
        if "full" in said:
            raise OSError(errno.ENOSPC, "there is no space left for the fleet", str(path)) from error
        if "readonly" in said or "unable to open" in said:
            raise PermissionError(errno.EACCES, f"it cannot be written to ({said})", str(path)) from error
        if "I/O" in said:
            raise OSError(errno.EIO, f"it cannot be read or written ({said})", str(path)) from error
        raise ModelFileError(f"{path} is truncated or damaged: {said}") from error
