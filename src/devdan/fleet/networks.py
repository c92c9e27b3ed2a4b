"""The networks of a fleet wherever they are: in memory, or those not used for longest in a store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import repeat
from typing import Any

import numpy as np

from devdan import kernel
from devdan.arrays import Integers
from devdan.fleet.keys import Key, of_text, text_of
from devdan.fleet.slots import USED, Kept, Slots
from devdan.fleet.store import FIGURES, Row, Store
from devdan.kernel import CHANGED, SEEN
from devdan.model.modelfile import ModelFileError

_LATEST = 64  # predictions of a key that are remembered as right or wrong: the bits of a word
_SPARE = 20  # a part of the memory, 1 / 20, is made free at once, so that many rows are written together


class Networks:
    """Networks by key. ``check`` is called with rows that another process may have written."""

    def __init__(self, check: Callable[[Sequence[Row]], None], store: Store | None = None, n_keys: int = 0) -> None:
        self.slots = Slots()
        self.gone: set[str] = set()  # keys that were deleted since the last save, if there is no store
        self._check, self._store, self._n_keys = check, store, n_keys
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
        if self._store is not None:
            for row in self._read(self._store, [text_of(key)]):
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
        """Forget a key."""
        if self._store is not None:
            self._store.forget(text_of(key))
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
        if self._store is not None:
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
        assert self._store is not None
        missing = {text_of(key): key for key, slot in zip(keys, slots.tolist(), strict=True) if slot < 0}
        for row in self._read(self._store, list(missing)):
            self.slots.add(missing[row.text], row.kept)

    def _read(self, store: Store, texts: Sequence[str]) -> list[Row]:
        """What a store has of these keys; what was there before this process is checked."""
        found = list(store.get(texts))
        try:
            self._check([row for row, is_ours in found if not is_ours])
        except ValueError as error:
            raise ModelFileError(f"{store.path} does not hold a valid fleet: {error}") from error
        return [row for row, _ in found]

    def take(self, rows: Sequence[Row]) -> None:
        """Take in what a file holds."""
        self._check(rows)
        for row in rows:
            self.slots.add(of_text(row.text), row.kept)
        self._n_keys += len(rows)

    def _make_room(self, n_needed: int, most: int) -> None:
        """Let those that were not used for longest go to the store, but none that is in use now."""
        if n_needed <= most:
            return
        slots = self.slots.in_use()
        used = self.slots.table[slots, USED]
        slots, used = slots[used < self._tick], used[used < self._tick]
        n_out = min(n_needed - most + most // _SPARE, len(slots))
        out = slots[np.argsort(used, kind="stable")[:n_out]]
        assert self._store is not None
        self._store.put(self.rows(out[self.slots.table[out, CHANGED] == 1]))
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
        right = np.unpackbits(table[slots, kernel.JUDGED].view(np.uint8)).reshape(-1, _LATEST).sum(axis=1)
        judged = np.minimum(table[slots, kernel.N_JUDGED], _LATEST)
        accuracy = [r / n if n > 0 else None for r, n in zip(right.tolist(), judged.tolist(), strict=True)]
        found = samples, labels, units, real_drifts, virtual_drifts, accuracy, table[slots, SEEN].tolist()
        return dict(zip(FIGURES, found, strict=True))

    def figures_elsewhere(self) -> list[tuple[Any, ...]]:
        """The texts and figures of keys that are not in memory."""
        if self._store is None:
            return []
        here = set(map(text_of, self.slots))
        return [row for row in self._store.figures() if row[0] not in here]

    def rows_elsewhere(self) -> Iterator[Row]:
        """What the store has of keys that are not in memory."""
        if self._store is not None:
            here = set(map(text_of, self.slots))
            yield from (row for row in self._store.rows() if row.text not in here)
