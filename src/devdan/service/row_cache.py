"""Rows of the log that may get labels soon, so that they need not be read again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from itertools import chain
from typing import NamedTuple

from msgspec.structs import replace

from devdan.service.schema import LoggedRows, LogRecord, Value

_CACHED, _CACHED_BYTES = 20_000, 8 * 2**20  # rows, and their bytes in the log

Find = Callable[[int], LogRecord | None]  # a record of the stream, by its number


class GapError(RuntimeError):
    """The log lacks something that a record refers to."""


class Taken(NamedTuple):
    """The values of rows; their keys, if they have any; their histories, and the places of those not shown then."""

    values: Sequence[Sequence[Value]]
    keys: Sequence[str] = ()
    histories: Sequence[bytes] = ()
    hidden: Sequence[Sequence[int]] = ()

    @classmethod
    def all_of(cls, rows: LoggedRows) -> Taken:
        """All rows of a record."""
        hidden = [] if rows.histories is None else [rows.hidden] * len(rows.histories)
        return cls(rows.values, rows.keys or [], rows.histories or [], hidden)

    @classmethod
    def one_of(cls, rows: LoggedRows, place: int) -> Taken:
        """A row of a record."""
        keys = [] if rows.keys is None else [rows.keys[place]]
        if rows.histories is None:
            return cls([rows.values[place]], keys)
        return cls([rows.values[place]], keys, [rows.histories[place]], [rows.hidden])


class RowCache:
    """The records of a stream with rows that were used last; ``find`` reads others."""

    def __init__(self, find: Find) -> None:
        self._find = find
        self._recent: OrderedDict[int, tuple[LogRecord, LoggedRows]] = OrderedDict()
        self._n_rows = self._n_bytes = 0  # in them

    def add(self, record: LogRecord, rows: LoggedRows) -> None:
        """Keep the rows of a record for a while."""
        self._recent[record.seq] = record, rows
        self._n_rows += len(rows.ids)
        self._n_bytes += record.n_bytes
        while (self._n_rows > _CACHED or self._n_bytes > _CACHED_BYTES) and len(self._recent) > 1:
            self.drop(next(iter(self._recent)))

    def drop(self, seq: int) -> None:
        """Keep a record no longer."""
        if seq in self._recent:
            record, rows = self._recent.pop(seq)
            self._n_rows -= len(rows.ids)
            self._n_bytes -= record.n_bytes

    def of(self, places: Sequence[tuple[int, int]]) -> tuple[list[tuple[LogRecord, LoggedRows]], Taken]:
        """The records of rows, each by its record's number and its place there, without any values; and these rows.

        Labels that come together may be of as many records, which together are too large for the memory.
        """
        numbers: dict[int, list[int]] = {}  # of the rows of each record
        for number, (seq, _) in enumerate(places):
            numbers.setdefault(seq, []).append(number)
        light, taken = dict[int, tuple[LogRecord, LoggedRows]](), dict[int, Taken]()
        for seq, own in numbers.items():
            record, rows = self._record(seq)
            bare = replace(rows, values=(), histories=None)
            light[seq] = replace(record, body=bare), bare
            taken |= {number: Taken.one_of(rows, places[number][1]) for number in own}
        found = [taken[number] for number in range(len(places))]
        lists = [list(chain.from_iterable(parts)) for parts in zip(*found, strict=True)] if found else []
        return [light[seq] for seq, _ in places], Taken(*lists) if lists else Taken([])

    def _record(self, seq: int) -> tuple[LogRecord, LoggedRows]:
        if seq in self._recent:
            self._recent.move_to_end(seq)
            return self._recent[seq]
        record = self._find(seq)
        if record is None or not isinstance(record.body, LoggedRows):
            raise GapError(f"the log lacks the rows of record {seq}, whose labels it has")
        self.add(record, record.body)  # labels of one record mostly come together
        return record, record.body
