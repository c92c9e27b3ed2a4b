"""Where predictions go: CSV, lines of JSON or Parquet, block by block."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pa_parquet

from devdan.atomic import written_atomically
from devdan.serving.predicting import Answers, Predicting
from devdan.streams import StreamError


class Answering(Protocol):
    """Something that predictions are written to."""

    def write(self, answers: Answers) -> None:
        """Write a block of them."""

    def close(self) -> None:
        """Write what is needed at the end."""


class _Csv:
    def __init__(self, file: IO[bytes], job: Predicting, proba: bool) -> None:
        self._file, self._proba = file, proba
        self._write_rows([job.head if proba else job.head[: job.n_kept + 1]])

    def write(self, answers: Answers) -> None:
        kept = [_texts(values) for values in answers.kept]
        shares = [[repr(share) for share in of] for of in answers.shares.T.tolist()] if self._proba else []
        self._write_rows(zip(*kept, map(str, answers.labels.tolist()), *shares, strict=True))

    def _write_rows(self, rows: Iterable[Any]) -> None:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(rows)
        self._file.write(text.getvalue().encode("utf-8", "surrogatepass"))

    def close(self) -> None:
        """Nothing is needed."""


class _Json:
    def __init__(self, file: IO[bytes], job: Predicting, proba: bool) -> None:
        self._file, self._proba, self._head = file, proba, job.head

    def write(self, answers: Answers) -> None:
        kept = [values if isinstance(values, list) else _texts(values) for values in answers.kept]
        shares = answers.shares.T.tolist() if self._proba else []
        lines = [
            json.dumps(dict(zip(self._head, row, strict=False)), ensure_ascii=False)
            for row in zip(*kept, answers.labels.tolist(), *shares, strict=True)
        ]
        self._file.write(("\n".join(lines) + "\n").encode("utf-8", "surrogatepass"))

    def close(self) -> None:
        """Nothing is needed."""


class _Parquet:
    def __init__(self, file: IO[bytes], job: Predicting, proba: bool) -> None:
        self._file, self._proba, self._head = file, proba, job.head if proba else job.head[: job.n_kept + 1]
        self._classes = pa.array(job.classes.tolist()).type
        self._writer: Any = None

    def write(self, answers: Answers) -> None:
        kept = [
            pa.array([None if v is None else str(v) for v in some]) if isinstance(some, list) else some
            for some in answers.kept
        ]
        shares = list(answers.shares.T) if self._proba else []
        columns = [*kept, pa.array(answers.labels.tolist(), self._classes), *map(np.ascontiguousarray, shares)]
        table = pa.table(columns, names=self._head)
        if self._writer is None:
            self._writer = pa_parquet.ParquetWriter(self._file, table.schema)
        self._writer.write_table(table)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


_FORMATS: dict[str, Callable[[IO[bytes], Predicting, bool], Answering]] = {
    ".csv": _Csv, ".parquet": _Parquet, ".jsonl": _Json,
}  # fmt: skip


def check_format(path: Path) -> None:
    """Raise an error unless predictions can be written to such a file."""
    if path.suffix.lower() not in _FORMATS:
        raise StreamError(f"--out must end in {', '.join(_FORMATS)}, got {path}")


@contextmanager
def into_file(path: Path, job: Predicting, proba: bool) -> Iterator[Answering]:
    """Write to a file that is there when all is written, and not before."""
    with written_atomically(path) as file:
        answering = _FORMATS[path.suffix.lower()](file, job, proba)
        yield answering
        answering.close()


def onto(file: IO[bytes], job: Predicting, proba: bool) -> Answering:
    """Write to an open file: lines of JSON for a table of such, otherwise CSV."""
    return (_Json if job.table.is_json else _Csv)(file, job, proba)


def _texts(values: Any) -> list[str]:
    """A column as texts."""
    if isinstance(values, list):
        return [value if isinstance(value, str) else "" if value is None else json.dumps(value) for value in values]
    array = values if isinstance(values, (pa.Array, pa.ChunkedArray)) else pa.array(values)
    try:
        return ["" if value is None else str(value) for value in pc.cast(array, pa.string()).to_pylist()]
    except pa.ArrowException as error:
        raise StreamError(f"a column of {array.type} cannot be kept as text: {error}") from error
