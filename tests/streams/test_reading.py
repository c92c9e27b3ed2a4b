"""The options of reading: what is wrong with them is said before anything is opened."""

import pytest

from devdan.streams.reading import Reading


def test_only_what_is_said_is_passed_on():
    assert Reading().as_keywords() == {}
    reading = Reading(target=-1, drop=["id"], header=False, encoding="latin-1", dates=["born"]).with_text(["device"])
    assert Reading(**reading.as_keywords()) == reading
    assert reading.as_written == {"born", "device"}
    assert Reading(sep=r"\t").sep == "\t"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sep": "ab"}, "sep must be one ASCII character, .* got 'ab'"),
        ({"sep": '"'}, "sep must be one ASCII character"),
        ({"decimal": "'"}, "decimal must be '.' or ',', got \"'\""),
        ({"sep": ",", "decimal": ","}, "sep and decimal must differ"),
        ({"encoding": "klingon"}, "encoding must be one that Python knows, .* got 'klingon'"),
        ({"encoding": "base64"}, "encoding must be one that Python knows"),
        ({"nominal": "zip"}, r"nominal must be a list of columns, got the text 'zip'; write \['zip'\]"),
    ],
)
def test_what_cannot_be_meant_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Reading(**options)
