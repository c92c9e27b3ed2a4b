"""Thresholds that follow a stream: from which probability on a sample is called a class.

One by labels is the threshold that would have been best on the latest labelled samples. If k of them had been called
the class, h of these rightly, and there are P of the class:

    precision = h / k,  recall = h / P,  F1 = 2 h / (k + P)

One by a budget needs no labels. Its log-odds θ rise with each sample that is called, and fall with each that comes:

    θ ← θ + γ (called - share)

So the number of samples called in any part of a stream differs from the budget by the way that θ went, over γ: however
scores drift, it is made up for (a running quantile; Robbins and Monro 1951, Gibbs and Candès 2021). The steps γ are
the longer, the shorter the horizon is over which the budget is kept. Scores are probabilities from before a sample was
learned from.

A balanced threshold is the class's mean probability: if probabilities are right, the share of the samples that are of
the class. Samples above it are those more likely than others, by the ratio by which balanced classes would differ. That
of a rare class also follows a budget, but one that it need not use.
"""

from __future__ import annotations

import copy
import math
from base64 import b64decode, b64encode
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from devdan.arrays import Floats

if TYPE_CHECKING:
    from typing_extensions import Self

Flags = npt.NDArray[np.bool_]

START = 0.5  # the threshold as long as there is no better one
LATEST = 5_000  # samples by which it is chosen, and over which a budget is kept unless another horizon is given
EVERY = 50  # after this many further ones it is chosen again
FEWEST = 20  # of the class, and of others, from which it is chosen
NEVER = 2.0  # a threshold that no probability reaches
WAY = 6.0  # log-odds
TINY = 1e-6  # probabilities are not taken to be nearer to 0 and 1
LARGEST_ODDS = 100.0  # in a file
LEAST_CALLED = 10  # samples that a budget has in its horizon: of fewer, a fifth is less than two
LONGEST = 1_000_000_000  # horizon
RARE = 0.2  # share of the samples below which a class is rare; also how many are called a rare class at most
SWAY = 0.1  # by how much the log-odds of its threshold rise with each sample that is called


class Rule:
    """How the threshold of a class is chosen; this one is given, and stays."""

    def __init__(self, threshold: float = START) -> None:
        self.threshold = threshold

    moves = False  # with each sample

    def called(self, scores: Floats) -> Flags:
        """Which samples are called the class, that come in this order."""
        return np.asarray(scores >= self.threshold)

    def thresholds(self, scores: Floats) -> Floats:
        """The threshold that each of these samples meets: it is called the class if its score is at least that."""
        return np.full(len(scores), self.threshold)

    def rows(self, scores: Floats) -> None:
        """Samples came that have these scores."""

    def labels(self, scores: Floats, belong: Flags) -> None:
        """Labels came of samples that have these scores: whether they belong to the class."""

    def forget(self, scores: Floats, belong: Flags) -> None:
        """Labels were wrong, of samples that have these scores now."""

    def basis(self) -> str:
        """What the threshold is based on, in words."""
        return "as given"

    def told(self) -> str:
        """The threshold and what it is based on, in words."""
        if self.threshold > 1.0:
            return f"at no probability yet, for which a threshold of {NEVER:g} stands: {self.basis()}"
        moves = ", from where it moves with each sample" if self.moves else ""
        return f"from a probability of {self.threshold:.3g} on{moves}: {self.basis()}"

    def copy(self) -> Self:
        """A copy that learns on its own from here; arrays are never written to, so they can be shared."""
        return copy.copy(self)

    def to_json(self) -> dict[str, Any]:
        """The state, for a file."""
        return {}

    def restore(self, content: dict[str, Any]) -> None:
        """Take a state from a file; raises an error of several kinds if it is none."""
        if content != {}:
            raise ValueError("its decision has learned nothing")


