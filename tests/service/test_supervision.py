"""Faults stay where they are: expected ones pass, one of a stream stops that stream, others end the process."""

import shutil
import sqlite3
import threading
import time
from concurrent.futures import Future
from types import SimpleNamespace

import httpx
import pytest
from served import SECONDS, Process, limit, metric, served_here, until, wait_until

from devdan.service import learner, ledger, models, sql, supervision
from devdan.service.database import DamagedError, NotStorableError, UnavailableError
from devdan.service.fold import Fold
from devdan.service.replay import found, replayed
from devdan.service.schema import Limits, StreamSettings, Submission, SubmittedRow
from devdan.service.store import SqliteDatabase
from devdan.service.supervision import Supervisor
from devdan.service.writer import WriterThread


def rows(*ids, x=1.0):
    return {"rows": [{"id": id_, "features": {"x": x}} for id_ in ids]}


def labels(**pairs):
    return {"labels": [{"id": id_, "label": label} for id_, label in pairs.items()]}


def taught(http, name):
    """A stream that has learned a label."""
    http.put(f"/v1/streams/{name}", json={}).raise_for_status()
    http.post(f"/v1/streams/{name}/predict", json=rows("a")).raise_for_status()
    http.post(f"/v1/streams/{name}/labels", json=labels(a="fraud")).raise_for_status()
    until(http, f"/v1/streams/{name}", lambda shown: shown["labels"] == 1)


@pytest.fixture
def http(tmp_path):
    with served_here(tmp_path / "data") as opened:
        yield opened


def test_until_a_model_is_loaded_nothing_is_predicted_and_nothing_logged(tmp_path, monkeypatch):
    with served_here(tmp_path / "data") as http:
        taught(http, "s")
    go_on, load = threading.Event(), learner.latest
    monkeypatch.setattr(learner, "latest", lambda *given: go_on.wait() and load(*given))
    with served_here(tmp_path / "data") as http:
        early = http.post("/v1/streams/s/predict", json=rows("b"))
        assert (early.status_code, early.headers["retry-after"]) == (503, "1")
        assert "is being loaded" in early.json()["error"]
        assert http.get("/v2/health/ready").json() == {
            "ready": False,
            "problems": {"models": "1 of 1 are being loaded"},
        }
        assert http.get("/v2/models/s/ready").status_code == 503
        assert http.get("/v2/health/live").status_code == 200
        assert http.get("/v1/streams/s").json()["state"] == "loading"
        assert http.get("/v1/streams/s/model").status_code == 503
        assert http.get("/v1/streams/s/samples/a").json()["state"] == "waits to be learned"
        assert http.get("/v1/streams/s/samples/b").status_code == 404
        assert http.post("/v1/streams/s/labels", json=labels(b="fine")).json()["waiting"] == 1
        go_on.set()
        wait_until(lambda: http.get("/v2/health/ready").status_code == 200)
        late = http.post("/v1/streams/s/predict", json=rows("b")).json()["predictions"][0]
        assert late["label"] == "fraud"
        until(http, "/v1/streams/s/samples/a", lambda sample: sample["state"] == "learned")


def test_after_a_kill_the_first_answers_know_all_labels(tmp_path):
    """Also before the first snapshot: what is answered then follows from the whole log."""
    server = Process("--data", tmp_path)
    with httpx.Client(base_url=server.url, timeout=SECONDS) as http:
        taught(http, "s")
    server.kill()
    server = Process("--data", tmp_path)
    with httpx.Client(base_url=server.url, timeout=SECONDS) as http:
        answer = wait_until(
            lambda: [one for one in [http.post("/v1/streams/s/predict", json=rows("b"))] if one.status_code == 200]
        )[0]
    assert answer.json()["predictions"][0]["label"] == "fraud"
    server.kill()


