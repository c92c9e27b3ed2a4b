"""The one thread that learns: it follows the log, publishes predictors, and takes snapshots.

A stream whose records or model make an unexpected error goes into quarantine: it is not learned any more until an
administrator says so, and predicts from its last model. Streams that another server learns are followed by their
snapshots.
"""

from __future__ import annotations

import copy
import logging
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import msgspec

from devdan.histories.histories import compile_histories
from devdan.service import entities, forgetting, sql
from devdan.service.database import Connection, DamagedError, Database, NotOursError, UnavailableError
from devdan.service.figures import Counts, Refusals
from devdan.service.fold import Fold, latest
from devdan.service.predictor import Predictor
from devdan.service.schema import LoggedForgetting, printable
from devdan.service.sql import StreamFacts
from devdan.service.supervision import Supervisor, disagreement
from devdan.service.writer import WriterThread

_PORTION, _BYTES = 100, 2**20  # records of a stream that are read at a time, and about how many bytes
_SLICE = 0.1  # seconds of learning from them before it is another stream's turn
_PUBLISH = 0.05  # seconds between two predictors, while there is more to learn
_COST = 10  # publishing must take at most a tenth of the time
_COUNTS = 0.25  # seconds between two publications of the counts
_SNAPSHOTS = {False: 20.0, True: 1.0}  # seconds between two snapshots; other servers predict from them
_POLL = 0.25  # seconds between two looks at the log, to which others may write
_ERASE = 1.0  # seconds between two snapshots for what is to be erased
_COMPACT = 20.0  # seconds between two looks for records that are kept no longer
_LONGEST = 500  # characters of a problem

logger = logging.getLogger("devdan.service")


class StreamView(NamedTuple):
    """What the event loop sees of a stream, replaced as a whole."""

    predictor: Predictor
    counts: Counts
    virtual: int  # drifts
    real: int
    n_hidden: int
    snapshot_at: float
    refusals: Refusals = Refusals()
    is_erasing: bool = False  # samples are forgotten that are still on the disk
    n_entities: dict[str, int] | None = None  # by kind, of a stream with histories
    notes: Sequence[str] = ()  # on its histories


class StreamNews(NamedTuple):
    """What the learner publishes of a stream: a view, if there is a newer one, and why it is in quarantine, if so."""

    view: StreamView | None
    problem: str | None
    is_ours: bool  # it is learned by this process


class Lag:
    """For how long a model has not been up to date with its log; told no less than it is, and at most twice as much.

    The model is as of some moment if it has what was the log's last record then. Once it has that, the next such moment
    is noted, so that records that go on coming do not add up.

    >>> lag = Lag()
    >>> lag.begin(10.0)
    >>> lag.advance(1, 10.0, lambda: 5), lag.seconds(12.0)
    (None, 2.0)
    >>> lag.advance(5, 13.0, lambda: 9), lag.seconds(13.0)
    (None, 3.0)
    >>> lag.advance(9, 14.0, lambda: 12), lag.seconds(14.0)
    (None, 1.0)
    """

    def __init__(self) -> None:
        self._since: float | None = None  # the model has all that was there then
        self._next: tuple[float, int] | None = None  # a moment, and the last record that was there

    def begin(self, now: float) -> None:
        """There is a record that the model does not have."""
        if self._since is None:
            self._since = now

    def advance(self, seq: int, now: float, last: Callable[[], int]) -> None:
        """The model has come to a record, and not to the ``last`` one."""
        if self._next is not None and seq >= self._next[1]:
            self._since, self._next = self._next[0], None
        if self._next is None:
            self._next = now, last()

    def end(self) -> None:
        """The model is up to date."""
        self._since = self._next = None

    def seconds(self, now: float) -> float:
        """For how long the model has not been up to date."""
        since = self._since
        return 0.0 if since is None else now - since


