"""What requests and messages bring as JSON: parsed and checked here, before anything else sees it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Annotated, Any, TypeVar

import msgspec

from devdan.service.schema import (
    LONGEST,
    LONGEST_VALUE,
    Features,
    InvalidError,
    LimitError,
    Limits,
    StreamSettings,
    check_texts,
)

Body = TypeVar("Body")

_LARGEST = 2**53  # integers that floats can tell apart
_UNREADABLE = (msgspec.DecodeError, RecursionError, ValueError)
_STREAMS = 100  # whose columns are known to the reader of rows
_STRUCTS, _FIELDS = 200, 50  # structs that are cached, and names of one
_ESCAPED = re.compile(r'["\\\x00-\x1f]')

Text = Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST)]
Feature = float | Annotated[str, msgspec.Meta(max_length=LONGEST_VALUE)] | bool | None
LabelValue = Text | Annotated[int, msgspec.Meta(ge=-_LARGEST, le=_LARGEST)] | bool


class RowIn(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A row: features by column. Without an id, the service makes one."""

    features: dict[str, Feature]
    id: Text | None = None
    key: Text | None = None


class RowsIn(msgspec.Struct, forbid_unknown_fields=True):
    """Rows to predict."""

    rows: list[RowIn]


class SampleIn(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A row with its label."""

    features: dict[str, Feature]
    label: LabelValue
    id: Text | None = None
    key: Text | None = None


class SamplesIn(msgspec.Struct, forbid_unknown_fields=True):
    """Rows with their labels."""

    rows: list[SampleIn]


class LabelIn(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """The label of a row, by the row's id."""

    id: Text
    label: LabelValue


class LabelsIn(msgspec.Struct, forbid_unknown_fields=True):
    """Labels of rows; with ``replaces`` they correct those that came before."""

    labels: list[LabelIn]
    replaces: bool = False


def parser(kind: type[Body]) -> msgspec.json.Decoder[Body]:
    """A decoder of JSON for this kind of body."""
    return msgspec.json.Decoder(kind)


ROWS, SAMPLES, LABELS = parser(RowsIn), parser(SamplesIn), parser(LabelsIn)
SETTINGS = parser(StreamSettings)


def parsed(decoder: msgspec.json.Decoder[Body], content: bytes) -> Body:
    """The body; raises an ``InvalidError`` that says where it is not valid."""
    try:
        return decoder.decode(content)
    except _UNREADABLE as error:
        raise InvalidError(f"the body must be JSON as the documentation describes: {error}") from error


# --- Rows straight into the order of the columns ---------------------------------------------------------------------


def parsed_rows(content: bytes, columns: Sequence[str] | None) -> list[RowIn]:
    """Rows to predict; if possible, their features are values in the order of the stream's columns.

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
    except _UNREADABLE:  # an unknown column, or worse: the general decoder says which
        return parsed(ROWS, content).rows
    for row in rows:
        row.features = msgspec.structs.astuple(row.features)
    return rows


@lru_cache(_STREAMS)
def _in_order(columns: tuple[str, ...]) -> msgspec.json.Decoder[Any] | None:
    """A decoder for rows of these columns, where one is faster than dicts."""
    features = struct_of(columns, Feature)
    if features is None:
        return None
    row: Any = msgspec.defstruct("RowOfColumns", [("features", features)], bases=(RowIn,), gc=False)
    return parser(msgspec.defstruct("RowsOfColumns", [("rows", list[row])], forbid_unknown_fields=True))


@lru_cache(_STRUCTS)
def struct_of(names: tuple[str, ...], kind: Any) -> Any:
    """A struct with a value of this kind, or None, for each name; None if JSON escapes one of the names.

    Structs take half the time of dicts. But they look for names one after the other, so many names in another order
    than theirs take long.
    """
    if len(names) > _FIELDS or any(map(_ESCAPED.search, names)):
        return None
    fields = [f"_{place}" for place in range(len(names))]
    spelled = dict(zip(fields, names, strict=True))
    return msgspec.defstruct(
        "Named", [(field, kind | None, None) for field in fields], rename=spelled, forbid_unknown_fields=True, gc=False
    )


# --- Checks ----------------------------------------------------------------------------------------------------------


def check_rows(rows: Sequence[Any], keyed: bool, limits: Limits, size: int) -> None:
    """Raise an error unless the rows are within the limits, have valid ids, and keys exactly where they need them.

    ``size``: of the body, in bytes; no row has more characters.
    """
    check_number(rows, limits)
    widest = max(len(row.features) for row in rows)
    if widest > limits.columns:
        raise LimitError(f"a row may have {limits.columns} features, got {widest}")
    if size > limits.row:
        longest = max(_characters(row.features) for row in rows)
        if longest > limits.row:
            raise LimitError(f"the texts of a row may have {limits.row} characters together, got {longest}")
    keys = [row.key for row in rows if row.key is not None]
    if len(keys) != (len(rows) if keyed else 0):
        raise InvalidError(
            "each row must have a key, since the stream was made with keyed"
            if keyed
            else "a row must not have a key, since the stream was not made with keyed"
        )
    check_texts(keys, "a key")
    check_texts([row.id for row in rows if row.id is not None], "an id")


def _characters(features: Features) -> int:
    """How many characters the texts of a row have."""
    values = features if isinstance(features, tuple) else features.values()
    return sum(len(value) for value in values if isinstance(value, str))


def check_number(items: Sequence[Any], limits: Limits) -> None:
    """Raise an error unless there is at least one row or label, and no more than the limit."""
    if not items:
        raise InvalidError("there must be at least one row or label, got none")
    if len(items) > limits.rows:
        raise LimitError(f"a request may have {limits.rows} rows or labels, got {len(items)}; send them in parts")


def check_labels(labels: Sequence[LabelIn], limits: Limits) -> None:
    """Raise an error unless the labels are within the limits, and valid with their ids."""
    check_number(labels, limits)
    check_texts([one.id for one in labels], "an id")
    check_texts([one.label for one in labels if isinstance(one.label, str)], "a label")
