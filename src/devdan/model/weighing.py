"""What samples and classes weigh in the loss: checks, and what the kernel and the model file are given."""

from __future__ import annotations

from typing import Any

import numpy as np

from devdan.arrays import Floats
from devdan.model.classes import Classes

LARGEST_WEIGHT = 1e6  # of a sample, or of a class in a dict, so that no step overflows
NO_WEIGHTS = np.empty(0)  # to the kernel: all samples weigh 1


# --- Samples -----------------------------------------------------------------------------------------------------


def check_sample_weight(sample_weight: Any, n_samples: int, name: str = "sample_weight") -> Floats:
    """The weights as an array of their own; raises a ``ValueError`` unless there is a valid one for each sample.

    >>> check_sample_weight([1, 0.5], 2)
    array([1. , 0.5])
    """
    try:
        given = np.asarray(sample_weight)
        if given.dtype.kind not in "biufO":
            raise TypeError(f"their type is {given.dtype}")
        weights: Floats = np.array(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name} must hold numbers: {error}") from error
    if weights.shape != (n_samples,):
        raise ValueError(f"{name} must have one number per sample, {n_samples}, got shape {weights.shape}")
    wrong = ~((weights >= 0.0) & (weights <= LARGEST_WEIGHT))  # also NaN
    if wrong.any():
        raise ValueError(f"{name} must be in [0, {LARGEST_WEIGHT:,.0f}], got {weights[wrong][0]}")
    return weights


# --- Classes -----------------------------------------------------------------------------------------------------


def weight_given(class_weight: Any, label: Any) -> float:
    """What the option gives a class: 1 if the dict does not have it, 0 if the option is no dict."""
    return float(class_weight.get(label, 1.0)) if isinstance(class_weight, dict) else 0.0


def weights_given(class_weight: Any, classes: Classes, room: int) -> Floats:
    """What the option gives each output.

    >>> _, classes = Classes().encode(np.array(["rain", "dry"]))
    >>> weights_given({"dry": 0.5}, classes, 3)
    array([1. , 0.5, 0. ])
    """
    weights = np.zeros(room)
    if isinstance(class_weight, dict):
        weights[classes.outputs] = [weight_given(class_weight, label) for label in classes.labels.tolist()]
    return weights


def to_pairs(params: dict[str, Any]) -> dict[str, Any]:
    """Options for a model file: a dict of class weights as pairs, since the keys of JSON are all text."""
    weights = params.get("class_weight")
    return {**params, "class_weight": list(weights.items())} if isinstance(weights, dict) else params


def of_pairs(params: dict[str, Any]) -> dict[str, Any]:
    """Options from a model file, which may be from before there were class weights."""
    params = {**params}
    if isinstance(params.get("class_weight"), list):
        params["class_weight"] = dict(params["class_weight"])
    return params
