"""Tables of many runs: every figure follows from the cells and the paper, and what is not there is said."""

import csv
import io
import json
import math
import re
from pathlib import Path
from statistics import fmean, pstdev
from xml.etree import ElementTree

import pytest
from grids import MODELS, STREAMS, keep, make, result
from scipy import stats
from webpages import HOSTILE, Text

from devdan.bench import markdown_sections, read_rows, write_tables
from devdan.bench.grid import GridError
from devdan.bench.grid_results import METHODS, published, read_grid
from devdan.bench.ranking import alike, critical_difference, rank
from devdan.bench.sheets import Sheet, SheetColumn, SheetEntry, SheetGroup, SheetRow, without_empty_columns

PAPER = Path(__file__).parents[2] / "src" / "devdan" / "bench" / "table1.csv"


def written(folder):
    """All that is written, by name."""
    return {path.name: path.read_text() for path in write_tables(folder)}


def rows(markdown):
    """Name and cells of the lines of Markdown's tables, by name; the first of each name."""
    lines = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in markdown.splitlines() if "|" in line]
    return {line[0]: line[1:] for line in reversed(lines)}


def lines(text):
    """The CSV by stream, model, labels and criterion."""
    return {(r["stream"], r["model"], r["labels"], r["criterion"]): r for r in csv.DictReader(io.StringIO(text))}


def test_ranks_are_those_of_scipy():
    rates = [[90, 80, 80, 85], [70, 75, 60, 65], [99, 99, 99, 98]]
    ranking = rank(["a", "b", "c", "d"], rates)
    means = stats.rankdata([[-rate for rate in row] for row in rates], axis=1).mean(axis=0)
    assert dict(zip(ranking.models, ranking.ranks, strict=True)) == dict(zip("abcd", means, strict=True))
    assert ranking.ranks == sorted(ranking.ranks)
    assert ranking.test == tuple(stats.friedmanchisquare(*zip(*rates, strict=True)))


@pytest.mark.parametrize(("k", "q"), [(2, 1.960), (3, 2.343), (5, 2.728), (10, 3.164)])  # Demšar 2006, Table 5a
def test_the_critical_difference_has_the_published_quantiles(k, q):
    n = 14
    assert critical_difference(k, n) == pytest.approx(q * math.sqrt(k * (k + 1) / (6 * n)), abs=1e-3)


def test_bars_join_all_that_do_not_differ_and_nothing_else():
    ranks, difference = [1.2, 1.9, 3.1, 3.3, 4.0, 6.5], 1.6
    joined = {
        (a, b) for first, last in alike(ranks, difference) for b in range(first, last + 1) for a in range(first, b)
    }
    assert joined == {(a, b) for b in range(6) for a in range(b) if ranks[b] - ranks[a] <= difference}
    assert alike(ranks, difference) == [(0, 1), (1, 3), (2, 4)]


@pytest.mark.parametrize(
    ("models", "rates", "lack"),
    [
        (["a", "b"], [[1, 2], [1, 2]], "at least 3 models and 2 streams, got 2 and 2"),
        (["a", "b", "c"], [[1, 2, 3]], "got 3 and 1"),
        (["a", "b", "c"], [[1, 1, 1], [2, 2, 2]], "models that differ"),
        ([], [], "got 0 and 0"),
    ],
)
def test_what_the_test_lacks_is_told(models, rates, lack):
    ranking = rank(models, rates)
    assert ranking.test is None
    assert lack in ranking.why_not


def test_the_papers_figures_are_those_of_table_1(tmp_path):
    names = {"sea": "SEA", "weather": "Weather", "kddcup": "KDDCup 10%"}
    with PAPER.open() as file:
        table = {(row["stream"], row["criterion"]): row for row in csv.DictReader(file)}
    text = written(make(tmp_path))["table.md"]
    for method in METHODS:
        cells = rows(text)[f"paper: {method}"]
        for stream, cell in zip(STREAMS, cells, strict=False):
            row = table[names[stream], "CR"]
            assert cell == f"{float(row[method]):.2f} ± {float(row[f'{method}_std']):.2f}"
    assert len(table) == 9 * 4
    assert all(published(stream, "NoP", "DEVDAN") for stream in ("susy", "hepmass", "rlcps", "rfid", "hyperplane"))


