"""The encoding of a table: which columns it has, what became of each, and the network's inputs in their order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from devdan.arrays import Floats
from devdan.encoding import column as one
from devdan.encoding.column import NUMBER, NUMERIC, ColumnEncoding, Key, Told
from devdan.encoding.rows import Numbers, Rows


class Instructions:
    """What the user says about columns, by name: ``nominal``, ``numeric``, ``dates`` (with how they are written)."""

    def __init__(
        self,
        nominal: Sequence[str] | None = None,
        numeric: Sequence[str] | None = None,
        dates: Sequence[str] | Mapping[str, str] | None = None,
        drop: Sequence[str] | None = None,
        max_categories: int = 64,
    ) -> None:
        self._told: dict[str, Told] = {}
        spelled = dict(dates) if isinstance(dates, Mapping) else dict.fromkeys(dates or (), "iso")
        named = {"nominal": nominal or (), "numeric": numeric or (), "date": spelled, "drop": drop or ()}
        for kind, names in named.items():
            for name in names:
                if name in self._told:
                    raise ValueError(f"the column {name!r} is named twice: as {self._told[name].kind} and as {kind}")
                self._told[name] = Told(kind, spelled.get(name, "iso") if kind == "date" else "iso", max_categories)
        self._usual = Told(max_categories=max_categories)

    def of(self, name: str) -> Told:
        """What is said about a column."""
        return self._told.get(name, self._usual)

    def check(self, names: Sequence[str]) -> None:
        """Raise a ``ValueError`` if a column is named that there is not."""
        for name, told in self._told.items():
            if name not in names:
                option = "dates" if told.kind == "date" else told.kind
                raise ValueError(f"{option} names the column {name!r}, but there are only {', '.join(names)}")


class Encoding:
    """Turns rows into inputs. It is not changed by learning: :meth:`learned` returns another one.

    >>> from devdan.encoding.tables import rows_of
    >>> rows = rows_of([{"age": 31, "city": "Bonn"}, {"age": 60, "city": "Köln"}])
    >>> X, encoding = Encoding().learned(rows)
    >>> X.tolist(), encoding.input_names
    ([[31.0, 1.0, 0.0], [60.0, 0.0, 1.0]], ['age', 'city=Bonn', 'city=Köln'])
    >>> encoding
    age   number
    city  nominal: 2 values (Bonn, Köln)
    """

    def __init__(
        self,
        columns: Sequence[ColumnEncoding] = (),
        order: Sequence[int] = (),
        n_numbered: int = 0,
        instructions: Instructions | None = None,
    ) -> None:
        self.columns = {column.name: column for column in columns}
        self.order = tuple(order)  # the inputs' numbers, as the network has them
        self.n_numbered = n_numbered  # inputs there have ever been
        self._instructions = instructions or Instructions()
        self._places = {number: place for place, number in enumerate(self.order)}
        self._is_plain = [column.inputs.get(NUMERIC) for column in columns] == list(self.order) and all(
            column.kind in (NUMBER, one.FLAG) and len(column.inputs) == 1 for column in columns
        )

    def __len__(self) -> int:
        return len(self.order)

    def place(self, number: int) -> int:
        """Where among the inputs one is, by its number."""
        return self._places[number]

    @property
    def places(self) -> dict[str, list[int]]:
        """Where the inputs of each column are; a column that is left out has none."""
        return {name: [self._places[n] for n in column.inputs.values()] for name, column in self.columns.items()}

    def changes(self, later: Encoding) -> tuple[list[int], int]:
        """The places of the inputs that a later one has no longer, and how many it has more, after the rest."""
        kept = set(later.order)
        gone = [place for place, number in enumerate(self.order) if number not in kept]
        return gone, len(later) - len(self) + len(gone)

    @classmethod
    def of_numbers(cls, names: Sequence[Any], instructions: Instructions | None = None) -> Encoding:
        """The encoding of columns that are known to hold numbers."""
        told = instructions or Instructions()
        columns = [one.of_number(name, number, told.of(name)) for number, name in enumerate(names)]
        return cls(columns, range(len(columns)), len(columns), told)

    # --- Learning ------------------------------------------------------------------------------------------------

    def learned(self, rows: Rows) -> tuple[Floats, Encoding]:
        """The inputs for these rows, and the encoding with what they taught it; columns may be new."""
        check_finite(rows)
        columns = dict(self.columns)
        wanted: list[tuple[int, int, Key, ColumnEncoding]] = []
        settled = True
        for position, (name, values) in enumerate(zip(rows.names, rows.columns(), strict=True)):
            known = columns.get(name)
            numeric = known is not None and known.kind != one.NOMINAL and isinstance(values, Numbers)
            if known is not None and known.is_settled and (numeric or known.left_out):
                continue
            settled = False
            column = ColumnEncoding(name, self._instructions.of(name)) if known is None else known.copied()
            columns[name] = column
            for row, key in column.learn(values, is_new=known is None):
                wanted.append((row, position, key, column))
        if settled:
            return self._applied(rows), self
        kept = {number for column in columns.values() for number in column.inputs.values()}
        order = [number for number in self.order if number in kept]
        n_numbered = self.n_numbered
        for _, _, key, column in sorted(wanted, key=lambda need: need[:2]):
            column.inputs[key] = n_numbered
            order.append(n_numbered)
            n_numbered += 1
        grown = Encoding(list(columns.values()), order, n_numbered, self._instructions)
        return grown._applied(rows), grown

    # --- Use -----------------------------------------------------------------------------------------------------

    def applied(self, rows: Rows) -> Floats:
        """The inputs for these rows, by what has been learned; columns that are not known are ignored."""
        check_finite(rows)
        return self._applied(rows)

    def _applied(self, rows: Rows) -> Floats:
        if self._is_plain and not rows.others and rows.names == tuple(self.columns):
            return rows.numbers
        X = np.zeros((len(rows), len(self)))
        there = set()
        for name, values in zip(rows.names, rows.columns(), strict=True):
            if name in self.columns:
                self.columns[name].fill(values, X, self._places)
                there.add(name)
        for name, column in self.columns.items():
            if name not in there:
                column.fill(Numbers(np.full(len(rows), np.nan)), X, self._places)
        return X

    def without_gaps(self, X: Floats) -> Floats:
        """The inputs with the neutral value where a category or a date is missing; missing numbers stay."""
        neutral = {"value": 0.0, "shared": 0.0, "sine": 0.5, "cosine": 0.5}
        filled = X.copy()
        for column in self.columns.values():
            for key, number in column.inputs.items():
                if key.part in neutral:
                    values = filled[:, self._places[number]]
                    values[np.isnan(values)] = neutral[key.part]
        return filled

    # --- What it says --------------------------------------------------------------------------------------------

    @property
    def input_names(self) -> list[str]:
        """The names of the inputs, in order."""
        names = {
            number: column.input_name(key) for column in self.columns.values() for key, number in column.inputs.items()
        }
        return [names[number] for number in self.order]

    @property
    def notes(self) -> list[str]:
        """What the user should know about columns that were left out or read in some special way."""
        return [note for column in self.columns.values() for note in column.notes()]

    def new_notes(self, later: Encoding) -> list[str]:
        """The notes that a later one has more."""
        if later is self:
            return []
        before = set(self.notes)
        return [note for note in later.notes if note not in before]

    def __repr__(self) -> str:
        width = max(map(len, self.columns), default=0)
        return "\n".join(f"{name:<{width}}  {column.in_words()}" for name, column in self.columns.items())


def check_finite(rows: Rows) -> None:
    """Raise a ``ValueError`` that names the first infinity, if there is one."""
    infinite = np.isinf(rows.numbers)
    if infinite.any():
        row, place = np.argwhere(infinite)[0]
        raise ValueError(
            f"row {row + 1} has infinity in the column {rows.names_of_numbers[place]!r}; a missing value is NaN, all "
            "others must be finite"
        )
