"""What requests bring: rows read straight into the order of the columns, and Arrow IPC, are as JSON by name."""

import struct
import tracemalloc
from contextlib import suppress
from datetime import date, datetime, time
from decimal import Decimal

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from devdan.service import ledger, sql
from devdan.service.arrow import arrow_labels, arrow_rows, is_arrow
from devdan.service.bodies import ROWS, SAMPLES, LabelIn, LabelsIn, RowIn, check_rows, parsed, parsed_rows
from devdan.service.inference import Inference
from devdan.service.schema import (
    LONGEST_VALUE,
    InvalidError,
    LimitError,
    Limits,
    StreamSettings,
    Submission,
    SubmittedRow,
)
from devdan.service.store import SqliteDatabase

NAMES = st.lists(st.text(st.sampled_from('ab "\\é€'), max_size=3), min_size=1, max_size=6, unique=True)
VALUES = st.none() | st.booleans() | st.text(max_size=3) | st.floats(allow_nan=False, allow_infinity=False)


@pytest.mark.fuzz
@given(NAMES, st.data())
def test_values_in_order_are_those_by_name(columns, data):
    features = st.dictionaries(st.sampled_from([*columns, "other"]), VALUES)
    rows = data.draw(st.lists(st.fixed_dictionaries({"features": features, "id": st.just("a")}), max_size=4))
    content = msgspec.json.encode({"rows": rows})
    by_name = ROWS.decode(content).rows
    read = parsed_rows(content, columns)
    assert [(row.id, row.key) for row in read] == [(row.id, row.key) for row in by_name]
    for row, own in zip(read, by_name, strict=True):
        known = [own.features.get(name) for name in columns]
        assert (list(row.features) == known) if isinstance(row.features, tuple) else (row.features == own.features)
    is_plain = not any(set(name) & set('"\\') for name in columns)
    if is_plain and all(set(row["features"]) <= set(columns) for row in rows):
        assert all(isinstance(row.features, tuple) for row in read)


@pytest.mark.parametrize(
    "content", [b"", b"\xff", b"[" * 100_000, b'{"rows": [{}]}', b'{"rows": [{"features": {"x": []}}]}']
)
def test_what_cannot_be_read_is_told_the_same(content):
    said = []
    for columns in (None, ["x"]):
        with pytest.raises(InvalidError) as error:
            parsed_rows(content, columns)
        said.append(str(error.value))
    assert said[0] == said[1]


# --- Arrow -------------------------------------------------------------------------------------------------------

LIMITS = Limits()


def ipc(table, file=False, compression=None, rows=2):
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with (pa.ipc.new_file if file else pa.ipc.new_stream)(sink, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=rows)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize("file", [False, True])
@pytest.mark.parametrize("compression", [None, "zstd"])
def test_columns_of_every_kind_are_as_json_has_them(file, compression):
    table = pa.table({
        "id": ["a", None, "c"],
        "number": [1.5, float("nan"), None],
        "whole": [1, 2, None],
        "flag": [True, None, False],
        "text": ["Köln", None, ""],
        "category": pa.array(["x", "y", None]).dictionary_encode(),
        "money": pa.array([Decimal("1.50"), None, Decimal("2.25")]),
        "time": pa.array([datetime(2024, 2, 29, 12, 30), None, None], pa.timestamp("ns")),
        "day": [date(2024, 2, 29), None, None],
        "clock": pa.array([time(12, 30), None, None]),
        "nothing": pa.nulls(3),
    })  # fmt: skip
    content = ipc(table, file, compression)
    assert is_arrow(content)
    names = ["number", "whole", "flag", "text", "category", "money", "time", "day", "clock", "nothing"]
    values = [
        [
            1.5,
            1.0,
            True,
            "Köln",
            "x",
            1.5,
            "2024-02-29T12:30:00.000000",
            "2024-02-29T00:00:00.000000",
            "12:30:00.000000",
            None,
        ],
        [None, 2.0, None, None, "y", None, None, None, None, None],
        [None, None, False, "", None, 2.25, None, None, None, None],
    ]
    expected = [
        RowIn(dict(zip(names, own, strict=True)), id_) for id_, own in zip(["a", None, "c"], values, strict=True)
    ]
    assert arrow_rows(content, LIMITS) == expected