def test_a_stream_whose_records_make_an_error_goes_into_quarantine_alone(tmp_path, monkeypatch, caplog):
    apply, poison = Fold.apply, [True]

    def poisoned(fold, record):
        apply(fold, record)
        if poison[0] and "poison" in getattr(record.body, "ids", ()):
            raise MemoryError("no room for it")

    monkeypatch.setattr(Fold, "apply", poisoned)
    with served_here(tmp_path / "data") as http:
        for name in ("good", "bad"):
            taught(http, name)
            http.post(f"/v1/streams/{name}/predict", json=rows("poison" if name == "bad" else "b")).raise_for_status()
        shown = until(http, "/v1/streams/bad", lambda shown: shown["state"] == "in quarantine")
        assert shown["quarantine"] == "MemoryError: no room for it"
        for name in ("good", "bad"):  # it predicts from its last model, and its log goes on
            answer = http.post(f"/v1/streams/{name}/predict", json=rows("c")).json()
            assert answer["predictions"][0]["label"] == "fraud"
            http.post(f"/v1/streams/{name}/labels", json=labels(c="fine")).raise_for_status()
        until(http, "/v1/streams/good", lambda shown: shown["labels"] == 2)
        assert http.get("/v1/streams/bad/samples/c").json()["state"] == "waits to be learned"
        assert http.get("/v2/models/bad/ready").json()["problems"] == {"quarantine": "MemoryError: no room for it"}
        assert http.get("/v2/models/bad/ready").status_code == 503
        assert http.get("/v2/models/good/ready").status_code == 200
        assert http.get("/v2/health/ready").status_code == 200
        assert 'devdan_quarantined{stream="bad"} 1.0' in http.get("/metrics").text
    assert sum("is in quarantine" in one.message for one in caplog.records) == 1
    with served_here(tmp_path / "data") as http:  # another process does not try it, either
        shown = until(http, "/v1/streams/bad", lambda shown: shown["version"] > 0 or shown["state"] == "in quarantine")
        assert shown["state"] == "in quarantine"
        http.post("/v1/streams/bad/retry").raise_for_status()  # the error is still there
        wait_until(lambda: sum("is in quarantine" in one.message for one in caplog.records) == 2)
        poison[0] = False
        assert http.post("/v1/streams/bad/retry").status_code == 202
        shown = until(http, "/v1/streams/bad", lambda shown: shown["labels"] == 2)
        assert (shown["state"], shown["quarantine"]) == ("ready", None)
        assert http.get("/v2/models/bad/ready").status_code == 200
    connection = SqliteDatabase(tmp_path / "data", lock=False).connect()
    assert [replayed(connection, one).same for one in found(connection, None)] == [True, True]
    connection.close()


def test_a_deleted_stream_leaves_its_quarantine(http, monkeypatch):
    def poisoned(fold, record):
        raise ValueError("never")

    with monkeypatch.context() as patch:
        patch.setattr(Fold, "apply", poisoned)
        http.put("/v1/streams/s", json={})
        until(http, "/v1/streams/s", lambda shown: shown["state"] == "in quarantine")
    http.delete("/v1/streams/s").raise_for_status()
    taught(http, "s")


def test_an_unexpected_error_of_one_submission_is_its_own(tmp_path, monkeypatch):
    """Others that would have been committed with it are."""
    database, commit = SqliteDatabase(tmp_path, "off"), ledger.commit

    def picky(connection, submissions, *others):
        if any(row.id == "poison" for one in submissions for row in one.rows):
            raise NotStorableError("it is too large")
        return commit(connection, submissions, *others)

    monkeypatch.setattr(ledger, "commit", picky)
    writer = WriterThread(database, Limits(), lambda tell: tell(), lambda streams: None, Supervisor())
    writer.start()

    def make(connection):
        with connection.transaction():
            return sql.create_stream(connection, "s", StreamSettings(), 0.0).number

    number, go_on = writer.run_job(make).result(), threading.Event()
    writer.run_job(lambda connection: go_on.wait())
    promises = []
    for id_ in ("a", "poison", "b"):
        promises.append(Future())
        writer.submit([Submission(number, [SubmittedRow(id_, {"x": 1.0})])], promises[-1])
    go_on.set()
    assert [promises[0].result()[0].rows, promises[2].result()[0].rows] == [1, 1]
    with pytest.raises(NotStorableError, match="too large"):
        promises[1].result()
    assert (writer.queued, writer.part.problem) == (0, None)
    writer.stop()
    database.close()


def test_while_the_disk_is_full_health_says_so_and_then_no_longer(http):
    taught(http, "s")
    assert http.get("/v2/health/ready").json() == {"ready": True}
    limit(http, lambda now: now)
    answer = http.post("/v1/streams/s/predict", json=rows(*(f"r{k}" for k in range(5000))))
    assert answer.status_code == 503
    assert http.get("/v2/health/ready").json() == {
        "ready": False, "problems": {"log": "it cannot be written at present"},
    }  # fmt: skip
    assert http.get("/v2/models/s/ready").status_code == 503
    limit(http, lambda now: 1_000_000)
    wait_until(lambda: http.get("/v2/health/ready").status_code == 200)  # although nothing is sent


