"""The keys of a fleet as a run's records tell of them: figures of each, and how they spread over time."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from devdan.arrays import Floats, Words
from devdan.evaluation.record import Record

RECENT = 64  # scored rows of a key over which its recent accuracy is taken, as in a fleet's summary
FEW = 20  # scored rows below which a key's accuracy says little
SHARES = (0.1, 0.25, 0.5, 0.75, 0.9)  # of the keys that are below the lines of the spread
_MOST_POINTS = 200
_COUNTS = ("samples", "scored", "right", "virtual", "real", "last")


class Spread(NamedTuple):
    """The recent accuracies of the keys after a sample, by :data:`SHARES`."""

    end: int
    n_keys: int  # that they are of
    levels: tuple[float, ...]


class Drift(NamedTuple):
    """A drift of one key; ``sample`` is the last of its chunk."""

    sample: int
    place: int
    is_real: bool


class KeyFigures:
    """Figures by key, in order of appearance; arrays have an element for each of ``names``."""

    def __init__(self) -> None:
        self.names: list[Any] = []
        self.drifts: list[Drift] = []
        self._places: dict[Any, int] = {}
        self._counts = np.zeros((len(_COUNTS), 1024), np.int64)
        self._recent = np.zeros((2, 1024))  # accuracy, and over how many rows
        self._spreads: list[Spread] = []
        self._stride, self._n_records, self._end = 1, 0, 0

    def __len__(self) -> int:
        return len(self.names)

    def add(self, record: Record) -> None:
        """Add the next record."""
        counts = record.keys or ()
        self._end = record.start + record.n_samples
        for name in (count.key for count in counts if count.key not in self._places):
            self._places[name] = len(self.names)
            self.names.append(name)
        self._make_room()
        if counts:
            places = np.array([self._places[count.key] for count in counts])
            found = np.array([count[1:] for count in counts], np.int64).T
            self._counts[:5, places] += found
            self._counts[5, places] = self._end
            _, scored, right, virtual, real = found
            accuracy, over = self._recent[:, places]
            n = np.maximum(over + scored, 1)
            self._recent[:, places] = (accuracy * over + right) / n, np.minimum(over + scored, RECENT)
            for numbers, is_real in ((virtual, False), (real, True)):
                for k in np.flatnonzero(numbers).tolist():
                    self.drifts += [Drift(self._end, int(places[k]), is_real)] * int(numbers[k])
        self._n_records += 1
        if self._n_records % self._stride == 0:
            self._note_spread()

    def _make_room(self) -> None:
        room = self._counts.shape[1]
        if len(self.names) > room:
            more = ((0, 0), (0, max(len(self.names), 2 * room) - room))
            self._counts, self._recent = np.pad(self._counts, more), np.pad(self._recent, more)

    def _note_spread(self) -> None:
        """Keep how the keys are spread now; when there are too many points, every other one goes."""
        known = self.recent[self.is_judged]
        if len(known) >= 2:
            levels = tuple(np.quantile(known, SHARES).tolist())
            self._spreads.append(Spread(self._end, len(known), levels))
        if len(self._spreads) > _MOST_POINTS:
            self._spreads = self._spreads[1::2]
            self._stride *= 2

    # --- Figures -------------------------------------------------------------------------------------------------

    def _count(self, name: str) -> Words:
        counts: Words = self._counts[_COUNTS.index(name), : len(self.names)]
        return counts

    @property
    def samples(self) -> Words:
        return self._count("samples")

    @property
    def last(self) -> Words:
        """The last sample of the chunk that last had a row or a late label of the key."""
        return self._count("last")

    @property
    def real_drifts(self) -> Words:
        return self._count("real")

    @property
    def virtual_drifts(self) -> Words:
        return self._count("virtual")

    @property
    def is_scored(self) -> npt.NDArray[np.bool_]:
        scored: npt.NDArray[np.bool_] = self._count("scored") > 0
        return scored

    @property
    def is_judged(self) -> npt.NDArray[np.bool_]:
        """Whether enough rows were scored for an accuracy that says something."""
        judged: npt.NDArray[np.bool_] = self._count("scored") >= FEW
        return judged

    @property
    def accuracy(self) -> Floats:
        """Over all scored rows; NaN if there is none."""
        scored = self._count("scored")
        shares: Floats = np.where(scored > 0, self._count("right") / np.maximum(scored, 1), np.nan)
        return shares

    @property
    def recent(self) -> Floats:
        """Over the latest scored rows; NaN if there is none."""
        shares: Floats = np.where(self.is_scored, self._recent[0, : len(self.names)], np.nan)
        return shares

    @property
    def spreads(self) -> list[Spread]:
        """How the accuracies were spread over the keys, from time to time."""
        return self._spreads
