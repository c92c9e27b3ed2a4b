"""What requests bring: parsed and checked here, before anything else sees it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Annotated, Any, TypeVar

import msgspec

from devdan.service.engine import LimitError, Limits
from devdan.service.logged import Settings, Value
from devdan.service.naming import LONGEST, InvalidError, check_texts, struct_of

Body = TypeVar("Body")

_LARGEST = 2**53  # integers that floats can tell apart
_NOT_READ = (msgspec.DecodeError, RecursionError, ValueError)
_STREAMS = 100  # whose columns are known to the reader of rows
_MOST_SECONDS = 100 * 365.25 * 86_400

Text = Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST)]
Given = (
    Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST)]
    | Annotated[int, msgspec.Meta(ge=-_LARGEST, le=_LARGEST)]
    | bool
)


class RowIn(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A row: features by column. Without an id, the service makes one."""

    features: dict[str, Value]
    id: Text | None = None
    key: Text | None = None


class RowsIn(msgspec.Struct, forbid_unknown_fields=True):
    """Rows to predict."""

    rows: list[RowIn]


class SampleIn(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A row that comes with its label."""

    features: dict[str, Value]
    label: Given
    id: Text | None = None
    key: Text | None = None


class SamplesIn(msgspec.Struct, forbid_unknown_fields=True):
    """Rows with their labels."""

    rows: list[SampleIn]


class LabelIn(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """The label of a row, by the row's id."""

    id: Text
    label: Given


class LabelsIn(msgspec.Struct, forbid_unknown_fields=True):
    """Labels of rows."""

    labels: list[LabelIn]


def parser(kind: type[Body]) -> msgspec.json.Decoder[Body]:
    """What turns a body of this kind into an object."""
    return msgspec.json.Decoder(kind)


ROWS, SAMPLES, LABELS = parser(RowsIn), parser(SamplesIn), parser(LabelsIn)


def parsed(decoder: msgspec.json.Decoder[Body], content: bytes) -> Body:
    """The body; raises a ``InvalidError`` that says where it is not valid."""
    try:
        return decoder.decode(content)
    except _NOT_READ as error:
        raise InvalidError(f"the body must be JSON as the documentation describes: {error}") from error


def parsed_rows(content: bytes, columns: Sequence[str] | None) -> list[RowIn]:
    """Rows to predict; where it can be had, their features are values in the order of the stream's columns.

    >>> [row.features for row in parsed_rows(b'{"rows": [{"features": {"y": 2, "x": 1}}]}', ["x", "y"])]
    [(1.0, 2.0)]
    >>> [row.features for row in parsed_rows(b'{"rows": [{"features": {"z": 2}}]}', ["x", "y"])]
    [{'z': 2.0}]
    """
    decoder = None if columns is None else _in_order(tuple(columns))
    if decoder is None:
        return parsed(ROWS, content).rows
    try:
        rows: list[Any] = decoder.decode(content).rows
    except _NOT_READ:  # a column that is not known, or worse: whoever knows more will tell
        return parsed(ROWS, content).rows
    for row in rows:
        row.features = msgspec.structs.astuple(row.features)
    return rows


@lru_cache(_STREAMS)
def _in_order(columns: tuple[str, ...]) -> msgspec.json.Decoder[Any] | None:
    """What reads rows of these columns, if there is something faster than dicts."""
    features = struct_of(columns, Value)
    if features is None:
        return None
    row: Any = msgspec.defstruct("RowOfColumns", [("features", features)], bases=(RowIn,), gc=False)
    return parser(msgspec.defstruct("RowsOfColumns", [("rows", list[row])], forbid_unknown_fields=True))


def check_rows(rows: Sequence[Any], keyed: bool, limits: Limits) -> None:
    """Rows with ids; those without get new ones."""
    check_number(rows, limits)
    widest = max(len(row.features) for row in rows)
    if widest > limits.columns:
        raise LimitError(f"a row may have {limits.columns} features, got {widest}")
    keys = [row.key for row in rows if row.key is not None]
    if len(keys) != (len(rows) if keyed else 0):
        raise InvalidError(
            "each row must have a key, since the stream was made with keyed"
            if keyed
            else "a row must not have a key, since the stream was not made with keyed"
        )
    check_texts(keys, "a key")
    check_texts([row.id for row in rows if row.id is not None], "an id")


def check_number(items: Sequence[Any], limits: Limits) -> None:
    """At least one, and not too many."""
    if not items:
        raise InvalidError("there must be at least one row or label, got none")
    if len(items) > limits.rows:
        raise LimitError(f"a request may have {limits.rows} rows or labels, got {len(items)}; send them in parts")


def check_labels(labels: Sequence[LabelIn], limits: Limits) -> None:
    """Labels of rows."""
    check_number(labels, limits)
    check_texts([one.id for one in labels], "an id")
    check_texts([one.label for one in labels if isinstance(one.label, str)], "a label")


def check_settings(settings: Settings) -> None:
    """Raise an error that names what is not valid in the settings of a stream."""
    if not 0 < settings.wait <= _MOST_SECONDS:
        raise InvalidError(f"wait must be seconds, greater than 0 and at most a hundred years, got {settings.wait}")
    if not 1 <= settings.max_waiting <= 100_000_000:
        raise InvalidError(f"max_waiting must be from 1 to 100,000,000, got {settings.max_waiting}")
    if settings.keep is not None and not 0 <= settings.keep <= _MOST_SECONDS:
        raise InvalidError(f"keep must be seconds, from 0 to a hundred years, or null; got {settings.keep}")
