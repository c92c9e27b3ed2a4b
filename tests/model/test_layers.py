"""A deep model: layers that learn by themselves, follow the units below them and are trusted by their losses."""

import pickle

import numpy as np
import pytest
from networks import plain

from devdan import DEVDAN, ModelFileError, kernel
from devdan.kernel.state import new_state, resized
from devdan.model import devdan, layers, mixture, modelfile, training
from devdan.model.scales import REHEARSED
from devdan.streams import sea


def parity(n_samples, seed=0, bits=6):
    """A stream that a single layer learns slowly: whether an odd number of features is high."""
    random = np.random.default_rng(seed)
    X = random.integers(0, 2, (n_samples, bits)) + 0.1 * random.normal(size=(n_samples, bits))
    return X, (X > 0.5).sum(axis=1) % 2


def rate(model, X, y, chunk=500):
    right = []
    for start in range(0, len(X), chunk):
        rows, labels = X[start : start + chunk], y[start : start + chunk]
        if start > 0:
            right.append(np.mean(model.predict(rows) == labels))
        model.partial_fit(rows, labels)
    return np.mean(right)


def sizes(model):
    """Features and hidden units of each layer."""
    return [(net.n_features, net.n_hidden) for net in map(kernel.Network, model._layers)]


@pytest.fixture
def deep():
    model = DEVDAN(n_layers=3, random_state=0)
    rate(model, *parity(3000))
    return model


@pytest.mark.parametrize("averaging", [0.0, 0.998])
def test_the_first_layer_learns_as_if_it_were_alone(averaging):
    X, y = parity(3000)
    alone, deep = (DEVDAN(n_layers=n, averaging=averaging, random_state=0) for n in (1, 3))
    for model in (alone, deep):
        rate(model, X, y)
    for name, weights in alone.weights_.items():
        np.testing.assert_array_equal(weights, deep.weights_[name])
    first, others = ([event for event in model.events_ if event.network == 0] for model in (alone, deep))
    assert first == others
    assert {event.network for event in deep.events_} >= {0, 1, 2}
    assert deep._rehearsed[0].tobytes() == alone._rehearsed[0].tobytes()  # it is none of the layers


def test_depth_pays_where_one_layer_cannot_bend_enough():
    X, y = parity(30_000)
    deep, flat = (rate(DEVDAN(n_layers=n, rehearse=0, random_state=0), X, y) for n in (2, 1))
    assert deep > flat + 0.1


def test_layers_that_do_not_help_do_no_harm():
    def on_sea(n_layers):
        model = DEVDAN(n_layers=n_layers, random_state=0)
        return np.mean([model.score(X, y) for X, y in sea(20_000) if model.partial_fit(X, y)])

    assert on_sea(3) > on_sea(1) - 0.005


def test_an_automatic_depth_is_one_more_than_is_needed():
    model = DEVDAN(n_layers="auto", rehearse=0, random_state=0)
    X, y = parity(30_000)
    rate(model, X, y, chunk=20)
    assert model.n_layers_ > 2  # the second is trusted
    plain = DEVDAN(n_layers="auto", rehearse=0, random_state=0)
    rate(plain, X, X[:, 0] > 0.5, chunk=20)
    assert plain.n_layers_ == 2


def test_each_layer_sees_the_stream_and_the_units_below(deep):
    (first, second, third) = sizes(deep)
    assert first[0] == 6
    assert second[0] == 6 + first[1]
    assert third[0] == 6 + second[1]
    rehearsed = kernel.Network(deep._rehearsed[0])
    assert rehearsed.n_features == 6
    assert deep.n_hidden_ == first[1] + second[1] + third[1] == deep.transform(parity(2)[0]).shape[1]
    assert deep.n_layers_ == 3
    half = rehearsed.n_hidden // 2  # of those that rehearse see through fields
    every = (first, second, third, (6, half), (6 * REHEARSED.fields, half))
    assert deep.n_parameters_ == sum(r * (n + 1) + 2 * (r + 1) for n, r in every) - 2  # one network has both halves


