"""The one thread that learns: it follows the log, publishes predictors, and keeps snapshots."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from devdan.service import register, snapshots
from devdan.service.database import Connection, Database, UnavailableError
from devdan.service.fold import Fold, GapError
from devdan.service.predictor import Predictor
from devdan.service.register import Facts
from devdan.service.snapshots import Snapshot
from devdan.service.tally import Tally
from devdan.service.writer import Writer

_PORTION = 100  # records of a stream before it is another's turn
_PUBLISH = 0.05  # seconds after which the predictor is renewed, while there is more to learn
_COST = 10  # times as long as publishing takes, there is none
_COUNTS = 0.25  # seconds after which the counts are
_SNAPSHOT = {False: 20.0, True: 1.0}  # seconds; other servers predict from snapshots
_POLL = 0.25  # seconds after which the log is looked at, to which others may write

logger = logging.getLogger("devdan.service")


class Published(NamedTuple):
    """What the event loop sees of a stream, replaced as a whole."""

    predictor: Predictor
    tally: Tally
    virtual: int  # drifts
    real: int
    n_hidden: int
    snapshot_at: float


class _Following:
    """A stream that is being learned."""

    def __init__(self, stream: Facts, fold: Fold, snapshot_seq: int, snapshot_at: float) -> None:
        self.stream, self.fold = stream, fold
        self.snapshot_seq, self.snapshot_at = snapshot_seq, snapshot_at
        self.published_seq, self.published_at, self.counted_at = -1, 0.0, 0.0
        self.tally, self.counted_seq = Tally(), -1
        self.seconds = 0.0  # that publishing takes: a fleet is copied with all its keys


class Learner(threading.Thread):
    """Folds each stream's records; ``publish`` gets what is new, by the stream's number."""

    def __init__(self, database: Database, writer: Writer, publish: Callable[[int, Published], None]) -> None:
        super().__init__(name="devdan-learner", daemon=True)
        self._database, self._writer, self._publish = database, writer, publish
        self._news = threading.Condition()
        self._ends, self._written = False, set[int]()
        self._streams: dict[int, _Following] = {}
        self.is_learning = False  # or another server is
        self.problem: str | None = None  # why it has stopped

    def wake(self, streams: set[int]) -> None:
        """There is something new in the log."""
        with self._news:
            self._written |= streams
            self._news.notify()

    def stop(self) -> None:
        """Learn what is there, keep snapshots, and end."""
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
        """Until there is something to do; returns the streams that were written to, None for any."""
        with self._news:
            if not self._written and not self._ends:
                self._news.wait(_POLL)
            written, self._written = self._written, set()
            return None if self._ends or not written else written, self._ends

    def _turn(self, connection: Connection, written: set[int] | None) -> None:
        was, self.is_learning = self.is_learning, self._database.may_learn()
        if was != self.is_learning:
            self._streams.clear()  # another has learned meanwhile, or will
        if not self.is_learning:
            self._follow(connection)
            return
        if written is None or not written <= self._streams.keys():
            known = register.facts(connection)
            for gone in self._streams.keys() - known.keys():
                del self._streams[gone]
            for number in known.keys() - self._streams.keys():
                self._streams[number] = _restored(connection, known[number])
            written = set(known)
        busy = written & self._streams.keys()
        while busy:
            busy = {number for number in sorted(busy) if self._learn_if_there(connection, number)}
        now = time.time()
        for following in self._streams.values():
            if self._ends or now - following.snapshot_at > _SNAPSHOT[self._database.is_shared]:
                self._snapshot(following)
            is_due = time.monotonic() - following.counted_at > max(_COUNTS, _COST * following.seconds)
            if is_due and not following.counted_seq == following.published_seq == following.fold.seq:
                self._show(following)

    def _learn_if_there(self, connection: Connection, number: int) -> bool:
        """The same, unless the stream is deleted meanwhile."""
        try:
            return self._learn(connection, self._streams[number])
        except GapError:
            if number in register.facts(connection, [number]):
                raise
            del self._streams[number]
            return False

    def _learn(self, connection: Connection, following: _Following) -> bool:
        """Take some records; returns whether there may be more."""
        fold = following.fold
        records = connection.records(following.stream.number, fold.seq, _PORTION)
        for record in records:
            fold.apply(record)
            if time.monotonic() - following.published_at > max(_PUBLISH, _COST * following.seconds):
                self._show(following)
        more = len(records) == _PORTION
        late = time.monotonic() - following.published_at > _COST * following.seconds
        if not more and following.published_seq != fold.seq and late:
            self._show(following)
        return more

    def _show(self, following: _Following) -> None:
        fold, now = following.fold, time.monotonic()
        if now - following.counted_at > _COUNTS:
            following.tally = msgspec.msgpack.decode(msgspec.msgpack.encode(fold.tally), type=Tally)
            following.counted_at, following.counted_seq = now, fold.seq
        self._publish(following.stream.number, _published(fold, following.tally, following.snapshot_at))
        following.published_seq, following.published_at = fold.seq, time.monotonic()
        following.seconds = following.published_at - now

    def _snapshot(self, following: _Following) -> None:
        fold, stream = following.fold, following.stream
        if fold.seq > following.snapshot_seq:
            now = time.time()
            kept = Snapshot(fold.seq, now, *fold.content())
            self._writer.run_job(lambda connection: snapshots.keep(connection, stream.number, kept)).result()
            following.snapshot_seq, following.snapshot_at = fold.seq, now
            if stream.settings.keep is not None:
                before = now - stream.settings.keep
                while self._writer.run_job(
                    lambda connection: snapshots.compact(connection, stream.number, kept, before)
                ).result():
                    pass  # a part at a time, so that what comes meanwhile is written in between

    def _follow(self, connection: Connection) -> None:
        """Another server learns: predict from its snapshots."""
        for number, stream in register.facts(connection).items():
            before = self._streams.get(number)
            if before is None or before.snapshot_seq != snapshots.latest_seq(connection, number):
                self._streams[number] = following = _restored(connection, stream)
                self._publish(number, _published(following.fold, following.fold.tally, following.snapshot_at))


def _restored(connection: Connection, stream: Facts) -> _Following:
    fold, kept = snapshots.latest(connection, stream)
    seq, at = (0, stream.created) if kept is None else (kept.seq, kept.at)
    return _Following(stream, fold, seq, at)


def _published(fold: Fold, tally: Tally, snapshot_at: float) -> Published:
    return Published(Predictor(fold.model, fold.columns, fold.seq), tally, *fold.drifts, fold.n_hidden, snapshot_at)
