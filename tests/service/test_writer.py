"""What the writer commits together, and in which order."""

import threading
from concurrent.futures import Future

import pytest

from devdan.service import ledger, sql
from devdan.service.database import UnavailableError
from devdan.service.schema import Limits, StreamSettings, Submission, SubmissionOutcome, SubmittedRow
from devdan.service.store import SqliteDatabase
from devdan.service.supervision import Supervisor
from devdan.service.writer import WriterThread

MANY = 1050


@pytest.fixture
def writer(tmp_path):
    database = SqliteDatabase(tmp_path / "log", "off")
    made = WriterThread(database, Limits(), lambda tell: tell(), lambda streams: None, Supervisor())
    made.start()
    yield made
    made.stop()
    database.close()


@pytest.fixture
def stream(writer):
    def make(connection):
        with connection.transaction():
            return sql.create_stream(connection, "s", StreamSettings(), 0.0).number

    return writer.run_job(make).result()


def submitted(writer, *submissions):
    promise = Future()
    writer.submit(submissions, promise)
    return promise


def labels(stream, first=0, label="x"):
    return Submission(stream, labels=[(f"r{k}", label) for k in range(first, MANY)])


def rows(stream):
    return Submission(stream, rows=[SubmittedRow(f"r{k}", {"x": float(k)}) for k in range(MANY)])


def test_a_row_does_not_wait_behind_many_labels(writer, stream):
    go_on, kept = threading.Event(), []
    writer.run_job(lambda connection: go_on.wait())
    late = submitted(writer, labels(stream))
    late.add_done_callback(lambda promise: kept.append("labels"))
    row = submitted(writer, Submission(stream, rows=[SubmittedRow("a", {"x": 1.0})]))
    row.add_done_callback(lambda promise: kept.append("row"))
    before = writer.n_commits
    go_on.set()
    assert late.result() == [SubmissionOutcome(waiting=MANY, refused=[])]
    assert row.result()[0].rows == 1
    assert kept == ["row", "labels"]
    assert writer.n_commits - before == 11
    assert writer.queued == 0


def test_labels_in_parts_have_one_outcome(writer, stream):
    assert submitted(writer, rows(stream)).result()[0].rows == MANY
    assert submitted(writer, labels(stream, 1000)).result()[0].accepted == 50
    assert submitted(writer, labels(stream)).result() == [SubmissionOutcome(accepted=1000, repeated=50, refused=[])]
    (contradicting,) = submitted(writer, labels(stream, label="y")).result()
    assert [one.id for one in contradicting.refused] == [f"r{k}" for k in range(MANY)]
    assert submitted(writer, Submission(stream + 1, labels=labels(stream).labels)).result()[0].gone


def test_labels_of_several_kinds_are_refused_as_a_whole(writer, stream):
    submitted(writer, rows(stream)).result()
    mixed = Submission(stream, labels=[*labels(stream).labels, ("r0", 1)])
    assert submitted(writer, mixed).result() == [
        SubmissionOutcome(error="labels of this stream are of type text, got number: 1")
    ]
    assert submitted(writer, labels(stream)).result()[0].accepted == MANY


def test_what_has_come_is_written_before_it_ends(tmp_path, stream, writer):
    go_on = threading.Event()
    writer.run_job(lambda connection: go_on.wait())
    promise = submitted(writer, labels(stream))
    ends = threading.Thread(target=writer.stop)
    ends.start()
    go_on.set()
    ends.join()
    assert promise.result()[0].waiting == MANY


def test_labels_that_could_not_all_be_written_can_be_sent_again(writer, stream, monkeypatch):
    commit, calls = ledger.commit, []

    def third_fails(connection, submissions, *others):
        calls.append(submissions)
        if len(calls) == 3:
            raise UnavailableError("the disk is full")
        return commit(connection, submissions, *others)

    monkeypatch.setattr(ledger, "commit", third_fails)
    with pytest.raises(UnavailableError, match="full"):
        submitted(writer, labels(stream)).result()
    (again,) = submitted(writer, labels(stream)).result()
    assert (again.waiting, again.repeated) == (100, MANY - 100)
    assert writer.queued == 0
