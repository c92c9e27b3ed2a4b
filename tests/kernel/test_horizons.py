"""What shows only after thousands of samples, or at the edge of a range: horizons, limits and thresholds.

The networks here stand still: without steps, growth and pruning what they see is known in advance, so that the oracle
need not learn along and long streams are cheap.
"""

import numpy as np
import pytest
from naive import Naive, Phase, Random
from networks import needs_jit
from sklearn.utils import check_random_state

from devdan import DEVDAN, DEVDANEnsemble

pytestmark = pytest.mark.uncompiled
STILL = {
    "learning_rate": 0.0,
    "generative_learning_rate": 0.0,
    "grow": False,
    "prune": False,
    "shuffle": False,
    "masking": 0.0,
    "averaging": 0.0,
    "rehearse": 0,
    "calibrate": False,
}


def word_of(seed):
    """The word with which the generator of a model with this seed starts."""
    return int(check_random_state(seed).randint(np.iinfo(np.int64).max, dtype=np.int64))


def oracle_of(model, seen):
    """An oracle that has seen the samples and has the weights of the model."""
    oracle = Naive(seen.shape[1], 0, model)
    weights = model.weights_
    oracle.W, oracle.b, oracle.c = (weights[name] for name in ("encoder", "encoder_bias", "decoder_bias"))
    oracle.output, oracle.eta, oracle.seen = weights["output"], weights["output_bias"], seen
    return oracle


def drifts(model, phase):
    """The samples at which a phase signalled a drift."""
    return [event.sample for event in model.events_ if event.kind == "drift" and event.phase == phase]


def drifts_of(phase, surprises):
    return [t + 1 for t, surprise in enumerate(surprises) if phase.surprise.drifts(surprise)]


# --- Scaling -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scaling", ["standard", "minmax"])
def test_the_scale_of_the_features_has_the_horizon_and_the_limits_of_the_oracle(scaling):
    random = np.random.default_rng(0)
    X = random.normal(size=(5000, 3)) * [1, 5, 0.1] + np.linspace(0, 4, 5000)[:, None]
    X[random.random(X.shape) < 0.1] = np.nan
    still = {**STILL, "scaling": scaling, "initial_weights": {"encoder": np.eye(3), "decoder_bias": [9.0, -9.0, 0.5]}}
    model = DEVDAN(**still)
    asked = np.vstack([X[::500], 100 * np.eye(3), -100 * np.eye(3)])
    for start in range(0, 5000, 1000):
        model.observe(X[start : start + 1000])
        oracle = oracle_of(model, X[: start + 1000])
        for row, hidden, again in zip(asked, model.transform(asked), model.reconstruct(asked), strict=True):
            np.testing.assert_allclose(hidden, oracle.transform(row), atol=1e-10, rtol=0)
            np.testing.assert_allclose(again, oracle.reconstruct(row), atol=1e-10, rtol=0)


@pytest.mark.parametrize("reach", [0, 30, 400])
def test_a_network_scales_by_as_many_samples_as_it_looks_back(reach):
    random = np.random.default_rng(0)
    X = random.normal(size=(3000, 2)) + np.linspace(0, 4, 3000)[:, None]
    still, scale = DEVDAN(**STILL), (3, 0, reach)
    model = DEVDANEnsemble([scale], estimator=still, random_state=1).observe(X)
    oracle = Naive(2, word_of(1), still, scale)
    oracle.seen, oracle.n_seen = X, len(X)
    model.teach(X[:9], np.arange(9) % 2)
    for t in range(9):
        oracle.learn_label(X[t], t % 2)
    for row, shares in zip(X[::300], model.predict_proba(X[::300]), strict=True):
        np.testing.assert_allclose(shares, oracle.predict_proba(row), atol=1e-10, rtol=0)


@pytest.mark.parametrize("scaling", ["standard", "minmax"])
def test_values_beyond_the_largest_count_as_the_largest(scaling):
    X = np.array([[0.0], [1e150], [1.7e308], [-1.7e308]])
    model = DEVDAN(**STILL, scaling=scaling, initial_weights={"encoder": [[1.0]], "decoder_bias": [1.0]}).observe(X)
    oracle = oracle_of(model, X)
    for row, hidden, again in zip(X, model.transform(X), model.reconstruct(X), strict=True):
        np.testing.assert_allclose(hidden, oracle.transform(row), rtol=1e-10)
        np.testing.assert_allclose(again, oracle.reconstruct(row), rtol=1e-10)


