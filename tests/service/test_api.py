"""The service over HTTP, in a thread of this process: all operations, limits, tokens, failures and hostile bodies."""

import base64
import hashlib
import json
import logging
import random
import re
import socket
import sqlite3
import string
import threading
from concurrent.futures import ThreadPoolExecutor

import msgspec
import numpy as np
import pytest
from changing import changing_frauds
from commandline import run
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from served import SECONDS, limit, metric, served_here, until, wait_until

from devdan import DEVDAN
from devdan.encoding.values import is_date_format
from devdan.kernel import LOG_TEMPERATURE, Network
from devdan.service import answers, sql
from devdan.service.auth import Tokens, TokensError
from devdan.service.database import UnavailableError
from devdan.service.engine import InitialModel
from devdan.service.schema import InvalidError, Limits
from devdan.service.server import ListenError, check_address


@pytest.fixture
def http(tmp_path):
    with served_here(tmp_path / "data") as opened:
        yield opened


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """One for all tests that leave nothing in it."""
    with served_here(tmp_path_factory.mktemp("shared") / "data") as opened:
        opened.put("/v1/streams/empty", json={})
        yield opened


@pytest.fixture
def stream(http):
    assert http.put("/v1/streams/s", json={}).status_code == 201
    return "/v1/streams/s"


def rows(*ids, x=1.0, city="Köln"):
    return {"rows": [{"id": id_, "features": {"x": x, "city": city}} for id_ in ids]}


def labels(**pairs):
    return {"labels": [{"id": id_, "label": label} for id_, label in pairs.items()]}


def test_from_a_row_to_its_late_label_and_a_prediction(http, stream):
    first = http.post(f"{stream}/predict", json=rows("a")).json()
    assert first["predictions"] == [{"id": "a", "label": None, "probabilities": {}}]
    assert "no label has been learned yet" in first["note"]
    assert http.get(f"{stream}/samples/a").json()["state"] == "waits for its label"
    assert http.post(f"{stream}/labels", json=labels(a="fraud")).json() == {
        "accepted": 1, "corrected": 0, "repeated": 0, "waiting": 0, "expired": 0,
    }  # fmt: skip
    until(http, stream, lambda shown: shown["classes"] == ["fraud"])
    second = http.post(f"{stream}/predict", json=rows("b")).json()
    after_one = pytest.approx(2 / 3)  # by the rule of succession: one label is no certainty
    assert second["predictions"] == [{"id": "b", "label": "fraud", "probabilities": {"fraud": after_one}}]
    assert second["version"] > first["version"]
    sample = http.get(f"{stream}/samples/a").json()
    assert (sample["state"], sample["label"]) == ("learned", "fraud")
    assert http.get(f"{stream}/samples/b").json()["predicted"] == "fraud"


def test_a_row_without_an_id_gets_one(http, stream):
    answer = http.post(f"{stream}/predict", json={"rows": [{"features": {"x": 1}}, {"features": {"x": 2}}]}).json()
    one, other = (said["id"] for said in answer["predictions"])
    assert one != other
    assert http.post(f"{stream}/labels", json=labels(**{one: 1, other: 0})).json()["accepted"] == 2


def test_labels_early_repeated_contradictory(http, stream):
    assert http.post(f"{stream}/labels", json=labels(z="ok")).json()["waiting"] == 1
    assert http.get(f"{stream}/samples/z").json()["state"] == "waits for its features"
    http.post(f"{stream}/predict", json=rows("z"))
    until(http, f"{stream}/samples/z", lambda sample: sample["state"] == "learned")
    assert http.post(f"{stream}/labels", json=labels(z="ok")).json()["repeated"] == 1
    answer = http.post(f"{stream}/labels", json=labels(z="fraud", y="ok"))
    assert answer.status_code == 409
    assert [one["id"] for one in answer.json()["refused"]] == ["z"]
    assert answer.json()["waiting"] == 1


def test_a_label_can_be_corrected(http, stream):
    http.post(f"{stream}/samples", json={"rows": [{"id": "a", "features": {"x": 1.0}, "label": "fraud"}]})
    until(http, f"{stream}/samples/a", lambda sample: sample["state"] == "learned")
    for counted in ("corrected", "repeated"):
        told = http.post(f"{stream}/labels", json=labels(a="ok") | {"replaces": True}).json()
        assert (told[counted], sum(told.values())) == (1, 1)
    shown = until(http, stream, lambda shown: shown["corrected"] == 1)
    assert (shown["labels"], shown["classes"]) == (1, ["fraud", "ok"])
    sample = until(http, f"{stream}/samples/a", lambda sample: sample["state"] == "learned")
    assert sample["label"] == "ok"
    assert http.post(f"{stream}/labels", json=labels(a="fraud")).status_code == 409
    assert http.post(f"{stream}/labels", json=labels(a="ok") | {"replaces": "yes"}).status_code == 422


def test_a_request_that_is_sent_again_changes_nothing(http, stream):
    http.post(f"{stream}/predict", json=rows("a"))
    again = http.post(f"{stream}/predict", json=rows("a"))
    assert again.json()["repeated"] == 1
    other = http.post(f"{stream}/predict", json=rows("a", x=2.0))
    assert (other.status_code, other.json()["refused"][0]["id"]) == (409, "a")


def test_samples_bring_rows_and_labels(http, stream):
    body = {"rows": [{"features": {"x": float(k)}, "label": k > 5} for k in range(10)]}
    answer = http.post(f"{stream}/samples", json=body).json()
    assert answer["accepted"] == 10
    shown = until(http, stream, lambda shown: shown["labels"] == 10)
    assert (shown["classes"], shown["waiting"], shown["columns"]) == ([False, True], 0, ["x"])
    said = http.post(f"{stream}/predict", json={"rows": [{"features": {"x": 9.0}}]}).json()["predictions"][0]
    assert set(said["probabilities"]) == {"false", "true"}


def test_batches_of_any_size_are_predicted_as_singles_are(http, stream):
    source = np.random.default_rng(0)
    X = source.random((1200, 3))
    taught = [{"features": dict(zip("abc", x, strict=True)), "label": int(x[0] > 0.5)} for x in X.tolist()]
    http.post(f"{stream}/samples", json={"rows": taught})
    until(http, stream, lambda shown: shown["labels"] == 1200)
    asked = [{"features": one["features"]} for one in taught]
    many = http.post(f"{stream}/predict", json={"rows": asked}).json()
    some = http.post(f"{stream}/predict", json={"rows": asked[:5]}).json()
    single = http.post(f"{stream}/predict", json={"rows": asked[:1]}).json()
    shares = [[one["probabilities"]["1"] for one in answer["predictions"]] for answer in (many, some, single)]
    assert shares[0][:5] == pytest.approx(shares[1], abs=0.2)  # rows were observed in between
    assert shares[0][0] == pytest.approx(shares[2][0], abs=0.2)
    right = [one["label"] == row["label"] for one, row in zip(many["predictions"], taught, strict=True)]
    assert np.mean(right) > 0.8


