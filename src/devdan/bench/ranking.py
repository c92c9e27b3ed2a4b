"""Models ranked over several streams: average ranks, the Friedman test, Nemenyi's critical difference, and its diagram.

After Demšar, Statistical comparisons of classifiers over multiple data sets, JMLR 7, 2006.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

ALPHA = 0.05
_AXIS, _ROW, _BAR = 52, 22, 8  # pixels of the diagram: above its axis, of a model, of a bar


class Friedman(NamedTuple):
    """The test of the hypothesis that all models are equally good."""

    statistic: float
    p: float


class ModelRanking(NamedTuple):
    """The ranking of the models; rank 1 is the best."""

    models: list[str]  # from best to worst
    ranks: list[float]
    n_streams: int
    test: Friedman | None
    difference: float | None  # average ranks closer than this do not differ significantly
    why_not: str  # why there is no test


def rank(models: Sequence[str], rates: Sequence[Sequence[float]]) -> ModelRanking:
    """Rank models by their rates, one row per stream; higher is better, ties share their mean rank.

    >>> ranking = rank(["a", "b", "c"], [[90, 80, 80], [90, 70, 60]])
    >>> ranking.models, ranking.ranks
    (['a', 'b', 'c'], [1.0, 2.25, 2.75])
    """
    n, k = len(rates), len(models)
    rows = [_ranks(row) for row in rates]
    means = [sum(row[place] for row in rows) / n for place in range(k)] if n else []
    order = sorted(range(len(means)), key=lambda place: means[place])
    why_not = _lacking(rates, k)
    return ModelRanking(
        [models[place] for place in order],
        [means[place] for place in order],
        n,
        None if why_not else friedman(rates),
        critical_difference(k, n) if n >= 2 and k >= 2 else None,
        why_not,
    )


def _ranks(row: Sequence[float]) -> list[float]:
    """The best has rank 1."""
    return [sum(other > own for other in row) + (row.count(own) + 1) / 2 for own in list(row)]


def _lacking(rates: Sequence[Sequence[float]], k: int) -> str:
    if k < 3 or len(rates) < 2:
        return f"the Friedman test needs at least 3 models and 2 streams, got {k} and {len(rates)}"
    if all(len(set(row)) == 1 for row in rates):
        return "the Friedman test needs models that differ on some stream"
    return ""


def friedman(rates: Sequence[Sequence[float]]) -> Friedman:
    """Friedman's test over streams (rows) and models (columns)."""
    from scipy.stats import friedmanchisquare  # noqa: PLC0415 (slow to import)

    statistic, p = friedmanchisquare(*zip(*rates, strict=True))
    return Friedman(float(statistic), float(p))


def critical_difference(k: int, n: int) -> float:
    """The difference in average rank that is significant for k models over n streams: q √(k (k + 1) / (6 n)).

    >>> round(critical_difference(5, 30), 3)  # 2.728 √(5 · 6 / 180)
    1.114
    """
    from scipy.stats import studentized_range  # noqa: PLC0415

    quantile = float(studentized_range.ppf(1 - ALPHA, k, math.inf)) / math.sqrt(2)
    return quantile * math.sqrt(k * (k + 1) / (6 * n))


def alike(ranks: Sequence[float], difference: float) -> list[tuple[int, int]]:
    """First and last index of each maximal group of sorted ranks that do not differ significantly.

    >>> alike([1.0, 1.5, 2.4, 4.0], 1.0)
    [(0, 1), (1, 2)]
    """
    groups: list[tuple[int, int]] = []
    for first, lowest in enumerate(ranks):
        last = max(place for place, other in enumerate(ranks) if other - lowest <= difference)
        if last > first and (not groups or last > groups[-1][1]):
            groups.append((first, last))
    return groups


# --- The critical-difference diagram -------------------------------------------------------------------------------


class RankDiagram(NamedTuple):
    """The contents of an SVG element of any width; the names of models are beside it, ``side`` pixels wide."""

    body: Markup
    height: int
    side: int
    label: str


