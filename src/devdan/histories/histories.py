"""What a customer, a card or a machine did before, as further columns of each row."""

from __future__ import annotations

import copy
import math
import re
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn import get_config
from sklearn.base import BaseEstimator, TransformerMixin

from devdan.arrays import Floats, Integers
from devdan.encoding.column import ColumnEncoding
from devdan.encoding.encoding import Instructions, check_finite
from devdan.encoding.evidence import FLAG, KINDS, NOMINAL, NUMBER
from devdan.encoding.rows import Column, Numbers, Rows, Texts, Times, as_texts, joined
from devdan.encoding.tables import rows_of
from devdan.encoding.values import NO_TIME, plain_text
from devdan.histories import core
from devdan.histories.descriptions import duration, in_words, position_in_words, rows_in_words, share_in_words, span
from devdan.histories.group import LADDER, LATEST, Group, check_count, check_horizons, check_texts
from devdan.histories.selection import Selection

if TYPE_CHECKING:
    from typing_extensions import Self

MOST_CLASSES = 16  # whose shares are kept
_UNNAMED_CLASSES = 4  # likewise, where none are named in advance
_THREE = ("short", "middle", "long")
_UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86_400.0, "day": 86_400.0, "week": 604_800.0, "month": 2_592_000.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]+?)s?", re.ASCII)
_SECONDS, _NUMBER = "seconds", "number"  # what times are read as
_LARGEST = 1e100  # numbers are clipped
_CHUNKS, _MOST_AT_ONCE = 100, 1000  # in how many parts rows with labels come in fit_transform, and of how many rows
_IS_NUMBER = {NUMBER: True, FLAG: True, NOMINAL: False}
_SAID = {"nominal": NOMINAL, "numeric": NUMBER}
_EPOCHS = ((1e17, 1e-9), (1e14, 1e-6), (1e11, 1e-3), (1e8, 1.0))  # from so much on, a number is a time since 1970


class HistoryWarning(UserWarning):
    """Times or entities are not as they should be, or some classes have no history."""


class _Batch(NamedTuple):
    """Rows as the compiled part takes them."""

    times: Floats
    keys: dict[str, Integers]  # of the entities, by column
    numbers: Floats
    values: Integers  # hashes of categories; 0 is none