class BestThreshold(Rule):
    """The best one on the latest labelled samples: of highest F1, or of a recall or a precision that is at least so.

    Of the thresholds with enough recall it is the highest, which has the best precision; of those with enough
    precision it is the lowest, which has the best recall.

    >>> rule = BestThreshold("f1")
    >>> rule.labels(np.linspace(0.0, 1.0, 100), np.arange(100) >= 70)
    >>> round(rule.threshold, 2), rule.basis()
    (0.71, 'the best F1 on the latest 100 labels, 30 of them of the class')
    """

    def __init__(self, aim: str, least: float = 0.0) -> None:
        super().__init__()
        self.aim, self.least = aim, least
        self._scores, self._belong = np.empty(0), np.empty(0, bool)
        self._n = 0  # labels so far

    def labels(self, scores: Floats, belong: Flags) -> None:
        self._scores = np.concatenate([self._scores, scores])[-LATEST:]
        self._belong = np.concatenate([self._belong, belong])[-LATEST:]
        before, self._n = self._n, self._n + len(scores)
        if self._n // EVERY > before // EVERY:
            chosen = best_threshold(self.aim, self.least, self._scores, self._belong) if self.is_based else START
            self.threshold = chosen

    def forget(self, scores: Floats, belong: Flags) -> None:
        """Each time, the label of that kind goes whose score is nearest, the latest of several."""
        for score, belongs in zip(scores.tolist(), belong.tolist(), strict=True):
            places = np.flatnonzero(self._belong == belongs)[::-1]
            if len(places) > 0:
                place = places[np.abs(self._scores[places] - score).argmin()]
                self._scores, self._belong = np.delete(self._scores, place), np.delete(self._belong, place)

    @property
    def is_based(self) -> bool:
        """Whether there are enough labels."""
        n_own = np.count_nonzero(self._belong)
        return bool(min(n_own, len(self._belong) - n_own) >= FEWEST)

    def basis(self) -> str:
        n_own, n = np.count_nonzero(self._belong), len(self._belong)
        if not self.is_based:
            few = f"{n_own} labels of the class and {n - n_own} others"
            return f"the likelier of two, as {few} are too few; it takes {FEWEST} of each"
        aim = "the best F1" if self.aim == "f1" else f"{self.aim} of at least {self.least:g}"
        return f"{aim} on the latest {n:,} labels, {n_own:,} of them of the class"

    def to_json(self) -> dict[str, Any]:
        return {
            "threshold": self.threshold,
            "n": self._n,
            "scores": packed(self._scores),
            "belong": packed(self._belong.astype(np.float64)),
        }

    def restore(self, content: dict[str, Any]) -> None:
        scores, belong = unpacked(content["scores"]), unpacked(content["belong"])
        if len(scores) != len(belong) or not np.isin(belong, (0.0, 1.0)).all():
            raise ValueError("its labelled scores do not match")
        self.threshold, self._n = checked(content, "threshold", 0.0, NEVER), count(content)
        self._scores, self._belong = scores, belong == 1.0


def best_threshold(aim: str, least: float, scores: Floats, belong: Flags) -> float:
    """The threshold with the highest F1, or the least recall or precision that is enough; ``NEVER`` if none is.

    The highest F1 is that of hundreds of thresholds, of which one is lucky. So one half of each label counts, and for
    the other half its probability does, scaled so that all together are as many as there were.

    >>> scores, belong = np.array([0.1, 0.4, 0.6, 0.9]), np.array([False, True, False, True])
    >>> [best_threshold(*aim, scores, belong) for aim in (("f1", 0.0), ("recall", 0.5), ("precision", 0.6))]
    [0.4, 0.9, 0.4]
    """
    order = np.argsort(-scores, kind="stable")
    falling = scores[order]
    last = np.flatnonzero(np.append(falling[1:] < falling[:-1], True))  # of equal scores, all are called or none
    hits, called = np.cumsum(belong[order])[last], last + 1.0
    if aim == "f1":
        expected = np.cumsum(falling)[last] * (hits[-1] / max(falling.sum(), TINY))
        place = int(((hits + expected) / (called + hits[-1])).argmax())
    else:
        reached = np.flatnonzero((hits / hits[-1] if aim == "recall" else hits / called) >= least)
        if len(reached) == 0:
            return NEVER
        place = int(reached[0] if aim == "recall" else reached[-1])
    return float(falling[last[place]])


