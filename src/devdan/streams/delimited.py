"""Delimited text as streams, read by Arrow one block at a time."""

from __future__ import annotations

import csv
import re
from collections.abc import Collection, Generator, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pyarrow as pa

from devdan.encoding.rows import distinct
from devdan.encoding.values import MISSING as _MISSING
from devdan.streams import rowends
from devdan.streams.columns import NAMELESS, Columns, is_plain_number, kept_columns, target_column
from devdan.streams.layout import BLOCK, LONGEST_LINE, EndlessRowError, Layout, TextBlock, lines
from devdan.streams.stream import Chunk, Stream, StreamError, read_ahead
from devdan.streams.unlabelled import Block, Table

NO_LABEL = ("", "?", "NA", "NaN", "nan")  # texts that mean a missing label


def stream(
    layout: Layout,
    target: str | int | None,
    drop: Sequence[str | int],
    name: str,
    chunk: int,
    as_text: Collection[str] = (),
) -> Stream:
    """Open a text as a stream; the columns ``as_text`` stay as they are written."""
    source = str(layout.path)
    labels = target_column(layout.names, target, source, layout.named, layout.target)
    kept = kept_columns(layout.names, labels, drop, source, layout.named)
    if all(map(is_plain_number, layout.values.get(labels, []))):  # classes that are numbers need no declaration
        layout = replace(layout, values={place: known for place, known in layout.values.items() if place != labels})
    types, numeric_labels, n_estimated = _probe(layout, labels)
    names = distinct([layout.names[place] for place in kept])
    types |= layout.texts(place for place, own in zip(kept, names, strict=True) if own in as_text and place != labels)
    values = {kept.index(place): known for place, known in layout.values.items() if place in kept}
    place = kept.index(labels)

    def blocks() -> Generator[Chunk, None, None]:
        columns = Columns(names, place, source, values, layout.closed, NO_LABEL, numeric_labels)
        with closing(layout.batches(types)) as batches:
            yield from columns.chunks(batch.select(kept) for batch in batches)
        if columns.n_rows == 0:
            raise StreamError(f"{source} has no rows")

    features = tuple(name for column, name in enumerate(names) if column != place)
    classes = tuple(values[place]) if place in values else None
    return Stream(name, lambda: read_ahead(blocks()), chunk, features, None, n_estimated, classes, source)


def table(layout: Layout) -> Table:
    """Open a text as a table without labels."""
    source, names = str(layout.path), distinct(layout.names)
    types, _, n_estimated = _probe(layout, None)

    def read(columns: Sequence[int], keep: Sequence[int], as_text: Collection[int]) -> Generator[Block, None, None]:
        values = {place: layout.values[column] for place, column in enumerate(columns) if column in layout.values}
        found = Columns([names[column] for column in columns], None, source, values, layout.closed)
        chosen = types | layout.texts(as_text)
        with closing(
            layout.tables(chosen, [str(column) for column in columns], [str(place) for place in keep])
        ) as all_:
            for part in all_:
                if part.num_rows > 0:
                    yield found.rows(part), part.columns[len(columns) :]
        if found.n_rows == 0:
            raise StreamError(f"{source} has no rows")

    return Table(
        source, tuple(names), lambda *which: read_ahead(read(*which)), layout.named, estimated_rows=n_estimated
    )


def _probe(layout: Layout, labels: int | None) -> tuple[dict[str, pa.DataType], bool, int | None]:
    """The column types, judged by the first block, whether labels are numbers, and an estimate of the number of rows.

    Without ``labels``, there is no such column.

    Numbers are floats, and so are columns that are empty so far; all else is text, which the model reads.
    """
    try:
        text, raw = layout.open()
        with raw, text:
            block = next(layout.whole_rows(text), b"")
            # Of a text within inside another file, which must be unpacked to know its size, there is no telling.
            parts = None if layout.opened is not None else layout.path.stat().st_size / max(raw.tell(), 1)
    except EndlessRowError as error:
        raise layout.endless(error, 0, layout.skipped) from None
    except OSError as error:
        raise layout.unreadable(error, 0) from error
    if not block:
        raise StreamError(f"{layout.path} has no rows")
    first = layout.parsed(TextBlock(block, 0, layout.skipped), layout.types)
    n_estimated = None if parts is None else max(round(first.num_rows * parts), 1)
    schema = first.schema
    types = {}
    for name, kind in zip(schema.names, schema.types, strict=True):
        is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_null(kind)
        types[name] = layout.types.get(name, pa.float64() if is_number else pa.string())
        if not layout.named and pa.types.is_string(kind) and int(name) != labels:
            _check_first(layout, first.column(name), int(name))
    if labels is None:
        return types, False, n_estimated
    kind = schema.types[labels]
    if pa.types.is_boolean(kind):
        types[str(labels)] = kind
        return types, False, n_estimated
    types[str(labels)] = pa.string()
    return types, _has_numeric_labels(layout, labels), n_estimated


