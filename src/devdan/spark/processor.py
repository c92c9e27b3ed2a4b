"""The stateful processor: the rows of a shard and its state in, predictions out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd
from pyspark.sql.streaming.stateful_processor import (
    ExpiredTimerInfo,
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)

from devdan.spark import statebytes
from devdan.spark.events import LEARNED, PREDICTION, Features, FrameEvents, OutputRow
from devdan.spark.plan import QueryPlan
from devdan.spark.shard import KeyPrediction, Shard, has_expired
from devdan.spark.statebytes import Sample

OUTPUT = (
    "kind string, key string, id string, at bigint, prediction string, probabilities map<string, double>, "
    "version bigint, label string, error string"
)
_COLUMNS = [part.split()[0] for part in OUTPUT.replace("map<string, double>", "map").split(", ")]
_SWEEPS = 8  # within the time after which something expires


class FleetProcessor(StatefulProcessor):  # type: ignore[misc]
    """A fleet for each shard of the keys; the columns that it reads are those of ``plan``, and it writes ``OUTPUT``."""

    def __init__(self, plan: QueryPlan) -> None:
        self._plan = plan

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the state: what networks share, each key's network, and what is known of each sample."""
        self._handle = handle
        self._shared = handle.getValueState("shared", "content binary")
        self._networks = handle.getMapState("networks", "key string", "content binary")
        self._samples = handle.getMapState("samples", "key string, id string", "content binary")
        self._due = handle.getValueState("due", "at bigint")  # of the next removal, in milliseconds

    def handleInputRows(  # noqa: N802 (the engine's name)
        self, key: Any, rows: Iterator[pd.DataFrame], timerValues: TimerValues
    ) -> Iterator[pd.DataFrame]:
        """Decide about the rows of a shard, predict and learn."""
        frame = pd.concat(list(rows), ignore_index=True)
        watermark = timerValues.getCurrentWatermarkInMs()
        now = 1000 * watermark
        features = Features(self._plan, frame)
        frame_events = FrameEvents(features, lambda key, id_: self._sample(key, id_, now))
        frame_events.decide(frame)
        times = _times(frame_events.output)
        content = self._shared.get()
        shard = Shard(self._plan, None if content is None else bytes(content[0]), times, self._network, now)
        predictions = shard.learn(frame_events.events, features.rows())
        predicted = frame_events.predicted | {row: own.label for row, own in predictions.items()}
        self._keep(shard, frame_events, predicted, times, watermark)
        output = [one for one in frame_events.output if one.kind != LEARNED or self._plan.with_labels]
        if output:
            yield pd.DataFrame([_line(one, predictions, predicted) for one in output], columns=_COLUMNS, dtype=object)

    def handleExpiredTimer(  # noqa: N802
        self, key: Any, timerValues: TimerValues, expiredTimerInfo: ExpiredTimerInfo
    ) -> Iterator[pd.DataFrame]:
        """Remove what has expired, and set the timer for the next time."""
        watermark = timerValues.getCurrentWatermarkInMs()
        self._due.clear()
        if self._sweep(1000 * watermark) > 0:
            self._set_timer(watermark)
        return iter(())

    def close(self) -> None:
        """Nothing is open."""

    # --- States --------------------------------------------------------------------------------------------------

    def _sample(self, key: str, id_: str, now: int) -> Sample | None:
        found = self._samples.getValue((key, id_))
        if found is None:
            return None
        sample = statebytes.unpack_sample(bytes(found[0]))
        return None if has_expired(sample.time, self._plan.wait, now) else sample

    def _network(self, key: str) -> bytes | None:
        found = self._networks.getValue((key,))
        return None if found is None else bytes(found[0])

    def _keep(
        self,
        shard: Shard,
        frame_events: FrameEvents,
        predicted: dict[int, str | None],
        times: dict[str, int],
        watermark: int,
    ) -> None:
        """Write what has changed."""
        for name in sorted(frame_events.changed):
            sample = frame_events.samples[name]
            assert sample is not None
            if name in frame_events.rows:
                sample = sample._replace(predicted=predicted[frame_events.rows[name]])
            self._samples.updateValue(name, (statebytes.pack_sample(sample),))
        for key, content in shard.networks(times):
            self._networks.updateValue((key,), (content,))
        shared = shard.shared()
        if shared is not None:
            self._shared.update((shared,))
        if frame_events.changed and watermark >= 0 and not self._due.exists():  # in a batch, nothing expires
            first = min(sample.time for sample in frame_events.samples.values() if sample is not None)
            self._set_timer(max(watermark, first // 1000))

    def _set_timer(self, now: int) -> None:
        shortest = min(self._plan.wait, self._plan.forget or self._plan.wait) // 1000
        due = now + max(shortest // _SWEEPS, 1)
        self._due.update((due,))
        self._handle.registerTimer(due)

    def _sweep(self, now: int) -> int:
        """Remove what has expired; returns how much is left that may expire."""
        n_left = 0
        for states, after in ((self._samples, self._plan.wait), (self._networks, self._plan.forget)):
            if after is not None:
                times = [(name, statebytes.time_of(bytes(content))) for name, (content,) in states.iterator()]
                gone = [name for name, time in times if has_expired(time, after, now)]
                n_left += len(times) - len(gone)
                for name in gone:
                    states.removeKey(name)
        return n_left


def _times(output: list[OutputRow]) -> dict[str, int]:
    """When each key that learned something was last seen."""
    times: dict[str, int] = {}
    for one in output:
        if one.kind in (PREDICTION, LEARNED):
            assert one.key is not None
            assert one.time is not None
            times[one.key] = max(one.time, times.get(one.key, one.time))
    return times


def _line(one: OutputRow, predictions: dict[int, KeyPrediction], predicted: dict[int, str | None]) -> tuple[Any, ...]:
    """A row of the result."""
    of_row = predictions.get(one.row) if one.kind == PREDICTION else None
    details = (None, None) if of_row is None else (of_row.probabilities, of_row.version)
    return one.kind, one.key, one.id, one.time, predicted.get(one.row), *details, one.label, one.error
