"""How functions are compiled, and what devdan needs of Numba beyond its documented decorators."""

import shutil
from pathlib import Path

import numba
import numpy as np
import pytest
from interpreters import python
from numba import config, njit

from devdan import kernel
from devdan.kernel import arithmetic, jit
from devdan.kernel.jit import Part, compiled

pytestmark = pytest.mark.skipif(bool(config.DISABLE_JIT), reason="nothing is compiled without the JIT")

# The kernel reaches into Numba in two places: jit.py (the stamp of the cache, the pipeline for parts, reference
# counting left out) and memory.py (its low-level extension API). Both were tried with the first and the last
# of these versions; pyproject.toml lets in a later one once these tests pass with it.
SUPPORTED = (0, 63), (0, 68)


def test_this_numba_is_one_that_was_tried():
    version = tuple(map(int, numba.__version__.split(".")[:2]))
    assert SUPPORTED[0] <= version <= SUPPORTED[1]


# --- The cache ---------------------------------------------------------------------------------------------------

SHUFFLE = """
import numpy as np
from copied_kernel import shuffle
word, order = np.array([1], np.uint64), np.arange(9)
shuffle(word, order)
print(sum(shuffle.stats.cache_hits.values()), sum(shuffle.stats.cache_misses.values()), *order)
"""


def test_an_edit_of_a_callee_in_another_file_compiles_its_callers_anew(tmp_path):
    folder = tmp_path / "copied_kernel"
    shutil.copytree(Path(kernel.__file__).parent, folder, ignore=shutil.ignore_patterns("__pycache__"))
    for file in folder.glob("*.py"):
        file.write_text(file.read_text().replace("devdan.kernel", "copied_kernel"))

    def shuffled():
        hits, misses, *order = python(
            f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{SHUFFLE}", NUMBA_CACHE_DIR=str(tmp_path / "cache")
        )[0].split()
        return int(hits), int(misses), order

    first = shuffled()
    assert first[:2] == (0, 1)
    assert shuffled() == (1, 0, first[2])
    source = (folder / "arithmetic.py").read_text()
    assert source.count("return np.float64(z >> np.uint64(11)) * 2.0**-53") == 1
    (folder / "arithmetic.py").write_text(source.replace("* 2.0**-53", "* 2.0**-54"))
    edited = shuffled()
    assert edited[:2] == (0, 1)
    assert edited[2] != first[2]
    (folder / "arithmetic.py").write_text(source)
    assert shuffled() == (0, 1, first[2])


def test_without_a_folder_for_the_cache_entries_are_compiled_all_the_same():
    code = """
from numba.core import caching
caching.CacheImpl._locator_classes = []
import numpy as np
from devdan.kernel import shuffle
order = np.arange(9)
shuffle(np.array([1], np.uint64), order)
print(shuffle.stats.cache_path, sorted(order.tolist()) == list(range(9)))
"""
    assert python(code)[0].split() == ["None", "True"]


# --- Parts -------------------------------------------------------------------------------------------------------


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


def test_an_entry_does_what_its_parts_do_and_only_the_entry_has_machine_code():
    values = np.arange(10.0)
    assert sum_of_parts(values) == 0.75 * values.sum()
    libraries = [overload.library for part in (half, quarter) for overload in part.overloads.values()]
    assert len(libraries) == 2
    assert all(isinstance(library, Part) and library._finalized for library in libraries)
    entries = [overload.library for overload in sum_of_parts.overloads.values()]
    assert not any(isinstance(library, Part) for library in entries)


def test_a_part_gives_what_numbas_own_pipeline_gives():
    whole = njit(no_cpython_wrapper=True, **jit._OPTIONS)(arithmetic.sigmoid.py_func)
    ours, theirs = np.linspace(-5, 5, 100), np.linspace(-5, 5, 100)
    njit(lambda values: arithmetic.sigmoid(values, len(values)))(ours)
    njit(lambda values: whole(values, len(values)))(theirs)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-15)