# --- Drift -------------------------------------------------------------------------------------------------------


def errors(levels, spread, seed):
    """Squared errors around a level."""
    random = np.random.default_rng(seed)
    return np.clip(levels + spread * random.normal(size=len(levels)), 0.02, 1.9)


LEVELS = {
    "rises slowly, when most is forgotten": (  # the early noise counts for less and less, but it counts
        np.r_[np.full(11_000, 0.5), np.linspace(0.5, 0.7, 1500)],
        np.repeat([0.3, 0.01], [6000, 6500]),
    ),
    "rises slowly": (np.r_[np.full(1000, 0.3), np.linspace(0.3, 0.6, 1000), np.full(1000, 0.6)], 0.2),
    "hardly varies": (np.r_[np.full(1000, 0.3), np.linspace(0.3, 0.5, 2000)], 0.02),
    "rises early": (np.r_[np.full(230, 0.2), np.full(470, 1.0)], 0.1),
    "falls and rises": (np.r_[np.full(700, 1.0), np.full(700, 0.3), np.linspace(0.3, 1.0, 1200)], 0.2),
}


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=needs_jit if "forgotten" in case else []) for case in LEVELS], ids=str
)
def test_a_real_drift_is_told_at_the_sample_where_the_oracle_tells_it(case):
    levels, spread = LEVELS[case]
    values = errors(levels, spread, seed=1)
    p = 1 - np.sqrt(values / 2)  # of the label; the other class has the rest
    margin = np.log(p / (1 - p))
    X = 0.5 + margin[:, None] / 20  # in [0, 1]
    unit = {"encoder": [[4.0]], "encoder_bias": [-2.0], "output": [[0.0, 20.0]], "output_bias": [0.0, -10.0]}
    model = DEVDAN(**STILL, generative=False, scaling=None, initial_weights=unit)
    y = np.ones(len(X), int)
    model.teach(X, y, classes=[0, 1])
    surprises = 2 * (1 - model.predict_proba(X)[:, 1]) ** 2
    expected = drifts_of(Phase("discriminative", 1), surprises)
    assert drifts(model, "discriminative") == expected
    assert expected
    assert "forgotten" not in case or expected[0] > 11_000
    assert model.drifts_ == {"generative": 0, "discriminative": len(expected)}


SHARES = {  # of each class, and how sure the model is of its labels in one part of the stream after the other
    "a rare class changes": ((0.95, 0.05), ((0.6, 0.6), (0.6, 0.1))),
    "a common class changes": ((0.75, 0.25), ((0.9, 0.9), (0.65, 0.45))),
    "the rarest of three changes": ((0.5, 0.45, 0.05), ((0.6, 0.6), (0.6, 0.6), (0.6, 0.1))),
    "no class changes": ((0.45, 0.42, 0.13), ((0.9,) * 2,) * 3),
    "all classes change": ((0.9, 0.1), ((0.9, 0.2), (0.8, 0.1))),
    "a rare class is surer and then less so": ((0.97, 0.03), ((0.6, 0.6), (0.2, 0.7, 0.7, 0.7, 0.2))),
}