def test_figures_bold_and_differences(tmp_path):
    text = written(make(tmp_path))["table.md"]
    table = rows(text)
    mean = fmean(result("sea", "devdan", seed=seed)["cr_mean"] for seed in (0, 1))
    assert table["devdan"][0] == f"**{mean:.2f}** ± 5.50"
    assert table["devdan"][2] == f"{mean:.2f} ± 5.50"
    assert table["river-arf"][2].startswith("**93.55**")
    ours = fmean(result("sea", "devdan-paper", seed=seed)["cr_mean"] for seed in (0, 1))
    assert table["devdan-paper − DEVDAN"][0] == f"−{92.29 - ours:.2f}"
    assert text.count("**") == 2 * len(STREAMS)  # one best for each stream, none of the paper's
    seconds = rows(text[text.index("### Execution time") :])
    assert seconds["devdan"][0] == "3.00"
    assert seconds["paper: DEVDAN"][0] == "38.9"
    assert "devdan-paper − DEVDAN" not in rows(text[text.index("### Execution") : text.index("### Hidden")])
    hidden = rows(text[text.index("### Hidden units") : text.index("### Parameters")])
    assert hidden["ae − AE"][0] == "+2.00"
    assert "river-arf" not in hidden


def test_the_csv_agrees_with_the_cells(tmp_path):
    found = lines(written(make(tmp_path, labels=["all", "fraction:0.1"]))["table.csv"])
    for stream in STREAMS:
        for model in MODELS:
            for labels in ("all", "fraction:0.1"):
                line = found[stream, model, labels, "CR"]
                values = [result(stream, model, labels, seed)["cr_mean"] for seed in (0, 1)]
                assert float(line["mean"]) == pytest.approx(fmean(values))
                assert float(line["std_seeds"]) == pytest.approx(pstdev(values))
                assert (float(line["std_chunks"]), line["n_seeds"], line["n_failed"]) == (5.5, "2", "0")
                assert bool(line["paper"]) == (labels == "all" and model in ("devdan-paper", "ae"))
    line = found["weather", "ae", "all", "CR"]
    assert float(line["paper"]) == 73.76
    assert float(line["difference"]) == pytest.approx(float(line["mean"]) - 73.76)
    assert found["sea", "devdan-paper", "all", "ET"]["difference"] == ""
    assert found["sea", "river-arf", "all", "HN"]["mean"] == ""
    assert found["sea", "pENsemble+", "all", "CR"]["paper"] == "92.0"


def test_rules_members_and_labels_used(tmp_path):
    folder = make(tmp_path, streams=["sea", "weather"], models=["devdan", "pensemble+"], cells=False, seeds=1)
    for stream in ("sea", "weather"):
        keep(folder, stream, "devdan", **result(stream, "devdan"), n_labels=1000, n_classes=2)
        sizes = {"hn_mean": 2.0, "nop_mean": 40.0, "members_mean": 1.5, "n_labels": 300, "n_classes": 2}
        keep(folder, stream, "pensemble+", **result(stream, "devdan") | sizes)
    texts = written(folder)
    text = texts["table.md"]
    hidden, parameters, members, labels = (
        text[text.index(f"### {head}") :] for head in ("Hidden units", "Parameters", "Members", "Labels used")
    )
    assert rows(hidden)["pensemble+"][0].startswith("2.00")
    assert "pensemble+ − pENsemble+" not in hidden[: hidden.index("### Parameters")]
    assert rows(parameters)["pensemble+"] == ["40.0", "40.0"]
    scripted = parameters[parameters.index("*Counted as if every rule had two inputs*") :]
    assert rows(scripted)["pensemble+"] == ["24.0", "24.0"]
    assert rows(scripted)["pensemble+ − pENsemble+"] == ["−36.3", "−0.3"]
    assert rows(members)["pensemble+"] == ["1.50", "1.50"]
    assert "devdan" not in rows(members[: members.index("### Labels used")])
    assert rows(labels)["pensemble+"] == ["30.0", "30.0"]
    assert "devdan" not in rows(labels[: labels.index("## Average ranks")])
    found = lines(texts["table.csv"])
    assert float(found["sea", "pensemble+", "all", "NoP_scripts"]["mean"]) == 24
    assert found["sea", "devdan", "all", "NoP_scripts"]["mean"] == ""
    assert found["sea", "pensemble+", "all", "CR"]["paper"] == "92.0"
    assert found["sea", "pENsemble", "all", "CR"]["paper"] == "92.0"
    assert ("sea", "pENsemble+", "all", "CR") not in found


