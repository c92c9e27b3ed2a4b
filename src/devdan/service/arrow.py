"""Rows and labels as Arrow IPC: what they unpack to is checked before it is unpacked, and values before they are read.

A few bytes can stand for many: a compressed buffer, a dictionary or a view repeats what it has. So a message is bounded
three times, by the bytes of its buffers when unpacked, by its values, and by the characters of its texts.
"""

from __future__ import annotations

import struct
from typing import Any, TypeVar

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from devdan.arrays import Integers
from devdan.encoding.rows import Column, Numbers, Times
from devdan.encoding.tables import arrow_column, is_text_type
from devdan.service.bodies import LabelIn, LabelsIn, RowIn, check_number
from devdan.service.schema import InvalidError, LimitError, Limits, Value

Body = TypeVar("Body")

_STREAM, _FILE = b"\xff\xff\xff\xff", b"ARROW1\0\0"  # how the two formats begin; JSON never does
_NO_FEATURES = ("id", "key")
_LEAST = 4  # bytes that a value takes in JSON, with its name: an Arrow message has no more values than fit there
_UNREADABLE = (pa.ArrowException, OSError, ValueError, OverflowError)


def is_arrow(content: bytes) -> bool:
    """Whether a body is Arrow IPC, as a stream of batches or as a file.

    >>> is_arrow(b'{"rows": []}')
    False
    """
    return content.startswith((_STREAM, _FILE))


def arrow_rows(content: bytes, limits: Limits) -> list[RowIn]:
    """Rows from a table: the columns ``id`` and ``key``, if there, and one for each feature."""
    table = _table(content, limits)
    names = [name for name in table.column_names if name not in _NO_FEATURES]
    values = [_values(table[name], name) for name in names]
    spelled = (len(value) for column in values for value in column if isinstance(value, str))
    _check_characters(sum(spelled), limits)  # also of numbers and times that became texts
    rows: list[dict[str, Any]] = [{"features": {}} for _ in range(len(table))]
    for name, column in zip(names, values, strict=True):
        for row, value in zip(rows, column, strict=True):
            row["features"][name] = value
    return _converted(rows, table, ("id", "key"), list[RowIn])


def arrow_labels(content: bytes, limits: Limits) -> LabelsIn:
    """Labels from a table: the columns ``id`` and ``label``; ``replaces`` may be ``true`` in the schema's metadata."""
    table = _table(content, limits)
    if sorted(table.column_names) != ["id", "label"]:
        raise InvalidError(f"labels must have the columns id and label, got {', '.join(table.column_names)}")
    replaces = (table.schema.metadata or {}).get(b"replaces", b"false")
    if replaces not in (b"true", b"false"):
        raise InvalidError(f"replaces must be true or false in the schema's metadata, got {replaces[:20]!r}")
    labels = _converted([{} for _ in range(len(table))], table, ("id", "label"), list[LabelIn])
    return LabelsIn(labels, replaces == b"true")


def _table(content: bytes, limits: Limits) -> Any:
    batches = content[len(_FILE) :] if content.startswith(_FILE) else content  # what a file has at its end is not used
    try:
        _check_unpacked(batches, limits)
        opened = pa.ipc.open_stream(batches)
        n_features = len(set(opened.schema.names) - set(_NO_FEATURES))
        if n_features > limits.columns:
            raise LimitError(f"a row may have {limits.columns} features, got {n_features}")
        table = opened.read_all()
        table.validate(full=True)
    except (struct.error, *_UNREADABLE) as error:
        if isinstance(error, (LimitError, InvalidError)):
            raise
        raise InvalidError(f"the body begins as Arrow IPC does, but cannot be read: {error}") from error
    if len(set(table.column_names)) < len(table.column_names):
        raise InvalidError("columns must have different names")
    check_number(range(len(table)), limits)
    _check_values(table, limits)
    return table


# --- Sizes -----------------------------------------------------------------------------------------------------------

_BATCH, _DICTIONARY = 3, 2  # types of messages that have buffers
_HEADER_TYPE, _HEADER, _DICTIONARY_BATCH = 1, 2, 1  # fields of a message, and of the message of a dictionary
_LENGTH, _BUFFERS, _COMPRESSION = 0, 2, 3  # of a batch
_EARLIER = b"ARROW:experimental_compression"  # how Arrow 0.17 said it, which later versions still read


def _check_unpacked(content: bytes, limits: Limits) -> None:
    """Raise an error if the batches have too many rows or bytes, by what they say before they are unpacked.

    A compressed buffer begins with its size. Arrow takes it at its word, and what it says wrongly is an error there.
    """
    n_rows = size = 0
    for message in pa.ipc.MessageReader.open_stream(pa.BufferReader(content)):
        data = message.metadata.to_pybytes()
        root = _place_at(data, 0)
        (kind,) = _unpack("<B", data, _field(data, root, _HEADER_TYPE))
        if kind not in (_BATCH, _DICTIONARY):
            continue
        batch = _place_at(data, _field(data, root, _HEADER))
        if kind == _DICTIONARY:
            batch = _place_at(data, _field(data, batch, _DICTIONARY_BATCH))
        elif length := _field(data, batch, _LENGTH):
            n_rows += _unpack("<q", data, length)[0]
            check_number(range(max(n_rows, 1)), limits)
        if _field(data, batch, _COMPRESSION) or _EARLIER in data:
            size += _unpacked_size(data, _place_at(data, _field(data, batch, _BUFFERS)), message.body)
        if size > limits.body:
            raise LimitError(f"a body may have {limits.body} bytes when it is unpacked, got {size}")


