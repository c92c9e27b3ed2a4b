"""An ensemble: members of several time scales that all learn from every sample, and are mixed by their losses."""

import copy
import pickle

import numpy as np
import pytest
from networks import SMALL

from devdan import DEVDAN, DEVDANEnsemble, ModelFileError, kernel
from devdan.kernel import Network
from devdan.kernel.state import resized, scratch_for
from devdan.model import modelfile, threads
from devdan.model.classes import NO_WEIGHTS
from devdan.model.scales import SCALES
from devdan.streams import sea


def learned(**options):
    model = DEVDANEnsemble(**{"scales": SMALL, "random_state": 0, **options})
    for X, y in sea(6000):
        model.partial_fit(X, y)
    return model


def states(model):
    return [state.tobytes() for state in model.mixture_.networks]


X, Y = next(iter(sea(500, seed=9)))


def test_the_number_of_threads_does_not_matter(monkeypatch):
    monkeypatch.setattr(threads.joblib, "cpu_count", lambda: 3)
    models = [learned(n_jobs=n_jobs) for n_jobs in (1, 3)]
    assert states(models[0]) == states(models[1])
    np.testing.assert_array_equal(*(model.predict_proba(np.tile(X, (10, 1))) for model in models))


@pytest.mark.parametrize("interleave", [False, True])
def test_each_member_learns_from_all_samples_by_itself(interleave):
    model = learned(estimator=DEVDAN(interleave=interleave, calibrate=False))
    before = copy.deepcopy(model.mixture_.networks)
    model.partial_fit(X, Y)
    outputs = model.mixture_.classes.outputs[np.searchsorted(model.classes_, Y)]
    for state, after in zip(before, model.mixture_.networks, strict=True):
        for first, last in [(0, 1)] if interleave else [(0, 0), (1, 1)]:
            order = np.arange(len(X))
            kernel.shuffle(Network(state).random, order)
            assert kernel.learn(
                state, scratch_for(state), X, outputs, NO_WEIGHTS, order, len(X), 0, first, last
            ) == len(X)
        assert state.tobytes() == after.tobytes()


def test_it_mixes_its_members_by_their_losses():
    model = learned(estimator=DEVDAN(calibrate=False))
    each = np.zeros((3, len(X), 2))
    for state, out in zip(model.mixture_.networks, each, strict=True):
        kernel.predict_proba(state, scratch_for(state), X, out, 1.0)
    trust = [np.exp(-0.4 * net.losses).sum() for net in model.mixture_.nets]
    np.testing.assert_allclose(model.network_weights_, trust / np.sum(trust), rtol=1e-12)
    mean = np.tensordot(model.network_weights_, each, axes=1)
    np.testing.assert_allclose(model.predict_proba(X), mean[:, model.mixture_.classes.outputs], atol=1e-12)
    assert len(set(states(model))) == 3


def rate(model, rows, labels, chunk=500):
    right = []
    for start in range(0, len(rows), chunk):
        part = slice(start, start + chunk)
        right += [model.score(rows[part], labels[part])] if start > 0 else []
        model.partial_fit(rows[part], labels[part])
    return np.mean(right)


def test_it_is_better_than_one():
    random = np.random.default_rng(0)
    rows = random.normal(size=(6000, 5))
    labels = (rows[:, 0] * rows[:, 1] + rows[:, 2] * rows[:, 3] + 0.5 * random.normal(size=6000) > 0).astype(int)
    assert rate(DEVDANEnsemble(random_state=0), rows, labels) > rate(DEVDAN(random_state=0), rows, labels) + 0.01


