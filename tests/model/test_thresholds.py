"""Thresholds that follow a stream are what a slow and obvious rule says, at every door, and survive everything."""

import copy
import json
import math
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from devdan import DEVDAN, DEVDANEnsemble, DEVDANFleet
from devdan.model import modelfile
from devdan.model.decision import decision_of
from devdan.model.thresholds import (
    EVERY,
    FEWEST,
    LATEST,
    NEVER,
    START,
    WAY,
    Balanced,
    BestThreshold,
    Budget,
    best_threshold,
)

SMALL = [(1, 0, 0, 0), (4, 2, 50, 0)]
SCORES = st.lists(st.tuples(st.integers(0, 10).map(lambda k: k / 10), st.booleans()), min_size=1, max_size=30)
RULES = [
    "f1", "balanced", {"recall": 0.8}, {"precision": 0.4}, {"budget": 0.05}, {"budget": 0.05, "over": 200},
    {"threshold": 0.2},
]  # fmt: skip


def payments(n, seed=0, share=0.06):
    """Samples of which a few are frauds, and hard to tell."""
    random = np.random.default_rng(seed)
    fraud = random.random(n) < share
    X = random.normal(size=(n, 3)) + 1.2 * fraud[:, None]
    return X, np.where(fraud, "fraud", "ok")


# --- Slow and obvious --------------------------------------------------------------------------------------------


def naive_best(aim, least, pairs):
    """Every score as a threshold, one after the other from the highest."""
    n_own, total = sum(belongs for _, belongs in pairs), sum(score for score, _ in pairs)
    found = []
    for threshold in sorted({score for score, _ in pairs}, reverse=True):
        called = [pair for pair in pairs if pair[0] >= threshold]
        hits = sum(belongs for _, belongs in called)
        expected = sum(score for score, _ in called) * n_own / max(total, 1e-6)
        found.append((threshold, (hits + expected) / (len(called) + n_own), hits / n_own, hits / len(called)))
    if aim == "f1":
        best = max(f1 for _, f1, _, _ in found)
        return [threshold for threshold, f1, _, _ in found if f1 > best - 1e-12]
    if aim == "recall":
        return [next(threshold for threshold, _, recall, _ in found if recall >= least)]
    return [([NEVER] + [threshold for threshold, _, _, precision in found if precision >= least])[-1]]


@given(SCORES, st.sampled_from(["f1", "recall", "precision"]), st.integers(1, 10).map(lambda k: k / 10))
def test_the_best_threshold_is_the_best_of_all(pairs, aim, least):
    if any(belongs for _, belongs in pairs):
        scores, belong = np.array([pair[0] for pair in pairs]), np.array([pair[1] for pair in pairs])
        assert best_threshold(aim, least, scores, belong) in naive_best(aim, least, pairs)


def test_a_threshold_begins_in_the_middle_and_follows_the_latest_labels():
    random = np.random.default_rng(0)
    rule, pairs, chosen = BestThreshold("f1"), [], [START]
    for n in (3, 1, 60, 200, 1, 49, 1000, 7, LATEST, 300):
        scores = random.random(n).round(2)
        belong = random.random(n) < scores / 4
        before = len(pairs)
        pairs += zip(scores.tolist(), belong.tolist(), strict=True)
        rule.labels(scores, belong)
        latest = pairs[-LATEST:]
        n_own = sum(belongs for _, belongs in latest)
        if len(pairs) // EVERY > before // EVERY and min(n_own, len(latest) - n_own) >= FEWEST:
            chosen = naive_best("f1", 0.0, latest)
        assert rule.threshold in chosen
        assert ("too few" in rule.basis()) == (min(n_own, len(latest) - n_own) < FEWEST)
    assert START not in chosen


def naive_calls(share, scores, over=5_000):
    """A budget, one sample after the other."""
    step = min(WAY / (0.2 * share * over), WAY / 2)
    odds, called = -math.inf, []
    for n, score in enumerate(scores):
        score = min(max(score, 1e-6), 1 - 1e-6)  # noqa: PLW2901
        own = math.log(score / (1 - score))
        if n * share < 1:
            odds = max(odds, own)
            called.append(False)
            continue
        called.append(own >= odds)
        odds += step * (called[-1] - share)
    return called


