"""Small tables for notebooks, which take on the notebook's own style."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

_LEFT = ' style="text-align: left"'


def html_table(rows: Iterable[Sequence[Any]], head: Sequence[str] = (), caption: str = "") -> str:
    """Rows as HTML, whatever is in them as text; the first cell of each row names it.

    >>> "&lt;Bonn&gt;</td></tr></table>" in html_table([("city", "<Bonn>")])
    True
    """
    parts = [f"<caption{_LEFT}>{escape(caption)}</caption>"] if caption else []
    if head:
        cells = "".join(f'<th scope="col"{_LEFT}>{escape(name)}</th>' for name in head)
        parts.append(f"<tr>{cells}</tr>")
    for name, *values in rows:
        cells = "".join(f"<td{_LEFT}>{escape(str(value))}</td>" for value in values)
        parts.append(f'<tr><th scope="row"{_LEFT}>{escape(str(name))}</th>{cells}</tr>')
    return f"<table>{''.join(parts)}</table>"
