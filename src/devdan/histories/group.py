"""All entities of one kind: what is kept of them, in memory and in files."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from devdan.arrays import Floats, Integers
from devdan.histories import core

LATEST = 1e18  # the latest time that can be
MOST = 1e250  # more than any sum of squares
_FIRST_ROOM = 64  # entities for which there is room at first
_GROWTH = 1.2  # each time there is no more room
LADDER = (1.0, 10.0, 60.0, 600.0, 3600.0, 21_600.0, 86_400.0, 604_800.0, 2_592_000.0, 15_552_000.0, 63_072_000.0)


class Group:
    """The entities that one column, or a tuple of columns, names."""

    def __init__(self, columns: tuple[str, ...], horizons: Sequence[float] | None, max_entities: int) -> None:
        self.columns, self.name = columns, "+".join(columns)
        self.horizons = np.array([1.0, 2.0, 3.0] if horizons is None else horizons)  # the former until they are found
        self.integers, self.floats = np.zeros(core.INTEGERS, np.int64), np.zeros(core.FLOATS)
        self.integers[core.ROOM] = max_entities
        self.numbers: list[str] = []
        self.values: list[str] = []
        self.judged = np.zeros((0, 4))  # a row for each column of numbers, then of categories
        self.words = np.zeros((1, self.width))
        self.words[0, core.LATEST] = np.nan
        self.index = np.zeros(2, np.int64)
        self.floats[[core.BEGAN, core.BEFORE_NOW]] = np.nan
        self.integers[core.SETTLED] = horizons is not None

    @property
    def width(self) -> int:
        """Words of an entity."""
        n_classes, n_horizons = int(self.integers[core.N_CLASSES]), len(self.horizons)
        of_numbers = core.MOMENTS * n_horizons * len(self.numbers)
        return core.HEAD + n_horizons * (1 + n_classes) + of_numbers + 2 * core.KEPT * len(self.values)

    @property
    def n_first_features(self) -> int:
        """Those that are not about columns."""
        return 1 + len(self.horizons) * max(int(self.integers[core.N_CLASSES]), 1)

    @property
    def n_features(self) -> int:
        return self.n_first_features + (2 * len(self.horizons) + 1) * len(self.numbers) + 2 * len(self.values)

    @property
    def n_bytes(self) -> int:
        return int(self.words.nbytes + self.index.nbytes)

    @property
    def n_bytes_each(self) -> int:
        """The most memory that an entity takes, with its place in the index and the room made in advance."""
        return math.ceil(8 * (_GROWTH * self.width + 4))

    def begin(self, first: float, now: float) -> None:
        """Start the clock when the first row came; also once it turns out when that was, or that it is earlier."""
        began = self.floats[core.BEGAN]
        if math.isnan(began) or not self.integers[core.SETTLED] or began > now:
            self.floats[core.BEGAN] = first
        if not math.isnan(began):
            present = max(now - self.floats[core.BEGAN], 0.0) if self.integers[core.SETTLED] else 0.0
            for word, latest in ((core.TOUCHED, present), (core.LABELLED, present), (core.LATEST, now)):
                np.minimum(self.words[:, word], latest, out=self.words[:, word])

    # --- Room ----------------------------------------------------------------------------------------------------

    def widen(self, numbers: Sequence[str] = (), values: Sequence[str] = (), n_classes: int = 0) -> None:
        """Keep more of each entity: further columns, or room for further classes."""
        before, n_before = self.words, int(self.integers[core.N_CLASSES])
        n_horizons, n_numbers = len(self.horizons), len(self.numbers)
        self.numbers = [*self.numbers, *numbers]
        self.values = [*self.values, *values]
        self.integers[core.N_CLASSES] = max(n_classes, n_before)
        of_numbers, of_values = self.judged[:n_numbers], self.judged[n_numbers:]
        new_columns = np.zeros((len(numbers), 4)), np.zeros((len(values), 4))
        self.judged = np.concatenate([of_numbers, new_columns[0], of_values, new_columns[1]])
        self.words = np.zeros((len(before), self.width))
        end = core.HEAD + n_horizons * (1 + n_before)
        self.words[:, :end] = before[:, :end]
        n, new = core.MOMENTS * n_horizons * n_numbers, core.HEAD + n_horizons * (1 + max(n_classes, n_before))
        self.words[:, new : new + n] = before[:, end : end + n]
        rest, new = before[:, end + n :], new + core.MOMENTS * n_horizons * len(self.numbers)
        self.words[:, new : new + rest.shape[1]] = rest

    def grow(self) -> None:
        """Room for more entities."""
        room = min(max(_FIRST_ROOM, math.ceil(_GROWTH * (len(self.words) - 1))), int(self.integers[core.ROOM]))
        words = np.zeros((room + 1, self.words.shape[1]))
        words[: len(self.words)] = self.words
        self.words = words
        self.reindex()

    def reindex(self) -> int:
        """Rebuild the index; returns how many keys are invalid."""
        self.index = np.zeros(1 << (3 * len(self.words) // 2).bit_length(), np.int64)
        return int(core.reindex(self.words, int(self.integers[core.USED]), self.index))

    # --- Rows and labels -----------------------------------------------------------------------------------------

    def come(
        self, keys: Integers, times: Floats, numbers: Floats, values: Integers, given_up: Integers, n_before: int,
        ladder: Floats, out: Floats,
    ) -> None:  # fmt: skip
        """Add rows, and write what was known before each."""
        done = 0
        while True:
            done += core.come(
                self.integers, self.floats, self.horizons, ladder, self.words, self.index, self.judged,
                keys[done:], times[done:], numbers[done:], values[done:], given_up, n_before + done, out[done:],
            )  # fmt: skip
            if done == len(keys):
                return
            self.grow()

    def peek(self, keys: Integers, times: Floats, numbers: Floats, values: Integers, out: Floats) -> None:
        """Write what would be known of each row if it came next."""
        core.peek(
            self.integers, self.floats, self.horizons, self.words, self.index, self.judged, keys, times, numbers,
            values, np.empty((2, self.words.shape[1])), out,
        )  # fmt: skip

    def label(self, keys: Integers, codes: Integers, now: float, at: Floats, sign: float) -> None:
        """Count labels, or (``sign`` -1) count them no longer."""
        done = 0
        while True:
            done += core.label(
                self.integers, self.floats, self.horizons, self.words, self.index, keys[done:], codes[done:], now,
                at[done:], sign,
            )  # fmt: skip
            if done == len(keys):
                return
            self.grow()

    def withdraw(self, keys: Integers, now: float, at: Floats, numbers: Floats, values: Integers) -> None:
        """Take rows out."""
        core.withdraw(
            self.integers,
            self.floats,
            self.horizons,
            self.words,
            self.index,
            self.judged,
            keys,
            now,
            at,
            numbers,
            values,
        )

    # --- Files ---------------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """The group as JSON, without :meth:`content`."""
        return {
            "columns": list(self.columns), "numbers": self.numbers, "values": self.values,
            "horizons": self.horizons.tolist(), "integers": self.integers.tolist(),
            "floats": [None if math.isnan(value) else value for value in self.floats.tolist()],
            "judged": self.judged.tolist(), "n_words": int(self.integers[core.USED] + 1) * self.width,
        }  # fmt: skip

    def content(self) -> Floats:
        """The words of the entities."""
        return self.words[: int(self.integers[core.USED]) + 1].reshape(-1)

    @classmethod
    def of_json(cls, content: Any, words: Floats) -> Group:
        """A group from a file; raises a ``ValueError``, ``TypeError`` or ``KeyError`` if it is invalid."""
        columns = tuple(check_texts(content["columns"]))
        horizons = [float(value) for value in content["horizons"]]
        check_horizons(horizons)
        integers = np.array([check_count(value) for value in content["integers"]], np.int64)
        if len(integers) != core.INTEGERS or not columns:
            raise ValueError("a group of entities is incomplete")
        group = cls(columns, horizons, 1)
        group.integers = integers
        group.floats = np.array([np.nan if value is None else float(value) for value in content["floats"]])
        group.numbers, group.values = check_texts(content["numbers"]), check_texts(content["values"])
        group.judged = np.array([[float(value) for value in row] for row in content["judged"]]).reshape(-1, 4)
        used = int(integers[core.USED])
        is_sound = (
            used <= integers[core.ROOM] and integers[core.ROOM] >= 1 and integers[core.SETTLED] <= 1
            and 1 <= integers[core.N_CLASSES] <= 64 and integers[core.HAND] < core.SPREAD
            and len(group.floats) == core.FLOATS and not (np.abs(group.floats) > LATEST).any()
            and not math.isnan(group.floats[core.LOG_GAP]) and group.floats[core.STEP] >= 0.0
            and len(group.judged) == len(group.numbers) + len(group.values) and np.isfinite(group.judged).all()
            and len(words) > 0 and len(words) == (used + 1) * group.width
        )  # fmt: skip
        if not is_sound:
            raise ValueError(f"what is kept of {group.name} does not fit together")
        group.words = words.reshape(used + 1, group.width).copy()
        group._check_words()
        return group

    def _check_words(self) -> None:
        """Raise a ``ValueError`` unless the entities are such as can have come about."""
        words, n_horizons = self.words, len(self.horizons)
        latest, others = words[:, core.LATEST], np.delete(words, core.LATEST, axis=1)
        keys = words[1:, core.KEY]
        sums = words[:, core.HEAD :]
        start = n_horizons * (1 + int(self.integers[core.N_CLASSES]))
        n_moments = core.MOMENTS * n_horizons * len(self.numbers)
        moments = sums[:, start : start + n_moments].reshape(len(words), -1, core.MOMENTS)
        kept = sums[:, start + n_moments :].reshape(len(words), -1, 2, core.KEPT)
        is_sound = (
            not (np.abs(latest) > LATEST).any() and (np.abs(others) < MOST).all() and words[0, core.KEY] == 0.0
            and (keys >= 1).all() and (keys < 2.0**53).all() and (keys == np.floor(keys)).all()
            and (words[:, [core.TOUCHED, core.LABELLED]] >= 0).all() and (words[:, core.N_ROWS] >= 0).all()
            and (sums[:, :start] >= 0).all() and (sums[:, :start] < LATEST).all() and (kept < LATEST).all()
            and (moments[..., [0, 2]] >= 0).all() and (kept >= 0).all()
            and (kept[:, :, 0] < 2.0**53).all()
        )  # fmt: skip
        if not is_sound or self.reindex() > 0:
            raise ValueError(f"what is kept of {self.name} is not what rows and labels leave")


def check_horizons(horizons: Sequence[float]) -> None:
    """Raise a ``ValueError`` unless these can be horizons."""
    rising = all(a < b for a, b in pairwise(horizons))
    if not 1 <= len(horizons) <= 8 or not all(0 < h < math.inf for h in horizons) or not rising:
        raise ValueError(f"horizons must be one to eight positive numbers that rise, got {list(horizons)}")


def check_texts(values: Any) -> list[str]:
    """The values, if they are a list of text."""
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ValueError("the columns of histories are not a list of text")
    return list(values)


def check_count(value: Any) -> int:
    """The value, if it is a number of things."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**62:
        raise ValueError("a counter of histories is out of range")
    return value
