"""Backups of a log, and formats that change."""

import os
import shutil
import sqlite3
import threading

import httpx
import pytest
from commandline import run
from old_logs import BEFORE, MIGRATIONS, age, tables
from served import SECONDS, Process, logged, served_here, until

from devdan.service import database as log_database
from devdan.service.database import FormatError
from devdan.service.replay import found, replayed
from devdan.service.store import FILE, SqliteDatabase, back_up


def rows(first, n, **label):
    return {"rows": [{"id": f"r{k}", "features": {"x": k % 7}} | label for k in range(first, first + n)]}


def test_a_backup_of_a_server_at_work_is_a_log_to_go_on_with(tmp_path):
    """It has what was acknowledged before, is the same bit for bit, and takes what is sent once more."""
    data, copies = tmp_path / "data", [tmp_path / f"copy{k}" for k in range(3)]
    server, ends, acknowledged = Process("--data", data), threading.Event(), [0]

    def write():
        with httpx.Client(base_url=server.url, timeout=SECONDS) as client:
            while not ends.is_set():
                body = {"rows": rows(acknowledged[0], 20)["rows"]}
                client.post("/v1/streams/s/predict", json=body).raise_for_status()
                given = [{"id": f"r{k}", "label": k % 7 > 3} for k in range(acknowledged[0], acknowledged[0] + 20)]
                client.post("/v1/streams/s/labels", json={"labels": given}).raise_for_status()
                acknowledged[0] += 20

    httpx.put(f"{server.url}/v1/streams/s", json={}, timeout=SECONDS).raise_for_status()
    thread = threading.Thread(target=write)
    thread.start()
    for copy in copies:
        before = acknowledged[0]
        code, said = run("backup", data, copy)
        assert (code, "has the log up to record" in said) == (0, True), said
        records = logged(SqliteDatabase(copy, lock=False))
        ids = {id_ for record in records for id_ in getattr(record.body, "ids", ())}
        assert ids >= {f"r{k}" for k in range(before)}
        assert f"up to record {records[-1].seq:,} of" in said
        code, said = run("replay", copy)
        assert code == 0, said
    ends.set()
    thread.join()
    server.kill()
    with served_here(copies[1]) as http:
        until(http, "/v1/streams/s", lambda shown: shown["state"] == "ready")
        shown = http.get("/v1/streams/s").json()
        answer = http.post("/v1/streams/s/samples", json=rows(0, acknowledged[0], label=True))
        assert answer.status_code in (200, 409)  # half of the labels are others than before
        n = until(http, "/v1/streams/s", lambda now: now["rows"] == acknowledged[0])["rows"]
        assert shown["rows"] <= n
    connection = SqliteDatabase(copies[1], lock=False).connect()
    assert replayed(connection, found(connection, "s")[0]).same is True
    connection.close()


def answers(http, n):
    """What it says of three steps, each of which changes its models, where 100 rows wait for labels from n on."""
    asked = {"s": rows(1000, 50), "keyed": {"rows": [row | {"key": "k1"} for row in rows(1000, 50)["rows"]]}}
    later = {"labels": [{"id": f"r{k}", "label": "ab"[k % 2]} for k in range(n, n + 100)]}
    told = [http.post(f"/v1/streams/{name}/predict", json=body).json() for name, body in asked.items()]
    told += [http.post("/v1/streams/s/labels", json=later).json()]
    until(http, "/v1/streams/s", lambda shown: shown["labels"] == n + 100)
    told += [http.post("/v1/streams/s/predict", json={"rows": [{"id": "early", "features": {"x": 3}}]}).json()]
    until(http, "/v1/streams/s", lambda shown: shown["labels"] == n + 101)
    told += [http.post("/v1/streams/s/predict", json=rows(2000, 50)).json()["predictions"]]
    for one in told:
        one.pop("version", None) if isinstance(one, dict) else None
    return told


