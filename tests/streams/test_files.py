"""Files as streams: what they hold is what comes out, and what is wrong with them is said in a line."""

import csv
import gzip
import io
import re
import subprocess
import sys
import threading
import tracemalloc
import zipfile
import zlib
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from devdan import DEVDAN
from devdan.encoding.encoding import EncodingWarning
from devdan.evaluation.loop import prequential
from devdan.evaluation.record import Summary
from devdan.streams import StreamError, delimited, open_stream, sea
from devdan.streams.files import file
from devdan.streams.reading import Reading
from devdan.streams.textfile import TextFile

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(2500, 4)).round(6)
COLOURS = np.array(["red", "green", "blue"])[RANDOM.integers(0, 3, 2500)]
Y = np.where(X[:, 0] > 0, "yes", "no")


def whole(stream):
    X, y = (np.concatenate(parts) for parts in zip(*stream.coded(), strict=True))
    return X, y


@pytest.fixture(scope="module")
def table():
    columns = {f"x{k}": X[:, k] for k in range(4)}
    columns["x1"] = pa.array(X[:, 1], mask=np.arange(2500) % 7 == 0)
    return pa.table({"label": Y, **columns, "colour": COLOURS})


def write(table, path):
    """The table in the format that the path's ending names."""
    if path.name.endswith(".csv.gz"):
        with gzip.open(path, "wb", compresslevel=1) as stream:
            pa.csv.write_csv(table, stream)
    elif ".csv" in path.name:
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
    order = list(dict.fromkeys(COLOURS.tolist()))
    np.testing.assert_array_equal(features[:, 4], [order.index(colour) for colour in COLOURS])
    again = whole(stream.in_chunks_of(1))
    np.testing.assert_array_equal(again[0], features)


