"""Pictures that stand alone: a document around charts, and their style."""

from __future__ import annotations

from collections.abc import Iterable

from markupsafe import Markup

from devdan.report.chart import LegendEntry

WIDTH, LEFT, RIGHT = 800, 58, 16

STYLE = """
  svg { --ink: #24292f; --soft: #57606a; --grid: #d8dee4; --grey: #7b8594; --blue: #0b65b0; --blue-soft: #5a96cc;
    --band: #0b65b01f; --orange: #bf5200; --page: #fff; }
  @media (prefers-color-scheme: dark) {
    svg { --ink: #e6edf3; --soft: #9ea7b3; --grid: #2d343d; --grey: #8b949e; --blue: #6fb5f7; --blue-soft: #467aad;
      --band: #6fb5f72b; --orange: #f7a35f; --page: #0d1117; }
  }
  text { font: 13px -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; fill: var(--soft); }
  .head { font-size: 15px; font-weight: 600; fill: var(--ink); }
  .grid { stroke: var(--grid); } .axis, .notch { stroke: var(--grey); }
  path { fill: none; stroke-linejoin: round; stroke-linecap: round; vector-effect: non-scaling-stroke; }
  path.band { fill: var(--band); }
  path.each { stroke: var(--blue-soft); stroke-width: 1.1px; }
  path.smooth { stroke: var(--blue); stroke-width: 2.4px; }
  path.no-change { stroke: var(--grey); stroke-width: 1.4px; stroke-dasharray: 5 4; stroke-linecap: butt; }
  .drift { stroke: var(--orange); stroke-width: 1.3px; opacity: .75; } .drift.generative { stroke-dasharray: 2 3; }
  .true-drift { stroke: var(--soft); stroke-width: 1.3px; stroke-dasharray: 1 4; stroke-linecap: round; }
  path.units { stroke: var(--ink); stroke-width: 1.8px; stroke-linejoin: miter; }
  #growth, #pruning { fill: inherit; }
  .growth { stroke: var(--blue); fill: var(--blue); stroke-width: 1.5px; }
  .pruning { stroke: var(--orange); fill: var(--orange); stroke-width: 1.5px; }
  .growth.generative, .pruning.generative { fill: var(--page); }
"""


def framed(title: str, height: float, body: Markup, style: str = "") -> str:
    """A complete SVG document around charts, with their style and additional style."""
    return Markup(
        '<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        'role="img"><title>{title}</title><style>{style}</style><defs><path id="growth" d="M0-5L5,4H-5Z"/>'
        '<path id="pruning" d="M0,5L5-4H-5Z"/></defs>{body}</svg>\n'
    ).format(width=WIDTH, height=height, title=title, style=Markup(STYLE + style), body=body)


def placed(top: float, height: float, chart: Markup, left: float = LEFT) -> Markup:
    """A chart in its position, with room for the axis values on the left."""
    return Markup('<svg x="{}" y="{}" width="{}" height="{}" overflow="visible">{}</svg>').format(
        left, top, WIDTH - left - RIGHT, height, chart
    )


def caption(y: float, left: str, right: str) -> Markup:
    """The captions above a chart, on the left and right."""
    return Markup('<text class="head" x="8" y="{}">{}</text><text x="{}" y="{}" text-anchor="end">{}</text>').format(
        y, left, WIDTH - RIGHT, y, right
    )


def legend(y: float, keys: Iterable[LegendEntry], x: float = 8) -> Markup:
    """A line of keys from ``x`` on, as far apart as the widths of letters can be guessed."""
    body = Markup("")
    for key in keys:
        body += Markup('<g transform="translate({:.0f} {})">{}</g>').format(x, y - 10, key.look)
        body += Markup('<text x="{:.0f}" y="{}">{}</text>').format(x + key.width + 6, y, key.text)
        x += key.width + 6.4 * len(key.text) + 22
    return body
