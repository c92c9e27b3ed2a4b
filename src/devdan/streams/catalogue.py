"""The paper's nine streams by name: two are generated, six are files to fetch, and one was never published."""

from __future__ import annotations

import difflib
import io
import os
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from devdan.streams import files, npz, synthetic
from devdan.streams.stream import Chunk, Stream, StreamError


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_KDD_FEATURES = _words("""
    duration protocol_type service flag src_bytes dst_bytes land wrong_fragment urgent hot num_failed_logins logged_in
    num_compromised root_shell su_attempted num_root num_file_creations num_shells num_access_files num_outbound_cmds
    is_host_login is_guest_login count srv_count serror_rate srv_serror_rate rerror_rate srv_rerror_rate same_srv_rate
    diff_srv_rate srv_diff_host_rate dst_host_count dst_host_srv_count dst_host_same_srv_rate dst_host_diff_srv_rate
    dst_host_same_src_port_rate dst_host_srv_diff_host_rate dst_host_serror_rate dst_host_srv_serror_rate
    dst_host_rerror_rate dst_host_srv_rerror_rate
""")
_KDD_VALUES = {  # sorted, so that a code does not depend on which row comes first
    "protocol_type": _words("icmp tcp udp"),
    "service": _words("""
        IRC X11 Z39_50 auth bgp courier csnet_ns ctf daytime discard domain domain_u echo eco_i ecr_i efs exec finger
        ftp ftp_data gopher hostnames http http_443 imap4 iso_tsap klogin kshell ldap link login mtp name netbios_dgm
        netbios_ns netbios_ssn netstat nnsp nntp ntp_u other pm_dump pop_2 pop_3 printer private red_i remote_job rje
        shell smtp sql_net ssh sunrpc supdup systat telnet tftp_u tim_i time urh_i urp_i uucp uucp_path vmnet whois
    """),
    "flag": _words("OTH REJ RSTO RSTOS0 RSTR S0 S1 S2 S3 SF SH"),
}
_RLCPS_FEATURES = _words("cmp_fname_c1 cmp_fname_c2 cmp_lname_c1 cmp_lname_c2 cmp_sex cmp_bd cmp_bm cmp_by cmp_plz")
GENERATED: dict[str, Callable[..., Stream]] = {"sea": synthetic.sea, "hyperplane": synthetic.hyperplane}
_INNER_BYTES, _INNER_DEPTH = 1 << 28, 3  # of archives within an archive; those of RLCPS have 60 MB, two deep
_UCI = "https://archive.ics.uci.edu"


def _as_it_is(path: Path) -> Stream:
    return files.file(path)


def _electricity(path: Path) -> Stream:
    def scaled(X: Any, y: Any) -> Chunk:
        return np.column_stack([X[:, :1], X[:, 1] / 7, X[:, 2:]]), y  # the day, 1 to 7

    return _mapped(files.file(path, target="class"), scaled)


def _weather(path: Path) -> Stream:
    raw = _mapped(files.file(path, target="target"), lambda X, y: (X, np.where(y == 1, "rain", "no_rain")))
    return raw.scaled()


def _kddcup(path: Path) -> Stream:
    names = [*_KDD_FEATURES, "label"]
    raw = files.text(path, names, target="label", name="kddcup", values=_KDD_VALUES)
    return _mapped(raw, lambda X, y: (X, np.where(y == "normal.", "normal", "attack")))


def _label_first(path: Path) -> Stream:
    return files.file(path, target=0)


def _rlcps(path: Path) -> Stream:
    if path.suffix != ".zip":
        return files.file(path, target="is_match", drop=("id_1", "id_2"))
    names = ["id_1", "id_2", *_RLCPS_FEATURES, "is_match"]

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
            raise StreamError(f"{path} is damaged or not complete: {error}; remove it and fetch it again") from error
        if n_blocks != 10:  # what is left of a broken archive can look like one of those within it
            raise StreamError(f"{path} must hold ten tables block_N.csv, got {n_blocks}; remove it and fetch it again")

    return Stream("rlcps", pieces, feature_names=tuple(_RLCPS_FEATURES))


def rlcps_blocks(archive: zipfile.ZipFile, depth: int = 1) -> Iterator[tuple[zipfile.ZipFile, str]]:
    """The tables block_1.csv, block_2.csv, … and the archives they are in, each a zip within the zip."""

    def number(member: str) -> int:
        found = re.search(r"(\d+)\.\w+$", member)
        return int(found[1]) if found else 0

    for member in sorted(archive.namelist(), key=number):
        if member.endswith(".zip"):
            n_bytes = archive.getinfo(member).file_size
            if n_bytes > _INNER_BYTES or depth > _INNER_DEPTH:  # it will be in memory as a whole
                raise zipfile.BadZipFile(f"{member} within it has {n_bytes:,} bytes and is {depth} archives deep")
            with zipfile.ZipFile(io.BytesIO(archive.read(member))) as inner:
                yield from rlcps_blocks(inner, depth + 1)
        elif re.search(r"(^|/)block_\d+\.csv$", member):
            yield archive, member


