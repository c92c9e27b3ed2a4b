"""Accuracy over time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from devdan.evaluation.record import Record
from devdan.plot.display_axes import axes_for
from devdan.report.bins import Bin, Bins, smooth_accuracy
from devdan.report.chart import in_percent
from devdan.report.events import drifts
from devdan.report.words import DRIFTS

_LOOKS = {"discriminative": {"color": "C1", "linestyle": "-"}, "generative": {"color": "C1", "linestyle": ":"}}


class AccuracyDisplay:
    """The accuracy of chunks in percent, its moving mean, and drifts: those signalled and, if known, the true ones.

    Attributes
    ----------
    ax_, figure_ : where it was drawn.
    line_ : the moving mean.

    >>> from devdan import DEVDAN
    >>> from devdan.evaluation import prequential
    >>> from devdan.streams import sea
    >>> stream = sea(20_000)
    >>> records = list(prequential(stream, DEVDAN(random_state=0)))
    >>> display = AccuracyDisplay.from_records(records, true_drifts=stream.drifts)
    >>> display.ax_.get_ylabel()
    'accuracy, %'
    """

    def __init__(
        self,
        *,
        samples: Sequence[int],
        accuracy: Sequence[float | None],
        moving_mean: Sequence[float | None],
        signalled: Sequence[tuple[int, str]] = (),
        true_drifts: Sequence[int] = (),
    ) -> None:
        self.samples, self.accuracy, self.moving_mean = samples, accuracy, moving_mean
        self.signalled, self.true_drifts = signalled, true_drifts  # sample and phase; sample

    @classmethod
    def from_records(
        cls,
        records: Iterable[Record],
        *,
        true_drifts: Sequence[int] | None = None,
        name: str | None = None,
        ax: Any = None,
        **line: Any,
    ) -> AccuracyDisplay:
        """Draw the accuracy of an evaluation; ``line`` are Matplotlib's options for the moving mean."""
        bins: Bins[Bin] = Bins(map(Bin.of, records))
        display = cls(
            samples=[bin.end for bin in bins],
            accuracy=in_percent(bin.accuracy for bin in bins),
            moving_mean=in_percent(smooth_accuracy(bins)),
            signalled=[(marker.sample, marker.phase) for marker in drifts(bins)],
            true_drifts=true_drifts or (),
        )
        return display.plot(ax, name=name, **line)

    def plot(self, ax: Any = None, *, name: str | None = None, **line: Any) -> AccuracyDisplay:
        """Draw it, with a legend if it has a name or drifts."""
        self.ax_ = axes_for(ax)
        self.figure_ = self.ax_.figure
        (self.line_,) = self.ax_.plot(self.samples, _gaps(self.moving_mean), label=name, **line)
        faint = {
            "color": self.line_.get_color(),
            "alpha": 0.4,
            "linewidth": 0.8,
            "zorder": self.line_.get_zorder() - 0.1,
        }
        self.ax_.plot(self.samples, _gaps(self.accuracy), **faint)
        told = set[str]()
        for sample in self.true_drifts:
            self._upright(sample, "true drift", told, color="0.5", linestyle="--")
        for sample, phase in self.signalled:
            self._upright(sample, f"{DRIFTS[phase]} drift signalled", told, **_LOOKS[phase])
        if name is not None or told:
            self.ax_.legend()
        self.ax_.set(xlabel="samples", ylabel="accuracy, %")
        return self

    def _upright(self, sample: int, text: str, told: set[str], **look: Any) -> None:
        self.ax_.axvline(sample, linewidth=1, zorder=1.5, label=None if text in told else text, **look)
        told.add(text)


def _gaps(values: Sequence[float | None]) -> list[float]:
    return [float("nan") if value is None else value for value in values]
