"""Scores counted on a fixed grid, and what follows from their order: ROC-AUC, average precision, curves, alerts.

The score of a class is its predicted probability. Each class has two histograms of it, of the samples of the class and
of all others, over logit(p) = log(p / (1 - p)) in cells 1/1024 wide: about a thousandth of a small probability. Scores
within a cell count as equal, as those do that round to 0 or 1 in double precision. Memory does not grow with the
number of samples, and a measure of a whole run, of a window or of a point of a curve is that of added counts.
"""

from __future__ import annotations

import math
from base64 import b64decode, b64encode
from typing import NamedTuple

import numpy as np

from devdan.arrays import Bytes, Floats, Integers
from devdan.kernel.jit import entry

MOST_CLASSES = 12  # whose scores are counted, and which are looked at one by one
WIDTH = 1 / 1024  # of a cell, in logit(p)
_END = 37  # 1 - p is rounded to 0 from here on
N_CELLS = round(2 * _END / WIDTH)
_NEW_CELLS = 1 << 17  # that are kept apart until they are added to the others
_TINIEST = float(
    np.finfo(np.float64).eps
)  # a probability of the true class is not taken to be less, as in scikit-learn


class Scored(NamedTuple):
    """The scores of a chunk; ``cells`` says how many samples each cell has, packed and in base64.

    Cell ``(2 * c + belongs) * N_CELLS + k`` counts the samples whose score of class c is in cell k of the grid. Of two
    classes only the second is there, since the scores of the first are their mirror image; of more than twelve, none.
    """

    n_samples: int
    log_loss: float  # the sum over samples, as is the next
    squares: float  # of the differences between the probabilities and the labels
    cells: str


NOT_SCORED = Scored(0, 0.0, 0.0, "")


@entry
def _place(probabilities: Floats, columns: Integers, true: Integers, first: int, out: Integers, sums: Floats) -> None:
    """The cells of the classes from ``first`` on, one row of ``out`` per sample, and the sums of both losses.

    ``columns`` has the column of each class, or -1. A class without a column has the score 0.
    """
    for t in range(len(true)):
        squares = 1.0
        for k in range(probabilities.shape[1]):
            squares += probabilities[t, k] * probabilities[t, k]
        column = columns[true[t]]
        own = probabilities[t, column] if column >= 0 else 0.0
        sums[0] -= math.log(min(max(own, _TINIEST), 1.0 - _TINIEST))
        sums[1] += squares - 2.0 * own
        for place in range(out.shape[1]):
            c = first + place
            p = probabilities[t, columns[c]] if columns[c] >= 0 else 0.0
            k = N_CELLS - 1
            if p <= 0.0:
                k = 0
            elif p < 1.0:
                k = min(max(int((math.log(p / (1.0 - p)) + _END) / WIDTH), 0), N_CELLS - 1)
            out[t, place] = (2 * c + (true[t] == c)) * N_CELLS + k


@entry
def _pack(cells: Integers, out: Bytes) -> int:
    """Pack sorted cells, of which several may be the same; returns the number of bytes.

    For each there are how far it is from the one before, doubled, plus 1 if it has several samples; then how many.
    Numbers have seven bits a byte, the lowest first, and the eighth says that more follow.
    """
    end = before = t = 0
    while t < len(cells):
        n = 1
        while t + n < len(cells) and cells[t + n] == cells[t]:
            n += 1
        number = 2 * (cells[t] - before) + (n > 1)
        for _ in range(1 if n == 1 else 2):
            while number > 127:
                out[end] = 128 + number % 128
                number //= 128
                end += 1
            out[end] = number
            number = n
            end += 1
        before = cells[t]
        t += n
    return end


@entry
def _unpack(packed: Bytes, most: int, cells: Integers, counts: Integers) -> int:
    """Unpack cells and how many samples each has; returns how many cells, or -1 if one is not below ``most``."""
    n = number = last = 0
    shift, is_count = 1, False
    for t in range(len(packed)):
        number += shift * (packed[t] % 128)
        shift *= 128
        if (number >= 2 * most and not is_count) or shift > 128**5:
            return -1
        if packed[t] < 128:
            if is_count:
                if number < 2:
                    return -1
                counts[n - 1] = number
                is_count = False
            else:
                last += number // 2
                if last >= most:
                    return -1
                cells[n], counts[n] = last, 1
                is_count = number % 2 == 1
                n += 1
            number, shift = 0, 1
    return -1 if is_count or shift > 1 else n


