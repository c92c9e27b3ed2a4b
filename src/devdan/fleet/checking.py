"""Checks of what is read from a store: whatever the file holds, compiled code must be safe with it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from devdan.arrays import Floats
from devdan.fleet.keys import kind_of, of_text
from devdan.fleet.shared import Shared
from devdan.fleet.slots import EVENTS, Kept
from devdan.fleet.store import Row
from devdan.kernel import Network
from devdan.kernel.state import HEADER, LARGEST_COUNT, check_states, sizes_of


def check_rows(shared: Shared, kind: str, rows: Sequence[Row]) -> None:
    """Raise a ``ValueError`` that names a key unless all rows fit into the fleet, whose keys are of this kind."""
    alike = defaultdict(list)
    for row in rows:
        try:
            _check_kept(shared, row.kept)
            if kind_of(of_text(row.text)) != kind:
                raise ValueError(f"it is not one of the {kind}")
        except ValueError as error:
            raise ValueError(f"the key {row.text} is not valid: {error}") from error
        alike[_alike(row.kept.state)].append(row)
    for group in alike.values():
        try:
            _check_networks(shared, [row.kept for row in group])
        except ValueError as error:
            if len(group) == 1:
                raise ValueError(f"the key {group[0].text} is not valid: {error}") from error
            for row in group:  # which of them is it?
                check_rows(shared, kind, [row])
            raise


def _alike(state: Floats) -> tuple[int, ...]:
    """By which states are checked together: their lengths and, if they are not too short for these, their sizes."""
    return (len(state), *(sizes_of(state) if len(state) >= HEADER else ()))


def _check_kept(shared: Shared, kept: Kept) -> None:
    versions = shared.versions
    numbers = kept.n_judged, kept.seen, kept.inputs, kept.settings
    if not all(isinstance(number, int) and 0 <= number <= LARGEST_COUNT for number in numbers):
        raise ValueError("its counters are out of range")
    if kept.inputs > versions[0] or kept.settings > versions[1]:
        raise ValueError("its inputs or settings are of an unknown version")
    codes = kept.codes.tolist()
    if len(set(codes)) != len(codes) or not all(0 <= code < len(shared.classes) for code in codes):
        raise ValueError("its classes are not distinct classes of the fleet")


def _check_networks(shared: Shared, group: Sequence[Kept]) -> None:
    """For states of the same sizes."""
    states = np.array([kept.state for kept in group])
    check_states(states)
    integers, sizes = states.view(np.int64), sizes_of(states[0])
    places = {name: place for name, (place, _) in Network.places(sizes).items()}
    n_known = np.array([len(kept.codes) for kept in group])
    n_features, n_classes, n_named = (integers[:, places[name]] for name in ("n_features", "n_classes", "n_named"))
    _, _, max_classes, *others = sizes
    n_inputs = np.array([len(order) or shared.mixture.n_inputs for order in shared.inputs])
    if (n_features != n_inputs[[kept.inputs for kept in group]]).any() or others != [EVENTS, 0, 0]:
        raise ValueError("its inputs are not those of the fleet")
    if (n_known > max_classes).any() or (np.maximum(n_classes, n_named) > n_known).any():
        raise ValueError("it has other outputs than classes")
    have = states[:, [places[name] for name in shared.settings]]
    is_up_to_date = np.array([kept.settings for kept in group]) == shared.n_settings
    if (have[is_up_to_date] != list(shared.settings.values())).any():
        raise ValueError("its settings are not those of the fleet")
