"""The paper's streams: the same samples whatever file they come from, in the right order, or an error that helps."""

import gzip
import io
import os
import shutil
import tracemalloc
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from archives import rlcps

from devdan.streams import StreamError, catalogue, entries, open_stream, sea

FOLDER = Path(os.environ.get("DEVDAN_DATA", Path(__file__).parents[3] / "shared" / "data"))


@pytest.fixture(autouse=True)
def _no_data_of_ones_own(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("USERPROFILE", str(tmp_path / "home"))
    monkeypatch.delenv("DEVDAN_DATA", raising=False)


def whole(stream):
    X, y = (np.concatenate(parts) for parts in zip(*stream, strict=True))
    return X, y


def real(*names):
    """The files in a folder of their own, or skip."""
    for name in names:
        if not (FOLDER / name).exists():
            pytest.skip(f"{FOLDER / name} is not there; set DEVDAN_DATA to the folder that has it")
    return [FOLDER / name for name in names]


def test_streams_are_listed_with_what_is_needed_to_get_them():
    names = ["sea", "hyperplane", "electricity", "weather", "kddcup", "susy", "hepmass", "rlcps", "rfid"]
    assert entries.suite("paper") == names
    assert [*names, *entries.suite("real")] == list(entries.ENTRIES)
    assert all(entries.ENTRIES[name].about and entries.ENTRIES[name].licence for name in entries.suite("real"))
    for entry in entries.ENTRIES.values():
        assert entry.features is None or len(entry.features) == entry.n_features
        assert entry.classes is None or len(entry.classes) == entry.n_classes
        assert entry.saved_as is None or entry.content or entry.saved_as in entry.files
        assert entry.sha256 is None or len(entry.sha256) == 64
    assert entries.is_name("sea")
    assert not entries.is_name("see")
    assert not entries.is_name(Path("sea"))


@pytest.mark.parametrize(
    ("name", "prepared", "raw", "error"),
    [
        ("electricity", "electricity.npz", "original/elecNormNew.arff.gz", 1e-15),
        ("weather", "weather.npz", "original/skmultiflow_weather.csv.gz", 1e-12),
        ("kddcup", "kddcup99_10percent.npz", "original/kddcup.data_10_percent.gz", 0),
    ],
)
def test_prepared_and_raw_file_give_the_same_stream(name, prepared, raw, error, tmp_path):
    paths = real(prepared, raw)
    streams = []
    for place, path in enumerate(paths):
        target = tmp_path / str(place) / (prepared, raw)[place]
        target.parent.mkdir(parents=True)
        target.symlink_to(path)
        streams.append(catalogue.load(name, data=tmp_path / str(place)))
        assert streams[-1].origin == str(target)
    (X, y), (X_raw, y_raw) = map(whole, streams)
    entry = entries.ENTRIES[name]
    assert X.shape == (entry.n_samples, entry.n_features)
    np.testing.assert_allclose(X_raw, X, rtol=0, atol=error)
    np.testing.assert_array_equal(y_raw, y)
    assert set(y) == set(entry.classes)
    for stream in streams:
        assert (stream.name, stream.feature_names, stream.classes) == (name, entry.features, entry.classes)
    assert streams[0].n_samples == streams[1].estimated_samples == entry.n_samples


def test_kdd_cup_is_shuffled_with_a_fixed_seed():
    (path,) = real("kddcup99_10percent.npz")
    with np.load(path) as arrays:
        X, y, names = arrays["X"], arrays["y"], arrays["class_names"]
    for order, rows in ((None, np.random.default_rng(0).permutation(len(X))), ("file", slice(None))):
        X_loaded, y_loaded = whole(catalogue.load("kddcup", data=FOLDER, order=order).first(3000))
        np.testing.assert_array_equal(X_loaded, X[rows][:3000])
        np.testing.assert_array_equal(y_loaded, names[y[rows][:3000]])


@pytest.mark.parametrize("name", ["sea", "hyperplane"])
def test_labels_of_the_papers_own_copy_stay_whole_numbers(name):
    (path,) = real(f"{name}.npz")
    stream = catalogue.load(name, data=FOLDER)
    X, y = whole(stream)
    with np.load(path) as arrays:
        np.testing.assert_array_equal(X, arrays["X"])
        np.testing.assert_array_equal(y, arrays["y"])
    generated = catalogue.load(name)
    assert (generated.origin, stream.origin) == ("generated", str(path))
    assert y.dtype == next(iter(generated))[1].dtype
    assert (generated.feature_names, generated.classes) == (stream.feature_names, stream.classes)
    assert generated.drifts == stream.drifts
    assert generated.n_samples == stream.n_samples == entries.ENTRIES[name].n_samples


def test_sea_is_generated_where_there_is_no_file():
    X, y = whole(catalogue.load("sea", chunk=300).first(1000))
    X_sea, y_sea = whole(sea().first(1000))
    np.testing.assert_array_equal(X, X_sea)
    np.testing.assert_array_equal(y, y_sea)
    shuffled = whole(catalogue.load("sea", order="shuffled"))
    np.testing.assert_array_equal(shuffled[0], whole(sea())[0][np.random.default_rng(0).permutation(100_000)])


def test_endless_streams_are_generated_even_if_there_is_a_file(tmp_path):
    (tmp_path / "sea.npz").write_bytes(b"not read")
    stream = catalogue.load("sea", data=tmp_path, endless=True, chunk=7)
    assert stream.n_samples is None
    assert len(next(iter(stream))[1]) == 7
    with pytest.raises(StreamError, match="must be generated; only sea and hyperplane are; got rfid"):
        catalogue.load("rfid", endless=True)
    with pytest.raises(StreamError, match="cannot be shuffled"):
        catalogue.load("sea", endless=True, order="shuffled")


def rows_of(name, n, seed=0):
    generator = np.random.default_rng(seed)
    return generator.random((n, entries.ENTRIES[name].n_features)), generator.integers(0, 2, n)


def table(X, y, header=None):
    """As the physicists' files are written: the label first."""
    rows = [",".join(f"{value:.18e}" for value in (label, *x)) for x, label in zip(X, y, strict=True)]
    return "\n".join([*([header] if header else []), *rows, ""]).encode()


def test_susy(tmp_path):
    X, y = rows_of("susy", 1200)
    (tmp_path / "SUSY.csv.gz").write_bytes(gzip.compress(table(X, y)))
    stream = catalogue.load("susy", data=tmp_path)
    assert [len(labels) for _, labels in stream] == [500, 500, 200]
    np.testing.assert_array_equal(whole(stream)[0], X)
    np.testing.assert_array_equal(whole(stream)[1], y)
    assert stream.feature_names[:2] == ("lepton 1 pT", "lepton 1 eta")
    assert stream.feature_names[-1] == "cos(theta_r1)"
    assert stream.classes == (0, 1)


def test_hepmass_is_the_start_of_its_file(tmp_path, monkeypatch):
    X, y = rows_of("hepmass", 900)
    header = "# label," + ",".join(f"f{place}" for place in range(27)) + ",mass"
    (tmp_path / "all_train.csv.gz").write_bytes(gzip.compress(table(X, y, header)))
    entry = entries.ENTRIES["hepmass"]
    monkeypatch.setitem(entries.ENTRIES, "hepmass", replace(entry, n_samples=700))
    stream = catalogue.load("hepmass", data=tmp_path)
    assert stream.feature_names == (*(f"f{place}" for place in range(27)), "mass")
    np.testing.assert_array_equal(whole(stream)[0], X[:700])
    np.testing.assert_array_equal(whole(stream)[1], y[:700])
    shuffled = whole(catalogue.load("hepmass", data=tmp_path, order="shuffled"))[1]
    np.testing.assert_array_equal(shuffled, y[:700][np.random.default_rng(0).permutation(700)])


@pytest.mark.parametrize("wrapped", [False, True])
def test_rlcps_is_read_from_its_nested_archives_and_shuffled_before_it_is_cut(wrapped, tmp_path, monkeypatch):
    packed, X, y = rlcps(wrapped=wrapped)
    (tmp_path / "rlcps.zip").write_bytes(packed)
    entry = entries.ENTRIES["rlcps"]
    monkeypatch.setitem(entries.ENTRIES, "rlcps", replace(entry, n_samples=400))
    for order, rows in (("file", np.arange(500)), (None, np.random.default_rng(0).permutation(500))):
        stream = catalogue.load("rlcps", data=tmp_path, order=order, chunk=150)
        assert [len(labels) for _, labels in stream] == [150, 150, 100]
        np.testing.assert_array_equal(whole(stream)[0], X[rows[:400]])
        np.testing.assert_array_equal(whole(stream)[1], y[rows[:400]])
        assert stream.classes == (False, True)
        assert stream.feature_names[0] == "cmp_fname_c1"


def test_rlcps_unpacked(tmp_path):
    packed, X, y = rlcps()
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        texts = [within.read(member) for within, member in catalogue.rlcps_blocks(archive)]
    lines = [text.splitlines(keepends=True) for text in texts]
    (tmp_path / "rlcps.csv").write_bytes(b"".join([lines[0][0], *(line for block in lines for line in block[1:])]))
    stream = catalogue.load("rlcps", data=tmp_path, order="file")
    np.testing.assert_array_equal(whole(stream)[0], X)
    np.testing.assert_array_equal(whole(stream)[1], y)


def test_rlcps_that_is_damaged_or_wrong_says_where(tmp_path):
    packed, _, _ = rlcps()
    for length, error in (
        (len(packed) // 2, "must hold ten tables .* got 1"),  # this ends with a small archive that is whole
        (100, "is damaged or incomplete: File is not a zip file"),
    ):
        (tmp_path / "rlcps.zip").write_bytes(packed[:length])
        with pytest.raises(StreamError, match=rf"rlcps\.zip {error}"):
            whole(catalogue.load("rlcps", data=tmp_path))
    with zipfile.ZipFile(tmp_path / "rlcps.zip", "w") as archive:
        archive.writestr("block_3.csv", "a header\n1,2,3\n")
    with pytest.raises(StreamError, match=r"block_3\.csv: row 1 has 3 columns instead of 12"):
        whole(catalogue.load("rlcps", data=tmp_path))


def test_rlcps_with_an_archive_that_would_fill_the_memory_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "rlcps.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("block_1.zip", bytes(1000))
        archive.getinfo("block_1.zip").file_size = 10**12
    tracemalloc.start()
    with pytest.raises(StreamError, match=r"block_1\.zip within it has 1,000,000,000,000 bytes .*fetch it again"):
        whole(catalogue.load("rlcps", data=tmp_path))
    assert tracemalloc.get_traced_memory()[1] < 2_000_000
    tracemalloc.stop()
    packed, _, _ = rlcps(wrapped=True)
    for _ in range(3):
        outer = io.BytesIO()
        with zipfile.ZipFile(outer, "w") as archive:
            archive.writestr("donation.zip", packed)
        packed = outer.getvalue()
    (tmp_path / "rlcps.zip").write_bytes(packed)
    with pytest.raises(StreamError, match=r"is 4 archives deep"):
        whole(catalogue.load("rlcps", data=tmp_path))


def test_memory_does_not_grow_with_the_file_in_its_own_order(tmp_path):
    (tmp_path / "rlcps.zip").write_bytes(rlcps(4000)[0])
    tracemalloc.start()
    for _ in catalogue.load("rlcps", data=tmp_path, order="file"):
        pass
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10 * 4000 * 9 * 8  # what all samples take


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".npz", ".parquet", ".arff"])
def test_rfid_of_ones_own(ending, tmp_path):
    X, _ = rows_of("rfid", 40)
    y = np.arange(40) % 4
    path = tmp_path / f"rfid{ending}"
    rows = "".join(f"{a!r},{b!r},{c!r},{label}\n" for (a, b, c), label in zip(X.tolist(), y, strict=True))
    if ending == ".npz":
        np.savez(path, X=X, y=y)
    elif ending == ".parquet":
        pd.DataFrame(X, columns=["a", "b", "c"]).assign(target=y).to_parquet(path)
    elif ending == ".arff":
        path.write_text("@relation r\n" + "@attribute x real\n" * 3 + "@attribute target {0,1,2,3}\n@data\n" + rows)
    else:
        text = ("a,b,c,target\n" + rows).encode()
        path.write_bytes(gzip.compress(text) if ending.endswith("gz") else text)
    stream = catalogue.load("rfid", data=tmp_path)
    np.testing.assert_array_equal(whole(stream)[0], X)
    np.testing.assert_array_equal(whole(stream)[1].astype(int), y)
    assert stream.name == "rfid"


