"""Alarms of DEVDAN, ADWIN and DDM around true drifts, and drifts of rare classes, for docs/drift.md.

`python benchmarks/drift.py` prints the table of alarms, `--write` puts it and the picture into the page; with `--rare`
they are about rare classes instead.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import payments
from markupsafe import Markup
from measuring import put
from river import drift

from devdan import DEVDAN
from devdan.report.chart import Plot
from devdan.report.render import caption, framed, placed
from devdan.river import DEVDANClassifier
from devdan.streams import hyperplane, sea
from devdan.streams.stream import Chunk

DOCS = Path(__file__).parents[1] / "docs"
PAGE, PICTURE = DOCS / "drift.md", DOCS / "drift.svg"
LATEST = 2_000  # samples after an abrupt drift, in which an alarm belongs to it
GROWTH, DRIFT = "growth", "drift"


@dataclass(frozen=True)
class Case:
    """A stream, and the spans in which an alarm is right."""

    name: str
    drifts: str
    stream: Callable[[int], Iterable[Chunk]]
    n_samples: int
    spans: tuple[tuple[int, int], ...]


def moved(seed: int) -> Iterator[Chunk]:
    """SEA without drifts, whose inputs move by a third of their range from the middle on, back again at the end."""
    start = 0
    for X, y in sea(60_000, drifts=[60_000], seed=seed):
        yield X + (20_000 <= start < 40_000) / 3, y
        start += len(X)


CASES = (
    Case("SEA", "7 abrupt drifts", lambda seed: sea(seed=seed), 100_000,
         tuple((k * 12_500, k * 12_500 + LATEST) for k in range(1, 8))),
    Case("Hyperplane", "1 gradual drift", lambda seed: hyperplane(seed=seed), 120_000, ((40_000, 60_000),)),
    Case("moved inputs", "2 virtual drifts", moved, 60_000, tuple((k, k + LATEST) for k in (20_000, 40_000))),
)  # fmt: skip


def alarms(case: Case, seed: int) -> dict[str, list[int]]:
    """The samples at which each detector gave an alarm; ADWIN and DDM watch the errors of the same model."""
    model, chunked, paper = DEVDANClassifier(seed=seed), DEVDAN(random_state=seed), DEVDAN.paper(random_state=seed)
    rivals = {"ADWIN": drift.ADWIN(), "DDM": drift.binary.DDM()}
    found: dict[str, list[int]] = {name: [] for name in rivals}
    t = 0
    for X, y in case.stream(seed):
        for row, label in zip(X, y.tolist(), strict=True):
            x = dict(enumerate(row.tolist()))
            wrong = model.predict_one(x) != label
            for name, detector in rivals.items():
                detector.update(int(wrong))
                if detector.drift_detected:
                    found[name].append(t)
            model.learn_one(x, label)
            t += 1
        chunked.partial_fit(X, y)
        paper.partial_fit(np.clip(X, 0, 1), y)
    for source, kind, phase, name in (
        (model, DRIFT, "discriminative", "DEVDAN, real drift"),
        (model, DRIFT, "generative", "DEVDAN, virtual drift"),
        (chunked, DRIFT, "discriminative", "real drift, chunks of 500"),
        (chunked, DRIFT, "generative", "virtual drift, chunks of 500"),
        (model, GROWTH, "discriminative", "growth, discriminative phase"),
        (model, GROWTH, "generative", "growth, generative phase"),
        (paper, GROWTH, "discriminative", "growth with the paper's settings, discriminative phase"),
        (paper, GROWTH, "generative", "growth with the paper's settings, generative phase"),
    ):
        found[name] = [event.sample - 1 for event in source.events_ if (event.kind, event.phase) == (kind, phase)]
    return found


DRAWN = (
    "DEVDAN, real drift",
    "DEVDAN, virtual drift",
    "ADWIN",
    "DDM",
    "growth, discriminative phase",
    "growth, generative phase",
)
ROWS = (
    *DRAWN[:2],
    "real drift, chunks of 500",
    "virtual drift, chunks of 500",
    *DRAWN[2:],
    "growth with the paper's settings, discriminative phase",
    "growth with the paper's settings, generative phase",
)


def judged(case: Case, times: Sequence[int]) -> tuple[list[int], int]:
    """Delays of the first alarm after each drift that was found, and how many alarms belong to no drift."""
    delays = []
    for first, last in case.spans:
        inside = [t for t in times if first <= t < last]
        delays += [inside[0] - first] if inside else []
    false = sum(not any(first <= t < last for first, last in case.spans) for t in times)
    return delays, false


def table(results: dict[str, list[dict[str, list[int]]]]) -> str:
    """Found, delay and false alarms of each detector on each stream."""
    lines = ["| | " + " | ".join(f"{case.name}: found | delay | false" for case in CASES) + " |"]
    lines.append("|---" * (1 + 3 * len(CASES)) + "|")
    for name in ROWS:
        cells = []
        for case in CASES:
            runs = [judged(case, found[name]) for found in results[case.name]]
            delays = [delay for some, _ in runs for delay in some]
            cells += [
                f"{len(delays)} of {len(runs) * len(case.spans)}",
                f"{np.mean(delays):,.0f}" if delays else "–",
                str(sum(false for _, false in runs)),
            ]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


STYLE = """
  .span { fill: var(--orange); opacity: 0.25; } .alarm { stroke: var(--blue); stroke-width: 2px; }
