"""What the paper leaves open and what it claims: tables of docs/deviations.md, claims.md, pensemble.md, experiments.md.

`python benchmarks/deviations.py choices` changes one choice of `DEVDAN.paper()` at a time, `preparation` prepares KDD
Cup in other ways, `scaling` the other streams, `rate` chooses the learning rate on the first part of each stream,
`lasting` shows whether a falling rate freezes, `claims` compares DEVDAN with fixed autoencoders and with itself without
the generative phase, `constant` does so with a constant rate, `sizes` has autoencoders of other sizes, `defaults` is
about the generative phase in the defaults, `annealing` about a falling rate in them, `elsewhere` about both in the
ensemble, `rules` about pENsemble and pENsemble+.
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
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from statistics import fmean, stdev
from time import process_time
from typing import Any, NamedTuple

import numpy as np
import paper_streams
from measuring import put
from sklearn.base import clone

from devdan import DEVDAN, DEVDANEnsemble, kernel
from devdan.bench import PClass, PENsemble, PENsemblePlus
from devdan.bench.grid_results import published
from devdan.evaluation.loop import prequential
from devdan.evaluation.record import Summary
from devdan.model import mixture, scales
from devdan.streams import Stream, open_stream
from devdan.streams.entries import suite

DOCS = Path(__file__).parents[1] / "docs"
STREAMS = ("sea", "hyperplane", "electricity", "weather")
SEEDS = {"sea": 40, "hyperplane": 40, "electricity": 100, "weather": 100, "kddcup": 20}
FIRST_SEED = 1000  # nothing was chosen on these
FRESH = {"sea": 100, "hyperplane": 200, "electricity": 1000, "weather": 400, "kddcup": 20}
FRESH_SEED = 5000  # nor on these, and only the row of fresh seeds has them
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
    """The rate of each chunk that was scored, in %, the mean number of hidden units, and the CPU's seconds."""

    rates: list[float]
    n_hidden: float
    seconds: float

    @property
    def rate(self) -> float:
        return fmean(self.rates)


class ExplodedError(Exception):
    """There were too many hidden units."""


@cache
def loaded(name: str, scaled: bool = True) -> Stream:
    return paper_streams.load(name, scaled)


def run(stream: Stream, model: DEVDAN | DEVDANEnsemble, labels: str = "all") -> Run:
    """The model's seed is that of the labels, too, so that errors over seeds have the draw of labels in them."""
    rates, sizes, begin = [], [], process_time()
    for record in prequential(stream, model, labels, seed=model.random_state):
        if record.n_hidden is not None and record.n_hidden > EXPLODES:
            raise ExplodedError
        if record.chunk > 0:  # the first is not predicted
            rates.append(100 * (record.accuracy or 0.0))
        sizes.append(record.n_hidden or 0)
    return Run(rates, fmean(sizes), process_time() - begin)


def n_runs(name: str, n_seeds: int | None) -> int:
    return SEEDS[name] if n_seeds is None else min(n_seeds, SEEDS[name])


def runs(name: str, make: Callable[[int], DEVDAN], n_seeds: int | None, stream: Stream | None = None) -> list[Run]:
    """One for each seed."""
    return [run(stream or loaded(name), make(FIRST_SEED + seed)) for seed in range(n_runs(name, n_seeds))]


def fresh(name: str, n_seeds: int | None = None) -> list[Run]:
    """The paper's settings with seeds that nothing else has; so many that errors are well below what is to be shown."""
    usual = FRESH[name]
    some = range(FRESH_SEED, FRESH_SEED + min(n_seeds or usual, usual))
    return [run(loaded(name), DEVDAN.paper(random_state=seed)) for seed in some]


def seeds(n_seeds: int | None, usual: int = 20) -> range:
    """Where a table has as many for all streams."""
    return range(FIRST_SEED, FIRST_SEED + min(n_seeds or usual, usual))


def error(values: Sequence[float]) -> float:
    """The standard error of the mean."""
    return stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.nan


def with_error(values: Sequence[float]) -> str:
    return f"{fmean(values):.2f} ± {error(values):.2f}"


def signed(value: float) -> str:
    return f"{value:+.2f}".replace("-", "−")


