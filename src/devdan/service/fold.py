"""The model as a function of the log: the same records give the same bits, at any time and in any process.

Each record is a portion: rows are observed and labels taught as they were committed together. No clock and no chance
comes in: times are in the records, and the model has a seed.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence

import msgspec

from devdan.service import models
from devdan.service.logged import Columns, Expired, Label, Labels, Record, Rows, Settings, Value
from devdan.service.tally import Tally

_CACHED = 20_000  # rows that may get labels soon

Stored = Callable[[int], Record | None]  # a record of the stream, by its number

_tally = msgspec.msgpack.Decoder(Tally).decode


class GapError(RuntimeError):
    """The log lacks something that a record refers to."""


class Fold:
    """The state after the records up to ``seq``: the model, and what is counted.

    >>> from devdan.service.logged import Record
    >>> fold = Fold(Settings())
    >>> rows = Rows(0, ["a", "b"], [[1.0], [2.0]], [None, None], [None, None])
    >>> bodies = [Columns(["x"]), rows, Labels([(2, 0), (2, 1)], ["low", "high"])]
    >>> for seq, body in enumerate(bodies, start=1):
    ...     fold.apply(Record(seq, 1, 0.0, body))
    >>> fold.seq, fold.model.classes_.tolist(), fold.tally.n_labels
    (3, ['high', 'low'], 2)
    """

    def __init__(self, settings: Settings, stored: Stored = lambda seq: None) -> None:
        self.settings, self._stored = settings, stored
        self.model: models.Model = models.new_model(settings)
        self.tally, self.columns, self.seq = Tally(), settings.columns, 0
        self._recent: OrderedDict[int, tuple[Record, Rows]] = OrderedDict()
        self._n_recent = 0  # rows in them
        self.n_hidden, self.drifts = 0, (0, 0)  # virtual and real

    @classmethod
    def of_snapshot(
        cls, settings: Settings, stored: Stored, columns: list[str] | None, seq: int, model: bytes | None, tally: bytes
    ) -> Fold:
        """Go on from a snapshot."""
        fold = cls(settings, stored)
        fold.columns, fold.seq, fold.tally = columns, seq, _tally(tally)
        if model is not None:
            fold.model = models.of_content(model, "the snapshot")
            fold.n_hidden, *drifts = models.structure(fold.model)
            fold.drifts = drifts[0], drifts[1]
        return fold

    def content(self) -> tuple[bytes | None, bytes]:
        """The model file and the counts, as a snapshot keeps them."""
        return models.content_of(self.model), msgspec.msgpack.encode(self.tally)

    def apply(self, record: Record) -> None:
        """Take the next record."""
        body = record.body
        if isinstance(body, Columns):
            self.columns = body.names
        elif isinstance(body, Rows):
            self._remember(record, body)
            self.tally.rows(record, body)
            self._learn(body.values, body.keys, None)
        elif isinstance(body, Labels):
            found = {seq: self._rows(seq) for seq in dict.fromkeys(seq for seq, _ in body.rows)}
            rows = [found[seq] for seq, _ in body.rows]
            self.tally.labels(record, body, rows)
            values = [own.values[place] for (_, own), (_, place) in zip(rows, body.rows, strict=True)]
            keys = [own.keys[place] for (_, own), (_, place) in zip(rows, body.rows, strict=True) if own.keys]
            self._learn(values, keys, body.labels)
        elif isinstance(body, Expired):
            self.tally.expired(body)
        self.seq = record.seq

    def _learn(self, values: Sequence[Sequence[Value]], keys: list[str] | None, labels: list[Label] | None) -> None:
        assert self.columns is not None
        try:
            X = models.table(self.columns, values)
            if labels is None:
                models.observe(self.model, X, keys)
            else:
                models.teach(self.model, X, keys, labels)
        except ValueError as error:  # the model is as it was; what it cannot take is counted, the same at each replay
            self.tally.n_unusable += len(values)
            self.tally.problem = str(error)
            return
        self.n_hidden, virtual, real = models.structure(self.model)
        self.tally.structure(self.n_hidden, virtual - self.drifts[0], real - self.drifts[1])
        self.drifts = virtual, real
        if labels is not None and self.tally.is_due(len(self.columns)):
            self.tally.importances(models.importances(self.model))

    def is_same_as(self, model: bytes | None, tally: bytes) -> bool:
        """Whether a snapshot holds this state, bit for bit."""
        return msgspec.msgpack.encode(self.tally) == tally and models.are_same(self.model, model)

    def _remember(self, record: Record, rows: Rows) -> None:
        self._recent[record.seq] = record, rows
        self._n_recent += len(rows.ids)
        while self._n_recent > _CACHED and len(self._recent) > 1:
            _, (_, oldest) = self._recent.popitem(last=False)
            self._n_recent -= len(oldest.ids)

    def _rows(self, seq: int) -> tuple[Record, Rows]:
        if seq in self._recent:
            self._recent.move_to_end(seq)
            return self._recent[seq]
        record = self._stored(seq)
        if record is None or not isinstance(record.body, Rows):
            raise GapError(f"the log lacks the rows of record {seq}, whose labels it has")
        self._remember(record, record.body)  # labels of one record mostly come together
        return record, record.body
