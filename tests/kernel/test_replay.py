"""Networks of both kinds agree with the oracle, each with its replays and its buffer, and so does their mixture.

Skewed features: see the second part.
"""

import numpy as np
import pytest
from naive import Naive
from numba import njit
from oracle import agree, learn_both, stream
from sklearn.base import clone
from sklearn.utils import check_random_state

from devdan import DEVDAN, DEVDANEnsemble
from devdan.kernel import Network, Replaying, replaying, steps
from devdan.kernel.state import check_state
from devdan.model.recent import remembered_inputs
from devdan.model.scales import QUICK, REPLAYING

pytestmark = pytest.mark.uncompiled
SMALL = ((1,), (3, 2, 7), (2, 0, 20), (4, 3, 40, 5), (5, 2, 30, 4))
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
    "rare": (DEVDANEnsemble(SMALL, estimator=RAW), {"rare": 0.1}),
    "rare, balanced": (
        DEVDANEnsemble(SMALL, estimator=DEVDAN(calibrate=False, class_weight="balanced")),
        {"rare": 0.1},
    ),
    "labels swapped": (DEVDANEnsemble(SMALL, estimator=DEVDAN(calibrate=False, learning_rate=0.1)), {"swapped": 90}),
    "outliers": (DEVDANEnsemble(SMALL, estimator=RAW), {"outliers": 40.0}),
}