def test_keys_and_labels():
    rows = arrow_rows(ipc(pa.table({"key": ["m7"], "x": [1]})), LIMITS)
    assert rows == [RowIn({"x": 1.0}, None, "m7")]
    for labels in (["a", "b"], [1, 0], [True, False]):
        table = pa.table({"label": labels, "id": ["r", "s"]})
        expected = [LabelIn("r", labels[0]), LabelIn("s", labels[1])]
        assert arrow_labels(ipc(table), LIMITS) == LabelsIn(expected)
        corrections = table.replace_schema_metadata({"replaces": "true"})
        assert arrow_labels(ipc(corrections), LIMITS) == LabelsIn(expected, replaces=True)
    with pytest.raises(InvalidError, match="replaces must be true or false in the schema's metadata, got b'yes'"):
        arrow_labels(ipc(table.replace_schema_metadata({"replaces": "yes"})), LIMITS)


LONG = pa.DictionaryArray.from_arrays(pa.array([0] * 10_000), pa.array(["x" * 150]))


@pytest.mark.parametrize(
    ("read", "table", "error", "says"),
    [
        (arrow_rows, {"x": pa.nulls(10_001)}, LimitError, "may have 10000 rows"),
        (arrow_rows, {"x": pa.nulls(0)}, InvalidError, "at least one"),
        (arrow_rows, {f"x{k}": [1] for k in range(1001)}, LimitError, "may have 1000 features"),
        (arrow_rows, {"x": LONG}, LimitError, "characters"),
        (arrow_rows, {"x": [b"bytes"]}, InvalidError, "not numbers, text, flags or times"),
        (arrow_rows, {"x": [1], "id": [""]}, InvalidError, "length >= 1"),
        (arrow_labels, {"id": ["a"], "label": [None]}, InvalidError, "got `null`"),
        (arrow_labels, {"id": ["a"], "label": [0.5]}, InvalidError, "got `float`"),
        (arrow_labels, {"id": ["a"], "label": [1], "x": [1]}, InvalidError, "the columns id and label"),
    ],
)
def test_what_is_not_valid_is_named(read, table, error, says):
    with pytest.raises(error, match=says):
        read(ipc(pa.table(table)), Limits(body=2**20))


REPEATED = pa.array([0] * 100, pa.int8())
ONE = pa.array(["x" * 100_000], pa.string_view()).buffers()
VIEWS = pa.Array.from_buffers(pa.string_view(), 100, [None, pa.py_buffer(ONE[1].to_pybytes() * 100), ONE[2]])
UNPACKED = "8388608 bytes when it is unpacked, got 9018004"


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ({"x": np.zeros(9000), "y": ["x" * 990] * 9000}, UNPACKED),
        ({"x": pa.nulls(5000), **{f"x{k}": pa.nulls(5000) for k in range(900)}}, "2097152 values, got 4505000"),
        ({"x": pa.DictionaryArray.from_arrays(REPEATED, pa.array(np.arange(2_200_000, dtype=np.int8)))}, "values, got"),
        ({f"x{k}": pa.nulls(1) for k in range(100_000)}, "may have 1000 features, got 100000"),
        ({"x": VIEWS}, "8388608 characters, got 10000000"),
    ],
)
def test_what_would_unpack_to_too_much_is_refused_before(table, says, monkeypatch):
    """A few kilobytes each."""
    content = ipc(pa.table(table), compression="zstd", rows=10_000)
    monkeypatch.setattr("devdan.service.arrow.arrow_column", lambda *_: pytest.fail("it was read"))
    with pytest.raises(LimitError, match=says):
        arrow_rows(content, LIMITS)


def repeated(text, n_rows, depth=1):
    """A text for many rows: in a dictionary, or in a dictionary of a dictionary."""
    values = pa.array([text])
    for _ in range(depth):
        values = pa.DictionaryArray.from_arrays(pa.array([0] * n_rows, pa.int16()), values)
    return values


TEXT = "x" * 2**22
RUNS = pa.RunEndEncodedArray.from_arrays(pa.array([200], pa.int32()), [TEXT])
LISTS = pa.ListViewArray.from_arrays(pa.array([0] * 200, pa.int32()), pa.array([1] * 200, pa.int32()), pa.array([TEXT]))
NAMED = pa.array([f"r{k}" for k in range(200)])


@pytest.mark.parametrize("column", [repeated(TEXT, 200), repeated(TEXT, 200, 2), RUNS, LISTS])
@pytest.mark.parametrize(
    ("read", "name", "others"),
    [
        (arrow_rows, "id", {"x": pa.nulls(200)}),
        (arrow_rows, "key", {"x": pa.nulls(200)}),
        (arrow_rows, "x", {}),
        (arrow_labels, "id", {"label": NAMED}),
        (arrow_labels, "label", {"id": NAMED}),
    ],
)
def test_a_text_that_a_message_repeats_never_takes_the_memory_of_all(read, name, others, column):
    """A few kilobytes, and 800 MB as texts; Arrow itself does not read the dictionary of a dictionary."""
    content = ipc(pa.table({name: column, **others}), compression="zstd", rows=1000)
    assert len(content) < 5000
    tracemalloc.start()
    try:
        with pytest.raises((LimitError, InvalidError), match=r"8388608 characters, got 83886|holds|cannot be read"):
            read(content, LIMITS)
        assert tracemalloc.get_traced_memory()[1] < 2**26
    finally:
        tracemalloc.stop()


