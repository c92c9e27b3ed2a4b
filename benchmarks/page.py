"""Writes docs/benchmarks.md from the results that are kept: `python benchmarks/page.py`.

The results come from `make table` (benchmarks/results/table) and `python benchmarks/scale.py` (results/scale.json).
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import scale

from devdan.report import markdown_sections, write_tables

ROOT = Path(__file__).parents[1]
TABLE = Path(__file__).parent / "results" / "table"
SCARCE = Path(__file__).parent / "results" / "scarce"
PAGE = ROOT / "docs" / "benchmarks.md"

PROTOCOL = """\
Chunks of 500, each predicted first, then learned from, once. CR is the mean of the chunks' accuracies from the second
chunk on, ± their deviation, averaged over the seeds; HN and NoP are the mean number of hidden units and parameters; ET
is the time to learn and predict. KDD Cup is shuffled, as in the paper. `devdan-paper`, `ae`, `dae` and the ablations
get inputs scaled to [0, 1] over the whole stream, as in the paper's experiments; `devdan` and the peers scale online,
or need no scaling.
"""

ELECTRICITY = """\
## Why Electricity falls short of the paper

With the paper's settings, the other four streams at hand come within one point of the paper's CR. What makes the
difference on Electricity is known in part: the paper starts a new unit's weights at W = -e with e = x - z, which drives
the reconstruction away from the input; this package takes that for a slip and uses e = z - x. Taken literally, the
network grows two to three times as large and Electricity gains most of a point: see the row on the sign in
[deviations](deviations.md#measured), from `python benchmarks/deviations.py`. The rest is not explained: the paper gives
one run, and this stream scatters from seed to seed.
"""


def main() -> None:
    write_tables(TABLE)
    write_tables(SCARCE)
    parts, scarce = markdown_sections(TABLE), markdown_sections(SCARCE)
    shutil.copy(TABLE / "ranks.svg", PAGE.parent / "benchmarks-ranks.svg")
    shutil.copy(SCARCE / "scarcity.svg", PAGE.parent / "benchmarks-scarcity.svg")
    at_scale = json.loads(scale.RESULTS.read_text())
    text = [
        "# Benchmarks",
        "",
        "Written by `python benchmarks/page.py` from `benchmarks/results`; `make table` runs what is missing there.",
        "",
        PROTOCOL,
        parts["progress"],
        "## Table 1, and what users would pick instead",
        "",
        parts["table"],
        ELECTRICITY,
        "## Ranks",
        "",
        "![Average ranks](benchmarks-ranks.svg)",
        "",
        parts["ranks"],
        "## When labels are scarce or late",
        "",
        "![Accuracy against the share of labels](benchmarks-scarcity.svg)",
        "",
        scarce["progress"],
        scarce["scarcity"],
        "## Speed at the paper's scale",
        "",
        "`python benchmarks/scale.py`: stand-ins of the two largest streams' shape through `devdan run`, from gzipped "
        "CSV. Reading is the time the model waits for the reader, which works ahead in a thread of its own.",
        "",
        scale.markdown(at_scale),
        "## Not run, failed",
        "",
        parts["missing"],
        parts["failures"] + scarce["failures"],
        "## Settings",
        "",
        parts["settings"],
    ]
    PAGE.write_text("\n".join(text).rstrip() + "\n")
    print(PAGE.relative_to(ROOT))


if __name__ == "__main__":
    main()
