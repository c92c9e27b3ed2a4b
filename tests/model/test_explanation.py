"""Explanations: contributions are Shapley values of columns, by a slow oracle that removes values from tables."""

from itertools import combinations
from math import factorial

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from devdan import DEVDAN, DEVDANEnsemble
from devdan.model import explain as shapley

KINDS = {
    "devdan": lambda **options: DEVDAN(random_state=0, **options),
    "quick": lambda **options: DEVDAN(random_state=0, rehearse=0, **options),
    "ensemble": lambda **options: DEVDANEnsemble(random_state=0, n_jobs=1, estimator=DEVDAN(**options)),
}


def orders(n=600, seed=0):
    """A table with a category, a date, a flag, numbers and gaps, and what becomes of each order."""
    random = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "price": random.normal(50, 10, n),
            "city": random.choice(["Bonn", "Köln", "Ulm"], n),
            "sent": pd.Timestamp("2024-01-01") + pd.to_timedelta(random.integers(0, 60 * 24, n), "h"),
            "gift": random.choice([True, False], n),
        }
    )
    late = (table.price > 50) ^ (table.city == "Ulm")
    table.loc[::7, "price"] = np.nan
    return table, np.where(late, "late", np.where(table.gift, "gift", "on time"))


def log_odds(model, table, label):
    p = model.predict_proba(table)[:, list(model.classes_).index(label)]
    return np.log(p / (1 - p))


def textbook(model, table, label):
    """Σ over sets S without j of |S|! (n - |S| - 1)! / n! × (v(S and j) - v(S)), with the rest of the table removed."""
    names, n = list(table), table.shape[1]

    def worth(known):
        return log_odds(model, table.assign(**{name: None for name in names if name not in known}), label)

    values = np.zeros(table.shape)
    for j, name in enumerate(names):
        others = [other for other in names if other != name]
        for size in range(n):
            for known in combinations(others, size):
                share = factorial(size) * factorial(n - size - 1) / factorial(n)
                values[:, j] += share * (worth([*known, name]) - worth(known))
    return values


