"""Queries on the real engine, on this machine: `make test-spark`."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

pytest.importorskip("pyspark", minversion="4.3", reason="pip install 'devdan[spark]'")

import spark_engine
from spark_events import FEATURES, events, expected, likely, plan

from devdan import DEVDANFleet
from devdan.spark import evaluate, learn, predict

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.filterwarnings("ignore::DeprecationWarning")]
COLUMNS = {"key": "key", "time": "time", "features": list(FEATURES), "label": "label"}


@pytest.fixture(scope="module")
def table():
    return events()


@pytest.fixture(scope="module")
def folder(table, tmp_path_factory):
    path = tmp_path_factory.mktemp("spark") / "rows"
    spark_engine.write(table, path, 5)
    return path


def check(found, kept, table):
    """Predictions and networks are those of a fleet that is given row after row."""
    probabilities, fleet = expected(plan(), table)
    predictions = found[found.kind == "prediction"].set_index("id").probabilities
    assert set(predictions.index) == set(probabilities)
    for id_, own in probabilities.items():
        if own is not None:
            assert likely({str(label): share for label, share in dict(predictions[id_]).items()}) == likely(own), id_
    if kept is not None:
        assert set(kept) == set(fleet)
        for key, (state, *_) in kept.items():
            assert state == fleet._networks.get(key).state.tobytes()


@pytest.mark.parametrize("shards", [1, 5])
def test_a_stream_gives_the_numbers_of_a_fleet(spark, table, folder, tmp_path, shards):
    spark_engine.query(spark, folder, tmp_path, shards=shards).awaitTermination()
    found = spark_engine.answers(spark, tmp_path)
    check(found, spark_engine.networks(spark, tmp_path), table)
    assert found.kind.value_counts().to_dict() == {"prediction": 400, "label": 250}
    assert found.label.dropna().isin([0, 1]).all()


def test_a_table_gives_the_numbers_of_a_fleet(spark, table, folder):
    rows = spark.read.parquet(str(folder))
    found = learn(rows, id="id", prior=False, shards=3, random_state=3, **COLUMNS).toPandas()
    check(found, None, table)


def test_a_table_is_evaluated_as_a_fleet_would_be(spark, table, folder):
    rows = spark.read.parquet(str(folder)).where("load IS NOT NULL AND label IS NOT NULL")
    found = evaluate(rows, prior=False, shards=3, random_state=3, **COLUMNS).toPandas().set_index("key")
    own = table[table.f0.notna() & table.label.notna()]
    _, fleet = expected(plan(), own)
    summary = fleet.summary().to_pandas().set_index("key")
    assert found.rows.to_dict() == summary.labels.to_dict()
    assert found.accuracy.between(0, 1).all()
    assert (found.right == (found.accuracy * found.predicted).round()).all()


def test_a_saved_fleet_predicts_a_table(spark, table, folder, tmp_path):
    own = table[table.f0.notna() & table.label.notna()]
    fleet = DEVDANFleet(random_state=0, store=tmp_path / "fleet.db", max_in_memory=3)
    fleet.partial_fit(own.key.tolist(), own[["f0", "f1", "f2"]].to_numpy(), own.label.tolist())
    fleet.save()
    fleet.close()
    rows = spark.read.parquet(str(folder))
    found = predict(rows, tmp_path / "fleet.db", key="key", features=list(FEATURES)).toPandas()
    assert found.prediction.isna().equals(found.load.isna() & found.heat.isna() & found.noise.isna())
    given = found[found.prediction.notna()]
    loaded = DEVDANFleet.load(tmp_path / "fleet.db")
    keys, X = given.key.tolist(), given[list(FEATURES)].to_numpy()
    assert given.prediction.tolist() == loaded.predict(keys, X).tolist()
    shares = pd.DataFrame(given.probabilities.map(dict).tolist())[list(loaded.classes_)]
    assert shares.to_numpy().tolist() == loaded.predict_proba(keys, X).tolist()


def test_columns_of_all_kinds_come_through(spark):
    """Text, flags, dates, moments with and without a zone; the session's time zone is of no matter."""
    rows = spark.sql(
        "SELECT id, 'a' AS key, timestamp_seconds(1000 + id) AS time, IF(id % 2 = 0, 'even', 'odd') AS label, "
        "IF(id % 3 = 0, NULL, id % 2 = 0) AS flag, CAST(id % 2 AS decimal(4, 1)) AS price, "
        "IF(id % 2 = 0, 'Köln', 'Ulm') AS city, date_add(DATE'2026-01-01', CAST(id AS int)) AS day, "
        "timestamp_seconds(id * 3600) AS seen, CAST(timestamp_seconds(id) AS timestamp_ntz) AS clock FROM range(60)"
    )
    features = ["flag", "price", "city", "day", "seen", "clock"]
    found = learn(rows, key="key", id="id", time="time", features=features, label="label", shards=1).toPandas()
    last = found.sort_values("time").tail(20)
    assert (last.prediction == ["even" if id_ % 2 == 0 else "odd" for id_ in last.id]).all()


