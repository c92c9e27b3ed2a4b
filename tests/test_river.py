"""DEVDAN in River: all of River's own checks, and what its users do with a classifier."""

import copy
import pickle
from itertools import count

import networks
import numpy as np
import pandas as pd
import pytest

river = pytest.importorskip("river", reason="River is not installed")

from changing import changing_frauds  # noqa: E402
from payments_stream import payments  # noqa: E402
from river import checks, compose, drift, ensemble, evaluate, linear_model, metrics, preprocessing  # noqa: E402
from river.datasets import Phishing, synth  # noqa: E402

import devdan  # noqa: E402
from devdan import kernel  # noqa: E402
from devdan.kernel import Network  # noqa: E402
from devdan.model.scales import SCALES  # noqa: E402
from devdan.river import DEVDANClassifier, Histories  # noqa: E402

CHECKS = [
    pytest.param(parameters, check, id=f"{getattr(check, '__name__', check)}-{k}-{n}")
    for k, parameters in enumerate(DEVDANClassifier._unit_test_params())
    for n, check in enumerate(checks.yield_checks(DEVDANClassifier(**parameters)))
]


@pytest.mark.parametrize(("parameters", "check"), CHECKS)
def test_rivers_checks(parameters, check):
    check(DEVDANClassifier(**parameters))


def samples(n, seed=0, missing=0.0):
    """Features that come and go, three of them late; labels of three classes, one of them late."""
    random = np.random.default_rng(seed)
    for t in range(n):
        row = random.normal(size=5)
        label = "far" if t > n // 2 and row[0] > 1 else "up" if row[1] + row[2] > 0 else "down"
        known = 2 if t < n // 3 else 5
        yield {f"x{j}": float(row[j]) for j in range(known) if random.random() >= missing}, label


def learned(n=600, **options):
    model = DEVDANClassifier(seed=1, **options)
    for x, y in samples(n, missing=0.1):
        model.learn_one(x, y)
    return model


def records(X):
    """The rows as dicts; pandas 2's own ``to_dict`` loses those without any feature."""
    return [row.to_dict() for _, row in X.iterrows()]


def words(model):
    return networks.words(model._online)


@pytest.mark.parametrize(
    ("size", "options"), [*((size, {}) for size in (1, 7, 200, 600)), (70, {"rehearse": 0}), (70, {"ensemble": True})]
)
def test_many_at_once_are_learned_as_one_by_one(size, options):
    """However they are cut; a frame has a feature for all its rows, so that what a row lacks is NaN there."""
    rows = list(samples(600, missing=0.1))
    one, many = DEVDANClassifier(seed=1, **options), DEVDANClassifier(seed=1, **options)
    for start in range(0, 600, size):
        X = pd.DataFrame([x for x, _ in rows[start : start + size]])
        y = pd.Series([y for _, y in rows[start : start + size]])
        many.learn_many(X, y)
        for x, label in zip(records(X), y, strict=True):
            one.learn_one(x, label)
    assert words(one) == words(many)
    assert one._codes == many._codes
    table = many.predict_proba_many(X)
    for (_, row), x in zip(table.iterrows(), records(X), strict=True):
        assert row.to_dict() == pytest.approx(one.predict_proba_one(x), abs=1e-12)
    assert many.predict_many(X).tolist() == [one.predict_one(x) for x in records(X)]


def test_the_order_of_the_features_does_not_matter():
    straight, turned = DEVDANClassifier(seed=1), DEVDANClassifier(seed=1)
    for x, y in samples(300):
        straight.learn_one(x, y)
        turned.learn_one(dict(reversed(x.items())), y)
    assert words(straight) == words(turned)


def test_a_feature_that_comes_late_is_learned_from():
    random = np.random.default_rng(0)
    model = DEVDANClassifier(seed=1)
    right = 0
    for t in range(4000):
        x = {"noise": random.normal()} | ({"signal": random.normal()} if t >= 1000 else {})
        y = x.get("signal", random.normal()) > 0
        right += t >= 3000 and model.predict_one(x) == y
        model.learn_one(x, y)
    assert right > 950


def test_drifts_of_a_rare_class_have_its_label():
    X, y = changing_frauds()
    model = DEVDANClassifier(seed=0)
    for row, label in zip(X.tolist(), y.tolist(), strict=True):
        model.learn_one(dict(enumerate(row)), label)
    assert "fraud" in [event.label for event in model.events_]
    assert "ok" not in [event.label for event in model.events_]


