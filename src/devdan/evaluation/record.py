"""The results of an evaluation: a record for each chunk, and their summary."""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

from devdan.evaluation import measures
from devdan.evaluation.alerts import Alerts, Costs, with_later, with_later_costs
from devdan.evaluation.counts import Binned, Confusion, Reliability, beyond, mean
from devdan.evaluation.histograms import MOST_CLASSES, NOT_SCORED, Histograms, Ranking, Scored, checked
from devdan.kernel.state import EVENT_KINDS, PHASES, Event
from devdan.model.notebook import html_table


class Phases(NamedTuple):
    """A quantity for both phases; None if a phase has not started."""

    generative: float | None
    discriminative: float | None

    def of(self, phase: str) -> float | None:
        """The value of the named phase."""
        value: float | None = getattr(self, phase)
        return value

    @property
    def total(self) -> float:
        """The sum of the values that exist."""
        return sum(value for value in self if value is not None)


class KeyCount(NamedTuple):
    """The counts of one key of a fleet in a chunk."""

    key: Any
    n_samples: int
    n_scored: int
    n_right: int
    virtual_drifts: int
    real_drifts: int


class KindChange(NamedTuple):
    """A column that was read as of another kind before this sample."""

    sample: int
    column: str
    before: str
    after: str

    @property
    def why(self) -> str:
        """Its cause, in words."""
        return "most of the values by which it was judged again are of this kind"


class Measured(ABC):
    """What follows from the counts of one chunk or of many; undefined values are None."""

    n_classes: int
    confusion: Confusion
    alerts: Alerts | None
    costs: Costs | None

    @property
    @abstractmethod
    def ranking(self) -> Ranking:
        """The counts of scores."""

    @property
    @abstractmethod
    def sums(self) -> Scored | Histograms:
        """The sums of losses, over the samples with probabilities."""

    def _of_each(self, measure: Callable[[int], float | None]) -> list[float | None]:
        return [measure(c) for c in range(self.n_classes)]

    @property
    def recall(self) -> list[float | None]:
        return self._of_each(self.confusion.recall)

    @property
    def precision(self) -> list[float | None]:
        return self._of_each(self.confusion.precision)

    @property
    def majority(self) -> float | None:
        """The accuracy of always predicting the commonest class of these samples."""
        return self.confusion.majority

    @property
    def f1(self) -> list[float | None]:
        return self._of_each(self.confusion.f1)

    @property
    def average_precision(self) -> list[float | None]:
        """Nothing of more than twelve classes, as is the next."""
        return self._of_each(self.ranking.average_precision) if self.n_classes <= MOST_CLASSES else []

    @property
    def alert_recall(self) -> list[float | None]:
        """Of the alerts of each class; nothing before a period is complete, as is the next."""
        return [] if self.alerts is None else self._of_each(self.alerts.recall)

    @property
    def alert_precision(self) -> list[float | None]:
        return [] if self.alerts is None else self._of_each(self.alerts.precision)

    @property
    def cost(self) -> float | None:
        """Of the predictions, per scored sample; None without costs."""
        return None if self.costs is None else self.costs[0] / self.confusion.n_samples

    @property
    def constant_cost(self) -> float | None:
        """Of calling every sample the same class, the cheapest one, per scored sample."""
        return None if self.costs is None else min(self.costs[1:]) / self.confusion.n_samples

    @property
    def roc_auc(self) -> float | None:
        """The mean over the classes, each against all others."""
        return mean(self._of_each(self.ranking.roc_auc)) if self.n_classes <= MOST_CLASSES else None

    @property
    def log_loss(self) -> float | None:
        """The mean of -log p of the true class."""
        sums = self.sums
        return sums.log_loss / sums.n_samples if sums.n_samples else None

    @property
    def brier(self) -> float | None:
        """The mean squared difference of probabilities and labels: of two classes, for one of them; else their sum."""
        sums = self.sums
        return sums.squares / sums.n_samples / (2 if self.n_classes <= 2 else 1) if sums.n_samples else None


