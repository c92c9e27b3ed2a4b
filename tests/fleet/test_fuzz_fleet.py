"""A fleet in any order of its verbs, with input that nobody should bring, against a dict of models; and its files.

What the fleet takes is also given to the models, each its own rows; what it refuses is not. So as long as both are the
same to the bit, no key is mixed up with another and an error does no harm. ``make fuzz`` looks longer.
"""

import copy
import json
import pickle
import shutil
import sqlite3
import tempfile
import zlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from fleets import rewritten, words
from hostile import BROKEN, CLASSES, DEEP, MISLABELLED, VALUES, WORDS, changes, labels, tables
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from machines import ERRORS, GOOD_OPTIONS, START_OPTIONS, in_batches, options, sample_weights

from devdan import DEVDAN, DEVDANFleet, ModelFileError
from devdan.kernel import Network
from devdan.kernel.state import check_state, set_settings
from devdan.model.classes import check_labels, partly_labelled

pytestmark = pytest.mark.fuzz
KINDS = {  # keys, few so that they come again
    "text": ["a", "b", "", "é\ud800", "1", "a" * 300],
    "numbers": [0, 1, -5, 2**63 - 1, 1.5, 1e-300],
    "flags": [True, False],
    "tuples": [("a", 1), ("a", "1"), ("a",), (0.5, "x")],
}
MISSING = {"NaN", "Nones", "NaN among text", "missing"}  # of what are no labels: partial_fit observes these rows
NO_KEYS = [None, np.nan, [1], {}, b"a", (), object(), np.inf, pd.NA, 2**70, ("a", None)]
ANY = st.data()


