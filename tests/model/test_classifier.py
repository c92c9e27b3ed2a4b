"""What the scikit-learn face promises."""

import copy
import itertools
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning, NotFittedError

from devdan import DEVDAN, DEVDANEnsemble, kernel
from devdan.kernel.state import PHASES, check_state, scratch_for
from devdan.model.scales import REPLAYING
from devdan.streams import sea


def chunk(n_samples=200, n_features=4, n_classes=3, seed=0):
    random = np.random.default_rng(seed)
    y = random.integers(n_classes, size=n_samples)
    return random.normal(size=(n_samples, n_features)) + 2 * y[:, None], y


def bits(model):
    return [state.tobytes() for state in model.mixture_.networks]


def learned(net):
    """What a network has learned, whatever room it has; the weights of predictors depend on the chunks."""
    n, r, m = net.n_features, net.n_hidden, net.n_classes
    found = [net.encoder[:n, :r], net.encoder_bias[:r], net.output[:m, :r], net.output_bias[:m]]
    if isinstance(net, kernel.Replaying):
        kept = min(net.n_stored, net.max_samples)
        found += [net.field_weights[:n], net.buffer[:kept, :n], net.buffer_label[:kept]]
    else:
        found += [net.decoder_bias[:n]]
    return [array.tobytes() for array in found]


def same(one, other):
    """The same model, whatever room its states have."""
    alike = all(learned(a) == learned(b) for a, b in zip(one.mixture_.nets, other.mixture_.nets, strict=True))
    return alike and one.events_ == other.events_ and one.bias2_ == other.bias2_


def predicted_by_each(model, X):
    """What each network predicts, one column per output."""
    found = [np.zeros((len(X), len(model.classes_))) for _ in model.mixture_.networks]
    for state, out in zip(model.mixture_.networks, found, strict=True):
        kernel.predict_proba(state, scratch_for(state), X, out, 1.0)
    return found


X, Y = chunk(6)


@pytest.fixture
def taught():
    return DEVDAN(random_state=0).partial_fit(*chunk())


# --- Learning ----------------------------------------------------------------------------------------------------


def test_partial_fit_is_observe_then_teach():
    X, y = chunk()
    one = DEVDAN(random_state=1).partial_fit(X, y).partial_fit(X, y)
    other = DEVDAN(random_state=1)
    for _ in range(2):
        other.observe(X).teach(X, y)
    assert same(one, other)


def test_fit_starts_afresh():
    X, y = chunk()
    once = DEVDAN(random_state=1).fit(X, y)
    twice = DEVDAN(random_state=1).fit(X + 100, y).fit(X, y)
    assert bits(once) == bits(twice)
    assert twice.fit(X[:, :2], y).n_features_in_ == 2


@pytest.mark.parametrize("scaling", ["minmax", "standard"])
@given(cuts=st.lists(st.integers(1, 119), max_size=12))
@settings(max_examples=15)
def test_without_shuffling_the_cut_into_chunks_does_not_matter(scaling, cuts):
    X, y = chunk(120)
    X[::7, 1] = np.nan
    borders = [0, *sorted(set(cuts)), 120]
    pieces = [slice(a, b) for a, b in itertools.pairwise(borders)]
    whole, cut, mixed, pieced = (
        DEVDAN(random_state=2, scaling=scaling, shuffle=False, interleave=mixes) for mixes in (False, False, True, True)
    )
    whole.observe(X).teach(X, y)
    mixed.partial_fit(X, y)
    for piece in pieces:
        cut.observe(X[piece])
        pieced.partial_fit(X[piece], y[piece])
    for piece in pieces:
        cut.teach(X[piece], y[piece])
    assert same(whole, cut)
    assert same(mixed, pieced)


def test_interleaving_is_observing_and_teaching_sample_by_sample():
    X, y = chunk(60)
    one = DEVDAN(random_state=2, shuffle=False, interleave=True).partial_fit(X, y)
    other = DEVDAN(random_state=2, shuffle=False)
    for t in range(60):
        other.observe(X[t : t + 1]).teach(X[t : t + 1], y[t : t + 1])
    assert same(one, other)