"""


def picture(results: dict[str, list[dict[str, list[int]]]]) -> str:
    """One seed: a line for each detector, a stroke for each alarm, the drifts shaded."""
    body, top, shown = Markup(""), 0, DRAWN
    for case in CASES:
        body += caption(top + 24, f"{case.name}, {case.drifts}", "shaded: a drift is on; strokes: alarms")
        plot = Plot(case.n_samples, 0, len(shown))
        chart = plot.axes([])
        for first, last in case.spans:
            chart += Markup('<rect class="span" x="{:.2f}%" width="{:.2f}%" y="0" height="100%"/>').format(
                plot.x(first), plot.x(last - first)
            )
        for place, name in enumerate(shown):
            y = plot.y(len(shown) - place - 0.5)
            chart += Markup('<text x="0" y="{:.2f}%" dy=".33em" dx="-8" text-anchor="end">{}</text>').format(y, name)
            for t in results[case.name][0][name]:
                chart += Markup('<line class="alarm" x1="{x:.2f}%" x2="{x:.2f}%" y1="{a:.2f}%" y2="{b:.2f}%"/>').format(
                    x=plot.x(t), a=y - 6, b=y + 6
                )
        body += placed(top + 42, 24 * len(shown), chart, left=200)
        top += 24 * len(shown) + 100
    return framed("Alarms of six detectors around true drifts", top - 10, body, STYLE)


# --- Rare classes ------------------------------------------------------------------------------------------------

HALF = 10_000
Samples = tuple[Any, np.ndarray]


def moving_frauds(seed: int, moves: bool) -> Samples:
    """Three in a hundred lie beside the others; from the middle on, beside them in another direction if they move."""
    random = np.random.default_rng(seed)
    y = (random.random(2 * HALF) < 0.03).astype(int)
    X, late = random.normal(size=(2 * HALF, 4)), (np.arange(2 * HALF) >= HALF) & moves
    X[:, 0] += 3.0 * y * ~late
    X[:, 1] += 3.0 * y * late
    return X, y


def clouds(seed: int, share: float) -> Samples:
    """Two clouds, one of them rare."""
    random = np.random.default_rng(seed)
    y = (random.random(2 * HALF) < share).astype(int)
    return random.normal(size=(2 * HALF, 4)) + 1.3 * y[:, None], y


def eight(seed: int) -> Samples:
    """Eight classes, each half as frequent as the one before."""
    random = np.random.default_rng(seed)
    shares = 0.5 ** np.arange(8)
    y = random.choice(8, 2 * HALF, p=shares / shares.sum())
    return random.normal(size=(2 * HALF, 10)) + random.normal(size=(8, 10))[y], y


def still_sea(seed: int) -> Samples:
    """SEA without drifts, where no class is rare."""
    X, y = (np.concatenate(parts) for parts in zip(*sea(2 * HALF, drifts=[2 * HALF], seed=seed), strict=True))
    return X, y


CHANGING: dict[str, Callable[[int], Samples]] = {
    "payments": lambda seed: payments.clean(seed)[:2],
    "payments as a table comes": lambda seed: payments.raw(seed)[:2],
    "a rare cloud moves": lambda seed: moving_frauds(seed, moves=True),
}
STILL: dict[str, Callable[[int], Samples]] = {
    "payments without the change": lambda seed: payments.clean(seed, 2 * HALF)[:2],
    "a rare cloud stays": lambda seed: moving_frauds(seed, moves=False),
    "a cloud of 0.9 %": lambda seed: clouds(seed, 0.009),
    "a cloud of 5 %": lambda seed: clouds(seed, 0.05),
    "eight classes": eight,
    "SEA without drifts": still_sea,
}


def of_rare_classes(name: str, n_seeds: int) -> str:
    """A row of the table: how often drifts of rare classes were signalled after a change and elsewhere, and others."""
    found, delays, false, of_all = 0, list[int](), 0, 0
    for seed in range(n_seeds):
        X, y = (CHANGING | STILL)[name](seed)
        model = DEVDAN(random_state=seed)
        for start in range(0, len(y), 500):
            model.partial_fit(X[start : start + 500], y[start : start + 500])
        events = [one for one in model.events_ if one.kind == DRIFT and one.phase == "discriminative"]
        late = [one.sample - HALF for one in events if one.label is not None and one.sample > HALF]
        late = late if name in CHANGING else []
        found, delays = found + bool(late), delays + late[:1]
        false += sum(one.label is not None for one in events) - len(late)
        of_all += sum(one.label is None for one in events)
    told = f"{found} of {n_seeds} | {np.median(delays):,.0f}" if name in CHANGING and delays else "– | –"
    return f"| {name} | {told} | {false} | {of_all} |"


def rare_table(n_seeds: int) -> str:
    """Of each stream, over so many seeds."""
    head = "| stream | found | delay | false | real drifts of all samples |\n|---|---|---|---|---|\n"
    return head + "".join(f"{of_rare_classes(name, n_seeds)}\n" for name in CHANGING | STILL)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--rare", action="store_true", help="drifts of rare classes")
    parser.add_argument("--write", action="store_true", help=f"put the table and the picture into {PAGE.name}")
    arguments = parser.parse_args()
    if arguments.rare:
        warnings.simplefilter("ignore")  # what is left out of the payments
        found = rare_table(arguments.seeds or 20)
        print(found)
        if arguments.write:
            put(PAGE, "rare", found)
        return
    arguments.seeds = arguments.seeds or 5
    results = {case.name: [alarms(case, seed) for seed in range(1, arguments.seeds + 1)] for case in CASES}
    print(table(results))
    if arguments.write:
        put(PAGE, "detectors", table(results))
        PICTURE.write_text(picture(results))


if __name__ == "__main__":
    main()
