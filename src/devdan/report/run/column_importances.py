"""How much each column mattered over time."""

from __future__ import annotations

from dataclasses import dataclass

MOST_COLUMN_POINTS = 500  # more than any run of ours asks for


@dataclass(frozen=True)
class ColumnImportances:
    """The importances of the columns at one place of a run, or their means at several in a row."""

    end: int
    n_chunks: int
    shares: tuple[float, ...]

    def join(self, later: ColumnImportances) -> ColumnImportances:
        """This and the next as one."""
        n = self.n_chunks + later.n_chunks
        pairs = zip(self.shares, later.shares, strict=True)
        shares = tuple((self.n_chunks * own + later.n_chunks * other) / n for own, other in pairs)
        return ColumnImportances(later.end, n, shares)
