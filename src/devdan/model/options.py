"""The options of a model: their ranges, and how the kernel takes them."""

from __future__ import annotations

import math
from collections.abc import Container
from numbers import Integral, Real
from typing import Any

import numpy as np

from devdan.arrays import Floats
from devdan.model import kernel

_SCALINGS = {None: kernel.UNSCALED, "minmax": kernel.MINMAX, "standard": kernel.STANDARD}
_SCOPES = {"fixed": 0.0, "adaptive": 1.0}
_SWITCHES = ("generative", "grow", "prune", "shuffle", "interleave")
_BELOW_ONE = ("masking", "momentum", "averaging")
_OPTIMIZERS = {"momentum": 0.0, "adaptive": 1.0}
_RATES = ("generative_learning_rate", "learning_rate")
_MOST_LAYERS = 100
_MOST_VISITS = 700  # beyond, the kernel's Poisson draws would be too few: exp(-visits) comes near the smallest float

# What the kernel is told of; initial_weights and random_state matter only where a model starts.
NAMES = ("n_hidden", "n_layers", "scaling", "scope", "optimizer", *_SWITCHES, *_BELOW_ONE, *_RATES)


def check(options: dict[str, Any]) -> None:
    """Raise a ``ValueError`` that names the first option out of its range."""
    for name in _SWITCHES:
        require(isinstance(options[name], (bool, np.bool_)), name, "True or False", options[name])
    for name in _BELOW_ONE:
        require(is_real(options[name]) and 0 <= options[name] < 1, name, "in [0, 1)", options[name])
    for name in _RATES:
        require(is_real(options[name]) and 0 <= options[name] <= 1, name, "in [0, 1]", options[name])
    require(is_among(options["scaling"], _SCALINGS), "scaling", "'minmax', 'standard' or None", options["scaling"])
    require(is_among(options["scope"], _SCOPES), "scope", "'fixed' or 'adaptive'", options["scope"])
    require(is_among(options["optimizer"], _OPTIMIZERS), "optimizer", "'adaptive' or 'momentum'", options["optimizer"])
    require(is_count(options["n_hidden"]), "n_hidden", "a whole number of at least 1", options["n_hidden"])
    n_layers = options["n_layers"]
    if "n" in options:
        require(is_count(options["n"]), "n", "a whole number of at least 1", options["n"])
        visits, n_jobs = options["visits"], options["n_jobs"]
        right = is_real(visits) and 0 < visits <= _MOST_VISITS
        require(right, "visits", f"greater than 0 and at most {_MOST_VISITS}", visits)
        require(n_jobs is None or (_is_whole(n_jobs) and n_jobs != 0), "n_jobs", "a whole number but 0", n_jobs)
    right = (isinstance(n_layers, str) and n_layers == "auto") or (is_count(n_layers) and n_layers <= _MOST_LAYERS)
    require(right, "n_layers", f"a whole number of at least 1 or 'auto', and at most {_MOST_LAYERS}", n_layers)


def settings(options: dict[str, Any]) -> Floats:
    """Checked options as the kernel's settings."""
    words = np.zeros(kernel.SETTINGS)
    words[kernel.START] = options["n_hidden"]
    words[kernel.SCALING] = _SCALINGS[options["scaling"]]
    words[kernel.MASKING] = options["masking"]
    words[kernel.GENERATE] = options["generative"]
    words[kernel.GROW] = options["grow"]
    words[kernel.PRUNE] = options["prune"]
    words[kernel.ADAPTIVE_SCOPE] = _SCOPES[options["scope"]]
    words[kernel.GENERATIVE_RATE] = options["generative_learning_rate"]
    words[kernel.DISCRIMINATIVE_RATE] = options["learning_rate"]
    words[kernel.MOMENTUM] = options["momentum"]
    words[kernel.ADAPTIVE_RATE] = _OPTIMIZERS[options["optimizer"]]
    words[kernel.AVERAGING] = options["averaging"]
    words[kernel.LAYERED] = options["n_layers"] != 1
    words[kernel.VISITS] = 1.0
    return words


_SHAPES = {
    "encoder": ("n_features", "n_hidden"),
    "encoder_bias": ("n_hidden",),
    "decoder_bias": ("n_features",),
    "output": ("n_hidden", "n_classes"),
    "output_bias": ("n_classes",),
}


def check_initial_weights(weights: Any, n_features: int, n_classes: int) -> dict[str, Floats]:
    """The initial weights as arrays; those not given, apart from the encoder, are left to the model."""
    if not isinstance(weights, dict) or "encoder" not in weights or not set(weights) <= set(_SHAPES):
        got = list(weights) if isinstance(weights, dict) else weights
        raise ValueError(f"initial_weights must be a dict with 'encoder' and any of {list(_SHAPES)[1:]}, got {got!r}")
    arrays = {name: np.asarray(value, dtype=np.float64) for name, value in weights.items()}
    n_hidden = arrays["encoder"].shape[1] if arrays["encoder"].ndim == 2 else 0
    sizes = {"n_features": n_features, "n_hidden": n_hidden, "n_classes": n_classes}
    for name, array in arrays.items():
        shape = tuple(sizes[size] for size in _SHAPES[name])
        if array.shape != shape or n_hidden < 1:
            remedy = "" if "output" not in name else "; start with partial_fit or teach, and name the classes= there"
            raise ValueError(
                f"initial_weights[{name!r}] must have the shape ({', '.join(_SHAPES[name])}), here {shape}, got "
                f"{array.shape}{remedy}"
            )
        if not (np.abs(array) <= kernel.LARGEST_LEARNED).all():
            raise ValueError(f"initial_weights[{name!r}] must be finite, and at most {kernel.LARGEST_LEARNED}")
    return arrays


def is_count(value: Any) -> bool:
    """Whether it is a whole number of at least 1."""
    return _is_whole(value) and int(value) >= 1


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, (bool, np.bool_))


def is_real(value: Any) -> bool:
    """Whether it is a finite number."""
    number: Any = value
    return isinstance(value, Real) and not isinstance(value, (bool, np.bool_)) and -math.inf < number < math.inf


def is_among(value: Any, choices: Container[Any]) -> bool:
    """Whether it is one of several words, or None where that is one of them."""
    return (value is None and None in choices) or (isinstance(value, str) and value in choices)


def require(holds: bool, name: str, requirement: str, value: Any) -> None:
    """Raise a ``ValueError`` that names an option which is not what it must be."""
    if not holds:
        raise ValueError(f"{name} must be {requirement}, got {value!r}")
