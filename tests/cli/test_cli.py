"""The command line as its users meet it: what they see, what is left, and what happens when things go wrong."""

import gzip
import json
import os
import platform
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numba
import numpy as np
import pytest
from commandline import devdan, records, results
from processes import Started, environment
from sklearn.datasets import make_blobs

from devdan import DEVDAN, __version__
from devdan.evaluation.record import Record
from devdan.streams import sea

WHICH_RUN = ["stream", "model", "seed", "chunk", "labels", "n_samples"]
SOME_MEASURES = {"cr_mean", "cr_std", "kappa", "majority_rate", "roc_auc", "rarest_recall", "hn_mean", "train_seconds"}


def test_a_run_leaves_everything(tmp_path):
    run = devdan("run", "sea", "--limit", 5000, "--out", "here", folder=tmp_path)
    for words in ("classification rate", "execution time", "hidden units", "parameters", "Report: here/report.html"):
        assert words in run.stdout
    assert re.search(r"sea: 2,500 of 5,000 samples, .*accuracy .* so far, .* recently, \d+ hidden unit", run.stderr)
    assert {path.name for path in (tmp_path / "here").iterdir()} == {
        *("run.json", "records.jsonl", "summary.json", "model.devdan", "report.html")
    }
    for line in (tmp_path / "here/records.jsonl").read_text().splitlines():
        assert Record.from_json(line).n_samples == 500
    assert DEVDAN.load(tmp_path / "here/model.devdan").n_seen_ == 5000


def test_json_is_one_object_and_nothing_else(tmp_path):
    run = devdan("run", "hyperplane", "--limit", 3000, "--seed", 4, "--chunk", 250, "--json", folder=tmp_path)
    result = json.loads(run.stdout)
    assert list(result)[: len(WHICH_RUN)] == WHICH_RUN
    assert result.keys() >= SOME_MEASURES
    assert (result["stream"], result["model"], result["seed"], result["chunk"]) == ("hyperplane", "devdan", 4, 250)
    assert (result["labels"], result["n_samples"]) == ("all", 3000)
    summary = json.loads((tmp_path / "runs/hyperplane-devdan/summary.json").read_text())
    assert {key: summary[key] for key in result} == result


def test_the_same_command_gives_the_same_and_another_seed_another(tmp_path):
    for folder, seed in (("a", 1), ("b", 1), ("c", 2)):
        devdan(
            "run", "sea", "--limit", 4000, "--seed", seed, "--labels", "fraction:0.5", "--out", folder, folder=tmp_path
        )
    assert results(tmp_path / "a") == results(tmp_path / "b")
    assert results(tmp_path / "a")[0] != results(tmp_path / "c")[0]


def test_without_a_folder_each_run_gets_its_own(tmp_path):
    for _ in range(2):
        devdan("run", "sea", "--limit", 1000, folder=tmp_path)
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == ["sea-devdan", "sea-devdan-2"]


def test_a_file_of_ones_own(tmp_path):
    X, y = make_blobs(3000, centers=3, random_state=0)
    lines = [f"{a:.3f},{b:.3f},{'pqr'[label]}" for (a, b), label in zip(X, y, strict=True)]
    text = "one,two,kind\n" + "\n".join(lines) + "\n"
    (tmp_path / "my.csv").write_text(text)
    with gzip.open(tmp_path / "my.csv.gz", "wt") as file:
        file.write(text)
    cr = []
    for name in ("my.csv", "my.csv.gz"):
        run = devdan("run", name, "--target", "kind", "--json", "--out", f"{name}-out", folder=tmp_path)
        cr.append(json.loads(run.stdout)["cr_mean"])
    assert cr[0] == cr[1] > 90
    summary = json.loads((tmp_path / "my.csv-out/summary.json").read_text())
    assert set(summary["classes"]) == set("pqr")
    devdan("run", "my.csv", "--target", "kind", "--order", "shuffled", "--model", "devdan-paper", folder=tmp_path)
    assert json.loads((tmp_path / "runs/my-devdan-paper/run.json").read_text())["scaled"] is True


