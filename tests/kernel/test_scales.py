"""Networks at several time scales agree with the oracle, each with what it revisits and remembers, and so mixed."""

import numpy as np
import pytest
from naive import Naive
from networks import needs_jit
from oracle import agree, learn_both, stream
from sklearn.utils import check_random_state

from devdan import DEVDAN, DEVDANEnsemble
from devdan.kernel import Network
from devdan.model.scales import QUICK, REHEARSED, SCALES, is_scales

pytestmark = pytest.mark.uncompiled
SMALL = ((1,), (3, 2, 7), (2, 0, 20, 3), (4, 3, 40, 5), (5, 2, 30, 2, 4))
RAW = DEVDAN(calibrate=False)  # test_calibration.py has the rest
CASES = {
    "DEVDAN": (RAW, {}),
    "DEVDAN, missing values": (DEVDAN(calibrate=False, rehearse=2), {"missing": 0.3}),
    "ensemble": (DEVDANEnsemble(SMALL, estimator=RAW), {}),
    "missing values": (DEVDANEnsemble(SMALL, estimator=RAW), {"missing": 0.3}),
    "min-max": (DEVDANEnsemble(SMALL, estimator=DEVDAN(calibrate=False, scaling="minmax")), {"missing": 0.1}),
    "unscaled": (DEVDANEnsemble(SMALL, estimator=DEVDAN(calibrate=False, scaling=None)), {}),
    "momentum, no averages": (DEVDANEnsemble(SMALL, estimator=DEVDAN.paper(rehearse=5, scaling="minmax")), {}),
    "balanced": (DEVDANEnsemble(SMALL, estimator=DEVDAN(calibrate=False, class_weight="balanced")), {"weighted": True}),
    "weighted": (DEVDANEnsemble(SMALL, estimator=DEVDAN(calibrate=False, class_weight={1: 3.0})), {"weighted": True}),
    "labels swapped": (DEVDANEnsemble(SMALL, estimator=DEVDAN(calibrate=False, learning_rate=0.1)), {"swapped": 90}),
    "samples that come again, and outliers": (
        DEVDANEnsemble(SMALL, estimator=RAW),
        {"repeated": True, "outliers": 40.0},
    ),
}


def oracles_of(model, n_features):
    """An oracle for each network."""
    scales = (
        model._scales() if isinstance(model, DEVDANEnsemble) else [QUICK, REHEARSED._replace(rehearse=model.rehearse)]
    )
    words = check_random_state(model.random_state).randint(np.iinfo(np.int64).max, size=len(scales), dtype=np.int64)
    options = model._member if isinstance(model, DEVDANEnsemble) else model
    return [Naive(n_features, int(word), options, scale) for scale, word in zip(scales, words, strict=True)]


def mixed(oracles, row):
    weights = np.array([oracle.evidence() for oracle in oracles])
    return weights / weights.sum() @ [oracle.predict_proba(row) for oracle in oracles]


def teach_all(model, oracles, row, label):
    """One labelled sample to the model and to the oracles, of two classes that are named in advance."""
    model.partial_fit(row[None], [label], classes=[0, 1])
    for oracle in oracles:
        oracle.observe(row)
        if len(oracle.eta) == 0:
            oracle.know(1)
        oracle.teach(row, label)


class All:
    """Several oracles as one."""

    def __init__(self, oracles):
        self.oracles = oracles

    def observe(self, *args):
        for oracle in self.oracles:
            oracle.observe(*args)

    def teach(self, *args):
        for oracle in self.oracles:
            oracle.teach(*args)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.filterwarnings("ignore:X has values outside")