class Histories(TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):  # type: ignore[misc, call-arg]
    """Adds to each row what was known, before it came, of the entities that it is about.

    For each entity: the time since its latest row, and how many rows it had lately; for each column of numbers, its
    recent mean and deviation, and where the present value lies among them; for each column of categories, how much more
    usual the present value is for it than for others, and how many different ones it had lately; the share of each
    class among its labels that have come by now. Most are over several horizons, as exponentially decayed sums, and are
    drawn towards those of all entities while little is known of this one.

    The first rows say which columns are added, so that a model always sees the same. Whether a column holds numbers or
    categories is judged by its first value; one that the first row lacks has room for both.

    Rows and labels come separately: :meth:`arrive` adds rows, and returns them with their histories, which are those to
    learn from when the labels come; :meth:`teach` adds labels. :meth:`inputs` is what a model should see of them.

    Parameters
    ----------
    entities : str, or list of str or tuples of str
        The columns that name an entity; a tuple is for pairs, such as a customer at a terminal.
    time : str or None, default=None
        The column with the time of each row. Without one, time is counted in rows.
    horizons : list of float or str, or None, default=None
        Over how long a time things count as recent: in the unit of ``time``, or such as ``"6h"`` and ``"7 days"``. By
        default they are found from how often the entities come; until they are, nothing decays.
    max_entities : int, default=1_000_000
        For how many entities of each kind there is room; beyond it, those with the fewest recent rows and labels are
        forgotten, and counted in ``n_evicted_``.
    columns : list of str or None, default=None
        The columns of which something is kept for each entity; by default, all that hold numbers or categories.
    classes : list or None, default=None
        The classes whose shares are kept, at most 16. By default all that the stream knows, or, of one that knows none,
        the first four that come; labels of others count as not of these.
    late : float or str, default=0.0
        For :meth:`fit_transform`: how long after its row a label comes.

    Examples
    --------
    >>> from devdan import Histories
    >>> histories = Histories(["customer"], time="day", horizons=[7.0])
    >>> rows = histories.arrive([{"customer": "Ann", "day": 1, "amount": 5.0}])
    >>> histories.teach(rows, ["fraud"])
    Histories(entities=['customer'], horizons=[7.0], time='day')
    >>> row = histories.arrive([{"customer": "Ann", "day": 2, "amount": 50.0}]).dicts()[0]
    >>> f"{row['customer: rows, lately']:.2f}, {row['customer: amount: mean, lately']:.1f}"
    '0.62, 5.0'
    """

    def __init__(
        self,
        entities: str | Sequence[str | tuple[str, ...]],
        *,
        time: str | None = None,
        horizons: Sequence[float | str] | None = None,
        max_entities: int = 1_000_000,
        columns: Sequence[str] | None = None,
        classes: Sequence[Any] | None = None,
        late: float | str = 0.0,
    ) -> None:
        self.entities = entities
        self.time = time
        self.horizons = horizons
        self.max_entities = max_entities
        self.columns = columns
        self.classes = classes
        self.late = late

    # --- Rows and labels -----------------------------------------------------------------------------------------

    def arrive(self, X: Any) -> Rows:
        """The rows with what was known before each of them came; from now on, they are known themselves."""
        rows = self._taken(X)
        self._begin(rows)
        self._meet(rows)
        self._check_new(rows)
        batch = self._batch(rows)
        times, firsts = np.empty(len(rows)), np.empty(len(rows))
        began = self._clock[[core.NOW, core.FIRST]]
        core.clocks(self._clock, batch.times, times, firsts)
        core.watch(batch.numbers, self._watched, self._given_up, self.n_rows_)
        out = self._empty(len(rows))
        parts = _parts(np.stack([times, firsts], axis=1), began)
        for group, found in zip(self._groups, out, strict=True):
            keys = self._keys(group, batch)
            for part, is_anew in parts:
                if is_anew:
                    group.begin(float(firsts[part.start]), float(times[part.start]))
                group.come(
                    keys[part], times[part], batch.numbers[part], batch.values[part], self._given_up,
                    self.n_rows_ + part.start, self._ladder, found[part],
                )  # fmt: skip
        self.n_rows_ += len(rows)
        self.arrived_ = times
        self._say()
        return self._with(rows, out)

    def teach(self, X: Any, y: npt.ArrayLike) -> Self:
        """Count the labels of rows, which have come by now.

        The histories that rows have, if they do, are those of when they came: by these, it is found which of them tell
        something about the label, so that only these are shown (see ``hidden_``).
        """
        self._label(X, y, None, 1.0)
        return self

    def inputs(self, rows: Rows, keep: Sequence[str] = (), *, filled: bool = False) -> Rows:
        """What a model should see of rows that have arrived: all but the columns that alone name entities.

        What it could learn of a customer by its number, the histories say of customers that it has never seen, too.
        A history that is not shown, since it tells little about the label, is missing, which is neutral to the models
        of this package; ``filled``, it has its usual value, for models that take no missing ones.
        """
        names = self._names_only - set(keep)
        seen = rows.select([place for place, name in enumerate(rows.names) if name not in names])
        hidden = self._selection.instead()
        if not hidden:
            return seen
        numbers = seen.numbers.copy()
        for place, name in enumerate(seen.names_of_numbers):
            if name in hidden:
                numbers[:, place] = hidden[name] if filled else np.nan
        return Rows(seen.names, numbers, seen.others, seen.flags)

    def restored(self, X: Any, found: Floats) -> Rows:
        """Rows that arrived before, with the histories that they came with, as :meth:`arrive` found them then."""
        rows = self._taken(X)
        return Rows([*rows.names, *self.feature_names_], np.hstack([rows.numbers, found]), rows.others, rows.flags)

    @property
    def is_settled(self) -> bool:
        """Whether rows of the same columns can no longer be refused: there was one, and a time if they have some."""
        return hasattr(self, "_groups") and (self.time is None or bool(self._read_as))

    def check(self, X: Any) -> Self:
        """Raise the ``ValueError`` that :meth:`arrive` would raise for these rows; nothing changes."""
        copy.deepcopy(self).arrive(X)
        return self

    def partial_fit(self, X: Any, y: npt.ArrayLike | None = None) -> Self:
        """:meth:`arrive` and, with labels, :meth:`teach`."""
        self.arrive(X)
        return self if y is None else self.teach(X, y)

    def fit(self, X: Any, y: npt.ArrayLike | None = None) -> Self:
        """Forget all, and start with these rows and labels."""
        self._reset()
        return self.partial_fit(X, y)

    def fit_transform(self, X: Any, y: npt.ArrayLike | None = None) -> Any:
        """Forget all, and start: each row with what was known before it, of labels those that came by then.

        The label of a row comes ``late`` after it, together with those of some rows around it, as in chunks.
        """
        self._reset()
        rows = self._taken(X)
        labels = None if y is None else np.asarray(y, dtype=object).ravel()
        if labels is not None and len(labels) != len(rows):
            raise ValueError(f"X and y must have the same number of rows, got {len(rows)} and {len(labels)}")
        late, size = _duration(self.late), max(min(len(rows) // _CHUNKS, _MOST_AT_ONCE), 1)
        parts: list[Rows] = []
        times, n_taught = np.zeros(0), 0
        for start in range(0, max(len(rows), 1), size):
            parts.append(self.inputs(self.arrive(rows[start : start + size]), filled=True))
            times = np.append(times, self.arrived_)
            if labels is not None:
                due = int(np.searchsorted(np.maximum.accumulate(times) + late, self.now_, side="right"))
                due = len(times) if start + size >= len(rows) else due
                self.teach(rows[n_taught:due], labels[n_taught:due])
                n_taught = due
        return self._as_asked(joined(parts), X)

    def transform(self, X: Any) -> Any:
        """The rows with what would be known if each came next; nothing changes.

        A scikit-learn ``Pipeline`` cannot know when rows and labels come: in it, rows to predict are seen with what was
        known at the end of ``fit``, not with what the rows before them and their labels would have told. For a stream,
        use :meth:`arrive` and :meth:`teach`, or ``prequential``.
        """
        self._check_begun()
        rows = self._taken(X)
        self._check_new(rows)
        batch = self._batch(rows)
        times, out = np.empty(len(rows)), self._empty(len(rows))
        if self.time is None:
            times.fill(self.n_rows_)
        else:
            for row in range(len(rows)):
                core.clocks(self._clock.copy(), batch.times[row : row + 1], times[row : row + 1], np.empty(1))
        for group, part in zip(self._groups, out, strict=True):
            keys = self._keys(group, batch)
            group.peek(keys, times, batch.numbers, batch.values, part)
        return self._as_asked(self.inputs(self._with(rows, out), filled=True), X)

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[Any]:
        """The names of the columns that :meth:`transform` returns."""
        self._check_begun()
        names = [name for name in self.columns_ if name not in self._names_only]
        return np.array([*names, *self.feature_names_], dtype=object)

    def set_output(self, *, transform: str | None = None) -> Self:
        """Return data frames (``"pandas"``, ``"polars"``) from :meth:`transform`; ``"default"`` are our rows."""
        if transform not in (None, "default", "pandas", "polars"):
            raise ValueError(f"transform must be 'default', 'pandas' or 'polars', got {transform!r}")
        self._output = self._output if transform is None else transform
        return self

    def correct(self, X: Any, y: npt.ArrayLike, was: npt.ArrayLike, at: Sequence[float]) -> Self:
        """Replace labels that came ``at`` some times (see ``now_``)."""
        self.retract(X, was, at)
        self._label(X, y, at, 1.0)
        return self

    def retract(self, X: Any, y: npt.ArrayLike, at: Sequence[float]) -> Self:
        """Count labels no longer that came ``at`` some times."""
        self._label(X, y, at, -1.0)
        return self

    def forget(self, X: Any, at: Sequence[float]) -> Self:
        """Take rows out that came ``at`` some times (see ``arrived_``); labels are taken back by :meth:`retract`."""
        rows = self._taken(X)
        batch = self._batch(rows)
        for group in self._groups:
            group.withdraw(self._keys(group, batch), self.now_, np.asarray(at, np.float64), batch.numbers, batch.values)
        return self

    @property
    def now_(self) -> float:
        """The latest time of a row so far; NaN before the first."""
        return float(self._clock[core.NOW])

    @property
    def named_classes(self) -> list[Any]:
        """The classes that were named before the first row."""
        return list(self._named_classes if self.classes is None else self.classes)

    @property
    def entity_names(self) -> list[str]:
        """The columns that name entities, but for the time."""
        return [name for name in self.wanted_columns if name != self.time]

    @property
    def wanted_columns(self) -> list[str]:
        """The columns that rows must have."""
        named = [name for columns in entity_columns(self.entities) for name in columns]
        return list(dict.fromkeys([*named, *([] if self.time is None else [self.time])]))

    # --- What is kept --------------------------------------------------------------------------------------------

    def know_classes(self, labels: Sequence[Any]) -> Self:
        """Name classes before the first row, so that there is a column for the share of each but the first."""
        if not hasattr(self, "_groups"):
            self._named_classes = list(dict.fromkeys(labels))[:MOST_CLASSES]
        return self

    def know_columns(self, instructions: Instructions) -> Self:
        """Take what the user says about columns, before they come."""
        self._instructions = instructions
        return self

    def limit(self, n_bytes: int) -> Self:
        """Lower ``max_entities`` so that no more memory is taken than this, unless it is already."""
        of_each = sum(group.n_bytes_each for group in self._groups)
        most = max(min(self.max_entities, n_bytes // of_each), *self.n_entities_.values(), 1)
        self.max_entities = most
        for group in self._groups:
            group.integers[core.ROOM] = most
        return self

    def take_later_columns(self) -> Self:
        """Add histories of columns that come after the first rows, too: for models that see rows of any columns."""
        self._is_open = True
        return self

    @property
    def feature_names_(self) -> list[str]:
        """The names of the columns that are added."""
        return [name for group in self._groups for name in self._names(group)]

    @property
    def words_(self) -> dict[str, str]:
        """What each of the columns that are added is, in words."""
        return {
            name: said
            for group in self._groups
            for name, said in zip(self._names(group), self._in_words(group), strict=True)
        }

    def tell(self, rows: Rows) -> list[dict[str, str]]:
        """What rows that have just arrived came with, in words, by the names of the columns.

        >>> histories = Histories("terminal", time="day", horizons=[7.0], classes=["fraud"])
        >>> rows = histories.arrive([{"terminal": k % 4 * (k % 3 > 0), "day": k / 9} for k in range(60)])
        >>> for said in list(histories.tell(rows)[-1].values())[:2]:
        ...     print(said)
        time since the latest row of this terminal: 0.444
        rows of this terminal, last 7: 0.6 times as many as usual
        """
        places = {name: place for place, name in enumerate(rows.names_of_numbers)}
        told: list[dict[str, str]] = [{} for _ in range(len(rows))]
        for group in self._groups:
            usual = self._usual(group)
            for name, said in zip(self._names(group), self._in_words(group), strict=True):
                kind = name[len(group.name) + 2 :]
                for row, value in zip(told, rows.numbers[:, places[name]].tolist(), strict=True):
                    row[name] = f"{said}: {self._value_in_words(kind, value, usual.get(kind, 0.0))}"
        return told

    @property
    def hidden_(self) -> list[str]:
        """The histories that are not shown to models, since others tell more about the labels that have come."""
        return list(self._selection.instead())

    @property
    def horizons_(self) -> dict[str, list[float] | None]:
        """The horizons of each kind of entity, None as long as they are not found."""
        return {group.name: group.horizons.tolist() if group.integers[core.SETTLED] else None for group in self._groups}

    @property
    def n_entities_(self) -> dict[str, int]:
        """How many entities of each kind are kept."""
        return {group.name: int(group.integers[core.USED]) for group in self._groups}

    @property
    def n_bytes_(self) -> int:
        """The memory that the entities take."""
        return sum(group.n_bytes for group in self._groups)

    @property
    def n_evicted_(self) -> dict[str, int]:
        """How many entities of each kind had to make room."""
        return {group.name: int(group.integers[core.N_EVICTED]) for group in self._groups}

    @property
    def notes_(self) -> list[str]:
        """What the user should know about times, entities and columns."""
        said, hidden = self._reservations(), self.hidden_
        if hidden:
            said.append(
                f"{len(hidden):,} of {len(self.feature_names_):,} histories are not shown, such as {hidden[0]!r}: "
                "others tell more about the label"
            )
        return said

    def _reservations(self) -> list[str]:
        """Those of the notes that are worth a warning."""
        clock, said = self._clock, []
        n = int(clock[core.N_TIMES])
        for count, what in ((core.N_LATE, "earlier than one before"), (core.N_UNTIMED, "missing"),
                            (core.N_FAR, "far in the future")):  # fmt: skip
            if clock[count] > 0:
                said.append(
                    f"the time {self.time!r} of {int(clock[count]):,} of {n:,} rows is {what}: they are taken as of "
                    "when they came"
                )
        for group in self._groups:
            unnamed, evicted = int(group.integers[core.N_UNNAMED]), int(group.integers[core.N_EVICTED])
            if unnamed:
                said.append(f"{unnamed:,} rows name no {group.name!r}, so they have no history of one")
            if evicted:
                said.append(f"{evicted:,} of {group.name!r} had to make room for others: see max_entities")
            for name, why in zip([*group.numbers, *group.values], group.judged[:, core.GIVEN_UP], strict=True):
                if why == core.UNTOLD:
                    said.append(
                        f"the column {name!r} has no history by {group.name!r}, which tells nothing about its values"
                    )
        for name, row in zip(self._numbers, self._given_up.tolist(), strict=True):
            if row >= 0:
                said.append(f"the column {name!r} has no history, since it only ever rises, as row numbers do")
        if self._n_other and self.classes is None:
            others = ", ".join(map(repr, list(self._codes)[1:]))
            said.append(
                f"{self._n_other:,} labels are of classes whose shares have no column: they count as not of {others}; "
                "classes= says whose shares to keep"
            )
        if self._late_columns:
            named = ", ".join(map(repr, self._late_columns))
            said.append(f"the columns {named} came after the first rows, so they have no histories")
        return said

    # --- Steps ---------------------------------------------------------------------------------------------------

    _instructions = Instructions()
    _output = "default"
    _named_classes: Sequence[Any] = ()
    _is_open = False  # whether columns may come later: for models that take what comes

    def _reset(self) -> None:
        for name in ("_groups", "_clock"):
            self.__dict__.pop(name, None)

    def _check_begun(self) -> None:
        if not hasattr(self, "_groups"):
            raise ValueError("the histories have not seen a row yet: call arrive, partial_fit or fit first")

    def _check_new(self, rows: Rows) -> None:
        taken = set(self.feature_names_) & set(rows.names)
        if taken:
            raise ValueError(f"the rows have histories already: {min(taken)!r}; give them without")

    def _as_asked(self, rows: Rows, X: Any) -> Any:
        """The rows as :meth:`set_output` or scikit-learn's configuration asks for them."""
        output = get_config()["transform_output"] if self._output == "default" else self._output
        if output == "default":
            return rows
        columns = dict(zip(rows.names, rows.objects(), strict=True))
        if output == "polars":
            import polars  # noqa: PLC0415 (an optional library)

            return polars.DataFrame(columns)
        import pandas as pd  # noqa: PLC0415 (slow to import)

        return pd.DataFrame(columns, index=getattr(X, "index", None))

    def _taken(self, X: Any) -> Rows:
        rows = rows_of(X if hasattr(X, "shape") or not isinstance(X, Mapping) else [X])
        check_finite(rows)
        return rows

    def _begin(self, rows: Rows) -> None:
        """Set up with the first rows."""
        if hasattr(self, "_groups"):
            return
        entities = entity_columns(self.entities)
        if not isinstance(self.max_entities, (int, np.integer)) or not 1 <= self.max_entities < 2**31:
            raise ValueError(f"max_entities must be at least 1, got {self.max_entities}")
        horizons = None if self.horizons is None else [_duration(value) for value in self.horizons]
        if horizons is not None:
            check_horizons(horizons)
        if self.classes is not None and not 1 <= len(self.classes) <= MOST_CLASSES:
            raise ValueError(f"classes must be one to {MOST_CLASSES}, got {len(self.classes)}")
        for name in [*self.wanted_columns, *(self.columns or ())]:
            if name not in rows.names:
                raise ValueError(
                    f"histories need the column {name!r}, but there are only {', '.join(map(str, rows.names))}"
                )
        self._read_as, self._unit = "", 1.0
        self._clock = np.zeros(core.CLOCK)
        self._clock[[core.NOW, core.FIRST]] = np.nan
        self._groups = [Group(columns, horizons, int(self.max_entities)) for columns in entities]
        self._kinds: dict[str, ColumnEncoding] = {}
        self._numbers: list[str] = []
        self._values: list[str] = []
        self._watched, self._given_up = np.zeros((0, 4)), np.zeros(0, np.int64)
        self._n_other = self.n_rows_ = 0
        self._said: set[str] = set()
        self.arrived_ = np.zeros(0)
        self.columns_ = [str(name) for name in rows.names]
        self._shown: tuple[list[str], list[str]] | None = None  # columns of numbers and of categories
        self._late_columns: list[str] = []
        named = self.named_classes
        first = 0 if self.classes is None else 1  # of classes that are chosen, all have a share: 0 is for all others
        self._codes: dict[Any, int] = {label: code for code, label in enumerate(named, first)}
        self._n_named = len(named)
        n_classes = max(len(named) + first, 2) if named else _UNNAMED_CLASSES
        for group in self._groups:
            group.widen(n_classes=n_classes)
        self._selection = Selection(n_classes)

    def _meet(self, rows: Rows) -> None:
        """Find which of the columns are numbers and which are categories, by the first value of each."""
        is_first, apart = self._shown is None, {self.time, *self._names_only}
        shown = self._shown = self._shown or ([], [])
        found: list[tuple[int, int, str]] = []
        for place, (name, column) in enumerate(zip(rows.names, rows.columns(), strict=True)):
            said = self._instructions.of(name)
            if name in apart or name in self._kinds or said.kind in ("date", "drop"):
                continue
            if self.columns is not None and name not in self.columns:
                continue
            if not is_first and not self._is_open and name not in {*shown[0], *shown[1]}:
                if name not in {*self.columns_, *self._late_columns}:
                    self._late_columns.append(name)
                continue
            there = np.flatnonzero(~column.missing)[:1]
            kind = _SAID.get(said.kind, "")
            if len(there):
                known = self._kinds[name] = ColumnEncoding(name, said)
                known.evidence.count(column[there])
                known.judged(column[there])
                kind = known.kind if there[0] == 0 or self._is_open else kind
                found.append((int(there[0]), place, name))
            if kind if self._is_open else is_first:
                for is_number, names in zip((True, False), shown, strict=True):
                    if not kind or _IS_NUMBER.get(kind) is is_number:
                        names.append(name)
        numbers, values = (
            [name for _, _, name in sorted(found) if _IS_NUMBER.get(self._kinds[name].kind) is is_number]
            for is_number in (True, False)
        )
        if not numbers and not values:
            return
        self._numbers, self._values = [*self._numbers, *numbers], [*self._values, *values]
        unseen = np.zeros((len(numbers), 4))
        unseen[:, core.LAST] = np.nan
        self._watched = np.concatenate([self._watched, unseen])
        self._given_up = np.concatenate([self._given_up, np.full(len(numbers), -1)])
        for group in self._groups:
            group.widen(numbers, values)

    def _batch(self, rows: Rows) -> _Batch:
        columns = dict(zip(rows.names, rows.columns(), strict=True))
        keys = {}
        for name in self.entity_columns_:
            keys[name] = hashes(columns[name]) if name in columns else np.zeros(len(rows), np.int64)
        numbers, values = (
            np.full((len(rows), len(self._numbers)), np.nan),
            np.zeros((len(rows), len(self._values)), np.int64),
        )
        for place, name in enumerate(self._numbers):
            if name in columns:
                read = self._kinds[name].read(columns[name])[0]
                if read is not None:
                    numbers[:, place] = np.clip(read, -_LARGEST, _LARGEST)
        for place, name in enumerate(self._values):
            if name in columns:
                values[:, place] = hashes(columns[name])
        times = self._times(columns, len(rows))
        return _Batch(np.where(np.abs(times) <= LATEST, times, np.nan), keys, numbers, values)

    def _times(self, columns: Mapping[str, Column], n_rows: int) -> Floats:
        if self.time is None:
            return np.arange(self.n_rows_, self.n_rows_ + n_rows, dtype=np.float64)
        if self.time not in columns:
            return np.full(n_rows, np.nan)
        column = columns[self.time]
        if not self._read_as and not column.missing.all():
            self._read_as, self._unit = _time_form(column, self.time)
        if isinstance(column, Times):
            as_seconds = np.where(column.missing, np.nan, column.values / 1e6)
        elif isinstance(column, Texts):
            texts = column.vocabulary.times("iso")
            if self._read_as == _NUMBER:
                found: Floats = np.append(column.vocabulary.numbers, np.nan)[column.places]
                return found * self._unit
            found = np.where(texts == NO_TIME, np.nan, texts / 1e6)
            return np.append(found, np.nan)[column.places]
        else:
            return column.values * self._unit if self._read_as == _NUMBER else np.full(n_rows, np.nan)
        return as_seconds if self._read_as == _SECONDS else np.full(n_rows, np.nan)

    @property
    def _ladder(self) -> Floats:
        """The horizons to choose from, if the unit of time is known."""
        n_horizons = len(self._groups[0].horizons)
        return np.array(LADDER if self._is_in_seconds and n_horizons <= len(LADDER) else [])

    @property
    def _is_in_seconds(self) -> bool:
        """Whether the unit of time is known."""
        return self.time is not None and (self._read_as == _SECONDS or self._is_epoch)

    @property
    def _is_epoch(self) -> bool:
        return bool(self._clock[core.FIRST] >= _EPOCHS[-1][0])

    @property
    def _names_only(self) -> set[str]:
        """The columns that alone name entities."""
        return {group.columns[0] for group in self._groups if len(group.columns) == 1}

    def _keys(self, group: Group, batch: _Batch) -> Integers:
        first, *others = (batch.keys[name] for name in group.columns)
        for other in others:
            pairs = np.empty(len(first), np.int64)
            core.hash_pairs(first, other, pairs)
            first = pairs
        return first

    @property
    def entity_columns_(self) -> list[str]:
        """The columns that name entities, each once."""
        return list(dict.fromkeys(name for group in self._groups for name in group.columns))

    def _label(self, X: Any, y: npt.ArrayLike, at: Sequence[float] | None, sign: float) -> None:
        rows = self._taken(X)
        labels = np.asarray(y, dtype=object).ravel()
        if len(labels) != len(rows):
            raise ValueError(f"X and y must have the same number of rows, got {len(rows)} and {len(labels)}")
        if not hasattr(self, "_groups"):
            self._begin(rows)
        codes = np.array([self._code(label, sign > 0.0) for label in labels.tolist()], np.int64)
        there = codes >= 0
        if not there.any():
            return
        came = rows[there] if not there.all() else rows
        batch = self._batch(came)
        self._select(came, codes[there], sign)
        times = np.full(len(rows), self.now_) if at is None else np.asarray(at, np.float64)
        for group in self._groups:
            group.label(self._keys(group, batch), codes[there], self.now_, times[there], sign)
        self._say()

    def _select(self, rows: Rows, codes: Integers, sign: float) -> None:
        """Find which histories tell something about the label, from rows that have them."""
        names = self.feature_names_
        places = {name: place for place, name in enumerate(rows.names_of_numbers)}
        if not names or names[-1] not in places or not all(name in places for name in names):
            return
        self._selection.know(names)
        self._selection.add(np.ascontiguousarray(rows.numbers[:, [places[name] for name in names]]), codes, sign)

    def _code(self, label: Any, is_new: bool) -> int:
        """The number of a class, in order of appearance; -1 if it is missing, or to be taken back but never came."""
        if label is None or label != label:  # noqa: PLR0124
            return -1
        code = self._codes.get(label)
        if code is not None:
            return code
        if not self._n_named and len(self._codes) < _UNNAMED_CLASSES:
            if not is_new:
                return -1
            code = self._codes[label.item() if isinstance(label, np.generic) else label] = len(self._codes)
            return code
        self._n_other += is_new
        return 0  # with the first class, whose share is what those of the others leave

    # --- Columns -------------------------------------------------------------------------------------------------

    def _empty(self, n_rows: int) -> list[Floats]:
        return [np.empty((n_rows, group.n_features)) for group in self._groups]

    def _with(self, rows: Rows, out: list[Floats]) -> Rows:
        """The rows with further columns of numbers."""
        found = [self._in_place(group, part) for group, part in zip(self._groups, out, strict=True)]
        numbers = np.concatenate([rows.numbers, *found], axis=1)
        return Rows([*rows.names, *self.feature_names_], numbers, rows.others, rows.flags)

    def _in_place(self, group: Group, part: Floats) -> Floats:
        """The histories of a group as they are shown; 0 of a column that has had no value of that kind."""
        numbers, values = self._shown or ([], [])
        if (group.numbers, group.values) == (numbers, values):
            return part
        first, of_number = group.n_first_features, 2 * len(group.horizons) + 1
        after = first + of_number * len(group.numbers)
        places = list(range(first))
        for name in numbers:
            start = first + of_number * group.numbers.index(name) if name in group.numbers else None
            places += [-1] * of_number if start is None else range(start, start + of_number)
        for name in values:
            start = after + 2 * group.values.index(name) if name in group.values else None
            places += [-1] * 2 if start is None else range(start, start + 2)
        return np.pad(part, ((0, 0), (0, 1)))[:, places]

    def _labels_of(self, group: Group) -> list[Any]:
        """The classes that have a share."""
        labels = {code: label for label, code in self._codes.items()} if self._n_named else {}
        return [labels.get(k, f"class {k + 1}") for k in range(1, int(group.integers[core.N_CLASSES]))]

    def _names(self, group: Group) -> list[str]:
        n_horizons = len(group.horizons)
        lately = {1: ("lately",), 3: _THREE}.get(n_horizons, tuple(f"horizon {h + 1}" for h in range(n_horizons)))
        named = self._labels_of(group)
        names = ["since the last", *(f"rows, {of}" for of in lately)]
        names += [f"share of {label}, {of}" for label in named for of in lately]
        numbers, values = self._shown or ([], [])
        for column in numbers:
            names += [f"{column}: {what}, {of}" for of in lately for what in ("mean", "position")]
            names += [f"{column}: deviation"]
        for column in values:
            names += [f"{column}: usual", f"{column}: different"]
        return [f"{group.name}: {name}" for name in names]

    def _in_words(self, group: Group) -> list[str]:
        unit = "rows" if self.time is None else _SECONDS if self._is_in_seconds else ""
        is_settled = bool(group.integers[core.SETTLED])
        spans = [span(horizon if is_settled else None, unit) for horizon in group.horizons.tolist()]
        return in_words(
            " and ".join(group.columns), spans, self._labels_of(group), *(self._shown or ([], []))
        )  # fmt: skip

    def _usual(self, group: Group) -> dict[str, float]:
        """The usual number of rows of an entity, and the overall share of each class, by the names of histories."""
        n_horizons, overall = len(group.horizons), group.words[0]
        names = [name[len(group.name) + 2 :] for name in self._names(group)]
        n = max(int(group.integers[core.USED]), 1)
        found = {name: float(overall[core.HEAD + h]) / n for h, name in enumerate(names[1 : 1 + n_horizons])}
        ends = [core.HEAD + n_horizons * (1 + code) + n_horizons - 1 for code in range(group.integers[core.N_CLASSES])]
        of_classes = overall[ends].tolist()
        for place, name in enumerate(names[1 + n_horizons : group.n_first_features]):
            found[name] = of_classes[1 + place // n_horizons] / max(sum(of_classes), core.TINY)
        return found

    def _value_in_words(self, kind: str, value: float, usual: float) -> str:
        if kind == "since the last":
            since = math.expm1(value)
            return duration(since) if self._is_in_seconds else f"{since:.3g}"
        if kind.startswith("rows, "):
            return rows_in_words(value, usual)
        if kind.startswith("share of "):
            return share_in_words(value, usual)
        if ": position" in kind:
            return position_in_words(value)
        return f"{math.exp(value):.3g} times as usual as for all" if kind.endswith(": usual") else f"{value:.4g}"

    def _say(self) -> None:
        """Warn, once for each kind of thing."""
        for note in self._reservations():
            kind = re.sub(r"[\d,]+", "", note)
            if kind not in self._said:
                self._said.add(kind)
                warnings.warn(note, HistoryWarning, stacklevel=3)

    # --- Files ---------------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """All but :meth:`content`, for a model file."""
        if not hasattr(self, "_groups"):
            raise ValueError("the histories have not seen a row yet, so there is nothing to save")
        entities = entity_columns(self.entities)
        return {
            "entities": [list(columns) for columns in entities], "time": self.time, "horizons": self.horizons,
            "max_entities": int(self.max_entities), "columns": self.columns_, "read_as": self._read_as,
            "unit": self._unit, "clock": _as_json(self._clock),
            "kinds": [[name, column.kind, column.decimal] for name, column in self._kinds.items()],
            "numbers": self._numbers, "values": self._values, "watched": [_as_json(row) for row in self._watched],
            "given_up": self._given_up.tolist(), "classes": list(self._codes), "n_named": self._n_named,
            "chosen": [self.columns if self.columns is None else list(self.columns), self.classes is not None],
            "shown": self._shown, "late_columns": self._late_columns, "late": self.late,
            "selection": self._selection.to_json(), "n_other": self._n_other, "n_rows": self.n_rows_,
            "groups": [group.to_json() for group in self._groups],
        }  # fmt: skip

    def content(self) -> Floats:
        """The words of all entities, for a model file."""
        return np.concatenate([group.content() for group in self._groups])

    @classmethod
    def of_json(cls, content: Any, words: Floats) -> Histories:
        """Histories from a model file; raises a ``ValueError``, ``TypeError`` or ``KeyError`` if they are invalid."""
        entities = entity_columns([tuple(columns) for columns in content["entities"]])
        time, horizons, most = content["time"], content["horizons"], content["max_entities"]
        histories = cls(entities, time=None if time is None else str(time), horizons=horizons, max_entities=most)
        histories._begin(Rows([name for columns in entities for name in columns] + [time or ""], np.zeros((0, 0))))
        columns, are_chosen = content["chosen"]
        histories.columns = None if columns is None else check_texts(columns)
        histories.late = content["late"]
        _duration(histories.late)
        histories.columns_ = check_texts(content["columns"])
        histories._read_as, histories._unit = str(content["read_as"]), float(content["unit"])
        histories._clock = _of_json(content["clock"])
        if len(histories._clock) != core.CLOCK:
            raise ValueError("the clock of its histories is incomplete")
        for name, kind, decimal in content["kinds"]:
            if not isinstance(name, str) or kind not in ("", *KINDS) or decimal not in (".", ","):
                raise ValueError("a column of histories is of no known kind")
            histories._kinds[name] = ColumnEncoding(name, kind=kind, decimal=decimal)
        histories._numbers, histories._values = check_texts(content["numbers"]), check_texts(content["values"])
        n_numbers = len(histories._numbers)
        histories._watched = np.array([_of_json(row) for row in content["watched"]]).reshape(n_numbers, 4)
        histories._given_up = np.array([check_count(row + 1) - 1 for row in content["given_up"]], np.int64)
        labels = content["classes"]
        if not isinstance(labels, list) or not all(isinstance(label, (str, int, float)) for label in labels):
            raise ValueError("the classes of histories are not a list of labels")
        histories._codes = {label: code for code, label in enumerate(labels, 1 if are_chosen is True else 0)}
        histories.classes = labels if are_chosen is True else None
        histories._n_named, histories._n_other = check_count(content["n_named"]), check_count(content["n_other"])
        histories._late_columns = check_texts(content["late_columns"])
        if content["shown"] is not None:
            of_numbers, of_values = map(check_texts, content["shown"])
            histories._shown = of_numbers, of_values
        histories.n_rows_ = check_count(content["n_rows"])
        sizes = [check_count(group["n_words"]) for group in content["groups"]]
        if sum(sizes) != len(words) or len(sizes) != len(entities):
            raise ValueError("the sizes of its histories do not add up")
        parts = np.split(words, np.cumsum(sizes)[:-1])
        histories._groups = [Group.of_json(group, part) for group, part in zip(content["groups"], parts, strict=True)]
        histories._selection = Selection.of_json(content["selection"])
        histories._check(entities)
        return histories

    def _check(self, entities: list[tuple[str, ...]]) -> None:
        """Raise a ``ValueError`` unless all parts, as from a file, fit together."""
        times = self._clock[[core.NOW, core.FIRST]]
        rooms = {int(group.integers[core.N_CLASSES]) for group in self._groups}
        read = [self._kinds[name].kind for name in self._numbers + self._values if name in self._kinds]
        is_sound = (
            [group.columns for group in self._groups] == entities
            and len({len(group.horizons) for group in self._groups}) == 1
            and all((group.numbers, group.values) == (self._numbers, self._values) for group in self._groups)
            and {int(group.integers[core.ROOM]) for group in self._groups} == {self.max_entities}
            and {self._selection.n_classes} == rooms and set(self._selection.names) <= set(self.feature_names_)
            and len(rooms) == 1 and len(self._codes) + (self.classes is not None) <= max(rooms) <= MOST_CLASSES + 1
            and self._n_named in (0, len(self._codes)) and (self._n_named > 0 or max(rooms) == _UNNAMED_CLASSES)
            and (self.classes is None or self._n_named > 0)
            and all(len(set(shown)) == len(shown) for shown in self._shown or ())
            and (self._shown is not None or not self._numbers + self._values)
            and not (np.abs(times) > LATEST).any()
            and bool(np.isnan(times).all()) == bool(np.isnan(times).any())
            and not np.isinf(self._clock).any() and not (np.abs(self._clock) > LATEST).any()
            and (self._clock[[core.N_TIMES, core.N_LATE, core.N_UNTIMED, core.N_FAR, core.FAR_IN_A_ROW]] >= 0).all()
            and not np.isnan(np.delete(self._clock, [core.NOW, core.FIRST])).any()
            and len(self._given_up) == len(self._numbers) and not np.isinf(self._watched).any()
            and len(set(self._numbers + self._values)) == len(read)
            and all(kind in (NUMBER, FLAG) for kind in read[: len(self._numbers)])
            and all(kind == NOMINAL for kind in read[len(self._numbers) :])
            and self._read_as in ("", _SECONDS, _NUMBER) and 0 < self._unit <= 1
        )  # fmt: skip
        if not is_sound:
            raise ValueError("its histories do not fit together")


def _as_json(numbers: Floats) -> list[float | None]:
    return [None if value != value else value for value in numbers.tolist()]  # noqa: PLR0124


def _of_json(values: Any) -> Floats:
    return np.array([np.nan if value is None else float(value) for value in values])


def compile_histories() -> None:
    """Compile what histories need, or load it from the cache, so that no later call has to."""
    rows = [{"who": text, "size": 1.5} for text in ("a", "b", "a")]
    histories = Histories(["who", ("who", "size")], horizons=[1.0])
    histories.partial_fit(rows, [0, 1, 0]).transform(rows)
    histories.retract(rows, [0, 1, 0], [2.0] * 3).forget(rows, [2.0] * 3)


def _parts(clock: Floats, before: Floats) -> list[tuple[slice, bool]]:
    """Rows by their times and the first time so far, in parts; whether with a part the clock begins or is set anew."""
    previous = np.concatenate([before[None], clock[:-1]])
    is_anew = (clock[:, 0] < previous[:, 0]) | ~((clock[:, 1] == previous[:, 1]) | np.isnan(clock[:, 1]))
    starts = np.union1d([0], np.flatnonzero(is_anew)).astype(int).tolist() if len(clock) else []
    return [(slice(a, b), bool(is_anew[a])) for a, b in zip(starts, [*starts[1:], len(clock)], strict=True)]


# --- Entities and times -------------------------------------------------------------------------------------------


def entity_columns(entities: Any) -> list[tuple[str, ...]]:
    """The columns of each kind of entity; raises a ``ValueError`` if these are no entities.

    >>> entity_columns(["customer", ("customer", "terminal")])
    [('customer',), ('customer', 'terminal')]
    """
    listed = [entities] if isinstance(entities, str) else list(entities)
    found = [(each,) if isinstance(each, str) else tuple(each) for each in listed]
    if not found or not all(columns and all(isinstance(name, str) for name in columns) for columns in found):
        raise ValueError(f"entities must be names of columns or tuples of them, got {entities!r}")
    if len(set(found)) < len(found) or any(len(set(columns)) < len(columns) for columns in found):
        raise ValueError(f"entities must be named only once, got {entities!r}")
    return found


def hashes(column: Column) -> Integers:
    """A number for each value of a column, the same for 7 and "7"; 0 where it is missing."""
    if isinstance(column, Numbers) and not column.flags:
        found = np.empty(len(column), np.int64)
        values = np.ascontiguousarray(column.values)
        core.hash_numbers(values, found)
        odd = np.flatnonzero((found == 0) & ~np.isnan(values))
        if len(odd):
            found[odd] = _of_texts([plain_text(value) for value in values[odd].tolist()])
        return found
    texts = as_texts(column)
    known = _of_texts(texts.vocabulary.texts)
    known[texts.vocabulary.missing] = 0
    return np.append(known, 0)[texts.places]


def _of_texts(texts: list[str]) -> Integers:
    parts = [text.encode("utf-8", "surrogatepass") for text in texts]
    ends = np.cumsum([len(part) for part in parts], dtype=np.int64)
    found = np.empty(len(parts), np.int64)
    core.hash_texts(np.frombuffer(b"".join(parts), np.uint8).astype(np.int64), ends, found)
    return found


def _time_form(column: Column, name: str) -> tuple[str, float]:
    """How a column of times is read, by its first value: as dates, or as a number times something."""
    row = int(np.argmin(column.missing))
    if isinstance(column, Times):
        if column.clock:
            raise ValueError(f"the column {name!r} holds times of the day, not times")
        return _SECONDS, 1.0
    if isinstance(column, Texts):
        text = column.vocabulary.texts[column.places[row]]
        if column.vocabulary.times("iso")[column.places[row]] != NO_TIME:
            return _SECONDS, 1.0
        value = float(column.vocabulary.numbers[column.places[row]])
        if math.isnan(value):
            raise ValueError(
                f"the column {name!r} must hold times, as dates in ISO 8601 or as numbers, but begins with {text!r}"
            )
    else:
        value = float(column.values[row])
    return _NUMBER, next((unit for least, unit in _EPOCHS if value >= least), 1.0)


def _duration(value: float | str) -> float:
    """A horizon as a number, in seconds if it has a unit.

    >>> _duration("7 days"), _duration(500)
    (604800.0, 500.0)
    """
    if not isinstance(value, str):
        return float(value)
    match = _DURATION.fullmatch(value.strip())
    if match is None or match[2] not in _UNITS:
        raise ValueError(f"a horizon must be a number, or such as '6h' or '7 days', got {value!r}")
    return float(match[1]) * _UNITS[match[2]]
