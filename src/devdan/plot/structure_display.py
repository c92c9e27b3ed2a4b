"""The size of the network over time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from devdan.evaluation.record import Record
from devdan.plot.display_axes import axes_for
from devdan.report.bins import Bin, Bins
from devdan.report.events import Marker, markers

_MARKS = {"growth": {"marker": "^", "color": "C0"}, "pruning": {"marker": "v", "color": "C1"}}


class StructureDisplay:
    """Hidden units, or rules, after each chunk; growths and prunings, open in the generative phase, else filled.

    Attributes
    ----------
    ax_, figure_ : where it was drawn.
    line_ : the number of units.

    >>> from devdan import DEVDAN
    >>> from devdan.evaluation import prequential
    >>> from devdan.streams import sea
    >>> display = StructureDisplay.from_records(prequential(sea(5000), DEVDAN(random_state=0)))
    >>> display.ax_.get_ylabel()
    'hidden units'
    """

    def __init__(self, *, samples: Sequence[int], n_hidden: Sequence[int], changes: Sequence[Marker] = ()) -> None:
        self.samples, self.n_hidden, self.changes = samples, n_hidden, changes

    @classmethod
    def from_records(
        cls, records: Iterable[Record], *, name: str | None = None, ax: Any = None, **line: Any
    ) -> StructureDisplay:
        """Draw the structure of a model during an evaluation; ``line`` are Matplotlib's options for its size."""
        bins: Bins[Bin] = Bins(map(Bin.of, records))
        sizes = [(bin.end, bin.n_hidden) for bin in bins if bin.n_hidden is not None]
        if not sizes:
            raise ValueError("records must be of a model with hidden units or rules, got none that has them")
        display = cls(
            samples=[end for end, _ in sizes],
            n_hidden=[size for _, size in sizes],
            changes=markers(bins, bins[-1].end),
        )
        return display.plot(ax, name=name, **line)

    def plot(self, ax: Any = None, *, name: str | None = None, **line: Any) -> StructureDisplay:
        """Draw it, with a legend if it has a name or changes."""
        self.ax_ = axes_for(ax)
        self.figure_ = self.ax_.figure
        options = {"color": "0.4", "label": name, "where": "post", **line}
        (self.line_,) = self.ax_.step(self.samples, self.n_hidden, **options)
        for kind, phase in sorted({(marker.kind, marker.phase) for marker in self.changes}):
            own = [marker for marker in self.changes if (marker.kind, marker.phase) == (kind, phase)]
            self.ax_.plot(
                [marker.sample for marker in own],
                [marker.n_hidden for marker in own],
                linestyle="none",
                fillstyle="full" if phase == "discriminative" else "none",
                label=f"{kind}, {phase}",
                **_MARKS[kind],
            )
        if name is not None or self.changes:
            self.ax_.legend()
        self.ax_.set(xlabel="samples", ylabel="hidden units", ylim=(0, None))
        return self