@pytest.mark.parametrize("model", ["sklearn.naive_bayes:GaussianNB", "river.naive_bayes:GaussianNB", "dae"])
def test_other_models(model, tmp_path):
    if model.startswith("river"):
        pytest.importorskip("river")
    run = devdan("run", "sea", "--limit", 3000, "--model", model, "--json", "--out", "out", folder=tmp_path)
    result = json.loads(run.stdout)
    assert result["model"] == model
    assert result["cr_mean"] > 75  # 64 % of the samples are of one class
    assert (result["hn_mean"] is None) == (model != "dae")


def test_a_run_of_one_chunk_says_that_nothing_was_scored(tmp_path):
    arguments = ("run", "sea", "--limit", 400, "--json")
    run = devdan(*arguments, folder=tmp_path)
    assert json.loads(run.stdout)["cr_mean"] is None
    assert "note: nothing was scored: all 400 samples are in the first chunk" in run.stderr
    assert "Use a --chunk smaller than 500, such as 40" in run.stderr
    run = devdan(*arguments, "--chunk", 40, folder=tmp_path)
    assert json.loads(run.stdout)["cr_mean"] > 75  # 58 % of the samples are of one class
    assert "note:" not in run.stderr


def test_options_reach_the_model(tmp_path):
    devdan("run", "sea", "--limit", 1000, "--set", "n_hidden=7", "--set", "grow=false", "--set", "prune=false",
           "--out", "out", folder=tmp_path)  # fmt: skip
    assert {record["n_hidden"] for record in records(tmp_path / "out")} == {7}


@pytest.fixture(scope="module")
def bad_files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bad")
    head, row = "x,y,label\n", "0.5,2,a\n"
    (folder / "ok.csv").write_text(head + 2 * row)
    (folder / "plain.csv").write_text("x,y,z\n" + row)
    (folder / "year.csv").write_text("id,2019,label\n" + 9 * row)
    (folder / "years.csv").write_text("2018,2019,2020\n" + 9 * row)
    (folder / "empty.csv").write_text("")
    (folder / "header.csv").write_text(head)
    (folder / "short.csv").write_text(head + 100_000 * row + "0.5,2\n" + row)
    noise = np.random.default_rng(0).random(400_000)
    packed = gzip.compress((head + "".join(f"{value},2,a\n" for value in noise)).encode())
    (folder / "cut.csv.gz").write_bytes(packed[: len(packed) // 2])
    return folder


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["electrcity"], "no stream or file 'electrcity'; did you mean electricity"),
        (["no.csv"], "no such file: no.csv"),
        (["weather"], "weather is not on this machine.*devdan fetch weather"),
        (["sea", "--model", "devdn"], "no model 'devdn'; did you mean devdan"),
        (["sea", "--model", "numpy:nothing"], "cannot be imported"),
        (["sea", "--model", "sklearn.svm:SVC"], "a model must be a classifier"),
        (["sea", "--model", "math:pi"], "math:pi is not a class"),
        (["sea", "--model", "sklearn.preprocessing:StandardScaler"], "a model must be a classifier"),
        (["sea", "--set", "maskin=0.1"], "no option 'maskin'; did you mean masking"),
        (
            ["sea", "--set", "zzz=1"],
            "no option 'zzz'; its options are n_hidden, initial_weights, .*random_state",
        ),
        (
            ["sea", "--model", "zzz"],
            "no model 'zzz'; the models are devdan, .*logreg-window-20000. Give any other class",
        ),
        (["years.csv"], "its 3 columns have no names; if its first line has their names, say so with --header"),
        (["years.csv", "--target", "label"], "no column 'label'; .* say so with --header"),
        (["years.csv", "--target", "-1", "--drop", "id"], "no column 'id'; .* say so with --header"),
        (["year.csv", "--target", "-1"], "row 1 .* has 'id' in column 'column 0', .* say so with --header"),
        (["sea", "--set", "masking=2"], r"masking must be in \[0, 1\), got 2"),
        (["sea", "--set", "masking"], "--set takes option=value"),
        (["sea", "--labels", "some"], "labels must be one of all"),
        (["sea", "--target", "x"], "--target is for files; sea is known by name"),
        (["sea", "--model", "sklearn.linear_model:SGDClassifier", "--labels", "uncertain:0.1"], "predict_proba"),
        (["ok.csv", "--target", "z"], "no column 'z'; the columns are x, y, label"),
        (["ok.csv", "--target", "x"], "must be classes, got 0.5 in row 1"),
        (["ok.csv", "--endless"], "--endless is for sea and hyperplane"),
        (["plain.csv"], "which column has the labels"),
        (["empty.csv"], "empty.csv is empty"),
        (["header.csv"], "has no rows"),
        (["short.csv"], r"row 100001 \(line 100002\) has 2 columns instead of 3"),
        (["cut.csv.gz"], "damaged or incomplete after row"),
    ],
)
def test_bad_input_is_one_clear_line(arguments, message, bad_files, tmp_path):
    run = devdan("run", *arguments, "--out", tmp_path / "out", folder=bad_files, code=2)
    assert re.search(message, run.stderr), run.stderr


