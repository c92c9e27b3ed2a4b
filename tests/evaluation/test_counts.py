"""Measures from counts, against scikit-learn's from the labels themselves."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, cohen_kappa_score, f1_score, precision_score, recall_score

from devdan.evaluation.counts import N_BINS, Confusion, Reliability, beyond, binned, counted

pairs = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=40)


@given(pairs)
def test_measures_are_those_of_the_labels(pairs):
    true, guess = np.array(pairs).T
    confusion = Confusion.of([(*pair, 1) for pair in pairs])
    assert confusion.n_samples == len(pairs)
    assert confusion.accuracy == pytest.approx(accuracy_score(true, guess))
    assert confusion.f1_macro == pytest.approx(f1_score(true, guess, average="macro"))
    if confusion.kappa is None:
        assert len({*true, *guess}) == 1  # where scikit-learn, too, has no number
    else:
        assert confusion.kappa == pytest.approx(cohen_kappa_score(true, guess), abs=1e-12)
    recalls = []
    for c in range(5):
        for measure, score, base in (
            (confusion.recall, recall_score, true),
            (confusion.precision, precision_score, guess),
        ):
            if c in base:
                assert measure(c) == pytest.approx(score(true, guess, labels=[c], average="macro", zero_division=0))
            else:
                assert measure(c) is None  # undefined, not 1
        recalls += [confusion.recall(c)] if c in true else []
    assert confusion.g_mean == pytest.approx(np.prod(recalls) ** (1 / len(recalls)))


@given(pairs, pairs)
def test_counts_add_up(first, second):
    one = [(*pair, 1) for pair in first]
    two = [(*pair, 1) for pair in second]
    both = Confusion.of(one + two)
    assert both.n_samples == Confusion.of(one).n_samples + Confusion.of(two).n_samples
    assert both == Confusion.of([*two, *one]) == Confusion.of(one) + Confusion.of(two)


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=60))
def test_pairs_are_counted_in_their_order(pairs):
    true, guess = np.array(pairs, np.int64).reshape(-1, 2).T
    assert counted(true, guess, 7) == tuple((*pair, n) for pair, n in sorted(Counter(pairs).items()))


def test_nothing_measured_is_nothing_known():
    nothing = Confusion.of([])
    assert [nothing.accuracy, nothing.kappa, nothing.f1_macro, nothing.g_mean] == [None] * 4
    assert beyond(None, 0.5) is None
    assert beyond(0.5, None) is None


sure = st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=60)


@given(sure, sure)
def test_the_calibration_error_is_that_of_the_predictions_themselves(first, second):
    counted = Reliability()
    for part in (first, second):
        confidence, right = np.array(part).T
        counted.add(binned(confidence[:, None], right == 1.0))
    predictions = first + second
    gap = 0.0
    for k in range(N_BINS):
        own = [(c, r) for c, r in predictions if min(int(c * N_BINS), N_BINS - 1) == k]
        gap += len(own) / len(predictions) * abs(np.mean([c - r for c, r in own])) if own else 0.0
    assert counted.n_samples == len(predictions)
    assert counted.error == pytest.approx(gap, abs=1e-5)
    assert all(0 <= level.share_right <= 1 for level in counted.levels)


def test_a_confidence_that_is_no_number_is_left_out():
    right = np.array([True, True, False])
    assert binned(np.array([[np.nan, 0.9], [0.5, 0.2], [np.inf, 0.5]]), right) == ((10, 1, 1, 0.5),)
    assert binned(np.array([[1.0 + 1e-9]]), right[:1])[0][0] == N_BINS - 1
    assert Reliability(binned(np.array([[np.nan]]), right[:1])).error is None
