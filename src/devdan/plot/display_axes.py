"""What all displays draw into."""

from __future__ import annotations

from typing import Any


def axes_for(ax: Any) -> Any:
    """The axes that somebody has, or new ones."""
    try:
        import matplotlib.pyplot as plt  # noqa: PLC0415 (an optional extra)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "devdan.plot needs Matplotlib: pip install 'devdan[plot]'", name=error.name
        ) from error
    return plt.subplots()[1] if ax is None else ax
