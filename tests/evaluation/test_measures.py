"""A measure is one row: it shows wherever measures are shown."""

import csv
import io
import json
import re

import numpy as np
import pytest
from grids import keep, make, result
from rich.console import Console
from runs import record, save

from devdan import DEVDAN
from devdan.bench import write_tables
from devdan.bench.grid import Cell, evaluate
from devdan.cli import display
from devdan.evaluation import measures
from devdan.evaluation.loop import prequential
from devdan.evaluation.measures import Measure, TileText
from devdan.evaluation.record import Record, Summary
from devdan.loggers import curves
from devdan.report import write_report


@pytest.fixture
def error_share(monkeypatch):
    """A measure that nobody has."""
    row = Measure(
        "error_share",
        "Share of errors",
        lambda of: None if of.confusion.accuracy is None else 1 - of.confusion.accuracy,
        recorded=True,
        digits=4,
        better=-1,
        tile=TileText("what was wrong"),
        curves=(("errors/chunk", lambda record, _: record.accuracy and 1 - record.accuracy),),
    )
    monkeypatch.setattr(measures, "MEASURES", (*measures.MEASURES, row))
    return row


RECORDS = [record(chunk) for chunk in range(5)]  # 8 of 10 are right


def shown(figures):
    console = Console(file=io.StringIO(), width=200)
    console.print(display.results(figures))
    return console.file.getvalue()


@pytest.mark.usefixtures("error_share")
def test_a_new_row_is_seen_everywhere(tmp_path):
    line = RECORDS[1].to_json()
    assert json.loads(line)["error_share"] == pytest.approx(0.2)
    assert Record.from_json(line) == RECORDS[1]
    summary = Summary(RECORDS)
    assert summary.criteria()["error_share"] == pytest.approx(0.2)
    assert curves(RECORDS[1], summary)["errors/chunk"] == pytest.approx(0.2)
    assert "share of errors" in shown({"model": "devdan"} | summary.figures())
    assert "0.2000" in shown({"model": "devdan"} | summary.figures())
    one, two = save(tmp_path / "one", RECORDS), save(tmp_path / "two", RECORDS)
    write_report([one], tmp_path / "page.html")
    assert '<dt>Share of errors</dt><dd><div class="figure">0.2000</div>' in (tmp_path / "page.html").read_text()
    write_report([one, two], tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert '<th scope="col">Share of errors</th>' in page
    assert "<b>0.2000</b>" in page
    assert evaluate(Cell("sea", "ae", limit=1000))["error_share"] < 0.3  # 64 % of the samples are of one class
    folder = make(tmp_path / "grid", ["sea"], ["devdan"], seeds=1, cells=False)
    keep(folder, "sea", "devdan", **result("sea", "devdan"), error_share=0.25)
    write_tables(folder)
    with (folder / "table.csv").open() as lines:
        rows = {row["criterion"]: row["mean"] for row in csv.DictReader(lines)}
    assert rows["error_share"] == "0.25"


@pytest.mark.usefixtures("error_share")
def test_what_was_kept_before_there_was_a_measure_is_still_shown(tmp_path):
    old = {name: value for name, value in Summary(RECORDS).figures().items() if name != "error_share"}
    assert "–" in next(row for row in shown({"model": "devdan"} | old).splitlines() if "share of errors" in row)
    folder = make(tmp_path / "grid", ["sea"], ["devdan"], seeds=1)
    write_tables(folder)
    with (folder / "table.csv").open() as lines:
        rows = {row["criterion"]: row["mean"] for row in csv.DictReader(lines)}
    assert rows["error_share"] == ""


def test_every_measure_reaches_every_door():
    """A measure is told at each door by itself, or in the words of another one."""
    random = np.random.default_rng(0)
    y = np.where(random.random(4000) < 0.05, "fraud", "ok")
    X = random.normal(size=(4000, 3)) + 1.2 * (y == "fraud")[:, None]
    chunks = [(X[k : k + 200], y[k : k + 200]) for k in range(0, 4000, 200)]
    records = list(prequential(chunks, DEVDAN(random_state=0, decide={"fraud": {"missed": 20}})))
    summary = Summary(records)
    figures = {"model": "devdan"} | summary.figures()
    told_by = {name: _told_by(name) for name in ("tile", "line")}
    seen = {name for record in records for name in curves(record, summary)}
    line = json.loads(records[-1].to_json())
    for measure in measures.MEASURES:
        key, value = measure.key, figures.get(measure.key)
        assert value is not None or measure.follows is not None or key in ("members_mean",), key
        if measure.recorded:
            assert key in line, key
        if not isinstance(value, float):
            continue
        if measure.compared and not measure.timed:
            assert measure.column or not measure.better, key
        if measure.better and not measure.timed and key != "accuracy":
            assert key in told_by["tile"] or key in ("rarest_f1",), key
            assert key in told_by["line"], key
            assert measure.criterion is not None, key
            names = {name for name, _ in measure.curves} or {key}
            assert names & seen, key
    for key in ("recall", "precision", "f1", "average_precision", "alert_recall", "alert_precision"):
        assert {f"{key}/ok", f"{key}/fraud"} <= seen, key


def _told_by(door):
    """The measures that tiles or lines of the console tell, some in the text of another one."""
    found = set()
    for measure in measures.MEASURES:
        shown = getattr(measure, door)
        if shown is not None:
            texts = " ".join(str(value) for value in vars(shown).values())
            found |= {measure.key, *re.findall(r"{(\w+)}", texts)}
    return found


def test_keys_and_names_are_unique():
    keys = [measure.key for measure in measures.MEASURES]
    assert len(set(keys)) == len(keys)
    assert list(measures.in_tables()) == [
        *("CR", "kappa_no_change", "majority", "no_change", "ET", "HN", "NoP", "NoP_scripts", "members", "labels"),
        *("ECE", "rarest_average_precision", "rarest_recall", "rarest_precision", "rarest_f1"),
        *("rarest_alert_recall", "rarest_alert_precision", "cost", "constant_cost"),
        *("kappa", "f1_macro", "g_mean", "balanced_accuracy", "mcc", "roc_auc", "log_loss", "brier"),
        "samples_per_second",
    ]
