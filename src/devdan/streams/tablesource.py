"""A table that is read in order, whatever holds it: what a reader makes, and what streams and tables are made of."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from devdan.encoding.rows import Texts, distinct
from devdan.streams.columns import BatchConverter, is_plain_number, kept_columns, target_column
from devdan.streams.reading import Reading
from devdan.streams.stream import Chunk, Stream, StreamError, Table, TableBlock, read_ahead

Batch = list[Any]  # columns, each an array of Arrow or, where one may hold several types, a list of Python objects
# Starts a pass. Of the columns wanted, by position, come first those to be read, of which some stay text even if they
# look like numbers, and then those to come exactly as they are written.
Batches = Callable[[Sequence[int], Sequence[int], Collection[int]], Generator[Batch, None, None]]


@dataclass(frozen=True)
class TableSource:
    """The columns of a table, and its rows in batches; ``batches`` starts a pass."""

    name: str
    origin: str  # for messages
    names: tuple[str, ...]
    batches: Batches
    named: bool = True  # whether the names are its own
    n_rows: int | None = None
    estimated_rows: int | None = None
    target: int | None = None  # the column with the labels, unless another is named
    left_out: frozenset[int] = frozenset()  # columns that are no samples, such as the index of a frame
    values: Mapping[int, Sequence[str]] = field(default_factory=dict)  # declared values, by column
    closed: bool = False  # and no others
    numeric: frozenset[int] = frozenset()  # columns that are declared to hold numbers
    samples: Mapping[int, Texts] = field(default_factory=dict)  # texts from all over the table, by column
    is_typed: bool = False  # whether a text is never a number
    is_json: bool = False
    is_single_pass: bool = False

    def stream(self, reading: Reading, chunk: int, name: str | None = None) -> Stream:
        """The rows as samples with labels."""
        labels = target_column(self.names, reading.target, self.origin, self.named, self.target)
        kept = kept_columns(self.names, labels, [*reading.drop, *self._beside(labels)], self.origin, self.named)
        features = [place for place in kept if place != labels]
        known = dict(zip(kept, distinct([self.names[place] for place in kept]), strict=True))
        as_text = {place for place in features if known[place] in reading.as_written}
        order = [*features, labels]
        classes = self.values.get(labels)
        if classes and all(map(is_plain_number, classes)):  # classes that are numbers need no declaration
            classes = None
        declared = {order.index(place): values for place, values in self.values.items() if place in features}
        declared |= {} if classes is None else {len(features): classes}
        numeric_labels = None if not self.is_typed else False
        if labels in self.values or labels in self.numeric:
            numeric_labels = classes is None

        samples = {order.index(place): some for place, some in self.samples.items() if place in features}

        def blocks() -> Generator[Chunk, None, None]:
            converter = BatchConverter(
                [known[place] for place in order], len(features), self.origin, declared, self.closed, numeric_labels,
                reading.decimal, samples,
            )  # fmt: skip
            with closing(self.batches(features, [labels], as_text)) as batches:
                for batch in batches:
                    if len(batch[-1]) > 0:
                        yield converter.chunk(batch)
            if converter.n_rows == 0:
                raise StreamError(f"{self.origin} has no rows")

        return Stream(
            name or self.name,
            blocks if self.is_single_pass else lambda: read_ahead(blocks()),
            chunk,
            tuple(known[place] for place in features),
            self.n_rows,
            self.estimated_rows,
            None if classes is None else tuple(classes),
            self.origin,
            is_single_pass=self.is_single_pass,
            target=self.names[labels],
        )

    def _beside(self, labels: int) -> list[int]:
        return [place for place in self.left_out if place != labels]

    def table(self, reading: Reading) -> Table:
        """The rows without labels."""
        names = distinct(self.names)

        def read(
            columns: Sequence[int], keep: Sequence[int], as_text: Collection[int]
        ) -> Generator[TableBlock, None, None]:
            values = {place: self.values[column] for place, column in enumerate(columns) if column in self.values}
            chosen = [names[column] for column in columns]
            converter = BatchConverter(chosen, None, self.origin, values, self.closed, decimal=reading.decimal)
            with closing(self.batches(columns, keep, as_text)) as batches:
                for batch in batches:
                    n_rows = len(batch[0]) if batch else 0
                    if n_rows > 0:
                        yield converter.rows(batch, n_rows), batch[len(columns) :]
            if converter.n_rows == 0 and not self.is_single_pass:
                raise StreamError(f"{self.origin} has no rows")

        return Table(
            self.origin,
            tuple(names),
            read if self.is_single_pass else lambda *which: read_ahead(read(*which)),
            self.named,
            self.n_rows,
            self.estimated_rows,
            self.is_json,
        )
