"""Scores of samples: the lower, the more abnormal, and a threshold means a share."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score

from devdan import DEVDAN, DEVDANEnsemble
from devdan.model.recent import rank

KINDS = {
    "devdan": DEVDAN(random_state=0),
    "minmax": DEVDAN(random_state=0, scaling="minmax"),
    "ensemble": DEVDANEnsemble(random_state=0, n_jobs=1),
}
FORGETFUL = {"quick": DEVDAN(random_state=0, rehearse=0), "paper": DEVDAN.paper(random_state=0)}


def samples(n, seed):
    """Values in [0, 1] of which the last two go together."""
    X = np.random.default_rng(seed).normal(size=(n, 4))
    X[:, 3] = X[:, 2] + 0.1 * X[:, 3]
    return stats.norm.cdf(X / [1, 2, 1, 1])


def learned(model, X, way):
    """Of each sample the label, or none, or the label later."""
    y, model = X[:, 0] > 0.5, clone(model)
    if way == "labelled":
        return model.fit(X, y)
    model.observe(X)
    return model.teach(X[-500:], y[-500:]) if way == "later" else model


@pytest.mark.parametrize("way", ["labelled", "unlabelled", "later"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_threshold_means_a_share(kind, way):
    """On average over which samples of a shuffled chunk are the latest thousand, by which others are judged."""
    models = [clone(KINDS[kind]).set_params(random_state=seed) for seed in range(3)]
    scores = np.array([learned(model, samples(4000, 0), way).score_samples(samples(4000, 1)) for model in models])
    assert ((scores >= -1) & (scores <= 0)).all()
    for share in (0.5, 0.2, 0.05, 0.01):
        assert (scores < share - 1).mean() == pytest.approx(share, abs=0.01 + 0.1 * share)


@pytest.mark.parametrize("kind", FORGETFUL)
def test_without_memory_it_means_about_that_share(kind):
    model, X = clone(FORGETFUL[kind]), samples(4000, 0)
    for one in (model.observe(X), model.teach(X[:50], X[:50, 0] > 0.5)):
        scores = one.score_samples(samples(4000, 1))
        assert ((scores >= -1) & (scores <= 0)).all()
        assert 0.02 < (scores < -0.95).mean() < 0.1
        assert (scores < -0.99).mean() < 0.02


@pytest.mark.parametrize("way", ["labelled", "unlabelled"])
@pytest.mark.parametrize("kind", KINDS)
def test_unusual_combinations_are_found_among_remembered_samples(kind, way):
    X, normal, odd = samples(4000, 0), samples(500, 1), samples(500, 2)
    odd[:, 3] = 1 - odd[:, 3]
    scores = learned(KINDS[kind], X, way).score_samples(np.vstack([normal, odd]))
    assert roc_auc_score(np.repeat([1, 0], 500), scores) > 0.92


def test_unusual_values_are_found_and_far_ones_stay_in_order():
    X = np.random.default_rng(0).normal(size=(3000, 3)) * [1, 100, 0.01]
    odd = np.zeros((4, 3))
    odd[1:, 1] = 300, 500, 5000
    for model in (DEVDAN(random_state=0, rehearse=0).observe(X), DEVDAN(random_state=0).observe(X)):
        scores = model.score_samples(odd)
        assert (np.diff(scores) <= 0).all()
        assert scores[0] > -0.6
        assert scores[2] < -0.99
    assert (np.diff(scores) < 0).all()


def test_a_value_that_never_varied_before_is_unusual_if_it_does():
    X = np.random.default_rng(0).normal(size=(500, 2))
    X[:, 1] = 7
    for model in (DEVDAN(random_state=0).fit(X, X[:, 0] > 0), DEVDAN(random_state=0).observe(X)):
        as_ever, other = model.score_samples([[0.0, 7.0], [0.0, 7.1]])
        assert other < -0.99 < as_ever


def test_what_is_missing_is_not_unusual():
    table = pd.DataFrame({"x": np.random.default_rng(0).normal(size=600), "city": ["Bonn", "Köln"] * 300})
    model = DEVDAN(random_state=0).fit(table, table.x > 0)
    gaps = pd.DataFrame({"x": [np.nan, 0.0], "city": ["Bonn", None]})
    assert (model.score_samples(gaps) > -0.995).all()


def test_ranks_are_shares():
    known = np.sort(np.random.default_rng(0).random(999))
    values = np.linspace(known[0], known[-1], 50)
    np.testing.assert_allclose(rank(values, known), (known < values[:, None]).mean(axis=1), atol=0.002)
    assert rank(np.zeros(1), np.zeros(5)).tolist() == [0]


def test_scores_need_samples_and_the_right_columns():
    X = np.random.default_rng(0).normal(size=(100, 2))
    with pytest.raises(NotFittedError, match="has not seen a sample yet"):
        DEVDAN().score_samples(X)
    with pytest.raises(ValueError, match="X has 3 features, but DEVDAN is expecting 2"):
        DEVDAN().observe(X).score_samples(np.zeros((1, 3)))
