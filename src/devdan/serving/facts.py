"""What there is to know about a model."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

from devdan.kernel import DISCRIMINATIVE
from devdan.model.evolving import EvolvingClassifier

_EVENTS = 10


def facts(model: EvolvingClassifier, path: Path) -> dict[str, Any]:
    """What it is, what it learned from, what it looks like, and what happened to it lately."""
    net = model.mixture_.nets[0]
    return {
        "file": str(path),
        "bytes": path.stat().st_size,
        "kind": type(model).__name__,
        "options": changed_options(model),
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


def changed_options(model: Any) -> dict[str, Any]:
    """The options that are not what they are by default; those of an ensemble's members too."""
    defaults = {name: option.default for name, option in inspect.signature(type(model)).parameters.items()}
    changed: dict[str, Any] = {}
    for name, value in model.get_params(deep=False).items():
        if name == "estimator" and value is not None:
            changed |= {f"estimator: {option}": own for option, own in changed_options(value).items()}
        elif value is not defaults[name] and not _same(value, defaults[name]):
            changed[name] = value
    return changed


def _same(value: Any, default: Any) -> bool:
    return type(value) is type(default) and bool(value == default)