@pytest.mark.parametrize("case", [pytest.param(case, marks=needs_jit if "then" in case else []) for case in SHARES])
def test_drifts_of_rare_classes_are_told_at_the_samples_where_the_oracle_tells_them(case):
    """Each feature is the log probability of a class."""
    shares, sure = SHARES[case]
    random = np.random.default_rng(3)
    n, n_classes = 8000 if "then" in case else 4000, len(shares)
    y = random.choice(n_classes, size=n, p=shares)
    y[:n_classes] = np.arange(n_classes)
    at = np.array([(t * len(sure[label])) // n for t, label in enumerate(y)])
    own = np.array([sure[label][k] for label, k in zip(y, at, strict=True)])
    own = 1 / (1 + np.exp(-np.log(own / (1 - own)) - random.normal(size=n)))
    X = np.log(np.where(y[:, None] == np.arange(n_classes), own[:, None], (1 - own[:, None]) / (n_classes - 1)))
    X = 0.5 + X / 20
    small = 1e-3  # so that sigmoids are linear
    unit = {
        "encoder": small * np.eye(n_classes), "encoder_bias": np.zeros(n_classes),
        "output": 80 / small * np.eye(n_classes), "output_bias": np.zeros(n_classes),
    }  # fmt: skip
    names = np.array(["common", "familiar", "fraud"] if n_classes == 3 else ["common", "fraud"])
    model = DEVDAN(**STILL, n_hidden=n_classes, generative=False, scaling=None, initial_weights=unit)
    model.teach(X, names[y], classes=names)
    oracle = Naive(n_classes, 0, model)
    oracle.names = model.mixture_.classes.by_output.tolist()
    place = np.array([oracle.names.index(name) for name in names])
    told = model.predict_proba(X)[:, [sorted(names).index(name) for name in oracle.names]]
    for t in range(n):
        oracle.taught, label = t + 1, place[y[t]]
        oracle.labels, oracle.label_weights = np.append(oracle.labels, label), np.append(oracle.label_weights, 1.0)
        oracle.watch_class(label, told[t])
        oracle.watch(oracle.discriminative, told[t], np.eye(n_classes)[label])
    assert oracle.told(model.events_)
    of_class = [event.label for event in model.events_]
    assert of_class == {
        "a rare class changes": ["fraud"], "a common class changes": [None], "the rarest of three changes": ["fraud"],
        "all classes change": [None], "a rare class is surer and then less so": ["fraud"],
    }.get(case, [])  # fmt: skip


def scales(case):
    """Samples in [0, 1] whose scale or place changes."""
    random = np.random.default_rng(2)
    X = random.random((2400, 2))
    if case == "the inputs move away":
        X *= 0.3
        X[1200:, 0] += np.linspace(0, 0.7, 1200)
        X[random.random(X.shape) < 0.2] = np.nan
        X[::50] = np.nan
    elif case == "outliers become many":
        X = 0.01 * X
        X[::40] = 0.5
        X[1200::7] = 0.9
    elif case == "next to no variance":
        X = 2e-7 * X
        X[1200:] *= np.linspace(1, 4, 1200)[:, None]
    return X


@pytest.mark.parametrize("case", ["the inputs move away", "outliers become many", "next to no variance"])
def test_a_virtual_drift_is_told_at_the_sample_where_the_oracle_tells_it(case):
    X = scales(case)
    model = DEVDAN(**STILL, scaling=None).observe(X)
    oracle = Naive(2, 0, model)
    phase, expected = oracle.generative, []
    for t in range(len(X)):
        phase.inputs = X[: t + 1]
        if not np.isnan(X[t]).all() and phase.surprise.drifts(oracle.surprise(phase, None, None)):
            expected.append(t + 1)
    assert drifts(model, "generative") == expected
    assert expected


@needs_jit
def test_a_network_that_remembers_samples_tells_no_drift():
    X = np.random.default_rng(0).normal(size=(3000, 2))
    y = (X[:, 0] > 0) == (np.arange(3000) < 1000)  # the labels are swapped
    X[2000:] += 3  # and the inputs move
    model = DEVDANEnsemble([(1,), (1, 0, 50)], estimator=DEVDAN(shuffle=False, learning_rate=0.005), random_state=0)
    for start in range(0, 3000, 100):
        model.partial_fit(X[start : start + 100], y[start : start + 100])
    drifts = {(event.network, event.phase) for event in model.events_ if event.kind == "drift"}
    assert drifts == {(0, "generative"), (0, "discriminative")}


# --- Weights of classes ------------------------------------------------------------------------------------------


@needs_jit
@pytest.mark.parametrize("share", [0.2, 0.001])
def test_a_class_weighs_what_it_does_by_the_latest_labels(share):
    """After many labels a single step tells the weights, up to three: it moves the offsets by the weighted error."""
    random = np.random.default_rng(5)
    y = (random.random(30_000) < np.repeat([0.5, share], [600, 29_400])).astype(int)
    y[-2:] = 1, 0
    X = np.zeros((30_000, 1))
    still = {**STILL, "optimizer": "momentum", "momentum": 0.0, "scaling": None, "class_weight": "balanced"}
    model = DEVDAN(**still, random_state=1).teach(X, y, classes=[0, 1])
    oracle = Naive(1, 0, model)
    oracle.labels, oracle.label_weights = y, np.ones(len(y))
    before = model.mixture_.nets[0].output_bias[:2].copy()
    model.set_params(learning_rate=1e-6)
    for label in (1, 0):
        shares = model.predict_proba(X[:1])[0]
        model.teach(X[:1], [label])
        oracle.labels, oracle.label_weights = np.append(oracle.labels, label), np.append(oracle.label_weights, 1)
        after = model.mixture_.nets[0].output_bias[:2].copy()
        expected = 1e-6 * min(oracle.weight_of_class(label), 3) * ((np.arange(2) == label) - shares)
        np.testing.assert_allclose(after - before, expected, rtol=1e-3)
        before = after
    if share == 0.001:
        assert oracle.weight_of_class(1) == 100
    kept = 1 - 1 / 10_000  # of what earlier labels count, with each that comes
    counted = (1 - kept ** len(oracle.labels)) / (1 - kept)
    np.testing.assert_allclose(model.mixture_.nets[0].class_count[:2].sum(), counted, rtol=1e-9)


# --- Learning ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [(1,), (3, 2, 50), (4, 2, 50, 5)], ids=str)
@pytest.mark.parametrize("option", [None, "balanced", {0: 0.5, 1: 4}], ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_a_member_learns_from_chunks_what_the_oracle_learns(scale, option, weighted):
    """All of a chunk are observed, then all are judged, then all are taught."""
    random = np.random.default_rng(3)
    y = (random.random(300) < 0.15).astype(int)
    X = random.normal(size=(300, 2)) + y[:, None]
    given = random.gamma(2.0, 0.5, size=300) if weighted else np.ones(300)
    options = DEVDAN(averaging=0.9, calibrate=False, shuffle=False, class_weight=option, learning_rate=0.01)
    model = DEVDANEnsemble([scale], estimator=options, random_state=1)
    oracle = Naive(2, word_of(1), options, scale)
    for start in range(0, 300, 6):
        part = slice(start, start + 6)
        rows, labels, weights = X[part], y[part], given[part]
        model.partial_fit(rows, labels, classes=[0, 1], **({"sample_weight": weights} if weighted else {}))
        for row, weight in zip(rows, weights, strict=True):
            oracle.observe(row, weight)
        oracle.judge(rows, labels, weights)
        for row, label, weight in zip(rows, labels, weights, strict=True):
            if len(oracle.eta) == 0:
                oracle.know(1)  # both classes were named in advance
            oracle.learn_label(row, label, weight)
        for row, shares in zip(rows, model.predict_proba(rows), strict=True):
            np.testing.assert_allclose(shares, oracle.predict_proba(row), atol=1e-10, rtol=0)
    assert oracle.told(model.events_)
    assert not any(model.drifts_.values())


def test_where_the_averages_are_much_better_the_weights_still_have_their_small_say():
    random = np.random.default_rng(3)
    y = random.integers(2, size=600)
    X = 0.5 * random.normal(size=(600, 2)) + y[:, None] * [-1, 1] + np.linspace(0, 3, 600)[:, None] * [0, 1]
    y = np.where(np.random.default_rng(0).random(600) < 0.25, 1 - y, y)  # at a rate that makes the most of each label
    fixed = {"calibrate": False, "grow": False, "prune": False, "generative": False, "shuffle": False, "n_hidden": 2}
    model = DEVDAN(**fixed, rehearse=0, learning_rate=1.0, optimizer="momentum", momentum=0.5, random_state=2)
    oracle, least = Naive(2, word_of(2), model), 1
    for t in range(600):
        model.teach(X[t : t + 1], y[t : t + 1], classes=[0, 1])
        if t == 0:
            oracle.know(1)
        oracle.teach(X[t], y[t])
        if t % 4 == 0:
            shares = model.predict_proba(X[t : t + 1])[0]
            np.testing.assert_allclose(shares, oracle.predict_proba(X[t]), atol=1e-10, rtol=0)
        least = min(least, oracle.weights()[0])
    assert 1e-10 < least < 1e-7


def test_the_adaptive_scope_widens_up_to_its_limit_where_no_unit_helps():
    """The decoder is so sure that no new unit moves it; the draws are then from 1,024 times the range."""
    X = np.random.default_rng(0).random((200, 2))
    weights = {"encoder": [[1.0], [1.0]], "encoder_bias": [0.0], "decoder_bias": [9.0, 9.0]}
    options = {**STILL, "grow": True, "scope": "adaptive", "scaling": None, "initial_weights": weights}
    model = DEVDAN(**options, random_state=5)
    oracle = Naive(2, 0, model)
    oracle.W, oracle.b, oracle.c = (np.array(value) for value in weights.values())
    oracle.random = Random(word_of(5))
    for row in X:
        model.observe(row[None])
        oracle.observe(row)
        np.testing.assert_allclose(model.weights_["encoder_bias"], oracle.b, atol=1e-10, rtol=0)
        np.testing.assert_allclose(model.weights_["encoder"], oracle.W, atol=1e-10, rtol=0)
    assert model.n_hidden_ > 3
    assert 256 < np.abs(oracle.b).max() < 1024


@pytest.mark.parametrize(
    ("seed", "n_samples", "speed", "learning_rate", "weights"),
    [(3, 440, 14 / 600, 0.1, (0.01, 0.011)), (3, 410, 20 / 600, 0.2, (0.009, 0.01))],
)
def test_averages_begin_anew_where_they_are_no_longer_trusted(seed, n_samples, speed, learning_rate, weights):
    """They lag behind a concept that moves, and weigh less and less: here to just above the limit or below it."""
    X = np.random.default_rng(seed).normal(size=(900, 1))[:n_samples]
    y = (X[:, 0] > np.sin(speed * np.arange(n_samples))).astype(int)
    fixed = {
        "calibrate": False,
        "grow": False,
        "prune": False,
        "generative": False,
        "shuffle": False,
        "n_hidden": 2,
        "rehearse": 0,
    }
    model = DEVDAN(**fixed, averaging=0.9999, learning_rate=learning_rate, random_state=5)
    oracle, least = Naive(1, word_of(5), model), []
    oracle.know(1)
    trust = oracle.trust
    oracle.trust = lambda: least.append(trust()) or trust()
    for t in range(n_samples):
        model.teach(X[t : t + 1], y[t : t + 1], classes=[0, 1])
        oracle.teach(X[t], y[t])
        if t % 4 == 0:
            shares = model.predict_proba(X[t : t + 1])[0]
            np.testing.assert_allclose(shares, oracle.predict_proba(X[t]), atol=1e-10, rtol=0)
    assert oracle.averaged_since > 0
    assert any(weights[0] < weight < weights[1] for weight in least)


def test_the_loss_of_what_was_thought_impossible_has_a_limit():
    """Label 1 comes as a surprise to both; the weights turn at once, and their averages still deny it when judged."""
    weights = {"encoder": [[1.0]], "encoder_bias": [0.0], "output": [[0.0, 0.0]], "output_bias": [0.0, -12.0]}
    model = DEVDAN(**{**STILL, "averaging": 0.998}, optimizer="momentum", scaling=None, initial_weights=weights)
    X = np.random.default_rng(0).random((212, 1))
    model.teach(X[:200], np.zeros(200, int), classes=[0, 1])
    oracle = oracle_of(model, X[:200])
    oracle.slow = {"W": oracle.W, "b": oracle.b, "output": oracle.output, "eta": oracle.eta}
    oracle.velocity = {name: np.zeros_like(value) for name, value in oracle.slow.items()}
    oracle.n_seen = oracle.taught = 200
    oracle.losses = np.full(2, 1e-3)  # so far they are alike, and only the difference counts
    model.set_params(learning_rate=1.0, momentum=0.0)
    for t in range(200, 212):
        if t == 203:
            fast, slow = (shares[1] for shares in oracle.predictions(X[t]))
            assert slow < 1e-4 < fast
        model.teach(X[t : t + 1], [1])
        oracle.teach(X[t], 1)
        shares = model.predict_proba(X[t : t + 1])[0]
        np.testing.assert_allclose(shares, oracle.predict_proba(X[t]), atol=1e-10, rtol=0)
