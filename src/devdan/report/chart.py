"""Charts as SVG: a plane with axes, what is drawn in it, and the legend.

Positions are in percent of the chart, so texts keep their size at any width. Curves are drawn in whole numbers, samples
across and thousandths of the height down, and stretched to the chart.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from markupsafe import Markup

from devdan.report.words import number, short

Values = Sequence[float | None]
LANE = 11  # pixels of a row of strokes under the axis
COLOURS = 5  # of lines and areas in one chart


class LegendEntry(NamedTuple):
    """A sample of what is drawn, as an SVG element of this width and 12 pixels height, and its name."""

    look: Markup
    width: int
    text: str


class Chart(NamedTuple):
    """The contents of an SVG element of any size, a description in a sentence or two, and the legend."""

    body: Markup
    label: str
    legend: Sequence[LegendEntry] = ()
    lower: int = 0  # pixels that it takes more than others below its axis


def stroke(style: str, text: str) -> LegendEntry:
    """A line."""
    return LegendEntry(Markup('<path class="{}" d="M1,6H21"/>').format(style), 22, text)


def area(style: str, text: str) -> LegendEntry:
    """The area between lines."""
    return LegendEntry(Markup('<path class="{}" d="M0,1H22V11H0Z"/>').format(style), 22, text)


def upright(style: str, text: str) -> LegendEntry:
    """A vertical line."""
    return LegendEntry(Markup('<line class="{}" x1="3" x2="3" y1="0" y2="12"/>').format(style), 6, text)


def mark(shape: str, style: str, text: str) -> LegendEntry:
    """A mark, by the id of its shape."""
    return LegendEntry(Markup('<use href="#{}" class="{}" x="6" y="6"/>').format(shape, style), 12, text)


class Plot:
    """The plane of a chart: samples from 0 to ``end``, values from ``low`` to ``high``."""

    def __init__(self, end: int, low: float, high: float) -> None:
        self.end, self.low, self.high = max(end, 1), low, high

    def x(self, sample: float) -> float:
        """In percent of the width."""
        return 100 * sample / self.end

    def y(self, value: float) -> float:
        """In percent of the height, from the top."""
        return 100 * (self.high - value) / (self.high - self.low)

    def axes(
        self,
        steps: Sequence[float],
        suffix: str = "",
        below: Sequence[tuple[float, str]] | None = None,
        name: str = "samples",
        *,
        lower: int = 0,
        most: int = 6,
    ) -> Markup:
        """Grid lines with their values; below them, ``lower`` pixels down, sample numbers or the given texts."""
        digits = max(0, -math.floor(math.log10(steps[1] - steps[0]) + 1e-9)) if len(steps) > 1 else 0
        parts = []
        for step in steps:
            y = f"{self.y(step):.2f}%"
            parts.append(f'<line class="grid" x1="0" x2="100%" y1="{y}" y2="{y}"/>')
            parts.append(f'<text class="tick" x="0" y="{y}" dx="-8" dy=".33em" text-anchor="end">')
            text = number(step, digits) if digits <= 3 and abs(step) < 10_000 else f"{step:.2g}"
            parts.append(f"{text}{suffix}</text>")
        if below is None:
            below = [(step, short(step)) for step in ticks(0, self.end, most, smallest=1)]
        parts.append('<line class="axis" x1="0" x2="100%" y1="100%" y2="100%"/>')
        parts.append(f'<g transform="translate(0 {lower})"><g class="below">')
        for place, text in below:
            x = f"{self.x(place):.2f}%"
            parts.append(f'<line class="notch" x1="{x}" x2="{x}" y1="100%" y2="100%" transform="translate(0 4)"/>')
            parts.append(f'<text class="tick" x="{x}" y="100%" dy="18" text-anchor="middle">{text}</text>')
        parts.append("</g>")
        parts.append(f'<text class="tick" x="50%" y="100%" dy="34" text-anchor="middle">{name}</text></g>')
        return Markup("".join(parts))

    def line(self, samples: Sequence[float], values: Values, style: str) -> Markup:
        """A line through the known values, with gaps where values are missing."""
        pieces: list[list[tuple[float, float]]] = [[]]
        for sample, value in zip(samples, values, strict=True):
            if value is not None:
                pieces[-1].append((sample, value))
            elif pieces[-1]:
                pieces.append([])
        return _path("".join(self._polyline(piece) for piece in pieces), style)

    def steps(self, samples: Sequence[int], values: Values, style: str) -> Markup:
        """A line that keeps each value until the next one."""
        path, before = "", (0, 0)
        for sample, value in zip(samples, values, strict=True):
            if value is None:
                continue
            x, y = self._point(sample, value)
            if not path:
                path, before = f"M{x},{y}", (x, y)
            elif y != before[1]:
                path += f"h{x - before[0]}v{y - before[1]}"
                before = (x, y)
        return _path(f"{path}H{samples[-1]}" if path else "", style)

    def band(self, samples: Sequence[float], lows: Values, highs: Values, style: str) -> Markup:
        """The area between two lines, wherever both have values."""
        both = [(s, a, b) for s, a, b in zip(samples, lows, highs, strict=True) if a is not None and b is not None]
        around = [(s, high) for s, _, high in both] + [(s, low) for s, low, _ in reversed(both)]
        return _path(f"{self._polyline(around)}Z" if both else "", style)

    def stretched(self, *paths: Markup) -> Markup:
        """Paths in samples and thousandths of the height, stretched to the size of the chart."""
        return stretched(Markup("").join(paths), self.end, 1000)

    def upright(self, sample: float, style: str, title: str) -> Markup:
        """A vertical line with a tooltip."""
        return Markup(
            '<line class="{style}" x1="{x:.4f}%" x2="{x:.4f}%" y1="0" y2="100%"><title>{title}</title></line>'
        ).format(style=style, x=self.x(sample), title=title)

    def lane(self, samples: Sequence[int], style: str, place: int = 0, name: str = "", ink: str = "") -> Markup:
        """A row of strokes under the axis, one for each of the samples; ``place`` rows are above it."""
        body = moving(stretched(strokes(samples, style), self.end, 1))
        if name:
            body += Markup(
                '<text class="lane-name {}" x="0" y="50%" dx="-8" dy=".36em" text-anchor="end">{}</text>'
            ).format(ink, name)
        return Markup(
            '<g transform="translate(0 {})"><svg y="100%" height="{}" overflow="visible">{}</svg></g>'
        ).format(2 + LANE * place, LANE - 3, body)

    def _polyline(self, points: Sequence[tuple[float, float]]) -> str:
        """Whole numbers, each point as its distance from the one before: short, and rounding errors do not add up."""
        whole = [self._point(*point) for point in points]
        if not whole:
            return ""
        (x, y), path = whole[0], []
        for right, down in whole[1:]:
            path.append(f"{right - x},{down - y}".replace(",-", "-"))
            x, y = right, down
        return f"M{whole[0][0]},{whole[0][1]}" + (f"l{' '.join(path)}" if path else "h0")

    def _point(self, sample: float, value: float) -> tuple[int, int]:
        return round(sample), round(10 * self.y(value))


def _path(path: str, style: str) -> Markup:
    return Markup('<path class="{}" d="{}"/>').format(style, path)


def strokes(samples: Iterable[int], style: str) -> Markup:
    """Vertical strokes at samples, one high."""
    return _path("".join(f"M{sample},0v1" for sample in samples), style)


def stretched(paths: Markup, width: int, height: int) -> Markup:
    """Paths on a grid of this size, stretched to the size of the chart."""
    return Markup('<svg viewBox="0 0 {} {}" preserveAspectRatio="none" width="100%" height="100%">{}</svg>').format(
        width, height, paths
    )


def moving(*parts: Markup) -> Markup:
    """What moves when somebody zooms: the page's script moves and widens the inner element within the outer."""
    begin = '<svg class="window" width="100%" height="100%" overflow="visible">'
    begin += '<svg class="moves" width="100%" height="100%" overflow="visible">'
    return Markup(begin) + Markup("").join(parts) + Markup("</svg></svg>")