@pytest.mark.parametrize("n_events", [1000, 1])  # with the second, the events themselves are lost
def test_a_layer_follows_the_units_below_it(n_events):
    below = new_state(2, 16, 2, n_events, seed=1)
    net = kernel.Network(below)
    net.n_hidden = 3
    above = layers.new_layer([below], 2, 16, 0)
    kernel.Network(above).encoder[:5, 0] = [1, 2, 30, 40, 50]  # two features, units a, b and c
    kernel.Network(above).mean[:5] = [1, 2, 30, 40, 50]
    happened = [(kernel.PRUNING, 1), (kernel.GROWTH, 2), (kernel.GROWTH, 3), (kernel.PRUNING, 0)]  # c, d and e remain
    for kind, unit in happened:
        net.n_hidden += 1 if kind == kernel.GROWTH else -1
        plain(kernel.record)(net, 0, unit, kind, 1.0, 1.0)
    above = layers.followed(above, below, 2)
    net = kernel.Network(above)
    assert net.n_features == 5
    expected = [1, 2, 50, 0, 0] if n_events > 1 else [1, 2, 0, 0, 0]
    assert net.encoder[:5, 0].tolist() == net.mean[:5].tolist() == expected
    assert layers.followed(above, below, 2).tobytes() == above.tobytes()


def test_a_layer_finds_room_for_more_units_below_it():
    below = new_state(2, 64, 2, 100, seed=1)
    kernel.Network(below).n_hidden = 1
    above = layers.new_layer([below], 2, 16, 0)
    for unit in range(1, 70):
        plain(kernel.record)(kernel.Network(below), 0, unit, kernel.GROWTH, 1.0, 1.0)
    above = layers.followed(above, below, 2)
    assert kernel.Network(above).n_features == 72
    assert kernel.Network(above).max_features >= 72


@pytest.mark.parametrize("n_hidden", [15, 20, 200])
def test_each_layer_has_room_for_the_units_it_starts_from(n_hidden):
    still = {"grow": False, "prune": False, "generative": False, "learning_rate": 0}
    model = DEVDAN(n_layers=3, n_hidden=n_hidden, random_state=0, **still).fit(*parity(5))
    for state in model._layers:
        net = kernel.Network(state)
        n, r = net.n_features, net.n_hidden
        assert r == n_hidden
        assert (net.encoder[:n, :r] != 0).all()
        assert len(np.unique(net.encoder[:n, :r])) == n * r


@pytest.mark.parametrize("averaging", [0.0, 0.998])
def test_the_layer_with_the_least_loss_is_trusted_most(averaging):
    states = [new_state(2, 16, 2, 10, seed=k) for k in range(3)]
    for state, loss, n_classes in zip(states, (5.0, 2.0, 1.0), (2, 2, 0), strict=True):
        net = kernel.Network(state)
        net.averaging, net.n_classes, net.losses[:2] = averaging, n_classes, (loss, loss + 1.0)
    shares = mixture.shares(states)
    assert sum(shares) == pytest.approx(1)
    assert shares[2] == 0  # it was never taught
    assert shares[1] / shares[0] == pytest.approx(np.exp(kernel.CAUTION * 3))


def test_an_opinion_more_is_more_to_trust():
    """Two that lose as much as the one of another layer have twice its share."""
    states = [new_state(2, 16, 2, 10, seed=k) for k in range(2)]
    for state, averaging in zip(states, (0.0, 0.998), strict=True):
        net = kernel.Network(state)
        net.averaging, net.n_classes, net.losses[:2] = averaging, 2, 3.0
    assert list(mixture.shares(states)) == pytest.approx([1 / 3, 2 / 3])


def test_it_is_saved_and_pickled_with_all_its_layers(deep, tmp_path):
    deep.save(tmp_path / "m")
    X, y = parity(1000, seed=1)
    copies = [DEVDAN.load(tmp_path / "m"), pickle.loads(pickle.dumps(deep))]
    for model in (deep, *copies):
        model.partial_fit(X, y)
    for copy in copies:
        assert sizes(copy) == sizes(deep)
        np.testing.assert_array_equal(copy.predict_proba(X), deep.predict_proba(X))


