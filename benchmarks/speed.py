"""The speed of DEVDAN on one core: `make bench` runs it, and every comparison is within one run.

Needs River, for its forest. Writes benchmarks/results/speed-<machine>.json and a page beside it. With `--quick`, short
runs that write nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import resource
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
import sklearn
from measuring import best, machine
from sklearn.neural_network import MLPClassifier

from devdan import DEVDAN, DEVDANEnsemble, kernel
from devdan.bench import named_models
from devdan.evaluation.loop import prequential
from devdan.kernel import arithmetic, inputs, paper
from devdan.river import DEVDANClassifier
from devdan.streams import sea

RESULTS = Path(__file__).parent / "results"
SHAPES = [(3, 18, 2), (18, 20, 2), (28, 20, 2), (41, 36, 2), (54, 50, 7), (784, 100, 10)]
CHUNK = 500


# --- Against scikit-learn's MLP ------------------------------------------------------------------------------------


def mlp() -> MLPClassifier:
    return MLPClassifier(
        hidden_layer_sizes=(10,), solver="sgd", batch_size=1, learning_rate_init=0.01, momentum=0.95, random_state=0
    )


def against_mlp(quick: bool) -> dict[str, float]:
    """Samples per second, training and predicting, on SEA in chunks of 500."""
    n_devdan, n_mlp = (20_000, 2_000) if quick else (100_000, 10_000)

    def devdan(**options: Any) -> None:
        for _ in prequential(sea(n_devdan), DEVDAN(random_state=0, **options)):
            pass

    def peer() -> None:
        model = mlp()
        for chunk, (X, y) in enumerate(sea(n_mlp)):
            if chunk > 0:
                model.predict(X)
            model.partial_fit(X, y, classes=[0, 1])

    ours, theirs = n_devdan / best(devdan, 10), n_mlp / best(peer, 5)
    alone = n_devdan / best(lambda: devdan(rehearse=0), 10)
    return {
        "devdan": ours,
        "devdan_quick": alone,
        "sklearn_mlp": theirs,
        "ratio": ours / theirs,
        "ratio_quick": alone / theirs,
    }


def against_forest(quick: bool) -> dict[str, float]:
    """Samples per second of our ensemble and of ten trees, training and predicting SEA, in chunks or one by one."""
    n_ours, n_single, n_theirs = (5_000, 500, 1_000) if quick else (50_000, 5_000, 10_000)

    def devdan(n_samples: int, chunk: int) -> None:
        for _ in prequential(sea(n_samples, chunk=chunk), DEVDANEnsemble(n_jobs=1, random_state=0)):
            pass

    def devdan_rows() -> None:
        model = DEVDANEnsemble(n_jobs=1, random_state=0)
        X, y = next(iter(sea(n_single, chunk=n_single)))
        model.partial_fit(X[:1], y[:1])
        for t in range(n_single):
            model.predict(X[t : t + 1])
            model.partial_fit(X[t : t + 1], y[t : t + 1])

    def through_river() -> None:
        model = DEVDANClassifier(ensemble=True, seed=0)
        X, y = next(iter(sea(n_single, chunk=n_single)))
        for row, label in zip(X.tolist(), y.tolist(), strict=True):
            x = dict(enumerate(row))
            model.predict_one(x)
            model.learn_one(x, label)

    def forest() -> None:  # which takes one sample at a time, whatever the chunks
        for _ in prequential(sea(n_theirs), named_models.build("river-arf")):
            pass

    devdan(1000, 500)
    theirs = n_theirs / best(forest, 2)
    ours, single = n_ours / best(lambda: devdan(n_ours, 500), 3), n_single / best(devdan_rows, 3)
    adapted = n_single / best(through_river, 3)
    return {
        "devdan_ensemble": ours,
        "devdan_ensemble_one_by_one": single,
        "devdan_ensemble_in_river": adapted,
        "river_arf": theirs,
        "ratio": ours / theirs,
        "ratio_one_by_one": single / theirs,
        "ratio_in_river": adapted / theirs,
    }


def one_row(quick: bool) -> dict[str, float]:
    """Microseconds for one row through partial_fit and predict together."""
    X, y = next(iter(sea(1000, chunk=1000)))
    result = {}
    for name, model, n_rows in (("devdan", DEVDAN(random_state=0), 1000), ("sklearn_mlp", mlp(), 100)):
        model.partial_fit(X, y, classes=[0, 1])

        def rows(model: Any = model, n_rows: int = n_rows) -> None:
            for t in range(n_rows):
                model.predict(X[t : t + 1])
                model.partial_fit(X[t : t + 1], y[t : t + 1])

        result[name] = 1e6 * best(rows, 1 if quick else 5) / n_rows
    return result


# --- Against the hardware ------------------------------------------------------------------------------------------


@numba.njit(fastmath={"reassoc", "contract", "nsz", "arcp"}, error_model="numpy")
def bare_loop(W, V, x, y, z, delta, n, r, n_samples):
    """The multiply-adds of both phases, 24 n r operations per sample, and nothing else."""
    for _ in range(n_samples):
        for _phase in range(2):  # y and E[y]
            for j in range(n):
                for i in range(r):
                    y[0, i] += x[0, j] * W[j, i]
                    y[1, i] += x[1, j] * W[j, i]
        for j in range(n):  # z, E[z], E[z²]
            z0 = z1 = z2 = 0.0
            for i in range(r):
                z0 += y[0, i] * W[j, i]
                z1 += y[1, i] * W[j, i]
                z2 += y[2, i] * W[j, i]
            z[0, j], z[1, j], z[2, j] = z0, z1, z2
        for j in range(n):  # back through the decoder
            for i in range(r):
                delta[i] += z[0, j] * W[j, i]
        for j in range(n):  # the generative step
            for i in range(r):
                W[j, i] -= z[1, j] * y[2, i] + x[0, j] * delta[i]
        for j in range(n):  # the discriminative step
            for i in range(r):
                V[j, i] = 0.95 * V[j, i] - x[1, j] * delta[i]
                W[j, i] += V[j, i]


def bare(n: int, r: int, n_samples: int, repeats: int) -> float:
    """Samples per second of the bare loop. All zeros: the values do not matter, and these never overflow.

    Its speed depends on where its arrays happen to lie, by up to a third: each repeat has others, the best counts.
    """
    rates, kept = [], []
    for _ in range(repeats):
        arrays = [np.zeros(shape) for shape in ((n, r), (n, r), (2, n), (3, r), (3, n), r)]
        kept.append(arrays)
        bare_loop(*arrays, n, r, 1)
        rates.append(n_samples / best(lambda arrays=arrays: bare_loop(*arrays, n, r, n_samples), 2))
    return max(rates)


@numba.njit(fastmath={"reassoc", "contract", "nsz", "arcp"}, error_model="numpy", _nrt=False)
def rest_loop(row, x, present, count, share, mean, square, hidden, z, flat, c, flat_c, monitor, n, r, m, n_samples):
    """What a sample costs beside its multiply-adds: statistics, activations and conditions of both phases."""
    for _ in range(n_samples):
        for phase in range(2):
            inputs.find(row, x, present, n)
            arithmetic.step_count(count, present, share, n)
            arithmetic.step_mean(mean, square, share, x, n)
            arithmetic.sigmoid(hidden[0], r)
            arithmetic.sigmoid(hidden[1], r)
            if phase == 0:
                arithmetic.sigmoid(flat, 3 * n)
                paper.significance(z, x, present, n)
            else:
                arithmetic.softmax(flat_c, m, m)
                paper.significance(c, x, present, min(n, m))
            paper.watch(monitor, 0.1, 2.0)
            paper.reaches(monitor, paper.most_bias2(monitor, 0.1))
            paper.watch(monitor, 0.1, 2.0)
            paper.reaches(monitor, paper.most_variance(monitor, 0.1))


def rest(n: int, r: int, m: int, n_samples: int, repeats: int) -> float:
    """Samples per second of the rest alone."""
    shapes = (n, n, n, n, n, n, n, (2, r), (3, n), 3 * n, (3, m), 3 * m, kernel.RESTART + 1)
    arrays = [np.zeros(shape) for shape in shapes]
    rest_loop(*arrays, n, r, m, 1)
    return n_samples / best(lambda: rest_loop(*arrays, n, r, m, n_samples), repeats)


def devdan_rate(n: int, r: int, m: int, n_samples: int, repeats: int, **options: Any) -> float:
    """Samples per second in training, both phases, with the paper's settings and a fixed structure."""
    random = np.random.default_rng(0)
    X = random.random((CHUNK, n))
    y = random.integers(m, size=CHUNK)
    model = DEVDAN.paper(n_hidden=r, grow=False, prune=False, random_state=0, **options).partial_fit(X, y)

    def run() -> None:
        for _ in range(n_samples // CHUNK):
            model.partial_fit(X, y)

    return n_samples / best(run, repeats)


def against_hardware(quick: bool) -> list[dict[str, float]]:
    rows = []
    for n, r, m in SHAPES:
        n_samples = max(2, int((3e7 if quick else 3e8) / (24 * n * r) / CHUNK)) * CHUNK
        repeats = 2 if quick else 7
        ours, loop = devdan_rate(n, r, m, n_samples, repeats), bare(n, r, n_samples, repeats)
        flop = 24e-9 * n * r
        other = ours / rest(n, r, m, n_samples, repeats)
        rows.append({"features": n, "units": r, "classes": m, "samples_per_second": ours, "gflops": flop * ours,
                     "bare_gflops": flop * loop, "share": ours / loop, "share_of_the_rest": other})  # fmt: skip
    return rows


def linearity(quick: bool) -> dict[str, list[list[float]]]:
    """Seconds against samples (n = 18, 20 units; on SEA by default), and microseconds per sample against n x units."""
    counts = [2_000, 4_000, 8_000] if quick else [50_000, 100_000, 200_000, 400_000]
    by_samples = [[count, count / devdan_rate(18, 20, 2, count, 2)] for count in counts]
    defaults, ensemble = [], []
    for count in counts:
        few = count // 4  # the ensemble takes ten times as long
        defaults.append([count, best(lambda count=count: learn_sea(DEVDAN(random_state=0), count), 2)])
        ensemble.append([few, best(lambda few=few: learn_sea(DEVDANEnsemble(n_jobs=1, random_state=0), few), 2)])
    by_size = []
    for n, r in ((25, 25), (50, 25), (50, 50), (100, 50), (100, 100), (200, 100), (200, 200)):
        n_samples = max(2, int((1e7 if quick else 2e8) / (24 * n * r) / CHUNK)) * CHUNK
        by_size.append([n * r, 1e6 / devdan_rate(n, r, 2, n_samples, 3)])
    return {
        "seconds_by_samples": by_samples,
        "seconds_by_samples_default": defaults,
        "seconds_by_samples_ensemble": ensemble,
        "microseconds_by_size": by_size,
    }


def learn_sea(model: Any, n_samples: int) -> None:
    for X, y in sea(n_samples):
        model.partial_fit(X, y)


# --- Starting up, and going on for ever ----------------------------------------------------------------------------

IMPORTS = "import numpy, sklearn.base, sklearn.utils.validation, sklearn.utils.multiclass"
FIRST_CALL = """
import numpy, devdan
X = numpy.random.default_rng(0).random((500, 3))
devdan.DEVDAN().partial_fit(X, X[:, 0] > 0.5).predict(X)
"""


def cpu_seconds(*arguments: str, repeats: int = 1, **environment: str) -> float:
    """Seconds of a processor, user and system, that a fresh Python takes; the least of several."""
    times = []
    for _ in range(repeats):
        before = os.times()
        subprocess.run([sys.executable, *arguments], env=os.environ | environment, capture_output=True, check=True)
        after = os.times()
        user = after.children_user - before.children_user
        times.append(user + after.children_system - before.children_system)
    return min(times)


def start_up() -> dict[str, float]:
    """Seconds of a processor until something happens, all of them with the start of Python."""
    with tempfile.TemporaryDirectory() as folder:
        first = cpu_seconds("-c", FIRST_CALL, NUMBA_CACHE_DIR=folder)
        later = cpu_seconds("-c", FIRST_CALL, repeats=5, NUMBA_CACHE_DIR=folder)
    return {
        "numpy_and_sklearn": cpu_seconds("-c", IMPORTS, repeats=5),
        "import": cpu_seconds("-c", f"{IMPORTS}; from devdan import DEVDAN", repeats=5),
        "first_call_compiling": first,
        "first_call_later": later,
        "help": cpu_seconds("-m", "devdan", "--help", repeats=5),
        "version": cpu_seconds("-m", "devdan", "--version", repeats=5),
    }


def memory(quick: bool, model: Any, n_samples: int) -> dict[str, float]:
    """Peak memory of this process in MiB after a tenth and after all of so many samples through one model."""
    n_samples, peaks = n_samples // 50 if quick else n_samples, []
    for chunk, (X, y) in enumerate(sea(n_samples, chunk=1000), start=1):
        model.partial_fit(X, y)
        if chunk * 1000 in (n_samples // 10, n_samples):
            peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    return {"samples": n_samples, "mib_after_a_tenth": peaks[0], "mib_at_the_end": peaks[1],
            "state_bytes": sum(state.nbytes for state in model.mixture_.networks),
            "hidden_units": model.n_hidden_}  # fmt: skip


# --- The page ------------------------------------------------------------------------------------------------------


def page(result: dict[str, Any]) -> str:
    peer, row, start, forest = (result[name] for name in ("against_mlp", "one_row", "start_up", "against_forest"))
    lines = [
        "# Speed",
        "",
        f"Written by `make bench` on {result['machine']}, one core; {result['versions']}.",
        "",
        f"SEA in chunks of 500, training and predicting: DEVDAN {peer['devdan']:,.0f} samples/s, scikit-learn's "
        f"MLPClassifier (ten units, batch 1) {peer['sklearn_mlp']:,.0f} samples/s: "
        f"**{peer['ratio']:.0f} times** as fast.",
        "",
        f"Without replay (`DEVDAN(rehearse=0)`): {peer['devdan_quick']:,.0f} samples/s, "
        f"{peer['devdan_quick'] / peer['devdan']:.1f} times as fast as by default, {peer['ratio_quick']:.0f} times as "
        "MLPClassifier.",
        "",
        f"In the same way, on one core: DEVDANEnsemble {forest['devdan_ensemble']:,.0f} samples/s, "
        f"River's adaptive random forest of ten trees {forest['river_arf']:,.0f} samples/s: "
        f"**{forest['ratio']:.0f} times** as fast; one by one, {forest['devdan_ensemble_one_by_one']:,.0f} samples/s: "
        f"**{forest['ratio_one_by_one']:.1f} times**; through the River class, "
        f"{forest['devdan_ensemble_in_river']:,.0f} samples/s: **{forest['ratio_in_river']:.1f} times**.",
        "",
        f"One row at a time, `partial_fit` and `predict` together: {row['devdan']:.0f} µs; MLPClassifier "
        f"{row['sklearn_mlp']:,.0f} µs.",
        "",
        "Training in both phases, with the paper's settings and a fixed structure, compared with a bare loop of "
        "the same 24 · n · units operations. The rest is work other than these multiply-adds, which grows only with "
        "n + units: running statistics, sigmoids, softmax and conditions. It weighs most in small networks. The last "
        "column times it separately, as a share of the whole. Timed separately, its stages overlap; in a model each "
        "waits for the one before it, so they probably take more than this share.",
        "",
        "| features | units | classes | samples/s | GFLOP/s | bare loop | share | the rest |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for shape in result["against_hardware"]:
        lines.append(
            f"| {shape['features']} | {shape['units']} | {shape['classes']} | {shape['samples_per_second']:,.0f} | "
            f"{shape['gflops']:.1f} | {shape['bare_gflops']:.1f} | {100 * shape['share']:.0f} % | "
            f"{100 * shape['share_of_the_rest']:.0f} % |"
        )
    lines += [
        "",
        "Time grows linearly with the samples:",
        "",
        "| | samples | seconds |",
        "|---|---|---|",
    ]
    for name, what in (
        ("", "one network of 20 units, 18 features"),
        ("_default", "`DEVDAN()`"),
        ("_ensemble", "`DEVDANEnsemble()`"),
    ):
        measured = result["linearity"][f"seconds_by_samples{name}"]
        lines += [f"| {what} | {count:,} | {seconds:.3f} |" for count, seconds in measured]
    lines += ["", "and with features x units (2 classes):", ""]
    lines += ["| features x units | µs per sample | ns per weight |", "|---|---|---|"]
    lines += [
        f"| {size:,} | {micros:.2f} | {1000 * micros / size:.2f} |"
        for size, micros in result["linearity"]["microseconds_by_size"]
    ]
    lines += [
        "",
        "Starting, in seconds of a processor (user and system):",
        "",
        "| what a fresh process does | seconds |",
        "|---|---|",
        f"| import NumPy and scikit-learn | {start['numpy_and_sklearn']:.2f} |",
        f"| the same and `from devdan import DEVDAN` | {start['import']:.2f} |",
        f"| `partial_fit` and `predict`, for the first time after installing | {start['first_call_compiling']:.2f} |",
        f"| of these, the two calls alone | {start['first_call_compiling'] - start['import']:.2f} |",
        f"| the same in later processes, or after `devdan compile` | {start['first_call_later']:.2f} |",
        f"| `devdan --help` | {start['help']:.2f} |",
        f"| `devdan --version` | {start['version']:.2f} |",
        "",
    ]
    for name, flat in (("one model", result["memory"]), ("one ensemble", result["memory_ensemble"])):
        lines += [
            f"{flat['samples']:,} samples through {name}: {flat['mib_after_a_tenth']:.0f} MiB after the first tenth, "
            f"{flat['mib_at_the_end']:.0f} MiB at the end, with {flat['hidden_units']} hidden units; the model itself "
            f"takes {flat['state_bytes']:,} bytes.",
            "",
        ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="short runs, nothing written")
    quick = parser.parse_args().quick
    warnings.simplefilter("ignore")  # the MLP's, about convergence
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    result: dict[str, Any] = {
        "machine": machine(),
        "versions": f"Python {platform.python_version()}, NumPy {np.__version__}, Numba {numba.__version__}, "
        f"scikit-learn {sklearn.__version__}",
    }
    parts: dict[str, Callable[[bool], Any]] = {
        "against_mlp": against_mlp,
        "against_forest": against_forest,
        "one_row": one_row,
        "against_hardware": against_hardware,
        "linearity": linearity,
        "memory": lambda quick: memory(quick, DEVDAN(random_state=0), 10_000_000),
        "memory_ensemble": lambda quick: memory(quick, DEVDANEnsemble(random_state=0), 1_000_000),
        "start_up": lambda _: start_up(),
    }
    for done, (name, part) in enumerate(parts.items(), start=1):
        print(f"[{done}/{len(parts)}] {name}", file=sys.stderr, flush=True)
        result[name] = part(quick)
    print(page(result))
    if not quick:
        RESULTS.mkdir(exist_ok=True)
        name = re.sub(r"[^a-z0-9]+", "-", result["machine"].lower()).strip("-")
        (RESULTS / f"speed-{name}.json").write_text(json.dumps(result, indent=1) + "\n")
        (RESULTS / f"speed-{name}.md").write_text(page(result))


if __name__ == "__main__":
    main()
