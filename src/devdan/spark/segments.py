"""What a shard remembers, as entries by name, in tables that are written once: a log-structured merge tree.

A call to the engine's state costs far more than an entry, so that the engine keeps whole tables, *segments*, each
compressed, in a few values. A batch writes what has changed into a new one. An entry counts until a newer segment has
one of the same name; when there are many segments, the newest become one, without entries that count no longer.

To find an entry, a segment must be at hand. So it is also a file on this machine, with an index, which is mapped into
memory and named by a digest of what the engine keeps. Such a file is a copy: one that is missing, after a crash or on
another machine, is made again.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from devdan.arrays import Integers
from devdan.spark.statebytes import TIME, StateError, check_version, reading, version_byte

KEPT_AS = "family string, number bigint, part int"  # names of the values that the engine keeps
_INDEX = "hash"  # the column that files have besides, by which they are sorted
_MOST = 8  # segments of about the same size, before they become one
_PART = 16 * 2**20  # bytes of a value
_WRITING = pa.ipc.IpcWriteOptions(compression="zstd")


class Segment(NamedTuple):
    """A segment, as the state of a shard lists it."""

    number: int
    n_entries: int
    n_parts: int
    newest: int  # time of an entry
    digest: str


class Entries:
    """The entries of one kind. ``state`` is the engine's map of segments; ``check`` sees all that is read from it."""

    def __init__(
        self,
        kind: str,
        schema: pa.Schema,
        names: Sequence[str],
        state: Any,
        listed: Sequence[Sequence[Any]] = (),
        check: Callable[[pa.RecordBatch], None] = lambda entries: None,
    ) -> None:
        self._kind, self._schema, self._names, self._state, self._check = kind, schema, names, state, check
        with reading("a list of segments"):
            self.segments = [_listed(each) for each in listed]  # the newest is the last
        self._files = [self._file(segment) for segment in self.segments]

    def __len__(self) -> int:
        """The number of entries, also of those that count no longer."""
        return sum(segment.n_entries for segment in self.segments)

    def find(self, *names: pa.Array) -> tuple[Integers, pa.Table]:
        """The places of those names that have an entry, and their entries."""
        wanted = joined(names)
        hashes = hashes_of(wanted)
        left = np.ones(len(wanted), np.bool_)
        places, found = [np.empty(0, np.int64)], [self._schema.empty_table()]
        for file in reversed(self._files):
            own, rows = _find_in(file, wanted, hashes, np.flatnonzero(left), self._names)
            if len(own) > 0:
                left[own] = False
                places.append(own)
                found.append(pa.Table.from_batches([file.take(pa.array(rows)).drop_columns([_INDEX])]))
        return np.concatenate(places), pa.concat_tables(found)

    def add(self, entries: pa.RecordBatch, after: int | None, now: int) -> None:
        """Write entries, which replace those of their names; what is older than ``after`` is forgotten."""
        self.forget(after, now)
        if entries.num_rows == 0:
            return
        n_merged = n_to_merge([*(segment.n_entries for segment in self.segments), entries.num_rows]) - 1
        if n_merged > 0:
            entries = self._merged(entries, n_merged, after, now)
            for segment in self.segments[-n_merged:]:
                self._remove(segment)
        self._write(entries)

    def forget(self, after: int | None, now: int) -> None:
        """Remove segments of which all entries have expired."""
        if after is not None:
            for segment in [segment for segment in self.segments if segment.newest + after <= now]:
                self._remove(segment)

    def _merged(self, entries: pa.RecordBatch, n_merged: int, after: int | None, now: int) -> pa.RecordBatch:
        """New entries and those of the newest segments, one of each name, without those that have expired."""
        older = [file.drop_columns([_INDEX]) for file in reversed(self._files[-n_merged:])]
        together = pa.Table.from_batches([entries, *older]).combine_chunks()
        (batch,) = together.to_batches()
        counts = ~pd.Series(joined(_columns(batch, self._names)).to_pandas()).duplicated().to_numpy()
        if after is not None:
            counts &= batch.column(TIME).to_numpy() + after > now
        return batch.filter(pa.array(counts))

    def _write(self, entries: pa.RecordBatch) -> None:
        content = packed(entries)
        number = 1 + max((segment.number for segment in self.segments), default=0)
        n_parts = -(-len(content) // _PART)
        newest = pc.max(entries.column(TIME)).as_py()
        segment = Segment(number, entries.num_rows, n_parts, newest, digest_of(content))
        for part in range(n_parts):
            value = content[part * _PART : (part + 1) * _PART]
            self._state.updateValue((self._kind, number, part), (value,))
        self.segments.append(segment)
        self._files.append(_written(entries, self._names, path_of(segment)))

    def _remove(self, segment: Segment) -> None:
        for part in range(segment.n_parts):
            self._state.removeKey((self._kind, segment.number, part))
        place = self.segments.index(segment)
        del self.segments[place], self._files[place]
        path_of(segment).unlink(missing_ok=True)

    def _file(self, segment: Segment) -> pa.RecordBatch:
        """The file of a segment, made from what the engine keeps if it is not there."""
        path = path_of(segment)
        if path.exists():
            return _mapped(path)
        parts = [self._state.getValue((self._kind, segment.number, part)) for part in range(segment.n_parts)]
        if any(part is None for part in parts):
            raise StateError(f"the checkpoint lacks a part of the {self._kind}: it is damaged")
        content = b"".join(bytes(value) for (value,) in parts)
        if digest_of(content) != segment.digest:
            raise StateError(f"the checkpoint holds {self._kind} that are damaged: their digest does not match")
        entries = unpacked(content, self._schema, self._kind)
        self._check(entries)
        return _written(entries, self._names, path)


def n_to_merge(sizes: Sequence[int]) -> int:
    """How many of the newest segments are to become one: at least eight of about the same size, or smaller ones.

    >>> n_to_merge([500, 9, 9, 9, 9, 9, 9, 9]), n_to_merge([500, 9, 9, 9, 9, 9, 9, 9, 9]), n_to_merge([500, 9, 9])
    (1, 8, 1)
    >>> n_to_merge([70, 70, 70, 70, 70, 70, 70, 9, 9, 9, 9, 9, 9, 9, 9])
    15
    """
    n = 1
    while True:
        level, end = _level(sum(sizes[-n:])), n
        while end < len(sizes) and _level(sizes[-end - 1]) <= level:
            end += 1
        if end - n + 1 < _MOST:  # those that become one count as one
            return n
        n = end


def _level(size: int) -> int:
    return (max(size, 1).bit_length() - 1) // (_MOST.bit_length() - 1)


# --- Names -------------------------------------------------------------------------------------------------------


def joined(names: Sequence[pa.Array]) -> pa.Array:
    """One text for each name, which may be of several columns; different names have different texts.

    >>> joined([pa.array(["a", "a:b"]), pa.array(["b:c", "c"])]).to_pylist()
    ['1:a:b:c', '3:a:b:c']
    """
    *firsts, last = names
    lengths = [pc.utf8_length(column).cast(pa.string()) for column in firsts]
    return pc.binary_join_element_wise(*lengths, *firsts, last, ":") if firsts else last


def hashes_of(names: pa.Array) -> Any:
    """A number for each name, to look for it by; others may have the same."""
    return np.fromiter(map(crc32, names.cast(pa.binary()).to_pylist()), np.uint32, len(names))


def _columns(entries: pa.RecordBatch, names: Sequence[str]) -> list[pa.Array]:
    return [entries.column(name) for name in names]


def _find_in(
    file: pa.RecordBatch, wanted: pa.Array, hashes: Any, places: Integers, names: Sequence[str]
) -> tuple[Integers, Integers]:
    """Which of the wanted names at these places a file has, and in which rows."""
    index = file.column(_INDEX).to_numpy()
    found_places, found_rows = [], []
    rows = np.searchsorted(index, hashes[places])
    while len(places) > 0:
        candidates = np.flatnonzero(index[np.minimum(rows, len(index) - 1)] == hashes[places])
        candidates = candidates[rows[candidates] < len(index)]
        places, rows = places[candidates], rows[candidates]
        own = joined(_columns(file.select(list(names)).take(pa.array(rows)), names))
        same = pc.equal(own, wanted.take(pa.array(places))).to_numpy(zero_copy_only=False)
        found_places.append(places[same])
        found_rows.append(rows[same])
        places, rows = places[~same], rows[~same] + 1
    nothing = np.empty(0, np.int64)
    return np.concatenate([nothing, *found_places]), np.concatenate([nothing, *found_rows])


# --- Bytes and files ---------------------------------------------------------------------------------------------


def packed(entries: pa.RecordBatch) -> bytes:
    """Entries as the engine keeps them; texts that come often are written once."""
    columns = [_without_repeats(column) for column in entries.columns]
    batch = pa.RecordBatch.from_arrays(columns, names=entries.schema.names)
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, batch.schema, options=_WRITING) as writer:
        writer.write_batch(batch)
    content: bytes = out.getvalue().to_pybytes()
    return version_byte() + content


