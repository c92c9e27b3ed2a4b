"""Any source of samples as a stream; here those in memory: arrays, data frames, River datasets, any iterable."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, count, islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from devdan.encoding.rows import Rows
from devdan.encoding.tables import TableError, are_dicts, from_dicts, is_lazy, is_pandas, is_table, rows_of
from devdan.histories.histories import entity_columns
from devdan.streams import catalogue, entries, files, lines
from devdan.streams.columns import BatchConverter, kept_columns, target_column
from devdan.streams.reading import Reading
from devdan.streams.stream import Chunk, Stream, StreamError, Table, slices

_SAMPLES = 1000  # single samples gathered into a block
_ROWS = 1 << 13  # of a frame that are converted at a time


def open_stream(
    source: Any,
    *,
    target: str | int | None = None,
    chunk: int | None = None,
    history: str | Sequence[str | tuple[str, ...]] | None = None,
    time: str | None = None,
    **options: Any,
) -> Stream:
    """Open any source of samples as a stream.

    ``source`` may be the name of a stream (:mod:`devdan.streams.catalogue`, `devdan streams` lists them), a file, a
    folder or a pattern of files, the address of a database (:func:`devdan.streams.files.file`), a pandas, Polars or
    Arrow data frame, a lazy frame of Polars, a list of dicts, a pair of arrays (X, y), a River dataset, or any iterable
    of (X, y), in chunks or single samples.
    ``"-"`` is standard input, and any other file that is open may be given too: CSV, or an object of JSON in each line,
    read once and line by line. ``target`` names the column with the labels, ``chunk`` is the chunk size, by default
    500, or a named stream's own. ``history`` names the columns that say whom a row is about, such as a customer, and
    ``time`` that with the time of each row: :func:`~devdan.evaluation.prequential` adds what was known of them before,
    as :class:`devdan.Histories` of these. For what is read from files, ``options`` are those of
    :class:`~devdan.streams.reading.Reading`.

    >>> import pandas as pd
    >>> open_stream(pd.DataFrame({"x": [0.1, 0.2], "label": ["a", "b"]}))
    <frame: 2 samples, 1 features, chunks of 500>
    """
    if history is None:
        if time is not None:
            raise StreamError(f"time is for histories, which need history, got time={time!r} alone")
        return _opened(source, target, chunk, options)
    entities = tuple(entity_columns(history))
    if _is_of_file(source):  # 007 and 7 are two
        named = (name for columns in entities for name in columns if name != time)
        options["as_text"] = tuple(dict.fromkeys([*options.get("as_text", ()), *named]))
    stream = _opened(source, target, chunk, options)
    for name in [*(name for columns in entities for name in columns), *([] if time is None else [time])]:
        if name not in (stream.feature_names or (name,)):
            raise StreamError(f"{stream.origin or stream.name} has no column {name!r}, which histories need")
    return replace(stream, entities=entities, time=time)


def _opened(source: Any, target: str | int | None, chunk: int | None, options: dict[str, Any]) -> Stream:
    if isinstance(source, Stream):
        return source if chunk is None else source.in_chunks_of(chunk)
    own, chunk = chunk, 500 if chunk is None else chunk
    if _is_open(source):
        name = options.pop("name", None)
        reading = Reading(target=target, **options)
        return lines.source(None if source == "-" else source, reading, chunk).stream(reading, chunk, name)
    if isinstance(source, (str, os.PathLike)):
        if entries.is_name(source):
            if target is not None:
                raise StreamError(f"{source} is a stream that is known by name, so it takes no target; got {target!r}")
            return catalogue.load(str(source), chunk=own, **options)
        if isinstance(source, str) and not _may_be_file(source):
            raise StreamError(entries.unknown(source))
        return files.file(str(source), target=target, chunk=chunk, **options)
    if hasattr(source, "__arrow_c_stream__") or is_lazy(source) or (isinstance(source, list) and are_dicts(source)):
        return frame(source, target=target, chunk=chunk, **options)
    if isinstance(source, tuple) and len(source) == 2:
        return arrays(*source, chunk=chunk, **options)
    return samples(source, chunk=chunk, **options)


def open_table(source: Any, *, n_at_a_time: int = 1, **options: Any) -> Table:
    """Open a file as a table without labels, to predict from; ``source`` and ``options`` as for :func:`open_stream`.

    From standard input or an open file come ``n_at_a_time`` rows in each block.
    """
    if _is_open(source):
        reading = Reading(**options)
        file = None if source == "-" else source
        return lines.source(file, reading, n_at_a_time, is_strict=False).table(reading)
    return files.table(source, **options)


def _is_of_file(source: Any) -> bool:
    named = isinstance(source, (str, os.PathLike)) and not entries.is_name(source)
    return not isinstance(source, Stream) and (named or _is_open(source))


def _is_open(source: Any) -> bool:
    return source == "-" if isinstance(source, str) else hasattr(source, "readline")


def _may_be_file(source: str) -> bool:
    return Path(source).exists() or bool(Path(source).suffix) or any(mark in source for mark in "*?[:")


def arrays(X: Any, y: Any, *, chunk: int = 500, name: str = "arrays") -> Stream:
    """Two arrays as a stream, in order.

    >>> import numpy as np
    >>> [len(y) for X, y in arrays(np.zeros((5, 2)), np.zeros(5), chunk=2)]
    [2, 2, 1]
    """
    try:
        X, y = rows_of(X) if is_table(X) else np.asarray(X), np.asarray(y)
    except ValueError as error:
        raise StreamError(f"X and y must be arrays: {error}") from error
    if X.ndim != 2 or y.shape != X.shape[:1]:
        raise StreamError(f"X must have a row for each sample and y a label, got {X.shape} and {y.shape}")
    names = X.names if isinstance(X, Rows) else tuple(f"x{k + 1}" for k in range(X.shape[1]))
    return Stream(name, lambda: slices(X, y), chunk, names, len(X), None)


def frame(table: Any, *, target: str | int | None = None, chunk: int = 500, name: str = "frame") -> Stream:
    """A pandas, Polars or Arrow data frame, or a list of dicts, as a stream; ``target`` is the column with the labels.

    A lazy frame of Polars is computed in batches, again for each pass.
    """
    if isinstance(target, int) and target in list(getattr(table, "columns", [])) and not is_lazy(table):
        target = str(target)  # a frame with numeric column names
    source = f"the {name}"
    if not (is_pandas(table) or is_lazy(table) or are_dicts(table)):
        table = _table(table, name)
    if are_dicts(table):
        names = list(dict.fromkeys(key for row in table for key in row))
    elif is_lazy(table):
        names = list(table.collect_schema().names())
    else:
        names = list(table.columns) if is_pandas(table) else table.column_names
    keys, names = names, [str(column) for column in names]
    labels = target_column(names, target, source)
    kept_columns(names, labels, (), source)

    def blocks() -> Iterator[Chunk]:
        converter = BatchConverter(names, labels, source)
        for part in _parts(table):
            try:
                rows = (from_dicts(part, keys) if are_dicts(part) else rows_of(part)).select(converter.features)
            except TableError as error:
                raise StreamError(f"{source}: {error}") from error
            yield converter.labelled(rows, _label_column(part, labels, keys, source))

    features = tuple(column for place, column in enumerate(names) if place != labels)
    n_rows = None if is_lazy(table) else len(table)
    return Stream(name, blocks, chunk, features, n_rows, target=names[labels])


def _parts(table: Any) -> Iterator[Any]:
    """A frame, or a list of dicts, some rows at a time."""
    if is_lazy(table):
        if hasattr(table, "collect_batches"):  # since Polars 1.34
            yield from map(pa.table, table.collect_batches(chunk_size=_ROWS, maintain_order=True))
            return
        table = pa.table(table.collect(engine="streaming"))
    for start in range(0, len(table), _ROWS):
        if isinstance(table, pa.Table):
            yield table.slice(start, _ROWS)
        else:
            yield (table.iloc if is_pandas(table) else table)[start : start + _ROWS]


def _label_column(part: Any, labels: int, keys: Sequence[Any], source: str) -> pa.Array:
    try:
        if are_dicts(part):
            return pa.array([row.get(keys[labels]) for row in part])
        if is_pandas(part):
            return pa.array(part.iloc[:, labels], from_pandas=True)
        column = part.column(labels)
        return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise StreamError(f"{source}: its labels are of several types: {error}") from error


def _table(frame: Any, name: str) -> pa.Table:
    try:
        return pa.table(frame)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise StreamError(f"the {name} cannot be read as a table: {error}") from error


def samples(source: Iterable[Any], *, chunk: int = 500, name: str = "samples") -> Stream:
    """An iterable of (X, y) as a stream: chunks, single samples, or River's dicts of features.

    >>> stream = samples([({"x": 1.0, "colour": "red"}, True), ({"x": 2.0, "colour": "blue"}, False)])
    >>> [(X.objects(), y.tolist()) for X, y in stream]
    [([[1.0, 2.0], ['red', 'blue']], [True, False])]
    """
    if not isinstance(source, Iterable):
        raise StreamError(f"a stream cannot be made from {type(source).__name__}; samples are pairs (X, y)")
    passes = count()

    def blocks() -> Iterator[Chunk]:
        pairs = iter(source)
        if next(passes) > 0 and pairs is source:
            raise StreamError(f"the stream {name} is an iterator, which can be read only once")
        first = next(pairs, None)
        if first is None:
            return iter(())
        pairs = chain([first], pairs)
        if not isinstance(first, (tuple, list)) or len(first) != 2:
            raise StreamError(f"samples must be pairs (X, y), got {type(first).__name__}")
        if isinstance(first[0], Mapping):
            return _from_dicts(pairs, list(first[0]), name)
        if np.ndim(first[0]) == 1:
            return _from_rows(pairs)
        return ((np.asarray(X), np.ravel(y)) for X, y in pairs)

    return Stream(name, blocks, chunk, n_samples=getattr(source, "n_samples", None))


def _from_rows(pairs: Iterable[tuple[Any, Any]]) -> Iterator[Chunk]:
    pairs = iter(pairs)
    while rows := list(islice(pairs, _SAMPLES)):
        yield np.array([x for x, _ in rows]), np.array([y for _, y in rows])


def _from_dicts(pairs: Iterable[tuple[Mapping[Any, Any], Any]], keys: list[Any], name: str) -> Iterator[Chunk]:
    """The features are those of the first sample; a feature absent in a later sample is missing there."""
    pairs = iter(pairs)
    converter = BatchConverter([*map(str, keys), "the label"], len(keys), f"the stream {name}")
    known = set(keys)
    while rows := list(islice(pairs, _SAMPLES)):
        for place, (x, _) in enumerate(rows):
            if not known.issuperset(x):
                new, sample = next(key for key in x if key not in known), converter.n_rows + place + 1
                raise StreamError(f"the stream {name} has a new feature {new!r} in sample {sample}")
        try:
            labels = pa.array([y for _, y in rows])
            yield converter.labelled(from_dicts([x for x, _ in rows], keys), labels)
        except pa.ArrowException as error:
            raise StreamError(f"the stream {name} mixes types after sample {converter.n_rows}: {error}") from error
        except TableError as error:
            raise StreamError(f"the stream {name}: {error}") from error
