"""NumPy .npz files as streams, decompressed a few rows at a time, so that memory use does not grow with their length.

Only an array stored by column (Fortran order) must be loaded whole. An array that would fill the memory is refused
before it is decompressed, since a few kilobytes may hold gigabytes of zeros.
"""

from __future__ import annotations

import io
import math
import zipfile
import zlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from devdan.encoding.rows import Rows
from devdan.encoding.tables import TableError, array_column, rows_of
from devdan.streams.columns import check_finite, whole_numbers
from devdan.streams.reading import Reading
from devdan.streams.stream import Chunk, Stream, StreamError, Table, TableBlock, name_of, reason

_ROWS, _BYTES = 8192, 1 << 25  # of an array that are decompressed at a time
_WHOLE, _RATIO = (
    1 << 28,
    100,
)  # bytes of an array that is loaded whole, or times its size in the archive
_HEADER = 1 << 16
_ABOUT = ("feature_names", "class_names")  # arrays that are not samples
# Errors raised for damaged archives; a RuntimeError if a flipped bit marks them as encrypted or otherwise compressed.
_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, RuntimeError)


@dataclass(frozen=True)
class Arrays:
    """An NPZ file. Unlike other tables, one with numbers alone gives plain arrays."""

    path: Path

    def stream(self, reading: Reading, chunk: int, name: str | None = None) -> Stream:
        """The samples in ``X``, or else in an array for each column, with the labels in the array ``target``."""
        target = "y" if reading.target is None else str(reading.target)
        if reading.drop:
            raise StreamError(f"{self.path}: drop leaves columns of tables out, not arrays of an NPZ file")
        archive = _Archive(self.path, target)

        def blocks() -> Iterator[Chunk]:
            for n_before, samples, y in archive.rows():
                yield samples, _labels(y, target, self.path, n_before)

        classes = archive.class_names if target == "y" else None
        numbers = None if classes is None else tuple(range(len(classes)))
        known = (archive.n_rows, None, numbers, str(self.path))
        return Stream(name or name_of(self.path), blocks, chunk, archive.features, *known, target=target)

    def table(self, _: Reading) -> Table:
        """The samples, without labels."""
        archive = _Archive(self.path)
        features = archive.features

        def read(columns: Sequence[int], keep: Sequence[int], _: Collection[int]) -> Iterator[TableBlock]:
            for _n_before, samples, _y in archive.rows():
                rows = rows_of(samples, features)
                yield rows.select(list(columns)), [rows[:, place] for place in keep]

        return Table(str(self.path), features, read, archive.is_named, archive.n_rows)


class _Archive:
    """The arrays of an archive that have a row for each sample: ``X`` or one for each column, and the labels."""

    def __init__(self, path: Path, target: str | None = None) -> None:
        self.path = path
        try:
            with zipfile.ZipFile(path) as archive:
                there = [Path(member).stem for member in archive.namelist() if member.endswith(".npy")]
                columns = ["X"] if "X" in there else [array for array in there if array not in (target, *_ABOUT)]
                self.arrays = [*(columns or ["X"]), *([target] if target else [])]
                for array in self.arrays:
                    if array not in there:
                        listed = ", ".join(map(repr, there)) or "none"
                        raise StreamError(f"{path} has no array {array!r}; it has {listed}")
                with ExitStack() as opened:
                    members = [opened.enter_context(_member(archive, array, path)) for array in self.arrays]
                    shapes = [member.shape for member in members]
                    self._n_at_a_time = min(_rows_at_a_time(member, path) for member in members)
                names = _texts(archive, "feature_names", path)
                self.class_names = _texts(archive, "class_names", path)
        except StreamError:
            raise
        except _DAMAGE as error:
            raise StreamError(f"{path} is not an NPZ file, or is incomplete: {reason(error)}") from error
        self._by_column, self._has_labels = columns != ["X"], target is not None
        self._check(shapes, target)
        self.n_rows = shapes[0][0]
        width = 0 if self._by_column else shapes[0][1]
        self.is_named = self._by_column or (names is not None and len(names) == width)
        if self._by_column:
            self.features = tuple(columns)
        else:
            self.features = tuple(names if names and self.is_named else (f"x{place + 1}" for place in range(width)))

    def _check(self, shapes: list[tuple[int, ...]], target: str | None) -> None:
        """Raise an error unless all arrays have a row for each sample."""
        first, last = shapes[0], shapes[-1]
        if not self._by_column:
            labelled = last == first[:1] if target else True
            if len(first) != 2 or 0 in first or not labelled:
                also = f" and {target} a label, got {first} and {last}" if target else f", got {first}"
                raise StreamError(f"{self.path}: X must have a row for each sample{also}")
            return
        for array, its in zip(self.arrays, shapes, strict=True):
            if its != last or len(its) != 1 or its[0] == 0:
                other = self.arrays[-1]
                raise StreamError(
                    f"{self.path}: {array} and {other} must have a value for each sample, got {its} and {last}"
                )

    def rows(self) -> Iterator[tuple[int, Any, Any]]:
        """The samples in pieces, with the number of rows before each, and their labels, if any."""
        n_rows = 0
        try:
            with zipfile.ZipFile(self.path) as archive, ExitStack() as opened:
                members = [opened.enter_context(_member(archive, array, self.path)) for array in self.arrays]
                for parts in zip(*(_rows(one, self._n_at_a_time, self.path) for one in members), strict=True):
                    samples = self._samples(parts[:-1] if self._has_labels else parts)
                    numbers, names = samples, list(self.features)
                    if isinstance(samples, Rows):
                        numbers, names = samples.numbers, samples.names_of_numbers
                    check_finite(numbers, names, str(self.path), n_rows)
                    yield n_rows, samples, parts[-1] if self._has_labels else None
                    n_rows += len(samples)
        except StreamError:
            raise
        except _DAMAGE as error:
            raise StreamError(f"{self.path} is damaged after row {n_rows}: {reason(error)}") from error

    def _samples(self, parts: Sequence[npt.NDArray[Any]]) -> Any:
        """A piece of X, as an array if all of it is numeric, or the same rows of each column."""
        try:
            if self._by_column:
                columns = [array_column(part, name) for part, name in zip(parts, self.features, strict=True)]
                return Rows.of(self.features, columns)
            X = parts[0]
            return rows_of(X, self.features) if X.dtype.kind in "USMm" else X.astype(np.float64)
        except TableError as error:
            raise StreamError(f"{self.path}: {error}") from error


