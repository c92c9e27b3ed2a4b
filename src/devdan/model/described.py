"""What became of a model's columns, in a form for JSON, pages and consoles."""

from __future__ import annotations

from typing import Any

from devdan.encoding.encoding import Encoding


def columns(model: Any) -> list[dict[str, Any]]:
    """What became of each column; nothing for a model that has seen no table.

    >>> from devdan import DEVDAN
    >>> model = DEVDAN().fit([{"age": 31, "city": "Bonn"}, {"age": 60, "city": "Köln"}], [0, 1])
    >>> [(column["name"], column["became"]) for column in columns(model)]
    [('age', 'number'), ('city', 'nominal: 2 values (Bonn, Köln)')]
    """
    encoding: Encoding | None = getattr(model, "_encoding", None)
    if encoding is None:
        return []
    return [
        {
            "name": str(name),
            "became": column.in_words(),
            "kind": column.kind or None,
            "left_out": column.left_out or None,
            "values": column.values,
            "periods": column.periods,
            "n_shared": column.n_shared,
        }
        for name, column in encoding.columns.items()
    ]
