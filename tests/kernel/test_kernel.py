"""The kernel does what the equations say: it agrees with the oracle, and its parts keep their promises."""

import copy
import math

import numpy as np
import pytest
from naive import Naive, Random
from networks import SMALL
from numba import config, njit
from oracle import agree, learn_both, stream
from sklearn.utils import check_random_state

from devdan import DEVDAN, DEVDANEnsemble, kernel
from devdan.kernel import arithmetic, inputs, mixing, network, paper, steps
from devdan.kernel.memory import N
from devdan.kernel.state import (
    PHASES,
    check_state,
    new_evolving,
    resized,
    scratch_for,
    set_settings,
    with_features,
)
from devdan.model.classes import NO_WEIGHTS

JIT = not config.DISABLE_JIT
pytestmark = pytest.mark.uncompiled


SETTINGS = {
    "start": 1.0,
    "scaling": kernel.MINMAX,
    "masking": 0.1,
    "generates": 1.0,
    "grows": 1.0,
    "generative_rate": 0.001,
    "discriminative_rate": 0.01,
    "momentum": 0.95,
    "averaging": 0.0,
}


def called(function, *args):
    """What a function for compiled code gives."""
    return njit(lambda *args: function(*args))(*args)  # noqa: PLW0108 (Python must not call it)


def on_network(function, block=kernel.Evolving):
    """A function of a network and its work, for Python."""
    work = kernel.Work
    return njit(lambda state, scratch, *more: function(block(state), work(scratch, block(state)), *more))


