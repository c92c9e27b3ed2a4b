"""A fleet against dicts of models, for docs/benchmarks-size.md, docs/many-streams.md and docs/fleet.svg.

Time per row, memory per key, keys beyond memory, and the worth of its prior. `python benchmarks/fleet.py --write`
measures, every comparison within one process, saves the figures in benchmarks/results/fleet.json and writes the pages.
`--only prior` measures one part again, `--again` writes the saved figures, and `--quick` tries everything and saves
nothing. Times of one core are those of the processor, so that other work on the machine disturbs them less; of several
cores, the best of many.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fleet_prior
import numpy as np
from measuring import machine, put

from devdan import DEVDAN, DEVDANFleet
from devdan.report.chart import Plot, ticks
from devdan.report.render import caption, framed, placed
from devdan.report.words import short

DOCS = Path(__file__).parents[1] / "docs"
RESULTS = Path(__file__).parent / "results" / "fleet.json"
PORTION = 10_000
SIX_UNITS = DEVDAN(rehearse=0, n_hidden=6, grow=False, prune=False)
Portion = tuple[list[str], np.ndarray, np.ndarray]


def portions(n_keys: int, n_features: int = 10, zipf: bool = False, seed: int = 0) -> Iterator[Portion]:
    """Rows of keys in random order, of two classes: a rule that differs a little from key to key."""
    random = np.random.default_rng(seed)
    names = np.array([f"device {key}" for key in range(n_keys)], dtype=object)
    rule, turned = random.normal(size=n_features), random.normal(size=(997, n_features))
    often = np.cumsum(1 / np.arange(1, n_keys + 1)) if zipf else None
    places = random.permutation(n_keys)
    while True:
        drawn = random.integers(n_keys, size=PORTION)
        if often is not None:
            drawn = places[np.searchsorted(often, random.random(PORTION) * often[-1])]
        X = random.normal(size=(PORTION, n_features))
        y = (X * (rule + 0.5 * turned[drawn % 997])).sum(axis=1) > 0
        yield names[drawn].tolist(), X, y.astype(int)


def everyone(fleet: DEVDANFleet, n_keys: int, n_features: int) -> float:
    """Let each key have a row; microseconds for each."""
    random = np.random.default_rng(1)
    begin = time.process_time()
    for start in range(0, n_keys, PORTION):
        keys = [f"device {key}" for key in range(start, min(start + PORTION, n_keys))]
        X = random.normal(size=(len(keys), n_features))
        fleet.partial_fit(keys, X, (X[:, 0] > 0).astype(int))
    return 1e6 * (time.process_time() - begin) / n_keys


def step(fleet: DEVDANFleet, portion: Portion) -> None:
    keys, X, y = portion
    if len(fleet) > 0:
        fleet.predict(keys, X)
    fleet.partial_fit(keys, X, y)


def best(work: Callable[[Portion], object], rows: list[Portion], clock: Callable[[], float]) -> float:
    """Microseconds per row of the fastest portion: the others were disturbed."""
    times = []
    for portion in rows:
        begin = clock()
        work(portion)
        times.append(clock() - begin)
    return 1e6 * min(times) / PORTION


def take(stream: Iterator[Portion], n: int) -> list[Portion]:
    return [next(stream) for _ in range(n)]


# --- Measurements, each in a process of its own ---------------------------------------------------------------------


def against(quick: bool) -> dict[str, Any]:
    """Fleets and dicts of River classifiers, 10,000 keys that have had some 30 rows each."""
    from river import linear_model, preprocessing  # noqa: PLC0415 (only here)

    from devdan.river import DEVDANClassifier  # noqa: PLC0415

    n_keys, n_warm, n_rounds = (1_000, 3, 2) if quick else (10_000, 30, 8)
    names = [str(feature) for feature in range(10)]
    fleets = {
        "fleet": DEVDANFleet(n_jobs=1, random_state=0),
        "fleet without a prior": DEVDANFleet(prior=False, n_jobs=1, random_state=0),
    }
    makers: dict[str, Callable[[], Any]] = {
        "dict of `devdan.river.DEVDANClassifier`": lambda: DEVDANClassifier(rehearse=0, numeric=names, seed=1),
        "dict of River's `LogisticRegression` after `StandardScaler`": lambda: (
            preprocessing.StandardScaler() | linear_model.LogisticRegression()
        ),
    }
    dicts: dict[str, dict[str, Any]] = {name: {} for name in makers}

    def one_by_one(name: str, portion: Portion) -> None:
        models, make = dicts[name], makers[name]
        for key, x, label in zip(*portion, strict=True):
            model = models.get(key)
            if model is None:
                model = models[key] = make()
            model.predict_one(x)
            model.learn_one(x, label)

    def as_dicts(portion: Portion) -> Any:
        return portion[0], [dict(zip(names, row, strict=True)) for row in portion[1].tolist()], portion[2].tolist()

    stream = portions(n_keys)
    for portion in take(stream, n_warm):
        plain = as_dicts(portion)
        for fleet in fleets.values():
            step(fleet, portion)
        for name in dicts:
            one_by_one(name, plain)
    found: dict[str, list[float]] = {name: [] for name in (*fleets, *dicts)}
    for portion in take(stream, n_rounds):  # in turns, so that all are disturbed alike
        plain = as_dicts(portion)
        for name, fleet in fleets.items():
            found[name].append(best(lambda rows, fleet=fleet: step(fleet, rows), [portion], time.process_time))
        for name in dicts:
            found[name].append(best(lambda rows, name=name: one_by_one(name, rows), [plain], time.process_time))
    times = {name: float(np.median(values)) for name, values in found.items()}
    units = fleets["fleet"].summary()["units"].to_numpy()
    return {"n_keys": n_keys, "times": times, "units": float(units.mean())}


def cores(n_keys: int, n_features: int, quick: bool, prior: bool = True) -> dict[str, Any]:
    """The same rows with one thread and with as many as there are cores; the best of several portions each."""
    fleets = {n_jobs: DEVDANFleet(prior=prior, n_jobs=n_jobs, random_state=0) for n_jobs in (1, os.cpu_count() or 1)}
    stream = portions(n_keys, n_features)
    for portion in take(stream, 2 if quick else 20):
        for fleet in fleets.values():
            step(fleet, portion)
    times: dict[int, list[float]] = {n_jobs: [] for n_jobs in fleets}
    for portion in take(stream, 4 if quick else 40):
        for n_jobs, fleet in fleets.items():
            times[n_jobs].append(best(lambda rows, fleet=fleet: step(fleet, rows), [portion], time.perf_counter))
    return {"n_keys": n_keys, "times": {str(n_jobs): min(values) for n_jobs, values in times.items()}}


def size(n_keys: int, n_features: int, quick: bool) -> dict[str, Any]:
    """Networks of six hidden units that do not grow, so that only the number of keys or features differs."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    fleet = DEVDANFleet(SIX_UNITS, n_jobs=1, random_state=0)
    each = everyone(fleet, n_keys, n_features)
    rows = take(portions(n_keys, n_features), 4 if quick else 20)
    spent = best(lambda portion: step(fleet, portion), rows, time.process_time)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    slot = int(fleet._networks.slots.in_use()[0])
    kilobytes = fleet._networks.slots._words[slot].nbytes / 1e3
    return {
        "n_keys": n_keys, "n_features": n_features, "new": each, "time": spent, "network_kilobytes": kilobytes,
        "kilobytes": (peak - before) / n_keys, "peak_megabytes": peak / 1e3,
    }  # fmt: skip


