"""Learning and predicting in one query, a network for each key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame, functions, types
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from devdan.model.devdan import DEVDAN
from devdan.spark import plan as plans
from devdan.spark.plan import AT, ID, KEY, LABEL, SHARD, TIME, Plan, column_of
from devdan.spark.processor import OUTPUT, FleetProcessor

_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_TOLD = ("kind", "prediction", "probabilities", "version", "error")  # columns of the result
_OUTPUTS = ("predictions", "labels")


def learn(
    events: DataFrame,
    *,
    key: str,
    id: str,
    time: str,
    features: Sequence[str],
    label: str,
    estimator: DEVDAN | None = None,
    prior: bool = True,
    wait: str = "30 days",
    forget: str | None = None,
    late: str = "1 hour",
    shards: int = 64,
    output: str = "predictions",
    random_state: int = 0,
) -> DataFrame:
    """Predict rows and learn from them and their labels, with a network for each key, as a streaming or batch query.

    A row of ``events`` has features (its label null), a label (its features null), or both; features and label belong
    together by ``key`` and ``id``. Rows are taken by time, those of a key one by one: each is predicted, then learned
    from, and its label when that comes. What a key learns is bit for bit what it learns in a :class:`DEVDANFleet` that
    is given the same rows one by one.

    Keys are put into shards by a hash. A shard has an encoding of its columns, classes and a prior of its own, as if it
    were a fleet by itself.

    Parameters
    ----------
    events : DataFrame
        A stream or a table.
    key, id, label : str
        Names of columns of text, whole numbers or flags.
    time : str
        Name of the column with the time of a row, a timestamp: that of the features, or that of the label.
    features : list of str
        Names of columns of numbers, flags, text or times.
    estimator, prior : as in :class:`DEVDANFleet`
        Without a prior, what keys learn does not depend on each other, nor on shards and batches.
    wait : str, default="30 days"
        For how long a sample waits for its label, a label for its sample, and an id is remembered, in event time.
    forget : str or None, default=None
        After which time a key that was not seen begins anew; None is never.
    late : str, default="1 hour"
        By how much a row may come later than others of a later time; the engine drops those that come later still, and
        counts them.
    shards : int, default=64
        Into how many parts the keys are put: best some times as many as there are cores.
    output : "predictions" or "labels"
        With "labels", there is also a row for each label, with what had been predicted.
    random_state : int, default=0
        Seed of the fleet.

    Returns
    -------
    DataFrame
        With the columns ``kind``, key, id, time, ``prediction``, ``probabilities`` by class, ``version`` (rows and
        labels that the key had learned from), label and ``error``. The kind is ``prediction`` for a row of features,
        ``label`` for a label that was learned, ``repeated`` for what came before, and ``error`` for a row that could
        not be used, with the reason. Prediction and probabilities are null while the shard knows no class.
    """
    if output not in _OUTPUTS:
        raise ValueError(f"output must be one of {', '.join(map(repr, _OUTPUTS))}, got {output!r}")
    plan = plan_of(
        events, key, features, label, estimator, prior, random_state, shards, wait, forget, output == "labels"
    )
    plans.kind_of_column(events, "id", id)
    check_time(events, time)
    plans.microseconds_of("late", late)
    _check_names([key, id, time, label])
    _check_engine(events)
    return processed(events, (key, id, time, label), plan.features, shards, late, FleetProcessor(plan))


def processed(
    events: DataFrame,
    columns: tuple[str, str, str, str],
    features: Sequence[str],
    shards: int,
    late: str,
    processor: StatefulProcessor,
) -> DataFrame:
    """What a processor makes of events, in shards; the columns are key, id, time and label, and keep their types."""
    key, id_, time, label = columns
    read = events.withWatermark(time, late) if events.isStreaming else events
    mode = "EventTime" if events.isStreaming else "None"
    told = (
        read.select(
            *shard_and_key(key, shards),
            column_of(id_).cast("string").alias(ID),
            column_of(time).alias(TIME),
            functions.unix_micros(column_of(time)).alias(AT),
            column_of(label).cast("string").alias(LABEL),
            *plans.feature_columns(events, features),
        )
        .groupBy(SHARD)
        .transformWithStateInPandas(processor, OUTPUT, "Append", mode)
    )
    key_type, id_type, _, label_type = (events.schema[name].dataType for name in columns)
    return told.select(
        "kind",
        functions.col(KEY).cast(key_type).alias(key),
        functions.col(ID).cast(id_type).alias(id_),
        functions.timestamp_micros(AT).alias(time),
        functions.col("prediction").cast(label_type),
        functions.col("probabilities").cast(types.MapType(label_type, types.DoubleType())),
        "version",
        functions.col(LABEL).cast(label_type).alias(label),
        "error",
    )


def plan_of(
    events: DataFrame,
    key: Any,
    features: Any,
    label: Any,
    estimator: Any,
    prior: Any,
    random_state: Any,
    shards: Any,
    wait: Any,
    forget: Any,
    with_labels: bool,
) -> Plan:
    """What workers need to know; raises an error that names what is wrong."""
    names = plans.check_features(events, features)
    plan = Plan(
        names,
        plans.schema_of(events, names),
        plans.kind_of_column(events, "key", key),
        plans.kind_of_column(events, "label", label),
        estimator,
        prior,
        plans.check_number("random_state", random_state, 0),
        plans.check_number("shards", shards, 1),
        plans.microseconds_of("wait", wait),
        None if forget is None else plans.microseconds_of("forget", forget),
        with_labels,
    )
    fleet = plan.new_fleet()
    fleet.check_options()
    fleet._check_options()
    return plan


def shard_and_key(key: str, shards: int) -> tuple[Any, Any]:
    """The columns by which rows are put together; the hash is of the key's text."""
    text = column_of(key).cast("string")
    return functions.pmod(functions.xxhash64(text), functions.lit(shards)).alias(SHARD), text.alias(KEY)


def check_time(df: DataFrame, time: Any) -> None:
    """Raise a ``TypeError`` unless the column holds moments."""
    found = plans.type_of(df, "time", time)
    if not isinstance(found, types.TimestampType):
        raise TypeError(f"time must be a timestamp, got the column {time} of {found.simpleString()}; cast it")


def _check_names(columns: Sequence[str]) -> None:
    if len(set(columns)) < len(columns):
        raise ValueError(f"key, id, time and label must be different columns, got {', '.join(columns)}")
    for name in columns:
        if name.lower() in _TOLD:
            raise ValueError(
                f"key, id, time and label must not be called {name!r}, as a column of the result is: rename it"
            )


def _check_engine(events: DataFrame) -> None:
    provider = events.sparkSession.conf.get(_PROVIDER)
    if events.isStreaming and provider != _ROCKSDB:
        raise ValueError(f"{_PROVIDER} must be {_ROCKSDB}, got {provider}: set it in the session's configuration")