def test_a_file_with_other_features_is_refused(tmp_path):
    (tmp_path / "rfid.csv").write_text("a,b,target\n1,2,0\n")
    with pytest.raises(StreamError, match=r"rfid\.csv must have the 3 features of rfid, got 2"):
        catalogue.load("rfid", data=tmp_path)


def test_labels_beyond_the_class_names_are_refused(tmp_path):
    np.savez(tmp_path / "weather.npz", X=np.zeros((3, 8)), y=np.array([0, 1, 2]), class_names=["rain", "no_rain"])
    with pytest.raises(StreamError, match=r"weather\.npz: labels must be below 2, .* got 2"):
        whole(catalogue.load("weather", data=tmp_path))


def test_a_value_that_kdd_cup_did_not_have_gets_a_code_of_its_own(tmp_path):
    cells = ["0", "tcp", "http", "SF", *["0"] * 37]
    lines = [[*cells, "normal."], [*cells[:2], "gopherspace", *cells[3:], "smurf."]]
    (tmp_path / "kddcup.data_10_percent").write_text("".join(",".join(line) + "\n" for line in lines))
    X, y = whole(catalogue.load("kddcup", data=tmp_path, order="file"))
    assert X[:, :4].tolist() == [[0, 1, 22, 9], [0, 1, 66, 9]]
    assert y.tolist() == ["normal", "attack"]


