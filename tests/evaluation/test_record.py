"""Records: which columns mattered, and events."""

from itertools import pairwise

import numpy as np
import pytest
from changing import changing_frauds
from hypothesis import given
from hypothesis import strategies as st
from runs import moving_table, rare_class, record

from devdan import DEVDAN, DEVDANEnsemble
from devdan.evaluation.adapters import adapted
from devdan.evaluation.loop import prequential
from devdan.evaluation.record import Record, Summary
from devdan.streams import open_stream


@pytest.mark.parametrize("kind", [DEVDAN(random_state=0), DEVDANEnsemble(random_state=0, n_jobs=1)])
def test_records_tell_which_columns_mattered_now_and_then(kind):
    records = list(prequential(open_stream(moving_table(), chunk=250), kind))
    told = [(one.start, one.importances) for one in records if one.importances is not None]
    starts = [start for start, _ in told]
    assert starts[:9] == list(range(0, 4500, 500))
    assert all(500 < after - before <= after / 8 + 250 for before, after in pairwise(starts[8:]))  # a chunk is 250
    assert all(sum(shares) == pytest.approx(1, abs=0.001) for _, shares in told)
    by_column = dict(told)
    assert by_column[2500][1] > 0.9
    assert told[-1][0] >= 5000
    assert told[-1][1][0] > 0.8
    assert [Record.from_json(one.to_json()) for one in records] == records


def test_asking_takes_no_more_predictions_than_there_are_samples():
    class Counted(DEVDAN):
        n_asked = 0

        def importances(self, n_samples):
            self.n_once = n_samples * (self.n_features_in_ + 1)
            self.n_asked += self.n_once
            return super().importances(n_samples)

    random = np.random.default_rng(0)
    for width, chunk in ((3, 1), (40, 100)):
        own, model = 0, Counted(random_state=0, rehearse=0)
        learned = adapted(model)
        for n_seen in range(chunk, 10_001 if chunk > 1 else 2001, chunk):
            X = random.normal(size=(chunk, width))
            model.partial_fit(X, X[:, 0] > 0, classes=[False, True])
            own += learned.structure()["importances"] is not None
            assert model.n_asked <= n_seen + model.n_once
        assert own > 1


def test_a_record_with_an_event_of_no_kind_is_none():
    line = record(0).to_json().replace('"events":null', '"events": [[1, "generative", "party", 0, 1, 0, 1.0, 1.0]]')
    with pytest.raises(ValueError, match="no event"):
        Record.from_json(line)


def test_drifts_of_a_rare_class_have_its_label_and_are_counted_by_it():
    records = list(prequential(open_stream(changing_frauds(), chunk=250), DEVDAN(random_state=0)))
    again = [Record.from_json(one.to_json()) for one in records]
    told = [event for one in again for event in one.events if event.label is not None]
    assert [event.label for event in told] == ["fraud"]
    assert 8_000 < told[0].sample < 9_000
    assert "samples of the class fraud was" in told[0].why
    summary = Summary(again)
    assert summary.class_drifts == {"fraud": 1}
    assert summary.drifts.discriminative >= 1
    assert summary.figures()["class_drifts"] == [("fraud", 1)]


RARE = rare_class(3, n_chunks=12, n=60)


@given(st.sets(st.integers(1, 11)))
def test_summaries_of_parts_are_joined_to_that_of_the_whole(cuts):
    first, *others = np.split(np.arange(12), sorted(cuts))
    joined = Summary(RARE[k] for k in first)
    for part in others:
        joined.join(Summary((RARE[k] for k in part), begins=False))
    assert joined.figures() == {
        name: pytest.approx(value, nan_ok=True) if isinstance(value, float) else value
        for name, value in Summary(RARE).figures().items()
    }
