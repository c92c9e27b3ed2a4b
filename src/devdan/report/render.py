"""Pages from templates; users' text is escaped."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined


class Tile(NamedTuple):
    """A headline figure with its name and a remark."""

    name: str
    figure: str
    suffix: str  # what it is measured in
    remark: str


def render(template: str, **values: Any) -> str:
    """Render the named template with these values."""
    return _templates().get_template(template).render(values)


@cache
def _templates() -> Environment:
    loader = PackageLoader("devdan.report")
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
