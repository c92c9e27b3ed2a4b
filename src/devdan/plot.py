"""Plots for notebooks, with Matplotlib, in the manner of scikit-learn's displays: ``pip install 'devdan[plot]'``.

Most take the records of an evaluation, or those that a run has kept (``RunFolder("runs/sea-devdan").records()``). All
take ``ax`` to draw into, and have ``ax_`` and ``figure_`` to change what was drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.metrics import ConfusionMatrixDisplay

from devdan.evaluation.counts import Level
from devdan.evaluation.record import Record, Summary
from devdan.model.classifier import EvolvingClassifier
from devdan.model.explain import Explanation
from devdan.report.bins import Bin, Bins, smooth_accuracy
from devdan.report.chart import in_percent
from devdan.report.class_charts import LARGEST_WITH_TEXT, by_name, grouped
from devdan.report.event_marks import Marker, drifts, markers
from devdan.report.words import DRIFTS

__all__ = [
    "AccuracyDisplay",
    "ConfusionDisplay",
    "ExplanationDisplay",
    "ImportancesDisplay",
    "ReliabilityDisplay",
    "StructureDisplay",
]


def _axes(ax: Any) -> Any:
    """These axes, or new ones."""
    try:
        import matplotlib.pyplot as plt  # noqa: PLC0415 (an optional extra)
    except ModuleNotFoundError as error:
        message = "devdan.plot needs Matplotlib: pip install 'devdan[plot]'"
        raise ModuleNotFoundError(message, name=error.name) from error
    return plt.subplots()[1] if ax is None else ax


class _Display:
    def _draw_into(self, ax: Any) -> Any:
        """Set ``ax_`` and ``figure_``."""
        self.ax_ = _axes(ax)
        self.figure_ = self.ax_.figure
        return self.ax_


class AccuracyDisplay(_Display):
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
        ax = self._draw_into(ax)
        (self.line_,) = ax.plot(self.samples, _gaps(self.moving_mean), label=name, **line)
        behind = self.line_.get_zorder() - 0.1
        faint = {"color": self.line_.get_color(), "alpha": 0.4, "linewidth": 0.8, "zorder": behind}
        ax.plot(self.samples, _gaps(self.accuracy), **faint)
        told = set[str]()
        for sample in self.true_drifts:
            self._upright(sample, "true drift", told, color="0.5", linestyle="--")
        for sample, phase in self.signalled:
            style = "-" if phase == "discriminative" else ":"
            self._upright(sample, f"{DRIFTS[phase]} drift signalled", told, color="C1", linestyle=style)
        if name is not None or told:
            ax.legend()
        ax.set(xlabel="samples", ylabel="accuracy, %")
        return self

    def _upright(self, sample: int, text: str, told: set[str], **look: Any) -> None:
        self.ax_.axvline(sample, linewidth=1, zorder=1.5, label=None if text in told else text, **look)
        told.add(text)


def _gaps(values: Sequence[float | None]) -> list[float]:
    return [float("nan") if value is None else value for value in values]


class StructureDisplay(_Display):
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
        ax = self._draw_into(ax)
        options = {"color": "0.4", "label": name, "where": "post", **line}
        (self.line_,) = ax.step(self.samples, self.n_hidden, **options)
        looks = {"growth": {"marker": "^", "color": "C0"}, "pruning": {"marker": "v", "color": "C1"}}
        for kind, phase in sorted({(marker.kind, marker.phase) for marker in self.changes}):
            own = [marker for marker in self.changes if (marker.kind, marker.phase) == (kind, phase)]
            ax.plot(
                [marker.sample for marker in own],
                [marker.n_hidden for marker in own],
                linestyle="none",
                fillstyle="full" if phase == "discriminative" else "none",
                label=f"{kind}, {phase}",
                **looks[kind],
            )
        if name is not None or self.changes:
            ax.legend()
        ax.set(xlabel="samples", ylabel="hidden units", ylim=(0, None))
        return self


class ReliabilityDisplay(_Display):
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
        ax = self._draw_into(ax)
        ax.axline((1, 1), slope=1, color="0.5", linestyle="--", linewidth=1)
        sure, right = [level.confidence for level in self.levels], [level.share_right for level in self.levels]
        text = f"calibration error {self.error:.3f}"
        (self.line_,) = ax.plot(sure, right, label=f"{name}, {text}" if name else text, **line)
        most = max(level.n_samples for level in self.levels)
        sizes = [10 + 150 * level.n_samples / most for level in self.levels]
        ax.scatter(sure, right, sizes, color=self.line_.get_color(), zorder=self.line_.get_zorder() + 0.1)
        ax.legend()
        ax.set(xlabel="confidence", ylabel="share of right predictions")
        return self


class ImportancesDisplay(_Display):
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
    def from_model(
        cls, model: EvolvingClassifier, *, most: int = 10, ax: Any = None, **bars: Any
    ) -> ImportancesDisplay:
        """Draw the columns that matter most now; ``bars`` are Matplotlib's options for the bars."""
        told = {name: [importance] for name, importance in model.importances_.items()}
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
        columns = list(zip(*(importances for _, importances in told), strict=True))
        if names is not None and len(names) != len(columns):
            raise ValueError(f"names must be those of the {len(columns)} columns, got {len(names)}")
        named = dict(zip(names or [f"x{k}" for k in range(len(columns))], columns, strict=True))
        return cls(importances=_strongest(named, most), samples=[end for end, _ in told]).plot(ax, **lines)

    def plot(self, ax: Any = None, **options: Any) -> ImportancesDisplay:
        """Draw it: lines with a legend, or bars with the strongest on top."""
        ax = self._draw_into(ax)
        self.bars_, self.lines_ = [], []
        if len(self.samples) > 0:
            for name, values in self.importances.items():
                self.lines_ += ax.plot(self.samples, values, label=name, **options)
            ax.legend()
            ax.set(xlabel="samples", ylabel="importance", ylim=(0, None))
        else:
            latest = [float(values[-1]) for values in self.importances.values()]
            self.bars_ = list(ax.barh(list(self.importances), latest, **options))
            ax.invert_yaxis()
            ax.set(xlabel="importance", xlim=(0, None))
        return self


