"""What can be said of a file to one command can be said to all, and means the same."""

import json
import random
import re

import pytest
import typer
from commandline import devdan, records, run

from devdan import DEVDAN
from devdan.cli import app
from devdan.cli.arguments import LOGGED, UNLABELLED
from devdan.streams.files import READERS
from devdan.streams.textfile import COMPRESSIONS

COMMANDS = typer.main.get_command(app).commands
READING = ("drop", "nominal", "numeric", "dates", "header", "target", "sep", "encoding", "decimal")


def people(path, n=600):
    """A code that looks like a number, a date, an amount, and a label that is one of the codes."""
    dice = random.Random(0)
    lines = ["id,code,sent,amount,label"]
    for k in range(n):
        code = dice.choice(["07", "7", "70"])
        lines.append(f"{k},{code},{dice.randint(1, 28)}/{dice.randint(1, 12)}/2030,{dice.random():.3f},{code == '07'}")
    path.write_text("\n".join(lines) + "\n")


SAID = ("--target", "label", "--drop", "id", "--nominal", "code", "--dates", "sent=dd/mm/yyyy", "--numeric", "amount")


@pytest.mark.parametrize(
    ("command", "names"),
    [("run", READING), ("learn", READING), ("table", READING), ("predict", UNLABELLED), ("replay", LOGGED)],
)
def test_every_command_has_the_options_of_reading_that_apply(command, names):
    options = {one.name: one for one in COMMANDS[command].params}
    assert set(names) | {"options"} <= set(options)
    assert set(names) <= set(READING)
    for name in names:
        assert options[name].help == next(one.help for one in COMMANDS["run"].params if one.name == name)


@pytest.mark.parametrize("command", ["run", "learn", "predict"])
def test_the_help_names_all_that_can_be_read(command):
    told = next(one.help for one in COMMANDS[command].params if one.name in ("stream", "file"))
    for word in (*(reader.name for reader in READERS), *COMPRESSIONS, ".zip", "folder", "database"):
        assert word in told


def test_a_text_is_read_as_the_user_says_at_every_door(tmp_path):
    dice = random.Random(0)
    rows = [(dice.choice(["K\u00f6ln", "Bonn"]), round(dice.random(), 3)) for _ in range(600)]
    lines = [(city, amount, "high" if amount > 0.5 else "low") for city, amount in rows]
    plain = ["city,amount,label", *(f"{city},{amount},{label}" for city, amount, label in lines)]
    odd = [f"{city}^{str(amount).replace('.', ',')}^{label}" for city, amount, label in lines]
    (tmp_path / "plain.csv").write_text("\n".join(plain) + "\n")
    (tmp_path / "odd.csv").write_text("\n".join(["city^amount^label", *odd]) + "\n", encoding="cp437")
    said = ("--sep", "^", "--encoding", "cp437", "--decimal", ",")
    found = {}
    for name, options in (("plain", ()), ("odd", said)):
        file, run = f"{name}.csv", f"{name}-run"
        devdan("run", file, *options, "--chunk", 100, "--out", run, folder=tmp_path)
        devdan("learn", run, file, *options, "--out", f"{name}.devdan", folder=tmp_path)
        answers = devdan("predict", f"{name}.devdan", file, *options, "--proba", folder=tmp_path).stdout
        table = ("--streams", file, "--models", "devdan", "--seeds", 1, "--chunk", 100, "--out", f"{name}-table")
        devdan("table", *table, *options, folder=tmp_path)
        cell = json.loads((tmp_path / f"{name}-table/cells/{name}/devdan/all/0.json").read_text())
        found[name] = records(tmp_path / run), answers, cell["cr_mean"]
    assert found["plain"] == found["odd"]
    assert found["odd"][2] > 80


def test_a_table_reads_and_sets_what_a_run_does(tmp_path):
    people(tmp_path / "t.csv")
    more = (*SAID, "--set", "n_hidden=5", "--chunk", 100)
    alone = json.loads(devdan("run", "t.csv", *more, "--json", folder=tmp_path).stdout)
    said = devdan("table", "--streams", "t.csv", "--models", "devdan,sklearn-sgd", "--seeds", 1, *more, folder=tmp_path)
    assert "2 runs. Report" in said.stdout
    cells = {
        name: json.loads((tmp_path / f"table/cells/t/{name}/all/0.json").read_text())
        for name in ("devdan", "sklearn-sgd")
    }
    assert cells["devdan"]["cr_mean"] == alone["cr_mean"] > 95  # 07 and 7 are two
    assert (cells["devdan"]["options"], cells["sklearn-sgd"]["options"]) == (["n_hidden=5"], None)
    text = (tmp_path / "table/table.md").read_text()
    assert "- t: t.csv, target label, nominal code, numeric amount, dates sent, without id" in text
    assert "- options of devdan: n\\_hidden=5" in text
    again = devdan(
        "table", "--streams", "t.csv", "--models", "devdan,sklearn-sgd", "--seeds", 1, *more, "--json", folder=tmp_path
    )
    assert json.loads(again.stdout)["n_runs"] == 2
    for words, message in (
        (("--set", "n_hiden=5"), "none of the models takes --set n_hiden=5: sklearn-sgd"),
        (("--set", "n_hidden"), "--set takes option=value"),
        (("--nominal", "cod"), "nominal names the column 'cod'"),
    ):
        arguments = ("table", "--streams", "t.csv", "--target", "label", "--models", "sklearn-sgd", *words)
        assert message in devdan(*arguments, folder=tmp_path, code=2).stderr


