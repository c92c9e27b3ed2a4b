"""What charts have in common."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from markupsafe import Markup

from devdan.report.drawing.plot import Plot, Values


class Chart(NamedTuple):
    """The contents of an SVG element of any size, and a one-sentence description."""

    body: Markup
    label: str


def in_percent(shares: Iterable[float | None]) -> list[float | None]:
    """Shares in percent."""
    return [None if share is None else 100 * share for share in shares]


def filled(end: int, values: Values) -> Plot | None:
    """A plot whose range fits the values, within 0 and 100."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    room = max(0.06 * (max(known) - min(known)), 0.5)
    low, high = max(0.0, min(known) - room), max(known) + room
    return Plot(end, low, min(high, 100 + 0.02 * (100 - low)))
