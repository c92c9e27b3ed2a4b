"""A fleet: each key learns what a DEVDAN of its own would, whatever the order, the portions and the threads."""

import copy
import pickle
import threading

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from fleets import FEWER, portions, states, words
from interpreters import python
from numba import config
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from devdan import DEVDAN, DEVDANEnsemble, DEVDANFleet, kernel
from devdan.encoding.encoding import Encoding
from devdan.encoding.tables import rows_of
from devdan.fleet import shared
from devdan.fleet.keys import checked, of_text, seed_of, text_of
from devdan.fleet.networks import EVENTS
from devdan.fleet.shared import MOST_UNITS, make_young
from devdan.kernel import Network
from devdan.kernel.memory import Sizes
from devdan.kernel.state import check_state, with_features, with_room
from devdan.model import threads


class Dict:
    """What a fleet should be: a dict of models."""

    def __init__(self, make):
        self.make, self.models = make, {}

    def learn(self, verb, keys, X, *y, **more):
        for key in dict.fromkeys(np.asarray(keys).tolist()):
            own = np.asarray(keys) == key
            if key not in self.models:
                self.models[key] = self.make(key)
            getattr(self.models[key], verb)(X[own], *(labels[own] for labels in y), **more)

    def states(self):
        return {key: words(model.mixture_.networks[0]) for key, model in self.models.items()}

    def predict_proba(self, fleet, keys, X):
        """In the columns of the fleet; NaN where a key has no label."""
        out = np.full((len(X), len(fleet.classes_)), np.nan)
        for key in set(keys.tolist()):
            model, own = self.models.get(key), keys == key
            if model is not None and hasattr(model, "classes_"):
                out[own] = 0.0
                out[np.ix_(own, np.searchsorted(fleet.classes_, model.classes_))] = model.predict_proba(X[own])
        return out


OPTIONS = [
    {},
    {"shuffle": False, "n_hidden": 5},
    {"interleave": True, "class_weight": "balanced"},
    {"scaling": "minmax", "optimizer": "momentum", "averaging": 0.0},
    {"class_weight": {1: 5.0, 3: 0.1}, "generative": False},
    {"grow": False, "masking": 0.0, "scope": "adaptive"},
]


@pytest.mark.uncompiled
@pytest.mark.parametrize("chosen", OPTIONS, ids=str)
def test_a_key_learns_what_a_model_of_its_own_learns(chosen):
    fleet = DEVDANFleet(DEVDAN(rehearse=0, random_state=7, **chosen), prior=False)
    models = Dict(lambda key: DEVDAN(rehearse=0, random_state=7, **chosen))
    for t, (keys, X, y) in enumerate(portions()):
        if t > 0:
            expected = models.predict_proba(fleet, keys, X)
            known = ~np.isnan(expected).any(axis=1)
            np.testing.assert_array_equal(fleet.predict_proba(keys, X)[known], expected[known])
        fleet.partial_fit(keys, X, y)
        models.learn("partial_fit", keys, X, y)
    assert states(fleet) == models.states()
    assert [fleet[key].classes_.tolist() for key in fleet] == [models.models[key].classes_.tolist() for key in fleet]


def test_labels_that_come_late_or_never_are_the_keys_own():
    fleet = DEVDANFleet(DEVDAN(rehearse=0, random_state=7), prior=False)
    models = Dict(lambda key: DEVDAN(rehearse=0, random_state=7))
    waiting = []
    for t, (keys, X, y) in enumerate(portions(n_portions=9)):
        fleet.observe(keys, X)
        models.learn("observe", keys, X)
        waiting.append((keys[::2], X[::2], y[::2]))
        if t >= 2 and len(waiting[0][0]) > 0:
            late = waiting.pop(0)
            fleet.teach(*late)
            models.learn("teach", *late)
    assert states(fleet) == models.states()
    assert {key: fleet[key].n_seen_ for key in fleet} == {key: model.n_seen_ for key, model in models.models.items()}


@pytest.mark.uncompiled
@pytest.mark.parametrize("chosen", [{}, {"class_weight": "balanced"}], ids=str)
def test_labels_that_are_taken_back_are_the_keys_own(chosen):
    fleet = DEVDANFleet(DEVDAN(rehearse=0, random_state=7, **chosen), prior=False)
    models = Dict(lambda key: DEVDAN(rehearse=0, random_state=7, **chosen))
    for keys, X, y in portions():
        wrong = np.roll(y, 1)
        right = keys[::3], X[::3], y[::3]
        for verb, *given in (
            ("partial_fit", keys, X, wrong), ("forget", keys[::3], X[::3], wrong[::3]), ("teach", *right),
        ):  # fmt: skip
            getattr(fleet, verb)(*given)
            models.learn(verb, *given)
    assert states(fleet) == models.states()
    before = states(fleet)
    assert states(fleet.forget([-1], X[:1], y[:1])) == before
    assert states(fleet.forget(keys, X)) == before  # networks keep no samples
    with pytest.raises(ValueError, match="y must hold classes that were taught, got 77"):
        fleet.forget(keys[:1], X[:1], [77])


def test_labels_that_are_taken_back_are_not_expected_of_new_keys():
    fleet = DEVDANFleet(prior=False).partial_fit(["a"] * 4, [[0.0], [1.0], [2.0], [3.0]], ["x", "x", "y", "y"])
    fleet.forget(["a"], [[0.0]], ["x"])
    assert fleet.predict_proba(["new"], [[0.0]])[0].tolist() == [1 / 3, 2 / 3]


