"""Streams: the built-in ones are the paper's, and a stream can be cut, limited, shuffled and scaled."""

import os
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ks_2samp

from devdan.streams import hyperplane, sea
from devdan.streams.stream import Stream, rechunked

DATA = Path(os.environ.get("DEVDAN_DATA", Path(__file__).parents[3] / "shared" / "data"))


def whole(stream):
    X, y = (np.concatenate(parts) for parts in zip(*stream, strict=True))
    return X, y


@given(st.lists(st.integers(0, 20), max_size=8), st.integers(1, 12))
def test_rechunking_keeps_every_sample_in_its_place(sizes, chunk):
    y = np.arange(sum(sizes))
    cuts = np.split(y, np.cumsum(sizes)[:-1]) if sizes else []
    chunks = list(rechunked([(part[:, None], part) for part in cuts], chunk))
    assert [len(part) for _, part in chunks] == [chunk] * (len(y) // chunk) + [len(y) % chunk] * (len(y) % chunk > 0)
    for k in range(2):
        np.testing.assert_array_equal(np.concatenate([c[k].ravel() for c in chunks] or [y]), y)


def test_sea_has_the_papers_concepts_and_noise():
    X, y = whole(sea(80_000, seed=3))
    assert X.shape == (80_000, 3)
    assert ((X >= 0) & (X < 1)).all()
    for eighth, threshold in enumerate((8, 9, 7, 9.5) * 2):
        part = slice(10_000 * eighth, 10_000 * (eighth + 1))
        wrong = np.mean(y[part] != (10 * (X[part, 0] + X[part, 1]) <= threshold))
        assert 0.08 < wrong < 0.11 if eighth < 4 else wrong == 0


def test_sea_drifts_where_it_is_told_to():
    X, y = whole(sea(3000, noise=0, drifts=[100, 2000]))
    for part, threshold in ((slice(0, 100), 8), (slice(100, 2000), 9), (slice(2000, 3000), 7)):
        np.testing.assert_array_equal(y[part], 10 * (X[part, 0] + X[part, 1]) <= threshold)
    with pytest.raises(ValueError, match="increasing order"):
        sea(drifts=[5, 5])


@pytest.mark.parametrize("n_samples", [1, 7, 8, 100_000, 1003])
def test_sea_knows_where_it_drifts(n_samples):
    stream = sea(n_samples, noise=0)
    concepts = [t * 8 // n_samples for t in range(n_samples)]
    assert list(stream.drifts) == [t for t in range(1, n_samples) if concepts[t] != concepts[t - 1]]


def test_what_is_made_of_a_stream_knows_its_drifts_too():
    assert sea(drifts=[0, 100, 200_000]).drifts == (100,)
    assert sea(None, drifts=[100]).drifts == (100,)
    assert sea(None).drifts is None  # there is no end to them
    assert hyperplane().drifts == (50_000,)
    assert hyperplane(1000).drifts == ()
    assert sea().first(30_000).drifts == sea().scaled().first(30_000).drifts == (12_500, 25_000)
    assert sea().shuffled().drifts is None


def test_an_endless_sea_repeats_the_papers_concepts_with_new_samples():
    X, y = whole(islice(sea(None, chunk=50_000), 6))
    first, second = slice(0, 100_000), slice(100_000, 200_000)
    assert not np.array_equal(X[first], X[second])
    noisy = y != (10 * (X[:, 0] + X[:, 1]) <= np.repeat((8, 9, 7, 9.5) * 6, 12_500))
    assert noisy.reshape(6, -1).mean(axis=1) == pytest.approx([0.095, 0] * 3, abs=0.005)
    np.testing.assert_array_equal(y[first], whole(sea())[1])


@pytest.mark.parametrize("generate", [sea, hyperplane])
@pytest.mark.parametrize("options", [{"n_samples": 0}, {"noise": 1.5}, {"chunk": 0}])
def test_generators_say_what_they_take(generate, options):
    name = next(iter(options))
    with pytest.raises(ValueError, match=f"{name} must be"):
        generate(**options)


@pytest.mark.parametrize("generate", [sea, hyperplane])
def test_the_chunks_do_not_change_the_stream(generate):
    stream = generate(9000, seed=1)
    for a, b in zip(whole(stream), whole(stream.in_chunks_of(7)), strict=True):
        np.testing.assert_array_equal(a, b)
    assert not np.array_equal(whole(stream)[0], whole(generate(9000, seed=2))[0])


@pytest.mark.parametrize(("generate", "file"), [(sea, "sea.npz"), (hyperplane, "hyperplane.npz")])
def test_generated_streams_are_statistically_those_of_the_paper(generate, file):
    if not (DATA / file).exists():
        pytest.skip(f"{DATA / file} is not there")
    with np.load(DATA / file) as arrays:
        X, y = arrays["X"], arrays["y"]
    ours, labels = whole(generate(seed=5))
    assert ours.shape == X.shape
    for feature in range(X.shape[1]):
        assert ks_2samp(X[:, feature], ours[:, feature]).pvalue > 1e-4
    # Where in the stream and where in the space is class 1 how frequent? In cells of time and place, the two differ by
    # no more than chance.
    direction = np.array([1, 1, 0]) if generate is sea else np.array([0.4, 0.235, 0.07, 0.295])
    other = np.array([0, 0, 1]) if generate is sea else np.array([0.3, 0, 0.5, -0.9])
    z = []
    for part in np.array_split(np.arange(len(X)), 24):
        for along in (direction, other):
            edges = np.quantile(X[part] @ along, np.linspace(0, 1, 9)[1:-1])
            cells = [np.digitize(features[part] @ along, edges) for features in (X, ours)]
            for cell in range(8):
                a, b = y[part][cells[0] == cell], labels[part][cells[1] == cell]
                pooled = np.concatenate([a, b]).mean()
                spread = np.sqrt(pooled * (1 - pooled) * (1 / len(a) + 1 / len(b)))
                z.append((a.mean() - b.mean()) / spread if spread > 0 else 0.0)
    assert np.abs(z).max() < 4.5
    assert np.mean(np.square(z)) < 1.25


def test_first_takes_no_more_than_there_is():
    stream = sea(1000)
    assert [len(y) for _, y in stream.first(700)] == [500, 200]
    assert stream.first(700).n_samples == 700
    assert stream.first(5000).n_samples == 1000
    assert sea(None).first(10).estimated_samples == 10
    with pytest.raises(ValueError, match="at least 1"):
        stream.first(0)


def test_shuffling_keeps_samples_and_labels_together():
    stream = sea(5000, noise=0)
    X, y = whole(stream)
    X_shuffled, y_shuffled = whole(stream.shuffled(3))
    order = np.random.default_rng(3).permutation(5000)
    np.testing.assert_array_equal(X_shuffled, X[order])
    np.testing.assert_array_equal(y_shuffled, y[order])


def test_scaling_is_that_of_the_whole_stream_and_leaves_holes():
    X = np.array([[1.0, 5.0, np.nan], [3.0, 5.0, 2.0], [2.0, 5.0, 4.0]])
    stream = Stream("small", lambda: iter([(X[:2], np.zeros(2)), (X[2:], np.zeros(1))]), 2)
    np.testing.assert_array_equal(whole(stream.scaled())[0], [[0, 0, np.nan], [1, 0, 0], [0.5, 0, 1]])
    within = sea(3000)
    np.testing.assert_array_equal(whole(within.scaled())[0], whole(within)[0])