@dataclass(frozen=True)
class Record(Measured):
    """The results of one chunk. Classes are numbers here, in order of appearance; ``new_classes`` names them."""

    chunk: int
    start: int  # number of samples before this chunk
    n_samples: int
    n_classes: int  # classes seen so far
    new_classes: tuple[Any, ...]  # classes that appear for the first time
    counts: tuple[tuple[int, int, int], ...]  # class, predicted class, samples
    n_labels: int  # labels that the model learned from after this chunk
    no_change: tuple[int, int]  # samples whose label equals the previous one, and out of how many
    n_hidden: int | None  # for fuzzy rules, the number of rules; here and below, None if a model has no such thing
    n_parameters: int | None
    growths: Phases | None
    prunings: Phases | None
    bias2: Phases | None
    variance: Phases | None
    test_seconds: float
    train_seconds: float
    n_members: int | None = None  # of an ensemble
    n_replaying: int | None = None  # hidden units of the network that replays samples, which n_hidden leaves out
    drifts: Phases | None = None  # virtual drifts in the generative phase, real drifts in the discriminative phase
    reliability: Binned | None = None  # predictions by confidence: bin, samples, right ones, sum of confidences
    scores: Scored | None = None  # the probabilities of the classes, counted
    alerts: Alerts | None = None  # what those of the periods found that ended in this chunk
    costs: Costs | None = None  # of the predictions, and of always calling a class, if the model decides by costs
    events: tuple[Event, ...] | None = None  # growths, prunings and drifts, each with its cause
    kind_changes: tuple[KindChange, ...] | None = None  # columns that are of another kind from this chunk on
    importances: tuple[float, ...] | None = None  # of the columns, in their order; not in every record
    keys: tuple[KeyCount, ...] | None = None  # of a fleet: the keys with rows or late labels in the chunk
    confusion: Confusion = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "confusion", Confusion.of(self.counts))

    @property
    def accuracy(self) -> float | None:
        """The share of correct predictions; None if nothing was predicted or no label is known."""
        return self.confusion.accuracy

    @property
    def kappa(self) -> float | None:
        return self.confusion.kappa

    @property
    def kappa_no_change(self) -> float | None:
        """Kappa compared with predicting the previous sample's label."""
        same, n = self.no_change
        return beyond(self.accuracy, same / n) if n else None

    @property
    def f1_macro(self) -> float | None:
        return self.confusion.f1_macro

    @property
    def g_mean(self) -> float | None:
        return self.confusion.g_mean

    @property
    def calibration_error(self) -> float | None:
        """The expected calibration error; None if the model has no probabilities."""
        return None if self.reliability is None else Reliability(self.reliability).error

    @property
    def class_drifts(self) -> Counter[Any]:
        """Of the real drifts, how many were of a single class, by class."""
        return Counter(event.label for event in self.events or () if event.label is not None)

    @property
    def ranking(self) -> Ranking:
        return Ranking.of(self.scores, self.n_classes)

    @property
    def sums(self) -> Scored:
        return self.scores or NOT_SCORED

    def to_json(self) -> str:
        """The record as one line of JSON, which also has the measures computed from its counts."""
        values: dict[str, Any] = {}
        for name in _FIELDS:
            value = getattr(self, name)
            values[name] = value._asdict() if isinstance(value, (Phases, Scored, Alerts)) else value
        values |= {
            measure.key: measure.value(self) for measure in measures.MEASURES if measure.recorded and measure.value
        }
        return json.dumps(values, allow_nan=False, separators=(",", ":"))

    @classmethod
    def from_json(cls, line: str | bytes) -> Record:
        values = json.loads(line)
        if not all(isinstance(values[name], int) for name in ("chunk", "start", "n_samples", "n_classes", "n_labels")):
            raise TypeError("a number is not an integer")
        taken = {name: values[name] for name in _FIELDS}
        for name in ("growths", "prunings", "drifts", "bias2", "variance"):
            taken[name] = None if taken[name] is None else Phases(**taken[name])
        for name in ("counts", "reliability"):
            taken[name] = None if taken[name] is None else tuple(tuple(count) for count in taken[name])
        if taken["scores"] is not None:
            taken["scores"] = checked(Scored(**taken["scores"]), taken["n_classes"])
        if taken["alerts"] is not None:
            alerts = Alerts(**taken["alerts"])
            taken["alerts"] = alerts._replace(found=tuple(map(float, alerts.found)), there=tuple(alerts.there))
        taken["costs"] = None if taken["costs"] is None else tuple(map(float, taken["costs"]))
        taken["events"] = None if taken["events"] is None else tuple(_event(*event) for event in taken["events"])
        if taken["kind_changes"] is not None:
            taken["kind_changes"] = tuple(
                KindChange(int(sample), *map(str, change)) for sample, *change in taken["kind_changes"]
            )
        taken["importances"] = None if taken["importances"] is None else tuple(map(float, taken["importances"]))
        if taken["keys"] is not None:
            taken["keys"] = tuple(KeyCount(*count) for count in taken["keys"])
        same, compared = taken["no_change"]
        taken["new_classes"], taken["no_change"] = tuple(taken["new_classes"]), (int(same), int(compared))
        taken["test_seconds"], taken["train_seconds"] = float(taken["test_seconds"]), float(taken["train_seconds"])
        return cls(**taken)


_FIELDS = tuple(f.name for f in fields(Record) if f.init)