def test_samples_without_labels_are_learned_from():
    model = learned()
    before = words(model)
    model.learn_unlabeled_one({"x0": 1.0, "new": 2.0})
    assert words(model) != before
    for one in model._online.mixture.nets:
        assert one.n_seen == one.n_learned[kernel.DISCRIMINATIVE] + 1
    fresh = DEVDANClassifier(seed=1)
    fresh.learn_unlabeled_one({"a": 1.0})
    assert fresh.predict_proba_one({"a": 1.0}) == {}
    assert fresh.predict_one({"a": 1.0}) is None


def test_an_empty_sample_is_no_error():
    model = DEVDANClassifier(seed=1)
    model.learn_one({}, True)
    model.learn_one({"a": 1.0}, False)
    model.learn_one({}, True)
    assert sum(model.predict_proba_one({}).values()) == pytest.approx(1)


def test_drifts_are_signalled_when_they_happen():
    model = DEVDANClassifier(seed=1)
    assert not model.drift_detected
    assert model.events_ == []
    seen = []
    for t, (drawn, y) in enumerate(synth.SEA(variant=0, seed=1).take(9000)):
        x = {name: value + 10 * (t >= 6000) for name, value in drawn.items()}
        model.learn_one(x, y != (3000 <= t < 6000))
        if model.drift_detected:
            seen.append((t, model.drift))
    assert next(kind for t, kind in seen if 3000 <= t < 3500) == "real"
    assert "virtual" in [kind for t, kind in seen if 6000 <= t < 6500]
    assert all(t >= 3000 for t, _ in seen)
    drifts = {(event.sample - 1, event.phase) for event in model.events_ if event.kind == "drift"}
    assert {(t, "discriminative" if kind == "real" else "generative") for t, kind in seen} <= drifts
    again = pickle.loads(pickle.dumps(model))
    assert again.drift == model.drift
    frame = pd.DataFrame(x, index=[0])
    model.learn_unlabeled_one(x)
    assert model.drift != "real"
    model.learn_many(frame, pd.Series([y]))
    assert not model.drift_detected


def test_a_feature_without_a_name_is_refused():
    model = learned()
    before = words(model), model.encoding_
    for x in ({np.nan: 1.0}, {"x0": 1.0, float("nan"): 2.0}):
        with pytest.raises(ValueError, match="name must not be NaN"):
            model.learn_one(x, "up")
        with pytest.raises(ValueError, match="name must not be NaN"):
            model.learn_many(pd.DataFrame([list(x.values())], columns=list(x)), pd.Series(["up"]))
    assert (words(model), model.encoding_) == before


def test_labels_of_any_kind():
    model = DEVDANClassifier(seed=1)
    for y in (True, "rain", 3, ("a", 1), None):
        model.learn_one({"a": 1.0}, y)
    assert list(model.predict_proba_one({"a": 1.0})) == [True, "rain", 3, ("a", 1), None]


@pytest.mark.parametrize("value", [[1, 2], np.inf, -np.inf, object()])
@pytest.mark.parametrize("name", ["x0", "another"])
def test_a_value_of_no_kind_leaves_the_model_as_it_predicts(value, name):
    model = learned()
    x = next(iter(samples(1)))[0]
    before = model.predict_proba_one(x)
    with pytest.raises(ValueError, match=rf"column '{name}'"):
        model.learn_one({**x, name: value}, "up")
    assert model.predict_proba_one(x) == before
    model.learn_one(x, "up")


def test_frames_that_do_not_fit():
    model = learned()
    X = pd.DataFrame({"x0": [1.0, 2.0]})
    with pytest.raises(ValueError, match="same number of samples"):
        model.learn_many(X, pd.Series(["up"]))
    model.learn_many(X[:0], pd.Series([], dtype=object))
    assert model.predict_proba_many(X[:0]).shape == (0, 3)
    assert DEVDANClassifier().predict_many(X).tolist() == [None, None]


@pytest.mark.parametrize("options", [{"masking": 2}, {"n_hidden": 0}, {"scaling": "log"}])
def test_options_out_of_range(options):
    with pytest.raises(ValueError, match="must be"):
        DEVDANClassifier(**options)


def test_copies_go_on_alike():
    model = learned()
    copies = [pickle.loads(pickle.dumps(model)), copy.deepcopy(model)]
    for each in (model, *copies):
        for x, y in samples(100, seed=5):
            each.learn_one(x, y)
    assert words(copies[0]) == words(copies[1]) == words(model)
    assert model.clone()._online.mixture is None