def test_a_file_whose_layers_do_not_make_a_model(deep, tmp_path):
    deep.save(tmp_path / "m")
    header, words = modelfile.read(tmp_path / "m")
    options = header["options"] | {"n_layers": 2}
    modelfile.write(tmp_path / "fewer", header | {"options": options}, words)
    with pytest.raises(ModelFileError, match="more or fewer layers than n_layers and rehearse allow"):
        DEVDAN.load(tmp_path / "fewer")
    for layer, word in ((0, "n_events"), (1, "n_followed")):
        _, words = modelfile.read(tmp_path / "m")
        net = kernel.Network(words[sum(header["states"][:layer]) :])
        setattr(net, word, getattr(net, word) + 1)
        modelfile.write(tmp_path / "strangers", header, words)
        with pytest.raises(ModelFileError, match="its layers are inconsistent"):
            DEVDAN.load(tmp_path / "strangers")
    wider = [deep._networks[0], resized(deep._networks[1], 64, 64, 5), *deep._networks[2:]]
    modelfile.write(tmp_path / "wider", header | {"states": [len(state) for state in wider]}, np.concatenate(wider))
    with pytest.raises(ModelFileError, match="its layers are inconsistent"):
        DEVDAN.load(tmp_path / "wider")
    for order, message in (
        ((0, 2, 1, 3), "its layers are inconsistent"),
        ((0, 1, 3, 2), "its networks remember other samples than they rehearse"),
        ((3, 0, 1, 2), "its networks remember other samples than they rehearse"),
    ):
        turned = [deep._networks[k] for k in order]
        modelfile.write(
            tmp_path / "turned", header | {"states": [len(state) for state in turned]}, np.concatenate(turned)
        )
        with pytest.raises(ModelFileError, match=message):
            DEVDAN.load(tmp_path / "turned")


def test_a_file_whose_network_that_rehearses_does_not_fit_the_layers(deep, tmp_path):
    deep.save(tmp_path / "m")
    header, _ = modelfile.read(tmp_path / "m")
    for room in ({"classes": 5}, {"features": 9}):
        other = resized(deep._rehearsed[0], **room)
        kernel.Network(other).n_features = room.get("features", 6)
        networks = [*deep._layers, other]
        modelfile.write(
            tmp_path / "other", header | {"states": [len(state) for state in networks]}, np.concatenate(networks)
        )
        with pytest.raises(ModelFileError, match="its networks are inconsistent"):
            DEVDAN.load(tmp_path / "other")


def test_interrupted_between_layers_they_still_fit_each_other(deep, monkeypatch, tmp_path):
    calls = []

    def interrupted(state, inputs, *rest):
        calls.append(inputs.shape[1])
        if inputs.shape[1] > 6:  # the second layer
            raise KeyboardInterrupt
        return training.trained(state, inputs, *rest)

    monkeypatch.setattr(devdan, "trained", interrupted)
    X, y = parity(2000, seed=3)
    fresh = DEVDAN(n_layers=2, random_state=1)
    for model in (deep, fresh):
        with pytest.raises(KeyboardInterrupt):
            model.partial_fit(3 * X, y)
        assert calls[-3:-1] == [6, 6]  # what rehearses, and the first layer
    monkeypatch.undo()
    assert len(calls) == 6
    for model in (deep, fresh):
        for (_, hidden), (features, _) in zip(sizes(model), sizes(model)[1:], strict=False):
            assert features == 6 + hidden
        model.save(tmp_path / "m")
        DEVDAN.load(tmp_path / "m").partial_fit(X, y).predict(X)


def test_a_class_that_comes_later_reaches_all_layers(deep):
    X, y = parity(500)
    deep.partial_fit(X, y + 1)
    assert deep.classes_.tolist() == [0, 1, 2]
    np.testing.assert_allclose(deep.predict_proba(X).sum(axis=1), 1)


@pytest.mark.parametrize("n_layers", [0, -1, 1.5, "deep", None, True, 101, 10**400])
def test_a_depth_that_is_none(n_layers):
    with pytest.raises(ValueError, match="n_layers must be 'auto' or an integer from 1 to 100, got"):
        DEVDAN(n_layers=n_layers).fit(*parity(10))


def test_the_depth_stays_what_it_was(deep):
    with pytest.raises(ValueError, match="n_layers must stay 3"):
        deep.set_params(n_layers=2).partial_fit(*parity(10))


def test_a_layer_that_was_not_taught_is_not_asked_however_bad_the_others_are():
    states = [new_state(2, 16, 2, 10, seed=k) for k in range(2)]
    kernel.Network(states[0]).losses[:] = 4000.0
    kernel.Network(states[0]).n_classes = 2
    assert list(mixture.shares(states)) == [1.0, 0.0]
    kernel.Network(states[0]).n_classes = 0
    assert list(mixture.shares(states)) == [0.0, 0.0]
