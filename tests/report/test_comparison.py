"""Runs side by side: figures, differences with their uncertainty, drifts, the recall of each class, and settings."""

import re
from dataclasses import replace

import numpy as np
import pytest
from runs import INFO, many_classes, rare_class, record, save
from scipy.stats import binomtest, t, ttest_ind
from webpages import Text

from devdan.evaluation.measures import RATE
from devdan.evaluation.record import Summary
from devdan.report.comparison import (
    N_PARTS,
    _figures,
    _heads,
    comparing,
    contrasts,
    estimated,
    groups,
    page_of_runs,
    recalls,
)
from devdan.report.rare import over_parts
from devdan.report.run_charts import points
from devdan.report.shown_run import ShownRun, differences, read_run


def run(name, share, seed=0, n_chunks=200, n=20, **info):
    """A run of so many chunks of ``n`` samples, right as often as told."""
    hits = np.random.default_rng([seed, *name.encode()]).binomial(n, share, n_chunks)
    return made(
        name, [halves(record(chunk, n=n, hits=n_right)) for chunk, n_right in enumerate(hits.tolist())], seed, **info
    )


def halves(one):
    """The chunk with as many right predictions, half of it of the first class."""
    n, right = one.n_samples // 2, one.confusion.hits.get(1, 0)
    a, b = right // 2, right - right // 2
    return replace(one, counts=((0, 0, a), (0, 1, n - a), (1, 1, b), (1, 0, n - b)) if one.counts else ())


def made(name, records, seed=0, **info):
    """A run with these records, which are kept."""
    shown = ShownRun(name, INFO | {"seed": seed, "options": {"random_state": seed}} | info, in_parts=True)
    shown.kept = records
    for one in records:
        shown.add(one)
    return shown


def values(one, measure, first, after):
    """What the measure of all chunks but some is, in a run whose chunks are kept one by one."""
    left = [kept for kept in one.kept if not first <= kept.chunk < after]
    return measure(Summary(left))


def jackknife(a, b, measure):
    """The difference of two runs, and its interval by leaving out each part of the stream, from whole chunks."""
    width = len(a.kept) // N_PARTS
    whole = values(a, measure, -1, -1) - values(b, measure, -1, -1)
    without = [
        values(a, measure, first, first + width) - values(b, measure, first, first + width)
        for first in range(0, len(a.kept), width)
    ]
    error = np.sqrt((N_PARTS - 1) * np.var(without))
    return whole, *t.interval(0.95, N_PARTS - 1, whole, error)


def test_over_seeds_the_interval_is_welchs():
    a = [run("a", 0.8, seed, model="a") for seed in range(4)]
    b = [run("b", 0.7, seed, model="b") for seed in range(5)]
    assert groups([*a, *b]) == [[0, 1, 2, 3], [4, 5, 6, 7, 8]]
    rates = [[one.summary.rate.mean for one in group] for group in (b, a)]
    expected = ttest_ind(*rates, equal_var=False).confidence_interval()
    estimate = estimated(b, a, RATE)
    assert (estimate.low, estimate.high) == pytest.approx((expected.low, expected.high))
    (contrast,) = contrasts([*a, *b])
    assert (contrast.names, contrast.verdict, contrast.source) == ("EFGHI − ABCD", "ABCD is better", "5 and 4 seeds")


def test_of_single_runs_the_interval_is_that_of_the_parts_of_the_stream():
    a, b = run("a", 0.8, model="a"), run("b", 0.79, model="b")
    expected = jackknife(b, a, lambda summary: 100 * summary.confusion.accuracy)
    estimate = estimated([b], [a], RATE)
    assert (estimate.difference, estimate.low, estimate.high) == pytest.approx(expected)


def test_where_a_class_is_rare_runs_are_compared_by_how_well_it_is_found():
    """The run that finds more frauds is the better one, though it is right less often."""
    careless, careful = made("a", rare_class(3)), made("b", rare_class(5, threshold=0.1), model="b")
    assert careless.summary.confusion.accuracy > careful.summary.confusion.accuracy
    precision, f1 = contrasts([careless, careful])
    assert (precision.measure, precision.verdict) == ("Average precision, rarest class", "B is better")
    assert (f1.measure, f1.verdict) == ("F1, rarest class", "B is better")
    expected = jackknife(careful, careless, lambda summary: summary.average_precision[1])
    estimate = estimated([careful], [careless], comparing("rarest_average_precision"))
    assert (estimate.difference, estimate.low, estimate.high) == pytest.approx(expected)


def test_where_a_class_is_rare_the_charts_lead_with_how_well_it_is_found():
    runs = [made("a", rare_class(3)), made("b", rare_class(5), model="b")]
    page = Text(page_of_runs(runs)).text
    assert "Average precision of fraud Over about a tenth of each run" in page
    assert page.index("Average precision of fraud Over") < page.index("Accuracy Moving means")
    assert re.search(r"always ok, 9\d\.\d % overall", page)
    share = runs[0].summary.confusion.actual[1] / runs[0].summary.confusion.n_samples
    assert f"by chance, {share:.3f}" in page
    shown = page_of_runs(runs)
    values = [run.figures["rarest_average_precision"] for run in runs]
    assert f"of 2 runs, over time; overall: A {values[0]:.3f}, B {values[1]:.3f}." in shown
    series = points(runs, comparing("rarest_average_precision"))["charts"]["headline"]
    assert [run["run"] for run in series] == ["A", "B"]
    assert "Over about a tenth" not in Text(page_of_runs(runs, comparing("cr"))).text
    assert "Recall of fraud Over about a tenth" in Text(page_of_runs(runs, comparing("rarest_recall"))).text
    even = [run("a", 0.8, model="a"), run("b", 0.79, model="b")]
    assert "Over about a tenth" not in Text(page_of_runs(even)).text


