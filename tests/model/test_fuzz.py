"""All verbs of all faces in any order, with input that nobody should bring.

Each machine drives a model and its twin, a copy made at some time before. What the model takes is also given to the
twin; what it refuses is not. So as long as both are the same to the bit, copies go on alike and an error does no harm.
``make fuzz`` looks longer.
"""

import json
import tempfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hostile import BROKEN, CELLS, CLASSES, EXTREMES, FORMS, MISLABELLED, NO_CELLS, labels, mixed, tables
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule
from machines import (
    BAD_WEIGHTS,
    GOOD_OPTIONS,
    GOOD_WEIGHTS,
    START_OPTIONS,
    Twins,
    in_batches,
    options,
    sample_weights,
)
from networks import SMALL, words
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from devdan import DEVDAN, DEVDANEnsemble, kernel

ANY = st.data()


# --- scikit-learn's face -----------------------------------------------------------------------------------------

MEMBER_OPTIONS = {name: values for name, values in START_OPTIONS.items() if name not in ("n_hidden", "rehearse")}
BAD_VALUES = st.sampled_from([None, "text", -1, 0, 1, 2.5, 10**400, np.nan, np.inf, [], {}, np.zeros(2), object()])


class SklearnFace(Twins):
    """DEVDAN of one layer."""

    starts = START_OPTIONS

    def new(self, chosen):
        return DEVDAN(random_state=0, **chosen)

    @initialize(data=ANY, kind=st.sampled_from(sorted(CLASSES)))
    def begin(self, data, kind):
        chosen = data.draw(options(self.starts))
        self.model, self.twin, self.kind = self.new(chosen), self.new(chosen), kind
        if data.draw(st.booleans()):
            X = self.table(data)
            assert self.attempt("partial_fit", X, data.draw(labels(len(X), kind)))

    def words(self, model):
        if not model.__sklearn_is_fitted__():
            return None
        known = model._classes
        names = getattr(model, "feature_names_in_", np.empty(0))
        return (
            [state.tobytes() for state in model.mixture_.networks],
            known.labels.tolist(),
            known.outputs.tolist(),
            [*names],
        )

    def states(self):
        return self.model.mixture_.networks if self.model.__sklearn_is_fitted__() else []

    def table(self, data):
        return data.draw(tables(getattr(self.model, "n_features_in_", 3)))

    def given(self, data):
        """Samples as they come, mostly legal."""
        X = self.table(data)
        form = data.draw(st.sampled_from([*FORMS, *FORMS, *BROKEN]))
        return len(X), (FORMS | BROKEN)[form](X)

    def labelled(self, data):
        n, X = self.given(data)
        kind = data.draw(st.sampled_from([self.kind] * 8 + sorted(CLASSES)))
        broken = data.draw(st.sampled_from([None] * 4 * len(MISLABELLED) + sorted(MISLABELLED)))
        return X, data.draw(labels(n, kind)) if broken is None else MISLABELLED[broken](n)

    @rule(data=ANY, verb=st.sampled_from(["fit", *["partial_fit"] * 4, "teach"]))
    def learn(self, data, verb):
        self.attempt(verb, *self.labelled(data))

    @rule(data=ANY, verb=st.sampled_from(["fit", *["partial_fit"] * 4, "teach"]))
    def learn_weighted(self, data, verb):
        n, X = self.given(data)
        self.attempt(verb, X, data.draw(labels(n, self.kind)), sample_weight=data.draw(sample_weights(n)))

    @rule(data=ANY, times=st.integers(1, 30))
    def learn_long(self, data, times):
        X = np.tile(self.table(data), (times, 1))
        self.attempt("partial_fit", X, data.draw(labels(len(X), self.kind)))

    @rule(data=ANY)
    def learn_with_classes(self, data):
        X, y = self.labelled(data)
        self.attempt("partial_fit", X, y, classes=self.labelled(data)[1])

    @rule(
        data=ANY,
        verb=st.sampled_from(
            ["observe", "predict", "predict_proba", "transform", "reconstruct", "explain", "score_samples"]
        ),
    )
    def use(self, data, verb):
        if hasattr(self.model, verb):
            self.attempt(verb, self.given(data)[1])

    @rule(data=ANY)
    def score(self, data):
        n, X = self.given(data)
        self.attempt("score", X, data.draw(labels(n, self.kind)))

    def good(self, chosen):
        return chosen

    @rule(chosen=options(GOOD_OPTIONS))
    def set_good_options(self, chosen):
        self.attempt("set_params", **self.good(chosen))

    @rule(value=BAD_VALUES, data=ANY)
    def set_a_bad_option(self, value, data):
        name = data.draw(st.sampled_from([*self.model.get_params(deep=False), "unknown"]))
        before = self.model.get_params(deep=False).get(name)
        if name == "random_state" and value is None:
            return  # a good one, with which twins differ
        self.attempt("set_params", **{name: value})
        self.attempt("partial_fit", *self.labelled(data))
        self.attempt("set_params", **{name: before})

    @rule()
    def save_and_load(self):
        with tempfile.TemporaryDirectory() as folder:
            if self.attempt("save", Path(folder) / "m"):
                loaded = type(self.model).load(Path(folder) / "m")
                self.twin, self.model = self.model.set_params(**loaded.get_params(deep=False)), loaded

    @rule(really=st.sampled_from([False] * 5 + [True]))
    def start_over(self, really):
        if really:
            self.model, self.twin = clone(self.model), clone(self.twin)

    @rule(data=ANY)
    def predictions_are_probabilities(self, data):
        X = self.table(data)
        X = X if not hasattr(self.model, "feature_names_in_") else pd.DataFrame(X, columns=self.model.feature_names_in_)
        try:
            probabilities = self.model.predict_proba(X)
        except NotFittedError:
            assert not hasattr(self.model, "classes_")
            return
        assert probabilities.shape == (len(X), len(self.model.classes_))
        assert (probabilities >= 0).all()
        np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-9)
        assert set(self.model.predict(X).tolist()) <= set(self.model.classes_.tolist())
        self.outputs_are_finite(X)
        self.reasons_are_finite(X)

    def reasons_are_finite(self, X):
        scores, shares = self.model.score_samples(X), self.model.importances_
        assert ((scores >= -1) & (scores <= 0)).all()
        assert min(shares.values()) >= 0
        assert sum(shares.values()) == pytest.approx(1) or not any(shares.values())
        assert all(np.isfinite(value) for unit in self.model.units_ for part in unit[3:] for _, value in part)
        if len(self.model.classes_) > 1:
            told = self.model.explain(X)
            np.testing.assert_allclose(told.contributions.sum(axis=1), told.log_odds - told.baseline, atol=1e-6)

    def outputs_are_finite(self, X):
        """The hidden units and what the decoder makes of them, apart from features that were never there."""
        hidden, again = np.asarray(self.model.transform(X)), np.asarray(self.model.reconstruct(X))
        assert hidden.shape == (len(X), self.model.n_hidden_)
        assert np.isfinite(hidden).all()
        assert not np.isinf(again).any()
        assert all(np.isfinite(weights).all() for weights in self.model.weights_.values())


