"""What each part of the defaults is worth: it is undone or changed, and all streams at hand are run again.

The tables go into docs/experiments.md with `--write`. Streams: four of the paper's and River's generators.
Needs `pip install 'devdan[river]'` and the streams in DEVDAN_DATA; about half an hour.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import other_streams
import paper_streams
from deviations import Change, altered, kernel_is
from measuring import put
from sklearn.linear_model import LogisticRegression

from devdan import DEVDAN, DEVDANEnsemble, kernel
from devdan.bench import named_models
from devdan.evaluation.loop import prequential
from devdan.evaluation.record import Summary
from devdan.model.scales import QUICK, REPLAYING, SCALES
from devdan.streams import Stream

PAGE = Path(__file__).parents[1] / "docs" / "experiments.md"
PAPERS = ("sea", "hyperplane", "electricity", "weather")
OTHERS = tuple(other_streams.GENERATORS)
SCARCE = ("all", "fraction:0.1", "fraction:0.05", "delay:1000")

_ACTIVATION = "        delta[i] *= y[i] * (1.0 - y[i])\n"
_ENCODE = [("    sigmoid(y, r)\n", "    {0}(y, r)\n"), ("    sigmoid(y[ACTUAL], r)\n", "    {0}(y[ACTUAL], r)\n")]
_ENCODE.append(("    sigmoid(y[EXPECTED], r)\n", "    {0}(y[EXPECTED], r)\n"))


def _activated(name: str, body: str, slope: str) -> list[Change]:
    definition = (
        f"@compiled\ndef {name}(a: Floats, length: int) -> None:\n    for i in range(length):\n        {body}\n\n\n"
    )
    return [
        ("@compiled\ndef corrupt", definition + "@compiled\ndef corrupt"),
        (_ACTIVATION, f"        delta[i] *= {slope}\n"),
        *((old, new.format(name)) for old, new in _ENCODE),
    ]


KERNEL: dict[str, list[Change]] = {
    "inputs standardised over all samples seen": [("SCALING_HORIZON = 2000.0", "SCALING_HORIZON = 1e18")],
    "… over 500 samples": [("SCALING_HORIZON = 2000.0", "SCALING_HORIZON = 500.0")],
    "mean square of a gradient over 1,000 samples, not 300": [
        ("GRADIENT_HORIZON = 300.0", "GRADIENT_HORIZON = 1000.0")
    ],
    "rate damped by 0.01, not 0.03": [("DAMPING = 0.03", "DAMPING = 0.01")],
    "rate damped by 0.1": [("DAMPING = 0.03", "DAMPING = 0.1")],
    "labels not smoothed": [("SMOOTHING = 0.05", "SMOOTHING = 0.0")],
    "labels smoothed by 0.1, not 0.05": [("SMOOTHING = 0.05", "SMOOTHING = 0.1")],
    "no decay of the output weights": [("DECAY = 0.005", "DECAY = 0.0")],
    "random weights of variance 2 / (n + 1), not 32": [("WEIGHT_VARIANCE = 32.0", "WEIGHT_VARIANCE = 2.0")],
    "tanh units": _activated("tanh", "a[i] = 2.0 / (1.0 + exponential(-2.0 * a[i])) - 1.0", "1.0 - y[i] * y[i]"),
    "rectified linear units": _activated("rectify", "a[i] = max(a[i], 0.0)", "1.0 if y[i] > 0.0 else 0.0"),
    "bias² averaged over the outputs, not the largest": [
        (
            "bias2 = max(bias2, weight[j] * (z[EXPECTED, j] - x[j]) ** 2)",
            "bias2 += weight[j] * (z[EXPECTED, j] - x[j]) ** 2",
        ),
        ("return bias2, variance / total", "return bias2 / total, variance / total"),
    ],
    "output weights of units of the discriminative phase start at zero, too": [
        ("net.output[o, unit] = -(z[ACTUAL, o] - x[o])", "net.output[o, unit] = 0.0")
    ],
    "function-preserving pruning: HS times the weights is added to the offsets": [
        (
            "    for j in range(net.n_features):\n        remove(net.encoder[j], unit, r)\n",
            "    for o in range(net.n_classes):\n"
            "        net.output_bias[o] += work.hidden[EXPECTED, unit] * net.output[o, unit]\n"
            "        net.output_bias_slow[o] += work.hidden[EXPECTED, unit] * net.output_slow[o, unit]\n"
            "    for j in range(net.n_features):\n"
            "        net.decoder_bias[j] += work.hidden[EXPECTED, unit] * net.encoder[j, unit]\n"
            "        remove(net.encoder[j], unit, r)\n",
        )
    ],
    "bias² and variance with a memory of 2,000 samples": [
        ("monitor[COUNT] += 1.0", "monitor[COUNT] = min(monitor[COUNT] + 1.0, 2000.0)")
    ],
    "minima that rise towards the mean, by a thousandth of the gap per sample": [
        (
            "    if monitor[RESTART] == 0.0:\n",
            "    monitor[MIN_MEAN] += 0.001 * (monitor[MEAN] - monitor[MIN_MEAN])\n"
            "    monitor[MIN_STD] += 0.001 * (std - monitor[MIN_STD])\n"
            "    if monitor[RESTART] == 0.0:\n",
        )
    ],
    "only the averaged weights": [
        (
            "    if net.averaging == 0.0:\n        return 1.0 if predictor == BY_WEIGHTS else 0.0\n",
            "    if net.averaging > 0.0:\n        return 1.0 if predictor == BY_AVERAGES else 0.0\n",
        )
    ],
    "averages that are never restarted": [("weight_of(net, BY_AVERAGES) < DOUBT", "weight_of(net, BY_AVERAGES) < 0.0")],
}

FIELDS: dict[str, list[Change]] = {
    "all units of the second network see through fields": [("hidden - hidden // 2 if", "hidden if")],
    "fields up to 5 deviations from the mean, not 2.5": [("FARTHEST = 2.5", "FARTHEST = 5.0")],
}

RANKS: dict[str, list[Change]] = {
    "fields of skewed features are not placed by rank": [
        ("    if net.n_fields > 0 and net.scaling == STANDARD:\n", "    if False:\n")
    ],
}

BEYOND: dict[str, list[Change]] = {
    "values are not clipped to the range lately taught": [
        ("    if net.clips == 0.0 or net.n_ranged[0]", "    if net.n_ranged[0] >= 0 or net.n_ranged[0]")
    ],
}

MIXED: dict[str, list[Change]] = {
    "predictors mixed alike": [("\nETA = 0.4", "\nETA = 0.0")],
    "losses at full weight": [("\nETA = 0.4", "\nETA = 4.0")],
    "a chunk's losses at the weight of single ones": [
        ("together = 1.0 / math.sqrt(max(1.0, math.ceil((len(order) - first) / STRIDE)))", "together = 1.0")
    ],
    "losses over 2,000 samples, not 500": [("LOSS_MEMORY = 0.992", "LOSS_MEMORY = 0.998")],
    "nothing is forgotten at a drift": [("        net.n_stored = 0\n", "        net.n_stored += 0\n")],
}

OPTIONS: dict[str, dict[str, Any]] = {
    "`averaging=0`: only the current weights": {"averaging": 0.0},
    "`averaging=0.995`": {"averaging": 0.995},
    "`averaging=0.9995`": {"averaging": 0.9995},
    "`learning_rate=0.02`": {"learning_rate": 0.02},
    "`learning_rate=0.08`": {"learning_rate": 0.08},
    '`optimizer="momentum"`, rate 0.01': {"optimizer": "momentum", "learning_rate": 0.01},
    '`optimizer="momentum"`, rate 0.005': {"optimizer": "momentum", "learning_rate": 0.005},
    '`scaling="minmax"`': {"scaling": "minmax"},
    "`shuffle=False`": {"shuffle": False},
    "`generative=False`": {"generative": False},
    "`generative_learning_rate=0.001`": {"generative_learning_rate": 0.001},
    "`prune=False`": {"prune": False},
    "`grow=False, prune=False, n_hidden=10`": {"grow": False, "prune": False, "n_hidden": 10},
}

SWITCHES: dict[str, dict[str, Any]] = {
    "`rehearse=0`: one network": {"rehearse": 0},
    "`rehearse=1`": {"rehearse": 1},
    "`rehearse=2`": {"rehearse": 2},
    "`rehearse=10`": {"rehearse": 10},
    "`generative=False`": {"generative": False},
    "`averaging=0`": {"averaging": 0.0},
    "`grow=False, prune=False`": {"grow": False, "prune": False},
}

SIZES = {
    "from 8 units, not 24": {"n_hidden": 8},
    "from 16 units": {"n_hidden": 16},
    "from 32 units": {"n_hidden": 32},
    "from 64 units": {"n_hidden": 64},
    "of the latest 100, not 1,000": {"reach": 100},
    "of the latest 5,000": {"reach": 5000},
    "without fields": {"fields": 0},
    "with 5 fields, not 10": {"fields": 5},
    "with 20 fields": {"fields": 20},
}

GENERATIVE: dict[str, dict[str, Any]] = {
    "without": {"generative": False},
    "rate 0: only growing and pruning": {"generative_learning_rate": 0.0},
    "rate 0.0001": {"generative_learning_rate": 0.0001},
    "**rate 0.0003, the default**": {},
    "rate 0.001": {"generative_learning_rate": 0.001},
    "rate 0.003": {"generative_learning_rate": 0.003},
}

BOTH: dict[str, dict[str, Any]] = {"without, two networks": {"generative": False}, "**with, two networks**": {}}


@cache
def load(name: str, seed: int, chunk: int) -> Stream:
    """A stream held in memory; of those that are generated, the seed's own."""
    if name in PAPERS:
        return paper_streams.load(name, scaled=False).in_chunks_of(chunk)
    return other_streams.generated(name, seed % 2, chunk)


