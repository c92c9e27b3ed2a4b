"""The rows of a frame: their features, and what becomes of each row by the rules of :mod:`devdan.label_join`.

Nothing here depends on a model: an event is decided about by what is known of its id, in the order of event times.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from devdan.encoding.rows import Rows
from devdan.encoding.tables import rows_of
from devdan.label_join import OTHER_FEATURES, KnownId, Verdict, join_features, join_label, other_label
from devdan.spark.plan import AT, ID, KEY, LABEL, QueryPlan, place_of
from devdan.spark.statebytes import Sample, digest_of

PREDICTION, LEARNED, REPEATED, ERROR = "prediction", "label", "repeated", "error"  # kinds of output rows
Name = tuple[str, str]  # a key and an id, as texts
FindSample = Callable[[str, str], Sample | None]  # what the state has of a name


class Features:
    """The features of the rows of a frame, followed by those of samples that waited.

    They are an array if all columns are numbers, else a table.
    """

    def __init__(self, plan: QueryPlan, frame: Any) -> None:
        self._schema = plan.schema
        self._waited: list[bytes] = []
        columns = [frame[place_of(number)] for number in range(len(plan.features))]
        self._n = len(frame)
        if plan.schema is None:
            self._numbers = np.column_stack([column.to_numpy(np.float64) for column in columns])
            self.present = ~np.isnan(self._numbers).all(axis=1)
            self.infinite = np.isinf(self._numbers).any(axis=1)
            return
        arrays = [
            pa.array(column, _stored(kind), from_pandas=True)
            for column, kind in zip(columns, plan.schema.types, strict=True)
        ]
        self._columns = [array.to_pylist() for array in arrays]
        self.present = np.array([array.is_valid().to_numpy(zero_copy_only=False) for array in arrays]).any(axis=0)
        numbers = [array.to_numpy(zero_copy_only=False) for array in arrays if array.type == pa.float64()]
        self.infinite = np.isinf(np.array(numbers).reshape(-1, self._n)).any(axis=0)

    def content(self, row: int) -> bytes:
        """The features of a row as a state keeps them."""
        if self._schema is None:
            return bytes(self._numbers[row].astype("<f8").tobytes())
        return json.dumps([column[row] for column in self._columns]).encode()

    def add(self, content: bytes) -> int:
        """Add features that a state has kept; returns their row."""
        self._waited.append(content)
        return self._n + len(self._waited) - 1

    def rows(self) -> Any:
        """All features, in a form that models take and that arrays of rows can index."""
        if self._schema is None:
            waited = np.frombuffer(b"".join(self._waited), "<f8").reshape(-1, self._numbers.shape[1])
            return np.concatenate([self._numbers, waited])
        waited_values: list[Sequence[Any]] = [json.loads(content) for content in self._waited]
        columns = [
            pa.array([*column, *(values[place] for values in waited_values)], _stored(kind)).cast(kind)
            for place, (column, kind) in enumerate(zip(self._columns, self._schema.types, strict=True))
        ]
        table: Rows = rows_of(pa.Table.from_arrays(columns, schema=self._schema))
        return table


def _stored(kind: pa.DataType) -> pa.DataType:
    """The type in which a state keeps values."""
    if pa.types.is_timestamp(kind):
        return pa.int64()
    return pa.int32() if pa.types.is_date32(kind) else kind


class SampleEvent(NamedTuple):
    """A row that counts."""

    key: str
    row: int  # of the features
    is_new: bool  # the features are to be predicted and observed
    label: str | None  # to be taught


class OutputRow(NamedTuple):
    """A row of the result."""

    kind: str
    row: int  # of the features; -1 if they do not matter
    key: str | None
    id: str | None
    time: int | None
    label: str | None = None
    error: str | None = None


class FrameEvents:
    """Decides about the rows of a frame, one after the other."""

    def __init__(self, features: Features, find: FindSample) -> None:
        self._features, self._find = features, find
        self.samples: dict[Name, Sample | None] = {}  # what is known now
        self.changed: set[Name] = set()
        self.rows: dict[Name, int] = {}  # of features that are at hand
        self.predicted: dict[int, str | None] = {}  # of samples that waited, by row
        self.events: list[SampleEvent] = []
        self.output: list[OutputRow] = []

    def decide(self, frame: Any) -> None:
        """Decide about all rows, by time, features before labels, then by id: the order of arrival does not matter."""
        keys, ids, labels = (_texts(frame[name]) for name in (KEY, ID, LABEL))
        times = [None if time != time else int(time) for time in frame[AT].tolist()]  # noqa: PLR0124 (NaN)
        present, infinite = self._features.present.tolist(), self._features.infinite.tolist()
        order = sorted(range(len(keys)), key=lambda row: (times[row] or 0, not present[row], ids[row] or ""))
        for row in order:
            key, id_, time, label = keys[row], ids[row], times[row], labels[row]
            error = _error(key, id_, time, label, present[row], infinite[row])
            if error is not None:
                self.output.append(OutputRow(ERROR, -1, key, id_, time, label, error))
                continue
            assert key is not None
            assert id_ is not None
            assert time is not None
            if present[row]:
                self._take_features((key, id_), row, time, label)
            else:
                self._take_label((key, id_), time, str(label))

    def _take_features(self, name: Name, row: int, time: int, label: str | None) -> None:
        sample = self._sample(name)
        content = self._features.content(row)
        digest = digest_of(content)
        verdict = join_features(_known(sample), sample is not None and sample.digest == digest)
        if verdict is Verdict.CONTRADICTING:
            self._tell(ERROR, -1, name, time, label, OTHER_FEATURES)
            return
        if verdict is Verdict.REPEATED:
            self._tell(REPEATED, -1, name, time)
            if label is not None:
                self._take_label(name, time, label)
            return
        self._tell(PREDICTION, row, name, time)
        early = None if sample is None else sample.label
        learned = label if early is None else early
        self.rows[name] = row
        self.events.append(SampleEvent(name[0], row, True, learned))
        self._note(name, Sample(time, digest, learned, None, content if learned is None else b""))
        if learned is not None:
            self._tell(LEARNED, row, name, time, learned)
        if early is not None and label is not None:
            self._take_label(name, time, label)

    def _take_label(self, name: Name, time: int, label: str) -> None:
        sample = self._sample(name)
        known = _known(sample)
        verdict = join_label(known, label)
        if verdict is Verdict.EARLY:
            self._note(name, Sample(time, b"", label, None, b""))
        elif verdict is Verdict.REPEATED:
            self._tell(REPEATED, -1, name, time, label)
        elif verdict is Verdict.CONTRADICTING:
            self._tell(ERROR, -1, name, time, label, other_label(known))
        else:
            assert sample is not None
            row = self._row_of(name, sample)
            self.events.append(SampleEvent(name[0], row, False, label))
            self._note(name, sample._replace(label=label, features=b""))
            self._tell(LEARNED, row, name, time, label)

    def _row_of(self, name: Name, sample: Sample) -> int:
        """Where the features of a sample that waits are."""
        if name not in self.rows:
            self.rows[name] = row = self._features.add(sample.features)
            self.predicted[row] = sample.predicted
        return self.rows[name]

    def _sample(self, name: Name) -> Sample | None:
        if name not in self.samples:
            self.samples[name] = self._find(*name)
        return self.samples[name]

    def _note(self, name: Name, sample: Sample) -> None:
        self.samples[name] = sample
        self.changed.add(name)

    def _tell(
        self, kind: str, row: int, name: Name, time: int, label: str | None = None, error: str | None = None
    ) -> None:
        self.output.append(OutputRow(kind, row, *name, time, label, error))


def _known(sample: Sample | None) -> KnownId:
    return KnownId() if sample is None else KnownId(not sample.is_early, sample.label)


def _texts(column: Any) -> list[str | None]:
    """The values of a column of text; None for all that pandas has for missing values."""
    missing = column.isna().to_numpy(np.bool_).tolist()
    return [None if gone else value for value, gone in zip(column.tolist(), missing, strict=True)]


def _error(
    key: str | None, id_: str | None, time: int | None, label: str | None, present: bool, infinite: bool
) -> str | None:
    """Why a row is unusable, if it is."""
    for name, value in (("the key", key), ("the id", id_), ("the time", time)):
        if value is None:
            return f"{name} must not be missing"
    if infinite:
        return "features must be finite or missing, got infinity"
    if not present and label is None:
        return "a row must have features, a label or both, got neither"
    return None