def test_frames_of_all_makes_give_the_same_samples(table, tmp_path):
    reference = whole(file(write(table, tmp_path / "t.csv"), target="label"))
    frame = pl.from_arrow(table)
    for source in (table, table.to_pandas(), frame, frame.lazy(), table.to_pylist()):
        stream = open_stream(source, target="label")
        assert stream.n_samples == (None if isinstance(source, pl.LazyFrame) else 2500)
        for ours, theirs in zip(whole(stream), reference, strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_a_lazy_frame_is_computed_in_batches(table):
    n_computed = []

    def counted(part):
        n_computed.append(len(part))
        return part

    frame = pl.concat([pl.from_arrow(table)] * 20).lazy().map_batches(counted, streamable=True)
    stream = open_stream(frame, target="label", chunk=1000)
    first = next(iter(stream))
    assert len(first[1]) == 1000
    assert [len(y) for _, y in stream] == [1000] * 50
    assert max(n_computed) < 50_000


def test_a_list_of_dicts_has_the_columns_of_all(tmp_path):
    rows = [{"x": 1.0, "label": "a"}, {"label": "b", "x": 2.0, "city": "Bonn"}, {"city": "Rome"}]
    ((X, y),) = open_stream(rows)
    assert X.objects() == [[1.0, 2.0, None], [None, "Bonn", "Rome"]]
    assert y.tolist() == ["a", "b", None]
    with pytest.raises(StreamError, match=r"which column has the labels.*the columns are x, city"):
        open_stream([{"x": 1.0, "city": "Bonn"}])


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


ARFF = """% a comment, with, commas
@relation 'some thing'
@attribute 'a b' numeric % of importance
@attribute colour {'x, y', "z w", v, 'it\\'s'}
@attribute when date "yyyy-MM-dd"
@attribute class {yes, no} % what we want
@data
1, 'x, y', "2026-01-01", yes
% first, second, third, fourth
 ?, "z w", 2026-01-02, no % it was so

2.5, v, ?, yes
3,'it\\'s',2026-01-04,no
"""


def test_arff_with_all_its_quotes_and_comments(tmp_path):
    path = tmp_path / "t.arff"
    path.write_text(ARFF)
    stream = file(path)
    assert stream.feature_names == ("a b", "colour", "when")
    assert stream.classes == ("yes", "no")
    features, labels = whole(stream)
    np.testing.assert_array_equal(features[:, :2], [[1, 0], [np.nan, 1], [2.5, 2], [3, 3]])
    day = 86_400
    np.testing.assert_array_equal(np.diff(features[[0, 1, 3], 2]), [day, 2 * day])
    assert np.isnan(features[2, 2])
    assert labels.tolist() == ["yes", "no", "yes", "no"]
    path.write_text(ARFF.replace("2.5, v", "2.5, w"))
    with pytest.raises(StreamError, match=r"row 3 has 'w' in the column 'colour', which is declared to hold"):
        whole(file(path))
    path.write_text(ARFF.replace("?, yes", "?, perhaps"))
    with pytest.raises(StreamError, match=r"row 3 has 'perhaps' in the column 'class'"):
        whole(file(path))
    path.write_text(ARFF.replace("2.5, v, ?, yes", "{0 2.5, 3 yes}"))
    with pytest.raises(StreamError, match="row 3 is in the sparse format"):
        whole(file(path))


def test_decimal_commas(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x;y;label\n1,5;2;a\n-0,25;3;b\n")
    assert whole(file(path))[0].tolist() == [[1.5, 2], [-0.25, 3]]


def test_what_stands_for_nothing_in_a_feature_may_be_a_class(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x,colour,label\n1,None,None\n2,red,Some\n3,NA,NA\n4, ?,?\n5,-,n/a\n6,null,NULL\n7,x,-\n")
    with pytest.warns(EncodingWarning) as said:
        features, labels = whole(file(path))
    np.testing.assert_array_equal(features[:, 1], [np.nan, 0, *[np.nan] * 4, 1])
    assert labels.tolist() == ["None", "Some", None, None, None, None, "-"]
    assert [str(each.message).partition("has the class ")[2] for each in said] == [
        "'None'; if it means that there is no label, leave it empty",
        "'-'; if it means that there is no label, leave it empty",
    ]


def test_labels_that_begin_late(tmp_path):
    path = tmp_path / "t.csv"
    empty = "0.123456789,\n" * 100_000
    for label in ("yes", "7", "x1"):
        path.write_text("x,label\n" + empty + f"0.5,{label}\n0.5,\n")
        labels = whole(file(path))[1]
        assert labels[100_000] == (7 if label == "7" else label)
        assert sum(label is not None and label == label for label in labels.tolist()) == 1  # noqa: PLR0124
    path.write_text("x,label\n" + "0.123456789,True\n" * 80_000 + "0.5,\n0.5,False\n")
    labels = whole(file(path))[1].tolist()
    assert labels[-3:] == [True, None, False]


def test_a_chunk_with_the_first_numeric_label_is_of_numbers(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x,label\n" + "0.123456789,\n" * 100_000 + "0.5,7\n")
    *_, (_, y) = file(path, target="label", chunk=99_000)
    assert (y.dtype, y[-1], np.isnan(y[:-1]).all()) == (np.float64, 7, True)


@pytest.mark.skipif(sys.platform == "win32", reason="where an open file cannot be removed")
@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.arff"])
def test_a_text_is_opened_once_and_read_by_one_thread(table, name, tmp_path):
    path = write(pa.concat_tables(30 * [table]), tmp_path / name)
    stream = file(path, target="label")
    path.unlink()
    chunks = iter(stream)
    n_rows = len(next(chunks)[1])
    assert sum(thread.name.startswith("devdan-reader") for thread in threading.enumerate()) == 1
    assert n_rows + sum(len(y) for _, y in chunks) == 75_000
    with pytest.raises(StreamError, match=f"{name} cannot be read: Failed to open local file"):
        next(iter(stream))
    write(table, path)
    assert sum(len(y) for _, y in stream) == sum(len(y) for _, y in stream) == 2500


def test_columns_that_cannot_be_meant(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("name,x,label\n" + "".join(f"n{k},{k % 7},{k % 2}\n" for k in range(3000)))
    assert whole(file(path, drop=["name"]))[0].shape == (3000, 1)
    with pytest.raises(StreamError, match=r"the target 'name' has 3,000 different labels .* is it the right column"):
        whole(file(path, target="name"))
    path.write_text("\n\na,a,label\n1,2,x\n3,4,y\n")
    assert file(path).feature_names == ("a", "a.1")
    assert whole(file(path))[0].tolist() == [[1, 2], [3, 4]]
    names = [f"c{k}" * 3000 for k in range(100, 250)]  # lines of more than a block
    path.write_text(",".join(names) + ",label\n" + ("0.".ljust(9000, "5") + ",") * 150 + "1\n")
    stream = file(path)
    assert stream.feature_names == tuple(names)
    assert whole(stream)[0].tolist() == [[5 / 9] * 150]


def test_times_of_all_kinds_are_seconds(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("at,label\n12:30:00,a\n12:30:05,b\n")
    assert np.diff(whole(file(path))[0][:, 0]).tolist() == [5]
    frame = pd.DataFrame({"took": pd.to_timedelta([1, 61], unit="s"), "label": [0, 1]})
    assert np.diff(whole(open_stream(frame))[0][:, 0]).tolist() == [60]
    assert np.diff(whole(open_stream(pl.from_pandas(frame)))[0][:, 0]).tolist() == [60]


def test_the_names_of_a_frames_rows_are_no_feature(tmp_path):
    frame = pd.DataFrame({"x": [0.1, 0.2, 0.3], "label": [0, 1, 0]}).sample(frac=1, random_state=0)
    assert open_stream(frame).feature_names == ("x",)
    frame.to_parquet(tmp_path / "t.parquet")
    assert file(tmp_path / "t.parquet").feature_names == ("x",)
    assert open_stream((frame[["x"]], frame["label"])).feature_names == ("x",)


def test_what_is_no_stream_is_told(tmp_path):
    for source, message in (
        (5, "cannot be made from int"),
        ([1, 2], r"pairs \(X, y\)"),
        (([[1], [1, 2]], [0, 1]), "must be arrays"),
        (pd.DataFrame({"label": [1]}), "at least one feature"),
    ):
        with pytest.raises(StreamError, match=message):
            whole(open_stream(source))
    with pytest.raises(StreamError, match="so it takes no target"):
        open_stream("sea", target="x")
    with pytest.raises(StreamError, match="same number of samples, got 3 and 2"):
        whole(open_stream([(np.zeros((3, 1)), np.zeros(2))]))
    once = open_stream(pair for pair in [(np.zeros((3, 1)), np.zeros(3))])
    assert len(whole(once)[0]) == 3
    with pytest.raises(StreamError, match="only once"):
        whole(once)
    assert open_stream(sea(1000, chunk=100)).chunk == 100


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
            rows(200_000, row190001="1,2"),
            r"row 190001 \(line 190002\) has 2 columns instead of 3",
        ),
        (
            "t.csv",
            rows(200_000, row7="\n\n1,2,a", row180000="1,2,a\n\n", row190001="1,a"),
            r"row 190001 \(line 190006\) has 2 columns instead of 3",
        ),
        ("t.csv", rows(9, row3="1,inf,a"), "row 3 has infinity in the column 'y'"),
        ("t.csv", "", "is empty"),
        ("t.csv", "x,y,label\n", "has no rows"),
        (
            "t.csv",
            rows(200_000).encode() + b"1,2,\xff\n",
            r"row 200001 \(line 200002\) .*which holds text in UTF-8; name its encoding with encoding=",
        ),
        ("t.csv", b"x,y,label\n1,2,\x00\xff\n", "row 1 .*which holds text in UTF-8"),
        ("t.csv", b"\xff\xfex,y,label", "not utf-16 text throughout: name its encoding"),
        ("t.csv", 'x,"' + 200_000 * "y" + '",label\n1,2,a\n', "cannot be read: field larger than field limit"),
        ("t.csv.gz", b"nothing packed", "not compressed as its name says"),
        ("t.arff", "@relation x\n@attribute a numeric\n", "no @data line"),
        ("t.arff", "hello\n@data\n", "line 1 before @data is not understood"),
        ("t.arff", "@attribute a\n@data\n", "line 1 is not an attribute"),
        ("t.arff", "@attribute a numeric\n@attribute class {p,q}\n@data\n{0 1, 1 p}\n", "row 1"),
        (
            "t.arff",
            b"@attribute a numeric\n@attribute class {p,q}\n@data\n" + 400_000 * b"1.5,p\n" + b"1.5,\xff\n",
            r"line \d+ is not utf-8 text; name its encoding",
        ),
        ("t.parquet", "nothing", "cannot be read"),
        ("t.npz", "nothing", "is not an NPZ file"),
        ("t.xlsx", "nothing", "is not an Excel workbook"),
        ("t.xls", "nothing", "unknown file extension '.xls'"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(name, content, message, tmp_path):
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(StreamError, match=message) as error:
        whole(file(path))
    assert "\n" not in str(error.value)
    assert name in str(error.value)


def test_of_a_packed_file_that_was_cut_all_that_can_be_read_is_given(tmp_path):
    values = np.random.default_rng(1).random(400_000)
    text = "x,label\n" + "".join(f"{value},a\n" for value in values)
    packed = gzip.compress(text.encode())
    packed = packed[: len(packed) * 3 // 4]
    path = tmp_path / "t.csv.gz"
    path.write_bytes(packed)
    block = 1 << 20  # what is unpacked at a time, and lost where that fails
    there = zlib.decompressobj(wbits=31).decompress(packed)
    n_rows = there[: len(there) // block * block].count(b"\n") - 1
    assert n_rows > 200_000

    parts = []
    with pytest.raises(StreamError, match=f"incomplete after row {n_rows}:"):  # noqa: PT012
        for features, _ in file(path).in_chunks_of(1000):
            parts.append(features[:, 0])
    assert np.array_equal(np.concatenate(parts), values[: n_rows // 1000 * 1000])


@given(
    rows=st.lists(st.tuples(st.integers(0, 10**6), st.sampled_from("ab")), min_size=1),
    end=st.sampled_from(["\n", "\r\n", "\r", "\n\n"]),
    last=st.booleans(),
    block=st.integers(16, 200),
)
def test_the_rows_do_not_depend_on_where_the_text_is_cut(tmp_path, rows, end, last, block):
    lines = ["x,label", *(f"{x},{label}" for x, label in rows)]
    path = tmp_path / "t.csv"
    path.write_bytes((end.join(lines) + end * last).encode())
    layout = replace(delimited.csv_layout(TextFile(path), None, Reading(header=True)), block=block)
    X, y = whole(delimited.source(layout).stream(Reading(target="label"), 500))
    assert list(zip(X[:, 0].tolist(), y.tolist(), strict=True)) == rows


def test_a_row_of_more_than_a_block_is_told(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x,label\n1,a\n" + "1" * 200 + ",a\n2,a\n")
    layout = replace(delimited.csv_layout(TextFile(path), None, Reading(header=True)), block=64)
    with pytest.raises(StreamError, match=r"row 2 \(line 3\) is longer than 64 bytes; it begins with b'1111"):
        whole(delimited.source(layout).stream(Reading(target="label"), 500))


def test_cells_of_several_lines(tmp_path):
    path = tmp_path / "t.csv"
    with open(path, "w", newline="") as text:
        csv.writer(text).writerow(["x", "a\nnote", "label"])
        csv.writer(text).writerows([k, 'a\n"b",\n'[: k % 8], "pq"[k % 2]] for k in range(300_000))
    with open(path, newline="") as text:
        rows = list(csv.reader(text))[1:]
    stream = file(path)
    assert stream.feature_names == ("x", "a\nnote")
    X, y = whole(stream)
    assert X[:, 0].tolist() == [float(row[0]) for row in rows]
    assert y.tolist() == [row[2] for row in rows]
    assert stream.estimated_samples == pytest.approx(len(rows), rel=0.1)


@st.composite
def raw_cells(draw):
    """A cell as it stands in a text: within quotes, with something behind them, or bare with quotes in its midst."""
    inner = draw(st.text('ab",\n\r ', max_size=8))
    if draw(st.booleans()):
        doubled = inner.replace('"', '""')
        return f'"{doubled}"' + draw(st.sampled_from(["", "", "c", ' c"', 'c"d"']))
    return "x" + re.sub("[,\n\r]", "", inner)


@given(
    cells=st.lists(st.tuples(raw_cells(), raw_cells()), min_size=1, max_size=12),
    end=st.sampled_from(["\n", "\r\n", "\r", "\n\n"]),
    last=st.booleans(),
    block=st.integers(64, 200),
)
def test_quotes_are_read_as_by_python_wherever_the_text_is_cut(tmp_path, cells, end, last, block):
    path = tmp_path / "t.csv"
    text = end.join(["one,two", *map(",".join, cells)]) + end * last
    path.write_bytes(text.encode())
    expected = [row for row in csv.reader(io.StringIO(text, newline="")) if row][1:]
    layout = replace(delimited.csv_layout(TextFile(path), None, Reading(header=True)), block=block)
    tables = layout.tables({"0": pa.string(), "1": pa.string()})
    assert [list(row.values()) for table in tables for row in table.to_pylist()] == expected


@given(cells=st.lists(st.tuples(raw_cells(), raw_cells()), max_size=12), block=st.integers(64, 200))
def test_a_wrong_row_is_told_with_its_line_whatever_is_quoted_before_it(tmp_path, cells, block):
    path = tmp_path / "t.csv"
    before = "\n".join(["one,two", *map(",".join, cells)]) + "\n"
    path.write_bytes(before.encode() + b"1,2,3\n")
    line = len(re.findall("\r\n|\r|\n", before)) + 1
    layout = replace(delimited.csv_layout(TextFile(path), None, Reading(header=True)), block=block)
    with pytest.raises(StreamError, match=rf"row {len(cells) + 1} \(line {line}\) has 3 columns instead of 2: 1,2,3"):
        list(layout.tables({"0": pa.string(), "1": pa.string()}))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ('1,"p\n' + 500_000 * "2,q\n", r"row 1 \(line 2\) opens a quote that is never closed; it begins with b'1,\"p"),
        (50 * "2,q\n" + '1,"p\n2,q\n', r"row 51 \(line 52\) opens a quote that is never closed"),
        (200_000 * '2,"q"\n' + '1,"p\n' + 500_000 * "2,q\n", r"row 200001 \(line 200002\) opens a quote"),
    ],
)
def test_a_quote_that_is_never_closed(rows, message, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x,label\n" + rows)
    with pytest.raises(StreamError, match=message):
        whole(file(path))
    path.write_text('x,"label\n' + rows.replace('"', ""))
    with pytest.raises(StreamError, match="its first row opens a quote that is never closed"):
        whole(file(path))


def test_a_quoted_name_over_many_lines_is_told_in_one_short_line(tmp_path):
    path = tmp_path / "open.csv"
    path.write_text('"x,y,label\n' + "1.5,2,a\n" * 5 + '4"\n5\n')
    with pytest.raises(StreamError, match=r"the columns are x,y,label 1\.5,2,a 1\.5,2,a 1\.5,2,a 1\.5,2,…$"):
        whole(file(path))


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (None, r"which column has the labels\? .*the columns are x, y, z"),
        ("w", "no column 'w'; the columns are x, y, z"),
        (3, "no column 3, only 3 columns"),
        ("x", r"target 'x' must be classes, got 1.5 in row 1"),
    ],
)
def test_a_target_that_is_not_there(target, message, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x,y,z\n1.5,2,a\n3.5,4,b\n")
    with pytest.raises(StreamError, match=message):
        whole(file(path, target=target))


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_names_with_blanks_around_them(ending, tmp_path):
    path = tmp_path / f"t{ending}"
    write(pa.table({" id ": [1, 2], "x": [3, 4], " label ": ["a", "b"]}), path)
    for target, drop in ((" label ", " id "), ("label", "id")):
        X, y = whole(file(path, target=target, drop=[drop]))
        assert (X.tolist(), y.tolist()) == ([[3], [4]], ["a", "b"])
    write(pa.table({"label": [1, 2], "x": [3, 4], " label ": ["a", "b"]}), path)
    if ending == ".parquet":
        assert whole(file(path, target=" label "))[1].tolist() == ["a", "b"]
    else:
        with pytest.raises(StreamError, match="more than one column is called"):
            file(path, target=" label ")


def test_no_such_file(tmp_path):
    with pytest.raises(StreamError, match="no such file"):
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
        ({"X": np.array([[0.0], [np.inf]]), "y": [0, 1]}, "row 2 has infinity in the column 'x1'"),
        ({"X": X, "y": X[:, 0]}, "the target 'y' must be classes"),
        ({"X": X}, "no array 'y'; it has 'X'"),
        ({"X": X, "y": Y[:5]}, "X must have a row"),
        ({"x": X[:, 0], "z": X[:9, 0], "y": Y}, "z and y must have a value for each sample"),
        ({"y": Y}, "no array 'X'; it has 'y'"),
    ):
        np.savez(path, **arrays)
        with pytest.raises(StreamError, match=message):
            whole(file(path))


def npy(shape, dtype="<f8", by_column=False):
    """The beginning of an array as .npy has it."""
    content = io.BytesIO()
    np.lib.format.write_array_header_2_0(content, {"descr": dtype, "fortran_order": by_column, "shape": shape})
    return content.getvalue() + bytes(1000)


@contextmanager
def little_memory(n_bytes=2_000_000):
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < n_bytes
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("arrays", "declared", "message"),
    [
        ({"X": npy((10**12, 2))}, None, r"'X' must have 16,000,000,000,000 bytes by its shape .* got 1,000"),
        ({"X": npy((-1, 2))}, None, "'X' must have"),
        ({"X": npy((10**11, 10), by_column=True), "y": npy((10**11,))}, 10**13, "unpacks from .* saved by column"),
        ({"X": npy((10, 10**11)), "y": npy((10,))}, 10**13, "a row of the array 'X' has 800,000,000,000 bytes"),
        ({"feature_names": npy((10**7,), "<U1000")}, 10**13, "the array 'feature_names' has 40,000,000,000 bytes"),
        ({"class_names": npy((10**7,), "<U1000")}, 10**13, "the array 'class_names' has 40,000,000,000 bytes"),
        ({"X": b"\x93NUMPY\x02\x00\xff\xff\xff\x7f"}, 10**13, "the array 'X' cannot be read"),
    ],
)  # fmt: skip
def test_an_npz_that_would_fill_the_memory_is_refused_before_it_is_unpacked(arrays, declared, message, tmp_path):
    path = tmp_path / "t.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in ({"X": npy((5, 2)), "y": npy((5,))} | arrays).items():
            archive.writestr(f"{name}.npy", content)
            if declared and name in arrays:
                archive.getinfo(f"{name}.npy").file_size = declared
    assert path.stat().st_size < 5000
    with little_memory(), pytest.raises(StreamError, match=message) as error:
        whole(file(path))
    assert "\n" not in str(error.value)


def test_wide_rows_of_an_npz_are_unpacked_a_few_at_a_time(tmp_path):
    path = tmp_path / "t.npz"
    np.savez_compressed(path, X=np.zeros((40, 1_000_000), bool), y=np.arange(40))
    sizes = [len(features) for features, _ in file(path).blocks()]
    assert sum(sizes) == 40
    assert max(sizes) == 4


@pytest.mark.parametrize("name", ["t.csv.gz", "t.arff.gz"])
def test_a_packed_line_that_would_fill_the_memory_is_refused(name, tmp_path):
    path = tmp_path / name
    path.write_bytes(gzip.compress(b"\n" + bytes([ord("1")]) * 40_000_000))
    with little_memory(120_000_000), pytest.raises(StreamError, match=r"line 2 is longer than 16,777,216 characters"):
        file(path)


def test_a_label_of_many_characters_does_not_fill_the_memory(tmp_path):
    path = tmp_path / "t.csv"
    labels = ["ab"[k % 2] for k in range(100_000)]
    labels[500] = "c" * 400_000
    path.write_text("x,label\n" + "".join(f"1,{label}\n" for label in labels))
    with little_memory(50_000_000):
        assert [label for _, y in file(path) for label in y.tolist()] == labels


def test_what_python_has_serves(table):
    reference = whole(sea(1500))
    rows = list(zip(*reference, strict=True))
    for source in (reference, list(sea(1500)), rows, iter(rows), sea(1500)):
        for ours, theirs in zip(whole(open_stream(source, chunk=200)), reference, strict=True):
            np.testing.assert_array_equal(ours, theirs)
    with pytest.raises(StreamError, match="a new feature 'z' in sample 2"):
        whole(open_stream([({"x": 1}, 0), ({"x": 1, "z": 2}, 1)]))
    with pytest.raises(StreamError, match="mixes types"):
        whole(open_stream([({"x": 1}, 0), ({"x": 2}, "red")]))


def test_a_dataset_of_rivers_serves():
    datasets = pytest.importorskip("river.datasets")
    summary = Summary(prequential(open_stream(datasets.Phishing()), DEVDAN(random_state=0)))
    assert summary.n_samples == 1250
    assert set(summary.classes) == {True, False}


LEFT_OPEN = """
import sys, threading
from devdan.streams import open_stream
def readers():
    return [thread for thread in threading.enumerate() if thread.name.startswith("devdan-reader")]
left = iter(open_stream(sys.argv[1], target="label"))
next(left)
assert readers()
del left
assert not readers()
left = iter(open_stream(sys.argv[1], target="label"))
next(left)
if len(sys.argv) > 2:
    raise SystemExit
"""


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet", "t.arff"])
@pytest.mark.parametrize("how", [(), ("exit",)])
def test_a_program_may_end_with_a_stream_left_open(table, name, how, tmp_path):
    path = write(pa.concat_tables(60 * [table]), tmp_path / name)
    run = subprocess.run([sys.executable, "-c", LEFT_OPEN, path, *how], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


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
