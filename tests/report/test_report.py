"""Reports: every figure follows from the records, nothing is loaded from elsewhere, users' text stays text."""

import json
import re
from xml.etree import ElementTree

import pytest
from runs import record, save
from webpages import HOSTILE, Text

from devdan import DEVDAN
from devdan.evaluation.loop import prequential
from devdan.evaluation.record import Record, Summary
from devdan.report import ReportError, write_picture
from devdan.report.comparison.comparison_table import differences
from devdan.report.run.bins import MOST_POINTS
from devdan.report.run.event_marks import drifts, markers
from devdan.report.run.shown_run import read_run
from devdan.streams import sea


@pytest.fixture(scope="module")
def sea_records():
    return list(prequential(sea(10_000), DEVDAN(random_state=0)))


def test_the_page_is_complete_in_itself(tmp_path, page, sea_records):
    html = page(save(tmp_path / "run", sea_records))
    parsed = Text(html)
    assert parsed.open == []
    assert parsed.sources == []
    assert not re.search(r"https?://|src=|@import|url\(", html)
    assert html.startswith("<!doctype html>")
    assert len(html) < 100_000


def test_the_figures_are_those_of_the_summary(tmp_path, page, sea_records):
    text = Text(page(save(tmp_path / "run", sea_records))).text
    summary = Summary(sea_records)
    details = summary.details()
    confusion = summary.confusion
    assert f"{summary.rate.mean:.2f} % ± {summary.rate.std:.2f} over 19 chunks" in text
    assert f"Hidden units {summary.hidden.mean:.1f} ± {summary.hidden.std:.1f} over time" in text
    assert f"{sea_records[-1].n_hidden} now" in text
    assert f"Kappa {confusion.kappa:.3f}" in text
    assert f"Macro F1 {confusion.f1_macro:.3f}" in text
    assert f"G-mean {confusion.g_mean:.3f}" in text
    assert f"Kappa vs no-change {details['kappa_no_change']:.3f}" in text
    assert all(f"{n:,}" in text for _, _, n in details["counts"])
    for phase, n in details["growths"].items():
        assert re.search(rf"{n} growths?, {phase}", text)
    for setting in ("masking 0.1", "a CPU", "devdan run sea --seed 0", "15 Nov 2026, 11:00 UTC"):
        assert setting in text


def test_users_text_stays_text(tmp_path, page):
    records = [record(chunk, classes=(HOSTILE, '"><img src=x onerror=alert(2)>')) for chunk in range(30)]
    info = {"stream": HOSTILE, "origin": HOSTILE, "command": HOSTILE, "options": {HOSTILE: HOSTILE}, HOSTILE: HOSTILE}
    run = save(tmp_path / "run", records, **info)
    other = save(tmp_path / "other", records, stream=f"{HOSTILE}2", options={HOSTILE: "2"})
    for html in (page(run), page(run, other)):
        assert Text(html).scripts == ["points", None]
        assert "<script>alert" not in html
        assert "<img" not in html
        assert HOSTILE in "".join(Text(html).words)
    write_picture(run, tmp_path / "run.svg")
    assert "<script" not in (tmp_path / "run.svg").read_text()


def test_thinning_keeps_every_total(tmp_path, page):
    records = [
        record(chunk, hits=chunk % 11, growths=(chunk % 2, chunk % 3), prunings=(0, chunk % 5), drifts=(chunk % 7, 1))
        for chunk in range(20_000)
    ]
    folder = save(tmp_path / "run", records)
    run, summary = read_run(folder), Summary(records)
    assert MOST_POINTS / 2 <= len(run.bins) <= MOST_POINTS
    assert sum(bin.n_chunks for bin in run.bins) == 20_000
    assert [bin.start for bin in run.bins[1:]] == [bin.end for bin in run.bins[:-1]]
    weighted = sum(bin.accuracy * bin.n_scored for bin in run.bins) / sum(bin.n_scored for bin in run.bins)
    assert weighted == pytest.approx(summary.confusion.accuracy)
    drawn = markers(run.bins, run.summary.n_samples)
    assert len(drawn) <= 4 * 100
    drawn += drifts(run.bins)
    for kind, phases in (("growth", summary.growths), ("pruning", summary.prunings), ("drift", summary.drifts)):
        for phase, total in phases._asdict().items():
            assert sum(mark.n for mark in drawn if (mark.kind, mark.phase) == (kind, phase)) == total
    assert len(page(folder)) < 600_000


def test_a_few_chunks_are_drawn_as_they_are(tmp_path):
    records = [record(chunk, growths=(chunk, 0)) for chunk in range(7)]
    run = read_run(save(tmp_path / "run", records))
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


def test_a_run_without_drifts_does_not_speak_of_them(tmp_path, page):
    records = [record(chunk) for chunk in range(12)]
    assert 'class="drift' not in page(save(tmp_path / "run", records))


def test_records_from_before_drifts_were_counted_are_shown(tmp_path, page):
    folder = save(tmp_path / "run", [record(chunk) for chunk in range(12)])
    lines = [json.loads(line) for line in (folder / "records.jsonl").read_text().splitlines()]
    old = [{name: value for name, value in line.items() if name != "drifts"} for line in lines]
    (folder / "records.jsonl").write_text("".join(json.dumps(line) + "\n" for line in old))
    assert read_run(folder).summary.drifts is None
    assert "signalled" not in page(folder)