def star(ours: Sequence[float], theirs: Sequence[float]) -> str:
    """A star where two means differ by more than a few standard errors of their difference."""
    gap, spread = fmean(ours) - fmean(theirs), math.hypot(error(ours), error(theirs))
    return "*" if abs(gap) > SURE * spread else ""


def difference(ours: Sequence[float], theirs: Sequence[float]) -> str:
    return signed(fmean(ours) - fmean(theirs)) + star(ours, theirs)


def size(found: Sequence[Run]) -> float:
    return fmean(one.n_hidden for one in found)


# --- Choices -------------------------------------------------------------------------------------------------------


def in_words(numbers: Sequence[int]) -> str:
    return ", ".join(f"{number} on {name}" for number, name in zip(numbers, STREAMS, strict=True))


def reached(found: dict[str, list[Run]]) -> list[str]:
    """Our rates by stream: with hidden units, and the share of seeds that reach the paper's."""
    cells = []
    for name, several in found.items():
        paper = published(name, "CR", "DEVDAN").mean
        rates, sizes = [one.rate for one in several], [one.n_hidden for one in several]
        share = sum(rate >= paper for rate in rates) / len(rates)
        cells.append(
            f"**{with_error(rates)}** ({fmean(sizes):.0f}: {min(sizes):.0f}–{max(sizes):.0f}), {100 * share:.0f} %"
        )
    return cells


def choices(n_seeds: int | None) -> str:
    """CR and hidden units of the paper's settings, and what each choice is worth."""
    base = {name: runs(name, lambda seed: DEVDAN.paper(random_state=seed), n_seeds) for name in STREAMS}
    others = {name: fresh(name, n_seeds) for name in STREAMS}
    theirs = [published(name, "CR", "DEVDAN").mean for name in STREAMS]
    sizes = [published(name, "HN", "DEVDAN").mean for name in STREAMS]
    lines = [
        f"CR in %, chunks of {CHUNK}, with the standard error over seeds "
        f"({in_words([len(base[name]) for name in STREAMS])}), the mean number of hidden units in brackets (over "
        "seeds: from the fewest to the most), and the share of seeds at or above the published rate. Fresh seeds "
        f"({in_words([len(others[name]) for name in STREAMS])}) are in no other row. Below, differences when one "
        f"choice is changed; a star marks those beyond {SURE} standard errors of the difference. "
        "`python benchmarks/deviations.py choices --write` wrote this table.",
        "",
        *head("choice", STREAMS),
        row("the paper", [f"{rate:.2f} ({n:g})" for rate, n in zip(theirs, sizes, strict=True)]),
        row("`DEVDAN.paper()`", reached(base)),
        row("the same, fresh seeds", reached(others)),
    ]

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
    rows, errors = [], []
    for value in RATES:
        cells = []
        for labels in LABELS:
            options = {"learning_rate": value, "annealing": labels}
            means = []
            for share in (FIRST_PART, 1.0):
                by_stream = []
                for name in STREAMS:
                    part = loaded(name).first(int(share * (loaded(name).n_samples or 0)))
                    by_stream.append(
                        [run(part, DEVDAN.paper(random_state=seed, **options)).rate for seed in seeds(n_seeds)]
                    )
                means.append(fmean(map(fmean, by_stream)))
                errors.append(math.hypot(*map(error, by_stream)) / len(STREAMS))
            cells.append(" / ".join(f"{mean:.2f}" for mean in means))
        rows.append(row(f"{value:g}", cells))
    lines = [
        f"Mean CR in % over {', '.join(STREAMS)} and {len(seeds(n_seeds))} seeds, the same for all; on the first "
        f"{100 * FIRST_PART:.0f} % of each stream / on all of it. Standard errors are at most {max(errors[::2]):.2f} / "
        f"{max(errors[1::2]):.2f}. `python benchmarks/deviations.py rate --write` wrote this table.",
        "",
        *head("learning rate", [f"annealing {labels:g}" for labels in LABELS]),
        *rows,
    ]
    return "\n".join(lines) + "\n"


# --- Whether it freezes --------------------------------------------------------------------------------------------

COPIES = 5


