"""Which columns mattered, in records and on the page of a run, and what hidden units stand for there."""

import json
import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from runs import record, save
from webpages import Text, legends

from devdan import DEVDAN, DEVDANEnsemble
from devdan.evaluation.learners import learner
from devdan.evaluation.loop import Evaluation, prequential
from devdan.evaluation.record import Record
from devdan.experiments.provenance import describe
from devdan.experiments.runjob import RunJob
from devdan.model.units import Unit
from devdan.report.run.column_charts import smooth_importance
from devdan.report.run.column_importances import MOST_COLUMN_POINTS
from devdan.report.run.shown_run import read_run
from devdan.runs.runfolder import RunFolder
from devdan.streams import open_stream, sea


def moving_table(n=6000, seed=0):
    """A table whose label follows the city, and from the middle on the price."""
    random = np.random.default_rng(seed)
    table = pd.DataFrame(
        {"price": random.normal(size=n), "city": random.choice(list("uvw"), n), "age": random.random(n)}
    )
    return table, np.where(np.arange(n) < n // 2, table.city == "u", table.price > 0)


@pytest.mark.parametrize("kind", [DEVDAN(random_state=0), DEVDANEnsemble(random_state=0, n_jobs=1)])
def test_records_tell_which_columns_mattered_now_and_then(kind):
    records = list(prequential(open_stream(moving_table(), chunk=250), kind))
    told = [(one.start, one.importances) for one in records if one.importances is not None]
    starts = [start for start, _ in told]
    assert starts[:9] == list(range(0, 4500, 500))
    assert all(500 < after - before <= after / 8 + 250 for before, after in pairwise(starts[8:]))  # a chunk is 250
    assert all(sum(shares) == pytest.approx(1, abs=0.001) for _, shares in told)
    by_column = dict(told)
    assert by_column[2500][1] > 0.9
    assert told[-1][0] >= 5000
    assert told[-1][1][0] > 0.8
    assert [Record.from_json(one.to_json()) for one in records] == records


def test_asking_takes_no_more_predictions_than_there_are_samples():
    class Counted(DEVDAN):
        n_asked = 0

        def _importances(self, n_samples):
            self.n_once = n_samples * (self.n_features_in_ + 1)
            self.n_asked += self.n_once
            return super()._importances(n_samples)

    random = np.random.default_rng(0)
    for width, chunk in ((3, 1), (40, 100)):
        own, model = 0, Counted(random_state=0, rehearse=0)
        learned = learner(model)
        for n_seen in range(chunk, 10_001 if chunk > 1 else 2001, chunk):
            X = random.normal(size=(chunk, width))
            model.partial_fit(X, X[:, 0] > 0, classes=[False, True])
            own += learned.structure()["importances"] is not None
            assert model.n_asked <= n_seen + model.n_once
        assert own > 1


def test_a_run_keeps_what_its_page_tells(tmp_path, page):
    table, y = moving_table()
    stream, model = open_stream((table, y), chunk=250), DEVDAN(random_state=0)
    settings = describe(stream, model, {}, model="devdan", seed=0, chunk=250, labels="all")
    with RunJob(tmp_path / "run", stream, Evaluation(model), settings) as job:
        list(job.records())
        job.finish()
    kept = RunFolder(tmp_path / "run").summary()
    assert kept["importances"] == model.importances_
    assert kept["units"] == json.loads(json.dumps([unit._asdict() for unit in model.units_]))
    html = page(tmp_path / "run")
    text = Text(html).text
    assert "Which columns matter" in text
    assert ["age", "city", "price"] in [sorted(found) for found in legends(html)]
    first = model.units_[0]
    for said in first.in_words():
        assert said in text
    assert f"The other {len(model.units_) - 10} units" in text
    points = json.loads(re.search(r'<script type="application/json" id="points">(.*?)</script>', html, re.DOTALL)[1])
    assert {series["name"] for series in points["charts"]["columns"][0]["series"]} == {"price", "city", "age"}


def test_columns_of_arrays_have_the_names_that_the_stream_gives_them(tmp_path, page):
    stream, model = sea(2000), DEVDAN(random_state=0)
    settings = describe(stream, model, {}, model="devdan", seed=0, chunk=500, labels="all")
    with RunJob(tmp_path / "run", stream, Evaluation(model), settings) as job:
        list(job.records())
        job.finish()
    kept = RunFolder(tmp_path / "run").summary()
    assert list(kept["importances"]) == ["x1", "x2", "x3"]
    assert {name for unit in kept["units"] for name, _ in unit["weights"]} == {"x1", "x2", "x3"}
    assert sorted(["x1", "x2", "x3"]) in [sorted(found) for found in legends(page(tmp_path / "run"))]


def asked(chunk, shares):
    return replace(record(chunk), importances=shares)


def test_only_the_strongest_columns_are_drawn_and_the_rest_is_told(tmp_path, page):
    shares = (0.3, 0.0, 0.25, 0.2, 0.1, 0.05, 0.1)
    html = page(save(tmp_path / "run", [asked(chunk, shares) for chunk in range(3)]))
    assert ["x0", "x2", "x3", "x4", "x6"] in legends(html)
    assert "The 5 that matter most of 7." in Text(html).text
    assert "Importance of columns over time, at the end: x0 30.0 %, x2 25.0 %" in html


@pytest.mark.parametrize("told", [[], [(1.0,)], [(0.0,), (0.0,)]])
def test_without_two_places_there_is_no_chart(tmp_path, page, told):
    records = [asked(chunk, shares) for chunk, shares in enumerate(told)] or [record(0), record(1)]
    assert "Which columns matter" not in page(save(tmp_path / "run", records))


def test_many_places_are_joined(tmp_path):
    run = read_run(save(tmp_path / "run", [asked(chunk, (chunk % 2, 1 - chunk % 2)) for chunk in range(4000)]))
    assert len(run.importances) <= MOST_COLUMN_POINTS
    assert run.importances[-1].end == 40_000
    assert smooth_importance(run, 0) == pytest.approx([0.5] * len(run.importances))


def test_records_of_earlier_versions_have_no_importances():
    line = json.loads(record(3).to_json())
    del line["importances"]
    assert Record.from_json(json.dumps(line)) == record(3)


@pytest.mark.parametrize("units", [None, 3, [{}], [{"network": 0}], [dict.fromkeys(Unit._fields, "x")]])
def test_a_damaged_summary_shows_no_units(tmp_path, page, units):
    folder = save(tmp_path / "run", [record(0), record(1)])
    (folder / "summary.json").write_text(json.dumps({"units": units}))
    assert "What hidden units stand for" not in page(folder)
