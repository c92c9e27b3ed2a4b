"""Joins features and labels that arrive separately, by id: which count, and which are repeated, early or contradicting.

They may come in any order, together, more than once, or never. Of each id, the first features and the first label
count, until a label comes that says it replaces it. The rules know nothing of clocks, logs or models; the service and
the queries on Spark both follow them.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum, auto
from typing import Any, NamedTuple

OTHER_FEATURES = "the id was used before, with other features"


class Verdict(Enum):
    """What becomes of features or of a label."""

    NEW = auto()  # features of an unknown id: to be predicted and observed
    LEARNED = auto()  # the label of known features: to be taught
    CORRECTED = auto()  # a label that replaces the one that was taught: to be taught instead of it
    EARLY = auto()  # a label before its features: it waits for them, instead of one that it replaces
    EXPIRED = auto()  # a label whose features no longer wait for one
    REPEATED = auto()  # the same as before: nothing changes
    CONTRADICTING = auto()  # not the same as before: refused


class KnownId(NamedTuple):
    """What is known of an id: whether its features have come, and its label, if that has."""

    has_features: bool = False
    label: Any = None
    is_expired: bool = False  # the features no longer wait for a label
    replaced: Collection[Any] = ()  # the labels that it had before
    is_assumed: bool = False  # the label did not come: it is what no label in time means


def join_features(known: KnownId, are_same: bool, *, reread: bool = False) -> Verdict:
    """What becomes of features; ``are_same``: as those known before, if there are any.

    ``reread``: they were decided about before, and what was known then may be forgotten.

    >>> join_features(KnownId(label="yes"), False)  # the label came early
    <Verdict.NEW: 1>
    """
    if known.has_features:
        return Verdict.REPEATED if are_same else Verdict.CONTRADICTING
    return Verdict.REPEATED if reread else Verdict.NEW


def join_label(known: KnownId, label: Any, *, replaces: bool = False, reread: bool = False) -> Verdict:
    """What becomes of a label; ``replaces``: it counts instead of another one that came before.

    >>> join_label(KnownId(has_features=True), "yes"), join_label(KnownId(), "yes")
    (<Verdict.LEARNED: 2>, <Verdict.EARLY: 4>)
    >>> join_label(KnownId(True, "yes"), "no"), join_label(KnownId(True, "yes"), "no", replaces=True)
    (<Verdict.CONTRADICTING: 7>, <Verdict.CORRECTED: 3>)
    >>> join_label(KnownId(True, "yes", is_assumed=True), "no")
    <Verdict.CORRECTED: 3>
    """
    if reread and (known.label is None or known.is_assumed or replaces or label in known.replaced):
        return Verdict.REPEATED
    if known.label is not None and (label == known.label or not (replaces or known.is_assumed)):
        return Verdict.REPEATED if label == known.label else Verdict.CONTRADICTING
    if not known.has_features:
        return Verdict.EARLY
    if known.label is not None:
        return Verdict.CORRECTED
    return Verdict.EXPIRED if known.is_expired else Verdict.LEARNED


def other_label(known: KnownId) -> str:
    """Why a contradicting label is refused."""
    return f"its label is {known.label!r}, which came before"