class FleetFace(RuleBasedStateMachine):
    """A fleet without a prior, in memory."""

    def new(self, chosen):
        return DEVDANFleet(DEVDAN(random_state=0, **chosen), prior=False, random_state=0, n_jobs=1)

    @initialize(data=ANY, kind=st.sampled_from(sorted(KINDS)), classes=st.sampled_from(sorted(CLASSES)))
    def begin(self, data, kind, classes):
        self.folder = tempfile.TemporaryDirectory()
        self.kind, self.classes = kind, classes
        self.fleet, self.models = self.new(data.draw(options(START_OPTIONS)) | {"rehearse": 0}), {}
        X = data.draw(tables(3))
        self.learn_rows("partial_fit", data.draw(self.keys(len(X))), X, data.draw(labels(len(X), classes)))

    def teardown(self):
        if hasattr(self, "fleet"):
            self.fleet.close()
            self.folder.cleanup()

    def keys(self, n):
        return st.lists(st.sampled_from(KINDS[self.kind]), min_size=n, max_size=n)

    def model(self, key):
        """The model of a key, made where there is none."""
        if key not in self.models:
            self.models[key] = copy.deepcopy(self.fleet._member)
        return self.models[key].set_params(**self.fleet._member.get_params())

    def learn_rows(self, verb, keys, X, y=None, weights=None):
        """Let the fleet learn, and the models unless it refuses."""
        labelled = () if verb == "observe" else (y,)
        given = {} if weights is None else {"sample_weight": weights}
        try:
            getattr(self.fleet, verb)(keys, X, *labelled, **given)
        except ERRORS:
            return
        labels, known = None, np.ones(len(X), bool)
        if verb != "observe":
            labels, known = partly_labelled(y) or (check_labels(y), known)
        weights = np.ones(len(X)) if weights is None else np.array(weights, dtype=float)

        def learn(verb, rows):
            for key in dict.fromkeys(key for key, there in zip(keys, rows.tolist(), strict=True) if there):
                own = np.array([other == key for other in keys]) & rows
                labelled = () if verb == "observe" else (labels[own],)
                more = {"sample_weight": weights[own]} if given else {}
                getattr(self.model(key), verb)(X[own], *labelled, **more)

        if known.all():
            learn(verb, weights > 0)
        else:  # rows without a label are observed, and no more
            learn("observe", weights > 0)
            learn("teach", (weights > 0) & known)

    @rule(data=ANY, verb=st.sampled_from(["partial_fit", "partial_fit", "observe", "teach"]), times=st.integers(1, 20))
    def learn(self, data, verb, times):
        X = np.tile(data.draw(tables(3)), (times, 1))
        self.learn_rows(verb, data.draw(self.keys(len(X))), X, data.draw(labels(len(X), self.classes)))

    @rule(data=ANY)
    def learn_weighted(self, data):
        X = data.draw(tables(3))
        y, weights = data.draw(labels(len(X), self.classes)), data.draw(sample_weights(len(X)))
        self.learn_rows("partial_fit", data.draw(self.keys(len(X))), X, y, weights)

    @rule(data=ANY, verb=st.sampled_from(["partial_fit", "observe", "teach", "predict"]))
    def bring_what_is_wrong(self, data, verb):
        """Wrong keys, rows or labels: it must say so."""
        X = data.draw(tables(3))
        keys, y = data.draw(self.keys(len(X))), data.draw(labels(len(X), self.classes))
        what = data.draw(st.sampled_from(["keys", "kind", "rows"] + ["labels"] * (verb in ("partial_fit", "teach"))))
        if what == "keys":
            keys[data.draw(st.integers(0, len(keys) - 1))] = data.draw(st.sampled_from(NO_KEYS))
        elif what == "kind":
            other = data.draw(st.sampled_from(sorted(KINDS.keys() - {self.kind})))
            keys = [KINDS[other][0]] * len(keys)
        elif what == "rows":
            X = BROKEN[data.draw(st.sampled_from(sorted(BROKEN)))](X)
        else:
            wrong = sorted(MISLABELLED if verb == "teach" else MISLABELLED.keys() - MISSING)
            y = MISLABELLED[data.draw(st.sampled_from(wrong))](len(X))
        with pytest.raises(ERRORS):
            getattr(self.fleet, verb)(keys, X, *((y,) if verb in ("partial_fit", "teach") else ()))

    @rule(data=ANY, share=st.sampled_from([0.0, 0.3, 0.9]))
    def learn_partly(self, data, share):
        """Labels that are missing, or some of them, in any form."""
        X = data.draw(tables(3))
        y = np.ravel(data.draw(labels(len(X), self.classes))).astype(object)
        random = np.random.default_rng(data.draw(st.integers(0, 2**16)))
        y[random.random(len(X)) >= share] = data.draw(st.sampled_from([None, np.nan, pd.NA]))
        form = data.draw(st.sampled_from([np.asarray, list, pd.Series]))
        n_rows = self.fleet.n_rows_
        self.learn_rows("partial_fit", data.draw(self.keys(len(X))), X, form(y))
        assert self.fleet.n_rows_ > n_rows

    @rule(data=ANY, name=st.sampled_from(sorted(MISSING)))
    def learn_without_labels(self, data, name):
        X = data.draw(tables(3))
        self.learn_rows("partial_fit", data.draw(self.keys(len(X))), X, MISLABELLED[name](len(X)))

    @rule(data=ANY)
    def predictions_are_the_models(self, data):
        X = data.draw(tables(3))
        keys = data.draw(self.keys(len(X)))
        found = self.fleet.predict_proba(keys, X)
        np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-9)
        for row, key in enumerate(keys):
            model = self.models.get(key)
            if model is not None and hasattr(model, "classes_"):
                own = np.searchsorted(self.fleet.classes_, model.classes_)
                np.testing.assert_array_equal(found[row, own], model.predict_proba(X[row : row + 1])[0])
        assert set(self.fleet.predict(keys, X).tolist()) <= set(self.fleet.classes_.tolist())

    @rule(data=ANY)
    def delete(self, data):
        key = data.draw(st.sampled_from(KINDS[self.kind]))
        assert (key in self.fleet) == (key in self.models)
        if key in self.models:
            del self.fleet[key], self.models[key]
            assert key not in self.fleet

    @rule(data=ANY)
    def put_a_model(self, data):
        """A copy of another key's, that has learned something else meanwhile."""
        key = data.draw(st.sampled_from(KINDS[self.kind]))
        if self.models:
            model = self.fleet[data.draw(st.sampled_from(sorted(self.models, key=repr)))].observe(data.draw(tables(3)))
            self.fleet[key], self.models[key] = model, model

    @rule(chosen=options({name: values for name, values in GOOD_OPTIONS.items() if name != "class_weight"}))
    def set_good_options(self, chosen):
        self.fleet.set_params(**{f"estimator__{name}": value for name, value in chosen.items()})

    @rule(copied=st.sampled_from([copy.deepcopy, lambda fleet: pickle.loads(pickle.dumps(fleet))]))
    def copy(self, copied):
        if self.fleet.store is None:
            self.fleet = copied(self.fleet)

    @rule(elsewhere=st.booleans())
    def save_and_load(self, elsewhere):
        path = Path(self.folder.name) / ("other" if elsewhere else "fleet")
        member = self.fleet._member
        self.fleet.save(path)
        if self.fleet.store is None or not elsewhere:
            self.fleet.close()
            self.fleet = DEVDANFleet.load(path).set_params(estimator=member)

    @invariant()
    def keys_are_those_of_the_models(self):
        if hasattr(self, "fleet"):
            assert len(self.fleet) == len(self.models)
            assert set(self.fleet) == set(self.models)

    @invariant()
    def networks_are_those_of_the_models(self):
        if hasattr(self, "fleet"):
            for key, model in self.models.items():
                state, own = self.fleet[key].mixture_.networks[0], model.mixture_.networks[0].copy()
                check_state(state)
                set_settings(Network(own), self.fleet._shared.settings)  # a model is told of options when it learns
                for net in (Network(state), Network(own)):
                    net.class_weight[:] = 0.0  # which a model that has been given them sets whenever it learns
                assert words(state) == words(own)