@pytest.mark.uncompiled
def test_classes_named_in_advance_are_named_for_all_keys_and_weights_are_the_rows_own():
    fleet = DEVDANFleet(DEVDAN(rehearse=0, random_state=7), prior=False)
    models = Dict(lambda key: DEVDAN(rehearse=0, random_state=7))
    named = [9, 3, 1]
    random = np.random.default_rng(1)
    for t, (keys, X, y) in enumerate(portions()):
        weights = random.choice([0.0, 0.5, 1.0, 3.0], len(y))
        if t == 0:
            weights[0] = 1.0
        fleet.partial_fit(keys, X, y, classes=named if t in (0, 3) else None, sample_weight=weights)
        kept = weights > 0
        rows = keys[kept], X[kept], y[kept]
        for key in set(rows[0].tolist()):
            own = rows[0] == key
            model = models.models.setdefault(key, models.make(key))
            model.partial_fit(rows[1][own], rows[2][own], classes=named, sample_weight=weights[kept][own])
    assert states(fleet) == models.states()
    fleet.partial_fit([1], X[:1], [0], sample_weight=[0.0])
    assert states(fleet) == models.states()


@pytest.mark.uncompiled
def test_options_that_change_meanwhile_change_for_all_keys_when_they_are_back():
    fleet = DEVDANFleet(DEVDAN(rehearse=0, random_state=7), prior=False)
    models = Dict(lambda key: clone(fleet.estimator))
    changes = [{}, {"averaging": 0.0}, {"averaging": 0.5, "masking": 0.3}, {"class_weight": {0: 3.0}}, {"grow": False}]
    changes += [{"class_weight": None, "averaging": 0.998}]
    for (keys, X, y), chosen in zip(portions(most=40), changes, strict=True):
        fleet.set_params(**{f"estimator__{name}": value for name, value in chosen.items()})
        for model in models.models.values():
            model.set_params(**chosen)
        fleet.partial_fit(keys, X, y)
        models.learn("partial_fit", keys, X, y)
    everyone = np.array(list(fleet))
    X = np.ones((len(everyone), 4))
    fleet.observe(everyone, X)
    models.learn("observe", everyone, X)
    assert states(fleet) == models.states()


def test_columns_of_tables_are_encoded_for_all_keys_at_once():
    """Each key's inputs are the fleet's, which change with what comes, also while a key is away."""
    random = np.random.default_rng(3)
    fleet = DEVDANFleet(DEVDAN(rehearse=0, random_state=7, max_categories=4), prior=False)
    encoding, orders, models = Encoding(instructions=fleet.estimator._instructions()), {}, {}
    for t in range(9):
        n = int(random.integers(5, 30))
        keys = np.resize(["a", "b", "c"] if t % 3 == 2 else ["a"], n)
        table = pd.DataFrame({"x": random.normal(size=n), "colour": random.choice(list("rgbxyz")[: t + 1], n)})
        y = (table["x"] > 0).to_numpy().astype(int)
        X, encoding = encoding.learned(rows_of(table))
        fleet.partial_fit(keys, table, y)
        for key in dict.fromkeys(keys.tolist()):
            model, own = models.setdefault(key, DEVDAN(rehearse=0, random_state=7)), keys == key
            before = orders.get(key, encoding.order)
            if before != encoding.order:
                gone = [place for place, number in enumerate(before) if number not in encoding.order]
                n_new = len(encoding.order) - len(before) + len(gone)
                model.mixture_.replace(0, with_features(model.mixture_.networks[0], gone, n_new))
                model.n_features_in_ = len(encoding.order)
            model.partial_fit(X[own], y[own])
            orders[key] = encoding.order
    assert len(fleet._shared.inputs) > 2
    assert fleet.encoding_.input_names == encoding.input_names
    for key, model in models.items():
        np.testing.assert_array_equal(fleet[key].predict_proba(table), model.predict_proba(X))
        np.testing.assert_array_equal(fleet.predict_proba([key] * n, table), model.predict_proba(X))


@pytest.mark.uncompiled
@pytest.mark.parametrize("prior", [False, True])
def test_the_number_of_threads_and_the_order_of_keys_do_not_matter(prior, monkeypatch):
    monkeypatch.setattr(threads, "_WORTH", 1)
    monkeypatch.setattr(threads.joblib, "cpu_count", lambda: 8)
    fleets = [DEVDANFleet(prior=prior, random_state=1, n_jobs=n_jobs) for n_jobs in (1, 2, 5)]
    for keys, X, y in portions():
        for fleet in fleets:
            fleet.partial_fit(keys, X, y)
    predicted = [fleet.predict_proba(keys, X) for fleet in fleets]
    assert states(fleets[0]) == states(fleets[1]) == states(fleets[2])
    np.testing.assert_array_equal(predicted[0], predicted[1])
    np.testing.assert_array_equal(predicted[0], predicted[2])
    if not prior:
        other = DEVDANFleet(prior=False, random_state=1)
        for keys, X, y in portions():
            backwards = np.argsort(-keys, kind="stable")  # the keys, but not the rows of each
            other.partial_fit(keys[backwards], X[backwards], y[backwards])
        assert states(other) == states(fleets[0])


ALONE_OR_AFTER = """
import hashlib, sys
import numpy as np
from devdan import DEVDAN, DEVDANFleet
random = np.random.default_rng(0)
X, y = random.normal(size=(600, 5)), random.integers(0, 3, 600)
def learned(model, *keys):
    for start in range(0, 600, 50):
        model.partial_fit(*keys, X[start : start + 50], y[start : start + 50])
    return model
chosen = DEVDAN(rehearse=0, random_state=3)
if sys.argv[1:] == ["after"]:
    learned(chosen).predict(X)
fleet = learned(DEVDANFleet(chosen, prior=False), np.zeros(50, int))
model = learned(DEVDAN(rehearse=0, random_state=3))
for one in (fleet.predict_proba(np.zeros(600, int), X), model.predict_proba(X)):
    print(hashlib.sha256(one.tobytes()).hexdigest())
"""


