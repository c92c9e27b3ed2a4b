"""Using what a run leaves: predict, learn and show, and streams from standard input."""

import csv
import gzip
import io
import json
import os
import pickle
import re
import signal
import subprocess
import sys
import threading
import tracemalloc
from contextlib import contextmanager, suppress
from functools import partial

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from commandline import devdan, records, within
from processes import Started, environment
from typer.testing import CliRunner

from devdan import DEVDAN, DEVDANEnsemble, ModelFileError, open_model
from devdan.apply import TablePredictions
from devdan.cli import app
from devdan.cli.console import stoppable
from devdan.model import modelfile
from devdan.model.scales import SCALES
from devdan.runs.runfolder import RunFolder
from devdan.streams import StreamError, files, open_stream, open_table

HEAD = ["id", "age", "city", "joined", "member", "label"]


def rows(n, seed=0):
    """People with an id, a number, a category with a comma in it, a date, a flag and a label."""
    random = np.random.default_rng(seed)
    found = []
    for k in range(n):
        age, city = int(random.integers(18, 90)), str(random.choice(["Bonn", "Köln", "Ulm, alt"]))
        day = f"20{random.integers(20, 24)}-{random.integers(1, 13):02}-{random.integers(1, 29):02}"
        label = "old" if age > 50 or city == "Bonn" else "young"
        found.append([f"u{k:05}", str(age), city, day, str(random.choice(["yes", "no"])), label])
    return found


def write(path, rows, head=HEAD):
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([head, *rows])
    path.write_bytes(gzip.compress(text.getvalue().encode()) if path.suffix == ".gz" else text.getvalue().encode())
    return path


def objects(rows, head=HEAD):
    """The same as JSON has it."""
    values = {"yes": True, "no": False}
    return [
        {name: int(cell) if name == "age" else values.get(cell, cell) for name, cell in zip(head, row, strict=True)}
        for row in rows
    ]


def piped(*arguments, text, folder, code=0):
    """Run it in this process with a text as its standard input."""
    words = [str(word) for word in arguments]
    with within(folder), pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["devdan", *words])
        run = CliRunner().invoke(app, words, prog_name="devdan", env=environment(), input=text)
    assert isinstance(run.exception, (SystemExit, type(None))), run.exception
    assert run.exit_code == code, run.stderr
    return run


