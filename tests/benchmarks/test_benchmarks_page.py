"""The page of benchmarks shows the kept results of many models beside each other."""

import json

import page


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
