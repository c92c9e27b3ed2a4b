"""Reports: figures are those of the records, nothing is loaded from elsewhere, users' text stays text."""

import re
from xml.etree import ElementTree

import pytest
from runs import record, save
from webpages import HOSTILE, Text

from devdan.evaluation.record import Summary
from devdan.report import ReportError, write_picture


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
    assert f"Calibration error {summary.calibration_error:.3f}" in text
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
    (save(tmp_path / "old", [record(0), record(1)]) / "summary.json").write_text("{")
    with pytest.raises(ReportError, match=r"summary\.json is damaged"):
        page(tmp_path / "old")
    with pytest.raises(ReportError, match="at least one run folder, got none"):
        page()
    assert not list(tmp_path.glob("report.html*"))


def test_unknown_and_missing_settings(tmp_path, page):
    run = save(tmp_path / "run", [record(chunk) for chunk in range(3)])
    (run / "run.json").write_text('{"format": 1, "stream": null, "weather": "fine"}')
    text = Text(page(run)).text
    assert text.startswith("run run 30 samples")  # the title and the heading: the folder's name
    assert "weather fine" in text
    assert Text(page(run, run)).open == []


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
