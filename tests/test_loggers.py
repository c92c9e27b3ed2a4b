"""What loggers write, read back with the tools' own readers and held against the records."""

import importlib
import json
import os
import shutil
import sys
from collections import Counter
from pathlib import Path

import pytest
from commandline import devdan
from sklearn.naive_bayes import GaussianNB

from devdan import DEVDAN
from devdan.evaluation.loop import prequential
from devdan.evaluation.record import Record, Summary
from devdan.loggers import MLflowLogger, TensorBoardLogger, logged
from devdan.runs.runfolder import RunFolder
from devdan.runs.runjob import RunJob
from devdan.streams import sea

pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy:DeprecationWarning")  # MLflow's own
NOWHERE = "http://127.0.0.1:9"  # a port where nobody listens


@pytest.fixture(scope="module")
def empty(tmp_path_factory):
    """The file of a store of MLflow without runs, to copy: making one takes 15 seconds."""
    mlflow = pytest.importorskip("mlflow", reason="MLflow is not installed")
    pytest.importorskip("sqlalchemy", reason="MLflow has no local store without SQLAlchemy")
    path = tmp_path_factory.mktemp("mlflow") / "mlflow.db"
    mlflow.MlflowClient(f"sqlite:///{path}").search_experiments()
    return path


@pytest.fixture(scope="module")
def store(empty, tmp_path_factory):
    """A place for MLflow's runs."""
    return f"sqlite:///{shutil.copy(empty, tmp_path_factory.mktemp('runs'))}"


@pytest.fixture
def board(tmp_path):
    """A folder for TensorBoard."""
    pytest.importorskip("tensorboard", reason="TensorBoard is not installed")
    return tmp_path / "boards"


@pytest.fixture
def tracked(store, tmp_path, monkeypatch):
    """MLflow's runs of a test, by the test's own experiment."""
    mlflow = pytest.importorskip("mlflow", reason="MLflow is not installed")
    monkeypatch.chdir(tmp_path)
    for name, value in (
        ("TRACKING_URI", store),
        ("EXPERIMENT_NAME", tmp_path.name),
        ("DISABLE_TELEMETRY", "true"),
        ("HTTP_REQUEST_MAX_RETRIES", "0"),
        ("LOGGING_LEVEL", "WARNING"),
    ):
        monkeypatch.setenv(f"MLFLOW_{name}", value)
    client = mlflow.MlflowClient(store)

    def runs_():
        experiment = client.get_experiment_by_name(tmp_path.name)
        return client, client.search_runs([experiment.experiment_id]) if experiment else []

    return runs_


def of_mlflow(client, run):
    """All its curves: the steps and the values of each."""
    histories = {name: client.get_metric_history(run.info.run_id, name) for name in run.data.metrics}
    return {name: [(point.step, point.value) for point in points] for name, points in histories.items()}


def of_tensorboard(folder):
    """What TensorBoard shows of a folder."""
    reader = importlib.import_module("tensorboard.backend.event_processing.event_accumulator")
    events = reader.EventAccumulator(str(folder), size_guidance={"scalars": 0}).Reload()
    return {name: [(event.step, event.value) for event in events.Scalars(name)] for name in events.Tags()["scalars"]}


MEASURED = (
    *("accuracy", "kappa", "f1_macro", "g_mean", "balanced_accuracy", "mcc", "roc_auc", "log_loss", "brier"),
    *("kappa_no_change", "calibration_error"),
)
OF_CLASSES = ("recall", "precision", "f1", "average_precision", "alert_recall", "alert_precision")


def expected(records):
    """The curves of records, from the records alone."""
    curves, classes = {}, []
    rates = []
    labels, same, compared = Counter(), 0, 0
    for record in records:
        for true, _, n in record.counts:
            labels[true] += n
        same, compared = same + record.no_change[0], compared + record.no_change[1]
        if record.chunk > 0 and record.accuracy is not None:
            rates.append(100 * record.accuracy)
        values = {
            "cr/chunk": None if record.accuracy is None else 100 * record.accuracy,
            "cr/mean": sum(rates) / len(rates) if rates else None,
            "baseline/majority": 100 * max(labels.values()) / labels.total() if labels else None,
            "baseline/no_change": 100 * same / compared if compared else None,
            "n_hidden": record.n_hidden,
            "n_parameters": record.n_parameters,
            "n_labels": record.n_labels,
        }
        line = json.loads(record.to_json())
        classes += line["new_classes"]
        values |= {name: line[name] for name in MEASURED}
        for name in OF_CLASSES:
            values |= {f"{name}/{c}": value for c, value in zip(classes, line[name], strict=False)}
        for phase in ("generative", "discriminative"):
            for name in ("bias2", "variance", "growths", "prunings", "drifts"):
                values[f"{name}/{phase}"] = getattr(getattr(record, name), phase, None)
        for name, value in values.items():
            if value is not None:
                curves.setdefault(name, []).append((record.start + record.n_samples, value))
    return curves


