"""The grid behind the table: each cell is run once, whatever happens to the others."""

import importlib.util
import json
import os
import signal
import time

import numpy as np
import pytest

from devdan.evaluation import registry
from devdan.evaluation.loop import prequential
from devdan.evaluation.record import Summary
from devdan.experiments import gridjob
from devdan.experiments.gridjob import Cell, File, Plan, Remaining
from devdan.runs.gridfolder import GridFolder
from devdan.streams import open_stream, sea

HERE = [
    name
    for name in registry.NAMES
    if not name.startswith("capymoa")  # these are in test_moa.py
    and (importlib.util.find_spec("river") or not name.startswith("river"))
]
QUICK = ("ae", "dae", "sklearn-sgd")


@pytest.fixture(autouse=True)
def no_data(monkeypatch, tmp_path):
    monkeypatch.setenv("DEVDAN_DATA", str(tmp_path / "none"))


@pytest.mark.parametrize("name", HERE)
def test_every_model_of_the_table_learns(name):
    stream = sea(2000, noise=0)
    summary = Summary(prequential(stream, registry.build(name, seed=1)))
    assert summary.rate.mean > 60
    if name in ("ae", "dae"):
        assert summary.hidden.mean == 10
        assert summary.prunings == summary.growths == (0, 0)


def test_ablations_lack_what_they_lack():
    generative, growing, pruning = (
        Summary(prequential(sea(20_000), registry.build(f"devdan-no-{part}")))
        for part in ("generative", "growing", "pruning")
    )
    assert generative.growths.generative == generative.prunings.generative == 0
    assert sum(growing.growths) == 0
    assert sum(pruning.prunings) == 0
    assert registry.build("ae").masking == 0 < registry.build("dae").masking


def test_peers_take_labels_and_holes_of_all_kinds():
    X, y = next(iter(sea(3000, chunk=3000, noise=0)))
    X[np.random.default_rng(0).random(X.shape) < 0.02] = np.nan
    for labels in (y, y == 1, np.where(y == 1, "up", "down")):
        for name in set(registry.PEERS) & set(HERE) - {"river-arf", "river-srp"}:  # forests take no missing features
            stream = open_stream((X, labels), chunk=500)
            summary = Summary(prequential(stream, registry.build(name), classes=np.unique(labels).tolist()))
            assert summary.rate.mean > 70, (name, labels[0])
            assert set(summary.classes) == set(np.unique(labels).tolist())


def test_a_river_model_for_two_classes_says_so_at_the_third():
    pytest.importorskip("river")
    X = np.zeros((6, 1))
    with pytest.raises(ValueError, match="takes two classes, got a third one, 2"):
        list(prequential([(X, np.arange(6) % 3)], registry.build("river-logreg")))


def test_a_river_model_for_two_classes_learns_three_of_a_file(tmp_path):
    pytest.importorskip("river")
    random = np.random.default_rng(0)
    y = random.integers(3, size=2000)
    np.savez(tmp_path / "three.npz", X=3 * np.eye(3)[y] + random.normal(size=(2000, 3)), y=y)
    result = gridjob.evaluate(Cell("three", "river-logreg", file=File.at(str(tmp_path / "three.npz"))))
    assert result["cr_mean"] > 90


def test_a_cell_is_the_run_of_the_command_line(tmp_path):
    result = gridjob.evaluate(Cell("sea", "devdan", "fraction:0.5", seed=3, limit=4000))
    summary = Summary(prequential(sea().first(4000), registry.build("devdan", 3), "fraction:0.5", seed=3))
    assert result["cr_mean"] == summary.rate.mean
    assert result["n_labels"] == summary.n_labels
    assert "error" in gridjob.evaluate(Cell("weather", "devdan"))
    assert "StreamError" in gridjob.evaluate(Cell("weather", "devdan"))["error"]


def test_only_what_is_missing_is_run(tmp_path):
    plan = Plan(["sea"], list(QUICK), ["all"], seeds=2, limit=1000)
    assert plan.prepare(tmp_path, None, "devdan table") == []
    done, wanted = plan.results(tmp_path)
    assert (len(done), len(wanted)) == (0, 6)
    ran = []
    gridjob.run(wanted[:4], tmp_path, progress=lambda cell, result: ran.append(cell))
    done, rest = plan.results(tmp_path)
    assert [cell for cell, _ in done] == ran == wanted[:4]
    assert rest == wanted[4:]
    gridjob.run(rest, tmp_path, jobs=2)
    done, rest = plan.results(tmp_path)
    assert (len(done), rest) == (6, [])
    for cell, result in done:
        assert {key: result[key] for key in ("stream", "model", "seed", "limit")} == {
            **{"stream": cell.stream, "model": cell.model, "seed": cell.seed, "limit": cell.limit}
        }
    other = Plan(["sea"], list(QUICK), ["all"], seeds=2, limit=1500)
    assert len(other.results(tmp_path)[1]) == 6  # other settings are other runs


