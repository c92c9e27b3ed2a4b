"""Files as streams: what they hold is what comes out, and what is wrong with them is said in a line."""

import gzip
import subprocess
import sys

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from devdan import DEVDAN
from devdan.prequential import prequential
from devdan.record import Summary
from devdan.streams import StreamError, open_stream, sea
from devdan.streams.files import file

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(2500, 4)).round(6)
COLOURS = np.array(["red", "green", "blue"])[RANDOM.integers(0, 3, 2500)]
Y = np.where(X[:, 0] > 0, "yes", "no")


def whole(stream):
    X, y = (np.concatenate(parts) for parts in zip(*stream, strict=True))
    return X, y


@pytest.fixture(scope="module")
def table():
    columns = {f"x{k}": X[:, k] for k in range(4)}
    columns["x1"] = pa.array(X[:, 1], mask=np.arange(2500) % 7 == 0)
    return pa.table({"label": Y, **columns, "colour": COLOURS})


def write(table, path):
    """The table in the format that the path's ending names."""
    if ".csv" in path.name:
        with pa.output_stream(path, compression="detect") as stream:
            pa.csv.write_csv(table, stream)
    elif path.suffix == ".parquet":
        pa.parquet.write_table(table, path, row_group_size=700)
    else:
        lines = ["% a comment", "@RELATION test", "", "@attribute label {no, yes}"]
        lines += [f"@attribute x{k} NUMERIC" for k in range(4)] + [
            "@attribute 'colour' {red,'green',blue}",
            "@DATA",
            "% more",
        ]
        for row in table.to_pylist():
            lines.append(",".join("?" if value is None else str(value) for value in row.values()))
        text = "\n".join(lines) + "\n"
        path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.csv.zst", "t.parquet", "t.arff", "t.arff.gz"])
def test_every_format_gives_the_same_samples(table, name, tmp_path):
    stream = open_stream(write(table, tmp_path / name), target="label", chunk=300)
    assert stream.feature_names == ("x0", "x1", "x2", "x3", "colour")
    features, labels = whole(stream)
    np.testing.assert_array_equal(features[:, [0, 2, 3]], X[:, [0, 2, 3]])
    hole = np.arange(2500) % 7 == 0
    np.testing.assert_array_equal(np.isnan(features[:, 1]), hole)
    np.testing.assert_array_equal(features[~hole, 1], X[~hole, 1])
    np.testing.assert_array_equal(labels, Y)
    order = ["red", "green", "blue"] if "arff" in name else list(dict.fromkeys(COLOURS.tolist()))
    np.testing.assert_array_equal(features[:, 4], [order.index(colour) for colour in COLOURS])
    again = whole(stream.in_chunks_of(1))
    np.testing.assert_array_equal(again[0], features)


def test_frames_of_all_makes_give_the_same_samples(table, tmp_path):
    reference = whole(file(write(table, tmp_path / "t.csv"), target="label"))
    for frame in (table, table.to_pandas(), pl.from_arrow(table)):
        stream = open_stream(frame, target="label")
        assert stream.n_samples == 2500
        for ours, theirs in zip(whole(stream), reference, strict=True):
            np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("compress", [np.savez, np.savez_compressed])
def test_npz(compress, tmp_path):
    path = tmp_path / "t.npz"
    compress(
        path, X=np.repeat(X, 8, axis=0), y=np.repeat(Y, 8), other=np.repeat(X[:, 0] > 1, 8), feature_names=list("abcd")
    )
    stream = file(path)
    assert (stream.n_samples, stream.feature_names) == (20_000, ("a", "b", "c", "d"))
    np.testing.assert_array_equal(whole(stream)[0], np.repeat(X, 8, axis=0))
    np.testing.assert_array_equal(whole(stream)[1], np.repeat(Y, 8))
    np.testing.assert_array_equal(whole(file(path, target="other"))[1], np.repeat(X[:, 0] > 1, 8))
    compress(path, X=np.asfortranarray(X), y=Y)
    np.testing.assert_array_equal(whole(file(path))[0], X)


