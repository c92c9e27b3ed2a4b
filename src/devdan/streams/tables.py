"""Tables as streams: Arrow's batches, whether from a file or from a data frame, become chunks (X, y).

Numbers stay as they are, bool becomes 0 and 1, dates and times become seconds. Text becomes a code: 0 for the first
value that appears in the column, 1 for the next, and so on; where the table itself names the values beforehand, their
order counts. What is missing is NaN.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from devdan.streams.base import Chunk, StreamError

_TARGETS = ("target", "class", "label")


def target_column(names: Sequence[str], target: str | int | None, source: str, named: bool = True) -> int:
    """Which column has the labels: by name or position, or the only one with a usual name."""
    shown = ", ".join(names[:12]) + (f", … ({len(names)} in all)" if len(names) > 12 else "")
    if target is None:
        usual = [place for place, name in enumerate(names) if named and name.strip().lower() in _TARGETS]
        if len(usual) == 1:
            return usual[0]
        columns = f"the columns are {shown}" if named else f"it has {len(names)} columns without names"
        raise StreamError(
            f"{source}: which column has the labels? Name the target, or give its position (0 is the first column, "
            f"-1 the last); {columns}"
        )
    if isinstance(target, str) and named and target in names:
        if list(names).count(target) > 1:
            raise StreamError(f"{source}: more than one column is called {target!r}; give the target's position")
        return list(names).index(target)
    try:
        place = int(target)
    except ValueError:
        hint = f"the columns are {shown}" if named else f"its {len(names)} columns have no names, give a position"
        raise StreamError(f"{source}: there is no column {target!r} to be the target; {hint}") from None
    if not -len(names) <= place < len(names):
        raise StreamError(f"{source}: there is no column {place} to be the target, only {len(names)} columns")
    return place % len(names)


class Columns:
    """Turns batches of one table into chunks; keeps the codes of text, so one pass has one of these."""

    def __init__(
        self, names: Sequence[str], target: int, source: str, values: Mapping[int, Sequence[str]] | None = None
    ) -> None:
        self.names, self.target, self.source = list(names), target, source
        self.n_rows = 0  # turned so far
        self._codes = {
            column: {value: code for code, value in enumerate(known)} for column, known in (values or {}).items()
        }

    def chunk(self, batch: pa.RecordBatch) -> Chunk:
        """The batch's samples."""
        features = [column for column in range(len(self.names)) if column != self.target]
        X = np.empty((batch.num_rows, len(features)))
        for place, column in enumerate(features):
            X[:, place] = self._numbers(column, batch.column(column))
        infinite = np.isinf(X)
        if infinite.any():
            row, place = np.argwhere(infinite)[0]
            raise StreamError(
                f"{self.source}: row {self.n_rows + row + 1} has infinity in the column "
                f"{self.names[features[place]]!r}; a missing value is left empty, other values must be finite"
            )
        y = self._labels(batch.column(self.target))
        self.n_rows += batch.num_rows
        return X, y

    def chunks(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Chunk]:
        """All of them."""
        for batch in batches:
            if batch.num_rows > 0:
                yield self.chunk(batch)

    def _numbers(self, column: int, values: pa.Array) -> npt.NDArray[np.float64]:
        kind = values.type
        if pa.types.is_temporal(kind):
            kind = pa.int64()
            values = pc.divide(pc.cast(pc.cast(values, pa.timestamp("us"), safe=False), kind), 1e6)
        elif _is_text(kind):
            return self._coded(column, values)
        try:
            numbers: npt.NDArray[np.float64] = pc.cast(values, pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise StreamError(
                f"{self.source}: the column {self.names[column]!r} holds {values.type}, neither numbers nor text"
            ) from None
        return numbers

    def _coded(self, column: int, values: pa.Array) -> npt.NDArray[np.float64]:
        codes = self._codes.setdefault(column, {})
        coded = values if pa.types.is_dictionary(values.type) else pc.dictionary_encode(values)
        table = [codes.setdefault(str(value).strip(), len(codes)) for value in coded.dictionary.to_pylist()]
        places = pc.cast(coded.indices, pa.float64()).to_numpy(zero_copy_only=False)
        numbers = np.full(len(values), np.nan)
        there = ~np.isnan(places)
        numbers[there] = np.array(table, dtype=np.float64)[places[there].astype(np.int64)]
        return numbers

    def _labels(self, values: pa.Array) -> npt.NDArray[Any]:
        kind = values.type
        if _is_text(kind):
            coded = values if pa.types.is_dictionary(kind) else pc.dictionary_encode(values)
            table = np.array([str(value).strip() for value in coded.dictionary.to_pylist()] or [""])
            if coded.null_count == 0:
                return np.asarray(table[coded.indices.to_numpy(zero_copy_only=False)])
            return np.array(
                [None if place is None else table[place] for place in coded.indices.to_pylist()], dtype=object
            )
        if pa.types.is_boolean(kind) and values.null_count == 0:
            return np.asarray(values.to_numpy(zero_copy_only=False))
        numbers = self._numbers(self.target, values)
        present = numbers[~np.isnan(numbers)]
        if (present != np.floor(present)).any():
            row = int(np.flatnonzero(numbers != np.floor(numbers))[0])
            raise StreamError(
                f"{self.source}: the target {self.names[self.target]!r} must hold classes, got {numbers[row]} in row "
                f"{self.n_rows + row + 1}; classes are text or whole numbers"
            )
        return numbers.astype(np.int64) if len(present) == len(numbers) else numbers


def _is_text(kind: pa.DataType) -> bool:
    inner = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(inner) or pa.types.is_large_string(inner) or pa.types.is_string_view(inner))
