"""The networks of a stream with keys: those used last are in memory, the others in the log's database.

A snapshot is what all keys share, as the model of the snapshot, and those networks that have changed since the snapshot
before, as rows of the table ``networks``; all in one transaction. A network leaves memory only as a snapshot has it, so
the learner takes one early when half of those in memory have changed. What is in memory, together with the rows up to
the latest snapshot, is the model at any time: the learner and each predictor have such a pair, and a predictor's is
copied from the learner's without the rows.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from devdan.arrays import Floats
from devdan.fleet import saving
from devdan.fleet.fleet import DEVDANFleet
from devdan.fleet.network_store import FIGURES, Kept, KeyStore, Row, Store
from devdan.model.modelfile import ModelFileError, plain
from devdan.service import models, sql
from devdan.service.database import Connection
from devdan.service.schema import StreamSettings
from devdan.service.sql import Snapshot


class LogKeys(KeyStore):
    """The networks of a stream's keys as the snapshot ``seq`` has them; none if there is no snapshot, which is 0."""

    def __init__(self, connection: Connection, stream: int, seq: int = 0, n_keys: int = 0) -> None:
        self.connection, self.stream, self.seq, self.n_keys = connection, stream, seq, n_keys

    def __str__(self) -> str:
        return "the log"

    def get(self, texts: Sequence[str]) -> Iterator[tuple[Row, bool]]:
        found = sql.networks(self.connection, self.stream, self.seq, texts) if self.seq > 0 and texts else {}
        for text, content in found.items():
            yield _unpacked(text, content), False

    def rows(self) -> Iterator[Row]:
        if self.seq > 0:
            for text, content in sql.all_networks(self.connection, self.stream, self.seq):
                yield _unpacked(text, content)

    def figures(self) -> list[tuple[Any, ...]]:
        return [(row.text, *row.figures) for row in self.rows()]

    def count(self) -> int:
        return self.n_keys


class FetchedKeys(KeyStore):
    """Those that were fetched for a prediction, which waits for no database; ``seq`` is the snapshot that has them."""

    def __init__(self, seq: int, n_keys: int) -> None:
        self.seq, self.n_keys = seq, n_keys
        self.contents: dict[str, bytes] = {}

    def __str__(self) -> str:
        return "the log"

    def get(self, texts: Sequence[str]) -> Iterator[tuple[Row, bool]]:
        for text in texts:
            if text in self.contents:
                yield _unpacked(text, self.contents[text]), False

    def rows(self) -> Iterator[Row]:
        for text, content in self.contents.items():
            yield _unpacked(text, content)

    def figures(self) -> list[tuple[Any, ...]]:
        return [(row.text, *row.figures) for row in self.rows()]

    def count(self) -> int:
        return self.n_keys


def copied(fleet: DEVDANFleet) -> tuple[DEVDANFleet, FetchedKeys]:
    """The fleet as it is, for a predictor, and where to put what it has to fetch."""
    store = fleet.store if isinstance(fleet.store, LogKeys) else None
    fetched = FetchedKeys(0 if store is None else store.seq, len(fleet))
    return copy.deepcopy(fleet, {} if store is None else {id(store): fetched}), fetched


# --- Snapshots -------------------------------------------------------------------------------------------------------


def of_log(connection: Connection, stream: int, settings: StreamSettings, kept: Snapshot | None) -> DEVDANFleet:
    """The fleet after a snapshot, or a new one, with networks that come from the log when they are needed."""
    if kept is None or kept.model is None:
        fleet = models.new_model(settings)
        assert isinstance(fleet, DEVDANFleet)
        fleet.set_params(store=LogKeys(connection, stream), max_in_memory=settings.max_in_memory)
        return fleet
    n_keys, header, network = _shared_of(kept)
    return _restored(header, network, settings.max_in_memory, LogKeys(connection, stream, kept.seq, n_keys))


def shared(fleet: DEVDANFleet) -> bytes | None:
    """The model of a snapshot: what all keys share, and how many there are; None before the first row."""
    if not fleet.__sklearn_is_fitted__():
        return None
    header, network = saving.shared_of(fleet)
    text = json.dumps(header, allow_nan=False, default=plain).encode()
    return msgspec.msgpack.encode((len(fleet), text, network.astype("<f8").tobytes()))


