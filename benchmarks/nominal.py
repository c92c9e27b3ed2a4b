"""Tables with text and dates: the model's encoding against codes in order of appearance, for docs/your-table.md.

`python benchmarks/nominal.py` prints the accuracies and saves them in benchmarks/results/nominal.json;
benchmarks/page.py writes the pages. KDD Cup is read from `original/kddcup.data_10_percent.gz` in the data folder
(DEVDAN_DATA), and left out where that is missing. `--example` writes docs/orders.csv, the table of the README.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import fmean, stdev

import numpy as np
import pandas as pd

from devdan import DEVDAN, DEVDANEnsemble
from devdan.evaluation import Summary, prequential
from devdan.streams import Stream, entries, open_stream

EXAMPLE = Path(__file__).parents[1] / "docs" / "orders.csv"
RESULTS = Path(__file__).parent / "results" / "nominal.json"
SEEDS = range(5)
MODELS: dict[str, Callable[[int], object]] = {
    "DEVDAN": lambda seed: DEVDAN(random_state=seed),
    "DEVDANEnsemble": lambda seed: DEVDANEnsemble(random_state=seed),
}


def flights(n: int, seed: int) -> pd.DataFrame:
    """Six columns, two of them nominal: what counts is which airport and which carrier, less so the numbers."""
    random = np.random.default_rng(seed)
    airports, carriers = np.array([f"A{k:02}" for k in range(20)]), np.array([f"C{k}" for k in range(8)])
    worth = random.normal(size=20), random.normal(size=8)
    airport, carrier, numbers = random.integers(20, size=n), random.integers(8, size=n), random.normal(size=(n, 4))
    score = 1.5 * worth[0][airport] + 1.2 * worth[1][carrier] + numbers @ [0.8, -0.6, 0.3, 0.0]
    frame = pd.DataFrame(numbers, columns=["distance", "wind", "load", "noise"])
    frame["airport"], frame["carrier"] = airports[airport], carriers[carrier]
    frame["label"] = np.where(score + 0.7 * random.normal(size=n) > 0, "late", "on time")
    return frame


def shop(n: int, seed: int) -> pd.DataFrame:
    """Orders by the hour: rush hours and weekends, cities and plans, and an id; half way, two plans change places."""
    random = np.random.default_rng(seed)
    times = pd.Timestamp("2024-03-01") + pd.to_timedelta(np.sort(random.integers(0, 90 * 24 * 60, size=n)), unit="min")
    cities = np.array([f"city {k}" for k in range(30)])
    worth, city = random.normal(size=30), np.minimum(random.geometric(0.12, size=n) - 1, 29)
    plan = random.choice(["free", "basic", "gold"], size=n)
    swapped = np.where((plan == "free") & (np.arange(n) > n // 2), 1.2, np.where(plan == "gold", 1.2, -0.8))
    hour, weekend = times.hour.to_numpy(), times.dayofweek.to_numpy() >= 5
    amount = random.lognormal(3, 1, size=n)
    rush = ((hour >= 17) & (hour < 21)) * 1.5 + weekend * 0.8
    score = worth[city] + swapped + rush + 0.5 * (np.log(amount) - 3) - 0.6
    return pd.DataFrame({
        "order": [f"o-{seed}-{k:06}" for k in range(n)], "row": np.arange(n), "when": times,
        "city": cities[city], "plan": plan, "amount": amount.round(2), "gift": random.random(n) < 0.2,
        "label": np.where(score + random.normal(size=n) * 0.7 > 0, "returns", "keeps"),
    })  # fmt: skip


def example() -> pd.DataFrame:
    """The table of the README: orders of a shop, some cells empty, and whether they were returned."""
    random = np.random.default_rng(7)
    table = shop(2_000, 7).drop(columns="row")
    table["returned"] = np.where(table.pop("label") == "returns", "yes", "no")
    table["amount"] = [f"${amount:,.2f}" for amount in table["amount"]]
    for name in ("city", "amount"):
        table.loc[random.random(len(table)) < 0.02, name] = None
    return table


def devices(n: int, seed: int) -> pd.DataFrame:
    """Readings of 400 kinds of devices, some common and most rare, each with its own usual level."""
    random = np.random.default_rng(seed)
    kind = np.minimum(random.zipf(1.4, size=n) - 1, 399)
    level, firmware = random.normal(size=400), random.choice(["1.0", "1.1", "2.0-beta"], size=n)
    reading = random.normal(size=n)
    score = np.abs(reading - level[kind]) - 1.0 + 0.8 * (firmware == "2.0-beta")
    return pd.DataFrame({
        "device": [f"d{k}" for k in kind], "firmware": firmware, "reading": reading, "battery": random.random(n),
        "label": score + 0.3 * random.normal(size=n) > 0,
    })  # fmt: skip


def kddcup(n: int, seed: int) -> Stream:
    """The original file of KDD Cup 1999, shuffled: protocol, service and flag are texts."""
    from devdan.streams.catalogue import KDD_FEATURES  # noqa: PLC0415

    path = entries.data_folder(None) / "original" / "kddcup.data_10_percent.gz"
    names = [*KDD_FEATURES, "label"]
    rows = pd.read_csv(path, names=names).sample(n, random_state=seed)
    rows["label"] = np.where(rows["label"] == "normal.", "normal", "attack")
    return open_stream(rows, target="label", chunk=500)


def of_frame(make: Callable[[int, int], pd.DataFrame]) -> Callable[[int, int], Stream]:
    return lambda n, seed: open_stream(make(n, seed), target="label", chunk=100)


STREAMS: dict[str, tuple[Callable[[int, int], Stream], int]] = {
    "flights, 3,000 rows": (of_frame(flights), 3_000),
    "flights, 10,000 rows": (of_frame(flights), 10_000),
    "shop": (of_frame(shop), 20_000),
    "devices": (of_frame(devices), 20_000),
    "KDD Cup, original": (kddcup, 50_000),
}


def rate(stream: Stream, model: object) -> float:
    """The mean accuracy of the chunks from the second on, in per cent."""
    summary = Summary(prequential(stream, model))
    return float(summary.figures()["cr_mean"])


def results() -> list[list[str]]:
    rows = []
    for name, (make, n) in STREAMS.items():
        if make is kddcup and not (entries.data_folder(None) / "original" / "kddcup.data_10_percent.gz").exists():
            print(f"{name}: not on this machine", file=sys.stderr)
            continue
        for kind, build in MODELS.items():
            cells = []
            for coded in (True, False):
                rates = []
                for seed in SEEDS:
                    stream = make(n, seed)
                    rates.append(rate(stream.coded() if coded else stream, build(seed)))
                cells.append(f"{fmean(rates):.1f} ± {stdev(rates):.1f}")
            rows.append([name, kind, *cells])
            print(rows[-1], file=sys.stderr)
    return rows


def table(rows: list[list[str]]) -> str:
    lines = [
        "| stream | model | codes | encoded |",
        "|---|---|---|---|",
        *("| " + " | ".join(row) + " |" for row in rows),
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--example", action="store_true")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    if chosen.example:
        example().to_csv(EXAMPLE, index=False)
        return
    rows = results()
    print(table(rows))
    RESULTS.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
