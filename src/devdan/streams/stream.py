"""What a stream is: samples in their order, chunk by chunk."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Piece = TypeVar("Piece")
Chunk = tuple[npt.NDArray[Any], npt.NDArray[Any]]
_AT_A_TIME = 4096  # samples in a block where a stream is free to choose: large enough to cost nothing each


class StreamError(ValueError):
    """Something is wrong with a source of samples; the message says what, where, and what to do about it."""


def reason(error: Exception) -> str:
    r"""What an error of another library says, in a line.

    >>> reason(OSError("bad magic\nsee the manual")), reason(EOFError())
    ('bad magic', 'EOFError')
    """
    return getattr(error, "strerror", None) or (str(error).splitlines() or [type(error).__name__])[0]


def name_of(path: str | Path) -> str:
    """What a stream from a file is called: as the file, without its endings.

    >>> name_of("data/my.csv.gz"), name_of(".hidden.csv")
    ('my', 'hidden')
    """
    file = Path(path).name
    return file.lstrip(".").partition(".")[0] or file


@dataclass(frozen=True)
class Stream:
    """Samples in their order: ``for X, y in stream`` goes through them from the start, ``chunk`` at a time.

    ``blocks`` begins a pass: it returns an iterator over pieces (X, y) of any size. Where a label is missing, ``y`` has
    NaN or None. What is not known before the stream was read is None.

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
    estimated_samples: int | None = None  # where the number is not known, but the size of the file is
    classes: tuple[Any, ...] | None = None
    origin: str = ""
    is_shuffled: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.chunk, bool) or not isinstance(self.chunk, (int, np.integer)) or self.chunk < 1:
            raise ValueError(f"chunk must be a whole number of at least 1, got {self.chunk!r}")

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
        """The first ``n_samples`` samples alone."""
        if n_samples < 1:
            raise ValueError(f"n_samples must be at least 1, got {n_samples}")
        n = n_samples if self.n_samples is None else min(n_samples, self.n_samples)
        known = self.n_samples is not None or n < (self.estimated_samples or np.inf)
        return replace(
            self,
            blocks=lambda: _first(self.blocks(), n_samples),
            n_samples=n if self.n_samples is not None else None,
            estimated_samples=n if known else self.estimated_samples,
        )

    def shuffled(self, seed: int = 0) -> Stream:
        """The same samples in a random order, always the same for a seed. Holds them all in memory."""
        return replace(self, blocks=lambda: _shuffled(self.blocks(), seed), is_shuffled=True)

    def scaled(self) -> Stream:
        """Each feature brought to [0, 1] over the whole stream, as in the paper's experiments.

        This looks ahead: it reads the stream once for the ranges before the first sample. Where all features lie within
        [0, 1] they stay as they are; else each is scaled, and one that never changes becomes 0.
        """
        return replace(self, blocks=lambda: _scaled(self.blocks))


def rechunked(blocks: Iterable[Chunk], chunk: int) -> Iterator[Chunk]:
    """The same samples in chunks of the same size; the last one may be smaller.

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
    """The same blocks, read by another thread while those before them are at work.

    Several of them, so that neither waits for the other where some blocks take longer than others.
    """
    reader = ThreadPoolExecutor(max_workers=1, thread_name_prefix="devdan-reader")
    coming: deque[Future[Piece | None]] = deque()
    try:
        coming.extend(reader.submit(next, blocks, None) for _ in range(n_ahead))
        while (block := coming.popleft().result()) is not None:
            coming.append(reader.submit(next, blocks, None))
            yield block
    finally:  # perhaps while Python ends, when no executor takes anything any more
        for some in coming:
            some.cancel()
        reader.shutdown()
        blocks.close()


def _joined(parts: list[Chunk]) -> Chunk:
    X, y = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return X, y


def slices(X: npt.NDArray[Any], y: npt.NDArray[Any]) -> Iterator[Chunk]:
    """Arrays as blocks."""
    for start in range(0, len(X), _AT_A_TIME):
        yield X[start : start + _AT_A_TIME], y[start : start + _AT_A_TIME]


def spans(n_samples: int | None) -> Iterator[npt.NDArray[np.int64]]:
    """The numbers of the samples to generate, a block at a time; without end if there is no ``n_samples``."""
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


def _scaled(blocks: Callable[[], Iterator[Chunk]]) -> Iterator[Chunk]:
    low, high = np.array(np.inf), np.array(-np.inf)
    for X, _ in blocks():
        low = np.fmin(low, np.fmin.reduce(X, axis=0))
        high = np.fmax(high, np.fmax.reduce(X, axis=0))
    if (low >= 0).all() and (high <= 1).all():
        yield from blocks()
        return
    span = np.where(high > low, high - low, 1)
    for X, y in blocks():
        yield (X - low) / span, y
