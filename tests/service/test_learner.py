"""The thread that learns: streams have their turns, leases last, and what it says about itself is true.

Its clock goes on by a second whenever a record is learned, so that whatever is slow is slow in the same way each time.
"""

import time
from concurrent.futures import Future
from itertools import pairwise
from types import SimpleNamespace

import pytest

from devdan.service import forgetting, learner, ledger, sql
from devdan.service.database import Leases, NotOursError
from devdan.service.fold import Fold
from devdan.service.learner import LearnerThread
from devdan.service.replay import replayed
from devdan.service.row_cache import GapError
from devdan.service.schema import Limits, StreamSettings, Submission, SubmittedRow
from devdan.service.store import SqliteDatabase
from devdan.service.supervision import SteadyClock, Supervisor
from devdan.service.writer import WriterThread


class Service:
    """A writer and a learner, which learns when it is told to, by a clock that its work moves."""

    def __init__(self, folder, monkeypatch):
        self.now, self.events, self.learned = 1000.0, [], lambda record: None
        self.database, self.supervisor = SqliteDatabase(folder, "off"), Supervisor()
        monkeypatch.setattr(learner, "time", SimpleNamespace(monotonic=lambda: self.now))
        apply, keep = Fold.apply, sql.keep_snapshot

        def slow(fold, record):
            apply(fold, record)
            self.now += 1.0
            self.events.append((self.now, "learned", record.stream, record.seq))
            self.learned(record)

        def kept(connection, stream, kept, leases):
            keep(connection, stream, kept, leases)
            self.events.append((self.now, "snapshot", stream, kept.seq))

        monkeypatch.setattr(Fold, "apply", slow)
        monkeypatch.setattr(sql, "keep_snapshot", kept)
        self.writer = WriterThread(self.database, Limits(), lambda tell: tell(), self.wake, self.supervisor)
        self.thread = self.learner()
        self.writer.start()
        self.connection = self.database.connect()

    def wake(self, streams):
        self.thread.wake(streams)

    def learner(self, leases=None, publish=lambda *news: None, **options):
        database = SimpleNamespace(
            connect=self.database.connect, leases=lambda: leases or Renewed(self), is_shared=False
        )
        return LearnerThread(database, self.writer, publish, self.supervisor, **options)

    def stream(self, name, **settings):
        made = StreamSettings(**{"columns": ["x"]} | settings)

        def make(connection):
            with connection.transaction():
                return sql.create_stream(connection, name, made, 0.0).number

        return self.writer.run_job(make).result()

    def write(self, stream, *ids, label=None):
        """Rows, or with a label those of rows, in a record of their own; the learner knows of it."""
        promise = Future()
        rows = [SubmittedRow(id_, {"x": 1.0}) for id_ in ids]
        labels = [(id_, label) for id_ in ids]
        self.writer.submit([Submission(stream, rows) if label is None else Submission(stream, labels=labels)], promise)
        (outcome,) = promise.result()
        self.writer.run_job(lambda connection: None).result()
        return outcome

    def backlog(self, stream, n):
        for k in range(n):
            ledger.commit(self.connection, [Submission(stream, [SubmittedRow(f"r{k}", {"x": float(k)})])], float(k))

    def told(self, what, stream):
        return [(now, seq) for now, kind, own, seq in self.events if (kind, own) == (what, stream)]

    def check_learned(self, stream):
        """Up to the last record, and what a replay gives."""
        ((_, seq), *_) = reversed(self.told("learned", stream))
        assert seq == sql.last_record(self.connection, stream) == sql.latest_seq(self.connection, stream)
        again = replayed(self.connection, sql.streams(self.connection)[stream])
        assert again.same is True
        return again.fold.counts

    def close(self):
        self.writer.stop()
        self.connection.close()
        self.database.close()


class Renewed(Leases):
    """Leases of all streams, which says when they were renewed."""

    def __init__(self, service):
        self._service = service

    def renew(self, connection, streams):
        self._service.events.append((self._service.now, "renewed", 0, 0))
        return super().renew(connection, streams)


class Followed(Leases):
    """Another server learns all streams."""

    def renew(self, connection, streams):
        return set(), set()


@pytest.fixture
def service(tmp_path, monkeypatch):
    made = Service(tmp_path, monkeypatch)
    yield made
    made.close()


