"""The headline figures of a run."""

from __future__ import annotations

from devdan.report.drawing.tile import Tile
from devdan.report.drawing.words import how_many, number, percent, seconds, short
from devdan.report.run.shown_run import ShownRun


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
