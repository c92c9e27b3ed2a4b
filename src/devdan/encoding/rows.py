"""The one form of a table that all others are converted to: named columns of numbers, texts or times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from devdan.arrays import Floats, Integers
from devdan.encoding.values import NO_TIME, Vocabulary, plain_text, time_text

Index = slice | npt.NDArray[Any]


@dataclass(frozen=True)
class Numbers:
    """A column of numbers; NaN is missing. ``flags``: they are true (1) and false (0)."""

    values: Floats
    flags: bool = False

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, index: Index) -> Numbers:
        return Numbers(self.values[index], self.flags)

    @property
    def missing(self) -> npt.NDArray[np.bool_]:
        return np.isnan(self.values)

    def objects(self) -> list[Any]:
        """The values as Python objects; None is missing."""
        return [None if value != value else value for value in self.values.tolist()]  # noqa: PLR0124


@dataclass(frozen=True)
class Texts:
    """A column of texts: for each row a position in the vocabulary, or -1. ``declared``: its type is nominal.

    ``decimal`` is the decimal sign of its numbers, if it has been said; ``sample`` are values from all over the file,
    by which the kind of the column is judged.
    """

    places: Integers
    vocabulary: Vocabulary
    declared: bool = False
    decimal: str = ""
    sample: Texts | None = None

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, index: Index) -> Texts:
        return replace(self, places=self.places[index])

    @property
    def missing(self) -> npt.NDArray[np.bool_]:
        return np.append(self.vocabulary.missing, True)[self.places]

    def objects(self) -> list[Any]:
        """The texts; None is missing."""
        texts = [*self.vocabulary.texts, None]
        return [texts[place] for place in self.places.tolist()]

    def in_order(self) -> tuple[list[int], list[int]]:
        """Positions in the vocabulary in order of appearance, and the first row of each."""
        n = len(self.places)
        first = np.full(len(self.vocabulary) + 1, n)
        first[self.places[::-1]] = np.arange(n - 1, -1, -1)
        used = np.flatnonzero(first[:-1] < n)
        used = used[np.argsort(first[used])]
        return used.tolist(), first[used].tolist()


@dataclass(frozen=True)
class Times:
    """A column of times in microseconds since 1970, in UTC if they had a zone. ``clock``: since midnight."""

    values: Integers
    clock: bool = False

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, index: Index) -> Times:
        return replace(self, values=self.values[index])

    @property
    def missing(self) -> npt.NDArray[np.bool_]:
        return np.equal(self.values, NO_TIME)

    def objects(self) -> list[Any]:
        """As texts in ISO 8601."""
        return [None if value == NO_TIME else time_text(value) for value in self.values.tolist()]


Column = Numbers | Texts | Times


class Rows:
    """Rows of a table. Like an array, they can be counted and sliced: ``rows[:10]``, ``rows[[3, 1]]``, ``rows[:, 0]``.

    All columns of numbers are in ``numbers``, an array with a row for each row of the table; the other columns are in
    ``others``, by their position.
    """

    def __init__(
        self,
        names: Sequence[str],
        numbers: Floats,
        others: Mapping[int, Texts | Times] | None = None,
        flags: frozenset[int] = frozenset(),
    ) -> None:
        self.names, self.numbers, self.others, self.flags = tuple(names), numbers, dict(others or {}), flags

    @classmethod
    def of(cls, names: Sequence[str], columns: Sequence[Column], n_rows: int | None = None) -> Rows:
        numeric = [column for column in columns if isinstance(column, Numbers)]
        n_rows = len(columns[0]) if n_rows is None else n_rows
        numbers = np.empty((n_rows, len(numeric)))
        for place, column in enumerate(numeric):
            numbers[:, place] = column.values
        others = {place: column for place, column in enumerate(columns) if not isinstance(column, Numbers)}
        flags = frozenset(k for k, column in enumerate(columns) if isinstance(column, Numbers) and column.flags)
        return cls(names, numbers, others, flags)

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def shape(self) -> tuple[int, int]:
        return len(self), len(self.names)

    ndim = 2

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, tuple):  # by row and column, like an array
            return np.asarray(self)[index]
        if not isinstance(index, slice):
            index = np.asarray(index) if np.size(index) else np.zeros(0, np.int64)
        return Rows(
            self.names, self.numbers[index], {place: column[index] for place, column in self.others.items()}, self.flags
        )

    def columns(self) -> list[Column]:
        numbers = iter(self.numbers.T)
        return [
            self.others[place] if place in self.others else Numbers(next(numbers), place in self.flags)
            for place in range(len(self.names))
        ]

    @property
    def names_of_numbers(self) -> list[str]:
        return [name for place, name in enumerate(self.names) if place not in self.others]

    def select(self, places: Sequence[int]) -> Rows:
        """Some of the columns, in this order."""
        if list(places) == list(range(len(self.names))):
            return self
        columns = self.columns()
        return Rows.of([self.names[place] for place in places], [columns[place] for place in places], len(self))

    def objects(self) -> list[list[Any]]:
        """The values of each column as Python objects."""
        return [column.objects() for column in self.columns()]

    def dicts(self) -> list[dict[str, Any]]:
        """A dict for each row, without missing values."""
        return [
            {name: value for name, value in zip(self.names, row, strict=True) if value is not None}
            for row in zip(*self.objects(), strict=True)
        ]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """As an array: of numbers if all columns are numeric, otherwise of objects."""
        if not self.others:
            return np.array(self.numbers, dtype=dtype, copy=True) if copy else np.asarray(self.numbers, dtype=dtype)
        array = np.empty(self.shape, dtype=object)
        for place, values in enumerate(self.objects()):
            array[:, place] = values
        return np.asarray(array, dtype=dtype)

    def __repr__(self) -> str:
        return f"<Rows: {len(self):,} of {', '.join(self.names[:8])}{', …' if len(self.names) > 8 else ''}>"


def joined(parts: Sequence[Any]) -> Any:
    """Rows, or arrays, concatenated."""
    if len(parts) == 1:
        return parts[0]
    if not isinstance(parts[0], Rows):
        return np.concatenate(parts)
    if not any(part.others or part.flags != parts[0].flags for part in parts):
        return Rows(parts[0].names, np.concatenate([part.numbers for part in parts]), {}, parts[0].flags)
    columns = [_joined_columns(list(same)) for same in zip(*(part.columns() for part in parts), strict=True)]
    return Rows.of(parts[0].names, columns)


def _joined_columns(parts: list[Column]) -> Column:
    first = parts[0]
    numbers = [part for part in parts if isinstance(part, Numbers)]
    flags = {part.flags for part in numbers if not part.missing.all()}
    if len(numbers) == len(parts) and len(flags) <= 1:
        return Numbers(np.concatenate([part.values for part in numbers]), True in flags)
    if isinstance(first, Times) and all(isinstance(part, Times) and part.clock == first.clock for part in parts):
        return Times(np.concatenate([part.values for part in parts]), first.clock)  # type: ignore[union-attr]
    if isinstance(first, Texts) and all(
        isinstance(part, Texts) and part.vocabulary is first.vocabulary for part in parts
    ):
        return replace(first, places=np.concatenate([part.places for part in parts]))  # type: ignore[union-attr]
    values = [value for part in parts for value in as_texts(part).objects()]
    texts = [part for part in parts if isinstance(part, Texts)]
    decimal = next((part.decimal for part in texts if part.decimal), "")
    sample = next((part.sample for part in texts if part.sample is not None), None)
    return replace(texts_of(values, getattr(first, "declared", False)), decimal=decimal, sample=sample)


def texts_of(values: Sequence[str | None], declared: bool = False) -> Texts:
    """A column of texts; None is missing."""
    places: dict[str, int] = {}
    found = np.array([-1 if value is None else places.setdefault(value, len(places)) for value in values], np.int64)
    return Texts(found, Vocabulary(list(places)), declared)


def as_texts(column: Column) -> Texts:
    """A column as texts; a number or a time has one spelling."""
    if isinstance(column, Texts):
        return column
    if isinstance(column, Times):
        return texts_of(column.objects())
    if column.flags:
        return texts_of([None if value is None else "true" if value else "false" for value in column.objects()])
    distinct, places = np.unique(column.values, return_inverse=True)
    known = distinct[~np.isnan(distinct)]
    places = np.where(np.isnan(column.values), -1, places.reshape(-1))
    return Texts(places, Vocabulary([plain_text(value) for value in known.tolist()]))


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
