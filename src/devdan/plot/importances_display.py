"""Which columns matter, now or over time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from devdan.evaluation.record import Record
from devdan.model.insight import Insight
from devdan.plot.display_axes import axes_for


class ImportancesDisplay:
    """The importances of the columns that matter most: bars for a model, lines over time for records.

    Attributes
    ----------
    ax_, figure_ : where it was drawn.
    bars_, lines_ : the bars, or the lines; the other is empty.

    >>> from devdan import DEVDAN
    >>> from devdan.evaluation import prequential
    >>> from devdan.streams import sea
    >>> stream, model = sea(5000), DEVDAN(random_state=0)
    >>> records = list(prequential(stream, model))
    >>> display = ImportancesDisplay.from_records(records, stream.feature_names)
    >>> [line.get_label() for line in display.lines_][-1]
    'x3'
    >>> ImportancesDisplay.from_model(model).ax_.get_xlabel()
    'importance'
    """

    def __init__(self, *, importances: Mapping[str, Sequence[float]], samples: Sequence[int] = ()) -> None:
        self.importances, self.samples = importances, samples  # of each column, at each place of the stream, if any

    @classmethod
    def from_model(cls, model: Insight, *, most: int = 10, ax: Any = None, **bars: Any) -> ImportancesDisplay:
        """Draw the columns that matter most now; ``bars`` are Matplotlib's options for the bars."""
        told = {name: [share] for name, share in model.importances_.items()}
        return cls(importances=_strongest(told, most)).plot(ax, **bars)

    @classmethod
    def from_records(
        cls,
        records: Iterable[Record],
        names: Sequence[str] | None = None,
        *,
        most: int = 5,
        ax: Any = None,
        **lines: Any,
    ) -> ImportancesDisplay:
        """Draw the columns that mattered most, by their ``names``; ``lines`` are Matplotlib's options for the lines."""
        told = [(one.start + one.n_samples, one.importances) for one in records if one.importances is not None]
        if not told:
            raise ValueError("records must be of a DEVDAN or its ensemble that was taught labels, got no importances")
        columns = list(zip(*(shares for _, shares in told), strict=True))
        if names is not None and len(names) != len(columns):
            raise ValueError(f"names must be those of the {len(columns)} columns, got {len(names)}")
        named = dict(zip(names or [f"x{k}" for k in range(len(columns))], columns, strict=True))
        return cls(importances=_strongest(named, most), samples=[end for end, _ in told]).plot(ax, **lines)

    def plot(self, ax: Any = None, **options: Any) -> ImportancesDisplay:
        """Draw it: lines with a legend, or bars with the strongest on top."""
        self.ax_ = axes_for(ax)
        self.figure_ = self.ax_.figure
        self.bars_, self.lines_ = [], []
        if len(self.samples) > 0:
            for name, shares in self.importances.items():
                self.lines_ += self.ax_.plot(self.samples, shares, label=name, **options)
            self.ax_.legend()
            self.ax_.set(xlabel="samples", ylabel="importance", ylim=(0, None))
        else:
            shares = [float(own[-1]) for own in self.importances.values()]
            self.bars_ = list(self.ax_.barh(list(self.importances), shares, **options))
            self.ax_.invert_yaxis()
            self.ax_.set(xlabel="importance", xlim=(0, None))
        return self


def _strongest(told: Mapping[str, Sequence[float]], most: int) -> dict[str, Sequence[float]]:
    """The columns with the largest means, the strongest first."""
    return dict(sorted(told.items(), key=lambda item: -float(np.mean(item[1])))[:most])
