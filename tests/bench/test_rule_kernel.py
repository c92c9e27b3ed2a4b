"""The rules' kernel does what its steps say: it agrees with the oracle, also where streams hardly ever lead."""

import math

import numpy as np
import pytest
from naive_pensemble import NaivePClass, NaivePENsemble, NaivePENsemblePlus, Rule
from numba import config
from rulestreams import chunks, kinds

from devdan.bench import PClass, PENsemble, PENsemblePlus, rule_kernel
from devdan.bench.rule_base import RuleBase
from devdan.bench.rule_kernel import DENSITY, N_RULES, N_STORED, SUPPORT, VOLUME, RuleSettings

JIT = not config.DISABLE_JIT
pytestmark = pytest.mark.uncompiled
DEFAULTS = {"vigilance": 0.99, "spread": 0.01, "omega": 1000.0, "decay": 1e-15}


def stream(n_samples, n_features, n_classes, jumps, seed):
    """Classes around centres in [0, 1] that jump at times."""
    random = np.random.default_rng(seed)
    y = random.integers(n_classes, size=n_samples)
    X = np.empty((n_samples, n_features))
    centres = 0.2 + 0.6 * random.random((n_classes, n_features))
    for t in range(n_samples):
        if random.random() < jumps:
            centres = random.random((n_classes, n_features))
        X[t] = np.clip(centres[y[t]] + 0.05 * random.normal(size=n_features), 0, 1)
    return X, y


def both(n_features, n_classes, **options):
    """A rule base and its oracle, with the same options."""
    options = DEFAULTS | options
    settings = RuleSettings(*(options[name] for name in DEFAULTS), options.get("grow", True), True)
    return RuleBase(n_features, n_classes, settings), NaivePClass(n_features, n_classes, **options)


