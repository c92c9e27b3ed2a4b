"""The one thread that writes: it commits together what has come while the previous commit went to disk.

Labels are committed in small batches, after rows: clients wait for the answers to rows. What cannot be committed is
refused, and the thread continues: an expected fault passes, and an unexpected one is that of a single submission.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Any, NamedTuple, Protocol, TypeVar

from devdan.service import ledger, sql
from devdan.service.database import Connection, DamagedError, Database, UnavailableError
from devdan.service.entities import BehindError, LogEnd
from devdan.service.schema import BusyError, Limits, Submission, SubmissionOutcome, are_alike
from devdan.service.supervision import SteadyClock, Supervisor

Result = TypeVar("Result")

_MOST = 10_000  # rows and labels in one commit
_EXPIRE = 30.0  # seconds between two searches for expired rows in streams without traffic
_PROBE = 10.0  # seconds without a commit after which it is tried whether the log can be written

logger = logging.getLogger("devdan.service")


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
        limits: Limits,
        deliver: Callable[[Callable[[], None]], object],
        wrote: Callable[[set[int]], None],
        supervisor: Supervisor,
    ) -> None:
        super().__init__(name="devdan-writer", daemon=True)
        self._database, self._limits, self._deliver, self._wrote = database, limits, deliver, wrote
        self._supervisor, self.part = supervisor, supervisor.part("writer")
        self._queue: queue.SimpleQueue[_Item | None] = queue.SimpleQueue()
        self._door, self._is_closed = threading.Lock(), False
        self._group: list[_Item] = []  # that is being written
        self.clock = SteadyClock()
        self.queued = 0  # rows and labels that wait to be written; changed only in the thread that makes promises
        self.n_commits = self.n_failures = 0
        self.ends: dict[int, LogEnd] = {}  # of streams with histories; those that lack are loaded by the learner

    def submit(self, submissions: Sequence[Submission], promise: Promise) -> None:
        """Have rows or labels written; the promise is kept when they are on disk.

        If that fails, no row is written, but some of many labels may be; sent again, these are repeated.
        """
        size = sum(len(one.rows) + len(one.labels) for one in submissions)
        if self.queued and self.queued + size > self._limits.queued:
            raise BusyError(f"{self.queued} rows and labels wait to be written already; send them again later")
        self.queued += size
        only_labels = all(not one.rows and one.source is None for one in submissions)
        most = self._database.labels_at_once
        if len(submissions) == 1 and only_labels and size > most and are_alike(submissions[0].labels):
            labels = submissions[0].labels
            parts = [submissions[0]._replace(labels=labels[start : start + most]) for start in range(0, size, most)]
            promise = _InParts(promise, len(parts))
            for part in parts:
                self._put(_Item([part], None, promise, len(part.labels), True))
        else:
            self._put(_Item(submissions, None, promise, size, only_labels))

    def run_job(self, job: Callable[[Connection], Result]) -> Future[Result]:
        """Have something else run, between two commits."""
        promise: Future[Result] = Future()
        promise.set_running_or_notify_cancel()  # it runs even if nobody waits for it any more
        self._put(_Item((), job, promise, 0))
        return promise

    def _put(self, item: _Item) -> None:
        with self._door:
            if not self._is_closed:
                self._queue.put(item)
                return
        self._refuse([item], _gone())

    def stop(self) -> None:
        """Write what has come so far, and end."""
        self._queue.put(None)
        self.join()

    def run(self) -> None:
        with self._supervisor.guarding(self.part):
            self._serve()
        with self._door:
            self._is_closed = True
        left, self._group = self._group, []
        with suppress(queue.Empty):
            while True:
                item = self._queue.get_nowait()
                left += [] if item is None else [item]
        self._refuse(left, _gone())

    def _serve(self) -> None:
        connection = self._database.connect()
        due = time.monotonic() + _EXPIRE
        probe = time.monotonic() + _PROBE
        labels = deque[_Item]()  # not committed yet
        ends = False
        while not ends or labels:
            group: list[_Item] = []
            job: _Item | None = None
            size = 0
            with suppress(queue.Empty):
                while size < _MOST:
                    wait = None if group or labels else max(min(due, probe) - time.monotonic(), 0.0)
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
            self._group = [*group, *labels, *([] if job is None else [job])]  # to be refused if this thread ends
            if group:
                self._commit(connection, group)
            if job is not None and job.job is not None:
                self._run(connection, job.job, job.promise)
            if time.monotonic() >= due:
                self._expire(connection)
                due = time.monotonic() + _EXPIRE
            if self.part.problem is None and group:
                probe = time.monotonic() + _PROBE
            elif time.monotonic() >= probe:
                probe = time.monotonic() + self._probe(connection)
            self._group = []
            self.part.works()
        connection.close()

    def _commit(self, connection: Connection, group: list[_Item]) -> None:
        """Write a group, or refuse it; an unexpected error is told to those whose submissions alone make one."""
        submissions = [one for item in group for one in item.submissions]
        try:
            outcomes = ledger.commit(connection, submissions, self.clock.now(), self._limits, self.ends)
        except DamagedError:
            raise
        except UnavailableError as error:
            self.part.waits(error)
            self.n_failures += 1
            self._refuse(group, error)
        except Exception as error:
            if len(group) > 1:
                for item in group:
                    self._commit(connection, [item])
                return
            self.n_failures += 1
            self._refuse(group, error)
        else:
            self.part.goes_on()
            self.n_commits += 1
            self._deliver(partial(self._keep_promises, group, outcomes))
            written = {one.stream for one in submissions}
            self._wrote(written)
            self._sync(connection, written)

    def _keep_promises(self, group: list[_Item], outcomes: list[SubmissionOutcome]) -> None:
        self.queued -= sum(item.size for item in group)
        decided = iter(outcomes)
        for item in group:
            own = list(islice(decided, len(item.submissions)))
            if not item.promise.done():
                item.promise.set_result(own)

    def _refuse(self, items: list[_Item], error: Exception) -> None:
        """Break the promises, each in the thread that waits for it."""

        def refuse(some: list[_Item]) -> None:
            self.queued -= sum(item.size for item in some)
            for item in some:
                if not item.promise.done():
                    item.promise.set_exception(error)

        refuse([item for item in items if item.job is not None])
        self._deliver(partial(refuse, [item for item in items if item.job is None]))

    def _sync(self, connection: Connection, streams: Collection[int]) -> None:
        """Bring what is known of entities up to date with labels, so that the next rows need not wait for that."""
        for number in [number for number in streams if number in self.ends]:
            try:
                self.ends[number].sync(connection)
            except DamagedError:
                raise
            except UnavailableError:  # the next transaction tries it again
                return
            except BehindError:
                self.ends.pop(number, None)
            except Exception:
                logger.exception("what is known of the entities of stream %s is loaded again", number)
                self.ends.pop(number, None)

    def _run(self, connection: Connection, job: Callable[[Connection], Any], promise: Promise) -> None:
        self._sync(connection, list(self.ends))  # before a job that may remove some of what it needs
        try:
            result = job(connection)
        except Exception as failure:
            if isinstance(failure, UnavailableError):
                self.part.waits(failure)
            promise.set_exception(failure)
            if isinstance(failure, DamagedError):
                raise
        else:
            promise.set_result(result)

    def _probe(self, connection: Connection) -> float:
        """Try whether the log can be written; returns the seconds until that should be tried again."""
        try:
            sql.probe(connection, self.clock.now())
        except UnavailableError as error:
            return self.part.waits(error)
        self.part.goes_on()
        return _PROBE

    def _expire(self, connection: Connection) -> None:
        """Evict what has waited for too long, stream by stream: what fails for one does not keep the others."""
        with suppress(UnavailableError):  # it is retried
            for number, stream in sql.streams(connection).items():
                try:
                    ledger.expire(connection, number, self.clock.now(), self.ends)
                except (UnavailableError, DamagedError):
                    raise
                except Exception:
                    logger.exception("rows of the stream %s cannot be evicted", stream.name)


def _gone() -> UnavailableError:
    return UnavailableError("the thread that writes has ended")