def test_each_network_agrees_with_its_oracle_and_so_does_the_mixture(case):
    model, how = CASES[case]
    n = 160
    X, y = stream(n, 3, 3, how.get("missing", 0.0), seed=3)
    if model.scaling is None:
        X = 1 / (1 + np.exp(-X))
    if how.get("repeated"):  # with other labels, so that it matters which of the nearest are asked
        X[3::4], X[2::4] = X[1::4], X[::4]
    X[5::19] *= how.get("outliers", 1.0)
    y[how.get("swapped", n) :] = 2 - y[how.get("swapped", n) :]
    y[:20] = 0
    given = np.random.default_rng(4).gamma(1.0, 2.0, size=n) if how.get("weighted") else np.ones(n)
    model = model.set_params(random_state=5)
    oracles = oracles_of(model, 3)
    labels = list(dict.fromkeys(y.tolist()))
    for oracle in oracles:
        oracle.names = labels
    for t in range(n):
        learn_both(model, All(oracles), t, X[t : t + 1], y[t], labels.index(y[t]), given[t])
        if len(oracles[0].eta) == 0 or t % 3:
            continue
        order = np.argsort(np.argsort(labels[: len(oracles[0].eta)]))
        for state, oracle in zip(model.mixture_.networks, oracles, strict=True):
            net = Network(state)
            agree(net.encoder[:3, : net.n_hidden], oracle.W[:3], f"encoder at {t}")
            fields = net.field_weights[:3, :, : net.n_hidden]
            agree(fields.reshape(-1, net.n_hidden), oracle.W[3:], f"weights of fields at {t}")
            agree(net.output[: net.n_classes, : net.n_hidden].T, oracle.output, f"output at {t}")
            held = [True, oracle.options.averaging > 0, oracle.neighbours > 0]
            agree(net.losses[held], oracle.losses[held], f"losses at {t}")
        agree(model.predict_proba(X[t : t + 1])[0][order], mixed(oracles, X[t]), f"predict_proba at {t}")
    for k, oracle in enumerate(oracles):
        assert oracle.told([event._replace(network=0) for event in model.events_ if event.network == k])
    assert max(len(oracle.remembered) for oracle in oracles) > 40  # the rings are full and have turned


@needs_jit
@pytest.mark.parametrize("missing", [0.0, 0.004])
@pytest.mark.parametrize("renewing", [(4, 1, 224, 3, 8, 1), (4, 1, 200, 0, 0, 1)])
def test_other_units_and_skewed_features_are_seen_as_the_oracle_sees_them(renewing, missing):
    X, y = stream(760, 4, 2, 0.0, seed=3)
    X[:, 1] = np.exp(3 * X[:, 1])  # skewed
    X[:, 2] = np.round(np.exp(4 * X[:, 2]))  # so is this, and many of its values are the same
    X[260:, 0] = 300 * X[260:, 0] + 7
    X[480:, 3] = X[480:, 3] / 1000 - 2
    X[600:, 0] += 1e5
    X[np.random.default_rng(1).random(X.shape) < missing] = np.nan
    model = DEVDANEnsemble([(1,), renewing], estimator=DEVDAN(calibrate=False, learning_rate=0.01), random_state=5)
    oracles = oracles_of(model, 4)
    n_converted, was = 0, {}
    for t in range(len(X)):
        teach_all(model, oracles, X[t], y[t])
        n_converted += oracles[1].told_anew != was
        was = dict(oracles[1].told_anew)
        if t % 32 == 31:
            net = Network(model.mixture_.networks[1])
            kept = min(net.n_remembered, net.max_samples)
            expected = [oracles[1].at(place)[0] for place in range(kept)]
            np.testing.assert_allclose(net.remembered[:kept, :4], expected, rtol=1e-9, err_msg=f"memory at {t}")
            agree(model.predict_proba(X[t : t + 1])[0], mixed(oracles, X[t]), f"predict_proba at {t}")
    assert n_converted >= (2 if missing == 0.0 else 1)
    assert set(oracles[1].ranked) == ({1, 2} if renewing[4] else set())


