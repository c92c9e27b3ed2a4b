"""Slow clients, half-open connections and TLS: what happens below HTTP."""

import json
import shutil
import socket
import ssl
import subprocess

import httpx
import pytest
from served import SECONDS, Process, served_here

from devdan.service.schema import Limits
from devdan.service.server import ListenError, listening


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
