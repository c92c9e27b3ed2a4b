"""scikit-learn's classifiers on inputs standardised online."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler


class Scaled:
    """A scikit-learn classifier on inputs standardised online; missing values become the mean."""

    def __init__(self, model: Any) -> None:
        self.model, self.scaler = model, StandardScaler()
        if not hasattr(model, "predict_proba"):
            raise ValueError(f"{model} has no predict_proba")

    @property
    def coefs_(self) -> list[Any]:
        return list(getattr(self.model, "coefs_", [self.model.coef_] if hasattr(self.model, "coef_") else []))

    @property
    def intercepts_(self) -> list[Any]:
        return list(getattr(self.model, "intercepts_", [self.model.intercept_] if hasattr(self.model, "coef_") else []))

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Scaled:
        """Learn the scale, then the labels."""
        self.scaler.partial_fit(X)
        self.model.partial_fit(self._scaled(X), y, **({} if classes is None else {"classes": classes}))
        return self

    def predict(self, X: Any) -> Any:
        """Labels."""
        return self.model.predict(self._scaled(X))

    def predict_proba(self, X: Any) -> Any:
        """Probabilities of the classes."""
        return self.model.predict_proba(self._scaled(X))

    def _scaled(self, X: Any) -> Any:
        return np.nan_to_num(self.scaler.transform(X))
