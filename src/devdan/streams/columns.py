"""The columns of a table: which of them has the labels, and batches of Arrow as chunks of rows and labels."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from devdan.arrays import Floats, Integers
from devdan.encoding.rows import Column, Numbers, Rows, Texts
from devdan.encoding.tables import TableError, arrow_column
from devdan.streams.stream import Chunk, StreamError

_TARGETS = ("target", "class", "label")
NAMELESS = "if its first line has their names, say so with --header (header=True)"
_LONG = 1 << 24  # characters of all labels of a block
_MANY = 1000  # rows from which on it is suspicious that nearly all labels differ
_PLAIN = re.compile(r"[-+]?(0|[1-9]\d*)([.,]\d*)?([eE][-+]?\d+)?")


def target_column(
    names: Sequence[str], target: str | int | None, source: str, named: bool = True, default: int | None = None
) -> int:
    """The column with the labels: by name or position, or the only one with a usual name, or the default."""
    shown = ", ".join(map(_brief, names[:12])) + (f", … ({len(names)} in all)" if len(names) > 12 else "")
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


def _brief(name: str) -> str:
    """A name for messages. One in quotes may have many lines, up to the next quote in the file."""
    line = " ".join(name.split())
    return line if len(line) <= 40 else f"{line[:40]}…"


def _called(names: Sequence[str], name: str) -> list[int]:
    """The columns with this name or, if there is none, whose names differ only in blanks or comment marks."""
    exact = [place for place, own in enumerate(names) if own == name]
    return exact or [place for place, own in enumerate(names) if _bare(own) == _bare(name)]


def _bare(name: str) -> str:
    return name.strip().lstrip("# ")


def kept_columns(
    names: Sequence[str], target: int, drop: Sequence[str | int], source: str, named: bool = True
) -> list[int]:
    """The columns that are not dropped, including the target."""
    dropped = {target_column(names, column, source, named) for column in drop}
    kept = [place for place in range(len(names)) if place not in dropped]
    if target not in kept or len(kept) < 2:
        raise StreamError(f"{source}: a stream needs its target and at least one feature")
    return kept


def check_finite(X: Floats, names: Sequence[str], source: str, n_before: int) -> None:
    """Raise an error that locates the first infinity, if any."""
    infinite = np.isinf(X)
    if infinite.any():
        row, column = np.argwhere(infinite)[0]
        raise StreamError(
            f"{source}: row {n_before + row + 1} has infinity in the column {names[column]!r}; leave missing values "
            "empty; all others must be finite"
        )


def whole_numbers(labels: Floats, name: str, source: str, n_before: int) -> npt.NDArray[Any]:
    """Numeric labels as integers, or as floats with NaN if some are missing."""
    wrong = ~np.isnan(labels) & ((labels != np.floor(labels)) | np.isinf(labels))
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise StreamError(
            f"{source}: the target {name!r} must be classes, got {labels[row]} in row {n_before + row + 1}; classes "
            "are text or integers"
        )
    return labels if np.isnan(labels).any() else labels.astype(np.int64)


class BatchConverter:
    """Converts the batches of one table to chunks, or to rows if it has no ``target``.

    ``values`` are the declared values of nominal columns; if they are ``closed``, no others may appear.
    ``missing_labels`` are the texts that mean a missing label. ``numeric_labels``: labels are texts, but of numbers; if
    None, the first labels decide.
    """

    def __init__(
        self,
        names: Sequence[str],
        target: int | None,
        source: str,
        values: Mapping[int, Sequence[str]] | None = None,
        closed: bool = False,
        missing_labels: Collection[str] = (),
        numeric_labels: bool | None = False,
    ) -> None:
        self.names, self.target, self.source = list(names), target, source
        self.features = [column for column in range(len(names)) if column != target]
        self.n_rows = 0  # rows converted so far
        self._declared = set(values or {})
        self._values = {column: set(known) for column, known in (values or {}).items()} if closed else {}
        self._missing_labels, self._numeric_labels = missing_labels, numeric_labels

    def chunk(self, batch: pa.RecordBatch) -> Chunk:
        """The batch's samples."""
        return self.labelled(self._features(batch), batch.column(self.target))

    def labelled(self, rows: Rows, labels: pa.Array) -> Chunk:
        self._check_finite(rows)
        y = self._labels(labels)
        self.n_rows += len(rows)
        return rows, y

    def rows(self, batch: pa.RecordBatch | pa.Table) -> Rows:
        """The batch's rows, without labels."""
        return self.unlabelled(self._features(batch))

    def unlabelled(self, rows: Rows) -> Rows:
        """The rows, checked."""
        self._check_finite(rows)
        self.n_rows += len(rows)
        return rows

    def _features(self, batch: pa.RecordBatch | pa.Table) -> Rows:
        columns = [self._feature(column, batch.column(column)) for column in self.features]
        return Rows.of([self.names[column] for column in self.features], columns, batch.num_rows)

    def _check_finite(self, rows: Rows) -> None:
        check_finite(rows.numbers, rows.names_of_numbers, self.source, self.n_rows)

    def chunks(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Chunk]:
        """A chunk for each batch that is not empty."""
        for batch in batches:
            if batch.num_rows > 0:
                yield self.chunk(batch)

    def _feature(self, column: int, values: pa.Array) -> Column:
        try:
            found = arrow_column(values, self.names[column])
        except TableError as error:
            raise StreamError(f"{self.source}: {error}") from error
        if isinstance(found, Texts):
            self._check_declared(column, found.vocabulary.texts, found.vocabulary.missing, found.places)
            return replace(found, declared=found.declared or column in self._declared)
        return found

    def _check_declared(self, column: int, texts: Sequence[str | None], missing: Any, places: Integers) -> None:
        """Raise an error that locates the first undeclared text, if the values are declared."""
        known = self._values.get(column)
        if known is None:
            return
        for place, text in enumerate(texts):
            if text not in known and not missing[place] and (places == place).any():
                row = int(np.flatnonzero(places == place)[0])
                raise StreamError(
                    f"{self.source}: row {self.n_rows + row + 1} has {text!r} in the column {self.names[column]!r}, "
                    f"which is declared to hold {', '.join(sorted(known))[:80]}"
                )

    @property
    def _target(self) -> int:
        if self.target is None:
            raise ValueError("a table without a target has no labels")
        return self.target

    def _label_texts(self, values: pa.Array) -> tuple[list[str | None], Integers]:
        """The distinct labels (None for missing ones), and the position of each row's label; -1 for nulls."""
        coded = values if pa.types.is_dictionary(values.type) else pc.dictionary_encode(values)
        texts = [
            None if value is None or str(value).strip() in self._missing_labels else str(value).strip()
            for value in coded.dictionary.to_pylist()
        ]
        places = pc.fill_null(pc.cast(coded.indices, pa.int64()), -1).to_numpy(zero_copy_only=False)
        self._check_declared(self._target, texts, [text is None for text in texts], places)
        return texts, places

    def _labels(self, values: pa.Array) -> npt.NDArray[Any]:
        kind, name = values.type, self.names[self._target]
        if _is_text(kind):
            texts, places = self._label_texts(values)
            self._check_classes(len(texts), len(values))
            if self._numeric_labels is None and any(text is not None for text in texts):
                self._numeric_labels = all(text is None or is_plain_number(text) for text in texts)
            if self._numeric_labels:
                numbers = np.append([np.nan if text is None else self._number(text) for text in texts], np.nan)
                return whole_numbers(numbers[places], name, self.source, self.n_rows)
            if None in texts or (places < 0).any():
                taken = [None if place < 0 else texts[place] for place in places.tolist()]
                return np.array(taken, dtype=object)
            # In an array of texts, each takes as much memory as the longest.
            is_long = max(map(len, texts), default=0) * len(values) > _LONG  # type: ignore[arg-type]
            return np.array(texts or [""], dtype=object if is_long else str)[places]
        if pa.types.is_boolean(kind):
            return np.asarray(values.to_numpy(zero_copy_only=False))  # None is a missing label
        found = self._feature(self._target, values)
        if not isinstance(found, Numbers):
            raise StreamError(
                f"{self.source}: the target {name!r} must be classes, got {kind}; classes are text or integers"
            )
        labels = whole_numbers(found.values, name, self.source, self.n_rows)
        if self.n_rows == 0:
            self._check_classes(len(np.unique(labels)), len(labels))
        return labels

    def _number(self, text: str) -> float:
        """A numeric label; an unusual spelling is refused, since "01" may be another class than "1"."""
        if not is_plain_number(text):
            raise StreamError(
                f"{self.source}: the target {self.names[self._target]!r} has the label {text!r} after row "
                f"{self.n_rows}, but numbers before; classes are all numbers or all text"
            )
        return float(text.replace(",", "."))

    def _check_classes(self, n_classes: int, n_rows: int) -> None:
        if self.n_rows == 0 and n_rows >= _MANY and 2 * n_classes > n_rows:
            raise StreamError(
                f"{self.source}: the target {self.names[self._target]!r} has {n_classes:,} different labels in its "
                f"first {n_rows:,} rows; is it the right column?"
            )


def _is_text(kind: pa.DataType) -> bool:
    inner = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(inner) or pa.types.is_large_string(inner) or pa.types.is_string_view(inner))


def is_plain_number(text: str) -> bool:
    """Whether a label is a number in its usual spelling, without leading zeros.

    >>> is_plain_number("1"), is_plain_number("-1.0"), is_plain_number("01")
    (True, True, False)
    """
    return _PLAIN.fullmatch(text) is not None