def test_texts_of_dictionaries_count_as_often_as_rows_have_them():
    words = pa.DictionaryArray.from_arrays(pa.array([0, None, 1, 0]), pa.array(["four", None, "unused"]))
    content = ipc(pa.table({"id": words, "x": pa.nulls(4)}), rows=4)
    assert [row.id for row in arrow_rows(content, Limits(body=200))] == ["four", None, None, "four"]
    table = pa.table({"id": repeated("k" * 20, 10), "key": repeated("k" * 20, 10), "x": pa.nulls(10)})
    assert len(arrow_rows(ipc(table, rows=10), Limits(body=400))) == 10
    with pytest.raises(LimitError, match="399 characters, got 400"):
        arrow_rows(ipc(table, rows=10), Limits(body=399))


def test_a_gigabyte_of_nothing_is_never_unpacked(monkeypatch):
    content = ipc(pa.table({"x": np.zeros(2**27)}), compression="zstd", rows=2**27)
    assert len(content) < 200_000
    monkeypatch.setattr(pa.ipc, "open_stream", lambda *_: pytest.fail("it was unpacked"))
    for limits in (LIMITS, Limits(rows=2**28)):
        with pytest.raises(LimitError, match=r"10000 rows|8388608 bytes when it is unpacked, got 1073741824"):
            arrow_rows(content, limits)


def test_buffers_compressed_in_an_earlier_way_are_measured_too():
    """A column whose own bytes are a size and what unpacks to so much, in a batch that says so as Arrow 0.17 did."""
    packed = struct.pack("<q", 2**24) + pa.compress(bytes(2**24), "zstd", asbytes=True)
    words = pa.array(np.frombuffer(packed + bytes(-len(packed) % 8), np.int64))
    table, sink = pa.record_batch({"x": words}), pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(metadata_version=pa.ipc.MetadataVersion.V4)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_batch(table, custom_metadata={"ARROW:experimental_compression": "zstd"})
    with pytest.raises(LimitError, match="when it is unpacked, got 16777216"):
        arrow_rows(sink.getvalue().to_pybytes(), LIMITS)


@pytest.mark.parametrize("value", [2**62, -(2**62), 2**40])
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("name", ["x", "id", "key"])
def test_times_that_no_calendar_has(value, unit, name):
    for kind in (pa.timestamp(unit), pa.timestamp(unit, "Asia/Tokyo"), pa.duration(unit)):
        times = pa.array([value], kind)
        for column in (times, pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), times)):
            with suppress(InvalidError):
                rows = arrow_rows(ipc(pa.table({"y": [1.0], name: column})), LIMITS)
                assert name == "x", rows
    with pytest.raises(InvalidError, match="label"):
        arrow_labels(ipc(pa.table({"id": ["a"], "label": pa.array([value], pa.timestamp(unit))})), LIMITS)


def test_two_columns_of_a_name_are_refused():
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["x", "x"])
    with pytest.raises(InvalidError, match="different names"):
        arrow_rows(ipc(table), LIMITS)


TIMES = pa.array([5, None], pa.timestamp("s"))
TABLE = pa.table({"id": ["a", "b"], "x": [1.0, 2.0], "city": ["Köln", None], "at": TIMES})
GOOD = [ipc(TABLE, file, compression) for file in (False, True) for compression in (None, "zstd", "lz4")]
CHANGED = st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), max_size=3)


@pytest.mark.fuzz
@given(st.sampled_from(GOOD), st.floats(0, 1), CHANGED)
def test_damaged_batches_are_refused_or_read(good, end, changes):
    content, end = bytearray(good), int(end * len(good))
    for place, byte in changes:
        content[int(place * len(content))] = byte
    with suppress(InvalidError, LimitError):
        arrow_rows(bytes(content[:end]), LIMITS)