@pytest.mark.skipif(bool(config.DISABLE_JIT), reason="there is no machine code without the JIT")
def test_a_key_has_the_bits_of_a_model_by_itself_whichever_was_first():
    """Each has compiled code of its own, and what both contain may run from either."""
    alone, after = (
        set(python(f"import sys; sys.argv = ['', {way!r}]{ALONE_OR_AFTER}")[0].split()) for way in ("alone", "after")
    )
    assert alone == after
    assert len(alone) == 1


# --- Seeds -------------------------------------------------------------------------------------------------------


def test_seeds_are_the_estimators_or_drawn_from_the_fleets_and_the_key():
    X, y = np.random.default_rng(0).normal(size=(8, 3)), np.arange(8) % 2
    keys = ["a", "b"] * 4

    def encoders(fleet):
        fleet.partial_fit(keys, X, y)
        return [fleet[key].mixture_.networks[0][Network.random.start] for key in ("a", "b")]

    same = encoders(DEVDANFleet(DEVDAN(rehearse=0, random_state=7), prior=False))
    first, second = (encoders(DEVDANFleet(prior=False, random_state=seed)) for seed in (1, 2))
    assert len({*first, *second}) == 4
    assert encoders(DEVDANFleet(prior=False, random_state=1)) == first
    fleet = DEVDANFleet(DEVDAN(rehearse=0, random_state=7), random_state=1)
    assert len(set(encoders(fleet))) == 2
    assert same != first
    seeds = {seed_of(key, seed) for key in ("1", 1, (1,), ("1",), True, 1.5) for seed in (0, 1, 2**62)}
    assert len(seeds) == 18
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_without_a_seed_fleets_differ_and_a_random_state_is_used_once():
    X, y = np.random.default_rng(0).normal(size=(8, 3)), np.arange(8) % 2
    fleets = [DEVDANFleet(prior=False).partial_fit(np.arange(8) % 2, X, y) for _ in range(2)]
    assert states(fleets[0]) != states(fleets[1])
    fleets = [DEVDANFleet(random_state=np.random.RandomState(3)).partial_fit(np.arange(8) % 2, X, y) for _ in range(2)]
    assert states(fleets[0]) == states(fleets[1])


# --- The prior ---------------------------------------------------------------------------------------------------


@pytest.mark.uncompiled
def test_a_new_key_starts_as_a_young_copy_of_the_prior():
    fleet = DEVDANFleet(random_state=1)
    models = {}
    for keys, X, y in portions(n_keys=40):
        fleet.partial_fit(keys, X, y)
        prior = fleet.prior_
        for key in dict.fromkeys(keys.tolist()):
            if key not in models:
                state = with_room(prior.mixture_.networks[0], Sizes(4, 64, 8, EVENTS))
                make_young(Network(state))
                Network(state).random[0] = seed_of(key, fleet._seed)
                Network(state).grows = 1.0
                models[key] = copy.deepcopy(prior)
                models[key].mixture_.replace(0, state)
            own = keys == key
            models[key].partial_fit(X[own], y[own])
    assert states(fleet) == {key: words(model.mixture_.networks[0]) for key, model in models.items()}
    assert len(models) > 10


def test_the_prior_learns_what_a_model_learns_from_all_rows_until_it_is_large(monkeypatch):
    monkeypatch.setattr(shared, "MOST_UNITS", 16)
    fleet, model = DEVDANFleet(DEVDAN(rehearse=0, random_state=3), random_state=1), DEVDAN(rehearse=0, random_state=3)
    for keys, X, y in portions(n_portions=3, most=60):
        fleet.partial_fit(keys, X, y)
        model.partial_fit(X, y)
        assert model.n_hidden_ <= shared.MOST_UNITS
        assert words(fleet.prior_.mixture_.networks[0]) == words(model.mixture_.networks[0])


def test_the_prior_learns_from_all_rows_at_first_and_from_every_fourth_later(monkeypatch):
    monkeypatch.setattr(shared, "ALL_ROWS", 100)
    monkeypatch.setattr(shared, "MOST_UNITS", 16)
    fleet, model = DEVDANFleet(DEVDAN(rehearse=0, random_state=3), random_state=1), DEVDAN(rehearse=0, random_state=3)
    number = {"partial_fit": 0, "teach": 0}
    for t, (keys, X, y) in enumerate(portions(n_portions=8, most=60 * FEWER)):
        verb = "teach" if t % 3 == 2 else "partial_fit"
        numbers = number[verb] + np.arange(len(y))
        number[verb] += len(y)
        own = (numbers < 100) | (numbers % 4 == 0)
        getattr(fleet, verb)(keys, X, y)
        getattr(model, verb)(X[own], y[own])
        assert model.n_hidden_ <= shared.MOST_UNITS
        assert words(fleet.prior_.mixture_.networks[0]) == words(model.mixture_.networks[0])
    single = fleet.prior_
    for t in range(8):  # one row at a time
        fleet.partial_fit(keys[:1], X[:1], y[:1])
        if (number["partial_fit"] + t) % 4 == 0:
            single.partial_fit(X[:1], y[:1])
    assert words(fleet.prior_.mixture_.networks[0]) == words(single.mixture_.networks[0])


