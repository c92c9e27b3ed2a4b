"""One table in every format and behind every door: the same samples, and clear words about what is wrong."""

import codecs
import gzip
import io
import json
import lzma
import sys
import zipfile
from itertools import islice

import formats_page
import numpy as np
import pytest
from table_files import FORMATS, LABELS, NAMES, ROWS, N, database, objects, text, written, zipped
from workbooks import CLOCK, DATE, OWN, write_workbook

from devdan import DEVDAN
from devdan.encoding.encoding import Encoding, EncodingWarning
from devdan.evaluation.loop import prequential
from devdan.streams import StreamError, open_stream, open_table
from devdan.streams.files import READERS, file


def told(records):
    """Records without times and memory."""
    return [
        {name: value for name, value in record._asdict().items() if "seconds" not in name and "memory" not in name}
        if hasattr(record, "_asdict")
        else {
            name: value
            for name, value in vars(record).items()
            if not any(word in name for word in ("seconds", "memory", "time"))
        }
        for record in records
    ]


@pytest.fixture(scope="module")
def reference():
    samples = [(row[:-1], row[-1]) for row in ROWS]
    pairs = [({n: v for n, v in zip(NAMES, row, strict=False) if v is not None}, label) for row, label in samples]
    pairs[0][0].setdefault("city", None)
    stream = open_stream(pairs, chunk=100)
    return told(prequential(stream, DEVDAN(random_state=0)))


@pytest.mark.filterwarnings("ignore:the column")
@pytest.mark.parametrize("name", FORMATS)
def test_every_format_gives_the_same_records(name, reference, tmp_path):
    source = written(name, tmp_path)
    stream = open_stream(source, target="label", chunk=100)
    assert stream.feature_names == ("amount", "city", "code")
    assert told(prequential(stream, DEVDAN(random_state=0))) == reference
    assert [len(y) for _, y in stream] == [100] * 6  # again
    table = open_table(source)
    blocks = list(table.read([2, 0], [1, 3], []))
    assert sum(len(rows) for rows, _ in blocks) == N
    kept = [some if isinstance(some, list) else some.to_pylist() for _, (_, some) in blocks]
    assert [label for some in kept for label in some] == LABELS


@pytest.mark.filterwarnings("ignore:the column")
@pytest.mark.parametrize(
    "content", [text(), text(";"), text(";", ","), text("\t"), text("|"), "\n".join(map(json.dumps, objects()))]
)
def test_an_open_file_gives_the_same_records(content, reference):
    stream = open_stream(io.BytesIO(content.encode()), target="label", chunk=100)
    assert told(prequential(stream, DEVDAN(random_state=0))) == reference


def test_every_reader_is_among_the_formats():
    tried = {f".{name.partition('.')[2].split('.')[0]}" for name in FORMATS}
    for reader in READERS:
        assert reader.name in ("ARFF", "NumPy") or tried & set(reader.endings), reader.name  # which test_files.py has


def test_the_page_has_the_table_of_readers():
    text = formats_page.PAGE.read_text(encoding="utf-8")
    assert text == formats_page.page(text), "python website/formats_page.py writes it again"


# --- What people say about a text --------------------------------------------------------------------------------


def values(source, **options):
    ((rows, y),) = open_stream(source, target="y", **options)
    return rows.objects(), y.tolist()


def test_a_factor_of_a_thousand_is_read_alike_at_every_door(tmp_path):
    """One comma or point before three digits: the column and its neighbours decide, not the door."""
    for separator in (";", "\t", "|"):
        content = separator.join(["a", "y"]) + "\n" + "".join(f"1,{k:03d}{separator}{k % 2}\n" for k in range(1, 40))
        path = tmp_path / "t.csv"
        path.write_text(content)
        rows = [{"a": f"1,{k:03d}"} for k in range(1, 40)]
        with pytest.warns(EncodingWarning, match="nothing says"):
            known = DEVDAN(random_state=0).partial_fit(rows, [k % 2 for k in range(1, 40)])
        for source in (path, io.StringIO(content)):
            model = DEVDAN(random_state=0)
            with pytest.warns(EncodingWarning, match="'1,001', read as 1001: nothing says whether the comma"):
                for X, y in open_stream(source, target="y"):
                    model.partial_fit(X, y)
            assert model.encoding_.to_json() == known.encoding_.to_json()
            assert model.encode(rows[:1]).tolist() == [[1001.0]]


