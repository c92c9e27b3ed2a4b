"""Models by name: each learns, the ablations lack what their names say, the peers take all kinds of labels."""

import importlib.util
from collections import Counter

import numpy as np
import pytest

from devdan.bench import named_models
from devdan.bench.named_models import build
from devdan.evaluation.loop import prequential
from devdan.evaluation.record import Summary
from devdan.streams import open_stream, sea

HERE = [
    name
    for name in named_models.NAMES
    if not name.startswith("capymoa")  # these are in test_peers.py
    and (importlib.util.find_spec("river") or not name.startswith("river"))
]


def errors_of_the_majority(stream):
    """In %, by chunk, of who always predicts the most frequent label of the chunks before."""
    (_, first), *rest = stream
    seen, errors = Counter(first.tolist()), []
    for _, y in rest:
        errors.append(100 * (y != seen.most_common(1)[0][0]).mean())
        seen.update(y.tolist())
    return np.mean(errors)


@pytest.mark.parametrize("name", HERE)
def test_every_model_makes_at_most_half_the_errors_of_guessing_the_majority(name):
    is_slow = named_models.MODELS[name].is_peer  # the forests are, and a single unit learns slowly
    n_samples = 2_000 if is_slow else 10_000
    stream = sea(n_samples, noise=0)
    summary = Summary(prequential(stream, build(name, seed=1)))
    assert 100 - summary.rate.mean < errors_of_the_majority(stream) / 2
    if name in ("ae", "dae"):
        assert summary.hidden.mean == 10
        assert summary.prunings == summary.growths == (0, 0)


def test_ablations_lack_what_they_lack():
    generative, growing, pruning = (
        Summary(prequential(sea(20_000), build(f"devdan-no-{part}"))) for part in ("generative", "growing", "pruning")
    )
    assert generative.growths.generative == generative.prunings.generative == 0
    assert sum(growing.growths) == 0
    assert sum(pruning.prunings) == 0
    assert build("ae").masking == 0 < build("dae").masking


def test_peers_take_labels_and_holes_of_all_kinds():
    X, y = next(iter(sea(3000, chunk=3000, noise=0)))
    X[np.random.default_rng(0).random(X.shape) < 0.02] = np.nan
    peers = [name for name in HERE if named_models.MODELS[name].is_peer]
    for labels in (y, y == 1, np.where(y == 1, "up", "down")):
        for name in set(peers) - {"river-arf", "river-srp"}:  # forests take no missing features
            stream = open_stream((X, labels), chunk=500)
            summary = Summary(prequential(stream, build(name), classes=np.unique(labels).tolist()))
            assert 100 - summary.rate.mean < 0.8 * errors_of_the_majority(stream), (name, labels[0])
            assert set(summary.classes) == set(np.unique(labels).tolist())


def test_peers_take_no_options():
    with pytest.raises(ValueError, match="sklearn-sgd takes no options; to set options, use module:Class"):
        build("sklearn-sgd", options={"alpha": 1})


def test_a_river_model_for_two_classes_says_so_at_the_third():
    pytest.importorskip("river")
    X = np.zeros((6, 1))
    with pytest.raises(ValueError, match="takes two classes, got a third one, 2"):
        list(prequential([(X, np.arange(6) % 3)], build("river-logreg")))
