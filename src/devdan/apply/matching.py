"""The model to use, and which columns of a table are which of the model's."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from devdan.encoding.column import NOMINAL, ColumnEncoding
from devdan.encoding.rows import Column, Numbers, Rows, Texts
from devdan.encoding.values import Vocabulary, number, plain_text
from devdan.fleet import keys as labels
from devdan.fleet.fleet import DEVDANFleet
from devdan.model.evolving import EvolvingClassifier
from devdan.runs.runfolder import RunError, RunFolder
from devdan.streams import StreamError

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


def keyed(rows: Rows, key: str | None) -> tuple[list[Any], Rows]:
    """The keys, which are in the last column, and the rows without them; no keys if ``key`` is None."""
    return ([], rows) if key is None else labels.split(rows.names[-1], rows)


def matched(model: Model, names: Sequence[str], named: bool, source: str, key: str | None = None) -> Matching:
    """Find the model's columns among those of a table: by name or, if the model has no names, by position.

    The column with the keys of a fleet is not one of them; it is added as the last of the positions.
    """
    others = [place for place, name in enumerate(names) if name != key]
    match = _matched(model, [names[place] for place in others], named, source)
    places = [others[place] for place in match.places]
    return match._replace(places=[*places, *(place for place, name in enumerate(names) if name == key)])


def _matched(model: Model, names: Sequence[str], named: bool, source: str) -> Matching:
    known = [str(name) for name in getattr(model, "feature_names_in_", ())]
    left_out = {name for name, column in model.encoding_.columns.items() if column.left_out}
    missing = [name for name in known if name not in names and name not in left_out]
    own = [place for place, name in enumerate(known) if name in names]
    if own and not missing:
        ignored = [name for name in names if name not in set(known)]
        return Matching(own, [list(names).index(known[place]) for place in own], ignored)
    n = int(model.n_features_in_)
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
    """The columns to read as text: those that are nominal to the model, and keys that are text."""
    keys = [key] if key is not None and isinstance(model, DEVDANFleet) and model.has_text_keys else []
    return keys + [name for name, column in model.encoding_.columns.items() if column.kind == NOMINAL]


def _spelled(column: Column, known: ColumnEncoding) -> Column:
    """The texts of a nominal column as the model knows them: it may have learned 007 as the number 7."""
    if known.kind != NOMINAL or not isinstance(column, Texts):
        return column
    values = set(known.values)

    def spelled(text: str) -> str:
        plain = plain_text(number(text)) if not math.isnan(number(text)) else text
        return plain if text not in values and plain in values else text

    texts = [spelled(text) for text in column.vocabulary.texts]
    return replace(column, vocabulary=Vocabulary(texts))


def given(model: Model, rows: Rows, match: Matching) -> Any:
    """Rows with the matched columns, in the form that the model takes."""
    if model._encoding is not None:
        known = list(model._encoding.columns.values())
        columns: list[Column] = [Numbers(np.full(len(rows), np.nan))] * len(known)
        for place, column in zip(match.own, rows.columns(), strict=True):
            columns[place] = _spelled(column, known[place])
        return Rows.of([column.name for column in known], columns, len(rows))
    return rows if rows.others else rows.numbers