@pytest.mark.filterwarnings("ignore:the column")
def test_thousands_beside_decimal_commas(tmp_path):
    content = "a;b;y\n" + "".join(f"{k % 9},{k % 90 + 10};1.{k:03d};{k % 2}\n" for k in range(1, 40))
    (tmp_path / "t.csv").write_text(content)
    for source in (tmp_path / "t.csv", io.StringIO(content)):
        model = DEVDAN(random_state=0)
        for X, y in open_stream(source, target="y"):
            model.partial_fit(X, y)
        assert model.encode([{"a": "1,5", "b": "1.001"}]).tolist() == [[1.5, 1001.0]]
        assert any("'1.001', read as 1001: other columns have" in note for note in model.encoding_.notes)


@pytest.mark.filterwarnings("ignore:the column")
@pytest.mark.parametrize("block", [3000, 1 << 20])
def test_decimal_commas_are_the_same_numbers_however_they_are_read(block, tmp_path, monkeypatch):
    """Those of later blocks are read by Arrow, those of an open file one by one."""
    monkeypatch.setattr("devdan.streams.delimited.BLOCK", block)
    random, lines = np.random.default_rng(0), ["a;b;c;d;e;label"]
    for k in range(4000):
        a = "NA" if k % 50 == 3 else "" if k % 50 == 4 else f"{random.normal():.2f}".replace(".", ",")
        b = "1.234" if k == 3100 else "unknown" if k == 2500 else f"{k % 7},5"
        lines.append(f"{a};{b};{random.normal():.2f};{k % 13};{'red' if k % 3 else 'blue'};{'ab'[k % 2]}")
    text = "\n".join(lines) + "\n"
    (tmp_path / "t.csv").write_text(text)
    encodings, inputs = [Encoding(), Encoding()], []
    for place, source in enumerate((tmp_path / "t.csv", io.StringIO(text))):
        parts = []
        for X, _ in open_stream(source, chunk=500):
            part, encodings[place] = encodings[place].learned(X)
            parts.append(part[:, : parts[0].shape[1]] if parts else part)
        inputs.append(np.concatenate(parts))
    np.testing.assert_array_equal(*inputs)
    known = [[(each.name, each.kind, each.decimal, each.values) for each in one.columns.values()] for one in encodings]
    assert known[0] == known[1]
    assert inputs[0][3100, 1] == 1234
    if block == 3000:
        read = list(open_stream(tmp_path / "t.csv", chunk=500))
        assert 0 in read[0][0].others
        assert 0 not in read[-1][0].others


def test_a_decimal_sign_that_is_said_is_taken(tmp_path):
    content = "a;b;y\n" + "".join(f"1,{k:03d};1.{k:03d};{k % 2}\n" for k in range(1, 40))
    (tmp_path / "t.csv").write_text(content)
    for decimal, expected in ((",", [1.001, 1001.0]), (".", [1001.0, 1.001])):
        for source in (tmp_path / "t.csv", io.StringIO(content)):
            model = DEVDAN(random_state=0)
            for X, y in open_stream(source, target="y", decimal=decimal):
                model.partial_fit(X, y)
                first = model.encode(X[:1]).tolist() if len(y) else None
            assert first == [expected]
            assert not any("nothing says" in note for note in model.encoding_.notes)


@pytest.mark.filterwarnings("ignore:the column")
def test_codes_keep_their_zeros_at_every_door(tmp_path):
    content = "a,y\n" + "007,0\nA12,1\n012,0\nB7,1\n" * 20
    (tmp_path / "t.csv").write_text(content)
    for chunk in (1, 3, 500):
        for source in (tmp_path / "t.csv", io.StringIO(content)):
            model = DEVDAN(random_state=0)
            for X, y in open_stream(source, target="y", chunk=chunk):
                model.partial_fit(X, y)
            assert sorted(model.encoding_.columns["a"].values) == ["007", "012", "A12", "B7"], chunk