def of_copies(options: dict[str, Any], n_seeds: int) -> list[list[float]]:
    """The rates on each of several copies of SEA, one after the other, by copy and seed."""
    stream = loaded("sea")
    X, y = (np.concatenate(parts) for parts in zip(*stream, strict=True))
    long = replace(stream, blocks=lambda: ((X, y) for _ in range(COPIES)), n_samples=COPIES * len(X))
    found = [run(long, DEVDAN.paper(random_state=seed, **options)) for seed in seeds(n_seeds)]
    parts = np.array([np.array_split([math.nan, *one.rates], COPIES) for one in found])
    means: list[list[float]] = np.nanmean(parts, axis=2).T.tolist()  # the first chunk is not predicted
    return means


def lasting(n_seeds: int | None) -> str:
    """Whether a falling rate freezes."""
    lines = [
        f"CR in % of each of {COPIES} copies of SEA, one after the other, mean of {len(seeds(n_seeds, 10))} seeds ± "
        "standard error. `python benchmarks/deviations.py lasting --write` wrote this table.",
        "",
        *head("learning rate", [f"copy {copy + 1}" for copy in range(COPIES)]),
    ]
    for title, options in (("falling", {}), ("constant, 0.015", CONSTANT)):
        lines.append(row(title, list(map(with_error, of_copies(options, len(seeds(n_seeds, 10)))))))
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


def prepared() -> dict[str, Stream]:
    """KDD Cup's inputs in several ways."""
    raw = loaded("kddcup", False)
    return {
        "scaled over the whole stream": loaded("kddcup"),
        "scaled by chunk": by_chunk(raw),
        "logarithms, scaled over the whole stream": logarithms(raw).scaled(),
        "logarithms, scaled by chunk": by_chunk(logarithms(raw)),
    }


def preparation(n_seeds: int | None) -> str:
    """KDD Cup, prepared in several ways."""
    models: dict[str, dict[str, Any]] = {
        "`DEVDAN.paper()`": {},
        "constant rate": CONSTANT,
        "AE": {**FIXED, "masking": 0.0},
    }
    theirs = " and ".join(f"{published('kddcup', 'CR', name).mean} ({name})" for name in ("DEVDAN", "AE"))
    lines = [
        f"CR in % on KDD Cup 10 % (shuffled), mean of {n_runs('kddcup', n_seeds)} seeds ± standard error; in brackets "
        f"the deviation over chunks and the mean number of hidden units. The paper has {theirs}. "
        "`python benchmarks/deviations.py preparation --write` wrote this table.",
        "",
        *head("inputs", models),
    ]
    for title, stream in prepared().items():
        cells = []
        for options in models.values():
            found = runs(
                "kddcup", lambda seed, options=options: DEVDAN.paper(random_state=seed, **options), n_seeds, stream
            )
            spread = fmean(float(np.std(one.rates)) for one in found)
            cells.append(f"{with_error([one.rate for one in found])} ({spread:.2f}; {size(found):.0f})")
        lines.append(row(title, cells))
    return "\n".join(lines) + "\n"


def scaling(n_seeds: int | None) -> str:
    """The other streams, scaled by chunk."""
    lines = [
        f"CR in %, mean of {len(seeds(n_seeds))} seeds ± deviation over chunks. "
        "`python benchmarks/deviations.py scaling --write` wrote this table.",
        "",
        *head("inputs", STREAMS),
    ]
    theirs = [published(name, "CR", "DEVDAN") for name in STREAMS]
    lines.append(row("the paper", [f"{one.mean:.2f} ± {one.std:.2f}" for one in theirs]))
    for title, prepare in (
        ("scaled over the whole stream", loaded),
        ("scaled by chunk", lambda name: by_chunk(loaded(name, False))),
    ):
        cells = []
        for name in STREAMS:
            found = [run(prepare(name), DEVDAN.paper(random_state=seed)) for seed in seeds(n_seeds)]
            spread = fmean(float(np.std(one.rates)) for one in found)
            cells.append(f"{fmean(one.rate for one in found):.2f} ± {spread:.2f}")
        lines.append(row(title, cells))
    return "\n".join(lines) + "\n"


# --- The paper's claims --------------------------------------------------------------------------------------------

FIXED: dict[str, Any] = {"n_hidden": 10, "grow": False, "prune": False}


class Situation(NamedTuple):
    """Which labels arrive, and which of the chunks count: so many at the beginning, or those near drifts, or all."""

    labels: str = "all"
    n_chunks: int | None = None
    near_drifts: bool = False