@pytest.mark.parametrize("n_hidden", [1, 12])
def test_the_prior_stops_to_grow_and_goes_on_when_units_are_gone(n_hidden):
    random = np.random.default_rng(0)
    fleet = DEVDANFleet(DEVDAN(rehearse=0, n_hidden=n_hidden, learning_rate=1.0), random_state=1)
    for _ in range(20 // FEWER + 1):
        X = random.normal(size=(500 // FEWER, 6)) * random.normal(size=6) * 10
        fleet.partial_fit(random.integers(5, size=len(X)), X, random.integers(3, size=len(X)))
        assert fleet.prior_.n_hidden_ <= max(MOST_UNITS, n_hidden) + 1
    state = fleet.mixture_.networks[0]
    if fleet.prior_.n_hidden_ >= max(MOST_UNITS, n_hidden):
        assert Network(state).grows == 0.0
    assert all(Network(fleet[key].mixture_.networks[0]).grows == 1.0 for key in fleet)
    Network(state).n_hidden = 2
    fleet.partial_fit([0], X[:1], [0])
    assert Network(fleet.mixture_.networks[0]).grows == 1.0
    fleet.set_params(estimator__grow=False).partial_fit([0], X[:1], [0])
    assert Network(fleet.mixture_.networks[0]).grows == 0.0


@pytest.mark.uncompiled
def test_what_is_young_knows_the_same_but_has_counted_little():
    X, y = np.random.default_rng(0).normal(size=(400, 3)), np.arange(400) % 2
    model = DEVDAN(rehearse=0, random_state=0, class_weight="balanced").partial_fit(X, y + (X[:, 0] > 0))
    before = model.predict_proba(X)
    net = model.mixture_.nets[0]
    weight = kernel.predictor_weight(net, kernel.BY_AVERAGES)
    make_young(net)
    check_state(model.mixture_.networks[0])
    after = model.predict_proba(X)
    assert net.n_seen == net.n_events == net.n_learned.sum() == 0
    assert (net.scale_count.max(), net.input_count.max()) == (5, 20)
    assert net.class_count.sum() == pytest.approx(20)
    assert np.abs(after - before).max() < 0.2 + 0.5 * min(weight, 1 - weight)
    np.testing.assert_array_equal(net.encoder, net.encoder_slow)


def test_a_prior_helps_new_keys_of_a_common_concept():
    random = np.random.default_rng(0)
    fleets = [DEVDANFleet(prior=prior, random_state=0) for prior in (True, False)]
    right = []
    for t in range(20):
        X = random.normal(size=(60, 3))
        y = (X[:, 0] + X[:, 1] > 0).astype(int)
        keys = random.integers(t, t + 3, size=60)  # new ones all the time
        if t > 8:
            right.append([(fleet.predict(keys, X) == y).mean() for fleet in fleets])
        for fleet in fleets:
            fleet.partial_fit(keys, X, y)
    with_prior, without = np.mean(right, axis=0)
    assert with_prior > without + 0.1


# --- Unknown keys ------------------------------------------------------------------------------------------------


@pytest.mark.uncompiled
def test_keys_without_labels_are_predicted_by_the_prior_or_by_the_shares_of_classes():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(300, 3)), (np.arange(300) % 4 == 0).astype(int)
    fleet = DEVDANFleet(random_state=0).partial_fit(np.arange(300) % 3, X, y)
    np.testing.assert_array_equal(fleet.predict_proba([77] * 300, X), fleet.prior_.predict_proba(X))
    fleet = DEVDANFleet(random_state=0, prior=False).partial_fit(np.arange(300) % 3, X, y).observe([5], X[:1])
    mixed = fleet.predict_proba([77, 1, 5], X[:3])
    np.testing.assert_allclose(mixed[[0, 2]], [[0.75, 0.25]] * 2)
    np.testing.assert_array_equal(mixed[1:2], fleet[1].predict_proba(X[1:2]))
    assert 77 not in fleet
    assert not hasattr(fleet, "prior_")


def test_before_there_is_anything_to_predict_with_it_says_so():
    X = np.zeros((2, 3))
    fleet = DEVDANFleet()
    with pytest.raises(NotFittedError, match="has not seen a sample yet"):
        fleet.predict([1, 2], X)
    with pytest.raises(NotFittedError, match="has not seen a sample yet"):
        fleet.summary()
    assert (len(fleet), list(fleet), 3 in fleet) == (0, [], False)
    fleet.observe([1, 2], X)
    with pytest.raises(NotFittedError, match="has not been taught a label yet"):
        fleet.predict([1, 2], X)


# --- Keys --------------------------------------------------------------------------------------------------------

FORMS = [list, tuple, np.array, pd.Series, pl.Series, pa.array, lambda keys: np.array(keys, object), pd.Index]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("keys", [["a", "b", "a"], [3, -5, 3], [True, False, True], [2**62, 0, 2**62]])
def test_keys_in_every_form_that_people_have(form, keys):
    assert checked(form(keys), 3) == keys
    assert {type(key) for key in checked(form(keys), 3)} == {type(keys[0])}


def test_numbers_that_are_the_same_are_the_same_key():
    assert checked(np.array([1.0, 2.5]), 2) == [1, 2.5]
    assert [type(key) for key in checked([np.float32(1), np.int8(1), 1, np.uint64(1)], 4)] == [int] * 4
    assert checked([("a", np.int64(1)), ("b", 2.0)], 2) == [("a", 1), ("b", 2)]
    assert checked(pd.Series(["a", "b"], dtype="category"), 2) == ["a", "b"]
    assert checked([np.str_("a")], 1) == ["a"]


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ([None, 1], "must not be missing, got None in row 1"),
        ([1, np.nan], "must not be missing or infinite, got nan in row 2"),
        ([np.inf, 1], "must not be missing or infinite"),
        ([pd.NA, pd.NA], "must not be missing"),
        ([pd.NaT, pd.NaT], "must not be missing"),
        ([[1], [2]], "a key must be text, a number, a flag, or a tuple of text and numbers, got \\[1\\]"),
        ([{}, {}], "a key must be text"),
        ([b"a", b"b"], "a key must be text"),
        ([(), ()], "a key must be text"),
        ([("a", ("b",)), ("c",)], "a key must be text"),
        ([(True,), (1,)], "a key must be text"),
        ([("a", None), ("c",)], "must not be missing"),
        ([pd.Timestamp(0), pd.Timestamp(1)], "a key must be text"),
        ([1, "1"], "must be of one kind, here numbers such as 1, got '1'"),
        ([1, True], "must be of one kind, here numbers such as 1, got True"),
        (["a", ("a",)], "must be of one kind"),
        ([2**63, 1], "at most 64 bits"),
        ([-(2**63) - 1, 1], "at most 64 bits"),
        ([np.uint64(2**63), 1.0], "at most 64 bits"),
        ([1e300, 1], "at most 64 bits"),
        ("ab", "must be a list, an array or a column with one key for each row, or the name"),
        (5, "must be a list"),
        ({1: 2, 3: 4}, "must be a list"),
        ({1, 2}, "must be a list"),
        (None, "must be a list"),
        (np.zeros((2, 2)), "must have one axis"),
        (np.array(3), "must have one axis"),
        ([1], "one key for each row of X, got 1 keys for 2 rows"),
        ([1, 2, 3], "one key for each row"),
    ],
)  # fmt: skip
def test_keys_that_are_none(keys, message):
    X, y = np.zeros((2, 3)), [0, 1]
    fleet = DEVDANFleet(random_state=0)
    for use in (lambda: fleet.partial_fit(keys, X, y), lambda: fleet.observe(keys, X), lambda: fleet.teach(keys, X, y)):
        with pytest.raises((ValueError, TypeError), match=message):
            use()
    assert len(fleet) == 0
    fleet.partial_fit([1, 2], X, y)
    before = states(fleet)
    with pytest.raises((ValueError, TypeError), match=message):
        fleet.predict(keys, X)
    with pytest.raises((ValueError, TypeError), match=message):
        fleet.partial_fit(keys, X, y)
    assert states(fleet) == before


