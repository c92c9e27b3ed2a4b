"""Rows are the same whether they are read by name or straight into the order of the columns."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from devdan.service.bodies import ROWS, parsed_rows
from devdan.service.naming import InvalidError

NAMES = st.lists(st.text(st.sampled_from('ab "\\é€'), max_size=3), min_size=1, max_size=6, unique=True)
VALUES = st.none() | st.booleans() | st.text(max_size=3) | st.floats(allow_nan=False, allow_infinity=False)


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