@dataclass(frozen=True)
class Entry:
    """What is known about a stream before it is read."""

    name: str
    n_samples: int
    n_features: int
    n_classes: int
    origin: str
    files: tuple[str, ...]  # that hold it, in the data folder; the first one there is read
    read: Callable[[Path], Stream] = _as_it_is  # such a file, other than an NPZ
    classes: tuple[Any, ...] | None = None
    features: tuple[str, ...] | None = None  # None: as the file calls them
    url: str | None = None
    saved_as: str | None = None
    sha256: str | None = None  # of the file saved
    shuffle: bool = False  # as its file is sorted by class
    part: bool = False  # the file is longer than the paper's stream


_ALL = (
    Entry("sea", 100_000, 3, 2, "generated", ("sea.npz",), classes=(0, 1), features=_words("x1 x2 x3")),
    Entry(
        "hyperplane",
        120_000,
        4,
        2,
        "generated",
        ("hyperplane.npz",),
        classes=(0, 1),
        features=_words("x1 x2 x3 x4"),
    ),
    Entry(
        "electricity",
        45_312,
        8,
        2,
        "OpenML 151",
        files=_words("""
            electricity.npz elecNormNew.arff electricity.arff elecNormNew.arff.gz original/elecNormNew.arff.gz
        """),
        read=_electricity,
        classes=("DOWN", "UP"),
        features=_words("date day_div7 period nswprice nswdemand vicprice vicdemand transfer"),
        url="https://www.openml.org/data/v1/download/2419/electricity.arff",  # the same bytes as elecNormNew.arff
        saved_as="electricity.arff",
        sha256="2d86fbc74c69a5c04bcde0119bce280dd6d8efa0115987edc75b77ccf024d7f2",
    ),
    Entry(
        "weather",
        18_159,
        8,
        2,
        "scikit-multiflow",
        files=_words("weather.npz weather.csv weather.csv.gz original/skmultiflow_weather.csv.gz"),
        read=_weather,
        classes=("rain", "no_rain"),
        features=_words("""
            temperature dew_point sea_level_pressure visibility avg_wind_speed max_sustained_wind_speed max_temperature
            min_temperature
        """),
        url="https://raw.githubusercontent.com/scikit-multiflow/streaming-datasets/master/weather.csv",
        saved_as="weather.csv",
        sha256="3c38f05bdc5c4cb115f122414c66976e3662c875d96d7199d9e47fc46aff150e",
    ),
    Entry(
        "kddcup",
        494_021,
        41,
        2,
        "KDD Cup '99, 10 %",
        files=_words("""
            kddcup99_10percent.npz kddcup.data_10_percent.gz kddcup.data_10_percent original/kddcup.data_10_percent.gz
        """),
        read=_kddcup,
        classes=("normal", "attack"),
        features=_KDD_FEATURES,
        url="https://ndownloader.figshare.com/files/5976042",
        saved_as="kddcup.data_10_percent.gz",
        sha256="8045aca0d84e70e622d1148d7df782496f6333bf6eb979a1b0837c42a9fd9561",
        shuffle=True,
    ),
    Entry(
        "susy",
        5_000_000,
        18,
        2,
        "UCI 279",
        files=("SUSY.csv.gz", "SUSY.csv"),
        read=_label_first,
        classes=(0, 1),
        features=(
            *(f"lepton {lepton} {measure}" for lepton in (1, 2) for measure in ("pT", "eta", "phi")),
            *("missing energy magnitude", "missing energy phi", "MET_rel", "axial MET"),
            *_words("M_R M_TR_2 R MT2 S_R M_Delta_R dPhi_r_b cos(theta_r1)"),
        ),
        url=f"{_UCI}/ml/machine-learning-databases/00279/SUSY.csv.gz",
        saved_as="SUSY.csv.gz",
        sha256="be56cb5598da8ece4b13912230ee713bab8b3431a7d118e0054ffdf3a2f25664",
    ),
    Entry(
        "hepmass",
        2_000_000,
        28,
        2,
        "UCI 347, its first rows",
        files=("all_train.csv.gz", "all_train.csv"),
        read=_label_first,
        classes=(0, 1),
        features=(*(f"f{place}" for place in range(27)), "mass"),
        url=f"{_UCI}/ml/machine-learning-databases/00347/all_train.csv.gz",
        saved_as="all_train.csv.gz",
        sha256="52061273edbe84cbfff6cc5432a04366d3401c39baf80da99d9baf91e0165498",
        part=True,
    ),
    Entry(
        "rlcps",
        5_000_000,
        9,
        2,
        "UCI 210",
        files=_words("record+linkage+comparison+patterns.zip rlcps.zip donation.zip rlcps.csv.gz rlcps.csv"),
        read=_rlcps,
        classes=(False, True),
        features=_RLCPS_FEATURES,
        url=f"{_UCI}/static/public/210/record+linkage+comparison+patterns.zip",
        saved_as="record+linkage+comparison+patterns.zip",
        shuffle=True,
        part=True,
    ),
    Entry(
        "rfid",
        280_000,
        3,
        4,
        "never published",
        files=_words("rfid.csv rfid.csv.gz rfid.npz rfid.parquet rfid.arff"),
    ),
)
ENTRIES = {entry.name: entry for entry in _ALL}


