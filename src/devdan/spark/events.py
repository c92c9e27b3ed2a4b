"""The rows of a batch: their features, and what becomes of each row by the rules of :mod:`devdan.label_join`.

Nothing here depends on a model: an event is decided about by what is known of its id, in the order of event times.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from devdan.arrays import Integers
from devdan.encoding.rows import Rows
from devdan.encoding.tables import rows_of
from devdan.label_join import OTHER_FEATURES, KnownId, Verdict, join_features, join_label, other_label
from devdan.spark.plan import AT, ID, KEY, LABEL, QueryPlan, place_of
from devdan.spark.segments import joined
from devdan.spark.shard import SampleEvents
from devdan.spark.statebytes import SAMPLES, Sample, digest_of

PREDICTION, LEARNED, REPEATED, ERROR = "prediction", "label", "repeated", "error"  # kinds of output rows
FindSamples = Callable[[pa.Array, pa.Array], tuple[Integers, list[Sample]]]  # places of known keys and ids


class Features:
    """The features of the rows of a table, followed by those of samples that waited.

    They are an array if all columns are numbers, else a table.
    """

    def __init__(self, plan: QueryPlan, table: pa.Table) -> None:
        self._schema = plan.schema
        self._waited: list[bytes] = []
        columns = [table[place_of(number)] for number in range(len(plan.features))]
        self._n = len(table)
        if plan.schema is None:
            self._numbers = np.column_stack([column.cast(pa.float64()).to_numpy() for column in columns])
            self.present = ~np.isnan(self._numbers).all(axis=1)
            self.infinite = np.isinf(self._numbers).any(axis=1)
            return
        arrays = [
            _without_nan(column.cast(_stored(kind)).combine_chunks())
            for column, kind in zip(columns, plan.schema.types, strict=True)
        ]
        self._columns = [array.to_pylist() for array in arrays]
        self.present = np.array([array.is_valid().to_numpy(zero_copy_only=False) for array in arrays]).any(axis=0)
        numbers = [array.to_numpy(zero_copy_only=False) for array in arrays if array.type == pa.float64()]
        self.infinite = np.isinf(np.array(numbers).reshape(-1, self._n)).any(axis=0)

    def contents(self) -> list[bytes]:
        """The features of each row as a state keeps them."""
        if self._schema is None:
            content, width = self._numbers.astype("<f8", copy=False).tobytes(), 8 * self._numbers.shape[1]
            return [content[start : start + width] for start in range(0, len(content), width)]
        return [json.dumps(values).encode() for values in zip(*self._columns, strict=True)]

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


def _without_nan(column: pa.Array) -> pa.Array:
    """NaN is missing, too."""
    return pc.if_else(pc.is_nan(column), None, column) if column.type == pa.float64() else column


def _stored(kind: pa.DataType) -> pa.DataType:
    """The type in which a state keeps values."""
    if pa.types.is_timestamp(kind):
        return pa.int64()
    return pa.int32() if pa.types.is_date32(kind) else kind


class OutputRow(NamedTuple):
    """A row of the result, about a row of the batch."""

    kind: str
    row: int  # of the batch
    features: int = -1  # row of the features that were predicted; -1 if they do not matter
    label: str | None = None
    error: str | None = None


class OutputRows(NamedTuple):
    """Rows of the result, in columns."""

    kinds: npt.NDArray[np.object_]
    rows: Integers
    features: Integers
    labels: npt.NDArray[np.object_]
    errors: npt.NDArray[np.object_]


class BatchEvents:
    """Decides about the rows of a batch, by time, features before labels, then by id: not by the order of arrival.

    Most rows are the only ones of their id, which was never seen before: these are decided about all at once. Rows up
    to the watermark, in microseconds, came too late; there is none before it is positive.
    """

    def __init__(self, features: Features, table: pa.Table, find: FindSamples, watermark: int = -1) -> None:
        self.keys, self.ids, self.labels = (table[name].combine_chunks() for name in (KEY, ID, LABEL))
        self.times = table[AT].combine_chunks()
        self._times, self._watermark = self.times.fill_null(0).to_numpy(), watermark
        self.predicted: dict[int, str | None] = {}  # of samples that waited, by row of features
        self._features, self._contents = features, features.contents()
        self._events: list[tuple[int, int, bool, str | None]] = []  # of single rows
        self._output: list[OutputRow] = []  # likewise
        self._samples: dict[int, Sample | None] = {}  # what is known of a name now, by its number
        self._at: dict[int, int] = {}  # the row of the features of a name, if they are at hand
        self._changed: dict[int, int] = {}  # a row of each name of which something is to be remembered
        self._decide(find)

    def _decide(self, find: FindSamples) -> None:
        missing = [column.is_null().to_numpy(zero_copy_only=False) for column in (self.keys, self.ids, self.times)]
        present, has_label = self._features.present, self.labels.is_valid().to_numpy(zero_copy_only=False)
        is_late = (self._times <= self._watermark) if self._watermark > 0 else np.zeros(len(present), np.bool_)
        is_wrong = missing[0] | missing[1] | missing[2] | self._features.infinite | ~(present | has_label) | is_late
        self._label_list = self.labels.to_pylist()
        order = _order(self._times, ~present, self.ids)
        self._rank = np.empty(len(order), np.int64)
        self._rank[order] = np.arange(len(order))
        for row in order[is_wrong[order]].tolist():
            late = self._watermark if is_late[row] else None
            error = _error([bool(column[row]) for column in missing], bool(self._features.infinite[row]), late)
            self._output.append(OutputRow(ERROR, row, -1, self._label_list[row], error))
        good = order[~is_wrong[order]]
        numbers = self._names(good, find)
        is_simple = present[good] & (np.bincount(numbers, minlength=1)[numbers] == 1)
        is_simple &= ~np.isin(numbers, list(self._samples))
        self._simple = good[is_simple]
        for row, number in zip(good[~is_simple].tolist(), numbers[~is_simple].tolist(), strict=True):
            if present[row]:
                self._take_features(number, row)
            else:
                self._take_label(number, row)

    def _names(self, rows: Integers, find: FindSamples) -> Integers:
        """A number for the key and id of each row, the same for the same; what is known of them is looked up."""
        if len(rows) == 0:
            return rows
        keys, ids = self.keys.take(pa.array(rows)), self.ids.take(pa.array(rows))
        numbers, _ = pd.factorize(joined([keys, ids]).to_numpy(zero_copy_only=False))
        _, firsts = np.unique(numbers, return_index=True)
        places, samples = find(keys.take(pa.array(firsts)), ids.take(pa.array(firsts)))
        self._samples = dict(zip(places.tolist(), samples, strict=True))
        return np.asarray(numbers, np.int64)

    # --- Rows one by one -----------------------------------------------------------------------------------------

    def _take_features(self, number: int, row: int) -> None:
        sample, label, content = self._samples.get(number), self._label_list[row], self._contents[row]
        digest = digest_of(content)
        verdict = join_features(_known(sample), sample is not None and sample.digest == digest)
        if verdict is Verdict.CONTRADICTING:
            self._output.append(OutputRow(ERROR, row, -1, label, OTHER_FEATURES))
            return
        if verdict is Verdict.REPEATED:
            self._output.append(OutputRow(REPEATED, row))
            if label is not None:
                self._take_label(number, row)
            return
        self._output.append(OutputRow(PREDICTION, row, row))
        early = None if sample is None else sample.label
        learned = label if early is None else early
        self._at[number] = row
        self._events.append((row, row, True, learned))
        waits = content if learned is None else None
        self._note(number, row, Sample(int(self._times[row]), digest, learned, None, waits))
        if learned is not None:
            self._output.append(OutputRow(LEARNED, row, row, learned))
        if early is not None and label is not None:
            self._take_label(number, row)

    def _take_label(self, number: int, row: int) -> None:
        sample, label = self._samples.get(number), self._label_list[row]
        known = _known(sample)
        verdict = join_label(known, label)
        if verdict is Verdict.EARLY:
            self._note(number, row, Sample(int(self._times[row]), None, label))
        elif verdict is Verdict.REPEATED:
            self._output.append(OutputRow(REPEATED, row, -1, label))
        elif verdict is Verdict.CONTRADICTING:
            self._output.append(OutputRow(ERROR, row, -1, label, other_label(known)))
        else:
            assert sample is not None
            features = self._row_of(number, sample)
            self._events.append((row, features, False, label))
            self._note(number, row, sample._replace(label=label, features=None, predicted=None))
            self._output.append(OutputRow(LEARNED, row, features, label))

    def _row_of(self, number: int, sample: Sample) -> int:
        """Where the features of a sample that waits are."""
        if number not in self._at:
            assert sample.features is not None
            self._at[number] = row = self._features.add(sample.features)
            self.predicted[row] = sample.predicted
        return self._at[number]

    def _note(self, number: int, row: int, sample: Sample) -> None:
        self._samples[number] = sample
        self._changed[number] = row

    # --- What comes of all rows ----------------------------------------------------------------------------------

    def events(self) -> SampleEvents:
        """The rows that count, in order."""
        single = list(zip(*self._events, strict=True)) or [(), (), (), ()]
        rows = np.concatenate([self._simple, np.array(single[0], np.int64)])
        order = np.argsort(self._rank[rows])
        labels = _objects([self._label_list[row] for row in self._simple.tolist()] + list(single[3]))
        return SampleEvents(
            self.keys.take(pa.array(rows[order])).to_numpy(zero_copy_only=False),
            np.concatenate([self._simple, np.array(single[1], np.int64)])[order],
            np.concatenate([np.ones(len(self._simple), np.bool_), np.array(single[2], np.bool_)])[order],
            labels[order],
        )

    def times_of_keys(self) -> dict[str, int]:
        """When each key that learned something was last seen."""
        rows = np.concatenate([self._simple, np.array([row for row, *_ in self._events], np.int64)])
        table = pa.table({"key": self.keys.take(pa.array(rows)), "time": self._times[rows]})
        keys, times = table.group_by("key", use_threads=False).aggregate([("time", "max")]).columns
        return dict(zip(keys.to_pylist(), times.to_pylist(), strict=True))

    def samples(self, predicted: npt.NDArray[np.object_]) -> pa.RecordBatch:
        """What is to be remembered of samples, with what was ``predicted`` of those that wait, by row of features."""
        found = []
        for number in self._changed:
            sample = self._samples[number]
            assert sample is not None
            if sample.features is not None:
                sample = sample._replace(predicted=predicted[self._at[number]])
            found.append(sample)
        columns = zip(*found, strict=True) if found else [[]] * len(Sample._fields)
        parts = [self._entries(list(self._changed.values()), columns)]
        if len(self._simple) > 0:
            contents = [self._contents[row] for row in self._simple.tolist()]
            labels = self.labels.take(pa.array(self._simple))
            learned = labels.is_valid().to_numpy(zero_copy_only=False)
            nothing = _objects([None] * len(learned))
            waits = [np.where(learned, nothing, column) for column in (predicted[self._simple], _objects(contents))]
            own = self._times[self._simple], list(map(digest_of, contents)), labels, *waits
            parts.append(self._entries(self._simple, own))
        (together,) = pa.Table.from_batches(parts).combine_chunks().to_batches() or [parts[0]]
        return together

    def _entries(self, rows: Any, columns: Iterable[Any]) -> pa.RecordBatch:
        """What is to be remembered of the samples in these rows, from the columns of :class:`Sample`."""
        names = [column.take(pa.array(rows, pa.int64())) for column in (self.keys, self.ids)]
        kinds = SAMPLES.types[len(names) :]
        arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
        return pa.RecordBatch.from_arrays([*names, *arrays], schema=SAMPLES)

    def output(self, with_labels: bool) -> OutputRows:
        """The rows of the result, in order; those of labels that were learned only if they are wanted."""
        simple = self._simple
        learned = np.array([row for row in simple.tolist() if self._label_list[row] is not None], np.int64)
        nothing, own = _objects([None] * len(simple)), _objects([self._label_list[row] for row in learned.tolist()])
        parts: list[tuple[Any, ...]] = [
            (np.full(len(simple), PREDICTION, object), simple, simple, nothing, nothing),
            (np.full(len(learned), LEARNED, object), learned, learned, own, nothing[: len(learned)]),
        ]
        if self._output:
            kinds, rows, features, labels, errors = zip(*self._output, strict=True)
            parts.append((_objects(kinds), np.array(rows), np.array(features), _objects(labels), _objects(errors)))
        together = OutputRows._make(np.concatenate(columns) for columns in zip(*parts, strict=True))
        order = np.argsort(self._rank[together.rows], kind="stable")
        if not with_labels:
            order = order[together.kinds[order] != LEARNED]
        return OutputRows._make(column[order] for column in together)


def _objects(values: Sequence[Any]) -> npt.NDArray[np.object_]:
    found = np.empty(len(values), object)
    found[:] = values
    return found


def _order(times: Integers, absent: npt.NDArray[np.bool_], ids: pa.Array) -> Integers:
    """The rows by time, then by whether features are absent, then by id."""
    table = pa.table({"time": times, "absent": absent, "id": ids.fill_null("")})
    found: Integers = pc.sort_indices(table, [(name, "ascending") for name in table.column_names]).to_numpy()
    return found.astype(np.int64)


def _known(sample: Sample | None) -> KnownId:
    return KnownId() if sample is None else KnownId(not sample.is_early, sample.label)


def _error(missing: Sequence[bool], is_infinite: bool, late: int | None) -> str:
    """Why a row is unusable; ``late`` is the watermark if it came too late."""
    for name, is_missing in zip(("the key", "the id", "the time"), missing, strict=True):
        if is_missing:
            return f"{name} must not be missing"
    if is_infinite:
        return "features must be finite or missing, got infinity"
    if late is not None:
        moment = str(np.datetime64(late, "us"))
        return f"it came too late: rows up to {moment} (UTC) are final, as nothing may come later than late allows"
    return "a row must have features, a label or both, got neither"
