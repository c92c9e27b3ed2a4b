"""The log in a folder of its own, in SQLite: nothing to set up."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from devdan.atomic import FileLock, sync_folder
from devdan.service.database import Connection, Database, InUseError, UnavailableError

FILE = "events.sqlite"
_SYNCHRONOUS = {"full": "FULL", "normal": "NORMAL", "off": "OFF"}
_WAIT = 30.0  # seconds for another writer, which is only ever this process
_MOVE = 1.0  # seconds after which what is in the journal is moved to its place in the file
_LARGE = 64 * 2**20  # bytes of the journal from which on a commit waits for that


@contextmanager
def _told() -> Iterator[None]:
    """Tell of a disk that is full or a file that is damaged, and not of mistakes in statements."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        if type(error) in (sqlite3.OperationalError, sqlite3.DatabaseError):
            raise UnavailableError(f"the log cannot be used: {error}") from error
        raise


class _Sqlite(Connection):
    given = "(SELECT key AS place, value FROM json_each(?)) AS given"

    def __init__(self, path: Path, durability: str) -> None:
        self._path, self._durability = path, durability
        self._opened: sqlite3.Connection | None = None

    def _connection(self) -> sqlite3.Connection:
        if self._opened is None:
            try:
                opened = sqlite3.connect(self._path, timeout=_WAIT, isolation_level=None, check_same_thread=False)
                opened.execute("PRAGMA journal_mode = WAL")
                opened.execute("PRAGMA wal_autocheckpoint = 0")  # commits would wait for it; see _Mover
                opened.execute(f"PRAGMA synchronous = {_SYNCHRONOUS[self._durability]}")
            except sqlite3.Error as error:
                raise UnavailableError(f"the log cannot be opened: {error}") from error
            self._opened = opened
        return self._opened

    def execute(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with _told():
            return self._connection().execute(sql, values).fetchall()

    def many(self, sql: str, values: Iterable[Sequence[Any]]) -> None:
        with _told():
            self._connection().executemany(sql, values)

    def listed(self, texts: Sequence[str]) -> str:
        return msgspec.json.encode(texts).decode()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self._shorten()
        self.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.execute("COMMIT")
        except BaseException:
            with suppress(UnavailableError):  # SQLite may have rolled back by itself
                self.execute("ROLLBACK")
            raise

    def _shorten(self) -> None:
        """Under load, the journal would grow for ever: what is moved is never all of it."""
        with suppress(FileNotFoundError):
            if os.stat(f"{self._path}-wal").st_size > _LARGE:
                self.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()
            self._opened = None


class SqliteDatabase(Database):
    """A file in a folder, which one process at a time may write to; ``lock=False`` is for reading beside it."""

    def __init__(self, folder: Path, durability: str = "full", *, lock: bool = True) -> None:
        super().__init__()
        self.path, self._durability = folder / FILE, durability
        self._lock: FileLock | None = None
        if not lock:
            if not self.path.exists():
                raise FileNotFoundError(f"there is no log in {folder}: devdan serve --data makes one")
            return
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = FileLock(folder / "lock")
        try:
            self._lock.acquire()
        except BlockingIOError as error:
            raise InUseError(
                f"{folder} is in use by another devdan serve; end it first, or choose another --data"
            ) from (error)
        self.prepare()
        sync_folder(folder)
        sync_folder(folder.parent)
        self._mover = _Mover(self.connect())
        self._mover.start()

    def connect(self) -> Connection:
        return _Sqlite(self.path, self._durability)

    def may_learn(self) -> bool:
        return True

    def close(self) -> None:
        super().close()
        if self._lock is not None:
            self._mover.stop()
            self._lock.release(remove=False)


class _Mover(threading.Thread):
    """Moves what was committed from the journal to its place in the file, beside the thread that writes.

    As part of a commit, which is when SQLite does it, the requests in that commit would wait ten times as long.
    """

    def __init__(self, connection: Connection) -> None:
        super().__init__(name="devdan-mover", daemon=True)
        self._connection, self._ends = connection, threading.Event()

    def run(self) -> None:
        while not self._ends.wait(_MOVE):
            with suppress(UnavailableError):  # it is tried again
                self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def stop(self) -> None:
        self._ends.set()
        self.join()
        self._connection.close()
