"""Small ensembles, what a network has learned, to compare, and what plain Python is too slow for."""

import pytest
from numba import config

needs_jit = pytest.mark.skipif(bool(config.DISABLE_JIT), reason="takes too long as plain Python")
SMALL = ((1,), (3, 2, 20), (4, 1, 30, 4))  # the scales of an ensemble whose members are of all kinds


def words(online):
    """All that an ``OnlineMixture`` has learned."""
    return [] if online.mixture is None else [state.tobytes() for state in online.mixture.networks]


def plain(function):
    """A compiled function as Python."""
    return getattr(function, "py_func", function)
