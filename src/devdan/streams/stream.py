"""Streams, samples in order, chunk by chunk; and tables without labels, block by block."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from devdan.encoding.encoding import OrdinalCodes
from devdan.encoding.rows import Rows, joined

Piece = TypeVar("Piece")
Chunk = tuple[Any, npt.NDArray[Any]]  # samples, as an array of numbers or as Rows, and their labels
TableBlock = tuple[Rows, list[Any]]  # rows, and the values of each column that is kept as it is
_AT_A_TIME = 4096  # samples per block, if a stream can choose: large enough to make the cost per sample negligible


class StreamError(ValueError):
    """A source of samples is invalid; the message says what is wrong and where, and what to do about it."""


def reason(error: Exception) -> str:
    r"""The message of another library's error, as one line.

    >>> reason(OSError("bad magic\nsee the manual")), reason(EOFError())
    ('bad magic', 'EOFError')
    """
    return getattr(error, "strerror", None) or (str(error).splitlines() or [type(error).__name__])[0]


def name_of(path: str | Path) -> str:
    """The name of a stream from a file: that of the file, without its endings.

    >>> name_of("data/my.csv.gz"), name_of(".hidden.csv")
    ('my', 'hidden')
    """
    file = Path(path).name
    return file.lstrip(".").partition(".")[0] or file


@dataclass(frozen=True)
class Stream:
    """Samples in order: ``for X, y in stream`` iterates from the start, ``chunk`` samples at a time.

    ``X`` is an array of numbers or, from a table, :class:`~devdan.encoding.rows.Rows`, which the models of this package
    take as they are; :meth:`coded` makes arrays of them. ``blocks`` starts a pass: it returns an iterator over pieces
    (X, y) of any size. Missing labels are NaN or None in ``y``. Attributes that are unknown before the stream is read
    are None.

    >>> from devdan.streams import sea
    >>> stream = sea(2000)
    >>> stream
    <sea: 2,000 samples, 3 features, 2 classes, chunks of 500>
    >>> [X.shape for X, y in stream.first(700)]
    [(500, 3), (200, 3)]
    """

    name: str
    blocks: Callable[[], Iterator[Chunk]]
    chunk: int = 500
    feature_names: tuple[str, ...] | None = None
    n_samples: int | None = None
    estimated_samples: int | None = None  # estimated from the file size, if the exact number is unknown
    classes: tuple[Any, ...] | None = None
    origin: str = ""
    is_shuffled: bool = False
    is_single_pass: bool = False  # it can be read only once
    drifts: tuple[int, ...] | None = None  # the samples at which, or around which, the concept changes
    target: str | None = None  # the column with the labels
    entities: tuple[tuple[str, ...], ...] = ()  # whom rows are about, if models are to see what was known of them
    time: str | None = None  # with these, the column with the time of each row

    def __post_init__(self) -> None:
        if isinstance(self.chunk, bool) or not isinstance(self.chunk, (int, np.integer)) or self.chunk < 1:
            raise ValueError(f"chunk must be an integer of at least 1, got {self.chunk!r}")

    def __iter__(self) -> Iterator[Chunk]:
        return rechunked(self.blocks(), self.chunk)

    def __repr__(self) -> str:
        parts = [f"{self.n_samples:,} samples"] if self.n_samples is not None else []
        parts += [f"{len(self.feature_names)} features"] if self.feature_names is not None else []
        parts += [f"{len(self.classes)} classes"] if self.classes is not None else []
        return f"<{self.name}: {', '.join([*parts, f'chunks of {self.chunk}'])}>"

    def in_chunks_of(self, chunk: int) -> Stream:
        """The same samples in chunks of another size."""
        return replace(self, chunk=chunk)

    def first(self, n_samples: int) -> Stream:
        """Only the first ``n_samples`` samples."""
        if n_samples < 1:
            raise ValueError(f"n_samples must be at least 1, got {n_samples}")
        n = n_samples if self.n_samples is None else min(n_samples, self.n_samples)
        known = self.n_samples is not None or n < (self.estimated_samples or np.inf)
        return replace(
            self,
            blocks=lambda: _first(self.blocks(), n_samples),
            n_samples=n if self.n_samples is not None else None,
            estimated_samples=n if known else self.estimated_samples,
            drifts=None if self.drifts is None else tuple(drift for drift in self.drifts if drift < n_samples),
        )

    def shuffled(self, seed: int = 0) -> Stream:
        """The same samples in a random order that depends only on the seed. Loads all of them into memory."""
        return replace(self, blocks=lambda: _shuffled(self.blocks(), seed), is_shuffled=True, drifts=None)

    def coded(self, values: Mapping[str, Sequence[str]] | None = None) -> Stream:
        """The same samples as arrays of numbers, for models that take nothing else.

        Texts become codes, in order of appearance or as in ``values``, by column.
        """
        return replace(self, blocks=lambda: _coded(self.blocks(), values))

    def scaled(self, leave: Collection[str] = ()) -> Stream:
        """Each feature scaled to [0, 1] over the whole stream, as in the paper's experiments.

        This looks ahead: it reads the stream once to find the ranges. If all features are within [0, 1] they are
        unchanged; otherwise each is scaled, and a constant feature becomes 0. ``leave`` names columns of a table that
        are not scaled, such as dates in seconds.
        """
        return replace(self, blocks=lambda: _scaled(self.blocks, leave))


@dataclass(frozen=True)
class Table:
    """A file as a table without labels. ``read(columns, keep, as_text)`` yields its rows in order, block by block.

    All three are lists of positions: ``columns`` are those of the rows, in that order; those to ``keep`` come as they
    are in the file (an Arrow array, or a list), text exactly as written; those ``as_text`` stay text, even if they look
    like numbers.
    """

    origin: str
    names: tuple[str, ...]
    read: Callable[[Sequence[int], Sequence[int], Collection[int]], Iterator[TableBlock]]
    named: bool = True  # whether the names are the file's own
    n_rows: int | None = None
    estimated_rows: int | None = None  # estimated from the file size, if the exact number is unknown
    is_json: bool = False  # lines of JSON


def rechunked(blocks: Iterable[Chunk], chunk: int) -> Iterator[Chunk]:
    """The same samples in chunks of one size; the last one may be smaller.

    >>> pieces = [(np.zeros((n, 2)), np.zeros(n)) for n in (3, 1, 5)]
    >>> [len(X) for X, y in rechunked(pieces, 4)]
    [4, 4, 1]
    """
    kept: list[Chunk] = []
    n_kept = 0
    for X, y in blocks:
        if len(X) != len(y):
            raise StreamError(f"X and y must have the same number of samples, got {len(X)} and {len(y)}")
        start = 0
        if n_kept > 0:
            start = min(chunk - n_kept, len(X))
            kept.append((X[:start], y[:start]))
            n_kept += start
            if n_kept < chunk:
                continue
            yield _joined(kept)
            kept, n_kept = [], 0
        while len(X) - start >= chunk:
            yield X[start : start + chunk], y[start : start + chunk]
            start += chunk
        if start < len(X):
            kept, n_kept = [(X[start:], y[start:])], len(X) - start
    if n_kept > 0:
        yield _joined(kept)


def read_ahead(blocks: Generator[Piece, None, None], n_ahead: int = 4) -> Generator[Piece, None, None]:
    """The same blocks, read ahead by another thread.

    It reads several blocks ahead, so that neither side waits when some blocks take longer than others.
    """
    reader = ThreadPoolExecutor(max_workers=1, thread_name_prefix="devdan-reader")
    coming: deque[Future[Piece | None]] = deque()
    try:
        coming.extend(reader.submit(next, blocks, None) for _ in range(n_ahead))
        while (block := coming.popleft().result()) is not None:
            coming.append(reader.submit(next, blocks, None))
            yield block
    finally:  # perhaps while Python ends, when no executor accepts tasks any more
        for some in coming:
            some.cancel()
        reader.shutdown()
        blocks.close()


def _joined(parts: list[Chunk]) -> Chunk:
    X, y = zip(*parts, strict=True)
    if {"O"} < {labels.dtype.kind for labels in y}:
        y = tuple(map(_nan_for_none, y)) if any(labels.dtype.kind in "fiu" for labels in y) else y
    return joined(X), joined(y)


def _nan_for_none(y: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Missing labels as numbers: a text file has None for them until its first label, which may be a number."""
    return np.full(len(y), np.nan) if y.dtype.kind == "O" and all(label is None for label in y) else y


