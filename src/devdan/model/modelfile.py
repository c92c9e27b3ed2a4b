"""The model file: a JSON header, the state words and a checksum. Nothing in it is ever executed.

Layout, little-endian: 8 bytes of magic, format version (uint32), length of the header in bytes (uint32), length of the
states in words (uint64), header, the states of the model's networks (float64), SHA-256 of all that. Rows that several
replay buffers hold are there once, if the header has ``rows`` (:mod:`devdan.model.row_pool`).
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import stat
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from devdan.arrays import Floats
from devdan.atomic import write_atomically
from devdan.encoding.encoding import Encoding
from devdan.histories.histories import Histories
from devdan.kernel.state import aligned, check_state
from devdan.model import options
from devdan.model.classes import Classes, check_labels
from devdan.model.mixture import Mixture
from devdan.model.row_pool import pooled, unpooled
from devdan.model.scales import Scale

Model = TypeVar("Model")

MAGIC = b"\x89DEVDAN\n"
VERSION = 1  # of the format
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
    header, words = header_of(model), _words_of(model)
    shorter = pooled(words, header["states"])
    return _packed(header, words) if shorter is None else _packed(header | {"rows": shorter[0]}, shorter[1])


def _words_of(model: Any) -> Floats:
    """The states of the networks, and what is known of entities."""
    histories = getattr(model, "histories_", None)
    return np.concatenate([*model.mixture_.networks, *([] if histories is None else [histories.content()])])


def header_of(model: Any) -> dict[str, Any]:
    """All of a fitted model but the states of its networks, for JSON."""
    histories = getattr(model, "histories_", None)
    return {
        "histories": None if histories is None else histories.to_json(),
        "kind": type(model).__name__,
        "options": options_as_json(model.kept_options()),
        **columns_of(model),
        **header_of_mixture(model.mixture_),
    }


def columns_of(model: Any) -> dict[str, Any]:
    """What an estimator knows of columns, beside what the encoding does, for JSON."""
    return {
        "n_features": model.n_features_in_,
        "feature_names": list(getattr(model, "feature_names_in_", [])),
        "warned": getattr(model, "_warned", False),
    }


def header_of_mixture(mixture: Mixture) -> dict[str, Any]:
    """All of a mixture but its options and the states of its networks, for JSON."""
    classes = mixture.classes
    return {
        "states": [len(state) for state in mixture.networks],
        "classes": classes.labels.tolist(),
        "dtype": "object" if classes.labels.dtype == object else classes.labels.dtype.str,
        "outputs": classes.outputs.tolist(),
        "encoding": None if mixture.encoding is None else mixture.encoding.to_json(),
        "decision": mixture.decision.to_json(),
    }


def load(path: str | os.PathLike[str], *kinds: type[Model]) -> Model:
    """Load a model from a file; it must be of one of these classes."""
    return _model(path, *read(path), kinds)


def of_content(content: bytes, name: str, *kinds: type[Model]) -> Model:
    """The model that a file of this content holds; ``name`` is for messages."""
    return _model(name, *_unpacked(content, name), kinds)


def _model(path: Any, header: dict[str, Any], words: Floats, kinds: tuple[type[Model], ...]) -> Model:
    try:
        kind: Any = next((kind for kind in kinds if kind.__name__ == header.get("kind")), None)
        if kind is None:
            known = " or a ".join(kind.__name__ for kind in kinds)
            raise ValueError(f"it is a {header.get('kind')}, not a {known}")
        states, rest = _states(header["states"], words, header["histories"] is not None)
        for state in states:
            check_state(state)
        model = kind.of_kept_options(options_of_json(header["options"]))
        chosen = model._options()
        options.check(chosen)
        model.mixture_ = mixture_of(header, states, chosen, model._scales())
        take_columns(model, header, model.mixture_)
        if header["histories"] is not None:
            model.histories_ = Histories.of_json(header["histories"], rest)
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise ModelFileError(f"{path} does not hold a valid model: {error}") from error
    return cast(Model, model)


def _states(sizes: Any, words: Floats, more: bool) -> tuple[list[Floats], Floats]:
    """The states of a model's networks, each aligned in memory, and the words after them, if there are to be any."""
    if not isinstance(sizes, list) or not sizes or not all(options.is_count(size) for size in sizes):
        raise ValueError("the sizes of its states are not a list of numbers")
    if sum(sizes) > len(words) or (sum(sizes) < len(words)) != more:
        raise ValueError("the sizes of its states do not add up")
    states = []
    *parts, rest = np.split(words, np.cumsum(sizes))
    for part in parts:
        state = aligned(len(part))
        state[:] = part
        states.append(state)
    return states, rest


def mixture_of(
    header: dict[str, Any], states: Sequence[Floats], chosen: dict[str, Any], scales: Sequence[Scale]
) -> Mixture:
    """A mixture from its header, its states, which are safe, and its options; raises an error if they do not fit."""
    labels = check_labels(labels_of(header["classes"], str(header["dtype"])))
    outputs = np.array(header["outputs"], dtype=np.int64)
    if sorted(outputs.tolist()) != list(range(len(labels))) or not np.array_equal(np.unique(labels), labels):
        raise ValueError("the classes are not distinct and sorted")
    encoded = header["encoding"]
    encoding = None if encoded is None else Encoding.of_json(encoded, options.instructions(chosen))
    mixture = Mixture.of_networks(states, chosen, scales, classes=Classes(labels, outputs), encoding=encoding)
    mixture.decision.restore(header["decision"])
    mixture.check()
    return mixture