def test_the_same_seed_gives_the_same_bits_and_another_does_not():
    X, y = chunk()
    assert bits(DEVDAN(random_state=3).fit(X, y)) == bits(DEVDAN(random_state=3).fit(X, y))
    assert bits(DEVDAN(random_state=3).fit(X, y)) != bits(DEVDAN(random_state=4).fit(X, y))
    assert bits(DEVDAN().fit(X, y)) != bits(DEVDAN().fit(X, y))


def test_no_global_generator_is_touched():
    before = np.random.get_state()[1].copy()
    DEVDAN(random_state=0).fit(*chunk())
    assert (np.random.get_state()[1] == before).all()


def test_learning_and_predicting_leave_their_input_alone():
    X, y = chunk()
    X[3, 1] = np.nan
    X0, y0 = X.copy(), y.copy()
    model = DEVDAN(random_state=0).partial_fit(X, y)
    for verb in (model.predict, model.predict_proba, model.transform, model.reconstruct):
        verb(X)
    np.testing.assert_array_equal(X, X0)
    np.testing.assert_array_equal(y, y0)


def test_predicting_does_not_learn(taught):
    before = bits(taught)
    X, _ = chunk(seed=1)
    for verb in (taught.predict, taught.predict_proba, taught.transform, taught.reconstruct):
        verb(1000 * X)
    assert bits(taught) == before


@pytest.mark.parametrize("scaling", ["minmax", "standard"])
def test_each_sample_counts_once_for_the_scaling_observed_or_not(scaling):
    X, y = chunk()
    observed = DEVDAN(random_state=0, scaling=scaling, shuffle=False).observe(X).teach(X, y)
    unobserved = DEVDAN(random_state=0, scaling=scaling, shuffle=False).teach(X, y)
    for model in (observed, unobserved):
        for net in model.mixture_.nets:
            if scaling == "minmax":
                np.testing.assert_allclose([net.low, net.high], [X.min(axis=0), X.max(axis=0)])
            else:
                np.testing.assert_allclose([net.mean, net.square], [X.mean(axis=0), X.var(axis=0)])
            assert net.n_seen == len(X)
        assert model.n_seen_ == len(X)


def test_switches_make_ablations_and_fixed_autoencoders():
    X, y = chunk(600)
    assert {event.kind for event in DEVDAN(prune=False, random_state=0).fit(X, y).events_} == {"growth"}
    assert DEVDAN(grow=False, prune=False, n_hidden=10, random_state=0).fit(X, y).n_hidden_ == 10
    assert {event.phase for event in DEVDAN(generative=False, random_state=0).fit(X, y).events_} == {"discriminative"}
    assert DEVDAN(grow=False, random_state=0).fit(X, y).n_hidden_ == 1


def test_beside_a_network_that_replays_the_first_one_is_what_it_would_be_alone():
    X, y = chunk(600)
    alone, accompanied = (DEVDAN(random_state=0, rehearse=rehearse).fit(X, y) for rehearse in (0, 5))
    assert len(alone.mixture_.networks) == 1
    assert len(accompanied.mixture_.networks) == 2
    assert learned(alone.mixture_.nets[0]) == learned(accompanied.mixture_.nets[0])
    for name in ("n_hidden_", "events_", "n_events_", "growths_", "prunings_", "drifts_", "bias2_", "variance_"):
        assert getattr(alone, name) == getattr(accompanied, name), name
    assert alone.transform(X).tobytes() == accompanied.transform(X).tobytes()
    assert alone.reconstruct(X).tobytes() == accompanied.reconstruct(X).tobytes()
    assert alone.n_parameters_ < accompanied.n_parameters_
    assert alone.network_weights_.tolist() == [1.0]
    assert accompanied.network_weights_.sum() == pytest.approx(1)


def test_the_network_that_replays_neither_evolves_nor_generates():
    X, y = chunk(2000)
    model = DEVDAN(random_state=0).partial_fit(X, y)
    replaying = model.mixture_.nets[1]
    assert isinstance(replaying, kernel.Replaying)
    assert replaying.n_hidden == REPLAYING.n_hidden
    before = learned(replaying)
    model.observe(X)
    assert learned(replaying) == before