def _check_first(layout: Layout, values: pa.ChunkedArray, column: int) -> None:
    """Raise an error if a column of numbers begins with a word: then the first row has the names of the columns."""
    word = values[0].as_py()
    if not _is_number(word) and word.strip() not in _MISSING and _share_of_numbers(values) > 0.5:
        raise StreamError(
            f"{layout.path}: row 1 (line {layout.skipped + 1}) has '{word}' in column {layout.names[column]!r}, which "
            f"holds numbers; {NAMELESS}"
        )


def _has_numeric_labels(layout: Layout, labels: int) -> bool:
    """Whether the target holds numbers: judged by the first block that has labels."""
    name = str(labels)
    if labels in layout.values or pa.types.is_floating(layout.types.get(name, pa.string())):
        return labels not in layout.values
    with closing(layout.batches({name: pa.string()}, [name])) as batches:
        for batch in batches:
            texts = [text.strip() for text in batch.column(name).unique().to_pylist() if text is not None]
            if there := [text for text in texts if text not in NO_LABEL]:
                return all(map(is_plain_number, there))
    return True


def _share_of_numbers(values: pa.StringArray | pa.ChunkedArray) -> float:
    """The share of numbers among the values present."""
    counts = [(count["values"], count["counts"]) for count in values.value_counts().to_pylist()]
    there = [(value, n) for value, n in counts if value is not None and value.strip() not in _MISSING]
    return float(sum(n for value, n in there if _is_number(value)) / max(sum(n for _, n in there), 1))


def csv_layout(path: Path, compression: str | None, delimiter: str | None, header: bool | None) -> Layout:
    """Detect the layout of a CSV file from its first lines."""
    head = list(islice(lines(path, compression, "replace"), 50))
    n_blank = next((place for place, line in enumerate(head) if line.strip()), None)
    if n_blank is None:
        raise StreamError(f"{path} is empty")
    delimiter = delimiter_of("".join(head[n_blank:])) if delimiter is None else delimiter
    reader = csv.reader(head[n_blank:], delimiter=delimiter)
    cells = [cell.strip() for cell in next(reader)]
    first = "".join(head[n_blank : n_blank + reader.line_num])
    if "\ufffd" in first:
        raise StreamError(f"{path} is not UTF-8 text; convert it first")
    if rowends.has_open_quote(first.encode(), delimiter):
        raise StreamError(f"{path}: its first row opens a quote that is never closed; it begins with {first[:30]!r}")
    header = has_names(cells) if header is None else header
    names = column_names(cells, header)
    skipped = n_blank + (reader.line_num if header else 0)
    rest = [cell.strip() for line in head[skipped:] for cell in line.split(delimiter)]
    comma = sum(re.fullmatch(r"[-+]?\d*,\d+", cell) is not None for cell in rest)
    point = sum(re.fullmatch(r"[-+]?\d*\.\d+", cell) is not None for cell in rest)
    return Layout(
        path,
        names,
        compression,
        delimiter,
        "," if comma > point else ".",
        skipped,
        header,
        max(BLOCK, min(16 * max(map(len, head)), 4 * LONGEST_LINE)),
    )


def has_names(cells: Sequence[str]) -> bool:
    """Whether the first row of a text looks like the names of its columns."""
    return not any(_is_number(cell) for cell in cells)


def column_names(cells: Sequence[str], header: bool) -> list[str]:
    """The names in the first row or, if it has none, others."""
    return [cell.lstrip("# ") for cell in cells] if header else [f"column {place}" for place in range(len(cells))]


def delimiter_of(text: str) -> str:
    r"""What separates the cells of a text, judged by its first line.

    >>> delimiter_of("a;b;c\n1,5;2,5;3\n")
    ';'
    """
    bare = re.sub('"[^"]*"', "", text).partition("\n")[0]
    return max(",;\t", key=bare.count)  # the first delimiter if none is found


def _is_number(cell: str) -> bool:
    try:
        float(cell.replace(",", "."))
    except ValueError:
        return False
    return True
