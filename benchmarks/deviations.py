"""What the paper leaves open and what it claims: tables of docs/deviations.md, claims.md, pensemble.md, experiments.md.

`python benchmarks/deviations.py choices` changes one choice of `DEVDAN.paper()` at a time, `rate` chooses the learning
rate on the first part of each stream, `preparation` prepares KDD Cup in other ways, `lasting` shows whether a falling
rate freezes, `claims` compares DEVDAN with fixed autoencoders and with itself without the generative phase, `defaults`
is about that phase in the defaults, `annealing` about a falling rate in them, `rules` about pENsemble and pENsemble+.
Without any, all. `--write` puts the tables into the pages. A choice within the kernel is changed in a copy of its
source, so each line named here must still be there.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import math
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, NamedTuple

import numpy as np
import paper_streams
from measuring import put
from sklearn.base import clone

from devdan import DEVDAN, kernel
from devdan.bench import PClass, PENsemble, PENsemblePlus
from devdan.bench.grid_results import published
from devdan.evaluation.loop import prequential
from devdan.evaluation.record import Summary
from devdan.model import mixture, scales
from devdan.streams import Stream, open_stream
from devdan.streams.entries import suite

DOCS = Path(__file__).parents[1] / "docs"
STREAMS = ("sea", "hyperplane", "electricity", "weather")
SEEDS = {"sea": 40, "hyperplane": 40, "electricity": 100, "weather": 100, "kddcup": 4}
FIRST_SEED = 1000  # nothing was chosen on these
CHUNK = 500
EXPLODES = 300  # hidden units: a run that has more is given up
SURE = 2.5  # standard errors beyond which a difference gets a star

Change = tuple[str, str]

KERNEL: dict[str, list[Change]] = {
    "new unit's W = z − x, the paper's sign taken literally": [
        ("net.encoder[j, unit] = -weight[j] *", "net.encoder[j, unit] = weight[j] *")
    ],
    "random output weights for new classes and for units of the generative phase": [
        (
            "from devdan.kernel.inputs import widen",
            "from devdan.kernel.arithmetic import normal\nfrom devdan.kernel.inputs import widen",
        ),
        (
            "    net.n_classes = max(net.n_classes, label + 1, net.n_named)\n",
            "    while net.n_classes < max(label + 1, net.n_named):\n"
            "        for i in range(net.n_hidden):\n"
            "            net.output[net.n_classes, i] = normal(net.random, 2.0 / (net.n_hidden + 1))\n"
            "        net.n_classes += 1\n",
        ),
        (
            "    else:  # in the other phase they stay zero, as is all beyond the units in use\n",
            "        for o in range(m):\n"
            "            net.output[o, unit] = normal(net.random, 2.0 / (unit + 2))\n"
            "    else:\n",
        ),
    ],
    "random output weights for units of the discriminative phase": [
        (
            "net.output[o, unit] = -(z[ACTUAL, o] - x[o])",
            "net.output[o, unit] = normal(net.random, 2.0 / (unit + 2))",
        )
    ],
    "random W of variance 2 / (n + 1)": [("WEIGHT_VARIANCE = 32.0", "WEIGHT_VARIANCE = 2.0")],
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
    "discriminative bias² and variance before the softmax": [
        (
            "softmax(work.flat_prediction, m, net.max_classes)",
            "softmax(work.prediction[ACTUAL], m, net.max_classes)",  # that of Ĉ alone
        )
    ],
    "input statistics shared by the phases": [
        ("net.input_mean[phase], net.input_square[phase]", "net.input_mean[0], net.input_square[0]"),
        ("step_count(net.input_count[phase]", "step_count(net.input_count[0]"),
    ],
    "only the minima whose condition was met restart": [
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
            for name in net.fields():
                if name.endswith("moment"):
                    getattr(net, name)[:] = 0.0
        return super().partial_fit(X, y, classes)


CONSTANT = {"annealing": None, "learning_rate": 0.015}
OPTIONS: dict[str, tuple[type[DEVDAN], dict[str, Any]]] = {
    "a constant learning rate, 0.015": (DEVDAN, CONSTANT),
    "a constant learning rate, 0.1, no momentum": (DEVDAN, {"annealing": None, "learning_rate": 0.1, "momentum": 0.0}),
    "momentum 0.95, rate halved": (DEVDAN, {"learning_rate": 0.02, "momentum": 0.95}),
    "velocity zeroed at the start of each chunk": (ResetsVelocity, {}),
    "generative rate 0.001": (DEVDAN, {"generative_learning_rate": 0.001}),
    "generative rate 0.0001": (DEVDAN, {"generative_learning_rate": 0.0001}),
    "no generative phase": (DEVDAN, {"generative": False}),
    "nothing masked": (DEVDAN, {"masking": 0.0}),
    "half of the features masked": (DEVDAN, {"masking": 0.5}),
    "no growing": (DEVDAN, {"grow": False}),
    "no pruning": (DEVDAN, {"prune": False}),
    "phases alternate by sample": (DEVDAN, {"interleave": True}),
    "samples of a chunk visited in order": (DEVDAN, {"shuffle": False}),
    "scaling learned online, without looking ahead": (DEVDAN, {"scaling": "minmax"}),
    "adaptive scope for new units": (DEVDAN, {"scope": "adaptive"}),
}


# --- Kernels with another choice -----------------------------------------------------------------------------------


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


# --- Runs ----------------------------------------------------------------------------------------------------------


class Run(NamedTuple):
    """The rate of each chunk that was scored, in %, and the mean number of hidden units."""

    rates: list[float]
    n_hidden: float

    @property
    def rate(self) -> float:
        return fmean(self.rates)


class ExplodedError(Exception):
    """There were too many hidden units."""


@cache
def loaded(name: str, scaled: bool = True) -> Stream:
    return paper_streams.load(name, scaled)


def run(stream: Stream, model: DEVDAN, labels: str = "all") -> Run:
    rates, sizes = [], []
    for record in prequential(stream, model, labels):
        if record.n_hidden is not None and record.n_hidden > EXPLODES:
            raise ExplodedError
        if record.chunk > 0:  # the first is not predicted
            rates.append(100 * (record.accuracy or 0.0))
        sizes.append(record.n_hidden or 0)
    return Run(rates, fmean(sizes))


def runs(name: str, make: Callable[[int], DEVDAN], n_seeds: int | None, stream: Stream | None = None) -> list[Run]:
    """One for each seed."""
    n = SEEDS[name] if n_seeds is None else min(n_seeds, SEEDS[name])
    return [run(stream or loaded(name), make(FIRST_SEED + seed)) for seed in range(n)]


def error(values: Sequence[float]) -> float:
    """The standard error of the mean."""
    return stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.nan


def signed(value: float) -> str:
    return f"{value:+.2f}".replace("-", "−")


def difference(ours: Sequence[float], theirs: Sequence[float]) -> str:
    """The difference of two means, with a star where it is more than a few standard errors."""
    gap, spread = fmean(ours) - fmean(theirs), math.hypot(error(ours), error(theirs))
    return f"{signed(gap)}{'*' if abs(gap) > SURE * spread else ''}"


def size(found: Sequence[Run]) -> float:
    return fmean(one.n_hidden for one in found)


# --- Choices -------------------------------------------------------------------------------------------------------


def choices(n_seeds: int | None) -> str:
    """CR and hidden units of the paper's settings, and what each choice is worth."""
    n = ", ".join(f"{SEEDS[name] if n_seeds is None else n_seeds} on {name}" for name in STREAMS)
    lines = [
        f"CR in %, chunks of {CHUNK}, with the standard error over seeds ({n}), the mean number of hidden units in "
        "brackets (over seeds: from the fewest to the most), and the share of seeds at or above the published rate. "
        f"Below, differences when one choice is changed; a star marks those beyond {SURE} standard errors. "
        "`python benchmarks/deviations.py choices --write` wrote this table.",
        "",
        *head("choice", STREAMS),
    ]
    base = {name: runs(name, lambda seed: DEVDAN.paper(random_state=seed), n_seeds) for name in STREAMS}
    paper = {name: published(name, "CR", "DEVDAN") for name in STREAMS}
    lines.append(
        row("the paper", [f"{paper[name].mean:.2f} ({published(name, 'HN', 'DEVDAN').mean:g})" for name in STREAMS])
    )
    cells = []
    for name, found in base.items():
        rates, sizes = [one.rate for one in found], [one.n_hidden for one in found]
        reached = sum(rate >= paper[name].mean for rate in rates) / len(rates)
        cells.append(
            f"**{fmean(rates):.2f} ± {error(rates):.2f}** ({fmean(sizes):.0f}: {min(sizes):.0f}–{max(sizes):.0f}), "
            f"{100 * reached:.0f} %"
        )
    lines.append(row("`DEVDAN.paper()`", cells))

    def measure(title: str, kind: type[DEVDAN], options: dict[str, Any]) -> None:
        cells = []
        for name in STREAMS:
            try:
                found = runs(name, lambda seed: kind.paper(random_state=seed, **options), n_seeds)
            except ExplodedError:
                cells.append(f"over {EXPLODES} units")
                continue
            gap = difference([one.rate for one in found], [one.rate for one in base[name]])
            cells.append(f"{gap} ({size(found):.0f})")
        lines.append(row(title, cells))

    for title, (kind, options) in OPTIONS.items():
        measure(title, kind, options)
    for title, changes in KERNEL.items():
        kernel_is(altered(changes))
        measure(title, DEVDAN, {})
    kernel_is(kernel)
    return "\n".join(lines) + "\n"