def test_ranks_in_all_forms(tmp_path):
    texts = written(make(tmp_path))
    section = markdown_sections(tmp_path)["ranks"]
    rates = [[fmean(result(s, m, seed=seed)["cr_mean"] for seed in (0, 1)) for m in MODELS] for s in STREAMS]
    test = stats.friedmanchisquare(*zip(*rates, strict=True))
    assert f"χ² = {test.statistic:.2f}, p = {test.pvalue:.2g}" in section
    assert "N = 3 streams (sea, weather, kddcup)" in section
    assert "little power" in section
    assert f"Critical difference (Nemenyi, 0.05): {critical_difference(4, 3):.2f} ranks" in section
    table = rows(section)
    assert table["devdan"] == ["1.33"]
    assert table["ae"] == ["4.00"]
    assert rows(texts["table.md"])["devdan"][-1] == "1.33"
    assert f"critical difference {critical_difference(4, 3):.2f}" in texts["ranks.svg"]


def test_models_with_holes_are_left_out_of_the_ranks_and_named(tmp_path):
    folder = make(tmp_path)
    for seed in range(2):
        (folder / "cells" / "weather" / "ae" / "all" / f"{seed}.json").unlink()
    section = markdown_sections(folder)["ranks"]
    assert "Left out: ae, which has no result on weather." in section
    assert "3 models over N = 3 streams" in section
    assert "ae" not in rows(section)


def test_a_stream_that_has_only_begun_does_not_cost_the_models(tmp_path):
    folder = make(tmp_path, streams=[*STREAMS, "susy"], cells=False)
    for stream in STREAMS:
        for model in MODELS:
            keep(folder, stream, model)
    keep(folder, "susy", "devdan")
    grid = read_grid(folder)
    assert grid.complete(lambda stream, model: bool(grid.of(stream, model, "all"))) == (STREAMS, MODELS)
    section = markdown_sections(folder)["ranks"]
    assert "Left out: susy, where too few models have a result." in section


def test_what_is_missing_is_shown_with_how_to_get_it(tmp_path):
    missing = {"susy": "susy is not on this machine; `devdan fetch susy` downloads it"}
    models_missing = {"river-arf": "needs River: pip install 'devdan[river]'"}
    texts = written(make(tmp_path, [*STREAMS, "susy"], missing=missing, models_missing=models_missing))
    assert "susy (not run)" in texts["table.md"]
    assert "`devdan fetch susy` downloads it" in texts["table.md"]
    assert rows(texts["table.md"])["paper: DEVDAN"][3] == "77.53 ± 3.22"
    assert rows(texts["table.md"])["devdan"][3] == "–"
    page = Text(texts["table.html"]).text
    assert "devdan fetch susy downloads it" in page
    assert "needs River: pip install 'devdan[river]'" in page
    assert "of 18" in page  # 3 streams, 3 models, 2 seeds
    assert "Not complete" not in page
    headings = re.findall(r"<h2>(\w+ not on this machine)</h2>", texts["table.html"])
    assert headings == ["Streams not on this machine", "Models not on this machine"]


def test_an_incomplete_grid_says_so(tmp_path):
    folder = make(tmp_path)
    (folder / "cells" / "sea" / "ae" / "all" / "1.json").unlink()
    texts = written(folder)
    assert "> 23 of 24 runs are done" in texts["table.md"]
    assert "Not complete. 23 of 24 runs are done" in Text(texts["table.html"]).text
    assert rows(texts["table.md"])["ae"][0] == "89.00\\* ± 5.00"
    assert "fewer seeds than the others" in texts["table.md"]
    assert "1 of 2 seeds" in texts["table.html"]