CASES = {
    "defaults": {},
    "the paper's": {"scaling": None, "annealing": 500.0, "optimizer": "momentum", "averaging": 0.0},
    "a falling rate": {"annealing": 20.0, "learning_rate": 0.1},
    "min-max, momentum": {"scaling": "minmax", "optimizer": "momentum"},
    "without averages": {"averaging": 0.0},
    "short averages": {"averaging": 0.9},
    # With steps this long, rounding errors soon become larger than 1e-10.
    "generative phase prunes": {
        "n_samples": 380,
        "n_classes": 2,
        "n_hidden": 20,
        "random_state": 6,
        "learning_rate": 0.2,
    },
    "discriminative phase prunes": {
        "n_samples": 400,
        "n_classes": 2,
        "n_hidden": 20,
        "random_state": 14,
        "learning_rate": 0.2,
    },
    "labels swapped": {"swapped": 300, "learning_rate": 0.1},
    "a real drift": {"swapped": 450, "n_classes": 2, "learning_rate": 0.005},
    "a virtual drift": {"shifted": 450},
    "unscaled": {"scaling": None},
    "standard": {"scaling": "standard"},
    "many classes": {"n_classes": 5, "learning_rate": 0.05, "momentum": 0.0},
    "missing values": {"missing": 0.3},
    "missing values, standard": {"missing": 0.3, "scaling": "standard"},
    "adaptive scope": {"scope": "adaptive", "scaling": "standard", "generative_learning_rate": 0.01},
    "half of it masked": {"masking": 0.5},
    "heavy masking": {"masking": 0.7, "n_features": 7},
    "one feature": {"n_features": 1},
    "no generative phase": {"generative": False},
    "fixed structure": {"grow": False, "prune": False, "n_hidden": 4},
    "no pruning": {"prune": False},
    "plain autoencoder": {"masking": 0.0},
    "balanced": {"class_weight": "balanced", "rare": 0.05},
    "balanced, momentum": {"class_weight": "balanced", "rare": 0.05, "optimizer": "momentum", "learning_rate": 0.001},
    "very rare": {"class_weight": "balanced", "rare": 0.004, "n_classes": 2},
    "classes that are given weights": {"class_weight": {0: 0.5, 2: 3}},
    "given weights, momentum": {"class_weight": {1: 20.0}, "optimizer": "momentum", "learning_rate": 0.015},
    "weighted samples": {"weighted": True, "generative_learning_rate": 0.01},
    "weighted samples, momentum": {"weighted": True, "optimizer": "momentum", "learning_rate": 0.015},
    "weighted samples of balanced classes": {
        "weighted": True,
        "class_weight": "balanced",
        "rare": 0.2,
        "learning_rate": 0.01,
    },
    "weighted samples of weighted classes": {"weighted": True, "class_weight": {1: 2.5}},
}


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.filterwarnings("ignore:X has values outside")
def test_kernel_agrees_with_the_oracle_sample_by_sample(case):
    options = dict(CASES[case])
    n_features, n_classes = options.pop("n_features", 4), options.pop("n_classes", 3)
    X, y = stream(600, n_features, n_classes, options.pop("missing", 0.0), seed=3)
    swapped, shifted = options.pop("swapped", 600), options.pop("shifted", 600)
    y[swapped:] = n_classes - 1 - y[swapped:]
    X[shifted:] += 3
    random = np.random.default_rng(4)
    y[random.random(600) > options.pop("rare", 1.0)] = 0
    y[:20] = 0  # further classes come later
    given = random.gamma(1.0, 2.0, size=600) if options.pop("weighted", False) else np.ones(600)
    n_samples, seed = options.pop("n_samples", 600), options.pop("random_state", 5)
    model = DEVDAN(random_state=seed, shuffle=False, rehearse=0, calibrate=False, **options)
    word = int(check_random_state(seed).randint(np.iinfo(np.int64).max, dtype=np.int64))
    oracle = Naive(n_features, word, model)
    labels = oracle.names = list(dict.fromkeys(y.tolist()))  # in order of appearance
    for t in range(n_samples if JIT else 150):
        row = X[t : t + 1]
        learn_both(model, oracle, t, row, y[t], labels.index(y[t]), given[t])
        weights = model.weights_
        order = np.argsort(labels[: len(oracle.eta)])  # the oracle's outputs are in order of appearance
        agree(weights["encoder"], oracle.W, f"encoder at {t}")
        agree(weights["encoder_bias"], oracle.b, f"encoder_bias at {t}")
        agree(weights["decoder_bias"], oracle.c, f"decoder_bias at {t}")
        agree(weights["output"], oracle.output[:, order], f"output at {t}")
        agree(weights["output_bias"], oracle.eta[order], f"output_bias at {t}")
        if len(order) and t % 3 == 0:
            probabilities = model.predict_proba(row)[0][np.argsort(order)]
            agree(probabilities, oracle.predict_proba(X[t]), f"predict_proba at {t}")
        if t >= 20 and t % 6 == 0:  # by then no feature has always been missing
            agree(model.transform(row)[0], oracle.transform(X[t]), f"transform at {t}")
            agree(model.reconstruct(row)[0], oracle.reconstruct(X[t]), f"reconstruct at {t}")
    assert oracle.told(model.events_)
    for phase in (oracle.generative, oracle.discriminative):
        if phase.bias2.values:
            assert model.bias2_[phase.name] == pytest.approx(np.mean(phase.bias2.values), abs=1e-10)
            assert model.variance_[phase.name] == pytest.approx(np.mean(phase.variance.values), abs=1e-10)
    if not JIT:
        return  # what follows takes longer to happen
    changes = {(event.phase, event.kind) for event in model.events_}
    if case.endswith(" phase prunes"):
        assert {(case.removesuffix(" phase prunes"), "pruning"), *((phase, "growth") for phase in PHASES)} <= changes
    if case == "very rare":  # at first more so than any weight makes up for
        assert (np.cumsum(y == 0)[y == 1] > 200).any()
    if case == "labels swapped":  # the averages begin anew, once that is clear
        assert oracle.averaged_since > 240
    drifts = {event.phase for event in model.events_ if event.kind == "drift"}
    rare = "rare" in CASES[case]  # when such a class comes, the error changes
    assert rare or ("discriminative" in drifts) == (case == "a real drift")
    assert ("generative" in drifts) == (case == "a virtual drift")


