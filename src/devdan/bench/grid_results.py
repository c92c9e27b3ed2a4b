"""The results of a grid of runs: its figures, what follows from them, and the figures of the paper's Table 1."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from itertools import product
from pathlib import Path
from statistics import fmean, geometric_mean, pstdev
from typing import Any, NamedTuple

from devdan.bench.grid import Cell, GridFolder, GridPlan, stopped_after
from devdan.bench.ranking import ModelRanking, rank
from devdan.evaluation.measures import MAJORITY, OF_RULES, SCRIPTS, in_tables, leading

GENERATIVE = ("devdan-paper", "devdan-no-generative")  # the same model with the generative phase on and off

# --- The paper's Table 1, as printed --------------------------------------------------------------------------------

METHODS = ("DEVDAN", "AE", "DAE", "pENsemble", "pENsemble+")
COUNTERPARTS = {  # ours: the paper's
    "devdan-paper": "DEVDAN",
    "ae": "AE",
    "dae": "DAE",
    "pensemble": "pENsemble",
    "pensemble+": "pENsemble+",
}
_PAPER_STREAMS = {
    "sea": "SEA",
    "hyperplane": "Hyperplane",
    "electricity": "Electricity pricing",
    "weather": "Weather",
    "kddcup": "KDDCup 10%",
    "susy": "SUSY",
    "hepmass": "HEPMASS 19%",
    "rlcps": "RLCPS",
    "rfid": "RFID localization",
}


class PaperFigure(NamedTuple):
    """A figure from the paper; ``std`` is over chunks, None if the paper has none."""

    mean: float
    std: float | None


def published(stream: str, criterion: str, method: str) -> PaperFigure | None:
    """The figure that the paper reports; None if it has none.

    >>> published("sea", "CR", "DEVDAN"), published("sea", "ET", "AE"), published("mine", "CR", "DEVDAN")
    (PaperFigure(mean=92.29, std=6.48), PaperFigure(mean=18.59, std=None), None)
    """
    row = _table1().get((_PAPER_STREAMS.get(stream, ""), criterion))
    if row is None or not row.get(method):
        return None
    spread = row[f"{method}_std"]
    return PaperFigure(float(row[method]), float(spread) if spread else None)


@cache
def _table1() -> dict[tuple[str, str], dict[str, str]]:
    text = files("devdan.bench").joinpath("table1.csv").read_text()
    return {(row["stream"], row["criterion"]): row for row in csv.DictReader(text.splitlines())}


# --- The results of a grid ------------------------------------------------------------------------------------------


class Stat(NamedTuple):
    """A criterion over seeds; both standard deviations are of the values themselves, not sample estimates."""

    mean: float
    spread: float | None  # deviation over the chunks of a run, averaged over seeds
    over_seeds: float
    n: int  # seeds
    lowest: float
    highest: float


class CompleteBlock(NamedTuple):
    """Streams and models that can be compared: each of the models has a result on each of the streams."""

    streams: list[str]
    models: list[str]


@dataclass(frozen=True, eq=False)
class GridResults:
    """The planned grid, its results so far, and what follows from them."""

    plan: GridPlan
    results: dict[Cell, dict[str, Any]]
    failures: dict[Cell, str]
    stopped: dict[Cell, float]  # after how many minutes

    @property
    def is_papers(self) -> bool:
        """Whether any of the streams is in the paper's Table 1."""
        return any(published(stream, "CR", "DEVDAN") for stream in self.plan.streams)

    @property
    def main(self) -> str:
        """The label policy of the main table."""
        return "all" if "all" in self.plan.labels else self.plan.labels[0]

    @property
    def missing_streams(self) -> dict[str, str]:
        """Streams that could not be run here, each with how to get it."""
        run = {cell.stream for cell in self._tried}
        return {name: how for name, how in self.plan.missing.items() if name in self.plan.streams and name not in run}

    @property
    def missing_models(self) -> dict[str, str]:
        """Models that could not be run here, each with how to get it."""
        run, planned = {cell.model for cell in self._tried}, self.plan.models_missing
        return {name: how for name, how in planned.items() if name in self.plan.models and name not in run}

    @property
    def n_cells(self) -> int:
        """The number of planned runs, without those that cannot be run on this machine."""
        n_streams = len(self.plan.streams) - len(self.missing_streams)
        n_models = len(self.plan.models) - len(self.missing_models)
        return n_streams * n_models * len(self.plan.labels) * self.plan.seeds

    @property
    def n_done(self) -> int:
        """The number of runs done, including those that were stopped; those that failed are run again."""
        return len(self.results) + len(self.stopped)

    @property
    def _tried(self) -> list[Cell]:
        return [*self.results, *self.failures, *self.stopped]

    def cells(self, stream: str, model: str, labels: str) -> list[Cell]:
        """The cells of all seeds."""
        return [self.plan.cell(stream, model, labels, seed) for seed in range(self.plan.seeds)]

    def of(self, stream: str, model: str, labels: str) -> list[dict[str, Any]]:
        """The results of all seeds."""
        return [self.results[cell] for cell in self.cells(stream, model, labels) if cell in self.results]

    def stat(self, stream: str, model: str, labels: str, criterion: str) -> Stat | None:
        """A criterion over the seeds that have a result."""
        measure = in_tables()[criterion]
        results = [(measure.figure(result), result) for result in self.of(stream, model, labels)]
        pairs = [(value, measure.spread_in(result)) for value, result in results if value is not None]
        if not pairs:
            return None
        values, spreads = [value for value, _ in pairs], [own for _, own in pairs if own is not None]
        mean, spread = fmean(values), fmean(spreads) if spreads else None
        return Stat(mean, spread, pstdev(values), len(values), min(values), max(values))

    def means(self, labels: str, criterion: str) -> dict[tuple[str, str], float]:
        """The means of a criterion by stream and model, where there are any."""
        pairs = product(self.plan.streams, self.plan.models)
        stats = ((pair, self.stat(*pair, labels, criterion)) for pair in pairs)
        return {pair: stat.mean for pair, stat in stats if stat is not None}

    # --- Accuracy and speed with the main label policy ---------------------------------------------------------------

    @cached_property
    def rates(self) -> dict[tuple[str, str], float]:
        """CR by stream and model."""
        return self.means(self.main, "CR")

    def by(self, stream: str) -> str:
        """What models are compared by on a stream: CR or, where a class is rare, how well it is found."""
        if self.plan.by is not None:
            return self.plan.by
        found = [result for model in self.plan.models for result in self.of(stream, model, self.main)]
        lead = leading(found)[0]
        return lead.criterion or lead.key

    @cached_property
    def lead(self) -> str:
        """What models are compared by on most of the streams."""
        told = [self.by(stream) for stream in dict.fromkeys(own for own, _ in self.rates)]
        return max(told, key=lambda name: (told.count(name), name == "CR"), default=self.plan.by or "CR")

    @cached_property
    def scores(self) -> dict[tuple[str, str], float]:
        """The means of what models are compared by on each stream; more is better."""
        told = {stream: self.by(stream) for stream in self.plan.streams}
        means = {name: self.means(self.main, name) for name in dict.fromkeys(told.values())}
        return {
            (stream, model): (in_tables()[told[stream]].better or 1) * value
            for stream, model in product(self.plan.streams, self.plan.models)
            if (value := means[told[stream]].get((stream, model))) is not None
        }

    @cached_property
    def block(self) -> CompleteBlock:
        """The streams and models that are ranked."""
        return self.complete(lambda stream, model: (stream, model) in self.scores)

    @cached_property
    def ranking(self) -> ModelRanking:
        """The ranking of the models over the streams."""
        streams, models = self.block
        return rank(models, [[self.scores[stream, model] for model in models] for stream in streams])

    def best(self, stream: str, criterion: str) -> float | None:
        """The best value of those that are compared; of CR, none that is not better than the majority's."""
        measure = in_tables()[criterion]
        values = [value for (own, _), value in self.means(self.main, criterion).items() if own == stream]
        if len(values) < 2 or (criterion not in ("CR", self.by(stream)) and not criterion.startswith("rarest_")):
            return None
        best = max(values, key=lambda value: measure.better * value)
        majority = [value for (own, _), value in self.means(self.main, MAJORITY).items() if own == stream]
        return None if criterion == "CR" and majority and best <= max(majority) else best

    def speed(self, model: str) -> float | None:
        """Samples per second, as a geometric mean over the streams of ``block``."""
        stats = [self.stat(stream, model, self.main, "samples_per_second") for stream in self.block.streams]
        known = [stat.mean for stat in stats if stat is not None and stat.mean > 0]
        return geometric_mean(known) if known and len(known) == len(stats) else None

    def difference(self, stream: str, model: str, criterion: str) -> float | None:
        """Our result minus the paper's, for models in the paper; times are not comparable.

        For rules, parameters are counted as in the authors' scripts; the paper does not say what HN means for them.
        """
        if criterion == "ET" or (criterion == "HN" and model in OF_RULES):
            return None
        stat = self.stat(stream, model, "all", SCRIPTS if criterion == "NoP" and model in OF_RULES else criterion)
        figure = published(stream, criterion, COUNTERPARTS.get(model, ""))
        return stat.mean - figure.mean if stat and figure else None

    # --- Accuracy with scarce labels ---------------------------------------------------------------------------------

    @cached_property
    def policies(self) -> list[str]:
        """Label policies with results: fractions of the labels first, from the largest."""
        run = {cell.labels for cell in self.results}
        fractions = {policy: fraction_of(policy) for policy in self.plan.labels if policy in run}
        return sorted(fractions, key=lambda policy: -(fractions[policy] or 0))

    @cached_property
    def scarce_rates(self) -> dict[str, dict[tuple[str, str], float]]:
        """CR by stream and model for each label policy."""
        return {policy: self.means(policy, "CR") for policy in self.policies}

    @cached_property
    def scarce_block(self) -> CompleteBlock:
        """The streams and models with results for every label policy, which are averaged."""
        return self.complete(
            lambda stream, model: all((stream, model) in rates for rates in self.scarce_rates.values())
        )

    def average(self, model: str, policy: str) -> float | None:
        """CR over the streams of ``scarce_block``."""
        streams, models = self.scarce_block
        return fmean(self.scarce_rates[policy][stream, model] for stream in streams) if model in models else None

    def complete(self, has: Callable[[str, str], bool]) -> CompleteBlock:
        """The largest complete block of streams × models; ``has`` says whether a model has a result on a stream.

        Streams are added as long as this gains more results than it loses models.
        """
        streams, models = self.plan.streams, self.plan.models
        present = {stream: {model for model in models if has(stream, model)} for stream in streams}
        by_size = sorted(streams, key=lambda stream: -len(present[stream]))
        best = CompleteBlock([], [])
        for n in range(1, len(by_size) + 1):
            common = set.intersection(*(present[stream] for stream in by_size[:n]))
            if len(common) * n >= max(1, len(best.models) * len(best.streams)):
                chosen = set(by_size[:n])
                best = CompleteBlock([s for s in streams if s in chosen], [m for m in models if m in common])
        return best