def test_while_no_snapshot_can_be_taken_learning_goes_on_and_shows(tmp_path, monkeypatch):
    """As on a disk that takes rows, but has no room for a model."""
    with served_here(tmp_path / "data", snapshots=0.0) as http:
        taught(http, "s")
        engine = http.application.engine
        with monkeypatch.context() as patch:

            def full(*_, **__):
                raise UnavailableError("the disk is full")

            patch.setattr(sql, "keep_snapshot", full)
            for k in range(10):
                sample = {"id": f"r{k}", "features": {"x": 1.0}, "label": "fine"}
                http.post("/v1/streams/s/samples", json={"rows": [sample]}).raise_for_status()
            wait_until(lambda: engine.learner.part.problem is not None)
            until(http, "/v1/streams/s", lambda shown: shown["labels"] == 11)
            assert engine.learner.part.problem is not None
        wait_until(lambda: engine.learner.part.problem is None)


def test_a_log_that_is_damaged_ends_the_process_with_a_code(tmp_path):
    server = Process("--data", tmp_path)
    with httpx.Client(base_url=server.url, timeout=SECONDS) as http:
        taught(http, "s")
        other = sqlite3.connect(tmp_path / "events.sqlite", timeout=SECONDS)
        other.execute("DROP TABLE waiting")
        other.close()
        assert http.post("/v1/streams/s/predict", json=rows("b")).status_code == 503
    code, said = server.ended()
    assert code not in (0, None)
    assert "no such table: waiting" in said


def test_what_would_go_into_a_removed_folder_is_not_acknowledged(tmp_path):
    """SQLite goes on writing into files that have no name any more."""
    server = Process("--data", tmp_path / "data")
    with httpx.Client(base_url=server.url, timeout=SECONDS) as http:
        taught(http, "s")
        shutil.rmtree(tmp_path / "data")
        assert http.post("/v1/streams/s/predict", json=rows("b")).status_code == 503
    code, said = server.ended()
    assert code not in (0, None)
    assert "the log was removed" in said


@pytest.mark.parametrize("name", ["events.sqlite", "events.sqlite-wal"])
def test_what_would_go_into_a_replaced_file_is_not_acknowledged(tmp_path, name):
    database = SqliteDatabase(tmp_path, "off")
    connection = database.connect()
    sql.probe(connection, 0.0)
    sql.probe(connection, 1.0)
    shutil.copy(tmp_path / name, tmp_path / "copy")
    (tmp_path / "copy").replace(tmp_path / name)
    with pytest.raises(DamagedError, match="the log was replaced"):
        sql.probe(connection, 2.0)
    connection.close()
    database.close()


def test_a_disk_that_is_nearly_full_is_not_ready(http, monkeypatch):
    taught(http, "s")
    monkeypatch.setattr("devdan.service.engine._FREE", http.application.engine.database.free_bytes() * 2)
    assert list(http.get("/v2/health/ready").json()["problems"]) == ["disk"]
    assert http.get("/v2/models/s/ready").status_code == 503


def test_a_folder_that_was_removed_has_no_room(tmp_path):
    database = SqliteDatabase(tmp_path / "data", "off")
    shutil.rmtree(tmp_path / "data")
    assert database.free_bytes() == 0
    database.close()


@pytest.mark.parametrize("part", ["writer", "learner"])
def test_a_part_that_has_ended_is_told_and_answers_go_on(tmp_path, monkeypatch, part):
    with served_here(tmp_path / "data") as http:
        taught(http, "s")
        ended, engine = threading.Event(), http.application.engine
        engine.supervisor.end = ended.set

        def breaks(*_):
            raise DamagedError("no such table")

        if part == "writer":
            monkeypatch.setattr(sql, "probe", breaks)
            monkeypatch.setattr(ledger, "commit", breaks)
            assert http.post("/v1/streams/s/predict", json=rows("b")).status_code == 503
        else:
            monkeypatch.setattr(sql, "streams", breaks)
            engine.learner.wake({99})
        assert ended.wait(SECONDS)
        wait_until(lambda: getattr(engine, part).part.has_ended)
        assert part in engine.supervisor.failure
        assert http.get("/v2/health/live").json() == {"live": False}
        assert http.get("/v2/health/ready").json()["problems"][part] == "it has ended"
        monkeypatch.undo()
        expected = 503 if part == "writer" else 200
        assert http.post("/v1/streams/s/predict", json=rows("c")).status_code == expected
        assert http.put("/v1/streams/t", json={}).status_code == (503 if part == "writer" else 201)


