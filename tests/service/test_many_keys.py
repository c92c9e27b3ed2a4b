"""Streams with more keys than stay in memory: the log has their networks, and nothing else changes."""

import os
import random

import httpx
import numpy as np
import pytest
from keyed_logs import DECIDE, MOST, begun, by_hand, check_beside_a_fleet_by_hand, committed, features, label_of, saved
from served import SECONDS, Process, served_here, until, wait_until
from service_kills import killed_often

from devdan import DEVDANFleet
from devdan.fleet import saving
from devdan.model.modelfile import ModelFileError
from devdan.service import engine, sql
from devdan.service.database import StaleError, UnavailableError
from devdan.service.fold import Fold, latest
from devdan.service.predictor import NotFetchedError, Predictor
from devdan.service.replay import found, replayed
from devdan.service.sql import Snapshot
from devdan.service.store import SqliteDatabase


@pytest.fixture
def connection(tmp_path):
    database = SqliteDatabase(tmp_path / "log", "off")
    connection = database.connect()
    yield connection
    connection.close()
    database.close()


def learned(connection, number, fold, n, **own):
    """A fleet by hand, and the fold, after some commits."""
    fleet, source = by_hand(**own), random.Random(7)
    for k in range(n):
        committed(connection, number, fleet, source, k)
        for record in connection.records(number, fold.seq, 100):
            if fold.is_due:
                saved(connection, number, fold)
            fold.apply(record)
    return fleet


def test_it_is_a_fleet_by_hand_whatever_is_in_memory(connection, tmp_path):
    check_beside_a_fleet_by_hand(connection, tmp_path)


def test_rows_of_all_keys_are_decided_by_one_decision(connection):
    number = begun(connection, options={"decide": DECIDE}, max_in_memory=1000)
    fold = Fold.restored(connection, sql.streams(connection)[number], None)
    fleet, source = learned(connection, number, fold, 60, decide=DECIDE), random.Random(8)
    keys = list(fleet) * 20
    rows = [features(source, 3) for _ in keys]
    predictor = Predictor(fold.model, fold.columns, fold.seq)
    called = [one.label for one in predictor.many(rows, keys)]
    assert called == fleet.predict(keys, rows).tolist() != likeliest(fleet, keys, rows)
    assert predictor.thresholds == fleet.thresholds_


def likeliest(fleet, keys, rows):
    """The likeliest classes."""
    return fleet.classes_[fleet.predict_proba(keys, rows).argmax(axis=1)].tolist()


def test_a_snapshot_has_what_has_changed_and_any_reader_its_own(connection):
    """The oracle: whole copies of all networks, by snapshot."""
    source, now, copies, seq, base = random.Random(1), {}, {}, 0, 0
    number = begun(connection)
    for k in range(300):
        seq += source.randint(1, 3)
        changed = {f'"{source.randint(0, 20)}"': f"{k}-{j}".encode() for j in range(source.choice([0, 1, 3, 15]))}
        now |= changed
        copies[seq] = dict(now)
        with connection.transaction():
            sql.put_snapshot(connection, number, sql.LATEST, Snapshot(seq, 0.0, b"", b"", list(changed.items())))
            if source.random() < 0.15:
                sql.begin_with_latest(connection, number)
                base = seq
        *_, before, last = [0, 0, *copies]
        for one in {before, last, base} - {0}:
            assert sql.networks(connection, number, one, list(now)) == copies[one]
            assert dict(sql.all_networks(connection, number, one)) == copies[one]
        for one in copies.keys() - {before, last, base}:
            with pytest.raises(StaleError):
                sql.networks(connection, number, one, ["0"])
        ((rows,),) = connection.execute("SELECT COUNT(*) FROM networks")
        assert rows <= 3 * len(now)
    assert base > 0


def test_pages_of_networks_go_on_where_they_ended(connection, monkeypatch):
    monkeypatch.setattr(sql, "_AT_ONCE", 3)
    number, all_keys = begun(connection), {f"k{k}": bytes([k]) for k in range(20)}
    with connection.transaction():
        sql.put_snapshot(connection, number, sql.LATEST, Snapshot(5, 0.0, b"", b"", list(all_keys.items())))
    with connection.transaction():  # all keys of the first pages are new
        more = [(f"a{k}", b"new") for k in range(9)]
        sql.put_snapshot(connection, number, sql.LATEST, Snapshot(6, 0.0, b"", b"", more))
    assert dict(sql.all_networks(connection, number, 5)) == all_keys
    assert dict(sql.all_networks(connection, number, 6)) == all_keys | dict(more)


