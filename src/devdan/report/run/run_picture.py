"""A run as one figure, for a README: accuracy above, hidden units below."""

from __future__ import annotations

from markupsafe import Markup

from devdan.report.drawing.picture_frame import RIGHT, WIDTH, caption, framed, placed
from devdan.report.drawing.words import number
from devdan.report.run import run_charts as charts
from devdan.report.run import run_legend
from devdan.report.run.shown_run import ShownRun

_KEYS = (290, 390)  # where the keys of a legend begin


def picture_of_run(run: ShownRun) -> str:
    """An SVG document with a transparent background, for light and dark pages."""
    rate, spread = number(run.summary.rate.mean, 1), number(run.summary.rate.std, 1)
    body = caption(24, "Accuracy", f"{run.title}, {rate} ± {spread} %") + drift_legend(24, run)
    top = 42
    for chart, height, head in (
        (charts.accuracy(run), 200, ""),
        (charts.hidden_units(run), 130, run.units.capitalize()),
    ):
        if chart is None:
            continue
        if head:
            body += caption(top + 12, head, "") + legend(top + 12)
            top += 30
        body += placed(top, height, chart.body)
        top += height + 58
    return framed(f"{run.title}: accuracy and {run.units} over {run.summary.n_samples:,} samples", top - 12, body)


def drift_legend(y: float, run: ShownRun) -> Markup:
    """Legend for the drift lines in use."""
    body = Markup("")
    for (phase, total), x in zip(run_legend.drifts(run), _KEYS, strict=False):
        body += Markup(
            '<line class="drift {0}" x1="{1}" x2="{1}" y1="{2}" y2="{3}"/><text x="{4}" y="{3}">{5}</text>'
        ).format(phase, x, y - 13, y, x + 8, total)
    return body


def legend(y: float) -> Markup:
    """Legend for growth and pruning marks."""
    body = Markup('<text x="{}" y="{}" text-anchor="end">open: generative phase, filled: discriminative</text>').format(
        WIDTH - RIGHT, y
    )
    for kind, x in zip(("growth", "pruning"), _KEYS, strict=True):
        for phase, shift in (("generative", 0), ("discriminative", 14)):
            body += Markup('<use href="#{0}" class="{0} {1}" x="{2}" y="{3}"/>').format(kind, phase, x + shift, y - 4)
        body += Markup('<text x="{}" y="{}">{}</text>').format(x + 26, y, kind)
    return body
