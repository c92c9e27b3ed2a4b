"""What became of a model's columns, in a form for JSON, pages and consoles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from devdan.encoding.encoding import Encoding
from devdan.model.insight import Insight


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


def insight(model: Any, names: Sequence[str] | None = None) -> dict[str, Any]:
    """What a model of networks, which has been taught labels, tells about its columns and hidden units.

    ``names`` are those of the columns, for a model that has seen only arrays.

    >>> from devdan import DEVDAN
    >>> told = insight(DEVDAN(random_state=0).fit([[0.0], [1.0], [2.0]], ["a", "a", "b"]), ["age"])
    >>> told["importances"], told["units"][0]["weights"][0][0], insight("another model")
    ({'age': 1.0}, 'age', {})
    """
    if not isinstance(model, Insight) or not hasattr(model, "classes_"):
        return {}
    shares, inputs = model.importances_, model.encoding_.input_names
    if model._encoding is None and names is not None and len(names) == len(inputs):
        shares, inputs = dict(zip(names, shares.values(), strict=True)), list(names)
    return {"importances": shares, "units": [unit._asdict() for unit in model._units(inputs)]}
