"""How many samples of each class there were, and how many of them were predicted right, over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from devdan.evaluation.record import Record
from devdan.report.run.bins import moving_mean, smooth_width

MOST_CLASS_POINTS = 200  # fewer than of the accuracy, since there may be many classes


@dataclass(frozen=True)
class ClassCounts:
    """One chunk, or several in a row; classes are numbers, as in records."""

    end: int
    n_chunks: int
    actual: dict[int, int]
    hits: dict[int, int]

    @classmethod
    def of(cls, record: Record) -> ClassCounts:
        """A single chunk."""
        return cls(record.start + record.n_samples, 1, record.confusion.actual, record.confusion.hits)

    def join(self, later: ClassCounts) -> ClassCounts:
        """This and the next as one."""
        return ClassCounts(
            later.end, self.n_chunks + later.n_chunks, _sum(self.actual, later.actual), _sum(self.hits, later.hits)
        )


def _sum(a: dict[int, int], b: dict[int, int]) -> dict[int, int]:
    return a | {c: a.get(c, 0) + n for c, n in b.items()}


def smooth_recall(counts: Sequence[ClassCounts], c: int) -> list[float | None]:
    """The moving mean of the recall of a class; None where none of its samples is near."""
    parts = [(count.hits.get(c, 0), count.actual.get(c, 0)) for count in counts]
    return moving_mean(parts, smooth_width(len(counts)))


def smooth_share(counts: Sequence[ClassCounts], c: int) -> list[float | None]:
    """The moving mean of the share of a class among the scored samples."""
    parts = [(count.actual.get(c, 0), sum(count.actual.values())) for count in counts]
    return moving_mean(parts, smooth_width(len(counts)))