def run(thread):
    thread.start()
    thread.stop()


def test_the_backlog_of_a_stream_keeps_no_other_from_learning(service):
    slow, other = service.stream("slow"), service.stream("other")
    service.backlog(slow, 300)
    service.write(other, "a")
    behind = {slow: [], other: []}

    def learned(record):
        if record.stream == slow:
            if len(service.told("learned", slow)) == 150:
                assert service.write(other, "a", label="yes").accepted == 1
            for stream, seconds in behind.items():
                seconds.append(service.thread.behind(stream))

    service.learned, begin = learned, service.now
    run(service.thread)
    of_label = service.told("learned", other)[-1][0]
    written = service.told("learned", slow)[149][0]
    assert of_label <= written + 3
    assert max(behind[other][150:152]) > 0, "it says so meanwhile"
    assert max(behind[other]) <= 10
    assert behind[slow][250] == pytest.approx(service.told("learned", slow)[250][0] - begin, abs=1)
    assert (service.thread.behind(slow), service.thread.behind(other)) == (0, 0)
    times = [now for now, _ in service.told("snapshot", slow)]
    assert len(times) > 10, "snapshots are taken meanwhile"
    renewed = [now for now, *_ in service.told("renewed", 0)]
    assert max(later - now for now, later in pairwise(renewed)) <= Leases.seconds + 1
    assert service.check_learned(slow).n_rows == 300
    assert service.check_learned(other).n_labels == 1


def test_leases_are_renewed_although_many_streams_have_backlogs(service):
    for k in range(30):
        service.backlog(service.stream(f"s{k}"), 5)
    run(service.thread)
    renewed = [now for now, *_ in service.told("renewed", 0)]
    assert max(later - now for now, later in pairwise(renewed)) <= Leases.seconds + 1


def test_learning_that_is_slower_than_what_comes_is_behind_and_loses_nothing(service):
    """Three labels come for each record that is learned."""
    stream, seconds, n = service.stream("s"), [], 0
    service.write(stream, *(f"r{k}" for k in range(600)))

    def learned(record):
        nonlocal n
        if n < 600:
            for k in range(n, n + 3):
                assert service.write(stream, f"r{k}", label=k % 2).accepted == 1
            n += 3
        seconds.append(service.thread.behind(stream))

    service.learned = learned
    run(service.thread)
    assert max(seconds) > 60 >= min(seconds)
    assert [seq for _, seq in service.told("snapshot", stream)] == sorted(
        {seq for _, seq in service.told("snapshot", stream)}
    )
    assert len(service.told("snapshot", stream)) >= 600 / 25
    assert service.check_learned(stream).n_labels == 600


def test_learning_that_keeps_up_is_not_behind_although_it_never_ends(service):
    stream, seconds = service.stream("s"), []
    service.write(stream, "first")

    def learned(record):
        if len(seconds) < 200:
            service.write(stream, f"r{len(seconds)}")
        seconds.append(service.thread.behind(stream))

    service.learned = learned
    run(service.thread)
    assert len(seconds) > 200
    assert max(seconds) <= 10


@pytest.mark.parametrize("is_learned", [True, False])
def test_a_stream_that_another_server_learns_is_behind_only_if_that_one_is(service, is_learned):
    """Rows keep coming, so that no snapshot is ever of the last record."""
    stream, follower = service.stream("s"), service.learner(Followed())
    learns, seconds = service.learner(snapshots=0.0), []
    connection = service.database.connect()
    for k in range(100):
        if is_learned or k < 20:
            learns._round(connection, {stream}, ends=False)
        service.write(stream, f"r{k}")
        service.now += 1.0
        follower._round(connection, {stream}, ends=False)
        seconds.append(follower.behind(stream))
    connection.close()
    assert max(seconds[:20]) < 10
    assert sql.latest_seq(service.connection, stream) < sql.last_record(service.connection, stream)
    assert (max(seconds) < 10) == is_learned
    assert is_learned or seconds[-1] > 70


