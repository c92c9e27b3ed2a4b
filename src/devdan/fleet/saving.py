"""A fleet in a file: its networks as rows of a store, and beside them what they share.

Whatever a file holds, compiled code must be safe with it: all that is read is checked.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from devdan.arrays import Floats
from devdan.fleet.keys import Key, kind_of, of_text, text_of
from devdan.fleet.network_store import Kept, KeyStore, Row, Store
from devdan.fleet.networks import EVENTS, Networks
from devdan.fleet.shared import DEFAULT, Shared, scale_of
from devdan.kernel import EVOLVING, Evolving
from devdan.kernel.state import HEADER, LARGEST_COUNT, SETTINGS, aligned, check_state, check_states, sizes_of
from devdan.model import modelfile, options
from devdan.model.devdan import DEVDAN
from devdan.model.modelfile import ModelFileError

_AT_ONCE = 1000  # rows that are checked together


@dataclass
class Saves:
    """Which fleet it is, in stores, and how often and where it was saved."""

    id: str
    number: int = 0  # saves so far
    place: str = ""  # where it was last saved, if it has no store
    number_there: int = 0  # and how many saves there had been then


class FleetContent(NamedTuple):
    """All that a fleet is but its options and the names of its columns."""

    shared: Shared
    networks: Networks
    example: Key  # one of the keys, which says of which kind they are
    seed: int
    n_rows: int
    key_name: str | None
    saves: Saves


def networks_in(store: KeyStore | None, shared: Shared, example: Key) -> Networks:
    """The networks of a fleet that has a store, or none; what comes from the store is checked."""
    check = partial(check_rows, shared, kind_of(example))
    return Networks(check, store, 0 if store is None else store.count())


def save(fleet: Any, path: str | os.PathLike[str] | None) -> None:
    """Save a fleet to its store, or to another file; there only what has changed, if it was last saved there."""
    if path is None:
        raise ValueError("path must be given, as this fleet has no store")
    place = os.path.realpath(path)
    own, saves = fleet.content().networks.store, fleet.content().saves
    if isinstance(own, Store) and place == os.path.realpath(own.path):
        _write(fleet, own, afresh=False)
        return
    store = Store.open_or_create(path)
    try:
        found = store.header()
        there = None if found is None else (found[0].get("id"), place, found[0].get("n_saves"))
        _write(fleet, store, afresh=there != (saves.id, saves.place, saves.number_there))
    finally:
        store.close()
    if own is None:
        saves.place, saves.number_there = place, saves.number


def _write(fleet: Any, store: Store, afresh: bool) -> None:
    networks, saves = fleet.content().networks, fleet.content().saves
    rows = networks.all_rows() if afresh else networks.changed_rows()
    header = _header_of(fleet) | {"n_saves": saves.number + 1}
    store.save(header, fleet.content().shared.network(), rows, networks.gone, afresh)
    saves.number += 1
    if networks.store in (store, None):
        networks.note_saved()


def _header_of(fleet: Any) -> dict[str, Any]:
    """All but the networks."""
    own: FleetContent = fleet.content()
    return {
        "id": own.saves.id,
        "n_saves": own.saves.number,
        "n_rows": own.n_rows,
        "seed": own.seed,
        "example": text_of(own.example),
        "key_name": own.key_name,
        "options": {name: getattr(fleet, name) for name in ("prior", "n_jobs", "max_in_memory", "decide")},
        "estimator": modelfile.options_as_json(fleet.kept_estimator().get_params(deep=False)),
        "random_state": int(fleet.random_state) if isinstance(fleet.random_state, (int, np.integer)) else None,
        "shared": _header_of_shared(own.shared) | {"columns": modelfile.columns_of(fleet)},
    }


# --- For whoever saves to a store of another kind ----------------------------------------------------------------


def shared_of(fleet: Any) -> tuple[dict[str, Any], Floats]:
    """All but the networks of keys: a header and a network, the same whenever the fleet is the same."""
    return _header_of(fleet) | {"id": "", "n_saves": 0}, fleet.content().shared.network()


def take(fleet: Any, rows: Iterable[Row]) -> None:
    """Take in networks that come from elsewhere, which are checked."""
    rows = iter(rows)
    while part := list(islice(rows, _AT_ONCE)):
        fleet.content().networks.take(part)


def are_same(one: Any, other: Any) -> bool:
    """Whether two fleets are the same, bit for bit, wherever their networks are."""
    if len(one) != len(other) or _shared_bytes(one) != _shared_bytes(other):
        return False
    for row in one.content().networks.all_rows():
        found = other.content().networks.get(of_text(row.text))
        if found is None or _bytes_of(found) != _bytes_of(row.kept):
            return False
    return True


def _shared_bytes(fleet: Any) -> tuple[bytes, bytes]:
    header, network = shared_of(fleet)
    header["options"] = header["options"] | {"max_in_memory": None}
    return json.dumps(header, default=modelfile.plain, sort_keys=True).encode(), network.tobytes()


def _bytes_of(kept: Kept) -> tuple[Any, ...]:
    return kept.state.tobytes(), kept.codes.tobytes(), *kept[2:]


# --- Loading -----------------------------------------------------------------------------------------------------


def load(kind: Any, path: str | os.PathLike[str], max_in_memory: int | None, whole: bool = False) -> Any:
    """A fleet of this class from a file; with a limit, the file becomes its store, unless it is loaded as a whole."""
    options.OPTIONS["max_in_memory"].check(max_in_memory)
    store = Store.open(path, exclusive=False, read_only=True)
    try:
        limit = None if whole else max_in_memory or _saved(store)[0]["options"]["max_in_memory"]
        if limit is not None:
            store.close()
            store = Store.open(path, exclusive=True)
            store.discard_changes()
        fleet = restored(kind, *_saved(store), limit, store)
        if limit is None:
            take(fleet, store.saved_rows())
            store.close()
    except BaseException as error:
        store.close()
        if isinstance(error, INVALID) and not isinstance(error, ModelFileError):
            raise ModelFileError(f"{path} does not hold a valid fleet: {error}") from error
        raise
    return fleet


INVALID = (ValueError, KeyError, IndexError, TypeError, OverflowError, RecursionError, AttributeError)


def _saved(store: Store) -> tuple[dict[str, Any], Floats]:
    found = store.header()
    if found is None:
        raise ModelFileError(f"{store.path} holds no fleet: none was ever saved to it completely")
    return found


def restored(
    kind: Any, header: dict[str, Any], network: Floats, limit: int | None = None, store: KeyStore | None = None
) -> Any:
    """The fleet, without networks; with a limit, they are in the store."""
    chosen = header["options"]
    options.OPTIONS["prior"].check(chosen["prior"])
    shared = _shared_of(header["shared"], network, chosen["prior"])
    estimator = DEVDAN.of_kept_options(modelfile.options_of_json(header["estimator"]))
    fleet = kind(
        None if estimator.get_params() == DEFAULT.get_params() else estimator,
        prior=chosen["prior"],
        n_jobs=chosen["n_jobs"],
        decide=chosen["decide"],
        max_in_memory=limit,
        store=None if limit is None else str(store.path) if isinstance(store, Store) else store,
        random_state=header["random_state"],
    )
    counts = header["n_saves"], header["n_rows"], header["seed"]
    numbers = *counts, *shared.n_offered, shared.n_settings
    if len(numbers) != 6 or not all(isinstance(number, int) and 0 <= number < 2 * LARGEST_COUNT for number in numbers):
        raise ValueError("its counters are out of range")
    n_saves, n_rows, seed = counts
    example, key_name = of_text(header["example"]), header["key_name"]
    place = os.path.realpath(store.path) if isinstance(store, Store) else ""
    fleet.resume(
        FleetContent(
            shared,
            networks_in(None if limit is None else store, shared, example),
            example,
            seed,
            n_rows,
            None if key_name is None else str(key_name),
            Saves(str(header["id"]), n_saves, place, n_saves),
        )
    )
    modelfile.take_columns(fleet, header["shared"]["columns"], shared.mixture)
    return fleet


# --- What networks share -----------------------------------------------------------------------------------------


def _header_of_shared(shared: Shared) -> dict[str, Any]:
    """All that the networks share, but the prior's own network."""
    return {
        "options": modelfile.options_as_json(shared.mixture.options),
        "mixture": modelfile.header_of_mixture(shared.mixture),
        "inputs": shared.inputs,
        "n_settings": shared.n_settings,
        "named": shared.named.tolist(),
        "label_counts": shared.label_counts.tolist(),
        "n_offered": shared.n_offered,
    }