def cells(text):
    return list(csv.reader(io.StringIO(text)))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A run on a table, and the table."""
    folder = tmp_path_factory.mktemp("made")
    write(folder / "people.csv", rows(2000))
    devdan("run", "people.csv", "--target", "label", "--out", "run", folder=folder)
    return folder


@pytest.fixture
def model(made, tmp_path):
    """A copy of its model, to be changed."""
    path = tmp_path / "model.devdan"
    path.write_bytes((made / "run/model.devdan").read_bytes())
    return path


# --- Opening -----------------------------------------------------------------------------------------------------


def test_a_model_file_says_what_it_holds(tmp_path):
    X, y = np.random.default_rng(0).random((50, 3)), np.arange(50) % 2
    for model in (DEVDAN(random_state=0), DEVDANEnsemble([(1,), (3, 2, 20)], random_state=0)):
        model.fit(X, y).save(tmp_path / "m")
        assert type(open_model(tmp_path / "m")) is type(model)
        np.testing.assert_array_equal(open_model(tmp_path / "m").predict_proba(X), model.predict_proba(X))
    header, state = modelfile.read(tmp_path / "m")
    modelfile.write(tmp_path / "m", header | {"kind": "Other"}, state)
    with pytest.raises(ModelFileError, match="it is a Other, not a DEVDAN or a DEVDANEnsemble"):
        open_model(tmp_path / "m")
    (tmp_path / "m").write_bytes(pickle.dumps(model))
    with pytest.raises(ModelFileError, match="is a pickle, which may hold code"):
        open_model(tmp_path / "m")


@pytest.mark.parametrize("command", ["predict", "learn", "show"])
def test_what_is_no_model_is_an_error_in_a_line(command, made, tmp_path):
    more = ["people.csv"] if command != "show" else []
    (tmp_path / "pickled").mkdir()
    (tmp_path / "pickled/model.pickle").write_bytes(pickle.dumps(DEVDAN()))
    (tmp_path / "empty").mkdir()
    for path, message in (
        ("people.csv", "is not a DEVDAN model"),
        ("none.devdan", "No such file"),
        (tmp_path / "pickled", "only DEVDAN, DEVDANEnsemble and DEVDANFleet"),
        (tmp_path / "pickled/model.pickle", "is a pickle"),
        (tmp_path / "empty", "there is no model in .*: a run leaves it when it is finished"),
    ):
        assert re.search(message, devdan(command, path, *more, folder=made, code=2).stderr)


# --- Predicting --------------------------------------------------------------------------------------------------


def expected(made, table):
    """What the model itself says about a data frame."""
    model = DEVDAN.load(made / "run/model.devdan")
    return model.predict(table[HEAD[:-1]]), model.predict_proba(table[HEAD[:-1]])


def test_predictions_are_those_of_the_model_in_the_order_of_the_rows(made):
    run = devdan("predict", "run", "people.csv", folder=made)
    labels, shares = expected(made, pd.read_csv(made / "people.csv"))
    assert cells(run.stdout) == [["prediction"], *([label] for label in labels)]
    assert run.stderr == "note: columns that the model does not know are ignored: label\n"
    run = devdan("predict", "run/model.devdan", "people.csv", "--proba", "--keep", "city,id", folder=made)
    head, *found = cells(run.stdout)
    assert head == ["city", "id", "prediction", "p(old)", "p(young)"]
    assert [row[:2] for row in found] == [[row[2], row[0]] for row in rows(2000)]
    np.testing.assert_array_equal(np.array([row[3:] for row in found], dtype=float), shares)
    assert (labels == np.array([row[-1] for row in rows(2000)])).mean() > 0.9


@pytest.mark.parametrize("name", ["p.csv", "p.parquet", "p.jsonl"])
def test_the_threshold_that_decides_is_beside_the_probabilities(name, made, model, tmp_path):
    learned = DEVDAN.load(model).set_params(decide={"old": {"threshold": 0.2}})
    learned.observe(pd.read_csv(made / "people.csv").drop(columns="label")).save(model)
    run = devdan("predict", model, made / "people.csv", "--proba", "--out", name, folder=tmp_path)
    assert "note: old is called from a probability of 0.2 on: as given" in run.stderr
    read = {"p.csv": pd.read_csv, "p.parquet": pd.read_parquet, "p.jsonl": partial(pd.read_json, lines=True)}[name]
    found = read(tmp_path / name)
    assert list(found.columns) == ["prediction", "p(old)", "p(young)", "threshold(old)"]
    assert set(found["threshold(old)"]) == {0.2}
    assert ((found["prediction"] == "old") == (found["p(old)"] >= 0.2)).all()
    assert (found["p(old)"].between(0.2, 0.5)).any()


@pytest.mark.parametrize("rule", [{"budget": 0.05}, {"budget": 0.05, "over": 1000}, "balanced"], ids=str)
def test_a_threshold_that_moves_goes_on_from_row_to_row_however_they_are_read(rule, made, model, tmp_path):
    """A budget is that of all rows, in a file and in a pipe, and each row tells the threshold that it met."""
    learned = DEVDAN.load(model).set_params(decide={"old": rule})
    for seed in range(3):
        table = pd.DataFrame(rows(1000, seed=seed), columns=HEAD)
        learned.partial_fit(table.drop(columns="label"), table["label"])
    before = learned.thresholds_
    text = write(tmp_path / "new.csv", rows(2000, seed=9)).read_text()
    called = []
    for source in (files.table(tmp_path / "new.csv"), open_table(io.StringIO(text))):
        blocks = list(TablePredictions(learned, source))
        labels = np.concatenate([block.labels for block in blocks])
        numbers = np.concatenate([block.numbers for block in blocks])
        assert ((labels == "old") == (numbers[:, 0] >= numbers[:, 2])).all()
        assert len(set(numbers[:, 2])) > 50
        if rule == "balanced":
            assert 0.3 < (labels == "old").mean() < 0.8
        else:
            assert 0.04 <= (labels == "old").mean() <= 0.06
        called.append(labels)
    assert len(blocks) == 2000
    assert (called[0] == called[1]).all()
    assert learned.thresholds_ == before  # nothing is learned


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.csv.gz", "t.parquet", "t.arff"])
def test_every_format_is_answered_alike(name, made, tmp_path):
    some = rows(300, seed=1)
    table = pd.DataFrame(some, columns=HEAD)[["city", "member", "joined", "id", "age"]]  # in another order, unlabelled
    table["age"] = table["age"].astype(int)
    if name == "t.parquet":
        table["joined"], table["member"] = pd.to_datetime(table["joined"]), table["member"] == "yes"
        table.to_parquet(tmp_path / name)
    elif name == "t.arff":
        kinds = {"city": "{Bonn,Köln,'Ulm, alt'}", "age": "numeric"}
        head = [f"@attribute {column} {kinds.get(column, 'string')}" for column in table]
        lines = [",".join(f"'{cell}'" for cell in row) for row in table.to_numpy().tolist()]
        (tmp_path / name).write_text("\n".join(["@relation t", *head, "@data", *lines]) + "\n")
    else:
        table.to_csv(tmp_path / name, index=False, sep="\t" if name == "t.tsv" else ",")
    run = devdan("predict", made / "run", name, "--keep", "id", folder=tmp_path)
    labels, _ = expected(made, table)
    assert cells(run.stdout) == [
        ["id", "prediction"],
        *([row[0], label] for row, label in zip(some, labels, strict=True)),
    ]
    assert run.stderr == ""


def test_kept_columns_are_as_they_were_written(made, tmp_path):
    odd = [["007", "1.50", "Köln", "2021-01-01", "yes"], [" a\nb", "2e1", "Bonn", "2021-01-02", "no"]]
    odd += [["", "+3", "?", "NA", ' "q" ']]
    write(tmp_path / "odd.csv", odd, HEAD[:-1])
    run = devdan("predict", made / "run", "odd.csv", "--keep", "id,age,city", "--keep", "member", folder=tmp_path)
    assert [row[:4] for row in cells(run.stdout)[1:]] == [[row[0], row[1], row[2], row[4]] for row in odd]
    streamed = piped("predict", made / "run", "-", "--keep", "id,age,city,member",
                     text=(tmp_path / "odd.csv").read_bytes(), folder=tmp_path)  # fmt: skip
    assert streamed.stdout == run.stdout


def test_a_column_that_the_model_leaves_out_need_not_be_there(made, tmp_path):
    some = rows(50, seed=2)
    whole = devdan("predict", made / "run", write(tmp_path / "whole.csv", some), folder=tmp_path)
    part = devdan("predict", made / "run", write(tmp_path / "part.csv", [row[1:5] for row in some], HEAD[1:5]),
                  folder=tmp_path)  # fmt: skip
    assert part.stdout == whole.stdout


@pytest.mark.parametrize(
    ("text", "arguments", "message"),
    [
        (
            "age,joined,member\n3,2021-01-01,yes\n",
            [],
            r"lacks the column 'city'; the model expects 'id', 'age', 'city'",
        ),
        ("age,Joined,City,member\n3,2021-01-01,a,yes\n", [], r"lacks the columns 'city', 'joined'; .* there is 'age'"),
        ("3,2021-01-01,yes\n", [], "has no names for its columns, which the model knows by name"),
        ("age,city,joined,member\n3,a,2021-01-01,no\n4,b\n", [], r"row 2 \(line 3\) has 2 columns instead of 4: 4,b"),
        ("age,city,joined,member\n3,a,2021-01-01,no\ninf,b,,\n", [], "row 2 has infinity in the column 'age'"),
        ("age,city,joined,member\n3,a,,\n", ["--keep", "name"], "no column 'name' to keep; it has age, city"),
        ("age,city,joined,member,prediction\n3,a,,,\n", ["--keep", "prediction"], "two columns would have the same"),
        ("age,city,joined,member\n3,a,,\n", ["--out", "x.xls"], "--out must end in .csv, .parquet, .jsonl, got x.xls"),
        ("age,city,joined,member\n", ["--out", "x.csv"], "has no rows"),
    ],
)
def test_bad_tables_are_one_clear_line(text, arguments, message, made, tmp_path):
    (tmp_path / "t.csv").write_text(text)
    run = piped("predict", made / "run", "t.csv", *arguments, text="", folder=tmp_path, code=2)
    assert re.search(message, run.stderr.splitlines()[-1]), run.stderr
    assert not (tmp_path / "x.csv").exists()
    if "no rows" not in message:
        run = piped("predict", made / "run", "-", *arguments, text=text, folder=tmp_path, code=2)
        assert re.search(message, run.stderr.splitlines()[-1]), run.stderr


def test_a_model_without_names_takes_columns_by_position(tmp_path):
    random = np.random.default_rng(0)
    X = random.random((400, 3)).round(6)
    y = np.where(X[:, 0] > 0.5, "up", "down")
    np.savez(tmp_path / "t.npz", X=X, y=y)
    devdan("run", "t.npz", "--out", "run", "--chunk", 50, folder=tmp_path)
    np.savez(tmp_path / "new.npz", X=X)
    lines = [",".join(map(str, row)) for row in X.tolist()]
    (tmp_path / "bare.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "named.csv").write_text("\n".join(["p,q,r", *lines]) + "\n")
    labels = DEVDAN.load(tmp_path / "run/model.devdan").predict(X).tolist()
    for name in ("new.npz", "bare.csv", "named.csv"):
        assert [row[0] for row in cells(devdan("predict", "run", name, folder=tmp_path).stdout)[1:]] == labels
    (tmp_path / "wide.csv").write_text("1,2,3,4\n")
    wide = devdan("predict", "run", "wide.csv", folder=tmp_path, code=2).stderr
    assert "has 4 columns, but the model takes 3, by position" in wide
    (tmp_path / "labelled.csv").write_text("\n".join(f"{label},{line}" for label, line in zip(y, lines, strict=True)))
    devdan("run", "labelled.csv", "--target", 0, "--out", "bare", "--chunk", 50, folder=tmp_path)
    same = devdan("predict", "bare", "labelled.csv", folder=tmp_path)
    assert devdan("predict", "bare", "bare.csv", folder=tmp_path).stdout == same.stdout
    np.savez(tmp_path / "wide.npz", X=np.zeros((3, 4)))
    assert "4 columns" in devdan("predict", "run", "wide.npz", folder=tmp_path, code=2).stderr
    learned = devdan("learn", "bare", "labelled.csv", "--target", 0, folder=tmp_path).stdout
    assert "400 samples, 400 labels" in learned
    assert "400 samples, 400 labels" in devdan("learn", "run", "t.npz", folder=tmp_path).stdout


def test_ensembles_predict_learn_and_show(tmp_path):
    write(tmp_path / "t.csv", rows(400))
    devdan("run", "t.csv", "--target", "label", "--model", "devdan-ensemble", "--chunk", 50, "--out", "run",
           folder=tmp_path)  # fmt: skip
    model = DEVDANEnsemble.load(tmp_path / "run/model.devdan")
    labels = model.predict(pd.read_csv(tmp_path / "t.csv")[HEAD[:-1]]).tolist()
    assert [row[0] for row in cells(devdan("predict", "run", "t.csv", folder=tmp_path).stdout)[1:]] == labels
    shown = json.loads(devdan("show", "run", "--json", folder=tmp_path).stdout)
    assert (shown["kind"], shown["n_members"]) == ("DEVDANEnsemble", len(SCALES))
    assert (shown["n_samples"], shown["n_labels"]) == (400, 400)
    assert f"in {len(SCALES)} members" in devdan("show", "run", folder=tmp_path).stdout
    assert "400 labels" in devdan("learn", "run", "t.csv", "--target", "label", folder=tmp_path).stdout
    assert open_model(tmp_path / "run/model.devdan").n_seen_ == 800


@pytest.mark.parametrize("name", ["out.csv", "out.parquet", "out.jsonl"])
def test_predictions_in_a_file(name, made, tmp_path):
    write(tmp_path / "t.csv", rows(300, seed=3))
    run = devdan("predict", made / "run", "t.csv", "--proba", "--keep", "id", "--out", name, folder=tmp_path)
    assert run.stdout == f"300 predictions: {name}\n"
    printed = devdan("predict", made / "run", "t.csv", "--proba", "--keep", "id", folder=tmp_path).stdout
    wanted = pd.read_csv(io.StringIO(printed))
    read = {
        "out.csv": pd.read_csv,
        "out.parquet": pd.read_parquet,
        "out.jsonl": lambda path: pd.read_json(path, lines=True),
    }
    pd.testing.assert_frame_equal(read[name](tmp_path / name), wanted, check_dtype=False)
    text = (tmp_path / "t.csv").read_bytes()
    piped("predict", made / "run", "-", "--proba", "--keep", "id", "--out", f"again-{name}", text=text, folder=tmp_path)
    pd.testing.assert_frame_equal(read[name](tmp_path / f"again-{name}"), wanted, check_dtype=False)


def test_kept_columns_keep_their_types_in_parquet(made, tmp_path):
    table = pd.DataFrame(rows(20), columns=HEAD).assign(age=range(20, 40), n=np.arange(20, dtype=np.int16))
    table.to_parquet(tmp_path / "t.parquet")
    devdan("predict", made / "run", "t.parquet", "--keep", "n,id", "--out", "o.parquet", folder=tmp_path)
    assert pq.read_schema(tmp_path / "o.parquet").names == ["n", "id", "prediction"]
    assert str(pq.read_schema(tmp_path / "o.parquet").field("n").type) == "int16"


def test_what_cannot_be_written_whole_is_not_written(made, tmp_path):
    write(tmp_path / "t.csv", rows(3000, seed=4))
    (tmp_path / "out.csv").write_text("before")
    arguments = ("predict", made / "run", "t.csv", "--proba", "--out", "out.csv")
    code, out, err = Started(*arguments, folder=tmp_path, most_bytes=20_000).wait()
    assert (code, out) == (2, "")
    assert "File too large" in err
    write(tmp_path / "bad.csv", [*rows(30_000, seed=4), ["u1", "2"]])
    assert "instead of 6" in piped(*arguments[:2], "bad.csv", *arguments[3:], text="", folder=tmp_path, code=2).stderr
    assert (tmp_path / "out.csv").read_text() == "before"
    assert not list(tmp_path.glob("*.part"))


def test_killed_while_it_writes_it_leaves_no_half_file(made, tmp_path):
    os.mkfifo(tmp_path / "endless.csv")
    process = Started("predict", made / "run", "-", "--out", "out.csv", folder=tmp_path, stdin="endless.csv")
    with open(tmp_path / "endless.csv", "w") as pipe:  # it waits for more
        pipe.write("age,city,joined,member\n" + 5000 * "30,Bonn,2021-01-01,yes\n")
        pipe.flush()
        process.wait_until(lambda: any(path.stat().st_size > 0 for path in tmp_path.glob("out.csv*.part")))
        process.kill()
    assert not (tmp_path / "out.csv").exists()


def test_memory_does_not_grow_with_the_file(made, tmp_path):
    line = "30,Bonn,2021-01-01,yes\n"
    model, peaks = open_model(made / "run/model.devdan"), []
    for n in (400_000, 1_200_000):
        (tmp_path / "t.csv").write_text("age,city,joined,member\n" + n * line)
        tracemalloc.start()
        assert sum(len(block.labels) for block in TablePredictions(model, files.table(tmp_path / "t.csv"))) == n
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0]


@pytest.mark.parametrize(("name", "told"), [("mixed", []), ("plain", ["--nominal", "code"]), ("arrays", [])])
def test_codes_are_found_however_they_are_read(name, told, tmp_path):
    """007 stays in a column of categories; a model that learned it as the number 7 finds it again."""
    random = np.random.default_rng(0)
    codes = random.choice(["007", "012", "A1" if name == "mixed" else "030"], 600).tolist()
    some = [[f"{random.random():.3f}", code, "spy" if code == "007" else "other"] for code in codes]
    write(tmp_path / "t.csv", some, ["x", "code", "label"])
    if name == "arrays":
        model = DEVDAN(nominal=["code"], random_state=0)
        frame = pd.read_csv(tmp_path / "t.csv")  # which takes 007 for a number
        for X, y in open_stream(frame, target="label", chunk=50):
            model.partial_fit(X, y)
        model.save(tmp_path / "model.devdan")
    else:
        devdan("run", "t.csv", "--target", "label", *told, "--chunk", 50, "--out", "run", folder=tmp_path)
        (tmp_path / "model.devdan").write_bytes((tmp_path / "run/model.devdan").read_bytes())
    known = {"mixed": {"007", "012", "A1"}, "plain": {"007", "012", "030"}, "arrays": {"7", "12", "30"}}[name]
    assert set(open_model(tmp_path / "model.devdan").encoding_.columns["code"].values) == known
    write(tmp_path / "new.csv", [["0.5", "007"], ["0.5", "012"]], ["x", "code"])
    answers = devdan("predict", "model.devdan", "new.csv", folder=tmp_path).stdout
    assert answers == "prediction\nspy\nother\n"
    text = (tmp_path / "new.csv").read_bytes()
    assert piped("predict", "model.devdan", "-", text=text, folder=tmp_path).stdout == answers
    write(tmp_path / "more.csv", [["0.5", "007", "spy"], ["0.5", "0042", "other"]], ["x", "code", "label"])
    devdan("learn", "model.devdan", "more.csv", folder=tmp_path)
    assert set(open_model(tmp_path / "model.devdan").encoding_.columns["code"].values) == known | {"0042"}


# --- Standard input ----------------------------------------------------------------------------------------------


@contextmanager
def talking(*arguments, folder):
    """``devdan`` in a process with pipes, which ends with the test, whatever happens."""
    before = signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # else what a shell runs in the background is deaf
    process = subprocess.Popen(
        [sys.executable, "-m", "devdan", *map(str, arguments)],
        cwd=folder, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        encoding="utf-8", bufsize=1,
    )  # fmt: skip
    signal.signal(signal.SIGINT, before)
    guard = threading.Timer(120, process.kill)  # so that a broken promise ends the test, and does not block it
    guard.start()
    try:
        yield process
    finally:
        guard.cancel()
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            with suppress(BrokenPipeError):
                pipe.close()


def test_each_row_is_answered_before_the_next_is_asked(made):
    some = rows(5, seed=5)
    wanted = devdan("predict", "run", write(made / "five.csv", some), "--keep", "id", folder=made).stdout.splitlines()
    with talking("predict", "run", "-", "--keep", "id", folder=made) as process:
        process.stdin.write(",".join(HEAD) + "\n\n")
        assert process.stdout.readline().strip() == wanted[0]
        for row, answer in zip(some, wanted[1:], strict=True):
            csv.writer(process.stdin, lineterminator="\n").writerow(row)
            assert process.stdout.readline().strip() == answer
            process.stdin.write("\n")
        out, err = process.communicate()
    assert (out, process.returncode) == ("", 0)
    assert err.count("note: ") == 1
    with talking("predict", "run", "-", "--keep", "id", folder=made) as process:
        for found, answer in zip(objects(some), wanted[1:], strict=True):
            process.stdin.write(json.dumps(found) + "\n")
            assert json.loads(process.stdout.readline()) == dict(
                zip(["id", "prediction"], answer.split(","), strict=True)
            )
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
    assert (out, process.returncode) == ("", 130)
    assert "Traceback" not in err
    assert "Abort" not in err


def test_who_reads_may_have_enough(made):
    with talking("predict", "run", "people.csv", folder=made) as process:
        assert process.stdout.readline() == "prediction\n"
        process.stdout.close()
        process.stdin.close()
        process.wait()
        assert process.stderr.read().splitlines() == ["note: columns that the model does not know are ignored: label"]
        assert process.returncode == 0
    with talking("predict", "run", "-", folder=made) as process:
        process.stdin.write("age,city,joined,member\n30,Bonn,2021-01-01,yes\n")
        assert process.stdout.readline() == "prediction\n"
        process.stdout.close()
        try:
            while process.poll() is None:
                process.stdin.write("30,Bonn,2021-01-01,yes\n")
        except BrokenPipeError:
            pass
        process.wait()
        assert process.stderr.read() == ""
        assert process.returncode == 0


def test_lines_of_json_are_answered_with_such(made):
    some = objects(rows(40, seed=6))
    text = "\n".join(json.dumps(found) for found in some) + "\n\n"
    run = piped("predict", "run", "-", "--proba", "--keep", "age", text=text, folder=made)
    answers = [json.loads(line) for line in run.stdout.splitlines()]
    table = pd.DataFrame(rows(40, seed=6), columns=HEAD).assign(age=[found["age"] for found in some])
    labels, shares = expected(made, table)
    assert [list(answer) for answer in answers] == 40 * [["age", "prediction", "p(old)", "p(young)"]]
    assert [answer["age"] for answer in answers] == [found["age"] for found in some]
    assert [answer["prediction"] for answer in answers] == labels.tolist()
    np.testing.assert_array_equal([[answer["p(old)"], answer["p(young)"]] for answer in answers], shares)
    sparse = '{"age": 30, "city": "Bonn", "joined": null, "member": true}\n{"age": 31}\n{"age": "?", "new": [1]}\n'
    assert len(piped("predict", "run", "-", text=sparse, folder=made).stdout.splitlines()) == 3
    for bad, message in (
        ('{"age": 30}\n', "lacks the columns 'city', 'joined', 'member'"),
        (sparse + "{\n", "line 4 is not a JSON object: {"),
        (sparse + "[1]\n", "line 4 is not a JSON object"),
        (sparse + '{"city": [1]}\n', "row 4 has a list in the column 'city'"),
        ("", "standard input is empty"),
    ):
        run = piped("predict", "run", "-", text=bad, folder=made, code=2)
        assert message in run.stderr, run.stderr


def test_a_header_alone_is_answered_with_one(made):
    assert piped("predict", "run", "-", text="age,city,joined,member\n", folder=made).stdout == "prediction\n"


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_a_run_on_standard_input_is_the_run_on_the_file(kind, made, tmp_path):
    text = (made / "people.csv").read_text()
    if kind == "json":
        text = "\n".join(json.dumps(found) for found in objects(rows(2000)))
    run = piped("run", "-", "--target", "label", "--json", text=text, folder=tmp_path)
    assert json.loads(run.stdout)["stream"] == "stdin"
    assert records(tmp_path / "runs/stdin-devdan") == records(made / "run")
    ours, theirs = (open_model(folder / "model.devdan") for folder in (tmp_path / "runs/stdin-devdan", made / "run"))
    assert repr(ours.encoding_) == repr(theirs.encoding_)
    run = piped("run", "-", "--target", "label", "--order", "shuffled", "--limit", 1000, text=text, folder=tmp_path)
    assert "Columns" in run.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--resume"], "--resume is for streams that can be read again"),
        (["--model", "devdan-paper"], "needs a stream that can be read twice, since its inputs are scaled"),
        (["--model", "sklearn-sgd"], "needs a stream that can be read twice, since it must know the classes"),
        (["--endless"], "--endless is for sea"),
        (["--target", "none"], "standard input: there is no column 'none'; the columns are x, label"),
    ],
)
def test_what_standard_input_cannot_do(arguments, message, tmp_path):
    run = piped("run", "-", *arguments, text="x,label\n1,a\n2,b\n", folder=tmp_path, code=2)
    assert message in run.stderr
    assert not (tmp_path / "runs").exists()


def test_a_bad_row_of_standard_input(tmp_path):
    text = "x,label\n" + 700 * "1,a\n" + "\n1,2,3\n"
    run = piped("run", "-", "--chunk", 100, "--out", "out", text=text, folder=tmp_path, code=2)
    assert "standard input: row 701 (line 703) has 3 columns instead of 2: 1,2,3; the 700 samples before" in run.stderr
    assert "resume" not in run.stderr


def test_ctrl_c_ends_a_run_on_standard_input_which_is_kept(tmp_path):
    arguments = ("run", "-", "--target", "label", "--chunk", 10, "--checkpoint", 0, "--out", "out")
    kept = tmp_path / "out/records.jsonl"
    with talking(*arguments, folder=tmp_path) as process:
        lines = "".join(f"{k % 7},{'ab'[k % 2]}\n" for k in range(1000))
        process.stdin.write("x,label\n" + lines)
        process.stdin.flush()
        while not kept.exists() or kept.read_text().count("\n") < 2:  # the first chunk is done, then
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(lines)
    assert process.returncode == 0, err
    assert "resume" not in err
    assert open_model(RunFolder(tmp_path / "out").model_path).n_seen_ >= 10
    assert RunFolder(tmp_path / "out").is_finished


def test_open_files_are_streams():
    stream = open_stream(io.BytesIO(b"a;b;kind\n1,5;x;1\n2;y;0\n"), target="kind", chunk=1)
    assert stream.is_single_pass
    assert [(X.dicts(), y.tolist()) for X, y in stream] == [
        ([{"a": "1,5", "b": "x"}], [1]),
        ([{"a": 2.0, "b": "y"}], [0]),
    ]
    with pytest.raises(StreamError, match="the open file can be read only once"):
        list(stream)
    flags = open_stream(io.StringIO("x,y\n1,true\n2,\n3,false\n"), target="y")
    assert [y.tolist() for _, y in flags] == [[True, None, False]]
    bare = open_stream(io.StringIO("1,2,a\n3,4,b\n"), target=-1)
    assert bare.feature_names == ("column 0", "column 1")
    assert [len(y) for _, y in bare] == [2]
    for text, message in (
        ('x,y\n1,"a\n', "opens a quote that is never closed"),
        ('x,y\n1,"a"b\n', "is no CSV"),
        ("x,y\n1,true\n2,maybe\n", "the label 'maybe' .* is neither true nor false"),
        ("x,y\n1,1\n2,b\n", "the label 'b' after row 1, but numbers before"),
        ('{"x": 1, "y": 1}\n{"x": 2, "y": 2, "z": 3}\n', r"row 2 \(line 2\) has a new column 'z'"),
        ('{"x": 1, "y": 1}\n{"x": 2, "y": "b"}\n', "its labels are of several types after row 0"),
    ):
        with pytest.raises(StreamError, match=message):
            list(open_stream(io.StringIO(text), target="y", chunk=1 if "the label" in message else 2))
    with pytest.raises(StreamError, match="line 2 is not UTF-8"):
        list(open_stream(io.BytesIO(b"x,y\n\xff,1\n"), target="y"))


# --- Learning ----------------------------------------------------------------------------------------------------


def test_learning_on_is_what_partial_fit_does(made, model, tmp_path):
    some = [[*row[:-1], "" if k % 3 == 0 else row[-1]] for k, row in enumerate(rows(1200, seed=7))]
    some[1000][-1] = "ageless"
    write(tmp_path / "more.csv", some)
    before = model.read_bytes()
    run = devdan(
        "learn", model, "more.csv", "--target", "label", "--chunk", 300, "--out", "new.devdan", folder=tmp_path
    )
    known = DEVDAN.load(model)
    units = known.n_hidden_
    for X, y in files.file(tmp_path / "more.csv", target="label", chunk=300):
        has = np.array([label is not None for label in y])
        known.observe(X).teach(X[has], y[has].astype(str))
    known.save(tmp_path / "by-hand.devdan")
    assert (tmp_path / "new.devdan").read_bytes() == (tmp_path / "by-hand.devdan").read_bytes()
    assert model.read_bytes() == before
    assert run.stdout == (
        f"Learned from 1,200 samples, 800 labels; hidden units {units} → {known.n_hidden_}; new classes: ageless. "
        "Saved: new.devdan\n"
    )
    text = (tmp_path / "more.csv").read_bytes()
    piped("learn", model, "-", "--target", "label", "--chunk", 300, text=text, folder=tmp_path)
    assert model.read_bytes() == (tmp_path / "new.devdan").read_bytes()


def test_learning_tells_what_is_new_about_columns(made, model, tmp_path):
    some = [["extra", *row] for row in rows(100, seed=8)]
    some[50][2] = "unknown"
    write(tmp_path / "more.csv", some, ["other", *HEAD])
    run = devdan("learn", model, "more.csv", "--target", "label", folder=tmp_path)
    assert "note: columns that the model does not know are ignored: other" in run.stderr
    assert "note: the column 'age' holds numbers, but also words such as 'unknown'" in run.stderr
    assert "; 1 new note about columns. Saved: " in run.stdout
    run = devdan("learn", model, "more.csv", "--target", "label", "--drop", "other", folder=tmp_path)
    assert run.stderr == ""
    assert "note" not in run.stdout


@pytest.mark.parametrize("out", [[], ["--out", "new.devdan"]])
def test_a_bad_row_leaves_the_model_unchanged(out, model, tmp_path):
    before = model.read_bytes()
    write(tmp_path / "bad.csv", [*rows(30_000), ["u1", "2"]])
    run = devdan("learn", "model.devdan", "bad.csv", "--target", "label", *out, folder=tmp_path, code=2)
    assert re.search(r"row 30001 \(line 30002\) has 2 columns instead of 6: u1,2; nothing is saved, model.devdan is "
                     "unchanged", run.stderr)  # fmt: skip
    for text, message in (
        ("age,city\n1,Bonn\n", "which column has the labels"),
        ("age,city,label\n1,Bonn,old\n", "lacks the columns 'joined', 'member'"),
        ("id,age,city,joined,member,label\na,1,Bonn,2021-01-01,yes,3\n", "number"),
    ):
        (tmp_path / "bad.csv").write_text(text)
        run = devdan("learn", "model.devdan", "bad.csv", *out, folder=tmp_path, code=2)
        assert message in run.stderr
        assert "model.devdan is unchanged" in run.stderr
    assert model.read_bytes() == before
    assert not (tmp_path / "new.devdan").exists()


def test_ctrl_c_that_python_drops_counts_at_the_end():
    with pytest.raises(KeyboardInterrupt), stoppable(), suppress(KeyboardInterrupt):  # as an import's finaliser does
        signal.raise_signal(signal.SIGINT)
    with stoppable():
        pass


def test_ctrl_c_saves_nothing_and_says_so(model, tmp_path):
    before = model.read_bytes()
    with talking("learn", "model.devdan", "-", "--target", "label", "--chunk", 1, folder=tmp_path) as process:
        process.stdin.write(",".join(HEAD) + ",other\n")
        assert "are ignored: other" in process.stderr.readline()  # it waits for rows now
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
    assert (process.returncode, out) == (130, "")
    assert err.endswith("Stopped: nothing is saved, model.devdan is unchanged.\n")
    assert model.read_bytes() == before


# --- Showing -----------------------------------------------------------------------------------------------------


def test_a_model_is_shown(made):
    shown = devdan("show", "run", folder=made).stdout
    for words in ("DEVDAN", "random_state=0", "2,000 samples, 2,000 labels", "2: old, young", "nominal: 3 values",
                  "left out: it is nearly unique", "flag", "hidden units", "growth"):  # fmt: skip
        assert words in shown
    facts = json.loads(devdan("show", "run/model.devdan", "--json", folder=made).stdout)
    model = DEVDAN.load(made / "run/model.devdan")
    assert facts["bytes"] == (made / "run/model.devdan").stat().st_size
    assert (facts["kind"], facts["n_members"]) == ("DEVDAN", None)
    assert facts["options"] == {"random_state": 0}
    assert [column["kind"] for column in facts["columns"]] == ["nominal", "number", "nominal", "date", "flag"]
    assert facts["columns"][2]["values"] == model.encoding_.columns["city"].values
    assert (facts["n_hidden"], facts["n_parameters"]) == (model.n_hidden_, model.n_parameters_)
    assert (facts["n_inputs"], facts["n_features"]) == (len(model.encoding_), 5)
    assert len(facts["events"]) == 10
    assert facts["notes"] == model.encoding_.notes
    assert facts["importances"] == model.importances_
    strongest = max(model.importances_, key=model.importances_.get)
    assert f"what matters now  {strongest} {100 * model.importances_[strongest]:.0f} %" in shown


def test_options_that_were_set_are_shown(tmp_path):
    X, y = np.random.default_rng(0).random((50, 3)), np.arange(50) % 2
    start = {"encoder": np.full((3, 2), 0.5)}
    DEVDAN(masking=0.2, initial_weights=start).fit(X, y).save(tmp_path / "a")
    DEVDANEnsemble([(1,)] * 3, estimator=DEVDAN(learning_rate=0.1)).fit(X, y).save(tmp_path / "b")
    options = [json.loads(devdan("show", name, "--json", folder=tmp_path).stdout)["options"] for name in "ab"]
    assert options == [
        {"masking": 0.2, "initial_weights": {"encoder": start["encoder"].tolist()}},
        {"scales": [[1]] * 3, "estimator: learning_rate": 0.1},
    ]
    assert "without names: by position" in devdan("show", "a", folder=tmp_path).stdout


# --- What is said about columns ----------------------------------------------------------------------------------


def people(path):
    table = pd.DataFrame(rows(300), columns=HEAD)
    table["zip"] = [f"{k % 4:03}" for k in range(300)]
    table["nr"] = range(300)
    table["born"] = "31/12/2001"
    table["sent"] = 1_700_000_000 + 4000 * np.arange(300)
    table.to_csv(path, index=False)


TOLD = ("--nominal", "zip", "--numeric", "nr", "--dates", "born=dd/mm/yyyy", "--dates", "sent=epoch")


@pytest.mark.parametrize("model", ["devdan", "devdan-ensemble", "pensemble"])
def test_columns_are_what_the_user_says(model, tmp_path):
    people(tmp_path / "t.csv")
    run = devdan("run", "t.csv", "--target", "label", *TOLD, "--drop", "joined", "--model", model, "--chunk", 100,
                 "--out", "run", folder=tmp_path)  # fmt: skip
    columns = {column["name"]: column for column in json.loads((tmp_path / "run/summary.json").read_text())["columns"]}
    kinds = {name: columns[name]["kind"] for name in ("zip", "nr", "born", "sent")}
    assert kinds == {"zip": "nominal", "nr": "number", "born": "date", "sent": "date"}
    assert "joined" not in columns
    assert columns["nr"]["left_out"] is None
    assert columns["sent"]["periods"][0] == "time of day"
    assert re.search(r"Columns\n.*zip +nominal: 4 values", run.stdout, re.DOTALL)
    assert run.stderr.count("the column 'id' is left out") == (model != "pensemble")
    again = ("run", "t.csv", "--target", "label", "--drop", "joined", "--model", model, "--chunk", 100, "--out", "run")
    assert "is already finished" in devdan(*again, *TOLD, "--resume", folder=tmp_path).stderr
    refused = devdan(*again, *TOLD[:-2], "--resume", folder=tmp_path, code=2).stderr
    assert re.search("contains another run: its option (dates|estimator) is", refused)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["t.csv", "--nominal", "zap"], "nominal names the column 'zap', but there are only id, age"),
        (["t.csv", "--dates", "born=weekday"], "dates must be"),
        (["t.csv", "--nominal", "zip", "--numeric", "zip"], "'zip' is named twice"),
        (["t.csv", "--nominal", "zip", "--model", "sklearn-sgd"], "are for the models of this package; sklearn-sgd"),
        (["t.csv", "--nominal", "zip", "--model", "sklearn.naive_bayes:GaussianNB"], "for the models of this package"),
        (["sea", "--numeric", "x1"], "--numeric is for files; sea is known by name"),
        (["t.npz", "--numeric", "x1"], "are for tables; t.npz has numbers only"),
    ],
)
def test_what_cannot_be_said_about_columns(arguments, message, tmp_path):
    people(tmp_path / "t.csv")
    np.savez(tmp_path / "t.npz", X=np.zeros((20, 2)), y=np.arange(20) % 2)
    target = ["--target", "label"] if arguments[0] == "t.csv" else []
    assert message in devdan("run", *arguments, *target, folder=tmp_path, code=2).stderr
    assert not (tmp_path / "runs").exists()


def test_an_npz_file_may_be_a_table(tmp_path):
    some = {name: np.array(cells) for name, cells in zip(HEAD, zip(*rows(300), strict=True), strict=True)}
    np.savez(tmp_path / "t.npz", zip=np.arange(300) % 4, **some)
    devdan("run", "t.npz", "--target", "label", "--nominal", "zip", "--chunk", 50, "--out", "run", folder=tmp_path)
    assert open_model(tmp_path / "run/model.devdan").encoding_.columns["zip"].kind == "nominal"
    found = cells(devdan("predict", "run", "t.npz", "--keep", "id", folder=tmp_path).stdout)
    assert [row[0] for row in found[1:]] == some["id"].tolist()


def test_the_page_says_what_became_of_the_columns(made, tmp_path):
    page = (made / "run/report.html").read_text()
    assert "<h2>Columns</h2>" in page
    assert '<th scope="row">city</th><td>nominal: 3 values (' in page
    summary = json.loads((made / "run/summary.json").read_text())
    for name in ("run.json", "records.jsonl"):
        (tmp_path / name).write_bytes((made / "run" / name).read_bytes())
    for columns in (3, [{"name": "<b>"}]):
        (tmp_path / "summary.json").write_text(json.dumps(summary | {"columns": columns}))
        assert "summary.json is damaged" in devdan("report", tmp_path, folder=tmp_path, code=2).stderr
    hostile = [{"name": "<b>", "became": "</script>"}, *({"name": f"n{k}", "became": f"kind {k}"} for k in range(300))]
    (tmp_path / "summary.json").write_text(json.dumps(summary | {"columns": hostile}))
    devdan("report", tmp_path, folder=tmp_path)
    page = (tmp_path / "report.html").read_text()
    assert "&lt;b&gt;</th><td>&lt;/script&gt;" in page
    assert "101 more are in the summary" in page