def rate(name: str, make: Callable[[int], Any], seeds: int, *, chunk: int = 500, labels: str = "all") -> float:
    """Mean CR, in percent; sample by sample, the accuracy."""
    rates = []
    for seed in range(seeds):
        summary = Summary(prequential(load(name, seed, chunk), make(seed), labels, seed=seed))
        rates.append(summary.rate.mean)
    return float(np.mean(rates))


def row(title: str, values: Iterable[float], form: str = "{:.2f}") -> str:
    line = f"| {title} | " + " | ".join(form.format(value) for value in values) + " |"
    print(line, file=sys.stderr, flush=True)
    return line


def head(*titles: str) -> list[str]:
    return ["| " + " | ".join(titles) + " |", "|---" * len(titles) + "|"]


def everywhere(title: str, make: Callable[[int], Any], seeds: int) -> str:
    """On all streams, in chunks and two of them sample by sample."""
    papers = [rate(name, make, seeds) for name in PAPERS]
    others = float(np.mean([rate(name, make, 2) for name in OTHERS]))
    curved = float(np.mean([rate(name, make, 2) for name in other_streams.CURVED]))
    singles = [rate(name, make, 1, chunk=1) for name in ("electricity", "weather")]
    return row(title, [*papers, others, curved, *singles])


EVERYWHERE = (*PAPERS, "River's eight", "curved", "electricity, chunk 1", "weather, chunk 1")