RATES, LABELS, FIRST_PART = (0.02, 0.03, 0.04, 0.06, 0.08), (200.0, 500.0, 1000.0, 2000.0), 0.3


def rate(n_seeds: int | None) -> str:
    """The mean rate over the streams by learning rate and annealing, on the first part of each and on all of it."""
    lines = [
        f"Mean CR in % over {', '.join(STREAMS)}; on the first {100 * FIRST_PART:.0f} % of each stream / on all of it. "
        "`python benchmarks/deviations.py rate --write` wrote this table.",
        "",
        *head("learning rate", [f"annealing {labels:g}" for labels in LABELS]),
    ]
    for value in RATES:
        cells = []
        for labels in LABELS:
            means = []
            for share in (FIRST_PART, 1.0):
                by_stream = []
                for name in STREAMS:
                    stream = loaded(name)
                    part = stream.first(int(share * (stream.n_samples or 0)))
                    options = {"learning_rate": value, "annealing": labels}
                    found = runs(
                        name,
                        lambda seed, options=options: DEVDAN.paper(random_state=seed, **options),
                        n_seeds or 20,
                        part,
                    )
                    by_stream.append(fmean(one.rate for one in found))
                means.append(fmean(by_stream))
            cells.append(" / ".join(f"{mean:.2f}" for mean in means))
        lines.append(row(f"{value:g}", cells))
    return "\n".join(lines) + "\n"


