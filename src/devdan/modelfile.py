"""The file a model is saved in: a header in JSON, the state's words, and a checksum. Nothing in it is ever executed.

Layout, little-endian: 8 bytes of magic, format version (uint32), length of the header in bytes (uint32), length of the
state in words (uint64), header, state (float64), SHA-256 of all that.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from devdan import kernel, options
from devdan.atomic import write_atomically
from devdan.classes import Classes
from devdan.kernel import Floats

Model = TypeVar("Model")

MAGIC = b"\x89DEVDAN\n"
VERSION = 1
_PREFIX = struct.Struct("<8sIIQ")
_DIGEST = 32


class ModelFileError(ValueError):
    """A file that is not a model, or not a whole one, or a newer one."""


def save(path: str | os.PathLike[str], model: Any) -> None:
    """Save a model that has seen something."""
    state = model._words()
    params = {**model.get_params(deep=False), **model._chosen}  # what the state was given, whatever was set since
    if not isinstance(params["random_state"], (int, np.integer)):
        params["random_state"] = None  # the generator's own state is in the words
    classes = model._classes
    header = {
        "options": params,
        "n_features": model.n_features_in_,
        "feature_names": list(getattr(model, "feature_names_in_", [])),
        "classes": classes.labels.tolist(),
        "dtype": "object" if classes.labels.dtype == object else classes.labels.dtype.str,
        "outputs": classes.outputs.tolist(),
        "warned": getattr(model, "_warned", False),
    }
    write(path, header, state)


def load(path: str | os.PathLike[str], kind: type[Model]) -> Model:
    """The model of this kind in a file."""
    header, state = read(path)
    try:
        kernel.check_state(state)
        model = _restored(header, state, kind)
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        raise ModelFileError(f"{path} does not hold a valid model: {error}") from error
    return model


def _restored(header: dict[str, Any], state: Floats, kind: type[Model]) -> Model:
    model: Any = kind(**header["options"])
    chosen = {name: getattr(model, name) for name in options.NAMES}
    options.check(chosen)
    n_features, _, n_classes = (int(size) for size in state[kernel.N_FEATURES : kernel.N_CLASSES + 1].view(np.int64))
    labels = _labels(header["classes"], str(header["dtype"]))
    outputs = np.array(header["outputs"], dtype=np.int64)
    n_named = int(state[kernel.N_NAMED : kernel.N_NAMED + 1].view(np.int64)[0])
    if header["n_features"] != n_features or max(n_classes, n_named) > len(outputs):
        raise ValueError("header and state disagree")
    if sorted(outputs.tolist()) != list(range(len(labels))) or not np.array_equal(np.unique(labels), labels):
        raise ValueError("the classes are not distinct and sorted")
    kernel.views(state).settings[:] = options.settings(chosen)
    model._state, model._classes, model._chosen = state, Classes(labels, outputs), chosen
    model.n_features_in_ = n_features
    model._warned = bool(header["warned"])
    if header["feature_names"]:
        model.feature_names_in_ = np.array([str(name) for name in header["feature_names"]], dtype=object)
        if len(model.feature_names_in_) != n_features:
            raise ValueError("there is not one name for each feature")
    return cast(Model, model)


def _labels(values: Any, dtype: str) -> npt.NDArray[Any]:
    """The classes in their type; of text, the longest one sets the size, whatever the file says."""
    kind = np.dtype(dtype).kind
    if kind not in "biufUO" or (kind in "UO" and not all(isinstance(value, str) for value in values)):
        raise ValueError(f"labels of type {dtype} are not supported")
    return np.array(values, dtype=str if kind == "U" else np.dtype(dtype))


def _plain(value: Any) -> Any:
    """NumPy's numbers and arrays, for JSON."""
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    raise TypeError(f"an option of type {type(value).__name__} cannot be saved")


def write(path: str | os.PathLike[str], header: dict[str, Any], state: Floats) -> None:
    """Write the file in one go: after a crash there is the old file or the new one, never a part."""
    text = json.dumps(header, allow_nan=False, default=_plain).encode()
    content = _PREFIX.pack(MAGIC, VERSION, len(text), len(state)) + text + state.astype("<f8").tobytes()
    write_atomically(Path(path), content + hashlib.sha256(content).digest())


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], Floats]:
    """The header and the state, both still to be checked for their meaning."""
    content = Path(path).read_bytes()
    if content[: len(MAGIC)] != MAGIC[: len(content)] or not content:
        raise ModelFileError(f"{path} is not a DEVDAN model")
    if len(content) < _PREFIX.size + _DIGEST:
        raise ModelFileError(f"{path} is truncated: {len(content)} bytes")
    _, version, n_text, n_words = _PREFIX.unpack_from(content)
    if version < 1:
        raise ModelFileError(f"{path} was altered: there is no format {version}")
    if version > VERSION:
        raise ModelFileError(
            f"{path} was saved by a newer devdan (format {version}, this one reads {VERSION}): upgrade devdan"
        )
    expected = _PREFIX.size + n_text + 8 * n_words + _DIGEST
    if len(content) < expected:
        raise ModelFileError(f"{path} is truncated: {len(content)} bytes of {expected}")
    if len(content) > expected or hashlib.sha256(content[:-_DIGEST]).digest() != content[-_DIGEST:]:
        raise ModelFileError(f"{path} was altered: its checksum does not match")
    middle = _PREFIX.size + n_text
    try:
        header = json.loads(content[_PREFIX.size : middle])
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{path} has no readable header") from error
    if not isinstance(header, dict):
        raise ModelFileError(f"{path} has no readable header")
    state = kernel.aligned(n_words)
    state[:] = np.frombuffer(content[middle:-_DIGEST], dtype="<f8")
    return header, state
