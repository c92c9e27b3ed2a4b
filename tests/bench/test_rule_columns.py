"""Rules keep the inputs of their first chunk: a column that was taken for something else is said, once."""

import warnings

import pytest

from devdan.bench.pclass import PClass
from devdan.bench.pensemble import PENsemble
from devdan.encoding.encoding import EncodingWarning


@pytest.mark.parametrize("kind", [PClass, PENsemble])
def test_a_kind_that_turns_out_wrong_is_said_once(kind):
    model = kind()
    rows = [{"amount": str(k * 7 % 50), "x": k % 5} for k in range(200)]
    labels = [k % 2 for k in range(200)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.partial_fit([{"amount": "unknown", "x": 0}, {"amount": "unknown", "x": 1}], [0, 1])
    with pytest.warns(EncodingWarning, match="the column 'amount' is read as nominal") as said:
        for start in range(0, 200, 20):
            model.partial_fit(rows[start : start + 20], labels[start : start + 20])
    found = [str(each.message) for each in said if "is read as nominal" in str(each.message)]
    assert len(found) == 1
    assert f"turns out to be number: {kind.__name__} keeps the inputs of its first chunk" in found[0]
