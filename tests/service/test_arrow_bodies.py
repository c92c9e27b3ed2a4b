"""Rows and labels as Arrow IPC: the same as in JSON, and nothing that is sent makes another error than those told."""

from contextlib import suppress
from datetime import date, datetime, time
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from devdan.service.arrow_bodies import is_arrow, labels_of, rows_of
from devdan.service.bodies import LabelIn, RowIn
from devdan.service.engine import LimitError, Limits
from devdan.service.naming import InvalidError

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
    assert rows_of(content, LIMITS) == expected


def test_keys_and_labels():
    rows = rows_of(ipc(pa.table({"key": ["m7"], "x": [1]})), LIMITS)
    assert rows == [RowIn({"x": 1.0}, None, "m7")]
    for labels in (["a", "b"], [1, 0], [True, False]):
        made = labels_of(ipc(pa.table({"label": labels, "id": ["r", "s"]})), LIMITS)
        assert made == [LabelIn("r", labels[0]), LabelIn("s", labels[1])]


LONG = pa.DictionaryArray.from_arrays(pa.array([0] * 10_000), pa.array(["x" * 150]))


@pytest.mark.parametrize(
    ("read", "table", "error", "says"),
    [
        (rows_of, {"x": pa.nulls(10_001)}, LimitError, "may have 10000 rows"),
        (rows_of, {"x": pa.nulls(0)}, InvalidError, "at least one"),
        (rows_of, {f"x{k}": [1] for k in range(1001)}, LimitError, "may have 1000 features"),
        (rows_of, {"x": LONG}, LimitError, "characters"),
        (rows_of, {"x": [b"bytes"]}, InvalidError, "not numbers, text, flags or times"),
        (rows_of, {"x": [1], "id": [""]}, InvalidError, "length >= 1"),
        (labels_of, {"id": ["a"], "label": [None]}, InvalidError, "got `null`"),
        (labels_of, {"id": ["a"], "label": [0.5]}, InvalidError, "got `float`"),
        (labels_of, {"id": ["a"], "label": [1], "x": [1]}, InvalidError, "the columns id and label"),
    ],
)
def test_what_is_not_valid_is_named(read, table, error, says):
    with pytest.raises(error, match=says):
        read(ipc(pa.table(table)), Limits(body=2**20))


def test_two_columns_of_a_name_are_refused():
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["x", "x"])
    with pytest.raises(InvalidError, match="different names"):
        rows_of(ipc(table), LIMITS)


GOOD = ipc(pa.table({"id": ["a", "b"], "x": [1.0, 2.0], "city": ["Köln", None]}))


@given(st.integers(0, len(GOOD)), st.lists(st.tuples(st.integers(0, len(GOOD) - 1), st.integers(0, 255)), max_size=3))
def test_damaged_batches_are_refused_or_read(end, changes):
    content = bytearray(GOOD)
    for place, byte in changes:
        content[place] = byte
    with suppress(InvalidError, LimitError):
        rows_of(bytes(content[:end]), LIMITS)
