"""What operators watch is what a slow and obvious count says, in portions of any size."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, brier_score_loss, log_loss, matthews_corrcoef, roc_auc_score

from devdan.model.decision import text_of
from devdan.service.figures import Counts
from devdan.service.live import _requests, charts
from devdan.service.metrics import Metrics
from devdan.service.schema import LoggedCorrections, LoggedLabels, LoggedRows, LogRecord
from devdan.service.watched import (
    FEW,
    MOST_PERIODS,
    PERIOD,
    ByTheClock,
    ColumnCount,
    JudgedRow,
    Outcomes,
    ScoreCounts,
    count_columns,
)

VALUES = st.one_of(st.none(), st.floats(-9, 9), st.integers(-9, 9), st.booleans(), st.sampled_from("abc"))


@given(st.lists(VALUES, min_size=1, max_size=60), st.lists(st.integers(1, 20), min_size=1))
def test_a_column_is_counted_alike_in_portions_of_any_size(values, portions):
    whole, column, start = ColumnCount(), ColumnCount(), 0
    for n in portions * len(values):
        if values[start : start + n]:
            column.add(values[start : start + n])
        start += n
    for value in values:
        whole.add([value])
    assert column.n == len(values)
    assert column.missing == values.count(None)
    numbers = [float(v) for v in values if isinstance(v, (int, float)) and not isinstance(v, bool)]
    assert column.n_numbers == len(numbers)
    assert column.mean == pytest.approx(np.mean(numbers) if numbers else 0.0)
    assert column.square == pytest.approx(np.var(numbers) * len(numbers) if numbers else 0.0, abs=1e-9)
    assert sum(column.kinds) == sum(isinstance(v, (str, bool)) for v in values)
    assert column.recent == pytest.approx(whole.recent)
    assert column.share_missing_recently == pytest.approx(whole.share_missing_recently, abs=0.02)


def test_a_shift_is_in_standard_deviations_or_a_share():
    random, number, text, steady = np.random.default_rng(0), ColumnCount(), ColumnCount(), ColumnCount()
    for k in range(400):
        late = k >= 380  # of 20,000 rows, the latest 1,000
        number.add((random.normal(size=50) + 2.0 * late).tolist())
        text.add(random.choice(["a", "b", "c"] if late else ["a", "b"], 50).tolist())
        steady.add(random.normal(size=50).tolist())
    assert number.shift == pytest.approx(1.6, abs=0.15)  # of two standard deviations that 14 % of the memory lacks
    assert 0.2 < text.share_shifted < 0.4
    assert abs(steady.shift) < 0.15
    few = ColumnCount()
    few.add([1.0, 2.0] * (FEW // 2 - 1))
    assert (few.shift, few.share_shifted, ColumnCount().share_missing) == (None, None, None)
    constant = ColumnCount()
    constant.add([1.0] * 500)
    assert constant.shift is None


def test_columns_beyond_the_first_ones_are_not_counted():
    columns = []
    count_columns(columns, [[1.0] * 300, [None] * 300])
    assert len(columns) == 100
    assert {(one.n, one.missing) for one in columns} == {(2, 1)}


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc"), st.sampled_from("abcx")), max_size=40))
def test_recall_and_precision_are_those_of_the_latest_labels(rows):
    """Of each row what it was called, its label, and the one that replaces it, if one does."""
    clock = ByTheClock()
    for k, (called, label, later) in enumerate(rows):
        at = 200.0 * k
        clock.rows(at, [called])
        clock.label(at, called, label)
        if later != "x":
            clock.label(at, called, later, label)
    final = [(called, label if later == "x" else later) for called, label, later in rows]
    for name in "abc":
        own, hits = clock.total.of(name), sum(pair == (name, name) for pair in final)
        actual = sum(label == name for _, label in final)
        n_called = sum(called == name for called, _ in final)
        assert (own.called, own.judged, own.actual, own.hits) == (n_called, n_called, actual, hits)
        assert own.recall == (hits / actual if actual else None)
        assert own.precision == (hits / n_called if n_called else None)
        assert n_called == sum(one.of(name).called for one in clock.periods.values())


BINARY = st.lists(
    st.tuples(st.sampled_from("ab"), st.sampled_from("ab"), st.floats(0.001, 0.999), st.booleans()), max_size=40
)


@given(BINARY)
def test_scores_of_two_classes_rank_and_fit_as_scikit_learn_says(rows):
    """Of each row what it was called, its label, the probability of the former, and whether the label is replaced."""
    counts, final = ScoreCounts(), []
    for called, label, confidence, is_replaced in rows:
        counts.add(JudgedRow(called, label, confidence))
        later = "ab"[label == "a"] if is_replaced else label
        if is_replaced:
            counts.add(JudgedRow(called, label, confidence), -1)
            counts.add(JudgedRow(called, later, confidence))
        final.append((called, later, round(8 * math.log(confidence / (1 - confidence))) / 8))
    n, outcomes = {name: sum(label == name for _, label, _ in final) for name in "ab"}, Outcomes(counts)
    assert outcomes.rarer == (min("ab", key=lambda name: (n[name], name)) if all(n.values()) else None)
    if outcomes.rarer is None:
        assert outcomes.roc_auc is outcomes.cost is None
        return
    odds = np.array([odds if called == outcomes.rarer else -odds for called, _, odds in final])
    belongs, p = np.array([label == outcomes.rarer for _, label, _ in final]), 1 / (1 + np.exp(-odds))
    found = {measure.key: value for measure, value in outcomes.watched(outcomes.rarer).items()}
    is_called = np.array([called == outcomes.rarer for called, _, _ in final])
    mcc = {} if is_called.all() or not is_called.any() else {"mcc": matthews_corrcoef(belongs, is_called)}
    assert found == pytest.approx(
        {
            "average_precision": average_precision_score(belongs, odds),
            "roc_auc": roc_auc_score(belongs, odds),
            "log_loss": log_loss(belongs, p),
            "brier": brier_score_loss(belongs, p),
        }
        | mcc
    )


@pytest.mark.parametrize("labels", [("ok", "fraud"), ("ok", "fraud", "theft"), (False, True)])
def test_costs_are_those_of_the_rows_one_by_one(labels):
    """Also of three classes, and of classes that are no texts."""
    rare, random = labels[1], np.random.default_rng(0)
    counts, option, costs = ScoreCounts(), {str(rare): {"missed": 30, "false": 2}}, []
    for called, label in random.choice(len(labels), (200, 2)).tolist():
        counts.add(JudgedRow(text_of(labels[called]), text_of(labels[label]), 0.6))
        of_rare = 30 * (label == 1) + 2 * (called == 1)
        costs.append(0 if called == label else of_rare or 1)
    outcomes = Outcomes(counts, option, labels)
    assert outcomes.cost == pytest.approx(np.mean(costs))
    assert Outcomes(counts, "likeliest", labels).cost is None
    assert (outcomes.log_loss is None) == (len(labels) == 3)


def test_recall_and_precision_by_the_clock_are_those_of_an_hour():
    counts, random = Counts(), np.random.default_rng(0)
    rows = [(k, *random.choice(["ok", "ok", "fraud"], 2).tolist()) for k in range(40)]
    for period, called, label in rows:
        body = LoggedRows(period, [f"r{period}"], [[1.0]], [called], [0.9])
        came = LogRecord(2 * period + 1, 1, PERIOD * period, body)
        counts.rows(came, body)
        given = LoggedLabels([(came.seq, 0)], [label])
        counts.labels(LogRecord(came.seq + 1, 1, 1e9, None), given, [(came, body)])
    for end in range(40):
        within = [(called, label) for period, called, label in rows if end - 12 < period <= end]
        own = counts.clock.hour(end).get("fraud")
        hits = sum(pair == ("fraud", "fraud") for pair in within)
        n_called, n_actual = (sum(pair[place] == "fraud" for pair in within) for place in (0, 1))
        assert (own.recall if own else None) == (hits / n_actual if n_actual else None)
        assert (own.precision if own else None) == (hits / n_called if n_called else None)
    assert {"Recall by the clock", "Precision by the clock"} <= {one.title for one in charts(counts)}
    assert counts.clock.commonest == max(sum(label == name for _, _, label in rows) for name in ("ok", "fraud")) / 40


def test_latency_and_errors_by_the_clock_are_those_of_a_day(monkeypatch):
    metrics, random, took = Metrics(None), np.random.default_rng(0), {}
    for k in range(2000):
        at, seconds, status = k * 120.0, float(random.exponential(0.05)), 500 if k == 1990 else 200
        monkeypatch.setattr("devdan.service.metrics.time.time", lambda at=at: at)
        metrics.request("/v1/streams", "GET", status, seconds)
        metrics.request("/live/{stream}", "GET", 500, 9.0)  # the page itself does not count
        took.setdefault(int(at // PERIOD), []).append(seconds)
    assert len(metrics.periods) == MOST_PERIODS
    for number, own in metrics.periods.items():
        exact = sorted(took[number])[math.ceil(0.95 * len(took[number])) - 1]
        assert exact <= own.slow or own.slow == 5.0
        assert own.slow <= max(0.001, 2.5 * exact)
    titles = [one.title for one in _requests(metrics.periods)]
    assert titles == ["Latency by the clock", "Errors by the clock"]
    assert _requests({}) == []


def test_scores_end_with_a_third_class():
    """What is logged then is not the probability of the label any more."""
    counts = Counts()
    for k, label in enumerate("abca"):
        body = LoggedRows(k, [f"r{k}"], [[1.0]], ["a"], [0.9])
        came = LogRecord(2 * k + 1, 1, 1e9, body)
        counts.rows(came, body)
        counts.labels(LogRecord(2 * k + 2, 1, 1e9, None), LoggedLabels([(came.seq, 0)], [label]), [(came, body)])
        assert (Outcomes(counts.scores).rarer is not None) == (label == "b")
    lately = Outcomes(counts.scores_lately)
    assert lately.rarer is lately.log_loss is lately.brier is lately.roc_auc is None


def test_a_day_of_periods_is_kept_and_later_labels_count_in_the_total():
    clock = ByTheClock()
    for k in range(MOST_PERIODS + 20):
        clock.rows(k * PERIOD, ["ok", None])
    assert len(clock.periods) == MOST_PERIODS
    clock.label(0.0, "ok", "fraud")
    assert 0 not in clock.periods
    assert clock.total.of("fraud").actual == 1
    assert clock.total.n_rows == 2 * (MOST_PERIODS + 20)


@pytest.mark.parametrize("n", [1, 2, 300])
def test_charts_by_the_clock_take_two_periods(n):
    counts = Counts()
    for k in range(n):
        body = LoggedRows(2 * k, [f"a{k}", f"b{k}"], [[1.0], [None]], ["ok", "fraud"], [0.9, 0.8])
        counts.rows(LogRecord(k + 1, 1, 1e9 + 120.0 * k, body), body)
        counts.labels(
            LogRecord(0, 1, 2e9, None), LoggedLabels([(k + 1, 1)], ["ok"]), [(LogRecord(k + 1, 1, 1e9, body), body)]
        )
    titles = [one.title for one in charts(counts)]
    assert ("Rows by the clock" in titles) == ("Predictions by the clock" in titles) == (len(counts.clock.periods) > 1)
    assert all("nan" not in one.chart.body for one in charts(counts))
    own = counts.clock.total.of("fraud")
    assert (own.called, own.judged, own.hits) == (n, n, 0)
    body = LoggedCorrections([(1, 1)], ["ok"], ["fraud"])
    rows = LoggedRows(0, ["a", "b"], [[1.0], [None]], ["ok", "fraud"], [0.9, 0.8])
    counts.corrections(body, [(LogRecord(1, 1, 1e9, rows), rows)])
    assert (own.hits, counts.clock.total.of("ok").actual) == (1, n - 1)
