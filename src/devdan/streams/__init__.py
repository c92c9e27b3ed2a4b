"""Where samples come from: generators, files, data frames, River's datasets and the paper's nine streams."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from devdan import lazy

if TYPE_CHECKING:
    from devdan.streams.stream import Stream, StreamError
    from devdan.streams.synthetic import hyperplane, sea
else:
    __getattr__, __dir__ = lazy.exports(
        __name__, Stream="stream", StreamError="stream", hyperplane="synthetic", sea="synthetic"
    )

__all__ = ["Stream", "StreamError", "hyperplane", "open_stream", "sea"]


def open_stream(source: Any, *, target: str | int | None = None, chunk: int | None = None, **options: Any) -> Stream:
    """Open any source of samples as a stream.

    ``source`` may be the name of one of the paper's streams (:mod:`devdan.streams.catalogue`), a file
    (:func:`devdan.streams.files.file`), a pandas, Polars or Arrow data frame, a pair of arrays (X, y), a River dataset,
    or any iterable of (X, y), in chunks or single samples. ``"-"`` is standard input, and any other file that is open
    may be given too: CSV, or an object of JSON in each line, read once and line by line. ``target`` names the column
    with the labels, ``chunk`` is the chunk size, 500 by default.

    >>> import pandas as pd
    >>> open_stream(pd.DataFrame({"x": [0.1, 0.2], "label": ["a", "b"]}))
    <frame: 2 samples, 1 features, chunks of 500>
    """
    from devdan.streams import catalogue, entries, files, lines, sources  # noqa: PLC0415 (Arrow is slow to import)
    from devdan.streams.stream import Stream, StreamError  # noqa: PLC0415 (likewise)

    if isinstance(source, Stream):
        return source if chunk is None else source.in_chunks_of(chunk)
    chunk = 500 if chunk is None else chunk
    if source == "-" if isinstance(source, str) else hasattr(source, "readline"):
        return lines.stream(None if source == "-" else source, target=target, chunk=chunk, **options)
    if isinstance(source, (str, os.PathLike)):
        if entries.is_name(source):
            if target is not None:
                raise StreamError(f"{source} is one of the paper's streams, so it takes no target; got {target!r}")
            return catalogue.load(str(source), chunk=chunk, **options)
        if isinstance(source, str) and not Path(source).exists() and not Path(source).suffix:
            raise StreamError(entries.unknown(source))
        return files.file(Path(source), target=target, chunk=chunk, **options)
    if hasattr(source, "__arrow_c_stream__"):
        return sources.frame(source, target=target, chunk=chunk, **options)
    if isinstance(source, tuple) and len(source) == 2:
        return sources.arrays(*source, chunk=chunk, **options)
    return sources.samples(source, chunk=chunk, **options)
