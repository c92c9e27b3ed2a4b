"""An encoding as a model file has it: JSON, checked when it is read, as a file may hold anything."""

from __future__ import annotations

import math
from typing import Any

from devdan.encoding import values
from devdan.encoding.column import KINDS, ColumnEncoding, Key, Told, Watch
from devdan.encoding.encoding import Encoding, Instructions


def kept(encoding: Encoding) -> dict[str, Any]:
    """The encoding as JSON has it."""
    columns = [_kept(column) for column in encoding.columns.values()]
    return {"columns": columns, "order": list(encoding.order), "n_numbered": encoding.n_numbered}


def _kept(column: ColumnEncoding) -> dict[str, Any]:
    """The column as JSON has it."""
    watch = column.watch
    return {
        "name": column.name,
        "told": list((column.told.kind, column.told.spelled, column.told.max_categories)),
        "kind": column.kind,
        "left_out": column.left_out,
        "example": column.example,
        "odd": column.odd,
        "inputs": [[*key, number] for key, number in column.inputs.items()],
        "watch": [
            watch.n, watch.rises, watch.falls, None if math.isnan(watch.last) else watch.last,
            sorted(watch.different), watch.earliest, watch.latest, watch.varies,
        ],
    }  # fmt: skip


def restored(content: Any, instructions: Instructions) -> Encoding:
    """An encoding from a model file; raises a ``ValueError``, ``TypeError`` or ``KeyError`` if it is none."""
    columns = [_restored(column) for column in content["columns"]]
    order, n_numbered = [int(number) for number in content["order"]], int(content["n_numbered"])
    used = [number for column in columns for number in column.inputs.values()]
    if sorted(used) != sorted(order) or len(set(order)) != len(order) or not all(0 <= k < n_numbered for k in order):
        raise ValueError("its encoding does not number its inputs consistently")
    if len({column.name for column in columns}) != len(columns):
        raise ValueError("its encoding has two columns of the same name")
    if any(column.told != instructions.of(column.name) for column in columns):
        raise ValueError("its encoding and its options do not match")
    return Encoding(columns, order, n_numbered, instructions)


def _restored(content: Any) -> ColumnEncoding:
    """A column from a model file; raises a ``ValueError`` or ``TypeError`` if it is none."""
    told = Told(str(content["told"][0]), str(content["told"][1]), int(content["told"][2]))
    if content["kind"] not in ("", *KINDS) or told.max_categories < 1 or not values.check_date_format(told.spelled):
        raise ValueError("a column is of no known kind")
    inputs = {Key(str(part), str(of)): int(number) for part, of, number in content["inputs"]}
    n, rises, falls, last, different, earliest, latest, varies = content["watch"]
    watch = Watch(
        int(n), int(rises), int(falls), math.nan if last is None else float(last), {str(text) for text in different},
        int(earliest), int(latest), bool(varies),
    )  # fmt: skip
    if min(watch.n, watch.rises, watch.falls) < 0 or max(abs(watch.earliest), abs(watch.latest)) >= 2**63:
        raise ValueError("what a column remembers is out of range")
    left_out, example, odd = (str(content[word]) for word in ("left_out", "example", "odd"))
    return ColumnEncoding(str(content["name"]), told, content["kind"], left_out, example, odd, inputs, watch)