def _unpacked_size(data: bytes, buffers: int, body: Any) -> int:
    """What the compressed buffers of a batch take once they are unpacked."""
    size, packed = 0, memoryview(body)
    (n_buffers,) = _unpack("<I", data, buffers)
    for k in range(n_buffers):
        place, length = _unpack("<qq", data, buffers + 4 + 16 * k)
        if length >= 8:
            size += max(_unpack("<q", packed, place)[0], 0)  # -1: it is not compressed
    return size


def _field(data: bytes, table: int, number: int) -> int:
    """Where a field of a table in a flatbuffer is, or 0 if it has its default."""
    places = table - _unpack("<i", data, table)[0]
    (size,) = _unpack("<H", data, places)
    entry = 4 + 2 * number
    place: int = _unpack("<H", data, places + entry)[0] if entry < size else 0
    return table + place if place else 0


def _place_at(data: bytes, place: int) -> int:
    """Where something is that a flatbuffer refers to."""
    return place + int(_unpack("<I", data, place)[0])


def _unpack(form: str, data: Any, place: int) -> tuple[Any, ...]:
    if place < 0:
        raise struct.error(f"it refers to byte {place}")
    return struct.unpack_from(form, data, place)


def _check_values(table: Any, limits: Limits) -> None:
    """Raise an error if there are too many values, or too many characters in them, before they become objects."""
    chunks = [chunk for column in table.columns for chunk in column.chunks]
    n_values = max(len(table) * table.num_columns, sum(len(_levels(chunk)[-1]) for chunk in chunks))
    most = limits.body // _LEAST
    if n_values > most:
        raise LimitError(f"a body may have {most} values, got {n_values}; send them in parts")
    _check_characters(sum(map(_characters, chunks)), limits)


def _levels(values: Any) -> list[Any]:
    """An array and, if it is a dictionary, the values that it refers to, of which there may be more than rows."""
    levels = [values]
    while pa.types.is_dictionary(levels[-1].type):
        levels.append(levels[-1].dictionary)
    return levels


def _characters(values: Any) -> int:
    """How many bytes the texts of an array have, each counted as often as it is there: in rows, or in a dictionary."""
    return max(int(_lengths(level).sum()) for level in _levels(values))


def _lengths(values: Any) -> Integers:
    """How many bytes each text of an array has; what is no text has none."""
    kind = values.type
    if pa.types.is_dictionary(kind):  # one text for many rows, but each row keeps it
        places = pc.fill_null(pc.cast(values.indices, pa.int64()), -1).to_numpy(zero_copy_only=False)
        return np.asarray(np.append(_lengths(values.dictionary), 0)[places], np.int64)
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):  # many may be the same bytes
        words = np.frombuffer(values.buffers()[1], "<i4") if len(values) > 0 else np.empty(0, np.int32)
        lengths = words[4 * values.offset : 4 * (values.offset + len(values)) : 4]
        return np.asarray(np.maximum(lengths, 0), np.int64)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return np.asarray(pc.fill_null(pc.binary_length(values), 0).to_numpy(zero_copy_only=False), np.int64)
    return np.zeros(len(values), np.int64)


def _check_characters(size: int, limits: Limits) -> None:
    if size > limits.body:
        raise LimitError(f"the texts of all rows may have {limits.body} characters, got {size}")


# --- Values ----------------------------------------------------------------------------------------------------------


def _values(column: Any, name: str) -> list[Value]:
    """The values as JSON would have them: texts as they are, times are texts, NaN is missing."""
    kind = column.type
    try:
        if is_text_type(kind.value_type if pa.types.is_dictionary(kind) else kind):
            texts: list[Value] = column.to_pylist()
            return texts
        return _as_json(arrow_column(column, name), name)
    except InvalidError:
        raise
    except _UNREADABLE as error:
        raise InvalidError(f"the column {name!r} cannot be read: {error}") from error


def _as_json(read: Column, name: str) -> list[Value]:
    if isinstance(read, Numbers):
        if np.isinf(read.values).any():
            raise InvalidError(f"the column {name!r} has infinity; a missing value is null, all others must be finite")
        if read.flags:
            return [None if value is None else bool(value) for value in read.objects()]
    if isinstance(read, Times) and read.clock:
        return [None if value is None else value[len("1970-01-01T") :] for value in read.objects()]
    return read.objects()


def _is_single(kind: Any) -> bool:
    """Whether each value is one text, number, flag or time, rather than a list, or a run that repeats what it has."""
    while pa.types.is_dictionary(kind):
        kind = kind.value_type
    return is_text_type(kind) or pa.types.is_primitive(kind) or pa.types.is_null(kind)


def _converted(rows: list[dict[str, Any]], table: Any, names: tuple[str, ...], kind: type[Body]) -> Body:
    """Rows with these columns of the table added, as bodies of JSON have them."""
    for name in names:
        if name in table.column_names:
            column = table[name]
            if not _is_single(column.type):
                raise InvalidError(f"the column {name!r} holds {column.type}, not texts, whole numbers or flags")
            try:
                values = column.to_pylist()
            except _UNREADABLE as error:  # such as a time that Python cannot tell
                raise InvalidError(f"the column {name!r} cannot be read: {error}") from error
            for row, value in zip(rows, values, strict=True):
                row[name] = value
    try:
        return msgspec.convert(rows, kind)
    except msgspec.ValidationError as error:
        raise InvalidError(f"rows or labels must be as the documentation describes: {error}") from error