def test_what_is_restored_predicts_what_the_server_predicted_then_and_goes_on_alike(tmp_path):
    """Back up a server at work, lose its folder, and serve a copy of the backup: models, waiting rows and the audit."""
    data, ends, n = tmp_path / "data", threading.Event(), 400
    server = Process("--data", data)
    with httpx.Client(base_url=server.url, timeout=SECONDS) as client:
        client.put("/v1/streams/s", json={}).raise_for_status()
        client.put("/v1/streams/keyed", json={"keyed": True}).raise_for_status()
        client.put("/v1/streams/other", json={}).raise_for_status()
        given = [row | {"key": f"k{k % 3}", "label": k % 7 > 3} for k, row in enumerate(rows(0, n)["rows"])]
        client.post("/v1/streams/keyed/samples", json={"rows": given}).raise_for_status()
        client.post("/v1/streams/s/samples", json=rows(0, n, label="a")).raise_for_status()
        client.post("/v1/streams/s/predict", json=rows(n, 100)).raise_for_status()
        client.post("/v1/streams/s/labels", json={"labels": [{"id": "early", "label": "b"}]}).raise_for_status()
        client.delete("/v1/streams/s/samples/r7").raise_for_status()

        def write():  # in another stream
            with httpx.Client(base_url=server.url, timeout=SECONDS) as other:
                while not ends.is_set():
                    other.post("/v1/streams/other/predict", json={"rows": [{"features": {"x": 1}}]})

        writing = threading.Thread(target=write)
        writing.start()
        try:
            until(client, "/v1/streams/s", lambda shown: shown["forgotten"] == 1 and not shown["erasing"])
            until(client, "/v1/streams/keyed", lambda shown: shown["labels"] == n)
            assert run("backup", data, tmp_path / "backup")[0] == 0
        finally:
            ends.set()
            writing.join()
        expected, calls = answers(client, n), client.get("/v1/audit").json()
    server.kill()
    shutil.rmtree(data)
    shutil.copytree(tmp_path / "backup", tmp_path / "restored")
    server = Process("--data", tmp_path / "restored")
    with httpx.Client(base_url=server.url, timeout=SECONDS) as client:
        until(client, "/v2/health/ready", lambda told: told["ready"])
        assert answers(client, n) == expected
        assert client.get("/v1/audit").json() == calls
        assert client.get("/v1/streams/s/samples/r7").status_code == 404
    assert server.stop() == 0
    code, said = run("replay", tmp_path / "restored")
    assert (code, said.count("the same as the snapshot")) == (0, 3), said


def test_a_backup_replaces_nothing_and_says_what_is_missing(tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / FILE).write_bytes(b"")
    SqliteDatabase(tmp_path / "data").close()
    for arguments, says in (
        ([tmp_path / "data", tmp_path / "full"], "there is a log in"),
        ([tmp_path / "none", tmp_path / "copy"], "there is no log in"),
        (["postgresql://host/database", tmp_path / "copy"], "such as pg_dump"),
    ):
        code, said = run("backup", *arguments)
        assert (code, says in said) == (2, True), said
        assert "Traceback" not in said
    assert not (tmp_path / "copy").exists()


def test_a_log_that_is_damaged_is_not_backed_up(tmp_path):
    with served_here(tmp_path / "data") as http:
        http.put("/v1/streams/s", json={}).raise_for_status()
        http.post("/v1/streams/s/samples", json=rows(0, 5000, label=1)).raise_for_status()
    path = tmp_path / "data" / FILE
    content = bytearray(path.read_bytes())
    content[len(content) // 2 : len(content) // 2 + 40_000] = b"\xff" * 40_000
    path.write_bytes(content)
    with pytest.raises(log_database.DamagedError):
        back_up(tmp_path / "data", tmp_path / "copy")
    assert list((tmp_path / "copy").iterdir()) == []  # what is left would keep a disk full


@pytest.mark.parametrize("target", ["new", "there"])
def test_nobody_else_may_read_a_backup(tmp_path, target):
    SqliteDatabase(tmp_path / "data").close()
    (tmp_path / "there").mkdir(mode=0o755)
    umask = os.umask(0)
    try:
        back_up(tmp_path / "data", tmp_path / target)
    finally:
        os.umask(umask)
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / target).iterdir()} == {0o600}
    if target == "new":  # the mode of a folder that was there is its owner's choice
        assert (tmp_path / target).stat().st_mode & 0o777 == 0o700


