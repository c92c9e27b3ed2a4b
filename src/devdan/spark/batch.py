"""Tables that are there as a whole: prequential evaluation, and prediction by a fleet that was saved."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame, functions, types

from devdan.fleet import saving
from devdan.fleet.fleet import DEVDANFleet
from devdan.fleet.keys import kind_of
from devdan.model.devdan import DEVDAN
from devdan.spark import plan as plans
from devdan.spark.deciding import Event
from devdan.spark.features import Features
from devdan.spark.plan import AT, KEY, LABEL, SHARD, Plan, column_of, place_of, text_of_value, value_of
from devdan.spark.query import check_time, plan_of, shard_and_key
from devdan.spark.shard import Shard

_EVALUATED = "key string, rows bigint, predicted bigint, right bigint"
_PREDICTED = [
    types.StructField("prediction", types.StringType()),
    types.StructField("probabilities", types.MapType(types.StringType(), types.DoubleType())),
]
_NO_TIME = "1 second"  # nothing waits in a table


def evaluate(
    df: DataFrame,
    *,
    key: str,
    time: str,
    features: Sequence[str],
    label: str,
    estimator: DEVDAN | None = None,
    prior: bool = True,
    shards: int = 64,
    random_state: int = 0,
) -> DataFrame:
    """Evaluate prequentially: the rows of a table by time, each predicted, then learned from, by its key's network.

    The arguments are those of :func:`learn`. Rows without a label are learned from and not counted; rows without key,
    time or features are left out.

    Returns
    -------
    DataFrame
        A row for each key: ``rows`` with a label, how many of them were ``predicted`` (the first ones of a shard are
        not, as it knows no class), how many predictions were ``right``, and their share, ``accuracy``.
    """
    if df.isStreaming:
        raise ValueError("df must be a table that is there as a whole, got a stream; learn() is for streams")
    plan = plan_of(df, key, features, label, estimator, prior, random_state, shards, _NO_TIME, None, False)
    check_time(df, time)
    rows = df.select(
        *shard_and_key(key, shards),
        functions.unix_micros(column_of(time)).alias(AT),
        column_of(label).cast("string").alias(LABEL),
        *plans.feature_columns(df, plan.features),
    ).where(functions.col(KEY).isNotNull() & functions.col(AT).isNotNull())
    counted = rows.groupBy(SHARD).applyInPandas(_evaluated(plan), _EVALUATED)
    return counted.select(
        functions.col(KEY).cast(df.schema[key].dataType).alias(key),
        "rows",
        "predicted",
        "right",
        functions.expr("try_divide(right, predicted)").alias("accuracy"),
    )


def _evaluated(plan: Plan) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """What is to be done with the rows of a shard."""

    def evaluated(frame: pd.DataFrame) -> pd.DataFrame:
        features = [place_of(number) for number in range(len(plan.features))]
        frame = frame.sort_values([AT, LABEL, *features], ignore_index=True, kind="stable")  # whatever their order was
        own = Features(plan, frame)
        shard = Shard(plan, None, (), lambda key: None, 0)
        usable = own.present & ~own.infinite
        labels = frame[LABEL].astype(object).where(frame[LABEL].notna(), None).tolist()
        keys = frame[KEY].tolist()
        events = [
            Event(key, row, True, label)
            for row, (key, label, good) in enumerate(zip(keys, labels, usable.tolist(), strict=True))
            if good
        ]
        predictions = shard.learn(events, own.rows())
        labelled = [event for event in events if event.label is not None]
        found = [predictions[event.row].label for event in labelled]
        right = [prediction == event.label for prediction, event in zip(found, labelled, strict=True)]
        lines = pd.DataFrame(
            {
                KEY: [event.key for event in labelled],
                "rows": 1,
                "predicted": [prediction is not None for prediction in found],
                "right": right,
            }
        )
        return lines.groupby(KEY, as_index=False).sum()

    return evaluated


def predict(df: DataFrame, fleet: str | os.PathLike[str], *, key: str, features: Sequence[str]) -> DataFrame:
    """Predict the rows of a table, or of a stream, by a fleet that was saved; nothing is learned.

    Parameters
    ----------
    df : DataFrame
        A table or a stream.
    fleet : str or path
        A file that :meth:`DEVDANFleet.save` has written. Every worker must be able to read it there, and has all of it
        in memory, once for each of its Python processes.
    key : str
        Name of a column.
    features : list of str
        Names of columns: those of the fleet, or in its order if it knows no names.

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
    plan = Plan(names, plans.schema_of(df, names), kind, "", None, False, 0, 1, 1, None, False)
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


def _predicted(plan: Plan, path: str) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What is to be done with batches of rows."""

    def predicted(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        model = _loaded(path, os.stat(path).st_mtime_ns)
        names = list(map(text_of_value, model.classes_.tolist()))
        probabilities = pa.map_(pa.string(), pa.float64())
        for batch in batches:
            frame = batch.drop_columns(["row"]).to_pandas()
            features = Features(plan, frame)
            usable = features.present & ~features.infinite & frame[KEY].notna().to_numpy()
            labels: list[Any] = [None] * len(frame)
            shares: list[Any] = [None] * len(frame)
            rows = usable.nonzero()[0]
            if len(rows) > 0:
                keys = [value_of(text, plan.key_kind) for text in frame[KEY][rows].tolist()]
                found = model.predict_proba(keys, features.rows()[rows])
                best = found.argmax(axis=1).tolist()
                for row, own, place in zip(rows.tolist(), found.tolist(), best, strict=True):
                    labels[row], shares[row] = names[place], list(zip(names, own, strict=True))
            columns = [batch.column("row"), pa.array(labels, pa.string()), pa.array(shares, probabilities)]
            yield pa.RecordBatch.from_arrays(columns, names=["row", "prediction", "probabilities"])

    return predicted


@cache
def _loaded(path: str, written: int) -> DEVDANFleet:
    """The fleet, once for a process as long as the file is not written again."""
    fleet: DEVDANFleet = saving.load(DEVDANFleet, path, None, whole=True)
    fleet.n_jobs = 1
    return fleet
