"""What undoes a departure from the paper undoes it."""

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
