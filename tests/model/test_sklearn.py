"""scikit-learn's own checks, all of them, and its company: what its users put a classifier into."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from networks import SMALL
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.decomposition import PCA
from sklearn.ensemble import AdaBoostClassifier, BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score, learning_curve
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from devdan import DEVDAN, DEVDANEnsemble


def cannot_hold(estimator):
    """Checks that no learner of this kind can pass, with the reason."""
    return {
        "check_sample_weight_equivalence_on_dense_data": "a weight makes one step longer, while a sample that comes "
        "again is a step from other weights, enters the statistics of the inputs again and may grow a unit again",
    }


@pytest.mark.filterwarnings("ignore:X has values outside")
@parametrize_with_checks(
    [
        DEVDAN(random_state=0),
        DEVDAN(rehearse=0, random_state=0),
        DEVDAN(scaling=None, random_state=0),
        DEVDAN(interleave=True, random_state=0),
        DEVDANEnsemble(SMALL, random_state=0),
    ],
    expected_failed_checks=cannot_hold,
)
def test_estimator_checks(estimator, check):
    check(estimator)


RANDOM = np.random.default_rng(0)
Y = RANDOM.integers(3, size=240)
X = RANDOM.normal(size=(240, 4)) + 2 * Y[:, None]
NAMES = list("abcd")
FRAME, POLARS = pd.DataFrame(X, columns=NAMES), pl.DataFrame(X, schema=NAMES)
MODELS = [DEVDAN(random_state=0), DEVDANEnsemble(SMALL, random_state=0)]
models = pytest.mark.parametrize("model", MODELS, ids=["one", "ensemble"])
sees_polars = pytest.mark.skipif(
    not hasattr(StandardScaler().fit(POLARS), "feature_names_in_"), reason="this scikit-learn sees no names in Polars"
)


# --- What is built of classifiers --------------------------------------------------------------------------------

COMPANY = {
    "pipeline": lambda model: make_pipeline(StandardScaler(), model),
    "sigmoid": lambda model: CalibratedClassifierCV(model, method="sigmoid", cv=3),
    "isotonic": lambda model: CalibratedClassifierCV(model, method="isotonic", cv=3),
    "frozen": lambda model: CalibratedClassifierCV(FrozenEstimator(clone(model).fit(X, Y))),
    "voting": lambda model: VotingClassifier([("a", model), ("b", LogisticRegression())], voting="soft"),
    "stacking": lambda model: StackingClassifier([("a", model), ("b", LogisticRegression())], cv=3),
    "bagging": lambda model: BaggingClassifier(model, n_estimators=3, random_state=0),
    "one vs rest": OneVsRestClassifier,
}


@models
@pytest.mark.parametrize("name", COMPANY)
def test_in_company(model, name):
    fitted = COMPANY[name](clone(model)).fit(X, Y)
    assert fitted.score(X, Y) > 0.85
    np.testing.assert_allclose(fitted.predict_proba(X).sum(axis=1), 1)


@models
def test_searched_and_validated(model):
    option = "estimator__masking" if isinstance(model, DEVDANEnsemble) else "masking"
    model = clone(model).set_params(**({"estimator": DEVDAN()} if isinstance(model, DEVDANEnsemble) else {}))
    search = GridSearchCV(model, {option: [0.1, 0.5]}, cv=3, scoring="neg_log_loss").fit(X, Y)
    assert search.best_estimator_.get_params()[option] == search.best_params_[option]
    assert search.best_score_ > -0.8
    assert (cross_val_score(model, X, Y, cv=3) > 0.8).all()
    assert cross_val_predict(model, X, Y, cv=3, method="predict_proba").shape == (240, 3)
    _, _, scores = learning_curve(model, X, Y, cv=3, exploit_incremental_learning=True)
    assert scores[-1].mean() > 0.8


def test_as_a_transformer():
    assert make_pipeline(DEVDAN(random_state=0), LogisticRegression()).fit(X, Y).score(X, Y) > 0.9
    union = FeatureUnion([("units", DEVDAN(random_state=0)), ("scaled", StandardScaler())])
    union.set_output(transform="pandas").fit(FRAME, Y)
    names = union.transform(FRAME).columns.tolist()
    assert names[0] == "units__devdan0"
    assert names[-4:] == [f"scaled__{name}" for name in NAMES]


@models
def test_weights_of_samples_are_taken_wherever_they_count(model):
    weights = np.where(Y == 2, 0.0, 1.0)  # as if there were no such class
    assert clone(model).fit(X, Y, sample_weight=weights).classes_.tolist() == [0, 1]
    for company in (
        CalibratedClassifierCV(clone(model), cv=3),
        VotingClassifier([("a", clone(model)), ("b", LogisticRegression())]),
        BaggingClassifier(clone(model), n_estimators=2, random_state=0),
    ):
        fitted = company.fit(X, Y, sample_weight=1.0 + (Y == 1))
        assert fitted.score(X, Y) > 0.75
    boosted = AdaBoostClassifier(clone(model), n_estimators=2, random_state=0)  # weights add up to 1: steps are short
    assert boosted.fit(X, Y).classes_.tolist() == [0, 1, 2]
    piped = make_pipeline(StandardScaler(), clone(model))
    name = piped.steps[-1][0]
    assert piped.fit(X, Y, **{f"{name}__sample_weight": weights}).classes_.tolist() == [0, 1]


@models
def test_weights_of_samples_are_routed(model):
    weights = np.where(Y == 2, 0.0, 1.0)
    with sklearn.config_context(enable_metadata_routing=True):
        asked = clone(model).set_fit_request(sample_weight=True)
        fitted = make_pipeline(PCA(), asked).fit(X, Y, sample_weight=weights)
    assert fitted.classes_.tolist() == [0, 1]


@models
def test_with_and_without_metadata_routing(model):
    assert not sklearn.get_config()["enable_metadata_routing"]
    plain = make_pipeline(StandardScaler(), clone(model)).fit(X, Y).predict_proba(X)
    with sklearn.config_context(enable_metadata_routing=True):
        routed = make_pipeline(StandardScaler(), clone(model)).fit(X, Y).predict_proba(X)
    np.testing.assert_array_equal(plain, routed)


@models
def test_shown_in_a_notebook(model):
    for shown in (clone(model), clone(model).fit(X, Y), make_pipeline(StandardScaler(), clone(model)).fit(X, Y)):
        assert type(model).__name__ in shown._repr_html_()


# --- Frames ------------------------------------------------------------------------------------------------------


@models
@pytest.mark.parametrize("frame", [FRAME, pytest.param(POLARS, marks=sees_polars)], ids=["pandas", "Polars"])
def test_names_of_features_are_kept_and_checked(model, frame):
    fitted = clone(model).fit(frame, Y)
    assert fitted.feature_names_in_.tolist() == NAMES
    np.testing.assert_array_equal(fitted.predict_proba(frame), clone(model).fit(X, Y).predict_proba(X))
    renamed = frame.rename(columns={"a": "z"}) if frame is FRAME else frame.rename({"a": "z"})
    for verb in (fitted.predict, fitted.observe, lambda X: fitted.partial_fit(X, Y), lambda X: fitted.teach(X, Y)):
        with pytest.raises(ValueError, match="feature names should match"):
            verb(renamed)
    with pytest.raises(ValueError, match="must be in the same order"):
        fitted.predict(frame[NAMES[::-1]])
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        fitted.predict(X)


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_hidden_units_come_in_frames(kind):
    model = DEVDAN(random_state=0).fit(FRAME, Y)
    plain = model.transform(FRAME)
    with sklearn.config_context(transform_output=kind):
        configured = model.transform(FRAME)
    asked = model.set_output(transform=kind).transform(FRAME)
    for units in (configured, asked):
        assert type(units).__module__.startswith(kind)
        assert list(units.columns) == model.get_feature_names_out().tolist()
        np.testing.assert_array_equal(units.to_numpy(), plain)
    assert len(model.get_feature_names_out()) == model.n_hidden_


def test_rows_keep_their_index():
    model = DEVDAN(random_state=0).set_output(transform="pandas").fit(FRAME, Y)
    assert model.transform(FRAME.set_index(np.arange(240) + 7)).index.tolist() == list(range(7, 247))


def test_names_of_units_that_are_not_there():
    with pytest.raises(NotFittedError):
        DEVDAN().get_feature_names_out()
    with pytest.raises(ValueError, match="input_features is not equal to feature_names_in_"):
        DEVDAN(random_state=0).fit(FRAME, Y).get_feature_names_out(["x"])