def changes(fleet: DEVDANFleet) -> list[tuple[str, bytes]]:
    """The networks of a snapshot: those that have changed since the one before."""
    if not fleet.__sklearn_is_fitted__():
        return []
    return [(row.text, _packed(row)) for row in fleet.content().networks.changed_rows()]


def note_saved(fleet: DEVDANFleet, seq: int) -> None:
    """The log has a snapshot of the fleet as it is."""
    store = fleet.store
    assert isinstance(store, LogKeys)
    if fleet.__sklearn_is_fitted__():
        fleet.content().networks.note_saved()
        store.seq, store.n_keys = seq, len(fleet)


def is_due(fleet: DEVDANFleet) -> bool:
    """Whether so many have changed that a snapshot must be taken, or there would be too many in memory."""
    if not isinstance(fleet.store, LogKeys) or not fleet.__sklearn_is_fitted__():
        return False
    return 2 * fleet.content().networks.n_changed > (fleet.max_in_memory or 0)


# --- Whole fleets ----------------------------------------------------------------------------------------------------


def whole(
    connection: Connection, stream: int, settings: StreamSettings, kept: Snapshot | None, path: Path | None = None
) -> DEVDANFleet:
    """The fleet after a snapshot, or a new one, apart from the log: in a new file, or in memory without a path."""
    most = None if path is None else settings.max_in_memory
    if kept is None or kept.model is None:
        new = models.new_model(settings)
        assert isinstance(new, DEVDANFleet)
        new.set_params(store=path, max_in_memory=most)
        return new
    rows, (_, header, network) = LogKeys(connection, stream, kept.seq).rows(), _shared_of(kept)
    if path is None:
        fleet = _restored(header, network, None, None)
        saving.take(fleet, rows)
        return fleet
    store = Store.create(path, exclusive=False)
    try:
        store.save(header, network, rows, (), True)
    finally:
        store.close()
    fleet = DEVDANFleet.load(path, max_in_memory=most)
    fleet.n_jobs = 1
    return fleet


# --- Bytes -----------------------------------------------------------------------------------------------------------


def _restored(header: dict[str, Any], network: Floats, most: int | None, store: KeyStore | None) -> DEVDANFleet:
    try:
        fleet: DEVDANFleet = saving.restored(DEVDANFleet, header, network, most, store)
    except saving.INVALID as error:
        raise ModelFileError(f"the snapshot does not hold a valid fleet: {error}") from error
    fleet.n_jobs = 1
    return fleet


_SHARED = msgspec.msgpack.Decoder(tuple[int, bytes, bytes])
_ROW = msgspec.msgpack.Decoder(tuple[list[int | float | None], tuple[int, int, int, int, int], bytes, bytes])


def _shared_of(kept: Snapshot) -> tuple[int, dict[str, Any], Floats]:
    """How many keys there are, and what they share: a header and a network."""
    assert kept.model is not None
    try:
        n_keys, header, network = _SHARED.decode(kept.model)
        return n_keys, json.loads(header), np.frombuffer(network, "<f8").astype(np.float64)
    except ValueError as error:
        raise ModelFileError(f"the snapshot is damaged: {error}") from error


def _packed(row: Row) -> bytes:
    kept = row.kept
    numbers = kept.n_judged, kept.judged, kept.seen, kept.inputs, kept.settings
    words = kept.codes.astype("<i8").tobytes(), kept.state.astype("<f8").tobytes()
    return msgspec.msgpack.encode((row.figures, numbers, *words))


def _unpacked(text: str, content: bytes) -> Row:
    try:
        figures, numbers, codes, state = _ROW.decode(content)
        words = np.frombuffer(state, "<f8").astype(np.float64), np.frombuffer(codes, "<i8").astype(np.int64)
    except ValueError as error:
        raise ModelFileError(f"the network of the key {text} is damaged: {error}") from error
    if len(figures) != len(FIGURES):
        raise ModelFileError(f"the network of the key {text} is damaged: it has {len(figures)} figures")
    return Row(text, tuple(figures), Kept(*words, *numbers))
