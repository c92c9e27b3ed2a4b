"""Names and ids that people give: what they may look like, so that they can go anywhere."""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import msgspec

LONGEST = 200  # characters of an id, a key, a label or the name of a column
_KNOWN, _FEW = 200, 50  # structs that are kept, and names of one
_ESCAPED = re.compile(r'["\\\x00-\x1f]')
_CONTROL = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


class InvalidError(ValueError):
    """Something in a request is not what it must be; the message says what."""


def check_name(name: str) -> str:
    """The name of a stream."""
    if not _NAME.fullmatch(name):
        raise InvalidError(
            "the name of a stream must have up to 64 letters, digits, dots, dashes or underscores, and begin with a "
            f"letter or digit; got {name[:100]!r}"
        )
    return name


def check_text(text: str, what: str) -> None:
    """Raise an error if an id, a key, a label or the name of a column has characters that nobody sees."""
    if _CONTROL.search(text):
        raise InvalidError(f"{what} must not have control characters, got {text!r}")


def check_texts(texts: Sequence[str], what: str) -> None:
    """The same for many of them."""
    if _CONTROL.search("".join(texts)):
        for text in texts:
            check_text(text, what)


def check_columns(names: Sequence[str]) -> None:
    """Raise an error unless these can be columns."""
    if not names or len(set(names)) < len(names):
        raise InvalidError("columns must be different names, at least one")
    for name in names:
        if not 1 <= len(name) <= LONGEST:
            raise InvalidError(f"the name of a column must have 1 to {LONGEST} characters, got {len(name)}")
    check_texts(names, "the name of a column")


@lru_cache(_KNOWN)
def struct_of(names: tuple[str, ...], kind: Any) -> Any:
    """A struct with a value of this kind, or None, for each name; None where names are such that JSON escapes them.

    Structs take half the time of dicts. They look for names one after the other, though, so in JSON that has many in
    another order than theirs, that takes long.
    """
    if len(names) > _FEW or any(map(_ESCAPED.search, names)):
        return None
    fields = [f"_{place}" for place in range(len(names))]
    spelled = dict(zip(fields, names, strict=True))
    return msgspec.defstruct(
        "Named", [(field, kind | None, None) for field in fields], rename=spelled, forbid_unknown_fields=True, gc=False
    )


def new_id() -> str:
    """An id that nobody has used."""
    return secrets.token_hex(12)
