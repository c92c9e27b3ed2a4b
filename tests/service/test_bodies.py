"""What requests bring: rows read straight into the order of the columns, and Arrow IPC, are as JSON by name."""

from contextlib import suppress
from datetime import date, datetime, time
from decimal import Decimal

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from devdan.service.bodies import ROWS, LabelIn, RowIn, arrow_labels, arrow_rows, is_arrow, parsed_rows
from devdan.service.schema import InvalidError, LimitError, Limits

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


def ipc(table, file=False, compression=None):
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with (pa.ipc.new_file if file else pa.ipc.new_stream)(sink, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=2)
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
        made = arrow_labels(ipc(pa.table({"label": labels, "id": ["r", "s"]})), LIMITS)
        assert made == [LabelIn("r", labels[0]), LabelIn("s", labels[1])]


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


def test_two_columns_of_a_name_are_refused():
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["x", "x"])
    with pytest.raises(InvalidError, match="different names"):
        arrow_rows(ipc(table), LIMITS)


GOOD = ipc(pa.table({"id": ["a", "b"], "x": [1.0, 2.0], "city": ["Köln", None]}))


@pytest.mark.fuzz
@given(st.integers(0, len(GOOD)), st.lists(st.tuples(st.integers(0, len(GOOD) - 1), st.integers(0, 255)), max_size=3))
def test_damaged_batches_are_refused_or_read(end, changes):
    content = bytearray(GOOD)
    for place, byte in changes:
        content[place] = byte
    with suppress(InvalidError, LimitError):
        arrow_rows(bytes(content[:end]), LIMITS)
