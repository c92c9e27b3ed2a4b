"""Streams by name: the paper's nine, of which two are generated and six are files to fetch, and real ones."""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from devdan.streams import files, npz, synthetic
from devdan.streams.entries import ENTRIES, KDD_FEATURES, RLCPS_FEATURES, Entry, data_folder, found, unknown, words
from devdan.streams.stream import Chunk, Stream, StreamError

_KDD_VALUES = {  # sorted, so that codes do not depend on the order of the rows
    "protocol_type": words("icmp tcp udp"),
    "service": words("""
        IRC X11 Z39_50 auth bgp courier csnet_ns ctf daytime discard domain domain_u echo eco_i ecr_i efs exec finger
        ftp ftp_data gopher hostnames http http_443 imap4 iso_tsap klogin kshell ldap link login mtp name netbios_dgm
        netbios_ns netbios_ssn netstat nnsp nntp ntp_u other pm_dump pop_2 pop_3 printer private red_i remote_job rje
        shell smtp sql_net ssh sunrpc supdup systat telnet tftp_u tim_i time urh_i urp_i uucp uucp_path vmnet whois
    """),
    "flag": words("OTH REJ RSTO RSTOS0 RSTR S0 S1 S2 S3 SF SH"),
}
GENERATED: dict[str, Callable[..., Stream]] = {"sea": synthetic.sea, "hyperplane": synthetic.hyperplane}
_INNER_BYTES, _INNER_DEPTH = 1 << 28, 3  # limits of archives inside an archive; those of RLCPS have 60 MB, two deep


def _electricity(path: Path) -> Stream:
    def scaled(X: Any, y: Any) -> Chunk:
        return np.column_stack([X[:, :1], X[:, 1] / 7, X[:, 2:]]), y  # the day, 1 to 7

    return _mapped(files.file(path, target="class").coded(), scaled)


def _weather(path: Path) -> Stream:
    raw = _mapped(files.file(path, target="target").coded(), lambda X, y: (X, np.where(y == 1, "rain", "no_rain")))
    return raw.scaled()


def _kddcup(path: Path) -> Stream:
    names = [*KDD_FEATURES, "label"]
    raw = files.text(path, names, target="label", name="kddcup", values=_KDD_VALUES)
    return _mapped(raw, lambda X, y: (X, np.where(y == "normal.", "normal", "attack")))


def _label_first(path: Path) -> Stream:
    return files.file(path, target=0)


def _rlcps(path: Path) -> Stream:
    if path.suffix != ".zip":
        return files.file(path, target="is_match", drop=("id_1", "id_2"))
    names = ["id_1", "id_2", *RLCPS_FEATURES, "is_match"]

    def pieces() -> Iterator[Chunk]:
        n_blocks = 0
        try:
            with zipfile.ZipFile(path) as archive:
                for within, member in rlcps_blocks(archive):
                    n_blocks += 1
                    block = files.text(
                        path / member,
                        names,
                        target="is_match",
                        name="rlcps",
                        skipped=1,
                        drop=("id_1", "id_2"),
                        opened=partial(within.open, member),
                    )
                    yield from block.blocks()
        except (zipfile.BadZipFile, zlib.error, EOFError) as error:
            raise StreamError(f"{path} is damaged or incomplete: {error}; remove it and fetch it again") from error
        if n_blocks != 10:  # the rest of a broken archive can look like one of the archives inside it
            raise StreamError(f"{path} must hold ten tables block_N.csv, got {n_blocks}; remove it and fetch it again")

    return Stream("rlcps", pieces, feature_names=tuple(RLCPS_FEATURES))


def rlcps_blocks(archive: zipfile.ZipFile, depth: int = 1) -> Iterator[tuple[zipfile.ZipFile, str]]:
    """The tables block_1.csv, block_2.csv, … and the archives that contain them, each a zip inside the zip."""

    def number(member: str) -> int:
        found = re.search(r"(\d+)\.\w+$", member)
        return int(found[1]) if found else 0

    for member in sorted(archive.namelist(), key=number):
        if member.endswith(".zip"):
            n_bytes = archive.getinfo(member).file_size
            if n_bytes > _INNER_BYTES or depth > _INNER_DEPTH:  # since it is loaded whole
                raise zipfile.BadZipFile(f"{member} within it has {n_bytes:,} bytes and is {depth} archives deep")
            with zipfile.ZipFile(io.BytesIO(archive.read(member))) as inner:
                yield from rlcps_blocks(inner, depth + 1)
        elif re.search(r"(^|/)block_\d+\.csv$", member):
            yield archive, member


# Streams whose files, other than NPZ, need special reading.
_READERS: dict[str, Callable[[Path], Stream]] = {
    "electricity": _electricity,
    "weather": _weather,
    "kddcup": _kddcup,
    "susy": _label_first,
    "hepmass": _label_first,
    "rlcps": _rlcps,
}


