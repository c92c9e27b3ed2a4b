"""Models in joblib's workers, which get large arrays in read-only memory."""

import joblib
import numpy as np
import pytest
from joblib import Parallel, delayed
from networks import SMALL, words

from devdan import DEVDAN, DEVDANEnsemble
from devdan.bench import PClass, PENsemble, PENsemblePlus
from devdan.model.online import OnlineMixture
from devdan.streams import sea

(X, Y), (MORE, LABELS) = list(sea(1000))


@pytest.mark.parametrize(
    "model",
    [
        DEVDAN(random_state=0),
        DEVDANEnsemble(SMALL, random_state=0),
        PClass(),
        PENsemble(random_state=0),
        PENsemblePlus(random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_model_in_read_only_memory_goes_on_learning(model, tmp_path):
    joblib.dump(model.partial_fit(X, Y), tmp_path / "model")
    shared = joblib.load(tmp_path / "model", mmap_mode="r")
    np.testing.assert_array_equal(shared.predict_proba(MORE), model.predict_proba(MORE))
    for one in (model, shared):
        one.partial_fit(MORE, LABELS)
    np.testing.assert_array_equal(shared.predict_proba(MORE), model.predict_proba(MORE))


def test_a_network_of_the_adapters_in_read_only_memory_goes_on_learning(tmp_path):
    network = OnlineMixture()
    network.begin(3, 1, 2)
    network.learn_rows(X, Y.astype(np.int64))
    joblib.dump(network, tmp_path / "network")
    shared = joblib.load(tmp_path / "network", mmap_mode="r")
    for one in (network, shared):
        one.row[:] = MORE[:1]
        one.learn(one.row, 1)
        one.observe(MORE[1:2])
        one.learn_rows(MORE, LABELS.astype(np.int64))
    assert words(shared) == words(network)


def test_a_large_model_learns_in_a_worker():
    model = DEVDAN(n_hidden=10_000, grow=False, prune=False, random_state=0).partial_fit(X[:20], Y[:20])
    assert model.mixture_.networks[0].nbytes > 1_000_000  # from where on joblib does not copy
    learned = Parallel(n_jobs=2)(delayed(model.partial_fit)(MORE[:20], LABELS[:20]) for _ in range(2))
    expected = model.partial_fit(MORE[:20], LABELS[:20]).predict_proba(X)
    for one in learned:
        np.testing.assert_array_equal(one.predict_proba(X), expected)