class _Followed:
    """A stream that is learned, or followed by its snapshots; ``fold`` is None until it is loaded."""

    def __init__(self, stream: StreamFacts, is_ours: bool, problem: str | None, token: int) -> None:
        self.stream, self.is_ours, self.problem, self.token = stream, is_ours, problem, token
        self.is_told = problem is not None  # the log says that it is in quarantine
        self.fold: Fold | None = None
        self.snapshot_seq, self.snapshot_at, self.snapshot_taken = -1, stream.created, time.monotonic()
        self.snapshot_takes = 0.0  # seconds
        self.compacted_at, self.compacting_takes = time.monotonic(), 0.0
        self.published_seq, self.published_at = -1, 0.0
        self.counts, self.counted_seq, self.counted_at = Counts(), -1, 0.0  # as published
        self.seconds = 0.0  # that publishing takes; a fleet is copied with all its keys
        self.to_erase, self.erased_at, self.erasing_takes = False, 0.0, 0.0  # in seconds
        self.has_no_end = False  # what is known of its entities cannot be loaded

    def load(self, connection: Connection) -> Fold:
        number = self.stream.number
        self.stream = sql.streams(connection, [number])[number]  # it may have columns by now
        self.fold, kept = latest(connection, self.stream)
        self.snapshot_seq, self.snapshot_at = (0, self.stream.created) if kept is None else (kept.seq, kept.at)
        self.counts = self.fold.counts
        self.to_erase = forgetting.n_pending(connection, number) > 0
        return self.fold

    def view(self, fold: Fold) -> StreamView:
        predictor = Predictor(fold.model, fold.columns, fold.seq)
        figures = *fold.drifts, fold.n_hidden, self.snapshot_at, fold.counts.refusals
        histories = fold.histories
        of_histories = (None, ()) if histories is None else (histories.n_entities_, histories.notes_)
        return StreamView(predictor, self.counts, *figures, self.to_erase, *of_histories)


