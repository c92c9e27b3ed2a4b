"""The columns of a table: which of them has the labels, and batches of Arrow as chunks of rows and labels."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from devdan.arrays import Floats, Integers
from devdan.encoding.encoding import EncodingWarning
from devdan.encoding.rows import Column, Numbers, Rows, Texts
from devdan.encoding.tables import TableError, arrow_column, column_of
from devdan.encoding.values import is_doubtful_label, is_no_label
from devdan.streams.stream import Chunk, StreamError

_TARGETS = ("target", "class", "label")
NAMELESS = "if its first line has their names, say so with --header (header=True)"
_LONG = 1 << 24  # characters of all labels of a block
_FLAGS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
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

    A batch is a list of columns: arrays of Arrow or, where one column may hold several types, lists of Python objects.
    ``values`` are the declared values of nominal columns; if they are ``closed``, no others may appear.
    ``numeric_labels``: labels are texts, but of numbers; if None, the first labels decide. ``decimal`` is the decimal
    sign of texts, if the user has said it; ``samples`` are texts of columns from all over the table.
    """

    def __init__(
        self,
        names: Sequence[str],
        target: int | None,
        source: str,
        values: Mapping[int, Sequence[str]] | None = None,
        closed: bool = False,
        numeric_labels: bool | None = False,
        decimal: str | None = None,
        samples: Mapping[int, Texts] | None = None,
    ) -> None:
        self.names, self.target, self.source = list(names), target, source
        self.features = [column for column in range(len(names)) if column != target]
        self.n_rows = 0  # rows converted so far
        self._declared = set(values or {})
        self._values = {column: set(known) for column, known in (values or {}).items()} if closed else {}
        self._numeric_labels, self._decimal = numeric_labels, decimal
        self._samples = {column: replace(some, decimal=decimal or "") for column, some in (samples or {}).items()}
        self._are_flags = False  # whether labels that are texts are true and false
        self._doubtful: set[str] = set()  # classes of which a note says that they may be none

    def chunk(self, columns: Sequence[Any]) -> Chunk:
        """The batch's samples."""
        return self.labelled(self._features(columns), columns[self._target])

    def labelled(self, rows: Rows, labels: Any) -> Chunk:
        self._check_finite(rows)
        y = self._labels(labels)
        self.n_rows += len(rows)
        return rows, y

    def rows(self, columns: Sequence[Any], n_rows: int) -> Rows:
        """The batch's rows, without labels."""
        rows = self._features(columns, n_rows)
        self._check_finite(rows)
        self.n_rows += len(rows)
        return rows

    def _features(self, columns: Sequence[Any], n_rows: int | None = None) -> Rows:
        found = [self._feature(column, columns[column]) for column in self.features]
        return Rows.of([self.names[column] for column in self.features], found, n_rows)

    def _check_finite(self, rows: Rows) -> None:
        check_finite(rows.numbers, rows.names_of_numbers, self.source, self.n_rows)

    def _feature(self, column: int, values: Any) -> Column:
        name = self.names[column]
        try:
            is_list = isinstance(values, list)
            found = column_of(values, name, self.n_rows) if is_list else arrow_column(values, name)
        except TableError as error:
            raise StreamError(f"{self.source}: {error}") from error
        if isinstance(found, Texts):
            if column in self._values:
                self._check_declared(column, found.vocabulary.texts, found.vocabulary.missing, found.places)
            declared = found.declared or column in self._declared
            return replace(found, declared=declared, decimal=self._decimal or "", sample=self._samples.get(column))
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
        if isinstance(values, pa.ChunkedArray):
            values = pa.concat_arrays(values.chunks) if values.num_chunks else pa.array([], values.type)
        coded = values if pa.types.is_dictionary(values.type) else pc.dictionary_encode(values)
        texts = [
            None if value is None or is_no_label(str(value)) else str(value).strip()
            for value in coded.dictionary.to_pylist()
        ]
        for text in texts:
            if text is not None and is_doubtful_label(text) and text not in self._doubtful:
                self._doubtful.add(text)
                warnings.warn(
                    f"{self.source}: the target {self.names[self._target]!r} has the class {text!r}; if it means that "
                    "there is no label, leave it empty",
                    EncodingWarning,
                    stacklevel=2,
                )
        places = pc.fill_null(pc.cast(coded.indices, pa.int64()), -1).to_numpy(zero_copy_only=False)
        self._check_declared(self._target, texts, [text is None for text in texts], places)
        return texts, places

    def _labels(self, values: Any) -> npt.NDArray[Any]:
        if isinstance(values, list):
            values = self._label_array(values)
        kind, name = values.type, self.names[self._target]
        if _is_text(kind):
            texts, places = self._label_texts(values)
            self._check_classes(len(texts), len(values))
            known = [text for text in texts if text is not None]
            if self._numeric_labels is None and known:
                self._are_flags = all(text in _FLAGS for text in known)
                self._numeric_labels = not self._are_flags and all(map(is_plain_number, known))
            if self._are_flags:
                flags: list[Any] = [None if text is None else self._flag(text) for text in texts]
                return _dense([*flags, None], places)
            if self._numeric_labels:
                numbers = np.append([np.nan if text is None else self._number(text) for text in texts], np.nan)
                return whole_numbers(numbers[places], name, self.source, self.n_rows)
            if None in texts or (places < 0).any():
                taken = [None if place < 0 else texts[place] for place in places.tolist()]
                return np.array(taken, dtype=object)
            # In an array of texts, each takes as much memory as the longest.
            is_long = max(map(len, known), default=0) * len(values) > _LONG
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

    def _label_array(self, values: list[Any]) -> pa.Array:
        try:
            return pa.array(values)
        except (pa.ArrowException, OverflowError, TypeError) as error:
            raise StreamError(
                f"{self.source}: its labels are of several types after row {self.n_rows}: {error}"
            ) from error

    def _flag(self, text: str) -> bool:
        if text not in _FLAGS:
            raise StreamError(
                f"{self.source}: the label {text!r} after row {self.n_rows} is neither true nor false, as those before"
            )
        return _FLAGS[text]

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


def _dense(values: list[Any], places: Integers) -> npt.NDArray[Any]:
    """The values at these places, as an array of flags unless some are missing."""
    taken = [values[place] for place in places.tolist()]
    return np.array(taken, dtype=object if None in taken else bool)


def _is_text(kind: pa.DataType) -> bool:
    inner = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(inner) or pa.types.is_large_string(inner) or pa.types.is_string_view(inner))


def is_plain_number(text: str) -> bool:
    """Whether a label is a number in its usual spelling, without leading zeros.

    >>> is_plain_number("1"), is_plain_number("-1.0"), is_plain_number("01")
    (True, True, False)
    """
    return _PLAIN.fullmatch(text) is not None