def test_order_must_be_known():
    with pytest.raises(ValueError, match=r"order must be 'file', 'shuffled', or None .* got 'random'"):
        catalogue.load("sea", order="random")


def test_an_unknown_name_gets_the_nearest():
    assert entries.unknown("ELEC").endswith("did you mean electricity? `devdan streams` lists all streams")
    assert "did you mean" not in entries.unknown("qqqq")
    with pytest.raises(StreamError, match="there is no stream or file 'wether'; did you mean weather"):
        catalogue.load("wether")


def test_what_is_not_on_this_machine_says_how_to_get_it(tmp_path):
    with pytest.raises(
        StreamError, match=r"susy is not on this machine: .* `devdan fetch susy` downloads it"
    ) as caught:
        catalogue.load("susy", data=tmp_path)
    assert str(tmp_path) in str(caught.value)
    with pytest.raises(
        StreamError, match=r"rfid\.csv, .* no address; .* 3 columns of features and a column called target"
    ):
        open_stream("rfid")
    for name in entries.ENTRIES:
        assert entries.found(name) is None


def test_the_data_folder_is_the_argument_else_the_environments_else_in_the_home(tmp_path, monkeypatch):
    assert entries.data_folder() == tmp_path / "home" / "devdan-data"
    monkeypatch.setenv("DEVDAN_DATA", str(tmp_path / "set"))
    assert entries.data_folder() == tmp_path / "set"
    assert entries.data_folder(tmp_path / "given") == tmp_path / "given"
    assert entries.data_folder("~/given") == tmp_path / "home" / "given"
    monkeypatch.setenv("DEVDAN_DATA", "")
    assert entries.data_folder() == tmp_path / "home" / "devdan-data"


