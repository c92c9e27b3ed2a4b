"""Time scales: how networks that learn from the same stream differ in what they revisit and how far back they look.

A network that learns from each sample once lives in the moment, and evolves. One that revisits samples of the past
finds finer boundaries, but lags behind where these move; it has more hidden units from the start, and always as many,
half of which see each feature through overlapping fields, by which they tell low from middle from high. No scale serves
all streams, so models mix networks of several.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any, NamedTuple

from devdan.arrays import Floats
from devdan.kernel import MIXED, MOST_NEIGHBOURS, SCALING_HORIZON
from devdan.kernel.state import EVENTS, LARGEST_REHEARSAL, new_state, room_for

_LEAST_HORIZON = 100  # samples from which a feature's mean and deviation can be told
_MOST_UNITS, _FARTHEST, _MOST_FIELDS = 100_000, 10_000_000, 1000


class Scale(NamedTuple):
    """One network's time scale."""

    n_hidden: int = 1  # hidden units to start from
    rehearse: int = 0  # samples revisited for each new one
    reach: int = 0  # latest labelled samples, from which these are drawn, and over which features are scaled
    neighbours: int = 0  # of those samples that vote
    fields: int = 0  # of each feature, through which half of the hidden units see it
    renews: int = 0  # 1 if it notices when a feature changes its unit, or that one is skewed


QUICK = Scale()
_FIELDS = 10  # of all that revisit
REHEARSED = Scale(n_hidden=24, rehearse=5, reach=1000, fields=_FIELDS, renews=1)
SCALES = (
    QUICK,
    Scale(n_hidden=16, rehearse=2, reach=10, fields=_FIELDS),
    Scale(n_hidden=16, rehearse=5, reach=100, fields=_FIELDS),
    Scale(n_hidden=32, rehearse=5, reach=500, fields=_FIELDS, renews=1),
    Scale(n_hidden=64, rehearse=10, reach=1000, neighbours=10, fields=_FIELDS, renews=1),
    Scale(n_hidden=64, rehearse=5, reach=5000, fields=_FIELDS, renews=1),
    Scale(n_hidden=32, rehearse=20, reach=5000, fields=_FIELDS),
)


def is_scales(value: Any) -> bool:
    """Whether it is a list of scales, as tuples or lists of up to six numbers."""
    if not isinstance(value, (list, tuple)) or len(value) == 0:
        return False
    return all(isinstance(one, (list, tuple)) and 1 <= len(one) <= 6 and _holds(*one) for one in value)


def _holds(
    n_hidden: Any, rehearse: Any = 0, reach: Any = 0, neighbours: Any = 0, fields: Any = 0, renews: Any = 0
) -> bool:
    numbers = (n_hidden, rehearse, reach, neighbours, fields, renews)
    limits = (_MOST_UNITS, LARGEST_REHEARSAL, _FARTHEST, MOST_NEIGHBOURS, _MOST_FIELDS, 1)
    if not all(isinstance(number, Integral) for number in numbers):
        return False
    if not all(0 <= number <= most for number, most in zip(numbers, limits, strict=True)):
        return False
    return bool(n_hidden >= 1 and (reach >= 1 or rehearse == neighbours == fields == renews == 0) and fields != 1)


def settings_at(scale: Scale) -> dict[str, float]:
    """The kernel's settings that a scale decides."""
    return {
        "start": float(scale.n_hidden),
        "rehearse": float(scale.rehearse),
        "neighbours": float(scale.neighbours),
        "renews": float(scale.renews),
        "scaling_horizon": float(max(scale.reach, _LEAST_HORIZON)) if scale.reach > 0 else SCALING_HORIZON,
    }


def new_network(n_features: int, n_classes: int, scale: Scale, seed: int) -> Floats:
    """A state with room for what a network of this scale starts with and remembers."""
    n_events = 1 if scale.reach > 0 else EVENTS  # those that rehearse do not evolve, and have none
    return new_state(
        n_features, room_for(scale.n_hidden), max(n_classes, 2), n_events, scale.reach, scale.fields, seed=seed
    )


def mixed(settings: dict[str, float], scale: Scale) -> dict[str, float]:
    """The settings of a network of this scale that is one of several."""
    return settings | settings_at(scale) | {"company": MIXED}
