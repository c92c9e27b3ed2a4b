"""The result of a shard as one value, and its rows out of it: the engine hands over few values far faster than rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from devdan.spark.events import PREDICTION, FrameEvents
from devdan.spark.shard import PROBABILITIES, ShardPredictions

PACKED = "content binary"  # what workers give to the engine first
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


def pack_rows(frame_events: FrameEvents, predictions: ShardPredictions, with_labels: bool) -> bytes | None:
    """What a shard tells, as Arrow streams have it; None if it is nothing."""
    output = frame_events.output(with_labels)
    if len(output.rows) == 0:
        return None
    rows = pa.array(output.rows)
    is_prediction = output.kinds == PREDICTION
    known = np.where(output.features >= 0, output.features, 0)
    accuracies = predictions.accuracies[known]
    columns = [
        pa.array(output.kinds, pa.string()),
        frame_events.keys.take(rows),
        frame_events.ids.take(rows),
        frame_events.times.take(rows),
        pa.array(predictions.labels[known], pa.string(), mask=output.features < 0),
        predictions.probabilities(known, is_prediction),
        pa.array(predictions.versions[known], pa.int64(), mask=~is_prediction),
        pa.array(accuracies, pa.float64(), mask=~is_prediction | np.isnan(accuracies)),
        pa.array(predictions.drifts[known], pa.int64(), mask=~is_prediction),
        pa.array(output.labels, pa.string()),
        pa.array(output.errors, pa.string()),
    ]
    out = pa.BufferOutputStream()
    batch = pa.RecordBatch.from_arrays(columns, schema=_SCHEMA)
    with pa.ipc.new_stream(out, _SCHEMA) as writer:
        writer.write_batch(batch)
    content: bytes = out.getvalue().to_pybytes()
    return content


def unpack_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of results."""
    for batch in batches:
        for content in batch.column(0):
            yield from pa.ipc.open_stream(content.as_buffer())
