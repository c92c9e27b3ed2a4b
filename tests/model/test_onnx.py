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


def test_a_model_without_classes_cannot_be_exported():
    with pytest.raises(Exception, match="not been taught"):
        DEVDAN().observe([[1.0], [2.0]]).to_onnx()
