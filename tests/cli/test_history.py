"""Histories on the command line: run, learn, predict, show, resume, standard input."""

import csv
import json
from datetime import datetime, timedelta

import pytest
from commandline import devdan
from payments_stream import payments
from processes import Started

from devdan import open_model

N = 1500
RUN = ("run", "tx.csv", "--target", "fraud", "--history", "customer,customer+country", "--time", "timestamp",
       "--chunk", 100, "--labels", "delay:150")  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table of payments, a run over its first part, and the rest."""
    folder = tmp_path_factory.mktemp("payments")
    rows, labels = payments(N + 200)
    table = []
    for row, label in zip(rows, labels.tolist(), strict=True):
        time = datetime(2025, 3, 1) + timedelta(days=row["day"])
        who = f"{int(row['customer'][1:]):03}"  # which looks like a number
        table.append([who, time.isoformat(timespec="seconds"), f"{row['amount']:.2f}", row["country"], label])
    head = ["customer", "timestamp", "amount", "country", "fraud"]
    for name, part in (("tx.csv", table[:N]), ("new.csv", table[N : N + 100]), ("rest.csv", table[N + 100 :])):
        with (folder / name).open("w", newline="") as file:
            csv.writer(file).writerows([head, *part])
    devdan(*RUN, "--out", "out", folder=folder)
    return folder


def test_a_run_has_a_column_for_each_history(folder):
    summary = json.loads((folder / "out" / "summary.json").read_text())
    names = [column["name"] for column in summary["columns"]]
    assert names[:3] == ["timestamp", "amount", "country"]
    assert "customer: share of fraud, long" in names
    assert "customer+country: rows, short" in names
    assert "customer" not in names
    assert "customer: share of fraud, long" in summary["importances"]
    said = summary["histories"]["customer: share of fraud, long"]
    assert said.startswith("share of fraud among the labels of this customer, last ")
    page = (folder / "out" / "report.html").read_text()
    assert "Which histories matter" in page
    assert '<tr><th scope="row">how usual the country is for this customer</th><td>' in page


def test_a_saved_model_predicts_and_learns_on_with_its_histories(folder):
    before = open_model(folder / "out" / "model.devdan")
    learned = devdan("learn", "out", "new.csv", "--target", "fraud", "--out", "later.devdan", folder=folder)
    assert "100 samples, 100 labels" in learned.stdout
    after = open_model(folder / "later.devdan")
    assert after.histories_.n_rows_ == before.histories_.n_rows_ + 100 == N + 100
    assert after.histories_.n_entities_["customer"] == 40
    file = devdan("predict", "later.devdan", "rest.csv", "--proba", folder=folder).stdout
    assert len(file.splitlines()) == 101
    piped = Started("predict", "later.devdan", "-", "--proba", folder=folder, stdin=folder / "rest.csv")
    assert piped.wait()[1] == file
    shown = devdan("show", "later.devdan", folder=folder).stdout
    assert "customer: rows, short" in shown


def n_records(run):
    """How many chunks a run has recorded."""
    path = run / "records.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def test_killed_and_resumed_it_ends_as_if_it_had_not_been(folder):
    for _ in range(2):
        process = Started(*RUN, "--out", "broken", "--resume", "--checkpoint", 0, folder=folder)
        done = n_records(folder / "broken")
        process.wait_until(lambda done=done: n_records(folder / "broken") > done)
        assert process.works
        process.kill()
    devdan(*RUN, "--out", "broken", "--resume", folder=folder)
    whole, broken = ((folder / name / "model.devdan").read_bytes() for name in ("out", "broken"))
    assert whole == broken


def test_standard_input(folder):
    process = Started("run", "-", *RUN[2:], "--out", "piped", folder=folder, stdin=folder / "tx.csv")
    code, _, said = process.wait()
    assert code == 0, said
    assert open_model(folder / "piped" / "model.devdan").histories_.n_rows_ == N


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--history", "custommer"), "has no column 'custommer'"),
        (("--time", "timestamp"), "--time is for --history"),
        (("--history", "customer", "--key", "customer"), "--history is not for fleets"),
        (("--history", "customer", "--set", "scaling=none"), "need a model that scales its inputs"),
    ],
)
def test_what_cannot_be_is_said(folder, options, said, tmp_path):
    run = ("run", "tx.csv", "--target", "fraud", *options, "--out", tmp_path / "out", "--limit", 200)
    assert said in devdan(*run, folder=folder, code=2).stderr


def test_a_column_that_begins_late_and_classes_that_come_late(folder, tmp_path):
    """In a file and on standard input; the model learns a class on that it has not known."""
    values = [("" if k < 150 else k % 4, k % 7, "abcdefg"[k // 50]) for k in range(300)]
    lines = ["who,note,size,y", *(f"c{k % 9},{note},{size},{y}" for k, (note, size, y) in enumerate(values))]
    (tmp_path / "late.csv").write_text("\n".join(lines))
    (tmp_path / "more.csv").write_text("\n".join([lines[0], *(f"c{k % 9},1,{k % 7},new" for k in range(50))]))
    for source, how in (("late.csv", {}), ("-", {"stdin": tmp_path / "late.csv"})):
        process = Started("run", source, "--target", "y", "--history", "who", "--nominal", "note", "--chunk", 50,
                          "--out", f"out{source}", folder=tmp_path, **how)  # fmt: skip
        code, _, said = process.wait()
        assert code == 0, said
        names = open_model(tmp_path / f"out{source}" / "model.devdan").histories_.feature_names_
        assert [name for name in names if "note" in name] == ["who: note: usual", "who: note: different"]
    notes = json.loads((tmp_path / "out-" / "summary.json").read_text())["notes"]
    assert any("whose shares have no column" in note for note in notes)
    learned = devdan("learn", "outlate.csv", "more.csv", "--target", "y", "--out", "later.devdan", folder=tmp_path)
    assert "new classes: new" in learned.stdout


@pytest.mark.parametrize("model", ["sklearn.naive_bayes:GaussianNB", "river-logreg"])
def test_histories_stand_in_front_of_other_libraries_models(folder, tmp_path, model):
    auc = []
    for history in ((), ("--history", "customer", "--time", "timestamp")):
        run = ("run", "tx.csv", "--target", "fraud", "--model", model, *history, "--chunk", 100, "--drop", "country")
        devdan(*run, "--out", tmp_path / f"out{len(history)}", folder=folder)
        summary = json.loads((tmp_path / f"out{len(history)}" / "summary.json").read_text())
        auc.append(summary["roc_auc"])
        assert summary["n_labels"] == N
    assert auc[1] > auc[0] + 0.05


def test_in_a_table_they_stand_in_front_of_every_model(folder, tmp_path):
    models = "devdan,river-logreg"
    table = ("table", "--streams", "tx.csv", "--target", "fraud", "--models", models, "--seeds", 1, "--chunk", 100,
             "--drop", "country", "--limit", 1000, "--json")  # fmt: skip
    history = ("--history", "customer", "--time", "timestamp")
    found = []
    for more in ((), history):
        result = json.loads(devdan(*table, *more, "--out", tmp_path / f"table{len(more)}", folder=folder).stdout)
        assert (result["n_runs"], result["n_failed"]) == (2, 0)
        found.append([row["mean"] for row in result["rows"] if row["criterion"] == "roc_auc"])
    assert all(after > before + 0.05 for before, after in zip(*found, strict=True)), found
    named = ("table", "--streams", "sea", "--models", "devdan", *history, "--out", tmp_path / "named")
    assert "--history is for files" in devdan(*named, folder=folder, code=2).stderr