def test_its_ensemble_has_the_scales_of_the_other():
    model = learned(ensemble=True)
    states = model._online.mixture.networks
    assert [(Network(state).start, Network(state).max_samples) for state in states] == [
        (scale.n_hidden, scale.reach) for scale in SCALES
    ]
    copies = [pickle.loads(pickle.dumps(model)), copy.deepcopy(model)]
    for each in (model, *copies):
        for x, y in samples(100, seed=5):
            each.learn_one(x, y)
    assert words(copies[0]) == words(copies[1]) == words(model)
    assert model.clone().ensemble


def accuracy(model, **options):
    stream = synth.SEA(variant=0, seed=1).take(5000)
    return evaluate.progressive_val_score(stream, model, metrics.Accuracy(), **options).get()


def test_in_rivers_evaluations_pipelines_and_ensembles():
    assert accuracy(DEVDANClassifier(seed=1)) > 0.93
    assert accuracy(DEVDANClassifier(seed=1, rehearse=0)) > 0.93
    assert accuracy(DEVDANClassifier(seed=1, ensemble=True)) > 0.95
    assert accuracy(preprocessing.StandardScaler() | DEVDANClassifier(seed=1)) > 0.93
    assert accuracy(compose.Select(0, 1) | DEVDANClassifier(seed=1)) > 0.9
    assert accuracy(ensemble.BaggingClassifier(DEVDANClassifier(seed=1), n_models=3, seed=1)) > 0.93
    drifting = ensemble.ADWINBaggingClassifier(DEVDANClassifier(seed=1), n_models=3, seed=1)
    assert accuracy(drifting) > 0.93
    retrained = drift.DriftRetrainingClassifier(DEVDANClassifier(seed=1), drift.binary.DDM())
    assert accuracy(retrained) > 0.9


def test_with_labels_that_come_late():
    clock = count()
    late = evaluate.progressive_val_score(
        Phishing(), DEVDANClassifier(seed=1), metrics.Accuracy(), moment=lambda _: next(clock), delay=20
    )
    assert late.get() > 0.85
    steps = evaluate.iter_progressive_val_score(Phishing(), DEVDANClassifier(seed=1), metrics.Accuracy(), step=500)
    assert len(list(steps)) == 3


@pytest.mark.parametrize("y", [float("nan"), pd.NaT, pd.NA, [1], np.zeros(2)], ids=repr)
def test_what_is_no_label_is_refused_and_leaves_the_model_as_it_was(y):
    for model in (learned(), DEVDANClassifier(seed=1)):
        before = words(model), model.encoding_, dict(model._codes)
        with pytest.raises((ValueError, TypeError)):
            model.learn_one({"x0": 1.0, "new": 2.0}, y)
        with pytest.raises((ValueError, TypeError)):
            model.learn_many(pd.DataFrame({"x0": [1.0, 2.0], "new": 2.0}), pd.Series(["up", y], dtype=object))
        assert (words(model), model.encoding_, model._codes) == before


@pytest.mark.parametrize("value", [1j, np.inf, 10**400, [1]], ids=lambda value: str(value)[:9])
def test_a_frame_with_a_column_of_no_kind_leaves_the_model_as_it_was(value):
    column = pd.Series([value], dtype=object)
    for model in (learned(), DEVDANClassifier(seed=1)):
        before = words(model), model.encoding_, dict(model._codes)
        with pytest.raises(ValueError, match="column 'new'"):
            model.learn_many(pd.DataFrame({"x0": [1.0], "new": column}), pd.Series(["up"]))
        assert (words(model), model.encoding_, model._codes) == before


@pytest.mark.parametrize("x", [None, 5, "text", [1.0], np.zeros(2)], ids=repr)
def test_samples_and_frames_that_are_none(x):
    model = learned()
    for verb, rest in (
        ("learn_one", ["up"]),
        ("learn_unlabeled_one", []),
        ("predict_one", []),
        ("predict_proba_one", []),
    ):
        with pytest.raises(TypeError, match="x must be a dict of features, got"):
            getattr(model, verb)(x, *rest)
    verbs = {"learn_one": ["up"], "learn_unlabeled_one": [], "predict_one": [], "predict_proba_one": []}
    for verb, rest in verbs.items():
        with pytest.raises(TypeError, match="x must be a dict of features, got"):
            getattr(model, verb)(x, *rest)
    for verb, rest in {"learn_many": [["up"]], "predict_many": [], "predict_proba_many": []}.items():
        with pytest.raises(TypeError, match="X must be a pandas DataFrame, got"):
            getattr(model, verb)(x, *rest)


