"""From a table and a model to predictions, block by block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from devdan.arrays import Floats
from devdan.fleet.fleet import DEVDANFleet
from devdan.serving.matching import Model, as_written, given, key_column, keyed, matched
from devdan.streams import StreamError
from devdan.streams.stream import Table

ANSWER = "prediction"


class Answers(NamedTuple):
    """Predictions for a block of rows: the columns that are kept, the labels, and the probability of each class."""

    kept: list[Any]
    labels: npt.NDArray[Any]
    shares: Floats


class Predicting:
    r"""The predictions of a model for a table. ``ignored`` are columns that it does not know.

    For a fleet, ``key`` is the column with the keys; by default, the one that it learned from.

    >>> import io
    >>> from devdan import DEVDAN
    >>> from devdan.streams import lines
    >>> model = DEVDAN(random_state=0).fit([{"x": 1.0}, {"x": 5.0}], ["low", "high"])
    >>> job = Predicting(model, lines.table(io.StringIO("id,x\na,1\nb,5\n")), keep=["id"])
    >>> job.head, job.ignored, [answers.kept for answers in job]
    (['id', 'prediction', 'p(high)', 'p(low)'], [], [[['a']], [['b']]])
    """

    def __init__(self, model: Model, table: Table, keep: Sequence[str] = (), key: str | None = None) -> None:
        self.model, self.table = model, table
        self.classes = model.classes_
        for name in keep:
            if name not in table.names:
                raise StreamError(f"{table.origin} has no column {name!r} to keep; it has {', '.join(table.names)}")
        self.head = [*keep, ANSWER, *(f"p({label})" for label in self.classes.tolist())]
        self.n_kept = len(keep)
        if len(set(self.head)) < len(self.head):
            raise StreamError(f"two columns would have the same name: {', '.join(self.head)}; keep each only once")
        self._keep = [table.names.index(name) for name in keep]
        self._key = key_column(model, key, table.names, table.origin)
        self._match = matched(model, table.names, table.named, table.origin, self._key)
        self.ignored = [name for name in self._match.ignored if name not in keep]

    def __iter__(self) -> Iterator[Answers]:
        model, match = self.model, self._match
        known, texts = list(model.encoding_.columns), set(as_written(model, self._key))
        names = [known[own] for own in match.own] + ([] if self._key is None else [self._key])
        as_text = [place for name, place in zip(names, match.places, strict=True) if name in texts]
        blocks: Any = self.table.read(match.places, self._keep, as_text)
        with closing(blocks):
            for rows, kept in blocks:
                keys, features = keyed(rows, self._key)
                X = given(model, features, match)
                shares = model.predict_proba(keys, X) if isinstance(model, DEVDANFleet) else model.predict_proba(X)
                yield Answers(kept, np.asarray(self.classes[shares.argmax(axis=1)]), shares)
