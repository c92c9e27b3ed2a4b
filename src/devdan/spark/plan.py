"""A query, checked before it starts: columns, their types, times, options. It is sent to the workers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, functions, types

from devdan.fleet.fleet import DEVDANFleet
from devdan.fleet.keys import FLAG, NUMBER, TEXT, Key
from devdan.model.devdan import DEVDAN

_KINDS = {types.StringType: TEXT, types.BooleanType: FLAG}
_ARROW = {  # what features are as columns of a table
    types.NumericType: pa.float64(),
    types.BooleanType: pa.bool_(),
    types.StringType: pa.string(),
    types.DateType: pa.date32(),
    types.TimestampType: pa.timestamp("us", "UTC"),
    types.TimestampNTZType: pa.timestamp("us"),
}
_SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 7 * 86400}
SHARD, KEY, ID, AT, LABEL = "shard", "key", "id", "at", "label"  # columns of what workers read


def place_of(number: int) -> str:
    """The name of a feature's column there, by its number: features may have the names of the others."""
    return f"f{number}"


@dataclass(frozen=True)
class QueryPlan:
    """A query that has been checked."""

    features: tuple[str, ...]
    schema: pa.Schema | None  # of features as a table; None if all of them are numbers
    key_kind: str
    label_kind: str
    estimator: DEVDAN | None
    decide: Any
    prior: bool
    random_state: int
    shards: int
    wait: int  # microseconds
    forget: int | None
    with_labels: bool

    @classmethod
    def of(
        cls,
        df: DataFrame,
        *,
        key: Any,
        features: Any,
        label: Any,
        estimator: Any,
        decide: Any,
        prior: Any,
        random_state: Any,
        shards: Any,
        wait: Any,
        forget: Any,
        with_labels: bool,
    ) -> QueryPlan:
        """Check the arguments; raises an error that names what is wrong."""
        names = check_features(df, features)
        plan = cls(
            names,
            schema_of(df, names),
            kind_of_column(df, "key", key),
            kind_of_column(df, "label", label),
            estimator,
            decide,
            prior,
            check_number("random_state", random_state, 0),
            check_number("shards", shards, 1),
            microseconds_of("wait", wait),
            None if forget is None else microseconds_of("forget", forget),
            with_labels,
        )
        fleet = plan.new_fleet()
        fleet.check_options()
        fleet._check_options()
        return plan

    @cached_property
    def lasting(self) -> dict[str, Any]:
        """What must not change as long as a checkpoint is used."""
        kinds = None if self.schema is None else [str(kind) for kind in self.schema.types]
        names = "key_kind", "label_kind", "prior", "random_state", "shards"
        return {"features": list(self.features), "types": kinds} | {name: getattr(self, name) for name in names}

    def new_fleet(self) -> DEVDANFleet:
        """An empty fleet of one thread; the engine runs partitions in parallel."""
        return DEVDANFleet(
            self.estimator, prior=self.prior, n_jobs=1, decide=self.decide, random_state=self.random_state
        )

    def key_of(self, text: str) -> Key:
        """The key that a text stands for."""
        return value_of(text, self.key_kind)  # type: ignore[no-any-return]


def value_of(text: str, kind: str) -> Any:
    """What Spark's text of a value stands for.

    >>> value_of("7", "numbers"), value_of("true", "flags"), value_of("7", "text")
    (7, True, '7')
    """
    return int(text) if kind == NUMBER else text == "true" if kind == FLAG else text


def text_of_value(value: Any) -> str:
    """The text that Spark has for a value.

    >>> text_of_value(7), text_of_value(True), text_of_value("7")
    ('7', 'true', '7')
    """
    return str(value).lower() if isinstance(value, bool) else str(value)


# --- Checks ------------------------------------------------------------------------------------------------------


def microseconds_of(name: str, given: Any) -> int:
    """Microseconds of a length of time.

    >>> microseconds_of("wait", "90 minutes")
    5400000000
    """
    match = re.fullmatch(r"(\d+) (second|minute|hour|day|week)s?", given) if isinstance(given, str) else None
    if match is None or int(match[1]) == 0:
        raise ValueError(f'{name} must be a length of time such as "12 hours" or "30 days", got {given!r}')
    return int(match[1]) * _SECONDS[match[2]] * 1_000_000


def check_number(name: str, given: Any, least: int) -> int:
    """Return a whole number if it is at least ``least``."""
    if isinstance(given, bool) or not isinstance(given, int) or given < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {given!r}")
    return given


def type_of(df: DataFrame, what: str, name: Any) -> types.DataType:
    """The type of a column, which must be there."""
    if not isinstance(name, str) or name not in df.columns:
        raise ValueError(f"{what} must be a column of the table, one of {', '.join(df.columns)}; got {name!r}")
    return df.schema[name].dataType


def kind_of_column(df: DataFrame, what: str, name: Any) -> str:
    """The kind of a column of keys, ids or labels; raises a ``TypeError`` if its type is not allowed."""
    found = type_of(df, what, name)
    kind = NUMBER if isinstance(found, types.IntegralType) else _KINDS.get(type(found))
    if kind is None:
        raise TypeError(
            f"{what} must be text, whole numbers or flags, got the column {name} of {found.simpleString()}; cast it, "
            "for instance to string"
        )
    return kind


def check_time(df: DataFrame, time: Any) -> None:
    """Raise a ``TypeError`` unless the column holds timestamps."""
    found = type_of(df, "time", time)
    if not isinstance(found, types.TimestampType):
        raise TypeError(f"time must be a timestamp, got the column {time} of {found.simpleString()}; cast it")


def check_features(df: DataFrame, features: Any) -> tuple[str, ...]:
    """The names of the features, if they are valid."""
    if isinstance(features, str) or not isinstance(features, Sequence) or len(features) == 0:
        raise ValueError(f"features must be a list of columns of the table, got {features!r}")
    for name in features:
        found = type_of(df, "a feature", name)
        if not isinstance(found, tuple(_ARROW)):
            raise TypeError(
                f"features must be numbers, flags, text or times, got the column {name} of {found.simpleString()}; "
                "take its parts out into columns of their own"
            )
    if len(set(features)) < len(features):
        raise ValueError(f"features must be different columns, got {', '.join(features)}")
    return tuple(features)


def feature_columns(df: DataFrame, features: Sequence[str]) -> list[Column]:
    """The columns as workers read them: numbers are doubles; times do not depend on the session's time zone."""
    return [
        _as_read(column_of(name), df.schema[name].dataType).alias(place_of(number))
        for number, name in enumerate(features)
    ]


def column_of(name: str) -> Column:
    """A column by its name, with whatever characters."""
    return functions.col("`" + name.replace("`", "``") + "`")


def _as_read(column: Column, kind: types.DataType) -> Column:
    if isinstance(kind, types.NumericType):
        return column.cast("double")
    if isinstance(kind, types.TimestampType):
        return functions.unix_micros(column)
    if isinstance(kind, types.TimestampNTZType):
        return functions.timestamp_diff("MICROSECOND", functions.lit("1970-01-01").cast(kind), column)
    return functions.unix_date(column) if isinstance(kind, types.DateType) else column


def schema_of(df: DataFrame, features: Sequence[str]) -> pa.Schema | None:
    """What the features are as a table; None if all of them are numbers."""
    found = [df.schema[name].dataType for name in features]
    if all(isinstance(kind, types.NumericType) for kind in found):
        return None
    arrow = [next(own for base, own in _ARROW.items() if isinstance(kind, base)) for kind in found]
    return pa.schema(list(zip(features, arrow, strict=True)))
