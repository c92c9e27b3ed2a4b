"""scikit-learn's own checks, all of them; with standardised inputs also the one that asks for accuracy."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from devdan import DEVDAN, DEVDANEnsemble


@pytest.mark.filterwarnings("ignore:X has values outside")
@parametrize_with_checks(
    [
        DEVDAN(random_state=0),
        DEVDAN(scaling=None, random_state=0),
        DEVDAN(interleave=True, random_state=0),
        DEVDAN(n_layers="auto", random_state=0),
        DEVDANEnsemble(n=3, random_state=0),
    ]
)
def test_estimator_checks(estimator, check):
    check(estimator)
