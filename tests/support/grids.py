"""Made-up grids: the results of models on streams, and the folder in which ``devdan table`` leaves them."""

import json
import math

STREAMS = ["sea", "weather", "kddcup"]
MODELS = ["devdan", "devdan-paper", "ae", "river-arf"]
EDGES = {"devdan": 1.0, "devdan-paper": 0.3, "ae": -1.0, "river-arf": 0.5, "devdan-no-generative": -2.0}


def result(stream, model, labels="all", seed=0):
    """A plausible cell: devdan is the best everywhere, apart from kddcup."""
    best = model == "river-arf" and stream == "kddcup"
    share = float(labels.partition(":")[2]) if labels.startswith("fraction") else 1.0
    network = not model.startswith("river")
    return {
        "cr_mean": 90 + EDGES[model] + 3 * best + 0.1 * seed + 5 * math.log10(share),
        "cr_std": 5.0 + seed,
        "kappa": 0.8,
        "f1_macro": 0.8,
        "g_mean": 0.8,
        "hn_mean": 12.0 if network else None,
        "hn_std": 1.5 if network else None,
        "nop_mean": 120.0 if network else None,
        "train_seconds": 2.0 + seed,
        "test_seconds": 0.5,
        "samples_per_second": 1000.0 if network else 10.0,
        "n_samples": 1000,
        "machine": {"cpu": "a CPU", "cores": 2, "system": "an OS"},
        "versions": {"devdan": "0.1.0"},
        "started": "2026-11-15T11:00:00+00:00",
    }


def keep(folder, stream, model, labels="all", seed=0, **own):
    """Write one cell, as an evaluation leaves it."""
    path = folder / "cells" / stream / model / labels.replace(":", "-") / f"{seed}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    key = {"stream": stream, "model": model, "labels": labels, "seed": seed, "chunk": 500, "limit": None}
    path.write_text(json.dumps(key | (own or result(stream, model, labels, seed))))
    return path


def make(folder, streams=STREAMS, models=MODELS, labels=("all",), seeds=2, cells=True, **info):
    """A grid's folder, with all of its cells but those on missing streams."""
    folder.mkdir(exist_ok=True)
    table = {"streams": list(streams), "models": list(models), "labels": list(labels), "seeds": seeds, "chunk": 500}
    table |= {"limit": None, "missing": {}, "models_missing": {}, "command": "devdan table --seeds 2"}
    (folder / "table.json").write_text(json.dumps(table | info))
    for stream in streams if cells else ():
        for model in models:
            for policy in labels:
                for seed in range(seeds):
                    if stream not in info.get("missing", {}) and model not in info.get("models_missing", {}):
                        keep(folder, stream, model, policy, seed)
    return folder
