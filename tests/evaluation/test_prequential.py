"""Test, then train: one loop for every model and every policy of labels."""

import copy
import dataclasses
import json
import pickle
import warnings

import numpy as np
import pytest
from sklearn.cluster import MiniBatchKMeans
from sklearn.exceptions import DataConversionWarning
from sklearn.linear_model import SGDClassifier, SGDRegressor
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier

from devdan import DEVDAN
from devdan.evaluation.labels import Labels
from devdan.evaluation.loop import Evaluation, prequential
from devdan.evaluation.record import Mean, Record, Summary
from devdan.streams import open_stream, sea

try:
    from river import linear_model, naive_bayes, preprocessing, tree

    LOGISTIC = preprocessing.StandardScaler() | linear_model.LogisticRegression()
    RIVER = [naive_bayes.GaussianNB(), tree.HoeffdingAdaptiveTreeClassifier(seed=0), LOGISTIC]
    NO_CLASSIFIERS = [linear_model.LinearRegression(), preprocessing.StandardScaler()]
except ImportError:  # an optional extra
    RIVER = NO_CLASSIFIERS = []
POLICIES = ["all", "fraction:0.2", "delay:700", "delay:0-900", "uncertain:0.2", "warmup:900"]
POLICIES += ["fraction:0.5+delay:100", "positives:300"]
TIMES = ("test_seconds", "train_seconds")


def untimed(records):
    return [dataclasses.replace(record, test_seconds=0, train_seconds=0) for record in records]


class Spy:
    """Knows every sample by its first feature; notes what it was told and when."""

    def __init__(self):
        self.predicted, self.taught, self.classes_ = [], [], [0, 1]
        self._seen, self._known = set(), set()  # the same samples, quicker to ask

    def predict(self, X):
        samples = X[:, 0].astype(int).tolist()
        self.predicted += samples
        self._seen.update(samples)
        assert self._known.isdisjoint(samples), "its label is known already"
        return np.zeros(len(X), dtype=int)

    def predict_proba(self, X):
        shares = np.random.default_rng(len(self.predicted)).random(len(X))
        return np.column_stack([shares, 1 - shares])

    def partial_fit(self, X, y):
        samples = X[:, 0].astype(int).tolist()
        assert self._seen.issuperset(samples), "taught before it was predicted"
        self.taught += zip(samples, map(int, y), strict=True)
        self._known.update(samples)


class Always:
    """Predicts the same for ever."""

    def __init__(self, label):
        self.label = label

    def predict(self, X):
        return np.full(len(X), self.label)

    def partial_fit(self, X, y, classes=None):
        return self


def numbered(n=4000, chunk=300):
    X = np.column_stack([np.arange(n), np.zeros(n)])
    return open_stream((X, (np.arange(n) % 3 == 0).astype(int)), chunk=chunk)


class Observer(DEVDAN):
    """A DEVDAN that notes what it is told of samples, which it knows by their first feature."""

    def tell(self, verb, X, y):
        self.told = getattr(self, "told", []) + [(verb, int(x), label) for x, label in zip(X[:, 0], y, strict=True)]

    def partial_fit(self, X, y):
        self.tell("teach", X, y)
        return super().partial_fit(X, y)

    def teach(self, X, y):
        self.tell("teach", X, y)
        return super().teach(X, y)

    def forget(self, X, y):
        self.tell("forget", X, y)
        return super().forget(X, y)


