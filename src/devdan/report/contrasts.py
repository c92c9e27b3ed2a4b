"""How much better one run is than another, and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, stdev
from typing import NamedTuple

from markupsafe import Markup

from devdan.report.settings import options
from devdan.report.shown_run import ShownRun
from devdan.report.words import letter, signed

N_PARTS = 20  # of a stream, long enough that one hardly depends on the one before
_FEWEST_PARTS = 5
_SURE = 0.95


class Estimate(NamedTuple):
    """A difference in points, the interval that has the true one with 95 % certainty, and what it is from."""

    difference: float
    low: float
    high: float
    source: str


class Contrast(NamedTuple):
    """Two runs, or two groups of runs that differ in their seeds only, for display."""

    names: str
    difference: str
    interval: str
    picture: Markup
    verdict: str
    source: str


def contrasts(runs: Sequence[ShownRun]) -> list[Contrast]:
    """Each against the first on the same stream; none if there is only one, or too little was scored."""
    found: list[tuple[str, str, Estimate]] = []
    by_stream: dict[str, list[list[int]]] = {}
    for places in groups(runs):
        by_stream.setdefault(str(runs[places[0]].info.get("stream")), []).append(places)
    for rivals in by_stream.values():
        first, *others = rivals
        for other in others:
            estimate = estimated([runs[n] for n in other], [runs[n] for n in first])
            if estimate is not None:
                found.append((_letters(other), _letters(first), estimate))
    widest = max((abs(end) for _, _, estimate in found for end in (estimate.low, estimate.high)), default=0.0)
    return [
        Contrast(
            f"{a} − {b}",
            signed(estimate.difference, 2),
            f"{signed(estimate.low, 2)} to {signed(estimate.high, 2)}",
            _picture(estimate, widest or 1.0),
            f"{a} is better" if estimate.low > 0 else f"{b} is better" if estimate.high < 0 else "may be chance",
            estimate.source,
        )
        for a, b, estimate in found
    ]


def groups(runs: Sequence[ShownRun]) -> list[list[int]]:
    """The places of runs that differ in nothing but their seeds."""
    found: dict[str, list[int]] = {}
    for place, run in enumerate(runs):
        info = {key: run.info.get(key) for key in ("stream", "model", "labels", "chunk", "limit", "order", "scaled")}
        own = {key: value for key, value in options(run).items() if key not in ("random_state", "seed")}
        found.setdefault(repr((info, own, run.summary.n_samples)), []).append(place)
    return list(found.values())


def estimated(ours: Sequence[ShownRun], theirs: Sequence[ShownRun]) -> Estimate | None:
    """The difference of the rates over seeds, if there are several of each; else of the accuracies over the stream."""
    rates = [[run.summary.rate.mean for run in group if run.summary.rate.mean is not None] for group in (ours, theirs)]
    if min(map(len, rates)) > 1:
        a, b = rates
        return _interval(
            fmean(a) - fmean(b), [stdev(x) ** 2 / len(x) for x in (a, b)], [len(x) - 1 for x in (a, b)],
            f"{len(a)} and {len(b)} seeds",
        )  # fmt: skip
    end = min(run.summary.n_samples for run in (*ours, *theirs))
    pairs = zip(_by_part(ours, end), _by_part(theirs, end), strict=True)
    gaps = [100 * (a - b) for a, b in pairs if a is not None and b is not None]
    if len(gaps) < _FEWEST_PARTS:
        return None
    variance = stdev(gaps) ** 2 / len(gaps)
    return _interval(fmean(gaps), [variance], [len(gaps) - 1], f"{len(gaps)} parts of the stream")


def _interval(difference: float, variances: list[float], freedoms: list[int], source: str) -> Estimate:
    """Student's interval, with Welch's degrees of freedom."""
    from scipy.stats import t  # noqa: PLC0415 (takes a while)

    whole = sum(variances)
    if whole == 0:
        return Estimate(difference, difference, difference, source)
    freedom = whole**2 / sum(part**2 / n for part, n in zip(variances, freedoms, strict=True))
    room = float(t.ppf((1 + _SURE) / 2, freedom)) * math.sqrt(whole)
    return Estimate(difference, difference - room, difference + room, source)


def _by_part(runs: Sequence[ShownRun], end: int) -> list[float | None]:
    """The accuracy in equal parts of the stream, on average over the runs."""
    hits, scored = [0] * N_PARTS, [0] * N_PARTS
    for run in runs:
        for bin in run.bins:
            if bin.end <= end:
                part = min((bin.start + bin.end) // 2 * N_PARTS // end, N_PARTS - 1)
                hits[part] += bin.hits
                scored[part] += bin.n_scored
    return [h / n if n else None for h, n in zip(hits, scored, strict=True)]


def _letters(places: Sequence[int]) -> str:
    return "".join(letter(place) for place in places)


def _picture(estimate: Estimate, widest: float) -> Markup:
    """The interval beside zero."""

    def x(value: float) -> float:
        return 50 + 46 * value / widest

    return Markup(
        '<svg class="interval" width="180" height="16" aria-hidden="true"><line class="axis" x1="50%" x2="50%" y1="0" '
        'y2="16"/><line class="range" x1="{:.1f}%" x2="{:.1f}%" y1="8" y2="8"/><circle class="level" cx="{:.1f}%" '
        'cy="8" r="4"/></svg>'
    ).format(x(estimate.low), x(estimate.high), x(estimate.difference))