def test_a_network_that_replays_makes_more_of_few_samples():
    random = np.random.default_rng(0)
    X = random.normal(size=(1000, 2))
    y = (X**2).sum(axis=1) > 1.4  # a circle
    scores = [DEVDAN(random_state=0, rehearse=rehearse).fit(X[:500], y[:500]).score(X, y) for rehearse in (0, 5)]
    assert scores[1] > scores[0] + 0.05


def test_it_may_start_from_given_weights():
    X, y = chunk(seed=5)
    taught = DEVDAN(random_state=0, rehearse=0, calibrate=False).partial_fit(*chunk())
    still = {"learning_rate": 0, "generative": False, "grow": False, "prune": False, "averaging": 0.0}
    still |= {"rehearse": 0, "calibrate": False}
    heir = DEVDAN(initial_weights=taught.weights_, **still)
    heir.partial_fit(X, y, classes=[0, 1, 2])
    for name, weights in taught.weights_.items():
        np.testing.assert_array_equal(heir.weights_[name], weights)
    assert taught.mixture_.classes.outputs.tolist() != [0, 1, 2], "the classes must have appeared in another order"
    seen, labels = chunk()
    afresh = clone(heir).fit(seen, labels)  # fit takes the classes from y, and learns the same ranges
    taught.mixture_.nets[0].averaging = 0.0  # predicts by its weights alone
    np.testing.assert_allclose(afresh.predict_proba(seen), taught.predict_proba(seen), atol=1e-9)
    accompanied = clone(heir).set_params(rehearse=5).fit(seen, labels)
    for name, weights in taught.weights_.items():
        np.testing.assert_array_equal(accompanied.weights_[name], weights)
    features_only = {name: taught.weights_[name] for name in ("encoder", "encoder_bias", "decoder_bias")}
    still = DEVDAN(initial_weights=features_only, grow=False, prune=False, generative_learning_rate=0.0, random_state=0)
    np.testing.assert_array_equal(still.observe(X).weights_["encoder"], taught.weights_["encoder"])
    with pytest.raises(ValueError, match="start with partial_fit or teach, and pass classes= there"):
        DEVDAN(initial_weights=taught.weights_).partial_fit(X[y < 2], y[y < 2])
    some = np.where(np.arange(len(y)) % 3 > 0, y, np.nan)  # labels that are missing change nothing
    known = clone(heir).partial_fit(X, some)
    for name, weights in taught.weights_.items():
        np.testing.assert_array_equal(known.weights_[name], weights)
    assert known.mixture_.n_taught == np.isfinite(some).sum()
    assert clone(heir).partial_fit(X, some * np.nan, classes=[0, 1, 2]).mixture_.nets[0].n_named == 3
    with pytest.raises(ValueError, match="start with partial_fit or teach, and pass classes= there"):
        clone(heir).partial_fit(X, some * np.nan)
    with pytest.raises(ValueError, match=r"initial_weights\['encoder'\] must have shape \(n_features, n_hidden\)"):
        DEVDAN(initial_weights={"encoder": [[1.0, 2.0]]}).observe(X)
    with pytest.raises(ValueError, match="initial_weights must be a dict"):
        DEVDAN(initial_weights=[1]).observe(X)
    with pytest.raises(ValueError, match="must be finite"):
        DEVDAN(initial_weights={"encoder": np.full((4, 2), np.nan)}).observe(X)
    with pytest.raises(ValueError, match=r"at most 1e\+100"):
        DEVDAN(initial_weights={"encoder": np.full((4, 2), 1e101)}).observe(X)


def test_options_may_change_between_chunks(taught):
    X, y = chunk(400, seed=1)
    size = taught.n_hidden_
    taught.set_params(grow=False, prune=False).partial_fit(X, y)
    assert taught.n_hidden_ == size
    before = bits(taught)
    with pytest.raises(ValueError, match="masking"):
        taught.set_params(masking=2).partial_fit(X, y)
    with pytest.raises(ValueError, match="scaling must stay 'standard' once the model has learned"):
        taught.set_params(masking=0, scaling="minmax").partial_fit(X, y)
    with pytest.raises(ValueError, match="masking must be in"):
        taught.set_params(masking=np.array([0.1, 0.2]), scaling="standard").partial_fit(X, y)
    with pytest.raises(ValueError, match="optimizer must stay 'adaptive' once the model has learned"):
        taught.set_params(masking=0, optimizer="momentum").partial_fit(X, y)
    taught.set_params(optimizer="adaptive")
    with pytest.raises(ValueError, match="n_hidden must stay 1 once the model has learned"):
        taught.set_params(masking=0, n_hidden=100).partial_fit(X, y)
    assert bits(taught) == before