@pytest.mark.parametrize("kind", KINDS)
def test_contributions_are_shapley_values_of_columns(kind):
    table, y = orders()
    model = KINDS[kind]().fit(table, y)
    rows = table[:15]
    for label in ("late", "gift"):
        told = model.explain(rows, label=label)
        assert told.columns == tuple(table)
        assert set(told.labels) == {label}
        np.testing.assert_allclose(told.contributions, textbook(model, rows, label), atol=1e-9)
        np.testing.assert_allclose(told.log_odds, log_odds(model, rows, label), atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", [3, 12])
@pytest.mark.parametrize("scaling", ["standard", "minmax", None])
def test_contributions_add_up_to_the_log_odds(kind, width, scaling):
    X = np.random.default_rng(0).random((400, width))
    model = KINDS[kind](scaling=scaling).fit(X, X[:, 0] + X[:, 1] > 1)
    X[0, 0] = np.nan
    told = model.explain(X[:20], n_orders=4)
    assert told.labels.tolist() == model.predict(X[:20]).tolist()
    np.testing.assert_allclose(told.contributions.sum(axis=1), told.log_odds - told.baseline, atol=1e-9)
    shares = model.predict_proba(X[:20]).max(axis=1)
    np.testing.assert_allclose(1 / (1 + np.exp(-told.log_odds)), shares, atol=1e-12)


def test_sampled_orders_come_close_to_all_of_them(monkeypatch):
    X = np.random.default_rng(0).normal(size=(1000, 7))
    model = DEVDAN(random_state=0).fit(X, X[:, 0] * X[:, 1] > 0)
    exact = model.explain(X[:30]).contributions
    monkeypatch.setattr(shapley, "MOST_EXACT", 0)
    few, many = (np.abs(model.explain(X[:30], n_orders=n).contributions - exact).mean() for n in (8, 512))
    assert many < few / 3
    assert many < 0.05 * np.abs(exact).mean()


@pytest.mark.parametrize("width", [3, 12])
def test_a_row_is_explained_alike_in_any_company(width, monkeypatch):
    X = np.random.default_rng(0).normal(size=(500, width))
    model = DEVDAN(random_state=0).fit(X, X[:, 0] > 0)
    together = model.explain(X[:9]).contributions
    alone = np.vstack([model.explain(row[None]).contributions for row in X[:9]])
    np.testing.assert_allclose(alone, together, atol=1e-12)
    monkeypatch.setattr(shapley, "_ROOM", 1)
    np.testing.assert_allclose(model.explain(X[:9]).contributions, together, atol=1e-12)


def test_columns_that_are_missing_or_left_out_contribute_nothing():
    table, y = orders()
    table["row"] = np.arange(len(table))
    model = DEVDAN(random_state=0).fit(table, y)
    told = model.explain(table[:14])
    assert "left out" in repr(model.encoding_)
    assert not told.contributions[:, list(table).index("row")].any()
    gaps = table[:14].isna().to_numpy()
    assert gaps.any()
    np.testing.assert_allclose(told.contributions[gaps], 0.0, atol=1e-12)


def test_explaining_leaves_the_model_as_it_was():
    X = np.random.default_rng(0).normal(size=(500, 10))
    model = DEVDAN(random_state=0).fit(X, X[:, 0] > 0)
    before = [state.tobytes() for state in model.mixture_.networks]
    model.explain(X[:3])
    assert [state.tobytes() for state in model.mixture_.networks] == before


def test_with_minmax_the_baseline_is_the_mean():
    X = np.random.default_rng(0).random((2000, 2)) * 100
    model = DEVDAN(random_state=0, scaling="minmax", rehearse=0, shuffle=False).fit(X, X[:, 0] > 50)
    told = model.explain([X.mean(axis=0), [100.0, 50.0]], label=True)
    assert abs(told.contributions[0]).max() < 0.2 < told.contributions[1, 0]


def test_what_cannot_be_explained_is_said():
    X = np.random.default_rng(0).normal(size=(100, 2))
    with pytest.raises(NotFittedError, match="has not seen a sample yet"):
        DEVDAN().explain(X)
    with pytest.raises(NotFittedError, match="has not been taught a label yet"):
        DEVDAN().observe(X).explain(X)
    with pytest.raises(ValueError, match="only 7 has been taught"):
        DEVDAN().fit(X, np.full(100, 7)).explain(X)
    model = DEVDAN(random_state=0).fit(X, X[:, 0] > 0)
    with pytest.raises(ValueError, match=r"label must be one of the classes \[False, True\], got 'rain'"):
        model.explain(X, label="rain")
    with pytest.raises(ValueError, match="label must be one of the classes"):
        model.explain(X, label=np.array([True, False]))
    with pytest.raises(ValueError, match="n_orders must be an integer of at least 2, got 1"):
        model.explain(X, n_orders=1)
    with pytest.raises(ValueError, match="X has 3 features, but DEVDAN is expecting 2"):
        model.explain(np.zeros((2, 3)))


def test_an_explanation_shows_itself():
    table, y = orders()
    told = DEVDAN(random_state=0).fit(table, y).explain(table[:12])
    page = told._repr_html_()
    assert page.count("<tr>") == 11
    assert "The first 10 of 12 samples" in page
    name, value = told.strongest(0)[0]
    assert f"{name} {value:+.2f}" in page
    assert abs(value) == np.abs(told.contributions[0]).max()
    assert repr(told) == "<Explanation of 12 samples by 4 columns>"
    assert len(told) == 12


@pytest.mark.parametrize("n_columns", [3, 12])
def test_the_kernel_is_asked_for_rows_as_it_is_compiled_for(n_columns):
    """Others would be compiled for, while somebody waits for an explanation."""
    asked = []
    X = np.random.default_rng(0).normal(size=(1, n_columns))

    def predict(rows, samples):
        asked.append(rows.flags.c_contiguous)
        return rows.sum(axis=1)

    shapley.shapley(predict, X, np.zeros(n_columns), [[j] for j in range(n_columns)], 8)
    assert all(asked)
