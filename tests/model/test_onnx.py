"""The exported graph predicts what the model predicts."""

import numpy as np
import pytest
from networks import SMALL
from sklearn.base import clone

pytest.importorskip("onnx", reason="onnx is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

from devdan import DEVDAN, DEVDANEnsemble  # noqa: E402

MODELS = {
    "defaults": DEVDAN(random_state=0),
    "min-max, no averages": DEVDAN(scaling="minmax", averaging=0.0, random_state=0),
    "the paper's": DEVDAN.paper(random_state=0),
    "ensemble": DEVDANEnsemble(SMALL, random_state=0),
    "fields by rank": DEVDANEnsemble([(1,), (4, 2, 100, 5)], random_state=0),
    "min-max, replaying alone": DEVDANEnsemble([(2, 1, 300)], estimator=DEVDAN(scaling="minmax"), random_state=0),
}
LABELS = {
    "numbers": np.array([3, 7, 9]),
    "text": np.array(["dry", "rain", "snow"]),
    "booleans": np.array([False, True]),
}


def chunks(n_chunks, labels, missing, seed=0):
    random = np.random.default_rng(seed)
    for _ in range(n_chunks):
        X = random.normal(size=(200, 5)) * [1, 10, 100, 0.1, 0] + [0, 5, -300, 0, 4]  # the last one never varies
        y = labels[((X[:, 0] > 0) + (X[:, 1] > 8).astype(int)) % len(labels)]
        X[random.random(X.shape) < missing] = np.nan
        X[:, 3] = np.round(np.exp(40 * X[:, 3]))  # skewed, with many values alike
        yield X, y


@pytest.mark.filterwarnings("ignore:X has values outside")
@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("name", MODELS)
def test_it_agrees_with_the_model(name, labels, missing, tmp_path):
    model = clone(MODELS[name])
    for X, y in chunks(8, LABELS[labels], missing):
        model.partial_fit(X, y)
    model.to_onnx(tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(str(tmp_path / "model.onnx"))
    X = next(chunks(1, LABELS[labels], missing, seed=1))[0]
    X[0] = [1e200, -1e200, 1e3, 0, 0]  # far off, clipped by both
    found, probabilities = session.run(["label", "probabilities"], {"X": X})
    np.testing.assert_allclose(probabilities, model.predict_proba(X), atol=1e-6, rtol=0)
    assert found.tolist() == model.predict(X).tolist()


@pytest.mark.parametrize("n_classes", [0, 2])
@pytest.mark.parametrize("name", ["defaults", "ensemble"])
def test_a_network_that_knows_no_class_or_not_all_has_its_say_on_those_it_knows(name, n_classes):
    """As a new layer that was only observed, or met only some of the classes, or any network after Ctrl-C."""
    model = clone(MODELS[name])
    for X, y in chunks(4, LABELS["numbers"], 0.0):
        model.partial_fit(X, y)
    for net in model.mixture_.nets[1:]:
        net.n_classes = n_classes
        session = onnxruntime.InferenceSession(model.to_onnx().SerializeToString())
        probabilities = session.run(["probabilities"], {"X": X})[0]
        np.testing.assert_allclose(probabilities, model.predict_proba(X), atol=1e-6, rtol=0)
        net.n_classes = 3


DECISIONS = {
    "costs": {3: {"missed": 20}},
    "a matrix of costs": {"costs": {9: {7: 50, 3: 2}, "7": {3: 0}}},
    "costs of a class that is not there": {"none": {"missed": 20}},
    "a threshold": {9: {"threshold": 0.02}},
    "thresholds of all": {7: {"threshold": 0.2}, 3: {"threshold": 0.2}, 9: {"threshold": 0.9}},
    "one that nobody reaches": {7: {"threshold": 1.0}},
    "one of a class that is not there": {"none": {"threshold": 0.1}},
    "f1": {3: "f1"},
    "recall": {"9": {"recall": 0.99}, 3: {"threshold": 0.7}},
    "budget": {9: {"budget": 0.3}},
    "balanced": {9: "balanced", 7: "balanced"},
}


@pytest.mark.parametrize("name", DECISIONS)
def test_it_decides_as_the_model_does_for_each_row(name):
    model = DEVDAN(random_state=0, decide=DECISIONS[name])
    for X, y in chunks(6, LABELS["numbers"], 0.1):
        model.partial_fit(X, y)
    session = onnxruntime.InferenceSession(model.to_onnx().SerializeToString())
    X = np.concatenate([X for X, _ in chunks(2, LABELS["numbers"], 0.1, seed=1)])
    label, probabilities = session.run(["label", "probabilities"], {"X": X})
    np.testing.assert_allclose(probabilities, model.predict_proba(X), atol=1e-6, rtol=0)
    # Thresholds that follow what comes move within a chunk; those of the file stay.
    assert label.tolist() == [model.predict(row[None]).item() for row in X]
    if name not in ("budget", "balanced"):
        assert label.tolist() == model.predict(X).tolist()
    if not name.startswith(("one", "costs of")):
        likeliest = model.classes_[probabilities.argmax(axis=1)]
        assert (label != likeliest).any()


def test_it_decides_as_the_option_says_now():
    model = DEVDAN(random_state=0)
    for X, y in chunks(4, LABELS["booleans"], 0.0):
        model.partial_fit(X, y)
    model.decide = {"true": {"missed": 30}}
    session = onnxruntime.InferenceSession(model.to_onnx().SerializeToString())
    assert session.run(["label"], {"X": X})[0].tolist() == model.predict(X).tolist()


@pytest.mark.parametrize("option", [{3: {"threshold": 0.2}, 7: {"threshold": 0.2}}, {7: {"threshold": 0.2}, 3: "f1"}])
def test_ties_go_to_the_same_class(option):
    """Where a model knows nothing, all classes are equally probable."""
    model = DEVDAN(random_state=0, decide=option, learning_rate=0.0).partial_fit([[0.0], [1.0]], [3, 7])
    for net in model.mixture_.nets:
        for values in (net.output, net.output_bias, net.output_slow, net.output_bias_slow):
            values[:] = 0.0
    session = onnxruntime.InferenceSession(model.to_onnx().SerializeToString())
    label, probabilities = session.run(["label", "probabilities"], {"X": np.array([[0.5]])})
    assert probabilities.tolist() == [[0.5, 0.5]]
    assert label.tolist() == model.predict([[0.5]]).tolist()


def test_a_model_without_classes_cannot_be_exported():
    with pytest.raises(Exception, match="not been taught"):
        DEVDAN().observe([[1.0], [2.0]]).to_onnx()