def test_the_first_of_the_files_is_read(tmp_path):
    (source,) = real("original/skmultiflow_weather.csv.gz")
    shutil.copy(source, tmp_path / "weather.csv.gz")
    assert entries.found("weather", tmp_path) == tmp_path / "weather.csv.gz"
    with gzip.open(source) as packed:
        (tmp_path / "weather.csv").write_bytes(packed.read())
    assert entries.found("weather", tmp_path) == tmp_path / "weather.csv"


@pytest.mark.parametrize("name", entries.suite("real"))
def test_real_streams_are_as_they_are_listed(name):
    entry = entries.ENTRIES[name]
    real(entry.files[0])
    stream = open_stream(name, data=FOLDER)
    assert (stream.name, stream.n_samples, stream.chunk) == (name, entry.n_samples, entry.chunk)
    X, y = whole(stream.first(50_000))
    assert X.shape[1] == entry.n_features == len(stream.feature_names)
    assert set(y) <= set(stream.classes or (0, 1))
    assert len(set(y)) == entry.n_classes
    assert len(next(iter(open_stream(name, data=FOLDER, chunk=7)))[1]) == 7


def test_a_real_stream_that_is_missing_says_where_it_comes_from(tmp_path):
    with pytest.raises(StreamError, match=r"keystroke is not on .* none of real/keystroke\.npz, .* CMU"):
        open_stream("keystroke", data=tmp_path)
