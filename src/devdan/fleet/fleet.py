"""DEVDANFleet: a network for each key, as many as there are."""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Mapping, Sequence
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state
from sklearn.utils.validation import _num_samples

from devdan.arrays import Floats, Integers
from devdan.encoding.encoding import Instructions
from devdan.fleet import keys as labels
from devdan.fleet import saving
from devdan.fleet.access import FleetAccess, copy_columns
from devdan.fleet.keys import Key
from devdan.fleet.network_store import KeyStore, Store
from devdan.fleet.networks import INPUTS, SETTINGS
from devdan.fleet.saving import FleetContent, Saves
from devdan.fleet.shared import DEFAULT, Shared, check_model, check_no_replay, kept_of, learn_rows, predict_rows
from devdan.kernel import DISCRIMINATIVE, GENERATIVE
from devdan.model import modelfile, options
from devdan.model.classes import check_sample_weight
from devdan.model.classifier import EvolvingClassifier
from devdan.model.decision import Deciding
from devdan.model.devdan import DEVDAN
from devdan.model.ensemble import DEVDANEnsemble
from devdan.model.estimator import Chunk
from devdan.model.mixture import seeds_of
from devdan.model.scales import Scale

if TYPE_CHECKING:
    from typing_extensions import Self


def _keyed(keys: Any, X: Any) -> tuple[str | None, list[Key], Any]:
    """The column of the keys, if they come in one, the key of each row, and the rows; almost free for an array."""
    name = keys if isinstance(keys, str) else None
    keys, X = labels.split(keys, X)
    n_rows = len(X) if type(X) is np.ndarray and X.ndim == 2 else int(_num_samples(X))
    return name, labels.checked(keys, n_rows), X


