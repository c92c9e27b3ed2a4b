"""Probabilities are as sure as predictions turned out right, and the labels that are predicted stay the same."""

import numpy as np
import pytest
from networks import words

from devdan import DEVDAN, DEVDANEnsemble
from devdan.evaluation.loop import prequential
from devdan.evaluation.record import Summary
from devdan.model.online import OnlineMixture

MODELS = {
    "DEVDAN": lambda **more: DEVDAN(random_state=3, **more),
    "one network": lambda **more: DEVDAN(random_state=3, rehearse=0, **more),
    "ensemble": lambda **more: DEVDANEnsemble(
        [(1,), (3, 2, 20), (2, 1, 30, 3)], estimator=DEVDAN(**more), random_state=3
    ),
}


class Temperature:
    """Newton steps on the log loss with respect to the logarithm of the power; what is known of it fades."""

    def __init__(self):
        self.log_power, self.information, self.n_taught = 0.0, 0.0, 0

    def compare(self, shares, label, weight):
        shares = shares[shares > 0]
        scores = np.log(np.maximum(shares, 1e-4))
        power = np.exp(self.log_power)
        p = np.exp(power * scores) / np.exp(power * scores).sum()
        slope = power * (p @ scores - np.log(max(label, 1e-4)))
        self.information = 0.998 * self.information + weight * power**2 * (p @ scores**2 - (p @ scores) ** 2)
        self.log_power = np.clip(self.log_power - weight * slope / (self.information + 5), -1.5, 1.5)

    def teach(self, raw, codes, weights):
        """Every sixteenth label is compared with what was predicted before it was learned."""
        for row, code, weight in zip(raw, codes, weights, strict=True):
            self.n_taught += 1
            if self.n_taught % 16 == 0 and len(row) and row[code] > 0:
                self.compare(row, row[code], weight)

    def applied(self, raw):
        powers = raw ** np.exp(self.log_power)
        return powers / powers.sum(axis=1, keepdims=True)


def stream(n, seed, noise=0.0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 3))
    y = (X @ [2.0, -1.0, 0.5] > 0).astype(int) + (X[:, 2] > 1.2)
    return X, np.where(random.random(n) < noise, random.integers(3, size=n), y)


@pytest.mark.parametrize("size", [1, 7, 50])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_the_temperature_is_the_oracles(make, weighted, size):
    X, y = stream(900 if size > 1 else 300, seed=1)
    weights = np.random.default_rng(2).gamma(2.0, 0.5, size=len(y)) if weighted else np.ones(len(y))
    model, raw, oracle = make(), make(calibrate=False), Temperature()
    for start in range(0, len(X), size):
        part = slice(start, start + size)
        before = raw.predict_proba(X[part]) if start else np.zeros((size, 0))
        oracle.teach(before, y[part], weights[part])
        for each in (model, raw):
            each.partial_fit(
                X[part], y[part], classes=[0, 1, 2], **({"sample_weight": weights[part]} if weighted else {})
            )
        shares = raw.predict_proba(X[:20])
        np.testing.assert_allclose(model.predict_proba(X[:20]), oracle.applied(shares), rtol=0, atol=1e-12)
        assert (model.predict(X[:20]) == raw.predict(X[:20])).all()
    assert abs(oracle.log_power) > 0.02


def test_late_labels_are_compared_when_they_come():
    X, y = stream(600, seed=1)
    model, raw, oracle = DEVDAN(random_state=0), DEVDAN(random_state=0, calibrate=False), Temperature()
    for each in (model, raw):
        each.observe(X)
    for start in range(0, 600, 40):
        part = slice(start, start + 40)
        oracle.teach(raw.predict_proba(X[part]) if start else np.zeros((40, 0)), y[part], np.ones(40))
        for each in (model, raw):
            each.teach(X[part], y[part], classes=[0, 1, 2])
    np.testing.assert_allclose(model.predict_proba(X), oracle.applied(raw.predict_proba(X)), rtol=0, atol=1e-12)


def test_rows_one_after_the_other_are_as_rows_at_once():
    X, y = stream(200, seed=1)
    one, many = OnlineMixture(), OnlineMixture()
    for each in (one, many):
        each.begin(3, 1, 3)
        each.row[:] = 0.0
    for row, code in zip(X, y, strict=True):
        one.learn(row[None, :].copy(), int(code))
    many.learn_rows(X, y)
    assert (one.predict(X, 3) == many.predict(X, 3)).all()
    assert words(one) == words(many)
    model = DEVDAN(random_state=1)
    for row, code in zip(X, y, strict=True):
        model.partial_fit(row[None, :], [code], classes=[0, 1, 2])
    assert (model.predict_proba(X) == one.predict(X, 3)).all()


@pytest.mark.parametrize(("noise", "most"), [(0.0, 0.3), (0.3, 1.05)])
def test_predictions_are_about_as_sure_as_they_are_right(noise, most):
    """Without noise networks are not sure enough, since labels are smoothed while they learn; with it, they are."""
    X, y = stream(20_000, seed=4, noise=noise)
    found = {}
    for calibrate in (True, False):
        chunks = [(X[start : start + 100], y[start : start + 100]) for start in range(0, len(X), 100)]
        found[calibrate] = Summary(prequential(chunks, DEVDAN(random_state=0, calibrate=calibrate)))
    assert found[True].rate.mean == found[False].rate.mean
    assert found[True].calibration_error < most * found[False].calibration_error
