"""Labels in, outputs out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from devdan.model.classes import Classes, check_labels


@given(st.lists(st.lists(st.sampled_from(["b", "a", "dd", "c"]), min_size=1), min_size=1))
def test_outputs_are_given_out_in_order_of_appearance_and_labels_stay_sorted(chunks):
    classes, appeared = Classes(), []
    for chunk in chunks:
        for label in chunk:
            if label not in appeared:
                appeared.append(label)
        codes, classes = classes.encode(np.array(chunk))
        assert codes.tolist() == [appeared.index(label) for label in chunk]
        assert classes.labels.tolist() == sorted(appeared)
        assert [appeared[output] for output in classes.outputs] == sorted(appeared)


def test_encoding_does_not_change_the_classes_it_is_asked_of():
    _, before = Classes().encode(np.array([3, 1]))
    _, after = before.encode(np.array([2]))
    assert (before.labels.tolist(), after.labels.tolist()) == ([1, 3], [1, 2, 3])


def test_whole_floats_are_the_integers_they_equal():
    _, classes = Classes().encode(np.array([1, 2]))
    codes, classes = classes.encode(np.array([2.0, 5.0]))
    assert codes.tolist() == [1, 2]
    assert classes.labels.dtype == np.int64


def test_labels_of_another_kind_are_refused():
    _, classes = Classes().encode(np.array([True, False]))
    with pytest.raises(ValueError, match="labels of the type seen so far"):
        classes.encode(np.array([1, 0]))


def test_objects_become_what_they_hold():
    assert check_labels(np.array([1, 2], object)).dtype.kind == "i"
    assert check_labels(np.array(["a", "bcd"], object)).dtype == object
    assert check_labels([True, False]).dtype == bool
    with pytest.raises(ValueError, match="labels of one type"):
        check_labels(np.array([{}, 1], object))
    with pytest.raises(ValueError, match="labels of one type"):
        check_labels(np.array([[1], [1, 2], 3], object))


def test_numbers_that_floats_cannot_tell_apart_do_not_meet_others():
    huge = np.array([2**63 + 1, 2**63 + 2], np.uint64)
    assert len(Classes().encode(huge)[1]) == 2
    for known, others in (([1, 2], huge), (huge, [1, 2]), (huge, [1.0, 2.0]), ([1.0, 2.0], [2**60 + 1, 2**60 + 2])):
        _, classes = Classes().encode(check_labels(np.asarray(known)))
        with pytest.raises(ValueError, match="too large to be distinguished"):
            classes.encode(check_labels(np.asarray(others)))


def test_floats_of_any_width():
    assert check_labels(np.array([1, 2], np.float16)).dtype == np.float16
    assert check_labels(np.array([1, 2], np.longdouble)).dtype == np.float64
    with pytest.raises(ValueError, match="too large to be distinguished"):
        check_labels(np.array([2.0**60], np.float32))


def test_masked_labels_are_no_labels():
    assert check_labels(np.ma.array([1, 2], mask=[False, False])).tolist() == [1, 2]
    with pytest.raises(ValueError, match="masked labels"):
        check_labels(np.ma.array([1, 2], mask=[False, True]))
