"""The rows of a shard as one value, on their way in and out: the engine hands over few values far faster than rows.

It gives a stateful function row by row, each as a tuple that is made in Python.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from devdan.spark.events import PREDICTION, BatchEvents
from devdan.spark.plan import SHARD
from devdan.spark.shard import PROBABILITIES, ShardPredictions

PACKED = "content binary"  # what workers give to the engine
PACKED_BY_SHARD = f"{SHARD} bigint, {PACKED}"
ROWS = (
    "kind string, key string, id string, at bigint, prediction string, probabilities map<string, double>, "
    "version bigint, accuracy double, drifts bigint, label string, error string"
)
_SCHEMA = pa.schema(
    [
        ("kind", pa.string()),
        ("key", pa.string()),
        ("id", pa.string()),
        ("at", pa.int64()),
        ("prediction", pa.string()),
        ("probabilities", PROBABILITIES),
        ("version", pa.int64()),
        ("accuracy", pa.float64()),
        ("drifts", pa.int64()),
        ("label", pa.string()),
        ("error", pa.string()),
    ]
)

_AT_ONCE = 50_000  # rows that are packed together


def pack_events(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Events by shard, each with those of many rows."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(each.num_rows for each in waiting) >= _AT_ONCE:
            yield _by_shard(waiting)
            waiting = []
    if waiting:
        yield _by_shard(waiting)


def _by_shard(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    table = pa.Table.from_batches(batches)
    table = table.take(pc.sort_indices(table[SHARD])).combine_chunks()
    shards, begins = np.unique(table[SHARD].to_numpy(), return_index=True)
    events = table.drop_columns([SHARD])
    spans = pairwise([*begins.tolist(), table.num_rows])
    contents = [_packed(events.slice(begin, end - begin)) for begin, end in spans]
    return pa.record_batch({SHARD: pa.array(shards, pa.int64()), "content": pa.array(contents, pa.binary())})


def unpack_events(contents: Iterable[bytes]) -> pa.Table:
    """Events that were packed."""
    return pa.concat_tables(pa.ipc.open_stream(content).read_all() for content in contents).combine_chunks()


def _packed(table: pa.Table) -> bytes:
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table)
    content: bytes = out.getvalue().to_pybytes()
    return content


def pack_rows(batch_events: BatchEvents, predictions: ShardPredictions, with_labels: bool) -> bytes | None:
    """What a shard tells, as Arrow streams have it; None if it is nothing."""
    output = batch_events.output(with_labels)
    if len(output.rows) == 0:
        return None
    rows = pa.array(output.rows)
    is_prediction = output.kinds == PREDICTION
    known = np.where(output.features >= 0, output.features, 0)
    accuracies = predictions.accuracies[known]
    columns = [
        pa.array(output.kinds, pa.string()),
        batch_events.keys.take(rows),
        batch_events.ids.take(rows),
        batch_events.times.take(rows),
        pa.array(predictions.labels[known], pa.string(), mask=output.features < 0),
        predictions.probabilities(known, is_prediction),
        pa.array(predictions.versions[known], pa.int64(), mask=~is_prediction),
        pa.array(accuracies, pa.float64(), mask=~is_prediction | np.isnan(accuracies)),
        pa.array(predictions.drifts[known], pa.int64(), mask=~is_prediction),
        pa.array(output.labels, pa.string()),
        pa.array(output.errors, pa.string()),
    ]
    return _packed(pa.Table.from_arrays(columns, schema=_SCHEMA))


def unpack_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of results."""
    for batch in batches:
        for content in batch.column(0):
            yield from pa.ipc.open_stream(content.as_buffer())
