"""A key's network as a model of its own, and a model as a key's network."""

from __future__ import annotations

from typing import Any

import numpy as np

from devdan.fleet.shared import Shared
from devdan.fleet.slots import Kept, room, room_for
from devdan.kernel import Network
from devdan.kernel.state import aligned, set_settings, with_room
from devdan.model import options
from devdan.model.classes import Classes
from devdan.model.devdan import DEVDAN

_ABOUT_INPUTS = ("n_features_in_", "feature_names_in_", "_encoding", "_warned")


def model_of(shared: Shared, kept: Kept) -> DEVDAN:
    """A DEVDAN that goes on as the key would."""
    kept = shared.up_to_date(kept)
    model = DEVDAN(**{**shared.estimator.get_params(deep=False), **shared._chosen})
    _copy_inputs(shared, model)
    labels = shared.classes.labels[np.argsort(shared.classes.outputs)][kept.codes]
    order = np.argsort(labels)
    model._classes = Classes(labels[order], order) if len(labels) > 0 else Classes()
    state = aligned(len(kept.state))
    state[:] = kept.state
    model._chosen = dict(shared._chosen)
    model._take([state])
    return model


def prior_of(shared: Shared) -> DEVDAN:
    """The shared network as a model of its own."""
    inputs, settings = shared.versions
    return model_of(shared, Kept(shared.network(), np.arange(len(shared.classes)), inputs=inputs, settings=settings))


def begin_as(shared: Shared, model: DEVDAN) -> None:
    """Let a fleet that has seen nothing have the inputs of a model."""
    _copy_inputs(model, shared)
    shared._prepare(True, Classes(), 0, model._encoding)
    shared.note_inputs()


def kept_of(shared: Shared, model: Any) -> Kept:
    """What to keep of a model that becomes a key's; raises a ``ValueError`` if it does not fit into the fleet."""
    for name in options.fixed(shared._chosen):
        if not options.same(shared._chosen[name], model._chosen[name]):
            raise ValueError(f"{name} must be {shared._chosen[name]!r}, as in this fleet, got {model._chosen[name]!r}")
    names, own = (getattr(each, "feature_names_in_", np.empty(0)).tolist() for each in (shared, model))
    if shared.n_features_in_ != model.n_features_in_ or names != own:
        raise ValueError(
            f"the model must have the features of this fleet, {names or shared.n_features_in_}, got "
            f"{own or model.n_features_in_}"
        )
    inputs = _version(shared, model)
    labels = model._classes.labels[np.argsort(model._classes.outputs)]
    codes, classes = shared.classes.encode(labels) if len(labels) > 0 else (np.empty(0, np.int64), shared.classes)
    net = model._first()
    state = with_room(model._networks[0], room(net.n_features, room_for(net.n_hidden), len(labels)))
    set_settings(Network(state), shared.settings)
    shared._classes = classes
    return Kept(state, codes, inputs=inputs, settings=shared.versions[1])


def check_model(model: Any) -> None:
    """Raise an error unless it can be a key's."""
    if not isinstance(model, DEVDAN) or model.n_layers != 1:
        raise ValueError(f"a key's model must be a DEVDAN(rehearse=0) of one layer, got {model!r}")
    check_rehearsal("a key's model", model)
    model._check_is_fitted()


def check_rehearsal(name: str, model: DEVDAN) -> None:
    """Raise a ``ValueError`` if a second network rehearses."""
    if model.rehearse != 0:
        raise ValueError(
            f"{name} must have rehearse=0, as a network that rehearses would keep a thousand samples for each key, got "
            f"rehearse={model.rehearse!r}"
        )


def _copy_inputs(source: DEVDAN, target: DEVDAN) -> None:
    for name in _ABOUT_INPUTS:
        if name in source.__dict__:
            setattr(target, name, getattr(source, name))


def _version(shared: Shared, model: DEVDAN) -> int:
    """Which version of the fleet's inputs a model has."""
    ours, theirs = shared._encoding, model._encoding
    if ours is None and theirs is None:
        return shared.versions[0]
    if ours is not None and theirs is not None and theirs.order in shared.inputs:
        names = dict(zip(ours.order, ours.input_names, strict=True))
        if all(names.get(number, name) == name for number, name in zip(theirs.order, theirs.input_names, strict=True)):
            return shared.inputs.index(theirs.order)
    raise ValueError("the columns of the model must be encoded as those of this fleet: take it from fleet[key]")
