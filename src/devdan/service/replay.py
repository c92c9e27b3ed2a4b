"""Reads a log again: rebuilds the model and compares it with its snapshot, or gives the history to another model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from devdan.arrays import Floats, Integers
from devdan.evaluation.labels import NEVER, Labels
from devdan.fleet.fleet import DEVDANFleet
from devdan.histories.histories import Histories
from devdan.service import log_keys, models, sql
from devdan.service.database import Connection
from devdan.service.fold import Fold
from devdan.service.forgetting import ERASED
from devdan.service.schema import Label, LoggedCorrections, LoggedLabels, LoggedRows, LogRecord
from devdan.service.sql import StreamFacts
from devdan.streams import Stream, StreamError

_AT_A_TIME = 500


class Replayed(NamedTuple):
    """A stream that was replayed; ``same`` is None if there is no snapshot to compare with."""

    stream: StreamFacts
    fold: Fold
    n_records: int
    same: bool | None

    def close(self) -> None:
        """Let go of its files."""
        if isinstance(self.fold.model, DEVDANFleet):
            self.fold.model.close()


def records(connection: Connection, stream: StreamFacts, after: int, until: float | None = None) -> Iterator[LogRecord]:
    """The records of a stream after a record, up to a time."""
    while True:
        some = connection.records(stream.number, after, _AT_A_TIME)
        for record in some:
            if until is not None and record.at > until:
                return
            yield record
            after = record.seq
        if not some:
            return


def replayed(
    connection: Connection, stream: StreamFacts, until: float | None = None, folder: Path | None = None
) -> Replayed:
    """Rebuild the model from the beginning of the log, and compare it with the latest snapshot on the way.

    In the folder are networks of keys that are not in memory, which without one are all there.
    """
    base = sql.snapshot(connection, stream.number, sql.BASE)
    if until is not None and base is not None and base.seq > 0 and until < base.at:
        begin = datetime.fromtimestamp(base.at).astimezone().isoformat(timespec="seconds")
        raise StreamError(
            f"the stream {stream.name} can be replayed from {begin} on: of what came before, some was removed or "
            "forgotten"
        )
    latest = sql.snapshot(connection, stream.number, sql.LATEST)
    begun, expected = (
        log_keys.whole(connection, stream.number, stream.settings, one, folder and folder / name)
        if stream.settings.keyed
        else None
        for name, one in (("replayed", base), ("snapshot", latest))
    )
    fold = Fold.restored(connection, stream, base, begun)
    same: bool | None = None
    n_records = 0

    def compare() -> bool | None:
        if latest is None or fold.seq != latest.seq:
            return same
        return fold.is_same_as(latest, expected)

    same = compare()
    for record in records(connection, stream, fold.seq, until):
        fold.apply(record)
        n_records += 1
        same = compare()
    if expected is not None:
        expected.close()
    return Replayed(stream, fold, n_records, same)


def found(connection: Connection, name: str | None) -> list[StreamFacts]:
    """The streams of a log: all, or the one of this name."""
    known = {stream.name: stream for stream in sql.streams(connection).values()}
    for stream in known.values():
        if stream.damage is not None and name is None:
            raise StreamError(f"{stream.damage}; the others can be replayed one by one")
        if stream.damage is not None and name == stream.name:
            raise StreamError(stream.damage)
    if name is None:
        return list(known.values())
    if name not in known:
        raise StreamError(f"there is no stream {name!r} in the log; it has {', '.join(known) or 'none'}")
    return [known[name]]


# --- The history for another model -----------------------------------------------------------------------------------


@dataclass
class RecordedLabels(Labels):
    """Labels arrive when they did: after as many rows as had come by then."""

    late: Integers = field(default_factory=lambda: np.zeros(0, np.int64))

    def __str__(self) -> str:
        return "as they came"

    def lateness(self, start: int, n_samples: int, margins: Floats | None) -> Integers:
        """How many samples late the label of each sample is, or NEVER."""
        return self.late[start : start + n_samples].copy()


def history(
    connection: Connection,
    stream: StreamFacts,
    chunk: int,
    until: float | None = None,
    drop: Sequence[str | int] = (),
) -> tuple[Stream, RecordedLabels]:
    """The rows of a stream with their labels, and when these came; a corrected label comes when it was corrected.

    The columns ``drop`` are left out.
    """
    if stream.columns is None or stream.n_rows == 0:
        raise StreamError(f"the stream {stream.name} has no rows yet")
    came: dict[
        tuple[int, int], tuple[Label, int]
    ] = {}  # by record and place: the label, and how many rows had come by then
    places: list[tuple[int, int]] = []
    for record in records(connection, stream, 0, until):
        if isinstance(record.body, LoggedRows):
            places += [(record.seq, place) for place in _there(record.body)]
        elif isinstance(record.body, (LoggedLabels, LoggedCorrections)):
            came |= {row: (label, len(places)) for row, label in zip(record.body.rows, record.body.labels, strict=True)}
    for name in drop:
        if name not in stream.columns:
            raise StreamError(f"the stream {stream.name} has no column {name!r}; it has {', '.join(stream.columns)}")
    columns = [name for name in stream.columns if name not in drop]
    kept = [place for place, name in enumerate(stream.columns) if name not in drop]

    def blocks() -> Iterator[tuple[Any, Any]]:
        for record in records(connection, stream, 0, until):
            if isinstance(record.body, LoggedRows) and (there := _there(record.body)):
                values = record.body.values
                rows = models.table(columns, [[values[place][column] for column in kept] for place in there])
                known = [came.get((record.seq, place), (None, 0))[0] for place in there]
                labels = np.empty(len(rows), dtype=object)
                labels[:] = known
                yield rows, labels

    late = np.array(
        [max(came[row][1] - number - 1, 0) if row in came else NEVER for number, row in enumerate(places)], np.int64
    )
    classes = sorted({label for label, _ in came.values()}, key=lambda label: (str(type(label)), label))
    made = Stream(
        stream.name, blocks, chunk, tuple(columns), len(places), classes=tuple(classes) or None, origin="the log"
    )
    return made, RecordedLabels(late=late)


def histories(stream: StreamFacts) -> Histories | None:
    """What tells the other model of the past of entities, if the stream has histories."""
    settings = stream.settings
    return None if settings.history is None else Histories(settings.entities, time=settings.time)


def _there(rows: LoggedRows) -> list[int]:
    """The places of rows that are not erased."""
    return [place for place, id_ in enumerate(rows.ids) if id_ != ERASED]