def parts(seeds: int) -> list[str]:
    """One network by itself, with one thing changed at a time."""

    def measured(title: str, **options: Any) -> str:
        return everywhere(title, lambda seed: DEVDAN(random_state=seed, rehearse=0, **options), seeds)

    lines = [*head("changed", *EVERYWHERE), measured("**nothing**")]
    for title, changes in (BEYOND | KERNEL).items():
        kernel_is(altered(changes))
        lines.append(measured(title))
    kernel_is(kernel)
    return lines + [measured(title, **options) for title, options in OPTIONS.items()]


def scales(seeds: int) -> list[str]:
    """What replay and the mixture are worth in `DEVDAN()`."""

    def measured(title: str, **options: Any) -> str:
        return everywhere(title, lambda seed: DEVDAN(random_state=seed, **options), seeds)

    lines = [*head("changed", *EVERYWHERE), measured("**nothing (the defaults)**")]
    lines += [measured(title, **options) for title, options in SWITCHES.items()]
    for title, changed in SIZES.items():
        both = [QUICK, REPLAYING._replace(**changed)]
        make = lambda seed, both=both: DEVDANEnsemble(both, random_state=seed)  # noqa: E731
        lines.append(everywhere(f"second network {title}", make, seeds))
    for title, changes in (BEYOND | FIELDS | RANKS | MIXED).items():
        kernel_is(altered(changes))
        lines.append(measured(title))
    kernel_is(kernel)
    return lines


