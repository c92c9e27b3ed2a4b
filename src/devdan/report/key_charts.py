"""The keys of a fleet: figures of each, how their accuracies spread over time, and tables to rank and search them."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from markupsafe import Markup

from devdan.arrays import Floats
from devdan.evaluation.record import Record
from devdan.report.chart import Chart, area, filled, in_percent, moving, stretched, stroke, strokes, ticks
from devdan.report.words import clipped, how_many, number, percent

RECENT = 64  # scored rows of a key over which its recent accuracy is taken, as in a fleet's summary
FEW = 20  # scored rows below which a key's accuracy says little
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)  # of the keys' accuracies
MOST_DRIFTING = 20  # keys whose drifts are shown
MOST_ROWS = 2000  # of the table to search, so that a page stays small however large the fleet is
_MOST_POINTS = 200
_MOST_EXTREME = 10  # of the best and of the worst
_LONGEST = 80  # characters of a key

_FIGURES = np.dtype(
    [(name, np.int64) for name in ("samples", "scored", "right", "virtual", "real", "last")]
    + [("recent", np.float64), ("recent_rows", np.float64)]
)


class Spread(NamedTuple):
    """The recent accuracies of the keys after a sample, by :data:`QUANTILES`."""

    end: int
    n_keys: int  # that they are of
    levels: tuple[float, ...]


class KeyDrift(NamedTuple):
    """A drift of one key; ``sample`` is the last of its chunk."""

    sample: int
    place: int
    is_real: bool


class KeyFigures:
    """Figures by key, in order of appearance."""

    def __init__(self) -> None:
        self.names: list[Any] = []
        self.drifts: list[KeyDrift] = []
        self.spreads: list[Spread] = []  # from time to time
        self._places: dict[Any, int] = {}
        self._table = np.zeros(1024, _FIGURES)
        self._stride, self._n_records, self._end = 1, 0, 0

    def __len__(self) -> int:
        return len(self.names)

    def add(self, record: Record) -> None:
        counts = record.keys or ()
        self._end = record.start + record.n_samples
        for name in (count.key for count in counts if count.key not in self._places):
            self._places[name] = len(self.names)
            self.names.append(name)
        if len(self.names) > len(self._table):
            self._table = np.pad(self._table, (0, max(len(self.names), 2 * len(self._table)) - len(self._table)))
        if counts:
            places = np.array([self._places[count.key] for count in counts])
            samples, scored, right, virtual, real = np.array([count[1:] for count in counts], np.int64).T
            own = self._table[places]
            rows = own["recent_rows"] + scored
            own["recent"] = (own["recent"] * own["recent_rows"] + right) / np.maximum(rows, 1)
            own["recent_rows"] = np.minimum(rows, RECENT)
            own["last"] = self._end
            for name, n in zip(_FIGURES.names or (), (samples, scored, right, virtual, real), strict=False):
                own[name] += n
            self._table[places] = own
            for numbers, is_real in ((virtual, False), (real, True)):
                for k in np.flatnonzero(numbers).tolist():
                    self.drifts += [KeyDrift(self._end, int(places[k]), is_real)] * int(numbers[k])
        self._n_records += 1
        if self._n_records % self._stride == 0:
            self._note_spread()

    def _note_spread(self) -> None:
        """Keep how the keys are spread now; when there are too many points, every other one goes."""
        known = self.recent[self.is_judged]
        if len(known) >= 2:
            self.spreads.append(Spread(self._end, len(known), tuple(np.quantile(known, QUANTILES).tolist())))
        if len(self.spreads) > _MOST_POINTS:
            self.spreads = self.spreads[1::2]
            self._stride *= 2

    @property
    def table(self) -> npt.NDArray[np.void]:
        """A row for each key: ``samples``, ``scored`` rows and those ``right``, ``virtual`` and ``real`` drifts, and
        ``last``, the last sample of the latest chunk that had a row or a late label of the key.
        """
        return self._table[: len(self.names)]

    @property
    def n_drifts(self) -> npt.NDArray[np.int64]:
        return np.asarray(self.table["real"] + self.table["virtual"])

    @property
    def is_judged(self) -> npt.NDArray[np.bool_]:
        """Whether enough rows were scored for an accuracy that says something."""
        return np.asarray(self.table["scored"] >= FEW)

    @property
    def accuracy(self) -> Floats:
        """Over all scored rows; NaN if there is none."""
        scored = self.table["scored"]
        return np.where(scored > 0, self.table["right"] / np.maximum(scored, 1), np.nan)

    @property
    def recent(self) -> Floats:
        """Accuracy over the latest scored rows; NaN if there is none."""
        return np.where(self.table["scored"] > 0, self.table["recent"], np.nan)


def shown_keys(keys: KeyFigures, n_samples: int) -> dict[str, Any] | None:
    """What the page of a run shows of the keys; None without keys."""
    if len(keys) == 0:
        return None
    worst, best = extremes(keys)
    return {
        "n_keys": len(keys),
        "n_judged": int(keys.is_judged.sum()),
        "few": FEW,
        "recent": RECENT,
        "spread": spread(keys, n_samples),
        "worst": worst,
        "best": best,
        "by_samples": by_samples(keys),
        "drifting": drifting(keys, n_samples),
        "n_drifting": int((keys.n_drifts > 0).sum()),
        "rows": searchable(keys),
    }


def spread(keys: KeyFigures, n_samples: int) -> Chart | None:
    """Between which accuracies most keys are; None for fewer than two points."""
    points = keys.spreads
    if len(points) < 2:
        return None
    ends = [point.end for point in points]
    low, lower, median, upper, high = (in_percent(levels) for levels in zip(*(p.levels for p in points), strict=True))
    plot = filled(n_samples, [*low, *high])
    if plot is None:
        return None
    body = plot.axes(ticks(plot.low, min(plot.high, 100), 5), " %")
    bands = plot.band(ends, low, high, "band"), plot.band(ends, lower, upper, "band")
    body += moving(plot.stretched(*bands, plot.line(ends, median, "smooth")))
    last = points[-1]
    label = (
        f"Recent accuracy of {how_many(last.n_keys, 'key')} over {n_samples:,} samples; at the end, 8 of "
        f"10 keys are between {percent(last.levels[0])} and {percent(last.levels[-1])}, half of them above "
        f"{percent(last.levels[2])}."
    )
    legend = [stroke("smooth", "median key"), area("band inner", "half of the keys"), area("band", "8 of 10 keys")]
    return Chart(body, label, legend)


class SizeClass(NamedTuple):
    """Keys with about as many samples."""

    samples: str
    n_keys: str
    part: float  # of the largest such class
    accuracy: str  # of the median key, if enough of them were scored


def by_samples(keys: KeyFigures) -> list[SizeClass]:
    """How many keys have how many samples, and how accurate they are.

    A class ends at 2, 5 or 10 times a power of ten.
    """
    samples = keys.table["samples"]
    found = []
    for first, after in pairwise(_edges(int(samples.max(initial=1)))):
        own = (samples >= first) & (samples < after)
        known = keys.accuracy[own & keys.is_judged]
        told = percent(float(np.median(known)) if len(known) > 0 else None)
        size = number(first) if after == first + 1 else f"{number(first)} to {number(after - 1)}"
        found.append((size, int(own.sum()), told))
    while found and found[0][1] == 0:
        del found[0]
    most = max((n for _, n, _ in found), default=1)
    return [SizeClass(size, number(n), n / most, told) for size, n, told in found]


def _edges(most: int) -> list[int]:
    """The beginnings of the classes, and the end of the last.

    >>> _edges(1), _edges(30)
    ([1, 2], [1, 2, 5, 10, 20, 50])
    """
    edges, size = [1], 1
    while edges[-1] <= most:
        edges += [factor * size for factor in (2, 5, 10) if edges[-1] <= most]
        size *= 10
    return edges[: next(place for place, edge in enumerate(edges) if edge > most) + 1]


class Drifting(NamedTuple):
    """When a key drifted."""

    name: str
    real: int
    virtual: int
    lane: Markup
    label: str


def drifting(keys: KeyFigures, n_samples: int) -> list[Drifting]:
    """The keys that drifted most often, and when."""
    totals = keys.n_drifts
    chosen = [place for place in np.argsort(-totals, kind="stable")[:MOST_DRIFTING].tolist() if totals[place] > 0]
    times: dict[int, list[tuple[int, bool]]] = {place: [] for place in chosen}
    for drift in keys.drifts:
        if drift.place in times:
            times[drift.place].append((drift.sample, drift.is_real))
    found = []
    for place, own in times.items():
        virtual, real = ([sample for sample, is_real in own if is_real == kind] for kind in (False, True))
        paths = strokes(virtual, "drift generative") + strokes(real, "drift ")
        label = ", ".join(f"{'real' if is_real else 'virtual'} at {sample:,}" for sample, is_real in own[:50])
        label += f", and {len(own) - 50} more" if len(own) > 50 else ""
        lane = stretched(paths, max(n_samples, 1), 1)
        found.append(Drifting(str(keys.names[place]), len(real), len(virtual), lane, label))
    return found


class KeyRow(NamedTuple):
    name: str
    samples: str
    accuracy: str
    recent: str
    drifts: str


def extremes(keys: KeyFigures) -> tuple[list[KeyRow], list[KeyRow]]:
    """The keys with the lowest and with the highest accuracy, those with more samples first where it is the same."""
    judged = np.flatnonzero(keys.is_judged)
    accuracy, samples = keys.accuracy[judged], keys.table["samples"][judged]
    worst, best = (judged[np.lexsort((-samples, way * accuracy))] for way in (1, -1))
    n = min(_MOST_EXTREME, len(judged) // 2)
    return _rows(keys, worst[:n].tolist()), _rows(keys, best[:n].tolist())


def _rows(keys: KeyFigures, places: list[int]) -> list[KeyRow]:
    samples, accuracy, recent, n_drifts = keys.table["samples"], keys.accuracy, keys.recent, keys.n_drifts
    return [
        KeyRow(
            clipped(keys.names[place], _LONGEST),
            number(int(samples[place])),
            percent(float(accuracy[place])),
            percent(float(recent[place])),
            number(int(n_drifts[place])),
        )
        for place in places
    ]


def searchable(keys: KeyFigures) -> list[list[Any]]:
    """Rows for the script: of the keys with the most samples, if there are too many for all."""
    table, accuracy, recent = keys.table, keys.accuracy.tolist(), keys.recent.tolist()
    return [
        [
            clipped(keys.names[place], _LONGEST),
            int(table["samples"][place]),
            *(None if math.isnan(of[place]) else round(100 * of[place], 1) for of in (accuracy, recent)),
            *(int(table[name][place]) for name in ("real", "virtual", "last")),
        ]
        for place in np.argsort(-table["samples"], kind="stable")[:MOST_ROWS].tolist()
    ]
