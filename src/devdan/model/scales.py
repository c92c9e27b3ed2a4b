"""Time scales: how networks that learn from the same stream differ in what they replay and how far back they look.

A network that learns from each sample once lives in the moment, and evolves. One that replays samples of the past finds
finer boundaries, but lags behind where these move; it has more hidden units from the start, and always as many, half of
which see each feature through overlapping fields, by which they tell low from middle from high. No scale serves all
streams, so models mix networks of several.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any, NamedTuple

from devdan.arrays import Floats
from devdan.kernel import SCALING_HORIZON
from devdan.kernel.state import MOST_REPLAYS, new_evolving, new_replaying, room_for

_LEAST_HORIZON = 100  # samples from which a feature's mean and deviation can be told
_MOST_UNITS, _FARTHEST, _MOST_FIELDS = 100_000, 10_000_000, 1000


class Scale(NamedTuple):
    """One network's time scale."""

    n_hidden: int = 1  # hidden units to start from
    replays: int = 0  # samples replayed for each new one
    reach: int = 0  # latest labelled samples, from which these are drawn, and over which features are scaled
    fields: int = 0  # of each feature, through which half of the hidden units see it


QUICK = Scale()
_FIELDS = 10  # of all that replay
REPLAYING = Scale(n_hidden=24, replays=5, reach=1000, fields=_FIELDS)
SCALES = (
    QUICK,
    Scale(n_hidden=16, replays=2, reach=10, fields=_FIELDS),
    Scale(n_hidden=32, replays=5, reach=500, fields=_FIELDS),
    Scale(n_hidden=64, replays=10, reach=1000, fields=_FIELDS),
    Scale(n_hidden=64, replays=5, reach=5000, fields=_FIELDS),
    Scale(n_hidden=32, replays=20, reach=5000, fields=_FIELDS),
)


def is_scales(value: Any) -> bool:
    """Whether it is a list of scales, as tuples or lists of up to four numbers."""
    if not isinstance(value, (list, tuple)) or len(value) == 0:
        return False
    return all(isinstance(one, (list, tuple)) and 1 <= len(one) <= 4 and _holds(*one) for one in value)


def _holds(n_hidden: Any, replays: Any = 0, reach: Any = 0, fields: Any = 0) -> bool:
    numbers = (n_hidden, replays, reach, fields)
    limits = (_MOST_UNITS, MOST_REPLAYS, _FARTHEST, _MOST_FIELDS)
    if not all(isinstance(number, Integral) for number in numbers):
        return False
    if not all(0 <= number <= most for number, most in zip(numbers, limits, strict=True)):
        return False
    return bool(n_hidden >= 1 and (reach >= 1 or replays == fields == 0) and fields != 1)


def settings_at(scale: Scale) -> dict[str, float]:
    """The kernel's settings that a scale decides."""
    return {
        "start": float(scale.n_hidden),
        "replays": float(scale.replays),
        "scaling_horizon": float(max(scale.reach, _LEAST_HORIZON)) if scale.reach > 0 else SCALING_HORIZON,
    }


def new_network(n_features: int, n_classes: int, scale: Scale, seed: int) -> Floats:
    """The state of a network of this scale: one that replays, or one that evolves."""
    n_classes = max(n_classes, 2)
    if scale.reach > 0:
        return new_replaying(n_features, scale.n_hidden, n_classes, scale.reach, scale.fields, seed=seed)
    return new_evolving(n_features, room_for(scale.n_hidden), n_classes, seed=seed)