def test_sigmoid_and_softmax_are_accurate_and_never_overflow():
    a = np.concatenate([np.linspace(-40, 40, 2001), [-1e308, 1e308, -np.inf, np.inf]])
    s = a.copy()
    called(arithmetic.sigmoid, s, len(s))
    expected = np.array([1 / (1 + math.exp(-v)) if v > -700 else 0.0 for v in a])
    np.testing.assert_allclose(s, expected, atol=1e-13)
    p = np.array([1e308, 3.0, -1e308])
    called(arithmetic.softmax, p, 3, 3)
    np.testing.assert_allclose(p, [1, 0, 0], atol=1e-15)


def test_random_generator_is_splitmix64():
    word = np.array([12345], np.uint64)
    oracle = Random(12345)
    draw = njit(lambda word, variance: arithmetic.normal(word, variance))  # noqa: PLW0108
    assert [called(arithmetic.uniform, word) for _ in range(50)] == [oracle.uniform() for _ in range(50)]
    normals = np.array([draw(word, 4.0) for _ in range(4000)])
    assert abs(normals.mean()) < 0.15
    assert normals.std() == pytest.approx(2, abs=0.1)


def test_shuffle_makes_every_order_equally_likely():
    word = np.array([1], np.uint64)
    counts = dict.fromkeys([(a, b, c) for a in range(3) for b in range(3) for c in range(3) if len({a, b, c}) == 3], 0)
    for _ in range(3000):
        order = np.arange(3)
        kernel.shuffle(word, order)
        counts[tuple(order.tolist())] += 1
    assert min(counts.values()) > 400
    assert max(counts.values()) < 600


@pytest.mark.parametrize(
    ("n_features", "masking", "n_masked"),
    [(10, 0.1, 1), (3, 0.1, 1), (20, 0.1, 2), (10, 0.5, 5), (10, 0.9, 9), (4, 0.99, 3), (1, 0.1, 0), (10, 0.0, 0)],
)
def test_masking_draws_its_features_anew_for_each_sample(n_features, masking, n_masked):
    state = new_evolving(n_features, 4, 2, 1, seed=1)
    scratch = scratch_for(state)
    net = kernel.Network(state)
    net.masking = masking
    work = kernel.Work(scratch, net)
    work.clean[:] = 1.0
    corrupt, rows = on_network(paper.corrupt), []
    for _ in range(400):
        corrupt(state, scratch)
        rows.append(work.inputs[0].copy())
    masked = np.array(rows) == 0.0
    assert (masked.sum(axis=1) == n_masked).all()
    assert np.abs(masked.mean(axis=0) - n_masked / n_features).max() < 0.12


def grow_generative(net, work):
    paper.grow(net, work, kernel.GENERATIVE, work.reconstruction, work.target, work.present, net.n_features)


def test_a_unit_grown_in_the_generative_phase_improves_the_reconstruction_of_its_sample():
    random, forward = np.random.default_rng(0), on_network(paper.forward)
    grow = on_network(njit(grow_generative))
    for seed in range(30):
        state = new_evolving(5, 8, 2, 1, seed=seed)
        net = kernel.Network(state)
        net.start, net.generates = 2, 1
        scratch = scratch_for(state)
        X = random.random((3, 5))
        kernel.learn(state, scratch, X, np.zeros(0, np.int64), NO_WEIGHTS, np.arange(3), 3, 0, 0, 0)
        work = kernel.Work(scratch, net)
        forward(state, scratch, kernel.GENERATIVE)
        before = np.abs(work.reconstruction[0] - work.target)
        grow(state, scratch)
        forward(state, scratch, kernel.GENERATIVE)
        assert net.n_hidden == 3
        assert (np.abs(work.reconstruction[0] - work.target) < before).all()


