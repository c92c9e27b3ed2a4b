"""The networks of a fleet: in memory, each in a slot, or those that were not used for longest in a store.

In memory, each has an array of its own, so that one that outgrows its room moves without the others, and a slot: a row
of a table from which compiled code knows where the network is. What is kept of a key beside its state is in that row,
too.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import repeat
from typing import Any

import numpy as np

from devdan import kernel
from devdan.arrays import Floats, Integers
from devdan.fleet.keys import Key, of_text, text_of
from devdan.fleet.network_store import FIGURES, Kept, KeyStore, Row
from devdan.kernel import CHANGED, SEEN, Evolving, Work
from devdan.kernel.memory import Sizes
from devdan.kernel.state import aligned, resized, sizes_of
from devdan.model.modelfile import ModelFileError
from devdan.model.recent import withdraw

EVENTS = 8  # that a network of a fleet remembers
USED, INPUTS, SETTINGS = range(8, 11)  # words of a slot that compiled code does not read
_LAST = SETTINGS + 1
_WIDTH = 16  # words of a slot: two cache lines
STEP = 4  # of room for hidden units: half of a cache line, as most networks of keys stay small
_LATEST = 64  # predictions of a key that are remembered as right or wrong: the bits of a word


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

    def withdraw(self, slots: Integers, X: Floats, codes: Integers) -> None:
        """Take labels back that were taught to the networks in these slots; -1 is none."""
        for slot, row, code in zip(slots.tolist(), X, codes.tolist(), strict=True):
            if slot >= 0:
                kept = self.get(slot)
                withdraw([kept.state], row[np.newaxis], np.flatnonzero(kept.codes == code))
                self.table[slot, CHANGED] = 1

    def remove(self, slot: int) -> None:
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

    def accuracies(self, slots: Integers) -> Floats:
        """The share of right ones among the latest predictions of each; NaN where none was compared with a label."""
        right = np.unpackbits(self.table[slots, kernel.JUDGED].view(np.uint8)).reshape(-1, _LATEST).sum(axis=1)
        judged = np.minimum(self.table[slots, kernel.N_JUDGED], _LATEST)
        found: Floats = np.full(len(slots), np.nan)
        np.divide(right, judged, out=found, where=judged > 0)
        return found


# --- Wherever they are -------------------------------------------------------------------------------------------


_SPARE = 20  # a part of the memory, 1 / 20, is made free at once, so that many rows are written together


class Networks:
    """Networks by key. ``check`` is called with rows that another process may have written."""

    def __init__(self, check: Callable[[Sequence[Row]], None], store: KeyStore | None = None, n_keys: int = 0) -> None:
        self.slots = Slots()
        self.gone: set[str] = set()  # keys that were deleted since the last save, if there is no store
        self.store = store
        self._check, self._n_keys = check, n_keys
        self._tick = 0  # how often networks were asked for

    def __len__(self) -> int:
        return self._n_keys

    def __iter__(self) -> Iterator[Key]:
        return iter([*self.slots, *(of_text(text) for text, *_ in self.figures_elsewhere())])

    def __contains__(self, key: Key) -> bool:
        return self.get(key) is not None

    # --- One key -------------------------------------------------------------------------------------------------

    def get(self, key: Key) -> Kept | None:
        """What is kept of a key, no copy; None if it is not known."""
        if key in self.slots.index:
            return self.slots.get(self.slots.index[key])
        if self.store is not None:
            for row in self._read(self.store, [text_of(key)]):
                return row.kept
        return None

    def put(self, key: Key, kept: Kept, most: int | None) -> None:
        """Take in another network for a key, or a new key."""
        slot = int(self.bring([key], most)[0])
        if slot < 0:
            slot = int(self.add([key], kept, None)[0])
        self.slots.put(slot, kept)
        self.slots.table[slot, CHANGED] = 1

    def remove(self, key: Key) -> None:
        if self.store is not None:
            self.store.forget(text_of(key))
        else:
            self.gone.add(text_of(key))
        if key in self.slots.index:
            self.slots.remove(self.slots.index[key])
        self._n_keys -= 1

    # --- Many at once --------------------------------------------------------------------------------------------

    def bring(self, keys: Sequence[Key], most: int | None) -> Integers:
        """The slot of each key, from the store if it is there, or -1 if it is new; others go there to make room."""
        self._tick += 1
        slots = self.slots.find(keys)
        if self.store is not None:
            if slots.min() < 0:
                self._fetch(keys, slots)
                slots = self.slots.find(keys)
            self.slots.table[slots[slots >= 0], USED] = self._tick
            if most is not None:
                n_new = len({key for key, slot in zip(keys, slots.tolist(), strict=True) if slot < 0})
                self._make_room(len(self.slots) + n_new, most)
        return slots

    def _fetch(self, keys: Sequence[Key], slots: Integers) -> None:
        """Take in those that are in the store."""
        assert self.store is not None
        missing = {text_of(key): key for key, slot in zip(keys, slots.tolist(), strict=True) if slot < 0}
        for row in self._read(self.store, list(missing)):
            self.slots.add(missing[row.text], row.kept)

    def _read(self, store: KeyStore, texts: Sequence[str]) -> list[Row]:
        """What a store has of these keys; what was there before this process is checked."""
        found = list(store.get(texts))
        try:
            self._check([row for row, is_ours in found if not is_ours])
        except ValueError as error:
            raise ModelFileError(f"{store} does not hold a valid fleet: {error}") from error
        return [row for row, _ in found]

    def check(self, rows: Sequence[Row]) -> None:
        """Raise a ``ValueError`` unless compiled code is safe with all of these rows."""
        self._check(rows)

    def take(self, rows: Sequence[Row]) -> None:
        """Take in what a file holds."""
        self.check(rows)
        self.take_checked((of_text(row.text), row.kept) for row in rows)

    def take_checked(self, networks: Iterable[tuple[Key, Kept]]) -> None:
        """Take in networks of new keys, which were checked before."""
        before = len(self.slots)
        for key, kept in networks:
            self.slots.add(key, kept)
        self._n_keys += len(self.slots) - before

    def _make_room(self, n_needed: int, most: int) -> None:
        """Let those that were not used for longest go to the store, but none that is in use now."""
        if n_needed <= most:
            return
        assert self.store is not None
        slots = self.slots.in_use()
        used = self.slots.table[slots, USED]
        may_go = used < self._tick
        if not self.store.takes_changes:
            may_go &= self.slots.table[slots, CHANGED] == 0
        slots, used = slots[may_go], used[may_go]
        n_out = min(n_needed - most + most // _SPARE, len(slots))
        out = slots[np.argsort(used, kind="stable")[:n_out]]
        if self.store.takes_changes:
            self.store.put(self.rows(out[self.slots.table[out, CHANGED] == 1]))
        for slot in out.tolist():
            self.slots.remove(slot)

    def add(self, keys: Sequence[Key], start: Kept, seeds: Sequence[int] | None) -> Integers:
        """Take in new networks that differ in nothing but their seeds, if these are given."""
        random = kernel.Network(start.state).random
        slots = []
        for key, seed in zip(keys, seeds or repeat(random[0]), strict=False):
            random[0] = seed
            slots.append(self.slots.add(key, start))
        self.slots.table[slots, USED] = self._tick
        self._n_keys += len(keys)
        return np.array(slots)

    def drop_unbegun(self, slots: Integers) -> None:
        """Forget new networks that have learned nothing yet."""
        for slot in slots[self.slots.words(slots, "n_seen")[:, 0] == 0].tolist():
            self.slots.remove(slot)
            self._n_keys -= 1

    def rows(self, slots: Integers) -> Iterator[Row]:
        """What a store keeps of networks in memory."""
        figures = self.figures(slots)
        columns = [figures[name] for name in FIGURES]
        for slot, *own in zip(slots.tolist(), *columns, strict=True):
            yield Row(text_of(self.slots.key(slot)), tuple(own), self.slots.get(slot))

    def figures(self, slots: Integers) -> dict[str, list[Any]]:
        """What there is to say about networks in memory."""
        table = self.slots.table
        words = self.slots.words(slots, "n_seen", "n_learned", "n_hidden", "n_drifts").T.tolist()
        samples, _, labels, units, virtual_drifts, real_drifts = words
        accuracy = [None if own != own else own for own in self.slots.accuracies(slots).tolist()]  # noqa: PLR0124 (NaN)
        found = samples, labels, units, real_drifts, virtual_drifts, accuracy, table[slots, SEEN].tolist()
        return dict(zip(FIGURES, found, strict=True))

    @property
    def n_changed(self) -> int:
        """How many have changed since the last save, or a little more."""
        return int(np.count_nonzero(self.slots.table[:, CHANGED]))

    def changed_rows(self) -> Iterator[Row]:
        """What a store keeps of those in memory that have changed since the last save."""
        slots = self.slots.in_use()
        return self.rows(slots[self.slots.table[slots, CHANGED] == 1])

    def all_rows(self) -> Iterator[Row]:
        """What a store keeps of all, wherever they are."""
        yield from self.rows(self.slots.in_use())
        yield from self.rows_elsewhere()

    def note_saved(self) -> None:
        """All are saved as they are."""
        self.slots.table[:, CHANGED] = 0
        self.gone.clear()

    def figures_elsewhere(self) -> list[tuple[Any, ...]]:
        """The texts and figures of keys that are not in memory."""
        if self.store is None:
            return []
        here = set(map(text_of, self.slots))
        return [row for row in self.store.figures() if row[0] not in here]

    def rows_elsewhere(self) -> Iterator[Row]:
        """What the store has of keys that are not in memory."""
        if self.store is not None:
            here = set(map(text_of, self.slots))
            yield from (row for row in self.store.rows() if row.text not in here)
