"""How functions are compiled: what only compiled code calls has no machine code of its own, and does what it should."""

import numpy as np
import pytest
from numba import config, njit

from devdan.model import jit, kernel
from devdan.model.jit import Part, compiled

pytestmark = pytest.mark.skipif(bool(config.DISABLE_JIT), reason="nothing is compiled without the JIT")


@compiled
def half(x):
    return 0.5 * x


@compiled
def quarter(x):
    return half(half(x))


@njit
def sum_of_parts(values):
    total = 0.0
    for value in values:
        total += quarter(value) + half(value)
    return total


def test_an_entry_does_what_its_parts_do():
    values = np.arange(10.0)
    assert sum_of_parts(values) == 0.75 * values.sum()


def test_parts_have_no_machine_code_of_their_own():
    sum_of_parts(np.arange(3.0))
    libraries = [overload.library for part in (half, quarter) for overload in part.overloads.values()]
    assert len(libraries) == 2
    assert all(isinstance(library, Part) and library._finalized for library in libraries)
    entries = [overload.library for overload in sum_of_parts.overloads.values()]
    assert not any(isinstance(library, Part) for library in entries)


def test_a_part_gives_what_numbas_own_pipeline_gives():
    whole = jit.njit(no_cpython_wrapper=True, **jit._OPTIONS)(kernel.sigmoid.py_func)
    ours, theirs = np.linspace(-5, 5, 100), np.linspace(-5, 5, 100)
    jit.njit(lambda values: kernel.sigmoid(values, len(values)))(ours)
    jit.njit(lambda values: whole(values, len(values)))(theirs)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-15)
