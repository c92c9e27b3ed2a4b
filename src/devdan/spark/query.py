"""Queries on a cluster, with a network for each key: learn and predict, evaluate a table, predict by a saved fleet."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, functions, types

from devdan.fleet import saving
from devdan.fleet.fleet import DEVDANFleet
from devdan.fleet.keys import kind_of
from devdan.model.devdan import DEVDAN
from devdan.spark import plan as plans
from devdan.spark.events import Features
from devdan.spark.packing import PACKED, PACKED_BY_SHARD, ROWS, pack_events, unpack_rows
from devdan.spark.plan import AT, ID, KEY, LABEL, SHARD, QueryPlan, column_of, place_of, text_of_value, value_of
from devdan.spark.processor import FleetProcessor
from devdan.spark.shard import SampleEvents, Shard

_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_RESULT = ("kind", "prediction", "probabilities", "version", "accuracy", "drifts", "error")  # columns
_OUTPUTS = ("predictions", "labels")
_EVALUATED = "key string, rows bigint, predicted bigint, right bigint"
_COUNTED = pa.schema([("key", pa.string()), *((name, pa.int64()) for name in ("rows", "predicted", "right"))])
_PREDICTED = [
    types.StructField("prediction", types.StringType()),
    types.StructField("probabilities", types.MapType(types.StringType(), types.DoubleType())),
]
_NO_TIME = "1 second"  # nothing waits in a table


def learn(
    events: DataFrame,
    *,
    key: str,
    id: str,
    time: str,
    features: Sequence[str],
    label: str,
    estimator: DEVDAN | None = None,
    decide: str | Mapping[Any, Any] = "likeliest",
    prior: bool = True,
    wait: str = "30 days",
    forget: str | None = None,
    late: str = "1 hour",
    shards: int = 64,
    output: str = "predictions",
    random_state: int = 0,
) -> DataFrame:
    """Predict rows and learn from them and their labels, with a network for each key, as a streaming or batch query.

    A row of ``events`` has features (its label null), a label (its features null), or both; ``key`` and ``id`` say
    which belong together. Rows are processed by time, those of a key one by one: each is predicted, then observed, and
    taught when its label comes. A key learns bit for bit what it learns in a :class:`DEVDANFleet` that gets the same
    rows one by one.

    A hash puts keys into shards. A shard has its own encoding of columns, classes and prior, like a fleet by itself.

    Parameters
    ----------
    events : DataFrame
        A stream or a table.
    key, id, label : str
        Names of columns of text, whole numbers or flags.
    time : str
        Name of a column of timestamps: when the features came, or the label.
    features : list of str
        Names of columns of numbers, flags, text or times.
    estimator, decide, prior : as in :class:`DEVDANFleet`
        Without a prior, what a key learns depends neither on other keys nor on shards and batches. ``decide`` may
        change when a query is restarted.
    wait : str, default="30 days"
        How long, in event time, features wait for a label, a label for its features, and an id is remembered.
    forget : str or None, default=None
        A key that was not seen for so long starts afresh; None is never.
    late : str, default="1 hour"
        How much later than its time a row may come, while newer ones come; a later one is told as an error.
    shards : int, default=64
        Number of parts that keys are put into, best a few times the number of cores.
    output : "predictions" or "labels"
        With "labels", the result also has a row for each label, with what had been predicted.
    random_state : int, default=0
        Seed of the fleet.

    Returns
    -------
    DataFrame
        With the columns ``kind``, key, id, time, ``prediction``, ``probabilities`` by class, ``version`` (rows and
        labels that the key had learned from), ``accuracy`` (of the key's latest 64 labelled rows before this one),
        ``drifts`` (real ones that the key had signalled), label and ``error``. The kind is ``prediction`` for a row of
        features, ``label`` for a label that was learned, ``repeated`` for what came before, and ``error`` for a row
        that could not be used, with the reason. Prediction and probabilities are null until the shard has a class.
    """
    if output not in _OUTPUTS:
        raise ValueError(f"output must be one of {', '.join(map(repr, _OUTPUTS))}, got {output!r}")
    plan = QueryPlan.of(
        events,
        key=key,
        features=features,
        label=label,
        estimator=estimator,
        decide=decide,
        prior=prior,
        random_state=random_state,
        shards=shards,
        wait=wait,
        forget=forget,
        with_labels=output == "labels",
    )
    plans.kind_of_column(events, "id", id)
    plans.check_time(events, time)
    plans.microseconds_of("late", late)
    _check_names([key, id, time, label])
    _check_engine(events)
    columns = (key, id, time, label)
    packed = in_shards(events, columns, plan.features, shards, late).mapInArrow(pack_events, PACKED_BY_SHARD)
    told = packed.groupBy(SHARD).transformWithStateInPandas(
        FleetProcessor(plan), PACKED, "Append", "EventTime" if events.isStreaming else "None"
    )
    return as_given(events, columns, told.mapInArrow(unpack_rows, ROWS))


def in_shards(
    events: DataFrame, columns: tuple[str, str, str, str], features: Sequence[str], shards: int, late: str
) -> DataFrame:
    """The rows of events as workers read them; the columns are those of key, id, time and label."""
    key, id_, time, label = columns
    read = events.withWatermark(time, late) if events.isStreaming else events
    return read.select(
        *shard_and_key(key, shards),
        column_of(id_).cast("string").alias(ID),
        functions.unix_micros(column_of(time)).alias(AT),
        column_of(label).cast("string").alias(LABEL),
        *plans.feature_columns(events, features),
    )


def as_given(events: DataFrame, columns: tuple[str, str, str, str], told: DataFrame) -> DataFrame:
    """The rows that workers tell, in which key, id, time and label have the names and types of events."""
    key, id_, time, label = columns
    key_type, id_type, _, label_type = (events.schema[name].dataType for name in columns)
    return told.select(
        "kind",
        functions.col(KEY).cast(key_type).alias(key),
        functions.col(ID).cast(id_type).alias(id_),
        functions.timestamp_micros(AT).alias(time),
        functions.col("prediction").cast(label_type),
        functions.col("probabilities").cast(types.MapType(label_type, types.DoubleType())),
        "version",
        "accuracy",
        "drifts",
        functions.col(LABEL).cast(label_type).alias(label),
        "error",
    )


def shard_and_key(key: str, shards: int) -> tuple[Any, Any]:
    """The columns that rows are grouped by; the hash is of the key's text."""
    text = column_of(key).cast("string")
    return functions.pmod(functions.xxhash64(text), functions.lit(shards)).alias(SHARD), text.alias(KEY)


def _check_names(columns: Sequence[str]) -> None:
    if len(set(columns)) < len(columns):
        raise ValueError(f"key, id, time and label must be different columns, got {', '.join(columns)}")
    for name in columns:
        if name.lower() in _RESULT:
            raise ValueError(
                f"key, id, time and label must not be called {name!r}, as a column of the result is: rename it"
            )


def _check_engine(events: DataFrame) -> None:
    provider = events.sparkSession.conf.get(_PROVIDER)
    if events.isStreaming and provider != _ROCKSDB:
        raise ValueError(f"{_PROVIDER} must be {_ROCKSDB}, got {provider}: set it in the session's configuration")


# --- Tables ----------------------------------------------------------------------------------------------------------


def evaluate(
    df: DataFrame,
    *,
    key: str,
    time: str,
    features: Sequence[str],
    label: str,
    estimator: DEVDAN | None = None,
    decide: str | Mapping[Any, Any] = "likeliest",
    prior: bool = True,
    shards: int = 64,
    random_state: int = 0,
) -> DataFrame:
    """Evaluate a table prequentially: rows by time, each predicted, then learned, by the network of its key.

    The arguments are those of :func:`learn`. Rows without a label are observed but not counted; rows without key, time
    or features are left out.

    Returns
    -------
    DataFrame
        A row for each key: ``rows`` with a label, how many of them were ``predicted`` (the first ones of a shard are
        not, as it knows no class), how many predictions were ``right``, and their share, ``accuracy``.
    """
    if df.isStreaming:
        raise ValueError("df must be a table that is there as a whole, got a stream; learn() is for streams")
    plan = QueryPlan.of(
        df,
        key=key,
        features=features,
        label=label,
        estimator=estimator,
        decide=decide,
        prior=prior,
        random_state=random_state,
        shards=shards,
        wait=_NO_TIME,
        forget=None,
        with_labels=False,
    )
    plans.check_time(df, time)
    rows = df.select(
        *shard_and_key(key, shards),
        functions.unix_micros(column_of(time)).alias(AT),
        column_of(label).cast("string").alias(LABEL),
        *plans.feature_columns(df, plan.features),
    ).where(functions.col(KEY).isNotNull() & functions.col(AT).isNotNull())
    counted = rows.groupBy(SHARD).applyInArrow(_evaluated(plan), _EVALUATED)
    return counted.select(
        functions.col(KEY).cast(df.schema[key].dataType).alias(key),
        "rows",
        "predicted",
        "right",
        functions.expr("try_divide(right, predicted)").alias("accuracy"),
    )


def _evaluated(plan: QueryPlan) -> Callable[[pa.Table], pa.Table]:
    """The function for the rows of a shard."""

    def evaluated(table: pa.Table) -> pa.Table:
        columns = AT, LABEL, *(place_of(number) for number in range(len(plan.features)))
        order = pc.sort_indices(table, [(name, "ascending") for name in columns])  # in whatever order they came
        table = table.take(order)
        own = Features(plan, table)
        usable = np.flatnonzero(own.present & ~own.infinite)
        keys, labels = (table[name].to_numpy()[usable] for name in (KEY, LABEL))
        X = own.rows()
        predictions = Shard(plan).learn(SampleEvents(keys, usable, np.ones(len(usable), np.bool_), labels), X, len(X))
        found, true = pa.array(predictions.labels[usable], pa.string()), pa.array(labels, pa.string())
        right = pc.equal(found, true).fill_null(False)
        lines = {KEY: keys, "rows": np.ones_like(usable), "predicted": found.is_valid(), "right": right}
        counted = pa.table(lines).filter(true.is_valid()).group_by(KEY)
        sums = counted.aggregate([(name, "sum") for name in ("rows", "predicted", "right")])
        return sums.rename_columns(_COUNTED.names).cast(_COUNTED)

    return evaluated


def predict(df: DataFrame, fleet: str | os.PathLike[str], *, key: str, features: Sequence[str]) -> DataFrame:
    """Predict the rows of a table or a stream by a saved fleet; nothing is learned.

    Parameters
    ----------
    df : DataFrame
        A table or a stream.
    fleet : str or path
        A file written by :meth:`DEVDANFleet.save`. Every worker must be able to read it there, and has all of it in
        memory, once in each Python process.
    key : str
        Name of a column.
    features : list of str
        Names of columns: those of the fleet, or in its order if it has no names.

    Returns
    -------
    DataFrame
        With the columns of ``df``, then ``prediction`` and ``probabilities`` by class, as text; both are null for a row
        without a key, without any feature or with infinite ones.
    """
    path = os.path.abspath(fleet)
    kind = plans.kind_of_column(df, "key", key)
    names = plans.check_features(df, features)
    model = saving.load(DEVDANFleet, path, None, whole=True)
    if model.n_features_in_ != len(names):
        raise ValueError(f"features must be {model.n_features_in_} columns, as in the fleet, got {', '.join(names)}")
    expected = getattr(model, "feature_names_in_", None)
    if expected is not None and set(expected) != set(names):
        raise ValueError(f"features must be those of the fleet, {', '.join(expected)}; got {', '.join(names)}")
    if kind_of(model._example) != kind:
        raise ValueError(f"key must be a column of {kind_of(model._example)}, as in the fleet, got {kind}: {key}")
    model.classes_  # noqa: B018 (raises an error if there are none)
    plan = QueryPlan(names, plans.schema_of(df, names), kind, "", None, "likeliest", False, 0, 1, 1, None, False)
    clash = {"prediction", "probabilities"} & set(df.columns)
    if clash:
        raise ValueError(f"df must not have a column {clash.pop()!r} yet: rename it")
    read = df.select(
        functions.struct(*map(column_of, df.columns)).alias("row"),
        column_of(key).cast("string").alias(KEY),
        *plans.feature_columns(df, names),
    )
    schema = types.StructType([*read.schema[:1], *_PREDICTED])
    found = read.mapInArrow(_predicted(plan, path), schema)
    return found.select("row.*", "prediction", "probabilities")


def _predicted(plan: QueryPlan, path: str) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for batches of rows."""

    def predicted(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        model = _loaded(path, os.stat(path).st_mtime_ns)
        names = list(map(text_of_value, model.classes_.tolist()))
        map_type = pa.map_(pa.string(), pa.float64())
        for batch in batches:
            features = Features(plan, pa.Table.from_batches([batch]))
            texts = batch.column(KEY)
            usable = features.present & ~features.infinite & texts.is_valid().to_numpy(zero_copy_only=False)
            labels: list[Any] = [None] * len(batch)
            probabilities: list[Any] = [None] * len(batch)
            rows = usable.nonzero()[0]
            if len(rows) > 0:
                keys = [value_of(text, plan.key_kind) for text in texts.take(pa.array(rows)).to_pylist()]
                found = model.predict_proba(keys, features.rows()[rows])
                best = model.mixture_.decision.places(found, model.classes_.tolist()).tolist()
                for row, own, place in zip(rows.tolist(), found.tolist(), best, strict=True):
                    labels[row], probabilities[row] = names[place], list(zip(names, own, strict=True))
            columns = [batch.column("row"), pa.array(labels, pa.string()), pa.array(probabilities, map_type)]
            yield pa.RecordBatch.from_arrays(columns, names=["row", "prediction", "probabilities"])

    return predicted


@cache
def _loaded(path: str, written: int) -> DEVDANFleet:
    """The fleet, loaded once in a process unless the file is written again."""
    fleet: DEVDANFleet = saving.load(DEVDANFleet, path, None, whole=True)
    fleet.n_jobs = 1
    return fleet
