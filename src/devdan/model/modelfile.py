"""The model file: a JSON header, the state words and a checksum. Nothing in it is ever executed.

Layout, little-endian: 8 bytes of magic, format version (uint32), length of the header in bytes (uint32), length of the
states in words (uint64), header, the states of the model's networks (float64), SHA-256 of all that.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import struct
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from devdan.arrays import Floats
from devdan.atomic import write_atomically
from devdan.encoding.encoding import Encoding
from devdan.kernel import Network
from devdan.kernel.state import BY_VERSION, aligned, check_state, padded
from devdan.model import options
from devdan.model.classes import Classes, check_labels

Model = TypeVar("Model")

MAGIC = b"\x89DEVDAN\n"
VERSION, OLDEST = 5, 2  # formats: the one that is written, and the first that is read
_PREFIX = struct.Struct("<8sIIQ")
_DIGEST = 32
_PICKLE = b"\x80"  # with which pickles begin
SQLITE = b"SQLite f"  # with which the files of fleets begin
_TEXT, _NUMBERS = re.compile(r"[<>=]U\d+"), re.compile(r"\|[biu]1|[<>][iuf][248]")
_MOST_TEXT = 2**24  # characters of an array of class names, padded to the longest; above this, one by one


class ModelFileError(ValueError):
    """The file is not a model, is incomplete, or is from a newer version."""


def save(path: str | os.PathLike[str], model: Any) -> None:
    """Save a fitted model."""
    write_atomically(Path(path), content_of(model))


def content_of(model: Any) -> bytes:
    """What the file of a fitted model holds."""
    model._check_is_fitted()
    return _packed(header_of(model), np.concatenate(model._networks))


def header_of(model: Any) -> dict[str, Any]:
    """All of a fitted model but the states of its networks, for JSON."""
    classes = model._classes
    return {
        "kind": type(model).__name__,
        "options": model._kept_options(),
        "states": [len(state) for state in model._networks],
        "n_features": model.n_features_in_,
        "feature_names": list(getattr(model, "feature_names_in_", [])),
        "classes": classes.labels.tolist(),
        "dtype": "object" if classes.labels.dtype == object else classes.labels.dtype.str,
        "outputs": classes.outputs.tolist(),
        "warned": getattr(model, "_warned", False),
        "encoding": None if model._encoding is None else model._encoding.to_json(),
    }


def load(path: str | os.PathLike[str], *kinds: type[Model]) -> Model:
    """Load a model from a file; it must be of one of these classes."""
    return _model(path, *read(path), kinds)


def of_content(content: bytes, name: str, *kinds: type[Model]) -> Model:
    """The model that a file of this content holds; ``name`` is for messages."""
    return _model(name, *_unpacked(content, name), kinds)


def _model(path: Any, header: dict[str, Any], state: Floats, kinds: tuple[type[Model], ...]) -> Model:
    try:
        kind = next((kind for kind in kinds if kind.__name__ == header.get("kind")), None)
        if kind is None:
            known = " or a ".join(kind.__name__ for kind in kinds)
            raise ValueError(f"it is a {header.get('kind')}, not a {known}")
        states = [padded(part) for part in _states(header["states"], state)]
        for part in states:
            check_state(part)
        model = restored(header, states, kind)
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise ModelFileError(f"{path} does not hold a valid model: {error}") from error
    return model


def _states(sizes: Any, words: Floats) -> list[Floats]:
    """The states of a model's networks, each aligned in memory."""
    if not isinstance(sizes, list) or not sizes or not all(options.is_count(size) for size in sizes):
        raise ValueError("the sizes of its states are not a list of numbers")
    if sum(sizes) != len(words):
        raise ValueError("the sizes of its states do not add up")
    states = []
    for part in np.split(words, np.cumsum(sizes)[:-1]):
        state = aligned(len(part))
        state[:] = part
        states.append(state)
    return states