def test_answers_and_the_log_have_the_probabilities_of_the_model_file(http, stream, tmp_path):
    """Of a row alone and of rows together; labels are noisy, so that calibration makes a difference."""
    assert http.get(f"{stream}/model").status_code == 404
    source = random.Random(0)
    for n in range(50, 601, 50):
        x = [source.random() for _ in range(50)]
        taught = [{"features": {"x": own}, "label": int(own > 0.5 or source.random() < 0.3)} for own in x]
        http.post(f"{stream}/samples", json={"rows": taught}).raise_for_status()
        shown = until(http, stream, lambda shown, n=n: shown["labels"] == n)
    for ids in (["alone"], ["one", "other"]):
        until(http, stream, lambda now, version=shown["version"]: now["version"] >= version)
        (tmp_path / "m").write_bytes(http.get(f"{stream}/model").content)
        model = DEVDAN.load(tmp_path / "m")
        assert abs(Network(model.mixture_.networks[0]).calibration[LOG_TEMPERATURE]) > 0.05
        asked = [{"id": id_, "features": {"x": 0.3 + 0.1 * k}} for k, id_ in enumerate(ids)]
        answer = http.post(f"{stream}/predict", json={"rows": asked}).json()
        expected = model.predict_proba([row["features"] for row in asked])
        for id_, said, own in zip(ids, answer["predictions"], expected, strict=True):
            assert list(said["probabilities"].values()) == pytest.approx(own, abs=1e-12)
            assert http.get(f"{stream}/samples/{id_}").json()["confidence"] == pytest.approx(max(own), abs=1e-12)
        shown = {"version": answer["version"] + 1}


def test_streams_are_made_shown_and_deleted(http, stream):
    assert http.put("/v1/streams/s", json={}).status_code == 200
    assert http.put("/v1/streams/s", json={"wait": 5}).status_code == 409
    assert [one["stream"] for one in http.get("/v1/streams").json()["streams"]] == ["s"]
    http.post(f"{stream}/predict", json=rows("a"))
    assert http.delete("/v1/streams/s").status_code == 204
    assert http.get("/v1/streams/s").status_code == 404
    assert http.post(f"{stream}/predict", json=rows("a")).status_code == 404
    http.put("/v1/streams/s", json={})
    assert http.get(f"{stream}/samples/a").status_code == 404


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"options": {"n_hiden": 3}}, "options must be among"),
        ({"options": {"n_hidden": 0}}, "n_hidden must be an integer of at least 1"),
        ({"options": {"n_hidden": 10**9}}, "n_hidden must be at most"),
        ({"options": {"decide": {"fraud": {"budget": "100/day"}}}}, "divide the alerts of a day by the rows of a day"),
        ({"options": {"random_state": None}}, "random_state must be an integer"),
        ({"options": {"nominal": ["zip"]}, "columns": ["x"]}, "nominal names the column 'zip'"),
        ({"model": "RandomForest"}, "model must be one of DEVDAN"),
        ({"columns": ["x", "x"]}, "different names"),
        ({"columns": ["a\u0000"]}, "control characters"),
        ({"wait": -1}, "wait must be"),
        ({"max_waiting": 0}, "max_waiting must be"),
        ({"keyed": True, "model": "DEVDANEnsemble"}, "must be DEVDAN where rows have keys"),
        ({"keyed": True, "options": {"rehearse": 5}}, "rehearse"),
        ({"keyed": True, "options": {"decide": {"fraud": {"budget": 2}}}}, "divide the alerts of a day"),
        ({"wiat": 3}, "unknown field `wiat`"),
        ([], "Expected `object`"),
    ],
)
def test_settings_that_are_not_valid_are_named(shared, body, says):
    answer = shared.put("/v1/streams/s", json=body)
    assert (answer.status_code, says in answer.json()["error"]) == (422, True), answer.text


@pytest.mark.parametrize(
    ("path", "body", "says"),
    [
        ("predict", {"rows": []}, "at least one"),
        ("predict", {"rows": [{"features": {"x": [1]}}]}, "got `array` - at `$.rows[0].features"),
        ("predict", {"rows": [{"features": {"x": 1}, "key": "k"}]}, "must not have a key"),
        ("predict", {"rows": [{"features": {"x": 1}, "id": ""}]}, "length >= 1"),
        ("predict", {"rows": [{"features": {"x": 1}, "id": "a\nb"}]}, "control characters"),
        ("predict", {"rows": [{"features": {}}]}, "must have features"),
        ("labels", {"labels": [{"id": "a", "label": 1.5}]}, "Expected"),
        ("labels", {"labels": [{"id": "a", "label": 2**60}]}, "<= 9007199254740992"),
        ("labels", {"labels": [{"id": "a", "label": "x\u0000"}]}, "control characters"),
        ("samples", {"rows": [{"features": {"x": 1}}]}, "missing required field `label`"),
    ],
)
def test_bodies_that_are_not_valid_say_what_and_where(shared, path, body, says):
    answer = shared.post(f"/v1/streams/empty/{path}", json=body)
    assert (answer.status_code, says in answer.json()["error"]) == (422, True), answer.text


def test_too_much_is_refused(tmp_path):
    limits = Limits(body=2000, bodies=2500, rows=5, columns=3, streams=2, queued=10, listeners=0)
    with served_here(tmp_path / "data", limits=limits) as http:
        http.put("/v1/streams/s", json={})
        http.put("/v1/streams/t", json={})
        path = "/v1/streams/s/predict"
        assert http.put("/v1/streams/u", json={}).status_code == 413
        assert http.post(path, json=rows(*"abcdef")).status_code == 413
        assert http.post(path, json={"rows": [{"features": dict.fromkeys("abcd", 1)}]}).status_code == 413
        assert http.post(path, json=rows("a" * 150, "b" * 150, x=1.0, city="C" * 3000)).status_code == 413
        json_ = {"content-type": "application/json"}
        assert http.post(path, content=(b" " * 1000 for _ in range(5)), headers=json_).status_code == 413
        assert http.get("/v1/streams/s/events").status_code == 429
        service = http.application
        assert service.n_bytes == 0
        service.n_bytes += 2400  # as if others were being answered
        assert http.post(path, json=rows("a", city="C" * 500)).status_code == 429
        service.n_bytes -= 2400
        assert http.post(path, json=rows("a", city="C" * 500)).status_code == 200


