"""The page of a run: what it draws, what it says where there is nothing to draw, and how it keeps up with the run."""

import json
import re
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
from runs import many_classes, moving_table, record, save
from webpages import Text, legends

from devdan import DEVDAN
from devdan.evaluation.loop import Evaluation, prequential
from devdan.evaluation.record import Record, Summary
from devdan.kernel.state import Event
from devdan.model.explain import Unit
from devdan.report import ReportError, RunReport, write_picture
from devdan.report.bins import MOST_CLASS_POINTS, MOST_COLUMN_POINTS, MOST_POINTS, smooth_importance, smooth_recall
from devdan.report.event_marks import MOST_LINES, drifts, markers
from devdan.report.run_charts import beginning_chart
from devdan.report.run_page import page_of_run
from devdan.report.shown_run import ShownRun
from devdan.runs.preparation import describe
from devdan.runs.runfolder import RunFolder
from devdan.runs.runjob import RunJob
from devdan.streams import StreamError, open_stream, sea


def added(records, **info):
    """A run with these records."""
    run = ShownRun("run", info)
    for one in records:
        run.add(one)
    return run


def job(folder, stream):
    """A run as `devdan run` makes it."""
    model = DEVDAN(random_state=0)
    settings = describe(stream, model, {}, model="devdan", seed=0, chunk=stream.chunk, labels="all")
    return RunJob(folder, stream, Evaluation(model), settings, page=RunReport)


# --- Accuracy and structure ----------------------------------------------------------------------------------------


def test_thinning_keeps_every_total():
    records = [
        record(chunk, hits=chunk % 11, growths=(chunk % 2, chunk % 3), prunings=(0, chunk % 5), drifts=(chunk % 7, 1))
        for chunk in range(5000)
    ]
    run, summary = added(records), Summary(records)
    assert MOST_POINTS / 2 <= len(run.bins) <= MOST_POINTS
    assert sum(bin.n_chunks for bin in run.bins) == 5000
    assert [bin.start for bin in run.bins[1:]] == [bin.end for bin in run.bins[:-1]]
    weighted = sum(bin.accuracy * bin.n_scored for bin in run.bins) / sum(bin.n_scored for bin in run.bins)
    assert weighted == pytest.approx(summary.confusion.accuracy)
    drawn = markers(run.bins, run.summary.n_samples)
    assert len(drawn) <= 4 * 100
    drawn += drifts(run.bins)
    for kind, phases in (("growth", summary.growths), ("pruning", summary.prunings), ("drift", summary.drifts)):
        for phase, total in phases._asdict().items():
            assert sum(mark.n for mark in drawn if (mark.kind, mark.phase) == (kind, phase)) == total
    assert len(page_of_run(run)) < 600_000


def test_a_few_chunks_are_drawn_as_they_are():
    records = [record(chunk, growths=(chunk, 0)) for chunk in range(7)]
    run = added(records)
    assert [bin.accuracy for bin in run.bins] == [r.accuracy for r in records]
    assert [(mark.sample, mark.n) for mark in markers(run.bins, 70)] == [(10 * (n + 1), n) for n in range(1, 7)]


def test_drifts_are_lines_with_a_key(tmp_path, page):
    records = [record(chunk, drifts=(2 * (chunk == 4), chunk in (5, 9))) for chunk in range(12)]
    folder = save(tmp_path / "run", records)
    html = page(folder)
    titles = ["2 virtual drifts by sample 50", "1 real drift by sample 60", "1 real drift by sample 100"]
    assert re.findall(r'<line class="drift \w+"[^>]*><title>([^<]+)', html) == titles
    assert "2 virtual drifts signalled 2 real drifts signalled" in Text(html).text
    write_picture(folder, tmp_path / "run.svg")
    drawn = (tmp_path / "run.svg").read_text()
    assert all(title in drawn for title in titles)
    assert ">2 real drifts signalled</text>" in drawn


