"""Test, then train."""

import warnings

import pytest
from sklearn.exceptions import DataConversionWarning

from devdan import DEVDAN
from devdan.prequential import Record, classification_rate, prequential
from devdan.streams import sea


class Spy(DEVDAN):
    """Notes what it is asked, in order."""

    def predict(self, X):
        self.calls.append("predict")
        return super().predict(X)

    def partial_fit(self, X, y):
        self.calls = [*getattr(self, "calls", []), "learn"]
        return super().partial_fit(X, y)


def test_each_chunk_is_predicted_before_it_is_learned():
    model = Spy(random_state=0)
    model.calls = []
    records = list(prequential(sea(2000), model))
    assert model.calls == ["predict", "learn"] * 4
    assert [record.n_samples for record in records] == [500] * 4
    assert records[0].accuracy is None
    assert all(0 <= record.accuracy <= 1 for record in records[1:])
    assert records[-1].n_hidden == model.n_hidden_


def test_classification_rate_leaves_the_first_chunk_out():
    records = [Record(5, accuracy, 1, 1, 0.0, 0.0) for accuracy in (0.0, 0.8, 0.9)]
    mean, std = classification_rate(records)
    assert (mean, std) == pytest.approx((85, 5))
    with pytest.raises(ValueError, match="at least two chunks"):
        classification_rate(records[:1])


def test_a_column_of_labels_counts_as_one_label_per_sample():
    X, y = next(sea(1000, chunk=1000))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataConversionWarning)
        column, row = (list(prequential([(X, y), (X, labels)], DEVDAN(random_state=0))) for labels in (y[:, None], y))
    assert column[1].accuracy == row[1].accuracy