def same(found, records, figures):
    """Whether the curves and figures are those of the records, each point once."""
    curves = {name: points for name, points in found.items() if not name.startswith("summary/")}
    wanted = expected(records)
    assert set(curves) - {"n_samples"} == set(wanted)
    for name, points in wanted.items():
        assert [step for step, _ in curves[name]] == [step for step, _ in points], name
        assert [value for _, value in curves[name]] == pytest.approx([value for _, value in points], rel=1e-6), name
    ends = {name.removeprefix("summary/"): points for name, points in found.items() if name.startswith("summary/")}
    assert set(ends) == {name for name, value in figures.items() if value is not None}
    for name, points in ends.items():
        assert len(points) == 1, name
        assert points[0] == (figures["n_samples"], pytest.approx(figures[name], rel=1e-6))


def records_in(folder):
    return [Record.from_json(line) for line in (folder / "records.jsonl").read_text().splitlines()]


def figures_in(folder):
    summary = RunFolder(folder).summary()
    return {name: summary[name] for name in Summary().criteria()}


@pytest.mark.parametrize("model", [DEVDAN(random_state=0), GaussianNB()], ids=["devdan", "naive bayes"])
def test_the_curves_are_those_of_the_records(model, tracked, board):
    loggers = TensorBoardLogger(board), MLflowLogger()
    stream = sea(5000, chunk=50)  # more points than MLflow takes at once
    records = list(logged(prequential(stream, model, "delay:300"), *loggers, settings=model.get_params()))
    assert len(records) == 100
    client, [run] = tracked()
    figures = Summary(records).criteria()
    same(of_mlflow(client, run), records, figures)
    same(of_tensorboard(board), records, figures)
    assert run.info.status == "FINISHED"
    assert run.data.params == {name: str(value) for name, value in model.get_params().items()}


def test_a_run_logs_its_settings_curves_figures_and_files(tracked, board, tmp_path):
    devdan("run", "sea", "--limit", 3000, "--log", f"tensorboard:{board}", "--log", "mlflow:mine", "--out", "out",
           "--set", "masking=0.2", folder=tmp_path)  # fmt: skip
    client, _ = tracked()
    [run] = client.search_runs([client.get_experiment_by_name("mine").experiment_id])
    records, figures = records_in(tmp_path / "out"), figures_in(tmp_path / "out")
    same(of_mlflow(client, run), records, figures)
    same(of_tensorboard(board / "out"), records, figures)
    settings = json.loads((tmp_path / "out/run.json").read_text())
    assert run.info.run_name == "out"
    assert run.data.params["options.masking"] == "0.2"
    assert run.data.params["machine.cpu"] == settings["machine"]["cpu"]
    kept = {file.path: file.file_size for file in client.list_artifacts(run.info.run_id)}
    files = ("report.html", "summary.json", "model.devdan")
    assert kept == {name: (tmp_path / "out" / name).stat().st_size for name in files}


@pytest.mark.parametrize("safe", [0, 4])
def test_a_run_that_was_killed_goes_on_in_the_same_place(safe, tracked, board, tmp_path, monkeypatch):
    arguments = ("run", "sea", "--limit", 5000, "--log", "tensorboard", "--log", "mlflow", "--out", "out")

    def show(self, record):
        if record.chunk == 6:
            raise RuntimeError("killed")

    checkpoint = RunJob._checkpoint
    with monkeypatch.context() as patch:  # the checkpoint is behind what was logged
        patch.setattr("devdan.cli.display.Display.show", show)
        patch.setattr(RunJob, "_checkpoint", lambda job, file: job.summary.n_chunks == safe and checkpoint(job, file))
        with pytest.raises(AssertionError, match="killed"):
            devdan(*arguments, "--checkpoint", 0, folder=tmp_path)
    client, [run] = tracked()
    assert run.info.status == "KILLED"
    assert run.data.metrics["n_samples"] == 3000
    assert (tmp_path / "out/checkpoint.pickle").exists() == (safe > 0)
    devdan(*arguments, "--resume", folder=tmp_path)
    client, [run] = tracked()
    assert run.info.status == "FINISHED"
    for _ in range(2):  # and once more, when there is nothing left to log
        records, figures = records_in(tmp_path / "out"), figures_in(tmp_path / "out")
        same(of_mlflow(client, run), records, figures)
        same(of_tensorboard(tmp_path / "out/tensorboard"), records, figures)
        devdan(*arguments, "--resume", folder=tmp_path)
        client, [run] = tracked()


