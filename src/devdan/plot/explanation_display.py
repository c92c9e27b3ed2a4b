"""Why a sample is taken for what it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from devdan.model.explanation import Explanation
from devdan.plot.display_axes import axes_for


class ExplanationDisplay:
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
        self.ax_ = axes_for(ax)
        self.figure_ = self.ax_.figure
        values = [value for _, value in self.contributions]
        options = {"color": ["C0" if value > 0 else "C1" for value in values], **bars}
        self.bars_ = list(self.ax_.barh([name for name, _ in self.contributions], values, **options))
        self.ax_.axvline(0, color="0.5", linewidth=1)
        self.ax_.invert_yaxis()
        self.ax_.set(xlabel="contribution to the log-odds", title=self.title)
        return self