def take_columns(model: Any, header: dict[str, Any], mixture: Mixture) -> None:
    """Let an estimator have the columns that its file names."""
    n_columns = mixture.n_inputs if mixture.encoding is None else len(mixture.encoding.columns)
    if header["n_features"] != n_columns:
        raise ValueError("header and state do not match")
    model.n_features_in_, model._warned = n_columns, bool(header["warned"])
    names = header["feature_names"]
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError("its feature names are not a list of text")
    if names:
        if len(names) != n_columns or (mixture.encoding is not None and names != list(mixture.encoding.columns)):
            raise ValueError("its feature names are not those of its features")
        model.feature_names_in_ = np.array(names, dtype=object)


def options_as_json(params: dict[str, Any]) -> dict[str, Any]:
    """Options for a file: a dict of class weights as pairs, since the keys of JSON are all text."""
    found = {}
    for name, value in params.items():
        if name == "class_weight" and isinstance(value, dict):
            value = list(value.items())  # noqa: PLW2901
        elif name == "estimator" and isinstance(value, dict):
            value = options_as_json(value)  # noqa: PLW2901
        found[name] = value
    return found


def options_of_json(params: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(params, dict):
        raise ValueError("its options are not named")
    found = {}
    for name, value in params.items():
        if name == "class_weight" and isinstance(value, list):
            value = dict(value)  # noqa: PLW2901
        elif name == "estimator" and isinstance(value, dict):
            value = options_of_json(value)  # noqa: PLW2901
        found[name] = value
    return found


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


def refuse(constant: str) -> Any:
    """For JSON: NaN and infinity are none."""
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
        content = file.read(_PREFIX.size)
        if content[:1] == _PICKLE:
            raise ModelFileError(
                f"{path} is a pickle, which may hold code and is not opened here; only models that were saved with "
                "save() are"
            )
        if content[: len(SQLITE)] == SQLITE:
            raise ModelFileError(f"{path} is an SQLite file; if it holds a fleet, DEVDANFleet.load opens it")
        facts = os.fstat(file.fileno())
        # Before the rest is read, which may be large, or endless if it comes from a device.
        _check_prefix(content, facts.st_size if stat.S_ISREG(facts.st_mode) else None, path)
        content += file.read()
    return _unpacked(content, path)


def _check_prefix(content: bytes, n_bytes: int | None, path: Any) -> None:
    """Raise an error unless a file of this size, if it is known, may be a model that this machine can hold."""
    if content[: len(MAGIC)] != MAGIC[: len(content)] or not content:
        raise ModelFileError(f"{path} is not a DEVDAN model")
    if len(content) < _PREFIX.size or (n_bytes is not None and n_bytes < _PREFIX.size + _DIGEST):
        raise ModelFileError(f"{path} is truncated: {len(content) if n_bytes is None else n_bytes} bytes")
    _, version, n_text, n_words = _PREFIX.unpack_from(content)
    if version != VERSION:
        raise ModelFileError(
            f"{path} has format {version}, this devdan reads {VERSION}: it was saved by a newer devdan, or by one from "
            "before the first release"
        )
    expected = _PREFIX.size + n_text + 8 * n_words + _DIGEST
    if n_bytes is None:
        return
    if n_bytes < expected:
        raise ModelFileError(f"{path} is truncated: {n_bytes} bytes of {expected}")
    if n_bytes > expected:
        raise ModelFileError(f"{path} is corrupt: it has {n_bytes} bytes, its checksum is for {expected}")
    if expected > _memory():
        raise ModelFileError(f"{path} is too large: {expected} bytes, this machine has {_memory()} bytes of memory")


def _memory() -> float:
    """Bytes of memory that the machine has, as far as that is known."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # not everywhere
        return math.inf


def _unpacked(content: bytes, path: Any) -> tuple[dict[str, Any], Floats]:
    _check_prefix(content, len(content), path)
    if hashlib.sha256(content[:-_DIGEST]).digest() != content[-_DIGEST:]:
        raise ModelFileError(f"{path} is corrupt: its checksum does not match")
    middle = _PREFIX.size + _PREFIX.unpack_from(content)[2]
    try:
        header = json.loads(content[_PREFIX.size : middle], parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{path} has no readable header") from error
    if not isinstance(header, dict):
        raise ModelFileError(f"{path} has no readable header")
    words = np.frombuffer(content[middle:-_DIGEST], dtype="<f8").astype(np.float64)
    if "rows" in header:
        try:
            words = unpooled(words, header.pop("rows"), _memory())
        except (ValueError, KeyError, TypeError, OverflowError) as error:
            raise ModelFileError(f"{path} does not hold a valid model: {error}") from error
    return header, words