def begun(folder, statement):
    """A log, and then this."""
    SqliteDatabase(folder).close()
    log = sqlite3.connect(folder / FILE)
    log.execute(statement)
    log.commit()
    log.close()


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ("UPDATE format SET version = 9", "the log is of format 9, and this version of devdan reads format"),
        ("DELETE FROM format", "the log has no format number"),
    ],
)
def test_a_log_of_another_format_is_told_in_a_line(tmp_path, statement, says):
    begun(tmp_path, statement)
    with pytest.raises(FormatError, match=says):
        SqliteDatabase(tmp_path)
    code, said = run("serve", "--data", tmp_path, "--port", "0")
    assert (code, says in said) == (2, True), said


def test_a_reader_of_another_format_is_told_in_a_line(tmp_path):
    begun(tmp_path, "UPDATE format SET version = 9")
    code, said = run("replay", tmp_path)
    assert (code, "the log is of format 9" in said) == (2, True), said


def test_an_older_log_is_brought_up_to_date_at_once_or_not_at_all(tmp_path, monkeypatch):
    begun(tmp_path, "INSERT INTO removed VALUES (77)")
    now = log_database.FORMAT
    monkeypatch.setattr(log_database, "FORMAT", now + 2)
    steps = {now: ("UPDATE removed SET stream = stream + 1",), now + 1: ("UPDATE missing SET stream = 0",)}
    monkeypatch.setattr(log_database, "MIGRATIONS", steps)
    with pytest.raises(log_database.DamagedError, match="no such table: missing"):
        SqliteDatabase(tmp_path)
    steps[now + 1] = ("UPDATE removed SET stream = 2 * stream",)
    for _ in range(2):  # once
        database = SqliteDatabase(tmp_path)
        assert database.own().execute("SELECT stream FROM removed") == [(2 * 78,)]
        assert database.own().execute("SELECT version FROM format") == [(now + 2,)]
        database.close()


def test_there_is_a_migration_from_each_format():
    assert sorted(log_database.MIGRATIONS) == list(range(1, log_database.FORMAT))


def test_a_log_of_an_older_format_goes_on_bit_for_bit(tmp_path, monkeypatch):
    with served_here(tmp_path / "data") as http:
        http.put("/v1/streams/s", json={}).raise_for_status()
        http.post("/v1/streams/s/samples", json=rows(0, 200, label=True)).raise_for_status()
        until(http, "/v1/streams/s", lambda shown: shown["labels"] == 200)
        said = http.post("/v1/streams/s/predict", json=rows(7, 1)).json()
    log = SqliteDatabase(tmp_path / "data", lock=False).connect()
    now = tables(log)
    age(log)
    assert tables(log) != now
    code, told = run("replay", tmp_path / "data")
    assert (code, f"the log is of format {BEFORE}" in told) == (2, True), told
    with pytest.raises(FormatError, match=f"the log is of format {BEFORE}"):  # there is no way from it
        SqliteDatabase(tmp_path / "data")
    monkeypatch.setattr(log_database, "MIGRATIONS", MIGRATIONS)
    with served_here(tmp_path / "data") as http:
        until(http, "/v1/streams/s", lambda shown: shown["state"] == "ready")
        assert http.post("/v1/streams/s/predict", json=rows(7, 1)).json()["predictions"] == said["predictions"]
        assert http.delete("/v1/streams/s/samples/r7").status_code == 200
        until(http, "/v1/streams/s", lambda shown: shown["forgotten"] == 1 and not shown["erasing"])
    assert tables(log) == now
    log.close()
    code, told = run("replay", tmp_path / "data")
    assert (code, "the same as the snapshot" in told) == (0, True), told