def _shared_of(header: dict[str, Any], network: Floats, is_prior: bool) -> Shared:
    """What the networks share, as it was; raises an error of several kinds unless all of it is valid."""
    state = aligned(len(network))
    state[:] = network
    _check_network(state)
    chosen, content = modelfile.options_of_json(header["options"]), header["mixture"]
    if set(chosen) != set(options.NAMES):
        raise ValueError("its options are not those of a network")
    options.check(chosen)
    shared = Shared(modelfile.mixture_of(content, [state], chosen, [scale_of(chosen)]), is_prior)
    shared.inputs = [tuple(int(number) for number in order) for order in header["inputs"]]
    shared.n_settings = int(header["n_settings"])
    shared.n_offered = [int(number) for number in header["n_offered"]]
    encoding = shared.mixture.encoding
    if shared.inputs[-1:] != [() if encoding is None else encoding.order]:
        raise ValueError("its inputs are not those of its encoding")
    named = modelfile.labels_of(header["named"], str(content["dtype"]))
    counts = np.array(header["label_counts"], dtype=np.int64)
    if not np.isin(named, shared.classes.labels).all() or not np.array_equal(np.unique(named), named):
        raise ValueError("it names classes that do not exist")
    if counts.ndim != 1 or len(counts) > len(shared.classes) or (counts < 0).any():
        raise ValueError("its labels are not counted by class")
    shared.named, shared.label_counts = named, counts
    _check_versions(shared)
    _check_start(shared)
    return shared


