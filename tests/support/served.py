"""A service to ask: in a thread of this process, or in a process of its own that can be killed."""

import os
import re
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager

import httpx

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

    def __init__(self, *arguments, **environment):
        command = [sys.executable, "-m", "devdan", "serve", "--port", "0", *map(str, arguments)]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ | environment)
        said = ""
        while not (found := re.search(r"Serving on (https?)://[^:]*:(\d+)", said)):
            line = self.process.stderr.readline()
            assert line, f"it has ended: {said}"
            said += line
        self.port = int(found[2])
        self.url = f"{found[1]}://127.0.0.1:{self.port}"
        self._reader = threading.Thread(target=self.process.stderr.read)  # so that it can go on writing
        self._reader.start()

    def kill(self):
        """As a power switch would, but for the disk's cache."""
        self.process.kill()
        self._ended()

    def stop(self):
        """As Ctrl-C would."""
        self.process.send_signal(signal.SIGINT)
        return self._ended()

    def _ended(self):
        self._reader.join()
        self.process.stderr.close()
        return self.process.wait()


def until(http, path, holds):
    """Ask until something holds; the test's own time limit ends what never does."""
    while not holds(answer := http.get(path).json()):
        pass
    return answer


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