def test_an_unfinished_run_says_so(tmp_path, page):
    records = [record(chunk) for chunk in range(30)]
    assert "Unfinished" not in page(save(tmp_path / "finished", records))
    text = Text(page(save(tmp_path / "cut", records, finished=False))).text
    assert "Unfinished run. It has processed 300 of 10,000 samples (3 %)" in text


def test_a_cut_last_line_is_ignored(tmp_path, page):
    whole = save(tmp_path / "whole", [record(chunk) for chunk in range(5)])
    before = page(whole)
    with (whole / "records.jsonl").open("a") as file:
        file.write(record(5).to_json()[:100])
    assert page(whole) == before


@pytest.mark.parametrize("damaged", ["{", '{"chunk": 1}', "[]", "7", ""])
def test_a_damaged_line_is_named(tmp_path, page, damaged):
    run = save(tmp_path / "run", [record(chunk) for chunk in range(5)])
    lines = (run / "records.jsonl").read_text().split("\n")
    lines[2] = damaged
    (run / "records.jsonl").write_text("\n".join(lines))
    with pytest.raises(ReportError, match=r"records\.jsonl, line 3: not a record"):
        page(run)


def test_what_cannot_be_shown_is_told_in_one_line(tmp_path, page):
    with pytest.raises(ReportError, match=r"no such folder: .*nowhere"):
        page(tmp_path / "nowhere")
    with pytest.raises(ReportError, match="no run in"):
        page(tmp_path)
    with pytest.raises(ReportError, match="no records yet in"):
        page(save(tmp_path / "young", []))
    (tmp_path / "young" / "records.jsonl").unlink()
    with pytest.raises(ReportError, match="no records yet in"):
        page(tmp_path / "young")
    (tmp_path / "young" / "run.json").write_text("{")
    with pytest.raises(ReportError, match=r"run\.json is damaged"):
        page(tmp_path / "young")
    with pytest.raises(ReportError, match="at least one run folder, got none"):
        page()
    assert not list(tmp_path.glob("report.html*"))


def test_models_without_structure_have_no_charts_of_it(tmp_path, page):
    with_structure = page(save(tmp_path / "a", [record(chunk) for chunk in range(30)]))
    without = page(save(tmp_path / "b", [record(chunk, structure=False) for chunk in range(30)]))
    assert with_structure.count('role="img"') == 4
    assert without.count('role="img"') == 1
    assert "Hidden units" in with_structure
    assert not re.search("hidden units|Parameters|Bias²", Text(without).text, re.IGNORECASE)
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


def test_unknown_and_missing_settings(tmp_path, page):
    run = save(tmp_path / "run", [record(chunk) for chunk in range(3)])
    (run / "run.json").write_text('{"stream": null, "weather": "fine"}')
    text = Text(page(run)).text
    assert text.startswith("run run 30 samples")  # the title and the heading: the folder's name
    assert "weather fine" in text
    assert Text(page(run, run)).open == []


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


def test_runs_side_by_side_show_each_and_only_what_differs(tmp_path, page, sea_records):
    runs = [
        save(tmp_path / "a", sea_records),
        save(tmp_path / "b", sea_records[:10], seed=7, finished=False, command="devdan run sea --seed 7"),
        save(tmp_path / "c", [record(c, structure=False) for c in range(9)], model="other", options={"depth": 4}),
    ]
    html = page(*runs)
    text = Text(html).text
    assert Text(html).open == []
    for folder in runs:
        assert f"{read_run(folder).summary.rate.mean:.2f}" in text
    assert "Unfinished run. B:" in text
    assert "devdan run sea --seed 7" in text
    assert dict(differences([read_run(folder) for folder in runs])) == {
        "model": ["devdan", "devdan", "other"],
        "seed": ["0", "7", "0"],
    }


def test_the_best_is_told_only_among_runs_on_the_same_samples(tmp_path, page):
    good = save(tmp_path / "good", [record(chunk, hits=9) for chunk in range(5)])
    bad = save(tmp_path / "bad", [record(chunk, hits=2) for chunk in range(5)])
    elsewhere = save(tmp_path / "elsewhere", [record(chunk, hits=10) for chunk in range(5)], stream="rain")
    html = page(good, bad, elsewhere)
    assert "<b>90.00</b>" in html
    assert "<b>20.00</b>" not in html
    assert "<b>100.00</b>" not in html


def test_the_picture_is_an_svg_that_stands_alone(tmp_path, sea_records):
    write_picture(save(tmp_path / "run", sea_records), tmp_path / "run.svg")
    tree = ElementTree.parse(tmp_path / "run.svg").getroot()
    assert tree.tag == "{http://www.w3.org/2000/svg}svg"
    assert tree.get("viewBox").startswith("0 0 800 ")
    assert "prefers-color-scheme: dark" in (tmp_path / "run.svg").read_text()
    summary = Summary(sea_records)
    marks = [use for use in tree.iter("{http://www.w3.org/2000/svg}use") if len(use)]
    drawn = sum(int(mark[0].text.split()[0]) for mark in marks)
    assert drawn == sum(summary.growths) + sum(summary.prunings)


@pytest.mark.parametrize("labels", ["delay:1000", "fraction:0", "warmup:500", "uncertain:0.1"])
def test_runs_with_few_labels_are_drawn(tmp_path, page, labels):
    records = list(prequential(sea(5000), DEVDAN(random_state=0), labels))
    text = page(save(tmp_path / "run", records))
    assert ("discriminative phase" in Text(text).text) == (labels != "fraction:0")
    write_picture(tmp_path / "run", tmp_path / "run.svg")
