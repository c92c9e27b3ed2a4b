"""What requests bring: parsed and checked here, before anything else sees it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, TypeVar

import msgspec

from devdan.service.engine import LimitError, Limits
from devdan.service.logged import Label, Settings, Value
from devdan.service.naming import LONGEST, InvalidError, check_text

Body = TypeVar("Body")

_LARGEST = 2**53  # integers that floats can tell apart
_MOST_SECONDS = 100 * 365.25 * 86_400

Text = Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST)]
Given = (
    Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST)]
    | Annotated[int, msgspec.Meta(ge=-_LARGEST, le=_LARGEST)]
    | bool
)


class RowIn(msgspec.Struct, forbid_unknown_fields=True):
    """A row: features by column. Without an id, the service makes one."""

    features: dict[str, Value]
    id: Text | None = None
    key: Text | None = None


class RowsIn(msgspec.Struct, forbid_unknown_fields=True):
    """Rows to predict."""

    rows: list[RowIn]


class SampleIn(msgspec.Struct, forbid_unknown_fields=True):
    """A row that comes with its label."""

    features: dict[str, Value]
    label: Given
    id: Text | None = None
    key: Text | None = None


class SamplesIn(msgspec.Struct, forbid_unknown_fields=True):
    """Rows with their labels."""

    rows: list[SampleIn]


class LabelIn(msgspec.Struct, forbid_unknown_fields=True):
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
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        raise InvalidError(f"the body must be JSON as the documentation describes: {error}") from error


def check_rows(rows: Sequence[Any], keyed: bool, limits: Limits) -> None:
    """Rows with ids; those without get new ones."""
    check_number(rows, limits)
    for row in rows:
        if row.id is not None:
            check_text(row.id, "an id")
        if len(row.features) > limits.columns:
            raise LimitError(f"a row may have {limits.columns} features, got {len(row.features)}")
        if (row.key is None) == keyed:
            raise InvalidError(
                "each row must have a key, since the stream was made with keyed"
                if keyed
                else "a row must not have a key, since the stream was not made with keyed"
            )
        if row.key is not None:
            check_text(row.key, "a key")


def check_number(items: Sequence[Any], limits: Limits) -> None:
    """At least one, and not too many."""
    if not items:
        raise InvalidError("there must be at least one row or label, got none")
    if len(items) > limits.rows:
        raise LimitError(f"a request may have {limits.rows} rows or labels, got {len(items)}; send them in parts")


def check_labels(labels: Sequence[LabelIn], limits: Limits) -> None:
    """Labels of rows."""
    check_number(labels, limits)
    for one in labels:
        check_text(one.id, "an id")
        check_label(one.label)


def check_label(label: Label) -> None:
    """Raise an error if a label has characters that nobody sees."""
    if isinstance(label, str):
        check_text(label, "a label")


def check_settings(settings: Settings) -> None:
    """Raise an error that names what is not valid in the settings of a stream."""
    if not 0 < settings.wait <= _MOST_SECONDS:
        raise InvalidError(f"wait must be seconds, greater than 0 and at most a hundred years, got {settings.wait}")
    if not 1 <= settings.max_waiting <= 100_000_000:
        raise InvalidError(f"max_waiting must be from 1 to 100,000,000, got {settings.max_waiting}")
    if settings.keep is not None and not 0 <= settings.keep <= _MOST_SECONDS:
        raise InvalidError(f"keep must be seconds, from 0 to a hundred years, or null; got {settings.keep}")
