"""The state of a shard as bytes: the networks, what they share, and what is known of samples.

All begin with a version, so that the state of another version of the package is refused, and never misread.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np

from devdan.arrays import Floats
from devdan.fleet.saving import INVALID
from devdan.fleet.store import Kept
from devdan.model.modelfile import plain, refuse

VERSION = 1  # of all that is in a state
_NETWORK = struct.Struct("<Bqqqqqqq")  # version, time, counters of a key, number of classes
_SHARED = struct.Struct("<BQ")  # version, length of the header
_SAMPLE = struct.Struct("<Bq8sI")  # version, time, digest, length of the texts
_TIME = struct.Struct("<Bq")
DIGEST = 8  # bytes by which features are recognised
_INVALID = (*INVALID, struct.error)  # what comes of reading bytes that are no state


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


class Sample(NamedTuple):
    """What is known of an id: features that wait for a label, a label that waits for features, or both done."""

    time: int  # microseconds; of what came first
    digest: bytes  # of the features; none if they have not come
    label: str | None  # as text; None if it has not come
    predicted: str | None  # likewise
    features: bytes  # only while they wait

    @property
    def is_early(self) -> bool:
        """Whether there is only a label."""
        return not self.digest


def digest_of(features: bytes) -> bytes:
    """A digest that recognises the same features."""
    return blake2b(features, digest_size=DIGEST).digest()


def pack_sample(sample: Sample) -> bytes:
    """A sample as bytes.

    >>> sample = Sample(5, digest_of(b"1.5"), None, "rain", b"1.5")
    >>> unpack_sample(pack_sample(sample)) == sample
    True
    """
    texts = json.dumps([sample.label, sample.predicted]).encode()
    return _SAMPLE.pack(VERSION, sample.time, sample.digest, len(texts)) + texts + sample.features


def unpack_sample(content: bytes) -> Sample:
    """A sample from its bytes."""
    _check_version(content)
    with reading("a sample"):
        _, time, digest, n = _SAMPLE.unpack_from(content)
        label, predicted = json.loads(content[_SAMPLE.size : _SAMPLE.size + n])
        if not all(text is None or isinstance(text, str) for text in (label, predicted)):
            raise ValueError("its label is no text")
    return Sample(time, digest if any(digest) else b"", label, predicted, content[_SAMPLE.size + n :])


def time_of(content: bytes) -> int:
    """The time of a sample, or when a key was last seen: both begin alike."""
    _check_version(content)
    with reading("a time"):
        return int(_TIME.unpack_from(content)[1])


def pack_network(kept: Kept, time: int) -> bytes:
    """The network of a key, and when it was last seen, in microseconds."""
    counters = kept.n_judged, kept.judged, kept.seen, kept.inputs, kept.settings, len(kept.codes)
    return _NETWORK.pack(VERSION, time, *counters) + kept.codes.astype("<i8").tobytes() + _bytes(kept.state)


def unpack_network(content: bytes) -> tuple[Kept, int]:
    """The network of a key, not checked yet, and when it was last seen."""
    _check_version(content)
    with reading("a network"):
        _, time, *counters, n_codes = _NETWORK.unpack_from(content)
        start = _NETWORK.size + 8 * n_codes
        if not 0 <= n_codes <= len(content):
            raise ValueError("its number of classes is out of range")
        codes = np.frombuffer(content[_NETWORK.size : start], "<i8").astype(np.int64)
        return Kept(_words(content[start:]), codes, *counters), time


def pack_shared(header: dict[str, Any], network: Floats) -> bytes:
    """What the networks of a shard share."""
    text = json.dumps(header, allow_nan=False, default=plain).encode()
    return _SHARED.pack(VERSION, len(text)) + text + _bytes(network)


def unpack_shared(content: bytes) -> tuple[dict[str, Any], Floats]:
    """A header and a network, not checked yet."""
    _check_version(content)
    with reading("what networks share"):
        _, n = _SHARED.unpack_from(content)
        start = _SHARED.size + n
        header = json.loads(content[_SHARED.size : start], parse_constant=refuse)
        if not isinstance(header, dict):
            raise ValueError("its header is no object")
        return header, _words(content[start:])


def _bytes(words: Floats) -> bytes:
    return words.astype("<f8").tobytes()


def _words(content: bytes) -> Floats:
    words: Floats = np.frombuffer(content, "<f8").astype(np.float64)
    return words


def _check_version(content: bytes) -> None:
    if len(content) == 0:
        raise StateError("the checkpoint holds a state without a byte: it is damaged")
    if content[0] > VERSION:
        raise StateError(
            f"the checkpoint was written by a newer devdan (state of version {content[0]}, this one reads {VERSION}): "
            "upgrade devdan on the driver and on all workers"
        )
    if content[0] < 1:
        raise StateError(f"the checkpoint holds a state of version {content[0]}, which does not exist: it is damaged")