@pytest.mark.parametrize("kind", ["text", "numbers", "halves", "flags"])
@pytest.mark.parametrize("form", [pd.DataFrame, pa.Table.from_pandas, lambda frame: frame.to_dict("records")])
def test_keys_may_be_a_column_of_the_table(kind, form):
    """Which then is no feature: all is as if they came beside it."""
    random = np.random.default_rng(0)
    of = {"text": [f"{k:03}" for k in range(5)], "numbers": range(5), "halves": [0.5, 1, 7], "flags": [True, False]}
    keys, x = random.choice(list(of[kind]), 40), random.normal(size=40)
    frame = pd.DataFrame({"x": x, "whose": keys, "colour": random.choice(["red", "green"], 40)})
    beside, within = DEVDANFleet(random_state=0), DEVDANFleet(random_state=0)
    beside.partial_fit(keys, frame[["x", "colour"]], x > 0)
    within.partial_fit("whose", form(frame), x > 0)
    assert states(beside) == states(within)
    assert within.feature_names_in_.tolist() == ["x", "colour"]
    assert (beside.key_name_, within.key_name_) == (None, "whose")
    found = within.predict_proba("whose", form(frame))
    np.testing.assert_array_equal(found, beside.predict_proba(keys, frame[["x", "colour"]]))
    before = states(within)
    for wrong, table in (("nobody's", frame), ("whose", frame.assign(whose=[None] * 40)), ("whose", frame[["x"]])):
        with pytest.raises(ValueError, match=r"must have the column|must not be missing"):
            within.partial_fit(wrong, form(table), x > 0)
    assert states(within) == before


def test_a_fleet_keeps_to_its_kind_of_keys():
    X, y = np.zeros((2, 3)), [0, 1]
    fleet = DEVDANFleet(random_state=0).partial_fit(["a", "b"], X, y)
    uses = [
        lambda: fleet.predict([1, 2], X),
        lambda: fleet.observe([1, 2], X),
        lambda: fleet.__setitem__(1, fleet["a"]),
    ]
    for use in uses:
        with pytest.raises(ValueError, match="must be of one kind, here text such as 'a', got 1"):
            use()
    assert 1 not in fleet
    with pytest.raises(KeyError):
        fleet[1]
    with pytest.raises(KeyError):
        del fleet["c"]


def test_a_keys_text_is_its_own():
    texts = ["a", "1", "", '"', "\ud800", "é", "a\0b"]
    keys = [*texts, 1, -1, 1.5, 1e-300, True, False, ("a",), ("a", 1), ("a", "1"), (1.5,)]
    written = [text_of(key) for key in keys]
    assert len(set(written)) == len(keys)
    for key, text in zip(keys, written, strict=True):
        assert of_text(text) == key
        assert type(of_text(text)) is type(key)
    for wrong in ("", "[]", "null", "{}", "1.0", '["a",["b"]]', "[true]", " 1", "NaN", "1e400", "[" * 10_000):
        with pytest.raises(ValueError, match=r"key|Expecting"):
            of_text(wrong)


# --- Rows --------------------------------------------------------------------------------------------------------

WRONG = {
    "another width": (np.zeros((2, 4)), [0, 1], "X has 4 features"),
    "infinity": (np.full((2, 3), np.inf), [0, 1], "infinity"),
    "text": (np.array([["a"] * 3] * 2), [0, 1], "X must hold numbers"),
    "labels that are infinite": (np.zeros((2, 3)), [0, np.inf], r"NaN or infinity; observe\(X\) learns from samples"),
    "no labels": (np.zeros((2, 3)), None, "requires y"),
    "too few labels": (np.zeros((2, 3)), [0], "same number of samples"),
    "other labels": (np.zeros((2, 3)), ["x", "y"], "labels of the type seen so far"),
}


@pytest.mark.uncompiled
@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("prior", [False, True])
def test_rows_that_are_wrong_do_no_harm(wrong, prior):
    X, y, message = WRONG[wrong]
    fleet = DEVDANFleet(prior=prior, random_state=0).partial_fit(["a", "b"], np.zeros((2, 3)), [0, 1])
    before = pickle.dumps(fleet)
    for verb in ("partial_fit", "teach"):
        with pytest.raises(ValueError, match=message):
            getattr(fleet, verb)(["a", "new"], X, y)
    with pytest.raises(ValueError, match="0 sample"):
        fleet.partial_fit([], np.zeros((0, 3)), [])
    after = pickle.loads(before)
    assert states(fleet) == states(after)
    assert list(fleet) == ["a", "b"]
    again = fleet.partial_fit(["a", "new"], np.ones((2, 3)), [1, 1])
    assert states(again) == states(after.partial_fit(["a", "new"], np.ones((2, 3)), [1, 1]))