def generative(seeds: int) -> list[str]:
    """What the generative phase adds, where labels are scarce or late."""
    names = (*PAPERS, *OTHERS, *other_streams.WIDE)
    lines = head("labels", "generative phase", *names, "mean")
    one = {title: {"rehearse": 0, **options} for title, options in GENERATIVE.items()}
    for labels, made in itertools.product(SCARCE, (one, BOTH)):
        without: list[float] = []
        for title, options in made.items():
            rates = [
                rate(name, lambda seed, options=options: DEVDAN(random_state=seed, **options), seeds, labels=labels)
                for name in names
            ]
            without = without or rates
            if rates is without:
                lines.append(row(f"{labels} | {title}", [*rates, float(np.mean(rates))]))
            else:
                gains = [ours - theirs for ours, theirs in zip(rates, without, strict=True)]
                lines.append(row(f"{labels} | {title}", [*gains, float(np.mean(gains))], "{:+.2f}"))
    return lines


def ensemble(seeds: int) -> list[str]:
    """What the parts of the ensemble are worth."""
    lines = head("", *EVERYWHERE)
    made: dict[str, Any] = {"**`DEVDANEnsemble()`**": None}
    for scale in SCALES:
        named = f"replays {scale.replays} of the latest {scale.reach:,}" if scale.replays else "learns once"
        made[f"without the member that {named}"] = [other for other in SCALES if other is not scale]
    made["without fields"] = [scale._replace(fields=0) for scale in SCALES]
    made["twice as many of each"] = [*SCALES, *SCALES]
    made["twice as many replays"] = [scale._replace(replays=2 * scale.replays) for scale in SCALES]
    made["ten that learn once"] = [QUICK] * 10
    for title, members in made.items():
        make = lambda seed, members=members: DEVDANEnsemble(members, random_state=seed)  # noqa: E731
        lines.append(everywhere(title, make, min(seeds, 2)))
    without = lambda seed: DEVDANEnsemble(estimator=DEVDAN(generative=False), random_state=seed)  # noqa: E731
    lines.append(everywhere("`generative=False`", without, min(seeds, 2)))
    for title, changes in (BEYOND | RANKS | MIXED).items():
        kernel_is(altered(changes))
        lines.append(everywhere(title, lambda seed: DEVDANEnsemble(random_state=seed), min(seeds, 2)))
    kernel_is(kernel)
    return lines


def features(seeds: int) -> list[str]:
    """Skewed features, in chunks of 100."""
    made: dict[str, Callable[[int], Any]] = {
        "`DEVDAN()`": lambda seed: DEVDAN(random_state=seed),
        "`DEVDANEnsemble()`": lambda seed: DEVDANEnsemble(random_state=seed),
        "`river-arf`": lambda seed: named_models.build("river-arf", seed=seed),
    }

    def measured(title: str, make: Callable[[int], Any]) -> str:
        return row(title, [rate(name, make, min(seeds, 3), chunk=100) for name in other_streams.SKEWED])

    lines = head("", *other_streams.SKEWED) + [measured(title, make) for title, make in made.items()]
    for changed, changes in RANKS.items():
        kernel_is(altered(changes))
        lines += [measured(f"{title}: {changed}", make) for title, make in list(made.items())[:2]]
    kernel_is(kernel)
    return lines


