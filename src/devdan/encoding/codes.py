"""Tables as plain numbers, for models of other libraries and for the paper's streams.

Numbers are unchanged, flags are 0 and 1, times are seconds, and a text is 0 for the first value that appears in the
column, 1 for the next, and so on, or follows the order of its declared values. The models of this package do not need
it: their encoding is better, and is kept with the model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from devdan.arrays import Floats
from devdan.encoding.column import ColumnEncoding
from devdan.encoding.rows import Rows, Texts
from devdan.encoding.values import NO_TIME


class OrdinalCodes:
    """Codes for the texts of each column, in order of appearance or as declared.

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
            # Values that are numbers stay numbers, even if they are said to be nominal.
            column = replace(given, declared=False) if isinstance(given, Texts) else given
            if known.decided(column):
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