@pytest.mark.parametrize("kind", [int, str, object])
@pytest.mark.parametrize("policy", ["positives:150", "positives:150+delay:0-400", "positives:30+fraction:0.5+delay:60"])
def test_a_class_is_assumed_until_another_label_comes(policy, kind):
    """The oracle: each sample by itself."""
    random = np.random.default_rng(3)
    n, chunk = 2_000, 50
    X = np.column_stack([np.arange(n), random.normal(size=(n, 2))])
    y = np.where(random.random(n) < 0.1, "rare", "usual")
    codes = {int: (y == "rare").astype(int), str: y, object: y.astype(object)}[kind]
    chunks = [(X[k : k + chunk], codes[k : k + chunk]) for k in range(0, n, chunk)]
    model = Observer(random_state=0, rehearse=0, scaling="minmax")
    records = list(prequential(chunks, model, policy, seed=4))
    own = Labels.parse(policy, 4)
    late = np.concatenate([own.lateness(k, chunk, None) for k in range(0, n, chunk)])
    expected, usual = {}, codes[(y == "usual")][0]
    for k in range(n):
        end = [(k + own.positives) // chunk, (k + late[k]) // chunk]  # the chunks at whose ends labels come
        if y[k] == "usual" or late[k] < 0:
            expected[k] = [("teach", end[0], usual)]
        elif (end[1] <= end[0] and late[k] <= own.positives) or end[0] == end[1]:
            expected[k] = [("teach", end[1], codes[k])]
        else:
            expected[k] = [("teach", end[0], usual), ("forget", end[1], usual), ("teach", end[1], codes[k])]
    told = {k: [] for k in range(n)}
    for verb, k, label in model.told:
        told[k].append((verb, label))
    for k, steps in expected.items():
        assert told[k] == [(verb, label) for verb, end, label in steps if end < n // chunk], k
    taught = [sum(step[:2] == ("teach", end) for own in expected.values() for step in own) for end in range(n // chunk)]
    assert [record.n_labels for record in records] == taught


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(("n", "chunk"), [(1000, 1), (4000, 300), (4000, 5000)])
def test_nothing_is_ever_predicted_with_a_label_already_known(policy, n, chunk):
    spy = Spy()
    records = list(prequential(numbered(n, chunk), spy, policy))
    assert spy.predicted == list(range(n))
    assert len({sample for sample, _ in spy.taught}) == len(spy.taught), "taught twice"
    assert all(label == (sample % 3 == 0) for sample, label in spy.taught)
    assert len(spy.taught) == sum(record.n_labels for record in records)


def test_labels_that_are_late_arrive_when_they_are_due_and_in_that_order():
    spy = Spy()
    for record in prequential(numbered(chunk=100), spy, "delay:250"):
        seen = record.start + record.n_samples
        assert len(spy.taught) == max(seen - 250, 0)
    assert [sample for sample, _ in spy.taught] == list(range(3750))

    spy, policy = Spy(), "delay:0-500"
    late = Evaluation(spy, policy).labels.lateness(0, 4000, None)
    for record in prequential(numbered(n=4000, chunk=4000), Spy(), policy):
        assert record.n_labels == sum(np.arange(4000) + late < 4000)
    list(prequential(numbered(chunk=4000), spy, policy))
    due = [sample + late[sample] for sample, _ in spy.taught]
    assert due == sorted(due)


def test_all_labels_at_once_is_partial_fit():
    by_hand = DEVDAN(random_state=0, interleave=True)
    for X, y in sea(3000):
        by_hand.partial_fit(X, y)
    model = DEVDAN(random_state=0, interleave=True)
    list(prequential(sea(3000), model))
    np.testing.assert_array_equal(model.mixture_.networks[0], by_hand.mixture_.networks[0])


def test_devdan_observes_what_has_no_label_and_others_do_not():
    model, spy = DEVDAN(random_state=0), Spy()
    records = list(prequential(sea(5000), model, "fraction:0"))
    assert model.n_seen_ == 5000
    assert all(record.accuracy is None and record.n_labels == 0 for record in records)
    list(prequential(numbered(), spy, "fraction:0"))
    assert spy.taught == []


def test_late_labels_equal_observing_and_teaching_by_hand():
    model, by_hand = DEVDAN(random_state=3), DEVDAN(random_state=3)
    list(prequential(sea(4000), model, "delay:500"))
    before = None
    for X, y in sea(4000):
        by_hand.observe(X)
        if before is not None:
            by_hand.teach(*before)
        before = X, y
    np.testing.assert_array_equal(model.mixture_.networks[0], by_hand.mixture_.networks[0])


@pytest.mark.parametrize(
    "model",
    [
        GaussianNB(),
        SGDClassifier(random_state=0),
        MLPClassifier((10,), batch_size=10, learning_rate_init=0.05, random_state=0),
        *RIVER,
        DEVDAN(random_state=0),
    ],
    ids=lambda model: f"{type(model).__module__.split('.')[0]}-{type(model).__name__}",
)
@pytest.mark.parametrize("text", [False, True])
def test_models_of_all_kinds_learn(model, text):
    stream = sea(6000, noise=0)
    if text:
        stream = open_stream([(X, np.array(["low", "high"])[y]) for X, y in stream])
    model = copy.deepcopy(model)
    classes = ["low", "high"] if text else None
    records = list(prequential(stream, model, "fraction:0.8", classes=classes))
    summary = Summary(records)
    assert summary.n_samples == 6000
    assert summary.rate.mean > 80  # 65 % of the samples are of one class
    assert set(summary.classes) == ({"low", "high"} if text else {0, 1})
    assert (records[-1].n_hidden is not None) == isinstance(model, DEVDAN)
    for record in records:
        assert Record.from_json(record.to_json()) == record


def test_uncertainty_takes_probabilities_of_any_kind_of_model():
    for model in (GaussianNB(), *copy.deepcopy(RIVER), DEVDAN(random_state=0)):
        summary = Summary(prequential(sea(4000, noise=0), model, "uncertain:0.2"))
        assert 0.1 < summary.n_labels / summary.n_samples <= 0.2
    with pytest.raises(ValueError, match="predict_proba"):
        list(prequential(sea(2000), SGDClassifier(), "uncertain:0.2"))


def test_a_model_that_must_know_the_classes_says_so():
    stream = [(X, y) for X, y in sea(1000)]
    with pytest.raises(ValueError, match=r"must know the classes in advance: pass prequential\(\.\.\., classes="):
        list(prequential(stream, SGDClassifier()))
    for model in (object(), SGDRegressor(), MiniBatchKMeans(), *NO_CLASSIFIERS):
        with pytest.raises(ValueError, match="a model must be a classifier with partial_fit and predict"):
            prequential(stream, model)


@pytest.mark.parametrize("chunk", [1, 500])
def test_a_model_that_knows_one_class_asks_for_more(chunk):
    stream = open_stream(sea(3000, noise=0), chunk=chunk)
    summary = Summary(prequential(stream, DEVDAN(random_state=0), "uncertain:0.5"))
    assert 1000 < summary.n_labels < 1700  # about half of the samples
    assert summary.rate.mean > 85  # 66 % of them are of one class


def test_predictions_that_are_no_labels_and_lengths_that_differ_are_errors():
    with pytest.raises(ValueError, match=r"integers like the classes so far, got 0\.5"):
        list(prequential(sea(1000), Always(0.5)))
    with pytest.raises(ValueError, match="same number of samples, got 3 and 2"):
        list(prequential([(np.zeros((3, 1)), np.zeros(2))], Always(0)))
    with pytest.raises(ValueError, match="finite"):
        list(prequential([(np.zeros((2, 1)), np.array([1, np.inf]))], Always(0)))


def test_many_classes_cost_no_more_than_there_are():
    y = np.arange(20_000) % 10_000
    summary = Summary(prequential(open_stream((np.zeros((20_000, 1)), y), chunk=5000), Always(0)))
    assert len(summary.classes) == 10_000
    assert len(summary.counts) == 10_000
    assert len(json.dumps(summary.details())) < 2_000_000


def test_single_samples_need_a_stream_around_them():
    with pytest.raises(ValueError, match="open_stream"):
        list(prequential([({"x": 1.0}, 0)], GaussianNB()))


def test_samples_without_a_label_are_neither_scored_nor_taught():
    X, y = next(iter(sea(600, chunk=600)))
    holed = np.where(np.arange(600) % 3 == 0, np.nan, y)
    records = list(prequential(open_stream((X, holed), chunk=200), GaussianNB(), classes=[0, 1]))
    assert [record.n_labels for record in records] == [133, 133, 134]
    assert [record.confusion.n_samples for record in records] == [0, 133, 134]
    text = np.where(np.isnan(holed), None, np.where(y == 1, "yes", "no"))
    model = DEVDAN(random_state=0)
    others = list(prequential(open_stream((X, text), chunk=200), model))
    assert [record.n_labels for record in others] == [133, 133, 134]
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.n_seen_ == 600


def test_a_column_of_labels_counts_as_one_label_per_sample():
    X, y = next(iter(sea(1000, chunk=1000)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataConversionWarning)
        column, row = (list(prequential([(X, y), (X, labels)], DEVDAN(random_state=0))) for labels in (y[:, None], y))
    assert column[1].accuracy == row[1].accuracy


def test_records_hold_what_happened():
    model = DEVDAN(random_state=0)
    guesses, truth = [], []
    records = []
    evaluation = Evaluation(model)
    for chunk in sea(10_000):
        guesses.append(model.predict(chunk[0]) if records else None)
        truth.append(chunk[1])
        records += untimed([evaluation._step(*chunk)]) if records else list(evaluation.over([chunk]))
    y = np.concatenate(truth)
    for number, record in enumerate(records[1:], start=1):
        part = slice(500 * number, 500 * (number + 1))
        assert (record.chunk, record.start, record.n_samples) == (number, 500 * number, 500)
        assert record.accuracy == pytest.approx(np.mean(guesses[number] == y[part]))
        assert record.no_change == (np.sum(y[part] == y[500 * number - 1 : 500 * (number + 1) - 1]), 500)
        assert record.recall[record.n_classes - 1] is not None
    assert records[0].accuracy is None
    assert records[0].new_classes == (0, 1)
    kinds = [(event.phase, event.kind) for event in model.events_]
    summary = Summary(records)
    for phase in ("generative", "discriminative"):
        assert getattr(summary.growths, phase) == kinds.count((phase, "growth"))
        assert getattr(summary.prunings, phase) == kinds.count((phase, "pruning"))
        assert getattr(summary.drifts, phase) == kinds.count((phase, "drift"))
    assert sum(summary.drifts) > 0  # or the lines above would say little
    assert records[-1].n_hidden == 1 + sum(summary.growths) - sum(summary.prunings) == model.n_hidden_
    assert records[-1].bias2._asdict() == model.bias2_
    with pytest.raises(dataclasses.FrozenInstanceError):
        records[0].n_hidden = 3


@pytest.mark.parametrize("policy", POLICIES)
def test_an_evaluation_goes_on_from_a_copy_as_if_nothing_had_happened(policy):
    unbroken = untimed(prequential(sea(5000), DEVDAN(random_state=0), policy))
    evaluation = Evaluation(DEVDAN(random_state=0), policy)
    records = []
    while len(records) < 10:
        evaluation = pickle.loads(pickle.dumps(evaluation))
        for count, record in enumerate(evaluation.over(sea(5000))):
            records.append(record)
            if count == 2:
                break
    assert untimed(records) == unbroken


MODELS_THAT_TELL = [DEVDAN(random_state=0), GaussianNB(), *RIVER]
if RIVER:
    MODELS_THAT_TELL.append(preprocessing.StandardScaler() | linear_model.LogisticRegression())


@pytest.mark.parametrize(
    "model", MODELS_THAT_TELL, ids=lambda model: f"{type(model).__module__}-{type(model).__name__}"
)
def test_confidences_are_counted_as_they_were_before_the_chunk_was_learned(model):
    stream, other = sea(3000), copy.deepcopy(model)
    records = list(prequential(stream, model))
    labels, sure = [], []
    for X, y in stream:
        if hasattr(other, "learn_one"):
            rows = [dict(zip(stream.feature_names, row, strict=True)) for row in X.tolist()]
            if labels:
                votes = [other.predict_proba_one(row) for row in rows]
                guesses = [other.predict_one(row) for row in rows]
                sure += [
                    (max(vote.values()), guess == true) for vote, guess, true in zip(votes, guesses, y, strict=True)
                ]
            for row, true in zip(rows, y.tolist(), strict=True):
                other.learn_one(row, true)
        else:
            if labels:
                sure += zip(other.predict_proba(X).max(axis=1), other.predict(X) == y, strict=True)
            other.partial_fit(X, y, **({"classes": [0, 1]} if isinstance(other, GaussianNB) and not labels else {}))
        labels += y.tolist()
    told = Summary(records).reliability
    assert records[0].reliability is None or hasattr(model, "learn_one")  # River's predict before they have learned
    assert told.n_samples == len(sure) == 2500
    assert sum(n * level for level, _, n in told.levels) == pytest.approx(sum(level for level, _ in sure))
    assert sum(hits for _, _, hits, _ in told.binned) == sum(right for _, right in sure)


def test_models_whose_probabilities_cost_a_second_prediction_are_not_asked():
    spy = Spy()
    spy.predict_proba = None
    records = list(prequential(numbered(), spy))
    assert Summary(records).calibration_error is None
    assert all(record.calibration_error is None for record in records)


def test_the_classification_rate_leaves_the_first_chunk_out():
    def record(hits):
        counts = ((0, 0, hits), (0, 1, 10 - hits)) if hits < 10 else ((0, 0, 10),)
        return Record(0, 0, 10, 2, (), counts, 10, (5, 10), 1, 3, None, None, None, None, 0.5, 1.5)

    summary = Summary([record(0), record(8), record(9)])
    assert (summary.rate.mean, summary.rate.std) == pytest.approx((85, 5))
    assert (summary.train_seconds, summary.test_seconds, summary.samples_per_second) == (4.5, 1.5, 5.0)
    assert summary.confusion.accuracy == pytest.approx(17 / 30)
    assert summary.details()["kappa_no_change"] == pytest.approx((17 / 30 - 0.5) / 0.5)
    assert summary.details()["counts"] == [(0, 0, 17), (0, 1, 13)]
    assert Summary([record(3)]).criteria()["cr_mean"] is None


def test_running_means_are_means():
    values = np.random.default_rng(0).normal(50, 3, 1000)
    mean = Mean()
    for value in (*values, None):
        mean.add(value)
    assert (mean.mean, mean.std) == pytest.approx((values.mean(), values.std()))