class TableFace(SklearnFace):
    """DEVDAN on tables with cells of all kinds, of which some are of none."""

    def new(self, chosen):
        return DEVDAN(random_state=0, max_categories=3, **chosen)

    def words(self, model):
        encoding = model._encoding if model.__sklearn_is_fitted__() else None
        return super().words(model), None if encoding is None else json.dumps(encoding.to_json())

    def table(self, data):
        return data.draw(mixed())

    def given(self, data):
        X = data.draw(mixed(cells=data.draw(st.sampled_from([*[CELLS] * 5, st.one_of(CELLS, NO_CELLS)]))))
        return len(X), X

    def learn_long(self, data, times):
        pass  # rows of a table cannot be repeated as an array's can

    @rule(data=ANY)
    def predictions_are_probabilities(self, data):
        X = self.table(data)
        try:
            probabilities = self.model.predict_proba(X)
        except NotFittedError:
            return
        assert np.isfinite(probabilities).all()
        inputs = self.model.encode(X)
        assert inputs.shape == (len(X), kernel.Network(self.states()[0]).n_features)
        assert not np.isinf(inputs).any()


class EnsembleFace(SklearnFace):
    """A DEVDANEnsemble."""

    starts = MEMBER_OPTIONS

    def new(self, chosen):
        return DEVDANEnsemble(SMALL, random_state=0, estimator=DEVDAN(**chosen))

    def good(self, chosen):
        return {f"estimator__{name}": value for name, value in chosen.items()}

    def outputs_are_finite(self, X):
        pass  # it shows none


# --- River's face ------------------------------------------------------------------------------------------------