def line_chart(plot: Plot, ends: Sequence[float], names: Sequence[str], lines: Sequence[Values], label: str) -> Chart:
    """A line of percentages in a colour of its own for each name."""
    paths = [plot.line(ends, line, f"run s{n}") for n, line in enumerate(lines)]
    body = plot.axes(ticks(plot.low, min(plot.high, 100), 4), " %", most=5) + moving(plot.stretched(*paths))
    return Chart(body, label, [stroke(f"run s{n}", name) for n, name in enumerate(names)])


def in_percent(shares: Iterable[float | None]) -> list[float | None]:
    return [None if share is None else 100 * share for share in shares]


def filled(end: int, values: Values) -> Plot | None:
    """A plot whose range fits the values, within 0 and 100."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    room = max(0.06 * (max(known) - min(known)), 0.5)
    low, high = max(0.0, min(known) - room), max(known) + room
    return Plot(end, low, min(high, 100 + 0.02 * (100 - low)))


def ticks(low: float, high: float, most: int, smallest: float = 0.0) -> list[float]:
    """Round values between two others.

    >>> ticks(0, 100_000, 6), ticks(81.3, 97, 5), ticks(0, 3, 5, smallest=1)
    ([0.0, 20000.0, 40000.0, 60000.0, 80000.0, 100000.0], [85.0, 90.0, 95.0], [0.0, 1.0, 2.0, 3.0])
    """
    size = 10.0 ** math.floor(math.log10((high - low) / most))
    step = next(size * m for m in (1, 2, 5, 10) if (high - low) / (size * m) <= most)
    step = max(step, smallest)
    return [place * step for place in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]
