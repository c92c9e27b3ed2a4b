"""Measures of counted scores, against scikit-learn's of the scores themselves."""

import json
from base64 import b64encode
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from runs import record
from sklearn.dummy import DummyClassifier
from sklearn.metrics import average_precision_score, brier_score_loss, log_loss, roc_auc_score

from devdan import DEVDAN
from devdan.evaluation.histograms import (
    MOST_CLASSES,
    N_CELLS,
    WIDTH,
    Histograms,
    Ranking,
    Scored,
    by_class,
    checked,
    scored,
)
from devdan.evaluation.loop import prequential
from devdan.evaluation.record import Record, Summary
from devdan.streams import sea

NEAR = 0.002
extremes = st.sampled_from([0.0, 5e-324, 1e-300, 1e-16, 1e-9, 0.5, 1 - 1e-9, 1 - 2**-53, 1.0])


def of(p, y):
    """The ranking of two classes, by the scores of the second."""
    p, y = np.asarray(p, float), np.asarray(y)
    return Ranking.of(scored(np.column_stack([1 - p, p]), np.array([0, 1]), y), 2)


def check(p, y, near=NEAR):
    """Both measures of both classes are scikit-learn's, where they are defined."""
    p, y = np.asarray(p, float), np.asarray(y)
    if y.min() == y.max():
        assert of(p, y).roc_auc(1) is of(p, y).average_precision(1) is None
        return
    ranking = of(p, y)
    assert ranking.roc_auc(1) == pytest.approx(roc_auc_score(y, p), abs=near)
    assert ranking.average_precision(1) == pytest.approx(average_precision_score(y, p), abs=near)
    assert ranking.roc_auc(0) == pytest.approx(ranking.roc_auc(1), abs=near)
    assert ranking.average_precision(0) == pytest.approx(average_precision_score(1 - y, 1 - p), abs=near)


def labels(n):
    return st.lists(st.integers(0, 1), min_size=n, max_size=n)


@given(st.one_of(st.floats(0, 1), extremes), st.integers(2, 200).flatmap(labels))
def test_scores_that_are_all_equal(p, y):
    check([p] * len(y), y)


@given(st.floats(1e-9, 0.999), st.floats(1.002, 1e9), st.lists(st.tuples(st.booleans(), st.integers(0, 1)), min_size=2))
def test_two_scores(low, times, rows):
    """They are two if their odds differ by more than a cell is wide."""
    odds = times * low / (1 - low)
    high = odds / (1 + odds)
    assume(np.log(high / (1 - high)) - np.log(low / (1 - low)) > WIDTH if high < 1 else True)
    check([high if is_high else low for is_high, _ in rows], [y for _, y in rows])


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 1)), min_size=2, max_size=300))
def test_heavy_ties(rows):
    check([k / 20 for k, _ in rows], [y for _, y in rows])


@given(st.lists(st.tuples(extremes, st.integers(0, 1)), min_size=2, max_size=100))
def test_extreme_scores(rows):
    """Those that round to 0 or 1 are equal, to the mirrored class in any case."""
    p = np.array([p for p, _ in rows])
    check(np.where(p < 1e-15, 0.0, np.where(p > 1 - 1e-15, 1.0, p)), [y for _, y in rows])


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("n", "share", "middle", "spread", "apart"),
    [
        (20_000, 0.025, -4, 1.5, 1.5),  # like the payments of the notes
        (20_000, 0.025, -3.7, 0.1, 1),  # all scores close to the share
        (100_000, 0.001, -8, 3, 2.5),  # sure, and mostly right
        (5000, 0.02, -8, 2, 6),  # nearly perfect
        (5000, 0.5, 0, 1, -1),  # worse than chance
        (2000, 0.5, 0, 40, 0.1),  # saturated
    ],
)
def test_scores_that_are_all_different(seed, n, share, middle, spread, apart):
    random = np.random.default_rng(seed)
    y = (random.random(n) < share).astype(int)
    z = middle + spread * (random.normal(size=n) + apart * y)
    check(1 / (1 + np.exp(-np.clip(z, -36, 36))), y)


