"""``devdan show``: the facts about a saved model or fleet."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from devdan.cli import arguments as opt
from devdan.cli.console import clear_errors, out

if TYPE_CHECKING:
    from devdan.fleet.fleet import DEVDANFleet
    from devdan.model.evolving import EvolvingClassifier

_EVENTS = 10
_QUANTILES = (0.1, 0.5, 0.9)  # of the accuracies of the keys
_WORST = 10
_FEW = 20  # labels below which a key's accuracy says little


def show(
    model: opt.Saved,
    key: Annotated[Optional[str], opt.option("KEY", "Of a fleet: show the network of this key.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Show a model: its options, columns, classes and size, what it has seen, and its latest changes.

    - devdan show runs/my-devdan
    - devdan show model.devdan --json
    - devdan show runs/my-fleet --key "pump 7"
    """
    from devdan.apply.matching import model_path, network_of
    from devdan.cli import display
    from devdan.fleet.fleet import DEVDANFleet
    from devdan.opening import open_model

    with clear_errors():
        path = model_path(model)
        learned = open_model(path)
        is_fleet = isinstance(learned, DEVDANFleet) and key is None
        known = fleet_facts(learned, path) if is_fleet else model_facts(network_of(learned, key), path)
    if as_json:
        print(json.dumps(known, default=lambda value: value.tolist() if hasattr(value, "tolist") else str(value)))
        return
    for part in display.fleet(known) if is_fleet else display.model(known):
        out.print(part)


# --- Facts -------------------------------------------------------------------------------------------------------


def model_facts(model: EvolvingClassifier, path: Path) -> dict[str, Any]:
    """The facts about a model: what it is, what it has seen, its structure, and its latest changes."""
    from devdan.kernel import DISCRIMINATIVE

    net = model.mixture_.nets[0]
    return {
        "file": str(path),
        "bytes": path.stat().st_size,
        "kind": type(model).__name__,
        "options": _changed_options(model),
        "n_features": int(model.n_features_in_),
        "feature_names": [str(name) for name in getattr(model, "feature_names_in_", [])] or None,
        "n_inputs": model.mixture_.n_inputs,
        "columns": model.column_records(),
        "notes": model.encoding_.notes,
        "classes": model.mixture_.classes.labels.tolist(),
        "n_samples": int(model.n_seen_),
        "n_labels": int(net.n_learned[DISCRIMINATIVE]),
        "n_hidden": model.n_hidden_,
        "n_members": getattr(model, "n_members_", None),
        "n_parameters": model.n_parameters_,
        "importances": model.importances_ if hasattr(model, "classes_") else None,
        "growths": model.growths_,
        "prunings": model.prunings_,
        "drifts": model.drifts_,
        "n_events": model.n_events_,
        "events": [event._asdict() for event in sorted(model.events_)[-_EVENTS:]],
    }


def _changed_options(model: Any) -> dict[str, Any]:
    """The options that differ from their defaults, and those of an ensemble's members."""
    defaults = {name: option.default for name, option in inspect.signature(type(model)).parameters.items()}
    changed: dict[str, Any] = {}
    for name, value in model.get_params(deep=False).items():
        if name == "estimator" and value is not None:
            changed |= {f"estimator: {option}": own for option, own in _changed_options(value).items()}
        elif value is not defaults[name] and not _same(value, defaults[name]):
            changed[name] = value
    return changed


def _same(value: Any, default: Any) -> bool:
    return type(value) is type(default) and bool(value == default)


def fleet_facts(fleet: DEVDANFleet, path: Path) -> dict[str, Any]:
    """The facts about a fleet: what it is, what it has seen, and how accurate its keys are."""
    import numpy as np

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
        "options": _changed_options(fleet),
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
        "accuracy": dict(zip(map(str, _QUANTILES), np.quantile(accuracy, _QUANTILES).tolist(), strict=True))
        if len(known) > 0
        else None,
        "worst": worst.to_pylist(),
    }
