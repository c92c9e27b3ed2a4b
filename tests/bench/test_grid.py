"""The grid behind the table: each cell is run once, whatever happens to the others."""

import json
import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest
from joblib.externals.loky import get_reusable_executor

from devdan.bench.grid import Cell, GridFolder, GridPlan, RemainingTime, StreamFile, evaluate, run_cells
from devdan.bench.named_models import MODELS, NamedModel, build
from devdan.evaluation.loop import prequential
from devdan.evaluation.record import Summary
from devdan.streams import sea

QUICK = ("ae", "dae", "sklearn-sgd")


@pytest.fixture(autouse=True)
def no_data(monkeypatch, tmp_path):
    monkeypatch.setenv("DEVDAN_DATA", str(tmp_path / "none"))


def test_a_river_model_for_two_classes_learns_three_of_a_file(tmp_path):
    pytest.importorskip("river")
    random = np.random.default_rng(0)
    y = random.integers(3, size=2000)
    np.savez(tmp_path / "three.npz", X=3 * np.eye(3)[y] + random.normal(size=(2000, 3)), y=y)
    result = evaluate(Cell("three", "river-logreg", file=StreamFile.at(str(tmp_path / "three.npz"))))
    assert result["cr_mean"] > 90


def test_a_file_is_found_by_workers_that_began_in_another_folder(tmp_path, monkeypatch):
    plan = GridPlan(["sea"], list(QUICK), ["all"], seeds=1, limit=1000)
    run_cells(plan.cells, tmp_path / "elsewhere", jobs=2)  # joblib keeps these workers
    X, y = next(iter(sea(1000, chunk=1000)))
    np.savez(tmp_path / "mine.npz", X=X, y=y)
    monkeypatch.chdir(tmp_path)
    cells = [Cell("mine", name, file=StreamFile.at("mine.npz")) for name in QUICK]
    run_cells(cells, tmp_path, jobs=2)
    results = [GridFolder(tmp_path).result(cell) for cell in cells]
    assert [result.get("n_samples") for result in results] == [1000] * len(QUICK), results
    assert {result["file"]["path"] for result in results} == {"mine.npz"}


def test_a_cell_is_the_run_of_the_command_line(tmp_path):
    result = evaluate(Cell("sea", "devdan", "fraction:0.5", seed=3, limit=4000))
    summary = Summary(prequential(sea().first(4000), build("devdan", 3), "fraction:0.5", seed=3))
    assert result["cr_mean"] == summary.rate.mean
    assert result["n_labels"] == summary.n_labels
    assert "error" in evaluate(Cell("weather", "devdan"))
    assert "StreamError" in evaluate(Cell("weather", "devdan"))["error"]


def test_only_what_is_missing_is_run(tmp_path):
    plan = GridPlan(["sea"], list(QUICK), ["all"], seeds=2, limit=1000)
    kept = GridFolder(tmp_path)
    assert plan.prepare() == []
    done, wanted = kept.split(plan)
    assert (len(done), len(wanted)) == (0, 6)
    ran = []
    run_cells(wanted[:4], tmp_path, progress=lambda cell, result: ran.append(cell))
    done, rest = kept.split(plan)
    assert [cell for cell, _ in done] == ran == wanted[:4]
    assert rest == wanted[4:]
    run_cells(rest, tmp_path, jobs=2)
    done, rest = kept.split(plan)
    assert (len(done), rest) == (6, [])
    for cell, result in done:
        assert {key: result[key] for key in ("stream", "model", "seed", "limit")} == {
            **{"stream": cell.stream, "model": cell.model, "seed": cell.seed, "limit": cell.limit}
        }
    other = GridPlan(["sea"], list(QUICK), ["all"], seeds=2, limit=1500)
    assert len(kept.split(other)[1]) == 6  # other settings are other runs


def test_what_cannot_be_run_here_is_told(tmp_path, monkeypatch):
    def no_river():
        raise ImportError

    monkeypatch.setitem(MODELS, "river-hat", NamedModel("", no_river, is_peer=True))
    plan = GridPlan(["sea", "susy"], ["ae", "river-hat"], ["all"], seeds=1)
    messages = plan.prepare()
    GridFolder(tmp_path).write_plan(plan)
    assert "devdan fetch susy" in messages[0]
    assert "pip install 'devdan[river]'" in messages[1]
    assert [(cell.stream, cell.model) for cell in plan.cells] == [("sea", "ae")]
    written = json.loads((tmp_path / "table.json").read_text())
    assert written["streams"] == ["sea", "susy"]
    assert set(written["missing"]) == {"susy"}
    assert GridFolder(tmp_path).plan() == plan


