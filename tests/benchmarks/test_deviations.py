"""What undoes a departure from the paper undoes it, and what is counted is what the tables say."""

import deviations

from devdan import DEVDAN
from devdan.streams import sea


def test_momentum_may_start_anew_with_each_chunk():
    models = [kind.paper(random_state=0) for kind in (DEVDAN, deviations.ResetsVelocity)]
    for X, y in sea(1000):
        for model in models:
            model.partial_fit(X, y)
    usual, anew = (model.mixture_.nets[0].encoder for model in models)
    assert usual.shape != anew.shape or (usual != anew).any()


def test_chunks_near_drifts_are_those_after_seas_and_around_hyperplanes():
    after, around = map(deviations.near_drifts, ("sea", "hyperplane"))
    assert after[:6] == [25, 26, 27, 28, 29, 50]  # of 500 samples; a drift every 12,500
    assert len(after) == 7 * 5
    assert around == list(range(80, 120))  # of the 120,000 samples, the 40,000th to the 60,000th


def test_only_some_chunks_count_if_only_some_are_asked_for(monkeypatch):
    rates = list(map(float, range(1, 240)))  # the first chunk is not predicted, so that chunk k has the rate k
    monkeypatch.setattr(deviations, "found", lambda *_, **__: [deviations.Run(rates, 10.0, 0.0)])

    def counted(**situation):
        return deviations.counted("hyperplane", deviations.Situation(**situation), None)

    assert counted() == [120.0]
    assert counted(n_chunks=2) == [1.5]
    assert counted(near_drifts=True) == [99.5]


def test_the_mean_difference_is_taken_seed_by_seed():
    labels = [1.0, 5.0, 3.0, 9.0]  # what a seed's labels are worth to both
    ours = [rate + gap for rate, gap in zip(labels, (1.0, 1.2, 0.8, 1.0), strict=True)]
    assert deviations.mean_gap([ours, ours], [labels, labels]) == "+1.00 ± 0.06*"
    assert not deviations.mean_gap([ours, ours[::-1]], [labels[::-1], labels]).endswith("*")
