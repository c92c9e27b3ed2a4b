"""Files as a release writes them, and what a later version must make of them.

``python tests/support/released.py 0.1.0``, in the checkout of a release, keeps its files in tests/released/0.1.0, with
what they told then. From there on test_released.py reads them with every version. That folder is never written again.
"""

import json
import math
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from commandline import devdan, records
from served import served_here, until

from devdan import DEVDAN, DEVDANEnsemble, DEVDANFleet, open_model
from devdan.service.replay import found, replayed
from devdan.service.store import FILE, SqliteDatabase

FOLDER = Path(__file__).parents[1] / "released"
_N = 240  # samples
_SCALES = [(1,), (6, 2, 10, 4), (6, 2, 60, 4)]


def table(seed=0):
    """Payments: a text, a date, numbers of which some are missing, and the label."""
    random = np.random.default_rng(seed)
    rows = pd.DataFrame(
        {
            "time": pd.date_range("2026-01-01", periods=_N, freq="7h").strftime("%Y-%m-%d %H:%M"),
            "customer": [f"C{k}" for k in random.integers(5, size=_N)],
            "country": random.choice(["DE", "FR", "IT"], _N),
            "amount": random.normal(50, 9, _N).round(2),
        }
    )
    rows["fraud"] = np.where((rows.amount > 55) ^ (rows.country == "IT"), "yes", "no")
    rows.loc[random.random(_N) < 0.1, "amount"] = np.nan
    return rows


def _parts(seed=0):
    rows = table(seed)
    return rows.drop(columns=["fraud", "customer"]), rows.fraud


def _numbers(values):
    return np.asarray(values, float).round(9).tolist()


# --- Models ----------------------------------------------------------------------------------------------------------


def _write_model(folder):
    decide = {"yes": {"recall": 0.8}}
    DEVDAN(random_state=1, decide=decide, class_weight="balanced").partial_fit(*_parts()).save(folder / "model.devdan")


def _write_ensemble(folder):
    model = DEVDANEnsemble(_SCALES, estimator=DEVDAN(momentum=0.9), random_state=1, n_jobs=1)
    model.partial_fit(*_parts()).save(folder / "model.devdan")


def _read_model(folder):
    model, (X, y) = open_model(folder / "model.devdan"), _parts(1)
    before = model.predict_proba(X[:20])
    calls = model.predict(X[:20]).tolist()
    return {
        "predicted": _numbers(before),
        "called": calls,
        "after more": _numbers(model.partial_fit(X, y).predict_proba(X[:20])),
    }


def _write_fleet(folder):
    (X, y), keys = _parts(), table().customer
    DEVDANFleet(random_state=1, n_jobs=1).partial_fit(keys, X, y).save(folder / "fleet.devdan")


def _read_fleet(folder):
    (X, y), keys = _parts(1), table(1).customer
    fleet = open_model(folder / "fleet.devdan")
    before = fleet.predict_proba(keys[:20], X[:20])
    fleet.partial_fit(keys, X, y)
    return {"predicted": _numbers(before), "after more": _numbers(fleet.predict_proba(keys[:20], X[:20]))}


# --- Folders of runs -------------------------------------------------------------------------------------------------


def _write_run(folder):
    table().to_csv(folder / "payments.csv", index=False)
    by_customer = ("--history", "customer", "--time", "time", "--alerts", "2/50")
    devdan("run", "payments.csv", "--target", "fraud", "--chunk", 40, *by_customer, "--out", "run", folder=folder)
    (folder / "run" / "report.html").unlink()  # it is large, and drawn again


def _read_run(folder):
    """Drawn again, compared, and its model used and taught."""
    table(1).to_csv(folder / "more.csv", index=False)
    devdan("report", "run", folder=folder)
    devdan("report", "run", "run", "--out", "both.html", folder=folder)
    first = devdan("predict", "run", "more.csv", folder=folder).stdout
    devdan("learn", "run", "more.csv", "--target", "fraud", folder=folder)
    return {
        "right": [sum(n for true, guess, n in one["counts"] if true == guess) for one in records(folder / "run")],
        "predicted": first.splitlines()[:20],
        "after more": devdan("predict", "run", "more.csv", folder=folder).stdout.splitlines()[:20],
    }


# --- The log of a service --------------------------------------------------------------------------------------------


def _ask(http, first, seed):
    X, _ = _parts(seed)
    lines = [
        {"id": f"r{first + k}", "features": {name: value for name, value in row.items() if not pd.isna(value)}}
        for k, row in enumerate(X.to_dict("records"))
    ]
    answer = http.post("/v1/streams/payments/predict", json={"rows": lines}).raise_for_status().json()
    return [list(one["probabilities"].values()) for one in answer["predictions"]]


