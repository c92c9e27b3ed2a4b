"""Downloads against a server on this machine: broken, changed, refused, and whole in the end."""

import errno
import hashlib
import json
import os
import threading
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest
from archives import rlcps

from devdan.streams import download as module
from devdan.streams import entries
from devdan.streams.download import FetchError, fetch

CONTENT = bytes(range(256)) * 4000


class Server:
    """What the server has, how it behaves, and what it was asked."""

    def __init__(self):
        self.content, self.tag, self.ranges = CONTENT, '"1"', True
        self.cuts, self.statuses = [], []  # of the next answers: after how many bytes they break; what they are
        self.requests = []
        self.in_the_middle = None  # called after half of the bytes

    def answer(self, request):
        self.requests.append(dict(request.headers))
        if self.statuses:
            request.send_response(self.statuses.pop(0))
            request.send_header("Content-Length", "0")
            request.end_headers()
            return
        start, asked = 0, request.headers.get("Range")
        if asked and self.ranges and request.headers.get("If-Range", self.tag) == self.tag:
            start = int(asked.removeprefix("bytes=").removesuffix("-"))
        if start >= len(self.content) > 0:
            request.send_response(416)
            request.send_header("Content-Range", f"bytes */{len(self.content)}")
            request.send_header("Content-Length", "0")
            request.end_headers()
            return
        request.send_response(206 if start else 200)
        if start:
            request.send_header("Content-Range", f"bytes {start}-{len(self.content) - 1}/{len(self.content)}")
        if self.tag:
            request.send_header("ETag", self.tag)
        body = self.content[start:]
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        if self.cuts:
            request.wfile.write(body[: self.cuts.pop(0)])
            request.close_connection = True
            return
        request.wfile.write(body[: len(body) // 2])
        if self.in_the_middle:
            request.wfile.flush()
            self.in_the_middle()
        request.wfile.write(body[len(body) // 2 :])


@contextmanager
def running(server):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            if self.path == "/elsewhere":
                self.send_response(302)
                self.send_header("Location", "/file")
                self.send_header("Content-Length", "0")
                self.end_headers()
            else:
                server.answer(self)

        def log_message(self, *_):
            pass

    class Listening(ThreadingHTTPServer):
        def handle_error(self, *_):
            """Say nothing of clients that hang up, as one does whose disk is full."""

    with Listening(("127.0.0.1", 0), Handler) as listening:
        thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.server_port}/file"
        finally:
            listening.shutdown()
            thread.join()


@pytest.fixture
def server():
    return Server()


@pytest.fixture
def url(server):
    with running(server) as address:
        yield address


@pytest.fixture(autouse=True)
def _quick_and_with_a_checksum_of_ours(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("DEVDAN_DATA", raising=False)
    monkeypatch.setattr(module, "_PAUSE", 0.001)
    _expect(monkeypatch, CONTENT)


def _expect(monkeypatch, content):
    entry = replace(entries.ENTRIES["kddcup"], sha256=hashlib.sha256(content).hexdigest())
    monkeypatch.setitem(entries.ENTRIES, "kddcup", entry)


def parts(folder):
    """The names of the files there, in order."""
    return sorted(path.name for path in folder.iterdir())


FINAL, PART = "kddcup.data_10_percent.gz", "kddcup.data_10_percent.gz.part"


def test_a_whole_download_follows_redirects_tells_its_progress_and_is_not_repeated(server, url, tmp_path):
    seen = []
    folder = tmp_path / "new" / "folder"
    redirected = url.replace("/file", "/elsewhere")
    path = fetch("kddcup", folder, url=redirected, progress=lambda *how_far: seen.append(how_far))
    assert path == folder / FINAL
    assert path.read_bytes() == CONTENT
    assert parts(folder) == [FINAL]
    assert (seen[0], seen[-1]) == ((0, len(CONTENT)), (len(CONTENT), len(CONTENT)))
    assert seen == sorted(seen)
    n_requests = len(server.requests)
    assert fetch("kddcup", folder, url=url) == path
    assert len(server.requests) == n_requests


def test_the_final_name_appears_only_when_all_is_there(server, url, tmp_path):
    there = []
    server.in_the_middle = lambda: there.append((tmp_path / FINAL).exists())
    fetch("kddcup", tmp_path, url=url)
    assert there == [False]


def test_a_broken_connection_goes_on_where_it_broke(server, url, tmp_path):
    server.cuts = [300_000, 400_000]
    assert fetch("kddcup", tmp_path, url=url).read_bytes() == CONTENT
    assert [request.get("Range") for request in server.requests] == [None, "bytes=300000-", "bytes=700000-"]
    assert server.requests[1]["If-Range"] == '"1"'


def test_the_next_call_goes_on_where_the_last_one_gave_up(server, url, tmp_path):
    server.cuts = [300_000] + [0] * (module._ATTEMPTS - 1)
    with pytest.raises(
        FetchError, match=r"300,000 bytes are kept; .* run the same command again to continue"
    ) as caught:
        fetch("kddcup", tmp_path, url=url)
    assert "\n" not in str(caught.value)
    assert parts(tmp_path) == [PART, PART + ".json"]
    with httpx.Client() as client:
        assert fetch("kddcup", tmp_path, url=url, client=client).read_bytes() == CONTENT
        assert not client.is_closed
    assert server.requests[-1]["Range"] == "bytes=300000-"
    assert parts(tmp_path) == [FINAL]


def test_tries_do_not_run_out_while_they_bring_more(server, url, tmp_path):
    server.cuts = [1000] * (3 * module._ATTEMPTS)
    assert fetch("kddcup", tmp_path, url=url).read_bytes() == CONTENT


def test_a_server_without_ranges_sends_it_from_the_start(server, url, tmp_path):
    server.ranges, server.cuts = False, [300_000]
    assert fetch("kddcup", tmp_path, url=url).read_bytes() == CONTENT


def test_a_file_that_changed_meanwhile_is_downloaded_anew(server, url, tmp_path, monkeypatch):
    server.cuts = [300_000] + [0] * (module._ATTEMPTS - 1)
    with pytest.raises(FetchError):
        fetch("kddcup", tmp_path, url=url)
    server.content, server.tag = CONTENT[::-1] + b"more", '"2"'
    _expect(monkeypatch, server.content)
    assert fetch("kddcup", tmp_path, url=url).read_bytes() == server.content


def test_without_a_tag_the_checksum_watches(server, url, tmp_path):
    server.tag, server.cuts = "", [300_000]
    assert fetch("kddcup", tmp_path, url=url).read_bytes() == CONTENT
    assert "If-Range" not in server.requests[1]


def test_a_part_from_another_address_or_of_unknown_origin_is_not_gone_on_with(server, url, tmp_path):
    for notes in (json.dumps({"url": "http://another", "version": '"1"'}), "{", ""):
        (tmp_path / PART).write_bytes(b"something else")
        (tmp_path / (PART + ".json")).write_text(notes)
        path = fetch("kddcup", tmp_path, url=url)
        assert path.read_bytes() == CONTENT
        path.unlink()
    assert all("Range" not in request for request in server.requests)


@pytest.mark.parametrize("extra", [0, 5])
def test_a_part_that_is_whole_already_is_checked_and_a_longer_one_thrown_away(extra, server, url, tmp_path):
    (tmp_path / PART).write_bytes(CONTENT + b"?" * extra)
    (tmp_path / (PART + ".json")).write_text(json.dumps({"url": url, "version": '"1"'}))
    assert fetch("kddcup", tmp_path, url=url).read_bytes() == CONTENT
    assert len(server.requests) == (2 if extra else 1)


def test_a_wrong_checksum_leaves_nothing(server, url, tmp_path):
    server.content = CONTENT[:-1] + b"?"
    with pytest.raises(
        FetchError, match=r"not kddcup: its SHA-256 must be [0-9a-f]{64}, got [0-9a-f]{64}; it was removed"
    ):
        fetch("kddcup", tmp_path, url=url)
    assert parts(tmp_path) == []


def test_not_found_is_said_at_once(server, url, tmp_path):
    server.statuses = [404]
    with pytest.raises(FetchError, match="answered 404 Not Found"):
        fetch("kddcup", tmp_path, url=url)
    assert len(server.requests) == 1
    assert parts(tmp_path) == []


def test_an_overloaded_server_is_asked_again(server, url, tmp_path):
    server.statuses = [503, 429]
    assert fetch("kddcup", tmp_path, url=url).read_bytes() == CONTENT
    server.statuses = [503] * module._ATTEMPTS
    with pytest.raises(FetchError, match="503 Service Unavailable; check the connection"):
        fetch("kddcup", tmp_path / "other", url=url)


@pytest.mark.parametrize("address", ["http://127.0.0.1:9/file", "nothing://127.0.0.1/file", "http://[", "file.csv"])
def test_an_address_that_cannot_be_reached_is_a_line(address, tmp_path):
    with pytest.raises(FetchError) as caught:
        fetch("kddcup", tmp_path, url=address)
    assert address in str(caught.value)
    assert "\n" not in str(caught.value)


def test_two_at_a_time_do_not_meet(server, url, tmp_path):
    errors = []

    def second():
        try:
            fetch("kddcup", tmp_path, url=url)
        except FetchError as error:
            errors.append(str(error))

    server.in_the_middle = second
    assert fetch("kddcup", tmp_path, url=url).read_bytes() == CONTENT
    assert errors == [f"another process is fetching {FINAL}; wait until it is done"]
    assert len(server.requests) == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full, a disk without room, on this system")
def test_a_full_disk_keeps_the_part(server, url, tmp_path):
    (tmp_path / PART).symlink_to("/dev/full")
    with pytest.raises(FetchError, match=f"kddcup cannot be stored in .*: {os.strerror(errno.ENOSPC)}; make room"):
        fetch("kddcup", tmp_path, url=url)
    assert parts(tmp_path) == [PART, PART + ".json"]


def test_a_folder_that_cannot_be_written_is_a_line(url, tmp_path):
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(FetchError, match=r"kddcup cannot be stored in .*set DEVDAN_DATA to another folder"):
        fetch("kddcup", tmp_path / "file" / "below", url=url)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda packed: packed, None),
        (lambda packed: packed[: len(packed) // 2], "it must contain ten tables|must be a zip archive"),
        (lambda packed: b"<html>" * 100, "it must be a zip archive"),
        (lambda packed: packed.replace(b"ten blocks", b"TEN blocks"), "documentation inside it is damaged"),
    ],
    ids=["whole", "half", "no archive", "damaged"],
)
def test_rlcps_has_no_checksum_but_its_archive_is_tested(change, error, server, url, tmp_path):
    server.content = change(rlcps()[0])
    if error is None:
        path = fetch("rlcps", tmp_path, url=url)
        assert path.name == "record+linkage+comparison+patterns.zip"
        assert entries.found("rlcps", tmp_path) == path
    else:
        with pytest.raises(FetchError, match=error):
            fetch("rlcps", tmp_path, url=url)
        assert parts(tmp_path) == []


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("sea", "nothing to fetch for sea: it is generated"),
        ("rfid", "nothing to fetch for rfid: it cannot be downloaded"),
        ("sussy", "no stream or file 'sussy'; did you mean susy"),
    ],
)
def test_what_cannot_be_fetched_says_why(name, why, tmp_path):
    with pytest.raises(FetchError, match=why):
        fetch(name, tmp_path)
    assert parts(tmp_path) == []
