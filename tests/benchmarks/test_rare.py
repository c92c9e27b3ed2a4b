"""The payments are what their page says, and runs over them are judged as a slow and obvious oracle would."""

import numpy as np
import payments
import pytest
import rare
from sklearn.metrics import f1_score, precision_score, recall_score, roc_auc_score

from devdan import DEVDAN


def test_payments_are_the_same_each_time_and_hard_but_not_hopeless():
    clean, y, probability = payments.clean(5)
    raw, again, _ = payments.raw(5)
    assert clean.columns.tolist() == ["amount", "category", "country", "hour", "weekday"]
    assert payments.clean(5)[0].equals(clean)
    assert (y == again).all()
    assert raw["timestamp"].is_monotonic_increasing
    assert raw["id"].is_unique
    assert raw["merchant category"].str.lower().equals(clean["category"])
    assert (raw["amount"].isna() == clean["amount"].isna()).all()
    assert 0.02 < clean["amount"].isna().mean() < 0.04
    for half in (slice(0, payments.CHANGE), slice(payments.CHANGE, None)):
        assert probability[half].mean() == pytest.approx(payments.SHARE, rel=1e-6)
        assert roc_auc_score(y[half], probability[half]) > 0.9


def test_another_kind_of_fraud_takes_over():
    clean, _, probability = payments.clean(0)
    is_gaming = (clean["category"] == "gaming").to_numpy()
    early = np.arange(len(clean)) < payments.CHANGE
    assert probability[is_gaming & ~early].mean() > 2 * probability[is_gaming & early].mean()


def taught(samples, parts):
    """The rows that have been taught before each row is predicted."""
    known, found = 0, []
    for now, come in parts(samples):
        assert come.start == known
        found += [known] * (now.stop - now.start)
        known = come.stop
    return np.array(found)


def test_labels_come_after_their_rows_and_as_late_as_is_said():
    samples = rare.Samples(np.zeros((2_345, 1)), np.zeros(2_345, int))
    rows = np.arange(2_345)
    assert (taught(samples, rare.chunks) == rows // 500 * 500).all()
    late = taught(samples, lambda samples: rare.chunks(samples, 50, 1_000))
    assert (late == np.maximum(rows // 50 * 50 - 1_000, 0)).all()
    by_day = samples._replace(day=rows // 100)
    assert (taught(by_day, rare.days) == np.maximum(rows // 100 - 7, 0) * 100).all()


def test_figures_are_scikit_learns_and_the_worst_hundred_rows():
    random = np.random.default_rng(0)
    y, labels = (random.random((2, 1_050)) < [[0.1], [0.2]]).astype(int)
    labels[300:400] = 1
    found = rare.figures(y, labels, random.random(1_050))
    for name, score in (("recall", recall_score), ("precision", precision_score), ("F1", f1_score)):
        assert found[name] == pytest.approx(100 * score(y, labels))
    assert found["worst 100"] == pytest.approx(100 * (y[300:400].mean() - (1 - y[300:400]).mean()))


def worst_hundred(case, seed, n_rows=payments.N_PAYMENTS, **options):
    """By how many points accuracy falls below always calling the common class, in the worst hundred rows."""
    samples = case.samples(seed)
    X, y = samples.X[:n_rows], samples.y[:n_rows]
    labels, scores = rare.predicted(case, rare.Samples(X, y), DEVDAN(random_state=seed, **options))
    return -rare.figures(y[2_000:], labels[2_000:], scores[2_000:])["worst 100"]


AT_ONCE, LATE = rare.CASES["payments, chunks of 100"], rare.CASES["payments, labels 1,000 late"]


@pytest.mark.parametrize("case", [AT_ONCE, LATE], ids=["at once", "late"])
def test_balanced_classes_do_not_make_it_lose_the_common_one(case):
    assert worst_hundred(case, 0, 5_000, class_weight="balanced") < 30


@pytest.mark.slow
@pytest.mark.parametrize("rehearse", [0, 5])
@pytest.mark.parametrize("case", [AT_ONCE, LATE], ids=["at once", "late"])
@pytest.mark.parametrize("seed", range(10))
def test_balanced_classes_never_make_it_lose_the_common_one(seed, case, rehearse):
    assert worst_hundred(case, seed, class_weight="balanced", rehearse=rehearse) < 30


def test_a_model_is_asked_before_it_is_taught():
    class Recorder:
        classes_ = np.arange(2)

        def __init__(self):
            self.n_taught, self.asked = 0, []

        def predict(self, X):
            self.asked += [self.n_taught] * len(X)
            return np.ones(len(X), int)

        def predict_proba(self, X):
            return np.tile([0.25, 0.75], (len(X), 1))

        def partial_fit(self, X, y):
            self.n_taught += len(y)

    model, samples = Recorder(), rare.Samples(np.zeros((1_200, 1)), np.zeros(1_200, int))
    labels, scores = rare.predicted(rare.CASES["payments, clean"], samples, model)
    assert model.asked == [500] * 500 + [1_000] * 200
    assert labels.tolist() == [0] * 500 + [1] * 700  # nothing was known at first
    assert set(scores[500:]) == {0.75}