def test_codes_keep_their_zeros_where_words_come_late(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,y\n" + "007,0\n" * 300_000 + "A12,1\n")  # in another block
    assert {value for X, _ in open_stream(path, target="y") for value in X.objects()[0]} == {"007", "A12"}


def test_any_separator_and_encoding_that_is_named(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a~y\n1,5~x\n2~z\n")
    assert values(path, sep="~") == ([["1,5", "2"]], ["x", "z"])
    path.write_text("a,b;y\nü,1;x\n", encoding="cp850")
    assert values(path, sep=";", encoding="cp850") == ([["ü,1"]], ["x"])
    assert values(io.BytesIO("a,y\nü,x\n".encode("utf-16")), encoding="utf-16") == ([["ü"]], ["x"])
    assert values(io.BytesIO("a,y\nü,x\n".encode("latin-1")), encoding="latin-1") == ([["ü"]], ["x"])


@pytest.mark.parametrize(
    ("name", "row", "message"),
    [
        (
            "t.csv",
            "5,{},a",
            r"row 90000 \(line 90001\) has .* in column 'city', which holds text in UTF-8; name its enc",
        ),
        (
            "t.jsonl",
            '{{"x": 5, "city": "{}", "label": "a"}}',
            "line 90000 is not utf-8 text; name its encoding with enc",
        ),
        (
            "t.json",
            '{{"x": 5, "city": "{}", "label": "a"}},',
            "is not utf-8 text throughout: name its encoding with en",
        ),
    ],
)
def test_another_encoding_that_begins_late_is_said_with_its_line(name, row, message, tmp_path):
    """A megabyte and more is plain, so that nothing tells the encoding before."""
    rows = [row.format("Rome and all its hills")] * 100_000
    rows[89_999] = row.format("K\u00f6ln")
    head = {"t.csv": ["x,city,label"], "t.json": ["["]}.get(name, [])
    tail = ["]"] if name == "t.json" else []
    text = "\n".join([*head, *rows, *tail]).replace(",\n]", "\n]") + "\n"
    (tmp_path / name).write_bytes(text.encode("latin-1"))
    sizes = (len(y) for _, y in open_stream(tmp_path / name, target="label"))
    n = sum(islice(sizes, 100))
    assert n == 50_000
    with pytest.raises(StreamError, match=message):
        list(sizes)
    assert sum(len(y) for _, y in open_stream(tmp_path / name, target="label", encoding="latin-1")) == 100_000


def test_another_encoding_is_found_and_said(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,y\nKöln,x\n€5,z\n", encoding="cp1252")
    with pytest.warns(EncodingWarning, match=r"t.csv is not UTF-8 text, so it is read as Western European \(cp1252\)"):
        assert values(path) == ([["Köln", "€5"]], ["x", "z"])
    path.write_text("a,y\n" + "x,1\n" * 400_000 + "Köln,x\n", encoding="latin-1")
    with pytest.raises(StreamError, match=r"row 400001 \(line 400002\) .* name its encoding with encoding="):
        list(open_stream(path, target="y"))
    path.write_bytes(b"a,y\n\x81\x8d,x\n")
    with pytest.raises(StreamError, match="neither UTF-8 text nor Western European; name its encoding"):
        values(path)
    path.write_bytes(codecs.BOM_UTF16_LE + "a,y\nü,x\n".encode("utf-16-le")[:-3])
    with pytest.raises(StreamError, match="not utf-16 text throughout"):
        values(path)


# --- JSON --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.json", '[{"a": 1, "y": 0}, {"a": 2', "the array is never closed, or no JSON, after row 1; row 2 begins"),
        ("t.json", '[{"a": 1, "y": 0}', "the array is never closed"),
        ("t.json", '[{"a": 1, "y": 0}] [', "there is more after the array"),
        ("t.json", '[{"a": 1, "y": 0},]', "row 2 is missing after a comma"),
        ("t.json", '[{"a": 1, "y": 0} {"a": 2}]', "after row 1 comes .* instead of a comma"),
        ("t.json", "[1, 2]", "row 1 is not a JSON object: 1"),
        ("t.json", "[]", "has no rows"),
        ("t.json", "[" * 100_000, "row 1 is nested too deeply"),
        ("t.jsonl", '{"a": 1, "y": 0}\n{"a": 1,\n', r"line 2 is not a JSON object"),
        ("t.jsonl", "7\n", "line 1 is not a JSON object: 7"),
        ("t.jsonl", "", "has no rows"),
        ("t.jsonl", '{"a": {"b": 1}, "y": 0}\n', "row 1 has a dict in the column 'a'"),
        ("t.jsonl", '{"a": Infinity, "y": 0}\n', "row 1 has infinity in the column 'a'"),
        ("t.jsonl", '{"a": 1, "y": 0}\n' * 1500 + '{"b": 1}\n', r"row 1501 \(line 1501\) has a new column 'b'"),
        ("t.jsonl.gz", gzip.compress(b'{"a": 1, "y": 0}\n' * 99, mtime=0)[:-9], "is damaged or incomplete"),
        ("t.jsonl.xz", lzma.compress(b'{"a": 1, "y": 0}\n' * 99)[:-9], "is damaged or incomplete"),
        ("t.csv.xz", b"nothing packed", "not compressed as its name says"),
    ],
)
def test_what_is_wrong_with_json_and_packed_files(name, content, message, tmp_path):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(StreamError, match=message) as error:
        list(file(path, target="y"))
    assert name in str(error.value)
    assert "\n" not in str(error.value)


def test_values_of_several_types_in_a_column(tmp_path):
    (tmp_path / "t.json").write_text('[{"a": 1, "y": 0}, {"a": "x", "y": 1}, {"y": 1, "b": true}]')
    assert values(tmp_path / "t.json") == ([["1", "x", None], [None, None, 1.0]], [0, 1, 1])


# --- Workbooks ---------------------------------------------------------------------------------------------------


def test_a_workbook_as_other_programs_write_it(tmp_path):
    path = tmp_path / "t.xlsx"
    shared = "<si><t>first</t></si><si><r><t>ric</t></r><r><t>h</t></r><rPh><t>said</t></rPh></si>"
    sheet = (
        '<row r="3"><c r="B3" t="inlineStr"><is><t>a</t></is></c><c r="C3" t="inlineStr"><is><t>y</t></is></c></row>'
        '<row r="9"><c r="A9"/><c r="B9" t="s"><v>1</v></c><c r="C9"><f>1+1</f><v>2</v></c></row>'
        '<row r="10"><c r="B10" t="e"><v>#N/A</v></c><c r="C10" t="str"><f>"a"</f><v>3</v></c></row>'
    )
    write_workbook(path, [], sheet, shared, before=1)
    ((rows, _),) = open_table(path).read([1, 2], [], [])
    assert rows.objects() == [["rich", "#N/A"], ["2", "3"]]
    assert rows.columns()[0].missing.tolist() == [False, True]


def test_dates_of_a_workbook_are_dates(tmp_path):
    path = tmp_path / "t.xlsx"
    write_workbook(path, [["day", "at", "own", "y"], [(45322, DATE), (0.5, CLOCK), (45322.25, OWN), 1]])
    ((rows, y),) = open_stream(path, target="y")
    assert rows.objects() == [
        ["2024-01-31T00:00:00.000000"],
        ["1970-01-01T12:00:00.000000"],
        ["2024-01-31T06:00:00.000000"],
    ]
    assert y.tolist() == [1]


@pytest.mark.parametrize(
    ("rows", "sheet", "message"),
    [
        ([], "", "has no rows"),
        ([["a", "y"], [1, 2, 3]], None, "row 1 has 3 columns instead of 2"),
        ([], '<row><c r="ZZZZ1"><v>1</v></c></row>', "a cell is out of place: 'ZZZZ1'"),
        ([], '<row><c r="B1"><v>1</v></c><c r="A1"><v>1</v></c></row>', "a cell is out of place: 'A1'"),
        ([], '<row><c t="s"><v>7</v></c></row>', "cannot be read after row 0: list index out of range"),
        ([], "<row><c><v>1</v></row>", "cannot be read after row 0: mismatched tag"),
        ([], '<row><c t="n"><v>one</v></c></row>', "cannot be read after row 0: could not convert"),
    ],
)
def test_what_is_wrong_with_a_workbook(rows, sheet, message, tmp_path):
    write_workbook(tmp_path / "t.xlsx", rows, sheet)
    with pytest.raises(StreamError, match=message):
        list(file(tmp_path / "t.xlsx", target="y"))


def test_a_cell_at_the_end_of_a_sheet_takes_no_memory(tmp_path):
    """Of a kilobyte, a reader that makes sheets whole would make half a terabyte."""
    sheet = '<row r="1"><c r="A1"><v>1</v></c></row><row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'
    write_workbook(tmp_path / "t.xlsx", [], sheet)
    with pytest.raises(StreamError, match="row 2 has 16384 columns instead of 1"):
        list(open_table(tmp_path / "t.xlsx").read([0], [], []))


def test_entities_of_a_workbook_do_not_explode(tmp_path):
    path = tmp_path / "t.xlsx"
    entities = "".join(f'<!ENTITY e{k} "{f"&e{k - 1};" * 10 if k else "ha"}">' for k in range(10))
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("xl/_rels/workbook.xml.rels", f"<!DOCTYPE x [{entities}]><x>&e9;</x>")
    with pytest.raises(StreamError, match="is not an Excel workbook"):
        list(file(path, target="y"))


# --- Zips, folders and databases ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({}, "must hold one file, got 0: none"),
        ({"a.csv": "x", "b.csv": "x"}, "must hold one file, got 2: a.csv, b.csv"),
        ({"a.parquet": "x"}, "holds a.parquet, which cannot be read within a zip; unpack it first"),
        ({"a.csv": ""}, "is empty"),
    ],
)
def test_what_is_wrong_with_a_zip(members, message, tmp_path):
    zipped(tmp_path / "t.zip", members)
    with pytest.raises(StreamError, match=message):
        file(tmp_path / "t.zip", target="y")