def read_grid(folder: str | Path) -> GridResults:
    """Read the grid in a folder, finished or not; other files there are ignored."""
    kept = GridFolder(folder)
    plan = kept.plan()
    found = GridResults(plan, {}, {}, {})
    for stream, model, policy, seed in product(plan.streams, plan.models, plan.labels, range(plan.seeds)):
        cell = plan.cell(stream, model, policy, seed)
        result = kept.result(cell)
        if result is None:
            continue
        if "error" in result:
            found.failures[cell] = " ".join(str(result["error"]).split())
        elif (minutes := stopped_after(result)) is not None:
            found.stopped[cell] = minutes
        else:
            found.results[cell] = result
    return found


def is_own(model: str) -> bool:
    """Whether a model belongs to this package."""
    return model.startswith("devdan") or model in COUNTERPARTS


def fraction_of(policy: str) -> float | None:
    """The fraction of the labels that arrive; None if the policy is not just a fraction.

    >>> fraction_of("all"), fraction_of("fraction:0.25"), fraction_of("delay:1000")
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
    fraction = fraction_of(policy)
    if fraction is not None:
        return f"{100 * fraction:g} %"
    late = re.fullmatch(r"delay:(\d+)", policy)
    return f"{int(late[1]):,} samples late" if late else policy