# --- Whether it freezes --------------------------------------------------------------------------------------------

COPIES = 5


def of_copies(options: dict[str, Any], n_seeds: int) -> list[float]:
    """The mean rate on each of several copies of SEA, one after the other."""
    stream = loaded("sea")
    X, y = (np.concatenate(parts) for parts in zip(*stream, strict=True))
    long = replace(stream, blocks=lambda: ((X, y) for _ in range(COPIES)), n_samples=COPIES * len(X))
    found = runs("sea", lambda seed: DEVDAN.paper(random_state=seed, **options), n_seeds, long)
    parts = np.array([np.array_split([math.nan, *one.rates], COPIES) for one in found])
    means: list[float] = np.nanmean(parts, axis=(0, 2)).tolist()  # the first chunk is not predicted
    return means


def lasting(n_seeds: int | None) -> str:
    """Whether a falling rate freezes."""
    lines = [
        f"CR in % of each of {COPIES} copies of SEA, one after the other, mean of the seeds. "
        "`python benchmarks/deviations.py lasting --write` wrote this table.",
        "",
        *head("learning rate", [f"copy {copy + 1}" for copy in range(COPIES)]),
    ]
    for title, options in (("falling", {}), ("constant, 0.015", CONSTANT)):
        lines.append(row(title, [f"{mean:.2f}" for mean in of_copies(options, n_seeds or 10)]))
    return "\n".join(lines) + "\n"


