"""Figures know what their models did, and are made anew where these do something else now."""

import pytest

from devdan.bench import behaviour as module
from devdan.bench.behaviour import behaviour, is_of_now, is_ours
from devdan.bench.grid import Cell, GridFolder, GridPlan, evaluate, run_cells


def test_models_of_different_settings_behave_differently():
    found = {name: behaviour(name) for name in ("devdan", "devdan-paper", "ae", "devdan-no-growing")}
    assert len(set(found.values())) == len(found)
    assert behaviour.__wrapped__("devdan-paper") == found["devdan-paper"]


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        (lambda then: then, True),
        (lambda then: [then[0] + 3, *then[1:]], True),  # what rounding may do
        (lambda then: [then[0] + 4, *then[1:]], False),
        (lambda then: then[1:], False),
        (lambda then: [str(n) for n in then], False),
        (lambda then: None, False),
    ],
)
def test_a_result_is_of_now_if_its_model_does_the_same(changed, expected):
    assert is_of_now({"model": "ae", "behaviour": changed(list(behaviour("ae")))}) is expected


def test_cells_tell_the_behaviour_of_our_models_alone():
    assert evaluate(Cell("sea", "ae", limit=1000))["behaviour"] == behaviour("ae")
    assert "behaviour" not in evaluate(Cell("sea", "sklearn-sgd", limit=1000))
    assert [is_ours(name) for name in ("devdan", "river-arf", "sklearn.naive_bayes:GaussianNB")] == [True, False, False]


def test_cells_of_another_version_are_run_again(tmp_path, monkeypatch):
    plan, folder = GridPlan(["sea"], ["ae", "sklearn-sgd"], ["all"], seeds=1, limit=1000), GridFolder(tmp_path)
    run_cells(plan.cells, tmp_path)
    assert folder.split(plan)[1] == []
    monkeypatch.setattr(module, "behaviour", lambda name: tuple(n + 9 for n in behaviour(name)))
    assert [cell.model for cell in folder.split(plan)[1]] == ["ae"]
