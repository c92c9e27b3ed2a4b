"""What a shard remembers is a dict that expires, whatever segments it is kept in."""

import zlib

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("pyspark", minversion="4.3", reason="pip install 'devdan[spark]'")

from devdan.spark import segments
from devdan.spark.segments import Entries, n_to_merge
from devdan.spark.statebytes import StateError

SCHEMA = pa.schema(
    [
        pa.field("key", pa.string(), nullable=False),
        pa.field("id", pa.string(), nullable=False),
        pa.field("time", pa.int64(), nullable=False),
        pa.field("value", pa.int64(), nullable=False),
    ]
)


class MapState(dict):
    """The engine's map, as far as it is used."""

    updateValue = dict.__setitem__  # noqa: N815
    removeKey = dict.__delitem__  # noqa: N815
    getValue = dict.get  # noqa: N815


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    return tmp_path


def reopened(entries, state):
    """The same entries, as the next batch finds them: lists come through JSON."""
    return Entries("some", SCHEMA, ("key", "id"), state, [list(segment) for segment in entries.segments])


def batch_of(lines):
    return pa.RecordBatch.from_arrays([pa.array(column) for column in zip(*lines, strict=True)], schema=SCHEMA)


def names(n):
    return [(f"key {number % 7}", f"{number}") for number in range(n)]


@pytest.mark.parametrize("loses_files", [False, True])
@pytest.mark.parametrize("after", [None, 500])
def test_what_is_found_is_what_was_added_last(after, loses_files, folder, monkeypatch):
    monkeypatch.setattr(segments, "_PART", 300)  # so that a segment has several parts
    random, state, expected = np.random.default_rng(0), MapState(), {}
    entries = Entries("some", SCHEMA, ("key", "id"), state)
    every = names(400)
    for number in range(120):
        now = 10 * number
        chosen = random.choice(len(every), random.integers(1, 40), replace=False)
        lines = [(*every[place], now + int(random.integers(10)), int(random.integers(10**9))) for place in chosen]
        entries.add(batch_of(lines), after, now)
        expected |= {line[:2]: line[2:] for line in lines}
        if loses_files:
            for path in folder.rglob("*/*"):
                if path.is_file() and random.random() < 0.5:
                    path.unlink()
        entries = reopened(entries, state)
        keys, ids = (pa.array(column) for column in zip(*every, strict=True))
        places, found = entries.find(keys, ids)
        own = {
            every[place]: line
            for place, line in zip(places.tolist(), zip(*found.to_pydict().values(), strict=True), strict=True)
        }
        assert all(line[:2] == name for name, line in own.items())
        alive = {name: line for name, line in expected.items() if after is None or line[0] + after > now}
        assert {name: line[2:] for name, line in own.items() if after is None or line[2] + after > now} == alive
    assert len(entries.segments) < 24
    assert set(state) == {("some", one.number, part) for one in entries.segments for part in range(one.n_parts)}
    if not loses_files:
        assert sum(path.is_file() for path in folder.rglob("*")) == len(entries.segments)


def test_names_with_the_same_hash_are_told_apart(monkeypatch):
    monkeypatch.setattr(segments, "crc32", lambda name: zlib.crc32(name) % 3)
    entries = Entries("some", SCHEMA, ("key", "id"), MapState())
    lines = [(*name, 1, place) for place, name in enumerate(names(50))]
    entries.add(batch_of(lines[::2]), None, 0)
    keys, ids = (pa.array(column) for column in zip(*names(50), strict=True))
    places, found = entries.find(keys, ids)
    assert dict(zip(places.tolist(), found["value"].to_pylist(), strict=True)) == {n: n for n in range(0, 50, 2)}


def test_an_entry_is_written_a_few_times_at_most():
    """Batches of new names, as many as there are: the logarithm of their number to the base 8."""
    sizes, written = [], 0
    for _ in range(512):
        n = n_to_merge([*sizes, 10])
        sizes[len(sizes) + 1 - n :] = [sum([*sizes, 10][-n:])]
        written += sizes[-1]
        assert len(sizes) <= 7 * 4
    assert written <= 4 * 512 * 10


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda state: state.clear(), "lacks a part"),
        (lambda state: state.update({name: (value[:-1] + b"?",) for name, (value,) in state.items()}), "digest"),
    ],
)
def test_a_damaged_segment_is_refused(damage, words, folder):
    state = MapState()
    entries = Entries("some", SCHEMA, ("key", "id"), state)
    entries.add(batch_of([("a", "1", 1, 1)]), None, 0)
    for path in folder.rglob("*/*"):
        path.unlink()
    damage(state)
    with pytest.raises(StateError, match=f"the checkpoint .*{words}"):
        reopened(entries, state)


@pytest.mark.parametrize("content", [b"", b"\x00", b"\x02", b"\x01", b"\x01abc"])
def test_bytes_that_are_no_segment_are_refused(content):
    with pytest.raises(StateError):
        segments.unpacked(content, SCHEMA, "entries")
