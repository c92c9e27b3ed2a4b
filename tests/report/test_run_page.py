"""The page of a run: what it draws, what it says where there is nothing to draw, and how it keeps up with the run."""

import json
import re

import numpy as np
import pytest
from runs import many_classes, record, save
from webpages import Text, legends

from devdan import DEVDAN
from devdan.evaluation.loop import Evaluation, prequential
from devdan.evaluation.record import Record, Summary
from devdan.experiments.provenance import describe
from devdan.experiments.runjob import RunJob
from devdan.report import RunReport
from devdan.report.run import run_charts
from devdan.report.run.class_counts import MOST_CLASS_POINTS, smooth_recall
from devdan.report.run.event_marks import MOST_LINES
from devdan.report.run.shown_run import read_run
from devdan.streams import StreamError, open_stream, sea


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
    assert legends(html)[0] == ["each chunk"]
    assert (
        "The no-change predictor, which repeats the latest label, has 0.0 % overall, below this chart."
        in Text(html).text
    )


def test_changes_that_crowd_at_the_beginning_have_a_chart_of_their_own(tmp_path, page):
    crowded = [record(chunk, growths=(chunk in (1, 2, 4, 6), 0)) for chunk in range(3000)]
    run = read_run(save(tmp_path / "crowded", crowded))
    end, chart = run_charts.beginning(run)
    assert end == 90  # a quarter more than what it takes to have them all
    assert chart.label.endswith("4 growths, generative.")
    assert "Its first 90 samples" in Text(page(tmp_path / "crowded")).text
    apart = [record(chunk, growths=(chunk % 700 == 1, 0)) for chunk in range(3000)]
    assert run_charts.beginning(read_run(save(tmp_path / "apart", apart))) is None
    late = [record(chunk, growths=(chunk in (1, 2, 4, 6) or chunk > 2990, 0)) for chunk in range(3000)]
    assert run_charts.beginning(read_run(save(tmp_path / "late", late))) is None


def test_one_scored_chunk_is_told_in_words(tmp_path, page):
    html = page(save(tmp_path / "run", [record(0), record(1)]))
    assert "80.0 % of 10 samples, all in one chunk: no curve." in Text(html).text
    assert "Classification rate 80.00 %" in Text(html).text


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


def test_classes_over_time_are_those_of_the_records(tmp_path):
    records = many_classes(3, 1000, 30)
    run = read_run(save(tmp_path / "run", records))
    assert MOST_CLASS_POINTS / 2 <= len(run.counts) <= MOST_CLASS_POINTS
    for c in range(3):
        assert sum(count.actual.get(c, 0) for count in run.counts) == run.summary.confusion.actual[c]
        assert sum(count.hits.get(c, 0) for count in run.counts) == run.summary.confusion.hits[c]
        assert np.mean(smooth_recall(run.counts, c)) == pytest.approx(run.summary.confusion.recall(c), abs=0.02)


def test_columns_that_became_the_same_are_told_in_one_line_and_notes_are_told(tmp_path, page):
    folder = save(tmp_path / "run", [record(chunk) for chunk in range(3)])
    columns = [{"name": f"f{k}", "became": "number"} for k in range(9)] + [{"name": "city", "became": "nominal"}]
    (folder / "summary.json").write_text(json.dumps({"columns": columns, "notes": ["the column id is left out"]}))
    text = Text(page(folder)).text
    assert "9 columns number: f0, f1, f2, f3, f4, f5, f6, f7, f8 city nominal" in text
    assert "Notes the column id is left out" in text


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


def test_a_record_with_an_event_of_no_kind_is_none():
    line = record(0).to_json().replace('"events": null', '"events": [[1, "generative", "party", 0, 1, 0, 1.0, 1.0]]')
    with pytest.raises(ValueError, match="no event"):
        Record.from_json(line)


def test_a_run_from_before_confidences_were_counted_is_shown_without_them(tmp_path, page):
    records = list(prequential(sea(3000), DEVDAN(random_state=0)))
    assert "Calibration error" in Text(page(save(tmp_path / "new", records))).text
    lines = [json.loads(record.to_json()) for record in records]
    for line in lines:
        del line["reliability"], line["calibration_error"]
    old = save(tmp_path / "old", [])
    (old / "records.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert "Calibration" not in page(old)


# --- While a run goes on -----------------------------------------------------------------------------------------


def job(folder, stream, **options):
    model = DEVDAN(random_state=0)
    settings = describe(stream, model, {}, model="devdan", seed=0, chunk=stream.chunk, labels="all")
    return RunJob(folder, stream, Evaluation(model), settings, **options)


def words(folder):
    return Text((folder / "report.html").read_text()).text


def test_a_run_has_its_page_from_the_beginning_on(tmp_path, monkeypatch):
    monkeypatch.setattr("devdan.experiments.runjob._RENEWED", 0.0)
    monkeypatch.setattr("devdan.experiments.runjob._COST", float("inf"))
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