def agree(base, naive, X):
    """Outputs and all that a rule consists of are the same."""
    assert base.n_rules == len(naive.rules)
    assert base.rules.header[N_STORED] == len(naive.store)
    rows = base.rules.rows[: base.n_rules + len(naive.store)]
    ours = [rule_kernel.views(row, base.n_features, base.n_classes) for row in rows]
    theirs = [*naive.rules, *sorted(naive.store, key=lambda rule: -rule.density)]
    ours[base.n_rules :] = sorted(ours[base.n_rules :], key=lambda rule: -rule.scalars[DENSITY])
    for own, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(own.centre, other.centre, rtol=1e-9)
        np.testing.assert_allclose(own.inverse, other.S, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(own.consequent.T, other.consequent, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(own.covariance, other.Q, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(own.class_support, other.class_support)
        assert own.scalars[SUPPORT] == other.support
        assert own.scalars[VOLUME] == pytest.approx(other.volume, abs=1e-8)
        assert math.sqrt(own.scalars[DENSITY]) == pytest.approx(other.density, rel=1e-9)
    np.testing.assert_allclose(base.outputs(X), naive.outputs(X), atol=1e-9)


CASES = {
    "one feature": (1, 2, 0.0, {}),
    "as published": (2, 2, 0.002, {}),
    "three classes": (5, 3, 0.005, {}),
    "many rules": (3, 2, 0.01, {"vigilance": 0.0}),
    "rules stored": (3, 2, 0.03, {"vigilance": 0.0, "spread": 1e-4}),
    "hardly regularised": (2, 2, 0.01, {"vigilance": 0.3, "spread": 1e-4, "omega": 1e5}),
    "decaying": (3, 2, 0.005, {"decay": 1e-5}),
    "wide first rule": (4, 2, 0.005, {"spread": 10.0}),
    "no growth": (4, 2, 0.005, {"grow": False}),
}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_it_agrees_with_the_oracle(case):
    n_features, n_classes, jumps, options = CASES[case]
    X, y = stream(1200 if JIT else 300, n_features, n_classes, jumps, seed=6)
    base, naive = both(n_features, n_classes, **options)
    events = [event for part in np.split(np.arange(len(X)), [100, 101]) for event in base.learn(X[part], y[part])]
    naive.learn(X, y)
    assert events == naive.events
    assert not JIT or case != "rules stored" or "rule stored" in {kind for _, kind, _, _ in events}
    agree(base, naive, X[:50])


def given(rules, store=(), n_seen=200, **options):
    """Both with the same rules, each as (centre, variance, size of W, χ), and with the same data behind them."""
    n_features = len(rules[0][0])
    base, naive = both(n_features, 2, **options)
    base._enlarge()
    base._enlarge()
    base.rules.header[[N_RULES, N_STORED, rule_kernel.N_SEEN]] = len(rules), len(store), n_seen
    naive.n = n_seen
    for place, (centre, variance, size, density) in enumerate([*rules, *store]):
        W = np.zeros((n_features + 1, 2))
        W[0] = size
        rule = Rule(np.array(centre), np.full(n_features, variance), np.array([1.0, 0.0]), W, 100.0, 1)
        rule.support, rule.class_support, rule.density = 40.0, np.array([30.0, 10.0]), density
        (naive.rules if place < len(rules) else naive.store).append(rule)
        ours = rule_kernel.views(base.rules.rows[place], n_features, 2)
        ours.scalars[:] = n_features * math.log(variance), 40.0, density**2, 1, 0
        ours.class_support[:], ours.centre[:], ours.consequent[:] = (30.0, 10.0), centre, W.T
        ours.inverse[:], ours.covariance[:] = np.eye(n_features) / variance, 100.0 * np.eye(n_features + 1)
    naive.U, naive.alpha, naive.c = 100.0, np.full(n_features, 50.0), 30.0 * n_features
    base.rules.quality[:] = [naive.U, naive.c, *naive.alpha]
    return base, naive


def learned(base, naive, x, label=0):
    """What both say about one more sample, which must be the same."""
    events = base.learn(np.array([x]), np.array([label]))
    naive.learn_one(np.array(x), label)
    assert events == naive.events
    agree(base, naive, np.array([x]))
    return events


CENTRES = [[0.1 * i, 0.1 * i] for i in range(1, 9)]


def test_a_rule_of_little_influence_is_deleted():
    sizes = [0.5] * 7 + [1e-6]
    base, naive = given([(c, 0.01, size, 0.9) for c, size in zip(CENTRES, sizes, strict=True)])
    assert learned(base, naive, [0.1, 0.1]) == [(201, "rule pruned", 7, 7)]


def test_a_young_rule_is_spared():
    sizes = [1e-6] + [0.5] * 7
    base, naive = given([(c, 0.01, size, 0.9) for c, size in zip(CENTRES, sizes, strict=True)])
    base.rules.rows[0, rule_kernel.BORN] = naive.rules[0].born = 150
    assert learned(base, naive, [0.8, 0.8]) == []


def test_a_rule_far_from_the_data_is_stored():
    densities = [0.9] * 3 + [0.01] + [0.9] * 4
    base, naive = given([(c, 0.01, 0.5, chi) for c, chi in zip(CENTRES, densities, strict=True)])
    assert learned(base, naive, [0.1, 0.1]) == [(201, "rule stored", 3, 7)]
    centre = rule_kernel.views(base.rules.rows[7], 2, 2).centre
    np.testing.assert_allclose(centre, CENTRES[3])


def test_a_stored_rule_that_is_denser_than_all_others_is_recalled_as_it_was():
    store = [([0.3, 0.9], 0.02, 0.4, 0.5), ([0.9, 0.3], 0.02, 0.7, 0.95)]
    base, naive = given([([0.5, 0.5], 1e-4, 0.5, 0.3)], store, vigilance=0.0)
    before = rule_kernel.views(base.rules.rows[2].copy(), 2, 2)
    assert learned(base, naive, [0.0, 1.0]) == [(201, "rule recalled", 1, 2)]
    after = rule_kernel.views(base.rules.rows[1], 2, 2)
    for name in ("class_support", "centre", "inverse"):
        np.testing.assert_array_equal(getattr(after, name), getattr(before, name))


def test_a_stored_rule_that_is_not_denser_stays_where_it_is():
    base, naive = given([([0.5, 0.5], 1e-4, 0.5, 0.6)], [([0.9, 0.3], 0.02, 0.7, 0.5)], vigilance=0.0)
    assert learned(base, naive, [0.0, 1.0]) == [(201, "rule added", 1, 2)]
    np.testing.assert_allclose(rule_kernel.views(base.rules.rows[2], 2, 2).centre, [0.9, 0.3])


def test_the_store_keeps_the_twenty_densest():
    densities = [0.9] * 3 + [0.01] + [0.9] * 4
    store = [([0.9, 0.1], 0.01, 0.5, 0.2 + 0.01 * k) for k in range(20)]
    base, naive = given([(c, 0.01, 0.5, chi) for c, chi in zip(CENTRES, densities, strict=True)], store)
    learned(base, naive, [0.1, 0.1])
    assert base.rules.header[N_STORED] == 20
    np.testing.assert_array_less(0.1**2, base.rules.rows[7:27, DENSITY])


def test_the_winner_has_the_mean_and_the_covariance_of_its_data():
    X, y = stream(200, 3, 2, 0.05, seed=2)
    base, _ = both(3, 2, grow=False, spread=0.05)
    base.learn(X, y)
    rule = next(base.active())
    spread = np.cov(X.T, bias=True) + 0.05 / 200 * np.eye(3)
    np.testing.assert_allclose(rule.centre, X.mean(axis=0))
    np.testing.assert_allclose(np.linalg.inv(rule.inverse), spread)
    assert rule.scalars[VOLUME] == pytest.approx(np.linalg.slogdet(spread)[1])
    np.testing.assert_array_equal(rule.class_support, np.bincount(y))


def test_a_spread_is_floored_where_features_never_change():
    X = np.full((5000 if JIT else 300, 3), 0.5)
    X[:, 0] = np.random.default_rng(0).random(len(X))
    base, naive = both(3, 2, spread=1e-4)
    base.learn(X, np.zeros(len(X), np.int64))
    naive.learn(X, np.zeros(len(X), np.int64))
    values = np.linalg.eigvalsh(next(base.active()).inverse)
    assert values.max() < 1.3e6  # within 50 updates after it was floored
    agree(base, naive, X[:5])


def test_new_classes_leave_the_outputs_of_the_others_alone():
    X, y = stream(300, 3, 2, 0.02, seed=3)
    base, _ = both(3, 2, vigilance=0.0)
    base.learn(X, y)
    before, size = base.outputs(X), base.n_parameters
    base.add_classes(4)
    np.testing.assert_array_equal(base.outputs(X), np.hstack([before, np.zeros((300, 2))]))
    assert base.n_parameters == size + base.n_rules * 2 * (3 + 1)
    base.learn(X[:50], np.full(50, 3))
    assert base.outputs(X[:50])[:, 3].mean() > 0.3


def test_firing_strengths_sum_to_one_however_far_a_sample_is():
    base, _ = given([(c, 1e-6, 0.5, 0.9) for c in CENTRES])
    firings = base.firings(np.array([[0.0, 1.0], [0.1, 0.1]]))
    np.testing.assert_allclose(firings.sum(axis=1), 1)
    assert np.isfinite(base.outputs(np.array([[0.0, 1.0]]))).all()


def test_the_ring_of_events_keeps_the_latest():
    X, y = stream(300, 3, 2, 0.03, seed=4)
    base, other = (both(3, 2, vigilance=0.0)[0] for _ in range(2))
    events = base.learn(X, y)
    other.rules = other.rules._replace(events=other.rules.events[:3].copy())
    assert other.learn(X, y) == events[-3:]
    assert len(events) > 6


# --- Ensembles -----------------------------------------------------------------------------------------------------


SHIFTS = {3: 4, 6: 10, 7: 10, 8: 4, 10: 10, 13: 4, 15: 4}  # most of them drifts, those at row 10 warnings


@pytest.mark.parametrize(
    ("model", "oracle"),
    [(PENsemble, NaivePENsemble), (PENsemblePlus, NaivePENsemblePlus)],
    ids=["pensemble", "pensemble+"],
)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_ensembles_agree_with_the_oracle(model, oracle, n_classes):
    ours, theirs = model(PClass(scaling=None, spread=0.05)), oracle(3, n_classes, spread=0.05)
    for X, y in chunks(18, n_classes=n_classes, shifts=SHIFTS, seed=n_classes):
        ours.partial_fit(X, y, classes=range(n_classes))
        theirs.learn(X, y)
        np.testing.assert_allclose(ours._outputs(X), theirs.outputs(X), atol=1e-9)
        np.testing.assert_allclose(ours.weights_, [member.weight for member in theirs.members], rtol=1e-9)
        assert ours.n_rules_ == sum(len(member.rules.rules) for member in theirs.members)
    seen = [kind for kind in kinds(ours) if not kind.startswith("rule")]
    # A drift is noted before the member that it brings, by both; which of several members go first is not compared.
    assert sorted(seen) == sorted(theirs.events)
    leaving = "member merged" if model is PENsemblePlus else "member removed"
    assert {"drift", "warning", "member added", leaving} <= set(seen)
    if model is PENsemblePlus:
        assert ours.n_labels_used_ == theirs.n_asked < ours.n_seen_