def test_a_word_among_numbers_is_a_note(tmp_path):
    (tmp_path / "my.csv").write_text("x,y,label\n" + 100_000 * "0.5,2,a\n" + 3 * "oops,2,b\n" + 9 * "0.5,2,a\n")
    for model in ("devdan", "devdan-paper"):  # the latter has its inputs scaled beforehand
        run = devdan("run", "my.csv", "--model", model, folder=tmp_path)
        assert run.stderr.count("note: ") == 1
        assert "note: the column 'x' holds numbers, but also words such as 'oops'" in run.stderr
        assert re.search("x +number, and words: oops", run.stdout)


def test_what_was_read_before_a_bad_row_is_kept(tmp_path):
    (tmp_path / "my.csv").write_text("x,label\n" + 150_000 * "0.5,1\n1.5,0\n" + "1,2,3\n")
    run = devdan("run", "my.csv", "--out", "out", folder=tmp_path, code=2)
    n_samples = sum(record["n_samples"] for record in records(tmp_path / "out"))
    assert n_samples > 50_000
    assert (
        f"columns instead of 2: 1,2,3; the {n_samples:,} samples before it are saved: see out/report.html" in run.stderr
    )
    assert (tmp_path / "out/report.html").exists()
    (tmp_path / "my.csv").write_text("x,label\n" + 150_000 * "0.5,1\n1.5,0\n" + "1,2,3\n")
    devdan("run", "my.csv", "--out", "out", "--resume", folder=tmp_path, code=2)


def test_a_folder_that_cannot_take_the_run_is_an_error_before_the_work(tmp_path):
    (tmp_path / "file").write_text("")
    run = devdan("run", "sea", "--out", "file/out", folder=tmp_path, code=2)
    assert "cannot be used for the run" in run.stderr
    devdan("run", "sea", "--limit", 1000, "--out", "out", folder=tmp_path)
    before = results(tmp_path / "out")
    run = devdan("run", "sea", "--limit", 1000, "--out", "out", folder=tmp_path, code=2)
    assert "holds a finished run: --overwrite starts again" in run.stderr
    run = devdan("run", "sea", "--limit", 2000, "--out", "out", "--resume", folder=tmp_path, code=2)
    assert "contains another run: its limit is 1000, not 2000" in run.stderr
    assert results(tmp_path / "out") == before
    again = devdan("run", "sea", "--limit", 1000, "--out", "out", "--resume", "--json", folder=tmp_path)
    assert "already finished" in again.stderr
    assert json.loads(again.stdout)["n_samples"] == 1000
    devdan("run", "sea", "--limit", 2000, "--out", "out", "--overwrite", folder=tmp_path)
    assert len(records(tmp_path / "out")) == 4


def test_a_full_disk_loses_nothing(tmp_path):
    arguments = ("run", "sea", "--chunk", 100, "--limit", 40_000, "--checkpoint", 0.001, "--out", "out")
    run = devdan(*arguments, folder=tmp_path, code=2, most_bytes=300_000)
    assert re.search(r"File too large.*continue with: devdan run .* --resume", run.stderr)
    devdan(*arguments, "--resume", folder=tmp_path)
    devdan(*arguments[:-1], "unbroken", folder=tmp_path)
    assert results(tmp_path / "out") == results(tmp_path / "unbroken")