def test_a_queue_that_is_full_says_when_to_come_again(tmp_path):
    with served_here(tmp_path / "data", limits=Limits(queued=3)) as http:
        http.put("/v1/streams/s", json={})
        http.application.engine.writer.queued += 3  # as if they were being written
        answer = http.post("/v1/streams/s/predict", json=rows("a"))
        assert (answer.status_code, answer.headers["retry-after"]) == (429, "1")
        http.application.engine.writer.queued -= 3
        assert http.post("/v1/streams/s/predict", json=rows("a")).status_code == 200


@pytest.mark.parametrize(("queued", "size", "fit"), [(100, 20, 2), (50_000, 1000, 22)])  # clients send a thousand
def test_large_requests_leave_room_for_small_ones_and_for_others(tmp_path, queued, size, fit):
    (tmp_path / "t").write_text(f"{'a' * 16} predict\n{'b' * 16} predict,admin\n")
    gate, many = threading.Event(), iter(range(10**6))
    with served_here(tmp_path / "data", limits=Limits(queued=queued), tokens=Tokens(tmp_path / "t")) as http:

        def post(token, n_rows):
            body = rows(*(f"r{next(many)}" for _ in range(n_rows)))
            return http.post("/v1/streams/s/predict", json=body, headers={"authorization": f"Bearer {token * 16}"})

        http.put("/v1/streams/s", json={}, headers={"authorization": f"Bearer {'b' * 16}"})
        engine, n = http.application.engine, fit + 6
        engine.writer.run_job(lambda connection: gate.wait(SECONDS))
        with ThreadPoolExecutor(n + 5) as pool:
            large = [pool.submit(post, "a", size) for _ in range(n)]
            wait_until(lambda: size * sum(one.done() for one in large) + engine.writer.queued == size * n)
            expected = engine.writer.queued + 4 + size // 2
            small, others = [pool.submit(post, "a", 1) for _ in range(4)], [pool.submit(post, "b", size // 2)]
            wait_until(lambda: engine.writer.queued == expected or any(one.done() for one in [*small, *others]))
            gate.set()
            assert [one.result().status_code for one in [*small, *others]] == [200] * 5
            assert sorted(one.result().status_code for one in large) == [200] * fit + [429] * 6
        assert not engine.rows_queued._own
        assert not http.application.bytes_answered._own


@pytest.mark.parametrize("unlogged", [False, True])
def test_a_full_disk_refuses_writes_and_recovers_by_itself(tmp_path, unlogged):
    with served_here(tmp_path / "data", predict_unlogged=unlogged) as http:
        http.put("/v1/streams/s", json={})
        http.post("/v1/streams/s/predict", json=rows("a"))
        limit(http, lambda pages: pages)
        big = rows(*(f"r{k}" for k in range(5000)))
        answer = http.post("/v1/streams/s/predict", json=big)
        if unlogged:
            assert answer.status_code == 200
            assert answer.json()["logged"] is False
        else:
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        many = labels(**{f"l{k}": "x" for k in range(5000)})
        assert http.post("/v1/streams/s/labels", json=many).status_code == 503
        assert http.get("/v1/streams/s/samples/r1").status_code == 404
        assert http.get("/v2/health/live").status_code == 200
        limit(http, lambda pages: 10**6)
        assert http.post("/v1/streams/s/predict", json=big).json().get("logged") is None
        assert http.get("/v1/streams/s/samples/r1").status_code == 200


def test_a_deleted_stream_leaves_nothing_even_if_the_server_ended_meanwhile(tmp_path):
    def left(http):
        job = http.application.engine.writer.run_job(lambda connection: connection.execute("SELECT id FROM samples"))
        return len(job.result())

    with served_here(tmp_path / "data") as http:
        for name in ("s", "t"):
            http.put(f"/v1/streams/{name}", json={})
            http.post(f"/v1/streams/{name}/predict", json=rows(*(f"r{k}" for k in range(1200))))

        def delete(connection):  # as a server does that is killed right after
            with connection.transaction():
                sql.delete_stream(connection, http.application.engine.streams["s"].number)

        http.application.engine.writer.run_job(delete).result()
        assert left(http) == 2400
    with served_here(tmp_path / "data") as http:
        wait_until(lambda: left(http) == 1200)
        http.delete("/v1/streams/t")
        wait_until(lambda: left(http) == 0)


def test_after_a_restart_everything_is_there(tmp_path):
    with served_here(tmp_path / "data") as http:
        http.put("/v1/streams/s", json={})
        http.post(
            "/v1/streams/s/samples", json={"rows": [{"features": {"x": k % 2}, "label": k % 2} for k in range(50)]}
        )
        http.post("/v1/streams/s/predict", json={"rows": [{"id": "late", "features": {"x": 1}}]})
    with served_here(tmp_path / "data") as http:
        shown = until(http, "/v1/streams/s", lambda shown: shown["labels"] == 50)
        assert shown["rows"] == 51
        assert http.post("/v1/streams/s/labels", json=labels(late=1)).json()["accepted"] == 1


def test_a_model_file_becomes_a_stream(tmp_path):
    table = [{"x": float(k % 2), "city": "Bonn"} for k in range(100)]
    DEVDAN(random_state=0).fit(table, ["odd" if k % 2 else "even" for k in range(100)]).save(tmp_path / "parity.devdan")
    for _ in range(2):  # it is there the second time
        with served_here(tmp_path / "data", model=InitialModel.of_file(tmp_path / "parity.devdan", "parity")) as http:
            shown = until(http, "/v1/streams/parity", lambda shown: shown["classes"])
            assert shown["columns"] == ["x", "city"]
            said = http.post("/v1/streams/parity/predict", json={"rows": [{"features": {"x": 1.0, "city": "Bonn"}}]})
            assert said.json()["predictions"][0]["label"] == "odd"


def test_a_model_with_a_column_that_cannot_be_is_refused_before_anything_is_stored(tmp_path):
    model = DEVDAN(random_state=0).fit([{"amount\n(EUR)": 1.0}, {"amount\n(EUR)": 2.0}], ["a", "b"])
    model.save(tmp_path / "m.devdan")
    with pytest.raises(InvalidError, match=r"m\.devdan cannot become a stream: the name of a column must not have"):
        InitialModel.of_file(tmp_path / "m.devdan", "m")
    code, said = run("serve", "--data", tmp_path / "data", "--port", "0", "--model", tmp_path / "m.devdan")
    assert (code, "must not have control characters" in said) == (2, True), said
    with served_here(tmp_path / "data") as http:
        assert http.get("/v1/streams").json() == {"streams": []}


@pytest.mark.parametrize(
    ("settings", "state", "says"),
    [
        (b"\xc1", "loading", "the settings of the stream 'bad' in the log cannot be read"),
        (b"\x81\xa7columns\x91\xa3x\ny", "in quarantine", "must not have control characters"),
        (b"\x81\xa5model\xa4none", "in quarantine", "model must be one of"),
    ],
)
def test_a_stream_that_cannot_be_read_keeps_no_other_from_work(tmp_path, settings, state, says):
    with served_here(tmp_path / "data") as http:
        for name in ("good", "bad"):
            http.put(f"/v1/streams/{name}", json={})
            http.post(f"/v1/streams/{name}/samples", json={"rows": [{"features": {"x": 1.0}, "label": "yes"}]})
            until(http, f"/v1/streams/{name}", lambda shown: shown["labels"] == 1)
    log = sqlite3.connect(tmp_path / "data" / "events.sqlite")
    log.execute("UPDATE streams SET settings = ? WHERE name = 'bad'", (settings,))
    log.commit()
    log.close()
    with served_here(tmp_path / "data") as http:
        shown = until(http, "/v1/streams/bad", lambda shown: shown["quarantine"])
        assert says in shown["quarantine"]
        answer = http.post("/v1/streams/bad/predict", json=rows("a"))
        assert (answer.status_code, says in answer.json()["error"]) == (503, True)
        until(http, "/v1/streams/good", lambda shown: shown["state"] == "ready")
        said = http.post("/v1/streams/good/predict", json={"rows": [{"features": {"x": 1.0}}]}).json()
        assert said["predictions"][0]["label"] == "yes"
        assert http.get("/v2/health/ready").status_code == 200
        assert http.put("/v1/streams/bad", json={"wait": 5.0}).status_code in (409, 503)
        assert http.delete("/v1/streams/bad").status_code == 204
        assert http.put("/v1/streams/bad", json={}).status_code == 201


@pytest.mark.parametrize("path", ["predict", "samples"])
def test_rows_that_would_need_too_much_memory_are_refused_before_they_are_logged(http, stream, path):
    """Within all limits of requests: 240 rows of 1,000 columns with 80 different texts each."""
    wide = [{"features": {f"c{c}": f"{c % 10}{k % 80}" for c in range(1000)}} for k in range(240)]
    label = {"label": 1} if path == "samples" else {}
    answer = http.post(f"{stream}/{path}", json={"rows": [row | label for row in wide]})
    assert answer.status_code == 422
    assert re.search(r"would need [\d,]+ MiB for [\d,]+ inputs, . classes, and may take 512", answer.json()["error"])
    assert http.get(stream).json()["columns"] is None
    taught = {"rows": [{"features": {"x": 1.0}, "label": 1}]}
    http.post(f"{stream}/samples", json=taught).raise_for_status()
    until(http, stream, lambda shown: shown["labels"] == 1)


@pytest.mark.parametrize("path", ["/v1/streams/s/predict", "/v1/streams/s/samples", "/v2/models/s/infer"])
def test_a_row_whose_texts_are_too_long_together_is_refused_before_it_is_logged(http, stream, path):
    """Each text may be as long; and other rows may."""
    http.post(f"{stream}/samples", json={"rows": [{"features": dict.fromkeys("abcde", "x"), "label": "l"}]})
    until(http, stream, lambda shown: shown["labels"] == 1)
    for text, says in (("\N{SNOWMAN}" * 60_000, "may have 262144 characters together, got 300000"), ("x" * 50_000, "")):
        texts = dict.fromkeys("abcde", text)
        sent = {"rows": [{"features": texts} | ({"label": "l"} if path.endswith("samples") else {})]}
        if path.endswith("infer"):
            tensors = [{"name": name, "shape": [1], "datatype": "BYTES", "data": [own]} for name, own in texts.items()]
            sent = {"inputs": tensors}
        answer = http.post(path, json=sent)
        assert (answer.status_code, says in answer.text) == (413 if says else 200, True)
    assert until(http, stream, lambda shown: shown["rows"] == 2)["problem"] is None


def test_options_that_would_need_too_much_memory_are_refused(shared):
    for body in (
        {"model": "DEVDANEnsemble", "options": {"scales": [[100_000, 0, 10_000_000, 0]] * 3}},
        {"model": "DEVDANEnsemble", "options": {"scales": [[1, 0, 10_000_000, 0]]}, "columns": list("abcdefgh")},
        {"options": {"n_hidden": 10_000}, "columns": [f"c{k}" for k in range(1000)], "max_memory": 100},
        {"options": {}, "columns": [f"c{k}" for k in range(1000)], "max_memory": 1},
    ):
        answer = shared.put("/v1/streams/large", json=body)
        assert (answer.status_code, "MiB" in answer.json()["error"]) == (422, True), answer.text
    assert shared.put("/v1/streams/large", json={"max_memory": 901}).status_code == 422


def test_a_stream_that_several_delete_at_once_is_deleted_by_one(http, stream):
    """The others are told that there is none; also where another server has deleted it."""
    go_on = threading.Event()
    http.application.engine.writer.run_job(lambda _: go_on.wait())  # until all have found it
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(http.delete, stream) for _ in range(8)]
        wait_until(lambda: http.application.engine.writer._queue.qsize() >= 8)
        go_on.set()
        assert sorted(one.result().status_code for one in asked) == [204, *[404] * 7]
    assert http.put(stream, json={}).status_code == 201


def test_requests_at_once_cannot_pass_the_limit_of_keys(tmp_path):
    with served_here(tmp_path / "data", limits=Limits(keys=4)) as http:
        http.put("/v1/streams/s", json={"keyed": True})

        def send(k):
            body = {"rows": [{"features": {"x": 1.0}, "key": key} for key in (f"{k}", f"{k}b")]}
            return http.post("/v1/streams/s/predict", json=body)

        with ThreadPoolExecutor(5) as pool:
            answers = list(pool.map(send, range(5)))
        assert sorted(answer.status_code for answer in answers)[:2] == [200, 200]
        assert {answer.status_code for answer in answers[2:]} <= {200, 413, 422}
        assert sum(answer.status_code == 200 for answer in answers) == 2
        until(http, "/v1/streams/s", lambda shown: shown["rows"] == 4)


def test_classes_and_probabilities_have_a_limit(tmp_path):
    with served_here(tmp_path / "data", limits=Limits(classes=5, probabilities=20)) as http:
        http.put("/v1/streams/s", json={})
        taught = [{"features": {"x": float(k)}, "label": f"c{k}"} for k in range(5)]
        http.post("/v1/streams/s/samples", json={"rows": taught}).raise_for_status()
        until(http, "/v1/streams/s", lambda shown: shown["labels"] == 5)
        answer = http.post("/v1/streams/s/labels", json=labels(z="another"))
        assert (answer.status_code, answer.json()["error"]) == (
            422, "a stream may have 5 classes, this one has 5, and 'another' is new",
        )  # fmt: skip
        before = http.get("/v1/streams/s").json()["rows"]
        answer = http.post("/v1/streams/s/samples", json={"rows": [taught[0], taught[1] | {"label": "another"}]})
        assert answer.status_code == 422
        assert http.get("/v1/streams/s").json()["rows"] == before
        assert http.post("/v1/streams/s/labels", json=labels(z="c1")).json()["waiting"] == 1
        answer = http.post("/v1/streams/s/predict", json={"rows": [{"features": {"x": 1.0}}] * 5})
        assert (answer.status_code, "send up to 4 rows" in answer.json()["error"]) == (413, True)
        assert http.post("/v1/streams/s/predict", json={"rows": [{"features": {"x": 1.0}}] * 4}).status_code == 200


def test_a_model_of_plain_numbers_says_so(tmp_path):
    DEVDAN(random_state=0).fit([[0.0], [1.0]] * 50, [0, 1] * 50).save(tmp_path / "n.devdan")
    with served_here(tmp_path / "data", model=InitialModel.of_file(tmp_path / "n.devdan", "n")) as http:
        until(http, "/v1/streams/n", lambda shown: shown["classes"])
        answer = http.post("/v1/streams/n/predict", json={"rows": [{"features": {"x0": "Bonn"}}]})
        assert (answer.status_code, "must hold numbers" in answer.json()["error"]) == (422, True)
        answer = http.post("/v1/streams/n/predict", json={"rows": [{"features": {"x0": 1.0}}]})
        assert answer.json()["predictions"][0]["label"] == 1


def test_streams_with_keys(tmp_path):
    with served_here(tmp_path / "data", limits=Limits(keys=2)) as http:
        assert http.put("/v1/streams/s", json={"keyed": True}).status_code == 201
        path = "/v1/streams/s/predict"
        assert "must have a key" in http.post(path, json=rows("a")).json()["error"]

        def of(key, id_, x):
            return {"id": id_, "key": key, "features": {"x": x}}

        taught = [of("m7", f"m{k}", k % 2) | {"label": k % 2} for k in range(100)]
        taught += [of("m8", f"n{k}", k % 2) | {"label": 1 - k % 2} for k in range(100)]
        http.post("/v1/streams/s/samples", json={"rows": taught}).raise_for_status()
        until(http, "/v1/streams/s", lambda shown: shown["labels"] == 200 and shown["keys"] == 2)
        said = http.post(path, json={"rows": [of("m7", "p", 1), of("m8", "q", 1)]}).json()["predictions"]
        assert [one["label"] for one in said] == [1, 0]  # each key has its own
        assert http.post(path, json={"rows": [of("m8", "p", 1)]}).status_code == 409
        assert http.post(path, json={"rows": [of("m9", "r", 1)]}).status_code == 413
        tensors = [{"name": "x", "shape": [1], "datatype": "FP64", "data": [1]}]
        tensors.append({"name": "key", "shape": [1], "datatype": "BYTES", "data": ["m8"]})
        answer = http.post("/v2/models/s/infer", json={"inputs": tensors}).json()
        assert answer["outputs"][0]["data"] == ["0"]
    with served_here(tmp_path / "data") as http:  # from a snapshot
        assert until(http, "/v1/streams/s", lambda shown: shown["labels"] == 200)["keys"] == 2


# --- Who may ask -------------------------------------------------------------------------------------------------

PREDICT, LABEL, ADMIN = "p" * 20, "l" * 20, "a" * 20


def bearer(token):
    return {"authorization": f"Bearer {token}"}


@pytest.fixture
def guarded(tmp_path):
    path = tmp_path / "tokens"
    path.write_text(f"# of the shop\n{PREDICT} predict\n{LABEL} label,predict\n{ADMIN} admin\n")
    with served_here(tmp_path / "data", tokens=Tokens(path), local_only=False) as http:
        http.tokens = path
        assert http.put("/v1/streams/s", json={}, headers=bearer(ADMIN)).status_code == 201
        yield http


def test_scopes(guarded):
    def status(method, path, token, body=None):
        return guarded.request(method, path, json=body, headers=bearer(token)).status_code

    assert status("POST", "/v1/streams/s/predict", PREDICT, rows("a")) == 200
    assert status("POST", "/v1/streams/s/predict", ADMIN, rows("b")) == 403
    assert status("POST", "/v2/models/s/infer", ADMIN, {}) == 403
    assert status("POST", "/v1/streams/s/labels", LABEL, labels(a="x")) == 200
    assert status("POST", "/v1/streams/s/labels", PREDICT, labels(a="x")) == 403
    assert status("POST", "/v1/streams/s/samples", PREDICT, {}) == 403
    assert status("GET", "/v1/streams/s/model", LABEL) == 403
    wait_until(lambda: status("GET", "/v1/streams/s/model", ADMIN) == 200)  # and the row is learned
    assert status("PUT", "/v1/streams/t", LABEL, {}) == 403
    assert status("DELETE", "/v1/streams/s", PREDICT) == 403
    assert status("GET", "/v1/streams/s", PREDICT) == 200


@pytest.mark.parametrize(
    "end", ["", "%0A", "%0D", "%0A%0A", "%00", "/", "//", "%2F", "%20", ";x", "?x", "%3F", "%E2%80%A8"]
)
def test_no_spelling_of_a_path_gives_a_token_more_than_its_scopes(guarded, end):
    """Nor does it name another sample."""
    guarded.post("/v1/streams/s/samples", json={"rows": [{"id": "a", "features": {"x": 1}, "label": 1}]},
                 headers=bearer(LABEL)).raise_for_status()  # fmt: skip
    asked = [one for one in guarded.application.operations if one.scope is not None]
    assert len(asked) >= 10
    for one in asked:
        path = one.shown_path.format(stream="s", id="a") + end
        for token, scopes in ((PREDICT, "predict"), (LABEL, "label, predict")):
            if one.scope not in scopes:
                answer = guarded.request(one.method, path, json=labels(a=1), headers=bearer(token))
                assert answer.status_code in (307, 403, 404, 405), (one.method, path, answer.text)
    if end:
        assert guarded.delete(f"/v1/streams/s/samples/a{end}", headers=bearer(ADMIN)).status_code == (
            200 if end == "?x" else 422 if end.startswith("%0") else 404
        )
    assert guarded.get("/v1/streams/s/samples/a", headers=bearer(LABEL)).status_code == (404 if end == "?x" else 200)


def test_without_a_token_there_is_nothing_to_see_but_health(guarded):
    for path in ("/", "/docs", "/openapi.json", "/metrics", "/v1/streams", "/v2", "/nothing"):
        answer = guarded.get(path)
        assert answer.status_code == 401, path
        assert answer.headers["www-authenticate"].startswith("Basic")
    assert guarded.get("/v1/streams", headers=bearer("x" * 20)).status_code == 401
    assert guarded.get("/v1/streams", headers={"authorization": "Basic !!"}).status_code == 401
    assert guarded.get("/v2/health/live").status_code == 200


def test_browsers_give_the_token_as_a_password(guarded):
    given = base64.b64encode(f"anybody:{PREDICT}".encode()).decode()
    assert guarded.get("/v1/streams", headers={"authorization": f"Basic {given}"}).status_code == 200


def test_tokens_change_without_a_restart(guarded):
    guarded.tokens.write_text("n" * 30 + " admin\n")
    assert guarded.get("/v1/streams", headers=bearer(PREDICT)).status_code == 401
    assert guarded.get("/v1/streams", headers=bearer("n" * 30)).status_code == 200
    guarded.tokens.write_text("half a li")  # somebody is writing it
    assert guarded.get("/v1/streams", headers=bearer("n" * 30)).status_code == 200


@pytest.mark.parametrize(
    ("text", "says"),
    [("", "has none"), ("short predict", "at least 16"), ("x" * 20, "its scopes"), ("x" * 20 + " all", "among")],
)
def test_a_file_of_tokens_that_is_not_valid_says_where(tmp_path, text, says):
    (tmp_path / "t").write_text(text)
    with pytest.raises(TokensError, match=says):
        Tokens(tmp_path / "t")


def test_tokens_that_can_be_read_on_their_way_are_warned_of(tmp_path):
    (tmp_path / "t").write_text("x" * 20 + " predict")
    tokens = Tokens(tmp_path / "t")
    check_address("127.0.0.1", tokens, False)
    check_address("0.0.0.0", tokens, True)
    with pytest.warns(UserWarning, match=r"not encrypted on their way to 0\.0\.0\.0.*--tls-certificate"):
        check_address("0.0.0.0", tokens, False)


def test_nobody_else_may_read_the_files_of_the_log(tmp_path):
    folder = tmp_path / "data"
    for _ in range(2):
        with served_here(folder) as http:
            http.put("/v1/streams/s", json={})
            assert {path.name for path in folder.iterdir()} >= {"events.sqlite", "events.sqlite-wal", "lock"}
            assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
            assert folder.stat().st_mode & 0o777 == 0o700
        (folder / "events.sqlite").chmod(0o644)  # as those of an earlier version


def test_a_client_that_leaves_is_told_in_a_line(tmp_path, caplog):
    with caplog.at_level(logging.INFO), served_here(tmp_path / "data") as http:
        http.put("/v1/streams/s", json={})
        with socket.create_connection(("127.0.0.1", http.port)) as connection:
            head = "POST /v1/streams/s/predict HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000\r\n\r\n{"
            connection.sendall(head.encode())
            wait_until(lambda: http.application.n_bytes > 0)
        wait_until(lambda: http.application.n_bytes == 0)
    told = [one for one in caplog.records if one.name != "httpx"]
    assert [one.getMessage() for one in told] == [
        "a client left before its POST /v1/streams/{stream}/predict was complete"
    ]
    assert not any(one.exc_info for one in told)


def test_what_could_not_be_read_is_not_said_to_be_written(tmp_path, monkeypatch):
    with served_here(tmp_path / "data") as http:
        http.put("/v1/streams/s", json={})

        async def fails(job):
            raise UnavailableError("away")

        monkeypatch.setattr(http.application.engine, "read", fails)
        monkeypatch.setattr(http.application.engine, "write", fails)
        said = http.get("/v1/streams/s/samples/a")
        assert (said.status_code, said.json()["error"].split(";")[0]) == (503, "the log cannot be read at present")
        said = http.delete("/v1/streams/s")
        assert (said.status_code, said.json()["error"].split(";")[0]) == (503, "the log cannot be written at present")


def test_pages_run_their_own_scripts_only_and_are_framed_by_none(shared):
    shared.put("/v1/streams/s", json={})
    for path in ("/", "/docs", "/live/s", "/v1/streams", "/nowhere"):
        answer = shared.get(path)
        policy = answer.headers["content-security-policy"]
        assert "unsafe" not in policy + answer.text, path
        assert policy.startswith("default-src 'none'; ")
        assert "frame-ancestors 'none'" in policy
        assert answer.headers.get_list("x-frame-options") == ["DENY"]
        for kind in ("script", "style"):
            for content in re.findall(rf"<{kind}>(.*?)</{kind}>", answer.text, re.DOTALL):
                digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
                assert f"{kind}-src 'sha256-{digest}'" in policy, path
        assert ' style="' not in answer.text


def test_without_tokens_only_this_machine_may_ask(shared):
    check_address("127.0.0.1", None)
    with pytest.raises(ListenError, match="--tokens"):
        check_address("0.0.0.0", None)
    assert shared.get("/v1/streams", headers={"host": "evil.example:80"}).status_code == 421
    assert shared.get("/v1/streams", headers={"host": "[::1]:8000"}).status_code == 200
    form = {"content-type": "text/plain"}
    assert shared.post("/v1/streams/s/labels", content=b"{}", headers=form).status_code == 415
    for origin, status in (("http://evil.example", 403), ("null", 403), (f"http://127.0.0.1:{shared.port}", 422)):
        answer = shared.post("/v1/streams/empty/labels", content=b"{}", headers={"origin": origin})
        assert answer.status_code == status, origin


# --- For tools ---------------------------------------------------------------------------------------------------


def test_the_documentation_page_has_all_operations_and_needs_no_network(shared):
    page, described = shared.get("/docs").text, shared.get("/openapi.json").json()
    assert not re.search(r"(src|href)=\"?(https?:)?//", page)
    for path, methods in described["paths"].items():
        for method, said in methods.items():
            assert f"<h2><code>{method.upper()} {path}</code></h2>" in page
            assert f'href="#{said["operationId"]}"' in page
            assert f'id="{said["operationId"]}"' in page
            assert said["summary"] in page
    for name in described["components"]["schemas"]:
        assert f'id="{name}"' in page
        assert "\n    " not in described["components"]["schemas"][name]["description"]


def test_the_document_describes_what_there_is(shared):
    """Each operation answers under its path and method; examples of bodies are valid; references lead somewhere."""
    described = shared.get("/openapi.json").json()
    operations = {(one.method, one.shown_path): one for one in shared.application.operations}
    schemas = described["components"]["schemas"]
    references = re.findall(r'"#/components/schemas/(\w+)"', json.dumps(described))
    assert set(references) <= set(schemas)
    assert len({said["operationId"] for methods in described["paths"].values() for said in methods.values()}) == 20
    for path, methods in described["paths"].items():
        for method, said in methods.items():
            names = {one["name"] for one in said["parameters"]}
            assert names == set(re.findall(r"{(\w+)}", path))
            known = {"stream": "described", "id": "a1"}
            content = said.get("requestBody", {}).get("content", {}).get("application/json")
            if path.endswith("events"):
                continue  # which has no end
            answer = shared.request(method.upper(), path.format(**known), json=content and content["example"])
            told = answer.json() if answer.content and "json" in answer.headers["content-type"] else None
            expected = {"200", *said["responses"]} if told is None or "error" not in told else {"404", "409"}
            assert str(answer.status_code) in expected, (path, method, answer.text)
            operation = operations[method.upper(), path]
            if operation.result is not None:
                own = said["responses"]["200"]["content"]["application/json"]
                assert own["schema"]["$ref"].rpartition("/")[2] in schemas
                msgspec.convert(own["example"], type(operation.result))
                if told is not None and "error" not in told:
                    msgspec.convert(told, type(operation.result))
            if content is not None:
                assert content["schema"]["$ref"].rpartition("/")[2] in schemas
                wrong = shared.request(method.upper(), path.format(**known), json={"nothing": 1})
                assert wrong.status_code == (404 if answer.status_code == 404 else 422)


def test_answers_are_of_the_documented_form_whatever_became_of_the_request(http, stream):
    def answer(path, body, kind, status=200):
        given = http.post(path, json=body)
        assert given.status_code == status, given.text
        return msgspec.convert(given.json(), kind)

    predict, infer = f"{stream}/predict", "/v2/models/s/infer"
    assert answer(predict, rows("a"), answers.Predictions).note
    assert answer(predict, rows("a"), answers.Predictions).repeated == 1
    assert answer(predict, rows("a", "b", x=7.0), answers.Predictions, 409).refused[0].id == "a"
    assert answer(f"{stream}/labels", labels(a="x", z="y"), answers.LabelCounts).waiting == 1
    assert answer(f"{stream}/labels", labels(a="y"), answers.LabelCounts, 409).refused[0].id == "a"
    sample = {"rows": [{"id": "c", "features": {"x": 1.0}, "label": "x"}]}
    assert answer(f"{stream}/samples", sample, answers.SampleCounts).ids == ["c"]
    until(http, stream, lambda shown: shown["labels"] == 2)
    (predicted,) = answer(predict, rows("d"), answers.Predictions).predictions
    assert predicted.label == "x"
    tensors = {"inputs": [{"name": "x", "shape": [1], "datatype": "FP64", "data": [1]}]}
    assert len(answer(infer, tensors, answers.Inferred).outputs) == 3
    msgspec.convert(http.get(f"{stream}/samples/z").json(), answers.SampleState)


def test_the_documentation_says_which_token_is_needed(guarded, shared):
    page = guarded.get("/docs", headers=bearer(PREDICT)).text
    assert 'id="authorize"' in page
    assert "needs a token with the scope predict" in page
    described = guarded.get("/openapi.json", headers=bearer(PREDICT)).json()
    assert described["security"] == [{"token": []}]
    assert described["components"]["securitySchemes"]["token"]["scheme"] == "bearer"
    assert described["paths"]["/v2/health/live"]["get"]["security"] == []
    assert "scope admin" in described["paths"]["/v1/streams/{stream}"]["put"]["description"]
    assert 'id="authorize"' not in shared.get("/docs").text
    assert {} in shared.get("/openapi.json").json()["security"]


def test_what_is_not_there_says_so_in_json(shared):
    for method, path, status in (("GET", "/nothing", 404), ("PATCH", "/v1/streams/empty", 405), ("HEAD", "/docs", 405)):
        answer = shared.request(method, path)
        assert answer.status_code == status
        assert answer.headers["content-type"] == "application/json"
        assert method == "HEAD" or answer.json()["error"]


def test_an_unexpected_error_is_answered_counted_and_logged(tmp_path, caplog, monkeypatch):
    """Without telling anything of the machine."""
    with served_here(tmp_path / "data") as http:
        monkeypatch.setattr(http.application.engine, "find", lambda name: 1 / 0)
        answer = http.get("/v1/streams/s")
        assert (answer.status_code, answer.json()) == (500, {"error": "internal error"})
        assert 'route="/v1/streams/{stream}",status="500"' in http.get("/metrics").text
    assert "ZeroDivisionError" in caplog.text


def test_metrics(http, stream):
    http.post(f"{stream}/predict", json=rows("a"))
    http.post(f"{stream}/labels", json=labels(a="x", b="y"))
    until(http, stream, lambda shown: shown["labels"] == 1)
    text = http.get("/metrics").text
    for line in (
        'devdan_rows_total{stream="s"} 1.0',
        'devdan_labels_received_total{outcome="waiting",stream="s"} 1.0',
        'devdan_requests_total{method="POST",route="/v1/streams/{stream}/predict",status="200"} 1.0',
        'devdan_label_delay_seconds_count{stream="s"} 1.0',
        'devdan_learning{stream="s"} 1.0',
    ):
        assert f"{line}\n" in text, line
    http.delete(stream)
    assert 'stream="s"' not in http.get("/metrics").text


def test_open_inference_protocol(http, stream):
    infer = "/v2/models/s/infer"
    assert http.get("/v2/health/ready").json() == {"ready": True}
    tensors = {"inputs": [
        {"name": "x", "shape": [2], "datatype": "FP64", "data": [0, 1]},
        {"name": "city", "shape": [2, 1], "datatype": "BYTES", "data": ["Bonn", "Köln"]},
    ], "id": "q"}  # fmt: skip
    assert http.post(infer, json=tensors).status_code == 409  # nothing is known yet, but the rows are kept
    http.post(f"{stream}/labels", json=labels(**{"q-0": "no", "q-1": "yes"}))
    until(http, stream, lambda shown: shown["labels"] == 2)
    answer = http.post(infer, json=tensors).json()
    outputs = {one["name"]: one for one in answer["outputs"]}
    assert answer["id"] == "q"
    assert outputs["id"]["data"] == ["q-0", "q-1"]
    assert outputs["probabilities"]["shape"] == [2, 2]
    assert [one["name"] for one in http.get("/v2/models/s").json()["inputs"]] == ["x", "city"]
    only = http.post(infer, json=tensors | {"outputs": [{"name": "label"}]}).json()["outputs"]
    assert [one["name"] for one in only] == ["label"]


def test_outputs_of_the_open_inference_protocol_have_thresholds(http):
    decide = {"fraud": {"threshold": 0.3}}
    http.put("/v1/streams/decided", json={"options": {"decide": decide}}).raise_for_status()
    taught = [{"features": {"x": 1.0}, "label": label} for label in ("fraud", "fine")]
    http.post("/v1/streams/decided/samples", json={"rows": taught}).raise_for_status()
    until(http, "/v1/streams/decided", lambda shown: shown["labels"] == 2)
    tensors = {"inputs": [{"name": "x", "shape": [1], "datatype": "FP64", "data": [1]}]}
    outputs = {one["name"]: one for one in http.post("/v2/models/decided/infer", json=tensors).json()["outputs"]}
    assert outputs["probabilities"]["parameters"] == {"classes": "fine, fraud", "thresholds": ", 0.3"}


@pytest.mark.parametrize("name", ["more", ["q"], None, {}])
def test_rows_of_a_request_with_unknown_outputs_are_not_kept(http, stream, name):
    tensors = {"inputs": [{"name": "x", "shape": [1], "datatype": "FP64", "data": [1]}], "id": "q"}
    said = http.post("/v2/models/s/infer", json=tensors | {"outputs": [{"name": name}]})
    assert (said.status_code, "outputs" in said.json()["error"]) == (422, True)
    assert http.get(f"{stream}/samples/q").status_code == 404


def test_no_way_to_write_dates_makes_a_server_error(shared):
    assert shared.put("/v1/streams/d", json={"options": {"dates": {"t": "%d%d"}}}).status_code == 422
    letters = string.ascii_letters + "%-:"
    for ways in ([f"%{one}%{other}" for other in letters] for one in letters):
        assert all(isinstance(is_date_format(way), bool) for way in ways)


# --- Hostile bodies ----------------------------------------------------------------------------------------------

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)
VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.just("2024-02-30"), st.just("$1")
)
FEATURES = st.dictionaries(st.sampled_from(["x", "city", "", "y" * 300, "\x00", "__proto__"]), VALUES, max_size=4)
ID = st.one_of(st.text(max_size=5), st.sampled_from(["a", "b", "c'; DROP TABLE samples", "<script>", "../../x", "%00"]))
LABEL_VALUES = st.one_of(st.text(max_size=3), st.integers(), st.booleans(), st.floats(), ANYTHING)
ROW = st.fixed_dictionaries({"features": FEATURES}, optional={"id": ID, "key": ID, "label": LABEL_VALUES})
TENSOR = st.fixed_dictionaries({
    "name": ID, "shape": st.lists(st.integers(-2, 3), max_size=3),
    "datatype": st.sampled_from(["FP64", "BYTES", "BOOL", "X"]), "data": st.lists(VALUES, max_size=4) | ANYTHING,
})  # fmt: skip
BODIES = st.one_of(
    ANYTHING,
    st.fixed_dictionaries({"rows": st.lists(ROW, max_size=3)}),
    st.fixed_dictionaries({"labels": st.lists(st.fixed_dictionaries({"id": ID, "label": LABEL_VALUES}), max_size=3)}),
    st.fixed_dictionaries({"inputs": st.lists(TENSOR, max_size=3)}, optional={"id": ID, "outputs": ANYTHING}),
    st.fixed_dictionaries({}, optional={
        "model": st.sampled_from(["DEVDAN", "DEVDANEnsemble"]) | st.text(), "wait": st.floats() | st.integers(),
        "columns": st.lists(ID) | ANYTHING, "keyed": ANYTHING, "max_waiting": st.integers(), "keep": ANYTHING,
        "options": st.dictionaries(st.sampled_from([
            "n_hidden", "masking", "scaling", "nominal", "dates", "class_weight", "scales",
            "initial_weights", "max_categories", "random_state",
        ]), ANYTHING, max_size=3),
    }),
)  # fmt: skip
ROUTES = st.sampled_from([
    ("PUT", "/v1/streams/{}"), ("GET", "/v1/streams/{}"), ("DELETE", "/v1/streams/{}"), ("PATCH", "/v1/streams/{}"),
    ("POST", "/v1/streams/{}/predict"), ("POST", "/v1/streams/{}/labels"), ("POST", "/v1/streams/{}/samples"),
    ("GET", "/v1/streams/{}/samples/x"), ("GET", "/v1/streams/s/samples/{}"), ("GET", "/v1/streams/{}/model"),
    ("POST", "/v2/models/{}/infer"), ("GET", "/v2/models/{}"), ("GET", "/{}"), ("GET", "/metrics"),
])  # fmt: skip
NAMES = st.sampled_from(["s", "s", "s", "t", "..", "a%2Fb", "%00", "ü", "x" * 70, "s%0d%0a"])


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory):
    with served_here(tmp_path_factory.mktemp("fuzzed") / "data") as http:
        http.put("/v1/streams/s", json={})
        yield http


