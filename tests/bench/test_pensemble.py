"""pClass, pENsemble and pENsemble+ as classifiers: scikit-learn's checks, the oracle, each mechanism, hostile input."""

import copy
import pickle

import numpy as np
import pytest
from naive_pensemble import NaivePClass
from rulestreams import chunks, kinds
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from devdan.bench import PClass, PENsemble, PENsemblePlus, named_models, pensemble_criteria
from devdan.bench.pclass import nearest_distribution
from devdan.bench.pensemble_criteria import (
    compression_index,
    detect_drift,
    error_bound,
    find_cut,
    is_suspicious,
    redundant_pairs,
    select_features,
)
from devdan.bench.rule_base import feature_weights
from devdan.evaluation.loop import prequential
from devdan.evaluation.record import Record, Summary
from devdan.streams import hyperplane, sea

KINDS = [PClass, PENsemble, PENsemblePlus]
RAW = PClass(scaling=None)  # for data in [0, 1]


@pytest.mark.filterwarnings("ignore:X has values outside")
@parametrize_with_checks(
    [PClass(), PClass(feature_weighting="soft", scaling=None), PENsemble(), PENsemble(n_selected=2), PENsemblePlus()]
)
def test_estimator_checks(estimator, check):
    check(estimator)


def through(model, stream):
    for X, y in stream:
        model.partial_fit(X, y)
    return model


# --- What every one of them promises -------------------------------------------------------------------------------


def test_pclass_agrees_with_the_oracle_under_scaling():
    X, y = next(iter(hyperplane(800, chunk=800)))
    low, high = X.min(axis=0), X.max(axis=0)
    model, naive = PClass(vigilance=0.5).fit(100 * X - 7, y), NaivePClass(X.shape[1], 2, vigilance=0.5)
    first = y[0]
    naive.learn((X - low) / (high - low), (y != first).astype(int))  # outputs are given out as classes appear
    outputs = nearest_distribution(naive.outputs((X[:99] - low) / (high - low)))
    ours = model.predict_proba(100 * X[:99] - 7)[:, [int(first), 1 - int(first)]]
    np.testing.assert_allclose(ours, outputs, atol=1e-8)


@pytest.mark.parametrize("kind", KINDS)
def test_probabilities_sum_to_one_and_keep_the_order_of_the_outputs(kind):
    model = through(kind(), sea(3000))
    X, _ = next(iter(sea(500, seed=3)))
    shares = model.predict_proba(X)
    assert ((shares >= 0) & (shares <= 1)).all()
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    np.testing.assert_array_equal(model.classes_[shares.argmax(axis=1)], model.predict(X))


def test_the_nearest_distribution_is_nearer_than_any_other():
    random = np.random.default_rng(0)
    outputs = 2 * random.normal(size=(200, 4))
    nearest = nearest_distribution(outputs)
    others = random.dirichlet(np.full(4, 0.3), size=(500, 200))
    assert (((outputs - nearest) ** 2).sum(axis=1) <= ((outputs - others) ** 2).sum(axis=2).min(axis=0)).all()
    assert (nearest.argmax(axis=1) == outputs.argmax(axis=1)).all()


@pytest.mark.parametrize("kind", KINDS)
def test_copies_go_on_as_the_original_does(kind):
    model = through(kind(), chunks(6, shifts={3: 4}))
    X, y = next(chunks(1, seed=9))
    copies = [pickle.loads(pickle.dumps(model)), copy.deepcopy(model)]
    expected = model.partial_fit(X, y).predict_proba(X)
    for other in copies:
        np.testing.assert_array_equal(other.partial_fit(X, y).predict_proba(X), expected)
        assert other.events_ == model.events_
    assert not hasattr(clone(model), "_kept_scaling")
    again = through(kind(), chunks(6, shifts={3: 4})).partial_fit(X, y)
    np.testing.assert_array_equal(again.predict_proba(X), expected)


