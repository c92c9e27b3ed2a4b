"""What histories are, in words: of which entity, over how long, and how a value compares with what is usual."""

from __future__ import annotations

import math
from collections.abc import Sequence

_UNITS = (("day", 86_400.0), ("hour", 3600.0), ("minute", 60.0), ("second", 1.0))
LAST = ", last "  # before how long a history goes back


def duration(seconds: float) -> str:
    """A time in the largest unit that it exceeds.

    >>> duration(604_800.0), duration(86_400.0), duration(90.0), duration(5.0)
    ('7 days', '1 day', '1.5 minutes', '5 seconds')
    """
    unit, size = next((each for each in _UNITS if abs(seconds) >= each[1]), _UNITS[-1])
    n = f"{seconds / size:.3g}"
    return f"{n} {unit}" if n == "1" else f"{n} {unit}s"


def span(horizon: float | None, unit: str) -> str:
    """How long a history goes back; ``unit`` is seconds, rows, or nothing that has a name.

    >>> span(604_800.0, "seconds"), span(30.0, "rows"), span(7.0, ""), span(None, "rows")
    (', last 7 days', ', last 30 rows', ', last 7', '')
    """
    if horizon is None:
        return ""
    return LAST + (duration(horizon) if unit == "seconds" else f"{horizon:.6g} {unit}".strip())


def in_words(
    who: str, spans: Sequence[str], labels: Sequence[object], numbers: Sequence[str], values: Sequence[str]
) -> list[str]:
    """The histories of one kind of entity, in their order."""
    found = [f"time since the latest row of this {who}"]
    found += [f"rows of this {who}{of}" for of in spans]
    found += [f"share of {label} among the labels of this {who}{of}" for label in labels for of in spans]
    for column in numbers:
        for of in spans:
            found += [f"mean {column} of this {who}{of}", f"{column}, against the mean of this {who}{of}"]
        found += [f"deviation of the {column} of this {who}"]
    for column in values:
        found += [f"how usual the {column} is for this {who}", f"different values of {column} of this {who}"]
    return found


def rows_in_words(logarithm: float, usual: float) -> str:
    """How many rows, whose logarithm a history is, against the usual number.

    >>> rows_in_words(math.log(17.0), 5.0)
    '3.2 times as many as usual'
    """
    n = math.expm1(logarithm)
    return f"{n / usual:.1f} times as many as usual" if usual > 0.0 else f"{n:.1f}"


def share_in_words(share: float, usual: float) -> str:
    """A share against the usual one.

    >>> share_in_words(0.12, 0.04)
    '12.0 %, 3.0 times the usual'
    """
    return f"{100 * share:.1f} %" + (f", {share / usual:.1f} times the usual" if usual > 0.0 else "")


def position_in_words(logarithm: float) -> str:
    """Where a value lies, in deviations from the mean, whose logarithm a history is.

    >>> position_in_words(-math.log(3.0))
    '2.0 deviations below'
    """
    n = math.expm1(abs(logarithm))
    return f"{n:.1f} deviations {'above' if logarithm > 0.0 else 'below'}" if n > 0.0 else "as the mean"