class Budget(Rule):
    """At most a share of the samples.

    It is kept to a fifth over any samples of the horizon, ``over``, as long as the threshold that this takes moves by
    up to ``WAY`` meanwhile.

    >>> rule = Budget(0.1)
    >>> scores = np.random.default_rng(0).random(5_000)
    >>> rule.rows(scores)
    >>> int(rule.called(scores).sum()), 0.8 < rule.threshold < 0.95
    (500, True)
    """

    moves = True

    def __init__(self, share: float, over: int = LATEST) -> None:
        super().__init__(NEVER)
        self.share, self.over = share, over
        self._step = min(WAY / (0.2 * share * over), 0.5 * WAY)
        self._n, self._odds = 0, -math.inf  # samples, and the log-odds of the threshold

    def called(self, scores: Floats) -> Flags:
        return np.fromiter((called for called, _ in self._along(scores)), bool, len(scores))

    def thresholds(self, scores: Floats) -> Floats:
        steps = list(self._along(scores))
        met = [self.threshold, *(self._at(self._n + k, odds) for k, (_, odds) in enumerate(steps, start=1))]
        return as_called(np.array(met[:-1]), scores, np.array([called for called, _ in steps], bool))

    def rows(self, scores: Floats) -> None:
        if len(scores) > 0:
            *_, (_, self._odds) = self._along(scores)
            self._n += len(scores)
            self.threshold = self._at(self._n, self._odds)

    def _at(self, n: int, odds: float) -> float:
        """The threshold after n samples."""
        return probability(odds) if self._is_begun(n) else NEVER

    def _along(self, scores: Floats) -> Iterator[tuple[bool, float]]:
        """Whether each sample is called, and the log-odds of the threshold after it."""
        odds, share, step = self._odds, self.share, self._step
        probabilities = np.clip(scores, TINY, 1.0 - TINY)
        for n, own in enumerate(np.log(probabilities / (1.0 - probabilities)).tolist(), start=self._n):
            called = False
            if self._is_begun(n):
                called = own >= odds
                odds += step * (called - share)
            else:  # the highest of those that hold one to be called
                odds = max(odds, own)
            yield called, odds

    def _is_begun(self, n: int) -> bool:
        return n * self.share >= 1.0

    def basis(self) -> str:
        over = "" if self.over == LATEST else f", over {self.over:,}"
        return f"a budget of {self.share:.3g} of all samples{over}" + (
            "" if self._is_begun(self._n) else ", from the next on"
        )

    def to_json(self) -> dict[str, Any]:
        return {"n": self._n, "odds": self._odds if self._n > 0 else 0.0}

    def restore(self, content: dict[str, Any]) -> None:
        self._n, odds = count(content), checked(content, "odds", -LARGEST_ODDS, LARGEST_ODDS)
        self._odds = odds if self._n > 0 else -math.inf
        self.threshold = self._at(self._n, odds)


