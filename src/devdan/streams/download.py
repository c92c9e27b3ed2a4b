"""Downloads published streams: resumes where it stopped, and verifies a file before using it."""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import IO

import httpx

from devdan.atomic import lock
from devdan.streams import catalogue, entries, published
from devdan.streams.stream import StreamError

Progress = Callable[[int, "int | None"], None]
_ATTEMPTS = 5  # in a row without progress
_PAUSE = 1.0  # seconds before the first retry, doubled for each further one
_TIMEOUT = httpx.Timeout(60, connect=15)
_RETRIED = (408, 425, 429, 500, 502, 503, 504)  # status codes that may be temporary


class FetchError(StreamError):
    """A stream could not be downloaded; the message says why and what to do."""


class _TemporaryError(Exception):
    """This attempt failed; a retry may succeed."""


def fetch(
    name: str,
    data: str | Path | None = None,
    *,
    progress: Progress | None = None,
    url: str | None = None,
    client: httpx.Client | None = None,
) -> Path:
    """Download a stream's file to the data folder, unless it is there already, and return its path.

    A partial download is kept as ``….part``, from which the next call resumes. The file gets its final name only when
    it is complete and its SHA-256 is correct. RLCPS has no known checksum: its archive must open, contain its ten
    tables and match the checksums inside it. A real stream is put into the arrays that our figures are of, in NAME.npz;
    a warning says so if its source has published other samples since. ``progress`` is called with the number of bytes
    so far and in total (None if the server does not say). ``url`` is another address of the same file.
    """
    if not entries.is_name(name):
        raise FetchError(entries.unknown(name))
    entry = entries.ENTRIES[name]
    there = entries.found(name, data)
    if there is not None:
        return there
    folder = entries.data_folder(data)
    if entry.package is not None:
        return _prepared(entry, published.in_package(name), folder)
    if entry.saved_as is None or entry.url is None:
        no_address = f"it cannot be downloaded in one step ({entry.origin}); use your own file"
        why = "it is generated whenever it is used" if entry.is_generated else no_address
        raise FetchError(f"there is nothing to fetch for {name}: {why}")
    address = url or entry.url
    place = folder / entry.saved_as
    part = place.with_name(place.name + ".part")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _locked_notes(part) as noted:
            there = entries.found(name, data)  # another process may have downloaded it meanwhile
            if there is not None:
                return there
            own = nullcontext(client) if client else httpx.Client(timeout=_TIMEOUT)
            with own as connection:
                _download(connection, address, part, noted, progress or (lambda done, total: None))
            fault = _fault(entry, part)
            if fault:
                part.unlink()
                raise FetchError(
                    f"{address} sent a file that is not {name}: {fault}; it was removed, try again or elsewhere"
                )
            if name in published.READERS:
                path = _prepared(entry, part, folder)
                part.unlink()
                return path
            os.replace(part, place)
    except OSError as error:
        reason = error.strerror or str(error)
        raise FetchError(
            f"{name} cannot be stored in {folder}: {reason}; make room or set DEVDAN_DATA to another folder, then run "
            "the same command again"
        ) from error
    return place


def _prepared(entry: entries.Entry, source: Path, folder: Path) -> Path:
    """The file of a stream from what its source publishes."""
    path = folder / entry.files[-1]
    if not published.prepare(entry.name, source, path):
        warnings.warn(
            f"{entry.origin} publishes other samples of {entry.name} now than those that our figures are of",
            stacklevel=3,
        )
    return path


@contextmanager
def _locked_notes(part: Path) -> Iterator[IO[str]]:
    """The notes of a partial download, open and locked; the lock is released even if this process is killed."""
    notes = part.with_name(part.name + ".json")
    with open(notes, "a+", encoding="utf-8") as noted:
        noted.seek(0)
        try:
            lock(noted)
            if not os.path.samestat(os.fstat(noted.fileno()), os.stat(notes)):
                raise BlockingIOError  # removed by the process that has just released them
        except (BlockingIOError, FileNotFoundError):
            raise FetchError(f"another process is fetching {part.stem}; wait until it is done") from None
        try:
            yield noted
        finally:
            if not part.exists():
                with suppress(OSError):  # Windows cannot remove an open file
                    notes.unlink()