@given(st.integers(0, 5), st.lists(st.integers(-1, 3), max_size=6))
def test_scores_are_in_the_order_of_the_classes(n, columns):
    """A column more stands for the classes that have none: the last, as Python counts from behind."""
    p = np.random.default_rng(n).random((n, 4))
    expected = np.column_stack([p, np.zeros(n)])[:, np.array(columns, int)]
    np.testing.assert_array_equal(by_class(p, np.array(columns, np.int64)), expected)


def chunks_of(random, n_classes, sizes):
    """Probabilities and labels in chunks; a class is known to the model once it has appeared."""
    y = random.integers(0, n_classes, sum(sizes))
    p = random.dirichlet(np.ones(n_classes), len(y)) + 2.0 * np.eye(n_classes)[y] * random.random((len(y), 1))
    return np.split(p / p.sum(axis=1, keepdims=True), np.cumsum(sizes)[:-1]), np.split(y, np.cumsum(sizes)[:-1])


@given(st.integers(0, 99), st.integers(1, 4), st.lists(st.integers(1, 60), min_size=1, max_size=6))
def test_chunks_add_up_to_the_whole(seed, n_classes, sizes):
    """Losses, AUC and average precision; a class that has not appeared has the score 0."""
    histograms, names, rows, true = Histograms(), [], [], []
    for p, y in zip(*chunks_of(np.random.default_rng(seed), n_classes, sizes), strict=True):
        names += [c for c in dict.fromkeys(y.tolist()) if c not in names]
        numbers = np.array([names.index(c) for c in y])
        known = p[:, names] / p[:, names].sum(axis=1, keepdims=True)
        histograms.add(scored(known, np.arange(len(names)), numbers), len(names))
        rows.append(np.pad(known, ((0, 0), (0, n_classes - len(names)))))
        true.append(numbers)
    p, y, m = np.concatenate(rows), np.concatenate(true), len(names)
    assert histograms.n_samples == len(y)
    assert (
        histograms.log_loss == pytest.approx(log_loss(y, p, labels=range(n_classes), normalize=False), abs=1e-6)
        if (n_classes > 1)
        else histograms.log_loss < 1e-9
    )
    assert histograms.squares == pytest.approx(((p - np.eye(n_classes)[y]) ** 2).sum())
    for c in range(m if m > 1 else 0):
        assert histograms.ranking.roc_auc(c) == pytest.approx(roc_auc_score(y == c, p[:, c]), abs=0.01)
        ours = histograms.ranking.average_precision(c)
        assert ours == pytest.approx(average_precision_score(y == c, p[:, c]), abs=0.03)  # of few samples


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 1)), min_size=2, max_size=60), st.integers(0, 70))
def test_alerts_find_what_the_highest_scores_hold_on_average_over_the_order_of_equal_ones(rows, n_alerts):
    p, y = np.array([k / 6 for k, _ in rows]), np.array([y for _, y in rows])
    assume(0 < y.sum() < len(y))
    found, left = 0.0, n_alerts
    for value in sorted(set(p), reverse=True):
        n = (p == value).sum()
        found += y[p == value].sum() * min(1, left / n)
        left = max(0, left - n)
    assert of(p, y).found(1, n_alerts) == pytest.approx(found)


def test_a_curve_is_that_of_each_threshold():
    p, y = np.array([0.9, 0.8, 0.8, 0.3, 0.1]), np.array([1, 0, 1, 1, 0])
    curve = of(p, y).curve(1)
    assert curve.thresholds == pytest.approx([0.9, 0.8, 0.3, 0.1], rel=WIDTH)
    assert curve.precision == pytest.approx([1, 2 / 3, 3 / 4, 3 / 5])
    assert curve.recall == pytest.approx([1 / 3, 2 / 3, 1, 1])
    assert of(p, np.ones(5, int)).curve(1) is None


