"""Histories as a transformer of scikit-learn: in a Pipeline, with names, and as data frames."""

import numpy as np
import pandas as pd
import pytest
from payments_stream import payments
from sklearn import config_context
from sklearn.pipeline import make_pipeline

from devdan import DEVDAN, Histories

pytestmark = pytest.mark.filterwarnings("ignore::devdan.histories.histories.HistoryWarning")
ROWS, LABELS = payments(1500)
TABLE = pd.DataFrame(ROWS)


@pytest.mark.parametrize("late", [0.0, 3.0])
def test_in_training_the_shares_of_classes_are_those_of_labels_that_had_come(late):
    histories = Histories("customer", time="day", classes=["fraud"], horizons=["10 days"], late=late)
    histories.set_params(horizons=[10.0])
    found = histories.fit_transform(TABLE, LABELS)
    shares = np.array([row["customer: share of fraud, lately"] for row in found.dicts()])
    days = TABLE["day"].to_numpy()
    assert (shares[days < late] == 0).all()
    assert (shares[days > late + 2] > 0).all()
    frauds = LABELS == "fraud"
    assert shares[frauds].mean() > 1.3 * shares[~frauds].mean()
    seen = histories.transform(TABLE[-100:])
    assert np.mean([row["customer: share of fraud, lately"] for row in seen.dicts()]) > 0


def test_a_pipeline_learns_and_predicts():
    pipeline = make_pipeline(Histories("customer", time="day", classes=["fraud"]), DEVDAN(random_state=0))
    pipeline.fit(TABLE[:1000], LABELS[:1000])
    assert pipeline.predict(TABLE[1000:]).shape == (500,)
    names = pipeline[:-1].get_feature_names_out()
    assert list(names) == list(pipeline[:-1].transform(TABLE[1000:]).names)


@pytest.mark.parametrize("as_frame", [lambda histories: histories.set_output(transform="pandas"), None])
def test_output_can_be_a_data_frame(as_frame):
    histories = Histories("customer", time="day")
    if as_frame is not None:
        as_frame(histories)
    with config_context(transform_output="default" if as_frame else "pandas"):
        first = histories.fit_transform(TABLE[:200], LABELS[:200])
        found = histories.transform(TABLE[200:300])
    assert list(found.columns) == list(first.columns) == list(histories.get_feature_names_out())
    assert list(found.index) == list(range(200, 300))
    assert found["country"].iloc[0] == ROWS[200]["country"]
    with pytest.raises(ValueError, match="transform must be"):
        histories.set_output(transform="excel")