def test_a_log_that_hangs_is_answered_with_503(tmp_path, monkeypatch):
    monkeypatch.setattr("devdan.service.engine._PATIENCE", 0.2)
    with served_here(tmp_path / "data") as http:
        taught(http, "s")
        go_on = threading.Event()
        http.application.engine.writer.run_job(lambda connection: go_on.wait())
        answer = http.post("/v1/streams/s/predict", json=rows("b"))
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        go_on.set()
        again = wait_until(
            lambda: [one for one in [http.post("/v1/streams/s/predict", json=rows("b"))] if one.status_code == 200]
        )[0]
        assert again.json()["predictions"][0]["label"] == "fraud"


def test_learning_that_is_behind_is_not_ready(http, monkeypatch):
    """A minute by its clock."""
    taught(http, "s")
    go_on, apply, off = threading.Event(), Fold.apply, [0.0]
    monkeypatch.setattr(learner, "time", SimpleNamespace(monotonic=lambda: time.monotonic() + off[0]))
    monkeypatch.setattr(Fold, "apply", lambda *given: go_on.wait() and apply(*given))
    http.post("/v1/streams/s/predict", json=rows("b")).raise_for_status()
    assert http.get("/v2/health/ready").json() == {"ready": True}
    off[0] = 61.0
    assert http.get("/v2/health/ready").json()["problems"] == {"learning": "the models of 1 streams are behind the log"}
    assert http.get("/v2/models/s/ready").json()["problems"] == {"learning": "the model is behind the log"}
    go_on.set()
    wait_until(lambda: http.get("/v2/models/s/ready").status_code == 200)


def test_a_label_that_the_model_could_not_take_is_not_told_to_be_learned(tmp_path, monkeypatch):
    def full(*given):
        raise ValueError("the model would need too much memory")

    for is_first in (True, False):
        with served_here(tmp_path / "data") as http:
            if is_first:
                taught(http, "s")
                http.post("/v1/streams/s/predict", json=rows("b", "c")).raise_for_status()
                with monkeypatch.context() as patch:
                    patch.setattr(models, "teach", full)
                    assert http.post("/v1/streams/s/labels", json=labels(b="fine")).json()["accepted"] == 1
                    until(http, "/v1/streams/s", lambda shown: shown["unusable"] == 1)
                http.post("/v1/streams/s/labels", json=labels(c="fine")).raise_for_status()
            until(http, "/v1/streams/s/samples/c", lambda sample: sample["state"] == "learned")
            assert http.get("/v1/streams/s/samples/b").json()["state"] == "unusable"
            assert http.get("/v1/streams/s/samples/a").json()["state"] == "learned"


def test_a_part_says_what_it_waits_for_once_and_waits_longer_each_time(caplog):
    part = supervision.ServicePart("writer")
    waits = [part.waits(UnavailableError("the disk is full")) for _ in range(8)]
    assert waits == [0.25, 0.5, 1.0, 2.0, 4.0, 5.0, 5.0, 5.0]
    part.goes_on()
    assert [one.message for one in caplog.records] == ["writer waits: the disk is full", "writer continues"]
    assert part.waits(UnavailableError("the disk is full")) == 0.25


def test_a_clock_that_is_set_is_noticed_told_and_ignored(caplog):
    times = {"wall": 1000.0, "steady": 5.0}

    def after(steady, wall):
        times["steady"], times["wall"] = times["steady"] + steady, times["wall"] + wall
        return clock.now()

    clock = supervision.SteadyClock(lambda: times["wall"], lambda: times["steady"])
    assert after(10.0, 10.5) == 1010.5  # it is kept right
    assert after(10.0, 10.0 + 40 * 86_400) == 1020.5
    assert after(10.0, 10.0) == 1030.5
    assert clock.jump == 40 * 86_400
    assert after(10.0, 10.0 - 40 * 86_400) == 1040.5
    assert clock.jump == 0
    assert after(10.0, -3600.0) == 1050.5
    assert [one.message for one in caplog.records] == [
        "the clock was set forward by 3456000 seconds; until the next start, it is ignored",
        "the clock is right again",
        "the clock was set back by 3610 seconds; until the next start, it is ignored",
    ]


def test_a_part_that_hangs_ends_the_process_but_not_one_that_was_stopped_with_all_others():
    supervisor, ended = Supervisor(), []
    supervisor.end = lambda: ended.append(supervisor.failure)
    parts = [supervisor.part(name) for name in ("writer", "learner")]
    for k in range(25):
        for part in parts:
            part._alive -= 400.0 if k in (0, 15) else 0.0
        if k == 5:
            for part in parts:
                part.works()
        if k >= 15:
            parts[0].works()
        supervisor.check()
        assert bool(ended) == (k == 24)
    assert ended == ["no sign of life for 300 seconds of: learner"]
    supervisor.check()
    assert len(ended) == 1