def test_conditions_are_the_papers():
    monitor = np.array([10.0, 0.5, 0.04, 0.4, 0.1, 0.0])  # μ 0.5, σ 0.2; minima 0.4 and 0.1
    grows, prunes = (
        lambda value, most=most: bool(called(paper.reaches, monitor.copy(), called(most, monitor.copy(), value)))
        for most in (paper.most_bias2, paper.most_variance)
    )
    assert grows(0.0)  # 0.7 >= 0.4 + π 0.1, π at most 2
    assert grows(1.0)
    monitor[network.MIN_STD] = 0.16
    assert not grows(0.0)  # π = 2: 0.7 < 0.72
    assert grows(1.0)  # π = 1.18
    assert not prunes(1.0)  # 2χ = 2.36
    monitor[network.MIN_STD] = 0.1
    assert prunes(1.0)
    assert not prunes(0.0)  # 2χ = 4


def test_a_state_with_more_room_goes_on_bit_for_bit():
    X, y = stream(400, 4, 3, 0.1, seed=1)
    one = DEVDAN(random_state=1).partial_fit(X[:200], y[:200])
    other = DEVDAN(random_state=1).partial_fit(X[:200], y[:200])
    for k, state in enumerate(other.mixture_.networks):
        other.mixture_.replace(k, resized(state, 9, 100, 7))
    for model in (one, other):
        model.partial_fit(X[200:], y[200:])
    assert (one.predict_proba(X) == other.predict_proba(X)).all()
    assert one.events_ == other.events_


def test_features_come_and_go():
    """A network that gains a feature and loses it again goes on as it was; one that loses another keeps the rest."""
    X, y = stream(200, 3, 2, 0.0, seed=2)
    for state in DEVDAN(random_state=0).partial_fit(X, y).mixture_.networks:
        more = with_features(state, [], 1)  # there was no room
        assert kernel.Network(more).n_features == 4
        assert (kernel.Network(more).encoder[3] == 0).all()
        wider = resized(state, features=6)
        assert with_features(more, [3], 0).tobytes() == wider.tobytes()
        fewer = with_features(wider, [1], 0)
        check_state(fewer)
        old, new = kernel.Network(state), kernel.Network(fewer)
        by_feature = {name: field.shape.index(N) for name, field in new.fields().items() if N in field.shape}
        assert {"encoder", "encoder_slow", "mean", "lowest"} < by_feature.keys()
        for name, axis in by_feature.items():
            kept, expected = np.take(getattr(new, name), [0, 1], axis), np.take(getattr(old, name), [0, 2], axis)
            np.testing.assert_array_equal(kept, expected)
            assert (np.isin(np.take(getattr(new, name), [2, 3], axis), [0, np.inf, -np.inf]) | (name == "buffer")).all()


def test_a_feature_that_comes_is_missing_in_the_buffer():
    X, y = stream(200, 3, 2, 0.0, seed=2)
    state = DEVDAN(random_state=0).partial_fit(X, y).mixture_.networks[1]
    old, new = kernel.Network(state), kernel.Network(with_features(state, [1], 2))
    np.testing.assert_array_equal(new.buffer[:200, :2], old.buffer[:200, [0, 2]])
    assert np.isnan(new.buffer[:200, 2:4]).all()


def test_learning_stops_for_more_room_and_goes_on_as_if_there_had_been_enough():
    X, y = stream(300, 4, 3, 0.1, seed=1)
    ample, tight = (new_evolving(4, room, 3, 10, seed=1) for room in (64, 3))
    for state in (ample, tight):
        set_settings(kernel.Network(state), SETTINGS)
    order = np.arange(300)
    assert kernel.learn(ample, scratch_for(ample), X, y, NO_WEIGHTS, order, 300, 0, 0, 1) == 300
    done, stops = 0, 0
    while done < 300:
        done = kernel.learn(tight, scratch_for(tight), X, y, NO_WEIGHTS, order, 300, done, 0, 1)
        if done < 300:
            stops += 1
            tight = resized(tight, 4, int(kernel.Network(tight).max_hidden) + 1, 3)
    assert stops > 2
    assert resized(tight, 4, 64, 3).tobytes() == ample.tobytes()