def test_without_probabilities_the_charts_lead_with_f1():
    """Beside no line of chance, which is one of probabilities."""
    runs = [
        made(name, [replace(one, scores=None) for one in rare_class(skill)], model=name)
        for name, skill in (("a", 5), ("b", 6))
    ]
    page = Text(page_of_runs(runs)).text
    assert "F1 of fraud Over about a tenth of each run" in page
    assert "by chance" not in page
    ends, values = over_parts(runs[0], comparing("rarest_f1"))
    around = Summary(runs[0].kept[18:23], begins=False)  # the chunk and the two on each side of it
    assert ends[20] == 21 * 250
    assert values[20] == around.confusion.f1(1)


def test_a_verdict_does_not_rest_on_accuracy_that_is_not_better_than_the_majoritys():
    careless, careful = made("a", rare_class(1)), made("b", rare_class(5, threshold=0.01), model="b")
    (contrast,) = contrasts([careless, careful], comparing("cr"))
    assert contrast.difference.startswith("−")
    assert contrast.verdict == "neither is better than always predicting ok"
    assert not any(figure.best for row in figures_of([careless, careful], "Classification rate, %") for figure in row)
    right = made("a", rare_class(9))
    (contrast,) = contrasts([right, careful], comparing("accuracy"))
    assert contrast.verdict == "A is better"


def test_another_measure_can_be_chosen_and_less_may_be_better():
    a, b = made("a", rare_class(2)), made("b", rare_class(6), model="b")
    (contrast,) = contrasts([a, b], comparing("log_loss"))
    assert contrast.difference.startswith("−")
    assert contrast.verdict == "B is better"
    with pytest.raises(ValueError, match="by must be a measure, got 'recal': name one of rarest_average_precision, "):
        comparing("recal")
    with pytest.raises(ValueError, match="by must be a measure, got 'ET'"):  # of parts of a stream, it says nothing
        comparing("ET")


def figures_of(runs, head):
    """The column of a measure."""
    place = _heads(runs).index(head)
    return [[row[place]] for row in _figures(runs)]


def test_intervals_have_the_true_difference_as_often_as_they_say():
    """In 19 of 20 cases, as far as 400 can tell: an interval of 90 or of 99 % would fail."""
    n_held, n = 0, 400
    for seed in range(n):
        estimate = estimated([run("a", 0.8, seed, N_PARTS, 200)], [run("b", 0.7, seed, N_PARTS, 200)], RATE)
        n_held += estimate.low <= 10 <= estimate.high
    likely = binomtest(n_held, n).proportion_ci(0.99)
    assert likely.low < 0.95 < likely.high
    assert not likely.low < 0.9 < likely.high
    assert not likely.low < 0.99 < likely.high


def test_what_cannot_be_compared_is_not():
    first = run("a", 0.8)
    assert contrasts([first, run("b", 0.8, stream="other")]) == []
    assert contrasts([first, run("c", 0.8, n_chunks=4)]) == []  # too short
    (same,) = contrasts([first, twin(first)])
    assert (same.difference, same.verdict) == ("0.00", "may be chance")


def twin(first):
    """The same predictions of another model."""
    again = run("z", 0.5, model="again")
    again.summary, again.bins, again.parts = first.summary, first.bins, first.parts
    return again


def test_runs_of_different_lengths_are_compared_where_both_have_been():
    short, long = run("a", 0.9, n_chunks=100, model="a"), run("b", 0.8, n_chunks=200, model="b")
    estimate = estimated([long], [short], RATE)
    assert estimate.low < -10 < estimate.high
    assert estimate.source == f"{N_PARTS} parts of the stream"


def test_the_page_has_drifts_of_each_run_differences_and_recalls(tmp_path, page):
    one = [halves(record(chunk, drifts=(0, chunk in (30, 60)))) for chunk in range(100)]
    two = [halves(record(chunk, hits=6, drifts=(chunk == 40, 0))) for chunk in range(100)]
    folders = [save(tmp_path / "one", one, drifts=[250]), save(tmp_path / "two", two, model="two", drifts=[250])]
    html = page(*folders)
    text = Text(html).text
    assert [re.findall(r"M(\d+),", path) for path in re.findall(r'<path class="lane s\d" d="([^"]*)"', html)] == [
        ["310", "610"],
        ["410"],
    ]
    assert "1 true drift" in text
    assert "B − A Classification rate, % −20.00 −20.00 to −20.00 A is better 20 parts of the stream" in text
    assert "b 80.0 60.0" in text


def test_of_many_classes_those_that_differ_most_come_first(tmp_path):
    runs = [read_run(save(tmp_path / name, many_classes(120, seed=seed))) for seed, name in enumerate("ab")]
    rows = recalls(runs)
    assert len(rows) == 100
    assert [row.gap for row in rows] == sorted((row.gap for row in rows), reverse=True)
    few = recalls([read_run(save(tmp_path / "c", many_classes(20)))])
    assert [row.name for row in few] == [f"kind {c:02}" for c in range(20)]
    assert not any(any(row.best) for row in few)


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
    good = save(tmp_path / "good", [halves(record(chunk, hits=9)) for chunk in range(5)])
    bad = save(tmp_path / "bad", [halves(record(chunk, hits=2)) for chunk in range(5)])
    elsewhere = save(tmp_path / "elsewhere", [halves(record(chunk, hits=10)) for chunk in range(5)], stream="rain")
    html = page(good, bad, elsewhere)
    assert "<b>90.00</b>" in html
    assert "<b>20.00</b>" not in html
    assert "<b>100.00</b>" not in html