def restored(header: dict[str, Any], states: list[Floats], kind: type[Model]) -> Model:
    """A model from its header and states, which are safe; raises an error of several kinds if they do not fit."""
    chosen, states = kind._updated(header["options"], states)  # type: ignore[attr-defined]
    model: Any = kind._of_kept_options(chosen)  # type: ignore[attr-defined]
    chosen = model._options()
    options.check(chosen)
    nets = [Network(state) for state in states]
    n_features, max_classes = nets[0].n_features, nets[0].max_classes
    n_outputs = max(max(net.n_classes, net.n_named) for net in nets)
    labels = check_labels(labels_of(header["classes"], str(header["dtype"])))
    outputs = np.array(header["outputs"], dtype=np.int64)
    if (encoded := header.get("encoding")) is not None:  # earlier versions had none
        model._encoding = Encoding.of_json(encoded, options.instructions(chosen))
        if len(model._encoding) != n_features:
            raise ValueError("encoding and state do not match")
        n_features = len(model._encoding.columns)
    if header["n_features"] != n_features or not n_outputs <= len(outputs) <= max_classes:
        raise ValueError("header and state do not match")
    if chosen["n_hidden"] > nets[0].max_hidden:
        raise ValueError("it has no room for its initial hidden units")
    if sorted(outputs.tolist()) != list(range(len(labels))) or not np.array_equal(np.unique(labels), labels):
        raise ValueError("the classes are not distinct and sorted")
    model._classes, model._chosen, model.n_features_in_ = Classes(labels, outputs), chosen, n_features
    model._check_networks(states)
    model._take(states)
    for net, settings in zip(nets, model._settings(), strict=True):
        if any(getattr(net, word) != value for word, value in settings.items() if word not in BY_VERSION):
            raise ValueError("options and states do not match")
    model._pass_options()
    model._warned = bool(header["warned"])
    if header["feature_names"]:
        model.feature_names_in_ = np.array([str(name) for name in header["feature_names"]], dtype=object)
        if len(model.feature_names_in_) != n_features:
            raise ValueError("the number of feature names does not match the number of features")
    return cast(Model, model)


def labels_of(values: Any, dtype: str) -> npt.NDArray[Any]:
    """The classes in their type; for text, the longest class sets the size, whatever the file says."""
    if dtype == "object" or _TEXT.fullmatch(dtype):
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            raise ValueError("the classes are not text")
        width = max(map(len, values), default=0)
        return np.array(values, dtype=object if dtype == "object" or width * len(values) > _MOST_TEXT else str)
    if not _NUMBERS.fullmatch(dtype):
        raise ValueError(f"labels of type {dtype} are not supported")
    return np.array(values, dtype=dtype)


def plain(value: Any) -> Any:
    """NumPy's numbers and arrays, for JSON."""
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    raise TypeError(f"an option of type {type(value).__name__} cannot be saved")


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not valid JSON")


def write(path: str | os.PathLike[str], header: dict[str, Any], state: Floats) -> None:
    """Write the file atomically: after a crash there is the old file or the new one, never a partial one."""
    write_atomically(Path(path), _packed(header, state))


def _packed(header: dict[str, Any], state: Floats) -> bytes:
    text = json.dumps(header, allow_nan=False, default=plain).encode()
    content = _PREFIX.pack(MAGIC, VERSION, len(text), len(state)) + text + state.astype("<f8").tobytes()
    return content + hashlib.sha256(content).digest()


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], Floats]:
    """Read the header and the states; their contents are not validated yet."""
    with open(path, "rb") as file:
        content = file.read(len(MAGIC))
        if content[:1] == _PICKLE:
            raise ModelFileError(
                f"{path} is a pickle, which may hold code and is not opened here; only models that were saved with "
                "save() are"
            )
        if content == SQLITE:
            raise ModelFileError(f"{path} is an SQLite file; if it holds a fleet, DEVDANFleet.load opens it")
        if content != MAGIC[: len(content)] or not content:  # before reading the rest, which may be large or endless
            raise ModelFileError(f"{path} is not a DEVDAN model")
        content += file.read()
    return _unpacked(content, path)


def _unpacked(content: bytes, path: Any) -> tuple[dict[str, Any], Floats]:
    if content[: len(MAGIC)] != MAGIC:
        raise ModelFileError(f"{path} is not a DEVDAN model")
    if len(content) < _PREFIX.size + _DIGEST:
        raise ModelFileError(f"{path} is truncated: {len(content)} bytes")
    _, version, n_text, n_words = _PREFIX.unpack_from(content)
    if version < OLDEST:
        raise ModelFileError(f"{path} has format {version}, which this devdan no longer reads, only {OLDEST} and later")
    if version > VERSION:
        raise ModelFileError(
            f"{path} was saved by a newer devdan (format {version}, this one reads {VERSION}): upgrade devdan"
        )
    expected = _PREFIX.size + n_text + 8 * n_words + _DIGEST
    if len(content) < expected:
        raise ModelFileError(f"{path} is truncated: {len(content)} bytes of {expected}")
    if len(content) > expected or hashlib.sha256(content[:-_DIGEST]).digest() != content[-_DIGEST:]:
        raise ModelFileError(f"{path} is corrupt: its checksum does not match")
    middle = _PREFIX.size + n_text
    try:
        header = json.loads(content[_PREFIX.size : middle], parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{path} has no readable header") from error
    if not isinstance(header, dict):
        raise ModelFileError(f"{path} has no readable header")
    return header, np.frombuffer(content[middle:-_DIGEST], dtype="<f8").astype(np.float64)