def test_a_network_that_was_never_taught_predicts_nothing():
    X, _ = stream(10, 4, 3, 0.0, seed=1)
    state, out = new_evolving(4, 16, 3, 10, seed=1), np.full((10, 3), 7.0)
    kernel.predict_proba(state, scratch_for(state), X, out, 1.0)
    assert (out == 7.0).all()


def test_a_state_may_hold_the_largest_numbers_and_be_full():
    X, y = stream(50, 4, 2, 0.0, seed=1)
    state = DEVDAN(random_state=0).partial_fit(X, y).mixture_.networks[0]
    net = kernel.Network(state)
    net.n_seen = net.n_learned[kernel.DISCRIMINATIVE] = net.averaged_since = 2**62
    net.n_hidden, net.n_named = net.max_hidden, net.max_classes
    net.encoder[0, 0], net.output_bias[0] = -1e100, 1e100
    net.mean[0], net.low[0], net.high[0] = 1e150, -1e150, 1e150
    net.scale_count[1] = 1.0
    check_state(state)
    net.scale_count[1] = net.mean[1] = net.square[1] = 0.0
    check_state(state)


def test_a_condition_is_met_where_both_sides_are_equal():
    monitor = np.array([10.0, 0.5, 0.0625, 0.25, 0.25, 0.0])  # 0.5 + 0.25 >= 0.25 + 2 · 0.25
    assert called(paper.reaches, monitor, called(paper.bound, monitor, 2.0))
    assert not called(paper.reaches, monitor, called(paper.bound, monitor, 2.0 + 1e-9))


def test_of_units_that_are_equally_significant_the_first_is_pruned():
    weights = {"encoder": np.ones((2, 3)), "output": np.array([[1.0, 0.0], [2.0, 0.0], [3.0, 0.0]])}
    model = DEVDAN.paper(initial_weights=weights, grow=False, generative=False, learning_rate=0.0, random_state=0)
    X = np.array([[0.2, 0.8]])
    model.teach(X, [0], classes=[0, 1])
    monitor = kernel.Network(model.mixture_.networks[0]).monitors[kernel.DISCRIMINATIVE, kernel.VARIANCE]
    monitor[:] = 5.0, 0.1, 0.1, -9.0, 0.0, 0.0  # so that the variance is far above its minimum
    model.teach(X, [0])
    assert model.weights_["output"][:, 0].tolist() == [2.0, 3.0]


PREDICTORS = [(network, predictor) for network in range(3) for predictor in range(2)]


def trust(nets, network, predictor):
    """Let only one predictor count."""
    for net in nets:
        net.losses[:] = 5000.0
    nets[network].losses[predictor] = 0.0


@pytest.mark.parametrize(("network", "predictor"), PREDICTORS)
def test_losses_that_are_far_apart_leave_one_predictor(network, predictor):
    random = np.random.default_rng(0)
    X, y = random.random((300, 3)), random.integers(2, size=300)
    model = DEVDANEnsemble(SMALL, random_state=0).partial_fit(X, y)
    nets = model.mixture_.nets
    trust(nets, network, predictor)
    mixed = model.predict_proba(X)
    for k, net in enumerate(nets):  # what is not trusted may be anything
        for name in net.fields():
            if name.endswith("_slow"):
                if (k, 0) != (network, predictor):
                    getattr(net, name.removesuffix("_slow"))[...] = 0.0
                if (k, 1) != (network, predictor):
                    getattr(net, name)[...] = 0.0
    np.testing.assert_array_equal(model.predict_proba(X), mixed)