def scored(probabilities: Floats, columns: Integers, true: Integers) -> Scored:
    """The scores of samples: probabilities, the column of each class (-1: it has none), and the true classes.

    >>> scored(np.array([[0.75, 0.25], [0.5, 0.5]]), np.array([0, 1]), np.array([0, 1]))
    Scored(n_samples=2, log_loss=0.98..., squares=0.625, cells='tv4WyrEJ')
    """
    n_classes = len(columns)
    first = 1 if n_classes == 2 else 0
    cells = np.empty((len(true), max(_n_ranked(n_classes) - first, 0)), np.int64)
    sums = np.zeros(2)
    _place(np.ascontiguousarray(probabilities, np.float64), columns, true, first, cells, sums)
    in_order = np.sort(cells, axis=None)
    packed = np.empty(8 * len(in_order), np.uint8)
    end = _pack(in_order, packed)
    return Scored(len(true), float(sums[0]), float(sums[1]), b64encode(packed[:end].data).decode())


def by_class(probabilities: Floats, columns: Integers) -> Floats:
    """The scores of each class, which are 0 for one without a column (-1).

    >>> by_class(np.array([[0.75, 0.25]]), np.array([1, 0, -1]))
    array([[0.25, 0.75, 0.  ]])
    """
    scores = np.empty((len(probabilities), len(columns)))
    _gather(np.ascontiguousarray(probabilities, np.float64), columns, scores)
    return scores


@entry
def _gather(probabilities: Floats, columns: Integers, scores: Floats) -> None:
    for t in range(len(scores)):
        for c in range(len(columns)):
            scores[t, c] = probabilities[t, columns[c]] if columns[c] >= 0 else 0.0


def checked(scores: Scored, n_classes: int) -> Scored:
    """Scores read from a file; a ``ValueError`` says that they cannot be those of as many classes."""
    _unpacked(scores, n_classes)
    return Scored(int(scores.n_samples), float(scores.log_loss), float(scores.squares), scores.cells)


def _n_ranked(n_classes: int) -> int:
    """How many classes have histograms."""
    return n_classes if 2 <= n_classes <= MOST_CLASSES else 0


def _unpacked(scores: Scored, n_classes: int) -> tuple[Integers, Integers]:
    """The cells that have samples, in order, and how many they have."""
    packed = np.frombuffer(b64decode(scores.cells, validate=True), np.uint8)
    cells, counts = np.empty((2, len(packed)), np.int64)
    n = _unpack(packed, 2 * N_CELLS * _n_ranked(n_classes), cells, counts)
    if n < 0:
        raise ValueError("cells of scores must be on the grid")
    cells, counts = cells[:n], counts[:n]
    if n_classes == 2:  # mirrored, class 1 is class 0
        cells, counts = np.concatenate([4 * N_CELLS - 1 - cells[::-1], cells]), np.concatenate([counts[::-1], counts])
    return cells, counts


class Curve(NamedTuple):
    """Counts of the samples whose score is at least each of some thresholds, which fall."""

    places: Integers  # of the thresholds, on the grid
    hits: Integers  # samples of the class
    alarms: Integers  # of any class

    @property
    def thresholds(self) -> Floats:
        return np.asarray(np.where(self.places > 0, 1 / (1 + np.exp(_END - WIDTH * self.places)), 0.0))

    @property
    def precision(self) -> Floats:
        return np.asarray(self.hits / self.alarms)

    @property
    def recall(self) -> Floats:
        return np.asarray(self.hits / self.hits[-1])


@entry
def _fall(
    cells: Integers,
    counts: Integers,
    others: int,
    end: int,
    after: int,
    places: Integers,
    hits: Integers,
    alarms: Integers,
) -> int:
    """From the highest score to the lowest: cells of other classes from ``others`` to ``end``, then of the class."""
    a, b, n, found, raised = end - 1, after - 1, 0, 0, 0
    while a >= others or b >= end:
        place = max(cells[a] % N_CELLS if a >= others else -1, cells[b] % N_CELLS if b >= end else -1)
        if a >= others and cells[a] % N_CELLS == place:
            raised += counts[a]
            a -= 1
        if b >= end and cells[b] % N_CELLS == place:
            raised += counts[b]
            found += counts[b]
            b -= 1
        places[n], hits[n], alarms[n] = place, found, raised
        n += 1
    return n


