"""Runs side by side: differences with their uncertainty, drifts and the recall of each class."""

import re

import numpy as np
import pytest
from runs import many_classes, record, save
from scipy.stats import ttest_1samp, ttest_ind
from webpages import Text

from devdan.report.comparison.comparison_classes import recalls
from devdan.report.comparison.comparison_contrasts import N_PARTS, contrasts, estimated, groups
from devdan.report.run.shown_run import read_run


@pytest.fixture
def run(tmp_path):
    """Makes a run of 200 chunks of 20 samples, right as often as told, and reads it."""

    def make(name, share, seed=0, n_chunks=200, n=20, **info):
        hits = np.random.default_rng([seed, *name.encode()]).binomial(n, share, n_chunks)
        records = [record(chunk, n=n, hits=int(h)) for chunk, h in enumerate(hits)]
        return read_run(save(tmp_path / f"{name}{seed}", records, seed=seed, options={"random_state": seed}, **info))

    return make


def test_over_seeds_the_interval_is_welchs(run):
    a = [run("a", 0.8, seed, model="a") for seed in range(4)]
    b = [run("b", 0.7, seed, model="b") for seed in range(5)]
    assert groups([*a, *b]) == [[0, 1, 2, 3], [4, 5, 6, 7, 8]]
    rates = [[one.summary.rate.mean for one in group] for group in (b, a)]
    expected = ttest_ind(*rates, equal_var=False).confidence_interval()
    estimate = estimated(b, a)
    assert (estimate.low, estimate.high) == pytest.approx((expected.low, expected.high))
    (contrast,) = contrasts([*a, *b])
    assert (contrast.names, contrast.verdict, contrast.source) == ("EFGHI − ABCD", "ABCD is better", "5 and 4 seeds")


def test_of_single_runs_the_interval_is_that_of_the_parts_of_the_stream(run):
    a, b = run("a", 0.8, model="a"), run("b", 0.79, model="b")
    gaps = []
    for part in range(N_PARTS):
        chunks = slice(part * 10, part * 10 + 10)
        shares = [
            sum(bin.hits for bin in one.bins[chunks]) / sum(bin.n_scored for bin in one.bins[chunks]) for one in (b, a)
        ]
        gaps.append(100 * (shares[0] - shares[1]))
    expected = ttest_1samp(gaps, 0).confidence_interval()
    estimate = estimated([b], [a])
    assert (estimate.low, estimate.high) == pytest.approx((expected.low, expected.high))
    assert estimate.difference == pytest.approx(np.mean(gaps))


def test_intervals_have_the_true_difference_as_often_as_they_say(run):
    held = []
    for seed in range(60):
        a, b = run("a", 0.8, seed), run("b", 0.7, seed)
        estimate = estimated([a], [b])
        held.append(estimate.low <= 10 <= estimate.high)
    assert 0.85 < np.mean(held) <= 1


def test_what_cannot_be_compared_is_not(run):
    first = run("a", 0.8)
    assert contrasts([first, run("b", 0.8, stream="other")]) == []
    assert contrasts([first, run("c", 0.8, n_chunks=4)]) == []  # too short
    (same,) = contrasts([first, read_run_again(first, run)])
    assert (same.difference, same.verdict) == ("0.00", "may be chance")


def read_run_again(first, run):
    """The same predictions of another model."""
    again = run("z", 0.5, model="again")
    again.summary, again.bins = first.summary, first.bins
    return again


def test_runs_of_different_lengths_are_compared_where_both_have_been(run):
    short, long = run("a", 0.9, n_chunks=100, model="a"), run("b", 0.8, n_chunks=200, model="b")
    estimate = estimated([long], [short])
    assert estimate.low < -10 < estimate.high
    assert estimate.source == f"{N_PARTS} parts of the stream"


def test_the_page_has_drifts_of_each_run_differences_and_recalls(tmp_path, page):
    one = [record(chunk, drifts=(0, chunk in (30, 60))) for chunk in range(100)]
    two = [record(chunk, hits=6, drifts=(chunk == 40, 0)) for chunk in range(100)]
    folders = [save(tmp_path / "one", one, drifts=[250]), save(tmp_path / "two", two, model="two", drifts=[250])]
    html = page(*folders)
    text = Text(html).text
    assert [re.findall(r"M(\d+),", path) for path in re.findall(r'<path class="lane s\d" d="([^"]*)"', html)] == [
        ["310", "610"],
        ["410"],
    ]
    assert "1 true drift" in text
    assert "B − A −20.00 −20.00 to −20.00 A is better 20 parts of the stream" in text
    assert "b 80.0 60.0" in text


def test_of_many_classes_those_that_differ_most_come_first(tmp_path):
    runs = [read_run(save(tmp_path / name, many_classes(120, seed=seed))) for seed, name in enumerate("ab")]
    rows = recalls(runs)
    assert len(rows) == 100
    assert [row.gap for row in rows] == sorted((row.gap for row in rows), reverse=True)
    few = recalls([read_run(save(tmp_path / "c", many_classes(20)))])
    assert [row.name for row in few] == [f"kind {c:02}" for c in range(20)]
    assert not any(any(row.best) for row in few)
