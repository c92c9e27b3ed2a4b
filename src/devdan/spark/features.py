"""Features between Spark's frames, models and states: an array where all are numbers, else a table."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from devdan.encoding.rows import Rows
from devdan.encoding.tables import rows_of
from devdan.spark.plan import Plan, place_of


class Features:
    """The features of the rows of a frame, and after them those of samples that waited."""

    def __init__(self, plan: Plan, frame: Any) -> None:
        self._schema = plan.schema
        self._waited: list[bytes] = []
        columns = [frame[place_of(number)] for number in range(len(plan.features))]
        self._n = len(frame)
        if plan.schema is None:
            self._numbers = np.column_stack([column.to_numpy(np.float64) for column in columns])
            self.present = ~np.isnan(self._numbers).all(axis=1)
            self.infinite = np.isinf(self._numbers).any(axis=1)
            return
        arrays = [
            pa.array(column, _stored(kind), from_pandas=True)
            for column, kind in zip(columns, plan.schema.types, strict=True)
        ]
        self._columns = [array.to_pylist() for array in arrays]
        self.present = np.array([array.is_valid().to_numpy(zero_copy_only=False) for array in arrays]).any(axis=0)
        numbers = [array.to_numpy(zero_copy_only=False) for array in arrays if array.type == pa.float64()]
        self.infinite = np.isinf(np.array(numbers).reshape(-1, self._n)).any(axis=0)

    def content(self, row: int) -> bytes:
        """What a state keeps of a row."""
        if self._schema is None:
            return bytes(self._numbers[row].astype("<f8").tobytes())
        return json.dumps([column[row] for column in self._columns]).encode()

    def add(self, content: bytes) -> int:
        """Take in what a state has kept; returns its row."""
        self._waited.append(content)
        return self._n + len(self._waited) - 1

    def rows(self) -> Any:
        """All of them, as a model takes them: to be cut by arrays of rows."""
        if self._schema is None:
            waited = np.frombuffer(b"".join(self._waited), "<f8").reshape(-1, self._numbers.shape[1])
            return np.concatenate([self._numbers, waited])
        waited_values: list[Sequence[Any]] = [json.loads(content) for content in self._waited]
        columns = [
            pa.array([*column, *(values[place] for values in waited_values)], _stored(kind)).cast(kind)
            for place, (column, kind) in enumerate(zip(self._columns, self._schema.types, strict=True))
        ]
        table: Rows = rows_of(pa.Table.from_arrays(columns, schema=self._schema))
        return table


def _stored(kind: pa.DataType) -> pa.DataType:
    """The type as which values are kept."""
    if pa.types.is_timestamp(kind):
        return pa.int64()
    return pa.int32() if pa.types.is_date32(kind) else kind