def diagram(ranking: ModelRanking, two_sided: bool) -> RankDiagram:
    """Models by average rank, the best at the left; bars join those that do not differ significantly.

    The names are on both sides, or all at the left.
    """
    k = len(ranking.models)
    bars = alike(ranking.ranks, ranking.difference) if ranking.difference else []
    top = _AXIS + 16 + _BAR * len(bars) + 8
    n_left = math.ceil(k / 2) if two_sided else k
    body = _axis(k, 12 if two_sided else 5) + _measure(ranking.difference, k)
    for place, (model, value) in enumerate(zip(ranking.models, ranking.ranks, strict=True)):
        left = place < n_left
        y = top + _ROW * (place if left else k - 1 - place)
        body += Markup(
            '<g class="model {style}"><line x1="{x}%" x2="{x}%" y1="{axis}" y2="{y}"/>'
            '<line x1="{x}%" x2="{edge}%" y1="{y}" y2="{y}"/><circle cx="{x}%" cy="{axis}" r="3.5"/>'
            '<text x="{edge}%" y="{y}" dx="{dx}" dy=".33em" text-anchor="{anchor}">{name} '
            '<tspan class="value">{value:.2f}</tspan></text></g>'
        ).format(
            style=style_of(model),
            x=f"{_x(value, k):.2f}",
            y=y,
            axis=_AXIS,
            edge=0 if left else 100,
            dx=-8 if left else 8,
            anchor="end" if left else "start",
            name=model,
            value=value,
        )
    for n, (first, last) in enumerate(bars):
        a, b = _x(ranking.ranks[first], k), _x(ranking.ranks[last], k)
        y = _AXIS + 16 + _BAR * n
        title = f"{ranking.models[first]} to {ranking.models[last]}: no significant difference"
        body += Markup('<line class="bar" x1="{:.2f}%" x2="{:.2f}%" y1="{}" y2="{}"><title>{}</title></line>').format(
            a - 0.6, b + 0.6, y, y, title
        )
    longest = max((len(model) for model in ranking.models), default=0)
    label = "Average ranks: " + ", ".join(f"{m} {r:.2f}" for m, r in zip(ranking.models, ranking.ranks, strict=True))
    height = top + _ROW * max(n_left - 1, k - n_left - 1) + 14
    return RankDiagram(body, height, max(170, round(6.5 * longest + 48)), label)


def style_of(model: str) -> str:
    """The style of a model in charts: three are highlighted."""
    return {"devdan": "own", "devdan-paper": "own-paper", "devdan-no-generative": "own-off"}.get(model, "rest")


def _x(rank: float, k: int) -> float:
    """The place of a rank, in percent of the width."""
    return 100 * (rank - 1) / max(k - 1, 1)


def _axis(k: int, most: int) -> Markup:
    body = Markup('<line class="axis" x1="0" x2="100%" y1="{0}" y2="{0}"/>').format(_AXIS)
    for rank in range(1, k + 1, math.ceil(k / most)):
        body += Markup(
            '<line class="axis" x1="{0:.2f}%" x2="{0:.2f}%" y1="{1}" y2="{2}"/>'
            '<text class="tick" x="{0:.2f}%" y="{3}" text-anchor="middle">{4}</text>'
        ).format(_x(rank, k), _AXIS - 5, _AXIS, _AXIS - 10, rank)
    return body


def _measure(difference: float | None, k: int) -> Markup:
    """The critical difference as a bar; without its end mark if the axis is too short."""
    if difference is None:
        return Markup("")
    end = 100 * difference / max(k - 1, 1)
    stop = Markup('<line x1="{0:.2f}%" x2="{0:.2f}%" y1="16" y2="24"/>').format(end) if end <= 100 else Markup("")
    return Markup(
        '<g class="measure"><line x1="0" x2="{:.2f}%" y1="20" y2="20"/><line x1="0" x2="0" y1="16" y2="24"/>{}'
        '<text class="tick" x="0" y="20" dx="-8" dy=".33em" text-anchor="end">critical difference {:.2f}</text></g>'
    ).format(min(end, 100), stop, difference)
