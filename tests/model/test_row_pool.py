"""A model file holds each remembered sample once and gives all back bit for bit; no false account does harm."""

import copy
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from devdan import DEVDANEnsemble, ModelFileError
from devdan.model import modelfile
from devdan.model.row_pool import pooled, unpooled

ALIKE = [(1, 0, 0, 0), (2, 2, 300, 0), (2, 1, 300, 0)]  # two members remember 300 samples each


@pytest.fixture(scope="module")
def model():
    model, random = DEVDANEnsemble(ALIKE, n_jobs=1, random_state=0), np.random.default_rng(0)
    for _ in range(4):
        X = random.normal(size=(100, 6))
        X[random.random(X.shape) < 0.05] = np.nan
        model.partial_fit(X, np.arange(100) % 2)
    return model


def test_samples_that_several_members_remember_are_in_a_file_once(model, tmp_path):
    model.save(tmp_path / "model")
    header, words = modelfile.read(tmp_path / "model")
    assert (words.view(np.int64) == np.concatenate(model.mixture_.networks).view(np.int64)).all()
    assert "rows" not in header
    modelfile.write(tmp_path / "plain", header, words)  # which may be read as well
    loaded, plain = (DEVDANEnsemble.load(tmp_path / name) for name in ("model", "plain"))
    assert modelfile.content_of(loaded) == modelfile.content_of(plain) == (tmp_path / "model").read_bytes()
    width = model.mixture_.nets[1].max_features
    saved = (tmp_path / "plain").stat().st_size - (tmp_path / "model").stat().st_size
    assert saved > 8 * (300 * (width - 2)) - 200  # less a number for each place


@pytest.mark.parametrize("scales", [[(1, 0, 0, 0)], [(1, 0, 0, 0), (2, 2, 300, 0)]])
def test_a_file_without_rows_that_recur_is_as_it_was(scales):
    model = DEVDANEnsemble(scales, n_jobs=1, random_state=0)
    for seed in range(4):
        model.partial_fit(np.random.default_rng(seed).normal(size=(100, 6)), np.arange(100) % 2)
    words = np.concatenate(model.mixture_.networks)
    assert pooled(words, [len(state) for state in model.mixture_.networks]) is None


PLACES = ("width", "n", ("places", 0, 0), ("places", 0, 1), ("places", 1, 0), ("places", 1, 1), ("places", 0), "places")


@given(
    place=st.sampled_from(PLACES),
    value=st.one_of(
        st.integers(-5, 5000), st.sampled_from([2**39, 2**63, 2**70, True, 1.5, None, "x", [], [[0, 0]], {}])
    ),
)
def test_a_false_account_of_rows_is_refused_or_harmless(model, place, value):
    about, words = pooled(np.concatenate(model.mixture_.networks), [len(state) for state in model.mixture_.networks])
    about = json.loads(json.dumps(about))
    if isinstance(place, tuple):
        at = about
        for step in place[:-1]:
            at = at[step]
        at[place[-1]] = value
    else:
        about[place] = value
    try:
        found = unpooled(words, about, 1e7)
    except (ValueError, KeyError, TypeError, OverflowError):
        return
    assert found.nbytes <= 1e7


@given(number=st.integers(-(2**63), 2**63 - 1), place=st.integers(0, 599))
def test_a_row_that_is_not_there_is_refused(model, number, place):
    about, words = pooled(np.concatenate(model.mixture_.networks), [len(state) for state in model.mixture_.networks])
    words[len(words) - 600 + place :].view(np.int64)[0] = number
    if not 0 <= number < about["n"]:
        with pytest.raises(ValueError, match="it lacks rows"):
            unpooled(words, about, 1e9)
    with pytest.raises(ValueError, match="do not add up"):
        unpooled(words, about, 1e3)


def test_a_file_with_a_false_account_is_no_model(model, tmp_path):
    header = modelfile.header_of(model)
    about, words = pooled(np.concatenate(model.mixture_.networks), header["states"])
    for bad in (None, {}, {**about, "n": 0}, {**about, "places": about["places"][::-1]}):
        modelfile.write(tmp_path / "model", copy.deepcopy(header) | {"rows": bad}, words)
        with pytest.raises(ModelFileError, match="does not hold a valid model"):
            DEVDANEnsemble.load(tmp_path / "model")
