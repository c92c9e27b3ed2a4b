"""The plotting area of a chart. All positions are in percent, so texts keep their size at any width."""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import Markup

from devdan.report.drawing.words import number, short

Values = Sequence[float | None]


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
        unit: str = "",
        below: Sequence[tuple[float, str]] | None = None,
        name: str = "samples",
    ) -> Markup:
        """Grid lines with their values; below them, sample numbers or the given positions and texts."""
        digits = max(0, -math.floor(math.log10(steps[1] - steps[0]) + 1e-9)) if len(steps) > 1 else 0
        parts = []
        for step in steps:
            y = f"{self.y(step):.2f}%"
            parts.append(f'<line class="grid" x1="0" x2="100%" y1="{y}" y2="{y}"/>')
            parts.append(f'<text class="tick" x="0" y="{y}" dx="-8" dy=".33em" text-anchor="end">')
            text = number(step, digits) if digits <= 3 and abs(step) < 10_000 else f"{step:.2g}"
            parts.append(f"{text}{unit}</text>")
        if below is None:
            below = [(step, short(step)) for step in ticks(0, self.end, 6, smallest=1)]
        for place, text in below:
            x = f"{self.x(place):.2f}%"
            parts.append(f'<line class="notch" x1="{x}" x2="{x}" y1="100%" y2="100%" transform="translate(0 4)"/>')
            parts.append(f'<text class="tick" x="{x}" y="100%" dy="18" text-anchor="middle">{text}</text>')
        parts.append('<line class="axis" x1="0" x2="100%" y1="100%" y2="100%"/>')
        parts.append(f'<text class="tick" x="50%" y="100%" dy="34" text-anchor="middle">{name}</text>')
        return Markup("".join(parts))

    def line(self, samples: Sequence[int], values: Values, style: str) -> Markup:
        """A line through the known values, with gaps where values are missing."""
        path, pen_down, alone = [], False, False
        for sample, value in zip(samples, values, strict=True):
            if value is None:
                path += ["h0"] * alone
                pen_down = alone = False
                continue
            path.append(f"{' ' if pen_down else 'M'}{self._point(sample, value)}")
            pen_down, alone = True, not pen_down
        return self._path("".join(path) + "h0" * alone, style)

    def steps(self, samples: Sequence[int], values: Values, style: str) -> Markup:
        """A line that keeps each value until the next one."""
        path, before = "", None
        for sample, value in zip(samples, values, strict=True):
            if value is None or value == before:
                continue
            x, y = self._point(sample, value).split(",")
            path += f"H{x}V{y}" if path else f"M{x},{y}"
            before = value
        return self._path(f"{path}H{10 * self.x(samples[-1]):.1f}" if path else "", style)

    def band(self, samples: Sequence[int], lows: Values, highs: Values, style: str) -> Markup:
        """The area between two lines, wherever both have values."""
        both = [(s, a, b) for s, a, b in zip(samples, lows, highs, strict=True) if a is not None and b is not None]
        there = [self._point(sample, high) for sample, _, high in both]
        back = [self._point(sample, low) for sample, low, _ in reversed(both)]
        return self._path(f"M{' '.join(there + back)}Z" if both else "", style)

    def _point(self, sample: float, value: float) -> str:
        return f"{10 * self.x(sample):.1f},{10 * self.y(value):.1f}"

    def _path(self, path: str, style: str) -> Markup:
        return Markup('<path class="{}" d="{}"/>').format(style, path)


def stretched(*paths: Markup) -> Markup:
    """Paths on a 1000 × 1000 grid, stretched to the size of the chart."""
    begin = '<svg viewBox="0 0 1000 1000" preserveAspectRatio="none" width="100%" height="100%">'
    return Markup(begin) + Markup("").join(paths) + Markup("</svg>")


def ticks(low: float, high: float, most: int, smallest: float = 0.0) -> list[float]:
    """Round values between two others.

    >>> ticks(0, 100_000, 6), ticks(81.3, 97, 5), ticks(0, 3, 5, smallest=1)
    ([0.0, 20000.0, 40000.0, 60000.0, 80000.0, 100000.0], [85.0, 90.0, 95.0], [0.0, 1.0, 2.0, 3.0])
    """
    size = 10.0 ** math.floor(math.log10((high - low) / most))
    step = next(size * m for m in (1, 2, 5, 10) if (high - low) / (size * m) <= most)
    step = max(step, smallest)
    return [place * step for place in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]
