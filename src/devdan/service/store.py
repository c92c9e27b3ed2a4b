"""Where the log is kept: SQLite in a folder, which needs no set-up, or PostgreSQL, which several servers can share."""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from devdan.atomic import FileLock, sync_folder
from devdan.service.database import Connection, DamagedError, Database, NotStorableError, UnavailableError, check_format

DURABILITIES = ("full", "normal", "off")
FILE = "events.sqlite"
_SYNCHRONOUS = {"full": "FULL", "normal": "NORMAL", "off": "OFF"}
_WAIT = 30.0  # seconds for another writer, which is only ever this process
_CHECKPOINT = 1.0  # seconds between two checkpoints
_LARGE = 64 * 2**20  # bytes of the WAL beyond which a transaction waits for a checkpoint
_POSTGRESQL = ("postgresql://", "postgres://")


class InUseError(RuntimeError):
    """Another process holds the database."""


# What each error of sqlite3 means; any other is a mistake of ours, and stays what it is.
_FAULTS: tuple[tuple[type[Exception], str, type[RuntimeError]], ...] = (
    (sqlite3.OperationalError, "no such", DamagedError),  # table or column
    (sqlite3.OperationalError, "", UnavailableError),  # disk full, read-only, locked, input or output failed
    (MemoryError, "", UnavailableError),
    (sqlite3.DataError, "", NotStorableError),  # too large
    (sqlite3.IntegrityError, "", NotStorableError),
    (OverflowError, "", NotStorableError),
    (UnicodeEncodeError, "", NotStorableError),
    (sqlite3.InternalError, "", DamagedError),
    (sqlite3.NotSupportedError, "", DamagedError),
    (sqlite3.DatabaseError, "", DamagedError),  # and none of its kinds: a damaged file, or no database
)
_MISTAKES = (sqlite3.ProgrammingError, sqlite3.InterfaceError)


@contextmanager
def _failures() -> Iterator[None]:
    """Report errors of SQLite as what they mean for the service."""
    try:
        yield
    except _MISTAKES:
        raise
    except (sqlite3.Error, MemoryError, OverflowError, UnicodeEncodeError) as error:
        for kind, says, meaning in _FAULTS:
            if isinstance(error, kind) and says in str(error):
                raise meaning(f"the log cannot be used: {error or 'out of memory'}") from error
        raise


