"""The fleet of a shard: the networks of some keys out of the engine's state, rows through them, and back."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from devdan.fleet import saving
from devdan.fleet.fleet import DEVDANFleet
from devdan.fleet.keys import text_of
from devdan.fleet.store import Row
from devdan.kernel import CHANGED
from devdan.spark import statebytes
from devdan.spark.events import SampleEvent
from devdan.spark.plan import QueryPlan, text_of_value, value_of


class KeyPrediction(NamedTuple):
    """What was predicted of a row, and by what."""

    label: str | None  # None while there is no class
    probabilities: dict[str, float] | None
    version: int  # rows and labels that the key had learned from


class Shard:
    """A fleet that has the networks of the keys at hand.

    ``find`` gives what the state has of a key, as text: bytes, or None. A key that was not seen for longer than
    ``forget`` before ``now`` is as if it had never come.
    """

    def __init__(self, plan: QueryPlan, content: bytes | None, keys: Iterable[str], find: Find, now: int) -> None:
        self.plan = plan
        self._times: dict[str, int] = {}  # when keys were seen before
        if content is None:
            self.fleet = plan.new_fleet()
            return
        header, network = statebytes.unpack_shared(content)
        with statebytes.reading("what networks share"):
            before = {name: header["plan"][name] for name in plan.lasting}
            fleet = saving.restored(DEVDANFleet, header, network)
        check_lasting(plan, before)
        self.fleet = fleet
        self.fleet.estimator = plan.estimator
        rows = []
        for key in keys:
            found = find(key)
            if found is not None:
                kept, time = statebytes.unpack_network(found)
                if not has_expired(time, plan.forget, now):
                    self._times[key] = time
                    rows.append(Row(text_of(plan.key_of(key)), (), kept))
        if rows:
            with statebytes.reading("a network"):
                self.fleet._networks.take(rows)

    def learn(self, events: Sequence[SampleEvent], X: Any) -> dict[int, KeyPrediction]:
        """Let the networks learn from events, those of a key one by one; what was predicted, by row."""
        predictions: dict[int, KeyPrediction] = {}
        for together in rounds(events):
            self._predict([event for event in together if event.is_new], X, predictions)
            for is_new, verb in ((True, self.fleet.partial_fit), (False, self.fleet.teach)):
                labelled = [event for event in together if event.is_new is is_new and event.label is not None]
                if labelled:
                    y = [value_of(str(event.label), self.plan.label_kind) for event in labelled]
                    verb(self._keys(labelled), X[_rows(labelled)], y)
            unlabelled = [event for event in together if event.label is None]
            if unlabelled:
                self.fleet.observe(self._keys(unlabelled), X[_rows(unlabelled)])
        return predictions

    def _predict(self, events: Sequence[SampleEvent], X: Any, predictions: dict[int, KeyPrediction]) -> None:
        if not events:
            return
        fleet, keys = self.fleet, self._keys(events)
        versions = fleet.counters(keys, ["n_learned"]).sum(axis=1).tolist()
        if not fleet.__sklearn_is_fitted__() or len(fleet.mixture_.classes) == 0:
            for event, version in zip(events, versions, strict=True):
                predictions[event.row] = KeyPrediction(None, None, version)
            return
        names = list(map(text_of_value, fleet.classes_.tolist()))
        found = fleet.predict_proba(keys, X[_rows(events)])
        best = fleet.mixture_.decision.places(found, fleet.classes_.tolist()).tolist()
        for event, version, own, place in zip(events, versions, found.tolist(), best, strict=True):
            predictions[event.row] = KeyPrediction(names[place], dict(zip(names, own, strict=True)), version)

    def _keys(self, events: Sequence[SampleEvent]) -> list[Any]:
        return [self.plan.key_of(event.key) for event in events]

    # --- The state -----------------------------------------------------------------------------------------------

    def shared(self) -> bytes | None:
        """What is to be kept for all keys; None before anything was learned."""
        if not self.fleet.__sklearn_is_fitted__():
            return None
        self.fleet._id = ""  # chance has no place in a state
        header = saving.header_of(self.fleet) | {"plan": self.plan.lasting}
        return statebytes.pack_shared(header, self.fleet._shared.network())

    def networks(self, times: dict[str, int]) -> Iterator[tuple[str, bytes]]:
        """What is to be kept of each key that has learned, by its text; ``times`` says when it was last seen."""
        slots = self.fleet._networks.slots if self.fleet.__sklearn_is_fitted__() else None
        for key, time in times.items():
            slot = -1 if slots is None else slots.index.get(self.plan.key_of(key), -1)
            if slots is not None and slot >= 0 and slots.table[slot, CHANGED] == 1:
                yield key, statebytes.pack_network(slots.get(slot), max(time, self._times.get(key, time)))


Find = Callable[[str], bytes | None]


def rounds(events: Sequence[SampleEvent]) -> Iterator[list[SampleEvent]]:
    """Events in rounds in which a key has but one: the fleet takes many keys at once, each key its events one by one.

    >>> events = [SampleEvent(key, row, True, None) for row, key in enumerate("aabca")]
    >>> [[event.row for event in together] for together in rounds(events)]
    [[0, 2, 3], [1], [4]]
    """
    counts: dict[str, int] = defaultdict(int)
    found: list[list[SampleEvent]] = []
    for event in events:
        number = counts[event.key]
        counts[event.key] += 1
        if number == len(found):
            found.append([])
        found[number].append(event)
    return iter(found)


def has_expired(time: int, after: int | None, now: int) -> bool:
    """Whether something of this time is too old, in microseconds; ``now`` is the watermark."""
    return after is not None and time + after <= now


def check_lasting(plan: QueryPlan, before: dict[str, Any]) -> None:
    """Raise a ``ValueError`` that names what must not have changed since the checkpoint was begun."""
    for name, value in plan.lasting.items():
        if before[name] != value:
            raise ValueError(
                f"{name} must stay {before[name]!r} as long as the checkpoint is used, got {value!r}; start the query "
                "with another checkpointLocation to begin anew"
            )


def _rows(events: Sequence[SampleEvent]) -> Any:
    return np.array([event.row for event in events])