def _strongest(told: Mapping[str, Sequence[float]], most: int) -> dict[str, Sequence[float]]:
    """The columns with the largest means, the strongest first."""
    return dict(sorted(told.items(), key=lambda item: -float(np.mean(item[1])))[:most])


class ExplanationDisplay(_Display):
    """The strongest contributions to the log-odds of a class, for and against it, and what the other columns add.

    Attributes
    ----------
    ax_, figure_ : where it was drawn.
    bars_ : the bars, the strongest first.

    >>> import numpy as np
    >>> from devdan import DEVDAN
    >>> X = np.random.default_rng(0).normal(size=(2000, 3))
    >>> model = DEVDAN(random_state=0).fit(X, X[:, 1] > 0)
    >>> ExplanationDisplay.from_explanation(model.explain(X[:1])).ax_.get_xlabel()
    'contribution to the log-odds'
    """

    def __init__(self, *, contributions: Sequence[tuple[str, float]], title: str = "") -> None:
        self.contributions, self.title = contributions, title

    @classmethod
    def from_explanation(
        cls, explanation: Explanation, row: int = 0, *, most: int = 8, ax: Any = None, **bars: Any
    ) -> ExplanationDisplay:
        """Draw the explanation of one sample; ``bars`` are Matplotlib's options for the bars."""
        strongest = explanation.strongest(row, most)
        n_others = int((explanation.contributions[row] != 0.0).sum()) - len(strongest)
        if n_others:
            rest = explanation.contributions[row].sum() - sum(value for _, value in strongest)
            strongest.append((f"{n_others} other{'s' * (n_others > 1)}", float(rest)))
        title = (
            f"{explanation.labels[row]}: log-odds {explanation.log_odds[row]:+.2f}, {explanation.baseline[row]:+.2f} "
            "if nothing is known"
        )
        return cls(contributions=strongest, title=title).plot(ax, **bars)

    def plot(self, ax: Any = None, **bars: Any) -> ExplanationDisplay:
        """Draw it, what speaks for the class to the right."""
        ax = self._draw_into(ax)
        values = [value for _, value in self.contributions]
        options = {"color": ["C0" if value > 0 else "C1" for value in values], **bars}
        self.bars_ = list(ax.barh([name for name, _ in self.contributions], values, **options))
        ax.axvline(0, color="0.5", linewidth=1)
        ax.invert_yaxis()
        ax.set(xlabel="contribution to the log-odds", title=self.title)
        return self


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
        axes = {"true": 1, "pred": 0, "all": None}  # over which the counts are summed
        if normalize not in (None, *axes):
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
            matrix = matrix / np.maximum(matrix.sum(axis=axes[normalize], keepdims=True), 1)
        options = {"include_values": is_small, "values_format": None if normalize is None else ".2f", **options}
        display = cls(confusion_matrix=matrix, display_labels=[names[c] for c in order])
        plotted: ConfusionDisplay = display.plot(ax=_axes(ax), **options)
        return plotted
