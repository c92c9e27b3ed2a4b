"""What there is to know about a fleet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from devdan.fleet.fleet import DEVDANFleet
from devdan.serving.facts import changed_options

LEVELS = (0.1, 0.5, 0.9)  # the shares of the keys that are below
_WORST = 10
_FEW = 20  # labels below which a key's accuracy says little


def fleet_facts(fleet: DEVDANFleet, path: Path) -> dict[str, Any]:
    """What it is, what it learned from, and how its keys are doing."""
    table = fleet.summary()
    totals = {name: sum(table[name].to_pylist()) for name in ("samples", "labels", "units")}
    drifts = {name: sum(table[name].to_pylist()) for name in ("real_drifts", "virtual_drifts")}
    known = table.filter((table["labels"].to_numpy() >= _FEW) & table["accuracy"].is_valid().to_numpy())
    accuracy = known["accuracy"].to_numpy()
    worst = known.sort_by([("accuracy", "ascending"), ("labels", "descending")]).slice(0, _WORST)
    return {
        "file": str(path),
        "bytes": path.stat().st_size,
        "kind": type(fleet).__name__,
        "options": changed_options(fleet),
        "key": fleet.key_name_,
        "n_keys": len(fleet),
        "n_rows": fleet.n_rows_,
        "n_features": fleet.n_features_in_,
        "feature_names": [str(name) for name in getattr(fleet, "feature_names_in_", [])] or None,
        "columns": fleet.column_records(),
        "notes": fleet.encoding_.notes,
        "classes": fleet.mixture_.classes.labels.tolist(),
        **totals,
        **drifts,
        "n_judged": len(known),
        "accuracy": dict(zip(map(str, LEVELS), np.quantile(accuracy, LEVELS).tolist(), strict=True))
        if len(known) > 0
        else None,
        "worst": worst.to_pylist(),
    }
