"""Ensembles of earlier versions, read as ensembles of today that predict what those did.

The members of the first ones learned from resamplings of the stream, which they visited more or less often, and had
equal shares in the prediction. Now they are members of one scale, with as much evidence each. Later ones had other
scales by default, which are now given to them.
"""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from devdan import kernel
from devdan.arrays import Floats
from devdan.kernel import DISCRIMINATIVE, Network
from devdan.kernel.state import padded
from devdan.model import options

_GONE = ("n", "visits")  # options that there are no longer
_SIX = [  # the scales by default, while there were six
    [1],
    [16, 2, 10, 0, 10],
    [16, 5, 100, 0, 10],
    [32, 5, 500, 0, 10, 1],
    [64, 20, 1000, 10, 10, 1],
    [32, 20, 5000, 0, 10],
]


def with_scales(kept: dict[str, Any], states: list[Floats]) -> dict[str, Any]:
    """Options or attributes that name the scales, if these members are of those that were the default before."""
    if kept.get("scales", ()) is None and len(states) == len(_SIX):
        return kept | {"scales": [list(scale) for scale in _SIX]}
    return kept


def is_resampled(kept: Any) -> bool:
    """Whether these are the options or the attributes of such an ensemble."""
    return "visits" in kept


def updated(kept: dict[str, Any], states: list[Floats]) -> tuple[dict[str, Any], list[Floats]]:
    """The options that a file keeps, and the members."""
    if kept["n"] != len(states):
        raise ValueError("its members are inconsistent")
    member = kept["estimator"]
    scales = [[member["n_hidden"]]] * len(states)
    return _without(kept) | {"scales": scales, "estimator": member | {"n_hidden": 1}}, _members(states)


def attributes(pickled: dict[str, Any]) -> dict[str, Any]:
    """The attributes that a pickle keeps."""
    member, n_hidden = pickled["estimator"], 1
    rehearse = options.OPTIONS["rehearse"].default
    if member is not None:
        n_hidden, rehearse = member.n_hidden, member.rehearse
        member = clone(member).set_params(n_hidden=1)
    found = _without(pickled) | {"scales": [(n_hidden,)] * pickled["n"], "estimator": member}
    if "_states" in found:
        found["_networks"] = _members([padded(state) for state in found.pop("_states")])
        scales = [(found["_chosen"]["n_hidden"],)] * len(found["_networks"])
        found["_chosen"] = _without(found["_chosen"]) | {"n_hidden": 1, "rehearse": rehearse, "scales": scales}
    return found


def _without(kept: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in kept.items() if name not in _GONE}


def _members(states: list[Floats]) -> list[Floats]:
    """The members, which have all met what came to the ensemble, whose counts the first one kept."""
    n_samples, n_labels = Network(states[0]).reserved_integers.tolist()
    for state in states:
        net = Network(state)
        n_visited = int(net.n_learned[DISCRIMINATIVE])
        net.averaged_since = net.averaged_since * n_labels // max(n_visited, 1)
        net.n_seen = n_samples
        net.n_learned[:] = n_samples, n_labels
        net.reserved_integers[:] = 0
        net.company = kernel.MIXED
        if net.n_classes > 0:
            net.losses[: kernel.BY_MEMORY] += kernel.weigh(state) / kernel.CAUTION  # so that the evidence is 0
    return states
