"""The one thread that writes: it commits together what has come while the previous commit went to disk.

Labels are committed in small batches, after rows: clients wait for the answers to rows.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from itertools import islice
from typing import Any, NamedTuple, Protocol, TypeVar

from devdan.service import ledger
from devdan.service.schema import Submission, SubmissionOutcome, are_alike
from devdan.service.sql import Connection, Database, UnavailableError

Result = TypeVar("Result")

_MOST = 10_000  # rows and labels in one commit
_EXPIRE = 30.0  # seconds between two searches for expired rows in streams without traffic


class BusyError(RuntimeError):
    """Too much is waiting already; the message says of what."""


class Promise(Protocol):
    """A future of asyncio or of threads."""

    def done(self) -> bool:
        """Whether it has a result, or nobody waits for it any more."""

    def set_result(self, result: Any, /) -> None:
        """Keep it."""

    def set_exception(self, error: BaseException, /) -> None:
        """Break it."""


class _Item(NamedTuple):
    submissions: Sequence[Submission]
    job: Callable[[Connection], Any] | None
    promise: Promise
    size: int
    only_labels: bool = False


class _InParts:
    """The promise for a submission in parts: kept when all of them are on disk."""

    def __init__(self, promise: Promise, n_parts: int) -> None:
        self._promise, self._left, self._outcome = promise, n_parts, SubmissionOutcome()

    def done(self) -> bool:
        return self._promise.done()

    def set_result(self, result: list[SubmissionOutcome], /) -> None:
        self._left -= 1
        self._outcome = self._outcome.and_then(result[0])
        if self._left == 0:
            self._promise.set_result([self._outcome])

    def set_exception(self, error: BaseException, /) -> None:
        self._promise.set_exception(error)


class WriterThread(threading.Thread):
    """Takes submissions, and jobs that write something else, in the order in which they come; labels after rows.

    Promises are kept through ``deliver``, which runs a function in the thread that made them. ``wrote`` is called with
    the streams that were written to.
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
        self.queued = 0  # rows and labels that wait to be written; changed only in the thread that makes promises
        self.n_commits = self.n_failures = 0

    def submit(self, submissions: Sequence[Submission], promise: Promise) -> None:
        """Have rows or labels written; the promise is kept when they are on disk.

        If that fails, no row is written, but some of many labels may be; sent again, these are repeated.
        """
        size = sum(len(one.rows) + len(one.labels) for one in submissions)
        if self.queued and self.queued + size > self._most_queued:
            raise BusyError(f"{self.queued} rows and labels wait to be written already; send them again later")
        self.queued += size
        only_labels = all(not one.rows and one.source is None for one in submissions)
        most = self._database.labels_at_once
        if len(submissions) == 1 and only_labels and size > most and are_alike(submissions[0].labels):
            stream, _, labels, _ = submissions[0]
            parts = [labels[start : start + most] for start in range(0, size, most)]
            promise = _InParts(promise, len(parts))
            for part in parts:
                self._queue.put(_Item([Submission(stream, labels=part)], None, promise, len(part), True))
        else:
            self._queue.put(_Item(submissions, None, promise, size, only_labels))

    def run_job(self, job: Callable[[Connection], Result]) -> Future[Result]:
        """Have something else run, between two commits."""
        promise: Future[Result] = Future()
        self._queue.put(_Item((), job, promise, 0))
        return promise

    def stop(self) -> None:
        """Write what has come so far, and end."""
        self._queue.put(None)
        self.join()

    def run(self) -> None:
        connection = self._database.connect()
        due = time.monotonic() + _EXPIRE
        labels = deque[_Item]()  # not committed yet
        ends = False
        while not ends or labels:
            group: list[_Item] = []
            job: _Item | None = None
            size = 0
            with suppress(queue.Empty):
                while size < _MOST:
                    wait = None if group or labels else max(due - time.monotonic(), 0.0)
                    item = self._queue.get_nowait() if wait is None else self._queue.get(timeout=wait)
                    if item is None or item.job is not None:
                        ends, job = ends or item is None, item
                        break
                    (labels if item.only_labels else group).append(item)
                    size += item.size
            size = 0
            while labels and size < self._database.labels_at_once:
                group.append(labels.popleft())
                size += group[-1].size
            if group:
                self._commit(connection, group)
            if job is not None and job.job is not None:
                self._run(connection, job.job, job.promise)
            if time.monotonic() >= due:
                self._expire(connection)
                due = time.monotonic() + _EXPIRE
        connection.close()

    def _commit(self, connection: Connection, group: list[_Item]) -> None:
        submissions = [one for item in group for one in item.submissions]
        outcomes: list[SubmissionOutcome] = []
        error: Exception | None = None
        try:
            outcomes = ledger.commit(connection, submissions, time.time())
            self.n_commits += 1
        except Exception as failure:  # the promises are broken; the next group may succeed
            error = failure
            self.n_failures += 1

        def keep_promises() -> None:
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

        self._deliver(keep_promises)
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
        with suppress(UnavailableError):  # it is retried
            ledger.expire(connection, time.time())