def test_the_job_of_the_guide_runs(spark, tmp_path):
    """As it stands in docs/cluster.md, twice: the second time it goes on where it was."""
    page = (Path(__file__).parents[2] / "docs" / "cluster.md").read_text()
    job, rows, out = tmp_path / "job.py", tmp_path / "rows", tmp_path / "out"
    job.write_text(re.search(r"```python\n(.*?)```", page, re.DOTALL)[1])
    samples = re.findall(r'^\{"device".*\}$', page, re.MULTILINE)
    assert len(samples) == 2
    rows.mkdir()
    environment = os.environ | {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    for number, sample in enumerate(samples):
        (rows / f"{number}.json").write_text(sample + "\n")
        run = subprocess.run(
            [sys.executable, job, rows, out], env=environment, capture_output=True, text=True, check=False
        )
        assert run.returncode == 0, run.stderr[-3000:]
    told = spark.read.parquet(str(out / "told")).orderBy("time").toPandas()
    assert told.kind.tolist() == ["prediction", "label"]
    assert told.device.tolist() == ["pump 7"] * 2
    assert told.failed.tolist() == [None, True]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"key": "nothing"}, "key must be a column of the table, one of .*got 'nothing'"),
        ({"id": "load"}, "id must be text, whole numbers or flags, got the column load of double; cast it"),
        ({"label": "load"}, "label must be text, whole numbers or flags"),
        ({"time": "id"}, "time must be a timestamp, got the column id of string"),
        ({"features": "load"}, "features must be a list of columns"),
        ({"features": ["load", "load"]}, "features must be different columns"),
        ({"wait": "a while"}, 'wait must be a length of time such as "12 hours" or "30 days", got \'a while\''),
        ({"forget": 3}, "forget must be a length of time"),
        ({"shards": 0}, "shards must be a whole number of at least 1, got 0"),
        ({"random_state": None}, "random_state must be a whole number of at least 0, got None"),
        ({"output": "all"}, "output must be one of 'predictions', 'labels', got 'all'"),
        ({"estimator": 3}, "estimator must be a DEVDAN"),
        ({"prior": "yes"}, "prior must be"),
        ({"late": "soon"}, "late must be a length of time"),
        ({"id": "key"}, "must be different columns, got key, key, time, label"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_wrong_configuration_is_said_before_anything_starts(spark, folder, changed, words):
    rows = spark.read.parquet(str(folder))
    with pytest.raises((ValueError, TypeError), match=words):
        learn(rows, **{"id": "id", **COLUMNS} | changed)


def test_a_state_store_that_cannot_do_it_is_said(spark, folder):
    name = "spark.sql.streaming.stateStore.providerClass"
    rows = spark.read.parquet(str(folder))
    events_ = spark.readStream.schema(rows.schema).parquet(str(folder))
    before = spark.conf.get(name)
    spark.conf.set(name, "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider")
    try:
        with pytest.raises(ValueError, match=f"{name} must be .*RocksDBStateStoreProvider, got .*HDFS"):
            learn(events_, id="id", **COLUMNS)
    finally:
        spark.conf.set(name, before)