def test_a_model_that_has_learned_keeps_the_kinds_of_its_columns(tmp_path):
    people(tmp_path / "t.csv")
    devdan("run", "t.csv", *SAID, "--out", "run", folder=tmp_path)
    before = (tmp_path / "run/model.devdan").read_bytes()
    assert devdan("predict", "run", "t.csv", "--nominal", "code", "--dates", "sent=dd/mm/yyyy", folder=tmp_path).stdout
    for words, message in (
        (("predict", "run", "t.csv", "--numeric", "code"), "'code' is of the kind nominal, which cannot become number"),
        (("learn", "run", "t.csv", "--nominal", "amount"), "is of the kind number, which cannot become nominal"),
        (("learn", "run", "t.csv", "--nominal", "amout"), "the model has no column 'amout'; it has 'code', 'sent'"),
        (("learn", "run", "t.csv", "--set", "maskin=1"), "a DEVDAN has no option 'maskin'"),
        (("learn", "run", "t.csv", "--set", "masking=7"), "masking must be in"),
        (("predict", "run", "t.csv", "--set", "masking=0.2"), "masking cannot be set for predictions, only decide"),
    ):
        assert message in devdan(*words, folder=tmp_path, code=2).stderr
    assert (tmp_path / "run/model.devdan").read_bytes() == before
    devdan("learn", "run", "t.csv", *SAID, "--set", "masking=0.2", "--out", "new.devdan", folder=tmp_path)
    assert DEVDAN.load(tmp_path / "new.devdan").masking == 0.2
    decide = ("--set", 'decide={"True": {"threshold": 1.0}}')
    called = devdan("predict", "run", "t.csv", *decide, folder=tmp_path).stdout.splitlines()[1:]
    assert set(called) == {"False"}


def test_a_history_is_read_as_the_user_says(tmp_path):
    served = pytest.importorskip("served", reason="pip install 'devdan[serve]'")
    with served.served_here(tmp_path / "data") as http:
        http.put("/v1/streams/s", json={}).raise_for_status()
        samples = [{"id": f"r{k}", "features": {"x": k % 10, "w": 0.1 * k}, "label": k % 7 > 3} for k in range(300)]
        http.post("/v1/streams/s/samples", json={"rows": samples}).raise_for_status()
        served.until(http, "/v1/streams/s", lambda shown: shown["labels"] == 300)
    command = ("replay", tmp_path / "data", "--model", "devdan")
    code, said = run(*command, "--nominal", "x", "--set", "masking=0.2", "--out", tmp_path / "run")
    assert code == 0, said
    settings = json.loads((tmp_path / "run/run.json").read_text())
    assert (settings["options"]["masking"], settings["nominal"]) == (0.2, ["x"])
    assert DEVDAN.load(tmp_path / "run/model.devdan").encoding_.columns["x"].kind == "nominal"
    for words, message in (
        (("--drop", "z"), "the stream s has no column 'z'"),
        (("--nominal", "z"), "nominal names the column 'z'"),
        (("--set", "maskin=1"), "devdan has no option 'maskin'; did you mean masking"),
    ):
        code, said = run(*command, *words, "--out", tmp_path / "no")
        assert (code, message in said) == (2, True), said
    code, said = run("replay", tmp_path / "data", "--set", "masking=0.2")
    assert (code, "--set is for --model" in said) == (2, True), said


def test_a_run_says_what_its_labels_are(tmp_path):
    dice = random.Random(1)
    labels = ["fraud" if dice.random() < 0.1 else "ok" for _ in range(1000)]
    share = 100 * labels[100:].count("fraud") / 900
    for name, given in (("some", labels), ("one", ["ok"] * 1000), ("none", [""] * 1000)):
        lines = [f"{dice.random():.3f},{label}" for label in given]
        (tmp_path / f"{name}.csv").write_text("\n".join(["amount,class", *lines]) + "\n")
    run = devdan("run", "some.csv", "--chunk", 100, folder=tmp_path)
    said = re.sub(" +", " ", run.stdout)
    assert f"classes 2: ok {100 - share:.2g} %, fraud {share:.2g} % from the column class" in said
    assert re.search(r"fraud: recall (\d+ %|–), precision (\d+ %|–) so far", run.stderr)
    page = (tmp_path / "runs/some-devdan/report.html").read_text()
    assert re.search(r"<th scope=\"row\">target</th><td>class</td>", page)
    assert f"ok {100 - share:.2g} %, fraud {share:.2g} %" in page
    for name, message in (
        ("one", "All labels are of one class, ok: there is nothing to tell apart"),
        ("none", "None of the 1,000 samples has a label"),
    ):
        run = devdan("run", f"{name}.csv", "--chunk", 100, folder=tmp_path)
        assert f"note: {message}" in run.stderr
        assert "the column 'class'; --target names another" in run.stderr
        assert message in (tmp_path / f"runs/{name}-devdan/report.html").read_text()