class Ranking:
    """Counts of scores, and the measures of their order; a measure is None where a class or all others are absent."""

    def __init__(self, cells: Integers, counts: Integers) -> None:
        self._cells, self._counts = cells, counts

    @classmethod
    def of(cls, scores: Scored | None, n_classes: int) -> Ranking:
        """That of one chunk."""
        return cls(*_unpacked(scores or NOT_SCORED, n_classes))

    def curve(self, c: int) -> Curve | None:
        """Of a class, a point for each cell that has samples; None if it or all others are absent."""
        others, end, after = self._cells.searchsorted(N_CELLS * np.arange(2 * c, 2 * c + 3)).tolist()
        if end in (others, after):
            return None
        places, hits, alarms = np.empty((3, after - others), np.int64)
        n = _fall(self._cells, self._counts, others, end, after, places, hits, alarms)
        return Curve(places[:n], hits[:n], alarms[:n])

    def roc_auc(self, c: int) -> float | None:
        """The chance that a sample of the class has a higher score than another one; equal ones count half.

        >>> ranking = Ranking.of(scored(np.array([[0.9, 0.1], [0.6, 0.4]]), np.array([0, 1]), np.array([0, 1])), 2)
        >>> ranking.roc_auc(0), ranking.roc_auc(1), ranking.roc_auc(2)
        (1.0, 1.0, None)
        """
        curve = self.curve(c)
        if curve is None:
            return None
        others = curve.alarms - curve.hits
        # each step of the others is above the hits before it and, for half, those at the same place
        below = np.diff(others, prepend=0) * (curve.hits + np.concatenate(([0], curve.hits[:-1])))
        return float(below.sum() / (2.0 * curve.hits[-1] * others[-1]))

    def average_precision(self, c: int) -> float | None:
        """The precision at each threshold, weighted by the recall that it adds."""
        curve = self.curve(c)
        return None if curve is None else float(np.diff(curve.recall, prepend=0.0) @ curve.precision)

    def found(self, c: int, n_alerts: int) -> float | None:
        """The samples of a class among those of the highest scores; of equal ones, on average."""
        curve = self.curve(c)
        if curve is None:
            return None
        return float(np.interp(n_alerts, np.concatenate(([0], curve.alarms)), np.concatenate(([0], curve.hits))))


class Histograms:
    """Scores of many chunks, added up; only cells that have samples take memory."""

    def __init__(self) -> None:
        self.n_samples = self._n_classes = self._n_new = 0
        self.log_loss = self.squares = 0.0  # sums over the samples
        self._parts: list[tuple[Integers, Integers]] = []  # cells in order and their counts; the first has most of them

    def add(self, scores: Scored | None, n_classes: int) -> None:
        """Add those of a chunk. Until a class appears its score counts as 0."""
        if scores is not None:
            self._appear(n_classes)
            self._take(scores, *_unpacked(scores, n_classes))

    def join(self, later: Histograms) -> None:
        """Add those of later chunks."""
        self._appear(later._n_classes)
        for cells, counts in later._settled():
            self._take(later, cells, counts)

    def _take(self, sums: Scored | Histograms, cells: Integers, counts: Integers) -> None:
        if len(cells):
            self._parts.append((cells, counts))
            self._n_new += len(cells)
        self.n_samples += sums.n_samples
        self.log_loss += sums.log_loss
        self.squares += sums.squares
        if self._n_new > _NEW_CELLS:
            self._settled()

    def _settled(self) -> list[tuple[Integers, Integers]]:
        """All of it in one part."""
        if len(self._parts) != 1:
            added = np.zeros(2 * N_CELLS * _n_ranked(self._n_classes), np.int64)
            for cells, counts in self._parts:
                added[cells] += counts
            cells = np.flatnonzero(added)
            self._parts = [(cells, added[cells])]
        self._n_new = 0
        return self._parts

    def _appear(self, n_classes: int) -> None:
        before, self._n_classes = self._n_classes, max(n_classes, self._n_classes)
        if self._n_classes == before:
            return
        if _n_ranked(self._n_classes) == 0:
            self._parts = []
        elif self.n_samples:
            n = np.array([self.n_samples])
            if before < 2:  # so far there was one class, which had the score 1
                self._parts.append((np.array([2 * N_CELLS - 1]), n))
            self._parts += [(np.array([2 * N_CELLS * c]), n) for c in range(max(before, 1), self._n_classes)]

    @property
    def ranking(self) -> Ranking:
        return Ranking(*self._settled()[0])
