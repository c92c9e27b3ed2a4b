"""Tables as streams: Arrow batches, from a file or a data frame, become chunks (X, y).

Numbers are unchanged, booleans become 0 and 1, dates and times become seconds. Text is encoded as 0 for the first value
that appears in the column, 1 for the next, and so on; if the table declares its values, the codes follow the declared
order. Missing values become NaN.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from devdan.arrays import Floats
from devdan.streams.stream import Chunk, StreamError

_TARGETS = ("target", "class", "label")
NAMELESS = "if its first line has their names, say so with --header (header=True)"
_LONG = 1 << 24  # characters of all labels of a block
_MANY = 1000  # rows needed before it means something that nearly all texts in a column differ


def target_column(
    names: Sequence[str], target: str | int | None, source: str, named: bool = True, default: int | None = None
) -> int:
    """The column with the labels: by name or position, or the only one with a usual name, or the default."""
    shown = ", ".join(names[:12]) + (f", … ({len(names)} in all)" if len(names) > 12 else "")
    if target is None:
        usual = [place for place, name in enumerate(names) if named and name.strip().lower() in _TARGETS]
        if len(usual) == 1:
            return usual[0]
        if default is not None:
            return default
        columns = f"the columns are {shown}" if named else f"its {len(names)} columns have no names; {NAMELESS}"
        raise StreamError(
            f"{source}: which column has the labels? Name the target, or give its position (0 is the first column, "
            f"-1 the last); {columns}"
        )
    if isinstance(target, str) and (same := _called(names, target)):
        if len(same) > 1:
            raise StreamError(f"{source}: more than one column is called {target!r}; give its position")
        return same[0]
    try:
        place = int(target)
    except ValueError:
        nameless = f"its {len(names)} columns have no names; give a position, or {NAMELESS}"
        hint = f"the columns are {shown}" if named else nameless
        raise StreamError(f"{source}: there is no column {target!r}; {hint}") from None
    if not -len(names) <= place < len(names):
        raise StreamError(f"{source}: there is no column {place}, only {len(names)} columns")
    return place % len(names)


def _called(names: Sequence[str], name: str) -> list[int]:
    """The columns with this name, or if there is none, with a name that differs only by blanks or comment marks."""
    exact = [place for place, own in enumerate(names) if own == name]
    return exact or [place for place, own in enumerate(names) if _bare(own) == _bare(name)]


def _bare(name: str) -> str:
    return name.strip().lstrip("# ")


def kept_columns(
    names: Sequence[str], target: int, drop: Sequence[str | int], source: str, named: bool = True
) -> list[int]:
    """The columns that are kept, including the target."""
    dropped = {target_column(names, column, source, named) for column in drop}
    kept = [place for place in range(len(names)) if place not in dropped]
    if target not in kept or len(kept) < 2:
        raise StreamError(f"{source}: a stream needs its target and at least one feature")
    return kept


def distinct(names: Sequence[str]) -> list[str]:
    """Make names unique by adding a number to repeated ones.

    >>> distinct(["a", "b", "a"])
    ['a', 'b', 'a.1']
    """
    seen: Counter[str] = Counter()
    result = []
    for name in names:
        result.append(name if seen[name] == 0 else f"{name}.{seen[name]}")
        seen[name] += 1
    return result


def check_finite(X: Floats, names: Sequence[str], source: str, n_before: int) -> None:
    """Raise an error that locates the first infinity, if there is one."""
    infinite = np.isinf(X)
    if infinite.any():
        row, column = np.argwhere(infinite)[0]
        raise StreamError(
            f"{source}: row {n_before + row + 1} has infinity in the column {names[column]!r}; leave missing values "
            "empty; all others must be finite"
        )


def whole_numbers(labels: Floats, name: str, source: str, n_before: int) -> npt.NDArray[Any]:
    """Numeric labels as integers; missing labels stay NaN."""
    wrong = ~np.isnan(labels) & ((labels != np.floor(labels)) | np.isinf(labels))
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise StreamError(
            f"{source}: the target {name!r} must be classes, got {labels[row]} in row {n_before + row + 1}; classes "
            "are text or integers"
        )
    return labels if np.isnan(labels).any() else labels.astype(np.int64)


class Columns:
    """Turns batches of one table into chunks. It stores the text codes, so each pass needs its own instance.

    ``values`` are the declared values of a column; if they are ``closed``, no others may appear. ``missing`` are the
    texts that mean a missing feature, ``missing_labels`` a missing label.
    """

    def __init__(
        self,
        names: Sequence[str],
        target: int,
        source: str,
        values: Mapping[int, Sequence[str]] | None = None,
        closed: bool = False,
        missing: Collection[str] = (),
        missing_labels: Collection[str] = (),
    ) -> None:
        self.names, self.target, self.source = list(names), target, source
        self.features = [column for column in range(len(names)) if column != target]
        self.n_rows = 0  # rows converted so far
        self._values = {column: set(known) for column, known in (values or {}).items()} if closed else {}
        self._missing, self._missing_labels = missing, missing_labels
        self._codes = {
            column: {value: code for code, value in enumerate(known)} for column, known in (values or {}).items()
        }

    def chunk(self, batch: pa.RecordBatch) -> Chunk:
        """The batch's samples."""
        X = np.empty((batch.num_rows, len(self.features)))
        for place, column in enumerate(self.features):
            X[:, place] = self._numbers(column, batch.column(column))
        check_finite(X, [self.names[column] for column in self.features], self.source, self.n_rows)
        y = self._labels(batch.column(self.target))
        self.n_rows += batch.num_rows
        return X, y

    def chunks(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Chunk]:
        """All of them."""
        for batch in batches:
            if batch.num_rows > 0:
                yield self.chunk(batch)

    def _numbers(self, column: int, values: pa.Array) -> Floats:
        if _is_text(values.type):
            return self._coded(column, values)
        try:
            if pa.types.is_temporal(values.type):
                values = pc.divide(pc.cast(pc.cast(values, _in_microseconds(values.type)), pa.int64()), 1e6)
            numbers: Floats = pc.cast(values, pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        except pa.ArrowException:
            raise StreamError(
                f"{self.source}: the column {self.names[column]!r} holds {values.type}, not numbers or text"
            ) from None
        return numbers

    def _texts(self, column: int, values: pa.Array, missing: Collection[str]) -> tuple[list[str | None], Floats]:
        """The distinct texts (None for missing ones) and their indices per row; NaN for nulls."""
        coded = values if pa.types.is_dictionary(values.type) else pc.dictionary_encode(values)
        texts = [None if value is None or str(value).strip() in missing else str(value).strip()
                 for value in coded.dictionary.to_pylist()]  # fmt: skip
        places = pc.cast(coded.indices, pa.float64()).to_numpy(zero_copy_only=False)
        known = self._values.get(column)
        if known is not None and not known.issuperset(text for text in texts if text is not None):
            place, text = next((k, text) for k, text in enumerate(texts) if text is not None and text not in known)
            row = int(np.flatnonzero(places == place)[0])
            raise StreamError(
                f"{self.source}: row {self.n_rows + row + 1} has {text!r} in the column {self.names[column]!r}, which "
                f"is declared to hold {', '.join(sorted(known))[:80]}"
            )
        return texts, places

    def _coded(self, column: int, values: pa.Array) -> Floats:
        codes = self._codes.setdefault(column, {})
        texts, places = self._texts(column, values, self._missing)
        if self.n_rows == 0 and len(values) >= _MANY and 2 * len(texts) > len(values):
            warnings.warn(
                f"{self.source}: the column {self.names[column]!r} has {len(texts):,} different texts in its first "
                f"{len(values):,} rows; each becomes a number. Drop the column if it only identifies the samples",
                stacklevel=2,
            )
        table = [np.nan if text is None else codes.setdefault(text, len(codes)) for text in texts]
        numbers = np.full(len(values), np.nan)
        there = ~np.isnan(places)
        numbers[there] = np.array(table, dtype=np.float64)[places[there].astype(np.int64)]
        return numbers

    def _labels(self, values: pa.Array) -> npt.NDArray[Any]:
        kind, name = values.type, self.names[self.target]
        if _is_text(kind):
            texts, places = self._texts(self.target, values, self._missing_labels)
            self._check_classes(len(texts), len(values))
            if None in texts or np.isnan(places).any():
                taken = [None if np.isnan(place) else texts[int(place)] for place in places.tolist()]
                return np.array(taken, dtype=object)
            # In a plain array each takes as much as the longest.
            is_long = max(map(len, texts), default=0) * len(values) > _LONG  # type: ignore[arg-type]
            return np.array(texts or [""], dtype=object if is_long else str)[places.astype(np.int64)]
        if pa.types.is_boolean(kind):
            return np.asarray(values.to_numpy(zero_copy_only=False))  # with None for missing labels
        labels = whole_numbers(self._numbers(self.target, values), name, self.source, self.n_rows)
        if self.n_rows == 0:
            self._check_classes(len(np.unique(labels)), len(labels))
        return labels

    def _check_classes(self, n_classes: int, n_rows: int) -> None:
        if self.n_rows == 0 and n_rows >= _MANY and 2 * n_classes > n_rows:
            raise StreamError(
                f"{self.source}: the target {self.names[self.target]!r} has {n_classes:,} different labels in its "
                f"first {n_rows:,} rows; is it the right column?"
            )


def _is_text(kind: pa.DataType) -> bool:
    inner = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(inner) or pa.types.is_large_string(inner) or pa.types.is_string_view(inner))


def _in_microseconds(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_time(kind):
        return pa.time64("us")
    return pa.duration("us") if pa.types.is_duration(kind) else pa.timestamp("us")
