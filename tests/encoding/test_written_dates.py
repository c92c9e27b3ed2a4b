"""Dates as people write them: day and month are told by the values, or a note says what was assumed."""

import warnings

import numpy as np
import pytest

from devdan import DEVDAN
from devdan.encoding.encoding import Encoding
from devdan.encoding.tables import rows_of


def encoded(texts):
    return Encoding().learned(rows_of([{"when": text} for text in texts]))


@pytest.mark.parametrize(
    ("texts", "iso"),
    [
        (["31.01.2024", "01.02.2024"], ["2024-01-31", "2024-02-01"]),
        (["1/31/2024", "2/1/2024"], ["2024-01-31", "2024-02-01"]),
        (["31/1/2024", "2/1/2024"], ["2024-01-31", "2024-01-02"]),
        (["31-12-2023", "01-02-2024"], ["2023-12-31", "2024-02-01"]),
        (["31.12.99", "01.02.24"], ["1999-12-31", "2024-02-01"]),
        (["2024/01/31", "2024/02/01"], ["2024-01-31", "2024-02-01"]),
        (["31.01.2024 18:30", "1.2.2024 06:00:30"], ["2024-01-31 18:30:00", "2024-02-01 06:00:30"]),
    ],
)
def test_the_same_inputs_as_of_iso_dates(texts, iso):
    texts, iso = (np.array([*some, *some * 20]).tolist() for some in (texts, iso))
    (X, read), (Z, known) = (encoded(some) for some in (texts, iso))
    np.testing.assert_array_equal(X, Z)
    assert read.columns["when"].kind == "date"
    assert read.notes == known.notes == []


def test_what_is_doubtful_is_said():
    _, read = encoded(["03/04/2024", "05/06/2024"])
    (note,) = read.notes
    assert note == (
        "the column 'when' has dates such as '03/04/2024', read with the day first: nothing says so; "
        "dates={'when': 'mm/dd/yyyy'} (--dates when=mm/dd/yyyy) reads the month first"
    )
    _, told = encoded(["03/04/2024", "05/26/2024"])
    assert told.notes == []


def test_what_is_no_date_is_a_word():
    for text in ("1.2.3", "32/13/2024", "10.10.10.10", "2024/13/01", "1/2/24"):
        _, read = encoded([text] * 20)
        assert read.columns["when"].kind == "nominal", text


def test_the_order_is_saved_with_the_model(tmp_path):
    rows = [{"when": f"{month}/{day}/2024"} for month in range(1, 13) for day in range(1, 28)]
    model = DEVDAN(random_state=0).fit(rows, [k % 2 for k in range(len(rows))])
    model.save(tmp_path / "m.devdan")
    again = DEVDAN.load(tmp_path / "m.devdan")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(again.encode([{"when": "3/4/2024"}]), model.encode([{"when": "2024-03-04"}]))