def test_drifts_of_rare_classes_have_their_names(tmp_path, page):
    def at(chunk, *labels):
        events = [Event(10 * chunk + 1, "discriminative", "drift", 0, 3, 0, 10.4, 10.0, label) for label in labels]
        return replace(record(chunk, drifts=(0, len(labels))), events=tuple(events))

    records = [at(0), at(1), at(2, "fraud"), at(3, None, "fraud", "theft"), at(4, None)]
    folder = save(tmp_path / "run", records)
    html = page(folder)
    assert re.findall(r'<line class="drift \w+"[^>]*><title>([^<]+)', html) == [
        "1 real drift (1 of fraud) by sample 30",
        "3 real drifts (1 of fraud, 1 of theft) by sample 40",
        "1 real drift by sample 50",
    ]
    assert "5 real drifts (2 of fraud, 1 of theft) signalled" in Text(html).text
    assert "real drift of theft" in html
    write_picture(folder, tmp_path / "run.svg")
    assert ">5 real drifts (2 of fraud, 1 of theft) signalled</text>" in (tmp_path / "run.svg").read_text()


def test_a_run_without_drifts_does_not_speak_of_them(tmp_path, page):
    records = [record(chunk) for chunk in range(12)]
    assert 'class="drift' not in page(save(tmp_path / "run", records))


def test_models_without_structure_have_no_charts_of_it(tmp_path, page):
    with_structure = page(save(tmp_path / "a", [record(chunk) for chunk in range(30)]))
    without = page(save(tmp_path / "b", [record(chunk, structure=False) for chunk in range(30)]))
    assert with_structure.count('role="img"') == 4
    assert without.count('role="img"') == 1
    assert "Hidden units" in with_structure
    assert not re.search("hidden units|Parameters|Bias²|Calibration", Text(without).text, re.IGNORECASE)
    both = page(tmp_path / "a", tmp_path / "b")
    assert both.count('role="img"') == 2


def test_a_single_chunk_that_was_not_scored(tmp_path, page):
    run = save(tmp_path / "run", [record(0)])
    html = page(run)
    text = Text(html).text
    assert "Classification rate – nothing has been scored yet" in text
    assert "All samples are in the first chunk, which is learned before anything is predicted" in text
    assert "3 hidden units after the first chunk: bias² 0.3 and variance 0.1 in the generative phase" in text
    assert not re.search("Confusion|Kappa|Recall", text)
    assert 'role="img"' not in html
    write_picture(run, tmp_path / "run.svg")
    assert ElementTree.parse(tmp_path / "run.svg")


def test_many_drifts_are_strokes_under_the_axis(tmp_path, page):
    few = [record(chunk, drifts=(0, chunk < MOST_LINES)) for chunk in range(90)]
    many = [record(chunk, drifts=(0, chunk < MOST_LINES + 1)) for chunk in range(90)]
    drawn = page(save(tmp_path / "few", few))
    assert drawn.count('<line class="drift discriminative" x1="') == MOST_LINES + 1  # and its key
    drawn = page(save(tmp_path / "many", many))
    assert drawn.count('<line class="drift discriminative" x1="') == 1
    strokes = re.search(r'<path class="drift discriminative" d="([^"]*)"', drawn)[1]
    assert [int(x) for x in re.findall(r"M(\d+),0v1", strokes)] == [10 * (n + 1) for n in range(MOST_LINES + 1)]
    assert "21 real drifts signalled, under the axis" in Text(drawn).text


def test_true_drifts_are_marked_beside_the_signalled_ones(tmp_path, page):
    records = [record(chunk, drifts=(0, chunk == 5)) for chunk in range(12)]
    html = page(save(tmp_path / "run", records, drifts=[50, 90, 5000]))  # one of which has not come yet
    assert re.findall(r'<line class="true-drift"[^>]*><title>([^<]+)', html) == [
        "1 true drift at sample 50",
        "1 true drift at sample 90",
    ]
    assert legends(html)[0][-2:] == ["2 true drifts", "1 real drift signalled"]
    assert "true drifts at 50, 90, 5000" in Text(html).text


