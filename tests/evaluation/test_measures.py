"""A measure is one row: it shows wherever measures are shown."""

import csv
import io
import json

import pytest
from grids import keep, make, result
from rich.console import Console
from runs import record, save

from devdan.bench import write_tables
from devdan.bench.grid import Cell, evaluate
from devdan.cli import display
from devdan.evaluation import measures
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


def test_keys_and_names_are_unique():
    keys = [measure.key for measure in measures.MEASURES]
    assert len(set(keys)) == len(keys)
    assert list(measures.in_tables()) == [
        *("CR", "kappa_no_change", "majority", "no_change", "ET", "HN", "NoP", "NoP_scripts", "members", "labels"),
        *("ECE", "rarest_average_precision", "rarest_recall", "rarest_precision", "rarest_f1"),
        *("kappa", "f1_macro", "g_mean", "balanced_accuracy", "mcc", "roc_auc", "log_loss", "brier"),
        "samples_per_second",
    ]