# --- KDD Cup -------------------------------------------------------------------------------------------------------


def by_chunk(stream: Stream) -> Stream:
    """Each feature of each chunk scaled to [0, 1] by the chunk's own range."""

    def chunks() -> Iterator[Any]:
        for X, y in stream:
            low, high = X.min(axis=0), X.max(axis=0)
            yield (X - low) / np.where(high > low, high - low, 1.0), y

    return replace(stream, blocks=chunks)


def logarithms(stream: Stream) -> Stream:
    """The logarithm of 1 + x: counts, bytes and seconds, none of them negative."""
    return replace(stream, blocks=lambda: ((np.log1p(X), y) for X, y in stream.blocks()))


def preparation(n_seeds: int | None) -> str:
    """KDD Cup, prepared in several ways."""
    raw = loaded("kddcup", False)
    prepared = {
        "scaled over the whole stream": loaded("kddcup"),
        "scaled by chunk": by_chunk(raw),
        "logarithms, scaled over the whole stream": logarithms(raw).scaled(),
        "logarithms, scaled by chunk": by_chunk(logarithms(raw)),
    }
    models: dict[str, dict[str, Any]] = {
        "`DEVDAN.paper()`": {},
        "constant rate": CONSTANT,
        "AE": {**FIXED, "masking": 0.0},
    }
    theirs = " and ".join(f"{published('kddcup', 'CR', name).mean} ({name})" for name in ("DEVDAN", "AE"))
    lines = [
        f"CR in % on KDD Cup 10 % (shuffled), mean of the seeds ± deviation over chunks; the paper has {theirs}. "
        "`python benchmarks/deviations.py preparation --write` wrote this table.",
        "",
        *head("inputs", models),
    ]
    for title, stream in prepared.items():
        cells = []
        for options in models.values():
            found = runs(
                "kddcup", lambda seed, options=options: DEVDAN.paper(random_state=seed, **options), n_seeds, stream
            )
            spread = fmean(float(np.std(one.rates)) for one in found)
            cells.append(f"{fmean(one.rate for one in found):.2f} ± {spread:.2f} ({size(found):.0f})")
        lines.append(row(title, cells))
    return "\n".join(lines) + "\n"


# --- The paper's claims --------------------------------------------------------------------------------------------

FIXED: dict[str, Any] = {"n_hidden": 10, "grow": False, "prune": False}
SITUATIONS: dict[str, tuple[str, int | None]] = {  # labels, and how many of the chunks that are scored count
    "all labels": ("all", None),
    "the first 2 chunks": ("all", 2),
    "the first 5 chunks": ("all", 5),
    "the first 10 chunks": ("all", 10),
    "10 % of the labels": ("fraction:0.1", None),
    "5 % of the labels": ("fraction:0.05", None),
    "1 % of the labels": ("fraction:0.01", None),
    "labels 1,000 samples late": ("delay:1000", None),
    "labels 5,000 samples late": ("delay:5000", None),
    "labels of the first 1,000 samples only": ("warmup:1000", None),
}
OTHERS: dict[str, dict[str, Any]] = {
    "AE": {**FIXED, "masking": 0.0},
    "DAE": FIXED,
    "AE of 20 units": {**FIXED, "n_hidden": 20, "masking": 0.0},
    "without the generative phase": {"generative": False},
    "10 units without it": {**FIXED, "generative": False},
}