def test_averages_switched_on_in_mid_stream_begin_with_the_weights_as_they_are():
    X, y = chunk(1900, seed=1)
    still = {"learning_rate": 0.0, "grow": False, "prune": False}
    model = DEVDAN(random_state=0, averaging=0.0)
    for start in range(0, 1900, 100):
        model.partial_fit(X[start : start + 100], y[start : start + 100])
    before = model.observe(X[:1]).predict_proba(X)
    model.set_params(averaging=0.998, **still).teach(X[:1], y[:1])
    np.testing.assert_allclose(model.predict_proba(X), before, atol=1e-12)


# --- Classes -----------------------------------------------------------------------------------------------------


def test_a_new_class_adds_an_output_and_leaves_the_odds_of_the_others():
    X, y = chunk(n_classes=2)
    still = {"learning_rate": 0, "generative": False, "grow": False, "prune": False, "averaging": 0.0}
    model = DEVDAN(scaling="minmax", random_state=0, **still).partial_fit(X, y)
    before = predicted_by_each(model, X)
    model.teach(X[:1], [-5])
    assert model.classes_.tolist() == [-5, 0, 1]
    for odds, after in zip(before, predicted_by_each(model, X), strict=True):
        assert (after[:, 2] > 0).all()
        np.testing.assert_allclose(after[:, 0] / after[:, 1], odds[:, 0] / odds[:, 1])


@pytest.mark.parametrize(
    "labels",
    [np.array(["dry", "rain", "snowstorm"]), np.array([2.0, 3.0, 7.0]), np.array([3, -1, 250], np.int16),
     np.array(["x", "y", "a long one"], object)],
)  # fmt: skip
def test_labels_of_any_type_come_back_as_they_were(labels):
    X, y = chunk()
    model = DEVDAN(scaling="standard", random_state=0)
    for code in range(3):  # one class after the other
        model.partial_fit(X[y == code], labels[y[y == code]])
    for _ in range(5):
        model.partial_fit(X, labels[y])
    assert model.classes_.tolist() == sorted(labels.tolist())
    assert set(model.predict(X)) <= set(labels.tolist())
    assert model.score(X, labels[y]) > 0.9


def test_bool_labels():
    X, y = chunk(n_classes=2)
    model = DEVDAN(random_state=0).partial_fit(X, y == 1)
    assert model.predict(X).dtype == bool
    assert model.classes_.tolist() == [False, True]


def test_classes_named_in_advance_have_outputs_at_once():
    X, y = chunk(n_classes=2)
    model = DEVDAN(random_state=0).partial_fit(X, y, classes=[2, 1, 0, 9])
    assert model.classes_.tolist() == [0, 1, 2, 9]
    assert model.predict_proba(X).shape == (len(X), 4)
    assert model.weights_["output"].shape[1] == 4
    assert [net.n_classes for net in model.mixture_.nets] == [4, 4]


def test_one_class_alone_never_grows_the_network():
    X, _ = chunk(500)
    model = DEVDAN(random_state=0).teach(X, np.zeros(500, int))
    assert [net.n_hidden for net in model.mixture_.nets] == [1, REPLAYING.n_hidden]
    np.testing.assert_allclose(model.predict_proba(X), 1, rtol=1e-15)


def test_many_classes():
    X, y = chunk(1000, n_classes=40)
    model = DEVDAN(random_state=0).partial_fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    assert len(model.classes_) == 40


def test_unsigned_labels_stay_whole_numbers():
    model = DEVDAN(random_state=0).partial_fit(X, Y).partial_fit(X, (Y + 5).astype(np.uint64))
    assert model.classes_.dtype == np.int64


def test_naming_no_class_is_an_error(taught):
    for model in (taught, DEVDAN()):
        with pytest.raises(ValueError, match="classes must name at least one class"):
            model.partial_fit(X, Y, classes=[])


def interrupt(*args):
    raise KeyboardInterrupt


