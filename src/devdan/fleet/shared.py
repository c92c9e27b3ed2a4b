"""What the networks of a fleet share: inputs, classes, options, and the network that new ones start from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from devdan import kernel
from devdan.arrays import Floats, Words
from devdan.fleet.slots import Kept, Slots, room, room_for
from devdan.kernel import BIAS2, BY_AVERAGES, COUNT, DISCRIMINATIVE, RESTART, VARIANCE, Network
from devdan.kernel.state import AVERAGED, set_settings, sizes_of, with_features, with_room
from devdan.model import mixture, options, weighing
from devdan.model.classes import Classes, check_labels
from devdan.model.devdan import DEVDAN

if TYPE_CHECKING:
    from typing_extensions import Self

DEFAULT = DEVDAN(rehearse=0)  # what the networks are by default; nothing changes it
MOST_UNITS = 8  # with which the prior stops to grow, so that what starts as its copy is small
ALL_ROWS, EVERY = 10_000, 4  # rows from all of which the prior learns, and from which of those after them
WORTH = 20  # samples that what a new key knows counts for at most, so that it soon learns where it differs
SCALE_WORTH = 5  # for which the scale of its inputs counts: keys often have units and zeros of their own
_NO_CODES, _ONE_ROW = np.empty(0, np.int64), np.zeros(1, np.int64)
_N_HIDDEN, _GROWS = Network.n_hidden.start, Network.grows.start  # type: ignore[attr-defined]


class Portion(NamedTuple):
    """Rows to learn from, as the kernel takes them."""

    X: Floats
    codes: Words  # the classes of the rows; none without labels
    weights: Floats  # of the rows; none if all weigh the same


class Shared(DEVDAN):
    """A DEVDAN that is given the rows of all keys; its network learns from them if it is to be a prior.

    Inputs and settings have versions: a key that was not there when they changed is brought up to date when it is back.
    """

    estimator: DEVDAN  # has the options; they may be changed
    is_prior: bool
    inputs: list[tuple[int, ...]]  # versions: the numbers of the encoding's inputs in order; () for plain numbers
    settings: dict[str, float]  # the kernel's, of now
    n_settings: int  # versions of them that there were before
    named: npt.NDArray[Any]  # classes named in advance, sorted
    label_counts: Words  # of all keys, by code; not counted where there is a prior
    n_offered: list[int]  # rows that the prior might have learned from: new ones, and others that were only taught
    slot: int = -1  # where the prior is
    _placed: Floats  # its state there
    _seed: int  # of its network, if the estimator has none
    _portion: Portion | None = None

    @classmethod
    def of(cls, estimator: DEVDAN, is_prior: bool, seed: int) -> Self:
        """One that has seen nothing."""
        shared = cls(**estimator.get_params(deep=False))
        shared.estimator, shared.is_prior, shared._seed = estimator, is_prior, seed
        shared.inputs, shared.settings, shared.n_settings = [], {}, -1
        shared.named, shared.label_counts, shared.n_offered = _NO_CODES, _NO_CODES, [0, 0]
        return shared

    @classmethod
    def _of_kept_options(cls, params: dict[str, Any]) -> Self:
        return cls.of(DEVDAN._of_kept_options(params), is_prior=True, seed=0)

    def _options(self) -> dict[str, Any]:
        return self.estimator._options()

    def _begin(self, classes: Classes, n_named: int) -> None:
        super()._begin(classes, n_named)
        n, _, m, *_ = sizes_of(self._layers[0])
        self._layers = [with_room(self._layers[0], room(n, self._most_units + 2, m))]
        if self.random_state is None:
            Network(self._layers[0]).random[0] = self._seed

    # --- Rows ----------------------------------------------------------------------------------------------------

    def prepared(self, X: Any, y: Any, classes: Any, first: int, last: int, sample_weight: Any) -> Portion | None:
        """Check rows, and learn from them all that is not in networks; None if all of their weights are zero."""
        self._learn(X, y, classes, first, last, sample_weight)
        portion, self._portion = self._portion, None
        if portion is None:
            return None
        self.note_inputs()
        if classes is not None:
            named = check_labels(classes)
            self.named = np.unique(np.concatenate([self.named, named]) if len(self.named) > 0 else named)
        if last == DISCRIMINATIVE and not self.is_prior:
            self._count_labels(portion.codes)
        return portion

    def _count_labels(self, codes: Words) -> None:
        n_new = len(self._classes) - len(self.label_counts)
        if n_new > 0:
            self.label_counts = np.append(self.label_counts, np.zeros(n_new, np.int64))
        if len(codes) == 1:  # at once: single rows are mostly this
            self.label_counts[codes.item()] += 1
        else:
            self.label_counts += np.bincount(codes, minlength=len(self.label_counts))

    def _calibrate(self, X: Floats, codes: Words, weights: Floats) -> None:
        """The step of the portion does that, for each network by itself."""

    def _visit(self, X: Floats, codes: Words, weights: Floats, first: int, last: int) -> None:
        """Keep the rows: it is the fleet that lets networks learn from them."""
        self._portion = Portion(X, codes, weights)

    def _pass_options(self) -> None:
        super()._pass_options()
        for name, value in self._chosen.items():
            setattr(self, name, value)
        settings = options.settings(self._chosen)
        if settings != self.settings:
            self.settings, self.n_settings = settings, self.n_settings + 1

    def note_inputs(self) -> None:
        """Another version of the inputs, if they are others than before."""
        order = () if self._encoding is None else self._encoding.order
        if not self.inputs or self.inputs[-1] != order:
            self.inputs = [*self.inputs, order]

    # --- The prior among the networks of the fleet ---------------------------------------------------------------

    @property
    def _most_units(self) -> int:
        return max(MOST_UNITS, int(self.n_hidden))

    def take_place(self, memory: Slots) -> None:
        """Have the prior where compiled code finds it, with as much room as it may grow."""
        if self.slot < 0:
            self.slot = memory.hold(Kept(self._layers[0], _NO_CODES))
        elif self._layers[0] is not self._placed:  # it has other inputs, or room for more classes
            memory.put(self.slot, Kept(self._layers[0], _NO_CODES))
        else:
            state = self._placed
            n_hidden, grows = state.view(np.int64).item(_N_HIDDEN), state.item(_GROWS)
            if grows == float(self.grow and n_hidden < self._most_units):
                return
        self._placed = memory.state(self.slot)
        net = Network(self._placed)
        net.grows = float(self.grow and net.n_hidden < self._most_units)
        self._give_room(memory, max(net.n_hidden, self._most_units) + 2)

    def rows_for_prior(self, n_rows: int, first: int) -> Words:
        """Which of the rows that come now the prior learns from, in phases from the first on."""
        if not self.is_prior:
            return _NO_CODES
        number = self.n_offered[first]
        self.n_offered[first] += n_rows
        if number + n_rows <= ALL_ROWS:
            return np.arange(n_rows)
        if n_rows == 1:  # at once: single rows are mostly this
            return _ONE_ROW if number % EVERY == 0 else _NO_CODES
        numbers = np.arange(number, number + n_rows)
        return np.flatnonzero((numbers < ALL_ROWS) | (numbers % EVERY == 0))

    def stop_growing(self, memory: Slots) -> None:
        """Go on without another hidden unit, where there is no room for one."""
        net = self._first()
        net.grows = 0.0
        self._give_room(memory, net.n_hidden + 2)

    def network(self) -> Floats:
        """A copy of its state; where a prior has stopped to grow, that is no option of a copy."""
        state: Floats = self._layers[0].copy()
        Network(state).grows = self.settings["grows"]
        return state

    def _give_room(self, memory: Slots, hidden: int) -> None:
        n, r, m, *_ = sizes_of(self._placed)
        if r != hidden:
            memory.put(self.slot, Kept(with_room(self._placed, room(n, hidden, m)), _NO_CODES))
        self._placed = memory.state(self.slot)
        self._layers = [self._placed]

    def __setstate__(self, content: dict[str, Any]) -> None:
        """A copy has its network to itself, until it takes its place in another fleet."""
        super().__setstate__(content)
        self.slot = -1

    # --- Classes -------------------------------------------------------------------------------------------------

    @property
    def classes(self) -> Classes:
        """Those of all keys; their outputs are the fleet's codes."""
        return self._classes

    @property
    def named_codes(self) -> Words:
        """The codes of the classes that were named in advance, in the order in which a network takes them."""
        if len(self.named) == 0:
            return _NO_CODES
        codes: Words = self._classes.outputs[np.searchsorted(self._classes.labels, self.named)]
        return codes

    @property
    def class_weights(self) -> Floats:
        """What the option gives each class, by code; none if it is no dict."""
        given = self._chosen["class_weight"]
        n_given = len(self._classes) if isinstance(given, dict) else 0
        return weighing.weights_given(given, self._classes, n_given)

    def expect(self, X: Floats, out: Floats) -> None:
        """What to expect of keys without labels, by code: what the prior predicts, or the shares of the classes."""
        if self._first().n_classes > 0:
            mixture.add_probabilities(self._layers, [X], out)
            kernel.temper(self._layers[0], out)
        elif self.label_counts.sum() > 0:
            out[:, : len(self.label_counts)] = self.label_counts / self.label_counts.sum()
        else:
            out[:] = 1.0 / out.shape[1]

    # --- Networks ------------------------------------------------------------------------------------------------

    @property
    def versions(self) -> tuple[int, int]:
        """Of the inputs and of the settings, now."""
        return len(self.inputs) - 1, self.n_settings

    def start(self) -> Kept:
        """What a new key begins with, apart from its seed."""
        net = self._first()
        n_known = len(self._classes) if self.is_prior else 0
        hidden = room_for(max(net.n_hidden, int(net.start)))
        state = with_room(self.network(), room(net.n_features, hidden, n_known))
        if self.is_prior:
            make_young(Network(state))
        else:
            Network(state).n_named = 0
            Network(state).class_weight[:] = 0.0
        inputs, settings = self.versions
        return Kept(state, np.arange(n_known), inputs=inputs, settings=settings)

    def up_to_date(self, kept: Kept, told: bool = True) -> Kept:
        """A key with the inputs of now and, if it is told of options, the settings of now."""
        inputs, settings = self.versions[0], self.versions[1] if told else kept.settings
        state = kept.state.copy()
        if kept.inputs != inputs:
            before, now = self.inputs[kept.inputs], set(self.inputs[inputs])
            gone = [place for place, number in enumerate(before) if number not in now]
            state = with_features(state, len(before), gone, len(now) - len(before) + len(gone))
        if kept.settings != settings:
            set_settings(Network(state), self.settings)
            Network(state).class_weight[:] = 0.0  # those given are set where they are used
        return kept._replace(state=state, inputs=inputs, settings=settings)


def make_young(net: Network) -> None:
    """Keep what a network has learned, but not for how long, so that it soon learns where a key differs."""
    averages_are_better = mixture.opinions(net.words)[BY_AVERAGES] > 0.5
    for name in AVERAGED:
        weights, slow = getattr(net, name), getattr(net, f"{name}_slow")
        if averages_are_better:
            weights[:] = slow
        slow[:] = weights
    net.n_seen = net.n_events = net.averaged_since = 0
    for array in (net.n_learned, net.n_drifts, net.n_changes, net.losses, net.events, net.causes):
        array[:] = 0
    net.scale_count[:] = np.minimum(net.scale_count, SCALE_WORTH)
    net.input_count[:] = np.minimum(net.input_count, WORTH)
    net.class_count *= WORTH / max(net.class_count.sum(), WORTH)
    kept = net.monitors[DISCRIMINATIVE, [BIAS2, VARIANCE]]
    kept[:, COUNT] = np.minimum(kept[:, COUNT], WORTH)
    net.monitors[:] = 0.0
    net.monitors[:, :, RESTART] = 1.0
    net.monitors[DISCRIMINATIVE, [BIAS2, VARIANCE]] = kept
