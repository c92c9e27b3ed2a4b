"""Slow clients, half-open connections and TLS: what happens below HTTP."""

import asyncio
import json
import select
import shutil
import socket
import ssl
import subprocess
import sys
from contextlib import ExitStack, suppress

import httpx
import pytest
from served import SECONDS, Process, served_here, wait_until

from devdan.service.schema import Limits
from devdan.service.server import ListenError, _Protocol, listening


@pytest.fixture(scope="module")
def http(tmp_path_factory):
    with served_here(tmp_path_factory.mktemp("served") / "data", limits=Limits(seconds=0.5)) as opened:
        yield opened


def connected(http):
    connection = socket.create_connection(("127.0.0.1", http.port))
    connection.settimeout(SECONDS)
    return connection


def is_cut_off(connection):
    """Whether the server ends the connection; if it never does, receiving runs into its time limit."""
    try:
        while connection.recv(1 << 16):
            pass
    except ConnectionError:
        pass
    return True


@pytest.mark.parametrize(
    "beginning",
    [
        b"",
        b"GET /v1/streams HTTP/1.1\r\nhost: localhost\r\nx-slow",
        b"POST /v1/streams/s/predict HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000\r\n\r\n{",
        b"GET /v2 HTTP/1.1\r\nhost: localhost\r\n\r\nGET /v2 HTTP/1.1\r\nhost",  # a second one that is slow
    ],
)
def test_a_request_that_does_not_arrive_is_cut_off(http, beginning):
    with connected(http) as connection:
        connection.sendall(beginning)
        assert is_cut_off(connection)


BODY = b'{"rows": [{"features": {"x": 1.0}}]}'
POST = b"POST /v1/streams/s/predict HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n\r\n"


@pytest.mark.parametrize(
    "behind",
    [
        POST % 1000,  # its headers came, so that it waits for its turn
        POST % 1000 + b"{",
        POST % len(BODY) + BODY + POST % 1000 + b"{",
    ],
)
def test_a_second_request_has_no_more_time_to_arrive_than_the_first(http, behind):
    http.put("/v1/streams/s", json={})
    with connected(http) as connection:
        connection.sendall(POST % len(BODY) + BODY + behind)
        assert is_cut_off(connection)


def test_bytes_between_requests_do_not_keep_a_connection(http):
    with connected(http) as connection:
        connection.settimeout(0.05)
        is_open = True
        while is_open:
            try:
                connection.sendall(b"\r\n")
                is_open = connection.recv(1000) != b""
            except TimeoutError:
                pass
            except ConnectionError:
                is_open = False


def test_a_request_that_waits_for_its_turn_is_not_cut_off(http, monkeypatch):
    """An answer may take longer than a request may take to arrive."""
    http.put("/v1/streams/s", json={})
    answer = http.application.engine.predict_and_log

    async def slowly(*given):
        await asyncio.sleep(1.0)
        return await answer(*given)

    monkeypatch.setattr(http.application.engine, "predict_and_log", slowly)
    with connected(http) as connection:
        connection.sendall((POST % len(BODY) + BODY) * 3)
        came = b""
        while came.count(b"HTTP/1.1 200") < 3:
            part = connection.recv(1 << 16)
            assert part
            came += part


@pytest.mark.parametrize(
    "endless",
    [
        b"GET /v2 HTTP/1.1\r\nhost: localhost\r\n" + b"x-more: " + b"y" * 1000 + b"\r\n",
        b"GET /v2 HTTP/1.1\r\nhost: localhost\r\nx-long: ",
        b"GET /",
        b"POST /v2 HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n1;",
        b"POST /v2 HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nx-trailer: ",
    ],
    ids=["headers", "a header", "a path", "a chunk's extension", "a trailer"],
)
def test_a_request_without_an_end_is_not_kept(http, endless, monkeypatch):
    """It is refused before a token is asked for, and long before its time is over."""
    monkeypatch.setattr(_Protocol, "_seconds", 3600.0)
    with connected(http) as connection:
        n_sent, more = 0, endless[-1010:] if endless.endswith(b"\n") else b"z" * 1000
        with suppress(ConnectionError):
            connection.sendall(endless)
            while n_sent < 2**26:
                connection.sendall(more)
                n_sent += len(more)
        assert n_sent < 2**24
        assert is_cut_off(connection)


