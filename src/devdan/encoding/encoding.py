"""The encoding of a table: its columns, their inputs in the order of the network, and what turns rows into inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from devdan.arrays import Floats, Integers
from devdan.encoding.column import NUMERIC, ColumnEncoding, ColumnOptions, InputKey
from devdan.encoding.column_notes import became, notes
from devdan.encoding.evidence import FLAG, NOMINAL, NUMBER
from devdan.encoding.rows import Column, Numbers, Rows, Texts
from devdan.encoding.values import NO_TIME

_NUMBER_TYPES = frozenset((float, int, bool, np.float64, np.float32, np.int64, np.int32, np.bool_))
_LEFT_OUT = -1


class EncodingWarning(UserWarning):
    """A column of a table was left out, or read in a way that the user should know of."""


class Instructions:
    """What the user says about columns, by name: ``nominal``, ``numeric``, ``dates`` (perhaps with their formats)."""

    def __init__(
        self,
        nominal: Sequence[str] | None = None,
        numeric: Sequence[str] | None = None,
        dates: Sequence[str] | Mapping[str, str] | None = None,
        drop: Sequence[str] | None = None,
        max_categories: int = 64,
    ) -> None:
        self._by_name: dict[str, ColumnOptions] = {}
        formats = dict(dates) if isinstance(dates, Mapping) else dict.fromkeys(dates or (), "iso")
        named = {"nominal": nominal or (), "numeric": numeric or (), "date": formats, "drop": drop or ()}
        for kind, names in named.items():
            for name in names:
                if name in self._by_name:
                    first = self._by_name[name].kind
                    raise ValueError(f"the column {name!r} is named twice: as {first} and as {kind}")
                date_format = formats.get(name, "iso") if kind == "date" else "iso"
                self._by_name[name] = ColumnOptions(kind, date_format, max_categories)
        self._default = ColumnOptions(max_categories=max_categories)

    def of(self, name: str) -> ColumnOptions:
        """What is said about a column."""
        return self._by_name.get(name, self._default)

    def check(self, names: Sequence[str]) -> None:
        """Raise a ``ValueError`` if a named column does not exist."""
        for name, options in self._by_name.items():
            if name not in names:
                option = "dates" if options.kind == "date" else options.kind
                raise ValueError(f"{option} names the column {name!r}, but there are only {', '.join(names)}")


class Encoding:
    """Turns rows into inputs. Learning does not change it: :meth:`learned` returns a new one.

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
        self.order = tuple(order)  # the inputs' numbers, in the order of the network
        self.n_numbered = n_numbered  # how many inputs there have ever been
        self._instructions = instructions or Instructions()
        self._places = {number: place for place, number in enumerate(self.order)}
        self._is_plain = [column.inputs.get(NUMERIC) for column in columns] == list(self.order) and all(
            column.kind in (NUMBER, FLAG) and len(column.inputs) == 1 for column in columns
        )

    def __len__(self) -> int:
        return len(self.order)

    def place(self, number: int) -> int:
        """The position of an input, by its number."""
        return self._places[number]

    @property
    def places(self) -> dict[str, list[int]]:
        """The positions of the inputs of each column; a column that is left out has none."""
        return {name: [self._places[n] for n in column.inputs.values()] for name, column in self.columns.items()}

    def changes(self, later: Encoding) -> tuple[list[int], int]:
        """The positions of inputs that a later encoding has removed, and how many it has added at the end."""
        kept = set(later.order)
        removed = [place for place, number in enumerate(self.order) if number not in kept]
        return removed, len(later) - len(self) + len(removed)

    @classmethod
    def of_numbers(cls, names: Sequence[Any], instructions: Instructions | None = None) -> Encoding:
        """The encoding of columns that are known to hold numbers."""
        known = instructions or Instructions()
        columns = [ColumnEncoding.of_number(name, number, known.of(name)) for number, name in enumerate(names)]
        return cls(columns, range(len(columns)), len(columns), known)

    # --- Learning ------------------------------------------------------------------------------------------------

    def learned(self, rows: Rows) -> tuple[Floats, Encoding]:
        """The inputs for these rows, and the encoding that has learned from them; columns may be new."""
        check_finite(rows)
        columns = dict(self.columns)
        wanted: list[tuple[int, int, InputKey, ColumnEncoding]] = []
        learning: list[tuple[int, ColumnEncoding, Column, Column, bool]] = []
        for position, (name, values) in enumerate(zip(rows.names, rows.columns(), strict=True)):
            known = columns.get(name)
            if known is not None and known.is_settled:
                numeric = known.kind != NOMINAL and isinstance(values, Numbers)
                if numeric or (known.left_out and not known.raises_doubt(values)):
                    continue
            column = ColumnEncoding(name, self._instructions.of(name)) if known is None else known.copied()
            columns[name] = column
            later = column.count(values)
            learning.append((position, column, values, later, known is None))
        if not learning:
            return self._applied(rows), self
        counted = [column.evidence for column in columns.values()]
        decimal = "," if sum(seen.commas for seen in counted) > sum(seen.points for seen in counted) else "."
        for position, column, values, later, is_new in learning:
            for row, key in column.learn(values, later, is_new, decimal):
                wanted.append((row, position, key, column))
        kept = {number for column in columns.values() for number in column.inputs.values()}
        order = [number for number in self.order if number in kept]
        n_numbered = self.n_numbered
        for _, _, key, column in sorted(wanted, key=lambda need: need[:2]):
            column.inputs[key] = n_numbered
            order.append(n_numbered)
            n_numbered += 1
        grown = Encoding(list(columns.values()), order, n_numbered, self._instructions)
        return grown._applied(rows), grown

    def without(self, rows: Rows, names: Sequence[str]) -> Encoding:
        """The encoding without the values that these rows have in some columns: their inputs, and what cites them.

        >>> from devdan.encoding.tables import rows_of
        >>> rows = rows_of([{"age": 31, "name": "Ann"}, {"age": 60, "name": "Bob"}])
        >>> _, encoding = Encoding().learned(rows)
        >>> encoding.without(rows[1:], ["name"]).input_names
        ['age', 'name=Ann']
        """
        columns = dict(self.columns)
        for name, values in zip(rows.names, rows.columns(), strict=True):
            if name in names and name in columns:
                columns[name] = columns[name].without(values)
        kept = {number for column in columns.values() for number in column.inputs.values()}
        order = [number for number in self.order if number in kept]
        return Encoding(list(columns.values()), order, self.n_numbered, self._instructions)

    # --- Use -----------------------------------------------------------------------------------------------------

    def applied(self, rows: Rows) -> Floats:
        """The inputs for these rows; unknown columns are ignored."""
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

    def unlike(self, rows: Rows) -> dict[str, str]:
        """A warning for each column of which most values are of another kind than was learned, by its name."""
        said: dict[str, str] = {}
        if self._is_plain and not rows.others:
            return said
        for name, values in zip(rows.names, rows.columns(), strict=True):
            known = self.columns.get(name)
            if known is not None and (value := known.unlike(values)):
                said[name] = (
                    f"the column {name!r} was learned as {known.kind}, but now holds values such as "
                    f"{value[:40]!r}, which are missing to the model"
                )
        return said

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

    # --- Files ---------------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """The encoding as JSON, for a model file."""
        columns = [column.to_json() for column in self.columns.values()]
        return {"columns": columns, "order": list(self.order), "n_numbered": self.n_numbered}

    @classmethod
    def of_json(cls, content: Any, instructions: Instructions) -> Encoding:
        """An encoding from a model file; raises a ``ValueError``, ``TypeError`` or ``KeyError`` if it is invalid."""
        columns = [ColumnEncoding.of_json(column) for column in content["columns"]]
        order, n_numbered = [int(number) for number in content["order"]], int(content["n_numbered"])
        used = [number for column in columns for number in column.inputs.values()]
        in_range = all(0 <= number < n_numbered for number in order)
        if sorted(used) != sorted(order) or len(set(order)) != len(order) or not in_range:
            raise ValueError("its encoding does not number its inputs consistently")
        if len({column.name for column in columns}) != len(columns):
            raise ValueError("its encoding has two columns of the same name")
        if any(column.options != instructions.of(column.name) for column in columns):
            raise ValueError("its encoding and its options do not match")
        instructions.check([column.name for column in columns])
        return cls(columns, order, n_numbered, instructions)

    # --- Description ---------------------------------------------------------------------------------------------

    @property
    def input_names(self) -> list[str]:
        """The names of the inputs, in order."""
        names = {
            number: column.input_name(key) for column in self.columns.values() for key, number in column.inputs.items()
        }
        return [names[number] for number in self.order]

    @property
    def notes(self) -> list[str]:
        """What the user should know about columns that were left out or interpreted."""
        return [note for column in self.columns.values() for note in notes(column)]

    def new_notes(self, later: Encoding) -> list[str]:
        """The notes that a later encoding adds."""
        if later is self:
            return []
        before = set(self.notes)
        return [note for note in later.notes if note not in before]

    def records(self) -> list[dict[str, Any]]:
        """What became of each column, for JSON, pages and consoles.

        >>> from devdan import DEVDAN
        >>> model = DEVDAN().fit([{"age": 31, "city": "Bonn"}, {"age": 60, "city": "Köln"}], [0, 1])
        >>> [(column["name"], column["became"]) for column in model.encoding_.records()]
        [('age', 'number'), ('city', 'nominal: 2 values (Bonn, Köln)')]
        """
        return [
            {
                "name": str(name),
                "became": became(column),
                "kind": column.kind or None,
                "left_out": column.left_out or None,
                "values": column.values,
                "periods": column.periods,
                "n_shared": column.n_shared,
            }
            for name, column in self.columns.items()
        ]

    def __repr__(self) -> str:
        width = max(map(len, self.columns), default=0)
        return "\n".join(f"{name:<{width}}  {became(column)}" for name, column in self.columns.items())


