"""Ensembles of earlier versions, made by hand as those made them, predict what they did and learn on."""

import copy
import pickle

import numpy as np
import pytest

from devdan import DEVDAN, DEVDANEnsemble, ModelFileError, kernel
from devdan.kernel.state import check_state, resized, scratch_for
from devdan.model import modelfile
from devdan.streams import sea

CHUNKS = list(sea(1500, seed=3))
X, Y = CHUNKS[-1]
LAST = {2: "class_count", 3: "remembered"}  # the field before which the states of a format end
OPTIONS = {  # of the members, by format
    2: {"n_hidden": 3, "masking": 0.3},
    3: {"n_hidden": 2, "class_weight": {1: 2.0}},
}


def states(model):
    return [state.tobytes() for state in model._networks]


def made(member, n_visits=2):
    """An ensemble, its states as they were when each sample was visited twice, and the mean of what these predict."""
    model = DEVDANEnsemble([(member.get("n_hidden", 1),)] * 3, random_state=1)
    model.set_params(
        estimator=DEVDAN(calibrate=False, **{name: value for name, value in member.items() if name != "n_hidden"})
    )
    for chunk, labels in CHUNKS:
        model.partial_fit(chunk, labels)
    mean = np.zeros((len(X), 2))
    for k, (state, net) in enumerate(zip(model._networks, model._nets(), strict=True)):
        net.losses[:2] += 10.0 * k  # that one member did worse than another did not count
        kernel.predict_proba(state, scratch_for(state), X, mean, 1 / 3)
    old = [resized(state, hidden=64) for state in model._networks]  # they were rows of a matrix
    for net in map(kernel.Network, old):
        net.n_seen *= n_visits
        net.n_learned *= n_visits
        net.averaged_since = 1100 * n_visits
        net.company, net.renews = 0.0, n_visits  # in whose place that was
        net.losses[2] = 70.0  # of the weights and their averages together
    kernel.Network(old[0]).reserved_integers[:] = 1500, 1500
    return model, old, mean[:, model._classes.outputs]


def cut(state, version):
    return cut_at(state, LAST[version])


def cut_at(state, field):
    """A state as it was before there was this field."""
    return state[: kernel.Network.places(kernel.Network(state).sizes)[field][0]].copy()


def params(model, version):
    """The options as they were."""
    newer = {2: ("class_weight", "rehearse", "calibrate"), 3: ("rehearse", "calibrate")}[version]
    member = {name: value for name, value in model.estimator.get_params().items() if name not in newer}
    member["n_hidden"] = model.scales[0][0]
    return {"n": 3, "visits": 2.0, "n_jobs": 1, "random_state": 1, "estimator": member}


def saved(model, old, version, path, monkeypatch, **changes):
    model.save(path)
    header, _ = modelfile.read(path)
    given = params(model, version)
    if isinstance(given["estimator"].get("class_weight"), dict):
        given["estimator"]["class_weight"] = header["options"]["estimator"]["class_weight"]  # as pairs
    words = [cut(state, version) for state in old]
    monkeypatch.setattr(modelfile, "VERSION", version)
    header |= {"options": given | changes, "states": [len(state) for state in words]}
    modelfile.write(path, header, np.concatenate(words))
    monkeypatch.undo()


def pickled(model, old, version, with_estimator=True):
    before = DEVDANEnsemble.__new__(DEVDANEnsemble)
    given = params(model, version)
    member = DEVDAN(**given["estimator"])
    chosen = {name: getattr(member, name) for name in model._chosen if name in given["estimator"]}
    del member.rehearse, member.calibrate
    before.__dict__.update(given | {"estimator": member if with_estimator else None})
    before.__dict__.update({name: vars(model)[name] for name in ("_classes", "n_features_in_")})
    before.__dict__["_chosen"] = chosen | {"visits": 2.0, "n": 3, "n_jobs": 1}
    before.__dict__["_states"] = np.array([cut(state, version) for state in old])
    return pickle.dumps(before)


def check(again, mean, n_hidden, tmp_path):
    np.testing.assert_allclose(again.predict_proba(X), mean, rtol=0, atol=1e-14)
    np.testing.assert_allclose(again.shares_, 1 / 3, atol=1e-14)
    assert [list(scale) for scale in again.scales] == [[n_hidden]] * 3
    assert again.n_seen_ == 1500
    for net, state in zip(again._nets(), again._networks, strict=True):
        assert (net.n_seen, *net.n_learned, net.averaged_since) == (1500, 1500, 1500, 1100)
        assert not net.reserved_integers.any()
        assert net.renews == 0.0
        check_state(state)
    again.save(tmp_path / "again")
    twin = DEVDANEnsemble.load(tmp_path / "again")
    assert states(twin) == states(again)
    twin.set_params(**again.get_params(deep=False))  # means the same
    for chunk, labels in CHUNKS:
        again.partial_fit(chunk, labels)
        twin.partial_fit(chunk, labels)
    assert states(twin) == states(again)
    assert again.score(X, Y) > 0.85
    assert {int(net.n_learned[1]) for net in again._nets()} == {3000}