def test_failed_runs_are_listed(tmp_path):
    folder = make(tmp_path)
    for seed in range(2):
        keep(folder, "kddcup", "river-arf", seed=seed, error="MemoryError: too\n large", started="")
    texts = written(folder)
    assert "kddcup · river-arf, 2 runs (labels all; seeds 0, 1): MemoryError: too large" in texts["table.md"]
    page = Text(texts["table.html"]).text
    assert "2 runs failed." in page
    assert "Runs 22 of 24" in page  # as the terminal counts them
    assert "Not complete" not in page
    assert rows(texts["table.md"])["river-arf"][2] == "failed"
    assert lines(texts["table.csv"])["kddcup", "river-arf", "all", "CR"]["n_failed"] == "2"
    assert "Left out: river-arf" in texts["table.md"]


def test_runs_that_were_stopped_say_so_instead_of_a_number(tmp_path):
    folder = make(tmp_path, stop_after=20)
    for seed in range(2):
        keep(folder, "kddcup", "river-arf", seed=seed, stopped_after=20, n_samples=500, wall_seconds=1201.0)
    keep(folder, "sea", "river-arf", seed=1, stopped_after=20, n_samples=500, wall_seconds=1201.0)
    texts = written(folder)
    table = rows(texts["table.md"])
    assert table["river-arf"][2] == "> 20 min"
    assert table["river-arf"][0].startswith("90.50\\*")
    assert "Where a time stands, the runs took longer and were stopped." in texts["table.md"]
    assert "Left out: river-arf, which has no result on kddcup." in texts["table.md"]
    assert "stopped after: 20 min" in texts["table.md"]
    assert "24 runs are done" not in texts["table.md"]  # nothing is left to do
    assert "$>$ 20 min" in texts["table.tex"]
    page = Text(texts["table.html"]).text
    assert "> 20 min" in page
    assert "3 stopped" in page
    line = lines(texts["table.csv"])["kddcup", "river-arf", "all", "CR"]
    assert (line["mean"], line["n_failed"], line["n_stopped"]) == ("", "0", "2")
    assert read_rows(folder)["n_stopped"] == 3


def test_no_change_and_kappa_against_it_stand_beside_the_rates(tmp_path):
    folder = make(tmp_path, streams=["sea", "weather"], models=["devdan", "ae"], seeds=1, cells=False)
    for stream in ("sea", "weather"):
        for model, accuracy in (("devdan", 0.9), ("ae", 0.8)):
            own = {"accuracy": accuracy, "kappa_no_change": (accuracy - 0.6) / 0.4, "no_change_rate": 60.0}
            keep(folder, stream, model, **result(stream, model) | own)
    texts = written(folder)
    assert rows(texts["table.md"])["no change"][:2] == ["60.00", "60.00"]
    beside = texts["table.md"][texts["table.md"].index("### Kappa vs no-change") :]
    assert rows(beside)["devdan"][:2] == ["0.750", "0.750"]
    assert texts["table.md"].index("### Classification rate") < texts["table.md"].index("### Kappa vs no-change")
    assert texts["table.md"].index("### Kappa vs no-change") < texts["table.md"].index("### Execution time")
    found = lines(texts["table.csv"])
    assert float(found["weather", "ae", "all", "no_change"]["mean"]) == pytest.approx(60)
    assert float(found["weather", "ae", "all", "kappa_no_change"]["mean"]) == pytest.approx(0.5)
    page = texts["table.html"]
    assert (
        page.index("<h2>Classification rate") < page.index("<h2>Kappa vs no-change") < page.index("<h2>Average ranks")
    )


