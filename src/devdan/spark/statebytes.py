"""What a shard remembers, in columns: the networks of keys, what is known of samples, and what networks share.

All bytes begin with a version, so that the state of another version of the package is refused, and never misread.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from devdan.arrays import Floats
from devdan.fleet.network_store import Kept
from devdan.fleet.saving import INVALID
from devdan.model.modelfile import plain, refuse

VERSION = 1  # of all that is in a state
_SHARED = struct.Struct("<BQ")  # version, length of the header
_INVALID = (*INVALID, struct.error, pa.ArrowException)  # what comes of reading bytes that are no state
DIGEST = 8  # bytes by which features are recognised
TIME = "time"  # the column by which entries expire, in microseconds
_COUNTERS = ("n_judged", "judged", "seen", "inputs", "settings")

NETWORK_NAMES = ("key",)
NETWORKS = pa.schema(
    [
        pa.field("key", pa.string(), nullable=False),
        pa.field("time", pa.int64(), nullable=False),  # when the key was last seen
        *(pa.field(name, pa.int64(), nullable=False) for name in _COUNTERS),
        pa.field("codes", pa.list_(pa.field("code", pa.int64(), nullable=False)), nullable=False),
        pa.field("state", pa.large_binary(), nullable=False),
    ]
)
SAMPLE_NAMES = ("key", "id")
SAMPLES = pa.schema(
    [
        pa.field("key", pa.string(), nullable=False),
        pa.field("id", pa.string(), nullable=False),
        pa.field("time", pa.int64(), nullable=False),
        pa.field("digest", pa.binary(DIGEST)),
        pa.field("label", pa.string()),
        pa.field("predicted", pa.string()),
        pa.field("features", pa.large_binary()),
    ]
)


class StateError(ValueError):
    """The checkpoint holds a state that is damaged, or of another version."""


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Say what is damaged in the checkpoint."""
    try:
        yield
    except StateError:
        raise
    except _INVALID as error:
        raise StateError(f"the checkpoint holds {what} that is damaged: {error}") from error


# --- Samples -----------------------------------------------------------------------------------------------------


class Sample(NamedTuple):
    """What is known of an id: features that wait for a label, a label that waits for features, or both done."""

    time: int  # microseconds; of what came first
    digest: bytes | None  # of the features; none if they have not come
    label: str | None  # as text; None if it has not come
    predicted: str | None = None  # likewise, while its label has not come
    features: bytes | None = None  # likewise

    @property
    def is_early(self) -> bool:
        """Whether there is only a label."""
        return self.digest is None


def digest_of(features: bytes) -> bytes:
    """A digest that recognises the same features."""
    return blake2b(features, digest_size=DIGEST).digest()


def samples_of(entries: pa.Table) -> list[Sample]:
    """Samples from their columns."""
    return list(map(Sample, *(entries[name].to_pylist() for name in Sample._fields)))


# --- Networks ----------------------------------------------------------------------------------------------------


def pack_networks(keys: Sequence[str], times: Sequence[int], networks: Sequence[Kept]) -> pa.RecordBatch:
    """Networks as entries, with the times when their keys were last seen."""
    columns = [
        pa.array(keys, pa.string()),
        pa.array(times, pa.int64()),
        *(pa.array([getattr(kept, name) for kept in networks], pa.int64()) for name in _COUNTERS),
        pa.array([kept.codes for kept in networks], NETWORKS.field("codes").type),
        pa.array([kept.state.astype("<f8", copy=False).tobytes() for kept in networks], pa.large_binary()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=NETWORKS)


def unpack_networks(entries: Any) -> Iterator[tuple[str, int, Kept]]:
    """Keys, times and networks, not checked yet."""
    counters = (entries.column(name).to_pylist() for name in ("key", "time", *_COUNTERS))
    codes, states = entries.column("codes"), entries.column("state")
    for place, (key, time, *own) in enumerate(zip(*counters, strict=True)):
        state = np.frombuffer(states[place].as_buffer(), "<f8")
        yield key, time, Kept(state, np.array(codes[place].as_py(), np.int64), *own)


# --- What networks share -----------------------------------------------------------------------------------------


def pack_shared(header: dict[str, Any], network: Floats) -> bytes:
    """What the networks of a shard share."""
    text = json.dumps(header, allow_nan=False, default=plain).encode()
    return _SHARED.pack(VERSION, len(text)) + text + network.astype("<f8").tobytes()


def unpack_shared(content: bytes) -> tuple[dict[str, Any], Floats]:
    """A header and a network, not checked yet."""
    check_version(content)
    with reading("what networks share"):
        _, n = _SHARED.unpack_from(content)
        start = _SHARED.size + n
        header = json.loads(content[_SHARED.size : start], parse_constant=refuse)
        if not isinstance(header, dict):
            raise ValueError("its header is no object")
        words: Floats = np.frombuffer(content[start:], "<f8").astype(np.float64)
        return header, words


def version_byte() -> bytes:
    """What all bytes begin with."""
    return bytes([VERSION])


def check_version(content: bytes) -> None:
    """Raise a ``StateError`` unless this version of the package wrote the bytes, or an older one."""
    if len(content) == 0:
        raise StateError("the checkpoint holds a state without a byte: it is damaged")
    if content[0] > VERSION:
        raise StateError(
            f"the checkpoint was written by a newer devdan (state of version {content[0]}, this one reads {VERSION}): "
            "upgrade devdan on the driver and on all workers"
        )
    if content[0] < 1:
        raise StateError(f"the checkpoint holds a state of version {content[0]}, which does not exist: it is damaged")