class SqliteConnection(Connection):
    """A connection to a file."""

    has_clock = "SELECT 1 FROM sqlite_master WHERE name = 'clock'"
    holds = "instr(body, ?) > 0"
    given = "(SELECT key AS place, value FROM json_each(?)) AS given"

    def __init__(self, path: Path, durability: str) -> None:
        self._path, self._durability = path, durability
        self._opened: sqlite3.Connection | None = None
        self._files: list[tuple[int, int]] | None = None  # that it writes to

    def _connection(self) -> sqlite3.Connection:
        if self._opened is None:
            opened = sqlite3.connect(self._path, timeout=_WAIT, isolation_level=None, check_same_thread=False)
            try:
                opened.execute("PRAGMA journal_mode = WAL")
                opened.execute("PRAGMA secure_delete = ON")  # what is deleted is overwritten, see forgetting
                opened.execute("PRAGMA wal_autocheckpoint = 0")  # commits would wait for it; see _Checkpoints
                opened.execute(f"PRAGMA synchronous = {_SYNCHRONOUS[self._durability]}")
            except BaseException:
                opened.close()
                raise
            self._opened = opened
        return self._opened

    def execute(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with _failures():
            return self._connection().execute(sql, values).fetchall()

    def many(self, sql: str, values: Iterable[Sequence[Any]]) -> None:
        with _failures():
            self._connection().executemany(sql, values)

    def listed(self, texts: Sequence[str]) -> str:
        return msgspec.json.encode(texts).decode()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self._limit_wal()
        self.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.execute("COMMIT")
        except BaseException:
            with suppress(UnavailableError, DamagedError):  # SQLite may have rolled back by itself
                self.execute("ROLLBACK")
            raise
        self._check_files()

    def _check_files(self) -> None:
        """Raise a ``DamagedError`` if what was committed is in files that nobody will find again."""
        try:
            found = [os.stat(f"{self._path}{end}") for end in ("", "-wal")]
        except FileNotFoundError:
            raise DamagedError(
                f"the log was removed: {self._path} or the WAL beside it is not there any more"
            ) from None
        files = [(one.st_dev, one.st_ino) for one in found]
        if self._files is None:
            self._files = files
        elif files != self._files:
            raise DamagedError(f"the log was replaced: {self._path} or the WAL beside it is another file than before")

    def _limit_wal(self) -> None:
        """Under load, the WAL would grow for ever: a passive checkpoint never empties it."""
        with suppress(FileNotFoundError):
            if os.stat(f"{self._path}-wal").st_size > _LARGE:
                self.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def clear_wal(self) -> bool:
        ((is_busy, _, _),) = self.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return not is_busy

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()
            self._opened = self._files = None


class SqliteDatabase(Database):
    """A file in a folder, which one process at a time may write to; ``lock=False`` only reads, beside a server."""

    def __init__(self, folder: Path, durability: str = "full", *, lock: bool = True) -> None:
        super().__init__()
        self.path, self._durability = folder / FILE, durability
        self._lock: FileLock | None = None
        if not lock:
            if not self.path.exists():
                raise FileNotFoundError(f"there is no log in {folder}: devdan serve --data makes one")
            return
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = FileLock(folder / "lock")
        try:
            self._lock.acquire()
        except BlockingIOError as error:
            raise InUseError(
                f"{folder} is in use by another devdan serve; end it first, or choose another --data"
            ) from (error)
        try:
            for name in (FILE, f"{FILE}-wal", f"{FILE}-shm", "lock"):
                _keep_private(folder / name, create=name == FILE)
            self.prepare()
        except BaseException:
            self._lock.release(remove=False)
            raise
        sync_folder(folder)
        sync_folder(folder.parent)
        self._checkpoints = _Checkpoints(self.connect())
        self._checkpoints.start()

    def connect(self) -> Connection:
        return SqliteConnection(self.path, self._durability)

    def free_bytes(self) -> int:
        try:
            return shutil.disk_usage(self.path.parent).free
        except FileNotFoundError:  # the folder was removed, which ends the process once it writes
            return 0

    def close(self) -> None:
        super().close()
        if self._lock is not None:
            self._checkpoints.stop()
            self._lock.release(remove=False)


def _keep_private(path: Path, create: bool) -> None:
    """Let nobody else read a file of the log; those that SQLite makes beside another have its mode."""
    if create:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    with suppress(FileNotFoundError):
        os.chmod(path, 0o600)


class _Checkpoints(threading.Thread):
    """WAL checkpoints beside the thread that writes.

    SQLite would make them part of a commit, and the requests in that commit would wait ten times as long.
    """

    def __init__(self, connection: Connection) -> None:
        super().__init__(name="devdan-checkpoints", daemon=True)
        self._connection, self._ends = connection, threading.Event()

    def run(self) -> None:
        while not self._ends.wait(_CHECKPOINT):
            with suppress(UnavailableError, DamagedError):  # the next one may succeed; the writer tells of damage
                self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def stop(self) -> None:
        self._ends.set()
        self.join()
        self._connection.close()


# --- Opening ---------------------------------------------------------------------------------------------------------


def is_url(place: str) -> bool:
    """Whether a place is PostgreSQL's, and no folder."""
    return place.startswith(_POSTGRESQL)


def open_database(folder: Path | None, url: str | None, durability: str) -> Database:
    """The database in a folder, or at a ``postgresql://`` URL."""
    if durability not in DURABILITIES:
        raise ValueError(f"durability must be one of {', '.join(DURABILITIES)}, got {durability!r}")
    if url is None:
        assert folder is not None
        return SqliteDatabase(folder, durability)
    if not is_url(url):
        raise ValueError("--store must begin with postgresql://")
    return _postgresql(url, durability)


@contextmanager
def reading(place: str) -> Iterator[Connection]:
    """A connection that reads the log in a folder or at a URL, beside a server that may be writing to it."""
    database = _postgresql(place, "full", prepare=False) if is_url(place) else SqliteDatabase(Path(place), lock=False)
    connection = database.connect()
    try:
        if not connection.execute(connection.has_clock):
            raise FileNotFoundError("there is no log in the database: devdan serve makes one")
        check_format(connection)
        yield connection
    finally:
        connection.close()
        database.close()


class Backup(NamedTuple):
    """Up to where a backup has the log: the number of the last record, and its time (seconds since 1970)."""

    seq: int
    at: float


def back_up(folder: Path, target: Path) -> Backup:
    """Copy the log of a folder as it is at one moment, also beside a server that writes to it; the copy is checked."""
    source = SqliteDatabase(folder, lock=False)
    if (target / FILE).exists():
        raise FileExistsError(f"there is a log in {target} already; name another folder for the backup")
    target.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = target / f"{FILE}.part"
    part.unlink(missing_ok=True)
    _keep_private(part, create=True)
    try:
        copied = _copied(source.path, part)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    with open(part, "rb+") as written:
        os.fsync(written.fileno())
    os.replace(part, target / FILE)
    sync_folder(target)
    return copied


def _copied(path: Path, part: Path) -> Backup:
    """Copy a log into a new file, and check the copy."""
    with (
        _failures(),
        closing(sqlite3.connect(path, timeout=_WAIT)) as log,
        closing(sqlite3.connect(part)) as copy,
    ):
        log.backup(copy)
        ((found,),) = copy.execute("PRAGMA quick_check(1)")
        if found != "ok":
            raise DamagedError(f"the copy of the log is damaged, as the log may be: {found}")
        ((seq, at),) = copy.execute("SELECT seq, at FROM clock")
        copy.execute("PRAGMA journal_mode = DELETE")  # all of it is in the one file
    return Backup(seq, at)


def _postgresql(url: str, durability: str, *, prepare: bool = True) -> Database:
    from devdan.service.postgresql import PostgresqlDatabase  # noqa: PLC0415 (an optional extra)

    return PostgresqlDatabase(url, durability, prepare=prepare)
