"""What a page shows of the rarest class is what scikit-learn says of the same predictions."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import average_precision_score, precision_score, recall_score

from devdan import DEVDAN
from devdan.evaluation.loop import prequential
from devdan.report.rare import headline, headline_chart, over_parts, over_time, rare_class
from devdan.report.run_page import page_of_run, picture_of_run
from devdan.report.shown_run import ShownRun
from devdan.streams import open_stream


class Told(ClassifierMixin, BaseEstimator):
    """Says what it is told to say: the probability of the second class is the first feature."""

    classes_ = np.array(["<ok>", "fraud & co"])

    def predict_proba(self, X):
        return np.column_stack([1 - X[:, 0], X[:, 0]])

    def predict(self, X):
        return self.classes_[(X[:, 0] >= 0.3).astype(int)]

    def partial_fit(self, X, y, classes=None):
        return self


def shown(share, n=4_000, chunk=100):
    random = np.random.default_rng(0)
    rare = random.random(n) < share
    scores = np.where(rare, random.beta(3, 4, n), random.beta(1, 9, n))
    y = Told.classes_[rare.astype(int)]
    run = ShownRun("run", {"model": "told", "stream": "rare"}, in_parts=True)
    for record in prequential(open_stream((scores[:, None], y), chunk=chunk), Told()):
        run.add(record)
    return run, scores, rare


def test_working_points_are_scikit_learns():
    run, scores, rare = shown(0.04)
    found = rare_class(run)
    assert (found.name, found.share) == ("fraud & co", f"{100 * rare.mean():.1f} %")
    own, *others = found.points
    called = scores >= 0.3
    assert own.threshold == "as decided"
    assert own.recall == f"{100 * recall_score(rare, called):.1f} %"
    assert own.precision == f"{100 * precision_score(rare, called):.1f} %"
    assert own.alerts == f"{1000 * called.mean():.1f}"
    for point, wanted in zip(others, (0.2, 0.4, 0.6, 0.8), strict=True):
        least = np.sort(scores[rare])[::-1][int(np.ceil(wanted * rare.sum())) - 1]  # finds so many
        assert float(point.threshold) == pytest.approx(least, rel=0.06)
        called = scores >= least - 0.0005
        assert float(point.precision[:-2]) == pytest.approx(100 * precision_score(rare, called), abs=1.5)
        assert float(point.alerts) == pytest.approx(1000 * called.mean(), abs=1.5)


def test_the_curves_are_those_of_all_thresholds():
    run, scores, rare = shown(0.04)
    found = rare_class(run)
    hits = np.cumsum(rare[np.argsort(-scores)])
    needed = (np.searchsorted(hits, 0.8 * rare.sum()) + 1) / len(scores)
    assert f"80 % of fraud & co are found by alerts for {100 * needed:.1f} % of the samples" in found.gain.label
    for chart in (found.precision_recall, found.gain):
        assert "as decided" in chart.label
        assert chart.body.count("<circle") == 1
        assert "nan" not in chart.body
    recall, precision = over_time(run, 1)
    assert len(recall) == len(precision) == len(run.counts)
    first = slice(0, run.counts[0].end)
    assert run.counts[0].confusion.predicted[1] == (scores[first] >= 0.3).sum()


def test_a_page_has_them_where_a_class_is_rare():
    page = page_of_run(shown(0.04)[0])
    assert "Working points for fraud &amp; co" in page
    assert "<ok>" not in page
    assert "Working points" not in page_of_run(shown(0.4)[0])


def test_a_run_of_one_chunk_or_without_probabilities_has_fewer():
    run, *_ = shown(0.04, n=300, chunk=300)
    assert rare_class(run).over_time is None
    page_of_run(run)
    records = list(
        prequential(open_stream((np.zeros((500, 1)), np.zeros(500, int)), chunk=100), DEVDAN(random_state=0))
    )
    empty = ShownRun("run", {})
    for record in records:
        empty.add(record)
    assert rare_class(empty) is None


def test_what_leads_is_the_rare_class_and_accuracy_stands_beside_the_majoritys():
    run, _, rare = shown(0.04)
    page, found = page_of_run(run), run.figures["rarest_average_precision"]
    assert page.index("What thresholds find") < page.index("<h2>Accuracy</h2>")
    share = f"{100 * (1 - rare[100:].mean()):.1f} %"
    assert f"always &lt;ok&gt;, {share} overall" in page.replace("\N{NO-BREAK SPACE}", " ")
    assert repr(run.summary) == (
        f"<Summary: 4,000 samples in 40 chunks, of fraud & co average precision {found:.3f}, "
        f"f1 {run.figures['rarest_f1']:.3f}>"
    )
    assert "Average precision of fraud &amp; co on rare · told" in picture_of_run(run)
    even, *_ = shown(0.4)
    page = page_of_run(even)
    assert "What thresholds find" not in page
    assert "Accuracy on rare · told" in picture_of_run(even)
    assert "classification rate" in repr(even.summary)


def test_average_precision_over_time_is_scikit_learns_around_each_sample():
    run, scores, rare = shown(0.04)
    measure = headline([run])
    assert measure.key == "rarest_average_precision"
    ends, values = over_parts(run, measure)
    assert ends == list(range(100, 4_001, 100))  # forty chunks, of which a point has the two beside it, too
    for end, value in zip(ends, values, strict=True):
        part = slice(max(0, end - 300), end + 200)
        assert value == pytest.approx(average_precision_score(rare[part], scores[part]), abs=0.02)  # of few samples
    chart = headline_chart(run, measure)
    assert [entry.text for entry in chart.legend] == [
        "over about a tenth of the run",
        f"by chance, {rare.mean():.3f}",
    ]
    assert "nan" not in chart.body
    assert headline([shown(0.4)[0]]) is None


def test_the_curve_of_a_long_run_has_a_bounded_number_of_points():
    run, *_ = shown(0.1, n=12_000, chunk=10)
    ends, values = over_parts(run, headline([run]))
    assert 40 <= len(ends) <= 81
    assert ends[-1] == 12_000
    assert all(0 <= value <= 1 for value in values)


def test_a_picture_without_a_curve_of_the_rare_class_has_the_accuracy():
    run, *_ = shown(0.04, n=200, chunk=100)
    assert ">Accuracy on rare · told</text>" in picture_of_run(run)
