"""Renders templates; user input is escaped."""

from __future__ import annotations

from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined


def render(template: str, **values: Any) -> str:
    """Render the named template with these values."""
    return _templates().get_template(template).render(values)


@cache
def _templates() -> Environment:
    loader = PackageLoader("devdan.report.drawing")
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
