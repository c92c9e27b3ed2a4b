"""Models compared over several streams: average ranks, the Friedman test and Nemenyi's critical difference.

After Demšar, Statistical comparisons of classifiers over multiple data sets, JMLR 7, 2006.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

ALPHA = 0.05


class Friedman(NamedTuple):
    """The test of the hypothesis that all models are equally good."""

    statistic: float
    p: float


class Ranking(NamedTuple):
    """The ranking of the models; rank 1 is the best."""

    models: list[str]  # from best to worst
    ranks: list[float]
    n_streams: int
    test: Friedman | None
    difference: float | None  # average ranks closer than this do not differ significantly
    why_not: str  # why there is no test


def rank(models: Sequence[str], rates: Sequence[Sequence[float]]) -> Ranking:
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
    return Ranking(
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