def _teach(http, first, seed):
    labels = [{"id": f"r{first + k}", "label": label} for k, label in enumerate(_parts(seed)[1])]
    before = http.get("/v1/streams/payments").json()["labels"]
    http.post("/v1/streams/payments/labels", json={"labels": labels}).raise_for_status()
    until(http, "/v1/streams/payments", lambda shown: shown["labels"] >= before + len(labels))


def _write_log(folder):
    with served_here(folder / "log") as http:
        http.put("/v1/streams/payments", json={}).raise_for_status()
        _ask(http, 0, 0)
        _teach(http, 0, 0)
        http.delete("/v1/streams/payments/samples/r3").raise_for_status()
    for path in (folder / "log").iterdir():
        if path.name != FILE:
            path.unlink()


def _read_log(folder):
    """Served on, taught more, and replayed."""
    with served_here(folder / "log") as http:
        until(http, "/v1/streams/payments", lambda shown: shown["state"] == "ready")
        before = _ask(http, _N, 1)
        _teach(http, _N, 1)
        after = _ask(http, 2 * _N, 1)
    database = SqliteDatabase(folder / "log")
    connection = database.connect()
    (stream,) = found(connection, None)
    same = replayed(connection, stream).same
    connection.close()
    database.close()
    return {"predicted": _numbers(before[:20]), "after more": _numbers(after[:20]), "replayed the same": same}


# --- The state of a query on Spark -----------------------------------------------------------------------------------


def _spark():
    """A shard's processor without an engine, and the batches that it gets."""
    from pyspark.sql.streaming.tws_tester import TwsTester  # noqa: PLC0415 (only where there is PySpark)
    from spark_events import events, packed, plan  # noqa: PLC0415

    from devdan.spark.processor import FleetProcessor  # noqa: PLC0415

    tester = TwsTester(FleetProcessor(plan()), timeMode="EventTime", eventTimeExtractor=lambda row: math.inf)
    rows = events()
    return tester, [packed(rows[part]) for part in (slice(0, 300), slice(300, None))]


def _write_spark(folder):
    tester, (first, _) = _spark()
    tester.testInPandas(0, first)
    (shared,) = tester.peekValueState("shared", 0)
    parts = tester.peekMapState("segments", 0)
    (folder / "shared").write_bytes(shared)
    names = pa.array([json.dumps(list(name)) for name in parts])
    contents = pa.array([content for (content,) in parts.values()], pa.binary())
    state = pa.record_batch({"name": names, "content": contents})
    with pa.ipc.new_file(folder / "segments.arrow", state.schema) as writer:
        writer.write_batch(state)


def _read_spark(folder):
    from devdan.spark.packing import unpack_rows  # noqa: PLC0415

    tester, (_, more) = _spark()
    with pa.ipc.open_file(folder / "segments.arrow") as reader:
        state = reader.read_all().to_pylist()
    tester.updateValueState("shared", 0, ((folder / "shared").read_bytes(),))
    tester.updateMapState("segments", 0, {tuple(json.loads(one["name"])): (one["content"],) for one in state})
    told = tester.testInPandas(0, more)
    batches = [pa.record_batch({"content": pa.array(told.content, pa.binary())})]
    lines = [line for batch in unpack_rows(batches) for line in batch.to_pylist() if line["kind"] == "prediction"]
    return {
        "predicted": [[line["id"], *_numbers([share for _, share in line["probabilities"]])] for line in lines[:20]]
    }


# --- All of it -------------------------------------------------------------------------------------------------------


class Kind(NamedTuple):
    """A kind of file: what writes one into a folder, and what reads it and tells of it."""

    write: Callable[[Path], None]
    read: Callable[[Path], dict[str, Any]]
    needs: str = "devdan"  # a module


KINDS = {
    "model": Kind(_write_model, _read_model),
    "ensemble": Kind(_write_ensemble, _read_model),
    "fleet": Kind(_write_fleet, _read_fleet),
    "run": Kind(_write_run, _read_run),
    "log": Kind(_write_log, _read_log),
    "spark": Kind(_write_spark, _read_spark, needs="pyspark.sql.streaming.tws_tester"),
}


def told(folder, name, work):
    """What a file that was kept tells, in a folder to work in."""
    copy = Path(work, name)
    shutil.unpack_archive(folder / f"{name}.tar.xz", copy)
    return KINDS[name].read(copy)


def keep(folder, work, names=KINDS):
    """Write files of these kinds, and what they tell."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        made = Path(work, f"new {name}")
        made.mkdir()
        KINDS[name].write(made)
        shutil.make_archive(str(folder / name), "xztar", made)
        (folder / f"{name}.json").write_text(json.dumps(told(folder, name, work), indent=1) + "\n")


if __name__ == "__main__":
    with TemporaryDirectory() as work:
        keep(FOLDER / sys.argv[1], work)