def test_labels_that_are_missing_are_observed_and_no_more():
    random = np.random.default_rng(0)
    keys, X, y = random.choice(["a", "b"], 60), random.random((60, 3)), random.integers(2, size=60).astype(float)
    known = np.arange(60) % 3 != 0
    table = pd.DataFrame(X, columns=list("xyz")).assign(key=keys)
    one = DEVDANFleet(random_state=0).partial_fit(keys, X, np.where(known, y, np.nan))
    two = DEVDANFleet(random_state=0).observe(keys, X).teach(keys[known], X[known], y[known].astype(int))
    assert states(one) == states(two)
    labels = [int(label) if there else None for label, there in zip(y, known, strict=True)]
    named = DEVDANFleet(random_state=0).partial_fit("key", table, labels)
    assert states(named) == states(two)
    assert named.key_name_ == "key"
    weighted = DEVDANFleet(random_state=0).partial_fit(keys, X, np.where(known, y, np.nan), sample_weight=1.0 * known)
    only = DEVDANFleet(random_state=0).observe(keys[known], X[known]).teach(keys[known], X[known], y[known].astype(int))
    assert states(weighted) == states(only)


@pytest.mark.parametrize(
    "keys",
    [["a", "b"], [("shop", 1), ("shop", 2)], [2**60 + 1, 0.5], [2**60 + 1, 2**60 + 2], [True, False], ("a", "b")],
    ids=repr,
)
def test_missing_labels_leave_keys_of_every_kind_as_they_are(keys):
    X, y = np.random.default_rng(0).random((20, 3)), np.arange(20) % 2
    partly = [None if row % 3 == 0 else label for row, label in enumerate(y.tolist())]
    known = np.array([label is not None for label in partly])
    every = type(keys)([*keys] * 10)
    one = DEVDANFleet(random_state=0).partial_fit(every, X, partly)
    two = DEVDANFleet(random_state=0).observe(every, X)
    two.teach([key for key, there in zip(every, known, strict=True) if there], X[known], y[known])
    assert states(one) == states(two)
    assert sorted(one) == sorted(keys)


def test_classes_are_named_for_all_keys_where_labels_are_missing():
    X, keys = np.random.default_rng(0).random((40, 3)), ["a", "b"] * 20
    y = [None if row % 3 == 0 else row % 2 for row in range(40)]
    fleet = DEVDANFleet(DEVDAN(rehearse=0, random_state=7), prior=False).partial_fit(keys, X, y, classes=[0, 1, 2])
    models = {
        key: DEVDAN(rehearse=0, random_state=7).partial_fit(X[own::2], y[own::2], classes=[0, 1, 2])
        for own, key in enumerate("ab")
    }
    assert states(fleet) == {key: words(model.mixture_.networks[0]) for key, model in models.items()}
    none = DEVDANFleet(prior=False).partial_fit(keys, X, [None] * 40, classes=[0, 1, 2])
    assert none.classes_.tolist() == [0, 1, 2]


def test_missing_labels_of_rows_with_text_in_plain_lists():
    X, keys = [[1.0, "x"], [2.0, "y"], [3.0, "x"]], ["a", "b", "a"]
    one = DEVDANFleet(random_state=0).partial_fit(keys, X, [0, 1, None])
    two = DEVDANFleet(random_state=0).observe(keys, X).teach(keys[:2], X[:2], [0, 1])
    assert states(one) == states(two)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"estimator": DEVDANEnsemble()}, r"estimator must be a DEVDAN\(rehearse=0\)"),
        ({"estimator": DEVDAN()}, "estimator must have rehearse=0, .* got rehearse=5"),
        ({"estimator": "DEVDAN"}, "estimator must be a DEVDAN"),
        ({"estimator": DEVDAN(rehearse=0, initial_weights={"encoder": np.eye(3)})}, "without initial weights"),
        ({"estimator": DEVDAN(rehearse=0, masking=2)}, "masking must be"),
        ({"n_jobs": 0}, "n_jobs must be an integer other than 0"),
        ({"prior": "yes"}, "prior must be True or False"),
        ({"max_in_memory": 0}, "max_in_memory must be an integer of at least 1 or None, got 0"),
        ({"max_in_memory": 10}, "max_in_memory=10 needs a store"),
        ({"store": 5}, "store must be a path, a KeyStore or None, got 5"),
    ],
)
def test_options_out_of_range(options, message):
    with pytest.raises(ValueError, match=message):
        DEVDANFleet(**options).partial_fit([1, 2], np.zeros((2, 3)), [0, 1])


def test_options_that_must_stay():
    fleet = DEVDANFleet().partial_fit([1, 2], np.zeros((2, 3)), [0, 1])
    for name, value in (("prior", False), ("store", "elsewhere")):
        with pytest.raises(ValueError, match=f"{name} must stay"):
            clone_with(fleet, name, value).partial_fit([1], np.zeros((1, 3)), [0])
    with pytest.raises(ValueError, match="scaling must stay 'standard'"):
        fleet.set_params(estimator=DEVDAN(rehearse=0, scaling=None)).partial_fit([1], np.zeros((1, 3)), [0])
    fleet.set_params(estimator=None, n_jobs=2).partial_fit([1], np.zeros((1, 3)), [0])


def clone_with(fleet, name, value):
    return copy.deepcopy(fleet).set_params(**{name: value})


# --- Access ------------------------------------------------------------------------------------------------------


def learned(**options):
    fleet = DEVDANFleet(**{"random_state": 1, **options})
    for keys, X, y in portions(n_keys=6):
        fleet.partial_fit(keys, X, y)
    return fleet