def test_memory_is_bounded_whatever_the_number_of_samples_and_of_classes():
    random = np.random.default_rng(0)
    p = random.random(400_000)
    one = scored(np.column_stack([1 - p, p]), np.array([0, 1]), (random.random(len(p)) < p).astype(int))
    assert len(one.cells) < 4 * N_CELLS  # two histograms
    many = random.dirichlet(np.ones(100), 500)
    of_many = scored(many, np.arange(100), random.integers(0, 100, 500))
    assert of_many.cells == ""
    assert of_many.log_loss > 0
    histograms = Histograms()
    histograms.add(one, 2)
    histograms.add(of_many, 100)
    assert histograms.ranking.roc_auc(1) is None  # more classes than are looked at one by one
    assert MOST_CLASSES < 100


def test_a_run_measures_the_scores_of_its_predictions():
    """The records have them, through JSON, and a summary of some of them is that of a window."""
    model, kept = DEVDAN(random_state=0), []

    class Watched(DEVDAN):
        def predict_proba(self, X):
            kept.append(super().predict_proba(X))
            return kept[-1]

    chunks = list(sea(5000))
    del model
    records = list(prequential(chunks, Watched(random_state=0)))
    assert [Record.from_json(one.to_json()) for one in records] == records
    first = len(chunks) - len(kept)
    for start in (first, first + 4):  # the whole run and a window
        p = np.concatenate(kept[start - first :])[:, 1]
        y = np.concatenate([y for _, y in chunks[start:]])
        classes = tuple(dict.fromkeys(np.concatenate([y for _, y in chunks]).tolist()))
        is_one = classes.index(1)
        summary = Summary([replace(records[start], new_classes=classes), *records[start + 1 :]])
        assert summary.roc_auc == pytest.approx(roc_auc_score(y, p), abs=NEAR)
        assert summary.average_precision[is_one] == pytest.approx(average_precision_score(y, p), abs=NEAR)
        assert summary.log_loss == pytest.approx(log_loss(y, p))
        assert summary.brier == pytest.approx(brier_score_loss(y, p))
    line = json.loads(records[-1].to_json())
    y, p = chunks[-1][1], kept[-1][:, 1]
    assert line["roc_auc"] == pytest.approx(roc_auc_score(y, p), abs=NEAR)
    assert line["brier"] == pytest.approx(brier_score_loss(y, p))


def test_a_model_without_probabilities_has_no_scores():
    class Votes(DummyClassifier):
        def partial_fit(self, X, y, classes=None):
            return self.fit(X, y)

        predict_proba = property()

    summary = Summary(prequential(sea(2000), Votes()))
    assert summary.confusion.n_samples > 0
    assert [summary.roc_auc, summary.log_loss, summary.brier] == [None] * 3
    assert summary.average_precision == [None, None]


@pytest.mark.parametrize("cells", ["AAA", "not base64!", "/////////////w==", "gICAgAE=", "gA==", "AQ==", "Aw==", 5])
def test_damaged_scores_are_no_record(cells):
    values = json.loads(record(1).to_json())
    values["scores"] = {"n_samples": 1, "log_loss": 0.1, "squares": 0.1, "cells": cells}
    with pytest.raises((ValueError, TypeError)):
        Record.from_json(json.dumps(values))


@given(st.binary(max_size=40), st.integers(0, 13))
def test_whatever_the_bytes_are_their_cells_are_on_the_grid(packed, n_classes):
    histograms = Histograms()
    try:
        scores = checked(Scored(1, 0.0, 0.0, b64encode(packed).decode()), n_classes)
    except ValueError:
        return
    histograms.add(scores, n_classes)
    assert histograms.ranking.roc_auc(n_classes) is None