def is_name(source: Any) -> bool:
    """Whether this is the name of one of the streams."""
    return isinstance(source, str) and source in ENTRIES


def unknown(name: str) -> str:
    """What to say about a name that is none of theirs.

    >>> unknown("suzy")
    "there is no stream or file 'suzy'; did you mean susy? `devdan streams` lists all streams"
    """
    near = difflib.get_close_matches(name.lower(), ENTRIES, cutoff=0.5)
    meant = f" did you mean {' or '.join(near)}?" if near else ""
    return f"there is no stream or file {name!r};{meant} `devdan streams` lists all streams"


def data_folder(data: str | Path | None = None) -> Path:
    """Where the files are: ``data``, else the environment's DEVDAN_DATA, else devdan-data in the home folder."""
    folder = data or os.environ.get("DEVDAN_DATA")
    return Path(folder).expanduser() if folder else Path.home() / "devdan-data"


def found(name: str, data: str | Path | None = None) -> Path | None:
    """The file that holds this stream on this machine, if there is one."""
    places = (data_folder(data) / file for file in ENTRIES[name].files)
    return next((place for place in places if os.path.isfile(place)), None)


def load(
    name: str,
    *,
    chunk: int = 500,
    data: str | Path | None = None,
    order: str | None = None,
    endless: bool = False,
) -> Stream:
    """A stream by its name, from its file in the data folder; SEA and Hyperplane are generated if there is none.

    ``order`` is "file" or "shuffled", always the same way; None is the paper's: KDD Cup and RLCPS, which are sorted by
    class, come shuffled, the others as in their file. Shuffling holds all samples in memory, which takes about 1 GB for
    RLCPS; in the file's order, memory stays flat. ``endless`` generates SEA or Hyperplane for ever.

    >>> load("sea", data="no such folder")
    <sea: 100,000 samples, 3 features, 2 classes, chunks of 500>
    """
    if name not in ENTRIES:
        raise StreamError(unknown(name))
    if order not in (None, "file", "shuffled"):
        raise ValueError(f"order must be 'file', 'shuffled', or None for the stream's own, got {order!r}")
    entry = ENTRIES[name]
    shuffled = entry.shuffle if order is None else order == "shuffled"
    if endless:
        if name not in GENERATED or shuffled:
            what = "cannot be shuffled" if shuffled else f"must be generated, which {' and '.join(GENERATED)} alone are"
            raise StreamError(f"an endless stream {what}; got {name}")
        return GENERATED[name](None, chunk=chunk)
    path = found(name, data)
    if path is not None:
        stream = replace(_read(entry, path), chunk=chunk)
    elif name in GENERATED:
        stream = GENERATED[name](chunk=chunk)
    else:
        raise StreamError(_missing(entry, data_folder(data)))
    if shuffled and entry.shuffle:  # all of the file, as a part of it may hold one class alone
        stream = stream.shuffled(0)
    if entry.part:
        stream = stream.first(entry.n_samples)
    return stream.shuffled(0) if shuffled and not entry.shuffle else stream


def _read(entry: Entry, path: Path) -> Stream:
    stream = _from_npz(entry, path) if path.suffix == ".npz" else entry.read(path)
    n_features = len(stream.feature_names or ())
    if n_features != entry.n_features:
        raise StreamError(f"{path} must have the {entry.n_features} features of {entry.name}, got {n_features}")
    features = entry.features or stream.feature_names
    classes = entry.classes or stream.classes
    if entry.url and stream.n_samples is None:  # published, so nearer than a guess from the size of the file
        stream = replace(stream, estimated_samples=entry.n_samples)
    return replace(stream, name=entry.name, origin=str(path), feature_names=features, classes=classes)


def _from_npz(entry: Entry, path: Path) -> Stream:
    """Labels become what the paper's other sources have: names where those have names, else whole numbers."""
    stream = files.file(path)
    named = entry.classes is not None and isinstance(entry.classes[0], str)
    names = np.array(npz.class_names(path) or entry.classes) if named else None

    def labelled(X: Any, y: Any) -> Chunk:
        if y.dtype.kind not in "iu":
            return X, y
        if names is None:
            return X, y.astype(np.int64)
        if y.max() >= len(names):
            raise StreamError(f"{path}: labels must be below {len(names)}, one for each class name, got {y.max()}")
        return X, names[y]

    return _mapped(stream, labelled)


def _mapped(stream: Stream, change: Callable[[Any, Any], Chunk]) -> Stream:
    return replace(stream, blocks=lambda: (change(X, y) for X, y in stream.blocks()))


def _missing(entry: Entry, folder: Path) -> str:
    sought = f"{entry.name} is not on this machine: {folder} has none of {', '.join(entry.files)}"
    if entry.url:
        return f"{sought}; `devdan fetch {entry.name}` downloads it, or set DEVDAN_DATA to the folder that has it"
    return (
        f"{sought}. It was never published, so only a file of your own can serve: {entry.n_features} columns of "
        f"features and one called target with the class, of {entry.n_classes} (in rfid.npz the arrays X and y)"
    )
