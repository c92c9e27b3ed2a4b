"""The fleet of a shard: the networks of some keys out of the state, rows through them, and back."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from devdan.arrays import Floats, Integers
from devdan.fleet import saving
from devdan.fleet.fleet import DEVDANFleet
from devdan.fleet.keys import text_of
from devdan.fleet.network_store import Row
from devdan.kernel import CHANGED
from devdan.spark import statebytes
from devdan.spark.plan import QueryPlan, text_of_value, value_of

PROBABILITIES = pa.map_(pa.string(), pa.float64())  # by class
_AT_ONCE = 1000  # networks that are checked together


class SampleEvents(NamedTuple):
    """Rows that count, in order."""

    keys: npt.NDArray[np.object_]  # texts, one for each row, as all of these
    rows: Integers  # of the features
    is_new: npt.NDArray[np.bool_]  # the features are to be predicted and observed
    labels: npt.NDArray[np.object_]  # texts to be taught, or None


class ShardPredictions:
    """What was predicted of rows of features, and by what."""

    def __init__(self, n_rows: int) -> None:
        self.labels = np.full(n_rows, None, object)  # as text; None while there is no class
        self.versions = np.zeros(n_rows, np.int64)  # rows and labels that the key had learned from
        self.drifts = np.zeros(n_rows, np.int64)  # real ones that it had signalled
        self.accuracies = np.full(n_rows, np.nan)  # of its latest predictions with labels
        self._place = np.full(n_rows, -1)  # of each row among the probabilities, in the order in which they came
        self._n = 0
        self._parts: list[tuple[tuple[str, ...], list[Floats]]] = []  # by the classes that were known

    def add(self, rows: Integers, names: tuple[str, ...], found: Floats, best: Integers) -> None:
        """Take in the probabilities of some rows, and which class each is called."""
        self.labels[rows] = np.array(names, object)[best]
        self._place[rows] = np.arange(self._n, self._n + len(rows))
        self._n += len(rows)
        if not self._parts or self._parts[-1][0] != names:
            self._parts.append((names, []))
        self._parts[-1][1].append(found)

    def probabilities(self, rows: Integers, wanted: npt.NDArray[np.bool_]) -> pa.Array:
        """The probabilities of some rows, where they are wanted and known, by class."""
        if not self._parts:
            return pa.nulls(len(rows), PROBABILITIES)
        arrays = []
        for names, found in self._parts:
            probabilities = np.concatenate(found)
            offsets = pa.array(np.arange(len(probabilities) + 1) * len(names), pa.int32())
            keys = pa.array(names, pa.string()).take(pa.array(np.tile(np.arange(len(names)), len(probabilities))))
            arrays.append(pa.MapArray.from_arrays(offsets, keys, pa.array(probabilities.reshape(-1))))
        places = self._place[rows]
        return pa.concat_arrays(arrays).take(pa.array(places, mask=(places < 0) | ~wanted))


class Shard:
    """A fleet that has the networks of the keys at hand; ``header`` and ``network`` are what the state has of it."""

    def __init__(self, plan: QueryPlan, header: dict[str, Any] | None = None, network: Floats | None = None) -> None:
        self.plan = plan
        self._times: dict[str, int] = {}  # when keys were seen before
        if header is None or network is None:
            self.fleet = plan.new_fleet()
            return
        with statebytes.reading("what networks share"):
            self.fleet = saving.restored(DEVDANFleet, header, network)
        self.fleet.estimator, self.fleet.decide = plan.estimator, plan.decide

    # --- The state -----------------------------------------------------------------------------------------------

    def check(self, entries: pa.RecordBatch) -> None:
        """Raise a ``StateError`` unless these networks fit into the fleet; entries of a state may hold anything."""
        with statebytes.reading("a network"):
            rows = (
                Row(text_of(self.plan.key_of(key)), (), kept) for key, _, kept in statebytes.unpack_networks(entries)
            )
            while part := list(islice(rows, _AT_ONCE)):
                self.fleet.content().networks.check(part)

    def take(self, entries: pa.Table, now: int) -> None:
        """Take in networks that were checked; one that was not seen for too long is as if it had never been."""
        found = []
        for batch in entries.to_batches():
            for key, time, kept in statebytes.unpack_networks(batch):
                if not has_expired(time, self.plan.forget, now):
                    self._times[key] = time
                    found.append((self.plan.key_of(key), kept))
        if found:
            self.fleet.content().networks.take_checked(found)

    def header(self) -> tuple[dict[str, Any] | None, Floats]:
        """What is to be kept for all keys; no header before anything was learned."""
        if not self.fleet.__sklearn_is_fitted__():
            return None, np.empty(0)
        return saving.shared_of(self.fleet)

    def networks(self, times: dict[str, int]) -> pa.RecordBatch:
        """What is to be kept of each key that has learned; ``times`` says when it was last seen."""
        keys, seen, networks = [], [], []
        if self.fleet.__sklearn_is_fitted__():
            slots = self.fleet.content().networks.slots
            for key, time in times.items():
                slot = slots.index.get(self.plan.key_of(key), -1)
                if slot >= 0 and slots.table[slot, CHANGED] == 1:
                    keys.append(key)
                    seen.append(max(time, self._times.get(key, time)))
                    networks.append(slots.get(slot))
        return statebytes.pack_networks(keys, seen, networks)

    # --- Learning ------------------------------------------------------------------------------------------------

    def learn(self, events: SampleEvents, X: Any, n_rows: int) -> ShardPredictions:
        """Let the networks learn from events, those of a key one by one; what was predicted, by row of features."""
        predictions = ShardPredictions(n_rows)
        texts = dict.fromkeys(events.keys.tolist())
        numbers = {text: number for number, text in enumerate(texts)}
        codes = np.fromiter(map(numbers.__getitem__, events.keys.tolist()), np.int64, len(events.keys))
        keys = np.array([self.plan.key_of(text) for text in texts], object)[codes]
        values = {text: value_of(text, self.plan.label_kind) for text in set(events.labels.tolist()) - {None}}
        has_label = np.array([label is not None for label in events.labels.tolist()], np.bool_)
        for together in rounds(codes):
            is_new, labelled = events.is_new[together], has_label[together]
            self._predict(together[is_new], keys, events.rows, X, predictions)
            for chosen, verb in ((is_new, self.fleet.partial_fit), (~is_new, self.fleet.teach)):
                own = together[chosen & labelled]
                if len(own) > 0:
                    y = [values[label] for label in events.labels[own].tolist()]
                    verb(keys[own].tolist(), X[events.rows[own]], y)
            own = together[~labelled]
            if len(own) > 0:
                self.fleet.observe(keys[own].tolist(), X[events.rows[own]])
        return predictions

    def _predict(self, places: Integers, keys: Any, rows: Integers, X: Any, predictions: ShardPredictions) -> None:
        if len(places) == 0:
            return
        fleet, own, rows = self.fleet, keys[places].tolist(), rows[places]
        counters = fleet.counters(own, ["n_learned", "n_drifts"])
        predictions.versions[rows], predictions.drifts[rows] = counters[:, :2].sum(axis=1), counters[:, 3]
        predictions.accuracies[rows] = fleet.accuracies(own)
        if fleet.__sklearn_is_fitted__() and len(fleet.mixture_.classes) > 0:
            classes = fleet.classes_.tolist()
            found = fleet.predict_proba(own, X[rows])
            best = fleet.decision_.places(found, classes)
            predictions.add(rows, tuple(map(text_of_value, classes)), found, best)


def rounds(codes: Integers) -> Iterator[Integers]:
    """Places of events in rounds in which a key has but one: the fleet takes many keys at once, each one by one.

    >>> [places.tolist() for places in rounds(np.array([0, 0, 1, 2, 0]))]
    [[0, 2, 3], [1], [4]]
    """
    order = np.argsort(codes, kind="stable")
    begins = np.flatnonzero(np.diff(codes[order], prepend=-1))
    lengths = np.diff(begins, append=len(codes))
    numbers = np.empty_like(order)
    numbers[order] = np.arange(len(codes)) - np.repeat(begins, lengths)
    places = np.argsort(numbers, kind="stable")
    cuts = np.concatenate([[0], np.cumsum(np.bincount(numbers))])
    return (places[begin:end] for begin, end in pairwise(cuts.tolist()))


def has_expired(time: int, after: int | None, now: int) -> bool:
    """Whether something of this time is too old, in microseconds; ``now`` is the watermark."""
    return after is not None and time + after <= now


def check_lasting(plan: QueryPlan, before: dict[str, Any]) -> None:
    """Raise a ``ValueError`` that names what must not have changed since the checkpoint was begun."""
    for name, value in plan.lasting.items():
        if before[name] != value:
            raise ValueError(
                f"{name} must stay {before[name]!r} as long as the checkpoint is used, got {value!r}; start the query "
                "with another checkpointLocation to start afresh"
            )
