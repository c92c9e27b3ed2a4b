"""The page of benchmarks shows the kept results of many models beside each other."""

import json

import page
import pytest

from devdan.bench.behaviour import behaviour


def keep(folder, model, stream, **own):
    path = folder / "cells" / stream / model / "all" / "0.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"model": model, "stream": stream} | own))


def test_rates_stand_beside_no_change_and_times(tmp_path):
    assert page.rates_of(tmp_path) == "Not run yet.\n"
    for stream, rate in (("tails", 0.9), ("haze", 0.8)):
        keep(tmp_path, "devdan", stream, cr_mean=100 * rate, kappa_no_change=(rate - 0.5) / 0.5, no_change_rate=50.0)
    keep(tmp_path, "capymoa-srp", "haze", cr_mean=85.0, kappa_no_change=0.7, no_change_rate=50.0)
    keep(tmp_path, "capymoa-srp", "tails", stopped_after=20, n_samples=100, wall_seconds=1201.0)
    text = page.rates_of(tmp_path)
    assert "| | haze | tails | mean |" in text
    assert "| `devdan` | 80.00 | **90.00** | **85.00** |" in text
    assert "| `capymoa-srp` | **85.00** | > 20 min | – |" in text
    assert "| no change | 50.00 | 50.00 | 50.00 |" in text
    assert "| `devdan` | 0.600 | **0.800** | **0.700** |" in text
    assert "took longer and were stopped" in text


def test_figures_of_models_that_do_something_else_now_are_named(tmp_path):
    keep(tmp_path, "devdan", "tails", cr_mean=90.0, behaviour=list(behaviour("devdan")))
    keep(tmp_path, "devdan-quick", "tails", cr_mean=80.0)
    keep(tmp_path, "sklearn-sgd", "tails", cr_mean=70.0)
    assert page.earlier(tmp_path, models=("devdan", "sklearn-sgd")) == ""
    assert "else: `devdan-quick` on all." in page.rates_of(tmp_path)
    keep(tmp_path, "devdan", "haze", cr_mean=90.0, behaviour=[0])
    assert "else: `devdan` on `haze`; `devdan-quick` on all." in page.earlier(tmp_path)


@pytest.mark.parametrize("name", page.SHOWN_ON)
def test_a_page_says_which_figures_are_not_of_this_version(name):
    """If not: `python benchmarks/page.py` says it, and `make table` runs them again."""
    told = [page.earlier(*folders, models=models) for folders, models in page.SHOWN_ON[name]]
    text = (page.DOCS / f"{name}.md").read_text()
    assert [line for line in text.splitlines() if line.startswith("Of an earlier version")] == "".join(
        told
    ).splitlines()
