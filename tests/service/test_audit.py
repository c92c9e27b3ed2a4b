"""The audit: which calls of administrators are written down, by which name, and that none goes without a trace."""

import pytest
from served import limit, served_here, until

from devdan.service import audit, sql
from devdan.service.auth import Tokens, TokensError
from devdan.service.store import SqliteDatabase

ALICE, OPS, SHOP = "a" * 20, "o" * 20, "s" * 20


@pytest.fixture
def http(tmp_path):
    path = tmp_path / "tokens"
    path.write_text(f"{ALICE} admin alice@example.com  # until May\n{OPS} admin,predict\n{SHOP} predict,label shop\n")
    with served_here(tmp_path / "data", tokens=Tokens(path), local_only=False) as opened:
        opened.headers["authorization"] = f"Bearer {ALICE}"
        yield opened


def calls(http, **query):
    answer = http.get("/v1/audit", params=query, headers={"authorization": f"Bearer {OPS}"})
    assert answer.status_code == 200
    return [
        (one["who"], one["what"], one["stream"], one["status"], one["detail"], one["times"])
        for one in answer.json()["calls"]
    ]


def test_who_has_done_what_with_what_outcome(http, tmp_path):
    ops, shop = ({"authorization": f"Bearer {token}"} for token in (OPS, SHOP))
    http.put("/v1/streams/s", json={})
    http.put("/v1/streams/s", json={"wait": 3}, headers=ops)
    http.put("/v1/streams/t", json={"wait": -1})
    http.post("/v1/streams/s/samples", json={"rows": [{"id": "secret", "features": {"x": 1}, "label": 1}]},
              headers=shop).raise_for_status()  # fmt: skip
    http.get("/v1/streams/s", headers=shop)
    version = http.delete("/v1/streams/s/samples/secret").json()["version"]
    http.delete("/v1/streams/s/samples/secret")
    http.get("/v1/streams/missing/model")
    http.post("/v1/streams/s/retry", headers=ops | {"content-type": "application/json"})
    http.delete("/v1/streams/s")
    http.delete("/v1/streams/no%00name")
    stream, sample = "/v1/streams/{stream}", "/v1/streams/{stream}/samples/{id}"
    assert calls(http) == [
        ("alice@example.com", f"DELETE {stream}", "", 422, "", 1),
        ("alice@example.com", f"DELETE {stream}", "s", 204, "", 1),
        ("line 2", f"POST {stream}/retry", "s", 202, "", 1),
        ("alice@example.com", f"GET {stream}/model", "missing", 404, "", 1),
        ("alice@example.com", f"DELETE {sample}", "s", 404, "", 1),
        ("alice@example.com", f"DELETE {sample}", "s", 200, f"record {version}", 1),
        ("alice@example.com", f"PUT {stream}", "t", 422, "", 1),
        ("line 2", f"PUT {stream}", "s", 409, "", 1),
        ("alice@example.com", f"PUT {stream}", "s", 201, "", 1),
    ]
    content = b"".join(path.read_bytes() for path in (tmp_path / "data").iterdir())
    assert not [token for token in (ALICE, OPS, SHOP) if token.encode() in content]


def test_without_tokens_it_is_the_address(tmp_path):
    with served_here(tmp_path / "data") as http:
        http.put("/v1/streams/s", json={})
        (call,) = http.get("/v1/audit").json()["calls"]
        assert (call["who"], call["what"], call["status"]) == ("127.0.0.1", "PUT /v1/streams/{stream}", 201)


def test_refusals_of_those_who_are_known_are_written_down_and_fill_nothing(http):
    http.put("/v1/streams/s", json={})
    for k in range(30):
        shop = {"authorization": f"Bearer {SHOP}"}
        assert http.delete(f"/v1/streams/s{k}", headers=shop).status_code == 403
        assert http.get("/v1/audit", headers=shop).status_code == 403
        assert http.delete("/v1/streams/s", headers={"authorization": "Bearer unknown"}).status_code == 401
        assert http.delete("/nowhere", headers=shop).status_code == 404
    assert calls(http) == [
        ("shop", "GET /v1/audit", "", 403, "", 30),
        ("shop", "DELETE /v1/streams/{stream}", "", 403, "", 30),
        ("alice@example.com", "PUT /v1/streams/{stream}", "s", 201, "", 1),
    ]


def test_the_oldest_entries_make_room_and_are_read_in_parts(http, monkeypatch):
    monkeypatch.setattr(audit, "KEPT", 5)
    for k in range(8):
        http.put(f"/v1/streams/s{k}", json={})
    found = http.get("/v1/audit").json()["calls"]
    assert [one["stream"] for one in found] == ["s7", "s6", "s5", "s4", "s3"]
    assert [one[2] for one in calls(http, before=found[2]["number"])] == ["s4", "s3"]
    assert http.get("/v1/audit", params={"before": "yesterday"}).status_code == 422


def test_a_call_that_cannot_be_written_down_is_not_made(http):
    http.put("/v1/streams/s", json={}).raise_for_status()
    engine = http.application.engine
    engine.writer.run_job(lambda connection: connection.execute("ALTER TABLE audit RENAME TO other")).result()
    engine.writer.run_job(lambda connection: connection.execute("CREATE VIEW audit AS SELECT * FROM other")).result()
    assert http.delete("/v1/streams/s").status_code == 503
    engine.writer.run_job(lambda connection: connection.execute("DROP VIEW audit")).result()
    engine.writer.run_job(lambda connection: connection.execute("ALTER TABLE other RENAME TO audit")).result()
    assert http.get("/v1/streams/s").status_code == 200
    limit(http, lambda now: now)
    assert http.put("/v1/streams/t", json={"columns": ["x" * 100 + str(k) for k in range(900)]}).status_code == 503
    assert http.get("/v1/streams/t").status_code == 404
    limit(http, lambda now: now + 10_000)
    assert [one[3] for one in calls(http)] == [503, 201]


def test_a_call_during_which_the_process_ends_has_no_outcome(tmp_path):
    database = SqliteDatabase(tmp_path / "log", "off")
    connection = database.connect()
    number = audit.begin(connection, 1.0, "alice", "DELETE /v1/streams/{stream}", "s")
    assert audit.calls(connection, None, 9) == [
        audit.AuditedCall(number, 1.0, "alice", "DELETE /v1/streams/{stream}", "s")
    ]
    audit.end(connection, number, 204, "")
    assert audit.calls(connection, None, 9)[0].status == 204
    connection.close()
    database.close()


def test_an_unexpected_error_is_its_outcome(http, monkeypatch):
    def broken(*_):
        raise RuntimeError("broken")

    monkeypatch.setattr(sql, "create_stream", broken)
    assert http.put("/v1/streams/s", json={}).status_code == 500
    assert calls(http)[0][3] == 500
    until(http, "/v1/streams", lambda shown: shown["streams"] == [])


@pytest.mark.parametrize("line", ["x" * 20 + " admin two words", "x" * 20 + " admin no/name"])
def test_a_name_is_one_word(tmp_path, line):
    (tmp_path / "tokens").write_text(line)
    with pytest.raises(TokensError, match="name"):
        Tokens(tmp_path / "tokens")