@pytest.mark.parametrize("kind", KINDS)
def test_a_class_that_was_not_there_before_gains_an_output(kind):
    model = through(kind(), chunks(4))
    X, y = next(chunks(1, seed=5))
    with pytest.raises(ValueError, match="labels of the type seen so far"):
        model.partial_fit(X, np.where(y == 1, "a", "b"))
    model.partial_fit(X, np.where(y == 1, 7, 0))
    assert model.classes_.tolist() == [0, 1, 7]
    for _ in range(8):
        model.partial_fit(X, np.where(y == 1, 7, 0))
    assert (model.predict(X) == np.where(y == 1, 7, 0)).mean() > 0.8


@pytest.mark.parametrize("kind", KINDS)
def test_a_missing_number_is_the_mean_of_those_so_far(kind):
    """As if the user had imputed each chunk by what has come, itself included; predictions know only the past."""
    holed, filled, came = kind(), kind(), []
    for k, (X, y) in enumerate(chunks(4)):
        X[np.random.default_rng(k).random(X.shape) < 0.2] = np.nan
        if came:
            means = np.nanmean(np.concatenate(came), axis=0)
            proba = filled.predict_proba(np.where(np.isnan(X), means, X))
            np.testing.assert_allclose(holed.predict_proba(X), proba, atol=1e-6)
        came.append(X)
        holed.partial_fit(X, y)
        filled.partial_fit(np.where(np.isnan(X), np.nanmean(np.concatenate(came), axis=0), X), y)
    never = X.copy()
    never[:, 0] = np.nan
    assert np.isfinite(kind().partial_fit(never, y).predict_proba(never)).all()