def test_a_stream_that_another_server_learns_has_columns_once_rows_have_come(service):
    """Also if it was looked at before."""
    stream, views = service.stream("s", columns=None), []
    follower = service.learner(Followed(), publish=lambda number, news: views.append(news.view))
    follower._round(service.connection, {stream}, ends=False)
    assert views[-1].predictor.columns is None
    service.write(stream, "a")
    service.write(stream, "a", label="yes")
    rounds(service)
    service.now += 1.0
    follower._round(service.connection, {stream}, ends=False)
    assert (views[-1].predictor.columns, views[-1].predictor.one({"x": 1.0}).label) == (["x"], "yes")


def rounds(service):
    """Some of them, with time in between for what is due by the clock; returns the records that are left."""
    for _ in range(6):
        service.now += 30.0
        service.thread._round(service.connection, set(), ends=False)
    return service.connection.records(1, 0, 100)


def test_a_stream_to_which_nothing_comes_keeps_no_more_than_it_should(service):
    stream, other = service.stream("s", keep=3600.0), service.stream("other")
    service.write(stream, "a", "b")
    service.write(stream, "a", "b", label="yes")
    assert rounds(service)[-1].seq == sql.last_record(service.connection, stream)
    service.writer.run_job(lambda own: own.execute("UPDATE clock SET served = served + 3601")).result()
    service.write(other, "a")
    assert rounds(service) == []
    assert sql.known_ids(service.connection, stream, ["a", "b"]) == {}


@pytest.mark.parametrize("days", [40, -40])
def test_a_clock_that_is_wrong_at_a_start_removes_nothing_that_should_stay(service, days):
    stream = service.stream("s", keep=86_400.0)
    service.write(stream, "a", "b")
    service.write(stream, "a", "b", label="yes")
    n = len(rounds(service))
    service.writer.clock = SteadyClock(lambda: time.time() + days * 86_400.0)
    service.write(stream, "c")
    service.write(stream, "c", label="yes")
    assert len(rounds(service)) == n + 2


class Lost(Leases):
    """Another server has taken all streams over, which is only seen when something is written."""

    def check(self, connection, stream):
        raise NotOursError("another server learns the stream by now")


def test_a_former_holder_puts_nothing_into_quarantine(service, monkeypatch):
    """Its own error may be that the one that learns the stream by now has removed records."""
    stream, leases = service.stream("s"), Lost()
    news = []
    service.thread = service.learner(leases, publish=lambda *given: news.append(given))
    service.write(stream, "a")
    rounds(service)

    def broken(fold, record):
        raise GapError("the log lacks the rows of record 2, whose labels it has")

    with monkeypatch.context() as patch:
        patch.setattr(Fold, "apply", broken)
        service.write(stream, "b")
        service.thread._round(service.connection, {stream}, ends=False)
    assert sql.quarantined(service.connection) == {}
    leases.renew = lambda connection, streams: (set(), set())
    seen = len(news)
    rounds(service)
    assert [own.problem for _, own in news] == [None] * len(news)
    assert [own.is_ours for _, own in news[seen:]] == []


def test_a_stream_is_loaded_again_if_another_server_had_it_meanwhile(service):
    """Also one that was taken back before that was noticed: the other one may have removed records."""
    stream, leases, loaded = service.stream("s"), Leases(), []
    service.thread = service.learner(leases, publish=lambda number, news: loaded.append(news.view))
    service.write(stream, "a")
    rounds(service)
    n = len(loaded)
    rounds(service)
    assert len(loaded) == n
    leases.token = lambda stream: 2
    rounds(service)
    assert len(loaded) == n + 1
    assert loaded[-1].predictor.version == sql.last_record(service.connection, stream)


def test_what_an_error_says_in_a_quarantine_is_forgotten_with_the_sample(service, monkeypatch):
    stream, news = service.stream("s"), []
    service.thread = service.learner(publish=lambda number, own: news.append(own.problem))
    service.write(stream, "a")

    def broken(fold, record):
        raise ValueError("a value of Ann: 1.0")

    with monkeypatch.context() as patch:
        patch.setattr(Fold, "apply", broken)
        rounds(service)
    assert sql.quarantined(service.connection) == {stream: "ValueError: a value of Ann: 1.0"} == {stream: news[-1]}
    service.writer.run_job(lambda own: forgetting.forget(own, stream, "a", 2.0)).result()
    rounds(service)
    assert sql.quarantined(service.connection) == {stream: news[-1]}
    assert news[-1] == "ValueError: what it said may have cited a sample that was forgotten"
