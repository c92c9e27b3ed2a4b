"""What notebooks show: small tables in the notebook's own style, events, and models beside their options."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any, NamedTuple, TypeVar

from devdan.encoding.column_notes import became

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


_LATEST = 20
_MOST_NAMES = 12
E = TypeVar("E", bound=NamedTuple)


class EventList(list[E]):
    """Events, oldest first: a list that notebooks show as a table of the latest.

    >>> from devdan import DEVDAN
    >>> from devdan.streams import sea
    >>> model = DEVDAN(random_state=0).fit(*next(iter(sea(500))))
    >>> model.events_[0].kind, "<td" in model.events_._repr_html_()
    ('growth', True)
    """

    def _repr_html_(self) -> str:
        if not self:
            return "<p>no events</p>"
        shown = self[-_LATEST:]
        caption = f"The latest {len(shown)} of {len(self):,} events" if len(self) > len(shown) else ""
        return html_table(shown, [name.replace("_", " ") for name in self[0]._fields], caption)


def model_html(model: Any) -> str:
    """What has become of a model; nothing before it has learned."""
    if not model.__sklearn_is_fitted__():
        return ""
    mixture = model.mixture_
    labels = mixture.classes.labels.tolist()
    rows = [
        ("samples seen", f"{model.n_seen_:,}"),
        ("classes", f"{len(labels):,}: {_listed(labels)}" if labels else "none yet"),
        ("columns", f"{model.n_features_in_:,}, as {mixture.n_inputs:,} inputs"),
        ("hidden units", f"{model.n_hidden_:,}, {model.n_parameters_:,} parameters"),
        *(
            (name, ", ".join(f"{n:,} {phase}" for phase, n in counts.items()))
            for name, counts in (("growths", model.growths_), ("prunings", model.prunings_), ("drifts", model.drifts_))
        ),
    ]
    if mixture.encoding is not None and len(mixture.encoding.columns) <= _MOST_NAMES:
        rows += [(name, became(column)) for name, column in mixture.encoding.columns.items()]
    return html_table(rows)


def _listed(names: list[Any]) -> str:
    return ", ".join(map(str, names[:_MOST_NAMES])) + (", …" if len(names) > _MOST_NAMES else "")