SITUATIONS = {
    "all labels": Situation(),
    "chunks 2 and 3": Situation(n_chunks=2),  # the first is not predicted
    "chunks 2 to 6": Situation(n_chunks=5),
    "chunks 2 to 11": Situation(n_chunks=10),
    "after drifts": Situation(near_drifts=True),
    "10 % of the labels": Situation("fraction:0.1"),
    "10 % of the labels, after drifts": Situation("fraction:0.1", near_drifts=True),
    "5 % of the labels": Situation("fraction:0.05"),
    "1 % of the labels": Situation("fraction:0.01"),
    "labels 1,000 samples late": Situation("delay:1000"),
    "labels 1,000 samples late, after drifts": Situation("delay:1000", near_drifts=True),
    "labels 5,000 samples late": Situation("delay:5000"),
    "labels of the first 1,000 samples only": Situation("warmup:1000"),
}
OTHERS: dict[str, dict[str, Any]] = {
    "AE": {**FIXED, "masking": 0.0},
    "DAE": FIXED,
    "without the generative phase": {"generative": False},
    "10 units without it": {**FIXED, "generative": False},
}
EARLY, N_EARLY = 10, 100  # chunks, and seeds: the beginning costs little, and depends on the seed more
NEAR = {"sea": (0, 2500), "hyperplane": (-10_000, 10_000)}  # samples from a drift; SEA's are abrupt


