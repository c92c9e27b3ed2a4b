"""What charts have in common."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from markupsafe import Markup

from devdan.report.drawing.plot import Plot, Values


class Key(NamedTuple):
    """An entry of a legend: what it looks like, as an SVG element of this width and 12 pixels height, and its name."""

    look: Markup
    width: int
    text: str


class Chart(NamedTuple):
    """The contents of an SVG element of any size, a description in a sentence or two, and what is drawn in it."""

    body: Markup
    label: str
    legend: Sequence[Key] = ()
    lower: int = 0  # pixels that it takes more than others below its axis


def stroke(style: str, text: str) -> Key:
    """A line."""
    return Key(Markup('<path class="{}" d="M1,6H21"/>').format(style), 22, text)


def area(style: str, text: str) -> Key:
    """The area between lines."""
    return Key(Markup('<path class="{}" d="M0,1H22V11H0Z"/>').format(style), 22, text)


def upright(style: str, text: str) -> Key:
    """A vertical line."""
    return Key(Markup('<line class="{}" x1="3" x2="3" y1="0" y2="12"/>').format(style), 6, text)


def mark(shape: str, style: str, text: str) -> Key:
    """A mark, by the id of its shape."""
    return Key(Markup('<use href="#{}" class="{}" x="6" y="6"/>').format(shape, style), 12, text)


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
