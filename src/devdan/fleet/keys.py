"""The keys of a fleet: text, numbers, flags, or tuples of text and numbers; each has a text of its own, and a seed."""

from __future__ import annotations

import json
import reprlib
from collections.abc import Sequence
from hashlib import blake2b
from numbers import Integral, Real
from typing import Any

import numpy as np

from devdan.encoding.rows import Numbers
from devdan.encoding.tables import are_dicts, is_table, rows_of

Key = str | int | float | bool | tuple[str | int | float, ...]

TEXT, NUMBER, FLAG, TUPLE = "text", "numbers", "flags", "tuples"  # kinds, of which a fleet's keys have one
_KINDS: dict[type, str] = {str: TEXT, int: NUMBER, float: NUMBER, bool: FLAG, tuple: TUPLE}
_LARGEST = 2**63
_encode = json.JSONEncoder(separators=(",", ":")).encode


def checked(keys: Any, n_samples: int) -> list[Key]:
    """One key for each row; raises an error that names the first that is none.

    >>> checked(np.array([3.0, 5.0]), 2), checked([("shop", 7)], 1)
    ([3, 5], [('shop', 7)])
    """
    listed = _listed(keys)
    if len(listed) != n_samples:
        raise ValueError(f"keys must have one key for each row of X, got {len(listed)} keys for {n_samples} rows")
    types = set(map(type, listed))
    if types not in ({str}, {int}):
        listed = [_plain(key, row) for row, key in enumerate(listed)]
        types = set(map(type, listed))
    elif types == {int} and not -_LARGEST <= min(listed) <= max(listed) < _LARGEST:
        raise ValueError(f"keys must be whole numbers of at most 64 bits, got {max(listed, key=abs)}")
    if len({_KINDS[kind] for kind in types}) > 1:
        first, other = listed[0], next(key for key in listed if kind_of(key) != kind_of(listed[0]))
        raise ValueError(_mixed(kind_of(first), first, other))
    return listed


def split(keys: Any, X: Any) -> tuple[Any, Any]:
    """Keys and rows; keys that are given as the name of a column of a table are taken out of it.

    >>> keys, rows = split("shop", [{"shop": "Bonn", "price": 3.0}, {"shop": "Ulm", "price": 5.0}])
    >>> keys, rows.names
    (['Bonn', 'Ulm'], ('price',))
    """
    if not isinstance(keys, str) or not (is_table(X) or are_dicts(X)):
        return keys, X
    rows = rows_of(X)
    if keys not in rows.names:
        raise ValueError(f"X must have the column {keys!r} with the keys, got {', '.join(map(repr, rows.names[:20]))}")
    place = rows.names.index(keys)
    column = rows.columns()[place]
    found = column.objects()
    if isinstance(column, Numbers) and column.flags:
        found = list(map(bool, found))
    found = [None if missing else key for key, missing in zip(found, column.missing.tolist(), strict=True)]
    return found, rows.select([other for other in range(len(rows.names)) if other != place])


def check_kind(kind: str, example: Key, keys: Sequence[Key]) -> None:
    """Raise a ``ValueError`` unless the keys, which are all alike, are of the fleet's kind."""
    if keys and kind_of(keys[0]) != kind:
        raise ValueError(_mixed(kind, example, keys[0]))


def kind_of(key: Key) -> str:
    return _KINDS[type(key)]


def _mixed(kind: str, example: Key, other: Key) -> str:
    return (
        f"the keys of a fleet must be of one kind, here {kind} such as {example!r}, got {other!r}; convert them, for "
        "instance to text"
    )


def _listed(keys: Any) -> list[Any]:
    """The keys as a list, whatever they come in."""
    if type(keys) is list:
        return keys
    if isinstance(keys, np.ndarray) and keys.ndim != 1:
        raise ValueError(f"keys must have one axis, got an array of shape {keys.shape}")
    for way in ("to_pylist", "tolist", "to_list"):  # Arrow, NumPy and pandas, Polars
        if hasattr(keys, way):
            listed = getattr(keys, way)()
            if isinstance(listed, list):
                return listed
    if isinstance(keys, tuple):
        return list(keys)
    raise TypeError(
        f"keys must be a list, an array or a column with one key for each row, or the name of a column of a table X, "
        f"got {reprlib.repr(keys)} of type {type(keys).__name__}; that of a single row goes into a list, too"
    )


def _plain(key: Any, row: int) -> Key:
    """The key as Python has it: a number that is whole is an integer, so that 1.0 and 1 are the same key."""
    if isinstance(key, str):
        return str(key)
    if isinstance(key, (bool, np.bool_)):
        return bool(key)
    if isinstance(key, tuple) and key and not any(isinstance(part, (tuple, bool, np.bool_)) for part in key):
        return tuple(_plain(part, row) for part in key)  # type: ignore[misc]
    if isinstance(key, Integral):
        if not -_LARGEST <= int(key) < _LARGEST:
            raise ValueError(f"keys must be whole numbers of at most 64 bits, got {key} in row {row + 1} of X")
        return int(key)
    if isinstance(key, Real):
        number = float(key)
        if number - number != 0.0:
            raise ValueError(f"keys must not be missing or infinite, got {key!r} in row {row + 1} of X")
        return _plain(int(number), row) if number.is_integer() else number
    if key is None or type(key).__name__ in ("NAType", "NaTType"):
        raise ValueError(f"keys must not be missing, got {key!r} in row {row + 1} of X")
    raise TypeError(
        f"a key must be text, a number, a flag, or a tuple of text and numbers, got {key!r} in row {row + 1} of X; "
        "convert it, for instance to text"
    )


# --- A key's text and seed ---------------------------------------------------------------------------------------


def text_of(key: Key) -> str:
    """The key as JSON: no two keys have the same, and people can read it.

    >>> text_of("sensor 7"), text_of(7), text_of(("shop", 7))
    ('"sensor 7"', '7', '["shop",7]')
    """
    return _encode(key)


def of_text(text: str) -> Key:
    """The key that has this text; raises a ``ValueError`` if none has."""
    try:
        value = json.loads(text)
        key = _plain(tuple(value) if isinstance(value, list) else value, 0)
    except (TypeError, RecursionError) as error:
        raise ValueError(f"{text[:100]!r} is no key") from error
    if text_of(key) != text:
        raise ValueError(f"{text[:100]!r} is no key")
    return key


def seed_of(key: Key, seed: int) -> int:
    """The key's own seed, drawn from the fleet's."""
    drawn = blake2b(text_of(key).encode(), digest_size=8, key=seed.to_bytes(8, "little")).digest()
    return int.from_bytes(drawn, "little") >> 1