def near_drifts(name: str) -> list[int]:
    """The chunks near the stream's known drifts."""
    begin, end = NEAR[name]
    drifts = open_stream(name, data=paper_streams.FOLDER).drifts or ()
    return [chunk for drift in drifts for chunk in range((drift + begin) // CHUNK, (drift + end) // CHUNK)]


@cache
def found(name: str, labels: str, is_early: bool, n_seeds: int | None, **options: Any) -> list[Run]:
    """Runs of the paper's settings with these options."""
    stream = loaded(name).first(CHUNK * (EARLY + 1)) if is_early else loaded(name)
    usual = N_EARLY if is_early else 20
    return [run(stream, DEVDAN.paper(random_state=seed, **options), labels) for seed in seeds(n_seeds, usual)]


def counted(name: str, situation: Situation, n_seeds: int | None, **options: Any) -> list[float]:
    """For each seed, the rate on the chunks that count."""
    several = found(name, situation.labels, situation.n_chunks is not None, n_seeds, **options)
    if situation.near_drifts:
        return [fmean(one.rates[chunk - 1] for chunk in near_drifts(name)) for one in several]
    return [fmean(one.rates[: situation.n_chunks]) for one in several]


def comparison(n_seeds: int | None, command: str, situations: Iterable[str], **same: Any) -> str:
    """What DEVDAN is ahead of others, in several situations, all with the same options."""
    theirs = " and ".join(
        " ".join(signed(published(name, "CR", "DEVDAN").mean - published(name, "CR", kind).mean) for name in STREAMS)
        + f" ({kind})"
        for kind in ("AE", "DAE")
    )
    lines = [
        f"CR of `DEVDAN.paper()` minus that of the other, in points, by {', '.join(STREAMS)}; both with the same rates "
        f"and labels; {len(seeds(n_seeds))} seeds, {len(seeds(n_seeds, N_EARLY))} where only the first chunks count. A "
        f"star marks differences beyond {SURE} standard errors of the difference. After drifts: the five "
        f"chunks from each of SEA's drifts on, and Hyperplane's samples 40,000 to 60,000. The paper has {theirs}. "
        f"`python benchmarks/deviations.py {command} --write` wrote this table.",
        "",
        *head("situation", OTHERS),
    ]
    for title in situations:
        situation = SITUATIONS[title]
        names = NEAR if situation.near_drifts else STREAMS
        cells = []
        for other in OTHERS.values():
            ahead = [
                difference(
                    counted(name, situation, n_seeds, **same), counted(name, situation, n_seeds, **same, **other)
                )
                for name in names
            ]
            cells.append(" ".join(ahead))
        lines.append(row(title, cells))
    return "\n".join(lines) + "\n"


def claims(n_seeds: int | None) -> str:
    return comparison(n_seeds, "claims", SITUATIONS)


SIMILAR = ("5 % of the labels", "labels 1,000 samples late, after drifts", "labels 5,000 samples late")  # to others


def constant(n_seeds: int | None) -> str:
    return comparison(n_seeds, "constant", [title for title in SITUATIONS if title not in SIMILAR], **CONSTANT)


def sizes(n_seeds: int | None) -> str:
    """DEVDAN beside layers of other sizes, with all labels and with few."""
    models: dict[str, dict[str, Any]] = {
        "`DEVDAN.paper()`": {},
        "… from 10 units on": {"n_hidden": 10},
        **{f"AE of {n} units": {**FIXED, "n_hidden": n, "masking": 0.0} for n in (5, 10, 20, 40)},
    }
    lines = [
        f"CR in %, mean of {len(seeds(n_seeds))} seeds ± standard error, in brackets the mean number of hidden units; "
        f"a star marks what is more than {SURE} standard errors of the difference from `DEVDAN.paper()`. "
        "`python benchmarks/deviations.py sizes --write` wrote this table.",
        "",
        *head("", STREAMS),
    ]
    for title in ("all labels", "1 % of the labels"):
        labels = SITUATIONS[title].labels
        base = {name: [one.rate for one in found(name, labels, False, n_seeds)] for name in STREAMS}
        for model, options in models.items():
            cells = []
            for name in STREAMS:
                several = found(name, labels, False, n_seeds, **options)
                rates = [one.rate for one in several]
                cells.append(f"{with_error(rates)}{star(rates, base[name])} ({size(several):.0f})")
            lines.append(row(f"{model}, {title}", cells))
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


def ensemble(seed: int, **options: Any) -> DEVDANEnsemble:
    return DEVDANEnsemble(estimator=DEVDAN(**options), n_jobs=1, random_state=seed)


def spread(several: Sequence[Sequence[float]]) -> float:
    """The standard error of the mean over streams."""
    return math.hypot(*map(error, several)) / len(several)


def mean_gap(ours: Sequence[Sequence[float]], theirs: Sequence[Sequence[float]]) -> str:
    """The mean difference over streams and its standard error, with a star if it is beyond a few of these.

    It is taken seed by seed: runs with the same seed have the same labels, and these may matter more than what differs.
    """
    gaps = [[a - b for a, b in zip(*pair, strict=True)] for pair in zip(ours, theirs, strict=True)]
    gap, standard_error = fmean(map(fmean, gaps)), spread(gaps)
    return f"{signed(gap)} ± {standard_error:.2f}{'*' if abs(gap) > SURE * standard_error else ''}"


def one(seed: int, **options: Any) -> DEVDAN:
    return DEVDAN(random_state=seed, **options)


def quick(seed: int, **options: Any) -> DEVDAN:
    return DEVDAN(rehearse=0, random_state=seed, **options)


DEFAULTS = {"`DEVDAN()`": one, "`DEVDAN(rehearse=0)`": quick, "`DEVDANEnsemble()`": ensemble}


def rates_with(make: Callable[..., Any], streams: list[Stream], labels: str, some: range, **options: Any) -> Any:
    """The rate of each seed, by stream."""
    return [[run(stream, make(seed, **options), labels).rate for seed in some] for stream in streams]


N_TIMED = 5000  # samples of each stream


def phase_costs(n_seeds: int | None) -> str:
    """The generative phase's share of the CPU time."""
    streams = [loaded(name, False).first(N_TIMED) for name in STREAMS]
    shares = []
    for model, make in DEFAULTS.items():
        with_it, without = (
            sum(
                min(run(stream, make(seed, generative=phase)).seconds for seed in seeds(n_seeds, 3))
                for stream in streams  # the fastest run was disturbed least
            )
            for phase in (True, False)
        )
        shares.append(f"{100 * (1 - without / with_it):.0f} % ({model})")
    return f"Of the CPU time, with all labels in chunks of {CHUNK}, the generative phase takes {', '.join(shares)}."


def defaults(n_seeds: int | None) -> str:
    """What the generative phase is worth in the defaults, and what it costs."""
    groups = {"the paper's four": [loaded(name, False) for name in STREAMS], "ten real": list(map(real, REAL))}
    models = list(DEFAULTS)[:2]
    some = seeds(n_seeds, 10)
    lines = [
        "CR with the generative phase minus CR without it, in points ± standard error, mean over the streams "
        f"(the first {N_FIRST:,} samples of the real ones: {', '.join(REAL)}) and {len(some)} seeds, also of the "
        f"labels that arrive; a star marks what is beyond {SURE} standard errors. {phase_costs(n_seeds)} "
        "`python benchmarks/deviations.py defaults --write` wrote this table.",
        "",
        *head("labels", [f"{model}, {group}" for model in models for group in groups]),
    ]
    for title, labels in POLICIES.items():
        cells = []
        for model in models:
            for group in groups.values():
                on, off = (
                    rates_with(DEFAULTS[model], group, labels, some, generative=phase) for phase in (True, False)
                )
                cells.append(mean_gap(on, off))
        lines.append(row(title, cells))
    return "\n".join(lines) + "\n"


RANDOM_OUTPUTS = "random output weights for new classes and for units of the generative phase"  # not zero
CHANGED: dict[str, dict[str, Any]] = {
    "nothing": {},
    "`generative=False`": {"generative": False},
    "`generative_learning_rate=0.0001`": {"generative_learning_rate": 0.0001},
    "`generative_learning_rate=0.001`": {"generative_learning_rate": 0.001},
    "`annealing=5000`": {"annealing": 5000.0},
    RANDOM_OUTPUTS: {},
}


def changes(
    n_seeds: int | None, command: str, model: str, *, usual: int, n_chunks: int, n_single: int, n_scarce: int
) -> str:
    """What a falling rate, the generative phase, its rate and zero output weights are worth in a model.

    Streams have at most so many samples in chunks, one by one, and one by one with few or late labels.
    """
    four = [loaded(name, False).first(n_chunks) for name in STREAMS]
    single, scarce = (
        [loaded(name, False).first(n).in_chunks_of(1) for name in ("electricity", "weather")]
        for n in (n_single, n_scarce)
    )
    groups: dict[str, tuple[list[Stream], str]] = {
        "the paper's four": (four, "all"),
        "10 % of the labels": (four, "fraction:0.1"),
        "labels 1,000 late": (four, "delay:1000"),
        "one by one": (single, "all"),
        "one by one, 10 %": (scarce, "fraction:0.1"),
        "one by one, 1,000 late": (scarce, "delay:1000"),
        "ten real": (list(map(real, REAL)), "all"),
    }
    rows, base = [], {}
    for title, options in CHANGED.items():
        if title in KERNEL:
            kernel_is(altered(KERNEL[title]))
        cells = []
        for group, (streams, labels) in groups.items():
            some = seeds(n_seeds, usual if streams[0].chunk > 1 else 3)
            rates = rates_with(DEFAULTS[model], streams, labels, some, **options)
            if group not in base:
                base[group] = rates
                cells.append(f"{fmean(map(fmean, rates)):.2f} ± {spread(rates):.2f}")
            else:
                cells.append(mean_gap(rates, base[group]))
        rows.append(row(title, cells))
    kernel_is(kernel)
    lines = [
        f"CR of {model} in %, mean over the streams and {len(seeds(n_seeds, usual))} seeds ± standard error: at most "
        f"the first {n_chunks:,} samples of {', '.join(STREAMS)}, {N_FIRST:,} of the real ones, and, with "
        f"{len(seeds(n_seeds, 3))} seeds, {n_single:,} of electricity and weather one by one, {n_scarce:,} where "
        "labels are few or late. Below, differences when one thing is changed; a star marks those beyond "
        f"{SURE} standard errors. "
        f"`python benchmarks/deviations.py {command} --write` wrote this table.",
        "",
        *head("changed", groups),
        *rows,
    ]
    return "\n".join(lines) + "\n"


def annealing(n_seeds: int | None) -> str:
    return changes(n_seeds, "annealing", "`DEVDAN()`", usual=5, n_chunks=120_000, n_single=50_000, n_scarce=10_000)


def elsewhere(n_seeds: int | None) -> str:
    return changes(n_seeds, "elsewhere", "`DEVDANEnsemble()`", usual=3, n_chunks=20_000, n_single=5000, n_scarce=5000)


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
    "preparation": (preparation, "deviations.md"),
    "rate": (rate, "experiments.md"),
    "lasting": (lasting, "experiments.md"),
    "scaling": (scaling, "experiments.md"),
    "claims": (claims, "claims.md"),
    "constant": (constant, "claims.md"),
    "sizes": (sizes, "claims.md"),
    "defaults": (defaults, "claims.md"),
    "annealing": (annealing, "experiments.md"),
    "elsewhere": (elsewhere, "experiments.md"),
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
