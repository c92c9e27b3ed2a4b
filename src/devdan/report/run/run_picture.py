"""A run as one figure, for a README: accuracy above, hidden units below."""

from __future__ import annotations

from devdan.report.picture import caption, framed, legend, placed
from devdan.report.run import run_charts as charts
from devdan.report.run.shown_run import ShownRun
from devdan.report.words import number


def picture_of_run(run: ShownRun) -> str:
    """An SVG document with a transparent background, for light and dark pages."""
    rate, spread = number(run.summary.rate.mean, 1), number(run.summary.rate.std, 1)
    body, top = caption(24, f"Accuracy on {run.title}", f"{rate} ± {spread} %"), 26
    for chart, height, head in (
        (charts.accuracy(run), 200, ""),
        (charts.hidden_units(run), 130, run.units.capitalize()),
    ):
        if chart is None:
            continue
        if head:
            body += caption(top + 12, head, "")
            top += 14
        body += legend(top + 18, chart.legend)
        top += 34
        body += placed(top, height, chart.body)
        top += height + chart.lower + 58
    return framed(f"{run.title}: accuracy and {run.units} over {run.summary.n_samples:,} samples", top - 12, body)