def _labels(y: npt.NDArray[Any], target: str, path: Path, n_before: int) -> npt.NDArray[Any]:
    if y.dtype.kind == "f":
        return whole_numbers(y.astype(np.float64), target, str(path), n_before)
    return np.char.decode(y, "utf-8") if y.dtype.kind == "S" else y


def class_names(path: Path) -> list[str]:
    """The class names of the labels 0, 1, … given in the file."""
    with zipfile.ZipFile(path) as archive:
        return _texts(archive, "class_names", path) or []


class _Member(NamedTuple):
    name: str
    content: IO[bytes]
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    by_column: bool
    n_packed: int  # bytes in the archive

    @property
    def n_bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


@contextmanager
def _member(archive: zipfile.ZipFile, array: str, path: Path) -> Iterator[_Member]:
    """An array that is still compressed; its shape is checked against its number of bytes."""
    info = archive.getinfo(f"{array}.npy")
    with archive.open(info) as content:
        header = io.BytesIO(content.read(_HEADER))
        try:
            version = np.lib.format.read_magic(header)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, by_column, dtype = read(header)
        except ValueError as error:
            raise StreamError(f"{path}: the array {array!r} cannot be read: {reason(error)}") from error
        if dtype.kind not in "biufUSMm":
            raise StreamError(f"{path}: the array {array!r} holds {dtype}; only numbers, text and times are supported")
        member = _Member(array, content, shape, dtype, by_column and len(shape) > 1, info.compress_size)
        n_there = info.file_size - header.tell()
        if min(shape, default=0) < 0 or member.n_bytes > n_there:
            raise StreamError(
                f"{path}: the array {array!r} must have {member.n_bytes:,} bytes by its shape {shape}, got {n_there:,}"
            )
        content.seek(header.tell())
        yield member


def _rows_at_a_time(member: _Member, path: Path) -> int:
    """How many rows of an array are decompressed at a time; each value counts as eight bytes at least."""
    per_row = math.prod(member.shape[1:]) * max(member.dtype.itemsize, 8)
    if per_row > _BYTES:
        raise StreamError(f"{path}: a row of the array {member.name!r} has {per_row:,} bytes, more than {_BYTES:,}")
    return min(_ROWS, _BYTES // max(per_row, 1))


def _rows(member: _Member, n_at_a_time: int, path: Path) -> Iterator[npt.NDArray[Any]]:
    name, content, shape, dtype, by_column, _ = member
    width = math.prod(shape[1:])
    if by_column:
        if member.n_bytes > max(_WHOLE, _RATIO * member.n_packed):
            raise StreamError(
                f"{path}: the array {name!r} unpacks from {member.n_packed:,} bytes to {member.n_bytes:,}, and was "
                "saved by column, so that all of it would be in memory; save it by row, with np.ascontiguousarray"
            )
        whole = _values(content, dtype, shape[0] * width).reshape(shape, order="F")
        yield from (whole[start : start + n_at_a_time] for start in range(0, shape[0], n_at_a_time))
        return
    for start in range(0, shape[0], n_at_a_time):
        n = min(n_at_a_time, shape[0] - start)
        yield _values(content, dtype, n * width).reshape(n, *shape[1:])


def _values(content: IO[bytes], dtype: np.dtype[Any], n: int) -> npt.NDArray[Any]:
    data = content.read(n * dtype.itemsize)
    if len(data) < n * dtype.itemsize:
        raise EOFError("it ends too early")
    return np.frombuffer(data, dtype=dtype)


def _texts(archive: zipfile.ZipFile, array: str, path: Path) -> list[str] | None:
    if f"{array}.npy" not in archive.namelist():
        return None
    with _member(archive, array, path) as member:
        if member.n_bytes > _BYTES:
            raise StreamError(f"{path}: the array {array!r} has {member.n_bytes:,} bytes, more than {_BYTES:,}")
        return [str(text) for text in _values(member.content, member.dtype, math.prod(member.shape)).tolist()]