def test_a_damaged_zip_is_told(tmp_path):
    zipped(tmp_path / "t.zip", {"a.csv": text()})
    content = bytearray((tmp_path / "t.zip").read_bytes())
    content[len(content) // 2] ^= 0xFF
    (tmp_path / "t.zip").write_bytes(content)
    with pytest.raises(StreamError, match="damaged or incomplete"):
        list(file(tmp_path / "t.zip", target="label"))
    (tmp_path / "t.zip").write_bytes(content[:200])
    with pytest.raises(StreamError, match="not compressed as its name says, or is incomplete"):
        file(tmp_path / "t.zip", target="label")


def test_a_folder_needs_the_same_columns_in_any_order(tmp_path):
    folder = tmp_path / "parts"
    folder.mkdir()
    with pytest.raises(StreamError, match="is a folder without files"):
        file(folder)
    (folder / "b.csv").write_text("y,x\np,3\n")
    (folder / "a.csv").write_text("x,y\n1,q\n2,q\n")
    (folder / ".hidden").write_text("nothing")
    assert values(folder) == ([[1.0, 2.0, 3.0]], ["q", "q", "p"])
    (folder / "c.csv").write_text("x,z\n1,q\n")
    with pytest.raises(StreamError, match=r"c.csv must have the columns of .*a.csv, x, y, got x, z"):
        file(folder, target="y")
    with pytest.raises(StreamError, match="no file matches"):
        file(folder / "*.parquet")


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        ("?table=none", "has no table 'none'; there is 'orders'"),
        ("", r"say what to read with either \?table=NAME or \?query="),
        ("?query=DROP TABLE orders", "cannot be read: not authorized"),
        ("?query=SELECT absent FROM orders", "cannot be read: no such column: absent"),
        ("?query=SELECT * FROM orders WHERE amount > 1e9", "has no rows"),
        ("?query=ATTACH DATABASE 'x.db' AS x", "cannot be read: not authorized"),
    ],
)
def test_what_is_wrong_with_a_query(rest, message, tmp_path):
    database(tmp_path / "t.db")
    before = (tmp_path / "t.db").read_bytes()
    with pytest.raises(StreamError, match=message):
        list(open_stream(f"sqlite:///{tmp_path / 't.db'}{rest}", target="label"))
    assert (tmp_path / "t.db").read_bytes() == before
    assert not (tmp_path / "x.db").exists()


def test_a_query_may_have_any_characters(tmp_path):
    database(tmp_path / "t.db")
    query = "SELECT amount + 1 AS more, label FROM orders WHERE city LIKE '%n%' AND code <> '?&='"
    (first, _), *_ = open_stream(f"sqlite:///{tmp_path / 't.db'}?query={query}", target="label")
    assert first.names == ("more",)
    with pytest.raises(StreamError, match="no such database"):
        open_stream(f"sqlite:///{tmp_path / 'u.db'}?table=orders", target="label")
    (tmp_path / "u.db").write_bytes(b"nothing like a database" * 99)
    with pytest.raises(StreamError, match="cannot be read: file is not a database"):
        open_stream(f"sqlite:///{tmp_path / 'u.db'}?table=orders", target="label")


def test_a_driver_that_is_missing_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(StreamError, match=r"needs the package duckdb: pip install 'devdan\[duckdb\]'"):
        open_stream("duckdb:///a.db?table=t")
