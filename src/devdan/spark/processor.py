"""The stateful processor: the rows of a shard and its state in, predictions out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import (
    ExpiredTimerInfo,
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)

from devdan.spark import statebytes
from devdan.spark.events import BatchEvents, Features
from devdan.spark.packing import pack_rows, unpack_events
from devdan.spark.plan import QueryPlan
from devdan.spark.segments import KEPT_AS, Entries
from devdan.spark.shard import Shard, check_lasting
from devdan.spark.statebytes import NETWORK_NAMES, NETWORKS, SAMPLE_NAMES, SAMPLES, Sample

_SWEEPS = 8  # within the time after which something expires


class FleetProcessor(StatefulProcessor):  # type: ignore[misc]
    """A fleet for each shard of the keys; the columns that it reads are those of ``plan``."""

    def __init__(self, plan: QueryPlan) -> None:
        self._plan = plan

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the state: what networks share, with a list of segments, and the segments."""
        self._handle = handle
        self._shared = handle.getValueState("shared", "content binary")
        self._segments = handle.getMapState("segments", KEPT_AS, "content binary")

    def handleInputRows(  # noqa: N802 (the engine's name)
        self, key: Any, rows: Iterator[pd.DataFrame], timerValues: TimerValues
    ) -> Iterator[pd.DataFrame]:
        """Decide about the rows of a shard, predict and learn."""
        table = unpack_events(content for frame in rows for content in frame["content"])
        watermark = timerValues.getCurrentWatermarkInMs()
        state = ShardState(self._plan, self._handle, self._shared, self._segments, watermark)
        features = Features(self._plan, table)
        batch_events = BatchEvents(features, table, state.find_samples, 1000 * watermark)
        events = batch_events.events()
        state.bring(events.keys.tolist())
        X = features.rows()
        predictions = state.shard.learn(events, X, len(X))
        for row, predicted in batch_events.predicted.items():
            predictions.labels[row] = predicted
        if watermark >= 0:  # else it is a table, of which nothing is to be remembered
            state.keep(batch_events.samples(predictions.labels), batch_events.times_of_keys())
        content = pack_rows(batch_events, predictions, self._plan.with_labels)
        if content is not None:
            yield pd.DataFrame({"content": [content]})

    def handleExpiredTimer(  # noqa: N802
        self, key: Any, timerValues: TimerValues, expiredTimerInfo: ExpiredTimerInfo
    ) -> Iterator[pd.DataFrame]:
        """Remove what has expired, and set the timer for the next time."""
        watermark = timerValues.getCurrentWatermarkInMs()
        ShardState(self._plan, self._handle, self._shared, self._segments, watermark).sweep()
        return iter(())

    def close(self) -> None:
        """Nothing is open."""


class ShardState:
    """All that the engine keeps of a shard, and the fleet in it."""

    def __init__(self, plan: QueryPlan, handle: Any, shared: Any, segments: Any, watermark: int) -> None:
        self._plan, self._handle, self._shared, self._watermark = plan, handle, shared, watermark
        self._now = 1000 * watermark
        found = shared.get()
        self._header: dict[str, Any] = {"plan": plan.lasting, "fleet": None, "networks": [], "samples": [], "due": None}
        network = None
        if found is not None:
            self._header, network = statebytes.unpack_shared(bytes(found[0]))
        with statebytes.reading("what networks share"):
            header = {name: self._header[name] for name in ("plan", "fleet", "networks", "samples", "due")}
            before = {name: header["plan"][name] for name in plan.lasting}
        check_lasting(plan, before)
        self.shard = Shard(plan, header["fleet"], network)
        self._networks = Entries("networks", NETWORKS, NETWORK_NAMES, segments, header["networks"], self.shard.check)
        self._samples = Entries("samples", SAMPLES, SAMPLE_NAMES, segments, header["samples"])
        self._due: int | None = header["due"]  # time of the next removal, in milliseconds

    def find_samples(self, keys: pa.Array, ids: pa.Array) -> tuple[Any, list[Sample]]:
        """What is known of keys and ids."""
        places, entries = self._samples.find(keys, ids)
        counts = entries[statebytes.TIME].to_numpy() + self._plan.wait > self._now
        return places[counts], statebytes.samples_of(entries.filter(pa.array(counts)))

    def bring(self, keys: list[str]) -> None:
        """Let the fleet have the networks of these keys."""
        _, entries = self._networks.find(pa.array(list(dict.fromkeys(keys)), pa.string()))
        self.shard.take(entries, self._now)

    def keep(self, samples: pa.RecordBatch, times: dict[str, int]) -> None:
        """Write what has changed; ``times`` says when keys that have learned were last seen."""
        self._samples.add(samples, self._plan.wait, self._now)
        self._networks.add(self.shard.networks(times), self._plan.forget, self._now)
        if self._due is None and len(self._samples) > 0:
            self._set_timer(max(self._watermark, min(samples["time"].to_pylist(), default=0) // 1000))
        self._write()

    def sweep(self) -> None:
        """Remove what has expired, and set the timer for the next time if something is left that may."""
        self._samples.forget(self._plan.wait, self._now)
        self._networks.forget(self._plan.forget, self._now)
        self._due = None
        if len(self._samples) > 0 or (self._plan.forget is not None and len(self._networks) > 0):
            self._set_timer(self._watermark)
        self._write()

    def _set_timer(self, now: int) -> None:
        shortest = min(self._plan.wait, self._plan.forget or self._plan.wait) // 1000
        self._due = now + max(shortest // _SWEEPS, 1)
        self._handle.registerTimer(self._due)

    def _write(self) -> None:
        fleet, network = self.shard.header()
        listed = {"networks": self._networks.segments, "samples": self._samples.segments, "due": self._due}
        content = statebytes.pack_shared({"plan": self._plan.lasting, "fleet": fleet, **listed}, network)
        self._shared.update((content,))