def test_a_text_has_a_limit_whatever_way_it_comes():
    def in_json(text, **own):
        return msgspec.json.encode({"rows": [{"features": {"x": 1.0, "text": text}, **own}]})

    def in_a_tensor(text):
        return msgspec.json.encode({"inputs": [{"name": "text", "shape": [1], "datatype": "BYTES", "data": [text]}]})

    tensors = msgspec.json.Decoder(Inference)
    for read in (
        lambda text: parsed_rows(in_json(text), ["x", "text"]),
        lambda text: parsed_rows(in_json(text), None),
        lambda text: parsed(SAMPLES, in_json(text, label=1)),
        lambda text: parsed(tensors, in_a_tensor(text)),
    ):
        assert read("\N{SNOWMAN}" * LONGEST_VALUE)
        with pytest.raises(InvalidError, match=f"length <= {LONGEST_VALUE}"):
            read("\N{SNOWMAN}" * (LONGEST_VALUE + 1))


WORDS = st.text(max_size=5) | st.sampled_from(
    ["", " ", " a\t", "n/a", "NaN", "true", "1.50", "2024-02-29", "\0", "é", "e\u0301"]
)
LONG_WORDS = st.builds(
    lambda word, n, end: word * n + end, WORDS.filter(bool), st.integers(100, 400), st.sampled_from("ab")
)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**53), 2**53)
COLUMNS = st.sampled_from([WORDS | LONG_WORDS, WORDS, NUMBERS, st.booleans()])
KINDS = st.sampled_from(["plain", "dictionary", "view"])


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    database = SqliteDatabase(tmp_path_factory.mktemp("bodies") / "log", "off")
    yield database.connect()
    database.close()


@pytest.mark.fuzz
@given(st.data())
def test_json_and_arrow_leave_the_same_bytes_in_the_log(log, data):
    """Of texts of any length, with spaces or without; of numbers and flags; of what is missing."""
    n, kinds = data.draw(st.integers(1, 4)), data.draw(st.lists(COLUMNS, min_size=1, max_size=3))
    columns = [data.draw(st.lists(st.none() | kind, min_size=n, max_size=n)) for kind in kinds]
    names = [f"x{k}" for k in range(len(columns))]
    ids = [f"r{k}" for k in range(n)]
    in_json = [
        {"id": id_, "features": dict(zip(names, row, strict=True))}
        for id_, row in zip(ids, zip(*columns, strict=True), strict=True)
    ]
    arrays = {"id": pa.array(ids)} | {
        name: as_kind(own, data.draw(KINDS)) for name, own in zip(names, columns, strict=True)
    }
    sent = [ROWS.decode(msgspec.json.encode({"rows": in_json})).rows, arrow_rows(ipc(pa.table(arrays), rows=n), LIMITS)]
    sent.append(parsed_rows(msgspec.json.encode({"rows": in_json}), names))
    kept = []
    for rows in sent:
        with log.transaction():
            ((seen,),) = log.execute("SELECT stream FROM clock")
            stream = sql.create_stream(log, f"s{seen}", StreamSettings(columns=names), 0.0).number
        submitted = [SubmittedRow(row.id, row.features) for row in rows]
        assert ledger.commit(log, [Submission(stream, submitted)], 0.0)[0].rows == n
        kept.append(log.execute("SELECT body FROM records WHERE stream = ? ORDER BY seq", (stream,)))
    assert kept[0] == kept[1] == kept[2]


def as_kind(values, kind):
    """An array of Arrow; texts may be in a dictionary, or views."""
    if not any(isinstance(value, str) for value in values):
        return pa.array(values, pa.float64() if any(type(value) in (int, float) for value in values) else None)
    return {"plain": pa.array, "dictionary": dictionary, "view": lambda own: pa.array(own, pa.string_view())}[kind](
        values
    )


def dictionary(values):
    return pa.array(values).dictionary_encode()


def test_the_texts_of_a_row_have_a_limit_together():
    """Characters of all its texts, whatever way they come; those of other rows do not count."""
    limits = Limits(row=100, body=1000)

    def check(texts, more=()):
        named = [{f"x{k}": text for k, text in enumerate(row)} for row in (texts, *more)]
        content = msgspec.json.encode({"rows": [{"features": row} for row in named]})
        table = pa.table({name: dictionary([row.get(name) for row in named]) for name in named[0]})
        for rows, size in (
            (ROWS.decode(content).rows, len(content)),
            (parsed_rows(content, list(named[0])), len(content)),
            (arrow_rows(ipc(table, rows=9), limits), limits.body),
        ):
            check_rows(rows, False, limits, size)

    check(["\N{SNOWMAN}" * 60, "x" * 40], more=[["y" * 100]])
    with pytest.raises(LimitError, match="the texts of a row may have 100 characters together, got 101"):
        check(["\N{SNOWMAN}" * 60, "x" * 41])
    with pytest.raises(LimitError, match="100 characters together, got 101"):
        check(["", ""], more=[["y" * 100, "z"]])