def oracles_of(model, n_features):
    """An oracle for each network."""
    scales = (
        model._scales() if isinstance(model, DEVDANEnsemble) else [QUICK, REPLAYING._replace(replays=model.rehearse)]
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
    X[5::19] *= how.get("outliers", 1.0)
    y[how.get("swapped", n) :] = 2 - y[how.get("swapped", n) :]
    y[np.random.default_rng(6).random(n) > how.get("rare", 1.0)] = 0
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
            if oracle.fields:
                assert not oracle.W[3:, : -net.n_field_units].any()
                fields = net.field_weights[:3].reshape(-1, net.n_field_units)
                agree(fields, oracle.W[3:, -net.n_field_units :], f"weights of fields at {t}")
            agree(net.output[: net.n_classes, : net.n_hidden].T, oracle.output, f"output at {t}")
            held = [True, oracle.options.averaging > 0]
            agree(net.losses[held], oracle.losses[held], f"losses at {t}")
        agree(model.predict_proba(X[t : t + 1])[0][order], mixed(oracles, X[t]), f"predict_proba at {t}")
    for k, oracle in enumerate(oracles):
        assert oracle.told([event._replace(network=0) for event in model.events_ if event.network == k])
    assert max(len(oracle.buffer) for oracle in oracles) > 40  # the rings are full and have turned


def n_drawn(y, **options):
    """How many random numbers a network that replays has drawn for each label after the first 200."""
    X = np.random.default_rng(1).normal(size=(len(y), 3))
    model = DEVDAN(random_state=0, shuffle=False, **options).partial_fit(X[:200], y[:200], classes=[0, 1])
    net = Network(model.mixture_.networks[1])
    before = int(net.random[0])
    model.partial_fit(X[200:], y[200:])
    steps = (int(net.random[0]) - before) * pow(0x9E3779B97F4A7C15, -1, 2**64)  # of the generator
    return steps % 2**64 / (len(y) - 200)


def test_samples_are_drawn_as_ever_where_no_class_is_rare():
    """One number for each replay; so streams without a rare class are learned as if there were no other draws."""
    y = np.arange(600) % 10
    assert n_drawn(np.where(y < 5, 0, 1)) == n_drawn(np.where(y == 0, 1, 0)) == REPLAYING.replays
    assert n_drawn(np.where(np.arange(600) % 25 == 0, 1, 0)) > 2 * REPLAYING.replays
    assert n_drawn(np.where(y < 5, 0, 1), class_weight={1: 20.0}) > 2 * REPLAYING.replays


@pytest.mark.parametrize(("option", "weight"), [(None, 1.0), ("balanced", 39.0), ({1: 5.0}, 5.0)])
def test_steps_add_up_to_the_weights_of_the_classes_and_none_is_long(option, weight):
    """Rare samples are drawn more often, with steps as much shorter: each class steps as far as its weights say."""
    y = (np.arange(1000) % 40 == 0).astype(int)
    X = np.random.default_rng(1).normal(size=(1000, 3))
    model = DEVDAN(random_state=0, class_weight=option).partial_fit(X, y)
    net = Network(model.mixture_.networks[1])
    plan = njit(lambda state: replaying.plan_draws(Replaying(state), steps.evenness(Replaying(state))))
    draw = njit(lambda state, draws: replaying.draw(Replaying(state), draws))
    draws = plan(model.mixture_.networks[1])
    places, lengths = np.array([draw(model.mixture_.networks[1], draws) for _ in range(20_000)]).T
    is_rare = net.buffer_label[places.astype(int)] == model.mixture_.classes.outputs[1]
    assert is_rare.mean() > 3 / 40
    assert lengths[is_rare].sum() / lengths[~is_rare].sum() == pytest.approx(weight / 39, rel=0.1)
    assert lengths.max() < 2.5


@pytest.mark.parametrize("case", ["DEVDAN", "missing values", "momentum, no averages", "balanced"])
def test_labels_that_are_taken_back_leave_buffers_and_counts(case):
    """Some are taught again with another label, some are not; of some, the sample is no longer in the buffer."""
    model, how = CASES[case]
    n, source = 160, np.random.default_rng(8)
    X, y = stream(n, 3, 3, how.get("missing", 0.0), seed=3)
    y[:3] = 0, 1, 2
    model = clone(model).set_params(random_state=5)
    oracles = oracles_of(model, 3)
    taught = {}
    for t in range(n):
        model.partial_fit(X[t : t + 1], [y[t]])
        taught[t] = y[t]
        for oracle in oracles:
            oracle.observe(X[t])
            oracle.teach(X[t], y[t])
        if t % 3 == 2:
            k = source.choice([k for k in taught if k > t - 60])
            model.forget(X[k : k + 1], [taught[k]])
            for oracle in oracles:
                oracle.withdraw(X[k], taught[k])
            taught.pop(k)
            if t % 2:
                taught[k] = (y[k] + 1) % 3
                model.teach(X[k : k + 1], [taught[k]])
                for oracle in oracles:
                    oracle.teach(X[k], taught[k])
        if t % 4 == 0:
            agree(model.predict_proba(X[t : t + 1])[0][: len(oracles[0].eta)], mixed(oracles, X[t]), f"at {t}")
    n_empty = 0
    assert model.mixture_.n_taught == len(taught) == oracles[0].taught
    for state, oracle in zip(model.mixture_.networks, oracles, strict=True):
        check_state(state)
        if oracle.reach:
            net = Network(state)
            kept = [oracle.at(place) for place in range(min(len(oracle.buffer), oracle.reach))]
            agree(net.buffer_weight[: len(kept)], np.array([weight for *_, weight in kept], float), "buffer")
            n_empty += (net.buffer_weight[: len(kept)] == 0).sum()
    assert n_empty > 3


def test_what_is_forgotten_is_in_no_buffer():
    """Also what was observed and has no label yet, and rows from before a column came, which lack its inputs."""
    rows = [{"x": float(k % 50), "city": ("Bonn", "Köln")[k % 2]} for k in range(300)]
    model = DEVDAN(random_state=3).observe(rows)
    for k, one in enumerate(rows[:200]):
        model.teach([one], [k % 3])
    later = [{"x": float(k), "city": "Rome"} for k in range(50)]
    model.observe(later).teach(later, [0] * 50)
    net = Network(model.mixture_.networks[1])

    def n_like(x, labels):
        n_labelled = min(net.n_stored, net.max_samples)
        places = np.arange(n_labelled) if labels else np.arange(n_labelled, net.max_samples)
        return int((net.buffer[places, 0] == x).sum())

    assert n_like(7.0, labels=True) == 5
    assert n_like(7.0, labels=False) > 0
    model.forget([rows[7]], [7 % 3])
    assert n_like(7.0, labels=True) == 4
    model.forget([rows[7]])
    assert n_like(7.0, labels=True) == 4
    assert n_like(7.0, labels=False) == 1, "that with Rome"
    model.forget(later[7:8]).forget(later[7:8], [0])
    assert n_like(7.0, labels=False) == 0
    assert n_like(7.0, labels=True) == 3
    assert (remembered_inputs(net)[:, 0] == 7.0).sum() == 3
    with pytest.raises(ValueError, match="y must hold classes that were taught, got 9"):
        model.forget([rows[7]], [9])


def test_at_a_real_drift_a_network_forgets_its_buffer():
    X, y = stream(600, 3, 2, 0.0, seed=3)
    y[400:] = 1 - y[400:]
    model = DEVDANEnsemble([(1,), (6, 1, 30)], estimator=DEVDAN(calibrate=False, learning_rate=0.005), random_state=5)
    oracles = oracles_of(model, 3)
    n_stored = []
    for t in range(600):
        teach_all(model, oracles, X[t], y[t])
        n_stored.append(Network(model.mixture_.networks[1]).n_stored)
        assert n_stored[-1] == len(oracles[1].buffer)
        if t % 10 == 0:
            agree(model.predict_proba(X[t : t + 1])[0], mixed(oracles, X[t]), f"predict_proba at {t}")
    assert n_stored[399] == 400
    assert min(n_stored[400:]) == 1
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


# --- Skewed features ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", [0.0, 0.1])
@pytest.mark.parametrize("scale", [(4, 1, 224, 8), (4, 1, 60, 8), (4, 1, 200)])
def test_fields_of_skewed_features_are_where_the_oracle_places_them(scale, missing):
    X, y = stream(500, 4, 2, 0.0, seed=3)
    X[:, 1] = np.exp(3 * X[:, 1])  # skewed
    X[:, 2] = np.round(np.exp(4 * X[:, 2]))  # so is this, and many of its values are the same
    X[np.random.default_rng(1).random(X.shape) < missing] = np.nan
    X[300:310, 1] = 1e200
    model = DEVDANEnsemble([(1,), scale], estimator=DEVDAN(calibrate=False, learning_rate=0.01), random_state=5)
    oracles = oracles_of(model, 4)
    for t in range(len(X)):
        teach_all(model, oracles, X[t], y[t])
        if t % 32 == 31:
            net = Network(model.mixture_.networks[1])
            if net.n_fields > 0:
                expected = np.array([oracles[1].ranked.get(j, np.zeros(net.n_fields)) for j in range(4)])
                np.testing.assert_allclose(net.field_places[:4], expected, rtol=1e-12)
            agree(model.predict_proba(X[t : t + 1])[0], mixed(oracles, X[t]), f"predict_proba at {t}")
    assert set(oracles[1].ranked) == ({1, 2} if scale == (4, 1, 224, 8) else set())


def learned(X, y, chunk=50):
    """A model, and the share of right predictions in each chunk, made before it was learned."""
    model, right = DEVDANEnsemble([(16, 3, 500, 10)], random_state=1), []
    for start in range(0, len(X), chunk):
        rows, labels = X[start : start + chunk], y[start : start + chunk]
        right.append(np.mean(model.predict(rows) == labels) if start else 0.5)
        model.partial_fit(rows, labels)
    return model, np.array(right)


def squares(n, seed=0):
    """Four classes by the signs of two features, and one that tells nothing."""
    X = np.random.default_rng(seed).normal(size=(n, 3))
    return X, 2 * (X[:, 0] > 0) + (X[:, 1] > 0)


def test_skewed_features_are_told_apart():
    X, y = squares(3000)
    assert learned(np.exp(3 * X), y)[1][20:].mean() > 0.9


def test_what_is_even_or_has_few_values_is_not_skewed():
    X, y = squares(1000)
    X[:, 0] = np.random.default_rng(1).random(1000)
    X[:, 1] = X[:, 1] > 1
    model, _ = learned(X, y)
    assert not Network(model.mixture_.networks[0]).field_places.any()


def test_values_as_large_as_numbers_can_be():
    X, y = squares(1000)
    X[400:, 0] *= 1e200
    X[700:, 0] *= 1e-300
    X[:, 1] = np.exp(60 * X[:, 1]) * 1e90
    model, _ = learned(X, y)
    check_state(model.mixture_.networks[0])
    assert np.isfinite(model.predict_proba(X)).all()


def test_fields_out_of_order_are_refused():
    X, y = squares(300)
    model = DEVDAN(random_state=0).partial_fit(np.exp(4 * X), y)
    state = model.mixture_.networks[1]
    check_state(state)
    net = Network(state)
    assert net.field_places[0, -1] > net.field_places[0, 0]
    net.field_places[0, 3] = net.field_places[0, -1] + 1.0
    with pytest.raises(ValueError, match="fields are out of order"):
        check_state(state)
