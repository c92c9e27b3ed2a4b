"""Prequential evaluation: each chunk is predicted first, then learned from."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from devdan.arrays import Floats, Integers
from devdan.encoding.rows import Rows, joined
from devdan.encoding.tables import is_table, rows_of
from devdan.evaluation.adapters import FleetAdapter, Labelled, Probabilities, adapted, check_model, last_step
from devdan.evaluation.alerts import AlertBudget, Alerts, CostCount, Costs, Periods
from devdan.evaluation.counts import Binned, binned, counted
from devdan.evaluation.histograms import Scored, by_class, scored
from devdan.evaluation.labels import NEVER, Labels
from devdan.evaluation.record import KeyCount, Record
from devdan.fleet.fleet import DEVDANFleet
from devdan.histories.histories import Histories
from devdan.model.classes import Classes, is_missing, split_missing
from devdan.model.classifier import EvolvingClassifier
from devdan.model.estimator import TableEstimator

_NO_LABEL = -1  # before the first one
_NO_SAMPLES = np.zeros(0, np.int64)
_ALERTS = str(AlertBudget())


def prequential(
    stream: Iterable[tuple[Any, Any]],
    model: Any,
    labels: str | Labels = "all",
    *,
    classes: Sequence[Any] | None = None,
    seed: int = 0,
    key: str | None = None,
    alerts: str = _ALERTS,
    histories: Histories | None = None,
) -> Iterator[Record]:
    """Test, then train, chunk by chunk; yields a record for each chunk.

    ``model`` is a DEVDAN, anything with ``partial_fit`` and ``predict``, or a River classifier. ``labels`` says which
    labels arrive and when, as a :class:`~devdan.evaluation.labels.Labels` or as text (``"fraction:0.1"``,
    ``"delay:1000"``, …), with a ``seed`` for random policies. DEVDAN observes each sample when it arrives and is taught
    when labels arrive; other models learn only from labelled samples. ``classes`` are for models that must know them in
    advance; by default, those of the stream, if known. Samples whose label is missing are never scored or taught. For a
    :class:`~devdan.DEVDANFleet`, ``key`` is the column of the stream's tables with the keys. ``alerts`` is a budget:
    with ``"10/1000"``, it is measured what the 10 highest scores of each 1,000 scored samples find. ``histories`` add
    what was known of customers, cards or machines before each row came; a row waits for its label with those that it
    came with; by default, those that ``open_stream`` was asked for. A DEVDAN keeps them as ``histories_``, and is saved
    with them.

    >>> from devdan import DEVDAN
    >>> from devdan.streams import sea
    >>> records = list(prequential(sea(5000), DEVDAN(random_state=0), "delay:1000"))
    >>> [record.n_labels for record in records]
    [0, 0, 500, 500, 500, 500, 500, 500, 500, 500]
    >>> records[2].accuracy, records[-1].accuracy > 0.7
    (None, True)
    """
    evaluation = Evaluation(model, labels, classes=classes, seed=seed, key=key, alerts=alerts, histories=histories)
    return evaluation.over(stream)


class Pending(NamedTuple):
    """Samples whose labels have not arrived: their numbers, and the sample number at which each label is due.

    A label that ``corrects`` another one comes for a sample that was taught as the class ``assumed``.
    """

    X: Any
    y: npt.NDArray[Any]
    samples: Integers
    due: Integers
    corrects: npt.NDArray[np.bool_]
    assumed: npt.NDArray[Any]
    first_due: int = 0

    def chosen(self, which: npt.NDArray[np.bool_]) -> list[Pending]:
        """Some of the samples, or nothing."""
        if not which.any():
            return []
        due = self.due[which]
        rest = self.corrects[which], self.assumed[which], int(due.min())
        return [Pending(self.X[which], self.y[which], self.samples[which], due, *rest)]


class Arrivals(NamedTuple):
    """The samples whose labels have arrived by the end of a chunk, in order, and whether they are that chunk.

    Of ``corrected`` ones, the labels are those that they were taught with before.
    """

    taught: Labelled | None = None
    whole: bool = False
    corrected: Labelled | None = None
    samples: Integers = _NO_SAMPLES  # the numbers of those that are corrected


class Quality(NamedTuple):
    """The part of a record about the quality of the predictions."""

    counts: tuple[tuple[int, int, int], ...] = ()  # class, predicted class, samples
    no_change: tuple[int, int] = (0, 0)  # samples whose label equals the previous one, and out of how many
    reliability: Binned | None = None
    scores: Scored | None = None
    alerts: Alerts | None = None
    costs: Costs | None = None


class Evaluation:
    """The state of an evaluation between two chunks; it can be pickled and continued elsewhere."""

    def __init__(
        self,
        model: Any,
        labels: str | Labels = "all",
        *,
        classes: Sequence[Any] | None = None,
        seed: int = 0,
        key: str | None = None,
        alerts: str = _ALERTS,
        histories: Histories | None = None,
    ) -> None:
        self.model = model
        self._give(getattr(model, "histories_", None) if histories is None else histories)
        self.labels = Labels.parse(labels, seed) if isinstance(labels, str) else labels
        self.n_chunks = self.n_samples = 0
        self.read_seconds = 0.0  # spent waiting for the stream
        if isinstance(model, DEVDANFleet):
            if key is None:
                raise ValueError("key must name the column with the keys, as the model is a fleet, got None")
        elif key is not None:
            raise ValueError(f"key is for a DEVDANFleet, got key={key!r} for {type(model).__name__}")
        else:
            check_model(model, wants_probabilities=self.labels.budget is not None)
        self._named, self._key = classes, key
        self._adapter: Any = None
        self._classes = Classes()
        self._appeared: list[Any] = []  # the classes in order of appearance
        self._last: int | None = None  # the latest label, as a number
        self._ends: list[int] = []  # of chunks, where labels may be corrected, and the time of the histories then
        self._clocks: list[float] = []
        self._coming: list[Pending] = []  # chunks with labels that have not arrived
        self._n_each: Counter[Any] = Counter()  # labels of each class, if one is assumed where none comes
        self._periods, self._cost = Periods(AlertBudget.parse(alerts)), CostCount.of(last_step(model))

    def over(self, stream: Iterable[tuple[Any, Any]]) -> Iterator[Record]:
        """Continue the evaluation on the stream, skipping the chunks evaluated before."""
        skip = self.n_chunks
        if self._adapter is None:
            entities = getattr(stream, "entities", ())
            if self.histories is None and entities:
                self._give(Histories(entities, time=getattr(stream, "time", None)))
            named = self._named if self._named is not None else getattr(stream, "classes", None)
            if self._key is not None:
                self._adapter = FleetAdapter(self.model, self._key)
            else:
                self._adapter = adapted(self.model, named, getattr(stream, "feature_names", None))
            if self.histories is not None and named is not None and not self.histories.named_classes:
                self.histories.know_classes(named)
        chunks = enumerate(stream)
        while True:
            begin = time.perf_counter()
            number, chunk = next(chunks, (0, None))
            self.read_seconds += time.perf_counter() - begin
            if chunk is None:
                return
            if number >= skip:
                X, y = _samples(chunk)
                yield self._step(X if self.histories is None else named_rows(X, stream), y)

    def _give(self, histories: Histories | None) -> None:
        """Put histories in front of the model, which keeps them if it is one of this package."""
        self.histories = histories
        if histories is not None and isinstance(self.model, (TableEstimator, DEVDANFleet)):
            histories.know_columns(self.model._instructions())
        if histories is not None and isinstance(self.model, EvolvingClassifier):
            self.model.histories_ = histories

    def _step(self, X: Any, y: npt.NDArray[Any]) -> Record:
        y, known = split_missing(y)
        begin = time.perf_counter()
        if self.histories is not None:
            X = self.histories.arrive(X)
        inputs = self._inputs(X)
        guesses, probabilities = self._adapter.predict(inputs)
        if self.labels.budget is not None and probabilities is None:
            probabilities = self._adapter.predict_proba(inputs)
        margins = None if self.labels.budget is None or probabilities is None else _margins(probabilities.values)
        middle = time.perf_counter()
        if probabilities is None and guesses is not None and self._adapter.asks_again:
            probabilities = self._adapter.predict_proba(inputs)
        taught, whole, corrected, samples = self._arrivals(X, y, known, margins)
        begin_training = time.perf_counter()
        if corrected is not None:
            self._adapter.forget(self._inputs(corrected[0]), corrected[1])
        n_labels = self._adapter.learn(inputs, None if taught is None else (self._inputs(taught[0]), taught[1]), whole)
        if self.histories is not None:
            self._tell_histories(len(X), taught, corrected, samples)
        end = time.perf_counter()

        before = len(self._appeared)
        quality = self._quality(y, known, guesses, probabilities)
        record = Record(
            chunk=self.n_chunks,
            start=self.n_samples,
            n_samples=len(X),
            n_classes=len(self._appeared),
            new_classes=tuple(self._appeared[before:]),
            n_labels=n_labels,
            **quality._asdict(),
            test_seconds=middle - begin,
            train_seconds=end - begin_training,
            **self._adapter.structure(),
            keys=None if self._key is None else self._by_key(X, y, known, guesses),
        )
        self.n_chunks += 1
        self.n_samples += len(X)
        return record

    def _tell_histories(self, n: int, taught: Labelled | None, corrected: Labelled | None, samples: Integers) -> None:
        """Count labels that have come, and no longer those that were assumed of ``samples`` and are corrected."""
        assert self.histories is not None
        if self.labels.positives is not None:
            self._ends.append(self.n_samples + n)
            self._clocks.append(self.histories.now_)
        if corrected is not None and self.labels.positives is not None:
            chunks = np.searchsorted(self._ends, samples + self.labels.positives, side="right").tolist()
            self.histories.retract(*corrected, [self._clocks[chunk] for chunk in chunks])
        if self.labels.positives is not None:
            oldest = min((int(part.samples.min()) for part in self._coming), default=self.n_samples + n)
            past = int(np.searchsorted(self._ends, oldest + self.labels.positives, side="right"))
            del self._ends[:past], self._clocks[:past]
        if taught is not None:
            self.histories.teach(*taught)

    def _inputs(self, X: Any) -> Any:
        """What the model sees of samples."""
        if self.histories is None:
            return X
        takes_missing = isinstance(self.model, (TableEstimator, DEVDANFleet))
        return self.histories.inputs(X, [self._key] if self._key else [], filled=not takes_missing)

    def _by_key(
        self, X: Any, y: npt.NDArray[Any], known: npt.NDArray[np.bool_], guesses: npt.NDArray[Any] | None
    ) -> tuple[KeyCount, ...]:
        none = np.zeros(len(y), bool)
        if guesses is None:
            return self._adapter.by_key(X, none, none)  # type: ignore[no-any-return]
        return self._adapter.by_key(X, known, np.asarray(guesses == y))  # type: ignore[no-any-return]

    def _arrivals(
        self, X: npt.NDArray[Any], y: npt.NDArray[Any], known: npt.NDArray[np.bool_], margins: Any
    ) -> Arrivals:
        late = self.labels.lateness(self.n_samples, len(X), margins)
        late[~known] = NEVER
        end = self.n_samples + len(X)
        samples, none = self.n_samples + np.arange(len(X)), np.zeros(len(X), bool)
        new: list[Pending] = []
        if self.labels.positives is not None:
            new, y, late = self._assumed(X, y, known, late, samples)
        if not late.any() and not self._coming:
            return Arrivals((X, y), True)
        at_once = not self._coming and (late <= 0).all() and not new
        if at_once:
            came = late == 0
            return Arrivals((X[came], y[came]) if came.any() else None)
        coming = self._coming + Pending(X, y, samples, late + samples, none, y).chosen(late != NEVER) + new
        self._coming = [part for part in coming if part.first_due >= end]
        arriving: list[Pending] = []
        for part in coming:
            if part.first_due < end:
                self._coming += part.chosen(part.due >= end)
                arriving += part.chosen(part.due < end)
        if not arriving:
            return Arrivals()
        return _in_order(Pending(*(joined(parts) for parts in zip(*(part[:6] for part in arriving), strict=True))))

    def _assumed(
        self, X: Any, y: npt.NDArray[Any], known: npt.NDArray[np.bool_], late: Integers, samples: Integers
    ) -> tuple[list[Pending], npt.NDArray[Any], Integers]:
        """The labels that come after another one was assumed; and of all samples, the first label that is taught."""
        after = self.labels.positives
        assert after is not None
        self._n_each.update(y[known].tolist())
        if not self._n_each:
            return [], y, late
        ((common, _),) = self._n_each.most_common(1)
        comes = known & (y != common) & (late != NEVER)
        assumes = ~comes | (late > after)
        first = np.where(assumes, np.asarray(common, None if y.dtype == object else y.dtype), y)
        corrections = Pending(X, y, samples, late + samples, np.ones(len(y), bool), first)
        return corrections.chosen(comes & assumes), first, np.where(assumes, after, late)

    def _quality(
        self,
        y: npt.NDArray[Any],
        known: npt.NDArray[np.bool_],
        guesses: npt.NDArray[Any] | None,
        probabilities: Probabilities | None,
    ) -> Quality:
        """The quality of the predictions of samples whose label is known."""
        if not known.any():
            return Quality()
        true = self._numbers(y[known])
        before = np.concatenate(([_NO_LABEL if self._last is None else self._last], true[:-1]))
        self._last = int(true[-1])
        if guesses is None:
            return Quality()
        predicted = ~is_missing(guesses)
        if not predicted.all():
            true, before = true[predicted[known]], before[predicted[known]]
            known = known & predicted
            if len(true) == 0:
                return Quality()
        guesses = guesses[known]
        guess = self._numbers(np.asarray(guesses.tolist()) if guesses.dtype == object else guesses)
        counts = counted(true, guess, len(self._classes))
        quality = Quality(
            counts,
            (int(np.count_nonzero(before == true)), int(np.count_nonzero(before != _NO_LABEL))),
            costs=None if self._cost is None else self._cost.of_chunk(counts, self._appeared),
        )
        if probabilities is None:
            return quality
        values = probabilities.values if known.all() else probabilities.values[known]
        scores, alerts = self._scored(values, probabilities.classes, true)
        return quality._replace(reliability=binned(values, guess == true), scores=scores, alerts=alerts)

    def _scored(
        self, values: Floats, classes: npt.NDArray[Any] | None, true: Integers
    ) -> tuple[Scored | None, Alerts | None]:
        """The scores of the classes that have appeared, and what alerts find by them.

        None if the model does not say what its columns are for.
        """
        if classes is None:
            return None, None
        if not np.isfinite(values.sum()):
            finite = np.isfinite(values).all(axis=1)
            values, true = values[finite], true[finite]
        places = {name: column for column, name in enumerate(classes.tolist())}
        columns = np.array([places.get(name, -1) for name in self._appeared])
        return scored(values, columns, true), self._periods.add(by_class(values, columns), true)

    def _numbers(self, labels: npt.NDArray[Any]) -> Integers:
        """Labels as numbers; new labels get new numbers."""
        numbers, self._classes = self._classes.encode(labels)
        if len(self._classes) > len(self._appeared):
            order = np.argsort(self._classes.outputs)
            self._appeared = self._classes.labels[order].tolist()
        return numbers


def _in_order(came: Pending) -> Arrivals:
    """Labels in the order in which they arrived; of a sample, the latest one."""
    order = np.lexsort((came.corrects, came.samples, came.due))
    X, y, samples, _, corrects, assumed = (part[order] for part in came[:6])
    if not corrects.any():
        return Arrivals((X, y))
    at_once = np.isin(samples, samples[~corrects]) & corrects  # the one assumed comes now, too
    kept = corrects | ~np.isin(samples, samples[at_once])
    late = corrects & ~at_once
    return Arrivals((X[kept], y[kept]), False, (X[late], assumed[late]) if late.any() else None, samples[late])


def _samples(chunk: Any) -> Labelled:
    if (
        not isinstance(chunk, (tuple, list))
        or len(chunk) != 2
        or isinstance(chunk[0], Mapping)
        or (getattr(chunk[0], "ndim", None) or np.ndim(chunk[0])) != 2
    ):
        raise ValueError(
            "a stream must consist of chunks (X, y) with a table X; devdan.streams.open_stream makes one from data "
            f"frames and from single samples, including River's; got {type(chunk).__name__}"
        )
    X, y = rows_of(chunk[0]) if is_table(chunk[0]) else np.asarray(chunk[0]), np.ravel(chunk[1])
    if len(X) != len(y):
        raise ValueError(f"X and y must have the same number of samples, got {len(X)} and {len(y)}")
    return X, y


def named_rows(X: Any, stream: Any) -> Rows:
    """Samples as rows, whose columns have names."""
    if isinstance(X, Rows):
        return X
    names = getattr(stream, "feature_names", None)
    return rows_of(X, None if names is None else [str(name) for name in names])


def _margins(probabilities: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The difference between the two largest probabilities of each sample."""
    if probabilities.shape[1] < 2:
        return np.zeros(len(probabilities))  # a model that knows only one class is never sure
    two = np.partition(probabilities, -2, axis=1)[:, -2:]
    margins: npt.NDArray[np.float64] = two[:, 1] - two[:, 0]
    return margins