@pytest.mark.filterwarnings("always:MLflowLogger failed")
def test_a_server_that_is_gone_costs_the_curves_only_and_resume_logs_them(tracked, empty, tmp_path, monkeypatch):
    arguments = ("run", "sea", "--limit", 3000, "--out", "out")
    run = devdan(*arguments, "--log", f"mlflow:{NOWHERE}", folder=tmp_path)
    assert run.stderr.count("note: MLflowLogger failed and is disabled") == 1
    assert "--resume" in run.stderr
    assert RunFolder(tmp_path / "out").is_finished
    devdan(*arguments, "--log", "mlflow", "--resume", folder=tmp_path)
    client, [found] = tracked()
    same(of_mlflow(client, found), records_in(tmp_path / "out"), figures_in(tmp_path / "out"))
    assert len(client.list_artifacts(found.info.run_id)) == 3
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{shutil.copy(empty, tmp_path / 'another.db')}")
    run = devdan(*arguments, "--log", "mlflow", "--resume", folder=tmp_path)
    assert f"remove {Path('out/mlflow_run_id')} to start another" in run.stderr


def test_starting_again_begins_another_run_of_mlflow(tracked, tmp_path):
    for _ in range(2):
        devdan("run", "sea", "--limit", 1000, "--log", "mlflow", "--out", "out", "--overwrite", folder=tmp_path)
    assert len(tracked()[1]) == 2


def test_a_run_of_the_users_own_is_joined_and_left_open(tracked):
    mlflow = sys.modules["mlflow"]
    mlflow.set_tracking_uri(os.environ["MLFLOW_TRACKING_URI"])
    with mlflow.start_run() as run:
        for _ in range(2):
            for _ in logged(prequential(sea(1000), DEVDAN()), MLflowLogger()):
                pass
        client, [found] = tracked()
        assert (found.info.run_id, found.info.status) == (run.info.run_id, "RUNNING")
        assert [point.step for point in client.get_metric_history(run.info.run_id, "n_hidden")] == [500, 1000] * 2


class Stub:
    """Keeps what it is told, and fails where it is meant to."""

    def __init__(self, fails=""):
        self.fails, self.told = fails, []

    def tell(self, what):
        self.told.append(what)
        if what == self.fails:
            raise RuntimeError("no\nroom")

    def start(self, settings):
        self.tell("start")
        return 500

    def log(self, step, values):
        self.tell("log")

    def finish(self, figures, files):
        self.tell("finish")

    def stop(self):
        self.tell("stop")


@pytest.mark.parametrize(("fails", "told"), [("start", 1), ("log", 2), ("finish", 4)])
def test_a_logger_that_fails_is_left_out_with_one_warning(fails, told):
    bad, good = Stub(fails), Stub()
    with pytest.warns(UserWarning, match="Stub failed and is disabled from here on: no room; log") as warned:
        records = list(logged(prequential(sea(1500), DEVDAN()), bad, good))
    assert (len(records), len(warned), len(bad.told)) == (3, 1, told)
    assert good.told == ["start", "log", "log", "finish"]  # the first chunk it had already


def test_whoever_breaks_off_stops_the_loggers():
    logger = Stub()
    for _ in logged(prequential(sea(1500), DEVDAN()), logger):
        break
    assert logger.told == ["start", "stop"]

    def broken():
        yield from prequential(sea(1000), DEVDAN())
        raise OSError("the cable is cut")

    logger = Stub()
    with pytest.raises(OSError, match="cable"):
        list(logged(broken(), logger))
    assert logger.told == ["start", "log", "stop"]


@pytest.mark.parametrize(
    ("logs", "message"),
    [
        (["wandb"], "--log must be tensorboard or mlflow, with or without a target after a colon, got 'wandb'"),
        (["mlflow:a", "mlflow:b"], "--log takes tensorboard and mlflow once each, got mlflow:a, mlflow:b"),
        (["mlflow"], "MLflowLogger needs MLflow: pip install 'devdan[mlflow]'"),
        (["tensorboard"], "TensorBoardLogger needs TensorBoard: pip install 'devdan[tensorboard]'"),
    ],
)
def test_what_cannot_be_logged_to_is_said_before_the_run(logs, message, tmp_path, monkeypatch):
    for package in ("mlflow", "tensorboard", "tensorboard.compat.proto"):
        monkeypatch.setitem(sys.modules, package, None)
    words = [word for log in logs for word in ("--log", log)]
    run = devdan("run", "sea", "--out", "out", *words, folder=tmp_path, code=2)
    assert message in run.stderr
    assert not (tmp_path / "out").exists()