def _event(*values: Any) -> Event:
    event = Event(*values)
    if event.kind not in EVENT_KINDS or event.phase not in PHASES or not isinstance(event.sample, int):
        raise ValueError(f"no event: {values}")
    return event._replace(value=float(event.value), bound=float(event.bound))


@dataclass
class Mean:
    """A running mean and standard deviation of the values that exist."""

    n: int = 0
    mean: float | None = None
    _squares: float = 0.0

    def add(self, value: float | None) -> None:
        if value is None:
            return
        self.n += 1
        before = 0.0 if self.mean is None else self.mean
        self.mean = before + (value - before) / self.n
        self._squares += (value - before) * (value - self.mean)

    def join(self, other: Mean) -> None:
        """Add the values of another one."""
        if self.mean is None or other.mean is None:
            self.n, self.mean, self._squares = (other if self.mean is None else self)._state()
            return
        apart, n = other.mean - self.mean, self.n + other.n
        self._squares += other._squares + apart**2 * self.n * other.n / n
        self.n, self.mean = n, self.mean + apart * other.n / n

    def _state(self) -> tuple[int, float | None, float]:
        return self.n, self.mean, self._squares

    @property
    def std(self) -> float | None:
        """The standard deviation of the values themselves (not a sample estimate)."""
        return math.sqrt(self._squares / self.n) if self.n else None