def test_a_legend_has_only_what_is_drawn(tmp_path, page):
    records = [record(chunk, hits=9, growths=(chunk == 3, 0)) for chunk in range(12)]
    html = page(save(tmp_path / "run", records))
    assert legends(html)[1] == ["hidden units", "1 growth, generative"]
    assert "below this chart" not in html
    assert "no-change predictor" in legends(html)[0][1]
    classes = set(re.findall(r'<path class="([\w -]+)"', html.split("<figure>")[1].split("</figcaption>")[1]))
    assert classes == {"smooth", "no-change"}
    never = [record(chunk, hits=10) for chunk in range(12)]
    for one in never:
        object.__setattr__(one, "no_change", (0, 10))
    html = page(save(tmp_path / "other", never))
    assert legends(html)[0] == ["each chunk", "always b, 100 % overall"]
    assert (
        "The no-change predictor, which repeats the latest label, has 0.0 % overall, below this chart."
        in Text(html).text
    )


def test_changes_that_crowd_at_the_beginning_have_a_chart_of_their_own():
    run = added(record(chunk, growths=(chunk in (1, 2, 4, 6), 0)) for chunk in range(3000))
    end, chart = beginning_chart(run)
    assert end == 90  # a quarter more than what it takes to have them all
    assert chart.label.endswith("4 growths, generative.")
    assert "Its first 90 samples" in Text(page_of_run(run)).text
    apart = (record(chunk, growths=(chunk % 700 == 1, 0)) for chunk in range(3000))
    assert beginning_chart(added(apart)) is None
    late = (record(chunk, growths=(chunk in (1, 2, 4, 6) or chunk > 2990, 0)) for chunk in range(3000))
    assert beginning_chart(added(late)) is None


def test_one_scored_chunk_is_told_in_words(tmp_path, page):
    html = page(save(tmp_path / "run", [record(0), record(1)]))
    assert "80.0 % of 10 samples, all in one chunk: no curve." in Text(html).text
    assert "Classification rate 80.00 %" in Text(html).text


@pytest.mark.parametrize("labels", ["delay:1000", "fraction:0", "warmup:500", "uncertain:0.1"])
def test_runs_with_few_labels_are_drawn(tmp_path, page, labels):
    records = list(prequential(sea(5000), DEVDAN(random_state=0), labels))
    text = page(save(tmp_path / "run", records))
    assert ("discriminative phase" in Text(text).text) == (labels != "fraction:0")
    write_picture(tmp_path / "run", tmp_path / "run.svg")


# --- Classes -------------------------------------------------------------------------------------------------------


def test_many_classes_are_a_list_and_the_matrix_is_folded_away(tmp_path, page):
    records = many_classes()
    html = page(save(tmp_path / "run", records))
    text, summary = Text(html).text, Summary(records)
    worst = min(range(60), key=summary.confusion.recall)
    first = re.search(
        r'<table class="classes">.*?<tr><th scope="row">([^<]*)</th><td>([^<]*)</td><td>([^<]*)<', html, re.DOTALL
    )
    recall = f"{100 * summary.confusion.recall(worst):.1f} %"
    assert first.groups() == (f"kind {worst:02}", f"{summary.confusion.actual[worst]:,}", recall)
    assert "The other 50 classes" in text
    assert "Confusion matrix of 60 classes" in text
    assert html.count("<details>") == 2  # closed
    true, guess, n = max((c for c in summary.counts if c[0] != c[1]), key=lambda c: c[2])
    assert f"kind {true:02} kind {guess:02} {n}" in text
    order = [int(c) for c in re.findall(r'<th scope="col" class="class" title="kind (\d\d)"', html)]
    assert sorted(order) == list(range(60))
    apart = [abs(order.index(c) - order.index(c + 1)) for c in range(0, 60, 2)]
    assert apart == [1] * 30  # what is taken for each other is next to each other


