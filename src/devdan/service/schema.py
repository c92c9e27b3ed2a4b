"""What the log holds and what is written to it: settings of streams, records, rows and labels; valid names and ids."""

from __future__ import annotations

import re
import secrets
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import msgspec

from devdan.encoding.rows import Rows
from devdan.histories.histories import entity_columns

Value = float | str | bool | None  # of a feature; None is missing
Label = int | str | bool
Features = dict[str, Value] | tuple[Value, ...]  # by column, or in the order of the stream's columns

LONGEST = 200  # characters of an id, a key, a label or a column's name
LONGEST_VALUE = 2**16  # of a feature
_CONTROL = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_MOST_SECONDS = 100 * 365.25 * 86_400
_WAIT = 30 * 86_400.0  # seconds
_DURATION = re.compile(r"(\d+(?:\.\d+)?) *(s|seconds?|m|min|minutes?|h|hours?|d|days?|w|weeks?)")
_UNITS = {"s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0, "w": 604_800.0}
_MAX_WAITING = 100_000
_IN_MEMORY, _MOST_KEYS = 10_000, 1_000_000
_MEMORY, _MOST_MEMORY = 512, 900  # MiB; SQLite takes a snapshot of up to a gigabyte
_SMALL, _RESERVED = 0.01, 0.1  # shares of what there is: up to which a request is small, and that only such may have


class InvalidError(ValueError):
    """Part of a request is not valid; the message says which part and why."""


class LimitError(ValueError):
    """A request exceeds a limit of the service."""


class BusyError(RuntimeError):
    """Too much is waiting already; the message says of what."""


class FairShares:
    """How much of something each sender has, of which there is a limit for all together.

    A sender may have as much as is left once it has that. So one alone gets half, two get a third each, and however
    much some send, there is room for others. The last tenth is for small requests alone, so that those of a sender do
    not have to wait behind its own large ones.

    >>> shares = FairShares(1000, "rows wait")
    >>> shares.take("a", 450)
    >>> shares.check("b", 200, 450)
    >>> shares.check("a", 1, 450)
    >>> shares.check("a", 100, 450)
    Traceback (most recent call last):
    devdan.service.schema.BusyError: 450 rows wait already, 450 of this sender; send it again later
    """

    def __init__(self, most: int, what: str) -> None:
        self._most, self._what = most, what
        self._own = Counter[str]()

    def check(self, sender: str, size: int, used: int) -> None:
        """Raise a ``BusyError`` unless a sender may have so much more, where so much is used by all."""
        own = self._own.get(sender, 0)
        most = self._most * (1.0 if size <= _SMALL * self._most else 1.0 - _RESERVED)
        if used > 0 and own + size > most - used - size:
            raise BusyError(f"{used} {self._what} already, {own} of this sender; send it again later")

    def take(self, sender: str, size: int) -> None:
        """A sender has so much more, or less."""
        self._own[sender] += size
        if self._own[sender] == 0:
            del self._own[sender]


class Limits(msgspec.Struct, frozen=True):
    """The service's limits; requests beyond them are refused."""

    body: int = 8 * 2**20  # bytes of a request
    bodies: int = 256 * 2**20  # bytes of all requests that are being answered
    rows: int = 10_000  # of a request
    columns: int = 1000
    row: int = 2**18  # characters of a row's texts
    streams: int = 100
    keys: int = _MOST_KEYS  # of a stream
    classes: int = 1000  # likewise
    probabilities: int = 1_000_000  # in an answer: rows times classes
    queued: int = 50_000  # rows and labels that wait to be written
    listeners: int = 100  # connections that follow events
    seconds: float = 20.0  # for a request to arrive, and for an answer to be taken


# --- Names and ids ---------------------------------------------------------------------------------------------------


def check_name(name: str) -> str:
    """Return the name of a stream if it is valid."""
    if not is_name(name):
        raise InvalidError(
            "the name of a stream must have up to 64 letters, digits, dots, dashes or underscores, and begin with a "
            f"letter or digit; got {name[:100]!r}"
        )
    return name


def is_name(name: str) -> bool:
    """Whether a stream may have this name."""
    return _NAME.fullmatch(name) is not None


def check_texts(texts: Sequence[str], what: str) -> None:
    """Raise an error if an id, key, label or column's name has control characters."""
    if _CONTROL.search("".join(texts)):
        text = next(filter(_CONTROL.search, texts))
        raise InvalidError(f"{what} must not have control characters, got {text!r}")


def printable(text: str) -> str:
    r"""The text in a line that any database and terminal takes.

    >>> printable("a\n b\0")
    'a b\ufffd'
    """
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", " ".join(text.split()))


def check_columns(names: Sequence[str]) -> None:
    """Raise an error unless these are valid names of columns."""
    if not names or len(set(names)) < len(names):
        raise InvalidError("columns must be different names, at least one")
    for name in names:
        if not 1 <= len(name) <= LONGEST:
            raise InvalidError(f"the name of a column must have 1 to {LONGEST} characters, got {len(name)}")
    check_texts(names, "the name of a column")


def new_id() -> str:
    """A random id for a row that came without one."""
    return secrets.token_hex(12)


# --- Records ---------------------------------------------------------------------------------------------------------


def seconds_of(duration: float | str) -> float:
    """A duration in seconds, or in words.

    >>> seconds_of("30 days"), seconds_of("1.5 h"), seconds_of(90)
    (2592000.0, 5400.0, 90.0)
    """
    if isinstance(duration, str):
        match = _DURATION.fullmatch(duration.strip())
        if match is None:
            raise InvalidError(f"after must be seconds, or text such as '12 hours' or '30 days', got {duration!r}")
        return float(match[1]) * _UNITS[match[2][0]]
    return float(duration)


class Assumption(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What no label means: a row whose label has not come ``after`` so long is taught as ``label``."""

    label: Label
    after: float | str = _WAIT


class StreamSettings(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, frozen=True):
    """The model of a stream and its options, what rows look like, how long and how many wait for labels.

    ``columns`` are those of the first row unless given. ``keep`` is for how many seconds the log keeps what is no
    longer needed; by default for ever, so that everything can be replayed. ``max_memory`` is what the networks may take
    with their replay buffers: rows and labels for which they would need more are refused. The networks of the
    ``max_in_memory`` keys used last are in memory. With ``assume``, rows are taught as a class if their label does not
    come in time, instead of ``wait``. ``history`` names the columns of entities, or lists of them for pairs, and
    ``time`` that of times: rows are predicted and learned with what was known of their entities when they came.
    """

    model: str = "DEVDAN"
    options: dict[str, Any] = {}
    columns: list[str] | None = None
    keyed: bool = False
    wait: float = _WAIT
    max_waiting: int = _MAX_WAITING
    keep: float | None = None
    max_memory: int = _MEMORY  # MiB
    max_in_memory: int = _IN_MEMORY
    assume: Assumption | None = None
    history: list[str | list[str]] | None = None
    time: str | None = None

    @property
    def of_networks(self) -> int:
        """The MiB that the networks may take; of a stream with histories, half is for the entities."""
        return self.max_memory if self.history is None else max(self.max_memory // 2, 1)

    @property
    def entities(self) -> list[str | tuple[str, ...]]:
        """What ``history`` names."""
        return [one if isinstance(one, str) else tuple(one) for one in self.history or ()]

    @property
    def waits(self) -> float:
        """The seconds that rows wait for labels, and labels for rows."""
        return self.wait if self.assume is None else seconds_of(self.assume.after)

    def check(self) -> None:
        """Raise an error that names the setting that is not valid; the model's options are checked elsewhere."""
        if self.assume is not None:
            if not 0 < self.waits <= _MOST_SECONDS:
                raise InvalidError(f"after must be a duration of up to a hundred years, got {self.assume.after!r}")
            if self.wait != _WAIT:
                raise InvalidError(
                    "wait must be left out with assume, whose rows and labels wait as long as after says"
                )
            if isinstance(self.assume.label, str):
                check_texts([self.assume.label], "a label")
        if not 0 < self.wait <= _MOST_SECONDS:
            raise InvalidError(f"wait must be seconds, greater than 0 and at most a hundred years, got {self.wait}")
        if not 1 <= self.max_waiting <= 100_000_000:
            raise InvalidError(f"max_waiting must be from 1 to 100,000,000, got {self.max_waiting}")
        if self.keep is not None and not 0 <= self.keep <= _MOST_SECONDS:
            raise InvalidError(f"keep must be seconds, from 0 to a hundred years, or null; got {self.keep}")
        if not 1 <= self.max_memory <= _MOST_MEMORY:
            raise InvalidError(f"max_memory must be MiB, from 1 to {_MOST_MEMORY}, got {self.max_memory}")
        if not 1 <= self.max_in_memory <= _MOST_KEYS:
            raise InvalidError(f"max_in_memory must be keys, from 1 to {_MOST_KEYS:,}, got {self.max_in_memory}")
        self._check_history()

    def _check_history(self) -> None:
        if self.history is None:
            if self.time is not None:
                raise InvalidError("time is for history, which names the columns that say whom a row is about")
            return
        if self.keyed:
            raise InvalidError("history must be left out with keyed: of a key, its own network knows the past")
        try:
            named = [name for columns in entity_columns(self.entities) for name in columns]
        except ValueError as error:
            raise InvalidError(str(error).replace("entities", "history", 1)) from None
        check_columns(list(dict.fromkeys(named)))
        if self.time in named:
            raise InvalidError(f"time must be another column than those of history, got {self.time!r}")


class LoggedSettings(msgspec.Struct, tag="created", frozen=True):
    """A stream was created."""

    settings: StreamSettings


class LoggedColumns(msgspec.Struct, tag="columns", frozen=True):
    """The columns of a stream, in the order of a row's values."""

    names: list[str]


class LoggedRows(msgspec.Struct, tag="rows", frozen=True, omit_defaults=True):
    """Rows that were committed together; the model observes them together.

    ``first`` is the number of the first row in the stream. ``predicted`` and ``confidence`` are what was answered:
    None for rows that came with their labels, or before the first label was learned. ``thresholds`` are the
    probabilities from which on these labels were called, if the stream decided by such. ``histories`` are what was
    known of each row's entities when it came, as packed floats, of which some were ``hidden``; ``arrived`` are the
    times.
    """

    first: int
    ids: list[str]
    values: Sequence[Sequence[Value]]
    predicted: list[Label | None]
    confidence: list[float | None]
    keys: list[str] | None = None
    thresholds: list[float | None] | None = None
    histories: list[bytes] | None = None
    arrived: list[float] | None = None
    hidden: list[int] = []


class LoggedLabels(msgspec.Struct, tag="labels", frozen=True, omit_defaults=True):
    """Labels that were committed together; the model is taught them together.

    ``rows`` has the record of each label's row and the row's place in it. ``came`` is when they came by the time of the
    histories, if the stream has some.
    """

    rows: list[tuple[int, int]]
    labels: list[Label]
    came: float | None = None


class LoggedAssumptions(LoggedLabels, tag="assumed", frozen=True):
    """Labels that did not come in time, and are assumed; one that comes later corrects it."""


class LoggedCorrections(msgspec.Struct, tag="corrections", frozen=True, omit_defaults=True):
    """Labels that replace others, committed together: the model forgets those ``before``, and is taught these.

    ``rows`` is as in ``LoggedLabels``; in histories, the labels count from when the first ones ``came``.
    """

    rows: list[tuple[int, int]]
    before: list[Label]
    labels: list[Label]
    came: list[float] | None = None


class EarlyLabels(msgspec.Struct, tag="early", frozen=True):
    """Labels that came before their rows."""

    ids: list[str]
    labels: list[Label]


class LoggedForgetting(msgspec.Struct, tag="forgotten", frozen=True, omit_defaults=True):
    """A sample was forgotten: the model takes it out of its replay buffers.

    ``row`` is as in ``LoggedLabels``, or None if only a label had come; ``waited``: for the other part. ``columns`` are
    the places of values that no other row has, and that the encoding forgets; ``labelled`` the records with labels of
    the sample. ``times``: when its row and its label came, by the time of the histories. Once it is erased, the id and
    the label are, too.
    """

    id: str
    row: tuple[int, int] | None
    label: Label | None
    waited: bool
    columns: list[int]
    labelled: list[int]
    times: tuple[float, float | None] | None = None


class LoggedExpiry(msgspec.Struct, tag="expired", frozen=True):
    """Rows and early labels in records up to ``up_to`` were evicted: too old, or too many were waiting."""

    up_to: int
    n_rows: int
    n_labels: int


LogBody = (
    LoggedSettings
    | LoggedColumns
    | LoggedRows
    | LoggedLabels
    | LoggedAssumptions
    | LoggedCorrections
    | EarlyLabels
    | LoggedForgetting
    | LoggedExpiry
)


class LogRecord(msgspec.Struct, frozen=True):
    """An entry of the log: its number, its stream, when it was written (seconds since 1970), and its content."""

    seq: int
    stream: int
    at: float
    body: LogBody
    n_bytes: int = 0  # of it in the log


_DECODER = msgspec.msgpack.Decoder(LogBody)
encoded = msgspec.msgpack.Encoder().encode


def decoded(seq: int, stream: int, at: float, content: bytes) -> LogRecord:
    """A record from what the database holds."""
    return LogRecord(seq, stream, at, _DECODER.decode(content), len(content))


# --- Submissions -----------------------------------------------------------------------------------------------------


class SubmittedRow(msgspec.Struct, frozen=True, gc=False):
    """A row with what was answered; ``label`` if it came with its label."""

    id: str
    features: Features
    key: str | None = None
    predicted: Label | None = None
    confidence: float | None = None
    label: Label | None = None
    is_new: bool = False  # the service has just made its id
    threshold: float | None = None


class RowPrediction(msgspec.Struct, frozen=True, gc=False):
    """The label, its probability, that of each class in the predictor's order, and that from which on it is called.

    The last is None where the stream does not decide by thresholds.
    While one class has come alone, its probability is (n + 1) / (n + 2) after n labels, by Laplace's rule of
    succession: the rest is for classes that have not come yet. The model's own probabilities have to sum to 1.
    """

    label: Label | None
    confidence: float | None
    probabilities: list[float]
    threshold: float | None = None


class RowPredictor(Protocol):
    """What predicts rows as the model sees them."""

    def given(self, X: Rows) -> list[RowPrediction]:
        """Their predictions."""


class Source(NamedTuple):
    """Where a submission was read that may be read again: a partition of a topic, and the offset in it."""

    topic: str
    partition: int
    offset: int


class Submission(NamedTuple):
    """What one request writes: rows, or labels by the ids of their rows; ``replaces``: they correct others.

    A submission with a ``source`` that was decided about before changes nothing, even if its ids were forgotten since.
    Submissions of a partition must come in the order of their offsets. With a ``predictor``, its rows are predicted
    when they are written, with what is known of their entities then.
    """

    stream: int
    rows: Sequence[SubmittedRow] = ()
    labels: Sequence[tuple[str, Label]] = ()
    source: Source | None = None
    replaces: bool = False
    predictor: RowPredictor | None = None


class Contradiction(NamedTuple):
    """A row or label that contradicts what is known of its id."""

    id: str
    why: str


class SubmissionOutcome(NamedTuple):
    """How many rows and labels of a submission counted in which way, or why it was refused as a whole."""

    rows: int = 0
    repeated_rows: int = 0
    accepted: int = 0
    corrected: int = 0
    repeated: int = 0
    waiting: int = 0
    expired: int = 0
    refused: Sequence[Contradiction] = ()
    error: str | None = None
    gone: bool = False  # the stream does not exist (any more)
    unready: bool = False  # nothing can be decided yet; the error says why
    predictions: Sequence[RowPrediction] = ()  # of all rows, if the submission has a predictor

    def and_then(self, other: SubmissionOutcome) -> SubmissionOutcome:
        """The outcome of a submission that was committed in parts.

        >>> SubmissionOutcome(accepted=2, repeated=1).and_then(SubmissionOutcome(accepted=1))[2:5]
        (3, 0, 1)
        """
        return SubmissionOutcome(
            self.rows + other.rows,
            self.repeated_rows + other.repeated_rows,
            self.accepted + other.accepted,
            self.corrected + other.corrected,
            self.repeated + other.repeated,
            self.waiting + other.waiting,
            self.expired + other.expired,
            [*self.refused, *other.refused],
            self.error or other.error,
            self.gone or other.gone,
            self.unready or other.unready,
        )


def kind_of(label: Label) -> str:
    """The type of a label, in words."""
    return "true or false" if isinstance(label, bool) else "number" if isinstance(label, int) else "text"


def are_alike(labels: Sequence[tuple[str, Label]]) -> bool:
    """Whether all labels are of one type: then all are of the stream's type, or none is."""
    return len({kind_of(label) for _, label in labels}) == 1
