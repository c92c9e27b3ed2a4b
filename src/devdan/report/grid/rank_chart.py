"""The critical-difference diagram: average ranks on an axis, bars joining models that do not differ significantly."""

from __future__ import annotations

import math
from typing import NamedTuple

from markupsafe import Markup

from devdan.report.grid.ranking import Ranking, alike

_AXIS, _ROW, _BAR = 52, 22, 8


class Diagram(NamedTuple):
    """The contents of an SVG element of any width; labels are beside it, ``side`` pixels wide."""

    body: Markup
    height: int
    side: int
    label: str


def diagram(ranking: Ranking, two_sided: bool) -> Diagram:
    """Models by average rank, the best at the left; their names on both sides, or all at the left."""
    k = len(ranking.models)
    bars = alike(ranking.ranks, ranking.difference) if ranking.difference else []
    top = _AXIS + 16 + _BAR * len(bars) + 8
    n_left = math.ceil(k / 2) if two_sided else k
    body = _axis(k, 12 if two_sided else 5) + _measure(ranking.difference, k)
    for place, (model, value) in enumerate(zip(ranking.models, ranking.ranks, strict=True)):
        left = place < n_left
        y = top + _ROW * (place if left else k - 1 - place)
        body += Markup(
            '<g class="model {style}"><line x1="{x}%" x2="{x}%" y1="{axis}" y2="{y}"/>'
            '<line x1="{x}%" x2="{edge}%" y1="{y}" y2="{y}"/><circle cx="{x}%" cy="{axis}" r="3.5"/>'
            '<text x="{edge}%" y="{y}" dx="{dx}" dy=".33em" text-anchor="{anchor}">{name} '
            '<tspan class="value">{value:.2f}</tspan></text></g>'
        ).format(
            style=style_of(model),
            x=f"{_x(value, k):.2f}",
            y=y,
            axis=_AXIS,
            edge=0 if left else 100,
            dx=-8 if left else 8,
            anchor="end" if left else "start",
            name=model,
            value=value,
        )
    for n, (first, last) in enumerate(bars):
        a, b = _x(ranking.ranks[first], k), _x(ranking.ranks[last], k)
        y = _AXIS + 16 + _BAR * n
        title = f"{ranking.models[first]} to {ranking.models[last]}: no significant difference"
        body += Markup('<line class="bar" x1="{:.2f}%" x2="{:.2f}%" y1="{}" y2="{}"><title>{}</title></line>').format(
            a - 0.6, b + 0.6, y, y, title
        )
    longest = max((len(model) for model in ranking.models), default=0)
    label = "Average ranks: " + ", ".join(f"{m} {r:.2f}" for m, r in zip(ranking.models, ranking.ranks, strict=True))
    height = top + _ROW * max(n_left - 1, k - n_left - 1) + 14
    return Diagram(body, height, max(170, round(6.5 * longest + 48)), label)


def style_of(model: str) -> str:
    """The highlighted models."""
    return {"devdan": "own", "devdan-paper": "own-paper", "devdan-no-generative": "own-off"}.get(model, "rest")


def _x(rank: float, k: int) -> float:
    """In percent of the width."""
    return 100 * (rank - 1) / max(k - 1, 1)


def _axis(k: int, most: int) -> Markup:
    body = Markup('<line class="axis" x1="0" x2="100%" y1="{0}" y2="{0}"/>').format(_AXIS)
    for rank in range(1, k + 1, math.ceil(k / most)):
        body += Markup(
            '<line class="axis" x1="{0:.2f}%" x2="{0:.2f}%" y1="{1}" y2="{2}"/>'
            '<text class="tick" x="{0:.2f}%" y="{3}" text-anchor="middle">{4}</text>'
        ).format(_x(rank, k), _AXIS - 5, _AXIS, _AXIS - 10, rank)
    return body


def _measure(difference: float | None, k: int) -> Markup:
    """The critical difference as a bar; without its end mark if the axis is too short."""
    if difference is None:
        return Markup("")
    end = 100 * difference / max(k - 1, 1)
    stop = Markup('<line x1="{0:.2f}%" x2="{0:.2f}%" y1="16" y2="24"/>').format(end) if end <= 100 else Markup("")
    return Markup(
        '<g class="measure"><line x1="0" x2="{:.2f}%" y1="20" y2="20"/><line x1="0" x2="0" y1="16" y2="24"/>{}'
        '<text class="tick" x="0" y="20" dx="-8" dy=".33em" text-anchor="end">critical difference {:.2f}</text></g>'
    ).format(min(end, 100), stop, difference)
