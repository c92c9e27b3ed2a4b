"""Any bytes in place of a file with samples: a ``StreamError`` of one line that names the file, or samples."""

import bz2
import gzip
import io
import lzma
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hostile import changes
from hypothesis import given
from hypothesis import strategies as st
from workbooks import write_workbook

from devdan.encoding.encoding import OrdinalCodes
from devdan.encoding.rows import Rows
from devdan.streams import StreamError
from devdan.streams.files import file

pytestmark = [
    pytest.mark.fuzz,
    pytest.mark.filterwarnings("ignore:.*(different texts in its first|is not UTF-8 text, so|has the class)"),
]
CSV = b'x,y,label\n1.5,2,a\n,3,b\r\n"4",5e3,a\n\n7,2020-01-01,\xc3\xa9\n'
ARFF = b"""% a comment
@relation r
@attribute a numeric
@attribute 'b b' {x,'y z'}
@attribute class {p,q}
@data
1,x,p
?,'y z',q % another
3,x,?
"""
MARKS = [bytes([mark]) for mark in b"\"',;\t\r\n\0\xff\\%{}?"]
WORDS = [b"\xef\xbb\xbf", b"inf", b"nan", b"1e999", b"12:30", b"true", b"@data", b"@attribute"]
TOKENS = st.sampled_from(MARKS + WORDS)


def saved(write):
    content = io.BytesIO()
    write(content)
    return content.getvalue()


def zipped(content, name, inner):
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, inner)


def write_arrow(content, new):
    table = pa.table({"x": [1.0, None], "at": pa.array([0, 1], pa.timestamp("us")), "label": ["a", "b"]})
    with new(content, table.schema) as writer:
        writer.write_table(table)


JSON = b'{"x": 1.5, "c": "red", "label": "a"}\n{"x": null, "c": 7, "label": "b"}\n{"c": "\xc3\xa9", "label": "a"}'
ARRAYS = {"X": np.arange(10.0).reshape(5, 2), "y": np.array(list("ababa"))}
FILES = {
    "t.csv": CSV,
    "t.csv.gz": gzip.compress(CSV),
    "t.csv.bz2": bz2.compress(CSV),
    "t.csv.xz": lzma.compress(CSV),
    "t.csv.zip": saved(lambda content: zipped(content, "t.csv", CSV)),
    "utf16.csv": CSV.decode().encode("utf-16"),
    "t.jsonl": JSON,
    "t.json": b"[" + b",".join(JSON.split(b"\n")) + b"]",
    "t.xlsx": saved(lambda content: write_workbook(content, [["x", "label"], [1.5, "a"], [None, "b"], [True, "a"]])),
    "t.arrow": saved(lambda content: write_arrow(content, pa.ipc.new_file)),
    "t.arrows": saved(lambda content: write_arrow(content, pa.ipc.new_stream)),
    "t.tsv": CSV.replace(b",", b"\t"),
    "t.arff": ARFF,
    "t.arff.gz": gzip.compress(ARFF),
    "t.npz": saved(lambda content: np.savez(content, **ARRAYS)),
    "packed.npz": saved(lambda content: np.savez_compressed(content, **ARRAYS)),
    "t.parquet": saved(
        lambda content: pa.parquet.write_table(pa.table({"x": [1.0, 2.0], "label": ["a", "b"]}), content)
    ),
}


def reads_or_says_so(path):
    said = None
    try:
        for X, y in file(path, chunk=2):
            assert X.ndim == 2
            assert y.shape == X.shape[:1]
            numbers = OrdinalCodes().numbers(X) if isinstance(X, Rows) else X
            assert numbers.dtype == np.float64
            assert not np.isinf(numbers).any()
    except StreamError as error:
        said = str(error)
    assert said is None or (str(path) in said and "\n" not in said)


@pytest.mark.parametrize("name", FILES)
@given(steps=st.lists(st.one_of(changes(1000), st.tuples(st.integers(0, 1000), TOKENS)), min_size=1, max_size=6))
def test_altered_files(tmp_path, name, steps):
    content = FILES[name]
    for step in steps:
        if callable(step):
            content = step(content)
        else:
            place = step[0] % (len(content) + 1)
            content = content[:place] + step[1] + content[place:]
    path = tmp_path / name
    path.write_bytes(content)
    reads_or_says_so(path)


@pytest.mark.parametrize("name", FILES)
@given(content=st.binary(max_size=300))
def test_any_bytes(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    reads_or_says_so(path)