def check_finite(rows: Rows) -> None:
    """Raise a ``ValueError`` that names the first infinity, if there is one."""
    infinite = np.isinf(rows.numbers)
    if infinite.any():
        row, place = np.argwhere(infinite)[0]
        raise ValueError(
            f"row {row + 1} has infinity in the column {rows.names_of_numbers[place]!r}; a missing value is NaN, all "
            "others must be finite"
        )


class SingleRow:
    """:meth:`Encoding.applied` for one dict, many times faster, if it holds only numbers and known categories.

    ``settled``: such a row would not change the encoding, nor raise doubts about the kind of a column.
    """

    def __init__(self, encoding: Encoding) -> None:
        columns = encoding.columns.items()
        self.settled = all(column.is_settled for _, column in columns)
        self.settled = self.settled and all(column.knows_only_words for _, column in columns)
        self._numbers: dict[Any, int] = {}
        self._categories: dict[Any, tuple[Integers, dict[str, int]]] = {}
        for name, column in columns:
            places = {key: encoding.place(number) for key, number in column.inputs.items()}
            if column.left_out:
                self._numbers[name] = _LEFT_OUT
            elif column.kind in (NUMBER, FLAG) and len(places) == 1:
                self._numbers[name] = places[NUMERIC]
            elif column.kind == NOMINAL:
                table = {key.of: place for key, place in places.items() if key.part == "value"}
                self._categories[name] = np.array(list(places.values()), np.int64), table

    def fill(self, x: Mapping[Any, Any], row: Floats) -> bool:
        """Write the inputs into the row; returns False if the sample needs :meth:`Encoding.applied`."""
        row.fill(np.nan)
        values = row[0]
        for name, value in x.items():
            if type(value) in _NUMBER_TYPES:
                place = self._numbers.get(name)
                if place is None:
                    return False
                if place != _LEFT_OUT:
                    values[place] = value
            elif type(value) is str and name in self._categories:
                own, table = self._categories[name]
                place = table.get(value)
                if place is None:
                    return False
                values[own] = 0.0
                values[place] = 1.0
            else:
                return False
        return True