def _check_versions(shared: Shared) -> None:
    """Each version of the inputs must lead to the current one as inputs change: some go, and others come last."""
    now = shared.inputs[-1]
    known = set(now)
    for order in shared.inputs:
        kept = tuple(number for number in order if number in known)
        if len(order) == 0 != len(now) or len(set(order)) != len(order) or kept != now[: len(kept)]:
            raise ValueError("a version of its inputs cannot have become that of its encoding")


def _check_start(shared: Shared) -> None:
    """What new keys begin with must be as safe as what was read; without a prior, nothing was learned by it."""
    net = shared.mixture.nets[0]
    if not shared.is_prior and (net.n_hidden > 0 or net.n_classes > 0 or net.n_seen > 0):
        raise ValueError("it has no prior, but its network has learned")
    kept = shared.start()
    _check_network(kept.state)
    _check_kept(shared, kept)


def _check_network(state: Floats) -> None:
    """As for any state, but it may have no hidden units yet."""
    begun = state.copy()
    where = Evolving.n_hidden.start  # type: ignore[attr-defined]
    if len(state) > where and begun.view(np.int64)[where] == 0:
        begun.view(np.int64)[where] = 1
    check_state(begun)
    if state.view(np.int64)[0] != EVOLVING or sizes_of(state).events != EVENTS:
        raise ValueError("its network has another size than those of a fleet")


# --- Rows of a store, which may hold anything ---------------------------------------------------------------------


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
    behind = [row for row in rows if (row.kept.inputs, row.kept.settings) != shared.versions]
    if behind:  # what they will be when they are back
        check_rows(shared, kind, [row._replace(kept=shared.up_to_date(row.kept)) for row in behind])


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
    if states.view(np.int64)[0, 0] != EVOLVING:
        raise ValueError("it does not evolve")
    integers, sizes = states.view(np.int64), sizes_of(states[0])
    places = {name: place for name, (place, _) in Evolving.places(sizes).items()}
    n_known = np.array([len(kept.codes) for kept in group])
    n_features, n_classes, n_named = (integers[:, places[name]] for name in ("n_features", "n_classes", "n_named"))
    n_inputs = np.array([len(order) or shared.mixture.n_inputs for order in shared.inputs])
    if (n_features != n_inputs[[kept.inputs for kept in group]]).any() or sizes.events != EVENTS:
        raise ValueError("its inputs are not those of the fleet")
    if (n_known > sizes.classes).any() or (np.maximum(n_classes, n_named) > n_known).any():
        raise ValueError("it has other outputs than classes")
    names = [name for name in SETTINGS[Evolving] if name in shared.settings]
    have = states[:, [places[name] for name in names]]
    is_up_to_date = np.array([kept.settings for kept in group]) == shared.n_settings
    if (have[is_up_to_date] != [shared.settings[name] for name in names]).any():
        raise ValueError("its settings are not those of the fleet")