@pytest.mark.parametrize("n_done", [0, 1, 2, 3])
def test_an_interrupted_chunk_leaves_a_model_that_works(taught, monkeypatch, tmp_path, n_done):
    """Ctrl-C between the networks or the phases, when the classes are known and not all have outputs for them yet."""
    fresh = DEVDAN(random_state=0)
    for model in (taught, fresh):
        visits = iter([kernel.learn] * n_done)
        monkeypatch.setattr(kernel, "learn", lambda *args, visits=visits: next(visits, interrupt)(*args))
        with pytest.raises(KeyboardInterrupt):
            model.partial_fit(X, Y + 10)
        monkeypatch.undo()
    if n_done < 2:
        with pytest.raises(NotFittedError, match="not been taught"):
            fresh.predict(X)
    else:  # the first network has been through both phases
        np.testing.assert_allclose(fresh.predict_proba(X).sum(axis=1), 1)
    np.testing.assert_allclose(taught.predict_proba(X).sum(axis=1), 1)
    taught.save(tmp_path / "taught")
    fresh.save(tmp_path / "fresh")
    for model in (taught, fresh, DEVDAN.load(tmp_path / "taught"), DEVDAN.load(tmp_path / "fresh")):
        model.partial_fit(X, Y + 10)
        np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)


def test_the_kernel_never_writes_beyond_the_rows_it_is_given(taught):
    voting = DEVDANEnsemble([(2, 1, 30, 3)], random_state=0).partial_fit(*chunk())
    for state in (*taught.mixture_.networks, *voting.mixture_.networks):
        for function, more in ((kernel.predict_proba, [1.0]), (kernel.transform, [])):
            narrow = np.full(8, -1.0)
            function(state, scratch_for(state), X[:1].copy(), narrow[:2].reshape(1, 2), *more)
            assert (narrow[2:] == -1.0).all()


def test_what_it_shows_cannot_be_used_to_change_it(taught):
    with pytest.raises(ValueError, match="read-only"):
        taught.classes_[0] = 99


# --- What a user sees --------------------------------------------------------------------------------------------


def test_learned_attributes(taught):
    (r, more), n, m = (net.n_hidden for net in taught.mixture_.nets), 4, 3
    assert taught.n_seen_ == 200
    assert taught.n_hidden_ == r
    seen = r * n + more // 2 * n + more // 2 * n * REPLAYING.fields  # half of those that replay see through fields
    assert taught.n_parameters_ == seen + sum(units + m * (units + 1) for units in (r, more))
    assert {name: w.shape for name, w in taught.weights_.items()} == {
        "encoder": (n, r), "encoder_bias": (r,), "decoder_bias": (n,), "output": (r, m), "output_bias": (m,),
    }  # fmt: skip
    for values in (taught.bias2_, taught.variance_):
        assert list(values) == ["generative", "discriminative"]
        assert all(np.isfinite(list(values.values())))
    assert repr(taught) == f"<DEVDAN(random_state=0): 4 features, {r} hidden units, 3 classes after 200 samples>"
    assert repr(DEVDAN(masking=0.2)) == "DEVDAN(masking=0.2)"


def test_events_tell_the_structure_and_their_memory_is_bounded():
    X, y = chunk(300)
    model = DEVDAN(random_state=0)
    size, last = 1, {"generative": 0, "discriminative": 0}
    for _ in range(5):
        model.partial_fit(X, y)
    assert len(model.events_) > 3
    for event in model.events_:
        size += {"growth": 1, "pruning": -1}.get(event.kind, 0)
        assert event.n_hidden == size >= 1
        assert last[event.phase] <= event.sample <= 1500
        last[event.phase] = event.sample
    assert size == model.n_hidden_
    net = model.mixture_.nets[0]
    net.n_events = 2500  # as if many had been
    net.events[:, kernel.EVENT_SAMPLE] = np.r_[2000:2500, 1500:2000]
    assert [event.sample for event in model.events_] == list(range(1500, 2500))