@needs_jit
@pytest.mark.parametrize(("n_features", "n_asked"), [(10_000, 10), (9_091, 10), (50_000, 3)])
def test_of_many_features_fewer_samples_are_asked(n_features, n_asked):
    """But never fewer than those that vote. The nearest one has another label, and is a sample older than those."""
    for age in (n_asked - 1, n_asked):
        X, y = np.zeros((12, n_features)), np.zeros(12, int)
        X[:, 0] = np.linspace(0.5, 1, 12)
        X[11 - age, 0], y[11 - age] = 0.1, 1
        still = DEVDAN(calibrate=False, scaling=None, shuffle=False, generative=False, learning_rate=0.0)
        model = DEVDANEnsemble([(1, 0, 20, 3)], estimator=still, random_state=0).teach(X, y, classes=[0, 1])
        net = model.mixture_.nets[0]
        net.losses[:] = 5000.0, 5000.0, 0.0
        asked = np.zeros((1, n_features))
        expected = 1.25 if age < n_asked else 0.25
        assert model.predict_proba(asked)[0, 1] == pytest.approx(expected / 3.5)


def test_at_a_real_drift_a_network_forgets_what_it_remembers():
    X, y = stream(600, 3, 2, 0.0, seed=3)
    y[400:] = 1 - y[400:]
    model = DEVDANEnsemble(
        [(1,), (6, 1, 30, 3)], estimator=DEVDAN(calibrate=False, learning_rate=0.005), random_state=5
    )
    oracles = oracles_of(model, 3)
    n_remembered = []
    for t in range(600):
        teach_all(model, oracles, X[t], y[t])
        n_remembered.append(Network(model.mixture_.networks[1]).n_remembered)
        assert n_remembered[-1] == len(oracles[1].remembered)
        if t % 10 == 0:
            agree(model.predict_proba(X[t : t + 1])[0], mixed(oracles, X[t]), f"predict_proba at {t}")
    assert n_remembered[399] == 400
    assert min(n_remembered[400:]) == 1
    assert all(event.network == 0 for event in model.events_ if event.kind == "drift")  # it is told once


def test_a_chunk_is_judged_before_it_is_learned_and_counts_as_its_square_root():
    X, y = stream(145, 3, 2, 0.0, seed=3)
    model = DEVDANEnsemble(SMALL, estimator=DEVDAN(calibrate=False, shuffle=False, interleave=True), random_state=5)
    oracles = oracles_of(model, 3)
    for start in range(0, 145, 29):
        rows, labels = X[start : start + 29], y[start : start + 29]
        model.partial_fit(rows, labels, classes=[0, 1])
        for oracle in oracles:
            for k, (row, label) in enumerate(zip(rows, labels, strict=True)):
                oracle.observe(row)
                if k == 0:
                    oracle.judge(rows, labels)
                if len(oracle.eta) == 0:
                    oracle.know(1)  # both classes were named in advance
                oracle.learn_label(row, label)
        agree(model.predict_proba(X[:1])[0], mixed(oracles, X[0]), f"after {start}")


def test_what_is_no_list_of_scales_is_refused():
    assert is_scales(SCALES)
    assert is_scales([(1,), [3, np.int64(2), 10], (1, 0, 5, 64), (1, 0, 5, 0, 2), (1, 0, 5, 0, 2, 1)])
    for value in (
        [],
        "1",
        [1],
        [()],
        [(0,)],
        [(1, 1)],
        [(1, 0, 0, 5)],
        [(1, 0, 5, 65)],
        [(1.5,)],
        [(1, 2, 3, 4, 5, 2)],
        [(1, 0, 0, 0, 0, 1)],
        [(1, 2, 3, 4, 5, 1, 0)],
        [(1, 0, 0, 0, 8)],
        [(1, 0, 5, 0, 1)],
        [(1, 0, 5, 0, 1001)],
    ):
        assert not is_scales(value)
        with pytest.raises(ValueError, match="scales must be None or a list of"):
            DEVDANEnsemble(value).fit([[0.0], [1.0]], [0, 1])
    for member in (DEVDAN(n_hidden=2), DEVDAN(rehearse=1)):
        with pytest.raises(ValueError, match=r"estimator must leave (n_hidden|rehearse) to the scales"):
            DEVDANEnsemble(estimator=member).fit([[0.0], [1.0]], [0, 1])
