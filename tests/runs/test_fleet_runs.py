"""Runs of fleets: what is counted of each key, stopping and going on, and what the commands do."""

import csv
import io
import json
import os
import random
import time

import numpy as np
import pandas as pd
import pytest
from commandline import devdan, results
from fleets import same
from processes import Started

from devdan import DEVDAN, DEVDANFleet
from devdan.evaluation import prequential
from devdan.evaluation.loop import Evaluation
from devdan.evaluation.record import Record, Summary
from devdan.runs.preparation import describe
from devdan.runs.runfolder import RunError, RunFolder
from devdan.runs.runjob import RunJob
from devdan.streams import open_stream


def table(n=4000, n_keys=12, seed=0):
    """Rows of keys, of which some learn other rules than others, and all another one from the middle on."""
    chance = np.random.default_rng(seed)
    keys = (n_keys * chance.random(n) ** 2).astype(int)
    rows = pd.DataFrame({"device": [f"{key:03}" for key in keys], "x": chance.random(n), "z": chance.random(n)})
    turned = (keys % 3 == 0) ^ (np.arange(n) > n // 2)
    rows["colour"] = chance.choice(["red", "green"], n)
    rows["y"] = np.where(turned, rows["x"] > 0.5, rows["z"] > 0.5).astype(int)
    return rows


def stream(rows, chunk=200):
    return open_stream(rows, target="y", chunk=chunk)


# --- Records -----------------------------------------------------------------------------------------------------


def test_records_count_what_a_model_for_each_key_would_get_right():
    rows = table(1500)[["device", "x", "z", "y"]]
    fleet = DEVDANFleet(DEVDAN(rehearse=0, random_state=7), prior=False)
    models, expected = {}, []
    for start in range(0, len(rows), 200):
        counts = {}
        for key, own in rows[start : start + 200].groupby("device", sort=False):
            X, y = own[["x", "z"]].to_numpy(), own["y"].to_numpy()
            right = 0
            if start > 0 and key in models:
                right = int((models[key].predict(X) == y).sum())
            counts[key] = len(y), right
            models.setdefault(key, DEVDAN(rehearse=0, random_state=7)).partial_fit(X, y)
        expected.append(counts)
    records = list(prequential(stream(rows), fleet, key="device"))
    known = set()
    for found, counts in zip(records, expected, strict=True):
        own = {count.key: (count.n_samples, count.n_right) for count in found.keys}
        assert {key: own[key] for key in known & own.keys()} == {key: counts[key] for key in known & counts.keys()}
        assert {key: n for key, (n, _) in own.items()} == {key: n for key, (n, _) in counts.items()}
        known |= own.keys()
        assert sum(count.n_right for count in found.keys) == sum(found.confusion.hits.values())
    assert fleet.feature_names_in_.tolist() == ["x", "z"]
    assert fleet.key_name_ == "device"
    assert Record.from_json(records[-1].to_json()) == records[-1]


@pytest.mark.parametrize("labels", ["all", "delay:0-700", "fraction:0.5", "warmup:600"])
@pytest.mark.parametrize("limit", [None, 3])
def test_records_add_up_to_the_fleet(labels, limit, tmp_path):
    fleet = DEVDANFleet(random_state=1, max_in_memory=limit, store=None if limit is None else tmp_path / "store")
    records = list(prequential(stream(table()), fleet, labels, key="device"))
    figures, drifts = fleet.summary().to_pandas().set_index("key"), Summary(records).drifts
    for name, total in (("virtual_drifts", drifts.generative), ("real_drifts", drifts.discriminative)):
        counted = pd.Series(0, index=figures.index)
        for count in (count for found in records for count in found.keys):
            counted[count.key] += getattr(count, name)
        pd.testing.assert_series_equal(counted, figures[name], check_names=False)
        assert counted.sum() == total
    assert records[-1].n_hidden == figures["units"].sum()
    assert records[-1].n_parameters == sum(fleet[key].n_parameters_ for key in fleet)
    assert sum(found.n_labels for found in records) == figures["labels"].sum()
    growths = Summary(records).growths
    assert growths.total == sum(sum(fleet[key].growths_.values()) for key in fleet) > 0


def test_a_fleet_that_has_learned_before_goes_on():
    rows = table()
    fleet = DEVDANFleet(random_state=1)
    list(prequential(stream(rows[:2000]), fleet, key="device"))
    records = list(prequential(stream(rows[2000:]), fleet, key="device"))
    assert records[-1].n_hidden == sum(fleet.summary()["units"].to_pylist())
    assert records[0].accuracy is not None


def test_a_key_is_needed_for_a_fleet_and_for_nothing_else():
    with pytest.raises(ValueError, match="key must name the column with the keys"):
        prequential(stream(table(10)), DEVDANFleet())
    with pytest.raises(ValueError, match="key is for a DEVDANFleet, got key='device' for DEVDAN"):
        prequential(stream(table(10)), DEVDAN(), key="device")


# --- Stopping and going on ---------------------------------------------------------------------------------------


class PowerCutError(BaseException):
    pass


def job(folder, limit=None, **options):
    rows = stream(table(1200), chunk=100)
    fleet = DEVDANFleet(random_state=1, max_in_memory=limit, n_jobs=1)
    settings = describe(rows, fleet, {}, model="fleet", seed=1, chunk=100, labels="delay:250", key="device")
    if limit is not None:
        fleet.set_params(store=RunFolder(folder).fleet_path)
    return RunJob(folder, rows, Evaluation(fleet, "delay:250", key="device"), settings, every=0.0, **options)


def finish(folder, **options):
    with job(folder, **options) as run:
        for _ in run.records():
            pass
        run.finish()
    return RunFolder(folder)


def told(folder):
    """The records without their times."""
    return [
        {name: value for name, value in json.loads(line).items() if "seconds" not in name}
        for line in folder.records_path.read_text().splitlines()
    ]


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    """Runs that nothing has happened to, by how many keys are in memory."""
    return {limit: finish(tmp_path_factory.mktemp("whole") / "run", limit=limit) for limit in (None, 4)}


@pytest.mark.parametrize("limit", [None, 4])
@pytest.mark.parametrize("moment", ["before", "within", "after"])
@pytest.mark.parametrize("n_checkpoints", [1, 6])
def test_a_power_cut_at_a_checkpoint_leaves_one_that_fits(
    limit, moment, n_checkpoints, unbroken, tmp_path, monkeypatch
):
    """Before the fleet is saved, within its transaction, and after it, when the checkpoint has not its place yet."""
    whole, left = unbroken[limit], [n_checkpoints]
    save = DEVDANFleet.save

    def cut(fleet, path):
        left[0] -= 1
        if left[0] == 0 and moment == "before":
            raise PowerCutError
        if left[0] == 0 and moment == "within":
            with monkeypatch.context() as patch:
                patch.setattr("devdan.fleet.networks.Networks.rows", lambda *_: iter([None]))
                patch.setattr("devdan.fleet.network_store._packed", lambda _: (_ for _ in ()).throw(PowerCutError))
                save(fleet, path)
        save(fleet, path)
        if left[0] == 0:
            raise PowerCutError

    monkeypatch.setattr(DEVDANFleet, "save", cut)
    broken = job(tmp_path / "broken", limit=limit)
    with pytest.raises(PowerCutError):
        list(broken.records())
    broken.close()
    monkeypatch.setattr(DEVDANFleet, "save", save)
    resumed = finish(tmp_path / "broken", limit=limit, resume=True)
    assert told(resumed) == told(whole)
    one, other = resumed.model(), whole.model()
    assert same(one, other)
    one.close()
    other.close()
    assert sorted(os.listdir(resumed.path)) == sorted(os.listdir(whole.path))


@pytest.mark.parametrize("limit", [None, 4])
def test_a_finished_run_has_the_whole_fleet_in_one_file(limit, tmp_path):
    """Before its folder is released: loggers copy it then."""
    with job(tmp_path / "run", limit=limit) as run:
        assert sum(1 for _ in run.records()) == 12
        run.finish()
        copy = tmp_path / "copy.fleet"
        copy.write_bytes(run.folder.fleet_path.read_bytes())
    assert not list((tmp_path / "run").glob("*-wal"))
    one, other = DEVDANFleet.load(copy), run.folder.model()
    assert same(one, other)
    one.close()
    other.close()


def test_another_fleet_beside_a_checkpoint_is_no_fleet_of_it(unbroken, tmp_path):
    run = job(tmp_path / "run")
    records = run.records()
    for _ in range(5):
        next(records)
    records.close()
    run.close()
    RunFolder(tmp_path / "run").fleet_path.unlink()
    with pytest.raises(RunError, match=r"is not the fleet of .*--overwrite starts again"):
        job(tmp_path / "run", resume=True)
    assert told(finish(tmp_path / "run", overwrite=True)) == told(unbroken[None])


def test_killed_at_random_moments_it_ends_as_if_it_had_not_been(tmp_path):
    chance, out = random.Random(0), tmp_path / "broken"
    records = out / "records.jsonl"
    table(12_000, n_keys=40).to_csv(tmp_path / "my.csv", index=False)
    arguments = ("run", "my.csv", "--target", "y", "--key", "device", "--chunk", 100, "--checkpoint", 0.02)
    devdan(*arguments, "--out", "unbroken", folder=tmp_path)
    kills = 0
    while not (out / "summary.json").exists() or (out / "checkpoint.pickle").exists():
        process = Started(*arguments, "--out", out, "--resume", folder=tmp_path)
        done = records.stat().st_size if records.exists() else 0
        process.wait_until(lambda done=done: records.exists() and records.stat().st_size > done)
        time.sleep(0.2 * chance.random())
        if kills < 4:
            kills += process.works
            process.kill()
        else:
            process.wait()
    assert kills >= 1
    assert results(out) == results(tmp_path / "unbroken")
    assert same(RunFolder(out).model(), RunFolder(tmp_path / "unbroken").model())


# --- Commands ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A run of a fleet, and its table."""
    folder = tmp_path_factory.mktemp("made")
    table().to_csv(folder / "my.csv", index=False)
    devdan("run", "my.csv", "--target", "y", "--key", "device", "--out", "run", "--chunk", 200, folder=folder)
    return folder


def read(made):
    """The table, every number to the last bit."""
    return pd.read_csv(made / "my.csv", dtype={"device": str}, float_precision="round_trip")


def test_a_run_is_what_prequential_does(made):
    fleet = DEVDANFleet(DEVDAN(rehearse=0), random_state=0)
    records = list(prequential(stream(read(made)), fleet, key="device"))
    folder = RunFolder(made / "run")
    assert [found.keys for found in folder.records()] == [found.keys for found in records]
    assert same(folder.model(), fleet)
    assert folder.settings()["key"] == "device"
    assert [column["name"] for column in folder.summary()["columns"]] == ["x", "z", "colour"]


def test_keys_beyond_memory_come_to_the_same(made):
    limited = ("--set", "max_in_memory=3", "--chunk", 200, "--out", "limited")
    devdan("run", "my.csv", "--target", "y", "--key", "device", *limited, folder=made)
    one, other = RunFolder(made / "limited").model(), RunFolder(made / "run").model()
    assert one.max_in_memory == 3
    assert same(one, other)
    one.close()


def test_predictions_are_those_of_the_fleet(made):
    rows = read(made)[:50]
    rows.loc[3, "device"] = "a new one"
    rows.drop(columns="y")[["colour", "z", "x", "device"]].to_csv(made / "new.csv", index=False)
    said = devdan("predict", "run", "new.csv", "--keep", "device", "--proba", folder=made).stdout
    fleet = RunFolder(made / "run").model()
    found = pd.DataFrame(csv.DictReader(io.StringIO(said)))
    assert found["device"].tolist() == rows["device"].tolist()
    shares = fleet.predict_proba("device", rows[["device", "x", "z", "colour"]])
    np.testing.assert_array_equal(found[["p(0)", "p(1)"]].astype(float).to_numpy(), shares)
    renamed = rows.rename(columns={"device": "machine"}).drop(columns="y")
    renamed.to_csv(made / "renamed.csv", index=False)
    again = devdan("predict", "run", "renamed.csv", "--key", "machine", "--proba", folder=made).stdout
    assert again.splitlines()[1:] == [line.partition(",")[2] for line in said.splitlines()[1:]]


def test_numbers_as_keys_are_found_again_in_texts(tmp_path):
    rows = table(300)
    rows["device"] = rows["device"].astype(int)
    fleet = DEVDANFleet(random_state=0).partial_fit("device", rows.drop(columns="y"), rows["y"])
    fleet.save(tmp_path / "my.fleet")
    rows.drop(columns="y").to_csv(tmp_path / "my.csv", index=False)
    said = devdan("predict", "my.fleet", "my.csv", folder=tmp_path).stdout.split()[1:]
    assert said == [str(label) for label in fleet.predict("device", rows.drop(columns="y")).tolist()]
    assert "7 samples" not in devdan("show", "my.fleet", "--key", "3", folder=tmp_path).stdout


def test_learning_on_is_what_the_fleet_does(made, tmp_path):
    rows = table(600, n_keys=20, seed=1)
    rows["y"] = rows["y"].astype(object).where(np.arange(len(rows)) % 4 > 0, None)
    rows.to_csv(made / "more.csv", index=False)
    fleet = RunFolder(made / "run").model()
    before = (made / "run/model.fleet").read_bytes()
    out = tmp_path / "new.fleet"
    told = devdan("learn", "run", "more.csv", "--target", "y", "--chunk", 150, "--out", out, folder=made).stdout
    for start in range(0, 600, 150):
        part = rows[start : start + 150]
        known = part["y"].notna().to_numpy()
        fleet.observe("device", part.drop(columns="y"))
        fleet.teach("device", part.drop(columns="y")[known], part["y"][known].astype(int).to_numpy())
    assert same(DEVDANFleet.load(out), fleet)
    assert f"keys 12 → {len(fleet)}" in told
    assert (made / "run/model.fleet").read_bytes() == before
    bad = devdan("learn", "run", "my.csv", "--target", "colour", folder=made, code=2).stderr
    assert "nothing is saved" in bad
    assert (made / "run/model.fleet").read_bytes() == before


def test_a_fleet_is_shown(made):
    known = json.loads(devdan("show", "run", "--json", folder=made).stdout)
    assert (known["kind"], known["n_keys"], known["key"], known["samples"]) == ("DEVDANFleet", 12, "device", 4000)
    assert known["accuracy"]["0.1"] <= known["accuracy"]["0.5"] <= known["accuracy"]["0.9"]
    text = devdan("show", "run", folder=made).stdout
    assert "12, from the column device" in text
    assert known["worst"][0]["key"] in text
    one = json.loads(devdan("show", "run", "--key", "003", "--json", folder=made).stdout)
    assert (one["kind"], one["n_samples"]) == ("DEVDAN", RunFolder(made / "run").model()["003"].n_seen_)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("run sea --key device", "--key is for files"),
        ("run my.csv --target y --key nix", "has no column 'nix' with keys; its columns are 'device', 'x'"),
        ("run my.csv --target y --key device --model river-hat", "--model must be devdan, got 'river-hat'"),
        ("run my.csv --target y --key device --set rehearse=5", "estimator must have rehearse=0"),
        ("run my.csv --target y --key device --set maskin=1", "a fleet has no option 'maskin'; did you mean masking"),
        ("run my.csv --target y --key device --set prior=maybe", "prior must be"),
        ("run holes.csv --target y --key device --out holes", "keys must not be missing, got None in row 3"),
        ("predict run my.csv --key nix", "has no column 'nix' with the keys"),
        ("show run --key nix", "the fleet has no key 'nix'; it has 12 others"),
        ("show model.devdan --key nix", "--key is for fleets, but the model is a DEVDAN"),
    ],
)
def test_mistakes_are_one_clear_line(words, message, made):
    (made / "holes.csv").write_text("device,x,y\na,1,0\nb,2,1\n,3,1\n")
    DEVDAN().fit([{"x": 1.0}, {"x": 2.0}], [0, 1]).save(made / "model.devdan")
    assert message in devdan(*words.split(), folder=made, code=2).stderr