def test_a_large_confusion_matrix_stays_small_and_tells_its_figures(tmp_path, page):
    names = [f"class {c}" for c in range(100)]
    counts = tuple((true, guess, 1 + true + guess) for true in range(100) for guess in range(99))
    first = record(0, classes=names)
    second = Record.from_json(first.to_json())
    object.__setattr__(second, "counts", counts)
    object.__setattr__(second, "new_classes", ())
    html = page(save(tmp_path / "run", [first, second]))
    assert len(html) < 1_000_000
    assert re.search(r'title="class 99 as class 98: 198 \(\d\.\d %\)"', html)
    assert 'class="matrix small"' in html
    assert "–" in html  # the precision of the class that was never predicted


def test_classes_over_time_are_those_of_the_records():
    run = added(many_classes(3, 1000, 30))
    assert MOST_CLASS_POINTS / 2 <= len(run.counts) <= MOST_CLASS_POINTS
    for c in range(3):
        assert sum(count.confusion.actual.get(c, 0) for count in run.counts) == run.summary.confusion.actual[c]
        assert sum(count.confusion.hits.get(c, 0) for count in run.counts) == run.summary.confusion.hits[c]
        assert np.mean(smooth_recall(run.counts, c)) == pytest.approx(run.summary.confusion.recall(c), abs=0.02)


# --- Columns and units ---------------------------------------------------------------------------------------------


def test_columns_that_became_the_same_are_told_in_one_line_and_notes_are_told(tmp_path, page):
    folder = save(tmp_path / "run", [record(chunk) for chunk in range(3)])
    columns = [{"name": f"f{k}", "became": "number"} for k in range(9)] + [{"name": "city", "became": "nominal"}]
    (folder / "summary.json").write_text(json.dumps({"columns": columns, "notes": ["the column id is left out"]}))
    text = Text(page(folder)).text
    assert "9 columns number: f0, f1, f2, f3, f4, f5, f6, f7, f8 city nominal" in text
    assert "Notes the column id is left out" in text


def test_a_run_keeps_what_its_page_tells(tmp_path, page):
    table, y = moving_table()
    with job(tmp_path / "run", open_stream((table, y), chunk=250)) as running:
        list(running.records())
        running.finish()
        model = running.evaluation.model
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
    n_replaying = len(model.units_) - model.n_hidden_
    assert f"{model.n_hidden_} now, and {n_replaying} that replay samples" in text
    assert f"{model.n_hidden_} units are of network 0, which evolves, {n_replaying} of network 1, which" in text
    assert f"The other {len(model.units_) - 10} units" in text
    points = json.loads(re.search(r'<script type="application/json" id="points">(.*?)</script>', html, re.DOTALL)[1])
    assert {series["name"] for series in points["charts"]["columns"][0]["series"]} == {"price", "city", "age"}


def test_columns_of_arrays_have_the_names_that_the_stream_gives_them(tmp_path, page):
    with job(tmp_path / "run", sea(2000)) as running:
        list(running.records())
        running.finish()
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
    text = Text(page(save(tmp_path / "run", records))).text
    assert "Which columns matter" not in text
    assert "replay" not in text


def test_many_places_are_joined():
    run = added(asked(chunk, (chunk % 2, 1 - chunk % 2)) for chunk in range(4000))
    assert len(run.importances) <= MOST_COLUMN_POINTS
    assert run.importances[-1].end == 40_000
    assert smooth_importance(run.importances, 0) == pytest.approx([0.5] * len(run.importances))


@pytest.mark.parametrize("units", [None, 3, [{}], [{"network": 0}], [dict.fromkeys(Unit._fields, "x")]])
def test_a_summary_without_proper_units_is_damaged(tmp_path, page, units):
    folder = save(tmp_path / "run", [record(0), record(1)])
    (folder / "summary.json").write_text(json.dumps({"units": units}))
    with pytest.raises(ReportError, match=r"summary\.json is damaged"):
        page(folder)


