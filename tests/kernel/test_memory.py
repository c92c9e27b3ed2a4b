"""Blocks: compiled code and Python read and write the same words by the same names."""

import copy
import pickle

import numpy as np
import pytest
from numba import config

from devdan.kernel.jit import compiled, entry
from devdan.kernel.memory import (
    CACHE_LINE,
    Block,
    N,
    R,
    Sizes,
    floats_at,
    integer,
    integers,
    integers_at,
    number,
    numbers,
    one_row,
)

JIT = not config.DISABLE_JIT


class Tray(Block):
    max_features: int = integer()
    max_hidden: int = integer()
    n_used: int = integer()
    level: float = number()
    weights: np.ndarray = numbers(N, 2, R, aligned=True)
    flat: np.ndarray = one_row(weights)
    counts: np.ndarray = integers(3)


class Lidded(Tray):
    lid: float = number()
    lengths: np.ndarray = numbers(N, aligned=True, empty=-1.0)
    width: float = number()


class Notes(Block):
    first: np.ndarray = numbers(R)
    second: np.ndarray = numbers(N)


@compiled
def fill(tray, notes):
    for j in range(tray.max_features):
        for i in range(tray.max_hidden):
            tray.weights[j, 1, i] = 10 * j + i
        notes.second[j] = tray.counts[j]
    tray.n_used += 1
    tray.level = tray.flat[len(tray.flat) - 1]
    notes.first[:] = 7.0


@entry
def filled(words, scratch):
    tray = Lidded(words)
    fill(Tray(tray), Notes(scratch, tray))
    tray.lid = tray.lengths[1]
    tray.width = len(tray.lengths)
    tray.lengths[0] = Lidded(Tray(words)).level
    return tray.weights.shape


def test_compiled_code_reads_and_writes_the_fields_that_python_sees():
    tray = Lidded.empty(Sizes(features=2, hidden=3))
    tray.counts[:] = 4, 5, 6
    notes = Notes(np.zeros(Notes.n_words(tray.sizes)), tray)
    assert filled(tray.words, notes.words) == tray.weights.shape == (2, 2, 3)
    assert tray.weights[:, 1].tolist() == [[0, 1, 2], [10, 11, 12]]
    assert not tray.weights[:, 0].any()
    assert (tray.n_used, tray.level, tray.lid, tray.width) == (1, 12.0, -1.0, 2.0)
    assert tray.lengths.tolist() == [12.0, -1.0]
    assert notes.first.tolist() == [7.0, 7.0, 7.0]
    assert notes.second.tolist() == [4.0, 5.0]
    assert Tray(tray).flat.tolist() == tray.flat.tolist()


def test_aligned_fields_begin_with_a_cache_line_and_a_parents_fields_come_first():
    for sizes in (Sizes(1, 1), Sizes(2, 3), Sizes(5, 8)):
        own, parents = Lidded.places(sizes), Tray.places(sizes)
        assert {name: own[name] for name in parents} == parents
        assert own["weights"][0] % CACHE_LINE == own["lengths"][0] % CACHE_LINE == 0
        ends = [start + int(np.prod(shape)) for start, shape in own.values()]
        assert max(ends) == Lidded.n_words(sizes) == own["width"][0] + 1


def test_copies_and_pickles_share_no_words():
    tray = Tray.empty(Sizes(2, 3))
    tray.weights[:] = 1.0
    for other in (copy.deepcopy(tray), pickle.loads(pickle.dumps(tray))):
        other.weights[:] = 2.0
        assert tray.weights.max() == 1.0


@entry
def moved(address, n):
    floats_at(address, n)[1] = 2.5
    return integers_at(address, n)[0]


def test_compiled_code_finds_an_array_by_its_address():
    words = np.zeros(4)
    words.view(np.int64)[0] = 9
    assert moved(words.ctypes.data, len(words)) == 9
    assert words[1] == 2.5


@pytest.mark.skipif(not JIT, reason="nothing is compiled without the JIT")
def test_a_field_that_does_not_exist_is_a_compile_error():
    @entry
    def wrong(words):
        return Tray(words).depth

    with pytest.raises(Exception, match="depth"):
        wrong(np.zeros(8))