@pytest.mark.parametrize(
    ("text", "target", "samples"),
    [
        ("1,2,a\n3,4,b\n", "-1", [[1, 2], [3, 4]]),  # no header
        ("1,2,a\n3,4,b\n", 2, [[1, 2], [3, 4]]),
        ("x;y;z\n1;2;a\n3;4;b\n", "z", [[1, 2], [3, 4]]),
        ("x\ty\tz\r\n1\t2\ta\r\n3\t4\tb\r\n", "z", [[1, 2], [3, 4]]),
        ("\ufeffx,y,class\n1,2,a\n\n3,4,b\n", None, [[1, 2], [3, 4]]),  # a mark, a usual name, an empty line
        ("# x,y,Label\n1,2,a\n3.5,?,b", None, [[1, 2], [3.5, np.nan]]),
        ('x,y,z\n1,"2",a\n3,"4","b"\n', "z", [[1, 2], [3, 4]]),
        ("x,y,z\n1,true,a\n3,false,b\n", "z", [[1, 1], [3, 0]]),
        ("x,y,z\n1,1970-01-01,a\n3,1970-01-02 00:00:01,b\n", "z", [[1, 0], [3, 86401]]),
        ("x,y,z\n1, b,a\n3, a,b\n", "z", [[1, 0], [3, 1]]),
        ("x,y,z\n1,,a\n3,,b\n", "z", [[1, np.nan], [3, np.nan]]),
    ],
)
def test_texts_as_people_have_them(text, target, samples, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(text, newline="")
    features, labels = whole(file(path, target=target))
    np.testing.assert_array_equal(features, samples)
    assert labels.tolist() == ["a", "b"]


def test_labels_keep_their_kind(tmp_path):
    path = tmp_path / "t.csv"
    for text, labels in (
        ("1,5\n2,7\n", [5, 7]),
        ("1,5.0\n2,7e0\n", [5, 7]),
        ("1,True\n2,False\n", [True, False]),
        ("1,05x\n2,b\n", ["05x", "b"]),
    ):
        path.write_text(text)
        y = whole(file(path, target=1))[1].tolist()
        assert (y, [type(label) for label in y]) == (labels, [type(label) for label in labels])
    path.write_text("1,5\n2,\n3,NA\n")
    np.testing.assert_array_equal(whole(file(path, target=1))[1], [5, np.nan, np.nan])
    path.write_text("1,a\n2,\n3,b\n")
    assert whole(file(path, target=1))[1].tolist() == ["a", None, "b"]


def rows(n, **others):
    """A file of n rows, but for those of the given numbers."""
    return "x,y,label\n" + "".join(others.get(f"row{k}", "1.5,2.5,a") + "\n" for k in range(1, n + 1))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", rows(50_000, row40001="1.5,a"), r"row 40001 \(line 40002\) has 2 columns instead of 3: 1.5,a"),
        ("t.csv", rows(50_000, row40001="1,2,3,a"), r"row 40001 .*has 4 columns instead of 3"),
        (
            "t.csv",
            rows(200_000, row190001="1,oops,a"),
            r"row 190001 \(line 190002\) has 'oops' in the column 'y', which holds num",
        ),
        ("t.csv", rows(9, row3="oops,2,a"), r"row 3 \(line 4\) has 'oops' in the column 'x', which holds numbers"),
        ("t.csv", rows(9, row3="1,inf,a"), "row 3 has infinity in the column 'y'"),
        ("t.csv", "", "is empty"),
        ("t.csv", "x,y,label\n", "has no rows"),
        ("t.csv", b"x,y,label\n1,2,\xff\xfe\n", "row 1 .*UTF8"),
        ("t.csv", b"\xff\xfex,y,label\n", "not text in UTF-8"),
        ("t.csv.gz", b"nothing packed", "incorrect header"),
        ("t.arff", "@relation x\n@attribute a numeric\n", "no @data line"),
        ("t.arff", "hello\n@data\n", "line 1 stands before @data"),
        ("t.arff", "@attribute a\n@data\n", "line 1 is not an attribute"),
        ("t.arff", "@attribute a numeric\n@attribute class {p,q}\n@data\n{0 1, 1 p}\n", "row 1"),
        ("t.parquet", "nothing", "cannot be read"),
        ("t.npz", "nothing", "is not an NPZ file"),
        ("t.xlsx", "nothing", "cannot tell what it holds from its ending '.xlsx'"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(name, content, message, tmp_path):
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(StreamError, match=message) as error:
        whole(file(path))
    assert "\n" not in str(error.value)
    assert name in str(error.value)


def test_a_packed_file_that_was_cut_says_after_which_row(tmp_path):
    text = "x,label\n" + "".join(f"{value},a\n" for value in RANDOM.random(400_000))
    packed = gzip.compress(text.encode())
    path = tmp_path / "t.csv.gz"
    path.write_bytes(packed[: len(packed) * 3 // 4])
    samples = 0
    with pytest.raises(StreamError, match=r"not complete after row \d+") as error:  # noqa: PT012
        for features, _ in file(path).in_chunks_of(1):
            samples += len(features)
    assert f"after row {samples}:" in str(error.value)
    assert samples > 50_000


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (None, r"which column has the labels\? .*the columns are x, y, z"),
        ("w", "no column 'w' to be the target; the columns are x, y, z"),
        (3, "no column 3 .*only 3 columns"),
        ("x", r"target 'x' must hold classes, got 1.5 in row 1"),
    ],
)
def test_a_target_that_is_not_there(target, message, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x,y,z\n1.5,2,a\n3.5,4,b\n")
    with pytest.raises(StreamError, match=message):
        whole(file(path, target=target))


def test_no_such_file(tmp_path):
    with pytest.raises(StreamError, match="there is no file"):
        open_stream(tmp_path / "t.csv")
    with pytest.raises(StreamError, match="is a folder"):
        file(tmp_path)


def test_columns_can_be_left_out(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("id,x,label\n1,2,a\n3,4,b\n")
    assert whole(file(path, drop=["id"]))[0].tolist() == [[2], [4]]


def test_a_damaged_npz_says_after_which_row(tmp_path):
    path = tmp_path / "t.npz"
    np.savez_compressed(path, X=RANDOM.random((30_000, 3)), y=np.zeros(30_000))
    content = bytearray(path.read_bytes())
    content[len(content) * 2 // 3] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(StreamError, match="damaged after row"):
        whole(file(path))
    for arrays, message in (
        ({"X": X}, "no array 'y', only X"),
        ({"X": X, "y": Y[:5]}, "X must have a row"),
        ({"X": X.astype(str), "y": Y}, "X must hold numbers"),
    ):
        np.savez(path, **arrays)
        with pytest.raises(StreamError, match=message):
            whole(file(path))


def test_what_python_has_serves(table):
    from river import datasets  # noqa: PLC0415

    reference = whole(sea(1500))
    rows = list(zip(*reference, strict=True))
    for source in (reference, list(sea(1500)), rows, iter(rows), sea(1500)):
        for ours, theirs in zip(whole(open_stream(source, chunk=200)), reference, strict=True):
            np.testing.assert_array_equal(ours, theirs)
    summary = Summary(prequential(open_stream(datasets.Phishing()), DEVDAN(random_state=0)))
    assert summary.n_samples == 1250
    assert set(summary.classes) == {True, False}
    with pytest.raises(StreamError, match="a feature 'z' from sample 2 on"):
        whole(open_stream([({"x": 1}, 0), ({"x": 1, "z": 2}, 1)]))
    with pytest.raises(StreamError, match="mixes types"):
        whole(open_stream([({"x": 1}, 0), ({"x": "red"}, 1)]))


MEMORY = """
import resource, sys
from devdan.streams import open_stream
before, n = None, 0
for X, y in open_stream(sys.argv[1], target=0).in_chunks_of(5000):
    n += len(X)
    if before is None and n >= 50_000:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(n, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.parametrize("name", ["t.csv.gz", "t.parquet", "t.npz"])
def test_memory_is_flat_in_the_length_of_the_file(name, tmp_path):
    path, n = tmp_path / name, 600_000
    values = RANDOM.integers(0, 1000, (n, 18))
    if name == "t.npz":
        np.savez(path, X=values.astype(np.float64), y=values[:, 0])
        code = MEMORY.replace(", target=0", "")
    else:
        code = MEMORY
        table = pa.table({f"x{k}": values[:, k] for k in range(18)})
        if name == "t.parquet":
            pa.parquet.write_table(table, path, row_group_size=50_000)
        else:
            write(table, path)
    run = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=True)
    samples, growth = map(int, run.stdout.split())
    assert samples == n
    assert growth < 30_000  # kB; the samples alone take 86,400
