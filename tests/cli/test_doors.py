"""The same table gives the same records, whatever holds it and whichever command reads it."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest
from commandline import devdan, records
from table_files import FORMATS, NAMES, ROWS, objects, text, written

from devdan import DEVDAN, open_model
from devdan.streams import open_stream

pytestmark = pytest.mark.filterwarnings("ignore:the column")
FRAME = pd.DataFrame(ROWS, columns=NAMES)
FROM_STDIN = {
    "CSV": text(), "semicolons": text(";"), "decimal commas": text(";", ","), "tabs": text("\t"),
    "JSON": "\n".join(map(json.dumps, objects())),
}  # fmt: skip


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model that has seen some of the table."""
    path = tmp_path_factory.mktemp("model") / "m.devdan"
    some = FRAME[:200]
    DEVDAN(random_state=0).fit(some.drop(columns="label"), some["label"]).save(path)
    return path


def of_run(source, folder, stdin=None):
    devdan("run", source, "--target", "label", "--chunk", 100, "--out", "run", folder=folder, stdin=stdin)
    return records(folder / "run")


def of_learn(source, folder, model, stdin=None):
    shutil.copy(model, folder / "m.devdan")
    devdan("learn", "m.devdan", source, "--target", "label", folder=folder, stdin=stdin)
    return open_model(folder / "m.devdan").predict_proba(FRAME.drop(columns="label")).tolist()


def of_predict(source, folder, model, stdin=None):
    devdan("predict", model, source, "--out", "p.csv", folder=folder, stdin=stdin)
    found = pd.read_csv(folder / "p.csv")
    return found.drop(columns=[name for name in found if name in NAMES]).to_csv()


def of_table(source, folder):
    arguments = ("--target", "label", "--models", "devdan", "--seeds", 1, "--chunk", 100, "--out", "table")
    devdan("table", "--streams", source, *arguments, folder=folder)
    (cell,) = (folder / "table" / "cells").glob("*/devdan/all/0.json")
    found = json.loads(cell.read_text())
    return [found[name] for name in ("n_samples", "cr_mean", "cr_std", "hn_mean", "log_loss")]


@pytest.fixture(scope="module")
def expected(model, tmp_path_factory):
    """What comes of the table in memory, by Python alone."""
    folder = tmp_path_factory.mktemp("expected")
    FRAME.to_csv(folder / "t.csv", index=False)
    taught = open_model(model)
    for X, y in open_stream(FRAME, target="label"):
        taught.partial_fit(X, y)
    X = FRAME.drop(columns="label")
    return {
        "run": of_run("t.csv", folder),
        "learn": taught.predict_proba(X).tolist(),
        "predict": of_predict("t.csv", folder, model),
        "labels": open_model(model).predict(X).tolist(),
        "table": of_table("t.csv", folder),
    }


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_gives_the_same_records_at_every_door(name, model, expected, tmp_path):
    source = written(name, tmp_path)
    assert of_run(source, tmp_path) == expected["run"]
    assert of_learn(source, tmp_path, model) == expected["learn"]
    assert of_predict(source, tmp_path, model) == expected["predict"]
    assert of_table(source, tmp_path) == expected["table"]


@pytest.mark.parametrize("name", FROM_STDIN)
def test_standard_input_gives_the_same_records(name, model, expected, tmp_path):
    content = FROM_STDIN[name]
    assert of_run("-", tmp_path, content) == expected["run"]
    assert of_learn("-", tmp_path, model, content) == expected["learn"]


@pytest.mark.parametrize(
    "source", [FRAME, FRAME.to_dict("records"), [(dict(zip(NAMES[:3], row, strict=False)), row[3]) for row in ROWS]]
)
def test_what_is_in_memory_gives_the_same_records(source, expected):
    stream = open_stream(source, chunk=100)
    found = [model_record.counts for model_record in _evaluated(stream)]
    assert [[list(count) for count in counts] for counts in found] == [record["counts"] for record in expected["run"]]


def _evaluated(stream):
    from devdan.evaluation import prequential  # noqa: PLC0415

    return prequential(stream, DEVDAN(random_state=0))


def test_what_is_predicted_are_the_labels_of_the_model(model, expected, tmp_path):
    written("t.csv", tmp_path)
    devdan("predict", model, "t.csv", "--out", "p.csv", folder=tmp_path)
    assert expected["labels"] in [column.tolist() for _, column in pd.read_csv(tmp_path / "p.csv").items()]
    assert np.shape(expected["learn"]) == (len(ROWS), 2)
