"""An ensemble: members that each learn from their own draw of the stream, and are replaced after a drift."""

import pickle

import numpy as np
import pytest

from devdan import DEVDAN, DEVDANEnsemble, ModelFileError
from devdan.model import kernel, modelfile
from devdan.model.kernel import Network
from devdan.model.state import new_state, scratch_for
from devdan.model.weighing import NO_WEIGHTS
from devdan.streams import sea


def learned(**options):
    model = DEVDANEnsemble(**{"n": 4, "random_state": 0, **options})
    for X, y in sea(6000):
        model.partial_fit(X, y)
    return model


def states(model):
    return model._states.tobytes()


X, Y = next(iter(sea(500, seed=9)))


def test_the_number_of_threads_does_not_matter():
    models = [learned(n_jobs=n_jobs) for n_jobs in (1, 3)]
    assert states(models[0]) == states(models[1])
    np.testing.assert_array_equal(*(model.predict_proba(np.tile(X, (10, 1))) for model in models))


def test_a_member_learns_what_a_network_learns_that_visits_the_same_samples():
    model = learned()
    before = model._states.copy()
    model.partial_fit(X, Y)
    codes = np.searchsorted(model.classes_, Y)
    outputs = model._classes.outputs[codes]
    compared = 0
    for state, after in zip(before, model._states, strict=True):
        if kernel.Network(after).n_seen < kernel.Network(state).n_seen:
            continue  # it was replaced
        visits = np.empty((1, len(X)), np.int64)
        kernel.bag(state[None], 1, visits)
        order = np.repeat(np.arange(len(X)), visits[0])
        for phase in range(2):
            kernel.shuffle(kernel.Network(state).random, order)
            assert kernel.learn(state, scratch_for(state), X, outputs, NO_WEIGHTS, order, 0, phase, phase) == len(order)
        words = slice(24, None)  # the words before also counts what came to the ensemble
        # Compiled into another function, the same sums may be rounded otherwise.
        np.testing.assert_allclose(state[words], after[words], rtol=0, atol=1e-10)
        compared += 1
    assert compared >= 3


@pytest.mark.parametrize("visits", [0.5, 2.0, 6.0])
def test_visits_are_poisson_draws(visits):
    state = new_state(1, 16, 2, 1, seed=1)
    kernel.Network(state).visits = visits
    drawn = np.empty((1, 40_000), np.int64)
    kernel.bag(state[None], 0, drawn)
    assert drawn.mean() == pytest.approx(visits, abs=0.05)
    assert drawn.var() == pytest.approx(visits, abs=0.15)
    assert (drawn == 0).mean() == pytest.approx(np.exp(-visits), abs=0.01)


def test_it_predicts_the_mean_of_its_members():
    model = learned()
    each = np.zeros((len(model._states), len(X), 2))
    for state, out in zip(model._states, each, strict=True):
        kernel.predict_proba(state, scratch_for(state), X, out, 1.0)
    np.testing.assert_allclose(model.predict_proba(X), each.mean(axis=0)[:, model._classes.outputs], atol=1e-12)
    assert len({state.tobytes() for state in model._states}) == 4


def test_it_is_better_than_one():
    random = np.random.default_rng(0)
    rows = random.normal(size=(20_000, 5))
    labels = (rows[:, 0] * rows[:, 1] + rows[:, 2] * rows[:, 3] + 0.5 * random.normal(size=20_000) > 0).astype(int)

    def rate(model):
        right = []
        for start in range(0, 20_000, 500):
            part = slice(start, start + 500)
            right += [model.score(rows[part], labels[part])] if start > 0 else []
            model.partial_fit(rows[part], labels[part])
        return np.mean(right)

    assert rate(DEVDANEnsemble(random_state=0)) > rate(DEVDAN(random_state=0)) + 0.01


def test_a_member_is_replaced_after_a_drift_and_not_without_one():
    random = np.random.default_rng(1)
    rows = random.random((20_000, 3))
    labels = (rows[:, 0] > 0.5).astype(int)
    steady, turned = DEVDANEnsemble(n=4, random_state=0), DEVDANEnsemble(n=4, random_state=0)
    for start in range(0, 20_000, 500):
        part = slice(start, start + 500)
        steady.partial_fit(rows[part], labels[part])
        turned.partial_fit(rows[part], labels[part] if start < 10_000 else 1 - labels[part])
    replaced = [event for event in turned.events_ if event.kind == "replacement"]
    assert replaced
    assert all(event.sample >= 19_000 for event in replaced)  # twice 10,000 visits, more or less
    assert not [event for event in steady.events_ if event.kind == "replacement"]
    assert turned.score(rows, 1 - labels) > 0.95
    assert sum(turned.growths_.values()) >= sum(event.kind == "growth" for event in turned.events_)


