"""What the machines of states share: each drives a model and its twin through all verbs, in any order."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from devdan.kernel.state import check_state

ERRORS = (ValueError, TypeError)  # all that a user may have to expect; NotFittedError and ModelFileError are among them
N_EXAMPLES = settings.default.max_examples // 5  # of 25 steps each
N_BATCHES = max(N_EXAMPLES // 200, 1)
SETTINGS = settings(
    max_examples=N_EXAMPLES // N_BATCHES,
    stateful_step_count=25,
    suppress_health_check=list(HealthCheck),
)
QUIET = pytest.mark.filterwarnings(
    "ignore:X has values outside",
    "ignore:X (has|does not have valid) feature names",
    "ignore:A column-vector y was passed",
    "ignore:the column",
)
ANY = st.data()
GOOD_OPTIONS = {
    "masking": [0.0, 0.3, 0.99],
    "shuffle": [True, False],
    "generative": [True, False],
    "grow": [True, False],
    "prune": [True, False],
    "scope": ["fixed", "adaptive"],
    "generative_learning_rate": [0.0, 0.001, 1.0],
    "learning_rate": [0.0, 0.04, 1.0],
    "annealing": [None, 1e-3, 500, 1e9],
    "momentum": [0.0, 0.9, 0.999],
    "averaging": [0.0, 0.5, 0.998],
    "class_weight": [None, "balanced", {}, {3: 0.5, "dry": 1e6, True: 1e-6, "x": 7}],
}
START_OPTIONS = GOOD_OPTIONS | {
    "optimizer": ["adaptive", "momentum"],
    "n_hidden": [1, 2, 20],
    "scaling": ["standard", "minmax", None],
    "interleave": [True, False],
    "rehearse": [0, 1, 5],
}
GOOD_WEIGHTS = [0, 0.0, 1, 0.5, 3.0, 1e-300, 5e-324, 1e6, True]
BAD_WEIGHTS = [-1.0, -5e-324, 1e7, np.nan, np.inf, "1", None, 1j, [1], {}, 10**400, pd.NA]


@st.composite
def sample_weights(draw, n):
    """Weights of samples, mostly legal."""
    weights = draw(st.lists(st.sampled_from(GOOD_WEIGHTS), min_size=n, max_size=n))
    form = draw(st.sampled_from([list, np.array, pd.Series, tuple, lambda weights: np.array(weights, np.float32)]))
    broken = draw(st.sampled_from([False] * 5 + [True]))
    if broken and draw(st.booleans()):
        return draw(st.sampled_from([*BAD_WEIGHTS, np.ones(n + 1), np.ones((n, 1)), "text", object(), 0.5]))
    if broken and n > 0:
        return [draw(st.sampled_from(BAD_WEIGHTS)), *weights[1:]]
    return form(weights)


def options(choices):
    return st.fixed_dictionaries({}, optional={name: st.sampled_from(values) for name, values in choices.items()})


def in_batches(machine):
    """The test that runs a machine, in batches: Hypothesis keeps a test's examples in memory until the test ends."""

    @QUIET
    @pytest.mark.fuzz
    @pytest.mark.parametrize("batch", range(N_BATCHES))
    def test(batch):
        run_state_machine_as_test(machine, settings=SETTINGS)

    return test


class Twins(RuleBasedStateMachine):
    """What every face goes through.

    A face says what it is made of: ``words(model)`` is all that one has learned, to compare, and ``states()`` are the
    kernel's; and it brings rules for its verbs.
    """

    model = twin = None

    def attempt(self, verb, *given, **options):
        """Give the same to both, unless the one refuses it; tells whether it did."""
        try:
            getattr(self.model, verb)(*given, **options)
        except ERRORS:
            return False
        getattr(self.twin, verb)(*given, **options)
        return True

    def copies(self):
        """The model once more, in all ways there are."""
        return [copy.deepcopy(self.model), pickle.loads(pickle.dumps(self.model))]

    @rule(data=ANY)
    def copy(self, data):
        self.twin = data.draw(st.sampled_from(self.copies()))

    @invariant()
    def twins_are_alike(self):
        if self.model is not None:
            assert self.words(self.model) == self.words(self.twin)

    @invariant()
    def the_states_are_sound(self):
        if self.model is not None:
            for state in self.states():
                check_state(state)