@pytest.mark.parametrize("drift", ["none", "real", "virtual"])
def test_drifts_are_told_apart(drift):
    model = DEVDAN(random_state=3)
    for number, (X, y) in enumerate(sea(10_000, drifts=[20_000], seed=4)):
        late = number >= 10
        model.partial_fit(X + 2 * (late and drift == "virtual"), 1 - y if late and drift == "real" else y)
    found = {(event.phase, event.kind) for event in model.events_ if event.kind == "drift"}
    assert ("discriminative", "drift") in found or drift != "real"
    assert (("generative", "drift") in found) == (drift == "virtual")
    assert bool(found) == (drift != "none")
    assert model.drifts_ == {
        phase: sum(event.phase == phase and event.kind == "drift" for event in model.events_) for phase in PHASES
    }
    assert all(event.sample > 5000 for event in model.events_ if event.kind == "drift")


def test_transform_and_reconstruct():
    taught = DEVDAN(scaling="minmax", random_state=0).partial_fit(*chunk())
    X, _ = chunk(seed=9)
    hidden = taught.transform(X)
    assert hidden.shape == (len(X), taught.n_hidden_)
    assert ((hidden > 0) & (hidden < 1)).all()
    assert taught.get_feature_names_out().tolist() == [f"devdan{i}" for i in range(taught.n_hidden_)]
    again = taught.reconstruct(X)
    assert again.shape == X.shape
    seen, _ = chunk()
    assert (again >= seen.min(axis=0)).all()
    assert (again <= seen.max(axis=0)).all()


@pytest.mark.parametrize("scaling", ["minmax", "standard"])
def test_reconstruct_fills_in_what_is_missing(scaling):
    random = np.random.default_rng(0)
    base = random.normal(size=(4000, 1))
    X = 50 + 10 * (base + 0.1 * random.normal(size=(4000, 5)))
    model = DEVDAN(
        n_hidden=3, scaling=scaling, generative_learning_rate=0.1, grow=False, prune=False, random_state=0
    ).observe(X)
    holed = X[-500:].copy()
    holed[:, 0] = np.nan
    filled = model.reconstruct(holed)[:, 0]
    assert np.corrcoef(filled, X[-500:, 0])[0, 1] > 0.8


def test_pickle_copy_and_clone(taught):
    X, y = chunk(seed=4)
    copies = [pickle.loads(pickle.dumps(taught)), copy.deepcopy(taught)]
    taught.partial_fit(X, y)
    for model in copies:
        assert bits(model) != bits(taught)
        assert bits(model.partial_fit(X, y)) == bits(taught)
    assert not hasattr(clone(taught), "n_hidden_")


# --- Missing and extreme values ----------------------------------------------------------------------------------


@pytest.mark.parametrize("scaling", ["minmax", "standard"])
def test_a_feature_that_was_never_there_counts_for_nothing(scaling):
    X, y = chunk(300, n_features=3)
    holed = np.column_stack([X, np.full(300, np.nan)])
    model = DEVDAN(random_state=0, scaling=scaling).partial_fit(holed, y)
    late = holed.copy()
    late[:, 3] = 7.0
    assert (model.predict_proba(late) == model.predict_proba(holed)).all()
    assert model.weights_["decoder_bias"][3] == 0
    assert np.isnan(model.reconstruct(late)).any(axis=0).tolist() == [False, False, False, True]


def test_a_sample_without_any_feature_teaches_its_label_and_nothing_else():
    X, y = chunk()
    model = DEVDAN(random_state=0).partial_fit(X, y)
    before = model.bias2_["generative"], model.weights_
    model.observe(np.full((5, 4), np.nan))
    assert model.bias2_["generative"] == before[0]
    assert all((model.weights_[name] == weights).all() for name, weights in before[1].items())
    prior = model.predict_proba(np.full((1, 4), np.nan))[0, 2]
    model.teach(np.full((20, 4), np.nan), np.full(20, 2))
    assert model.predict_proba(np.full((1, 4), np.nan))[0, 2] > prior


def hostile():
    """Legal but unkind chunks."""
    extreme = st.sampled_from([0.0, 1.0, -1.0, 1e-300, 1e300, -1e300, 1.7e308, -1.7e308, np.nan, 3.5])
    sizes = st.tuples(st.integers(1, 12), st.just(3))
    return sizes.flatmap(
        lambda size: st.lists(st.lists(extreme, min_size=3, max_size=3), min_size=size[0], max_size=size[0])
    )