class Summary(Measured):
    """A running summary of records; memory does not grow with their number.

    >>> from devdan import DEVDAN
    >>> from devdan.evaluation.loop import prequential
    >>> from devdan.streams import sea
    >>> summary = Summary(prequential(sea(5000), DEVDAN(random_state=0)))
    >>> summary.n_samples, summary.n_chunks, summary.rate.mean > 70
    (5000, 10, True)
    >>> summary
    <Summary: 5,000 samples in 10 chunks, classification rate 8... ± ... %>
    """

    def __init__(self, records: Iterable[Record] = (), begins: bool = True) -> None:
        """``begins``: the first record is that of the first chunk, which does not count in the rate."""
        self._begins = begins
        self.n_chunks = self.n_samples = self.n_labels = self.n_classes = 0
        self.classes: list[Any] = []
        self.rate = Mean()  # the paper's CR: the accuracies of the chunks in percent, without the first chunk
        self.hidden, self.parameters, self.members = Mean(), Mean(), Mean()
        self.train_seconds = self.test_seconds = 0.0
        self.growths: Phases | None = None
        self.prunings: Phases | None = None
        self.drifts: Phases | None = None
        self.class_drifts: Counter[Any] = Counter()  # of the real drifts, those of a single class
        self.alerts: Alerts | None = None
        self.costs: Costs | None = None
        self.reliability = Reliability()
        self._histograms = Histograms()
        self._counts: dict[tuple[int, int], int] = {}
        self._same = self._compared = 0
        for record in records:
            self.add(record)

    def add(self, record: Record) -> None:
        if self.n_chunks > 0 or not self._begins:
            self.rate.add(None if record.accuracy is None else 100 * record.accuracy)
        self.n_chunks += 1
        self.n_samples += record.n_samples
        self.n_labels += record.n_labels
        self.classes += record.new_classes
        self.n_classes = record.n_classes
        self.hidden.add(record.n_hidden)
        self.parameters.add(record.n_parameters)
        self.members.add(record.n_members)
        self.train_seconds += record.train_seconds
        self.test_seconds += record.test_seconds
        self.growths, self.prunings = together(self.growths, record.growths), together(self.prunings, record.prunings)
        self.drifts = together(self.drifts, record.drifts)
        self.class_drifts += record.class_drifts
        self.alerts = with_later(self.alerts, record.alerts)
        self.costs = with_later_costs(self.costs, record.costs)
        self.reliability.add(record.reliability or ())
        self._histograms.add(record.scores, record.n_classes)
        for true, guess, n in record.counts:
            self._counts[true, guess] = self._counts.get((true, guess), 0) + n
        self._same += record.no_change[0]
        self._compared += record.no_change[1]

    def join(self, later: Summary) -> None:
        """Add what follows, as if its records had been added."""
        self.n_chunks += later.n_chunks
        self.n_samples += later.n_samples
        self.n_labels += later.n_labels
        self.classes += later.classes
        self.n_classes = max(self.n_classes, later.n_classes)
        for own, other in zip(self._means, later._means, strict=True):
            own.join(other)
        self.train_seconds += later.train_seconds
        self.test_seconds += later.test_seconds
        self.growths, self.prunings = together(self.growths, later.growths), together(self.prunings, later.prunings)
        self.drifts = together(self.drifts, later.drifts)
        self.class_drifts += later.class_drifts
        self.alerts = with_later(self.alerts, later.alerts)
        self.costs = with_later_costs(self.costs, later.costs)
        self.reliability.add(later.reliability.binned)
        self._histograms.join(later._histograms)
        for pair, n in later._counts.items():
            self._counts[pair] = self._counts.get(pair, 0) + n
        self._same += later._same
        self._compared += later._compared

    @property
    def _means(self) -> tuple[Mean, ...]:
        return self.rate, self.hidden, self.parameters, self.members

    @property
    def confusion(self) -> Confusion:  # type: ignore[override]
        return Confusion.of(self.counts)

    @property
    def counts(self) -> list[tuple[int, int, int]]:
        return [(true, guess, n) for (true, guess), n in sorted(self._counts.items())]

    @property
    def no_change(self) -> float | None:
        """The accuracy of predicting the previous sample's label."""
        return self._same / self._compared if self._compared else None

    @property
    def samples_per_second(self) -> float | None:
        seconds = self.train_seconds + self.test_seconds
        return self.n_samples / seconds if seconds else None

    @property
    def kappa_no_change(self) -> float | None:
        """Kappa compared with predicting the previous sample's label."""
        return beyond(self.confusion.accuracy, self.no_change)

    @property
    def calibration_error(self) -> float | None:
        """The expected calibration error; None if the model has no probabilities."""
        return self.reliability.error

    @property
    def ranking(self) -> Ranking:
        return self._histograms.ranking

    @property
    def sums(self) -> Histograms:
        return self._histograms

    @property
    def rarest(self) -> Any:
        """The name of the rarest class, if it is rare; None of classes that are too many to look at each."""
        c = self.rarest_class
        return None if c is None else self.classes[c]

    @property
    def rarest_class(self) -> int | None:
        return None if self.n_classes > MOST_CLASSES else self.confusion.rarest

    def of_rarest(self, measure: Callable[[int], float | None]) -> float | None:
        """A measure of the rare class, if there is one."""
        c = self.rarest_class
        return None if c is None else measure(c)

    def of_alerts(self, name: str) -> float | None:
        """A measure of the alerts of the rare class, if a period of them is complete."""
        return None if self.alerts is None else self.of_rarest(getattr(self.alerts, name))

    def __repr__(self) -> str:
        figures = self.figures()
        size = f"{self.n_samples:,} samples in {self.n_chunks:,} chunks"
        leading = measures.leading([figures])
        told = [f"{m.title.partition(',')[0].lower()} {m.in_words(figures)}" for m in leading]
        about = "" if measures.RATE in leading else f"of {self.rarest} "
        return f"<Summary: {size}, {about}{', '.join(told)}>"

    def _repr_html_(self) -> str:
        figures = self.figures()
        shown = [m for m in measures.MEASURES if m.tile and not (m.optional and m.figure(figures) is None)]
        rows = [
            ("Samples", f"{self.n_samples:,} in {self.n_chunks:,} chunks, {self.n_labels:,} labels used"),
            ("Classes", f"{len(self.classes):,}"),
            *((measure.title, measure.in_words(figures)) for measure in shown),
        ]
        for name, phases in (("Growths", self.growths), ("Prunings", self.prunings), ("Drifts", self.drifts)):
            if phases is not None:
                rows.append((name, ", ".join(f"{n or 0:,} {phase}" for phase, n in phases._asdict().items())))
        return html_table(rows)

    def criteria(self) -> dict[str, Any]:
        """The main results: CR in percent, HN, NoP and times as in the paper, the others as fractions."""
        return {"n_samples": self.n_samples} | self._measured(compared=True)

    def details(self) -> dict[str, Any]:
        """All other results."""
        return {
            "n_chunks": self.n_chunks,
            "n_labels": self.n_labels,
            **self._measured(compared=False),
            "growths": None if self.growths is None else self.growths._asdict(),
            "prunings": None if self.prunings is None else self.prunings._asdict(),
            "drifts": None if self.drifts is None else self.drifts._asdict(),
            "class_drifts": list(self.class_drifts.items()),
            "classes": self.classes,
            "counts": self.counts,
            "alerts": None if self.alerts is None else self.alerts._asdict(),
            "costs": self.costs,
            "reliability": self.reliability.binned,
        }

    def figures(self) -> dict[str, Any]:
        """All results, as they are saved and shown."""
        return self.criteria() | self.details()

    def _measured(self, compared: bool) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for measure in measures.MEASURES:
            found |= measure.computed(self) if measure.compared == compared else {}
        return found


def together(a: Phases | None, b: Phases | None) -> Phases | None:
    """The sum of the values that exist."""
    if a is None or b is None:
        return a or b
    return Phases(*((one or 0) + (other or 0) for one, other in zip(a, b, strict=True)))
