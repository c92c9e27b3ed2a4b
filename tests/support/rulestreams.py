"""A stream in chunks for rule-based models, and what happened while one learned it."""

import numpy as np


def chunks(n_chunks, size=100, n_features=3, n_classes=2, shifts=(), seed=0):
    """A linear problem in [0, 1]; where a chunk is in ``shifts``, all but its first rows lie lower."""
    random = np.random.default_rng(seed)
    weights = random.normal(size=(n_features, n_classes))
    for number in range(n_chunks):
        X = 0.8 + 0.2 * random.random((size, n_features))
        y = ((X - 0.9) @ weights + 0.02 * random.normal(size=(size, n_classes))).argmax(axis=1)
        if number in shifts:
            X[shifts[number] :] -= 0.8
        yield X, y


def kinds(model):
    return [event.kind for event in model.events_]