@pytest.mark.parametrize("scaling", ["minmax", "standard", None])
@given(chunks=st.lists(st.tuples(hostile(), st.integers(0, 3)), min_size=1, max_size=6))
@settings(max_examples=40)
@pytest.mark.filterwarnings("ignore:X has values outside")
def test_extreme_but_legal_input_never_makes_a_nan(scaling, chunks):
    model = DEVDAN(scaling=scaling, random_state=0, scope="adaptive")
    for rows, label in chunks:
        X = np.array(rows)
        y = (np.arange(len(X)) + label) % 4
        model.partial_fit(X, y)
        assert_sound(model, X)


@pytest.mark.parametrize("scaling", ["minmax", "standard"])
@pytest.mark.parametrize("n_features", [1, 2000])
def test_one_feature_and_very_many(scaling, n_features):
    X, y = chunk(60, n_features=n_features)
    X[:, 0] = 5.0  # constant
    model = DEVDAN(scaling=scaling, random_state=0).partial_fit(X, y).partial_fit(X, y)
    assert_sound(model, X)


def assert_sound(model, X):
    for state in model.mixture_.networks:
        check_state(state)
    probabilities = model.predict_proba(X)
    assert np.isfinite(probabilities).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-12)
    assert np.isfinite(model.transform(X)).all()
    assert all(np.isfinite(weights).all() for weights in model.weights_.values())


def test_unscaled_data_outside_the_unit_interval_is_clipped_and_warned_about_once():
    X, y = chunk()
    model = DEVDAN(scaling=None, random_state=0)
    with pytest.warns(UserWarning, match="use scaling='standard' or 'minmax'") as caught:
        model.partial_fit(X, y).partial_fit(X, y)
        model.predict(X)
    assert len(caught) == 1
    clipped = DEVDAN(scaling=None, random_state=0).partial_fit(X.clip(0, 1), y).partial_fit(X.clip(0, 1), y)
    assert model.predict_proba(X).tobytes() == clipped.predict_proba(X.clip(0, 1)).tobytes()
    buffer = model.mixture_.nets[1].buffer
    buffer[:] = buffer.clip(0, 1)  # samples are kept as they came
    assert bits(model) == bits(clipped)


# --- Bad input ---------------------------------------------------------------------------------------------------

BAD = {
    "wrong number of features": (X[:, :3], Y, "3 features, but DEVDAN is expecting 4"),
    "1-D X": (X[0], Y, "Expected 2D array, got 1D"),
    "text in X": ([["a", "b", "c", "d"]], [1], "X must hold numbers, as it did .* got 'a' in the column 'x0'"),
    "text in a frame": (pd.DataFrame([["a", 1.0, 2.0, 3.0]]), [1], "X must hold numbers, .* in the column '0'"),
    "dates": (np.zeros((6, 4), "M8[s]"), Y, "X must hold numbers, .*'1970-01-01.* in the column 'x0'"),
    "dates in a frame": (pd.DataFrame(np.zeros((6, 4), "M8[s]")), Y, "X must hold numbers, .* in the column '0'"),
    "complex numbers": (X.astype(complex), Y, "Complex data not supported"),
    "lists in a frame": (pd.DataFrame({"a": [[1]] * 6}), Y, "row 1 has a list in the column 'a'"),
    "numbers beyond floats": (np.full((6, 4), 10**400, object), Y, "in the range of a float"),
    "long doubles beyond floats": (np.full((6, 4), np.longdouble("1e400")), Y, "infinity"),
    "infinity": (np.where(X.max() - 1 < X, np.inf, X), Y, "infinity"),
    "empty chunk": (X[:0], Y[:0], "0 sample"),
    "ragged": ([[1.0, 2.0], [1.0]], [1, 2], "inhomogeneous|sequence"),
    "lengths": (X, Y[:-1], "same number of samples, got 6 and 5"),
    "continuous y": (X, X[:, 0], "Unknown label type.*classes"),
    "NaN in y": (X, np.full(6, np.nan), "y contains NaN"),
    "mixed y": (X, np.array([1, "a", 2, 3, 4, 5], object), "labels of one type"),
    "text y after numbers": (X, list("abcdef"), "labels of the type seen so far"),
    "dates in y": (X, np.arange(6).astype("M8[D]"), "Unknown label type"),
    "no y": (X, None, "y"),
    "huge y": (X, np.full(6, 1e300), "too large to be distinguished"),
    "2-D y": (X, np.ones((6, 2)), "1d array"),
}