@pytest.mark.parametrize("kind", KINDS)
def test_bad_input_is_refused_and_changes_nothing(kind):
    model = through(kind(), chunks(3))
    X, y = next(chunks(1, seed=4))
    before = model.predict_proba(X)
    endless = X.copy()
    endless[3, 1] = np.inf
    with pytest.raises(ValueError, match="contains infinity"):
        model.partial_fit(endless, y)
    with pytest.raises(ValueError, match="same number of samples, got 100 and 99"):
        model.partial_fit(X, y[1:])
    with pytest.raises(ValueError, match="requires y to be passed"):
        model.partial_fit(X, None)
    np.testing.assert_array_equal(model.predict_proba(X), before)
    with pytest.raises(NotFittedError, match="call partial_fit or fit first"):
        _ = kind().n_rules_


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (PClass(scaling="standard"), "scaling must be 'minmax' or None, got 'standard'"),
        (PClass(vigilance=1.5), r"vigilance must be in \[0, 1\], got 1.5"),
        (PClass(spread=0), "spread must be in"),
        (PClass(omega="much"), "omega must be in"),
        (PClass(decay=1.0), "decay must be in"),
        (PClass(grow=1), "grow must be True or False, got 1"),
        (PClass(feature_weighting="hard"), "feature_weighting must be 'soft', 'full' or None, got 'hard'"),
        (PENsemble(PClass(omega=0)), "omega must be in"),
        (PENsemble("pclass"), "estimator must be a PClass, got 'pclass'"),
        (PENsemble(penalty=0), "penalty must be in"),
        (PENsemble(member_threshold=1), "member_threshold must be in"),
        (PENsemble(n_selected=0), "n_selected must be an integer of at least 1, or None, got 0"),
        (PENsemble(covariance_reset="yes"), "covariance_reset must be True or False"),
        (PENsemblePlus(conflict_threshold=2), "conflict_threshold must be in"),
        (PENsemblePlus(budget=0), "budget must be in"),
        (PENsemblePlus(merge_threshold=-1), "merge_threshold must be at least 0"),
        (PENsemblePlus(dynamic_threshold=None), "dynamic_threshold must be True or False"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_options_out_of_range_are_named(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit([[0.0], [1.0]], [0, 1])


def test_the_scaling_stays_what_it_was():
    model = PENsemble().fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(ValueError, match="scaling must stay 'minmax' once the model has learned"):
        model.set_params(estimator=PClass(scaling=None)).partial_fit([[0.0]], [0])


def hostile(name, random):
    """Chunks that numbers break on."""
    for number in range(6):
        X = random.random((80, 50 if name == "fifty features" else 4))
        y = random.integers(3, size=80)
        if name == "constant":
            X[:] = 3.0
        elif name == "nearly singular":
            X[:, 1:] = X[:, :1] * (1 + 1e-12 * random.normal(size=(80, 3)))
        elif name == "constant but for one sample":
            X[:] = 0.5
            X[number] = 1e9
        elif name == "one class a chunk":
            y[:] = number % 3
        elif name == "new classes":
            y = y + number
        elif name == "huge":
            X = (X - 0.5) * 1.7e308
        elif name == "tiny":
            X = X * 5e-324
        elif name == "single rows":
            X, y = X[:1], y[:1]
        elif name == "two values":
            X = (X > 0.5).astype(float)
        yield X, y


HOSTILE = (
    "constant",
    "nearly singular",
    "constant but for one sample",
    "one class a chunk",
    "new classes",
    "huge",
    "tiny",
    "single rows",
    "two values",
    "fifty features",
)


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize(
    "model",
    [
        PClass(vigilance=0.0),
        PENsemble(PClass(feature_weighting="full", spread=1e-4)),
        PENsemble(n_selected=2, partial_input=True, random_state=0),
        PENsemblePlus(PClass(omega=1e10)),
    ],
    ids=["pclass", "weighting", "selecting", "plus"],
)
def test_nothing_breaks_on_hostile_input(model, name):
    model = clone(model)
    for X, y in hostile(name, np.random.default_rng(1)):
        model.partial_fit(X, y)
        shares = model.predict_proba(X)
        assert np.isfinite(shares).all()
        np.testing.assert_allclose(shares.sum(axis=1), 1)
        assert model.n_members_ >= 1
        assert all(np.isfinite(base.rules.rows).all() and base.n_rules >= 1 for base in model._bases)


# --- Members: penalty, reward, pruning -----------------------------------------------------------------------------


def two_members(model):
    """An ensemble with a second member, which a drift has brought."""
    through(model, chunks(2, shifts={1: 4}))
    assert kinds(model).count("member added") == model.n_members_ == 2
    return model


def test_weights_are_penalised_rewarded_and_normalised(monkeypatch):
    model = two_members(PENsemble(RAW))
    monkeypatch.setattr(pensemble_criteria, "detect_drift", lambda *_: "stable")
    X, y = next(chunks(1, size=10, seed=0))
    codes, _ = model._classes.encode(y)
    expected = model.weights_
    for k, base in enumerate(model._bases):
        for right in base.outputs(X).argmax(axis=1) == codes:
            expected[k] = min(1.5 * expected[k], 1.0) if right else 0.5 * expected[k]
    best = np.argmin([((base.outputs(X) - np.eye(2)[codes]) ** 2).mean() for base in model._bases])
    model.partial_fit(X, y)
    expected /= expected.sum()
    np.testing.assert_allclose(np.delete(model.weights_, best), np.delete(expected, best))
    assert model.weights_[best] == 1


def test_a_member_that_is_always_wrong_goes_and_the_last_one_never_does():
    model = two_members(PENsemble(RAW))
    model._members[0].base.reset_covariance()
    for rule in model._members[0].base.active():
        rule.consequent[:] = -rule.consequent
    X, y = next(chunks(1))
    model.partial_fit(X, y)
    assert "member removed" in kinds(model)
    assert [member.number for member in model._members] == [1]
    for _ in range(40):
        model.partial_fit(X, 1 - y)  # below chance, weights would vanish
        model.partial_fit(X, y)
    assert [member.number for member in model._members] == [1]
    assert model.weights_.tolist() == [1]


def test_a_member_whose_generalisation_error_leaps_goes():
    model = two_members(PENsemble(RAW, member_threshold=0.0))
    steady, leaping = model._members
    X, y = next(chunks(1, seed=1))
    bound = error_bound(leaping.base, X, 0.2)
    steady.bounds, leaping.bounds = [0.0, 100.0, 0.0], [bound - 0.01, bound, bound + 0.01]
    for rule in leaping.base.active():
        rule.consequent[:] *= 30
    model.partial_fit(X, y)
    assert model._members == [steady]
    assert len(steady.bounds) == 4
    assert "member removed" in kinds(model)


def test_the_error_bound_rises_with_the_error_and_with_the_sensitivity():
    X, y = next(chunks(1))
    base = PClass(scaling=None).fit(X, y)._base
    plain = error_bound(base, X, 0.1)
    assert plain > (np.sqrt(0.1) + 1) ** 2
    assert error_bound(base, X, 0.2) > plain
    for rule in base.active():
        rule.consequent[:] *= 2
    assert error_bound(base, X, 0.1) > plain
    assert not is_suspicious(9.0, [1.0, 1.0])
    assert is_suspicious(1.3, [1.0, 1.1, 0.9])
    assert not is_suspicious(1.2, [1.0, 1.1, 0.9])


# --- Drift ---------------------------------------------------------------------------------------------------------


def test_drifts_warnings_and_stable_chunks_are_told_apart():
    random = np.random.default_rng(0)
    signals = []
    for shift in np.linspace(0, 1, 60):
        X = 0.3 * random.random((400, 3))
        X[5:] -= shift
        signals.append(detect_drift(X, 0.001, 0.001, 0.005))
    assert signals[0] == "stable"
    assert signals[-1] == "drift"
    assert "warning" in signals
    strictness = [{"stable": 0, "warning": 1, "drift": 2}[signal] for signal in signals]
    assert np.mean(strictness[:10]) < 0.5
    assert np.mean(strictness[-10:]) > 1.5
    assert sum(detect_drift(random.random((400, 3)), 0.001, 0.001, 0.005) != "stable" for _ in range(200)) <= 2


@pytest.mark.parametrize("X", [np.full((50, 2), 0.1), np.zeros((1, 3)), np.linspace(0, 1, 60)[:, None]])
def test_what_cannot_be_cut_is_stable(X):
    assert detect_drift(X, 0.001, 0.001, 0.005) == "stable"
    assert len(X) > 1 or find_cut(X, 0.001) is None


def test_a_warning_waits_and_a_drift_learns_what_was_kept(monkeypatch):
    signals = iter(["warning"] * 7 + ["drift", "warning", "stable", "stable"])
    monkeypatch.setattr(pensemble_criteria, "detect_drift", lambda *_: next(signals))
    model = through(PENsemble(RAW), chunks(8))
    assert kinds(model).count("warning") == 7
    assert len(model._buffer) == 5
    assert [base.n_seen for base in model._bases] == [100]
    through(model, chunks(1))
    assert [base.n_seen for base in model._bases] == [100, 600]
    assert model._buffer == []
    assert kinds(model).index("drift") < kinds(model).index("member added", 1)
    through(model, chunks(1))
    assert len(model._buffer) == 1
    through(model, chunks(1))
    assert model._buffer == []
    assert sorted(base.n_seen for base in model._bases) in ([100, 700], [200, 600])


def test_what_a_member_learned_counts_less_when_its_covariance_is_reset():
    def recent(reset):
        model = PENsemble(PClass(scaling=None, grow=False), covariance_reset=reset)
        for turned in (False, False, False, False, True):
            X, y = next(chunks(1, seed=2))
            model.partial_fit(X, 1 - y if turned else y)
        return (model.predict(X) == 1 - y).mean()

    assert recent(reset=True) > 0.9
    assert recent(reset=False) < 0.6


# --- Features ------------------------------------------------------------------------------------------------------


def informative(n_samples, seed=0):
    """Two features that decide, three that do not."""
    random = np.random.default_rng(seed)
    X = random.random((n_samples, 5))
    return X, (X[:, 1] + X[:, 3] > 1).astype(np.int64)


def test_feature_weights_tell_what_separates_the_classes():
    X, y = informative(500)
    full, soft = (feature_weights(X, y, weighting) for weighting in ("full", "soft"))
    assert full.min() == 0
    assert full.max() == 1
    assert set(np.argsort(-full)[:2]) == {1, 3}
    np.testing.assert_array_equal(np.argsort(full), np.argsort(soft))
    assert soft.min() >= 0.1
    assert feature_weights(X, np.zeros(500, int), "full") is None
    assert feature_weights(np.ones((9, 2)), np.arange(9) % 2, "soft") is None


def test_weighted_features_are_weighted_in_training_and_prediction():
    X, y = informative(500)
    model = PClass(scaling=None, feature_weighting="full").fit(X, y)
    least = int(model._base.rules.weights.argmin())
    other = X.copy()
    other[:, least] = np.random.default_rng(1).random(500)
    np.testing.assert_array_equal(model.predict_proba(other), model.predict_proba(X))
    assert model.score(X, y) > 0.9
    before = model._base.rules.weights.copy()
    model.partial_fit(X[:5], np.ones(5, int))  # one class: nothing to learn about features
    np.testing.assert_array_equal(model._base.rules.weights, before)


@pytest.mark.parametrize("partial_input", [False, True])
def test_selected_features_are_those_that_matter(partial_input):
    model = PENsemble(RAW, n_selected=2, partial_input=partial_input, random_state=0)
    assert model.fit(*informative(300)).selected_.all()
    for seed in range(1, 15):
        model.partial_fit(*informative(300, seed))
    assert model.selected_.tolist() == [False, True, False, True, False]
    X, y = informative(300, 99)
    other = np.where(model.selected_, X, 0.123)
    np.testing.assert_array_equal(model.predict_proba(other), model.predict_proba(X))
    assert model.score(X, y) > 0.9


def test_a_chunk_without_mistakes_selects_nothing_new():
    X, y = informative(300)
    base = PClass(scaling=None).fit(X, y)._base
    right = base.outputs(X).argmax(axis=1)
    assert select_features([base], np.ones(1), X, right, None, 2, None) is None
    mask = np.array([1.0, 0, 0, 0, 1])
    np.testing.assert_array_equal(select_features([base], np.ones(1), X, right, mask, 2, None), mask)


# --- pENsemble+ ----------------------------------------------------------------------------------------------------


def test_labels_that_are_not_asked_for_do_not_matter():
    model = through(PENsemblePlus(RAW), chunks(3))
    X, y = next(chunks(1, seed=8))
    asked = []
    judge = PENsemblePlus._judge
    model._judge = lambda *given: asked.append(judge(model, *given)) or asked[-1]
    other = copy.deepcopy(through(PENsemblePlus(RAW), chunks(3)))
    share = model.label_share_
    model.partial_fit(X, y)
    other.partial_fit(X, np.where(asked[0], y, 1 - y))
    np.testing.assert_array_equal(other.predict_proba(X), model.predict_proba(X))
    assert asked[0][:6].all()
    assert asked[0][-1]
    assert 7 < asked[0].sum() < len(X)
    assert model.label_share_ == pytest.approx((share * 300 + asked[0].sum()) / 400)


def test_the_threshold_the_budget_and_the_forced_labels():
    def share(**options):
        return through(PENsemblePlus(RAW, **options), chunks(11)).label_share_

    assert share(conflict_threshold=1.0) == 1
    assert share(conflict_threshold=0.0) == pytest.approx((100 + 10 * 7) / 1100)
    assert share(conflict_threshold=0.6) < share(conflict_threshold=0.9)
    assert share(budget=0.2, conflict_threshold=1.0) == pytest.approx(0.2, abs=0.03)
    dynamic = share(dynamic_threshold=True)
    assert dynamic != share()
    assert dynamic > 0.17


def test_the_input_certainty_is_bayes_over_the_rules():
    model = through(PENsemblePlus(RAW), chunks(2, shifts={1: 4}))
    X, _ = next(chunks(1, seed=3))
    total = np.zeros((100, 2))
    for base in model._bases:
        for rule in base.active():
            offset = X - rule.centre
            density = np.exp(-0.5 * np.einsum("ij,jk,ik->i", offset, rule.inverse, offset))
            density *= np.sqrt(np.linalg.det(rule.inverse)) * rule.scalars[1]
            total += np.outer(density, (rule.class_support + 1) / (rule.scalars[1] + 2))
    np.testing.assert_allclose(model._input_certainty(X), total.max(axis=1) / total.sum(axis=1))


def test_the_compression_index_is_the_smaller_eigenvalue_of_the_covariance():
    random = np.random.default_rng(0)
    one, other = random.normal(size=(2, 300, 3))
    other += one * [0.0, 1.0, 5.0]
    for o, index in enumerate(compression_index(one, other)):
        assert index == pytest.approx(np.linalg.eigvalsh(np.cov(one[:, o], other[:, o], bias=True)).min())
    np.testing.assert_allclose(compression_index(one, 3 - 2 * one), 0, atol=1e-9)
    np.testing.assert_allclose(compression_index(one, np.ones((300, 3))), 0)


def test_members_that_say_the_same_are_merged_pairwise_and_the_better_one_stays():
    random = np.random.default_rng(0)
    one, other = random.random((2, 200, 2))
    answers = np.array([one, other, one + 1e-3, 1 - one])
    assert redundant_pairs(answers, np.array([0.1, 0.2, 0.3, 0.4]), 0.01) == [(3, 2)]
    assert redundant_pairs(answers[:3], np.array([0.1, 0.2, 0.3]), 0.01) == [(2, 0)]
    assert redundant_pairs(answers[:2], np.array([0.1, 0.2]), 0.01) == []
    assert redundant_pairs(answers[:1], np.array([0.1]), 9.0) == []


def test_a_member_is_merged_where_both_say_the_same():
    model = two_members(PENsemblePlus(RAW))
    X, y = next(chunks(1))
    errors = [((base.outputs(X) - np.eye(2)[model._classes.encode(y)[0]]) ** 2).mean() for base in model._bases]
    better = model._members[int(np.argmin(errors))].number
    model.partial_fit(X, y)
    assert "member merged" in kinds(model)
    assert [member.number for member in model._members] == [better]


@pytest.mark.parametrize("kind", KINDS)
def test_counts_are_those_of_the_rules(kind):
    model = through(kind(), hyperplane(4000))
    u, m = 4, 2
    assert model.n_parameters_ == model.n_rules_ * (u + u * u + (u + 1) * m)
    assert model.n_rules_ == sum(base.n_rules for base in model._bases)
    added = [event for event in model.events_ if event.kind == "rule added"]
    assert added[0] == (model.events_[0].sample if kind is PClass else 1, "rule added", 0, 0, 1)
    assert all(1 <= event.sample <= model.n_seen_ for event in model.events_)
    assert model.score(*next(iter(hyperplane(500, seed=1)))) > 0.85  # half of them are of each class


# --- In an evaluation ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("labels", ["all", "fraction:0.3", "delay:700"])
def test_an_evaluation_records_rules_members_and_the_labels_that_were_used(labels):
    model = PENsemblePlus()
    records = list(prequential(sea(4000), model, labels))
    assert sum(record.n_labels for record in records) == model.n_labels_used_ < model.n_seen_
    last = records[-1]
    assert (last.n_hidden, last.n_parameters, last.n_members) == (model.n_rules_, model.n_parameters_, model.n_members_)
    assert (records[0].n_hidden is None) == (labels == "delay:700")
    assert Record.from_json(last.to_json()) == last
    assert Summary(records).members.mean == pytest.approx(np.mean([r.n_members for r in records if r.n_members]))


def test_models_by_name_are_on_the_scale_of_the_paper():
    for name, kind in (("pensemble", PENsemble), ("pensemble+", PENsemblePlus)):
        model = named_models.build(name, seed=3)
        assert type(model) is kind
        assert model.scaling is None
        assert model.random_state == 3
        assert named_models.build(name, options={"penalty": 0.4}).penalty == 0.4
    with pytest.raises(ValueError, match="penalty must be in"):
        named_models.build("pensemble", options={"penalty": 4})
