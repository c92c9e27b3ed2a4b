"""Networks that meet one sample at a time: they find room as they go, and learn what DEVDAN and its ensemble learn."""

import numpy as np
import pytest
from networks import SMALL
from sklearn.base import clone

from devdan import DEVDAN, DEVDANEnsemble, kernel
from devdan.model import online, scales
from devdan.model.online import OnlineMixture
from devdan.model.scales import REPLAYING, Scale
from devdan.streams import sea

X, Y = next(iter(sea(3000, chunk=3000, seed=1)))


CHUNKED = DEVDAN(shuffle=False, interleave=True, random_state=1)
MODELS = {
    "one network": (OnlineMixture(rehearse=0), clone(CHUNKED).set_params(rehearse=0)),
    "replay": (OnlineMixture(), CHUNKED),
    "ensemble": (
        OnlineMixture([Scale(*scale) for scale in SMALL]),
        DEVDANEnsemble(SMALL, estimator=CHUNKED, random_state=1),
    ),
}


def begun(n_named=0, **options):
    network = OnlineMixture(**options)
    network.begin(3, 1, n_named)
    return network


@pytest.mark.parametrize("case", MODELS)
def test_it_is_devdan_on_chunks_of_one(case):
    network, model = MODELS[case]
    network.begin(3, 1, 2)
    for t in range(1000):
        row = X[t : t + 1]
        if t % 3 == 0:
            network.observe(row)
            model.observe(row)
        else:
            network.learn(row, int(Y[t]))
            model.partial_fit(row, Y[t : t + 1], classes=[0, 1])
    for one, state in zip(network.mixture.networks, model.mixture_.networks, strict=True):
        assert one[:24].tobytes() == state[:24].tobytes()  # sizes and counters
    assert network.n_taught == 666
    assert network.predict(X, 2) == pytest.approx(model.predict_proba(X), abs=1e-9)


@pytest.mark.parametrize("cut", [1, 700, 3000])
def test_room_for_hidden_units_is_found_when_it_runs_out(cut, monkeypatch):
    """However many rows are learned at once; what has been learned does not show where room was short."""
    ample = begun(2)
    ample.learn_rows(X, Y)
    monkeypatch.setattr(scales, "room_for", lambda n_hidden: n_hidden + 2)
    tight = begun(2)
    assert [net.max_hidden for net in tight.mixture.nets] == [3, REPLAYING.n_hidden]
    for start in range(0, len(X), cut):
        tight.learn_rows(X[start : start + cut], Y[start : start + cut])
    assert tight.mixture.nets[0].max_hidden > 3
    assert tight.predict(X, 2) == pytest.approx(ample.predict(X, 2), abs=1e-9)


def test_room_is_found_while_observing(monkeypatch):
    monkeypatch.setattr(scales, "room_for", lambda n_hidden: n_hidden + 2)
    network = begun(n_hidden=4, generative_learning_rate=0.01)
    for row in np.split(X, len(X)):
        network.observe(row)
    assert [net.n_learned[kernel.GENERATIVE] for net in network.mixture.nets] == [len(X), len(X)]
    assert network.mixture.nets[0].max_hidden > 6


def test_options_are_checked_before_it_begins():
    with pytest.raises(ValueError, match="masking must be in"):
        OnlineMixture(masking=1.0)


def test_infinity_is_refused_and_nan_is_not():
    rows = np.array([[1.0, np.nan]])
    assert online.finite(rows) is rows
    with pytest.raises(ValueError, match="infinity"):
        online.finite(np.array([[1.0, -np.inf]]))