def test_a_key_as_a_model_of_its_own_goes_on_as_the_key_does():
    fleet = learned()
    rows = list(portions(seed=9, n_portions=2, n_keys=1))
    model = fleet[0]
    assert model.n_seen_ == fleet.summary().to_pandas().set_index("key")["samples"][0]
    for keys, X, y in rows:
        fleet.partial_fit(keys, X, y)
        model.partial_fit(X, y)
    own = np.isin(fleet.classes_, model.classes_)
    np.testing.assert_array_equal(fleet.predict_proba(keys, X)[:, own], model.predict_proba(X))
    assert model.events_ == fleet[0].events_
    assert len(model.events_) <= EVENTS
    untouched = fleet[1]
    untouched.partial_fit(X, y)
    assert words(untouched.mixture_.networks[0]) != states(fleet)[1]


def test_a_model_becomes_a_key():
    fleet, other = learned(), learned(random_state=2)
    model = other[3]
    fleet[3] = fleet[100] = model
    assert len(fleet) == 7
    for keys, X, y in portions(seed=9, n_portions=2, n_keys=1):
        fleet.partial_fit(keys + 100, X, y)
        model.partial_fit(X, y)
    assert words(fleet[100].mixture_.networks[0]) == words(model.mixture_.networks[0])
    assert words(fleet[3].mixture_.networks[0]) == words(other[3].mixture_.networks[0])
    del fleet[3]
    assert 3 not in fleet
    assert len(fleet) == 6


def test_a_fleet_of_models_that_there_were_before():
    X, y = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) % 3
    models = {key: DEVDAN(rehearse=0, random_state=k).partial_fit(X[k::2], y[k::2] + k) for k, key in enumerate("ab")}
    for prior in (True, False):
        fleet = DEVDANFleet(prior=prior)
        for key, model in models.items():
            fleet[key] = model
        assert fleet.classes_.tolist() == [0, 1, 2, 3]
        own = copy.deepcopy(models)
        for key, model in own.items():
            np.testing.assert_array_equal(
                fleet.predict_proba([key] * 60, X)[:, np.isin(fleet.classes_, model.classes_)], model.predict_proba(X)
            )
        np.testing.assert_allclose(fleet.predict_proba(["c"], X[:1]), 0.25)
        fleet.partial_fit(["a", "b", "c"] * 20, X, y)
        for k, model in enumerate(own.values()):
            model.partial_fit(X[k::3], y[k::3])
        assert {key: state for key, state in states(fleet).items() if key != "c"} == {
            key: words(model.mixture_.networks[0]) for key, model in own.items()
        }


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (DEVDANEnsemble().fit(np.zeros((2, 4)), [0, 1]), r"must be a DEVDAN\(rehearse=0\)"),
        (DEVDAN().fit(np.zeros((2, 4)), [0, 1]), "a key's model must have rehearse=0, .* got rehearse=5"),
        (DEVDAN(rehearse=0), "has not seen a sample"),
        (DEVDAN(rehearse=0).fit(np.zeros((2, 3)), [0, 1]), "must have the features of this fleet, 4, got 3"),
        (DEVDAN(rehearse=0).fit(pd.DataFrame(np.eye(4), columns=list("abcd")), [0, 1] * 2), "must have the features"),
        (DEVDAN(rehearse=0, scaling="minmax").fit(np.eye(4), [0, 1] * 2), "scaling must be 'standard', as in"),
        (DEVDAN(rehearse=0).fit(np.zeros((2, 4)), ["x", "y"]), "labels of the type seen so far"),
    ],
)  # fmt: skip
def test_a_model_that_does_not_fit(model, message):
    fleet = learned()
    before = states(fleet)
    with pytest.raises(ValueError, match=message):
        fleet[1] = model
    assert states(fleet) == before
    assert fleet.classes_.tolist() == [0, 1, 2, 3]


def test_models_with_encoded_columns_come_from_the_same_fleet():
    table = pd.DataFrame({"x": [1.0, 2.0, 3.0], "colour": ["red", "blue", "red"]})
    fleet = DEVDANFleet(random_state=0).partial_fit(["a", "b", "a"], table, [0, 1, 0])
    before = fleet["a"]
    fleet.partial_fit(["b"], table[:1].assign(colour="green"), [1])
    fleet["c"] = before  # of an earlier version
    fleet["d"] = fleet["b"]
    np.testing.assert_array_equal(fleet.predict_proba(["c"] * 3, table), fleet.predict_proba(["a"] * 3, table))
    alone = DEVDAN(rehearse=0, random_state=0).partial_fit(table.assign(colour="pink"), [0, 1, 0])
    with pytest.raises(ValueError, match="must be encoded as those of this fleet"):
        fleet["e"] = alone


def test_the_summary_has_a_row_for_each_key():
    fleet = DEVDANFleet(random_state=0)
    X = np.random.default_rng(0).normal(size=(400, 2))
    y = (X[:, 0] > 0).astype(int)
    right = {"a": [], "b": []}
    for t in range(0, 300, 10):
        keys = np.array(["a", "b"])[(np.arange(t, t + 10) % 3 == 0).astype(int)]
        if t > 0:
            hits = fleet.predict(keys, X[t : t + 10]) == y[t : t + 10]
            for key in right:
                right[key] += hits[keys == key].tolist()
        fleet.partial_fit(keys, X[t : t + 10], y[t : t + 10])
    fleet.observe(["a", "c"], X[300:302]).teach(["a"], X[300:301], y[300:301])
    table = fleet.summary().to_pandas().set_index("key")
    assert fleet.summary().column_names[0] == "key"
    assert table["samples"].to_dict() == {"a": 201, "b": 100, "c": 1}
    assert table["labels"].to_dict() == {"a": 201, "b": 100, "c": 0}
    assert table["units"].to_dict() == {key: fleet[key].n_hidden_ for key in "abc"}
    assert table["accuracy"]["b"] == np.mean(right["b"][-64:])
    assert np.isnan(table["accuracy"]["c"])
    assert table["last_seen"].to_dict() == {"a": 303, "b": 300, "c": 302}
    assert fleet.n_rows_ == 303
    assert table["real_drifts"].to_dict() == {key: fleet[key].drifts_["discriminative"] for key in "abc"}
    assert table["virtual_drifts"].to_dict() == {key: fleet[key].drifts_["generative"] for key in "abc"}
    pairs = DEVDANFleet().partial_fit([("a", 1), ("b", 2)], X[:2], y[:2])
    assert pairs.summary()["key"].to_pylist() == ['["a",1]', '["b",2]']
    numbers = DEVDANFleet().partial_fit([2**62 + 1, 0.5], X[:2], y[:2])
    assert numbers.summary()["key"].to_pylist() == [2.0**62, 0.5]


