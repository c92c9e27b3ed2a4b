"""What requests bring to be written, and what becomes of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from devdan.service.logged import Features, Label
from devdan.service.register import Source


class Row(msgspec.Struct, frozen=True, gc=False):
    """A row as it came, with what was answered; ``label`` for a row that came with its label."""

    id: str
    features: Features
    key: str | None = None
    predicted: Label | None = None
    confidence: float | None = None
    label: Label | None = None
    is_new: bool = False  # the service has made its id just now


class Submission(NamedTuple):
    """What one request brings: rows, or labels by their ids; ``source`` for what may be read again.

    What is read again is known by its source: nothing of it is new, even if its ids were forgotten since. It must be
    submitted in the order of its topic.
    """

    stream: int
    rows: Sequence[Row] = ()
    labels: Sequence[tuple[str, Label]] = ()
    source: Source | None = None


class Refused(NamedTuple):
    """A row or label that contradicts what is known of its id."""

    id: str
    why: str


class Outcome(NamedTuple):
    """What became of a submission: how many of its rows and labels, or why it was refused as a whole."""

    rows: int = 0
    repeated_rows: int = 0
    accepted: int = 0
    repeated: int = 0
    waiting: int = 0
    expired: int = 0
    refused: Sequence[Refused] = ()
    error: str | None = None
    gone: bool = False  # there is no such stream any more

    def and_then(self, other: Outcome) -> Outcome:
        """The outcome of a submission that was made in parts.

        >>> Outcome(accepted=2, repeated=1).and_then(Outcome(accepted=1))[2:5]
        (3, 1, 0)
        """
        return Outcome(
            self.rows + other.rows,
            self.repeated_rows + other.repeated_rows,
            self.accepted + other.accepted,
            self.repeated + other.repeated,
            self.waiting + other.waiting,
            self.expired + other.expired,
            [*self.refused, *other.refused],
            self.error or other.error,
            self.gone or other.gone,
        )


def are_alike(labels: Sequence[tuple[str, Label]]) -> bool:
    """Whether labels are of one kind: then all are of the stream's kind, or none is."""
    return len({kind_of(label) for _, label in labels}) == 1


def kind_of(label: Label) -> str:
    """What a label is, in words."""
    return "true or false" if isinstance(label, bool) else "number" if isinstance(label, int) else "text"