NAMES = st.sampled_from(["a", "b", "c", "d", "", 1, 2.5, ("t", 1), None])
NUMBERS = st.one_of(st.floats(-5, 5), st.sampled_from([*EXTREMES.tolist(), 3, True, None, np.float32(2), np.int8(1)]))
NO_NUMBERS = st.one_of(
    CELLS, st.sampled_from([np.inf, -np.inf, "text", 10**400, 1j, [1, 2], np.zeros(2), {}, object(), b"?", pd.NA])
)
NO_SAMPLES = st.sampled_from([None, 5, "text", [1.0], {1.0}, np.zeros(2)])
SAMPLES = st.one_of(
    *[st.dictionaries(NAMES, NUMBERS, max_size=5)] * 4, st.dictionaries(NAMES, NO_NUMBERS, max_size=3), NO_SAMPLES
)
GOOD_LABELS = [True, False, "rain", 3]
RIVER_LABELS = st.sampled_from(
    [*GOOD_LABELS * 3, None, ("a", 1), b"x", 2.5, "long " * 100, np.nan, pd.NA, pd.NaT, [1], {}, np.zeros(2)]
)
FRAMES = st.one_of(
    *[st.lists(st.dictionaries(NAMES, NUMBERS, max_size=4), max_size=6).map(pd.DataFrame)] * 4,
    st.lists(st.dictionaries(NAMES, NO_NUMBERS, min_size=1, max_size=2), min_size=1, max_size=2).map(
        lambda rows: pd.DataFrame(rows, dtype=object)
    ),
    st.just(pd.DataFrame([[1.0, 2.0]] * 3, columns=["a", "a"])),
    NO_SAMPLES,
)


class RiverFace(Twins):
    """devdan.river.DEVDANClassifier: features and classes come and go."""

    started = ("n_hidden", "masking", "scaling", "averaging", "class_weight", "rehearse")

    @initialize(chosen=options({name: START_OPTIONS[name] for name in started} | {"ensemble": [False, True]}))
    def begin(self, chosen):
        from devdan.river import DEVDANClassifier  # noqa: PLC0415 (an optional extra)

        self.model, self.twin = (DEVDANClassifier(seed=1, **chosen) for _ in range(2))

    def words(self, model):
        return words(model._online), repr(model.encoding_.to_json()), list(model._codes.items())

    def states(self):
        mixture = self.model._online.mixture
        return [] if mixture is None else mixture.networks

    @rule(x=SAMPLES, y=RIVER_LABELS)
    def learn_one(self, x, y):
        self.attempt("learn_one", x, y)

    @rule(x=SAMPLES, y=RIVER_LABELS, w=st.sampled_from([*GOOD_WEIGHTS, *BAD_WEIGHTS]))
    def learn_one_weighted(self, x, y, w):
        self.attempt("learn_one", x, y, w)

    @rule(X=FRAMES, data=ANY)
    def learn_many_weighted(self, X, data):
        n = len(X) if hasattr(X, "__len__") else 1
        y = data.draw(st.lists(st.sampled_from(GOOD_LABELS), min_size=n, max_size=n))
        w = data.draw(st.one_of(sample_weights(n), st.sampled_from([*GOOD_WEIGHTS, *BAD_WEIGHTS])))
        self.attempt("learn_many", X, pd.Series(y, dtype=object), w)

    @rule(x=SAMPLES, verb=st.sampled_from(["learn_unlabeled_one", "predict_one", "predict_proba_one"]))
    def use_one(self, x, verb):
        self.attempt(verb, x)

    @rule(X=FRAMES, data=ANY, form=st.sampled_from([list, lambda y: pd.Series(y, dtype=object)]))
    def learn_many(self, X, data, form):
        n = len(X) if hasattr(X, "__len__") else 1
        y = data.draw(st.lists(RIVER_LABELS, min_size=n, max_size=n + data.draw(st.sampled_from([0, 0, 0, 1]))))
        self.attempt("learn_many", X, form(y))

    @rule(X=FRAMES, verb=st.sampled_from(["predict_many", "predict_proba_many"]))
    def use_many(self, X, verb):
        self.attempt(verb, X)

    @rule(really=st.sampled_from([False] * 5 + [True]))
    def start_over(self, really):
        if really:
            self.model, self.twin = self.model.clone(), self.twin.clone()

    @rule(x=st.dictionaries(NAMES, NUMBERS))
    @precondition(lambda self: self.model._codes)
    def predictions_are_probabilities(self, x):
        probabilities = self.model.predict_proba_one(x)
        assert list(probabilities) == list(self.model._codes)
        assert all(p >= 0 for p in probabilities.values())
        assert sum(probabilities.values()) == pytest.approx(1)
        assert self.model.predict_one(x) in probabilities


test_sklearn = in_batches(SklearnFace)
test_tables = in_batches(TableFace)
test_ensemble = in_batches(EnsembleFace)
test_river = pytest.mark.skipif(find_spec("river") is None, reason="River is not installed")(in_batches(RiverFace))