def test_what_cannot_be_read_changes_nothing(connection, monkeypatch):
    """The database is away while a record is learned: it is learned later, and counted once."""
    number = begun(connection)
    fold = Fold.restored(connection, sql.streams(connection)[number], None)
    fleet, source = learned(connection, number, fold, 60), random.Random(8)
    saved(connection, number, fold)
    fold, failures = latest(connection, sql.streams(connection)[number])[0], [0]

    def away(*_):
        failures[0] += 1
        raise UnavailableError("the database is away")

    for k in range(60, 80):
        committed(connection, number, fleet, source, k)
        for record in connection.records(number, fold.seq, 100):
            with monkeypatch.context() as patch:
                patch.setattr(sql, "networks", away)
                try:
                    fold.apply(record)
                    continue
                except UnavailableError:
                    pass
            fold.apply(record)
    assert failures[0] > 10
    assert saving.are_same(fold.model, fleet)
    saved(connection, number, fold)
    assert replayed(connection, sql.streams(connection)[number]).same is True


def test_a_predictor_has_what_it_was_made_of_while_snapshots_are_taken(connection):
    number = begun(connection)
    fold = Fold.restored(connection, sql.streams(connection)[number], None)
    fleet, source = learned(connection, number, fold, 80), random.Random(9)
    saved(connection, number, fold)
    predictor, asked = Predictor(fold.model, fold.columns, fold.seq), [*fleet, "new"]
    rows = [features(source, 3) for _ in asked]
    expected = fleet.predict_proba(asked, rows).tolist()
    missing = predictor.not_in_memory(asked)
    assert len(missing) > len(fleet) - 2 * MOST
    with pytest.raises(NotFetchedError):
        predictor.many(rows, asked)

    def fetched():
        return dict.fromkeys(missing, b"") | sql.networks(connection, number, predictor.snapshot_seq, missing)

    assert [one.probabilities for one in predictor.many(rows, asked, fetched())] == expected
    committed(connection, number, fleet, source, 80)
    for record in connection.records(number, fold.seq, 100):
        fold.apply(record)
    saved(connection, number, fold)
    missing = predictor.not_in_memory(asked)
    assert [one.probabilities for one in predictor.many(rows, asked, fetched())] == expected
    committed(connection, number, fleet, source, 81)
    for record in connection.records(number, fold.seq, 100):
        fold.apply(record)
    saved(connection, number, fold)
    with pytest.raises(StaleError):
        fetched()


def batch(source, n, k=0, n_keys=100):
    return [
        {"id": f"{k}-{j}", "key": f"k{source.randrange(n_keys)}", "features": features(source, 3)} for j in range(n)
    ]


def test_a_service_predicts_as_a_fleet_does_also_after_a_restart(tmp_path, monkeypatch):
    source, fleet, settings = random.Random(4), by_hand(), {"keyed": True, "max_in_memory": MOST}
    with served_here(tmp_path / "data") as http:
        http.put("/v1/streams/s", json=settings).raise_for_status()
        for k in range(10):
            rows = batch(source, 100, k)
            labelled = [row | {"label": label_of(row["features"])} for row in rows]
            http.post("/v1/streams/s/samples", json={"rows": labelled}).raise_for_status()
            own, dicts = [row["key"] for row in rows], [row["features"] for row in rows]
            fleet.observe(own, dicts).teach(own, dicts, [label_of(row) for row in dicts])
        until(http, "/v1/streams/s", lambda shown: shown["labels"] == 1000)
        assert http.get("/v1/streams/s").json()["keys"] == len(fleet) == 100
    with served_here(tmp_path / "data", snapshots=0.0) as http:
        until(http, "/v1/streams/s", lambda shown: shown["state"] == "ready")
        for k in range(3):  # snapshots in which no network has changed
            http.post("/v1/streams/s/labels", json={"labels": [{"id": f"early{k}", "label": "big"}]}).raise_for_status()
            wait_until(
                lambda n=k: asked_of(http, "SELECT MAX(seq) FROM records WHERE stream = 1")[0][0] == snapshot_of(http)
            )
        asked = batch(source, 300, "asked", 110)
        own, dicts = [row["key"] for row in asked], [row["features"] for row in asked]
        expected = fleet.predict_proba(own, dicts)
        find, trouble = sql.networks, [StaleError("old"), StaleError("old"), None, StaleError("old")]

        def troubled(*given, **named):
            problem = trouble.pop() if trouble else None
            if problem is not None:
                raise problem
            return find(*given, **named)

        with monkeypatch.context() as patch:
            patch.setattr(engine.sql, "networks", troubled)
            answer = http.post("/v1/streams/s/predict", json={"rows": asked})
        assert answer.status_code == 200, answer.text
        said = answer.json()["predictions"]
        assert [list(one["probabilities"].values()) for one in said] == expected.tolist()
        fleet.observe(own, dicts)
        until(http, "/v1/streams/s", lambda shown: shown["rows"] == 1300)
        wait_until(lambda: snapshot_of(http) == http.get("/v1/streams/s").json()["version"])
        (tmp_path / "file").write_bytes(http.get("/v1/streams/s/model").content)
        assert saving.are_same(DEVDANFleet.load(tmp_path / "file"), fleet)
    connection = SqliteDatabase(tmp_path / "data", lock=False).connect()
    assert replayed(connection, found(connection, "s")[0]).same is True
    connection.close()
    with served_here(tmp_path / "data") as http:
        http.delete("/v1/streams/s").raise_for_status()
        wait_until(lambda: not asked_of(http, "SELECT * FROM networks"))


