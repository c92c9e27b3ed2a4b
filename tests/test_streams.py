"""The built-in stream is the paper's."""

import numpy as np

from devdan.streams import sea


def test_sea_has_the_papers_concepts_and_noise():
    X, y = (np.concatenate(parts) for parts in zip(*sea(80_000, seed=3), strict=True))
    assert X.shape == (80_000, 3)
    assert ((X >= 0) & (X < 1)).all()
    for eighth, threshold in enumerate((8, 9, 7, 9.5) * 2):
        part = slice(10_000 * eighth, 10_000 * (eighth + 1))
        wrong = np.mean(y[part] != (10 * (X[part, 0] + X[part, 1]) <= threshold))
        assert 0.08 < wrong < 0.11 if eighth < 4 else wrong == 0


def test_the_chunks_do_not_change_the_stream():
    whole = list(sea(1000, chunk=1000, seed=1))
    cut = list(sea(1000, chunk=7, seed=1))
    assert [len(y) for _, y in cut] == [7] * 142 + [6]
    for k in range(2):
        np.testing.assert_array_equal(whole[0][k], np.concatenate([part[k] for part in cut]))
