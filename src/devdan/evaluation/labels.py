"""Which labels arrive, and when."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from devdan.arrays import Floats, Integers

NEVER = -1
_STEP = 0.01  # step size of the adaptive bound

SPELLINGS = {
    "all": "every label arrives with its sample",
    "fraction:0.1": "a random tenth of the labels arrives",
    "delay:1000": "labels arrive 1,000 samples late",
    "delay:0-2000": "labels arrive late by a random number of samples",
    "uncertain:0.1": "labels of at most a tenth of the samples, those the model is least sure of; "
    "uncertain:0.1:0.2 fixes the margin between the two most probable classes below which it counts as unsure",
    "warmup:5000": "only the labels of the first 5,000 samples arrive",
    "positives:1000": "labels of the commonest class never arrive; samples without a label are taught as that class "
    "after 1,000 samples, and if another label comes later, it corrects that",
}


@dataclass
class Labels:
    """A label policy: which labels arrive, and how many samples later. All conditions must hold.

    A random ``fraction`` of the labels; none after the first ``warmup`` samples; late by ``delay`` samples, drawn from
    this range for each; at most the share ``budget``, for samples of which the model is unsure: the two most probable
    classes differ by less than ``margin`` or, if that is None, by less than a bound that adapts to the budget.

    With ``positives``, only labels of rare classes arrive, as those of frauds do: of the commonest class so far, none
    does, and this many samples after a sample without a label came, that class is taught for it. If its label comes
    later, that one is taught instead.

    >>> policy = Labels(fraction=0.5, delay=(10, 20))
    >>> str(policy)
    'fraction:0.5+delay:10-20'
    >>> Labels.parse("warmup:2").lateness(0, 4, None)
    array([ 0,  0, -1, -1])
    """

    fraction: float = 1.0
    delay: tuple[int, int] = (0, 0)
    warmup: int | None = None
    budget: float | None = None
    margin: float | None = None
    positives: int | None = None
    seed: int = 0
    n_asked: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        import numpy as np  # noqa: PLC0415 (the command line lists SPELLINGS, and starts without NumPy)

        low, high = self.delay
        _require(0 <= self.fraction <= 1, "fraction", "in [0, 1]", self.fraction)
        _require(0 <= low <= high, "delay", "a number of samples, or an increasing range", f"{low}-{high}")
        _require(self.warmup is None or self.warmup >= 1, "warmup", "at least 1 sample", self.warmup)
        _require(self.budget is None or 0 < self.budget <= 1, "the budget of uncertain", "in (0, 1]", self.budget)
        _require(self.margin is None or 0 < self.margin <= 1, "the margin of uncertain", "in (0, 1]", self.margin)
        _require(self.positives is None or self.positives >= 1, "positives", "at least 1 sample", self.positives)
        self._random = np.random.default_rng(self.seed)
        self._bound = 1.0 if self.margin is None else self.margin

    @classmethod
    def parse(cls, text: str, seed: int = 0) -> Labels:
        """Parse a policy; parts are joined by ``+``."""
        options: dict[str, Any] = {}
        for part in text.split("+"):
            kind, _, value = part.strip().partition(":")
            new: dict[str, Any] | None = None
            if kind == "all" and not value:
                new = {}
            elif kind == "fraction" and _is_real(value):
                new = {"fraction": float(value)}
            elif kind == "delay" and (match := re.fullmatch(r"(\d+)(?:-(\d+))?", value)):
                new = {"delay": (int(match[1]), int(match[2] or match[1]))}
            elif kind == "warmup" and value.isdecimal():
                new = {"warmup": int(value)}
            elif kind == "positives" and value.isdecimal():
                new = {"positives": int(value)}
            elif kind == "uncertain" and all(_is_real(number) for number in value.split(":")) and value.count(":") < 2:
                new = dict(zip(("budget", "margin"), map(float, value.split(":")), strict=False))
            if new is None:
                raise ValueError(
                    f"labels must be one of {', '.join(SPELLINGS)}, or several joined by '+', got {text!r}"
                )
            if options.keys() & new.keys():
                raise ValueError(f"labels must not name {kind} twice, got {text!r}")
            options |= new
        return cls(**options, seed=seed)

    def __str__(self) -> str:
        low, high = self.delay
        parts = [f"fraction:{self.fraction:g}"] if self.fraction < 1 else []
        if self.budget is not None:
            parts.append(f"uncertain:{self.budget:g}" + (f":{self.margin:g}" if self.margin is not None else ""))
        parts += [f"warmup:{self.warmup}"] if self.warmup is not None else []
        parts += [f"delay:{low}" if low == high else f"delay:{low}-{high}"] if high > 0 else []
        parts += [f"positives:{self.positives}"] if self.positives is not None else []
        return "+".join(parts) or "all"

    def lateness(self, start: int, n_samples: int, margins: Floats | None) -> Integers:
        """How many samples late the label of each sample is, or NEVER, for samples from number ``start`` on.

        ``margins`` holds the differences between the two largest probabilities, if there is a budget; None if the model
        knows nothing yet.
        """
        import numpy as np  # noqa: PLC0415

        low, high = self.delay
        late = self._random.integers(low, high, n_samples, endpoint=True) if high > low else np.full(n_samples, low)
        if self.fraction < 1:
            late[self._random.random(n_samples) >= self.fraction] = NEVER
        if self.warmup is not None:
            late[max(self.warmup - start, 0) :] = NEVER
        if self.budget is not None:
            gaps = [0.0] * n_samples if margins is None else margins.tolist()
            for sample, gap in enumerate(gaps):
                if late[sample] != NEVER and not self._asks(start + sample + 1, gap):
                    late[sample] = NEVER
        return late

    def _asks(self, n_seen: int, gap: float) -> bool:
        assert self.budget is not None
        unsure = gap < self._bound or self._bound == 1.0
        if self.margin is None:  # balanced when the share of unsure samples equals the budget
            self._bound = min(self._bound * (1 + _STEP * (self.budget - unsure)), 1.0)
        asks = unsure and self.n_asked + 1 <= self.budget * n_seen + 1e-9
        self.n_asked += asks
        return asks


def _is_real(text: str) -> bool:
    return re.fullmatch(r"\d*\.?\d+(e-?\d+)?", text) is not None


def _require(holds: bool, name: str, requirement: str, value: object) -> None:
    if not holds:
        raise ValueError(f"{name} must be {requirement}, got {value}")