def _download(client: httpx.Client, url: str, part: Path, noted: IO[str], progress: Progress) -> None:
    """Retry until the file is complete; attempts that make progress do not count."""
    furthest, failed = _size(part), 0
    while True:
        try:
            return _attempt(client, url, part, noted, progress)
        except (_TemporaryError, httpx.TransportError) as error:
            done, failed = _size(part), failed + 1
            if done > furthest:
                furthest, failed = done, 1
            if failed >= _ATTEMPTS or isinstance(error, httpx.UnsupportedProtocol):
                kept = f"; {done:,} bytes are kept" if done else ""
                raise FetchError(
                    f"{url} does not respond as expected: {error or type(error).__name__}{kept}; check the connection "
                    "and run the same command again to continue"
                ) from error
            time.sleep(_PAUSE * 2 ** (failed - 1))
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise FetchError(f"{url} cannot be downloaded: {error}") from error


def _attempt(client: httpx.Client, url: str, part: Path, noted: IO[str], progress: Progress) -> None:
    done, version = _size(part), _version(noted, url)
    if version is None:  # the version of the partial file is unknown
        done = 0
    headers = {"Accept-Encoding": "identity"}  # the bytes of the file, not compressed
    if done:
        headers |= {"Range": f"bytes={done}-"} | ({"If-Range": version} if version else {})
    with client.stream("GET", url, headers=headers, follow_redirects=True) as answer:
        says = f"{answer.status_code} {answer.reason_phrase}".strip()
        span = re.match(r"bytes (?:(\d+)-\d+|\*)/(\d+|\*)", answer.headers.get("Content-Range", ""))
        total: int | None = None
        if (
            answer.status_code == 200
        ):  # from the start: no partial file, one of another version, or a server without ranges
            done = 0
            open(part, "wb").close()  # before the notes describe another version
            _note(noted, url, answer)
            if answer.headers.get("Content-Length", "").isdigit():
                total = int(answer.headers["Content-Length"])
        elif answer.status_code == 206 and span and span[1] == str(done):
            total = int(span[2]) if span[2] != "*" else None
        elif answer.status_code == 416 and span and span[2] == str(done):  # the part was already complete
            return progress(done, done)
        elif answer.status_code in (206, 416) and done:
            part.unlink()
            raise _TemporaryError(f"{says} for a part of it")
        elif answer.status_code in _RETRIED:
            raise _TemporaryError(says)
        else:
            raise FetchError(f"{url} answered {says}; check whether the file has moved, and pass its new address")
        with open(part, "ab") as file:
            progress(done, total)
            for piece in answer.iter_raw():
                file.write(piece)
                done += len(piece)
                progress(done, total)
            file.flush()
            os.fsync(file.fileno())


def _size(part: Path) -> int:
    return part.stat().st_size if part.exists() else 0


def _version(noted: IO[str], url: str) -> str | None:
    """The version of the partial file, as the server named it; "" if it did not, None if there is no partial file."""
    noted.seek(0)
    try:
        known = json.load(noted)
        return str(known["version"]) if known["url"] == url else None
    except (ValueError, KeyError, TypeError):
        return None


def _note(noted: IO[str], url: str, answer: httpx.Response) -> None:
    tag = answer.headers.get("ETag", "")
    version = (
        answer.headers.get("Last-Modified", "") if tag.startswith("W/") or not tag else tag
    )  # W/: a weak tag, not exact to the byte
    noted.seek(0)
    noted.truncate()
    json.dump({"url": url, "version": version}, noted)
    noted.flush()


def _fault(entry: entries.Entry, part: Path) -> str | None:
    """What is wrong with a complete file, if anything."""
    if entry.name in published.READERS:
        try:
            published.READERS[entry.name](part)
        except published.ERRORS as error:
            return str(error)
        return None
    if entry.sha256 is not None:
        digest = hashlib.sha256()
        with open(part, "rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
        found = digest.hexdigest()
        return None if found == entry.sha256 else f"its SHA-256 must be {entry.sha256}, got {found}"
    try:
        with zipfile.ZipFile(part) as archive:
            damaged = archive.testzip()
            n_tables = sum(1 for _ in catalogue.rlcps_blocks(archive))
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        return f"it must be a zip archive, got {error}"
    if damaged is not None:
        return f"{damaged} inside it is damaged"
    return None if n_tables == 10 else f"it must contain ten tables block_N.csv, got {n_tables}"
