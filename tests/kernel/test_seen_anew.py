"""Features that change their unit, and features that are skewed: a network that sees them anew is not misled.

tests/kernel/test_scales.py has the oracle.
"""

import numpy as np
import pytest

from devdan import DEVDAN, DEVDANEnsemble
from devdan.kernel import Network
from devdan.kernel.state import check_state

RENEWING, OTHERWISE = [(16, 3, 500, 0, 10, 1)], [(16, 3, 500, 0, 10)]


def learned(X, y, scales=RENEWING, chunk=50):
    """A model, and the share of right predictions in each chunk, made before it was learned."""
    model, right = DEVDANEnsemble(scales, random_state=1), []
    for start in range(0, len(X), chunk):
        rows, labels = X[start : start + chunk], y[start : start + chunk]
        right.append(np.mean(model.predict(rows) == labels) if start else 0.5)
        model.partial_fit(rows, labels)
    return model, np.array(right)


def squares(n, seed=0):
    """Four classes by the signs of two features, and one that tells nothing."""
    X = np.random.default_rng(seed).normal(size=(n, 3))
    return X, 2 * (X[:, 0] > 0) + (X[:, 1] > 0)


@pytest.mark.parametrize(("factor", "zero"), [(1000.0, 0.0), (0.01, 0.0), (1.0, 50.0), (1.8, 320.0), (-100.0, 3.0)])
def test_what_is_remembered_is_converted_to_a_new_unit(factor, zero):
    X, y = squares(1000)
    X[600:, 0] = factor * X[600:, 0] + zero
    model, _ = learned(X, y)
    net = Network(model.mixture_.networks[0])
    values = net.remembered[: net.n_remembered, 0]
    expected = abs(factor)
    assert abs(values.mean() - zero) < 0.5 * expected  # all are of the new unit, those from before as well
    assert expected / 1.5 < values.std() < 1.5 * expected
    assert expected / 1.5 < np.sqrt(net.square[0]) < 1.5 * expected
    check_state(model.mixture_.networks[0])


def test_it_recovers_from_a_new_unit_where_others_do_not():
    X, y = squares(3000)
    for start in range(600, 3000, 600):
        X[start:, 0] = 0.02 * X[start:, 0] + X[start:, 0].std()
    rates = [learned(X, y, scales)[1][12:].reshape(-1, 12)[:, 4:].mean() for scales in (RENEWING, OTHERWISE)]
    assert rates[0] > 0.9
    assert rates[0] > rates[1] + 0.05


@pytest.mark.parametrize("kind", ["rising", "jumping", "seasonal", "rare", "constant", "missing"])
def test_what_moves_or_pauses_has_kept_its_unit(kind):
    X, y = squares(1500)
    time = np.arange(1500)
    X[:, 2] = {
        "rising": time + X[:, 2],
        "jumping": 0.01 * time + X[:, 2] + np.where(time < 1250, 0, 500),  # as a date after a pause
        "seasonal": 30 * np.sin(time / 300) + X[:, 2],
        "rare": np.where(time % 100 < 3, X[:, 2], 0.0),
        "constant": np.where(time < 1250, 0.1, X[:, 2]),
        "missing": np.where(time % 31 == 0, np.nan, np.where(time < 1250, 1.0, 1000.0) * X[:, 2]),
    }[kind]
    model, right = learned(X, y)
    net = Network(model.mixture_.networks[0])
    kept = net.remembered[(net.n_remembered - 1 - np.arange(500)) % 500][::-1]
    in_order = X[1000:]  # chunks are shuffled, so that they are compared sorted
    np.testing.assert_array_equal(np.sort(kept[:, 2]), np.sort(in_order[:, 2]))
    assert right[10:].mean() > 0.85


def test_skewed_features_are_told_apart():
    X, y = squares(3000)
    X = np.exp(3 * X)
    rates = [learned(X, y, scales)[1][20:].mean() for scales in (RENEWING, OTHERWISE)]
    assert rates[0] > 0.9
    assert rates[0] > rates[1] + 0.2


def test_what_is_even_or_has_few_values_is_not_skewed():
    X, y = squares(1000)
    X[:, 0] = np.random.default_rng(1).random(1000)
    X[:, 1] = X[:, 1] > 1
    model, _ = learned(X, y)
    assert not Network(model.mixture_.networks[0]).field_places.any()


@pytest.mark.uncompiled
def test_values_as_large_as_numbers_can_be():
    X, y = squares(1000)
    X[400:, 0] *= 1e200
    X[700:, 0] *= 1e-300
    X[:, 1] = np.exp(60 * X[:, 1]) * 1e90
    model, _ = learned(X, y)
    check_state(model.mixture_.networks[0])
    assert np.isfinite(model.predict_proba(X)).all()


@pytest.mark.uncompiled
def test_an_outlier_in_memory_does_not_spoil_a_new_unit():
    X, y = squares(1000)
    X[576 + 15, 0] = 1e300  # in the block in which the unit changes, which is not compared
    X[600:, 0] = 1000 * X[600:, 0]
    model, _ = learned(X[:680], y[:680], chunk=1)
    net = Network(model.mixture_.networks[0])
    assert net.remembered[:, 0].max() == 1e300
    assert np.median(np.abs(net.remembered[: net.n_remembered, 0])) > 300  # converted
    check_state(model.mixture_.networks[0])


def test_a_state_from_before_goes_on_as_it_was():
    """It ends before the places of fields; what it does not notice, it does not notice from now on either."""
    X, y = squares(900)
    model, _ = learned(X, y, OTHERWISE)
    Network(model.mixture_.networks[0]).stays_within = 0.0
    start = Network.places(Network(model.mixture_.networks[0]).sizes)["field_places"][0]
    before = {**model.__getstate__(), "_networks": [model.mixture_.networks[0][:start].copy()]}
    again = DEVDANEnsemble.__new__(DEVDANEnsemble)
    again.__setstate__(before)
    check_state(again.mixture_.networks[0])
    for one in (model, again):
        one.partial_fit(X, y)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


@pytest.mark.uncompiled
def test_fields_out_of_order_are_refused():
    X, y = squares(300)
    model = DEVDAN(random_state=0).partial_fit(np.exp(4 * X), y)
    state = model.mixture_.networks[1]
    check_state(state)
    net = Network(state)
    assert net.field_places[0, -1] > net.field_places[0, 0]
    net.field_places[0, 3] = net.field_places[0, -1] + 1.0
    with pytest.raises(ValueError, match="fields are out of order"):
        check_state(state)
