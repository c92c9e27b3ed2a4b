"""What is in the log: records that are written once and never changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

Value = float | str | bool | None  # of a feature; None is missing
Label = int | str | bool
Features = dict[str, Value] | tuple[Value, ...]  # by column, or in the order of the stream's columns

WAIT = 30 * 86_400.0  # seconds
MAX_WAITING = 100_000


class Settings(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, frozen=True):
    """A stream: the model and its options, what rows look like, how long they wait for labels, and how many may.

    ``columns`` are those of the first row unless they are given. ``keep`` is for how many seconds the log holds what
    is no longer needed; by default, for ever, so that everything can be replayed.
    """

    model: str = "DEVDAN"
    options: dict[str, Any] = {}
    columns: list[str] | None = None
    keyed: bool = False
    wait: float = WAIT
    max_waiting: int = MAX_WAITING
    keep: float | None = None


class Created(msgspec.Struct, tag="created", frozen=True):
    """A stream begins."""

    settings: Settings


class Columns(msgspec.Struct, tag="columns", frozen=True):
    """The columns of a stream, in the order in which rows have their values."""

    names: list[str]


class Rows(msgspec.Struct, tag="rows", frozen=True):
    """Rows that were committed together: a portion that the model observes.

    ``first`` is the number of the first row in the stream. ``predicted`` and ``confidence`` are what was answered,
    None for rows that came with their labels or before there was a prediction.
    """

    first: int
    ids: list[str]
    values: Sequence[Sequence[Value]]
    predicted: list[Label | None]
    confidence: list[float | None]
    keys: list[str] | None = None


class Labels(msgspec.Struct, tag="labels", frozen=True):
    """Labels that were committed together: a portion that the model is taught.

    ``rows`` says for each of them which record holds its row, and the row's place in it.
    """

    rows: list[tuple[int, int]]
    labels: list[Label]


class Early(msgspec.Struct, tag="early", frozen=True):
    """Labels that came before their rows."""

    ids: list[str]
    labels: list[Label]


class Expired(msgspec.Struct, tag="expired", frozen=True):
    """Rows, or early labels, that have waited for too long or are too many: all up to a record."""

    up_to: int
    n_rows: int
    n_labels: int


Body = Created | Columns | Rows | Labels | Early | Expired


class Record(msgspec.Struct, frozen=True):
    """An entry of the log: its number, its stream, when it was written (seconds since 1970), and what it says."""

    seq: int
    stream: int
    at: float
    body: Body


_DECODER = msgspec.msgpack.Decoder(Body)
encoded = msgspec.msgpack.Encoder().encode


def decoded(seq: int, stream: int, at: float, content: bytes) -> Record:
    """A record from what the database holds."""
    return Record(seq, stream, at, _DECODER.decode(content))