def asked_of(http, statement):
    return http.application.engine.writer.run_job(lambda connection: connection.execute(statement)).result()


def snapshot_of(http):
    return asked_of(http, "SELECT MAX(seq) FROM snapshots")[0][0]


def test_only_networks_that_have_changed_are_written(tmp_path):
    source = random.Random(5)
    with served_here(tmp_path / "data", snapshots=0.0) as http:
        http.put("/v1/streams/s", json={"keyed": True}).raise_for_status()
        rows = [{"key": f"k{k}", "features": features(source, 3), "label": k % 2} for k in range(100)]
        http.post("/v1/streams/s/samples", json={"rows": rows}).raise_for_status()
        until(http, "/v1/streams/s", lambda shown: shown["labels"] == 100)
        for k in range(3):
            wait_until(lambda: snapshot_of(http) == asked_of(http, "SELECT MAX(seq) FROM records")[0][0])
            last = snapshot_of(http)
            asked = {"rows": [{"key": f"k{k}", "features": features(source, 3)}]}
            http.post("/v1/streams/s/predict", json=asked).raise_for_status()
            wait_until(lambda now=last: snapshot_of(http) > now)
            written = asked_of(http, "SELECT key FROM networks WHERE seq = (SELECT MAX(seq) FROM networks)")
            assert written == [(f'"k{k}"',)]
        assert asked_of(http, "SELECT COUNT(*) FROM networks WHERE key <> '\"k2\"'") == [(99,)]  # none is there twice


@pytest.mark.parametrize("damage", [b"", b"\x94", bytes(300), None])
def test_a_network_that_is_damaged_is_never_used(connection, damage):
    number = begun(connection)
    fold = Fold.restored(connection, sql.streams(connection)[number], None)
    fleet = learned(connection, number, fold, 40)
    saved(connection, number, fold)
    contents = dict(connection.execute("SELECT key, content FROM networks ORDER BY seq"))
    for text, content in contents.items():
        if damage is None:  # words of the state
            flipped = bytearray(content)
            flipped[-8 * 40 :] = np.full(40, np.nan).tobytes()
            flipped[-2000:-1000] = os.urandom(1000)
        wrong = bytes(flipped) if damage is None else damage
        connection.execute("UPDATE networks SET content = ? WHERE key = ?", (wrong, text))
    fold = latest(connection, sql.streams(connection)[number])[0]
    for key in fleet:
        with pytest.raises(ModelFileError):
            fold.model.predict_proba([key], [features(random.Random(1), 3)])


def test_after_kills_with_more_keys_than_stay_in_memory_everything_counts_once(tmp_path):
    arguments, log = ["--data", tmp_path, "--snapshots", "0.2"], lambda: SqliteDatabase(tmp_path, lock=False)
    settings = {"keyed": True, "max_in_memory": MOST}
    n_rows, n_labels = killed_often(arguments, log, 2, 6, settings=settings)
    assert n_rows > n_labels > 0


@pytest.mark.slow
@pytest.mark.parametrize("keep", [None, 1])
def test_tens_of_kills_with_more_keys_than_stay_in_memory(tmp_path, keep):
    arguments, log = ["--data", tmp_path, "--snapshots", "0.2"], lambda: SqliteDatabase(tmp_path, lock=False)
    killed_often(arguments, log, 40, 7, settings={"keyed": True, "max_in_memory": MOST, "keep": keep})


@pytest.mark.slow
def test_keys_beyond_those_in_memory_take_none(tmp_path):
    """Ten times as many keys, in a process whose memory has stopped to grow."""
    source, used = random.Random(1), []
    server = Process("--data", tmp_path)
    with httpx.Client(base_url=server.url, timeout=SECONDS) as http:
        http.put("/v1/streams/s", json={"keyed": True, "max_in_memory": 1000}).raise_for_status()
        for k in range(100):
            rows = [row | {"key": f"k{k}-{place}", "label": 1} for place, row in enumerate(batch(source, 1000, k))]
            http.post("/v1/streams/s/samples", json={"rows": rows}).raise_for_status()
            until(http, "/v1/streams/s", lambda shown, n=1000 * (k + 1): shown["labels"] == n)
            used.append(server.memory())
        assert http.get("/v1/streams/s").json()["keys"] == 100_000
        for _ in range(50):
            asked = {"rows": batch(source, 20, source.random())}
            for row in asked["rows"]:
                row["key"] = f"k{source.randrange(100)}-{source.randrange(1000)}"
            http.post("/v1/streams/s/predict", json=asked).raise_for_status()
        used.append(server.memory())
    server.kill()
    assert used[-1] < used[9] + 64 * 2**20