# --- Events --------------------------------------------------------------------------------------------------------


def test_events_are_told_with_their_causes_the_latest_first(tmp_path, page):
    model = DEVDAN(random_state=0)
    records = list(prequential(sea(4000, drifts=[2000]), model))
    told = [event for found in records for event in found.events]
    assert sorted(told) == sorted(model.events_)
    assert all(event.value >= event.bound > 0 for event in told)
    again = [Record.from_json(found.to_json()) for found in records]
    assert [found.events for found in again] == [found.events for found in records]
    html = page(save(tmp_path / "run", records))
    rows = re.findall(r'<tr><th scope="row">([\d,]+)</th><td>(.*?)</td><td>(.*?)</td></tr>', html)
    assert [int(sample.replace(",", "")) for sample, *_ in rows] == [event.sample for event in reversed(told)]
    assert [why for *_, why in rows] == [event.why for event in reversed(told)]
    assert f"growth to {told[0].n_hidden}, {told[0].phase} phase" == rows[-1][1]
    assert "too few hidden units" in rows[-1][2]


# --- While a run goes on -------------------------------------------------------------------------------------------


def words(folder):
    return Text((folder / "report.html").read_text()).text


def test_a_run_has_its_page_from_the_beginning_on(tmp_path, monkeypatch):
    monkeypatch.setattr("devdan.runs.runjob._REFRESHED", 0.0)
    monkeypatch.setattr("devdan.runs.runjob._COST", float("inf"))
    with job(tmp_path / "run", sea(5000)) as running:
        records, seen = running.records(), []
        for chunk, _ in enumerate(records, start=1):
            said = words(tmp_path / "run")
            assert "Run in progress" in said
            assert f"It has processed {500 * chunk:,}" in said
            seen.append(said)
        assert len(seen) == 10
        running.finish()
    assert "in progress" not in words(tmp_path / "run")
    assert 'id="running"' not in (tmp_path / "run/report.html").read_text()


def test_before_the_first_chunk_the_page_says_so(tmp_path):
    def chunks():
        assert "Its first chunk has not been processed yet" in words(tmp_path / "run")
        assert "Run in progress" in words(tmp_path / "run")
        yield np.zeros((4, 2)), np.array([0, 1, 0, 1])

    with job(tmp_path / "run", open_stream(chunks())) as running:
        list(running.records())


@pytest.mark.parametrize("ending", ["stopped", "bad", "broken", "empty"])
def test_a_page_does_not_claim_that_a_run_goes_on_which_has_ended(ending, tmp_path):
    def chunks():
        if ending == "empty":
            return
        yield np.zeros((4, 2)), np.array([0, 1, 0, 1])
        if ending == "bad":
            raise StreamError("a bad row")
        if ending == "broken":
            raise KeyboardInterrupt
        yield np.zeros((4, 2)), np.array([0, 1, 0, 1])

    with job(tmp_path / "run", open_stream(chunks(), chunk=4)) as running:
        records = running.records()
        if ending == "stopped":
            next(records)
            records.close()
        else:
            with pytest.raises((StreamError, KeyboardInterrupt)):
                list(records)
    assert "in progress" not in words(tmp_path / "run")
    assert "Unfinished run." in words(tmp_path / "run")


def test_the_page_of_a_run_that_goes_on_is_that_of_all_its_records(tmp_path):
    records = [record(chunk, growths=(chunk % 3, 0)) for chunk in range(50)]
    folder = save(tmp_path / "run", [], finished=False)
    report = RunReport(folder, tmp_path / "page.html")
    for start, end in ((0, 0), (0, 20), (20, 20), (20, 50)):
        with (folder / "records.jsonl").open("a") as file:
            file.writelines(one.to_json() + "\n" for one in records[start:end])
        report.write(goes_on=False)
    other = RunReport(folder, tmp_path / "other.html")
    other.write(goes_on=False)
    assert (tmp_path / "page.html").read_text() == (tmp_path / "other.html").read_text()
