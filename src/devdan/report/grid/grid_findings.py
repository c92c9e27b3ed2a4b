"""Results derived from a grid of runs: rates, ranks, and their change as labels become scarce."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean, geometric_mean

from devdan.evaluation.measures import OF_RULES, SCRIPTS
from devdan.report.grid.paper import COUNTERPARTS, published
from devdan.report.grid.ranking import Ranking, rank
from devdan.report.grid.shown_grid import CompleteBlock, Grid, complete

GENERATIVE = ("devdan-paper", "devdan-no-generative")  # the same model with the generative phase on and off


@dataclass(frozen=True, eq=False)
class Findings:
    """Results derived from a grid."""

    grid: Grid

    @cached_property
    def rates(self) -> dict[tuple[str, str], float]:
        """CR by stream and model, for the labels of the main table."""
        return self.grid.values(self.grid.main, "CR")

    @cached_property
    def block(self) -> CompleteBlock:
        """The streams and models that are ranked."""
        return complete(self.grid, lambda stream, model: (stream, model) in self.rates)

    @cached_property
    def ranking(self) -> Ranking:
        """The ranking of the models over the streams."""
        streams, models = self.block
        return rank(models, [[self.rates[stream, model] for model in models] for stream in streams])

    @cached_property
    def policies(self) -> list[str]:
        """Label policies with results: shares of labels first, from the largest."""
        there = {key.labels for key in self.grid.results}
        shares = {policy: share_of(policy) for policy in self.grid.labels if policy in there}
        return sorted(shares, key=lambda policy: -(shares[policy] or 0))

    @cached_property
    def scarce_rates(self) -> dict[str, dict[tuple[str, str], float]]:
        """CR by stream and model for each label policy."""
        return {policy: self.grid.values(policy, "CR") for policy in self.policies}

    @cached_property
    def scarce_block(self) -> CompleteBlock:
        """The streams and models that are averaged for label scarcity: those with results for every policy."""
        return complete(
            self.grid, lambda stream, model: all((stream, model) in rates for rates in self.scarce_rates.values())
        )

    def average(self, model: str, policy: str) -> float | None:
        """CR over the streams of ``scarce_block``."""
        streams, models = self.scarce_block
        return fmean(self.scarce_rates[policy][stream, model] for stream in streams) if model in models else None

    def speed(self, model: str) -> float | None:
        """Samples per second, as a geometric mean over the streams of ``block``."""
        stats = [self.grid.stat(s, model, self.grid.main, "samples_per_second") for s in self.block.streams]
        known = [stat.mean for stat in stats if stat is not None and stat.mean > 0]
        return geometric_mean(known) if known and len(known) == len(stats) else None

    def best(self, stream: str) -> float | None:
        """The best CR of the runs on a stream."""
        return max((rate for (own, _), rate in self.rates.items() if own == stream), default=None)


def is_own(model: str) -> bool:
    """Whether a model belongs to this package."""
    return model.startswith("devdan") or model in COUNTERPARTS


def share_of(policy: str) -> float | None:
    """The share of labels that arrive; None if the policy is not just a share.

    >>> share_of("all"), share_of("fraction:0.25"), share_of("delay:1000")
    (1.0, 0.25, None)
    """
    if policy == "all":
        return 1.0
    match = re.fullmatch(r"fraction:([\d.]+)", policy)
    return float(match[1]) if match else None


def policy_name(policy: str) -> str:
    """A label policy as a column heading.

    >>> [policy_name(policy) for policy in ("all", "fraction:0.05", "delay:1000", "warmup:500")]
    ['100 %', '5 %', '1,000 samples late', 'warmup:500']
    """
    share = share_of(policy)
    if share is not None:
        return f"{100 * share:g} %"
    late = re.fullmatch(r"delay:(\d+)", policy)
    return f"{int(late[1]):,} samples late" if late else policy


def difference(grid: Grid, stream: str, model: str, criterion: str) -> float | None:
    """Our results minus the paper's, for models in the paper; times are not comparable.

    For rules, parameters are counted as in the authors' scripts; the paper does not say what HN means for them.
    """
    if criterion == "ET" or (criterion == "HN" and model in OF_RULES):
        return None
    stat = grid.stat(stream, model, "all", SCRIPTS if criterion == "NoP" and model in OF_RULES else criterion)
    figure = published(stream, criterion, COUNTERPARTS.get(model, ""))
    return stat.mean - figure.mean if stat and figure else None
