"""A key's network as a model of its own, and a model as a key's network."""

from __future__ import annotations

from typing import Any

import numpy as np

from devdan.encoding.encoding import Encoding
from devdan.fleet.shared import Shared
from devdan.fleet.slots import Kept, room, room_for
from devdan.kernel import Network
from devdan.kernel.state import aligned, set_settings, with_room
from devdan.model import options
from devdan.model.classes import Classes
from devdan.model.devdan import DEVDAN
from devdan.model.mixture import Mixture


def mixture_of(shared: Shared, kept: Kept) -> Mixture:
    """A mixture of one network that goes on as the key would."""
    kept = shared.up_to_date(kept)
    labels = shared.classes.labels[np.argsort(shared.classes.outputs)][kept.codes]
    order = np.argsort(labels)
    state = aligned(len(kept.state))
    state[:] = kept.state
    return Mixture.of_networks(
        [state],
        shared.mixture.options,
        shared.mixture.scales,
        classes=Classes(labels[order], order) if len(labels) > 0 else Classes(),
        encoding=shared.mixture.encoding,
    )


def prior_of(shared: Shared) -> Mixture:
    """The shared network likewise."""
    inputs, settings = shared.versions
    return mixture_of(shared, Kept(shared.network(), np.arange(len(shared.classes)), inputs=inputs, settings=settings))


def kept_of(shared: Shared, mixture: Mixture) -> Kept:
    """What to keep of a mixture that becomes a key's; raises a ``ValueError`` if it does not fit into the fleet."""
    ours = shared.mixture.options
    for name in options.fixed(ours):
        if not options.same(ours[name], mixture.options[name]):
            raise ValueError(f"{name} must be {ours[name]!r}, as in this fleet, got {mixture.options[name]!r}")
    inputs = _version(shared, mixture.encoding)
    labels = mixture.classes.labels[np.argsort(mixture.classes.outputs)]
    codes, classes = shared.classes.encode(labels) if len(labels) > 0 else (np.empty(0, np.int64), shared.classes)
    net = mixture.nets[0]
    state = with_room(mixture.networks[0], room(net.n_features, room_for(net.n_hidden), len(labels)))
    set_settings(Network(state), shared.settings)
    shared.mixture.prepare(classes=classes)
    return Kept(state, codes, inputs=inputs, settings=shared.versions[1])


def check_model(model: Any) -> None:
    """Raise an error unless it can be a key's."""
    if not isinstance(model, DEVDAN):
        raise ValueError(f"a key's model must be a DEVDAN(rehearse=0), got {model!r}")
    check_rehearsal("a key's model", model)
    model._check_is_fitted()


def check_rehearsal(name: str, model: DEVDAN) -> None:
    """Raise a ``ValueError`` if a second network replays samples."""
    if model.rehearse != 0:
        raise ValueError(
            f"{name} must have rehearse=0, as a network that replays samples would keep a thousand for each key, got "
            f"rehearse={model.rehearse!r}"
        )


def _version(shared: Shared, theirs: Encoding | None) -> int:
    """Which version of the fleet's inputs an encoding has."""
    ours = shared.mixture.encoding
    if ours is None and theirs is None:
        return shared.versions[0]
    if ours is not None and theirs is not None and theirs.order in shared.inputs:
        names = dict(zip(ours.order, ours.input_names, strict=True))
        if all(names.get(number, name) == name for number, name in zip(theirs.order, theirs.input_names, strict=True)):
            return shared.inputs.index(theirs.order)
    raise ValueError("the columns of the model must be encoded as those of this fleet: take it from fleet[key]")