@given(
    st.lists(st.integers(1, 40), min_size=1, max_size=10),
    st.sampled_from([0.01, 0.1, 0.5, 1.0]),
    st.sampled_from([[], [1_000], [LATEST], [10**9]]),
    st.integers(0, 99),
)
def test_a_budget_is_the_same_in_portions_of_any_size(portions, share, over, seed):
    scores = np.random.default_rng(seed).beta(1, 5, sum(portions))
    rule, called, start = Budget(share, *over), [], 0
    for n in portions:
        called += rule.called(scores[start : start + n]).tolist()
        rule.rows(scores[start : start + n])
        start += n
    assert called == naive_calls(share, scores.tolist(), *over)


@pytest.mark.parametrize("made", [lambda: Budget(0.05), lambda: Budget(1.0), Balanced, lambda: BestThreshold("f1")])
@given(portions=st.lists(st.integers(1, 40), min_size=1, max_size=6), seed=st.integers(0, 99))
def test_a_sample_is_called_if_its_score_is_at_least_the_threshold_that_it_is_told(made, portions, seed):
    whole, parts = made(), made()
    scores = np.random.default_rng(seed).beta(1, 9, sum(portions)).round(2)
    told = whole.thresholds(scores)
    assert ((scores >= told) == whole.called(scores)).all()
    for part in np.split(scores, np.cumsum(portions)[:-1]):
        assert (parts.thresholds(part) == told[: len(part)]).all()
        told = told[len(part) :]
        parts.rows(part)


