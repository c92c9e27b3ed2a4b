"""Models by name, as the command line and the tables know them."""

from __future__ import annotations

import difflib
import importlib
import inspect
from typing import Any

from devdan.classifier import DEVDAN

_PAPER: dict[str, Any] = {"scaling": None}
_FIXED: dict[str, Any] = {**_PAPER, "n_hidden": 10, "grow": False, "prune": False}

# name: what it is, and its options
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "devdan": ("DEVDAN as you get it by default", {}),
    "devdan-paper": ("DEVDAN with the paper's settings, on inputs scaled to [0, 1] beforehand", _PAPER),
    "ae": ("the paper's autoencoder with ten hidden units", {**_FIXED, "masking": 0.0}),
    "dae": ("the paper's denoising autoencoder with ten hidden units", _FIXED),
    "devdan-no-generative": ("devdan-paper without its generative phase", {**_PAPER, "generative": False}),
    "devdan-no-growing": ("devdan-paper that never grows", {**_PAPER, "grow": False}),
    "devdan-no-pruning": ("devdan-paper that never prunes", {**_PAPER, "prune": False}),
}


def build(name: str, seed: int = 0, options: dict[str, Any] | None = None) -> Any:
    """The model of this name, or of the class that ``module:Class`` names, with some options changed.

    >>> build("dae", seed=3, options={"n_hidden": 5})
    DEVDAN(grow=False, n_hidden=5, prune=False, random_state=3, scaling=None)
    >>> build("sklearn.naive_bayes:GaussianNB")
    GaussianNB()
    """
    options = options or {}
    if name in VARIANTS:
        kind: Any = DEVDAN
        given = VARIANTS[name][1]
    elif ":" in name:
        kind, given = _imported(name), {}
    else:
        near = difflib.get_close_matches(name, VARIANTS, cutoff=0.4) or list(VARIANTS)
        raise ValueError(
            f"there is no model {name!r}; did you mean {' or '.join(near)}? A class of any package goes by module:Class"
        )
    known = inspect.signature(kind).parameters
    anything = any(parameter.kind is parameter.VAR_KEYWORD for parameter in known.values())
    for option in options:
        if option not in known and not anything:
            near = difflib.get_close_matches(option, known, n=2, cutoff=0.4) or list(known)
            raise ValueError(f"{name} has no option {option!r}; did you mean {' or '.join(near)}?")
    seeds = {option: seed for option in ("random_state", "seed") if option in known}
    try:
        model = kind(**{**seeds, **given, **options})
    except TypeError as error:
        raise ValueError(f"{name} cannot be made: {error}") from error
    if not hasattr(model, "learn_one") and not (hasattr(model, "partial_fit") and hasattr(model, "predict")):
        raise ValueError(f"{name} is no model for streams: it has neither partial_fit and predict nor learn_one")
    return model


def _imported(name: str) -> Any:
    module, _, attribute = name.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"the model {name!r} cannot be imported: {error}") from error


def parse_options(settings: list[str]) -> dict[str, Any]:
    """Options from texts like ``masking=0.2``.

    >>> parse_options(["masking=0.2", "scaling=none", "grow=false", "scope=adaptive"])
    {'masking': 0.2, 'scaling': None, 'grow': False, 'scope': 'adaptive'}
    """
    options: dict[str, Any] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals or not name.strip():
            raise ValueError(f"--set takes option=value, got {setting!r}")
        options[name.strip()] = _value(text.strip())
    return options


def _value(text: str) -> Any:
    words = {"none": None, "null": None, "true": True, "false": False}
    if text.lower() in words:
        return words[text.lower()]
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text