def ceiling(seeds: int) -> list[str]:
    """What is right on Hyperplane in hindsight: two straight boundaries, with a change from one to the other."""
    X, y = (np.concatenate(part) for part in zip(*load("hyperplane", 0, 500), strict=True))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    early, late = slice(44_000), slice(66_000, None)  # before the change begins, and after it
    is_right = [LogisticRegression(C=100.0).fit(X[part], y[part]).predict(X) == y for part in (early, late)]
    n_right = np.cumsum(is_right[0])[:-1] + np.cumsum(is_right[1][::-1])[::-1][1:]
    lines = head("", "hyperplane, chunk 1")
    lines.append(row("two straight boundaries, each fitted to its whole half", [100 * n_right.max() / len(y)]))
    for name, make in (("DEVDAN", DEVDAN), ("DEVDANEnsemble", DEVDANEnsemble)):
        measured = rate("hyperplane", lambda seed, make=make: make(random_state=seed), min(seeds, 3), chunk=1)
        lines.append(row(f"`{name}()`", [measured]))
    return lines


def calibration(seeds: int) -> list[str]:
    """What a temperature does to the expected calibration error."""

    def error(name: str, make: Callable[[int], Any], n: int, chunk: int = 500) -> float:
        runs = (Summary(prequential(load(name, seed, chunk), make(seed), seed=seed)) for seed in range(n))
        return float(np.mean([run.calibration_error for run in runs]))

    lines = head("", *EVERYWHERE)
    for kind in ("DEVDAN", "DEVDANEnsemble"):
        for title, chosen in (("`calibrate=False`", False), ("**default**", True)):

            def make(seed: int, kind: str = kind, chosen: bool = chosen) -> Any:
                if kind == "DEVDAN":
                    return DEVDAN(calibrate=chosen, random_state=seed)
                return DEVDANEnsemble(estimator=DEVDAN(calibrate=chosen), random_state=seed)

            papers = [error(name, make, min(seeds, 2)) for name in PAPERS]
            others = float(np.mean([error(name, make, 1) for name in OTHERS]))
            curved = float(np.mean([error(name, make, 1) for name in other_streams.CURVED]))
            singles = [error(name, make, 1, chunk=1) for name in ("electricity", "weather")]
            lines.append(row(f"`{kind}`, {title}", [*papers, others, curved, *singles], "{:.3f}"))
    return lines


def peers(seeds: int) -> list[str]:
    """On River's generators, what users would pick instead."""
    lines = head("", *OTHERS, "mean")
    for name in ("devdan", "devdan-ensemble", "river-hat", "river-arf", "sklearn-mlp"):
        rates = []
        for stream in OTHERS:
            labels = np.unique(np.concatenate([y for _, y in load(stream, 0, 500)]))
            records = prequential(load(stream, 0, 500), named_models.build(name), classes=labels)
            rates.append(Summary(records).rate.mean)
        lines.append(row(f"`{name}`", [*rates, float(np.mean(rates))]))
    return lines


TABLES: dict[str, Callable[[int], list[str]]] = {
    "scales": scales,
    "ensemble": ensemble,
    "parts": parts,
    "generative": generative,
    "features": features,
    "ceiling": ceiling,
    "calibration": calibration,
    "peers": peers,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*", choices=[[], *TABLES], help="which; all unless told")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--write", action="store_true", help=f"put the tables into {PAGE.name}")
    arguments = parser.parse_args()
    for name in PAPERS:
        if paper_streams.missing(name):
            raise SystemExit(paper_streams.missing(name))
    for name in arguments.tables or TABLES:
        table = "\n".join(TABLES[name](arguments.seeds)) + "\n"
        print(table)
        if arguments.write:
            put(PAGE, name, table)


if __name__ == "__main__":
    main()
