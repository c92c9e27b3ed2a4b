"""What the user says about how a source is read: the same options at every door."""

from __future__ import annotations

import codecs
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any

DECIMALS = (".", ",")


@dataclass(frozen=True)
class Reading:
    r"""How a source is read. What is not said is found from the source itself.

    ``target`` is the column with the labels, by name or position (0 is the first, -1 the last); ``drop`` leaves columns
    out. ``header``: whether a text starts with the names of its columns; ``sep`` separates its cells; ``encoding`` is
    that of its characters; ``decimal`` is the decimal sign of its numbers. ``nominal``, ``numeric`` and ``dates`` are
    columns of which the user says what they are; those of categories and dates stay as they are written, as do those
    that ``as_text`` names: 007 is not 7 there.

    >>> Reading(target="label", sep="\\t", nominal=["zip"]).as_keywords()
    {'target': 'label', 'sep': '\t', 'nominal': ('zip',)}
    """

    target: str | int | None = None
    drop: tuple[str | int, ...] = ()
    header: bool | None = None
    sep: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    nominal: tuple[str, ...] = ()
    numeric: tuple[str, ...] = ()
    dates: tuple[str, ...] = ()
    as_text: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("drop", "nominal", "numeric", "dates", "as_text"):
            given: Iterable[Any] = getattr(self, name)
            if isinstance(given, str):
                raise ValueError(f"{name} must be a list of columns, got the text {given!r}; write [{given!r}]")
            object.__setattr__(self, name, tuple(given or ()))
        if self.sep == r"\t":  # as a shell passes it
            object.__setattr__(self, "sep", "\t")
        if self.sep is not None and (len(self.sep) != 1 or not self.sep.isascii() or self.sep in '"\r\n'):
            raise ValueError(f"sep must be one ASCII character, such as ';', '|' or a tab, got {self.sep!r}")
        if self.decimal not in (None, *DECIMALS):
            raise ValueError(f"decimal must be '.' or ',', got {self.decimal!r}")
        if self.sep is not None and self.sep == self.decimal:
            raise ValueError(f"sep and decimal must differ, got {self.sep!r} for both")
        if self.encoding is not None:
            _check_encoding(self.encoding)

    @property
    def as_written(self) -> frozenset[str]:
        """The columns whose texts are not read as numbers."""
        return frozenset((*self.nominal, *self.dates, *self.as_text))

    def with_text(self, names: Iterable[str]) -> Reading:
        """The same, with further columns that stay as they are written, such as the keys of a fleet."""
        return replace(self, as_text=(*self.as_text, *names))

    def as_keywords(self) -> dict[str, Any]:
        """What is said, as keywords for :func:`~devdan.streams.open_stream`."""
        return {each.name: value for each in fields(self) if (value := getattr(self, each.name)) not in (None, ())}


AS_FOUND = Reading()  # nothing is said


def _check_encoding(name: str) -> None:
    try:
        is_of_text = codecs.lookup(name)._is_text_encoding
    except LookupError:
        is_of_text = False
    if not is_of_text:
        raise ValueError(f"encoding must be one that Python knows, such as utf-8, utf-16 or latin-1, got {name!r}")
