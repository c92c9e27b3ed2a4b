"""Rows that words hold more than once, kept once: networks with replay buffers remember the same samples.

Words with such rows become, one after the other: the words that are in none of them; each row that is unlike those
before; and for each place, in order, the number of the row that stands there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from devdan.arrays import Floats
from devdan.kernel import Replaying
from devdan.kernel.network import KINDS
from devdan.kernel.state import sizes_of


class Places(NamedTuple):
    """Rows of one width, one after the other."""

    start: int  # in words
    n_rows: int

    def words(self, width: int) -> slice:
        return slice(self.start, self.start + self.n_rows * width)


def pooled(words: Floats, states: Sequence[int]) -> tuple[dict[str, Any], Floats] | None:
    """The words with the rows of replay buffers once, and what it takes to read them; None if that is not shorter.

    The words begin with states of networks, which have these lengths.
    """
    places, widths = list[Places](), set[int]()
    for start, length in zip(np.cumsum([0, *states]).tolist(), states, strict=False):
        state = words[start : start + length]
        if KINDS[state.view(np.int64).item(0)] is Replaying:
            begin, (n_rows, width) = Replaying.places(sizes_of(state))["buffer"]
            places.append(Places(start + begin, n_rows))
            widths.add(width)
    if len(widths) != 1 or 0 in widths:
        return None
    (width,) = widths
    rows = np.concatenate([words[one.words(width)] for one in places]).reshape(-1, width)
    as_bytes = rows.view(np.dtype((np.void, 8 * width))).ravel()
    _, first, numbers = np.unique(as_bytes, return_index=True, return_inverse=True)
    if len(first) * width + len(rows) >= rows.size:
        return None
    kept = np.delete(words, np.concatenate([np.arange(len(words))[one.words(width)] for one in places]))
    about = {"width": width, "n": len(first), "places": [list(one) for one in places]}
    return about, np.concatenate([kept, rows[first].ravel(), numbers.astype(np.int64).view(np.float64)])


def unpooled(words: Floats, about: Any, most_bytes: float) -> Floats:
    """The words that were pooled; raises an error of several kinds if they do not fit what is said about them."""
    width, n, places = about["width"], about["n"], [Places(*one) for one in about["places"]]
    counts = [width, n, *(number for one in places for number in one)]
    if not all(type(count) is int and 0 <= count < 2**40 for count in counts) or width == 0:
        raise ValueError("its rows are not counted")
    n_places = sum(one.n_rows for one in places)
    n_kept = len(words) - n * width - n_places
    total = n_kept + n_places * width
    if n_kept < 0 or 8 * total > most_bytes:
        raise ValueError("its rows do not add up")
    rows = words[n_kept : n_kept + n * width].reshape(n, width)
    numbers = words[len(words) - n_places :].view(np.int64)
    if n_places > 0 and not 0 <= numbers.min() <= numbers.max() < n:
        raise ValueError("it lacks rows")
    found, end, done, n_done = np.empty(total), 0, 0, 0
    for one in places:
        span = one.words(width)
        if span.start < end or span.stop > total:
            raise ValueError("its rows are not in order")
        n_before = span.start - end
        found[end : span.start] = words[done : done + n_before]
        found[span] = rows[numbers[n_done : n_done + one.n_rows]].ravel()
        end, done, n_done = span.stop, done + n_before, n_done + one.n_rows
    found[end:] = words[done:n_kept]
    return found
