"""Numbers as people write them, each with its reading."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from devdan import DEVDAN
from devdan.encoding import values
from devdan.encoding.encoding import EncodingWarning
from devdan.encoding.numerals import numeral

READINGS = {
    # plain
    "7": 7, "-3": -3, "+3": 3, "\u22125": -5, "007": 7, ".5": 0.5, "5.": 5, "1e3": 1000, "1.5E-3": 0.0015,
    # decimal commas and thousands
    "3,94": 3.94, "-0,5": -0.5, ",5": 0.5, "0,123": 0.123, "1234,567": 1234.567, "1,234.5": 1234.5,
    "1,234,567": 1234567, "1,234,567.8": 1234567.8, "12,34,567": 1234567, "12,34,567.50": 1234567.5,
    "1.234,50": 1234.5, "1.234.567": 1234567, "1.234.567,8": 1234567.8, "1 234,50": 1234.5,
    "1\u202f234\u00a0567": 1234567,
    "1'234.50": 1234.5, "1\u2019234": 1234,
    # money
    "$12": 12, "$ 12": 12, "-$5": -5, "$-5": -5, "€20,60": 20.6, "€1,234.50": 1234.5, "20,60 €": 20.6,
    "EUR 92.07": 92.07, "92.07 EUR": 92.07, "eur 5": 5, "5 Euro": 5, "USD 5": 5, "US$5": 5,
    "$5 USD": 5, "A$ 5": 5, "R$ 1.234,50": 1234.5,
    "CHF 12.-": 12, "5,- €": 5, "Fr. 12.50": 12.5, "200 kr.": 200, "kr 200": 200, "200 Kč": 200, "9,99 zł": 9.99,
    "Rs. 500": 500, "₹1,00,000": 100000, "₺5": 5, "5 dollars": 5, "£3.20": 3.2, "¥500": 500, "XPF 500": 500,
    # accountants
    "(5.00)": -5, "($5)": -5, "$(5)": -5, "(1,234.50)": -1234.5, "(5 EUR)": -5, "12.50-": -12.5,
    # percentages and units
    "5 %": 5, "5%": 5, "3,5 %": 3.5, "12 percent": 12, "2 ‰": 2, "12 kg": 12, "500 g": 0.5, "2 t": 2000, "80 cm": 0.8,
    "10KM": 10000, "3 h": 10800, "250 ms": 0.25, "2 days": 172800, "72 km/h": 20, "21.5 °C": 21.5, "230 V": 230,
    "2.5 MW": 2.5e6, "60 m²": 60, "16 GB": 16e9, "512 B": 512, "4 KiB": 4096, "120 bpm": 120, "3x": 3,
    # suffixes
    "3.2k": 3200, "3,2k": 3200, "5M": 5e6, "3.2B": 3.2e9, "$5m": 5e6, "$3.2bn": 3.2e9, "2 million": 2e6,
    "5 Mio. €": 5e6, "1,5 Mrd. €": 1.5e9, "3k€": 3000, "$2 million": 2e6, "1 million dollars": 1e6, "5 lakh": 5e5,
}  # fmt: skip
NO_NUMBERS = (
    "", "--1", "+-1", "$", "$$5", "1$%", "$5$", "€5 USD", "(5", "5)", "(-5)", "((5))", "()", "0x10", "1_000", "inf",
    "nan", "\u0661", "1e999", "1,234,56", "1,23,45", "1.2.3", "192.168.1.1", "01.02.2024", "2024-01-02",
    "10:30", "030 123 456", "1-2", "5+", "<5", "12 apples", "C0755", "P-0016583", "user 5", "A 5", "5 and 6", "5 kg m",
    "k5", "5kk", "k", "x" * 100,
)  # fmt: skip


@pytest.mark.parametrize("text", READINGS)
def test_a_number_is_read_as_it_is_meant(text):
    assert values.number(text) == pytest.approx(READINGS[text], rel=1e-12)
    assert values.number(text, decimal=",") == pytest.approx(READINGS[text], rel=1e-12)  # none of them is ambiguous


@pytest.mark.parametrize("text", NO_NUMBERS)
def test_what_is_no_number_is_none(text):
    assert np.isnan(values.number(text))


def test_one_comma_or_point_before_three_digits_is_what_the_column_has():
    readings = {"1,234": (1234, 1.234), "1.234": (1.234, 1234), "€ 5,250": (5250, 5.25), "-5.250 kg": (-5.25, -5250)}
    for text, (with_point, with_comma) in readings.items():
        assert values.number(text) == with_point
        assert values.number(text, decimal=",") == with_comma
        assert numeral(text).separator in ("?.", "?,")


def test_marks_tell_currencies_and_units_apart():
    marks = {
        "$5": "USD",
        "5 usd": "USD",
        "€5": "EUR",
        "5 Euro": "EUR",
        "5 kg": "kg",
        "5 g": "kg",
        "5 %": "%",
        "5k": "",
        "5": "",
    }
    assert {text: numeral(text).mark for text in marks} == marks


@given(st.floats(-1e9, 1e9).map(lambda value: round(value, 2)), st.sampled_from(["de", "en", "ch", "fr"]))
def test_what_is_written_in_any_country_is_read_again(value, country):
    english = f"{abs(value):,.2f}"
    swap = {"de": str.maketrans(",.", ".,"), "en": {}, "ch": str.maketrans(",", "'"), "fr": str.maketrans(",.", " ,")}
    text = ("-" if value < 0 else "") + english.translate(swap[country])
    for written in (text, f"{text} €", f"EUR {text}", f"({text})" if value >= 0 else text):
        assert abs(values.number(written)) == abs(value)
    assert math.copysign(1, values.number(text)) == (1 if value >= 0 else -1)


@given(st.text(max_size=70) | st.text("0123456789.,' ()-+$€kMgB%", max_size=30))
def test_any_text_is_a_finite_number_or_none(text):
    for decimal in ".,":
        found = numeral(text.strip(), decimal)
        assert found is None or math.isfinite(found.value)


def test_what_means_nothing_does_so_in_any_case():
    for text in (
        "",
        " ",
        "?",
        "-",
        "NA",
        "na",
        "N/A",
        "n/a",
        "NaN",
        "Null",
        "NONE",
        "NaT",
        "<na>",
        "#N/A",
        "#DIV/0!",
        r"\N",
    ):
        assert values.is_missing(text), text
    for text in ("0", "no", "unknown", "nothing", "n", "."):
        assert not values.is_missing(text), text


def test_a_table_with_decimal_commas_has_thousands_with_points():
    model = DEVDAN(random_state=0)
    rows = [{"price": "3,94", "total": "1.001"}, {"price": "4,5", "total": "1.002"}]
    with pytest.warns(EncodingWarning) as said:
        model.partial_fit(rows, [0, 1])
    assert model.encode(rows)[:, 1].tolist() == [1001, 1002]
    assert any("'1.001', read as 1001: other columns have decimal commas" in str(each.message) for each in said)
    alone = DEVDAN(random_state=0).partial_fit([{"total": "1.001"}, {"total": "1.002"}], [0, 1])
    assert alone.encode([{"total": "1.001"}]).tolist() == [[1.001]]
    assert alone.encoding_.notes == []  # as programs write it


@given(
    texts=st.lists(
        st.from_regex(r"[-+]?[0-9]{0,5},[0-9]{1,5}(e-?[0-9]{1,2})?|[-+]?[0-9]{1,6}|", fullmatch=True),
        min_size=1,
        unique=True,
    ),
    decimal=st.sampled_from(".,"),
)
def test_commas_that_are_read_together_are_read_as_one_by_one(texts, decimal):
    expected = [values.number(text, decimal) for text in texts]
    known = values.Vocabulary(texts)
    np.testing.assert_array_equal(known.quantities(decimal), expected)
    assert known.missing.tolist() == [not text for text in texts]
    assert np.isnan(known.flags).all()
