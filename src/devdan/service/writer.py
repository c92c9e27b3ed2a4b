"""The one thread that writes: it commits together whatever has come while the commit before went to the disk."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from itertools import islice
from typing import Any, NamedTuple, Protocol, TypeVar

from devdan.service import ledger
from devdan.service.database import Connection, Database, UnavailableError
from devdan.service.ledger import Outcome, Submission

Result = TypeVar("Result")

_MOST = 10_000  # rows and labels in one commit
_EXPIRE = 30.0  # seconds after which streams without traffic are looked after


class BusyError(RuntimeError):
    """More is waiting to be written than is allowed."""


class Promise(Protocol):
    """A future of asyncio or of threads."""

    def done(self) -> bool:
        """Whether nobody waits for it any more."""

    def set_result(self, result: Any, /) -> None:
        """Tell what came of it."""

    def set_exception(self, error: BaseException, /) -> None:
        """Tell what went wrong."""


class _Item(NamedTuple):
    submissions: Sequence[Submission]
    job: Callable[[Connection], Any] | None
    promise: Promise
    size: int


class Writer(threading.Thread):
    """Takes submissions, and jobs that write something else, in the order in which they come.

    What came of a submission is told through ``deliver``, which runs a function where the promises were made;
    ``wrote`` is called with the streams that were written to.
    """

    def __init__(
        self,
        database: Database,
        most_queued: int,
        deliver: Callable[[Callable[[], None]], object],
        wrote: Callable[[set[int]], None],
    ) -> None:
        super().__init__(name="devdan-writer", daemon=True)
        self._database, self._most_queued, self._deliver, self._wrote = database, most_queued, deliver, wrote
        self._queue: queue.SimpleQueue[_Item | None] = queue.SimpleQueue()
        self.queued = 0  # rows and labels that wait to be written; changed only where promises are made
        self.n_commits = self.n_failures = 0

    def submit(self, submissions: Sequence[Submission], promise: Promise) -> None:
        """Have rows or labels written, all of them or none; the promise is kept when they are on disk."""
        size = sum(len(one.rows) + len(one.labels) for one in submissions)
        if self.queued and self.queued + size > self._most_queued:
            raise BusyError(f"{self.queued} rows and labels wait to be written already; send them again later")
        self.queued += size
        self._queue.put(_Item(submissions, None, promise, size))

    def run_job(self, job: Callable[[Connection], Result]) -> Future[Result]:
        """Have something else written, between two commits."""
        promise: Future[Result] = Future()
        self._queue.put(_Item((), job, promise, 0))
        return promise

    def stop(self) -> None:
        """End after what has come so far."""
        self._queue.put(None)
        self.join()

    def run(self) -> None:
        connection = self._database.connect()
        due = time.monotonic() + _EXPIRE
        ends = False
        while not ends:
            group: list[_Item] = []
            next_: _Item | None = None
            try:
                next_ = self._queue.get(timeout=max(due - time.monotonic(), 0.0))
                while next_ is not None and next_.job is None:
                    group.append(next_)
                    next_ = None
                    if sum(one.size for one in group) >= _MOST:
                        break
                    next_ = self._queue.get_nowait()
                else:
                    ends = next_ is None
            except queue.Empty:
                pass
            if group:
                self._commit(connection, group)
            if next_ is not None and next_.job is not None:
                self._run(connection, next_.job, next_.promise)
            if time.monotonic() >= due:
                self._expire(connection)
                due = time.monotonic() + _EXPIRE
        connection.close()

    def _commit(self, connection: Connection, group: list[_Item]) -> None:
        submissions = [one for item in group for one in item.submissions]
        outcomes: list[Outcome] = []
        error: Exception | None = None
        try:
            outcomes = ledger.commit(connection, submissions, time.time())
            self.n_commits += 1
        except Exception as failure:  # whoever asked is told; the next group may succeed
            error = failure
            self.n_failures += 1

        def tell() -> None:
            self.queued -= sum(item.size for item in group)
            decided = iter(outcomes)
            for item in group:
                own = list(islice(decided, len(item.submissions)))
                if item.promise.done():
                    continue
                if error is not None:
                    item.promise.set_exception(error)
                else:
                    item.promise.set_result(own)

        self._deliver(tell)
        if error is None:
            self._wrote({one.stream for one in submissions})

    def _run(self, connection: Connection, job: Callable[[Connection], Any], promise: Promise) -> None:
        try:
            result = job(connection)
        except Exception as failure:
            promise.set_exception(failure)
        else:
            promise.set_result(result)

    def _expire(self, connection: Connection) -> None:
        with suppress(UnavailableError):  # it is tried again
            ledger.expire(connection, time.time())
