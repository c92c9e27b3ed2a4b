"""Whether the model is as sure as it is right."""

from __future__ import annotations

from markupsafe import Markup

from devdan.report.chart import Chart, LegendEntry, Plot, mark, stroke
from devdan.report.run.shown_run import ShownRun
from devdan.report.words import percent

_LARGEST = 9.0  # the radius of the level with most predictions, in pixels


def reliability(run: ShownRun) -> Chart | None:
    """The share of right predictions against their confidence; None for a model that does not tell it."""
    levels = run.summary.reliability.levels
    if not levels:
        return None
    low = 0.5 if all(min(level.confidence, level.share_right) >= 0.5 for level in levels) else 0.0
    plot = Plot(1000, 100 * low, 100)

    def across(confidence: float) -> float:
        return 1000 * (confidence - low) / (1 - low)

    steps = [100 * low + k * 20 * (1 - low) for k in range(6)]
    below = [(across(step / 100), f"{step:g} %") for step in steps]
    body = plot.axes(steps, " %", below, "confidence")
    body += Markup('<line class="ideal" x1="0" y1="100%" x2="100%" y2="0"/>')
    body += plot.stretched(
        plot.line(
            [across(level.confidence) for level in levels], [100 * level.share_right for level in levels], "bias2"
        )
    )
    most = max(level.n_samples for level in levels)
    for level in levels:
        text = (
            f"{level.n_samples:,} predictions of {percent(level.confidence)} confidence: "
            f"{percent(level.share_right)} right"
        )
        body += Markup('<circle class="level" cx="{:.2f}%" cy="{:.2f}%" r="{:.1f}"><title>{}</title></circle>').format(
            plot.x(across(level.confidence)),
            plot.y(100 * level.share_right),
            max(2.5, _LARGEST * (level.n_samples / most) ** 0.5),
            text,
        )
    told = f"Calibration error {run.summary.calibration_error or 0:.3f}. " + "; ".join(
        f"{percent(level.confidence, 0)} sure, {percent(level.share_right, 0)} right" for level in levels
    )
    legend: list[LegendEntry] = [
        mark("dot", "level", "predictions of about this confidence"),
        stroke("ideal", "calibrated"),
    ]
    return Chart(body, f"{told}.", legend)