def claims(n_seeds: int | None) -> str:
    """What DEVDAN is ahead of others, in several situations: both with a falling rate and with a constant one."""
    lines = [
        f"CR of `DEVDAN.paper()` minus that of the other, in points, by {', '.join(STREAMS)}; all with the same rates; "
        f"a star marks differences beyond {SURE} standard errors. The paper has "
        + " and ".join(
            " ".join(
                signed(published(name, "CR", "DEVDAN").mean - published(name, "CR", kind).mean) for name in STREAMS
            )
            + f" ({kind})"
            for kind in ("AE", "DAE")
        )
        + ". `python benchmarks/deviations.py claims --write` wrote this table.",
        "",
        *head("situation", OTHERS),
    ]

    @cache
    def found(name: str, labels: str, constant: bool, other: str | None) -> list[Run]:
        options = {**(CONSTANT if constant else {}), **(OTHERS[other] if other else {})}
        n = min(n_seeds or 20, SEEDS[name])
        return [run(loaded(name), DEVDAN.paper(random_state=FIRST_SEED + seed, **options), labels) for seed in range(n)]

    for constant in (False, True):
        for title, (labels, n_chunks) in SITUATIONS.items():
            cells = []
            for other in OTHERS:
                gaps = []
                for name in STREAMS:
                    ours, theirs = (
                        [fmean(one.rates[:n_chunks]) for one in found(name, labels, constant, which)]
                        for which in (None, other)
                    )
                    gaps.append(difference(ours, theirs))
                cells.append(" ".join(gaps))
            lines.append(row(title + (", constant rate" if constant else ""), cells))
    return "\n".join(lines) + "\n"


REAL = [name for name in suite("real") if name != "transactions"]  # nobody here wrote or tuned on; the first of each
N_FIRST = 30_000
POLICIES = {
    "all labels": "all",
    "5 % of them": "fraction:0.05",
    "1 %": "fraction:0.01",
    "5,000 late": "delay:5000",
    "the first 1,000 only": "warmup:1000",
}


@cache
def real(name: str) -> Stream:
    return open_stream(name, data=paper_streams.FOLDER).first(N_FIRST)


def defaults(n_seeds: int | None) -> str:
    """What the generative phase is worth in the defaults."""
    streams = {"the paper's four": [loaded(name, False) for name in STREAMS], "ten real": list(map(real, REAL))}
    models = {"`DEVDAN()`": {}, "`DEVDAN(rehearse=0)`": {"rehearse": 0}}
    lines = [
        "CR with the generative phase minus CR without it, in points ± standard error, mean over the streams "
        f"(the first {N_FIRST:,} samples of the real ones: {', '.join(REAL)}). "
        "`python benchmarks/deviations.py defaults --write` wrote this table.",
        "",
        *head("labels", [f"{model}, {group}" for model in models for group in streams]),
    ]
    for title, labels in POLICIES.items():
        cells = []
        for options in models.values():
            for group in streams.values():
                gaps, errors = [], []
                for stream in group:
                    on, off = (
                        [
                            run(
                                stream, DEVDAN(random_state=FIRST_SEED + seed, generative=phase, **options), labels
                            ).rate
                            for seed in range(n_seeds or 10)
                        ]
                        for phase in (True, False)
                    )
                    gaps.append(fmean(on) - fmean(off))
                    errors.append(math.hypot(error(on), error(off)))
                cells.append(f"{signed(fmean(gaps))} ± {math.hypot(*errors) / len(group):.2f}")
        lines.append(row(title, cells))
    return "\n".join(lines) + "\n"


ANNEALED: dict[str, dict[str, Any]] = {
    "nothing": {},
    "`annealing=5000`": {"annealing": 5000.0},
    "`annealing=20000`": {"annealing": 20_000.0},
    "`learning_rate=0.06, annealing=2000`": {"learning_rate": 0.06, "annealing": 2000.0},
    "`generative_learning_rate=0.0001`": {"generative_learning_rate": 0.0001},
    "`generative_learning_rate=0.001`": {"generative_learning_rate": 0.001},
}


