"""What samples and classes weigh in the loss: what weights do, what they leave alone, and what is refused."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from networks import SMALL, words

from devdan import DEVDAN, DEVDANEnsemble, ModelFileError, kernel
from devdan.kernel import Network
from devdan.kernel.state import check_state, resized
from devdan.kernel.steps import CLASS_HORIZON
from devdan.model import modelfile

MODELS = {
    "one": lambda **options: DEVDAN(random_state=0, **options),
    "momentum": lambda **options: DEVDAN(random_state=0, optimizer="momentum", learning_rate=0.015, **options),
    "interleaved": lambda **options: DEVDAN(random_state=0, interleave=True, **options),
    "ensemble": lambda **options: DEVDANEnsemble(SMALL, random_state=0, estimator=DEVDAN(**options)),
}
models = pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)


def rare(n_samples=4000, share=0.03, seed=0):
    """Two overlapping clouds, one of them rare."""
    random = np.random.default_rng(seed)
    y = (random.random(n_samples) < share).astype(int)
    return random.normal(size=(n_samples, 4)) + 1.2 * y[:, None], y


X, Y = rare()


def taught(model, X=X, y=Y, **more):
    for start in range(0, len(X), 200):
        part = slice(start, start + 200)
        model.partial_fit(X[part], y[part], **{name: values[part] for name, values in more.items()})
    return model


def states(model):
    return [state.tobytes() for state in model.mixture_.networks]


def recall(model):
    return (model.predict(X)[Y == 1] == 1).mean()


# --- Classes -----------------------------------------------------------------------------------------------------


@models
def test_a_rare_class_is_found_if_classes_are_balanced_or_it_is_given_a_weight(make):
    plain, balanced, given = (
        np.mean([recall(taught(make(class_weight=option).set_params(random_state=seed))) for seed in range(3)])
        for option in (None, "balanced", {1: 1 / 0.06, 0: 1 / 1.94})
    )
    assert min(balanced, given) > max(plain + 0.25, 0.6)


@models
def test_a_dict_of_ones_changes_nothing(make):
    plain = taught(make())
    for option in ({}, {0: 1, 1: 1.0}, {"no such class": 5}):
        model = taught(make(class_weight=option))
        np.testing.assert_array_equal(model.predict_proba(X), plain.predict_proba(X))


@models
def test_classes_have_their_weights_whenever_they_come_and_whatever_they_are_called(make):
    """Text and numbers, named in advance or not; the order of the outputs is the order of appearance."""
    X, y = rare(400, share=0.4)
    X, y = X[np.argsort(-y[:20]).tolist() + list(range(20, 400))], np.r_[np.sort(y[:20])[::-1], y[20:]]
    names = np.array(["dry", "rain"])
    by_number = taught(make(class_weight={1: 5.0}), X, y)
    by_name = taught(make(class_weight={"rain": 5}), X, names[y])
    assert states(by_number) == states(by_name)
    nets = [Network(state) for state in by_number.mixture_.networks]
    assert all(net.class_weight[:2].tolist() == [5.0, 1.0] for net in nets)
    by_number.partial_fit(X[:3], [7, 8, 9])  # more classes than there was room for
    nets = [Network(state) for state in by_number.mixture_.networks]
    assert all(net.class_weight[:5].tolist() == [5.0, 1.0, 1.0, 1.0, 1.0] for net in nets)


def test_weights_of_classes_may_change_at_any_time_even_within_the_dict():
    weights = {1: 2.0}
    model = DEVDAN(class_weight=weights, random_state=0).partial_fit(X[:500], Y[:500])
    other = copy.deepcopy(model)
    weights[1] = 30.0
    other.set_params(class_weight={1: 30.0})
    for each in (model, other):
        each.partial_fit(X[500:1000], Y[500:1000])
    assert states(model) == states(other)
    assert model.mixture_.nets[0].class_weight[model.mixture_.classes.outputs].tolist() == [1.0, 30.0]
    weights[1] = -1.0
    before = states(model)
    with pytest.raises(ValueError, match="class_weight must be None, 'balanced' or a dict of numbers"):
        model.partial_fit(X, Y)
    assert states(model) == before
    model.set_params(class_weight=None).partial_fit(X, Y)
    assert (model.mixture_.nets[0].class_weight == 0).all()


@pytest.mark.parametrize("wrong", [{1: 0}, {1: -1}, {1: np.nan}, {1: np.inf}, {1: 1e7}, {1: "2"}, {1: True}, "even", 5])
def test_what_is_no_weight_of_classes(wrong):
    for make in MODELS.values():
        with pytest.raises(
            ValueError, match=r"class_weight must be None, 'balanced' or a dict of numbers greater than 0"
        ):
            make(class_weight=wrong).partial_fit(X, Y)


def test_balanced_classes_weigh_what_their_counts_say():
    """Labels are counted before they are weighed, each as much as its sample weighs."""
    model = DEVDAN(class_weight="balanced", random_state=0, shuffle=False)
    y = np.array([0, 0, 0, 1, 0, 2])
    model.teach(np.eye(6), y, sample_weight=[1, 1, 2, 1, 1, 0.5])
    kept = 1 - 1 / CLASS_HORIZON
    expected = [kept**5 + kept**4 + 2 * kept**3 + kept, kept**2, 0.5]
    for net in model.mixture_.nets:  # what is replayed is not counted again
        np.testing.assert_allclose(net.class_count[:3], expected, rtol=1e-14)


def test_what_grows_out_of_a_network_knows_what_classes_weigh():
    model = DEVDAN(class_weight="balanced", random_state=0).partial_fit(X, Y)
    state = model.mixture_.networks[0]
    net = Network(state)
    net.class_weight[:2] = 3.0, 4.0
    other = Network(resized(state, 9, 40, 9))
    assert other.class_count[:2].tolist() == net.class_count[:2].tolist()
    assert other.class_weight[:2].tolist() == [3.0, 4.0]
    assert (other.class_weight[2:] == 0.0).all()
    assert other.weighing == kernel.BALANCED


def test_the_papers_model_weighs_all_alike():
    assert DEVDAN.paper().class_weight is None
    assert DEVDAN.paper().fit(np.clip(X, 0, 1), Y).mixture_.nets[0].weighing == kernel.ALIKE


# --- Samples -----------------------------------------------------------------------------------------------------


@models
def test_samples_that_all_weigh_1_are_learned_from_as_without_weights(make):
    plain, weighted = taught(make()), taught(make(), sample_weight=np.ones(len(X)))
    assert states(plain) == states(weighted)


@models
@pytest.mark.parametrize("verb", ["fit", "partial_fit", "teach"])
def test_a_sample_of_weight_0_is_as_if_it_were_not_there(make, verb):
    absent = np.arange(len(X)) % 3 == 0
    y = np.where(absent, 5, Y)  # nothing is learned from their labels, either
    without, weighted = make().observe(X), make().observe(X)
    getattr(without, verb)(X[~absent], Y[~absent])
    getattr(weighted, verb)(X, y, sample_weight=np.where(absent, 0, 1))
    assert weighted.classes_.tolist() == [0, 1]
    assert weighted.n_seen_ == without.n_seen_
    assert states(weighted) == states(without)


@pytest.mark.parametrize("options", [{"rehearse": 0}, {}, {"class_weight": "balanced"}], ids=str)
@pytest.mark.parametrize("weight", [5e-324, 1e-310, 1e-300])
def test_a_network_is_finite_after_weights_that_are_nearly_zero(weight, options):
    """Their inverse is not; it was a factor of shares of classes."""
    model = DEVDAN(random_state=0, **options).partial_fit(X[:400], Y[:400], sample_weight=np.full(400, weight))
    for state in model.mixture_.networks:
        check_state(state)
    assert np.isfinite(model.predict_proba(X[:5])).all()


@models
def test_where_no_sample_weighs_anything_nothing_is_learned(make):
    nothing = np.zeros(len(X))
    for verb in ("fit", "partial_fit", "teach"):
        model = make()
        with pytest.raises(ValueError, match="sample_weight must be greater than zero for at least one sample"):
            getattr(model, verb)(X, Y, sample_weight=nothing)
        assert not model.__sklearn_is_fitted__()
        assert not hasattr(model, "n_features_in_")
    model = make().partial_fit(X, Y)
    before = states(model)
    model.partial_fit(X, Y + 7, sample_weight=nothing).teach(X, Y + 7, sample_weight=nothing)
    assert states(model) == before
    assert model.classes_.tolist() == [0, 1]
    with pytest.raises(ValueError, match="sample_weight must be greater than zero"):
        model.fit(X, Y, sample_weight=nothing)
    assert states(model) == before


@models
def test_heavier_samples_count_for_more(make):
    plain, weighted = taught(make()), taught(make(), sample_weight=np.where(Y == 1, 15.0, 0.5))
    assert recall(weighted) > recall(plain) + 0.2


@models
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (np.ones(3), r"sample_weight must have one number per sample, 4000, got shape \(3,\)"),
        (np.ones((4000, 1)), r"got shape \(4000, 1\)"),
        (1.0, r"got shape \(\)"),
        (np.r_[-1.0, np.ones(3999)], r"sample_weight must be in \[0, 1,000,000\], got -1.0"),
        (np.r_[np.nan, np.ones(3999)], "got nan"),
        (np.r_[np.inf, np.ones(3999)], "got inf"),
        (np.r_[1e7, np.ones(3999)], "got 10000000.0"),
        (["a"] * 4000, "sample_weight must hold numbers"),
        ([None] * 4000, "sample_weight must hold numbers|got nan"),
        (np.ones(4000, complex), "sample_weight must hold numbers: their type is complex128"),
    ],
)
def test_what_are_no_weights_of_samples(make, wrong, message):
    model = make().partial_fit(X, Y)
    before = states(model)
    for verb in ("fit", "partial_fit", "teach"):
        with pytest.raises(ValueError, match=message):
            getattr(model, verb)(X, Y + 3, sample_weight=wrong)
    assert states(model) == before


def test_labels_must_be_as_many_as_samples_with_weights_too():
    with pytest.raises(ValueError, match="X and y must have the same number of samples, got 4000 and 3"):
        DEVDAN().fit(X, Y[:3], sample_weight=np.ones(len(X)))


def test_weights_come_in_any_form_and_are_left_as_they_are():
    weights = np.linspace(0.1, 2, len(X))
    weights.setflags(write=False)
    expected = states(DEVDAN(random_state=0).fit(X, Y, sample_weight=weights))
    for form in (list, tuple, pd.Series, lambda w: pd.Series(w, dtype="Float64"), lambda w: w.astype(object)):
        assert states(DEVDAN(random_state=0).fit(X, Y, sample_weight=form(weights))) == expected


@models
def test_the_heaviest_weights_overflow_nothing(make):
    model = make(class_weight={0: 1e6, 1: 1e-6})
    for _ in range(3):
        taught(model, sample_weight=np.where(np.arange(len(X)) % 2, 1e6, 1e-300))
    for state in model.mixture_.networks:
        check_state(state)
    assert np.isfinite(model.predict_proba(X)).all()


# --- Files and pickles -------------------------------------------------------------------------------------------


def test_a_state_of_another_length_is_refused(tmp_path):
    model = DEVDAN(random_state=0, rehearse=0).partial_fit(X, Y)
    model.save(tmp_path / "m")
    header, state = modelfile.read(tmp_path / "m")
    for length in (1, 60, len(state) - 1):
        modelfile.write(tmp_path / "cut", header | {"states": [length]}, state[:length])
        with pytest.raises(ModelFileError, match=r"the state's length does not match its sizes|has no header"):
            DEVDAN.load(tmp_path / "cut")


@models
def test_a_model_that_was_given_other_options_since_is_pickled_all_the_same(make):
    model = make().partial_fit(X, Y)
    options = {"scales": [(7,)]} if isinstance(model, DEVDANEnsemble) else {"rehearse": 0}
    model.set_params(**options)
    assert states(pickle.loads(pickle.dumps(model))) == states(model)


# --- One sample at a time ----------------------------------------------------------------------------------------


@pytest.fixture
def classifier():
    pytest.importorskip("river", reason="River is not installed")
    from devdan.river import DEVDANClassifier  # noqa: PLC0415 (an optional extra)

    return DEVDANClassifier


def dicts(X):
    return [dict(zip("abcd", row, strict=True)) for row in X.tolist()]


@pytest.mark.parametrize("option", [None, "balanced", {1: 9.0}])
def test_in_river_samples_have_weights_one_by_one_or_many_at_once(classifier, option):
    w = np.random.default_rng(1).choice([0.0, 0.5, 1.0, 4.0], size=600)
    one, many, without = (classifier(seed=1, class_weight=option) for _ in range(3))
    for x, label, weight in zip(dicts(X[:600]), Y[:600].tolist(), w.tolist(), strict=True):
        one.learn_one(x, label, weight)
        if weight > 0:
            without.learn_one(x, label, w=weight)
    frame = pd.DataFrame(X[:600], columns=list("abcd"))
    many.learn_many(frame, pd.Series(Y[:600]), pd.Series(w))
    assert words(one._online) == words(many._online) == words(without._online)
    halved, alike = (classifier(seed=1, class_weight=option) for _ in range(2))
    halved.learn_many(frame, pd.Series(Y[:600]), 0.5)
    alike.learn_many(frame, pd.Series(Y[:600]), np.full(600, 0.5))
    assert words(halved._online) == words(alike._online)


def test_in_river_a_sample_that_weighs_nothing_is_not_there(classifier):
    model = classifier(seed=1)
    model.learn_one({"a": 1.0}, "x", 0)
    model.learn_many(pd.DataFrame({"a": [1.0]}), pd.Series(["x"]), 0.0)
    assert model.predict_proba_one({"a": 1.0}) == {}
    assert not model._online.mixture


@pytest.mark.parametrize("w", [-1.0, np.nan, np.inf, 1e7, "2", None, [1.0]])
def test_in_river_what_is_no_weight_is_refused(classifier, w):
    model = classifier(seed=1)
    with pytest.raises(ValueError, match="w must"):
        model.learn_one({"a": 1.0}, "x", w)
    assert model._codes == {}


def test_in_river_classes_have_the_weights_of_the_dict_as_they_come(classifier):
    model = classifier(seed=1, class_weight={"b": 3.0, ("c", 1): 0.25})
    for label in ("a", "b", ("c", 1), None, "d"):
        model.learn_one({"x": 1.0}, label)
    for one in model._online.mixture.nets:
        assert one.class_weight[:5].tolist() == [1.0, 3.0, 0.25, 1.0, 1.0]
    assert model.clone().class_weight == model.class_weight


# --- Rare classes without weights --------------------------------------------------------------------------------


def test_steps_are_shorter_only_where_a_class_is_rare():
    """As long as ever while of two classes the rarer one has a fifth of the labels, and never less than a quarter."""

    def step(share):
        model = DEVDAN(random_state=0, rehearse=0, generative=False, grow=False, prune=False, averaging=0)
        model.fit(X[:100], np.arange(100) % 2)
        net = model.mixture_.nets[0]
        net.class_count[:2] = 1000 * share, 1000 * (1 - share)
        before = net.output_bias.copy()
        model.teach(X[100:101], [1])
        return np.abs(net.output_bias - before)[0]

    longest = step(0.5)
    assert step(0.21) == step(0.79) == longest
    assert step(0.1) == pytest.approx(longest * 0.1 * 0.9 / (0.2 * 0.8), rel=0.01)
    assert step(0.01) == step(0.001) == pytest.approx(longest / 4)
