"""A service to ask: in a thread of this process, or in a process of its own that can be killed."""

import re
import signal
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
from processes import Started

from devdan.service import server
from devdan.service.replay import found, records
from devdan.service.store import SqliteDatabase

SECONDS = 60.0  # for an answer, on a busy machine


@contextmanager
def served_here(folder, *, database=None, durability="off", **options):
    """A client of a service in this process; ``client.application`` is the service itself."""
    application = server.application(database or SqliteDatabase(folder, durability), **options)
    ready, ports = threading.Event(), []

    def begin(port):
        ports.append(port)
        ready.set()

    made = server.server(application, "127.0.0.1", 0, ready=begin)
    thread = threading.Thread(target=made.run)
    thread.start()
    while not ready.wait(0.1):
        assert thread.is_alive(), "the server has ended"
    with httpx.Client(base_url=f"http://127.0.0.1:{ports[0]}", timeout=SECONDS) as client:
        client.application, client.server, client.port = application, made, ports[0]
        try:
            yield client
        finally:
            made.should_exit = True
            application.engine.end_listening()
            thread.join()


class Process:
    """``devdan serve`` in a process of its own."""

    def __init__(self, *arguments):
        self._folder = TemporaryDirectory()
        self._started = Started("serve", "--port", "0", *arguments, folder=self._folder.name)
        said = Path(self._folder.name, ".stderr")
        serving = re.compile(r"Serving on (https?)://[^:]*:(\d+)")
        self._started.wait_until(lambda: said.exists() and serving.search(said.read_text()))
        found = serving.search(said.read_text())
        assert found, f"it has ended: {said.read_text()}"
        self.port = int(found[2])
        self.url = f"{found[1]}://127.0.0.1:{self.port}"

    def memory(self):
        """The bytes of it that are in memory."""
        status = Path(f"/proc/{self._started.pid}/status").read_text()
        return 1024 * int(re.search(r"VmRSS:\s+(\d+)", status)[1])

    def kill(self):
        """As a power switch would, but for the disk's cache."""
        self._started.kill()
        self._folder.cleanup()

    def ended(self):
        """Wait until it ends by itself; returns its exit code, and what it said."""
        code, _, said = self._started.wait()
        self._folder.cleanup()
        return code, said

    def stop(self):
        """As Ctrl-C would; returns its exit code."""
        self._started.send(signal.SIGINT)
        code, _, _ = self._started.wait()
        self._folder.cleanup()
        return code


def wait_until(condition):
    """Ask until there is something, and return it; the test's own time limit ends what never comes."""
    while not (found := condition()):
        time.sleep(0.01)
    return found


def until(http, path, holds):
    """Ask for a path until something holds of the answer, and return it."""
    return wait_until(lambda: [answer for answer in [http.get(path).json()] if holds(answer)])[0]


def limit(http, pages):
    """Let SQLite believe that the disk has room for so many pages: the same error as that of a full disk."""

    def job(connection):
        ((now,),) = connection.execute("PRAGMA page_count")
        connection.execute(f"PRAGMA max_page_count = {pages(now)}")

    http.application.engine.writer.run_job(job).result()


def metric(http, name):
    """The sum of a metric over its labels."""
    found = re.findall(rf"^{name}(?:{{[^}}]*}})? (\S+)$", http.get("/metrics").text, re.MULTILINE)
    return sum(map(float, found))


def logged(database):
    """The records of the stream s."""
    connection = database.connect()
    (stream,) = found(connection, "s")
    kept = list(records(connection, stream, 0))
    connection.close()
    return kept