def load(
    name: str,
    *,
    chunk: int | None = None,
    data: str | Path | None = None,
    order: str | None = None,
    endless: bool = False,
) -> Stream:
    """Load a stream by name from its file in the data folder; SEA and Hyperplane are generated if there is no file.

    ``chunk`` is the size of its chunks, by default its own: 500 for the paper's.

    ``order`` is "file" or "shuffled" (with a fixed seed). None means the paper's order: KDD Cup and RLCPS, whose files
    are sorted by class, are shuffled, the others are in file order. Shuffling loads all samples into memory, about 1 GB
    for RLCPS; in file order, memory use stays flat. ``endless`` generates SEA or Hyperplane endlessly.

    >>> load("sea", data="no such folder")
    <sea: 100,000 samples, 3 features, 2 classes, chunks of 500>
    """
    if name not in ENTRIES:
        raise StreamError(unknown(name))
    if order not in (None, "file", "shuffled"):
        raise ValueError(f"order must be 'file', 'shuffled', or None for the stream's own, got {order!r}")
    entry = ENTRIES[name]
    chunk = entry.chunk if chunk is None else chunk
    shuffled = entry.shuffle if order is None else order == "shuffled"
    if endless:
        if name not in GENERATED or shuffled:
            what = "cannot be shuffled" if shuffled else f"must be generated; only {' and '.join(GENERATED)} are"
            raise StreamError(f"an endless stream {what}; got {name}")
        return GENERATED[name](None, chunk=chunk)
    path = found(name, data)
    if path is not None:
        stream = replace(_read(entry, path), chunk=chunk)
    elif name in GENERATED:
        stream = GENERATED[name](chunk=chunk)
    else:
        raise StreamError(_missing(entry, data_folder(data)))
    if shuffled and entry.shuffle:  # the whole file, since a part of it may contain only one class
        stream = stream.shuffled(0)
    if entry.part:
        stream = stream.first(entry.n_samples)
    return stream.shuffled(0) if shuffled and not entry.shuffle else stream


def _read(entry: Entry, path: Path) -> Stream:
    """The file of a stream, as arrays of numbers: the paper's experiments use codes for texts."""
    stream = _from_npz(entry, path) if path.suffix == ".npz" else _READERS.get(entry.name, files.file)(path).coded()
    n_features = len(stream.feature_names or ())
    if n_features != entry.n_features:
        raise StreamError(f"{path} must have the {entry.n_features} features of {entry.name}, got {n_features}")
    features = entry.features or stream.feature_names
    classes = entry.classes or stream.classes
    if entry.url and stream.n_samples is None:  # published, so better than an estimate from the file size
        stream = replace(stream, estimated_samples=entry.n_samples)
    whole = entry.name in GENERATED and stream.n_samples == entry.n_samples  # generated, with its drifts
    drifts = GENERATED[entry.name]().drifts if whole else None
    return replace(stream, name=entry.name, origin=str(path), feature_names=features, classes=classes, drifts=drifts)


def _from_npz(entry: Entry, path: Path) -> Stream:
    """The stream in an NPZ file, with the labels of its other sources: class names if any, otherwise integers."""
    stream = files.file(path, target=entry.target)
    known = entry.classes
    found = npz.class_names(path) or known if known is None or isinstance(known[0], str) else None
    names = None if found is None else np.array(found)

    def labelled(X: Any, y: Any) -> Chunk:
        if y.dtype.kind not in "iu":
            return X, y
        if names is None:
            return X, y.astype(np.int64)
        if y.max() >= len(names):
            raise StreamError(f"{path}: labels must be below {len(names)}, one for each class name, got {y.max()}")
        return X, names[y]

    return replace(_mapped(stream, labelled), classes=stream.classes if found is None else tuple(found))


def _mapped(stream: Stream, change: Callable[[Any, Any], Chunk]) -> Stream:
    return replace(stream, blocks=lambda: (change(X, y) for X, y in stream.blocks()))


def _missing(entry: Entry, folder: Path) -> str:
    sought = f"{entry.name} is not on this machine: {folder} contains none of {', '.join(entry.files)}"
    if entry.can_be_fetched:
        return f"{sought}; `devdan fetch {entry.name}` downloads it, or set DEVDAN_DATA to the folder that contains it"
    width = f"{entry.n_features} columns of features"
    if entry.suite == "real":
        labels = entry.target or "y"
        return (
            f"{sought}. It comes from: {entry.origin} ({entry.n_samples:,} samples, {width}, {entry.n_classes} "
            f"classes); store it there as NPZ, in order of time, with the labels in {labels}"
        )
    return (
        f"{sought}. We know of no address; the paper's authors link their data from their repositories. You need your "
        f"own file: {width} and a column called target with one of {entry.n_classes} classes (in rfid.npz, the arrays "
        "X and y)"
    )