def rare(folder, **info):
    """A grid on a balanced stream and on one with a rare class, which the careless model never finds."""
    kept = make(folder, streams=["sea", "fraud"], models=["devdan", "ae", "river-arf"], seeds=1, cells=False, **info)
    found = {"devdan": (97.0, 0.5, 0.4), "ae": (97.5, 0.1, 0.0), "river-arf": (98.0, 0.3, 0.2)}
    for model, (rate, precision, f1) in found.items():
        keep(kept, "sea", model, **result("sea", model) | {"majority_rate": 64.0})
        own = {"rarest_average_precision": precision, "rarest_recall": f1, "rarest_precision": f1, "rarest_f1": f1}
        keep(kept, "fraud", model, **result("fraud", model) | own | {"cr_mean": rate, "majority_rate": 97.5})
    return kept


def test_where_a_class_is_rare_models_are_ranked_by_how_well_it_is_found(tmp_path):
    folder = rare(tmp_path / "own")
    grid, texts = read_grid(folder), written(folder)
    assert [grid.by(stream) for stream in grid.plan.streams] == ["CR", "rarest_average_precision"]
    assert dict(zip(grid.ranking.models, grid.ranking.ranks, strict=True)) == {"devdan": 1, "river-arf": 2, "ae": 3}
    assert "ranked by CR on sea, rarest\\_average\\_precision on fraud averaged over seeds" in texts["table.md"]
    assert rows(texts["table.md"])["majority"][:2] == ["64.00", "97.50"]
    of_rare = texts["table.md"][texts["table.md"].index("### Average precision, rarest class") :]
    assert rows(of_rare)["devdan"] == ["–", "**0.500**"]
    assert "devdan 0.500" in texts["table.html"]


def test_of_rare_classes_only_how_well_they_are_found_comes_first(tmp_path):
    folder = rare(tmp_path / "own")
    (folder / "table.json").write_text((folder / "table.json").read_text().replace('["sea", "fraud"]', '["fraud"]'))
    text = written(folder)["table.md"]
    heads = re.findall("### (.*)", text)
    assert [head.partition(",")[0] for head in heads[:4]] == (
        ["Average precision", "Recall", "Precision", "Classification rate"]
    )
    for model, rate in (("ae", "97.50"), ("river-arf", "**98.00**")):  # only the second is better than the majority's
        assert rows(text[text.index("### Classification rate") :])[model] == [f"{rate} ± 5.00"]
    page = written(folder)["table.html"]
    assert page.index("<h2>Classification rate") < page.index("<h2>Average ranks")


def test_a_model_without_probabilities_is_compared_by_f1(tmp_path):
    folder = rare(tmp_path / "own")
    path = folder / "cells" / "fraud" / "devdan" / "all" / "0.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"rarest_average_precision": None}))
    assert read_grid(folder).by("fraud") == "rarest_f1"


def test_models_are_ranked_by_what_is_named_and_less_may_be_better(tmp_path):
    folder = rare(tmp_path / "own", by="et")
    for model, own in (("devdan", 3.0), ("ae", 2.0), ("river-arf", 1.0)):
        for stream in ("sea", "fraud"):
            keep(folder, stream, model, **result(stream, model) | {"train_seconds": own})
    grid, texts = read_grid(folder), written(folder)
    assert grid.ranking.models == ["river-arf", "ae", "devdan"]
    assert "ranked by ET averaged over seeds" in texts["table.md"]
    assert "devdan behind the best" in texts["table.html"]
    with pytest.raises(GridError, match="by must be a measure, got 'speed': name one of CR, kappa_no_change, ET"):
        read_grid(rare(tmp_path / "other", by="speed"))


def test_only_cells_of_the_grid_count(tmp_path):
    folder = make(tmp_path)
    before = written(folder)
    keep(folder, "sea", "devdan", seed=7)
    keep(folder, "sea", "devdan", labels="fraction:0.5")
    keep(folder, "rain", "devdan")
    (folder / "cells" / "sea" / "devdan" / "all" / "0.json.part").write_text("{")
    assert written(folder) == before
    other = json.loads((folder / "cells" / "sea" / "ae" / "all" / "0.json").read_text()) | {"chunk": 100}
    (folder / "cells" / "sea" / "ae" / "all" / "0.json").write_text(json.dumps(other))
    (folder / "cells" / "sea" / "ae" / "all" / "1.json").write_text("{")
    assert "22 of 24 runs" in written(folder)["table.md"]