def test_how_large_it_is_and_the_model_of_all_rows():
    keys, X, y = next(portions())
    fleet, model = DEVDANFleet(random_state=0).partial_fit(keys, X, y), DEVDAN(random_state=0).partial_fit(X, y)
    assert (fleet.n_keys, fleet.size_) == (len(fleet), (len(fleet), "keys"))
    assert (model.n_keys, model.size_) == (0, (model.n_hidden_, "hidden units"))
    assert words(fleet.common_.mixture_.networks[0]) == words(fleet.prior_.mixture_.networks[0])
    assert model.common_ is model


def test_what_it_shows():
    fleet = learned()
    assert repr(fleet) == f"<DEVDANFleet(random_state=1): 6 keys, 4 features after {fleet.n_rows_:,} rows>"
    assert repr(DEVDANFleet(prior=False)) == "DEVDANFleet(prior=False)"
    assert fleet.n_features_in_ == 4
    assert not hasattr(fleet, "feature_names_in_")
    assert [str(name) for name in fleet.encoding_.columns] == ["x0", "x1", "x2", "x3"]
    assert set(clone(fleet).get_params()) >= {"estimator", "prior", "n_jobs", "store", "max_in_memory", "random_state"}
    assert len(clone(fleet)) == 0


def test_a_key_takes_little_memory():
    random = np.random.default_rng(0)
    fleet = DEVDANFleet(random_state=0)
    for _ in range(40 // FEWER):
        keys, X = random.integers(20, size=100), random.normal(size=(100, 10))
        fleet.partial_fit(keys, X, (X[:, 0] * (keys % 2 - 0.5) > 0).astype(int))
    sizes = [fleet._networks.slots._words[slot].nbytes for slot in fleet._networks.slots.in_use()]
    assert np.mean(sizes) < 8 * 1024
    assert {fleet[key].mixture_.nets[0].max_events for key in fleet} == {EVENTS}


def test_a_network_that_grows_moves_alone():
    fleet = learned()
    memory = fleet._networks.slots
    before = {key: memory.table[slot, kernel.STATE] for key, slot in memory.index.items()}
    key = next(iter(fleet))
    memory.make_room(memory.index[key], hidden=100)
    after = {key: memory.table[slot, kernel.STATE] for key, slot in memory.index.items()}
    assert {other for other in before if before[other] != after[other]} == {key}
    assert before[key] % 64 == after[key] % 64 == 0


# --- Copies, threads, interruptions ------------------------------------------------------------------------------


def test_copies_go_on_alike():
    fleet = learned()
    twins = [copy.deepcopy(fleet), pickle.loads(pickle.dumps(fleet))]
    for keys, X, y in portions(seed=9, n_portions=3, n_keys=9):
        for each in (fleet, *twins):
            each.partial_fit(keys, X, y)
    assert states(fleet) == states(twins[0]) == states(twins[1])
    assert words(fleet.prior_.mixture_.networks[0]) == words(twins[0].prior_.mixture_.networks[0])


def test_threads_that_share_a_fleet_wait_for_each_other():
    """The same keys from several threads: nothing is lost, nothing mixed up."""
    fleet = DEVDANFleet(prior=False, random_state=0)
    X, y = np.random.default_rng(0).normal(size=(200, 3)), np.arange(200) % 2
    errors = []

    def work(start):
        try:
            for t in range(start, 200, 4):
                fleet.partial_fit([t % 5, 7], X[[t, t]], y[[t, t]])
                fleet.predict([t % 5], X[t : t + 1])
                assert 7 in fleet
        except BaseException as error:
            errors.append(error)

    workers = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert errors == []
    samples = dict(zip(*(fleet.summary()[name].to_pylist() for name in ("key", "samples")), strict=True))
    assert samples == {**dict.fromkeys(range(5), 40), 7: 200}


@pytest.mark.parametrize("prior", [False, True])
def test_ctrl_c_while_keys_are_new_leaves_no_key_half_made(monkeypatch, prior):
    fleet = learned(prior=prior)
    before = states(fleet)
    grouped = shared.grouped

    def interrupted(slots, *more):
        if len(slots) > 0:
            raise KeyboardInterrupt
        return grouped(slots, *more)

    monkeypatch.setattr(shared, "grouped", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fleet.partial_fit([50, 51], np.zeros((2, 4)), [0, 1])
    monkeypatch.undo()
    assert states(fleet) == before
    assert len(fleet) == len(before)
    assert states(fleet.partial_fit([50], np.zeros((1, 4)), [0])).keys() == {*before, 50}


def test_ctrl_c_in_threads_waits_for_what_has_begun():
    begun, go_on, started, ended = threading.Event(), threading.Event(), [], []

    def slow():
        started.append(True)
        begun.set()
        go_on.wait()
        ended.append(True)

    def interrupted():
        begun.wait()
        threading.Timer(0.0, go_on.set).start()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        threads.run([slow, interrupted, *[slow] * 5], 2)
    assert len(ended) == len(started) > 0
    assert threads.run([lambda: 1, lambda: 2], 2) == [1, 2]
