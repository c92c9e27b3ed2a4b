"""The networks of a fleet that are in memory.

Each has an array of its own, so that one that outgrows its room moves without the others, and a slot: a row of a table
from which compiled code knows where the network is. What is kept of a key beside its state is in that row, too.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np

from devdan import kernel
from devdan.arrays import Floats, Integers
from devdan.fleet.keys import Key
from devdan.kernel import Evolving, Work
from devdan.kernel.memory import Sizes
from devdan.kernel.state import aligned, resized, sizes_of

EVENTS = 8  # that a network of a fleet remembers
USED, INPUTS, SETTINGS = range(8, 11)  # words of a slot that compiled code does not read
_LAST = SETTINGS + 1
_WIDTH = 16  # words of a slot: two cache lines


class Kept(NamedTuple):
    """What a fleet keeps of a key."""

    state: Floats
    codes: Integers  # the fleet's codes of the classes that it knows, by output
    n_judged: int = 0  # predictions of which it is known whether they were right
    judged: int = 0  # the latest of these, a bit each, as a signed word
    seen: int = 0  # rows that the fleet had learned when this key was last among them
    inputs: int = 0  # version of the fleet's inputs that its features are
    settings: int = 0  # version of the fleet's settings that it has


def room_for(n_hidden: int) -> int:
    """Capacity for hidden units, with at least two spare: a multiple of four.

    >>> [room_for(n) for n in (1, 6, 7, 14, 15, 23, 60)]
    [8, 8, 12, 16, 20, 28, 64]
    """
    return max(8, (n_hidden + 2 + 3) // 4 * 4)


def room(features: int, hidden: int, classes: int) -> Sizes:
    """What a network of a fleet has room for; it remembers no samples, which would take more than all the rest."""
    return Sizes(features, hidden, max(classes, 2), EVENTS)


def columns_of(name: str) -> range:
    """The columns of a counter in what :func:`kernel.look_up` finds."""
    widths = [math.prod(getattr(Evolving, counter).shape) for counter in kernel.COUNTERS]
    begin = sum(widths[: kernel.COUNTERS.index(name)])
    return range(begin, begin + widths[kernel.COUNTERS.index(name)])


class Slots:
    """The networks in memory, by key and by slot."""

    def __init__(self) -> None:
        self.table = np.zeros((0, _WIDTH), np.int64)
        self.index: dict[Key, int] = {}
        self.largest = Sizes()  # room that any of them has had
        self.scratch = self.new_scratch()  # of the thread that has the fleet
        self._keys: list[Any] = []
        self._words: list[Any] = []  # of each slot: the state, and after it the codes of the classes
        self._free: list[int] = []

    def __len__(self) -> int:
        return len(self.index)

    def __iter__(self) -> Iterator[Key]:
        return iter(self.index)

    def find(self, keys: Sequence[Key]) -> Integers:
        """The slot of each key, or -1."""
        return np.fromiter(map(self.index.get, keys, repeat(-1)), np.int64, len(keys))

    def in_use(self) -> Integers:
        """All slots that hold a network, in the order in which they came."""
        return np.fromiter(self.index.values(), np.int64, len(self.index))

    def key(self, slot: int) -> Key:
        """Whose network it is."""
        key: Key = self._keys[slot]
        return key

    def state(self, slot: int) -> Floats:
        """The state itself, no copy."""
        state: Floats = self._words[slot][: self.table.item(slot, kernel.N_WORDS)]
        return state

    def get(self, slot: int) -> Kept:
        """What is kept of a key; state and codes are no copies."""
        _, n_words, _, n_known, n_judged, judged, seen, _, _, inputs, settings, *_ = self.table[slot].tolist()
        words = self._words[slot]
        codes = words[n_words : n_words + n_known].view(np.int64)
        return Kept(words[:n_words], codes, n_judged, judged, seen, inputs, settings)

    def new_scratch(self) -> tuple[Floats, Floats]:
        """Space for one sample and for one prediction by any of them, as each thread needs it."""
        return np.empty(Work.n_words(self.largest)), np.empty((1, self.largest[2]))

    # --- Changes -------------------------------------------------------------------------------------------------

    def add(self, key: Key, kept: Kept) -> int:
        """Take in a key's network, as a copy."""
        slot = self.index[key] = self.hold(kept)
        self._keys[slot] = key
        return slot

    def hold(self, kept: Kept) -> int:
        """Take in a network that is no key's, as a copy."""
        if not self._free:
            n = len(self._keys)
            more = max(n, 16)
            self.table = np.vstack([self.table, np.zeros((more, _WIDTH), np.int64)])
            self._keys += [None] * more
            self._words += [None] * more
            self._free = list(range(n + more - 1, n - 1, -1))
        slot = self._free.pop()
        self.table[slot] = 0
        self.put(slot, kept)
        return slot

    def put(self, slot: int, kept: Kept) -> None:
        """Replace what is kept of a key, with a copy; the state begins with a cache line."""
        n_words, sizes = len(kept.state), sizes_of(kept.state)
        words = aligned(n_words + sizes[2])
        words[:n_words] = kept.state
        words[n_words : n_words + len(kept.codes)].view(np.int64)[:] = kept.codes
        address = words.ctypes.data
        row = self.table[slot]
        row[: kernel.N_KNOWN] = address, n_words, address + 8 * n_words
        row[kernel.N_KNOWN : kernel.CHANGED] = len(kept.codes), kept.n_judged, kept.judged, kept.seen
        row[INPUTS:_LAST] = kept.inputs, kept.settings
        self._words[slot] = words
        if any(map(operator.gt, sizes, self.largest)):
            self.largest = Sizes(*map(max, self.largest, sizes))
            self.scratch = self.new_scratch()

    def make_room(self, slot: int, hidden: int = 0, classes: int = 0) -> None:
        """Move a network to where it has more room."""
        kept = self.get(slot)
        self.put(slot, kept._replace(state=resized(kept.state, hidden=hidden, classes=classes)))

    def remove(self, slot: int) -> None:
        """Forget a network."""
        del self.index[self._keys[slot]]
        self._keys[slot] = self._words[slot] = None
        self._free.append(slot)

    # --- Copies --------------------------------------------------------------------------------------------------

    def __getstate__(self) -> list[tuple[Key, Kept, int, int]]:
        slots = self.index.items()
        return [(key, self.get(slot), *self.table[slot, [kernel.CHANGED, USED]].tolist()) for key, slot in slots]

    def __setstate__(self, content: list[tuple[Key, Kept, int, int]]) -> None:
        """The same networks elsewhere in memory."""
        self.__init__()  # type: ignore[misc]
        for key, kept, changed, used in content:
            slot = self.add(key, kept)
            self.table[slot, [kernel.CHANGED, USED]] = changed, used

    # --- Many at once --------------------------------------------------------------------------------------------

    def words(self, slots: Integers, *names: str) -> Integers:
        """Words of the states in these slots, by the names of fields; a row for each."""
        out = np.empty((len(slots), columns_of(kernel.COUNTERS[-1]).stop), np.int64)
        kernel.look_up(self.table, slots, out)
        columns = [column for name in names for column in columns_of(name)]
        return np.ascontiguousarray(out[:, columns])