class LearnerThread(threading.Thread):
    """Folds each stream's records; ``publish`` gets what is new of a stream, by the stream's number."""

    def __init__(
        self,
        database: Database,
        writer: WriterThread,
        publish: Callable[[int, StreamNews], None],
        supervisor: Supervisor,
        snapshots: float | None = None,
    ) -> None:
        super().__init__(name="devdan-learner", daemon=True)
        self._snapshots = _SNAPSHOTS[database.is_shared] if snapshots is None else snapshots
        self._compactions = _COMPACT if snapshots is None else snapshots
        self._database, self._writer, self._publish = database, writer, publish
        self._supervisor, self.part = supervisor, supervisor.part("learner")
        self._leases, self._look_at, self._poll_at = database.leases(), 0.0, 0.0
        self._news = threading.Condition()
        self._ends, self._written, self._again = False, set[int](), set[int]()
        self._streams: dict[int, _Followed] = {}
        self.clock_ahead = 0.0  # seconds by which the log or its database is
        self.clock_problem: str | None = None
        self._busy = set[int]()  # those of which there may be more to learn
        self._lags: dict[int, Lag] = {}

    def wake(self, streams: set[int]) -> None:
        """There are new records of these streams."""
        with self._news:
            for stream in streams:
                self._lag(stream).begin(time.monotonic())
            self._written |= streams
            self._news.notify()

    def retry(self, stream: int) -> None:
        """Learn a stream again that was in quarantine."""
        with self._news:
            self._again.add(stream)
            self._written.add(stream)
            self._news.notify()

    def behind(self, stream: int) -> float:
        """For how many seconds the model of a stream has not been up to date with the log."""
        lag = self._lags.get(stream)
        return 0.0 if lag is None else lag.seconds(time.monotonic())

    def _lag(self, stream: int) -> Lag:
        return self._lags.setdefault(stream, Lag())

    def stop(self) -> None:
        """Learn what is there, take snapshots, and end."""
        with self._news:
            self._ends = True
            self._news.notify()
        self.join()

    def run(self) -> None:
        with self._supervisor.guarding(self.part):
            connection = self._database.connect()
            try:
                while True:
                    written, ends = self._wait(0.0 if self._busy else _POLL)
                    try:
                        self._round(connection, written, ends)
                        self.part.goes_on()
                        ends = ends and not self._busy
                        if ends:
                            for number in list(self._streams):
                                self._tried(connection, number, partial(self._save, anyway=True))
                            self._leases.close(connection)
                    except UnavailableError as error:
                        self._look_at = 0.0
                        ends = ends or self._wait(self.part.waits(error), whatever=True)[1]
                    if ends:
                        return
            finally:
                connection.close()

    def _wait(self, seconds: float, whatever: bool = False) -> tuple[set[int], bool]:
        """Wait for work; returns the streams that were written to, and whether to end.

        ``whatever``: do not let news cut the waiting short, and leave them for the next time.
        """
        with self._news:
            if not self._ends and (whatever or not self._written):
                self._news.wait_for(lambda: self._ends or (bool(self._written) and not whatever), seconds)
            if whatever:
                return set(), self._ends
            written, self._written = self._written, set()
            return written, self._ends

    def _round(self, connection: Connection, written: set[int], ends: bool) -> None:
        """Each stream of which there may be more to learn has its turn, and then what is due to be saved."""
        if ends or self._again or not written <= self._streams.keys():
            self._look_at = 0.0
        self._busy |= written
        self._look_if_due(connection)
        if time.monotonic() >= self._poll_at:
            self._busy, self._poll_at = set(self._streams), time.monotonic() + _POLL
        self._busy = {number for number in sorted(self._busy) if self._turn(connection, number, self._advance)}
        for number in list(self._streams):
            self._turn(connection, number, self._save)

    def _turn(self, connection: Connection, number: int, step: Callable[[Connection, _Followed], bool]) -> bool:
        """Do something for a stream; leases are renewed in between, as they do not last for all turns of a round."""
        self._look_if_due(connection)
        self.part.works()
        return number in self._streams and self._tried(connection, number, step)

    def _look_if_due(self, connection: Connection) -> None:
        if time.monotonic() >= self._look_at:
            self._poll_at = 0.0
            self._look(connection)

    def _look(self, connection: Connection) -> None:
        """See which streams there are, which of them are ours, and which are in quarantine."""
        known, problems = sql.streams(connection), sql.quarantined(connection)
        problems |= {number: stream.damage for number, stream in known.items() if stream.damage is not None}
        with self._news:
            again, self._again = self._again, set()
        ours, surplus = self._leases.renew(connection, known)
        for number in surplus & self._streams.keys():
            self._tried(connection, number, partial(self._save, anyway=True))
        self._leases.release(connection, surplus)
        ours -= surplus
        for number in self._streams.keys() - known.keys():
            self._drop(number)
        for number, stream in known.items():
            followed, is_ours, problem = self._streams.get(number), number in ours, problems.get(number)
            token = self._leases.token(number) if is_ours else 0  # another one: others may have learned it meanwhile
            is_released = followed is not None and followed.is_told and problem is None
            is_other = followed is None or (followed.is_ours, followed.token) != (is_ours, token)
            if followed is None or is_other or is_released or number in again:
                self._streams[number] = _Followed(stream, is_ours, problem, token)
            elif (
                problem is not None and problem != followed.problem
            ):  # another server says so, or what it cited is gone
                followed.problem, followed.is_told, followed.fold = problem, True, None
                self._publish(number, StreamNews(None, problem, is_ours))
        self._compare_clocks(connection)
        self._look_at = time.monotonic() + self._leases.seconds

    def _compare_clocks(self, connection: Connection) -> None:
        """Tell if the log or its database has another time than this machine."""
        before, now = self.clock_problem, self._writer.clock.now()
        self.clock_ahead, self.clock_problem = disagreement(*sql.times(connection, now), now)
        if (before is None) != (self.clock_problem is None):
            logger.warning(
                "%s", self.clock_problem or "the log, its database and this machine agree about the time again"
            )

    def _drop(self, number: int) -> None:
        """A stream was deleted."""
        del self._streams[number]
        self._lags.pop(number, None)
        self._writer.run_job(lambda _: self._writer.ends.pop(number, None))

    def _tried(self, connection: Connection, number: int, step: Callable[[Connection, _Followed], bool]) -> bool:
        """Do something for a stream; if it cannot be done, it is this stream's problem alone."""
        followed = self._streams[number]
        try:
            return step(connection, followed)
        except (UnavailableError, DamagedError):
            raise
        except NotOursError:
            self._look_at = 0.0  # follow it from now on
        except Exception as error:
            if number in sql.streams(connection, [number]):
                self._quarantine(connection, followed, error)
            else:
                self._drop(number)
        return False

    # --- Quarantine --------------------------------------------------------------------------------------------------

    def _quarantine(self, connection: Connection, followed: _Followed, error: Exception) -> None:
        name = followed.stream.name
        followed.problem, followed.fold = printable(f"{type(error).__name__}: {error}")[:_LONGEST], None
        try:
            self._tell(followed)
        except NotOursError:
            logger.info("the stream %s is learned by another server by now", name, exc_info=error)
            followed.problem, self._look_at = None, 0.0  # the error may be that it has removed records
            return
        finally:
            if followed.problem is not None:
                logger.error("the stream %s is in quarantine, and not learned any more", name, exc_info=error)
                self._publish(followed.stream.number, StreamNews(None, followed.problem, followed.is_ours))
        if followed.published_seq < 0:
            self._show_last(connection, followed)

    def _tell(self, followed: _Followed) -> None:
        """Have the log say so, so that neither another server nor another process tries it next."""
        if followed.is_ours and not followed.is_told and followed.problem is not None:
            stream, problem = followed.stream.number, followed.problem
            job = partial(sql.put_in_quarantine, stream=stream, problem=problem, leases=self._leases)
            self._writer.run_job(job).result()
            followed.is_told = True

    def _show_last(self, connection: Connection, followed: _Followed) -> None:
        """Predict from the last snapshot; if that is what makes the error, there is nothing to predict from."""
        view = None
        try:
            if followed.stream.damage is None:
                view = followed.view(followed.load(connection))
        except (UnavailableError, DamagedError):
            raise
        except Exception as error:  # told before, perhaps by another server
            logger.warning("the last model of the stream %s cannot be loaded: %s", followed.stream.name, error)
        followed.fold, followed.published_seq = None, max(followed.published_seq, followed.snapshot_seq, 0)
        self._publish(followed.stream.number, StreamNews(view, followed.problem, followed.is_ours))

    # --- Learning and following --------------------------------------------------------------------------------------

    def _advance(self, connection: Connection, followed: _Followed) -> bool:
        """Bring a stream up to date, or nearer to it; returns whether there may be more to do."""
        is_known = followed.stream.settings.history is None or followed.stream.number in self._writer.ends
        if not is_known and not followed.has_no_end and followed.stream.damage is None:
            self._load_end(connection, followed)
        if followed.problem is not None:
            self._lag(followed.stream.number).end()
            self._tell(followed)
            if followed.published_seq < 0:
                self._show_last(connection, followed)
            return False
        return self._learn(connection, followed) if followed.is_ours else self._follow(connection, followed)

    def _load_end(self, connection: Connection, followed: _Followed) -> None:
        """Let the thread that writes know the entities of a stream, as of the model's last record, and from there on.

        Another server may learn the stream, or none if it is in quarantine.
        """
        number = followed.stream.number
        try:
            if followed.is_ours and followed.problem is None:
                fold = followed.fold or followed.load(connection)
                known = copy.deepcopy(fold.histories)
            else:
                fold = latest(connection, sql.streams(connection, [number])[number])[0]
                known = fold.histories
            compile_histories()  # so that no row waits for it
            known = known or entities.new_histories(fold.settings, fold.model)
            end = entities.LogEnd(number, fold.settings, known, fold.columns, fold.seq)
            end.sync(connection)  # here, so that there is little left for which other streams have to wait
        except entities.BehindError:
            return  # some was removed meanwhile: the next time there is a newer snapshot
        except (UnavailableError, DamagedError):
            raise
        except Exception:
            followed.has_no_end = followed.problem is not None
            raise
        self._writer.run_job(lambda _: self._writer.ends.setdefault(number, end)).result()

    def _bring_up(self, number: int, seq: int) -> None:
        """Let the thread that writes take up to a record what other servers have written, before it is erased."""
        end = self._writer.ends.get(number)
        if end is not None and end.seq < seq:
            self._writer.run_job(lambda _: None)

    def _learn(self, connection: Connection, followed: _Followed) -> bool:
        """Learn some records; returns whether there were any. What is published first is up to date with the log."""
        number, fold = followed.stream.number, followed.fold or followed.load(connection)
        records = connection.records(number, fold.seq, _PORTION, _BYTES)
        begin = time.monotonic()
        for record in records:
            if fold.is_due:
                self._snapshot(followed, fold)
            fold.apply(record)
            followed.to_erase |= isinstance(record.body, LoggedForgetting)
            now = time.monotonic()
            if now - followed.published_at > max(_PUBLISH, _COST * followed.seconds) and followed.published_seq >= 0:
                self._show(followed, fold)
            if now - begin > _SLICE:
                break
        self._bring_up(number, fold.seq)
        late = time.monotonic() - followed.published_at > _COST * followed.seconds
        if not records and followed.published_seq != fold.seq and late:
            self._show(followed, fold)
        self._measure(connection, followed, fold.seq, is_behind=bool(records))
        return bool(records)

    def _follow(self, connection: Connection, followed: _Followed) -> bool:
        """Another server learns: predict from its snapshots; before the first one, there is nothing to predict from."""
        number = followed.stream.number
        newest = sql.latest_seq(connection, number)
        if newest == 0 and sql.streams(connection, [number])[number].n_rows > 0:
            self._measure(connection, followed, newest, is_behind=True)
            return False
        if newest != followed.snapshot_seq:
            fold = followed.load(connection)
            self._show(followed, fold)
            followed.fold = None
        last = sql.last_record(connection, number)
        self._bring_up(number, last)
        self._measure(connection, followed, newest, is_behind=last > newest)
        return False

    def _measure(self, connection: Connection, followed: _Followed, seq: int, *, is_behind: bool) -> None:
        """Note how far the model of a stream has come."""
        number, now = followed.stream.number, time.monotonic()
        with self._news:
            lag = self._lag(number)
            if is_behind:
                lag.begin(now)
            elif number not in self._written:
                lag.end()
        if is_behind:
            lag.advance(seq, now, lambda: sql.last_record(connection, number))

    def _show(self, followed: _Followed, fold: Fold) -> None:
        now = time.monotonic()
        if now - followed.counted_at > _COUNTS:
            followed.counts = msgspec.msgpack.decode(msgspec.msgpack.encode(fold.counts), type=Counts)
            followed.counted_at, followed.counted_seq = now, fold.seq
        self._publish(followed.stream.number, StreamNews(followed.view(fold), None, followed.is_ours))
        followed.published_seq, followed.published_at = fold.seq, time.monotonic()
        followed.seconds = followed.published_at - now

    def _save(self, connection: Connection, followed: _Followed, anyway: bool = False) -> bool:
        """Publish counts that were not, and take a snapshot, if that is due."""
        fold, now = followed.fold, time.monotonic()
        if fold is None or not followed.is_ours:
            return False
        is_due = now - followed.counted_at > max(_COUNTS, _COST * followed.seconds)
        if is_due and followed.published_seq >= 0 and not followed.counted_seq == followed.published_seq == fold.seq:
            self._show(followed, fold)  # first, as the log may not take a snapshot at present
        if anyway or now - followed.snapshot_taken > max(self._snapshots, _COST * followed.snapshot_takes):
            self._snapshot(followed, fold)
        if anyway or now - followed.compacted_at > max(self._compactions, _COST * followed.compacting_takes):
            self._compact(connection, followed)
        if followed.to_erase and (anyway or now - followed.erased_at > max(_ERASE, _COST * followed.erasing_takes)):
            self._erase(connection, followed, fold)
        return False

    def _erase(self, connection: Connection, followed: _Followed, fold: Fold) -> None:
        """Remove what was forgotten from the disk: from the snapshot, which is replaced, the records and the WAL."""
        begin, number = time.monotonic(), followed.stream.number
        self._snapshot(followed, fold)
        self._writer.run_job(partial(forgetting.erase, stream=number, leases=self._leases)).result()
        followed.to_erase = not connection.clear_wal() or forgetting.n_pending(connection, number) > 0
        followed.erased_at = time.monotonic()
        followed.erasing_takes = followed.erased_at - begin
        if not followed.to_erase and followed.published_seq >= 0:
            self._show(followed, fold)

    def _snapshot(self, followed: _Followed, fold: Fold) -> None:
        number = followed.stream.number
        followed.snapshot_taken = begin = time.monotonic()
        if fold.seq <= followed.snapshot_seq or not fold.can_be_saved:
            return
        kept = fold.snapshot(self._writer.clock.now())
        self._writer.run_job(partial(sql.keep_snapshot, stream=number, kept=kept, leases=self._leases)).result()
        followed.snapshot_seq, followed.snapshot_at = kept.seq, kept.at
        fold.note_saved(kept)
        followed.snapshot_taken = time.monotonic()
        followed.snapshot_takes = followed.snapshot_taken - begin
        if followed.stream.settings.keyed and followed.published_seq >= 0:
            self._show(followed, fold)  # who predicts reads no snapshot older than the one before

    def _compact(self, connection: Connection, followed: _Followed) -> None:
        """Remove what is kept no longer, also where nothing comes any more."""
        keep, begin = followed.stream.settings.keep, time.monotonic()
        if keep is None:
            return
        after: int | None = 0
        before = sql.served(connection) - keep
        while after is not None:  # little at a time, so that others can write in between
            job = partial(sql.compact, stream=followed.stream.number, before=before, after=after, leases=self._leases)
            after = self._writer.run_job(job).result()
            self.part.works()
        followed.compacted_at = time.monotonic()
        followed.compacting_takes = followed.compacted_at - begin