def test_long_headers_and_small_chunks_are_no_abuse(http):
    http.put("/v1/streams/s", json={})
    assert http.get("/v2", headers={"x-long": "y" * 30_000}).status_code == 200
    body = json.dumps({"rows": [{"features": {"x": 1.0}}] * 2000}).encode()
    parts = (body[start : start + 10] for start in range(0, len(body), 10))
    headers = {"content-type": "application/json"}
    assert http.post("/v1/streams/s/predict", content=parts, headers=headers).status_code == 200


def test_more_requests_at_once_than_a_connection_may_have_wait_for_their_turn(http):
    with connected(http) as connection:
        connection.sendall(b"GET /v2 HTTP/1.1\r\nhost: localhost\r\n\r\n" * 1000)
        assert is_cut_off(connection)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="127.0.0.2 is this machine on Linux only")
def test_one_address_leaves_connections_for_others(http, monkeypatch):
    monkeypatch.setattr("devdan.service.server._CONNECTIONS", 20)
    monkeypatch.setattr(_Protocol, "_seconds", 3600.0)
    open_now = http.server.server_state.connections
    with ExitStack() as stack:

        def opened(address, n):
            own = [socket.create_connection(("127.0.0.1", http.port), SECONDS, (address, 0)) for _ in range(n)]
            return [stack.enter_context(connection) for connection in own]

        wait_until(lambda: len(open_now) <= 1)  # those of other tests are gone
        refused = 5 + len(open_now)
        connections = opened("127.0.0.1", 15)
        wait_until(lambda: len(select.select(connections, [], [], 0)[0]) == refused)
        assert {one.recv(12) for one in select.select(connections, [], [], 0)[0]} == {b"HTTP/1.1 503"}
        assert len(open_now) == 10
        opened("127.0.0.2", 3)
        wait_until(lambda: len(open_now) == 13)


def test_an_answer_that_nobody_takes_is_cut_off(http):
    http.put("/v1/streams/large", json={})
    rows = [{"id": f"{k:0190}", "features": {"x": 1.0}} for k in range(10_000)]
    body = json.dumps({"rows": rows}).encode()
    before = len(http.server.server_state.connections)
    with connected(http) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        head = b"POST /v1/streams/large/predict HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n\r\n" % len(body)
        connection.sendall((head + body) * 4)  # their answers have some nine megabytes, which no buffer holds
        taken = connection.recv(100)
        assert taken.startswith(b"HTTP/1.1 200")
        while len(http.server.server_state.connections) > before:  # until it is closed
            http.get("/v2/health/live")


def test_others_are_served_meanwhile_and_listeners_stay(http):
    http.put("/v1/streams/s", json={})
    with http.stream("GET", "/v1/streams/s/events") as events:
        lines = events.iter_lines()
        assert next(lines).startswith("data: ")
        for k in range(4):  # longer than a request may take to arrive
            http.post("/v1/streams/s/predict", json={"rows": [{"id": f"r{k}", "features": {"x": 1.0}}]})
            assert any(line.startswith("data: ") for line in lines)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_a_request_to_upgrade_stays_within_the_limits(tmp_path, monkeypatch):
    """Also where there is a package for websockets, whose protocol would take the connection over."""
    monkeypatch.setitem(sys.modules, "websockets", sys)
    with served_here(tmp_path / "data", limits=Limits(seconds=0.5)) as http:
        assert http.server.config.ws_protocol_class is None
        headers = {"connection": "upgrade", "upgrade": "websocket", "sec-websocket-version": "13"}
        answer = http.get("/v1/streams", headers={**headers, "sec-websocket-key": "AAAAAAAAAAAAAAAAAAAAAA=="})
        assert (answer.status_code, answer.json()) == (200, {"streams": []})


def test_tls(tmp_path):
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate, "-days", "1",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"],
        check=True, capture_output=True,
    )  # fmt: skip
    server = Process("--data", tmp_path / "data", "--tls-certificate", certificate, "--tls-key", key)
    trusted = ssl.create_default_context(cafile=str(certificate))
    assert server.url.startswith("https://")
    assert httpx.get(f"{server.url}/v2/health/live", verify=trusted, timeout=SECONDS).json() == {"live": True}
    with pytest.raises(httpx.HTTPError):
        httpx.get(f"{server.url.replace('https', 'http')}/v2/health/live", timeout=SECONDS)
    server.kill()


def test_a_port_that_is_taken_is_told_with_what_helps():
    with listening("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ListenError, match=rf"another program listens on 127\.0\.0\.1, port {port}; --port"):
            listening("127.0.0.1", port)


def test_an_address_of_another_machine_is_refused():
    with pytest.raises(ListenError, match=r"cannot listen on 192\.0\.2\.1, port 0"):
        listening("192.0.2.1", 0)