def _without_repeats(column: pa.Array) -> pa.Array:
    if column.type != pa.string():
        return column
    encoded = column.dictionary_encode()
    return encoded if 2 * len(encoded.dictionary) < len(column) else column


def unpacked(content: bytes, schema: pa.Schema, kind: str) -> pa.RecordBatch:
    """Entries from bytes, which may hold anything."""
    check_version(content)
    with reading(kind):
        (batch,) = pa.ipc.open_stream(content[1:])
        batch.validate(full=True)
        if batch.schema.names != schema.names:
            raise ValueError("it has other columns")
        columns = [
            column.dictionary_decode() if pa.types.is_dictionary(column.type) else column for column in batch.columns
        ]
        entries = pa.RecordBatch.from_arrays(columns, schema=schema)
        if any(entries.column(field.name).null_count > 0 for field in schema if not field.nullable):
            raise ValueError("it lacks values")
    return entries


def digest_of(content: bytes) -> str:
    """What recognises the same bytes."""
    return blake2b(content, digest_size=16).hexdigest()


def path_of(segment: Segment) -> Path:
    """Where the file of a segment is: in a folder of Spark's, which goes with the process that started the workers."""
    folder = os.environ.get("SPARK_LOCAL_DIRS", tempfile.gettempdir()).split(",")[0]
    return Path(folder) / f"devdan-{os.getuid()}" / segment.digest


def _written(entries: pa.RecordBatch, names: Sequence[str], path: Path) -> pa.RecordBatch:
    """Write a file, sorted by its index; there is none at any moment, or a whole one."""
    hashes = hashes_of(joined(_columns(entries, names)))
    order = np.argsort(hashes, kind="stable")
    ordered = entries.take(pa.array(order)).append_column(_INDEX, pa.array(hashes[order]))
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    own = path.with_name(f"{path.name}-{os.getpid()}")
    with pa.ipc.new_file(own, ordered.schema) as writer:
        writer.write_batch(ordered)
    own.replace(path)
    return _mapped(path)


def _mapped(path: Path) -> pa.RecordBatch:
    return pa.ipc.open_file(pa.memory_map(str(path))).get_batch(0)


def _listed(given: Sequence[Any]) -> Segment:
    """A segment from a list that may hold anything."""
    segment = Segment(*given)
    if not all(isinstance(number, int) for number in segment[:4]) or min(segment[:3]) < 1:
        raise ValueError("its counters are out of range")
    if not isinstance(segment.digest, str) or len(segment.digest) != 32 or not segment.digest.isalnum():
        raise ValueError("its digest is none")
    return segment
