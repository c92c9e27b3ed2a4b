"""Files that are written completely or not at all, and file locks."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl


def write_atomically(path: Path, content: bytes) -> None:
    """Write the file atomically: after a crash there is the old file or the new one, never a partial one."""
    with written_atomically(path) as file:
        file.write(content)


@contextmanager
def written_atomically(path: Path) -> Iterator[IO[bytes]]:
    """A file to write to, which replaces the old one when it is complete; after an error, nothing has changed."""
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".part")
    except OSError as error:
        error.filename = str(path)
        raise
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)  # like any file a program writes, not private like a temporary file
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Flush the names in a folder to disk; otherwise a power failure may bring the old file back."""
    if sys.platform == "win32":  # which has no such call
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def lock(file: IO[Any]) -> None:
    """Lock an open file for this process, or raise ``BlockingIOError``; the lock ends with the process."""
    try:
        if sys.platform == "win32":
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except PermissionError as error:
        raise BlockingIOError from error


class FileLock:
    """A lock file that one process holds at a time, and which only its holder may remove."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: IO[Any] | None = None

    def acquire(self) -> None:
        """Take the lock, or raise ``BlockingIOError``; it is released when the process ends."""
        while self._file is None:
            file = open(self.path, "a")  # noqa: SIM115 (held until it is released)
            try:
                lock(file)
                if self._is_there(file):
                    self._file = file
            finally:
                if self._file is None:
                    file.close()

    def _is_there(self, file: IO[Any]) -> bool:
        """Whether the path still names the open file, which its former holder may have removed meanwhile."""
        try:
            return os.path.samestat(os.fstat(file.fileno()), os.stat(self.path))
        except FileNotFoundError:
            return False

    def release(self, *, remove: bool) -> None:
        """Release the lock, if it is held, and perhaps remove its file."""
        if self._file is None:
            return
        if remove and sys.platform != "win32":
            self.path.unlink(missing_ok=True)  # while it is still locked, so that no other process can hold it
        self._file.close()
        self._file = None
        if remove and sys.platform == "win32":
            with suppress(OSError):  # another process may have opened it, and Windows cannot remove an open file
                self.path.unlink()
