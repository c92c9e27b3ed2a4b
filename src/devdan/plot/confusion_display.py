"""What is taken for what."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.metrics import ConfusionMatrixDisplay

from devdan.evaluation.record import Record, Summary
from devdan.plot.display_axes import axes_for
from devdan.report.classes import LARGEST_WITH_TEXT, by_name, grouped

_SUMS = {"true": 1, "pred": 0, "all": None}


class ConfusionDisplay(ConfusionMatrixDisplay):  # type: ignore[misc]
    """scikit-learn's display of the confusion matrix, from records.

    Classes are in the order of their names; many of them in an order that puts those next to each other that are taken
    for each other.

    >>> from devdan import DEVDAN
    >>> from devdan.evaluation import prequential
    >>> from devdan.streams import sea
    >>> display = ConfusionDisplay.from_records(prequential(sea(5000), DEVDAN(random_state=0)), normalize="true")
    >>> display.confusion_matrix.sum(axis=1)
    array([1., 1.])
    """

    @classmethod
    def from_records(
        cls, records: Iterable[Record], *, normalize: str | None = None, ax: Any = None, **options: Any
    ) -> ConfusionDisplay:
        """Draw the confusions of an evaluation: counts or, with ``normalize``, shares of "true", "pred" or "all"."""
        if normalize not in (None, *_SUMS):
            raise ValueError(f"normalize must be 'true', 'pred', 'all' or None, got {normalize!r}")
        summary = Summary(records)
        if not summary.confusion.n_samples:
            raise ValueError("records must have scored predictions, got none")
        names = [str(name) for name in summary.classes]
        is_small = len(names) <= LARGEST_WITH_TEXT
        counts = {(true, guess): n for true, guess, n in summary.counts}
        order = by_name(range(len(names)), names) if is_small else grouped(range(len(names)), counts)
        matrix = np.array([[counts.get((true, guess), 0) for guess in order] for true in order])
        if normalize is not None:
            matrix = matrix / np.maximum(matrix.sum(axis=_SUMS[normalize], keepdims=True), 1)
        options = {"include_values": is_small, "values_format": None if normalize is None else ".2f", **options}
        display = cls(confusion_matrix=matrix, display_labels=[names[c] for c in order])
        plotted: ConfusionDisplay = display.plot(ax=axes_for(ax), **options)
        return plotted
