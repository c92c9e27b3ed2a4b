"""Importances: their mass lies on the columns that decide, and follows them where these change."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from devdan import DEVDAN, DEVDANEnsemble
from devdan.kernel import Network
from devdan.model import explain
from devdan.model.explain import sensitivity
from devdan.model.recent import recent_inputs, remembered_inputs, statistics

KINDS = {
    "devdan": lambda: DEVDAN(random_state=0),
    "quick": lambda: DEVDAN(random_state=0, rehearse=0),
    "minmax": lambda: DEVDAN(random_state=0, scaling="minmax"),
    "ensemble": lambda: DEVDANEnsemble(random_state=0, n_jobs=1),
}


def test_it_is_the_variance_that_a_column_brings():
    """Of a sum of independent columns, each brings its own variance; a product is brought by both."""
    X = np.random.default_rng(1).normal(size=(20_000, 5))
    found = sensitivity(lambda X: X[:, :2] @ [[2.0], [1.0]] + X[:, 2:3] * X[:, 3:4], X, [[0], [1], [2], [3], [4], []])
    np.testing.assert_allclose(found, np.array([4, 1, 1, 1, 0, 0]) / 7, atol=0.01)


def test_it_is_the_same_in_blocks(monkeypatch):
    X = np.random.default_rng(1).normal(size=(100, 5))
    places = [[0, 3], [], [1], [2, 4]]
    together = sensitivity(np.sin, X, places)
    monkeypatch.setattr(explain, "_ROOM", 1)
    np.testing.assert_allclose(sensitivity(np.sin, X, places), together, rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_the_mass_follows_the_columns_that_decide(kind):
    random, model = np.random.default_rng(0), KINDS[kind]()
    for half, column in enumerate("ac"):
        for _ in range(10):
            table = pd.DataFrame(random.random((500, 4)) * [1, 1000, 0.001, 1], columns=list("abcd"))
            model.partial_fit(table, table[column] > table[column].median())
        found = model.importances_
        assert list(found) == list("abcd")
        assert sum(found.values()) == pytest.approx(1)
        assert found[column] > 0.8, half


def test_a_category_counts_as_one_column():
    random = np.random.default_rng(0)
    table = pd.DataFrame({"city": random.choice(list("uvwxyz"), 3000), "x": random.normal(size=3000)})
    model = DEVDAN(random_state=0).fit(table, table.city.isin(["u", "w", "y"]))
    assert model.importances_["city"] > 0.9


def test_what_does_not_depend_on_anything_has_no_importances():
    X = np.random.default_rng(0).normal(size=(100, 2))
    assert DEVDAN(random_state=0).fit(X, np.ones(100)).importances_ == {"x0": 0, "x1": 0}


def test_importances_need_labels_and_change_nothing():
    X = np.random.default_rng(0).normal(size=(300, 2))
    with pytest.raises(NotFittedError, match="has not seen a sample yet"):
        DEVDAN().importances_  # noqa: B018
    with pytest.raises(NotFittedError, match="has not been taught a label yet"):
        DEVDAN().observe(X).importances_  # noqa: B018
    model = DEVDAN(random_state=0).fit(X, X[:, 0] > 0)
    before = [state.tobytes() for state in model.mixture_.networks]
    assert model.importances_ == model.importances_
    assert [state.tobytes() for state in model.mixture_.networks] == before


# --- What they are asked about -----------------------------------------------------------------------------------


def test_the_latest_samples_come_first_also_where_labels_were_forgotten():
    X = np.arange(1500.0)[:, None]
    model = DEVDAN(random_state=0, shuffle=False).fit(X, X[:, 0] > 700)
    net = Network(model.mixture_.networks[1])
    net.n_stored, net.buffer_weight[:] = 1200, 1.0  # as if no drift had been noticed
    net.buffer[:, 0] = np.roll(np.arange(200.0, 1200.0), 200)
    np.testing.assert_array_equal(remembered_inputs(net)[:, 0], np.arange(1199.0, 199.0, -1))
    net.n_stored = 0
    assert sorted(remembered_inputs(net)[:, 0]) == list(range(200, 1200))
    np.testing.assert_array_equal(recent_inputs(model.mixture_.networks, 30), remembered_inputs(net)[:30])


def test_unlabelled_samples_take_the_places_that_are_free():
    X = np.arange(4000.0)[:, None]
    model = DEVDAN(random_state=0, shuffle=False)
    for start in range(0, 2500, 100):
        model.observe(X[start : start + 100])
    net = Network(model.mixture_.networks[1])
    assert sorted(remembered_inputs(net)[:, 0]) == list(range(1500, 2500))
    model.teach(X[2450:2500], np.zeros(50))  # which are there once, now with their labels
    assert remembered_inputs(net)[:50, 0].tolist() == list(range(2499, 2449, -1))
    assert len({*remembered_inputs(net)[:, 0]}) == len(remembered_inputs(net)) >= 900
    model.observe(X[2500:4000])
    assert sorted(remembered_inputs(net)[:, 0]) == [*range(2450, 2500), *range(3050, 4000)]
    model.teach(X[2500:4000], np.zeros(1500))
    full = net.buffer.copy()
    model.observe(X[:100])
    np.testing.assert_array_equal(net.buffer, full)


def test_what_is_kept_without_labels_changes_no_prediction():
    X = np.random.default_rng(0).normal(size=(600, 3))
    model = DEVDANEnsemble(random_state=0, n_jobs=1).fit(X, X[:, 0] > 0)
    model.observe(X[:50])
    before = model.predict_proba(X)
    for net in model.mixture_.nets[1:]:
        net.buffer[net.n_stored :] = 1e6
    np.testing.assert_array_equal(model.predict_proba(X), before)


@pytest.mark.parametrize("scaling", ["standard", "minmax", None])
@pytest.mark.parametrize("kind", ["evolving", "remembering", "observed"])
def test_running_statistics_are_in_the_units_of_the_stream(scaling, kind):
    random = np.random.default_rng(0)
    X = np.clip(random.normal(0.5, [0.05, 0.2], size=(1000, 2)), 0, 1) * (1 if scaling is None else [100, 0.01])
    X[::3, 1] = np.nan
    member = DEVDAN(scaling=scaling, masking=0, random_state=0)
    if kind == "remembering":
        model = DEVDANEnsemble([(3, 1, 1000)], estimator=member, random_state=0, n_jobs=1).fit(X, np.ones(1000))
    else:
        model = member.set_params(rehearse=0)
        model = model.observe(X) if kind == "observed" else model.fit(X, np.ones(1000))
    mean, deviation = statistics(model.mixture_.networks)
    np.testing.assert_allclose(mean, np.nanmean(X, axis=0), rtol=0.1)
    np.testing.assert_allclose(deviation, np.nanstd(X, axis=0), rtol=0.25)


def test_without_memory_samples_are_drawn_from_the_statistics():
    X = np.random.default_rng(0).normal([5, 100], [1, 20], size=(2000, 2))
    drawn = recent_inputs(DEVDAN(random_state=0, rehearse=0).fit(X, X[:, 0] > 5).mixture_.networks, 5000)
    assert len(drawn) == 100
    np.testing.assert_allclose(drawn.mean(axis=0), [5, 100], rtol=0.1)
    np.testing.assert_allclose(drawn.std(axis=0), [1, 20], rtol=0.25)
