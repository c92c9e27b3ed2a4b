"""Whether a model is as sure as it is right."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from devdan.evaluation.record import Record, Summary
from devdan.evaluation.reliability import Level
from devdan.plot.display_axes import axes_for


class ReliabilityDisplay:
    """The share of right predictions against the confidence they were made with; the larger a point, the more of them.

    Attributes
    ----------
    ax_, figure_ : where it was drawn.
    line_ : the curve.

    >>> from devdan import DEVDAN
    >>> from devdan.evaluation import prequential
    >>> from devdan.streams import sea
    >>> display = ReliabilityDisplay.from_records(prequential(sea(5000), DEVDAN(random_state=0)))
    >>> display.error < 0.2
    True
    """

    def __init__(self, *, levels: Sequence[Level], error: float) -> None:
        self.levels, self.error = levels, error  # the expected calibration error

    @classmethod
    def from_records(
        cls, records: Iterable[Record], *, name: str | None = None, ax: Any = None, **line: Any
    ) -> ReliabilityDisplay:
        """Draw the reliability of an evaluation; ``line`` are Matplotlib's options for the curve."""
        told = Summary(records).reliability
        if told.error is None:
            raise ValueError("records must be of a model that tells probabilities, got none with a confidence")
        return cls(levels=told.levels, error=told.error).plot(ax, name=name, **line)

    def plot(self, ax: Any = None, *, name: str | None = None, **line: Any) -> ReliabilityDisplay:
        """Draw it, beside the line of a calibrated model."""
        self.ax_ = axes_for(ax)
        self.figure_ = self.ax_.figure
        self.ax_.axline((1, 1), slope=1, color="0.5", linestyle="--", linewidth=1)
        sure, right = [level.confidence for level in self.levels], [level.share_right for level in self.levels]
        text = f"calibration error {self.error:.3f}"
        (self.line_,) = self.ax_.plot(sure, right, label=f"{name}, {text}" if name else text, **line)
        most = max(level.n_samples for level in self.levels)
        sizes = [10 + 150 * level.n_samples / most for level in self.levels]
        self.ax_.scatter(sure, right, sizes, color=self.line_.get_color(), zorder=self.line_.get_zorder() + 0.1)
        self.ax_.legend()
        self.ax_.set(xlabel="confidence", ylabel="share of right predictions")
        return self
