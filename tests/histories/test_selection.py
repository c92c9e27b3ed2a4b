"""What histories tell about labels that have come decides which are shown; an oracle computes it from raw rows."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive_selection import shown_of
from payments_stream import payments

from devdan import Histories
from devdan.histories.selection import Selection

pytestmark = pytest.mark.filterwarnings("ignore::devdan.histories.histories.HistoryWarning")


def rows_and_labels(n, n_columns, n_classes, seed):
    """Columns of which some depend on the label, some skewed, some constant."""
    random = np.random.default_rng(seed)
    codes = random.choice(n_classes, size=n, p=(share := np.r_[9.0, np.ones(n_classes - 1)]) / share.sum())
    strength = random.choice([0.0, 0.05, 0.3, 1.0], size=n_columns)
    features = random.normal(size=(n, n_columns)) + strength * (codes > 0)[:, None]
    features[:, ::3] = np.exp(features[:, ::3])
    features[:, ::7] = 3.0
    return features, codes


@pytest.mark.uncompiled
@settings(max_examples=15)
@given(st.sampled_from([999, 1000, 2500, 4100]), st.integers(1, 30), st.integers(2, 4), st.integers(0, 1000),
       st.integers(1, 700))  # fmt: skip
def test_the_selection_is_what_the_raw_rows_say(n, n_columns, n_classes, seed, size):
    features, codes = rows_and_labels(n, n_columns, n_classes, seed)
    selection = Selection(n_classes)
    selection.know([f"c{k}" for k in range(n_columns)])
    for start in range(0, n, size):
        selection.add(features[start : start + size], codes[start : start + size], 1.0)
    assert (~selection.hidden).tolist() == shown_of(features.tolist(), codes.tolist(), n_columns)


def test_bits_do_not_depend_on_batches_and_a_file_goes_on():
    features, codes = rows_and_labels(4500, 9, 3, 5)
    found = []
    for size in (1, 640, 4500):
        selection = Selection(3)
        selection.know([f"c{k}" for k in range(9)])
        for start in range(0, 4500, size):
            selection.add(features[start : start + size], codes[start : start + size], 1.0)
            if size == 640:
                selection = Selection.of_json(json.loads(json.dumps(selection.to_json())))
        found.append(json.dumps(selection.to_json()))
    assert found[0] == found[1] == found[2]


def test_labels_that_are_taken_back_do_not_count():
    features, codes = rows_and_labels(1999, 5, 2, 1)
    wrong = (codes + features[:, 1] > 0.5).astype(int)  # by which the second column would tell much
    left, never = Selection(2), Selection(2)
    for selection in (left, never):
        selection.know("abcde")
        selection.add(features[:1000], codes[:1000], 1.0)
    left.add(features[1000:1400], wrong[1000:1400], 1.0)
    left.add(features[1000:1400], wrong[1000:1400], -1.0)
    np.testing.assert_array_equal(left.counts, never.counts)


def test_columns_may_come_later_and_keep_what_is_known_of_the_others():
    features, codes = rows_and_labels(3000, 4, 2, 2)
    selection, alone = Selection(2), Selection(2)
    selection.know(["b", "c"])
    alone.know(["b"])
    selection.add(features[:1500, 1:3], codes[:1500], 1.0)
    alone.add(np.ascontiguousarray(features[:1500, 1:2]), codes[:1500], 1.0)
    selection.know(["a", "b", "c", "d"])
    selection.add(features[1500:], codes[1500:], 1.0)
    alone.add(np.ascontiguousarray(features[1500:, 1:2]), codes[1500:], 1.0)
    assert selection.gains[1] == alone.gains[0]
    assert (selection.usual[1], selection.hidden[1]) == (alone.usual[0], alone.hidden[0])


def test_what_is_hidden_is_missing_or_usual_and_labels_alone_hide_nothing():
    rows, labels = payments(2400)
    histories, without = (Histories("customer", time="day", classes=["fraud"]) for _ in range(2))
    for start in range(0, 2400, 100):
        came = histories.arrive(rows[start : start + 100])
        histories.teach(came, labels[start : start + 100])
        without.arrive(rows[start : start + 100])
        without.teach(rows[start : start + 100], labels[start : start + 100])
    assert without.hidden_ == []
    assert 0 < len(histories.hidden_) < len(histories.feature_names_)
    assert "customer: share of fraud, long" not in histories.hidden_
    assert any("histories are not shown" in note for note in histories.notes_)
    assert histories.content().tobytes() == without.content().tobytes()
    came = histories.arrive(rows[:50])
    seen, filled = histories.inputs(came), histories.inputs(came, filled=True)
    assert seen.names == filled.names
    assert not np.isnan(filled.numbers).any()
    for place, name in enumerate(seen.names_of_numbers):
        is_hidden = name in histories.hidden_
        assert np.isnan(seen.numbers[:, place]).all() == is_hidden
        if is_hidden:
            assert (filled.numbers[:, place] == filled.numbers[0, place]).all()
