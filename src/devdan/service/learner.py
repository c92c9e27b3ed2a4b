"""The one thread that learns: it follows the log, publishes predictors, and takes snapshots."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, cast

import msgspec

from devdan.service import sql
from devdan.service.counts import Counts
from devdan.service.fold import GapError, latest
from devdan.service.predictor import Predictor
from devdan.service.sql import Connection, Database, StreamFacts, UnavailableError
from devdan.service.writer import WriterThread

_PORTION = 100  # records of a stream before it is another's turn
_PUBLISH = 0.05  # seconds between two predictors, while there is more to learn
_COST = 10  # publishing must take at most a tenth of the time
_COUNTS = 0.25  # seconds between two publications of the counts
_SNAPSHOTS = {False: 20.0, True: 1.0}  # seconds between two snapshots; other servers predict from them
_POLL = 0.25  # seconds between two looks at the log, to which others may write

logger = logging.getLogger("devdan.service")


class StreamView(NamedTuple):
    """What the event loop sees of a stream, replaced as a whole."""

    predictor: Predictor
    counts: Counts
    virtual: int  # drifts
    real: int
    n_hidden: int
    snapshot_at: float


class _Followed:
    """A stream that is being learned, or followed by its snapshots."""

    def __init__(self, connection: Connection, stream: StreamFacts) -> None:
        self.stream = stream
        self.fold, kept = latest(connection, stream)
        self.snapshot_seq, self.snapshot_at = (0, stream.created) if kept is None else (kept.seq, kept.at)
        self.published_seq, self.published_at = -1, 0.0
        self.counts, self.counted_seq, self.counted_at = self.fold.counts, -1, 0.0  # as published
        self.seconds = 0.0  # that publishing takes; a fleet is copied with all its keys

    def view(self) -> StreamView:
        fold = self.fold
        predictor = Predictor(fold.model, fold.columns, fold.seq)
        return StreamView(predictor, self.counts, *fold.drifts, fold.n_hidden, self.snapshot_at)


class LearnerThread(threading.Thread):
    """Folds each stream's records; ``publish`` gets a new view, by the stream's number."""

    def __init__(
        self,
        database: Database,
        writer: WriterThread,
        publish: Callable[[int, StreamView], None],
        snapshots: float | None = None,
    ) -> None:
        super().__init__(name="devdan-learner", daemon=True)
        self._snapshots = _SNAPSHOTS[database.is_shared] if snapshots is None else snapshots
        self._database, self._writer, self._publish = database, writer, publish
        self._news = threading.Condition()
        self._ends, self._written = False, set[int]()
        self._streams: dict[int, _Followed] = {}
        self.is_learning = False  # or another server is
        self.problem: str | None = None  # why it has stopped

    def wake(self, streams: set[int]) -> None:
        """There are new records of these streams."""
        with self._news:
            self._written |= streams
            self._news.notify()

    def stop(self) -> None:
        """Learn what is there, take snapshots, and end."""
        with self._news:
            self._ends = True
            self._news.notify()
        self.join()

    def run(self) -> None:
        connection = self._database.connect()
        try:
            while True:
                written, ends = self._wait()
                try:
                    self._turn(connection, written)
                except UnavailableError as error:
                    logger.warning("learning waits: %s", error)
                    ends = ends or self._wait()[1]
                if ends:
                    return
        except Exception as error:
            self.problem = f"{type(error).__name__}: {error}"
            logger.exception("learning has stopped; predictions go on from the latest model")
        finally:
            connection.close()

    def _wait(self) -> tuple[set[int] | None, bool]:
        """Wait for work; returns the streams that were written to, None for any, and whether to end."""
        with self._news:
            if not self._written and not self._ends:
                self._news.wait(_POLL)
            written, self._written = self._written, set()
            return None if self._ends or not written else written, self._ends

    def _turn(self, connection: Connection, written: set[int] | None) -> None:
        was, self.is_learning = self.is_learning, self._database.may_learn()
        if was != self.is_learning:
            self._streams.clear()  # another server has learned meanwhile, or will
        if not self.is_learning:
            self._follow(connection)
            return
        if written is None or not written <= self._streams.keys():
            known = sql.streams(connection)
            for gone in self._streams.keys() - known.keys():
                del self._streams[gone]
            for number in known.keys() - self._streams.keys():
                self._streams[number] = _Followed(connection, known[number])
            written = set(known)
        busy = written & self._streams.keys()
        while busy:
            busy = {number for number in sorted(busy) if self._learn_if_there(connection, number)}
        now = time.time()
        for followed in self._streams.values():
            if self._ends or now - followed.snapshot_at > self._snapshots:
                self._snapshot(followed)
            is_due = time.monotonic() - followed.counted_at > max(_COUNTS, _COST * followed.seconds)
            if is_due and not followed.counted_seq == followed.published_seq == followed.fold.seq:
                self._show(followed)

    def _learn_if_there(self, connection: Connection, number: int) -> bool:
        """Like :meth:`_learn`, unless the stream is deleted meanwhile."""
        try:
            return self._learn(connection, self._streams[number])
        except GapError:
            if number in sql.streams(connection, [number]):
                raise
            del self._streams[number]
            return False

    def _learn(self, connection: Connection, followed: _Followed) -> bool:
        """Learn some records; returns whether there may be more."""
        fold = followed.fold
        records = connection.records(followed.stream.number, fold.seq, _PORTION)
        for record in records:
            fold.apply(record)
            if time.monotonic() - followed.published_at > max(_PUBLISH, _COST * followed.seconds):
                self._show(followed)
        more = len(records) == _PORTION
        late = time.monotonic() - followed.published_at > _COST * followed.seconds
        if not more and followed.published_seq != fold.seq and late:
            self._show(followed)
        return more

    def _show(self, followed: _Followed) -> None:
        fold, now = followed.fold, time.monotonic()
        if now - followed.counted_at > _COUNTS:
            followed.counts = msgspec.msgpack.decode(msgspec.msgpack.encode(fold.counts), type=Counts)
            followed.counted_at, followed.counted_seq = now, fold.seq
        self._publish(followed.stream.number, followed.view())
        followed.published_seq, followed.published_at = fold.seq, time.monotonic()
        followed.seconds = followed.published_at - now

    def _snapshot(self, followed: _Followed) -> None:
        fold, stream = followed.fold, followed.stream
        if fold.seq > followed.snapshot_seq:
            kept = fold.snapshot(time.time())
            self._writer.run_job(lambda connection: sql.keep_snapshot(connection, stream.number, kept)).result()
            followed.snapshot_seq, followed.snapshot_at = kept.seq, kept.at
            if stream.settings.keep is not None:
                before, after = kept.at - stream.settings.keep, cast("int | None", 0)
                while after is not None:  # little at a time, so that others can write in between
                    after = self._writer.run_job(
                        partial(sql.compact, stream=stream.number, before=before, after=after)
                    ).result()

    def _follow(self, connection: Connection) -> None:
        """Another server learns: predict from its snapshots."""
        for number, stream in sql.streams(connection).items():
            before = self._streams.get(number)
            if before is None or before.snapshot_seq != sql.latest_seq(connection, number):
                self._streams[number] = followed = _Followed(connection, stream)
                self._publish(number, followed.view())
