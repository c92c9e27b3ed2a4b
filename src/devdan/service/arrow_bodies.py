"""Rows and labels as batches of Arrow: the same as in JSON, a column for each feature."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
import numpy as np
import pyarrow as pa

from devdan.encoding.rows import Numbers, Times
from devdan.encoding.tables import arrow_column
from devdan.service.bodies import LabelIn, RowIn, check_number
from devdan.service.engine import LimitError, Limits
from devdan.service.logged import Value
from devdan.service.naming import InvalidError

Body = TypeVar("Body")

_STREAM, _FILE = b"\xff\xff\xff\xff", b"ARROW1"  # how the two formats begin; JSON never does


def is_arrow(content: bytes) -> bool:
    """Whether a body is of Arrow's, as a stream of batches or as a file.

    >>> is_arrow(b'{"rows": []}')
    False
    """
    return content.startswith((_STREAM, _FILE))


def rows_of(content: bytes, limits: Limits) -> list[RowIn]:
    """Rows: the columns ``id`` and ``key``, if they are there, and one for each feature."""
    table = _table(content, limits)
    names = [name for name in table.column_names if name not in ("id", "key")]
    if len(names) > limits.columns:  # before all of them are converted
        raise LimitError(f"a row may have {limits.columns} features, got {len(names)}")
    values = [_values(table[name], name) for name in names]
    size = sum(len(value) for column in values for value in column if isinstance(value, str))
    if size > limits.body:  # a text that many rows refer to is sent once, and kept for each
        raise LimitError(f"the texts of all rows may have {limits.body} characters, got {size}")
    rows: list[dict[str, Any]] = [{"features": {}} for _ in range(len(table))]
    for name, column in zip(names, values, strict=True):
        for row, value in zip(rows, column, strict=True):
            row["features"][name] = value
    return _checked(rows, table, ("id", "key"), list[RowIn])


def labels_of(content: bytes, limits: Limits) -> list[LabelIn]:
    """Labels: the columns ``id`` and ``label``."""
    table = _table(content, limits)
    if sorted(table.column_names) != ["id", "label"]:
        raise InvalidError(f"labels must have the columns id and label, got {', '.join(table.column_names)}")
    return _checked([{} for _ in range(len(table))], table, ("id", "label"), list[LabelIn])


def _table(content: bytes, limits: Limits) -> Any:
    try:
        opened = pa.ipc.open_file(content) if content.startswith(_FILE) else pa.ipc.open_stream(content)
        table = opened.read_all()
        table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InvalidError(f"the body begins as Arrow IPC does, but cannot be read: {error}") from error
    if len(set(table.column_names)) < len(table.column_names):
        raise InvalidError("columns must have different names")
    check_number(range(len(table)), limits)
    return table


def _values(column: Any, name: str) -> list[Value]:
    """The values as the log has them: times are texts, NaN is missing."""
    try:
        read = arrow_column(column, name)
    except ValueError as error:
        raise InvalidError(str(error)) from error
    if isinstance(read, Numbers):
        if np.isinf(read.values).any():
            raise InvalidError(f"the column {name!r} has infinity; a missing value is null, all others must be finite")
        if read.flags:
            return [None if value is None else bool(value) for value in read.objects()]
    if isinstance(read, Times) and read.clock:
        return [None if value is None else value[len("1970-01-01T") :] for value in read.objects()]
    return read.objects()


def _checked(rows: list[dict[str, Any]], table: Any, names: tuple[str, ...], kind: type[Body]) -> Body:
    """Rows with some of the columns as they are."""
    for name in names:
        if name in table.column_names:
            for row, value in zip(rows, table[name].to_pylist(), strict=True):
                row[name] = value
    try:
        return msgspec.convert(rows, kind)
    except msgspec.ValidationError as error:
        raise InvalidError(f"rows or labels must be as the documentation describes: {error}") from error