class Balanced(Rule):
    """More likely than for a mean sample: so that of each class, however rare, about the same share is found.

    A class of less than a fifth of the samples is called for about a fifth of any hundred at most: scores of a stream
    that changes may rise together, and all would be called.

    >>> rule = Balanced()
    >>> scores = np.random.default_rng(0).beta(1, 30, 5_000)
    >>> rule.rows(scores)
    >>> bool(rule.threshold > scores.mean() > 0.03), rule.called(scores).mean().round(2)
    (True, np.float64(0.2))
    """

    moves = True

    def __init__(self) -> None:
        super().__init__()
        self._n, self._mean, self._odds = 0, 0.0, 0.0  # samples, their mean score, the threshold's log-odds

    def called(self, scores: Floats) -> Flags:
        return np.fromiter((called for called, _, _, _ in self._along(scores)), bool, len(scores))

    def thresholds(self, scores: Floats) -> Floats:
        steps = list(self._along(scores))
        met = np.array([probability(met) for _, met, _, _ in steps])
        return as_called(met, scores, np.array([called for called, _, _, _ in steps], bool))

    def rows(self, scores: Floats) -> None:
        if len(scores) > 0:
            *_, (_, _, self._mean, self._odds) = self._along(scores)
            self._n += len(scores)
            self.threshold = max(self._mean, probability(self._odds))

    def _along(self, scores: Floats) -> Iterator[tuple[bool, float, float, float]]:
        """Whether each sample is called, at which log-odds; and then the mean score and the threshold's log-odds."""
        mean, odds = self._mean, self._odds
        for n, score in enumerate(np.clip(scores, TINY, 1.0 - TINY).tolist(), start=self._n + 1):
            mean += (score - mean) / min(n, LATEST)
            least = math.log(mean / (1.0 - mean))
            met = odds = max(odds, least) if n > 1 else least
            called = math.log(score / (1.0 - score)) >= odds
            odds += SWAY * (called - (RARE if mean < RARE else 1.0))
            yield called, met, mean, odds

    def basis(self) -> str:
        return f"the mean probability of the latest {min(self._n, LATEST):,} samples, {self._mean:.3g}" + (
            f", and at most {RARE:.0%} of any hundred" if self._mean < RARE else ""
        )

    def to_json(self) -> dict[str, Any]:
        return {"n": self._n, "mean": self._mean, "odds": self._odds}

    def restore(self, content: dict[str, Any]) -> None:
        self._n, self._mean = count(content), checked(content, "mean", 0.0, 1.0)
        self._odds = checked(content, "odds", -LARGEST_ODDS, LARGEST_ODDS)
        self.threshold = max(self._mean, probability(self._odds)) if self._n > 0 else START


def probability(odds: float) -> float:
    """The probability of these log-odds."""
    return 1.0 / (1.0 + math.exp(-odds))


def as_called(thresholds: Floats, scores: Floats, called: Flags) -> Floats:
    """Thresholds that were met as log-odds, on the side of each score where it was called or not.

    >>> as_called(np.array([0.3, 0.3]), np.array([0.3, 0.3]), np.array([True, False])) <= 0.3
    array([ True, False])
    """
    reached: Floats = np.where(
        called, np.minimum(thresholds, scores), np.maximum(thresholds, np.nextafter(scores, NEVER))
    )
    return reached


# --- In files ----------------------------------------------------------------------------------------------------


def packed(scores: Floats) -> str:
    """Scores as text, bit for bit."""
    return b64encode(scores.astype("<f8").tobytes()).decode()


def unpacked(text: Any) -> Floats:
    """Scores from text; raises a ``ValueError`` unless they are probabilities, and not too many."""
    content = b64decode(text, validate=True) if isinstance(text, str) else b"?"
    if len(content) % 8 != 0 or len(content) > 8 * LATEST:
        raise ValueError("its recent scores are not as many as there can be")
    scores = np.frombuffer(content, "<f8").astype(np.float64)
    if not ((scores >= 0.0) & (scores <= 1.0)).all():
        raise ValueError("its recent scores are no probabilities")
    return scores


def checked(content: dict[str, Any], name: str, low: float, high: float) -> float:
    """A number of a state, which must be in a range."""
    value = content[name]
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not low <= value <= high:
        raise ValueError(f"{name} of its decision must be from {low} to {high}, got {value!r}")
    return float(value)


def count(content: dict[str, Any]) -> int:
    """How many samples a rule has seen."""
    value = content["n"]
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**62:
        raise ValueError(f"n of its decision must be a count, got {value!r}")
    return value