@pytest.mark.parametrize("version", LAST)
def test_a_file_predicts_what_it_did(version, tmp_path, monkeypatch):
    model, old, mean = made(OPTIONS[version])
    saved(model, old, version, tmp_path / "m", monkeypatch)
    again = DEVDANEnsemble.load(tmp_path / "m")
    assert again.estimator.get_params() == model.estimator.get_params() | {"rehearse": 0}
    check(again, mean, OPTIONS[version]["n_hidden"], tmp_path)


@pytest.mark.parametrize("version", LAST)
def test_a_pickle_predicts_what_it_did(version, tmp_path):
    model, old, mean = made(OPTIONS[version])
    again = pickle.loads(pickled(model, old, version))
    assert again.estimator.get_params() == model.estimator.get_params() | {"rehearse": 0}
    check(again, mean, OPTIONS[version]["n_hidden"], tmp_path)


def test_a_pickle_of_the_defaults_stays_one_of_the_defaults(tmp_path):
    model, old, mean = made({})
    again = pickle.loads(pickled(model, old, 3, with_estimator=False))
    assert again.estimator is None
    check(again, mean, 1, tmp_path)


def test_one_that_has_learned_nothing_yet():
    before = DEVDANEnsemble.__new__(DEVDANEnsemble)
    before.__dict__.update(n=4, visits=2.0, n_jobs=1, random_state=1, estimator=DEVDAN(n_hidden=3))
    again = pickle.loads(pickle.dumps(before))
    assert again.scales == [(3,)] * 4
    assert again.fit(X, Y).n_members_ == 4


def test_one_that_was_only_observed(tmp_path, monkeypatch):
    model = DEVDANEnsemble([(1,)] * 3, estimator=DEVDAN(), random_state=1).observe(X)
    old = copy.deepcopy(model._networks)
    kernel.Network(old[0]).reserved_integers[:] = len(X), 0
    saved(model, old, 3, tmp_path / "m", monkeypatch)
    again = DEVDANEnsemble.load(tmp_path / "m")
    assert [(net.n_seen, *net.n_learned) for net in again._nets()] == [(len(X), len(X), 0)] * 3
    assert again.teach(X, Y).score(X, Y) > 0.6


@pytest.mark.parametrize("n", [2, 10**12, "3", None, [3]])
def test_a_file_whose_members_are_not_as_many_as_it_says(n, tmp_path, monkeypatch):
    model, old, _ = made(OPTIONS[3])
    saved(model, old, 3, tmp_path / "m", monkeypatch, n=n)
    with pytest.raises(ModelFileError, match="its members are inconsistent"):
        DEVDANEnsemble.load(tmp_path / "m")


# --- Two networks, and six members, as versions before these had them by default ----------------------------------

SIX = [(1,), (3, 2, 10), (3, 5, 100), (4, 5, 500), (5, 20, 1000, 10), (3, 20, 5000)]  # with fewer units


@pytest.mark.parametrize("pickles", [False, True])
@pytest.mark.parametrize(
    "make", [lambda: DEVDAN(random_state=1), lambda: DEVDANEnsemble(SIX, random_state=1)], ids=["DEVDAN", "ensemble"]
)
def test_what_a_version_chose_by_default_stays_with_what_it_has_saved(make, pickles, tmp_path):
    model = make()
    for chunk, labels in CHUNKS:
        model.partial_fit(chunk, labels)
    for net in model._nets():
        net.renews = net.stays_within = 0.0
        if net.max_samples > 0:
            net.start = net.n_hidden + 1.0  # another number than today's
    words = [cut_at(state, "stays_within") for state in model._networks]
    if pickles:
        attributes = copy.deepcopy(model.__getstate__())
        if isinstance(model, DEVDANEnsemble):
            attributes["scales"] = attributes["_chosen"]["scales"] = None
            attributes["_networks"] = words
        else:
            attributes["_layers"], attributes["_rehearsed"] = words[:1], words[1:]
        again = type(model).__new__(type(model))
        again.__setstate__(attributes)
    else:
        model.save(tmp_path / "m")
        header, _ = modelfile.read(tmp_path / "m")
        if isinstance(model, DEVDANEnsemble):
            header["options"]["scales"] = None
        header["states"] = [len(state) for state in words]
        modelfile.write(tmp_path / "old", header, np.concatenate(words))
        again = type(model).load(tmp_path / "old")
    assert (again.predict_proba(X) == model.predict_proba(X)).all()
    assert [(net.start, net.renews, net.stays_within) for net in again._nets()] == [
        (net.start, 0.0, 0.0) for net in model._nets()
    ]
    for one in (model, again):
        one.partial_fit(X, Y)
    assert (again.predict_proba(X) == model.predict_proba(X)).all()
    again.save(tmp_path / "again")
    assert states(type(model).load(tmp_path / "again")) == states(again)