def test_it_learns_sample_by_sample_and_from_samples_without_labels():
    model = DEVDANEnsemble(n=3, visits=0.5, random_state=0)
    model.observe(X[:1])
    for row, label in zip(X[:50], Y[:50], strict=True):
        model.partial_fit([row], [label])
    model.observe(X[50:60]).teach(X[50:55], Y[50:55])
    assert model.n_seen_ == 61
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    labels_only = DEVDANEnsemble(n=2, random_state=0).teach(X[:7], Y[:7])
    assert labels_only.n_seen_ == 7


def test_a_class_that_comes_later_and_units_that_find_no_room():
    model = learned(estimator=DEVDAN(n_hidden=15))
    model.partial_fit(X, Y + 5)
    assert model.classes_.tolist() == [0, 1, 5, 6]
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    assert model._first().max_hidden > 24


def test_it_is_saved_and_pickled_and_goes_on_bit_for_bit(tmp_path):
    model = learned(estimator=DEVDAN(masking=0.3))
    model.save(tmp_path / "m")
    copies = [DEVDANEnsemble.load(tmp_path / "m"), pickle.loads(pickle.dumps(model))]
    assert copies[0].estimator.masking == 0.3
    for each in (model, *copies):
        each.partial_fit(X, Y)
    assert states(copies[0]) == states(copies[1]) == states(model)
    assert copies[0].n_seen_ == 6500


def test_a_file_whose_members_do_not_make_an_ensemble(tmp_path):
    model = learned()
    model.save(tmp_path / "m")
    header, words = modelfile.read(tmp_path / "m")
    modelfile.write(tmp_path / "m", header | {"options": header["options"] | {"n": 5}}, words)
    with pytest.raises(ModelFileError, match="its members are inconsistent"):
        DEVDANEnsemble.load(tmp_path / "m")


def test_what_it_shows():
    model = learned()
    assert repr(model).startswith("<DEVDANEnsemble(n=4, random_state=0): 3 features, 4 members")
    assert model.n_members_ == 4
    assert model.n_seen_ == 6000
    assert {event.network for event in model.events_} == set(range(4))
    assert set(model.bias2_) == set(model.growths_) == {"generative", "discriminative"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n": 0}, "n must be an integer"),
        ({"n": 2.5}, "n must be an integer"),
        ({"visits": 0}, "visits must be greater than 0"),
        ({"visits": 10**400}, "visits must be greater than 0 and at most 700"),
        ({"n_jobs": 0}, "n_jobs must be an integer other than 0"),
        ({"n_jobs": "all"}, "n_jobs must be an integer other than 0"),
        ({"visits": np.nan}, "visits must be greater than 0"),
        ({"estimator": DEVDAN(n_layers=2)}, "estimator must be a DEVDAN of one layer"),
        ({"estimator": "DEVDAN"}, "estimator must be a DEVDAN"),
        ({"estimator": DEVDAN(masking=2)}, "masking must be"),
    ],
)
def test_options_out_of_range(options, message):
    with pytest.raises(ValueError, match=message):
        DEVDANEnsemble(**options).fit(X, Y)


def test_a_bad_option_says_so_and_does_no_harm():
    model = learned()
    before, predicted = states(model), model.predict_proba(X)
    for name, value in (("n_jobs", "all"), ("n", "many"), ("visits", None), ("estimator", 5)):
        with pytest.raises(ValueError, match=f"{name} must"):
            model.set_params(**{name: value}).partial_fit(np.tile(X, (10, 1)), np.tile(Y, 10))
        model.set_params(n_jobs=-1)
        np.testing.assert_array_equal(model.predict_proba(X), predicted)
        assert states(model) == before
        model.set_params(n=4, visits=2.0, estimator=None)


def test_a_field_of_all_members_at_once():
    model = DEVDANEnsemble(3, random_state=0).partial_fit(*next(iter(sea(300))))
    fields = {"n_drifts", "n_learned", "n_changes", "random"}
    for name in fields:
        found = Network.across(model._states, name)
        assert found.tolist() == [getattr(Network(state), name).tolist() for state in model._states]
    Network.across(model._states, "n_drifts")[1] = 5, 7
    assert Network(model._states[1]).n_drifts.tolist() == [5, 7]
    with pytest.raises(ValueError, match="depends on sizes"):
        Network.across(model._states, "output_bias")
