"""What is said of a run where there is too little for a chart."""

from __future__ import annotations

from devdan.evaluation.record import Phases
from devdan.report.run.event_marks import changes_legend, markers
from devdan.report.run.shown_run import ShownRun
from devdan.report.words import how_many, percent


def about_accuracy(run: ShownRun) -> str:
    """Why there is no curve of the accuracy."""
    confusion, n_chunks = run.summary.confusion, run.summary.n_chunks
    if confusion.n_samples:
        return (
            f"{percent(confusion.accuracy)} of {how_many(confusion.n_samples, 'sample')}, all in one chunk: no curve."
        )
    if n_chunks == 0:
        return "The run has begun. Its first chunk has not been processed yet."
    if n_chunks == 1:
        chunk = "All samples are" if run.finished else "So far all samples are"
        return (
            f"{chunk} in the first chunk, which is learned before anything is predicted, so nothing has been scored. "
            "With smaller chunks, those after the first would be."
        )
    return "No prediction has been scored yet."


def about_units(run: ShownRun) -> str:
    """The hidden units after a single chunk, and how they came about."""
    last = run.last
    if last is None or last.n_hidden is None:
        return ""
    changes = [key.text for key in changes_legend(markers(run.bins, run.summary.n_samples))]
    told = "; ".join([*changes, *_running_means(last.bias2, last.variance)])
    return f"{how_many(last.n_hidden, run.units.removesuffix('s'))} after the first chunk" + (
        f": {told}." if told else "."
    )


def _running_means(bias2: Phases | None, variance: Phases | None) -> list[str]:
    found = []
    for phase in Phases._fields:
        pair = [None if of is None else of.of(phase) for of in (bias2, variance)]
        if None not in pair:
            found.append(f"bias² {pair[0]:.3g} and variance {pair[1]:.3g} in the {phase} phase")
    return found
