"""What hidden units stand for, in the names of the columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from devdan import kernel
from devdan.arrays import Floats
from devdan.html_table import html_table
from devdan.kernel import Evolving, Network, Replaying
from devdan.kernel.state import scratch_for
from devdan.model.mixture import Mixture
from devdan.model.recent import recent_inputs, statistics

SAMPLES = 200  # recent ones, over which activations are averaged
_STRONGEST = 5  # inputs and classes that are named
_SHOWN, _NAMED = 20, 3

Named = tuple[tuple[Any, float], ...]  # what it is about, and how much; the strongest first


class Unit(NamedTuple):
    """A hidden unit, and what it stands for.

    ``activation`` is its mean over recent samples, between 0 and 1. ``weights`` are those of the inputs that drive it
    most, per deviation of the input. ``pulls`` are its weights towards classes, less their mean: what it adds to the
    log-odds of a class, if it is on, against the others on average. ``adds`` is what it adds to the reconstruction of
    an input, in the units of the stream, if it is on rather than off; empty for a network that reconstructs nothing.
    """

    network: int  # its index, from 0
    unit: int
    activation: float
    weights: Named
    pulls: Named
    adds: Named

    def in_words(self) -> tuple[str, str, str, str]:
        """Its activation, and the strongest of the rest, as texts."""
        return (
            f"{self.activation:.2f}",
            _listed(self.weights),
            _listed(self.pulls),
            _listed(self.adds),
        )


HEAD = ("on average", "driven by", "pulls towards", "adds to the reconstruction")  # of what is in words


class UnitList(list[Unit]):
    """Hidden units, network by network: a list that notebooks show as a table."""

    def _repr_html_(self) -> str:
        if not self:
            return "<p>no hidden units yet</p>"
        shown = self[:_SHOWN]
        caption = f"The first {len(shown)} of {len(self):,} hidden units" if len(self) > len(shown) else ""
        rows = [(unit.network, unit.unit, *unit.in_words()) for unit in shown]
        return html_table(rows, ["network", "unit", *HEAD], caption)


def units_of(mixture: Mixture, names: Sequence[str]) -> UnitList:
    """The hidden units of all networks, in these names of the inputs."""
    classes = mixture.classes.labels[np.argsort(mixture.classes.outputs)].tolist()
    X = recent_inputs(mixture.networks, SAMPLES)
    found = UnitList()
    for k, state in enumerate(mixture.networks):
        hidden = np.zeros((len(X), Network(state).n_hidden))
        kernel.transform(state, scratch_for(state), X, hidden)
        found += _units_of_network(state, k, hidden, names, classes)
    return found


def _units_of_network(
    state: Floats, network: int, hidden: Floats, names: Sequence[str], classes: Sequence[Any]
) -> list[Unit]:
    """The hidden units of a network, whose activations for recent samples are known; classes are by output."""
    net = Network(state)
    n, r, m = net.n_features, net.n_hidden, net.n_classes
    mean = hidden.mean(axis=0)
    driven, output = net.encoder[:n, :r] + _through_fields(net), net.output[:m, :r]
    pulls = output - output.mean(axis=0) if m > 0 else output
    adds = _added(net, mean) if isinstance(net, Evolving) and net.generates == 1.0 else np.zeros((0, r))
    return [
        Unit(
            network,
            unit,
            float(mean[unit]),
            _strongest(names, driven[:, unit]),
            _strongest(classes, pulls[:, unit]),
            _strongest(names, adds[:, unit]),
        )
        for unit in range(r)
    ]


def _through_fields(net: Network) -> Floats:
    """How much each feature moves each unit that sees it through fields, with the sign of where it rises to."""
    moved = np.zeros((net.n_features, net.n_hidden))
    if isinstance(net, Replaying) and net.n_fields > 0:
        weights = net.field_weights[: net.n_features]
        rises = np.where(weights[:, -1] >= weights[:, 0], 1.0, -1.0)
        moved[:, net.n_hidden - net.n_field_units :] = rises * np.ptp(weights, axis=1)
    return moved


def _added(net: Evolving, mean: Floats) -> Floats:
    """The reconstruction with each unit on, less that with it off, while the others are as they are on average."""
    n, r = net.n_features, net.n_hidden
    encoder = net.encoder[:n, :r]
    usual = (net.decoder_bias[:n] + encoder @ mean)[:, None]
    off = usual - encoder * mean
    added: Floats = reconstructed(net, off + encoder) - reconstructed(net, off)
    return added


def reconstructed(net: Evolving, a: Floats) -> Floats:
    """The input of the decoder's sigmoid on the scale of the stream, as the kernel's ``unscale``; a row per input."""
    n = net.n_features
    if net.scaling == kernel.STANDARD:
        mean, deviation = (array[:, None] for array in statistics([net.words]))
        return np.asarray(mean + np.clip(a, -kernel.WIDEST, kernel.WIDEST) * deviation)
    z = 1.0 / (1.0 + np.exp(-np.clip(a, -36.0, 36.0)))
    if net.scaling == kernel.MINMAX:
        seen = net.high[:n] >= net.low[:n]
        low, high = (np.where(seen, array[:n], np.nan)[:, None] for array in (net.low, net.high))
        return np.asarray(low + z * (high - low))
    return np.asarray(z)


def _strongest(names: Sequence[Any], values: Floats) -> Named:
    """Those of the largest amounts; what was never seen has none."""
    known = np.nan_to_num(values)
    order = np.argsort(-np.abs(known), kind="stable")[:_STRONGEST]
    return tuple((names[k], float(known[k])) for k in order.tolist() if known[k] != 0.0)


def _listed(named: Named) -> str:
    return ", ".join(f"{name} {value:+.3g}" for name, value in named[:_NAMED]) or "–"