def annealing(n_seeds: int | None) -> str:
    """What a falling rate, or another rate of the generative phase, is worth in the defaults."""
    four = [loaded(name, False) for name in STREAMS]
    groups: dict[str, tuple[list[Stream], str]] = {
        "the paper's four": (four, "all"),
        "10 % of the labels": (four, "fraction:0.1"),
        "labels 1,000 late": (four, "delay:1000"),
        "Electricity, one by one": ([loaded("electricity", False).in_chunks_of(1)], "all"),
        "Weather, one by one": ([loaded("weather", False).in_chunks_of(1)], "all"),
        "ten real": (list(map(real, REAL)), "all"),
    }
    lines = [
        "CR of `DEVDAN()` in %, mean over the streams ± standard error. "
        "`python benchmarks/deviations.py annealing --write` wrote this table.",
        "",
        *head("changed", groups),
    ]
    for title, options in ANNEALED.items():
        cells = []
        for streams, labels in groups.values():
            n = range(min(n_seeds or 5, 2 if streams[0].chunk == 1 else 5))
            found = [
                [run(one, DEVDAN(random_state=FIRST_SEED + seed, **options), labels).rate for seed in n]
                for one in streams
            ]
            spread = math.hypot(*map(error, found)) / len(streams)
            cells.append(f"{fmean(map(fmean, found)):.2f} ± {spread:.2f}")
        lines.append(row(title, cells))
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
    "at most a fifth of the labels": plus(budget=0.2),
    "at most a tenth of the labels": plus(budget=0.1),
    "first rule's variance 0.01 instead of 10": plus(spread=0.01),
    "dynamic threshold": plus(dynamic_threshold=True),
}
WITH_KDD = ("pENsemble+", "at most a fifth of the labels")  # as the paper's figures are compared; it takes minutes


def rules(_: int | None) -> str:
    """CR, rules and used labels with one choice changed at a time; inputs are scaled beforehand."""
    names = (*STREAMS, "kddcup")
    theirs = ", ".join(f"{published(name, 'CR', 'pENsemble+').mean:.2f}" for name in names)
    lines = [
        f"CR in %, chunks of {CHUNK}, inputs scaled beforehand; in brackets the mean number of rules and, for "
        f"pENsemble+, the labels used. Only the partial input is random, so there is a single run of each. "
        f"The paper has {theirs} for pENsemble+. `python benchmarks/deviations.py rules --write` wrote this table.",
        "",
        *head("", names),
    ]
    for title, model in RULES.items():
        cells = []
        for name in names:
            if name == "kddcup" and title not in WITH_KDD:
                cells.append("–")
                continue
            summary = Summary(prequential(loaded(name), clone(model)))
            used = f", {100 * summary.n_labels / summary.n_samples:.0f} %" if isinstance(model, PENsemblePlus) else ""
            cells.append(f"{summary.rate.mean:.2f} ({summary.hidden.mean:.1f}{used})")
        lines.append(row(title, cells))
    return "\n".join(lines) + "\n"


# --- Tables --------------------------------------------------------------------------------------------------------


def head(title: str, columns: Sequence[str] | dict[str, Any]) -> list[str]:
    return [f"| {title} | ".replace("|  |", "| |") + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]


def row(title: str, cells: list[str]) -> str:
    line = f"| {title} | " + " | ".join(cells) + " |"
    print(line, file=sys.stderr, flush=True)
    return line


TABLES: dict[str, tuple[Callable[[int | None], str], str]] = {  # each with its page
    "choices": (choices, "deviations.md"),
    "rate": (rate, "deviations.md"),
    "lasting": (lasting, "deviations.md"),
    "preparation": (preparation, "deviations.md"),
    "claims": (claims, "claims.md"),
    "defaults": (defaults, "claims.md"),
    "annealing": (annealing, "experiments.md"),
    "rules": (rules, "pensemble.md"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", choices=[[], *TABLES], help="which; without any, all")
    parser.add_argument("--seeds", type=int, help="at most so many; the rules are not random")
    parser.add_argument("--write", action="store_true", help="put the tables into their pages")
    arguments = parser.parse_args()
    for name in (*STREAMS, "kddcup"):
        if paper_streams.missing(name):
            raise SystemExit(paper_streams.missing(name))
    for name in arguments.tables or TABLES:
        make, page = TABLES[name]
        table = make(arguments.seeds)
        print(table)
        if arguments.write:
            put(DOCS / page, name, table)


if __name__ == "__main__":
    main()
