"""The effect of each departure from the papers on the accuracy, for docs/deviations.md.

Each departure is undone, and the streams at hand are run again: `python benchmarks/deviations.py network` for DEVDAN,
`rules` for pENsemble and pENsemble+, without either for both. `--write` puts the tables into the page. A departure in
the kernel is undone in a copy of its source, so each line named here must still be there.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import paper_streams
from measuring import put
from sklearn.base import clone

from devdan import DEVDAN, kernel
from devdan.bench import PClass, PENsemble, PENsemblePlus
from devdan.evaluation.loop import prequential
from devdan.evaluation.record import Summary
from devdan.model import mixture, scales

PAGE = Path(__file__).parents[1] / "docs" / "deviations.md"
STREAMS = ("sea", "hyperplane", "electricity", "weather")
CHUNK = 500
EXPLODES = 300  # hidden units: a run that has more is given up

Change = tuple[str, str]

KERNEL: dict[str, list[Change]] = {
    "new unit's W = z − x, the paper's sign taken literally": [
        ("net.encoder[j, unit] = -weight[j] *", "net.encoder[j, unit] = weight[j] *")
    ],
    "random weights of variance 2 / (n + 1)": [("WEIGHT_VARIANCE = 32.0", "WEIGHT_VARIANCE = 2.0")],
    "random output weights for a unit of the discriminative phase": [
        (
            "net.output[o, unit] = -(z[ACTUAL, o] - x[o])",
            "net.output[o, unit] = normal(net.random, 2.0 / (unit + 2))",
        )
    ],
    "bias² averaged over the outputs": [
        (
            "bias2 = max(bias2, weight[j] * (z[EXPECTED, j] - x[j]) ** 2)",
            "bias2 += weight[j] * (z[EXPECTED, j] - x[j]) ** 2",
        ),
        ("return bias2, variance / total", "return bias2 / total, variance / total"),
    ],
    "variance as the norm over the outputs": [
        (
            "variance += weight[j] * (z[EXPECTED2, j] - z[EXPECTED, j] ** 2)",
            "variance += weight[j] * (z[EXPECTED2, j] - z[EXPECTED, j] ** 2) ** 2",
        ),
        ("return bias2, variance / total", "return bias2, math.sqrt(variance)"),
    ],
    "discriminative bias² and variance before the softmax, as in the paper": [
        (
            "softmax(work.flat_prediction, m, net.max_classes)",
            "softmax(work.prediction[ACTUAL], m, net.max_classes)",  # that of Ĉ alone
        )
    ],
    "input statistics shared by the phases": [
        ("net.input_mean[phase], net.input_square[phase]", "net.input_mean[0], net.input_square[0]"),
        ("step_count(net.input_count[phase]", "step_count(net.input_count[0]"),
    ],
    "only the minima whose condition was met are reset": [
        ("    if grows or prunes:  # the network changes, so both minima restart\n", "    if grows:\n"),
        ("    if grows or too_many:\n", "    if too_many:\n"),
    ],
    "minima of the variance from the second sample on": [("variance, net.n_features + 2.0)", "variance, 2.0)")],
}


class ResetsVelocity(DEVDAN):
    """Momentum that starts anew with each chunk."""

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Any:
        if self.__sklearn_is_fitted__():
            net = self.mixture_.nets[0]
            for name in type(net).fields():
                if name.endswith("moment"):
                    getattr(net, name)[:] = 0.0
        return super().partial_fit(X, y, classes)


OPTIONS: dict[str, tuple[type[DEVDAN], dict[str, Any]]] = {
    "velocity zeroed at the start of each chunk": (ResetsVelocity, {}),
    "learning rate 0.01, momentum 0.95": (DEVDAN, {"learning_rate": 0.01, "momentum": 0.95}),
    "learning rate 0.1, no momentum": (DEVDAN, {"learning_rate": 0.1, "momentum": 0.0}),
    "samples of a chunk visited in order": (DEVDAN, {"shuffle": False}),
    "scaling learned online, without looking ahead": (DEVDAN, {"scaling": "minmax"}),
    "adaptive scope for new units": (DEVDAN, {"scope": "adaptive"}),
}


def altered(changes: list[Change]) -> Any:
    """The kernel with some of its source replaced: a copy of the package under another name."""
    name = f"altered_kernel_{next(_COPIES)}"
    folder = Path(tempfile.mkdtemp())
    sources = {file.name: file.read_text() for file in sorted(Path(kernel.__file__).parent.glob("*.py"))}
    for old, new in changes:
        homes = [file for file, source in sources.items() if old in source]
        if not homes:
            raise SystemExit(f"the kernel has no place with: {old}")
        for file in homes:
            sources[file] = sources[file].replace(old, new)
    (folder / name).mkdir()
    for file, source in sources.items():
        (folder / name / file).write_text(source.replace("devdan.kernel", name))
    sys.path.insert(0, str(folder))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(folder))


_COPIES = itertools.count()


def kernel_is(changed: Any) -> None:
    """Let models that are made from now on learn and predict with this kernel."""
    mixture.kernel = changed
    scales.SCALING_HORIZON = changed.SCALING_HORIZON  # which is written into states as they are made
    scales.new_replaying = importlib.import_module(f"{changed.__name__}.state").new_replaying


# --- DEVDAN --------------------------------------------------------------------------------------------------------


def cell(name: str, make: Callable[[int], DEVDAN], n_seeds: int) -> str:
    """Mean CR and hidden units over the seeds."""
    stream = paper_streams.load(name)
    rates, sizes = [], []
    for seed in range(n_seeds):
        summary = Summary()
        for record in prequential(stream, make(seed)):
            summary.add(record)
            if record.n_hidden > EXPLODES:
                return f"over {EXPLODES} units"
        rates.append(summary.rate.mean)
        sizes.append(summary.hidden.mean)
    return f"{np.mean(rates):.2f} ({np.mean(sizes):.0f})"


def of_the_network(n_seeds: int) -> str:
    """CR and hidden units with each departure undone."""
    lines = [
        f"CR in %, mean of {n_seeds} seeds, chunks of {CHUNK}; the mean number of hidden units in brackets. "
        "`python benchmarks/deviations.py network --write` wrote this table.",
        "",
        *head("changed"),
    ]

    def measure(title: str, kind: type[DEVDAN], options: dict[str, Any]) -> None:
        cells = [cell(name, lambda seed: kind.paper(random_state=seed, **options), n_seeds) for name in STREAMS]
        lines.append(row(title, cells))

    measure("nothing", DEVDAN, {})
    for title, changes in KERNEL.items():
        kernel_is(altered(changes))
        measure(title, DEVDAN, {})
    kernel_is(kernel)
    for title, (kind, options) in OPTIONS.items():
        measure(title, kind, options)
    return "\n".join(lines) + "\n"


# --- pENsemble and pENsemble+ --------------------------------------------------------------------------------------


def pensemble(**options: Any) -> PENsemble:
    member = {name: options.pop(name) for name in list(options) if name in PClass().get_params()}
    return PENsemble(PClass(scaling=None, **member), **options)


def plus(**options: Any) -> PENsemblePlus:
    member = {name: options.pop(name) for name in list(options) if name in PClass().get_params()}
    return PENsemblePlus(PClass(scaling=None, **{"spread": 10.0} | member), **options)


RULES: dict[str, Any] = {
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


def of_the_rules() -> str:
    """CR, rules and used labels with one choice changed at a time; inputs are scaled beforehand."""
    lines = [
        f"CR in %, chunks of {CHUNK}, inputs scaled beforehand; in brackets the mean number of rules and, for "
        "pENsemble+, the labels used. Only the partial input is random, so there is a single run of each. "
        "`python benchmarks/deviations.py rules --write` wrote this table.",
        "",
        *head(""),
    ]
    streams = {name: paper_streams.load(name) for name in STREAMS}
    for title, model in RULES.items():
        cells = []
        for stream in streams.values():
            summary = Summary(prequential(stream, clone(model)))
            used = f", {100 * summary.n_labels / summary.n_samples:.0f} %" if isinstance(model, PENsemblePlus) else ""
            cells.append(f"{summary.rate.mean:.2f} ({summary.hidden.mean:.1f}{used})")
        lines.append(row(title, cells))
    return "\n".join(lines) + "\n"


def head(title: str) -> list[str]:
    return [f"| {title} | ".replace("|  |", "| |") + " | ".join(STREAMS) + " |", "|---" * (len(STREAMS) + 1) + "|"]


def row(title: str, cells: list[str]) -> str:
    line = f"| {title} | " + " | ".join(cells) + " |"
    print(line, file=sys.stderr, flush=True)
    return line


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", choices=[[], "network", "rules"], help="which; without any, both")
    parser.add_argument("--seeds", type=int, default=10, help="of the network; the rules are not random")
    parser.add_argument("--write", action="store_true", help=f"put the tables into {PAGE.name}")
    arguments = parser.parse_args()
    for name in STREAMS:
        if paper_streams.missing(name):
            raise SystemExit(paper_streams.missing(name))
    tables = {"network": lambda: of_the_network(arguments.seeds), "rules": of_the_rules}
    for name in arguments.tables or tables:
        table = tables[name]()
        print(table)
        if arguments.write:
            put(PAGE, name, table)


if __name__ == "__main__":
    main()