def drifting(n, kind, seed):
    """Scores whose level moves, jumps, or that are hardly different."""
    random, t = np.random.default_rng(seed), np.arange(n)
    odds = random.normal(-4, 1.5, n)
    odds = {
        "steady": odds,
        "swinging": odds + 3 * np.sin(t / 8_000),
        "jumping": odds + 4 * (t // 7_000 % 2),
        "alike": np.full(n, -3.0),
        "two": random.choice([-5.0, 1.0], n),
    }[kind]
    return 1 / (1 + np.exp(-odds))


@pytest.mark.parametrize("share", [0.005, 0.02, 0.1])
@pytest.mark.parametrize("kind", ["steady", "swinging", "jumping", "alike", "two"])
def test_a_budget_is_kept_to_a_fifth_over_any_5000_rows(kind, share):
    spent = spending(Budget(share), drifting(40_000, kind, 1), 5_000)
    assert 0.8 <= spent.min() <= spent.max() <= 1.2


def spending(rule, scores, n):
    """Which part of the budget is spent over any n rows."""
    called = []
    for start in range(0, len(scores), 800):
        called.append(rule.called(scores[start : start + 800]))
        rule.rows(scores[start : start + 800])
    counts = np.cumsum(np.append(0, np.concatenate(called)))
    return (counts[n:] - counts[:-n]) / (n * rule.share)


@pytest.mark.parametrize(("share", "over"), [(0.02, 500), (0.02, 1_000), (0.005, 20_000), (0.5, 20)])
@pytest.mark.parametrize("kind", ["steady", "swinging", "jumping", "alike", "two"])
def test_a_budget_is_kept_to_a_fifth_over_any_rows_of_its_horizon(kind, share, over):
    spent = spending(Budget(share, over), drifting(60_000, kind, 1), over)
    slack = 1.01 / (over * share)  # rows are called whole
    assert 0.8 - slack <= spent.min() <= spent.max() <= 1.2 + slack


def test_a_budget_of_a_shorter_horizon_follows_a_jump_sooner_and_a_longer_one_takes_better_rows():
    scores = drifting(21_000, "jumping", 1)
    late = {over: spending(Budget(0.02, over), scores[:9_000], 500)[7_000] for over in (500, 5_000, 50_000)}
    assert 1.3 > late[500] < late[5_000] < late[50_000]
    steady, taken = drifting(40_000, "steady", 2), []
    for over in (500, 5_000, 50_000):
        rule = Budget(0.02, over)
        called = rule.called(steady)
        taken.append(called[steady >= np.quantile(steady, 0.98)].mean())
    assert taken == sorted(taken)


def test_the_usual_horizon_may_be_given():
    scores = drifting(9_000, "swinging", 3)
    assert (Budget(0.02, LATEST).called(scores) == Budget(0.02).called(scores)).all()
    assert [rule.basis() for rule in (Budget(0.02), Budget(0.02, 900))] == [
        "a budget of 0.02 of all samples, from the next on",
        "a budget of 0.02 of all samples, over 900, from the next on",
    ]


def naive_balanced(scores):
    """Every mean anew, one sample after the other."""
    weights, raised, called = [], -math.inf, []
    for n in range(1, len(scores) + 1):
        share = 1 / min(n, 5_000)
        weights = [weight * (1 - share) for weight in weights] + [share]
        mean = sum(weight * score for weight, score in zip(weights, scores, strict=False))
        least = math.log(mean / (1 - mean))
        raised = max(raised, least)
        called.append(math.log(scores[n - 1] / (1 - scores[n - 1])) >= raised)
        raised += (0.1 if called[-1] else 0) - 0.1 * (0.2 if mean < 0.2 else 1)
    return called


@given(st.lists(st.integers(1, 40), min_size=1, max_size=6), st.sampled_from([1, 5, 30]), st.integers(0, 99))
def test_a_balanced_threshold_is_the_same_in_portions_of_any_size(portions, others, seed):
    scores = np.random.default_rng(seed).beta(1, others, sum(portions)).clip(1e-6, 1 - 1e-6)
    rule, called, start = Balanced(), [], 0
    for n in portions:
        called += rule.called(scores[start : start + n]).tolist()
        rule.rows(scores[start : start + n])
        start += n
    assert called == naive_balanced(scores.tolist())


@pytest.mark.parametrize("kind", ["steady", "alike", "swinging"])
def test_a_rare_class_that_is_balanced_is_called_for_about_a_fifth_of_any_hundred(kind):
    rule, scores, called = Balanced(), drifting(20_000, kind, 1) / 3, []
    for start in range(0, len(scores), 800):
        called.append(rule.called(scores[start : start + 800]))
        rule.rows(scores[start : start + 800])
        assert rule.threshold >= rule.to_json()["mean"] - 1e-12
    counts = np.cumsum(np.append(0, np.concatenate(called)))
    assert 15 <= (counts[100:] - counts[:-100]).max() <= 30


def test_a_class_that_is_not_rare_is_called_whenever_it_is_likelier_than_on_average():
    scores = np.random.default_rng(0).beta(3, 5, 10_000)
    rule = Balanced()
    rule.rows(scores)
    others = scores[np.abs(scores - scores.mean()) > 0.02]
    assert [rule.called(np.array([score])).item() for score in others[:500]] == (others[:500] > scores.mean()).tolist()


@given(st.lists(st.lists(st.integers(1, 50), min_size=3, max_size=3), min_size=1, max_size=5))
def test_of_thresholds_that_are_reached_the_one_exceeded_most_counts(odds):
    P = np.array(odds, dtype=float)
    P /= P.sum(axis=1, keepdims=True)
    decision = decision_of({"a": {"threshold": 0.3}, "c": {"threshold": 0.1}})
    for row, place in zip(P.tolist(), decision.places(P, ["a", "b", "c"]).tolist(), strict=True):
        reached = {k: row[k] / least for k, least in ((0, 0.3), (2, 0.1)) if row[k] >= least}
        assert reached.get(place, 0) == max(reached.values(), default=0) if reached else place == 1
    every = decision_of({"a": {"threshold": 0.9}, "b": {"threshold": 0.9}})
    assert every.places(np.array([[0.6, 0.4]]), ["a", "b"]).tolist() == [0]  # something has to be said


# --- In models ---------------------------------------------------------------------------------------------------


def made(kind, option):
    if kind == "fleet":
        return DEVDANFleet(random_state=1, decide=option)
    return {"single": DEVDAN, "ensemble": lambda **own: DEVDANEnsemble(SMALL, n_jobs=1, **own)}[kind](
        random_state=1, decide=option
    )


def keyed(model, n):
    return (["k", "l"] * n)[:n] if isinstance(model, DEVDANFleet) else None


def call(model, name, X, *labels):
    keys = keyed(model, len(X))
    return getattr(model, name)(*([] if keys is None else [keys]), X, *labels)


def lessons(n_chunks, size=200, delay=2, seed=0):
    """Chunks as they come: partial_fit for some, else observed at once and taught later."""
    chunks = [payments(size, seed=seed + k) for k in range(n_chunks)]
    for k, (X, y) in enumerate(chunks):
        if k % 3 == 0:
            yield "partial_fit", X, y
        else:
            yield "observe", X, None
        if k >= delay and (k - delay) % 3 != 0:
            yield "teach", *chunks[k - delay]


@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("kind", ["single", "ensemble", "fleet"])
def test_a_rule_follows_what_was_predicted_before_it_was_learned(kind, rule, tmp_path):
    model, plain = made(kind, {"fraud": rule}), made(kind, "likeliest")
    follows = decision_of({"fraud": rule})
    follows.know(0, "fraud")
    for number, (verb, X, y) in enumerate(lessons(9)):
        if number > 0:
            P = call(model, "predict_proba", X)
            assert (call(plain, "predict_proba", X) == P).all()  # probabilities do not depend on it
            assert (call(model, "predict", X) == np.array(["fraud", "ok"])[follows.places(P, ["fraud", "ok"])]).all()
            follows.follow(P, verb != "teach", None if y is None else (y != "fraud").astype(int))
        call(model, verb, X, *([] if y is None else [y]))
        call(plain, verb, X, *([] if y is None else [y]))
        assert model.thresholds_ == follows.thresholds(["fraud", "ok"])
    model.save(tmp_path / "model")
    others = [type(model).load(tmp_path / "model"), copy.deepcopy(model), pickle.loads(pickle.dumps(model))]
    for verb, X, y in list(lessons(4, seed=50)):
        for each in (model, *others):
            call(each, verb, X, *([] if y is None else [y]))
        for each in others:
            assert each.thresholds_ == model.thresholds_
            assert (call(each, "predict", X) == call(model, "predict", X)).all()
    if kind == "fleet":
        assert model["k"].thresholds_ == model.prior_.thresholds_ == model.thresholds_


def test_a_copy_of_a_mixture_goes_on_by_itself():
    model = DEVDAN(random_state=1, decide={"fraud": {"budget": 0.1}})
    for seed in range(4):
        model.partial_fit(*payments(300, seed=seed))
    before, own = model.thresholds_, model.mixture_.copy()
    X, y = payments(300, seed=9)
    own.learn(X, (y == "fraud").astype(np.int64))
    assert model.thresholds_ == before
    assert own.decision.thresholds(["fraud", "ok"]) != before


def test_labels_alone_do_not_spend_a_budget():
    model = DEVDAN(random_state=1, decide={"fraud": {"budget": 0.1}}).partial_fit(*payments(300))
    model.partial_fit(*payments(300, seed=1))
    before = model.thresholds_
    assert model.teach(*payments(300, seed=2)).thresholds_ == before
    assert model.observe(payments(300, seed=3)[0]).thresholds_ != before


@pytest.mark.parametrize("kind", ["single", "ensemble", "fleet"])
def test_what_was_corrected_is_not_among_the_labels_that_choose_a_threshold(kind):
    model = made(kind, {"fraud": "f1"})
    X, y = payments(100, share=0.2)
    call(model, "partial_fit", X, y)
    call(model, "partial_fit", X, y)
    wrong = np.where(np.arange(100) < 5, np.where(y == "fraud", "ok", "fraud"), y)
    call(model, "partial_fit", X, wrong)
    call(model, "forget", X[:5], wrong[:5])
    call(model, "teach", X[:5], y[:5])
    n_own = 2 * int((y == "fraud").sum())
    assert f"on the latest 200 labels, {n_own} of them of the class" in model.decision_.rules["fraud"].basis()


def test_of_labels_that_were_wrong_the_nearest_go():
    rule = BestThreshold("f1")
    rule.labels(np.array([0.1, 0.5, 0.5, 0.9]), np.array([True, True, False, True]))
    rule.forget(np.array([0.6, 0.2]), np.array([True, False]))
    rule.forget(np.array([0.2]), np.array([False]))  # there is none
    assert (rule._scores.tolist(), rule._belong.tolist()) == ([0.1, 0.9], [True, True])


def test_a_class_that_comes_later_has_its_threshold_from_then_on():
    model = DEVDAN(random_state=1, decide={"fraud": {"budget": 0.1}})
    X, y = payments(300)
    model.partial_fit(X[y == "ok"], y[y == "ok"]).partial_fit(X[y == "ok"], y[y == "ok"])
    assert model.thresholds_ == {}
    assert set(model.predict(X)) == {"ok"}
    assert model.partial_fit(X, y).thresholds_ == {"fraud": NEVER}
    assert model.partial_fit(X, y).thresholds_["fraud"] < 1


def test_another_rule_begins_anew_and_the_same_one_goes_on():
    model = DEVDAN(random_state=1, decide={"fraud": "f1"})
    for seed in range(9):
        model.partial_fit(*payments(300, seed=seed))
    chosen = model.thresholds_
    assert chosen != {"fraud": START}
    assert model.set_params(class_weight="balanced").partial_fit(*payments(10)).thresholds_ == chosen
    assert model.set_params(decide={"fraud": {"recall": 0.8}}).thresholds_ == {"fraud": START}
    model.partial_fit(*payments(300, seed=9))
    assert model.thresholds_ == {"fraud": START}
    assert "too few" in model.decision_.rules["fraud"].basis()
    assert model.set_params(decide="likeliest").thresholds_ == {}


@pytest.mark.parametrize("rule", ["f1", "balanced", {"budget": 0.1}, {"budget": 0.1, "over": 100}], ids=str)
def test_river_follows_sample_by_sample(rule):
    river = pytest.importorskip("devdan.river")
    X, y = payments(700)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model, at_once = (river.DEVDANClassifier(seed=1, decide={"fraud": rule}) for _ in range(2))
    follows = decision_of({"fraud": rule})
    called = []
    for x, label in zip(frame.to_dict("records"), y.tolist(), strict=True):
        vote = model.predict_proba_one(x)
        if vote:
            names = list(vote)
            if "fraud" in names:
                follows.know(names.index("fraud"), "fraud")
            P = np.array([list(vote.values())])
            called.append(model.predict_one(x))
            assert called[-1] == names[follows.places(P, names).item()]
            code = names.index(label) if label in names else len(names)
            if "fraud" not in names and label == "fraud":
                follows.know(code, "fraud")
            follows.follow(P, True, np.array([code]))
        model.learn_one(x, label)
    assert {"fraud", "ok"} == set(called)
    at_once.learn_many(frame, pd.Series(y))
    assert at_once.predict_many(frame).tolist() == model.predict_many(frame).tolist()
    again = pickle.loads(pickle.dumps(model))
    assert again.predict_many(frame).tolist() == model.predict_many(frame).tolist()


def test_capymoa_follows_instance_by_instance():
    capymoa = pytest.importorskip("devdan.capymoa")
    stream = pytest.importorskip("capymoa.stream.generator").SEA()
    second = stream.get_schema().get_label_values()[1]
    model = capymoa.DEVDANClassifier(stream.get_schema(), decide={second: {"budget": 0.1}})
    follows, called = Budget(0.1), []
    for _ in range(1_000):
        instance = stream.next_instance()
        p = model.predict_proba(instance)
        if p is not None:
            called.append(model.predict(instance))
            assert called[-1] == follows.called(p[1:]).item()
            follows.rows(p[1:])
        model.train(instance)
    assert 50 <= sum(called) <= 150


WRONG_BEST = {"threshold": "x", "n": -1, "scores": "AA==", "belong": ""}
WRONG = [("f1", {name: value}) for name, value in WRONG_BEST.items()] + [
    ("balanced", {"mean": 1.1}), ("balanced", {"odds": None}),
    ({"budget": 0.1}, {"odds": 1e9}), ({"budget": 0.1}, {"n": True}),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "wrong"), [*WRONG, *(("f1", own) for own in ({}, None, "fraud"))], ids=str)
def test_a_file_with_a_wrong_decision_is_refused(rule, wrong, tmp_path):
    model = DEVDAN(random_state=1, decide={"fraud": rule})
    for seed in range(2):
        model.partial_fit(*payments(300, seed=seed))
    header = json.loads(json.dumps(modelfile.header_of(model), default=modelfile.plain))
    header["decision"] = {"fraud": header["decision"]["fraud"] | wrong} if wrong and wrong != "fraud" else wrong
    modelfile.write(tmp_path / "model", header, np.concatenate(model.mixture_.networks))
    with pytest.raises(modelfile.ModelFileError, match="does not hold a valid model"):
        DEVDAN.load(tmp_path / "model")
