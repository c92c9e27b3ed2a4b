"""Folders of runs: which process holds them, which version may resume them, and what tells two runs apart."""

import json
import sqlite3
from contextlib import closing
from importlib.metadata import version

import numpy as np
import pytest
from commandline import devdan

from devdan import DEVDAN, DEVDANEnsemble
from devdan.atomic import FileLock
from devdan.bench import PENsemble
from devdan.evaluation.loop import Evaluation
from devdan.runs.preparation import describe, fingerprint
from devdan.runs.runfolder import RunError, RunFolder, free_path
from devdan.runs.runjob import RunJob
from devdan.streams import sea


def job(folder, limit=5000, **options):
    """A run of the library's, as the command line makes it."""
    stream, model = sea(limit), DEVDAN(random_state=0)
    settings = describe(stream, model, {}, model="devdan", seed=0, chunk=500, labels="all")
    return RunJob(folder, stream, Evaluation(model), settings, **options)


def test_a_run_is_resumed_by_the_version_that_began_it_or_a_later_one(tmp_path):
    with job(tmp_path / "run", every=0.0) as begun:
        going = begun.records()
        next(going)
        going.close()
    settings = RunFolder(tmp_path / "run").settings()
    begun_by = version("devdan")
    path = tmp_path / "run" / "run.json"
    path.write_text(json.dumps(settings | {"devdan": "0.0.9"}))
    with job(tmp_path / "run", resume=True) as resumed:
        assert resumed.n_safe == 500
    path.write_text(json.dumps(settings | {"devdan": "10.0.0"}))
    with pytest.raises(RunError, match=f"was begun by devdan 10.0.0: resume it with .* not with {begun_by}"):
        job(tmp_path / "run", resume=True)


def test_a_fingerprint_tells_whether_files_folders_and_databases_have_changed(tmp_path):
    folder = tmp_path / "days"
    folder.mkdir()
    for k in range(3):
        (folder / f"{k}.csv").write_text("x,label\n1,a\n2,b\n")
    with closing(sqlite3.connect(tmp_path / "t.db")) as connection:
        connection.execute("CREATE TABLE t (x, label)")
        connection.commit()
    database = f"sqlite:///{tmp_path / 't.db'}"
    sources = [str(folder / "0.csv"), str(folder), str(folder / "*.csv"), database]
    before = [fingerprint(source) for source in sources]
    assert before[1] == before[2] != before[0]
    assert before == [fingerprint(source) for source in sources]
    (folder / "0.csv").write_text("x,label\n1,a\n2,c\n")  # as long as before
    with closing(sqlite3.connect(tmp_path / "t.db")) as connection:
        connection.execute("INSERT INTO t VALUES (1, 2)")
        connection.commit()
    assert all(now != then for now, then in zip(map(fingerprint, sources), before, strict=True))
    assert [fingerprint(source) for source in ("", "sea", "the frame", "postgresql://host/shop")] == [None] * 4


@pytest.mark.parametrize("other", [{"format": 2}, {}])
def test_a_folder_of_another_format_is_refused(other, tmp_path):
    with job(tmp_path / "run"):
        settings = RunFolder(tmp_path / "run").settings()
    assert settings.pop("format") == 1
    (tmp_path / "run" / "run.json").write_text(json.dumps(settings | other))
    for how in ({}, {"resume": True}):
        with pytest.raises(RunError, match=f"a run of format {other.get('format')}, .* this version reads format 1"):
            job(tmp_path / "run", **how)
    with job(tmp_path / "run", overwrite=True):
        assert RunFolder(tmp_path / "run").settings()["format"] == 1


@pytest.mark.parametrize("kind", [DEVDAN, DEVDANEnsemble, PENsemble])
def test_the_model_that_a_run_left_is_read_whatever_it_is(kind, tmp_path):
    X, y = next(iter(sea(500)))
    model = kind(random_state=0).partial_fit(X, y)
    RunFolder(tmp_path).write_model(model)
    read = RunFolder(tmp_path).model()
    assert type(read) is kind
    assert np.array_equal(read.predict(X), model.predict(X))


def test_without_a_model_that_is_said(tmp_path):
    with pytest.raises(RunError, match="there is no model in"):
        RunFolder(tmp_path).model()


def test_a_refused_run_leaves_the_lock_of_the_other_alone(tmp_path):
    with job(tmp_path / "out"):
        for _ in range(2):  # the second attempt is refused as well
            with pytest.raises(RunError, match="in use by another run"):
                job(tmp_path / "out", resume=True)
    with job(tmp_path / "out", resume=True) as free:
        list(free.records())
        free.finish()
    with job(tmp_path / "out", overwrite=True), pytest.raises(RunError, match="in use by another run"):
        job(tmp_path / "out", overwrite=True)


