"""Histories are saved with their model; a file from a stranger is refused, or safe to use."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from payments_stream import payments
from tampering import FLOATS, ModelSubject, at, cases_of_node, nodes, put

from devdan import DEVDAN, Histories, ModelFileError
from devdan.evaluation.loop import prequential
from devdan.model import modelfile
from devdan.streams import open_stream

pytestmark = pytest.mark.filterwarnings("ignore::devdan.histories.histories.HistoryWarning")
VALUES = [None, True, 0, 1, -1, 2, 2**31, 2**62, 2**63, 10**400, 0.5, 1e308, float("nan"), "", "x", [], [[]], {}]
ROWS, LABELS = payments(300)


@pytest.fixture(scope="module")
def model():
    """One that has learned with histories."""
    model = DEVDAN(random_state=0)
    histories = Histories(["customer", ("customer", "country")], time="day", max_entities=60)
    for _ in prequential(open_stream(list(zip(ROWS, LABELS, strict=True)), chunk=100), model, histories=histories):
        pass
    return model


def continued(model):
    """What it says of further rows, and learns."""
    rows, labels = payments(80, seed=1)
    found = []
    for place in range(0, 80, 20):
        some = model.histories_.arrive(rows[place : place + 20])
        if getattr(model, "n_features_in_", None) == some.shape[1]:
            found.append(model.predict_proba(some))
        found.append(some.numbers)
        model.histories_.teach(some, labels[place : place + 20])
    found.append(model.histories_.transform(rows).numbers)
    assert model.histories_.notes_ is not None
    return found


def test_a_loaded_model_continues_bit_for_bit(model, tmp_path):
    model.save(tmp_path / "model")
    first, second = (DEVDAN.load(tmp_path / "model") for _ in range(2))
    assert [part.tobytes() for part in continued(first)] == [part.tobytes() for part in continued(second)]
    first.save(tmp_path / "first")
    second.save(tmp_path / "second")
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()
    copied = DEVDAN.load(tmp_path / "model").histories_
    assert copied.feature_names_ == model.histories_.feature_names_
    assert (copied.horizons_, copied.n_entities_) == (model.histories_.horizons_, model.histories_.n_entities_)


def refused_or_safe(path):
    try:
        changed = DEVDAN.load(path)
    except ModelFileError:
        return
    if not hasattr(changed, "histories_"):  # which a file need not have
        return
    found = continued(changed)
    assert all(np.isfinite(part).all() or part.dtype == object for part in found[1:])


@pytest.mark.fuzz
@pytest.mark.uncompiled
@given(data=st.data())
def test_a_changed_file_is_refused_or_safe(model, tmp_path, data):
    content = {"header": plain_header(model), "words": modelfile._words_of(model).copy()}
    paths = [path for path, _ in nodes(content["header"]["histories"]) if path]
    for _ in range(data.draw(st.integers(1, 2))):
        path = ("header", "histories", *data.draw(st.sampled_from(paths)))
        try:
            change = put(path, data.draw(st.sampled_from(VALUES)))
            if data.draw(st.booleans()):
                change = data.draw(st.sampled_from(cases_of_node(path, at(content, path)) or [None])) or change
                change = getattr(change, "change", change)
            change(content)
        except (KeyError, IndexError, TypeError, AttributeError):
            pass  # another change was there before
    if data.draw(st.booleans()):
        n_words = model.histories_.content().size
        content["words"][-data.draw(st.integers(1, n_words))] = data.draw(st.sampled_from(FLOATS))
    write(tmp_path / "changed", content)
    refused_or_safe(tmp_path / "changed")


@pytest.mark.fuzz
@pytest.mark.uncompiled
@given(place=st.integers(1, 200), value=st.sampled_from(FLOATS))
def test_changed_words_of_entities_are_refused_or_safe(model, tmp_path, place, value):
    content = {"header": plain_header(model), "words": modelfile._words_of(model).copy()}
    n_words = model.histories_.content().size
    content["words"][len(content["words"]) - n_words + place] = value
    write(tmp_path / "changed", content)
    refused_or_safe(tmp_path / "changed")


def plain_header(model):
    return json.loads(json.dumps(modelfile.header_of(model), default=modelfile.plain))


def write(path, content):
    subject = ModelSubject.__new__(ModelSubject)
    written = subject.write(path.parent, {"header": content["header"], "states": [content["words"]]})
    written.rename(path)