@njit
def judge(net, work, X, labels, weights, order):
    inputs.prepare_scaling(net, work)
    mixing.update_losses(net, work, steps.Visits(X, labels, weights, order, len(order)), 0)


compare = on_network(judge, kernel.Network)  # compiled once


def compared(state, X, labels):
    """The losses before and after predictors are compared on samples, on scratch space that holds anything."""
    net = kernel.Network(state)
    net.n_learned[kernel.DISCRIMINATIVE] = 3  # so that the next sample counts
    before = net.losses.copy()
    scratch = np.full(len(scratch_for(state)), 0.9)
    compare(state, scratch, X, np.array(labels), NO_WEIGHTS, np.arange(len(X)))
    return before, net.losses


def test_a_class_that_is_not_known_yet_counts_as_a_large_loss():
    X = np.random.default_rng(0).random((1, 3))
    model = DEVDANEnsemble(SMALL, random_state=0).partial_fit(X, [0]).partial_fit(X, [1])
    for state in model.mixture_.networks:
        before, after = compared(state, X, [2])
        np.testing.assert_allclose(after, 0.992 * before - math.log(1e-4))


@pytest.mark.parametrize(("network", "predictor"), PREDICTORS)
def test_the_loss_of_a_predictor_is_that_of_what_it_predicts(network, predictor):
    random = np.random.default_rng(0)
    X = random.random((400, 3))
    model = DEVDANEnsemble(SMALL, random_state=0).partial_fit(X, X[:, 0] > 0.5)
    trust(model.mixture_.nets, network, predictor)
    predicted = model.predict_proba(X[:1])[0]
    before, after = compared(model.mixture_.networks[network], X[:1], [model.mixture_.classes.outputs[1]])
    assert after[predictor] == pytest.approx(0.992 * before[predictor] - math.log(predicted[1]), rel=1e-12)


def test_a_chunk_is_judged_once_however_often_room_is_made():
    random = np.random.default_rng(0)
    X = random.random((600, 3))
    y = (X[:, 0] > X[:, 1]).astype(int)
    narrow = DEVDAN(random_state=0, n_hidden=14, generative=False, prune=False).partial_fit(X[:20], y[:20])
    wide = copy.deepcopy(narrow)
    for k, state in enumerate(wide.mixture_.networks):
        wide.mixture_.replace(k, resized(state, hidden=256))
    for model in (narrow, wide):
        model.partial_fit(X[20:], y[20:])
    assert narrow.mixture_.nets[0].max_hidden > 16  # it ran out of room on the way
    for one, other in zip(narrow.mixture_.nets, wide.mixture_.nets, strict=True):
        np.testing.assert_allclose(one.losses, other.losses, rtol=1e-9)


def test_a_network_is_judged_by_every_fourth_sample():
    """Nothing is learned here, so that each loss can be computed afterwards."""
    X, y = stream(300, 4, 2, 0.0, seed=1)
    X = np.clip(X, 0, 1)
    fixed = {"grow": False, "prune": False, "generative": False, "learning_rate": 0.0, "n_hidden": 3}
    model = DEVDAN(rehearse=0, random_state=0, scaling=None, shuffle=False, **fixed)
    for start in range(0, 300, 7):
        model.partial_fit(X[start : start + 7], y[start : start + 7])
    codes = model.mixture_.classes.outputs[y]
    judged = np.arange(7, 300, 4)  # in the first chunk no class is known
    together = [(judged // 7 == chunk).sum() for chunk in judged // 7]
    assert set(together) == {1, 2}
    out, state = np.zeros((len(X), 2)), model.mixture_.networks[0]
    kernel.predict_proba(state, scratch_for(state), X, out, 1.0)
    losses = -np.log(out[judged, codes[judged]]) / np.sqrt(together)
    expected = losses @ 0.992 ** np.arange(len(judged))[::-1]
    np.testing.assert_allclose(kernel.Network(state).losses, [expected, expected], rtol=1e-9)