@pytest.mark.fuzz
@settings(suppress_health_check=[HealthCheck.too_slow])
@given(ROUTES, NAMES, st.one_of(st.binary(max_size=30), BODIES.map(lambda body: json.dumps(body).encode())))
def test_no_body_makes_a_server_error(fuzzed, route, name, content):
    """What is refused says why, and nothing of the machine."""
    method, path = route
    answer = fuzzed.request(method, path.format(name), content=content, headers={"content-type": "application/json"})
    assert answer.status_code < 500, answer.text
    if answer.status_code >= 400:
        assert answer.json()["error"]
        assert str(fuzzed.application.engine.database.path.parent) not in answer.text
    engine = fuzzed.application.engine
    assert engine.problems() == {}
    assert engine.learner.is_alive()


def test_drifts_of_a_rare_class_are_in_answers_and_in_metrics(http):
    """Frauds are of another kind in the second half, and nothing else changes."""
    X, y = changing_frauds()
    http.put("/v1/streams/s", json={"options": {"random_state": 0}}).raise_for_status()
    for start in range(0, len(X), 500):
        part = slice(start, start + 500)
        rows = [
            {"id": f"r{start + k}", "features": dict(zip("abcd", x, strict=True))}
            for k, x in enumerate(X[part].tolist())
        ]
        http.post("/v1/streams/s/predict", json={"rows": rows}).raise_for_status()
        labels = [{"id": row["id"], "label": label} for row, label in zip(rows, y[part].tolist(), strict=True)]
        http.post("/v1/streams/s/labels", json={"labels": labels}).raise_for_status()
    shown = until(http, "/v1/streams/s", lambda shown: shown["labels"] == len(X))
    assert list(shown["drifts"]["classes"]) == ["fraud"]
    n = shown["drifts"]["classes"]["fraud"]
    assert 1 <= n <= shown["drifts"]["real"]
    assert f'devdan_class_drifts_total{{class="fraud",stream="s"}} {n:.1f}\n' in http.get("/metrics").text
    assert metric(http, "devdan_class_drifts_total") == n