def stored(n_keys: int, limit: int, zipf: bool, quick: bool) -> dict[str, Any]:
    """Keys beyond memory: time as one waits for it, memory and disk."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder:
        path = Path(folder) / "fleet.db"
        fleet = DEVDANFleet(
            SIX_UNITS,
            store=path,
            max_in_memory=limit,
            n_jobs=1,
            random_state=0,
        )
        begin = time.perf_counter()
        everyone(fleet, n_keys, 10)
        new = 1e6 * (time.perf_counter() - begin) / n_keys
        stream = portions(n_keys, zipf=zipf)
        times, known = [], []
        for portion in take(stream, 4 if quick else 40):
            known.append(np.mean(fleet._networks.slots.find(portion[0]) >= 0))
            begin = time.perf_counter()
            step(fleet, portion)
            times.append(time.perf_counter() - begin)
        begin = time.perf_counter()
        fleet.save()
        saved = time.perf_counter() - begin
        fleet.close()
        return {
            "n_keys": n_keys, "limit": limit, "keys": "Zipf" if zipf else "uniform", "new": new,
            "time": 1e6 * float(np.median(times[len(times) // 2 :])) / PORTION,
            "in_memory": float(np.mean(known[-10:])),
            "save_seconds": saved, "gigabytes": path.stat().st_size / 1e9,
            "peak_megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
        }  # fmt: skip


def one_row(quick: bool) -> dict[str, Any]:
    """Microseconds for predict and partial_fit of single rows, a model and a fleet in turns."""
    n, rounds = (300, 3) if quick else (2_000, 15)
    random = np.random.default_rng(0)
    X = random.normal(size=(n, 10))
    y, keys = (X[:, 0] > 0).astype(int), [f"device {k % 100}" for k in range(n)]
    model = DEVDAN(rehearse=0, random_state=0).partial_fit(X, y)
    fleets = {prior: DEVDANFleet(prior=prior, random_state=0).partial_fit(keys, X, y) for prior in (True, False)}

    def alone() -> None:
        for t in range(n):
            model.predict(X[t : t + 1])
            model.partial_fit(X[t : t + 1], y[t : t + 1])

    def among(prior: bool) -> None:
        fleet = fleets[prior]
        for t in range(n):
            fleet.predict(keys[t : t + 1], X[t : t + 1])
            fleet.partial_fit(keys[t : t + 1], X[t : t + 1], y[t : t + 1])

    works = {"DEVDAN": alone, "fleet": lambda: among(True), "fleet without a prior": lambda: among(False)}
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            begin = time.process_time()
            work()
            times[name].append(1e6 * (time.process_time() - begin) / n)
    return {name: min(values) for name, values in times.items()}


MEASURES: dict[str, Callable[..., dict[str, Any]]] = {
    function.__name__: function for function in (against, cores, size, stored, one_row)
}


def measured(name: str, **given: Any) -> dict[str, Any]:
    """The result of a measurement in a process of its own."""
    command = [sys.executable, __file__, "--measure", json.dumps({"name": name, "given": given})]
    print(name, given, file=sys.stderr, flush=True)
    found: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    print("   ", found, file=sys.stderr, flush=True)
    return found


def parts(quick: bool) -> dict[str, Callable[[], Any]]:
    """All measurements."""
    keys = (100, 500, 1_000) if quick else (100, 1_000, 10_000, 100_000, 1_000_000)
    many, limit = (2_000, 500) if quick else (1_000_000, 100_000)
    some = keys[2]
    return {
        "machine": lambda: f"{machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "against": lambda: measured("against", quick=quick),
        "cores": lambda: {
            p: measured("cores", n_keys=some, n_features=10, prior=p == "a prior", quick=quick) for p in PRIORS
        },
        "keys": lambda: [measured("size", n_keys=n, n_features=10, quick=quick) for n in keys],
        "features": lambda: [measured("size", n_keys=some, n_features=n, quick=quick) for n in (3, 10, 30, 100)],
        "stored": lambda: [measured("stored", n_keys=many, limit=limit, zipf=z, quick=quick) for z in (False, True)],
        "one_row": lambda: measured("one_row", quick=quick),
        "prior": lambda: fleet_prior.measure(1 if quick else 3),
    }


PRIORS = ("a prior", "no prior")


# --- The pages and the picture --------------------------------------------------------------------------------------

TIMED = {"machine", "against", "cores", "keys", "features", "stored", "one_row"}  # parts that belong together
PICTURED = {"against", "keys", "prior"}
PRIOR_TEXT = """\
What is right in the first 20, 100 and 500 samples of a key, in %. Keys join one after the other, 150 of them in the
made streams; each row is predicted before it is learned, in portions of 50; what counts are the keys that join after
the first fifth. Means of three seeds.
"""


def write(results: dict[str, Any]) -> None:
    """Write the figures into the pages."""
    put(DOCS / "benchmarks-size.md", "fleet", markdown(results))
    if "prior" in results:
        put(DOCS / "many-streams.md", "prior", fleet_prior.markdown(results["prior"]))
    if results.keys() >= PICTURED:
        (DOCS / "fleet.svg").write_text(picture(results))


def markdown(results: dict[str, Any]) -> str:
    """The section of the benchmarks page, with the parts that were measured."""
    parts = ["By `python benchmarks/fleet.py --write`. How to use a fleet is in [Many streams](many-streams.md)."]
    if results.keys() >= TIMED:
        parts += [
            f"On {results['machine']}: ten features and two classes, rows of keys in random order, portions of 10,000 "
            "rows, each predicted and then learned.",
            "![Time per row against keys, and accuracy by age of a key](fleet.svg)",
            "### Against dicts of models",
            _against(results["against"]) + "\n" + _cores(results["cores"]) + "\n" + _one_row(results["one_row"]),
            "### By keys and features",
            "Networks of six hidden units that do not grow, so that nothing else differs; one core, with a prior. "
            "Measured before networks kept ranges, which take 32 bytes for each feature.",
            _sizes(results["keys"], results["features"]),
            "### Beyond memory",
            _stored(results["stored"], results["keys"][-1]),
        ]
    if "prior" in results:
        parts += ["### What the prior is worth", PRIOR_TEXT, fleet_prior.markdown(results["prior"])]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _against(found: dict[str, Any]) -> str:
    times = found["times"]
    lines = [
        f"{found['n_keys']:,} keys that have had some 30 rows each, one core; the fleet's networks have "
        f"{found['units']:.0f} hidden units on average. Ours in the dict are told that all columns are numbers.",
        "",
        "| | µs per row | times as long as the fleet | as the one without a prior |",
        "|---|---|---|---|",
    ]
    first, second = times["fleet"], times["fleet without a prior"]
    lines += [f"| {n} | {t:.2f} | {t / first:.1f} | {t / second:.1f} |" for n, t in times.items()]
    return "\n".join(lines) + "\n"


def _cores(found: dict[str, Any]) -> str:
    lines = []
    for prior, result in found.items():
        (one, alone), (several, together) = ((int(n), t) for n, t in result["times"].items())
        lines.append(
            f"With {prior}, {several} cores take {together:.2f} µs per row of {result['n_keys']:,} keys and {one} "
            f"takes {alone:.2f}: {alone / together:.2f} times as fast."
        )
    return " ".join(lines) + "\n"


def _one_row(found: dict[str, float]) -> str:
    alone = found["DEVDAN"]
    with_prior, without = found["fleet"], found["fleet without a prior"]
    return (
        f"One row at a time, `predict` and `partial_fit` take {alone:.0f} µs with a `DEVDAN`, {with_prior:.0f} µs with "
        f"a fleet ({with_prior / alone:.2f} times as long) and {without:.0f} µs with one without a prior "
        f"({without / alone:.2f}).\n"
    )


def _sizes(by_keys: list[dict[str, Any]], by_features: list[dict[str, Any]]) -> str:
    smallest = next(each for each in by_keys if each["n_keys"] >= 1_000 or each is by_keys[-1])["time"]
    lines = [
        "| keys | features | µs per row | times as long as with 1,000 keys | µs for a new key | a network | process |",
        "|---|---|---|---|---|---|---|",
    ]
    for each in (*by_keys, *(other for other in by_features if other["n_features"] != 10)):
        times = f"{each['time'] / smallest:.2f}" if each["n_features"] == 10 else ""
        lines.append(
            f"| {each['n_keys']:,} | {each['n_features']} | {each['time']:.2f} | {times} | {each['new']:.0f} | "
            f"{each['network_kilobytes']:.1f} kB | {each['peak_megabytes'] / 1e3:.2f} GB |"
        )
    return "\n".join(lines) + "\n"


def _stored(found: list[dict[str, Any]], unlimited: dict[str, Any]) -> str:
    first = found[0]
    lines = [
        f"{first['n_keys']:,} keys with `max_in_memory={first['limit']:,}`, against {unlimited['time']:.1f} µs per row "
        f"and {unlimited['peak_megabytes'] / 1e3:.1f} GB with all in memory; here, time as one waits for it.",
        "",
        "| keys come | of a portion in memory | µs per row | µs for a new key | process | file | `save` |",
        "|---|---|---|---|---|---|---|",
    ]
    for each in found:
        lines.append(
            f"| {each['keys']} | {100 * each['in_memory']:.0f} % | {each['time']:.1f} | {each['new']:.0f} | "
            f"{each['peak_megabytes'] / 1e3:.2f} GB | {each['gigabytes']:.1f} GB | {each['save_seconds']:.0f} s |"
        )
    return "\n".join(lines) + "\n"


def picture(results: dict[str, Any]) -> str:
    """Time per row against the number of keys, and accuracy by the age of a key."""
    by_keys, against_ = results["keys"], results["against"]["times"]
    plot = Plot(len(by_keys) - 1, 0, 1.15 * max(each["time"] for each in by_keys))
    line = plot.line(range(len(by_keys)), [each["time"] for each in by_keys], "smooth")
    below = [(place, short(each["n_keys"])) for place, each in enumerate(by_keys)]
    times = plot.axes(ticks(0, plot.high, 5), " µs", below, "keys") + plot.stretched(line)
    others = " and ".join(f"{against_[name]:.0f} µs" for name in list(against_)[2:])
    body = caption(24, "Time per row, predicted and learned", f"dicts of River classifiers, 10,000 keys: {others}")
    body += placed(38, 130, times)
    name = next(iter(results["prior"]))
    plot = Plot(len(fleet_prior.CURVE) - 1, 40, 100)
    curves = results["prior"][name]
    lines = [
        plot.line(range(len(fleet_prior.CURVE)), [100 * share for share in curves[model]["curve"]], style)
        for model, style in zip(fleet_prior.MODELS, ("smooth", "units", "no-change"), strict=False)
    ]
    below = [(place, str(n)) for place, n in enumerate(fleet_prior.CURVE) if place % 3 == 0]
    chart = plot.axes(ticks(40, 100, 4), " %", below, "samples of the key") + plot.stretched(*lines)
    said = f"{name.partition(':')[0]}; blue: with a prior, black: without, dashed: one DEVDAN for all"
    body += caption(246, "Right in the first samples of a key", said)
    body += placed(260, 150, chart)
    return framed("A fleet: time per row against the number of keys, and accuracy by age of a key", 460, body)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="short runs; nothing is saved")
    parser.add_argument("--write", action="store_true", help="put the figures into the documentation")
    parser.add_argument("--only", choices=list(parts(True)), help="measure this part, and keep the others")
    parser.add_argument("--again", action="store_true", help="measure nothing, write the saved figures")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        asked = json.loads(arguments.measure)
        print(json.dumps(MEASURES[asked["name"]](**asked["given"])))
        return
    kept = arguments.again or arguments.only is not None
    results = json.loads(RESULTS.read_text()) if kept and RESULTS.exists() else {}
    for name, measure in parts(arguments.quick).items():
        if not arguments.again and arguments.only in (None, name):
            results[name] = measure()
    print(markdown(results))
    if not arguments.quick:
        RESULTS.write_text(json.dumps(results, indent=2) + "\n")
        if arguments.write or arguments.again:
            write(results)


if __name__ == "__main__":
    main()
