"""Plots for notebooks: what is drawn is what the records say."""

import numpy as np
import pytest
from runs import many_classes, record

from devdan import DEVDAN
from devdan.evaluation.record import Summary
from devdan.plot import (
    AccuracyDisplay,
    ConfusionDisplay,
    ExplanationDisplay,
    ImportancesDisplay,
    ReliabilityDisplay,
    StructureDisplay,
)
from devdan.streams import sea

plt = pytest.importorskip("matplotlib.pyplot", reason="Matplotlib is not installed")
DISPLAYS = [AccuracyDisplay, ConfusionDisplay, ImportancesDisplay, ReliabilityDisplay, StructureDisplay]


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def texts(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


@pytest.mark.parametrize("kind", DISPLAYS)
def test_a_display_draws_into_new_axes_or_given_ones(kind, sea_records):
    new = kind.from_records(iter(sea_records))
    assert new.figure_ is new.ax_.figure
    _, axes = plt.subplots()
    given = kind.from_records(sea_records, ax=axes)
    assert given.ax_ is axes
    given.figure_.canvas.draw()


def test_the_accuracy_is_that_of_the_chunks(sea_records):
    display = AccuracyDisplay.from_records(sea_records, name="mine", true_drifts=[1250, 2500], color="C3")
    assert display.samples == [500 * (n + 1) for n in range(20)]
    assert display.accuracy[1:] == [100 * one.accuracy for one in sea_records[1:]]
    assert display.line_.get_color() == "C3"
    assert texts(display)[:2] == ["mine", "true drift"]
    assert [round(line.get_xdata()[0]) for line in display.ax_.lines[2:4]] == [1250, 2500]


def test_drifts_are_drawn_by_their_kind():
    records = [record(chunk, drifts=(chunk == 3, chunk in (5, 6))) for chunk in range(30)]
    display = AccuracyDisplay.from_records(records)
    assert texts(display) == ["virtual drift signalled", "real drift signalled"]
    assert [line.get_xdata()[0] for line in display.ax_.lines[2:]] == [40, 60, 70]


def test_the_structure_has_every_change(sea_records):
    display = StructureDisplay.from_records(sea_records)
    assert display.n_hidden == [one.n_hidden for one in sea_records]
    drawn = {line.get_label(): len(line.get_xdata()) for line in display.ax_.lines[1:]}
    grown = sum(1 for one in sea_records if one.growths.generative)
    assert drawn["growth, generative"] == grown > 0
    with pytest.raises(ValueError, match="hidden units or rules"):
        StructureDisplay.from_records([record(0, structure=False)])


def test_reliability_tells_its_error(sea_records):
    display = ReliabilityDisplay.from_records(sea_records, name="mine")
    assert display.error == Summary(sea_records).calibration_error
    assert texts(display) == [f"mine, calibration error {display.error:.3f}"]
    with pytest.raises(ValueError, match="tells probabilities"):
        ReliabilityDisplay.from_records([record(0), record(1)])


def test_confusions_are_counts_or_shares(sea_records):
    summary = Summary(sea_records)
    counted = ConfusionDisplay.from_records(sea_records)
    assert {(t, g): n for t, row in enumerate(counted.confusion_matrix.tolist()) for g, n in enumerate(row) if n} == {
        (summary.classes[t], summary.classes[g]): n for t, g, n in summary.counts
    }
    shares = ConfusionDisplay.from_records(sea_records, normalize="true").confusion_matrix
    assert shares.diagonal().tolist() == pytest.approx(
        [summary.confusion.recall(summary.classes.index(c)) for c in (0, 1)]
    )
    assert ConfusionDisplay.from_records(sea_records, normalize="all").confusion_matrix.sum() == pytest.approx(1)
    many = ConfusionDisplay.from_records(many_classes(20))
    assert sorted(many.display_labels) == [f"kind {c:02}" for c in range(20)]
    assert many.text_ is None  # too many for words
    with pytest.raises(ValueError, match="'true', 'pred', 'all' or None, got 'row'"):
        ConfusionDisplay.from_records(sea_records, normalize="row")
    with pytest.raises(ValueError, match="scored predictions, got none"):
        ConfusionDisplay.from_records([record(0)])


def test_importances_are_bars_of_a_model_or_lines_of_records(sea_records):
    model = DEVDAN(random_state=0).fit(*next(iter(sea(2000, chunk=2000))))
    bars = ImportancesDisplay.from_model(model, most=2, color="C3")
    shares = sorted(model.importances_.values(), reverse=True)
    assert [bar.get_width() for bar in bars.bars_] == shares[:2]
    assert [text.get_text() for text in bars.ax_.get_yticklabels()] == sorted(
        model.importances_, key=model.importances_.get, reverse=True
    )[:2]
    lines = ImportancesDisplay.from_records(sea_records, ["a", "b", "c"])
    told = [(one.start + one.n_samples, one.importances) for one in sea_records if one.importances]
    drawn = {line.get_label(): line for line in lines.lines_}
    assert set(texts(lines)) == {"a", "b", "c"}
    for k, name in enumerate("abc"):
        assert drawn[name].get_xdata().tolist() == [end for end, _ in told]
        assert drawn[name].get_ydata().tolist() == [shares[k] for _, shares in told]
    with pytest.raises(ValueError, match="names must be those of the 3 columns, got 2"):
        ImportancesDisplay.from_records(sea_records, ["a", "b"])
    with pytest.raises(ValueError, match="got no importances"):
        ImportancesDisplay.from_records([record(0)])


def test_an_explanation_is_drawn_whole():
    X = np.random.default_rng(0).normal(size=(500, 6))
    told = DEVDAN(random_state=0).fit(X, X[:, 0] + X[:, 1] > 0).explain(X[:2])
    display = ExplanationDisplay.from_explanation(told, 1, most=3)
    widths = [bar.get_width() for bar in display.bars_]
    assert widths[:3] == [value for _, value in told.strongest(1, 3)]
    assert sum(widths) == pytest.approx(told.log_odds[1] - told.baseline[1])
    assert display.ax_.get_yticklabels()[-1].get_text() == "3 others"
    assert len(ExplanationDisplay.from_explanation(told, 0).bars_) == 6
    assert display.ax_.get_title().startswith(f"{told.labels[1]}: log-odds")