class StoredFace(FleetFace):
    """The same with two keys in memory, and the others in a store."""

    def new(self, chosen):
        path = Path(self.folder.name) / "fleet"
        return DEVDANFleet(DEVDAN(random_state=0, **chosen), prior=False, store=path, max_in_memory=2, n_jobs=1)


test_fleet = in_batches(FleetFace)
test_stored = in_batches(StoredFace)


# --- Files -------------------------------------------------------------------------------------------------------

X, Y, NAMES = np.random.default_rng(0).normal(size=(12, 3)), np.arange(12) % 3, np.array(["dry", "rain", "snow"])


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A fleet with a prior, and one of tables without."""
    folder = tmp_path_factory.mktemp("fleets")
    DEVDANFleet(random_state=0).partial_fit(["a", "b", "c"] * 4, X, Y).save(folder / "prior")
    table = pd.DataFrame({"x": X[:, 0], "name": NAMES[Y]})
    DEVDANFleet(prior=False, random_state=0).partial_fit([1, 2, 3] * 4, table, NAMES[Y]).save(folder / "table")
    return folder


def loads_or_says_so(path, max_in_memory=None):
    """Whatever is loaded predicts and learns on."""
    try:
        fleet = DEVDANFleet.load(path, max_in_memory=max_in_memory)
    except ModelFileError:
        return
    try:
        keys = list(fleet) or [fleet._example]
        rows = np.abs(np.tile(X, (1, 40))[: len(keys), : fleet.n_features_in_]) % 1
        if hasattr(fleet, "feature_names_in_"):
            rows = pd.DataFrame(rows, columns=fleet.feature_names_in_)
        fleet.observe(keys, rows)
        fleet.partial_fit(keys, rows, np.resize(fleet.classes_, len(keys)))
        np.testing.assert_allclose(fleet.predict_proba(keys, rows).sum(axis=1), 1, atol=1e-9)
        assert len(fleet.summary()) == len(set(fleet))
    except ModelFileError:  # of networks that are only read when they are needed
        assert max_in_memory is not None
    finally:
        fleet.close()


@given(name=st.sampled_from(["prior", "table"]), change=changes(60_000), limit=st.sampled_from([None, 1]))
@settings(max_examples=settings.default.max_examples // 2)
def test_altered_bytes(files, name, change, limit):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "altered"
        path.write_bytes(change((files / name).read_bytes()))
        loads_or_says_so(path, limit)


@given(data=ANY, limit=st.sampled_from([None, 1]))
@settings(max_examples=settings.default.max_examples // 2)
def test_altered_states(files, data, limit):
    """Words of a network that a checksum was made for."""

    def change(state):
        state = state.copy()
        for _ in range(data.draw(st.integers(1, 3))):
            state[data.draw(st.integers(0, data.draw(st.sampled_from([24, 84, len(state)])) - 1))] = data.draw(WORDS)
        return state

    name, key = data.draw(st.sampled_from([("prior", '"b"'), ("table", "2")]))
    with tempfile.TemporaryDirectory() as folder:
        path = shutil.copy(files / name, Path(folder) / "altered")
        connection = sqlite3.connect(path, isolation_level=None)
        rewritten(connection, key, state=change)
        connection.close()
        loads_or_says_so(path, limit)


@given(data=ANY, name=st.sampled_from(["prior", "table"]), value=VALUES, limit=st.sampled_from([None, 1]))
@settings(max_examples=settings.default.max_examples // 2)
def test_altered_headers(files, data, name, value, limit):
    """Something else for one of the entries, at any depth, or nothing at all."""
    with tempfile.TemporaryDirectory() as folder:
        path = shutil.copy(files / name, Path(folder) / "altered")
        connection = sqlite3.connect(path, isolation_level=None)
        facts = dict(connection.execute("SELECT name, value FROM fleet"))
        header = part = json.loads(facts["header"])
        key = data.draw(st.sampled_from(sorted(part)))
        while isinstance(part[key], dict) and part[key] and data.draw(st.booleans()):
            part = part[key]
            key = data.draw(st.sampled_from(sorted(part)))
        part[key] = DEEP if value == "deep" else value
        if data.draw(st.booleans()):
            del part[key]
        text = json.dumps(header).encode()
        connection.execute("UPDATE fleet SET value = ? WHERE name = 'header'", (text,))
        checksum = zlib.crc32(facts["network"], zlib.crc32(text))
        connection.execute("UPDATE fleet SET value = ? WHERE name = 'checksum'", (checksum,))
        connection.close()
        loads_or_says_so(path, limit)