def test_a_bad_value_leaves_no_trace():
    model = learned()
    before = words(model), model.encoding_
    for value in ((1, 2), np.inf, 10**400):
        with pytest.raises(ValueError, match="column 'another'"):
            model.learn_one({"x0": 1.0, "another": value}, "up")
    assert (words(model), model.encoding_) == before


# --- Histories ---------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::devdan.histories.histories.HistoryWarning")
@pytest.mark.parametrize("late", [0, 60])
def test_a_row_keeps_its_histories_until_its_label_is_learned(late):
    rows, labels = payments(300)
    ours = Histories("customer", time="day", horizons=[1.0, 5.0])
    plain = devdan.Histories("customer", time="day", horizons=[1.0, 5.0])
    seen, waiting = [], []
    for x, y in zip(rows, labels.tolist(), strict=True):
        seen.append(ours.transform_one(x))
        came = plain.arrive([x])
        assert seen[-1] == plain.inputs(came).dicts()[0]
        waiting.append((x, y, seen[-1]))
        if len(waiting) > late:
            old, label, then = waiting.pop(0)
            assert ours.transform_one(old) == then
            ours.learn_one(old, label)
            plain.teach([old], [label])
    assert ours.histories.content().tobytes() == plain.content().tobytes()
    assert len(ours._waiting) == late


@pytest.mark.filterwarnings("ignore::devdan.histories.histories.HistoryWarning")
def test_histories_in_a_pipeline():
    rows, labels = payments(2000)
    stream = [(x, y == "fraud") for x, y in zip(rows, labels.tolist(), strict=True)]

    def auc(*first):
        steps = *first, preprocessing.StandardScaler(), linear_model.LogisticRegression()
        return evaluate.progressive_val_score(stream, compose.Pipeline(*steps), metrics.ROCAUC()).get()

    alone = auc(compose.Select("amount", "day"))
    assert auc(Histories("customer", time="day"), compose.Discard("country")) > alone + 0.1


def test_rows_that_wait_for_ever_are_bounded():
    histories = Histories("who", max_waiting=5)
    for k in range(20):
        histories.transform_one({"who": "a", "x": float(k % 7) + k / 100})
    assert len(histories._waiting) == 5


@pytest.mark.parametrize("copied", [True, False])
def test_equal_rows_are_as_many_rows(copied):
    """Three equal payments, whose labels come later; a pipeline transforms them once more before it learns them."""
    payment = {"who": "Ann", "amount": 5.0}
    histories, plain = Histories("who", horizons=[9.0]), devdan.Histories("who", horizons=[9.0])
    predicted = [dict(payment) for _ in range(3)]
    for x in predicted:
        histories.transform_one(x)
        histories.transform_one(x)
    expected = [plain.arrive([payment]).dicts()[0] for _ in range(3)]
    for x, row in zip(predicted, expected, strict=True):
        learned = dict(x) if copied else x
        seen = histories.transform_one(learned)
        histories.learn_one(learned, True)
        assert seen["who: rows, lately"] == row["who: rows, lately"]
    assert (histories.histories.n_rows_, len(histories._waiting)) == (3, 0)


def test_columns_may_come_later_before_rivers_models():
    histories = Histories("who", horizons=[3.0])
    histories.transform_one({"who": "Ann", "a": 1.0})
    histories.transform_one({"who": "Ann", "b": 2.0, "c": "x"})
    found = histories.transform_one({"who": "Ann", "b": 3.0, "c": "x"})
    assert found["who: b: mean, lately"] == 2.0
    assert found["who: c: different"] > 0


def test_a_number_that_becomes_a_time_in_rows_of_which_some_have_none():
    """The rows are learned one after the other, so that the first has no value of the column."""
    model = DEVDANClassifier(seed=0)
    model.learn_one({"c": 0.0}, True)
    rows = [{"a": None}, {"a": None, "c": pd.Timestamp("1970-01-01 09:00", tz="Asia/Tokyo")}]
    model.learn_many(pd.DataFrame(rows, dtype=object), pd.Series([True, True]))
    assert set(model.predict_proba_one({"c": 1.0})) == {True}
