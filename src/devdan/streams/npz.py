"""NumPy's .npz files as streams, unpacked row by row, so that memory stays flat in their length.

Only an array that was saved column by column has to be in memory as a whole.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from devdan.streams.columns import check_finite, whole_numbers
from devdan.streams.stream import Chunk, Stream, StreamError, reason

_ROWS = 8192
# What comes of damaged archives; a RuntimeError where a flipped bit says that they are encrypted or packed otherwise.
_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, RuntimeError)


def stream(path: Path, target: str, name: str, chunk: int) -> Stream:
    """The samples in ``X`` with the labels in the array ``target``."""
    try:
        with zipfile.ZipFile(path) as archive:
            arrays = [Path(member).stem for member in archive.namelist() if member.endswith(".npy")]
            for array in ("X", target):
                if array not in arrays:
                    raise StreamError(
                        f"{path} has no array {array!r}, only {', '.join(map(repr, arrays)) or 'nothing'}"
                    )
            shape, labels = (_member(archive, array, path).shape for array in ("X", target))
            names = _texts(archive, "feature_names")
            classes = _texts(archive, "class_names") if target == "y" else None
    except StreamError:
        raise
    except _DAMAGE as error:
        raise StreamError(f"{path} is not an NPZ file, or not a whole one: {reason(error)}") from error
    if len(shape) != 2 or shape[0] == 0 or shape[1] == 0 or labels != shape[:1]:
        raise StreamError(f"{path}: X must have a row for each sample and {target} a label, got {shape} and {labels}")

    features = tuple(names) if names is not None and len(names) == shape[1] else ()
    features = features or tuple(f"x{place + 1}" for place in range(shape[1]))

    def blocks() -> Iterator[Chunk]:
        n_rows = 0
        try:
            with zipfile.ZipFile(path) as archive:
                for X, y in zip(_rows(archive, "X", path), _rows(archive, target, path), strict=True):
                    samples = X.astype(np.float64)
                    check_finite(samples, features, str(path), n_rows)
                    yield samples, _labels(y, target, path, n_rows)
                    n_rows += len(X)
        except StreamError:
            raise
        except _DAMAGE as error:
            raise StreamError(f"{path} is damaged after row {n_rows}: {reason(error)}") from error

    numbers = None if classes is None else tuple(range(len(classes)))
    return Stream(name, blocks, chunk, features, shape[0], None, numbers, str(path))


def _labels(y: npt.NDArray[Any], target: str, path: Path, n_before: int) -> npt.NDArray[Any]:
    if y.dtype.kind == "f":
        return whole_numbers(y.astype(np.float64), target, str(path), n_before)
    return np.char.decode(y, "utf-8") if y.dtype.kind == "S" else y


def class_names(path: Path) -> list[str]:
    """What the labels 0, 1, … stand for, as the file says."""
    with zipfile.ZipFile(path) as archive:
        return _texts(archive, "class_names") or []


class _Member(NamedTuple):
    content: IO[bytes]
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    by_column: bool


def _member(archive: zipfile.ZipFile, array: str, path: Path) -> _Member:
    """An array's bytes, still packed, and what they mean."""
    content = archive.open(f"{array}.npy")
    try:
        version = np.lib.format.read_magic(content)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, by_column, dtype = read(content)
    except ValueError as error:
        raise StreamError(f"{path}: the array {array!r} cannot be read: {error}") from error
    if dtype.kind not in "biufUS":
        raise StreamError(f"{path}: the array {array!r} holds {dtype}; numbers, or text for labels, can be read")
    return _Member(content, shape, dtype, by_column and len(shape) > 1)


def _rows(archive: zipfile.ZipFile, array: str, path: Path) -> Iterator[npt.NDArray[Any]]:
    content, shape, dtype, by_column = _member(archive, array, path)
    width = int(np.prod(shape[1:]))
    if array == "X" and dtype.kind in "US":
        raise StreamError(f"{path}: X must hold numbers, got text")
    if by_column:
        whole = _values(content, dtype, shape[0] * width).reshape(shape, order="F")
        yield from (whole[start : start + _ROWS] for start in range(0, shape[0], _ROWS))
        return
    for start in range(0, shape[0], _ROWS):
        n = min(_ROWS, shape[0] - start)
        yield _values(content, dtype, n * width).reshape(n, *shape[1:])


def _values(content: IO[bytes], dtype: np.dtype[Any], n: int) -> npt.NDArray[Any]:
    data = content.read(n * dtype.itemsize)
    if len(data) < n * dtype.itemsize:
        raise EOFError("it ends too soon")
    return np.frombuffer(data, dtype=dtype)


def _texts(archive: zipfile.ZipFile, array: str) -> list[str] | None:
    if f"{array}.npy" not in archive.namelist():
        return None
    with archive.open(f"{array}.npy") as content:
        return [str(text) for text in np.lib.format.read_array(content, allow_pickle=False).tolist()]
