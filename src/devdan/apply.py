"""Using a model that has been saved: its columns in a table, predictions, and learning on from a stream."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pa_parquet

from devdan.arrays import Floats
from devdan.atomic import written_atomically
from devdan.encoding.column import ColumnEncoding
from devdan.encoding.evidence import DATE, FLAG, NOMINAL, NUMBER, TIME
from devdan.encoding.rows import Column, Numbers, Rows, Texts
from devdan.encoding.values import Vocabulary, is_dressed, number, plain_text
from devdan.fleet import keys as labels
from devdan.fleet.fleet import DEVDANFleet
from devdan.histories.histories import Histories
from devdan.model.classes import split_missing
from devdan.model.classifier import EvolvingClassifier
from devdan.runs.runfolder import RunError, RunFolder
from devdan.streams import Stream, StreamError
from devdan.streams.reading import Reading
from devdan.streams.stream import Table

Model = EvolvingClassifier | DEVDANFleet
_BY_POSITION = re.compile(r"column \d+")  # how a text without names has its columns called


def model_path(path: Path) -> Path:
    """The path of a model file, or of the model in the folder of a run."""
    if not path.is_dir():
        return path
    folder = RunFolder(path)
    if folder.model_path.exists():
        return folder.model_path
    if folder.fleet_path.exists() and folder.is_finished:
        return folder.fleet_path
    if folder.pickled_model_path.exists():
        raise RunError(
            f"{path} has a model that is kept as a pickle; only DEVDAN, DEVDANEnsemble and DEVDANFleet can be used here"
        )
    raise RunError(f"there is no model in {path}: a run leaves it when it is finished")


class Matching(NamedTuple):
    """The columns that model and table share, by position in each, and those that the model ignores.

    Columns that the model leaves out may be absent from the table.
    """

    own: list[int]
    places: list[int]
    ignored: list[str]


def key_column(model: Model, key: str | None, names: Sequence[str], source: str) -> str | None:
    """The column with the keys, if the model is a fleet: the one named, or the one that the fleet learned from."""
    if not isinstance(model, DEVDANFleet):
        if key is not None:
            raise StreamError(f"--key is for fleets, but the model is a {type(model).__name__}")
        return None
    name = model.key_name_ if key is None else key
    if name is None:
        raise StreamError(f"the fleet does not say which column of {source} has the keys: name it with --key")
    if name not in names:
        raise StreamError(f"{source} has no column {name!r} with the keys; there is {_listed(names)}")
    return name


def network_of(model: Model, key: str | None) -> EvolvingClassifier:
    """The network of a fleet for this key, as it is written; a model that is not a fleet has no keys."""
    if not isinstance(model, DEVDANFleet):
        key_column(model, key, (), "")
        return model
    try:
        return model[key if model.has_text_keys else labels.of_text(str(key))]
    except (KeyError, ValueError):
        raise StreamError(f"the fleet has no key {key!r}; it has {len(model):,} others") from None


def keyed(rows: Rows, key: str | None) -> tuple[tuple[Any, ...], Rows]:
    """What a model's methods take before rows, and the rows: a fleet's take keys, which are in the last column."""
    if key is None:
        return (), rows
    keys, rows = labels.split(rows.names[-1], rows)
    return (keys,), rows


def matched(model: Model, names: Sequence[str], named: bool, source: str, key: str | None = None) -> Matching:
    """Find the model's columns among those of a table: by name or, if the model has no names, by position.

    The column with the keys of a fleet is not one of them; it is added as the last of the positions.
    """
    others = [place for place, name in enumerate(names) if name != key]
    match = _matched(model, [names[place] for place in others], named, source)
    places = [others[place] for place in match.places]
    return match._replace(places=[*places, *(place for place, name in enumerate(names) if name == key)])


def histories_of(model: Model) -> Histories | None:
    """What the model knows of the past of entities, if it learned with it."""
    histories: Histories | None = getattr(model, "histories_", None)
    return histories


def columns_known(model: Model) -> list[str]:
    """The names of the columns that a table for this model has, if it knows any."""
    histories = histories_of(model)
    return histories.columns_ if histories is not None else [str(n) for n in getattr(model, "feature_names_in_", ())]


def _matched(model: Model, names: Sequence[str], named: bool, source: str) -> Matching:
    known = columns_known(model)
    left_out = {name for name, column in model.encoding_.columns.items() if column.left_out}
    missing = [name for name in known if name not in names and name not in left_out]
    own = [place for place, name in enumerate(known) if name in names]
    if own and not missing:
        ignored = [name for name in names if name not in set(known)]
        return Matching(own, [list(names).index(known[place]) for place in own], ignored)
    n = len(known) or int(model.n_features_in_)
    if all(map(_BY_POSITION.fullmatch, known)):
        if len(names) != n:
            raise StreamError(
                f"{source} has {len(names)} columns, but the model takes {n}, by position, since it learned from "
                "columns without names"
            )
        return Matching(list(range(n)), list(range(n)), [])
    if not named:
        raise StreamError(
            f"{source} has no names for its columns, which the model knows by name: {_listed(known)}; if its first "
            "line has them, say so with --header"
        )
    columns = "the column" if len(missing) == 1 else "the columns"
    raise StreamError(
        f"{source} lacks {columns} {_listed(missing)}; the model expects {_listed(known)}; there is {_listed(names)}"
    )


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:20]))
    return shown + (f", … ({len(names)} in all)" if len(names) > 20 else "")


def as_written(model: Model, key: str | None = None) -> list[str]:
    """The columns to read as text: nominal ones, keys that are text, and numbers whose comma is a decimal one."""
    keys = [key] if key is not None and isinstance(model, DEVDANFleet) and model.has_text_keys else []
    histories = histories_of(model)
    entities = [] if histories is None else histories.entity_columns_
    return (
        keys
        + entities
        + [
            name
            for name, column in model.encoding_.columns.items()
            if column.kind in (NOMINAL, DATE) or column.decimal == ","
        ]
    )


def check_kinds(model: Model, reading: Reading) -> None:
    """Raise an error unless columns are what the model has learned that they are, as far as it knows them."""
    said = (((NOMINAL,), reading.nominal), ((NUMBER, FLAG), reading.numeric), ((DATE, TIME), reading.dates))
    for kinds, names in said:
        for name in names:
            known = model.encoding_.columns.get(name)
            if known is None:
                raise StreamError(f"the model has no column {name!r}; it has {_listed(columns_known(model))}")
            if known.kind not in ("", *kinds):
                raise StreamError(f"to the model, {name!r} is of the kind {known.kind}, which cannot become {kinds[0]}")


def set_options(model: Model, options: Mapping[str, Any], only: Sequence[str] = ()) -> None:
    """Change options of a model that has learned, or of its members; raises an error unless it can have them so."""
    known = model.get_params(deep=True)
    for name, value in options.items():
        if only and name not in only:
            raise StreamError(f"{name} cannot be set for predictions, only {', '.join(only)}")
        place = name if name in model.get_params(deep=False) else f"estimator__{name}"
        if place not in known:
            raise StreamError(f"a {type(model).__name__} has no option {name!r}; it has {_listed(list(known))}")
        model.set_params(**{place: value})
    model.check_options()


def _spelled(column: Column, known: ColumnEncoding) -> Column:
    """The texts of a nominal column as the model knows them: it may have learned 007 as the number 7."""
    if known.kind != NOMINAL or not isinstance(column, Texts):
        return column
    values = set(known.values)

    def spelled(text: str) -> str:
        plain = text if is_dressed(text) or math.isnan(number(text)) else plain_text(number(text))
        return plain if text not in values and plain in values else text

    texts = [spelled(text) for text in column.vocabulary.texts]
    return replace(column, vocabulary=Vocabulary(texts))


def given(model: Model, rows: Rows, match: Matching) -> Any:
    """Rows with the matched columns, in the form that the model, or its histories, take."""
    if model._encoding is None:
        return rows if rows.others else rows.numbers
    names, known = columns_known(model) or list(model._encoding.columns), model._encoding.columns
    columns: list[Column] = [Numbers(np.full(len(rows), np.nan))] * len(names)
    for place, column in zip(match.own, rows.columns(), strict=True):
        name = names[place]
        columns[place] = _spelled(column, known[name]) if name in known else column
    return Rows.of(names, columns, len(rows))


def arrived(model: Model, X: Any) -> Any:
    """The rows with what was known of their entities, if the model learned with that; they come now."""
    histories = histories_of(model)
    return X if histories is None else histories.arrive(X)


def inputs(model: Model, X: Any) -> Any:
    """What the model sees of rows that have arrived."""
    histories = histories_of(model)
    return X if histories is None else histories.inputs(X)


PREDICTION = "prediction"


# --- Predictions -------------------------------------------------------------------------------------------------


class PredictedBlock(NamedTuple):
    """Predictions for a block of rows: the columns that are kept, the labels, and numbers about them.

    These are the probability of each class, and the thresholds from which on classes are called, if there are such.
    """

    kept: list[Any]
    labels: npt.NDArray[Any]
    numbers: Floats


class TablePredictions:
    r"""The predictions of a model for a table, block by block. ``ignored`` are columns that the model does not know.

    For a fleet, ``key`` is the column with the keys; by default, the one that it learned from.

    >>> import io
    >>> from devdan import DEVDAN
    >>> from devdan.streams import open_table
    >>> model = DEVDAN(random_state=0).fit([{"x": 1.0}, {"x": 5.0}], ["low", "high"])
    >>> predictions = TablePredictions(model, open_table(io.StringIO("id,x\na,1\nb,5\n")), keep=["id"])
    >>> predictions.head, predictions.ignored, [block.kept for block in predictions]
    (['id', 'prediction', 'p(high)', 'p(low)'], [], [[['a']], [['b']]])
    """

    def __init__(self, model: Model, table: Table, keep: Sequence[str] = (), key: str | None = None) -> None:
        self.model, self.table = model, table
        self.classes = model.classes_
        for name in keep:
            if name not in table.names:
                raise StreamError(f"{table.origin} has no column {name!r} to keep; it has {', '.join(table.names)}")
        probabilities = [f"p({label})" for label in self.classes.tolist()]
        self.head = [*keep, PREDICTION, *probabilities, *(f"threshold({label})" for label in model.thresholds_)]
        self.n_kept = len(keep)
        if len(set(self.head)) < len(self.head):
            raise StreamError(f"two columns would have the same name: {', '.join(self.head)}; keep each only once")
        self._keep = [table.names.index(name) for name in keep]
        self._key = key_column(model, key, table.names, table.origin)
        self._match = matched(model, table.names, table.named, table.origin, self._key)
        self.ignored = [name for name in self._match.ignored if name not in keep]

    def __iter__(self) -> Iterator[PredictedBlock]:
        model, match, labels = self.model, self._match, self.classes.tolist()
        decision = model.decision_.copy()  # which moves along, so that a budget is kept over all rows
        known, texts = columns_known(model) or list(model.encoding_.columns), set(as_written(model, self._key))
        names = [known[own] for own in match.own] + ([] if self._key is None else [self._key])
        as_text = [place for name, place in zip(names, match.places, strict=True) if name in texts]
        blocks: Any = self.table.read(match.places, self._keep, as_text)
        with closing(blocks):
            for rows, kept in blocks:
                keys, features = keyed(rows, self._key)
                X = inputs(model, arrived(model, given(model, features, match)))
                probabilities = model.predict_proba(*(*keys, X))
                called = self.classes[decision.places(probabilities, labels)]
                thresholds = decision.thresholds_of(probabilities, labels).values()
                decision.pass_on(probabilities, labels)
                yield PredictedBlock(kept, called, np.column_stack([probabilities, *thresholds]))


# --- Files -------------------------------------------------------------------------------------------------------


class PredictionWriter(Protocol):
    """Writes predictions in some format."""

    def write(self, block: PredictedBlock) -> None:
        """Write a block."""

    def close(self) -> None:
        """Write the end of the file, if the format has one."""


class _Csv:
    def __init__(self, file: IO[bytes], predictions: TablePredictions, proba: bool) -> None:
        self._file, self._proba = file, proba
        self._write_rows([predictions.head if proba else predictions.head[: predictions.n_kept + 1]])

    def write(self, block: PredictedBlock) -> None:
        kept = [_texts(values) for values in block.kept]
        numbers = [[repr(p) for p in of] for of in block.numbers.T.tolist()] if self._proba else []
        self._write_rows(zip(*kept, map(str, block.labels.tolist()), *numbers, strict=True))

    def _write_rows(self, rows: Iterable[Any]) -> None:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(rows)
        self._file.write(text.getvalue().encode("utf-8", "surrogatepass"))

    def close(self) -> None:
        """CSV has no end."""


class _Json:
    def __init__(self, file: IO[bytes], predictions: TablePredictions, proba: bool) -> None:
        self._file, self._proba, self._head = file, proba, predictions.head

    def write(self, block: PredictedBlock) -> None:
        kept = [values if isinstance(values, list) else _texts(values) for values in block.kept]
        numbers = block.numbers.T.tolist() if self._proba else []
        lines = [
            json.dumps(dict(zip(self._head, row, strict=False)), ensure_ascii=False)
            for row in zip(*kept, block.labels.tolist(), *numbers, strict=True)
        ]
        self._file.write(("\n".join(lines) + "\n").encode("utf-8", "surrogatepass"))

    def close(self) -> None:
        """Lines of JSON have no end."""


class _Parquet:
    def __init__(self, file: IO[bytes], predictions: TablePredictions, proba: bool) -> None:
        self._file, self._proba = file, proba
        self._head = predictions.head if proba else predictions.head[: predictions.n_kept + 1]
        self._classes = pa.array(predictions.classes.tolist()).type
        self._writer: Any = None

    def write(self, block: PredictedBlock) -> None:
        kept = [
            pa.array([None if v is None else str(v) for v in some]) if isinstance(some, list) else some
            for some in block.kept
        ]
        numbers = list(block.numbers.T) if self._proba else []
        columns = [*kept, pa.array(block.labels.tolist(), self._classes), *map(np.ascontiguousarray, numbers)]
        table = pa.table(columns, names=self._head)
        if self._writer is None:
            self._writer = pa_parquet.ParquetWriter(self._file, table.schema)
        self._writer.write_table(table)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


_FORMATS: dict[str, Callable[[IO[bytes], TablePredictions, bool], PredictionWriter]] = {
    ".csv": _Csv, ".parquet": _Parquet, ".jsonl": _Json,
}  # fmt: skip


def check_format(path: Path) -> None:
    """Raise an error unless predictions can be written to such a file."""
    if path.suffix.lower() not in _FORMATS:
        raise StreamError(f"--out must end in {', '.join(_FORMATS)}, got {path}")


@contextmanager
def into_file(path: Path, predictions: TablePredictions, proba: bool) -> Iterator[PredictionWriter]:
    """Write to a file that appears when it is complete."""
    with written_atomically(path) as file:
        writer = _FORMATS[path.suffix.lower()](file, predictions, proba)
        yield writer
        writer.close()


def onto(file: IO[bytes], predictions: TablePredictions, proba: bool) -> PredictionWriter:
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


# --- Learning on -------------------------------------------------------------------------------------------------

_MADE_UP = re.compile(r"(column |x)\d+")  # the names of columns that have none


class LearningResult(NamedTuple):
    """How a model has changed."""

    n_samples: int
    n_labels: int
    counted: str  # what ``before`` and ``after`` count: hidden units, or the keys of a fleet
    before: int
    after: int
    new_classes: list[Any]
    new_notes: list[str]


def columns_of(model: Model, stream: Stream, key: str | None = None) -> tuple[str | None, Matching]:
    """The column with the keys if it is a fleet, and the positions of the model's columns in the stream, keys last."""
    names = stream.feature_names or ()
    key = key_column(model, key, names, stream.origin)
    return key, matched(model, names, not all(map(_MADE_UP.fullmatch, names)), stream.origin, key)


def learn_on(
    model: Model,
    stream: Stream,
    progress: Callable[[int], None] = lambda n_samples: None,
    key: str | None = None,
) -> LearningResult:
    """Learn from each chunk: samples with a label are observed and taught, the others only observed."""
    key, match = columns_of(model, stream, key)
    classes, notes, before = _classes(model), model.encoding_.notes, model.size_
    n_samples = n_labels = 0
    for X, y in stream:
        rows = (X if isinstance(X, Rows) else Rows(stream.feature_names or (), X)).select(match.places)
        labels, known = split_missing(y)
        keys, features = keyed(rows, key)
        came = arrived(model, given(model, features, match))
        model.partial_fit(*(*keys, inputs(model, came), y))
        if known.any() and (histories := histories_of(model)) is not None:
            histories.teach(came[known], labels[known])
        n_labels += int(known.sum())
        n_samples += len(y)
        progress(n_samples)
    return LearningResult(
        n_samples,
        n_labels,
        model.size_[1],
        before[0],
        model.size_[0],
        [label for label in _classes(model) if label not in classes],
        [note for note in model.encoding_.notes if note not in notes],
    )


def _classes(model: Model) -> list[Any]:
    labels: list[Any] = model._classes.labels.tolist()
    return labels