class OrdinalCodes:
    """Tables as plain numbers, for models of other libraries and for the paper's streams.

    Numbers stay, flags are 0 and 1, times are seconds, and texts are coded 0, 1, … by column, in order of appearance or
    in the order of their declared values. The models of this package do not need it: their encoding is better, and is
    kept with the model.

    >>> from devdan.encoding.tables import rows_of
    >>> codes = OrdinalCodes({"size": ["S", "M", "L"]})
    >>> codes.numbers(rows_of([{"city": "Köln", "size": "L"}, {"city": "Bonn", "size": "S"}])).tolist()
    [[0.0, 2.0], [1.0, 0.0]]
    """

    def __init__(self, declared: Mapping[str, Sequence[str]] | None = None) -> None:
        self._kinds: dict[str, ColumnEncoding] = {}
        self._codes = {name: {value: k for k, value in enumerate(values)} for name, values in (declared or {}).items()}

    def numbers(self, rows: Rows) -> Floats:
        """The rows as numbers; texts that are new get new codes."""
        if not rows.others:
            return rows.numbers
        X = np.full(rows.shape, np.nan)
        for place, (name, given) in enumerate(zip(rows.names, rows.columns(), strict=True)):
            known = self._kinds.setdefault(name, ColumnEncoding(name))
            # Values that are numbers stay numbers, even if they are declared nominal.
            column = replace(given, declared=False) if isinstance(given, Texts) else given
            known.evidence.count(column)
            if known.judged(column):
                numbers, times, words = known.read(column)
                if words is not None:
                    X[:, place] = self._coded(name, words)
                if times is not None:
                    X[:, place] = np.where(times == NO_TIME, X[:, place], times / 1e6)
                if numbers is not None:
                    X[:, place] = np.where(np.isnan(numbers), X[:, place], numbers)
        return X

    def _coded(self, name: str, column: Texts) -> Floats:
        codes = self._codes.setdefault(name, {})
        table = np.full(len(column.vocabulary) + 1, np.nan)
        for place in column.in_order()[0]:
            table[place] = codes.setdefault(column.vocabulary.texts[place], len(codes))
        coded: Floats = table[column.places]
        return coded