def test_what_cannot_be_run_here_is_told(tmp_path, monkeypatch):
    def no_river(seed):
        raise ImportError

    monkeypatch.setitem(registry.PEERS, "river-hat", ("", no_river))
    plan = Plan(["sea", "susy"], ["ae", "river-hat"], ["all"], seeds=1)
    messages = plan.prepare(tmp_path, None, "devdan table")
    assert "devdan fetch susy" in messages[0]
    assert "pip install 'devdan[river]'" in messages[1]
    assert [(cell.stream, cell.model) for cell in plan.cells] == [("sea", "ae")]
    written = json.loads((tmp_path / "table.json").read_text())
    assert written["streams"] == ["sea", "susy"]
    assert set(written["missing"]) == {"susy"}


def test_a_run_that_fails_does_not_stop_the_others_and_is_tried_again(tmp_path, monkeypatch):
    def fails(seed):
        raise ValueError("no\nluck")

    monkeypatch.setitem(registry.PEERS, "sklearn-mlp", ("", fails))
    plan = Plan(["sea"], ["ae", "sklearn-mlp", "dae"], ["all"], seeds=1, limit=1000)
    gridjob.run(plan.cells, tmp_path)
    done, wanted = plan.results(tmp_path)
    assert [cell.model for cell, _ in done] == ["ae", "dae"]
    assert [cell.result(tmp_path)["error"] for cell in wanted] == ["ValueError: no luck"]


class Deadly:
    """Kills its process at the second chunk."""

    def predict(self, X):
        time.sleep(0.2)  # let the others begin
        os.kill(os.getpid(), signal.SIGKILL)

    def partial_fit(self, X, y, classes=None):
        return self


def test_a_killed_worker_takes_nothing_with_it_but_its_own_run(tmp_path):
    wanted = [Cell("sea", "ae", seed=seed, limit=20_000) for seed in range(4)]
    deadly = Cell("sea", "test_grid:Deadly", limit=1000)
    gridjob.run([*wanted[:2], deadly, *wanted[2:]], tmp_path, jobs=2)
    assert all(cell.result(tmp_path)["n_samples"] == 20_000 for cell in wanted)
    assert "was killed" in deadly.result(tmp_path)["error"]


def test_what_remains_is_judged_by_what_was_done():
    a, b, c = (Cell("sea", "ae", seed=seed) for seed in range(3))
    hyperplane = Cell("hyperplane", "ae")
    remaining = Remaining([a, b, c, hyperplane], [], jobs=2)
    assert remaining.seconds is None
    remaining.done(a, {"wall_seconds": 10.0, "n_samples": 100_000})
    assert remaining.seconds == pytest.approx((10 + 10 + 12) / 2)  # at that speed, the longer stream takes longer
    remaining.done(b, {"error": "no"})
    assert remaining.seconds == pytest.approx((10 + 12) / 2)


class Slow:
    """Takes a while for each chunk."""

    def predict(self, X):
        time.sleep(0.05)
        return np.zeros(len(X), dtype=int)

    def partial_fit(self, X, y, classes=None):
        return self


def test_a_cell_that_takes_too_long_is_stopped_and_says_so(tmp_path):
    slow, quick = Cell("sea", "test_grid:Slow", limit=50_000), Cell("sea", "ae", limit=2000)
    gridjob.run([slow, quick], tmp_path, stop_after=0.01)
    result = slow.result(tmp_path)
    assert result["stopped_after"] == 0.01
    assert 500 <= result["n_samples"] < 50_000
    assert result["wall_seconds"] > 0.6
    assert "cr_mean" not in result
    assert quick.result(tmp_path)["cr_mean"] > 50
    assert [kept["model"] for kept in GridFolder(tmp_path).results()] == ["ae"]
    assert [kept["model"] for kept in GridFolder(tmp_path).stopped()] == ["test_grid:Slow"]


def test_what_was_stopped_is_run_again_only_with_more_time(tmp_path):
    plan = Plan(["sea"], ["ae"], ["all"], seeds=1, limit=1000, stop_after=20)
    plan.prepare(tmp_path, None, "devdan table")
    assert json.loads((tmp_path / "table.json").read_text())["stop_after"] == 20
    (cell,) = plan.cells
    cell.keep(tmp_path, {"stopped_after": 20, "n_samples": 500, "wall_seconds": 1200.0})
    for minutes, runs in ((20, 0), (5, 0), (30, 1), (None, 1)):
        plan.stop_after = minutes
        assert len(plan.results(tmp_path)[1]) == runs, minutes
    gridjob.run(plan.results(tmp_path)[1], tmp_path)
    plan.stop_after = 20
    assert plan.results(tmp_path)[0][0][1]["cr_mean"] > 0  # a result is a result, whatever the limit


def test_no_run_is_expected_to_take_longer_than_it_may():
    cells = [Cell("sea", "ae", seed=seed) for seed in range(3)]
    remaining = Remaining(cells, [], jobs=1, stop_after=1)
    remaining.done(cells[0], {"stopped_after": 1, "wall_seconds": 61.0, "n_samples": 1000})
    assert remaining.seconds == 120
