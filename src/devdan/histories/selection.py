"""Which histories tell something about the labels that have come: only these are shown to models.

Further columns cost a model something even if they tell nothing, and there are many: each horizon and column has its
own. So each is compared with the labels, in bins of its values. The bins are those of a normal distribution with the
mean and deviation of the period before. A period ends once there have been twice as many labels as at the end of the
one before; then, a column is shown if it depends on the label more than by chance, unless ``MOST_SHOWN`` others do so
more strongly. Until there are enough labels of another class than the most frequent one, all are shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from devdan.arrays import Floats, Integers
from devdan.histories import core
from devdan.histories.group import MOST, check_count, check_texts

FIRST = 1000  # labels by which columns are judged first; the bins are found from the first half
MOST_SHOWN = 16  # columns that are shown once it is known which tell most
BY_CHANCE = 2.0  # times the dependence that is expected of columns that tell nothing: less is taken for chance
FEWEST = 20  # labels of other classes than the most frequent one, without which nothing is judged
_FLOATS = 4  # of a column: mean, squared deviations, centre and width of its bins


class Selection:
    """The columns that are judged, and what is known of them."""

    def __init__(self, n_classes: int) -> None:
        self.names: tuple[str, ...] = ()
        self.n_classes = n_classes
        self.counters = np.array([0, FIRST // 2, 0], np.int64)  # labels, those at which the period ends, those in it
        self.sums = np.zeros((0, _FLOATS))
        self.counts = np.zeros((0, core.BINS, n_classes))
        self.gains = np.zeros(0)  # how much each was found to depend on the label, in the latest period
        self.usual = np.zeros(0)  # what is shown instead of a column that is not
        self.hidden = np.zeros(0, np.bool_)

    def know(self, names: Sequence[str]) -> None:
        """Take the columns that there are now; those that are new are judged when the next period ends."""
        if self.names == tuple(names):
            return
        places = {name: place for place, name in enumerate(self.names)}
        known = np.array([places.get(name, -1) for name in names], np.int64)
        self.names = tuple(names)
        for what in ("sums", "counts", "gains", "usual", "hidden"):
            before = getattr(self, what)
            padded = np.concatenate([before, np.zeros((1, *before.shape[1:]), before.dtype)])
            setattr(self, what, padded[known])

    def add(self, features: Floats, codes: Integers, sign: float) -> None:
        """Count rows, with the histories that they came with, and their labels; or take labels back."""
        if sign < 0.0:
            core.take_back(self.sums, self.counts, features, codes)
            return
        done = 0
        while done < len(codes):
            done += int(core.tally(self.counters, self.sums, self.counts, features[done:], codes[done:]))
            if self.counters[core.LABELS] == self.counters[core.UNTIL]:
                self._end_period()

    def instead(self) -> dict[str, float]:
        """The columns that are not shown, and the value that each row has instead."""
        return {self.names[place]: float(self.usual[place]) for place in np.flatnonzero(self.hidden).tolist()}

    def _end_period(self) -> None:
        if self.counters[core.LABELS] >= FIRST:
            self._judge()
        n = max(int(self.counters[core.IN_PERIOD]), 1)
        self.sums[:, core.CENTRE] = self.sums[:, core.MEAN]
        self.sums[:, core.WIDTH] = np.sqrt(self.sums[:, core.SQUARES] / n)
        self.sums[:, [core.MEAN, core.SQUARES]] = 0.0
        self.counts[:] = 0.0
        self.counters[core.UNTIL] *= 2
        self.counters[core.IN_PERIOD] = 0

    def _judge(self) -> None:
        """Decide which columns are shown, by the G-test of independence."""
        of_classes = self.counts.sum(axis=1)
        if not len(of_classes) or (of_classes.sum(axis=1) - of_classes.max(axis=1)).max() < FEWEST:
            return
        of_bins = self.counts.sum(axis=2)
        expected = of_bins[:, :, None] * of_classes[:, None, :] / np.maximum(of_bins.sum(axis=1), 1.0)[:, None, None]
        ratio = np.where(self.counts > 0.0, self.counts, 1.0) / np.where(self.counts > 0.0, expected, 1.0)
        statistic = 2.0 * (self.counts * np.log(ratio)).sum(axis=(1, 2))
        by_chance = ((of_bins > 0.0).sum(axis=1) - 1) * ((of_classes > 0.0).sum(axis=1) - 1)
        self.gains = np.where(statistic > BY_CHANCE * by_chance, np.maximum(statistic - by_chance, 0.0), 0.0)
        best = np.argsort(-self.gains, kind="stable")[:MOST_SHOWN]
        self.hidden = np.ones(len(self.gains), np.bool_)
        self.hidden[best] = self.gains[best] == 0.0
        self.usual = self.sums[:, core.MEAN].copy()

    # --- Files ---------------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """The selection as JSON."""
        return {
            "names": list(self.names), "n_classes": self.n_classes, "counters": self.counters.tolist(),
            "sums": self.sums.tolist(), "counts": self.counts.tolist(), "gains": self.gains.tolist(),
            "usual": self.usual.tolist(), "hidden": self.hidden.tolist(),
        }  # fmt: skip

    @classmethod
    def of_json(cls, content: Any) -> Selection:
        """A selection from a file; raises a ``ValueError``, ``TypeError`` or ``KeyError`` if it is invalid."""
        names, n_classes = check_texts(content["names"]), check_count(content["n_classes"])
        selection = cls(n_classes)
        n = len(names)
        selection.names = tuple(names)
        selection.counters = np.array([check_count(value) for value in content["counters"]], np.int64)
        selection.sums = _floats(content["sums"], (n, _FLOATS))
        selection.counts = _floats(content["counts"], (n, core.BINS, n_classes))
        selection.gains, selection.usual = _floats(content["gains"], (n,)), _floats(content["usual"], (n,))
        hidden = content["hidden"]
        is_sound = (
            len(set(names)) == n and len(selection.counters) == 3
            and selection.counters[core.LABELS] < selection.counters[core.UNTIL]
            and selection.counters[core.IN_PERIOD] <= selection.counters[core.LABELS]
            and isinstance(hidden, list) and len(hidden) == n and all(type(each) is bool for each in hidden)
            and (selection.counts >= 0.0).all() and (selection.gains >= 0.0).all()
            and (selection.sums[:, [core.SQUARES, core.WIDTH]] >= 0.0).all()
        )  # fmt: skip
        if not is_sound:
            raise ValueError("what is known of histories and labels does not fit together")
        selection.hidden = np.array(hidden, np.bool_)
        return selection


def _floats(values: Any, shape: tuple[int, ...]) -> npt.NDArray[np.float64]:
    found = np.array(values, np.float64).reshape(shape)
    if not (np.abs(found) < MOST).all():
        raise ValueError("what is known of histories and labels is out of range")
    return found
