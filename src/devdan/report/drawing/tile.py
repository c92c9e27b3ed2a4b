"""A figure that stands alone."""

from __future__ import annotations

from typing import NamedTuple


class Tile(NamedTuple):
    """A value with its name and a remark."""

    name: str
    figure: str
    unit: str
    remark: str
