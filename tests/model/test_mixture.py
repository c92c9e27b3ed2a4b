"""The mixture: all models predict through it, so that one row, many rows, copies and files cannot disagree."""

import copy
import pickle

import numpy as np
import pytest

from devdan import DEVDAN, DEVDANEnsemble
from devdan.model import modelfile, options
from devdan.model.classes import Classes
from devdan.model.mixture import Mixture, seeds_of
from devdan.model.scales import QUICK, REPLAYING
from devdan.streams import sea

X, Y = next(iter(sea(4000, chunk=4000, seed=1)))
SCALES = [QUICK, REPLAYING]


def mixture(**chosen):
    made = Mixture(
        options.defaults() | chosen, SCALES, n_inputs=3, seeds=seeds_of(np.random.RandomState(0), len(SCALES))
    )
    made.prepare(classes=Classes().encode(Y)[1])
    return made


def taught(made, rows=slice(None)):
    codes = made.classes.encode(Y)[0]
    for start in range(0, len(X[rows]), 100):
        part = slice(start, start + 100)
        made.learn(X[rows][part], codes[rows][part])
    return made


def bits(made):
    return [state.tobytes() for state in made.networks]


@pytest.fixture(scope="module")
def learned():
    made = taught(mixture())
    raw = made.copy()
    raw.configure(raw.options | {"calibrate": False})
    assert np.abs(made.predict(X) - raw.predict(X)).max() > 0.01, "calibration has not moved"
    return made


def test_one_row_is_predicted_as_among_many(learned):
    together = learned.predict_proba(X[:300])
    alone = np.vstack([learned.predict_proba(row[None]) for row in X[:300]])
    assert (alone == together).all()
    np.testing.assert_allclose(together.sum(axis=1), 1.0, rtol=1e-12)


def test_an_estimator_is_its_mixture():
    """With the same seed and portions, and each class in the order of the sorted ones."""
    model = DEVDAN(random_state=0)
    for start in range(0, len(X), 100):
        model.partial_fit(X[start : start + 100], Y[start : start + 100], classes=np.unique(Y))
    same = Mixture(
        model.mixture_.options, SCALES, n_inputs=3, n_outputs=2, seeds=seeds_of(np.random.RandomState(0), len(SCALES))
    )
    same.prepare(classes=model.mixture_.classes, n_named=2)
    assert bits(taught(same)) == bits(model.mixture_)
    assert (model.predict_proba(X) == same.predict_proba(X)).all()


@pytest.mark.parametrize("copied", [Mixture.copy, copy.deepcopy, lambda made: pickle.loads(pickle.dumps(made))])
def test_a_copy_goes_on_alike_and_apart(learned, copied):
    before = bits(learned)
    first, second = copied(learned), copied(learned)
    assert bits(taught(first, slice(0, 500))) == bits(taught(second, slice(0, 500)))
    assert bits(first) != before
    assert bits(learned) == before


def test_it_becomes_bytes_and_comes_back(learned):
    header = modelfile.header_of_mixture(learned)
    back = modelfile.mixture_of(header, [state.copy() for state in learned.networks], learned.options, SCALES)
    assert (back.predict_proba(X) == learned.predict_proba(X)).all()
    assert bits(taught(back, slice(0, 300))) == bits(taught(learned.copy(), slice(0, 300)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda made: made.networks.pop(), "networks are not of its scales"),
        (lambda made: setattr(made, "scales", SCALES[::-1]), "networks are not of its scales"),
        (lambda made: setattr(made.nets[1], "n_features", 2), "networks are inconsistent"),
        (lambda made: setattr(made, "classes", Classes()), "do not match"),
        (lambda made: made.options.update(masking=0.5), "options and states do not match"),
    ],
)
def test_parts_that_do_not_fit_together_are_refused(learned, change, message):
    made = learned.copy()
    made.check()
    change(made)
    with pytest.raises(ValueError, match=message):
        Mixture.of_networks(
            made.networks, made.options, made.scales, classes=made.classes, encoding=made.encoding
        ).check()


def test_the_number_of_threads_changes_nothing():
    one, two = (
        DEVDANEnsemble([(2, 5, 50), (3, 5, 200), (1,)], n_jobs=n, random_state=0).partial_fit(X, Y).mixture_
        for n in (1, 2)
    )
    assert bits(one) == bits(two)


def test_the_weights_of_networks_follow_their_losses(learned):
    weights = learned.network_weights
    assert sum(weights) == pytest.approx(1.0)
    worse = learned.copy()
    worse.nets[0].losses[:] += 10.0
    assert worse.network_weights[0] < weights[0]
    assert mixture().network_weights == [0.0, 0.0]
