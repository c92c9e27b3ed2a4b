"""The kernel and its oracle side by side: a stream for both, one step of both, and whether they agree."""

import numpy as np


def stream(n_samples, n_features, n_classes, missing, seed):
    """Unscaled features around moving class centres, so that both phases grow and prune."""
    random = np.random.default_rng(seed)
    y = random.integers(n_classes, size=n_samples)
    drift = np.linspace(0, 3, n_samples)[:, None] * (np.arange(n_features) % 2)
    X = 0.5 * random.normal(size=(n_samples, n_features)) + np.outer(y, np.linspace(-1, 1, n_features)) + drift
    X[random.random(X.shape) < missing] = np.nan
    return X, y


def learn_both(model, oracle, t, row, label, code, weight):
    """Both get the same, in one phase or both; with a weight now and then both phases at once."""
    weights = {} if weight == 1 else {"sample_weight": [weight]}
    if weights and t % 3 == 0:
        model.partial_fit(row, [label], **weights)
        oracle.observe(row[0], weight)
        oracle.teach(row[0], code, weight)
        return
    if t % 7 != 6:
        model.observe(row)
        oracle.observe(row[0])
    if t % 5 != 4:
        model.teach(row, [label], **weights)
        oracle.teach(row[0], code, weight)


def agree(values, expected, what):
    """To 1e-10; NumPy's own assertion takes ten times as long, and there are a hundred thousand of them here."""
    assert values.shape == expected.shape, what
    assert (np.abs(values - expected) <= 1e-10).all(), what