def test_the_scale_that_suits_the_stream_has_the_largest_weight():
    """What soon turns round is for those that look back a little, a circle that stays for those that look far."""
    random = np.random.default_rng(1)
    rows = random.normal(size=(3000, 2))
    circle = (rows**2).sum(axis=1) > 1.4
    turning = (rows[:, 0] > 0) ^ (np.arange(3000) // 100 % 2 == 1)
    weights = []
    for labels in (circle, turning):
        model = DEVDANEnsemble([(1,), (16, 2, 10), (32, 5, 1000)], random_state=0)
        rate(model, rows, labels, chunk=5)
        weights.append(model.network_weights_)
    assert [one.argmax() for one in weights] == [2, 1]
    assert weights[1][1] > 0.9


def test_it_learns_sample_by_sample_and_from_samples_without_labels():
    model = DEVDANEnsemble(SMALL, random_state=0)
    model.observe(X[:1])
    for row, label in zip(X[:50], Y[:50], strict=True):
        model.partial_fit([row], [label])
    model.observe(X[50:60]).teach(X[50:55], Y[50:55])
    assert model.n_seen_ == 61
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    labels_only = DEVDANEnsemble(SMALL, random_state=0).teach(X[:7], Y[:7])
    assert labels_only.n_seen_ == 7


def test_a_class_that_comes_later_and_units_that_find_no_room():
    model = learned(scales=[(15,), (15, 2, 20)])
    model.partial_fit(X, Y + 5)
    assert model.classes_.tolist() == [0, 1, 5, 6]
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    assert model.mixture_.nets[0].max_hidden > 24


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
    for scales in (
        SMALL[:2],
        [*SMALL, (1,)],
        SMALL[::-1],
        [(1,), (3, 2, 21), (4, 1, 30, 4)],
        [(1,), (3, 2, 20), (4, 1, 30, 2)],
    ):
        modelfile.write(tmp_path / "other", header | {"options": header["options"] | {"scales": scales}}, words)
        with pytest.raises(ModelFileError, match="its networks are not of its scales"):
            DEVDANEnsemble.load(tmp_path / "other")
    for scales in ([(1,), (3, 1, 20), (4, 1, 30, 4)], [(1,), (3, 2, 20), (4, 2, 30, 4)]):
        modelfile.write(tmp_path / "other", header | {"options": header["options"] | {"scales": scales}}, words)
        with pytest.raises(ModelFileError, match="options and states do not match"):
            DEVDANEnsemble.load(tmp_path / "other")
    for room in ({"classes": 5}, {"features": 7}):
        networks = [resized(model.mixture_.networks[0], **room), *model.mixture_.networks[1:]]
        Network(networks[0]).n_features = room.get("features", 3)
        sizes = [len(state) for state in networks]
        modelfile.write(tmp_path / "other", header | {"states": sizes, "n_features": 7}, np.concatenate(networks))
        with pytest.raises(ModelFileError, match=r"its networks are inconsistent|do not match"):
            DEVDANEnsemble.load(tmp_path / "other")


@pytest.mark.parametrize("n_done", range(6))
@pytest.mark.parametrize("n_samples", [20, 400])  # one after the other, and in threads
def test_an_interrupted_chunk_leaves_an_ensemble_that_works(n_done, n_samples, monkeypatch, tmp_path):
    """Ctrl-C between members or phases."""
    fresh, taught = DEVDANEnsemble(SMALL, random_state=0), learned()
    for model in (fresh, taught):
        visits = iter([kernel.learn] * n_done)
        monkeypatch.setattr(kernel, "learn", lambda *args, visits=visits: next(visits, interrupt)(*args))
        with pytest.raises(KeyboardInterrupt):
            model.partial_fit(X[:n_samples], Y[:n_samples] + 10)
        monkeypatch.undo()
        model.save(tmp_path / "m")
        for each in (model, DEVDANEnsemble.load(tmp_path / "m")):
            each.partial_fit(X, Y + 10)
            np.testing.assert_allclose(each.predict_proba(X).sum(axis=1), 1)


def interrupt(*args):
    raise KeyboardInterrupt


def test_what_it_shows():
    model = learned()
    assert repr(model).startswith(
        "<DEVDANEnsemble(random_state=0, scales=((1,), (3, 2, 20), (4, 1, 30, 4))): 3 features, 3 members with "
    )
    assert model.n_members_ == 3
    assert model.n_seen_ == 6000
    assert {event.network for event in learned(scales=[(1,)] * 3).events_} == set(range(3))
    assert model.n_events_ == len(model.events_) == model.mixture_.nets[0].n_events
    assert set(model.bias2_) == set(model.growths_) == {"generative", "discriminative"}
    assert DEVDANEnsemble(random_state=0).partial_fit(X, Y).n_members_ == len(SCALES)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scales": 0}, "scales must be None or a list of"),
        ({"scales": [(1, 2)]}, "scales must be None or a list of"),
        ({"n_jobs": 0}, "n_jobs must be an integer other than 0"),
        ({"n_jobs": "all"}, "n_jobs must be an integer other than 0"),
        ({"estimator": DEVDAN(initial_weights={})}, "estimator must be a DEVDAN without initial weights"),
        ({"estimator": "DEVDAN"}, "estimator must be a DEVDAN"),
        ({"estimator": DEVDAN(n_hidden=2)}, "estimator must leave n_hidden to the scales"),
        ({"estimator": DEVDAN(masking=2)}, "masking must be"),
    ],
)
def test_options_out_of_range(options, message):
    with pytest.raises(ValueError, match=message):
        DEVDANEnsemble(**options).fit(X, Y)


def test_a_bad_option_says_so_and_does_no_harm():
    model = learned()
    before, predicted = states(model), model.predict_proba(X)
    for name, value in (("n_jobs", "all"), ("scales", "many"), ("scales", [(1,)]), ("estimator", 5)):
        with pytest.raises(ValueError, match=f"{name} must"):
            model.set_params(**{name: value}).partial_fit(np.tile(X, (10, 1)), np.tile(Y, 10))
        model.set_params(n_jobs=-1)
        np.testing.assert_array_equal(model.predict_proba(X), predicted)
        assert states(model) == before
        model.set_params(scales=SMALL, estimator=None)