def test_label_scarcity(tmp_path):
    labels = ["all", "fraction:0.05", "fraction:0.5", "delay:1000"]
    models = [*MODELS, "devdan-no-generative"]
    folder = make(tmp_path, models=models, labels=labels)
    texts = written(folder)
    section = markdown_sections(folder)["scarcity"]
    head = next(line for line in section.splitlines() if line.startswith("|"))
    assert [cell.strip() for cell in head.strip("|").split("|")] == ["", "100 %", "50 %", "5 %", "1,000 samples late"]
    average = fmean(result(s, "devdan", "fraction:0.05", n)["cr_mean"] for s in STREAMS for n in (0, 1))
    assert rows(section[: section.index("### sea")])["devdan"][2].strip("*") == f"{average:.2f}"
    assert rows(section)["generative phase, on − off"] == ["+2.30"] * 4
    picture = ElementTree.fromstring(texts["scarcity.svg"])
    heads = [text.text for text in picture.iter("{http://www.w3.org/2000/svg}text") if text.get("class") == "head"]
    assert heads == ["Average over 3 streams", *STREAMS]
    assert texts["scarcity.svg"].count('class="share own-off"') == 4
    assert "it adds +2.30 points with 100 % of the labels" in Text(texts["table.html"]).text
    assert "Scarce labels" in Text(texts["table.html"]).text


def test_without_other_labels_there_is_no_scarcity(tmp_path):
    texts = written(make(tmp_path))
    assert "scarcity.svg" not in texts
    assert markdown_sections(tmp_path)["scarcity"] == ""
    assert "Scarce labels" not in Text(texts["table.html"]).text


def test_settings(tmp_path):
    section = markdown_sections(make(tmp_path, about={"devdan": "as you get it"}))["settings"]
    for text in ("devdan table --seeds 2", "seeds: 2", "a CPU, 2 cores, an OS", "devdan: 0.1.0", "15 Nov 2026"):
        assert text in section
    assert "devdan: as you get it" in section


def test_the_latex_is_balanced_and_escaped(tmp_path):
    folder = make(tmp_path, streams=["my_data & 5%", "sea"], models=["devdan", "a_b#{$"], cells=False)
    for model in ("devdan", "a_b#{$"):
        for stream in ("my_data & 5%", "sea"):
            keep(folder, stream, model, **result("sea", "devdan"))
    tex = written(folder)["table.tex"]
    bare = re.sub(r"\\[&%$#_{}]", "", tex)
    assert bare.count("{") == bare.count("}")
    assert bare.replace("\\$", "").count("$") % 2 == 0
    opened, closed = re.findall(r"\\begin\{(.*?)\}", tex), re.findall(r"\\end\{(.*?)\}", tex)
    assert sorted(opened) == sorted(closed)
    assert "my\\_data \\& 5\\%" in tex
    assert "a\\_b\\#\\{\\$" in tex
    body = "\n".join(tex.splitlines()[1:])
    assert not re.search(r"(?<!\\)%", body)
    for table in re.findall(r"\\begin\{tabular\}\{(l.*?)\}(.*?)\\end\{tabular\}", tex, re.DOTALL):
        for line in table[1].splitlines():
            if "&" in line and "multicolumn" not in line:
                assert len(re.findall(r"(?<!\\)&", line)) == len(table[0]) - 1
    assert tex.isascii()
    assert re.search(r"\\textbf\{91\.00\*\} \$\\pm\$ 5\.00", tex)


def test_the_page_is_complete_in_itself(tmp_path):
    html = written(make(tmp_path, labels=["all", "fraction:0.1"]))["table.html"]
    parsed = Text(html)
    assert parsed.open == []
    assert parsed.sources == []
    assert not re.search(r"https?://|src=|@import|url\(", html)
    assert html.startswith("<!doctype html>")
    assert html.count("<b>") >= len(STREAMS)
    assert "Times are only comparable within one run of the table" in parsed.text


def test_pictures_stand_alone(tmp_path):
    texts = written(make(tmp_path, labels=["all", "fraction:0.1"]))
    for name in ("ranks.svg", "scarcity.svg"):
        tree = ElementTree.fromstring(texts[name])
        assert tree.get("viewBox").startswith("0 0 800 ")
        assert "prefers-color-scheme: dark" in texts[name]
        assert not re.search(r"<script|href=\"[^#]|url\(", texts[name])


