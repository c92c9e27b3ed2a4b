"""What stands in figures: tiles, the confusion matrix, settings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from devdan.report.runs import ShownRun
from devdan.report.words import DRIFTS, NOTHING, how_many, moment, number, percent, seconds, short

LARGEST_WITH_TEXT = 12  # classes; beyond that the cells of the confusion matrix are too small for it
MOST_CLASSES = 100
MOST_TOOLTIPS = 3000

Rows = list[tuple[str, str]]


class Tile(NamedTuple):
    """A figure with its name and a remark."""

    name: str
    figure: str
    unit: str
    remark: str


def tiles(run: ShownRun) -> list[Tile]:
    """The headline figures."""
    summary, criteria, details = run.summary, run.summary.criteria(), run.summary.details()
    share = summary.n_labels / summary.n_samples if summary.n_samples else None
    spent = f"{seconds(summary.train_seconds)} training, {seconds(summary.test_seconds)} testing"
    of = run.info.get("n_samples")
    part = f"of {of:,}, " if isinstance(of, int) and of > summary.n_samples else ""
    found = [
        Tile(
            "Classification rate",
            number(summary.rate.mean, 2),
            "%",
            f"± {number(summary.rate.std, 2)} over {how_many(summary.rate.n, 'chunk')}, "
            + ("from the second on" if summary.rate.n == summary.n_chunks - 1 else "those scored after the first"),
        ),
        Tile("Kappa", number(criteria["kappa"], 3), "", "0 is chance, 1 is perfect"),
        Tile("Macro F1", number(criteria["f1_macro"], 3), "", f"mean over {how_many(len(summary.classes), 'class')}"),
        Tile("G-mean", number(criteria["g_mean"], 3), "", "geometric mean of the recalls"),
        Tile(
            "Kappa vs no-change",
            number(details["kappa_no_change"], 3),
            "",
            f"that predictor is right in {percent(run.summary.no_change)}" if run.summary.no_change is not None else "",
        ),
    ]
    if summary.hidden.n:
        remark = f"± {number(summary.hidden.std, 1)} over time, {number(run.last.n_hidden)} now"
        found.append(Tile(run.units.capitalize(), number(summary.hidden.mean, 1), "", remark))
    if summary.members.n:
        found.append(Tile("Members", number(summary.members.mean, 1), "", f"{number(run.last.n_members)} now"))
    if summary.parameters.n:
        remark = f"on average, {number(run.last.n_parameters)} now"
        found.append(Tile("Parameters", number(summary.parameters.mean), "", remark))
    return [
        *found,
        Tile("Speed", short(summary.samples_per_second), "samples/s", spent),
        Tile("Samples", number(summary.n_samples), "", f"{part}in {how_many(summary.n_chunks, 'chunk')}"),
        Tile("Labels used", number(summary.n_labels), "", f"{percent(share)} of the samples"),
    ]


class MatrixCell(NamedTuple):
    """A number of samples and their share of the row."""

    n: int
    share: float
    tooltip: str


class Matrix(NamedTuple):
    """A confusion matrix to be looked at."""

    names: list[str]
    rows: list[list[MatrixCell]]
    recall: list[str]
    precision: list[str]
    small: bool  # cells without text
    n_left_out: int


def matrix(run: ShownRun) -> Matrix | None:
    """How often which class was predicted as which; the most frequent classes, where there are very many."""
    summary = run.summary
    confusion = summary.confusion
    if not confusion.n_samples:
        return None
    shown = sorted(range(len(summary.classes)), key=lambda c: -confusion.actual.get(c, 0))[:MOST_CLASSES]
    try:
        shown.sort(key=lambda c: float(summary.classes[c]))
    except (TypeError, ValueError):
        shown.sort()  # as they appeared
    small = len(shown) > LARGEST_WITH_TEXT
    names = [str(summary.classes[c]) for c in shown]
    counts = {(true, guess): n for true, guess, n in summary.counts}
    told = set(sorted(counts, key=lambda pair: -counts[pair])[:MOST_TOOLTIPS]) if small else set()

    def cell(true: int, guess: int) -> MatrixCell:
        n = counts.get((true, guess), 0)
        share = n / confusion.actual[true] if n else 0.0
        a, b = (clipped(summary.classes[c]) for c in (true, guess))
        return MatrixCell(n, share, f"{a} as {b}: {n:,} ({percent(share)})" if (true, guess) in told else "")

    def shares(of: Callable[[int], float | None]) -> list[str]:
        return [NOTHING if (value := of(c)) is None else f"{100 * value:.{0 if small else 1}f}" for c in shown]

    return Matrix(
        names,
        [[cell(true, guess) for guess in shown] for true in shown],
        shares(confusion.recall),
        shares(confusion.precision),
        small,
        len(summary.classes) - len(shown),
    )


def clipped(name: Any, most: int = 30) -> str:
    text = str(name)
    return text if len(text) <= most else text[: most - 1] + "…"


def changes(run: ShownRun) -> list[tuple[str, str, str]]:
    """Kind, phase, and how many there were in all: growths and prunings."""
    totals = (("growth", run.summary.growths), ("pruning", run.summary.prunings))
    return [
        (kind, phase, how_many(n, kind))
        for kind, phases in totals
        for phase, n in (phases._asdict() if phases else {}).items()
    ]


def drifts(run: ShownRun) -> list[tuple[str, str]]:
    """Phase, and how many drifts it has signalled, where it has."""
    counted = run.summary.drifts._asdict() if run.summary.drifts else {}
    return [(phase, how_many(n, f"{DRIFTS[phase]} drift")) for phase, n in counted.items() if n]


_OF_THE_STREAM = (
    "stream",
    "origin",
    "n_samples",
    "n_features",
    "target",
    "order",
    "limit",
    "scaled",
    "chunk",
    "labels",
)
ELSEWHERE = {
    "options",
    "versions",
    "machine",
    "command",
    "model",
    "seed",
    "started",
    "devdan",
    "source",
    "header",
    "drop",
}


def settings(run: ShownRun) -> dict[str, Rows]:
    """What was run, by subject; what is not known is left out."""
    info = run.info
    stream = [(name(key), shown(info[key])) for key in _OF_THE_STREAM if info.get(key) is not None]
    stream.append(("classes", number(len(run.summary.classes))))
    stream += [(name(key), shown(info[key])) for key in info if key not in {*_OF_THE_STREAM, *ELSEWHERE}]
    model = [(key, shown(info[key])) for key in ("model", "seed") if info.get(key) is not None]
    machine = [("started", moment(info["started"]))] if info.get("started") else []
    machine += [(name(key), shown(value)) for key, value in inner(info, "machine")]
    machine += [(key, shown(value)) for key, value in inner(info, "versions")]
    model += [(key, shown(value)) for key, value in inner(info, "options")]
    return {title: rows for title, rows in (("Stream", stream), ("Model", model), ("Machine", machine)) if rows}


def inner(info: dict[str, Any], group: str) -> list[tuple[str, Any]]:
    inner = info.get(group)
    return list(inner.items()) if isinstance(inner, dict) else []


def name(key: str) -> str:
    return key.removeprefix("n_").replace("_", " ")


def shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return number(value) if abs(value) >= 10_000 else str(value)
    return "none" if value is None else str(value)
