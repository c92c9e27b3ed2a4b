"""How well rare classes are found, for docs/rare-events.md: by DEVDAN, the ensemble, and what people train instead.

`python benchmarks/rare.py` runs what is missing in benchmarks/results/rare.json and prints the table; `--write` puts it
into the page. `--streams`, `--models` and `--seeds` run some, `--again` what is there, too. Real streams are files in
the folder `real` of DEVDAN_DATA.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise, product
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import paper_streams
import payments
from measuring import put
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from devdan import DEVDAN, DEVDANEnsemble
from devdan.arrays import Floats, Integers
from devdan.evaluation.loop import prequential

PAGE = Path(__file__).parents[1] / "docs" / "rare-events.md"
RESULTS = Path(__file__).parent / "results" / "rare.json"
REAL = paper_streams.FOLDER / "real"
DAY = 86_400


class Samples(NamedTuple):
    """A stream in memory: a table or an array, 1 for the rare class, and the day of each row if it comes by day."""

    X: Any
    y: Integers
    day: Integers = np.empty(0, int)


Part = tuple[slice, slice]  # the rows that are predicted, and those whose labels come after that


# --- Streams -----------------------------------------------------------------------------------------------------


def chunks(samples: Samples, size: int = 500, delay: int = 0) -> Iterator[Part]:
    """Chunks of so many rows; labels come some rows later."""
    n, known = len(samples.y), 0
    for start in range(0, n, size):
        end = min(start + size, n)
        come = max(end - delay, known)
        yield slice(start, end), slice(known, come)
        known = come


def days(samples: Samples) -> Iterator[Part]:
    """The rows of a day each; labels come seven days later."""
    starts = np.searchsorted(samples.day, np.arange(samples.day[-1] + 2)).tolist()
    for k, (start, end) in enumerate(pairwise(starts)):
        yield slice(start, end), slice(starts[max(k - 7, 0)], starts[max(k - 6, 0)])


@dataclass(frozen=True)
class Case:
    """A stream, how its rows and labels come, and from which row on predictions are judged."""

    samples: Callable[[int], Samples]
    parts: Callable[[Samples], Iterator[Part]]
    first: int = 0
    window: int = 5_000  # latest labelled rows on which peers are trained anew
    every: int = 1  # after so many chunks
    labels: str = ""  # a policy by which labels come instead


def of_payments(make: Callable[[int], Any], seed: int) -> Samples:
    """A data set of each seed."""
    X, y, _ = make(seed)
    return Samples(X, y)


def real(name: str, rows: int, seed: int) -> Samples:
    """The first rows of a real stream."""
    with np.load(REAL / f"{name}.npz") as file:
        y = file["y"][:rows]
        rarest = int(np.argmin(np.bincount(file["y"])))
        return Samples(file["X"][:rows].astype(float), (y == rarest).astype(int))


def transactions(seed: int) -> Samples:
    """Simulated card payments of 120 days: amount, hour and weekday."""
    with np.load(REAL / "transactions.npz") as file:
        seconds, amount, y = (file[name] for name in ("seconds", "amount", "fraud"))
    X = np.column_stack([amount, seconds // 3_600 % 24, seconds // DAY % 7]).astype(float)
    return Samples(X, y.astype(int), seconds // DAY)


def lately(parts: Callable[[Samples], Iterator[Part]]) -> dict[str, Any]:
    """How payments are judged: without the first rows, and peers are trained on the latest 4,000 after each 2,000."""
    return {"parts": parts, "first": 2_000, "window": 4_000}


CLEAN, RAW = partial(of_payments, payments.clean), partial(of_payments, payments.raw)
CASES = {
    "payments, clean": Case(CLEAN, **lately(chunks), every=4),
    "payments, raw": Case(RAW, **lately(chunks), every=4),
    "payments, chunks of 100": Case(CLEAN, **lately(partial(chunks, size=100)), every=20),
    "payments, labels 1,000 late": Case(CLEAN, **lately(partial(chunks, size=50, delay=1_000)), every=40),
    "payments, only frauds named": Case(
        CLEAN, **lately(partial(chunks, size=50)), labels="positives:1000+delay:0-3000"
    ),
    "transactions": Case(transactions, days, first=288_062, window=288_062),
    **{
        name: Case(partial(real, name, 30_000), partial(chunks, size=size))
        for name, size in (("bank_additional", 500), ("ozone8h", 100), ("hflights2011", 1_000), ("nycflights13", 1_000))
    },
}
REAL_CASES = tuple(CASES)[5:]


# --- Models ------------------------------------------------------------------------------------------------------


class Retrained:
    """What people do instead: a scikit-learn model that is trained anew on the latest labelled rows."""

    def __init__(self, make: Callable[[], Any], case: Case) -> None:
        self.make, self.window, self.every = make, case.window, case.every
        self.model: Any = None
        self.X, self.y = pd.DataFrame(), np.empty(0, int)
        self.n_chunks = 0
        self.classes_ = np.arange(2)

    def predict_proba(self, X: Any) -> Floats:
        found: Floats = np.zeros((len(X), 2)) if self.model is None else self.model.predict_proba(pd.DataFrame(X))
        return found

    def predict(self, X: Any) -> Integers:
        return self.predict_proba(X).argmax(axis=1)

    def observe(self, X: Any) -> None:
        """Rows without labels are no use."""

    def teach(self, X: Any, y: Integers) -> None:
        self.X, self.y = (
            pd.concat([self.X, pd.DataFrame(X)])[-self.window :],
            np.concatenate([self.y, y])[-self.window :],
        )
        self.n_chunks += 1
        if self.n_chunks % self.every == 0 and len(np.unique(self.y)) == 2:
            self.model = self.make().fit(self.X, self.y)

    partial_fit = teach


def prepared() -> Any:
    """A column for each text that is not rare; numbers standardised."""
    texts = OneHotEncoder(handle_unknown="ignore", min_frequency=5, sparse_output=False)
    return make_column_transformer(
        (texts, make_column_selector(dtype_include=object)),
        (make_pipeline(SimpleImputer(), StandardScaler()), make_column_selector(dtype_exclude=object)),
    )


MODELS: dict[str, Callable[[int, Case], Any]] = {
    "DEVDAN": lambda seed, _: DEVDAN(random_state=seed),
    "DEVDAN, balanced": lambda seed, _: DEVDAN(random_state=seed, class_weight="balanced"),
    "DEVDAN, balanced decision": lambda seed, _: DEVDAN(random_state=seed, decide={"1": "balanced"}),
    "DEVDAN, by F1": lambda seed, _: DEVDAN(random_state=seed, decide={"1": "f1"}),
    "ensemble": lambda seed, _: DEVDANEnsemble(random_state=seed, n_jobs=1),
    "ensemble, by F1": lambda seed, _: DEVDANEnsemble(random_state=seed, n_jobs=1, decide={"1": "f1"}),
    "ensemble, balanced": lambda seed, _: DEVDANEnsemble(
        random_state=seed, n_jobs=1, estimator=DEVDAN(class_weight="balanced")
    ),
    "logistic regression": lambda _, case: Retrained(
        lambda: make_pipeline(prepared(), LogisticRegression(max_iter=1_000)), case
    ),
    "gradient boosting": lambda _, case: Retrained(
        lambda: make_pipeline(prepared(), HistGradientBoostingClassifier(random_state=0)), case
    ),
}


# --- Measuring ---------------------------------------------------------------------------------------------------


def predicted(case: Case, samples: Samples, model: Any) -> tuple[Integers, Floats]:
    """The label and the probability of the rare class of each row, before its own label is learned.

    Until a label has come there is none, and the probability is NaN.
    """
    X, y, _ = samples
    if case.labels:
        return by_policy(case, samples, model)
    labels, scores, is_ready = np.zeros_like(y), np.full(len(y), np.nan), False
    for now, come in case.parts(samples):
        if is_ready:
            labels[now] = model.predict(X[now])
            scores[now] = model.predict_proba(X[now]) @ (model.classes_ == 1)
        if come == now:
            model.partial_fit(X[now], y[now])
        else:
            model.observe(X[now])
            if come.stop > come.start:
                model.teach(X[come], y[come])
        is_ready |= come.stop > come.start
    return labels, scores


def by_policy(case: Case, samples: Samples, model: Any) -> tuple[Integers, Floats]:
    """:func:`predicted`, where labels come by a policy."""
    X, y, _ = samples
    labels, scores, at = np.zeros_like(y), np.full(len(y), np.nan), iter(case.parts(samples))
    decided = model.decided

    def noted(probabilities: Floats) -> Any:
        now = next(part for part, _ in at if part.stop > ready[0])
        labels[now] = called = decided(probabilities)
        scores[now] = probabilities @ (model.classes_ == 1)
        return called

    ready, model.decided = [0], noted
    stream = ((X[now], y[now]) for now, _ in case.parts(samples))
    for record in prequential(stream, model, case.labels):
        ready[0] = record.start + record.n_samples
    return labels, scores


def figures(y: Integers, labels: Integers, scores: Floats) -> dict[str, float]:
    """In %: of the rare class, average precision, recall, precision and F1; accuracy; and the worst hundred rows.

    That is by how many points a hundred rows in a row were fewer right than if all were called the common class.
    """
    found, rare, called = int((y * labels).sum()), int(y.sum()), int(labels.sum())
    n = len(y) // 100 * 100
    ahead = ((labels == y).astype(float) - (y == 0))[:n].reshape(-1, 100).mean(axis=1)
    return {
        "AP": 100 * float(average_precision_score(y, scores)),
        "recall": 100 * found / rare,
        "precision": 100 * found / max(called, 1),
        "F1": 100 * 2 * found / (rare + called),
        "accuracy": 100 * float((labels == y).mean()),
        "worst 100": 100 * float(ahead.min()),
    }


def measured(name: str, model: str, seed: int) -> dict[str, float]:
    """The figures of one run."""
    case = CASES[name]
    samples = case.samples(seed)
    labels, scores = predicted(case, samples, MODELS[model](seed, case))
    judged = slice(max(case.first, int(np.isnan(scores).argmin())), None)
    return figures(samples.y[judged], labels[judged], scores[judged])


def is_here(name: str) -> bool:
    """Whether a stream's file is, if it has one."""
    return name not in REAL_CASES or (REAL / f"{name}.npz").exists()


