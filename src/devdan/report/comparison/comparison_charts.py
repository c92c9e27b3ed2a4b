"""Several runs in one chart."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from devdan.report.chart import LANE, Chart, Plot, Values, filled, in_percent, moving, stroke, ticks
from devdan.report.run.bins import smooth_accuracy
from devdan.report.run.event_marks import drawn_true_drifts, drifts
from devdan.report.run.shown_run import ShownRun
from devdan.report.words import letter


def accuracies(runs: Sequence[ShownRun], names: Sequence[str]) -> Chart | None:
    """The moving means of several runs' accuracies, the true drifts of their stream and those signalled by each."""
    lines = [in_percent(smooth_accuracy(run.bins)) for run in runs]
    end = max(run.summary.n_samples for run in runs)
    plot = filled(end, [value for line in lines for value in line])
    if plot is None:
        return None
    drawn = [
        plot.line([bin.end for bin in runs[place].bins], lines[place], f"run s{place % 10}")
        for place in _longest_first(runs)
    ]
    legend = [stroke(f"run s{place % 10}", name) for place, name in enumerate(names)]
    true = drawn_true_drifts(plot, _in_common(runs))
    lanes, n_lanes = true.lanes, true.n_lanes
    for place, run in enumerate(runs):
        signalled = drifts(run.bins)
        if signalled:
            lanes += plot.lane(
                [marker.sample for marker in signalled], f"lane s{place % 10}", n_lanes, letter(place), f"t{place % 10}"
            )
            n_lanes += 1
    legend += true.legend
    body = plot.axes(ticks(plot.low, min(plot.high, 100), 5), " %", lower=LANE * n_lanes)
    body += moving(true.lines, plot.stretched(*drawn), _letters(plot, runs, lines)) + lanes
    label = f"Moving means of the accuracy of {len(runs)} runs; at the end: " + ", ".join(
        f"{letter(n)} {line[-1]:.1f} %" for n, line in enumerate(lines) if line[-1] is not None
    )
    return Chart(body, f"{label}.", legend, LANE * n_lanes)


def _in_common(runs: Sequence[ShownRun]) -> list[int]:
    """The true drifts, if all runs are on the same stream."""
    longest = max(runs, key=lambda run: run.summary.n_samples)
    return longest.true_drifts if len({repr(run.info.get("stream")) for run in runs}) == 1 else []


def hidden_units(runs: Sequence[ShownRun]) -> Chart | None:
    """The hidden units of several runs."""
    lines: list[Values] = [[bin.n_hidden for bin in run.bins] for run in runs]
    known = [value for line in lines for value in line if value is not None]
    if not known:
        return None
    plot = Plot(max(run.summary.n_samples for run in runs), 0, 1.1 * max(known) + 0.5)
    drawn = [
        plot.steps([bin.end for bin in runs[place].bins], lines[place], f"run s{place % 10}")
        for place in _longest_first(runs)
    ]
    body = plot.axes(ticks(0, plot.high, 5, smallest=1))
    body += moving(plot.stretched(*drawn), _letters(plot, runs, lines))
    return Chart(body, f"Hidden units of {len(runs)} runs.")


def _longest_first(runs: Sequence[ShownRun]) -> list[int]:
    """The drawing order of the runs: a short line must not disappear under a long one."""
    return sorted(range(len(runs)), key=lambda place: -runs[place].summary.n_samples)


def _letters(plot: Plot, runs: Sequence[ShownRun], lines: Sequence[Values]) -> Markup:
    """Each run's letter at the end of its line, moved down if it would cover another."""
    ends = [(next((v for v in reversed(line) if v is not None), None), n) for n, line in enumerate(lines)]
    body, placed = Markup(""), list[tuple[float, float]]()
    for value, n in sorted((value, n) for value, n in ends if value is not None)[::-1]:
        x, y = plot.x(runs[n].summary.n_samples), plot.y(value)
        y = max([y, *(above + 6 for beside, above in placed if abs(beside - x) < 4)])
        placed.append((x, y))
        body += Markup('<text class="letter t{}" x="{:.2f}%" y="{:.2f}%" dx="5" dy=".33em">{}</text>').format(
            n % 10, x, y, letter(n)
        )
    return body
