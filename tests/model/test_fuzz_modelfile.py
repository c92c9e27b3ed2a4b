"""Any bytes in place of a model's file: a ``ModelFileError``, or a model that works.

Without the JIT, where an index beyond an array is an error, it also shows that nothing reaches there (``make fuzz``).
"""

import hashlib
import json

import numpy as np
import pytest
from hostile import DEEP, VALUES, WORDS, changes
from hypothesis import example, given
from hypothesis import strategies as st
from networks import SMALL

from devdan import DEVDAN, DEVDANEnsemble, ModelFileError, kernel
from devdan.model import modelfile

pytestmark = [
    pytest.mark.fuzz,
    pytest.mark.uncompiled,
    pytest.mark.filterwarnings("ignore:X does not have valid feature names"),
]
X = np.random.default_rng(0).normal(size=(12, 3))
Y = np.arange(12) % 3
NAMES = np.array(["dry", "rain", "snow"])
MODELS = {
    "one": DEVDAN(random_state=0).partial_fit(X, Y),
    "minmax": DEVDAN(random_state=0, scaling="minmax", optimizer="momentum").observe(X).teach(X, NAMES[Y]),
    "balanced": DEVDAN(random_state=0, class_weight="balanced").partial_fit(X, Y),
    "weighted": DEVDAN(random_state=0, class_weight={"dry": 3.0}).partial_fit(X, NAMES[Y]),
    "unlabelled": DEVDAN(random_state=0, scaling=None).observe(np.abs(X) % 1),
    "ensemble": DEVDANEnsemble(SMALL, random_state=0, n_jobs=1).partial_fit(X, NAMES[Y].astype(object)),
    "alone": DEVDAN(random_state=0, rehearse=0).partial_fit(X, Y),
}
KINDS = st.sampled_from(sorted(MODELS))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    for name, model in MODELS.items():
        model.save(folder / name)
    return folder


def loads_or_says_so(path, kind):
    """Whatever is loaded predicts and learns on."""
    try:
        model = type(MODELS[kind]).load(path)
    except ModelFileError:
        return
    assert model.n_features_in_ < 100
    rows = np.tile(X, (1, -(-model.n_features_in_ // 3)))[:, : model.n_features_in_]
    for _ in range(2):
        model.observe(np.abs(rows) % 1)
        if hasattr(model, "classes_"):
            y = np.resize(model.classes_, len(rows))
            model.partial_fit(np.abs(rows) % 1, y)
            probabilities = model.predict_proba(rows % 1)
            np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-9)
        for state in model.mixture_.networks:
            net = kernel.Network(state)
            always = [name for name, field in net.fields().items() if field.empty == 0.0]
            assert all(np.isfinite(getattr(net, name)).all() for name in always)
            assert not np.isinf(getattr(net, "buffer", 0.0)).any()
    assert repr(model)
    assert len(model.events_) <= model.n_events_


# --- Bytes -------------------------------------------------------------------------------------------------------


OF_THIS_VERSION = modelfile.MAGIC + modelfile.VERSION.to_bytes(4, "little")


@given(content=st.binary(max_size=600), prefix=st.sampled_from([b"", modelfile.MAGIC, OF_THIS_VERSION]))
def test_any_bytes(files, content, prefix):
    path = files / "any"
    path.write_bytes(prefix + content)
    with pytest.raises(ModelFileError):
        DEVDAN.load(path)


@given(kind=KINDS, change=changes(20_000), checked=st.booleans())
def test_altered_bytes(files, kind, change, checked):
    """Also where the checksum was made to match, and the lengths of header and states where that can be."""
    content = change((files / kind).read_bytes()[:-32])
    if checked and len(content) >= modelfile._PREFIX.size:
        magic, version, n_text, _ = modelfile._PREFIX.unpack_from(content)
        n_words = max(len(content) - modelfile._PREFIX.size - n_text, 0) // 8
        content = modelfile._PREFIX.pack(magic, version, n_text, n_words) + content[modelfile._PREFIX.size :]
    (files / "altered").write_bytes(content + hashlib.sha256(content).digest())
    loads_or_says_so(files / "altered", kind)


# --- Headers -----------------------------------------------------------------------------------------------------

HEADER = {"kind", "options", "states", "n_features", "feature_names", "classes", "dtype", "outputs", "warned"}


@given(
    kind=KINDS,
    key=st.sampled_from(sorted(HEADER)),
    value=VALUES,
    drop=st.booleans(),
)
@example("one", "kind", "deep", False)
@example("one", "dtype", "((1)i4,i4", False)
@example("one", "feature_names", "deep", False)
def test_altered_headers(files, kind, key, value, drop):
    header, words = modelfile.read(files / kind)
    header[key] = DEEP if value == "deep" else value
    if drop:
        del header[key]
    write(files / "header", header, words)
    loads_or_says_so(files / "header", kind)


@given(kind=KINDS, data=st.data(), value=VALUES)
def test_altered_options(files, kind, data, value):
    header, words = modelfile.read(files / kind)
    chosen = header["options"]
    if data.draw(st.booleans()) and "estimator" in chosen:
        chosen = chosen["estimator"]
    chosen[data.draw(st.sampled_from([*chosen, "unknown", "self"]))] = DEEP if value == "deep" else value
    write(files / "options", header, words)
    loads_or_says_so(files / "options", kind)


def write(path, header, words):
    """As modelfile does, but with whatever JSON can say, NaN too."""
    text = json.dumps(header).encode()
    content = modelfile._PREFIX.pack(modelfile.MAGIC, modelfile.VERSION, len(text), len(words)) + text + words.tobytes()
    path.write_bytes(content + hashlib.sha256(content).digest())


# --- States ------------------------------------------------------------------------------------------------------


@given(kind=KINDS, data=st.data())
def test_altered_states(files, kind, data):
    header, words = modelfile.read(files / kind)
    starts = np.concatenate([[0], np.cumsum(header["states"])[:-1]]).tolist()
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.sampled_from(starts))
        part = data.draw(st.sampled_from([24, 84, 600, len(words) - start]))
        words[start + data.draw(st.integers(0, min(part, len(words) - start) - 1))] = data.draw(WORDS)
    write(files / "states", header, words)
    loads_or_says_so(files / "states", kind)