def run(results: dict[str, Any], names: Sequence[str], models: Sequence[str], n_seeds: int) -> None:
    """What is missing of all figures by stream, model and seed; each is saved at once."""
    for name, model in product(names, models):
        if not is_here(name):
            print(f"{name} is not in {REAL}", file=sys.stderr)
            continue
        is_retrained = isinstance(MODELS[model](0, CASES[name]), Retrained)
        if is_retrained and CASES[name].labels:
            continue  # it has no rule for labels that are assumed and taken back
        n_own = 1 if is_retrained and name in REAL_CASES else n_seeds
        cell = results.setdefault(name, {}).setdefault(model, [])
        for seed in range(len(cell), n_own):
            cell.append(measured(name, model, seed))
            RESULTS.write_text(json.dumps(results, indent=1) + "\n")
            print(name, model, seed, {key: round(value, 1) for key, value in cell[-1].items()}, file=sys.stderr)


def markdown(results: dict[str, Any]) -> str:
    """Means over the seeds, but the worst hundred rows of all; the best average precision and F1 in bold."""
    columns = ("AP", "recall", "precision", "F1", "accuracy", "worst 100")
    lines = ["| stream | model | " + " | ".join(columns) + " |", "|---" * (2 + len(columns)) + "|"]
    for name in CASES:
        means = {
            model: {key: (min if key == "worst 100" else fmean)([run[key] for run in runs]) for key in columns}
            for model, runs in results.get(name, {}).items()
        }
        best = {key: max(row[key] for row in means.values()) for key in ("AP", "F1") if means}
        for model, row in means.items():
            cells = [f"**{row[key]:.1f}**" if row[key] == best.get(key) else f"{row[key]:.1f}" for key in columns]
            lines.append(f"| {name} | {model} | {' | '.join(cells).replace('-', '−')} |")
    n_runs = [len(runs) for models in results.values() for runs in models.values()]
    return "\n".join(
        [*lines, "", f"In %, mean of {' to '.join(map(str, sorted({min(n_runs), max(n_runs)})))} seeds.", ""]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--again", action="store_true", help="forget the results of these streams and models first")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--write", action="store_true", help=f"put the table into {PAGE.name}")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name, model in product(chosen.streams, chosen.models) if chosen.again else ():
        results.get(name, {}).pop(model, None)
    run(results, chosen.streams, chosen.models, chosen.seeds)
    print(markdown(results))
    if chosen.write:
        put(PAGE, "rare", markdown(results))


if __name__ == "__main__":
    main()