def test_users_text_stays_text(tmp_path):
    image = '"><img src=x onerror=alert(2)>'
    folder = make(tmp_path, command=HOSTILE, missing={"susy": HOSTILE}, streams=[*STREAMS, "susy"], about={"ae": image})
    keep(folder, "sea", "ae", error=f"{HOSTILE} | `x` {image}", started="")
    texts = written(folder)
    html = texts["table.html"]
    assert Text(html).open == []
    assert Text(html).scripts == [None]
    assert "<script>alert" not in html
    assert "<img" not in html
    assert HOSTILE in "".join(Text(html).words)
    listed = next(line for line in texts["table.md"].splitlines() if "sea · ae" in line)
    assert "<script" not in listed
    assert "\\|" in listed


@pytest.mark.parametrize(
    "grid",
    [
        {"cells": False},
        {"models": ["devdan"]},
        {"models": ["river-arf"]},
        {"streams": ["sea"]},
        {"streams": ["sea"], "models": ["ae"], "seeds": 1},
        {"streams": ["rain"], "models": ["devdan", "ae"], "seeds": 1},
        {"labels": ["fraction:0.1"]},
        {"labels": ["delay:1000", "fraction:0.5"]},
        {"missing": dict.fromkeys(STREAMS, "gone")},
    ],
)
def test_whatever_there_is_can_be_shown(tmp_path, grid):
    texts = written(make(tmp_path, **grid))
    assert {"table.md", "table.csv", "table.tex", "table.html"} <= texts.keys()
    assert Text(texts["table.html"]).open == []
    for name in texts.keys() & {"ranks.svg", "scarcity.svg"}:
        ElementTree.fromstring(texts[name])
    assert set(markdown_sections(tmp_path)) >= {"table", "ranks", "scarcity", "settings", "missing", "failures"}


def test_cells_without_a_rate(tmp_path):
    folder = make(tmp_path, labels=["all", "fraction:0.5"], cells=False)
    for labels in ("all", "fraction:0.5"):
        keep(folder, "sea", "devdan", labels, **result("sea", "devdan") | {"cr_mean": None, "cr_std": None})
    texts = written(folder)
    assert rows(texts["table.md"])["devdan"][0] == "–"
    assert "no results to rank" in texts["table.md"]


def test_what_cannot_be_shown_is_told_in_one_line(tmp_path):
    with pytest.raises(GridError, match=r"no table in .*table\.json"):
        write_tables(tmp_path)
    axes = {"streams": ["sea"], "models": ["ae"], "labels": ["all"]}
    for damaged in (
        *("{", "[]", '{"streams": 3}'),
        *(
            json.dumps(axes | damage)
            for damage in (
                *({"streams": []}, {"models": "ae"}, {"labels": [3]}, {"seeds": "two"}, {"chunk": "all"}),
                *({"limit": "all"}, {"missing": None}, {"files": "what?"}, {"files": {"sea": None, "rain": 3}}),
            )
        ),
    ):
        (tmp_path / "table.json").write_text(damaged)
        with pytest.raises(GridError, match=r"table\.json is damaged: .") as told:
            write_tables(tmp_path)
        assert "\n" not in str(told.value)


def test_a_sheet_of_the_page_has_no_columns_with_nothing_in_them():
    rows = [
        SheetRow("a", [SheetEntry("1"), SheetEntry(), SheetEntry("")]),
        SheetRow("b", [SheetEntry(), SheetEntry(), SheetEntry("2")]),
    ]
    sheet = Sheet(
        "CR", [], [SheetColumn("sea"), SheetColumn("susy", "not run"), SheetColumn("rank")], [SheetGroup("both", rows)]
    )
    kept = without_empty_columns(sheet)
    assert kept.columns == [SheetColumn("sea"), SheetColumn("rank")]
    assert [[entry.text for entry in row.entries] for row in kept.groups[0].rows] == [["1", ""], ["–", "2"]]
