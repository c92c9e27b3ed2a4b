"""The predictions of a model for a table, block by block, and where they are written: CSV, lines of JSON or Parquet."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pa_parquet

from devdan.apply.matching import Model, as_written, given, key_column, keyed, matched
from devdan.arrays import Floats
from devdan.atomic import written_atomically
from devdan.fleet.fleet import DEVDANFleet
from devdan.streams import StreamError
from devdan.streams.stream import Table

PREDICTION = "prediction"


class PredictedBlock(NamedTuple):
    """Predictions for a block of rows: the columns that are kept, the labels, and the probability of each class."""

    kept: list[Any]
    labels: npt.NDArray[Any]
    probabilities: Floats


class Predictions:
    r"""The predictions of a model for a table, block by block. ``ignored`` are columns that the model does not know.

    For a fleet, ``key`` is the column with the keys; by default, the one that it learned from.

    >>> import io
    >>> from devdan import DEVDAN
    >>> from devdan.streams import lines
    >>> model = DEVDAN(random_state=0).fit([{"x": 1.0}, {"x": 5.0}], ["low", "high"])
    >>> predictions = Predictions(model, lines.table(io.StringIO("id,x\na,1\nb,5\n")), keep=["id"])
    >>> predictions.head, predictions.ignored, [block.kept for block in predictions]
    (['id', 'prediction', 'p(high)', 'p(low)'], [], [[['a']], [['b']]])
    """

    def __init__(self, model: Model, table: Table, keep: Sequence[str] = (), key: str | None = None) -> None:
        self.model, self.table = model, table
        self.classes = model.classes_
        for name in keep:
            if name not in table.names:
                raise StreamError(f"{table.origin} has no column {name!r} to keep; it has {', '.join(table.names)}")
        self.head = [*keep, PREDICTION, *(f"p({label})" for label in self.classes.tolist())]
        self.n_kept = len(keep)
        if len(set(self.head)) < len(self.head):
            raise StreamError(f"two columns would have the same name: {', '.join(self.head)}; keep each only once")
        self._keep = [table.names.index(name) for name in keep]
        self._key = key_column(model, key, table.names, table.origin)
        self._match = matched(model, table.names, table.named, table.origin, self._key)
        self.ignored = [name for name in self._match.ignored if name not in keep]

    def __iter__(self) -> Iterator[PredictedBlock]:
        model, match = self.model, self._match
        known, texts = list(model.encoding_.columns), set(as_written(model, self._key))
        names = [known[own] for own in match.own] + ([] if self._key is None else [self._key])
        as_text = [place for name, place in zip(names, match.places, strict=True) if name in texts]
        blocks: Any = self.table.read(match.places, self._keep, as_text)
        with closing(blocks):
            for rows, kept in blocks:
                keys, features = keyed(rows, self._key)
                X = given(model, features, match)
                arguments = (keys, X) if isinstance(model, DEVDANFleet) else (X,)
                probabilities = model.predict_proba(*arguments)
                yield PredictedBlock(kept, np.asarray(self.classes[probabilities.argmax(axis=1)]), probabilities)


# --- Files -------------------------------------------------------------------------------------------------------


class PredictionWriter(Protocol):
    """Writes predictions in some format."""

    def write(self, block: PredictedBlock) -> None:
        """Write a block."""

    def close(self) -> None:
        """Write the end of the file, if the format has one."""


class _Csv:
    def __init__(self, file: IO[bytes], predictions: Predictions, proba: bool) -> None:
        self._file, self._proba = file, proba
        self._write_rows([predictions.head if proba else predictions.head[: predictions.n_kept + 1]])

    def write(self, block: PredictedBlock) -> None:
        kept = [_texts(values) for values in block.kept]
        probabilities = [[repr(p) for p in of] for of in block.probabilities.T.tolist()] if self._proba else []
        self._write_rows(zip(*kept, map(str, block.labels.tolist()), *probabilities, strict=True))

    def _write_rows(self, rows: Iterable[Any]) -> None:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(rows)
        self._file.write(text.getvalue().encode("utf-8", "surrogatepass"))

    def close(self) -> None:
        """CSV has no end."""


class _Json:
    def __init__(self, file: IO[bytes], predictions: Predictions, proba: bool) -> None:
        self._file, self._proba, self._head = file, proba, predictions.head

    def write(self, block: PredictedBlock) -> None:
        kept = [values if isinstance(values, list) else _texts(values) for values in block.kept]
        probabilities = block.probabilities.T.tolist() if self._proba else []
        lines = [
            json.dumps(dict(zip(self._head, row, strict=False)), ensure_ascii=False)
            for row in zip(*kept, block.labels.tolist(), *probabilities, strict=True)
        ]
        self._file.write(("\n".join(lines) + "\n").encode("utf-8", "surrogatepass"))

    def close(self) -> None:
        """Lines of JSON have no end."""


class _Parquet:
    def __init__(self, file: IO[bytes], predictions: Predictions, proba: bool) -> None:
        self._file, self._proba = file, proba
        self._head = predictions.head if proba else predictions.head[: predictions.n_kept + 1]
        self._classes = pa.array(predictions.classes.tolist()).type
        self._writer: Any = None

    def write(self, block: PredictedBlock) -> None:
        kept = [
            pa.array([None if v is None else str(v) for v in some]) if isinstance(some, list) else some
            for some in block.kept
        ]
        probabilities = list(block.probabilities.T) if self._proba else []
        columns = [*kept, pa.array(block.labels.tolist(), self._classes), *map(np.ascontiguousarray, probabilities)]
        table = pa.table(columns, names=self._head)
        if self._writer is None:
            self._writer = pa_parquet.ParquetWriter(self._file, table.schema)
        self._writer.write_table(table)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


_FORMATS: dict[str, Callable[[IO[bytes], Predictions, bool], PredictionWriter]] = {
    ".csv": _Csv, ".parquet": _Parquet, ".jsonl": _Json,
}  # fmt: skip


def check_format(path: Path) -> None:
    """Raise an error unless predictions can be written to such a file."""
    if path.suffix.lower() not in _FORMATS:
        raise StreamError(f"--out must end in {', '.join(_FORMATS)}, got {path}")


@contextmanager
def into_file(path: Path, predictions: Predictions, proba: bool) -> Iterator[PredictionWriter]:
    """Write to a file that appears when it is complete."""
    with written_atomically(path) as file:
        writer = _FORMATS[path.suffix.lower()](file, predictions, proba)
        yield writer
        writer.close()


def onto(file: IO[bytes], predictions: Predictions, proba: bool) -> PredictionWriter:
    """Write to an open file: lines of JSON if the table has them, otherwise CSV."""
    return (_Json if predictions.table.is_json else _Csv)(file, predictions, proba)


def _texts(values: Any) -> list[str]:
    """A column as texts."""
    if isinstance(values, list):
        return [value if isinstance(value, str) else "" if value is None else json.dumps(value) for value in values]
    array = values if isinstance(values, (pa.Array, pa.ChunkedArray)) else pa.array(values)
    try:
        return ["" if value is None else str(value) for value in pc.cast(array, pa.string()).to_pylist()]
    except pa.ArrowException as error:
        raise StreamError(f"a column of {array.type} cannot be kept as text: {error}") from error