def test_a_run_that_fails_does_not_stop_the_others_and_is_tried_again(tmp_path, monkeypatch):
    def fails(seed):
        raise ValueError("no\nluck")

    monkeypatch.setitem(MODELS, "sklearn-mlp", NamedModel("", lambda: (fails, {}), is_peer=True))
    plan = GridPlan(["sea"], ["ae", "sklearn-mlp", "dae"], ["all"], seeds=1, limit=1000)
    run_cells(plan.cells, tmp_path)
    kept = GridFolder(tmp_path)
    done, wanted = kept.split(plan)
    assert [cell.model for cell, _ in done] == ["ae", "dae"]
    assert [kept.result(cell)["error"] for cell in wanted] == ["ValueError: no luck"]


class Deadly:
    """Kills its process at the second chunk, once another run has ended, so that a third is going on."""

    def predict(self, X):
        while not list(Path(os.environ["GRID_OF_TEST"]).glob("cells/**/*.json")):
            time.sleep(0.001)
        os.kill(os.getpid(), signal.SIGKILL)

    def partial_fit(self, X, y, classes=None):
        return self


def test_a_killed_worker_takes_nothing_with_it_but_its_own_run(tmp_path, monkeypatch):
    monkeypatch.setenv("GRID_OF_TEST", str(tmp_path))
    get_reusable_executor().shutdown()  # joblib keeps workers, which do not know of the variable
    wanted = [Cell("sea", "ae", seed=seed, limit=20_000) for seed in range(4)]
    deadly = Cell("sea", "test_grid:Deadly", limit=1000)
    run_cells([*wanted[:2], deadly, *wanted[2:]], tmp_path, jobs=2)
    kept = GridFolder(tmp_path)
    assert all(kept.result(cell)["n_samples"] == 20_000 for cell in wanted)
    assert "was killed" in kept.result(deadly)["error"]


def test_what_remains_is_judged_by_what_was_done():
    a, b, c = (Cell("sea", "ae", seed=seed) for seed in range(3))
    hyperplane = Cell("hyperplane", "ae")
    remaining = RemainingTime([a, b, c, hyperplane], [], jobs=2)
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
    run_cells([slow, quick], tmp_path, stop_after=0.01)
    kept = GridFolder(tmp_path)
    result = kept.result(slow)
    assert result["stopped_after"] == 0.01
    assert 500 <= result["n_samples"] < 50_000
    assert result["wall_seconds"] > 0.6
    assert "cr_mean" not in result
    assert kept.result(quick)["cr_mean"] == evaluate(quick)["cr_mean"]
    assert [found["model"] for found in kept.results()] == ["ae"]
    assert [found["model"] for found in kept.stopped()] == ["test_grid:Slow"]


def test_what_was_stopped_is_run_again_only_with_more_time(tmp_path):
    plan = GridPlan(["sea"], ["sklearn-sgd"], ["all"], seeds=1, limit=1000, stop_after=20)
    kept = GridFolder(tmp_path)
    kept.write_plan(plan)
    assert kept.plan().stop_after == 20
    (cell,) = plan.cells
    kept.write_result(cell, {"stopped_after": 20, "n_samples": 500, "wall_seconds": 1200.0})
    for minutes, runs in ((20, 0), (5, 0), (30, 1), (None, 1)):
        plan.stop_after = minutes
        assert len(kept.split(plan)[1]) == runs, minutes
    run_cells(kept.split(plan)[1], tmp_path)
    plan.stop_after = 20
    assert "cr_mean" in kept.split(plan)[0][0][1]  # a result is a result, whatever the limit


def test_no_run_is_expected_to_take_longer_than_it_may():
    cells = [Cell("sea", "ae", seed=seed) for seed in range(3)]
    remaining = RemainingTime(cells, [], jobs=1, stop_after=1)
    remaining.done(cells[0], {"stopped_after": 1, "wall_seconds": 61.0, "n_samples": 1000})
    assert remaining.seconds == 120
