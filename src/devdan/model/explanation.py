"""Why a model predicts what it predicts: the contribution of each column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from devdan.arrays import Floats
from devdan.html_table import html_table

_SHOWN_ROWS, _SHOWN_COLUMNS = 10, 5


@dataclass(frozen=True, eq=False)
class Explanation:
    """For each sample, what its columns contribute to the log-odds of a class: ln p / (1 - p).

    The contributions of a sample add up to the log-odds of its class less those at the baseline, where no column is
    known. A contribution above 0 speaks for the class; of 0.69, it doubles the odds.

    Attributes
    ----------
    columns : the names of the columns, as in ``feature_names_in_``.
    contributions : array of one row per sample and one column per column of X; 0 for a column that is left out.
    labels : the class explained, for each sample.
    log_odds : the log-odds of that class.
    baseline : its log-odds if no column is known.

    >>> import numpy as np
    >>> from devdan import DEVDAN
    >>> X = np.random.default_rng(0).normal(size=(2000, 3))
    >>> model = DEVDAN(random_state=0).fit(X, X[:, 1] > 0)
    >>> told = model.explain([[0.0, 2.0, 0.0]])
    >>> told
    <Explanation of 1 sample by 3 columns>
    >>> told.labels.tolist(), told.strongest(0, most=1)[0][0]
    ([True], 'x1')
    >>> np.allclose(told.contributions.sum(axis=1), told.log_odds - told.baseline)
    True
    """

    columns: tuple[str, ...]
    contributions: Floats
    labels: npt.NDArray[Any]
    log_odds: Floats
    baseline: Floats

    def __len__(self) -> int:
        return len(self.labels)

    def strongest(self, row: int = 0, most: int = _SHOWN_COLUMNS) -> list[tuple[str, float]]:
        """The columns that contribute most to a sample, for or against its class, the strongest first."""
        own = self.contributions[row]
        order = np.argsort(-np.abs(own), kind="stable")[:most]
        return [(self.columns[k], float(own[k])) for k in order if own[k] != 0.0]

    def __repr__(self) -> str:
        n, m = len(self), len(self.columns)
        return f"<Explanation of {n:,} sample{'s' * (n != 1)} by {m:,} column{'s' * (m != 1)}>"

    def _repr_html_(self) -> str:
        shown = range(min(len(self), _SHOWN_ROWS))
        rows = [
            (
                row,
                self.labels[row],
                f"{100 / (1 + np.exp(-self.log_odds[row])):.1f} %",
                f"{self.baseline[row]:+.2f}",
                ", ".join(f"{name} {value:+.2f}" for name, value in self.strongest(row)),
                f"{self.log_odds[row]:+.2f}",
            )
            for row in shown
        ]
        caption = f"The first {len(shown)} of {len(self):,} samples" if len(self) > len(shown) else ""
        return html_table(
            rows, ["row", "class", "probability", "baseline", "strongest contributions", "log-odds"], caption
        )


def log_odds(probabilities: Floats, places: npt.NDArray[np.int64]) -> Floats:
    """The log-odds of one class in each row, with 1 - p as the sum of the others, so that nothing is lost near 1."""
    rows = np.arange(len(probabilities))
    own = probabilities[rows, places]
    others = probabilities.copy()
    others[rows, places] = 0.0
    least = np.finfo(np.float64).tiny  # where a network has no output for a class yet
    return np.asarray(np.log(np.maximum(own, least)) - np.log(np.maximum(others.sum(axis=1), least)))
