"""The keys of a fleet: how their accuracies spread over time, how many samples they have, when they drift."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from markupsafe import Markup

from devdan.report.chart import Chart, area, filled, in_percent, moving, stretched, stroke, ticks
from devdan.report.run.key_figures import KeyFigures
from devdan.report.run.shown_run import ShownRun
from devdan.report.words import how_many, number, percent

MOST_DRIFTING = 20  # keys whose drifts are shown


def spread(run: ShownRun) -> Chart | None:
    """Between which accuracies most keys are; None for fewer than two points."""
    points = run.keys.spreads
    if len(points) < 2:
        return None
    ends = [point.end for point in points]
    low, lower, median, upper, high = (in_percent(levels) for levels in zip(*(p.levels for p in points), strict=True))
    plot = filled(run.summary.n_samples, [*low, *high])
    if plot is None:
        return None
    body = plot.axes(ticks(plot.low, min(plot.high, 100), 5), " %")
    bands = plot.band(ends, low, high, "band"), plot.band(ends, lower, upper, "band")
    body += moving(plot.stretched(*bands, plot.line(ends, median, "smooth")))
    last = points[-1]
    label = (
        f"Recent accuracy of {how_many(last.n_keys, 'key')} over {run.summary.n_samples:,} samples; at the end, 8 of "
        f"10 keys are between {percent(last.levels[0])} and {percent(last.levels[-1])}, half of them above "
        f"{percent(last.levels[2])}."
    )
    legend = [stroke("smooth", "median key"), area("band inner", "half of the keys"), area("band", "8 of 10 keys")]
    return Chart(body, label, legend)


class SizeClass(NamedTuple):
    """Keys with about as many samples."""

    samples: str
    n_keys: str
    share: float  # of the largest such class
    accuracy: str  # of the median key, if enough of them were scored


def by_samples(keys: KeyFigures) -> list[SizeClass]:
    """How many keys have how many samples, and how accurate they are.

    A class ends at 2, 5 or 10 times a power of ten.
    """
    edges = _edges(int(keys.samples.max(initial=1)))
    found = []
    for first, after in pairwise(edges):
        own = (keys.samples >= first) & (keys.samples < after)
        known = keys.accuracy[own & keys.is_judged]
        told = percent(float(np.median(known))) if len(known) > 0 else "–"
        samples = number(first) if after == first + 1 else f"{number(first)} to {number(after - 1)}"
        found.append((samples, int(own.sum()), told))
    while found and found[0][1] == 0:
        del found[0]
    most = max((n for _, n, _ in found), default=1)
    return [SizeClass(samples, number(n), n / most, told) for samples, n, told in found]


def _edges(most: int) -> list[int]:
    """The beginnings of the classes, and the end of the last.

    >>> _edges(30)
    [1, 2, 5, 10, 20, 50]
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


def drifting(run: ShownRun) -> list[Drifting]:
    """The keys that drifted most often, and when."""
    keys, end = run.keys, max(run.summary.n_samples, 1)
    totals = keys.real_drifts + keys.virtual_drifts
    chosen = [place for place in np.argsort(-totals, kind="stable")[:MOST_DRIFTING].tolist() if totals[place] > 0]
    times: dict[int, list[tuple[int, bool]]] = {place: [] for place in chosen}
    for drift in keys.drifts:
        if drift.place in times:
            times[drift.place].append((drift.sample, drift.is_real))
    found = []
    for place, own in times.items():
        paths = [
            Markup('<path class="drift {}" d="{}"/>').format(
                "" if is_real else "generative", "".join(f"M{sample},0v1" for sample, real in own if real == is_real)
            )
            for is_real in (False, True)
        ]
        label = ", ".join(f"{'real' if is_real else 'virtual'} at {sample:,}" for sample, is_real in own[:50])
        label += f", and {len(own) - 50} more" if len(own) > 50 else ""
        lane = stretched(Markup("").join(paths), end, 1)
        real, virtual = int(keys.real_drifts[place]), int(keys.virtual_drifts[place])
        found.append(Drifting(str(keys.names[place]), real, virtual, lane, label))
    return found
