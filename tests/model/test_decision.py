"""Decisions: what a sample is called, given its probabilities, is what a slow and obvious rule says, at every door."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from devdan import DEVDAN, DEVDANEnsemble, DEVDANFleet
from devdan.bench import named_models
from devdan.model.decision import decision_of

SMALL = [(1, 0, 0, 0), (4, 2, 50, 0)]
CAUTIOUS = {"fraud": {"missed": 50, "false": 1}}


def payments(n, seed=0, share=0.03):
    """Samples of which a few are frauds, and hard to tell."""
    random = np.random.default_rng(seed)
    fraud = random.random(n) < share
    X = random.normal(size=(n, 3)) + 1.2 * fraud[:, None]
    return X, np.where(fraud, "fraud", "ok")


# --- Costs -------------------------------------------------------------------------------------------------------


def cost(option, true, called):
    """What it costs to call a sample of one class another."""
    if set(option) == {"costs"}:
        return option["costs"].get(true, {}).get(called, 0.0 if true == called else 1.0)
    if true == called:
        return 0.0
    if true not in option and called not in option:
        return 1.0
    missed = option[true].get("missed", 1.0) if true in option else 0.0
    return missed + (option[called].get("false", 1.0) if called in option else 0.0)


def naive_label(option, probabilities, labels):
    """The label of least expected cost, one row and one label after the other."""
    expected = {k: sum(p * cost(option, c, k) for p, c in zip(probabilities, labels, strict=True)) for k in labels}
    return min(labels, key=expected.__getitem__), expected


COSTS = st.integers(0, 100)
MISTAKES = st.dictionaries(st.sampled_from(["missed", "false"]), COSTS, min_size=1)
SHORT = st.dictionaries(st.sampled_from("abc"), MISTAKES, min_size=1)
PAIRS = st.dictionaries(st.sampled_from("abc"), st.dictionaries(st.sampled_from("abc"), COSTS), min_size=1)


@given(
    st.one_of(SHORT, PAIRS.map(lambda pairs: {"costs": pairs})),
    st.lists(st.lists(st.integers(1, 50), min_size=3, max_size=3), min_size=1, max_size=5),
    st.integers(1, 3),
)
def test_costs_give_the_label_of_least_expected_cost(option, odds, n_classes):
    labels = list("abc")[:n_classes]
    P = np.array([row[:n_classes] for row in odds], dtype=float)
    P /= P.sum(axis=1, keepdims=True)
    for place, row in zip(decision_of(option).places(P, labels).tolist(), P.tolist(), strict=True):
        best, expected = naive_label(option, row, labels)
        assert expected[labels[place]] == pytest.approx(expected[best], abs=1e-9)


@given(SHORT, st.integers(1, 999))
def test_of_two_classes_costs_are_a_threshold(option, thousandths):
    decision, p = decision_of(option), thousandths / 1000
    for label, threshold in decision.thresholds(["a", "b"]).items():
        if abs(threshold - p) > 1e-9:
            row = [p, 1 - p] if label == "a" else [1 - p, p]
            called = ["a", "b"][decision.places(np.array([row]), ["a", "b"])[0]]
            assert (called == label) == (p >= threshold)


def test_the_usual_costs_call_the_likeliest():
    P = np.random.default_rng(0).dirichlet(np.ones(4), 200)
    alike = decision_of({"a": {"missed": 1, "false": 1}})
    usual = decision_of({"costs": {"a": {"b": 1}}})
    assert (usual.places(P, list("abcd")) == P.argmax(axis=1)).all()
    assert (alike.places(P[:, :2], list("ab")) == P[:, :2].argmax(axis=1)).all()


@pytest.mark.parametrize(
    ("named", "label"), [("1", 1), ("true", True), ("1.5", 1.5), ("fraud", np.str_("fraud"))], ids=repr
)
def test_a_class_may_be_named_by_its_text(named, label):
    assert decision_of({named: {"missed": 9}}).costs([label, "other"]).tolist() == [[0, 9], [1, 0]]


@pytest.mark.parametrize(
    "wrong",
    [
        "often", None, 1, {}, {"a": 1}, {"a": {}}, {"a": {"misses": 1}}, {"a": {"missed": -1}}, {"costs": {}},
        {"a": {"missed": np.nan}}, {"a": {"missed": True}}, {"costs": {"a": 1}}, {"costs": {"a": {"b": "1"}}}, [[0, 1]],
        {"a": "f2"}, {"a": {"recall": 0}}, {"a": {"budget": 1.1}}, {"a": {"threshold": np.nan}},
        {"a": {"recall": 0.5, "precision": 0.5}}, {"a": "f1", "b": {"missed": 2}}, {"a": {"missed": 10**400}},
        {"a": {"over": 5000}}, {"a": {"recall": 0.5, "over": 5000}}, {"a": {"budget": 0.1, "over": 5000, "of": 1}},
    ],
    ids=repr,
)  # fmt: skip
def test_what_is_no_way_to_decide_is_refused(wrong):
    X, y = payments(20)
    with pytest.raises(ValueError, match="decide must be 'likeliest', costs"):
        DEVDAN(decide=wrong).fit(X, y)
    with pytest.raises(ValueError, match="decide must be 'likeliest', costs"):
        DEVDANFleet(decide=wrong).partial_fit(["a"] * 20, X, y)


@pytest.mark.parametrize("budget", ["100/day", "100 / hour", "1%", 100, 1.5, 0, -0.1, None, True], ids=repr)
@pytest.mark.parametrize("own", [{}, {"over": 5_000}, {"over": "day"}], ids=repr)
def test_a_budget_that_is_no_share_is_refused_with_how_to_make_it_one(budget, own):
    for check in (decision_of, lambda option: DEVDAN(decide=option).fit(*payments(20))):
        with pytest.raises(ValueError, match=r"decide must be .* divide the alerts of a day by the rows of a day"):
            check({"b": {"budget": 0.1}, "a": {"budget": budget} | own})


@pytest.mark.parametrize(
    ("share", "over", "least"),
    [
        (0.01, 999, "1,000"), (0.01, 0, "1,000"), (0.01, 5_000.0, "1,000"), (0.01, "day", "1,000"), (1.0, 9, "10"),
        (0.3, 33, "34"), (0.01, True, "1,000"), (0.01, None, "1,000"), (0.01, 10**9 + 1, "1,000"),
        (1e-320, 10**9, "1,000,000,000"),
    ],
)  # fmt: skip
def test_a_horizon_that_cannot_be_kept_is_refused(share, over, least):
    for check in (decision_of, lambda option: DEVDAN(decide=option).fit(*payments(20))):
        with pytest.raises(ValueError, match=f"over must be an integer from 10 / budget, here {least}, to 1,000,000,0"):
            check({"a": {"budget": share, "over": over}})


@pytest.mark.parametrize(("share", "over"), [(0.01, 1_000), (0.3, 34), (1, 10), (0.1, 10**9), (0.1, np.int64(100))])
def test_the_ends_of_what_a_horizon_may_be(share, over):
    rule = decision_of({"a": {"over": over, "budget": share}}).rules["a"]
    assert (rule.share, rule.over) == (share, over)


# --- At every door -----------------------------------------------------------------------------------------------


def taught(kind, option):
    X, y = payments(600)
    if kind == "fleet":
        return DEVDANFleet(random_state=1, decide=option).partial_fit(["k"] * 600, X, y)
    made = {"single": DEVDAN, "ensemble": lambda **own: DEVDANEnsemble(SMALL, n_jobs=1, **own)}[kind]
    return made(random_state=1, decide=option).partial_fit(X, y)


def asked(model, name, X):
    return getattr(model, name)(*([["k"] * len(X)] if isinstance(model, DEVDANFleet) else []), X)


@pytest.mark.parametrize("kind", ["single", "ensemble", "fleet"])
def test_a_decision_changes_what_is_called_and_nothing_else(kind, tmp_path):
    X, _ = payments(400, seed=1)
    plain, cautious = taught(kind, "likeliest"), taught(kind, CAUTIOUS)
    P = asked(cautious, "predict_proba", X)
    assert (asked(plain, "predict_proba", X) == P).all()
    expected = [naive_label(CAUTIOUS, row, ["fraud", "ok"])[0] for row in P.tolist()]
    assert asked(cautious, "predict", X).tolist() == expected != asked(plain, "predict", X).tolist()
    cautious.save(tmp_path / "model")
    for other in (type(cautious).load(tmp_path / "model"), copy.deepcopy(cautious), pickle.loads(pickle.dumps(plain))):
        other.set_params(decide=CAUTIOUS)  # also without learning since
        assert asked(other, "predict", X).tolist() == expected
    if kind == "fleet":
        assert cautious["k"].predict(X).tolist() == cautious.prior_.decided(P).tolist() == expected
        return
    service = pytest.importorskip("devdan.service.predictor", reason="pip install 'devdan[serve]'")
    predictor = service.Predictor(cautious, ["x0", "x1", "x2"], 1)
    rows = [dict(zip(("x0", "x1", "x2"), row, strict=True)) for row in X.tolist()]
    told = predictor.many(rows)
    assert [one.label for one in told] == expected
    assert [one.confidence for one in told] == [
        row[["fraud", "ok"].index(label)] for row, label in zip(P.tolist(), expected, strict=True)
    ]


@pytest.mark.parametrize("ensemble", [False, True])
def test_river_decides_alike(ensemble):
    river = pytest.importorskip("devdan.river")
    X, y = payments(300)
    model = river.DEVDANClassifier(seed=1, ensemble=ensemble, decide=CAUTIOUS)
    assert model.predict_one({"x": 1.0}) is None
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model.learn_many(frame, pd.Series(y))
    samples = frame.to_dict("records")
    votes = [model.predict_proba_one(x) for x in samples]
    expected = [naive_label(CAUTIOUS, [vote["fraud"], vote["ok"]], ["fraud", "ok"])[0] for vote in votes]
    assert [model.predict_one(x) for x in samples] == model.predict_many(frame).tolist() == expected
    assert expected != [max(vote, key=vote.get) for vote in votes]


def test_capymoa_decides_alike():
    capymoa = pytest.importorskip("devdan.capymoa")
    stream = pytest.importorskip("capymoa.stream.generator").SEA()
    second = stream.get_schema().get_label_values()[1]
    model = capymoa.DEVDANClassifier(stream.get_schema(), decide={second: {"missed": 3}})
    assert model.predict(stream.next_instance()) is None
    for _ in range(300):
        model.train(stream.next_instance())
    called = []
    for _ in range(100):
        instance = stream.next_instance()
        p = model.predict_proba(instance)
        called.append(model.predict(instance))
        assert called[-1] == (1 if 3 * p[1] >= p[0] else 0)
    assert set(called) == {0, 1}


def test_members_leave_it_to_their_owner():
    X, y = payments(20)
    with pytest.raises(ValueError, match="leave decide to the ensemble"):
        DEVDANEnsemble(estimator=DEVDAN(decide=CAUTIOUS)).fit(X, y)
    with pytest.raises(ValueError, match="leave decide to the fleet"):
        DEVDANFleet(DEVDAN(rehearse=0, decide=CAUTIOUS)).partial_fit(["a"] * 20, X, y)


def test_the_command_line_takes_costs_for_each_kind():
    text = 'decide={"fraud": {"missed": 50, "false": 1}}'
    for name in ("devdan", "devdan-ensemble"):
        assert named_models.build(name, options=named_models.parse_options([text])).decide == CAUTIOUS
    assert named_models.build_fleet("devdan", options=named_models.parse_options([text])).decide == CAUTIOUS
    horizon = named_models.parse_options(['decide={"fraud": {"budget": 0.01, "over": 20000}}'])
    assert decision_of(named_models.build("devdan", options=horizon).decide).rules["fraud"].over == 20_000
    with pytest.raises(ValueError, match="takes lists and dicts in JSON"):
        named_models.parse_options(["decide={fraud: 50}"])


@pytest.mark.parametrize(
    "rule",
    [{"threshold": 0.2}, {"budget": 0.1}, {"budget": 0.1, "over": 200}, "f1", {"missed": 50, "false": 1}],
    ids=str,
)
def test_a_class_may_be_called_costs(rule):
    P = np.array([[0.3, 0.7], [0.01, 0.99]])
    named, other = decision_of({"costs": rule}), decision_of({"fraud": rule})
    assert named.places(P, ["costs", "ok"]).tolist() == other.places(P, ["fraud", "ok"]).tolist()
    assert list(named.thresholds(["costs", "ok"]).values()) == list(other.thresholds(["fraud", "ok"]).values())