ONLY_AFTER_OTHERS = (  # bad only for what was learned before
    "wrong number of features", "text y after numbers", "text in X", "text in a frame", "dates", "dates in a frame"
)  # fmt: skip


@pytest.mark.parametrize(
    ("verb", "case"),
    [
        (verb, case)
        for verb in ("partial_fit", "teach", "fit")
        for case in BAD
        if not (verb == "fit" and case in ONLY_AFTER_OTHERS) and (verb, case) != ("partial_fit", "NaN in y")
    ],
)
def test_bad_input_gets_a_clear_error_and_does_no_harm(taught, verb, case):
    bad_X, bad_y, message = BAD[case]
    before, predicted = bits(taught), taught.predict_proba(X)
    attributes = set(vars(taught))
    with pytest.raises((ValueError, TypeError), match=message):
        getattr(taught, verb)(bad_X, bad_y)
    assert bits(taught) == before
    assert (taught.predict_proba(X) == predicted).all()
    assert set(vars(taught)) == attributes
    if case not in ONLY_AFTER_OTHERS:
        fresh = DEVDAN()
        attributes = set(vars(fresh))
        with pytest.raises((ValueError, TypeError), match=message):
            getattr(fresh, verb)(bad_X, bad_y)
        assert set(vars(fresh)) == attributes


@pytest.mark.parametrize(
    ("name", "value", "requirement"),
    [
        ("masking", 1.3, r"masking must be in \[0, 1\), got 1.3"),
        ("masking", 10**400, r"masking must be in \[0, 1\), got 1000"),
        ("masking", "much", r"masking must be in \[0, 1\), got 'much'"),
        ("momentum", 1.0, r"momentum must be in \[0, 1\), got 1.0"),
        ("learning_rate", -0.1, r"learning_rate must be in \[0, 1\], got -0.1"),
        ("generative_learning_rate", float("nan"), r"generative_learning_rate must be in \[0, 1\], got nan"),
        ("n_hidden", 0, "n_hidden must be an integer of at least 1, got 0"),
        ("n_hidden", 2.5, "n_hidden must be an integer of at least 1, got 2.5"),
        ("scaling", "max", "scaling must be 'minmax', 'standard' or None, got 'max'"),
        ("scaling", [], r"scaling must be 'minmax', 'standard' or None, got \[\]"),
        ("scope", None, "scope must be 'fixed' or 'adaptive', got None"),
        ("grow", 1, "grow must be True or False, got 1"),
    ],
)
def test_unknown_option_values_are_named_with_their_range(name, value, requirement):
    with pytest.raises(ValueError, match=requirement):
        DEVDAN(**{name: value}).partial_fit(X, Y)


def test_predicting_before_anything_was_learned():
    for verb in ("predict", "predict_proba", "transform", "reconstruct"):
        with pytest.raises(NotFittedError, match="has not seen a sample yet"):
            getattr(DEVDAN(), verb)(X)
    watching = DEVDAN(random_state=0).observe(X)
    assert watching.transform(X).shape == (6, watching.n_hidden_)
    with pytest.raises(NotFittedError, match="has not been taught a label yet"):
        watching.predict(X)


def test_a_column_of_labels_is_taken_with_a_warning():
    with pytest.warns(DataConversionWarning):
        DEVDAN(random_state=0).partial_fit(X, Y[:, None])


def test_numeric_input_of_other_types_gives_the_same_model():
    whole = np.arange(24).reshape(6, 4)
    reference = bits(DEVDAN(random_state=0).partial_fit(whole.astype(float), Y))
    readonly = whole.astype(float)
    readonly.setflags(write=False)
    for other in (whole, whole.tolist(), np.asfortranarray(whole), whole.astype(np.float32), readonly):
        model = DEVDAN(random_state=0)
        assert bits(model.partial_fit(other, Y)) == reference


def test_what_is_masked_is_missing():
    holed = X.copy()
    holed[2, 1] = np.nan
    masked = np.ma.array(np.where(np.isnan(holed), 1e9, holed), mask=np.isnan(holed))
    assert bits(DEVDAN(random_state=0).partial_fit(masked, Y)) == bits(DEVDAN(random_state=0).partial_fit(holed, Y))
