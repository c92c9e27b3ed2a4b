"""What becomes of rows and labels: which are new, repeated, early, contradicting or wrong, and what a model learns.

Nothing here depends on a model: an event is decided by what is known of its id, in the order of event times.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from devdan.spark.features import Features
from devdan.spark.plan import AT, ID, KEY, LABEL
from devdan.spark.statebytes import Sample, digest_of

PREDICTION, LEARNED, REPEATED, ERROR = "prediction", "label", "repeated", "error"  # kinds of rows that come out
Name = tuple[str, str]  # a key and an id, as texts
Find = Callable[[str, str], Sample | None]  # what is kept of a name


class Event(NamedTuple):
    """A row that counts."""

    key: str
    row: int  # of the features
    is_new: bool  # the features are to be predicted and observed
    label: str | None  # is to be taught


class Told(NamedTuple):
    """Something to tell about a row of the frame."""

    kind: str
    row: int  # of the features; -1 if none are known
    key: str | None
    id: str | None
    time: int | None
    label: str | None = None
    error: str | None = None


class Ledger:
    """Decides about the rows of a frame, one after the other."""

    def __init__(self, features: Features, find: Find) -> None:
        self._features, self._find = features, find
        self.samples: dict[Name, Sample | None] = {}  # what is known now
        self.changed: set[Name] = set()
        self.rows: dict[Name, int] = {}  # of features that are at hand
        self.predicted: dict[int, str | None] = {}  # of samples that waited, by row
        self.events: list[Event] = []
        self.told: list[Told] = []

    def decide(self, frame: Any) -> None:
        """Decide about all rows, by time, features before labels, then by id: the order of arrival does not matter."""
        keys, ids, labels = (_texts(frame[name]) for name in (KEY, ID, LABEL))
        times = [None if time != time else int(time) for time in frame[AT].tolist()]  # noqa: PLR0124 (NaN)
        present, infinite = self._features.present.tolist(), self._features.infinite.tolist()
        order = sorted(range(len(keys)), key=lambda row: (times[row] or 0, not present[row], ids[row] or ""))
        for row in order:
            key, id_, time, label = keys[row], ids[row], times[row], labels[row]
            error = _error(key, id_, time, label, present[row], infinite[row])
            if error is not None:
                self.told.append(Told(ERROR, -1, key, id_, time, label, error))
                continue
            assert key is not None
            assert id_ is not None
            assert time is not None
            if present[row]:
                self._take_features((key, id_), row, time, label)
            else:
                self._take_label((key, id_), time, str(label))

    def _take_features(self, name: Name, row: int, time: int, label: str | None) -> None:
        known = self._known(name)
        content = self._features.content(row)
        digest = digest_of(content)
        if known is not None and not known.is_early:
            if known.digest != digest:
                self._tell(ERROR, -1, name, time, label, "the id was used before, with other features")
            else:
                self._tell(REPEATED, -1, name, time)
                if label is not None:
                    self._take_label(name, time, label)
            return
        self._tell(PREDICTION, row, name, time)
        early = None if known is None else known.label
        if early is not None and label is not None and label != early:
            self._contradict(name, time, label, early)
        learned = label if early is None else early
        self.rows[name] = row
        self.events.append(Event(name[0], row, True, learned))
        self._note(name, Sample(time, digest, learned, None, content if learned is None else b""))
        if learned is not None:
            self._tell(LEARNED, row, name, time, learned)

    def _take_label(self, name: Name, time: int, label: str) -> None:
        known = self._known(name)
        if known is None:
            self._note(name, Sample(time, b"", label, None, b""))
        elif known.label == label:
            self._tell(REPEATED, -1, name, time, label)
        elif known.label is not None:
            self._contradict(name, time, label, known.label)
        else:
            row = self._row_of(name, known)
            self.events.append(Event(name[0], row, False, label))
            self._note(name, known._replace(label=label, features=b""))
            self._tell(LEARNED, row, name, time, label)

    def _row_of(self, name: Name, known: Sample) -> int:
        """Where the features of a sample that waits are."""
        if name not in self.rows:
            self.rows[name] = row = self._features.add(known.features)
            self.predicted[row] = known.predicted
        return self.rows[name]

    def _known(self, name: Name) -> Sample | None:
        if name not in self.samples:
            self.samples[name] = self._find(*name)
        return self.samples[name]

    def _note(self, name: Name, sample: Sample) -> None:
        self.samples[name] = sample
        self.changed.add(name)

    def _tell(
        self, kind: str, row: int, name: Name, time: int, label: str | None = None, error: str | None = None
    ) -> None:
        self.told.append(Told(kind, row, *name, time, label, error))

    def _contradict(self, name: Name, time: int, label: str, before: str) -> None:
        self._tell(ERROR, -1, name, time, label, f"the id has another label, {before!r}, which came before")


def _texts(column: Any) -> list[str | None]:
    """Values of a column of text; None where there is none, as which pandas has several things."""
    missing = column.isna().to_numpy(np.bool_).tolist()
    return [None if gone else value for value, gone in zip(column.tolist(), missing, strict=True)]


def _error(
    key: str | None, id_: str | None, time: int | None, label: str | None, present: bool, infinite: bool
) -> str | None:
    """Why a row cannot be used."""
    for name, value in (("the key", key), ("the id", id_), ("the time", time)):
        if value is None:
            return f"{name} must not be missing"
    if infinite:
        return "features must be finite or missing, got infinity"
    if not present and label is None:
        return "a row must have features, a label or both, got neither"
    return None
