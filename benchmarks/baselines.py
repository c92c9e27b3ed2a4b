"""The worth of each choice in pENsemble and pENsemble+, for docs/deviations.md.

`python benchmarks/baselines.py` runs the streams at hand with one choice changed at a time and prints the table;
`--write` puts it into the page.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import paper_streams
from measuring import put
from sklearn.base import clone

from devdan.bench import PClass, PENsemble, PENsemblePlus
from devdan.evaluation.loop import prequential
from devdan.evaluation.record import Summary

PAGE = Path(__file__).parents[1] / "docs" / "deviations.md"
STREAMS = ("sea", "hyperplane", "electricity", "weather")
CHUNK = 500


def pensemble(**options: Any) -> PENsemble:
    member = {name: options.pop(name) for name in list(options) if name in PClass().get_params()}
    return PENsemble(PClass(scaling=None, **member), **options)


def plus(**options: Any) -> PENsemblePlus:
    member = {name: options.pop(name) for name in list(options) if name in PClass().get_params()}
    return PENsemblePlus(PClass(scaling=None, **{"spread": 10.0} | member), **options)


VARIANTS: dict[str, Any] = {
    "pENsemble": pensemble(),
    "ω = 100": pensemble(omega=1e2),
    "ω = 1e4": pensemble(omega=1e4),
    "ω = 1e5, as published": pensemble(omega=1e5),
    "Q kept from chunk to chunk": pensemble(covariance_reset=False),
    "one rule per member": pensemble(grow=False),
    "only conditions A and B": pensemble(vigilance=0.0),
    "features weighted, soft": pensemble(feature_weighting="soft"),
    "features weighted, full": pensemble(feature_weighting="full"),
    "two features selected": pensemble(n_selected=2),
    "two features selected, partial input": pensemble(n_selected=2, partial_input=True, random_state=0),
    "pENsemble+": plus(),
    "first rule's variance 0.01 instead of 10": plus(spread=0.01),
    "dynamic threshold": plus(dynamic_threshold=True),
    "at most a tenth of the labels": plus(budget=0.1),
}


def accuracy() -> str:
    """CR of each variant on each stream, scaled beforehand."""
    lines = [
        f"CR in %, chunks of {CHUNK}, inputs scaled beforehand; in brackets the mean number of rules and, for "
        "pENsemble+, the labels used. Only the partial input is random, so there is a single run of each. "
        "`python benchmarks/baselines.py --write` wrote this table.",
        "",
        "| | " + " | ".join(STREAMS) + " |",
        "|---" * (len(STREAMS) + 1) + "|",
    ]
    streams = {name: paper_streams.load(name) for name in STREAMS}
    for title, model in VARIANTS.items():
        cells = []
        for stream in streams.values():
            summary = Summary(prequential(stream, clone(model)))
            share = f", {100 * summary.n_labels / summary.n_samples:.0f} %" if isinstance(model, PENsemblePlus) else ""
            cells.append(f"{summary.rate.mean:.2f} ({summary.hidden.mean:.1f}{share})")
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
        print(lines[-1], file=sys.stderr, flush=True)
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"put the table into {PAGE.name}")
    arguments = parser.parse_args()
    for name in STREAMS:
        if paper_streams.missing(name):
            raise SystemExit(paper_streams.missing(name))
    table = accuracy()
    print(table)
    if arguments.write:
        put(PAGE, "baselines", table)


if __name__ == "__main__":
    main()