def test_a_folder_is_for_one_run_at_a_time_and_nothing_damaged_is_taken_up(tmp_path):
    process = Started("run", "sea", "--endless", "--checkpoint", 0.05, "--out", "out", folder=tmp_path)
    process.wait_until((tmp_path / "out/checkpoint.pickle").exists)
    again = ("run", "sea", "--endless", "--out", "out")
    assert "is in use by another run" in devdan(*again, "--resume", folder=tmp_path, code=2).stderr
    process.kill()
    assert "holds an unfinished run" in devdan(*again, folder=tmp_path, code=2).stderr
    changed = devdan(*again, "--resume", "--set", "masking=0.3", folder=tmp_path, code=2).stderr
    assert "its option masking is 0.1, not 0.3" in changed
    checkpoint = bytearray((tmp_path / "out/checkpoint.pickle").read_bytes())
    checkpoint[len(checkpoint) // 2] ^= 1
    (tmp_path / "out/checkpoint.pickle").write_bytes(checkpoint)
    assert "is damaged" in devdan(*again, "--resume", folder=tmp_path, code=2).stderr
    (tmp_path / "out/run.json").write_text("{")
    assert "is damaged" in devdan(*again, "--resume", folder=tmp_path, code=2).stderr
    devdan("run", "sea", "--limit", 1000, "--out", "out", "--overwrite", folder=tmp_path)


def test_a_file_that_has_changed_is_another_stream(tmp_path):
    path = tmp_path / "my.csv"
    path.write_text("x,label\n" + "0.500000,1\n1.500000,0\n" * 60_000 + "1,2,3\n")
    devdan("run", "my.csv", "--out", "out", folder=tmp_path, code=2)
    path.write_text("x,label\n" + "0.500000,1\n1.500000,0\n" * 50_000 + "1.500000,1\n0.500000,0\n" * 10_000 + "1,2,3\n")
    assert "its source is" in devdan("run", "my.csv", "--out", "out", "--resume", folder=tmp_path, code=2).stderr


def test_the_command_on_the_page_can_be_typed(tmp_path):
    devdan("run", "sea", "--limit", 1000, "--json", "--out", "out", "--seed", 3, folder=tmp_path)
    assert json.loads((tmp_path / "out/run.json").read_text())["command"] == "devdan run sea --limit 1000 --seed 3"


def test_a_model_of_ones_own(tmp_path):
    (tmp_path / "mine.py").write_text("from sklearn.naive_bayes import GaussianNB\nclass Mine(GaussianNB): pass\n")
    executable = Path(sys.executable).parent / "devdan"
    subprocess.run(
        [executable, "run", "sea", "--limit", "1000", "--model", "mine:Mine"],
        cwd=tmp_path, env=environment(), check=True, capture_output=True,
    )  # fmt: skip
    (settings,) = tmp_path.glob("runs/*/run.json")
    assert json.loads(settings.read_text())["model"] == "mine:Mine"


ARGUMENTS = ["run", "sea", "--chunk", "50", "--limit", "60000", "--labels", "delay:0-700", "--checkpoint", "0.02"]


@pytest.mark.parametrize("seed", range(2))
def test_killed_at_random_moments_it_ends_as_if_it_had_not_been(seed, tmp_path):
    chance = random.Random(seed)
    devdan(*ARGUMENTS, "--seed", seed, "--out", "unbroken", folder=tmp_path)
    out, kills = tmp_path / "broken", 0
    while not (out / "summary.json").exists() or (out / "checkpoint.pickle").exists():
        process = Started(*ARGUMENTS, "--seed", seed, "--out", out, "--resume", folder=tmp_path)
        done = (out / "records.jsonl").stat().st_size if (out / "records.jsonl").exists() else 0

        def grew(done=done):
            path = out / "records.jsonl"
            return path.exists() and path.stat().st_size > done

        if chance.random() < 0.8:
            process.wait_until(grew)  # it works now
        time.sleep(0.25 * chance.random())
        if kills < 20:  # enough, also where the machine is slow
            kills += process.works
            process.kill()
        else:
            process.wait()
    assert kills >= 2
    assert results(out) == results(tmp_path / "unbroken")
    assert not list(out.glob("*.part"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_stops_cleanly_and_says_how_to_go_on(number, tmp_path):
    process = Started("run", "sea", "--endless", "--out", "out", folder=tmp_path)
    told = tmp_path / "out/records.jsonl"
    process.wait_until(lambda: told.exists() and len(told.read_text().splitlines()) > 5)
    process.send(number)
    code, out, err = process.wait()
    assert code == 128 + number
    assert out == ""
    assert "Traceback" not in err
    stopped = re.search(
        r"Stopped after ([\d,]+) samples\. Continue with: devdan run sea --endless --out out --resume", err
    )
    assert stopped, err
    n = int(stopped[1].replace(",", ""))
    assert sum(record["n_samples"] for record in records(tmp_path / "out")) == n
    assert (tmp_path / "out/report.html").exists()


def test_an_unfinished_run_is_found_again_without_its_folder(tmp_path):
    process = Started(*ARGUMENTS, folder=tmp_path)
    process.wait_until((tmp_path / "runs/sea-devdan/checkpoint.pickle").exists)
    process.kill()
    run = devdan(*ARGUMENTS, "--resume", folder=tmp_path)
    assert "runs/sea-devdan/report.html" in run.stdout
    devdan(*ARGUMENTS, "--out", "unbroken", folder=tmp_path)
    assert results(tmp_path / "runs/sea-devdan") == results(tmp_path / "unbroken")


def test_an_unknown_measure_to_compare_by_is_refused(tmp_path):
    message = r"^devdan: by must be a measure, got 'recal': name one of .*CR, .*kappa"
    assert re.search(message, devdan("report", "a", "b", "--by", "recal", folder=tmp_path, code=2).stderr)
    run = devdan("table", "--streams", "sea", "--models", "ae", "--by", "recal", folder=tmp_path, code=2)
    assert re.search(message, run.stderr)
    assert list(tmp_path.iterdir()) == []


def test_reports(tmp_path):
    for seed in (1, 2):
        devdan("run", "sea", "--limit", 2000, "--seed", seed, "--out", f"run{seed}", folder=tmp_path)
    (tmp_path / "run1/report.html").unlink()
    run = devdan("report", "run1", folder=tmp_path)
    assert run.stdout.strip() == "Report: run1/report.html"
    assert (tmp_path / "run1/report.html").exists()
    devdan("report", "run1", "run2", folder=tmp_path)
    assert "2 runs on sea" in (tmp_path / "comparison.html").read_text()
    devdan("report", "run1", "--picture", "run.svg", folder=tmp_path)
    assert (tmp_path / "run.svg").read_text().startswith("<svg")
    assert "no" in devdan("report", "run3", folder=tmp_path, code=2).stderr


def test_streams_are_listed(tmp_path):
    rows = json.loads(devdan("streams", "--json", folder=tmp_path).stdout)
    assert [row["name"] for row in rows if row["suite"] == "paper"] == (
        ["sea", "hyperplane", "electricity", "weather", "kddcup", "susy", "hepmass", "rlcps", "rfid"]
    )
    assert "wall_robot" in [row["name"] for row in rows if row["suite"] == "real"]
    assert {row["name"]: row["here"] for row in rows} == {
        **dict.fromkeys(row["name"] for row in rows),
        "sea": "generated",
        "hyperplane": "generated",
    }
    (tmp_path / "weather.csv").write_text("")
    listed = devdan("streams", "--data", tmp_path, folder=tmp_path).stdout
    assert re.search(r"weather .*18,159 .*8 .*2 .*yes", listed)
    assert re.search(r"susy .*can be fetched", listed)
    assert re.search(r"rfid .*your own file", listed)


def test_fetch_says_what_it_cannot_do(tmp_path):
    assert "cannot be downloaded in one step" in devdan("fetch", "rfid", folder=tmp_path, code=2).stderr
    assert "did you mean susy" in devdan("fetch", "suzy", folder=tmp_path, code=2).stderr
    (tmp_path / "weather.csv").write_text("")
    assert f"weather: {tmp_path}" in devdan("fetch", "weather", "--data", tmp_path, folder=tmp_path).stdout


def test_help_and_version(tmp_path):
    own, python, others = devdan("--version", folder=tmp_path).stdout.splitlines()
    assert own == f"devdan {__version__}"
    assert python.startswith(f"{platform.python_implementation()} {platform.python_version()} on ")
    assert f"numpy {np.__version__}, numba {numba.__version__}" in others
    for words in (["--help"], ["run", "--help"], ["streams", "--help"], ["fetch", "--help"], ["report", "--help"]):
        assert "Usage" in devdan(*words, folder=tmp_path).stdout
    shown = subprocess.run(
        [Path(sys.executable).parent / "devdan"],
        env=environment(_DEVDAN_COMPLETE="complete_bash", COMP_WORDS="devdan run we", COMP_CWORD="2"),
        capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert "weather" in shown.stdout


def test_a_table_is_made_and_taken_up_again(tmp_path):
    arguments = ("table", "--streams", "sea,susy", "--models", "ae,dae,sklearn-sgd", "--seeds", 2, "--limit", 1500)
    run = devdan(*arguments, "--labels", "all,fraction:0.5", folder=tmp_path)
    assert "12 runs. Report: table/table.html" in run.stdout
    assert "devdan fetch susy" in run.stderr
    assert re.search(r"sea, dae, fraction:0.5, seed 1: CR [\d.]+ ± [\d.]+ %; about 0:00:00 left", run.stderr)
    for name in ("table.html", "table.md", "table.csv", "table.tex", "table.json"):
        assert (tmp_path / "table" / name).exists()
    times = {path: path.stat().st_mtime_ns for path in (tmp_path / "table/cells").rglob("*.json")}
    next(iter(times)).unlink()
    again = devdan(*arguments, "--labels", "all,fraction:0.5", "--json", folder=tmp_path)
    result = json.loads(again.stdout)
    assert (result["n_runs"], result["n_failed"], result["n_planned"]) == (12, 0, 12)
    rate = next(row for row in result["rows"] if (row["model"], row["criterion"]) == ("ae", "CR"))
    assert rate["n_seeds"] == 2
    assert rate["mean"] > 75  # 65 % of the samples are of one class
    later = {path: path.stat().st_mtime_ns for path in (tmp_path / "table/cells").rglob("*.json")}
    assert len(later) == 12
    assert sum(later[path] != times[path] for path in times) == 1


def write_csv(path, seed):
    """SEA with a column that must not be learned from."""
    X, y = next(iter(sea(1500, chunk=1500, seed=seed)))
    lines = [
        f"{k},{a},{b},{c},{'up' if label else 'down'}" for k, ((a, b, c), label) in enumerate(zip(X, y, strict=True))
    ]
    path.write_text("\n".join(["id,a,b,c,kind", *lines]) + "\n")


def test_a_table_compares_models_on_files(tmp_path):
    write_csv(tmp_path / "mine.csv", 1)
    write_csv(tmp_path / "sea.csv", 2)
    arguments = ("table", "--streams", "mine.csv,sea.csv", "--target", "kind", "--drop", "id")
    arguments += ("--models", "devdan,dae,sklearn-sgd", "--seeds", 1)
    assert "6 runs. Report: table/table.html" in devdan(*arguments, folder=tmp_path).stdout
    text = (tmp_path / "table/table.md").read_text()
    assert "paper" not in re.sub("devdan-paper|the paper's settings", "", text.split("## What was run")[0])
    assert "- mine: mine.csv, target kind, without id" in text
    assert "in the paper" not in (tmp_path / "table/table.html").read_text()
    alone = devdan("run", "mine.csv", "--target", "kind", "--drop", "id", "--json", folder=tmp_path)
    result = json.loads((tmp_path / "table/cells/mine/devdan/all/0.json").read_text())
    assert result["cr_mean"] == json.loads(alone.stdout)["cr_mean"]
    times = {path: path.stat().st_mtime_ns for path in (tmp_path / "table/cells").rglob("*.json")}
    assert {path.parts[-4] for path in times} == {"mine", "sea.csv"}  # the latter is not the paper's
    write_csv(tmp_path / "mine.csv", 3)  # the same name, but not the same stream
    devdan(*arguments, folder=tmp_path)
    later = {path: path.stat().st_mtime_ns for path in (tmp_path / "table/cells").rglob("*.json")}
    assert {path.parts[-4] for path in times if later[path] != times[path]} == {"mine"}


@pytest.mark.parametrize("listed", ['sea,"a,b.csv", .hidden.csv', "a,b.csv", ".hidden.csv"])
def test_a_table_of_files_with_odd_names(listed, tmp_path):
    for name in ("a,b.csv", ".hidden.csv"):
        write_csv(tmp_path / name, 1)
    arguments = ("--target", "kind", "--models", "sklearn-sgd", "--seeds", 1, "--limit", 1000)
    devdan("table", "--streams", listed, *arguments, folder=tmp_path)
    names = {name for name, word in {"sea": "sea", "a,b": "a,b", "hidden": ".hidden"}.items() if word in listed}
    assert {path.name for path in (tmp_path / "table/cells").iterdir()} == names
    assert names <= set(json.loads((tmp_path / "table/table.json").read_text())["streams"])
    devdan("run", ".hidden.csv", "--target", "kind", "--limit", 1000, folder=tmp_path)
    assert (tmp_path / "runs/hidden-devdan/report.html").exists()


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_table_says_each_note_once(jobs, tmp_path):
    write_csv(tmp_path / "my.csv", 1)
    text = (tmp_path / "my.csv").read_text()
    (tmp_path / "my.csv").write_text(re.sub(r"(?m)^(\d+),", r"n\1,", text))
    arguments = ("--streams", "my.csv", "--target", "kind", "--models", "devdan,sklearn-sgd", "--seeds", 2)
    run = devdan("table", *arguments, "--jobs", jobs, folder=tmp_path)
    assert run.stderr.count("note: ") == run.stderr.count("different texts") == 1
    assert "Warning" not in run.stderr
    assert "4 runs." in run.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--streams", "see"], "no stream 'see'; did you mean sea"),
        (["--streams", "see.csv"], "no such file: see.csv"),
        (["--streams", "sea", "--target", "y"], "--target is for files"),
        (["--models", "devdann"], "no model 'devdann'; did you mean devdan"),
        (["--models", ","], "name at least one model"),
        (["--models", "zzz"], "no model 'zzz'; the models are devdan, "),
        (["--streams", "zzz"], "no stream 'zzz'; the streams are sea, hyperplane, "),
        (["--streams", "sea\nsusy"], "a list must be words separated by commas"),
        (["--labels", "few"], "labels must be one of"),
    ],
)
def test_a_table_of_nothing_known(arguments, message, tmp_path):
    assert message in devdan("table", *arguments, folder=tmp_path, code=2).stderr


@pytest.fixture
def ctrl_c():
    """Tests that a shell runs in the background do not hear it, nor would what they start."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c")
def test_a_table_that_is_interrupted_goes_on(tmp_path):
    arguments = ["table", "--streams", "sea,hyperplane", "--models", "devdan,dae", "--seeds", "20", "--jobs", "2"]
    process = subprocess.Popen(
        [sys.executable, "-m", "devdan", *arguments],
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    while len(list((tmp_path / "table").rglob("cells/*/*/*/*.json"))) < 3 and process.poll() is None:
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)
    err = process.communicate()[1]
    assert process.returncode == 130, err
    stopped = re.search(r"Stopped after (\d+) of 80 runs; the same command continues", err)
    assert stopped, err
    assert 3 <= int(stopped[1]) < 80
    assert not list((tmp_path / "table").rglob("*.part"))


def test_a_table_stops_what_takes_too_long(tmp_path):
    words = ("table", "--streams", "sea", "--models", "ae", "--seeds", 1, "--limit", 2000)
    said = devdan(*words, "--stop-after", 0, folder=tmp_path)
    assert "sea, ae, all, seed 0: stopped after 0 min, at sample 500" in said.stderr
    assert "1 runs, 1 stopped after 0 min." in said.stdout
    assert "| ae | > 0 min |" in (tmp_path / "table" / "table.md").read_text()
    assert "seed 0" not in devdan(*words, "--stop-after", 0, folder=tmp_path).stderr  # not again
    assert "seed 0: CR" in devdan(*words, folder=tmp_path).stderr