def test_a_finished_run_that_is_held_stays_held(tmp_path):
    with job(tmp_path / "out") as first:
        list(first.records())
        first.finish()
    with job(tmp_path / "out", resume=True):  # finished: a release would remove the lock
        for _ in range(2):
            with pytest.raises(RunError, match="in use by another run"):
                job(tmp_path / "out", resume=True)


def test_a_lock_that_was_removed_after_it_was_opened_does_not_count(tmp_path, monkeypatch):
    first, second = FileLock(tmp_path / "lock"), FileLock(tmp_path / "lock")
    first.acquire()
    from devdan import atomic  # noqa: PLC0415

    lock, opened = atomic.lock, []

    def late(file):  # the holder ends and removes its file between the other's opening and locking it
        if not opened:
            opened.append(file)
            first.release(remove=True)
        lock(file)

    monkeypatch.setattr(atomic, "lock", late)
    second.acquire()
    assert (tmp_path / "lock").exists()
    monkeypatch.undo()
    with pytest.raises(BlockingIOError):
        FileLock(tmp_path / "lock").acquire()
    second.release(remove=True)
    assert not (tmp_path / "lock").exists()


def test_options_of_river_models_tell_runs_apart(tmp_path):
    pytest.importorskip("river")
    arguments = ("run", "sea", "--limit", 1000, "--model", "river.tree:HoeffdingTreeClassifier", "--out", "out")
    devdan(*arguments, "--set", "grace_period=100", folder=tmp_path)
    assert json.loads((tmp_path / "out/run.json").read_text())["options"]["grace_period"] == 100
    other = devdan(*arguments, "--set", "grace_period=500", "--resume", folder=tmp_path, code=2)
    assert "its option grace_period is 100, not 500" in other.stderr
    same = devdan(*arguments, "--set", "grace_period=100", "--resume", folder=tmp_path)
    assert "already finished" in same.stderr


def test_options_of_a_model_that_does_not_tell_them_are_those_given():
    class Mute:
        pass

    settings = describe(sea(500), Mute(), {"depth": 3, "made": object()}, model="mine:Mute")
    assert settings["options"] == {"depth": 3, "made": "<object object>"}


@pytest.mark.parametrize(("safe", "said"), [(0, "nothing is saved yet"), (1000, "the first 1,000 samples are saved")])
def test_a_full_disk_says_what_is_kept(safe, said, tmp_path, monkeypatch):
    write = RunFolder.write_checkpoint

    def full(folder, state):
        if state[2].n_samples > safe:
            raise OSError(28, "No space left on device", str(folder.checkpoint_path))
        write(folder, state)

    arguments = ("run", "sea", "--limit", 3000, "--checkpoint", 0, "--out", "out")
    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "write_checkpoint", full)
        run = devdan(*arguments, folder=tmp_path, code=2)
    assert said in run.stderr
    assert "No space left on device" in run.stderr
    again = devdan(*arguments, "--resume", folder=tmp_path)
    assert ("starting from the beginning" in again.stderr) == (safe == 0)


def test_a_comparison_never_overwrites_one_that_is_there(tmp_path):
    for seed in (1, 2):
        devdan("run", "sea", "--limit", 1000, "--seed", seed, "--out", f"run{seed}", folder=tmp_path)
    (tmp_path / "comparison.html").write_text("mine")
    for name in ("comparison-2.html", "comparison-3.html"):
        assert devdan("report", "run1", "run2", folder=tmp_path).stdout.strip() == f"Report: {name}"
        assert "2 runs on sea" in (tmp_path / name).read_text()
    assert (tmp_path / "comparison.html").read_text() == "mine"
    devdan("report", "run1", "run2", "--out", "comparison.html", folder=tmp_path)
    assert "2 runs on sea" in (tmp_path / "comparison.html").read_text()


@pytest.mark.parametrize(
    "words",
    [
        ["run", "sea", "--limit", "500", "--out"],
        ["run", "weather", "--data"],
        ["table", "--streams", "sea", "--out"],
        ["report", "run", "--out"],
        ["report", "run", "--picture"],
        ["serve", "--data"],
        ["predict", "m.devdan", "rows.csv", "--out"],
        ["learn", "m.devdan", "rows.csv", "--out"],
        ["replay", "log", "--save"],
    ],
)
@pytest.mark.parametrize("empty", ["", "  "])
def test_an_empty_path_is_an_error(words, empty, tmp_path):
    run = devdan(*words, empty, folder=tmp_path, code=2)
    assert run.stderr == f"devdan: {words[-1]} needs a path, got an empty text\n"
    assert list(tmp_path.iterdir()) == []


def test_free_paths_keep_names_with_dots(tmp_path):
    (tmp_path / "sea-a.b.C").mkdir()
    assert free_path(tmp_path, "sea-a.b.C").name == "sea-a.b.C-2"
    assert free_path(tmp_path, "page", ".html").name == "page.html"