def test_a_server_looks_for_parts_that_hang(http, monkeypatch):
    ended = threading.Event()
    http.application.engine.supervisor.end = ended.set
    monkeypatch.setattr(supervision, "_DEAD", -1.0)
    assert ended.wait(SECONDS)
    assert http.get("/v2/health/live").json() == {"live": False}


def test_a_log_from_the_future_is_told_and_does_not_keep_the_service_from_its_work(tmp_path, monkeypatch, caplog):
    wall, off = time.time, [40 * 86_400.0]
    monkeypatch.setattr(time, "time", lambda: wall() + off[0])
    with served_here(tmp_path / "data") as http:
        taught(http, "s")
    off[0] = 0.0
    with served_here(tmp_path / "data") as http:
        told = until(http, "/v2/health/ready", lambda told: told["ready"] and "warnings" in told)
        assert "ahead of the clock" in told["warnings"]["clock"]
        assert metric(http, "devdan_clock_ahead_seconds") == pytest.approx(40 * 86_400, abs=60)
    assert sum("ahead of the clock" in one.message for one in caplog.records) == 1


def test_while_the_clock_is_wrong_nothing_expires_and_snapshots_are_taken(tmp_path, monkeypatch):
    """A request at 40 days from now, a restart then, and the clock is back."""
    wall, off = time.time, [0.0]
    monkeypatch.setattr(time, "time", lambda: wall() + off[0])

    def snapshots():
        other = sqlite3.connect(tmp_path / "data" / "events.sqlite")
        ((seq,),) = other.execute("SELECT seq FROM snapshots WHERE kind = 'latest'").fetchall() or [(0,)]
        other.close()
        return seq

    with served_here(tmp_path / "data", snapshots=0.0) as http:
        taught(http, "s")
        http.post("/v1/streams/s/predict", json=rows("b")).raise_for_status()
        off[0] = 40 * 86_400.0
        http.post("/v1/streams/s/predict", json=rows("c")).raise_for_status()
        assert http.get("/v1/streams/s/samples/c").json()["at"] < wall() + 3600
        assert metric(http, "devdan_clock_jump_seconds") == pytest.approx(40 * 86_400, abs=60)
        assert http.post("/v1/streams/s/labels", json=labels(b="fine")).json()["accepted"] == 1
    with served_here(tmp_path / "data", snapshots=0.0) as http:  # the clock is believed
        assert http.post("/v1/streams/s/labels", json=labels(c="fine")).json()["accepted"] == 1
        until(http, "/v1/streams/s", lambda shown: shown["labels"] == 3)
    off[0] = 0.0
    with served_here(tmp_path / "data", snapshots=0.0) as http:
        until(http, "/v1/streams/s", lambda shown: shown["state"] == "ready")
        before = snapshots()
        http.post("/v1/streams/s/predict", json=rows("d")).raise_for_status()
        http.post("/v1/streams/s/labels", json=labels(d="fraud")).raise_for_status()
        until(http, "/v1/streams/s", lambda shown: shown["labels"] == 4)
        wait_until(lambda: snapshots() > before)
    connection = SqliteDatabase(tmp_path / "data", lock=False).connect()
    (stream,) = found(connection, "s")
    times = [record.at for record in connection.records(stream.number, 0, 1000)]
    assert times == sorted(times)
    assert replayed(connection, stream).same is True
    connection.close()


SQLITE = [
    ("CREATE TABLE t (x INTEGER PRIMARY KEY); INSERT INTO t VALUES (1)", "INSERT INTO t VALUES (1)", NotStorableError),
    ("", "SELECT * FROM missing", DamagedError),
    ("PRAGMA query_only = 1", "CREATE TABLE t (x)", UnavailableError),
    ("PRAGMA max_page_count = 1", "CREATE TABLE u (x)", UnavailableError),
    ("", "SELECT zeroblob(2147483647)", NotStorableError),
]


@pytest.mark.parametrize(("before", "statement", "expected"), SQLITE)
def test_errors_of_sqlite_mean_what_they_should(tmp_path, before, statement, expected):
    database = SqliteDatabase(tmp_path)
    connection = database.connect()
    for one in filter(None, before.split(";")):
        connection.execute(one)
    with pytest.raises(expected):
        connection.execute(statement)
    connection.close()
    database.close()


def test_a_file_that_is_no_database_is_damaged(tmp_path):
    (tmp_path / "events.sqlite").write_bytes(b"something else " * 1000)
    with pytest.raises(DamagedError):
        SqliteDatabase(tmp_path)
