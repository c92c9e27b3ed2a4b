"""Files that are there as a whole or not at all, and that one process has at a time."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import IO, Any

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl


def write_atomically(path: Path, content: bytes) -> None:
    """Write the file in one go: after a crash there is the old file or the new one, never a part."""
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".part")
    except OSError as error:
        error.filename = str(path)
        raise
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)  # as any file that a program writes, not private as a temporary one
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def lock(file: IO[Any]) -> None:
    """Have an open file for this process alone, or raise ``BlockingIOError``; it is let go of when the process ends."""
    try:
        if sys.platform == "win32":
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except PermissionError as error:
        raise BlockingIOError from error
