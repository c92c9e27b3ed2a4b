"""Complete documents: pages from templates, in which users' text is escaped, and pictures that stand alone."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from devdan.report.chart import LegendEntry


class Tile(NamedTuple):
    """A headline figure with its name and a remark."""

    name: str
    figure: str
    suffix: str  # what it is measured in
    remark: str


def render(template: str, **values: Any) -> str:
    """Render the named template with these values; a page may have the style and the script in it, and no other."""
    page = _templates().get_template(template).render(values)
    return page.replace(_POLICY, policy_of(page), 1)


_POLICY = "{own styles and scripts}"


def policy_of(page: str) -> str:
    """The Content Security Policy of a page, which names its style and its script by their digests.

    >>> policy_of("<style>p { margin: 0 }</style><script>start()</script>").split("; ")[1]
    "style-src 'sha256-7IWhgxoOGTB5NQzjGk9OPt0FwhVeBvZGoWgF9xLLh8c='"
    """
    styles = f"style-src {_digest(page, 'style')}"
    if ' style="' in page:
        styles += "; style-src-attr 'unsafe-inline'"
    return f"default-src 'none'; {styles}; script-src {_digest(page, 'script')}"


def _digest(page: str, element: str) -> str:
    """The last element of a kind without attributes, of which a page has one, as a policy names it."""
    _, begins, rest = page.rpartition(f"<{element}>")
    content = rest.partition(f"</{element}>")[0].encode()
    return f"'sha256-{b64encode(sha256(content).digest()).decode()}'" if begins else "'none'"


@cache
def _templates() -> Environment:
    loader = PackageLoader("devdan.report")
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)


# --- Pictures: a document around charts, and their style ---------------------------------------------------------


WIDTH, LEFT, RIGHT = 800, 58, 16

STYLE = """
  svg { --ink: #24292f; --soft: #57606a; --grid: #d8dee4; --grey: #7b8594; --blue: #0b65b0; --blue-soft: #5a96cc;
    --band: #0b65b01f; --orange: #bf5200; --card: #fff; }
  @media (prefers-color-scheme: dark) {
    svg { --ink: #e6edf3; --soft: #9ea7b3; --grid: #2d343d; --grey: #8b949e; --blue: #6fb5f7; --blue-soft: #467aad;
      --band: #6fb5f72b; --orange: #f7a35f; --card: #0d1117; }
  }
  text { font: 13px -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; fill: var(--soft); }
  .head { font-size: 15px; font-weight: 600; fill: var(--ink); }
  path { fill: none; stroke-linejoin: round; stroke-linecap: round; vector-effect: non-scaling-stroke; }
  #growth, #pruning { fill: inherit; }
"""
STYLE += files("devdan.report").joinpath("templates/chart.css").read_text(encoding="utf-8")


def framed(title: str, height: float, body: Markup, style: str = "") -> str:
    """A complete SVG document around charts, with their style and more of it."""
    return Markup(
        '<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height:g}" viewBox="0 0 {width} {height:g}" '
        'role="img"><title>{title}</title><style>{style}</style><defs><path id="growth" d="M0-5L5,4H-5Z"/>'
        '<path id="pruning" d="M0,5L5-4H-5Z"/></defs>{body}</svg>\n'
    ).format(width=WIDTH, height=height, title=title, style=Markup(STYLE + style), body=body)


def placed(top: float, height: float, chart: Markup, left: float = LEFT, width: float | None = None) -> Markup:
    """A chart in its position, with room for the axis values on the left; as wide as there is room, unless told."""
    return Markup('<svg x="{:g}" y="{:g}" width="{:g}" height="{:g}" overflow="visible">{}</svg>').format(
        left, top, WIDTH - left - RIGHT if width is None else width, height, chart
    )


def caption(y: float, left: str, right: str = "", x: float = 8) -> Markup:
    """The captions above a chart, on the left and, if there is one, on the right."""
    body = Markup('<text class="head" x="{:g}" y="{:g}">{}</text>').format(x, y, left)
    if right:
        body += Markup('<text x="{}" y="{:g}" text-anchor="end">{}</text>').format(WIDTH - RIGHT, y, right)
    return body


def legend(y: float, entries: Iterable[LegendEntry], x: float = 8) -> Markup:
    """The entries in a line from ``x`` on, as far apart as the widths of letters can be guessed."""
    body = Markup("")
    for entry in entries:
        body += Markup('<g transform="translate({:.0f} {})">{}</g>').format(x, y - 10, entry.look)
        body += Markup('<text x="{:.0f}" y="{}">{}</text>').format(x + entry.width + 6, y, entry.text)
        x += entry.width + 6.8 * len(entry.text) + 20
    return body
