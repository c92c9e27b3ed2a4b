"""What the highest scores of each period find, and what decisions cost, against counting them one by one."""

import json
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from devdan import DEVDAN, DEVDANEnsemble
from devdan.evaluation.alerts import AlertBudget, Alerts, CostCount, Periods, n_found, with_later
from devdan.evaluation.loop import prequential
from devdan.evaluation.record import Record, Summary

TIED = st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=1, max_size=6)


@given(TIED, st.integers(1, 6))
def test_of_equal_scores_alerts_find_the_mean_over_all_orders(rows, n_alerts):
    scores, belongs = np.array([score for score, _ in rows], float), np.array([own for _, own in rows])
    n_alerts = min(n_alerts, len(rows))
    ordered = (sorted(order, key=lambda place: -scores[place]) for order in permutations(range(len(rows))))
    found = [belongs[order[:n_alerts]].sum() for order in ordered]
    assert n_found(scores, belongs, n_alerts) == pytest.approx(np.mean(found))


@given(st.integers(0, 99), st.lists(st.integers(0, 40), min_size=1, max_size=8), st.integers(1, 15))
def test_periods_do_not_depend_on_chunks(seed, sizes, period):
    """A class that appears late has had the score 0; what is left of a period counts when it is complete."""
    random, n = np.random.default_rng(seed), sum(sizes)
    scores, true = random.integers(0, 5, (n, 3)) / 5, random.integers(0, 3, n)
    budget, alerts = AlertBudget(max(1, period // 3), period), None
    periods, start = Periods(budget), 0
    known = np.cumsum([random.integers(1, 3) for _ in sizes]).clip(max=3)  # classes that have appeared
    for size, m in zip(sizes, known.tolist(), strict=True):
        rows = slice(start, start + size)
        scores[rows, m:], true[rows] = 0.0, true[rows] % m
        alerts = with_later(alerts, periods.add(scores[rows, :m], true[rows]))
        start += size
    if n < period:
        assert alerts is None
        return
    for c in range(len(alerts.there)):
        parts = [slice(k * period, (k + 1) * period) for k in range(n // period)]
        expected = sum(n_found(scores[part, c].copy(), true[part] == c, budget.n_alerts) for part in parts)
        assert alerts.found[c] == pytest.approx(expected)
        assert alerts.there[c] == sum((true[part] == c).sum() for part in parts)
    assert alerts.n_periods == n // period


def rare(n=4000, seed=0):
    random = np.random.default_rng(seed)
    y = np.where(random.random(n) < 0.05, "fraud", "ok")
    return random.normal(size=(n, 3)) + 1.2 * (y == "fraud")[:, None], y


def test_a_run_measures_what_its_alerts_find():
    X, y = rare()
    kept = []

    class Watched(DEVDAN):
        def predict_proba(self, X):
            kept.append(super().predict_proba(X))
            return kept[-1]

    chunks = [(X[start : start + 300], y[start : start + 300]) for start in range(0, len(X), 300)]
    records = list(prequential(chunks, Watched(random_state=0), alerts="40/700"))
    assert [Record.from_json(one.to_json()) for one in records] == records
    p, true = np.concatenate(kept)[:, 0], y[300:]  # "fraud" is the first of the names in order
    found = there = 0
    n_periods = len(p) // 700
    for start in range(0, 700 * n_periods, 700):
        order = np.argsort(-p[start : start + 700], kind="stable")[:40]
        found += (true[start : start + 700][order] == "fraud").sum()
        there += (true[start : start + 700] == "fraud").sum()
    summary = Summary(records)
    figures = summary.figures()
    assert figures["rarest_alert_recall"] == pytest.approx(found / there)
    assert figures["rarest_alert_precision"] == pytest.approx(found / (40 * n_periods))
    joined = Summary(records[:5])
    joined.join(Summary(records[5:], begins=False))
    assert joined.figures()["alerts"] == figures["alerts"]


def test_costs_are_those_of_the_decisions_and_of_always_calling_one_class():
    """A class that appears after others is charged for what came before it."""
    X, y = rare()
    y[:1200] = "ok"
    costs = {"costs": {"fraud": {"ok": 30}, "ok": {"fraud": 2}}}
    chunks = [(X[start : start + 300], y[start : start + 300]) for start in range(0, len(X), 300)]
    records = list(prequential(chunks, DEVDAN(random_state=0, decide=costs)))
    assert [Record.from_json(one.to_json()) for one in records] == records
    summary = Summary(records)
    n_ok, n_fraud = (y[300:] == "ok").sum(), (y == "fraud").sum()
    total = sum({(0, 1): 2, (1, 0): 30}.get((true, guess), 0) * n for true, guess, n in summary.counts)
    assert summary.cost == pytest.approx(total / len(y[300:]))
    assert summary.costs == pytest.approx((total, 30 * n_fraud, 2 * n_ok))
    assert summary.constant_cost == pytest.approx(min(30 * n_fraud, 2 * n_ok) / len(y[300:]))
    assert json.loads(records[-1].to_json())["cost"] == pytest.approx(records[-1].cost)


@pytest.mark.parametrize("model", [DEVDAN(), DEVDANEnsemble(decide="likeliest"), object()])
def test_without_costs_nothing_has_a_price(model):
    assert CostCount.of(model) is None


def test_nothing_is_told_of_more_classes_than_are_looked_at_one_by_one():
    periods = Periods(AlertBudget(1, 5))
    assert periods.add(np.full((4, 2), 0.5), np.zeros(4, int)) is None
    assert periods.add(np.full((30, 13), 0.1), np.zeros(30, int)) is None
    assert Alerts(1, 5, 2, (1.0,), (0,)).recall(0) is Alerts(1, 5, 2, (1.0,), (0,)).precision(1) is None


@pytest.mark.parametrize("text", ["", "10", "0/10", "11/10", "1/10000000", "-1/10", "a/b", "1/2/3"])
def test_a_budget_is_so_many_of_so_many(text):
    with pytest.raises(ValueError, match="alerts must be how many in how many samples, such as 10/1000"):
        list(prequential([], DEVDAN(), alerts=text))
