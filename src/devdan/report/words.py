"""Numbers and settings formatted for reading; undefined values are a dash."""

from __future__ import annotations

import math
from datetime import datetime
from typing import Any

from devdan.evaluation.measures import Measure

NOTHING = "–"
DRIFTS = {"generative": "virtual", "discriminative": "real"}  # names of drifts by the phase that signals them


def number(value: float | None, digits: int = 0) -> str:
    """Format with thousands separators.

    >>> number(1234.5678, 2), number(-0.5, 3), number(None)
    ('1,234.57', '−0.500', '–')
    """
    return NOTHING if value is None else f"{value:,.{digits}f}".replace("-", "−")


def signed(value: float | None, digits: int) -> str:
    """A difference.

    >>> signed(0.456, 2), signed(-3, 1), signed(-0.001, 2), signed(None, 2)
    ('+0.46', '−3.0', '0.00', '–')
    """
    if value is None:
        return NOTHING
    return number(abs(value), digits) if round(value, digits) == 0 else f"{'+' * (value > 0)}{number(value, digits)}"


def three_digits(value: float | None) -> str:
    """Three significant digits, with a comma at each thousand.

    >>> three_digits(0.0042449), three_digits(38.88), three_digits(12345), three_digits(0), three_digits(None)
    ('0.00424', '38.9', '12,300', '0', '–')
    """
    if value is None:
        return NOTHING
    rounded = float(f"{value:.3g}")
    return number(rounded, max(0, 2 - math.floor(math.log10(abs(rounded))))) if rounded else "0"


def percent(share: float | None, digits: int = 1) -> str:
    """A share in percent.

    >>> percent(0.91234), percent(1.0), percent(None)
    ('91.2 %', '100 %', '–')
    """
    if share is None:
        return NOTHING
    return "100 %" if share == 1 else f"{100 * share:.{digits}f} %"


def short(value: float | None) -> str:
    """At most three digits and a suffix.

    >>> [short(value) for value in (0, 850, 20_000, 1_250_000, 3.2e9)]
    ['0', '850', '20k', '1.25M', '3.2G']
    """
    if value is None:
        return NOTHING
    for size, suffix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= 0.9995 * size:
            return f"{float(f'{value / size:.3g}'):g}{suffix}"
    return f"{value:.3g}"


def seconds(value: float | None) -> str:
    """A duration.

    >>> [seconds(value) for value in (0.0042, 1.5, 75, 4000)]
    ['4.2 ms', '1.5 s', '1 min 15 s', '1 h 7 min']
    """
    if value is None:
        return NOTHING
    if value < 0.0995:
        return f"{1000 * value:.2g} ms"
    if value < 59.95:
        return f"{value:.3g} s"
    if value < 3600:
        return f"{int(value) // 60} min {int(value) % 60} s"
    return f"{int(value) // 3600} h {round(value % 3600 / 60)} min"


def moment(text: Any) -> str:
    """Format a timestamp; an unreadable one is left unchanged.

    >>> moment("2026-11-15T11:00:00+00:00"), moment("yesterday")
    ('15 Nov 2026, 11:00 UTC', 'yesterday')
    """
    try:
        time = datetime.fromisoformat(str(text))
    except ValueError:
        return str(text)
    return f"{time.day} {time:%b %Y, %H:%M %Z}".strip()


def how_many(n: float, thing: str) -> str:
    """A count with its noun.

    >>> how_many(1, "growth"), how_many(1200, "class")
    ('1 growth', '1,200 classes')
    """
    return f"{n:,.0f} {thing}" if n == 1 else f"{n:,.0f} {thing}{'es' if thing.endswith('s') else 's'}"


def clipped(name: Any, most: int = 30) -> str:
    """A name that is not too long."""
    text = str(name)
    return text if len(text) <= most else text[: most - 1] + "…"


def letter(place: int) -> str:
    """A run's name in charts and tables: A, B, …, Z, A1, …"""
    return chr(ord("A") + place % 26) + (str(place // 26) if place >= 26 else "")


def written(measure: Measure, value: float | None, *, on_page: bool = False) -> str:
    """The value of a measure, with the digits of a page of runs, or else of tables."""
    if measure.form == "number" or (measure.form == "short" and not on_page):
        fewer = measure.page_digits if on_page else None
        return number(value, measure.digits if fewer is None else fewer)
    return {"seconds": seconds, "short": short, "significant": three_digits}[measure.form](value)


def heading(measure: Measure) -> str:
    """The name of a measure with its unit."""
    return f"{measure.title}, {measure.unit_of_measure}" if measure.unit_of_measure else measure.title
