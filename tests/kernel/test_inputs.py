"""To predict, inputs are clipped to the range lately taught; naive.py has the oracle."""

import numpy as np
import pytest
from networks import SMALL, needs_jit

from devdan import DEVDAN, DEVDANEnsemble
from devdan.kernel import Network
from devdan.kernel.state import check_state, with_features

pytestmark = pytest.mark.uncompiled
MODELS = {
    "one network": lambda: DEVDAN(random_state=0, rehearse=0),
    "two networks": lambda: DEVDAN(random_state=0),
    "ensemble": lambda: DEVDANEnsemble(SMALL, random_state=0),
}
models = pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)


def dated(n, seed=0):
    """Two features that tell the class, and a date."""
    X = np.random.default_rng(seed).normal(size=(n, 3))
    X[:, 2] = np.arange(n) / 100
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


def taught(model, X, y, chunk=100):
    for start in range(0, len(X), chunk):
        model.partial_fit(X[start : start + chunk], y[start : start + chunk])
    return model


def without_ranges(model):
    for state in model.mixture_.networks:
        Network(state).clips = 0.0
    return model


@models
def test_what_is_beyond_all_that_was_taught_is_clipped(make):
    X, y = dated(600)
    model = taught(make(), X, y)
    for feature, beyond in ((0, -1e9), (2, 1e9)):
        rows, farther = X[-50:].copy(), X[-50:].copy()
        rows[:, feature] = X[:, feature].max() if beyond > 0 else X[:, feature].min()
        farther[:, feature] = beyond
        np.testing.assert_array_equal(model.predict_proba(farther), model.predict_proba(rows))


@models
def test_what_is_within_is_seen_as_it_is(make):
    X, y = dated(600)
    model = taught(make(), X, y)
    recent = X[-90:]
    predicted = model.predict_proba(recent)
    np.testing.assert_array_equal(without_ranges(model).predict_proba(recent), predicted)


def rate(X, y, changed):
    """How often predictions of the next chunk are right, of a model that is changed after each."""
    model, right = DEVDAN(random_state=0, rehearse=0), []
    for start in range(0, 6000, 250):
        rows, labels = X[start : start + 250], y[start : start + 250]
        if start:
            right.append(model.score(rows, labels))
        changed(model.partial_fit(rows, labels))
    return np.mean(right[4:])


@needs_jit
def test_a_date_does_not_mislead_the_next_chunk():
    """The class depends on the season, too: what was learned of the date must not go on rising."""
    gains = []
    for seed in range(3):
        X = np.random.default_rng(seed).normal(size=(6000, 2))
        X[:, 1] = np.arange(6000) / 6000
        season = np.sin(np.arange(6000) / 150)
        y = (X[:, 0] + 1.5 * season > 0).astype(int)
        gains.append(rate(X, y, lambda model: model) - rate(X, y, without_ranges))
    assert np.mean(gains) > 0.005


def test_ranges_are_those_of_what_was_taught_not_of_what_was_observed():
    X, y = dated(1000)
    model = DEVDAN(random_state=0, rehearse=0).observe(X).teach(X[:400], y[:400])
    net = Network(model.mixture_.networks[0])
    assert net.highest[:, 2].max() == X[399, 2]
    within = np.clip(X[900:], X[:400].min(axis=0), X[:400].max(axis=0))
    np.testing.assert_array_equal(model.predict_proba(X[900:]), model.predict_proba(within))


def test_a_range_is_known_after_a_hundred_samples_and_forgotten_after_twice_the_horizon():
    X, y = dated(700)
    X[:, 0] = np.clip(X[:, 0], -3, 3)
    model = DEVDANEnsemble([(4, 1, 200)], random_state=0)
    for t in range(700):
        model.partial_fit(X[t : t + 1], y[t : t + 1], classes=[0, 1])
        net = Network(model.mixture_.networks[0])
        windows = (t // 200, max(t // 200 - 1, 0))
        known = X[windows[1] * 200 : t + 1]
        assert net.highest[:, 0].max() == known[:, 0].max()
        assert net.lowest[:, 1].min() == known[:, 1].min()
        if t in (98, 99):
            ends = [model.predict_proba([[value, 0.0, 0.5]]) for value in (3.5, 4.5)]
            assert np.array_equal(*ends) == (t == 99)


def test_a_missing_value_has_no_range_and_a_feature_that_comes_later_has_none_before():
    X, y = dated(400)
    X[:, 1] = np.nan
    model = taught(DEVDAN(random_state=0, rehearse=0), X, y)
    rows = X[-5:].copy()
    rows[:, 1] = 7.0
    assert np.isfinite(model.predict_proba(rows)).all()
    net = Network(model.mixture_.networks[0])
    assert np.isposinf(net.lowest[:, 1]).all()
    assert np.isneginf(net.highest[:, 1]).all()
    check_state(model.mixture_.networks[0])


def test_features_that_go_take_their_ranges_with_them():
    X, y = dated(400)
    state = taught(DEVDAN(random_state=0, rehearse=0), X, y).mixture_.networks[0]
    before = Network(state).highest.copy()
    net = Network(with_features(state, [0], 2))
    np.testing.assert_array_equal(net.highest[:, :2], before[:, 1:3])
    assert np.isneginf(net.highest[:, 2:]).all()
    assert np.isposinf(net.lowest[:, 2:]).all()


@pytest.mark.parametrize("options", [{"scaling": "minmax"}, {"scaling": None}])
def test_other_scalings_have_no_ranges(options):
    X, y = dated(300)
    X = 1 / (1 + np.exp(-X))
    model = taught(DEVDAN(random_state=0, **options), X, y)
    assert all(net.n_ranged.sum() == 0 for net in model.mixture_.nets)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e200])
def test_impossible_ranges_are_refused(value):
    X, y = dated(300)
    model = taught(DEVDAN(random_state=0, rehearse=0), X, y)
    Network(model.mixture_.networks[0]).highest[0, 1] = value
    with pytest.raises(ValueError, match=r"not finite|too large"):
        check_state(model.mixture_.networks[0])