@options.documented
class DEVDANFleet(Deciding, FleetAccess):
    """A DEVDAN for each key: one per device, customer or sensor, as many as there are.

    Rows of many keys come in one call, in any order; each goes to the network of its key, in order of arrival. All
    networks have the same inputs, options and classes. What a key learns is bit for bit what a :class:`DEVDAN` learns
    that is given the rows of this key in the same portions, with the key's seed, and starts from what the key started
    from. Keys are text, numbers, flags, or tuples of text and numbers; those of a fleet are all of one kind. Wherever
    ``keys`` are asked for, the name of a column will do if ``X`` is a table: that column then is no feature.

    With a prior, a shared network learns from the rows of all keys, first, and a new key starts as its copy, with a
    seed of its own. What it knows counts for at most 20 samples, and the scale of its inputs for 5, so that the key
    soon learns where it differs. The shared network stops to grow at 8 hidden units, so that its copies are small, and
    after 10,000 rows learns from every fourth, so that it does not take long.

    A key of which nothing is known yet is predicted by the prior, or without one by the shares of the classes among all
    labels. Invalid input raises a ``ValueError`` or a ``TypeError`` and leaves the fleet unchanged. Several threads may
    use a fleet: their calls run one after the other, each in threads of its own.

    Parameters
    ----------
    estimator : DEVDAN, default=None
        What the networks are; ``None`` is a ``DEVDAN(rehearse=0)``. It must have no initial weights and
        ``rehearse=0``: a network that replays samples would keep a thousand for each key. Without a prior,
        its ``random_state`` is that of every key, if it is not ``None``.
    {fleet options}
    store : str, path or KeyStore, default=None
        A file for networks that do not stay in memory, and for :meth:`save`. It must not hold a fleet already:
        :meth:`load` opens such a one. Or a store of another kind, which whoever has made it saves to.
    random_state : int, RandomState or None, default=None
        Seed of the fleet. Each key draws its own from it and from its label, so that the order in which keys come does
        not matter.

    Attributes
    ----------
    classes_ : the classes of all keys, sorted.
    n_features_in_, feature_names_in_, encoding_ : as in DEVDAN.
    n_rows_ : rows that were learned from so far, with or without labels.
    key_name_ : the column of a table that the keys came from, None if they came beside it.
    prior_ : the shared network, as a DEVDAN.

    Examples
    --------
    >>> import numpy as np
    >>> from devdan import DEVDANFleet
    >>> random = np.random.default_rng(1)
    >>> fleet = DEVDANFleet(random_state=1)
    >>> for _ in range(40):
    ...     device, X = random.choice(["pump", "fan", "press"], 500), random.random((500, 3))
    ...     y = np.where(device == "fan", X[:, 0] > X[:, 1], X[:, 0] + X[:, 1] > 1)
    ...     fleet = fleet.partial_fit(device, X, y)
    >>> fleet.predict(["pump", "fan"], [[0.9, 0.3, 0.5], [0.3, 0.9, 0.5]])
    array([ True, False])
    >>> len(fleet), fleet["fan"].n_hidden_ > 1
    (3, True)
    """

    _seed: int
    _saves: Saves
    _settled: tuple[Any, ...] | None = None  # parameters that have been checked

    def __init__(
        self,
        estimator: DEVDAN | None = None,
        *,
        prior: bool = True,
        n_jobs: int | None = -1,
        decide: str | Mapping[Any, Any] = "likeliest",
        store: str | os.PathLike[str] | KeyStore | None = None,
        max_in_memory: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.estimator = estimator
        self.prior = prior
        self.n_jobs = n_jobs
        self.decide = decide
        self.store = store
        self.max_in_memory = max_in_memory
        self.random_state = random_state
        self._lock = threading.RLock()

    # --- Learning ------------------------------------------------------------------------------------------------

    def partial_fit(
        self,
        keys: Any,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        classes: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> Self:
        """Learn from labelled rows, each for its key: :meth:`observe`, then :meth:`teach`.

        ``classes`` may name classes in advance, for all keys; ``sample_weight`` is as in :meth:`DEVDAN.fit`. Rows whose
        label is None or NaN are observed, and no more.
        """
        with self._lock:
            name, given, X = _keyed(keys, X)
            partly = self._partly_labelled(X, y, classes, sample_weight)
            if partly is None:
                return self._learn(name, given, X, y, classes, GENERATIVE, DISCRIMINATIVE, sample_weight)
            self._learn(name, given, partly.X, None, classes, GENERATIVE, GENERATIVE, partly.weights)
            if not partly.known.any():
                return self
            given = list(compress(given, partly.known))
            labelled, weights = partly.labelled, partly.labelled_weights
            return self._learn(name, given, *labelled, classes, DISCRIMINATIVE, DISCRIMINATIVE, weights)

    def observe(self, keys: Any, X: npt.ArrayLike) -> Self:
        """Learn from rows without labels: the generative phase."""
        return self._learn(*_keyed(keys, X), None, None, GENERATIVE, GENERATIVE)

    def teach(
        self,
        keys: Any,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        classes: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> Self:
        """Learn from rows whose labels have arrived: the discriminative phase; see :meth:`DEVDAN.teach`."""
        return self._learn(*_keyed(keys, X), y, classes, DISCRIMINATIVE, DISCRIMINATIVE, sample_weight)

    def forget(self, keys: Any, X: npt.ArrayLike, y: npt.ArrayLike | None = None) -> Self:
        """Take labels back that were taught to these keys: they count no longer for the weights of classes.

        What the networks have learned from them stays, and so does what the prior has; see :meth:`DEVDAN.forget`.
        Without labels, nothing is forgotten: the networks replay no samples, so they keep none.
        """
        with self._lock:
            self._check_is_fitted()
            _, given, X = _keyed(keys, X)
            self._check_kind(given)
            inputs = self._inputs(X)
            if y is None:
                return self
            codes = self._shared.classes.known_codes(self._labels(y, len(inputs)))
            slots = self._networks.bring(given, self.max_in_memory)
            if self._shared.mixture.decision.learns:
                self._shared.mixture.decision.forget(self._predicted(slots, inputs), codes)
            self._refresh(slots)
            self._networks.slots.withdraw(slots, inputs, codes)
            self._shared.withdraw(codes)
            return self

    def forget_values(self, X: Any, columns: Sequence[str]) -> Self:
        """Forget the texts of these rows in some columns, for all keys; see :meth:`DEVDAN.forget_values`."""
        with self._lock:
            self._check_is_fitted()
            encoding = self._encoding_without(X, columns)
            if encoding is not None:
                self._shared.mixture.adapt(encoding)
                self._shared.note_inputs()
            return self

    def _learn(
        self,
        name: str | None,
        given: list[Key],
        X: Any,
        y: Any,
        classes: Any,
        first: int,
        last: int,
        sample_weight: Any = None,
    ) -> Self:
        with self._lock:
            self._check_options()
            begins, taught = not self.__sklearn_is_fitted__(), last == DISCRIMINATIVE
            if not begins:
                self._check_kind(given)
                slots = self._networks.bring(given, self.max_in_memory)
            with self._unharmed():
                chunk = self._checked(X, y, classes, taught, sample_weight, afresh=begins)
                if chunk is None:
                    return self
                chosen = self._options()
                changed = begins or options.differ(chosen, self._shared.mixture.options)
                if changed:
                    options.check(chosen)
                if begins:
                    self._begin(self._new_shared(chosen, chunk), given[0])
                    slots = np.full(len(given), -1)
                elif changed:
                    options.check_fixed(chosen, self._shared.mixture.options)
            n_known = len(self._shared.classes)
            self._shared.prepare(chunk, chosen if changed else None, classes, taught)
            if sample_weight is not None:  # rows of weight zero are left out
                kept = np.flatnonzero(check_sample_weight(sample_weight, len(given)))
                given, slots = [given[row] for row in kept.tolist()], slots[kept]
            if self._shared.mixture.decision.learns and n_known > 0:
                out = self._predicted(slots, chunk.X)[:, :n_known]
                self._shared.mixture.follow(out, chunk.codes, first, last)
            self._n_rows += len(given)
            self._key_name = name or self._key_name
            self._step(given, slots, chunk, first, last)
            return self

    def _step(self, given: Sequence[Key], slots: Integers, chunk: Chunk, first: int, last: int) -> None:
        """Let the networks learn: the prior beside those that are known, then the new ones."""
        shared, memory = self._shared, self._networks.slots
        common = memory, shared, chunk, first, last, self.n_jobs
        prior_rows = shared.rows_for_prior(len(slots), first)
        if len(prior_rows) > 0:
            shared.take_place(memory)
        if (slots.item() if len(slots) == 1 else slots.min()) >= 0:  # for one row, five times as fast as min()
            self._refresh(slots)
            learn_rows(*common, slots, np.arange(len(slots)), prior_rows, True, self._n_rows)
            return
        known, fresh = np.flatnonzero(slots >= 0), np.flatnonzero(slots < 0)
        if len(known) + len(prior_rows) > 0:
            self._refresh(slots[known])
            learn_rows(*common, slots[known], known, prior_rows, True, self._n_rows)
        keys = [given[row] for row in fresh.tolist()]
        different = list(dict.fromkeys(keys))
        added = self._networks.add(different, shared.start(), self._seeds(different))
        try:
            learn_rows(*common, memory.find(keys), fresh, prior_rows[:0], False, self._n_rows)
        finally:
            self._networks.drop_unbegun(added)  # after Ctrl-C

    def _refresh(self, slots: Integers, told: bool = True) -> None:
        """Bring the networks in some slots up to date, as a model is told of options when it learns; -1 is none."""
        memory, shared = self._networks.slots, self._shared
        inputs, settings = shared.versions
        if inputs == settings == 0:  # there was never another
            return
        slots = slots[slots >= 0]
        old = memory.table[slots, INPUTS] != inputs
        if told:
            old |= memory.table[slots, SETTINGS] != settings
        for slot in np.unique(slots[old]).tolist():
            memory.put(slot, shared.up_to_date(memory.get(slot), told))

    # --- Beginning -----------------------------------------------------------------------------------------------

    @property
    def _member(self) -> DEVDAN:
        member = DEFAULT if self.estimator is None else self.estimator
        if not isinstance(member, DEVDAN) or member.initial_weights is not None:
            raise ValueError(f"estimator must be a DEVDAN(rehearse=0) without initial weights, got {member!r}")
        check_no_replay("estimator", member)
        options.check_leaves_decision("the fleet", member)
        return member

    def _options(self) -> dict[str, Any]:
        """Those of the networks, which decide as the fleet does."""
        return {**self._member._options(), "decide": self.decide}

    @property
    def scaling(self) -> Any:
        """The networks'."""
        return self._member.scaling

    def check_options(self) -> None:
        """Raise a ``ValueError`` that names an option of the networks that is out of range."""
        options.check(self._options())

    def _instructions(self) -> Instructions:
        return self._member._instructions()

    def _scales(self) -> list[Scale]:
        """The time scale of each network of a key: there is one."""
        return self._member._scales()

    def _check_options(self) -> None:
        chosen = self.prior, self.n_jobs, self.max_in_memory, self.store, self.decide
        if chosen == self._settled:
            return
        for name in ("prior", "n_jobs", "max_in_memory", "decide"):
            options.OPTIONS[name].check(getattr(self, name))
        options.require(
            self.store is None or isinstance(self.store, (str, os.PathLike, KeyStore)),
            "store",
            "a path, a KeyStore or None",
            self.store,
        )
        if self.max_in_memory is not None and self.store is None:
            raise ValueError(f"max_in_memory={self.max_in_memory} needs a store: the path of a file for other keys")
        if self._settled is not None:
            for name, before, now in (("prior", self._settled[0], self.prior), ("store", self._settled[3], self.store)):
                if before != now:
                    raise ValueError(f"{name} must stay {before!r} once the fleet has learned, got {now!r}")
        if self.__sklearn_is_fitted__():
            self._settled = chosen

    def _new_shared(self, chosen: dict[str, Any], chunk: Chunk) -> Shared:
        self._seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int64).max, dtype=np.int64))
        own, seed = self._member.random_state, self._seed
        if own is not None:
            (seed,) = seeds_of(check_random_state(own), 1)
        return Shared.beginning(chosen, chunk.X.shape[1], chunk.classes, chunk.encoding, self.prior, seed)

    def _begin(self, shared: Shared, example: Key) -> None:
        """Become a fleet that has seen nothing yet but how its rows look."""
        own = self.store
        store = Store.create(own, exclusive=True) if isinstance(own, (str, os.PathLike)) else own
        networks = saving.networks_in(store, shared, example)
        self._hold(FleetContent(shared, networks, example, self._seed, 0, None, Saves(uuid.uuid4().hex)))

    def content(self) -> FleetContent:
        """All that it is but its options and the names of its columns; not a copy."""
        own = self._shared, self._networks, self._example, self._seed, self._n_rows, self._key_name, self._saves
        return FleetContent(*own)

    def resume(self, content: FleetContent) -> None:
        """Go on from what another fleet was; raises a ``ValueError`` unless the options fit."""
        self._check_options()
        given, theirs = self._options(), content.shared.mixture.options
        options.check(given)
        if not all(options.same(given[name], theirs[name]) for name in theirs):
            raise ValueError("its estimator has other options than its networks")
        self._hold(content)

    def _hold(self, content: FleetContent) -> None:
        self._shared, self._networks, self._example, self._seed, self._n_rows, self._key_name, self._saves = content
        self._settled = self.prior, self.n_jobs, self.max_in_memory, self.store, self.decide

    def _check_kind(self, keys: Sequence[Key]) -> None:
        labels.check_kind(labels.kind_of(self._example), self._example, keys)

    def _seeds(self, keys: Sequence[Key]) -> list[int] | None:
        """The seed of each key; None if all have that of the estimator."""
        if not self._shared.is_prior and self._member.random_state is not None:
            return None
        return [labels.seed_of(key, self._seed) for key in keys]

    # --- Prediction ----------------------------------------------------------------------------------------------

    def predict_proba(self, keys: Any, X: npt.ArrayLike) -> Floats:
        """The probability of each class in ``classes_``, by the network of each row's key; one row per sample."""
        with self._lock:
            out = self._probabilities(keys, X)
            return out[:, self._shared.classes.outputs]

    def predict(self, keys: Any, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """What each row is called, by the network of its key."""
        with self._lock:
            return self.decided(self.predict_proba(keys, X))

    def _probabilities(self, keys: Any, X: Any) -> Floats:
        """The probability of each class, by code."""
        _, given, X = _keyed(keys, X)
        self.classes_  # noqa: B018 (raises an error if there are none)
        self._check_options()
        self._check_kind(given)
        rows = self._inputs(X)
        return self._predicted(self._networks.bring(given, self.max_in_memory), rows)

    def _predicted(self, slots: Integers, rows: Floats) -> Floats:
        """The same for rows of the networks in these slots."""
        self._refresh(slots, told=False)
        out = np.zeros((len(rows), len(self._shared.classes)))
        predict_rows(self._networks.slots, self._shared, slots, rows, out, self.n_jobs)
        return out

    # --- Models of their own ---------------------------------------------------------------------------------------

    def __setitem__(self, key: Any, model: DEVDAN) -> None:
        """Give a key a copy of a model, which must have the fleet's features and fixed options."""
        with self._lock:
            (own,) = labels.checked([key], 1)
            self._check_options()
            check_model(model)
            if not self.__sklearn_is_fitted__():
                chosen = self._options()
                options.check(chosen)
                nothing = Chunk(np.empty((0, model.mixture_.n_inputs)), encoding=model.mixture_.encoding)
                shared = self._new_shared(chosen, nothing)
                kept = kept_of(shared, model.mixture_)
                copy_columns(model, self)
                self._begin(shared, own)
            else:
                self._check_kind([own])
                self._check_columns(model)
                kept = kept_of(self._shared, model.mixture_)
            self._networks.put(own, kept._replace(seen=self._n_rows), self.max_in_memory)

    def _check_columns(self, model: DEVDAN) -> None:
        names, own = (getattr(each, "feature_names_in_", np.empty(0)).tolist() for each in (self, model))
        if self.n_features_in_ != model.n_features_in_ or names != own:
            raise ValueError(
                f"the model must have the features of this fleet, {names or self.n_features_in_}, got "
                f"{own or model.n_features_in_}"
            )

    # --- Saving and loading --------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str] | None = None) -> None:
        """Save the fleet to a file, or to its store; a fleet from :meth:`load` continues bit for bit.

        Where it was last saved there, only what has changed since is written. After a crash, whenever it comes, the
        file holds the fleet as it was last saved.
        """
        with self._lock:
            self._check_is_fitted()
            own = None if isinstance(self.store, KeyStore) else self.store
            saving.save(self, own if path is None else path)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, max_in_memory: int | None = None) -> Self:
        """Load a fleet from a file written by :meth:`save`. Nothing in the file is executed.

        With ``max_in_memory``, here or when it was saved, the file is the store of the fleet: keys come from it when
        they are needed. Else all of them are loaded.
        """
        fleet: Self = saving.load(cls, path, max_in_memory)
        return fleet

    def close(self) -> None:
        """Let go of the store, so that others can have it; the fleet cannot be used after this."""
        with self._lock:
            if self.__sklearn_is_fitted__() and isinstance(self._networks.store, Store):
                self._networks.store.close()

    def __getstate__(self) -> dict[str, Any]:
        if self.__sklearn_is_fitted__() and isinstance(self._networks.store, Store):
            raise TypeError("a fleet with a store cannot be copied or pickled: save it to another file and load that")
        with self._lock:
            content: dict[str, Any] = super().__getstate__()
            return {name: value for name, value in content.items() if name != "_lock"}

    def __setstate__(self, content: dict[str, Any]) -> None:
        super().__setstate__(content)
        self._lock = threading.RLock()


def compile_fleet() -> None:
    """Compile what fleets need, or load it from the cache, so that no later call has to."""
    keys, X = ["a", "b"], np.array([[0.0], [1.0]])
    fleet = DEVDANFleet(n_jobs=1).partial_fit(keys, X, [0, 1])
    fleet.predict(keys, X)
    fleet.summary()


KINDS: tuple[type[EvolvingClassifier], ...] = (DEVDAN, DEVDANEnsemble)  # models in files of their own


def open_model(path: str | os.PathLike[str]) -> EvolvingClassifier | DEVDANFleet:
    """The model or the fleet in a file written by ``save``. Nothing in the file is executed."""
    if Path(path).is_file():
        with open(path, "rb") as file:
            if file.read(len(modelfile.SQLITE)) == modelfile.SQLITE:
                return DEVDANFleet.load(path)
    return modelfile.load(path, *KINDS)