def slices(X: Any, y: npt.NDArray[Any]) -> Iterator[Chunk]:
    """Arrays as blocks."""
    for start in range(0, len(X), _AT_A_TIME):
        yield X[start : start + _AT_A_TIME], y[start : start + _AT_A_TIME]


def spans(n_samples: int | None) -> Iterator[npt.NDArray[np.int64]]:
    """The indices of the samples to generate, one block at a time; endless if ``n_samples`` is None."""
    start = 0
    while n_samples is None or start < n_samples:
        stop = start + _AT_A_TIME if n_samples is None else min(start + _AT_A_TIME, n_samples)
        yield np.arange(start, stop)
        start = stop


def _first(blocks: Iterator[Chunk], n_samples: int) -> Iterator[Chunk]:
    left = n_samples
    for X, y in blocks:
        yield X[:left], y[:left]
        left -= len(X)
        if left <= 0:
            return


def _shuffled(blocks: Iterator[Chunk], seed: int) -> Iterator[Chunk]:
    parts = list(blocks)
    if parts:
        X, y = _joined(parts)
        del parts
        order = np.random.default_rng(seed).permutation(len(X))
        for some, _ in slices(order, order):
            yield X[some], y[some]


def _scaled(blocks: Callable[[], Iterator[Chunk]], leave: Collection[str]) -> Iterator[Chunk]:
    low: dict[Any, float] = {}
    high: dict[Any, float] = {}
    for some, _ in blocks():
        X = some.numbers if isinstance(some, Rows) else some
        least, most = np.fmin.reduce(X, axis=0).tolist(), np.fmax.reduce(X, axis=0).tolist()
        for name, smallest, largest in zip(_numeric(some), least, most, strict=True):
            low[name] = np.fmin(low.get(name, np.inf), smallest)
            high[name] = np.fmax(high.get(name, -np.inf), largest)
    for name in leave:
        low[name], high[name] = 0.0, 1.0
    if min(low.values(), default=0.0) >= 0 and max(high.values(), default=1.0) <= 1:
        yield from blocks()
        return
    for X, y in blocks():
        begin, end = (np.array([ends[name] for name in _numeric(X)]) for ends in (low, high))
        span = np.where(end > begin, end - begin, 1)
        if isinstance(X, Rows):  # all other columns become inputs in [0, 1] anyway
            yield Rows(X.names, (X.numbers - begin) / span, X.others, X.flags), y
        else:
            yield (X - begin) / span, y


def _numeric(X: Any) -> Sequence[Any]:
    """The numeric columns; in a table, a column may cease to be numeric at some row."""
    if isinstance(X, Rows):
        return [name for place, name in enumerate(X.names) if place not in X.others]
    return range(X.shape[1])


def _coded(blocks: Iterator[Chunk], values: Mapping[str, Sequence[str]] | None) -> Iterator[Chunk]:
    codes = OrdinalCodes(values)
    for X, y in blocks:
        yield codes.numbers(X) if isinstance(X, Rows) else X, y
